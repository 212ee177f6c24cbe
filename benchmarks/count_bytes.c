/* Counts the bytes that malloc, calloc and free hand out and take back, for benchmarks/memory.py (LD_PRELOAD). */
#include <malloc.h>
#include <stdint.h>

/* glibc's own names, so that nothing is looked up while memory is asked for. */
extern void *__libc_malloc(size_t size_bytes);
extern void *__libc_calloc(size_t count, size_t size_bytes);
extern void __libc_free(void *block);

static int64_t now_bytes, most_bytes, calls, large_calls;

static void *counted(void *block) {
  int64_t size_bytes = block ? (int64_t)malloc_usable_size(block) : 0;
  int64_t now = __atomic_add_fetch(&now_bytes, size_bytes, __ATOMIC_RELAXED);
  if (now > most_bytes) most_bytes = now;
  calls++;
  large_calls += size_bytes >= 1024;
  return block;
}

void *malloc(size_t size_bytes) { return counted(__libc_malloc(size_bytes)); }
void *calloc(size_t count, size_t size_bytes) { return counted(__libc_calloc(count, size_bytes)); }
void free(void *block) {
  if (block) __atomic_sub_fetch(&now_bytes, (int64_t)malloc_usable_size(block), __ATOMIC_RELAXED);
  __libc_free(block);
}

/* Counts from here on. */
void count_start(void) { now_bytes = most_bytes = calls = large_calls = 0; }
/* The most bytes held at once since count_start, beyond those held then. */
int64_t count_most_bytes(void) { return most_bytes; }
/* How many blocks were asked for since count_start. */
int64_t count_calls(void) { return calls; }
/* And how many of a kilobyte or more. */
int64_t count_large_calls(void) { return large_calls; }
