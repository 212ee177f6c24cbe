/* kernel_levels.c: chooses the level of the element functions and micro-kernels by the features of the processor.

   A build that defines RVM_KERNEL_LEVELS compiles micro_kernels.c for each level in the table below.  On x86-64, it
   also compiles element_functions.c and strip_moves.c for x86-64-v3 and x86-64-v4. */
#include "cold.h"

#include <stdatomic.h>
#include <stddef.h>

#include "compiler.h"
#include "cpu.h"
#include "kernel_levels.h"
#include "selected.h"

#if defined RVM_KERNEL_LEVELS && defined __aarch64__
extern const rvm_micro_kernel rvm_micro_kernels_dotprod[], rvm_micro_kernels_i8mm[];
#elif defined RVM_KERNEL_LEVELS
extern const rvm_element_function rvm_element_functions_v3[], rvm_element_functions_v4[];
extern const rvm_strip_moves rvm_strip_moves_by_size_v3[4], rvm_strip_moves_by_size_v4[4];
extern const rvm_micro_kernel rvm_micro_kernels_v3[], rvm_micro_kernels_v3_vnni[], rvm_micro_kernels_v4[],
    rvm_micro_kernels_v4_vnni[];
#ifdef RVM_AMX_LEVEL
extern const rvm_micro_kernel rvm_micro_kernels_v4_amx[];
#endif
#endif

#ifdef RVM_HAS_FMA
enum { BASE_HAS_FMA = 1 };
#else
enum { BASE_HAS_FMA = 0 };
#endif

/* The levels, the best one first.  The last one runs on every processor. */
static const rvm_kernel_level levels[] = {
#if defined RVM_KERNEL_LEVELS && defined __aarch64__
    {"lse rdma dotprod i8mm", rvm_element_functions, rvm_strip_moves_by_size, rvm_micro_kernels_i8mm, BASE_HAS_FMA},
    {"lse rdma dotprod", rvm_element_functions, rvm_strip_moves_by_size, rvm_micro_kernels_dotprod, BASE_HAS_FMA},
#elif defined RVM_KERNEL_LEVELS
#ifdef RVM_AMX_LEVEL
    {"x86-64-v4 avx512vnni amx-tile amx-int8", rvm_element_functions_v4, rvm_strip_moves_by_size_v4,
     rvm_micro_kernels_v4_amx, 1},
#endif
    {"x86-64-v4 avx512vnni", rvm_element_functions_v4, rvm_strip_moves_by_size_v4, rvm_micro_kernels_v4_vnni, 1},
    {"x86-64-v4", rvm_element_functions_v4, rvm_strip_moves_by_size_v4, rvm_micro_kernels_v4, 1},
    {"x86-64-v3 avxvnni", rvm_element_functions_v3, rvm_strip_moves_by_size_v3, rvm_micro_kernels_v3_vnni, 1},
    {"x86-64-v3", rvm_element_functions_v3, rvm_strip_moves_by_size_v3, rvm_micro_kernels_v3, 1},
#endif
    {"", rvm_element_functions, rvm_strip_moves_by_size, rvm_micro_kernels, BASE_HAS_FMA},
};

const rvm_kernel_level *rvm_kernel_level_within(const char *cpu) {
  if (RVM_IS_SELECTIVE) return levels;
  const rvm_kernel_level *level;
  char missing[128];
  if (cpu && !rvm_cpu_is_known(cpu)) return NULL;
  for (level = levels; *level->cpu; level++)
    if (!rvm_cpu_missing(level->cpu, missing, sizeof missing) && (!cpu || rvm_cpu_includes(cpu, level->cpu))) break;
  return level;
}

const rvm_kernel_level *rvm_kernel_level_here(void) {
  static _Atomic(const rvm_kernel_level *) found;
  const rvm_kernel_level *level = atomic_load_explicit(&found, memory_order_acquire);
  if (level) return level;
  level = rvm_kernel_level_within(NULL);
  atomic_store_explicit(&found, level, memory_order_release);
  return level;
}

#if !defined RVM_HAS_FMA && !defined RVM_WITHOUT_EXACT_FMA
extern const rvm_element_function rvm_element_functions_exact[];
extern const rvm_micro_kernel rvm_micro_kernels_exact[];

const rvm_kernel_level *rvm_kernel_level_exact(const rvm_kernel_level *level) {
  static const rvm_kernel_level exact = {"", rvm_element_functions_exact, rvm_strip_moves_by_size,
                                         rvm_micro_kernels_exact, 1};
  return level->has_fma ? level : &exact;
}
#else
const rvm_kernel_level *rvm_kernel_level_exact(const rvm_kernel_level *level) { return level->has_fma ? level : NULL; }
#endif
