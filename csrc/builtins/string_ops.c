/* string_ops.c: builtins that move, compare and find strings. */
#include <string.h>

#include "arguments.h"
#include "string_builtins.h"

/* ---- moving ---- */

RVM_BUILTIN(string_positions) {
  RVM_CHECK(string_positions, "tt*");
  const rvm_tensor *tensor = arguments[0].as.tensor;
  int64_t first = 0, size = rvm_tensor_count(tensor);
  for (int32_t k = 1; k < count; k++)
    if (!rvm_add(first, rvm_tensor_count(arguments[k].as.tensor), &first)) return rvm_out_of_memory(result);
  rvm_status status = rvm_tensor_new(RVM_DTYPE_i64, tensor->dl.ndim, tensor->dl.shape, result);
  if (status) return status;
  enum { CHUNK = 1 << 16 };
  rvm_machine *machine = rvm_machine_running();
  rvm_value made = *result;
  int64_t *positions = made.as.tensor->dl.data;
  for (int64_t i = 0; i < size && !status; i++) {
    positions[i] = first + i;
    if ((i + 1) % CHUNK == 0) status = rvm_spend(machine, CHUNK / 8, result);
  }
  if (!status) status = rvm_spend(machine, size % CHUNK / 8, result);
  if (status) rvm_release(&made);
  return status;
}

/* The element at a position in the tensors laid one behind the other; NULL and 0: there is none. */
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
  const rvm_tensor *places = arguments[0].as.tensor;
  const volatile int64_t *positions = places->dl.data; /* each is read once: the host may change it meanwhile */
  rvm_value taken;
  status = rvm_tensor_new(RVM_DTYPE_str, places->dl.ndim, places->dl.shape, &taken);
  *result = taken;
  if (status) return status;
  rvm_string **elements = rvm_tensor_strings(taken.as.tensor), *string;
  rvm_machine *machine = rvm_machine_running();
  int64_t size = rvm_tensor_count(places);
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

/* ---- under broadcasting ---- */

/* Two tensors of strings and the dimensions that they broadcast to, which are to be freed. */
typedef struct pair {
  const rvm_dltensor *x, *y;
  int32_t rank;
  int64_t *dims;
} pair;

static int64_t dim_from_the_end(const rvm_dltensor *tensor, int32_t axis) {
  return axis < tensor->ndim ? tensor->shape[tensor->ndim - 1 - axis] : 1;
}

static rvm_status broadcast(const char *name, const rvm_value *arguments, pair *both, rvm_value *result) {
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
  *both = (pair){x, y, rank, dims};
  return RVM_OK;
}

/* The cost of finding the two strings that an element of the result is made of. */
static int64_t broadcast_cost(const pair *both) { return 1 + both->rank / 4; }

/* The string of `tensor` that element `index` of the result of a broadcast is made of. */
static rvm_text broadcast_text(const pair *both, const rvm_dltensor *tensor, int64_t index) {
  int64_t place = 0, stride = 1;
  for (int32_t axis = 0; axis < tensor->ndim; axis++) {
    int64_t dim = both->dims[both->rank - 1 - axis], own = dim_from_the_end(tensor, axis);
    if (own != 1) place += index % dim * stride;
    index /= dim;
    stride *= own;
  }
  return rvm_string_text(((rvm_string **)tensor->data)[place]);
}

/* How much of long strings is looked at between two looks at the limits. */
enum { CHUNK_BYTES = 1 << 20 };

static rvm_status compare(rvm_machine *machine, rvm_text x, rvm_text y, int *equal, rvm_value *error) {
  rvm_status status = RVM_OK;
  *equal = x.length == y.length;
  for (int64_t at = 0, size; at < x.length && *equal && !status; at += size) {
    size = x.length - at < CHUNK_BYTES ? x.length - at : CHUNK_BYTES;
    *equal = memcmp(x.bytes + at, y.bytes + at, (size_t)size) == 0;
    status = rvm_spend(machine, size / 64, error);
  }
  return status;
}

static rvm_status hash(rvm_machine *machine, rvm_text text, uint32_t *crc, rvm_value *error) {
  rvm_status status = RVM_OK;
  *crc = 0;
  for (int64_t at = 0, size; at < text.length && !status; at += size) {
    size = text.length - at < CHUNK_BYTES ? text.length - at : CHUNK_BYTES;
    *crc = rvm_crc32c(*crc, text.bytes + at, size);
    status = rvm_spend(machine, size / 64, error);
  }
  return status;
}

RVM_BUILTIN(string_equal) {
  RVM_CHECK(string_equal, "tt");
  pair both;
  rvm_status status = broadcast("string_equal", arguments, &both, result);
  if (status) return status;
  rvm_machine *machine = rvm_machine_running();
  rvm_value made;
  status = rvm_tensor_new(RVM_DTYPE_bool, both.rank, both.dims, &made);
  *result = made;
  int64_t size = status ? 0 : rvm_tensor_count(made.as.tensor);
  for (int64_t i = 0; i < size && !status; i++) {
    int equal = 0;
    status = rvm_spend(machine, broadcast_cost(&both), result);
    if (!status)
      status = compare(machine, broadcast_text(&both, both.x, i), broadcast_text(&both, both.y, i), &equal, result);
    ((uint8_t *)made.as.tensor->dl.data)[i] = (uint8_t)equal;
    if (status) rvm_release(&made);
  }
  rvm_free(both.dims);
  return status;
}

RVM_BUILTIN(string_concat) {
  RVM_CHECK(string_concat, "tt");
  pair both;
  rvm_status status = broadcast("string_concat", arguments, &both, result);
  if (status) return status;
  rvm_machine *machine = rvm_machine_running();
  rvm_value joined;
  status = rvm_tensor_new(RVM_DTYPE_str, both.rank, both.dims, &joined);
  *result = joined;
  int64_t size = status ? 0 : rvm_tensor_count(joined.as.tensor);
  for (int64_t i = 0; i < size && !status; i++) {
    rvm_string **element = &rvm_tensor_strings(joined.as.tensor)[i];
    rvm_text x = broadcast_text(&both, both.x, i), y = broadcast_text(&both, both.y, i);
    status = rvm_spend(machine, broadcast_cost(&both), result);
    if (!status) status = rvm_string_join(machine, element, x, y, result);
    if (status) rvm_value_release(&joined);
  }
  rvm_free(both.dims);
  return status;
}

/* ---- finding ---- */

/* The place of a string among the keys, -1: it is none of them.  The table has each key once: INDEX_ERROR where it does
 * not. */
static rvm_status find(rvm_machine *machine, rvm_text text, const rvm_tensor *keys, const rvm_tensor *table,
                       int64_t *found, rvm_value *error) {
  int64_t slots = table->dl.shape[0], key_count = keys->dl.shape[0];
  const volatile int64_t *places = table->dl.data; /* each is read once: the host may change it meanwhile */
  uint32_t crc;
  int equal;
  rvm_status status = hash(machine, text, &crc, error);
  *found = -1;
  for (int64_t k = 0, slot = slots > 0 ? crc % slots : 0; k < slots && !status;
       k++, slot = slot + 1 < slots ? slot + 1 : 0) {
    int64_t place = places[slot];
    if (place == -1) return RVM_OK;
    if (place < 0 || place >= key_count || k == key_count)
      return rvm_fail(error, RVM_INDEX_ERROR,
                      "vm.builtin.string_lookup: the hash table does not belong to these %lld keys",
                      (long long)key_count);
    if ((status = rvm_spend(machine, 1, error)) ||
        (status = compare(machine, text, rvm_string_text(rvm_tensor_strings(keys)[place]), &equal, error)))
      return status;
    if (equal) {
      *found = place;
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
  rvm_value made;
  status = rvm_tensor_new(RVM_DTYPE_i64, x->dl.ndim, x->dl.shape, &made);
  *result = made;
  int64_t size = status ? 0 : rvm_tensor_count(x);
  for (int64_t i = 0; i < size && !status; i++) {
    rvm_text text = rvm_string_text(rvm_tensor_strings(x)[i]);
    status = find(machine, text, keys, table, (int64_t *)made.as.tensor->dl.data + i, result);
    if (status) rvm_release(&made);
  }
  return status;
}
