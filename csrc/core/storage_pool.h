/* storage_pool.h: memory of storages.  A machine reuses the blocks of freed storages for new ones. */
#ifndef RELVM_STORAGE_POOL_H
#define RELVM_STORAGE_POOL_H

#include "base.h"

typedef struct rvm_pool rvm_pool;

/* A block of memory that holds tensors; `bytes` is RVM_ALIGNMENT-aligned. */
struct rvm_storage {
  rvm_object base;
  int32_t class;     /* size class of the block */
  int32_t is_shared; /* the host has, or had, a tensor in the storage (rvm_tensor_share) */
  int64_t size_bytes;
  unsigned char *bytes;
  rvm_pool *pool;
  rvm_storage *next; /* the next storage in one of the pool's lists */
};

typedef struct rvm_pool_sizes {
  int64_t live_bytes; /* blocks of live storages */
  int64_t kept_bytes; /* blocks kept for reuse */
  int64_t peak_bytes; /* maximum of live_bytes; in mode RVM_POOL_LIMITED, an allocation leaves live_bytes + kept_bytes
                         at most a quarter above it */
} rvm_pool_sizes;

/* Creates a pool.  Returns NULL if there is no memory.  If `is_zeroed` is 1, blocks from the system are zeroed, so that
   their previous contents cannot be read.  Only one thread at a time may call the functions below, except
   rvm_storage_free. */
rvm_pool *rvm_pool_new(int32_t is_zeroed);
/* The modes of a pool.  LIMITED: the pool frees cached blocks that exceed a limit (limit_bytes in storage_pool.c).
   LEARNS: the pool keeps all blocks, unless the system has no memory left.  If it has no block of exactly the right
   class for a request, it takes one from the system, so that repeating the same requests needs no other block.  SEALED:
   if the pool has no block of the right class, it prefers a larger block to one from the system, and frees no
   blocks. */
enum { RVM_POOL_LIMITED, RVM_POOL_LEARNS, RVM_POOL_SEALED };
void rvm_pool_set_mode(rvm_pool *pool, int32_t mode);
/* Frees the blocks kept for reuse. */
void rvm_pool_trim(rvm_pool *pool);
/* Closes the pool.  Live storages stay valid; the last one to be freed frees the pool. */
void rvm_pool_close(rvm_pool *pool);
/* Returns the current sizes.  Storages that any thread has freed are no longer live. */
rvm_pool_sizes rvm_pool_measure(rvm_pool *pool);

/* Creates a storage.  In a zeroed pool, the bytes of the storage are zeros, or those of an earlier storage of the pool.
   In other pools, the bytes are indeterminate. */
rvm_status rvm_storage_new(rvm_pool *pool, int64_t size_bytes, rvm_value *result);
/* Frees a storage without references.  May be called by any thread. */
void rvm_storage_free(rvm_storage *storage);

#endif
