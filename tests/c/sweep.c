/* sweep.c: linked around a test (the linker's --wrap).  Each call of the functions below runs out of memory at its
   first allocation, then at its second, and so on until no allocation fails.  Each failure must be OUT_OF_MEMORY, or
   the error of the call without a failing allocation, and the machine must be unchanged; the sanitizers find leaks.
   The test continues with the call in which no allocation failed, so that its checks show that everything is usable
   afterwards. */
#include "allocation.h"
#include "registry.h"
#include "check.h"
#include "machine.h"

enum {
  ALL = 200, /* each of the first ALL allocations of a call fails in turn; after them, more and more are passed over */
  CALLS = 2000, /* the first CALLS calls of a test are swept, and every hundredth call after them */
};

static int is_sweeping, calls;

/* The state that a failure must not change; `machine` is NULL if the call uses none. */
typedef struct state {
  const rvm_machine *machine;
  const rvm_value *top;
  int64_t frames, nesting;
  int32_t entries, calls;
} state;

static state state_of(const rvm_machine *machine) {
  state now = {.machine = machine};
  if (!machine) return now;
  now.top = machine->head.top;
  now.frames = machine->head.frame_count;
  now.nesting = machine->head.nesting;
  now.entries = machine->entries;
  now.calls = machine->calls;
  return now;
}

static int begins(void) {
  if (is_sweeping || allocations_left >= 0) return 0;
  calls++;
  return calls <= CALLS || calls % 100 == 0;
}

static long next(long allocation) { return allocation + 1 + (allocation >= ALL ? allocation / 10 : 0); }

/* Ends the program with an exit status that differs from that of failed checks. */
static void fail(const char *problem, const char *call, long allocation, rvm_status status, const rvm_value *error) {
  const rvm_error *got = error->tag == RVM_TAG_ERROR ? error->as.error : NULL;
  printf("%s, allocation %ld: %s: status %d, %s %d\n", call, allocation, problem, status,
         got ? got->message : "no error", got ? got->status : 0);
  exit(3);
}

/* UNDO reverts a call that succeeds although an allocation failed. */
#define SWEEP(name, CALL, MACHINE, ERROR, UNDO)                                                           \
  do {                                                                                                    \
    if (!(ERROR) || !begins()) return CALL;                                                               \
    rvm_status other = RVM_OK, status;                                                                    \
    const state before = state_of(MACHINE);                                                               \
    is_sweeping = 1;                                                                                      \
    for (long allocation = 0;; allocation = next(allocation)) {                                           \
      allocations_left = allocation;                                                                      \
      status = CALL;                                                                                      \
      int failed = allocations_left < 0;                                                                  \
      allocations_left = -1;                                                                              \
      const state after = state_of(MACHINE);                                                              \
      if (memcmp(&before, &after, sizeof before) != 0)                                                    \
        fail("the machine is not as before", name, allocation, status, ERROR);                            \
      if (!failed) break;                                                                                 \
      if (status == RVM_OK) {                                                                             \
        UNDO;                                                                                             \
        continue;                                                                                         \
      }                                                                                                   \
      if ((ERROR)->tag != RVM_TAG_ERROR || (ERROR)->as.error->status != status)                           \
        fail("a failure without its error", name, allocation, status, ERROR);                             \
      if (status != RVM_OUT_OF_MEMORY) other = status;                                                    \
      rvm_value_release(ERROR);                                                                           \
    }                                                                                                     \
    is_sweeping = 0;                                                                                      \
    if (other != RVM_OK && other != status) fail("another failure than without", name, -1, other, ERROR); \
    return status;                                                                                        \
  } while (0)

#define WRAP(name, parameters, arguments, machine, error, undo) \
  rvm_status __real_##name parameters;                          \
  rvm_status __wrap_##name parameters;                          \
  rvm_status __wrap_##name parameters { SWEEP(#name, __real_##name arguments, machine, error, undo); }

#define WRAP_VALUE(name, parameters, arguments) \
  WRAP(name, parameters, arguments, NULL, result, rvm_value_release(result))

WRAP_VALUE(rvm_tensor_new, (int32_t dtype, int32_t rank, const int64_t *dims, rvm_value *result),
           (dtype, rank, dims, result))
WRAP_VALUE(rvm_tensor_of_strings,
           (int32_t rank, const int64_t *dims, const void *packed, int64_t packed_bytes, rvm_value *result),
           (rank, dims, packed, packed_bytes, result))
WRAP_VALUE(rvm_shape_new, (int32_t rank, const int64_t *dims, rvm_value *result), (rank, dims, result))
WRAP_VALUE(rvm_tuple_new, (int32_t size, const rvm_value *items, rvm_value *result), (size, items, result))
WRAP_VALUE(rvm_list_new, (int32_t size, const rvm_value *items, rvm_value *result), (size, items, result))
WRAP_VALUE(rvm_string_new, (const char *bytes, int64_t length, rvm_value *result), (bytes, length, result))
WRAP_VALUE(rvm_storage_new, (rvm_pool * pool, int64_t size_bytes, rvm_value *result), (pool, size_bytes, result))
WRAP_VALUE(rvm_closure_new, (rvm_function * function, int32_t captured_count, rvm_value *result),
           (function, captured_count, result))

WRAP_VALUE(rvm_machine_function_new,
           (rvm_machine * machine, const char *name, rvm_packed_function call, void *self, void (*release)(void *self),
            rvm_value *result),
           (machine, name, call, self, release, result))

WRAP(rvm_executable_load,
     (const void *bytes, int64_t size_bytes, const rvm_load_options *options, rvm_executable **made, rvm_value *error),
     (bytes, size_bytes, options, made, error), NULL, error, rvm_executable_release(*made))
WRAP(rvm_machine_new,
     (rvm_executable * executable, const rvm_machine_options *options, rvm_machine **made, rvm_value *error),
     (executable, options, made, error), NULL, error, rvm_machine_release(*made))
WRAP(rvm_profile_new, (const rvm_executable *executable, rvm_profile **made, rvm_value *error),
     (executable, made, error), NULL, error, rvm_profile_release(*made))
WRAP(rvm_machine_call,
     (rvm_machine * machine, int32_t index, const rvm_value *arguments, int32_t count, rvm_value *result),
     (machine, index, arguments, count, result), machine, result, rvm_value_release(result))
WRAP(rvm_machine_invoke,
     (rvm_machine * machine, rvm_value callee, const rvm_value *arguments, int32_t count, rvm_value *result),
     (machine, callee, arguments, count, result), machine, result, rvm_value_release(result))

#define BUILTIN(name, signature, effect, cost, decoded, meaning)                                             \
  WRAP_VALUE(rvm_builtin_##name, (void *self, const rvm_value *arguments, int32_t count, rvm_value *result), \
             (self, arguments, count, result))
#include "builtins.def"
#undef BUILTIN
