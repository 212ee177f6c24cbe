/* gemm_f32.h: the innermost part of matrix products of float in generated kernels: a tile of the result in registers.
 */
#ifndef RELVM_TILE_H
#define RELVM_TILE_H

#include <stdint.h>
#include <string.h>

#include "reproducible.h"

static inline void rvm_copy_bytes(void *to, const void *from, int64_t size_bytes) {
  memcpy(to, from, (size_t)size_bytes);
}

enum { RVM_LONG_RUN = 16 }; /* elements of a run that a call of memcpy copies faster than a loop */

/* Copies `rows` rows, `to_row` and `x_row` elements apart: columns [first, end) of `to` are elements of x, `step` apart
   from the first on; columns [low, first) and [end, high) become 0.  low <= first <= end <= high. */
static inline __attribute__((unused)) void rvm_window_rows_f32(float *to, int64_t to_row, const float *x, int64_t x_row,
                                                               int64_t step, int64_t rows, int64_t low, int64_t first,
                                                               int64_t end, int64_t high) {
  for (int64_t row = 0; row < rows; row++, to += to_row, x += x_row) {
    for (int64_t j = low; j < first; j++) to[j] = 0;
    if (step == 1 && end - first >= RVM_LONG_RUN)
      memcpy(to + first, x, (size_t)(end - first) * sizeof *x);
    else
      for (int64_t j = first; j < end; j++) to[j] = x[(j - first) * step];
    for (int64_t j = end; j < high; j++) to[j] = 0;
  }
}

/* Writes part of the im2col matrix of a 2-d convolution to a panel, whose rows are `pitch` elements apart: rows [first,
   first + span), which are channels and window positions, and columns [column, column + count), which are output
   positions.  Columns from `count` to `pitch` become 0.

   x: the planes of all channels, high x wide each.  out_wide: positions in a line of the output. */
static __attribute__((noinline, unused)) void rvm_window_panel_f32(
    float *panel, int64_t pitch, const float *x, int64_t high, int64_t wide, int64_t out_wide, int64_t column,
    int64_t count, int64_t first, int64_t span, int64_t row_taps, int64_t column_taps, int64_t row_stride,
    int64_t column_stride, int64_t row_pad, int64_t column_pad, int64_t row_dilation, int64_t column_dilation) {
  const int64_t taps = row_taps * column_taps, area = high * wide;
  if (count <= pitch / 2) /* one call instead of one for each row */
    memset(panel, 0, (size_t)(span * pitch) * sizeof *panel);
  else
    for (int64_t row = 0; row < span && count < pitch; row++)
      memset(panel + row * pitch + count, 0, (size_t)(pitch - count) * sizeof *panel);
  for (int64_t tap = 0; tap < taps; tap++) {
    const int64_t channel = (first - tap + taps - 1) / taps,
                  channels = (first + span - tap + taps - 1) / taps - channel;
    const int64_t down = tap / column_taps * row_dilation - row_pad;
    const int64_t across = tap % column_taps * column_dilation - column_pad;
    float *const to = panel + (channel * taps + tap - first) * pitch;
    if (channels <= 0) continue;
    for (int64_t low = 0, line = column / out_wide, place = column % out_wide; low < count; line++, place = 0) {
      const int64_t end = out_wide - place < count - low ? low + (out_wide - place) : count;
      const int64_t y = line * row_stride + down, at = place * column_stride + across, left = wide - at;
      int64_t begin_in = at < 0 ? low + (-at + column_stride - 1) / column_stride : low;
      int64_t end_in = y < 0 || y >= high || left <= 0 ? low : low + (left - 1) / column_stride + 1;
      if (begin_in > end) begin_in = end;
      if (end_in > end) end_in = end;
      if (end_in < begin_in) end_in = begin_in;
      const float *const from =
          x + (end_in > begin_in ? channel * area + y * wide + at + (begin_in - low) * column_stride : 0);
      rvm_window_rows_f32(to, taps * pitch, from, area, column_stride, channels, low, begin_in, end_in, end);
      low = end;
    }
  }
}

#ifdef __has_builtin
#if __has_builtin(__builtin_shufflevector)
#define RVM_SHUFFLES
#endif
#endif

/* tile[r * 16 + c] = x[c * row + r] for r, c < 16: elements of 32 bits, 4 x 4 of them at a time in registers. */
static inline __attribute__((unused)) void rvm_transposed_tile(void *tile, const void *x, int64_t row) {
#ifdef RVM_SHUFFLES
  typedef int32_t four __attribute__((vector_size(16), aligned(4), may_alias));
  for (int c = 0; c < 16; c += 4) {
    for (int r = 0; r < 16; r += 4) {
      const int32_t *from = (const int32_t *)x + c * row + r;
      const four x0 = *(const four *)from, x1 = *(const four *)(from + row);
      const four x2 = *(const four *)(from + 2 * row), x3 = *(const four *)(from + 3 * row);
      const four low01 = __builtin_shufflevector(x0, x1, 0, 4, 1, 5),
                 low23 = __builtin_shufflevector(x2, x3, 0, 4, 1, 5);
      const four high01 = __builtin_shufflevector(x0, x1, 2, 6, 3, 7),
                 high23 = __builtin_shufflevector(x2, x3, 2, 6, 3, 7);
      int32_t *to = (int32_t *)tile + r * 16 + c;
      *(four *)to = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
      *(four *)(to + 16) = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
      *(four *)(to + 32) = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
      *(four *)(to + 48) = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
    }
  }
#else
  for (int r = 0; r < 16; r++)
    for (int c = 0; c < 16; c++) ((int32_t *)tile)[r * 16 + c] = ((const int32_t *)x)[c * row + r];
#endif
}

#ifdef __GNUC__

#if defined __AVX512F__
enum { RVM_LANES = 16, RVM_TILE_VECTORS = 4 };
#elif defined __AVX__
enum { RVM_LANES = 8, RVM_TILE_VECTORS = 2 };
#elif defined __aarch64__
enum { RVM_LANES = 4, RVM_TILE_VECTORS = 4 };
#elif defined __SSE__ || defined __ARM_NEON
enum { RVM_LANES = 4, RVM_TILE_VECTORS = 2 };
#else
#define RVM_SCALAR /* the C compiler keeps vectors that the processor does not have in memory */
enum { RVM_LANES = 1, RVM_TILE_VECTORS = 4 };
#endif

#ifdef RVM_SCALAR
typedef float rvm_lanes;
#else
typedef float rvm_lanes __attribute__((vector_size(RVM_LANES * 4), aligned(4), may_alias));
#endif

/* sum + left * right, where the processor has vectors of fused products rounded once. */
static inline __attribute__((always_inline)) rvm_lanes rvm_fma_lanes(float left, rvm_lanes right, rvm_lanes sum) {
#ifdef RVM_SCALAR
  return RVM_FMA_F32(left, right, sum);
#elif defined __clang__
#pragma clang fp contract(fast)
  return left * right + sum;
#else
  const rvm_lanes all = left - (rvm_lanes){0};
#if defined __AVX512F__
  return __builtin_ia32_vfmaddps512_mask(all, right, sum, -1, 4);
#elif defined __FMA__
  return __builtin_ia32_vfmaddps256(all, right, sum);
#elif defined __aarch64__
  return __builtin_aarch64_fmav4sf(all, right, sum);
#else
  return all * right + sum;
#endif
#endif
}

/* `rows` by `vectors` vectors, all of them in registers: both are constants where this is inlined. */
static inline __attribute__((always_inline)) void rvm_tile_in_registers(int rows, int vectors, int64_t depth,
                                                                        const float *a, int64_t a_row, int64_t a_step,
                                                                        const float *b, int64_t b_step, float *tile,
                                                                        int64_t tile_row, int adds) {
  rvm_lanes sum[6][4];
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
      sum[r][v] = adds ? *(const rvm_lanes *)(tile + r * tile_row + v * RVM_LANES) : (rvm_lanes){0};
  for (int64_t p = 0; p < depth; p++) {
    rvm_lanes right[4];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) right[v] = *(const rvm_lanes *)(b + p * b_step + v * RVM_LANES);
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
      const float left = a[r * a_row + p * a_step];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++) sum[r][v] = rvm_fma_lanes(left, right[v], sum[r][v]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) *(rvm_lanes *)(tile + r * tile_row + v * RVM_LANES) = sum[r][v];
}

/* tile[r * tile_row + j] = or += the sum over p of a[r * a_row + p * a_step] * b[p * b_step + j], in order of p; rows
   <= 6.  Of b and of the tile there must be as many columns as a multiple of 16 has: sums of some of what is behind
   `columns` are stored, too. */
static inline __attribute__((always_inline)) void rvm_tile_f32(int rows, int columns, int64_t depth, const float *a,
                                                               int64_t a_row, int64_t a_step, const float *b,
                                                               int64_t b_step, float *tile, int64_t tile_row,
                                                               int adds) {
  const int width = RVM_LANES * RVM_TILE_VECTORS, vectors = (columns + RVM_LANES - 1) / RVM_LANES;
  const int rest = vectors % RVM_TILE_VECTORS;
  int j = 0;
  for (; j + width <= vectors * RVM_LANES; j += width)
    rvm_tile_in_registers(rows, RVM_TILE_VECTORS, depth, a, a_row, a_step, b + j, b_step, tile + j, tile_row, adds);
  if (rest == 3) rvm_tile_in_registers(rows, 3, depth, a, a_row, a_step, b + j, b_step, tile + j, tile_row, adds);
  if (rest == 2) rvm_tile_in_registers(rows, 2, depth, a, a_row, a_step, b + j, b_step, tile + j, tile_row, adds);
  if (rest == 1) rvm_tile_in_registers(rows, 1, depth, a, a_row, a_step, b + j, b_step, tile + j, tile_row, adds);
}

enum { RVM_COLUMN_ROWS = 7, RVM_COLUMN_TAPS = 7 };

/* RVM_COLUMN_ROWS rows of one vector: each row of x is read once for each column, and used for all taps that meet it.
 */
static inline __attribute__((always_inline)) void rvm_columns_in_registers(
    int taps, int64_t count, const int64_t *offsets, const int64_t *firsts, int64_t step, const float *weights,
    const float *x, int64_t pitch, float *sums, int64_t sums_pitch, int adds) {
  rvm_lanes sum[RVM_COLUMN_ROWS];
#pragma GCC unroll 7
  for (int r = 0; r < RVM_COLUMN_ROWS; r++)
    sum[r] = adds ? *(const rvm_lanes *)(sums + r * sums_pitch) : (rvm_lanes){0};
  for (int64_t c = 0; c < count; c++) {
    const float *const first = weights + firsts[c];
    const float *const source = x + offsets[c];
    float weight[RVM_COLUMN_TAPS];
#pragma GCC unroll 7
    for (int t = 0; t < taps; t++) weight[t] = first[t * step];
#pragma GCC unroll 13
    for (int r = 0; r < RVM_COLUMN_ROWS + taps - 1; r++) {
      const rvm_lanes row = *(const rvm_lanes *)(source + r * pitch);
#pragma GCC unroll 7
      for (int t = 0; t < taps; t++)
        if (r - t >= 0 && r - t < RVM_COLUMN_ROWS) sum[r - t] = rvm_fma_lanes(weight[t], row, sum[r - t]);
    }
  }
#pragma GCC unroll 7
  for (int r = 0; r < RVM_COLUMN_ROWS; r++) *(rvm_lanes *)(sums + r * sums_pitch) = sum[r];
}

/* sums[r * sums_pitch + j] = or += the sum over columns c and taps t of
   weights[firsts[c] + t * step] * x[offsets[c] + (r + t) * pitch + j], for r < rows rounded up to 7, j < places rounded
   up to 16: what lies there must be there.  taps: a constant in [1, 7]. */
static inline __attribute__((always_inline)) void rvm_columns_f32(int taps, int64_t rows, int64_t places, int64_t count,
                                                                  const int64_t *offsets, const int64_t *firsts,
                                                                  int64_t step, const float *weights, const float *x,
                                                                  int64_t pitch, float *sums, int64_t sums_pitch,
                                                                  int adds) {
  for (int64_t r = 0; r < rows; r += RVM_COLUMN_ROWS)
    for (int64_t j = 0; j < places; j += RVM_LANES)
      rvm_columns_in_registers(taps, count, offsets, firsts, step, weights, x + r * pitch + j, pitch,
                               sums + r * sums_pitch + j, sums_pitch, adds);
}

static inline __attribute__((always_inline)) void rvm_taps_in_registers(int vectors, int64_t taps,
                                                                        const int64_t *offsets, const float *weights,
                                                                        const float *x, float *sums, int adds) {
  rvm_lanes sum[4];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) sum[v] = adds ? *(const rvm_lanes *)(sums + v * RVM_LANES) : (rvm_lanes){0};
  for (int64_t t = 0; t < taps; t++) {
    const float *source = x + offsets[t];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
      sum[v] = rvm_fma_lanes(weights[t], *(const rvm_lanes *)(source + v * RVM_LANES), sum[v]);
  }
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) *(rvm_lanes *)(sums + v * RVM_LANES) = sum[v];
}

/* sums[j] = or += the sum over t of weights[t] * x[offsets[t] + j], in order of t, for j < columns rounded up to 64:
   what lies behind in x and sums must be there. */
static inline __attribute__((always_inline)) void rvm_taps_f32(int64_t columns, int64_t taps, const int64_t *offsets,
                                                               const float *weights, const float *x, float *sums,
                                                               int adds) {
  int64_t j = 0;
  for (; columns - j > 2 * RVM_LANES; j += 4 * RVM_LANES)
    rvm_taps_in_registers(4, taps, offsets, weights, x + j, sums + j, adds);
  for (; columns - j > RVM_LANES; j += 2 * RVM_LANES)
    rvm_taps_in_registers(2, taps, offsets, weights, x + j, sums + j, adds);
  for (; j < columns; j += RVM_LANES) rvm_taps_in_registers(1, taps, offsets, weights, x + j, sums + j, adds);
}

#else

static void rvm_columns_f32(int taps, int64_t rows, int64_t places, int64_t count, const int64_t *offsets,
                            const int64_t *firsts, int64_t step, const float *weights, const float *x, int64_t pitch,
                            float *sums, int64_t sums_pitch, int adds) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t j = 0; j < places; j++) {
      float sum = adds ? sums[r * sums_pitch + j] : 0;
      for (int64_t c = 0; c < count; c++)
        for (int t = 0; t < taps; t++) sum += weights[firsts[c] + t * step] * x[offsets[c] + (r + t) * pitch + j];
      sums[r * sums_pitch + j] = sum;
    }
}

static void rvm_taps_f32(int64_t columns, int64_t taps, const int64_t *offsets, const float *weights, const float *x,
                         float *sums, int adds) {
  for (int64_t j = 0; j < columns; j++) {
    float sum = adds ? sums[j] : 0;
    for (int64_t t = 0; t < taps; t++) sum += weights[t] * x[offsets[t] + j];
    sums[j] = sum;
  }
}

static void rvm_tile_f32(int rows, int columns, int64_t depth, const float *a, int64_t a_row, int64_t a_step,
                         const float *b, int64_t b_step, float *tile, int64_t tile_row, int adds) {
  for (int r = 0; r < rows; r++) {
    for (int j = 0; j < columns && !adds; j++) tile[r * tile_row + j] = 0;
    for (int64_t p = 0; p < depth; p++)
      for (int j = 0; j < columns; j++) tile[r * tile_row + j] += a[r * a_row + p * a_step] * b[p * b_step + j];
  }
}

#endif
#endif
