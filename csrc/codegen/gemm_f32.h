/* gemm_f32.h: micro-kernels for matrix products and convolutions of f32, and the copies that prepare their operands.

   A sum adds its products in order, each with one rounding if the processor has fused multiply-add (rvm_fma_lanes). The
   result does not depend on the width of the vectors.  The arguments are declared in micro_kernels.def; strides are in
   elements.  Read relvm/kernels/gemm for the loops around these functions. */
#ifndef RELVM_GEMM_F32_H
#define RELVM_GEMM_F32_H

#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "kernel_constants.h"
#include "micro_kernel_arguments.h"
#include "reproducible.h"

/* Copies `bytes` bytes.  src and dst do not overlap. */
static inline void rvm_copy_bytes(const rvm_copy_bytes_arguments *args) {
  memcpy(args->dst, args->src, (size_t)args->bytes);
}

enum { RVM_LONG_RUN = 16 }; /* the number of elements from which on memcpy is faster than a loop */

/* A run: the columns [begin, end) of a row of a panel.  Columns [data_begin, data_end) become elements of x, from
   x[source] on, at the distance `step` of rvm_fill_runs_f32.  The other columns become 0. */
typedef struct rvm_run_of_columns {
  int64_t begin, data_begin, data_end, end, source;
} rvm_run_of_columns;

/* Copies `count` elements.  Is fast if `count` is less than RVM_LONG_RUN.  The last group of four elements may overlap
   the group before it. */
static inline void rvm_copy_short_run_f32(float *dst, const float *x, int64_t count) {
  if (count >= 4) {
    for (int64_t j = 0; j + 4 <= count; j += 4) memcpy(dst + j, x + j, 4 * sizeof *x);
    memcpy(dst + count - 4, x + count - 4, 4 * sizeof *x);
    return;
  }
  if (count & 2) memcpy(dst, x, 2 * sizeof *x);
  if (count & 1) dst[count - 1] = x[count - 1];
}

/* Fills `count` runs of the row `dst` of a panel. */
static inline void rvm_fill_runs_f32(float *dst, const float *x, int64_t step, const rvm_run_of_columns *runs,
                                     int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    const rvm_run_of_columns run = runs[i];
    const int64_t size = run.data_end - run.data_begin;
    for (int64_t j = run.begin; j < run.data_begin; j++) dst[j] = 0;
    if (step != 1)
      for (int64_t j = 0; j < size; j++) dst[run.data_begin + j] = x[run.source + j * step];
    else if (size >= RVM_LONG_RUN)
      memcpy(dst + run.data_begin, x + run.source, (size_t)size * sizeof *x);
    else
      rvm_copy_short_run_f32(dst + run.data_begin, x + run.source, size);
    for (int64_t j = run.data_end; j < run.end; j++) dst[j] = 0;
  }
}

/* Copies `rows` rows of x to dst with zeros on both sides.  In each row, columns [data_begin, data_end) of dst become
   elements of x that are `step` apart, and columns [begin, data_begin) and [data_end, end) become 0.  Requires begin <=
   data_begin <= data_end <= end. */
static inline RVM_UNUSED void rvm_window_rows_f32(const rvm_window_rows_f32_arguments *args) {
  const rvm_run_of_columns run = {args->begin, args->data_begin, args->data_end, args->end, 0};
  const int64_t dst_stride = args->dst_stride, x_stride = args->x_stride, step = args->step, rows = args->rows;
  float *dst = args->dst;
  const float *x = args->x;
  for (int64_t row = 0; row < rows; row++, dst += dst_stride, x += x_stride) rvm_fill_runs_f32(dst, x, step, &run, 1);
}

/* Writes a part of the im2col matrix of a 2-d convolution to a panel.  A row of the matrix is a channel and a position
   in the window.  A column is a position in the output of an image; the images follow each other.  The part has the
   rows [row, row + rows) and the columns [column, column + columns).  Columns [columns, panel_stride) of the panel
   become 0.

   x: the planes of all channels of the first image, each of height x width elements.  image_stride: the distance from
   an image to the next one.  out_height, out_width: the number of lines of the output of an image, and of positions in
   a line. */
static RVM_NOINLINE void rvm_window_panel_f32(const rvm_window_panel_f32_arguments *args) {
  const rvm_window_panel_f32_arguments a = *args;
  const int64_t taps = a.window_height * a.window_width, area = a.height * a.width;
  const int64_t positions = a.out_height * a.out_width;
  if (a.columns <= a.panel_stride / 2) /* mostly zeros: clear the whole panel by one call */
    memset(a.panel, 0, (size_t)(a.rows * a.panel_stride) * sizeof *a.panel);
  else
    for (int64_t row = 0; row < a.rows && a.columns < a.panel_stride; row++)
      memset(a.panel + row * a.panel_stride + a.columns, 0, (size_t)(a.panel_stride - a.columns) * sizeof *a.panel);
  for (int64_t tap = 0; tap < taps; tap++) {
    const int64_t channel = (a.row - tap + taps - 1) / taps;
    const int64_t channels = (a.row + a.rows - tap + taps - 1) / taps - channel;
    const int64_t dy = tap / a.window_width * a.dilation_y - a.pad_y;
    const int64_t dx = tap % a.window_width * a.dilation_x - a.pad_x;
    float *const dst = a.panel + (channel * taps + tap - a.row) * a.panel_stride;
    const float *const x = a.x + channel * area;
    int64_t image = a.column / positions, line = a.column % positions / a.out_width, first = a.column % a.out_width;
    rvm_run_of_columns runs[RVM_PANEL_WIDTH];
    int64_t count = 0;
    if (channels <= 0) continue;
    /* A run is on one line of the output, and reads row y of x from column `left` on. */
    for (int64_t begin = 0, end; begin < a.columns; begin = end) {
      end = a.out_width - first < a.columns - begin ? begin + (a.out_width - first) : a.columns;
      const int64_t y = line * a.stride_y + dy, left = first * a.stride_x + dx, right = a.width - left;
      int64_t data_begin = left < 0 ? begin + (-left + a.stride_x - 1) / a.stride_x : begin;
      int64_t data_end = y < 0 || y >= a.height || right <= 0 ? begin : begin + (right - 1) / a.stride_x + 1;
      if (data_begin > end) data_begin = end;
      if (data_end > end) data_end = end;
      if (data_end < data_begin) data_end = data_begin;
      const int64_t source = image * a.image_stride + y * a.width + left + (data_begin - begin) * a.stride_x;
      runs[count++] = (rvm_run_of_columns){begin, data_begin, data_end, end, data_end > data_begin ? source : 0};
      if (count == RVM_PANEL_WIDTH || end == a.columns) {
        for (int64_t c = 0; c < channels; c++)
          rvm_fill_runs_f32(dst + c * taps * a.panel_stride, x + c * area, a.stride_x, runs, count);
        count = 0;
      }
      first = 0;
      if (++line == a.out_height) line = 0, image++;
    }
  }
}

#ifdef __has_builtin
#if __has_builtin(__builtin_shufflevector)
#define RVM_SHUFFLES
#endif
#endif

/* Transposes 16 x 16 elements of 32 bits, 4 x 4 of them at a time in registers:
   tile[r * 16 + c] = x[c * x_stride + r]. */
static inline RVM_UNUSED void rvm_transposed_tile(const rvm_transposed_tile_arguments *args) {
  const int32_t *x = args->x;
  int32_t *tile = args->tile;
  const int64_t stride = args->x_stride;
#ifdef RVM_SHUFFLES
  typedef int32_t four __attribute__((vector_size(16), aligned(4), may_alias));
  for (int c = 0; c < 16; c += 4) {
    for (int r = 0; r < 16; r += 4) {
      const int32_t *src = x + c * stride + r;
      const four x0 = *(const four *)src, x1 = *(const four *)(src + stride);
      const four x2 = *(const four *)(src + 2 * stride), x3 = *(const four *)(src + 3 * stride);
      const four low01 = __builtin_shufflevector(x0, x1, 0, 4, 1, 5),
                 low23 = __builtin_shufflevector(x2, x3, 0, 4, 1, 5);
      const four high01 = __builtin_shufflevector(x0, x1, 2, 6, 3, 7),
                 high23 = __builtin_shufflevector(x2, x3, 2, 6, 3, 7);
      int32_t *dst = tile + r * 16 + c;
      *(four *)dst = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
      *(four *)(dst + 16) = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
      *(four *)(dst + 32) = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
      *(four *)(dst + 48) = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
    }
  }
#else
  for (int r = 0; r < 16; r++)
    for (int c = 0; c < 16; c++) tile[r * 16 + c] = x[c * stride + r];
#endif
}

#ifdef __GNUC__

/* RVM_LANES: the floats of a vector.  RVM_TILE_VECTORS: the vectors of a row of a tile that are computed together. */
#if defined __AVX512F__
enum { RVM_LANES = 16, RVM_TILE_VECTORS = 4 };
#elif defined __AVX__
enum { RVM_LANES = 8, RVM_TILE_VECTORS = 2 };
#elif defined __aarch64__
enum { RVM_LANES = 4, RVM_TILE_VECTORS = 4 };
#elif defined __SSE__ || defined __ARM_NEON
enum { RVM_LANES = 4, RVM_TILE_VECTORS = 2 };
#else
#define RVM_SCALAR /* no vectors: the C compiler would keep them in memory */
enum { RVM_LANES = 1, RVM_TILE_VECTORS = 4 };
#endif

#ifdef RVM_SCALAR
typedef float rvm_lanes;
#else
typedef float rvm_lanes __attribute__((vector_size(RVM_LANES * 4), aligned(4), may_alias));
#endif

/* Returns left * right + sum for each lane, rounded once if the processor has fused multiply-add. */
static inline RVM_ALWAYS_INLINE rvm_lanes rvm_fma_lanes(float left, rvm_lanes right, rvm_lanes sum) {
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

/* Divides the columns of a tile into vectors: calls function(args, vectors, column) with constant numbers of vectors.
 */
#define RVM_FOR_TILE_COLUMNS(function, args)                                                        \
  const int vectors = ((int)(args)->columns + RVM_LANES - 1) / RVM_LANES;                           \
  const int rest = vectors % RVM_TILE_VECTORS, full = (vectors - rest) * RVM_LANES;                 \
  for (int j = 0; j < full; j += RVM_TILE_VECTORS * RVM_LANES) function(args, RVM_TILE_VECTORS, j); \
  if (rest == 3) function(args, 3, full);                                                           \
  if (rest == 2) function(args, 2, full);                                                           \
  if (rest == 1) function(args, 1, full);

/* Computes columns [column, column + vectors * RVM_LANES) of the tile in registers.  args->rows and `vectors` must be
   constants where this function is inlined. */
static inline RVM_ALWAYS_INLINE void rvm_tile_in_registers(const rvm_tile_f32_arguments *args, int vectors,
                                                           int64_t column) {
  const int rows = (int)args->rows;
  const int64_t depth = args->depth, a_row_stride = args->a_row_stride, a_column_stride = args->a_column_stride;
  const int64_t b_stride = args->b_stride, tile_stride = args->tile_stride;
  const float *const a = args->a, *const b = args->b + column;
  float *const tile = args->tile + column;
  rvm_lanes sum[RVM_TILE_ROWS][4];
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
      sum[r][v] = args->accumulates ? *(const rvm_lanes *)(tile + r * tile_stride + v * RVM_LANES) : (rvm_lanes){0};
  for (int64_t p = 0; p < depth; p++) {
    rvm_lanes right[4];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) right[v] = *(const rvm_lanes *)(b + p * b_stride + v * RVM_LANES);
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
      const float left = a[r * a_row_stride + p * a_column_stride];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++) sum[r][v] = rvm_fma_lanes(left, right[v], sum[r][v]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) *(rvm_lanes *)(tile + r * tile_stride + v * RVM_LANES) = sum[r][v];
}

/* Computes columns [column, column + vectors * RVM_LANES) of a tile of rvm_window_tile_f32 in registers.  args->rows
   and `vectors` must be constants where this is inlined. */
static inline RVM_ALWAYS_INLINE void rvm_window_tile_in_registers(const rvm_window_tile_f32_arguments *args,
                                                                  int vectors, int64_t column) {
  const int rows = (int)args->rows;
  const int64_t channels = args->channels, taps = args->taps, channel_stride = args->channel_stride;
  const int64_t b_stride = args->b_stride, tile_stride = args->tile_stride;
  const int64_t *const tap_offsets = args->tap_offsets;
  const float *b = args->b + column;
  float *const tile = args->tile + column;
  const float *x[RVM_TILE_ROWS];
  rvm_lanes sum[RVM_TILE_ROWS][4];
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++) {
    x[r] = args->x + args->row_offsets[r];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
      sum[r][v] = args->accumulates ? *(const rvm_lanes *)(tile + r * tile_stride + v * RVM_LANES) : (rvm_lanes){0};
  }
  for (int64_t c = 0; c < channels; c++)
    for (int64_t t = 0; t < taps; t++, b += b_stride) {
      const int64_t offset = c * channel_stride + tap_offsets[t];
      rvm_lanes right[4];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++) right[v] = *(const rvm_lanes *)(b + v * RVM_LANES);
#pragma GCC unroll 6
      for (int r = 0; r < rows; r++) {
        const float left = x[r][offset];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) sum[r][v] = rvm_fma_lanes(left, right[v], sum[r][v]);
      }
    }
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) *(rvm_lanes *)(tile + r * tile_stride + v * RVM_LANES) = sum[r][v];
}

/* Computes the sum over c < channels and t < taps of
   x[row_offsets[r] + c * channel_stride + tap_offsets[t]] * b[(c * taps + t) * b_stride + j], in order of c, then of t.
   Stores the sum in tile[r * tile_stride + j], or adds it if `accumulates`.  rows: a constant, at most RVM_TILE_ROWS.
   Columns of b and of the tile up to the next multiple of RVM_TILE_STEP must exist, because some of them are also
   computed. */
static inline RVM_ALWAYS_INLINE void rvm_window_tile_f32(const rvm_window_tile_f32_arguments *args) {
  RVM_FOR_TILE_COLUMNS(rvm_window_tile_in_registers, args)
}

/* Computes the sum over p < depth of a[r * a_row_stride + p * a_column_stride] * b[p * b_stride + j], in order of p.
   Stores the sum in tile[r * tile_stride + j], or adds it if `accumulates`.  rows: a constant, at most RVM_TILE_ROWS.
   Columns of b and of the tile up to the next multiple of RVM_TILE_STEP must exist, because some of them are also
   computed. */
static inline RVM_ALWAYS_INLINE void rvm_tile_f32(const rvm_tile_f32_arguments *args) {
  RVM_FOR_TILE_COLUMNS(rvm_tile_in_registers, args)
}

/* Computes the sums of `rows` rows and `vectors` vectors of columns in registers.  For each entry of `offsets`, each
   row of x is read once and used for all taps that need it.  args->taps, `rows` and `vectors` must be constants where
   this function is inlined. */
static inline RVM_ALWAYS_INLINE void rvm_columns_in_registers(const rvm_columns_f32_arguments *args, int rows,
                                                              int vectors, int64_t row, int64_t column) {
  const int taps = (int)args->taps;
  const int64_t x_stride = args->x_stride, sums_stride = args->sums_stride, weight_stride = args->weight_stride;
  const float *const x = args->x + row * x_stride + column;
  float *const sums = args->sums + row * sums_stride + column;
  rvm_lanes sum[RVM_COLUMN_ROWS][4];
#pragma GCC unroll 7
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
      sum[r][v] = args->accumulates ? *(const rvm_lanes *)(sums + r * sums_stride + v * RVM_LANES) : (rvm_lanes){0};
  for (int64_t c = 0; c < args->count; c++) {
    const float *const weights = args->weights + args->weight_offsets[c];
    const float *const source = x + args->offsets[c];
    float weight[RVM_COLUMN_TAPS];
#pragma GCC unroll 7
    for (int t = 0; t < taps; t++) weight[t] = weights[t * weight_stride];
#pragma GCC unroll 13
    for (int r = 0; r < rows + taps - 1; r++) {
      rvm_lanes values[4];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++) values[v] = *(const rvm_lanes *)(source + r * x_stride + v * RVM_LANES);
#pragma GCC unroll 7
      for (int t = 0; t < taps; t++)
        if (r - t >= 0 && r - t < rows)
#pragma GCC unroll 4
          for (int v = 0; v < vectors; v++) sum[r - t][v] = rvm_fma_lanes(weight[t], values[v], sum[r - t][v]);
    }
  }
#pragma GCC unroll 7
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) *(rvm_lanes *)(sums + r * sums_stride + v * RVM_LANES) = sum[r][v];
}

/* Stores in sums[r * sums_stride + j], or adds to it if `accumulates`, the sum over c < count and t < taps of
   weights[weight_offsets[c] + t * weight_stride] * x[offsets[c] + (r + t) * x_stride + j].  Rows up to the next
   multiple of RVM_COLUMN_ROWS and columns up to the next multiple of RVM_TILE_STEP must exist, because some of them are
   also computed.  taps: a constant from 1 to RVM_COLUMN_TAPS. */
static inline RVM_ALWAYS_INLINE void rvm_columns_f32(const rvm_columns_f32_arguments *args) {
  const int64_t columns = args->columns;
  for (int64_t r = 0; r < args->rows; r += RVM_COLUMN_ROWS) {
    /* A processor can add about eight vectors at a time.  So if few rows are left, several vectors of columns are
       computed together. */
    const int64_t rows = args->rows - r;
    int64_t j = 0;
    if (rows <= 2)
      for (; columns - j > 3 * RVM_LANES; j += 4 * RVM_LANES) rvm_columns_in_registers(args, 2, 4, r, j);
    if (rows <= 4)
      for (; columns - j > RVM_LANES; j += 2 * RVM_LANES) rvm_columns_in_registers(args, 4, 2, r, j);
    for (; j < columns; j += RVM_LANES) rvm_columns_in_registers(args, RVM_COLUMN_ROWS, 1, r, j);
  }
}

/* Computes columns [column, column + vectors * RVM_LANES) of the sums of rvm_taps_f32 in registers.  `vectors`, at most
   4, must be a constant where this function is inlined. */
static inline RVM_ALWAYS_INLINE void rvm_taps_in_registers(const rvm_taps_f32_arguments *args, int vectors,
                                                           int64_t column) {
  const float *const weights = args->weights, *const x = args->x + column;
  const int64_t *const offsets = args->offsets, taps = args->taps;
  float *const sums = args->sums + column;
  rvm_lanes sum[4];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++)
    sum[v] = args->accumulates ? *(const rvm_lanes *)(sums + v * RVM_LANES) : (rvm_lanes){0};
  for (int64_t t = 0; t < taps; t++) {
    const float *source = x + offsets[t];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
      sum[v] = rvm_fma_lanes(weights[t], *(const rvm_lanes *)(source + v * RVM_LANES), sum[v]);
  }
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) *(rvm_lanes *)(sums + v * RVM_LANES) = sum[v];
}

/* Stores in sums[j], or adds to it if `accumulates`, the sum over t < taps of weights[t] * x[offsets[t] + j], in order
   of t.  Columns up to the next multiple of RVM_TAP_STEP must exist, because some of them are also computed. */
static inline RVM_ALWAYS_INLINE void rvm_taps_f32(const rvm_taps_f32_arguments *args) {
  const int64_t columns = args->columns;
  int64_t j = 0;
  for (; columns - j > 2 * RVM_LANES; j += 4 * RVM_LANES) rvm_taps_in_registers(args, 4, j);
  for (; columns - j > RVM_LANES; j += 2 * RVM_LANES) rvm_taps_in_registers(args, 2, j);
  for (; j < columns; j += RVM_LANES) rvm_taps_in_registers(args, 1, j);
}

#else /* a C compiler without vector extensions */

static void rvm_columns_f32(const rvm_columns_f32_arguments *args) {
  for (int64_t r = 0; r < args->rows; r++)
    for (int64_t j = 0; j < args->columns; j++) {
      float sum = args->accumulates ? args->sums[r * args->sums_stride + j] : 0;
      for (int64_t c = 0; c < args->count; c++)
        for (int64_t t = 0; t < args->taps; t++)
          sum += args->weights[args->weight_offsets[c] + t * args->weight_stride] *
                 args->x[args->offsets[c] + (r + t) * args->x_stride + j];
      args->sums[r * args->sums_stride + j] = sum;
    }
}

static void rvm_taps_f32(const rvm_taps_f32_arguments *args) {
  for (int64_t j = 0; j < args->columns; j++) {
    float sum = args->accumulates ? args->sums[j] : 0;
    for (int64_t t = 0; t < args->taps; t++) sum += args->weights[t] * args->x[args->offsets[t] + j];
    args->sums[j] = sum;
  }
}

static void rvm_window_tile_f32(const rvm_window_tile_f32_arguments *args) {
  for (int64_t r = 0; r < args->rows; r++) {
    float *const tile = args->tile + r * args->tile_stride;
    const float *const x = args->x + args->row_offsets[r], *b = args->b;
    for (int64_t j = 0; j < args->columns && !args->accumulates; j++) tile[j] = 0;
    for (int64_t c = 0; c < args->channels; c++)
      for (int64_t t = 0; t < args->taps; t++, b += args->b_stride)
        for (int64_t j = 0; j < args->columns; j++)
          tile[j] += x[c * args->channel_stride + args->tap_offsets[t]] * b[j];
  }
}

static void rvm_tile_f32(const rvm_tile_f32_arguments *args) {
  for (int64_t r = 0; r < args->rows; r++) {
    float *const tile = args->tile + r * args->tile_stride;
    for (int64_t j = 0; j < args->columns && !args->accumulates; j++) tile[j] = 0;
    for (int64_t p = 0; p < args->depth; p++)
      for (int64_t j = 0; j < args->columns; j++)
        tile[j] += args->a[r * args->a_row_stride + p * args->a_column_stride] * args->b[p * args->b_stride + j];
  }
}

#endif

/* Calls function(&args), a micro-kernel whose number of rows must be a constant.  args.rows, from 1 to RVM_TILE_ROWS,
   is a constant in each case of the switch. */
#define RVM_WITH_CONSTANT_ROWS(function, args)        \
  switch ((args).rows) {                              \
    case 1: (args).rows = 1, function(&args); break;  \
    case 2: (args).rows = 2, function(&args); break;  \
    case 3: (args).rows = 3, function(&args); break;  \
    case 4: (args).rows = 4, function(&args); break;  \
    case 5: (args).rows = 5, function(&args); break;  \
    default: (args).rows = 6, function(&args); break; \
  }

/* Calls rvm_tile_f32.  The number of rows, from 1 to RVM_TILE_ROWS, need not be a constant. */
static RVM_NOINLINE void rvm_tile_f32_any_rows(const rvm_tile_f32_arguments *args) {
  rvm_tile_f32_arguments tile = *args;
  RVM_WITH_CONSTANT_ROWS(rvm_tile_f32, tile)
}

#endif
