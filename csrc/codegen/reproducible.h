/* reproducible.h: operations on floats that give the same bits in compiled kernels and in the runtime's kernel
   bytecode.  Both are compiled with -ffp-contract=off: only RVM_FMA_F32, RVM_FMA_F64, and rvm_fma_lanes and
   rvm_add_products_of_lanes (gemm_f32.h) fuse a product with a sum.

   Processors without fused multiply-add round the product and the sum, which gives other bits.  If RVM_EXACT_FMA is
   defined, they compute the fused result by additions and multiplications instead (docs/determinism.md). */
#ifndef RELVM_REPRODUCIBLE_H
#define RELVM_REPRODUCIBLE_H

#include "compiler.h"
#include "float_bits.h"
#include "kernel_constants.h"

/* Returns a * b + c, rounded once.

   The product of two floats is exact in double.  The sum is rounded to odd: if it is inexact, it is truncated, and its
   last bit is set.  Rounding the result to float then gives the same as rounding the exact sum.  Source: Boldo and
   Melquiond, Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd, 2008. */
RVM_MATH float rvm_exact_fma_f32(float a, float b, float c) {
  const double product = (double)a * (double)b, addend = (double)c, sum = product + addend;
  const double rest = sum - product, error = (product - (sum - rest)) + (addend - rest); /* Knuth's TwoSum */
  const int64_t is_inexact = (error > 0) | (error < 0); /* 0 if the error is NaN: the sum is infinite or NaN */
  const int64_t is_too_large = is_inexact & ((error < 0) ^ (sum < 0));
  return (float)rvm_f64_of_bits((rvm_bits_of_f64(sum) - is_too_large) | is_inexact);
}

/* Returns a * b + c, rounded once.  |a| and |b| must be less than 2^996.  Each product of a half of a's mantissa and a
   half of b's must be finite, and either 0 or not subnormal. */
RVM_MATH double rvm_exact_fma_f64(double a, double b, double c) {
  const double split = 0x1p27 + 1, a_split = a * split, b_split = b * split;
  const double a_high = a_split - (a_split - a), a_low = a - a_high; /* halves of the mantissa (Veltkamp) */
  const double b_high = b_split - (b_split - b), b_low = b - b_high;
  const double product = a * b; /* product + product_error is the exact product (Dekker) */
  const double product_error = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low);
  const double low = c + product_error, low_rest = low - c;
  const double low_error = (c - (low - low_rest)) + (product_error - low_rest);
  const double high = product + low, high_rest = high - product;
  const double high_error = (product - (high - high_rest)) + (low - high_rest);
  const double sum = high_error + low_error, sum_rest = sum - high_error; /* rounded to odd */
  const double error = (high_error - (sum - sum_rest)) + (low_error - sum_rest);
  /* If `error` and `sum` have opposite signs, the absolute value of `sum` was rounded up. */
  const int64_t is_inexact = (error > 0) | (error < 0), is_too_large = is_inexact & ((error < 0) ^ (sum < 0));
  return high + rvm_f64_of_bits((rvm_bits_of_f64(sum) - is_too_large) | is_inexact);
}

/* Compute a * b + c.  They round once if the processor has a fused multiply-add or RVM_EXACT_FMA is defined. */
#if defined RVM_HAS_FMA
#define RVM_FMA_F32(a, b, c) __builtin_fmaf(a, b, c)
#define RVM_FMA_F64(a, b, c) __builtin_fma(a, b, c)
#elif defined RVM_EXACT_FMA
#define RVM_FMA_F32(a, b, c) rvm_exact_fma_f32(a, b, c)
#define RVM_FMA_F64(a, b, c) rvm_exact_fma_f64(a, b, c)
#else
#define RVM_FMA_F32(a, b, c) ((a) * (b) + (c))
#define RVM_FMA_F64(a, b, c) ((a) * (b) + (c))
#endif

/* Returns the sum of the RVM_SUM_LANES (16) lanes.  Adds the second half of the lanes to the first half until one lane
   is left.  Overwrites the lanes. */
static inline float rvm_sum_of_lanes_f32(float *lanes) {
  for (int i = 0; i < 8; i++) lanes[i] = lanes[i] + lanes[i + 8];
  for (int i = 0; i < 4; i++) lanes[i] = lanes[i] + lanes[i + 4];
  for (int i = 0; i < 2; i++) lanes[i] = lanes[i] + lanes[i + 2];
  return lanes[0] + lanes[1];
}

#endif
