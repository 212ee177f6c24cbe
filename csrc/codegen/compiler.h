/* compiler.h: attributes and pragmas of C compilers that are not part of C99. */
#ifndef RELVM_COMPILER_H
#define RELVM_COMPILER_H

/* RVM_ALIGNED states the alignment of a variable or member in bytes.  RVM_MAY_ALIAS stands after the closing brace of a
   struct; pointers to such a struct can point to memory that is also accessed as another type.  The other macros are
   attributes of functions, and follow `static` or `static inline`. */
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

/* If RVM_COMPACT is defined, the code of the runtime becomes smaller and slower: loops are not unrolled by a
   factor of 2 (RVM_UNROLL_TWICE precedes such a loop), and some functions are not specialized for the values of their
   arguments. */
#ifdef RVM_COMPACT
enum { RVM_IS_COMPACT = 1 };
#else
enum { RVM_IS_COMPACT = 0 };
#endif
#if defined __GNUC__ && !defined RVM_COMPACT
#define RVM_UNROLL_TWICE _Pragma("GCC unroll 2")
#else
#define RVM_UNROLL_TWICE
#endif

/* RVM_OUT_OF_LINE(signature, body) defines a function that is too large to be compiled in each unit that calls it.  The
   units with the kernels of a native library are compiled with -DRVM_OUT_OF_LINE=RVM_DECLARED, and one more unit for
   each header defines its functions (relvm/compiler/toolchain.py).  Elsewhere, each unit defines the functions that it
   calls. */
#define RVM_DECLARED(signature, ...) signature;
#define RVM_DEFINED(signature, ...) \
  signature;                        \
  __attribute__((visibility("hidden"))) signature { __VA_ARGS__ }
#define RVM_DEFINED_HERE(signature, ...) \
  static RVM_UNUSED signature { __VA_ARGS__ }
#ifndef RVM_OUT_OF_LINE
#define RVM_OUT_OF_LINE RVM_DEFINED_HERE
#endif

/* RVM_HAS_FMA: the code may use fused multiply-add instructions for float and double. */
#if defined __FP_FAST_FMAF || defined __FMA__ || defined __ARM_FEATURE_FMA
#define RVM_HAS_FMA
#endif

/* Asks the processor to load the cache line at `address`, which will be read soon, into its L2 cache.  The address may
   be invalid. */
#ifdef __GNUC__
#define RVM_PREFETCH(address) __builtin_prefetch(address, 0, 2)
#else
#define RVM_PREFETCH(address)
#endif

/* RVM_SHUFFLES: the compiler has __builtin_shufflevector. */
#ifdef __has_builtin
#if __has_builtin(__builtin_shufflevector)
#define RVM_SHUFFLES
#endif
#endif

/* Keeps the compiler from computing addresses that depend on `pointer` before this statement.  If it computed them
   earlier, the addresses would occupy registers for a long time. */
#ifdef __GNUC__
#define RVM_OPAQUE(pointer) __asm__("" : "+r"(pointer))
#else
#define RVM_OPAQUE(pointer)
#endif

/* RVM_LOADED states that the vector `value` is loaded here, and RVM_LOADED_FROM that it is loaded from `pointer`
   without an index.  Otherwise gcc for AArch64 loads each vector where it is used, instead of two by one instruction.
   clang does so without being told. */
#if defined __aarch64__ && defined __GNUC__ && !defined __clang__
#define RVM_LOADED(value) __asm__("" : "+w"(value))
#define RVM_LOADED_FROM(pointer) RVM_OPAQUE(pointer)
#else
#define RVM_LOADED(value)
#define RVM_LOADED_FROM(pointer)
#endif

/* Precedes a loop whose iterations the compiler may vectorize: `omp simd` with the given clauses.  A reduction clause
   allows the compiler to reorder a sum.  The macro has an effect only if the compiler is called with -fopenmp-simd
   -DRVM_OPENMP_SIMD. */
#ifdef RVM_OPENMP_SIMD
#define RVM_PRAGMA(text) _Pragma(#text)
#define RVM_SIMD(clauses) RVM_PRAGMA(omp simd clauses)
#else
#define RVM_SIMD(clauses)
#endif

#endif
