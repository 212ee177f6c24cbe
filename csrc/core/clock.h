/* clock.h: the monotonic clock. */
#ifndef RELVM_CLOCK_H
#define RELVM_CLOCK_H

#include <stdint.h>

int64_t rvm_clock_now(void); /* in nanoseconds */

#endif
