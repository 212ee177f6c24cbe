/* machine.c: controls which thread is inside a machine, and keeps runs within their limits.  `owner` is the lock: only
   the thread that it names may access the members of a machine that are not atomic. */
#include "machine.h"

#include <string.h>

#include "system.h"
#include "thread_pool.h"

/* ---- identity of threads, random numbers, upgrades ---- */

/* Returns an even number that identifies the calling thread while it runs. */
static uintptr_t this_thread(void) {
  static _Thread_local int64_t mark;
  return (uintptr_t)&mark;
}

/* A bit of `owner`, set while a thread is inside only to release values or apply upgrades.  A thread that cannot enter
   tries again while the bit is set, and fails with BUSY if it is not set. */
enum { BRIEFLY = 1 };

static int is_inside(const rvm_machine *machine) {
  return (atomic_load_explicit(&machine->owner, memory_order_relaxed) & ~(uintptr_t)BRIEFLY) == this_thread();
}

int rvm_machine_is_in_use(const rvm_machine *machine) {
  if (is_inside(machine)) return machine->entries > machine->host_entries;
  return atomic_load(&machine->owner) != 0;
}

static _Thread_local rvm_machine *running;

rvm_machine *rvm_machine_running(void) { return running; }

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

void rvm_machine_release_dropped(rvm_machine *machine) {
  rvm_dropped *dropped = atomic_load(&machine->dropped) ? atomic_exchange(&machine->dropped, NULL) : NULL;
  while (dropped) {
    rvm_dropped *next = dropped->next;
    rvm_value_release(&dropped->value);
    rvm_free(dropped);
    dropped = next;
  }
}

/* Replaces the bytecode of function `i` by the native code at `symbol`.  Does nothing if the function is native
   already, or if the upgrade contains only bytecode for it.  Active frames of the function continue in bytecode.

   compiled: the record of the function in the upgrade. */
static void replace_function(rvm_machine *machine, int32_t i, const rvm_function_record *compiled, void *symbol) {
  rvm_function *function = &machine->functions[i];
  if (function->program && symbol) { /* a kernel, from bytecode to native code */
    memcpy(&function->call, &symbol, sizeof function->call);
    function->self = machine;
    function->program = NULL;
  } else if (function->kind == RVM_KIND_bytecode && compiled->kind == RVM_KIND_native) {
    memcpy(&function->routine, &symbol, sizeof function->routine);
    function->registers = (int32_t)compiled->registers;
    function->kind = RVM_KIND_native;
    function->watch = 1u << RVM_KIND_native;
  }
}

/* Replaces functions by those of all upgrades that have not been applied. */
static void apply_upgrades(rvm_machine *machine) {
  if (RVM_IS_SELECTIVE || !atomic_exchange(&machine->has_upgrade, 0)) return;
  for (rvm_upgrade *upgrade = atomic_load(&machine->upgrades); upgrade; upgrade = upgrade->next) {
    if (upgrade->is_applied) continue;
    const rvm_executable *compiled = upgrade->compiled;
    const int is_whole = compiled->function_count == machine->executable->function_count;
    for (int32_t i = 0; i < compiled->function_count; i++) {
      const int32_t index =
          is_whole ? i : rvm_executable_find(machine->executable, rvm_executable_function_name(compiled, i));
      replace_function(machine, index, &compiled->functions[i], compiled->symbols[i]);
    }
    upgrade->is_applied = 1;
  }
}

/* ---- entering and leaving ---- */

/* A call fails if the C stack has less space left than this, or less than half of a small stack.  Code between two of
   these checks may use that space.  Kernels with arrays on the stack, kernel bytecode and recursive builtins also check
   the space themselves (rvm_stack_left). */
enum { STACK_RESERVE_BYTES = 640 << 10 };

/* Sets the bounds of this thread's C stack: its lowest address, and the lowest address at which a call may begin. */
static void set_stack_bounds(rvm_machine_head *head) {
  static _Thread_local const char *start, *lowest;
  if (!lowest) {
    const size_t size_bytes = rvm_thread_stack(&start);
    if (size_bytes > 0) lowest = start + (size_bytes / 2 < STACK_RESERVE_BYTES ? size_bytes / 2 : STACK_RESERVE_BYTES);
  }
  head->stack_start = start;
  head->lowest = lowest;
}

/* Enters the machine and returns 1.  `briefly` is BRIEFLY or 0, and is stored in `owner` with the thread.  Returns 0 if
   another thread is inside, or -1 if another thread is inside briefly. */
static int32_t try_to_enter(rvm_machine *machine, uintptr_t briefly) {
  uintptr_t owner = 0;
  if (!is_inside(machine) && !atomic_compare_exchange_strong(&machine->owner, &owner, this_thread() | briefly))
    return owner & BRIEFLY ? -1 : 0;
  if (machine->entries++ == 0) {
    set_stack_bounds(&machine->head);
    rvm_objects_enter(&machine->objects);
  }
  if (atomic_load_explicit(&machine->has_upgrade, memory_order_relaxed)) apply_upgrades(machine);
  return 1;
}

int32_t rvm_machine_enter(rvm_machine *machine) {
  int32_t entered = machine ? try_to_enter(machine, 0) : 0;
  if (entered <= 0) return entered;
  machine->host_entries++;
  if (machine->calls == 0) machine->deadline = INT64_MAX;
  return entered;
}

/* Enters the machine and returns 1.  Waits while another thread is inside briefly.  Returns 0 if another thread is
   inside, not briefly. */
static int32_t enter_or_wait(rvm_machine *machine) {
  int32_t entered;
  while ((entered = try_to_enter(machine, 0)) < 0) rvm_thread_yield();
  return entered;
}

/* Ends one entry.  If it is the last one, releases dropped values and gives up the machine.  Another thread can drop a
   value between these two actions, so the list of dropped values is checked again afterwards. */
static void leave(rvm_machine *machine) {
  while (machine->entries == 1) {
    rvm_machine_release_dropped(machine);
    rvm_objects_leave(&machine->objects);
    machine->entries = 0;
    atomic_fetch_add(&machine->stay, 1);
    atomic_store(&machine->owner, 0);
    if (!atomic_load(&machine->dropped) || try_to_enter(machine, BRIEFLY) <= 0) return;
  }
  machine->entries--;
}

rvm_status rvm_machine_leave(rvm_machine *machine, rvm_value *error) {
  RVM_EXPECT_POINTER(machine, error);
  if (!is_inside(machine) || machine->host_entries == 0)
    return rvm_fail(error, RVM_ARGUMENT_ERROR,
                    "rvm_machine_leave: called without a matching rvm_machine_enter on this thread");
  machine->host_entries--;
  leave(machine);
  return RVM_OK;
}

rvm_status rvm_expect_runnable(const rvm_executable *executable, rvm_value *error) {
  if (executable->is_only_checked)
    return rvm_fail(error, RVM_UNSUPPORTED, "machine: the executable was loaded for checking only and cannot run");
  return executable->is_elsewhere ? rvm_executable_check_native(executable, error) : RVM_OK;
}

void rvm_machine_enter_briefly(rvm_machine *machine) {
  if (try_to_enter(machine, BRIEFLY) > 0) leave(machine);
}

int32_t rvm_machine_function_kind(const rvm_machine *machine, int32_t index) {
  return rvm_machine_has_function(machine, index) ? (int32_t)machine->functions[index].kind : -1;
}

/* ---- limits ---- */

/* The callback `reclaim` of the machine's budget. */
static void reclaim(void *host) { rvm_pool_trim(((rvm_machine *)host)->pool); }

static int is_limited(const rvm_machine *machine) {
  return machine->options.max_bytes > 0 || machine->options.max_steps > 0 || machine->options.max_nanoseconds > 0 ||
         machine->real_time == RVM_REAL_TIME_SEALED;
}

/* Gives the machine `fuel` until the next poll, or the steps that are left if these are fewer. */
static void grant(rvm_machine *machine, int64_t fuel) {
  machine->head.fuel = machine->granted = fuel < machine->steps_left ? fuel : machine->steps_left;
}

/* Sets the limits of the next run.  The memory that earlier runs left in the pool does not count. */
static void begin_limits(rvm_machine *machine) {
  const rvm_machine_options *options = &machine->options;
  machine->steps_left = options->max_steps > 0 ? options->max_steps : INT64_MAX;
  machine->deadline = options->max_nanoseconds > 0 ? rvm_clock_now() + options->max_nanoseconds : INT64_MAX;
  grant(machine, RVM_POLL_INTERVAL);
  if (options->max_bytes > 0) rvm_pool_trim(machine->pool);
  int64_t most = options->max_bytes > 0 ? options->max_bytes : INT64_MAX;
  machine->budget =
      (rvm_budget){.limit = most, .remaining = most, .fuel = &machine->head.fuel, .reclaim = reclaim, .host = machine};
  if (machine->real_time == RVM_REAL_TIME_SEALED)
    machine->budget = (rvm_budget){.fuel = &machine->head.fuel, .is_sealed = 1};
}

/* Takes the remaining fuel back, and reduces `granted` by the same amount, so that this fuel does not count as used. */
void rvm_machine_poll_next(rvm_machine *machine) {
  machine->granted -= machine->head.fuel;
  machine->head.fuel = 0;
}

/* ---- running ---- */

static rvm_status fail_busy(rvm_value *error) {
  return rvm_fail(error, RVM_BUSY, "machine: another thread is using this machine; create one machine per thread");
}

/* Reads `stay` before `owner`.  If the thread inside leaves between the two reads, the next thread has another stay, in
   which no run is interrupted. */
void rvm_machine_interrupt(rvm_machine *machine) {
  if (!machine) return;
  uint64_t stay = atomic_load(&machine->stay);
  if (atomic_load(&machine->owner)) atomic_store(&machine->interrupted, stay);
}

void rvm_machine_drop(rvm_machine *machine, rvm_value value) {
  if (!machine || !rvm_value_is_object(value)) return;
  if (try_to_enter(machine, BRIEFLY) > 0) {
    rvm_value_release(&value);
    leave(machine);
    return;
  }
  rvm_dropped *dropped = rvm_allocate(sizeof *dropped);
  if (!dropped) return; /* the object leaks, because there is no memory for the queue entry */
  *dropped = (rvm_dropped){.next = atomic_load(&machine->dropped), .value = value};
  while (!atomic_compare_exchange_weak(&machine->dropped, &dropped->next, dropped)) continue;
  if (try_to_enter(machine, BRIEFLY) > 0) leave(machine);
}

rvm_status rvm_machine_begin_run(rvm_machine *machine, rvm_outer_run *outer, rvm_value *error) {
  if (!enter_or_wait(machine)) return fail_busy(error);
  *outer = (rvm_outer_run){.machine = running};
  const int limited = is_limited(machine);
  if (machine->calls++ == 0 && limited) begin_limits(machine);
  outer->is_limited = limited;
  if (limited) outer->budget = rvm_budget_set(&machine->budget);
  running = machine;
  return RVM_OK;
}

/* Sets the real-time mode of the machine, its pool and its free lists. */
static void set_real_time(rvm_machine *machine, int32_t mode) {
  const int32_t pool_modes[] = {RVM_POOL_LIMITED, RVM_POOL_LEARNS, RVM_POOL_SEALED};
  machine->real_time = mode;
  machine->objects.keeps_all = mode != RVM_REAL_TIME_OFF;
  rvm_pool_set_mode(machine->pool, pool_modes[mode]);
}

void rvm_machine_end_run(rvm_machine *machine, const rvm_outer_run *outer, rvm_status status) {
  running = outer->machine;
  if (outer->is_limited) rvm_budget_set(outer->budget);
  if (--machine->calls == 0 && !status && machine->real_time == RVM_REAL_TIME_LEARNS)
    set_real_time(machine, RVM_REAL_TIME_SEALED);
  leave(machine);
}

rvm_status rvm_machine_begin_change(rvm_machine *machine, const char *part, rvm_value *error) {
  if (!enter_or_wait(machine)) return fail_busy(error);
  if (machine->calls == 0) return RVM_OK;
  leave(machine);
  return rvm_fail(error, RVM_BUSY, "machine: the %s cannot be changed while the machine is running", part);
}

void rvm_machine_end_change(rvm_machine *machine) { leave(machine); }

rvm_status rvm_machine_real_time(rvm_machine *machine, int32_t enabled, rvm_value *error) {
  RVM_EXPECT_POINTER(machine, error);
  if (enabled != 0 && enabled != 1)
    return rvm_fail(error, RVM_ARGUMENT_ERROR, "rvm_machine_real_time: enabled is %d, expected 0 or 1", enabled);
  const rvm_machine_options *options = &machine->options;
  const int needs_system =
      options->threads > 1 || options->max_bytes > 0 || options->max_nanoseconds > 0 || options->poll;
  if (enabled && needs_system)
    return rvm_fail(error, RVM_ARGUMENT_ERROR,
                    "rvm_machine_real_time: expected a machine with one thread, and without max_bytes, max_nanoseconds "
                    "and poll, which need locks, memory or the clock");
  rvm_status status = rvm_machine_begin_change(machine, "real-time mode", error);
  if (status) return status;
  set_real_time(machine, enabled ? RVM_REAL_TIME_LEARNS : RVM_REAL_TIME_OFF);
  rvm_machine_end_change(machine);
  return RVM_OK;
}

rvm_value rvm_machine_function(const rvm_machine *machine, int32_t index) {
  return rvm_machine_has_function(machine, index) ? machine->function_values[index] : (rvm_value){.tag = RVM_TAG_NIL};
}

rvm_status rvm_host_failed(rvm_status status, const char *callback, rvm_value *error) {
  if (error->tag == RVM_TAG_ERROR) return error->as.error->status;
  if (status < 0 || status >= RVM_STATUS_COUNT) status = RVM_CALLBACK_ERROR;
  return rvm_fail(error, status, "stopped by the host's %s", callback);
}

/* Fails with TIMEOUT if the run has exceeded its limit of steps, or its deadline is not after `now`. */
static rvm_status check_limits(const rvm_machine *machine, int64_t now, rvm_value *error) {
  const rvm_machine_options *options = &machine->options;
  if (machine->steps_left <= 0)
    return rvm_fail(error, RVM_TIMEOUT, "the run exceeded its limit of %lld steps (max_steps)",
                    (long long)options->max_steps);
  if (now >= machine->deadline)
    return rvm_fail(error, RVM_TIMEOUT, "the run exceeded its limit of %.3f seconds (max_seconds)",
                    (double)options->max_nanoseconds * 1e-9);
  return RVM_OK;
}

rvm_status rvm_machine_afford(const rvm_machine *machine, int64_t size_bytes, rvm_value *error) {
  RVM_EXPECT_POINTER(machine, error);
  RVM_EXPECT_COUNT(size_bytes, error);
  const int64_t most = machine->options.max_bytes, left = machine->budget.remaining;
  if (most > 0 && size_bytes > left)
    return rvm_fail(error, RVM_OUT_OF_MEMORY,
                    "out of memory: cannot add %lld bytes of host objects; %lld of %lld bytes (max_bytes) are in use",
                    (long long)size_bytes, (long long)(most - left), (long long)most);
  return machine->deadline < INT64_MAX ? check_limits(machine, rvm_clock_now(), error) : RVM_OK;
}

rvm_status rvm_machine_poll_now(rvm_machine *machine, rvm_value *error) {
  /* A real-time run must not read the clock. */
  const int64_t now = machine->real_time ? machine->last_check : rvm_clock_now();
  const int is_slow = now - machine->last_check > RVM_LONG_INTERVAL;
  machine->last_check = now;
  machine->steps_left -= machine->granted - machine->head.fuel;
  grant(machine, is_slow ? RVM_LONG_CALL_COST : RVM_POLL_INTERVAL); /* if slow, the next kernel causes a poll */
  if (atomic_load_explicit(&machine->has_upgrade, memory_order_relaxed)) apply_upgrades(machine);
  if (rvm_machine_is_interrupted(machine)) {
    atomic_store(&machine->interrupted, 0);
    return rvm_fail(error, RVM_INTERRUPTED, "interrupted");
  }
  rvm_status status = check_limits(machine, now, error);
  if (status || !machine->options.poll) return status;
  const int is_first = machine->last_host_poll == 0;
  if (!is_first && now - machine->last_host_poll < RVM_HOST_POLL_INTERVAL) return RVM_OK;
  machine->last_host_poll = now;
  /* The callback gets its own error value, because *error may hold an unfinished result, which must not change on
     success. */
  rvm_value failure = {.tag = RVM_TAG_NIL};
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

int32_t rvm_machine_is_ending(rvm_machine *machine) {
  return rvm_machine_is_interrupted(machine) || (machine->deadline < INT64_MAX && rvm_clock_now() >= machine->deadline);
}

void rvm_machine_parallel(rvm_machine *machine, rvm_part part, const void *shared, int64_t count, int64_t grain) {
  rvm_workers_run(machine->options.threads, part, shared, count, grain);
}
