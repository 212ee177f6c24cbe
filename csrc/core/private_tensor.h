/* private_tensor.h: protection from a host that changes elements while the machine uses them.  A private tensor is a
   constant or lies in a storage that was never shared with the host; other tensors are copied before elements are
   checked and then relied on. */
#ifndef RELVM_PRIVATE_TENSOR_H
#define RELVM_PRIVATE_TENSOR_H

#include "storage_pool.h"
#include "tensor.h"

/* Returns whether the host cannot change the elements: they are a constant or lie in a storage that was never
   shared. */
int32_t rvm_tensor_is_private(const rvm_tensor *tensor);
/* Marks the tensor's storage, if it has one, as shared with the host for as long as the storage is in use. */
void rvm_tensor_share(const rvm_tensor *tensor);
/* Returns whether the only path to the elements is a single reference to this tensor. */
int32_t rvm_tensor_is_only_reference(const rvm_tensor *tensor);
/* Stores a private tensor with the same elements in *result: the tensor itself, retained, if it is private, else a
   copy with canonical elements.  Tensors of strings are immutable and never copied.  The copy is allocated from
   `pool`, or from the heap if `pool` is NULL. */
rvm_status rvm_tensor_make_private(rvm_pool *pool, rvm_tensor *tensor, rvm_value *result);

/* Returns whether some byte values are not elements of the dtype: bool allows only 0 and 1, and dtypes of less than
   8 bits leave bits unused. */
int32_t rvm_dtype_has_noncanonical(int32_t dtype);
/* Returns whether all elements are canonical: a bool is 0 or 1, and the unused bits of a byte are 0. */
int32_t rvm_elements_are_canonical(int32_t dtype, const void *elements, int64_t count);
/* Stores a private copy with canonical elements in *result if the value needs admission; else retains the value and
   stores it unchanged. */
rvm_status rvm_value_admit(rvm_pool *pool, rvm_value value, rvm_value *result);
/* Copies elements between tensors of the same dtype and shape in canonical form.  Does nothing if the dtype has no
   noncanonical bytes. */
void rvm_tensor_write_canonical(const rvm_tensor *dst, const rvm_tensor *src);

/* Returns whether the value is a tensor that may have noncanonical elements, now or after a change by the host. */
static inline int32_t rvm_value_needs_admission(rvm_value value) {
  return value.tag == RVM_TAG_TENSOR && rvm_dtype_has_noncanonical(value.as.tensor->dtype) &&
         !rvm_tensor_is_private(value.as.tensor);
}

#endif
