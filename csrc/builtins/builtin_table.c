/* builtin_table.c: the table of builtins, which the machine and native code call by their numbers. */
#include "builtin_table.h"

#include "registry.h"

/* Built with RVM_WITHOUT_STRINGS, the table has NULL for each builtin that the program is linked without. */
#ifdef RVM_WITHOUT_STRINGS
#define BUILTIN(name, signature, effect, cost, decoded, meaning) \
  extern __typeof__(rvm_builtin_##name) rvm_builtin_##name __attribute__((weak));
#include "builtins.def"
#undef BUILTIN
#endif

const rvm_packed_function rvm_builtins[RVM_BUILTIN_COUNT] = {
#define BUILTIN(name, signature, effect, cost, decoded, meaning) rvm_builtin_##name,
#include "builtins.def"
#undef BUILTIN
};
