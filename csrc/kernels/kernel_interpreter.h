/* kernel_interpreter.h: the interpreter of kernel bytecode. */
#ifndef RELVM_KERNEL_INTERPRETER_H
#define RELVM_KERNEL_INTERPRETER_H

#include "kernel_host.h"

/* Runs a program.  The arguments are borrowed: the tensors of the inputs, then the tensors of the outputs.  Fails if
   the arguments do not match the program's tensors, or if the program fails or exceeds a limit.  *result is NIL or the
   error. */
rvm_status rvm_kernel_program_run(const rvm_kernel_program *program, const rvm_kernel_host *host,
                                  const rvm_value *arguments, int32_t count, rvm_value *result);

#endif
