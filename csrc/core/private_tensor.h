/* private_tensor.h: copies of elements that the host could change while the machine uses them, and elements in
 * canonical form. */
#ifndef RELVM_PRIVATE_TENSOR_H
#define RELVM_PRIVATE_TENSOR_H

#include "storage_pool.h"
#include "tensor.h"

/* Whether the host has no way to change the elements: they are a constant, or in a storage that was never shared with
 * the host. */
int32_t rvm_tensor_is_private(const rvm_tensor *tensor);
/* Marks the storage of the tensor, if it has one, as shared with the host.  The mark stays as long as the storage is in
 * use. */
void rvm_tensor_share(const rvm_tensor *tensor);
/* Whether one reference, to this tensor, is the only way to the elements. */
int32_t rvm_tensor_is_only_reference(const rvm_tensor *tensor);
/* Stores a private tensor with the same elements in *result: the tensor itself, retained, if it is private, else a copy
   with canonical elements.  Strings are never changed, so a tensor of strings is not copied.  pool: where to place the
   copy, or NULL if there is no machine. */
rvm_status rvm_tensor_make_private(rvm_pool *pool, rvm_tensor *tensor, rvm_value *result);

/* Whether some bytes are no elements of the dtype: bool allows only 0 and 1, and dtypes of less than 8 bits do not use
 * all bits. */
int32_t rvm_dtype_has_noncanonical(int32_t dtype);
/* Whether all elements are canonical: a bool is 0 or 1, and the unused bits of a byte are 0. */
int32_t rvm_elements_are_canonical(int32_t dtype, const void *elements, int64_t count);
/* As rvm_tensor_make_private, but only of dtypes with noncanonical bytes.  Any other value is retained as it is. */
rvm_status rvm_value_admit(rvm_pool *pool, rvm_value value, rvm_value *result);
/* Copies the elements of another tensor of the same dtype and shape in canonical form, if the dtype has noncanonical
 * bytes. */
void rvm_tensor_write_canonical(const rvm_tensor *to, const rvm_tensor *from);

static inline int32_t rvm_value_needs_admission(rvm_value value) {
  return value.tag == RVM_TAG_TENSOR && rvm_dtype_has_noncanonical(value.as.tensor->dtype) &&
         !rvm_tensor_is_private(value.as.tensor);
}

#endif
