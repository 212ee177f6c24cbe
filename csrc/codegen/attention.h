/* attention.h: softmax(q k' scale + bias) v for some rows of q, in generated kernels.

   The matrix of scores is never whole: keys are taken RVM_ATTENTION_KEYS at a time, and what has been added up is
   scaled when a larger score comes.
   Source: Milakov and Gimelshein, Online normalizer calculation for softmax, 2018; Dao and others, FlashAttention,
   2022. */
#ifndef RELVM_ATTENTION_H
#define RELVM_ATTENTION_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernel_math.h"
#include "compiler.h"
#include "gemm_f32.h"

enum {
  RVM_ATTENTION_ROWS = 96,  /* at a time, at most: a multiple of RVM_ATTENTION_TILE */
  RVM_ATTENTION_KEYS = 320, /* a multiple of RVM_ATTENTION_PANEL */
  RVM_ATTENTION_PANEL = 64, /* keys of a panel of k */
  RVM_ATTENTION_TILE = 6,   /* rows of a tile of csrc/codegen/gemm_f32.h */
  RVM_ATTENTION_FEW = 4     /* rows for which k is not copied */
};

/* A matrix of `row` elements from one row to the next and `step` from one element of a row to the next. */
typedef struct rvm_matrix {
  const float *at;
  int64_t row, step;
} rvm_matrix;

/* What is made of the scores of a row.  allowed: which keys are seen, others have the score `hidden`. */
typedef struct rvm_attention_mask {
  const uint8_t *allowed;
  int64_t allowed_row, allowed_step;
  rvm_matrix bias;
  float scale, hidden;
} rvm_attention_mask;

/* What stands for a row of which no key is seen, or whose scores are NaN or infinite: see `absent` in
   relvm/ops/attention.py. */
enum { RVM_ATTENTION_NAN = 0, RVM_ATTENTION_ZERO = 1, RVM_ATTENTION_NO_NAN = 2 };

static __attribute__((noinline, unused)) void rvm_attention_tiles(int rows, int columns, int64_t depth, rvm_matrix a,
                                                                  const float *b, int64_t b_step, float *tile,
                                                                  int64_t tile_row, int adds) {
  switch (rows) {
    case 6: rvm_tile_f32(6, columns, depth, a.at, a.row, a.step, b, b_step, tile, tile_row, adds); break;
    case 5: rvm_tile_f32(5, columns, depth, a.at, a.row, a.step, b, b_step, tile, tile_row, adds); break;
    case 4: rvm_tile_f32(4, columns, depth, a.at, a.row, a.step, b, b_step, tile, tile_row, adds); break;
    case 3: rvm_tile_f32(3, columns, depth, a.at, a.row, a.step, b, b_step, tile, tile_row, adds); break;
    case 2: rvm_tile_f32(2, columns, depth, a.at, a.row, a.step, b, b_step, tile, tile_row, adds); break;
    default: rvm_tile_f32(1, columns, depth, a.at, a.row, a.step, b, b_step, tile, tile_row, adds);
  }
}

/* tile = or += a b for any number of rows; columns a multiple of 16. */
static inline void rvm_attention_product(int64_t rows, int columns, int64_t depth, rvm_matrix a, const float *b,
                                         int64_t b_step, float *tile, int64_t tile_row, int adds) {
  for (int64_t r = 0; r < rows; r += RVM_ATTENTION_TILE) {
    const int count = rows - r < RVM_ATTENTION_TILE ? (int)(rows - r) : RVM_ATTENTION_TILE;
    rvm_attention_tiles(count, columns, depth, (rvm_matrix){a.at + r * a.row, a.row, a.step}, b, b_step,
                        tile + r * tile_row, tile_row, adds);
  }
}

static inline int rvm_attention_rounded(int64_t columns) { return (int)((columns + 15) / 16 * 16); }

/* The sum of x[i] * y[i] for i < count. */
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

/* scores = q k' for a few rows. */
static inline void rvm_attention_few_scores(int64_t rows, int64_t count, int64_t depth, rvm_matrix q, rvm_matrix k,
                                            float *scores, int64_t pitch) {
  for (int64_t r = 0; r < rows; r++) {
    const float *query = q.at + r * q.row;
    float *row = scores + r * pitch;
    if (k.step == 1) {
      for (int64_t j = 0; j < count; j++) {
        const float *key = k.at + j * k.row;
        row[j] = rvm_dot_f32(query, key, depth);
      }
      continue;
    }
    memset(row, 0, (size_t)count * sizeof *row);
    for (int64_t p = 0; p < depth; p++) {
      const float *elements = k.at + p * k.step;
      for (int64_t j = 0; j < count; j++) row[j] = RVM_FMA_F32(query[p], elements[j], row[j]);
    }
  }
}

/* scores = q k' for `count` keys, whose elements lie next to each other or whose places do.  panel: for depth * PANEL
   elements, or for so many as keys, rounded up to 16, where they are less.  pitch: from one row of scores to the next,
   a multiple of 16. */
static inline void rvm_attention_scores(int64_t rows, int64_t count, int64_t depth, rvm_matrix q, rvm_matrix k,
                                        float *panel, float *scores, int64_t pitch) {
  if (rows < RVM_ATTENTION_FEW) {
    rvm_attention_few_scores(rows, count, depth, q, k, scores, pitch);
    return;
  }
  for (int64_t column = 0; column < count; column += RVM_ATTENTION_PANEL) {
    const int64_t here = count - column < RVM_ATTENTION_PANEL ? count - column : RVM_ATTENTION_PANEL;
    const int columns = rvm_attention_rounded(here);
    const float *keys = k.at + column * k.row;
    if (k.row == 1) {
      for (int64_t p = 0; p < depth; p++) {
        memcpy(panel + p * columns, keys + p * k.step, (size_t)here * sizeof *panel);
        for (int64_t j = here; j < columns; j++) panel[p * columns + j] = 0;
      }
    } else {
      for (int64_t j = 0; j < here; j++)
        for (int64_t p = 0; p < depth; p++) panel[p * columns + j] = keys[j * k.row + p * k.step];
      for (int64_t p = 0; p < depth; p++)
        for (int64_t j = here; j < columns; j++) panel[p * columns + j] = 0;
    }
    rvm_attention_product(rows, columns, depth, q, panel, columns, scores + column, pitch, 0);
  }
}

/* The scores of a row as they are compared; gives the largest that is not NaN.  The steps are 0 or 1, and constants
   where this is inlined. */
static inline __attribute__((always_inline)) float rvm_attention_masked(int64_t count, float *row,
                                                                        const uint8_t *allowed, int64_t allowed_step,
                                                                        const float *bias, int64_t bias_step,
                                                                        float scale, float hidden) {
  float largest = -INFINITY;
  RVM_SIMD(reduction(max : largest))
  for (int64_t j = 0; j < count; j++) {
    const float seen = row[j] * scale + bias[j * bias_step], score = allowed[j * allowed_step] ? seen : hidden;
    row[j] = score;
    largest = score > largest ? score : largest;
  }
  return largest;
}

static inline float rvm_attention_largest(int64_t count, float *row, int64_t r, int64_t first,
                                          const rvm_attention_mask *mask) {
  const uint8_t *allowed = mask->allowed + r * mask->allowed_row + first * mask->allowed_step;
  const float *bias = mask->bias.at + r * mask->bias.row + first * mask->bias.step;
  const float scale = mask->scale, hidden = mask->hidden;
  if (mask->bias.step == 0)
    return mask->allowed_step == 0 ? rvm_attention_masked(count, row, allowed, 0, bias, 0, scale, hidden)
                                   : rvm_attention_masked(count, row, allowed, 1, bias, 0, scale, hidden);
  return mask->allowed_step == 0 ? rvm_attention_masked(count, row, allowed, 0, bias, 1, scale, hidden)
                                 : rvm_attention_masked(count, row, allowed, 1, bias, 1, scale, hidden);
}

/* Scores become powers of e relative to the largest so far, which `total` and the sums in `out` are scaled to. */
static inline void rvm_attention_powers(int64_t count, int columns, float found, float *row, float *largest,
                                        float *total, float *out, int goes_on) {
  const float top = goes_on && *largest > found ? *largest : found, shift = top == -INFINITY ? 0.0f : top;
  float sums[RVM_SUM_LANES] = {0};
  int64_t first = 0;
  for (; first + RVM_SUM_LANES <= count; first += RVM_SUM_LANES) {
    RVM_SIMD()
    for (int lane = 0; lane < RVM_SUM_LANES; lane++) {
      row[first + lane] = rvm_exp_f32(row[first + lane] - shift);
      sums[lane] = sums[lane] + row[first + lane];
    }
  }
  for (int lane = 0; first + lane < count; lane++) {
    row[first + lane] = rvm_exp_f32(row[first + lane] - shift);
    sums[lane] = sums[lane] + row[first + lane];
  }
  const float sum = rvm_sum_of_lanes_f32(sums);
  if (!goes_on) {
    *total = sum;
  } else {
    const float factor = rvm_exp_f32(*largest - shift);
    *total = *total * factor + sum;
    if (factor != 1.0f)
      for (int j = 0; j < columns; j++) out[j] *= factor;
  }
  *largest = top;
}

static inline int rvm_attention_is_absent(float total, int absent) {
  return absent != RVM_ATTENTION_NAN && (total == 0 || (absent == RVM_ATTENTION_NO_NAN && total != total));
}

/* A row divided by its total. */
static inline void rvm_attention_divide(int64_t count, float total, float *row) {
  RVM_SIMD()
  for (int64_t j = 0; j < count; j++) row[j] /= total;
}

/* What shares of 0 make of the values. */
static inline void rvm_attention_nothing(int64_t keys, int64_t width, const float *v, float *out) {
  memset(out, 0, (size_t)width * sizeof *out);
  for (int64_t i = 0; i < keys * width; i++) out[i % width] += 0.0f * v[i];
}

/* Where one part holds all keys, shares are divided by their total before they are multiplied, else the sums are at the
   end.

   out[r * round + j], for r < rows and j < width, round being width rounded up to 16: the result for `rows` rows of q.
   scores: for rows * KEYS elements.  panel: for depth * PANEL.  copy: for KEYS * round, where width is no multiple
   of 16. Where there are less keys, KEYS is their number rounded up to PANEL, and PANEL that rounded up to 16. */
static __attribute__((noinline, unused)) void rvm_attention(int64_t rows, int64_t keys, int64_t depth, int64_t width,
                                                            const float *q, const float *k, int64_t k_row,
                                                            int64_t k_step, const float *v, const uint8_t *allowed,
                                                            int64_t allowed_row, int64_t allowed_step,
                                                            const float *bias, int64_t bias_row, int64_t bias_step,
                                                            float scale, float hidden, int64_t absent, float *scores,
                                                            float *panel, float *copy, float *out) {
  const rvm_attention_mask mask = {allowed, allowed_row, allowed_step, {bias, bias_row, bias_step}, scale, hidden};
  const rvm_matrix queries = {q, depth, 1};
  const int columns = rvm_attention_rounded(width);
  const int64_t parts = (keys + RVM_ATTENTION_KEYS - 1) / RVM_ATTENTION_KEYS,
                even = parts > 0 ? (keys + parts - 1) / parts : 0;
  const int64_t most = (even + RVM_ATTENTION_PANEL - 1) / RVM_ATTENTION_PANEL * RVM_ATTENTION_PANEL;
  const rvm_matrix shares = {scores, most, 1};
  float largest[RVM_ATTENTION_ROWS], total[RVM_ATTENTION_ROWS];
  if (keys == 0) memset(out, 0, (size_t)(rows * columns) * sizeof *out);
  for (int64_t first = 0; first < keys; first += most) {
    const int64_t count = keys - first < most ? keys - first : most;
    const float *values = v + first * width;
    rvm_attention_scores(rows, count, depth, queries, (rvm_matrix){k + first * k_row, k_row, k_step}, panel, scores,
                         most);
    for (int64_t r = 0; r < rows; r++) {
      float *row = scores + r * most;
      const float found = rvm_attention_largest(count, row, r, first, &mask);
      rvm_attention_powers(count, columns, found, row, &largest[r], &total[r], out + r * columns, first > 0);
      if (parts > 1) continue;
      if (rvm_attention_is_absent(total[r], (int)absent))
        memset(row, 0, (size_t)count * sizeof *row);
      else
        rvm_attention_divide(count, total[r], row);
    }
    if (columns != width) {
      for (int64_t j = 0; j < count; j++) {
        memcpy(copy + j * columns, values + j * width, (size_t)width * sizeof *copy);
        for (int64_t c = width; c < columns; c++) copy[j * columns + c] = 0;
      }
      values = copy;
    }
    rvm_attention_product(rows, columns, count, shares, values, columns, out, columns, first > 0);
  }
  for (int64_t r = 0; r < rows && parts > 1; r++) {
    if (rvm_attention_is_absent(total[r], (int)absent))
      rvm_attention_nothing(keys, width, v, out + r * columns);
    else
      rvm_attention_divide(width, total[r], out + r * columns);
  }
}

#endif
