/* gemm_f32.h: the micro-kernel for matrix products of f32, and copies of its operands.

   A sum adds its products in order, each rounded like RVM_FMA_F32 (rvm_fma_lanes).  The result does not depend on the
   width of the vectors.  The arguments are declared in micro_kernels.def; strides are in elements.  Read
   relvm/kernels/gemm for the loops around these functions. */
#ifndef RELVM_GEMM_F32_H
#define RELVM_GEMM_F32_H

#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "kernel_constants.h"
#include "micro_kernel_arguments.h"
#include "reproducible.h"
#include "tile_forms.h"

#if defined __aarch64__ && defined __GNUC__
#include <arm_neon.h>
#endif

enum { RVM_LINE_BYTES = 64, RVM_LINE_FLOATS = 16 }; /* bytes and floats of a cache line */

/* Copies `bytes` bytes.  src and dst are equal or do not overlap. */
static inline void rvm_copy_bytes(const rvm_copy_bytes_arguments *args) {
  if (args->dst != args->src) memcpy(args->dst, args->src, (size_t)args->bytes);
}

/* Asks the processor to load `columns` elements of each row of x into its L2 cache, because they will be read or
   written soon.  The prefetchers of the processor do not recognize the rows of a tile, which are on different pages. */
static inline void rvm_prefetch_rows(const rvm_prefetch_rows_arguments *args) {
  const int64_t bytes = args->columns * args->element_bytes, distance = args->row_stride * args->element_bytes;
  const char *row = args->x;
  for (int64_t r = 0; r < args->rows; r++, row += distance)
    for (int64_t offset = 0; offset < bytes; offset += RVM_LINE_BYTES) RVM_PREFETCH(row + offset);
}

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

/* The operands of a tile of a product.  tile[r * tile_stride + j] becomes the sum of the products of a[r * a_row_stride
   + p * a_column_stride] and b[p * b_stride + j] for p < depth, in order of p.  If `accumulates`, the sum is added to
   the tile.

   rows: at most RVM_TILE_ROWS.
   columns: columns of b, of the copy and of the tile up to the next multiple of RVM_TILE_STEP must exist, because some
   of them are also computed.
   copy, copy_stride: rvm_copying_tile copies row p of b to copy[p * copy_stride].
   ahead, ahead_stride: memory that later tiles read.  While rvm_plain_tile computes, the processor loads up to `depth`
   cache lines of this memory, ahead_stride apart.  The memory may be invalid. */
typedef struct rvm_tile_operands {
  int64_t rows, columns, depth;
  const float *a;
  int64_t a_row_stride, a_column_stride;
  const float *b;
  int64_t b_stride;
  float *copy;
  int64_t copy_stride;
  float *tile;
  int64_t tile_stride, accumulates;
  const float *ahead;
  int64_t ahead_stride;
} rvm_tile_operands;

/* The rvm_tile_operands of a micro-kernel.  args: a pointer to its arguments.  The others are designated initializers
   of the operands after a_column_stride, except for the tile. */
#define RVM_TILE_OPERANDS(args, ...)                               \
  ((rvm_tile_operands){.rows = (args)->rows,                       \
                       .columns = (args)->columns,                 \
                       .depth = (args)->depth,                     \
                       .a = (args)->a,                             \
                       .a_row_stride = (args)->a_row_stride,       \
                       .a_column_stride = (args)->a_column_stride, \
                       .tile = (args)->tile,                       \
                       .tile_stride = (args)->tile_stride,         \
                       .accumulates = (args)->accumulates,         \
                       __VA_ARGS__})

#ifdef __GNUC__

/* RVM_LANES: the floats of a vector.  RVM_TILE_VECTORS: the vectors of a row of a tile that are computed together. */
#if defined __AVX512F__
enum { RVM_LANES = 16, RVM_TILE_VECTORS = 4 };
#elif defined __AVX__
enum { RVM_LANES = 8, RVM_TILE_VECTORS = 2 };
#elif defined __aarch64__
enum { RVM_LANES = 4, RVM_TILE_VECTORS = 4 };
#elif defined __SSE__ || defined __ARM_NEON || defined __wasm_simd128__
enum { RVM_LANES = 4, RVM_TILE_VECTORS = 2 };
#else
#define RVM_SCALAR /* no vectors: the C compiler would keep them in memory */
enum { RVM_LANES = 1, RVM_TILE_VECTORS = 4 };
#endif

#if defined __AVX512F__ || defined __aarch64__
enum { RVM_VECTOR_REGISTERS = 32 };
#else
enum { RVM_VECTOR_REGISTERS = 16 };
#endif

enum { RVM_GEMV_ROWS = 4 }; /* rows of the matrix that rvm_gemv_f32 adds in one pass over the sums */

#ifdef RVM_SCALAR
typedef float rvm_lanes;
#else
typedef float rvm_lanes __attribute__((vector_size(RVM_LANES * 4), aligned(4), may_alias));
typedef int32_t rvm_words __attribute__((vector_size(RVM_LANES * 4), aligned(4), may_alias));
#endif

#if defined RVM_EXACT_FMA && !defined RVM_HAS_FMA && !defined RVM_SCALAR
typedef double rvm_wide_lanes __attribute__((vector_size(RVM_LANES * 8)));
typedef int64_t rvm_wide_bits __attribute__((vector_size(RVM_LANES * 8)));

/* Like rvm_exact_fma_f32, for each lane.  Not inlined: there would be hundreds of copies. */
static RVM_NOINLINE void rvm_exact_fma_lanes(float left, const rvm_lanes *right, rvm_lanes *sum) {
  const rvm_wide_lanes product = (double)left * __builtin_convertvector(*right, rvm_wide_lanes);
  const rvm_wide_lanes addend = __builtin_convertvector(*sum, rvm_wide_lanes), total = product + addend;
  const rvm_wide_lanes rest = total - product, error = (product - (total - rest)) + (addend - rest);
  const rvm_wide_bits is_inexact = (rvm_wide_bits)(error > 0) | (rvm_wide_bits)(error < 0);
  const rvm_wide_bits is_too_large = is_inexact & ((rvm_wide_bits)(error < 0) ^ (rvm_wide_bits)(total < 0));
  const rvm_wide_bits odd = ((rvm_wide_bits)total + is_too_large) | (is_inexact & 1);
  *sum = __builtin_convertvector((rvm_wide_lanes)odd, rvm_lanes);
}
#endif

/* Returns left * right + sum for each lane, rounded like RVM_FMA_F32. */
static inline RVM_ALWAYS_INLINE rvm_lanes rvm_fma_lanes(float left, rvm_lanes right, rvm_lanes sum) {
#ifdef RVM_SCALAR
  return RVM_FMA_F32(left, right, sum);
#elif defined RVM_EXACT_FMA && !defined RVM_HAS_FMA
  rvm_exact_fma_lanes(left, &right, &sum);
  return sum;
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

/* The sums of a tile in registers.  `rows` and `vectors` are constants where the functions below are inlined. */
typedef rvm_lanes rvm_tile_sums[RVM_TILE_ROWS][4];

/* Initializes the sums with 0 or, if `accumulates`, with the elements of the tile.  stride: the distance of the tile's
   rows. */
static inline RVM_ALWAYS_INLINE void rvm_begin_sums(rvm_tile_sums sum, int rows, int vectors, const float *tile,
                                                    int64_t stride, int64_t accumulates) {
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) sum[r][v] = (rvm_lanes){0};
  if (!accumulates) return;
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++, tile += stride) {
    RVM_OPAQUE(tile);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) sum[r][v] = *(const rvm_lanes *)(tile + v * RVM_LANES);
  }
}

/* Stores the sums in the tile. */
static inline RVM_ALWAYS_INLINE void rvm_store_sums(rvm_tile_sums sum, int rows, int vectors, float *tile,
                                                    int64_t stride) {
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++, tile += stride) {
    RVM_OPAQUE(tile);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) *(rvm_lanes *)(tile + v * RVM_LANES) = sum[r][v];
  }
}

#if defined __aarch64__ && !defined RVM_COMPACT
#define RVM_LEFT_LANES 4

/* Adds RVM_LEFT_LANES products to each sum, in order.  Left factor p of row r is a[r * a_stride + p], and the right
   factors of the columns begin at right[p].  Unless `copy` is NULL, which must be known at compile time, also copies
   them to copy[p * copy_stride].  On AArch64, an instruction multiplies by one lane of a vector, so one load reads four
   left factors of a row. */
static inline RVM_ALWAYS_INLINE void rvm_add_products_of_lanes(rvm_tile_sums sum, int rows, int vectors, const float *a,
                                                               int64_t a_stride,
                                                               const float *const right[RVM_LEFT_LANES], float *copy,
                                                               int64_t copy_stride) {
  float32x4_t left[RVM_TILE_ROWS];
#pragma GCC unroll 6
  for (int r = 0; r < rows; r++) left[r] = vld1q_f32(a + r * a_stride);
  /* Four vectors of right factors fit the registers beside the sums of at most four rows. */
  const int most = rows <= 4 || vectors < 4 ? vectors : 2;
  const float *row;
#define RVM_ADD_LANE(p)                                                                                 \
  row = right[p];                                                                                       \
  RVM_LOADED_FROM(row);                                                                                 \
  _Pragma("GCC unroll 4") for (int first = 0; first < vectors; first += most) {                         \
    float32x4_t factors[4];                                                                             \
    _Pragma("GCC unroll 4") for (int v = 0; v < most; v++) {                                            \
      factors[v] = vld1q_f32(row + (first + v) * RVM_LANES);                                            \
      RVM_LOADED(factors[v]);                                                                           \
      if (copy) vst1q_f32(copy + p * copy_stride + (first + v) * RVM_LANES, factors[v]);                \
    }                                                                                                   \
    _Pragma("GCC unroll 4") for (int v = 0; v < most; v++) {                                            \
      _Pragma("GCC unroll 6") for (int r = 0; r < rows; r++) __asm__(                                   \
          "fmla %0.4s, %1.4s, %2.s[" #p "]" : "+w"(sum[r][first + v]) : "w"(factors[v]), "w"(left[r])); \
    }                                                                                                   \
  }
  RVM_ADD_LANE(0)
  RVM_ADD_LANE(1)
  RVM_ADD_LANE(2)
  RVM_ADD_LANE(3)
#undef RVM_ADD_LANE
}
#endif

/* Computes columns [column, column + vectors * RVM_LANES) of the tile in registers.  If `copies`, which is a constant,
   also copies these columns of b. */
static inline RVM_ALWAYS_INLINE void rvm_tile_in_registers(const rvm_tile_operands *args, int rows, int vectors,
                                                           int64_t column, int copies) {
  const int64_t depth = args->depth, a_row_stride = args->a_row_stride, a_column_stride = args->a_column_stride;
  const int64_t b_stride = args->b_stride, copy_stride = args->copy_stride, ahead_stride = args->ahead_stride;
  const float *const a = args->a, *const b = args->b + column, *const ahead = args->ahead;
  float *const copy = copies ? args->copy + column : NULL;
  rvm_tile_sums sum;
  rvm_begin_sums(sum, rows, vectors, args->tile + column, args->tile_stride, args->accumulates);
  int64_t p = 0;
#ifdef RVM_LEFT_LANES
  for (const int64_t full = a_column_stride == 1 ? depth / RVM_LEFT_LANES * RVM_LEFT_LANES : 0; p < full;
       p += RVM_LEFT_LANES) {
    const float *const right[RVM_LEFT_LANES] = {b + p * b_stride, b + (p + 1) * b_stride, b + (p + 2) * b_stride,
                                                b + (p + 3) * b_stride};
    rvm_add_products_of_lanes(sum, rows, vectors, a + p, a_row_stride, right, copies ? copy + p * copy_stride : NULL,
                              copy_stride);
  }
#endif
  RVM_UNROLL_TWICE
  for (; p < depth; p++) {
    if (!copies) RVM_PREFETCH(ahead + p * ahead_stride);
    rvm_lanes right[4];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) right[v] = *(const rvm_lanes *)(b + p * b_stride + v * RVM_LANES);
    if (copies)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++) *(rvm_lanes *)(copy + p * copy_stride + v * RVM_LANES) = right[v];
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
      const float left = a[r * a_row_stride + p * a_column_stride];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++) sum[r][v] = rvm_fma_lanes(left, right[v], sum[r][v]);
    }
  }
  rvm_store_sums(sum, rows, vectors, args->tile + column, args->tile_stride);
}

static inline RVM_ALWAYS_INLINE void rvm_plain_tile_in_registers(const rvm_tile_operands *args, int rows, int vectors,
                                                                 int64_t column) {
  rvm_tile_in_registers(args, rows, vectors, column, 0);
}

/* Defines rvm_plain_tile(args), which computes the tile. */
RVM_DEFINE_TILES(rvm_plain_tile, rvm_tile_operands, rvm_plain_tile_in_registers, RVM_LANES, RVM_TILE_VECTORS,
                 (int64_t)sizeof(float) * args->a_row_stride)

#ifndef RVM_COMPACT
static inline RVM_ALWAYS_INLINE void rvm_copying_tile_in_registers(const rvm_tile_operands *args, int rows, int vectors,
                                                                   int64_t column) {
  rvm_tile_in_registers(args, rows, vectors, column, 1);
}

#define RVM_COPYING_TILE rvm_copying_tile, rvm_tile_operands, rvm_copying_tile_in_registers
RVM_FOR_EACH_WIDTH(RVM_DEFINE_FORM, 6, RVM_COPYING_TILE)

/* Computes a tile of RVM_TILE_ROWS rows, and copies b. */
static inline RVM_ALWAYS_INLINE void rvm_copying_tile(const rvm_tile_operands *args) {
  const int rows = 6, all = ((int)args->columns + RVM_LANES - 1) / RVM_LANES;
  for (int first = 0; first < all; first += RVM_TILE_VECTORS) {
    const int vectors = all - first < RVM_TILE_VECTORS ? all - first : RVM_TILE_VECTORS, column = first * RVM_LANES;
    RVM_FOR_EACH_WIDTH(RVM_CALL_FORM, 6, RVM_COPYING_TILE)
  }
}
#undef RVM_COPYING_TILE
#endif

/* Returns the sums plus the products of `left` and columns [j, j + RVM_LANES) of the first `rows` rows of b.  `rows` is
   a constant. */
static inline RVM_ALWAYS_INLINE rvm_lanes rvm_add_gemv_products(rvm_lanes sums, const float *left, int rows,
                                                                const float *b, int64_t b_stride, int64_t j) {
#pragma GCC unroll 4
  for (int r = 0; r < rows; r++) sums = rvm_fma_lanes(left[r], *(const rvm_lanes *)(b + r * b_stride + j), sums);
  return sums;
}

/* Adds the products of the elements [p, p + rows) of a and the same rows of b to the sums.  `end` contains the last
   RVM_LANES sums, and args->sums the others.  `rows` and `begins` are constants.  If `begins`, the sums are taken as 0,
   whatever args->sums contains. */
static inline RVM_ALWAYS_INLINE void rvm_add_gemv_rows(const rvm_gemv_f32_arguments *args, int64_t p, int rows,
                                                       int begins, rvm_lanes *end) {
  const int64_t b_stride = args->b_stride, last = args->columns - RVM_LANES;
  const float *const b = args->b + p * b_stride;
  float left[RVM_GEMV_ROWS];
#pragma GCC unroll 4
  for (int r = 0; r < rows; r++) left[r] = args->a[p + r];
  for (int64_t j = 0; j < last; j += RVM_LANES) {
    rvm_lanes *const sums = (rvm_lanes *)(args->sums + j);
    *sums = rvm_add_gemv_products(begins ? (rvm_lanes){0} : *sums, left, rows, b, b_stride, j);
  }
  *end = rvm_add_gemv_products(*end, left, rows, b, b_stride, last);
}

/* rvm_gemv_f32(args) multiplies the vector a by the matrix b: it computes the sum over p < depth of a[p] * b[p *
   b_stride + j], in order of p, like a row of rvm_tile_f32.  Stores the sum in sums[j], or adds it if `accumulates`.
   Reads b in memory order, because reading a large matrix takes most of the time. */
static inline RVM_ALWAYS_INLINE void rvm_gemv_f32(const rvm_gemv_f32_arguments *args) {
  const int64_t columns = args->columns, depth = args->depth, last = columns - RVM_LANES;
  const int accumulates = args->accumulates != 0;
  if (last < 0 || depth < RVM_GEMV_ROWS) {
    for (int64_t j = 0; j < columns && !accumulates; j++) args->sums[j] = 0;
    for (int64_t p = 0; p < depth; p++)
      for (int64_t j = 0; j < columns; j++)
        args->sums[j] = RVM_FMA_F32(args->a[p], args->b[p * args->b_stride + j], args->sums[j]);
    return;
  }
  /* The last RVM_LANES columns may overlap those before them, so their sums are in memory only at the end. */
  rvm_lanes end = {0};
  if (accumulates) end = *(const rvm_lanes *)(args->sums + last);
  int64_t p = 0;
  if (!accumulates) {
    rvm_add_gemv_rows(args, 0, RVM_GEMV_ROWS, 1, &end);
    p = RVM_GEMV_ROWS;
  }
  for (; p + RVM_GEMV_ROWS <= depth; p += RVM_GEMV_ROWS) rvm_add_gemv_rows(args, p, RVM_GEMV_ROWS, 0, &end);
  for (; p < depth; p++) rvm_add_gemv_rows(args, p, 1, 0, &end);
  *(rvm_lanes *)(args->sums + last) = end;
}

#else /* a C compiler without vector extensions */

static inline RVM_UNUSED void rvm_gemv_f32(const rvm_gemv_f32_arguments *args) {
  for (int64_t j = 0; j < args->columns && !args->accumulates; j++) args->sums[j] = 0;
  for (int64_t p = 0; p < args->depth; p++)
    for (int64_t j = 0; j < args->columns; j++) args->sums[j] += args->a[p] * args->b[p * args->b_stride + j];
}

static void rvm_plain_tile(const rvm_tile_operands *args) {
  for (int64_t r = 0; r < args->rows; r++) {
    float *const tile = args->tile + r * args->tile_stride;
    for (int64_t j = 0; j < args->columns && !args->accumulates; j++) tile[j] = 0;
    for (int64_t p = 0; p < args->depth; p++)
      for (int64_t j = 0; j < args->columns; j++)
        tile[j] += args->a[r * args->a_row_stride + p * args->a_column_stride] * args->b[p * args->b_stride + j];
  }
}

#endif

/* Computes a tile.  If `copies`, it copies b to args->copy first, or while it computes. */
static inline RVM_ALWAYS_INLINE void rvm_product_tile(const rvm_tile_operands *args, int64_t copies) {
  if (!copies) {
    rvm_plain_tile(args);
    return;
  }
#if defined __GNUC__ && !defined RVM_COMPACT
  if (args->rows == RVM_TILE_ROWS) {
    rvm_copying_tile(args);
    return;
  }
#endif
  for (int64_t p = 0; p < args->depth; p++)
    memmove(args->copy + p * args->copy_stride, args->b + p * args->b_stride, (size_t)args->columns * sizeof(float));
  rvm_tile_operands operands = *args;
  operands.b = args->copy;
  operands.b_stride = args->copy_stride;
  rvm_plain_tile(&operands);
}

/* Returns the operands of a tile.  ahead: memory whose cache lines follow each other. */
static inline RVM_ALWAYS_INLINE rvm_tile_operands
rvm_streamed_tile_operands(const rvm_streamed_tile_f32_arguments *args) {
  return RVM_TILE_OPERANDS(args, .b = args->b, .b_stride = args->b_stride, .ahead = args->ahead,
                           .ahead_stride = RVM_LINE_FLOATS);
}

static inline RVM_ALWAYS_INLINE void rvm_streamed_tile_f32(const rvm_streamed_tile_f32_arguments *args) {
  const rvm_tile_operands operands = rvm_streamed_tile_operands(args);
  rvm_product_tile(&operands, 0);
}

/* Returns the operands of a tile.  While it is computed, the processor loads the rows of `a` that follow, if they are
   adjacent in memory. */
static inline RVM_ALWAYS_INLINE rvm_tile_operands rvm_tile_f32_operands(const rvm_tile_f32_arguments *args) {
  return RVM_TILE_OPERANDS(args, .b = args->b, .b_stride = args->b_stride,
                           .ahead = args->a + args->rows * args->a_row_stride, .ahead_stride = RVM_LINE_FLOATS);
}

static inline RVM_ALWAYS_INLINE void rvm_tile_f32(const rvm_tile_f32_arguments *args) {
  const rvm_tile_operands operands = rvm_tile_f32_operands(args);
  rvm_product_tile(&operands, 0);
}

/* Returns the operands of a tile.  If `copies`, the tile reads b, and copies it to the panel: row p of b to panel[p *
   panel_stride].  Otherwise, it reads the panel, which an earlier tile has copied.  While it is computed, the processor
   loads cache lines of the next panel if `loads_next`, otherwise the rows of `a` that follow.  next: the first of these
   lines, which are b_stride apart. */
static inline RVM_ALWAYS_INLINE rvm_tile_operands rvm_panel_tile_operands(const rvm_panel_tile_f32_arguments *args) {
  return RVM_TILE_OPERANDS(args, .b = args->copies ? args->b : args->panel,
                           .b_stride = args->copies ? args->b_stride : args->panel_stride, .copy = args->panel,
                           .copy_stride = args->panel_stride,
                           .ahead = args->loads_next ? args->next : args->a + args->rows * args->a_row_stride,
                           .ahead_stride = args->loads_next ? args->b_stride : RVM_LINE_FLOATS);
}

static inline RVM_ALWAYS_INLINE void rvm_panel_tile_f32(const rvm_panel_tile_f32_arguments *args) {
  const rvm_tile_operands operands = rvm_panel_tile_operands(args);
  rvm_product_tile(&operands, args->copies);
}

#endif
