/* thread_pool.h: threads that share a kernel's loop.  The process has one team of them, made when it is first wanted.
 */
#ifndef RELVM_THREAD_POOL_H
#define RELVM_THREAD_POOL_H

#include "native.h"

/* part(shared, first, last) for parts that make up [0, count), each of `grain` at least but the last, on at most
   `threads` threads, this one among them; returns when all are done.  While another thread has the workers, or where
   the system gives none, this one does it all. */
void rvm_workers_run(int32_t threads, rvm_part part, const void *shared, int64_t count, int64_t grain);

#endif
