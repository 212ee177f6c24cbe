/* on_windows.h: included first in the C tests for Windows.  It has what they use of POSIX and C11. */
#ifndef RELVM_TEST_ON_WINDOWS_H
#define RELVM_TEST_ON_WINDOWS_H

#include <stdint.h>
#include <stdlib.h>

/* Windows has no aligned_alloc, because `free` frees the blocks of `malloc` only.  About every fourth block of `malloc`
   is aligned to 64 bytes.  The others remain allocated, because `malloc` would return the same one again. */
static inline void *aligned_alloc(size_t alignment, size_t size_bytes) {
  void *block;
  do block = malloc(size_bytes + alignment);
  while ((uintptr_t)block % alignment != 0);
  return block;
}

#endif
