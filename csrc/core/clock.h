/* clock.h: the monotonic clock. */
#ifndef RELVM_CLOCK_H
#define RELVM_CLOCK_H

#include <stdint.h>

/* Returns the time in nanoseconds since an arbitrary point. */
int64_t rvm_clock_now(void);

#endif
