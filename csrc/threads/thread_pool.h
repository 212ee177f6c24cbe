/* thread_pool.h: worker threads that execute a kernel's loop in parallel.  The process has one pool, whose threads
   are created on demand. */
#ifndef RELVM_THREAD_POOL_H
#define RELVM_THREAD_POOL_H

#include "native.h"

/* Calls part(shared, first, last) for ranges that partition [0, count), on at most `threads` threads including the
   calling one, and returns when all calls have returned.  Ranges have at least `grain` >= 1 iterations, except the
   last.  The calling thread runs the whole loop if `threads` is 1, the loop is too short for two ranges or for waking
   the workers, another thread is using the workers, or no worker can be created.  May be called from any thread. */
void rvm_workers_run(int32_t threads, rvm_part part, const void *shared, int64_t count, int64_t grain);

#endif
