/* shape.c: builtins that check values and compute shapes.  A function of the program stores the values of its symbolic
   dimensions in a shape heap: a tensor of rank 1 and dtype i64 with one element, called a slot, for each symbolic
   dimension.  A code-value pair (shape_codes.def) describes a dimension. */
#include <stdio.h>
#include <string.h>

#include "arguments.h"
#include "number_format.h"

enum {
#define SHAPE_CODE(name, number, meaning) SHAPE_##name = number,
#include "shape_codes.def"
#undef SHAPE_CODE
#define DIM_OPERATOR(name, number, form) DIM_##name = number,
#include "dim_operators.def"
#undef DIM_OPERATOR
};

/* Stores the address of slot `index` of the heap in *slot.  If there is no such slot, stores NULL and fails with
   INDEX_ERROR. */
static rvm_status heap_slot(rvm_value heap, int64_t index, int64_t **slot, rvm_value *result) {
  *slot = NULL;
  int64_t slots = heap.tag == RVM_TAG_TENSOR ? heap.as.tensor->dl.shape[0] : 0;
  if (index < 0 || index >= slots)
    return rvm_fail(result, RVM_INDEX_ERROR, "shape heap: slot %lld is out of range; the heap has %lld slot%s",
                    (long long)index, (long long)slots, RVM_PLURAL(slots));
  *slot = (int64_t *)heap.as.tensor->dl.data + index;
  return RVM_OK;
}

/* Reads the number that a code-value pair denotes: an immediate or the contents of a heap slot. */
static rvm_status read_dim(rvm_value heap, int64_t code, int64_t value, int64_t *dim, rvm_value *result) {
  *dim = value;
  if (code == SHAPE_EQUAL) return RVM_OK;
  if (code != SHAPE_EQUAL_HEAP)
    return rvm_fail(result, RVM_TYPE_ERROR,
                    "shape code %lld is not valid here; expected the code of a number or of a heap slot",
                    (long long)code);
  int64_t *slot;
  rvm_status status = heap_slot(heap, value, &slot, result);
  if (!status) *dim = *slot;
  return status;
}

/* Matches `got` with a code-value pair: stores `got` in a heap slot, or compares it with the expected number.  If `got`
   is not the expected number, sets *matches to 0 and *expected to the expected number.  Otherwise sets *matches to
   1. */
static rvm_status match_dim(rvm_value heap, int64_t code, int64_t value, int64_t got, int *matches, int64_t *expected,
                            rvm_value *result) {
  rvm_status status;
  *matches = 1;
  if (code == SHAPE_ANY) return RVM_OK;
  if (code == SHAPE_STORE) {
    int64_t *slot;
    if (!(status = heap_slot(heap, value, &slot, result))) *slot = got;
    return status;
  }
  status = read_dim(heap, code, value, expected, result);
  if (!status) *matches = *expected == got;
  return status;
}

/* Checks that `count` arguments of a builtin are `rank` code-value pairs of ints. */
static rvm_status check_pairs(enum rvm_builtin builtin, const rvm_value *arguments, int64_t rank, int32_t count,
                              rvm_value *result) {
  if (rank < 0 || rank > count / 2 || count != rank * 2) return rvm_fail_count(builtin, count, result);
  return rvm_check_arguments(builtin, "i*", arguments, count, result);
}

static rvm_status done(rvm_value *result) {
  *result = (rvm_value){.tag = RVM_TAG_NIL};
  return RVM_OK;
}

/* Matches a dimension with a code-value pair, like match_dim, and returns 1.  Returns 0 if the dimension does not
   match, or if the pair is invalid. */
static inline int pair_matches(const rvm_value *pair, int64_t dim, int64_t *slots, uint64_t slot_count) {
  if (pair[0].tag != RVM_TAG_INT || pair[1].tag != RVM_TAG_INT) return 0;
  const int64_t value = pair[1].as.i;
  const int is_slot = (uint64_t)value < slot_count;
  switch (pair[0].as.i) {
    case SHAPE_ANY: return 1;
    case SHAPE_EQUAL: return value == dim;
    case SHAPE_EQUAL_HEAP: return is_slot && slots[value] == dim;
    case SHAPE_STORE:
      if (is_slot) slots[value] = dim;
      return is_slot;
    default: return 0;
  }
}

/* The fast path of match_shape, whose arguments are a value, the heap, a rank, a code-value pair for each dimension,
   and the start of error messages.  Stores dimensions in heap slots and returns 1 if the arguments are valid and the
   shape matches.  Returns 0 in all other cases, in which some slots may have been written. */
static int shape_matches(const rvm_value *arguments, int32_t count) {
  const rvm_value value = arguments[0], heap = arguments[1];
  int is_tensor = value.tag == RVM_TAG_TENSOR, has_heap = heap.tag != RVM_TAG_NIL;
  if (!is_tensor && value.tag != RVM_TAG_SHAPE) return 0;
  const int64_t *dims = is_tensor ? value.as.tensor->dl.shape : value.as.shape->dims;
  int32_t rank = is_tensor ? value.as.tensor->dl.ndim : value.as.shape->rank;
  if (count != 4 + 2 * (int64_t)rank) return 0;
  const int has_rank = arguments[2].tag == RVM_TAG_INT && arguments[2].as.i == rank;
  const int has_where = arguments[count - 1].tag == RVM_TAG_STRING;
  if (!has_rank || !has_where || (has_heap && !rvm_is_heap(heap))) return 0;
  int64_t *slots = has_heap ? heap.as.tensor->dl.data : NULL;
  uint64_t slot_count = has_heap ? (uint64_t)heap.as.tensor->dl.shape[0] : 0;
  for (int32_t i = 0; i < rank; i++)
    if (!pair_matches(arguments + 3 + 2 * i, dims[i], slots, slot_count)) return 0;
  return 1;
}

RVM_BUILTIN(match_shape) {
  if (count >= 4 && shape_matches(arguments, count)) return done(result);
  RVM_CHECK(match_shape, "ahia*");
  char text[RVM_DESCRIPTION_BYTES];
  rvm_value value = arguments[0], heap = arguments[1];
  int64_t rank = arguments[2].as.i;
  const rvm_value *pairs = arguments + 3, *where = arguments + count - 1;
  rvm_status status;
  if ((status = check_pairs(RVM_BUILTIN_match_shape, pairs, rank, count - 4, result)) ||
      (status = rvm_check_arguments(RVM_BUILTIN_match_shape, "g", where, 1, result)))
    return status;
  const char *name = where->as.string->bytes;
  if (value.tag != RVM_TAG_TENSOR && value.tag != RVM_TAG_SHAPE)
    return rvm_fail(result, RVM_TYPE_ERROR, "%s: expected a tensor or a shape, got %s", name,
                    rvm_value_describe(value, text));
  int is_tensor = value.tag == RVM_TAG_TENSOR;
  const int64_t *dims = is_tensor ? value.as.tensor->dl.shape : value.as.shape->dims;
  int32_t got_rank = is_tensor ? value.as.tensor->dl.ndim : value.as.shape->rank;
  if (rank != got_rank)
    return rvm_fail(result, RVM_TYPE_ERROR, "%s: expected rank %lld, got %d", name, (long long)rank, got_rank);
  for (int32_t i = 0; i < got_rank; i++) {
    int matches;
    int64_t expected;
    if ((status = match_dim(heap, pairs[2 * i].as.i, pairs[2 * i + 1].as.i, dims[i], &matches, &expected, result)))
      return status;
    if (!matches)
      return rvm_fail(result, RVM_SHAPE_ERROR, "%s: expected dimension %d to be %lld, got %lld", name, i,
                      (long long)expected, (long long)dims[i]);
  }
  return done(result);
}

RVM_BUILTIN(match_prim_value) {
  RVM_CHECK(match_prim_value, "ahiig");
  const int64_t code = arguments[2].as.i, value = arguments[3].as.i;
  const char *name = arguments[4].as.string->bytes;
  char text[RVM_DESCRIPTION_BYTES];
  if (arguments[0].tag != RVM_TAG_INT)
    return rvm_fail(result, RVM_TYPE_ERROR, "%s: expected int, got %s", name, rvm_value_describe(arguments[0], text));
  int matches;
  int64_t expected, got = arguments[0].as.i;
  rvm_status status = match_dim(arguments[1], code, value, got, &matches, &expected, result);
  if (status) return status;
  if (matches) return done(result);
  return rvm_fail(result, RVM_SHAPE_ERROR, "%s: expected %lld, got %lld", name, (long long)expected, (long long)got);
}

RVM_BUILTIN(read_dim) {
  RVM_CHECK(read_dim, "hii");
  int64_t dim;
  rvm_status status = read_dim(arguments[0], arguments[1].as.i, arguments[2].as.i, &dim, result);
  if (!status) *result = rvm_int(dim);
  return status;
}

RVM_BUILTIN(make_shape) {
  RVM_CHECK(make_shape, "hia*");
  int64_t rank = arguments[1].as.i;
  const rvm_value *pairs = arguments + 2;
  rvm_status status = check_pairs(RVM_BUILTIN_make_shape, pairs, rank, count - 2, result);
  if (status || (status = rvm_shape_allocate((int32_t)rank, result))) return status;
  rvm_value shape = *result;
  for (int32_t i = 0; i < rank && !status; i++)
    status = read_dim(arguments[0], pairs[2 * i].as.i, pairs[2 * i + 1].as.i, &shape.as.shape->dims[i], result);
  if (status) rvm_release(&shape);
  return status;
}

/* ---- arithmetic ---- */

/* Divides, rounding toward minus infinity, and returns 1.  Returns 0 on overflow or division by zero. */
static int floor_divide(int64_t a, int64_t b, int64_t *quotient) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return 0;
  *quotient = a / b - (a % b != 0 && (a < 0) != (b < 0));
  return 1;
}

/* Computes the remainder of a division that rounds toward minus infinity, and returns 1.  The remainder has the sign of
   b.  Returns 0 if b is 0. */
static int floor_remainder(int64_t a, int64_t b, int64_t *remainder) {
  if (b == 0) return 0;
  *remainder = b == -1 ? 0 : a % b;
  if (*remainder != 0 && (*remainder < 0) != (b < 0)) *remainder += b;
  return 1;
}

/* Applies an operator of dim_operators.def and returns 1.  Returns 0 if the operation overflows or divides by zero. */
static int compute(int64_t operation, int64_t a, int64_t b, int64_t *dim) {
  switch (operation) {
    case DIM_add: return rvm_add(a, b, dim);
    case DIM_sub: return rvm_subtract(a, b, dim);
    case DIM_mul: return rvm_multiply(a, b, dim);
    case DIM_floordiv: return floor_divide(a, b, dim);
    case DIM_mod: return floor_remainder(a, b, dim);
    case DIM_min: *dim = a < b ? a : b; return 1;
    default: *dim = a > b ? a : b; return 1;
  }
}

RVM_BUILTIN(compute_dim) {
  RVM_CHECK(compute_dim, "hiiiiii");
  static const char *const names[] = {
#define DIM_OPERATOR(name, number, form) [number] = #name,
#include "dim_operators.def"
#undef DIM_OPERATOR
  };
  const rvm_value heap = arguments[0];
  const int64_t slot_index = arguments[1].as.i, operation = arguments[2].as.i;
  const int64_t a_code = arguments[3].as.i, a_value = arguments[4].as.i;
  const int64_t b_code = arguments[5].as.i, b_value = arguments[6].as.i;
  if (operation < 0 || operation >= (int64_t)(sizeof names / sizeof *names))
    return rvm_fail(result, RVM_TYPE_ERROR, "vm.builtin.compute_dim: unknown operator %lld", (long long)operation);
  int64_t a, b, dim, *slot;
  rvm_status status;
  if ((status = read_dim(heap, a_code, a_value, &a, result)) ||
      (status = read_dim(heap, b_code, b_value, &b, result)) || (status = heap_slot(heap, slot_index, &slot, result)))
    return status;
  if (!compute(operation, a, b, &dim))
    return rvm_fail(result, RVM_SHAPE_ERROR, "vm.builtin.compute_dim: %s of %lld and %lld overflows or divides by zero",
                    names[operation], (long long)a, (long long)b);
  *slot = dim;
  return done(result);
}

/* ---- type checks ---- */

RVM_BUILTIN(check_tensor_info) {
  RVM_CHECK(check_tensor_info, "aiDg");
  rvm_value value = arguments[0];
  int64_t rank = arguments[1].as.i;
  int any_dtype = arguments[2].tag == RVM_TAG_NIL;
  const rvm_tensor *tensor = value.as.tensor;
  if (value.tag == RVM_TAG_TENSOR) {
    const int has_rank = rank < 0 || rank == tensor->dl.ndim;
    const int has_dtype = any_dtype || arguments[2].as.i == tensor->dtype;
    if (has_rank && has_dtype) return done(result);
  }
  char of_rank[32] = "", of_dtype[32] = "", got[RVM_DESCRIPTION_BYTES];
  if (rank >= 0) snprintf(of_rank, sizeof of_rank, " of rank %lld", (long long)rank);
  if (!any_dtype)
    snprintf(of_dtype, sizeof of_dtype, " %s dtype %s", rank >= 0 ? "and" : "of", rvm_dtype_name(arguments[2].as.i));
  return rvm_fail(result, RVM_TYPE_ERROR, "%s: expected a tensor%s%s, got %s", arguments[3].as.string->bytes, of_rank,
                  of_dtype, rvm_value_describe(value, got));
}

RVM_BUILTIN(check_shape_info) {
  RVM_CHECK(check_shape_info, "aig");
  rvm_value value = arguments[0];
  int64_t rank = arguments[1].as.i;
  const char *name = arguments[2].as.string->bytes;
  char got[RVM_DESCRIPTION_BYTES];
  if (value.tag != RVM_TAG_SHAPE)
    return rvm_fail(result, RVM_TYPE_ERROR, "%s: expected a shape, got %s", name, rvm_value_describe(value, got));
  if (rank < 0 || rank == value.as.shape->rank) return done(result);
  return rvm_fail(result, RVM_TYPE_ERROR, "%s: expected a shape of rank %lld, got rank %d", name, (long long)rank,
                  value.as.shape->rank);
}

RVM_BUILTIN(check_tuple_info) {
  RVM_CHECK(check_tuple_info, "aig");
  rvm_value value = arguments[0];
  const char *name = arguments[2].as.string->bytes;
  char got[RVM_DESCRIPTION_BYTES];
  int32_t size;
  if (value.tag != RVM_TAG_TUPLE && value.tag != RVM_TAG_LIST)
    return rvm_fail(result, RVM_TYPE_ERROR, "%s: expected a tuple, got %s", name, rvm_value_describe(value, got));
  rvm_value_items(value, &size);
  if (arguments[1].as.i == size) return done(result);
  return rvm_fail(result, RVM_TYPE_ERROR, "%s: expected a tuple of %lld item%s, got %d", name,
                  (long long)arguments[1].as.i, RVM_PLURAL(arguments[1].as.i), size);
}

RVM_BUILTIN(check_func_info) {
  RVM_CHECK(check_func_info, "ag");
  char got[RVM_DESCRIPTION_BYTES];
  if (arguments[0].tag == RVM_TAG_FUNCTION || arguments[0].tag == RVM_TAG_CLOSURE) return done(result);
  return rvm_fail(result, RVM_TYPE_ERROR, "%s: expected a function, got %s", arguments[1].as.string->bytes,
                  rvm_value_describe(arguments[0], got));
}

RVM_BUILTIN(check_pure_func_info) {
  RVM_CHECK(check_pure_func_info, "ag");
  char got[RVM_DESCRIPTION_BYTES];
  const char *name = arguments[1].as.string->bytes;
  if (rvm_is_pure(arguments[0])) return done(result);
  if (arguments[0].tag != RVM_TAG_FUNCTION && arguments[0].tag != RVM_TAG_CLOSURE)
    return rvm_fail(result, RVM_TYPE_ERROR, "%s: expected a function, got %s", name,
                    rvm_value_describe(arguments[0], got));
  return rvm_fail(
      result, RVM_TYPE_ERROR,
      "%s: expected a pure function, got %s, which may have effects; use => instead of -> in the type to accept it",
      name, rvm_value_describe(arguments[0], got));
}

RVM_BUILTIN(check_prim_value_info) {
  RVM_CHECK(check_prim_value_info, "adg");
  rvm_value value = arguments[0];
  int64_t dtype = arguments[1].as.i;
  const char *name = arguments[2].as.string->bytes;
  int64_t tag = dtype == RVM_DTYPE_bool ? RVM_TAG_BOOL : dtype <= RVM_DTYPE_u64 ? RVM_TAG_INT : RVM_TAG_FLOAT;
  char got[RVM_DESCRIPTION_BYTES];
  if (value.tag != tag)
    return rvm_fail(result, RVM_TYPE_ERROR, "%s: expected a scalar of dtype %s, got %s", name, rvm_dtype_name(dtype),
                    rvm_value_describe(value, got));
  if (tag != RVM_TAG_INT || rvm_dtype_holds(dtype, value.as.i)) return done(result);
  return rvm_fail(result, RVM_TYPE_ERROR, "%s: %lld is out of the range of dtype %s", name, (long long)value.as.i,
                  rvm_dtype_name(dtype));
}

/* Fails with SHAPE_ERROR and `message`, whose first two {} are replaced by the sizes. */
static rvm_status fail_sizes(const char *message, int64_t left, int64_t right, rvm_value *result) {
  const char *first = strstr(message, "{}"), *second = first ? strstr(first + 2, "{}") : NULL;
  if (!second) return rvm_fail(result, RVM_SHAPE_ERROR, "%s", message);
  return rvm_fail(result, RVM_SHAPE_ERROR, "%.*s%lld%.*s%lld%s", (int)(first - message), message, (long long)left,
                  (int)(second - first - 2), first + 2, (long long)right, second + 2);
}

RVM_BUILTIN(check_equal) {
  RVM_CHECK(check_equal, "iig");
  int64_t left = arguments[0].as.i, right = arguments[1].as.i;
  return left == right ? done(result) : fail_sizes(arguments[2].as.string->bytes, left, right, result);
}

RVM_BUILTIN(check_at_most) {
  RVM_CHECK(check_at_most, "iig");
  int64_t left = arguments[0].as.i, right = arguments[1].as.i;
  return left <= right ? done(result) : fail_sizes(arguments[2].as.string->bytes, left, right, result);
}

/* Writes the index of the element at the flat position `position` of a tensor, such as "1, 2", and returns the text. */
static const char *write_index(const rvm_tensor *tensor, int64_t position, char *text, size_t bytes) {
  size_t used = 0;
  for (int32_t axis = 0; axis < tensor->dl.ndim && used < bytes; axis++) {
    int64_t stride = 1;
    for (int32_t inner = axis + 1; inner < tensor->dl.ndim; inner++) stride *= tensor->dl.shape[inner];
    int length = snprintf(text + used, bytes - used, "%s%lld", axis ? ", " : "",
                          (long long)(position / stride % tensor->dl.shape[axis]));
    used += length < 0 ? 0 : (size_t)length;
  }
  if (!tensor->dl.ndim) text[0] = '\0';
  return text;
}

/* Writes an element as text, which ends with a NUL. */
static const char *write_element(const rvm_tensor *tensor, int64_t position, char text[RVM_NUMBER_BYTES]) {
  const char *element = (const char *)tensor->dl.data + position * rvm_dtype_size_bytes(tensor->dtype);
  text[rvm_number_write(tensor->dtype, element, text)] = '\0';
  return text;
}

/* The number of elements after which check_elements charges its work, so that a limit can end the run. */
enum { CHECKED_AT_ONCE = 4096 };

RVM_BUILTIN(check_elements) {
  RVM_CHECK(check_elements, "tttg");
  const rvm_tensor *differs = arguments[0].as.tensor, *found = arguments[1].as.tensor,
                   *expected = arguments[2].as.tensor;
  if (differs->dtype != RVM_DTYPE_bool || found->dtype > RVM_DTYPE_f16 || expected->dtype > RVM_DTYPE_f16)
    return rvm_fail(result, RVM_TYPE_ERROR,
                    "vm.builtin.check_elements: expected a tensor of bools, and two tensors of numbers");
  int64_t size = rvm_tensor_count(differs), wrong = 0, first = 0;
  if (rvm_tensor_count(found) != size || rvm_tensor_count(expected) != size)
    return rvm_fail(result, RVM_SHAPE_ERROR, "vm.builtin.check_elements: expected tensors with equally many elements");
  const uint8_t *flags = differs->dl.data;
  rvm_machine *machine = rvm_machine_running();
  for (int64_t start = 0; start < size; start += CHECKED_AT_ONCE) {
    int64_t stop = size - start < CHECKED_AT_ONCE ? size : start + CHECKED_AT_ONCE;
    for (int64_t i = start; i < stop; i++) {
      if (!flags[i]) continue;
      if (wrong == 0) first = i;
      wrong++;
    }
    rvm_status status = rvm_spend(machine, (stop - start) / 64 + 1, result);
    if (status) return status;
  }
  if (!wrong) return done(result);
  char index[256], one[RVM_NUMBER_BYTES], other[RVM_NUMBER_BYTES];
  return rvm_fail(result, RVM_ASSERTION_ERROR, "%s: element [%s] is %s, expected %s (%lld of %lld elements differ)",
                  arguments[3].as.string->bytes, write_index(differs, first, index, sizeof index),
                  write_element(found, first, one), write_element(expected, first, other), (long long)wrong,
                  (long long)size);
}
