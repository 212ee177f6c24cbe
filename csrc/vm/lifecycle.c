/* lifecycle.c: creates and releases machines. */
#include "cold.h"

#include <string.h>

#include "system.h"
#include "debugger.h"
#include "interpreter.h"
#include "kernel_interpreter.h"
#include "kernel_levels.h"
#include "registry.h"

enum { DEFAULT_STACK_VALUES = 1 << 20, DEFAULT_CALL_DEPTH = 200000 };

/* The largest number of values on the stack, or of frames.  Their sizes in bytes cannot overflow. */
#define LARGEST_STACK ((int64_t)1 << (SIZE_MAX < UINT64_MAX ? 25 : 40))

/* Looks up a packed function by its name, and fills the members that depend on it.  Fails if there is none. */
static rvm_status find_packed(rvm_function *function, rvm_value *error) {
  const int32_t is_found = rvm_function_find(function->name, &function->call, &function->self);
  if (!is_found && !RVM_IS_SELECTIVE) return rvm_fail_unknown(function->name, error);
  function->invokes = function->call == rvm_builtin_invoke_closure || function->call == rvm_builtin_invoke_pure_closure;
  if (function->invokes) function->watch = 0;
  if (!rvm_is_builtin_name(function->name)) function->cost = RVM_LONG_CALL_COST;
  return RVM_OK;
}

#ifndef RVM_WITHOUT_KERNELS
/* Returns whether the instrument has a callback for the instructions of kernels. */
static int is_instrumented(const rvm_machine *machine) {
  return machine->instrument.instruction && machine->head.watched_kinds & 1u << RVM_KIND_kernel;
}

/* Reports an instruction of a kernel to the instrument and the debugger.  This is the callback `observe` of
   rvm_kernel_host; `observer` is the kernel's rvm_function. */
static rvm_status observe_kernel(void *observer, const struct rvm_kernel_run *state, uint32_t pc, rvm_value *error) {
  const rvm_function *function = observer;
  rvm_machine *machine = function->machine;
  rvm_status status = RVM_OK;
  if (is_instrumented(machine)) {
    const rvm_instrument *instrument = &machine->instrument;
    status = instrument->instruction(instrument->host, (int32_t)(function - machine->functions), (int32_t)pc, error);
    if (status) return rvm_host_failed(status, "instrument", error);
  }
  return machine->debugging ? rvm_debugger_kernel_step(machine, function, state, pc, error) : RVM_OK;
}

/* Runs a kernel that is loaded as kernel bytecode.  `self` is its rvm_function. */
static rvm_status call_kernel_program(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  const rvm_function *function = self;
  rvm_machine *machine = function->machine;
  const int is_observed =
      !RVM_IS_SELECTIVE && (is_instrumented(machine) || rvm_debugger_watches_kernel(machine, function));
  const rvm_kernel_host host = {.machine = machine,
                                .level = machine->kernel_level,
                                .pool = machine->pool,
                                .threads = is_observed ? 1 : machine->options.threads,
                                .steps_left = machine->steps_left,
                                .spend = rvm_machine_spend,
                                .poll = rvm_machine_poll_now,
                                .is_ending = rvm_machine_is_ending,
                                .parallel = rvm_machine_parallel,
                                .observe = is_observed ? observe_kernel : NULL,
                                .observer = self};
  return rvm_kernel_program_run(function->program, &host, arguments, count, result);
}
#endif

/* Initializes function `index` of the machine's function table. */
static rvm_status function_fill(rvm_machine *machine, int32_t index, rvm_value *error) {
  const rvm_executable *executable = machine->executable;
  const rvm_function_record *record = &executable->functions[index];
  rvm_function *function = &machine->functions[index];
  *function = (rvm_function){.machine = machine,
                             .name = rvm_executable_string(executable, record->name),
                             .kind = (enum rvm_function_kind)record->kind,
                             .parameter_count = record->parameter_count,
                             .registers = (int32_t)record->registers,
                             .cost = 1,
                             .watch = 1u << record->kind,
                             .record = record};
  machine->function_values[index] = (rvm_value){.tag = RVM_TAG_FUNCTION, .as.function = function};
  switch (function->kind) {
    case RVM_KIND_packed: return find_packed(function, error);
    case RVM_KIND_bytecode:
      function->code = &executable->codes[index];
      function->cost += (int32_t)((record->code_count + (uint32_t)record->parameter_count) / RVM_WORDS_PER_FUEL);
      break;
    case RVM_KIND_native: memcpy(&function->routine, &executable->symbols[index], sizeof function->routine); break;
    case RVM_KIND_kernel:
#ifndef RVM_WITHOUT_KERNELS
      if (executable->kernels && executable->kernels[index].code) {
        function->call = call_kernel_program;
        function->self = function;
        function->program = &executable->kernels[index];
        function->cost = RVM_LONG_CALL_COST;
        break;
      }
#endif
      memcpy(&function->call, &executable->symbols[index], sizeof function->call);
      function->self = machine;
      function->cost = RVM_LONG_CALL_COST;
      break;
    case RVM_KIND_COUNT: break; /* rejected by the loader */
  }
  return RVM_OK;
}

/* Seeds the machine's random numbers with random bytes from the system or, if the system does not provide them, with a
   counter and the clock.  The seed must not depend on an address, which a program could infer from the numbers. */
static void begin_random(rvm_machine *machine) {
  static _Atomic(uint64_t) machines;
  const uint64_t fallback = atomic_fetch_add(&machines, 1) << 32 ^ (uint64_t)rvm_clock_now();
  if (!rvm_random_bytes(&machine->random, sizeof machine->random)) machine->random = fallback;
}

/* Checks the options whose values are numbers.  `stack_values` and `call_depth` are those of the options, or their
   defaults. */
static rvm_status check_options(const rvm_machine_options *options, int64_t stack_values, int64_t call_depth,
                                rvm_value *error) {
  const int is_stack_valid = stack_values >= 0 && stack_values <= LARGEST_STACK;
  const int is_depth_valid = call_depth >= 0 && call_depth <= LARGEST_STACK;
  if (!is_stack_valid || !is_depth_valid)
    return rvm_fail(error, RVM_ARGUMENT_ERROR,
                    "machine: stack_values is %lld and call_depth is %lld; expected 0 (the default) to %lld",
                    (long long)stack_values, (long long)call_depth, (long long)LARGEST_STACK);
  if (options->threads < 0 || options->threads > RVM_MAX_THREADS)
    return rvm_fail(error, RVM_ARGUMENT_ERROR, "machine: expected 1 to %d threads, or 0 for the default, got %d",
                    (int)RVM_MAX_THREADS, (int)options->threads);
  if (options->max_bytes < 0 || options->max_steps < 0 || options->max_nanoseconds < 0)
    return rvm_fail(error, RVM_ARGUMENT_ERROR,
                    "machine: max_bytes, max_steps and max_nanoseconds must be at least 0, got %lld, %lld and %lld",
                    (long long)options->max_bytes, (long long)options->max_steps, (long long)options->max_nanoseconds);
  return RVM_OK;
}

/* Copies the literals of the executable.  FUNCTION and CONTEXT values become those of the machine. */
static void copy_literals(rvm_machine *machine) {
  const rvm_executable *executable = machine->executable;
  for (int64_t i = 0; i < executable->literal_count; i++) {
    rvm_value *literal = &machine->literals[i];
    *literal = executable->literals[i];
    if (literal->tag == RVM_TAG_FUNCTION) literal->as.function = &machine->functions[literal->as.i];
    if (literal->tag == RVM_TAG_CONTEXT) literal->as.machine = machine;
  }
}

/* Checks the options and initializes a zeroed machine.  After a failure, rvm_machine_release frees what was
   allocated. */
static rvm_status machine_fill(rvm_machine *machine, rvm_executable *executable, const rvm_machine_options *options,
                               rvm_value *error) {
  if (options) machine->options = *options;
  const int64_t stack_values = machine->options.stack_values ? machine->options.stack_values : DEFAULT_STACK_VALUES;
  machine->interpret = rvm_machine_run;
  machine->head.failed_at = -1;
  machine->head.frame_limit = machine->options.call_depth ? machine->options.call_depth : DEFAULT_CALL_DEPTH;
  rvm_status status = check_options(&machine->options, stack_values, machine->head.frame_limit, error);
  if (status) return status;
#ifndef RVM_WITHOUT_KERNELS
  machine->kernel_level = rvm_kernel_level_within(machine->options.cpu);
  if (!machine->kernel_level)
    return rvm_fail(error, RVM_ARGUMENT_ERROR,
                    "machine: cpu is \"%.100s\"; expected x86-64, x86-64-v2, x86-64-v3 or x86-64-v4, and names of "
                    "features",
                    machine->options.cpu);
  machine->options.cpu = NULL; /* the string belongs to the host, which may free it */
#endif
  size_t function_count = (size_t)executable->function_count;
  rvm_executable_retain(machine->executable = executable);
  machine->steps_left = machine->deadline = INT64_MAX;
  machine->head.fuel = machine->granted = RVM_POLL_INTERVAL;
  machine->budget.remaining = machine->options.max_bytes;
  begin_random(machine);
  atomic_init(&machine->stay, 1);
  machine->functions = rvm_allocate(function_count * sizeof *machine->functions);
  machine->function_values = rvm_allocate(function_count * sizeof *machine->function_values);
  machine->stack_bytes = (size_t)stack_values * sizeof *machine->stack;
  machine->stack = rvm_map(machine->stack_bytes);
  machine->frames = rvm_allocate((size_t)machine->head.frame_limit * sizeof *machine->frames);
  machine->literals = rvm_allocate((size_t)executable->literal_count * sizeof *machine->literals);
  /* Without native code, blocks from the pool are zeroed: bytecode that is not trusted must not read old contents of
     memory. */
  machine->pool = rvm_pool_new(!executable->library.handle);
  const int has_memory = machine->functions && machine->function_values && machine->literals && machine->stack &&
                         machine->frames && machine->pool;
  if (!has_memory) return rvm_out_of_memory(error);
  copy_literals(machine);
  machine->head.top = machine->stack;
  machine->head.constants = executable->constants;
  machine->head.function_values = machine->function_values;
  machine->head.stack_end = machine->stack + stack_values;
  for (int32_t i = 0; i < executable->function_count && !status; i++) status = function_fill(machine, i, error);
  return status;
}

rvm_status rvm_machine_new(rvm_executable *executable, const rvm_machine_options *options, rvm_machine **machine,
                           rvm_value *error) {
  _Static_assert(RVM_TAG_NIL == 0, "zeroed memory is a stack of NILs");
  RVM_EXPECT_POINTER(executable, error);
  RVM_EXPECT_POINTER(machine, error);
  rvm_status status = RVM_IS_SELECTIVE ? RVM_OK : rvm_expect_runnable(executable, error);
  if (status) return status;
  rvm_machine *made = rvm_allocate_zeroed(sizeof *made);
  if (!made) return rvm_out_of_memory(error);
  if ((status = machine_fill(made, executable, options, error))) {
    rvm_machine_release(made);
    return status;
  }
  *machine = made;
  return RVM_OK;
}

rvm_status rvm_machine_release(rvm_machine *machine) {
  if (!machine) return RVM_OK;
  if (rvm_machine_is_in_use(machine)) return RVM_BUSY;
  rvm_machine_release_dropped(machine);
  rvm_executable_release(machine->executable);
  for (rvm_upgrade *upgrade = atomic_load(&machine->upgrades), *next; upgrade; upgrade = next) {
    next = upgrade->next;
    rvm_executable_release(upgrade->compiled);
    rvm_free(upgrade);
  }
  rvm_free(machine->functions);
  rvm_free(machine->function_values);
  rvm_free(machine->literals);
  rvm_unmap(machine->stack, machine->stack_bytes);
  rvm_free(machine->frames);
  rvm_pool_close(machine->pool);
  rvm_objects_close(&machine->objects);
  rvm_debugging_release(machine);
  rvm_free(machine);
  return RVM_OK;
}
