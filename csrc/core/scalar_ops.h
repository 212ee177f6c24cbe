/* scalar_ops.h: the scalar operators (scalar_operators.def) in C.  The interpreter and generated C use the same
   functions, so that their results are the same. */
#ifndef RELVM_SCALAR_OPS_H
#define RELVM_SCALAR_OPS_H

#include "scalar_ops_values.h"
#include "relvm.h"

enum rvm_scalar_op {
#define SCALAR_OPERATOR(name, function, operands, result, form, fails, meaning) RVM_SCALAR_OP_##name,
#include "scalar_operators.def"
#undef SCALAR_OPERATOR
  RVM_SCALAR_OP_COUNT
};

/* Returns whether the operator has a value for these operands, which must have its operand types.  For example, an
   integer division has none if the divisor is 0. */
static inline int rvm_scalar_op_has_value(enum rvm_scalar_op row, rvm_value a, rvm_value b) {
  switch (row) {
    case RVM_SCALAR_OP_floordiv_i64: return rvm_scalar_op_floordiv_i64_has_value(a.as.i, b.as.i);
    case RVM_SCALAR_OP_mod_i64: return rvm_scalar_op_mod_i64_has_value(a.as.i, b.as.i);
    case RVM_SCALAR_OP_shl_i64: return rvm_scalar_op_shl_i64_has_value(a.as.i, b.as.i);
    case RVM_SCALAR_OP_shr_i64: return rvm_scalar_op_shr_i64_has_value(a.as.i, b.as.i);
    case RVM_SCALAR_OP_i64_of_f64: return rvm_scalar_op_i64_of_f64_has_value(a.as.f, b.as.f);
    default: return 1;
  }
}

/* ---- rvm_scalar_op_NAME: checks the operands' types, applies an operator and returns 1.  Returns 0, without storing a
   result, if an operand has another type than the operator expects, or the operator has no value for the operands.
   Unary operators ignore b.  The macros end with a code of scalar_operators.def: i (int), f (float) or b (bool), one
   letter for each operand. ---- */

#define RVM_SCALAR_OP_ACCEPTS_ii (a.tag == RVM_TAG_INT && b.tag == RVM_TAG_INT)
#define RVM_SCALAR_OP_ACCEPTS_ff (a.tag == RVM_TAG_FLOAT && b.tag == RVM_TAG_FLOAT)
#define RVM_SCALAR_OP_ACCEPTS_bb (a.tag == RVM_TAG_BOOL && b.tag == RVM_TAG_BOOL)
#define RVM_SCALAR_OP_ACCEPTS_i (a.tag == RVM_TAG_INT)
#define RVM_SCALAR_OP_ACCEPTS_f (a.tag == RVM_TAG_FLOAT)
#define RVM_SCALAR_OP_ACCEPTS_b (a.tag == RVM_TAG_BOOL)
#define RVM_SCALAR_OP_FIELD_ii i
#define RVM_SCALAR_OP_FIELD_ff f
#define RVM_SCALAR_OP_FIELD_bb i
#define RVM_SCALAR_OP_FIELD_i i
#define RVM_SCALAR_OP_FIELD_f f
#define RVM_SCALAR_OP_FIELD_b i
#define RVM_SCALAR_OP_RESULT_i(value) ((rvm_value){.tag = RVM_TAG_INT, .as.i = value})
#define RVM_SCALAR_OP_RESULT_f(value) ((rvm_value){.tag = RVM_TAG_FLOAT, .as.f = value})
#define RVM_SCALAR_OP_RESULT_b(value) ((rvm_value){.tag = RVM_TAG_BOOL, .as.i = value})
#define RVM_SCALAR_OP_CALL(name, field) rvm_scalar_op_##name##_value(a.as.field, b.as.field)
#define RVM_SCALAR_OP_EXPANDED(name, field) RVM_SCALAR_OP_CALL(name, field)

#define SCALAR_OPERATOR(name, function, operands, out, form, fails, meaning)                                 \
  static inline int rvm_scalar_op_##name(rvm_value a, rvm_value b, rvm_value *result) {                      \
    if (!RVM_SCALAR_OP_ACCEPTS_##operands || !rvm_scalar_op_has_value(RVM_SCALAR_OP_##name, a, b)) return 0; \
    *result = RVM_SCALAR_OP_RESULT_##out(RVM_SCALAR_OP_EXPANDED(name, RVM_SCALAR_OP_FIELD_##operands));      \
    return 1;                                                                                                \
  }
#include "scalar_operators.def"
#undef SCALAR_OPERATOR

/* ---- not for generated C ---- */

/* In these functions, `row` is a row of scalar_operators.def (enum rvm_scalar_op). */

int32_t rvm_scalar_op_operand_count(int32_t row);
/* Fails with TYPE_ERROR if an operand has the wrong type, else with ARITHMETIC_ERROR because the operator has no value
   for these operands. */
rvm_status rvm_scalar_op_fail(int32_t row, rvm_value a, rvm_value b, rvm_value *error);

#endif
