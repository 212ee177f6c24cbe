/* debugger.h: reports the position of a run to the machine's debugger (rvm_debugger in relvm.h), and stops the run at
   breakpoints.  Only the thread inside the machine may call these functions. */
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
  int32_t ended;                      /* 1 if the debugger itself has ended the run */
  const void *bodies[RVM_STEP_COUNT]; /* dispatch table of the interpreter while the debugger is attached */
} rvm_debugging;

/* Called before each step.  Records the position, and calls the debugger if the step has a breakpoint, or if the number
   of active calls is at most machine->stop_within.  Fails if the debugger ends the run. */
rvm_status rvm_debugger_step(rvm_machine *machine, rvm_position position, rvm_value *error);
/* Returns whether the debugger may stop inside a call of the kernel. */
int rvm_debugger_watches_kernel(const rvm_machine *machine, const rvm_function *kernel);
/* Called before instruction number `pc` of a kernel.  Like rvm_debugger_step, with the kernel as the innermost call. */
rvm_status rvm_debugger_kernel_step(rvm_machine *machine, const rvm_function *kernel,
                                    const struct rvm_kernel_run *state, uint32_t pc, rvm_value *error);
/* Reports the error of the innermost function to the debugger, unless the debugger itself has ended the run.  Does
   nothing if no debugger is attached, or if the error has already passed through a function.  Must be called before the
   function's registers are released. */
void rvm_debugger_failed(rvm_machine *machine, rvm_value failure);
void rvm_debugging_release(rvm_machine *machine);

#endif
