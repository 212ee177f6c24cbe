/* elements.c: allocates and copies elements of tensors and arrays, and charges the work. */
#include "elements.h"

#include <string.h>

#include "string_tensor.h"

rvm_status rvm_machine_tensor_new(rvm_machine *machine, int32_t dtype, int32_t rank, const int64_t *dims,
                                  rvm_value *result) {
  int64_t size_bytes;
  if (!rvm_dims_size_bytes(dtype, rank, dims, &size_bytes))
    return rvm_fail(result, RVM_SHAPE_ERROR, "the size of a tensor exceeds 64 bits");
  if (dtype == RVM_DTYPE_str) return rvm_tensor_new(dtype, rank, dims, result);
  rvm_value storage;
  rvm_status status = rvm_storage_new(rvm_machine_pool(machine), size_bytes, result);
  if (status) return status;
  storage = *result;
  status = rvm_tensor_view(dtype, rank, dims, storage.as.storage->bytes, storage.as.object, result);
  rvm_release(&storage);
  return status;
}

rvm_status rvm_copy_elements(rvm_machine *machine, int32_t dtype, void *dst, const void *src, size_t bytes,
                             rvm_value *error) {
  enum { CHUNK_BYTES = 1 << 20 };
  const char *source = src;
  rvm_status status = RVM_OK;
  for (size_t offset = 0, chunk_bytes; offset < bytes && !status; offset += chunk_bytes) {
    chunk_bytes = bytes - offset < CHUNK_BYTES ? bytes - offset : CHUNK_BYTES;
    memcpy((char *)dst + offset, source + offset, chunk_bytes);
    if (dtype == RVM_DTYPE_str)
      rvm_strings_retain((rvm_string **)((char *)dst + offset), (int64_t)(chunk_bytes / sizeof(rvm_string *)));
    status = rvm_spend(machine, 1 + (int64_t)(chunk_bytes / 64), error);
  }
  return status;
}

rvm_status rvm_grow_array(rvm_machine *machine, void **array, int64_t count, int64_t capacity, size_t element_bytes,
                          rvm_value *error) {
  int64_t size_bytes;
  const int fits = rvm_multiply(capacity, (int64_t)element_bytes, &size_bytes) && size_bytes <= RVM_LARGEST_BYTES;
  void *grown = fits ? rvm_allocate((size_t)size_bytes) : NULL;
  if (!grown) return rvm_out_of_memory(error);
  rvm_status status = rvm_copy_elements(machine, RVM_DTYPE_u8, grown, *array, (size_t)count * element_bytes, error);
  rvm_free(status ? grown : *array);
  if (!status) *array = grown;
  return status;
}
