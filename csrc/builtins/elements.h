/* elements.h: the elements of tensors and arrays that builtins make, whose copies are counted as work. */
#ifndef RELVM_ELEMENTS_H
#define RELVM_ELEMENTS_H

#include "machine.h"

/* A tensor in memory of the machine's pool; its bytes are not initialized.  Strings have memory of their own. */
rvm_status rvm_machine_tensor_new(rvm_machine *machine, int32_t dtype, int32_t rank, const int64_t *dims,
                                  rvm_value *result);
/* Copies elements into a new tensor, or other bytes, and counts that as work. */
rvm_status rvm_copy_elements(rvm_machine *machine, int32_t dtype, void *to, const void *from, size_t bytes,
                             rvm_value *error);
/* As rvm_grow, of an array that may be large: what is copied is work.  Unless it succeeds *array is as it was. */
rvm_status rvm_grow_array(rvm_machine *machine, void **array, int64_t count, int64_t capacity, size_t element_bytes,
                          rvm_value *error);

#endif
