/* kernel_interpreter.h: runs programs of kernel bytecode. */
#ifndef RELVM_KERNEL_INTERPRETER_H
#define RELVM_KERNEL_INTERPRETER_H

#include "kernel_program.h"
#include "storage_pool.h"

/* What a run needs of the machine that it belongs to. */
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

/* Runs it: the tensors are those of its inputs, then those of its outputs. */
rvm_status rvm_kernel_program_run(const rvm_kernel_program *program, const rvm_kernel_host *host, const rvm_value *arguments,
                                  int32_t count, rvm_value *result);

#endif
