/* private_tensor.c: copies tensors whose elements the host could change, and brings elements into canonical form, in
   which a bool is 0 or 1 and the unused bits of narrow integers are 0. */
#include "private_tensor.h"

#include <string.h>

/* Returns whether the elements of a tensor belong to its owner.  Otherwise the tensor is a constant, wraps memory of
   the host, or contains its elements itself. */
static int is_view(const rvm_tensor *tensor) {
  return tensor->base.references >= 0 && !tensor->release && tensor->owner;
}

/* Follows the owners of a tensor to the object that provides its memory: a storage, or a tensor that is not a view. */
static const rvm_object *memory_of(const rvm_tensor *tensor) {
  while (is_view(tensor)) {
    if (tensor->owner->tag != RVM_TAG_TENSOR) return tensor->owner;
    tensor = (const rvm_tensor *)tensor->owner;
  }
  return &tensor->base;
}

int32_t rvm_tensor_is_private(const rvm_tensor *tensor) {
  const rvm_object *memory = memory_of(tensor);
  return memory->references < 0 || (memory->tag == RVM_TAG_STORAGE && !((const rvm_storage *)memory)->is_shared);
}

void rvm_tensor_share(const rvm_tensor *tensor) {
  const rvm_object *memory = memory_of(tensor);
  if (memory->tag == RVM_TAG_STORAGE) ((rvm_storage *)memory)->is_shared = 1;
}

int32_t rvm_tensor_is_only_reference(const rvm_tensor *tensor) {
  const rvm_object *owner = tensor->owner;
  return tensor->base.references == 1 && (!owner || (owner->references == 1 && owner->tag == RVM_TAG_STORAGE));
}

/* Returns whether the tensor is not read-only, and nothing but the caller uses it.  A host that donates a tensor still
   has one reference to it, which it does not use. */
static int has_one_user(const rvm_tensor *tensor) {
  return tensor->base.references == 1 + (rvm_tensor_donation(tensor) == RVM_DONATION_LENT) && !tensor->is_read_only;
}

int32_t rvm_tensor_is_updatable(const rvm_tensor *tensor) {
  const rvm_object *owner = tensor->owner;
  if (!has_one_user(tensor)) return 0;
  if (!owner) return rvm_tensor_donation(tensor) != RVM_DONATION_NONE;
  if (owner->tag == RVM_TAG_STORAGE) return owner->references == 1;
  const rvm_tensor *whole = (const rvm_tensor *)owner;
  return !whole->owner && rvm_tensor_donation(whole) != RVM_DONATION_NONE && has_one_user(whole);
}

/* ---- canonical elements ---- */

static int is_bool(int32_t dtype) { return dtype == RVM_DTYPE_bool; }

int32_t rvm_dtype_has_noncanonical(int32_t dtype) { return is_bool(dtype) || rvm_dtype_dl(dtype).bits < 8; }

/* Returns the bits that an element may use. */
static uint8_t mask_of(int32_t dtype) { return is_bool(dtype) ? 1 : (uint8_t)((1u << rvm_dtype_dl(dtype).bits) - 1); }

int32_t rvm_elements_are_canonical(int32_t dtype, const void *elements, int64_t count) {
  if (!rvm_dtype_has_noncanonical(dtype)) return 1;
  const uint8_t *bytes = elements;
  uint8_t bits = 0;
  for (int64_t i = 0; i < count; i++) bits |= bytes[i];
  return !(bits & ~mask_of(dtype));
}

/* Copies elements in canonical form.  Reads each byte only once, because the host may change it at any time. */
static void copy_canonical(int32_t dtype, uint8_t *restrict dst, const uint8_t *restrict src, int64_t size_bytes) {
  const uint8_t mask = mask_of(dtype);
  if (is_bool(dtype))
    for (int64_t i = 0; i < size_bytes; i++) dst[i] = src[i] != 0;
  else
    for (int64_t i = 0; i < size_bytes; i++) dst[i] = src[i] & mask;
}

/* ---- copies ---- */

rvm_status rvm_tensor_new_private(rvm_pool *pool, int32_t dtype, int32_t rank, const int64_t *dims, int64_t size_bytes,
                                  rvm_value *result) {
  if (!pool) return rvm_tensor_new(dtype, rank, dims, result);
  rvm_status status = rvm_storage_new(pool, size_bytes, result);
  if (status) return status;
  rvm_value storage = *result;
  status = rvm_tensor_view(dtype, rank, dims, storage.as.storage->bytes, storage.as.object, result);
  rvm_release(&storage);
  return status;
}

rvm_status rvm_tensor_make_private(rvm_pool *pool, rvm_tensor *tensor, rvm_value *result) {
  if (tensor->dtype == RVM_DTYPE_str || rvm_tensor_is_private(tensor)) {
    *result = rvm_object_value(&tensor->base);
    rvm_retain(*result);
    return RVM_OK;
  }
  const int64_t size_bytes = rvm_tensor_size_bytes(tensor);
  rvm_status status =
      rvm_tensor_new_private(pool, tensor->dtype, tensor->dl.ndim, tensor->dl.shape, size_bytes, result);
  if (status || size_bytes == 0) return status;
  if (rvm_dtype_has_noncanonical(tensor->dtype))
    copy_canonical(tensor->dtype, result->as.tensor->dl.data, tensor->dl.data, size_bytes);
  else
    memcpy(result->as.tensor->dl.data, tensor->dl.data, (size_t)size_bytes);
  return RVM_OK;
}

rvm_status rvm_value_admit(rvm_pool *pool, rvm_value value, rvm_value *result) {
  if (rvm_value_needs_admission(value)) return rvm_tensor_make_private(pool, value.as.tensor, result);
  *result = value;
  rvm_retain(value);
  return RVM_OK;
}

void rvm_tensor_write_canonical(const rvm_tensor *dst, const rvm_tensor *src) {
  const int64_t size_bytes = rvm_tensor_size_bytes(dst);
  if (dst != src && size_bytes > 0 && rvm_dtype_has_noncanonical(dst->dtype))
    copy_canonical(dst->dtype, dst->dl.data, src->dl.data, size_bytes);
}
