/* generator.h: well-typed code for a function of an executable that is there. */
#ifndef RELVM_FUZZ_GENERATOR_H
#define RELVM_FUZZ_GENERATOR_H

#include "executable.h"
#include "fuzz.h"

typedef struct fuzz_constant {
  uint32_t tag, dtype;  /* dtype: of a tensor's elements */
  uint32_t dtype_value; /* of a constant that is a dtype */
} fuzz_constant;

/* What the code of a function may name. */
typedef struct fuzz_program {
  const rvm_function_record *functions;
  const int32_t *builtins; /* of each function: its row in builtins.def, or -1 */
  uint32_t function_count;
  const fuzz_constant *constants;
  uint32_t constant_count;
} fuzz_program;

/* The row of builtins.def that has the name, or -1. */
int32_t fuzz_builtin_of(const char *name, size_t size_bytes);

/* Writes at most `most` words, at least 64, into `words`.  Returns how many, 0 where the program has too little to
   name;
   `*registers` is how many registers the code uses. */
uint32_t fuzz_generate(fuzz_random *random, const fuzz_program *program, uint32_t function, uint32_t *words,
                       uint32_t most, uint32_t *registers);

#endif
