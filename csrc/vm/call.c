/* call.c: calls of bytecode, native and packed functions, by the host, by C code and by each other.  Arguments are
   passed at the top of the value stack, where they become the first registers of a bytecode or native callee
   (machine.h). */
#include "call.h"

#include <stdio.h>
#include <string.h>

#include "debugger.h"
#include "instrument.h"
#include "private_tensor.h"
#include "registry.h"
#include "tensor.h"

/* Fails with ARGUMENT_ERROR and a message such as "NAME: expected 2 arguments (x, y), got 3".  The numbers do not
   include the `captured` values of a closure. */
static rvm_status fail_arity(const rvm_function *function, int64_t count, int32_t captured, rvm_value *error) {
  const rvm_executable *executable = function->machine->executable;
  int32_t expected = function->parameter_count - captured;
  if (expected < 0)
    return rvm_fail(error, RVM_ARGUMENT_ERROR,
                    "%s: the closure captured %d value%s, but the function has only %d parameter%s", function->name,
                    captured, RVM_PLURAL(captured), function->parameter_count, RVM_PLURAL(function->parameter_count));
  char names[256] = "";
  for (int32_t i = 0, used = 0; i < expected && used < (int32_t)sizeof names; i++)
    used += snprintf(names + used, sizeof names - (size_t)used, "%s%s", i > 0 ? ", " : "",
                     rvm_executable_string(executable, executable->parameters[function->record->first_parameter + i]));
  return rvm_fail(error, RVM_ARGUMENT_ERROR, "%s: expected %d argument%s%s%s%s, got %lld", function->name, expected,
                  RVM_PLURAL(expected), expected > 0 ? " (" : "", names, expected > 0 ? ")" : "",
                  (long long)(count - captured));
}

/* ---- windows: the registers of a function on the value stack ---- */

/* Opens the window of a bytecode or native callee by moving the top of the stack past its registers.  The first
   registers are the `count` arguments, which the window now owns.  On failure, the top is unchanged. */
static rvm_status open_window(rvm_machine *machine, const rvm_function *function, int64_t count, int32_t captured,
                              rvm_value *error) {
  if (count != function->parameter_count) return fail_arity(function, count, captured, error);
  if (machine->head.stack_end - machine->head.top < function->registers)
    return rvm_fail_stack(machine, function, error);
  machine->head.top += function->registers;
  return RVM_OK;
}

/* Closes the window of a native function: releases the registers from `registers` to the top of the stack. */
static void close_window(rvm_machine *machine, rvm_value *registers) {
  for (rvm_value *value = registers; value < machine->head.top; value++)
    if (rvm_value_is_object(*value)) rvm_release(value);
  machine->head.top = registers;
}

/* Closes a window of `count` registers, and moves the arguments of the pending tail call from the top of the stack to
   the start of the window.  Restores machine->tail at the end, because a released object may run host code that calls
   the machine. */
static void replace_window(rvm_machine *machine, rvm_value *window, int64_t count) {
  const rvm_pending tail = machine->tail;
  rvm_value *arguments = machine->head.top;
  machine->head.top = arguments + tail.count;
  rvm_release_all(window, count);
  machine->head.top = window;
  rvm_machine_move_down(machine, arguments, tail.count);
  machine->tail = tail;
}

/* ---- packed and native functions ---- */

/* Checks the status and the result of a packed or native function, and returns the status of the call.  Stores an error
   in *result if the function failed without one, or succeeded with a result whose tag no register may hold. */
static rvm_status check_result(const rvm_function *function, rvm_status status, rvm_value *result) {
  int is_value = result->tag >= 0 && result->tag < RVM_TAG_ERROR && result->tag != RVM_TAG_CONTEXT;
  if (status == RVM_OK && is_value) return RVM_OK;
  if (status != RVM_OK && result->tag == RVM_TAG_ERROR) return result->as.error->status;
  if (is_value || result->tag == RVM_TAG_ERROR) rvm_release(result);
  if (status > RVM_OK && status < RVM_STATUS_COUNT)
    return rvm_fail(result, status, "%s failed without an error message", function->name);
  return rvm_fail(result, RVM_CALLBACK_ERROR, "%s returned an invalid status or result", function->name);
}

rvm_status rvm_machine_admit_result(rvm_machine *machine, rvm_status status, rvm_value *result) {
  if (status || !rvm_value_needs_admission(*result)) return status;
  rvm_value given = *result;
  status = rvm_value_admit(machine->pool, given, result);
  rvm_release(&given);
  return status;
}

/* Calls a packed function or kernel with borrowed arguments at the top of the stack.  If it is a function of the host,
   admits its result (rvm_value_admit), and makes the machine poll soon (rvm_machine_poll_next). */
static rvm_status call_packed(rvm_machine *machine, const rvm_function *function, int64_t count, int32_t captured,
                              rvm_value *result) {
  if (function->parameter_count >= 0 && count != function->parameter_count)
    return fail_arity(function, count, captured, result);
  rvm_value *arguments = machine->head.top;
  machine->head.top += count;
  *result = (rvm_value){.tag = RVM_TAG_NIL};
  rvm_status status = function->call(function->self, arguments, (int32_t)count, result);
  machine->head.top = arguments;
  status = check_result(function, status, result);
  const int is_builtin = function->cost != RVM_LONG_CALL_COST; /* functions of the host have this cost */
  if (function->kind != RVM_KIND_packed || is_builtin) return status;
  rvm_machine_poll_next(machine);
  return rvm_machine_admit_result(machine, status, result);
}

/* Fails with STACK_OVERFLOW if this thread's C stack has too little space for another call. */
static rvm_status check_stack(const rvm_machine *machine, const rvm_function *function, rvm_value *error) {
  if ((const char *)__builtin_frame_address(0) >= machine->head.lowest) return RVM_OK;
  return rvm_fail(error, RVM_STACK_OVERFLOW, "%s: call depth exceeds this thread's C stack", function->name);
}

/* Fails with STACK_OVERFLOW if the limit of nested calls is reached. */
static rvm_status check_depth(const rvm_machine *machine, const rvm_function *function, rvm_value *error) {
  if (machine->head.frame_count + machine->head.nesting < machine->head.frame_limit) return RVM_OK;
  return rvm_fail(error, RVM_STACK_OVERFLOW, "%s: call depth exceeds the limit of %lld", function->name,
                  (long long)machine->head.frame_limit);
}

/* Calls a native function, and takes ownership of the arguments at the top of the stack, also on failure.  If the
   function ends with a tail call, returns RVM_TAIL_CALL: machine->tail is the call, and its arguments are at the top of
   the stack. */
static rvm_status call_native(rvm_machine *machine, const rvm_function *function, int64_t count, int32_t captured,
                              rvm_value *result) {
  rvm_value *registers = machine->head.top;
  rvm_status status;
  if ((status = check_stack(machine, function, result)) || (status = check_depth(machine, function, result)) ||
      (status = open_window(machine, function, count, captured, result))) {
    rvm_release_top(machine, count);
    return status;
  }
  machine->head.nesting++;
  status = function->routine(machine, registers, machine->head.constants, machine->head.function_values);
  /* Save failed_at before the debugger runs, because the debugger may call the machine. */
  const int64_t failed_at = machine->head.failed_at;
  machine->head.failed_at = -1;
  if (status > RVM_OK) rvm_debugger_failed(machine, registers[count]);
  machine->head.nesting--;
  if (status == RVM_TAIL_CALL) {
    replace_window(machine, registers, machine->head.top - registers);
    return RVM_TAIL_CALL;
  }
  /* The function has stored its result or error in the register after its parameters. */
  *result = registers[count];
  registers[count].tag = RVM_TAG_NIL;
  close_window(machine, registers);
  status = check_result(function, status, result);
  if (status) rvm_error_add_frame(*result, function->name, failed_at);
  return status;
}

/* ---- bytecode ---- */

/* Pushes a frame for a bytecode function, which takes ownership of the arguments unless this fails. */
static rvm_status push_frame(rvm_machine *machine, rvm_pending call, rvm_value *error) {
  rvm_value *registers = machine->head.top;
  rvm_status status;
  if ((status = check_depth(machine, call.function, error)) ||
      (status = open_window(machine, call.function, call.count, call.captured, error)))
    return status;
  machine->frames[machine->head.frame_count++] =
      (rvm_frame){.function = call.function, .registers = registers, .pc = call.function->code->steps};
  return RVM_OK;
}

void rvm_machine_unfold_invoke(rvm_machine *machine, rvm_pending *call) {
  rvm_value *arguments = machine->head.top;
  if (call->count < 2 || arguments[0].tag != RVM_TAG_CONTEXT) return;
  rvm_value callee = arguments[1];
  if (callee.tag != RVM_TAG_FUNCTION && callee.tag != RVM_TAG_CLOSURE) return;
  const rvm_value *captured;
  int32_t captured_count;
  const rvm_function *function = rvm_callee_function(callee, &captured, &captured_count);
  if (function->machine != machine || function->kind == RVM_KIND_packed || function->kind == RVM_KIND_kernel) return;
  int64_t given = call->count - 2;
  if (machine->head.stack_end - arguments < given + captured_count) return;
  memmove(arguments, arguments + 2, (size_t)given * sizeof *arguments);
  rvm_forget_all(arguments + given, 2);
  for (int32_t i = 0; i < captured_count; i++) arguments[given + i] = captured[i];
  *call = (rvm_pending){.function = function, .count = given + captured_count, .captured = captured_count};
}

/* Makes the tail call with which a native function ended, and whose callee the instrument watches.  Takes ownership of
   the arguments at the top of the stack. */
static rvm_status call_watched(rvm_machine *machine, rvm_pending call, rvm_value *result) {
  rvm_value *arguments = machine->head.top;
  rvm_status status;
  if (machine->head.stack_end - arguments < 2 * call.count) {
    status = rvm_fail_stack(machine, call.function, result);
  } else {
    /* Call the function with a borrowed copy of the arguments above the owned ones. */
    machine->head.top += call.count;
    memcpy(machine->head.top, arguments, (size_t)call.count * sizeof *arguments);
    status = rvm_machine_call_at_top(machine, call.function, call.count, call.captured, result);
    machine->head.top = arguments;
  }
  rvm_release_top(machine, call.count);
  return status;
}

rvm_status rvm_machine_start(rvm_machine *machine, rvm_pending call, int *entered, rvm_value *result) {
  rvm_status status;
  *entered = 0;
  /* A selective library has no native functions, so the compiler omits this loop there. */
  while (call.function->kind == RVM_KIND_native && !RVM_IS_SELECTIVE) {
    status = call_native(machine, call.function, call.count, call.captured, result);
    if (status != RVM_TAIL_CALL) return status;
    call = machine->tail;
    if (rvm_is_watched(machine, call.function)) return call_watched(machine, call, result);
  }
  if (call.function->kind == RVM_KIND_bytecode) {
    status = push_frame(machine, call, result);
    *entered = status == RVM_OK;
    if (*entered) return RVM_OK;
  } else {
    status = call_packed(machine, call.function, call.count, call.captured, result);
  }
  rvm_release_top(machine, call.count);
  return status;
}

/* ---- calls from C ---- */

/* Like rvm_machine_call_at_top, but does not call the instrument for this call. */
static rvm_status call_without_instrument(rvm_machine *machine, const rvm_function *function, int64_t count,
                                          int32_t captured, rvm_value *result) {
  rvm_value *arguments = machine->head.top;
  rvm_status status = check_stack(machine, function, result);
  if (status) {
    rvm_forget_all(arguments, count);
    return status;
  }
  if (function->kind == RVM_KIND_packed || function->kind == RVM_KIND_kernel) {
    status = call_packed(machine, function, count, captured, result);
    rvm_forget_all(arguments, count);
  } else {
    int entered;
    rvm_retain_all(arguments, count);
    status = rvm_machine_start(machine, (rvm_pending){.function = function, .count = count, .captured = captured},
                               &entered, result);
    if (entered) status = machine->interpret(machine, result);
  }
  return status;
}

rvm_status rvm_machine_call_at_top(rvm_machine *machine, const rvm_function *function, int64_t count, int32_t captured,
                                   rvm_value *result) {
  if (!rvm_is_watched(machine, function)) return call_without_instrument(machine, function, count, captured, result);
  rvm_value *arguments = machine->head.top;
  int32_t skip;
  *result = (rvm_value){.tag = RVM_TAG_NIL};
  rvm_status status = rvm_instrument_before(machine, function, count, &skip, result);
  if (!status && !skip) {
    status = call_without_instrument(machine, function, count, captured, result);
    return rvm_instrument_after(machine, function, count, status, result);
  }
  rvm_forget_all(arguments, count);
  return status;
}

rvm_status rvm_fail_callee(rvm_value callee, rvm_value *error) {
  char text[RVM_DESCRIPTION_BYTES];
  return rvm_fail(error, RVM_TYPE_ERROR, "call: expected a function or closure, got %s",
                  rvm_value_describe(callee, text));
}

/* The number of captured values that cost 1 unit of fuel: copying a value costs as much as executing four words of
   code. */
enum { CAPTURED_PER_FUEL = RVM_WORDS_PER_FUEL / 4 };

/* Copies the arguments, then the values that a closure captured, to the top of the stack as borrowed values.  Stores
   the call in *call. */
static rvm_status push_callee_operands(rvm_machine *machine, rvm_value callee, const rvm_value *arguments,
                                       int32_t count, rvm_pending *call, rvm_value *error) {
  if (callee.tag != RVM_TAG_FUNCTION && callee.tag != RVM_TAG_CLOSURE) return rvm_fail_callee(callee, error);
  const rvm_value *captured;
  call->function = rvm_callee_function(callee, &captured, &call->captured);
  call->count = (int64_t)count + call->captured;
  if (call->function->machine != machine)
    return rvm_fail(error, RVM_TYPE_ERROR, "call: the function belongs to another machine");
  if (machine->head.stack_end - machine->head.top < call->count) return rvm_fail_stack(machine, call->function, error);
  for (int32_t i = 0; i < count; i++) machine->head.top[i] = arguments[i];
  for (int32_t i = 0; i < call->captured; i++) machine->head.top[count + i] = captured[i];
  return RVM_OK;
}

rvm_status rvm_machine_apply(rvm_machine *machine, rvm_value callee, const rvm_value *arguments, int32_t count,
                             rvm_value *result) {
  rvm_pending call;
  rvm_status status = push_callee_operands(machine, callee, arguments, count, &call, result);
  if (status) return status;
  machine->head.fuel -= call.function->cost + call.captured / CAPTURED_PER_FUEL;
  return rvm_machine_call_at_top(machine, call.function, call.count, call.captured, result);
}

rvm_status rvm_machine_tail_call(rvm_machine *machine, rvm_value callee, const rvm_value *arguments, int32_t count,
                                 rvm_value *failure) {
  const rvm_value invoked[] = {{.tag = RVM_TAG_CONTEXT, .as.machine = machine}, callee};
  rvm_value error;
  int is_callable = callee.tag == RVM_TAG_FUNCTION || callee.tag == RVM_TAG_CLOSURE;
  /* If the callee cannot be called, let the builtin fail, so that the message is the same as for an ordinary call. */
  rvm_status status = is_callable ? RVM_OK : rvm_builtin_invoke_closure(NULL, invoked, 2, &error);
  if (!status) status = push_callee_operands(machine, callee, arguments, count, &machine->tail, &error);
  if (!status) {
    rvm_retain_all(machine->head.top, machine->tail.count);
    return RVM_TAIL_CALL;
  }
  rvm_release(failure);
  *failure = error;
  return status;
}

rvm_status rvm_machine_finish_tail_call(rvm_machine *machine, rvm_value *window, int32_t count, rvm_value *result) {
  int entered;
  replace_window(machine, window, count);
  rvm_status status = rvm_machine_start(machine, machine->tail, &entered, result);
  return entered ? machine->interpret(machine, result) : status;
}

/* ---- calls by the host ---- */

static void release_admitted(rvm_value *values, int32_t count) {
  if (!values) return;
  for (int32_t i = 0; i < count; i++) rvm_release(&values[i]);
  rvm_free(values);
}

/* Admits all arguments (rvm_value_admit).  Stores them in a new array *admitted, which release_admitted frees.  Stores
   NULL if no argument needs admission. */
static rvm_status admit_arguments(rvm_machine *machine, const rvm_value *arguments, int32_t count, rvm_value **admitted,
                                  rvm_value *error) {
  int32_t first = 0;
  *admitted = NULL;
  while (first < count && !rvm_value_needs_admission(arguments[first])) first++;
  if (first == count) return RVM_OK;
  rvm_value *values = rvm_allocate((size_t)count * sizeof *values);
  if (!values) return rvm_out_of_memory(error);
  for (int32_t i = 0; i < count; i++) {
    rvm_status status = rvm_value_admit(machine->pool, arguments[i], &values[i]);
    if (!status) continue;
    *error = values[i];
    release_admitted(values, i);
    return status;
  }
  *admitted = values;
  return RVM_OK;
}

rvm_status rvm_machine_invoke(rvm_machine *machine, rvm_value callee, const rvm_value *arguments, int32_t count,
                              rvm_value *result) {
  RVM_EXPECT_POINTER(result, NULL);
  RVM_EXPECT_POINTER(machine, result);
  RVM_EXPECT_ARRAY(arguments, count, result);
  if (!rvm_value_is_sound(callee)) return rvm_fail_callee(callee, result);
  rvm_status status = rvm_expect_sound("call: argument", arguments, count, result);
  if (status) return status;
  rvm_outer_run outer;
  if ((status = rvm_machine_begin_run(machine, &outer, result))) return status;
  rvm_value *admitted;
  status = admit_arguments(machine, arguments, count, &admitted, result);
  if (!status) status = rvm_machine_apply(machine, callee, admitted ? admitted : arguments, count, result);
  release_admitted(admitted, count);
  if (machine->calls == 1 && status) rvm_error_close_trace(*result);
  rvm_machine_end_run(machine, &outer, status);
  return status;
}

rvm_status rvm_machine_call(rvm_machine *machine, int32_t index, const rvm_value *arguments, int32_t count,
                            rvm_value *result) {
  RVM_EXPECT_POINTER(machine, result);
  if (!rvm_machine_has_function(machine, index))
    return rvm_fail(result, RVM_INDEX_ERROR,
                    "call: function index %d is out of range; the executable has %d function%s", index,
                    machine->executable->function_count, RVM_PLURAL(machine->executable->function_count));
  return rvm_machine_invoke(machine, machine->function_values[index], arguments, count, result);
}

/* ---- host functions as values ---- */

/* A host function that rvm_machine_function_new has wrapped as a closure.  The closure owns this struct: it captures an
   empty tensor whose release callback frees the struct. */
typedef struct host_function {
  rvm_function function;
  rvm_packed_function call;
  void *self;
  void (*release)(void *self);
  char name[];
} host_function;

/* Calls the host function.  The last argument is the captured tensor, which is not passed on. */
static rvm_status call_host_function(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  const host_function *host = self;
  return host->call(host->self, arguments, count - 1, result);
}

static void host_function_release(void *self) {
  host_function *host = self;
  if (host->release) host->release(host->self);
  rvm_free(host);
}

rvm_status rvm_machine_function_new(rvm_machine *machine, const char *name, rvm_packed_function call, void *self,
                                    void (*release)(void *self), rvm_value *result) {
  RVM_EXPECT_POINTER(result, NULL);
  RVM_EXPECT_POINTER(machine, result);
  RVM_EXPECT_POINTER(name, result);
  RVM_EXPECT_POINTER(call, result);
  const size_t name_bytes = strlen(name) + 1;
  host_function *host = rvm_allocate(sizeof *host + name_bytes);
  if (!host) return rvm_out_of_memory(result);
  *host = (host_function){.call = call, .self = self};
  memcpy(host->name, name, name_bytes);
  host->function = (rvm_function){.machine = machine,
                                  .name = host->name,
                                  .kind = RVM_KIND_packed,
                                  .parameter_count = -1,
                                  .cost = RVM_LONG_CALL_COST,
                                  .call = call_host_function,
                                  .self = host};
  /* A closure owns values only, so an empty tensor owns `host`, which its release function frees. */
  const int64_t no_elements = 0;
  rvm_value keeper;
  rvm_status status = rvm_tensor_wrap(RVM_DTYPE_u8, 1, &no_elements, NULL, host_function_release, host, &keeper);
  if (status) {
    rvm_free(host);
    *result = keeper;
    return status;
  }
  status = rvm_closure_new(&host->function, 1, result);
  if (status) {
    rvm_release(&keeper); /* frees `host` without calling `release`, which is set below */
    return status;
  }
  result->as.closure->captured[0] = keeper;
  host->release = release;
  return RVM_OK;
}
