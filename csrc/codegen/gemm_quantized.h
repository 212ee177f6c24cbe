/* gemm_quantized.h: products with a panel of a blockwise quantized matrix (relvm/ops/blockwise_quant_matmul.py).

   A panel has RVM_PANEL_WIDTH columns of numbers of 2, 4 or 8 bits.  It is stored as rows of words of 32 bits, one word
   for each column.  A word contains 32 / bits consecutive numbers of its column: byte i has numbers i, 4 + i, 8 + i and
   so on, the first in its lowest bits.  A shift and a mask of a word thus give four consecutive numbers, one in each
   byte.  Each column has a scale and a zero point for each `block` numbers, which are stored as rows, too.  A panel
   contains whole blocks.  A number q becomes (q - zero) * scale. */
#ifndef RELVM_GEMM_QUANTIZED_H
#define RELVM_GEMM_QUANTIZED_H

#include <stdint.h>
#include <string.h>

#include "gemm_f32.h"

#if defined __SSE2__
#include <immintrin.h>
#elif defined __ARM_FEATURE_DOTPROD && defined __aarch64__
#include <arm_neon.h>
#elif defined __wasm_simd128__
#include <wasm_simd128.h>
#endif

/* Returns the lowest bit of number i of a word. */
#define RVM_BIT_OF_NUMBER(i, bits) (8 * ((i) % 4) + (bits) * ((i) / 4))

/* Quantizes `count` floats to signed bytes, and sets the other bytes up to `block` to 0.  Stores the bits of the scale
   in *scale_bits, and the sum of the bytes in *total. */
static inline RVM_ALWAYS_INLINE void rvm_quantize_block(const float *x, int64_t count, int64_t block, int8_t *bytes,
                                                        int32_t *scale_bits, int32_t *total) {
  enum { INFINITE = 0x7F800000, NOT_A_NUMBER = 0x7FC00000, SMALLEST = (127 - 100) << 23 }; /* the bits of floats */
  int32_t largest = 0, sum = 0; /* absolute values have the same order as their bits */
  RVM_SIMD(reduction(max : largest))
  for (int64_t j = 0; j < count; j++) {
    int32_t value;
    memcpy(&value, x + j, sizeof value);
    value &= INT32_MAX;
    largest = value > largest ? value : largest;
  }
  if (largest >= INFINITE || largest < SMALLEST) {
    memset(bytes, 0, (size_t)block);
    *scale_bits = largest >= INFINITE ? NOT_A_NUMBER : 0;
    *total = 0;
    return;
  }
  float most;
  memcpy(&most, &largest, sizeof most);
  const float factor = 127 / most, scale = most / 127;
  RVM_SIMD(reduction(+ : sum))
  for (int64_t j = 0; j < count; j++) {
    const float moved = x[j] * factor + 12582912.0F; /* 1.5 * 2^23: the lowest bits are the rounded number */
    int32_t number;
    memcpy(&number, &moved, sizeof number);
    number -= 0x4B400000; /* the bits of 1.5 * 2^23 */
    bytes[j] = (int8_t)number;
    sum += number;
  }
  if (count < block) memset(bytes + count, 0, (size_t)(block - count));
  memcpy(scale_bits, &scale, sizeof scale);
  *total = sum;
}

/* Frees the registers of the x87 unit, which gcc can leave in use after it moved 8 bytes through an MMX register. */
#if defined __MMX__ && defined __GNUC__ && !defined __clang__
#define RVM_LEAVE_MMX() __builtin_ia32_emms()
#else
#define RVM_LEAVE_MMX() (void)0
#endif

/* Implements rvm_quantized_row_int8. */
static inline void rvm_quantize_row(const rvm_quantized_row_int8_arguments *args) {
  const int64_t depth = args->depth, block = args->block, blocks = (depth + block - 1) / block;
  int32_t *const scales = args->words + blocks * (block / 4);
  for (int64_t i = 0; i < blocks; i++) {
    const int64_t rest = depth - i * block, count = rest < block ? rest : block;
    const float *const x = args->x + i * block;
    int8_t *const bytes = (int8_t *)(args->words + i * (block / 4));
    if (count == 32 && block == 32) /* constants, so that the loops consist of whole vectors */
      rvm_quantize_block(x, 32, 32, bytes, scales + i, scales + blocks + i);
    else
      rvm_quantize_block(x, count, block, bytes, scales + i, scales + blocks + i);
  }
}

/* Quantizes a row of `depth` floats to signed bytes, block by block.

   The result is stored in `words`: the bytes of all blocks, four in a word and the first in its lowest bits, then for
   each block the bits of its scale, an f32, then for each block the sum of its bytes.  If the largest absolute value m
   of a block is in [2^-100, infinity), its scale is m / 127, and its bytes are x * (127 / m), rounded to the nearest
   integers, ties to even.  If m is less, the scale and the bytes are 0.  If m is infinite or an element is NaN, the
   scale is NaN and the bytes are 0.  The last block is padded with zeros.  block: a multiple of 4. */
RVM_OUT_OF_LINE(void rvm_quantized_row_int8(const rvm_quantized_row_int8_arguments *args), rvm_quantize_row(args);
                RVM_LEAVE_MMX();)

#if defined __GNUC__ && !defined RVM_SCALAR

/* Returns RVM_LANES bytes as words.  GCC would convert a vector of bytes one by one. */
static inline RVM_ALWAYS_INLINE rvm_words rvm_words_of_lanes(const uint8_t *bytes) {
#if defined __AVX512F__
  return (rvm_words)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)bytes));
#elif defined __AVX2__
  return (rvm_words)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)bytes));
#else
  rvm_words words = {0}; /* gcc does not see under -fsanitize=thread that the loop sets every lane */
#pragma GCC unroll 8
  for (int i = 0; i < RVM_LANES; i++) words[i] = bytes[i];
  return words;
#endif
}

/* The scales and zero points of a block for RVM_TILE_VECTORS vectors of columns. */
typedef struct rvm_block_values {
  rvm_lanes scale[4], zero[4];
} rvm_block_values;

/* Reads row `block` of the scales and zero points, from `column` on. */
static inline RVM_ALWAYS_INLINE rvm_block_values rvm_read_block(const float *scales, const void *zeros, int are_bytes,
                                                                int64_t block, int64_t column) {
  rvm_block_values values;
#pragma GCC unroll 4
  for (int v = 0; v < RVM_TILE_VECTORS; v++) {
    const int64_t at = block * RVM_PANEL_WIDTH + column + v * RVM_LANES;
    values.scale[v] = *(const rvm_lanes *)(scales + at);
    values.zero[v] = are_bytes ? __builtin_convertvector(rvm_words_of_lanes((const uint8_t *)zeros + at), rvm_lanes)
                               : *(const rvm_lanes *)((const float *)zeros + at);
  }
  return values;
}

/* Returns the lowest `bits` bits of each word as a float. */
static inline RVM_ALWAYS_INLINE rvm_lanes rvm_low_bits(rvm_words words, int bits) {
#ifdef __AVX512F__
  /* Look up the float in a table of 16 entries.  vpermps uses only the lowest 4 bits of each index, so it masks and
     converts in one instruction. */
  const int last = (1 << bits) - 1;
  if (bits <= 4)
    return (rvm_lanes)_mm512_permutexvar_ps(
        (__m512i)words, _mm512_setr_ps(0, 1, 2, 3, 4 & last, 5 & last, 6 & last, 7 & last, 8 & last, 9 & last,
                                       10 & last, 11 & last, 12 & last, 13 & last, 14 & last, 15 & last));
#endif
  return __builtin_convertvector(words & ((1 << bits) - 1), rvm_lanes);
}

/* Dequantizes number i of each word, multiplies it by a[r * a_stride + i] for each r < rows, and adds the products to
   the sums. */
static inline RVM_ALWAYS_INLINE void rvm_add_number(rvm_lanes sum[RVM_QUANTIZED_ROWS][4], const rvm_words words[4],
                                                    const rvm_block_values *values, int rows, int bits, int i,
                                                    const float *a, int64_t a_stride) {
#pragma GCC unroll 4
  for (int v = 0; v < RVM_TILE_VECTORS; v++) {
    const rvm_lanes number = rvm_low_bits(words[v] >> RVM_BIT_OF_NUMBER(i, bits), bits);
    const rvm_lanes value = (number - values->zero[v]) * values->scale[v];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) sum[r][v] = rvm_fma_lanes(a[r * a_stride + i], value, sum[r][v]);
  }
}

/* Computes columns [column, column + RVM_TILE_VECTORS * RVM_LANES) of a tile of the product.  `rows` and `bits` are
   constants where this is inlined. */
static inline RVM_ALWAYS_INLINE void rvm_quantized_part_f32(const rvm_quantized_tile_f32_arguments *args, int rows,
                                                            int bits, int64_t column) {
  const int count = 32 / bits; /* numbers in a word */
  const int64_t depth = args->depth, block = args->block, a_stride = args->a_stride;
  const float *a = args->a;
  const int32_t *b = args->b + column;
  rvm_lanes sum[RVM_QUANTIZED_ROWS][4];
#pragma GCC unroll 4
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < RVM_TILE_VECTORS; v++) sum[r][v] = (rvm_lanes){0};
  for (int64_t block_index = 0, first = 0; first < depth; block_index++, first += block) {
    const rvm_block_values values =
        rvm_read_block(args->scales, args->zeros, args->zeros_are_bytes != 0, block_index, column);
    int64_t rest = depth - first < block ? depth - first : block;
    for (; rest >= count; rest -= count, b += RVM_PANEL_WIDTH, a += count) {
      rvm_words words[4];
#pragma GCC unroll 4
      for (int v = 0; v < RVM_TILE_VECTORS; v++) words[v] = *(const rvm_words *)(b + v * RVM_LANES);
#pragma GCC unroll 4
      for (int i = 0; i < count; i++) rvm_add_number(sum, words, &values, rows, bits, i, a, a_stride);
    }
    if (rest == 0) continue;
    rvm_words words[4]; /* the last words of the row, of which only `rest` numbers exist */
#pragma GCC unroll 4
    for (int v = 0; v < RVM_TILE_VECTORS; v++) words[v] = *(const rvm_words *)(b + v * RVM_LANES);
    for (int i = 0; i < (int)rest; i++) rvm_add_number(sum, words, &values, rows, bits, i, a, a_stride);
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < RVM_TILE_VECTORS; v++)
      *(rvm_lanes *)(args->tile + r * RVM_PANEL_WIDTH + column + v * RVM_LANES) = sum[r][v];
}

/* Adds to each sum the products of the four unsigned bytes of `numbers` and the four signed bytes of `left`.  Each byte
   of `numbers` is less than 1 << bits.  All variants below give the same sums, because no intermediate result
   saturates. */
static inline RVM_ALWAYS_INLINE rvm_words rvm_add_products_of_bytes(rvm_words sum, rvm_words numbers, rvm_words left,
                                                                    int bits) {
#if defined __AVX512VNNI__
  return (rvm_words)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)numbers, (__m512i)left);
#elif defined __AVXVNNI__ && defined __AVX2__ && !defined __AVX512F__
  return (rvm_words)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)numbers, (__m256i)left);
#elif defined __wasm_simd128__
  (void)bits;
  /* The bytes 0 and 2 of each word, and the bytes 1 and 3, become numbers of 16 bits. */
  const v128_t factors = (v128_t)left, bytes = (v128_t)numbers, low = wasm_i16x8_splat(0xFF);
  const v128_t even = wasm_i16x8_shr(wasm_i16x8_shl(factors, 8), 8), odd = wasm_i16x8_shr(factors, 8);
  return sum + (rvm_words)wasm_i32x4_dot_i16x8(wasm_v128_and(bytes, low), even) +
         (rvm_words)wasm_i32x4_dot_i16x8(wasm_u16x8_shr(bytes, 8), odd);
#elif defined __ARM_FEATURE_DOTPROD && defined __aarch64__
  /* The instruction multiplies signed bytes.  Therefore 128 is subtracted from numbers of 8 bits, and 128 times the sum
     of `left` is added to the result. */
  const int32x4_t own = (int32x4_t)sum;
  const int8x16_t factors = vreinterpretq_s8_s32((int32x4_t)left);
  if (bits < 8) return (rvm_words)vdotq_s32(own, vreinterpretq_s8_s32((int32x4_t)numbers), factors);
  const int8x16_t moved = vreinterpretq_s8_s32((int32x4_t)(numbers ^ (int32_t)0x80808080));
  const int32x4_t total = vdotq_s32(vdupq_n_s32(0), factors, vdupq_n_s8(1));
  return (rvm_words)vdotq_s32(vaddq_s32(own, vshlq_n_s32(total, 7)), moved, factors);
#else
#if defined __AVX512BW__
#define RVM_BYTES(name, ...) ((rvm_words)_mm512_##name(__VA_ARGS__))
  typedef __m512i integers;
#elif defined __AVX2__ && !defined __AVX512F__
#define RVM_BYTES(name, ...) ((rvm_words)_mm256_##name(__VA_ARGS__))
  typedef __m256i integers;
#elif defined __SSE2__ && !defined __AVX__
#define RVM_BYTES(name, ...) ((rvm_words)_mm_##name(__VA_ARGS__))
  typedef __m128i integers;
#endif
#ifdef RVM_BYTES
  (void)bits;
#ifdef __SSSE3__
  if (bits < 8) { /* two products of 4 and 8 bits fit 16 bits */
    const rvm_words pairs = RVM_BYTES(maddubs_epi16, (integers)numbers, (integers)left);
    return sum + RVM_BYTES(madd_epi16, (integers)pairs, (integers)((rvm_words){0} + 0x00010001));
  }
#endif
  /* The bytes 0 and 2 of each word, and the bytes 1 and 3, become numbers of 16 bits. */
  const rvm_words even = RVM_BYTES(srai_epi16, (integers)RVM_BYTES(slli_epi16, (integers)left, 8), 8);
  const rvm_words odd = RVM_BYTES(srai_epi16, (integers)left, 8);
  return sum + RVM_BYTES(madd_epi16, (integers)(numbers & 0x00FF00FF), (integers)even) +
         RVM_BYTES(madd_epi16, (integers)((numbers >> 8) & 0x00FF00FF), (integers)odd);
#undef RVM_BYTES
#else
  (void)bits;
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) sum += ((numbers >> (8 * i)) & 255) * ((left << (24 - 8 * i)) >> 24);
  return sum;
#endif
#endif
}

/* Computes columns [column, column + RVM_TILE_VECTORS * RVM_LANES) of a tile of the product.  `rows` and `bits` are
   constants where this is inlined. */
static inline RVM_ALWAYS_INLINE void rvm_quantized_part_int8(const rvm_quantized_tile_int8_arguments *args, int rows,
                                                             int bits, int64_t column) {
  const int count = 8 / bits; /* numbers in a byte */
  const int32_t mask = (1 << bits) - 1, mask_of_bytes = (int32_t)((uint32_t)mask * 0x01010101U);
  const int64_t blocks = args->blocks, block_words = args->block * bits / 32, a_stride = args->a_stride;
  const int32_t *a = args->a, *b = args->b + column, *const a_scales = a + blocks * (args->block / 4);
  const int32_t *const a_sums = a_scales + blocks;
  float *const tile = args->tile + column;
#pragma GCC unroll 4
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < RVM_TILE_VECTORS; v++)
      *(rvm_lanes *)(tile + r * RVM_PANEL_WIDTH + v * RVM_LANES) = (rvm_lanes){0};
  for (int64_t block_index = 0; block_index < blocks; block_index++) {
    rvm_words dot[RVM_QUANTIZED_ROWS][4];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
      for (int v = 0; v < RVM_TILE_VECTORS; v++) dot[r][v] = (rvm_words){0};
    for (int64_t g = 0; g < block_words; g++, b += RVM_PANEL_WIDTH, a += count) {
#pragma GCC unroll 4
      for (int i = 0; i < count; i++) {
        rvm_words numbers[4];
#pragma GCC unroll 4
        for (int v = 0; v < RVM_TILE_VECTORS; v++) {
          const rvm_words words = *(const rvm_words *)(b + v * RVM_LANES);
          numbers[v] = (words >> (bits * i)) & mask_of_bytes;
        }
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
          const rvm_words left = (rvm_words){0} + a[r * a_stride + i];
#pragma GCC unroll 4
          for (int v = 0; v < RVM_TILE_VECTORS; v++)
            dot[r][v] = rvm_add_products_of_bytes(dot[r][v], numbers[v], left, bits);
        }
      }
    }
    const rvm_block_values values =
        rvm_read_block(args->scales, args->zeros, args->zeros_are_bytes != 0, block_index, column);
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
      float scale;
      memcpy(&scale, a_scales + r * a_stride + block_index, sizeof scale);
      const float sum = (float)a_sums[r * a_stride + block_index];
#pragma GCC unroll 4
      for (int v = 0; v < RVM_TILE_VECTORS; v++) {
        const rvm_lanes difference = __builtin_convertvector(dot[r][v], rvm_lanes) - values.zero[v] * sum;
        rvm_lanes *const out = (rvm_lanes *)(tile + r * RVM_PANEL_WIDTH + v * RVM_LANES);
        *out = *out + difference * (values.scale[v] * scale);
      }
    }
  }
}

/* Calls F(rows, bits, type) for each form of a tile. */
#define RVM_FOR_EACH_ROWS(F, bits, type) F(1, bits, type) F(2, bits, type) F(3, bits, type) F(4, bits, type)
#define RVM_FOR_EACH_QUANTIZED_TILE(F, type) \
  RVM_FOR_EACH_ROWS(F, 2, type) RVM_FOR_EACH_ROWS(F, 4, type) RVM_FOR_EACH_ROWS(F, 8, type)

#define RVM_DEFINE_TILE(rows, bits, type)                                                                              \
  RVM_OUT_OF_LINE(void rvm_quantized_tile_##type##_##rows##x##bits(const rvm_quantized_tile_##type##_arguments *args), \
                  for (int64_t j = 0; j < RVM_PANEL_WIDTH; j += RVM_TILE_VECTORS * RVM_LANES)                          \
                      rvm_quantized_part_##type(args, rows, bits, j);)
#ifdef RVM_COMPACT /* few functions: the number of bits is known at run time only, and a tile has one row or four */
#undef RVM_DEFINE_TILE
#define RVM_DEFINE_TILE(rows, bits, type)                                                                     \
  RVM_OUT_OF_LINE(void rvm_quantized_tile_##type##_##rows(const rvm_quantized_tile_##type##_arguments *args), \
                  for (int64_t j = 0; j < RVM_PANEL_WIDTH; j += RVM_TILE_VECTORS * RVM_LANES)                 \
                      rvm_quantized_part_##type(args, rows, (int)args->bits, j);)
#undef RVM_FOR_EACH_QUANTIZED_TILE
#define RVM_FOR_EACH_QUANTIZED_TILE(F, type) F(1, bits, type) F(4, bits, type)
#define RVM_CALL_TILES(type)                                   \
  rvm_quantized_tile_##type##_arguments row = *args;           \
  row.rows = 1;                                                \
  if (args->rows == 4) rvm_quantized_tile_##type##_4(args);    \
  for (int64_t r = 0; r < args->rows && args->rows < 4; r++) { \
    rvm_quantized_tile_##type##_1(&row);                       \
    row.a += args->a_stride;                                   \
    row.tile += RVM_PANEL_WIDTH;                               \
  }
#else
#define RVM_CALL_TILE(r, b, type) \
  if (args->rows == r && args->bits == b) rvm_quantized_tile_##type##_##r##x##b(args);
#define RVM_CALL_TILES(type) RVM_FOR_EACH_QUANTIZED_TILE(RVM_CALL_TILE, type)
#endif
RVM_FOR_EACH_QUANTIZED_TILE(RVM_DEFINE_TILE, f32)
RVM_FOR_EACH_QUANTIZED_TILE(RVM_DEFINE_TILE, int8)
#undef RVM_DEFINE_TILE

/* Stores in tile[r * RVM_PANEL_WIDTH + j] the product of row r of `a` and column j of a panel, r < rows.

   The products are added in order, each rounded like RVM_FMA_F32.  rows: from 1 to RVM_QUANTIZED_ROWS.  depth: the
   length of a row of `a`.  bits: 2, 4 or 8.  block: a multiple of 32 / bits.  zeros_are_bytes: 1 if zeros are bytes, 0
   if they are floats. */
static inline void rvm_quantized_tile_f32(const rvm_quantized_tile_f32_arguments *args) { RVM_CALL_TILES(f32) }

/* Like rvm_quantized_tile_f32, for rows of `a` that rvm_quantized_row_int8 has quantized with the same `block`.

   dot is the sum of the products of the bytes of a block of `a` and of the numbers of the panel, modulo 2^32.  The
   result is the sum, in order of the blocks, of (dot - zero * sum) * (scale of the panel * scale of `a`).  dot and sum
   are converted to f32, and each operation is rounded to f32, so the result is the same on all processors.  blocks: the
   number of blocks of a row.  a_stride: the distance of rows in words. */
static inline void rvm_quantized_tile_int8(const rvm_quantized_tile_int8_arguments *args) { RVM_CALL_TILES(int8) }
#undef RVM_CALL_TILES

/* Implements rvm_dequantized_panel_f32 for numbers of `bits` bits.  Callers pass a constant, for which the compiler
   specializes this function. */
static inline RVM_ALWAYS_INLINE void rvm_dequantize_panel(const rvm_dequantized_panel_f32_arguments *args, int bits) {
  const int count = 32 / bits; /* numbers in a word */
  for (int64_t column = 0; column < RVM_PANEL_WIDTH; column += RVM_TILE_VECTORS * RVM_LANES)
    for (int64_t p = 0; p < args->count; p += count) {
      const int64_t row = args->first + p;
      const rvm_block_values values =
          rvm_read_block(args->scales, args->zeros, args->zeros_are_bytes != 0, row / args->block, column);
      const int32_t *const b = args->b + row / count * RVM_PANEL_WIDTH + column;
      float *const panel = args->panel + p * RVM_PANEL_WIDTH + column;
      const int some = args->count - p < count ? (int)(args->count - p) : count;
      for (int i = 0; i < some; i++)
#pragma GCC unroll 4
        for (int v = 0; v < RVM_TILE_VECTORS; v++) {
          const rvm_words words = *(const rvm_words *)(b + v * RVM_LANES) >> RVM_BIT_OF_NUMBER(i, bits);
          *(rvm_lanes *)(panel + i * RVM_PANEL_WIDTH + v * RVM_LANES) =
              (rvm_low_bits(words, bits) - values.zero[v]) * values.scale[v];
        }
    }
}

/* Dequantizes rows [first, first + count) of a panel.  Row first + p becomes row p of `panel`, whose rows are
   RVM_PANEL_WIDTH elements apart.  first: a multiple of 32 / bits.  The other arguments are those of
   rvm_quantized_tile_f32. */
RVM_OUT_OF_LINE(void rvm_dequantized_panel_f32(const rvm_dequantized_panel_f32_arguments *args),
                if (args->bits == 2) rvm_dequantize_panel(args, 2);
                if (args->bits == 4) rvm_dequantize_panel(args, 4); if (args->bits == 8) rvm_dequantize_panel(args, 8);)

#else

/* The same functions without vectors, for other compilers and for RVM_SCALAR.  Their contracts are stated above. */

/* Returns the quantized element in row p and column j of a panel. */
static inline int32_t rvm_quantized_number(const int32_t *b, int64_t bits, int64_t p, int64_t j) {
  const int64_t count = 32 / bits; /* numbers in a word */
  const uint32_t word = (uint32_t)b[p / count * RVM_PANEL_WIDTH + j];
  return (int32_t)(word >> RVM_BIT_OF_NUMBER(p % count, bits) & ((UINT32_C(1) << bits) - 1));
}

/* Returns element `at` of zero points. */
static inline float rvm_quantized_zero(const void *zeros, int64_t are_bytes, int64_t at) {
  return are_bytes ? (float)((const uint8_t *)zeros)[at] : ((const float *)zeros)[at];
}

static void rvm_quantized_tile_f32(const rvm_quantized_tile_f32_arguments *args) {
  for (int64_t r = 0; r < args->rows; r++)
    for (int64_t j = 0; j < RVM_PANEL_WIDTH; j++) {
      float sum = 0;
      for (int64_t p = 0; p < args->depth; p++) {
        const int64_t at = p / args->block * RVM_PANEL_WIDTH + j;
        const float zero = rvm_quantized_zero(args->zeros, args->zeros_are_bytes, at);
        const float value = ((float)rvm_quantized_number(args->b, args->bits, p, j) - zero) * args->scales[at];
        sum = RVM_FMA_F32(args->a[r * args->a_stride + p], value, sum);
      }
      args->tile[r * RVM_PANEL_WIDTH + j] = sum;
    }
}

static void rvm_quantized_tile_int8(const rvm_quantized_tile_int8_arguments *args) {
  const int64_t block = args->block, blocks = args->blocks;
  for (int64_t r = 0; r < args->rows; r++) {
    /* A row: the bytes of all blocks, then the bits of their scales, then their sums (rvm_quantized_row_int8). */
    const int32_t *const words = args->a + r * args->a_stride;
    const int32_t *const scale_bits = words + blocks * (block / 4), *const sums = scale_bits + blocks;
    const int8_t *const bytes = (const int8_t *)words;
    for (int64_t j = 0; j < RVM_PANEL_WIDTH; j++) {
      float result = 0, scale;
      for (int64_t i = 0; i < blocks; i++) {
        const int64_t at = i * RVM_PANEL_WIDTH + j;
        int32_t dot = 0;
        for (int64_t p = i * block; p < (i + 1) * block; p++)
          dot += rvm_quantized_number(args->b, args->bits, p, j) * bytes[p];
        memcpy(&scale, scale_bits + i, sizeof scale);
        const float zero = rvm_quantized_zero(args->zeros, args->zeros_are_bytes, at);
        result += ((float)dot - zero * (float)sums[i]) * (args->scales[at] * scale);
      }
      args->tile[r * RVM_PANEL_WIDTH + j] = result;
    }
  }
}

static void rvm_dequantized_panel_f32(const rvm_dequantized_panel_f32_arguments *args) {
  for (int64_t p = 0; p < args->count; p++)
    for (int64_t j = 0; j < RVM_PANEL_WIDTH; j++) {
      const int64_t row = args->first + p, at = row / args->block * RVM_PANEL_WIDTH + j;
      const float zero = rvm_quantized_zero(args->zeros, args->zeros_are_bytes, at);
      args->panel[p * RVM_PANEL_WIDTH + j] =
          ((float)rvm_quantized_number(args->b, args->bits, row, j) - zero) * args->scales[at];
    }
}

#endif

#endif
