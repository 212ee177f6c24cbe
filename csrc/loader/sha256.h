/* sha256.h: SHA-256 (FIPS 180-4). */
#ifndef RELVM_SHA256_H
#define RELVM_SHA256_H

#include <stdint.h>

enum { RVM_SHA256_BYTES = 32 };

typedef struct rvm_sha256 {
  uint32_t state[8];
  uint64_t size_bytes;     /* number of all bytes added */
  unsigned char block[64]; /* the first size_bytes % 64 bytes are not in `state` yet */
} rvm_sha256;

void rvm_sha256_start(rvm_sha256 *sha);
void rvm_sha256_add(rvm_sha256 *sha, const void *bytes, int64_t size_bytes);
/* Writes the digest of all bytes added.  No bytes may be added afterwards. */
void rvm_sha256_finish(rvm_sha256 *sha, unsigned char digest[RVM_SHA256_BYTES]);

#endif
