/* verify.h: the verification of bytecode.  The interpreter runs verified bytecode without checking operands and
   jumps. */
#ifndef RELVM_VERIFY_H
#define RELVM_VERIFY_H

#include "executable.h"

/* Verifies every bytecode function.  Instructions must be complete, operands in range, and calls must pass as many
   arguments as the callee has parameters, unless it accepts any number.  Jumps must go to instructions of the same
   function, and control must not fall off its end.  No register may be read unless it has been written on every path;
   `reset` makes a register unwritten.  Fails with BAD_EXECUTABLE, or with UNSUPPORTED if verification exceeds its
   limits. */
rvm_status rvm_executable_verify(rvm_executable *executable, rvm_value *error);

/* Returns the number of words of the instruction at `code`, or 0 if the opcode is unknown or the instruction needs
   more than `available` words.  `available` is at least 1. */
uint32_t rvm_instruction_words(const uint32_t *code, uint32_t available);

/* Returns the operand letters of an opcode (opcodes.def). */
const char *rvm_opcode_operands(uint32_t opcode);

#endif
