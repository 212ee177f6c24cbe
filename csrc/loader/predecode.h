/* predecode.h: bytecode in the form that the interpreter runs.

   When an executable is loaded, each verified instruction becomes one step (steps.def): operands are resolved to
   registers and literals, and the opcode is specialized to what is known of the operands' types (register_types.h).
   Read interpreter.c next. */
#ifndef RELVM_PREDECODE_H
#define RELVM_PREDECODE_H

#include "executable.h"

/* The operand words of each step by name. */
#define STEP(name, operands, names, meaning) \
  typedef struct rvm_step_##name {           \
    int32_t step, RVM_MEMBERS names;         \
  } rvm_step_##name;
#define FAST STEP
#include "steps.def"
#undef STEP

/* The operand words of the steps of scalar operators.  If an operator has only one operand, `right` denotes a literal
   NIL, which is not used. */
typedef struct rvm_step_operator {
  int32_t step, dst, left, right;
} rvm_step_operator;

enum {
  RVM_UNLESS_WORDS = sizeof(rvm_step_unless) / sizeof(int32_t),
  RVM_RESET_WORDS = sizeof(rvm_step_reset) / sizeof(int32_t),
  RVM_CALL_WORDS = sizeof(rvm_step_call) / sizeof(int32_t), /* without its arguments */
  RVM_OPERATOR_WORDS = sizeof(rvm_step_operator) / sizeof(int32_t),
};

/* The comparisons that have an unless_rr and an unless_rl step, in the order of scalar_operators.def. */
#define RVM_COMPARISONS(COMPARISON) \
  COMPARISON(eq_i64) COMPARISON(ne_i64) COMPARISON(lt_i64) COMPARISON(le_i64) COMPARISON(gt_i64) COMPARISON(ge_i64)

/* clang-format off */
enum rvm_step {
#define STEP(name, operands, names, meaning) RVM_STEP_##name,
#include "steps.def"
#undef FAST
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
/* clang-format on */

/* The step of an instruction has at most this many words for each word of the instruction. */
enum { RVM_STEP_WORDS_PER_CODE_WORD = 3 };

/* A call of a bytecode function or a backward jump costs 1 unit of fuel, plus 1 for each RVM_WORDS_PER_FUEL words of
   the function or loop, so that long straight code is charged as well.  A power of two. */
enum { RVM_WORDS_PER_FUEL = 64 };

/* The code of a bytecode function: parts of executable->steps and ->objects. */
typedef struct rvm_code {
  const int32_t *steps;
  const int32_t *objects; /* the registers that may hold objects, in ascending order */
  int32_t object_count;
} rvm_code;

/* Translates all bytecode functions into steps.  Sets executable->codes, ->steps, ->objects and ->literals, which the
   executable owns.  Fails if there is no memory. */
rvm_status rvm_executable_decode(rvm_executable *executable, rvm_value *error);
/* Returns the 0-based number of the instruction that `step`, a step of `code`, was translated from. */
int64_t rvm_code_instruction(const rvm_code *code, const int32_t *step);
/* Returns the step of instruction number `index` >= 0 of a bytecode function, or NULL if there is no such
   instruction. */
const int32_t *rvm_code_step(const rvm_executable *executable, int32_t function, int64_t index);

#endif
