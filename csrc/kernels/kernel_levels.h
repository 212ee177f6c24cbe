/* kernel_levels.h: the element functions, strip moves and micro-kernels, compiled for several levels of processor
   features (kernel_levels.c). */
#ifndef RELVM_KERNEL_LEVELS_H
#define RELVM_KERNEL_LEVELS_H

#include "element_functions.h"
#include "micro_kernels.h"
#include "strip_moves.h"

typedef struct rvm_kernel_level {
  const char *cpu; /* required features, for rvm_cpu_missing */
  const rvm_element_function *functions;
  const rvm_strip_moves *moves;
  const rvm_micro_kernel *micro_kernels;
} rvm_kernel_level;

/* Returns the best level that this processor supports.  Thread-safe. */
const rvm_kernel_level *rvm_kernel_level_here(void);

#endif
