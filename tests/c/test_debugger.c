/* test_debugger.c: debuggers: places where runs stop, values that can be inspected there, and an unchanged machine
   afterwards. */
#include "allocation.h"
#include "scalar_ops.h"
#include "run.h"

static image program;
static loaded exe;
static rvm_machine *machine;
static rvm_value result;
static uint32_t add, invoke, make_closure, square, outer, loop, failing, deep;

/* ---- the program ---- */

static void build(void) {
  add = image_packed(&program, "test.add");
  make_closure = image_packed(&program, "vm.builtin.make_closure");
  invoke = image_packed(&program, "vm.builtin.invoke_closure");
  square = image_bytecode(&program, "square", "x", 2);
  PRIM(&program, 1, RVM_SCALAR_OP_mul_i64, R(0), R(0));
  RET(&program, 1);
  outer = image_bytecode(&program, "outer", "x", 4); /* square(x) + square(x), the second by a closure */
  CALL(&program, 1, square, R(0));
  CALL(&program, 2, make_closure, F(square));
  CALL(&program, 3, invoke, X, R(2), R(0));
  CALL(&program, 1, add, R(1), R(3));
  RET(&program, 1);
  loop = image_bytecode(&program, "loop", "n", 3); /* while n > 0: n = n - 1 */
  PRIM(&program, 2, RVM_SCALAR_OP_gt_i64, R(0), I(0));
  IF(&program, 2, 3 + 6 + 4);
  PRIM(&program, 0, RVM_SCALAR_OP_sub_i64, R(0), I(1));
  TAIL_CALL(&program, loop, R(0));
  RET(&program, 0);
  failing = image_bytecode(&program, "failing", "", 1);
  CALL(&program, 0, square, N);
  RET(&program, 0);
  deep = image_bytecode(&program, "deep", "", 1);
  CALL(&program, 0, deep);
  RET(&program, 0);
}

#define RUN(function, ...) RUN_ON(machine, result, function, ##__VA_ARGS__)

static void check_over(void) {
  check_idle(machine);
  CHECK_INT(rvm_machine_depth(machine), 0);
  CHECK_INT(rvm_machine_place(machine, 0).function, -1);
}

/* ---- a debugger that notes where it stops ---- */

typedef struct diary {
  char text[NOTES_BYTES];
  int32_t ends_at; /* the stop that ends the run, or 0 */
  int32_t stops;
} diary;

static rvm_status stop(void *host, const rvm_value *failure, rvm_value *error) {
  diary *to = host;
  int64_t depth = rvm_machine_depth(machine);
  rvm_place place = rvm_machine_place(machine, depth - 1);
  note(to->text, failure ? "!%d:%s:%d" : "%d:%s:%d", (int)depth,
       rvm_executable_function_name(exe.executable, place.function), (int)place.instruction);
  if (place.count > 0 && place.registers[0].tag == RVM_TAG_INT) note(to->text, "(%d)", (int)place.registers[0].as.i);
  note(to->text, " ");
  return ++to->stops == to->ends_at ? rvm_fail(error, RVM_ASSERTION_ERROR, "enough") : RVM_OK;
}

static diary seen;

static void debug(int64_t depth) {
  seen = (diary){.ends_at = 0};
  CHECK_OK(rvm_machine_debug(machine, &(rvm_debugger){.stop = stop, .host = &seen}, &result), result);
  rvm_machine_stop_within(machine, depth);
}

static void every_instruction_of_every_function(void) {
  debug(INT64_MAX);
  CHECK_OK(RUN(outer, int_value(3)), result);
  CHECK_INT(result.as.i, 18);
  CHECK_TEXT(seen.text,
             "1:outer:0(3) 2:square:0(3) 2:square:1(3) 1:outer:1(3) 1:outer:2(3) 2:square:0(3) 2:square:1(3) "
             "1:outer:3(3) 1:outer:4(3) ");
  check_over();
}

static void or_of_the_outer_ones_only(void) {
  debug(1);
  CHECK_OK(RUN(outer, int_value(3)), result);
  CHECK_TEXT(seen.text, "1:outer:0(3) 1:outer:1(3) 1:outer:2(3) 1:outer:3(3) 1:outer:4(3) ");
  debug(0);
  CHECK_OK(RUN(outer, int_value(3)), result);
  CHECK_TEXT(seen.text, "");
  check_over();
}

/* A comparison and its jump are one step without a debugger, as are the end of the loop body and its jump. */
static void rounds_of_a_loop(void) {
  debug(INT64_MAX);
  CHECK_OK(RUN(loop, int_value(1)), result);
  CHECK_TEXT(seen.text, "1:loop:0(1) 1:loop:1(1) 1:loop:2(1) 1:loop:3(0) 1:loop:0(0) 1:loop:1(0) 1:loop:4(0) ");
  debug(0);
  CHECK_OK(RUN(loop, int_value(100000)), result);
  CHECK_INT(result.as.i, 0);
  check_over();
}

static void breakpoints(void) {
  debug(0);
  CHECK_OK(rvm_machine_break(machine, (int32_t)square, 1, 1, &result), result);
  CHECK_OK(rvm_machine_break(machine, (int32_t)outer, 4, 1, &result), result);
  CHECK_OK(rvm_machine_break(machine, (int32_t)outer, 0, 1, &result), result);
  CHECK_OK(rvm_machine_break(machine, (int32_t)outer, 0, 0, &result), result);
  CHECK_OK(RUN(outer, int_value(3)), result);
  CHECK_TEXT(seen.text, "2:square:1(3) 2:square:1(3) 1:outer:4(3) ");
  CHECK_FAILS(rvm_machine_break(machine, (int32_t)square, 2, 1, &result), RVM_INDEX_ERROR,
              "square has no instruction at index 2", result);
  CHECK_FAILS(rvm_machine_break(machine, (int32_t)square, -1, 1, &result), RVM_INDEX_ERROR,
              "no instruction at index -1", result);
  CHECK_FAILS(rvm_machine_break(machine, (int32_t)add, 0, 1, &result), RVM_INDEX_ERROR, "test.add has no", result);
  CHECK_FAILS(rvm_machine_break(machine, 1000, 0, 1, &result), RVM_INDEX_ERROR, "function index 1000 is out of range",
              result);
  debug(0); /* a new debugger has no breakpoints */
  CHECK_OK(RUN(outer, int_value(3)), result);
  CHECK_TEXT(seen.text, "");
  check_over();
}

static void a_failure_is_told_once_before_anything_is_released(void) {
  debug(0);
  CHECK_FAILS(RUN(failing), RVM_TYPE_ERROR, "mul_i64", result);
  CHECK_TEXT(seen.text, "!2:square:0 ");
  seen = (diary){.ends_at = 1}; /* the error is unchanged */
  CHECK_FAILS(RUN(failing), RVM_TYPE_ERROR, "mul_i64", result);
  CHECK_FAILS(RUN(deep), RVM_STACK_OVERFLOW, "deep: call depth exceeds ", result);
  CHECK(strstr(seen.text, "!5000:deep:0"));
  check_over();
}

static void it_may_end_the_run(void) {
  for (int32_t at = 1; at <= 9; at++) {
    debug(INT64_MAX);
    seen.ends_at = at;
    CHECK_FAILS(RUN(outer, int_value(3)), RVM_ASSERTION_ERROR, "enough", result);
    CHECK_INT(seen.stops, at);
    check_over();
  }
}

static rvm_status call_outer(void *host, const rvm_value *failure, rvm_value *error) {
  (void)failure;
  ++*(int *)host;
  return rvm_machine_call(machine, (int32_t)outer, (rvm_value[]){int_value(5)}, 1, error);
}

static rvm_status change(void *host, const rvm_value *failure, rvm_value *error) {
  (void)host, (void)failure;
  return rvm_machine_debug(machine, NULL, error);
}

/* The debugger's own calls are not observed; otherwise this would not end. */
static void it_may_call_the_machine_and_not_change_it(void) {
  int stops = 0;
  CHECK_OK(rvm_machine_debug(machine, &(rvm_debugger){.stop = call_outer, .host = &stops}, &result), result);
  rvm_machine_stop_within(machine, INT64_MAX);
  CHECK_OK(RUN(outer, int_value(3)), result);
  CHECK_INT(result.as.i, 18);
  CHECK_INT(stops, 9);
  CHECK_OK(rvm_machine_debug(machine, &(rvm_debugger){.stop = change}, &result), result);
  rvm_machine_stop_within(machine, INT64_MAX);
  CHECK_FAILS(RUN(outer, int_value(3)), RVM_BUSY, "debugger cannot be changed", result);
  check_over();
}

static rvm_status count_calls(void *host, int32_t function, const rvm_value *arguments, int32_t count, int32_t *skip,
                              rvm_value *error) {
  (void)function, (void)arguments, (void)count, (void)skip, (void)error;
  ++*(int *)host;
  return RVM_OK;
}

static void beside_an_instrument(void) {
  int calls = 0;
  debug(INT64_MAX);
  const rvm_instrument instrument = {.kinds = UINT32_MAX, .before = count_calls, .host = &calls};
  CHECK_OK(rvm_machine_instrument(machine, &instrument, &result), result);
  CHECK_OK(RUN(outer, int_value(3)), result);
  CHECK_INT(seen.stops, 9);
  CHECK_INT(calls, 5);
  CHECK_OK(rvm_machine_debug(machine, NULL, &result), result);
  CHECK_OK(RUN(outer, int_value(3)), result);
  CHECK_INT(seen.stops, 9);
  CHECK_INT(calls, 10);
  CHECK_FAILS(rvm_machine_break(machine, (int32_t)outer, 0, 1, &result), RVM_ARGUMENT_ERROR, "no debugger", result);
  CHECK_OK(rvm_machine_instrument(machine, NULL, &result), result);
  check_over();
}

static void without_memory(void) {
  for (long left = 0; left < 2; left++) {
    allocations_left = left;
    CHECK_INT(rvm_machine_debug(machine, &(rvm_debugger){.stop = stop, .host = &seen}, &result), RVM_OUT_OF_MEMORY);
    allocations_left = -1;
    rvm_value_release(&result);
  }
  debug(0);
  allocations_left = 0;
  CHECK_INT(rvm_machine_break(machine, (int32_t)outer, 0, 1, &result), RVM_OUT_OF_MEMORY);
  allocations_left = 0;
  rvm_value_release(&result);
  CHECK_INT(RUN(square, int_value(3)), RVM_OUT_OF_MEMORY);
  allocations_left = -1;
  rvm_value_release(&result);
  CHECK_OK(RUN(square, int_value(3)), result);
  check_over();
}

int main(void) {
  const rvm_machine_options options = {.call_depth = 5000};
  CHECK_OK(rvm_register("test.add", host_add_two, NULL, 0, &result), result);
  build();
  MAKE(exe, image_load(&program, &exe, &result));
  MAKE(machine, rvm_machine_new(exe.executable, &options, &machine, &result));
  every_instruction_of_every_function();
  or_of_the_outer_ones_only();
  rounds_of_a_loop();
  breakpoints();
  a_failure_is_told_once_before_anything_is_released();
  it_may_end_the_run();
  it_may_call_the_machine_and_not_change_it();
  beside_an_instrument();
  without_memory();
  rvm_machine_release(machine);
  loaded_release(&exe);
  CHECK_OK(rvm_unregister("test.add", &result), result);
  return CHECK_RESULT();
}
