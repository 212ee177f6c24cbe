/* interpreter.c: runs verified instructions, and calls everything that can be called. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_getattr_np */
#endif
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "machine.h"
#include "prim.h"
#include "verify.h"

rvm_status rvm_fail_stack(const rvm_machine *machine, const rvm_function *function, rvm_value *error) {
  return rvm_fail(error, RVM_STACK_OVERFLOW, "%s: the value stack of %lld values is exhausted", function->name,
                  (long long)(machine->stack_end - machine->stack));
}

/* "NAME: expected 2 arguments (x, y), got 3"; what a closure has captured counts on neither side. */
static rvm_status fail_arity(const rvm_function *function, int64_t count, int32_t captured, rvm_value *error) {
  const rvm_executable *executable = function->machine->executable;
  int32_t expected = function->parameter_count - captured;
  if (expected < 0)
    return rvm_fail(error, RVM_ARGUMENT_ERROR, "%s: %d captured values for %d parameters", function->name, captured,
                    function->parameter_count);
  char names[256] = "";
  for (int32_t i = 0, used = 0; i < expected && used < (int32_t)sizeof names; i++)
    used += snprintf(names + used, sizeof names - (size_t)used, "%s%s", i > 0 ? ", " : "",
                     rvm_executable_string(executable, executable->parameters[function->record->first_parameter + i]));
  return rvm_fail(error, RVM_ARGUMENT_ERROR, "%s: expected %d argument%s%s%s%s, got %lld", function->name, expected,
                  expected == 1 ? "" : "s", expected > 0 ? " (" : "", names, expected > 0 ? ")" : "",
                  (long long)(count - captured));
}

static void clear_borrowed(rvm_value *values, int64_t count) {
  for (int64_t i = 0; i < count; i++) values[i].tag = RVM_TAG_NIL;
}

static void retain_all(const rvm_value *values, int64_t count) {
  for (int64_t i = 0; i < count; i++) rvm_retain(values[i]);
}

static void release_all(rvm_value *values, int64_t count) {
  for (int64_t i = 0; i < count; i++) rvm_release(&values[i]);
}

/* Makes the window of a bytecode or native callee out of the arguments at the top, which become its own. */
static rvm_status open_window(rvm_machine *machine, const rvm_function *function, int64_t count, int32_t captured,
                              rvm_value *error) {
  if (count != function->parameter_count) return fail_arity(function, count, captured, error);
  if (machine->stack_end - machine->top < function->registers) return rvm_fail_stack(machine, function, error);
  machine->top += function->registers;
  return RVM_OK;
}

static void close_window(rvm_machine *machine, rvm_value *registers) {
  for (rvm_value *value = registers; value < machine->top; value++)
    if (value->tag != RVM_TAG_NIL) rvm_release(value);
  machine->top = registers;
}

/* Closes the window and moves the `count` values above it down to where it was. */
static void replace_window(rvm_machine *machine, rvm_value *registers, int64_t count) {
  rvm_value *values = machine->top;
  close_window(machine, registers);
  memmove(registers, values, (size_t)count * sizeof *values);
  rvm_value *left = values < registers + count ? registers + count : values;
  clear_borrowed(left, values + count - left);
}

/* ---- calls that leave the interpreter ---- */

/* Makes good what a packed function got wrong: a failure without an error, a value that may not be stored. */
static rvm_status check_result(const rvm_function *function, rvm_status status, rvm_value *result) {
  int is_value = result->tag >= 0 && result->tag < RVM_TAG_ERROR && result->tag != RVM_TAG_CONTEXT;
  if (status == RVM_OK && is_value) return RVM_OK;
  if (status != RVM_OK && result->tag == RVM_TAG_ERROR) return result->as.error->status;
  if (is_value || result->tag == RVM_TAG_ERROR) rvm_release(result);
  if (status > RVM_OK && status < RVM_STATUS_COUNT)
    return rvm_fail(result, status, "%s failed without saying why", function->name);
  return rvm_fail(result, RVM_CALLBACK_ERROR, "%s returned no valid status and result", function->name);
}

static rvm_status call_packed(rvm_machine *machine, const rvm_function *function, int64_t count, int32_t captured,
                              rvm_value *result) {
  if (function->parameter_count >= 0 && count != function->parameter_count)
    return fail_arity(function, count, captured, result);
  rvm_value *arguments = machine->top;
  machine->top += count;
  *result = (rvm_value){.tag = RVM_TAG_NIL};
  rvm_status status = function->call(function->self, arguments, (int32_t)count, result);
  machine->top = arguments;
  return check_result(function, status, result);
}

enum { STACK_RESERVE_BYTES = 128 << 10 }; /* for what a call needs before the next look */

/* Whether this thread's C stack is nearly used up; threads may have small ones. */
static int stack_is_short(void) {
  static _Thread_local char *lowest;
  pthread_attr_t attributes;
  if (!lowest && pthread_getattr_np(pthread_self(), &attributes) == 0) {
    void *start = NULL;
    size_t size_bytes;
    pthread_attr_getstack(&attributes, &start, &size_bytes);
    pthread_attr_destroy(&attributes);
    lowest = start;
  }
  return lowest && (char *)__builtin_frame_address(0) - lowest < STACK_RESERVE_BYTES;
}

static rvm_status check_stack(const rvm_function *function, rvm_value *error) {
  if (!stack_is_short()) return RVM_OK;
  return rvm_fail(error, RVM_STACK_OVERFLOW, "%s: calls nest deeper than this thread's C stack allows", function->name);
}

/* Whether one more function may be entered. */
static rvm_status check_depth(const rvm_machine *machine, const rvm_function *function, rvm_value *error) {
  if (machine->frame_count + machine->nesting < machine->frame_limit) return RVM_OK;
  return rvm_fail(error, RVM_STACK_OVERFLOW, "%s: calls nest more than %lld deep", function->name,
                  (long long)machine->frame_limit);
}

/* Native code leaves its result, or its error, in the register behind its parameters; or it asks for a tail call, whose
   arguments then lie at the top.  Takes over the arguments. */
static rvm_status call_native(rvm_machine *machine, const rvm_function *function, int64_t count, int32_t captured,
                              rvm_value *result) {
  rvm_value *registers = machine->top;
  rvm_status status;
  if ((status = check_stack(function, result)) || (status = check_depth(machine, function, result)) ||
      (status = open_window(machine, function, count, captured, result))) {
    release_all(registers, count);
    return status;
  }
  machine->nesting++;
  status = function->routine(machine, registers, machine->executable->constants, machine->function_values);
  machine->nesting--;
  if (status == RVM_TAIL_CALL) {
    replace_window(machine, registers, machine->tail.count);
    return RVM_TAIL_CALL;
  }
  *result = registers[count];
  registers[count].tag = RVM_TAG_NIL;
  close_window(machine, registers);
  status = check_result(function, status, result);
  if (status) rvm_error_add_frame(*result, function->name, -1);
  return status;
}

/* ---- the interpreter ---- */

static rvm_value read_argument(const rvm_machine *machine, const rvm_value *registers, uint32_t word) {
  int32_t payload = rvm_argument_payload(word);
  switch (rvm_argument_kind(word)) {
    case RVM_ARGUMENT_REGISTER: return registers[payload];
    case RVM_ARGUMENT_IMMEDIATE: return rvm_int(payload);
    case RVM_ARGUMENT_CONSTANT: return machine->executable->constants[payload];
    case RVM_ARGUMENT_FUNCTION: return machine->function_values[payload];
    case RVM_ARGUMENT_CONTEXT: return (rvm_value){.tag = RVM_TAG_CONTEXT, .as.machine = (rvm_machine *)machine};
    case RVM_ARGUMENT_BOOL: return rvm_bool(payload);
    default: return (rvm_value){.tag = RVM_TAG_NIL};
  }
}

/* A call of vm.builtin.invoke_closure becomes a call of its target: the target's arguments, then the captured values, take
   the place of those of the builtin.  NULL, and nothing changed, where the builtin has to say what is wrong. */
static const rvm_function *unfold_invoke(rvm_machine *machine, int64_t *count, int32_t *captured_count) {
  rvm_value *arguments = machine->top;
  if (*count < 2 || arguments[0].tag != RVM_TAG_CONTEXT) return NULL;
  rvm_value callee = arguments[1];
  if (callee.tag != RVM_TAG_FUNCTION && callee.tag != RVM_TAG_CLOSURE) return NULL;
  const rvm_value *captured;
  const rvm_function *function = rvm_callee_function(callee, &captured, captured_count);
  if (function->machine != machine || function->kind == RVM_KIND_packed || function->kind == RVM_KIND_kernel) return NULL;
  int64_t given = *count - 2;
  if (machine->stack_end - arguments < given + *captured_count) return NULL;
  memmove(arguments, arguments + 2, (size_t)given * sizeof *arguments);
  clear_borrowed(arguments + given, 2);
  for (int32_t i = 0; i < *captured_count; i++) arguments[given + i] = captured[i];
  *count = given + *captured_count;
  return function;
}

/* Takes over the arguments, unless it fails. */
static rvm_status push_frame(rvm_machine *machine, const rvm_function *function, int64_t count, int32_t captured,
                             rvm_value *error) {
  rvm_value *registers = machine->top;
  rvm_status status;
  if ((status = check_depth(machine, function, error)) ||
      (status = open_window(machine, function, count, captured, error)))
    return status;
  machine->frames[machine->frame_count++] =
      (rvm_frame){.function = function, .registers = registers, .pc = function->code};
  return RVM_OK;
}

static void pop_frame(rvm_machine *machine) {
  close_window(machine, machine->frames[--machine->frame_count].registers);
}

/* The 0-based number of the instruction that the frame is at. */
static int64_t instruction_index(const rvm_frame *frame) {
  int64_t index = 0;
  for (const uint32_t *at = frame->function->code; at < frame->pc; at += rvm_instruction_words(at, UINT32_MAX)) index++;
  return index;
}

/* Pops all frames down to `floor`, writing them into the error's trace. */
static void unwind(rvm_machine *machine, int64_t floor, rvm_value error) {
  for (; machine->frame_count > floor; pop_frame(machine)) {
    const rvm_frame *frame = &machine->frames[machine->frame_count - 1];
    int traced = error.as.error->frames < RVM_TRACE_LINES;
    rvm_error_add_frame(error, frame->function->name, traced ? instruction_index(frame) : 0);
  }
}

/* Puts a value into a register, or drops it where `destination` is -1. */
static void store(const rvm_frame *frame, int32_t destination, rvm_value value) {
  if (destination >= 0) {
    rvm_value old = frame->registers[destination];
    frame->registers[destination] = value;
    value = old;
  }
  rvm_release(&value);
}

/* Stores the result of the call that `frame` is at, and moves on to the next instruction. */
static void finish_call(rvm_frame *frame, rvm_value result) {
  const uint32_t *pc = frame->pc;
  frame->pc = pc + 4 + pc[3]; /* opcode, destination, function, count, arguments */
  store(frame, (int32_t)pc[1], result);
}

/* Calls a function that the instrument watches, with the owned arguments at the top. */
static rvm_status call_watched(rvm_machine *machine, rvm_pending call, rvm_value *result) {
  rvm_value *arguments = machine->top;
  rvm_status status;
  if (machine->stack_end - arguments < 2 * call.count) {
    status = rvm_fail_stack(machine, call.function, result);
  } else {
    machine->top += call.count;
    memcpy(machine->top, arguments, (size_t)call.count * sizeof *arguments);
    status = rvm_machine_call_at_top(machine, call.function, call.count, call.captured, result);
    machine->top = arguments;
  }
  release_all(arguments, call.count);
  return status;
}

/* Calls a function with the owned arguments at the top, and what it ends with a tail call to.
   `entered`: a frame was pushed, of a bytecode function that is still to be run; else there is a result. */
static rvm_status enter(rvm_machine *machine, rvm_pending call, int *entered, rvm_value *result) {
  rvm_value *arguments = machine->top;
  rvm_status status;
  *entered = 0;
  while (call.function->kind == RVM_KIND_native) {
    status = call_native(machine, call.function, call.count, call.captured, result);
    if (status != RVM_TAIL_CALL) return status;
    call = machine->tail;
    if (rvm_is_watched(machine, call.function)) return call_watched(machine, call, result);
  }
  if (call.function->kind == RVM_KIND_bytecode) {
    status = push_frame(machine, call.function, call.count, call.captured, result);
    *entered = status == RVM_OK;
    if (*entered) return RVM_OK;
  } else {
    status = call_packed(machine, call.function, call.count, call.captured, result);
  }
  release_all(arguments, call.count);
  return status;
}

/* Lays out the arguments of a call instruction, borrowed, at the top; gives what is to be called. */
static rvm_status lay_out(rvm_machine *machine, const rvm_frame *frame, const uint32_t *callee, rvm_pending *call,
                          rvm_value *error) {
  const rvm_function *function = &machine->functions[callee[0]];
  const uint32_t *words = callee + 2;
  int64_t count = callee[1];
  rvm_value *arguments = machine->top;
  rvm_status status = rvm_machine_spend(machine, function->cost, error);
  if (status) return status;
  if (machine->stack_end - arguments < count) return rvm_fail_stack(machine, function, error);
  for (int64_t i = 0; i < count; i++) arguments[i] = read_argument(machine, frame->registers, words[i]);
  *call = (rvm_pending){.function = function, .count = count};
  const rvm_function *target = function->invokes ? unfold_invoke(machine, &call->count, &call->captured) : NULL;
  if (target) call->function = target;
  return RVM_OK;
}

/* One call instruction: the callee's frame is pushed, or its result stored and the frame's pc moved on. */
static rvm_status step_call(rvm_machine *machine, rvm_frame *frame, rvm_value *error) {
  rvm_value *arguments = machine->top, result;
  rvm_pending call;
  rvm_status status = lay_out(machine, frame, frame->pc + 2, &call, error);
  if (status) return status;
  int entered = 0;
  int watched = rvm_is_watched(machine, call.function);
  if (call.function->kind == RVM_KIND_bytecode && !watched) {
    status = push_frame(machine, call.function, call.count, call.captured, error);
    if (status)
      clear_borrowed(arguments, call.count);
    else
      retain_all(arguments, call.count);
    return status;
  }
  if (watched) {
    status = rvm_machine_call_at_top(machine, call.function, call.count, call.captured, &result);
  } else if (call.function->kind == RVM_KIND_native) {
    retain_all(arguments, call.count);
    status = enter(machine, call, &entered, &result);
    if (entered) return RVM_OK;
  } else {
    status = call_packed(machine, call.function, call.count, call.captured, &result);
    clear_borrowed(arguments, call.count);
  }
  if (status) {
    *error = result;
    return status;
  }
  finish_call(frame, result);
  return RVM_OK;
}

/* One tail call instruction: the top frame gives way to the callee; it stays while the instrument watches the call. */
static rvm_status step_tail_call(rvm_machine *machine, rvm_frame *frame, int *entered, rvm_value *result) {
  rvm_pending call;
  rvm_status status = lay_out(machine, frame, frame->pc + 1, &call, result);
  if (status) return status;
  if (rvm_is_watched(machine, call.function)) {
    *entered = 0;
    status = rvm_machine_call_at_top(machine, call.function, call.count, call.captured, result);
    if (!status) pop_frame(machine);
    return status;
  }
  retain_all(machine->top, call.count);
  replace_window(machine, frame->registers, call.count);
  machine->frame_count--;
  return enter(machine, call, entered, result);
}

static rvm_status step_prim(rvm_machine *machine, rvm_frame *frame, rvm_value *error) {
  const uint32_t *pc = frame->pc;
  uint32_t row = pc[2];
  rvm_value a = read_argument(machine, frame->registers, pc[4]);
  rvm_value b = pc[3] > 1 ? read_argument(machine, frame->registers, pc[5]) : (rvm_value){.tag = RVM_TAG_NIL};
  rvm_value result;
  int done = 0;
  switch ((enum rvm_prim_operator)row) {
#define PRIM_OPERATOR(name, function, operands, out, form, fails, meaning) \
  case RVM_PRIM_##name: done = rvm_prim_##name(a, b, &result); break;
#include "prim_operators.def"
#undef PRIM_OPERATOR
    case RVM_PRIM_COUNT: break; /* refused by the verifier */
  }
  if (!done) return rvm_prim_fail((int32_t)row, a, b, error);
  store(frame, (int32_t)pc[1], result);
  frame->pc = pc + 4 + pc[3];
  return RVM_OK;
}

static rvm_status step_goto(rvm_machine *machine, rvm_frame *frame, uint32_t jump, rvm_value *error) {
  rvm_status status = (int32_t)jump <= 0 ? rvm_machine_spend(machine, 1, error) : RVM_OK;
  if (!status) frame->pc += (int32_t)jump;
  return status;
}

static rvm_status step_if(rvm_machine *machine, rvm_frame *frame, rvm_value *error) {
  int32_t truth;
  rvm_status status = rvm_value_truth(frame->registers[frame->pc[1]], &truth, error);
  if (status) return status;
  if (!truth) return step_goto(machine, frame, frame->pc[2], error);
  frame->pc += 3;
  return RVM_OK;
}

/* Returns from the top frame. */
static rvm_value step_ret(rvm_machine *machine, rvm_frame *frame) {
  rvm_value *source = &frame->registers[frame->pc[1]], value = *source;
  source->tag = RVM_TAG_NIL;
  pop_frame(machine);
  return value;
}

/* Runs the top frame until it returns. */
static rvm_status run(rvm_machine *machine, rvm_value *result) {
  const int64_t floor = machine->frame_count - 1;
  int entered;
  for (;;) {
    rvm_frame *frame = &machine->frames[machine->frame_count - 1];
    rvm_status status = RVM_OK;
    switch ((enum rvm_opcode)frame->pc[0]) {
      case RVM_OP_call: status = step_call(machine, frame, result); break;
      case RVM_OP_ret:
        *result = step_ret(machine, frame);
        if (machine->frame_count == floor) return RVM_OK;
        finish_call(frame - 1, *result);
        break;
      case RVM_OP_tail_call:
        status = step_tail_call(machine, frame, &entered, result);
        if (status || entered) break;
        if (machine->frame_count == floor) return RVM_OK;
        finish_call(frame - 1, *result);
        break;
      case RVM_OP_prim: status = step_prim(machine, frame, result); break;
      case RVM_OP_goto: status = step_goto(machine, frame, frame->pc[1], result); break;
      case RVM_OP_if: status = step_if(machine, frame, result); break;
      case RVM_OP_reset:
        rvm_release(&frame->registers[frame->pc[1]]);
        frame->pc += 2;
        break;
      case RVM_OP_COUNT: break; /* refused by the verifier */
    }
    if (status) {
      unwind(machine, floor, *result);
      return status;
    }
  }
}

/* ---- calls from C ---- */

static rvm_status call_unwatched(rvm_machine *machine, const rvm_function *function, int64_t count, int32_t captured,
                                 rvm_value *result) {
  rvm_value *arguments = machine->top;
  rvm_status status = check_stack(function, result);
  if (status) {
    clear_borrowed(arguments, count);
    return status;
  }
  if (function->kind == RVM_KIND_packed || function->kind == RVM_KIND_kernel) {
    status = call_packed(machine, function, count, captured, result);
    clear_borrowed(arguments, count);
  } else {
    int entered;
    retain_all(arguments, count);
    status = enter(machine, (rvm_pending){.function = function, .count = count, .captured = captured}, &entered, result);
    if (entered) status = run(machine, result);
  }
  return status;
}

rvm_status rvm_machine_call_at_top(rvm_machine *machine, const rvm_function *function, int64_t count, int32_t captured,
                                   rvm_value *result) {
  if (!rvm_is_watched(machine, function)) return call_unwatched(machine, function, count, captured, result);
  rvm_value *arguments = machine->top;
  int32_t skip;
  *result = (rvm_value){.tag = RVM_TAG_NIL};
  rvm_status status = rvm_instrument_before(machine, function, count, &skip, result);
  if (!status && !skip) {
    status = call_unwatched(machine, function, count, captured, result);
    return rvm_instrument_after(machine, function, count, status, result);
  }
  clear_borrowed(arguments, count);
  return status;
}

/* Puts the borrowed arguments, then what a closure has captured, at the top. */
static rvm_status lay_out_callee(rvm_machine *machine, rvm_value callee, const rvm_value *arguments, int32_t count,
                                 rvm_pending *call, rvm_value *error) {
  char text[RVM_DESCRIPTION_BYTES];
  if (callee.tag != RVM_TAG_FUNCTION && callee.tag != RVM_TAG_CLOSURE)
    return rvm_fail(error, RVM_TYPE_ERROR, "call: expected a function or closure, got %s",
                    rvm_value_describe(callee, text));
  const rvm_value *captured;
  call->function = rvm_callee_function(callee, &captured, &call->captured);
  call->count = (int64_t)count + call->captured;
  if (call->function->machine != machine)
    return rvm_fail(error, RVM_TYPE_ERROR, "call: the function belongs to another machine");
  if (machine->stack_end - machine->top < call->count) return rvm_fail_stack(machine, call->function, error);
  for (int32_t i = 0; i < count; i++) machine->top[i] = arguments[i];
  for (int32_t i = 0; i < call->captured; i++) machine->top[count + i] = captured[i];
  return RVM_OK;
}

rvm_status rvm_machine_apply(rvm_machine *machine, rvm_value callee, const rvm_value *arguments, int32_t count,
                             rvm_value *result) {
  rvm_pending call;
  rvm_status status = lay_out_callee(machine, callee, arguments, count, &call, result);
  return status ? status : rvm_machine_call_at_top(machine, call.function, call.count, call.captured, result);
}

rvm_status rvm_machine_tail_call(rvm_machine *machine, rvm_value callee, const rvm_value *arguments, int32_t count,
                                 rvm_value *failure) {
  const rvm_value invoked[] = {{.tag = RVM_TAG_CONTEXT, .as.machine = machine}, callee};
  rvm_value error;
  rvm_status status = rvm_check_arguments(RVM_BUILTIN_invoke_closure, "cf", invoked, 2, &error);
  if (!status) status = lay_out_callee(machine, callee, arguments, count, &machine->tail, &error);
  if (!status) {
    retain_all(machine->top, machine->tail.count);
    return RVM_TAIL_CALL;
  }
  rvm_release(failure);
  *failure = error;
  return status;
}
