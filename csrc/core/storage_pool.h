/* storage_pool.h: the memory of storages.  A machine reuses the memory of dead storages for new ones. */
#ifndef RELVM_STORAGE_POOL_H
#define RELVM_STORAGE_POOL_H

#include "base.h"

typedef struct rvm_pool rvm_pool;

/* A block of memory that tensors are placed in; `bytes` is RVM_ALIGNMENT-aligned. */
struct rvm_storage {
  rvm_object base;
  int32_t class;     /* of the block's size */
  int32_t is_shared; /* the host has, or had, a tensor in it: rvm_tensor_share */
  int64_t size_bytes;
  unsigned char *bytes;
  rvm_pool *pool;
  rvm_storage *next; /* in a list of the pool's */
};

typedef struct rvm_pool_sizes {
  int64_t live_bytes, kept_bytes; /* of storages, and of what is kept for more */
  int64_t peak_bytes; /* the most that was ever live; live and kept together never exceed that and a quarter */
} rvm_pool_sizes;

/* is_zeroed: memory from the system is zeroed, so that nobody reads what was in it before. */
rvm_pool *rvm_pool_new(int32_t is_zeroed); /* NULL: no memory */
/* Frees what is kept. */
void rvm_pool_trim(rvm_pool *pool);
/* Ends the use of a pool.  Storages that are still alive stay so. */
void rvm_pool_close(rvm_pool *pool);
rvm_pool_sizes rvm_pool_measure(rvm_pool *pool);

/* The bytes are zeros, or those of an earlier storage of the pool, where it is zeroed; else anything.  These and the
   three above: one thread at a time. */
rvm_status rvm_storage_new(rvm_pool *pool, int64_t size_bytes, rvm_value *result);
/* Frees a storage without references.  Any thread can call this. */
void rvm_storage_free(rvm_storage *storage);

#endif
