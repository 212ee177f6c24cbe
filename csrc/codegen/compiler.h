/* compiler.h: what C99 does not say by itself. */
#ifndef RELVM_COMPILER_H
#define RELVM_COMPILER_H

/* Of a variable or member, in bytes. */
#ifdef __GNUC__
#define RVM_ALIGNED(bytes) __attribute__((aligned(bytes)))
#else
#define RVM_ALIGNED(bytes)
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
