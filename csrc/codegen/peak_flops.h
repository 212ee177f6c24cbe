/* peak_flops.h: as many multiplications and additions of floats as the processor can do, for
 * relvm/explore/views/machine_peak.py. */
#ifndef RELVM_PEAK_H
#define RELVM_PEAK_H

#include "gemm_f32.h"

enum { RVM_PEAK_VECTORS = 12, RVM_PEAK_NUMBERS = 192 }; /* sums that do not wait for each other; elements of a call */

/* Each of the RVM_PEAK_NUMBERS elements x, in registers, becomes x * factor + added, `steps` times. */
static inline __attribute__((unused)) void rvm_multiply_adds(float *x, int64_t steps, float factor, float added) {
#ifdef __GNUC__
  const rvm_lanes more = added - (rvm_lanes){0};
  for (int first = 0; first < RVM_PEAK_NUMBERS; first += RVM_PEAK_VECTORS * RVM_LANES) {
    rvm_lanes sum[RVM_PEAK_VECTORS];
#pragma GCC unroll 12
    for (int v = 0; v < RVM_PEAK_VECTORS; v++) sum[v] = *(const rvm_lanes *)(x + first + v * RVM_LANES);
    for (int64_t step = 0; step < steps; step++)
#pragma GCC unroll 12
      for (int v = 0; v < RVM_PEAK_VECTORS; v++) sum[v] = rvm_fma_lanes(factor, sum[v], more);
#pragma GCC unroll 12
    for (int v = 0; v < RVM_PEAK_VECTORS; v++) *(rvm_lanes *)(x + first + v * RVM_LANES) = sum[v];
  }
#else
  for (int64_t step = 0; step < steps; step++)
    for (int i = 0; i < RVM_PEAK_NUMBERS; i++) x[i] = x[i] * factor + added;
#endif
}

#endif
