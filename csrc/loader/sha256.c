/* sha256.c: SHA-256 (FIPS 180-4). */
#include "cold.h"

#include <string.h>

#include "sha256.h"

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotated(uint32_t word, int bits) { return word >> bits | word << (32 - bits); }

/* Adds one block to `state`, as FIPS 180-4 prescribes. */
static void add_block(uint32_t state[8], const unsigned char *block) {
  uint32_t words[64], v[8];
  for (int i = 0; i < 16; i++)
    words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
               block[4 * i + 3];
  for (int i = 16; i < 64; i++) {
    const uint32_t a = words[i - 15], b = words[i - 2];
    words[i] = words[i - 16] + words[i - 7] + (rotated(a, 7) ^ rotated(a, 18) ^ a >> 3) +
               (rotated(b, 17) ^ rotated(b, 19) ^ b >> 10);
  }
  memcpy(v, state, sizeof v);
  for (int i = 0; i < 64; i++) {
    const uint32_t a = v[0], e = v[4];
    const uint32_t first = v[7] + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + ((e & v[5]) ^ (~e & v[6])) +
                           round_constants[i] + words[i];
    const uint32_t second =
        (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
    memmove(v + 1, v, 7 * sizeof *v);
    v[4] += first;
    v[0] = first + second;
  }
  for (int i = 0; i < 8; i++) state[i] += v[i];
}

void rvm_sha256_start(rvm_sha256 *sha) {
  static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(sha->state, first, sizeof first);
  sha->size_bytes = 0;
}

void rvm_sha256_add(rvm_sha256 *sha, const void *bytes, int64_t size_bytes) {
  const unsigned char *next = bytes;
  int64_t pending = (int64_t)(sha->size_bytes % sizeof sha->block);
  sha->size_bytes += (uint64_t)size_bytes;
  while (size_bytes > 0) {
    const int64_t free = (int64_t)sizeof sha->block - pending, taken = size_bytes < free ? size_bytes : free;
    memcpy(sha->block + pending, next, (size_t)taken);
    next += taken;
    size_bytes -= taken;
    pending = (pending + taken) % (int64_t)sizeof sha->block;
    if (pending == 0) add_block(sha->state, sha->block);
  }
}

void rvm_sha256_finish(rvm_sha256 *sha, unsigned char digest[RVM_SHA256_BYTES]) {
  static const unsigned char padding[64] = {0x80};
  unsigned char bits[8];
  for (int i = 0; i < 8; i++) bits[i] = (unsigned char)(sha->size_bytes * 8 >> (56 - 8 * i));
  /* The last 8 bytes of the last block are the number of bits.  A bit 1 and zeros fill the bytes before them. */
  const int64_t pending = (int64_t)(sha->size_bytes % sizeof sha->block);
  rvm_sha256_add(sha, padding, (pending < 56 ? 56 : 120) - pending);
  rvm_sha256_add(sha, bits, sizeof bits);
  for (int i = 0; i < RVM_SHA256_BYTES; i++) digest[i] = (unsigned char)(sha->state[i / 4] >> (24 - i % 4 * 8));
}
