#include "allocation.h"

long allocations_left = -1;

int test_allocation_fails(void);

/* allocation.c: the hook that the runtime calls before each allocation (RVM_ALLOCATION_FAILS in csrc/core/base.c). */
int test_allocation_fails(void) {
  if (allocations_left < 0) return 0;
  return allocations_left-- == 0;
}
