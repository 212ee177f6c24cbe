/* kernel_math.h: exp, log, log1p, tanh, erf, sin and cos of float for generated kernels.

   The functions have no branches, tables or calls, so that compilers vectorize loops that use them, except sin and cos
   on processors without a fused multiply-add.  Errors are at most 2 units in the last place.  Infinities, signed zeros,
   subnormal numbers and NaN give the results of C99.  The polynomials are minimax fits (Lawson's algorithm on Chebyshev
   points) of the relative error. */
#ifndef RELVM_KERNEL_MATH_H
#define RELVM_KERNEL_MATH_H

#include <math.h>
#include <stdint.h>

#include "float_bits.h"
#include "portable_math.h"
#include "reproducible.h"

/* Returns a number with the absolute value of the first argument and the sign of the second. */
RVM_MATH float rvm_with_sign(float magnitude, float sign) {
  return rvm_f32_of_bits((rvm_bits_of_f32(magnitude) & INT32_MAX) | (rvm_bits_of_f32(sign) & INT32_MIN));
}

/* Returns exp(x) for x in [-104, 88.75], and an unspecified number for other x.  If n < least, uses 2^least for 2^n,
   unless `least` is INT32_MIN.  `least` must be a constant where this function is inlined.

   exp(x) = 2^n exp(r) for x = n ln 2 + r.  Adding 1.5 * 2^23 rounds to an integer n, which is then in the low bits of
   the sum.  2^n is computed as the product of two factors, so that a subnormal result is rounded only once.  Adding
   also 254, twice the exponent bias, makes the low bits the sum of the two factors' biased exponents. */
RVM_MATH float rvm_finite_exp_f32(float x, int32_t least) {
  const float shift = 12582912.0f + 254.0f;
  const float shifted = RVM_FMA_F32(x, 1.44269504f, shift), n = shifted - shift;
  const int32_t sum = rvm_bits_of_f32(shifted), low = 0x4b400000 + 254 + least; /* 0x4b400000: bits of 1.5 * 2^23 */
  const int32_t power = least != INT32_MIN && sum < low ? low : sum, half = power >> 1;
  float r = RVM_FMA_F32(n, -0.693359375f, x); /* ln 2 in two parts, the first with few bits */
  r = RVM_FMA_F32(n, 2.12194440e-4f, r);
  float p = 1.395048622e-3f;
  p = RVM_FMA_F32(p, r, 8.368887863e-3f);
  p = RVM_FMA_F32(p, r, 4.166620587e-2f);
  p = RVM_FMA_F32(p, r, 1.666651885e-1f);
  p = RVM_FMA_F32(p, r, 5.000000095e-1f);
  p = RVM_FMA_F32(p, r, 1.0f);
  p = RVM_FMA_F32(p, r, 1.0f);
  return p * rvm_f32_of_bits(half << 23) * rvm_f32_of_bits((power - half) << 23);
}

/* Returns exp(x).  Results of 0 and infinity are selected last, which is cheaper than clamping x. */
RVM_MATH float rvm_exp_f32(float x) {
  const float p = rvm_finite_exp_f32(x, INT32_MIN), finite = x < -104.0f ? 0.0f : p;
  return x > 88.75f ? INFINITY : finite;
}

/* Returns exp(x), or 0 if x < -86.9, without an operation on subnormal numbers, which many processors do slowly.
   Exponents are bounded and not x, because compilers replace f(x < low ? low : x) by x < low ? f(low) : f(x). */
RVM_MATH float rvm_exp_ftz_f32(float x) {
  const float p = rvm_finite_exp_f32(x, -125), finite = x < -86.9f ? 0.0f : p;
  return x > 88.75f ? INFINITY : finite;
}

/* Returns 2^x for x in [-126, 126] with a relative error of at most about 1e-7, for results in which this error has
   little weight. */
RVM_MATH float rvm_rough_exp2_f32(float x) {
  const float shift = 12582912.0f, shifted = x + shift, r = x - (shifted - shift);
  float p = 1.326955855e-3f;
  p = RVM_FMA_F32(p, r, 9.671293199e-3f);
  p = RVM_FMA_F32(p, r, 5.550710857e-2f);
  p = RVM_FMA_F32(p, r, 2.402224690e-1f);
  p = RVM_FMA_F32(p, r, 6.931470037e-1f);
  p = RVM_FMA_F32(p, r, 1.0f);
  return rvm_f32_of_bits(rvm_bits_of_f32(p) + (rvm_bits_of_f32(shifted) << 23));
}

/* Returns log(1 + f) + n ln 2 for 1 + f between sqrt(1/2) and sqrt(2).  If n is -0, a zero f keeps its sign. */
RVM_MATH float rvm_log_near_1_f32(float f, float n) {
  float p = 6.746601332e-2f;
  p = RVM_FMA_F32(p, f, -1.167564131e-1f);
  p = RVM_FMA_F32(p, f, 1.188817460e-1f);
  p = RVM_FMA_F32(p, f, -1.240559142e-1f);
  p = RVM_FMA_F32(p, f, 1.421955091e-1f);
  p = RVM_FMA_F32(p, f, -1.666799567e-1f);
  p = RVM_FMA_F32(p, f, 2.000211873e-1f);
  p = RVM_FMA_F32(p, f, -2.500000960e-1f);
  p = RVM_FMA_F32(p, f, 3.333331260e-1f);
  const float low = RVM_FMA_F32(-0.5f, f * f, RVM_FMA_F32(p, f * f * f, n * 3.19461833e-5f));
  return RVM_FMA_F32(n, 0.693115234375f, low + f);
}

/* Returns `log`, the logarithm of x, unless x is a special value.  `pole` is the x at which the logarithm is infinite.
   The result is -infinity if x is `pole`, NaN if x is less than `pole` or NaN, and infinity if x is infinity. */
RVM_MATH float rvm_log_ends_f32(float log, float x, float pole) {
  log = x > 3.40282347e38f ? x : log;
  log = x == pole ? -INFINITY : log;
  return x >= pole ? log : NAN;
}

/* log(x) = n ln 2 + log(1 + f) for x = 2^n (1 + f), f around 0. */
RVM_MATH float rvm_log_f32(float x) {
  const int is_subnormal = x < 1.17549435e-38f;
  const float scaled = is_subnormal ? x * 8388608.0f : x;
  const int32_t bits = rvm_bits_of_f32(scaled) - 0x3f3504f3; /* bits of sqrt(1/2) */
  const float n = (float)(bits >> 23) - (is_subnormal ? 23.0f : 0.0f);
  const float f = rvm_f32_of_bits((bits & 0x007fffff) + 0x3f3504f3) - 1.0f;
  return rvm_log_ends_f32(rvm_log_near_1_f32(f, n), x, 0.0f);
}

/* log(1 + x) = n ln 2 + log(1 + f) for 1 + x = 2^n (1 + f), f around 0.  f is computed as x / 2^n - (1 - 1 / 2^n),
   which rounds only once because 2^n is a power of two. */
RVM_MATH float rvm_log1p_f32(float x) {
  const int32_t power = (rvm_bits_of_f32(1.0f + x) - 0x3f3504f3) & -0x00800000;
  const int32_t inverse = 0x3f800000 - power; /* negative for x > 2^127 */
  const float one = rvm_f32_of_bits(inverse > 0 ? inverse : 0);
  const float f = rvm_f32_of_bits(rvm_bits_of_f32(x) - power) - (1.0f - one);
  return rvm_log_ends_f32(rvm_log_near_1_f32(f, -(float)(-(power >> 23))), x, -1.0f);
}

/* tanh(x) is computed by a polynomial for |x| < 0.65, and else as 1 - 2 / (exp(2 |x|) + 1) with the sign of x, which
   rounds to 1 for |x| above 9.01. */
RVM_MATH float rvm_tanh_f32(float x) {
  const float s = x * x, magnitude = fabsf(x), t = magnitude > 9.02f ? 9.02f : magnitude;
  float p = -5.514808930e-3f;
  p = RVM_FMA_F32(p, s, 2.046907879e-2f);
  p = RVM_FMA_F32(p, s, -5.368791521e-2f);
  p = RVM_FMA_F32(p, s, 1.333082914e-1f);
  p = RVM_FMA_F32(p, s, -3.333325982e-1f);
  p = RVM_FMA_F32(p, s * x, x);
  const float far = 1.0f - 2.0f / (rvm_rough_exp2_f32(t * 2.88539008f) + 1.0f);
  return rvm_with_sign(magnitude >= 0.65f ? far : p, x);
}

/* erf(x) is computed by a polynomial for |x| < 0.9, and else as 1 - 2^q with the sign of x, where the polynomial q
   approximates log2(erfc |x|).  The result rounds to 1 for |x| above 3.92. */
RVM_MATH float rvm_erf_f32(float x) {
  const float s = x * x, magnitude = fabsf(x), t = magnitude > 3.93f ? 3.93f : magnitude;
  float p = -6.053445977e-4f;
  p = RVM_FMA_F32(p, s, 5.004345905e-3f);
  p = RVM_FMA_F32(p, s, -2.677339874e-2f);
  p = RVM_FMA_F32(p, s, 1.128197834e-1f);
  p = RVM_FMA_F32(p, s, -3.761250675e-1f);
  p = RVM_FMA_F32(p, s, 1.283791512e-1f);
  p = RVM_FMA_F32(p, x, x);
  float q = 3.089488891e-4f;
  q = RVM_FMA_F32(q, t, -4.640298430e-3f);
  q = RVM_FMA_F32(q, t, 3.303053975e-2f);
  q = RVM_FMA_F32(q, t, -1.518730670e-1f);
  q = RVM_FMA_F32(q, t, -9.171375632e-1f);
  q = RVM_FMA_F32(q, t, -1.628105283e+0f);
  const float far = 1.0f - rvm_rough_exp2_f32(q * t);
  return magnitude >= 0.9f ? rvm_with_sign(far, x) : p;
}

/* Returns the sine or cosine of x.  |x| is n + r quarter turns, where n is an integer.  The result is the sine or the
   cosine of r quarter turns.  Which of the two it is, and its sign, depend on n modulo 4.

   A float of at least 2^e is a multiple of 2^(e - 23).  Therefore the bits of 2 / pi that are multiples of 2^(25 - e)
   only change n by a multiple of 4, and are left out.  The product of x and the next 53 bits of 2 / pi is then small
   enough, for floats below 2^(e + 26), to be rounded to n in double.  A fused multiply-add gives r, and the following
   53 bits of 2 / pi make r accurate to about 2^-54.  `high` and `low` are these bits for one of four ranges of |x|.
   Both are rounded to nearest, and can be negative: multiples of 2^(25 - e) are left out so that the least absolute
   value remains.  Source: Payne and Hanek, Radian reduction for trigonometric functions, 1983.

   Processors without a fused multiply-add compute in double, unless RVM_EXACT_FMA is defined. */
#if defined RVM_HAS_FMA || defined RVM_EXACT_FMA
RVM_MATH float rvm_sine_or_cosine_f32(float x, int is_cosine) {
  const float magnitude = fabsf(x);
  const int is_small_or_middle = magnitude < 0x1p76f, is_not_small = magnitude >= 0x1p50f;
  const double small_or_middle = is_not_small ? -0x1.1b1bbead603d9p-28 : 0x1.45f306dc9c883p-1;
  const double after_small_or_middle = is_not_small ? 0x1.5f47d4d377037p-82 : -0x1.6b01ec5417056p-55;
  const double next = magnitude < 0x1p102f ? -0x1.5ac07b1505c16p-53 : -0x1.505c1596447e5p-81;
  const double after_next = magnitude < 0x1p102f ? 0x1.a6ee06db14acdp-107 : 0x1.b14acc9e21c82p-135;
  const double high = is_small_or_middle ? small_or_middle : next;
  const double low = is_small_or_middle ? after_small_or_middle : after_next;
  const double shift = 0x1.8p52, shifted = magnitude * high + shift;
  const double r = RVM_FMA_F64(magnitude, low, RVM_FMA_F64(magnitude, high, shift - shifted));
  const int32_t quadrant = (int32_t)rvm_bits_of_f64(shifted) + is_cosine;
  const float t = (float)(r * 0x1.921fb54442d18p0), s = t * t;
  float sine = -1.941154624e-4f;
  sine = RVM_FMA_F32(sine, s, 8.331290446e-3f);
  sine = RVM_FMA_F32(sine, s, -1.666663885e-1f);
  sine = RVM_FMA_F32(sine, s * t, t);
  float cosine = 2.431883149e-5f;
  cosine = RVM_FMA_F32(cosine, s, -1.388618723e-3f);
  cosine = RVM_FMA_F32(cosine, s, 4.166661948e-2f);
  cosine = RVM_FMA_F32(cosine, s, -0.5f);
  cosine = RVM_FMA_F32(cosine, s, 1.0f);
  const int32_t sign = is_cosine ? 0 : rvm_bits_of_f32(x) & INT32_MIN;
  const int32_t flip = (int32_t)((uint32_t)(quadrant & 2) << 30);
  return rvm_f32_of_bits(rvm_bits_of_f32(quadrant & 1 ? cosine : sine) ^ sign ^ flip);
}

RVM_MATH float rvm_sin_f32(float x) { return rvm_sine_or_cosine_f32(x, 0); }
RVM_MATH float rvm_cos_f32(float x) { return rvm_sine_or_cosine_f32(x, 1); }
#else
RVM_MATH float rvm_sin_f32(float x) { return (float)rvm_sin_f64((double)x); }
RVM_MATH float rvm_cos_f32(float x) { return (float)rvm_cos_f64((double)x); }
#endif

#endif
