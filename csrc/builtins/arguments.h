/* arguments.h: the prologue of a builtin, which checks the number and types of its arguments. */
#ifndef RELVM_ARGUMENTS_H
#define RELVM_ARGUMENTS_H

#include "machine.h"
#include "registry.h"
#include "tensor.h"

/* The head of the definition of a builtin. */
#define RVM_BUILTIN(name) \
  rvm_status rvm_builtin_##name(void *self, const rvm_value *arguments, int32_t count, rvm_value *result)

/* Checks a builtin's arguments against `kinds`, which has one letter for each argument (kind_meaning in arguments.c).
   If '*' follows the last letter, any number of arguments may have that kind.  Fails with ARGUMENT_ERROR for a wrong
   number of arguments, and with TYPE_ERROR for an argument of another kind. */
rvm_status rvm_check_arguments(enum rvm_builtin builtin, const char *kinds, const rvm_value *arguments, int32_t count,
                               rvm_value *result);
/* Fails with ARGUMENT_ERROR because the builtin does not accept `count` arguments. */
rvm_status rvm_fail_count(enum rvm_builtin builtin, int32_t count, rvm_value *result);

/* Returns whether the value is a function or closure of the program that has no side effects. */
int rvm_is_pure(rvm_value value);

/* Returns whether the value can be a shape heap (shape.c): a tensor of rank 1 and dtype i64 that contains its elements
   itself.  A heap is written to, so it cannot be a constant or memory of the host. */
int rvm_is_heap(rvm_value value);

/* Fails with TYPE_ERROR unless the tensor `value`, argument `index` (0-based) of builtin `name`, has the dtype. */
rvm_status rvm_expect_dtype(const char *name, int32_t index, rvm_value value, int32_t dtype, rvm_value *result);

/* Checks the arguments of builtin `name` at the start of its body, and returns from it on failure. */
#define RVM_CHECK(name, kinds)                                                                     \
  do {                                                                                             \
    (void)self;                                                                                    \
    rvm_status status_ = rvm_check_arguments(RVM_BUILTIN_##name, kinds, arguments, count, result); \
    if (status_) return status_;                                                                   \
  } while (0)

#endif
