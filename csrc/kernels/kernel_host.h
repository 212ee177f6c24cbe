/* kernel_host.h: the interface between a run of kernel bytecode and its machine. */
#ifndef RELVM_KERNEL_HOST_H
#define RELVM_KERNEL_HOST_H

#include "kernel_program.h"
#include "storage_pool.h"

struct rvm_kernel_run;

/* The parts and functions of the machine that a run of kernel bytecode uses. */
typedef struct rvm_kernel_host {
  rvm_machine *machine;
  const struct rvm_kernel_level *level; /* kernel_levels.h; NULL: the best one of this processor */
  rvm_pool *pool;                       /* allocates registers and arrays */
  int32_t threads;                      /* number of threads of a parallel loop, at most RVM_MAX_THREADS */
  int64_t steps_left;                   /* steps until the limit of the machine's run */
  /* Charges work as steps.  A status other than OK (INTERRUPTED, TIMEOUT, ...) ends the run. */
  rvm_status (*spend)(rvm_machine *machine, int64_t cost, rvm_value *error);
  rvm_status (*poll)(rvm_machine *machine, rvm_value *error); /* checks all limits now */
  int32_t (*is_ending)(rvm_machine *machine); /* whether the run must end; may be called on any thread */
  void (*parallel)(rvm_machine *machine, rvm_part part, const void *shared, int64_t count, int64_t grain);
  /* Called before instruction number `pc`, with the state of the run (kernel_run.h), which is valid during the call.  A
     failure ends the run.  If `threads` is above 1, parallel loops call `observe` on several threads.  NULL if there is
     no observer. */
  rvm_status (*observe)(void *observer, const struct rvm_kernel_run *state, uint32_t pc, rvm_value *error);
  void *observer;
} rvm_kernel_host;

#endif
