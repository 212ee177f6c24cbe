/* registry.h: the registry of functions by name: builtins and registered functions of the host.  Thread-safe. */
#ifndef RELVM_REGISTRY_H
#define RELVM_REGISTRY_H

#include "native.h"

/* The function of each row of builtins.def. */
#define BUILTIN(name, signature, effect, cost, decoded, meaning) \
  rvm_status rvm_builtin_##name(void *self, const rvm_value *arguments, int32_t count, rvm_value *result);
#include "builtins.def"
#undef BUILTIN

/* The texts of a builtin.  The arrays need no relocations, unlike pointers. */
typedef struct rvm_builtin_row {
  enum rvm_builtin number;
  char name[36]; /* with RVM_BUILTIN_PREFIX */
  char signature[48];
} rvm_builtin_row;

/* The builtins in the order of builtins.def, and their texts.  A builtin is NULL if this build leaves it out.  A
   selective library contains only the builtins that it uses.  Defined in builtins/builtin_table.c. */
extern const rvm_packed_function rvm_builtins[];
extern const rvm_builtin_row rvm_builtin_rows[];
extern const int32_t rvm_builtin_row_count;
/* Returns the row of a builtin, which must have one. */
const rvm_builtin_row *rvm_builtin_row_of(enum rvm_builtin builtin);

/* Looks up a builtin or registered function.  Returns 1 and stores the function and its `self`, or returns 0. */
int32_t rvm_function_find(const char *name, rvm_packed_function *function, void **self);
/* Fails with UNKNOWN_FUNCTION and suggests similar names, or with UNSUPPORTED for a builtin that this build leaves
   out. */
rvm_status rvm_fail_unknown(const char *name, rvm_value *error);

#endif
