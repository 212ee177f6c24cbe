/* interpreter.c: runs verified instructions, and calls everything that can be called. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_getattr_np */
#endif
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "machine.h"
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

/* Makes the window of a bytecode or native callee out of the borrowed arguments at the top. */
static rvm_status open_window(rvm_machine *machine, const rvm_function *function, int64_t count, int32_t captured,
                              rvm_value *error) {
  if (count != function->parameter_count) return fail_arity(function, count, captured, error);
  if (machine->stack_end - machine->top < function->registers) return rvm_fail_stack(machine, function, error);
  for (int64_t i = 0; i < count; i++) rvm_retain(machine->top[i]);
  machine->top += function->registers;
  return RVM_OK;
}

static void close_window(rvm_machine *machine, rvm_value *registers) {
  for (rvm_value *value = registers; value < machine->top; value++)
    if (value->tag != RVM_TAG_NIL) rvm_release(value);
  machine->top = registers;
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

/* Native code leaves its result, or its error, in the register behind its parameters. */
static rvm_status call_native(rvm_machine *machine, const rvm_function *function, int64_t count, int32_t captured,
                              rvm_value *result) {
  rvm_value *registers = machine->top;
  rvm_status status = open_window(machine, function, count, captured, result);
  if (status) return status;
  status = function->routine(machine, registers, machine->executable->constants, machine->function_values);
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

/* A call of vm.builtin.invoke_closure whose target is bytecode becomes a call of the target: its arguments, then the
   captured values, take the place of those of the builtin.  NULL, and nothing changed, in all other cases. */
static const rvm_function *unfold_invoke(rvm_machine *machine, int64_t *count, int32_t *captured_count) {
  rvm_value *arguments = machine->top;
  if (*count < 2 || arguments[0].tag != RVM_TAG_CONTEXT) return NULL;
  rvm_value callee = arguments[1];
  if (callee.tag != RVM_TAG_FUNCTION && callee.tag != RVM_TAG_CLOSURE) return NULL;
  const rvm_value *captured;
  const rvm_function *function = rvm_callee_function(callee, &captured, captured_count);
  if (function->machine != machine || function->kind != RVM_KIND_bytecode) return NULL;
  int64_t given = *count - 2;
  if (machine->stack_end - arguments < given + *captured_count) return NULL;
  memmove(arguments, arguments + 2, (size_t)given * sizeof *arguments);
  clear_borrowed(arguments + given, 2);
  for (int32_t i = 0; i < *captured_count; i++) arguments[given + i] = captured[i];
  *count = given + *captured_count;
  return function;
}

static rvm_status push_frame(rvm_machine *machine, const rvm_function *function, int64_t count, int32_t captured,
                             rvm_value *error) {
  rvm_value *registers = machine->top;
  if (machine->frame_count >= machine->frame_limit)
    return rvm_fail(error, RVM_STACK_OVERFLOW, "%s: calls nest more than %lld deep", function->name,
                    (long long)machine->frame_limit);
  rvm_status status = open_window(machine, function, count, captured, error);
  if (status) return status;
  machine->frames[machine->frame_count++] =
      (rvm_frame){.function = function, .registers = registers, .pc = function->code};
  return RVM_OK;
}

/* push_frame for a function that the instrument watches; nothing is pushed where it has the call skipped. */
static rvm_status push_watched_frame(rvm_machine *machine, const rvm_function *function, int64_t count, int32_t captured,
                                     int32_t *skip, rvm_value *error) {
  rvm_status status = rvm_instrument_before(machine, function, count, skip, error);
  if (status || *skip) return status;
  status = push_frame(machine, function, count, captured, error);
  if (!status) {
    machine->frames[machine->frame_count - 1].watched = 1;
    return RVM_OK;
  }
  clear_borrowed(machine->top, count);
  return rvm_instrument_after(machine, function, count, status, error);
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
  while (machine->frame_count > floor) {
    const rvm_frame frame = machine->frames[machine->frame_count - 1];
    int traced = error.as.error->frames < RVM_TRACE_LINES;
    rvm_error_add_frame(error, frame.function->name, traced ? instruction_index(&frame) : 0);
    pop_frame(machine);
    if (!frame.watched) continue;
    rvm_instrument_after(machine, frame.function, frame.function->parameter_count, error.as.error->status, &error);
  }
}

/* Stores the result of the call that `frame` is at, and moves on to the next instruction. */
static void finish_call(rvm_frame *frame, rvm_value result) {
  const uint32_t *pc = frame->pc;
  int32_t destination = (int32_t)pc[1];
  frame->pc = pc + 4 + pc[3]; /* opcode, destination, function, count, arguments */
  if (destination >= 0) {
    rvm_value old = frame->registers[destination];
    frame->registers[destination] = result;
    result = old;
  }
  rvm_release(&result);
}

/* One call instruction: the callee's frame is pushed, or its result stored and the frame's pc moved on. */
static rvm_status step_call(rvm_machine *machine, rvm_frame *frame, rvm_value *error) {
  const uint32_t *pc = frame->pc;
  const rvm_function *function = &machine->functions[pc[2]];
  int64_t count = pc[3];
  int32_t captured = 0;
  rvm_value *arguments = machine->top;
  rvm_status status = rvm_machine_spend(machine, function->cost, error);
  if (status) return status;
  if (machine->stack_end - arguments < count) return rvm_fail_stack(machine, function, error);
  for (int64_t i = 0; i < count; i++) arguments[i] = read_argument(machine, frame->registers, pc[4 + i]);
  const rvm_function *target = function->invokes ? unfold_invoke(machine, &count, &captured) : NULL;
  if (target) function = target;
  int32_t watched = rvm_is_watched(machine, function), skip = 0;
  if (function->kind == RVM_KIND_bytecode) {
    status = watched ? push_watched_frame(machine, function, count, captured, &skip, error)
                     : push_frame(machine, function, count, captured, error);
    if (status || skip) clear_borrowed(arguments, count);
    if (skip && !status) finish_call(frame, (rvm_value){.tag = RVM_TAG_NIL});
    return status;
  }
  rvm_value result;
  if (function->kind == RVM_KIND_native || watched) {
    status = rvm_machine_call_at_top(machine, function, count, 0, &result);
  } else {
    status = call_packed(machine, function, count, 0, &result);
    clear_borrowed(arguments, count);
  }
  if (status) {
    *error = result;
    return status;
  }
  finish_call(frame, result);
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

/* Returns from the top frame: *result is what it returns. */
static rvm_status step_ret(rvm_machine *machine, rvm_frame *frame, rvm_value *result) {
  rvm_value *source = &frame->registers[frame->pc[1]];
  *result = *source;
  source->tag = RVM_TAG_NIL;
  pop_frame(machine);
  if (!frame->watched) return RVM_OK;
  return rvm_instrument_after(machine, frame->function, frame->function->parameter_count, RVM_OK, result);
}

/* Runs the top frame until it returns. */
static rvm_status run(rvm_machine *machine, rvm_value *result) {
  const int64_t floor = machine->frame_count - 1;
  for (;;) {
    rvm_frame *frame = &machine->frames[machine->frame_count - 1];
    rvm_status status = RVM_OK;
    switch ((enum rvm_opcode)frame->pc[0]) {
      case RVM_OP_call: status = step_call(machine, frame, result); break;
      case RVM_OP_ret:
        status = step_ret(machine, frame, result);
        if (machine->frame_count == floor) return status;
        if (!status) finish_call(frame - 1, *result);
        break;
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

/* ---- calls on the C stack ---- */

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

static rvm_status call_nested(rvm_machine *machine, const rvm_function *function, int64_t count, int32_t captured,
                              rvm_value *result) {
  if (function->kind == RVM_KIND_native) return call_native(machine, function, count, captured, result);
  if (function->kind != RVM_KIND_bytecode) return call_packed(machine, function, count, captured, result);
  rvm_status status = push_frame(machine, function, count, captured, result);
  return status ? status : run(machine, result);
}

static rvm_status call_unwatched(rvm_machine *machine, const rvm_function *function, int64_t count, int32_t captured,
                                 rvm_value *result) {
  rvm_value *arguments = machine->top;
  rvm_status status;
  if (stack_is_short()) {
    status = rvm_fail(result, RVM_STACK_OVERFLOW, "%s: calls nest deeper than this thread's C stack allows", function->name);
  } else if (machine->nesting < RVM_NESTING_LIMIT) {
    machine->nesting++;
    status = call_nested(machine, function, count, captured, result);
    machine->nesting--;
  } else {
    status = rvm_fail(result, RVM_STACK_OVERFLOW, "%s: calls nest more than %d deep on the C stack", function->name,
                      RVM_NESTING_LIMIT);
  }
  clear_borrowed(arguments, count);
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

rvm_status rvm_machine_apply(rvm_machine *machine, rvm_value callee, const rvm_value *arguments, int32_t count,
                             rvm_value *result) {
  char text[RVM_DESCRIPTION_BYTES];
  if (callee.tag != RVM_TAG_FUNCTION && callee.tag != RVM_TAG_CLOSURE)
    return rvm_fail(result, RVM_TYPE_ERROR, "call: expected a function or closure, got %s",
                    rvm_value_describe(callee, text));
  const rvm_value *captured;
  int32_t captured_count;
  const rvm_function *function = rvm_callee_function(callee, &captured, &captured_count);
  if (function->machine != machine)
    return rvm_fail(result, RVM_TYPE_ERROR, "call: the function belongs to another machine");
  int64_t total = (int64_t)count + captured_count;
  if (machine->stack_end - machine->top < total) return rvm_fail_stack(machine, function, result);
  for (int32_t i = 0; i < count; i++) machine->top[i] = arguments[i];
  for (int32_t i = 0; i < captured_count; i++) machine->top[count + i] = captured[i];
  return rvm_machine_call_at_top(machine, function, total, captured_count, result);
}
