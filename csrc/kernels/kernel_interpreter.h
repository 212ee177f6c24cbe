/* kernel_interpreter.h: the interpreter of kernel bytecode. */
#ifndef RELVM_KERNEL_INTERPRETER_H
#define RELVM_KERNEL_INTERPRETER_H

#include "kernel_host.h"

/* Runs a program.  The arguments are the tensors of its inputs, then those of its outputs, and are borrowed.  Fails if
   they do not match the program's tensors, or if the program fails or exceeds a limit. */
rvm_status rvm_kernel_program_run(const rvm_kernel_program *program, const rvm_kernel_host *host,
                                  const rvm_value *arguments, int32_t count, rvm_value *result);

#endif
