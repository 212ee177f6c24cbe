/* verify.h: what must hold of instructions before they may run. */
#ifndef RELVM_VERIFY_H
#define RELVM_VERIFY_H

#include "executable.h"

/* Verifies every bytecode function: each instruction whole, its operands in range and its callee given as many
   arguments as it has parameters; every jump to an instruction of the same function; no way past the last instruction;
   and no register read before it is written on every way there.  A `reset` register counts as not written. */
rvm_status rvm_executable_verify(rvm_executable *executable, rvm_value *error);

/* The words of the instruction at `code`; 0 when it has no such opcode or does not fit into `left` words, which
   are some. */
uint32_t rvm_instruction_words(const uint32_t *code, uint32_t left);

/* Return the letters of an opcode's operands (opcodes.def). */
const char *rvm_opcode_operands(uint32_t opcode);

#endif
