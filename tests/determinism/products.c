/* products.c: compares the micro-kernels of matrix products with plain loops, on random operands of all sizes of tiles.
   Prints the first differences, and returns 1 if there are any. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "conv_f32.h"
#include "gemm_int8.h"

enum { ROUNDS = 1500, ROWS = 6, WIDTH = 64, DEPTH = 75, STRIDE = 2 * WIDTH, TAPS = 9 };

static uint32_t state = 1;
static int differences;

static uint32_t random_number(void) {
  state = state * 1664525U + 1013904223U;
  return state >> 8;
}

static uint32_t random_word(void) { return random_number() << 16 ^ random_number(); }
static float random_float(void) { return (float)((int)(random_number() % 2001) - 1000) / 317; }

/* Compares `rows` rows of 32-bit elements, which are STRIDE elements apart. */
static void compare(const char *name, const void *found, const void *expected, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; r++) {
    const size_t offset = (size_t)(r * STRIDE) * 4;
    if (!memcmp((const char *)found + offset, (const char *)expected + offset, (size_t)columns * 4)) continue;
    if (differences++ < 9) printf("%s: %d columns, row %d of %d\n", name, (int)columns, (int)r, (int)rows);
  }
}

static int byte_of(uint32_t word, int64_t i, int is_signed) {
  const uint8_t byte = (uint8_t)(word >> 8 * (i % 4));
  return is_signed ? (int8_t)byte : byte;
}

static void check_tile_of_bytes(int64_t rows, int64_t columns, int64_t depth) {
  static uint8_t a[ROWS * DEPTH];
  static int32_t b[(DEPTH / 4 + 1) * STRIDE], found[ROWS * STRIDE], expected[ROWS * STRIDE];
  const uint32_t flip = random_number() % 2 ? 0x80808080 : 0;
  const int a_is_signed = random_number() % 2;
  for (int i = 0; i < ROWS * DEPTH; i++) a[i] = (uint8_t)random_number();
  for (int i = 0; i < (DEPTH / 4 + 1) * STRIDE; i++) {
    b[i] = (int32_t)random_word();
    if (i / STRIDE == depth / 4) b[i] &= (int32_t)((1U << 8 * (depth % 4)) - 1);
  }
  for (int i = 0; i < ROWS * STRIDE; i++) found[i] = expected[i] = (int32_t)random_word();
  for (int64_t r = 0; r < rows; r++)
    for (int64_t j = 0; j < columns; j++) {
      uint32_t sum = (uint32_t)expected[r * STRIDE + j];
      for (int64_t p = 0; p < depth; p++)
        sum += (uint32_t)(byte_of(a[r * DEPTH + p] ^ (flip & 255), 0, a_is_signed) *
                          byte_of((uint32_t)b[p / 4 * STRIDE + j], p, !a_is_signed));
      expected[r * STRIDE + j] = (int32_t)sum;
    }
  rvm_tile_bytes(&(rvm_tile_bytes_arguments){.rows = rows,
                                             .columns = columns,
                                             .depth = depth,
                                             .a = a,
                                             .a_stride = DEPTH,
                                             .flip = flip,
                                             .a_is_signed = a_is_signed,
                                             .b = b,
                                             .b_stride = STRIDE,
                                             .tile = found,
                                             .tile_stride = STRIDE});
  compare("rvm_tile_bytes", found, expected, rows, columns);
}

static void check_taps_of_bytes(int64_t columns) {
  static int32_t words[8 * STRIDE], weights[TAPS], found[STRIDE], expected[STRIDE];
  static int64_t offsets[TAPS];
  const int64_t taps = 1 + random_number() % TAPS;
  for (int i = 0; i < 8 * STRIDE; i++) words[i] = (int32_t)random_word();
  for (int i = 0; i < STRIDE; i++) found[i] = expected[i] = (int32_t)random_word();
  for (int64_t t = 0; t < taps; t++) weights[t] = (int32_t)random_word(), offsets[t] = random_number() % (7 * STRIDE);
  for (int64_t j = 0; j < columns; j++) {
    uint32_t sum = (uint32_t)expected[j];
    for (int64_t t = 0; t < taps; t++)
      for (int i = 0; i < 4; i++)
        sum += (uint32_t)(byte_of((uint32_t)weights[t], i, 1) * byte_of((uint32_t)words[offsets[t] + j], i, 0));
    expected[j] = (int32_t)sum;
  }
  rvm_taps_bytes(&(rvm_taps_bytes_arguments){
      .columns = columns, .taps = taps, .weights = weights, .words = words, .offsets = offsets, .sums = found});
  compare("rvm_taps_bytes", found, expected, 1, columns);
}

static void check_tiles_of_floats(int64_t rows, int64_t columns, int64_t depth) {
  static float a[ROWS * 2 * DEPTH], b[DEPTH * STRIDE], found[ROWS * STRIDE], expected[ROWS * STRIDE];
  static float found_direct[ROWS * STRIDE], expected_direct[ROWS * STRIDE];
  static int64_t offsets[DEPTH];
  const int64_t step = random_number() % 4 ? 1 : 2, accumulates = random_number() % 2;
  for (int i = 0; i < ROWS * 2 * DEPTH; i++) a[i] = random_float();
  for (int i = 0; i < DEPTH * STRIDE; i++) b[i] = random_float();
  for (int64_t p = 0; p < depth; p++) offsets[p] = random_number() % ((DEPTH - 1) * STRIDE);
  for (int i = 0; i < ROWS * STRIDE; i++)
    found[i] = expected[i] = found_direct[i] = expected_direct[i] = random_float();
  for (int64_t r = 0; r < rows; r++)
    for (int64_t j = 0; j < columns; j++) {
      float *const sum = &expected[r * STRIDE + j], *const direct = &expected_direct[r * STRIDE + j];
      if (!accumulates) *sum = *direct = 0;
      for (int64_t p = 0; p < depth; p++) {
        *sum = fmaf(a[r * 2 * DEPTH + p * step], b[p * STRIDE + j], *sum);
        *direct = fmaf(a[r * 2 * DEPTH + p], b[offsets[p] + j], *direct);
      }
    }
  rvm_tile_f32(&(rvm_tile_f32_arguments){.rows = rows,
                                         .columns = columns,
                                         .depth = depth,
                                         .a = a,
                                         .a_row_stride = 2 * DEPTH,
                                         .a_column_stride = step,
                                         .b = b,
                                         .b_stride = STRIDE,
                                         .tile = found,
                                         .tile_stride = STRIDE,
                                         .accumulates = accumulates});
  compare("rvm_tile_f32", found, expected, rows, columns);
  rvm_direct_tile_f32(&(rvm_direct_tile_f32_arguments){.rows = rows,
                                                       .columns = columns,
                                                       .depth = depth,
                                                       .a = a,
                                                       .a_row_stride = 2 * DEPTH,
                                                       .x = b,
                                                       .offsets = offsets,
                                                       .tile = found_direct,
                                                       .tile_stride = STRIDE,
                                                       .accumulates = accumulates});
  compare("rvm_direct_tile_f32", found_direct, expected_direct, rows, columns);
}

int main(void) {
  for (int round = 0; round < ROUNDS; round++) {
    const int64_t rows = 1 + random_number() % ROWS, columns = 1 + random_number() % WIDTH;
    const int64_t depth = 1 + random_number() % DEPTH;
    check_tile_of_bytes(rows, columns, depth);
    check_taps_of_bytes(columns);
    check_tiles_of_floats(rows, columns, depth);
  }
  return differences != 0;
}
