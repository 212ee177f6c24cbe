/* fuzz.h: what the parts of the fuzzer of executables share.  harness.c runs one input, mutator.c changes one, and
   driver.c is the loop around both; libFuzzer may take its place. */
#ifndef RELVM_FUZZ_H
#define RELVM_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "relvm.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size_bytes, size_t most_bytes, unsigned int seed);

/* ---- random numbers: the same ones from the same state ---- */

typedef uint64_t fuzz_random;

static inline uint64_t fuzz_next(fuzz_random *random) { /* SplitMix64 (Steele, Lea and Flood, 2014) */
  uint64_t x = *random += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* Whether the mutator only writes well-typed code (generator.c); else it does in one of eight. */
extern int fuzz_generates;

/* From 0 to count - 1; 0 where count is 0. */
static inline uint32_t fuzz_below(fuzz_random *random, uint64_t count) {
  return count ? (uint32_t)(fuzz_next(random) % count) : 0;
}

/* A number that programs trip over. */
int64_t fuzz_number(fuzz_random *random);

/* ---- arguments.c ---- */

/* A value for parameter `index` of a function, mostly one that its first checks accept. */
rvm_value fuzz_argument(fuzz_random *random, const rvm_executable *executable, const rvm_machine *machine,
                        int32_t function, int32_t index);
/* Any value, owned; tuples and lists nest at most `depth` deep. */
rvm_value fuzz_value(fuzz_random *random, const rvm_machine *machine, int32_t function_count, int depth);

/* ---- memory.c: the allocator of all that is linked with --wrap=malloc,calloc,free ---- */

void *fuzz_aligned(size_t size_bytes); /* RVM_ALIGNMENT; not counted */
void fuzz_aligned_free(void *block);
#define FUZZ_NO_LIMIT (INT64_MAX / 2)
extern int64_t fuzz_live_blocks;  /* allocated and not freed */
extern int64_t fuzz_bytes_left;   /* may still be allocated */
extern int64_t fuzz_allowed_left; /* the allocation after so many good ones fails, once; negative: none does */

/* ---- harness.c ---- */

extern int fuzz_in_every_mode; /* whether every input is run in every mode; else one in four is */

typedef struct fuzz_counts {
  int64_t inputs, loaded, machines, calls;
  int64_t refused[RVM_STATUS_COUNT]; /* inputs, by the status of the load */
  int64_t ended[RVM_STATUS_COUNT];   /* calls, by their status */
} fuzz_counts;

extern fuzz_counts fuzz_counted;

#endif
