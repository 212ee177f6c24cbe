/* fuzz.h: declarations that the parts of the executable fuzzer share.  harness.c runs one input, mutator.c mutates one,
   and driver.c is the loop around both; libFuzzer can replace the driver. */
#ifndef RELVM_FUZZ_H
#define RELVM_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "relvm.h"

/* Reports a violation, and aborts. */
#define EXPECT(condition)                                                     \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      abort();                                                                \
    }                                                                         \
  } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size_bytes, size_t most_bytes, unsigned int seed);

/* ---- random numbers: the same sequence from the same state ---- */

typedef uint64_t fuzz_random;

static inline uint64_t fuzz_next(fuzz_random *random) { /* SplitMix64 (Steele, Lea and Flood, 2014) */
  uint64_t x = *random += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* 1 if the mutator only writes well-typed code (generator.c); otherwise it does so in one of eight mutations. */
extern int fuzz_generates;

/* Returns a number from 0 to count - 1, or 0 if count is 0. */
static inline uint32_t fuzz_below(fuzz_random *random, uint64_t count) {
  return count ? (uint32_t)(fuzz_next(random) % count) : 0;
}

/* Returns a number that is likely to expose faults, such as a boundary value. */
int64_t fuzz_number(fuzz_random *random);

/* ---- arguments.c ---- */

/* Returns an owned value for parameter `index` of a function: usually one that the function's first checks accept. */
rvm_value fuzz_argument(fuzz_random *random, const rvm_executable *executable, const rvm_machine *machine,
                        int32_t function, int32_t index);
/* Returns any value, owned.  Tuples and lists are nested at most `depth` deep. */
rvm_value fuzz_value(fuzz_random *random, const rvm_machine *machine, int32_t function_count, int depth);

/* ---- memory.c: the allocator of all code that is linked with --wrap=malloc,calloc,free ---- */

void *fuzz_aligned(size_t size_bytes); /* aligned to RVM_ALIGNMENT; not counted */
void fuzz_aligned_free(void *block);
#define FUZZ_NO_LIMIT (INT64_MAX / 2)
extern int64_t fuzz_live_blocks;  /* allocated and not freed */
extern int64_t fuzz_bytes_left;   /* bytes that may still be allocated */
extern int64_t fuzz_allowed_left; /* successful allocations before one fails; negative if none fails */

/* ---- harness.c ---- */

extern int fuzz_in_every_mode; /* 1 if every input is run in every mode; otherwise one in four is */

typedef struct fuzz_counts {
  int64_t inputs, loaded, machines, calls;
  int64_t refused[RVM_STATUS_COUNT]; /* inputs, by the status of the load */
  int64_t ended[RVM_STATUS_COUNT];   /* calls, by their status */
} fuzz_counts;

extern fuzz_counts fuzz_counted;

#endif
