/* machine.h: a running machine: its functions, its value stack, its frames. */
#ifndef RELVM_MACHINE_H
#define RELVM_MACHINE_H

#include <stdatomic.h>

#include "builtins.h"
#include "predecode.h"
#include "object_freelist.h"

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

/* A function that a debugger was told of. */
typedef struct rvm_stop {
  const rvm_function *function;
  const rvm_value *registers;
  const int32_t *step; /* of bytecode; NULL: native code, at `instruction` */
  int32_t instruction;
} rvm_stop;

/* Which steps of a function, or instructions of a native one, a run stops before. */
typedef struct rvm_breaks {
  unsigned char *stops;
  int64_t count;
} rvm_breaks;

typedef struct rvm_debugging {
  rvm_debugger debugger;
  rvm_breaks *breaks; /* per function */
  rvm_stop *stops;    /* the functions inside each other, as far as it was told of them */
  int64_t depth, room; /* of `stops` */
  int32_t ended;       /* whether it ended the run itself: that failure it is not told of */
} rvm_debugging;

/* Invariant: no stack value from `top` on is an object.  A call's arguments are laid out from `top` on, so that a bytecode
   or native callee finds its parameters in place; until the callee owns them they are borrowed, and `top` stays below
   them. */
struct rvm_machine {
  rvm_machine_head head; /* first */
  rvm_executable *executable;
  rvm_function *functions;
  rvm_value *function_values; /* the same as FUNCTION values, for native code */
  rvm_value *literals;        /* the executable's, those of functions and of the context being this machine's */
  rvm_value *stack;
  size_t stack_bytes;
  rvm_frame *frames;
  rvm_pool *pool;
  rvm_objects objects; /* of the thread inside it */
  rvm_pending tail;       /* of a routine that returned RVM_TAIL_CALL */
  int32_t entries;        /* how often its thread is inside it */
  int32_t host_entries;   /* those of them by rvm_machine_enter */
  int32_t calls;          /* from C that are under way */
  atomic_uintptr_t owner; /* the thread inside it (machine.c); 0: none */
  _Atomic(uint64_t) run;         /* the number of the present or, when the machine is idle, of the next run */
  _Atomic(uint64_t) interrupted; /* the number of the run that is to end; 0: none */
  _Atomic(rvm_dropped *) dropped;
  _Atomic(rvm_executable *) compiled; /* rvm_machine_upgrade; or NULL */
  atomic_int upgrades;                /* 1: its functions are still to be taken up */
  int64_t looked, polled; /* when the machine looked at the time, and when the host was polled, by rvm_clock_now */
  int64_t granted;        /* the fuel at the last look */
  int64_t steps_left, deadline; /* of the present run */
  rvm_budget budget;
  uint64_t random; /* of rvm_machine_random: how many numbers it gave, times an odd constant, and where it began */
  rvm_machine_options options;
  rvm_instrument instrument;
  rvm_debugging *debugging;      /* or NULL */
  _Atomic(int64_t) stop_within;  /* rvm_machine_stop_within */
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

/* As rvm_spend, for whoever knows the machine; it looks for an interrupt each time. */
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

/* ---- machine.c ---- */


/* Enters the machine, which is not running: else BUSY.  `what`: of it is to be changed. */
rvm_status rvm_machine_begin_change(rvm_machine *machine, const char *what, rvm_value *error);
void rvm_machine_end_change(rvm_machine *machine);

/* Makes good a host's callback that failed without an error, or with a status of its own; what it ends with. */
rvm_status rvm_host_failed(rvm_status status, const char *callback, rvm_value *error);

/* ---- instrument.c ---- */

/* Tells the instrument of a call with the `count` borrowed arguments at the top.  On success, unless *skip, they lie at
   the top a second time, as the callee's own, and rvm_instrument_after must follow when the callee is done with them. */
rvm_status rvm_instrument_before(rvm_machine *machine, const rvm_function *function, int64_t count, int32_t *skip,
                                 rvm_value *error);
/* Tells it of the call's end, and removes the arguments.  What the call ends with: `status`, unless that is OK and the
   instrument fails; then its error takes the place of *result. */
rvm_status rvm_instrument_after(rvm_machine *machine, const rvm_function *function, int64_t count, rvm_status status,
                                rvm_value *result);

/* What the machine's head has of it and its debugger. */
static inline uint32_t rvm_kinds_to_watch(const rvm_machine *machine) {
  return (machine->instrument.kinds & ~RVM_WATCH_STEPS) | (machine->debugging ? RVM_WATCH_STEPS : 0);
}

/* ---- debugger.c ---- */

/* Before the step at `step` of a bytecode function, or, that being NULL, an instruction of a native one. */
rvm_status rvm_debugger_step(rvm_machine *machine, rvm_stop stop, rvm_value *error);
/* After the innermost function failed, before its registers are released. */
void rvm_debugger_failed(rvm_machine *machine, rvm_value failure);
void rvm_debugging_release(rvm_machine *machine);

/* ---- call.c ---- */

/* TYPE_ERROR: a value that is no function or closure is called. */
rvm_status rvm_fail_callee(rvm_value callee, rvm_value *error);
rvm_status rvm_fail_stack(const rvm_machine *machine, const rvm_function *function, rvm_value *error);
/* How far down this thread's C stack may be used; threads may have small ones. */
const char *rvm_lowest_of_stack(void);
/* native.h: tail_call, finish_tail_call */
rvm_status rvm_machine_tail_call(rvm_machine *machine, rvm_value callee, const rvm_value *arguments, int32_t count,
                                 rvm_value *failure);
rvm_status rvm_machine_finish_tail_call(rvm_machine *machine, rvm_value *window, int32_t count, rvm_value *result);
/* Calls `function` with the `count` borrowed arguments that lie at the machine's top, of which the last `captured` came
   with a closure; they are gone afterwards.  Everything is as it was before the call, whether it succeeds or not. */
rvm_status rvm_machine_call_at_top(rvm_machine *machine, const rvm_function *function, int64_t count, int32_t captured,
                                   rvm_value *result);
/* Takes over the arguments at the top: calls a native or packed function, and what it ends with a tail call to.
   `entered`: a frame was pushed instead, of a bytecode function that is still to be run. */
rvm_status rvm_machine_start(rvm_machine *machine, rvm_pending call, int *entered, rvm_value *result);
/* A call of vm.builtin.invoke_closure, its arguments at the top, becomes a call of its target: the target's arguments, then
   the captured values, take the place of those of the builtin.  Nothing changes where the builtin has to say what is
   wrong, or where it calls no function of an executable. */
void rvm_machine_unfold_invoke(rvm_machine *machine, rvm_pending *call);
/* Moves the `count` values from `values` on down to the top. */
void rvm_machine_lower(rvm_machine *machine, rvm_value *values, int64_t count);
/* Releases what the last frame holds, and removes it; the top is then where its registers began. */
void rvm_machine_pop_frame(rvm_machine *machine);

static inline void rvm_retain_all(const rvm_value *values, int64_t count) {
  for (int64_t i = 0; i < count; i++) rvm_retain(values[i]);
}
static inline void rvm_release_all(rvm_value *values, int64_t count) {
  for (int64_t i = 0; i < count; i++) rvm_release(&values[i]);
}
/* The owned ones at the top.  A release may run code of the host's that calls the machine, here as everywhere: what is
   still wanted must lie below the top. */
static inline void rvm_release_top(rvm_machine *machine, int64_t count) {
  rvm_value *values = machine->head.top;
  machine->head.top = values + count;
  rvm_release_all(values, count);
  machine->head.top = values;
}
/* What was only borrowed. */
static inline void rvm_forget_all(rvm_value *values, int64_t count) {
  for (int64_t i = 0; i < count; i++) values[i].tag = RVM_TAG_NIL;
}
/* Releases the objects among the registers of a bytecode function. */
static inline void rvm_release_objects(const rvm_code *code, rvm_value *registers) {
  for (int32_t i = 0; i < code->object_count; i++) {
    rvm_value *value = &registers[code->objects[i]];
    if (rvm_value_is_object(*value)) rvm_release(value);
  }
}

/* ---- interpreter.c ---- */

/* Runs the top frame until it returns. */
rvm_status rvm_machine_run(rvm_machine *machine, rvm_value *result);
/* The same, telling the debugger of every step. */
rvm_status rvm_machine_run_stepped(rvm_machine *machine, rvm_value *result);

#endif
