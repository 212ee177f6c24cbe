#include "allocation.h"

long allocations_left = -1;

int test_allocation_fails(void);

/* Asked before each allocation (csrc/core/base.c, RVM_ALLOCATION_FAILS). */
int test_allocation_fails(void) {
  if (allocations_left < 0) return 0;
  return allocations_left-- == 0;
}
