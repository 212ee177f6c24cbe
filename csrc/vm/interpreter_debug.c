/* interpreter_debug.c: the interpreter once more, which tells a debugger of every step; so the other one need not ask. */
#define RVM_STEPPED
#include "interpreter.c"
