/* native.h: replaces codegen/native.h in exported packed functions that run without a machine and without the runtime.
   A failure has a status but no message, and every loop runs on the caller's thread. */
#ifndef RELVM_NATIVE_H
#define RELVM_NATIVE_H

#include "relvm_values.h"

typedef void (*rvm_part)(const void *shared, int64_t first, int64_t last);

typedef struct rvm_native_api {
  rvm_status (*fail)(rvm_value *result, rvm_status status, const char *format, ...);
  void (*parallel)(rvm_machine *machine, rvm_part part, const void *shared, int64_t count, int64_t grain);
  rvm_status (*call_with_private)(void *self, rvm_packed_function kernel, const int32_t *inputs, int32_t input_count,
                                  const rvm_value *arguments, int32_t count, rvm_value *result);
} rvm_native_api;

static rvm_status rvm_bare_fail(rvm_value *result, rvm_status status, const char *format, ...) {
  (void)format;
  result->tag = RVM_TAG_NIL;
  return status;
}

static void rvm_bare_parallel(rvm_machine *machine, rvm_part part, const void *shared, int64_t count, int64_t grain) {
  (void)machine;
  (void)grain;
  part(shared, 0, count);
}

/* Calls the kernel with its arguments as they are.  Without a machine, there is no memory for private copies of the
   inputs, so the caller must not change them during the call. */
static rvm_status rvm_bare_call_with_private(void *self, rvm_packed_function kernel, const int32_t *inputs,
                                             int32_t input_count, const rvm_value *arguments, int32_t count,
                                             rvm_value *result) {
  (void)inputs;
  (void)input_count;
  return kernel(self, arguments, count, result);
}

/* Without a machine, the size of the C stack is unknown.  The caller must provide enough. */
static inline int64_t rvm_stack_left(const void *self) {
  (void)self;
  return INT64_MAX;
}

static const rvm_native_api rvm_bare_api = {rvm_bare_fail, rvm_bare_parallel, rvm_bare_call_with_private};
static const rvm_native_api *const rvm_api = &rvm_bare_api;

#endif
