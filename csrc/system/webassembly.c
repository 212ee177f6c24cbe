/* webassembly.c: implements system.h for WebAssembly.  A module has one thread, and memory that only grows. */
#include "system.h"

#ifdef __wasm__
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void *rvm_pages_map(size_t size_bytes) { return calloc(1, size_bytes); }

void rvm_pages_unmap(void *pages, size_t size_bytes) {
  (void)size_bytes;
  free(pages);
}

const void *rvm_path_map(const char *path, int64_t *size_bytes, char reason[RVM_REASON_BYTES]) {
  (void)path, (void)size_bytes;
  strcpy(reason, "WebAssembly cannot map files");
  return NULL;
}

void rvm_path_unmap(const void *bytes, int64_t size_bytes) { (void)bytes, (void)size_bytes; }

int64_t rvm_clock_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int rvm_random_bytes(void *bytes, size_t size_bytes) { return getentropy(bytes, size_bytes) == 0; }

void rvm_mutex_lock(rvm_mutex *mutex) { (void)mutex; }
void rvm_mutex_unlock(rvm_mutex *mutex) { (void)mutex; }
void rvm_thread_yield(void) {}

void rvm_watch_forks(void (*before)(void), void (*in_parent)(void), void (*in_child)(void)) {
  (void)before, (void)in_parent, (void)in_child;
}

/* The bounds of the C stack, which the linker defines. */
extern const char __stack_low[], __stack_high[]; /* NOLINT(bugprone-reserved-identifier) */

size_t rvm_thread_stack(const char **lowest) {
  *lowest = __stack_low;
  return (size_t)((uintptr_t)__stack_high - (uintptr_t)__stack_low);
}

/* ---- native code that is linked with the runtime ---- */

extern const rvm_linked_code relvm_linked_code __attribute__((weak));

rvm_status rvm_library_load(rvm_library *library, const void *bytes, int64_t size_bytes,
                            char reason[RVM_REASON_BYTES]) {
  const rvm_linked_code *linked = &relvm_linked_code;
  if (linked && size_bytes >= (int64_t)sizeof linked->identity &&
      memcmp(linked->identity, bytes, sizeof linked->identity) == 0) {
    library->handle = (void *)linked;
    return RVM_OK;
  }
  strcpy(reason, "the native code of the executable is not part of this WebAssembly module");
  return RVM_UNSUPPORTED;
}

static int compare_symbols(const void *a, const void *b) {
  return strcmp(((const rvm_linked_symbol *)a)->name, ((const rvm_linked_symbol *)b)->name);
}

void *rvm_library_find(const rvm_library *library, const char *symbol) {
  const rvm_linked_code *linked = library->handle;
  const rvm_linked_symbol key = {symbol, NULL};
  const rvm_linked_symbol *found =
      bsearch(&key, linked->symbols, (size_t)linked->symbol_count, sizeof key, compare_symbols);
  void *address = NULL;
  if (found) memcpy(&address, &found->function, sizeof address);
  return address;
}

void rvm_library_close(rvm_library *library) { *library = (rvm_library)RVM_LIBRARY_CLOSED; }
#endif
