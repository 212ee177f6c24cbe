/* The steps that bytecode becomes (decode.c): each form of them comes to the same result run plainly, watched by an
   instrument, and step by step.  Whatever stops a run, at any step and in place of any call, the machine is as before. */
#include "prim.h"
#include "run.h"

enum { MOST_STOPS = 24 };

typedef struct host_state {
  int64_t stops, ends_at; /* of the debugger: so far; the one that ends the run, or 0 */
  int32_t skipped;        /* a function that is not called, or -1 */
} host_state;

static image program;
static loaded what;
static rvm_machine *machine, *other;
static rvm_value result;
static host_state state = {.skipped = -1};
static uint32_t host, make_tuple, make_closure, invoke, copy, item, truth, dim, check, check_tensor;
static uint32_t i64, f64, boolean, f32, half, text;

#define RUN(function, ...) RUN_ON(machine, result, function, ##__VA_ARGS__)

static rvm_value float_value(double f) { return (rvm_value){.tag = RVM_TAG_FLOAT, .as.f = f}; }
static rvm_value bool_value(int b) { return (rvm_value){.tag = RVM_TAG_BOOL, .as.i = b}; }

/* ---- the host ---- */

/* host(x, ...): x, or nil. */
static rvm_status first(void *self, const rvm_value *arguments, int32_t count, rvm_value *value) {
  (void)self;
  if (count == 0) return RVM_OK;
  rvm_value_retain(arguments[0]);
  *value = arguments[0];
  return RVM_OK;
}

static rvm_status stop(void *self, const rvm_value *failure, rvm_value *error) {
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

static rvm_status before(void *self, int32_t function, const rvm_value *arguments, int32_t count, int32_t *skip,
                         rvm_value *error) {
  const host_state *to = self;
  (void)arguments, (void)count, (void)error;
  *skip = function == to->skipped;
  return RVM_OK;
}

/* ---- every way ---- */

static void look_on(int is_watched, int is_stepped) {
  const rvm_instrument instrument = {.kinds = UINT32_MAX, .before = before, .host = &state};
  const rvm_debugger debugger = {.stop = stop, .host = &state};
  CHECK_OK(rvm_machine_instrument(machine, is_watched ? &instrument : NULL, &result), result);
  CHECK_OK(rvm_machine_debug(machine, is_stepped ? &debugger : NULL, &result), result);
  if (is_stepped) rvm_machine_stop_within(machine, INT64_MAX);
}

/* What came of a run: the number, "true", the tag's name, or "!" and the error's message. */
static void tell(rvm_status status, char *to, size_t size_bytes) {
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

/* `expected`: what `tell` says, of an error a part of it. */
static void expect(int line, uint32_t function, const char *expected, int32_t count, const rvm_value *arguments) {
  char got[400];
  for (int way = 0; way < 4; way++) {
    look_on(way & 1, way & 2);
    state.stops = 0;
    tell(rvm_machine_call(machine, (int32_t)function, arguments, count, &result), got, sizeof got);
    const int is_same = *expected == '!' ? *got == '!' && strstr(got, expected + 1) : strcmp(got, expected) == 0;
    if (!is_same && ++checks_failed)
      printf("%s:%d: way %d: expected \"%s\", got \"%s\"\n", __FILE__, line, way, expected, got);
    check_idle(machine);
  }
  const int64_t stops = state.stops < MOST_STOPS ? state.stops : MOST_STOPS;
  for (state.ends_at = 1; state.ends_at <= stops; state.ends_at++) {
    state.stops = 0;
    CHECK_FAILS(rvm_machine_call(machine, (int32_t)function, arguments, count, &result), RVM_ASSERTION_ERROR, "enough", result);
    check_idle(machine);
  }
  state.ends_at = 0;
  look_on(1, 0);
  for (state.skipped = 0; state.skipped < rvm_executable_function_count(what.executable); state.skipped++) {
    tell(rvm_machine_call(machine, (int32_t)function, arguments, count, &result), got, sizeof got);
    check_idle(machine);
  }
  state.skipped = -1;
  look_on(0, 0);
}

#define EXPECT(text, function, ...)                                                            \
  expect(__LINE__, function, text, COUNT_OF(((rvm_value[]){int_value(0), ##__VA_ARGS__})) - 1, \
         (rvm_value[]){int_value(0), ##__VA_ARGS__} + 1)

/* A program begins with what the others call; its functions follow. */
static void begin(void) {
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

static uint32_t function(const char *name, const char *parameters, uint32_t registers) {
  return image_bytecode(&program, name, parameters, registers);
}

#define DO(destination, callee, ...) CALL(&program, destination, callee, ##__VA_ARGS__)
#define PARAMETER_IS(number, dtype) DO(NONE, check, R(number), C(dtype), C(text))
#define BINARY(destination, row, a, b) PRIM(&program, destination, RVM_PRIM_##row, a, b)
#define UNARY(destination, row, a) WORDS(&program, RVM_OP_prim, destination, RVM_PRIM_##row, 1, a)
#define RETURN(number) RET(&program, number)

static void run_with(const rvm_machine_options *options) {
  CHECK_OK(image_load(&program, &what, &result), result);
  if (!what.executable) exit(2);
  CHECK_OK(rvm_machine_new(what.executable, options, &machine, &result), result);
  CHECK_OK(rvm_machine_new(what.executable, options, &other, &result), result);
}

static void end(void) {
  rvm_machine_release(machine);
  rvm_machine_release(other);
  loaded_release(&what);
}

/* ---- tests ---- */

static void checks(void) {
  begin();
  uint32_t of[3], twice, late, number, dtype, place;
  const uint32_t dtypes[] = {i64, f64, boolean};
  for (int k = 0; k < 3; k++) {
    of[k] = function((const char *[]){"of_int", "of_float", "of_bool"}[k], "x", 1);
    PARAMETER_IS(0, dtypes[k]);
    RETURN(0);
  }
  twice = function("twice", "x", 1);
  PARAMETER_IS(0, i64);
  PARAMETER_IS(0, f64);
  RETURN(0);
  late = function("late", "", 1); /* of a register that is no parameter */
  DO(0, make_tuple, I(1));
  PARAMETER_IS(0, i64);
  RETURN(0);
  const uint32_t no_dtype = function("no_dtype", "x", 1);
  DO(NONE, check, R(0), C(half), C(text));
  RETURN(0);
  const uint32_t no_place = function("no_place", "x", 1);
  DO(NONE, check, R(0), C(i64), C(i64));
  RETURN(0);
  const uint32_t few = function("few", "x", 1);
  DO(NONE, check, R(0), C(i64));
  RETURN(0);
  const uint32_t few_of_tensor = function("few_of_tensor", "x", 1);
  DO(NONE, check_tensor, R(0), I(0), C(f32));
  RETURN(0);
  number = function("number", "x", 1);
  DO(NONE, check, I(3), C(i64), C(text));
  DO(NONE, check, R(0), C(f32), C(text));
  RETURN(0);
  dtype = function("dtype", "x", 2); /* not by a constant */
  DO(1, copy, C(i64));
  DO(NONE, check, R(0), R(1), C(text));
  DO(NONE, check, R(0), C(half), C(text));
  RETURN(0);
  place = function("place", "x", 2); /* whose result is kept; whose place is no text */
  DO(1, check, R(0), C(i64), C(text));
  DO(NONE, check, R(0), C(i64), C(i64));
  RETURN(1);
  run_with(NULL);
  const rvm_value nil = {0};
  EXPECT("3", of[0], int_value(3));
  EXPECT("0.5", of[1], float_value(0.5));
  EXPECT("true", of[2], bool_value(1));
  for (int k = 0; k < 3; k++) {
    EXPECT("!x: expected a scalar of dtype ", of[k], nil);
  }
  EXPECT("!x: expected a scalar of dtype f64, got int", twice, int_value(3));
  EXPECT("!x: expected a scalar of dtype i64, got tuple", late);
  EXPECT("!expected argument 2 to be a dtype, got float", no_dtype, int_value(3));
  EXPECT("!expected argument 3 to be a string, got dtype", no_place, int_value(3));
  EXPECT("!wrong number of arguments: 2", few, int_value(3));
  EXPECT("!wrong number of arguments: 3", few_of_tensor, int_value(3));
  EXPECT("0.5", number, float_value(0.5));
  EXPECT("!expected argument 2 to be a dtype, got float", dtype, int_value(1));
  EXPECT("!expected argument 3 to be a string, got dtype", place, int_value(1));
  end();
}

static void checks_of_tensors(void) {
  begin();
  const uint32_t anything = function("anything", "x", 1);
  DO(NONE, check_tensor, R(0), I(-1), N, C(text));
  RETURN(0);
  const uint32_t scalar = function("scalar", "x", 1);
  DO(NONE, check_tensor, R(0), I(0), C(f32), C(text));
  RETURN(0);
  const uint32_t others = function("others", "x", 3); /* that are no steps of their own */
  DO(1, check_tensor, R(0), I(0), C(f32), C(text));
  DO(2, copy, I(0));
  DO(NONE, check_tensor, R(0), R(2), C(f32), C(text));
  DO(2, copy, C(f32));
  DO(NONE, check_tensor, R(0), I(0), R(2), C(text));
  DO(NONE, check_tensor, R(0), I(0), C(f32), C(half));
  RETURN(0);
  run_with(NULL);
  rvm_value right = tensor_value(RVM_DTYPE_f32, 0, NULL), wrong = tensor_value(RVM_DTYPE_i64, 1, (int64_t[]){2}),
            rank = tensor_value(RVM_DTYPE_f32, 1, (int64_t[]){2}), dtype = tensor_value(RVM_DTYPE_i64, 0, NULL);
  EXPECT("a tensor of rank 1 and dtype i64", anything, wrong);
  EXPECT("!x: expected a tensor", anything, int_value(1));
  EXPECT("a tensor of rank 0 and dtype f32", scalar, right);
  EXPECT("!x: expected ", scalar, wrong);
  EXPECT("!x: expected ", scalar, rank);
  EXPECT("!x: expected ", scalar, dtype);
  EXPECT("!x: expected ", scalar, int_value(1));
  EXPECT("!expected argument 4 to be a string, got float", others, right);
  rvm_value_release(&right);
  rvm_value_release(&wrong);
  rvm_value_release(&rank);
  rvm_value_release(&dtype);
  end();
}

static void copies_and_items(void) {
  begin();
  const uint32_t moved = function("moved", "x", 3);
  PARAMETER_IS(0, i64);
  DO(1, copy, R(0));
  DO(2, copy, R(1));
  DO(2, copy, I(5));
  RETURN(1);
  const uint32_t copied = function("copied", "x", 3);
  DO(1, copy, R(0));
  DO(1, copy, C(text));
  DO(1, copy, R(0));
  DO(NONE, copy, R(0)); /* for nothing */
  DO(2, copy, C(half));
  DO(2, copy, F(make_tuple));
  RETURN(1);
  const uint32_t context = function("context", "", 1);
  DO(0, copy, X);
  RETURN(0);
  const uint32_t nothing = function("nothing", "", 1);
  DO(0, copy);
  RETURN(0);
  const uint32_t whole = function("whole", "x", 2);
  DO(1, item, R(0));
  RETURN(1);
  const uint32_t forever = function("forever", "", 1);
  TAIL_CALL(&program, forever);
  const uint32_t unlikely = function("unlikely", "x", 3); /* an int register and a copy of what never comes */
  DO(2, copy, I(5));
  IF(&program, 0, 3 + 4 + 5);
  DO(1, forever);
  DO(2, copy, R(1));
  RESET(&program, 0);
  GOTO(&program, 4);
  RETURN(2);
  RETURN(2);
  const uint32_t items = function("items", "x i", 4);
  DO(2, item, R(0), R(1));
  DO(NONE, item, R(0), R(1));
  RETURN(2);
  const uint32_t conditions = function("conditions", "x", 4);
  DO(1, truth, R(0));
  DO(2, dim, N, I(2), I(7));
  DO(NONE, host, R(0));
  UNARY(3, i64_of_bool, R(1));
  RETURN(3);
  run_with(NULL);
  rvm_value words = string_value("words"), pair = tuple_value(2, (rvm_value[]){int_value(1), words}), nil = {0};
  EXPECT("3", moved, int_value(3));
  EXPECT("string", copied, words);
  EXPECT("!", context);
  EXPECT("1", conditions, bool_value(1));
  EXPECT("!wrong number of arguments: 0", nothing);
  EXPECT("!wrong number of arguments: 1", whole, pair);
  EXPECT("5", unlikely, bool_value(0));
  EXPECT("!condition: expected", unlikely, words);
  EXPECT("string", items, pair, int_value(1));
  EXPECT("!index", items, pair, int_value(2));
  EXPECT("!", items, pair, nil);
  EXPECT("!", items, words, int_value(0));
  CHECK_INT(words.as.object->references, 2);
  rvm_value_release(&words);
  rvm_value_release(&pair);
  end();
}

/* name(x, y): 1 or 0, as x `row` y, or x `row` 3, is so. */
static uint32_t comparison(const char *name, uint32_t row, uint32_t second) {
  const uint32_t made = function(name, "x y", 4);
  PARAMETER_IS(0, i64);
  PARAMETER_IS(1, i64);
  PRIM(&program, 2, row, R(0), second);
  IF(&program, 2, 3 + 5 + 2);
  DO(3, copy, I(1));
  RETURN(3);
  DO(3, copy, I(0));
  RETURN(3);
  return made;
}

static void comparisons(void) {
  static const char *const names[] = {"eq", "ne", "lt", "le", "gt", "ge", "eq3", "ne3", "lt3", "le3", "gt3", "ge3"};
  uint32_t of[12];
  begin();
  for (uint32_t k = 0; k < 12; k++) of[k] = comparison(names[k], RVM_PRIM_eq_i64 + k % 6, k < 6 ? R(1) : I(3));
  const uint32_t elsewhere = function("elsewhere", "x y", 4); /* the `if` is of another register, or does not follow */
  PARAMETER_IS(0, i64);
  PARAMETER_IS(1, i64);
  BINARY(2, lt_i64, R(0), R(1));
  BINARY(3, lt_i64, R(1), R(0));
  IF(&program, 2, 3);
  BINARY(2, lt_i64, R(0), I(7));
  BINARY(3, lt_i64, R(1), I(7));
  RETURN(3);
  const uint32_t any = function("any", "x y", 3);
  BINARY(2, lt_i64, R(0), R(1));
  IF(&program, 2, 3 + 2);
  RETURN(0);
  RETURN(1);
  const uint32_t literal = function("literal", "x", 2); /* a literal first: no step of its own */
  PARAMETER_IS(0, i64);
  BINARY(1, lt_i64, I(3), R(0));
  RETURN(1);
  const uint32_t mixed = function("mixed", "x", 3); /* what is computed into holds objects, too */
  PARAMETER_IS(0, i64);
  DO(1, copy, C(text));
  BINARY(1, lt_i64, R(0), I(3));
  BINARY(1, lt_i64, R(0), R(0));
  RETURN(1);
  run_with(NULL);
  for (int64_t x = 2; x <= 4; x++) {
    const int so[] = {x == 3, x != 3, x < 3, x <= 3, x > 3, x >= 3};
    for (int k = 0; k < 12; k++) EXPECT(so[k % 6] ? "1" : "0", of[k], int_value(x), int_value(3));
  }
  EXPECT("true", elsewhere, int_value(3), int_value(4));
  EXPECT("false", elsewhere, int_value(3), int_value(8));
  EXPECT("3", any, int_value(3), int_value(4));
  EXPECT("4", any, int_value(5), int_value(4));
  EXPECT("!lt_i64: expected", any, float_value(3), int_value(4));
  EXPECT("true", literal, int_value(5));
  EXPECT("false", mixed, int_value(1));
  end();
}

static void operators_that_fail(void) {
  begin();
  const uint32_t registers = function("registers", "x y", 3);
  PARAMETER_IS(0, i64);
  PARAMETER_IS(1, i64);
  BINARY(2, floordiv_i64, R(0), R(1));
  BINARY(2, shl_i64, R(2), I(62));
  RETURN(2);
  const uint32_t literals = function("literals", "x", 2);
  PARAMETER_IS(0, i64);
  BINARY(1, mod_i64, R(0), I(0));
  RETURN(1);
  const uint32_t rounded = function("rounded", "x", 3);
  PARAMETER_IS(0, f64);
  BINARY(1, add_f64, R(0), C(half));
  UNARY(2, i64_of_f64, R(1));
  RETURN(2);
  const uint32_t of_bool = function("of_bool", "x", 2);
  PARAMETER_IS(0, boolean);
  UNARY(1, not_bool, R(0));
  RETURN(1);
  run_with(NULL);
  EXPECT("4611686018427387904", registers, int_value(3), int_value(2));
  EXPECT("!floordiv_i64(3, 0): integer division by zero", registers, int_value(3), int_value(0));
  EXPECT("!mod_i64(3, 0): integer division by zero", literals, int_value(3));
  EXPECT("3", rounded, float_value(2.5));
  EXPECT("!i64_of_f64(1e+300): ", rounded, float_value(1e300));
  EXPECT("false", of_bool, bool_value(1));
  end();
}

static void tail_calls(void) {
  begin();
  const uint32_t ints = function("ints", "n sum", 4);
  PARAMETER_IS(0, i64);
  PARAMETER_IS(1, i64);
  BINARY(2, gt_i64, R(0), I(0));
  IF(&program, 2, 3 + 6 + 6 + 5);
  BINARY(3, add_i64, R(1), R(0));
  BINARY(2, sub_i64, R(0), I(1));
  TAIL_CALL(&program, ints, R(2), R(3));
  RETURN(1);
  const uint32_t objects = function("objects", "n x", 4);
  BINARY(2, gt_i64, R(0), I(0));
  IF(&program, 2, 3 + 6 + 5);
  BINARY(3, sub_i64, R(0), I(1));
  TAIL_CALL(&program, objects, R(3), R(1));
  RETURN(1);
  const uint32_t swap = function("swap", "n x y", 5); /* in no order */
  for (uint32_t k = 0; k < 3; k++) PARAMETER_IS(k, i64);
  BINARY(3, gt_i64, R(0), I(0));
  IF(&program, 3, 3 + 6 + 6);
  BINARY(4, sub_i64, R(0), I(1));
  TAIL_CALL(&program, swap, R(4), R(2), R(1));
  RETURN(1);
  const uint32_t shift = function("shift", "n x y", 5); /* in one order only; one stays where it is */
  for (uint32_t k = 0; k < 3; k++) PARAMETER_IS(k, i64);
  BINARY(3, gt_i64, R(2), I(0));
  IF(&program, 3, 3 + 6 + 6);
  BINARY(4, sub_i64, R(2), I(1));
  TAIL_CALL(&program, shift, R(0), R(2), R(4));
  RETURN(1);
  const uint32_t many = function("many", "a b c d e f g h i j k l m n o p q", 19);
  for (uint32_t k = 0; k < 17; k++) PARAMETER_IS(k, i64);
  BINARY(17, gt_i64, R(0), I(0));
  IF(&program, 17, 3 + 6 + 20);
  BINARY(18, sub_i64, R(0), I(1));
  TAIL_CALL(&program, many, R(18), R(2), R(3), R(4), R(5), R(6), R(7), R(8), R(9), R(10), R(11), R(12), R(13), R(14), R(15), R(16), R(1));
  RETURN(1);
  const uint32_t wrong = function("wrong", "n", 2); /* the check at its beginning is needed again */
  PARAMETER_IS(0, i64);
  TAIL_CALL(&program, wrong, C(half));
  const uint32_t more = function("more", "x", 1); /* gives way to one that takes more */
  TAIL_CALL(&program, shift, R(0), R(0), I(0));
  const uint32_t called = function("called", "x", 2);
  DO(1, more, R(0));
  DO(NONE, more, R(0));
  RETURN(1);
  const uint32_t to_host = function("to_host", "x", 1);
  TAIL_CALL(&program, host, R(0));
  const uint32_t of_host = function("of_host", "x", 2);
  PARAMETER_IS(0, i64);
  DO(1, to_host, R(0));
  RETURN(1);
  const uint32_t via = function("via", "x", 1);
  TAIL_CALL(&program, ints, R(0), I(0));
  const uint32_t typed = function("typed", "x", 2); /* what comes of the call fits an int register, or it is refused */
  DO(1, via, R(0));
  RETURN(1);
  const uint32_t by_closure = function("by_closure", "callee x", 2);
  TAIL_CALL(&program, invoke, X, R(0), R(1));
  const uint32_t bound = function("bound", "x", 2);
  DO(1, make_closure, F(objects), R(0));
  TAIL_CALL(&program, by_closure, R(1), I(2));
  const uint32_t early = function("early", "x", 2); /* before anything is checked */
  IF(&program, 0, 3 + 4);
  TAIL_CALL(&program, early, B(0));
  RETURN(0);
  run_with(NULL);
  rvm_value words = string_value("words"), nil = {0};
  EXPECT("15", ints, int_value(5), int_value(0));
  EXPECT("string", objects, int_value(5), words);
  EXPECT("!", objects, words, words);
  EXPECT("8", swap, int_value(3), int_value(7), int_value(8));
  EXPECT("1", shift, int_value(3), int_value(7), int_value(4));
  EXPECT("3", many, int_value(18), int_value(1), int_value(2), int_value(3), int_value(4), int_value(5), int_value(6),
         int_value(7), int_value(8), int_value(9), int_value(10), int_value(11), int_value(12), int_value(13),
         int_value(14), int_value(15), int_value(16));
  EXPECT("!x: expected a scalar of dtype i64, got float", wrong, int_value(1));
  EXPECT("3", called, int_value(3));
  EXPECT("3", of_host, int_value(3));
  EXPECT("6", typed, int_value(3));
  EXPECT("nil", to_host, nil);
  EXPECT("3", by_closure, rvm_machine_function(machine, (int32_t)to_host), int_value(3));
  EXPECT("3", by_closure, rvm_machine_function(machine, (int32_t)host), int_value(3));
  EXPECT("!expected", by_closure, words, int_value(3));
  EXPECT("!", by_closure, rvm_machine_function(other, (int32_t)to_host), int_value(3));
  EXPECT("string", bound, words);
  EXPECT("false", early, bool_value(1));
  CHECK_INT(words.as.object->references, 1);
  rvm_value_release(&words);
  end();
}

/* What the instrument skips gives nil, which fits no int register; that the caller of a function ends with it, too. */
static void skipped_calls(void) {
  begin();
  const uint32_t copied = function("copied", "x", 1);
  PARAMETER_IS(0, i64);
  TAIL_CALL(&program, copy, R(0));
  const uint32_t main_function = function("main", "x", 2);
  DO(1, copied, R(0));
  RETURN(1);
  run_with(NULL);
  for (int is_stepped = 0; is_stepped < 2; is_stepped++) {
    const rvm_instrument instrument = {.kinds = 1u << RVM_KIND_packed, .before = before, .host = &state};
    look_on(0, is_stepped);
    CHECK_OK(rvm_machine_instrument(machine, &instrument, &result), result);
    state.skipped = (int32_t)copy;
    CHECK_FAILS(RUN(main_function, int_value(3)), RVM_TYPE_ERROR, "copied: expected a scalar, got nil", result);
    state.skipped = -1;
    CHECK_OK(RUN(main_function, int_value(3)), result);
    CHECK_INT(result.as.i, 3);
  }
  end();
}

static void calls_of_values(void) {
  begin();
  const uint32_t pair = function("pair", "x y", 3);
  DO(2, make_tuple, R(0), R(1));
  RETURN(2);
  const uint32_t called = function("called", "callee x", 3);
  DO(2, invoke, X, R(0), R(1));
  DO(NONE, invoke, X, R(0), R(1));
  RETURN(2);
  const uint32_t bound = function("bound", "x", 3);
  DO(1, make_closure, F(pair), R(0));
  DO(2, called, R(1), R(0));
  RETURN(2);
  const uint32_t none = function("none", "callee", 2); /* without the context; without what to call */
  DO(1, invoke, R(0), R(0));
  RETURN(1);
  const uint32_t alone = function("alone", "callee", 2);
  DO(1, invoke, X);
  RETURN(1);
  const uint32_t one = function("one", "x", 1);
  RETURN(0);
  const uint32_t loop = function("loop", "callee n", 4); /* long enough for a look at the limits */
  PARAMETER_IS(1, i64);
  BINARY(2, gt_i64, R(1), I(0));
  IF(&program, 2, 3 + 7 + 7 + 6 + 2);
  DO(3, invoke, X, R(0), R(1));
  DO(3, invoke, X, R(0), R(1));
  BINARY(1, sub_i64, R(1), I(1));
  GOTO(&program, -(6 + 3 + 7 + 7 + 6));
  RETURN(1);
  run_with(NULL);
  rvm_value words = string_value("words");
  const rvm_value host_value = rvm_machine_function(machine, (int32_t)host);
  EXPECT("string", called, host_value, words);
  EXPECT("tuple", bound, words);
  EXPECT("!pair: expected 2 arguments (x, y), got 1", called, rvm_machine_function(machine, (int32_t)pair), words);
  EXPECT("!", called, rvm_machine_function(other, (int32_t)pair), words);
  EXPECT("!expected", called, words, words);
  EXPECT("!", none, words);
  EXPECT("!", alone, words);
  for (int is_stepped = 0; is_stepped < 2; is_stepped++) {
    look_on(0, is_stepped);
    CHECK_OK(RUN(loop, rvm_machine_function(machine, (int32_t)one), int_value(70000)), result);
    CHECK_INT(result.as.i, 0);
  }
  look_on(0, 0);
  CHECK_INT(words.as.object->references, 1);
  rvm_value_release(&words);
  end();
}

static void loops_that_are_long(void) {
  begin();
  const uint32_t down = function("down", "n", 2);
  PARAMETER_IS(0, i64);
  BINARY(0, sub_i64, R(0), I(1));
  BINARY(1, le_i64, R(0), I(0));
  IF(&program, 1, -12);
  RETURN(0);
  run_with(NULL);
  for (int is_stepped = 0; is_stepped < 2; is_stepped++) {
    look_on(0, is_stepped);
    CHECK_OK(RUN(down, int_value(140000)), result);
    CHECK_INT(result.as.i, 0);
  }
  end();
}

/* name(n): counts up from n, for ever. */
static void build_loops(uint32_t of[6]) {
  of[0] = function("by_goto", "n", 1);
  PARAMETER_IS(0, i64);
  BINARY(0, add_i64, R(0), I(1));
  GOTO(&program, -6);
  of[1] = function("by_if", "n", 2);
  PARAMETER_IS(0, i64);
  DO(1, copy, B(0));
  BINARY(0, add_i64, R(0), I(1));
  IF(&program, 1, -6);
  RETURN(0);
  of[2] = function("by_comparison", "n", 2);
  PARAMETER_IS(0, i64);
  BINARY(0, add_i64, R(0), I(1));
  BINARY(1, lt_i64, R(0), R(0));
  IF(&program, 1, -12);
  RETURN(0);
  of[3] = function("by_ints", "n", 2);
  PARAMETER_IS(0, i64);
  BINARY(1, add_i64, R(0), I(1));
  TAIL_CALL(&program, of[3], R(1));
  of[4] = function("by_objects", "n", 2);
  BINARY(1, add_i64, R(0), I(1));
  TAIL_CALL(&program, of[4], R(1));
  of[5] = function("by_calls", "n", 3); /* and what they give */
  PARAMETER_IS(0, i64);
  DO(1, copy, R(0));
  DO(2, of[5], R(0));
  GOTO(&program, -5);
}

static void loops_that_do_not_end(void) {
  uint32_t of[6];
  const rvm_machine_options options = {.max_steps = 300, .call_depth = 1 << 20, .stack_values = 1 << 20};
  begin();
  build_loops(of);
  run_with(&options);
  for (int k = 0; k < 6; k++) EXPECT("!the run took more than its 300 steps", of[k], int_value(0));
  end();
}

/* With each size of the value stack one step or another has no room for its operands. */
static void small_stacks(void) {
  for (int64_t values = 1; values < 24; values++) {
    const rvm_machine_options options = {.stack_values = values};
    begin();
    const uint32_t ints = function("ints", "a b", 2);
    for (uint32_t k = 0; k < 2; k++) PARAMETER_IS(k, i64);
    TAIL_CALL(&program, make_tuple, R(0), R(1), R(0), R(1), R(0), R(1), R(0), R(1));
    const uint32_t again = function("again", "a b c d e", 6); /* with objects */
    IF(&program, 0, 3 + 5 + 8);
    DO(5, copy, R(1));
    TAIL_CALL(&program, again, I(0), R(5), R(1), R(1), R(1));
    RETURN(1);
    const uint32_t directly = function("directly", "callee x", 2);
    TAIL_CALL(&program, invoke, X, R(0), I(1), R(1), R(1), R(1), R(1));
    const uint32_t of_tuple = function("of_tuple", "callee x", 3);
    DO(2, make_tuple, R(1), R(1), R(1), R(1), R(1));
    RETURN(2);
    const uint32_t of_closure = function("of_closure", "callee x", 3);
    DO(2, make_closure, R(0), R(1), R(1));
    DO(2, make_closure, R(2), R(1), R(1));
    DO(2, invoke, X, R(2), I(1));
    RETURN(2);
    const uint32_t mains[] = {directly, of_tuple, of_closure}, callees[] = {ints, again};
    run_with(&options);
    for (int k = 0; k < 12; k++) {
      look_on(k & 1, 0);
      const rvm_value callee = rvm_machine_function(machine, (int32_t)callees[k / 2 % 2]);
      const rvm_status status = RUN(mains[k / 4], callee, int_value(1));
      CHECK(status == RVM_OK || status == RVM_STACK_OVERFLOW || status == RVM_ARGUMENT_ERROR);
      check_idle(machine);
      rvm_value_release(&result);
    }
    end();
  }
}

enum { CHAIN = 50 };

/* Types that take many rounds to be found: of functions that call the next one, and of registers around a loop. */
static void types_that_settle_late(void) {
  begin();
  uint32_t functions[CHAIN];
  for (uint32_t k = 0; k < CHAIN; k++) {
    functions[k] = function("chain", "n", 2);
    image_record(&program, functions[k])->name = image_string(&program, (char[]){'c', (char)('A' + k % 26), (char)('a' + k / 26), 0});
    PARAMETER_IS(0, i64);
    if (k + 1 < CHAIN) {
      DO(1, functions[k] + 1, R(0));
      BINARY(1, add_i64, R(1), I(1));
    } else {
      BINARY(1, add_i64, R(0), I(1));
    }
    RETURN(1);
  }
  const uint32_t around = function("around", "x n", CHAIN + 3);
  PARAMETER_IS(1, i64);
  for (uint32_t k = 2; k < CHAIN + 3; k++) DO(k, copy, I((int)k));
  const int32_t loop = image_here(&program);
  for (uint32_t k = 2; k < CHAIN + 1; k++) DO(k, copy, R(k + 1));
  DO(CHAIN + 1, copy, R(0));
  BINARY(1, sub_i64, R(1), I(1));
  BINARY(CHAIN + 2, le_i64, R(1), I(0));
  IF(&program, CHAIN + 2, loop - image_here(&program));
  RETURN(2);
  run_with(NULL);
  rvm_value words = string_value("words");
  EXPECT("53", functions[0], int_value(3));
  CHECK_OK(RUN(around, words, int_value(3)), result);
  CHECK_INT(result.as.i, 5);
  for (int is_stepped = 0; is_stepped < 2; is_stepped++) {
    look_on(0, is_stepped);
    CHECK_OK(RUN(around, words, int_value(CHAIN)), result);
    CHECK(result.as.string == words.as.string);
    rvm_value_release(&result);
  }
  look_on(0, 0);
  CHECK_INT(words.as.object->references, 1);
  rvm_value_release(&words);
  end();
}

/* What is said of a function with more names of parameters than there is room for; of a breakpoint behind the end. */
static void what_is_said(void) {
  char names[241] = "";
  begin();
  for (int k = 0; k < 120; k++) memcpy(names + 2 * k, (char[]){(char)('a' + k % 26), ' '}, 2);
  const uint32_t wide = function("wide", names, 120);
  RETURN(0);
  const uint32_t print = image_packed(&program, "vm.builtin.print");
  const uint32_t of_python = image_packed(&program, "vm.builtin.call_py_func");
  const uint32_t long_text = image_packed(&program, "vm.builtin.string_equal");
  const uint32_t others = function("others", "", 1); /* which take as long as they like */
  DO(0, print, I(1));
  DO(0, long_text, I(1), I(1));
  DO(NONE, of_python, C(text));
  RETURN(0);
  run_with(NULL);
  EXPECT("!", others);
  EXPECT("!wide: expected 120 arguments (a, b, c", wide);
  look_on(0, 1);
  CHECK_FAILS(rvm_machine_break(machine, (int32_t)wide, 1, 1, &result), RVM_INDEX_ERROR, "wide has no instruction 1", result);
  CHECK_FAILS(rvm_machine_break(machine, (int32_t)wide, 2, 1, &result), RVM_INDEX_ERROR, "wide has no instruction 2", result);
  CHECK_OK(rvm_machine_break(machine, (int32_t)wide, 0, 1, &result), result);
  end();
}

int main(void) {
  CHECK_OK(rvm_register("test.host", first, NULL, 0, &result), result);
  checks();
  checks_of_tensors();
  copies_and_items();
  comparisons();
  operators_that_fail();
  tail_calls();
  skipped_calls();
  calls_of_values();
  loops_that_are_long();
  loops_that_do_not_end();
  small_stacks();
  types_that_settle_late();
  what_is_said();
  CHECK_OK(rvm_unregister("test.host", &result), result);
  return CHECK_RESULT();
}
