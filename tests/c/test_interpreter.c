/* test_interpreter.c: the interpreter: every opcode, calls of every kind, and failures, after which the machine is
   idle. */
#include <limits.h>

#include "allocation.h"
#include "run.h"

/* A loaded executable with a machine, and the result of the last call. */
typedef struct bench {
  image program;
  loaded exe;
  rvm_machine *machine;
  rvm_value result;
} bench;

static void bench_open(bench *b, const rvm_machine_options *options) {
  CHECK_OK(image_load(&b->program, &b->exe, &b->result), b->result);
  CHECK_OK(rvm_machine_new(b->exe.executable, options, &b->machine, &b->result), b->result);
}

static void bench_close(bench *b) {
  check_idle(b->machine);
  rvm_value_release(&b->result);
  rvm_machine_release(b->machine);
  loaded_release(&b->exe);
}

#define RUN(b, function, ...) RUN_ON((b).machine, (b).result, function, ##__VA_ARGS__)

static rvm_value boolean(int truth) { return (rvm_value){.tag = RVM_TAG_BOOL, .as.i = truth}; }

/* ---- host functions ---- */

/* add(a, b, ...): the sum of ints. */
static rvm_status host_add(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  (void)self;
  int64_t sum = 0;
  for (int32_t i = 0; i < count; i++) {
    if (arguments[i].tag != RVM_TAG_INT) return rvm_fail(result, RVM_TYPE_ERROR, "add: argument %d is no int", i);
    sum += arguments[i].as.i;
  }
  *result = int_value(sum);
  return RVM_OK;
}

/* bad(k): returns an invalid status or result. */
static rvm_status host_bad(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  (void)self, (void)count;
  switch (arguments[0].as.i) {
    case 0: return RVM_INDEX_ERROR;
    case 1: return 12345;
    case 2: return -1;
    case 3: return rvm_string_new("lost", 4, result), RVM_TYPE_ERROR;
    case 4: *result = (rvm_value){.tag = RVM_TAG_CONTEXT}; return RVM_OK;
    case 5: return rvm_fail(result, RVM_TYPE_ERROR, "not OK"), RVM_OK;
    case 6: *result = (rvm_value){.tag = -5}; return RVM_OK;
    default: *result = (rvm_value){.tag = 77}; return RVM_OK;
  }
}

/* call(ctx, f, arguments...): calls f through the public interface. */
static rvm_status host_call(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  (void)self;
  return rvm_machine_invoke(arguments[0].as.machine, arguments[1], arguments + 2, count - 2, result);
}

/* references(x): the number of references to an object. */
static rvm_status host_references(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  (void)self, (void)count;
  *result = int_value(arguments[0].as.object->references);
  return RVM_OK;
}

static void register_host(void) {
  rvm_value error;
  CHECK_OK(rvm_register("test.references", host_references, NULL, 0, &error), error);
  CHECK_OK(rvm_register("test.add", host_add, NULL, 0, &error), error);
  CHECK_OK(rvm_register("test.bad", host_bad, NULL, 0, &error), error);
  CHECK_OK(rvm_register("test.call", host_call, NULL, 0, &error), error);
}

static void unregister_host(void) {
  rvm_value error;
  CHECK_OK(rvm_unregister("test.references", &error), error);
  CHECK_OK(rvm_unregister("test.add", &error), error);
  CHECK_OK(rvm_unregister("test.bad", &error), error);
  CHECK_OK(rvm_unregister("test.call", &error), error);
}

/* ---- tests ---- */

static void arguments_of_every_kind_reach_the_callee(void) {
  bench b = {0};
  uint32_t make_tuple = image_packed(&b.program, "vm.builtin.make_tuple");
  uint32_t text = image_text(&b.program, "text");
  uint32_t f = image_bytecode(&b.program, "f", "x", 2);
  CALL(&b.program, 1, make_tuple, R(0), I(-268435456), I(268435455), C(text), F(make_tuple), N, B(0), B(1));
  RET(&b.program, 1);
  bench_open(&b, NULL);
  rvm_value argument = string_value("argument");
  CHECK_OK(RUN(b, f, argument), b.result);
  CHECK_INT(b.result.tag, RVM_TAG_TUPLE);
  const rvm_value *items = b.result.as.tuple->items;
  CHECK(items[0].as.string == argument.as.string && argument.as.object->references == 2);
  CHECK_INT(items[1].as.i, -268435456);
  CHECK_INT(items[2].as.i, 268435455);
  CHECK(strcmp(items[3].as.string->bytes, "text") == 0 && items[3].as.object->references == -1);
  CHECK(items[4].tag == RVM_TAG_FUNCTION && items[5].tag == RVM_TAG_NIL);
  CHECK(items[6].tag == RVM_TAG_BOOL && items[6].as.i == 0 && items[7].as.i == 1);
  rvm_value_release(&b.result);
  CHECK_INT(argument.as.object->references, 1);
  rvm_value_release(&argument);
  bench_close(&b);
}

static void if_and_goto_choose_the_branch(void) {
  bench b = {0};
  uint32_t copy = image_packed(&b.program, "vm.builtin.copy");
  uint32_t f = image_bytecode(&b.program, "f", "condition", 2);
  IF(&b.program, 0, 3 + 5 + 2);
  CALL(&b.program, 1, copy, I(10));
  GOTO(&b.program, 2 + 5);
  CALL(&b.program, 1, copy, I(20));
  RET(&b.program, 1);
  bench_open(&b, NULL);
  CHECK_OK(RUN(b, f, boolean(1)), b.result);
  CHECK_INT(b.result.as.i, 10);
  CHECK_OK(RUN(b, f, int_value(0)), b.result);
  CHECK_INT(b.result.as.i, 20);
  CHECK_FAILS(RUN(b, f, ((rvm_value){.tag = RVM_TAG_NIL})), RVM_TYPE_ERROR, "condition: expected", b.result);
  bench_close(&b);
}

/* Steps that implement a builtin do what the builtin does, also for operands that compiled programs do not use. */
static void steps_do_what_their_builtins_do(void) {
  bench b = {0};
  uint32_t check = image_packed(&b.program, "vm.builtin.check_prim_value_info"),
           check_tensor = image_packed(&b.program, "vm.builtin.check_tensor_info"),
           copy = image_packed(&b.program, "vm.builtin.copy");
  uint32_t i64 = image_dtype(&b.program, RVM_DTYPE_i64), where = image_text(&b.program, "f: x");
  uint32_t unnamed = image_bytecode(&b.program, "unnamed", "x", 1);
  CALL(&b.program, NONE, check, R(0), C(i64), C(i64));
  RET(&b.program, 0);
  uint32_t unnamed_tensor = image_bytecode(&b.program, "unnamed_tensor", "x", 1);
  CALL(&b.program, NONE, check_tensor, R(0), I(1), N, C(i64));
  RET(&b.program, 0);
  uint32_t stored = image_bytecode(&b.program, "stored", "x", 2);
  CALL(&b.program, 1, copy, I(5));
  CALL(&b.program, 1, check, R(0), C(i64), C(where));
  RET(&b.program, 1);
  uint32_t stored_tensor = image_bytecode(&b.program, "stored_tensor", "x", 2);
  CALL(&b.program, 1, copy, I(5));
  CALL(&b.program, 1, check_tensor, R(0), I(1), N, C(where));
  RET(&b.program, 1);
  uint32_t of_context = image_bytecode(&b.program, "of_context", "", 1);
  CALL(&b.program, 0, copy, X);
  RET(&b.program, 0);
  bench_open(&b, NULL);
  rvm_value tensor = tensor_value(RVM_DTYPE_f32, 1, (int64_t[]){2});
  CHECK_FAILS(RUN(b, unnamed, int_value(1)), RVM_TYPE_ERROR, "expected argument 3 to be a string", b.result);
  CHECK_FAILS(RUN(b, unnamed_tensor, tensor), RVM_TYPE_ERROR, "expected argument 4 to be a string", b.result);
  CHECK_OK(RUN(b, stored, int_value(1)), b.result);
  CHECK_INT(b.result.tag, RVM_TAG_NIL);
  CHECK_OK(RUN(b, stored_tensor, tensor), b.result);
  CHECK_INT(b.result.tag, RVM_TAG_NIL);
  CHECK_FAILS(RUN(b, of_context), RVM_TYPE_ERROR, "got context", b.result);
  rvm_value_release(&tensor);
  bench_close(&b);
}

static void reset_releases_at_once(void) {
  bench b = {0};
  uint32_t getitem = image_packed(&b.program, "vm.builtin.tuple_getitem"),
           copy = image_packed(&b.program, "vm.builtin.copy");
  uint32_t f = image_bytecode(&b.program, "f", "t", 2);
  CALL(&b.program, 1, getitem, R(0), I(0));
  CALL(&b.program, NONE, copy, R(1));
  RESET(&b.program, 1);
  CALL(&b.program, 1, getitem, R(0), I(7));
  RET(&b.program, 1);
  bench_open(&b, NULL);
  rvm_value text = string_value("text"), tuple = tuple_value(1, &text);
  CHECK_FAILS(RUN(b, f, tuple), RVM_INDEX_ERROR, "index 7", b.result);
  CHECK_INT(text.as.object->references, 2);
  rvm_value_release(&tuple);
  rvm_value_release(&text);
  bench_close(&b);
}

/* Builds sum(n) = n == 0 ? 0 : n + sum(n - 1), by calls of its function index or through a closure. */
static uint32_t build_sum(image *to, int by_closure) {
  uint32_t add = image_packed(to, "test.add"), closure = image_packed(to, "vm.builtin.make_closure");
  uint32_t invoke = image_packed(to, "vm.builtin.invoke_closure");
  uint32_t sum = image_bytecode(to, "sum", "n", 4);
  int32_t start = image_here(to);
  IF(to, 0, 0);
  CALL(to, 1, add, R(0), I(-1));
  if (by_closure) {
    CALL(to, 2, closure, F(sum), R(1));
    CALL(to, 3, invoke, X, R(2));
  } else {
    CALL(to, 3, sum, R(1));
  }
  CALL(to, 3, add, R(3), R(0));
  RET(to, 3);
  image_patch(to, start + 2, image_here(to) - start);
  RET(to, 0);
  return sum;
}

static void recursion_does_not_use_the_c_stack(void) {
  for (int by_closure = 0; by_closure < 2; by_closure++) {
    bench b = {0};
    uint32_t sum = build_sum(&b.program, by_closure);
    bench_open(&b, NULL);
    CHECK_OK(RUN(b, sum, int_value(150000)), b.result);
    CHECK_INT(b.result.as.i, (int64_t)150000 * 150001 / 2);
    bench_close(&b);
  }
}

static void exhausted_stacks_are_errors(void) {
  for (int by_closure = 0; by_closure < 2; by_closure++) {
    bench b = {0};
    uint32_t sum = build_sum(&b.program, by_closure);
    bench_open(&b, NULL);
    CHECK_INT(RUN(b, sum, int_value(300000)), RVM_STACK_OVERFLOW);
    CHECK(strstr(b.result.as.error->message, "sum: call depth exceeds the limit of 200000") != NULL);
    CHECK_INT(b.result.as.error->frames, 200000);
    CHECK(strstr(b.result.as.error->trace, "\n  ... and 199980 more") != NULL);
    rvm_value_release(&b.result);
    check_idle(b.machine);
    CHECK_OK(RUN(b, sum, int_value(10)), b.result);
    CHECK_INT(b.result.as.i, 55);
    bench_close(&b);
  }
  for (int64_t stack_values = 0; stack_values < 100; stack_values++) {
    bench b = {0};
    uint32_t sum = build_sum(&b.program, stack_values % 2);
    const rvm_machine_options options = {.stack_values = stack_values + 1};
    bench_open(&b, &options);
    CHECK_FAILS(RUN(b, sum, int_value(100)), RVM_STACK_OVERFLOW, "the value stack of", b.result);
    bench_close(&b);
  }
}

static void an_error_names_the_way_it_came(void) {
  bench b = {0};
  uint32_t add = image_packed(&b.program, "test.add");
  uint32_t inner = image_bytecode(&b.program, "inner", "x", 2);
  CALL(&b.program, NONE, add, I(1));
  CALL(&b.program, 1, add, R(0), I(1));
  RET(&b.program, 1);
  uint32_t outer = image_bytecode(&b.program, "outer", "x", 2);
  CALL(&b.program, NONE, add, I(1));
  CALL(&b.program, NONE, add);
  CALL(&b.program, 1, inner, R(0));
  RET(&b.program, 1);
  bench_open(&b, NULL);
  rvm_value text = string_value("text");
  CHECK_INT(RUN(b, outer, text), RVM_TYPE_ERROR);
  CHECK(strcmp(b.result.as.error->message, "add: argument 0 is no int") == 0);
  CHECK(strcmp(b.result.as.error->trace, "  in inner at instruction 1\n  in outer at instruction 2") == 0);
  rvm_value_release(&b.result);
  CHECK_INT(text.as.object->references, 1);
  CHECK_OK(RUN(b, outer, int_value(4)), b.result);
  CHECK_INT(b.result.as.i, 5);
  rvm_value_release(&text);
  bench_close(&b);
}

static void a_wrong_number_of_arguments_is_an_error(void) {
  bench b = {0};
  uint32_t f = image_bytecode(&b.program, "f", "x y", 2);
  RET(&b.program, 0);
  uint32_t g = image_bytecode(&b.program, "g", "", 1);
  GOTO(&b.program, 0);
  uint32_t host = image_function(&b.program, RVM_KIND_packed, "test.add", "left right", 0);
  bench_open(&b, NULL);
  CHECK_FAILS(RUN(b, f, int_value(1)), RVM_ARGUMENT_ERROR, "f: expected 2 arguments (x, y), got 1", b.result);
  CHECK_FAILS(RUN(b, f, int_value(1), int_value(1), int_value(1)), RVM_ARGUMENT_ERROR, "got 3", b.result);
  CHECK_FAILS(RUN(b, g, int_value(1)), RVM_ARGUMENT_ERROR, "g: expected 0 arguments, got 1", b.result);
  CHECK_FAILS(RUN(b, host, int_value(1)), RVM_ARGUMENT_ERROR, "test.add: expected 2 arguments (left, right), got 1",
              b.result);
  CHECK_FAILS(RUN(b, 99), RVM_INDEX_ERROR, "function index 99 is out of range; the executable has 3 functions",
              b.result);
  CHECK_FAILS(RUN(b, -1), RVM_INDEX_ERROR, "function index -1 is out of range", b.result);
  CHECK_FAILS(RUN(b, f, int_value(1), ((rvm_value){.tag = RVM_TAG_CONTEXT})), RVM_TYPE_ERROR,
              "argument 1 cannot be passed", b.result);
  CHECK_FAILS(rvm_machine_call(b.machine, (int32_t)f, NULL, -1, &b.result), RVM_ARGUMENT_ERROR, "count is -1",
              b.result);
  bench_close(&b);
}

static void a_host_function_that_breaks_its_contract_is_an_error(void) {
  static const struct {
    rvm_status status;
    const char *text;
  } expected[] = {{RVM_INDEX_ERROR, "test.bad failed without an error message"},
                  {RVM_CALLBACK_ERROR, "invalid status or result"},
                  {RVM_CALLBACK_ERROR, "invalid status or result"},
                  {RVM_TYPE_ERROR, "test.bad failed without an error message"},
                  {RVM_CALLBACK_ERROR, "invalid status or result"},
                  {RVM_CALLBACK_ERROR, "invalid status or result"},
                  {RVM_CALLBACK_ERROR, "invalid status or result"},
                  {RVM_CALLBACK_ERROR, "invalid status or result"}};
  bench b = {0};
  uint32_t bad = image_packed(&b.program, "test.bad");
  uint32_t f = image_bytecode(&b.program, "f", "k", 2);
  CALL(&b.program, 1, bad, R(0));
  RET(&b.program, 1);
  bench_open(&b, NULL);
  for (int k = 0; k < COUNT_OF(expected); k++) {
    CHECK_FAILS(RUN(b, f, int_value(k)), expected[k].status, expected[k].text, b.result);
    CHECK_FAILS(RUN(b, bad, int_value(k)), expected[k].status, expected[k].text, b.result);
  }
  bench_close(&b);
}

/* A callee has the only references to arguments, and to values that a closure has captured, if the caller releases its
   own directly after the call. */
static void resets_after_a_call_come_before_the_callee(void) {
  bench b = {0};
  uint32_t closure = image_packed(&b.program, "vm.builtin.make_closure");
  uint32_t invoke = image_packed(&b.program, "vm.builtin.invoke_closure");
  uint32_t tuple = image_packed(&b.program, "vm.builtin.make_tuple");
  uint32_t copy = image_packed(&b.program, "vm.builtin.copy");
  uint32_t references = image_packed(&b.program, "test.references");
  uint32_t count = image_bytecode(&b.program, "count", "x", 2);
  CALL(&b.program, 1, references, R(0));
  RET(&b.program, 1);
  uint32_t same = image_bytecode(&b.program, "same", "x", 2);
  RET(&b.program, 0);
  uint32_t kept = image_bytecode(&b.program, "kept", "", 2);
  CALL(&b.program, 0, tuple, I(1));
  CALL(&b.program, 1, count, R(0));
  RET(&b.program, 1);
  uint32_t passed = image_bytecode(&b.program, "passed", "", 5);
  CALL(&b.program, 0, tuple, I(1));
  CALL(&b.program, 1, tuple, I(2)); /* the last reference to another object, which is released after the call */
  CALL(&b.program, 2, copy, I(3));
  CALL(&b.program, 4, same, I(4)); /* the first call of a run polls */
  CALL(&b.program, 3, count, R(0));
  RESET(&b.program, 0);
  RESET(&b.program, 1);
  RESET(&b.program, 2);
  RET(&b.program, 3);
  uint32_t captured = image_bytecode(&b.program, "captured", "", 3);
  CALL(&b.program, 0, tuple, I(1));
  CALL(&b.program, 1, closure, F(count), R(0));
  RESET(&b.program, 0);
  CALL(&b.program, 2, invoke, X, R(1));
  RESET(&b.program, 1);
  RET(&b.program, 2);
  bench_open(&b, NULL);
  CHECK_OK(RUN(b, kept), b.result);
  CHECK_INT(b.result.as.i, 2);
  CHECK_OK(RUN(b, passed), b.result);
  CHECK_INT(b.result.as.i, 1);
  CHECK_OK(RUN(b, captured), b.result);
  CHECK_INT(b.result.as.i, 1);
  bench_close(&b);
}

/* Closures of a bytecode function, of a packed function and of a closure, with more captured values than arguments. */
static void closures_are_called_with_what_they_captured(void) {
  bench b = {0};
  uint32_t make_tuple = image_packed(&b.program, "vm.builtin.make_tuple"), add = image_packed(&b.program, "test.add");
  uint32_t closure = image_packed(&b.program, "vm.builtin.make_closure");
  uint32_t invoke = image_packed(&b.program, "vm.builtin.invoke_pure_closure");
  uint32_t three = image_bytecode(&b.program, "three", "x y z", 4);
  CALL(&b.program, 3, make_tuple, R(0), R(1), R(2));
  RET(&b.program, 3);
  uint32_t f = image_bytecode(&b.program, "f", "x", 6);
  CALL(&b.program, 1, closure, F(three), I(2), I(3));
  CALL(&b.program, 2, invoke, X, R(1), R(0)); /* three(x, 2, 3) */
  CALL(&b.program, 3, closure, F(add), I(30));
  CALL(&b.program, 3, invoke, X, R(3), I(1), I(2)); /* 33 */
  CALL(&b.program, 4, closure, R(1), R(0));
  CALL(&b.program, 4, invoke, X, R(4)); /* three(x, 2, 3) */
  CALL(&b.program, 5, make_tuple, R(2), R(3), R(4), R(1));
  RET(&b.program, 5);
  bench_open(&b, NULL);
  rvm_value text = string_value("text"), result = {0};
  CHECK_OK(RUN(b, f, text), b.result);
  const rvm_value *items = b.result.as.tuple->items;
  CHECK_INT(items[1].as.i, 33);
  for (int i = 0; i < 4; i += 2) {
    CHECK(items[i].as.tuple->items[0].as.string == text.as.string);
    CHECK_INT(items[i].as.tuple->items[1].as.i, 2);
    CHECK_INT(items[i].as.tuple->items[2].as.i, 3);
  }
  rvm_value kept = items[3];
  rvm_value_retain(kept);
  rvm_value_release(&b.result);
  CHECK_OK(rvm_machine_invoke(b.machine, kept, &text, 1, &result), result);
  CHECK(result.as.tuple->items[0].as.string == text.as.string);
  rvm_value_release(&result);
  CHECK_FAILS(rvm_machine_invoke(b.machine, kept, NULL, 0, &result), RVM_ARGUMENT_ERROR,
              "three: expected 1 argument (x), got 0", result);
  CHECK_FAILS(rvm_machine_invoke(b.machine, int_value(1), NULL, 0, &result), RVM_TYPE_ERROR, "got int", result);
  rvm_machine *other;
  CHECK_OK(rvm_machine_new(b.exe.executable, NULL, &other, &result), result);
  CHECK_FAILS(rvm_machine_invoke(other, kept, &text, 1, &result), RVM_TYPE_ERROR, "another machine", result);
  CHECK_FAILS(rvm_machine_call(other, (int32_t)invoke, &kept, 1, &result), RVM_TYPE_ERROR, "to be the context", result);
  rvm_machine_release(other);
  rvm_value_release(&kept);
  rvm_value_release(&text);
  bench_close(&b);
}

static void count_release(void *self) { ++*(int *)self; }

/* A host function as a value: called from bytecode, as part of a closure, and from C.  It is released once. */
static void a_function_of_the_host_is_a_value(void) {
  bench b = {0};
  uint32_t closure = image_packed(&b.program, "vm.builtin.make_closure");
  uint32_t invoke = image_packed(&b.program, "vm.builtin.invoke_closure");
  uint32_t pure = image_packed(&b.program, "vm.builtin.check_pure_func_info");
  uint32_t f = image_bytecode(&b.program, "f", "callee", 3);
  CALL(&b.program, 1, closure, R(0), I(30));
  CALL(&b.program, 2, invoke, X, R(1), I(1), I(2));
  RET(&b.program, 2);
  uint32_t g = image_bytecode(&b.program, "g", "callee where", 3);
  CALL(&b.program, 2, pure, R(0), R(1));
  RET(&b.program, 2);
  bench_open(&b, NULL);
  int released = 0;
  rvm_value sum, bad, result;
  MAKE(sum, rvm_machine_function_new(b.machine, "sum", host_add, &released, count_release, &sum));
  MAKE(bad, rvm_machine_function_new(b.machine, "bad", host_bad, NULL, NULL, &bad));
  CHECK_OK(RUN(b, f, sum), b.result);
  CHECK_INT(b.result.as.i, 33);
  CHECK_OK(rvm_machine_invoke(b.machine, sum, (rvm_value[]){int_value(3), int_value(4)}, 2, &result), result);
  CHECK_INT(result.as.i, 7);
  CHECK_OK(rvm_machine_invoke(b.machine, sum, NULL, 0, &result), result);
  CHECK_INT(result.as.i, 0);
  const rvm_value index_error = int_value(0);
  CHECK_FAILS(rvm_machine_invoke(b.machine, bad, &index_error, 1, &result), RVM_INDEX_ERROR,
              "bad failed without an error message", result);
  rvm_value where = string_value("g: argument f");
  CHECK_FAILS(RUN(b, g, sum, where), RVM_TYPE_ERROR, "g: argument f: expected a pure function", b.result);
  rvm_machine *other;
  CHECK_OK(rvm_machine_new(b.exe.executable, NULL, &other, &result), result);
  CHECK_FAILS(rvm_machine_invoke(other, sum, NULL, 0, &result), RVM_TYPE_ERROR, "another machine", result);
  rvm_machine_release(other);
  CHECK_INT(released, 0);
  rvm_value_release(&sum);
  CHECK_INT(released, 1);
  rvm_value_release(&bad);
  rvm_value_release(&where);
  bench_close(&b);
}

static void a_closure_with_too_much_captured_is_an_error(void) {
  bench b = {0};
  uint32_t closure = image_packed(&b.program, "vm.builtin.make_closure"),
           invoke = image_packed(&b.program, "vm.builtin.invoke_closure");
  uint32_t f = image_bytecode(&b.program, "f", "x", 3);
  CALL(&b.program, 1, closure, F(f), I(1), I(2));
  CALL(&b.program, 2, invoke, X, R(1));
  RET(&b.program, 2);
  bench_open(&b, NULL);
  CHECK_FAILS(RUN(b, f, int_value(0)), RVM_ARGUMENT_ERROR,
              "f: the closure captured 2 values, but the function has only 1 parameter", b.result);
  bench_close(&b);
}

/* Builds f(n) = n == 0 ? 0 : host_call(f, n - 1).  Each call nests on the C stack. */
static uint32_t build_nesting(image *to) {
  uint32_t add = image_packed(to, "test.add"), call = image_packed(to, "test.call");
  uint32_t f = image_bytecode(to, "f", "n", 2);
  IF(to, 0, 3 + 6 + 7 + 2);
  CALL(to, 1, add, R(0), I(-1));
  CALL(to, 1, call, X, F(f), R(1));
  RET(to, 1);
  RET(to, 0);
  return f;
}

static void nesting_on_the_c_stack_is_limited(void) {
  bench b = {0};
  uint32_t f = build_nesting(&b.program);
  bench_open(&b, NULL);
  CHECK_OK(RUN(b, f, int_value(1500)), b.result);
  CHECK_INT(b.result.as.i, 0);
  CHECK_FAILS(RUN(b, f, int_value(1000000)), RVM_STACK_OVERFLOW, "C stack", b.result);
  check_idle(b.machine);
  CHECK_OK(RUN(b, f, int_value(3)), b.result);
  bench_close(&b);
}

static int polls;
static rvm_status poll_thrice(void *host, rvm_value *error) {
  CHECK(host == &polls);
  if (++polls < 3) return RVM_OK;
  return polls == 3 ? rvm_fail(error, RVM_INTERRUPTED, "enough") : 4242;
}

static void long_loops_are_polled(void) {
  bench b = {0};
  uint32_t f = image_bytecode(&b.program, "f", "", 1);
  GOTO(&b.program, 0);
  const rvm_machine_options options = {.poll = poll_thrice, .host = &polls};
  bench_open(&b, &options);
  allocations_left = LONG_MAX; /* no sweep, because polls are counted */
  CHECK_FAILS(RUN(b, f), RVM_INTERRUPTED, "enough", b.result);
  CHECK_INT(polls, 3);
  CHECK_FAILS(RUN(b, f), RVM_CALLBACK_ERROR, "stopped by the host's poll", b.result);
  allocations_left = -1;
  bench_close(&b);
}

static rvm_status host_interrupt(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  (void)self, (void)count, (void)result;
  rvm_machine_interrupt(arguments[0].as.machine);
  return RVM_OK;
}

static void an_interrupt_ends_the_run_and_only_it(void) {
  bench b = {0};
  rvm_value error;
  CHECK_OK(rvm_register("test.interrupt", host_interrupt, NULL, 0, &error), error);
  uint32_t interrupt = image_packed(&b.program, "test.interrupt"), copy = image_packed(&b.program, "vm.builtin.copy");
  uint32_t f = image_bytecode(&b.program, "f", "x", 2);
  IF(&b.program, 0, 3 + 5 + 5);
  CALL(&b.program, NONE, interrupt, X);
  CALL(&b.program, NONE, interrupt, X); /* not called: the machine polls after host functions */
  CALL(&b.program, 1, copy, I(5));
  RET(&b.program, 1);
  bench_open(&b, NULL);
  CHECK_FAILS(RUN(b, f, int_value(1)), RVM_INTERRUPTED, "interrupted", b.result);
  rvm_machine_interrupt(b.machine); /* idle: there is no run to end */
  CHECK_OK(RUN(b, f, int_value(0)), b.result);
  CHECK_INT(b.result.as.i, 5);
  bench_close(&b);
  CHECK_OK(rvm_unregister("test.interrupt", &error), error);
}

static void unknown_packed_functions_are_named(void) {
  image program = {0};
  loaded exe;
  rvm_value error;
  rvm_machine *machine;
  image_packed(&program, "vm.builtin.make_tupel");
  MAKE(exe, image_load(&program, &exe, &error));
  CHECK_FAILS(rvm_machine_new(exe.executable, NULL, &machine, &error), RVM_UNKNOWN_FUNCTION,
              "unknown function \"vm.builtin.make_tupel\"; did you mean vm.builtin.make_tuple", error);
  loaded_release(&exe);
  image_packed(&program, "nothing.like.it");
  MAKE(exe, image_load(&program, &exe, &error));
  CHECK_FAILS(rvm_machine_new(exe.executable, NULL, &machine, &error), RVM_UNKNOWN_FUNCTION, "\"nothing.like.it\"",
              error);
  const rvm_machine_options negative = {.stack_values = -1};
  CHECK_FAILS(rvm_machine_new(exe.executable, &negative, &machine, &error), RVM_ARGUMENT_ERROR,
              "expected 0 (the default) to", error);
  loaded_release(&exe);
}

static void names_are_registered_once(void) {
  rvm_value error;
  CHECK_FAILS(rvm_register("test.add", host_bad, NULL, 0, &error), RVM_BUSY, "\"test.add\" is already registered",
              error);
  CHECK_FAILS(rvm_register("vm.builtin.copy", host_bad, NULL, 1, &error), RVM_BUSY, "belong to builtins", error);
  CHECK_OK(rvm_register("test.add", host_add, NULL, 1, &error), error);
  CHECK(rvm_is_registered("test.add") && rvm_is_registered("vm.builtin.copy") && !rvm_is_registered("test.ad"));
  CHECK_FAILS(rvm_unregister("test.ad", &error), RVM_UNKNOWN_FUNCTION, "did you mean test.add, test.bad?", error);
  char name[32];
  for (int i = 0; i < 100; i++) {
    snprintf(name, sizeof name, "test.%d", i * 37 % 100);
    CHECK_OK(rvm_register(name, host_add, NULL, 0, &error), error);
  }
  for (int i = 0; i < 100; i++) {
    snprintf(name, sizeof name, "test.%d", i);
    CHECK_OK(rvm_unregister(name, &error), error);
  }
}

int main(void) {
  register_host();
  arguments_of_every_kind_reach_the_callee();
  if_and_goto_choose_the_branch();
  steps_do_what_their_builtins_do();
  reset_releases_at_once();
  recursion_does_not_use_the_c_stack();
  exhausted_stacks_are_errors();
  an_error_names_the_way_it_came();
  a_wrong_number_of_arguments_is_an_error();
  a_host_function_that_breaks_its_contract_is_an_error();
  resets_after_a_call_come_before_the_callee();
  closures_are_called_with_what_they_captured();
  a_function_of_the_host_is_a_value();
  a_closure_with_too_much_captured_is_an_error();
  nesting_on_the_c_stack_is_limited();
  long_loops_are_polled();
  an_interrupt_ends_the_run_and_only_it();
  unknown_packed_functions_are_named();
  names_are_registered_once();
  unregister_host();
  return CHECK_RESULT();
}
