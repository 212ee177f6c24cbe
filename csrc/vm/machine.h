/* machine.h: a machine: its functions, its value stack and its frames.  One thread at a time is inside a machine
   (`owner`).  Members that other threads may access are atomic.

   Terms.  A run lasts from a host's call of the machine until the call returns.  Fuel (rvm_machine_head) is the
   number of steps until the next poll.  A poll checks the limits of the run and, at intervals, calls the host's
   poll callback. */
#ifndef RELVM_MACHINE_H
#define RELVM_MACHINE_H

#include <stdatomic.h>

#include "object.h"
#include "object_freelist.h"
#include "predecode.h"
#include "selected.h"
#include "storage_pool.h"

/* An active bytecode function. */
typedef struct rvm_frame {
  const rvm_function *function;
  rvm_value *registers; /* its window on the value stack */
  const int32_t *pc;    /* the step being executed; in frames below the top one, the call step */
} rvm_frame;

/* A value that rvm_machine_drop has queued, because another thread was inside the machine. */
typedef struct rvm_dropped {
  struct rvm_dropped *next;
  rvm_value value;
} rvm_dropped;

/* A call that has not started.  Its arguments are at the top of the stack. */
typedef struct rvm_pending {
  const rvm_function *function;
  int64_t count;
  int32_t captured; /* number of the last arguments that are the captured values of a closure */
} rvm_pending;

/* An executable whose native code replaces bytecode. */
typedef struct rvm_upgrade {
  rvm_executable *compiled;
  struct rvm_upgrade *next;
  int32_t is_applied; /* accessed only by the thread inside the machine */
} rvm_upgrade;

/* Invariant: the stack values from `top` on own no objects, except the arguments of a call that is being made.  These
   are copied to the stack from `top` on, where they become the first registers of a bytecode or native callee without
   another copy.  They are borrowed until they are retained for such a callee.  The arguments of packed functions stay
   borrowed. */
struct rvm_machine {
  rvm_machine_head head; /* must be the first member: native code accesses it */
  rvm_status (*interpret)(rvm_machine *machine, rvm_value *result); /* rvm_machine_run */
  rvm_executable *executable;
  rvm_function *functions;
  rvm_value *function_values; /* the functions as FUNCTION values */
  rvm_value *literals;        /* a copy of executable->literals, with FUNCTION and CONTEXT values of this machine */
  rvm_value *stack;
  size_t stack_bytes;
  rvm_frame *frames;
  rvm_pool *pool;
  rvm_objects objects;    /* the free lists that the thread inside the machine uses */
  rvm_pending tail;       /* the pending tail call of a native function that returned RVM_TAIL_CALL */
  int32_t entries;        /* number of entries that the thread inside has not ended by leaving */
  int32_t host_entries;   /* number of these entries that rvm_machine_enter has made */
  int32_t calls;          /* number of active calls between rvm_machine_begin_run and _end_run */
  atomic_uintptr_t owner; /* this_thread() of the thread inside, with BRIEFLY (machine.c); 0 if none */
  _Atomic(uint64_t) stay; /* number of the stay of a thread, which ends when it leaves; while idle, of the next */
  _Atomic(uint64_t) interrupted; /* number of the stay in which a run is to be interrupted; 0 if none */
  _Atomic(rvm_dropped *) dropped;
  _Atomic(rvm_upgrade *) upgrades; /* the list of all upgrades (rvm_machine_upgrade), newest first */
  atomic_int has_upgrade;          /* 1 if an upgrade has not been applied */
  int64_t last_check;              /* rvm_clock_now() of the last check of the limits */
  int64_t last_host_poll;          /* rvm_clock_now() of the last poll of the host */
  int64_t granted;                 /* fuel that the last poll granted, less what rvm_machine_poll_next took back */
  int64_t steps_left, deadline;    /* limits of the current run */
  rvm_budget budget;
  int32_t real_time; /* RVM_REAL_TIME_OFF, ... */
  uint64_t random;   /* state of rvm_machine_random */
  rvm_machine_options options;
  rvm_instrument instrument;
  const struct rvm_kernel_level *kernel_level; /* the processor level of kernel bytecode; NULL without kernels */
  struct rvm_debugging *debugging;             /* debugger.h; NULL if no debugger is attached */
  _Atomic(int64_t) stop_within;                /* rvm_machine_stop_within */
  atomic_int stops_in_kernels;                 /* rvm_machine_stop_in_kernels */
};

/* The states of the real-time mode (rvm_machine_real_time).  LEARNS ends with the next successful run, and is followed
   by SEALED. */
enum { RVM_REAL_TIME_OFF, RVM_REAL_TIME_LEARNS, RVM_REAL_TIME_SEALED };

enum {
  RVM_POLL_INTERVAL = 65536,        /* maximum fuel between two polls */
  RVM_HOST_POLL_INTERVAL = 1000000, /* minimum time between two calls of the host's poll callback, in nanoseconds */
  RVM_LONG_INTERVAL = 4000000       /* nanoseconds; if two polls are further apart, the next kernel causes a poll */
};

static inline int rvm_machine_is_interrupted(rvm_machine *machine) {
  return atomic_load_explicit(&machine->interrupted, memory_order_relaxed) ==
         atomic_load_explicit(&machine->stay, memory_order_relaxed);
}

/* Returns the machine whose run the calling thread is in, the innermost one.  Returns NULL outside of runs, where C
   code can also call builtins. */
rvm_machine *rvm_machine_running(void);
/* Makes the machine poll when it next spends fuel, at a call or a backward jump.  Called after a host function, which
   may have run for any time. */
void rvm_machine_poll_next(rvm_machine *machine);
/* Polls: applies upgrades, checks the limits of the run and, if RVM_HOST_POLL_INTERVAL has passed, calls the host's
   poll callback.  Fails with INTERRUPTED, TIMEOUT or the host's error, which ends the run. */
rvm_status rvm_machine_poll_now(rvm_machine *machine, rvm_value *error);
/* Entries of rvm_native_api, which also the kernel interpreter calls: see native.h. */
int32_t rvm_machine_is_ending(rvm_machine *machine);
void rvm_machine_parallel(rvm_machine *machine, rvm_part part, const void *shared, int64_t count, int64_t grain);

/* Charges `cost` units of fuel for the work of a builtin, about one for each value visited or 64 bytes moved.  Polls if
   the fuel is used up, and fails if the poll does.  *error is set only on failure.  `machine` is rvm_machine_running().
   If `machine` is NULL, this function does nothing. */
static inline rvm_status rvm_spend(rvm_machine *machine, int64_t cost, rvm_value *error) {
  if (!machine || (machine->head.fuel -= cost) > 0) return RVM_OK;
  return rvm_machine_poll_now(machine, error);
}

/* Charges `cost` units of fuel.  Polls if the fuel is used up or the run is interrupted, and fails if the poll does. */
static inline rvm_status rvm_machine_spend(rvm_machine *machine, int64_t cost, rvm_value *error) {
  machine->head.fuel -= cost;
  if (machine->head.fuel > 0 && !rvm_machine_is_interrupted(machine)) return RVM_OK;
  return rvm_machine_poll_now(machine, error);
}

/* Returns the function of a FUNCTION or CLOSURE, and stores the borrowed values that the closure captured. */
static inline const rvm_function *rvm_callee_function(rvm_value callee, const rvm_value **captured,
                                                      int32_t *captured_count) {
  *captured = NULL;
  *captured_count = 0;
  if (callee.tag == RVM_TAG_FUNCTION) return callee.as.function;
  *captured = callee.as.closure->captured;
  *captured_count = callee.as.closure->captured_count;
  return callee.as.closure->function;
}

/* Returns whether the instrument watches calls of the function. */
static inline int rvm_is_watched(const rvm_machine *machine, const rvm_function *function) {
  return !RVM_IS_SELECTIVE && (machine->head.watched_kinds & function->watch) != 0;
}

/* Returns the value for head.watched_kinds: the kinds of functions that the instrument watches, and RVM_WATCH_STEPS if
   the machine has a debugger. */
static inline uint32_t rvm_kinds_to_watch(const rvm_machine *machine) {
  return (machine->instrument.kinds & ~RVM_WATCH_STEPS) | (machine->debugging ? RVM_WATCH_STEPS : 0);
}

/* ---- the thread inside ---- */

/* Enters and leaves the machine, which applies upgrades and releases dropped values.  Does nothing if another thread is
   inside; that thread will do this work. */
void rvm_machine_enter_briefly(rvm_machine *machine);
/* Locks an idle machine for modification.  Fails with BUSY if it is running or another thread is inside it.  `part`
   names the part to be changed, for the message. */
rvm_status rvm_machine_begin_change(rvm_machine *machine, const char *part, rvm_value *error);
void rvm_machine_end_change(rvm_machine *machine);

/* Completes the failure of a host callback with `status`.  If the callback has not set *error, stores an error that
   names `callback`.  Returns the status of *error. */
rvm_status rvm_host_failed(rvm_status status, const char *callback, rvm_value *error);

/* Returns whether the machine must not be freed, because another thread is inside it or this thread is in a run
   of it. */
int rvm_machine_is_in_use(const rvm_machine *machine);
/* Releases the values that rvm_machine_drop queued. */
void rvm_machine_release_dropped(rvm_machine *machine);

/* The thread's state before a run, which rvm_machine_end_run restores. */
typedef struct rvm_outer_run {
  rvm_machine *machine;
  rvm_budget *budget;
  int32_t is_limited; /* whether the run has a budget of its own */
} rvm_outer_run;

/* Enters the machine for a call from C, and saves the thread's state in *outer.  The outermost call sets the limits of
   the run.  Fails with BUSY if another thread is inside. */
rvm_status rvm_machine_begin_run(rvm_machine *machine, rvm_outer_run *outer, rvm_value *error);
/* Ends a call, whose status is `status`.  If a run ends successfully and the real-time mode of the machine is LEARNS,
   it becomes SEALED. */
void rvm_machine_end_run(rvm_machine *machine, const rvm_outer_run *outer, rvm_status status);

/* ---- parts of a machine ---- */

/* Fails with UNSUPPORTED if the executable cannot run on this computer or was loaded for checking only. */
rvm_status rvm_expect_runnable(const rvm_executable *executable, rvm_value *error);
static inline int rvm_machine_has_function(const rvm_machine *machine, int32_t index) {
  return machine && index >= 0 && index < machine->executable->function_count;
}
/* Returns whether the machine's program may call a registered function by its name. */
int rvm_machine_may_call(const rvm_machine *machine, const char *name);
/* Returns the pool that the machine allocates storages in. */
rvm_pool *rvm_machine_pool(rvm_machine *machine);
uint64_t rvm_machine_random(rvm_machine *machine); /* returns the next random number */
/* Passes the values to the host's print callback, if there is one. */
rvm_status rvm_machine_print(rvm_machine *machine, const rvm_value *arguments, int32_t count, rvm_value *error);

#endif
