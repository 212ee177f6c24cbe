/* kernel.h: the header that the C code of every generated kernel includes.  Kernels that call micro-kernels also
   include the headers that micro_kernels.def names. */
#ifndef RELVM_KERNEL_H
#define RELVM_KERNEL_H

#include "compiler.h"
#include "kernel_math.h"
#include "kernel_conversions.h"
#include "small_floats.h"
#include "packed.h"

#endif
