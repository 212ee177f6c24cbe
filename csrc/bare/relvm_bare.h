/* relvm_bare.h: what sources that relvm exports need of the compiler. */
#ifndef RELVM_BARE_H
#define RELVM_BARE_H

#include <stdint.h>

#include "simd.h"

#ifdef __GNUC__
#define RVM_ALIGNED(bytes) __attribute__((aligned(bytes)))
#else
#define RVM_ALIGNED(bytes)
#endif

#endif
