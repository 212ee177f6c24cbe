/* decode.h: bytecode as the interpreter runs it: steps, made from verified instructions when an executable is loaded. */
#ifndef RELVM_DECODE_H
#define RELVM_DECODE_H

#include "executable.h"

/* A step is one word for what to do and its operand words.  Operands: d a register, s a register when >= 0, else the literal
   that many places before the end of the literals; f a function of the table; j a jump, in words from the step's first
   word; k a count of s words that follow.
   STEP(name, "operands", "meaning"): the rows of prim_operators.def follow them, twice: with operands of any type, as
   `dss`, and with operands that are known to be of the row's types. */
#define RVM_STEPS(STEP)                                                                          \
  STEP(call, "dfk", "R[d] = F[f](s...)")                                                         \
  STEP(call_builtin, "dfk", "the same of a builtin that calls nothing")                          \
  STEP(copy, "dfk", "the same of copy")                                                          \
  STEP(move, "dfk", "the same of copy, of what is no object into what holds none")               \
  STEP(item, "dfk", "the same of tuple_getitem")                                                 \
  STEP(check_int, "dfk", "the same of check_prim_value_info, of an i64")                         \
  STEP(check_float, "dfk", "the same of an f64")                                                 \
  STEP(check_bool, "dfk", "the same of a bool")                                                  \
  STEP(tail_call, "fk", "return F[f](s...)")                                                     \
  STEP(tail_self, "fkj", "the same of this function, going on at j: its entry checks hold")      \
  STEP(ret, "d", "return R[d]")                                                                  \
  STEP(ret_scalar, "d", "return R[d], which is no object")                                       \
  STEP(go, "j", "pc += j")                                                                       \
  STEP(go_back, "j", "pc += j, j <= 0")                                                          \
  STEP(unless, "dj", "if not R[d]: pc += j")                                                     \
  STEP(unless_bool, "dj", "the same of a bool, j > 0")                                           \
  STEP(reset, "d", "R[d] = nil")

enum rvm_step {
#define STEP(name, operands, meaning) RVM_STEP_##name,
  RVM_STEPS(STEP)
#undef STEP
#define PRIM_OPERATOR(name, function, operands, result, form, fails, meaning) RVM_STEP_any_##name,
#include "prim_operators.def"
#undef PRIM_OPERATOR
#define PRIM_OPERATOR(name, function, operands, result, form, fails, meaning) RVM_STEP_##name,
#include "prim_operators.def"
#undef PRIM_OPERATOR
  RVM_STEP_COUNT
};

/* A bytecode function. */
typedef struct rvm_code {
  const int32_t *steps;
  const int32_t *objects; /* the registers that may hold objects */
  int32_t object_count;
} rvm_code;

/* Makes the steps of all functions: executable->codes and ->literals. */
rvm_status rvm_executable_decode(rvm_executable *executable, rvm_value *error);
/* The 0-based number of the instruction that the step at `at` was made from. */
int64_t rvm_code_instruction(const rvm_code *code, const int32_t *at);

#endif
