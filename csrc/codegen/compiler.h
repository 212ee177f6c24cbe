/* compiler.h: attributes and pragmas of the C compiler that C99 has no words for. */
#ifndef RELVM_COMPILER_H
#define RELVM_COMPILER_H

/* The alignment of a variable or member in bytes; attributes of functions, which follow `static` or `static inline`. */
#ifdef __GNUC__
#define RVM_ALIGNED(bytes) __attribute__((aligned(bytes)))
#define RVM_ALWAYS_INLINE __attribute__((always_inline, unused))
#define RVM_NOINLINE __attribute__((noinline, unused))
#define RVM_UNUSED __attribute__((unused))
#else
#define RVM_ALIGNED(bytes)
#define RVM_ALWAYS_INLINE
#define RVM_NOINLINE
#define RVM_UNUSED
#endif

/* Before a loop that may run as vectors, where the compiler is called with -fopenmp-simd -DRVM_OPENMP_SIMD: sums are
   then added up in another order. */
#ifdef RVM_OPENMP_SIMD
#define RVM_PRAGMA(text) _Pragma(#text)
#define RVM_SIMD(clauses) RVM_PRAGMA(omp simd clauses)
#else
#define RVM_SIMD(clauses)
#endif

#endif
