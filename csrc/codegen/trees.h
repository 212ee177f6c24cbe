/* trees.h: the micro-kernels of decision trees (relvm/ops/decision_trees.py).

   A node is a record of a threshold and a word, which has as many bits as the threshold and follows it.  The word
   contains an offset in its lowest bits, and the index of a column in the other bits.  If the element of a row in this
   column is at most the threshold, the next node is `offset - 1` nodes ahead, otherwise `offset` nodes ahead: the
   children of a node are adjacent.  A leaf has the offset 0 and the last column, which is NaN in every row, so a row
   that has reached a leaf stays there.  The threshold of a leaf is its value or, if a row has several totals, the index
   of the leaf in a table of values.

   The steps of RVM_TREE_LANES pairs of a row and a tree are interleaved, because a step takes many times longer than it
   occupies the processor.  The pairs are rows of one tree, or trees of one row.  Each index that is read from a table
   is clamped to the range of its table.  All accesses are therefore valid for any contents of the tables, even if these
   change meanwhile. */
#ifndef RELVM_TREES_H
#define RELVM_TREES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined __AVX512F__ && defined __GNUC__ && !defined RVM_SCALAR
#include <immintrin.h>
#define RVM_TREE_VECTORS
#endif

#include "compiler.h"
#include "micro_kernel_arguments.h"

enum {
#ifdef RVM_COMPACT
  RVM_TREE_LANES = 4,
#else
  RVM_TREE_LANES = 16,
#endif
  RVM_TREE_STRIDE = 4, /* steps between two checks whether all lanes have reached a leaf */
};
/* The argument `aggregate` */
enum { RVM_TREE_SUM, RVM_TREE_MIN, RVM_TREE_MAX };

#ifdef RVM_TREE_VECTORS
/* The first 32 records of a tree, which contain its first five levels, in registers. */
typedef struct rvm_tree_top {
  __m512i thresholds[2], words[2], root;
} rvm_tree_top;

/* Reads the first records of a tree.  left: the number of records from the root to the end of the table. */
static inline RVM_ALWAYS_INLINE rvm_tree_top rvm_tree_read_top(const uint64_t *nodes, uint32_t root, uint32_t left) {
  /* Thresholds have even positions in vectors of 32 bits, and words have odd ones. */
  const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  const uint32_t exists = left < 32 ? ((uint32_t)1 << left) - 1 : UINT32_MAX;
  rvm_tree_top top = {.root = _mm512_set1_epi32((int)root)};
  for (int half = 0; half < 2; half++) {
    const __m512i low = _mm512_maskz_loadu_epi64((__mmask8)(exists >> (16 * half)), nodes + root + 16 * half);
    const __m512i high = _mm512_maskz_loadu_epi64((__mmask8)(exists >> (16 * half + 8)), nodes + root + 16 * half + 8);
    top.thresholds[half] = _mm512_permutex2var_epi32(low, even, high);
    top.words[half] = _mm512_permutex2var_epi32(low, odd, high);
  }
  return top;
}

/* Reads the thresholds and words of the nodes `at`.  If all lanes are in one tree, `top` has its first records,
   otherwise `top` is NULL. */
static inline RVM_ALWAYS_INLINE void rvm_tree_read_nodes(const rvm_tree_top *top, const uint64_t *nodes, __m512i at,
                                                         __m512 *threshold, __m512i *word) {
  const __m512i place = top ? _mm512_sub_epi32(at, top->root) : at;
  if (top && _mm512_cmpgt_epu32_mask(place, _mm512_set1_epi32(31)) == 0) {
    *threshold = _mm512_castsi512_ps(_mm512_permutex2var_epi32(top->thresholds[0], place, top->thresholds[1]));
    *word = _mm512_permutex2var_epi32(top->words[0], place, top->words[1]);
    return;
  }
  const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  const __m512i low = _mm512_i32gather_epi64(_mm512_castsi512_si256(at), nodes, 8);
  const __m512i high = _mm512_i32gather_epi64(_mm512_extracti64x4_epi64(at, 1), nodes, 8);
  *threshold = _mm512_castsi512_ps(_mm512_permutex2var_epi32(low, even, high));
  *word = _mm512_permutex2var_epi32(low, odd, high);
}

/* Moves each lane of `groups` vectors down its tree, by at most `steps` nodes.  The row of a lane begins at x + lane *
   stride.  `groups` must be a constant where this function is inlined. */
static inline RVM_ALWAYS_INLINE void rvm_tree_vector_walk(const rvm_trees_f32_arguments *args, const rvm_tree_top *top,
                                                          const float *x, int stride, int64_t steps, int groups,
                                                          __m512i *at) {
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i begins = _mm512_mullo_epi32(lanes, _mm512_set1_epi32(stride));
  const __m512i last = _mm512_set1_epi32((int)args->node_count - 1), one = _mm512_set1_epi32(1);
  const __m512i last_column = _mm512_set1_epi32((int)args->columns);
  const __m512i mask = _mm512_set1_epi32((int)(((uint32_t)1 << args->offset_bits) - 1));
  const __m128i bits = _mm_cvtsi32_si128((int)args->offset_bits);
  for (__mmask16 moved = 1; steps > 0 && moved; steps--) {
    moved = 0;
#pragma GCC unroll 4
    for (int g = 0; g < groups; g++) {
      __m512 threshold;
      __m512i word;
      rvm_tree_read_nodes(top, args->nodes, at[g], &threshold, &word);
      const __m512i column = _mm512_min_epu32(_mm512_srl_epi32(word, bits), last_column);
      const __m512i offset = _mm512_and_si512(word, mask);
      const float *rows = x + g * RVM_TREE_LANES * (int64_t)stride;
      const __m512 value = _mm512_i32gather_ps(_mm512_add_epi32(begins, column), rows, 4);
      const __mmask16 is_first =
          _mm512_cmp_ps_mask(value, threshold, _CMP_LE_OQ); /* lanes that go to the first child */
      const __m512i next = _mm512_add_epi32(at[g], offset);
      at[g] = _mm512_min_epu32(_mm512_mask_sub_epi32(next, is_first, next, one), last);
      moved |= _mm512_test_epi32_mask(offset, offset);
    }
  }
}

static inline void rvm_tree_leaf_f32(const rvm_trees_f32_arguments *args, uint32_t at, float *totals);

/* Evaluates a tree for `groups` groups of rows from `first` on. */
static inline RVM_ALWAYS_INLINE void rvm_tree_vector_rows(const rvm_trees_f32_arguments *args, const rvm_tree_top *top,
                                                          int64_t steps, int64_t first, int groups) {
  const int stride = (int)args->columns + 1;
  __m512i at[4];
  for (int g = 0; g < groups; g++) at[g] = top->root;
  rvm_tree_vector_walk(args, top, args->x + first * stride, stride, steps, groups, at);
#pragma GCC unroll 4
  for (int g = 0; g < groups; g++) {
    float *totals = args->totals + (first + g * RVM_TREE_LANES) * args->targets;
    if (args->targets != 1) {
      uint32_t leaves[RVM_TREE_LANES];
      _mm512_storeu_si512(leaves, at[g]);
      for (int lane = 0; lane < RVM_TREE_LANES; lane++)
        rvm_tree_leaf_f32(args, leaves[lane], totals + lane * args->targets);
      continue;
    }
    const __m512 total = _mm512_loadu_ps(totals);
    __m512 value;
    __m512i word;
    rvm_tree_read_nodes(top, args->nodes, at[g], &value, &word);
    if (args->aggregate == RVM_TREE_SUM)
      value = _mm512_add_ps(total, value);
    else /* like rvm_tree_aggregate_f32 (trees_of_dtype.def), min_ps and max_ps return the second operand for NaN */
      value = args->aggregate == RVM_TREE_MIN ? _mm512_min_ps(value, total) : _mm512_max_ps(value, total);
    _mm512_storeu_ps(totals, value);
  }
}

/* Evaluates `groups` groups of trees from `first` on for a row.  The last group may have fewer trees. */
static inline RVM_ALWAYS_INLINE void rvm_tree_vector_trees(const rvm_trees_f32_arguments *args, int64_t row,
                                                           int64_t first, int groups) {
  const __m512i last = _mm512_set1_epi32((int)args->node_count - 1);
  __m512i at[4], depths = _mm512_setzero_si512();
  int64_t counts[4];
  for (int g = 0; g < groups; g++) {
    const int64_t tree = first + g * RVM_TREE_LANES, left = args->trees - tree;
    counts[g] = left < 0 ? 0 : left < RVM_TREE_LANES ? left : RVM_TREE_LANES;
    const __mmask16 exists = (__mmask16)((1u << counts[g]) - 1);
    at[g] = _mm512_min_epu32(_mm512_maskz_loadu_epi32(exists, args->roots + tree), last);
    depths = _mm512_max_epi32(depths, _mm512_maskz_loadu_epi32(exists, args->depths + tree));
  }
  const int64_t depth = _mm512_reduce_max_epi32(depths), steps = depth < args->steps ? depth : args->steps;
  rvm_tree_vector_walk(args, NULL, args->x + row * (args->columns + 1), 0, steps, groups, at);
  for (int g = 0; g < groups; g++) {
    uint32_t leaves[RVM_TREE_LANES];
    _mm512_storeu_si512(leaves, at[g]);
    for (int lane = 0; lane < counts[g]; lane++)
      rvm_tree_leaf_f32(args, leaves[lane], args->totals + row * args->targets);
  }
}

/* Evaluates all trees for all rows: one tree at a time for the whole groups of rows, and then groups of trees for each
   of the remaining rows. */
static RVM_NOINLINE void rvm_tree_vectors(const rvm_trees_f32_arguments *args) {
  const int64_t rows = args->rows, trees = args->trees, whole = rows / RVM_TREE_LANES * RVM_TREE_LANES;
  const uint32_t last = (uint32_t)args->node_count - 1;
  for (int64_t t = 0; whole > 0 && t < trees; t++) {
    const uint32_t first = (uint32_t)args->roots[t], root = first < last ? first : last;
    const int64_t steps = args->depths[t] < args->steps ? args->depths[t] : args->steps;
    const rvm_tree_top top = rvm_tree_read_top(args->nodes, root, last + 1 - root);
    int64_t row = 0;
    for (; row + 4 * RVM_TREE_LANES <= whole; row += 4 * RVM_TREE_LANES)
      rvm_tree_vector_rows(args, &top, steps, row, 4);
    for (; row < whole; row += RVM_TREE_LANES) rvm_tree_vector_rows(args, &top, steps, row, 1);
  }
  for (int64_t t = 0, count; whole < rows && t < trees; t += count) {
    /* Four vectors, unless at least two of them would have no tree. */
    count = trees - t > 2 * RVM_TREE_LANES ? 4 * RVM_TREE_LANES : RVM_TREE_LANES;
    for (int64_t row = whole; row < rows; row++)
      if (count > RVM_TREE_LANES)
        rvm_tree_vector_trees(args, row, t, 4);
      else
        rvm_tree_vector_trees(args, row, t, 1);
  }
}
#endif

#define RVM_TREE_TYPE float
#define RVM_TREE_IS_F32 1
#define RVM_TREE_WORD uint32_t
#define RVM_TREE_NAME(name) rvm_##name##_f32
#define RVM_TREE_ARGUMENTS(name) rvm_##name##_f32_arguments
#include "trees_of_dtype.def"

#define RVM_TREE_TYPE double
#define RVM_TREE_IS_F32 0
#define RVM_TREE_WORD uint64_t
#define RVM_TREE_NAME(name) rvm_##name##_f64
#define RVM_TREE_ARGUMENTS(name) rvm_##name##_f64_arguments
#include "trees_of_dtype.def"

#endif
