/* predecode.h: bytecode as the interpreter runs it: steps, made from verified instructions when an executable is loaded. */
#ifndef RELVM_PREDECODE_H
#define RELVM_PREDECODE_H

#include "executable.h"

/* A step is one word for what to do and its operand words.  Operands: d a register, s a register when >= 0, else the literal
   that many places before the end of the literals; f a function of the table; j a jump, in words from the step's first
   word; k a count of s words that follow; m a count of pairs that follow, of d and s.
   STEP(name, "operands", "meaning"): the rows of scalar_operators.def follow them: any_ROW, `dss`, for operands of any type; and
   where their types are known to be the row's and the destination holds no objects, rr_ROW and rl_ROW, of two registers and
   of a register and a literal, whose operands are in bytes, not in values.  The i64 comparisons have both once more, for when
   they compute the condition of the `unless` right behind them: they make its jump, too, by its operand. */
#define RVM_STEPS(STEP)                                                                          \
  STEP(call, "dfk", "R[d] = F[f](s...)")                                                         \
  STEP(call_kernel, "dfk", "the same of a kernel")                                               \
  STEP(call_builtin, "dfk", "the same of a builtin that calls nothing")                          \
  STEP(invoke, "dfk", "the same of invoke_closure, with the context and what to call")           \
  STEP(copy, "dfk", "the same of copy")                                                          \
  STEP(move, "dfk", "the same of copy, of what is no object into what holds none")               \
  STEP(item, "dfk", "the same of tuple_getitem")                                                 \
  STEP(check_int, "dfk", "the same of check_prim_value_info, of an i64")                         \
  STEP(check_float, "dfk", "the same of an f64")                                                 \
  STEP(check_bool, "dfk", "the same of a bool")                                                  \
  STEP(check_tensor, "dfk", "the same of check_tensor_info")                                     \
  STEP(tail_call, "jfk", "return F[f](s...), j = 0")                                             \
  STEP(tail_self, "jfk", "the same of this function, pc += j")                                   \
  STEP(again, "jfkm", "the same where no objects are: R[d] = s, one pair after the other")       \
  STEP(ret, "d", "return R[d]")                                                                  \
  STEP(go, "j", "pc += j")                                                                       \
  STEP(go_back, "j", "pc += j, j <= 0")                                                          \
  STEP(unless, "dj", "if not R[d]: pc += j")                                                     \
  STEP(unless_bool, "dj", "the same of a bool, j > 0")                                           \
  STEP(reset, "d", "R[d] = nil")

/* The words of a step by name.  Calls, tail calls included, begin alike. */
enum {
  RVM_JUMP = 1,                                                                                /* "j", "jfk", "jfkm" */
  RVM_REGISTER = 1,                                                                            /* "d", "dj" */
  RVM_UNLESS_JUMP = 2, RVM_UNLESS_WORDS = 3,                                                   /* "dj" */
  RVM_CALL_DESTINATION = 1, RVM_CALL_CALLEE = 2, RVM_CALL_COUNT = 3, RVM_CALL_ARGUMENTS = 4,   /* "dfk" */
  RVM_OPERATOR_DESTINATION = 1, RVM_OPERATOR_A = 2, RVM_OPERATOR_B = 3, RVM_OPERATOR_WORDS = 4 /* "dss" */
};

/* In the order of scalar_operators.def. */
#define RVM_COMPARISONS(COMPARISON) \
  COMPARISON(eq_i64) COMPARISON(ne_i64) COMPARISON(lt_i64) COMPARISON(le_i64) COMPARISON(gt_i64) COMPARISON(ge_i64)

enum rvm_step {
#define STEP(name, operands, meaning) RVM_STEP_##name,
  RVM_STEPS(STEP)
#undef STEP
#define SCALAR_OPERATOR(name, function, operands, result, form, fails, meaning) RVM_STEP_any_##name,
#include "scalar_operators.def"
#undef SCALAR_OPERATOR
#define SCALAR_OPERATOR(name, function, operands, result, form, fails, meaning) RVM_STEP_rr_##name,
#include "scalar_operators.def"
#undef SCALAR_OPERATOR
#define SCALAR_OPERATOR(name, function, operands, result, form, fails, meaning) RVM_STEP_rl_##name,
#include "scalar_operators.def"
#undef SCALAR_OPERATOR
#define COMPARISON(name) RVM_STEP_unless_rr_##name,
  RVM_COMPARISONS(COMPARISON)
#undef COMPARISON
#define COMPARISON(name) RVM_STEP_unless_rl_##name,
  RVM_COMPARISONS(COMPARISON)
#undef COMPARISON
  RVM_STEP_COUNT
};

/* Steps have at most so many words for each word of the instructions that they are made from. */
enum { RVM_STEP_WORDS_FOR_A_WORD = 3 };

/* A call of a bytecode function and a jump back count as one of the machine's steps for each so many words that they may lead over,
   so that long code is work, too.  A power of two. */
enum { RVM_WORDS_FOR_A_STEP = 64 };

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
/* And the step made from instruction `index` of a bytecode function; NULL: it has none. */
const int32_t *rvm_code_step(const rvm_executable *executable, int32_t function, int64_t index);

#endif
