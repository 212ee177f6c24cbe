/* sorting.h: the micro-kernels that sort and select numbers in place (relvm/ops/sort_topk.py).

   All accesses are valid for any numbers.  The time is at most proportional to n * log(n) for n numbers. */
#ifndef RELVM_SORTING_H
#define RELVM_SORTING_H

#include <stdint.h>

#include "compiler.h"
#include "micro_kernel_arguments.h"

enum {
  RVM_SORT_LEAF = 24,   /* maximum length of a range that is sorted by insertion */
  RVM_SORT_RANGES = 64, /* maximum number of ranges that are not sorted yet (rvm_sort_step) */
  RVM_KEEP_BLOCK = 16,  /* numbers that are compared with the root of a heap together */
};

/* Part of an array that is being sorted.  levels: how many times it may still be divided. */
typedef struct rvm_sort_range {
  int64_t first, count, levels;
} rvm_sort_range;

/* The ranges that are not sorted yet, as a stack.  No two overlap, and sorting each sorts the array. */
typedef struct rvm_sort_ranges {
  rvm_sort_range items[RVM_SORT_RANGES];
  int count;
} rvm_sort_ranges;

static inline void rvm_swap_i64(int64_t *values, int64_t i, int64_t j) {
  const int64_t saved = values[i];
  values[i] = values[j];
  values[j] = saved;
}

/* Moves the number at `node` of a heap of `count` numbers down until no child is larger. */
static inline void rvm_sift_down_i64(int64_t *heap, int64_t node, int64_t count) {
  const int64_t moved = heap[node];
  for (int64_t child = 2 * node + 1; child < count; child = 2 * node + 1) {
    if (child + 1 < count) child += heap[child + 1] > heap[child];
    if (heap[child] <= moved) break;
    heap[node] = heap[child];
    node = child;
  }
  heap[node] = moved;
}

/* Orders `count` numbers as a heap: no number is larger than its parent, and the largest is at the root. */
static inline void rvm_make_heap_i64(int64_t *heap, int64_t count) {
  for (int64_t node = count / 2 - 1; node >= 0; node--) rvm_sift_down_i64(heap, node, count);
}

static inline void rvm_heapsort_i64(int64_t *values, int64_t count) {
  rvm_make_heap_i64(values, count);
  for (int64_t last = count - 1; last > 0; last--) {
    rvm_swap_i64(values, 0, last);
    rvm_sift_down_i64(values, 0, last);
  }
}

static inline void rvm_insertion_sort_i64(int64_t *values, int64_t count) {
  for (int64_t i = 1; i < count; i++) {
    const int64_t moved = values[i];
    int64_t j = i;
    for (; j > 0 && values[j - 1] > moved; j--) values[j] = values[j - 1];
    values[j] = moved;
  }
}

/* Returns whether a <= b <= c or c <= b <= a. */
static inline int rvm_is_between_i64(int64_t a, int64_t b, int64_t c) {
  return (a <= b && b <= c) || (c <= b && b <= a);
}

/* Divides at least 3 numbers, and returns the index p of one that is in its final place: the numbers before p are less
   than values[p], and those after p are not. */
static inline int64_t rvm_partition_i64(int64_t *values, int64_t count) {
  const int64_t last = count - 1, middle = count / 2;
  int64_t median = middle, p = 0;
  if (rvm_is_between_i64(values[middle], values[0], values[last])) median = 0;
  if (rvm_is_between_i64(values[0], values[last], values[middle])) median = last;
  rvm_swap_i64(values, median, last);
  const int64_t pivot = values[last];
  for (int64_t i = 0; i < last; i++) { /* without a branch that depends on the numbers */
    const int64_t value = values[i];
    values[i] = values[p];
    values[p] = value;
    p += value < pivot;
  }
  rvm_swap_i64(values, p, last);
  return p;
}

/* Makes `count` numbers the only range. */
static inline void rvm_begin_sort(rvm_sort_ranges *ranges, int64_t count) {
  int64_t levels = 0;
  for (int64_t size = count; size > 1; size /= 2) levels += 2;
  ranges->items[0] = (rvm_sort_range){0, count, levels};
  ranges->count = 1;
}

/* Removes the last range: sorts it, or divides it into two ranges. */
static inline void rvm_sort_step(int64_t *values, rvm_sort_ranges *ranges) {
  const rvm_sort_range range = ranges->items[--ranges->count];
  int64_t *const part = values + range.first;
  if (range.count <= RVM_SORT_LEAF) {
    rvm_insertion_sort_i64(part, range.count);
    return;
  }
  if (range.levels == 0) { /* the divisions were very uneven */
    rvm_heapsort_i64(part, range.count);
    return;
  }
  const int64_t p = rvm_partition_i64(part, range.count), after = range.count - p - 1;
  const rvm_sort_range low = {range.first, p, range.levels - 1};
  const rvm_sort_range high = {range.first + p + 1, after, range.levels - 1};
  /* The smaller half, which is less than half of the range, is on top and is sorted first.  So at most one range waits
     for each time that a range can be halved. */
  ranges->items[ranges->count++] = p < after ? high : low;
  ranges->items[ranges->count++] = p < after ? low : high;
}

static inline void rvm_sort_all(const rvm_sort_i64_arguments *args) {
  rvm_sort_ranges ranges;
  rvm_begin_sort(&ranges, args->count);
  while (ranges.count) rvm_sort_step(args->values, &ranges);
}

/* rvm_sort_i64(args) sorts values[0] to values[count - 1] in ascending order. */
RVM_OUT_OF_LINE(void rvm_sort_i64(const rvm_sort_i64_arguments *args), rvm_sort_all(args);)

/* Replaces the root of a heap by each of `count` values that is less than the root. */
static inline RVM_ALWAYS_INLINE void rvm_replace_roots_i64(int64_t *heap, int64_t size, const int64_t *values,
                                                           int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    if (values[i] >= heap[0]) continue;
    heap[0] = values[i];
    rvm_sift_down_i64(heap, 0, size);
  }
}

static inline void rvm_keep_least(const rvm_keep_least_i64_arguments *args) {
  const int64_t *const values = args->values;
  if (!args->is_heap) rvm_make_heap_i64(args->kept, args->most);
  if (args->most == 0) return;
  int64_t i = 0;
  for (; i + RVM_KEEP_BLOCK <= args->count; i += RVM_KEEP_BLOCK) {
    const int64_t root = args->kept[0];
    int has_less = 0;
    RVM_SIMD(reduction(| : has_less))
    for (int j = 0; j < RVM_KEEP_BLOCK; j++) has_less |= values[i + j] < root;
    if (has_less) rvm_replace_roots_i64(args->kept, args->most, values + i, RVM_KEEP_BLOCK);
  }
  rvm_replace_roots_i64(args->kept, args->most, values + i, args->count - i);
}

/* rvm_keep_least_i64(args) stores in `kept` the least `most` numbers of `kept` and `values` together, as a heap with
   the largest of them at the root.  `kept` contains `most` numbers before and after, which do not overlap `values`.
   is_heap: whether they are a heap before. */
RVM_OUT_OF_LINE(void rvm_keep_least_i64(const rvm_keep_least_i64_arguments *args), rvm_keep_least(args);)

#endif
