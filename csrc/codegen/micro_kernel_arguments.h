/* micro_kernel_arguments.h: the arguments of each micro-kernel NAME, as a struct NAME_arguments that is generated from
   its row of micro_kernels.def. */
#ifndef RELVM_MICRO_KERNEL_ARGUMENTS_H
#define RELVM_MICRO_KERNEL_ARGUMENTS_H

#include <stdint.h>

#define SIZE(name) int64_t name;
#define NUMBER(name) int64_t name;
#define FLOAT(name) float name;
#define READ(name, type) const type *name;
#define WRITE(name, type) type *name;
#define MICRO_KERNEL(name, header, arguments) \
  typedef struct name##_arguments {           \
    arguments                                 \
  } name##_arguments;
#include "micro_kernels.def"
#undef MICRO_KERNEL
#undef WRITE
#undef READ
#undef FLOAT
#undef NUMBER
#undef SIZE

#endif
