/* kernel_constants.h: the constants of kernel_constants.def, with the prefix RVM_. */
#ifndef RELVM_KERNEL_CONSTANTS_H
#define RELVM_KERNEL_CONSTANTS_H

enum {
#define KERNEL_CONSTANT(name, value, meaning) RVM_##name = value,
#include "kernel_constants.def"
#undef KERNEL_CONSTANT
};

#endif
