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
  int32_t has_fma; /* whether fused multiply-adds round once */
} rvm_kernel_level;

/* Returns the best level that this processor supports.  Thread-safe. */
const rvm_kernel_level *rvm_kernel_level_here(void);
/* Returns the best level that this processor supports and that requires only features in `cpu`, a list as for
   rvm_cpu_missing.  NULL allows all features.  Returns NULL if `cpu` names an unknown feature. */
const rvm_kernel_level *rvm_kernel_level_within(const char *cpu);
/* Returns the level whose fused multiply-adds round once and that requires no more than `level`.  Returns NULL if this
   build of the runtime has none (RVM_WITHOUT_EXACT_FMA). */
const rvm_kernel_level *rvm_kernel_level_exact(const rvm_kernel_level *level);

#endif
