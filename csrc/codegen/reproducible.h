/* reproducible.h: operations on floats that give the same bits in compiled kernels and in the runtime's kernel
   bytecode, if both are compiled for the same processor features.  Both are compiled with -ffp-contract=off: only
   RVM_FMA_F32 and rvm_fma_lanes fuse a product with a sum. */
#ifndef RELVM_REPRODUCIBLE_H
#define RELVM_REPRODUCIBLE_H

#include "kernel_constants.h"

/* Computes a * b + c, with one rounding if the processor has a fused multiply-add. */
#if defined __FP_FAST_FMAF || defined __FMA__ || defined __ARM_FEATURE_FMA
#define RVM_FMA_F32(a, b, c) __builtin_fmaf(a, b, c)
#else
#define RVM_FMA_F32(a, b, c) ((a) * (b) + (c))
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
