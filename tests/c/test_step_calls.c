/* test_step_calls.c: steps for calls, tail calls and loops (steps.h), and their error messages. */
#include "steps.h"

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
  const uint32_t shift = function("shift", "n x y", 5); /* in one order only; one is unchanged */
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
  TAIL_CALL(&program, many, R(18), R(2), R(3), R(4), R(5), R(6), R(7), R(8), R(9), R(10), R(11), R(12), R(13), R(14),
            R(15), R(16), R(1));
  RETURN(1);
  const uint32_t wrong = function("wrong", "n", 2); /* the check at its beginning is repeated */
  PARAMETER_IS(0, i64);
  TAIL_CALL(&program, wrong, C(half));
  const uint32_t both = function("both", "n", 1); /* no argument passes both of its checks */
  PARAMETER_IS(0, i64);
  PARAMETER_IS(0, f64);
  TAIL_CALL(&program, both, R(0));
  const uint32_t more = function("more", "x", 1); /* tail-calls a function with more parameters */
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
  const uint32_t typed = function("typed", "x", 2); /* the result must fit an int register */
  DO(1, via, R(0));
  RETURN(1);
  const uint32_t by_closure = function("by_closure", "callee x", 2);
  TAIL_CALL(&program, invoke, X, R(0), R(1));
  const uint32_t bound = function("bound", "x", 2);
  DO(1, make_closure, F(objects), R(0));
  TAIL_CALL(&program, by_closure, R(1), I(2));
  const uint32_t early = function("early", "x", 2); /* no check of types precedes the tail call */
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
  EXPECT("!x: expected a scalar of dtype f64, got int", both, int_value(1));
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

/* A call that the instrument skips returns nil.  An int register does not accept nil, neither from the skipped function
   nor from a function that returns its result. */
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
    observe(0, is_stepped);
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
  const uint32_t none = function("none", "callee", 2); /* without the context; without a callee */
  DO(1, invoke, R(0), R(0));
  RETURN(1);
  const uint32_t alone = function("alone", "callee", 2);
  DO(1, invoke, X);
  RETURN(1);
  const uint32_t one = function("one", "x", 1);
  RETURN(0);
  const uint32_t loop = function("loop", "callee n", 4); /* long enough to reach a poll */
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
    observe(0, is_stepped);
    CHECK_OK(RUN(loop, rvm_machine_function(machine, (int32_t)one), int_value(70000)), result);
    CHECK_INT(result.as.i, 0);
  }
  observe(0, 0);
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
    observe(0, is_stepped);
    CHECK_OK(RUN(down, int_value(140000)), result);
    CHECK_INT(result.as.i, 0);
  }
  end();
}

/* Builds functions name(n) that count up from n for ever. */
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
  of[5] = function("by_calls", "n", 3); /* with results */
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
  for (int k = 0; k < 6; k++) EXPECT("!the run exceeded its limit of 300 steps", of[k], int_value(0));
  end();
}

/* For each small size of the value stack, some step lacks space for its operands. */
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
      observe(k & 1, 0);
      const rvm_value callee = rvm_machine_function(machine, (int32_t)callees[k / 2 % 2]);
      const rvm_status status = RUN(mains[k / 4], callee, int_value(1));
      CHECK(status == RVM_OK || status == RVM_STACK_OVERFLOW || status == RVM_ARGUMENT_ERROR);
      check_idle(machine);
      rvm_value_release(&result);
    }
    end();
  }
}

/* Messages with more parameter names than fit, and for a breakpoint after the last instruction. */
static void what_is_said(void) {
  char names[241] = "";
  begin();
  for (int k = 0; k < 120; k++) memcpy(names + 2 * k, (char[]){(char)('a' + k % 26), ' '}, 2);
  const uint32_t wide = function("wide", names, 120);
  RETURN(0);
  const uint32_t print = image_packed(&program, "vm.builtin.print");
  const uint32_t of_python = image_packed(&program, "vm.builtin.call_py_func");
  const uint32_t long_text = image_packed(&program, "vm.builtin.string_equal");
  const uint32_t others = function("others", "", 1); /* of unbounded duration */
  DO(0, print, I(1));
  DO(0, long_text, I(1), I(1));
  DO(NONE, of_python, C(text));
  RETURN(0);
  run_with(NULL);
  EXPECT("!", others);
  EXPECT("!wide: expected 120 arguments (a, b, c", wide);
  observe(0, 1);
  CHECK_FAILS(rvm_machine_break(machine, (int32_t)wide, 1, 1, &result), RVM_INDEX_ERROR,
              "wide has no instruction at index 1", result);
  CHECK_FAILS(rvm_machine_break(machine, (int32_t)wide, 2, 1, &result), RVM_INDEX_ERROR,
              "wide has no instruction at index 2", result);
  CHECK_OK(rvm_machine_break(machine, (int32_t)wide, 0, 1, &result), result);
  end();
}

int main(void) {
  static void (*const tests[])(void) = {
      tail_calls,   skipped_calls, calls_of_values, loops_that_are_long, loops_that_do_not_end,
      small_stacks, what_is_said,
  };
  return run_tests(tests, COUNT_OF(tests));
}
