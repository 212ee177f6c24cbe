/* prim.h: the C of prim_operators.def, shared by the interpreter and by generated C, so that both modes compute the same. */
#ifndef RELVM_PRIM_H
#define RELVM_PRIM_H

#include <math.h>

#include "relvm.h"

enum rvm_prim_operator {
#define PRIM_OPERATOR(name, function, operands, result, form, fails, meaning) RVM_PRIM_##name,
#include "prim_operators.def"
#undef PRIM_OPERATOR
  RVM_PRIM_COUNT
};

static inline int64_t rvm_wrapped(uint64_t bits) { return (int64_t)bits; }

static inline int64_t rvm_floordiv(int64_t a, int64_t b) {
  if (b == -1) return rvm_wrapped(0 - (uint64_t)a);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static inline int64_t rvm_mod(int64_t a, int64_t b) {
  if (b == -1) return 0;
  int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* As NumPy's divmod: the quotient rounded down, and in *rest what is left, of the sign of b. */
static inline double rvm_divmod(double a, double b, double *rest) {
  double mod = fmod(a, b);
  *rest = mod;
  if (b == 0) return a / b;
  double quotient = (a - mod) / b;
  if (mod == 0) {
    *rest = copysign(0, b);
  } else if ((b < 0) != (mod < 0)) {
    *rest = mod + b;
    quotient -= 1;
  }
  if (quotient == 0) return copysign(0, a / b);
  double rounded = floor(quotient);
  return quotient - rounded > 0.5 ? rounded + 1 : rounded;
}

static inline double rvm_floordiv_of_floats(double a, double b) {
  double rest;
  return rvm_divmod(a, b, &rest);
}

static inline double rvm_mod_of_floats(double a, double b) {
  double rest;
  rvm_divmod(a, b, &rest);
  return rest;
}

/* ---- rvm_prim_NAME_value: of operands that have one; a bool is 0 or 1 ---- */

#define RVM_PRIM_i int64_t
#define RVM_PRIM_f double
#define RVM_PRIM_b int64_t
#define RVM_PRIM_VALUE_2(name, type, result, expression) \
  static inline RVM_PRIM_##result rvm_prim_##name##_value(type a, type b) { return expression; }
#define RVM_PRIM_VALUE_1(name, type, result, expression) \
  static inline RVM_PRIM_##result rvm_prim_##name##_value(type a, type b) { return (void)b, expression; }

RVM_PRIM_VALUE_2(add_i64, int64_t, i, rvm_wrapped((uint64_t)a + (uint64_t)b))
RVM_PRIM_VALUE_2(sub_i64, int64_t, i, rvm_wrapped((uint64_t)a - (uint64_t)b))
RVM_PRIM_VALUE_2(mul_i64, int64_t, i, rvm_wrapped((uint64_t)a * (uint64_t)b))
RVM_PRIM_VALUE_2(div_i64, int64_t, f, (double)a / (double)b)
RVM_PRIM_VALUE_2(floordiv_i64, int64_t, i, rvm_floordiv(a, b))
RVM_PRIM_VALUE_2(mod_i64, int64_t, i, rvm_mod(a, b))
RVM_PRIM_VALUE_1(neg_i64, int64_t, i, rvm_wrapped(0 - (uint64_t)a))
RVM_PRIM_VALUE_2(min_i64, int64_t, i, a < b ? a : b)
RVM_PRIM_VALUE_2(max_i64, int64_t, i, a > b ? a : b)
RVM_PRIM_VALUE_2(and_i64, int64_t, i, a & b)
RVM_PRIM_VALUE_2(or_i64, int64_t, i, a | b)
RVM_PRIM_VALUE_2(xor_i64, int64_t, i, a ^ b)
RVM_PRIM_VALUE_1(not_i64, int64_t, i, ~a)
RVM_PRIM_VALUE_2(shl_i64, int64_t, i, rvm_wrapped((uint64_t)a << b))
RVM_PRIM_VALUE_2(shr_i64, int64_t, i, a < 0 ? ~(~a >> b) : a >> b)
RVM_PRIM_VALUE_2(eq_i64, int64_t, b, a == b)
RVM_PRIM_VALUE_2(ne_i64, int64_t, b, a != b)
RVM_PRIM_VALUE_2(lt_i64, int64_t, b, a < b)
RVM_PRIM_VALUE_2(le_i64, int64_t, b, a <= b)
RVM_PRIM_VALUE_2(gt_i64, int64_t, b, a > b)
RVM_PRIM_VALUE_2(ge_i64, int64_t, b, a >= b)
RVM_PRIM_VALUE_2(add_f64, double, f, a + b)
RVM_PRIM_VALUE_2(sub_f64, double, f, a - b)
RVM_PRIM_VALUE_2(mul_f64, double, f, a * b)
RVM_PRIM_VALUE_2(div_f64, double, f, a / b)
RVM_PRIM_VALUE_2(floordiv_f64, double, f, rvm_floordiv_of_floats(a, b))
RVM_PRIM_VALUE_2(mod_f64, double, f, rvm_mod_of_floats(a, b))
RVM_PRIM_VALUE_1(neg_f64, double, f, -a)
RVM_PRIM_VALUE_2(min_f64, double, f, a < b || a != a ? a : b)
RVM_PRIM_VALUE_2(max_f64, double, f, a > b || a != a ? a : b)
RVM_PRIM_VALUE_2(eq_f64, double, b, a == b)
RVM_PRIM_VALUE_2(ne_f64, double, b, a != b)
RVM_PRIM_VALUE_2(lt_f64, double, b, a < b)
RVM_PRIM_VALUE_2(le_f64, double, b, a <= b)
RVM_PRIM_VALUE_2(gt_f64, double, b, a > b)
RVM_PRIM_VALUE_2(ge_f64, double, b, a >= b)
RVM_PRIM_VALUE_2(and_bool, int64_t, b, a & b)
RVM_PRIM_VALUE_2(or_bool, int64_t, b, a | b)
RVM_PRIM_VALUE_2(xor_bool, int64_t, b, a ^ b)
RVM_PRIM_VALUE_1(not_bool, int64_t, b, !a)
RVM_PRIM_VALUE_2(eq_bool, int64_t, b, a == b)
RVM_PRIM_VALUE_2(ne_bool, int64_t, b, a != b)
RVM_PRIM_VALUE_1(i64_of_f64, double, i, (int64_t)a)
RVM_PRIM_VALUE_1(i64_of_bool, int64_t, i, a)
RVM_PRIM_VALUE_1(f64_of_i64, int64_t, f, (double)a)
RVM_PRIM_VALUE_1(f64_of_bool, int64_t, f, (double)a)
RVM_PRIM_VALUE_1(bool_of_i64, int64_t, b, a != 0)
RVM_PRIM_VALUE_1(bool_of_f64, double, b, a != 0)

#undef RVM_PRIM_VALUE_2
#undef RVM_PRIM_VALUE_1

/* Whether the row has a value for operands of its types: its column `fails` says when not. */
static inline int rvm_prim_has_value(enum rvm_prim_operator row, rvm_value a, rvm_value b) {
  switch (row) {
    case RVM_PRIM_floordiv_i64:
    case RVM_PRIM_mod_i64: return b.as.i != 0;
    case RVM_PRIM_shl_i64:
    case RVM_PRIM_shr_i64: return b.as.i >= 0 && b.as.i <= 63;
    case RVM_PRIM_i64_of_f64: return a.as.f >= -9223372036854775808.0 && a.as.f < 9223372036854775808.0;
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
#include "prim_operators.def"
#undef PRIM_OPERATOR

#endif
