/* register_types.h: the types that the registers of bytecode functions have, inferred over all functions of an
   executable.  predecode.c specializes steps to them. */
#ifndef RELVM_REGISTER_TYPES_H
#define RELVM_REGISTER_TYPES_H

#include "executable.h"

/* The type lattice of registers and results: NEVER is the bottom element, where inference starts, and ANY the top, a
   value that may be an object or have several types. */
enum rvm_register_type {
  RVM_REGISTER_NEVER,
  RVM_REGISTER_INT,
  RVM_REGISTER_FLOAT,
  RVM_REGISTER_BOOL,
  RVM_REGISTER_ANY
};

/* The classes of functions that the decoder distinguishes; for builtins, the column `decoded` of builtins.def. */
enum rvm_function_class {
  RVM_CLASS_OTHER,
  RVM_CLASS_BYTECODE,
  RVM_CLASS_KERNEL,
  RVM_CLASS_PLAIN,
  RVM_CLASS_INVOKE,
  RVM_CLASS_HOST,
  RVM_CLASS_COPY,
  RVM_CLASS_ITEM,
  RVM_CLASS_TRUTH,
  RVM_CLASS_DIM,
  RVM_CLASS_CHECK,
  RVM_CLASS_CHECK_TENSOR
};

typedef struct rvm_register_types {
  const rvm_executable *executable;
  unsigned char *classes; /* per function: enum rvm_function_class */
  unsigned char *results; /* per function: enum rvm_register_type */
  unsigned char *types;   /* per register of all bytecode functions: enum rvm_register_type */
  int64_t *first;         /* per function: index of its first register in `types` */
  int64_t count;          /* of `types` */
  int changed;            /* whether this round of inference widened a type */
  int settled;            /* results of bytecode functions count as ANY */
} rvm_register_types;

/* Infers the types of all registers, which also hold if an instrument skips calls.  Fails if there is no memory.  The
   caller zeroes *types before the call, and frees its four arrays afterwards, also on failure. */
rvm_status rvm_register_types_infer(rvm_register_types *types, const rvm_executable *executable, rvm_value *error);

/* Returns the types of the registers of a bytecode function, borrowed. */
static inline unsigned char *rvm_registers_of(const rvm_register_types *types, int32_t function) {
  return types->types + types->first[function];
}

/* Returns the type of an argument of a call.   registers: the types of the caller's registers. */
enum rvm_register_type rvm_argument_type(const rvm_executable *executable, const unsigned char *registers,
                                         uint32_t word);

/* Returns the type of operand `index` of a scalar operator.   row: its row in scalar_operators.def. */
enum rvm_register_type rvm_scalar_operand_type(uint32_t row, uint32_t index);

/* Returns the end of a function's entry checks in code words.  Stores in `checked` the type that they require of each
   parameter: NEVER if there is no check, ANY if checks differ. */
uint32_t rvm_entry_checks(const rvm_register_types *types, const rvm_function_record *function, unsigned char *checked);

/* Returns whether an argument is a constant with a tag. */
int rvm_is_constant(const rvm_executable *executable, uint32_t word, int64_t tag);

#endif
