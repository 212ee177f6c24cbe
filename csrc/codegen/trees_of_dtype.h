/* trees_of_dtype.h: the functions of trees.h for one dtype.  RVM_TREE_TYPE is the type of the elements, RVM_TREE_IS_F32
   states whether it is float, RVM_TREE_WORD is
   an unsigned integer of the same size, RVM_TREE_NAME(name) adds a suffix to the name of a function, and
   RVM_TREE_ARGUMENTS(name) is the type of its arguments. */

typedef struct RVM_TREE_NAME(tree_node) {
  RVM_TREE_TYPE threshold;
  RVM_TREE_WORD word;
} RVM_MAY_ALIAS RVM_TREE_NAME(tree_node);

/* Copies columns of x to a block for rvm_trees.  Column j of the block is column columns[j] of x.  If columns[j] is
   negative, it is column -1 - columns[j], with -infinity in place of NaN.  The last column is NaN. */
static RVM_NOINLINE void RVM_TREE_NAME(tree_columns)(const RVM_TREE_ARGUMENTS(tree_columns) * args) {
  const int64_t count = args->count, features = args->features;
  for (int64_t r = 0; r < args->rows; r++) {
    const RVM_TREE_TYPE *x = args->x + r * features;
    RVM_TREE_TYPE *block = args->block + r * (count + 1);
    for (int64_t j = 0; j < count; j++) {
      const int64_t number = args->columns[j], column = number < 0 ? -1 - number : number;
      const RVM_TREE_TYPE value = x[column < features ? column : features - 1];
      block[j] = number < 0 && value != value ? -(RVM_TREE_TYPE)INFINITY : value;
    }
    block[count] = (RVM_TREE_TYPE)NAN;
  }
}

/* Moves each lane from the node at[lane] down its tree, by at most `steps` nodes.  The row of a lane begins at
   x + lane * stride. */
static inline RVM_ALWAYS_INLINE void RVM_TREE_NAME(tree_walk)(const RVM_TREE_ARGUMENTS(trees) * args,
                                                              const RVM_TREE_TYPE *x, int64_t stride, int64_t steps,
                                                              uint32_t *at) {
  const RVM_TREE_NAME(tree_node) *nodes = args->nodes;
  const uint32_t bits = (uint32_t)args->offset_bits, last = (uint32_t)args->node_count - 1;
  const RVM_TREE_WORD mask = ((RVM_TREE_WORD)1 << bits) - 1, last_column = (RVM_TREE_WORD)args->columns;
  for (uint32_t moved = 1; steps > 0 && moved; steps -= RVM_TREE_STRIDE)
    for (int64_t step = 0; step < RVM_TREE_STRIDE && step < steps; step++) {
      moved = 0;
#pragma GCC unroll 16
      for (int lane = 0; lane < RVM_TREE_LANES; lane++) {
        const RVM_TREE_NAME(tree_node) *node = nodes + at[lane];
        const RVM_TREE_WORD word = node->word, column = word >> bits;
        const uint32_t offset = (uint32_t)(word & mask);
        const RVM_TREE_TYPE value = x[lane * stride + (int64_t)(column < last_column ? column : last_column)];
        const uint32_t next = at[lane] + offset - (value <= node->threshold);
        at[lane] = next < last ? next : last;
        moved |= offset;
      }
    }
}

static inline RVM_ALWAYS_INLINE RVM_TREE_TYPE RVM_TREE_NAME(tree_aggregate)(int64_t aggregate, RVM_TREE_TYPE total,
                                                                            RVM_TREE_TYPE value) {
  if (aggregate == RVM_TREE_SUM) return total + value;
  return aggregate == RVM_TREE_MIN ? (value < total ? value : total) : value > total ? value : total;
}

/* Aggregates the values of the leaf `at` to the totals of a row. */
static inline RVM_ALWAYS_INLINE void RVM_TREE_NAME(tree_leaf)(const RVM_TREE_ARGUMENTS(trees) * args, uint32_t at,
                                                              RVM_TREE_TYPE *totals) {
  const RVM_TREE_TYPE payload = ((const RVM_TREE_NAME(tree_node) *)args->nodes)[at].threshold;
  const int64_t aggregate = args->aggregate, targets = args->targets;
  if (targets == 1) {
    totals[0] = RVM_TREE_NAME(tree_aggregate)(aggregate, totals[0], payload);
    return;
  }
  RVM_TREE_WORD number;
  memcpy(&number, &payload, sizeof number);
  const uint32_t leaf = (uint32_t)number < args->leaves ? (uint32_t)number : (uint32_t)args->leaves - 1;
  if (args->entries == 0) {
    const RVM_TREE_TYPE *values = args->values + leaf * targets;
    for (int64_t k = 0; k < targets; k++) totals[k] = RVM_TREE_NAME(tree_aggregate)(aggregate, totals[k], values[k]);
    return;
  }
  const int64_t first = args->starts[leaf] < 0 ? 0 : args->starts[leaf], stop = args->starts[leaf + 1];
  const int64_t most = first + targets < args->entries ? first + targets : args->entries;
  for (int64_t i = first; i < (stop < most ? stop : most); i++) {
    const uint32_t named = (uint32_t)args->entry_targets[i], k = named < targets ? named : (uint32_t)targets - 1;
    totals[k] = RVM_TREE_NAME(tree_aggregate)(aggregate, totals[k], args->values[i]);
  }
}

/* The body of the function below. */
static inline RVM_ALWAYS_INLINE void RVM_TREE_NAME(evaluate_trees)(const RVM_TREE_ARGUMENTS(trees) * args) {
#if RVM_TREE_IS_F32 && defined RVM_TREE_VECTORS
  if (args->columns < 1 << 26) { /* otherwise, the indices of a gather are too small */
    rvm_tree_vectors(args);
    return;
  }
#endif
  const int64_t rows = args->rows, trees = args->trees, stride = args->columns + 1, targets = args->targets;
  const int64_t whole = rows / RVM_TREE_LANES * RVM_TREE_LANES;
  const uint32_t last = (uint32_t)args->node_count - 1;
  uint32_t at[RVM_TREE_LANES];
  for (int64_t t = 0; whole > 0 && t < trees; t++)
    for (int64_t r = 0; r < whole; r += RVM_TREE_LANES) {
      const uint32_t root = (uint32_t)args->roots[t];
      for (int lane = 0; lane < RVM_TREE_LANES; lane++) at[lane] = root < last ? root : last;
      RVM_TREE_NAME(tree_walk)(args, args->x + r * stride, stride,
                               args->depths[t] < args->steps ? args->depths[t] : args->steps, at);
      for (int lane = 0; lane < RVM_TREE_LANES; lane++)
        RVM_TREE_NAME(tree_leaf)(args, at[lane], args->totals + (r + lane) * targets);
    }
  for (int64_t t = 0; whole < rows && t < trees; t += RVM_TREE_LANES) {
    const int64_t count = trees - t < RVM_TREE_LANES ? trees - t : RVM_TREE_LANES;
    for (int64_t r = whole; r < rows; r++) {
      int64_t steps = 0;
      for (int lane = 0; lane < RVM_TREE_LANES; lane++) {
        const int64_t tree = t + (lane < count ? lane : count - 1);
        const uint32_t root = (uint32_t)args->roots[tree];
        at[lane] = root < last ? root : last;
        steps = args->depths[tree] > steps ? args->depths[tree] : steps;
      }
      RVM_TREE_NAME(tree_walk)(args, args->x + r * stride, 0, steps < args->steps ? steps : args->steps, at);
      for (int lane = 0; lane < count; lane++) RVM_TREE_NAME(tree_leaf)(args, at[lane], args->totals + r * targets);
    }
  }
}

/* Aggregates the values of the leaves that each row reaches in `trees` trees to the totals of the row, in the order of
   the trees.

   x: `rows` rows of a block of rvm_tree_columns, of `columns` + 1 elements.
   roots, depths: of each tree, the root and the length of the longest path.
   steps: an upper limit on the depths.
   nodes: `node_count` records (see above), at least one, whose offsets have `offset_bits` bits.
   targets: the number of totals of a row.  If it is 1, the threshold of a leaf is its value.  Otherwise its bits are
   a number of a leaf, below `leaves`.
   entries: if 0, `values` has a row of `targets` values for each leaf.  Otherwise leaf i has the elements
   [starts[i], starts[i + 1]) of `values`, whose targets are the same elements of `entry_targets`. */
RVM_OUT_OF_LINE(void RVM_TREE_NAME(trees)(const RVM_TREE_ARGUMENTS(trees) * args), RVM_TREE_NAME(evaluate_trees)(args);)

#undef RVM_TREE_ARGUMENTS
#undef RVM_TREE_NAME
#undef RVM_TREE_WORD
#undef RVM_TREE_IS_F32
#undef RVM_TREE_TYPE
