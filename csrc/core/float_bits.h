/* float_bits.h: reinterprets the bits of floats as integers and back. */
#ifndef RELVM_FLOAT_BITS_H
#define RELVM_FLOAT_BITS_H

#include <stdint.h>
#include <string.h>

#define RVM_MATH static inline __attribute__((always_inline))

/* Defines rvm_bits_of_NAME, the bits of a float as a signed integer, and rvm_NAME_of_bits, the inverse. */
#define RVM_BITS(name, type, bits)             \
  RVM_MATH bits rvm_bits_of_##name(type x) {   \
    bits result;                               \
    memcpy(&result, &x, sizeof result);        \
    return result;                             \
  }                                            \
  RVM_MATH type rvm_##name##_of_bits(bits x) { \
    type result;                               \
    memcpy(&result, &x, sizeof result);        \
    return result;                             \
  }
RVM_BITS(f32, float, int32_t)
RVM_BITS(f64, double, int64_t)
/* C has no types for f16 and bf16; an element is an integer with the same bits. */
RVM_BITS(f16, uint16_t, int16_t)
RVM_BITS(bf16, uint16_t, int16_t)
#undef RVM_BITS

#endif
