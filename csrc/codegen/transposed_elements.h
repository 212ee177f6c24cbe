/* transposed_elements.h: transposition of tiles of elements of 1, 2 or 8 bytes.  gemm_f32.h has it for 4 bytes. */
#ifndef RELVM_TRANSPOSED_ELEMENTS_H
#define RELVM_TRANSPOSED_ELEMENTS_H

#include <stdint.h>

#include "compiler.h"
#include "kernel_constants.h"
#include "micro_kernel_arguments.h"

/* The functions below transpose a square whose rows fill a vector of 16 bytes: dst[r * 16 + c] = src[c * stride + r].
   Interleaving row i with row i + edge / 2, for each i, exchanges one bit of the row number with one bit of the column
   number.  After log2(edge) rounds, all bits are exchanged. */
#ifdef RVM_SHUFFLES
#define RVM_LOW_2 0, 2
#define RVM_HIGH_2 1, 3
#define RVM_LOW_8 0, 8, 1, 9, 2, 10, 3, 11
#define RVM_HIGH_8 4, 12, 5, 13, 6, 14, 7, 15
#define RVM_LOW_16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define RVM_HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define RVM_TRANSPOSED_SQUARE(edge, type)                                                                  \
  static inline RVM_UNUSED void rvm_transposed_square_##edge(type *dst, const type *src, int64_t stride) { \
    typedef type row __attribute__((vector_size(16), aligned(sizeof(type)), may_alias));                   \
    row rows[edge], mixed[edge];                                                                           \
    _Pragma("GCC unroll 16") for (int i = 0; i < edge; i++) rows[i] = *(const row *)(src + i * stride);    \
    _Pragma("GCC unroll 4") for (int step = 1; step < edge; step *= 2) {                                   \
      _Pragma("GCC unroll 8") for (int i = 0; i < edge / 2; i++) {                                         \
        mixed[2 * i] = __builtin_shufflevector(rows[i], rows[i + edge / 2], RVM_LOW_##edge);               \
        mixed[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + edge / 2], RVM_HIGH_##edge);          \
      }                                                                                                    \
      _Pragma("GCC unroll 16") for (int i = 0; i < edge; i++) rows[i] = mixed[i];                          \
    }                                                                                                      \
    _Pragma("GCC unroll 16") for (int i = 0; i < edge; i++) {                                              \
      row *to = (row *)(dst + i * RVM_TRANSPOSED_TILE);                                                    \
      *to = rows[i];                                                                                       \
    }                                                                                                      \
  }
#else
#define RVM_TRANSPOSED_SQUARE(edge, type)                                                                  \
  static inline RVM_UNUSED void rvm_transposed_square_##edge(type *dst, const type *src, int64_t stride) { \
    for (int r = 0; r < edge; r++)                                                                         \
      for (int c = 0; c < edge; c++) dst[r * RVM_TRANSPOSED_TILE + c] = src[c * stride + r];               \
  }
#endif

/* Transposes a tile square by square: tile[r * 16 + c] = x[c * stride + r]. */
#define RVM_TRANSPOSED_SQUARES(edge, type)                                                                 \
  RVM_TRANSPOSED_SQUARE(edge, type)                                                                        \
  static inline RVM_UNUSED void rvm_transposed_squares_##edge(type *tile, const type *x, int64_t stride) { \
    for (int c = 0; c < RVM_TRANSPOSED_TILE; c += edge)                                                    \
      for (int r = 0; r < RVM_TRANSPOSED_TILE; r += edge)                                                  \
        rvm_transposed_square_##edge(tile + r * RVM_TRANSPOSED_TILE + c, x + c * stride + r, stride);      \
  }
RVM_TRANSPOSED_SQUARES(16, uint8_t)
RVM_TRANSPOSED_SQUARES(8, uint16_t)
RVM_TRANSPOSED_SQUARES(2, uint64_t)

/* Transposes 16 x 16 elements of `element_bytes` bytes, which is 1, 2 or 8: tile[r * 16 + c] = x[c * x_stride + r]. */
static inline RVM_UNUSED void rvm_transposed_elements(const rvm_transposed_elements_arguments *args) {
  if (args->element_bytes == 1)
    rvm_transposed_squares_16(args->tile, args->x, args->x_stride);
  else if (args->element_bytes == 2)
    rvm_transposed_squares_8(args->tile, args->x, args->x_stride);
  else
    rvm_transposed_squares_2(args->tile, args->x, args->x_stride);
}

#endif
