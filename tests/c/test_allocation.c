/* test_allocation.c: running out of memory, at every allocation in turn, is an OUT_OF_MEMORY error without leaks. */
#include "allocation.h"
#include "check.h"
#include "program.h"

static rvm_status host_function(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  (void)self, (void)arguments, (void)count, (void)result;
  return RVM_OK;
}

/* Loads an executable, creates a machine, calls it, and releases everything. */
static rvm_status run(const unsigned char *bytes, int64_t size_bytes, int64_t n, rvm_value *result) {
  rvm_executable *executable = NULL;
  rvm_machine *machine = NULL;
  const rvm_machine_options options = {.stack_values = 1000, .call_depth = 100};
  rvm_value arguments[] = {{.tag = RVM_TAG_NIL}, int_value(n)};
  const int64_t dims[] = {2};
  rvm_status status = rvm_register("test.function", host_function, NULL, 1, result);
  if (!status) status = rvm_executable_load(bytes, size_bytes, NULL, &executable, result);
  if (!status) status = rvm_machine_new(executable, &options, &machine, result);
  if (!status) status = rvm_tensor_new(RVM_DTYPE_f32, 1, dims, result);
  if (!status) {
    arguments[0] = *result;
    status = rvm_machine_call(machine, rvm_executable_find(executable, "main"), arguments, 2, result);
  }
  if (!status) rvm_value_release(result);
  rvm_value_release(&arguments[0]);
  rvm_machine_release(machine);
  rvm_executable_release(executable);
  return status;
}

static void unregister(void) {
  rvm_value error = {0};
  if (rvm_is_registered("test.function")) CHECK_OK(rvm_unregister("test.function", &error), error);
}

/* Fails each allocation in turn until the run ends with `expected`, whose error also needs memory. */
static void sweep(int64_t n, rvm_status expected, const char *text) {
  image program = {0};
  int64_t size_bytes;
  program_build(&program);
  image_tensor(&program, RVM_DTYPE_str, 1, (int64_t[]){1}, "\3\0\0\0\0\0\0\0abc", 11);
  unsigned char *bytes = image_finish(&program, &size_bytes);
  long allocation = 0;
  for (;; allocation++) {
    rvm_value result = {.tag = RVM_TAG_NIL};
    allocations_left = allocation;
    rvm_status status = run(bytes, size_bytes, n, &result);
    int survived = allocations_left >= 0;
    allocations_left = -1;
    unregister();
    if (survived) {
      CHECK_INT(status, expected);
      CHECK(!expected || strstr(result.as.error->message, text));
      rvm_value_release(&result);
      break;
    }
    /* The trace of an error is optional: without memory, it is missing. */
    if (status == expected && expected)
      CHECK(result.as.error->trace == NULL);
    else
      CHECK_FAILS(status, RVM_OUT_OF_MEMORY, "out of memory", result);
    rvm_value_release(&result);
  }
  CHECK(allocation > 30);
  free(bytes);
}

/* A machine that has run out of memory during a call is usable afterwards, and the memory that it has kept suffices for
   another such call. */
static void the_machine_lives_on(void) {
  image program = {0};
  loaded exe;
  rvm_machine *machine;
  rvm_value result, argument;
  int32_t index = (int32_t)program_build(&program);
  MAKE(exe, image_load(&program, &exe, &result));
  argument = tensor_value(RVM_DTYPE_f32, 1, (int64_t[]){2});
  for (long allocation = 0; allocation < 5; allocation++) {
    MAKE(machine, rvm_machine_new(exe.executable, NULL, &machine, &result));
    allocations_left = allocation;
    CHECK_FAILS(rvm_machine_call(machine, index, (rvm_value[]){argument, int_value(0)}, 2, &result), RVM_OUT_OF_MEMORY,
                "out of memory", result);
    allocations_left = -1;
    for (int call = 0; call < 3; call++) {
      if (call > 0) allocations_left = 0;
      CHECK_OK(rvm_machine_call(machine, index, (rvm_value[]){argument, int_value(0)}, 2, &result), result);
      rvm_machine_drop(machine, result);
      CHECK_INT(argument.as.object->references, 1);
    }
    allocations_left = -1;
    rvm_machine_release(machine);
  }
  rvm_value_release(&argument);
  loaded_release(&exe);
}

static rvm_status host_nothing(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  (void)self, (void)arguments, (void)count, (void)result;
  return RVM_OK;
}

static void count_release(void *self) { ++*(int *)self; }

/* A host function that cannot be created is not released. */
static void a_function_of_the_host_is_made_or_not(void) {
  image program = {0};
  loaded exe;
  rvm_machine *machine;
  rvm_value result;
  int released = 0;
  program_build(&program);
  MAKE(exe, image_load(&program, &exe, &result));
  for (long allocation = 0; allocation < 3; allocation++) {
    MAKE(machine, rvm_machine_new(exe.executable, NULL, &machine, &result));
    allocations_left = allocation;
    rvm_status status = rvm_machine_function_new(machine, "f", host_nothing, &released, count_release, &result);
    allocations_left = -1;
    CHECK_FAILS(status, RVM_OUT_OF_MEMORY, "out of memory", result);
    CHECK_INT(released, 0);
    rvm_machine_release(machine);
  }
  loaded_release(&exe);
}

int main(void) {
  a_function_of_the_host_is_made_or_not();
  sweep(0, RVM_OK, "");
  sweep(1, RVM_TYPE_ERROR, "condition: expected");
  the_machine_lives_on();
  return CHECK_RESULT();
}
