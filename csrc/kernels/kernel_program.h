/* kernel_program.h: kernels as bytecode: the program, its verification and its interpreter.

   A program works on buffers: first the tensors that it is called with, then arrays of its own.  Nothing in it is
   believed before it is checked: verification checks that each operand names what it may, and the interpreter that each
   access is within its buffer, once for a strip of elements. */
#ifndef RELVM_KERNEL_PROGRAM_H
#define RELVM_KERNEL_PROGRAM_H

#include "kernel_constants.h"
#include "native.h"

enum {
  RVM_NO_REGISTER = 0xffff, /* no mask */
  RVM_KERNEL_VERSION = 1,
  RVM_KERNEL_OPERANDS = 7, /* of an instruction, at most */
};

enum rvm_kernel_opcode {
#define KERNEL_OP(name, operands, names, meaning) RVM_KOP_##name,
#include "kernel_opcodes.def"
#undef KERNEL_OP
  RVM_KOP_COUNT
};

typedef struct rvm_kernel_instruction {
  uint16_t op, operands[RVM_KERNEL_OPERANDS];
} rvm_kernel_instruction;

/* The operands of each instruction by name. */
#define RVM_MEMBERS(...) __VA_ARGS__
#define KERNEL_OP(name, operands, names, meaning) \
  typedef struct rvm_kop_##name {                 \
    uint16_t opcode, RVM_MEMBERS names;           \
  } rvm_kop_##name;
#include "kernel_opcodes.def"
#undef KERNEL_OP

/* An array of the program's own: its place in the scratch memory and its size. */
typedef struct rvm_kernel_array {
  uint32_t offset, size_bytes;
} rvm_kernel_array;

/* A loaded program: views into its bytes, which must stay alive. */
typedef struct rvm_kernel_program {
  const int64_t *tensors;    /* for each tensor: dtype, rank, dimensions; a dimension below 0 is -1 - size variable */
  const uint64_t *constants; /* in the scalars behind the sizes */
  const rvm_kernel_array *arrays;
  const rvm_kernel_instruction *code;
  const uint16_t *arguments; /* the argument table: registers, or for an address a buffer and a register */
  const char *messages;      /* `message_count` texts, each with its 0 */
  uint32_t tensor_words, input_count, tensor_count, size_count, constant_count;
  uint32_t scalar_count, strip_count, view_count, array_count;
  uint32_t code_count, argument_count, message_count, message_bytes;
  uint32_t scratch_bytes;
} rvm_kernel_program;

#endif
