/* micro_kernels.c: the micro-kernels of bytecode (micro_kernels.def).

   A program may pass any numbers.  For each micro-kernel, run_NAME computes which elements the micro-kernel accesses,
   and refuses the call if any is outside its buffer.  Then run_NAME calls the micro-kernel for one portion of the work
   after another, so that a run can end between two portions.  More than OFFSETS offsets are checked and used in groups,
   so the call can be refused after some of the work.  Sizes are at most LARGEST_SIZE, so that products of two sizes,
   and sums of a few such products, fit an int64.  The file is compiled once for each level of processor features
   (kernel_levels.h).

   If RVM_SHARED_LEVEL is defined, it is the suffix of a level that differs from this level only in products of bytes.
   The file then defines only the micro-kernels with such products, and this level shares the other micro-kernels with
   that level. */
#include "micro_kernels.h"

#include <math.h>
#include <string.h>

#include "attention.h"
#include "compiler.h"
#include "conv_f32.h"
#include "depthwise_f32.h"
#include "depthwise_rows_f32.h"
#include "gemm_f32.h"
#include "gemm_int8.h"
#include "gemm_quantized.h"
#include "kernel_loops.h"
#include "kernel_math.h"
#include "peak_flops.h"
#include "pooling.h"
#include "selected.h"
#include "sorting.h"
#include "transposed_elements.h"
#include "trees.h"
#include "winograd.h"

enum {
  LARGEST_SIZE = 1 << 30,
  OFFSETS = RVM_MAX_OFFSETS,                  /* the maximum number of offsets that are copied and checked together */
  TILE_COLUMNS = 4096,                        /* columns of a portion */
  DEPTH_STEP = 64,                            /* the depth of each portion except the last is a multiple of this */
  WORD_WORK = 16,                             /* work per word of rvm_words_of_bytes and rvm_words_of_line */
  MOST_WORDS = RVM_MICRO_PORTION / WORD_WORK, /* words of a portion */
  PREFETCHED_LINES = 1 << 14,                 /* cache lines that rvm_prefetch_rows loads, at most */
  INPUT_WORK = 64,                            /* work per channel and tile of rvm_winograd_input */
  PLAIN_WORK = 256,                           /* work per channel and tile of rvm_winograd_plain */
  SORT_WORK = 8,                              /* work per number and division of rvm_sort_i64 */
  KEEP_WORK = 64,                             /* work per number of rvm_keep_least_i64 */
  PLANE_STEPS = 1 << 16,                      /* the largest padding and dilation of a depthwise convolution */
};

/* The buffers of the arguments READ and WRITE, by name: a struct NAME_buffers for each micro-kernel.  `has_none` keeps
   the struct of a micro-kernel without buffers from being empty. */
#define SIZE(name)
#define NUMBER(name)
#define FLOAT(name)
#define READ(name, type) rvm_micro_argument name;
#define WRITE(name, type) rvm_micro_argument name;
#define MICRO_KERNEL(name, header, arguments) \
  typedef struct name##_buffers {             \
    arguments char has_none;                  \
  } name##_buffers;
#include "micro_kernels.def"
#undef MICRO_KERNEL
#undef WRITE
#undef READ
#undef FLOAT
#undef NUMBER
#undef SIZE

static int is_size(int64_t number) { return number >= 0 && number <= LARGEST_SIZE; }
static int64_t round_up(int64_t number, int64_t multiple) { return (number + multiple - 1) / multiple * multiple; }
static int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }

/* Returns the offset of the last of `count` items that are `stride` apart, or 0 if there is no item. */
static int64_t last_offset(int64_t count, int64_t stride) { return count > 0 ? (count - 1) * stride : 0; }

/* Returns the address of the element that an argument names.  The caller will access the elements [low, high) relative
   to that element, each of `bytes` bytes.  Returns NULL if one of these is outside the buffer, or if the buffer is not
   aligned.  If the range is empty, returns an address that must not be accessed. */
static void *checked_address(const rvm_micro_argument *argument, int64_t low, int64_t high, int64_t bytes) {
  static int64_t no_elements;
  const int64_t size = argument->bytes / bytes, position = argument->number;
  if (high <= low) return &no_elements;
  const int is_inside = position >= 0 && position <= size && low >= -position && high <= size - position;
  if (!is_inside || (uintptr_t)argument->address % (uint64_t)bytes != 0) return NULL;
  return argument->address + position * bytes;
}

/* Sets args.name to the address of the argument `name`.  Refuses the call if the elements [low, high) relative to that
   address, each of `bytes` bytes, must not be accessed (checked_address). */
#define EXPECT_ELEMENTS(bytes, name, low, high)                             \
  args.name = checked_address(&buffers->name, low, high, (int64_t)(bytes)); \
  if (!args.name) return RVM_MICRO_REFUSED
#define EXPECT_RANGE(name, low, high) EXPECT_ELEMENTS(sizeof *args.name, name, low, high)
/* Like EXPECT_RANGE, for a parameter of type `void *` whose elements have type T. */
#define EXPECT_RANGE_OF(T, name, low, high) EXPECT_ELEMENTS(sizeof(T), name, low, high)
#define EXPECT(condition) \
  if (!(condition)) return RVM_MICRO_REFUSED
/* Refuses a call that is not split into small enough portions and would take too long.  `work` is a double, which
   cannot overflow. */
#define EXPECT_WORK(work, most) EXPECT((work) <= (most))
/* Charges a portion of the work, and ends the call if the run is to end. */
#define SPEND(work) \
  if (!watch->spend(watch->host, work)) return RVM_MICRO_ENDED

/* Returns whether two ranges of floats overlap in memory. */
static int overlaps(const float *a, int64_t a_count, const float *b, int64_t b_count) {
  const uintptr_t left = (uintptr_t)a, right = (uintptr_t)b;
  return a_count > 0 && b_count > 0 && left < right + (uint64_t)b_count * 4 && right < left + (uint64_t)a_count * 4;
}

/* Returns the number of items that make up a portion, if each item takes `work`.  The number is a positive multiple of
   `multiple`. */
static int64_t portion_size(int64_t work, int64_t multiple) {
  const int64_t count = RVM_MICRO_PORTION / (work > 0 ? work : 1) / multiple * multiple;
  return count > 0 ? count : multiple;
}

/* ---- run_NAME: checks the arguments of micro-kernel NAME, and calls it for one portion after another ---- */

/* Checks the arguments that rvm_tile_f32, rvm_streamed_tile_f32 and rvm_panel_tile_f32 share. */
#define EXPECT_TILE()                                                                                                  \
  EXPECT(args.rows >= 1 && args.rows <= RVM_TILE_ROWS && args.columns >= 1);                                           \
  const int64_t width = round_up(args.columns, RVM_TILE_STEP), depth = args.depth;                                     \
  EXPECT_RANGE(                                                                                                        \
      a, 0, depth > 0 ? last_offset(args.rows, args.a_row_stride) + last_offset(depth, args.a_column_stride) + 1 : 0); \
  EXPECT_RANGE(tile, 0, last_offset(args.rows, args.tile_stride) + width)

/* Computes a tile in portions. */
static int run_tile(const rvm_tile_operands *operands, int64_t copies, const rvm_micro_watch *watch) {
  const int64_t columns = operands->columns, depth = operands->depth;
  for (int64_t j = 0; j < columns; j += TILE_COLUMNS) {
    rvm_tile_operands part = *operands;
    part.columns = min_i64(columns - j, TILE_COLUMNS);
    part.tile = operands->tile + j;
    const int64_t most_depth = portion_size(part.rows * part.columns, DEPTH_STEP);
    /* One iteration even if depth is 0: unless `accumulates`, the tile becomes 0. */
    for (int64_t p = 0; p == 0 || p < depth; p += most_depth) {
      part.depth = min_i64(depth - p, most_depth);
      part.a = operands->a + p * operands->a_column_stride;
      part.b = operands->b + p * operands->b_stride + j;
      if (copies) part.copy = operands->copy + p * operands->copy_stride + j;
      part.accumulates = p > 0 || operands->accumulates != 0;
      SPEND(part.rows * part.columns * (part.depth + 1));
      rvm_product_tile(&part, copies);
    }
  }
  return RVM_MICRO_DONE;
}

static int run_rvm_streamed_tile_f32(rvm_streamed_tile_f32_arguments args, const rvm_streamed_tile_f32_buffers *buffers,
                                     const rvm_micro_watch *watch) {
  EXPECT_TILE();
  EXPECT_RANGE(b, 0, depth > 0 ? last_offset(depth, args.b_stride) + width : 0);
  args.ahead = checked_address(&buffers->ahead, 0, depth * RVM_LINE_FLOATS, sizeof *args.ahead);
  if (!args.ahead) args.ahead = args.a; /* the cache lines are not loaded in advance */
  const rvm_tile_operands operands = rvm_streamed_tile_operands(&args);
  return run_tile(&operands, 0, watch);
}

static int run_rvm_tile_f32(rvm_tile_f32_arguments args, const rvm_tile_f32_buffers *buffers,
                            const rvm_micro_watch *watch) {
  EXPECT_TILE();
  EXPECT_RANGE(b, 0, depth > 0 ? last_offset(depth, args.b_stride) + width : 0);
  const rvm_tile_operands operands = rvm_tile_f32_operands(&args);
  return run_tile(&operands, 0, watch);
}

static int run_rvm_panel_tile_f32(rvm_panel_tile_f32_arguments args, const rvm_panel_tile_f32_buffers *buffers,
                                  const rvm_micro_watch *watch) {
  EXPECT_TILE();
  EXPECT_RANGE(b, 0, depth > 0 && args.copies ? last_offset(depth, args.b_stride) + width : 0);
  EXPECT_RANGE(panel, 0, depth > 0 ? last_offset(depth, args.panel_stride) + width : 0);
  const int64_t lines = depth > 0 ? last_offset(depth, args.b_stride) + RVM_LINE_FLOATS : 0;
  args.next = checked_address(&buffers->next, 0, lines, sizeof *args.next);
  args.loads_next = args.loads_next && args.next;
  const rvm_tile_operands operands = rvm_panel_tile_operands(&args);
  return run_tile(&operands, args.copies, watch);
}

static int run_rvm_gemv_f32(rvm_gemv_f32_arguments args, const rvm_gemv_f32_buffers *buffers,
                            const rvm_micro_watch *watch) {
  const int64_t columns = args.columns, depth = args.depth;
  EXPECT_RANGE(a, 0, columns > 0 ? depth : 0);
  EXPECT_RANGE(b, 0, columns > 0 && depth > 0 ? last_offset(depth, args.b_stride) + columns : 0);
  EXPECT_RANGE(sums, 0, columns);
  for (int64_t j = 0; j < columns; j += TILE_COLUMNS) {
    rvm_gemv_f32_arguments part = args;
    part.columns = min_i64(columns - j, TILE_COLUMNS);
    part.sums = args.sums + j;
    const int64_t most_depth = portion_size(part.columns, RVM_GEMV_ROWS);
    /* One iteration even if depth is 0: unless `accumulates`, the sums become 0. */
    for (int64_t p = 0; p == 0 || p < depth; p += most_depth) {
      part.depth = min_i64(depth - p, most_depth);
      part.a = args.a + p;
      part.b = args.b + p * args.b_stride + j;
      part.accumulates = p > 0 || args.accumulates != 0;
      SPEND(part.columns * (part.depth + 1));
      rvm_gemv_f32(&part);
    }
  }
  return RVM_MICRO_DONE;
}

/* A copy of some offsets, with their minimum and maximum.  The originals may be overwritten after the check, by the
   micro-kernel itself or by another thread. */
typedef struct offsets {
  int64_t values[OFFSETS], least, most;
} offsets;

/* Copies `count` <= OFFSETS offsets and returns 1.  Returns 0 if the absolute value of one exceeds LARGEST_SIZE. */
static int copy_offsets(offsets *copy, const int64_t *values, int64_t count) {
  memcpy(copy->values, values, (size_t)count * sizeof *values);
  copy->least = copy->most = count > 0 ? copy->values[0] : 0;
  for (int64_t i = 0; i < count; i++) {
    if (copy->values[i] < copy->least) copy->least = copy->values[i];
    if (copy->values[i] > copy->most) copy->most = copy->values[i];
  }
  return copy->least >= -(int64_t)LARGEST_SIZE && copy->most <= LARGEST_SIZE;
}

static int run_rvm_window_tile_f32(rvm_window_tile_f32_arguments args, const rvm_window_tile_f32_buffers *buffers,
                                   const rvm_micro_watch *watch) {
  EXPECT(args.rows >= 1 && args.rows <= OFFSETS && args.columns >= 1 && args.depth <= OFFSETS);
  EXPECT_RANGE(row_offsets, 0, args.rows);
  EXPECT_RANGE(offsets, 0, args.depth);
  offsets rows, taps;
  EXPECT(copy_offsets(&rows, args.row_offsets, args.rows) && copy_offsets(&taps, args.offsets, args.depth));
  const int64_t width = round_up(args.columns, RVM_TILE_STEP), depth = args.depth, least = rows.least + taps.least;
  EXPECT_RANGE(x, least, depth > 0 ? rows.most + taps.most + 1 : least);
  EXPECT_RANGE(b, 0, depth > 0 ? last_offset(depth, args.b_stride) + width : 0);
  EXPECT_RANGE(tile, 0, last_offset(args.rows, args.tile_stride) + width);
  for (int64_t j = 0; j < args.columns; j += TILE_COLUMNS) {
    rvm_window_tile_f32_arguments part = args;
    part.columns = min_i64(args.columns - j, TILE_COLUMNS);
    part.tile = args.tile + j;
    part.row_offsets = rows.values;
    const int64_t most_depth = portion_size(args.rows * part.columns, 1);
    /* One iteration even if depth is 0: unless `accumulates`, the tile becomes 0. */
    for (int64_t p = 0; p == 0 || p < depth; p += most_depth) {
      part.depth = min_i64(depth - p, most_depth);
      part.offsets = taps.values + p;
      part.b = args.b + p * args.b_stride + j;
      part.accumulates = p > 0 || args.accumulates != 0;
      SPEND(args.rows * part.columns * (part.depth + 1));
      rvm_window_tile_f32(&part);
    }
  }
  return RVM_MICRO_DONE;
}

static int run_rvm_direct_tile_f32(rvm_direct_tile_f32_arguments args, const rvm_direct_tile_f32_buffers *buffers,
                                   const rvm_micro_watch *watch) {
  EXPECT(args.rows >= 1 && args.rows <= RVM_TILE_ROWS && args.columns >= 1 && args.depth <= OFFSETS);
  EXPECT_RANGE(offsets, 0, args.depth);
  offsets taps;
  EXPECT(copy_offsets(&taps, args.offsets, args.depth));
  const int64_t width = round_up(args.columns, RVM_TILE_STEP), depth = args.depth;
  EXPECT_RANGE(a, 0, depth > 0 ? last_offset(args.rows, args.a_row_stride) + depth : 0);
  EXPECT_RANGE(x, taps.least, depth > 0 ? taps.most + width : taps.least);
  EXPECT_RANGE(tile, 0, last_offset(args.rows, args.tile_stride) + width);
  const int64_t most_columns = portion_size(args.rows * (depth + 1), RVM_TILE_STEP);
  for (int64_t j = 0; j < args.columns; j += most_columns) {
    rvm_direct_tile_f32_arguments part = args;
    part.columns = min_i64(args.columns - j, most_columns);
    part.x = args.x + j;
    part.tile = args.tile + j;
    part.offsets = taps.values;
    SPEND(args.rows * part.columns * (depth + 1));
    rvm_direct_tile_f32(&part);
  }
  return RVM_MICRO_DONE;
}

/* Refuses the call unless `bits` and `block` are valid, and `depth` rows of a quantized panel, with their scales and
   zero points, are in the buffers. */
#define EXPECT_QUANTIZED_PANEL(depth)                                               \
  EXPECT(args.bits == 2 || args.bits == 4 || args.bits == 8);                       \
  const int64_t word_count = 32 / args.bits;                                        \
  EXPECT(args.block >= 1 && args.block % word_count == 0);                          \
  const int64_t values = ((depth) + args.block - 1) / args.block * RVM_PANEL_WIDTH; \
  const size_t zero_bytes = args.zeros_are_bytes ? 1 : sizeof(float);               \
  EXPECT_RANGE(b, 0, ((depth) + word_count - 1) / word_count * RVM_PANEL_WIDTH);    \
  EXPECT_RANGE(scales, 0, values);                                                  \
  EXPECT_ELEMENTS(zero_bytes, zeros, 0, values)

static int run_rvm_quantized_tile_f32(rvm_quantized_tile_f32_arguments args,
                                      const rvm_quantized_tile_f32_buffers *buffers, const rvm_micro_watch *watch) {
  EXPECT(args.rows >= 1 && args.rows <= RVM_QUANTIZED_ROWS);
  EXPECT_QUANTIZED_PANEL(args.depth);
  const int64_t work = args.rows * RVM_PANEL_WIDTH * (args.depth + 1);
  EXPECT_RANGE(a, 0, args.depth > 0 ? last_offset(args.rows, args.a_stride) + args.depth : 0);
  EXPECT_RANGE(tile, 0, args.rows * RVM_PANEL_WIDTH);
  EXPECT_WORK((double)work, 0x1p26);
  SPEND(work);
  rvm_quantized_tile_f32(&args);
  return RVM_MICRO_DONE;
}

static int run_rvm_dequantized_panel_f32(rvm_dequantized_panel_f32_arguments args,
                                         const rvm_dequantized_panel_f32_buffers *buffers,
                                         const rvm_micro_watch *watch) {
  const int64_t depth = args.first + args.count, written = args.count * RVM_PANEL_WIDTH;
  EXPECT_QUANTIZED_PANEL(depth);
  EXPECT(args.first % word_count == 0);
  EXPECT_RANGE(panel, 0, written);
  EXPECT_WORK((double)written, 0x1p26);
  SPEND(written);
  rvm_dequantized_panel_f32(&args);
  return RVM_MICRO_DONE;
}

static int run_rvm_quantized_row_int8(rvm_quantized_row_int8_arguments args,
                                      const rvm_quantized_row_int8_buffers *buffers, const rvm_micro_watch *watch) {
  EXPECT(args.block >= 1 && args.block % 4 == 0);
  const int64_t blocks = (args.depth + args.block - 1) / args.block;
  const double work = (double)blocks * (double)(args.block + 2) + 1;
  EXPECT_WORK(work, 0x1p26);
  EXPECT_RANGE(x, 0, args.depth);
  EXPECT_RANGE(words, 0, blocks * (args.block / 4 + 2));
  SPEND((int64_t)work);
  rvm_quantized_row_int8(&args);
  return RVM_MICRO_DONE;
}

static int run_rvm_quantized_tile_int8(rvm_quantized_tile_int8_arguments args,
                                       const rvm_quantized_tile_int8_buffers *buffers, const rvm_micro_watch *watch) {
  EXPECT(args.rows >= 1 && args.rows <= RVM_QUANTIZED_ROWS);
  const double work = (double)args.rows * RVM_PANEL_WIDTH * ((double)args.blocks * (double)(args.block + 1) + 1);
  EXPECT_WORK(work, 0x1p26);
  const int64_t depth = args.blocks * args.block;
  EXPECT_QUANTIZED_PANEL(depth);
  /* A block of a row has the words of its bytes, the bits of its scale, and the sum of its bytes. */
  EXPECT_RANGE(a, 0, last_offset(args.rows, args.a_stride) + args.blocks * (args.block / 4 + 2));
  EXPECT_RANGE(tile, 0, args.rows * RVM_PANEL_WIDTH);
  SPEND((int64_t)work);
  rvm_quantized_tile_int8(&args);
  return RVM_MICRO_DONE;
}

static int run_rvm_columns_f32(rvm_columns_f32_arguments args, const rvm_columns_f32_buffers *buffers,
                               const rvm_micro_watch *watch) {
  EXPECT(args.taps >= 1 && args.taps <= RVM_COLUMN_TAPS);
  EXPECT_RANGE(offsets, 0, args.count);
  EXPECT_RANGE(weight_offsets, 0, args.count);
  const int64_t height = round_up(args.rows, RVM_COLUMN_ROWS), width = round_up(args.columns, RVM_TILE_STEP);
  if (height == 0 || width == 0) return RVM_MICRO_DONE;
  EXPECT_RANGE(sums, 0, last_offset(height, args.sums_stride) + width);
  /* One iteration even if count is 0: unless `accumulates`, the sums become 0.  No element of x is accessed then. */
  for (int64_t c = 0; c == 0 || c < args.count; c += OFFSETS) {
    offsets x_offsets, weight_offsets;
    const int64_t count = min_i64(args.count - c, OFFSETS);
    const int64_t most_columns = portion_size(RVM_COLUMN_ROWS * args.taps * count, RVM_TILE_STEP);
    const int64_t most_rows = portion_size(args.taps * count * min_i64(width, most_columns), RVM_COLUMN_ROWS);
    EXPECT(copy_offsets(&x_offsets, args.offsets + c, count));
    EXPECT(copy_offsets(&weight_offsets, args.weight_offsets + c, count));
    const int64_t weights_end = weight_offsets.most + last_offset(args.taps, args.weight_stride) + 1;
    const int64_t x_end = x_offsets.most + last_offset(height + args.taps - 1, args.x_stride) + width;
    EXPECT_RANGE(weights, weight_offsets.least, count > 0 ? weights_end : weight_offsets.least);
    EXPECT_RANGE(x, x_offsets.least, count > 0 ? x_end : x_offsets.least);
    rvm_columns_f32_arguments part = args;
    part.count = count;
    part.offsets = x_offsets.values;
    part.weight_offsets = weight_offsets.values;
    part.accumulates = c > 0 || args.accumulates != 0;
    for (int64_t r = 0; r < args.rows; r += most_rows)
      for (int64_t j = 0; j < args.columns; j += most_columns) {
        part.rows = min_i64(args.rows - r, most_rows);
        part.columns = min_i64(args.columns - j, most_columns);
        part.x = args.x + r * args.x_stride + j;
        part.sums = args.sums + r * args.sums_stride + j;
        SPEND(round_up(part.rows, RVM_COLUMN_ROWS) * round_up(part.columns, RVM_TILE_STEP) * (args.taps * count + 1));
        rvm_columns_f32(&part);
      }
  }
  return RVM_MICRO_DONE;
}

static int run_rvm_taps_f32(rvm_taps_f32_arguments args, const rvm_taps_f32_buffers *buffers,
                            const rvm_micro_watch *watch) {
  const int64_t width = round_up(args.columns, RVM_TAP_STEP);
  EXPECT_RANGE(offsets, 0, args.taps);
  EXPECT_RANGE(weights, 0, args.taps);
  EXPECT_RANGE(sums, 0, width);
  /* One iteration even if taps is 0: unless `accumulates`, the sums become 0.  No element of x is accessed then. */
  for (int64_t t = 0; t == 0 || t < args.taps; t += OFFSETS) {
    offsets x_offsets;
    const int64_t taps = min_i64(args.taps - t, OFFSETS);
    const int64_t most_columns = portion_size(taps, RVM_TAP_STEP);
    EXPECT(copy_offsets(&x_offsets, args.offsets + t, taps));
    EXPECT_RANGE(x, x_offsets.least, taps > 0 ? x_offsets.most + width : x_offsets.least);
    for (int64_t j = 0; j < args.columns; j += most_columns) {
      const int64_t columns = min_i64(args.columns - j, most_columns);
      SPEND(round_up(columns, RVM_TAP_STEP) * (taps + 1));
      rvm_taps_f32(&(rvm_taps_f32_arguments){.columns = columns,
                                             .taps = taps,
                                             .offsets = x_offsets.values,
                                             .weights = args.weights + t,
                                             .x = args.x + j,
                                             .sums = args.sums + j,
                                             .accumulates = t > 0 || args.accumulates != 0});
    }
  }
  return RVM_MICRO_DONE;
}

static int run_rvm_planes_f32(rvm_planes_f32_arguments args, const rvm_planes_f32_buffers *buffers,
                              const rvm_micro_watch *watch) {
  EXPECT(args.taps <= RVM_PLANE_TAPS && args.height >= 1 && args.width >= 1 && args.window_width >= 1);
  EXPECT_WORK((double)args.height * (double)args.width, 0x1p20);
  const int64_t elements = args.height * args.width, stride = rvm_plane_stride(elements);
  const int64_t window = args.window_height * args.window_width;
  EXPECT(window <= RVM_MAX_OFFSETS && args.planes <= LARGEST_SIZE / stride);
  EXPECT(args.pad_y <= PLANE_STEPS && args.pad_x <= PLANE_STEPS);
  EXPECT(args.dilation_y <= PLANE_STEPS && args.dilation_x <= PLANE_STEPS);
  EXPECT_RANGE(order, 0, args.taps);
  offsets order;
  EXPECT(copy_offsets(&order, args.order, args.taps));
  EXPECT(args.taps == 0 || (order.least >= 0 && order.most < window));
  args.order = order.values;
  int64_t least = 0, most = 0;
  for (int64_t t = 0; t < args.taps; t++) {
    const int64_t shift = rvm_plane_shift(&args, order.values[t]);
    least = shift < least ? shift : least;
    most = shift > most ? shift : most;
  }
  EXPECT(args.first + args.planes * elements <= args.size);
  EXPECT_RANGE(x, 0, args.size);
  EXPECT_RANGE(weights, 0, args.planes * window);
  EXPECT_RANGE(sums, 0, args.planes * stride);
  EXPECT_RANGE(masks, 0, args.taps * stride);
  EXPECT_RANGE(copy, 0, most - least + stride);
  EXPECT(!overlaps(args.copy, most - least + stride, args.x, args.size));
  const int64_t most_planes = portion_size((args.taps + 1) * stride, 1);
  for (int64_t p = 0; p < args.planes; p += most_planes) {
    rvm_planes_f32_arguments part = args;
    part.planes = min_i64(args.planes - p, most_planes);
    part.first = args.first + p * elements;
    part.weights = args.weights + p * window;
    part.sums = args.sums + p * stride;
    SPEND((part.planes + 1) * stride * (args.taps + 1)); /* computing the masks counts as one more plane */
    rvm_planes_f32(&part);
  }
  return RVM_MICRO_DONE;
}

static int run_rvm_depthwise_rows_f32(rvm_depthwise_rows_f32_arguments args,
                                      const rvm_depthwise_rows_f32_buffers *buffers, const rvm_micro_watch *watch) {
#define IS_FORM(height, stride) || (args.window_height == (height) && args.stride_y == (stride))
  EXPECT(0 RVM_FOR_EACH_DEPTHWISE(IS_FORM));
#undef IS_FORM
  EXPECT(args.window_width >= 1 && args.window_width <= RVM_COLUMN_TAPS);
  EXPECT(args.stride_x >= 1 && args.stride_x <= 2);
  EXPECT(args.pad_y <= PLANE_STEPS && args.pad_x <= PLANE_STEPS);
  if (args.planes == 0 || args.rows == 0 || args.columns == 0) return RVM_MICRO_DONE;
  const int64_t elements = args.height * args.width, window = args.window_height * args.window_width;
  EXPECT((args.row + args.rows - 1) * args.stride_y - args.pad_y < args.height);
  EXPECT((args.column + args.columns - 1) * args.stride_x - args.pad_x < args.width);
  EXPECT_WORK((double)args.columns * RVM_COLUMN_ROWS, 0x1p20);
  EXPECT_WORK((double)args.columns * (double)args.rows, 0x1p20);
  const int64_t sums = args.rows * args.columns;
  EXPECT_WORK((double)args.planes * (double)elements, LARGEST_SIZE);
  EXPECT_WORK((double)args.planes * (double)sums, LARGEST_SIZE);
  EXPECT(args.first + args.planes * elements <= args.size);
  EXPECT_RANGE(x, 0, args.size);
  EXPECT_RANGE(weights, 0, args.planes * window);
  EXPECT_RANGE(sums, 0, args.planes * sums + (RVM_DEPTHWISE_FEW - 1) * args.columns + RVM_TILE_STEP);
  EXPECT_RANGE(copy, 0, rvm_depthwise_copy_size(&args));
  const int64_t work = (window + 2) * (sums + RVM_DEPTHWISE_REACH), most_planes = portion_size(work, 1);
  for (int64_t p = 0; p < args.planes; p += most_planes) {
    rvm_depthwise_rows_f32_arguments part = args;
    part.planes = min_i64(args.planes - p, most_planes);
    part.first = args.first + p * elements;
    part.weights = args.weights + p * window;
    part.sums = args.sums + p * sums;
    SPEND(part.planes * work);
    rvm_depthwise_rows_f32(&part);
  }
  return RVM_MICRO_DONE;
}

static int run_rvm_window_rows_f32(rvm_window_rows_f32_arguments args, const rvm_window_rows_f32_buffers *buffers,
                                   const rvm_micro_watch *watch) {
  EXPECT(args.begin <= args.data_begin && args.data_begin <= args.data_end && args.data_end <= args.end);
  const int64_t width = args.end - args.begin, data = args.data_end - args.data_begin;
  EXPECT_WORK((double)width, 0x1p26);
  if (args.rows == 0 || width == 0) return RVM_MICRO_DONE;
  const int64_t written = last_offset(args.rows, args.dst_stride) + args.end;
  const int64_t read = data > 0 ? last_offset(args.rows, args.x_stride) + last_offset(data, args.step) + 1 : 0;
  EXPECT_RANGE(dst, args.begin, written);
  EXPECT_RANGE(x, 0, read);
  EXPECT(!overlaps(args.dst + args.begin, written - args.begin, args.x, read));
  const int64_t most = portion_size(width, 1);
  for (int64_t r = 0; r < args.rows; r += most) {
    rvm_window_rows_f32_arguments part = args;
    part.rows = min_i64(args.rows - r, most);
    part.dst = args.dst + r * args.dst_stride;
    part.x = args.x + (read ? r * args.x_stride : 0);
    SPEND(part.rows * width);
    rvm_window_rows_f32(&part);
  }
  return RVM_MICRO_DONE;
}

static int run_rvm_window_panel_f32(rvm_window_panel_f32_arguments args, const rvm_window_panel_f32_buffers *buffers,
                                    const rvm_micro_watch *watch) {
  const int64_t taps = args.window_height * args.window_width, area = args.height * args.width;
  EXPECT(taps >= 1 && taps <= LARGEST_SIZE && area <= LARGEST_SIZE);
  EXPECT(args.out_height >= 1 && args.out_width >= 1 && args.stride_x >= 1 && args.columns <= args.panel_stride);
  if (args.rows == 0 || args.columns == 0) return RVM_MICRO_DONE;
  /* The columns are on at most `lines` lines of the result. */
  const int64_t lines = args.columns / args.out_width + 2;
  const int64_t last_image = (args.column + args.columns - 1) / (args.out_height * args.out_width);
  const double work = (double)args.rows * (double)args.panel_stride + (double)taps * (double)lines;
  EXPECT_WORK(work, 0x1p26);
  const int64_t read = last_image * args.image_stride + ((args.row + args.rows - 1) / taps + 1) * area;
  const int64_t written = last_offset(args.rows, args.panel_stride) + args.panel_stride;
  EXPECT_RANGE(panel, 0, written);
  EXPECT_RANGE(x, 0, read);
  EXPECT(!overlaps(args.panel, written, args.x, read));
  SPEND((int64_t)work);
  rvm_window_panel_f32(&args);
  return RVM_MICRO_DONE;
}

/* Calls rvm_max_pool_f32.  For common windows, the width, stride and dilation are constants, so that the C compiler can
   specialize the loops. */
static void max_pool_f32_any_window(rvm_max_pool_f32_arguments args) {
#ifdef RVM_COMPACT
  rvm_max_pool_f32(&args);
#else
#define WITH(width, stride)    \
  do {                         \
    args.window_width = width; \
    args.stride_x = stride;    \
    args.dilation_x = 1;       \
    rvm_max_pool_f32(&args);   \
  } while (0)
  const int64_t width = args.dilation_x == 1 ? args.window_width : 0, stride = args.stride_x;
  if (width == 2 && stride == 2)
    WITH(2, 2);
  else if (width == 3 && stride == 2)
    WITH(3, 2);
  else if (width == 3 && stride == 1)
    WITH(3, 1);
  else if (width == 4 && stride == 4)
    WITH(4, 4);
  else
    rvm_max_pool_f32(&args);
#undef WITH
#endif
}

/* Computes the mean of each window (rvm_average_pool_f32). */
static RVM_NOINLINE void average_pool_f32(const rvm_max_pool_f32_arguments *args, int counts_padding) {
  rvm_pool_planes(args, 1, counts_padding);
}

/* Runs rvm_max_pool_f32, or rvm_average_pool_f32 if `is_mean`.  A portion is some rows of the output, or a part of one
   row if rows are long. */
static int pool_f32(rvm_max_pool_f32_arguments args, const rvm_max_pool_f32_buffers *buffers,
                    const rvm_micro_watch *watch, int is_mean, int counts_padding) {
  const int64_t rows = args.out_height, columns = args.out_width, area = args.height * args.width;
  EXPECT(args.window_width >= 1 && args.stride_y >= 1 && args.stride_x >= 1);
  EXPECT(args.dilation_y >= 1 && args.dilation_x >= 1);
  const int64_t reach = (args.window_width - 1) * args.dilation_x; /* the window's width in elements of x, less 1 */
  EXPECT(reach < RVM_POOL_LINE && args.planes * rows <= LARGEST_SIZE && area <= LARGEST_SIZE);
  EXPECT_WORK((double)(args.window_height + 1) * RVM_POOL_LINE, 0x1p26);
  if (rows == 0 || columns == 0) return RVM_MICRO_DONE;
  EXPECT_RANGE(out, 0, args.planes * rows * columns);
  EXPECT_RANGE(x, 0, args.planes * area);
  /* rvm_pool_planes computes `line` columns together. */
  const int64_t line = (RVM_POOL_LINE - 1 - reach) / args.stride_x + 1;
  const int64_t line_work =
      (args.window_height + 1) * ((line - 1) * args.stride_x + reach + 1) + line * args.window_width;
  const int64_t most_columns = portion_size(line_work, 1) * line;
  const int64_t lines = (min_i64(columns, most_columns) + line - 1) / line;
  const int64_t most_rows = columns > most_columns ? 1 : portion_size(line_work * lines, 1);
  for (int64_t plane = 0; plane < args.planes; plane++)
    for (int64_t r = 0; r < rows; r += most_rows)
      for (int64_t j = 0; j < columns; j += most_columns) {
        rvm_max_pool_f32_arguments part = args;
        part.out = args.out + (plane * rows + r) * columns + j;
        part.x = args.x + plane * area;
        part.planes = 1;
        part.out_height = min_i64(rows - r, most_rows);
        part.out_width = min_i64(columns - j, most_columns);
        part.pad_y = args.pad_y - r * args.stride_y;
        part.pad_x = args.pad_x - j * args.stride_x;
        SPEND(line_work * ((part.out_width + line - 1) / line) * part.out_height);
        if (is_mean)
          average_pool_f32(&part, counts_padding);
        else
          max_pool_f32_any_window(part);
      }
  return RVM_MICRO_DONE;
}

static int run_rvm_max_pool_f32(rvm_max_pool_f32_arguments args, const rvm_max_pool_f32_buffers *buffers,
                                const rvm_micro_watch *watch) {
  return pool_f32(args, buffers, watch, 0, 0);
}

static int run_rvm_average_pool_f32(rvm_average_pool_f32_arguments args, const rvm_average_pool_f32_buffers *buffers,
                                    const rvm_micro_watch *watch) {
  const rvm_max_pool_f32_buffers same = {.out = buffers->out, .x = buffers->x};
  return pool_f32(rvm_averaged_windows(&args), &same, watch, 1, args.counts_padding != 0);
}

static int run_rvm_sort_i64(rvm_sort_i64_arguments args, const rvm_sort_i64_buffers *buffers,
                            const rvm_micro_watch *watch) {
  EXPECT_RANGE(values, 0, args.count);
  rvm_sort_ranges ranges;
  rvm_begin_sort(&ranges, args.count);
  while (ranges.count) {
    SPEND(SORT_WORK * ranges.items[ranges.count - 1].count);
    rvm_sort_step(args.values, &ranges);
  }
  return RVM_MICRO_DONE;
}

static int run_rvm_keep_least_i64(rvm_keep_least_i64_arguments args, const rvm_keep_least_i64_buffers *buffers,
                                  const rvm_micro_watch *watch) {
  EXPECT_RANGE(kept, 0, args.most);
  EXPECT_RANGE(values, 0, args.count);
  if (!args.is_heap) SPEND(SORT_WORK * args.most);
  const int64_t portion = portion_size(KEEP_WORK, RVM_KEEP_BLOCK);
  /* One iteration even if there is no number: unless `is_heap`, `kept` becomes a heap. */
  for (int64_t i = 0; i == 0 || i < args.count; i += portion) {
    rvm_keep_least_i64_arguments part = args;
    part.values = args.values + i;
    part.count = min_i64(args.count - i, portion);
    part.is_heap = i > 0 || args.is_heap != 0;
    SPEND(KEEP_WORK * (part.count + 1));
    rvm_keep_least_i64(&part);
  }
  return RVM_MICRO_DONE;
}

/* Positions are in bytes.  The buffers may overlap. */
static int run_rvm_copy_bytes(rvm_copy_bytes_arguments args, const rvm_copy_bytes_buffers *buffers,
                              const rvm_micro_watch *watch) {
  EXPECT_RANGE_OF(char, dst, 0, args.bytes);
  EXPECT_RANGE_OF(char, src, 0, args.bytes);
  if (args.dst == args.src) return RVM_MICRO_DONE;
  for (int64_t offset = 0; offset < args.bytes; offset += RVM_MICRO_PORTION) {
    const int64_t bytes = min_i64(args.bytes - offset, RVM_MICRO_PORTION);
    SPEND(bytes / 2); /* half a multiply-add for each byte, because a copy outside the cache is slow */
    memmove((char *)args.dst + offset, (const char *)args.src + offset, (size_t)bytes);
  }
  return RVM_MICRO_DONE;
}

static int run_rvm_prefetch_rows(rvm_prefetch_rows_arguments args, const rvm_prefetch_rows_buffers *buffers,
                                 const rvm_micro_watch *watch) {
  const int64_t lines = args.rows * (args.columns * args.element_bytes / RVM_LINE_BYTES + 1);
  /* The results do not depend on it, so a call that loads too much is not refused, but does nothing. */
  if (args.element_bytes < 1 || args.element_bytes > 16 || lines == 0 || lines > PREFETCHED_LINES)
    return RVM_MICRO_DONE;
  const int64_t elements = last_offset(args.rows, args.row_stride) + args.columns;
  args.x = checked_address(&buffers->x, 0, elements, args.element_bytes);
  if (!args.x) return RVM_MICRO_DONE;
  SPEND(lines);
  rvm_prefetch_rows(&args);
  return RVM_MICRO_DONE;
}

static int run_rvm_transposed_tile(rvm_transposed_tile_arguments args, const rvm_transposed_tile_buffers *buffers,
                                   const rvm_micro_watch *watch) {
  const int64_t size = RVM_TRANSPOSED_TILE * RVM_TRANSPOSED_TILE;
  EXPECT_RANGE_OF(int32_t, tile, 0, size);
  EXPECT_RANGE_OF(int32_t, x, 0, (RVM_TRANSPOSED_TILE - 1) * args.x_stride + RVM_TRANSPOSED_TILE);
  SPEND(size);
  rvm_transposed_tile(&args);
  return RVM_MICRO_DONE;
}

static int run_rvm_transposed_elements(rvm_transposed_elements_arguments args,
                                       const rvm_transposed_elements_buffers *buffers, const rvm_micro_watch *watch) {
  const int64_t size = RVM_TRANSPOSED_TILE * RVM_TRANSPOSED_TILE, bytes = args.element_bytes;
  EXPECT(bytes == 1 || bytes == 2 || bytes == 8);
  EXPECT_ELEMENTS(bytes, tile, 0, size);
  EXPECT_ELEMENTS(bytes, x, 0, (RVM_TRANSPOSED_TILE - 1) * args.x_stride + RVM_TRANSPOSED_TILE);
  SPEND(size);
  rvm_transposed_elements(&args);
  return RVM_MICRO_DONE;
}

static int run_rvm_tile_bytes(rvm_tile_bytes_arguments args, const rvm_tile_bytes_buffers *buffers,
                              const rvm_micro_watch *watch) {
  EXPECT(args.rows >= 1 && args.rows <= RVM_BYTE_TILE_ROWS && args.columns >= 1);
  const int64_t width = round_up(args.columns, RVM_TILE_STEP), depth = args.depth;
  EXPECT_RANGE_OF(uint8_t, a, 0, depth > 0 ? last_offset(args.rows, args.a_stride) + depth : 0);
  EXPECT_RANGE(b, 0, depth > 0 ? last_offset((depth + 3) / 4, args.b_stride) + width : 0);
  EXPECT_RANGE(tile, 0, last_offset(args.rows, args.tile_stride) + width);
  for (int64_t j = 0; j < args.columns; j += TILE_COLUMNS) {
    rvm_tile_bytes_arguments part = args;
    part.columns = min_i64(args.columns - j, TILE_COLUMNS);
    part.tile = args.tile + j;
    const int64_t most_depth = portion_size(args.rows * part.columns, DEPTH_STEP);
    for (int64_t p = 0; p < depth; p += most_depth) {
      part.depth = min_i64(depth - p, most_depth);
      part.a = (const uint8_t *)args.a + p;
      part.b = args.b + p / 4 * args.b_stride + j;
      SPEND(args.rows * part.columns * (part.depth + 1));
      rvm_tile_bytes(&part);
    }
  }
  return RVM_MICRO_DONE;
}

static int run_rvm_taps_bytes(rvm_taps_bytes_arguments args, const rvm_taps_bytes_buffers *buffers,
                              const rvm_micro_watch *watch) {
  const int64_t width = round_up(args.columns, RVM_TAP_STEP);
  EXPECT_RANGE(offsets, 0, args.taps);
  EXPECT_RANGE(weights, 0, args.taps);
  EXPECT_RANGE(sums, 0, width);
  for (int64_t t = 0; t < args.taps; t += OFFSETS) {
    offsets word_offsets;
    const int64_t taps = min_i64(args.taps - t, OFFSETS);
    const int64_t most_columns = portion_size(taps, RVM_TAP_STEP);
    EXPECT(copy_offsets(&word_offsets, args.offsets + t, taps));
    EXPECT_RANGE(words, word_offsets.least, word_offsets.most + width);
    for (int64_t j = 0; j < args.columns; j += most_columns) {
      const int64_t columns = min_i64(args.columns - j, most_columns);
      SPEND(round_up(columns, RVM_TAP_STEP) * (taps + 1) * 4);
      rvm_taps_bytes(&(rvm_taps_bytes_arguments){.columns = columns,
                                                 .taps = taps,
                                                 .offsets = word_offsets.values,
                                                 .weights = args.weights + t,
                                                 .words = args.words + j,
                                                 .sums = args.sums + j});
    }
  }
  return RVM_MICRO_DONE;
}

static int run_rvm_words_of_bytes(rvm_words_of_bytes_arguments args, const rvm_words_of_bytes_buffers *buffers,
                                  const rvm_micro_watch *watch) {
  EXPECT(args.rows >= 1);
  args.rows = min_i64(args.rows, 4);
  EXPECT_RANGE(words, 0, args.count);
  EXPECT_RANGE_OF(uint8_t, bytes, 0,
                  args.count > 0 ? last_offset(args.rows, args.stride) + last_offset(args.count, args.step) + 1 : 0);
  for (int64_t j = 0; j < args.count; j += MOST_WORDS) {
    rvm_words_of_bytes_arguments part = args;
    part.count = min_i64(args.count - j, MOST_WORDS);
    part.words = args.words + j;
    part.bytes = (const uint8_t *)args.bytes + j * args.step;
    SPEND(part.count * WORD_WORK);
    if (args.step == 1) {
      part.step = 1; /* a constant, for which the C compiler can specialize the loop */
      rvm_words_of_bytes(&part);
    } else {
      rvm_words_of_bytes(&part);
    }
  }
  return RVM_MICRO_DONE;
}

static int run_rvm_words_of_line(rvm_words_of_line_arguments args, const rvm_words_of_line_buffers *buffers,
                                 const rvm_micro_watch *watch) {
  EXPECT(args.rows >= 1 && args.step >= 1);
  EXPECT(args.position >= -(int64_t)LARGEST_SIZE && args.position <= LARGEST_SIZE);
  args.rows = min_i64(args.rows, 4);
  EXPECT_RANGE(words, 0, args.count);
  EXPECT_RANGE_OF(uint8_t, line, 0, args.line_size);
  for (int64_t j = 0; j < args.count; j += MOST_WORDS) {
    rvm_words_of_line_arguments part = args;
    part.count = min_i64(args.count - j, MOST_WORDS);
    part.words = args.words + j;
    part.position = args.position + j * args.step;
    SPEND(part.count * WORD_WORK);
    rvm_words_of_line(&part);
  }
  return RVM_MICRO_DONE;
}

/* A portion is some of the rows.  rvm_attention computes fewer than RVM_ATTENTION_FEW rows in another way.  So that the
   results do not depend on the portions, a portion has fewer rows than that only if the whole call has. */
static int run_rvm_attention(rvm_attention_arguments args, const rvm_attention_buffers *buffers,
                             const rvm_micro_watch *watch) {
  const int64_t rows = args.rows, keys = args.keys, depth = args.depth, width = args.width;
  EXPECT(rows <= RVM_ATTENTION_ROWS && (args.k_row_stride == 1 || args.k_column_stride == 1));
  const int64_t key_work = depth + width + 16;
  EXPECT_WORK((double)keys * (double)key_work, 0x1p27);
  /* The same sizes as in rvm_attend (attention.h) */
  const int64_t columns = round_up(width, RVM_TILE_STEP), parts = (keys + RVM_ATTENTION_KEYS - 1) / RVM_ATTENTION_KEYS;
  const int64_t part_keys = round_up(parts > 1 ? (keys + parts - 1) / parts : keys, RVM_ATTENTION_PANEL);
  const int64_t panel_columns = keys < RVM_ATTENTION_PANEL ? round_up(keys, RVM_TILE_STEP) : RVM_ATTENTION_PANEL;
  if (rows == 0) return RVM_MICRO_DONE;
  const int64_t k_count =
      keys > 0 && depth > 0 ? last_offset(keys, args.k_row_stride) + last_offset(depth, args.k_column_stride) + 1 : 0;
  const int64_t copy_count = columns != width ? min_i64(keys, part_keys) * columns : 0;
  const int64_t allowed_count =
      keys > 0 ? last_offset(rows, args.allowed_row_stride) + last_offset(keys, args.allowed_column_stride) + 1 : 0;
  const int64_t bias_count =
      keys > 0 ? last_offset(rows, args.bias_row_stride) + last_offset(keys, args.bias_column_stride) + 1 : 0;
  EXPECT_RANGE(q, 0, rows * depth);
  EXPECT_RANGE(k, 0, k_count);
  EXPECT_RANGE(v, 0, keys * width);
  EXPECT_RANGE(allowed, 0, allowed_count);
  EXPECT_RANGE(bias, 0, bias_count);
  EXPECT_RANGE(scores, 0, rows * part_keys);
  EXPECT_RANGE(panel, 0, depth * panel_columns);
  EXPECT_RANGE(copy, 0, copy_count);
  EXPECT_RANGE(out, 0, rows * columns);
  EXPECT(!overlaps(args.panel, depth * panel_columns, args.k, k_count));
  EXPECT(!overlaps(args.copy, copy_count, args.v, keys * width));
  const int64_t most_rows = portion_size(keys * key_work, RVM_TILE_ROWS);
  for (int64_t r = 0; r < rows;) {
    rvm_attention_arguments part = args;
    part.rows = rows - r < most_rows + RVM_ATTENTION_FEW ? rows - r : most_rows;
    part.q = args.q + r * depth;
    part.allowed = args.allowed + r * args.allowed_row_stride;
    part.bias = args.bias + r * args.bias_row_stride;
    part.out = args.out + r * columns;
    SPEND(part.rows * (keys + 1) * key_work);
    rvm_attention(&part);
    r += part.rows;
  }
  return RVM_MICRO_DONE;
}

/* Returns whether the arguments that rvm_winograd_input and rvm_winograd_plain share are valid.  If so, *elements is
   the number of elements of the planes. */
#define WINOGRAD_IS_VALID(args, elements)                                              \
  ((args).spread > 0 && (args).spread <= 1 << 20 && (args).tiles_per_row > 0 &&        \
   (args).columns % RVM_WINOGRAD_LANES == 0 && (args).columns <= RVM_WINOGRAD_TILES && \
   (args).tiles <= (args).columns && !__builtin_mul_overflow((args).channels * (args).height, (args).width, elements))

/* Computes the number of elements of u from the first to the last transformed weight of `rows` filters, and returns 1.
   u has 16 planes, each with a row of `channels` elements for each of the `filters`.  Returns 0 if the number exceeds
   int64. */
static int winograd_weights(int64_t rows, int64_t filters, int64_t channels, int64_t *elements) {
  *elements = 0;
  return channels == 0 || (!__builtin_mul_overflow(15 * filters, channels, elements) &&
                           !__builtin_add_overflow(*elements, rows * channels, elements));
}

static int run_rvm_winograd_input(rvm_winograd_input_arguments args, const rvm_winograd_input_buffers *buffers,
                                  const rvm_micro_watch *watch) {
  int64_t elements;
  EXPECT(WINOGRAD_IS_VALID(args, &elements));
  const double work = (double)args.channels * (double)(args.tiles + 1) * INPUT_WORK;
  EXPECT_WORK(work, 0x1p26);
  EXPECT_RANGE(planes, 0, elements);
  EXPECT_RANGE(v, 0, 16 * rvm_winograd_stride(args.channels, args.columns));
  EXPECT_RANGE(too_large, 0, 1);
  SPEND((int64_t)work);
  rvm_winograd_input(&args);
  return RVM_MICRO_DONE;
}

static int run_rvm_winograd_product(rvm_winograd_product_arguments args, const rvm_winograd_product_buffers *buffers,
                                    const rvm_micro_watch *watch) {
  EXPECT(args.rows >= 1 && args.rows <= RVM_TILE_ROWS);
  EXPECT(args.columns > 0 && args.columns % RVM_WINOGRAD_LANES == 0 && args.columns <= RVM_WINOGRAD_TILES);
  /* 16 planes of at most RVM_TILE_ROWS rows */
  const double work = (double)args.columns * (double)(args.channels + 1) * (16 * RVM_TILE_ROWS);
  int64_t weights;
  EXPECT_WORK(work, 0x1p28);
  EXPECT(winograd_weights(args.rows, args.filters, args.channels, &weights));
  EXPECT_RANGE(u, 0, weights);
  EXPECT_RANGE(v, 0, 16 * rvm_winograd_stride(args.channels, args.columns));
  EXPECT_RANGE(m, 0, 16 * args.rows * args.columns);
  SPEND((int64_t)work);
  rvm_winograd_product(&args);
  return RVM_MICRO_DONE;
}

static int run_rvm_winograd_output(rvm_winograd_output_arguments args, const rvm_winograd_output_buffers *buffers,
                                   const rvm_micro_watch *watch) {
  const double work = (double)(args.rows + 1) * (double)(args.columns + 1) * 16;
  EXPECT_WORK(work, 0x1p27);
  EXPECT_RANGE(m, 0, 16 * args.rows * args.columns);
  EXPECT_RANGE(out, 0, args.rows * 4 * args.columns);
  SPEND((int64_t)work);
  rvm_winograd_output(&args);
  return RVM_MICRO_DONE;
}

static int run_rvm_winograd_plain(rvm_winograd_plain_arguments args, const rvm_winograd_plain_buffers *buffers,
                                  const rvm_micro_watch *watch) {
  int64_t elements, weights;
  EXPECT(WINOGRAD_IS_VALID(args, &elements));
  const double work = (double)(args.channels + 1) * PLAIN_WORK;
  EXPECT_WORK(work, 0x1p26);
  EXPECT(winograd_weights(args.rows, args.filters, args.channels, &weights));
  if (args.rows == 0 || args.tiles == 0) return RVM_MICRO_DONE;
  EXPECT_RANGE(planes, 0, elements);
  EXPECT_RANGE(u, 0, weights);
  EXPECT_RANGE(out, 0, args.rows * 4 * args.columns);
  for (int64_t r = 0; r < args.rows; r++)
    for (int64_t i = 0; i < args.tiles; i++) {
      rvm_winograd_plain_arguments part = args;
      part.first_tile = args.first_tile + i;
      part.tiles = part.rows = 1;
      part.u = args.u + r * args.channels;
      part.out = args.out + r * 4 * args.columns + 2 * i;
      SPEND((int64_t)work);
      rvm_winograd_plain(&part);
    }
  return RVM_MICRO_DONE;
}

/* Defines run_rvm_tree_columns_DTYPE and run_rvm_trees_DTYPE.  A portion of rvm_trees_DTYPE evaluates some of the
   trees; rvm_tree_columns_DTYPE is one portion. */
#define RUN_TREES(dtype, T)                                                                                        \
  static int run_rvm_tree_columns_##dtype(rvm_tree_columns_##dtype##_arguments args,                               \
                                          const rvm_tree_columns_##dtype##_buffers *buffers,                       \
                                          const rvm_micro_watch *watch) {                                          \
    const double work = (double)args.rows * (double)(args.count + 1);                                              \
    EXPECT_WORK(work, 0x1p26);                                                                                     \
    EXPECT(args.features >= 1 || work == 0);                                                                       \
    EXPECT_RANGE(columns, 0, args.count);                                                                          \
    EXPECT_RANGE(x, 0, args.rows * args.features);                                                                 \
    EXPECT_RANGE(block, 0, args.rows * (args.count + 1));                                                          \
    SPEND((int64_t)work);                                                                                          \
    rvm_tree_columns_##dtype(&args);                                                                               \
    return RVM_MICRO_DONE;                                                                                         \
  }                                                                                                                \
  static int run_rvm_trees_##dtype(rvm_trees_##dtype##_arguments args, const rvm_trees_##dtype##_buffers *buffers, \
                                   const rvm_micro_watch *watch) {                                                 \
    const int64_t trees = args.trees, leaves = args.targets == 1 ? 0 : args.leaves;                                \
    if (args.rows == 0 || trees == 0 || args.targets == 0) return RVM_MICRO_DONE;                                  \
    /* The work of RVM_TREE_LANES trees.  All lanes take every step, even lanes without a row or a tree. */        \
    const double work = (double)args.rows * ((double)args.steps * RVM_TREE_LANES + (double)args.targets + 1) * 4;  \
    EXPECT_WORK(work, 0x1p30);                                                                                     \
    EXPECT(args.node_count >= 1 && args.offset_bits >= 1 && args.offset_bits <= 32);                               \
    EXPECT(args.offset_bits < (int64_t)sizeof(T) * 8 && (args.targets == 1 || leaves >= 1));                       \
    EXPECT_RANGE(x, 0, args.rows * (args.columns + 1));                                                            \
    EXPECT_RANGE(totals, 0, args.rows * args.targets);                                                             \
    EXPECT_RANGE(roots, 0, trees);                                                                                 \
    EXPECT_RANGE(depths, 0, trees);                                                                                \
    EXPECT_ELEMENTS(8, nodes, 0, args.node_count * (int64_t)(sizeof(T) / 4));                                      \
    EXPECT_RANGE(starts, 0, leaves > 0 && args.entries > 0 ? leaves + 1 : 0);                                      \
    EXPECT_RANGE(entry_targets, 0, leaves > 0 ? args.entries : 0);                                                 \
    EXPECT_RANGE(values, 0, args.entries > 0 && leaves > 0 ? args.entries : leaves * args.targets);                \
    const int64_t most = portion_size((int64_t)work / 8, RVM_TREE_LANES);                                          \
    for (int64_t t = 0; t < trees; t += most) {                                                                    \
      rvm_trees_##dtype##_arguments part = args;                                                                   \
      part.trees = min_i64(trees - t, most);                                                                       \
      part.roots = args.roots + t;                                                                                 \
      part.depths = args.depths + t;                                                                               \
      SPEND((int64_t)(work / RVM_TREE_LANES) * part.trees);                                                        \
      rvm_trees_##dtype(&part);                                                                                    \
    }                                                                                                              \
    return RVM_MICRO_DONE;                                                                                         \
  }
RUN_TREES(f32, float)
RUN_TREES(f64, double)

static int run_rvm_multiply_adds(rvm_multiply_adds_arguments args, const rvm_multiply_adds_buffers *buffers,
                                 const rvm_micro_watch *watch) {
  EXPECT_RANGE(x, 0, RVM_PEAK_NUMBERS);
  const int64_t steps = args.steps, most = portion_size(RVM_PEAK_NUMBERS, 1);
  for (int64_t step = 0; step < steps; step += most) {
    args.steps = min_i64(steps - step, most);
    SPEND(args.steps * RVM_PEAK_NUMBERS);
    rvm_multiply_adds(&args);
  }
  return RVM_MICRO_DONE;
}

/* NAME_call converts the arguments of a micro-kernel to its struct.  It refuses a SIZE out of range, and then calls
   run_NAME. */
#if defined RVM_SHARED_LEVEL || defined RVM_SELECTIVE
#define DEFINE_CALL(function, parameters) static RVM_UNUSED int function parameters
#else
#define DEFINE_CALL(function, parameters) \
  int function parameters;                \
  int function parameters
#endif
#define SIZE(name)                \
  args.name = argument++->number; \
  if (!is_size(args.name)) return RVM_MICRO_REFUSED;
#define NUMBER(name) args.name = argument++->number;
#define FLOAT(name) args.name = argument++->f32;
#define READ(name, type) \
  args.name = NULL;      \
  buffers.name = *argument++;
#define WRITE(name, type) READ(name, type)
#define MICRO_KERNEL(name, header, arguments)                                                                  \
  DEFINE_CALL(RVM_OF_LEVEL(name##_call), (const rvm_micro_argument *argument, const rvm_micro_watch *watch)) { \
    name##_arguments args;                                                                                     \
    name##_buffers buffers;                                                                                    \
    arguments;                                                                                                 \
    return run_##name(args, &buffers, watch);                                                                  \
  }
#include "micro_kernels.def"
#undef MICRO_KERNEL
#undef WRITE
#undef READ
#undef FLOAT
#undef NUMBER
#undef SIZE

/* CALL_OF(NAME) is the function for the table: NAME_call of this level, or of the level that shares it. */
#ifdef RVM_SHARED_LEVEL
#define OWN_rvm_tile_bytes ~,
#define OWN_rvm_taps_bytes ~,
#define OWN_rvm_quantized_tile_int8 ~,
#define SECOND(first, second, ...) second
#define CHOOSE(...) SECOND(__VA_ARGS__, ~)
#define CALL_OF(name) CHOOSE(OWN_##name RVM_OF_LEVEL(name##_call), RVM_EXPANDED_NAME(name##_call, RVM_SHARED_LEVEL))
#define MICRO_KERNEL(name, header, arguments) \
  int RVM_EXPANDED_NAME(name##_call, RVM_SHARED_LEVEL)(const rvm_micro_argument *, const rvm_micro_watch *);
#include "micro_kernels.def"
#undef MICRO_KERNEL
#else
#define CALL_OF(name) RVM_OF_LEVEL(name##_call)
#endif

#define SIZE(name) "i"
#define NUMBER(name) "i"
#define FLOAT(name) "f"
#define READ(name, type) "p"
#define WRITE(name, type) "P"
extern const rvm_micro_kernel RVM_OF_LEVEL(rvm_micro_kernels)[];
const rvm_micro_kernel RVM_OF_LEVEL(rvm_micro_kernels)[] = {
#define MICRO_KERNEL(name, header, arguments) RVM_WHEN_USED(name, {CALL_OF(name), arguments}, )
#include "micro_kernels.def"
#undef MICRO_KERNEL
};
#ifdef RVM_IS_BASE_LEVEL
const int32_t rvm_micro_kernel_count = sizeof rvm_micro_kernels / sizeof *rvm_micro_kernels;
#endif
