/* register_types.h: the types of the registers of bytecode functions, inferred over all functions of an executable.
   predecode.c specializes steps to these types.

   The entry checks of a function are the calls at its start that check the type of a scalar parameter
   (vm.builtin.check_prim_value_info).  After them, the parameter has that type.  Calls of builtins that run no other
   function may be between them. */
#ifndef RELVM_REGISTER_TYPES_H
#define RELVM_REGISTER_TYPES_H

#include "executable.h"

/* The type lattice of registers and results.  NEVER is the bottom element, with which inference starts.  ANY is the top
   element: the value may be an object, or have several types. */
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
  unsigned char *types;   /* for each register of each bytecode function: enum rvm_register_type */
  int64_t *first;         /* per function: index of its first register in `types` */
  int64_t count;          /* number of registers in `types` */
  int changed;            /* whether this round of inference widened a type */
  int results_are_any;    /* whether the results of bytecode functions count as ANY */
} rvm_register_types;

/* Infers the types of all registers.  Fails if there is no memory.  The caller zeroes *types before the call, and frees
   its four arrays afterwards, also on failure. */
rvm_status rvm_register_types_infer(rvm_register_types *types, const rvm_executable *executable, rvm_value *error);

/* Returns the types of the registers of a bytecode function, borrowed. */
static inline unsigned char *rvm_registers_of(const rvm_register_types *types, int32_t function) {
  return types->types + types->first[function];
}

/* Returns the type of a call's argument, given as an argument word.  `registers` has the types of the caller's
   registers. */
enum rvm_register_type rvm_argument_type(const rvm_executable *executable, const unsigned char *registers,
                                         uint32_t word);

/* Returns the type of operand `index` of the scalar operator in row `row` of scalar_operators.def. */
enum rvm_register_type rvm_scalar_operand_type(uint32_t row, uint32_t index);

/* Returns the number of code words of the entry checks with which a function begins, up to the first other instruction.
   Stores in `checked_types` the type that these checks require of each parameter: NEVER if no check is for the
   parameter, ANY if checks require different types. */
uint32_t rvm_entry_checks(const rvm_register_types *types, const rvm_function_record *function,
                          unsigned char *checked_types);

/* Returns whether an argument word denotes a constant with the given tag. */
int rvm_is_constant(const rvm_executable *executable, uint32_t word, int64_t tag);

#endif
