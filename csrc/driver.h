/* driver.h: what generated routines include: one small function per kind of statement. */
#ifndef RELVM_DRIVER_H
#define RELVM_DRIVER_H

#include "native.h"

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
  rvm_value old = *destination;
  *destination = result;
  rvm_api->release(&old);
  return RVM_OK;
}

/* call_cpacked of a kernel: directly, or as the function `callee` of the table where an instrument is to see it. */
RVM_HELPER rvm_kernel(rvm_machine *ctx, rvm_value callee, rvm_packed_function kernel, const rvm_value *arguments, int32_t count,
                      rvm_value *failure) {
  if (((const rvm_machine_head *)ctx)->watched_kinds) return rvm_call(ctx, callee, arguments, count, NULL, failure);
  rvm_value result = RVM_NIL;
  rvm_status status = kernel(NULL, arguments, count, &result);
  return status == RVM_OK ? RVM_OK : rvm_failed(result, status, failure);
}

/* if bool(call_packed("vm.builtin.read_if_cond", condition)) */
RVM_HELPER rvm_condition(rvm_value condition, int32_t *truth, rvm_value *failure) {
  rvm_value error = RVM_NIL;
  rvm_status status = rvm_api->truth(condition, truth, &error);
  return status == RVM_OK ? RVM_OK : rvm_failed(error, status, failure);
}

#endif
