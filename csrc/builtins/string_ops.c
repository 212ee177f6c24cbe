/* string_ops.c: builtins that gather, compare, concatenate and look up strings. */
#include <string.h>

#include "arguments.h"
#include "string_builtins.h"

/* ---- gathering ---- */

RVM_BUILTIN(string_positions) {
  RVM_CHECK(string_positions, "tt*");
  const rvm_tensor *tensor = arguments[0].as.tensor;
  int64_t size = rvm_tensor_count(tensor);
  int64_t first = 0; /* the first position, which is the number of elements of the other tensors */
  for (int32_t k = 1; k < count; k++)
    if (!rvm_add(first, rvm_tensor_count(arguments[k].as.tensor), &first)) return rvm_out_of_memory(result);
  rvm_status status = rvm_tensor_new(RVM_DTYPE_i64, tensor->dl.ndim, tensor->dl.shape, result);
  if (status) return status;
  enum { CHUNK = 1 << 16 }; /* positions that are charged together; 8 positions (64 bytes) cost 1 unit of fuel */
  rvm_machine *machine = rvm_machine_running();
  rvm_value output = *result;
  int64_t *positions = output.as.tensor->dl.data;
  for (int64_t i = 0; i < size && !status; i++) {
    positions[i] = first + i;
    if ((i + 1) % CHUNK == 0) status = rvm_spend(machine, CHUNK / 8, result);
  }
  if (!status) status = rvm_spend(machine, size % CHUNK / 8, result);
  if (status) rvm_release(&output);
  return status;
}

/* Stores the element at a position in the concatenation of `count` tensors in *string (borrowed), and returns 1.
   Position -1 is the empty string, NULL.  Returns 0 if the position is out of range. */
static int string_at(const rvm_value *tensors, int32_t count, int64_t position, rvm_string **string) {
  *string = NULL;
  for (int32_t k = 0; k < count && position >= 0; k++) {
    int64_t size = rvm_tensor_count(tensors[k].as.tensor);
    if (position < size) {
      *string = rvm_tensor_strings(tensors[k].as.tensor)[position];
      return 1;
    }
    position -= size;
  }
  return position == -1;
}

RVM_BUILTIN(string_take) {
  RVM_CHECK(string_take, "tt*");
  rvm_status status = rvm_expect_dtype("string_take", 0, arguments[0], RVM_DTYPE_i64, result);
  for (int32_t k = 1; k < count && !status; k++)
    status = rvm_expect_dtype("string_take", k, arguments[k], RVM_DTYPE_str, result);
  if (status) return status;
  const rvm_tensor *indices = arguments[0].as.tensor;
  /* volatile: each position is read only once, because the host may change it at any time. */
  const volatile int64_t *positions = indices->dl.data;
  if ((status = rvm_tensor_new(RVM_DTYPE_str, indices->dl.ndim, indices->dl.shape, result))) return status;
  rvm_value taken = *result;
  rvm_string **elements = rvm_tensor_strings(taken.as.tensor), *string;
  rvm_machine *machine = rvm_machine_running();
  int64_t size = rvm_tensor_count(indices);
  for (int64_t i = 0; i < size && !status; i++) {
    const int64_t position = positions[i];
    if (string_at(arguments + 1, count - 1, position, &string)) {
      rvm_string_share(&elements[i], string);
      status = rvm_spend(machine, count, result);
    } else {
      status = rvm_fail(result, RVM_INDEX_ERROR, "vm.builtin.string_take: position %lld is out of range",
                        (long long)position);
    }
  }
  if (status) rvm_release(&taken);
  return status;
}

/* ---- broadcasting ---- */

/* Two tensors of strings and the dimensions that they broadcast to.  The owner frees `dims`. */
typedef struct broadcast_pair {
  const rvm_dltensor *x, *y;
  int32_t rank;
  int64_t *dims;
} broadcast_pair;

/* Returns the dimension of an axis counted from the last one, or 1 if the tensor does not have the axis. */
static int64_t dim_from_the_end(const rvm_dltensor *tensor, int32_t axis) {
  return axis < tensor->ndim ? tensor->shape[tensor->ndim - 1 - axis] : 1;
}

/* Checks that the first two arguments are tensors of strings that can be broadcast together, and initializes *pair. */
static rvm_status broadcast(const char *name, const rvm_value *arguments, broadcast_pair *pair, rvm_value *result) {
  rvm_status status = rvm_expect_dtype(name, 0, arguments[0], RVM_DTYPE_str, result);
  if (!status) status = rvm_expect_dtype(name, 1, arguments[1], RVM_DTYPE_str, result);
  if (status) return status;
  const rvm_dltensor *x = &arguments[0].as.tensor->dl, *y = &arguments[1].as.tensor->dl;
  int32_t rank = x->ndim > y->ndim ? x->ndim : y->ndim;
  int64_t *dims = rvm_allocate((size_t)(rank + 1) * sizeof *dims);
  if (!dims) return rvm_out_of_memory(result);
  for (int32_t axis = 0; axis < rank; axis++) {
    int64_t a = dim_from_the_end(x, axis), b = dim_from_the_end(y, axis);
    if (a != b && a != 1 && b != 1) {
      rvm_free(dims);
      return rvm_fail(result, RVM_SHAPE_ERROR, "vm.builtin.%s: dimensions %lld and %lld cannot be broadcast together",
                      name, (long long)a, (long long)b);
    }
    dims[rank - 1 - axis] = a == 1 ? b : a;
  }
  *pair = (broadcast_pair){x, y, rank, dims};
  return RVM_OK;
}

/* Returns the fuel for finding the two operands of an element of the result (broadcast_text). */
static int64_t broadcast_cost(const broadcast_pair *pair) { return 1 + pair->rank / 4; }

/* Returns the string of `tensor`, one of the pair, that is the operand of element `index` of the result. */
static rvm_text broadcast_text(const broadcast_pair *pair, const rvm_dltensor *tensor, int64_t index) {
  int64_t position = 0, stride = 1;
  for (int32_t axis = 0; axis < tensor->ndim; axis++) {
    int64_t dim = pair->dims[pair->rank - 1 - axis], own = dim_from_the_end(tensor, axis);
    if (own != 1) position += index % dim * stride;
    index /= dim;
    stride *= own;
  }
  return rvm_string_text(((rvm_string **)tensor->data)[position]);
}

/* The number of bytes of a string to process between two checks of the limits. */
enum { CHUNK_BYTES = 1 << 20 };

/* Stores whether two texts are equal in *equal, and charges the work. */
static rvm_status compare(rvm_machine *machine, rvm_text x, rvm_text y, int *equal, rvm_value *error) {
  rvm_status status = RVM_OK;
  *equal = x.length == y.length;
  for (int64_t offset = 0, size; offset < x.length && *equal && !status; offset += size) {
    size = x.length - offset < CHUNK_BYTES ? x.length - offset : CHUNK_BYTES;
    *equal = memcmp(x.bytes + offset, y.bytes + offset, (size_t)size) == 0;
    status = rvm_spend(machine, size / 64, error);
  }
  return status;
}

/* Stores the CRC-32C of a text in *crc, and charges the work. */
static rvm_status hash(rvm_machine *machine, rvm_text text, uint32_t *crc, rvm_value *error) {
  rvm_status status = RVM_OK;
  *crc = 0;
  for (int64_t offset = 0, size; offset < text.length && !status; offset += size) {
    size = text.length - offset < CHUNK_BYTES ? text.length - offset : CHUNK_BYTES;
    *crc = rvm_crc32c(*crc, text.bytes + offset, size);
    status = rvm_spend(machine, size / 64, error);
  }
  return status;
}

/* Creates a tensor that states for each element of the result whether its operands are equal. */
static rvm_status equal_strings(const broadcast_pair *pair, rvm_value *result) {
  rvm_status status = rvm_tensor_new(RVM_DTYPE_bool, pair->rank, pair->dims, result);
  if (status) return status;
  rvm_machine *machine = rvm_machine_running();
  rvm_value output = *result;
  uint8_t *are_equal = output.as.tensor->dl.data;
  const int64_t size = rvm_tensor_count(output.as.tensor);
  for (int64_t i = 0; i < size && !status; i++) {
    rvm_text x = broadcast_text(pair, pair->x, i), y = broadcast_text(pair, pair->y, i);
    int equal = 0;
    status = rvm_spend(machine, broadcast_cost(pair), result);
    if (!status) status = compare(machine, x, y, &equal, result);
    are_equal[i] = (uint8_t)equal;
  }
  if (status) rvm_release(&output);
  return status;
}

RVM_BUILTIN(string_equal) {
  RVM_CHECK(string_equal, "tt");
  broadcast_pair pair;
  rvm_status status = broadcast("string_equal", arguments, &pair, result);
  if (status) return status;
  status = equal_strings(&pair, result);
  rvm_free(pair.dims);
  return status;
}

/* Creates a tensor of strings: each element is the concatenation of the corresponding elements of x and y. */
static rvm_status concat_strings(const broadcast_pair *pair, rvm_value *result) {
  rvm_status status = rvm_tensor_new(RVM_DTYPE_str, pair->rank, pair->dims, result);
  if (status) return status;
  rvm_machine *machine = rvm_machine_running();
  rvm_value joined = *result;
  rvm_string **elements = rvm_tensor_strings(joined.as.tensor);
  const int64_t size = rvm_tensor_count(joined.as.tensor);
  for (int64_t i = 0; i < size && !status; i++) {
    rvm_text x = broadcast_text(pair, pair->x, i), y = broadcast_text(pair, pair->y, i);
    status = rvm_spend(machine, broadcast_cost(pair), result);
    if (!status) status = rvm_string_join(machine, &elements[i], x, y, result);
  }
  if (status) rvm_release(&joined);
  return status;
}

RVM_BUILTIN(string_concat) {
  RVM_CHECK(string_concat, "tt");
  broadcast_pair pair;
  rvm_status status = broadcast("string_concat", arguments, &pair, result);
  if (status) return status;
  status = concat_strings(&pair, result);
  rvm_free(pair.dims);
  return status;
}

/* ---- lookup ---- */

/* Stores the index of a text among the keys in *found, or -1 if it is not a key.  `table` is a hash table with linear
   probing that starts at slot crc % slots.  A slot has the index of a key, or -1 if it is free, and each key is in one
   slot.  Fails with INDEX_ERROR if it finds an index that is not that of a key, or more used slots than keys. */
static rvm_status find(rvm_machine *machine, rvm_text text, const rvm_tensor *keys, const rvm_tensor *table,
                       int64_t *found, rvm_value *error) {
  int64_t slots = table->dl.shape[0], key_count = keys->dl.shape[0];
  /* volatile: each slot is read only once, because the host may change it at any time. */
  const volatile int64_t *slot_keys = table->dl.data;
  uint32_t crc;
  int equal;
  rvm_status status = hash(machine, text, &crc, error);
  *found = -1;
  for (int64_t k = 0, slot = slots > 0 ? crc % slots : 0; k < slots && !status;
       k++, slot = slot + 1 < slots ? slot + 1 : 0) {
    int64_t key = slot_keys[slot];
    if (key == -1) return RVM_OK;
    const int all_keys_were_tried = k == key_count;
    if (key < 0 || key >= key_count || all_keys_were_tried)
      return rvm_fail(error, RVM_INDEX_ERROR,
                      "vm.builtin.string_lookup: the hash table does not belong to these %lld keys",
                      (long long)key_count);
    if ((status = rvm_spend(machine, 1, error)) ||
        (status = compare(machine, text, rvm_string_text(rvm_tensor_strings(keys)[key]), &equal, error)))
      return status;
    if (equal) {
      *found = key;
      return RVM_OK;
    }
  }
  return status;
}

RVM_BUILTIN(string_lookup) {
  RVM_CHECK(string_lookup, "ttt");
  static const int32_t dtypes[] = {RVM_DTYPE_str, RVM_DTYPE_str, RVM_DTYPE_i64};
  rvm_status status = RVM_OK;
  for (int32_t k = 0; k < 3 && !status; k++)
    status = rvm_expect_dtype("string_lookup", k, arguments[k], dtypes[k], result);
  if (status) return status;
  const rvm_tensor *x = arguments[0].as.tensor, *keys = arguments[1].as.tensor, *table = arguments[2].as.tensor;
  if (keys->dl.ndim != 1 || table->dl.ndim != 1)
    return rvm_fail(result, RVM_SHAPE_ERROR,
                    "vm.builtin.string_lookup: expected keys and a table of rank 1, got ranks %d and %d", keys->dl.ndim,
                    table->dl.ndim);
  rvm_machine *machine = rvm_machine_running();
  if ((status = rvm_tensor_new(RVM_DTYPE_i64, x->dl.ndim, x->dl.shape, result))) return status;
  rvm_value output = *result;
  int64_t *indices = output.as.tensor->dl.data;
  const int64_t size = rvm_tensor_count(x);
  for (int64_t i = 0; i < size && !status; i++)
    status = find(machine, rvm_string_text(rvm_tensor_strings(x)[i]), keys, table, &indices[i], result);
  if (status) rvm_release(&output);
  return status;
}
