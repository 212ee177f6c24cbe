/* peak_flops.h: the loop with which relvm/explore/views/machine_peak.py measures the peak rate of f32 multiply-adds. */
#ifndef RELVM_PEAK_FLOPS_H
#define RELVM_PEAK_FLOPS_H

#include "compiler.h"
#include "gemm_f32.h"
#include "kernel_constants.h"

enum { RVM_PEAK_VECTORS = 12 }; /* independent chains of multiply-adds, to hide their latency */

/* Replaces each of the RVM_PEAK_NUMBERS elements x by x * factor + addend, `steps` times.  With GCC and clang, the
   elements stay in vector registers during all steps. */
static inline RVM_UNUSED void rvm_multiply_adds(const rvm_multiply_adds_arguments *args) {
  const int64_t steps = args->steps;
  const float factor = args->factor, addend = args->addend;
  float *const x = args->x;
#ifdef __GNUC__
  const rvm_lanes addends = addend - (rvm_lanes){0}; /* every lane is `addend`, even if it is -0.0 */
  for (int first = 0; first < RVM_PEAK_NUMBERS; first += RVM_PEAK_VECTORS * RVM_LANES) {
    rvm_lanes sum[RVM_PEAK_VECTORS];
#pragma GCC unroll 12
    for (int v = 0; v < RVM_PEAK_VECTORS; v++) sum[v] = *(const rvm_lanes *)(x + first + v * RVM_LANES);
    for (int64_t step = 0; step < steps; step++)
#pragma GCC unroll 12
      for (int v = 0; v < RVM_PEAK_VECTORS; v++) sum[v] = rvm_fma_lanes(factor, sum[v], addends);
#pragma GCC unroll 12
    for (int v = 0; v < RVM_PEAK_VECTORS; v++) *(rvm_lanes *)(x + first + v * RVM_LANES) = sum[v];
  }
#else
  for (int64_t step = 0; step < steps; step++)
    for (int i = 0; i < RVM_PEAK_NUMBERS; i++) x[i] = x[i] * factor + addend;
#endif
}

#endif
