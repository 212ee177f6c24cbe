/* kernel_interpreter.h: runs programs of kernel bytecode. */
#ifndef RELVM_KERNEL_INTERPRETER_H
#define RELVM_KERNEL_INTERPRETER_H

#include "kernel_host.h"

/* Runs it: the tensors are those of its inputs, then those of its outputs. */
rvm_status rvm_kernel_program_run(const rvm_kernel_program *program, const rvm_kernel_host *host,
                                  const rvm_value *arguments, int32_t count, rvm_value *result);

#endif
