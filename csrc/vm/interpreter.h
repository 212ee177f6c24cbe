/* interpreter.h: the interpreter of bytecode functions. */
#ifndef RELVM_INTERPRETER_H
#define RELVM_INTERPRETER_H

#include "machine.h"

/* Runs the top frame until it returns or fails, and pops it.  Stores the result or error in *result.  A debugger that
   is attached observes every step. */
rvm_status rvm_machine_run(rvm_machine *machine, rvm_value *result);

#endif
