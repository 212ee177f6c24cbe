/* depthwise_f32.h: micro-kernels for depthwise convolutions of f32, and for others with few filters or channels.

   The order and the rounding of the additions are those of gemm_f32.h.  The arguments are declared in
   micro_kernels.def; strides are in elements.  Read relvm/kernels/conv/depthwise.py for the loops around these
   functions. */
#ifndef RELVM_DEPTHWISE_F32_H
#define RELVM_DEPTHWISE_F32_H

#include "gemm_f32.h"

#ifdef __GNUC__

/* Computes the sums of `rows` rows and `vectors` vectors of columns in registers.  For each entry of `offsets`, each
   row of x is read once and used for all taps that need it.  `taps`, `rows` and `vectors` must be constants where this
   function is inlined. */
static inline RVM_ALWAYS_INLINE void rvm_columns_in_registers(const rvm_columns_f32_arguments *args, int taps, int rows,
                                                              int vectors, int64_t row, int64_t column) {
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

/* Computes the sums of rvm_columns_f32.  `taps` must be a constant where this function is inlined. */
static inline RVM_ALWAYS_INLINE void rvm_columns_of_taps(const rvm_columns_f32_arguments *args, int taps) {
  const int64_t columns = args->columns;
  for (int64_t r = 0; r < args->rows; r += RVM_COLUMN_ROWS) {
    /* About eight independent additions must be in flight to hide their latency.  So if few rows are left, several
       vectors of columns are computed together.  With 32 vector registers (16 lanes), more sums fit, so each weight is
       read less often. */
    const int64_t rows = args->rows - r;
    int64_t j = 0;
    if (rows <= 2)
      for (; columns - j > 3 * RVM_LANES; j += 4 * RVM_LANES) rvm_columns_in_registers(args, taps, 2, 4, r, j);
    if (rows <= 4 && RVM_LANES == 16)
      for (; columns - j > 2 * RVM_LANES; j += 3 * RVM_LANES) rvm_columns_in_registers(args, taps, 4, 3, r, j);
    if (rows <= 4)
      for (; columns - j > RVM_LANES; j += 2 * RVM_LANES) rvm_columns_in_registers(args, taps, 4, 2, r, j);
    if (RVM_LANES == 16)
      for (; columns - j > RVM_LANES; j += 2 * RVM_LANES)
        rvm_columns_in_registers(args, taps, RVM_COLUMN_ROWS, 2, r, j);
    for (; j < columns; j += RVM_LANES) rvm_columns_in_registers(args, taps, RVM_COLUMN_ROWS, 1, r, j);
  }
}

/* Calls F(taps) for each number of taps of rvm_columns_f32. */
#define RVM_FOR_EACH_TAPS(F) F(1) F(2) F(3) F(4) F(5) F(6) F(7)

#define RVM_DEFINE_COLUMNS(taps) \
  RVM_OUT_OF_LINE(void rvm_columns_f32_##taps(const rvm_columns_f32_arguments *args), rvm_columns_of_taps(args, taps);)
RVM_FOR_EACH_TAPS(RVM_DEFINE_COLUMNS)
#undef RVM_DEFINE_COLUMNS

/* Computes the sum over c < count and t < taps of weights[weight_offsets[c] + t * weight_stride] * x[offsets[c] +
   (r + t) * x_stride + j].  Stores the sum in sums[r * sums_stride + j], or adds it if `accumulates`.  Rows up to the
   next multiple of RVM_COLUMN_ROWS and columns up to the next multiple of RVM_TILE_STEP must exist, because some of
   them are also computed.  taps: a constant from 1 to RVM_COLUMN_TAPS. */
static inline RVM_ALWAYS_INLINE void rvm_columns_f32(const rvm_columns_f32_arguments *args) {
#define RVM_CALL_COLUMNS(t) \
  if (args->taps == t) rvm_columns_f32_##t(args);
  RVM_FOR_EACH_TAPS(RVM_CALL_COLUMNS)
#undef RVM_CALL_COLUMNS
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

/* Computes the sum over t < taps of weights[t] * x[offsets[t] + j], in order of t.  Stores the sum in sums[j], or adds
   it if `accumulates`.  Columns up to the next multiple of RVM_TAP_STEP must exist, because some of them are also
   computed. */
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

#endif

#endif
