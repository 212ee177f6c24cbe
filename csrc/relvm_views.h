/* relvm_views.h: tensors over memory that somebody else keeps, without an allocation. */
#ifndef RELVM_VIEWS_H
#define RELVM_VIEWS_H

#include "relvm_values.h"

/* A value that is `tensor`, which becomes one of that dtype (a row of dtypes.def) and shape over `data`.  It is valid as long as
   the three are; who is called with it must not keep it. */
static inline rvm_value rvm_view(rvm_tensor *tensor, int32_t dtype, int32_t rank, int64_t *shape, const void *data) {
  static const rvm_dltype types[] = {
#define DTYPE(name, code, bits, ctype, numpy) {code, bits, 1},
#include "dtypes.def"
#undef DTYPE
  };
  const rvm_tensor view = {{RVM_TAG_TENSOR, -1}, dtype, 0, {(void *)data, 1, 0, rank, types[dtype], shape, 0, 0}, 0, 0, 0};
  rvm_value value;
  *tensor = view;
  value.tag = RVM_TAG_TENSOR;
  value.as.tensor = tensor;
  return value;
}

/* Whether all of some tensors are in memory of the CPU, compact, and where their data points. */
static inline int rvm_are_plain(const rvm_value *tensors, int32_t count) {
  for (int32_t i = 0; i < count; i++) {
    const rvm_dltensor *dl = &tensors[i].as.tensor->dl;
    int is_empty = 0;
    for (int32_t axis = 0; axis < dl->ndim; axis++) is_empty |= dl->shape[axis] == 0;
    if (dl->device_type != 1 || dl->strides || dl->byte_offset != 0 || (!dl->data && !is_empty)) return 0;
  }
  return 1;
}

#endif
