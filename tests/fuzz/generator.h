/* generator.h: generates well-typed code for a function of an executable. */
#ifndef RELVM_FUZZ_GENERATOR_H
#define RELVM_FUZZ_GENERATOR_H

#include "executable.h"
#include "fuzz.h"

typedef struct fuzz_constant {
  uint32_t tag, dtype;  /* dtype of a tensor's elements */
  uint32_t dtype_value; /* dtype of a dtype constant */
} fuzz_constant;

/* The functions and constants that the code may use. */
typedef struct fuzz_program {
  const rvm_function_record *functions;
  const int32_t *builtins; /* for each function, its row in builtins.def, or -1 */
  uint32_t function_count;
  const fuzz_constant *constants;
  uint32_t constant_count;
} fuzz_program;

/* Returns the row of a builtin in builtins.def, or -1 if there is none of that name. */
int32_t fuzz_builtin_of(const char *name, size_t size_bytes);

/* Writes code of at most `most` words (at least 64) to `words`, and stores the number of registers that it uses in
 *registers.  Returns the number of words, or 0 if the program has too few functions and constants. */
uint32_t fuzz_generate(fuzz_random *random, const fuzz_program *program, uint32_t function, uint32_t *words,
                       uint32_t most, uint32_t *registers);

#endif
