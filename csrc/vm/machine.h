/* machine.h: a running machine: its functions, its value stack, its frames. */
#ifndef RELVM_MACHINE_H
#define RELVM_MACHINE_H

#include <stdatomic.h>

#include "object.h"
#include "object_freelist.h"
#include "predecode.h"
#include "storage_pool.h"

/* One bytecode function being run. */
typedef struct rvm_frame {
  const rvm_function *function;
  rvm_value *registers; /* its window on the value stack */
  const int32_t *pc;    /* the step being run; of a frame below the top one: its call */
} rvm_frame;

/* A value that rvm_machine_drop could not release at once. */
typedef struct rvm_dropped {
  struct rvm_dropped *next;
  rvm_value value;
} rvm_dropped;

/* The call that a function ended with: its arguments, owned, lie at the machine's top. */
typedef struct rvm_pending {
  const rvm_function *function;
  int64_t count;
  int32_t captured; /* how many of them came with a closure */
} rvm_pending;

/* An executable whose native code replaces bytecode. */
typedef struct rvm_upgrade {
  rvm_executable *compiled;
  struct rvm_upgrade *next;
  int32_t is_applied; /* of the thread inside the machine */
} rvm_upgrade;

/* Invariant: no stack value from `top` on is an object.  A call's arguments are laid out from `top` on, so that a
   bytecode or native callee finds its parameters in place; until the callee owns them they are borrowed, and `top`
   stays below them. */
struct rvm_machine {
  rvm_machine_head head; /* first */
  rvm_status (*interpret)(rvm_machine *machine,
                          rvm_value *result); /* runs the top frame until it returns: interpreter.c */
  rvm_executable *executable;
  rvm_function *functions;
  rvm_value *function_values; /* the same as FUNCTION values, for native code */
  rvm_value *literals;        /* the executable's, those of functions and of the context being this machine's */
  rvm_value *stack;
  size_t stack_bytes;
  rvm_frame *frames;
  rvm_pool *pool;
  rvm_objects objects;           /* of the thread inside it */
  rvm_pending tail;              /* of a routine that returned RVM_TAIL_CALL */
  int32_t entries;               /* how often its thread is inside it */
  int32_t host_entries;          /* those of them by rvm_machine_enter */
  int32_t calls;                 /* from C that are under way */
  atomic_uintptr_t owner;        /* the thread inside it (BRIEFLY in machine.c: for a moment); 0: none */
  _Atomic(uint64_t) run;         /* the number of the present or, when the machine is idle, of the next run */
  _Atomic(uint64_t) interrupted; /* the number of the run that is to end; 0: none */
  _Atomic(rvm_dropped *) dropped;
  _Atomic(rvm_upgrade *) upgrades; /* rvm_machine_upgrade: the last one first; or NULL */
  atomic_int has_upgrade;          /* 1: functions of some are still to be taken up */
  int64_t looked, polled; /* when the machine looked at the time, and when the host was polled, by rvm_clock_now */
  int64_t granted;        /* the fuel at the last look */
  int64_t steps_left, deadline; /* of the present run */
  rvm_budget budget;
  uint64_t random; /* of rvm_machine_random: how many numbers it gave, times an odd constant, and where it began */
  rvm_machine_options options;
  rvm_instrument instrument;
  struct rvm_debugging *debugging; /* debugger.h; or NULL */
  _Atomic(int64_t) stop_within;    /* rvm_machine_stop_within */
  atomic_int stops_in_kernels;     /* rvm_machine_stop_in_kernels */
};

enum {
  RVM_POLL_INTERVAL = 65536,
  RVM_HOST_POLL_INTERVAL = 1000000, /* nanoseconds */
  RVM_LONG_INTERVAL = 4000000       /* after so long a time the next look is at the next kernel */
};

static inline int rvm_machine_is_interrupted(rvm_machine *machine) {
  return atomic_load_explicit(&machine->interrupted, memory_order_relaxed) ==
         atomic_load_explicit(&machine->run, memory_order_relaxed);
}

/* The machine whose run this thread is in, the innermost; NULL: none, where C calls a builtin itself. */
rvm_machine *rvm_machine_running(void);
/* Has the machine look at its limits at its next step: a function of the host has run for an unknown time. */
void rvm_machine_look_next(rvm_machine *machine);
/* Looks at the limits of the run and asks the host; INTERRUPTED, TIMEOUT, or what the host says, ends the run. */
rvm_status rvm_machine_poll_now(rvm_machine *machine, rvm_value *error);

/* Counts `cost` of the work that a builtin does, in its loops, as steps: about one for each value looked at or 64 bytes
   moved. Now and then it polls; *error is as it was unless that ends the run.  machine: rvm_machine_running(). */
static inline rvm_status rvm_spend(rvm_machine *machine, int64_t cost, rvm_value *error) {
  if (!machine || (machine->head.fuel -= cost) > 0) return RVM_OK;
  return rvm_machine_poll_now(machine, error);
}

/* As rvm_spend, of a machine that there is; it looks for an interrupt each time. */
static inline rvm_status rvm_machine_spend(rvm_machine *machine, int64_t cost, rvm_value *error) {
  machine->head.fuel -= cost;
  if (machine->head.fuel > 0 && !rvm_machine_is_interrupted(machine)) return RVM_OK;
  return rvm_machine_poll_now(machine, error);
}

/* The function of a FUNCTION or CLOSURE, and what the closure has captured. */
static inline const rvm_function *rvm_callee_function(rvm_value callee, const rvm_value **captured,
                                                      int32_t *captured_count) {
  *captured = NULL;
  *captured_count = 0;
  if (callee.tag == RVM_TAG_FUNCTION) return callee.as.function;
  *captured = callee.as.closure->captured;
  *captured_count = callee.as.closure->captured_count;
  return callee.as.closure->function;
}

static inline int rvm_is_watched(const rvm_machine *machine, const rvm_function *function) {
  return (machine->head.watched_kinds & function->watch) != 0;
}

/* Returns the kinds of calls and steps that the machine's instrument and its debugger watch, for head.watched_kinds. */
static inline uint32_t rvm_kinds_to_watch(const rvm_machine *machine) {
  return (machine->instrument.kinds & ~RVM_WATCH_STEPS) | (machine->debugging ? RVM_WATCH_STEPS : 0);
}

/* ---- the thread inside ---- */

/* Enters the machine for a moment, if no thread is inside it: it then does its pending work. */
void rvm_machine_enter_briefly(rvm_machine *machine);
/* Enters the machine, which is not running: else BUSY.  `what`: of it is to be changed. */
rvm_status rvm_machine_begin_change(rvm_machine *machine, const char *what, rvm_value *error);
void rvm_machine_end_change(rvm_machine *machine);

/* Makes good a host's callback that failed without an error, or with a status of its own; what it ends with. */
rvm_status rvm_host_failed(rvm_status status, const char *callback, rvm_value *error);

/* Whether the machine must not be freed: another thread is inside it, or this one by more than rvm_machine_enter. */
int rvm_machine_is_in_use(const rvm_machine *machine);
/* Releases what rvm_machine_drop has left. */
void rvm_machine_release_dropped(rvm_machine *machine);

/* The thread's state before a run, which the end of the run restores. */
typedef struct rvm_outer_run {
  rvm_machine *machine;
  rvm_budget *budget;
} rvm_outer_run;

/* Enters the machine for a call from C, within its limits; BUSY where another thread is inside. */
rvm_status rvm_machine_begin_run(rvm_machine *machine, rvm_outer_run *outer, rvm_value *error);
void rvm_machine_end_run(rvm_machine *machine, const rvm_outer_run *outer);

/* ---- its parts ---- */

/* Whether the executable may run here; UNSUPPORTED: no. */
rvm_status rvm_expect_runnable(const rvm_executable *executable, rvm_value *error);
static inline int rvm_machine_has_function(const rvm_machine *machine, int32_t index) {
  return machine && index >= 0 && index < machine->executable->function_count;
}
/* Whether its program may call a registered function by its name. */
int rvm_machine_may_call(const rvm_machine *machine, const char *name);
/* Returns the pool that the machine allocates storages in. */
rvm_pool *rvm_machine_pool(rvm_machine *machine);
uint64_t rvm_machine_random(rvm_machine *machine); /* the next of its random numbers */
/* Hands the values to the print hook. */
rvm_status rvm_machine_print(rvm_machine *machine, const rvm_value *arguments, int32_t count, rvm_value *error);

#endif
