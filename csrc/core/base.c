/* base.c: allocation with a budget for each thread. */
#include "base.h"

#include <stdlib.h>
#include <string.h>

#include "system.h"

/* Tests build with -DRVM_ALLOCATION_FAILS=FUNCTION.  FUNCTION is called before each allocation.  If it returns nonzero,
   the allocation fails. */
#ifdef RVM_ALLOCATION_FAILS
int RVM_ALLOCATION_FAILS(void);
#else
#define RVM_ALLOCATION_FAILS() 0
#endif

static _Thread_local rvm_budget *budget;

rvm_budget *rvm_budget_set(rvm_budget *next) {
  rvm_budget *previous = budget;
  budget = next;
  return previous;
}

static int is_within_budget(size_t size_bytes) {
  return size_bytes == 0 || (budget->remaining > 0 && size_bytes <= (uint64_t)budget->remaining);
}

/* Returns whether an allocation may go ahead.  Reclaims cached memory if the budget is exhausted. */
static int may_allocate(size_t size_bytes) {
  int is_limited = budget && !budget->is_relaxed;
  if (is_limited) budget->refused = 0;
  if (RVM_ALLOCATION_FAILS()) return 0;
  if (!is_limited || is_within_budget(size_bytes)) return 1;
  if (budget->reclaim) budget->reclaim(budget->host);
  if (is_within_budget(size_bytes)) return 1;
  budget->refused = size_bytes;
  return 0;
}

const rvm_budget *rvm_budget_refusing(void) {
  return budget && !budget->is_relaxed && budget->refused > 0 ? budget : NULL;
}

void rvm_budget_relax(int relaxed) {
  if (budget) budget->is_relaxed = relaxed;
}

/* Charges a new block to the budget.  The charge is the block's usable size, which is what rvm_free credits. */
static void *charge(void *block) {
  if (!budget || !block) return block;
  int64_t size_bytes = (int64_t)rvm_block_bytes(block);
  budget->remaining -= size_bytes;
  *budget->fuel -= size_bytes / 64;
  return block;
}

void *rvm_allocate(size_t size_bytes) {
  return may_allocate(size_bytes) ? charge(malloc(size_bytes ? size_bytes : 1)) : NULL;
}

void *rvm_allocate_zeroed(size_t size_bytes) {
  return may_allocate(size_bytes) ? charge(calloc(1, size_bytes ? size_bytes : 1)) : NULL;
}

void rvm_free(void *block) {
  if (budget && block) {
    int64_t size_bytes = (int64_t)rvm_block_bytes(block);
    budget->remaining = size_bytes < budget->limit - budget->remaining ? budget->remaining + size_bytes : budget->limit;
  }
  free(block);
}

void *rvm_grow(void *array, int64_t count, int64_t capacity, size_t element_bytes) {
  int64_t size_bytes;
  if (!rvm_multiply(capacity, (int64_t)element_bytes, &size_bytes)) return NULL;
  void *grown = size_bytes <= RVM_LARGEST_BYTES ? rvm_allocate((size_t)size_bytes) : NULL;
  if (!grown) return NULL;
  if (count > 0) memcpy(grown, array, (size_t)count * element_bytes);
  rvm_free(array);
  return grown;
}

void *rvm_map(size_t size_bytes) { return RVM_ALLOCATION_FAILS() ? NULL : rvm_pages_map(size_bytes); }

void rvm_unmap(void *block, size_t size_bytes) { rvm_pages_unmap(block, size_bytes); }
