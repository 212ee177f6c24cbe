/* test_native.c: native sections: loaded from memory, checked against this computer, and called like bytecode.

   The library is native_library.c; its path is the first argument. */
#include <pthread.h>
#include <signal.h>
#ifndef _WIN32
#include <sys/resource.h>
#endif

#include "scalar_ops.h"
#include "run.h"

#if defined(_WIN32)
#define TRIPLE "x86_64-windows-gnu"
#elif defined(__x86_64__)
#define TRIPLE "x86_64-linux-gnu"
#else
#define TRIPLE "aarch64-linux-gnu"
#endif

static unsigned char *library;
static size_t library_bytes;

static void read_library(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) exit(2);
  library = malloc(1 << 20);
  library_bytes = fread(library, 1, 1 << 20, file);
  fclose(file);
}

enum {
  MAKE_TUPLE,
  CHECK,
  HOST,
  PAIR,
  DESCEND,
  ENDLESS,
  SILENT,
  ADD_ONE,
  MAIN,
  PASS,
  DIRECT,
  TYPED,
  UNTYPED,
  TWICE,
  INVOKE,
  CLOSURE,
  INVOKED,
  BOUND,
  STOPPED
};

/* Builds name(n), which counts down to 0 by calls of `again`, its own index.  If is_typed, the type of n is checked. */
static void build_countdown(image *to, const char *name, uint32_t again, int is_typed) {
  image_bytecode(to, name, "n", 3);
  if (is_typed) CALL(to, NONE, CHECK, R(0), C(1), C(0));
  PRIM(to, 2, RVM_SCALAR_OP_gt_i64, R(0), I(0));
  IF(to, 2, 3 + 5 + 6 + 4);
  CALL(to, NONE, HOST, R(0));
  PRIM(to, 1, RVM_SCALAR_OP_sub_i64, R(0), I(1));
  TAIL_CALL(to, again, R(1));
  RET(to, 0);
}

/* Builds main(x, y) = add_one(x, y); pair(x), and twice(f, x) = f(f(x)).  `kind` is the kind of the functions that
   count down. */
static void build_of(image *to, uint32_t kind) {
  image_packed(to, "vm.builtin.make_tuple");
  image_packed(to, "vm.builtin.check_prim_value_info");
  image_packed(to, "test.host");
  image_function(to, RVM_KIND_native, "pair", "x", 2);
  image_function(to, RVM_KIND_native, "descend", "n", 3);
  image_function(to, RVM_KIND_native, "endless", "x", 2);
  image_function(to, RVM_KIND_native, "silent", "x", 2);
  image_function(to, RVM_KIND_kernel, "add_one", "x y", 0);
  image_bytecode(to, "main", "x y", 3);
  CALL(to, NONE, ADD_ONE, R(0), R(1));
  CALL(to, 2, PAIR, R(1));
  RET(to, 2);
  image_text(to, "constant");
  image_dtype(to, RVM_DTYPE_i64);
  image_function(to, RVM_KIND_native, "pass", "callee x", 3);
  image_function(to, RVM_KIND_native, "direct", "callee x", 3);
  for (uint32_t function = TYPED; function <= UNTYPED; function++) {
    const char *name = function == TYPED ? "typed" : "untyped";
    if (kind == RVM_KIND_native)
      image_function(to, kind, name, "n", 2);
    else
      build_countdown(to, name, function, function == TYPED);
  }
  image_bytecode(to, "twice", "callee x", 3);
  CALL(to, 2, PASS, R(0), R(1));
  CALL(to, 2, DIRECT, R(0), R(2));
  RET(to, 2);
  image_packed(to, "vm.builtin.invoke_closure");
  image_packed(to, "vm.builtin.make_closure");
  image_bytecode(to, "invoked", "callee x", 2);
  TAIL_CALL(to, INVOKE, X, R(0), R(1));
  image_bytecode(to, "bound", "callee x", 4); /* pass(callee with x nine times, x) */
  CALL(to, 2, CLOSURE, R(0), R(1), R(1), R(1), R(1), R(1), R(1), R(1), R(1), R(1));
  CALL(to, 3, PASS, R(2), R(1));
  RET(to, 3);
  image_bytecode(to, "stopped", "x y", 2);
  CALL(to, NONE, HOST, R(0));
  CALL(to, NONE, ADD_ONE, R(0), R(1));
  RET(to, 0);
}

static void build(image *to) { build_of(to, RVM_KIND_bytecode); }

static rvm_status load(const char *triple, const char *cpu, size_t size_bytes, loaded *exe, rvm_value *error) {
  image program = {0};
  build(&program);
  image_native(&program, triple, cpu, library, size_bytes);
  return image_load(&program, exe, error);
}

static void check_refused(const char *triple, const char *cpu, size_t size_bytes, rvm_status status, const char *text) {
  loaded exe;
  rvm_value error;
  CHECK_FAILS(load(triple, cpu, size_bytes, &exe, &error), status, text, error);
  loaded_release(&exe);
}

static void code_for_another_computer_is_refused(void) {
  check_refused("riscv64-linux-gnu", "", library_bytes, RVM_UNSUPPORTED,
                "the native code was built for riscv64-linux-gnu");
  check_refused("x86_64-freebsd", "", library_bytes, RVM_UNSUPPORTED, "the native code was built for x86_64-freebsd");
  check_refused(TRIPLE, "x86-64-v9", library_bytes, RVM_UNSUPPORTED,
                "the native code was built for processors with x86-64-v9;");
  check_refused(TRIPLE, "", 100, RVM_UNSUPPORTED, "native code:");
  check_refused(TRIPLE, "", 0, RVM_UNSUPPORTED, "native code:");
}

static void another_abi_version_is_refused(void) {
  image program = {0};
  loaded exe;
  rvm_value error;
  build(&program);
  image_native(&program, TRIPLE, "", library, library_bytes);
  program.native.bytes[0]++;
  CHECK_FAILS(image_load(&program, &exe, &error), RVM_UNSUPPORTED, "but this runtime has version", error);
  loaded_release(&exe);
}

/* `elsewhere` also accepts another ABI version.  Executables without native code run on every computer. */
static void another_abi_version_may_be_loaded_for_elsewhere(void) {
  const rvm_load_options options = {.trust_native = 1, .elsewhere = 1};
  rvm_value error = {0};
  for (int has_native = 0; has_native < 2; has_native++) {
    image program = {0};
    int64_t size_bytes;
    rvm_executable *executable;
    rvm_machine *machine;
    if (has_native) {
      image_native(&program, TRIPLE, "", library, library_bytes);
      program.native.bytes[0]++;
    }
    unsigned char *bytes = image_finish(&program, &size_bytes);
    CHECK_OK(rvm_executable_load(bytes, size_bytes, &options, &executable, &error), error);
    if (has_native) {
      CHECK_FAILS(rvm_executable_check_native(executable, &error), RVM_UNSUPPORTED, "but this runtime has version",
                  error);
      CHECK_FAILS(rvm_machine_new(executable, NULL, &machine, &error), RVM_UNSUPPORTED, "but this runtime has version",
                  error);
    } else {
      CHECK_OK(rvm_executable_check_native(executable, &error), error);
    }
    rvm_executable_release(executable);
    free(bytes);
  }
}

static void a_malformed_header_is_refused(void) {
  for (int fault = 0; fault < 5; fault++) {
    image program = {0};
    loaded exe;
    rvm_value error;
    build(&program);
    image_native(&program, TRIPLE, "", library, library_bytes);
    uint32_t *header = (uint32_t *)program.native.bytes; /* rvm_native_header */
    if (fault < 2) header[1 + fault] = program.string_count;
    if (fault == 2) header[3] = 1;
    if (fault == 3) header[15] = 1;
    if (fault == 4) program.native.size = 60;
    CHECK_FAILS(image_load(&program, &exe, &error), RVM_BAD_EXECUTABLE, "header of the native section", error);
    loaded_release(&exe);
  }
}

static void a_missing_symbol_is_named(void) {
  image program = {0};
  loaded exe;
  rvm_value error;
  build(&program);
  image_function(&program, RVM_KIND_kernel, "absent", "x", 0);
  image_native(&program, TRIPLE, "", library, library_bytes);
  CHECK_FAILS(image_load(&program, &exe, &error), RVM_BAD_EXECUTABLE,
              "the native code does not define the symbol absent", error);
  loaded_release(&exe);
}

#ifdef _WIN32 /* no limits of processes */
static void a_failed_write_is_reported(void) {}
#else
/* A limit of the size of files has the effect of a full disk. */
static void a_failed_write_is_reported(void) {
  image program = {0};
  loaded exe;
  rvm_value error;
  struct rlimit limit;
  build(&program);
  image_native(&program, TRIPLE, "", library, library_bytes);
  CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
  const struct rlimit small = {100, limit.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
  rvm_status status = image_load(&program, &exe, &error);
  CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  CHECK_FAILS(status, RVM_OUT_OF_MEMORY, "cannot write a temporary file", error);
  loaded_release(&exe);
}
#endif

static int stops;

static rvm_status stop(void *host, rvm_value *error) {
  (void)host;
  return stops ? rvm_fail(error, RVM_INTERRUPTED, "stopped") : RVM_OK;
}

static void native_and_bytecode_call_each_other(void) {
  loaded exe;
  rvm_machine *machine;
  rvm_value result = {0}, tensors[] = {tensor_value(RVM_DTYPE_f32, 0, NULL), tensor_value(RVM_DTYPE_f32, 0, NULL)};
  CHECK_OK(load(TRIPLE, "", library_bytes, &exe, &result), result);
  const rvm_machine_options options = {.poll = stop};
  CHECK_OK(rvm_machine_new(exe.executable, &options, &machine, &result), result);
  CHECK_OK(rvm_machine_call(machine, MAIN, tensors, 2, &result), result);
  CHECK(*(float *)tensors[1].as.tensor->dl.data == 1);
  CHECK(result.as.tuple->items[0].as.tensor == tensors[1].as.tensor);
  CHECK(strcmp(result.as.tuple->items[1].as.string->bytes, "constant") == 0);
  rvm_value_release(&result);
  CHECK_INT(tensors[1].as.object->references, 1);

  rvm_value one = int_value(1), deep = int_value(1990), too_deep = int_value(10000000), nil = {0};
  CHECK_OK(rvm_machine_call(machine, DESCEND, &deep, 1, &result), result);
  CHECK_INT(result.as.i, 1);
  CHECK_INT(rvm_machine_call(machine, DESCEND, &too_deep, 1, &result), RVM_STACK_OVERFLOW);
  CHECK(strstr(result.as.error->trace, "  in descend\n  in descend\n") && result.as.error->frames > 2000);
  rvm_value_release(&result);
  CHECK_FAILS(rvm_machine_call(machine, DESCEND, &nil, 1, &result), RVM_TYPE_ERROR, "condition: expected", result);
  stops = 1;
  CHECK_FAILS(rvm_machine_call(machine, ENDLESS, &one, 1, &result), RVM_INTERRUPTED, "stopped", result);
  stops = 0;
  CHECK_FAILS(rvm_machine_call(machine, SILENT, &one, 1, &result), RVM_INDEX_ERROR,
              "silent failed without an error message", result);
  CHECK_FAILS(rvm_machine_call(machine, PAIR, NULL, 0, &result), RVM_ARGUMENT_ERROR,
              "pair: expected 1 argument (x), got 0", result);
  CHECK_FAILS(rvm_machine_call(machine, MAIN, (rvm_value[]){one, one}, 2, &result), RVM_TYPE_ERROR,
              "add_one: argument 0", result);
  CHECK(machine->head.top == machine->stack && machine->head.nesting == 0 && machine->entries == 0);
  rvm_machine_release(machine);
  loaded_release(&exe);
  rvm_value_release(&tensors[0]);
  rvm_value_release(&tensors[1]);
}

static void each_executable_has_a_library_of_its_own(void) {
  enum { COPIES = 3 };
  loaded exe[COPIES];
  rvm_machine *machines[COPIES];
  rvm_value result = {0}, zero = int_value(0);
  for (int i = 0; i < COPIES; i++) CHECK_OK(load(TRIPLE, "", library_bytes, &exe[i], &result), result);
  loaded_release(&exe[0]); /* its descriptor is free again */
  CHECK_OK(load(TRIPLE, "", library_bytes, &exe[0], &result), result);
  for (int i = 0; i < COPIES; i++) {
    CHECK_OK(rvm_machine_new(exe[i].executable, NULL, &machines[i], &result), result);
    CHECK_OK(rvm_machine_call(machines[i], DESCEND, &zero, 1, &result), result);
    CHECK_INT(result.as.i, 1);
    rvm_machine_release(machines[i]);
  }
  for (int i = 0; i < COPIES; i++) loaded_release(&exe[i]);
}

/* ---- tail calls ---- */

static rvm_machine *machine;
static rvm_value result;
static loaded compiled;

/* The side effect of host(x), which returns x: none; the C stack appears to be exhausted; the run is interrupted; or
   the machine is upgraded to `compiled`, except in the first calls. */
static enum { NOTHING, SHRINK, INTERRUPT, UPGRADE } what_happens;
enum { FIRST_CALLS = 7 };
static int64_t first_calls;

static rvm_status host_function(void *self, const rvm_value *arguments, int32_t count, rvm_value *value) {
  (void)self, (void)count;
  if (what_happens == SHRINK) machine->head.lowest = (const char *)UINTPTR_MAX;
  if (what_happens == INTERRUPT) rvm_machine_interrupt(machine);
  if (what_happens == UPGRADE && first_calls-- == 0) {
    const rvm_status status = rvm_machine_upgrade(machine, compiled.executable, value);
    if (status) first_calls = FIRST_CALLS; /* sweep.c made an allocation fail, and repeats the run */
    if (status) return status;
  }
  *value = arguments[0];
  rvm_value_retain(*value);
  return RVM_OK;
}

#define RUN(function, ...) RUN_ON(machine, result, function, ##__VA_ARGS__)

static void open_machine(loaded *exe, const rvm_machine_options *options) {
  CHECK_OK(load(TRIPLE, "", library_bytes, exe, &result), result);
  CHECK_OK(rvm_machine_new(exe->executable, options, &machine, &result), result);
}

static void close_machine(loaded *exe) {
  check_idle(machine);
  rvm_value_release(&result);
  rvm_machine_release(machine);
  loaded_release(exe);
}

static rvm_status before(void *host, int32_t function, const rvm_value *arguments, int32_t count, int32_t *skip,
                         rvm_value *error) {
  (void)host, (void)function, (void)arguments, (void)count, (void)skip, (void)error;
  return RVM_OK;
}

static void a_routine_may_end_with_a_call(void) {
  loaded exe;
  rvm_value text = string_value("text");
  for (uint32_t kinds = 0; kinds < 1u << RVM_KIND_COUNT; kinds++) {
    open_machine(&exe, NULL);
    const rvm_instrument instrument = {.kinds = kinds, .before = before};
    if (kinds) CHECK_OK(rvm_machine_instrument(machine, &instrument, &result), result);
    for (int32_t function = PASS; function <= TWICE; function += function == PASS ? 1 : TWICE - DIRECT) {
      CHECK_OK(RUN(function, int_value(TYPED), int_value(3)), result);
      CHECK_INT(result.as.i, 0);
      CHECK_OK(RUN(function, int_value(DESCEND), int_value(2)), result);
      CHECK_INT(result.as.i, 1);
      CHECK_FAILS(RUN(function, int_value(ADD_ONE), int_value(2)), RVM_ARGUMENT_ERROR, "add_one: expected 2", result);
      CHECK_FAILS(RUN(function, text, int_value(2)), RVM_TYPE_ERROR, "expected", result);
      CHECK_OK(RUN(function, int_value(HOST), int_value(2)), result);
      CHECK_INT(result.as.i, 2);
    }
    CHECK_FAILS(RUN(INVOKED, rvm_machine_function(machine, ADD_ONE), int_value(2)), RVM_ARGUMENT_ERROR,
                "add_one: expected 2", result);
    CHECK_OK(RUN(PASS, int_value(PAIR), text), result);
    CHECK(result.as.tuple->items[0].as.string == text.as.string);
    close_machine(&exe);
  }
  CHECK_INT(text.as.object->references, 1);
  rvm_value_release(&text);
}

static void the_stacks_end_somewhere(void) {
  loaded exe;
  for (int64_t values = 0; values < 40; values++) {
    const rvm_machine_options options = {.stack_values = values};
    const rvm_instrument instrument = {.kinds = values % 2 ? 1u << RVM_KIND_bytecode : 0, .before = before};
    open_machine(&exe, &options);
    CHECK_OK(rvm_machine_instrument(machine, &instrument, &result), result);
    for (int32_t callee = HOST; callee <= TYPED; callee += TYPED - HOST) {
      const rvm_status status = RUN(TWICE, int_value(callee), int_value(0));
      CHECK(status == RVM_OK || status == RVM_STACK_OVERFLOW);
      rvm_value_release(&result);
    }
    const rvm_status status = RUN(BOUND, rvm_machine_function(machine, TYPED), int_value(0));
    CHECK(status == RVM_ARGUMENT_ERROR || status == RVM_STACK_OVERFLOW);
    close_machine(&exe);
  }
  const rvm_machine_options shallow = {.call_depth = 20};
  open_machine(&exe, &shallow);
  CHECK_FAILS(RUN(DESCEND, int_value(30)), RVM_STACK_OVERFLOW, "descend: call depth exceeds the limit of 20", result);
  what_happens = SHRINK;
  CHECK_FAILS(RUN(TWICE, int_value(HOST), int_value(0)), RVM_STACK_OVERFLOW, "direct: call depth exceeds this", result);
  what_happens = NOTHING;
  close_machine(&exe);
}

/* ---- threads with small stacks ---- */

static void *descend_deep(void *unused) {
  (void)unused;
  CHECK_FAILS(RUN(DESCEND, int_value(1000000)), RVM_STACK_OVERFLOW, "descend: call depth exceeds this thread's",
              result);
  return NULL;
}

static void half_of_a_small_stack_is_kept(void) {
  loaded exe;
  pthread_t thread;
  pthread_attr_t attributes;
  const rvm_machine_options options = {.call_depth = 1 << 24, .stack_values = 1 << 24};
  open_machine(&exe, &options);
  pthread_attr_init(&attributes);
  CHECK_INT(pthread_attr_setstacksize(&attributes, 1 << 20), 0);
  CHECK_INT(pthread_create(&thread, &attributes, descend_deep, NULL), 0);
  CHECK_INT(pthread_join(thread, NULL), 0);
  pthread_attr_destroy(&attributes);
  close_machine(&exe);
}

/* ---- upgrades during a run ---- */

static rvm_status upgrade(void *host, rvm_value *error) {
  (void)host;
  const rvm_status status = rvm_machine_upgrade(machine, compiled.executable, error);
  if (status != RVM_BUSY) return status;
  rvm_value_release(error); /* the machine was upgraded by an earlier poll */
  *error = (rvm_value){.tag = RVM_TAG_NIL};
  return RVM_OK;
}

/* Loads native code that replaces the bytecode of `what`. */
static void load_compiled(const loaded *exe) {
  image program = {0};
  build_of(&program, RVM_KIND_native);
  image_native(&program, TRIPLE, "", library, library_bytes);
  image_replaces(&program, exe->executable);
  CHECK_OK(image_load(&program, &compiled, &result), result);
}

/* Upgrades a function while it polls, and during a call. */
static void a_function_goes_on_in_native_code(void) {
  for (int k = 0; k < 4; k++) {
    const int32_t function = k % 2 ? UNTYPED : TYPED;
    const rvm_machine_options options = {.poll = k < 2 ? upgrade : NULL};
    what_happens = k < 2 ? NOTHING : UPGRADE;
    first_calls = FIRST_CALLS;
    loaded exe;
    open_machine(&exe, &options);
    load_compiled(&exe);
    CHECK_INT(rvm_machine_function_kind(machine, function), RVM_KIND_bytecode);
    CHECK_OK(RUN(function, int_value(1000000)), result);
    CHECK(result.as.i < 0 && result.as.i > -1000000 && (k < 2 || result.as.i == 8 - 1000000));
    CHECK_INT(rvm_machine_function_kind(machine, function), RVM_KIND_native);
    close_machine(&exe);
    loaded_release(&compiled);
  }
  what_happens = NOTHING;
}

/* Upgrades with an executable of one function, which states the digest of `replaced`, or no digest if that is NULL. */
static rvm_status upgrade_with(const rvm_executable *replaced, uint32_t kind, const char *name,
                               const char *parameters) {
  image program = {0};
  image_function(&program, kind, name, parameters, kind == RVM_KIND_kernel ? 0 : 2);
  if (kind == RVM_KIND_bytecode) RET(&program, 0);
  image_native(&program, TRIPLE, "", library, library_bytes);
  if (replaced) image_replaces(&program, replaced);
  CHECK_OK(image_load(&program, &compiled, &result), result);
  const rvm_status status = rvm_machine_upgrade(machine, compiled.executable, &result);
  loaded_release(&compiled);
  return status;
}

static void some_of_the_kernels_may_come(void) {
  loaded exe;
  const char *const text = "function table differs";
  open_machine(&exe, NULL);
  CHECK_FAILS(upgrade_with(exe.executable, RVM_KIND_kernel, "silent", "x"), RVM_ARGUMENT_ERROR, text, result);
  CHECK_FAILS(upgrade_with(exe.executable, RVM_KIND_native, "silent", "x"), RVM_ARGUMENT_ERROR, text, result);
  CHECK_FAILS(upgrade_with(exe.executable, RVM_KIND_bytecode, "main", "x y"), RVM_ARGUMENT_ERROR, text, result);
  CHECK_FAILS(upgrade_with(exe.executable, RVM_KIND_kernel, "add_one", "x"), RVM_ARGUMENT_ERROR, text, result);
  CHECK_FAILS(upgrade_with(exe.executable, RVM_KIND_kernel, "pair", "x"), RVM_ARGUMENT_ERROR, text, result);
  CHECK_OK(upgrade_with(exe.executable, RVM_KIND_kernel, "add_one", "x y"), result);
  CHECK_OK(upgrade_with(exe.executable, RVM_KIND_kernel, "add_one", "x y"), result);
  CHECK_FAILS(upgrade_with(NULL, RVM_KIND_kernel, "add_one", "x y"), RVM_ARGUMENT_ERROR, "compiled for another program",
              result);
  loaded other;
  image program = {0};
  image_int(&program, 1);
  image_function(&program, RVM_KIND_bytecode, "main", "x", 2);
  RET(&program, 0);
  CHECK_OK(image_load(&program, &other, &result), result);
  CHECK_FAILS(upgrade_with(other.executable, RVM_KIND_kernel, "add_one", "x y"), RVM_ARGUMENT_ERROR,
              "compiled for another program", result);
  rvm_machine *without_kernels;
  MAKE(without_kernels, rvm_machine_new(other.executable, NULL, &without_kernels, &result));
  CHECK_FAILS(rvm_machine_upgrade(without_kernels, other.executable, &result), RVM_ARGUMENT_ERROR,
              "compiled for another program", result);
  CHECK_INT(rvm_machine_release(without_kernels), RVM_OK);
  loaded_release(&other);
  load_compiled(&exe);
  CHECK_OK(rvm_machine_upgrade(machine, compiled.executable, &result), result);
  CHECK_FAILS(rvm_machine_upgrade(machine, compiled.executable, &result), RVM_BUSY, "already has this native code",
              result);
  CHECK_INT(rvm_machine_function_kind(machine, TYPED), RVM_KIND_native);
  CHECK_OK(RUN(TYPED, int_value(5)), result);
  close_machine(&exe);
  loaded_release(&compiled);
}

static rvm_status go_on(void *host, const rvm_value *failure, rvm_value *error) {
  (void)host, (void)failure, (void)error;
  return RVM_OK;
}

static void a_run_ends_before_a_kernel_begins(void) {
  loaded exe;
  rvm_value tensors[] = {tensor_value(RVM_DTYPE_f32, 0, NULL), tensor_value(RVM_DTYPE_f32, 0, NULL)};
  for (int is_stepped = 0; is_stepped < 2; is_stepped++) {
    const rvm_debugger debugger = {.stop = go_on};
    open_machine(&exe, NULL);
    CHECK_OK(rvm_machine_debug(machine, is_stepped ? &debugger : NULL, &result), result);
    what_happens = INTERRUPT;
    CHECK_FAILS(RUN(STOPPED, tensors[0], tensors[1]), RVM_INTERRUPTED, "interrupted", result);
    what_happens = NOTHING;
    CHECK_OK(RUN(STOPPED, tensors[0], tensors[1]), result);
    rvm_value_release(&result);
    CHECK_OK(RUN(ADD_ONE, tensors[0], tensors[1]), result);
    close_machine(&exe);
  }
  CHECK(*(float *)tensors[1].as.tensor->dl.data == 1);
  rvm_value_release(&tensors[0]);
  rvm_value_release(&tensors[1]);
}

/* ---- loading ---- */

static void what_trusted_native_code_may_call(void) {
  loaded exe;
  CHECK_OK(load(TRIPLE, "", library_bytes, &exe, &result), result);
  CHECK(rvm_executable_may_call(exe.executable, "anything"));
  loaded_release(&exe);
}

static void code_for_elsewhere_may_be_loaded(void) {
  const struct {
    const char *triple, *refusal;
    size_t size_bytes;
  } rows[] = {
      {TRIPLE, NULL, library_bytes},
      {"riscv64-linux-gnu", "the native code was built for riscv64", library_bytes},
      {TRIPLE, "native code: ", 100}, /* not a library that this system can open */
  };
  for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
    image program = {0};
    loaded exe = {0};
    const char *const all[] = {"*"};
    const rvm_load_options options = {.trust_native = 1, .elsewhere = 1, .functions = all, .function_count = 1};
    build(&program);
    image_native(&program, rows[row].triple, "", library, rows[row].size_bytes);
    exe.bytes = image_finish(&program, &exe.size_bytes);
    CHECK_OK(rvm_executable_load(exe.bytes, exe.size_bytes, &options, &exe.executable, &result), result);
    CHECK(result.tag == RVM_TAG_NIL); /* the load succeeds; the executable keeps the error for itself */
    rvm_status status = rvm_machine_new(exe.executable, NULL, &machine, &result);
    if (rows[row].refusal) {
      CHECK_FAILS(status, RVM_UNSUPPORTED, rows[row].refusal, result);
    } else {
      CHECK_OK(status, result);
      rvm_machine_release(machine);
    }
    loaded_release(&exe);
  }
}

int main(int count, char **arguments) {
  if (count < 2) return 2;
  read_library(arguments[1]);
  CHECK_OK(rvm_register("test.host", host_function, NULL, 0, &result), result);
  code_for_another_computer_is_refused();
  another_abi_version_is_refused();
  another_abi_version_may_be_loaded_for_elsewhere();
  a_malformed_header_is_refused();
  a_missing_symbol_is_named();
  a_failed_write_is_reported();
  native_and_bytecode_call_each_other();
  each_executable_has_a_library_of_its_own();
  a_routine_may_end_with_a_call();
  the_stacks_end_somewhere();
  half_of_a_small_stack_is_kept();
  a_function_goes_on_in_native_code();
  some_of_the_kernels_may_come();
  a_run_ends_before_a_kernel_begins();
  what_trusted_native_code_may_call();
  code_for_elsewhere_may_be_loaded();
  CHECK_OK(rvm_unregister("test.host", &result), result);
  free(library);
  return CHECK_RESULT();
}
