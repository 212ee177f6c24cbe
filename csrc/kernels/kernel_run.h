/* kernel_run.h: the state of a run of kernel bytecode: registers, buffers, limits, and the parts of parallel loops. */
#ifndef RELVM_KERNEL_RUN_H
#define RELVM_KERNEL_RUN_H

#include <stdatomic.h>

#include "kernel_host.h"
#include "kernel_levels.h"

enum {
  STRIP_BYTES = RVM_STRIP * 8,
  /* Costs between two looks at the limits.  A scalar instruction costs 1; nothing takes more than about half a
     microsecond for each 1 that it costs. */
  RVM_KERNEL_FUEL = 1 << 13,
  /* Bytes of the C stack for the interpreter, the interpreter of a part of a parallel loop, and a micro-kernel. */
  RVM_KERNEL_STACK_BYTES = 40 << 10,
  PARALLEL_COST = 256,  /* of a parallel loop */
  SETUP_REGISTERS = 64, /* registers whose setup costs 1 */
  PART_WORDS = RVM_MAX_THREADS / 64,
};

typedef union rvm_kernel_scalar {
  int64_t i64;
  uint8_t is_true;
  uint64_t bits;
  float f32;
} rvm_kernel_scalar;

/* The state of a run, or of one part of a parallel loop. */
typedef struct rvm_kernel_run {
  const rvm_kernel_program *program;
  const rvm_kernel_level *level;
  const rvm_kernel_host *host;
  rvm_status (*interpret)(struct rvm_kernel_run *state, uint32_t place); /* from an instruction on, to an `end` */
  rvm_value *result;
  rvm_kernel_scalar *scalars;
  char **at;         /* of each register, its first element */
  int64_t *readable; /* of each register: bytes */
  int64_t *writable;
  char **buffers;
  int64_t *buffer_bytes;
  char *strips, *scratch;
  int64_t strip; /* elements of the current strip */
  int64_t rows;  /* of the strip, where it is a block of rows */
  int64_t fuel;
  rvm_status ended;             /* what a look within a micro-kernel gave */
  struct rvm_kernel_loop *loop; /* that this is a part of, or NULL */
  int32_t is_helper;            /* it runs on another thread than the machine's */
} rvm_kernel_run;

/* The state that the parts of a parallel loop share.  result: of a part on the machine's own thread.  failure: the
   first error on another thread. */
typedef struct rvm_kernel_loop {
  rvm_kernel_run *outer; /* the machine's own thread alone changes it */
  const void *thread;
  rvm_value result, failure;
  _Atomic(int32_t) has_failure;
  uint32_t place, first, last, first_array, last_array;
  _Atomic(rvm_status) status;
  _Atomic(int64_t) helped; /* what other threads have spent, and the machine's own does not know yet */
  char *memory;            /* of the parts that run at the same time, `part_bytes` each */
  int64_t part_bytes;
  _Atomic(uint64_t) free_parts[PART_WORDS]; /* a bit for each */
} rvm_kernel_loop;

/* Tells the machine of the fuel that is used, and looks whether the run is to end. */
rvm_status rvm_kernel_refuel(rvm_kernel_run *state);
/* The memory that a run of the program needs for its registers and arrays. */
int64_t rvm_kernel_memory_bytes(const rvm_kernel_program *program);
/* Lays the parts of a run out in `memory`; the buffers of tensors are set by the caller. */
void rvm_kernel_lay_out(rvm_kernel_run *state, char *memory);
/* Addresses are not left in memory that the program gets again. */
void rvm_kernel_forget_addresses(const rvm_kernel_program *program, char *memory);
/* Runs the parallel loop at `place`. */
rvm_status rvm_kernel_run_parallel(rvm_kernel_run *state, uint32_t place);

#endif
