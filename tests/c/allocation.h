/* allocation.h: makes allocations of the runtime fail, on purpose. */
#ifndef RELVM_TEST_ALLOCATION_H
#define RELVM_TEST_ALLOCATION_H

/* The allocation after so many good ones fails, once; negative: none does. */
extern long allocations_left;

#endif
