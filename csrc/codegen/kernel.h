/* kernel.h: the headers that generated kernels of a machine include. */
#ifndef RELVM_KERNEL_H
#define RELVM_KERNEL_H

#include "attention.h"
#include "compiler.h"
#include "kernel_math.h"
#include "kernel_conversions.h"
#include "small_floats.h"
#include "packed.h"
#include "gemm_f32.h"
#include "winograd.h"

#endif
