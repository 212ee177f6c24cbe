/* builtin_table.h: declares the function of each row of builtins.def. */
#ifndef RELVM_BUILTIN_TABLE_H
#define RELVM_BUILTIN_TABLE_H

#include "native.h"

#define BUILTIN(name, signature, effect, cost, decoded, meaning) \
  rvm_status rvm_builtin_##name(void *self, const rvm_value *arguments, int32_t count, rvm_value *result);
#include "builtins.def"
#undef BUILTIN

#endif
