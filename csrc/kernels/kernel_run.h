/* kernel_run.h: the state of a run of kernel bytecode: registers, buffers, limits, and the parts of parallel loops.

   A parallel loop runs its iterations in parts.  Each part has its own registers and its own copy of the loop's arrays,
   and shares the other buffers.  Only the machine's own thread may spend its fuel; other threads count what they use in
   `helped`. */
#ifndef RELVM_KERNEL_RUN_H
#define RELVM_KERNEL_RUN_H

#include <stdatomic.h>

#include "kernel_host.h"
#include "kernel_levels.h"

enum {
  STRIP_BYTES = RVM_STRIP * 8,
  /* Fuel between two checks of the limits.  A scalar instruction costs 1; no instruction takes more than about half a
     microsecond per unit of its cost. */
  RVM_KERNEL_FUEL = 1 << 13,
  /* Bytes of the C stack for the interpreter, the interpreter of a part of a parallel loop, and a micro-kernel. */
  RVM_KERNEL_STACK_BYTES = 40 << 10,
  PARALLEL_COST = 256,  /* fuel of a parallel loop */
  SETUP_REGISTERS = 64, /* registers that are set up per unit of fuel */
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
  rvm_status (*interpret)(struct rvm_kernel_run *state, uint32_t pc); /* runs from instruction `pc` to an `end` */
  rvm_value *result;
  rvm_kernel_scalar *scalars;
  char **addresses;  /* address of the first element, per register */
  int64_t *readable; /* bytes that may be read at the address, per register; likewise writable */
  int64_t *writable;
  char **buffers;
  int64_t *buffer_bytes;
  char *strips, *scratch;
  int64_t strip; /* elements in the current strip */
  int64_t rows;  /* rows of the current strip, if it is a block */
  int64_t fuel;
  rvm_status ended;             /* status of the last check within a micro-kernel */
  struct rvm_kernel_loop *loop; /* the loop that this is a part of, or NULL */
  int32_t is_helper;            /* 1 if this part runs on another thread than the machine's own */
} rvm_kernel_run;

/* The state that the parts of a parallel loop share.  `result` is the error of a part on the machine's own thread,
   `failure` the first error on another thread. */
typedef struct rvm_kernel_loop {
  rvm_kernel_run *outer; /* changed only by the machine's own thread */
  const void *thread;
  rvm_value result, failure;
  _Atomic(int32_t) has_failure;
  uint32_t pc, first, last, first_array, last_array;
  _Atomic(rvm_status) status;
  _Atomic(int64_t) helped; /* fuel used by other threads and not yet charged to the machine */
  char *memory;            /* memory of concurrent parts, `part_bytes` each */
  int64_t part_bytes;
  _Atomic(uint64_t) free_parts[PART_WORDS]; /* bit set of the parts of `memory` that are not in use */
} rvm_kernel_loop;

/* Charges the fuel used so far to the machine, grants new fuel and checks the limits.  Fails if the run must end.  A
   helper thread cannot charge the machine: it ends when the helpers alone have used the machine's remaining steps. */
rvm_status rvm_kernel_refuel(rvm_kernel_run *state);
/* Returns the bytes of memory that a run of the program needs for its registers and arrays. */
int64_t rvm_kernel_memory_bytes(const rvm_kernel_program *program);
/* Makes the pointers of `state` point into `memory`, and sets the scalar registers to 0.  Strips stay uninitialized,
   and views are inaccessible until they are set.  The caller sets the buffers of tensors. */
void rvm_kernel_run_init(rvm_kernel_run *state, char *memory);
/* Clears the addresses in the memory of a run, which a later program may receive as uninitialized storage. */
void rvm_kernel_clear_addresses(const rvm_kernel_program *program, char *memory);
/* Runs the parallel loop at instruction `pc`. */
rvm_status rvm_kernel_run_parallel(rvm_kernel_run *state, uint32_t pc);

#endif
