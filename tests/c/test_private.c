/* test_private.c: elements that the host can change: private copies for kernels, canonical elements wherever values
   enter a machine. */
#include "allocation.h"
#include "private_tensor.h"
#include "run.h"

enum { HOST, ECHO, GIVE, LAST, ELEMENTS = 300 };

static uint8_t bytes[ELEMENTS];

static rvm_value wrapped(int32_t dtype, void *data, int64_t count) {
  rvm_value tensor;
  MAKE(tensor, rvm_tensor_wrap(dtype, 1, &count, data, NULL, NULL, &tensor));
  return tensor;
}

/* Fills `bytes` with all byte values. */
static void fill(void) {
  for (int i = 0; i < ELEMENTS; i++) bytes[i] = (uint8_t)i;
}

/* Checks that the elements are those of `bytes` in canonical form, and in other memory. */
static void check_canonical(rvm_value value, int32_t dtype) {
  CHECK_INT(value.tag, RVM_TAG_TENSOR);
  const uint8_t *got = value.as.tensor->dl.data;
  const uint8_t mask = (uint8_t)((1u << rvm_dtype_dl(dtype).bits) - 1);
  CHECK(got != bytes && rvm_elements_are_canonical(dtype, got, ELEMENTS));
  for (int i = 0; i < ELEMENTS; i++) CHECK_INT(got[i], dtype == RVM_DTYPE_bool ? bytes[i] != 0 : bytes[i] & mask);
}

/* give(): returns the host's tensor. */
static rvm_status host_give(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  (void)arguments, (void)count;
  rvm_value_retain(*(rvm_value *)self);
  *result = *(rvm_value *)self;
  return RVM_OK;
}

static rvm_value given;
static loaded exe;
static rvm_machine *machine;
static rvm_value result;

static void build(void) {
  image program = {0};
  image_packed(&program, "test.give");
  image_bytecode(&program, "echo", "x", 1);
  RET(&program, 0);
  image_bytecode(&program, "give", "", 1);
  CALL(&program, 0, HOST);
  RET(&program, 0);
  image_bytecode(&program, "last", "x y z", 3);
  RET(&program, 2);
  MAKE(exe, image_load(&program, &exe, &result));
  MAKE(machine, rvm_machine_new(exe.executable, NULL, &machine, &result));
}

static void every_byte_becomes_an_element(void) {
  for (int32_t dtype = 0; dtype < RVM_DTYPE_COUNT; dtype++) {
    if (!rvm_dtype_has_noncanonical(dtype)) continue;
    rvm_value container;
    fill();
    given = wrapped(dtype, bytes, ELEMENTS);
    CHECK_INT(RUN_ON(machine, result, ECHO, given), RVM_OK);
    check_canonical(result, dtype);
    rvm_value_release(&result);
    CHECK_INT(RUN_ON(machine, result, GIVE), RVM_OK);
    check_canonical(result, dtype);
    rvm_value_release(&result);
    CHECK_INT(rvm_tuple_new(1, &given, &container), RVM_OK);
    check_canonical(container.as.tuple->items[0], dtype);
    rvm_value_release(&container);
    CHECK_INT(rvm_list_new(1, &given, &container), RVM_OK);
    check_canonical(container.as.list->items[0], dtype);
    rvm_value_release(&container);
    rvm_value_release(&given);
  }
}

/* A call allocates an array and two copies of tensors.  If any of these allocations fails, it releases everything that
   it has retained. */
static void a_call_without_memory_for_the_copies_keeps_nothing(void) {
  rvm_value shape = shape_value(0, NULL);
  fill();
  given = wrapped(RVM_DTYPE_bool, bytes, ELEMENTS);
  const rvm_value arguments[] = {shape, given, given};
  for (long allocation = 0;; allocation++) {
    allocations_left = allocation;
    const rvm_status status = rvm_machine_call(machine, LAST, arguments, COUNT_OF(arguments), &result);
    const int survived = allocations_left >= 0;
    allocations_left = -1;
    if (survived) {
      CHECK_OK(status, result);
      CHECK(allocation >= 3);
      break;
    }
    CHECK_FAILS(status, RVM_OUT_OF_MEMORY, "out of memory", result);
    CHECK_INT(given.as.object->references, 1);
    CHECK_INT(shape.as.object->references, 1);
  }
  check_canonical(result, RVM_DTYPE_bool);
  rvm_value_release(&result);
  CHECK_INT(given.as.object->references, 1);
  CHECK_INT(shape.as.object->references, 1);
  rvm_value_release(&given);
  rvm_value_release(&shape);
}

/* kernel(x, y): changes the elements of the host, then checks that its inputs still have the old values. */
static rvm_status changing_kernel(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  (void)self;
  CHECK_INT(count, 2);
  int64_t *elements = given.as.tensor->dl.data;
  elements[0] = 99;
  *result = int_value(((const int64_t *)arguments[0].as.tensor->dl.data)[0] * 1000 +
                      ((const int64_t *)arguments[1].as.tensor->dl.data)[0]);
  return RVM_OK;
}

static void a_kernel_keeps_the_inputs_that_it_has_checked(void) {
  static const int32_t first[] = {0};
  int64_t elements[] = {7};
  given = wrapped(RVM_DTYPE_i64, elements, 1);
  const rvm_value arguments[] = {given, given};
  CHECK_INT(rvm_machine_native_api.call_with_private(machine, changing_kernel, first, 1, arguments, 2, &result),
            RVM_OK);
  CHECK_INT(result.as.i, 7 * 1000 + 99); /* the second input is not used as an index, and is not copied */
  rvm_value_release(&given);
}

static void some_tensors_are_private(void) {
  int64_t elements[] = {1, 2}, dims[] = {2};
  rvm_value host = wrapped(RVM_DTYPE_i64, elements, 2), copy, same, view;
  CHECK(!rvm_tensor_is_private(host.as.tensor));
  CHECK_INT(rvm_tensor_make_private(machine->pool, host.as.tensor, &copy), RVM_OK);
  CHECK(rvm_tensor_is_private(copy.as.tensor) && !memcmp(copy.as.tensor->dl.data, elements, sizeof elements));
  CHECK_INT(rvm_tensor_make_private(machine->pool, copy.as.tensor, &same), RVM_OK);
  CHECK(same.as.tensor == copy.as.tensor && !rvm_tensor_is_only_reference(copy.as.tensor));
  CHECK_INT(rvm_tensor_view(RVM_DTYPE_i64, 1, dims, copy.as.tensor->dl.data, copy.as.tensor->owner, &view), RVM_OK);
  rvm_tensor_share(view.as.tensor);
  CHECK(!rvm_tensor_is_private(copy.as.tensor)); /* a view shares its storage */
  rvm_value_release(&view);
  rvm_value_release(&same);
  CHECK(rvm_tensor_is_only_reference(copy.as.tensor));
  rvm_value_release(&copy);
  CHECK_INT(rvm_tensor_make_private(machine->pool, host.as.tensor, &copy), RVM_OK);
  CHECK(rvm_tensor_is_private(copy.as.tensor)); /* even if the pool reuses the shared storage's memory */
  rvm_value_release(&copy);
  rvm_value_release(&host);
}

static void bytes_written_by_the_host_become_elements(void) {
  const int64_t dims[] = {ELEMENTS};
  for (int32_t dtype = 0; dtype < RVM_DTYPE_COUNT; dtype++) {
    if (!rvm_dtype_has_noncanonical(dtype)) continue;
    rvm_value to;
    fill();
    given = wrapped(dtype, bytes, ELEMENTS);
    CHECK_INT(rvm_tensor_new(dtype, 1, dims, &to), RVM_OK);
    rvm_tensor_write_canonical(to.as.tensor, given.as.tensor);
    check_canonical(to, dtype);
    rvm_value_release(&to);
    rvm_value_release(&given);
  }
}

static void bad_constants_are_refused(void) {
  for (int32_t dtype = 0; dtype < RVM_DTYPE_COUNT; dtype++) {
    if (!rvm_dtype_has_noncanonical(dtype)) continue;
    for (int value = 0; value < 256; value++) {
      const int64_t dims[] = {2};
      const uint8_t elements[] = {1, (uint8_t)value};
      image program = {0};
      loaded tested;
      image_tensor(&program, (uint32_t)dtype, 1, dims, elements, sizeof elements);
      image_bytecode(&program, "main", "x", 1);
      RET(&program, 0);
      if (value <= (dtype == RVM_DTYPE_bool ? 1 : (1 << rvm_dtype_dl(dtype).bits) - 1))
        CHECK_OK(image_load(&program, &tested, &result), result);
      else
        CHECK_FAILS(image_load(&program, &tested, &result), RVM_BAD_EXECUTABLE, "constant 0 of dtype", result);
      loaded_release(&tested);
    }
  }
}

int main(void) {
  CHECK_OK(rvm_register("test.give", host_give, &given, 0, &result), result);
  build();
  every_byte_becomes_an_element();
  a_call_without_memory_for_the_copies_keeps_nothing();
  a_kernel_keeps_the_inputs_that_it_has_checked();
  some_tensors_are_private();
  bytes_written_by_the_host_become_elements();
  bad_constants_are_refused();
  CHECK_INT(rvm_machine_release(machine), RVM_OK);
  loaded_release(&exe);
  CHECK_OK(rvm_unregister("test.give", &result), result);
  return CHECK_RESULT();
}
