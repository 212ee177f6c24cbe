/* test_strings.c: tensors of strings: their elements, their release, and failing allocations. */
#include "allocation.h"
#include "registry.h"
#include "check.h"
#include "machine.h"
#include "string_tensor.h"

/* The packed strings "ab", "" and "c". */
static const struct {
  int64_t ends[3];
  char text[3];
} __attribute__((packed)) packed = {{2, 2, 3}, {'a', 'b', 'c'}};

static rvm_value three_strings(void) {
  rvm_value tensor;
  MAKE(tensor, rvm_tensor_of_strings(1, (int64_t[]){3}, &packed, sizeof packed, &tensor));
  return tensor;
}

static void packed_strings_come_back(void) {
  rvm_value tensor = three_strings();
  char again[sizeof packed];
  CHECK_INT(rvm_tensor_packed_bytes(tensor.as.tensor), sizeof packed);
  CHECK_OK(rvm_tensor_pack(tensor.as.tensor, again, sizeof again, &tensor), tensor);
  CHECK(memcmp(again, &packed, sizeof packed) == 0);
  rvm_value_release(&tensor);
}

static void wrong_ends_are_found(void) {
  rvm_value error;
  int64_t ends[][2] = {{2, 1}, {-1, 1}, {0, 2}, {0, 0}, {INT64_MAX, 1}};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    char bytes[17];
    memcpy(bytes, ends[i], 16);
    CHECK_FAILS(rvm_tensor_of_strings(1, (int64_t[]){2}, bytes, 17, &error), RVM_SHAPE_ERROR,
                "do not hold one string for each element", error);
  }
  CHECK_FAILS(rvm_tensor_of_strings(1, (int64_t[]){3}, &packed, 23, &error), RVM_SHAPE_ERROR,
              "do not hold one string for each element", error);
  CHECK_FAILS(rvm_tensor_of_strings(1, (int64_t[]){-1}, &packed, 23, &error), RVM_SHAPE_ERROR,
              "do not hold one string for each element", error);
  CHECK_FAILS(rvm_tensor_of_strings(-1, NULL, &packed, 0, &error), RVM_SHAPE_ERROR,
              "do not hold one string for each element", error);
}

static void bytes_are_no_strings(void) {
  rvm_value error, storage;
  rvm_pool *pool = rvm_pool_new(0);
  char bytes[8];
  CHECK_FAILS(rvm_tensor_wrap(RVM_DTYPE_str, 0, NULL, bytes, NULL, NULL, &error), RVM_TYPE_ERROR,
              "strings cannot refer to memory of the host", error);
  MAKE(storage, rvm_storage_new(pool, 64, &storage));
  rvm_value arguments[] = {storage, int_value(0), shape_value(0, NULL), {.tag = RVM_TAG_DTYPE, .as.i = RVM_DTYPE_str}};
  CHECK_FAILS(rvm_builtin_alloc_tensor(NULL, arguments, 4, &error), RVM_TYPE_ERROR,
              "a tensor of strings cannot be placed", error);
  rvm_value_release(&arguments[2]);
  rvm_value_release(&storage);
  rvm_pool_close(pool);
}

static void views_keep_strings(void) {
  rvm_value tensor = three_strings(), view;
  rvm_value arguments[] = {tensor, shape_value(2, (int64_t[]){3, 1})};
  MAKE(view, rvm_builtin_reshape(NULL, arguments, 2, &view));
  rvm_value_release(&tensor);
  CHECK(memcmp(rvm_tensor_strings(view.as.tensor)[0]->bytes, "ab", 3) == 0);
  rvm_value_release(&view);
  rvm_value_release(&arguments[1]);
}

static void joined_and_split_strings_are_shared(void) {
  rvm_value tensor = three_strings(), list, joined, context = {.tag = RVM_TAG_CONTEXT};
  rvm_machine machine = {.pool = NULL, .head = {.fuel = 1000}};
  context.as.machine = &machine;
  MAKE(list, rvm_builtin_list_unstack(NULL, (rvm_value[]){context, tensor, int_value(0)}, 3, &list));
  rvm_value_release(&tensor);
  MAKE(joined, rvm_builtin_list_stack(NULL, (rvm_value[]){context, list, int_value(0)}, 3, &joined));
  CHECK_INT(rvm_tensor_strings(joined.as.tensor)[0]->base.references, 2);
  rvm_value_release(&list);
  CHECK_INT(rvm_tensor_strings(joined.as.tensor)[0]->base.references, 1);
  CHECK(rvm_tensor_strings(joined.as.tensor)[2]->bytes[0] == 'c');
  rvm_value_release(&joined);
}

/* Makes strings in several ways.  Each allocation fails in turn. */
static rvm_status make_all(rvm_value *result) {
  rvm_value tensor, parts[6];
  rvm_status status = rvm_tensor_of_strings(1, (int64_t[]){3}, &packed, sizeof packed, &tensor);
  *result = tensor;
  if (status) return status;
  int32_t made = 0;
  rvm_value separator = {.tag = RVM_TAG_NIL};
  status = rvm_tensor_new(RVM_DTYPE_str, 0, NULL, &separator);
  if (status) {
    *result = separator;
    rvm_value_release(&tensor);
    return status;
  }
  const rvm_value two[] = {tensor, tensor, int_value(-1)}, split[] = {tensor, separator, int_value(-1)};
  status = rvm_builtin_string_concat(NULL, two, 2, &parts[made]);
  if (!status) status = rvm_builtin_string_positions(NULL, two, 1, &parts[++made]);
  if (!status) status = rvm_builtin_string_take(NULL, (rvm_value[]){parts[1], tensor}, 2, &parts[++made]);
  if (!status) status = rvm_builtin_string_case(NULL, (rvm_value[]){tensor, int_value(1)}, 2, &parts[++made]);
  if (!status) status = rvm_builtin_string_split(NULL, split, 3, &parts[++made]);
  if (!status) status = rvm_builtin_string_of_number(NULL, (rvm_value[]){parts[1]}, 1, &parts[++made]);
  *result = status ? parts[made] : (rvm_value){.tag = RVM_TAG_NIL};
  for (int32_t i = 0; i < made + !status; i++) rvm_value_release(&parts[i]);
  rvm_value_release(&tensor);
  rvm_value_release(&separator);
  return status;
}

static void memory_runs_out(void) {
  rvm_value result;
  for (long allocation = 0;; allocation++) {
    allocations_left = allocation;
    rvm_status status = make_all(&result);
    int survived = allocations_left >= 0;
    allocations_left = -1;
    CHECK_INT(status, survived ? RVM_OK : RVM_OUT_OF_MEMORY);
    rvm_value_release(&result);
    if (survived) break;
  }
}

int main(void) {
  packed_strings_come_back();
  wrong_ends_are_found();
  bytes_are_no_strings();
  views_keep_strings();
  joined_and_split_strings_are_shared();
  memory_runs_out();
  return CHECK_RESULT();
}
