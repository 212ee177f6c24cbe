/* native_function.h: included by the C code that is generated for routines (native.h).  The header has one small
   function for each kind of statement of the lowered form (relvm/lir) from which a routine is printed.

   `ctx` is the machine.  `destination` is the register that receives an owned result, or NULL if the result is dropped.
   `failure` is the result register of the routine, which receives the error.  Arguments of calls are borrowed.  A name
   such as anylist_setitem in a comment is the statement that the function implements.  Read native.h first. */
#ifndef RELVM_NATIVE_FUNCTION_H
#define RELVM_NATIVE_FUNCTION_H

#include "native.h"
#include "scalar_ops.h"

#define RVM_NIL ((rvm_value){.tag = RVM_TAG_NIL})
#define RVM_INT(value) ((rvm_value){.tag = RVM_TAG_INT, .as.i = value})
#define RVM_BOOL(value) ((rvm_value){.tag = RVM_TAG_BOOL, .as.i = value})
#define RVM_FLOAT(value) ((rvm_value){.tag = RVM_TAG_FLOAT, .as.f = value})
#define RVM_CONTEXT(ctx) ((rvm_value){.tag = RVM_TAG_CONTEXT, .as.machine = ctx})

/* Returns from the routine if a call fails.  The call has stored the error in the result register. */
#define RVM_TRY(call)                      \
  do {                                     \
    rvm_status status_ = (call);           \
    if (status_ != RVM_OK) return status_; \
  } while (0)

/* RVM_TRY for a call whose failure is reported as a failure of the instruction at index `instruction`. */
#define RVM_TRY_AT(instruction, call)           \
  do {                                          \
    rvm_status status_ = (call);                \
    if (status_ != RVM_OK) {                    \
      rvm_head(ctx)->failed_at = (instruction); \
      return status_;                           \
    }                                           \
  } while (0)

#define RVM_HELPER static __attribute__((noinline, unused)) rvm_status

/* Moves the error of a failed call to *failure, the result register of the routine, and returns the status. */
RVM_HELPER rvm_failed(rvm_value error, rvm_status status, rvm_value *failure) {
  rvm_api->release(failure);
  *failure = error;
  return status;
}

static inline rvm_machine_head *rvm_head(rvm_machine *ctx) { return (rvm_machine_head *)ctx; }
static inline int rvm_is_machine_watched(rvm_machine *ctx) { return rvm_head(ctx)->watched_kinds != 0; }
static inline int rvm_is_object(rvm_value value) { return value.tag >= RVM_TAG_TENSOR; }
static inline void rvm_retain(rvm_value value) {
  if (rvm_is_object(value) && value.as.object->references >= 0) value.as.object->references++;
}

/* Polls.  Fails if the run must end. */
RVM_HELPER rvm_poll(rvm_machine *ctx, rvm_value *failure) {
  rvm_value error = RVM_NIL;
  rvm_status status = rvm_api->poll(ctx, &error);
  return status == RVM_OK ? RVM_OK : rvm_failed(error, status, failure);
}

/* Charges 1 unit of fuel at the start of a routine, and polls if the fuel is used up. */
static inline rvm_status rvm_enter(rvm_machine *ctx, rvm_value *failure) {
  return --rvm_head(ctx)->fuel > 0 ? RVM_OK : rvm_poll(ctx, failure);
}

/* Calls the debugger, if the machine has one, before a statement of a routine that was built for debugging. */
static inline rvm_status rvm_step(rvm_machine *ctx, const rvm_value *r, int32_t function, int32_t instruction,
                                  rvm_value *failure) {
  if (!(rvm_head(ctx)->watched_kinds & RVM_WATCH_STEPS)) return RVM_OK;
  rvm_value error = RVM_NIL;
  rvm_status status = rvm_api->step(ctx, r, function, instruction, &error);
  return status == RVM_OK ? RVM_OK : rvm_failed(error, status, failure);
}

/* Copies a value as two words.  A vector load right after two word stores would stall the processor. */
#define RVM_WORDS(value) ((rvm_value){.tag = (value).tag, .as.i = (value).as.i})
#define RVM_R(index) RVM_WORDS(r[index]) /* anylist_getitem */

/* Copies a value without retaining it or releasing the old one. */
static inline void rvm_move(rvm_value *destination, const rvm_value *value) {
  destination->tag = value->tag;
  destination->as.i = value->as.i;
}

static __attribute__((noinline, unused)) void rvm_release_object(int64_t tag, rvm_object *object) {
  rvm_value value = {.tag = tag, .as.object = object};
  rvm_api->release(&value);
}

/* anylist_setitem: stores an owned value, and releases the old one. */
static inline void rvm_put(rvm_value *destination, rvm_value value) {
  rvm_value old = RVM_WORDS(*destination);
  rvm_move(destination, &value);
  if (rvm_is_object(old)) rvm_release_object(old.tag, old.as.object);
}

/* anylist_resetitem: stores NIL, and releases the old value. */
static inline void rvm_reset(rvm_value *dst) {
  rvm_value old = RVM_WORDS(*dst);
  dst->tag = RVM_TAG_NIL;
  if (rvm_is_object(old)) rvm_release_object(old.tag, old.as.object);
}

/* Moves the result of a call to `destination`, or releases it if `destination` is NULL. */
static inline void rvm_take(rvm_value *destination, rvm_value *result) {
  if (destination)
    rvm_put(destination, RVM_WORDS(*result));
  else
    rvm_reset(result);
}

/* anylist_setitem_call_packed, or call_packed if `destination` is NULL.  Calls an entry of the function table. */
RVM_HELPER rvm_call(rvm_machine *ctx, rvm_value callee, const rvm_value *arguments, int32_t count,
                    rvm_value *destination, rvm_value *failure) {
  rvm_value result = RVM_NIL;
  rvm_status status = rvm_api->call(ctx, callee, arguments, count, &result);
  if (status != RVM_OK) return rvm_failed(result, status, failure);
  rvm_take(destination, &result);
  return RVM_OK;
}

/* The kinds of operands of calls with many arguments.  A word holds the index of an operand, times 8, plus its kind. */
enum { RVM_OPERAND_REGISTER, RVM_OPERAND_CONSTANT, RVM_OPERAND_FUNCTION, RVM_OPERAND_LITERAL, RVM_OPERAND_CONTEXT };

/* The tables that operand words index: the registers, the constant table, the function table, and immediate values. */
typedef struct rvm_operand_tables {
  const rvm_value *registers, *constants, *functions, *literals;
} rvm_operand_tables;

/* Copies `count` operands to the unused part of the value stack as borrowed values, and returns them.  Returns NULL and
   stores the error in *failure if the value stack is too small. */
static __attribute__((noinline, unused)) rvm_value *rvm_gather(rvm_machine *ctx, const rvm_operand_tables *tables,
                                                               const int32_t *words, int32_t count,
                                                               rvm_value *failure) {
  rvm_value *values = rvm_head(ctx)->top, error = RVM_NIL;
  if (rvm_head(ctx)->stack_end - values < count) {
    rvm_api->fail(&error, RVM_STACK_OVERFLOW, "the value stack is too small for a call with %d argument%s", (int)count,
                  count == 1 ? "" : "s");
    rvm_put(failure, error);
    return NULL;
  }
  for (int32_t i = 0; i < count; i++) {
    const int32_t index = words[i] >> 3;
    switch (words[i] & 7) {
      case RVM_OPERAND_REGISTER: rvm_move(&values[i], &tables->registers[index]); break;
      case RVM_OPERAND_CONSTANT: rvm_move(&values[i], &tables->constants[index]); break;
      case RVM_OPERAND_FUNCTION: rvm_move(&values[i], &tables->functions[index]); break;
      case RVM_OPERAND_LITERAL: rvm_move(&values[i], &tables->literals[index]); break;
      default: values[i] = RVM_CONTEXT(ctx);
    }
  }
  return values;
}

/* Makes a tail call with many arguments, like rvm_call_many. */
RVM_HELPER rvm_tail_call_many(rvm_machine *ctx, rvm_value callee, const rvm_operand_tables *tables,
                              const int32_t *words, int32_t count, rvm_value *failure) {
  rvm_value *arguments = rvm_gather(ctx, tables, words, count, failure);
  return arguments ? rvm_api->tail_call(ctx, callee, arguments, count, failure) : RVM_STACK_OVERFLOW;
}

/* Calls a builtin that calls no other function.  Calls its C function directly, or through `callee`, its entry in the
   function table, if the machine is watched. */
RVM_HELPER rvm_builtin(rvm_machine *ctx, rvm_value callee, enum rvm_builtin builtin, const rvm_value *arguments,
                       int32_t count, rvm_value *destination, rvm_value *failure) {
  if (rvm_is_machine_watched(ctx)) return rvm_call(ctx, callee, arguments, count, destination, failure);
  rvm_value result = RVM_NIL;
  rvm_status status = rvm_api->builtins[builtin](NULL, arguments, count, &result);
  if (status != RVM_OK) return rvm_failed(result, status, failure);
  rvm_take(destination, &result);
  return RVM_OK;
}

/* vm.builtin.copy */
static inline rvm_status rvm_copy(rvm_machine *ctx, rvm_value callee, rvm_value value, rvm_value *destination,
                                  rvm_value *failure) {
  if (rvm_is_machine_watched(ctx)) return rvm_call(ctx, callee, &value, 1, destination, failure);
  rvm_retain(value);
  rvm_put(destination, value);
  return RVM_OK;
}

/* vm.builtin.tuple_getitem */
static inline rvm_status rvm_item(rvm_machine *ctx, rvm_value callee, rvm_value tuple, rvm_value index,
                                  rvm_value *destination, rvm_value *failure) {
  if (rvm_is_machine_watched(ctx) || tuple.tag != RVM_TAG_TUPLE || index.tag != RVM_TAG_INT ||
      (uint64_t)index.as.i >= (uint64_t)tuple.as.tuple->size)
    return rvm_call(ctx, callee, (const rvm_value[]){tuple, index}, 2, destination, failure);
  rvm_value item = RVM_WORDS(tuple.as.tuple->items[index.as.i]);
  rvm_retain(item);
  rvm_put(destination, item);
  return RVM_OK;
}

/* vm.builtin.check_prim_value_info */
static inline rvm_status rvm_check_scalar(rvm_machine *ctx, rvm_value callee, rvm_value value, rvm_value dtype,
                                          rvm_value subject, rvm_value *failure) {
  int is_right = (dtype.as.i == RVM_DTYPE_i64 && value.tag == RVM_TAG_INT) ||
                 (dtype.as.i == RVM_DTYPE_f64 && value.tag == RVM_TAG_FLOAT) ||
                 (dtype.as.i == RVM_DTYPE_bool && value.tag == RVM_TAG_BOOL);
  if (is_right && !rvm_is_machine_watched(ctx)) return RVM_OK;
  return rvm_call(ctx, callee, (const rvm_value[]){value, dtype, subject}, 3, NULL, failure);
}

/* vm.builtin.check_tensor_info */
static inline rvm_status rvm_check_tensor(rvm_machine *ctx, rvm_value callee, rvm_value value, rvm_value rank,
                                          rvm_value dtype, rvm_value subject, rvm_value *failure) {
  int is_right = value.tag == RVM_TAG_TENSOR && (rank.as.i < 0 || rank.as.i == value.as.tensor->dl.ndim) &&
                 (dtype.tag == RVM_TAG_NIL || dtype.as.i == value.as.tensor->dtype);
  if (is_right && !rvm_is_machine_watched(ctx)) return RVM_OK;
  return rvm_call(ctx, callee, (const rvm_value[]){value, rank, dtype, subject}, 4, NULL, failure);
}

/* Returns whether a call must go through the function table, because the machine is watched or a limit of nested calls
   or of the C stack is reached. */
static inline int rvm_is_slow(rvm_machine *ctx) {
  const rvm_machine_head *head = rvm_head(ctx);
  return head->watched_kinds != 0 || head->frame_count + head->nesting >= head->frame_limit ||
         rvm_stack_pointer() < head->lowest;
}

/* Opens a window of `registers` registers at the top of the value stack, for a routine.  Returns its registers.
   Returns NULL if the call must go through the function table instead. */
static inline rvm_value *rvm_open(rvm_machine *ctx, int32_t registers) {
  rvm_machine_head *head = rvm_head(ctx);
  rvm_value *window = head->top;
  if (rvm_is_slow(ctx) || head->stack_end - window < registers) return NULL;
  head->top = window + registers;
  return window;
}

/* Stores an argument in a register of the callee, which owns it. */
static inline void rvm_pass(rvm_value *dst, rvm_value value) {
  rvm_move(dst, &value);
  rvm_retain(value);
}

/* Runs a routine in an open window, and stores its status in `status`. */
#define RVM_RUN(ctx, routine, window, status)                                    \
  do {                                                                           \
    rvm_machine_head *head_ = rvm_head(ctx);                                     \
    int64_t nesting_ = head_->nesting;                                           \
    head_->nesting = nesting_ + 1;                                               \
    (status) = (routine)(ctx, window, head_->constants, head_->function_values); \
    head_->nesting = nesting_;                                                   \
  } while (0)

static __attribute__((noinline, unused)) void rvm_reset_all(rvm_value *values, int32_t count) {
  for (int32_t i = 0; i < count; i++) rvm_reset(&values[i]);
}

/* Closes the window of a routine with `count` parameters, and moves its result to `destination`.  The other registers
   must not hold objects. */
static inline void rvm_close(rvm_machine *ctx, rvm_value *window, int32_t count, rvm_value *destination) {
  rvm_value result = RVM_WORDS(window[count]);
  window[count].tag = RVM_TAG_NIL;
  rvm_head(ctx)->top = window;
  rvm_take(destination, &result);
}

/* Closes the window of a routine that failed, or makes its tail call if `status` is RVM_TAIL_CALL. */
RVM_HELPER rvm_close_other(rvm_machine *ctx, const rvm_function *function, rvm_value *window, rvm_status status,
                           rvm_value *destination, rvm_value *failure) {
  rvm_value result = RVM_NIL;
  if (status == RVM_TAIL_CALL) {
    status = rvm_api->finish_tail_call(ctx, window, function->registers, &result);
  } else {
    result = window[function->parameter_count];
    window[function->parameter_count].tag = RVM_TAG_NIL;
    rvm_reset_all(window, function->registers);
    rvm_head(ctx)->top = window;
    rvm_api->trace(result, function->name, rvm_head(ctx)->failed_at);
    rvm_head(ctx)->failed_at = -1;
  }
  if (status != RVM_OK) return rvm_failed(result, status, failure);
  rvm_take(destination, &result);
  return RVM_OK;
}

/* Numbers of registers of the calling routine.  The `reset` statements after a call release these registers. */
typedef struct rvm_dead_registers {
  rvm_value *r;
  const int32_t *numbers;
  int32_t count;
} rvm_dead_registers;

/* Releases the registers before the callee runs, like reset_early in interpreter.c.  `dead` is NULL if there are none.
   `closure` is the called closure, or NULL. */
static inline void rvm_reset_early(const rvm_dead_registers *dead, const rvm_object *closure) {
  for (int32_t i = 0; dead && i < dead->count; i++) {
    rvm_value *value = &dead->r[dead->numbers[i]];
    if (!rvm_is_object(*value)) continue;
    if (value->as.object->references != 1 || value->as.object == closure) rvm_reset(value);
  }
}

/* Calls the routine of `function` with the arguments, followed by the values that `closure` captured if it is not NULL.
   Sets *is_called to 0 and does nothing if the call must go through the function table: the machine is watched, a limit
   of nested calls is reached, `function` is not a routine of this machine, or the number of values is not the number of
   its parameters.  `dead`: see rvm_call_last. */
static inline rvm_status rvm_call_routine(rvm_machine *ctx, const rvm_function *function, const rvm_closure *closure,
                                          const rvm_value *arguments, int32_t count, const rvm_dead_registers *dead,
                                          rvm_value *destination, rvm_value *failure, int32_t *is_called) {
  const int32_t captured = closure ? closure->captured_count : 0;
  const int is_direct = function->routine && function->machine == ctx && count + captured == function->parameter_count;
  rvm_value *window = is_direct ? rvm_open(ctx, function->registers) : NULL;
  *is_called = window != NULL;
  if (!window) return RVM_OK;
  for (int32_t i = 0; i < count; i++) rvm_pass(&window[i], RVM_WORDS(arguments[i]));
  for (int32_t i = 0; i < captured; i++) rvm_pass(&window[count + i], RVM_WORDS(closure->captured[i]));
  rvm_reset_early(dead, closure ? &closure->base : NULL);
  rvm_status status;
  RVM_RUN(ctx, function->routine, window, status);
  if (status != RVM_OK) return rvm_close_other(ctx, function, window, status, destination, failure);
  for (int32_t i = 0; i < function->registers; i++)
    if (i != count + captured) rvm_reset(&window[i]);
  rvm_close(ctx, window, count + captured, destination);
  return RVM_OK;
}

/* vm.builtin.invoke_closure.  Calls a routine of this machine, or a closure over one, directly.  Calls other callees
   through `builtin`, the builtin's entry in the function table.  `dead`: see rvm_call_last. */
RVM_HELPER rvm_invoke(rvm_machine *ctx, rvm_value builtin, const rvm_value *arguments, int32_t count,
                      const rvm_dead_registers *dead, rvm_value *destination, rvm_value *failure) {
  rvm_value callee = RVM_WORDS(arguments[1]);
  int32_t is_called = 0;
  rvm_status status = RVM_OK;
  if (callee.tag == RVM_TAG_CLOSURE)
    status = rvm_call_routine(ctx, callee.as.closure->function, callee.as.closure, arguments + 2, count - 2, dead,
                              destination, failure, &is_called);
  else if (callee.tag == RVM_TAG_FUNCTION)
    status = rvm_call_routine(ctx, callee.as.function, NULL, arguments + 2, count - 2, dead, destination, failure,
                              &is_called);
  return is_called ? status : rvm_call(ctx, builtin, arguments, count, destination, failure);
}

/* anylist_setitem_call_routine, for a call after which the caller does not use the registers `dead`.  Calls an entry of
   the function table, directly if it is a routine, after the release of these registers.  So the callee has the only
   references to such arguments, and can update them in place. */
RVM_HELPER rvm_call_last(rvm_machine *ctx, rvm_value callee, const rvm_value *arguments, int32_t count,
                         const rvm_dead_registers *dead, rvm_value *destination, rvm_value *failure) {
  int32_t is_called;
  if (callee.as.function->invokes && count >= 2)
    return rvm_invoke(ctx, callee, arguments, count, dead, destination, failure);
  rvm_status status =
      rvm_call_routine(ctx, callee.as.function, NULL, arguments, count, dead, destination, failure, &is_called);
  return is_called ? status : rvm_call(ctx, callee, arguments, count, destination, failure);
}

/* Calls a function with many arguments, which are given as operand words.  The words are static data, because C
   compilers are slow on large arrays of expressions.  `dead`: see rvm_call_last; NULL if there are none. */
RVM_HELPER rvm_call_many(rvm_machine *ctx, rvm_value callee, const rvm_operand_tables *tables, const int32_t *words,
                         int32_t count, const rvm_dead_registers *dead, rvm_value *destination, rvm_value *failure) {
  rvm_value *arguments = rvm_gather(ctx, tables, words, count, failure);
  if (!arguments) return RVM_STACK_OVERFLOW;
  rvm_head(ctx)->top = arguments + count;
  rvm_status status = dead ? rvm_call_last(ctx, callee, arguments, count, dead, destination, failure)
                           : rvm_call(ctx, callee, arguments, count, destination, failure);
  rvm_head(ctx)->top = arguments;
  for (int32_t i = 0; i < count; i++) arguments[i].tag = RVM_TAG_NIL;
  return status;
}

/* call_cpacked.  Calls a kernel directly, or through `callee`, its entry in the function table, if the machine is
   watched. */
RVM_HELPER rvm_kernel(rvm_machine *ctx, rvm_value callee, rvm_packed_function kernel, const rvm_value *arguments,
                      int32_t count, rvm_value *destination, rvm_value *failure) {
  if (rvm_is_machine_watched(ctx)) return rvm_call(ctx, callee, arguments, count, destination, failure);
  rvm_value result = RVM_NIL;
  if ((rvm_head(ctx)->fuel -= RVM_LONG_CALL_COST) <= 0) RVM_TRY(rvm_poll(ctx, failure));
  rvm_status status = kernel(ctx, arguments, count, &result);
  if (status != RVM_OK) return rvm_failed(result, status, failure);
  if (destination) rvm_take(destination, &result);
  return RVM_OK;
}

/* Moves the error of a scalar operator that has no value for its operands to *failure, and returns its status. */
RVM_HELPER rvm_scalar_op_failed(int32_t row, rvm_value a, rvm_value b, rvm_value *failure) {
  rvm_value error = RVM_NIL;
  rvm_status status = rvm_api->scalar_op_fail(row, a, b, &error);
  return rvm_failed(error, status, failure);
}

/* rvm_set_NAME applies an operator of scalar_operators.def.  It calls the runtime only for an error. */
#define SCALAR_OPERATOR(name, function, operands, out, form, fails, meaning)                                      \
  static inline rvm_status rvm_set_##name(rvm_value a, rvm_value b, rvm_value *destination, rvm_value *failure) { \
    rvm_value result;                                                                                             \
    if (!rvm_scalar_op_##name(a, b, &result)) return rvm_scalar_op_failed(RVM_SCALAR_OP_##name, a, b, failure);   \
    rvm_put(destination, result);                                                                                 \
    return RVM_OK;                                                                                                \
  }
#include "scalar_operators.def"
#undef SCALAR_OPERATOR

RVM_HELPER rvm_read_condition(rvm_value condition, int32_t *truth, rvm_value *failure) {
  rvm_value error = RVM_NIL;
  rvm_status status = rvm_api->truth(condition, truth, &error);
  return status == RVM_OK ? RVM_OK : rvm_failed(error, status, failure);
}

/* if bool(call_packed("vm.builtin.read_if_cond", condition)) */
static inline rvm_status rvm_condition(rvm_value condition, int32_t *truth, rvm_value *failure) {
  if (condition.tag == RVM_TAG_BOOL) {
    *truth = (int32_t)condition.as.i;
    return RVM_OK;
  }
  return rvm_read_condition(condition, truth, failure);
}

/* ---- scalar functions: C functions with unboxed parameters and results; errors are in the machine's head ---- */

RVM_HELPER rvm_scalar_poll(rvm_machine *ctx) { return rvm_api->poll(ctx, &rvm_head(ctx)->error); }

static inline rvm_status rvm_scalar_enter(rvm_machine *ctx) {
  return --rvm_head(ctx)->fuel > 0 ? RVM_OK : rvm_scalar_poll(ctx);
}

/* Returns the error of a scalar function that failed, owned, and clears it in the machine's head. */
static inline rvm_value rvm_scalar_error(rvm_machine *ctx) {
  rvm_value error = rvm_head(ctx)->error;
  rvm_head(ctx)->error.tag = RVM_TAG_NIL;
  return error;
}

RVM_HELPER rvm_scalar_arithmetic_failed(rvm_machine *ctx, int32_t row, rvm_value a, rvm_value b) {
  return rvm_api->scalar_op_fail(row, a, b, &rvm_head(ctx)->error);
}

RVM_HELPER rvm_scalar_tail_call(rvm_machine *ctx, int32_t callee, const rvm_value *arguments, int32_t count) {
  rvm_value error = RVM_NIL;
  rvm_status status = rvm_api->tail_call(ctx, rvm_head(ctx)->function_values[callee], arguments, count, &error);
  if (status > RVM_OK) rvm_head(ctx)->error = error;
  return status;
}

/* Checks that a call succeeded with a result of the given tag.  Otherwise stores the error in the machine's head, and
   returns its status. */
RVM_HELPER rvm_scalar_result(rvm_machine *ctx, rvm_status status, int64_t tag, rvm_value *result) {
  if (status == RVM_OK && result->tag == tag) return RVM_OK;
  if (status == RVM_OK) {
    rvm_api->release(result);
    status = rvm_api->fail(result, RVM_TYPE_ERROR,
                           "a call must return a scalar of the declared type, but it returned another value");
  }
  rvm_head(ctx)->error = *result;
  return status;
}

/* Calls entry `callee` of the function table, which must return a scalar of the given tag. */
RVM_HELPER rvm_scalar_call(rvm_machine *ctx, int32_t callee, const rvm_value *arguments, int32_t count, int64_t tag,
                           rvm_value *result) {
  rvm_status status = rvm_api->call(ctx, rvm_head(ctx)->function_values[callee], arguments, count, result);
  return rvm_scalar_result(ctx, status, tag, result);
}

/* Adds a line to the error of a scalar function that failed, or makes its tail call if `status` is RVM_TAIL_CALL. */
RVM_HELPER rvm_scalar_end(rvm_machine *ctx, const char *name, rvm_status status, int64_t tag, rvm_value *result) {
  if (status != RVM_TAIL_CALL) {
    rvm_api->trace(rvm_head(ctx)->error, name, -1);
    return status;
  }
  return rvm_scalar_result(ctx, rvm_api->finish_tail_call(ctx, rvm_head(ctx)->top, 0, result), tag, result);
}

#endif
