/* gemm_int8.h: micro-kernels for matrix products and depthwise convolutions of 8-bit integers.

   The right matrix is stored as words of 32 bits.  A word has the four bytes of a column in rows 4g to 4g + 3, the
   first in the lowest bits.  One of the two matrices is signed, the other unsigned.  Sums wrap around, so all variants
   give the same result.  The arguments are declared in micro_kernels.def. */
#ifndef RELVM_GEMM_INT8_H
#define RELVM_GEMM_INT8_H

#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "kernel_constants.h"
#include "micro_kernel_arguments.h"
#include "tile_forms.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif
#if defined __aarch64__ && defined __GNUC__
#include <arm_neon.h>
#endif
#ifdef __wasm_simd128__
#include <wasm_simd128.h>
#endif
#ifdef __ARM_FEATURE_SIMD32
#include <arm_acle.h>
#endif

/* Returns a word of the first `count` bytes, at most 4.  The other bytes of the word are 0. */
static inline uint32_t rvm_some_bytes(const uint8_t *bytes, int64_t count) {
  uint32_t word = 0;
  for (int64_t i = 0; i < count; i++) word |= (uint32_t)bytes[i] << 8 * i;
  return word;
}

/* Vectors of sums (rvm_dots), each for RVM_DOT_COLUMNS columns.  With VNNI, one instruction multiplies unsigned by
   signed bytes and adds four products to each sum.  Without VNNI, bytes are widened to 16 bits, because the instruction
   that multiplies bytes saturates.  A column then has two sums of two products each, which are added at the end.  The
   vectors have elements of int32_t because GCC keeps vectors of other elements in memory.

   RVM_DOTS_LEFT: a word of the left matrix, for all columns.  RVM_DOTS_RIGHT: the words of RVM_DOT_COLUMNS columns of
   the right matrix.  RVM_DOTS_FACTORS: the type of both, if it is not rvm_dots.  RVM_DOTS_ADD: adds the products of
   these two to the sums.  RVM_DOTS_STORE: adds the sums to memory. */
#if defined __AVX512VNNI__ || (defined __AVXVNNI__ && defined __AVX2__)
#define RVM_DOT 1
#ifdef __AVX512VNNI__
enum { RVM_DOT_COLUMNS = 16, RVM_DOT_VECTORS = 4 };
typedef int32_t rvm_dots __attribute__((vector_size(64), aligned(4), may_alias));
#define RVM_DPBUSD(sum, left, right) ((rvm_dots)_mm512_dpbusd_epi32((__m512i)(sum), (__m512i)(left), (__m512i)(right)))
#define RVM_DOTS_LEFT(word, is_signed) ((rvm_dots)_mm512_set1_epi32((int)(word)))
#else
enum { RVM_DOT_COLUMNS = 8, RVM_DOT_VECTORS = 2 };
typedef int32_t rvm_dots __attribute__((vector_size(32), aligned(4), may_alias));
#define RVM_DPBUSD(sum, left, right) \
  ((rvm_dots)_mm256_dpbusd_avx_epi32((__m256i)(sum), (__m256i)(left), (__m256i)(right)))
#define RVM_DOTS_LEFT(word, is_signed) ((rvm_dots)_mm256_set1_epi32((int)(word)))
#endif
#define RVM_DOTS_RIGHT(words, is_signed) (*(const rvm_dots *)(words))
#define RVM_DOTS_ADD(sum, left, right, left_is_signed) \
  ((left_is_signed) ? RVM_DPBUSD(sum, right, left) : RVM_DPBUSD(sum, left, right))
#define RVM_DOTS_STORE(dst, sum) (*(rvm_dots *)(dst) += (sum))

#elif defined __AVX512BW__ || defined __AVX2__
#define RVM_DOT 1
#define RVM_WIDENED(widen, is_signed, bytes) ((is_signed) ? widen##i8_epi16(bytes) : widen##u8_epi16(bytes))
#define RVM_WORD_WIDENED(word, is_signed) RVM_WIDENED(_mm_cvtep, is_signed, _mm_cvtsi32_si128((int)(word)))
#ifdef __AVX512BW__
enum { RVM_DOT_COLUMNS = 8, RVM_DOT_VECTORS = 4 };
typedef int32_t rvm_dots __attribute__((vector_size(64), aligned(4), may_alias));
#define RVM_DOTS_LEFT(word, is_signed) ((rvm_dots)_mm512_broadcastq_epi64(RVM_WORD_WIDENED(word, is_signed)))
#define RVM_DOTS_RIGHT(words, is_signed) \
  ((rvm_dots)RVM_WIDENED(_mm512_cvtep, is_signed, _mm256_loadu_si256((const __m256i *)(words))))
#define RVM_DOTS_ADD(sum, left, right, left_is_signed) \
  ((sum) + (rvm_dots)_mm512_madd_epi16((__m512i)(left), (__m512i)(right)))
static inline void rvm_dots_store(int32_t *dst, rvm_dots sum) {
  const __m512i both = _mm512_add_epi32((__m512i)sum, _mm512_srli_epi64((__m512i)sum, 32));
  __m256i *const totals = (__m256i *)dst;
  _mm256_storeu_si256(totals, _mm256_add_epi32(_mm256_loadu_si256(totals), _mm512_cvtepi64_epi32(both)));
}
#else
enum { RVM_DOT_COLUMNS = 4, RVM_DOT_VECTORS = 2 };
typedef int32_t rvm_dots __attribute__((vector_size(32), aligned(4), may_alias));
#define RVM_DOTS_LEFT(word, is_signed) ((rvm_dots)_mm256_broadcastq_epi64(RVM_WORD_WIDENED(word, is_signed)))
#define RVM_DOTS_RIGHT(words, is_signed) \
  ((rvm_dots)RVM_WIDENED(_mm256_cvtep, is_signed, _mm_loadu_si128((const __m128i *)(words))))
#define RVM_DOTS_ADD(sum, left, right, left_is_signed) \
  ((sum) + (rvm_dots)_mm256_madd_epi16((__m256i)(left), (__m256i)(right)))
static inline void rvm_dots_store(int32_t *dst, rvm_dots sum) {
  const __m256i both = _mm256_add_epi32((__m256i)sum, _mm256_srli_epi64((__m256i)sum, 32));
  const __m256i packed = _mm256_permutevar8x32_epi32(both, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));
  __m128i *const totals = (__m128i *)dst;
  _mm_storeu_si128(totals, _mm_add_epi32(_mm_loadu_si128(totals), _mm256_castsi256_si128(packed)));
}
#endif
#define RVM_DOTS_STORE(dst, sum) rvm_dots_store(dst, sum)

#elif defined __aarch64__ && defined __GNUC__
#define RVM_DOT 1
typedef int32_t rvm_dots __attribute__((vector_size(16), aligned(4), may_alias));
#ifndef __ARM_FEATURE_MATMUL_INT8
/* No instruction multiplies signed by unsigned bytes.  So the highest bits of the bytes of the right matrix are
   inverted, which makes both operands signed or both unsigned.  The inversion subtracts 128 from an unsigned byte and
   adds 128 to a signed byte.  RVM_DOTS_MOVE returns the correction of the sums of a row: `total` is the sum of the left
   bytes. */
#define RVM_DOTS_MOVE(total, left_is_signed) ((left_is_signed) ? (total) * 128 : (total) * -128)
#endif
#ifdef __ARM_FEATURE_DOTPROD
enum { RVM_DOT_COLUMNS = 4, RVM_DOT_VECTORS = 4 };
#define RVM_DOTS_LEFT(word, is_signed) ((rvm_dots){0} + (int32_t)(word))
#define RVM_DOTS_STORE(dst, sum) (*(rvm_dots *)(dst) += (sum))
#ifdef RVM_DOTS_MOVE
#define RVM_DOTS_RIGHT(words, is_signed) (*(const rvm_dots *)(words) ^ (int32_t)0x80808080)
#define RVM_DOTS_ADD(sum, left, right, left_is_signed)                                             \
  ((left_is_signed) ? (rvm_dots)vdotq_s32((int32x4_t)(sum), (int8x16_t)(right), (int8x16_t)(left)) \
                    : (rvm_dots)vdotq_u32((uint32x4_t)(sum), (uint8x16_t)(right), (uint8x16_t)(left)))
enum { RVM_DOTS_AT_ONCE = 1 };
#define RVM_SIGNED_LANE "sdot"
#define RVM_UNSIGNED_LANE "udot"
#else
#define RVM_DOTS_RIGHT(words, is_signed) (*(const rvm_dots *)(words))
#define RVM_DOTS_ADD(sum, left, right, left_is_signed)                                                \
  ((left_is_signed) ? (rvm_dots)vusdotq_s32((int32x4_t)(sum), (uint8x16_t)(right), (int8x16_t)(left)) \
                    : (rvm_dots)vusdotq_s32((int32x4_t)(sum), (uint8x16_t)(left), (int8x16_t)(right)))
enum { RVM_DOTS_AT_ONCE = 2 };
#define RVM_SIGNED_LANE "usdot"
#define RVM_UNSIGNED_LANE "sudot"
#endif
#else
/* A column has two sums of two products each. */
enum { RVM_DOT_COLUMNS = 2, RVM_DOT_VECTORS = 4 };
#define RVM_DOTS_FACTORS uint8x8_t
#define RVM_DOTS_LEFT(word, is_signed) ((uint8x8_t)vdup_n_u32(word))
#define RVM_DOTS_RIGHT(words, is_signed) veor_u8(vld1_u8((const uint8_t *)(words)), vdup_n_u8(128))
#define RVM_DOTS_ADD(sum, left, right, left_is_signed)                                                       \
  ((left_is_signed) ? (rvm_dots)vpadalq_s16((int32x4_t)(sum), vmull_s8((int8x8_t)(right), (int8x8_t)(left))) \
                    : (rvm_dots)vpadalq_u16((uint32x4_t)(sum), vmull_u8(right, left)))
static inline void rvm_dots_store(int32_t *dst, rvm_dots sum) {
  vst1_s32(dst, vadd_s32(vld1_s32(dst), vget_low_s32(vpaddq_s32((int32x4_t)sum, (int32x4_t)sum))));
}
#define RVM_DOTS_STORE(dst, sum) rvm_dots_store(dst, sum)
#endif

#elif defined __wasm_simd128__
typedef int32_t rvm_dots __attribute__((vector_size(16), aligned(4), may_alias));

/* Return bytes 0 and 2, or 1 and 3, of each word as numbers of 16 bits. */
static inline RVM_ALWAYS_INLINE v128_t rvm_even_bytes(rvm_dots words, int is_signed) {
  return is_signed ? wasm_i16x8_shr(wasm_i16x8_shl((v128_t)words, 8), 8)
                   : wasm_v128_and((v128_t)words, wasm_i16x8_const_splat(255));
}
static inline RVM_ALWAYS_INLINE v128_t rvm_odd_bytes(rvm_dots words, int is_signed) {
  return is_signed ? wasm_i16x8_shr((v128_t)words, 8) : wasm_u16x8_shr((v128_t)words, 8);
}

/* Adds the four products of the bytes of each word of `left` and of `right`. */
static inline RVM_ALWAYS_INLINE rvm_dots rvm_dots_add(rvm_dots sum, rvm_dots left, rvm_dots right, int left_is_signed) {
  const v128_t even =
      wasm_i32x4_dot_i16x8(rvm_even_bytes(left, left_is_signed), rvm_even_bytes(right, !left_is_signed));
  const v128_t odd = wasm_i32x4_dot_i16x8(rvm_odd_bytes(left, left_is_signed), rvm_odd_bytes(right, !left_is_signed));
  return sum + (rvm_dots)even + (rvm_dots)odd;
}
#ifndef RVM_COMPACT
#define RVM_DOT 1
enum { RVM_DOT_COLUMNS = 4, RVM_DOT_VECTORS = 2 };
#define RVM_DOTS_LEFT(word, is_signed) ((rvm_dots){0} + (int32_t)(word))
#define RVM_DOTS_RIGHT(words, is_signed) (*(const rvm_dots *)(words))
#define RVM_DOTS_ADD(sum, left, right, left_is_signed) rvm_dots_add(sum, left, right, left_is_signed)
#define RVM_DOTS_STORE(dst, sum) (*(rvm_dots *)(dst) += (sum))
#endif
#endif

#ifndef RVM_DOTS_FACTORS
#define RVM_DOTS_FACTORS rvm_dots
#endif

static inline uint32_t rvm_word_at(const uint8_t *bytes) {
  uint32_t word;
  memcpy(&word, bytes, sizeof word);
  return word;
}

#ifdef __ARM_FEATURE_SIMD32
/* Returns bytes 0 and 2 of a word as two 16-bit numbers. */
static inline int16x2_t rvm_two_bytes(uint32_t word, int is_signed) {
  return is_signed ? __sxtb16((int8x4_t)word) : (int16x2_t)__uxtb16(word);
}

/* Adds to each sums[j], j < columns, the dot product of the four bytes of `word` and those of b[j].  is_signed: whether
   the bytes of `word` are signed and those of b unsigned, or vice versa.  An instruction adds two products at a time.
 */
static inline RVM_ALWAYS_INLINE void rvm_add_products(uint32_t word, int is_signed, int columns, const uint32_t *b,
                                                      int32_t *sums) {
  const int16x2_t even = rvm_two_bytes(word, is_signed), odd = rvm_two_bytes(word >> 8, is_signed);
  for (int j = 0; j < columns; j++)
    sums[j] =
        __smlad(odd, rvm_two_bytes(b[j] >> 8, !is_signed), __smlad(even, rvm_two_bytes(b[j], !is_signed), sums[j]));
}
#elif defined __wasm_simd128__
/* Adds the products of the four bytes of `word` and the four bytes of b[j] to sums[j], for j < columns.  is_signed:
   whether the bytes of `word` are signed and those of b unsigned, or vice versa. */
static inline RVM_ALWAYS_INLINE void rvm_add_products(uint32_t word, int is_signed, int columns, const uint32_t *b,
                                                      int32_t *sums) {
  const rvm_dots left = (rvm_dots){0} + (int32_t)word;
  int j = 0;
  for (; j + 4 <= columns; j += 4)
    *(rvm_dots *)(sums + j) = rvm_dots_add(*(rvm_dots *)(sums + j), left, *(const rvm_dots *)(b + j), is_signed);
  for (; j < columns; j++) {
    const rvm_dots sum = rvm_dots_add((rvm_dots){sums[j]}, left, (rvm_dots){(int32_t)b[j]}, is_signed);
    sums[j] = sum[0];
  }
}
#else
/* Adds the products of the four bytes of `word` and the four bytes of b[j] to sums[j], for j < columns.  is_signed:
   whether the bytes of `word` are signed and those of b unsigned, or vice versa. */
static inline RVM_ALWAYS_INLINE void rvm_add_products(uint32_t word, int is_signed, int columns, const uint32_t *b,
                                                      int32_t *sums) {
  int32_t left[4];
  for (int i = 0; i < 4; i++) left[i] = is_signed ? (int8_t)(word >> 8 * i) : (uint8_t)(word >> 8 * i);
  for (int j = 0; j < columns && is_signed; j++)
    sums[j] += left[0] * (uint8_t)b[j] + left[1] * (uint8_t)(b[j] >> 8) + left[2] * (uint8_t)(b[j] >> 16) +
               left[3] * (uint8_t)(b[j] >> 24);
  for (int j = 0; j < columns && !is_signed; j++)
    sums[j] += left[0] * (int8_t)b[j] + left[1] * (int8_t)(b[j] >> 8) + left[2] * (int8_t)(b[j] >> 16) +
               left[3] * (int8_t)(b[j] >> 24);
}
#endif

/* Adds to the tile the products of one word of each row, at a[r * a_stride], and one word of each column, at b[j].
   args->depth is the number of bytes of the words that exist, at most 4. */
static RVM_NOINLINE void rvm_tile_word(const rvm_tile_bytes_arguments *args) {
  const int columns = (int)args->columns;
  for (int64_t r = 0; r < args->rows; r++) {
    const uint8_t *bytes = (const uint8_t *)args->a + r * args->a_stride;
    const uint32_t word =
        (args->depth < 4 ? rvm_some_bytes(bytes, args->depth) : rvm_word_at(bytes)) ^ (uint32_t)args->flip;
    int32_t *sums = args->tile + r * args->tile_stride;
    if (args->a_is_signed)
      rvm_add_products(word, 1, columns, (const uint32_t *)args->b, sums);
    else
      rvm_add_products(word, 0, columns, (const uint32_t *)args->b, sums);
  }
}

/* Calls rvm_tile_word for word number `word` of each row and column.  The first `count` bytes of these words exist. */
static inline void rvm_tile_words_from(const rvm_tile_bytes_arguments *args, int64_t word, int64_t count) {
  rvm_tile_bytes_arguments part = *args;
  part.a = (const uint8_t *)args->a + 4 * word;
  part.b = args->b + word * args->b_stride;
  part.depth = count;
  rvm_tile_word(&part);
}

#ifdef RVM_DOT

typedef rvm_dots rvm_tile_dot_sums[6][4];

#if defined RVM_SIGNED_LANE && !defined RVM_COMPACT
#define RVM_LEFT_WORDS 4

/* Adds to sum[r][v] the dot products of word p of row r of `a` and the words in row p of `b`, one for each column, for
   p < RVM_LEFT_WORDS.  A word is four bytes.  One instruction multiplies by one lane of a vector of left words, as in
   rvm_add_products_of_lanes (gemm_f32.h).  flip: the bits to invert in the words of `a`. */
static inline RVM_ALWAYS_INLINE void rvm_add_dots_of_lanes(rvm_tile_dot_sums sum, int rows, int vectors,
                                                           const rvm_tile_bytes_arguments *args, const uint8_t *a,
                                                           uint32_t flip, int a_is_signed, const int32_t *b) {
  const int64_t b_stride = args->b_stride;
  rvm_dots left[6];
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++) left[r] = *(const rvm_dots *)(a + r * args->a_stride) ^ (int32_t)flip;
  /* Four vectors of right factors fit the registers beside the sums of at most four rows. */
  const int most = rows <= 4 || vectors < 4 ? vectors : RVM_DOTS_AT_ONCE;
  const int32_t *row;
#define RVM_ADD_LANE(p)                                                         \
  row = b + (p) * b_stride;                                                     \
  RVM_LOADED_FROM(row);                                                         \
  _Pragma("GCC unroll 4") for (int first = 0; first < vectors; first += most) { \
    rvm_dots right[4];                                                          \
    _Pragma("GCC unroll 4") for (int v = 0; v < most; v++) {                    \
      right[v] = *(const rvm_dots *)(row + (first + v) * RVM_DOT_COLUMNS);      \
      RVM_LOADED(right[v]);                                                     \
    }                                                                           \
    _Pragma("GCC unroll 4") for (int v = 0; v < most; v++) {                    \
      const rvm_dots factors = RVM_DOTS_RIGHT(&right[v], !a_is_signed);         \
      _Pragma("GCC unroll 6") for (int r = 0; r < rows; r++) {                  \
        if (a_is_signed)                                                        \
          __asm__(RVM_SIGNED_LANE " %0.4s, %1.16b, %2.4b[" #p "]"               \
                  : "+w"(sum[r][first + v])                                     \
                  : "w"(factors), "w"(left[r]));                                \
        else                                                                    \
          __asm__(RVM_UNSIGNED_LANE " %0.4s, %1.16b, %2.4b[" #p "]"             \
                  : "+w"(sum[r][first + v])                                     \
                  : "w"(factors), "w"(left[r]));                                \
      }                                                                         \
    }                                                                           \
  }
  RVM_ADD_LANE(0)
  RVM_ADD_LANE(1)
  RVM_ADD_LANE(2)
  RVM_ADD_LANE(3)
#undef RVM_ADD_LANE
}
#endif

/* Computes columns [column, column + vectors * RVM_DOT_COLUMNS) of the tile in registers, for all complete words.
   a_is_signed, `rows` and `vectors` must be constants where this function is inlined.  If `flip` is 0, it must also be
   a constant, so that one instruction reads a word from memory to all lanes. */
static inline RVM_ALWAYS_INLINE void rvm_dots_in_registers(const rvm_tile_bytes_arguments *args, uint32_t flip,
                                                           int a_is_signed, int rows, int vectors, int64_t column) {
  const int64_t words = args->depth / 4, a_stride = args->a_stride, b_stride = args->b_stride;
  const uint8_t *const a = args->a;
  const int32_t *const b = args->b + column;
  int32_t *tile = args->tile + column;
  rvm_tile_dot_sums sum;
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) sum[r][v] = (rvm_dots){0};
  int64_t p = 0;
#ifdef RVM_LEFT_WORDS
  for (const int64_t full = words / RVM_LEFT_WORDS * RVM_LEFT_WORDS; p < full; p += RVM_LEFT_WORDS)
    rvm_add_dots_of_lanes(sum, rows, vectors, args, a + 4 * p, flip, a_is_signed, b + p * b_stride);
#endif
  RVM_UNROLL_TWICE
  for (; p < words; p++) {
    RVM_DOTS_FACTORS right[4];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) right[v] = RVM_DOTS_RIGHT(b + p * b_stride + v * RVM_DOT_COLUMNS, !a_is_signed);
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
      const RVM_DOTS_FACTORS left = RVM_DOTS_LEFT(rvm_word_at(a + r * a_stride + 4 * p) ^ flip, a_is_signed);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++) sum[r][v] = RVM_DOTS_ADD(sum[r][v], left, right[v], a_is_signed);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++, tile += args->tile_stride) {
    RVM_OPAQUE(tile);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) RVM_DOTS_STORE(tile + v * RVM_DOT_COLUMNS, sum[r][v]);
  }
}

/* Calls rvm_dots_in_registers with constants for a_is_signed, and for `flip` if it is 0. */
static inline RVM_ALWAYS_INLINE void rvm_any_dots_in_registers(const rvm_tile_bytes_arguments *args, int rows,
                                                               int vectors, int64_t column) {
  const uint32_t flip = (uint32_t)args->flip;
  if (args->a_is_signed && flip)
    rvm_dots_in_registers(args, flip, 1, rows, vectors, column);
  else if (args->a_is_signed)
    rvm_dots_in_registers(args, 0, 1, rows, vectors, column);
  else if (flip)
    rvm_dots_in_registers(args, flip, 0, rows, vectors, column);
  else
    rvm_dots_in_registers(args, 0, 0, rows, vectors, column);
}

/* rvm_tile_dots(args) computes rvm_tile_bytes for at most RVM_TILE_ROWS rows and all complete words, without the
   corrections of rvm_move_tile. */
RVM_DEFINE_TILES(rvm_tile_dots, rvm_tile_bytes_arguments, rvm_any_dots_in_registers, RVM_DOT_COLUMNS, RVM_DOT_VECTORS,
                 args->a_stride)

/* Like rvm_tile_dots, for any number of rows. */
static inline RVM_ALWAYS_INLINE void rvm_tile_rows(const rvm_tile_bytes_arguments *args) {
  if (args->rows <= RVM_TILE_ROWS) {
    if (args->rows > 0) rvm_tile_dots(args);
    return;
  }
  rvm_tile_bytes_arguments part = *args;
  int64_t r = 0;
  for (part.rows = RVM_TILE_ROWS; r + RVM_TILE_ROWS <= args->rows; r += RVM_TILE_ROWS) {
    rvm_tile_dots(&part);
    part.a = (const uint8_t *)part.a + RVM_TILE_ROWS * args->a_stride;
    part.tile += RVM_TILE_ROWS * args->tile_stride;
  }
  part.rows = args->rows - r;
  if (part.rows > 0) rvm_tile_dots(&part);
}

#ifdef RVM_DOTS_MOVE

/* Returns the sum of `count` bytes, in which the bits of `flip` are inverted.  `flip` is four equal bytes. */
static inline int32_t rvm_sum_of_bytes(const uint8_t *bytes, int64_t count, uint32_t flip, int is_signed) {
  int32_t total = 0;
  RVM_SIMD(reduction(+ : total))
  for (int64_t i = 0; i < count; i++) {
    const uint8_t byte = bytes[i] ^ (uint8_t)flip;
    total += is_signed ? (int8_t)byte : byte;
  }
  return total;
}

/* Corrects the sums of a tile (RVM_DOTS_MOVE). */
static RVM_NOINLINE void rvm_move_tile(const rvm_tile_bytes_arguments *args) {
  const uint32_t flip = (uint32_t)args->flip;
  const int is_signed = args->a_is_signed != 0;
  for (int64_t r = 0; r < args->rows; r++) {
    const uint8_t *const a = (const uint8_t *)args->a + r * args->a_stride;
    const int32_t total = RVM_DOTS_MOVE(rvm_sum_of_bytes(a, args->depth & ~INT64_C(3), flip, is_signed), is_signed);
    int32_t *const sums = args->tile + r * args->tile_stride;
    RVM_SIMD()
    for (int64_t j = 0; j < args->columns; j++) sums[j] += total;
  }
}

#endif

#endif

#if defined __AMX_INT8__ && defined __AVX512VNNI__
#define RVM_AMX

/* AMX: a tile register has up to 16 rows of 64 bytes, and an instruction multiplies two of them.  In this section, a
   block is the part of a tile of rvm_tile_bytes that has up to 16 rows and 64 columns: tile registers 0 to 3 contain
   its sums, 4 the left factors, and 5 and 6 the right factors of 16 columns. */
enum {
  RVM_AMX_ROWS = 16,  /* maximum number of rows of a block */
  RVM_AMX_BYTES = 64, /* bytes of a row of a tile register */
  /* The least product of rows and depth for which blocks are used.  Smaller products are faster with vectors, because
     it takes time to configure the tile registers. */
  RVM_AMX_WORK = 1536,
};

typedef struct rvm_amx_configuration {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} rvm_amx_configuration;

/* The statements that use tile registers do not tell the compiler which memory they access. */
#define RVM_AMX_BARRIER() __asm__ volatile("" ::: "memory")

/* Configures the tile registers for blocks of `rows` rows. */
static inline void rvm_amx_configure(int rows) {
  rvm_amx_configuration shapes = {.palette = 1};
  for (int i = 0; i < 7; i++) {
    shapes.row_bytes[i] = RVM_AMX_BYTES;
    shapes.rows[i] = (uint8_t)(i < 5 ? rows : RVM_AMX_ROWS);
  }
  RVM_AMX_BARRIER();
  _tile_loadconfig(&shapes);
}

/* Multiplies the left factors by those of column group v of the block, and adds the products to its sums. */
#define RVM_AMX_MULTIPLY(v, right)                                  \
  if (v < vectors) {                                                \
    _tile_loadd(right, b + p / 4 * b_stride + 16 * v, b_row_bytes); \
    if (a_is_signed)                                                \
      _tile_dpbsud(v, 4, right);                                    \
    else                                                            \
      _tile_dpbusd(v, 4, right);                                    \
  }
#define RVM_AMX_LOAD(v) \
  if (v < vectors) _tile_loadd(v, tile + 16 * v, tile_row_bytes);
#define RVM_AMX_STORE(v) \
  if (v < vectors) _tile_stored(v, tile + 16 * v, tile_row_bytes);

/* Computes the block of `rows` rows whose first column is `column`.  args->depth is a multiple of RVM_AMX_BYTES.  The
   tile registers are configured for `rows`. */
static inline void rvm_amx_block(const rvm_tile_bytes_arguments *args, int rows, int64_t column) {
  const int64_t b_stride = args->b_stride, b_row_bytes = 4 * b_stride, tile_row_bytes = 4 * args->tile_stride;
  const int64_t vectors = (args->columns - column + 15) / 16; /* column groups left; a block has at most 4 */
  const int32_t *const b = args->b + column;
  int32_t *const tile = args->tile + column;
  const int a_is_signed = args->a_is_signed != 0;
  RVM_AMX_BARRIER();
  RVM_AMX_LOAD(0)
  RVM_AMX_LOAD(1) RVM_AMX_LOAD(2) RVM_AMX_LOAD(3) for (int64_t p = 0; p < args->depth; p += RVM_AMX_BYTES) {
    const uint8_t *const a = (const uint8_t *)args->a + p;
    if (args->flip) {
      const __m512i flip = _mm512_set1_epi32((int)args->flip);
      __m512i left[RVM_AMX_ROWS];
      for (int r = 0; r < rows; r++) left[r] = _mm512_xor_si512(_mm512_loadu_si512(a + r * args->a_stride), flip);
      RVM_AMX_BARRIER();
      _tile_loadd(4, left, RVM_AMX_BYTES);
      RVM_AMX_BARRIER();
    } else {
      _tile_loadd(4, a, args->a_stride);
    }
    RVM_AMX_MULTIPLY(0, 5)
    RVM_AMX_MULTIPLY(1, 6)
    RVM_AMX_MULTIPLY(2, 5)
    RVM_AMX_MULTIPLY(3, 6)
  }
  RVM_AMX_STORE(0) RVM_AMX_STORE(1) RVM_AMX_STORE(2) RVM_AMX_STORE(3) RVM_AMX_BARRIER();
}

/* Computes the first rows of a tile of rvm_tile_bytes, up to a multiple of RVM_AMX_BYTES of depth.  Returns the number
   of these rows. */
static inline int64_t rvm_multiply_by_amx(const rvm_tile_bytes_arguments *args) {
  rvm_tile_bytes_arguments part = *args;
  int64_t done = 0;
  part.depth = args->depth / RVM_AMX_BYTES * RVM_AMX_BYTES;
  while (done < args->rows) {
    const int rows = (int)(args->rows - done < RVM_AMX_ROWS ? args->rows - done : RVM_AMX_ROWS);
    if (rows * part.depth < RVM_AMX_WORK) break;
    if (done == 0 || rows < RVM_AMX_ROWS) rvm_amx_configure(rows);
    for (int64_t column = 0; column < args->columns; column += 64) rvm_amx_block(&part, rows, column);
    part.a = (const uint8_t *)part.a + rows * args->a_stride;
    part.tile += rows * args->tile_stride;
    done += rows;
  }
  if (done > 0) _tile_release();
  return done;
}
RVM_OUT_OF_LINE(int64_t rvm_tile_amx(const rvm_tile_bytes_arguments *args), return rvm_multiply_by_amx(args);)
#endif

/* Adds to tile[r * tile_stride + j] the sum over p < depth of left(r, p) * right(p, j).  left(r, p) is a[r * a_stride +
   p], in which the bits of `flip` are inverted; `flip` is four equal bytes.  right(p, j) is byte p % 4 of b[p / 4 *
   b_stride + j].  If depth is not a multiple of 4, the bytes for p >= depth in the last words of b must be 0, unless
   `flip` is 0.  a_is_signed: 1 if a is the signed matrix, 0 if b is.

   rows: at most RVM_BYTE_TILE_ROWS.  Columns of b and of the tile up to the next multiple of RVM_TILE_STEP must exist,
   because some of them are also changed. */
static inline RVM_ALWAYS_INLINE void rvm_tile_bytes(const rvm_tile_bytes_arguments *args) {
  const int64_t words = args->depth / 4;
#ifdef RVM_DOT
  rvm_tile_bytes_arguments part = *args;
#ifdef RVM_AMX
  const int64_t by_amx = rvm_tile_amx(args);
  if (by_amx > 0 && args->depth % RVM_AMX_BYTES >= 4) {
    rvm_tile_bytes_arguments rest = *args;
    const int64_t done = args->depth / RVM_AMX_BYTES * RVM_AMX_BYTES;
    rest.rows = by_amx;
    rest.depth = args->depth - done;
    rest.a = (const uint8_t *)args->a + done;
    rest.b = args->b + done / 4 * args->b_stride;
    rvm_tile_rows(&rest);
  }
  part.rows = args->rows - by_amx;
  part.a = (const uint8_t *)args->a + by_amx * args->a_stride;
  part.tile = args->tile + by_amx * args->tile_stride;
#endif
  rvm_tile_rows(&part);
#ifdef RVM_DOTS_MOVE
  rvm_move_tile(args);
#endif
#else
  for (int64_t p = 0; p < words; p++) rvm_tile_words_from(args, p, 4);
#endif
  if (args->depth % 4) rvm_tile_words_from(args, words, args->depth % 4);
}

#if defined __AVX512BW__ && defined __AVX512VL__
#define RVM_PICK 16

/* Returns RVM_PICK bytes of `src`: bytes 0, step, 2 * step, ...  If bit i of `present` is 0, byte i of `src` is not
   read, and byte i of `fill` is used instead.  step: 1, 2 or 4. */
static inline RVM_ALWAYS_INLINE __m128i rvm_picked_bytes(const uint8_t *src, uint64_t present, int64_t step,
                                                         __m512i fill) {
  if (step == 1) return _mm_mask_loadu_epi8(_mm512_castsi512_si128(fill), (__mmask16)present, src);
  if (step == 2)
    return _mm256_cvtepi16_epi8(_mm256_mask_loadu_epi8(_mm512_castsi512_si256(fill), (__mmask32)present, src));
  return _mm512_cvtepi32_epi8(_mm512_mask_loadu_epi8(fill, present, src));
}

/* Combines RVM_PICK bytes of each of four rows (rvm_picked_bytes) into words, inverts the bits of `flip` in them, and
   stores the first `count` words. */
static inline RVM_ALWAYS_INLINE void rvm_picked_words(int32_t *words, const uint8_t *const row[4],
                                                      const uint64_t present[4], int64_t count, int64_t step,
                                                      __m512i fill, uint32_t flip) {
  /* The 16 bytes of each row are transposed: first 4-byte groups across the lanes, then bytes within each lane. */
  const __m512i across = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i within = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  __m512i rows = _mm512_castsi128_si512(rvm_picked_bytes(row[0], present[0], step, fill));
  rows = _mm512_inserti32x4(rows, rvm_picked_bytes(row[1], present[1], step, fill), 1);
  rows = _mm512_inserti32x4(rows, rvm_picked_bytes(row[2], present[2], step, fill), 2);
  rows = _mm512_inserti32x4(rows, rvm_picked_bytes(row[3], present[3], step, fill), 3);
  rows = _mm512_shuffle_epi8(_mm512_permutexvar_epi32(across, rows), within);
  rows = _mm512_xor_si512(rows, _mm512_set1_epi32((int)flip));
  _mm512_mask_storeu_epi32(words, (__mmask16)(UINT32_MAX >> (32 - count)), rows);
}
#endif

/* Combines the bytes at the same position of four rows into words.  The rows are `stride` bytes apart.  For j < count,
   words[j] has the bytes bytes[j * step], bytes[stride + j * step], ..., with the bits of `flip` inverted.  If `rows`
   is less than 4, only the first `rows` >= 1 rows exist, and the bytes of the other rows in the words are undefined. */
static inline RVM_ALWAYS_INLINE void rvm_words_of_bytes(const rvm_words_of_bytes_arguments *args) {
  const int64_t count = args->count, step = args->step;
  const uint32_t flip = (uint32_t)args->flip;
  int32_t *const words = args->words;
  const uint8_t *row[4];
  for (int i = 0; i < 4; i++) row[i] = (const uint8_t *)args->bytes + (i < args->rows ? i : 0) * args->stride;
#ifdef RVM_PICK
  if (step == 1 || step == 2 || step == 4) {
    for (int64_t j = 0; j < count; j += RVM_PICK) {
      const int64_t some = count - j < RVM_PICK ? count - j : RVM_PICK;
      const uint64_t all = UINT64_MAX >> (63 - (some - 1) * step), present[4] = {all, all, all, all};
      rvm_picked_words(words + j, row, present, some, step, _mm512_setzero_si512(), flip);
      for (int i = 0; i < 4; i++) row[i] += RVM_PICK * step;
    }
    return;
  }
#endif
  RVM_SIMD()
  for (int64_t j = 0; j < count; j++) {
    const int64_t offset = j * step;
    const uint32_t low = row[0][offset] | (uint32_t)row[1][offset] << 8;
    words[j] = (int32_t)(flip ^ (low | (uint32_t)row[2][offset] << 16 | (uint32_t)row[3][offset] << 24));
  }
}

/* Returns word `j` of rvm_words_of_line, whose bytes may be outside the line. */
static inline int32_t rvm_word_of_line(const rvm_words_of_line_arguments *args, int64_t j) {
  const uint8_t padding = (uint8_t)args->padding, *const line = args->line;
  uint32_t word = 0;
  for (int64_t i = 0; i < args->rows; i++) {
    const int64_t offset = args->position + i * args->stride + j * args->step;
    word |= (uint32_t)(offset >= 0 && offset < args->line_size ? line[offset] : padding) << 8 * i;
  }
  return (int32_t)(word ^ (uint32_t)args->flip);
}

/* Like rvm_words_of_bytes, but the rows are parts of one line of line_size bytes.  Row i begins at byte position + i *
   stride of the line.  Bytes outside the line are not read, and are `padding`. */
static inline RVM_ALWAYS_INLINE void rvm_words_of_line(const rvm_words_of_line_arguments *args) {
  const int64_t line_size = args->line_size, position = args->position, stride = args->stride;
  const int64_t rows = args->rows, count = args->count, step = args->step;
  const uint32_t flip = (uint32_t)args->flip;
  const uint8_t *const line = args->line;
  int32_t *const words = args->words;
#ifdef RVM_PICK
  const __m512i padding = _mm512_set1_epi8((char)args->padding);
  if (step == 1 || step == 2 || step == 4) {
    for (int64_t j = 0; j < count; j += RVM_PICK) {
      const uint8_t *row[4];
      uint64_t present[4];
      for (int i = 0; i < 4; i++) { /* counted from `start`, the bytes [begin, end) are inside the line */
        const int64_t start = position + (i < rows ? i : 0) * stride + j * step, begin = start < 0 ? -start : 0;
        const int64_t left = line_size - start, end = left < RVM_PICK * step ? left : RVM_PICK * step;
        row[i] = line + start;
        present[i] = begin < end ? UINT64_MAX >> (64 - (end - begin)) << begin : 0;
      }
      const int64_t some = count - j < RVM_PICK ? count - j : RVM_PICK;
      rvm_picked_words(words + j, row, present, some, step, padding, flip);
    }
    return;
  }
#endif
  /* All bytes of the words [begin, end) are inside the line.  The other words are computed byte by byte.  `last` is the
     largest j * step for which the byte of the last row is before the end of the line. */
  const int64_t last = line_size - 1 - position - (rows - 1) * stride;
  int64_t end = last < 0 ? 0 : last / step + 1, begin = position < 0 ? (-position + step - 1) / step : 0;
  end = end < count ? end : count;
  begin = begin < end ? begin : end;
  for (int64_t j = 0; j < begin; j++) words[j] = rvm_word_of_line(args, j);
  for (int64_t j = end; j < count; j++) words[j] = rvm_word_of_line(args, j);
  rvm_words_of_bytes(&(rvm_words_of_bytes_arguments){.words = words + begin,
                                                     .bytes = line + position + begin * step,
                                                     .stride = stride,
                                                     .rows = rows,
                                                     .count = end - begin,
                                                     .step = step,
                                                     .flip = flip});
}

#ifdef RVM_DOT

/* Computes columns [column, column + vectors * RVM_DOT_COLUMNS) of the sums of rvm_taps_bytes in registers.  `vectors`,
   at most 4, must be a constant where this function is inlined. */
static inline RVM_ALWAYS_INLINE void rvm_taps_in_vectors(const rvm_taps_bytes_arguments *args, int vectors,
                                                         int64_t column) {
  const int64_t *const offsets = args->offsets, taps = args->taps;
  const int32_t *const weights = args->weights, *const words = args->words + column;
  rvm_dots sum[4];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) sum[v] = (rvm_dots){0};
  for (int64_t t = 0; t < taps; t++) {
    const RVM_DOTS_FACTORS left = RVM_DOTS_LEFT(weights[t], 1);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
      sum[v] = RVM_DOTS_ADD(sum[v], left, RVM_DOTS_RIGHT(words + offsets[t] + v * RVM_DOT_COLUMNS, 0), 1);
  }
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) RVM_DOTS_STORE(args->sums + column + v * RVM_DOT_COLUMNS, sum[v]);
}

#endif

/* Adds to sums[j] the products of the four signed bytes of weights[t] and the four unsigned bytes of words[offsets[t] +
   j], for all t < taps.  Columns up to the next multiple of RVM_TAP_STEP must exist, because some of them are also
   changed. */
static inline RVM_ALWAYS_INLINE void rvm_taps_bytes(const rvm_taps_bytes_arguments *args) {
#ifdef RVM_DOT
  const int64_t columns = args->columns;
  int64_t j = 0;
#ifdef RVM_DOTS_MOVE
  const int32_t total = RVM_DOTS_MOVE(rvm_sum_of_bytes((const uint8_t *)args->weights, 4 * args->taps, 0, 1), 1);
  for (int64_t column = 0; column < columns; column++) args->sums[column] += total;
#endif
  for (; columns - j > 2 * RVM_DOT_COLUMNS; j += 4 * RVM_DOT_COLUMNS) rvm_taps_in_vectors(args, 4, j);
  for (; columns - j > RVM_DOT_COLUMNS; j += 2 * RVM_DOT_COLUMNS) rvm_taps_in_vectors(args, 2, j);
  for (; j < columns; j += RVM_DOT_COLUMNS) rvm_taps_in_vectors(args, 1, j);
#else
  for (int64_t t = 0; t < args->taps; t++)
    rvm_tile_word(&(rvm_tile_bytes_arguments){.rows = 1,
                                              .columns = args->columns,
                                              .depth = 4,
                                              .a = args->weights + t,
                                              .a_is_signed = 1,
                                              .b = args->words + args->offsets[t],
                                              .tile = args->sums});
#endif
}

#endif
