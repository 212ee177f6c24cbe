#include "base.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#endif

/* Tests build with -DRVM_ALLOCATION_FAILS=function: it is asked before each allocation. */
#ifdef RVM_ALLOCATION_FAILS
int RVM_ALLOCATION_FAILS(void);
#else
#define RVM_ALLOCATION_FAILS() 0
#endif

/* ---- memory ---- */

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

/* ---- CRC32C (Castagnoli, reflected polynomial 0x82f63b78) ---- */

static uint32_t crc_by_nibbles(uint32_t crc, const unsigned char *bytes, int64_t size_bytes) {
  static const uint32_t table[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
                                     0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                     0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
  for (int64_t i = 0; i < size_bytes; i++) {
    crc ^= bytes[i];
    crc = crc >> 4 ^ table[crc & 15];
    crc = crc >> 4 ^ table[crc & 15];
  }
  return crc;
}

#if defined(__x86_64__)
#define CRC_TARGET __attribute__((target("sse4.2")))
#define CRC_WORD(crc, word) ((uint32_t)_mm_crc32_u64(crc, word))
#define CRC_BYTE(crc, byte) _mm_crc32_u8(crc, byte)
#define CRC_IN_HARDWARE() (rvm_cpu_features() >> RVM_CPU_sse4_2 & 1)
#elif defined(__aarch64__)
#define CRC_TARGET __attribute__((target("+crc")))
#define CRC_WORD(crc, word) __crc32cd(crc, word)
#define CRC_BYTE(crc, byte) __crc32cb(crc, byte)
#define CRC_IN_HARDWARE() (getauxval(AT_HWCAP) & 1 << 7 /* HWCAP_CRC32 */)
#endif

#ifdef CRC_TARGET
CRC_TARGET static uint32_t crc_by_words(uint32_t crc, const unsigned char *bytes, int64_t size_bytes) {
  for (; size_bytes >= 8; bytes += 8, size_bytes -= 8) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    crc = CRC_WORD(crc, word);
  }
  for (; size_bytes > 0; bytes++, size_bytes--) crc = CRC_BYTE(crc, *bytes);
  return crc;
}
#endif

uint32_t rvm_crc32c(uint32_t crc, const void *bytes, int64_t size_bytes) {
  if (!bytes) return crc;
#ifdef CRC_TARGET
  if (CRC_IN_HARDWARE()) return ~crc_by_words(~crc, bytes, size_bytes);
#endif
  return ~crc_by_nibbles(~crc, bytes, size_bytes);
}
