/* relvm_views.h: tensors over existing memory, created without an allocation. */
#ifndef RELVM_VIEWS_H
#define RELVM_VIEWS_H

#include "relvm_values.h"

/* Returns whether a tensor has no elements. */
static inline int rvm_view_is_empty(const rvm_tensor *tensor) {
  for (int32_t axis = 0; axis < tensor->dl.ndim; axis++)
    if (tensor->dl.shape[axis] == 0) return 1;
  return 0;
}

/* Initializes *tensor as a view of `data` with a dtype (a row of dtypes.def) and a shape, and returns it as a value.
   The value is valid as long as `tensor`, `shape` and `data`.  A function that receives it must not keep it.  Returns
   NIL and leaves *tensor unchanged if the dtype is invalid, the rank is negative, or a pointer is NULL.  `shape` may be
   NULL for rank 0, and `data` may be NULL for a tensor without elements. */
static inline rvm_value rvm_view(rvm_tensor *tensor, int32_t dtype, int32_t rank, int64_t *shape, const void *data) {
  static const rvm_dltype types[] = {
#define DTYPE(name, code, bits, ctype, numpy) {code, bits, 1},
#include "../tables/dtypes.def"
#undef DTYPE
  };
  rvm_value value;
  value.tag = RVM_TAG_NIL;
  value.as.tensor = 0;
  if (!tensor || dtype < 0 || dtype >= RVM_DTYPE_COUNT || rank < 0) return value;
  if (rank > 0 && !shape) return value;
  const rvm_tensor view = {
      {RVM_TAG_TENSOR, -1}, dtype, 0, {(void *)data, 1, 0, rank, types[dtype], shape, 0, 0}, 0, 0, 0, 0};
  if (!data && !rvm_view_is_empty(&view)) return value;
  *tensor = view;
  value.tag = RVM_TAG_TENSOR;
  value.as.tensor = tensor;
  return value;
}

/* Returns whether all values are compact tensors in CPU memory with byte offset 0, and `data` is NULL only in tensors
   without elements. */
static inline int rvm_are_plain(const rvm_value *tensors, int32_t count) {
  if (count < 0 || (count > 0 && !tensors)) return 0;
  for (int32_t i = 0; i < count; i++) {
    const rvm_tensor *tensor = tensors[i].as.tensor;
    if (tensors[i].tag != RVM_TAG_TENSOR || !tensor || tensor->base.tag != RVM_TAG_TENSOR) return 0;
    if (tensor->dl.device_type != 1 || tensor->dl.strides || tensor->dl.byte_offset != 0) return 0;
    if (!tensor->dl.data && !rvm_view_is_empty(tensor)) return 0;
  }
  return 1;
}

#endif
