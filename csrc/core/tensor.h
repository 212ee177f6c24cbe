/* tensor.h: tensors and shapes.  The functions here do not check their arguments; relvm.h declares the ones that do. */
#ifndef RELVM_TENSOR_H
#define RELVM_TENSOR_H

#include "dtype.h"
#include "object.h"

/* Whether the host has donated the memory of a tensor, so that the run may overwrite it.  NONE: no.  LENT: yes, and the
   host still has one reference to the tensor, which it does not use.  GIVEN: yes, and the host has released this
   reference.  The state is in the upper bits of memory_class. */
enum { RVM_DONATION_NONE = 0, RVM_DONATION_LENT = 1, RVM_DONATION_GIVEN = 2 };

static inline int32_t rvm_tensor_donation(const rvm_tensor *tensor) { return tensor->memory_class >> RVM_CLASS_BITS; }

static inline void rvm_tensor_set_donation(rvm_tensor *tensor, int32_t donation) {
  tensor->memory_class = (tensor->memory_class & RVM_CLASS_MASK) | donation << RVM_CLASS_BITS;
}

/* Creates a tensor over `bytes`, which belong to `owner`: a storage, or a tensor without an owner.  Retains
   `owner`. */
rvm_status rvm_tensor_view(int32_t dtype, int32_t rank, const int64_t *dims, void *bytes, rvm_object *owner,
                           rvm_value *result);

/* Creates a shape with uninitialized dimensions. */
rvm_status rvm_shape_allocate(int32_t rank, rvm_value *result);

/* Computes the size of the elements in bytes and returns 1.  Returns 0 if a dimension is negative, or if the product of
   the nonzero dimensions and the size of an element overflows int64. */
int32_t rvm_dims_size_bytes(int32_t dtype, int32_t rank, const int64_t *dims, int64_t *size_bytes);
/* Computes the product of the dimensions and returns 1.  Returns 0 if a dimension is negative, or if the product of the
   nonzero dimensions overflows int64. */
int32_t rvm_dims_product(int32_t rank, const int64_t *dims, int64_t *product);
int64_t rvm_tensor_count(const rvm_tensor *tensor); /* number of elements */
/* Returns whether the elements are numbers in memory that the runtime has allocated or that the host has donated.
   Kernels in kernel bytecode write only to such memory.  Returns 0 for constants, other memory of the host
   (rvm_tensor_wrap) and tensors of strings. */
int32_t rvm_tensor_is_own(const rvm_tensor *tensor);

/* Returns whether programs must not write to the elements: they are a constant, or the host has marked the tensor or
   its owner as read-only. */
int32_t rvm_tensor_is_read_only(const rvm_tensor *tensor);

/* Returns the elements of a tensor of strings. */
static inline rvm_string **rvm_tensor_strings(const rvm_tensor *tensor) { return tensor->dl.data; }

/* Computes the truth value of a BOOL, an INT, or a tensor of rank 0 and bool or integer dtype.  Fails with
   TYPE_ERROR for any other value. */
rvm_status rvm_value_truth(rvm_value condition, int32_t *truth, rvm_value *error);

#endif
