/* small_floats.h: conversions between float and narrow floats, which have at most 16 bits, and between int8_t and
   integers of 4 and 2 bits.  The functions have no branches or tables, so the C compiler can vectorize loops that call
   them.

   A narrow float, except f8e8m0fnu, has a sign bit, an exponent with bias B and a mantissa of M bits, and is rounded to
   nearest, ties to even.  Its code is its bits; without the sign bit, codes below 1 << M are zero and the subnormal
   numbers.  The parameters of rvm_narrow_code: `largest` is the code of the largest finite number, `beyond` the code of
   numbers that are larger after rounding, and `nan` the code of NaN.  References: IEEE 754-2019; OCP 8-bit Floating
   Point and Microscaling specifications; ONNX's float8 notes. */
#ifndef RELVM_SMALL_FLOATS_H
#define RELVM_SMALL_FLOATS_H

#include <math.h>

#include "float_bits.h"

#define RVM_INFINITY_BITS 0x7f800000 /* the bits of infinity as a float; those of a positive NaN are larger */

/* Returns the code of |x|, without a sign bit. */
RVM_MATH uint32_t rvm_narrow_code(float x, int M, int B, uint32_t largest, uint32_t beyond, uint32_t nan) {
  const uint32_t bits = (uint32_t)rvm_bits_of_f32(x) & 0x7fffffffu;
  const int dropped_bits = 23 - M;
  const uint32_t rounded = bits + (1u << (dropped_bits - 1)) - 1 + (bits >> dropped_bits & 1);
  const uint32_t normal = (rounded >> dropped_bits) - ((uint32_t)(127 - B) << M);
  /* The last bit of the power of two 2^(24 - B - M) has the weight of the smallest subnormal number.  Adding this power
     rounds |x| to a multiple of that number, and the difference of the bits is the multiple. */
  const int32_t power_bits = (127 + 24 - B - M) << 23;
  const float sum = rvm_f32_of_bits((int32_t)bits) + rvm_f32_of_bits(power_bits);
  const uint32_t subnormal = (uint32_t)(rvm_bits_of_f32(sum) - power_bits);
  const uint32_t code = bits < (uint32_t)(128 - B) << 23 ? subnormal : normal;
  /* One expression: gcc does not vectorize the conversion if the conditions are variables. */
  return bits > RVM_INFINITY_BITS ? nan : code > largest || bits == RVM_INFINITY_BITS ? beyond : code;
}

/* Returns the number that a code without a sign bit stands for.  The code must not be an infinity or a NaN. */
RVM_MATH float rvm_narrow_number(uint32_t code, int M, int B) {
  const float scale = rvm_f32_of_bits((254 - B) << 23);
  return rvm_f32_of_bits((int32_t)(code << (23 - M))) * scale;
}

RVM_MATH float rvm_negated_if(float x, uint32_t is_negative) {
  return rvm_f32_of_bits(rvm_bits_of_f32(x) | (int32_t)(is_negative << 31));
}

RVM_MATH uint32_t rvm_sign_of(float x) { return (uint32_t)rvm_bits_of_f32(x) >> 31; }

/* Defines the conversions of a format with a sign bit and NaNs of both signs.  If `infinity` equals `nan`, the format
   has no infinity. */
#define RVM_NARROW_FLOAT(name, type, M, B, sign_bit, largest, infinity, nan)                      \
  RVM_MATH type rvm_##name##_of_f32(float x) {                                                    \
    return (type)(rvm_narrow_code(x, M, B, largest, infinity, nan) | rvm_sign_of(x) << sign_bit); \
  }                                                                                               \
  RVM_MATH float rvm_f32_of_##name(type x) {                                                      \
    const uint32_t code = x & ((1u << sign_bit) - 1);                                             \
    float y = rvm_narrow_number(code, M, B);                                                      \
    y = code > largest ? (code == infinity && infinity != nan ? INFINITY : NAN) : y;              \
    return rvm_negated_if(y, (uint32_t)x >> sign_bit & 1);                                        \
  }
RVM_NARROW_FLOAT(f16, uint16_t, 10, 15, 15, 0x7bff, 0x7c00, 0x7e00)
RVM_NARROW_FLOAT(f8e4m3fn, uint8_t, 3, 7, 7, 0x7e, 0x7f, 0x7f)
RVM_NARROW_FLOAT(f8e5m2, uint8_t, 2, 15, 7, 0x7b, 0x7c, 0x7e)
#undef RVM_NARROW_FLOAT

/* Formats without infinity and NaN.  Numbers that are too large saturate; NaN becomes zero of the opposite sign, as
   in ml_dtypes. */
#define RVM_NARROW_FINITE(name, M, B, sign_bit)                                                       \
  RVM_MATH uint8_t rvm_##name##_of_f32(float x) {                                                     \
    const uint32_t largest = (1u << sign_bit) - 1;                                                    \
    const uint32_t code = rvm_narrow_code(x, M, B, largest, largest, 0) | rvm_sign_of(x) << sign_bit; \
    return (uint8_t)(x == x ? code : code ^ 1u << sign_bit);                                          \
  }                                                                                                   \
  RVM_MATH float rvm_f32_of_##name(uint8_t x) {                                                       \
    const float y = rvm_narrow_number(x & ((1u << sign_bit) - 1), M, B);                              \
    return rvm_negated_if(y, (uint32_t)x >> sign_bit & 1);                                            \
  }
RVM_NARROW_FINITE(f6e2m3fn, 3, 1, 5)
RVM_NARROW_FINITE(f6e3m2fn, 2, 3, 5)
RVM_NARROW_FINITE(f4e2m1fn, 1, 1, 3)
#undef RVM_NARROW_FINITE

/* Formats without infinity and negative zero; the code of negative zero is the only NaN. */
#define RVM_NARROW_UNSIGNED_ZERO(name, M, B)                                              \
  RVM_MATH uint8_t rvm_##name##_of_f32(float x) {                                         \
    const uint32_t code = rvm_narrow_code(x, M, B, 0x7f, 0x80, 0x80);                     \
    return (uint8_t)(code == 0 || code == 0x80 ? code : code | rvm_sign_of(x) << 7);      \
  }                                                                                       \
  RVM_MATH float rvm_f32_of_##name(uint8_t x) {                                           \
    const float y = rvm_negated_if(rvm_narrow_number(x & 0x7fu, M, B), (uint32_t)x >> 7); \
    return x == 0x80 ? -NAN : y;                                                          \
  }
RVM_NARROW_UNSIGNED_ZERO(f8e4m3fnuz, 3, 8)
RVM_NARROW_UNSIGNED_ZERO(f8e5m2fnuz, 2, 16)
#undef RVM_NARROW_UNSIGNED_ZERO

/* bfloat16: the upper half of a float. */
RVM_MATH uint16_t rvm_bf16_of_f32(float x) {
  const uint32_t bits = (uint32_t)rvm_bits_of_f32(x);
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return (uint16_t)(x == x ? rounded : (bits >> 16 & 0x8000) | 0x7fc0);
}
RVM_MATH float rvm_f32_of_bf16(uint16_t x) { return rvm_f32_of_bits((int32_t)((uint32_t)x << 16)); }

/* f8e8m0fnu: powers of two from 2^-127 on, and NaN. */
RVM_MATH float rvm_f32_of_f8e8m0fnu(uint8_t x) {
  const float y = rvm_f32_of_bits(x ? (int32_t)((uint32_t)x << 23) : 0x00400000);
  return x == 0xff ? NAN : y;
}
/* Rounds to the nearest power of two, and ties to the larger one.  Between 2^-127 and 2^-126, all numbers above 2^-127
   round up.  Numbers that are not positive, and those from 1.5 * 2^127 on, become NaN.  Gives the same results as
   ml_dtypes. */
RVM_MATH uint8_t rvm_f8e8m0fnu_of_f32(float x) {
  const uint32_t bits = (uint32_t)rvm_bits_of_f32(x), half = bits < 0x00800000 ? 0x003fffff : 0x00400000;
  return (uint8_t)(x > 0.0f && x < INFINITY ? (bits + half) >> 23 : 0xff);
}

/* Integers modulo 16 and 4, in the low bits of a byte. */
#define RVM_NARROW_INTEGER(bits, mask, sign)                                                    \
  RVM_MATH uint8_t rvm_i##bits##_of_i8(int8_t x) { return (uint8_t)(x & mask); }                \
  RVM_MATH uint8_t rvm_u##bits##_of_i8(int8_t x) { return (uint8_t)(x & mask); }                \
  RVM_MATH int8_t rvm_i8_of_i##bits(uint8_t x) { return (int8_t)(((x & mask) ^ sign) - sign); } \
  RVM_MATH int8_t rvm_i8_of_u##bits(uint8_t x) { return (int8_t)(x & mask); }
RVM_NARROW_INTEGER(4, 15, 8)
RVM_NARROW_INTEGER(2, 3, 2)
#undef RVM_NARROW_INTEGER

/* Rounds a double to odd: if the float is inexact, its last bit is set.  Rounding the result to a narrower float
   then gives the same as rounding the double directly. */
RVM_MATH float rvm_odd_f32_of_f64(double x) {
  const float near = (float)x;
  const int32_t bits = rvm_bits_of_f32(near);
  const int is_inexact = (double)near != x && x == x && (bits & INT32_MAX) != RVM_INFINITY_BITS;
  const int32_t towards_zero = fabs((double)near) > fabs(x) ? bits - 1 : bits;
  return is_inexact ? rvm_f32_of_bits(towards_zero | 1) : near;
}

#endif
