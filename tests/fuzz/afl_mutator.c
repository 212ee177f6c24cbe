/* afl_mutator.c: the mutator as a library that AFL++ loads (AFL_CUSTOM_MUTATOR_LIBRARY). */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { MAX_BYTES = 1 << 14 };

typedef struct state {
  fuzz_random random;
  uint8_t bytes[MAX_BYTES];
} state;

void *afl_custom_init(void *afl, unsigned int seed);
void *afl_custom_init(void *afl, unsigned int seed) {
  state *made = malloc(sizeof *made);
  (void)afl;
  if (made) made->random = seed;
  return made;
}

size_t afl_custom_fuzz(void *data, uint8_t *bytes, size_t size_bytes, uint8_t **made, uint8_t *other,
                       size_t other_bytes, size_t most_bytes);
size_t afl_custom_fuzz(void *data, uint8_t *bytes, size_t size_bytes, uint8_t **made, uint8_t *other,
                       size_t other_bytes, size_t most_bytes) {
  state *s = data;
  (void)other, (void)other_bytes;
  *made = s->bytes;
  if (size_bytes > MAX_BYTES) size_bytes = MAX_BYTES;
  memcpy(s->bytes, bytes, size_bytes);
  return LLVMFuzzerCustomMutator(s->bytes, size_bytes, most_bytes < MAX_BYTES ? most_bytes : MAX_BYTES,
                                 (unsigned)fuzz_next(&s->random));
}

void afl_custom_deinit(void *data);
void afl_custom_deinit(void *data) { free(data); }
