/* kernel_host.h: what a run of kernel bytecode needs of its machine. */
#ifndef RELVM_KERNEL_HOST_H
#define RELVM_KERNEL_HOST_H

#include "kernel_program.h"
#include "storage_pool.h"

/* The machine of a run, as far as the run needs it. */
typedef struct rvm_kernel_host {
  rvm_machine *machine;
  rvm_pool *pool;  /* for registers and arrays */
  int32_t threads; /* that parallel loops may use; at most RVM_MAX_THREADS */
  int64_t steps_left; /* of the limit of the run */
  /* Counts work as steps; INTERRUPTED, TIMEOUT or another status ends the run. */
  rvm_status (*spend)(rvm_machine *machine, int64_t cost, rvm_value *error);
  rvm_status (*poll)(rvm_machine *machine, rvm_value *error); /* looks at all limits now */
  int32_t (*is_ending)(rvm_machine *machine); /* on any thread */
  void (*parallel)(rvm_machine *machine, rvm_part part, const void *shared, int64_t count, int64_t grain);
} rvm_kernel_host;

#endif
