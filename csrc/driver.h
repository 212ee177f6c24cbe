/* driver.h: what generated routines include: one small function per kind of statement. */
#ifndef RELVM_DRIVER_H
#define RELVM_DRIVER_H

#include "native.h"
#include "prim.h"

extern const rvm_native_api *rvm_api; /* set by relvm_native_open */

#define RVM_NIL ((rvm_value){.tag = RVM_TAG_NIL})
#define RVM_INT(value) ((rvm_value){.tag = RVM_TAG_INT, .as.i = value})
#define RVM_BOOL(value) ((rvm_value){.tag = RVM_TAG_BOOL, .as.i = value})
#define RVM_FLOAT(value) ((rvm_value){.tag = RVM_TAG_FLOAT, .as.f = value})
#define RVM_CONTEXT(ctx) ((rvm_value){.tag = RVM_TAG_CONTEXT, .as.machine = ctx})

/* Leaves the routine with the error in its result register. */
#define RVM_TRY(call)                              \
  do {                                             \
    rvm_status status_ = (call);                   \
    if (status_ != RVM_OK) return status_;         \
  } while (0)

#define RVM_HELPER static __attribute__((noinline, unused)) rvm_status

/* Puts the error of a failed call where the machine looks for it. */
RVM_HELPER rvm_failed(rvm_value error, rvm_status status, rvm_value *failure) {
  rvm_api->release(failure);
  *failure = error;
  return status;
}

/* Every entry of a routine counts towards the poll for interruption. */
RVM_HELPER rvm_enter(rvm_machine *ctx, rvm_value *failure) {
  rvm_value error = RVM_NIL;
  rvm_status status = rvm_api->poll(ctx, &error);
  return status == RVM_OK ? RVM_OK : rvm_failed(error, status, failure);
}

static inline int rvm_is_object(rvm_value value) { return value.tag >= RVM_TAG_TENSOR; }

/* anylist_setitem */
static inline void rvm_put(rvm_value *destination, rvm_value value) {
  rvm_value old = *destination;
  *destination = value;
  if (rvm_is_object(old)) rvm_api->release(&old);
}

/* anylist_setitem_call_packed, or call_packed where `destination` is NULL: the arguments are borrowed. */
RVM_HELPER rvm_call(rvm_machine *ctx, rvm_value callee, const rvm_value *arguments, int32_t count, rvm_value *destination,
                    rvm_value *failure) {
  rvm_value result = RVM_NIL;
  rvm_status status = rvm_api->call(ctx, callee, arguments, count, &result);
  if (status != RVM_OK) return rvm_failed(result, status, failure);
  if (!destination) {
    rvm_api->release(&result);
    return RVM_OK;
  }
  rvm_put(destination, result);
  return RVM_OK;
}

static inline int rvm_is_watched(const rvm_machine *ctx) { return ((const rvm_machine_head *)ctx)->watched_kinds != 0; }

/* call_cpacked of a kernel: directly, or as the function `callee` of the table where an instrument is to see it. */
RVM_HELPER rvm_kernel(rvm_machine *ctx, rvm_value callee, rvm_packed_function kernel, const rvm_value *arguments, int32_t count,
                      rvm_value *failure) {
  if (rvm_is_watched(ctx)) return rvm_call(ctx, callee, arguments, count, NULL, failure);
  rvm_value result = RVM_NIL;
  rvm_status status = kernel(NULL, arguments, count, &result);
  return status == RVM_OK ? RVM_OK : rvm_failed(result, status, failure);
}

/* Arithmetic on unboxed scalars: one function for each row, computed here where the operands are what the row takes. */
RVM_HELPER rvm_prim_failed(int32_t row, rvm_value a, rvm_value b, rvm_value *failure) {
  rvm_value error = RVM_NIL;
  rvm_status status = rvm_api->prim_fail(row, a, b, &error);
  return rvm_failed(error, status, failure);
}

#define PRIM_OPERATOR(name, function, operands, out, form, fails, meaning)                                        \
  static inline rvm_status rvm_set_##name(rvm_value a, rvm_value b, rvm_value *destination, rvm_value *failure) { \
    rvm_value result;                                                                                             \
    if (!rvm_prim_##name(a, b, &result)) return rvm_prim_failed(RVM_PRIM_##name, a, b, failure);                  \
    rvm_put(destination, result);                                                                                 \
    return RVM_OK;                                                                                                \
  }
#include "prim_operators.def"
#undef PRIM_OPERATOR

/* Before a jump to the routine's start, for a tail call of itself: its registers as they are when it is called so. */
static __attribute__((noinline, unused)) void rvm_restart(rvm_value *r, int32_t registers, const rvm_value *arguments,
                                                          int32_t count) {
  for (int32_t i = 0; i < count; i++)
    if (rvm_is_object(arguments[i]) && arguments[i].as.object->references >= 0) arguments[i].as.object->references++;
  for (int32_t i = 0; i < count; i++) rvm_put(&r[i], arguments[i]);
  for (int32_t i = count; i < registers; i++) rvm_put(&r[i], RVM_NIL);
}

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

#endif
