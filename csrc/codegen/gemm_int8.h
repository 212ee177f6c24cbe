/* gemm_int8.h: the innermost part of products of matrices of bytes in generated kernels: a tile of the result in
   registers, the same for sums along a line, and words made of bytes.

   The right matrix lies in words: four bytes of a column, from rows 4g to 4g + 3, the first in the lowest bits.  One of
   the two matrices is of signed bytes, the other of unsigned ones.  Sums wrap around; all forms give the same. */
#ifndef RELVM_BYTE_TILE_H
#define RELVM_BYTE_TILE_H

#include <stdint.h>
#include <string.h>

#include "compiler.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif
#ifdef __ARM_FEATURE_SIMD32
#include <arm_acle.h>
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

#ifdef __ARM_FEATURE_SIMD32
/* Bytes 0 and 2 of a word, as two numbers of 16 bits. */
static inline int16x2_t rvm_two_bytes(uint32_t word, int is_signed) {
  return is_signed ? __sxtb16((int8x4_t)word) : (int16x2_t)__uxtb16(word);
}

/* sums[j] += the four products of bytes of `word` and of b[j], two at a time. */
static inline __attribute__((always_inline)) void rvm_add_products(uint32_t word, int is_signed, int columns,
                                                                   const uint32_t *b, int32_t *sums) {
  const int16x2_t even = rvm_two_bytes(word, is_signed), odd = rvm_two_bytes(word >> 8, is_signed);
  for (int j = 0; j < columns; j++)
    sums[j] =
        __smlad(odd, rvm_two_bytes(b[j] >> 8, !is_signed), __smlad(even, rvm_two_bytes(b[j], !is_signed), sums[j]));
}
#else
/* sums[j] += the four products of bytes of `word` and of b[j]. */
static inline __attribute__((always_inline)) void rvm_add_products(uint32_t word, int is_signed, int columns,
                                                                   const uint32_t *b, int32_t *sums) {
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

/* Adds one word of each row, which has `count` bytes, times one word of each column. */
static __attribute__((noinline, unused)) void rvm_tile_word(int rows, int columns, int64_t count, const uint8_t *a,
                                                            int64_t a_row, uint32_t flip, int left_is_signed,
                                                            const uint32_t *b, int32_t *tile, int64_t tile_row) {
  for (int r = 0; r < rows; r++) {
    const uint32_t word = (count < 4 ? rvm_some_bytes(a + r * a_row, count) : rvm_word_at(a + r * a_row)) ^ flip;
    if (left_is_signed)
      rvm_add_products(word, 1, columns, b, tile + r * tile_row);
    else
      rvm_add_products(word, 0, columns, b, tile + r * tile_row);
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
   bits of `flip`, the same in each byte, inverted; right(p, j) is byte p % 4 of b[p / 4 * b_step + j], which for
   p >= depth is 0, or anything if `flip` is 0.  The left matrix is the signed one, or the right one.
   rows <= 6.  Of b and of the tile there must be as many columns as a multiple of 16 has: some of what is behind
   `columns` is added to, too. */
static inline __attribute__((always_inline)) void rvm_tile_bytes(int rows, int columns, int64_t depth, const void *a,
                                                                 int64_t a_row, uint32_t flip, int left_is_signed,
                                                                 const int32_t *b, int64_t b_step, int32_t *tile,
                                                                 int64_t tile_row) {
  const int64_t words = depth / 4;
  const uint8_t *left = a;
#ifdef RVM_DOT
  const int width = RVM_DOT_COLUMNS * RVM_DOT_VECTORS, vectors = (columns + RVM_DOT_COLUMNS - 1) / RVM_DOT_COLUMNS;
  const int rest = vectors % RVM_DOT_VECTORS;
  int j = 0;
#define RVM_DOTS_TILE(vectors) \
  rvm_dots_in_registers(rows, vectors, words, left, a_row, flip, left_is_signed, b + j, b_step, tile + j, tile_row)
  for (; j + width <= vectors * RVM_DOT_COLUMNS; j += width) RVM_DOTS_TILE(RVM_DOT_VECTORS);
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

#if defined __AVX512BW__ && defined __AVX512VL__
#define RVM_PICK 16

/* Bytes 0, step, 2 * step... of `from`, RVM_PICK of them, `fill` for those whose bit is not set in `present`; no others
   are read.  step: 1, 2 or 4. */
static inline __attribute__((always_inline)) __m128i rvm_picked_bytes(const uint8_t *from, uint64_t present,
                                                                      int64_t step, __m512i fill) {
  if (step == 1) return _mm_mask_loadu_epi8(_mm512_castsi512_si128(fill), (__mmask16)present, from);
  if (step == 2)
    return _mm256_cvtepi16_epi8(_mm256_mask_loadu_epi8(_mm512_castsi512_si256(fill), (__mmask32)present, from));
  return _mm512_cvtepi32_epi8(_mm512_mask_loadu_epi8(fill, present, from));
}

/* RVM_PICK words, of which the first `count` are stored: lanes of 16 bytes from each row are transposed. */
static inline __attribute__((always_inline)) void rvm_picked_words(int32_t *to, const uint8_t *const row[4],
                                                                   const uint64_t present[4], int64_t count,
                                                                   int64_t step, __m512i fill, uint32_t flip) {
  const __m512i across = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i turned = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  __m512i rows = _mm512_castsi128_si512(rvm_picked_bytes(row[0], present[0], step, fill));
  rows = _mm512_inserti32x4(rows, rvm_picked_bytes(row[1], present[1], step, fill), 1);
  rows = _mm512_inserti32x4(rows, rvm_picked_bytes(row[2], present[2], step, fill), 2);
  rows = _mm512_inserti32x4(rows, rvm_picked_bytes(row[3], present[3], step, fill), 3);
  rows = _mm512_shuffle_epi8(_mm512_permutexvar_epi32(across, rows), turned);
  rows = _mm512_xor_si512(rows, _mm512_set1_epi32((int)flip));
  _mm512_mask_storeu_epi32(to, (__mmask16)(UINT32_MAX >> (32 - count)), rows);
}
#endif

/* Words of the bytes at the same place in four rows, which lie `next` apart, with the bits of `flip` inverted: to[j] is
   of from[j * step], from[next + j * step]... for j < count.  Only the first `rows` rows are there, at least one; what
   stands for the others in the words is not defined. */
static inline __attribute__((always_inline)) void rvm_words_of_bytes(int32_t *to, const void *from, int64_t next,
                                                                     int rows, int64_t count, int64_t step,
                                                                     uint32_t flip) {
  const uint8_t *row[4] = {from, from, from, from};
  for (int i = 1; i < 4; i++) row[i] += (i < rows ? i : 0) * next;
#ifdef RVM_PICK
  if (step == 1 || step == 2 || step == 4) {
    for (int64_t j = 0; j < count; j += RVM_PICK) {
      const int64_t here = count - j < RVM_PICK ? count - j : RVM_PICK;
      const uint64_t all = UINT64_MAX >> (63 - (here - 1) * step), present[4] = {all, all, all, all};
      rvm_picked_words(to + j, row, present, here, step, _mm512_setzero_si512(), flip);
      for (int i = 0; i < 4; i++) row[i] += RVM_PICK * step;
    }
    return;
  }
#endif
  RVM_SIMD()
  for (int64_t j = 0; j < count; j++) {
    const int64_t at = j * step;
    const uint32_t low = row[0][at] | (uint32_t)row[1][at] << 8;
    to[j] = (int32_t)(flip ^ (low | (uint32_t)row[2][at] << 16 | (uint32_t)row[3][at] << 24));
  }
}

/* The same of a line of `size` bytes: row i begins at its place at + i * next, `padding` lies around the line. */
static inline __attribute__((always_inline)) void rvm_words_of_line(int32_t *to, const void *line, int64_t size,
                                                                    int64_t at, int64_t next, int rows, int64_t count,
                                                                    int64_t step, uint8_t padding, uint32_t flip) {
  const uint8_t *const bytes = line;
#ifdef RVM_PICK
  if (step == 1 || step == 2 || step == 4) {
    for (int64_t j = 0; j < count; j += RVM_PICK) {
      const uint8_t *row[4];
      uint64_t present[4];
      for (int i = 0; i < 4; i++) {
        const int64_t place = at + (i < rows ? i : 0) * next + j * step, low = place < 0 ? -place : 0;
        const int64_t room = size - place, end = room < RVM_PICK * step ? room : RVM_PICK * step;
        row[i] = bytes + place;
        present[i] = low < end ? UINT64_MAX >> (64 - (end - low)) << low : 0;
      }
      const int64_t here = count - j < RVM_PICK ? count - j : RVM_PICK;
      rvm_picked_words(to + j, row, present, here, step, _mm512_set1_epi8((char)padding), flip);
    }
    return;
  }
#endif
  const int64_t last = size - 1 - at - (rows - 1) * next; /* of the first byte of a word that is all in the line */
  int64_t end = last < 0 ? 0 : last / step + 1, first = at < 0 ? (-at + step - 1) / step : 0;
  end = end < count ? end : count;
  first = first < end ? first : end;
  for (int64_t j = first > 0 ? 0 : end; j < count; j = j + 1 == first ? end : j + 1) {
    uint32_t word = 0;
    for (int i = 0; i < rows; i++) {
      const int64_t place = at + i * next + j * step;
      word |= (uint32_t)(place >= 0 && place < size ? bytes[place] : padding) << 8 * i;
    }
    to[j] = (int32_t)(word ^ flip);
  }
  rvm_words_of_bytes(to + first, bytes + at + first * step, next, rows, end - first, step, flip);
}

#ifdef RVM_DOT

static inline
    __attribute__((always_inline)) void rvm_dots_along(int vectors, int64_t taps, const int64_t *offsets,
                                                       const int32_t *weights, const int32_t *words, int32_t *sums) {
  rvm_dots sum[4];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) sum[v] = (rvm_dots){0};
  for (int64_t t = 0; t < taps; t++) {
    const rvm_dots left = RVM_DOTS_LEFT(weights[t], 1);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
      sum[v] = RVM_DOTS_ADD(sum[v], left, RVM_DOTS_RIGHT(words + offsets[t] + v * RVM_DOT_COLUMNS, 0), 1);
  }
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) RVM_DOTS_STORE(sums + v * RVM_DOT_COLUMNS, sum[v]);
}

#endif

/* sums[j] += the sum over t of the products of the four signed bytes of weights[t] and the unsigned ones of
   words[offsets[t] + j], for j < columns rounded up to 64: what lies behind in words and sums must be there. */
static inline __attribute__((always_inline)) void rvm_taps_bytes(int64_t columns, int64_t taps, const int64_t *offsets,
                                                                 const int32_t *weights, const int32_t *words,
                                                                 int32_t *sums) {
#ifdef RVM_DOT
  int64_t j = 0;
  for (; columns - j > 2 * RVM_DOT_COLUMNS; j += 4 * RVM_DOT_COLUMNS)
    rvm_dots_along(4, taps, offsets, weights, words + j, sums + j);
  for (; columns - j > RVM_DOT_COLUMNS; j += 2 * RVM_DOT_COLUMNS)
    rvm_dots_along(2, taps, offsets, weights, words + j, sums + j);
  for (; j < columns; j += RVM_DOT_COLUMNS) rvm_dots_along(1, taps, offsets, weights, words + j, sums + j);
#else
  for (int64_t t = 0; t < taps; t++)
    rvm_tile_word(1, (int)columns, 4, (const uint8_t *)(weights + t), 4, 0, 1, (const uint32_t *)words + offsets[t],
                  sums, 0);
#endif
}

#endif
