/* selected.h: RVM_IF_USED(NAME, value) is `value`, or 0 in a selective library that does not use NAME.

   `relvm compile --selective` compiles the runtime with RVM_SELECTIVE, the name of a file that defines RVM_USES_NAME as
   `~,` for each builtin, element function and micro-kernel that a model uses. */
#ifndef RELVM_SELECTED_H
#define RELVM_SELECTED_H

#ifdef RVM_SELECTIVE
#include RVM_SELECTIVE
#define RVM_SECOND(first, second, ...) second
#define RVM_CHOOSE(...) RVM_SECOND(__VA_ARGS__, ~)
#define RVM_IF_USED(name, value) RVM_CHOOSE(RVM_USES_##name value, 0)
#else
#define RVM_IF_USED(name, value) value
#endif

#endif
