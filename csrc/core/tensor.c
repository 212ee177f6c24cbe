/* tensor.c: constructs and inspects tensors and shapes. */
#include "tensor.h"

#include <string.h>

#include "object_freelist.h"

/* Computes `unit` times the product of the dimensions and returns 1.  Returns 0 if a dimension is negative, or if the
   product of the nonzero dimensions overflows.  NumPy also rejects shapes such as (2^62, 0). */
static int32_t dims_product(int32_t rank, const int64_t *dims, int64_t unit, int64_t *product) {
  int is_empty = 0;
  for (int32_t i = 0; i < rank; i++) {
    if (dims[i] < 0 || (dims[i] > 0 && !rvm_multiply(unit, dims[i], &unit))) return 0;
    if (dims[i] == 0) is_empty = 1;
  }
  *product = is_empty ? 0 : unit;
  return 1;
}

int32_t rvm_dims_product(int32_t rank, const int64_t *dims, int64_t *product) {
  return dims_product(rank, dims, 1, product);
}

int32_t rvm_dims_size_bytes(int32_t dtype, int32_t rank, const int64_t *dims, int64_t *size_bytes) {
  return dims_product(rank, dims, rvm_dtype_size_bytes(dtype), size_bytes);
}

int64_t rvm_tensor_count(const rvm_tensor *tensor) {
  int64_t count = 0;
  rvm_dims_product(tensor->dl.ndim, tensor->dl.shape, &count);
  return count;
}

int32_t rvm_tensor_is_own(const rvm_tensor *tensor) {
  while (tensor->base.references >= 0 && !tensor->release) {
    if (!tensor->owner || tensor->owner->tag != RVM_TAG_TENSOR) return 1;
    tensor = (const rvm_tensor *)tensor->owner;
  }
  return tensor->base.references >= 0 && rvm_tensor_donation(tensor) != RVM_DONATION_NONE;
}

int32_t rvm_tensor_is_read_only(const rvm_tensor *tensor) {
  while (tensor->base.references >= 0 && !tensor->is_read_only) {
    if (!tensor->owner || tensor->owner->tag != RVM_TAG_TENSOR) return 0;
    tensor = (const rvm_tensor *)tensor->owner;
  }
  return 1;
}

rvm_status rvm_tensor_set_read_only(rvm_value tensor, rvm_value *error) {
  char text[RVM_DESCRIPTION_BYTES];
  if (tensor.tag != RVM_TAG_TENSOR || !rvm_value_is_sound(tensor))
    return rvm_fail(error, RVM_TYPE_ERROR, "rvm_tensor_set_read_only: expected a tensor, got %s",
                    rvm_value_describe(tensor, text));
  if (tensor.as.tensor->base.references >= 0) tensor.as.tensor->is_read_only = 1; /* constants are always read-only */
  return RVM_OK;
}

int64_t rvm_tensor_size_bytes(const rvm_tensor *tensor) {
  if (!tensor || tensor->base.tag != RVM_TAG_TENSOR) return -1;
  int64_t size_bytes = 0;
  rvm_dims_size_bytes(tensor->dtype, tensor->dl.ndim, tensor->dl.shape, &size_bytes);
  return size_bytes;
}

/* Checks the properties of a tensor to be created and stores the size of its elements in *size_bytes. */
static rvm_status tensor_check(int32_t dtype, int32_t rank, const int64_t *dims, int64_t *size_bytes,
                               rvm_value *result) {
  if (dtype < 0 || dtype >= RVM_DTYPE_COUNT)
    return rvm_fail(result, RVM_TYPE_ERROR, "tensor: unknown dtype number %d", dtype);
  if (rank < 0) return rvm_fail(result, RVM_SHAPE_ERROR, "tensor: expected a rank of at least 0, got %d", rank);
  if (!dims && rank > 0)
    return rvm_fail(result, RVM_ARGUMENT_ERROR, "tensor: dims is NULL, expected %d dimension%s", rank,
                    RVM_PLURAL(rank));
  if (rvm_dims_size_bytes(dtype, rank, dims, size_bytes)) return RVM_OK;
  return rvm_fail(result, RVM_SHAPE_ERROR, "tensor: a dimension is negative, or the size exceeds 64 bits");
}

/* Releases the elements of a tensor of strings.  This is the callback `release` of such tensors. */
static void release_strings(void *tensor) {
  rvm_string **elements = rvm_tensor_strings(tensor);
  int64_t count = rvm_tensor_count(tensor);
  for (int64_t i = 0; i < count; i++)
    if (elements[i]) rvm_object_release(&elements[i]->base);
}

/* A size for tensor_allocate: the elements are not in the block of the tensor. */
enum { ELEMENTS_ELSEWHERE = -1 };

/* Creates a tensor in a block that also has its dimensions.  If `size_bytes` is ELEMENTS_ELSEWHERE, the tensor refers
   to the elements at `data`.  Otherwise the block also has the elements, aligned and zeroed, and `data` is ignored. */
static rvm_status tensor_allocate(int32_t dtype, int32_t rank, const int64_t *dims, void *data, int64_t size_bytes,
                                  rvm_value *result) {
  if (rank > RVM_MAX_RANK)
    return rvm_fail(result, RVM_SHAPE_ERROR, "tensor: rank %d exceeds the maximum of %d", rank, RVM_MAX_RANK);
  size_t header_bytes = sizeof(rvm_tensor) + (size_t)rank * sizeof *dims;
  if (size_bytes > RVM_LARGEST_BYTES)
    return rvm_fail(result, RVM_OUT_OF_MEMORY, "tensor: cannot allocate %lld bytes", (long long)size_bytes);
  int32_t class;
  const int has_elements = size_bytes != ELEMENTS_ELSEWHERE;
  rvm_tensor *tensor = !has_elements
                           ? rvm_object_allocate(header_bytes, &class)
                           : rvm_object_allocate_zeroed(header_bytes + RVM_ALIGNMENT + (size_t)size_bytes, &class);
  if (!tensor) return rvm_out_of_memory(result);
  int64_t *own_dims = (int64_t *)(tensor + 1);
  for (int32_t i = 0; i < rank; i++) {
    own_dims[i] = dims[i];
    __asm__ volatile(""); /* Otherwise compilers make a string instruction of the loop, which is slow for few items. */
  }
  if (has_elements) data = (void *)rvm_align((int64_t)(intptr_t)(own_dims + rank));
  /* The fields are set one by one, because compilers copy a structure of this size with slow string instructions. */
  tensor->base = (rvm_object){.tag = RVM_TAG_TENSOR, .references = 1};
  tensor->dtype = dtype;
  tensor->memory_class = class;
  tensor->dl.data = data;
  tensor->dl.device_type = 1;
  tensor->dl.device_id = 0;
  tensor->dl.ndim = rank;
  tensor->dl.dtype = rvm_dtype_dl(dtype);
  tensor->dl.shape = own_dims;
  tensor->dl.strides = NULL;
  tensor->dl.byte_offset = 0;
  tensor->owner = NULL;
  tensor->release = NULL;
  tensor->release_argument = NULL;
  tensor->is_read_only = 0;
  if (dtype == RVM_DTYPE_str && has_elements) {
    tensor->release = release_strings;
    tensor->release_argument = tensor;
  }
  *result = rvm_object_value(&tensor->base);
  return RVM_OK;
}

rvm_status rvm_tensor_new(int32_t dtype, int32_t rank, const int64_t *dims, rvm_value *result) {
  int64_t size_bytes;
  RVM_EXPECT_POINTER(result, NULL);
  rvm_status status = tensor_check(dtype, rank, dims, &size_bytes, result);
  return status ? status : tensor_allocate(dtype, rank, dims, NULL, size_bytes, result);
}

rvm_status rvm_tensor_wrap(int32_t dtype, int32_t rank, const int64_t *dims, void *data, void (*release)(void *),
                           void *release_argument, rvm_value *result) {
  int64_t size_bytes;
  RVM_EXPECT_POINTER(result, NULL);
  if (dtype == RVM_DTYPE_str)
    return rvm_fail(result, RVM_TYPE_ERROR,
                    "tensor: strings cannot refer to memory of the host; create a tensor from packed strings");
  rvm_status status = tensor_check(dtype, rank, dims, &size_bytes, result);
  if (status) return status;
  RVM_EXPECT_ARRAY(data, size_bytes, result);
  if ((status = tensor_allocate(dtype, rank, dims, data, ELEMENTS_ELSEWHERE, result))) return status;
  result->as.tensor->release = release;
  result->as.tensor->release_argument = release_argument;
  return RVM_OK;
}

rvm_status rvm_tensor_relabel(rvm_value *tensor, int32_t dtype, rvm_value *error) {
  RVM_EXPECT_POINTER(tensor, error);
  char text[RVM_DESCRIPTION_BYTES];
  if (tensor->tag != RVM_TAG_TENSOR || !rvm_value_is_sound(*tensor))
    return rvm_fail(error, RVM_TYPE_ERROR, "rvm_tensor_relabel: expected a tensor, got %s",
                    rvm_value_describe(*tensor, text));
  rvm_tensor *object = tensor->as.tensor;
  if (dtype < 0 || dtype >= RVM_DTYPE_COUNT)
    return rvm_fail(error, RVM_TYPE_ERROR, "rvm_tensor_relabel: unknown dtype number %d", dtype);
  if (rvm_dtype_size_bytes(dtype) != rvm_dtype_size_bytes(object->dtype) ||
      (dtype == RVM_DTYPE_str) != (object->dtype == RVM_DTYPE_str))
    return rvm_fail(
        error, RVM_TYPE_ERROR,
        "rvm_tensor_relabel: cannot change dtype %s to %s; both must have the same element size, and neither "
        "may be str",
        rvm_dtype_name(object->dtype), rvm_dtype_name(dtype));
  if (object->base.references != 1)
    return rvm_fail(error, RVM_ARGUMENT_ERROR,
                    "rvm_tensor_relabel: the tensor must have a single reference, but others hold it too");
  object->dtype = dtype;
  object->dl.dtype = rvm_dtype_dl(dtype);
  return RVM_OK;
}

rvm_status rvm_tensor_view(int32_t dtype, int32_t rank, const int64_t *dims, void *bytes, rvm_object *owner,
                           rvm_value *result) {
  rvm_status status = tensor_allocate(dtype, rank, dims, bytes, ELEMENTS_ELSEWHERE, result);
  if (status) return status;
  rvm_retain(rvm_object_value(owner));
  result->as.tensor->owner = owner;
  return RVM_OK;
}

rvm_status rvm_shape_allocate(int32_t rank, rvm_value *result) {
  int32_t class;
  rvm_shape *shape = rvm_object_allocate(sizeof *shape + (size_t)rank * sizeof *shape->dims, &class);
  if (!shape) return rvm_out_of_memory(result);
  shape->base = (rvm_object){.tag = RVM_TAG_SHAPE, .references = 1};
  shape->rank = rank;
  shape->memory_class = class;
  *result = rvm_object_value(&shape->base);
  return RVM_OK;
}

rvm_status rvm_shape_new(int32_t rank, const int64_t *dims, rvm_value *result) {
  RVM_EXPECT_POINTER(result, NULL);
  if (rank < 0) return rvm_fail(result, RVM_SHAPE_ERROR, "rvm_shape_new: expected a rank of at least 0, got %d", rank);
  rvm_status status = rvm_shape_allocate(rank, result);
  if (status || rank == 0) return status;
  if (dims)
    memcpy(result->as.shape->dims, dims, (size_t)rank * sizeof *dims);
  else
    memset(result->as.shape->dims, 0, (size_t)rank * sizeof *dims);
  return RVM_OK;
}

rvm_status rvm_value_truth(rvm_value condition, int32_t *truth, rvm_value *error) {
  if (condition.tag == RVM_TAG_BOOL || condition.tag == RVM_TAG_INT) {
    *truth = condition.as.i != 0;
    return RVM_OK;
  }
  const rvm_tensor *tensor = condition.as.tensor;
  if (condition.tag != RVM_TAG_TENSOR || tensor->dl.ndim != 0 || tensor->dtype > RVM_DTYPE_u64) {
    char text[RVM_DESCRIPTION_BYTES];
    return rvm_fail(error, RVM_TYPE_ERROR,
                    "condition: expected a bool, an int or a tensor of rank 0 and bool or integer dtype, got %s",
                    rvm_value_describe(condition, text));
  }
  const unsigned char *bytes = tensor->dl.data;
  *truth = 0;
  for (int32_t i = 0; i < rvm_dtype_size_bytes(tensor->dtype); i++) *truth |= bytes[i] != 0;
  return RVM_OK;
}
