/* interpreter.c: runs bytecode functions.

   Each step (steps.def) has one body in rvm_machine_run, under a comment with the meaning of the step.  Registers own
   the objects that they hold.  Literals and the arguments of builtins are borrowed.  The body of a specialized step for
   a call handles the common case.  If an instrument or debugger is attached, an operand has another type, or fuel or
   stack is short, the body jumps to a more general one, and finally to `general_call`.  Read call.c next: it makes the
   calls that have no body of their own here. */
#include "interpreter.h"

#include <string.h>

#include "call.h"
#include "debugger.h"
#include "scalar_ops.h"
#include "selected.h"
#include "tensor.h"

/* Labels as values are an extension of GCC and Clang. */
#pragma GCC diagnostic ignored "-Wpedantic"
/* The two words of a value are stored and loaded separately.  If GCC vectorized a load, it would load both words at
   once right after separate stores, which stalls the processor.  Clang has no such pragma and does not vectorize these
   loads. */
#ifndef __clang__
#pragma GCC optimize("no-tree-slp-vectorize")
#endif

/* Pops frames until `floor` frames are left, and adds each to the trace of `error`.  rvm_machine_pop_frame releases
   only the registers whose inferred type allows objects.  A parameter whose inferred type is a scalar can hold an
   object until that type has been checked, so all parameters are released here. */
static void unwind(rvm_machine *machine, int64_t floor, rvm_value error) {
  rvm_debugger_failed(machine, error);
  for (; machine->head.frame_count > floor; rvm_machine_pop_frame(machine)) {
    const rvm_frame *frame = &machine->frames[machine->head.frame_count - 1];
    const int is_in_trace = error.as.error->frames < RVM_TRACE_LINES;
    rvm_error_add_frame(error, frame->function->name,
                        is_in_trace ? rvm_code_instruction(frame->function->code, frame->pc) : 0);
    rvm_release_all(frame->registers, frame->function->parameter_count);
  }
}

static inline void store_words(rvm_value *dst, int64_t tag, int64_t bits) {
  dst->tag = tag;
  dst->as.i = bits;
}

/* Copies a value without retaining it or releasing what *dst held. */
static inline void move(rvm_value *dst, const rvm_value *src) { store_words(dst, src->tag, src->as.i); }

/* Stores an owned value and releases what *dst held. */
static inline void store(rvm_value *dst, rvm_value value) {
  const int64_t old_tag = dst->tag;
  rvm_object *old = dst->as.object;
  store_words(dst, value.tag, value.as.i);
  if (old_tag >= RVM_TAG_TENSOR) rvm_object_release(old);
}

/* Returns the value of an operand word of kind s (steps.def): register number `word`, or if `word` is negative, the
   literal at that distance before the end of the literals. */
static inline const rvm_value *operand_at(const rvm_value *registers, const rvm_value *literals_end, int32_t word) {
  return &(word >= 0 ? registers : literals_end)[word];
}

/* Charges a call of `function`, then copies `count` operands to the top of the stack as borrowed values, and stores the
   call in *call.  A call of invoke_closure becomes a call of its target (rvm_machine_unfold_invoke). */
static rvm_status push_operands(rvm_machine *machine, const rvm_value *registers, const rvm_value *literals_end,
                                const rvm_function *function, int64_t count, const int32_t *words, rvm_pending *call,
                                rvm_value *error) {
  const rvm_status status = rvm_machine_spend(machine, function->cost, error);
  if (status) return status;
  if (machine->head.stack_end - machine->head.top < count) return rvm_fail_stack(machine, function, error);
  for (int64_t i = 0; i < count; i++) machine->head.top[i] = *operand_at(registers, literals_end, words[i]);
  *call = (rvm_pending){.function = function, .count = count};
  if (function->invokes) rvm_machine_unfold_invoke(machine, call);
  return RVM_OK;
}

/* Returns whether a register may hold an object.  The function releases such registers when it returns. */
static int may_hold_object(const rvm_code *code, int32_t number) {
  int32_t low = 0, high = code->object_count;
  while (low < high) {
    const int32_t middle = (low + high) / 2;
    if (code->objects[middle] < number)
      low = middle + 1;
    else
      high = middle;
  }
  return low < code->object_count && code->objects[low] == number;
}

/* Returns whether the destination of a call accepts its result.  A register of a scalar type does not accept an object,
   because it would leak.  It does not accept NIL either, which is the result of a call that the instrument skipped. */
static int register_accepts(const rvm_code *code, int32_t dst, rvm_value value) {
  if (dst < 0 || (!rvm_value_is_object(value) && value.tag != RVM_TAG_NIL)) return 1;
  return may_hold_object(code, dst);
}

/* Returns 0 if the instrument has skipped a check_int, check_float or check_bool step that would have failed, and the
   type of the checked register was inferred from the check.  Otherwise returns 1. */
static int check_holds(const rvm_frame *frame, const rvm_step_call *step) {
  int64_t tag;
  switch (step->step) {
    case RVM_STEP_check_int: tag = RVM_TAG_INT; break;
    case RVM_STEP_check_float: tag = RVM_TAG_FLOAT; break;
    case RVM_STEP_check_bool: tag = RVM_TAG_BOOL; break;
    default: return 1;
  }
  const int32_t number = step->arguments[0];
  return number < 0 || frame->registers[number].tag == tag || may_hold_object(frame->function->code, number);
}

/* Fails with TYPE_ERROR because check_holds returned 0 for the step. */
static rvm_status fail_skipped_check(const rvm_frame *frame, const rvm_step_call *step, rvm_value *error) {
  char text[RVM_DESCRIPTION_BYTES];
  const int32_t number = step->arguments[0];
  return rvm_fail(error, RVM_TYPE_ERROR,
                  "%s: the instrument skipped this check, but register %d holds %s; run the check, or store a value "
                  "that passes it",
                  frame->function->machine->functions[step->callee].name, number,
                  rvm_value_describe(frame->registers[number], text));
}

/* Fails because the destination of the call at frame->pc does not accept *result, which is released. */
static rvm_status fail_result_type(const rvm_frame *frame, rvm_value *result) {
  char text[RVM_DESCRIPTION_BYTES];
  const rvm_step_call *step = (const rvm_step_call *)frame->pc;
  rvm_value_describe(*result, text);
  rvm_release(result);
  return rvm_fail(result, RVM_TYPE_ERROR, "%s: expected a scalar, got %s",
                  frame->function->machine->functions[step->callee].name, text);
}

/* Performs the `reset` steps from `next` on, which follow a call, before the callee runs.  So the callee has the only
   references to arguments that the caller does not use afterwards, and can update them in place.  The window of the
   callee must own the arguments.  Leaves the last reference to an object to the step itself, because the release of the
   object can run code of the host.  `closure` is NULL, or the called closure.  Its last reference is released, too: the
   window owns the captured values, so freeing the closure runs no other code. */
static __attribute__((noinline)) void reset_early(rvm_value *registers, const int32_t *next,
                                                  const rvm_object *closure) {
  for (; *next == RVM_STEP_reset; next += RVM_RESET_WORDS) {
    rvm_value *value = &registers[((const rvm_step_reset *)next)->dst];
    if (!rvm_value_is_object(*value)) continue;
    if (value->as.object->references != 1 || value->as.object == closure) rvm_release(value);
  }
}

/* Executes any call step.  The callee can be of any kind.  Sets *entered if it pushed a frame; otherwise stores the
   result or error in *result. */
static rvm_status execute_call(rvm_machine *machine, rvm_frame *frame, const rvm_step_call *step, int *entered,
                               rvm_value *result) {
  const rvm_value *literals_end = machine->literals + machine->executable->literal_count;
  rvm_value *arguments = machine->head.top;
  rvm_pending call;
  *entered = 0;
  rvm_status status = push_operands(machine, frame->registers, literals_end, &machine->functions[step->callee],
                                    step->count, step->arguments, &call, result);
  if (status) return status;
  const int has_code = call.function->kind == RVM_KIND_bytecode || call.function->kind == RVM_KIND_native;
  if (has_code && !rvm_is_watched(machine, call.function)) {
    rvm_retain_all(arguments, call.count);
    const rvm_value *closure =
        call.captured > 0 ? operand_at(frame->registers, literals_end, step->arguments[1]) : NULL;
    reset_early(frame->registers, step->arguments + step->count, closure ? closure->as.object : NULL);
    status = rvm_machine_start(machine, call, entered, result);
  } else {
    status = rvm_machine_call_at_top(machine, call.function, call.count, call.captured, result);
  }
  if (!status && !check_holds(frame, step)) return fail_skipped_check(frame, step, result);
  if (status || *entered || register_accepts(frame->function->code, step->dst, *result)) return status;
  return fail_result_type(frame, result);
}

/* Executes a `tail_call` step, whose callee can be of any kind: pops the frame, then starts the call.  While the
   instrument watches the callee, the frame stays until the call has returned.  Sets *entered if it pushed a frame;
   otherwise stores the result or error in *result. */
static rvm_status execute_tail_call(rvm_machine *machine, rvm_frame *frame, const rvm_step_tail_call *step,
                                    int *entered, rvm_value *result) {
  const rvm_value *literals_end = machine->literals + machine->executable->literal_count;
  rvm_value *arguments = machine->head.top;
  rvm_pending call;
  *entered = 0;
  rvm_status status = push_operands(machine, frame->registers, literals_end, &machine->functions[step->callee],
                                    step->count, step->arguments, &call, result);
  if (status) return status;
  if (rvm_is_watched(machine, call.function)) {
    status = rvm_machine_call_at_top(machine, call.function, call.count, call.captured, result);
    if (!status) rvm_machine_pop_frame(machine);
    return status;
  }
  rvm_retain_all(arguments, call.count);
  machine->head.top = arguments + call.count;
  rvm_machine_pop_frame(machine);
  rvm_machine_move_down(machine, arguments, call.count);
  return rvm_machine_start(machine, call, entered, result);
}

/* Returns the fuel that a jump by `words` <= 0 costs, at least 1. */
static inline int64_t backward_jump_cost(int32_t words) {
  return (int64_t)((uint64_t)(RVM_WORDS_PER_FUEL - (int64_t)words) / RVM_WORDS_PER_FUEL);
}

/* Returns whether a call of `callee` can simply push a frame: it is a bytecode function, and the limits of the stack
   and of nested calls allow it. */
static inline int can_push_frame(const rvm_machine *machine, const rvm_function *callee) {
  const rvm_machine_head *head = &machine->head;
  return callee->kind == RVM_KIND_bytecode && head->stack_end - head->top >= callee->registers &&
         head->frame_count + head->nesting < head->frame_limit;
}

/* For the step of a comparison that also performs the jump of the next step, returns the step of the comparison alone.
   Returns any other step unchanged. */
static int32_t without_jump(int32_t step) {
  if (step >= RVM_STEP_unless_rl_eq_i64) return step - RVM_STEP_unless_rl_eq_i64 + RVM_STEP_rl_eq_i64;
  if (step >= RVM_STEP_unless_rr_eq_i64) return step - RVM_STEP_unless_rr_eq_i64 + RVM_STEP_rr_eq_i64;
  return step;
}

/* The address of the body of a FAST step.  A selective library has no FAST steps, and no steps for operands of known
   types.  The compiler omits the body of a step whose address is not taken. */
#ifdef RVM_SELECTIVE
#define FAST_BODY(name) NULL
#else
#define FAST_BODY(name) &&do_##name
#endif

#define IS_WATCHED (!RVM_IS_SELECTIVE && machine->head.watched_kinds != 0)

rvm_status rvm_machine_run(rvm_machine *machine, rvm_value *result) {
  /* Threaded dispatch: every body ends with its own indirect jump, which gives the branch predictor one history per
     step. */
  /* clang-format off */
  static const void *const bodies[] = {
#define STEP(name, operands, names, meaning) &&do_##name,
#define FAST(name, operands, names, meaning) FAST_BODY(name),
#include "steps.def"
#undef FAST
#undef STEP
#define SCALAR_OPERATOR(name, function, operands, result, form, fails, meaning) \
  RVM_IF_USED(step_##name, &&do_any_##name),
#include "scalar_operators.def"
#undef SCALAR_OPERATOR
#ifndef RVM_SELECTIVE
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
#endif
  };
  /* clang-format on */
  const void *const *dispatch_table = bodies;
#ifndef RVM_SELECTIVE
  if (machine->head.watched_kinds & RVM_WATCH_STEPS) {
    for (int32_t step = 0; step < RVM_STEP_COUNT; step++) machine->debugging->bodies[step] = &&call_debugger;
    dispatch_table = machine->debugging->bodies;
  }
#endif
  const int64_t floor = machine->head.frame_count - 1;
  const rvm_value *const literals_end = machine->literals + machine->executable->literal_count;
  rvm_frame *frame;
  rvm_value *registers;
  const int32_t *pc;
  rvm_status status;
  int entered;

#define BODY(name) do_##name:
/* Declares the operands of the step at pc: step->dst, step->arguments, ... */
#define OPERANDS(name) const rvm_step_##name *const step = (const rvm_step_##name *)pc
#define R(number) registers[number]
#define VALUE(word) (*operand_at(registers, literals_end, word))
#define NEXT(words)            \
  do {                         \
    pc += (words);             \
    goto *dispatch_table[*pc]; \
  } while (0)
/* Continues in `callee`, whose arguments have been stored at `window`. */
#define PUSH_FRAME(callee, window)                      \
  do {                                                  \
    machine->head.top = (window) + (callee)->registers; \
    machine->head.frame_count++;                        \
    frame++;                                            \
    frame->function = (callee);                         \
    frame->registers = registers = (window);            \
    pc = (callee)->code->steps;                         \
    NEXT(0);                                            \
  } while (0)

/* Continues in the top frame at its pc. */
enter_frame:
  frame = &machine->frames[machine->head.frame_count - 1];
  registers = frame->registers;
  pc = frame->pc;
  NEXT(0);

#ifndef RVM_SELECTIVE
  /* the body of every step while the machine has a debugger; a comparison does not perform the jump of the next step,
     so that the debugger observes both */
call_debugger:
  {
    const rvm_position position = {.function = frame->function, .registers = registers, .step = pc};
    frame->pc = pc;
    if ((status = rvm_debugger_step(machine, position, result))) goto failed;
    goto *bodies[without_jump(*pc)];
  }
#endif

  /* R[dst] = F[callee](arguments...) */
  BODY(call) {
    OPERANDS(call);
    const rvm_function *callee = &machine->functions[step->callee];
    const int32_t count = step->count;
    rvm_value *window = machine->head.top;
    frame->pc = pc;
    if (IS_WATCHED || !can_push_frame(machine, callee) || (machine->head.fuel -= callee->cost) <= 0) goto general_call;
    for (int32_t i = 0; i < count; i++) {
      const rvm_value *value = &VALUE(step->arguments[i]);
      if (rvm_value_is_object(*value)) rvm_retain(*value);
      move(&window[i], value);
    }
    const int32_t *const next = step->arguments + count;
    if (*next == RVM_STEP_reset) reset_early(registers, next, NULL);
    PUSH_FRAME(callee, window);
  }

  /* R[dst] = invoke_closure(context, target, arguments...) */
  BODY(invoke) {
    OPERANDS(invoke);
    rvm_value target = VALUE(step->arguments[1]), *window = machine->head.top;
    const rvm_value *captured;
    const int32_t *arguments = step->arguments + 2;
    int32_t count = step->count - 2, captured_count;
    frame->pc = pc;
    if (IS_WATCHED || (target.tag != RVM_TAG_FUNCTION && target.tag != RVM_TAG_CLOSURE)) goto general_call;
    const rvm_function *callee = rvm_callee_function(target, &captured, &captured_count);
    if (callee->machine != machine || count + captured_count != callee->parameter_count ||
        !can_push_frame(machine, callee) || (machine->head.fuel -= callee->cost) <= 0)
      goto general_call;
    for (int32_t i = 0; i < count; i++) {
      rvm_retain(VALUE(arguments[i]));
      move(&window[i], &VALUE(arguments[i]));
    }
    for (int32_t i = 0; i < captured_count; i++) {
      rvm_retain(captured[i]);
      move(&window[count + i], &captured[i]);
    }
    reset_early(registers, arguments + count, captured_count > 0 ? target.as.object : NULL);
    PUSH_FRAME(callee, window);
  }

  /* any call step; frame->pc has been set to pc */
general_call:
  {
    OPERANDS(call);
    if ((status = execute_call(machine, frame, step, &entered, result))) goto failed;
    if (entered) goto enter_frame;
    goto store_result;
  }

  /* R[dst] = F[callee](arguments...), of a kernel; continues with call_builtin */
  BODY(call_kernel) {
    if ((status = rvm_machine_spend(machine, RVM_LONG_CALL_COST, result))) goto failed_here;
  }

  /* R[dst] = F[callee](arguments...), of a builtin that calls no other function; continues with store_result */
  BODY(call_builtin) {
    OPERANDS(call_builtin);
    const rvm_function *callee = &machine->functions[step->callee];
    const int32_t count = step->count;
    rvm_value *arguments = machine->head.top;
    if (IS_WATCHED || machine->head.stack_end - arguments < count) goto do_call;
    for (int32_t i = 0; i < count; i++) move(&arguments[i], &VALUE(step->arguments[i]));
    machine->head.top = arguments + count;
    result->tag = RVM_TAG_NIL;
    status = callee->call(callee->self, arguments, count, result);
    machine->head.top = arguments;
    rvm_forget_all(arguments, count);
    if (status) goto failed_here;
  }

  /* the end of a call step: R[dst] = *result */
store_result:
  {
    OPERANDS(call);
    if (step->dst >= 0)
      store(&R(step->dst), *result);
    else
      rvm_release(result);
    NEXT(RVM_CALL_WORDS + step->count);
  }

  /* R[dst] = arguments[0] */
  BODY(copy) {
    OPERANDS(copy);
    const rvm_value value = VALUE(step->arguments[0]);
    if (IS_WATCHED) goto do_call;
    rvm_retain(value);
    store(&R(step->dst), value);
    NEXT(RVM_CALL_WORDS + 1);
  }

  /* R[dst] = arguments[0], where neither holds an object */
  BODY(move) {
    OPERANDS(move);
    if (IS_WATCHED) goto do_call;
    move(&R(step->dst), &VALUE(step->arguments[0]));
    NEXT(RVM_CALL_WORDS + 1);
  }

  /* R[dst] = arguments[0][arguments[1]] */
  BODY(item) {
    OPERANDS(item);
    const rvm_value tuple = VALUE(step->arguments[0]), index = VALUE(step->arguments[1]);
    if (IS_WATCHED || tuple.tag != RVM_TAG_TUPLE || index.tag != RVM_TAG_INT ||
        (uint64_t)index.as.i >= (uint64_t)tuple.as.tuple->size)
      goto do_call_builtin;
    const rvm_value item = tuple.as.tuple->items[index.as.i];
    rvm_retain(item);
    store(&R(step->dst), item);
    NEXT(RVM_CALL_WORDS + 2);
  }

/* Checks of scalars: the arguments are the value, its dtype and the text for the error. */
#define CHECK_SCALAR(name, TAG)                                                             \
  {                                                                                         \
    OPERANDS(name);                                                                         \
    if (IS_WATCHED || VALUE(step->arguments[0]).tag != RVM_TAG_##TAG) goto do_call_builtin; \
    NEXT(RVM_CALL_WORDS + 3);                                                               \
  }
  BODY(check_int)
  CHECK_SCALAR(check_int, INT)

  BODY(check_float)
  CHECK_SCALAR(check_float, FLOAT)

  BODY(check_bool)
  CHECK_SCALAR(check_bool, BOOL)

  /* the arguments are the value, its rank or -1, its dtype or nil, and the text for the error */
  BODY(check_tensor) {
    OPERANDS(check_tensor);
    const rvm_value value = VALUE(step->arguments[0]), rank = VALUE(step->arguments[1]),
                    dtype = VALUE(step->arguments[2]);
    if (IS_WATCHED || value.tag != RVM_TAG_TENSOR) goto do_call_builtin;
    const int has_rank = rank.as.i < 0 || rank.as.i == value.as.tensor->dl.ndim;
    const int has_dtype = dtype.tag == RVM_TAG_NIL || dtype.as.i == value.as.tensor->dtype;
    if (!has_rank || !has_dtype) goto do_call_builtin;
    NEXT(RVM_CALL_WORDS + 4);
  }

  /* return F[callee](arguments...) */
  BODY(tail_call) {
    OPERANDS(tail_call);
    frame->pc = pc;
    if ((status = execute_tail_call(machine, frame, step, &entered, result))) goto failed;
    if (entered) goto enter_frame;
    goto returned;
  }

  /* parameters = arguments; pc += target */
  BODY(tail_self) {
    OPERANDS(tail_self);
    const rvm_code *code = frame->function->code;
    const int32_t count = step->count;
    rvm_value *arguments = machine->head.top;
    if (IS_WATCHED || frame->function->kind != RVM_KIND_bytecode || machine->head.stack_end - arguments < count ||
        (machine->head.fuel -= frame->function->cost) <= 0)
      goto do_tail_call;
    for (int32_t i = 0; i < count; i++) move(&arguments[i], &VALUE(step->arguments[i]));
    if (code->object_count > 0) {
      rvm_retain_all(arguments, count);
      machine->head.top = arguments + count;
      rvm_release_objects(code, registers);
      machine->head.top = arguments;
    }
    for (int32_t i = 0; i < count; i++) {
      move(&R(i), &arguments[i]);
      arguments[i].tag = RVM_TAG_NIL;
    }
    NEXT(step->target);
  }

  /* R[d] = s for each pair in order; pc += target */
  BODY(again) {
    OPERANDS(again);
    const int32_t *pair = step->arguments + step->count + 1, *end = pair + 2 * pair[-1];
    if (IS_WATCHED || frame->function->kind != RVM_KIND_bytecode || (machine->head.fuel -= frame->function->cost) <= 0)
      goto do_tail_call;
    for (; pair < end; pair += 2) move(&R(pair[0]), &VALUE(pair[1]));
    NEXT(step->target);
  }

  /* return R[src] */
  BODY(ret) {
    OPERANDS(ret);
    const int64_t tag = R(step->src).tag, bits = R(step->src).as.i;
    R(step->src).tag = RVM_TAG_NIL;
    rvm_release_objects(frame->function->code, registers);
    machine->head.top = registers;
    if (--machine->head.frame_count == floor) {
      store_words(result, tag, bits);
      return RVM_OK;
    }
    frame--;
    registers = frame->registers;
    pc = frame->pc;
    rvm_value value = {.tag = tag, .as.i = bits};
    const rvm_step_call *const call = (const rvm_step_call *)pc;
    if (call->dst >= 0)
      store(&R(call->dst), value);
    else
      rvm_release(&value);
    NEXT(RVM_CALL_WORDS + call->count);
  }

  /* a tail call has popped its frame and returned *result; continues in the caller */
returned:
  {
    if (machine->head.frame_count == floor) return RVM_OK;
    frame = &machine->frames[machine->head.frame_count - 1];
    registers = frame->registers;
    pc = frame->pc;
    OPERANDS(call);
    if (register_accepts(frame->function->code, step->dst, *result)) goto store_result;
    status = fail_result_type(frame, result);
    goto failed;
  }

  /* pc += target */
  BODY(go) {
    OPERANDS(go);
    NEXT(step->target);
  }

  /* pc += target, target <= 0 */
  BODY(go_back) {
    OPERANDS(go_back);
    if ((machine->head.fuel -= backward_jump_cost(step->target)) <= 0 &&
        (status = rvm_machine_spend(machine, 0, result)))
      goto failed_here;
    NEXT(step->target);
  }

  /* if not R[condition]: pc += target */
  BODY(unless) {
    OPERANDS(unless);
    int32_t is_true;
    if ((status = rvm_value_truth(R(step->condition), &is_true, result))) goto failed_here;
    if (is_true) NEXT(RVM_UNLESS_WORDS);
    if (step->target <= 0 && (machine->head.fuel -= backward_jump_cost(step->target)) <= 0 &&
        (status = rvm_machine_spend(machine, 0, result)))
      goto failed_here;
    NEXT(step->target);
  }

  /* if not R[condition]: pc += target, where R[condition] is a bool and target > 0 */
  BODY(unless_bool) {
    OPERANDS(unless_bool);
    if (R(step->condition).as.i) NEXT(RVM_UNLESS_WORDS);
    NEXT(step->target);
  }

  /* R[dst] = nil */
  BODY(reset) {
    OPERANDS(reset);
    rvm_release(&R(step->dst));
    NEXT(RVM_RESET_WORDS);
  }

/* any_NAME: R[dst] = NAME(left, right), for operands of any type. */
#define SCALAR_OPERATOR(name, function, operands, out, form, fails, meaning)                        \
  BODY(any_##name) {                                                                                \
    OPERANDS(operator);                                                                             \
    rvm_value value;                                                                                \
    if (!rvm_scalar_op_##name(VALUE(step->left), VALUE(step->right), &value)) goto operator_failed; \
    store(&R(step->dst), value);                                                                    \
    NEXT(RVM_OPERATOR_WORDS);                                                                       \
  }
#include "scalar_operators.def"
#undef SCALAR_OPERATOR

/* rr_NAME, rl_NAME: R[dst] = NAME(left, right), for operands of the operator's types.  Fails only if the operator has
   no value for them.  step->dst, step->left and step->right are offsets in bytes. */
#define VALUE_AT(base, bytes) (*(const rvm_value *)((const char *)(base) + (bytes)))
#define STORE_AT(bytes, out, number)                                                \
  do {                                                                              \
    const rvm_value value = RVM_SCALAR_OP_RESULT_##out(number);                     \
    store_words((rvm_value *)((char *)registers + (bytes)), value.tag, value.as.i); \
  } while (0)
#define TYPED_OPERATOR(name, operands, out, right_base)                                         \
  {                                                                                             \
    OPERANDS(operator);                                                                         \
    const rvm_value a = VALUE_AT(registers, step->left), b = VALUE_AT(right_base, step->right); \
    if (!rvm_scalar_op_has_value(RVM_SCALAR_OP_##name, a, b)) goto typed_operator_failed;       \
    STORE_AT(step->dst, out, RVM_SCALAR_OP_EXPANDED(name, RVM_SCALAR_OP_FIELD_##operands));     \
    NEXT(RVM_OPERATOR_WORDS);                                                                   \
  }
#define SCALAR_OPERATOR(name, function, operands, out, form, fails, meaning) \
  BODY(rr_##name) TYPED_OPERATOR(name, operands, out, registers)
#include "scalar_operators.def"
#undef SCALAR_OPERATOR
#define SCALAR_OPERATOR(name, function, operands, out, form, fails, meaning) \
  BODY(rl_##name) TYPED_OPERATOR(name, operands, out, literals_end)
#include "scalar_operators.def"
#undef SCALAR_OPERATOR

/* unless_rr_NAME, unless_rl_NAME: R[dst] = NAME(left, right), a comparison.  The step also performs the next one, an
   `unless` on R[dst]: if R[dst] is false, it jumps by the target of the `unless`. */
#define COMPARE_AND_JUMP(name, right_base)                                                              \
  {                                                                                                     \
    OPERANDS(operator);                                                                                 \
    const rvm_step_unless *const branch = (const rvm_step_unless *)(step + 1);                          \
    const int64_t left = VALUE_AT(registers, step->left).as.i;                                          \
    const int64_t is_true = rvm_scalar_op_##name##_value(left, VALUE_AT(right_base, step->right).as.i); \
    STORE_AT(step->dst, b, is_true);                                                                    \
    if (is_true) NEXT(RVM_OPERATOR_WORDS + RVM_UNLESS_WORDS);                                           \
    NEXT(RVM_OPERATOR_WORDS + (int64_t)branch->target);                                                 \
  }
#define COMPARISON(name) BODY(unless_rr_##name) COMPARE_AND_JUMP(name, registers)
  RVM_COMPARISONS(COMPARISON)
#undef COMPARISON
#define COMPARISON(name) BODY(unless_rl_##name) COMPARE_AND_JUMP(name, literals_end)
  RVM_COMPARISONS(COMPARISON)
#undef COMPARISON

  /* the operator of an rr or rl step has no value for its operands */
typed_operator_failed:
  {
    OPERANDS(operator);
    const rvm_value *right_base = *pc < RVM_STEP_rl_add_i64 ? registers : literals_end;
    status = rvm_scalar_op_fail((*pc - RVM_STEP_any_add_i64) % RVM_SCALAR_OP_COUNT, VALUE_AT(registers, step->left),
                                VALUE_AT(right_base, step->right), result);
    goto failed_here;
  }

  /* the operator of an `any` step does not accept the types of its operands, or has no value for them */
operator_failed:
  {
    OPERANDS(operator);
    status = rvm_scalar_op_fail((*pc - RVM_STEP_any_add_i64) % RVM_SCALAR_OP_COUNT, VALUE(step->left),
                                VALUE(step->right), result);
  }

  /* the step at pc failed with `status` and *result */
failed_here:
  frame->pc = pc;
failed:
  unwind(machine, floor, *result);
  return status;
}
