/* scalar_ops_values.h: the scalar operators (scalar_operators.def) on plain C numbers, shared by the machine and
   ahead-of-time exports. */
#ifndef RELVM_SCALAR_OPS_VALUES_H
#define RELVM_SCALAR_OPS_VALUES_H

#include <math.h>
#include <stdint.h>

/* ---- rvm_scalar_op_NAME_has_value: whether an operator that is not defined for all operands has a value for these;
   otherwise, the column `fails` of scalar_operators.def has the error message ---- */
static inline int rvm_scalar_op_floordiv_i64_has_value(int64_t a, int64_t b) { return (void)a, b != 0; }
static inline int rvm_scalar_op_mod_i64_has_value(int64_t a, int64_t b) { return (void)a, b != 0; }
static inline int rvm_scalar_op_shl_i64_has_value(int64_t a, int64_t b) { return (void)a, b >= 0 && b <= 63; }
static inline int rvm_scalar_op_shr_i64_has_value(int64_t a, int64_t b) { return (void)a, b >= 0 && b <= 63; }
static inline int rvm_scalar_op_i64_of_f64_has_value(double a, double b) {
  return (void)b, a >= -9223372036854775808.0 && a < 9223372036854775808.0;
}

/* Return whether a + b, or a * b, overflows int64. */
static inline int rvm_size_add_overflows(int64_t a, int64_t b) { return b < 0 ? a < INT64_MIN - b : a > INT64_MAX - b; }
static inline int rvm_size_mul_overflows(int64_t a, int64_t b) {
  if (b == -1) return a == INT64_MIN;
  return b != 0 && (int64_t)((uint64_t)a * (uint64_t)b) / b != a;
}

/* Converts to int64 modulo 2^64. */
static inline int64_t rvm_wrapped(uint64_t bits) { return (int64_t)bits; }

/* Returns a / b, rounded toward minus infinity, modulo 2^64.  b must not be 0. */
static inline int64_t rvm_floordiv(int64_t a, int64_t b) {
  if (b == -1) return rvm_wrapped(0 - (uint64_t)a);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* Returns the remainder of rvm_floordiv(a, b), which has the sign of b.  b must not be 0. */
static inline int64_t rvm_mod(int64_t a, int64_t b) {
  if (b == -1) return 0;
  int64_t rem = a % b;
  return rem != 0 && (rem < 0) != (b < 0) ? rem + b : rem;
}

/* Returns a divided by b, rounded down, and stores the remainder, which has the sign of b, in *rem.  Gives the same
   results as NumPy's divmod. */
static inline double rvm_divmod(double a, double b, double *rem) {
  double mod = fmod(a, b);
  *rem = mod;
  if (b == 0) return a / b;
  double quotient = (a - mod) / b;
  if (mod == 0) {
    *rem = copysign(0, b);
  } else if ((b < 0) != (mod < 0)) {
    *rem = mod + b;
    quotient -= 1;
  }
  if (quotient == 0) return copysign(0, a / b);
  double rounded = floor(quotient);
  return quotient - rounded > 0.5 ? rounded + 1 : rounded;
}

static inline double rvm_floordiv_of_floats(double a, double b) {
  double rem;
  return rvm_divmod(a, b, &rem);
}

static inline double rvm_mod_of_floats(double a, double b) {
  double rem;
  rvm_divmod(a, b, &rem);
  return rem;
}

/* ---- rvm_scalar_op_NAME_value: the results of operators for operands that do not fail; a bool is 0 or 1 ---- */

#define RVM_SCALAR_OP_i int64_t
#define RVM_SCALAR_OP_f double
#define RVM_SCALAR_OP_b int64_t
#define RVM_SCALAR_OP_VALUE_2(name, type, result, expression) \
  static inline RVM_SCALAR_OP_##result rvm_scalar_op_##name##_value(type a, type b) { return expression; }
#define RVM_SCALAR_OP_VALUE_1(name, type, result, expression) \
  static inline RVM_SCALAR_OP_##result rvm_scalar_op_##name##_value(type a, type b) { return (void)b, expression; }

RVM_SCALAR_OP_VALUE_2(add_i64, int64_t, i, rvm_wrapped((uint64_t)a + (uint64_t)b))
RVM_SCALAR_OP_VALUE_2(sub_i64, int64_t, i, rvm_wrapped((uint64_t)a - (uint64_t)b))
RVM_SCALAR_OP_VALUE_2(mul_i64, int64_t, i, rvm_wrapped((uint64_t)a *(uint64_t)b))
RVM_SCALAR_OP_VALUE_2(div_i64, int64_t, f, (double)a / (double)b)
RVM_SCALAR_OP_VALUE_2(floordiv_i64, int64_t, i, rvm_floordiv(a, b))
RVM_SCALAR_OP_VALUE_2(mod_i64, int64_t, i, rvm_mod(a, b))
RVM_SCALAR_OP_VALUE_1(neg_i64, int64_t, i, rvm_wrapped(0 - (uint64_t)a))
RVM_SCALAR_OP_VALUE_2(min_i64, int64_t, i, a < b ? a : b)
RVM_SCALAR_OP_VALUE_2(max_i64, int64_t, i, a > b ? a : b)
RVM_SCALAR_OP_VALUE_2(and_i64, int64_t, i, a &b)
RVM_SCALAR_OP_VALUE_2(or_i64, int64_t, i, a | b)
RVM_SCALAR_OP_VALUE_2(xor_i64, int64_t, i, a ^ b)
RVM_SCALAR_OP_VALUE_1(not_i64, int64_t, i, ~a)
RVM_SCALAR_OP_VALUE_2(shl_i64, int64_t, i, rvm_wrapped((uint64_t)a << b))
RVM_SCALAR_OP_VALUE_2(shr_i64, int64_t, i, a < 0 ? ~(~a >> b) : a >> b)
RVM_SCALAR_OP_VALUE_2(eq_i64, int64_t, b, a == b)
RVM_SCALAR_OP_VALUE_2(ne_i64, int64_t, b, a != b)
RVM_SCALAR_OP_VALUE_2(lt_i64, int64_t, b, a < b)
RVM_SCALAR_OP_VALUE_2(le_i64, int64_t, b, a <= b)
RVM_SCALAR_OP_VALUE_2(gt_i64, int64_t, b, a > b)
RVM_SCALAR_OP_VALUE_2(ge_i64, int64_t, b, a >= b)
RVM_SCALAR_OP_VALUE_2(add_f64, double, f, a + b)
RVM_SCALAR_OP_VALUE_2(sub_f64, double, f, a - b)
RVM_SCALAR_OP_VALUE_2(mul_f64, double, f, a *b)
RVM_SCALAR_OP_VALUE_2(div_f64, double, f, a / b)
RVM_SCALAR_OP_VALUE_2(floordiv_f64, double, f, rvm_floordiv_of_floats(a, b))
RVM_SCALAR_OP_VALUE_2(mod_f64, double, f, rvm_mod_of_floats(a, b))
RVM_SCALAR_OP_VALUE_1(neg_f64, double, f, -a)
RVM_SCALAR_OP_VALUE_2(min_f64, double, f, a < b || a != a ? a : b)
RVM_SCALAR_OP_VALUE_2(max_f64, double, f, a > b || a != a ? a : b)
RVM_SCALAR_OP_VALUE_2(eq_f64, double, b, a == b)
RVM_SCALAR_OP_VALUE_2(ne_f64, double, b, a != b)
RVM_SCALAR_OP_VALUE_2(lt_f64, double, b, a < b)
RVM_SCALAR_OP_VALUE_2(le_f64, double, b, a <= b)
RVM_SCALAR_OP_VALUE_2(gt_f64, double, b, a > b)
RVM_SCALAR_OP_VALUE_2(ge_f64, double, b, a >= b)
RVM_SCALAR_OP_VALUE_2(and_bool, int64_t, b, a &b)
RVM_SCALAR_OP_VALUE_2(or_bool, int64_t, b, a | b)
RVM_SCALAR_OP_VALUE_2(xor_bool, int64_t, b, a ^ b)
RVM_SCALAR_OP_VALUE_1(not_bool, int64_t, b, !a)
RVM_SCALAR_OP_VALUE_2(eq_bool, int64_t, b, a == b)
RVM_SCALAR_OP_VALUE_2(ne_bool, int64_t, b, a != b)
RVM_SCALAR_OP_VALUE_1(i64_of_f64, double, i, (int64_t)a)
RVM_SCALAR_OP_VALUE_1(i64_of_bool, int64_t, i, a)
RVM_SCALAR_OP_VALUE_1(f64_of_i64, int64_t, f, (double)a)
RVM_SCALAR_OP_VALUE_1(f64_of_bool, int64_t, f, (double)a)
RVM_SCALAR_OP_VALUE_1(bool_of_i64, int64_t, b, a != 0)
RVM_SCALAR_OP_VALUE_1(bool_of_f64, double, b, a != 0)
RVM_SCALAR_OP_VALUE_1(f32_of_f64, double, f, (double)(float)a)
RVM_SCALAR_OP_VALUE_1(i32_of_i64, int64_t, i, (int64_t)(int32_t)(uint32_t)(uint64_t)a)

#undef RVM_SCALAR_OP_VALUE_2
#undef RVM_SCALAR_OP_VALUE_1

#endif
