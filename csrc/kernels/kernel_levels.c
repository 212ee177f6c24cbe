/* kernel_levels.c: chooses the level of the element functions and micro-kernels by the features of the processor.

   A build that defines RVM_KERNEL_LEVELS compiles element_functions.c, strip_moves.c and micro_kernels.c for each
   level. */
#include "cold.h"

#include <stdatomic.h>
#include <stddef.h>

#include "cpu.h"
#include "kernel_levels.h"

#ifdef RVM_KERNEL_LEVELS
extern const rvm_element_function rvm_element_functions_v3[], rvm_element_functions_v4[];
extern const rvm_strip_moves rvm_strip_moves_by_size_v3[4], rvm_strip_moves_by_size_v4[4];
extern const rvm_micro_kernel rvm_micro_kernels_v3[], rvm_micro_kernels_v3_vnni[], rvm_micro_kernels_v4[],
    rvm_micro_kernels_v4_vnni[];
#endif

/* The levels, the best one first.  The last one runs on every processor. */
static const rvm_kernel_level levels[] = {
#ifdef RVM_KERNEL_LEVELS
    {"x86-64-v4 avx512vnni", rvm_element_functions_v4, rvm_strip_moves_by_size_v4, rvm_micro_kernels_v4_vnni},
    {"x86-64-v4", rvm_element_functions_v4, rvm_strip_moves_by_size_v4, rvm_micro_kernels_v4},
    {"x86-64-v3 avxvnni", rvm_element_functions_v3, rvm_strip_moves_by_size_v3, rvm_micro_kernels_v3_vnni},
    {"x86-64-v3", rvm_element_functions_v3, rvm_strip_moves_by_size_v3, rvm_micro_kernels_v3},
#endif
    {"", rvm_element_functions, rvm_strip_moves_by_size, rvm_micro_kernels},
};

const rvm_kernel_level *rvm_kernel_level_here(void) {
  static _Atomic(const rvm_kernel_level *) found;
  const rvm_kernel_level *level = atomic_load_explicit(&found, memory_order_acquire);
  if (level) return level;
  char missing[128];
  for (level = levels; *level->cpu && rvm_cpu_missing(level->cpu, missing, sizeof missing); level++) {
  }
  atomic_store_explicit(&found, level, memory_order_release);
  return level;
}
