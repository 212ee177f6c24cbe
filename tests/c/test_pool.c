/* test_pool.c: the pool of storages: which released storages it keeps, and how many bytes. */
#include "allocation.h"
#include "check.h"
#include "storage_pool.h"

static rvm_value storage(rvm_pool *pool, int64_t size_bytes) {
  rvm_value value;
  MAKE(value, rvm_storage_new(pool, size_bytes, &value));
  memset(value.as.storage->bytes, 0x5a, (size_t)size_bytes);
  return value;
}

static void a_storage_is_as_asked_for(void) {
  rvm_pool *pool = rvm_pool_new(0);
  const int64_t sizes[] = {0, 1, 63, 64, 100, 1024, 1025, 4096, 100000, 1 << 20};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    for (int again = 0; again < 2; again++) { /* from the system, then from the pool */
      rvm_value value = storage(pool, sizes[i]);
      CHECK_INT(value.as.storage->size_bytes, sizes[i]);
      CHECK_INT((intptr_t)value.as.storage->bytes % RVM_ALIGNMENT, 0);
      rvm_value_release(&value);
    }
  }
  rvm_value error;
  CHECK_FAILS(rvm_storage_new(pool, (int64_t)1 << 60, &error), RVM_OUT_OF_MEMORY, "cannot allocate", error);
  rvm_pool_close(pool);
}

static void a_dead_one_of_that_size_comes_back(void) {
  rvm_pool *pool = rvm_pool_new(0);
  rvm_value first = storage(pool, 1000), other = storage(pool, 5000);
  void *bytes = first.as.storage->bytes;
  rvm_value_release(&first);
  rvm_value second = storage(pool, 1010);
  CHECK(second.as.storage->bytes == bytes);
  rvm_value_release(&other);
  rvm_value_release(&second);
  rvm_pool_close(pool);
}

/* Whatever the order of sizes, the pool holds little more than the maximum that was alive at once. */
static void no_more_is_held_than_was_alive(void) {
  rvm_pool *pool = rvm_pool_new(0);
  rvm_value alive[8] = {0};
  uint32_t seed = 1;
  for (int step = 0; step < 20000; step++) {
    seed = seed * 1664525 + 1013904223;
    rvm_value *place = &alive[seed >> 29];
    rvm_value_release(place);
    if (seed >> 28 & 1) *place = storage(pool, seed >> 8 & 0x3fff);
    rvm_pool_sizes sizes = rvm_pool_measure(pool);
    CHECK(sizes.live_bytes >= 0 && sizes.kept_bytes >= 0);
    CHECK(sizes.live_bytes + sizes.kept_bytes <= sizes.peak_bytes + sizes.peak_bytes / 4);
  }
  for (int i = 0; i < 8; i++) rvm_value_release(&alive[i]);
  CHECK_INT(rvm_pool_measure(pool).live_bytes, 0);
  rvm_pool_close(pool);
}

/* Allocations of alternating sizes soon reuse storages. */
static void turns_settle(void) {
  rvm_pool *pool = rvm_pool_new(0);
  const int64_t sizes[] = {3000000, 3500000, 2200000, 900000, 7000000, 100};
  for (int round = 0; round < 6; round++) {
    if (round == 3) allocations_left = 0;
    rvm_value before = storage(pool, sizes[0]);
    for (size_t i = 1; i < sizeof sizes / sizeof *sizes; i++) {
      rvm_value value = storage(pool, sizes[i]);
      rvm_value_release(&before);
      before = value;
    }
    rvm_value_release(&before);
  }
  allocations_left = -1;
  rvm_pool_close(pool);
}

static void storages_outlive_their_pool(void) {
  rvm_pool *pool = rvm_pool_new(0);
  rvm_value some[3] = {storage(pool, 10), storage(pool, 20), storage(pool, 10)};
  rvm_value_release(&some[1]);
  rvm_pool_close(pool);
  CHECK_INT(some[0].as.storage->bytes[9], 0x5a);
  rvm_value_release(&some[0]);
  rvm_value_release(&some[2]);
}

/* If the system has no more memory, the pool first releases the storages that it keeps. */
static void what_is_kept_is_no_loss(void) {
  rvm_pool *pool = rvm_pool_new(0);
  rvm_value small = storage(pool, 1000), large = storage(pool, 100000), value;
  rvm_value_release(&small);
  rvm_value_release(&large);
  allocations_left = 0;
  MAKE(value, rvm_storage_new(pool, 20000, &value));
  allocations_left = -1;
  CHECK_INT(rvm_pool_measure(pool).kept_bytes, 0);
  rvm_value_release(&value);
  rvm_pool_close(pool);
}

/* The storages of a zeroed pool hold no old contents of memory. */
static void a_zeroed_pool_shows_nothing_old(void) {
  enum { BYTES = 5000 };
  void *before[64];
  for (int i = 0; i < 64; i++) memset(before[i] = malloc(BYTES + 256), 0x5a, BYTES + 256);
  for (int i = 0; i < 64; i++) free(before[i]);
  rvm_pool *pool = rvm_pool_new(1);
  for (int i = 0; i < 8; i++) {
    rvm_value value;
    MAKE(value, rvm_storage_new(pool, BYTES, &value));
    int64_t nonzero = 0;
    for (int k = 0; k < BYTES; k++) nonzero += value.as.storage->bytes[k] != 0;
    CHECK_INT(nonzero, 0);
    rvm_pool_trim(pool);
    before[i] = value.as.object;
  }
  for (int i = 0; i < 8; i++) {
    rvm_value value = {.tag = RVM_TAG_STORAGE, .as.object = before[i]};
    rvm_value_release(&value);
  }
  rvm_pool_close(pool);
}

int main(void) {
  a_zeroed_pool_shows_nothing_old();
  a_storage_is_as_asked_for();
  a_dead_one_of_that_size_comes_back();
  no_more_is_held_than_was_alive();
  turns_settle();
  storages_outlive_their_pool();
  what_is_kept_is_no_loss();
  return CHECK_RESULT();
}
