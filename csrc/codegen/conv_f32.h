/* conv_f32.h: micro-kernels for convolutions of f32 that read the windows of the image in place, and copies of windows.

   The order and the rounding of the additions are those of gemm_f32.h.  The arguments are declared in
   micro_kernels.def; strides are in elements.  Read relvm/kernels/conv for the loops around these functions. */
#ifndef RELVM_CONV_F32_H
#define RELVM_CONV_F32_H

#include "gemm_f32.h"

/* A run: the columns [begin, end) of a row of a panel.  Columns [data_begin, data_end) become the elements x[source],
   x[source + step], ..., where x and `step` are arguments of rvm_fill_runs_f32.  The other columns become 0. */
typedef struct rvm_run_of_columns {
  int64_t begin, data_begin, data_end, end, source;
} rvm_run_of_columns;

enum { RVM_LONG_RUN = 1024 }; /* the least number of elements that memcpy copies as fast as a loop */

/* Copies `count` elements.  Runs that are not long are copied in groups of 16, four, two or one elements, because
   memcpy is slower for them.  The last group may overlap the group before it. */
static inline void rvm_copy_run_f32(float *dst, const float *x, int64_t count) {
  if (count >= RVM_LONG_RUN || RVM_IS_COMPACT) {
    memcpy(dst, x, (size_t)count * sizeof *x);
    return;
  }
  if (count >= 16) {
    for (int64_t j = 0; j + 16 <= count; j += 16) memcpy(dst + j, x + j, 16 * sizeof *x);
    memcpy(dst + count - 16, x + count - 16, 16 * sizeof *x);
    return;
  }
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
    if (step == 2) { /* with a constant step, compilers vectorize the loop */
      RVM_SIMD()
      for (int64_t j = 0; j < size; j++) dst[run.data_begin + j] = x[run.source + j * 2];
    } else if (step != 1)
      for (int64_t j = 0; j < size; j++) dst[run.data_begin + j] = x[run.source + j * step];
    else
      rvm_copy_run_f32(dst + run.data_begin, x + run.source, size);
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
  else if (a.columns < a.panel_stride)
    for (int64_t row = 0; row < a.rows; row++)
      memset(a.panel + row * a.panel_stride + a.columns, 0, (size_t)(a.panel_stride - a.columns) * sizeof *a.panel);
  for (int64_t tap = 0; tap < taps; tap++) {
    /* The rows of this tap belong to the channels [first_channel, first_channel + channels). */
    const int64_t first_channel = (a.row - tap + taps - 1) / taps;
    const int64_t channels = (a.row + a.rows - tap + taps - 1) / taps - first_channel;
    const int64_t dy = tap / a.window_width * a.dilation_y - a.pad_y;
    const int64_t dx = tap % a.window_width * a.dilation_x - a.pad_x;
    float *const dst = a.panel + (first_channel * taps + tap - a.row) * a.panel_stride;
    const float *const x = a.x + first_channel * area;
    int64_t image = a.column / positions, line = a.column % positions / a.out_width, position = a.column % a.out_width;
    rvm_run_of_columns runs[RVM_PANEL_WIDTH];
    int64_t count = 0;
    if (channels <= 0) continue;
    /* A run is on one line of the output.  Its columns read row y of x at x_begin, x_begin + stride_x, ...: those in
       [0, width) are data, and the others become 0.  x_rest: the number of elements of the row from x_begin on. */
    for (int64_t begin = 0, end; begin < a.columns; begin = end) {
      end = a.out_width - position < a.columns - begin ? begin + (a.out_width - position) : a.columns;
      const int64_t y = line * a.stride_y + dy, x_begin = position * a.stride_x + dx, x_rest = a.width - x_begin;
      int64_t data_begin = x_begin < 0 ? begin + (-x_begin + a.stride_x - 1) / a.stride_x : begin;
      const int has_data = y >= 0 && y < a.height && x_rest > 0;
      int64_t data_end = has_data ? begin + (x_rest - 1) / a.stride_x + 1 : begin;
      if (data_begin > end) data_begin = end;
      if (data_end > end) data_end = end;
      if (data_end < data_begin) data_end = data_begin;
      const int64_t source = image * a.image_stride + y * a.width + x_begin + (data_begin - begin) * a.stride_x;
      runs[count++] = (rvm_run_of_columns){begin, data_begin, data_end, end, data_end > data_begin ? source : 0};
      if (count == RVM_PANEL_WIDTH || end == a.columns) {
        for (int64_t c = 0; c < channels; c++)
          rvm_fill_runs_f32(dst + c * taps * a.panel_stride, x + c * area, a.stride_x, runs, count);
        count = 0;
      }
      position = 0;
      if (++line == a.out_height) {
        line = 0;
        image++;
      }
    }
  }
}

#ifdef __GNUC__

/* Computes rows [first, first + rows) and columns [column, column + vectors * RVM_LANES) of the tile in registers.
   `rows` and `vectors` are constants where this is inlined. */
static inline RVM_ALWAYS_INLINE void rvm_window_tile_in_registers(const rvm_window_tile_f32_arguments *args, int rows,
                                                                  int vectors, int64_t first, int64_t column) {
  const int64_t depth = args->depth, b_stride = args->b_stride;
  const int64_t *const offsets = args->offsets;
  const float *const b = args->b + column;
  float *const tile = args->tile + first * args->tile_stride + column;
  const float *x[RVM_TILE_ROWS];
  rvm_tile_sums sum;
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++) x[r] = args->x + args->row_offsets[first + r];
  /* The packed weights that follow b are needed next.  Each tile prefetches a part of them. */
  const float *const ahead = args->b + depth * b_stride + first / RVM_TILE_ROWS * depth * RVM_LINE_FLOATS;
  rvm_begin_sums(sum, rows, vectors, tile, args->tile_stride, args->accumulates);
  RVM_UNROLL_TWICE
  for (int64_t p = 0; p < depth; p++) {
    const int64_t offset = offsets[p];
    RVM_PREFETCH(ahead + p * RVM_LINE_FLOATS);
    rvm_lanes right[4];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) right[v] = *(const rvm_lanes *)(b + p * b_stride + v * RVM_LANES);
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
      const float left = x[r][offset];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++) sum[r][v] = rvm_fma_lanes(left, right[v], sum[r][v]);
    }
  }
  rvm_store_sums(sum, rows, vectors, tile, args->tile_stride);
}

/* Defines a function for all rows of `vectors` vectors of columns, from `column` on. */
#ifdef RVM_COMPACT
#define RVM_DEFINE_WINDOW_TILE(vectors)                                                                  \
  static void rvm_window_tile_f32_##vectors(const rvm_window_tile_f32_arguments *args, int64_t column) { \
    int64_t r = 0;                                                                                       \
    for (; r + RVM_TILE_ROWS <= args->rows; r += RVM_TILE_ROWS)                                          \
      rvm_window_tile_in_registers(args, RVM_TILE_ROWS, vectors, r, column);                             \
    for (; r < args->rows; r++) rvm_window_tile_in_registers(args, 1, vectors, r, column);               \
  }
#else
#define RVM_DEFINE_WINDOW_TILE(vectors)                                                              \
  RVM_OUT_OF_LINE(                                                                                   \
      void rvm_window_tile_f32_##vectors(const rvm_window_tile_f32_arguments *args, int64_t column), \
      const int64_t full = args->rows / RVM_TILE_ROWS * RVM_TILE_ROWS;                               \
      for (int64_t r = 0; r < full; r += RVM_TILE_ROWS)                                              \
          rvm_window_tile_in_registers(args, RVM_TILE_ROWS, vectors, r, column);                     \
      switch (args->rows - full) {                                                                   \
        case 1: rvm_window_tile_in_registers(args, 1, vectors, full, column); break;                 \
        case 2: rvm_window_tile_in_registers(args, 2, vectors, full, column); break;                 \
        case 3: rvm_window_tile_in_registers(args, 3, vectors, full, column); break;                 \
        case 4: rvm_window_tile_in_registers(args, 4, vectors, full, column); break;                 \
        case 5: rvm_window_tile_in_registers(args, 5, vectors, full, column); break;                 \
        default: break;                                                                              \
      })
#endif
RVM_DEFINE_WINDOW_TILE(1)
RVM_DEFINE_WINDOW_TILE(2)
RVM_DEFINE_WINDOW_TILE(3)
RVM_DEFINE_WINDOW_TILE(4)
#undef RVM_DEFINE_WINDOW_TILE

/* Computes the sum over p < depth of x[row_offsets[r] + offsets[p]] * b[p * b_stride + j], in order of p.  Stores the
   sum in tile[r * tile_stride + j], or adds it if `accumulates`.  rows, depth: at most RVM_MAX_OFFSETS.  Columns of b
   and of the tile up to the next multiple of RVM_TILE_STEP must exist, because some of them are also computed. */
static inline void rvm_window_tile_f32(const rvm_window_tile_f32_arguments *args) {
  const int vectors = ((int)args->columns + RVM_LANES - 1) / RVM_LANES, rest = vectors % RVM_TILE_VECTORS;
  const int full = (vectors - rest) * RVM_LANES;
  for (int j = 0; j < full; j += RVM_TILE_VECTORS * RVM_LANES)
    RVM_TILE_VECTORS == 4 ? rvm_window_tile_f32_4(args, j) : rvm_window_tile_f32_2(args, j);
  if (rest == 3) rvm_window_tile_f32_3(args, full);
  if (rest == 2) rvm_window_tile_f32_2(args, full);
  if (rest == 1) rvm_window_tile_f32_1(args, full);
}

/* Computes columns [column, column + vectors * RVM_LANES) of the tile in registers.  `rows` and `vectors` are constants
   where this is inlined. */
static inline RVM_ALWAYS_INLINE void rvm_direct_tile_in_registers(const rvm_direct_tile_f32_arguments *args, int rows,
                                                                  int vectors, int64_t column) {
  const int64_t depth = args->depth, a_row_stride = args->a_row_stride;
  const int64_t *const offsets = args->offsets;
  const float *const a = args->a, *const x = args->x + column;
  rvm_tile_sums sum;
  rvm_begin_sums(sum, rows, vectors, args->tile + column, args->tile_stride, args->accumulates);
  int64_t p = 0;
#ifdef RVM_LEFT_LANES
  for (const int64_t full = depth / RVM_LEFT_LANES * RVM_LEFT_LANES; p < full; p += RVM_LEFT_LANES) {
    const float *const right[RVM_LEFT_LANES] = {x + offsets[p], x + offsets[p + 1], x + offsets[p + 2],
                                                x + offsets[p + 3]};
    rvm_add_products_of_lanes(sum, rows, vectors, a + p, a_row_stride, right, NULL, 0);
  }
#endif
  RVM_UNROLL_TWICE
  for (; p < depth; p++) {
    const float *const row = x + offsets[p];
    RVM_PREFETCH(a + rows * a_row_stride + p * rows);
    rvm_lanes right[4];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) right[v] = *(const rvm_lanes *)(row + v * RVM_LANES);
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
      const float left = a[r * a_row_stride + p];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++) sum[r][v] = rvm_fma_lanes(left, right[v], sum[r][v]);
    }
  }
  rvm_store_sums(sum, rows, vectors, args->tile + column, args->tile_stride);
}

/* rvm_direct_tile_f32(args) computes the sum over p < depth of a[r * a_row_stride + p] * x[offsets[p] + j], in order of
   p.  Stores the sum in tile[r * tile_stride + j], or adds it if `accumulates`.  rows: at most RVM_TILE_ROWS.  depth:
   at most RVM_MAX_OFFSETS.  Elements of x and of the tile for columns j up to the next multiple of RVM_TILE_STEP must
   exist, because some of these columns are also computed. */
RVM_DEFINE_TILES(rvm_direct_tile_f32, rvm_direct_tile_f32_arguments, rvm_direct_tile_in_registers, RVM_LANES,
                 RVM_TILE_VECTORS, (int64_t)sizeof(float) * args->a_row_stride)

#else /* a C compiler without vector extensions */

static void rvm_direct_tile_f32(const rvm_direct_tile_f32_arguments *args) {
  for (int64_t r = 0; r < args->rows; r++) {
    float *const tile = args->tile + r * args->tile_stride;
    for (int64_t j = 0; j < args->columns && !args->accumulates; j++) tile[j] = 0;
    for (int64_t p = 0; p < args->depth; p++)
      for (int64_t j = 0; j < args->columns; j++)
        tile[j] += args->a[r * args->a_row_stride + p] * args->x[args->offsets[p] + j];
  }
}

static void rvm_window_tile_f32(const rvm_window_tile_f32_arguments *args) {
  for (int64_t r = 0; r < args->rows; r++) {
    float *const tile = args->tile + r * args->tile_stride;
    const float *const x = args->x + args->row_offsets[r];
    for (int64_t j = 0; j < args->columns && !args->accumulates; j++) tile[j] = 0;
    for (int64_t p = 0; p < args->depth; p++)
      for (int64_t j = 0; j < args->columns; j++) tile[j] += x[args->offsets[p]] * args->b[p * args->b_stride + j];
  }
}

#endif

#endif
