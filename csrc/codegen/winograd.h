/* winograd.h: convolutions by windows of 3 x 3 with 16 instead of 36 products for each tile of 2 x 2 results.

   The results of a tile are A' m A, where m is the sum over the channels of (G g G') * (B' d B).  A, B and G are
   constant matrices, ' transposes, and * multiplies element by element.  g has the 3 x 3 weights of a filter, and d the
   4 x 4 elements that the windows of the tile read.  G g G' is computed when the program is built, and passed to
   rvm_winograd_product as the argument u.  Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks,
   2015. */
#ifndef RELVM_WINOGRAD_H
#define RELVM_WINOGRAD_H

#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "gemm_f32.h"
#include "kernel_constants.h"
#include "micro_kernel_arguments.h"

/* The maximum number of pairs of elements that a line of tiles reads, including the lanes after the last tile. */
enum { RVM_WINOGRAD_PAIRS = RVM_WINOGRAD_TILES + 2 * RVM_WINOGRAD_LANES };

/* Sums and differences of larger elements may be infinite or NaN although the result is finite.  The generated kernel
   computes blocks with such elements by rvm_winograd_plain. */
#define RVM_WINOGRAD_LARGEST 1e30f

/* Returns the first of the two rows of the result that a line of tiles computes.  `spread` is the dilation of the
   window.  The second row is `spread` rows below the first, because adjacent rows of the window are also `spread` rows
   apart. */
static inline int64_t rvm_winograd_first_row(int64_t line, int64_t spread) {
  return line / spread * (2 * spread) + line % spread;
}

/* Returns the distance between the elements p and p + 1 of B' d B in v.  The additional lanes keep the distance from
   being a power of two, which would put all these elements in the same cache set. */
static inline int64_t rvm_winograd_stride(int64_t channels, int64_t columns) {
  return channels * columns + RVM_WINOGRAD_LANES;
}

/* Reads `pairs` pairs of elements of a row of the plane from `column` on.  Stores the first element of each pair in
   `even` and the second in `odd`.  Elements outside the plane are 0.  Returns the number of pairs with an element that
   is NaN or too large (RVM_WINOGRAD_LARGEST). */
static int64_t rvm_winograd_read_row(const float *plane, int64_t height, int64_t width, int64_t row, int64_t column,
                                     int64_t pairs, float *even, float *odd) {
  float line[2 * RVM_WINOGRAD_PAIRS];
  const int64_t begin = column < 0 ? -column : 0;
  int64_t end = width - column, too_large = 0;
  if (end > 2 * pairs) end = 2 * pairs;
  if (row < 0 || row >= height || end <= begin) {
    memset(even, 0, (size_t)pairs * sizeof *even);
    memset(odd, 0, (size_t)pairs * sizeof *odd);
    return 0;
  }
  memset(line, 0, (size_t)begin * sizeof *line);
  memcpy(line + begin, plane + row * width + column + begin, (size_t)(end - begin) * sizeof *line);
  memset(line + end, 0, (size_t)(2 * pairs - end) * sizeof *line);
  RVM_SIMD(reduction(+ : too_large))
  for (int64_t i = 0; i < pairs; i++) {
    const float a = line[2 * i], b = line[2 * i + 1];
    even[i] = a;
    odd[i] = b;
    const int a_is_small = a < RVM_WINOGRAD_LARGEST && a > -RVM_WINOGRAD_LARGEST; /* false for NaN */
    const int b_is_small = b < RVM_WINOGRAD_LARGEST && b > -RVM_WINOGRAD_LARGEST;
    too_large += !(a_is_small && b_is_small);
  }
  return too_large;
}

/* Computes B' d B.  Element p of tile first_tile + j in channel c becomes v[p * stride + c * columns + j] for j <
   tiles; for tiles <= j < columns, v is 0.  `stride` is rvm_winograd_stride.  Tiles are counted in row-major order.
   *too_large becomes 0 if no element is too large (RVM_WINOGRAD_LARGEST), else a positive number.

   planes: `channels` planes of height x width elements.  Each is surrounded by zeros, `top` rows above and `left`
   columns to the left.  spread: the dilation of the window. */
static RVM_NOINLINE void rvm_winograd_input(const rvm_winograd_input_arguments *args) {
  const rvm_winograd_input_arguments a = *args;
  const int64_t stride = rvm_winograd_stride(a.channels, a.columns);
  float even[4][RVM_WINOGRAD_PAIRS], odd[4][RVM_WINOGRAD_PAIRS];
  memset(even, 0, sizeof even);
  memset(odd, 0, sizeof odd);
  int64_t too_large = 0;
  for (int64_t c = 0; c < a.channels; c++) {
    const float *plane = a.planes + c * a.height * a.width;
    for (int64_t line = a.first_tile / a.tiles_per_row; line * a.tiles_per_row < a.first_tile + a.tiles; line++) {
      /* Tiles [begin, end) of this call are on the line.  The first of them reads the plane from (row, column) on. */
      const int64_t begin = line * a.tiles_per_row > a.first_tile ? line * a.tiles_per_row - a.first_tile : 0;
      const int64_t rest = (line + 1) * a.tiles_per_row - a.first_tile, end = rest < a.tiles ? rest : a.tiles;
      const int64_t row = rvm_winograd_first_row(line, a.spread) - a.top;
      const int64_t column = 2 * (a.first_tile + begin - line * a.tiles_per_row) - a.left;
      for (int r = 0; r < 4; r++)
        too_large += rvm_winograd_read_row(plane, a.height, a.width, row + r * a.spread, column, end - begin + 1,
                                           even[r], odd[r]);
      float *restrict out = a.v + c * a.columns + begin;
      /* This loop also writes lanes after the last tile of the line.  The next line, the memset below or the next
         channel overwrites them; after the last channel, nothing reads them. */
      for (int64_t j = 0; j < end - begin; j += RVM_WINOGRAD_LANES) {
        RVM_SIMD()
        for (int64_t l = j; l < j + RVM_WINOGRAD_LANES; l++) {
          float d[4][4], t[4][4]; /* t = B' d */
#pragma GCC unroll 4
          for (int r = 0; r < 4; r++) {
            d[r][0] = even[r][l];
            d[r][1] = odd[r][l];
            d[r][2] = even[r][l + 1];
            d[r][3] = odd[r][l + 1];
          }
#pragma GCC unroll 4
          for (int s = 0; s < 4; s++) {
            t[0][s] = d[0][s] - d[2][s];
            t[1][s] = d[1][s] + d[2][s];
            t[2][s] = d[2][s] - d[1][s];
            t[3][s] = d[1][s] - d[3][s];
          }
#pragma GCC unroll 4
          for (int r = 0; r < 4; r++) {
            out[(4 * r + 0) * stride + l] = t[r][0] - t[r][2];
            out[(4 * r + 1) * stride + l] = t[r][1] + t[r][2];
            out[(4 * r + 2) * stride + l] = t[r][2] - t[r][1];
            out[(4 * r + 3) * stride + l] = t[r][1] - t[r][3];
          }
        }
      }
    }
    if (a.tiles < a.columns)
      for (int p = 0; p < 16; p++)
        memset(a.v + p * stride + c * a.columns + a.tiles, 0, (size_t)(a.columns - a.tiles) * sizeof *a.v);
  }
  *a.too_large = too_large;
}

/* Computes m for `rows` filters: m[(p * rows + r) * columns + j] is the sum over c < channels of u[(p * filters + r) *
   channels + c] * v[p * stride + c * columns + j]. */
static inline RVM_ALWAYS_INLINE void rvm_winograd_product(const rvm_winograd_product_arguments *args) {
  const int64_t stride = rvm_winograd_stride(args->channels, args->columns);
  for (int p = 0; p < 16; p++)
    rvm_tile_f32(&(rvm_tile_f32_arguments){.rows = args->rows,
                                           .columns = args->columns,
                                           .depth = args->channels,
                                           .a = args->u + p * args->filters * args->channels,
                                           .a_row_stride = args->channels,
                                           .a_column_stride = 1,
                                           .b = args->v + p * stride,
                                           .b_stride = args->columns,
                                           .tile = args->m + p * args->rows * args->columns,
                                           .tile_stride = args->columns});
}

/* Computes the results A' m A of each tile: element (a, b) of tile j and filter r becomes out[(r * 2 + a) * 2 * columns
   + 2 * j + b]. */
static RVM_NOINLINE void rvm_winograd_output(const rvm_winograd_output_arguments *args) {
  const int64_t rows = args->rows, columns = args->columns, stride = rows * columns;
  for (int64_t r = 0; r < rows; r++) {
    float *restrict above = args->out + r * 4 * columns, *restrict below = above + 2 * columns;
    const float *restrict source = args->m + r * columns;
    RVM_SIMD()
    for (int64_t j = 0; j < columns; j++) {
      float t[2][4]; /* A' m */
#pragma GCC unroll 4
      for (int s = 0; s < 4; s++) {
        const float *element = source + s * stride + j;
        t[0][s] = element[0] + element[4 * stride] + element[8 * stride];
        t[1][s] = element[4 * stride] - element[8 * stride] - element[12 * stride];
      }
      above[2 * j] = t[0][0] + t[0][1] + t[0][2];
      above[2 * j + 1] = t[0][1] - t[0][2] - t[0][3];
      below[2 * j] = t[1][0] + t[1][1] + t[1][2];
      below[2 * j + 1] = t[1][1] - t[1][2] - t[1][3];
    }
  }
}

/* Computes what rvm_winograd_output computes, but directly by the definition of a convolution, for elements that are
   too large for Winograd's algorithm.  The weights g are recovered from u = G g G'. */
static RVM_NOINLINE void rvm_winograd_plain(const rvm_winograd_plain_arguments *args) {
  const rvm_winograd_plain_arguments a = *args;
  for (int64_t r = 0; r < a.rows; r++) {
    for (int64_t j = 0; j < 2 * a.tiles; j++)
      for (int below = 0; below < 2; below++) {
        const int64_t tile = a.first_tile + j / 2;
        const int64_t y = rvm_winograd_first_row(tile / a.tiles_per_row, a.spread) + below * a.spread - a.top;
        const int64_t x = tile % a.tiles_per_row * 2 + j % 2 - a.left;
        float sum = 0;
        for (int64_t c = 0; c < a.channels; c++) {
          float part[4][3], g[3][3]; /* G g, then g */
          for (int p = 0; p < 4; p++) {
            const float *row = a.u + (4 * p * a.filters + r) * a.channels + c;
            part[p][0] = row[0];
            part[p][1] = row[a.filters * a.channels] - row[2 * a.filters * a.channels];
            part[p][2] = row[3 * a.filters * a.channels];
          }
          for (int s = 0; s < 3; s++) {
            g[0][s] = part[0][s];
            g[1][s] = part[1][s] - part[2][s];
            g[2][s] = part[3][s];
          }
          for (int64_t n = 0; n < 9; n++) {
            const int64_t row = y + n / 3 * a.spread, column = x + n % 3;
            if (row >= 0 && row < a.height && column >= 0 && column < a.width)
              sum += g[n / 3][n % 3] * a.planes[(c * a.height + row) * a.width + column];
          }
        }
        a.out[(r * 2 + below) * 2 * a.columns + j] = sum;
      }
  }
}

#endif
