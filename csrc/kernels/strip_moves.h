/* strip_moves.h: how strips of elements of 1, 2, 4 or 8 bytes are read, written and chosen. */
#ifndef RELVM_STRIP_MOVES_H
#define RELVM_STRIP_MOVES_H

#include <stdint.h>

/* For one size of an element.  Those that give an int give 0 where an index is outside of [0, limit). */
typedef struct rvm_strip_moves {
  /* out[i] = from[index[i]]; 0 where mask[i] is 0, if there is a mask */
  int (*gather)(int64_t n, void *out, const void *from, int64_t limit, const int64_t *index, const uint8_t *mask);
  /* to[index[i]] = value[i * step] */
  int (*scatter)(int64_t n, void *to, int64_t limit, const int64_t *index, const void *value, int64_t step);
  /* out[i] = from[i * step] */
  void (*strided)(int64_t n, void *out, const void *from, int64_t step);
  /* out[i] = mask[i] ? base[position + i * step] : 0 */
  int (*masked)(int64_t n, void *out, const void *base, int64_t limit, int64_t position, int64_t step,
                const uint8_t *mask);
  /* to[i * step] = value[i * value_step] */
  void (*spread)(int64_t n, void *to, int64_t step, const void *value, int64_t value_step);
  /* out[i] = cond[i] ? a[i] : b[i], each with a step of 1, or of 0 for the same element everywhere */
  void (*choose)(int64_t n, void *out, const uint8_t *cond, int64_t cond_step, const void *a, int64_t a_step,
                 const void *b, int64_t b_step);
  /* out[i] = *value */
  void (*splat)(int64_t n, void *out, const void *value);
} rvm_strip_moves;

extern const rvm_strip_moves rvm_strip_moves_by_size[4]; /* of 1, 2, 4 and 8 bytes */

#endif
