/* kernel_run.h: the state of a run of kernel bytecode: registers, buffers, limits, and the parts of parallel loops.

   A parallel loop runs its iterations in parts.  Each part has its own registers and its own copy of the loop's arrays,
   and shares the other buffers.  Only the machine's own thread, the one inside the machine, may charge fuel to the
   machine.  Other threads, the helpers, add the fuel that they use to `helped`. */
#ifndef RELVM_KERNEL_RUN_H
#define RELVM_KERNEL_RUN_H

#include <stdatomic.h>

#include "kernel_host.h"
#include "kernel_levels.h"

enum {
  STRIP_BYTES = RVM_STRIP * 8,
  /* Fuel between two checks of the limits.  A scalar instruction costs 1.  No instruction takes more than about half a
     microsecond per unit of its cost. */
  RVM_KERNEL_FUEL = 1 << 13,
  /* Bytes of the C stack that a run may need: the interpreter, inside it the interpreter of a part of a parallel loop,
     and inside that a micro-kernel. */
  RVM_KERNEL_STACK_BYTES = 40 << 10,
  PARALLEL_COST = 256,               /* fuel of a parallel loop */
  SETUP_REGISTERS = 64,              /* registers and buffers of a part that are initialized per unit of fuel */
  PART_WORDS = RVM_MAX_THREADS / 64, /* words of a bit set of parts */
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
  int64_t *readable; /* bytes that may be read at the address, per register */
  int64_t *writable; /* bytes that may be written at the address, per register */
  char **buffers;    /* address, per buffer */
  int64_t *buffer_bytes;
  char *strips, *scratch; /* memory of the strip registers and of the arrays */
  int64_t strip;          /* elements in the current strip */
  int64_t rows;           /* rows of the current strip, if it is a block */
  int64_t fuel;
  rvm_status ended;             /* status of the last rvm_kernel_refuel during a micro-kernel */
  struct rvm_kernel_loop *loop; /* if this is a part of a parallel loop, the loop; else NULL */
  int32_t is_helper;            /* 1 if this part runs on another thread than the machine's own */
} rvm_kernel_run;

/* The state that the parts of a parallel loop share. */
typedef struct rvm_kernel_loop {
  rvm_kernel_run *outer;                  /* the run with the loop, which does not change while parts run */
  const void *thread;                     /* identifies the machine's own thread */
  rvm_value result;                       /* the error of a part on the machine's own thread, or NIL */
  rvm_value failure;                      /* the first error of a helper, or NIL */
  _Atomic(int32_t) has_failure;           /* whether a helper has claimed `failure` */
  uint32_t pc;                            /* the `parallel` instruction */
  uint32_t first_register, last_register; /* the scalars for the bounds of a part */
  uint32_t first_private, last_private;   /* the range of arrays of which each part has a copy */
  int64_t spent;                          /* fuel used by parts on the machine's own thread */
  _Atomic(rvm_status) status;             /* status of the last part that failed, or OK */
  _Atomic(int64_t) helped;                /* fuel used by other threads and not yet charged to the machine */
  char *memory;                           /* memory of concurrent parts, `part_bytes` each */
  int64_t part_bytes;
  _Atomic(uint64_t) free_parts[PART_WORDS]; /* bit set of the parts of `memory` that are not in use */
} rvm_kernel_loop;

/* Charges the fuel used so far to the machine, and grants new fuel.  Fails if the run must end.  A helper only adds the
   fuel to `helped`.  It fails if `helped` exceeds the machine's remaining steps, if the run is interrupted or at its
   deadline, or if another part has failed. */
rvm_status rvm_kernel_refuel(rvm_kernel_run *state);
/* Returns the bytes of memory that a run of the program needs for its registers and arrays. */
int64_t rvm_kernel_memory_bytes(const rvm_kernel_program *program);
/* Sets the pointers of `state` to parts of `memory`, and the scalar registers to 0.  Strips stay uninitialized, and
   views cannot be accessed until an instruction sets them.  The caller sets the buffers of the tensors. */
void rvm_kernel_run_init(rvm_kernel_run *state, char *memory);
/* Clears the part of a run's memory that contains addresses.  A later program may get the memory as an uninitialized
   storage, and must not read addresses. */
void rvm_kernel_clear_addresses(const rvm_kernel_program *program, char *memory);
/* Runs the parallel loop of the `parallel` instruction `pc`.  Fails if a part fails or the run must end. */
rvm_status rvm_kernel_run_parallel(rvm_kernel_run *state, uint32_t pc);

#endif
