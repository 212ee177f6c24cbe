/* test_kernel_hooks.c: observation of kernels: instruments of their instructions, debuggers inside them, and
   profiles. */
#include <math.h>

#include "allocation.h"
#include "kernel.h"
#include "run.h"
#include "tensor.h"

/* ---- the program ----

   It reads b0 f32[n] and writes b1 f32[n]; b2 is an array of 64 bytes.  s0 is n, s1 is 0, s2 is 1, s3 is 1000. */
enum { IN, OUT, ARRAY };
enum { s0, ZERO_, ONE, FAR, s4, s5, s6, s7, v0, w0, REGISTERS };

static image program;
static loaded exe;
static rvm_machine *machine;
static rvm_value result, tensors[2];
static uint32_t copying, failing, sharing, straying, main_, called;
static buffer kernels[2]; /* the table of programs, and the programs */
static kernel k;

#define E(name, ...) kernel_step(&k, (uint16_t[8]){RVM_KOP_##name, ##__VA_ARGS__})

static void begin(void) {
  const int64_t n[] = {-1};
  k = (kernel){.header = {[SIZES] = 1, [SCALARS] = v0, [STRIPS] = 1, [VIEWS] = 1, [SCRATCH] = 64}};
  kernel_tensor(&k, 1, RVM_DTYPE_f32, 1, n);
  kernel_tensor(&k, 0, RVM_DTYPE_f32, 1, n);
  kernel_array(&k, 0, 64);
  kernel_constant(&k, 0);
  kernel_constant(&k, 1);
  kernel_constant(&k, 1000);
  kernel_message(&k, "no such thing");
}

static void finish(uint32_t function) {
  int64_t size_bytes;
  unsigned char *bytes = kernel_finish(&k, &size_bytes);
  buffer_add(&kernels[0], (uint32_t[]){function, (uint32_t)size_bytes}, 8);
  buffer_add(&kernels[1], bytes, (size_t)size_bytes);
  free(bytes);
}

static void build(void) {
  copying = image_function(&program, RVM_KIND_kernel, "copying", "x out", 0);
  failing = image_function(&program, RVM_KIND_kernel, "failing", "x out", 0);
  sharing = image_function(&program, RVM_KIND_kernel, "sharing", "x out", 0);
  straying = image_function(&program, RVM_KIND_kernel, "straying", "x out", 0);
  main_ = image_bytecode(&program, "main", "x out", 3);
  CALL(&program, NONE, copying, R(0), R(1));
  CALL(&program, NONE, sharing, R(0), R(1));
  RET(&program, 1);
  called = image_bytecode(&program, "fails", "x out", 3);
  CALL(&program, NONE, failing, R(0), R(1));
  RET(&program, 1);
  begin(); /* element by element, then in strips */
  E(loop, s4, ZERO_, s0, 4), E(load, s5, IN, s4, 4), E(store, OUT, s4, s5, 4), E(next, s4, s0, 1);
  E(strips, s4, ZERO_, s0, 8), E(view, w0, IN, s4, 4), E(move, v0, w0, 4), E(next_strip, s4, s0, 5), E(end);
  finish(copying);
  begin();
  E(copy, s4, ONE), E(fail, RVM_SHAPE_ERROR, 0, 0, 0), E(end);
  finish(failing);
  begin();
  E(parallel, s6, s7, s0, ONE, 5, 0, 1), E(loop, s4, s6, s7, 4), E(store, ARRAY, ZERO_, s4, 8), E(next, s4, s7, 2),
      E(end), E(end);
  finish(sharing);
  begin();
  E(load, s4, IN, FAR, 4), E(end);
  finish(straying);
  buffer_add(&program.kernels, (uint32_t[]){4, 0}, 8);
  for (int i = 0; i < 2; i++) {
    buffer_add(&program.kernels, kernels[i].bytes, kernels[i].size);
    free(kernels[i].bytes);
  }
}

#define RUN(function) rvm_machine_call(machine, (int32_t)(function), tensors, 2, &result)

/* Checks that a run gives the same output as without observation. */
static void check_output(void) {
  const float *out = tensors[OUT].as.tensor->dl.data;
  for (int i = 0; i < 3; i++) CHECK(out[i] == (float)(i + 1));
  memset(tensors[OUT].as.tensor->dl.data, 0, 12);
  rvm_value_release(&result);
}

static void check_over(void) {
  check_idle(machine);
  CHECK_INT(rvm_machine_depth(machine), 0);
  CHECK(!rvm_machine_kernel_register(machine, 0, 0).bytes && !rvm_machine_kernel_register(machine, 1, 0).bytes);
  CHECK(!rvm_machine_kernel_buffer(machine, 1, 0).bytes);
}

/* ---- instruments ---- */

typedef struct diary {
  char text[NOTES_BYTES];
  int32_t seen, ends_at; /* the instruction that ends the run, or 0 */
  rvm_status ends_with;
} diary;

static diary seen;

static rvm_status see(void *host, int32_t function, int32_t instruction, rvm_value *error) {
  diary *to = host;
  note(to->text, "%s:%d ", rvm_executable_function_name(exe.executable, function), (int)instruction);
  if (++to->seen != to->ends_at) return RVM_OK;
  return to->ends_with ? to->ends_with : rvm_fail(error, RVM_ASSERTION_ERROR, "enough");
}

static void instrument(uint32_t kinds) {
  seen = (diary){.ends_at = 0};
  const rvm_instrument made = {.kinds = kinds, .host = &seen, .instruction = see};
  CHECK_OK(rvm_machine_instrument(machine, &made, &result), result);
}

static void an_instrument_sees_every_instruction(void) {
  instrument(1u << RVM_KIND_kernel);
  CHECK_OK(RUN(main_), result);
  CHECK_TEXT(seen.text,
             "copying:0 copying:1 copying:2 copying:3 copying:1 copying:2 copying:3 copying:1 copying:2 copying:3 "
             "copying:4 copying:5 copying:6 copying:7 copying:8 sharing:0 sharing:1 sharing:2 sharing:3 sharing:2 "
             "sharing:3 sharing:2 sharing:3 sharing:4 sharing:5 ");
  check_output();
  instrument(1u << RVM_KIND_packed);
  CHECK_OK(RUN(main_), result);
  CHECK_TEXT(seen.text, "");
  check_output();
  instrument(1u << RVM_KIND_kernel);
  CHECK_FAILS(RUN(failing), RVM_SHAPE_ERROR, "no such thing", result);
  CHECK_TEXT(seen.text, "failing:0 failing:1 ");
  instrument(1u << RVM_KIND_kernel);
  CHECK_FAILS(RUN(straying), RVM_INDEX_ERROR, "instruction 0", result);
  CHECK_TEXT(seen.text, "straying:0 ");
  check_over();
}

/* Also in a parallel loop, and without an error of its own. */
static void an_instrument_may_end_the_run(void) {
  for (int32_t at = 1; at <= 25; at++) {
    instrument(1u << RVM_KIND_kernel);
    seen.ends_at = at;
    CHECK_FAILS(RUN(main_), RVM_ASSERTION_ERROR, "enough", result);
    CHECK_INT(seen.seen, at);
    instrument(1u << RVM_KIND_kernel);
    seen.ends_at = at, seen.ends_with = RVM_TYPE_ERROR;
    CHECK_FAILS(RUN(main_), RVM_TYPE_ERROR, "instrument", result);
    check_over();
  }
  CHECK_OK(rvm_machine_instrument(machine, NULL, &result), result);
}

/* ---- profiles ---- */

static void a_profile_counts_instructions(void) {
  rvm_profile *profile;
  MAKE(profile, rvm_profile_new(exe.executable, &profile, &result));
  CHECK(!rvm_profile_instrument(profile).instruction);
  CHECK_INT(rvm_profile_instruction(profile, (int32_t)copying, 0).count, 0);
  for (int i = 0; i < 2; i++) CHECK_OK(rvm_profile_kernels(profile, &result), result);
  const rvm_instrument made = rvm_profile_instrument(profile);
  CHECK_OK(rvm_machine_instrument(machine, &made, &result), result);
  for (int i = 0; i < 2; i++) {
    CHECK_OK(RUN(main_), result);
    check_output();
  }
  CHECK_FAILS(RUN(called), RVM_SHAPE_ERROR, "no such thing", result);
  CHECK_OK(rvm_machine_instrument(machine, NULL, &result), result);
  const int64_t counts[] = {2, 6, 6, 6, 2, 2, 2, 2, 2};
  int64_t total = 0;
  for (int32_t i = 0; i < COUNT_OF(counts); i++) {
    const rvm_profile_row row = rvm_profile_instruction(profile, (int32_t)copying, i);
    CHECK_INT(row.count, counts[i]);
    CHECK(row.nanoseconds >= 0 && isnan(row.operations) && row.bytes == 0);
    total += row.nanoseconds;
  }
  CHECK(total <= rvm_profile_read(profile, (int32_t)copying).nanoseconds);
  CHECK_INT(rvm_profile_instruction(profile, (int32_t)failing, 1).count, 1);
  CHECK_INT(rvm_profile_instruction(profile, (int32_t)failing, 2).count, 0);
  CHECK_INT(rvm_profile_instruction(profile, (int32_t)sharing, 2).count, 6);
  const int32_t wrong[] = {-1, COUNT_OF(counts), INT32_MAX};
  for (int i = 0; i < COUNT_OF(wrong); i++)
    CHECK(isnan(rvm_profile_instruction(profile, (int32_t)copying, wrong[i]).operations));
  CHECK_INT(rvm_profile_instruction(profile, (int32_t)main_, 0).count, 0);
  CHECK_INT(rvm_profile_instruction(profile, 1000, 0).count, 0);
  rvm_profile_release(profile);
  check_over();
}

/* A profile of one executable that is used for another, whose functions are not kernels. */
static void a_profile_belongs_to_one_executable(void) {
  image others = {0};
  loaded other;
  rvm_profile *profile;
  for (int i = 0; i < 6; i++) {
    image_bytecode(&others, (char[]){(char)('a' + i), 0}, "x", 2);
    RET(&others, 0);
  }
  MAKE(other, image_load(&others, &other, &result));
  MAKE(profile, rvm_profile_new(other.executable, &profile, &result));
  CHECK_OK(rvm_profile_kernels(profile, &result), result);
  rvm_instrument made = rvm_profile_instrument(profile);
  CHECK(!made.instruction);
  rvm_profile_release(profile);
  loaded_release(&other);
  MAKE(profile, rvm_profile_new(exe.executable, &profile, &result));
  CHECK_OK(rvm_profile_kernels(profile, &result), result);
  made = rvm_profile_instrument(profile);
  CHECK_FAILS(made.instruction(made.host, (int32_t)main_, 0, &result), RVM_ARGUMENT_ERROR,
              "use one profile per executable", result);
  CHECK_FAILS(made.instruction(made.host, (int32_t)copying, 9, &result), RVM_ARGUMENT_ERROR, "an instruction 9",
              result);
  rvm_profile_release(profile);
}

static void profiles_without_memory(void) {
  rvm_profile *profile;
  MAKE(profile, rvm_profile_new(exe.executable, &profile, &result));
  for (long left = 0; left < 5; left++) {
    allocations_left = left;
    CHECK_INT(rvm_profile_kernels(profile, &result), RVM_OUT_OF_MEMORY);
    allocations_left = -1;
    rvm_value_release(&result);
  }
  CHECK_OK(rvm_profile_kernels(profile, &result), result);
  rvm_profile_release(profile);
}

/* ---- debuggers ---- */

static void note_registers(int64_t index) {
  const rvm_kernel_memory n = rvm_machine_kernel_register(machine, index, s0),
                          strip = rvm_machine_kernel_register(machine, index, v0);
  const rvm_kernel_memory view = rvm_machine_kernel_register(machine, index, w0),
                          in = rvm_machine_kernel_buffer(machine, index, IN);
  CHECK(n.size_bytes == 8 && *(const int64_t *)n.bytes == 3);
  CHECK(strip.size_bytes == RVM_STRIP * 8 && strip.bytes);
  CHECK(in.bytes == tensors[IN].as.tensor->dl.data && in.size_bytes == 12);
  CHECK_INT(rvm_machine_kernel_buffer(machine, index, ARRAY).size_bytes, 64);
  note(seen.text, "[%d of %d]", (int)view.strip, (int)view.size_bytes);
  const int32_t wrong[] = {-1, REGISTERS, INT32_MAX};
  for (int i = 0; i < COUNT_OF(wrong); i++) {
    CHECK(!rvm_machine_kernel_register(machine, index, wrong[i]).bytes);
    CHECK(!rvm_machine_kernel_buffer(machine, index, wrong[i]).bytes);
  }
  CHECK(!rvm_machine_kernel_register(machine, index - 1, 0).bytes &&
        !rvm_machine_kernel_register(machine, index + 1, 0).bytes);
}

static rvm_status stop(void *host, const rvm_value *failure, rvm_value *error) {
  diary *to = host;
  const int64_t depth = rvm_machine_depth(machine);
  const rvm_place place = rvm_machine_place(machine, depth - 1);
  note(to->text, "%s%d:%s:%d", failure ? "!" : "", (int)depth,
       rvm_executable_function_name(exe.executable, place.function), (int)place.instruction);
  if (place.function == (int32_t)copying) {
    note_registers(depth - 1);
    CHECK(place.count == 0 && !place.registers);
  }
  note(to->text, " ");
  return ++to->seen == to->ends_at ? rvm_fail(error, RVM_ASSERTION_ERROR, "enough") : RVM_OK;
}

static void debug(int64_t depth, int32_t in_kernels) {
  seen = (diary){.ends_at = 0};
  CHECK_OK(rvm_machine_debug(machine, &(rvm_debugger){.stop = stop, .host = &seen}, &result), result);
  rvm_machine_stop_within(machine, depth);
  rvm_machine_stop_in_kernels(machine, in_kernels);
}

static void breakpoints(void) {
  debug(0, 0);
  CHECK_OK(rvm_machine_break(machine, (int32_t)copying, 6, 1, &result), result);
  CHECK_OK(rvm_machine_break(machine, (int32_t)sharing, 2, 1, &result), result);
  CHECK_OK(RUN(main_), result);
  CHECK_TEXT(seen.text, "2:copying:6[3 of 12] 2:sharing:2 2:sharing:2 2:sharing:2 ");
  check_output();
  seen = (diary){.ends_at = 0};
  CHECK_OK(rvm_machine_break(machine, (int32_t)sharing, 2, 0, &result), result);
  CHECK_OK(RUN(copying), result); /* called from the host: the only active call */
  CHECK_OK(RUN(sharing), result);
  CHECK_TEXT(seen.text, "1:copying:6[3 of 12] ");
  check_output();
  CHECK_FAILS(rvm_machine_break(machine, (int32_t)copying, 9, 1, &result), RVM_INDEX_ERROR,
              "copying has no instruction at index 9", result);
  CHECK_FAILS(rvm_machine_break(machine, (int32_t)copying, -1, 1, &result), RVM_INDEX_ERROR,
              "copying has no instruction at index -1", result);
  check_over();
}

static void steps_include_kernels_if_wanted(void) {
  debug(INT64_MAX, 0);
  CHECK_OK(RUN(main_), result);
  CHECK_TEXT(seen.text, "1:main:0 1:main:1 1:main:2 ");
  check_output();
  debug(INT64_MAX, 1);
  CHECK_OK(RUN(main_), result);
  CHECK_INT(seen.seen, 3 + 15 + 10);
  CHECK(strstr(seen.text, "1:main:0 2:copying:0[0 of 0] 2:copying:1[0 of 0] ") &&
        strstr(seen.text, " 2:copying:8[0 of 12] 1:main:1 2:sharing:0 "));
  check_output();
  debug(1, 1);
  CHECK_OK(RUN(main_), result);
  CHECK_TEXT(seen.text, "1:main:0 1:main:1 1:main:2 ");
  check_output();
  debug(INT64_MAX, 1);
  CHECK_FAILS(RUN(called), RVM_SHAPE_ERROR, "no such thing", result);
  CHECK_TEXT(seen.text, "1:fails:0 2:failing:0 2:failing:1 !1:fails:0 ");
  check_over();
}

static void a_debugger_may_end_the_run(void) {
  for (int32_t at = 1; at <= 28; at++) {
    debug(INT64_MAX, 1);
    seen.ends_at = at;
    CHECK_FAILS(RUN(main_), RVM_ASSERTION_ERROR, "enough", result);
    CHECK_INT(seen.seen, at);
    check_over();
  }
}

static rvm_status call_main(void *host, const rvm_value *failure, rvm_value *error) {
  (void)failure;
  ++*(int *)host;
  return rvm_machine_call(machine, (int32_t)main_, tensors, 2, error);
}

/* The debugger is not called in the calls that it makes itself; otherwise these would not end. */
static void a_debugger_may_call_the_machine(void) {
  int stops = 0;
  debug(0, 0);
  CHECK_OK(rvm_machine_debug(machine, &(rvm_debugger){.stop = call_main, .host = &stops}, &result), result);
  rvm_machine_stop_within(machine, INT64_MAX);
  rvm_machine_stop_in_kernels(machine, 1);
  CHECK_OK(RUN(main_), result);
  CHECK_INT(stops, 28);
  check_output();
  check_over();
}

static void beside_an_instrument(void) {
  debug(0, 0);
  CHECK_OK(rvm_machine_break(machine, (int32_t)copying, 8, 1, &result), result);
  const rvm_instrument made = {.kinds = 1u << RVM_KIND_kernel, .host = &seen, .instruction = see};
  CHECK_OK(rvm_machine_instrument(machine, &made, &result), result);
  CHECK_OK(RUN(main_), result);
  CHECK_INT(seen.seen, 25 + 1);
  CHECK(strstr(seen.text, "copying:8 2:copying:8[0 of 12] sharing:0 "));
  check_output();
  CHECK_OK(rvm_machine_instrument(machine, NULL, &result), result);
  CHECK_OK(rvm_machine_debug(machine, NULL, &result), result);
  CHECK_OK(RUN(main_), result);
  CHECK_INT(seen.seen, 25 + 1);
  check_output();
  check_over();
}

static void stops_without_memory(void) {
  debug(0, 0);
  CHECK_OK(rvm_machine_break(machine, (int32_t)sharing, 0, 1, &result), result);
  CHECK_OK(rvm_machine_break(machine, (int32_t)sharing, 2, 1, &result), result);
  for (long left = 0; left < 2; left++) {
    allocations_left = left; /* for the registers of the kernel, then for the stop */
    CHECK_INT(RUN(sharing), RVM_OUT_OF_MEMORY);
    allocations_left = -1;
    rvm_value_release(&result);
    check_over();
  }
  CHECK_OK(RUN(sharing), result);
  CHECK_OK(rvm_machine_debug(machine, NULL, &result), result);
  check_over();
}

int main(void) {
  build();
  MAKE(exe, image_load(&program, &exe, &result));
  MAKE(machine, rvm_machine_new(exe.executable, &(rvm_machine_options){.threads = 3}, &machine, &result));
  for (int i = 0; i < 2; i++) tensors[i] = tensor_value(RVM_DTYPE_f32, 1, (int64_t[]){3});
  for (int i = 0; i < 3; i++) ((float *)tensors[IN].as.tensor->dl.data)[i] = (float)(i + 1);
  stops_without_memory();
  an_instrument_sees_every_instruction();
  an_instrument_may_end_the_run();
  a_profile_counts_instructions();
  a_profile_belongs_to_one_executable();
  profiles_without_memory();
  breakpoints();
  steps_include_kernels_if_wanted();
  a_debugger_may_end_the_run();
  a_debugger_may_call_the_machine();
  beside_an_instrument();
  for (int i = 0; i < 2; i++) rvm_value_release(&tensors[i]);
  rvm_machine_release(machine);
  loaded_release(&exe);
  return CHECK_RESULT();
}
