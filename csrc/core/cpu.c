/* cpu.c: detects processor features: on x86-64 with CPUID, and on AArch64 by what the system reports.  It does
   not use __builtin_cpu_supports, because not every compiler has the run-time library behind it. */
#include "cold.h"

#include "cpu.h"

#include <stdatomic.h>
#include <string.h>

#include "system.h"

/* The words that contain feature bits.  Those of CPUID are named after the leaf and the register: A for EAX, B for EBX,
   C for ECX and D for EDX.  Leaf 7 has the subleaves 0 and 1; EXTENDED is leaf 0x80000001.  HWCAP and HWCAP2 are the
   low halves of AT_HWCAP and AT_HWCAP2.  Words of other processors are 0. */
enum { LEAF_1_C, LEAF_7_B, LEAF_7_C, LEAF_7_D, LEAF_7_1_A, LEAF_7_1_D, EXTENDED_C, HWCAP, HWCAP2, WORD_COUNT };

#if defined(__x86_64__)
#include <cpuid.h>

enum { TILE_STATE = 3 << 17 }; /* the bits of XCR0 for the tile registers of AMX */

/* Returns the low half of XCR0, a bit set of the kinds of registers that the operating system saves.  AVX needs bits 1
   and 2.  AVX-512 needs bits 5 to 7 as well.  The bits for tile registers are 0 if this process may not use them. */
static unsigned saved_state(void) {
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & TILE_STATE) == TILE_STATE && rvm_enable_tile_registers() ? low : low & ~(unsigned)TILE_STATE;
}

/* Reads the feature words of CPUID.  Words that the processor does not have keep their value, so the caller sets all to
   0.  Returns the register sets that the operating system saves. */
static unsigned read_words(unsigned words[WORD_COUNT]) {
  unsigned a, b, c, d, leaves;
  if (!__get_cpuid(1, &a, &b, &words[LEAF_1_C], &d)) return 0;
  if (__get_cpuid_count(7, 0, &leaves, &words[LEAF_7_B], &words[LEAF_7_C], &words[LEAF_7_D]) && leaves >= 1)
    __get_cpuid_count(7, 1, &words[LEAF_7_1_A], &b, &c, &words[LEAF_7_1_D]);
  __get_cpuid(0x80000001u, &a, &b, &words[EXTENDED_C], &d);
  return words[LEAF_1_C] & bit_OSXSAVE ? saved_state() : 0;
}

void rvm_cpu_name(char name[RVM_CPU_NAME_BYTES]) {
  unsigned words[12] = {0};
  for (unsigned i = 0; i < 3; i++) {
    unsigned *part = words + 4 * i;
    if (!__get_cpuid(0x80000002u + i, &part[0], &part[1], &part[2], &part[3])) break;
  }
  memcpy(name, words, sizeof words);
  name[sizeof words] = '\0';
  for (size_t length = strlen(name); length && name[length - 1] == ' ';) name[--length] = '\0';
  if (!*name) strcpy(name, "this processor");
}
#else
#if defined(__aarch64__)
static unsigned read_words(unsigned words[WORD_COUNT]) {
  words[HWCAP] = (unsigned)rvm_hwcaps();
  words[HWCAP2] = (unsigned)(rvm_hwcaps() >> 32);
  return 0;
}
#else
static unsigned read_words(unsigned words[WORD_COUNT]) {
  (void)words;
  return 0;
}
#endif

void rvm_cpu_name(char name[RVM_CPU_NAME_BYTES]) { strcpy(name, "this processor"); }
#endif

/* Returns a bit mask of the processor's features.  Bit i is the feature in row i of cpu_features.def. */
static uint64_t read_features(void) {
  unsigned words[WORD_COUNT] = {0};
  const unsigned saved = read_words(words);
  uint64_t features = 0, row = 1;
#define FEATURE(name, option, macro, level, word, bit, state)                      \
  if ((words[word] >> (bit) & 1) && (saved & (state)) == (state)) features |= row; \
  row <<= 1;
#include "cpu_features.def"
#undef FEATURE
  return features;
}

uint64_t rvm_cpu_features(void) {
  /* A cache, because CPUID takes microseconds under a hypervisor.  It holds the complement of the features, so that 0
     means that they have not been read yet. */
  static _Atomic uint64_t cached;
  uint64_t missing = atomic_load_explicit(&cached, memory_order_relaxed);
  if (!missing) atomic_store_explicit(&cached, missing = ~read_features(), memory_order_relaxed);
  return ~missing;
}

enum { HIGHEST_LEVEL = 4 }; /* x86-64-v4 */

static const struct {
  char option[20];
  int level;
} rows[] = {
#define FEATURE(name, option, macro, level, word, bit, state) {option, level},
#include "cpu_features.def"
#undef FEATURE
};

/* Returns the features that a name in a feature list stands for: the feature of a row of cpu_features.def, or all
   features of an x86-64 psABI level (x86-64-v2 to x86-64-v4) and the levels below it.  Returns 0 if the name is
   unknown, or is x86-64. */
static uint64_t features_of_name(const char *name, size_t length) {
  static const char level_prefix[] = "x86-64-v";
  const size_t prefix = sizeof level_prefix - 1;
  int level = length == prefix + 1 && memcmp(name, level_prefix, prefix) == 0 ? name[prefix] - '0' : 0;
  if (level > HIGHEST_LEVEL) level = 0;
  uint64_t features = 0;
  for (int i = 0; i < RVM_CPU_FEATURE_COUNT; i++) {
    const int is_in_level = rows[i].level && rows[i].level <= level;
    const int is_named = strlen(rows[i].option) == length && memcmp(rows[i].option, name, length) == 0;
    if (is_in_level || is_named) features |= (uint64_t)1 << i;
  }
  return features;
}

int rvm_cpu_missing(const char *needed, char *missing, size_t missing_bytes) {
  const uint64_t present = rvm_cpu_features();
  size_t used = 0;
  missing[0] = '\0';
  for (const char *name = needed; *name;) {
    const size_t length = strcspn(name, " ");
    const uint64_t features = features_of_name(name, length);
    const int is_present = features != 0 && (features & ~present) == 0; /* 0 for an unknown name */
    if (length > 0 && !is_present) {
      const size_t separator_bytes = used ? strlen(", ") : 0;
      if (used + separator_bytes + length + 1 > missing_bytes) return 1;
      memcpy(missing + used, ", ", separator_bytes);
      memcpy(missing + used + separator_bytes, name, length);
      missing[used += separator_bytes + length] = '\0';
    }
    name += length + (name[length] == ' ');
  }
  return used > 0;
}

/* Returns the features of a list.  Sets *is_known to whether all of them are known. */
static uint64_t features_of_list(const char *list, int *is_known) {
  static const char lowest[] = "x86-64";
  uint64_t features = 0;
  *is_known = 1;
  for (const char *name = list; *name;) {
    const size_t length = strcspn(name, " ");
    const uint64_t named = features_of_name(name, length);
    const int is_lowest = length == sizeof lowest - 1 && memcmp(name, lowest, length) == 0;
    if (length && !named && !is_lowest) *is_known = 0;
    features |= named;
    name += length + (name[length] == ' ');
  }
  return features;
}

int rvm_cpu_is_known(const char *features) {
  int is_known;
  features_of_list(features, &is_known);
  return is_known;
}

int rvm_cpu_includes(const char *features, const char *needed) {
  int is_known;
  const uint64_t own = features_of_list(features, &is_known), other = features_of_list(needed, &is_known);
  return is_known && !(other & ~own);
}
