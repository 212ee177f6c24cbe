/* depthwise_rows_f32.h: a micro-kernel for depthwise convolutions of f32.  If stride_x is 1, it reads the rows of a
   plane in place, except at the ends of x.

   A sum adds the products of all columns of the window, from left to right, for the even window rows if stride_y is 2,
   and then for the odd ones.  Otherwise it adds those of all window rows.  The products are rounded as in gemm_f32.h.
   The arguments are declared in micro_kernels.def.  Read relvm/kernels/conv/depthwise_rows.py for the loops around this
   function. */
#ifndef RELVM_DEPTHWISE_ROWS_F32_H
#define RELVM_DEPTHWISE_ROWS_F32_H

#include "gemm_f32.h"

/* Calls F(window_height, stride_y) for each pair that rvm_depthwise_rows_f32 accepts. */
#define RVM_FOR_EACH_DEPTHWISE(F) F(3, 1) F(3, 2) F(5, 1) F(5, 2)

enum {
  RVM_DEPTHWISE_FEW = 4,                    /* the rows of sums in the last group, if at most so many are left */
  RVM_DEPTHWISE_ROWS = 8 * RVM_COLUMN_ROWS, /* the rows of sums of a block, at most */
  RVM_DEPTHWISE_LINES = (RVM_DEPTHWISE_ROWS - 1) * 2 + RVM_COLUMN_TAPS,
};

/* Consecutive rows of sums of one plane.

   lines: rows of the plane.  The sum in row r and column j reads, at row y and column x of the window, lines[r *
   stride_y + y][offsets[x] + j].  Lines are set for `rows`, rounded up to a multiple of RVM_COLUMN_ROWS.
   begin, end: lines[i][j] is read as 0 unless begin <= j < end.  If the lines are copies, no j is outside.
   masks: otherwise, -1 for each of these j, and 0 for the others. */
typedef struct rvm_depthwise_block {
  const float *lines[RVM_DEPTHWISE_LINES];
  int64_t offsets[RVM_COLUMN_TAPS];
  int64_t begin, end;
  const int32_t *masks;
  int64_t window_height, window_width, stride_y;
  const float *weights;
  float *sums;
  int64_t rows, columns;
} rvm_depthwise_block;

#if defined __GNUC__ && !defined RVM_COMPACT && !defined RVM_SCALAR
#define RVM_READS_IN_PLACE 1

/* The indices of every other lane of two vectors. */
#ifdef RVM_SHUFFLES
#if defined __AVX512F__
#define RVM_ALTERNATE_LANES(odd)                                                                                 \
  odd, 2 + odd, 4 + odd, 6 + odd, 8 + odd, 10 + odd, 12 + odd, 14 + odd, 16 + odd, 18 + odd, 20 + odd, 22 + odd, \
      24 + odd, 26 + odd, 28 + odd, 30 + odd
#elif defined __AVX__
#define RVM_ALTERNATE_LANES(odd) odd, 2 + odd, 4 + odd, 6 + odd, 8 + odd, 10 + odd, 12 + odd, 14 + odd
#else
#define RVM_ALTERNATE_LANES(odd) odd, 2 + odd, 4 + odd, 6 + odd
#endif
#endif

/* The operands of sums in one column of the window, from window row y on, where y is the row of the first tap.
   lines: line y of the first row of sums, and the lines after it.
   weights: the weight in row y, and those after it.
   element: the index in a line of the element that the first sum reads. */
typedef struct rvm_depthwise_column {
  const float *const *lines;
  const float *weights;
  int64_t element;
} rvm_depthwise_column;

/* Adds the products of `taps` window rows, stride_y apart, in one column of the window to sums in registers.  All
   integers must be constants where this function is inlined. */
static inline RVM_ALWAYS_INLINE void rvm_add_depthwise_column(const rvm_depthwise_block *block,
                                                              const rvm_depthwise_column *column, int taps,
                                                              int stride_y, int rows, int vectors, int is_masked,
                                                              rvm_lanes sum[RVM_COLUMN_ROWS][4]) {
  float weight[RVM_COLUMN_TAPS];
#pragma GCC unroll 7
  for (int t = 0; t < taps; t++) weight[t] = column->weights[t * stride_y * block->window_width];
#pragma GCC unroll 13
  for (int r = 0; r < rows + taps - 1; r++) {
    const float *const source = column->lines[r * stride_y] + column->element;
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) {
      rvm_words values = *(const rvm_words *)(source + v * RVM_LANES);
      if (is_masked) values &= *(const rvm_words *)(block->masks + column->element + v * RVM_LANES);
#pragma GCC unroll 7
      for (int t = 0; t < taps; t++)
        if (r - t >= 0 && r - t < rows) sum[r - t][v] = rvm_fma_lanes(weight[t], (rvm_lanes)values, sum[r - t][v]);
    }
  }
}

/* Adds the products of all columns of the window like rvm_add_depthwise_column.  first: its argument for the first
   column of the window, but `element` is the column of the first sum. */
static inline RVM_ALWAYS_INLINE void rvm_add_depthwise_columns(const rvm_depthwise_block *block,
                                                               const rvm_depthwise_column *first, int taps,
                                                               int stride_y, int rows, int vectors,
                                                               rvm_lanes sum[RVM_COLUMN_ROWS][4]) {
  const int64_t left = block->columns - first->element;
  const int64_t rest = left < vectors * RVM_LANES ? left : vectors * RVM_LANES;
#pragma GCC unroll 1
  for (int64_t x = 0; x < block->window_width; x++) {
    const int64_t element = first->element + block->offsets[x];
    rvm_depthwise_column column = {first->lines, first->weights + x, element};
    if (element >= block->begin && element + rest <= block->end) {
      rvm_add_depthwise_column(block, &column, taps, stride_y, rows, vectors, 0, sum);
    } else {
      /* Both branches load the same elements.  If the compiler loaded them before the branch, they would not fit the
         registers. */
      RVM_OPAQUE(column.lines);
      rvm_add_depthwise_column(block, &column, taps, stride_y, rows, vectors, 1, sum);
    }
  }
}

/* Computes `vectors` vectors of each row of sums, from `column` on.  `height`, the height of the window, `stride_y`,
   `rows` and `vectors` must be constants where this function is inlined. */
static inline RVM_ALWAYS_INLINE void rvm_depthwise_in_registers(const rvm_depthwise_block *block, int height,
                                                                int stride_y, int rows, int vectors, int64_t row,
                                                                int64_t column) {
  const int64_t columns = block->columns;
  const float *const *const lines = block->lines + row * stride_y;
  rvm_lanes sum[RVM_COLUMN_ROWS][4];
#pragma GCC unroll 7
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) sum[r][v] = (rvm_lanes){0};
  const rvm_depthwise_column even = {lines, block->weights, column};
  rvm_add_depthwise_columns(block, &even, (height + stride_y - 1) / stride_y, stride_y, rows, vectors, sum);
  if (stride_y == 2) {
    const rvm_depthwise_column odd = {lines + 1, block->weights + block->window_width, column};
    rvm_add_depthwise_columns(block, &odd, height / 2, stride_y, rows, vectors, sum);
  }
  float *const sums = block->sums + row * columns + column;
#pragma GCC unroll 7
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) *(rvm_lanes *)(sums + r * columns + v * RVM_LANES) = sum[r][v];
}

/* Computes all sums of the block.  A vector that extends past the end of a row of sums overwrites the beginning of the
   next row.  So the columns are computed from right to left, and the rows from top to bottom.  `height` and `stride_y`
   must be constants where this function is inlined. */
static inline RVM_ALWAYS_INLINE void rvm_depthwise_sums(const rvm_depthwise_block *block, int height, int stride_y) {
  const int64_t last = (block->columns - 1) / RVM_LANES;
  for (int64_t r = 0; r < block->rows; r += RVM_COLUMN_ROWS) {
    int64_t v = last;
    if (block->rows - r <= RVM_DEPTHWISE_FEW) {
      if (last % 2 == 0) rvm_depthwise_in_registers(block, height, stride_y, RVM_DEPTHWISE_FEW, 1, r, v-- * RVM_LANES);
      /* With two rows of four vectors, eight additions are in flight, which hides their latency. */
      for (; v >= 0 && (block->rows - r > 2 || v % 4 != 3); v -= 2)
        rvm_depthwise_in_registers(block, height, stride_y, RVM_DEPTHWISE_FEW, 2, r, (v - 1) * RVM_LANES);
      for (; v >= 0; v -= 4) rvm_depthwise_in_registers(block, height, stride_y, 2, 4, r, (v - 3) * RVM_LANES);
    } else if (RVM_VECTOR_REGISTERS == 32) {
      if (last % 2 == 0) rvm_depthwise_in_registers(block, height, stride_y, RVM_COLUMN_ROWS, 1, r, v-- * RVM_LANES);
      for (; v >= 0; v -= 2)
        rvm_depthwise_in_registers(block, height, stride_y, RVM_COLUMN_ROWS, 2, r, (v - 1) * RVM_LANES);
    } else
      for (; v >= 0; v--) rvm_depthwise_in_registers(block, height, stride_y, RVM_COLUMN_ROWS, 1, r, v * RVM_LANES);
  }
}

#define RVM_DEFINE_DEPTHWISE(height, stride)                                                             \
  RVM_OUT_OF_LINE(RVM_NOINLINE void rvm_depthwise_##height##_##stride(const rvm_depthwise_block *block), \
                  rvm_depthwise_sums(block, height, stride);)
RVM_FOR_EACH_DEPTHWISE(RVM_DEFINE_DEPTHWISE)
#undef RVM_DEFINE_DEPTHWISE

static inline void rvm_depthwise_sums_of(const rvm_depthwise_block *block) {
#define RVM_CALL_DEPTHWISE(height, stride) \
  if (block->window_height == (height) && block->stride_y == (stride)) rvm_depthwise_##height##_##stride(block);
  RVM_FOR_EACH_DEPTHWISE(RVM_CALL_DEPTHWISE)
#undef RVM_CALL_DEPTHWISE
}

#else
#define RVM_READS_IN_PLACE 0

/* Computes all sums of the block.  No element of `lines` is padding. */
static inline void rvm_depthwise_sums_of(const rvm_depthwise_block *block) {
  const int64_t columns = block->columns, stride_y = block->stride_y, width = block->window_width;
  memset(block->sums, 0, (size_t)(block->rows * columns) * sizeof *block->sums);
  for (int64_t r = 0; r < block->rows; r++) {
    float *const sums = block->sums + r * columns;
    for (int64_t phase = 0; phase < stride_y; phase++)
      for (int64_t x = 0; x < width; x++)
        for (int64_t y = phase; y < block->window_height; y += stride_y) {
          const float weight = block->weights[y * width + x];
          const float *const source = block->lines[r * stride_y + y] + block->offsets[x];
          RVM_SIMD()
          for (int64_t j = 0; j < columns; j++) sums[j] = RVM_FMA_F32(weight, source[j], sums[j]);
        }
  }
}

#endif

/* Returns the distance between the elements of a copied row that even columns of the window read, and those of odd ones
   if stride_x is 2, in floats. */
static inline int64_t rvm_depthwise_pitch(int64_t columns) { return columns + RVM_DEPTHWISE_REACH; }

/* Copies `rows` rows of the plane at x[first], from row `y` on, with zeros for padding.  For row r, dst[(r * stride_x +
   phase) * pitch + j] becomes the element in column (args->column + j) * stride_x + phase - pad_x.
   masks: those of the block. */
static inline void rvm_copy_depthwise_rows(const rvm_depthwise_rows_f32_arguments *args, const int32_t *masks,
                                           float *dst, int64_t first, int64_t y, int64_t rows) {
  const int64_t pitch = rvm_depthwise_pitch(args->columns), step = args->stride_x, width = args->width;
  const int64_t start = args->column * step - args->pad_x, most = args->columns + (args->window_width - 1) / step;
  const float *const x = args->x + first + y * width;
#if RVM_READS_IN_PLACE && defined RVM_SHUFFLES
  const int64_t low = first + y * width + start, high = low + (rows - 1) * width + 2 * (most + RVM_LANES);
  if (step == 2 && low >= 0 && high <= args->size) {
    for (int64_t j = 0; j < most; j += RVM_LANES) {
      const rvm_words *const mask = (const rvm_words *)(masks + 2 * j);
      const rvm_words left = mask[0], right = mask[1];
      for (int64_t r = 0; r < rows; r++) {
        const rvm_words *const source = (const rvm_words *)(x + r * width + start + 2 * j);
        const rvm_words a = source[0] & left, b = source[1] & right;
        *(rvm_words *)(dst + r * 2 * pitch + j) = __builtin_shufflevector(a, b, RVM_ALTERNATE_LANES(0));
        *(rvm_words *)(dst + (r * 2 + 1) * pitch + j) = __builtin_shufflevector(a, b, RVM_ALTERNATE_LANES(1));
      }
    }
    return;
  }
#else
  (void)masks;
#endif
  for (int64_t r = 0; r < rows; r++)
    for (int64_t phase = 0; phase < step; phase++)
      for (int64_t j = 0; j < most; j++) {
        const int64_t position = start + j * step + phase;
        dst[(r * step + phase) * pitch + j] = position >= 0 && position < width ? x[r * width + position] : 0;
      }
}

/* Sets the lines of the block for sums from `row` on.  x[first] is the first element of the plane.
   has_copies: whether to copy the rows of the plane. */
static inline void rvm_set_depthwise_lines(const rvm_depthwise_rows_f32_arguments *args, rvm_depthwise_block *block,
                                           int64_t row, int64_t first, int has_copies) {
  const int64_t width = args->width, slot = args->stride_x * rvm_depthwise_pitch(args->columns);
  const int64_t top = row * args->stride_y - args->pad_y; /* the row of the plane that lines[0] is */
  const int64_t groups = (block->rows + RVM_COLUMN_ROWS - 1) / RVM_COLUMN_ROWS;
  const int64_t needed = (block->rows - 1) * args->stride_y + args->window_height;
  const int64_t count = (groups * RVM_COLUMN_ROWS - 1) * args->stride_y + args->window_height;
  const int64_t begin = top >= 0 ? 0 : -top < needed ? -top : needed;
  const int64_t inside = args->height - top < needed ? args->height - top : needed;
  const int64_t end = inside < begin ? begin : inside;
  const float *line = args->copy + 2 * slot;
  int64_t distance = slot;
  if (has_copies)
    rvm_copy_depthwise_rows(args, block->masks, args->copy + 2 * slot, first, top + begin, end - begin);
  else
    line = args->x + (first + (top + begin) * width + args->column - args->pad_x), distance = width;
  for (int64_t i = 0; i < count; i++) {
    const int is_inside = i >= begin && i < end;
    block->lines[i] = is_inside ? line : args->copy;
    if (is_inside) line += distance;
    RVM_OPAQUE(line);
  }
}

/* Returns the number of elements of the memory `copy` that rvm_depthwise_rows_f32 needs: a row of zeros, the masks, and
   copies of the rows that RVM_COLUMN_ROWS rows of sums read. */
static inline int64_t rvm_depthwise_copy_size(const rvm_depthwise_rows_f32_arguments *args) {
  const int64_t lines = (RVM_COLUMN_ROWS - 1) * args->stride_y + args->window_height;
  return args->stride_x * rvm_depthwise_pitch(args->columns) * (2 + lines);
}

/* Convolves planes of height * width elements, each with its own window of window_height * window_width weights.  The
   first plane begins at x[first]; x has `size` elements.  Computes the sums in rows [row, row + rows) and columns
   [column, column + columns).  sums[(p * rows + i) * columns + j] becomes the sum of the products of the weights of
   plane p with the elements that the window reads if its upper left corner is at row (row + i) * stride_y - pad_y and
   column (column + j) * stride_x - pad_x.  Elements outside the plane are 0.  Up to RVM_DEPTHWISE_FEW - 1 rows of sums
   and RVM_TILE_STEP elements after the sums are also written.

   window_height, stride_y: a pair of RVM_FOR_EACH_DEPTHWISE.
   window_width: from 1 to RVM_COLUMN_TAPS.
   stride_x: 1 or 2.
   copy: memory for rvm_depthwise_copy_size(args) elements. */
static RVM_NOINLINE void rvm_depthwise_rows_f32(const rvm_depthwise_rows_f32_arguments *args) {
  const int64_t step = args->stride_x, area = args->height * args->width, pitch = rvm_depthwise_pitch(args->columns);
  const int64_t slot = step * pitch, origin = args->column * step - args->pad_x, width = args->width;
  int32_t *const masks = (int32_t *)(args->copy + slot);
  /* All of `copy`, because vectors also contain elements that no sum reads, and subnormal numbers there would be slow.
   */
  memset(args->copy, 0, (size_t)rvm_depthwise_copy_size(args) * sizeof *args->copy);
  for (int64_t i = 0; i < slot; i++) masks[i] = origin + i >= 0 && origin + i < width ? -1 : 0;
  rvm_depthwise_block block = {.masks = masks,
                               .window_height = args->window_height,
                               .window_width = args->window_width,
                               .stride_y = args->stride_y,
                               .columns = args->columns,
                               .weights = args->weights,
                               .sums = args->sums};
  for (int64_t x = 0; x < args->window_width; x++) block.offsets[x] = x % step * pitch + x / step;
  for (int64_t p = 0; p < args->planes; p++, block.weights += args->window_height * args->window_width) {
    const int64_t first = args->first + p * area;
    const int is_inside = first + origin >= 0 && first + area - width + origin + pitch <= args->size;
    const int has_copies = !RVM_READS_IN_PLACE || step != 1 || !is_inside;
    const int64_t most = has_copies ? RVM_COLUMN_ROWS : RVM_DEPTHWISE_ROWS;
    block.begin = has_copies ? 0 : -origin; /* copies contain the zeros of the padding */
    block.end = has_copies ? INT64_MAX : width - origin;
    for (int64_t r = 0; r < args->rows; r += block.rows, block.sums += block.rows * block.columns) {
      block.rows = args->rows - r < most ? args->rows - r : most;
      rvm_set_depthwise_lines(args, &block, args->row + r, first, has_copies);
      rvm_depthwise_sums_of(&block);
    }
  }
}

#endif
