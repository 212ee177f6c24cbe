/* kernel_verify.h: reads and verifies programs of kernel bytecode. */
#ifndef RELVM_KERNEL_VERIFY_H
#define RELVM_KERNEL_VERIFY_H

#include "kernel_program.h"

/* Reads and verifies a program, which borrows `bytes`.  Fails with BAD_EXECUTABLE if it is invalid. */
rvm_status rvm_kernel_program_read(const void *bytes, int64_t size_bytes, rvm_kernel_program *program,
                                   rvm_value *error);

#endif
