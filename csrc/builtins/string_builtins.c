/* string_builtins.c: helpers of the string builtins. */
#include "string_builtins.h"

#include "elements.h"

rvm_status rvm_string_join(rvm_machine *machine, rvm_string **element, rvm_text first, rvm_text second,
                           rvm_value *error) {
  *element = NULL;
  if (first.length + second.length == 0) return RVM_OK;
  rvm_value string;
  rvm_status status = rvm_string_allocate(first.length + second.length, &string);
  if (status) {
    *error = string;
    return status;
  }
  char *bytes = string.as.string->bytes;
  status = rvm_copy_elements(machine, RVM_DTYPE_u8, bytes, first.bytes, (size_t)first.length, error);
  if (!status)
    status = rvm_copy_elements(machine, RVM_DTYPE_u8, bytes + first.length, second.bytes, (size_t)second.length, error);
  if (status)
    rvm_release(&string);
  else
    *element = string.as.string;
  return status;
}

rvm_status rvm_tensor_with_last_axis(const rvm_tensor *x, int64_t size, rvm_value *result) {
  int64_t *dims = rvm_allocate((size_t)(x->dl.ndim + 1) * sizeof *dims);
  if (!dims) return rvm_out_of_memory(result);
  for (int32_t i = 0; i < x->dl.ndim; i++) dims[i] = x->dl.shape[i];
  dims[x->dl.ndim] = size;
  rvm_status status = rvm_tensor_new(RVM_DTYPE_str, x->dl.ndim + 1, dims, result);
  rvm_free(dims);
  return status;
}
