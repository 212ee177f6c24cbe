/* private_tensor.h: protection from a host that changes elements while the machine uses them.  The elements of a
   private tensor are a constant, or are in a storage that was never shared with the host.  If the runtime checks the
   elements of a tensor that is not private, and later relies on the check, it first makes a private copy. */
#ifndef RELVM_PRIVATE_TENSOR_H
#define RELVM_PRIVATE_TENSOR_H

#include "storage_pool.h"
#include "tensor.h"

/* Returns whether the tensor is private. */
int32_t rvm_tensor_is_private(const rvm_tensor *tensor);
/* Marks the tensor's storage, if it has one, as shared with the host for as long as the storage is in use. */
void rvm_tensor_share(const rvm_tensor *tensor);
/* Returns whether nothing else refers to the elements: the tensor has one reference, and either no owner or a storage
   to which nothing else refers. */
int32_t rvm_tensor_is_only_reference(const rvm_tensor *tensor);
/* Returns whether a program may overwrite the elements if it does not use the tensor afterwards: the machine has
   allocated them or has got them by a donation, and nothing else refers to them. */
int32_t rvm_tensor_is_updatable(const rvm_tensor *tensor);
/* Creates a private tensor of `size_bytes` bytes, with unspecified elements, in a storage of the pool.  If `pool` is
   NULL, creates a tensor on the heap, which rvm_tensor_is_private does not recognize as private. */
rvm_status rvm_tensor_new_private(rvm_pool *pool, int32_t dtype, int32_t rank, const int64_t *dims, int64_t size_bytes,
                                  rvm_value *result);
/* Stores in *result a tensor whose elements the host cannot change.  If the tensor is private, or contains strings,
   which are immutable, this is the tensor itself, retained.  Otherwise it is a copy with canonical elements, created by
   rvm_tensor_new_private. */
rvm_status rvm_tensor_make_private(rvm_pool *pool, rvm_tensor *tensor, rvm_value *result);

/* Returns whether some byte values are not canonical elements of the dtype.  This holds for bool, and for dtypes of
   less than 8 bits. */
int32_t rvm_dtype_has_noncanonical(int32_t dtype);
/* Returns whether all elements are canonical: each bool is 0 or 1, and the unused bits of dtypes of less than 8 bits
   are 0. */
int32_t rvm_elements_are_canonical(int32_t dtype, const void *elements, int64_t count);
/* Admits a value from the host: stores a private copy with canonical elements in *result if the value needs admission
   (rvm_value_needs_admission), and otherwise the value itself, retained. */
rvm_status rvm_value_admit(rvm_pool *pool, rvm_value value, rvm_value *result);
/* Copies the elements of `src` in canonical form to `dst`, which has the same dtype and shape.  Does nothing if the two
   are the same tensor, or if the dtype has no noncanonical bytes. */
void rvm_tensor_write_canonical(const rvm_tensor *dst, const rvm_tensor *src);

/* Returns whether the value is a tensor that may have noncanonical elements, now or after a change by the host. */
static inline int32_t rvm_value_needs_admission(rvm_value value) {
  return value.tag == RVM_TAG_TENSOR && rvm_dtype_has_noncanonical(value.as.tensor->dtype) &&
         !rvm_tensor_is_private(value.as.tensor);
}

#endif
