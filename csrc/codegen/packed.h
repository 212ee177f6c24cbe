/* packed.h: what generated packed functions over tensors begin with, the check of their arguments, and how their loops
 * run on several threads.
 */
#ifndef RELVM_PACKED_H
#define RELVM_PACKED_H

#include "native.h"

/* Compares the arguments with `expected`: for each tensor its dtype, its rank, and its dimensions, a number >= 0 as it
   is or -1 - k for size variable k.  A size variable takes the first dimension that names it; every later one must
   equal it. */
static __attribute__((noinline, unused)) rvm_status rvm_kernel_check(const int64_t *expected, int32_t tensors,
                                                                     int32_t size_count, int64_t *sizes,
                                                                     const rvm_value *arguments, int32_t count,
                                                                     rvm_value *result) {
  if (count != tensors)
    return rvm_api->fail(result, RVM_ARGUMENT_ERROR, "kernel: expected %d arguments, got %d", (int)tensors, (int)count);
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
      int64_t want = *expected++, got = tensor->dl.shape[axis];
      if (want < 0 && sizes[-1 - want] < 0) sizes[-1 - want] = got;
      if (want < 0) want = sizes[-1 - want];
      if (want != got)
        return rvm_api->fail(result, RVM_SHAPE_ERROR,
                             "kernel: expected dimension %d of argument %d to be %lld, got %lld", (int)axis, (int)i,
                             (long long)want, (long long)got);
    }
  }
  result->tag = RVM_TAG_NIL;
  return RVM_OK;
}

/* The message for a compound dimension, such as n * 2, that a tensor does not have: the expected size, and the size
 * found. */
#define RVM_SIZE_MISMATCH "kernel: expected a size of %lld, got %lld"
/* The error of a kernel for which rvm_stack_left is too little. */
static __attribute__((noinline, unused)) rvm_status rvm_kernel_fail_stack(void *self, const char *name, int64_t needed,
                                                                          rvm_value *result) {
  return rvm_api->fail(
      result, RVM_STACK_OVERFLOW,
      "kernel %s needs %lld bytes of the C stack, but this thread has %lld left; use a thread with a larger stack",
      name, (long long)needed, (long long)rvm_stack_left(self));
}

/* A loop of [0, count), in parts: at once on several threads where the kernel runs in a machine that has them and there
   is more than `grain` to do. */
static inline void rvm_parallel(void *self, rvm_part part, const void *shared, int64_t count, int64_t grain) {
  if (count <= 0) return;
  if (self && count > grain)
    rvm_api->parallel((rvm_machine *)self, part, shared, count, grain);
  else
    part(shared, 0, count);
}

#endif
