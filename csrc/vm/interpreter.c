/* interpreter.c: runs the steps of bytecode functions (predecode.h), one short body each. */
#include "interpreter.h"

#include <string.h>

#include "call.h"
#include "debugger.h"
#include "scalar_ops.h"
#include "tensor.h"

/* Labels as values: each step jumps to the next one's body by itself, so that the processor can tell them apart. */
#pragma GCC diagnostic ignored "-Wpedantic"
/* Values are written and read as two words: to read one as a whole right after that makes the processor wait. */
#ifndef __clang__ /* which has no such pragma */
#pragma GCC optimize("no-tree-slp-vectorize")
#endif

/* Pops all frames down to `floor`, writing them into the error's trace.  A parameter that is to hold no object may do so
   until the function has checked it. */
static void unwind(rvm_machine *machine, int64_t floor, rvm_value error) {
  rvm_debugger_failed(machine, error);
  for (; machine->head.frame_count > floor; rvm_machine_pop_frame(machine)) {
    const rvm_frame *frame = &machine->frames[machine->head.frame_count - 1];
    int traced = error.as.error->frames < RVM_TRACE_LINES;
    rvm_error_add_frame(error, frame->function->name,
                        traced ? rvm_code_instruction(frame->function->code, frame->pc) : 0);
    rvm_release_all(frame->registers, frame->function->parameter_count);
  }
}

static inline void put(rvm_value *place, int64_t tag, int64_t bits) {
  place->tag = tag;
  place->as.i = bits;
}

static inline void move(rvm_value *place, const rvm_value *value) { put(place, value->tag, value->as.i); }

static inline void store(rvm_value *place, rvm_value value) {
  int64_t old_tag = place->tag;
  rvm_object *old = place->as.object;
  put(place, value.tag, value.as.i);
  if (old_tag >= RVM_TAG_TENSOR) rvm_object_release(old);
}

static inline const rvm_value *operand(const rvm_value *registers, const rvm_value *literals, int32_t word) {
  return &(word >= 0 ? registers : literals)[word];
}

/* Lays out the `count` operands from `words` on at the top, borrowed, after counting the cost of the call. */
static rvm_status lay_out(rvm_machine *machine, const rvm_value *registers, const rvm_value *literals,
                          const rvm_function *function, int64_t count, const int32_t *words, rvm_pending *call,
                          rvm_value *error) {
  rvm_status status = rvm_machine_spend(machine, function->cost, error);
  if (status) return status;
  if (machine->head.stack_end - machine->head.top < count) return rvm_fail_stack(machine, function, error);
  for (int64_t i = 0; i < count; i++) machine->head.top[i] = *operand(registers, literals, words[i]);
  *call = (rvm_pending){.function = function, .count = count};
  if (function->invokes) rvm_machine_unfold_invoke(machine, call);
  return RVM_OK;
}

/* Whether a register is of no scalar type: what it holds is released in the end. */
static int takes_anything(const rvm_code *code, int32_t number) {
  int32_t low = 0, high = code->object_count;
  while (low < high) {
    int32_t middle = (low + high) / 2;
    if (code->objects[middle] < number)
      low = middle + 1;
    else
      high = middle;
  }
  return low < code->object_count && code->objects[low] == number;
}

/* Whether the register may hold the value: those of one scalar type take no object, which would never be released, and
   no NIL, which is what a call gives that the instrument has skipped. */
static int fits(const rvm_code *code, int32_t destination, rvm_value value) {
  if (destination < 0 || (!rvm_value_is_object(value) && value.tag != RVM_TAG_NIL)) return 1;
  return takes_anything(code, destination);
}

/* Whether a parameter is what the check at pc says, where its register's type rests on that: the instrument may have
   skipped the check. */
static int is_as_checked(const rvm_frame *frame, const int32_t *pc) {
  if (pc[0] != RVM_STEP_check_int && pc[0] != RVM_STEP_check_float && pc[0] != RVM_STEP_check_bool) return 1;
  int64_t tag = pc[0] == RVM_STEP_check_int ? RVM_TAG_INT : pc[0] == RVM_STEP_check_float ? RVM_TAG_FLOAT : RVM_TAG_BOOL;
  const int32_t number = pc[RVM_CALL_ARGUMENTS];
  return number < 0 || frame->registers[number].tag == tag || takes_anything(frame->function->code, number);
}

static rvm_status fail_skipped(const rvm_frame *frame, const int32_t *pc, rvm_value *error) {
  char text[RVM_DESCRIPTION_BYTES];
  return rvm_fail(error, RVM_TYPE_ERROR, "%s: the instrument skipped this check, but register %d holds %s; run the check, or store a value that passes it",
                  frame->function->machine->functions[pc[RVM_CALL_CALLEE]].name, pc[RVM_CALL_ARGUMENTS],
                  rvm_value_describe(frame->registers[pc[RVM_CALL_ARGUMENTS]], text));
}

static rvm_status fail_unfit(const rvm_frame *frame, rvm_value *result) {
  char text[RVM_DESCRIPTION_BYTES];
  rvm_value_describe(*result, text);
  rvm_release(result);
  return rvm_fail(result, RVM_TYPE_ERROR, "%s: expected a scalar, got %s",
                  frame->function->machine->functions[frame->pc[RVM_CALL_CALLEE]].name, text);
}

/* The call at pc, of whatever it is of.  `entered`: a frame was pushed; else *result is what it gave. */
static rvm_status step_call(rvm_machine *machine, rvm_frame *frame, const int32_t *pc, int *entered, rvm_value *result) {
  rvm_value *arguments = machine->head.top;
  rvm_pending call;
  rvm_status status = lay_out(machine, frame->registers, machine->literals + machine->executable->literal_count,
                              &machine->functions[pc[RVM_CALL_CALLEE]], pc[RVM_CALL_COUNT], pc + RVM_CALL_ARGUMENTS,
                              &call, result);
  *entered = 0;
  if (status) return status;
  int is_ours = call.function->kind == RVM_KIND_bytecode || call.function->kind == RVM_KIND_native;
  if (is_ours && !rvm_is_watched(machine, call.function)) {
    rvm_retain_all(arguments, call.count);
    status = rvm_machine_start(machine, call, entered, result);
  } else {
    status = rvm_machine_call_at_top(machine, call.function, call.count, call.captured, result);
  }
  if (!status && !is_as_checked(frame, pc)) return fail_skipped(frame, pc, result);
  if (status || *entered || fits(frame->function->code, pc[RVM_CALL_DESTINATION], *result)) return status;
  return fail_unfit(frame, result);
}

/* The top frame gives way to the callee; it stays while the instrument watches the call. */
static rvm_status step_tail_call(rvm_machine *machine, rvm_frame *frame, const int32_t *pc, int *entered,
                                 rvm_value *result) {
  rvm_pending call;
  rvm_status status = lay_out(machine, frame->registers, machine->literals + machine->executable->literal_count,
                              &machine->functions[pc[RVM_CALL_CALLEE]], pc[RVM_CALL_COUNT], pc + RVM_CALL_ARGUMENTS,
                              &call, result);
  *entered = 0;
  if (status) return status;
  if (rvm_is_watched(machine, call.function)) {
    status = rvm_machine_call_at_top(machine, call.function, call.count, call.captured, result);
    if (!status) rvm_machine_pop_frame(machine);
    return status;
  }
  rvm_value *arguments = machine->head.top;
  rvm_retain_all(arguments, call.count);
  machine->head.top = arguments + call.count;
  rvm_machine_pop_frame(machine);
  rvm_machine_lower(machine, arguments, call.count);
  return rvm_machine_start(machine, call, entered, result);
}

/* The cost of a backward jump by so many words of steps, 0 or less: at least one. */
static inline int64_t cost_of_jump(int32_t words) {
  return (int64_t)((uint64_t)(RVM_WORDS_FOR_A_STEP - (int64_t)words) / RVM_WORDS_FOR_A_STEP);
}

/* Whether a frame of the callee, which is not watched, may simply be pushed. */
static inline int is_direct(const rvm_machine *machine, const rvm_function *callee) {
  const rvm_machine_head *head = &machine->head;
  return callee->kind == RVM_KIND_bytecode && head->stack_end - head->top >= callee->registers &&
         head->frame_count + head->nesting < head->frame_limit;
}

/* A comparison that makes the jump of the `unless` behind it, as the one that leaves this to the `unless`. */
static int32_t without_jump(int32_t step) {
  if (step >= RVM_STEP_unless_rl_eq_i64) return step - RVM_STEP_unless_rl_eq_i64 + RVM_STEP_rl_eq_i64;
  if (step >= RVM_STEP_unless_rr_eq_i64) return step - RVM_STEP_unless_rr_eq_i64 + RVM_STEP_rr_eq_i64;
  return step;
}

rvm_status rvm_machine_run(rvm_machine *machine, rvm_value *result) {
  static const void *const bodies[] = {
#define STEP(name, operands, meaning) &&do_##name,
      RVM_STEPS(STEP)
#undef STEP
#define SCALAR_OPERATOR(name, function, operands, result, form, fails, meaning) &&do_any_##name,
#include "scalar_operators.def"
#undef SCALAR_OPERATOR
#define SCALAR_OPERATOR(name, function, operands, result, form, fails, meaning) &&do_rr_##name,
#include "scalar_operators.def"
#undef SCALAR_OPERATOR
#define SCALAR_OPERATOR(name, function, operands, result, form, fails, meaning) &&do_rl_##name,
#include "scalar_operators.def"
#undef SCALAR_OPERATOR
#define COMPARISON(name) &&do_unless_rr_##name,
      RVM_COMPARISONS(COMPARISON)
#undef COMPARISON
#define COMPARISON(name) &&do_unless_rl_##name,
          RVM_COMPARISONS(COMPARISON)
#undef COMPARISON
  };
  const void *const *next = bodies;
  if (machine->head.watched_kinds & RVM_WATCH_STEPS) {
    for (int32_t step = 0; step < RVM_STEP_COUNT; step++) machine->debugging->bodies[step] = &&tell;
    next = machine->debugging->bodies;
  }
  const int64_t floor = machine->head.frame_count - 1;
  const rvm_value *const literals = machine->literals + machine->executable->literal_count;
  rvm_frame *frame;
  rvm_value *registers;
  const int32_t *pc;
  rvm_status status;
  int entered;

#define WATCHED (machine->head.watched_kinds != 0)
#define NEXT(words)    \
  do {                 \
    pc += (words);     \
    goto *next[*pc];   \
  } while (0)
#define S(place) (*operand(registers, literals, pc[place]))
#define JUMP pc[RVM_JUMP]
/* Of a step that calls. */
#define DESTINATION pc[RVM_CALL_DESTINATION]
#define CALLEE pc[RVM_CALL_CALLEE]
#define COUNT pc[RVM_CALL_COUNT]
#define ARGUMENT(number) S(RVM_CALL_ARGUMENTS + (number))
#define NEXT_CALL(arguments) NEXT(RVM_CALL_ARGUMENTS + (arguments))
/* Goes on in the callee, whose parameters are in the window. */
#define PUSH(callee, window)                             \
  do {                                                   \
    machine->head.top = (window) + (callee)->registers;  \
    machine->head.frame_count++;                         \
    frame++;                                             \
    frame->function = (callee);                          \
    frame->registers = registers = (window);             \
    pc = (callee)->code->steps;                          \
    NEXT(0);                                             \
  } while (0)

enter: /* the top frame, at its pc */
  frame = &machine->frames[machine->head.frame_count - 1];
  registers = frame->registers;
  pc = frame->pc;
  NEXT(0);

tell: { /* the debugger of each step, before it is done */
  const rvm_stop stop = {.function = frame->function, .registers = registers, .step = pc};
  frame->pc = pc;
  if ((status = rvm_debugger_step(machine, stop, result))) goto failed;
  goto *bodies[without_jump(*pc)];
}

do_call: {
  const rvm_function *callee = &machine->functions[CALLEE];
  int32_t count = COUNT;
  rvm_value *window = machine->head.top;
  frame->pc = pc;
  if (WATCHED || !is_direct(machine, callee) || (machine->head.fuel -= callee->cost) <= 0) goto call;
  for (int32_t i = 0; i < count; i++) {
    const rvm_value *value = &ARGUMENT(i);
    if (rvm_value_is_object(*value)) rvm_retain(*value);
    move(&window[i], value);
  }
  PUSH(callee, window);
}

do_invoke: {
  rvm_value target = ARGUMENT(1), *window = machine->head.top;
  const rvm_value *captured;
  int32_t given = COUNT - 2, captured_count;
  frame->pc = pc;
  if (WATCHED || (target.tag != RVM_TAG_FUNCTION && target.tag != RVM_TAG_CLOSURE)) goto call;
  const rvm_function *callee = rvm_callee_function(target, &captured, &captured_count);
  if (callee->machine != machine || given + captured_count != callee->parameter_count || !is_direct(machine, callee) ||
      (machine->head.fuel -= callee->cost) <= 0)
    goto call;
  for (int32_t i = 0; i < given; i++) {
    rvm_retain(ARGUMENT(2 + i));
    move(&window[i], &ARGUMENT(2 + i));
  }
  for (int32_t i = 0; i < captured_count; i++) {
    rvm_retain(captured[i]);
    move(&window[given + i], &captured[i]);
  }
  PUSH(callee, window);
}

call: /* any call, frame->pc being pc */
  status = step_call(machine, frame, pc, &entered, result);
  if (status) goto failed;
  if (entered) goto enter;
  goto finish_call;

do_call_kernel:
  if ((status = rvm_machine_spend(machine, RVM_LONG_CALL_COST, result))) goto failed_here;

do_call_builtin: {
  const rvm_function *callee = &machine->functions[CALLEE];
  int32_t count = COUNT;
  rvm_value *arguments = machine->head.top;
  if (WATCHED || machine->head.stack_end - arguments < count) goto do_call;
  for (int32_t i = 0; i < count; i++) move(&arguments[i], &ARGUMENT(i));
  machine->head.top = arguments + count;
  result->tag = RVM_TAG_NIL;
  status = callee->call(callee->self, arguments, count, result);
  machine->head.top = arguments;
  rvm_forget_all(arguments, count);
  if (status) goto failed_here;
}

finish_call: /* *result is that of the call at pc */
  if (DESTINATION >= 0)
    store(&registers[DESTINATION], *result);
  else
    rvm_release(result);
  NEXT_CALL(COUNT);

do_copy: {
  rvm_value value = ARGUMENT(0);
  if (WATCHED) goto do_call;
  rvm_retain(value);
  store(&registers[DESTINATION], value);
  NEXT_CALL(1);
}

do_move:
  if (WATCHED) goto do_call;
  move(&registers[DESTINATION], &ARGUMENT(0));
  NEXT_CALL(1);

do_item: {
  rvm_value tuple = ARGUMENT(0), index = ARGUMENT(1);
  if (WATCHED || tuple.tag != RVM_TAG_TUPLE || index.tag != RVM_TAG_INT ||
      (uint64_t)index.as.i >= (uint64_t)tuple.as.tuple->size)
    goto do_call_builtin;
  rvm_value item = tuple.as.tuple->items[index.as.i];
  rvm_retain(item);
  store(&registers[DESTINATION], item);
  NEXT_CALL(2);
}

do_check_int:
  if (WATCHED || ARGUMENT(0).tag != RVM_TAG_INT) goto do_call_builtin;
  NEXT_CALL(3);

do_check_float:
  if (WATCHED || ARGUMENT(0).tag != RVM_TAG_FLOAT) goto do_call_builtin;
  NEXT_CALL(3);

do_check_bool:
  if (WATCHED || ARGUMENT(0).tag != RVM_TAG_BOOL) goto do_call_builtin;
  NEXT_CALL(3);

do_check_tensor: {
  rvm_value value = ARGUMENT(0), rank = ARGUMENT(1), dtype = ARGUMENT(2);
  if (WATCHED || value.tag != RVM_TAG_TENSOR || (rank.as.i >= 0 && rank.as.i != value.as.tensor->dl.ndim) ||
      (dtype.tag != RVM_TAG_NIL && dtype.as.i != value.as.tensor->dtype))
    goto do_call_builtin;
  NEXT_CALL(4);
}

do_tail_call:
  frame->pc = pc;
  status = step_tail_call(machine, frame, pc, &entered, result);
  goto tail_called;

tail_call_self: /* the same of a step that jumps */
  frame->pc = pc;
  status = step_tail_call(machine, frame, pc, &entered, result);

tail_called:
  if (status) goto failed;
  if (entered) goto enter;
  goto returned;

do_tail_self: {
  const rvm_code *code = frame->function->code;
  int32_t count = COUNT;
  rvm_value *arguments = machine->head.top;
  if (WATCHED || frame->function->kind != RVM_KIND_bytecode || machine->head.stack_end - arguments < count ||
      (machine->head.fuel -= frame->function->cost) <= 0)
    goto tail_call_self;
  for (int32_t i = 0; i < count; i++) move(&arguments[i], &ARGUMENT(i));
  if (code->object_count > 0) {
    rvm_retain_all(arguments, count);
    machine->head.top = arguments + count;
    rvm_release_objects(code, registers);
    machine->head.top = arguments;
  }
  for (int32_t i = 0; i < count; i++) {
    move(&registers[i], &arguments[i]);
    arguments[i].tag = RVM_TAG_NIL;
  }
  NEXT(JUMP);
}

do_again: {
  const int32_t *pair = pc + RVM_CALL_ARGUMENTS + COUNT + 1, *end = pair + 2 * pair[-1];
  if (WATCHED || frame->function->kind != RVM_KIND_bytecode ||
      (machine->head.fuel -= frame->function->cost) <= 0)
    goto tail_call_self;
  for (; pair < end; pair += 2) move(&registers[pair[0]], operand(registers, literals, pair[1]));
  NEXT(JUMP);
}

do_ret: {
  const int64_t tag = registers[pc[RVM_REGISTER]].tag, bits = registers[pc[RVM_REGISTER]].as.i;
  registers[pc[RVM_REGISTER]].tag = RVM_TAG_NIL;
  rvm_release_objects(frame->function->code, registers);
  machine->head.top = registers;
  if (--machine->head.frame_count == floor) {
    put(result, tag, bits);
    return RVM_OK;
  }
  frame--;
  registers = frame->registers;
  pc = frame->pc;
  rvm_value value = {.tag = tag, .as.i = bits};
  if (DESTINATION >= 0)
    store(&registers[DESTINATION], value);
  else
    rvm_release(&value);
  NEXT_CALL(COUNT);
}

returned: /* the top frame is gone, *result is what it gave */
  if (machine->head.frame_count == floor) return RVM_OK;
  frame = &machine->frames[machine->head.frame_count - 1];
  registers = frame->registers;
  pc = frame->pc;
  if (!fits(frame->function->code, DESTINATION, *result)) {
    status = fail_unfit(frame, result);
    goto failed;
  }
  goto finish_call;

do_go:
  NEXT(JUMP);

do_go_back:
  if ((machine->head.fuel -= cost_of_jump(JUMP)) <= 0 && (status = rvm_machine_spend(machine, 0, result))) goto failed_here;
  NEXT(JUMP);

do_unless: {
  int32_t truth;
  if ((status = rvm_value_truth(registers[pc[RVM_REGISTER]], &truth, result))) goto failed_here;
  if (truth) NEXT(RVM_UNLESS_WORDS);
  const int32_t jump = pc[RVM_UNLESS_JUMP];
  if (jump <= 0 && (machine->head.fuel -= cost_of_jump(jump)) <= 0 &&
      (status = rvm_machine_spend(machine, 0, result)))
    goto failed_here;
  NEXT(jump);
}

do_unless_bool:
  if (registers[pc[RVM_REGISTER]].as.i) NEXT(RVM_UNLESS_WORDS);
  NEXT(pc[RVM_UNLESS_JUMP]);

do_reset:
  rvm_release(&registers[pc[RVM_REGISTER]]);
  NEXT(RVM_REGISTER + 1);

#define SCALAR_OPERATOR(name, function, operands, out, form, fails, meaning) \
  do_any_##name : {                                                          \
    rvm_value value;                                                         \
    if (!rvm_scalar_op_##name(S(RVM_OPERATOR_A), S(RVM_OPERATOR_B), &value)) goto any_failed;          \
    store(&registers[pc[RVM_OPERATOR_DESTINATION]], value);                                         \
    NEXT(RVM_OPERATOR_WORDS);                                                                 \
  }
#include "scalar_operators.def"
#undef SCALAR_OPERATOR

/* With operands of the row's types there is nothing to check but whether it has a value. */
#define AT(base, place) (*(const rvm_value *)((const char *)(base) + pc[place]))
#define PUT(out, value)                                                 \
  do {                                                                  \
    const rvm_value made = RVM_SCALAR_OP_RESULT_##out(value);           \
    put((rvm_value *)((char *)registers + pc[RVM_OPERATOR_DESTINATION]), made.tag, made.as.i); \
  } while (0)
#define TYPED(name, operands, out, second)                                       \
  {                                                                              \
    const rvm_value a = AT(registers, RVM_OPERATOR_A), b = AT(second, RVM_OPERATOR_B);                     \
    if (!rvm_scalar_op_has_value(RVM_SCALAR_OP_##name, a, b)) goto typed_failed; \
    PUT(out, RVM_SCALAR_OP_EXPANDED(name, RVM_SCALAR_OP_FIELD_##operands));      \
    NEXT(RVM_OPERATOR_WORDS);                                                                     \
  }
#define SCALAR_OPERATOR(name, function, operands, out, form, fails, meaning) \
  do_rr_##name : TYPED(name, operands, out, registers)
#include "scalar_operators.def"
#undef SCALAR_OPERATOR
#define SCALAR_OPERATOR(name, function, operands, out, form, fails, meaning) \
  do_rl_##name : TYPED(name, operands, out, literals)
#include "scalar_operators.def"
#undef SCALAR_OPERATOR

/* The `unless` behind them has three words, of which the last is its jump. */
#define COMPARE(name, second)                                                     \
  {                                                                               \
    const int64_t a = AT(registers, RVM_OPERATOR_A).as.i;                         \
    const int64_t truth = rvm_scalar_op_##name##_value(a, AT(second, RVM_OPERATOR_B).as.i); \
    PUT(b, truth);                                                                \
    if (truth) NEXT(RVM_OPERATOR_WORDS + RVM_UNLESS_WORDS);                       \
    NEXT(RVM_OPERATOR_WORDS + (int64_t)pc[RVM_OPERATOR_WORDS + RVM_UNLESS_JUMP]); \
  }
#define COMPARISON(name) do_unless_rr_##name : COMPARE(name, registers)
  RVM_COMPARISONS(COMPARISON)
#undef COMPARISON
#define COMPARISON(name) do_unless_rl_##name : COMPARE(name, literals)
  RVM_COMPARISONS(COMPARISON)
#undef COMPARISON

typed_failed: { /* a row that may fail: of two operands, or the one of i64_of_f64 */
  int is_rr = *pc < RVM_STEP_rl_add_i64;
  status = rvm_scalar_op_fail((*pc - RVM_STEP_any_add_i64) % RVM_SCALAR_OP_COUNT, AT(registers, RVM_OPERATOR_A),
                         is_rr ? AT(registers, RVM_OPERATOR_B) : AT(literals, RVM_OPERATOR_B), result);
  goto failed_here;
}

any_failed:
  status = rvm_scalar_op_fail((*pc - RVM_STEP_any_add_i64) % RVM_SCALAR_OP_COUNT, S(RVM_OPERATOR_A), S(RVM_OPERATOR_B),
                              result);

failed_here:
  frame->pc = pc;
failed:
  unwind(machine, floor, *result);
  return status;
}
