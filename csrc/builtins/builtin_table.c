/* builtin_table.c: the tables of builtins (registry.h). */
#include "registry.h"
#include "selected.h"

/* With RVM_WITHOUT_STRINGS, builtins are weak symbols: the entry of a builtin that is not linked in is NULL. */
#ifdef RVM_WITHOUT_STRINGS
#define BUILTIN(name, signature, effect, cost, decoded, meaning) \
  extern __typeof__(rvm_builtin_##name) rvm_builtin_##name __attribute__((weak));
#include "builtins.def"
#undef BUILTIN
#endif

const rvm_packed_function rvm_builtins[] = {
#define BUILTIN(name, signature, effect, cost, decoded, meaning) RVM_WHEN_USED(name, rvm_builtin_##name, )
#include "builtins.def"
#undef BUILTIN
};

const rvm_builtin_row rvm_builtin_rows[] = {
#define BUILTIN(name, signature, effect, cost, decoded, meaning) \
  RVM_WHEN_USED(name, {RVM_BUILTIN_##name, RVM_BUILTIN_PREFIX #name, signature}, )
#include "builtins.def"
#undef BUILTIN
};
const int32_t rvm_builtin_row_count = sizeof rvm_builtin_rows / sizeof *rvm_builtin_rows;
