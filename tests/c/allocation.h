/* allocation.h: makes an allocation of the runtime fail. */
#ifndef RELVM_TEST_ALLOCATION_H
#define RELVM_TEST_ALLOCATION_H

/* The number of allocations that succeed before one fails.  Negative if none fails. */
extern long allocations_left;

#endif
