/* interpreter.h: runs the steps of bytecode functions. */
#ifndef RELVM_INTERPRETER_H
#define RELVM_INTERPRETER_H

#include "machine.h"

/* Runs the top frame until it returns.  A debugger is told of every step. */
rvm_status rvm_machine_run(rvm_machine *machine, rvm_value *result);

#endif
