/* test_verify.c: the verifier: instructions that it rejects or accepts, and its running time. */

#include "check.h"
#include "image.h"
#include "scalar_ops.h"

typedef void build_code(image *to);

#define PRIM(to, destination, row, count, ...) WORDS(to, RVM_OP_prim, destination, row, count, __VA_ARGS__)

/* Verifies a program.  Function 0 is make_tuple, 1 is `pair` with exactly two parameters, 2 is the function under test,
   "f(a, b)" with 6 registers, and 3 is `nothing` without parameters. */
static rvm_status verify(build_code *build, rvm_value *error) {
  image program = {0};
  loaded exe;
  image_packed(&program, "vm.builtin.make_tuple");
  image_function(&program, RVM_KIND_packed, "pair", "x y", 0);
  image_int(&program, 3);
  image_bytecode(&program, "f", "a b", 6);
  build(&program);
  image_bytecode(&program, "nothing", "", 1);
  CALL(&program, 0, 0);
  RET(&program, 0);
  rvm_status status = image_load(&program, &exe, error);
  loaded_release(&exe);
  return status;
}

#define ACCEPTED(name) CHECK_OK(verify(name, &error), error)
#define REFUSED(name, text) CHECK_FAILS(verify(name, &error), RVM_BAD_EXECUTABLE, text, error)

static void unknown_opcode(image *to) { WORDS(to, RVM_OP_COUNT); }
static void cut_short(image *to) { WORDS(to, RVM_OP_ret); }
static void cut_in_the_arguments(image *to) { WORDS(to, RVM_OP_call, NONE, 0, 2, R(0)); }
static void vast_argument_count(image *to) { WORDS(to, RVM_OP_call, NONE, 0, UINT32_MAX, R(0)), RET(to, 0); }
static void falls_off(image *to) { CALL(to, 2, 0, R(0)); }
static void falls_off_after_if(image *to) { IF(to, 0, 0); }
static void register_out_of_range(image *to) { RET(to, 6); }
static void negative_register(image *to) { RET(to, NONE); }
static void destination_out_of_range(image *to) { CALL(to, 6, 0), RET(to, 0); }
static void negative_destination(image *to) { CALL(to, (uint32_t)-2, 0), RET(to, 0); }
static void function_out_of_range(image *to) { CALL(to, 2, 4), RET(to, 0); }
static void argument_register_out_of_range(image *to) { CALL(to, 2, 0, R(0), R(6)), RET(to, 0); }
static void argument_register_negative(image *to) { CALL(to, 2, 0, R(-1)), RET(to, 0); }
static void constant_out_of_range(image *to) { CALL(to, 2, 0, C(1)), RET(to, 0); }
static void function_argument_out_of_range(image *to) { CALL(to, 2, 0, F(4)), RET(to, 0); }
static void context_with_payload(image *to) { CALL(to, 2, 0, X + 8), RET(to, 0); }
static void context_second(image *to) { CALL(to, 2, 0, R(0), X), RET(to, 0); }
static void context_to_bytecode(image *to) { CALL(to, 2, 2, X, I(1)), RET(to, 0); }
static void nil_with_payload(image *to) { CALL(to, 2, 0, N + 8), RET(to, 0); }
static void bool_of_two(image *to) { CALL(to, 2, 0, B(2)), RET(to, 0); }
static void unknown_argument_kind(image *to) { CALL(to, 2, 0, 7), RET(to, 0); }
static void too_few_arguments(image *to) { CALL(to, 2, 1, R(0)), RET(to, 0); }
static void too_many_arguments_to_itself(image *to) { CALL(to, 2, 2, R(0), R(0), R(0)), RET(to, 0); }
static void jump_out_backwards(image *to) { GOTO(to, -1); }
static void jump_out_forwards(image *to) { GOTO(to, 2); }
static void jump_into_an_instruction(image *to) { GOTO(to, 3), RET(to, 0); }
static void no_arguments_before_what_looks_like_a_context(image *to) { CALL(to, NONE, 3), RESET(to, 0), RET(to, 1); }
static void no_such_operator(image *to) { PRIM(to, 2, RVM_SCALAR_OP_COUNT, 2, R(0), R(1)), RET(to, 2); }
static void operator_without_destination(image *to) {
  PRIM(to, NONE, RVM_SCALAR_OP_add_i64, 2, R(0), R(1)), RET(to, 0);
}
static void too_few_operands(image *to) { PRIM(to, 2, RVM_SCALAR_OP_add_i64, 1, R(0)), RET(to, 0); }
static void too_many_operands(image *to) { PRIM(to, 2, RVM_SCALAR_OP_neg_i64, 2, R(0), R(1)), RET(to, 0); }
static void function_as_operand(image *to) { PRIM(to, 2, RVM_SCALAR_OP_add_i64, 2, R(0), F(0)), RET(to, 0); }
static void context_as_operand(image *to) { PRIM(to, 2, RVM_SCALAR_OP_add_i64, 2, X, R(0)), RET(to, 0); }
static void nil_as_operand(image *to) { PRIM(to, 2, RVM_SCALAR_OP_neg_i64, 1, N), RET(to, 0); }
static void operand_out_of_range(image *to) { PRIM(to, 2, RVM_SCALAR_OP_add_i64, 2, R(0), R(6)), RET(to, 0); }
static void operand_before_written(image *to) { PRIM(to, 2, RVM_SCALAR_OP_add_i64, 2, R(0), R(3)), RET(to, 0); }
static void if_jumps_out(image *to) { IF(to, 0, 1000), RET(to, 0); }

static void read_before_written(image *to) { RET(to, 2); }
static void condition_before_written(image *to) { IF(to, 3, 3), RET(to, 0); }
static void argument_before_written(image *to) { CALL(to, 2, 0, R(2)), RET(to, 0); }
static void read_after_reset(image *to) { RESET(to, 0), RET(to, 0); }
static void written_on_one_branch(image *to) {
  IF(to, 0, 3 + 4);
  CALL(to, 2, 0);
  RET(to, 2);
}
static void reset_where_it_does_not_jump(image *to) {
  CALL(to, 2, 0);
  IF(to, 0, 3 + 2);
  RESET(to, 2);
  RET(to, 2);
}
/* A loop in which register 2 is written in the first iteration and not in the second. */
static void reset_in_the_loop(image *to) {
  CALL(to, 2, 0);
  IF(to, 2, 3 + 2 + 2);
  RESET(to, 2);
  GOTO(to, -2 - 3);
  RET(to, 0);
}
/* Register 2 turns out to be unwritten only after two loops have been analyzed twice. */
static void reset_in_an_outer_loop(image *to) {
  CALL(to, 2, 0);       /* 0 */
  CALL(to, 3, 0, R(2)); /* 4 */
  IF(to, 0, 3 + 2);     /* 9 */
  GOTO(to, 9 - 12);     /* 12 */
  IF(to, 1, 3 + 4);     /* 14 */
  RESET(to, 2);         /* 17 */
  GOTO(to, 4 - 19);     /* 19 */
  RET(to, 3);           /* 21 */
}

static void plain(image *to) { CALL(to, 2, 0, R(0), R(1), I(-1), C(0), F(2), N, B(0), B(1)), RET(to, 2); }
static void operators(image *to) {
  PRIM(to, 2, RVM_SCALAR_OP_add_i64, 2, R(0), C(0));
  PRIM(to, 2, RVM_SCALAR_OP_neg_i64, 1, I(1));
  PRIM(to, 3, RVM_SCALAR_OP_and_bool, 2, B(1), R(0));
  RET(to, 3);
}
static void ends_with_a_tail_call(image *to) { WORDS(to, RVM_OP_tail_call, 1, 2, R(0), R(1)); }
static void result_ignored(image *to) { CALL(to, NONE, 1, R(0), R(1)), RET(to, 1); }
static void context_first(image *to) { CALL(to, 2, 0, X), RET(to, 2); }
static void written_on_both_branches(image *to) {
  IF(to, 0, 3 + 4 + 2);
  CALL(to, 2, 0);
  GOTO(to, 2 + 4);
  CALL(to, 2, 0);
  RET(to, 2);
}
static void written_where_it_returns(image *to) {
  IF(to, 0, 3 + 4 + 2);
  CALL(to, 2, 0);
  RET(to, 2);
  RET(to, 0);
}
static void written_anew_in_each_round(image *to) {
  CALL(to, 2, 0);
  IF(to, 0, 3 + 4 + 5 + 2 + 2);
  CALL(to, 2, 0);
  CALL(to, 3, 0, R(2));
  RESET(to, 2);
  GOTO(to, -2 - 5 - 4 - 3);
  RET(to, 0);
}
static void loop_entered_at_its_end(image *to) {
  GOTO(to, 2 + 4);
  CALL(to, 2, 0);
  IF(to, 0, 3 + 2);
  GOTO(to, -3 - 4);
  RET(to, 1);
}
static void unreachable_code_reads_anything(image *to) { RET(to, 0), RET(to, 5); }
static void endless(image *to) { GOTO(to, 0); }

/* Checks a function with `count` calls, each of which writes its own register and reads that of the previous call.
   With `branches`, every fourth call is in an if, after which the verifier frees the state of the if.  The states of
   all ifs together would exceed the memory limit of the verifier. */
static void check_long_function(uint32_t count, int branches) {
  image program = {0};
  loaded exe;
  rvm_value error = {0};
  image_packed(&program, "vm.builtin.make_tuple");
  image_bytecode(&program, "long", "x", count + 1);
  for (uint32_t i = 0; i < count; i++) {
    int branch = branches && i % 4 == 3;
    if (branch) IF(&program, 0, 3 + 5 + 2);
    CALL(&program, i + 1, 0, R(i));
    if (branch) GOTO(&program, 2 + 5);
    if (branch) CALL(&program, i + 1, 0, R(i));
  }
  RET(&program, count);
  CHECK_OK(image_load(&program, &exe, &error), error);
  loaded_release(&exe);
}

/* Checks a function of many jumps, each with its own target: forward to a return, or backward to the jump itself.  The
   function has many registers.  The states of the forward targets exceed the memory limit of the verifier; the states
   of the backward targets are copied too often before that. */
static void check_too_many_jumps(int forward, const char *text) {
  enum { JUMPS = 30000 };
  image program = {0};
  loaded exe;
  rvm_value error = {0};
  image_packed(&program, "vm.builtin.make_tuple");
  image_bytecode(&program, "f", "x", (forward ? 5 : 3) * JUMPS);
  for (int32_t i = 0; i < JUMPS; i++) IF(&program, 0, forward ? 3 * (JUMPS - i) + 2 * i : 0);
  for (int32_t i = 0; i < (forward ? JUMPS : 1); i++) RET(&program, 0);
  CHECK_FAILS(image_load(&program, &exe, &error), RVM_UNSUPPORTED, text, error);
  loaded_release(&exe);
}

/* Checks loops whose heads are in the opposite order of their ends: each walk finds for one more head that register 1,
   which is reset at the end, is unwritten. */
static void check_entangled_loops(int32_t count, rvm_status expected, const char *text) {
  image program = {0};
  loaded exe;
  rvm_value error = {0};
  image_packed(&program, "vm.builtin.make_tuple");
  image_bytecode(&program, "f", "x y", 2);
  for (int32_t i = 0; i < count; i++) {
    IF(&program, 0, 3 + 2);
    GOTO(&program, i > 0 ? -(3 + 3 + 2) : 0);
  }
  RESET(&program, 1);
  IF(&program, 0, count > 0 ? -(2 + 3 + 2) : 3);
  RET(&program, 0);
  rvm_status status = image_load(&program, &exe, &error);
  if (expected)
    CHECK_FAILS(status, expected, text, error);
  else
    CHECK_OK(status, error);
  loaded_release(&exe);
}

int main(void) {
  rvm_value error = {0};
  REFUSED(unknown_opcode, "function f, instruction 0: opcode 7 is unknown");
  REFUSED(cut_short, "or the instruction is truncated");
  REFUSED(cut_in_the_arguments, "or the instruction is truncated");
  REFUSED(vast_argument_count, "or the instruction is truncated");
  REFUSED(falls_off, "control falls off the end");
  REFUSED(falls_off_after_if, "control falls off the end");
  REFUSED(register_out_of_range, "register number 6 is out of range");
  REFUSED(negative_register, "register number -1 is out of range");
  REFUSED(destination_out_of_range, "register number 6 is out of range");
  REFUSED(negative_destination, "register number -2 is out of range");
  REFUSED(function_out_of_range, "function index 4 is out of range");
  REFUSED(argument_register_out_of_range, "argument 1 is malformed");
  REFUSED(argument_register_negative, "argument 0 is malformed");
  REFUSED(constant_out_of_range, "argument 0 is malformed");
  REFUSED(function_argument_out_of_range, "argument 0 is malformed");
  REFUSED(context_with_payload, "argument 0 is malformed");
  REFUSED(context_second, "argument 1: the context can only be the first");
  REFUSED(context_to_bytecode, "only packed functions take the context");
  REFUSED(nil_with_payload, "argument 0 is malformed");
  REFUSED(bool_of_two, "argument 0 is malformed");
  REFUSED(unknown_argument_kind, "argument 0 is malformed");
  REFUSED(too_few_arguments, "the number of arguments of a call, 1, is not that of the function's parameters");
  REFUSED(too_many_arguments_to_itself,
          "the number of arguments of a call, 3, is not that of the function's parameters");
  REFUSED(jump_out_backwards, "the jump target, word -1, is not the start of an instruction");
  REFUSED(jump_out_forwards, "the jump target, word 2, is not the start of an instruction");
  REFUSED(jump_into_an_instruction, "the jump target, word 3, is not the start of an instruction");
  REFUSED(no_such_operator, "instruction 0: scalar operator ");
  REFUSED(operator_without_destination, "an operator must have a destination register");
  REFUSED(too_few_operands, "the number of operands, 1, is not the number");
  REFUSED(too_many_operands, "the number of operands, 2, is not the number");
  REFUSED(function_as_operand, "operand 1 must be a scalar");
  REFUSED(context_as_operand, "operand 0 must be a scalar");
  REFUSED(nil_as_operand, "operand 0 must be a scalar");
  REFUSED(operand_out_of_range, "argument 1 is malformed");
  REFUSED(operand_before_written, "register 3 is read before");
  REFUSED(if_jumps_out, "the jump target, word 1000, is not the start of an instruction");
  REFUSED(read_before_written, "function f, instruction 0: register 2 is read before it is written");
  REFUSED(condition_before_written, "register 3 is read before");
  REFUSED(argument_before_written, "register 2 is read before");
  REFUSED(read_after_reset, "instruction 1: register 0 is read before");
  REFUSED(written_on_one_branch, "instruction 2: register 2 is read before");
  REFUSED(reset_where_it_does_not_jump, "instruction 3: register 2 is read before");
  REFUSED(reset_in_the_loop, "instruction 1: register 2 is read before");
  REFUSED(reset_in_an_outer_loop, "instruction 1: register 2 is read before");
  ACCEPTED(plain);
  ACCEPTED(operators);
  ACCEPTED(ends_with_a_tail_call);
  ACCEPTED(no_arguments_before_what_looks_like_a_context);
  ACCEPTED(result_ignored);
  ACCEPTED(context_first);
  ACCEPTED(written_on_both_branches);
  ACCEPTED(written_where_it_returns);
  ACCEPTED(written_anew_in_each_round);
  ACCEPTED(loop_entered_at_its_end);
  ACCEPTED(unreachable_code_reads_anything);
  ACCEPTED(endless);
  check_long_function(100000, 0);
  check_long_function(100000, 1);
  check_too_many_jumps(0, "too many jumps for its number of registers: verifying it takes too long");
  check_too_many_jumps(1, "too many jumps for its number of registers: verifying it takes more than 268435456 bytes");
  check_entangled_loops(30, RVM_OK, "");
  check_entangled_loops(100, RVM_UNSUPPORTED, "the control flow of function f is too complex to verify");
  return CHECK_RESULT();
}
