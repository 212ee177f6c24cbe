/* elements.h: allocation and copying for builtins.  Large copies are charged to the machine in chunks, so that its
   limits interrupt them. */
#ifndef RELVM_ELEMENTS_H
#define RELVM_ELEMENTS_H

#include "machine.h"

/* Creates a tensor with uninitialized elements in the machine's pool.  Strings do not use the pool and start as
   empty strings. */
rvm_status rvm_machine_tensor_new(rvm_machine *machine, int32_t dtype, int32_t rank, const int64_t *dims,
                                  rvm_value *result);
/* Copies `bytes` bytes of elements to the memory of a new tensor, retaining strings, and charges the work. */
rvm_status rvm_copy_elements(rvm_machine *machine, int32_t dtype, void *dst, const void *src, size_t bytes,
                             rvm_value *error);
/* Grows an array as rvm_grow does, and charges the copying.  On failure *array is unchanged. */
rvm_status rvm_grow_array(rvm_machine *machine, void **array, int64_t count, int64_t capacity, size_t element_bytes,
                          rvm_value *error);

#endif
