/* test_values.c: values: reference counts, deep release, tensors over memory of every origin, descriptions,
   checksums. */
#include "allocation.h"
#include "check.h"
#include "tensor.h"

static int released;
static void count_release(void *argument) { released += *(int *)argument; }

static rvm_value wrapped_tensor(float *data, int *argument) {
  rvm_value value;
  const int64_t dims[] = {2};
  MAKE(value, rvm_tensor_wrap(RVM_DTYPE_f32, 1, dims, data, count_release, argument, &value));
  return value;
}

static void a_chain_of_a_million_tuples_is_released(void) {
  static float data[2];
  int one = 1;
  rvm_value chain = wrapped_tensor(data, &one);
  released = 0;
  for (int i = 0; i < 1000000; i++) {
    rvm_value items[] = {int_value(i), chain, chain};
    rvm_value outer = tuple_value(2 + i % 2, items);
    rvm_value_release(&chain);
    chain = outer;
  }
  rvm_value_release(&chain);
  CHECK_INT(released, 1);
  CHECK_INT(chain.tag, RVM_TAG_NIL);
}

static void a_chain_of_closures_is_released(void) {
  rvm_value chain = string_value("innermost");
  for (int i = 0; i < 300000; i++) {
    rvm_value outer;
    MAKE(outer, rvm_closure_new(NULL, i % 2 + 1, &outer));
    outer.as.closure->captured[i % 2] = chain;
    chain = tuple_value(1, &outer);
    rvm_value_release(&outer);
  }
  rvm_value_release(&chain);
}

static void a_shared_item_outlives_its_tuple(void) {
  rvm_value item = string_value("shared");
  rvm_value tuple = tuple_value(2, (rvm_value[]){item, item});
  CHECK_INT(item.as.object->references, 3);
  rvm_value_release(&tuple);
  CHECK_INT(item.as.object->references, 1);
  rvm_value_release(&item);
  rvm_value empty = tuple_value(0, NULL);
  rvm_value_release(&empty);
}

static void tensors_are_zeroed_aligned_and_compact(void) {
  const int64_t dims[] = {3, 5};
  rvm_value value = tensor_value(RVM_DTYPE_f64, 2, dims);
  rvm_tensor *tensor = value.as.tensor;
  CHECK_INT(rvm_tensor_size_bytes(tensor), 120);
  CHECK_INT((intptr_t)tensor->dl.data % 64, 0);
  CHECK_INT(tensor->dl.dtype.code, 2);
  CHECK_INT(tensor->dl.dtype.bits, 64);
  CHECK(tensor->dl.strides == NULL && tensor->dl.device_type == 1);
  for (int i = 0; i < 15; i++) CHECK(((double *)tensor->dl.data)[i] == 0);
  rvm_value_release(&value);
  const int64_t none[] = {0, 7};
  value = tensor_value(RVM_DTYPE_i8, 2, none);
  CHECK_INT(rvm_tensor_size_bytes(value.as.tensor), 0);
  rvm_value_release(&value);
  value = tensor_value(RVM_DTYPE_i64, 0, NULL);
  CHECK_INT(rvm_tensor_size_bytes(value.as.tensor), 8);
  rvm_value_release(&value);
}

static void impossible_tensors_are_refused(void) {
  rvm_value value;
  const int64_t negative[] = {2, -1}, vast[] = {INT64_MAX, INT64_MAX}, large[] = {(int64_t)1 << 60};
  CHECK_FAILS(rvm_tensor_new(RVM_DTYPE_f32, 2, negative, &value), RVM_SHAPE_ERROR, "negative", value);
  CHECK_FAILS(rvm_tensor_new(RVM_DTYPE_f32, 2, vast, &value), RVM_SHAPE_ERROR, "64 bits", value);
  CHECK_FAILS(rvm_tensor_new(RVM_DTYPE_i8, 1, large, &value), RVM_OUT_OF_MEMORY, "cannot allocate", value);
  CHECK_FAILS(rvm_tensor_new(RVM_DTYPE_COUNT, 0, NULL, &value), RVM_TYPE_ERROR, "unknown dtype", value);
  CHECK_FAILS(rvm_tensor_new(RVM_DTYPE_f32, -1, NULL, &value), RVM_SHAPE_ERROR, "expected a rank of at least 0", value);
}

static void a_view_keeps_the_bytes_of_its_owner(void) {
  static float data[2] = {1, 2};
  int ten = 10;
  const int64_t dims[] = {2, 1};
  rvm_value whole = wrapped_tensor(data, &ten), view;
  released = 0;
  MAKE(view, rvm_tensor_view(RVM_DTYPE_f32, 2, dims, data, whole.as.object, &view));
  rvm_value_release(&whole);
  CHECK_INT(released, 0);
  rvm_value_release(&view);
  CHECK_INT(released, 10);
}

static void immortal_objects_are_not_counted(void) {
  rvm_value text = string_value("constant");
  text.as.object->references = -1;
  rvm_value copy = text;
  rvm_value_retain(copy);
  rvm_value_release(&copy);
  CHECK_INT(text.as.object->references, -1);
  text.as.object->references = 1;
  rvm_value_release(&text);
}

static void values_are_described(void) {
  char text[RVM_DESCRIPTION_BYTES];
  const int64_t dims[] = {1, 1};
  rvm_value tensor = tensor_value(RVM_DTYPE_u16, 2, dims);
  CHECK(strcmp(rvm_value_describe(tensor, text), "a tensor of rank 2 and dtype u16") == 0);
  CHECK(strcmp(rvm_value_describe(int_value(3), text), "int") == 0);
  CHECK(strcmp(rvm_value_describe((rvm_value){.tag = 99}, text), "unknown") == 0);
  CHECK(strcmp(rvm_value_describe((rvm_value){.tag = -1}, text), "unknown") == 0);
  rvm_value_release(&tensor);
}

static void conditions_are_read_by_their_type(void) {
  rvm_value error;
  int32_t truth = -1;
  for (int32_t dtype = 0; dtype < RVM_DTYPE_COUNT; dtype++) {
    rvm_value scalar = tensor_value(dtype, 0, NULL);
    unsigned char *bytes = scalar.as.tensor->dl.data;
    if (dtype >= RVM_DTYPE_f32) {
      CHECK_FAILS(rvm_value_truth(scalar, &truth, &error), RVM_TYPE_ERROR, "condition: expected", error);
    } else {
      CHECK_INT(rvm_value_truth(scalar, &truth, &error), RVM_OK);
      CHECK_INT(truth, 0);
      bytes[scalar.as.tensor->dl.dtype.bits / 8 - 1] = 0x80; /* only the highest byte */
      CHECK_INT(rvm_value_truth(scalar, &truth, &error), RVM_OK);
      CHECK_INT(truth, 1);
    }
    rvm_value_release(&scalar);
  }
  const int64_t one[] = {1};
  rvm_value vector = tensor_value(RVM_DTYPE_bool, 1, one);
  CHECK_FAILS(rvm_value_truth(vector, &truth, &error), RVM_TYPE_ERROR, "rank 1", error);
  rvm_value_release(&vector);
}

static void a_trace_has_twenty_lines_and_a_count(void) {
  rvm_value error;
  char name[300];
  memset(name, 'n', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  rvm_fail(&error, RVM_TYPE_ERROR, "%s", name);
  for (int i = 0; i < 1000; i++) rvm_error_add_frame(error, i == 0 ? "innermost" : name, i);
  rvm_error_close_trace(error);
  const char *trace = error.as.error->trace;
  int lines = 1;
  for (const char *at = trace; *at; at++) lines += *at == '\n';
  CHECK_INT(lines, 21);
  CHECK(strncmp(trace, "  in innermost at instruction 0\n  in nnn", 39) == 0);
  CHECK(strstr(trace, "\n  ... and 980 more") != NULL);
  rvm_value_release(&error);
}

static uint32_t slow_crc(uint32_t crc, const unsigned char *bytes, int64_t size_bytes) {
  for (crc = ~crc; size_bytes > 0; size_bytes--) {
    crc ^= *bytes++;
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
  }
  return ~crc;
}

static void long_messages_are_cut(void) {
  enum { LENGTH = 100000 };
  static char text[LENGTH + 1];
  memset(text, 'x', LENGTH);
  rvm_value error;
  CHECK(rvm_fail(&error, RVM_ASSERTION_ERROR, "%s", text) == RVM_ASSERTION_ERROR);
  const char *message = error.as.error->message;
  CHECK(strlen(message) == 1 << 16 && strcmp(message + strlen(message) - 4, "x...") == 0);
  rvm_value_release(&error);
  text[1 << 16] = 0;
  CHECK(rvm_fail(&error, RVM_ASSERTION_ERROR, "%s", text) == RVM_ASSERTION_ERROR);
  CHECK(strcmp(error.as.error->message, text) == 0);
  rvm_value_release(&error);
}

static void arrays_grow_and_keep_what_they_have(void) {
  int32_t *numbers = rvm_grow(NULL, 0, 2, sizeof *numbers);
  numbers[0] = 7, numbers[1] = 8;
  CHECK(!rvm_grow(numbers, 2, INT64_MAX / 2, sizeof *numbers)); /* the size overflows */
  allocations_left = 0;
  CHECK(!rvm_grow(numbers, 2, 1000, sizeof *numbers));
  numbers = rvm_grow(numbers, 2, 1000, sizeof *numbers);
  numbers[999] = 9;
  CHECK_INT(numbers[0] * 100 + numbers[1] * 10 + numbers[999], 789);
  rvm_free(numbers);
}

static void checksums_are_crc32c(void) {
  unsigned char bytes[100];
  for (int i = 0; i < 100; i++) bytes[i] = (unsigned char)(i * 37 + 11);
  CHECK_INT(rvm_crc32c(0, "123456789", 9), 0xe3069283u);
  for (int start = 0; start < 9; start++)
    for (int size = 0; size <= 100 - start; size++)
      CHECK_INT(rvm_crc32c(0, bytes + start, size), slow_crc(0, bytes + start, size));
  CHECK_INT(rvm_crc32c(rvm_crc32c(0, bytes, 13), bytes + 13, 87), rvm_crc32c(0, bytes, 100));
}

int main(void) {
  a_chain_of_a_million_tuples_is_released();
  a_chain_of_closures_is_released();
  a_shared_item_outlives_its_tuple();
  tensors_are_zeroed_aligned_and_compact();
  impossible_tensors_are_refused();
  a_view_keeps_the_bytes_of_its_owner();
  immortal_objects_are_not_counted();
  values_are_described();
  conditions_are_read_by_their_type();
  a_trace_has_twenty_lines_and_a_count();
  long_messages_are_cut();
  arrays_grow_and_keep_what_they_have();
  checksums_are_crc32c();
  return CHECK_RESULT();
}
