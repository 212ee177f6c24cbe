/* debugger.h: tells a machine's debugger (rvm_debugger in relvm.h) where a run is, and stops the run at breakpoints.
   Everything here runs on the thread that has entered the machine. */
#ifndef RELVM_DEBUGGER_H
#define RELVM_DEBUGGER_H

#include "machine.h"

/* The state of an active function when the debugger last observed it. */
typedef struct rvm_position {
  const rvm_function *function;
  const rvm_value *registers;
  const int32_t *step; /* the bytecode step; NULL for native code and kernels, which use `instruction` */
  int32_t instruction;
  const struct rvm_kernel_run *kernel; /* the run of a kernel, or NULL */
} rvm_position;

/* The breakpoints of a function: stops[i] is 1 if a run stops before word i of its steps (bytecode), or before
   instruction i (native code and kernels). */
typedef struct rvm_breaks {
  unsigned char *stops;
  int64_t count;
} rvm_breaks;

typedef struct rvm_debugging {
  rvm_debugger debugger;
  rvm_breaks *breaks;                 /* one per function */
  rvm_position *positions;            /* the active functions, outermost first, as last observed */
  int64_t depth, capacity;            /* number of positions, and the number allocated */
  int32_t ended;                      /* 1 if the debugger itself ended the run: that failure is not reported to it */
  const void *bodies[RVM_STEP_COUNT]; /* the interpreter's dispatch table while a debugger is attached */
} rvm_debugging;

/* Observes a step before it is executed: calls the debugger if there is a breakpoint, or if the depth is at most
   stop_within.  Fails if the debugger ends the run. */
rvm_status rvm_debugger_step(rvm_machine *machine, rvm_position position, rvm_value *error);
/* Returns whether a call of the kernel may stop inside it. */
int rvm_debugger_watches_kernel(const rvm_machine *machine, const rvm_function *kernel);
/* Observes instruction number `pc` of a kernel before it is executed.  The kernel counts as the innermost call while
   the debugger runs. */
rvm_status rvm_debugger_kernel_step(rvm_machine *machine, const rvm_function *kernel,
                                    const struct rvm_kernel_run *state, uint32_t pc, rvm_value *error);
/* Reports a failure of the innermost function to the debugger.  Call it before the function's registers are
   released. */
void rvm_debugger_failed(rvm_machine *machine, rvm_value failure);
void rvm_debugging_release(rvm_machine *machine);

#endif
