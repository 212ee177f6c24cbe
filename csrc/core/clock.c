/* clock.c: reads the monotonic clock. */
#include "clock.h"

#include <time.h>

int64_t rvm_clock_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}
