/* arguments.h: how a builtin begins: the checks of its arguments. */
#ifndef RELVM_ARGUMENTS_H
#define RELVM_ARGUMENTS_H

#include "machine.h"
#include "registry.h"
#include "tensor.h"

#define RVM_BUILTIN(name) \
  rvm_status rvm_builtin_##name(void *self, const rvm_value *arguments, int32_t count, rvm_value *result)

/* Compares a builtin's arguments with `kinds`, one letter each; '*' at the end: any number of the last
   kind.  ARGUMENT_ERROR or TYPE_ERROR name the builtin, its signature and the argument. */
rvm_status rvm_check_arguments(enum rvm_builtin builtin, const char *kinds, const rvm_value *arguments, int32_t count,
                               rvm_value *result);
rvm_status rvm_fail_count(enum rvm_builtin builtin, int32_t count, rvm_value *result);

/* Whether a value is a function or closure of the program that is known to have no effects. */
int rvm_is_pure(rvm_value value);

/* Whether a value can be a function's shape heap: that is written to, so memory of constants or of the host is none. */
int rvm_is_heap(rvm_value value);

/* TYPE_ERROR unless argument `index` (counted from 0), a tensor, is of that dtype. */
rvm_status rvm_expect_dtype(const char *name, int32_t index, rvm_value value, int32_t dtype, rvm_value *result);

/* How a builtin begins. */
#define RVM_CHECK(name, kinds)                                                                     \
  do {                                                                                             \
    (void)self;                                                                                    \
    rvm_status status_ = rvm_check_arguments(RVM_BUILTIN_##name, kinds, arguments, count, result); \
    if (status_) return status_;                                                                   \
  } while (0)

#endif
