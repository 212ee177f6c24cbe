/* debugger.h: what tells a machine's debugger where a run is. */
#ifndef RELVM_DEBUGGER_H
#define RELVM_DEBUGGER_H

#include "machine.h"

/* A function that a debugger was told of. */
typedef struct rvm_stop {
  const rvm_function *function;
  const rvm_value *registers;
  const int32_t *step; /* of bytecode; NULL: native code or a kernel, at `instruction` */
  int32_t instruction;
  const struct rvm_kernel_run *kernel; /* the run of a kernel, or NULL */
} rvm_stop;

/* Which steps of a function, or instructions of a native one, a run stops before. */
typedef struct rvm_breaks {
  unsigned char *stops;
  int64_t count;
} rvm_breaks;

typedef struct rvm_debugging {
  rvm_debugger debugger;
  rvm_breaks *breaks;                 /* per function */
  rvm_stop *stops;                    /* the functions inside each other, as far as it was told of them */
  int64_t depth, room;                /* of `stops` */
  int32_t ended;                      /* whether it ended the run itself: that failure it is not told of */
  const void *bodies[RVM_STEP_COUNT]; /* where the interpreter jumps for each step */
} rvm_debugging;

/* Before the step at `step` of a bytecode function, or, that being NULL, an instruction of a native one. */
rvm_status rvm_debugger_step(rvm_machine *machine, rvm_stop stop, rvm_value *error);
/* Whether a call of the kernel may stop inside. */
int rvm_debugger_watches_kernel(const rvm_machine *machine, const rvm_function *kernel);
/* Before the instruction at `place` of a kernel, which is the innermost call meanwhile. */
rvm_status rvm_debugger_kernel_step(rvm_machine *machine, const rvm_function *kernel,
                                    const struct rvm_kernel_run *state, uint32_t place, rvm_value *error);
/* After the innermost function failed, before its registers are released. */
void rvm_debugger_failed(rvm_machine *machine, rvm_value failure);
void rvm_debugging_release(rvm_machine *machine);

#endif
