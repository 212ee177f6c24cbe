/* winograd.h: convolutions by windows of 3 x 3 with 16 instead of 36 products for each tile of 2 x 2 results.

   A tile's results are A' ((G g G') * (B' d B)) A: g the window's weights, d the 4 x 4 elements that the tile sees,
   * element by element, added up over the channels; what stands for G g G' is computed when the program is built.
   Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015. */
#ifndef RELVM_WINOGRAD_H
#define RELVM_WINOGRAD_H

#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "gemm_f32.h"

enum {
  RVM_WINOGRAD_TILES = 64, /* in a block, at most: a multiple of RVM_WINOGRAD_LANES */
  RVM_WINOGRAD_LANES = 16,
  RVM_WINOGRAD_PAIRS = RVM_WINOGRAD_TILES + 2 * RVM_WINOGRAD_LANES
};

/* Differences of what is larger may overflow, or be NaN, where the results are not: such blocks are computed
   plainly. */
#define RVM_WINOGRAD_LARGEST 1e30f

/* An image: `channels` planes, with zeros around them, `top` above and `left` in front. */
typedef struct rvm_winograd_image {
  const float *planes;
  int64_t channels, high, wide, top, left;
} rvm_winograd_image;

/* The first row of the result that line number `line` of tiles is for; the other is `spread` rows below, as the rows
   are that a window sees. */
static inline int64_t rvm_winograd_first_row(int64_t line, int64_t spread) {
  return line / spread * (2 * spread) + line % spread;
}

static inline int64_t rvm_winograd_step(int64_t channels, int64_t columns) {
  return channels * columns + RVM_WINOGRAD_LANES; /* not a multiple of the cache's ways */
}

/* `pairs` pairs of elements of a row of the image from `column` on, the first of each and the second of each; gives how
   many are too large. */
static int64_t rvm_winograd_row(const rvm_winograd_image *image, int64_t channel, int64_t row, int64_t column,
                                int64_t pairs, float *even, float *odd) {
  float line[2 * RVM_WINOGRAD_PAIRS];
  int64_t from = column < 0 ? -column : 0, to = image->wide - column, too_large = 0;
  if (to > 2 * pairs) to = 2 * pairs;
  if (row < 0 || row >= image->high || to <= from) {
    memset(even, 0, (size_t)pairs * sizeof *even);
    memset(odd, 0, (size_t)pairs * sizeof *odd);
    return 0;
  }
  const float *source = image->planes + (channel * image->high + row) * image->wide + column;
  memset(line, 0, (size_t)from * sizeof *line);
  memcpy(line + from, source + from, (size_t)(to - from) * sizeof *line);
  memset(line + to, 0, (size_t)(2 * pairs - to) * sizeof *line);
  RVM_SIMD(reduction(+ : too_large))
  for (int64_t i = 0; i < pairs; i++) {
    const float a = line[2 * i], b = line[2 * i + 1];
    even[i] = a;
    odd[i] = b;
    too_large += !(a < RVM_WINOGRAD_LARGEST && a > -RVM_WINOGRAD_LARGEST && b < RVM_WINOGRAD_LARGEST &&
                   b > -RVM_WINOGRAD_LARGEST);
  }
  return too_large;
}

/* v[p * step + c * columns + j] = element p of B' d B of tile first + j in channel c, for j < count, 0 for j < columns.
   Tiles are counted row-major, tiles_wide in a line.  *too_large: whether some element is. */
static __attribute__((noinline, unused)) void rvm_winograd_input(const float *planes, int64_t channels, int64_t high,
                                                                 int64_t wide, int64_t top, int64_t left,
                                                                 int64_t spread, int64_t tiles_wide, int64_t first,
                                                                 int64_t count, int64_t columns, float *v,
                                                                 int64_t *too_large) {
  const rvm_winograd_image image = {planes, channels, high, wide, top, left};
  const int64_t step = rvm_winograd_step(channels, columns);
  float even[4][RVM_WINOGRAD_PAIRS], odd[4][RVM_WINOGRAD_PAIRS];
  memset(even, 0, sizeof even);
  memset(odd, 0, sizeof odd);
  *too_large = 0;
  for (int64_t c = 0; c < channels; c++) {
    for (int64_t line = first / tiles_wide; line * tiles_wide < first + count; line++) {
      const int64_t low = line * tiles_wide > first ? line * tiles_wide - first : 0;
      const int64_t rest = (line + 1) * tiles_wide - first, stop = rest < count ? rest : count;
      const int64_t row = rvm_winograd_first_row(line, spread) - top,
                    column = 2 * (first + low - line * tiles_wide) - left;
      for (int r = 0; r < 4; r++)
        *too_large += rvm_winograd_row(&image, c, row + r * spread, column, stop - low + 1, even[r], odd[r]);
      float *restrict to = v + c * columns + low;
      /* Lanes behind the line's last tile are overwritten by what comes next. */
      for (int64_t j = 0; j < stop - low; j += RVM_WINOGRAD_LANES) {
        RVM_SIMD()
        for (int64_t l = j; l < j + RVM_WINOGRAD_LANES; l++) {
          float d[4][4], t[4][4];
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
            to[(4 * r + 0) * step + l] = t[r][0] - t[r][2];
            to[(4 * r + 1) * step + l] = t[r][1] + t[r][2];
            to[(4 * r + 2) * step + l] = t[r][2] - t[r][1];
            to[(4 * r + 3) * step + l] = t[r][1] - t[r][3];
          }
        }
      }
    }
    for (int p = 0; p < 16 && count < columns; p++)
      memset(v + p * step + c * columns + count, 0, (size_t)(columns - count) * sizeof *v);
  }
}

/* m[(p * rows + r) * columns + j] = the sum over c of
   u[(p * filters + r) * channels + c] * v[p * step + c * columns + j]; `rows` and `columns` are constants where this is
   inlined. */
static inline __attribute__((always_inline, unused)) void rvm_winograd_product(int rows, int columns, int64_t channels,
                                                                               int64_t filters, const float *u,
                                                                               const float *v, float *m) {
  const int64_t step = rvm_winograd_step(channels, columns);
  for (int p = 0; p < 16; p++)
    rvm_tile_f32(rows, columns, channels, u + p * filters * channels, channels, 1, v + p * step, columns,
                 m + p * rows * columns, columns, 0);
}

/* out[(r * 2 + a) * 2 * columns + 2 * j + b] = element (a, b) of A' m A of tile j, filter r. */
static __attribute__((noinline, unused)) void rvm_winograd_output(int64_t rows, int64_t columns,
                                                                  const float *restrict m, float *restrict out) {
  const int64_t step = rows * columns;
  for (int64_t r = 0; r < rows; r++) {
    float *restrict above = out + r * 4 * columns, *restrict below = above + 2 * columns;
    const float *restrict from = m + r * columns;
    RVM_SIMD()
    for (int64_t j = 0; j < columns; j++) {
      float t[2][4];
#pragma GCC unroll 4
      for (int s = 0; s < 4; s++) {
        const float *at = from + s * step + j;
        t[0][s] = at[0] + at[4 * step] + at[8 * step];
        t[1][s] = at[4 * step] - at[8 * step] - at[12 * step];
      }
      above[2 * j] = t[0][0] + t[0][1] + t[0][2];
      above[2 * j + 1] = t[0][1] - t[0][2] - t[0][3];
      below[2 * j] = t[1][0] + t[1][1] + t[1][2];
      below[2 * j + 1] = t[1][1] - t[1][2] - t[1][3];
    }
  }
}

/* The same as rvm_winograd_input, _product and _output, as it is defined: G g G' has g in it. */
static __attribute__((noinline, unused)) void rvm_winograd_plain(const float *planes, int64_t channels, int64_t high,
                                                                 int64_t wide, int64_t top, int64_t left,
                                                                 int64_t spread, int64_t tiles_wide, int64_t first,
                                                                 int64_t count, int64_t columns, int64_t rows,
                                                                 int64_t filters, const float *u, float *out) {
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t j = 0; j < 2 * count; j++)
      for (int a = 0; a < 2; a++) {
        const int64_t tile = first + j / 2;
        const int64_t y = rvm_winograd_first_row(tile / tiles_wide, spread) + a * spread - top;
        const int64_t x = tile % tiles_wide * 2 + j % 2 - left;
        float sum = 0;
        for (int64_t c = 0; c < channels; c++) {
          float part[4][3], g[3][3]; /* G g without and with G' undone */
          for (int p = 0; p < 4; p++) {
            const float *row = u + (4 * p * filters + r) * channels + c;
            part[p][0] = row[0];
            part[p][1] = row[filters * channels] - row[2 * filters * channels];
            part[p][2] = row[3 * filters * channels];
          }
          for (int s = 0; s < 3; s++) {
            g[0][s] = part[0][s];
            g[1][s] = part[1][s] - part[2][s];
            g[2][s] = part[3][s];
          }
          for (int64_t n = 0; n < 9; n++) {
            const int64_t row = y + n / 3 * spread, column = x + n % 3;
            if (row >= 0 && row < high && column >= 0 && column < wide)
              sum += g[n / 3][n % 3] * planes[(c * high + row) * wide + column];
          }
        }
        out[(r * 2 + a) * 2 * columns + j] = sum;
      }
  }
}

#endif
