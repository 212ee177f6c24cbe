/* kernel_loops.h: macros for files of loops that are compiled for several levels of processor features
   (kernel_levels.c). */
#ifndef RELVM_KERNEL_LOOPS_H
#define RELVM_KERNEL_LOOPS_H

/* The build defines RVM_LEVEL, the suffix of the names that a file defines.  The suffix is empty for the base level. */
#ifndef RVM_LEVEL
#define RVM_LEVEL
#define RVM_IS_BASE_LEVEL
#endif
#define RVM_NAME_OF_LEVEL(name, level) name##level
#define RVM_EXPANDED_NAME(name, level) RVM_NAME_OF_LEVEL(name, level)
#define RVM_OF_LEVEL(name) RVM_EXPANDED_NAME(name, RVM_LEVEL)

/* Tells the compiler that the iterations of the next loop are independent.  This holds if the strips of the loop are
   identical or do not overlap, as in the programs of relvm's compiler.  In other programs, the elements of strips that
   overlap are unspecified, but no access leaves the strips. */
#if defined RVM_EXACT_FMA || defined RVM_SELECTIVE
#define RVM_INDEPENDENT /* the pragma would make clang vectorize even if its options forbid it */
#elif defined __clang__
#pragma clang diagnostic ignored "-Wpass-failed" /* no warning for loops of divisions, which are not vectorized */
#define RVM_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define RVM_INDEPENDENT _Pragma("GCC ivdep")
#endif

#endif
