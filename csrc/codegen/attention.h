/* attention.h: fused attention for some rows of q: softmax(q k' scale + bias) v, where k' is the transpose of k.

   At most RVM_ATTENTION_KEYS keys are processed at a time, and only their scores are stored.  The sums of earlier keys
   are rescaled whenever a larger score is found.  Sources: Milakov and Gimelshein, Online normalizer calculation for
   softmax, 2018; Dao and others, FlashAttention, 2022. */
#ifndef RELVM_ATTENTION_H
#define RELVM_ATTENTION_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "gemm_f32.h"
#include "kernel_constants.h"
#include "kernel_math.h"
#include "micro_kernel_arguments.h"

enum { RVM_ATTENTION_FEW = 4 }; /* for fewer rows than this, k is not copied to panels */

/* A matrix.  The strides are the distances between adjacent rows and between adjacent columns, in elements. */
typedef struct rvm_matrix {
  const float *elements;
  int64_t row_stride, column_stride;
} rvm_matrix;

/* Like rvm_tile_f32, for any number of rows.  args.columns is a multiple of RVM_TILE_STEP. */
static inline void rvm_attention_product(rvm_tile_f32_arguments args) {
  for (int64_t rows = args.rows; rows > 0; rows -= RVM_TILE_ROWS) {
    args.rows = rows < RVM_TILE_ROWS ? rows : RVM_TILE_ROWS;
    rvm_tile_f32(&args);
    args.a += RVM_TILE_ROWS * args.a_row_stride;
    args.tile += RVM_TILE_ROWS * args.tile_stride;
  }
}

/* Rounds up to a multiple of RVM_TILE_STEP. */
static inline int64_t rvm_attention_rounded(int64_t columns) {
  return (columns + RVM_TILE_STEP - 1) / RVM_TILE_STEP * RVM_TILE_STEP;
}

/* Returns the sum over i < count of x[i] * y[i].  Product i is added to lane i % RVM_SUM_LANES, and the lanes are added
   at the end. */
static inline float rvm_dot_f32(const float *x, const float *y, int64_t count) {
  float sums[RVM_SUM_LANES] = {0};
  int64_t first = 0;
  for (; first + RVM_SUM_LANES <= count; first += RVM_SUM_LANES) {
    RVM_SIMD()
    for (int lane = 0; lane < RVM_SUM_LANES; lane++)
      sums[lane] = RVM_FMA_F32(x[first + lane], y[first + lane], sums[lane]);
  }
  for (int lane = 0; first + lane < count; lane++)
    sums[lane] = RVM_FMA_F32(x[first + lane], y[first + lane], sums[lane]);
  return rvm_sum_of_lanes_f32(sums);
}

/* Computes scores = q k' for fewer than RVM_ATTENTION_FEW rows. */
static inline void rvm_attention_few_scores(int64_t rows, int64_t keys, int64_t depth, rvm_matrix q, rvm_matrix k,
                                            float *scores, int64_t scores_stride) {
  for (int64_t r = 0; r < rows; r++) {
    const float *query = q.elements + r * q.row_stride;
    float *row = scores + r * scores_stride;
    if (k.column_stride == 1) {
      for (int64_t j = 0; j < keys; j++) row[j] = rvm_dot_f32(query, k.elements + j * k.row_stride, depth);
      continue;
    }
    memset(row, 0, (size_t)keys * sizeof *row);
    for (int64_t p = 0; p < depth; p++) {
      const float *column = k.elements + p * k.column_stride;
      for (int64_t j = 0; j < keys; j++) row[j] = RVM_FMA_F32(query[p], column[j], row[j]);
    }
  }
}

/* Computes scores = q k' for `keys` keys.  q.column_stride is 1, k.row_stride or k.column_stride is 1, and
   scores_stride is a multiple of RVM_TILE_STEP.  panel: memory for depth * columns elements.  `columns` is the smaller
   of RVM_ATTENTION_PANEL and the number of keys rounded up to a multiple of RVM_TILE_STEP. */
static inline void rvm_attention_scores(int64_t rows, int64_t keys, int64_t depth, rvm_matrix q, rvm_matrix k,
                                        float *panel, float *scores, int64_t scores_stride) {
  if (rows < RVM_ATTENTION_FEW) {
    rvm_attention_few_scores(rows, keys, depth, q, k, scores, scores_stride);
    return;
  }
  for (int64_t first = 0; first < keys; first += RVM_ATTENTION_PANEL) {
    const int64_t count = keys - first < RVM_ATTENTION_PANEL ? keys - first : RVM_ATTENTION_PANEL;
    const int64_t columns = rvm_attention_rounded(count);
    const float *source = k.elements + first * k.row_stride;
    if (k.row_stride == 1) {
      for (int64_t p = 0; p < depth; p++) {
        memcpy(panel + p * columns, source + p * k.column_stride, (size_t)count * sizeof *panel);
        for (int64_t j = count; j < columns; j++) panel[p * columns + j] = 0;
      }
    } else {
      for (int64_t j = 0; j < count; j++)
        for (int64_t p = 0; p < depth; p++) panel[p * columns + j] = source[j * k.row_stride + p * k.column_stride];
      for (int64_t p = 0; p < depth; p++)
        for (int64_t j = count; j < columns; j++) panel[p * columns + j] = 0;
    }
    rvm_attention_product((rvm_tile_f32_arguments){.rows = rows,
                                                   .columns = columns,
                                                   .depth = depth,
                                                   .a = q.elements,
                                                   .a_row_stride = q.row_stride,
                                                   .a_column_stride = q.column_stride,
                                                   .b = panel,
                                                   .b_stride = columns,
                                                   .tile = scores + first,
                                                   .tile_stride = scores_stride});
  }
}

/* Replaces each score of a row by score * scale + bias, or by `hidden` if `allowed` is 0 for the key.  Returns the
   largest new score that is not NaN.  The strides are 0 or 1, and must be constants where this function is inlined. */
static inline RVM_ALWAYS_INLINE float rvm_attention_mask(int64_t keys, float *row, const uint8_t *allowed,
                                                         int64_t allowed_stride, const float *bias, int64_t bias_stride,
                                                         float scale, float hidden) {
  float largest = -INFINITY;
  RVM_SIMD(reduction(max : largest))
  for (int64_t j = 0; j < keys; j++) {
    const float scaled = row[j] * scale + bias[j * bias_stride], score = allowed[j * allowed_stride] ? scaled : hidden;
    row[j] = score;
    largest = score > largest ? score : largest;
  }
  return largest;
}

/* Calls rvm_attention_mask for row `r` and `keys` keys from `first` on. */
static inline float rvm_attention_mask_row(const rvm_attention_arguments *args, int64_t r, int64_t first, int64_t keys,
                                           float *row) {
  const uint8_t *allowed = args->allowed + r * args->allowed_row_stride + first * args->allowed_column_stride;
  const float *bias = args->bias + r * args->bias_row_stride + first * args->bias_column_stride;
  const float scale = args->scale, hidden = args->hidden;
  if (args->bias_column_stride == 0)
    return args->allowed_column_stride == 0 ? rvm_attention_mask(keys, row, allowed, 0, bias, 0, scale, hidden)
                                            : rvm_attention_mask(keys, row, allowed, 1, bias, 0, scale, hidden);
  return args->allowed_column_stride == 0 ? rvm_attention_mask(keys, row, allowed, 0, bias, 1, scale, hidden)
                                          : rvm_attention_mask(keys, row, allowed, 1, bias, 1, scale, hidden);
}

/* The softmax of a row so far: the largest score, and the sum of exp(score - largest). */
typedef struct rvm_softmax_row {
  float largest, total;
} rvm_softmax_row;

/* Returns exp(x) for x <= 0, or 0 if x < -69.3.  Other results are at least 2^-100, so that their quotients by a sum of
   exponentials are normal numbers (rvm_exp_ftz_f32). */
RVM_MATH float rvm_attention_exp_f32(float x) {
  const float p = rvm_finite_exp_f32(x, -101);
  return x < -69.3f ? 0.0f : p;
}

/* Replaces `keys` scores of a row by exp(score - maximum), and adds the results to state->total.  The maximum is the
   largest score of this call and of earlier calls for the row; `largest` is the largest score of this call.  If the
   maximum increases, rescales the sums of earlier calls: state->total and the `columns` sums in `out`.  is_first: there
   was no earlier call. */
static inline void rvm_attention_exponentials(int64_t keys, float *row, float largest, int is_first,
                                              rvm_softmax_row *state, int64_t columns, float *out) {
  const float maximum = !is_first && state->largest > largest ? state->largest : largest;
  /* If all scores are -infinity, subtracting the maximum would give NaN. */
  const float shift = maximum == -INFINITY ? 0.0f : maximum;
  float sums[RVM_SUM_LANES] = {0};
  int64_t first = 0;
  for (; first + RVM_SUM_LANES <= keys; first += RVM_SUM_LANES) {
    RVM_SIMD()
    for (int lane = 0; lane < RVM_SUM_LANES; lane++) {
      row[first + lane] = rvm_attention_exp_f32(row[first + lane] - shift);
      sums[lane] = sums[lane] + row[first + lane];
    }
  }
  for (int lane = 0; first + lane < keys; lane++) {
    row[first + lane] = rvm_attention_exp_f32(row[first + lane] - shift);
    sums[lane] = sums[lane] + row[first + lane];
  }
  const float sum = rvm_sum_of_lanes_f32(sums);
  if (is_first) {
    state->total = sum;
  } else {
    const float factor = rvm_attention_exp_f32(state->largest - shift);
    state->total = state->total * factor + sum;
    if (factor != 1.0f)
      for (int64_t j = 0; j < columns; j++) out[j] *= factor;
  }
  state->largest = maximum;
}

/* Returns whether a row of the result is 0 because of the argument `absent` (RVM_ATTENTION_NAN, ...).  `total` is the
   sum of the row's exponentials. */
static inline int rvm_attention_is_absent(float total, int64_t absent) {
  return absent != RVM_ATTENTION_NAN && (total == 0 || (absent == RVM_ATTENTION_NO_NAN && total != total));
}

static inline void rvm_attention_divide(int64_t count, float total, float *row) {
  RVM_SIMD()
  for (int64_t j = 0; j < count; j++) row[j] /= total;
}

/* Stores in `out` the product of a row of zeros and v.  It is 0, or NaN in columns in which v has an infinity or a
   NaN. */
static inline void rvm_attention_zero_weights(int64_t keys, int64_t width, const float *v, float *out) {
  memset(out, 0, (size_t)width * sizeof *out);
  for (int64_t i = 0; i < keys * width; i++) out[i % width] += 0.0f * v[i];
}

/* Implements rvm_attention. */
static inline RVM_ALWAYS_INLINE void rvm_attend(const rvm_attention_arguments *args) {
  const int64_t rows = args->rows, keys = args->keys, depth = args->depth, width = args->width;
  const int64_t columns = rvm_attention_rounded(width);
  const int64_t parts = (keys + RVM_ATTENTION_KEYS - 1) / RVM_ATTENTION_KEYS;
  /* Equally many keys in each part, rounded up to whole panels. */
  const int64_t even = parts > 0 ? (keys + parts - 1) / parts : 0;
  const int64_t part_keys = (even + RVM_ATTENTION_PANEL - 1) / RVM_ATTENTION_PANEL * RVM_ATTENTION_PANEL;
  const rvm_matrix queries = {args->q, depth, 1};
  float *const scores = args->scores, *const out = args->out, *const copy = args->copy;
  rvm_softmax_row softmax[RVM_ATTENTION_ROWS];
  if (keys == 0) memset(out, 0, (size_t)(rows * columns) * sizeof *out);
  for (int64_t first = 0; first < keys; first += part_keys) {
    const int64_t count = keys - first < part_keys ? keys - first : part_keys;
    const rvm_matrix part = {args->k + first * args->k_row_stride, args->k_row_stride, args->k_column_stride};
    const float *values = args->v + first * width;
    rvm_attention_scores(rows, count, depth, queries, part, args->panel, scores, part_keys);
    for (int64_t r = 0; r < rows; r++) {
      float *row = scores + r * part_keys;
      const float largest = rvm_attention_mask_row(args, r, first, count, row);
      rvm_attention_exponentials(count, row, largest, first == 0, &softmax[r], columns, out + r * columns);
      if (parts > 1) continue; /* the results are divided after the last part */
      if (rvm_attention_is_absent(softmax[r].total, args->absent))
        memset(row, 0, (size_t)count * sizeof *row);
      else
        rvm_attention_divide(count, softmax[r].total, row);
    }
    if (columns != width) {
      for (int64_t j = 0; j < count; j++) {
        memcpy(copy + j * columns, values + j * width, (size_t)width * sizeof *copy);
        for (int64_t c = width; c < columns; c++) copy[j * columns + c] = 0;
      }
      values = copy;
    }
    rvm_attention_product((rvm_tile_f32_arguments){.rows = rows,
                                                   .columns = columns,
                                                   .depth = count,
                                                   .a = scores,
                                                   .a_row_stride = part_keys,
                                                   .a_column_stride = 1,
                                                   .b = values,
                                                   .b_stride = columns,
                                                   .tile = out,
                                                   .tile_stride = columns,
                                                   .accumulates = first > 0});
  }
  if (parts <= 1) return; /* the weights have been divided before the product */
  for (int64_t r = 0; r < rows; r++) {
    if (rvm_attention_is_absent(softmax[r].total, args->absent))
      rvm_attention_zero_weights(keys, width, args->v, out + r * columns);
    else
      rvm_attention_divide(width, softmax[r].total, out + r * columns);
  }
}

/* Computes row r of the attention, for r < rows, in out[r * columns + j] for j < width, where `columns` is width
   rounded up to a multiple of RVM_TILE_STEP.  If all keys are processed together, the exponentials are divided by their
   sum before the product with v, else after.  Without keys, all rows are 0.

   rows: at most RVM_ATTENTION_ROWS.  k_row_stride or k_column_stride is 1.  allowed: 0 for the keys that a row must not
   see, whose score becomes `hidden`.  absent: which rows are 0, as RVM_ATTENTION_NAN, _ZERO or _NO_NAN
   (kernel_constants.def).

   scores: memory for rows * KEYS elements.  panel: for depth * PANEL elements.  copy: for KEYS * columns elements,
   unless `width` is equal to `columns`.  KEYS is RVM_ATTENTION_KEYS or, if that is less, the number of keys rounded up
   to a multiple of RVM_ATTENTION_PANEL.  PANEL is RVM_ATTENTION_PANEL or, if that is less, the number of keys rounded
   up to a multiple of RVM_TILE_STEP. */
RVM_OUT_OF_LINE(void rvm_attention(const rvm_attention_arguments *args), rvm_attend(args);)

#endif
