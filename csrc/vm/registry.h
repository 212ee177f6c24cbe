/* registry.h: the registry of functions by name: builtins and registered functions of the host.  Thread-safe. */
#ifndef RELVM_REGISTRY_H
#define RELVM_REGISTRY_H

#include "native.h"

/* The builtins in the order of builtins.def; NULL for a builtin that this build leaves out.  Defined in
   builtins/builtin_table.c. */
extern const rvm_packed_function rvm_builtins[RVM_BUILTIN_COUNT];

const char *rvm_builtin_name(enum rvm_builtin builtin); /* including RVM_BUILTIN_PREFIX */
/* Looks up a builtin or registered function.  Returns 1 and stores the function and its `self`, or returns 0. */
int32_t rvm_function_find(const char *name, rvm_packed_function *function, void **self);
/* Fails with UNKNOWN_FUNCTION and suggests similar names, or with UNSUPPORTED for a builtin that this build leaves
   out. */
rvm_status rvm_fail_unknown(const char *name, rvm_value *error);

#endif
