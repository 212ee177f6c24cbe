/* relvm_metadata.h: what a model that was exported ahead of time says of itself.  Constants of the model; nothing of it is used
 * to run it.
 */
#ifndef RELVM_METADATA_H
#define RELVM_METADATA_H

#include <stdint.h>

#define RVM_METADATA_VERSION 1

/* Everything between the two markers is also what cffi is given: plain declarations only. */
/* [begin cffi] */

typedef struct rvm_tensor_info {
  const char *name;
  const char *dtype; /* the name in dtypes.def */
  int32_t rank;
  const int64_t *shape;      /* -1: a dimension that depends on sizes */
  const char *const *dims;   /* the text of each dimension: "3", "n", "n * 2" */
} rvm_tensor_info;

/* A size that only a run knows. */
typedef struct rvm_size_info {
  const char *name;
  int64_t least;
  int64_t most; /* -1: any */
} rvm_size_info;

typedef struct rvm_metadata {
  int32_t version; /* RVM_METADATA_VERSION */
  int32_t alignment; /* of pools, in bytes */
  const char *mod_name;
  int32_t input_count, output_count, pool_count, size_count;
  const rvm_tensor_info *inputs;  /* a number has rank 0 */
  const rvm_tensor_info *outputs;
  const rvm_tensor_info *pools; /* the memory that a run needs, as bytes */
  const rvm_size_info *sizes;
} rvm_metadata;

/* [end cffi] */

#endif
