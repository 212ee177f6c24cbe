/* depthwise_f32.h: micro-kernels for depthwise convolutions of f32, and for other convolutions with few filters or
   channels.

   The order and the rounding of the additions are those of gemm_f32.h.  The arguments are declared in
   micro_kernels.def; strides are in elements.  Read relvm/kernels/conv/depthwise.py for the loops around these
   functions. */
#ifndef RELVM_DEPTHWISE_F32_H
#define RELVM_DEPTHWISE_F32_H

#include "gemm_f32.h"

#ifdef __GNUC__

#ifdef RVM_COMPACT

/* Computes the sums of rvm_columns_f32 row by row, one vector at a time. */
static RVM_NOINLINE void rvm_columns_f32(const rvm_columns_f32_arguments *args) {
  for (int64_t r = 0; r < args->rows; r++)
    for (int64_t j = 0; j < args->columns; j += RVM_LANES) {
      rvm_lanes *const stored = (rvm_lanes *)(args->sums + r * args->sums_stride + j);
      rvm_lanes sum = args->accumulates ? *stored : (rvm_lanes){0};
      for (int64_t c = 0; c < args->count; c++) {
        const float *weight = args->weights + args->weight_offsets[c];
        const float *source = args->x + args->offsets[c] + r * args->x_stride + j;
        for (int64_t t = 0; t < args->taps; t++, weight += args->weight_stride, source += args->x_stride)
          sum = rvm_fma_lanes(*weight, *(const rvm_lanes *)source, sum);
      }
      *stored = sum;
    }
}

#else

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
    /* About eight independent additions must be in flight to hide their latency.  So if few rows are left, two vectors
       of columns are computed together.  With 32 vector registers, more sums fit, so each weight is read less often. */
    int64_t j = 0;
    const int64_t rows = args->rows - r;
    if (rows <= 4)
      for (; columns - j > RVM_LANES; j += 2 * RVM_LANES) rvm_columns_in_registers(args, taps, 4, 2, r, j);
    if (RVM_VECTOR_REGISTERS == 32)
      for (; columns - j > RVM_LANES; j += 2 * RVM_LANES)
        rvm_columns_in_registers(args, taps, RVM_COLUMN_ROWS, 2, r, j);
    for (; j < columns; j += RVM_LANES) rvm_columns_in_registers(args, taps, RVM_COLUMN_ROWS, 1, r, j);
  }
}

/* Calls F(taps) for each number of taps that rvm_columns_f32 accepts. */
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

#endif

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
  for (; columns - j > 2 * RVM_LANES && !RVM_IS_COMPACT; j += 4 * RVM_LANES) rvm_taps_in_registers(args, 4, j);
  for (; columns - j > RVM_LANES && !RVM_IS_COMPACT; j += 2 * RVM_LANES) rvm_taps_in_registers(args, 2, j);
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

/* ---- whole planes ---- */

/* The sizes of the planes of rvm_planes_f32, and the positions of the window, in order of addition. */
typedef struct rvm_plane_taps {
  int64_t elements, weights; /* number of elements of a plane, and of weights of its window */
  int64_t stride;            /* distance between rows of `masks`, and between planes of `sums`, in floats */
  int64_t count;
  int64_t least, most;               /* the least and the largest number among `shifts` and 0 */
  int64_t shifts[RVM_PLANE_TAPS];    /* rvm_plane_shift of each position */
  int64_t positions[RVM_PLANE_TAPS]; /* the index of each position in the window, which is that of its weight */
} rvm_plane_taps;

/* Returns the stride, in floats, from the sums of one plane of `elements` elements to those of the next plane. */
static inline int64_t rvm_plane_stride(int64_t elements) {
  return (elements + RVM_TILE_STEP - 1) / RVM_TILE_STEP * RVM_TILE_STEP;
}

static inline int64_t rvm_clamped(int64_t number, int64_t most) {
  return number < 0 ? 0 : number > most ? most : number;
}

/* Returns the offset, in elements, of the element that a sum reads at `position` of the window, relative to the element
   of x with the index of the sum. */
static inline int64_t rvm_plane_shift(const rvm_planes_f32_arguments *args, int64_t position) {
  const int64_t down = position / args->window_width * args->dilation_y - args->pad_y;
  return down * args->width + position % args->window_width * args->dilation_x - args->pad_x;
}

/* Initializes *taps, and stores a row of masks for each window position: -1 for each element of a plane whose sum reads
   the plane there, and 0 where it reads padding. */
static inline void rvm_mask_planes(const rvm_planes_f32_arguments *args, rvm_plane_taps *taps) {
  const int64_t height = args->height, width = args->width, stride = rvm_plane_stride(height * width);
  *taps = (rvm_plane_taps){.elements = height * width,
                           .weights = args->window_height * args->window_width,
                           .stride = stride,
                           .count = args->taps};
  memset(args->masks, 0, (size_t)(args->taps * stride) * sizeof *args->masks);
  for (int64_t t = 0; t < args->taps; t++) {
    const int64_t position = args->order[t];
    const int64_t down = position / args->window_width * args->dilation_y - args->pad_y;
    const int64_t right = position % args->window_width * args->dilation_x - args->pad_x;
    const int64_t shift = rvm_plane_shift(args, position);
    taps->positions[t] = position;
    taps->shifts[t] = shift;
    if (shift < taps->least) taps->least = shift;
    if (shift > taps->most) taps->most = shift;
    const int64_t first = rvm_clamped(-right, width), last = rvm_clamped(width - right, width);
    for (int64_t i = rvm_clamped(-down, height); i < rvm_clamped(height - down, height); i++)
      for (int64_t j = first; j < last; j++) args->masks[t * stride + i * width + j] = -1;
  }
}

#ifdef __GNUC__

static inline int rvm_fits_vector(int64_t elements) { return elements <= RVM_LANES; }

/* Returns RVM_LANES floats, or 0 in the lanes whose mask is 0.  The other lanes have the mask -1. */
static inline RVM_ALWAYS_INLINE rvm_lanes rvm_masked_lanes(const float *x, const int32_t *mask) {
#ifdef RVM_SCALAR
  return *mask ? *x : 0;
#else
  return (rvm_lanes)(*(const rvm_words *)x & *(const rvm_words *)mask);
#endif
}

/* Computes `vectors` vectors of sums, at most 4: adjacent vectors of one plane or, if `of_planes`, the first vector of
   each of `vectors` consecutive planes.  `vectors` and `of_planes` must be constants where this function is inlined. */
static inline RVM_ALWAYS_INLINE void rvm_plane_in_registers(const rvm_plane_taps *taps, int vectors, int of_planes,
                                                            const float *x, const float *weights, const int32_t *masks,
                                                            float *sums) {
  const int64_t x_step = of_planes ? taps->elements : RVM_LANES, mask_step = of_planes ? 0 : RVM_LANES;
  const int64_t sums_step = of_planes ? taps->stride : RVM_LANES, weight_step = of_planes ? taps->weights : 0;
  rvm_lanes sum[4];
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) sum[v] = (rvm_lanes){0};
  for (int64_t t = 0; t < taps->count; t++, masks += taps->stride) {
    const float *const source = x + taps->shifts[t], *const weight = weights + taps->positions[t];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
      sum[v] =
          rvm_fma_lanes(weight[v * weight_step], rvm_masked_lanes(source + v * x_step, masks + v * mask_step), sum[v]);
  }
#pragma GCC unroll 4
  for (int v = 0; v < vectors; v++) *(rvm_lanes *)(sums + v * sums_step) = sum[v];
}

/* Computes the depthwise convolution of one plane, up to four vectors at a time.  The last vector may extend past
   `elements`: `sums` and each row of `masks` have taps->stride elements. */
static inline void rvm_plane_sums(const rvm_plane_taps *taps, const float *x, const float *weights,
                                  const int32_t *masks, float *sums) {
  const int64_t elements = taps->elements;
  int64_t i = 0;
  for (; elements - i > 3 * RVM_LANES; i += 4 * RVM_LANES)
    rvm_plane_in_registers(taps, 4, 0, x + i, weights, masks + i, sums + i);
  if (elements - i > 2 * RVM_LANES)
    rvm_plane_in_registers(taps, 3, 0, x + i, weights, masks + i, sums + i);
  else if (elements - i > RVM_LANES)
    rvm_plane_in_registers(taps, 2, 0, x + i, weights, masks + i, sums + i);
  else if (i < elements)
    rvm_plane_in_registers(taps, 1, 0, x + i, weights, masks + i, sums + i);
}

/* Computes the sums of four consecutive planes.  Each plane fits a vector. */
static inline void rvm_four_plane_sums(const rvm_plane_taps *taps, const float *x, const float *weights,
                                       const int32_t *masks, float *sums) {
  rvm_plane_in_registers(taps, 4, 1, x, weights, masks, sums);
}

#else

static inline int rvm_fits_vector(int64_t elements) { return elements <= 1; }

static void rvm_plane_sums(const rvm_plane_taps *taps, const float *x, const float *weights, const int32_t *masks,
                           float *sums) {
  for (int64_t i = 0; i < taps->elements; i++) {
    float sum = 0;
    for (int64_t t = 0; t < taps->count; t++)
      sum += weights[taps->positions[t]] * (masks[t * taps->stride + i] ? x[i + taps->shifts[t]] : 0);
    sums[i] = sum;
  }
}

static void rvm_four_plane_sums(const rvm_plane_taps *taps, const float *x, const float *weights, const int32_t *masks,
                                float *sums) {
  for (int p = 0; p < 4; p++)
    rvm_plane_sums(taps, x + p * taps->elements, weights + p * taps->weights, masks, sums + p * taps->stride);
}

#endif

/* Implements rvm_planes_f32. */
static inline void rvm_convolve_planes(const rvm_planes_f32_arguments *args) {
  rvm_plane_taps taps;
  rvm_mask_planes(args, &taps);
  const int64_t elements = taps.elements;
  for (int64_t p = 0, count; p < args->planes; p += count) {
    const int64_t first = args->first + p * elements;
    const float *x = args->x + first, *const weights = args->weights + p * taps.weights;
    float *const sums = args->sums + p * taps.stride;
    /* The number of planes that are computed together, if all reads are inside x. */
    const int64_t together = args->planes - p >= 4 && rvm_fits_vector(elements) ? 4 : 1;
    const int is_inside = /* all reads are inside x, so that no copy is needed */
        first + taps.least >= 0 && first + taps.most + (together - 1) * elements + taps.stride <= args->size;
    count = is_inside ? together : 1;
    if (count == 4) {
      rvm_four_plane_sums(&taps, x, weights, args->masks, sums);
      continue;
    }
    if (!is_inside) {
      float *const copy = args->copy - taps.least; /* with memory before and after it, which is also read */
      memcpy(copy, x, (size_t)elements * sizeof *x);
      x = copy;
    }
    rvm_plane_sums(&taps, x, weights, args->masks, sums);
  }
}

/* Convolves planes of height * width elements, each with its own window.  The first plane begins at x[first]; x has
   `size` elements.  sums[p * stride + i * width + j] becomes the sum of the products of the weights of plane p with the
   elements that the window reads if its upper left corner is at (i - pad_y, j - pad_x); elements outside the plane are
   0.  The stride is height * width, rounded up to a multiple of RVM_TILE_STEP; elements between the planes are also
   written.  order: the window positions in order of addition, at most RVM_PLANE_TAPS.  masks: memory for taps * stride
   elements.  copy: memory for a plane and what is read around it: `stride` elements, and as many as the window reaches
   before the first element of the plane and after the last one. */
RVM_OUT_OF_LINE(void rvm_planes_f32(const rvm_planes_f32_arguments *args), rvm_convolve_planes(args);)

#endif
