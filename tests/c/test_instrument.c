/* test_instrument.c: instruments: the calls that they observe and can end, and that they leave the machine unchanged;
   profiles. */
#include <math.h>

#include "run.h"

static image program;
static loaded exe;
static rvm_machine *machine;
static rvm_value result;
static uint32_t add, make_closure, invoke, inner, outer, failing, deep, check, checked, unchecked;

/* ---- the program ---- */

static void build(void) {
  add = image_packed(&program, "test.add");
  make_closure = image_packed(&program, "vm.builtin.make_closure");
  invoke = image_packed(&program, "vm.builtin.invoke_closure");
  inner = image_bytecode(&program, "inner", "x y", 3);
  CALL(&program, 2, add, R(0), R(1));
  RESET(&program, 0);
  RET(&program, 2);
  outer = image_bytecode(&program, "outer", "x", 4); /* inner(x, 10) + (inner with y = 20)(x) */
  CALL(&program, 1, inner, R(0), I(10));
  CALL(&program, 2, make_closure, F(inner), I(20));
  CALL(&program, 3, invoke, X, R(2), R(0));
  CALL(&program, 1, add, R(1), R(3));
  RET(&program, 1);
  failing = image_bytecode(&program, "failing", "", 1);
  CALL(&program, 0, inner, N, N);
  RET(&program, 0);
  deep = image_bytecode(&program, "deep", "", 1);
  CALL(&program, 0, deep);
  RET(&program, 0);
  check = image_packed(&program, "vm.builtin.check_prim_value_info");
  uint32_t i64 = image_dtype(&program, RVM_DTYPE_i64), where = image_text(&program, "x");
  checked = image_bytecode(&program, "checked", "x", 1); /* its register is typed int by the check */
  CALL(&program, NONE, check, R(0), C(i64), C(where));
  RET(&program, 0);
  unchecked = image_bytecode(&program, "unchecked", "x", 1); /* its register is untyped */
  CALL(&program, NONE, check, R(0), C(i64), C(where));
  CALL(&program, 0, add, I(1), I(2));
  RET(&program, 0);
}

#define RUN(function, ...) RUN_ON(machine, result, function, ##__VA_ARGS__)

/* ---- an instrument that notes the calls that it observes ---- */

typedef struct diary {
  char text[NOTES_BYTES];
  int32_t skipped, stopped_before, stopped_after; /* functions, or -1 */
} diary;

static rvm_status before(void *host, int32_t function, const rvm_value *arguments, int32_t count, int32_t *skip,
                         rvm_value *error) {
  diary *to = host;
  note(to->text, "%s(", rvm_executable_function_name(exe.executable, function));
  for (int32_t i = 0; i < count; i++)
    note(to->text, arguments[i].tag == RVM_TAG_INT ? "%s%d" : "%s?", i > 0 ? "," : "", (int)arguments[i].as.i);
  note(to->text, ") ");
  *skip = function == to->skipped;
  if (function != to->stopped_before) return RVM_OK;
  return rvm_fail(error, RVM_ASSERTION_ERROR, "stopped before");
}

static rvm_status after(void *host, int32_t function, const rvm_value *arguments, int32_t count, rvm_status status,
                        const rvm_value *value, rvm_value *error) {
  diary *to = host;
  (void)error;
  if (status) {
    note(to->text, "!%d ", status);
  } else {
    note(to->text, value->tag == RVM_TAG_INT ? "=%d" : "=?", (int)value->as.i);
    note(to->text, count > 0 && arguments[0].tag == RVM_TAG_INT ? "of%d " : " ", (int)arguments[0].as.i);
  }
  return function == to->stopped_after ? RVM_INDEX_ERROR : RVM_OK; /* a failure without an error */
}

enum { EVERYTHING = (1 << RVM_KIND_COUNT) - 1 };

static rvm_instrument writes_to(diary *to, uint32_t kinds) {
  *to = (diary){.skipped = -1, .stopped_before = -1, .stopped_after = -1};
  return (rvm_instrument){.kinds = kinds, .before = before, .after = after, .host = to};
}

static void instrument_with(const rvm_instrument *instrument) {
  CHECK_OK(rvm_machine_instrument(machine, instrument, &result), result);
}

static void every_call_is_seen_before_and_after(void) {
  diary seen;
  rvm_instrument instrument = writes_to(&seen, EVERYTHING);
  instrument_with(&instrument);
  CHECK_OK(RUN(outer, int_value(1)), result);
  CHECK_INT(result.as.i, 32);
  CHECK_TEXT(seen.text,
             "outer(1) inner(1,10) test.add(1,10) =11of1 =11of1 vm.builtin.make_closure(?,20) =? "
             "inner(1,20) test.add(1,20) =21of1 =21of1 test.add(11,21) =32of11 =32of1 ");
  check_idle(machine);
}

static void kinds_choose_what_is_seen(void) {
  diary seen;
  rvm_instrument instrument = writes_to(&seen, 1u << RVM_KIND_bytecode);
  instrument_with(&instrument);
  CHECK_OK(RUN(outer, int_value(1)), result);
  CHECK_TEXT(seen.text, "outer(1) inner(1,10) =11of1 inner(1,20) =21of1 =32of1 ");
  instrument_with(NULL);
  seen.text[0] = 0;
  CHECK_OK(RUN(outer, int_value(1)), result);
  CHECK_TEXT(seen.text, "");
}

static void a_call_that_is_skipped_gives_nil(void) {
  diary seen;
  rvm_instrument instrument = writes_to(&seen, EVERYTHING);
  seen.skipped = (int32_t)inner;
  instrument_with(&instrument);
  CHECK_FAILS(RUN(outer, int_value(1)), RVM_TYPE_ERROR, "test.add", result); /* nil + nil */
  CHECK_TEXT(seen.text, "outer(1) inner(1,10) vm.builtin.make_closure(?,20) =? inner(1,20) test.add(?,?) !1 !1 ");
  seen.skipped = (int32_t)outer;
  CHECK_OK(RUN(outer, int_value(1)), result);
  CHECK_INT(result.tag, RVM_TAG_NIL);
  check_idle(machine);
}

static void a_check_that_is_skipped_makes_no_other_types(void) {
  diary seen;
  rvm_instrument instrument = writes_to(&seen, EVERYTHING);
  seen.skipped = (int32_t)check;
  instrument_with(&instrument);
  rvm_value text = string_value("text");
  CHECK_FAILS(RUN(checked, text), RVM_TYPE_ERROR, "the instrument skipped this check, but register 0 holds string",
              result);
  CHECK_OK(RUN(checked, int_value(1)), result);
  CHECK_OK(RUN(unchecked, text), result);
  CHECK_INT(text.as.object->references, 1);
  rvm_value_release(&text);
  check_idle(machine);
}

static void an_instrument_may_end_the_run(void) {
  const uint32_t functions[] = {add, inner, outer};
  for (int i = 0; i < COUNT_OF(functions); i++) {
    diary seen;
    rvm_instrument instrument = writes_to(&seen, EVERYTHING);
    seen.stopped_before = (int32_t)functions[i];
    instrument_with(&instrument);
    CHECK_FAILS(RUN(outer, int_value(1)), RVM_ASSERTION_ERROR, "stopped before", result);
    seen.stopped_before = -1, seen.stopped_after = (int32_t)functions[i];
    CHECK_FAILS(RUN(outer, int_value(1)), RVM_INDEX_ERROR, "stopped by the host's instrument", result);
    check_idle(machine);
  }
}

static void a_failure_is_seen_and_stays_what_it_is(void) {
  diary seen;
  rvm_instrument instrument = writes_to(&seen, EVERYTHING);
  seen.stopped_after = (int32_t)inner;
  instrument_with(&instrument);
  CHECK_INT(RUN(failing), RVM_TYPE_ERROR);
  CHECK(strstr(result.as.error->message, "test.add failed"));
  CHECK_TEXT(result.as.error->trace, "  in inner at instruction 0\n  in failing at instruction 0");
  rvm_value_release(&result);
  CHECK_TEXT(seen.text, "failing() inner(?,?) test.add(?,?) !1 !1 !1 ");
  CHECK_FAILS(RUN(inner, int_value(1)), RVM_ARGUMENT_ERROR, "inner: expected 2 arguments (x, y), got 1", result);
  check_idle(machine);
}

static void recursion_without_end_is_an_error_still(void) {
  rvm_instrument instrument = {.kinds = 1u << RVM_KIND_bytecode};
  instrument_with(&instrument);
  CHECK_FAILS(RUN(deep), RVM_STACK_OVERFLOW, "deep: call depth exceeds ", result);
  check_idle(machine);
}

static rvm_status change_instrument(void *host, int32_t function, const rvm_value *arguments, int32_t count,
                                    int32_t *skip, rvm_value *error) {
  (void)host, (void)function, (void)arguments, (void)count, (void)skip;
  return rvm_machine_instrument(machine, NULL, error);
}

/* Calls the machine.  An instrument is not called for calls that it makes itself, so this does not recurse. */
static rvm_status call_outer(void *host, int32_t function, const rvm_value *arguments, int32_t count, int32_t *skip,
                             rvm_value *error) {
  (void)function, (void)arguments, (void)count, (void)skip;
  ++*(int *)host;
  return rvm_machine_call(machine, (int32_t)outer, (rvm_value[]){int_value(5)}, 1, error);
}

static void an_instrument_may_call_its_machine_and_not_change_it(void) {
  int calls = 0;
  rvm_instrument instrument = {.kinds = 1u << RVM_KIND_packed, .before = call_outer, .host = &calls};
  instrument_with(&instrument);
  CHECK_OK(RUN(outer, int_value(1)), result);
  CHECK_INT(result.as.i, 32);
  CHECK_INT(calls, 4);
  instrument.before = change_instrument;
  instrument_with(&instrument);
  CHECK_FAILS(RUN(outer, int_value(1)), RVM_BUSY, "instrument cannot be changed", result);
  check_idle(machine);
}

static void a_profile_counts_calls_and_bytes(void) {
  rvm_profile *profile;
  CHECK_OK(rvm_profile_new(exe.executable, &profile, &result), result);
  const rvm_instrument instrument = rvm_profile_instrument(profile);
  instrument_with(&instrument);
  for (int i = 0; i < 3; i++) CHECK_OK(RUN(outer, int_value(1)), result);
  rvm_value tensor = tensor_value(RVM_DTYPE_f32, 1, (int64_t[]){6});
  CHECK_FAILS(RUN(inner, tensor, int_value(1)), RVM_TYPE_ERROR, "test.add", result);
  rvm_value_release(&tensor);
  instrument_with(NULL);
  CHECK_INT(rvm_profile_read(profile, (int32_t)add).count, 10);
  CHECK(rvm_profile_read(profile, (int32_t)add).nanoseconds > 0);
  CHECK_INT(rvm_profile_read(profile, (int32_t)add).bytes, 24);
  CHECK_INT(rvm_profile_read(profile, (int32_t)make_closure).count, 3);
  CHECK_INT(rvm_profile_read(profile, (int32_t)inner).count, 0);
  CHECK_INT(rvm_profile_read(profile, 1000).count, 0);
  rvm_profile_release(profile);
  check_idle(machine);
}

/* Runs `outer` with a profile that records `most` calls.  Returns the profile. */
static rvm_profile *recorded(int64_t most) {
  rvm_profile *profile;
  CHECK_OK(rvm_profile_new(exe.executable, &profile, &result), result);
  CHECK_OK(rvm_profile_record(profile, most, &result), result);
  const rvm_instrument instrument = rvm_profile_instrument(profile);
  instrument_with(&instrument);
  CHECK_OK(RUN(outer, int_value(1)), result);
  instrument_with(NULL);
  return profile;
}

static void a_profile_records_its_first_calls(void) {
  rvm_profile *profile = recorded(1000);
  int64_t count = 0, of_add = 0, ended = 0;
  const rvm_profile_call *calls = rvm_profile_calls(profile, &count);
  for (int64_t i = 0; i < count; i++) {
    of_add += calls[i].function == (int32_t)add;
    CHECK(calls[i].nanoseconds >= 0 && calls[i].depth == 0 && calls[i].bytes == 0);
    CHECK(calls[i].started >= ended);
    ended = calls[i].started + calls[i].nanoseconds;
  }
  CHECK_INT(of_add, rvm_profile_read(profile, (int32_t)add).count);
  CHECK_INT(count - of_add, rvm_profile_read(profile, (int32_t)make_closure).count);
  rvm_profile_release(profile);

  profile = recorded(2);
  rvm_profile_calls(profile, &count);
  CHECK_INT(count, 2);
  CHECK_INT(rvm_profile_read(profile, (int32_t)add).count, of_add);
  rvm_profile_release(profile);
  check_idle(machine);
}

/* Profiles calls of `add` with two arguments.  The first may be a tensor.  Returns the operations and bytes of `add`.
 */
static rvm_profile_row counted(const int64_t *code, int32_t length, rvm_value first) {
  rvm_profile *profile;
  CHECK_OK(rvm_profile_new(exe.executable, &profile, &result), result);
  if (code) CHECK_OK(rvm_profile_count(profile, (int32_t)add, code, length, &result), result);
  const rvm_instrument instrument = rvm_profile_instrument(profile);
  instrument_with(&instrument);
  (void)RUN(inner, first, int_value(1));
  rvm_value_release(&result);
  instrument_with(NULL);
  const rvm_profile_row row = rvm_profile_read(profile, (int32_t)add);
  rvm_profile_release(profile);
  return row;
}

static void a_profile_counts_operations_as_it_is_told(void) {
  rvm_value tensor = tensor_value(RVM_DTYPE_f32, 2, (int64_t[]){6, 4});
  const int64_t known[] = {2, 3, 2, 0, 0, 0, 1, 5, 0, 1, 2, 1, 0, 1};
  CHECK_INT(counted(known, 14, tensor).operations, 3 * 6 * 4 + 5); /* 3 a b + 5, and 2 b elements of the tensor */
  CHECK_INT(counted(known, 14, tensor).bytes, 2 * 4 * 4);
  CHECK_INT(counted(known, 9, tensor).bytes, 6 * 4 * 4);
  CHECK(isnan(counted(NULL, 0, tensor).operations));
  CHECK(isnan(counted((int64_t[]){-1}, 1, tensor).operations));
  CHECK(isnan(counted((int64_t[]){1, 1, 1, 0, 2}, 5, tensor).operations)); /* no such axis */
  CHECK(isnan(counted((int64_t[]){1, 1, 1, 1, 0}, 5, tensor).operations)); /* not a tensor */
  CHECK(isnan(counted((int64_t[]){1, 1, 1, 2, 0}, 5, tensor).operations)); /* no such argument */
  CHECK(isnan(counted((int64_t[]){1, 1, 1, -1, 0}, 5, tensor).operations));
  CHECK(isnan(counted(known, 3, tensor).operations));                           /* truncated */
  CHECK(isnan(counted((int64_t[]){1, 1, INT64_MAX, 5}, 4, tensor).operations)); /* truncated within a factor */
  CHECK(isnan(counted((int64_t[]){1, 5, 2}, 3, tensor).operations));            /* no factors */
  CHECK(isnan(counted((int64_t[]){1, 5, 2, 0, 0}, 5, tensor).operations));      /* one factor of two */
  CHECK(isnan(counted((int64_t[]){1, 5, -1}, 3, tensor).operations));           /* a negative number of factors */
  CHECK_INT(counted(known, 14, int_value(1)).bytes, 0);
  rvm_value_release(&tensor);
  rvm_profile *profile;
  CHECK_OK(rvm_profile_new(exe.executable, &profile, &result), result);
  CHECK_FAILS(rvm_profile_count(profile, 1000, known, 14, &result), RVM_INDEX_ERROR,
              "function index 1000 is out of range", result);
  CHECK_FAILS(rvm_profile_count(profile, (int32_t)add, known, -1, &result), RVM_ARGUMENT_ERROR, "length is -1", result);
  rvm_profile_release(profile);
  check_idle(machine);
}

static void functions_are_values(void) {
  rvm_value function = rvm_machine_function(machine, (int32_t)inner);
  CHECK_OK(rvm_machine_invoke(machine, function, (rvm_value[]){int_value(3), int_value(4)}, 2, &result), result);
  CHECK_INT(result.as.i, 7);
  CHECK_INT(rvm_machine_function(machine, -1).tag, RVM_TAG_NIL);
  CHECK_INT(rvm_machine_function(machine, 1000).tag, RVM_TAG_NIL);
}

int main(void) {
  const rvm_machine_options options = {.call_depth = 5000};
  CHECK_OK(rvm_register("test.add", host_add_two, NULL, 0, &result), result);
  build();
  MAKE(exe, image_load(&program, &exe, &result));
  MAKE(machine, rvm_machine_new(exe.executable, &options, &machine, &result));
  every_call_is_seen_before_and_after();
  kinds_choose_what_is_seen();
  a_call_that_is_skipped_gives_nil();
  a_check_that_is_skipped_makes_no_other_types();
  an_instrument_may_end_the_run();
  a_failure_is_seen_and_stays_what_it_is();
  recursion_without_end_is_an_error_still();
  an_instrument_may_call_its_machine_and_not_change_it();
  a_profile_counts_calls_and_bytes();
  a_profile_records_its_first_calls();
  a_profile_counts_operations_as_it_is_told();
  functions_are_values();
  rvm_machine_release(machine);
  loaded_release(&exe);
  CHECK_OK(rvm_unregister("test.add", &result), result);
  return CHECK_RESULT();
}
