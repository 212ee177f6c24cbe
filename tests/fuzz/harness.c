/* harness.c: runs one input: loads the bytes and, if they are accepted, calls every function in several modes.

   Whatever the program does, the machine must be usable afterwards, no memory may leak, and a machine that is observed
   must give the same results as one that is not.  A violation aborts, which the sanitizers report and the driver
   handles.  Runs have the limits of rvm_machine_options.  memory.c adds a limit for loading and for creating
   machines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "machine.h"

enum { STACK_VALUES = 512, CALL_DEPTH = 40, MAX_STEPS = 20000, MAX_RUN_BYTES = 1 << 18, MAX_MEMORY_BYTES = 1 << 20 };
enum { MORE_MEMORY = 8 }; /* factor for programs with kernels */
enum { MAX_FUNCTIONS = 48, ROUNDS = 2, MAX_PARAMETERS = 12, KEPT = 6 };
enum {
  MAX_CALLBACKS = 1 << 13
}; /* callbacks of instruments and debuggers that have an effect, per program: a loop may cause a million */

/* How a machine is run.  PLAIN, WATCHED and STEPPED must give the same results. */
enum mode { PLAIN, WATCHED, STEPPED, SKIPPED, STARVED, MODES };

/* The result of a call. */
typedef struct outcome {
  rvm_status status;
  uint32_t checksum; /* of the result, or of the error's message */
  char message[96];
} outcome;

typedef struct session {
  enum mode mode;
  rvm_machine *machine;
  const rvm_executable *executable;
  fuzz_random random;          /* for arguments and host functions */
  fuzz_random observer_random; /* for instruments and debuggers */
  rvm_value kept[KEPT];
  outcome outcomes[MAX_FUNCTIONS * ROUNDS];
  int32_t outcome_count;
  int depth;     /* of nested host functions */
  int callbacks; /* callbacks so far */
} session;

fuzz_counts fuzz_counted;
int fuzz_in_every_mode;

static session *present;

/* ---- the host ---- */

static rvm_status print(void *host, const rvm_value *arguments, int32_t count, rvm_value *error) {
  char text[RVM_DESCRIPTION_BYTES];
  (void)host;
  for (int32_t i = 0; i < count; i++) rvm_value_describe(arguments[i], text);
  return count < 5 ? RVM_OK : rvm_fail(error, RVM_CALLBACK_ERROR, "too much");
}

/* The host function with every name that begins with "reference." or "host.". */
static rvm_status host_function(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  (void)self;
  const uint32_t choice = fuzz_below(&present->random, 16);
  const int32_t index = (int32_t)fuzz_below(&present->random, (uint64_t)count);
  if (count == 0 || choice < 6) return RVM_OK;
  if (choice == 6) return rvm_fail(result, RVM_CALLBACK_ERROR, "the host's function does not want to");
  if (choice == 7) return RVM_SHAPE_ERROR;
  if (choice < 12 || present->depth > 2) {
    if (arguments[index].tag == RVM_TAG_CONTEXT) return RVM_OK;
    *result = arguments[index];
    rvm_value_retain(*result);
    return RVM_OK;
  }
  present->depth++;
  rvm_status status = rvm_machine_invoke(present->machine, arguments[index], arguments, index, result);
  present->depth--;
  return status;
}

/* Returns whether the machine finds the function.  Host functions are registered before a machine is created. */
static int is_host_name(const char *name) {
  return strncmp(name, "reference.", 10) == 0 || strncmp(name, "host.", 5) == 0;
}

static void register_host(const rvm_executable *executable, int is_registered) {
  for (int32_t i = 0; i < executable->function_count; i++) {
    const char *name = rvm_executable_function_name(executable, i);
    if (executable->functions[i].kind != RVM_KIND_packed || !is_host_name(name)) continue;
    rvm_value error = {.tag = RVM_TAG_NIL};
    rvm_status status =
        is_registered ? rvm_register(name, host_function, NULL, 1, &error) : rvm_unregister(name, &error);
    if (status) rvm_value_release(&error);
  }
}

/* ---- instruments and debuggers ---- */

static void observe_values(session *s, const rvm_value *values, int32_t count) {
  char text[RVM_DESCRIPTION_BYTES];
  if (s->callbacks++ >= MAX_CALLBACKS) return;
  for (int32_t i = 0; i < count; i++) rvm_value_describe(values[i], text);
}

static rvm_status before(void *host, int32_t function, const rvm_value *arguments, int32_t count, int32_t *skip,
                         rvm_value *error) {
  session *s = host;
  observe_values(s, arguments, count);
  EXPECT(rvm_executable_function_name(s->executable, function));
  if (s->mode != SKIPPED) return RVM_OK;
  *skip = fuzz_below(&s->observer_random, 4) == 0;
  return fuzz_below(&s->observer_random, 32) ? RVM_OK
                                             : rvm_fail(error, RVM_CALLBACK_ERROR, "the instrument has seen enough");
}

static rvm_status after(void *host, int32_t function, const rvm_value *arguments, int32_t count, rvm_status status,
                        const rvm_value *result, rvm_value *error) {
  session *s = host;
  observe_values(s, arguments, count);
  observe_values(s, result, 1);
  EXPECT(rvm_executable_function_name(s->executable, function) && (status == RVM_OK) != (result->tag == RVM_TAG_ERROR));
  if (s->mode != SKIPPED || fuzz_below(&s->observer_random, 32)) return RVM_OK;
  return rvm_fail(error, RVM_CALLBACK_ERROR, "the instrument did not like it");
}

static rvm_status stop_at(void *host, const rvm_value *failure, rvm_value *error) {
  session *s = host;
  (void)error;
  EXPECT(!failure || failure->tag == RVM_TAG_ERROR);
  const int64_t depth = rvm_machine_depth(s->machine);
  EXPECT(depth > 0);
  for (int64_t i = depth > 3 ? depth - 3 : 0; i < depth; i++) {
    const rvm_place place = rvm_machine_place(s->machine, i);
    observe_values(s, place.registers, place.count);
  }
  return RVM_OK;
}

/* Sets breakpoints, some of them at invalid positions. */
static void set_breaks(session *s) {
  for (int i = 0; i < 4; i++) {
    rvm_value error = {.tag = RVM_TAG_NIL};
    const int32_t function = (int32_t)fuzz_below(&s->observer_random, (uint64_t)s->executable->function_count + 1);
    if (rvm_machine_break(s->machine, function, (int32_t)fuzz_below(&s->observer_random, 12),
                          fuzz_below(&s->observer_random, 4) > 0, &error))
      rvm_value_release(&error);
  }
}

static void look_on(session *s) {
  rvm_value error = {.tag = RVM_TAG_NIL};
  const rvm_instrument instrument = {.kinds = s->mode == SKIPPED ? fuzz_below(&s->observer_random, 16) : 15,
                                     .before = before,
                                     .after = after,
                                     .host = s};
  const rvm_debugger debugger = {.stop = stop_at, .host = s};
  rvm_status status = RVM_OK;
  if (s->mode == WATCHED || s->mode == SKIPPED) status = rvm_machine_instrument(s->machine, &instrument, &error);
  if (s->mode == STEPPED || (s->mode == SKIPPED && fuzz_below(&s->observer_random, 2))) {
    if (!status) status = rvm_machine_debug(s->machine, &debugger, &error);
    set_breaks(s);
    rvm_machine_stop_within(s->machine, fuzz_below(&s->observer_random, 4));
  }
  EXPECT(status == RVM_OK);
}

/* ---- results ---- */

static uint32_t checksum(uint32_t so_far, rvm_value value, int depth) {
  so_far = rvm_crc32c(so_far, &value.tag, sizeof value.tag);
  if (value.tag == RVM_TAG_TENSOR) {
    const rvm_tensor *tensor = value.as.tensor;
    so_far = rvm_crc32c(so_far, tensor->dl.shape, tensor->dl.ndim * 8);
    so_far = rvm_crc32c(so_far, &tensor->dtype, sizeof tensor->dtype);
    if (tensor->dtype == RVM_DTYPE_str) return so_far;
    return rvm_crc32c(so_far, tensor->dl.data, rvm_tensor_size_bytes(tensor));
  }
  if (value.tag == RVM_TAG_SHAPE) return rvm_crc32c(so_far, value.as.shape->dims, value.as.shape->rank * 8);
  if (value.tag == RVM_TAG_STRING) return rvm_crc32c(so_far, value.as.string->bytes, value.as.string->length);
  if (value.tag == RVM_TAG_ERROR)
    return rvm_crc32c(so_far, value.as.error->message, (int64_t)strlen(value.as.error->message));
  if (value.tag == RVM_TAG_INT || value.tag == RVM_TAG_BOOL || value.tag == RVM_TAG_DTYPE)
    return rvm_crc32c(so_far, &value.as.i, sizeof value.as.i);
  if (value.tag == RVM_TAG_FLOAT)
    return value.as.f != value.as.f ? so_far : rvm_crc32c(so_far, &value.as.f, sizeof value.as.f);
  if (depth == 0) return so_far;
  const int is_tuple = value.tag == RVM_TAG_TUPLE, is_list = value.tag == RVM_TAG_LIST;
  const int32_t size = is_tuple ? value.as.tuple->size : is_list ? value.as.list->size : 0;
  const rvm_value *items = is_tuple ? value.as.tuple->items : is_list ? value.as.list->items : NULL;
  for (int32_t i = 0; i < size && i < 8; i++) so_far = checksum(so_far, items[i], depth - 1);
  return so_far;
}

/* Checks that an idle machine is in its initial state: empty, and with no thread inside. */
static void expect_idle(const rvm_machine *machine) {
  EXPECT(machine->head.top == machine->stack && machine->head.frame_count == 0 && machine->head.nesting == 0);
  EXPECT(machine->calls == 0 && machine->entries == 0 && machine->owner == 0);
  for (const rvm_value *value = machine->stack; value < machine->head.stack_end; value++)
    EXPECT(!rvm_value_is_object(*value));
}

/* Returns whether a run met a limit.  In another mode it may meet the limit elsewhere, so that later results differ. */
static int met_limit(rvm_status status) {
  return status == RVM_TIMEOUT || status == RVM_STACK_OVERFLOW || status == RVM_OUT_OF_MEMORY;
}

static void expect_same(const session *a, const session *b) {
  for (int32_t i = 0; i < a->outcome_count; i++) {
    const outcome *left = &a->outcomes[i], *right = &b->outcomes[i];
    if (met_limit(left->status) || met_limit(right->status)) return;
    if (left->status == right->status && left->checksum == right->checksum) continue;
    fprintf(stderr, "call %d: status %d (%s), checksum %x in mode %d; ", i, left->status, left->message, left->checksum,
            a->mode);
    fprintf(stderr, "status %d (%s), checksum %x in mode %d\n", right->status, right->message, right->checksum,
            b->mode);
    abort();
  }
}

/* Returns whether modes must give the same results.  They need not if a program can read uninitialized storage, or uses
   a list again after list_push, or a tensor after unshare_tensor, which compiled programs do not do: the result then
   depends on other references to the list or tensor. */
static int is_comparable(const rvm_executable *executable) {
  return rvm_executable_find(executable, "vm.builtin.alloc_storage") < 0 &&
         rvm_executable_find(executable, "vm.builtin.list_push") < 0 &&
         rvm_executable_find(executable, "vm.builtin.unshare_tensor") < 0;
}

/* ---- runs ---- */

/* Calls a function.  Host functions are rarely called directly, because programs call them. */
static void call_function(session *s, int32_t index) {
  rvm_value arguments[MAX_PARAMETERS], result = {.tag = RVM_TAG_NIL};
  if (s->executable->functions[index].kind == RVM_KIND_packed && fuzz_below(&s->random, 16)) return;
  int32_t count = rvm_executable_function_parameters(s->executable, index);
  if (count < 0) count = (int32_t)fuzz_below(&s->random, 5);
  if (fuzz_below(&s->random, 64) == 0) count++;
  if (count > MAX_PARAMETERS) return;
  for (int32_t i = 0; i < count; i++) {
    const uint32_t kept = fuzz_below(&s->random, KEPT * 4);
    if (kept < KEPT && s->kept[kept].tag != RVM_TAG_NIL)
      rvm_value_retain(arguments[i] = s->kept[kept]);
    else
      arguments[i] = fuzz_argument(&s->random, s->executable, s->machine, index, i);
  }
  rvm_status status = rvm_machine_call(s->machine, index, arguments, count, &result);
  expect_idle(s->machine);
  EXPECT((status == RVM_OK) != (result.tag == RVM_TAG_ERROR) && status >= 0 && status < RVM_STATUS_COUNT);
  fuzz_counted.calls++;
  fuzz_counted.ended[status]++;
  outcome *came = &s->outcomes[s->outcome_count++];
  *came = (outcome){.status = status, .checksum = checksum(0, result, 3)};
  if (status) snprintf(came->message, sizeof came->message, "%s", result.as.error->message);
  for (int32_t i = 0; i < count; i++) rvm_value_release(&arguments[i]);
  rvm_value *kept = &s->kept[s->outcome_count % KEPT];
  rvm_value_release(status ? &result : kept);
  if (!status) *kept = result;
}

static void run(session *s, rvm_executable *executable, enum mode mode, uint32_t seed) {
  const int has_kernels = executable->kernels != NULL;
  const rvm_machine_options options = {.stack_values = STACK_VALUES,
                                       .call_depth = CALL_DEPTH,
                                       .max_steps = MAX_STEPS,
                                       .max_bytes = has_kernels ? MORE_MEMORY * MAX_RUN_BYTES : MAX_RUN_BYTES,
                                       .print = print,
                                       .host = s};
  rvm_value error = {.tag = RVM_TAG_NIL};
  memset(s, 0, sizeof *s);
  *s = (session){.mode = mode, .executable = executable, .random = seed, .observer_random = seed + 1};
  present = s;
  if (mode == STARVED) fuzz_allowed_left = fuzz_below(&s->observer_random, 8);
  if (rvm_machine_new(executable, &options, &s->machine, &error)) {
    rvm_value_release(&error);
    fuzz_allowed_left = -1;
    return;
  }
  fuzz_counted.machines++;
  fuzz_allowed_left = -1;
  rvm_machine_seed(s->machine, seed);
  look_on(s);
  for (int round = 0; round < ROUNDS; round++)
    for (int32_t i = 0; i < executable->function_count && i < MAX_FUNCTIONS; i++) {
      if (mode == STARVED) fuzz_allowed_left = fuzz_below(&s->observer_random, 24);
      call_function(s, i);
      fuzz_allowed_left = -1;
    }
  for (int i = 0; i < KEPT; i++) rvm_value_release(&s->kept[i]);
  rvm_machine_release(s->machine);
}

static void run_all(rvm_executable *executable, uint32_t seed) {
  static session first, other;
  register_host(executable, 1);
  run(&first, executable, PLAIN, seed);
  if (first.machine && (fuzz_in_every_mode || seed % 4 == 0)) {
    for (enum mode mode = WATCHED; mode <= STEPPED; mode++) {
      run(&other, executable, mode, seed);
      if (is_comparable(executable)) expect_same(&first, &other);
    }
    run(&other, executable, SKIPPED, seed);
    run(&other, executable, STARVED, seed);
  }
  register_host(executable, 0);
}

/* Calls every function that reads properties of an executable. */
static void read_all(const rvm_executable *executable) {
  for (int32_t i = -1; i <= executable->function_count; i++) {
    const char *name = rvm_executable_function_name(executable, i);
    EXPECT((name != NULL) == (i >= 0 && i < executable->function_count));
    if (!name) continue;
    const int32_t found =
        rvm_executable_find(executable, name); /* a packed function and another one can share a name */
    if (found < 0)
      EXPECT(executable->functions[i].flags & RVM_PRIVATE);
    else
      EXPECT(!(executable->functions[found].flags & RVM_PRIVATE) &&
             strcmp(rvm_executable_function_name(executable, found), name) == 0);
    EXPECT(rvm_executable_function_kind(executable, i) < RVM_KIND_COUNT);
  }
}

/* Loads an executable or its portable program, and runs it. */
static void load_and_run(const unsigned char *bytes, size_t size_bytes, uint32_t seed, int32_t portable) {
  const char *const functions[] = {"reference.*", "host.*"};
  const rvm_load_options options = {
      .check_data = (int32_t)(seed & 1), .functions = functions, .function_count = 2, .portable = portable};
  rvm_executable *executable = NULL;
  rvm_value error = {.tag = RVM_TAG_NIL};
  if (seed % 16 == 0) fuzz_allowed_left = seed / 16 % 24;
  rvm_status status = rvm_executable_load(bytes, (int64_t)size_bytes, &options, &executable, &error);
  fuzz_allowed_left = -1;
  if (status) {
    EXPECT(status == RVM_BAD_EXECUTABLE || status == RVM_UNSUPPORTED || status == RVM_OUT_OF_MEMORY);
    EXPECT(error.tag == RVM_TAG_ERROR && error.as.error->status == status);
    fuzz_counted.refused[status]++;
    rvm_value_release(&error);
    return;
  }
  const int has_portable = !portable && executable->sections[RVM_SECTION_portable].bytes;
  fuzz_counted.loaded++;
  read_all(executable);
  if (executable->kernels) fuzz_bytes_left += (MORE_MEMORY - 1) * MAX_MEMORY_BYTES;
  run_all(executable, seed);
  rvm_executable_release(executable);
  if (has_portable) load_and_run(bytes, size_bytes, seed, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size_bytes) {
  const uint32_t seed = rvm_crc32c(0, input, (int64_t)size_bytes);
  unsigned char *bytes = fuzz_aligned(size_bytes); /* an exact copy, so that the address sanitizer notices overruns */
  if (!bytes) return 0;
  memcpy(bytes, input, size_bytes);
  const int64_t blocks = fuzz_live_blocks;
  fuzz_bytes_left = MAX_MEMORY_BYTES;
  fuzz_counted.inputs++;
  load_and_run(bytes, size_bytes, seed, 0);
  EXPECT(fuzz_live_blocks == blocks); /* no leak */
  fuzz_bytes_left = FUZZ_NO_LIMIT;
  fuzz_aligned_free(bytes);
  return 0;
}
