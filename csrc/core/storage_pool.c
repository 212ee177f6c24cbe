/* storage_pool.c: allocates storages from size classes. */
#include "storage_pool.h"

#include <stdatomic.h>

#include "errors.h"

/* There are STEPS size classes for each power of two.  The smallest class has blocks of slightly more than 1 <<
   SMALLEST_LOG2 bytes.  The largest has 1 << LARGEST_LOG2, which is enough for RVM_LARGEST_BYTES and the header of the
   storage. */
enum { STEPS_LOG2 = 3, STEPS = 1 << STEPS_LOG2, SMALLEST_LOG2 = 7, LARGEST_LOG2 = 57 };
enum { CLASSES = (LARGEST_LOG2 - SMALLEST_LOG2) * STEPS };

/* Any thread may free a storage.  While the pool is open, rvm_storage_free pushes the storage onto `returned`.  After
   the pool is closed, rvm_storage_free frees the block and decrements `remaining`.  All other members are accessed only
   by the thread that uses the pool, which moves the whole list `returned` to the free lists at once. */
struct rvm_pool {
  rvm_storage *kept[CLASSES]; /* the free list of each size class */
  int64_t live_count;
  int32_t is_zeroed;
  int32_t mode; /* RVM_POOL_LIMITED, ... */
  rvm_pool_sizes sizes;
  _Atomic(rvm_storage *) returned; /* a list of freed storages, or CLOSED after rvm_pool_close */
  atomic_llong remaining;          /* number of live storages of a closed pool; freeing the last one frees the pool */
};

static rvm_storage closed_mark;
#define CLOSED (&closed_mark)

/* Returns the size of the block for a storage of `size_bytes`, including its header and alignment, and stores the size
   class in *class.  The needed size is rounded up to (STEPS + step) << shift, where 1 <= step <= STEPS. */
static int64_t block_bytes(int64_t size_bytes, int32_t *class) {
  const int64_t smallest = ((int64_t)1 << SMALLEST_LOG2) + 1;
  const int64_t wanted = size_bytes + (int64_t)sizeof(rvm_storage) + RVM_ALIGNMENT;
  const int64_t needed = wanted < smallest ? smallest : wanted;
  const uint64_t last = (uint64_t)(needed - 1); /* offset of the last needed byte */
  int32_t log2 = 63 - __builtin_clzll(last), shift = log2 - STEPS_LOG2;
  *class = (log2 - SMALLEST_LOG2) * STEPS + (int32_t)(last >> shift & (STEPS - 1));
  return (int64_t)((last >> shift) + 1) << shift;
}

static int64_t class_bytes(int32_t class) {
  return (int64_t)(STEPS + class % STEPS + 1) << (class / STEPS + SMALLEST_LOG2 - STEPS_LOG2);
}

/* Adds the block of a freed storage to its free list. */
static void keep(rvm_pool *pool, rvm_storage *storage) {
  int64_t size_bytes = class_bytes(storage->class);
  storage->next = pool->kept[storage->class];
  pool->kept[storage->class] = storage;
  pool->live_count--;
  pool->sizes.live_bytes -= size_bytes;
  pool->sizes.kept_bytes += size_bytes;
}

/* Moves the returned storages to the free lists.  The new value of pool->returned is `emptied`, which is NULL or
   CLOSED. */
static void collect(rvm_pool *pool, rvm_storage *emptied) {
  rvm_storage *storage = atomic_exchange_explicit(&pool->returned, emptied, memory_order_acquire), *next;
  for (; storage; storage = next) {
    next = storage->next;
    keep(pool, storage);
  }
}

static void block_free(rvm_storage *storage) {
  RVM_UNPOISON(storage->bytes, (size_t)storage->size_bytes);
  rvm_free(storage);
}

/* Frees cached blocks, the largest first, until the pool can grow by `size_bytes` without exceeding `limit`, or until
   no cached block is left. */
static void evict(rvm_pool *pool, int64_t size_bytes, int64_t limit) {
  for (int32_t class = CLASSES - 1; class >= 0 && pool->sizes.kept_bytes > 0; class--) {
    while (pool->kept[class]) {
      rvm_storage *storage = pool->kept[class];
      if (pool->sizes.live_bytes + pool->sizes.kept_bytes + size_bytes <= limit) return;
      pool->kept[class] = storage->next;
      pool->sizes.kept_bytes -= class_bytes(class);
      block_free(storage);
    }
  }
}

rvm_pool *rvm_pool_new(int32_t is_zeroed) {
  rvm_pool *pool = rvm_allocate_zeroed(sizeof *pool);
  if (pool) pool->is_zeroed = is_zeroed;
  return pool;
}

void rvm_pool_set_mode(rvm_pool *pool, int32_t mode) { pool->mode = mode; }

void rvm_pool_close(rvm_pool *pool) {
  if (!pool) return;
  collect(pool, CLOSED);
  evict(pool, 0, 0);
  /* Other threads may have decremented `remaining` below 0 since the pool was marked as closed. */
  if (atomic_fetch_add(&pool->remaining, pool->live_count) + pool->live_count == 0) rvm_free(pool);
}

void rvm_pool_trim(rvm_pool *pool) {
  collect(pool, NULL);
  evict(pool, 0, 0);
}

rvm_pool_sizes rvm_pool_measure(rvm_pool *pool) {
  collect(pool, NULL);
  return pool->sizes;
}

/* Returns the number of bytes that live and cached blocks may have together: the peak of the live blocks and a quarter
   more.  Without the quarter, requests of different sizes would evict each other's blocks in every run. */
static int64_t limit_bytes(const rvm_pool *pool) { return pool->sizes.peak_bytes + pool->sizes.peak_bytes / 4; }

/* Allocates a block from the system after freeing cached blocks as needed to stay within the limit. */
static rvm_storage *block_new(rvm_pool *pool, int64_t size_bytes) {
  const int64_t live = pool->sizes.live_bytes + size_bytes;
  if (pool->mode == RVM_POOL_LIMITED) evict(pool, size_bytes, live > limit_bytes(pool) ? live : limit_bytes(pool));
  void *(*allocate)(size_t) = pool->is_zeroed ? rvm_allocate_zeroed : rvm_allocate;
  rvm_storage *storage = allocate((size_t)size_bytes);
  if (storage || pool->sizes.kept_bytes == 0 || pool->mode == RVM_POOL_SEALED) return storage;
  evict(pool, 0, 0);
  return allocate((size_t)size_bytes);
}

/* Returns whether a larger cached block is preferred to a new block of `size_bytes`: if the pool is sealed, or if the
   new block would exceed the limit, so that cached blocks would be freed.  Without this, requests of alternating sizes
   would free and allocate blocks in every run. */
static int prefers_larger(const rvm_pool *pool, int64_t size_bytes) {
  if (pool->mode != RVM_POOL_LIMITED) return pool->mode == RVM_POOL_SEALED;
  return pool->sizes.live_bytes + pool->sizes.kept_bytes + size_bytes > limit_bytes(pool);
}

/* Returns the class from which to take a block of *whole bytes, whose own class is `class`.  This is a larger class
   with a cached block if that is preferred (prefers_larger); *whole then becomes the size of its blocks. */
static int32_t choose_class(const rvm_pool *pool, int32_t class, int64_t *whole) {
  if (pool->kept[class] || !prefers_larger(pool, *whole)) return class;
  int32_t larger = class + 1;
  while (larger < CLASSES && !pool->kept[larger]) larger++;
  if (larger == CLASSES) return class;
  *whole = class_bytes(larger);
  return larger;
}

rvm_status rvm_storage_new(rvm_pool *pool, int64_t size_bytes, rvm_value *result) {
  if (size_bytes > RVM_LARGEST_BYTES)
    return rvm_fail(result, RVM_OUT_OF_MEMORY, "storage: cannot allocate %lld bytes", (long long)size_bytes);
  int32_t class;
  int64_t whole = block_bytes(size_bytes, &class);
  if (!pool->kept[class] && atomic_load_explicit(&pool->returned, memory_order_relaxed)) collect(pool, NULL);
  class = choose_class(pool, class, &whole);
  rvm_storage *storage = pool->kept[class];
  if (storage) {
    RVM_UNPOISON(storage->bytes, (size_t)(whole - ((char *)storage->bytes - (char *)storage)));
    pool->kept[class] = storage->next;
    pool->sizes.kept_bytes -= whole;
  } else if (!(storage = block_new(pool, whole))) {
    return rvm_out_of_memory(result);
  }
  pool->live_count++;
  pool->sizes.live_bytes += whole;
  if (pool->sizes.live_bytes > pool->sizes.peak_bytes) pool->sizes.peak_bytes = pool->sizes.live_bytes;
  *storage = (rvm_storage){.base = {.tag = RVM_TAG_STORAGE, .references = 1},
                           .class = class,
                           .size_bytes = size_bytes,
                           .bytes = (unsigned char *)rvm_align((int64_t)(intptr_t)(storage + 1)),
                           .pool = pool};
  *result = rvm_object_value(&storage->base);
  return RVM_OK;
}

void rvm_storage_free(rvm_storage *storage) {
  rvm_pool *pool = storage->pool;
  RVM_POISON(storage->bytes, (size_t)storage->size_bytes);
  storage->next = atomic_load_explicit(&pool->returned, memory_order_relaxed);
  while (storage->next != CLOSED)
    if (atomic_compare_exchange_weak_explicit(&pool->returned, &storage->next, storage, memory_order_release,
                                              memory_order_relaxed))
      return;
  block_free(storage);
  if (atomic_fetch_sub(&pool->remaining, 1) == 1) rvm_free(pool);
}
