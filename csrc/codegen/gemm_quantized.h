/* gemm_quantized.h: products with a panel of a blockwise quantized matrix (relvm/ops/blockwise_quant_matmul.py).

   A panel has RVM_PANEL_WIDTH columns.  A row of bytes contains 8 / bits consecutive numbers of each column, the first
   in the lowest bits of the column's byte.  Word w of a row, of 4 bytes, contains the bytes of columns w, 16 + w,
   32 + w and 48 + w: a shift and a mask of a vector of words give numbers of adjacent columns.  Zero points that are
   bytes have the same order.  A number q becomes (q - zero) * scale. */
#ifndef RELVM_GEMM_QUANTIZED_H
#define RELVM_GEMM_QUANTIZED_H

#include <stdint.h>

#include "gemm_f32.h"

enum { RVM_QUARTER = RVM_PANEL_WIDTH / 4 }; /* columns whose bytes have the same place in their words */

#if defined __GNUC__ && !defined RVM_SCALAR

typedef int32_t rvm_words __attribute__((vector_size(RVM_LANES * 4), aligned(1), may_alias));

/* The scales and zero points of RVM_LANES columns of each quarter of a panel. */
typedef struct rvm_block_values {
  rvm_lanes scale[4], zero[4];
} rvm_block_values;

/* Reads the values of a block for columns c * RVM_QUARTER + [w, w + RVM_LANES), 0 <= c < 4. */
static inline RVM_ALWAYS_INLINE rvm_block_values rvm_read_block(const float *scales, const void *zeros, int are_bytes,
                                                                int64_t w) {
  rvm_block_values values;
  const rvm_words words = are_bytes ? *(const rvm_words *)((const uint8_t *)zeros + 4 * w) : (rvm_words){0};
#pragma GCC unroll 4
  for (int c = 0; c < 4; c++) {
    values.scale[c] = *(const rvm_lanes *)(scales + c * RVM_QUARTER + w);
    values.zero[c] = are_bytes ? __builtin_convertvector((words >> (8 * c)) & 255, rvm_lanes)
                               : *(const rvm_lanes *)((const float *)zeros + c * RVM_QUARTER + w);
  }
  return values;
}

/* Returns dequantized number i of a row of bytes, for columns c * RVM_QUARTER + [w, w + RVM_LANES).  words: the words
   w and following of the row. */
static inline RVM_ALWAYS_INLINE rvm_lanes rvm_dequantized(rvm_words words, const rvm_block_values *values, int bits,
                                                          int c, int i) {
  const rvm_words numbers = (words >> (8 * c + bits * i)) & ((1 << bits) - 1);
  return (__builtin_convertvector(numbers, rvm_lanes) - values->zero[c]) * values->scale[c];
}

/* Computes columns c * RVM_QUARTER + [w, w + RVM_LANES) of a tile, 0 <= c < 4.  `rows` and `bits` must be constants
   where this function is inlined. */
static inline RVM_ALWAYS_INLINE void rvm_quantized_tile_part(const rvm_quantized_tile_f32_arguments *args, int rows,
                                                             int bits, int64_t w) {
  const int count = 8 / bits, are_bytes = (int)args->zeros_are_bytes;
  const int64_t groups = args->groups, block_groups = args->block_groups, a_stride = args->a_stride;
  const int64_t zero_size = are_bytes ? 1 : (int64_t)sizeof(float);
  const float *a = args->a, *scales = args->scales;
  const uint8_t *b = (const uint8_t *)args->b + 4 * w, *zeros = args->zeros;
  rvm_lanes sum[RVM_QUANTIZED_ROWS][4];
#pragma GCC unroll 4
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) sum[r][c] = (rvm_lanes){0};
  for (int64_t first = 0; first < groups; first += block_groups) {
    const rvm_block_values values = rvm_read_block(scales, zeros, are_bytes, w);
    const int64_t end = block_groups < groups - first ? first + block_groups : groups;
    for (int64_t g = first; g < end; g++, b += RVM_PANEL_WIDTH, a += count) {
      const rvm_words words = *(const rvm_words *)b;
#pragma GCC unroll 4
      for (int i = 0; i < count; i++)
#pragma GCC unroll 4
        for (int c = 0; c < 4; c++) {
          const rvm_lanes value = rvm_dequantized(words, &values, bits, c, i);
#pragma GCC unroll 4
          for (int r = 0; r < rows; r++) sum[r][c] = rvm_fma_lanes(a[r * a_stride + i], value, sum[r][c]);
        }
    }
    scales += args->block_stride;
    zeros += args->block_stride * zero_size;
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) *(rvm_lanes *)(args->tile + r * RVM_PANEL_WIDTH + c * RVM_QUARTER + w) = sum[r][c];
}

/* Calls F(rows, bits) for each form of a tile. */
#define RVM_FOR_EACH_QUANTIZED_TILE(F) \
  F(1, 2) F(2, 2) F(3, 2) F(4, 2) F(1, 4) F(2, 4) F(3, 4) F(4, 4) F(1, 8) F(2, 8) F(3, 8) F(4, 8)

#define RVM_DEFINE_TILE(rows, bits)                                                                          \
  RVM_OUT_OF_LINE(void rvm_quantized_tile_f32_##rows##x##bits(const rvm_quantized_tile_f32_arguments *args), \
                  for (int64_t w = 0; w < RVM_QUARTER; w += RVM_LANES) rvm_quantized_tile_part(args, rows, bits, w);)
RVM_FOR_EACH_QUANTIZED_TILE(RVM_DEFINE_TILE)
#undef RVM_DEFINE_TILE

/* Stores in tile[r * RVM_PANEL_WIDTH + j] the product of row r of `a` and column j of a panel, r < rows.

   rows: from 1 to RVM_QUANTIZED_ROWS.  bits: 2, 4 or 8.  b: `groups` rows of bytes.  scales, zeros: the scales and zero
   points of the first block.  A block has block_groups rows of bytes.  The scales of adjacent blocks are block_stride
   elements apart, and so are the zero points.  zeros_are_bytes: 1 if zeros are bytes, 0 if they are floats. */
static inline void rvm_quantized_tile_f32(const rvm_quantized_tile_f32_arguments *args) {
#define RVM_CALL_TILE(r, b) \
  if (args->rows == r && args->bits == b) rvm_quantized_tile_f32_##r##x##b(args);
  RVM_FOR_EACH_QUANTIZED_TILE(RVM_CALL_TILE)
#undef RVM_CALL_TILE
}

/* The body of rvm_dequantized_panel_f32.  `bits` must be a constant where this function is inlined. */
static inline RVM_ALWAYS_INLINE void rvm_dequantize_panel(const rvm_dequantized_panel_f32_arguments *args, int bits) {
  const int count = 8 / bits, are_bytes = (int)args->zeros_are_bytes;
  const int64_t zero_size = are_bytes ? 1 : (int64_t)sizeof(float);
  for (int64_t w = 0; w < RVM_QUARTER; w += RVM_LANES)
    for (int64_t g = 0; g < args->groups; g++) {
      const int64_t at = (args->first + g) / args->block_groups * args->block_stride;
      const rvm_block_values values =
          rvm_read_block(args->scales + at, (const uint8_t *)args->zeros + at * zero_size, are_bytes, w);
      const rvm_words words =
          *(const rvm_words *)((const uint8_t *)args->b + (args->first + g) * RVM_PANEL_WIDTH + 4 * w);
      float *const panel = args->panel + g * count * RVM_PANEL_WIDTH + w;
#pragma GCC unroll 4
      for (int i = 0; i < count; i++)
#pragma GCC unroll 4
        for (int c = 0; c < 4; c++)
          *(rvm_lanes *)(panel + i * RVM_PANEL_WIDTH + c * RVM_QUARTER) = rvm_dequantized(words, &values, bits, c, i);
    }
}

/* Dequantizes rows of bytes [first, first + groups) of a panel: row of bytes first + g becomes the rows g * 8 / bits
   and following of `panel`, whose rows are RVM_PANEL_WIDTH elements apart.  b, scales, zeros: the whole panel, as in
   rvm_quantized_tile_f32.  bits: 2, 4 or 8. */
RVM_OUT_OF_LINE(void rvm_dequantized_panel_f32(const rvm_dequantized_panel_f32_arguments *args),
                if (args->bits == 2) rvm_dequantize_panel(args, 2);
                if (args->bits == 4) rvm_dequantize_panel(args, 4); if (args->bits == 8) rvm_dequantize_panel(args, 8);)

#else

/* Returns dequantized element (p, j) of a panel. */
static inline float rvm_dequantized_element(const void *b, int64_t bits, const float *scales, const void *zeros,
                                            int are_bytes, int64_t block_groups, int64_t block_stride, int64_t p,
                                            int64_t j) {
  const int64_t count = 8 / bits, g = p / count, at = g / block_groups * block_stride;
  const int64_t byte = j % RVM_QUARTER * 4 + j / RVM_QUARTER;
  const int64_t number =
      ((const uint8_t *)b)[g * RVM_PANEL_WIDTH + byte] >> (bits * (p % count)) & ((INT64_C(1) << bits) - 1);
  const float zero = are_bytes ? ((const uint8_t *)zeros)[at + byte] : ((const float *)zeros)[at + j];
  return ((float)number - zero) * scales[at + j];
}

static void rvm_quantized_tile_f32(const rvm_quantized_tile_f32_arguments *a) {
  for (int64_t r = 0; r < a->rows; r++)
    for (int64_t j = 0; j < RVM_PANEL_WIDTH; j++) {
      float sum = 0;
      for (int64_t p = 0; p < a->groups * 8 / a->bits; p++) {
        const float value = rvm_dequantized_element(a->b, a->bits, a->scales, a->zeros, (int)a->zeros_are_bytes,
                                                    a->block_groups, a->block_stride, p, j);
        sum = RVM_FMA_F32(a->a[r * a->a_stride + p], value, sum);
      }
      a->tile[r * RVM_PANEL_WIDTH + j] = sum;
    }
}

static void rvm_dequantized_panel_f32(const rvm_dequantized_panel_f32_arguments *a) {
  const int64_t count = 8 / a->bits;
  for (int64_t p = 0; p < a->groups * count; p++)
    for (int64_t j = 0; j < RVM_PANEL_WIDTH; j++)
      a->panel[p * RVM_PANEL_WIDTH + j] =
          rvm_dequantized_element(a->b, a->bits, a->scales, a->zeros, (int)a->zeros_are_bytes, a->block_groups,
                                  a->block_stride, a->first * count + p, j);
}

#endif

#endif
