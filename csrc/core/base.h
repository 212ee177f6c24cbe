/* base.h: memory and checked sizes: what everything else stands on. */
#ifndef RELVM_BASE_H
#define RELVM_BASE_H

#include "relvm.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "executables are little-endian and used in place: relvm needs a little-endian machine"
#endif

#define RVM_ALIGNMENT 64 /* of sections, tensors and storages, in bytes */

/* No object is larger: sizes of whole blocks stay far from overflow. */
#define RVM_LARGEST_BYTES ((int64_t)1 << 56)

/* All memory comes from these.  NULL when there is none; a size of 0 is a size like any other. */
void *rvm_allocate(size_t size_bytes);
void *rvm_allocate_zeroed(size_t size_bytes);
void rvm_free(void *block);
/* A block for `capacity` elements, count or more, that begins with the first `count` of `array`, which is freed.  NULL
   when there is no memory, or int64 has no such size: `array` is as it was. */
void *rvm_grow(void *array, int64_t count, int64_t capacity, size_t element_bytes);

/* Zeroed memory whose pages are there once they are written to, and are the system's again when it is given back; it
   counts towards no limit. */
void *rvm_map(size_t size_bytes);
void rvm_unmap(void *block, size_t size_bytes);

/* What a run may still allocate: at most `left` bytes more than it frees.  What it allocates is work, too. */
typedef struct rvm_budget {
  int64_t most, left; /* left: below 0 where a block was larger than asked for, or nothing was refused */
  int64_t *fuel;      /* 1 less for each 64 bytes */
  /* Asked to free what is only kept for later, where there are not enough left; or NULL. */
  void (*reclaim)(void *host);
  void *host;
  size_t refused; /* the bytes that the last allocation asked for, where they are more than there were; else 0 */
  int32_t refuses_nothing;
} rvm_budget;

/* Sets the budget of this thread's allocations; NULL: no limit.  Returns the previous one. */
rvm_budget *rvm_budget_set(rvm_budget *next);
/* The budget that refused the last allocation; NULL: none did. */
const rvm_budget *rvm_budget_refusing(void);
/* 1: from now on this thread's budget, if any, counts what is allocated and refuses nothing; 0: it does again. */
void rvm_budget_relax(int relaxed);

/* Memory that is kept for later is not to be touched; AddressSanitizer sees to that. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define RVM_POISON(start, size_bytes) ASAN_POISON_MEMORY_REGION(start, size_bytes)
#define RVM_UNPOISON(start, size_bytes) ASAN_UNPOISON_MEMORY_REGION(start, size_bytes)
#else
#define RVM_POISON(start, size_bytes) ((void)(size_bytes))
#define RVM_UNPOISON(start, size_bytes) ((void)(size_bytes))
#endif

/* 0 on overflow, else 1 and the result. */
static inline int rvm_add(int64_t a, int64_t b, int64_t *sum) { return !__builtin_add_overflow(a, b, sum); }
static inline int rvm_subtract(int64_t a, int64_t b, int64_t *difference) {
  return !__builtin_sub_overflow(a, b, difference);
}
static inline int rvm_multiply(int64_t a, int64_t b, int64_t *product) {
  return !__builtin_mul_overflow(a, b, product);
}

static inline int64_t rvm_align(int64_t size_bytes) { return (size_bytes + RVM_ALIGNMENT - 1) & -RVM_ALIGNMENT; }

#endif
