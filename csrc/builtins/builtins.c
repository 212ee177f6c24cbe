/* builtins.c: builtins for tensors, scalars, tuples and functions (builtins.def).  Each checks its arguments, which
   are borrowed, and returns an owned result. */
#include <string.h>

#include "arguments.h"
#include "call.h"
#include "elements.h"
#include "private_tensor.h"
#include "registry.h"

/* ---- any value ---- */

static rvm_status return_value(rvm_value value, rvm_value *result) {
  rvm_retain(value);
  *result = value;
  return RVM_OK;
}

static rvm_status return_nil(rvm_value *result) {
  *result = (rvm_value){.tag = RVM_TAG_NIL};
  return RVM_OK;
}

RVM_BUILTIN(copy) {
  RVM_CHECK(copy, "a");
  return return_value(arguments[0], result);
}

RVM_BUILTIN(null_value) {
  RVM_CHECK(null_value, "");
  return return_nil(result);
}

RVM_BUILTIN(read_if_cond) {
  RVM_CHECK(read_if_cond, "a");
  int32_t truth;
  rvm_status status = rvm_value_truth(arguments[0], &truth, result);
  if (!status) *result = rvm_bool(truth);
  return status;
}

RVM_BUILTIN(assert) {
  RVM_CHECK(assert, "ag");
  int32_t truth;
  rvm_status status = rvm_value_truth(arguments[0], &truth, result);
  if (status) return status;
  return truth ? return_nil(result) : rvm_fail(result, RVM_ASSERTION_ERROR, "%s", arguments[1].as.string->bytes);
}

RVM_BUILTIN(fail) {
  RVM_CHECK(fail, "ig");
  const int64_t status = arguments[0].as.i;
  if (status < RVM_TYPE_ERROR || status > RVM_ASSERTION_ERROR)
    return rvm_fail(result, RVM_ARGUMENT_ERROR, "vm.builtin.fail: status is %lld, expected %d to %d", (long long)status,
                    RVM_TYPE_ERROR, RVM_ASSERTION_ERROR);
  return rvm_fail(result, (rvm_status)status, "%s", arguments[1].as.string->bytes);
}

/* ---- tensors and their memory ---- */

static rvm_status check_device(enum rvm_builtin builtin, int64_t device, rvm_value *result) {
  if (device == 0) return RVM_OK;
  return rvm_fail(result, RVM_UNSUPPORTED, "%s: unknown device %lld; expected 0 (CPU), the only device",
                  rvm_builtin_row_of(builtin)->name, (long long)device);
}

RVM_BUILTIN(alloc_storage) {
  RVM_CHECK(alloc_storage, "czid");
  rvm_status status = check_device(RVM_BUILTIN_alloc_storage, arguments[2].as.i, result);
  const int64_t rank = arguments[1].tag == RVM_TAG_SHAPE ? arguments[1].as.shape->rank : 0;
  if (status || (status = rvm_spend(arguments[0].as.machine, rank / 8, result))) return status;
  int32_t dtype = (int32_t)arguments[3].as.i;
  int64_t size_bytes;
  int ok = arguments[1].tag == RVM_TAG_INT
               ? rvm_dims_size_bytes(dtype, 1, &arguments[1].as.i, &size_bytes)
               : rvm_dims_size_bytes(dtype, arguments[1].as.shape->rank, arguments[1].as.shape->dims, &size_bytes);
  if (ok) return rvm_storage_new(rvm_machine_pool(arguments[0].as.machine), size_bytes, result);
  return rvm_fail(result, RVM_SHAPE_ERROR, "vm.builtin.alloc_storage: the size is negative or exceeds 64 bits");
}

RVM_BUILTIN(alloc_tensor) {
  RVM_CHECK(alloc_tensor, "oisd");
  rvm_storage *storage = arguments[0].as.storage;
  const rvm_shape *shape = arguments[2].as.shape;
  int64_t offset = arguments[1].as.i, size_bytes;
  int32_t dtype = (int32_t)arguments[3].as.i;
  if (dtype == RVM_DTYPE_str)
    return rvm_fail(result, RVM_TYPE_ERROR,
                    "vm.builtin.alloc_tensor: a tensor of strings cannot be placed in a storage");
  if (!rvm_dims_size_bytes(dtype, shape->rank, shape->dims, &size_bytes))
    return rvm_fail(result, RVM_SHAPE_ERROR,
                    "vm.builtin.alloc_tensor: a dimension is negative, or the size exceeds 64 bits");
  if (offset < 0 || offset % rvm_dtype_size_bytes(dtype) != 0)
    return rvm_fail(result, RVM_INDEX_ERROR,
                    "vm.builtin.alloc_tensor: offset %lld must be a nonnegative multiple of the size of %s",
                    (long long)offset, rvm_dtype_name(dtype));
  if (offset > storage->size_bytes || size_bytes > storage->size_bytes - offset)
    return rvm_fail(result, RVM_OUT_OF_MEMORY,
                    "vm.builtin.alloc_tensor: %lld bytes at offset %lld do not fit into a storage of %lld bytes",
                    (long long)size_bytes, (long long)offset, (long long)storage->size_bytes);
  return rvm_tensor_view(dtype, shape->rank, shape->dims, storage->bytes + offset, &storage->base, result);
}

RVM_BUILTIN(unshare_tensor) {
  RVM_CHECK(unshare_tensor, "ct");
  rvm_machine *machine = arguments[0].as.machine;
  rvm_tensor *tensor = arguments[1].as.tensor;
  if (rvm_tensor_is_updatable(tensor)) return return_value(arguments[1], result);
  if (tensor->dtype == RVM_DTYPE_str)
    return rvm_fail(result, RVM_TYPE_ERROR, "vm.builtin.unshare_tensor: expected a tensor of numbers, got strings");
  const int64_t size_bytes = rvm_tensor_size_bytes(tensor);
  rvm_value storage;
  rvm_status status = rvm_spend(machine, size_bytes / 64, result);
  if (status) return status;
  if ((status = rvm_storage_new(rvm_machine_pool(machine), size_bytes, &storage))) {
    *result = storage;
    return status;
  }
  unsigned char *const bytes = storage.as.storage->bytes;
  if (size_bytes > 0) memcpy(bytes, tensor->dl.data, (size_t)size_bytes);
  status = rvm_tensor_view(tensor->dtype, tensor->dl.ndim, tensor->dl.shape, bytes, storage.as.object, result);
  rvm_release(&storage);
  return status;
}

RVM_BUILTIN(alloc_shape_heap) {
  RVM_CHECK(alloc_shape_heap, "ci");
  const int64_t slots = arguments[1].as.i;
  rvm_status status = slots > 0 ? rvm_spend(arguments[0].as.machine, slots / 8, result) : RVM_OK;
  if (status) return status;
  return rvm_tensor_new(RVM_DTYPE_i64, 1, &arguments[1].as.i, result);
}

RVM_BUILTIN(reshape) {
  RVM_CHECK(reshape, "ts");
  rvm_tensor *tensor = arguments[0].as.tensor;
  const rvm_shape *shape = arguments[1].as.shape;
  int64_t old_count = 0, new_count;
  rvm_dims_product(tensor->dl.ndim, tensor->dl.shape, &old_count);
  if (!rvm_dims_product(shape->rank, shape->dims, &new_count))
    return rvm_fail(result, RVM_SHAPE_ERROR,
                    "vm.builtin.reshape: a dimension is negative, or the size exceeds 64 bits");
  if (old_count != new_count)
    return rvm_fail(result, RVM_SHAPE_ERROR,
                    "vm.builtin.reshape: cannot reshape %lld element%s to a shape of %lld element%s",
                    (long long)old_count, RVM_PLURAL(old_count), (long long)new_count, RVM_PLURAL(new_count));
  rvm_object *owner = tensor->owner ? tensor->owner : &tensor->base;
  return rvm_tensor_view(tensor->dtype, shape->rank, shape->dims, tensor->dl.data, owner, result);
}

/* An axis of the expanded tensor: its size, and its stride in the source, which is 0 if the source is repeated along
   the axis. */
typedef struct expanded_axis {
  int64_t count;
  size_t stride_bytes;
} expanded_axis;

/* The arguments of expand_axes that are the same for all axes. */
typedef struct expand_context {
  rvm_machine *machine;
  int32_t dtype;
  size_t run_bytes; /* size of the innermost axes that are not repeated, which are copied at once */
  rvm_value *error;
} expand_context;

enum { COPY_BYTES = 1 << 14 };

/* Expands the `rank` axes at `axes`: writes their elements to `dst`, and returns the end of the written memory.  For a
   repeated axis, writes the first position, and then copies it to the other positions.  If the run exceeds a limit,
   stores the error in *context->error and returns NULL. */
static unsigned char *expand_axes(const expand_context *context, const expanded_axis *axes, int32_t rank,
                                  const unsigned char *src, unsigned char *dst) {
  if (rank == 0) {
    rvm_status status =
        rvm_copy_elements(context->machine, context->dtype, dst, src, context->run_bytes, context->error);
    return status ? NULL : dst + context->run_bytes;
  }
  if (axes->stride_bytes == 0) {
    unsigned char *end = expand_axes(context, axes + 1, rank - 1, src, dst);
    if (!end) return NULL;
    const size_t position_bytes = (size_t)(end - dst);
    /* Each copy contains all positions before it, but at most COPY_BYTES, so that they stay in the cache. */
    const int64_t most = position_bytes < COPY_BYTES ? (int64_t)(COPY_BYTES / position_bytes) : 1;
    for (int64_t done = 1, count; done < axes->count; done += count) {
      count = done < most ? done : most;
      if (count > axes->count - done) count = axes->count - done;
      const size_t bytes = (size_t)count * position_bytes;
      if (rvm_copy_elements(context->machine, context->dtype, end, dst, bytes, context->error)) return NULL;
      end += bytes;
    }
    return end;
  }
  for (int64_t n = 0; n < axes->count && dst; n++)
    dst = expand_axes(context, axes + 1, rank - 1, src + (size_t)n * axes->stride_bytes, dst);
  return dst;
}

/* Fills the end of `axes` with the axes of `shape` that are longer than 1, and returns the index of the first one.  The
   innermost axes along which `tensor` is not repeated are not stored.  They form the run, whose size is stored in
   *run_bytes. */
static int32_t fill_axes(const rvm_tensor *tensor, const rvm_shape *shape, expanded_axis axes[RVM_MAX_RANK],
                         size_t *run_bytes) {
  const int32_t missing = shape->rank - tensor->dl.ndim; /* the number of axes that the tensor lacks */
  int32_t first = RVM_MAX_RANK;
  size_t stride_bytes = *run_bytes = (size_t)rvm_dtype_size_bytes(tensor->dtype);
  for (int32_t i = shape->rank - 1; i >= 0; i--) {
    const int is_repeated = i < missing || tensor->dl.shape[i - missing] != shape->dims[i];
    if (shape->dims[i] == 1) continue;
    if (first == RVM_MAX_RANK && !is_repeated)
      *run_bytes *= (size_t)shape->dims[i];
    else
      axes[--first] = (expanded_axis){shape->dims[i], is_repeated ? 0 : stride_bytes};
    if (!is_repeated) stride_bytes *= (size_t)shape->dims[i];
  }
  return first;
}

RVM_BUILTIN(expand) {
  RVM_CHECK(expand, "cts");
  const rvm_tensor *tensor = arguments[1].as.tensor;
  const rvm_shape *shape = arguments[2].as.shape;
  int32_t rank = shape->rank, missing = rank - tensor->dl.ndim;
  if (missing < 0)
    return rvm_fail(result, RVM_SHAPE_ERROR, "expand: x has rank %d, but the shape has only %d dimension%s",
                    tensor->dl.ndim, rank, RVM_PLURAL(rank));
  int is_same = missing == 0;
  for (int32_t i = missing; i < rank; i++) {
    int64_t got = tensor->dl.shape[i - missing], target = shape->dims[i];
    if (got == target) continue;
    if (got != 1)
      return rvm_fail(result, RVM_SHAPE_ERROR, "expand: dimension %d of x is %lld, expected 1 or %lld", i - missing,
                      (long long)got, (long long)target);
    is_same = 0;
  }
  if (is_same) return return_value(arguments[1], result);
  rvm_status status = rvm_machine_tensor_new(arguments[0].as.machine, tensor->dtype, rank, shape->dims, result);
  if (status || rvm_tensor_size_bytes(result->as.tensor) == 0) return status;
  expanded_axis axes[RVM_MAX_RANK];
  size_t run_bytes;
  const int32_t first = fill_axes(tensor, shape, axes, &run_bytes);
  rvm_value error, expanded = *result;
  const expand_context context = {arguments[0].as.machine, tensor->dtype, run_bytes, &error};
  if (expand_axes(&context, axes + first, RVM_MAX_RANK - first, tensor->dl.data, expanded.as.tensor->dl.data))
    return RVM_OK;
  rvm_release(&expanded);
  *result = error;
  return error.as.error->status;
}

/* Returns whether the elements of two tensors overlap in memory. */
static int shares_memory(const rvm_tensor *a, const rvm_tensor *b) {
  const uintptr_t first = (uintptr_t)a->dl.data, second = (uintptr_t)b->dl.data;
  const int64_t first_bytes = rvm_tensor_size_bytes(a), second_bytes = rvm_tensor_size_bytes(b);
  if (first_bytes <= 0 || second_bytes <= 0) return 0;
  return first < second + (uintptr_t)second_bytes && second < first + (uintptr_t)first_bytes;
}

RVM_BUILTIN(check_update) {
  RVM_CHECK(check_update, "tga*");
  const rvm_tensor *tensor = arguments[0].as.tensor;
  const char *where = arguments[1].as.string->bytes;
  char text[RVM_DESCRIPTION_BYTES];
  if (rvm_tensor_is_read_only(tensor) && rvm_tensor_size_bytes(tensor) > 0)
    return rvm_fail(
        result, RVM_TYPE_ERROR,
        "%s is updated: expected a writable tensor, found a read-only one (a constant, a read-only array, or an "
        "array that had to be copied because it is not contiguous); pass a writable contiguous array",
        where);
  for (int32_t i = 2; i < count; i++) {
    const int64_t tag = arguments[i].tag;
    if (tag == RVM_TAG_TENSOR && shares_memory(tensor, arguments[i].as.tensor))
      return rvm_fail(result, RVM_ARGUMENT_ERROR,
                      "%s is updated, but shares memory with another argument; pass a copy of one of them", where);
    if (tag == RVM_TAG_TUPLE || tag == RVM_TAG_LIST || tag == RVM_TAG_CLOSURE)
      return rvm_fail(
          result, RVM_TYPE_ERROR,
          "%s is updated, but another argument has type %s, whose tensors are not compared with it; declare a tuple "
          "type of tensors, or pass them one by one",
          where, rvm_value_describe(arguments[i], text));
  }
  return return_nil(result);
}

RVM_BUILTIN(update_tensor) {
  RVM_CHECK(update_tensor, "ctt");
  const rvm_tensor *target = arguments[1].as.tensor, *src = arguments[2].as.tensor;
  const int32_t rank = target->dl.ndim;
  if (target->dtype != src->dtype || target->dtype == RVM_DTYPE_str)
    return rvm_fail(result, RVM_TYPE_ERROR,
                    "vm.builtin.update_tensor: expected two tensors of one dtype of numbers, got %s and %s",
                    rvm_dtype_name(target->dtype), rvm_dtype_name(src->dtype));
  if (rank != src->dl.ndim ||
      (rank > 0 && memcmp(target->dl.shape, src->dl.shape, (size_t)rank * sizeof *src->dl.shape) != 0))
    return rvm_fail(result, RVM_SHAPE_ERROR, "vm.builtin.update_tensor: expected two tensors of one shape");
  const int64_t size_bytes = rvm_tensor_size_bytes(target);
  if (size_bytes == 0) return return_nil(result);
  if (rvm_tensor_is_read_only(target))
    return rvm_fail(result, RVM_TYPE_ERROR,
                    "vm.builtin.update_tensor: expected a writable tensor, found a read-only one");
  rvm_status status = rvm_spend(arguments[0].as.machine, size_bytes / 64, result);
  if (status) return status;
  memmove(target->dl.data, src->dl.data, (size_t)size_bytes);
  return return_nil(result);
}

RVM_BUILTIN(to_device) {
  RVM_CHECK(to_device, "ti");
  rvm_status status = check_device(RVM_BUILTIN_to_device, arguments[1].as.i, result);
  return status ? status : return_value(arguments[0], result);
}

RVM_BUILTIN(shape_of) {
  RVM_CHECK(shape_of, "t");
  return rvm_shape_new(arguments[0].as.tensor->dl.ndim, arguments[0].as.tensor->dl.shape, result);
}

RVM_BUILTIN(tensor_to_shape) {
  RVM_CHECK(tensor_to_shape, "t");
  const rvm_tensor *tensor = arguments[0].as.tensor;
  char text[RVM_DESCRIPTION_BYTES];
  if (tensor->dtype != RVM_DTYPE_i64 || tensor->dl.ndim != 1 || tensor->dl.shape[0] > INT32_MAX)
    return rvm_fail(result, RVM_TYPE_ERROR,
                    "vm.builtin.tensor_to_shape: expected a tensor of rank 1 and dtype i64, got %s",
                    rvm_value_describe(arguments[0], text));
  rvm_status status = rvm_spend(rvm_machine_running(), tensor->dl.shape[0] / 8, result);
  if (!status) status = rvm_shape_new((int32_t)tensor->dl.shape[0], tensor->dl.data, result);
  if (status) return status;
  /* Check the dimensions in the shape, because the host may change the elements of the tensor at any time. */
  rvm_value shape = *result;
  for (int64_t i = 0; i < tensor->dl.shape[0] && !status; i++)
    if (shape.as.shape->dims[i] < 0)
      status = rvm_fail(result, RVM_SHAPE_ERROR,
                        "vm.builtin.tensor_to_shape: element %lld is %lld; a dimension must be at least 0",
                        (long long)i, (long long)shape.as.shape->dims[i]);
  if (status) rvm_release(&shape);
  return status;
}

RVM_BUILTIN(shape_to_tensor) {
  RVM_CHECK(shape_to_tensor, "s");
  const rvm_shape *shape = arguments[0].as.shape;
  int64_t length = shape->rank;
  rvm_status status = rvm_spend(rvm_machine_running(), length / 8, result);
  if (!status) status = rvm_tensor_new(RVM_DTYPE_i64, 1, &length, result);
  if (!status && length > 0) memcpy(result->as.tensor->dl.data, shape->dims, (size_t)length * sizeof *shape->dims);
  return status;
}

/* ---- scalars ---- */

/* Stores element `position` of a tensor, which must exist, in *result as a BOOL, an INT or a FLOAT. */
static rvm_status element_at(enum rvm_builtin builtin, const rvm_tensor *tensor, int64_t position, rvm_value *result) {
  if (tensor->dtype > RVM_DTYPE_f64)
    return rvm_fail(result, RVM_TYPE_ERROR, "%s: an element of dtype %s cannot be converted to a scalar",
                    rvm_builtin_row_of(builtin)->name, rvm_dtype_name(tensor->dtype));
  const int64_t size = rvm_dtype_size_bytes(tensor->dtype);
  const char *data = (const char *)tensor->dl.data + position * size;
  uint64_t bits = 0;
  memcpy(&bits, data, (size_t)size); /* little-endian */
  switch (tensor->dtype) {
    case RVM_DTYPE_bool: *result = rvm_bool(bits != 0); return RVM_OK;
    case RVM_DTYPE_i8: *result = rvm_int((int8_t)bits); return RVM_OK;
    case RVM_DTYPE_i16: *result = rvm_int((int16_t)bits); return RVM_OK;
    case RVM_DTYPE_i32: *result = rvm_int((int32_t)bits); return RVM_OK;
    case RVM_DTYPE_f32: {
      float value;
      memcpy(&value, data, sizeof value);
      *result = rvm_float((double)value);
      return RVM_OK;
    }
    case RVM_DTYPE_f64: {
      double value;
      memcpy(&value, data, sizeof value);
      *result = rvm_float(value);
      return RVM_OK;
    }
  }
  if (tensor->dtype == RVM_DTYPE_u64 && bits > INT64_MAX)
    return rvm_fail(result, RVM_TYPE_ERROR, "%s: %llu is out of the range of i64", rvm_builtin_row_of(builtin)->name,
                    (unsigned long long)bits);
  *result = rvm_int((int64_t)bits);
  return RVM_OK;
}

RVM_BUILTIN(tensor_item) {
  RVM_CHECK(tensor_item, "t");
  const rvm_tensor *tensor = arguments[0].as.tensor;
  char text[RVM_DESCRIPTION_BYTES];
  if (tensor->dl.ndim != 0)
    return rvm_fail(result, RVM_TYPE_ERROR, "vm.builtin.tensor_item: expected a tensor of rank 0, got %s",
                    rvm_value_describe(arguments[0], text));
  return element_at(RVM_BUILTIN_tensor_item, tensor, 0, result);
}

RVM_BUILTIN(tensor_element) {
  RVM_CHECK(tensor_element, "ti");
  const rvm_tensor *tensor = arguments[0].as.tensor;
  const int64_t position = arguments[1].as.i;
  const int64_t size = rvm_tensor_count(tensor);
  if (position < 0 || position >= size)
    return rvm_fail(result, RVM_INDEX_ERROR,
                    "vm.builtin.tensor_element: position %lld is out of range; the tensor has %lld element%s",
                    (long long)position, (long long)size, RVM_PLURAL(size));
  return element_at(RVM_BUILTIN_tensor_element, tensor, position, result);
}

/* Stores an INT or a FLOAT in an element of an integer dtype, f32 or f64. */
static void store_number(int32_t dtype, rvm_value number, void *data) {
  double value = number.tag == RVM_TAG_FLOAT ? number.as.f : (double)number.as.i;
  if (dtype == RVM_DTYPE_f32)
    *(float *)data = number.tag == RVM_TAG_FLOAT ? (float)value : (float)number.as.i;
  else if (dtype == RVM_DTYPE_f64)
    *(double *)data = value;
  else
    memcpy(data, &number.as.i, (size_t)rvm_dtype_size_bytes(dtype)); /* little-endian */
}

RVM_BUILTIN(scalar_to_tensor) {
  RVM_CHECK(scalar_to_tensor, "ad");
  rvm_value value = arguments[0];
  int32_t dtype = (int32_t)arguments[1].as.i;
  int is_float = dtype == RVM_DTYPE_f32 || dtype == RVM_DTYPE_f64;
  int is_convertible = (value.tag == RVM_TAG_BOOL && dtype == RVM_DTYPE_bool) ||
                       (value.tag == RVM_TAG_FLOAT && is_float) ||
                       (value.tag == RVM_TAG_INT && dtype != RVM_DTYPE_bool && dtype <= RVM_DTYPE_f64);
  char text[RVM_DESCRIPTION_BYTES];
  if (!is_convertible)
    return rvm_fail(result, RVM_TYPE_ERROR, "vm.builtin.scalar_to_tensor: expected a scalar of dtype %s, got %s",
                    rvm_dtype_name(dtype), rvm_value_describe(value, text));
  if (value.tag == RVM_TAG_INT && !is_float && !rvm_dtype_holds(dtype, value.as.i))
    return rvm_fail(result, RVM_TYPE_ERROR, "vm.builtin.scalar_to_tensor: %lld is out of the range of dtype %s",
                    (long long)value.as.i, rvm_dtype_name(dtype));
  rvm_machine *machine = rvm_machine_running();
  rvm_status status = rvm_tensor_new_private(machine ? rvm_machine_pool(machine) : NULL, dtype, 0, NULL,
                                             rvm_dtype_size_bytes(dtype), result);
  if (status) return status;
  if (dtype == RVM_DTYPE_bool)
    *(uint8_t *)result->as.tensor->dl.data = value.as.i != 0;
  else
    store_number(dtype, value, result->as.tensor->dl.data);
  return RVM_OK;
}

/* ---- tuples ---- */

RVM_BUILTIN(make_tuple) {
  RVM_CHECK(make_tuple, "a*");
  return rvm_tuple_of(count, arguments, result);
}

/* Stores the address of item `index` of a tuple or list in *item.  Fails with INDEX_ERROR if the index is out of
   range. */
static rvm_status tuple_item(enum rvm_builtin builtin, rvm_value tuple, int64_t index, rvm_value **item,
                             rvm_value *result) {
  int32_t size;
  rvm_value *items = rvm_value_items(tuple, &size);
  if (index < 0 || index >= size)
    return rvm_fail(result, RVM_INDEX_ERROR, "%s: index %lld is out of range; the tuple has %d item%s",
                    rvm_builtin_row_of(builtin)->name, (long long)index, size, RVM_PLURAL(size));
  *item = &items[index];
  return RVM_OK;
}

RVM_BUILTIN(tuple_getitem) {
  RVM_CHECK(tuple_getitem, "ui");
  rvm_value *item;
  rvm_status status = tuple_item(RVM_BUILTIN_tuple_getitem, arguments[0], arguments[1].as.i, &item, result);
  return status ? status : return_value(*item, result);
}

RVM_BUILTIN(tuple_reset_item) {
  RVM_CHECK(tuple_reset_item, "ui");
  rvm_value *item;
  rvm_status status = tuple_item(RVM_BUILTIN_tuple_reset_item, arguments[0], arguments[1].as.i, &item, result);
  if (status) return status;
  rvm_release(item);
  return return_nil(result);
}

/* ---- functions ---- */

/* A closure over another closure refers to the function of the inner closure.  It captures its own values, followed by
   those of the inner closure. */
RVM_BUILTIN(make_closure) {
  RVM_CHECK(make_closure, "fa*");
  const rvm_closure *inner = arguments[0].tag == RVM_TAG_CLOSURE ? arguments[0].as.closure : NULL;
  int32_t bound_count = count - 1, inner_count = inner ? inner->captured_count : 0;
  rvm_function *function = inner ? inner->function : arguments[0].as.function;
  if (inner_count > INT32_MAX - bound_count) return rvm_out_of_memory(result);
  rvm_status status = rvm_spend(rvm_machine_running(), inner_count, result);
  if (!status) status = rvm_closure_new(function, bound_count + inner_count, result);
  if (status) return status;
  rvm_value *captured = result->as.closure->captured;
  for (int32_t i = 0; i < bound_count; i++) return_value(arguments[1 + i], &captured[i]);
  for (int32_t i = 0; i < inner_count; i++) return_value(inner->captured[i], &captured[bound_count + i]);
  return RVM_OK;
}

RVM_BUILTIN(invoke_closure) {
  RVM_CHECK(invoke_closure, "cfa*");
  return rvm_machine_apply(arguments[0].as.machine, arguments[1], arguments + 2, count - 2, result);
}

RVM_BUILTIN(invoke_pure_closure) {
  RVM_CHECK(invoke_pure_closure, "cfa*");
  return rvm_machine_apply(arguments[0].as.machine, arguments[1], arguments + 2, count - 2, result);
}

RVM_BUILTIN(call_py_func) {
  RVM_CHECK(call_py_func, "cga*");
  const char *name = arguments[1].as.string->bytes;
  rvm_packed_function function;
  void *function_self;
  if (!rvm_machine_may_call(arguments[0].as.machine, name)) return rvm_fail_forbidden(name, result);
  if (!rvm_function_find(name, &function, &function_self)) return rvm_fail_unknown(name, result);
  rvm_status status = rvm_spend(arguments[0].as.machine, RVM_LONG_CALL_COST, result);
  if (status) return status;
  status = function(function_self, arguments + 2, count - 2, result);
  rvm_machine_poll_next(arguments[0].as.machine);
  return rvm_machine_admit_result(arguments[0].as.machine, status, result);
}

RVM_BUILTIN(random_bits) {
  RVM_CHECK(random_bits, "c");
  *result = rvm_int((int64_t)rvm_machine_random(arguments[0].as.machine));
  return RVM_OK;
}

RVM_BUILTIN(print) {
  RVM_CHECK(print, "ca*");
  rvm_machine *machine = arguments[0].as.machine;
  rvm_status status = rvm_spend(machine, RVM_LONG_CALL_COST, result);
  if (!status) status = rvm_machine_print(machine, arguments + 1, count - 1, result);
  if (status) return status;
  rvm_machine_poll_next(machine);
  return return_nil(result);
}
