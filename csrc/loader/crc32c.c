/* crc32c.c: CRC-32C, the checksum of sections (Castagnoli, reflected polynomial 0x82f63b78), with the instructions
   of the processor if it has them. */
#include "cold.h"

#include <string.h>

#include "cpu.h"
#include "system.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#endif

/* Adds bytes to a checksum, 4 bits at a time with a table.  `crc` and the result are complements of checksums. */
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
#define CRC_TARGET __attribute__((target("sse4.2,crc32")))
#define CRC_WORD(crc, word) ((uint32_t)_mm_crc32_u64(crc, word))
#define CRC_BYTE(crc, byte) _mm_crc32_u8(crc, byte)
#define CRC_IN_HARDWARE() (rvm_cpu_features() >> RVM_CPU_sse4_2 & 1)
#elif defined(__aarch64__)
#define CRC_TARGET __attribute__((target("+crc")))
#define CRC_WORD(crc, word) __crc32cd(crc, word)
#define CRC_BYTE(crc, byte) __crc32cb(crc, byte)
#define CRC_IN_HARDWARE() (rvm_hwcaps() & RVM_HWCAP_CRC32)
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
