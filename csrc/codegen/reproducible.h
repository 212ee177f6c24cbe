/* reproducible.h: operations on floats that give the same bits in kernels compiled on this machine and in those of the
   runtime. Both are compiled with -ffp-contract=off: the only fused products are those that are written so. */
#ifndef RELVM_REPRODUCIBLE_H
#define RELVM_REPRODUCIBLE_H

/* a * b + c, rounded once if the processor has an instruction for that. */
#if defined __FP_FAST_FMAF || defined __FMA__ || defined __ARM_FEATURE_FMA
#define RVM_FMA_F32(a, b, c) __builtin_fmaf(a, b, c)
#else
#define RVM_FMA_F32(a, b, c) ((a) * (b) + (c))
#endif

enum { RVM_SUM_LANES = 16 }; /* a sum of many elements adds element i to lane i % RVM_SUM_LANES */

/* The sum of the lanes, in pairs that are half of them apart. */
static inline float rvm_sum_of_lanes_f32(float *lanes) {
  for (int i = 0; i < 8; i++) lanes[i] = lanes[i] + lanes[i + 8];
  for (int i = 0; i < 4; i++) lanes[i] = lanes[i] + lanes[i + 4];
  for (int i = 0; i < 2; i++) lanes[i] = lanes[i] + lanes[i + 2];
  return lanes[0] + lanes[1];
}

#endif
