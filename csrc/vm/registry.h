/* registry.h: functions by name. */
#ifndef RELVM_REGISTRY_H
#define RELVM_REGISTRY_H

#include "native.h"

/* The builtins, in the order of builtins.def, NULL where this build has none: defined above, in
 * builtins/builtin_table.c. */
extern const rvm_packed_function rvm_builtins[RVM_BUILTIN_COUNT];

const char *rvm_builtin_name(enum rvm_builtin builtin); /* with its prefix */
/* The builtin or registered function of that name: 1 and what to call, or 0. */
int32_t rvm_function_find(const char *name, rvm_packed_function *function, void **self);
/* UNKNOWN_FUNCTION, with the known names that are nearest; of a builtin that this build has not, UNSUPPORTED. */
rvm_status rvm_fail_unknown(const char *name, rvm_value *error);

#endif
