/* kernel.h: what generated kernels of a machine include. */
#ifndef RELVM_KERNEL_H
#define RELVM_KERNEL_H

#include "attention.h"
#include "compiler.h"
#include "kernel_math.h"
#include "kernel_numbers.h"
#include "narrow.h"
#include "packed.h"
#include "tile.h"
#include "winograd.h"

#endif
