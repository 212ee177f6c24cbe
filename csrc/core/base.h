/* base.h: memory allocation, allocation budgets and overflow-checked arithmetic on sizes.  The runtime allocates
   through these functions, except in csrc/python, csrc/system and csrc/webassembly. */
#ifndef RELVM_BASE_H
#define RELVM_BASE_H

#include "relvm.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "executables are little-endian and used in place: relvm needs a little-endian processor"
#endif

#define RVM_ALIGNMENT 64 /* alignment of sections, tensors and storages, in bytes */

#if SIZE_MAX < UINT64_MAX && !defined(__wasm__)
#error "relvm needs a 64-bit processor, or WebAssembly"
#endif

/* The largest size of an object, so that adding headers and rounding up cannot overflow size_t. */
#if SIZE_MAX < UINT64_MAX
#define RVM_LARGEST_BYTES ((int64_t)INT32_MAX - 0xffff)
#else
#define RVM_LARGEST_BYTES ((int64_t)1 << 56)
#endif

/* Allocate and free a block.  The allocators return NULL if there is no memory or the budget is exhausted.  A size
   of 0 is valid. */
void *rvm_allocate(size_t size_bytes);
void *rvm_allocate_zeroed(size_t size_bytes);
void rvm_free(void *block);
/* Returns a new block for `capacity` elements (`capacity` >= `count`) that begins with the first `count` elements of
   `array`, and frees `array`.  Returns NULL and leaves `array` alone if there is no memory or the size overflows
   int64. */
void *rvm_grow(void *array, int64_t count, int64_t capacity, size_t element_bytes);

/* Maps zeroed pages, which are committed when first written to.  Returns NULL on failure.  The budget does not count
   these pages. */
void *rvm_map(size_t size_bytes);
void rvm_unmap(void *block, size_t size_bytes);

/* A limit on the bytes that are allocated and not yet freed.  Allocations also cost fuel, the steps that a machine may
   take before it checks the limits of its run (vm/machine.h). */
typedef struct rvm_budget {
  int64_t limit;
  int64_t remaining; /* < 0 if a block was larger than requested, or rvm_budget_relax has lifted the limit */
  int64_t *fuel;     /* decremented by 1 for each 64 bytes that are allocated */
  /* Frees cached memory.  Called before an allocation is refused.  May be NULL. */
  void (*reclaim)(void *host);
  void *host;
  size_t refused;     /* size of the last allocation that the limit applied to if it was refused, else 0 */
  int32_t is_relaxed; /* see rvm_budget_relax */
  int32_t is_sealed;  /* 1 in a real-time run: `limit` is 0, and rvm_out_of_memory names the run */
} rvm_budget;

/* Sets the budget of this thread's allocations; NULL means no limit.  Returns the previous budget.  The budget is
   borrowed. */
rvm_budget *rvm_budget_set(rvm_budget *next);
/* Returns this thread's budget if it refused the last allocation that its limit applied to, else NULL. */
const rvm_budget *rvm_budget_refusing(void);
/* If `relaxed` is 1, this thread's budget counts allocations but refuses none, until a call with 0. */
void rvm_budget_relax(int relaxed);

/* Mark memory as inaccessible, so that AddressSanitizer reports every access, and as accessible again. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define RVM_POISON(start, size_bytes) ASAN_POISON_MEMORY_REGION(start, size_bytes)
#define RVM_UNPOISON(start, size_bytes) ASAN_UNPOISON_MEMORY_REGION(start, size_bytes)
#else
#define RVM_POISON(start, size_bytes) ((void)(size_bytes))
#define RVM_UNPOISON(start, size_bytes) ((void)(size_bytes))
#endif

/* Store the result of int64 arithmetic and return 1.  Return 0 on overflow. */
static inline int rvm_add(int64_t a, int64_t b, int64_t *sum) { return !__builtin_add_overflow(a, b, sum); }
static inline int rvm_subtract(int64_t a, int64_t b, int64_t *difference) {
  return !__builtin_sub_overflow(a, b, difference);
}
static inline int rvm_multiply(int64_t a, int64_t b, int64_t *product) {
#ifdef __wasm__ /* __builtin_mul_overflow calls a library function */
  if (a == (int32_t)a && b == (int32_t)b) {
    *product = a * b;
    return 1;
  }
#endif
  return !__builtin_mul_overflow(a, b, product);
}

/* Rounds up to a multiple of RVM_ALIGNMENT. */
static inline int64_t rvm_align(int64_t size_bytes) { return (size_bytes + RVM_ALIGNMENT - 1) & -RVM_ALIGNMENT; }

#endif
