/* micro_kernels.c: see micro_kernels.h.  Each function computes from its numbers which elements the micro-kernel touches, and
   compares that with the buffers. */
#include "micro_kernels.h"

#include <math.h>

#include "attention.h"
#include "compiler.h"
#include "gemm_f32.h"
#include "gemm_int8.h"
#include "kernel_loops.h"
#include "kernel_math.h"
#include "pooling.h"
#include "winograd.h"

enum { LARGEST = 1 << 30 }; /* of a number: products of two, and sums of some such products, fit an int64 */

static int is_size(int64_t number) { return number >= 0 && number <= LARGEST; }
static int64_t rounded(int64_t number, int64_t multiple) { return (number + multiple - 1) / multiple * multiple; }

/* The address of an argument from which elements [low, high) of `bytes` bytes are there; NULL: they are not.  No element is
   there where high <= low. */
static const void *place(const rvm_micro_argument *argument, int64_t low, int64_t high, int64_t bytes) {
  const int64_t size = argument->bytes / bytes, at = argument->number;
  if (high > low && (at < 0 || at > size || low < -at || high > size - at)) return NULL;
  if (high <= low) return argument->at ? argument->at : "";
  return argument->at + at * bytes;
}
#define PLACE(T, name, index, low, high)                                       \
  T *const name = (T *)(uintptr_t)place(&argument[index], low, high, (int64_t)sizeof(T)); \
  if (!name) return 0
#define SIZE(name, index)                        \
  const int64_t name = argument[index].number;   \
  if (!is_size(name)) return 0

/* The multiply-adds of a call are so few that it ends soon. */
#define EXPECT_WORK(work) \
  if ((double)(work) > 0x1p34) return 0

/* The same code for each number of rows, which is then a constant. */
#define EACH_ROW_COUNT(CALL)                                                                         \
  switch (rows) {                                                                                    \
    case 1: CALL(1); break;                                                                          \
    case 2: CALL(2); break;                                                                          \
    case 3: CALL(3); break;                                                                          \
    case 4: CALL(4); break;                                                                          \
    case 5: CALL(5); break;                                                                          \
    default: CALL(6);                                                                                \
  }

static int64_t last_of(int64_t count, int64_t step) { return count > 0 ? (count - 1) * step : 0; }

static int run_rvm_tile_f32(const rvm_micro_argument *argument) {
  SIZE(rows, 0);
  SIZE(columns, 1);
  SIZE(depth, 2);
  SIZE(a_row, 4);
  SIZE(a_step, 5);
  SIZE(b_step, 7);
  SIZE(tile_row, 9);
  if (rows < 1 || rows > 6 || columns < 1) return 0;
  EXPECT_WORK((double)columns * depth);
  const int64_t wide = rounded(columns, 16);
  PLACE(const float, a, 3, 0, depth > 0 ? last_of(rows, a_row) + last_of(depth, a_step) + 1 : 0);
  PLACE(const float, b, 6, 0, depth > 0 ? last_of(depth, b_step) + wide : 0);
  PLACE(float, tile, 8, 0, last_of(rows, tile_row) + wide);
  const int adds = argument[10].number != 0;
#define CALL(rows) rvm_tile_f32(rows, (int)columns, depth, a, a_row, a_step, b, b_step, tile, tile_row, adds)
  EACH_ROW_COUNT(CALL)
#undef CALL
  return 1;
}

/* The smallest and the largest of some numbers, 0 where there are none; 0 where one is too large. */
static int range_of(const int64_t *numbers, int64_t count, int64_t *least, int64_t *most) {
  *least = *most = count > 0 ? numbers[0] : 0;
  for (int64_t i = 0; i < count; i++) {
    if (numbers[i] < *least) *least = numbers[i];
    if (numbers[i] > *most) *most = numbers[i];
  }
  return *least >= -(int64_t)LARGEST && *most <= LARGEST;
}

static int run_rvm_columns_f32(const rvm_micro_argument *argument) {
  SIZE(taps, 0);
  SIZE(rows, 1);
  SIZE(places, 2);
  SIZE(count, 3);
  SIZE(step, 6);
  SIZE(pitch, 9);
  SIZE(sums_pitch, 11);
  if (taps < 1 || taps > RVM_COLUMN_TAPS) return 0;
  PLACE(const int64_t, offsets, 4, 0, count);
  PLACE(const int64_t, firsts, 5, 0, count);
  int64_t near, far, first, last;
  if (!range_of(offsets, count, &near, &far) || !range_of(firsts, count, &first, &last)) return 0;
  const int64_t high = rounded(rows, RVM_COLUMN_ROWS), wide = rounded(places, 16);
  if (high == 0 || wide == 0) return 1;
  EXPECT_WORK((double)high * wide * count);
  PLACE(const float, weights, 7, first, count > 0 ? last + last_of(taps, step) + 1 : first);
  PLACE(const float, x, 8, near, count > 0 ? far + last_of(high + taps - 1, pitch) + wide : near);
  PLACE(float, sums, 10, 0, last_of(high, sums_pitch) + wide);
  const int adds = argument[12].number != 0;
#define CALL(taps) \
  rvm_columns_f32(taps, rows, places, count, offsets, firsts, step, weights, x, pitch, sums, sums_pitch, adds)
  switch (taps) {
    case 1: CALL(1); break;
    case 2: CALL(2); break;
    case 3: CALL(3); break;
    case 4: CALL(4); break;
    case 5: CALL(5); break;
    case 6: CALL(6); break;
    default: CALL(7);
  }
#undef CALL
  return 1;
}

static int run_rvm_taps_f32(const rvm_micro_argument *argument) {
  SIZE(columns, 0);
  SIZE(taps, 1);
  PLACE(const int64_t, offsets, 2, 0, taps);
  int64_t near, far;
  if (!range_of(offsets, taps, &near, &far)) return 0;
  const int64_t wide = rounded(columns, 64);
  EXPECT_WORK((double)wide * taps);
  PLACE(const float, weights, 3, 0, taps);
  PLACE(const float, x, 4, near, taps > 0 ? far + wide : near);
  PLACE(float, sums, 5, 0, wide);
  rvm_taps_f32(columns, taps, offsets, weights, x, sums, argument[6].number != 0);
  return 1;
}

static int run_rvm_window_rows_f32(const rvm_micro_argument *argument) {
  SIZE(to_row, 1);
  SIZE(x_row, 3);
  SIZE(step, 4);
  SIZE(rows, 5);
  SIZE(low, 6);
  SIZE(first, 7);
  SIZE(end, 8);
  SIZE(high, 9);
  if (low > first || first > end || end > high) return 0;
  EXPECT_WORK((double)rows * (high - low));
  PLACE(float, to, 0, low, rows > 0 && high > low ? last_of(rows, to_row) + high : low);
  PLACE(const float, x, 2, 0, rows > 0 && end > first ? last_of(rows, x_row) + last_of(end - first, step) + 1 : 0);
  rvm_window_rows_f32(to, to_row, x, x_row, step, rows, low, first, end, high);
  return 1;
}

static int run_rvm_max_pool_f32(const rvm_micro_argument *argument) {
  SIZE(planes, 2);
  SIZE(high, 3);
  SIZE(wide, 4);
  SIZE(rows, 5);
  SIZE(columns, 6);
  SIZE(row_taps, 7);
  SIZE(column_taps, 8);
  SIZE(row_stride, 9);
  SIZE(column_stride, 10);
  SIZE(row_pad, 11);
  SIZE(column_pad, 12);
  SIZE(row_dilation, 13);
  SIZE(column_dilation, 14);
  if (column_taps < 1 || row_stride < 1 || column_stride < 1 || row_dilation < 1 || column_dilation < 1) return 0;
  if ((column_taps - 1) * column_dilation >= RVM_POOL_LINE) return 0;
  EXPECT_WORK((double)planes * rows * row_taps * ((double)columns * column_stride + RVM_POOL_LINE));
  EXPECT_WORK((double)planes * rows * columns * column_taps);
  PLACE(float, out, 0, 0, planes * rows <= LARGEST && columns > 0 ? planes * rows * columns : 0);
  PLACE(const float, x, 1, 0, high * wide <= LARGEST ? planes * (high * wide) : 0);
  if (planes * rows > LARGEST || high * wide > LARGEST) return 0;
#define CALL(taps, stride)                                                                                             \
  rvm_max_pool_f32(out, x, planes, high, wide, rows, columns, row_taps, taps, row_stride, stride, row_pad, column_pad, \
                   row_dilation, 1)
  if (column_dilation == 1 && column_taps == 2 && column_stride == 2)
    CALL(2, 2);
  else if (column_dilation == 1 && column_taps == 3 && column_stride == 2)
    CALL(3, 2);
  else if (column_dilation == 1 && column_taps == 3 && column_stride == 1)
    CALL(3, 1);
  else if (column_dilation == 1 && column_taps == 4 && column_stride == 4)
    CALL(4, 4);
  else
    rvm_max_pool_f32(out, x, planes, high, wide, rows, columns, row_taps, column_taps, row_stride, column_stride, row_pad,
                     column_pad, row_dilation, column_dilation);
#undef CALL
  return 1;
}

/* The positions are in bytes. */
static int run_rvm_copy_bytes(const rvm_micro_argument *argument) {
  SIZE(bytes, 2);
  PLACE(char, to, 0, 0, bytes);
  PLACE(const char, from, 1, 0, bytes);
  memmove(to, from, (size_t)bytes);
  return 1;
}

static int run_rvm_transposed_tile(const rvm_micro_argument *argument) {
  SIZE(row, 2);
  PLACE(int32_t, tile, 0, 0, 256);
  PLACE(const int32_t, x, 1, 0, 15 * row + 16);
  rvm_transposed_tile(tile, x, row);
  return 1;
}

static int run_rvm_tile_bytes(const rvm_micro_argument *argument) {
  SIZE(rows, 0);
  SIZE(columns, 1);
  SIZE(depth, 2);
  SIZE(a_row, 4);
  SIZE(b_step, 8);
  SIZE(tile_row, 10);
  if (rows < 1 || rows > 6 || columns < 1) return 0;
  EXPECT_WORK((double)columns * depth);
  const int64_t wide = rounded(columns, 16);
  const uint32_t flip = (uint32_t)argument[5].number;
  const int left_is_signed = argument[6].number != 0;
  PLACE(const uint8_t, a, 3, 0, depth > 0 ? last_of(rows, a_row) + depth : 0);
  PLACE(const int32_t, b, 7, 0, depth > 0 ? last_of((depth + 3) / 4, b_step) + wide : 0);
  PLACE(int32_t, tile, 9, 0, last_of(rows, tile_row) + wide);
#define CALL(rows)                                                                                                    \
  left_is_signed ? rvm_tile_bytes(rows, (int)columns, depth, a, a_row, flip, 1, b, b_step, tile, tile_row)            \
                 : rvm_tile_bytes(rows, (int)columns, depth, a, a_row, flip, 0, b, b_step, tile, tile_row)
  EACH_ROW_COUNT(CALL)
#undef CALL
  return 1;
}

static int run_rvm_taps_bytes(const rvm_micro_argument *argument) {
  SIZE(columns, 0);
  SIZE(taps, 1);
  PLACE(const int64_t, offsets, 2, 0, taps);
  int64_t near, far;
  if (!range_of(offsets, taps, &near, &far)) return 0;
  const int64_t wide = rounded(columns, 64);
  EXPECT_WORK((double)wide * taps);
  PLACE(const int32_t, weights, 3, 0, taps);
  PLACE(const int32_t, words, 4, near, taps > 0 ? far + wide : near);
  PLACE(int32_t, sums, 5, 0, wide);
  rvm_taps_bytes(columns, taps, offsets, weights, words, sums);
  return 1;
}

static int run_rvm_words_of_bytes(const rvm_micro_argument *argument) {
  SIZE(next, 2);
  SIZE(rows, 3);
  SIZE(count, 4);
  SIZE(step, 5);
  if (rows < 1) return 0;
  EXPECT_WORK(count);
  PLACE(int32_t, to, 0, 0, count);
  const int64_t read = rows < 4 ? rows : 4;
  PLACE(const uint8_t, from, 1, 0, count > 0 ? last_of(read, next) + last_of(count, step) + 1 : 0);
  const uint32_t flip = (uint32_t)argument[6].number;
  if (step == 1)
    rvm_words_of_bytes(to, from, next, (int)read, count, 1, flip);
  else
    rvm_words_of_bytes(to, from, next, (int)read, count, step, flip);
  return 1;
}

static int run_rvm_words_of_line(const rvm_micro_argument *argument) {
  SIZE(size, 2);
  SIZE(next, 4);
  SIZE(rows, 5);
  SIZE(count, 6);
  SIZE(step, 7);
  const int64_t at = argument[3].number;
  if (rows < 1 || at < -(int64_t)LARGEST || at > LARGEST) return 0;
  PLACE(int32_t, to, 0, 0, count);
  PLACE(const uint8_t, line, 1, 0, size);
  const uint8_t padding = (uint8_t)argument[8].number;
  const uint32_t flip = (uint32_t)argument[9].number;
  rvm_words_of_line(to, line, size, at, next, (int)(rows < 4 ? rows : 4), count, step, padding, flip);
  return 1;
}

/* No product of sizes is too large, as each is at most LARGEST. */
static int run_rvm_attention(const rvm_micro_argument *argument) {
  SIZE(rows, 0);
  SIZE(keys, 1);
  SIZE(depth, 2);
  SIZE(width, 3);
  SIZE(k_row, 6);
  SIZE(k_step, 7);
  SIZE(allowed_row, 10);
  SIZE(allowed_step, 11);
  SIZE(bias_row, 13);
  SIZE(bias_step, 14);
  if (rows > RVM_ATTENTION_ROWS || (k_row != 1 && k_step != 1)) return 0;
  EXPECT_WORK((double)rows * keys * (depth + width + 1));
  const int64_t columns = rounded(width, 16), even = rounded(keys, RVM_ATTENTION_PANEL);
  const int64_t parts = (keys + RVM_ATTENTION_KEYS - 1) / RVM_ATTENTION_KEYS;
  const int64_t most = parts > 1 ? rounded((keys + parts - 1) / parts, RVM_ATTENTION_PANEL) : even;
  const int64_t panel_columns = keys < RVM_ATTENTION_PANEL ? rounded(keys, 16) : RVM_ATTENTION_PANEL;
  if (rows == 0) return 1;
  PLACE(const float, q, 4, 0, rows * depth);
  PLACE(const float, k, 5, 0, keys > 0 && depth > 0 ? last_of(keys, k_row) + last_of(depth, k_step) + 1 : 0);
  PLACE(const float, v, 8, 0, keys * width);
  PLACE(const uint8_t, allowed, 9, 0, keys > 0 ? last_of(rows, allowed_row) + last_of(keys, allowed_step) + 1 : 0);
  PLACE(const float, bias, 12, 0, keys > 0 ? last_of(rows, bias_row) + last_of(keys, bias_step) + 1 : 0);
  PLACE(float, scores, 18, 0, rows * most);
  PLACE(float, panel, 19, 0, depth * panel_columns);
  PLACE(float, copy, 20, 0, columns != width ? (keys < most ? keys : most) * columns : 0);
  PLACE(float, out, 21, 0, rows * columns);
  rvm_attention(rows, keys, depth, width, q, k, k_row, k_step, v, allowed, allowed_row, allowed_step, bias, bias_row, bias_step,
                argument[15].f32, argument[16].f32, argument[17].number, scores, panel, copy, out);
  return 1;
}

typedef struct winograd_place {
  int64_t channels, high, wide, top, left, spread, tiles_wide, first, count, columns;
} winograd_place;

/* Reads the numbers that begin with argument 1; 0 where one is not as it must be. */
static int winograd_place_of(const rvm_micro_argument *argument, winograd_place *at) {
  for (int i = 1; i <= 10; i++)
    if (!is_size(argument[i].number)) return 0;
  *at = (winograd_place){argument[1].number, argument[2].number, argument[3].number, argument[4].number, argument[5].number,
                         argument[6].number, argument[7].number, argument[8].number, argument[9].number, argument[10].number};
  return at->spread > 0 && at->tiles_wide > 0 && at->columns % RVM_WINOGRAD_LANES == 0 && at->columns <= RVM_WINOGRAD_TILES &&
         at->count <= at->columns && at->spread <= 1 << 20 && at->first <= 1 << 30;
}

static int run_rvm_winograd_input(const rvm_micro_argument *argument) {
  winograd_place at;
  if (!winograd_place_of(argument, &at)) return 0;
  int64_t elements;
  if (__builtin_mul_overflow(at.channels * at.high, at.wide, &elements)) return 0;
  EXPECT_WORK((double)at.channels * (at.count + 1) * 64);
  PLACE(const float, planes, 0, 0, elements);
  PLACE(float, v, 11, 0, 16 * rvm_winograd_step(at.channels, at.columns));
  PLACE(int64_t, too_large, 12, 0, 1);
  rvm_winograd_input(planes, at.channels, at.high, at.wide, at.top, at.left, at.spread, at.tiles_wide, at.first, at.count,
                     at.columns, v, too_large);
  return 1;
}

static int run_rvm_winograd_product(const rvm_micro_argument *argument) {
  SIZE(rows, 0);
  SIZE(columns, 1);
  SIZE(channels, 2);
  SIZE(filters, 3);
  if (rows < 1 || rows > 6 || columns % RVM_WINOGRAD_LANES != 0 || columns > RVM_WINOGRAD_TILES || columns == 0) return 0;
  int64_t apart;
  EXPECT_WORK((double)columns * channels * 96);
  if (__builtin_mul_overflow(15 * filters, channels, &apart)) return 0;
  PLACE(const float, u, 4, 0, channels > 0 ? apart + rows * channels : 0);
  PLACE(const float, v, 5, 0, 16 * rvm_winograd_step(channels, columns));
  PLACE(float, m, 6, 0, 16 * rows * columns);
#define CALL(rows) rvm_winograd_product(rows, (int)columns, channels, filters, u, v, m)
  EACH_ROW_COUNT(CALL)
#undef CALL
  return 1;
}

static int run_rvm_winograd_output(const rvm_micro_argument *argument) {
  SIZE(rows, 0);
  SIZE(columns, 1);
  EXPECT_WORK((double)rows * columns * 16);
  PLACE(const float, m, 2, 0, 16 * rows * columns);
  PLACE(float, out, 3, 0, rows * 4 * columns);
  rvm_winograd_output(rows, columns, m, out);
  return 1;
}

static int run_rvm_winograd_plain(const rvm_micro_argument *argument) {
  winograd_place at;
  if (!winograd_place_of(argument, &at)) return 0;
  SIZE(rows, 11);
  SIZE(filters, 12);
  int64_t elements, apart;
  if (__builtin_mul_overflow(at.channels * at.high, at.wide, &elements)) return 0;
  if (__builtin_mul_overflow(15 * filters, at.channels, &apart)) return 0;
  if (rows == 0) return 1;
  EXPECT_WORK((double)rows * at.count * at.channels * 64);
  PLACE(const float, planes, 0, 0, elements);
  PLACE(const float, u, 13, 0, at.channels > 0 ? apart + rows * at.channels : 0);
  PLACE(float, out, 14, 0, rows * 4 * at.columns);
  rvm_winograd_plain(planes, at.channels, at.high, at.wide, at.top, at.left, at.spread, at.tiles_wide, at.first, at.count,
                     at.columns, rows, filters, u, out);
  return 1;
}

extern const rvm_micro_kernel RVM_OF_LEVEL(rvm_micro_kernels)[];
const rvm_micro_kernel RVM_OF_LEVEL(rvm_micro_kernels)[] = {
#define MICRO_KERNEL(name, arguments) {run_##name, arguments},
#include "micro_kernels.def"
#undef MICRO_KERNEL
};
#ifdef RVM_IS_BASE_LEVEL
const int32_t rvm_micro_kernel_count = sizeof rvm_micro_kernels / sizeof *rvm_micro_kernels;
#endif
