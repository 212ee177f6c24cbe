/* pooling.h: maximum pooling of f32. */
#ifndef RELVM_POOLING_H
#define RELVM_POOLING_H

#include <math.h>
#include <stdint.h>

#include "compiler.h"
#include "kernel_constants.h"
#include "micro_kernel_arguments.h"

/* Returns the larger number, or NaN if one is NaN, without a branch. */
static inline float rvm_larger_or_nan(float total, float element) {
  return ((element > total) | (element != element)) ? element : total;
}

/* Computes columns [first, first + count) of one row of the result, from out[first] on.  x: the plane.  y: the row of
   the plane at which the windows begin, which may be negative. */
static inline RVM_ALWAYS_INLINE void rvm_max_pool_columns(const rvm_max_pool_f32_arguments *args, float *out,
                                                          const float *x, int64_t y, int64_t first, int64_t count) {
  const int64_t window_width = args->window_width, stride = args->stride_x, dilation = args->dilation_x;
  /* line[i]: the maximum of column left + i of the plane over the rows of the windows. */
  float line[RVM_POOL_LINE];
  const int64_t span = (count - 1) * stride + (window_width - 1) * dilation + 1, left = first * stride - args->pad_x;
  const int64_t begin = left >= 0 ? 0 : -left < span ? -left : span;
  const int64_t end = args->width - left < span ? args->width - left : span;
  RVM_SIMD()
  for (int64_t i = 0; i < span; i++) line[i] = -INFINITY;
  for (int64_t tap = 0; tap < args->window_height; tap++) {
    const int64_t row = y + tap * args->dilation_y;
    if (row < 0 || row >= args->height) continue;
    const float *source = x + row * args->width;
    RVM_SIMD()
    for (int64_t i = begin; i < end; i++) line[i] = rvm_larger_or_nan(line[i], source[left + i]);
  }
  RVM_SIMD()
  for (int64_t o = 0; o < count; o++) {
    float total = line[o * stride];
#pragma GCC unroll 8
    for (int64_t tap = 1; tap < window_width; tap++)
      total = rvm_larger_or_nan(total, line[o * stride + tap * dilation]);
    out[first + o] = total;
  }
}

/* Computes the maximum of each window: `planes` planes of height x width elements become planes of out_height x
   out_width.  Elements outside a plane are ignored.  Requires (window_width - 1) * dilation_x < RVM_POOL_LINE.  A
   caller that knows sizes, strides or dilations passes constants, so that the C compiler can specialize this
   function. */
static inline RVM_ALWAYS_INLINE void rvm_max_pool_f32(const rvm_max_pool_f32_arguments *args) {
  const int64_t columns = args->out_width;
  const int64_t most = (RVM_POOL_LINE - 1 - (args->window_width - 1) * args->dilation_x) / args->stride_x + 1;
  const float *x = args->x;
  float *out = args->out;
  for (int64_t plane = 0; plane < args->planes; plane++, x += args->height * args->width)
    for (int64_t row = 0; row < args->out_height; row++, out += columns) {
      const int64_t y = row * args->stride_y - args->pad_y;
      if (columns <= most) { /* a separate call: here `columns` is a constant if out_width is one */
        rvm_max_pool_columns(args, out, x, y, 0, columns);
        continue;
      }
      for (int64_t first = 0; first < columns; first += most)
        rvm_max_pool_columns(args, out, x, y, first, columns - first < most ? columns - first : most);
    }
}

#endif
