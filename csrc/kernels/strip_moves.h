/* strip_moves.h: gathers, scatters, strided copies and selections of strips of elements of 1, 2, 4 or 8 bytes. */
#ifndef RELVM_STRIP_MOVES_H
#define RELVM_STRIP_MOVES_H

#include <stdint.h>

/* The moves of elements of one size.  Functions that return int return 1, or 0 if the index of an element that they
   would access is outside [0, limit). */
typedef struct rvm_strip_moves {
  /* dst[i] = src[index[i]], or 0 if mask[i] is 0; mask may be NULL */
  int (*gather)(int64_t n, void *dst, const void *src, int64_t limit, const int64_t *index, const uint8_t *mask);
  /* dst[index[i]] = value[i * step] */
  int (*scatter)(int64_t n, void *dst, int64_t limit, const int64_t *index, const void *value, int64_t step);
  /* dst[i] = src[i * step] */
  void (*strided)(int64_t n, void *dst, const void *src, int64_t step);
  /* dst[i] = mask[i] ? base[position + i * step] : 0 */
  int (*masked)(int64_t n, void *dst, const void *base, int64_t limit, int64_t position, int64_t step,
                const uint8_t *mask);
  /* dst[i * step] = value[i * value_step] */
  void (*spread)(int64_t n, void *dst, int64_t step, const void *value, int64_t value_step);
  /* dst[i] = cond[i * cond_step] ? a[i * a_step] : b[i * b_step]; each step is 0 or 1 */
  void (*choose)(int64_t n, void *dst, const uint8_t *cond, int64_t cond_step, const void *a, int64_t a_step,
                 const void *b, int64_t b_step);
  /* dst[i] = *value */
  void (*splat)(int64_t n, void *dst, const void *value);
} rvm_strip_moves;

extern const rvm_strip_moves rvm_strip_moves_by_size[4]; /* for elements of 1, 2, 4 and 8 bytes */

#endif
