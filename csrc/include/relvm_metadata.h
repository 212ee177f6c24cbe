/* relvm_metadata.h: the metadata of a model that was exported ahead of time: its inputs, outputs and memory pools.  A
   run of the model does not use the metadata. */
#ifndef RELVM_METADATA_H
#define RELVM_METADATA_H

#include <stdint.h>

#define RVM_METADATA_VERSION 1

/* cffi parses the text between the two markers, which must contain plain declarations only. */
/* [begin cffi] */

typedef struct rvm_tensor_info {
  const char *name;
  const char *dtype; /* the name in dtypes.def */
  int32_t rank;
  int32_t is_updated;      /* 1 for an input that each run updates */
  const int64_t *shape;    /* -1 for a symbolic dimension */
  const char *const *dims; /* the text of each dimension: "3", "n", "n * 2" */
} rvm_tensor_info;

/* A symbolic size and its bounds. */
typedef struct rvm_size_info {
  const char *name;
  int64_t least; /* INT64_MIN if unbounded */
  int64_t most;  /* -1 if unbounded */
} rvm_size_info;

typedef struct rvm_metadata {
  int32_t version;   /* RVM_METADATA_VERSION */
  int32_t alignment; /* alignment of the pools, in bytes */
  const char *mod_name;
  int32_t input_count, output_count, pool_count, size_count;
  const rvm_tensor_info *inputs; /* scalars have rank 0 */
  const rvm_tensor_info *outputs;
  const rvm_tensor_info *pools; /* the memory of a run, as tensors of bytes */
  const rvm_size_info *sizes;
} rvm_metadata;

/* [end cffi] */

#endif
