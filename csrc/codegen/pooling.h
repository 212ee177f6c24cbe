/* pooling.h: maximum and average pooling of f32. */
#ifndef RELVM_POOLING_H
#define RELVM_POOLING_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "kernel_constants.h"
#include "micro_kernel_arguments.h"

enum { RVM_POOL_ROWS = 4 }; /* rows of windows whose columns are combined together, at least; fewer are no faster */

/* Returns the larger number, or NaN if one is NaN, without a branch. */
static inline float rvm_larger_or_nan(float total, float element) {
  const float larger = element > total ? element : total; /* `total` if one is NaN */
  return element == element ? larger : element;
}

/* Combines two elements of a window: returns their sum if `is_mean`, otherwise the larger one. */
static inline RVM_ALWAYS_INLINE float rvm_pooled(int is_mean, float total, float element) {
  return is_mean ? total + element : rvm_larger_or_nan(total, element);
}

/* Stores in `line` the combined rows of a window, for each of `span` columns of a plane x.
   y: the row of the plane at which the window begins.  left: the first of the columns.  Both may be negative. */
static inline RVM_ALWAYS_INLINE void rvm_pool_line(const rvm_max_pool_f32_arguments *args, int is_mean, float *line,
                                                   const float *x, int64_t y, int64_t left, int64_t span) {
  const float start = is_mean ? 0 : -INFINITY;
  /* The columns [begin, end) of the line are inside the plane. */
  const int64_t outside = -left < span ? -left : span, begin = left < 0 ? outside : 0;
  const int64_t inside = args->width - left < span ? args->width - left : span, end = inside > begin ? inside : begin;
  int is_first = 1;
  for (int64_t i = 0; i < begin; i++) line[i] = start;
  for (int64_t i = end; i < span; i++) line[i] = start;
  if (args->window_height == 3 && !is_mean && !RVM_IS_COMPACT && y >= 0 && y + 2 * args->dilation_y < args->height) {
    const int64_t distance = args->dilation_y * args->width;
    const float *const top = x + y * args->width + left, *const middle = top + distance, *const low = middle + distance;
    RVM_SIMD()
    for (int64_t i = begin; i < end; i++) line[i] = rvm_larger_or_nan(rvm_larger_or_nan(top[i], middle[i]), low[i]);
    return;
  }
  for (int64_t tap = 0; tap < args->window_height; tap++) {
    const int64_t row = y + tap * args->dilation_y;
    if (row < 0 || row >= args->height) continue;
    const float *source = x + row * args->width;
    if (is_first) {
      RVM_SIMD()
      for (int64_t i = begin; i < end; i++) line[i] = is_mean ? 0 + source[left + i] : source[left + i];
    } else {
      RVM_SIMD()
      for (int64_t i = begin; i < end; i++) line[i] = rvm_pooled(is_mean, line[i], source[left + i]);
    }
    is_first = 0;
  }
  if (is_first) {
    RVM_SIMD()
    for (int64_t i = begin; i < end; i++) line[i] = start;
  }
}

/* Stores in out[o] the combined columns of a window, which begin at line[o * stride_x]. */
static inline RVM_ALWAYS_INLINE void rvm_pool_columns(const rvm_max_pool_f32_arguments *args, int is_mean, float *out,
                                                      const float *line, int64_t count) {
  const int64_t stride = args->stride_x, dilation = args->dilation_x;
  if (args->window_width == 2 && !is_mean && !RVM_IS_COMPACT) {
    RVM_SIMD()
    for (int64_t o = 0; o < count; o++) out[o] = rvm_larger_or_nan(line[o * stride], line[o * stride + dilation]);
    return;
  }
  if (args->window_width == 3 && !is_mean && !RVM_IS_COMPACT) {
    RVM_SIMD()
    for (int64_t o = 0; o < count; o++) {
      const float larger = rvm_larger_or_nan(line[o * stride], line[o * stride + dilation]);
      out[o] = rvm_larger_or_nan(larger, line[o * stride + 2 * dilation]);
    }
    return;
  }
  if (args->window_width == 4 && !is_mean && !RVM_IS_COMPACT) {
    RVM_SIMD()
    for (int64_t o = 0; o < count; o++) {
      const float *window = line + o * stride;
      const float left = rvm_larger_or_nan(window[0], window[dilation]);
      const float right = rvm_larger_or_nan(window[2 * dilation], window[3 * dilation]);
      out[o] = rvm_larger_or_nan(left, right);
    }
    return;
  }
  for (int64_t tap = 0; tap < args->window_width; tap++) {
    const float *source = line + tap * dilation;
    if (tap == 0) {
      RVM_SIMD()
      for (int64_t o = 0; o < count; o++) out[o] = source[o * stride];
    } else if (stride == 1) { /* without gathers */
      RVM_SIMD()
      for (int64_t o = 0; o < count; o++) out[o] = rvm_pooled(is_mean, out[o], source[o]);
    } else {
      RVM_SIMD()
      for (int64_t o = 0; o < count; o++) out[o] = rvm_pooled(is_mean, out[o], source[o * stride]);
    }
  }
}

/* Returns how many of the `taps` positions begin, begin + dilation, ... are in [0, size). */
static inline int64_t rvm_taps_inside(int64_t begin, int64_t taps, int64_t dilation, int64_t size) {
  if (begin >= 0 && begin + (taps - 1) * dilation < size) return taps;
  const int64_t first = begin < 0 ? (dilation - 1 - begin) / dilation : 0;
  const int64_t end = begin < size ? (size - 1 - begin) / dilation + 1 : 0, stop = end < taps ? end : taps;
  return stop > first ? stop - first : 0;
}

/* Computes the maximum of each window, or its mean if `is_mean`.

   Short rows of windows, which can be in several planes, are combined as if their lines were one long line, in which
   they are `pitch` apart.  This is a multiple of stride_x, so every window begins at a multiple of stride_x.  Windows
   that extend past the end of a line are not stored.

   counts_padding: whether a mean is the sum divided by the size of the window, otherwise by the number of its elements
   inside the plane. */
static inline RVM_ALWAYS_INLINE void rvm_pool_planes(const rvm_max_pool_f32_arguments *args, int is_mean,
                                                     int counts_padding) {
  const int64_t stride = args->stride_x, columns = args->out_width, width = args->width;
  const int64_t reach = (args->window_width - 1) * args->dilation_x;
  const int64_t most = (RVM_POOL_LINE - 1 - reach) / stride + 1; /* windows that fit in `line` */
  const int64_t windows = (columns * stride + reach) / stride, pitch = windows * stride;
  const int is_short = columns > 0 && pitch <= (RVM_POOL_LINE - reach) / RVM_POOL_ROWS;
  const int64_t group = is_short && !is_mean && !RVM_IS_COMPACT ? (RVM_POOL_LINE - reach) / pitch : 1;
  const int64_t all = args->planes * args->out_height;
  const float *x = args->x;
  float *out = args->out;
  int64_t row = 0; /* the row of windows in the plane x */
  /* counts: for each window in `line`, how many of its columns a mean counts.  counted: the first window of the row
     that has no count yet. */
  float line[RVM_POOL_LINE], counts[RVM_POOL_LINE], maxima[RVM_POOL_LINE];
  int64_t counted = 0;
  if (group > 1) memset(line, 0, sizeof line);
  for (int64_t batch = 0; batch < all; batch += group) {
    const int64_t rows = all - batch < group ? all - batch : group;
    const float *plane = x;
    int64_t next = row;
    for (int64_t first = 0; first < columns; first += most) {
      /* If `columns` is a compile-time constant and the row is one part, `count` is a compile-time constant, too. */
      const int64_t count = columns <= most ? columns : columns - first < most ? columns - first : most;
      plane = x;
      next = row;
      for (int64_t r = 0; r < rows; r++) {
        rvm_pool_line(args, is_mean, line + r * pitch, plane, next * args->stride_y - args->pad_y,
                      first * stride - args->pad_x, (count - 1) * stride + reach + 1);
        if (++next == args->out_height) {
          next = 0;
          plane += args->height * width;
        }
      }
      float *const target = rows == 1 || windows == columns ? out + first : maxima;
      rvm_pool_columns(args, is_mean, target, line, (rows - 1) * windows + count);
      for (int64_t r = 0; r < rows && target == maxima; r++) {
        RVM_SIMD()
        for (int64_t o = 0; o < columns; o++) out[r * columns + o] = maxima[r * windows + o];
      }
      if (!is_mean) continue;
      const int64_t taps = args->window_width, dilation = args->dilation_x;
      for (; counted < first + count; counted++) /* in the first row, or in each row of several parts */
        counts[counted - first] =
            (float)(counts_padding ? taps : rvm_taps_inside(counted * stride - args->pad_x, taps, dilation, width));
      if (columns > most) counted = first + count == columns ? 0 : first + count;
      const int64_t y = row * args->stride_y - args->pad_y, high = args->window_height;
      const float inside = (float)(counts_padding ? high : rvm_taps_inside(y, high, args->dilation_y, args->height));
      RVM_SIMD()
      for (int64_t o = 0; o < count; o++) out[first + o] /= inside * counts[o];
    }
    x = plane;
    row = next;
    out += rows * columns;
  }
}

/* Computes the maximum of each window: `planes` planes of height x width elements become planes of out_height x
   out_width.  Elements outside a plane are ignored.  Requires (window_width - 1) * dilation_x < RVM_POOL_LINE.  A
   caller that knows sizes, strides or dilations passes constants, so that the C compiler can specialize this
   function. */
static inline RVM_ALWAYS_INLINE void rvm_max_pool_f32(const rvm_max_pool_f32_arguments *args) {
  rvm_pool_planes(args, 0, 0);
}

static inline RVM_UNUSED rvm_max_pool_f32_arguments rvm_averaged_windows(const rvm_average_pool_f32_arguments *args) {
  return (rvm_max_pool_f32_arguments){
      .out = args->out,
      .x = args->x,
      .planes = args->planes,
      .height = args->height,
      .width = args->width,
      .out_height = args->out_height,
      .out_width = args->out_width,
      .window_height = args->window_height,
      .window_width = args->window_width,
      .stride_y = args->stride_y,
      .stride_x = args->stride_x,
      .pad_y = args->pad_y,
      .pad_x = args->pad_x,
      .dilation_y = args->dilation_y,
      .dilation_x = args->dilation_x,
  };
}

/* Like rvm_max_pool_f32, for the mean of each window.  The rows of a window are added in order, then the columns.
   counts_padding: see rvm_pool_planes. */
static inline RVM_ALWAYS_INLINE void rvm_average_pool_f32(const rvm_average_pool_f32_arguments *args) {
  const rvm_max_pool_f32_arguments windows = rvm_averaged_windows(args);
  rvm_pool_planes(&windows, 1, args->counts_padding != 0);
}

#endif
