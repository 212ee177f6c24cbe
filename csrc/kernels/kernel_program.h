/* kernel_program.h: programs of kernel bytecode.

   A program works on buffers: first its tensors, which are the arguments of a call, then its arrays, which are memory
   of the run.  A strip is a sequence of at most RVM_STRIP elements that one instruction processes.  Programs are not
   trusted: verification (kernel_verify.h) checks every operand, and the interpreter compares every access with the
   bounds of its buffer, once for each strip. */
#ifndef RELVM_KERNEL_PROGRAM_H
#define RELVM_KERNEL_PROGRAM_H

#include "kernel_constants.h"
#include "native.h"

enum {
  RVM_NO_REGISTER = 0xffff, /* the operand `mask` of an instruction without a mask */
  RVM_KERNEL_VERSION = 2,
  RVM_KERNEL_OPERANDS = 7, /* most operands of an instruction */
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

/* An array of a program: its offset in the scratch memory of a run, and its size. */
typedef struct rvm_kernel_array {
  uint32_t offset, size_bytes;
} rvm_kernel_array;

/* A loaded program.  The pointers are borrowed from the bytes that the program was read from, which must outlive it. */
typedef struct rvm_kernel_program {
  /* For each tensor: dtype, rank, dimensions.  A dimension d < 0 stands for the size variable -1 - d, which is the
     scalar register -1 - d. */
  const int64_t *tensors;
  const uint64_t *constants; /* initial values of the scalars after the size variables */
  const rvm_kernel_array *arrays;
  const rvm_kernel_instruction *code;
  const uint16_t *arguments; /* the argument table (kernel_verify.c): indices of registers and buffers */
  const char *messages;      /* `message_count` strings, each with its NUL */
  uint32_t tensor_words, input_count, tensor_count, size_count, constant_count;
  uint32_t scalar_count, strip_count, view_count, array_count;
  uint32_t code_count, argument_count, message_count, message_bytes;
  uint32_t scratch_bytes, flags;
} rvm_kernel_program;

enum {
  RVM_KERNEL_EXACT_FMA = 1, /* a flag: fused multiply-adds round once on every processor (docs/determinism.md) */
};

#endif
