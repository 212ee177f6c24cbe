/* machine.c: makes machines, guards who is inside one, and gives native code its table. */
#include "machine.h"
#include "thread_pool.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_STACK_VALUES = 1 << 20, DEFAULT_CALL_DEPTH = 200000 };

/* More would not fit a size in bytes. */
#define LARGEST_STACK ((int64_t)1 << 40)

/* ---- the thread inside ---- */

/* Even, and another one in each thread. */
static uintptr_t this_thread(void) {
  static _Thread_local int64_t mark;
  return (uintptr_t)&mark;
}

/* Whoever is inside for a run is there for long; who only drops a reference marks that with the lowest bit. */
enum { BRIEFLY = 1 };

static int is_inside(const rvm_machine *machine) {
  return (atomic_load_explicit(&machine->owner, memory_order_relaxed) & ~(uintptr_t)BRIEFLY) == this_thread();
}

/* Whether the machine must not be freed: another thread is inside it, or this one by more than rvm_machine_enter. */
static int is_in_use(const rvm_machine *machine) {
  if (is_inside(machine)) return machine->entries > machine->host_entries;
  return atomic_load(&machine->owner) != 0;
}

static _Thread_local rvm_machine *running;

rvm_machine *rvm_machine_running(void) { return running; }

/* ---- making and releasing ---- */

static rvm_status find_packed(rvm_function *function, rvm_value *error) {
  if (!rvm_function_find(function->name, &function->call, &function->self))
    return rvm_fail_unknown(function->name, error);
  function->invokes = function->call == rvm_builtin_invoke_closure || function->call == rvm_builtin_invoke_pure_closure;
  if (function->invokes) function->watch = 0;
  if (strncmp(function->name, RVM_BUILTIN_PREFIX, strlen(RVM_BUILTIN_PREFIX)) != 0) function->cost = RVM_LONG_CALL_COST;
  return RVM_OK;
}

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
      function->cost += (int32_t)((record->code_count + (uint32_t)record->parameter_count) / RVM_WORDS_FOR_A_STEP);
      break;
    case RVM_KIND_native: memcpy(&function->routine, &executable->symbols[index], sizeof function->routine); break;
    case RVM_KIND_kernel:
      memcpy(&function->call, &executable->symbols[index], sizeof function->call);
      function->self = machine;
      function->cost = RVM_LONG_CALL_COST;
      break;
    case RVM_KIND_COUNT: break; /* refused by the loader */
  }
  return RVM_OK;
}

/* The system's, or, while it has none, numbers of its own for each machine.  No address: a program could tell it from them. */
static void begin_random(rvm_machine *machine) {
  static _Atomic(uint64_t) machines;
  const uint64_t own = atomic_fetch_add(&machines, 1) << 32 ^ (uint64_t)rvm_clock_now();
  if (getentropy(&machine->random, sizeof machine->random)) machine->random = own; /* never: that it fails */
}

static rvm_status machine_fill(rvm_machine *machine, rvm_executable *executable, const rvm_machine_options *options,
                               rvm_value *error) {
  if (options) machine->options = *options;
  int64_t stack_values = machine->options.stack_values ? machine->options.stack_values : DEFAULT_STACK_VALUES;
  machine->head.failed_at = -1;
  machine->head.frame_limit = machine->options.call_depth ? machine->options.call_depth : DEFAULT_CALL_DEPTH;
  if (stack_values < 0 || machine->head.frame_limit < 0 || stack_values > LARGEST_STACK ||
      machine->head.frame_limit > LARGEST_STACK)
    return rvm_fail(error, RVM_ARGUMENT_ERROR, "machine: a stack of %lld values and %lld frames is out of range",
                    (long long)stack_values, (long long)machine->head.frame_limit);
  if (machine->options.threads < 0 || machine->options.threads > RVM_MOST_THREADS)
    return rvm_fail(error, RVM_ARGUMENT_ERROR, "machine: %d threads, expected 1 to %d", (int)machine->options.threads,
                    (int)RVM_MOST_THREADS);
  size_t function_count = (size_t)executable->function_count;
  rvm_executable_retain(machine->executable = executable);
  if (machine->options.max_bytes < 0 || machine->options.max_steps < 0 || machine->options.max_nanoseconds < 0)
    return rvm_fail(error, RVM_ARGUMENT_ERROR, "machine: a limit below 0");
  machine->steps_left = machine->deadline = INT64_MAX;
  machine->head.fuel = machine->granted = RVM_POLL_INTERVAL;
  machine->budget.left = machine->options.max_bytes;
  begin_random(machine);
  atomic_init(&machine->run, 1);
  machine->functions = rvm_allocate(function_count * sizeof *machine->functions);
  machine->function_values = rvm_allocate(function_count * sizeof *machine->function_values);
  machine->stack_bytes = (size_t)stack_values * sizeof *machine->stack;
  machine->stack = rvm_map(machine->stack_bytes);
  machine->frames = rvm_allocate((size_t)machine->head.frame_limit * sizeof *machine->frames);
  machine->literals = rvm_allocate((size_t)executable->literal_count * sizeof *machine->literals);
  machine->pool = rvm_pool_new(!executable->library.handle); /* native code is trusted with what was in memory */
  if (!machine->functions || !machine->function_values || !machine->literals || !machine->stack || !machine->frames ||
      !machine->pool)
    return rvm_out_of_memory(error);
  for (int64_t i = 0; i < executable->literal_count; i++) {
    rvm_value *literal = &machine->literals[i];
    *literal = executable->literals[i];
    if (literal->tag == RVM_TAG_FUNCTION) literal->as.function = &machine->functions[literal->as.i];
    if (literal->tag == RVM_TAG_CONTEXT) literal->as.machine = machine;
  }
  machine->head.top = machine->stack;
  machine->head.constants = executable->constants;
  machine->head.function_values = machine->function_values;
  machine->head.stack_end = machine->stack + stack_values;
  rvm_status status = RVM_OK;
  for (int32_t i = 0; i < executable->function_count && !status; i++) status = function_fill(machine, i, error);
  return status;
}

static rvm_status check_that_it_runs(const rvm_executable *executable, rvm_value *error) {
  if (executable->is_only_checked)
    return rvm_fail(error, RVM_UNSUPPORTED, "machine: the executable was loaded to be checked only");
  return executable->is_elsewhere ? rvm_executable_check_native(executable, error) : RVM_OK;
}

rvm_status rvm_machine_new(rvm_executable *executable, const rvm_machine_options *options, rvm_machine **machine,
                           rvm_value *error) {
  _Static_assert(RVM_TAG_NIL == 0, "zeroed memory is a stack of NILs");
  RVM_EXPECT_POINTER(executable, error);
  RVM_EXPECT_POINTER(machine, error);
  rvm_status status = check_that_it_runs(executable, error);
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

/* SplitMix64 (Steele, Lea and Flood, 2014). */
uint64_t rvm_machine_random(rvm_machine *machine) {
  uint64_t x = machine->random += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

void rvm_machine_seed(rvm_machine *machine, uint64_t seed) {
  if (machine) machine->random = seed;
}

static void release_dropped(rvm_machine *machine) {
  rvm_dropped *dropped = atomic_load(&machine->dropped) ? atomic_exchange(&machine->dropped, NULL) : NULL;
  while (dropped) {
    rvm_dropped *next = dropped->next;
    rvm_value_release(&dropped->value);
    rvm_free(dropped);
    dropped = next;
  }
}

rvm_status rvm_machine_release(rvm_machine *machine) {
  if (!machine) return RVM_OK;
  if (is_in_use(machine)) return RVM_BUSY;
  release_dropped(machine);
  rvm_executable_release(machine->executable);
  rvm_executable_release(atomic_load(&machine->compiled));
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

/* Frames of the functions go on: they use nothing that changes. */
static void apply_upgrade(rvm_machine *machine) {
  const rvm_executable *compiled = atomic_load(&machine->compiled);
  if (!atomic_exchange(&machine->upgrades, 0)) return;
  for (int32_t i = 0; i < compiled->function_count; i++) {
    rvm_function *function = &machine->functions[i];
    if (function->kind != RVM_KIND_bytecode || compiled->functions[i].kind != RVM_KIND_native) continue;
    memcpy(&function->routine, &compiled->symbols[i], sizeof function->routine);
    function->registers = (int32_t)compiled->functions[i].registers;
    function->kind = RVM_KIND_native;
    function->watch = 1u << RVM_KIND_native;
  }
}

/* ---- who is inside ---- */

/* As rvm_machine_enter. */
static int32_t try_to_enter(rvm_machine *machine, uintptr_t briefly) {
  uintptr_t owner = 0;
  if (!is_inside(machine) && !atomic_compare_exchange_strong(&machine->owner, &owner, this_thread() | briefly))
    return owner & BRIEFLY ? -1 : 0;
  if (machine->entries++ == 0) {
    machine->head.lowest = rvm_lowest_of_stack();
    rvm_objects_enter(&machine->objects);
  }
  if (atomic_load_explicit(&machine->upgrades, memory_order_relaxed)) apply_upgrade(machine);
  return 1;
}

int32_t rvm_machine_enter(rvm_machine *machine) {
  int32_t entered = machine ? try_to_enter(machine, 0) : 0;
  if (entered <= 0) return entered;
  machine->host_entries++;
  if (machine->calls == 0) machine->deadline = INT64_MAX;
  return entered;
}

/* 0 when another thread is running the machine. */
static int32_t enter_or_wait(rvm_machine *machine) {
  int32_t entered;
  while ((entered = try_to_enter(machine, 0)) < 0) sched_yield();
  return entered;
}

/* What is dropped after the last look at the list, and before the machine is free, is found by the look after that. */
static void leave(rvm_machine *machine) {
  while (machine->entries == 1) {
    release_dropped(machine);
    rvm_objects_leave(&machine->objects);
    machine->entries = 0;
    atomic_fetch_add(&machine->run, 1);
    atomic_store(&machine->owner, 0);
    if (!atomic_load(&machine->dropped) || try_to_enter(machine, BRIEFLY) <= 0) return;
  }
  machine->entries--;
}

rvm_status rvm_machine_leave(rvm_machine *machine, rvm_value *error) {
  RVM_EXPECT_POINTER(machine, error);
  if (!is_inside(machine) || machine->host_entries == 0)
    return rvm_fail(error, RVM_ARGUMENT_ERROR, "rvm_machine_leave: this thread has no rvm_machine_enter left to undo");
  machine->host_entries--;
  leave(machine);
  return RVM_OK;
}

/* ---- native code that comes later ---- */

rvm_status rvm_machine_upgrade(rvm_machine *machine, rvm_executable *compiled, rvm_value *error) {
  RVM_EXPECT_POINTER(machine, error);
  RVM_EXPECT_POINTER(compiled, error);
  const rvm_executable *executable = machine->executable;
  rvm_status status = check_that_it_runs(compiled, error);
  if (status) return status;
  int same = compiled->function_count == executable->function_count;
  for (int32_t i = 0; same && i < executable->function_count; i++) {
    const rvm_function_record *old = &executable->functions[i], *new = &compiled->functions[i];
    const char *names[] = {rvm_executable_string(executable, old->name), rvm_executable_string(compiled, new->name)};
    same = strcmp(names[0], names[1]) == 0 && old->parameter_count == new->parameter_count &&
           (old->kind == new->kind || (old->kind == RVM_KIND_bytecode && new->kind == RVM_KIND_native));
  }
  if (!same) return rvm_fail(error, RVM_ARGUMENT_ERROR, "upgrade: the executables have different function tables");
  rvm_executable *none = NULL;
  if (!atomic_compare_exchange_strong(&machine->compiled, &none, compiled))
    return rvm_fail(error, RVM_BUSY, "upgrade: the machine has native code of another executable");
  rvm_executable_retain(compiled);
  atomic_store(&machine->upgrades, 1);
  if (try_to_enter(machine, BRIEFLY) > 0) leave(machine);
  return RVM_OK;
}

static int has_function(const rvm_machine *machine, int32_t index) {
  return machine && index >= 0 && index < machine->executable->function_count;
}

int32_t rvm_machine_function_kind(const rvm_machine *machine, int32_t index) {
  return has_function(machine, index) ? (int32_t)machine->functions[index].kind : -1;
}

/* ---- limits ---- */

static void reclaim(void *host) { rvm_pool_trim(((rvm_machine *)host)->pool); }

static int is_limited(const rvm_machine *machine) {
  return machine->options.max_bytes > 0 || machine->options.max_steps > 0 || machine->options.max_nanoseconds > 0;
}

static void grant(rvm_machine *machine, int64_t fuel) {
  machine->head.fuel = machine->granted = fuel < machine->steps_left ? fuel : machine->steps_left;
}

/* What the next run may use.  That of memory does not depend on what runs before have left in the pool. */
static void begin_limits(rvm_machine *machine) {
  const rvm_machine_options *options = &machine->options;
  machine->steps_left = options->max_steps > 0 ? options->max_steps : INT64_MAX;
  machine->deadline = options->max_nanoseconds > 0 ? rvm_clock_now() + options->max_nanoseconds : INT64_MAX;
  grant(machine, RVM_POLL_INTERVAL);
  if (options->max_bytes > 0) rvm_pool_trim(machine->pool);
  int64_t most = options->max_bytes > 0 ? options->max_bytes : INT64_MAX;
  machine->budget = (rvm_budget){.most = most, .left = most, .fuel = &machine->head.fuel, .reclaim = reclaim, .host = machine};
}

/* Takes back the rest of the fuel, uncounted: the next step asks for more, and looks. */
void rvm_machine_look_next(rvm_machine *machine) {
  machine->granted -= machine->head.fuel;
  machine->head.fuel = 0;
}

/* ---- running ---- */

static rvm_status fail_busy(rvm_value *error) {
  return rvm_fail(error, RVM_BUSY, "machine: another thread is using it; a machine is used by one thread at a time");
}

/* The number is read first: should its run end meanwhile, then the next one is not meant. */
void rvm_machine_interrupt(rvm_machine *machine) {
  if (!machine) return;
  uint64_t run = atomic_load(&machine->run);
  if (atomic_load(&machine->owner)) atomic_store(&machine->interrupted, run);
}

void rvm_machine_drop(rvm_machine *machine, rvm_value value) {
  if (!machine || !rvm_value_is_object(value)) return;
  if (try_to_enter(machine, BRIEFLY) > 0) {
    rvm_value_release(&value);
    leave(machine);
    return;
  }
  rvm_dropped *dropped = rvm_allocate(sizeof *dropped);
  if (!dropped) return; /* without memory even for this, the object stays */
  *dropped = (rvm_dropped){.next = atomic_load(&machine->dropped), .value = value};
  while (!atomic_compare_exchange_weak(&machine->dropped, &dropped->next, dropped)) continue;
  if (try_to_enter(machine, BRIEFLY) > 0) leave(machine);
}

rvm_status rvm_machine_begin_change(rvm_machine *machine, const char *what, rvm_value *error) {
  if (!enter_or_wait(machine)) return fail_busy(error);
  if (machine->calls == 0) return RVM_OK;
  leave(machine);
  return rvm_fail(error, RVM_BUSY, "machine: its %s cannot be changed while it is running", what);
}

void rvm_machine_end_change(rvm_machine *machine) { leave(machine); }

rvm_status rvm_machine_instrument(rvm_machine *machine, const rvm_instrument *instrument, rvm_value *error) {
  RVM_EXPECT_POINTER(machine, error);
  rvm_status status = rvm_machine_begin_change(machine, "instrument", error);
  if (status) return status;
  machine->instrument = instrument ? *instrument : (rvm_instrument){.kinds = 0};
  machine->head.watched_kinds = rvm_kinds_to_watch(machine);
  rvm_machine_end_change(machine);
  return RVM_OK;
}

rvm_value rvm_machine_function(const rvm_machine *machine, int32_t index) {
  return has_function(machine, index) ? machine->function_values[index] : (rvm_value){.tag = RVM_TAG_NIL};
}

rvm_status rvm_machine_invoke(rvm_machine *machine, rvm_value callee, const rvm_value *arguments, int32_t count,
                              rvm_value *result) {
  RVM_EXPECT_POINTER(result, NULL);
  RVM_EXPECT_POINTER(machine, result);
  RVM_EXPECT_ARRAY(arguments, count, result);
  if (!rvm_value_is_sound(callee)) return rvm_fail_callee(callee, result);
  rvm_status status = rvm_expect_sound("call: argument", arguments, count, result);
  if (status) return status;
  if (!enter_or_wait(machine)) return fail_busy(result);
  const int limited = is_limited(machine);
  if (machine->calls++ == 0 && limited) begin_limits(machine);
  rvm_budget *outer = limited ? rvm_budget_set(&machine->budget) : NULL;
  rvm_machine *outer_machine = running;
  running = machine;
  status = rvm_machine_apply(machine, callee, arguments, count, result);
  running = outer_machine;
  if (limited) rvm_budget_set(outer);
  if (--machine->calls == 0 && status) rvm_error_close_trace(*result);
  leave(machine);
  return status;
}

rvm_status rvm_machine_call(rvm_machine *machine, int32_t index, const rvm_value *arguments, int32_t count,
                            rvm_value *result) {
  RVM_EXPECT_POINTER(machine, result);
  if (!has_function(machine, index))
    return rvm_fail(result, RVM_INDEX_ERROR, "call: function %d, the table has %d", index,
                    machine->executable->function_count);
  return rvm_machine_invoke(machine, machine->function_values[index], arguments, count, result);
}

rvm_status rvm_host_failed(rvm_status status, const char *callback, rvm_value *error) {
  if (error->tag == RVM_TAG_ERROR) return error->as.error->status;
  if (status < 0 || status >= RVM_STATUS_COUNT) status = RVM_CALLBACK_ERROR;
  return rvm_fail(error, status, "stopped by the host's %s", callback);
}

static rvm_status check_limits(const rvm_machine *machine, int64_t now, rvm_value *error) {
  const rvm_machine_options *options = &machine->options;
  if (machine->steps_left <= 0)
    return rvm_fail(error, RVM_TIMEOUT, "the run took more than its %lld steps", (long long)options->max_steps);
  if (now >= machine->deadline)
    return rvm_fail(error, RVM_TIMEOUT, "the run took more than its %.3f seconds", (double)options->max_nanoseconds * 1e-9);
  return RVM_OK;
}

rvm_status rvm_machine_afford(const rvm_machine *machine, int64_t size_bytes, rvm_value *error) {
  RVM_EXPECT_POINTER(machine, error);
  RVM_EXPECT_COUNT(size_bytes, error);
  const int64_t most = machine->options.max_bytes, left = machine->budget.left;
  if (most > 0 && size_bytes > left)
    return rvm_fail(error, RVM_OUT_OF_MEMORY,
                    "out of memory: %lld bytes of the host's objects, with %lld of at most %lld (max_bytes) in use",
                    (long long)size_bytes, (long long)(most - left), (long long)most);
  return machine->deadline < INT64_MAX ? check_limits(machine, rvm_clock_now(), error) : RVM_OK;
}

rvm_status rvm_machine_poll_now(rvm_machine *machine, rvm_value *error) {
  const int64_t now = rvm_clock_now();
  const int is_slow = now - machine->looked > RVM_LONG_INTERVAL;
  machine->looked = now;
  machine->steps_left -= machine->granted - machine->head.fuel;
  grant(machine, is_slow ? RVM_LONG_CALL_COST : RVM_POLL_INTERVAL);
  if (atomic_load_explicit(&machine->upgrades, memory_order_relaxed)) apply_upgrade(machine);
  if (rvm_machine_is_interrupted(machine)) {
    atomic_store(&machine->interrupted, 0);
    return rvm_fail(error, RVM_INTERRUPTED, "interrupted");
  }
  rvm_status status = check_limits(machine, now, error);
  if (status || !machine->options.poll || (machine->polled && now - machine->polled < RVM_HOST_POLL_INTERVAL)) return status;
  machine->polled = now;
  rvm_value failure = {.tag = RVM_TAG_NIL}; /* *error may be a result that is being made */
  if ((status = machine->options.poll(machine->options.host, &failure)) == RVM_OK) return RVM_OK;
  status = rvm_host_failed(status, "poll", &failure);
  *error = failure;
  return status;
}

int rvm_machine_may_call(const rvm_machine *machine, const char *name) {
  return rvm_executable_may_call(machine->executable, name);
}

rvm_pool *rvm_machine_pool(rvm_machine *machine) { return machine->pool; }

rvm_status rvm_machine_print(rvm_machine *machine, const rvm_value *arguments, int32_t count, rvm_value *error) {
  if (!machine->options.print) return RVM_OK;
  return machine->options.print(machine->options.host, arguments, count, error);
}

/* ---- native code ---- */

static void native_release(rvm_value *value) { rvm_release(value); }

static rvm_status native_poll(rvm_machine *machine, rvm_value *error) { return rvm_machine_spend(machine, 1, error); }

static rvm_status native_step(rvm_machine *machine, const rvm_value *registers, int32_t function, int32_t instruction,
                              rvm_value *error) {
  rvm_stop stop = {.function = &machine->functions[function], .registers = registers, .instruction = instruction};
  return rvm_debugger_step(machine, stop, error);
}

static const rvm_packed_function builtins[] = {
#define BUILTIN(name, signature, effect, cost, meaning) rvm_builtin_##name,
#include "builtins.def"
#undef BUILTIN
};

static void native_parallel(rvm_machine *machine, rvm_part part, const void *shared, int64_t count, int64_t grain) {
  rvm_workers_run(machine->options.threads, part, shared, count, grain);
}

const rvm_native_api rvm_machine_native_api = {
    .abi_version = RVM_ABI_VERSION,
    .fail = rvm_fail,
    .call = rvm_machine_apply,
    .truth = rvm_value_truth,
    .tail_call = rvm_machine_tail_call,
    .finish_tail_call = rvm_machine_finish_tail_call,
    .trace = rvm_error_add_frame,
    .builtins = builtins,
    .prim_fail = rvm_prim_fail,
    .release = native_release,
    .poll = native_poll,
    .find = rvm_function_find,
    .parallel = native_parallel,
    .step = native_step,
};

rvm_status rvm_aot_open(const rvm_aot_library *library, rvm_value *error) {
  RVM_EXPECT_POINTER(library, error);
  if (library->abi_version != RVM_ABI_VERSION)
    return rvm_fail(error, RVM_UNSUPPORTED, "a library that was made for another runtime: abi version %d, this one has %d",
                    (int)library->abi_version, RVM_ABI_VERSION);
  char missing[128];
  if (library->cpu && rvm_cpu_missing(library->cpu, missing, sizeof missing))
    return rvm_fail(error, RVM_UNSUPPORTED, "a library that was made for processors with %s: this one has not got it", missing);
  RVM_EXPECT_POINTER(library->open, error);
  library->open(&rvm_machine_native_api);
  return RVM_OK;
}
