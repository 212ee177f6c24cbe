/* memory.c: malloc, calloc and free with a limit, for code that is linked with --wrap.  A program may request any
   amount of memory; here, allocations fail early. */
#include <malloc.h>
#include <stdlib.h>

#include "base.h"
#include "fuzz.h"

int64_t fuzz_live_blocks;
int64_t fuzz_bytes_left = FUZZ_NO_LIMIT;
int64_t fuzz_allowed_left = -1;

void *__real_calloc(size_t count, size_t size_bytes);
void __real_free(void *block);
void *__wrap_malloc(size_t size_bytes);
void *__wrap_calloc(size_t count, size_t size_bytes);
void __wrap_free(void *block);

/* Zeroes the memory, so that two runs of one input are identical. */
void *__wrap_calloc(size_t count, size_t size_bytes) {
  if (fuzz_allowed_left >= 0 && fuzz_allowed_left-- == 0) return NULL;
  if (size_bytes > 0 && count > (uint64_t)fuzz_bytes_left / size_bytes) return NULL;
  void *block = __real_calloc(count, size_bytes);
  if (!block) return NULL;
  fuzz_bytes_left -= (int64_t)malloc_usable_size(block);
  fuzz_live_blocks++;
  return block;
}

void *__wrap_malloc(size_t size_bytes) { return __wrap_calloc(1, size_bytes); }

void __wrap_free(void *block) {
  if (!block) return;
  fuzz_bytes_left += (int64_t)malloc_usable_size(block);
  fuzz_live_blocks--;
  __real_free(block);
}

void *fuzz_aligned(size_t size_bytes) {
  void *block;
  return posix_memalign(&block, RVM_ALIGNMENT, size_bytes) ? NULL : block;
}

void fuzz_aligned_free(void *block) { __real_free(block); }
