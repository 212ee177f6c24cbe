/* packed.h: parts of generated packed functions over tensors: the checks of the arguments and of the C stack, and
   parallel loops. */
#ifndef RELVM_PACKED_H
#define RELVM_PACKED_H

#include "native.h"

/* Checks that the arguments match `expected`.  For each tensor, `expected` has the dtype, the rank, and the dimensions:
   a size >= 0, or -1 - k for size variable k.  The first dimension with size variable k sets sizes[k], and all later
   ones must be equal to it.  Sets *result to NIL.  Fails with ARGUMENT_ERROR, TYPE_ERROR or SHAPE_ERROR. */
static __attribute__((noinline, unused)) rvm_status rvm_kernel_check(const int64_t *expected, int32_t tensors,
                                                                     int32_t size_count, int64_t *sizes,
                                                                     const rvm_value *arguments, int32_t count,
                                                                     rvm_value *result) {
  if (count != tensors)
    return rvm_api->fail(result, RVM_ARGUMENT_ERROR, "kernel: expected %d argument%s, got %d", (int)tensors,
                         tensors == 1 ? "" : "s", (int)count);
  for (int32_t k = 0; k < size_count; k++) sizes[k] = -1;
  for (int32_t i = 0; i < tensors; i++) {
    int64_t dtype = *expected++, rank = *expected++;
    const rvm_tensor *tensor = arguments[i].as.tensor;
    if (arguments[i].tag != RVM_TAG_TENSOR)
      return rvm_api->fail(result, RVM_TYPE_ERROR, "kernel: argument %d must be a tensor", (int)i);
    if (tensor->dtype != dtype || tensor->dl.ndim != rank)
      return rvm_api->fail(result, RVM_TYPE_ERROR,
                           "kernel: argument %d does not have the dtype and rank that the kernel was compiled for",
                           (int)i);
    for (int32_t axis = 0; axis < rank; axis++) {
      int64_t expected_size = *expected++, size = tensor->dl.shape[axis];
      if (expected_size < 0 && sizes[-1 - expected_size] < 0) sizes[-1 - expected_size] = size;
      if (expected_size < 0) expected_size = sizes[-1 - expected_size];
      if (expected_size != size)
        return rvm_api->fail(result, RVM_SHAPE_ERROR,
                             "kernel: expected dimension %d of argument %d to be %lld, got %lld", (int)axis, (int)i,
                             (long long)expected_size, (long long)size);
    }
  }
  result->tag = RVM_TAG_NIL;
  return RVM_OK;
}

/* The message for a dimension that differs from a compound expression such as n * 2. */
#define RVM_SIZE_MISMATCH "kernel: expected a size of %lld, got %lld"
/* Fails with STACK_OVERFLOW because rvm_stack_left is less than the `needed` bytes. */
static __attribute__((noinline, unused)) rvm_status rvm_kernel_fail_stack(void *self, const char *name, int64_t needed,
                                                                          rvm_value *result) {
  return rvm_api->fail(
      result, RVM_STACK_OVERFLOW,
      "kernel %s needs %lld bytes of the C stack, but this thread has %lld left; use a thread with a larger stack",
      name, (long long)needed, (long long)rvm_stack_left(self));
}

/* Runs the iterations [0, count) of a loop.  Uses the threads of the machine `self` if `self` is not NULL and there are
   more than `grain` iterations, else only the calling thread. */
static inline void rvm_parallel(void *self, rvm_part part, const void *shared, int64_t count, int64_t grain) {
  if (count <= 0) return;
  if (self && count > grain)
    rvm_api->parallel((rvm_machine *)self, part, shared, count, grain);
  else
    part(shared, 0, count);
}

#endif
