/* pooling.h: maximum pooling of float in generated kernels. */
#ifndef RELVM_POOLING_H
#define RELVM_POOLING_H

#include <math.h>
#include <stdint.h>

#include "compiler.h"

enum { RVM_POOL_LINE = 512 }; /* columns of the input at a time, at least the reach of a window */

/* The larger number, or NaN where one is. */
static inline float rvm_larger_or_nan(float total, float element) {
  return ((element > total) | (element != element)) ? element : total; /* without a branch */
}

/* Columns [first, first + count) of one row of the result of rvm_max_pool_f32; x is its plane. */
static inline __attribute__((always_inline)) void rvm_max_pool_columns(float *out, const float *x, int64_t high,
                                                                       int64_t wide, int64_t y, int64_t first,
                                                                       int64_t count, int64_t row_taps,
                                                                       int64_t column_taps, int64_t stride, int64_t pad,
                                                                       int64_t row_dilation, int64_t dilation) {
  float line[RVM_POOL_LINE];
  const int64_t span = (count - 1) * stride + (column_taps - 1) * dilation + 1, shift = first * stride - pad;
  const int64_t low = shift >= 0 ? 0 : -shift < span ? -shift : span, end = wide - shift < span ? wide - shift : span;
  RVM_SIMD()
  for (int64_t i = 0; i < span; i++) line[i] = -INFINITY;
  for (int64_t tap = 0; tap < row_taps; tap++) {
    const int64_t at = y + tap * row_dilation;
    if (at < 0 || at >= high) continue;
    const float *from = x + at * wide;
    RVM_SIMD()
    for (int64_t i = low; i < end; i++) line[i] = rvm_larger_or_nan(line[i], from[shift + i]);
  }
  RVM_SIMD()
  for (int64_t o = 0; o < count; o++) {
    float total = line[o * stride];
#pragma GCC unroll 8
    for (int64_t tap = 1; tap < column_taps; tap++) total = rvm_larger_or_nan(total, line[o * stride + tap * dilation]);
    out[first + o] = total;
  }
}

/* The maximum of each window over the two axes of `planes` planes: `high` by `wide` elements become `rows` by
   `columns`.  Each pair of numbers is for rows and for columns: the sizes, strides, padding before the first element,
   and dilations of windows. What lies outside of a plane does not count.  The rows of the windows are combined first.
   (columns of a window - 1) * dilation < RVM_POOL_LINE. */
static inline __attribute__((always_inline)) void rvm_max_pool_f32(float *out, const float *x, int64_t planes,
                                                                   int64_t high, int64_t wide, int64_t rows,
                                                                   int64_t columns, int64_t row_taps,
                                                                   int64_t column_taps, int64_t row_stride,
                                                                   int64_t stride, int64_t row_pad, int64_t pad,
                                                                   int64_t row_dilation, int64_t dilation) {
  const int64_t most = (RVM_POOL_LINE - 1 - (column_taps - 1) * dilation) / stride + 1;
  for (int64_t plane = 0; plane < planes; plane++, x += high * wide)
    for (int64_t row = 0; row < rows; row++, out += columns) {
      const int64_t y = row * row_stride - row_pad;
      if (columns <= most) { /* sizes that the compiler knows stay constants */
        rvm_max_pool_columns(out, x, high, wide, y, 0, columns, row_taps, column_taps, stride, pad, row_dilation,
                             dilation);
        continue;
      }
      for (int64_t first = 0; first < columns; first += most)
        rvm_max_pool_columns(out, x, high, wide, y, first, columns - first < most ? columns - first : most, row_taps,
                             column_taps, stride, pad, row_dilation, dilation);
    }
}

#endif
