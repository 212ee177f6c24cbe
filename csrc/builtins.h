/* builtins.h: the functions of builtins.def, and the table of functions that the host has registered. */
#ifndef RELVM_BUILTINS_H
#define RELVM_BUILTINS_H

#include "value.h"

#define RVM_BUILTIN_PREFIX "vm.builtin."

#define BUILTIN(name, signature, effect, meaning) \
  rvm_status rvm_builtin_##name(void *self, const rvm_value *arguments, int32_t count, rvm_value *result);
#include "builtins.def"
#undef BUILTIN

/* The builtin or registered function of that name: 1 and what to call, or 0. */
int32_t rvm_function_find(const char *name, rvm_packed_function *function, void **self);
/* UNKNOWN_FUNCTION, with the known names that are nearest. */
rvm_status rvm_fail_unknown(const char *name, rvm_value *error);

/* The machine's half of vm.builtin.print (machine.c). */
rvm_status rvm_machine_print(rvm_machine *machine, const rvm_value *arguments, int32_t count, rvm_value *error);

#endif
