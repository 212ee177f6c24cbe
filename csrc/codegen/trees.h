/* trees.h: the micro-kernels of decision trees (relvm/ops/decision_trees.py).

   A node is a record of a threshold and a word.  The word consists of an offset in its lowest bits, and of the number
   of a column.  If the column of a row is at most the threshold, the next node is `offset - 1` nodes ahead, otherwise
   `offset` nodes ahead: the children of a node are adjacent.  A leaf has the offset 0 and the last column, which is NaN
   in every row, so a row that has reached a leaf stays there.  The threshold of a leaf is its value, or the number of
   its values in another table.

   The steps of RVM_TREE_LANES pairs of a row and a tree are interleaved, because a step takes many times longer than it
   occupies the processor.  The pairs are rows of one tree, or trees of one row.  A node that a table names is clamped
   to the tables, so all accesses are valid for every content of the tables, even if it changes meanwhile. */
#ifndef RELVM_TREES_H
#define RELVM_TREES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "compiler.h"
#include "micro_kernel_arguments.h"

enum {
  RVM_TREE_LANES = 16,
  RVM_TREE_STRIDE = 4, /* steps between two checks whether all lanes have reached a leaf */
};
/* The argument `aggregate` */
enum { RVM_TREE_SUM, RVM_TREE_MIN, RVM_TREE_MAX };

#define RVM_TREE_TYPE float
#define RVM_TREE_WORD uint32_t
#define RVM_TREE_NAME(name) rvm_##name##_f32
#define RVM_TREE_ARGUMENTS(name) rvm_##name##_f32_arguments
#include "trees_of_dtype.h"

#define RVM_TREE_TYPE double
#define RVM_TREE_WORD uint64_t
#define RVM_TREE_NAME(name) rvm_##name##_f64
#define RVM_TREE_ARGUMENTS(name) rvm_##name##_f64_arguments
#include "trees_of_dtype.h"

#endif
