/* kernel_host.h: what a run of kernel bytecode needs of its machine. */
#ifndef RELVM_KERNEL_HOST_H
#define RELVM_KERNEL_HOST_H

#include "kernel_program.h"
#include "storage_pool.h"

struct rvm_kernel_run;

/* The machine of a run, as far as the run needs it. */
typedef struct rvm_kernel_host {
  rvm_machine *machine;
  rvm_pool *pool;     /* for registers and arrays */
  int32_t threads;    /* that parallel loops may use; at most RVM_MAX_THREADS */
  int64_t steps_left; /* of the limit of the run */
  /* Counts work as steps; INTERRUPTED, TIMEOUT or another status ends the run. */
  rvm_status (*spend)(rvm_machine *machine, int64_t cost, rvm_value *error);
  rvm_status (*poll)(rvm_machine *machine, rvm_value *error); /* looks at all limits now */
  int32_t (*is_ending)(rvm_machine *machine);                 /* on any thread */
  void (*parallel)(rvm_machine *machine, rvm_part part, const void *shared, int64_t count, int64_t grain);
  /* Called before each instruction, at `place`, with the state of the run (kernel_run.h), which is valid during the
     call.  A status other than OK, with an error, ends the run.  With more than one thread, other threads call it, too.
     NULL: none, at no cost. */
  rvm_status (*observe)(void *observer, const struct rvm_kernel_run *state, uint32_t place, rvm_value *error);
  void *observer;
} rvm_kernel_host;

#endif
