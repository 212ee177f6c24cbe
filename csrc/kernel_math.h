/* kernel_math.h: exp, log, tanh and erf of float for generated kernels: without branches, tables or calls, so that the C
   compiler makes vectors of loops that use them.  All are within 2 units in the last place, right at infinities, zeros of
   either sign, subnormal numbers and NaN.

   The polynomials are minimax fits of relative error below 1e-8 (Lawson's algorithm on Chebyshev points). */
#ifndef RELVM_KERNEL_MATH_H
#define RELVM_KERNEL_MATH_H

#include <stdint.h>
#include <string.h>

#define RVM_MATH static inline __attribute__((always_inline))

RVM_MATH float rvm_float_of_bits(int32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

RVM_MATH int32_t rvm_bits_of_float(float x) {
  int32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* The magnitude of the first with the sign of the second. */
RVM_MATH float rvm_with_sign(float magnitude, float sign) {
  return rvm_float_of_bits((rvm_bits_of_float(magnitude) & INT32_MAX) | (rvm_bits_of_float(sign) & INT32_MIN));
}

/* x = n ln 2 + r; exp(x) = 2^n exp(r).  2^n is two factors, so that subnormal results are right.  Adding 1.5 * 2^23 rounds
   to an integer and leaves it in the low bits. */
RVM_MATH float rvm_exp_f32(float x) {
  const float shift = 12582912.0f;
  x = x > 89.0f ? 89.0f : x;
  x = x < -105.0f ? -105.0f : x;
  const float shifted = x * 1.44269504f + shift, n = shifted - shift;
  const int32_t power = rvm_bits_of_float(shifted) - rvm_bits_of_float(shift), half = power >> 1;
  float r = x - n * 0.693359375f; /* ln 2 in two parts, the first of few bits */
  r = r - n * -2.12194440e-4f;
  float p = 1.395048622e-3f;
  p = p * r + 8.368887863e-3f;
  p = p * r + 4.166620587e-2f;
  p = p * r + 1.666651885e-1f;
  p = p * r + 5.000000095e-1f;
  p = p * (r * r) + r + 1.0f;
  return p * rvm_float_of_bits((half + 127) << 23) * rvm_float_of_bits((power - half + 127) << 23);
}

/* x = 2^n (1 + f), f around 0; log(x) = n ln 2 + log(1 + f). */
RVM_MATH float rvm_log_f32(float x) {
  const int is_subnormal = x < 1.17549435e-38f;
  const float scaled = is_subnormal ? x * 8388608.0f : x;
  const int32_t bits = rvm_bits_of_float(scaled) - 0x3f3504f3; /* sqrt(1/2) */
  const float n = (float)(bits >> 23) - (is_subnormal ? 23.0f : 0.0f);
  const float f = rvm_float_of_bits((bits & 0x007fffff) + 0x3f3504f3) - 1.0f;
  float p = 6.746601332e-2f;
  p = p * f + -1.167564131e-1f;
  p = p * f + 1.188817460e-1f;
  p = p * f + -1.240559142e-1f;
  p = p * f + 1.421955091e-1f;
  p = p * f + -1.666799567e-1f;
  p = p * f + 2.000211873e-1f;
  p = p * f + -2.500000960e-1f;
  p = p * f + 3.333331260e-1f;
  p = p * (f * f * f) + n * -2.12194440e-4f - 0.5f * (f * f) + f + n * 0.693359375f;
  p = x > 3.40282347e38f ? x : p;
  p = x == 0.0f ? -INFINITY : p;
  return x >= 0.0f ? p : NAN;
}

/* Near 0 a polynomial, else 1 - 2 / (exp(2 |x|) + 1). */
RVM_MATH float rvm_tanh_f32(float x) {
  const float s = x * x;
  float p = -5.895150301e-3f;
  p = p * s + 2.079596460e-2f;
  p = p * s + -5.378382804e-2f;
  p = p * s + 1.333192410e-1f;
  p = p * s + -3.333329800e-1f;
  p = p * (s * x) + x;
  const float magnitude = x < 0.0f ? -x : x;
  const float far = 1.0f - 2.0f / (rvm_exp_f32(2.0f * magnitude) + 1.0f);
  return rvm_with_sign(magnitude >= 0.6f ? far : p, x);
}

/* Below 1 a polynomial, else 1 - exp of a polynomial that fits log(erfc |x|). */
RVM_MATH float rvm_erf_f32(float x) {
  const float s = x * x;
  float p = 7.853857701e-5f;
  p = p * s + -8.010192519e-4f;
  p = p * s + 5.188327560e-3f;
  p = p * s + -2.685381187e-2f;
  p = p * s + 1.128358515e-1f;
  p = p * s + -3.761262582e-1f;
  p = p * s + 1.283791657e-1f;
  p = p * x + x;
  const float magnitude = x < 0.0f ? -x : x, t = magnitude > 4.0f ? 4.0f : magnitude;
  float q = -2.144559258e-5f;
  q = q * t + 4.385302202e-4f;
  q = q * t + -4.190857018e-3f;
  q = q * t + 2.517181175e-2f;
  q = q * t + -1.083615567e-1f;
  q = q * t + -6.332724101e-1f;
  q = q * t + -1.129552043e+0f;
  q = q * t + 1.824604960e-4f;
  return magnitude >= 1.0f ? rvm_with_sign(1.0f - rvm_exp_f32(q), x) : p;
}

#endif
