/* steps.h: runs programs of specialized steps (predecode.c) plainly, watched by an instrument, and step by step, and
   checks that the results are the same.  It also ends runs at every step, and skips every call: the machine must be
   idle afterwards. */
#ifndef RELVM_TEST_STEPS_H
#define RELVM_TEST_STEPS_H

#include "scalar_ops.h"
#include "run.h"

enum { MAX_STOPS = 24 };

typedef struct host_state {
  int64_t stops;   /* number of stops of the debugger so far */
  int64_t ends_at; /* number of the stop that ends the run, or 0 */
  int32_t skipped; /* function whose calls are skipped, or -1 */
} host_state;

static image program;
static loaded exe;
static rvm_machine *machine, *other;
static rvm_value result;
static host_state state = {.skipped = -1};
static uint32_t host, make_tuple, make_closure, invoke, copy, item, truth, dim, check, check_tensor;
static uint32_t i64, f64, boolean, f32, half, text;

#define RUN(function, ...) RUN_ON(machine, result, function, ##__VA_ARGS__)

static inline rvm_value float_value(double f) { return (rvm_value){.tag = RVM_TAG_FLOAT, .as.f = f}; }
static inline rvm_value bool_value(int b) { return (rvm_value){.tag = RVM_TAG_BOOL, .as.i = b}; }

/* ---- the host ---- */

/* host(x, ...): returns x, or nil without arguments. */
static inline rvm_status first(void *self, const rvm_value *arguments, int32_t count, rvm_value *value) {
  (void)self;
  if (count == 0) return RVM_OK;
  rvm_value_retain(arguments[0]);
  *value = arguments[0];
  return RVM_OK;
}

static inline rvm_status stop(void *self, const rvm_value *failure, rvm_value *error) {
  host_state *to = self;
  char described[RVM_DESCRIPTION_BYTES];
  if (failure) return RVM_OK;
  for (int64_t i = 0; i < rvm_machine_depth(machine); i++) {
    const rvm_place place = rvm_machine_place(machine, i);
    for (int32_t k = 0; k < place.count; k++) rvm_value_describe(place.registers[k], described);
  }
  if (++to->stops != to->ends_at) return RVM_OK;
  return rvm_fail(error, RVM_ASSERTION_ERROR, "enough");
}

static inline rvm_status before(void *self, int32_t function, const rvm_value *arguments, int32_t count, int32_t *skip,
                                rvm_value *error) {
  const host_state *to = self;
  (void)arguments, (void)count, (void)error;
  *skip = function == to->skipped;
  return RVM_OK;
}

/* ---- every mode ---- */

static inline void observe(int is_watched, int is_stepped) {
  const rvm_instrument instrument = {.kinds = UINT32_MAX, .before = before, .host = &state};
  const rvm_debugger debugger = {.stop = stop, .host = &state};
  CHECK_OK(rvm_machine_instrument(machine, is_watched ? &instrument : NULL, &result), result);
  CHECK_OK(rvm_machine_debug(machine, is_stepped ? &debugger : NULL, &result), result);
  if (is_stepped) rvm_machine_stop_within(machine, INT64_MAX);
}

/* Describes the end of a run: the number, "true", the tag's name, or "!" and the error's message. */
static inline void describe_outcome(rvm_status status, char *to, size_t size_bytes) {
  char described[RVM_DESCRIPTION_BYTES];
  if (status)
    snprintf(to, size_bytes, "!%s", result.as.error->message);
  else if (result.tag == RVM_TAG_INT)
    snprintf(to, size_bytes, "%lld", (long long)result.as.i);
  else if (result.tag == RVM_TAG_FLOAT)
    snprintf(to, size_bytes, "%g", result.as.f);
  else if (result.tag == RVM_TAG_BOOL)
    snprintf(to, size_bytes, "%s", result.as.i ? "true" : "false");
  else
    snprintf(to, size_bytes, "%s", rvm_value_describe(result, described));
  rvm_value_release(&result);
}

/* Checks the end of a run in every mode: `expected` is its description, or a part of it for an error. */
static inline void expect(int line, uint32_t function, const char *expected, int32_t count,
                          const rvm_value *arguments) {
  char got[400];
  for (int way = 0; way < 4; way++) {
    observe(way & 1, way & 2);
    state.stops = 0;
    describe_outcome(rvm_machine_call(machine, (int32_t)function, arguments, count, &result), got, sizeof got);
    const int is_same = *expected == '!' ? *got == '!' && strstr(got, expected + 1) : strcmp(got, expected) == 0;
    if (!is_same && ++checks_failed)
      printf("%s:%d: way %d: expected \"%s\", got \"%s\"\n", __FILE__, line, way, expected, got);
    check_idle(machine);
  }
  const int64_t stops = state.stops < MAX_STOPS ? state.stops : MAX_STOPS;
  for (state.ends_at = 1; state.ends_at <= stops; state.ends_at++) {
    state.stops = 0;
    CHECK_FAILS(rvm_machine_call(machine, (int32_t)function, arguments, count, &result), RVM_ASSERTION_ERROR, "enough",
                result);
    check_idle(machine);
  }
  state.ends_at = 0;
  observe(1, 0);
  for (state.skipped = 0; state.skipped < rvm_executable_function_count(exe.executable); state.skipped++) {
    describe_outcome(rvm_machine_call(machine, (int32_t)function, arguments, count, &result), got, sizeof got);
    check_idle(machine);
  }
  state.skipped = -1;
  observe(0, 0);
}

#define EXPECT(text, function, ...)                                                            \
  expect(__LINE__, function, text, COUNT_OF(((rvm_value[]){int_value(0), ##__VA_ARGS__})) - 1, \
         (rvm_value[]){int_value(0), ##__VA_ARGS__} + 1)

/* Begins a program with the functions that the others call. */
static inline void begin(void) {
  host = image_packed(&program, "test.host");
  make_tuple = image_packed(&program, "vm.builtin.make_tuple");
  make_closure = image_packed(&program, "vm.builtin.make_closure");
  invoke = image_packed(&program, "vm.builtin.invoke_closure");
  copy = image_packed(&program, "vm.builtin.copy");
  item = image_packed(&program, "vm.builtin.tuple_getitem");
  truth = image_packed(&program, "vm.builtin.read_if_cond");
  dim = image_packed(&program, "vm.builtin.read_dim");
  check = image_packed(&program, "vm.builtin.check_prim_value_info");
  check_tensor = image_packed(&program, "vm.builtin.check_tensor_info");
  i64 = image_dtype(&program, RVM_DTYPE_i64);
  f64 = image_dtype(&program, RVM_DTYPE_f64);
  boolean = image_dtype(&program, RVM_DTYPE_bool);
  f32 = image_dtype(&program, RVM_DTYPE_f32);
  half = image_float(&program, 0.5);
  text = image_text(&program, "x");
}

static inline uint32_t function(const char *name, const char *parameters, uint32_t registers) {
  return image_bytecode(&program, name, parameters, registers);
}

#define DO(destination, callee, ...) CALL(&program, destination, callee, ##__VA_ARGS__)
#define PARAMETER_IS(number, dtype) DO(NONE, check, R(number), C(dtype), C(text))
#define BINARY(destination, row, a, b) PRIM(&program, destination, RVM_SCALAR_OP_##row, a, b)
#define UNARY(destination, row, a) WORDS(&program, RVM_OP_prim, destination, RVM_SCALAR_OP_##row, 1, a)
#define RETURN(number) RET(&program, number)

static inline void run_with(const rvm_machine_options *options) {
  CHECK_OK(image_load(&program, &exe, &result), result);
  if (!exe.executable) exit(2);
  CHECK_OK(rvm_machine_new(exe.executable, options, &machine, &result), result);
  CHECK_OK(rvm_machine_new(exe.executable, options, &other, &result), result);
}

static inline void end(void) {
  rvm_machine_release(machine);
  rvm_machine_release(other);
  loaded_release(&exe);
}

/* Runs the tests with the host function registered. */
static inline int run_tests(void (*const tests[])(void), int32_t count) {
  CHECK_OK(rvm_register("test.host", first, NULL, 0, &result), result);
  for (int32_t i = 0; i < count; i++) tests[i]();
  CHECK_OK(rvm_unregister("test.host", &result), result);
  return CHECK_RESULT();
}

#endif
