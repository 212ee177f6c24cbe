/* scalar_ops.h: the C of scalar_operators.def, shared by the interpreter and by generated C, so that both modes compute the same. */
#ifndef RELVM_PRIM_H
#define RELVM_PRIM_H

#include "scalar_ops_values.h"
#include "relvm.h"

enum rvm_prim_operator {
#define PRIM_OPERATOR(name, function, operands, result, form, fails, meaning) RVM_PRIM_##name,
#include "scalar_operators.def"
#undef PRIM_OPERATOR
  RVM_PRIM_COUNT
};

/* Whether the row has a value for operands of its types. */
static inline int rvm_prim_has_value(enum rvm_prim_operator row, rvm_value a, rvm_value b) {
  switch (row) {
    case RVM_PRIM_floordiv_i64:
    case RVM_PRIM_mod_i64: return rvm_prim_divides(b.as.i);
    case RVM_PRIM_shl_i64:
    case RVM_PRIM_shr_i64: return rvm_prim_shifts(b.as.i);
    case RVM_PRIM_i64_of_f64: return rvm_prim_fits_i64(a.as.f);
    default: return 1;
  }
}

/* ---- rvm_prim_NAME: of any values; 1, or 0 where they are of other types or the row has no value for them.  A row of one
   operand does not look at b. ---- */

#define RVM_PRIM_ACCEPTS_ii (a.tag == RVM_TAG_INT && b.tag == RVM_TAG_INT)
#define RVM_PRIM_ACCEPTS_ff (a.tag == RVM_TAG_FLOAT && b.tag == RVM_TAG_FLOAT)
#define RVM_PRIM_ACCEPTS_bb (a.tag == RVM_TAG_BOOL && b.tag == RVM_TAG_BOOL)
#define RVM_PRIM_ACCEPTS_i (a.tag == RVM_TAG_INT)
#define RVM_PRIM_ACCEPTS_f (a.tag == RVM_TAG_FLOAT)
#define RVM_PRIM_ACCEPTS_b (a.tag == RVM_TAG_BOOL)
#define RVM_PRIM_FIELD_ii i
#define RVM_PRIM_FIELD_ff f
#define RVM_PRIM_FIELD_bb i
#define RVM_PRIM_FIELD_i i
#define RVM_PRIM_FIELD_f f
#define RVM_PRIM_FIELD_b i
#define RVM_PRIM_RESULT_i(value) ((rvm_value){.tag = RVM_TAG_INT, .as.i = value})
#define RVM_PRIM_RESULT_f(value) ((rvm_value){.tag = RVM_TAG_FLOAT, .as.f = value})
#define RVM_PRIM_RESULT_b(value) ((rvm_value){.tag = RVM_TAG_BOOL, .as.i = value})
#define RVM_PRIM_CALL(name, field) rvm_prim_##name##_value(a.as.field, b.as.field)
#define RVM_PRIM_EXPANDED(name, field) RVM_PRIM_CALL(name, field)

#define PRIM_OPERATOR(name, function, operands, out, form, fails, meaning)                                      \
  static inline int rvm_prim_##name(rvm_value a, rvm_value b, rvm_value *result) {                              \
    if (!RVM_PRIM_ACCEPTS_##operands || !rvm_prim_has_value(RVM_PRIM_##name, a, b)) return 0;                   \
    *result = RVM_PRIM_RESULT_##out(RVM_PRIM_EXPANDED(name, RVM_PRIM_FIELD_##operands));                        \
    return 1;                                                                                                   \
  }
#include "scalar_operators.def"
#undef PRIM_OPERATOR

/* ---- of the runtime only ---- */

int32_t rvm_prim_operand_count(int32_t row);
/* Says why a row has no value for these operands: TYPE_ERROR or ARITHMETIC_ERROR. */
rvm_status rvm_prim_fail(int32_t row, rvm_value a, rvm_value b, rvm_value *error);

#endif
