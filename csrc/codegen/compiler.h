/* compiler.h: attributes and pragmas of C compilers that are not part of C99. */
#ifndef RELVM_COMPILER_H
#define RELVM_COMPILER_H

/* RVM_ALIGNED states the alignment of a variable or member in bytes.  RVM_MAY_ALIAS follows the members of a struct whose
   pointers can point to memory that is also accessed as another type.  The others are attributes of functions, and
   follow `static` or `static inline`. */
#ifdef __GNUC__
#define RVM_ALIGNED(bytes) __attribute__((aligned(bytes)))
#define RVM_MAY_ALIAS __attribute__((may_alias))
#define RVM_ALWAYS_INLINE __attribute__((always_inline, unused))
#define RVM_NOINLINE __attribute__((noinline, unused))
#define RVM_UNUSED __attribute__((unused))
#else
#define RVM_ALIGNED(bytes)
#define RVM_MAY_ALIAS
#define RVM_ALWAYS_INLINE
#define RVM_NOINLINE
#define RVM_UNUSED
#endif

/* Precedes a loop whose iterations the compiler may vectorize: `omp simd` with these clauses.  A reduction clause
   allows the compiler to reorder a sum.  Takes effect if the compiler is called with -fopenmp-simd
   -DRVM_OPENMP_SIMD. */
#ifdef RVM_OPENMP_SIMD
#define RVM_PRAGMA(text) _Pragma(#text)
#define RVM_SIMD(clauses) RVM_PRAGMA(omp simd clauses)
#else
#define RVM_SIMD(clauses)
#endif

#endif
