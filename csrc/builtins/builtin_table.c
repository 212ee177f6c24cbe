/* builtin_table.c: the table of builtins, indexed by enum rvm_builtin.  The machine and native code call builtins
   through this table. */
#include "builtin_table.h"

#include "registry.h"
#include "selected.h"

/* With RVM_WITHOUT_STRINGS, builtins are weak symbols: the entry of a builtin that is not linked in is NULL. */
#ifdef RVM_WITHOUT_STRINGS
#define BUILTIN(name, signature, effect, cost, decoded, meaning) \
  extern __typeof__(rvm_builtin_##name) rvm_builtin_##name __attribute__((weak));
#include "builtins.def"
#undef BUILTIN
#endif

const rvm_packed_function rvm_builtins[RVM_BUILTIN_COUNT] = {
#define BUILTIN(name, signature, effect, cost, decoded, meaning) RVM_IF_USED(name, rvm_builtin_##name),
#include "builtins.def"
#undef BUILTIN
};
