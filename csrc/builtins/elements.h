/* elements.h: allocation and copying for builtins.  Copies are charged to the machine in chunks, so that a limit of the
   run can interrupt a large copy.  `machine` may be NULL if a function only copies; nothing is charged then. */
#ifndef RELVM_ELEMENTS_H
#define RELVM_ELEMENTS_H

#include "machine.h"

/* Creates a tensor with uninitialized elements in the machine's pool.  A tensor of strings is not in the pool, and its
   elements are empty strings. */
rvm_status rvm_machine_tensor_new(rvm_machine *machine, int32_t dtype, int32_t rank, const int64_t *dims,
                                  rvm_value *result);
/* Copies `bytes` bytes of elements to a tensor, and charges the copying.  If the dtype is str, retains the copied
   strings; the elements at `dst` must be empty strings. */
rvm_status rvm_copy_elements(rvm_machine *machine, int32_t dtype, void *dst, const void *src, size_t bytes,
                             rvm_value *error);
/* Replaces *array by a new block (rvm_grow), and charges the copying.  On failure, *array is unchanged. */
rvm_status rvm_grow_array(rvm_machine *machine, void **array, int64_t count, int64_t capacity, size_t element_bytes,
                          rvm_value *error);

#endif
