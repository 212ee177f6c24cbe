/* simd.h: loops that may run as vectors, where the compiler is called with -fopenmp-simd -DRVM_OPENMP_SIMD: sums are then
   added up in another order. */
#ifndef RELVM_SIMD_H
#define RELVM_SIMD_H

#ifdef RVM_OPENMP_SIMD
#define RVM_PRAGMA(text) _Pragma(#text)
#define RVM_SIMD(clauses) RVM_PRAGMA(omp simd clauses)
#else
#define RVM_SIMD(clauses)
#endif

#endif
