/* portable_math.h: the functions of <math.h> whose results depend on the C library, for float and double.

   The C libraries of systems and processors round these functions differently.  The functions below consist of
   additions, multiplications, divisions and square roots of double, in a fixed order and without fused multiply-add, so
   they give the same bits everywhere (docs/determinism.md).  Most have no branches or tables, so that compilers
   vectorize loops that use them.  Errors are at most 2.5 units in the last place for double (erfc: 5), and less than
   0.51 units for float.  Infinities, signed zeros, subnormal numbers and NaN give the results of C99.

   The polynomials are Chebyshev interpolations of the relative error.  The argument reductions are those of
   fdlibm (Sun Microsystems, 1993). */
#ifndef RELVM_PORTABLE_MATH_H
#define RELVM_PORTABLE_MATH_H

#include <math.h>
#include <stdint.h>

#include "compiler.h"
#include "float_bits.h"

/* The functions of double are inlined, so that loops of them have vectors, unless the code must be small. */
#ifdef RVM_COMPACT
#define RVM_PORTABLE static RVM_NOINLINE
#else
#define RVM_PORTABLE RVM_MATH
#endif

/* An unevaluated sum of two doubles. */
typedef struct rvm_two_f64 {
  double high, low;
} rvm_two_f64;

/* Returns a + b without rounding.  |a| >= |b|, or a is 0. */
RVM_MATH rvm_two_f64 rvm_quick_sum(double a, double b) {
  const double sum = a + b;
  return (rvm_two_f64){sum, b - (sum - a)};
}

/* Returns a + b without rounding. */
RVM_MATH rvm_two_f64 rvm_exact_sum(double a, double b) {
  const double sum = a + b, rest = sum - a;
  return (rvm_two_f64){sum, (a - (sum - rest)) + (b - rest)};
}

/* Returns x with the lower 27 bits of its mantissa cleared. */
RVM_MATH double rvm_upper_half(double x) { return rvm_f64_of_bits(rvm_bits_of_f64(x) & -(int64_t)0x8000000); }

/* Returns a * b with a relative error of at most 2^-104, unless the low part is subnormal.  The lower halves of a and b
   have 27 bits each, so only their product can be rounded. */
RVM_MATH rvm_two_f64 rvm_precise_product(double a, double b) {
  const double product = a * b, a_high = rvm_upper_half(a), b_high = rvm_upper_half(b);
  const double a_low = a - a_high, b_low = b - b_high;
  return (rvm_two_f64){product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)};
}

/* Returns a number with the absolute value of the first argument and the sign of the second. */
RVM_MATH double rvm_with_sign_f64(double magnitude, double sign) {
  return rvm_f64_of_bits((rvm_bits_of_f64(magnitude) & INT64_MAX) | (rvm_bits_of_f64(sign) & INT64_MIN));
}

/* Returns 2^n for n from -1022 to 1023. */
RVM_MATH double rvm_power_of_2(int32_t n) { return rvm_f64_of_bits((int64_t)(1023 + n) << 52); }

/* ---- exponential functions ---- */

/* The parts of x = n ln 2 + r, where r = high - low, and |r| is at most about ln 2 / 2.  power: exp(r) - 1 - r. */
typedef struct rvm_exp_parts {
  double high, low, power;
  int32_t n;
} rvm_exp_parts;

/* Returns the parts of x + tail.  |x| must be below 2000. */
RVM_MATH rvm_exp_parts rvm_divide_by_ln2(double x, double tail) {
  const double shift = 0x1.8p52, shifted = x * 0x1.71547652b82fep+0 + shift, n = shifted - shift;
  const double high = x - n * 0x1.62e42fee00000p-1, low = n * 0x1.a39ef35793c76p-33 - tail, r = high - low;
  double p = 0x1.1f730349868cep-29;
  p = p * r + 0x1.af4de97ca4194p-26;
  p = p * r + 0x1.27e4db646b17ep-22;
  p = p * r + 0x1.71de0231960ebp-19;
  p = p * r + 0x1.a01a01a6d889cp-16;
  p = p * r + 0x1.a01a01abe7fe1p-13;
  p = p * r + 0x1.6c16c16c162d4p-10;
  p = p * r + 0x1.11111111100dcp-7;
  p = p * r + 0x1.5555555555556p-5;
  p = p * r + 0x1.5555555555557p-3;
  p = p * r + 0x1.0000000000000p-1;
  return (rvm_exp_parts){high, low, r * r * p, (int32_t)rvm_bits_of_f64(shifted)};
}

/* Returns x limited to [-800, 800].  This does not change exp(x), which is 0 or infinite outside of the range. */
RVM_MATH double rvm_limit_exponent(double x) {
  const double low = x < -800.0 ? -800.0 : x;
  return low > 800.0 ? 800.0 : low;
}

/* Returns exp(x + tail) * 2^scale. */
RVM_MATH double rvm_scaled_exp(double x, double tail, int32_t scale) {
  const rvm_exp_parts e = rvm_divide_by_ln2(rvm_limit_exponent(x), tail);
  const double result = 1.0 + (e.high - (e.low - e.power));
  const int32_t power = e.n + scale, half = power >> 1; /* two factors, so that a subnormal result is rounded once */
  return result * rvm_power_of_2(half) * rvm_power_of_2(power - half);
}

RVM_PORTABLE double rvm_exp_f64(double x) { return rvm_scaled_exp(x, 0.0, 0); }

/* Returns exp(x), or 0 if x < -708.3.  No result is subnormal. */
RVM_PORTABLE double rvm_exp_ftz_f64(double x) { return x < -708.3 ? 0.0 : rvm_exp_f64(x); }

/* exp(x) - 1 = (2^n - 1) + 2^n (exp(r) - 1). */
RVM_PORTABLE double rvm_expm1_f64(double x) {
  const double upper = x > 710.0 ? 710.0 : x, limited = upper < -50.0 ? -50.0 : upper;
  const rvm_exp_parts e = rvm_divide_by_ln2(limited, 0.0);
  const int32_t half = e.n >> 1;
  const double first = rvm_power_of_2(half), second = rvm_power_of_2(e.n - half);
  const double unit = second > 0x1p511 ? 0.0 : 1.0; /* 2^n may be 2^1024: add 1 only where it matters */
  const double rest = e.power - e.low;
  /* (2^n - 1) + 2^n * e.high is summed without rounding, and the small parts are added last. */
  const rvm_two_f64 sum = rvm_exact_sum(1.0 - unit / first / second, e.high);
  const double result = (sum.high + (sum.low + rest)) * first * second;
  return x == 0.0 ? x : result;
}

RVM_PORTABLE double rvm_cosh_f64(double x) {
  const double half = rvm_scaled_exp(fabs(x), 0.0, -1); /* exp |x| / 2 */
  return half + 0.25 / half;
}

RVM_PORTABLE double rvm_sinh_f64(double x) {
  const double magnitude = fabs(x), half = rvm_scaled_exp(magnitude, 0.0, -1);
  const double t = rvm_expm1_f64(magnitude < 1.0 ? magnitude : 1.0);
  const double small = 0.5 * (t + t / (t + 1.0)), large = half - 0.25 / half;
  const double result = magnitude < 1.0 ? small : large;
  return magnitude < 0x1p-28 ? x : rvm_with_sign_f64(result, x);
}

RVM_PORTABLE double rvm_tanh_f64(double x) {
  const double magnitude = fabs(x), limited = magnitude > 22.0 ? 22.0 : magnitude, t = rvm_expm1_f64(2.0 * limited);
  const double near = t / (t + 2.0), far = 1.0 - 2.0 / (t + 2.0);
  const double result = magnitude > 0.55 ? far : near;
  return magnitude < 0x1p-28 ? x : rvm_with_sign_f64(magnitude > 22.0 ? 1.0 : result, x);
}

/* ---- logarithms ---- */

/* The parts of x = 2^n (1 + f), where 1 + f is between sqrt(1/2) and sqrt(2). */
typedef struct rvm_log_parts {
  double f, n;
} rvm_log_parts;

/* Returns the parts of x.  They have this meaning only if x is positive and finite; for other x, callers replace the
   result (rvm_log_ends_f64). */
RVM_MATH rvm_log_parts rvm_split_logarithm(double x) {
  const int is_subnormal = x < 0x1p-1022;
  const double scaled = is_subnormal ? x * 0x1p54 : x;
  const int64_t root_half = 0x3fe6a09e667f3bcd, bits = rvm_bits_of_f64(scaled) - root_half;
  /* converts the exponent to a double by adding it to the bits of 1.5 * 2^52, whose last bit has the value 1 */
  const double shift = 0x1.8p52;
  const double n = rvm_f64_of_bits(rvm_bits_of_f64(shift) + (int64_t)(int32_t)((uint64_t)bits >> 32 >> 20)) - shift;
  const double signed_n = n > 2047.0 ? n - 4096.0 : n;
  const double f = rvm_f64_of_bits((bits & 0x000fffffffffffff) + root_half) - 1.0;
  return (rvm_log_parts){f, is_subnormal ? signed_n - 54.0 : signed_n};
}

/* Returns n ln 2 + log(1 + f) + tail.  log(1 + f) = 2 atanh(s), where s = f / (2 + f). */
RVM_MATH double rvm_log_near_1_f64(double f, double n, double tail) {
  const double s = f / (2.0 + f), z = s * s, half_square = 0.5 * f * f;
  double q = 0x1.0c04595972ab8p-3;
  q = q * z + 0x1.0fbe83c2cbcf3p-3;
  q = q * z + 0x1.3b1c360763b8ap-3;
  q = q * z + 0x1.745cf901605f7p-3;
  q = q * z + 0x1.c71c720160b47p-3;
  q = q * z + 0x1.2492492476c87p-2;
  q = q * z + 0x1.9999999999a38p-2;
  q = q * z + 0x1.5555555555555p-1;
  const double r = z * q;
  return n * 0x1.62e42fee00000p-1 - ((half_square - (s * (half_square + r) + (n * 0x1.a39ef35793c76p-33 + tail))) - f);
}

/* Returns `log`, the logarithm of x, unless x is a special value.  `pole` is the x at which it is -infinity. */
RVM_MATH double rvm_log_ends_f64(double log, double x, double pole) {
  log = x > 0x1.fffffffffffffp1023 ? x : log;
  log = x == pole ? -INFINITY : log;
  return x >= pole ? log : (double)NAN;
}

RVM_PORTABLE double rvm_log_f64(double x) {
  const rvm_log_parts parts = rvm_split_logarithm(x);
  return rvm_log_ends_f64(rvm_log_near_1_f64(parts.f, parts.n, 0.0), x, 0.0);
}

/* log(1 + x) = log(s) + c / s, where s is 1 + x rounded, and c is the rounding error. */
RVM_PORTABLE double rvm_log1p_f64(double x) {
  const double sum = 1.0 + x, error = x < 1.0 ? x - (sum - 1.0) : 1.0 - (sum - x);
  const rvm_log_parts parts = rvm_split_logarithm(sum);
  const int is_near = x > -0.29 && x < 0.41;
  const double log = rvm_log_near_1_f64(is_near ? x : parts.f, is_near ? 0.0 : parts.n, is_near ? 0.0 : error / sum);
  return x == 0.0 ? x : rvm_log_ends_f64(log, x, -1.0);
}

RVM_PORTABLE double rvm_asinh_f64(double x) {
  const double magnitude = fabs(x), square = x * x;
  const double near = rvm_log1p_f64(magnitude + square / (1.0 + sqrt(1.0 + square)));
  const double far = rvm_log_f64(magnitude) + 0x1.62e42fefa39efp-1;
  const double result = magnitude > 0x1p28 ? far : near;
  return magnitude < 0x1p-28 ? x : rvm_with_sign_f64(result, x);
}

RVM_PORTABLE double rvm_acosh_f64(double x) {
  const double t = x - 1.0, near = rvm_log1p_f64(t + sqrt(2.0 * t + t * t));
  const double far = rvm_log_f64(x) + 0x1.62e42fefa39efp-1;
  return x > 0x1p28 ? far : x >= 1.0 ? near : (double)NAN;
}

RVM_PORTABLE double rvm_atanh_f64(double x) {
  const double magnitude = fabs(x), twice = 2.0 * magnitude, rest = 1.0 - magnitude;
  const double argument = magnitude < 0.5 ? twice + twice * magnitude / rest : twice / rest;
  const double result = 0.5 * rvm_log1p_f64(argument);
  return magnitude < 0x1p-28 ? x : magnitude > 1.0 ? (double)NAN : rvm_with_sign_f64(result, x);
}

/* ---- powers and roots ---- */

/* Returns x^y, given `power`, which is |x|^y.  Adds the sign of an odd power, returns NaN if x is negative and y is not
   an integer, and replaces the result if |x| is 1 or if x or y is zero, infinite or NaN. */
RVM_MATH double rvm_pow_ends(double x, double y, double power) {
  const double magnitude = fabs(x), half = 0.5 * y, largest = 0x1.fffffffffffffp1023;
  const int is_integer = rint(y) == y, is_odd = is_integer && rint(half) != half;
  /* is_limit: whether |x|^y is 0 or infinite because x is 0 or infinite, or y is infinite.  is_infinite: whether it is
     then infinite. */
  const int is_limit = magnitude == 0.0 || magnitude > largest || fabs(y) > largest;
  const int is_infinite = (magnitude > 1.0) == (y > 0.0);
  double result = is_limit ? (is_infinite ? INFINITY : 0.0) : power;
  result = magnitude == 1.0 ? 1.0 : result;
  result = x < 0.0 && magnitude <= largest && !is_integer ? (double)NAN : result;
  result = is_odd ? rvm_with_sign_f64(result, x) : result;
  result = x != x || y != y ? x + y : result;
  return x == 1.0 || y == 0.0 ? 1.0 : result;
}

/* Returns log(x) with about 65 bits, for a positive and finite x.  log(x) = n ln 2 + log(1 + f), and log(1 + f) = 2
   atanh(s) = 2 s + 2/3 s^3 + ..., where s = f / (2 + f). */
RVM_MATH rvm_two_f64 rvm_precise_log(double x) {
  const rvm_log_parts parts = rvm_split_logarithm(x);
  const double f = parts.f, n = parts.n;
  const rvm_two_f64 sum = rvm_quick_sum(2.0, f);
  const double s = f / sum.high;
  const rvm_two_f64 back = rvm_precise_product(s, sum.high);
  const double s_low = ((f - back.high) - back.low - s * sum.low) / sum.high;
  const rvm_two_f64 square = rvm_precise_product(s, s);
  const double z = square.high, z_low = square.low + 2.0 * s * s_low;
  const rvm_two_f64 cube = rvm_precise_product(s, z);
  const double cube_low = cube.low + s * z_low + s_low * z;
  const rvm_two_f64 term = rvm_precise_product(cube.high, 0x1.5555555555555p-1); /* 2/3 s^3; 2/3 in two parts */
  const double term_low = term.low + cube.high * 0x1.5555555555555p-55 + cube_low * 0x1.5555555555555p-1;
  double q = 0x1.e02e6fff27908p-4;
  q = q * z + 0x1.df7cc8e5fa539p-4;
  q = q * z + 0x1.1118c7e4b0917p-3;
  q = q * z + 0x1.3b1395d2190c1p-3;
  q = q * z + 0x1.745d177a96056p-3;
  q = q * z + 0x1.c71c71c6eaa10p-3;
  q = q * z + 0x1.2492492492521p-2;
  q = q * z + 0x1.999999999999ap-2;
  const double rest = cube.high * z * q;
  const rvm_two_f64 first = rvm_exact_sum(n * 0x1.62e42fee00000p-1, 2.0 * s);
  const rvm_two_f64 second = rvm_exact_sum(first.high, term.high);
  const double low = first.low + (second.low + (rest + (term_low + (2.0 * s_low + n * 0x1.a39ef35793c76p-33))));
  return rvm_quick_sum(second.high, low);
}

RVM_PORTABLE double rvm_pow_f64(double x, double y) {
  const double magnitude = fabs(x), limited = fabs(y) > 0x1p70 ? rvm_with_sign_f64(0x1p70, y) : y;
  const double base = magnitude > 0.0 && magnitude <= 0x1.fffffffffffffp1023 ? magnitude : 1.0;
  const rvm_two_f64 log = rvm_precise_log(base);
  const rvm_two_f64 product = rvm_precise_product(limited, log.high);
  const double tail = product.low + limited * log.low;
  const int is_huge = fabs(product.high) > 800.0;
  return rvm_pow_ends(x, y, rvm_scaled_exp(product.high, is_huge ? 0.0 : tail, 0));
}

/* The first guess divides the exponent by 3.  Two steps of Halley's method follow.  A third step starts from the result
   rounded to 26 bits, whose square is exact. */
RVM_PORTABLE double rvm_cbrt_f64(double x) {
  const double magnitude = fabs(x);
  const int is_small = magnitude < 0x1p-1022, is_large = magnitude > 0x1p1000;
  const double scaled = magnitude * (is_small ? 0x1p54 : is_large ? 0x1p-54 : 1.0);
  const uint32_t high = (uint32_t)((uint64_t)rvm_bits_of_f64(scaled) >> 32);
  double t = rvm_f64_of_bits((int64_t)((uint64_t)(high / 3 + 715094163u) << 32));
  for (int i = 0; i < 2; i++) {
    const double cube = t * t * t;
    t = t * ((cube + 2.0 * scaled) / (2.0 * cube + scaled));
  }
  t = rvm_upper_half(t);
  const double r = scaled / (t * t);
  t = t + t * ((r - t) / (t + t + r));
  t = t * (is_small ? 0x1p-18 : is_large ? 0x1p18 : 1.0);
  return x == 0.0 || !(magnitude <= 0x1.fffffffffffffp1023) ? x + x : rvm_with_sign_f64(t, x);
}

/* ---- inverse trigonometric functions ---- */

/* atan(x) = atan(c) + atan((x - c) / (1 + c x)) for a constant c near x.  c is 0, 0.5, 1, 1.5 or infinity, and its atan
   is high + low.  top / base is the argument of the second atan. */
RVM_PORTABLE double rvm_atan_f64(double x) {
  const double m = fabs(x);
  double top = m, base = 1.0, high = 0.0, low = 0.0;
  top = m >= 0.4375 ? 2.0 * m - 1.0 : top, base = m >= 0.4375 ? 2.0 + m : base;
  high = m >= 0.4375 ? 0x1.dac670561bb4fp-2 : high, low = m >= 0.4375 ? 0x1.a2b7f222f65e2p-56 : low;
  top = m >= 0.6875 ? m - 1.0 : top, base = m >= 0.6875 ? m + 1.0 : base;
  high = m >= 0.6875 ? 0x1.921fb54442d18p-1 : high, low = m >= 0.6875 ? 0x1.1a62633145c07p-55 : low;
  top = m >= 1.1875 ? m - 1.5 : top, base = m >= 1.1875 ? 1.0 + 1.5 * m : base;
  high = m >= 1.1875 ? 0x1.f730bd281f69bp-1 : high, low = m >= 1.1875 ? 0x1.007887af0cbbdp-56 : low;
  top = m >= 2.4375 ? -1.0 : top, base = m >= 2.4375 ? m : base;
  high = m >= 2.4375 ? 0x1.921fb54442d18p+0 : high, low = m >= 2.4375 ? 0x1.1a62633145c07p-54 : low;
  const double t = top / base, z = t * t;
  double p = -0x1.e40ade8e6b30dp-7;
  p = p * z + 0x1.0f5fd11677ccbp-5;
  p = p * z + -0x1.70003d828e51ep-5;
  p = p * z + 0x1.ab5964d962e7bp-5;
  p = p * z + -0x1.e17074088e2d1p-5;
  p = p * z + 0x1.110c9c528646fp-4;
  p = p * z + -0x1.3b1375c51724bp-4;
  p = p * z + 0x1.745d154c29613p-4;
  p = p * z + -0x1.c71c71bd297ddp-4;
  p = p * z + 0x1.24924924854d3p-3;
  p = p * z + -0x1.99999999998c5p-3;
  p = p * z + 0x1.5555555555555p-2;
  const double result = high - ((t * (z * p) - low) - t);
  return m < 0x1p-28 ? x : rvm_with_sign_f64(result, x);
}

RVM_PORTABLE double rvm_atan2_f64(double y, double x) {
  const double top = fabs(y), base = fabs(x);
  /* not NaN if both are 0 or both are infinite */
  const double quotient = top == base ? (top == 0.0 ? 0.0 : 1.0) : top / base;
  const double angle = rvm_atan_f64(quotient);
  const double left = 2.0 * 0x1.921fb54442d18p+0 - (angle - 2.0 * 0x1.1a62633145c07p-54);
  const double result = rvm_bits_of_f64(x) < 0 ? left : angle;
  return x != x || y != y ? x + y : rvm_with_sign_f64(result, y);
}

/* Returns (asin(x) - x) / x for z = x * x, at most 1/4. */
RVM_MATH double rvm_asin_rest(double z) {
  double p = 0x1.e58a4f278e007p-6;
  p = p * z + -0x1.3bd7e353ddbc2p-6;
  p = p * z + 0x1.40c91fa8deb7ep-6;
  p = p * z + 0x1.8dcdf11997e0fp-9;
  p = p * z + 0x1.31777489dfd29p-7;
  p = p * z + 0x1.3b462d121c5d2p-7;
  p = p * z + 0x1.7b02ef007d23ep-7;
  p = p * z + 0x1.c990a42b32b03p-7;
  p = p * z + 0x1.1c4efd20ebb99p-6;
  p = p * z + 0x1.6e8ba121b9d5fp-6;
  p = p * z + 0x1.f1c71c7a5e151p-6;
  p = p * z + 0x1.6db6db6dac0eap-5;
  p = p * z + 0x1.3333333333389p-4;
  p = p * z + 0x1.5555555555555p-3;
  return z * p;
}

/* For x >= 1/2, asin(x) = pi / 2 - 2 asin(s) with s = sqrt((1 - x) / 2).  s is high + low, and asin(s) is s + rest. */
typedef struct rvm_asin_parts {
  double high, low, rest; /* rest: asin(s) - s */
} rvm_asin_parts;

RVM_MATH rvm_asin_parts rvm_asin_of_complement(double x) {
  const double z = 0.5 * (1.0 - x), s = sqrt(z), high = rvm_upper_half(s);
  const double sum = s + high, low = (z - high * high) / (sum > 0.0 ? sum : 1.0);
  return (rvm_asin_parts){high, low, s * rvm_asin_rest(z)};
}

RVM_PORTABLE double rvm_asin_f64(double x) {
  const double magnitude = fabs(x), small = magnitude + magnitude * rvm_asin_rest(x * x);
  const rvm_asin_parts s = rvm_asin_of_complement(magnitude);
  const double high = 0.5 * 0x1.921fb54442d18p+0 - 2.0 * s.high;
  const double large = 0.5 * 0x1.921fb54442d18p+0 - ((2.0 * s.rest - (0x1.1a62633145c07p-54 - 2.0 * s.low)) - high);
  const double result = magnitude < 0.5 ? small : large;
  return magnitude < 0x1p-28 ? x : magnitude <= 1.0 ? rvm_with_sign_f64(result, x) : (double)NAN;
}

RVM_PORTABLE double rvm_acos_f64(double x) {
  const double magnitude = fabs(x),
               middle = 0x1.921fb54442d18p+0 - (x - (0x1.1a62633145c07p-54 - x * rvm_asin_rest(x * x)));
  const rvm_asin_parts s = rvm_asin_of_complement(magnitude);
  const double right = 2.0 * (s.high + (s.rest + s.low));
  const double left = 2.0 * (0x1.921fb54442d18p+0 - (s.high + (s.rest + s.low - 0x1.1a62633145c07p-54)));
  const double result = magnitude < 0.5 ? middle : x > 0.0 ? right : left;
  return magnitude <= 1.0 ? result : (double)NAN;
}

/* ---- trigonometric functions ---- */

/* The parts of an angle x = n pi / 2 + high + low, where |high| is at most about pi / 4.  Only n modulo 4 is
   defined. */
typedef struct rvm_angle {
  double high, low;
  int32_t n;
} rvm_angle;

/* Reduces an angle of at least 2^20: multiplies the integer m = x / 2^e by the bits of 2 / pi whose products with 2^e
   are below 4.  Source: Payne and Hanek, Radian reduction for trigonometric functions, 1983. */
static RVM_NOINLINE rvm_angle rvm_reduce_large_angle(double x) {
  static const uint32_t bits_of_2_over_pi[] = {
      0x00000000, 0x00000000, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab,
      0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5, 0x2ebb4484,
      0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f, 0xef2f118b,
      0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea,
      0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab, 0xf0cfbc20};
  const int64_t bits = rvm_bits_of_f64(x);
  const int32_t e = (int32_t)(bits >> 52 & 0x7ff) - 1075, first = e + 62, word = first >> 5, offset = first & 31;
  const uint64_t mantissa = ((uint64_t)bits & 0x000fffffffffffff) | 0x0010000000000000;
  const uint64_t m[2] = {mantissa & UINT32_MAX, mantissa >> 32};
  /* `a` and `product` are integers of 192 bits, whose last word has the lowest bits.  `a` has the bits of the table
     from bit `first` on. */
  uint32_t a[6], product[6] = {0};
  for (int i = 0; i < 6; i++) {
    const uint64_t two = (uint64_t)bits_of_2_over_pi[word + i] << 32 | bits_of_2_over_pi[word + i + 1];
    a[i] = (uint32_t)(two >> (32 - offset));
  }
  /* product = m * a, modulo 2^192 */
  for (int j = 0; j < 2; j++) {
    uint64_t carry = 0;
    for (int i = 5; i - j >= 0; i--) {
      carry += m[j] * a[i] + product[i - j];
      product[i - j] = (uint32_t)carry;
      carry >>= 32;
    }
  }
  /* The two highest bits of the product are the number of quarter turns, and the others the fraction of a quarter. */
  int32_t n = (int32_t)(product[0] >> 30);
  product[0] &= 0x3fffffff;
  /* If the fraction f is at least 1/2, n is rounded up.  The rest is then f - 1, and `product` its absolute value. */
  const int is_negative = product[0] >> 29;
  if (is_negative) {
    uint64_t carry = 1;
    n++;
    for (int i = 5; i >= 0; i--) {
      carry += (uint32_t)~product[i];
      product[i] = (uint32_t)carry;
      carry >>= 32;
    }
    product[0] &= 0x3fffffff;
  }
  rvm_two_f64 turns = {0.0, 0.0}; /* in quarters */
  double unit = 0x1p-30;
  for (int i = 0; i < 6; i++, unit *= 0x1p-32) {
    const rvm_two_f64 sum = rvm_exact_sum(turns.high, (double)product[i] * unit);
    turns = (rvm_two_f64){sum.high, turns.low + sum.low};
  }
  const double sign = (bits < 0) != is_negative ? -1.0 : 1.0;
  const rvm_two_f64 quarter = rvm_precise_product(turns.high, 0x1.921fb54442d18p+0);
  const rvm_two_f64 angle = rvm_quick_sum(
      quarter.high, quarter.low + (turns.high * 0x1.1a62633145c07p-54 + turns.low * 0x1.921fb54442d18p+0));
  return (rvm_angle){sign * angle.high, sign * angle.low, bits < 0 ? -n : n};
}

RVM_MATH rvm_angle rvm_reduce_angle(double x) {
  if (!(fabs(x) < 0x1p20)) return fabs(x) < INFINITY ? rvm_reduce_large_angle(x) : (rvm_angle){NAN, NAN, 0};
  const double shift = 0x1.8p52, shifted = x * 0x1.45f306dc9c883p-1 + shift, n = shifted - shift;
  const double w = x - n * 0x1.921fb54400000p+0, t = n * 0x1.0b4611a600000p-34, r = w - t,
               error = (w - r) - t; /* both products are exact */
  const double tail = n * 0x1.3198a2e037073p-69 - error, high = r - tail;
  return (rvm_angle){high, (r - high) - tail, (int32_t)rvm_bits_of_f64(shifted)};
}

RVM_MATH double rvm_sine_of_angle(rvm_angle x) {
  const double z = x.high * x.high;
  double p = -0x1.ab17a79237a19p-41;
  p = p * z + 0x1.61217ec01749dp-33;
  p = p * z + -0x1.ae64541266378p-26;
  p = p * z + 0x1.71de3a54605eep-19;
  p = p * z + -0x1.a01a01a019936p-13;
  p = p * z + 0x1.1111111111110p-7;
  p = p * z + -0x1.5555555555555p-3;
  return x.high + (x.high * z * p + x.low * (1.0 - 0.5 * z));
}

RVM_MATH double rvm_cosine_of_angle(rvm_angle x) {
  const double z = x.high * x.high, half = 0.5 * z, first = 1.0 - half;
  double q = 0x1.ab783376962cfp-45;
  q = q * z + -0x1.9394b9c9c20a4p-37;
  q = q * z + 0x1.1eed8deb6d561p-29;
  q = q * z + -0x1.27e4fb7712bdfp-22;
  q = q * z + 0x1.a01a01a019d0ap-16;
  q = q * z + -0x1.6c16c16c16c16p-10;
  q = q * z + 0x1.5555555555555p-5;
  return first + (((1.0 - first) - half) + (z * z * q - x.high * x.low));
}

RVM_PORTABLE double rvm_sin_f64(double x) {
  const rvm_angle angle = rvm_reduce_angle(x);
  const double result = angle.n & 1 ? rvm_cosine_of_angle(angle) : rvm_sine_of_angle(angle);
  return fabs(x) < 0x1p-28 ? x : angle.n & 2 ? -result : result;
}

RVM_PORTABLE double rvm_cos_f64(double x) {
  const rvm_angle angle = rvm_reduce_angle(x);
  const double result = angle.n & 1 ? rvm_sine_of_angle(angle) : rvm_cosine_of_angle(angle);
  return (angle.n + 1) & 2 ? -result : result;
}

RVM_PORTABLE double rvm_tan_f64(double x) {
  const rvm_angle angle = rvm_reduce_angle(x);
  const double sine = rvm_sine_of_angle(angle), cosine = rvm_cosine_of_angle(angle);
  return fabs(x) < 0x1p-28 ? x : angle.n & 1 ? -cosine / sine : sine / cosine;
}

/* ---- the error function ---- */

/* Returns erfc(x) for x >= 0 as t exp(-x^2) g, where t = 2 / (2 + x) and g is a polynomial in t - 1/2. */
RVM_MATH double rvm_erfc_of_positive(double x) {
  const double limited = x > 40.0 ? 40.0 : x, t = 2.0 / (2.0 + limited), u = t - 0.5;
  double g = -0x1.b658f2b133d9fp-5;
  g = g * u + 0x1.4c940577798b3p-4;
  g = g * u + 0x1.c0c1fe2a41932p-5;
  g = g * u + -0x1.4fe4b67331dadp-3;
  g = g * u + 0x1.61331ac135810p-5;
  g = g * u + 0x1.f47ad791b22d9p-4;
  g = g * u + -0x1.dc70a7b543a47p-4;
  g = g * u + -0x1.fc6a48af3e55ep-10;
  g = g * u + 0x1.5ce648a6ae517p-4;
  g = g * u + -0x1.326da2349c7b5p-4;
  g = g * u + -0x1.3dee21c681d0cp-13;
  g = g * u + 0x1.0ca649ec16281p-4;
  g = g * u + -0x1.e90ba55a65ce3p-5;
  g = g * u + -0x1.2e208bd2720f7p-7;
  g = g * u + 0x1.0e768a893b8edp-4;
  g = g * u + -0x1.6c00489fcd6f6p-5;
  g = g * u + -0x1.1e7624dd0c0d3p-5;
  g = g * u + 0x1.2efa1f544f6b1p-4;
  g = g * u + -0x1.20541bb69f9b2p-7;
  g = g * u + -0x1.5ba437dd82109p-4;
  g = g * u + 0x1.b6fbf9a9467dep-5;
  g = g * u + 0x1.9517bb6df83c3p-4;
  g = g * u + -0x1.a89eaff883376p-4;
  g = g * u + -0x1.606e41552623ap-3;
  g = g * u + 0x1.2a88e6107d634p-3;
  g = g * u + 0x1.1e2deea6b1164p-1;
  g = g * u + 0x1.5fd386754eff9p-1;
  g = g * u + 0x1.058671b52c776p-1;
  const rvm_two_f64 square = rvm_precise_product(limited, limited);
  return rvm_scaled_exp(-square.high, -square.low, 0) * (t * g);
}

/* Returns erf(x) for |x| up to 0.85. */
RVM_MATH double rvm_erf_of_small(double x) {
  const double z = x * x;
  double p = -0x1.e5cf004e4727fp-31;
  p = p * z + 0x1.e78b9106ed917p-27;
  p = p * z + -0x1.5e0cc9acbf46cp-23;
  p = p * z + 0x1.b9c846a586343p-20;
  p = p * z + -0x1.f4d0a38fd2327p-17;
  p = p * z + 0x1.f9a316553b846p-14;
  p = p * z + -0x1.c02db3961ad42p-11;
  p = p * z + 0x1.565bcd0cbc822p-8;
  p = p * z + -0x1.b82ce31280ad2p-6;
  p = p * z + 0x1.ce2f21a042aa4p-4;
  p = p * z + -0x1.812746b0379e6p-2;
  p = p * z + 0x1.06eba8214db69p-3;
  return x + x * p;
}

RVM_PORTABLE double rvm_erf_f64(double x) {
  const double magnitude = fabs(x), far = 1.0 - rvm_erfc_of_positive(magnitude);
  return magnitude < 0.85 ? rvm_erf_of_small(x) : rvm_with_sign_f64(far, x);
}

RVM_PORTABLE double rvm_erfc_f64(double x) {
  const double magnitude = fabs(x), far = rvm_erfc_of_positive(magnitude);
  const double large = x < 0.0 ? 2.0 - far : far;
  return magnitude < 0.25 ? 1.0 - rvm_erf_of_small(x) : large;
}

/* ---- the functions of float ---- */

#define RVM_FLOAT_BY_DOUBLE(name) \
  RVM_MATH float rvm_##name##_f32(float x) { return (float)rvm_##name##_f64((double)x); }
RVM_FLOAT_BY_DOUBLE(acos)
RVM_FLOAT_BY_DOUBLE(acosh)
RVM_FLOAT_BY_DOUBLE(asin)
RVM_FLOAT_BY_DOUBLE(asinh)
RVM_FLOAT_BY_DOUBLE(atan)
RVM_FLOAT_BY_DOUBLE(atanh)
RVM_FLOAT_BY_DOUBLE(cbrt)
RVM_FLOAT_BY_DOUBLE(cosh)
RVM_FLOAT_BY_DOUBLE(erfc)
RVM_FLOAT_BY_DOUBLE(expm1)
RVM_FLOAT_BY_DOUBLE(sinh)
RVM_FLOAT_BY_DOUBLE(tan)
#undef RVM_FLOAT_BY_DOUBLE

RVM_MATH float rvm_atan2_f32(float y, float x) { return (float)rvm_atan2_f64((double)y, (double)x); }

/* exp(y log |x|) with shorter polynomials than those of double. */
RVM_MATH float rvm_pow_f32(float x, float y) {
  const double base = (double)x, magnitude = fabs(base), exponent = (double)y;
  const rvm_log_parts parts = rvm_split_logarithm(magnitude > 0.0 && magnitude < INFINITY ? magnitude : 1.0);
  const double s = parts.f / (2.0 + parts.f), z = s * s;
  double q = 0x1.ddcf7101b6371p-3;
  q = q * z + 0x1.245c40aecb50cp-2;
  q = q * z + 0x1.9999eb63e783dp-2;
  q = q * z + 0x1.5555554bb1b2fp-1;
  const double product = rvm_limit_exponent(exponent * (parts.n * 0x1.62e42fefa39efp-1 + (2.0 * s + s * z * q)));
  const double shift = 0x1.8p52, shifted = product * 0x1.71547652b82fep+0 + shift, n = shifted - shift;
  const double r = product - n * 0x1.62e42fefa39efp-1;
  double p = 0x1.a1132015ba37ep-16;
  p = p * r + 0x1.a15179d80ae96p-13;
  p = p * r + 0x1.6c16858b7acb9p-10;
  p = p * r + 0x1.1110c632a3088p-7;
  p = p * r + 0x1.5555555c87148p-5;
  p = p * r + 0x1.55555567532adp-3;
  p = p * r + 0x1.0000000000000p-1;
  const int32_t power = (int32_t)rvm_bits_of_f64(shifted), limited = power < -1000  ? -1000
                                                                     : power > 1000 ? 1000
                                                                                    : power;
  return (float)rvm_pow_ends(base, exponent, (1.0 + (r + r * r * p)) * rvm_power_of_2(limited));
}

#endif
