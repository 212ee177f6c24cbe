/* strip_moves.c: see strip_moves.h.  Compiled for several levels of processors (kernel_levels.c). */
#include "strip_moves.h"

#include "kernel_loops.h"
#include "selected.h"

/* Defines the functions of an rvm_strip_moves for elements of type T. */
#define MOVES(T)                                                                                                 \
  static int gather_##T(int64_t n, void *dst_, const void *src_, int64_t limit, const int64_t *index,            \
                        const uint8_t *mask) {                                                                   \
    T *dst = dst_;                                                                                               \
    const T *src = src_;                                                                                         \
    int is_inside = 1;                                                                                           \
    for (int64_t i = 0; i < n; i++) {                                                                            \
      const int reads = !mask || mask[i], inside = (uint64_t)index[i] < (uint64_t)limit;                         \
      is_inside &= inside | !reads;                                                                              \
      dst[i] = reads && inside ? src[index[i]] : 0;                                                              \
    }                                                                                                            \
    return is_inside;                                                                                            \
  }                                                                                                              \
  static int scatter_##T(int64_t n, void *dst_, int64_t limit, const int64_t *index, const void *value_,         \
                         int64_t step) {                                                                         \
    T *dst = dst_;                                                                                               \
    const T *value = value_;                                                                                     \
    for (int64_t i = 0; i < n; i++) {                                                                            \
      if ((uint64_t)index[i] >= (uint64_t)limit) return 0;                                                       \
      dst[index[i]] = value[i * step];                                                                           \
    }                                                                                                            \
    return 1;                                                                                                    \
  }                                                                                                              \
  static void strided_##T(int64_t n, void *dst_, const void *src_, int64_t step) {                               \
    T *dst = dst_;                                                                                               \
    const T *src = src_;                                                                                         \
    if (step == 0) {                                                                                             \
      RVM_INDEPENDENT                                                                                            \
      for (int64_t i = 0; i < n; i++) dst[i] = *src;                                                             \
      return;                                                                                                    \
    }                                                                                                            \
    if (step == 2) {                                                                                             \
      RVM_INDEPENDENT                                                                                            \
      for (int64_t i = 0; i < n; i++) dst[i] = src[i * 2];                                                       \
      return;                                                                                                    \
    }                                                                                                            \
    RVM_INDEPENDENT                                                                                              \
    for (int64_t i = 0; i < n; i++) dst[i] = src[i * step];                                                      \
  }                                                                                                              \
  static int masked_##T(int64_t n, void *dst_, const void *base_, int64_t limit, int64_t position, int64_t step, \
                        const uint8_t *mask) {                                                                   \
    T *dst = dst_;                                                                                               \
    const T *base = base_;                                                                                       \
    for (int64_t i = 0; i < n; i++) {                                                                            \
      const uint64_t index = (uint64_t)position + (uint64_t)i * (uint64_t)step;                                  \
      dst[i] = 0;                                                                                                \
      if (!mask[i]) continue;                                                                                    \
      if (index >= (uint64_t)limit) return 0;                                                                    \
      dst[i] = base[index];                                                                                      \
    }                                                                                                            \
    return 1;                                                                                                    \
  }                                                                                                              \
  static void spread_##T(int64_t n, void *dst_, int64_t step, const void *value_, int64_t value_step) {          \
    T *dst = dst_;                                                                                               \
    const T *value = value_;                                                                                     \
    if (step == 1 && value_step == 0) {                                                                          \
      const T all = *value;                                                                                      \
      for (int64_t i = 0; i < n; i++) dst[i] = all;                                                              \
      return;                                                                                                    \
    }                                                                                                            \
    for (int64_t i = 0; i < n; i++) dst[i * step] = value[i * value_step];                                       \
  }                                                                                                              \
  static void choose_##T(int64_t n, void *dst_, const uint8_t *cond, int64_t cond_step, const void *a_,          \
                         int64_t a_step, const void *b_, int64_t b_step) {                                       \
    T *dst = dst_;                                                                                               \
    const T *a = a_, *b = b_;                                                                                    \
    if (cond_step && a_step && b_step) {                                                                         \
      RVM_INDEPENDENT                                                                                            \
      for (int64_t i = 0; i < n; i++) {                                                                          \
        const T x = a[i], y = b[i];                                                                              \
        dst[i] = cond[i] ? x : y;                                                                                \
      }                                                                                                          \
    } else if (cond_step && a_step) {                                                                            \
      const T y = *b;                                                                                            \
      RVM_INDEPENDENT                                                                                            \
      for (int64_t i = 0; i < n; i++) {                                                                          \
        const T x = a[i];                                                                                        \
        dst[i] = cond[i] ? x : y;                                                                                \
      }                                                                                                          \
    } else if (cond_step && b_step) {                                                                            \
      const T x = *a;                                                                                            \
      RVM_INDEPENDENT                                                                                            \
      for (int64_t i = 0; i < n; i++) {                                                                          \
        const T y = b[i];                                                                                        \
        dst[i] = cond[i] ? x : y;                                                                                \
      }                                                                                                          \
    } else if (cond_step) {                                                                                      \
      const T x = *a, y = *b;                                                                                    \
      RVM_INDEPENDENT                                                                                            \
      for (int64_t i = 0; i < n; i++) dst[i] = cond[i] ? x : y;                                                  \
    } else {                                                                                                     \
      const T *src = *cond ? a : b;                                                                              \
      const int64_t step = *cond ? a_step : b_step;                                                              \
      for (int64_t i = 0; i < n; i++) dst[i] = src[i * step];                                                    \
    }                                                                                                            \
  }                                                                                                              \
  static void splat_##T(int64_t n, void *dst_, const void *value) {                                              \
    T *dst = dst_;                                                                                               \
    const T all = *(const T *)value;                                                                             \
    for (int64_t i = 0; i < n; i++) dst[i] = all;                                                                \
  }
MOVES(uint8_t)
MOVES(uint16_t)
MOVES(uint32_t)
MOVES(uint64_t)

/* The moves of elements of `size` bytes, of type T. */
#define ROW(T, size)                                                              \
  {RVM_IF_USED(op_gather_##size, gather_##T),                                     \
   RVM_IF_USED(op_scatter_##size, scatter_##T),                                   \
   RVM_IF_EITHER_USED(op_strided_##size, op_load_rows_##size, strided_##T),       \
   RVM_IF_USED(op_strided_##size, masked_##T),                                    \
   RVM_IF_EITHER_USED(op_store_strided_##size, op_store_rows_##size, spread_##T), \
   RVM_IF_USED(op_choose_##size, choose_##T),                                     \
   RVM_IF_EITHER_USED(op_move_##size, op_fill_##size, splat_##T)}
extern const rvm_strip_moves RVM_OF_LEVEL(rvm_strip_moves_by_size)[4];
const rvm_strip_moves RVM_OF_LEVEL(rvm_strip_moves_by_size)[4] = {ROW(uint8_t, 1), ROW(uint16_t, 2), ROW(uint32_t, 4),
                                                                  ROW(uint64_t, 8)};
