/* byte_tile.h: the innermost part of products of matrices of bytes in generated kernels: a tile of the result in
   registers.

   The right matrix lies in words: four bytes of a column, from rows 4g to 4g + 3, the first in the lowest bits.  One of
   the two matrices is of signed bytes, the other of unsigned ones.  Sums wrap around; all forms give the same. */
#ifndef RELVM_BYTE_TILE_H
#define RELVM_BYTE_TILE_H

#include <stdint.h>
#include <string.h>

#ifdef __AVX2__
#include <immintrin.h>
#endif

/* The first `count` bytes as a word, 0 for what is missing. */
static inline uint32_t rvm_some_bytes(const uint8_t *bytes, int64_t count) {
  uint32_t word = 0;
  for (int64_t i = 0; i < count; i++) word |= (uint32_t)bytes[i] << 8 * i;
  return word;
}

/* RVM_DOT_COLUMNS columns in a vector of sums.  VNNI multiplies unsigned bytes by signed ones and adds four products at
   once; without it bytes are widened, and each column has two sums, of two products at a time, that are added at the
   end.  (The instruction that multiplies bytes and is older saturates.)  Sums are vectors of int32_t, as the
   instructions have them: gcc does not keep others in registers. */
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
#define RVM_DOTS_STORE(at, sum) (*(rvm_dots *)(at) += (sum))

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
static inline void rvm_dots_store(int32_t *at, rvm_dots sum) {
  const __m512i both = _mm512_add_epi32((__m512i)sum, _mm512_srli_epi64((__m512i)sum, 32));
  __m256i *const to = (__m256i *)at;
  _mm256_storeu_si256(to, _mm256_add_epi32(_mm256_loadu_si256(to), _mm512_cvtepi64_epi32(both)));
}
#else
enum { RVM_DOT_COLUMNS = 4, RVM_DOT_VECTORS = 2 };
typedef int32_t rvm_dots __attribute__((vector_size(32), aligned(4), may_alias));
#define RVM_DOTS_LEFT(word, is_signed) ((rvm_dots)_mm256_broadcastq_epi64(RVM_WORD_WIDENED(word, is_signed)))
#define RVM_DOTS_RIGHT(words, is_signed) \
  ((rvm_dots)RVM_WIDENED(_mm256_cvtep, is_signed, _mm_loadu_si128((const __m128i *)(words))))
#define RVM_DOTS_ADD(sum, left, right, left_is_signed) \
  ((sum) + (rvm_dots)_mm256_madd_epi16((__m256i)(left), (__m256i)(right)))
static inline void rvm_dots_store(int32_t *at, rvm_dots sum) {
  const __m256i both = _mm256_add_epi32((__m256i)sum, _mm256_srli_epi64((__m256i)sum, 32));
  const __m256i packed = _mm256_permutevar8x32_epi32(both, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));
  __m128i *const to = (__m128i *)at;
  _mm_storeu_si128(to, _mm_add_epi32(_mm_loadu_si128(to), _mm256_castsi256_si128(packed)));
}
#endif
#define RVM_DOTS_STORE(at, sum) rvm_dots_store(at, sum)
#endif

static inline uint32_t rvm_word_at(const uint8_t *bytes) {
  uint32_t word;
  memcpy(&word, bytes, sizeof word);
  return word;
}

/* Adds one word of each row, which has `count` bytes, times one word of each column. */
static __attribute__((noinline, unused)) void rvm_tile_word(int rows, int columns, int64_t count, const uint8_t *a,
                                                            int64_t a_row, uint32_t flip, int left_is_signed,
                                                            const uint32_t *b, int32_t *tile, int64_t tile_row) {
  for (int r = 0; r < rows; r++) {
    const uint32_t word = (count < 4 ? rvm_some_bytes(a + r * a_row, count) : rvm_word_at(a + r * a_row)) ^ flip;
    int32_t left[4], *sums = tile + r * tile_row;
    for (int i = 0; i < 4; i++) left[i] = left_is_signed ? (int8_t)(word >> 8 * i) : (uint8_t)(word >> 8 * i);
    for (int j = 0; j < columns && left_is_signed; j++)
      sums[j] += left[0] * (uint8_t)b[j] + left[1] * (uint8_t)(b[j] >> 8) + left[2] * (uint8_t)(b[j] >> 16) +
                 left[3] * (uint8_t)(b[j] >> 24);
    for (int j = 0; j < columns && !left_is_signed; j++)
      sums[j] += left[0] * (int8_t)b[j] + left[1] * (int8_t)(b[j] >> 8) + left[2] * (int8_t)(b[j] >> 16) +
                 left[3] * (int8_t)(b[j] >> 24);
  }
}

#ifdef RVM_DOT

/* `rows` by `vectors` vectors, all of them in registers: both are constants where this is inlined. */
static inline __attribute__((always_inline)) void rvm_dots_in_registers(int rows, int vectors, int64_t words,
                                                                        const uint8_t *a, int64_t a_row, uint32_t flip,
                                                                        int left_is_signed, const int32_t *b,
                                                                        int64_t b_step, int32_t *tile,
                                                                        int64_t tile_row) {
  rvm_dots sum[6][4];
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) sum[r][v] = (rvm_dots){0};
  for (int64_t p = 0; p < words; p++) {
    rvm_dots right[4];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) right[v] = RVM_DOTS_RIGHT(b + p * b_step + v * RVM_DOT_COLUMNS, !left_is_signed);
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
      const rvm_dots left = RVM_DOTS_LEFT(rvm_word_at(a + r * a_row + 4 * p) ^ flip, left_is_signed);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++) sum[r][v] = RVM_DOTS_ADD(sum[r][v], left, right[v], left_is_signed);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) RVM_DOTS_STORE(tile + r * tile_row + v * RVM_DOT_COLUMNS, sum[r][v]);
}

#endif

/* tile[r * tile_row + j] += the sum over p < depth of left(r, p) * right(p, j): left(r, p) is a[r * a_row + p] with the
   bits of `flip`, the same in each byte, inverted; right(p, j) is byte p % 4 of b[p / 4 * b_step + j], which is 0 for
   p >= depth.  The left matrix is the signed one, or the right one.  rows <= 6, columns a multiple of 16. */
static inline __attribute__((always_inline)) void rvm_tile_bytes(int rows, int columns, int64_t depth, const void *a,
                                                                 int64_t a_row, uint32_t flip, int left_is_signed,
                                                                 const int32_t *b, int64_t b_step, int32_t *tile,
                                                                 int64_t tile_row) {
  const int64_t words = depth / 4;
  const uint8_t *left = a;
#ifdef RVM_DOT
  const int width = RVM_DOT_COLUMNS * RVM_DOT_VECTORS, rest = columns % width / RVM_DOT_COLUMNS;
  int j = 0;
#define RVM_DOTS_TILE(vectors) \
  rvm_dots_in_registers(rows, vectors, words, left, a_row, flip, left_is_signed, b + j, b_step, tile + j, tile_row)
  for (; j + width <= columns; j += width) RVM_DOTS_TILE(RVM_DOT_VECTORS);
  if (rest == 3) RVM_DOTS_TILE(3);
  if (rest == 2) RVM_DOTS_TILE(2);
  if (rest == 1) RVM_DOTS_TILE(1);
#undef RVM_DOTS_TILE
#else
  for (int64_t p = 0; p < words; p++)
    rvm_tile_word(rows, columns, 4, left + 4 * p, a_row, flip, left_is_signed, (const uint32_t *)b + p * b_step, tile,
                  tile_row);
#endif
  if (depth % 4)
    rvm_tile_word(rows, columns, depth % 4, left + 4 * words, a_row, flip, left_is_signed,
                  (const uint32_t *)b + words * b_step, tile, tile_row);
}

#endif
