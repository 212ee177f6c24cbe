/* micro_kernels.c: see micro_kernels.h.  Each function computes from its numbers which elements the micro-kernel
   touches, and compares that with the buffers. */
#include "micro_kernels.h"

#include <math.h>
#include <string.h>

#include "attention.h"
#include "compiler.h"
#include "gemm_f32.h"
#include "gemm_int8.h"
#include "kernel_loops.h"
#include "kernel_math.h"
#include "pooling.h"
#include "winograd.h"

enum {
  LARGEST = 1 << 30, /* of a number: products of two, and sums of some such products, fit an int64 */
  OFFSETS = 512,     /* that are looked at together */
};

static int is_size(int64_t number) { return number >= 0 && number <= LARGEST; }
static int64_t rounded(int64_t number, int64_t multiple) { return (number + multiple - 1) / multiple * multiple; }
static int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }

/* The address of an argument from which elements [low, high) of `bytes` bytes are there; NULL: they are not, or they
   are not aligned.  No element is there where high <= low. */
static const void *place(const rvm_micro_argument *argument, int64_t low, int64_t high, int64_t bytes) {
  static const int64_t nothing;
  const int64_t size = argument->bytes / bytes, at = argument->number;
  if (high <= low) return &nothing;
  if (at < 0 || at > size || low < -at || high > size - at || (uintptr_t)argument->at % (uint64_t)bytes != 0)
    return NULL;
  return argument->at + at * bytes;
}
/* Whether two ranges of floats have an element in common; those that are copied may not. */
static int overlap(const float *a, int64_t a_count, const float *b, int64_t b_count) {
  const uintptr_t left = (uintptr_t)a, right = (uintptr_t)b;
  return a_count > 0 && b_count > 0 && left < right + (uint64_t)b_count * 4 && right < left + (uint64_t)a_count * 4;
}
#define PLACE(T, name, index, low, high)                                                  \
  T *const name = (T *)(uintptr_t)place(&argument[index], low, high, (int64_t)sizeof(T)); \
  if (!name) return RVM_MICRO_REFUSED
#define SIZE(name, index)                      \
  const int64_t name = argument[index].number; \
  if (!is_size(name)) return RVM_MICRO_REFUSED

/* Refuses a call that cannot be cut into portions if its `work`, a double, would take too long. */
#define EXPECT_WORK(work, most) \
  if ((work) > (most)) return RVM_MICRO_REFUSED

#define SPEND(work) \
  if (!watch->spend(watch->host, work)) return RVM_MICRO_ENDED

/* Returns the number of items of `work` each in a portion: a multiple of `multiple`, and at least that. */
static int64_t portion(int64_t work, int64_t multiple) {
  const int64_t count = RVM_MICRO_PORTION / (work > 0 ? work : 1) / multiple * multiple;
  return count > 0 ? count : multiple;
}

/* The same code for each number of rows, which is then a constant. */
#define EACH_ROW_COUNT(CALL) \
  switch (rows) {            \
    case 1: CALL(1); break;  \
    case 2: CALL(2); break;  \
    case 3: CALL(3); break;  \
    case 4: CALL(4); break;  \
    case 5: CALL(5); break;  \
    default: CALL(6);        \
  }

static int64_t last_of(int64_t count, int64_t step) { return count > 0 ? (count - 1) * step : 0; }

enum { TILE_COLUMNS = 4096 }; /* of a portion */

static int run_rvm_tile_f32(const rvm_micro_argument *argument, const rvm_micro_watch *watch) {
  SIZE(rows, 0);
  SIZE(columns, 1);
  SIZE(depth, 2);
  SIZE(a_row, 4);
  SIZE(a_step, 5);
  SIZE(b_step, 7);
  SIZE(tile_row, 9);
  if (rows < 1 || rows > 6 || columns < 1) return RVM_MICRO_REFUSED;
  const int64_t wide = rounded(columns, 16);
  PLACE(const float, a, 3, 0, depth > 0 ? last_of(rows, a_row) + last_of(depth, a_step) + 1 : 0);
  PLACE(const float, b, 6, 0, depth > 0 ? last_of(depth, b_step) + wide : 0);
  PLACE(float, tile, 8, 0, last_of(rows, tile_row) + wide);
  for (int64_t j = 0; j < columns; j += TILE_COLUMNS) {
    const int64_t across = least_of(columns - j, TILE_COLUMNS), most = portion(rows * across, 64);
    for (int64_t p = 0; p == 0 || p < depth; p += most) {
      const int64_t deep = least_of(depth - p, most);
      const int adds = p > 0 || argument[10].number != 0;
      SPEND(rows * across * (deep + 1));
#define CALL(rows)                                                                                                     \
  rvm_tile_f32(rows, (int)across, deep, a + p * a_step, a_row, a_step, b + p * b_step + j, b_step, tile + j, tile_row, \
               adds)
      EACH_ROW_COUNT(CALL)
#undef CALL
    }
  }
  return RVM_MICRO_DONE;
}

/* Some offsets, copied: the micro-kernel that uses them, or another thread, may write to where they were. */
typedef struct offsets {
  int64_t numbers[OFFSETS], least, most;
} offsets;

/* 0 where one is too large. */
static int copy_offsets(offsets *to, const int64_t *from, int64_t count) {
  memcpy(to->numbers, from, (size_t)count * sizeof *from);
  to->least = to->most = count > 0 ? to->numbers[0] : 0;
  for (int64_t i = 0; i < count; i++) {
    if (to->numbers[i] < to->least) to->least = to->numbers[i];
    if (to->numbers[i] > to->most) to->most = to->numbers[i];
  }
  return to->least >= -(int64_t)LARGEST && to->most <= LARGEST;
}

static int run_rvm_columns_f32(const rvm_micro_argument *argument, const rvm_micro_watch *watch) {
  SIZE(taps, 0);
  SIZE(rows, 1);
  SIZE(places, 2);
  SIZE(count, 3);
  SIZE(step, 6);
  SIZE(pitch, 9);
  SIZE(sums_pitch, 11);
  if (taps < 1 || taps > RVM_COLUMN_TAPS) return RVM_MICRO_REFUSED;
  PLACE(const int64_t, all_offsets, 4, 0, count);
  PLACE(const int64_t, all_firsts, 5, 0, count);
  const int64_t high = rounded(rows, RVM_COLUMN_ROWS), wide = rounded(places, 16);
  if (high == 0 || wide == 0) return RVM_MICRO_DONE;
  PLACE(float, sums, 10, 0, last_of(high, sums_pitch) + wide);
  for (int64_t c = 0; c == 0 || c < count; c += OFFSETS) {
    offsets near, first;
    const int64_t some = least_of(count - c, OFFSETS), most_places = portion(RVM_COLUMN_ROWS * taps * some, 16);
    const int64_t most_rows = portion(taps * some * least_of(wide, most_places), RVM_COLUMN_ROWS);
    const int adds = c > 0 || argument[12].number != 0;
    if (!copy_offsets(&near, all_offsets + c, some) || !copy_offsets(&first, all_firsts + c, some))
      return RVM_MICRO_REFUSED;
    PLACE(const float, weights, 7, first.least, some > 0 ? first.most + last_of(taps, step) + 1 : first.least);
    PLACE(const float, x, 8, near.least, some > 0 ? near.most + last_of(high + taps - 1, pitch) + wide : near.least);
    for (int64_t r = 0; r < rows; r += most_rows)
      for (int64_t j = 0; j < places; j += most_places) {
        const int64_t down = least_of(rows - r, most_rows), across = least_of(places - j, most_places);
        SPEND(rounded(down, RVM_COLUMN_ROWS) * rounded(across, 16) * (taps * some + 1));
#define CALL(taps)                                                                                                \
  rvm_columns_f32(taps, down, across, some, near.numbers, first.numbers, step, weights, x + r * pitch + j, pitch, \
                  sums + r * sums_pitch + j, sums_pitch, adds)
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
      }
  }
  return RVM_MICRO_DONE;
}

static int run_rvm_taps_f32(const rvm_micro_argument *argument, const rvm_micro_watch *watch) {
  SIZE(columns, 0);
  SIZE(taps, 1);
  const int64_t wide = rounded(columns, 64);
  PLACE(const int64_t, all_offsets, 2, 0, taps);
  PLACE(const float, weights, 3, 0, taps);
  PLACE(float, sums, 5, 0, wide);
  for (int64_t t = 0; t == 0 || t < taps; t += OFFSETS) {
    offsets near;
    const int64_t some = least_of(taps - t, OFFSETS), most = portion(some, 64);
    const int adds = t > 0 || argument[6].number != 0;
    if (!copy_offsets(&near, all_offsets + t, some)) return RVM_MICRO_REFUSED;
    PLACE(const float, x, 4, near.least, some > 0 ? near.most + wide : near.least);
    for (int64_t j = 0; j < columns; j += most) {
      const int64_t across = least_of(columns - j, most);
      SPEND(rounded(across, 64) * (some + 1));
      rvm_taps_f32(across, some, near.numbers, weights + t, x + j, sums + j, adds);
    }
  }
  return RVM_MICRO_DONE;
}

static int run_rvm_window_rows_f32(const rvm_micro_argument *argument, const rvm_micro_watch *watch) {
  SIZE(to_row, 1);
  SIZE(x_row, 3);
  SIZE(step, 4);
  SIZE(rows, 5);
  SIZE(low, 6);
  SIZE(first, 7);
  SIZE(end, 8);
  SIZE(high, 9);
  if (low > first || first > end || end > high) return RVM_MICRO_REFUSED;
  EXPECT_WORK((double)(high - low), 0x1p26);
  if (rows == 0 || high == low) return RVM_MICRO_DONE;
  const int64_t written = last_of(rows, to_row) + high,
                read = end > first ? last_of(rows, x_row) + last_of(end - first, step) + 1 : 0;
  PLACE(float, to, 0, low, written);
  PLACE(const float, x, 2, 0, read);
  if (overlap(to + low, written - low, x, read)) return RVM_MICRO_REFUSED;
  const int64_t most = portion(high - low, 1);
  for (int64_t r = 0; r < rows; r += most) {
    const int64_t some = least_of(rows - r, most);
    SPEND(some * (high - low));
    rvm_window_rows_f32(to + r * to_row, to_row, x + (read ? r * x_row : 0), x_row, step, some, low, first, end, high);
  }
  return RVM_MICRO_DONE;
}

static int run_rvm_window_panel_f32(const rvm_micro_argument *argument, const rvm_micro_watch *watch) {
  SIZE(pitch, 1);
  SIZE(high, 3);
  SIZE(wide, 4);
  SIZE(out_wide, 5);
  SIZE(column, 6);
  SIZE(count, 7);
  SIZE(first, 8);
  SIZE(span, 9);
  SIZE(row_taps, 10);
  SIZE(column_taps, 11);
  SIZE(row_stride, 12);
  SIZE(column_stride, 13);
  SIZE(row_pad, 14);
  SIZE(column_pad, 15);
  SIZE(row_dilation, 16);
  SIZE(column_dilation, 17);
  const int64_t taps = row_taps * column_taps;
  if (taps < 1 || taps > LARGEST || high * wide > LARGEST || out_wide < 1 || column_stride < 1 || count > pitch)
    return RVM_MICRO_REFUSED;
  if (span == 0 || count == 0) return RVM_MICRO_DONE;
  const double work = (double)span * (double)pitch + (double)taps * (double)(count / out_wide + 2);
  EXPECT_WORK(work, 0x1p26);
  const int64_t read = ((first + span - 1) / taps + 1) * (high * wide), written = last_of(span, pitch) + pitch;
  PLACE(float, panel, 0, 0, written);
  PLACE(const float, x, 2, 0, read);
  if (overlap(panel, written, x, read)) return RVM_MICRO_REFUSED;
  SPEND((int64_t)work);
  rvm_window_panel_f32(panel, pitch, x, high, wide, out_wide, column, count, first, span, row_taps, column_taps,
                       row_stride, column_stride, row_pad, column_pad, row_dilation, column_dilation);
  return RVM_MICRO_DONE;
}

/* Parts of one row, where that is long; else some rows. */
static int run_rvm_max_pool_f32(const rvm_micro_argument *argument, const rvm_micro_watch *watch) {
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
  if (column_taps < 1 || row_stride < 1 || column_stride < 1 || row_dilation < 1 || column_dilation < 1)
    return RVM_MICRO_REFUSED;
  if ((column_taps - 1) * column_dilation >= RVM_POOL_LINE || planes * rows > LARGEST || high * wide > LARGEST)
    return RVM_MICRO_REFUSED;
  EXPECT_WORK((double)(row_taps + 1) * RVM_POOL_LINE, 0x1p26);
  if (rows == 0 || columns == 0) return RVM_MICRO_DONE;
  PLACE(float, out, 0, 0, planes * rows * columns);
  PLACE(const float, x, 1, 0, planes *(high * wide));
  const int64_t reach = (column_taps - 1) * column_dilation, line = (RVM_POOL_LINE - 1 - reach) / column_stride + 1;
  const int64_t of_line = (row_taps + 1) * ((line - 1) * column_stride + reach + 1) + line * column_taps;
  const int64_t most_columns = portion(of_line, 1) * line; /* `line` columns are computed at a time */
  const int64_t lines = (least_of(columns, most_columns) + line - 1) / line, most_rows = portion(of_line * lines, 1);
  for (int64_t plane = 0; plane < planes; plane++)
    for (int64_t r = 0; r<rows; r += columns> most_columns ? 1 : most_rows)
      for (int64_t j = 0; j < columns; j += most_columns) {
        const int64_t across = least_of(columns - j, most_columns);
        const int64_t down = columns > most_columns ? 1 : least_of(rows - r, most_rows);
        const int64_t pad = column_pad - j * column_stride;
        SPEND(of_line * ((across + line - 1) / line) * down);
#define CALL(taps, stride, dilation)                                                                               \
  rvm_max_pool_f32(out + (plane * rows + r) * columns + j, x + plane * (high * wide), 1, high, wide, down, across, \
                   row_taps, taps, row_stride, stride, row_pad - r * row_stride, pad, row_dilation, dilation)
        if (column_dilation == 1 && column_taps == 2 && column_stride == 2)
          CALL(2, 2, 1);
        else if (column_dilation == 1 && column_taps == 3 && column_stride == 2)
          CALL(3, 2, 1);
        else if (column_dilation == 1 && column_taps == 3 && column_stride == 1)
          CALL(3, 1, 1);
        else if (column_dilation == 1 && column_taps == 4 && column_stride == 4)
          CALL(4, 4, 1);
        else
          CALL(column_taps, column_stride, column_dilation);
#undef CALL
      }
  return RVM_MICRO_DONE;
}

/* The positions are in bytes. */
static int run_rvm_copy_bytes(const rvm_micro_argument *argument, const rvm_micro_watch *watch) {
  SIZE(bytes, 2);
  PLACE(char, to, 0, 0, bytes);
  PLACE(const char, from, 1, 0, bytes);
  for (int64_t at = 0; at < bytes; at += RVM_MICRO_PORTION) {
    const int64_t some = least_of(bytes - at, RVM_MICRO_PORTION);
    SPEND(some / 2); /* memory that is touched for the first time is slow */
    memmove(to + at, from + at, (size_t)some);
  }
  return RVM_MICRO_DONE;
}

static int run_rvm_transposed_tile(const rvm_micro_argument *argument, const rvm_micro_watch *watch) {
  SIZE(row, 2);
  PLACE(int32_t, tile, 0, 0, 256);
  PLACE(const int32_t, x, 1, 0, 15 * row + 16);
  SPEND(256);
  rvm_transposed_tile(tile, x, row);
  return RVM_MICRO_DONE;
}

static int run_rvm_tile_bytes(const rvm_micro_argument *argument, const rvm_micro_watch *watch) {
  SIZE(rows, 0);
  SIZE(columns, 1);
  SIZE(depth, 2);
  SIZE(a_row, 4);
  SIZE(b_step, 8);
  SIZE(tile_row, 10);
  if (rows < 1 || rows > 6 || columns < 1) return RVM_MICRO_REFUSED;
  const int64_t wide = rounded(columns, 16);
  const uint32_t flip = (uint32_t)argument[5].number;
  const int left_is_signed = argument[6].number != 0;
  PLACE(const uint8_t, a, 3, 0, depth > 0 ? last_of(rows, a_row) + depth : 0);
  PLACE(const int32_t, b, 7, 0, depth > 0 ? last_of((depth + 3) / 4, b_step) + wide : 0);
  PLACE(int32_t, tile, 9, 0, last_of(rows, tile_row) + wide);
  for (int64_t j = 0; j < columns; j += TILE_COLUMNS) {
    const int64_t across = least_of(columns - j, TILE_COLUMNS), most = portion(rows * across, 64);
    for (int64_t p = 0; p < depth; p += most) {
      const int64_t deep = least_of(depth - p, most);
      SPEND(rows * across * (deep + 1));
#define CALL(rows)                                                                                                \
  left_is_signed ? rvm_tile_bytes(rows, (int)across, deep, a + p, a_row, flip, 1, b + p / 4 * b_step + j, b_step, \
                                  tile + j, tile_row)                                                             \
                 : rvm_tile_bytes(rows, (int)across, deep, a + p, a_row, flip, 0, b + p / 4 * b_step + j, b_step, \
                                  tile + j, tile_row)
      EACH_ROW_COUNT(CALL)
#undef CALL
    }
  }
  return RVM_MICRO_DONE;
}

static int run_rvm_taps_bytes(const rvm_micro_argument *argument, const rvm_micro_watch *watch) {
  SIZE(columns, 0);
  SIZE(taps, 1);
  const int64_t wide = rounded(columns, 64);
  PLACE(const int64_t, all_offsets, 2, 0, taps);
  PLACE(const int32_t, weights, 3, 0, taps);
  PLACE(int32_t, sums, 5, 0, wide);
  for (int64_t t = 0; t < taps; t += OFFSETS) {
    offsets near;
    const int64_t some = least_of(taps - t, OFFSETS), most = portion(some, 64);
    if (!copy_offsets(&near, all_offsets + t, some)) return RVM_MICRO_REFUSED;
    PLACE(const int32_t, words, 4, near.least, near.most + wide);
    for (int64_t j = 0; j < columns; j += most) {
      const int64_t across = least_of(columns - j, most);
      SPEND(rounded(across, 64) * (some + 1) * 4);
      rvm_taps_bytes(across, some, near.numbers, weights + t, words + j, sums + j);
    }
  }
  return RVM_MICRO_DONE;
}

enum { WORD_WORK = 16, MOST_WORDS = RVM_MICRO_PORTION / WORD_WORK };

static int run_rvm_words_of_bytes(const rvm_micro_argument *argument, const rvm_micro_watch *watch) {
  SIZE(next, 2);
  SIZE(rows, 3);
  SIZE(count, 4);
  SIZE(step, 5);
  if (rows < 1) return RVM_MICRO_REFUSED;
  const int64_t read = least_of(rows, 4);
  PLACE(int32_t, to, 0, 0, count);
  PLACE(const uint8_t, from, 1, 0, count > 0 ? last_of(read, next) + last_of(count, step) + 1 : 0);
  const uint32_t flip = (uint32_t)argument[6].number;
  for (int64_t j = 0; j < count; j += MOST_WORDS) {
    const int64_t some = least_of(count - j, MOST_WORDS);
    SPEND(some * WORD_WORK);
    if (step == 1)
      rvm_words_of_bytes(to + j, from + j, next, (int)read, some, 1, flip);
    else
      rvm_words_of_bytes(to + j, from + j * step, next, (int)read, some, step, flip);
  }
  return RVM_MICRO_DONE;
}

static int run_rvm_words_of_line(const rvm_micro_argument *argument, const rvm_micro_watch *watch) {
  SIZE(size, 2);
  SIZE(next, 4);
  SIZE(rows, 5);
  SIZE(count, 6);
  SIZE(step, 7);
  const int64_t at = argument[3].number;
  if (rows < 1 || step < 1 || at < -(int64_t)LARGEST || at > LARGEST) return RVM_MICRO_REFUSED;
  PLACE(int32_t, to, 0, 0, count);
  PLACE(const uint8_t, line, 1, 0, size);
  const uint8_t padding = (uint8_t)argument[8].number;
  const uint32_t flip = (uint32_t)argument[9].number;
  for (int64_t j = 0; j < count; j += MOST_WORDS) {
    const int64_t some = least_of(count - j, MOST_WORDS);
    SPEND(some * WORD_WORK);
    rvm_words_of_line(to + j, line, size, at + j * step, next, (int)least_of(rows, 4), some, step, padding, flip);
  }
  return RVM_MICRO_DONE;
}

/* No product of sizes is too large, as each is at most LARGEST.  Rows are taken some at a time, but never less than
   RVM_ATTENTION_FEW of more: these are computed otherwise. */
static int run_rvm_attention(const rvm_micro_argument *argument, const rvm_micro_watch *watch) {
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
  if (rows > RVM_ATTENTION_ROWS || (k_row != 1 && k_step != 1)) return RVM_MICRO_REFUSED;
  const int64_t of_key = depth + width + 16;
  EXPECT_WORK((double)keys * (double)of_key, 0x1p27);
  const int64_t columns = rounded(width, 16), even = rounded(keys, RVM_ATTENTION_PANEL);
  const int64_t parts = (keys + RVM_ATTENTION_KEYS - 1) / RVM_ATTENTION_KEYS;
  const int64_t most = parts > 1 ? rounded((keys + parts - 1) / parts, RVM_ATTENTION_PANEL) : even;
  const int64_t panel_columns = keys < RVM_ATTENTION_PANEL ? rounded(keys, 16) : RVM_ATTENTION_PANEL;
  if (rows == 0) return RVM_MICRO_DONE;
  PLACE(const float, q, 4, 0, rows *depth);
  const int64_t k_count = keys > 0 && depth > 0 ? last_of(keys, k_row) + last_of(depth, k_step) + 1 : 0;
  const int64_t copy_count = columns != width ? least_of(keys, most) * columns : 0;
  PLACE(const float, k, 5, 0, k_count);
  PLACE(const float, v, 8, 0, keys *width);
  PLACE(const uint8_t, allowed, 9, 0, keys > 0 ? last_of(rows, allowed_row) + last_of(keys, allowed_step) + 1 : 0);
  PLACE(const float, bias, 12, 0, keys > 0 ? last_of(rows, bias_row) + last_of(keys, bias_step) + 1 : 0);
  PLACE(float, scores, 18, 0, rows *most);
  PLACE(float, panel, 19, 0, depth *panel_columns);
  PLACE(float, copy, 20, 0, copy_count);
  PLACE(float, out, 21, 0, rows *columns);
  if (overlap(panel, depth * panel_columns, k, k_count) || overlap(copy, copy_count, v, keys * width))
    return RVM_MICRO_REFUSED;
  const int64_t at_once = portion(keys * of_key, RVM_ATTENTION_TILE);
  for (int64_t r = 0, count; r < rows; r += count) {
    count = rows - r < at_once + RVM_ATTENTION_FEW ? rows - r : at_once;
    SPEND(count * (keys + 1) * of_key);
    rvm_attention(count, keys, depth, width, q + r * depth, k, k_row, k_step, v, allowed + r * allowed_row, allowed_row,
                  allowed_step, bias + r * bias_row, bias_row, bias_step, argument[15].f32, argument[16].f32,
                  argument[17].number, scores, panel, copy, out + r * columns);
  }
  return RVM_MICRO_DONE;
}

typedef struct winograd_place {
  int64_t channels, high, wide, top, left, spread, tiles_wide, first, count, columns, elements;
} winograd_place;

/* Reads the numbers that begin with argument 1; 0 where one is not as it must be. */
static int winograd_place_of(const rvm_micro_argument *argument, winograd_place *at) {
  for (int i = 1; i <= 10; i++)
    if (!is_size(argument[i].number)) return 0;
  *at = (winograd_place){argument[1].number,
                         argument[2].number,
                         argument[3].number,
                         argument[4].number,
                         argument[5].number,
                         argument[6].number,
                         argument[7].number,
                         argument[8].number,
                         argument[9].number,
                         argument[10].number,
                         0};
  return at->spread > 0 && at->tiles_wide > 0 && at->columns % RVM_WINOGRAD_LANES == 0 &&
         at->columns <= RVM_WINOGRAD_TILES && at->count <= at->columns && at->spread <= 1 << 20 &&
         !__builtin_mul_overflow(at->channels * at->high, at->wide, &at->elements);
}

/* Whether the elements of the transformed weights of `rows` filters can be counted. */
static int weights_of(int64_t rows, int64_t filters, int64_t channels, int64_t *elements) {
  *elements = 0;
  return channels == 0 || (!__builtin_mul_overflow(15 * filters, channels, elements) &&
                           !__builtin_add_overflow(*elements, rows * channels, elements));
}

static int run_rvm_winograd_input(const rvm_micro_argument *argument, const rvm_micro_watch *watch) {
  winograd_place at;
  if (!winograd_place_of(argument, &at)) return RVM_MICRO_REFUSED;
  const double work = (double)at.channels * (double)(at.count + 1) * 64;
  EXPECT_WORK(work, 0x1p26);
  PLACE(const float, planes, 0, 0, at.elements);
  PLACE(float, v, 11, 0, 16 * rvm_winograd_step(at.channels, at.columns));
  PLACE(int64_t, too_large, 12, 0, 1);
  SPEND((int64_t)work);
  rvm_winograd_input(planes, at.channels, at.high, at.wide, at.top, at.left, at.spread, at.tiles_wide, at.first,
                     at.count, at.columns, v, too_large);
  return RVM_MICRO_DONE;
}

static int run_rvm_winograd_product(const rvm_micro_argument *argument, const rvm_micro_watch *watch) {
  SIZE(rows, 0);
  SIZE(columns, 1);
  SIZE(channels, 2);
  SIZE(filters, 3);
  if (rows < 1 || rows > 6 || columns % RVM_WINOGRAD_LANES != 0 || columns > RVM_WINOGRAD_TILES || columns == 0)
    return RVM_MICRO_REFUSED;
  const double work = (double)columns * (double)(channels + 1) * 96;
  int64_t weights;
  EXPECT_WORK(work, 0x1p28);
  if (!weights_of(rows, filters, channels, &weights)) return RVM_MICRO_REFUSED;
  PLACE(const float, u, 4, 0, weights);
  PLACE(const float, v, 5, 0, 16 * rvm_winograd_step(channels, columns));
  PLACE(float, m, 6, 0, 16 * rows * columns);
  SPEND((int64_t)work);
#define CALL(rows) rvm_winograd_product(rows, (int)columns, channels, filters, u, v, m)
  EACH_ROW_COUNT(CALL)
#undef CALL
  return RVM_MICRO_DONE;
}

static int run_rvm_winograd_output(const rvm_micro_argument *argument, const rvm_micro_watch *watch) {
  SIZE(rows, 0);
  SIZE(columns, 1);
  const double work = (double)(rows + 1) * (double)(columns + 1) * 16;
  EXPECT_WORK(work, 0x1p27);
  PLACE(const float, m, 2, 0, 16 * rows * columns);
  PLACE(float, out, 3, 0, rows * 4 * columns);
  SPEND((int64_t)work);
  rvm_winograd_output(rows, columns, m, out);
  return RVM_MICRO_DONE;
}

static int run_rvm_winograd_plain(const rvm_micro_argument *argument, const rvm_micro_watch *watch) {
  winograd_place at;
  if (!winograd_place_of(argument, &at)) return RVM_MICRO_REFUSED;
  SIZE(rows, 11);
  SIZE(filters, 12);
  int64_t weights;
  const double work = (double)(at.channels + 1) * 256;
  EXPECT_WORK(work, 0x1p26);
  if (!weights_of(rows, filters, at.channels, &weights)) return RVM_MICRO_REFUSED;
  if (rows == 0 || at.count == 0) return RVM_MICRO_DONE;
  PLACE(const float, planes, 0, 0, at.elements);
  PLACE(const float, u, 13, 0, weights);
  PLACE(float, out, 14, 0, rows * 4 * at.columns);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < at.count; i++) {
      SPEND((int64_t)work);
      rvm_winograd_plain(planes, at.channels, at.high, at.wide, at.top, at.left, at.spread, at.tiles_wide, at.first + i,
                         1, at.columns, 1, filters, u + r * at.channels, out + r * 4 * at.columns + 2 * i);
    }
  return RVM_MICRO_DONE;
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
