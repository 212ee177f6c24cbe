/* kernel_conversions.h: operations on numbers for generated kernels that C does not define for all operands or does not
   have: conversions from floats to integers, and integer powers. */
#ifndef RELVM_KERNEL_CONVERSIONS_H
#define RELVM_KERNEL_CONVERSIONS_H

#include <stdint.h>

#include "kernel_math.h"

/* Conversions from floats to integers, with the results of NumPy on x86-64.  Values are truncated toward zero.  NaN and
   values out of range give the smallest value of int32_t and int64_t.  The result for a type of 8 or 16 bits is the low
   bits of the conversion to int32_t, and for uint32_t those of the conversion to int64_t.  The result for uint64_t has
   the bits of the conversion to int64_t, unless the value is in [2^63, 2^64). */
static inline int64_t rvm_i64_of_f64(double x) {
  return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (int64_t)x : INT64_MIN;
}
static inline int32_t rvm_i32_of_f64(double x) {
  return x > -2147483649.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN;
}
static inline int32_t rvm_i32_of_f32(float x) {
  return x >= -2147483648.0f && x < 2147483648.0f ? (int32_t)x : INT32_MIN;
}
static inline uint64_t rvm_u64_of_f64(double x) {
  return x >= 9223372036854775808.0 && x < 18446744073709551616.0 ? (uint64_t)x : (uint64_t)rvm_i64_of_f64(x);
}
static inline int64_t rvm_i64_of_f32(float x) { return rvm_i64_of_f64(x); }
static inline uint64_t rvm_u64_of_f32(float x) { return rvm_u64_of_f64(x); }
static inline uint32_t rvm_u32_of_f64(double x) { return (uint32_t)rvm_i64_of_f64(x); }
static inline uint32_t rvm_u32_of_f32(float x) { return (uint32_t)rvm_i64_of_f64(x); }
#define RVM_NARROW(name, type)                                                         \
  static inline type rvm_##name##_of_f64(double x) { return (type)rvm_i32_of_f64(x); } \
  static inline type rvm_##name##_of_f32(float x) { return (type)rvm_i32_of_f32(x); }
RVM_NARROW(i16, int16_t)
RVM_NARROW(i8, int8_t)
RVM_NARROW(u16, uint16_t)
RVM_NARROW(u8, uint8_t)
#undef RVM_NARROW

/* Return x truncated toward zero and clamped to the range of the type.  NaN gives the lowest value.  rvm_saturate_u8
   makes the first selection by a bit mask, because GCC can turn two successive selections into branches, which it does
   not vectorize. */
static inline uint8_t rvm_saturate_u8(float x) {
  const float above = rvm_f32_of_bits(rvm_bits_of_f32(x) & -(int32_t)(x > 0.0f));
  return (uint8_t)(int32_t)(above < 255.0f ? above : 255.0f);
}
static inline int8_t rvm_saturate_i8(float x) {
  const float above = x > -128.0f ? x : -128.0f;
  return (int8_t)(int32_t)(above < 127.0f ? above : 127.0f);
}

/* Returns base to the power of exponent, modulo 2^64. */
static inline uint64_t rvm_power_u64(uint64_t base, uint64_t exponent) {
  uint64_t power = 1;
  for (; exponent; exponent >>= 1, base *= base)
    if (exponent & 1) power *= base;
  return power;
}
/* Returns base to the power of exponent, modulo 2^64.  For a negative exponent, rounds the exact value toward zero; the
   result for base 0 is 0. */
static inline int64_t rvm_power_i64(int64_t base, int64_t exponent) {
  if (exponent >= 0) return (int64_t)rvm_power_u64((uint64_t)base, (uint64_t)exponent);
  if (base == -1) return exponent % 2 ? -1 : 1;
  return base == 1;
}

#endif
