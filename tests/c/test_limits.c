/* test_limits.c: limits on the memory, steps and time of runs, and on the contents of executables and the functions
   that they call. */
#include "system.h"
#include "scalar_ops.h"
#include "run.h"

static image program;
static loaded exe;
static rvm_machine *machine;
static rvm_value result;
static uint32_t loop, holds, drops, calls_host;

static rvm_status host_seven(void *self, const rvm_value *arguments, int32_t count, rvm_value *seven) {
  (void)self, (void)arguments, (void)count;
  *seven = int_value(7);
  return RVM_OK;
}

static void build(void) {
  uint32_t make_tuple = image_packed(&program, "vm.builtin.make_tuple");
  uint32_t alloc = image_packed(&program, "vm.builtin.alloc_storage");
  uint32_t by_name = image_packed(&program, "vm.builtin.call_py_func");
  uint32_t f32 = image_dtype(&program, RVM_DTYPE_f32), name = image_text(&program, "test.seven");
  loop = image_bytecode(&program, "loop", "n", 3); /* n times */
  PRIM(&program, 2, RVM_SCALAR_OP_gt_i64, R(0), I(0));
  IF(&program, 2, 3 + 6 + 4);
  PRIM(&program, 0, RVM_SCALAR_OP_sub_i64, R(0), I(1));
  TAIL_CALL(&program, loop, R(0));
  RET(&program, 0);
  holds = image_bytecode(&program, "holds", "n held",
                         4); /* n storages of 4,000 bytes, each in a tuple with the previous one */
  PRIM(&program, 2, RVM_SCALAR_OP_gt_i64, R(0), I(0));
  IF(&program, 2, 3 + 6 + 8 + 6 + 5);
  PRIM(&program, 0, RVM_SCALAR_OP_sub_i64, R(0), I(1));
  CALL(&program, 3, alloc, X, I(1000), I(0), C(f32));
  CALL(&program, 1, make_tuple, R(1), R(3));
  TAIL_CALL(&program, holds, R(0), R(1));
  RET(&program, 0);
  drops =
      image_bytecode(&program, "drops", "n size", 4); /* allocates n storages of `size` floats, one after the other */
  PRIM(&program, 2, RVM_SCALAR_OP_gt_i64, R(0), I(0));
  IF(&program, 2, 3 + 6 + 8 + 5);
  PRIM(&program, 0, RVM_SCALAR_OP_sub_i64, R(0), I(1));
  CALL(&program, 3, alloc, X, R(1), I(0), C(f32));
  TAIL_CALL(&program, drops, R(0), R(1));
  RET(&program, 0);
  calls_host = image_bytecode(&program, "calls_host", "", 1);
  CALL(&program, 0, by_name, X, C(name));
  RET(&program, 0);
}

#define RUN(function, ...) RUN_ON(machine, result, function, ##__VA_ARGS__)

static void with(rvm_machine_options options) {
  MAKE(machine, rvm_machine_new(exe.executable, &options, &machine, &result));
}

static void steps_are_counted(void) {
  with((rvm_machine_options){.max_steps = 1000});
  for (int i = 0; i < 3; i++) {
    CHECK_OK(RUN(loop, int_value(990)), result);
    CHECK_FAILS(RUN(loop, int_value(1000)), RVM_TIMEOUT, "exceeded its limit of 1000 steps", result);
  }
  rvm_machine_release(machine);
  with((rvm_machine_options){.max_steps = 1000000});
  CHECK_OK(RUN(loop, int_value(999000)), result);
  CHECK_FAILS(RUN(loop, int_value(1000001)), RVM_TIMEOUT, "1000000 steps", result);
  rvm_machine_release(machine);
}

/* Allocation counts as steps: a loop that only allocates ends as well. */
static void allocations_are_steps(void) {
  with((rvm_machine_options){.max_steps = 100000, .max_bytes = 10000000});
  CHECK_OK(RUN(drops, int_value(100), int_value(10)), result);
  CHECK_FAILS(RUN(holds, int_value(100000), int_value(0)), RVM_TIMEOUT, "steps", result);
  rvm_machine_release(machine);
}

static void time_is_measured(void) {
  with((rvm_machine_options){.max_nanoseconds = 20000000});
  int64_t started = rvm_clock_now();
  CHECK_FAILS(RUN(loop, int_value(INT64_MAX)), RVM_TIMEOUT, "exceeded its limit of 0.020 seconds", result);
  int64_t took = rvm_clock_now() - started;
  CHECK(took >= 20000000);
  CHECK_OK(RUN(loop, int_value(1000)), result);
  rvm_machine_release(machine);
}

static void memory_is_what_a_run_holds(void) {
  with((rvm_machine_options){.max_bytes = 1000000});
  for (int i = 0; i < 3; i++) { /* the pool keeps memory of earlier runs */
    CHECK_OK(RUN(drops, int_value(100000), int_value(1000)), result);
    CHECK_OK(RUN(drops, int_value(100), int_value(200000)), result);
    CHECK_OK(RUN(holds, int_value(200), int_value(0)), result);
    CHECK_FAILS(RUN(holds, int_value(300), int_value(0)), RVM_OUT_OF_MEMORY, "max_bytes", result);
    CHECK_FAILS(RUN(drops, int_value(1), int_value(300000)), RVM_OUT_OF_MEMORY, "max_bytes", result);
    CHECK_FAILS(RUN(drops, int_value(1), int_value(INT64_MAX / 8)), RVM_OUT_OF_MEMORY, "cannot allocate", result);
  }
  rvm_machine_release(machine);
}

static void limits_below_zero_are_refused(void) {
  const rvm_machine_options wrong[] = {{.max_bytes = -1}, {.max_steps = -1}, {.max_nanoseconds = -1}};
  for (int i = 0; i < COUNT_OF(wrong); i++)
    CHECK_FAILS(rvm_machine_new(exe.executable, &wrong[i], &machine, &result), RVM_ARGUMENT_ERROR,
                "max_bytes, max_steps and max_nanoseconds must be at least 0", result);
}

/* ---- what an executable may do ---- */

/* Loads the bytes again with other options. */
static rvm_status load(rvm_load_options options, loaded *to) {
  return rvm_executable_load(to->bytes, to->size_bytes, &options, &to->executable, &result);
}

static void functions_of_the_host_are_allowed_by_name(void) {
  const char *const none[] = {"test.sevens", "test", "test.seve", "other.*", ""};
  const char *const one[] = {"test.seven"}, *const all[] = {"*"}, *const some[] = {"x", "test.*"};
  image direct = {0};
  loaded file;
  uint32_t seven = image_packed(&direct, "test.seven");
  image_bytecode(&direct, "main", "", 1);
  CALL(&direct, 0, seven);
  RET(&direct, 0);
  MAKE(file, image_load(&direct, &file, &result)); /* allows all functions */
  rvm_executable_release(file.executable);
  CHECK_FAILS(load((rvm_load_options){.functions = NULL}, &file), RVM_UNSUPPORTED, "\"test.seven\"", result);
  CHECK_FAILS(load((rvm_load_options){.functions = none, .function_count = 5}, &file), RVM_UNSUPPORTED, "do not allow",
              result);
  CHECK_FAILS(load((rvm_load_options){.function_count = -1}, &file), RVM_ARGUMENT_ERROR, "function_count is -1",
              result);
  const rvm_load_options allowing[] = {{.functions = one, .function_count = 1},
                                       {.functions = all, .function_count = 1},
                                       {.functions = some, .function_count = 2}};
  for (int i = 0; i < COUNT_OF(allowing); i++) {
    CHECK_OK(load(allowing[i], &file), result);
    if (i < 2) rvm_executable_release(file.executable);
  }
  loaded_release(&file);
}

/* A computed name is checked as well. */
static void and_so_they_are_where_the_program_makes_the_name(void) {
  with((rvm_machine_options){.threads = 1});
  CHECK_OK(RUN(calls_host), result); /* image_load allows all functions */
  rvm_machine_release(machine);
  rvm_executable *strict;
  CHECK_OK(rvm_executable_load(exe.bytes, exe.size_bytes, NULL, &strict, &result), result);
  MAKE(machine, rvm_machine_new(strict, NULL, &machine, &result));
  CHECK_FAILS(RUN(calls_host), RVM_UNSUPPORTED, "\"test.seven\"", result);
  rvm_machine_release(machine);
  rvm_executable_release(strict);
}

static void counts_and_bytes(void) {
  const rvm_load_options small[] = {
      {.max_bytes = 100}, {.max_functions = 3}, {.max_constants = 1}, {.max_code_words = 10}};
  const char *const texts[] = {
      "bytes, but the load options allow at most 100", "functions, but the load options allow at most 3",
      "2 constants, but the load options allow at most 1", "words of code, but the load options allow at most 10"};
  rvm_executable *executable;
  for (int i = 0; i < COUNT_OF(small); i++)
    CHECK_FAILS(rvm_executable_load(exe.bytes, exe.size_bytes, &small[i], &executable, &result), RVM_UNSUPPORTED,
                texts[i], result);
  const rvm_load_options enough = {
      .max_bytes = exe.size_bytes, .max_functions = 100, .max_constants = 2, .max_code_words = 1000};
  CHECK_OK(rvm_executable_load(exe.bytes, exe.size_bytes, &enough, &executable, &result), result);
  rvm_executable_release(executable);
}

/* Each constant is small in the file: they share one string. */
static void a_small_file_cannot_ask_for_much_memory(void) {
  enum { LENGTH = 20000, STRINGS = 10000 };
  image bomb = {0};
  static char text[LENGTH + 1];
  loaded file;
  memset(text, 'a', LENGTH);
  image_text(&bomb, text);
  for (int i = 1; i < STRINGS; i++) image_add_constant(&bomb, *(image_constant *)bomb.constants.bytes, NULL);
  CHECK_FAILS(image_load(&bomb, &file, &result), RVM_BAD_EXECUTABLE,
              "loading needs more memory than is allowed for a file of", result);
  loaded_release(&file);
}

static void what_was_only_checked_does_not_run(void) {
  rvm_executable *executable;
  const rvm_load_options options = {.check_only = 1};
  CHECK_OK(rvm_executable_load(exe.bytes, exe.size_bytes, &options, &executable, &result), result);
  CHECK_FAILS(rvm_machine_new(executable, NULL, &machine, &result), RVM_UNSUPPORTED, "for checking only", result);
  CHECK_OK(rvm_machine_new(exe.executable, NULL, &machine, &result), result);
  CHECK_FAILS(rvm_machine_upgrade(machine, executable, &result), RVM_UNSUPPORTED, "for checking only", result);
  rvm_machine_release(machine);
  rvm_executable_release(executable);
}

int main(void) {
  CHECK_OK(rvm_register("test.seven", host_seven, NULL, 0, &result), result);
  build();
  MAKE(exe, image_load(&program, &exe, &result));
  steps_are_counted();
  allocations_are_steps();
  time_is_measured();
  memory_is_what_a_run_holds();
  limits_below_zero_are_refused();
  functions_of_the_host_are_allowed_by_name();
  and_so_they_are_where_the_program_makes_the_name();
  counts_and_bytes();
  a_small_file_cannot_ask_for_much_memory();
  what_was_only_checked_does_not_run();
  loaded_release(&exe);
  CHECK_OK(rvm_unregister("test.seven", &result), result);
  return CHECK_RESULT();
}
