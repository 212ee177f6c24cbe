/* cpu.c: the processor asked itself, with no help of the compiler's run-time library: not every compiler has one. */
#include "relvm.h"

#if defined(__x86_64__)
#include <cpuid.h>

static unsigned has(unsigned word, unsigned bits) { return (word & bits) == bits; }

/* The register sets that the system saves: bits 1 and 2 for AVX, 5 to 7 for AVX-512 too. */
static unsigned saved_state(void) {
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

int rvm_cpu_level(void) {
  unsigned a, b, c1, d, b7, c, c81;
  if (!__get_cpuid(1, &a, &b, &c1, &d) || !__get_cpuid(0x80000001u, &a, &b, &c81, &d)) return 1;
  if (!has(c1, bit_SSE3 | bit_SSSE3 | bit_CMPXCHG16B | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT) || !has(c81, bit_LAHF_LM)) return 1;
  if (!has(c1, bit_AVX | bit_FMA | bit_MOVBE | bit_F16C | bit_OSXSAVE) || !has(saved_state(), 0x06)) return 2;
  if (!__get_cpuid_count(7, 0, &a, &b7, &c, &d)) return 2;
  if (!has(b7, bit_AVX2 | bit_BMI | bit_BMI2) || !has(c81, bit_LZCNT)) return 2;
  unsigned avx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL;
  return has(b7, avx512) && has(saved_state(), 0xe6) ? 4 : 3;
}
#else
int rvm_cpu_level(void) { return 0; }
#endif
