/* tensor.h: tensors and shapes. */
#ifndef RELVM_TENSOR_H
#define RELVM_TENSOR_H

#include "dtype.h"
#include "object.h"

/* A tensor over `bytes`, which belong to `owner`, a storage or a tensor without an owner: retained.  Unchecked. */
rvm_status rvm_tensor_view(int32_t dtype, int32_t rank, const int64_t *dims, void *bytes, rvm_object *owner,
                           rvm_value *result);

/* A shape whose dimensions are still to be written. */
rvm_status rvm_shape_room(int32_t rank, rvm_value *result);

/* The bytes of that many elements; 0 when a dimension is negative or the size exceeds int64. */
int32_t rvm_dims_size_bytes(int32_t dtype, int32_t rank, const int64_t *dims, int64_t *size_bytes);
/* The product of the dimensions; 0 when one is negative or it exceeds int64. */
int32_t rvm_dims_product(int32_t rank, const int64_t *dims, int64_t *product);
int64_t rvm_tensor_count(const rvm_tensor *tensor); /* of its elements */
/* Whether the elements are in memory of a machine, so that a kernel may write to them: they are neither a constant nor
   memory of the host, such as an argument. */
int32_t rvm_tensor_is_own(const rvm_tensor *tensor);

/* Whether nobody may write to the elements: they are a constant, or memory that the host marked as read-only. */
int32_t rvm_tensor_is_read_only(const rvm_tensor *tensor);

/* The elements of a tensor of strings. */
static inline rvm_string **rvm_tensor_strings(const rvm_tensor *tensor) { return tensor->dl.data; }

/* The truth of a BOOL, an INT or a 0-d tensor of bool or integer dtype; TYPE_ERROR for all else. */
rvm_status rvm_value_truth(rvm_value condition, int32_t *truth, rvm_value *error);

#endif
