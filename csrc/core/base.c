#include "base.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Tests build with -DRVM_ALLOCATION_FAILS=function: it is asked before each allocation. */
#ifdef RVM_ALLOCATION_FAILS
int RVM_ALLOCATION_FAILS(void);
#else
#define RVM_ALLOCATION_FAILS() 0
#endif

static _Thread_local rvm_budget *budget;

rvm_budget *rvm_budget_set(rvm_budget *next) {
  rvm_budget *before = budget;
  budget = next;
  return before;
}

static int fits(size_t size_bytes) {
  return size_bytes == 0 || (budget->left > 0 && size_bytes <= (uint64_t)budget->left);
}

static int may_allocate(size_t size_bytes) {
  int counts = budget && !budget->refuses_nothing;
  if (counts) budget->refused = 0;
  if (RVM_ALLOCATION_FAILS()) return 0;
  if (!counts || fits(size_bytes)) return 1;
  if (budget->reclaim) budget->reclaim(budget->host);
  if (fits(size_bytes)) return 1;
  budget->refused = size_bytes;
  return 0;
}

const rvm_budget *rvm_budget_refusing(void) {
  return budget && !budget->refuses_nothing && budget->refused > 0 ? budget : NULL;
}

void rvm_budget_relax(int relaxed) {
  if (budget) budget->refuses_nothing = relaxed;
}

/* A block is as large as the allocator says: so much does freeing it give back. */
static void *charged(void *block) {
  if (!budget || !block) return block;
  int64_t size_bytes = (int64_t)malloc_usable_size(block);
  budget->left -= size_bytes;
  *budget->fuel -= size_bytes / 64;
  return block;
}

void *rvm_allocate(size_t size_bytes) {
  return may_allocate(size_bytes) ? charged(malloc(size_bytes ? size_bytes : 1)) : NULL;
}

void *rvm_allocate_zeroed(size_t size_bytes) {
  return may_allocate(size_bytes) ? charged(calloc(1, size_bytes ? size_bytes : 1)) : NULL;
}

void rvm_free(void *block) {
  if (budget && block) {
    int64_t size_bytes = (int64_t)malloc_usable_size(block);
    budget->left = size_bytes < budget->most - budget->left ? budget->left + size_bytes : budget->most;
  }
  free(block);
}

void *rvm_grow(void *array, int64_t count, int64_t capacity, size_t element_bytes) {
  int64_t size_bytes;
  if (!rvm_multiply(capacity, (int64_t)element_bytes, &size_bytes)) return NULL;
  void *grown = rvm_allocate((size_t)size_bytes);
  if (!grown) return NULL;
  if (count > 0) memcpy(grown, array, (size_t)count * element_bytes);
  rvm_free(array);
  return grown;
}

void *rvm_map(size_t size_bytes) {
  if (RVM_ALLOCATION_FAILS()) return NULL;
  void *block = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return block == MAP_FAILED ? NULL : block;
}

void rvm_unmap(void *block, size_t size_bytes) {
  if (block) munmap(block, size_bytes);
}
