/* builtin_table.c: the table of builtins, which the machine and native code call by their numbers. */
#include "builtin_table.h"

#include "registry.h"

const rvm_packed_function rvm_builtins[RVM_BUILTIN_COUNT] = {
#define BUILTIN(name, signature, effect, cost, meaning) rvm_builtin_##name,
#include "builtins.def"
#undef BUILTIN
};
