/* native_library.h: the shared library of a native section. */
#ifndef RELVM_NATIVE_LIBRARY_H
#define RELVM_NATIVE_LIBRARY_H

#include "native.h"
#include "system.h"

/* The machine's functions that native code calls, defined in vm/native_api.c. */
extern const rvm_native_api rvm_machine_native_api;

/* Fails with UNSUPPORTED if native code for the target triple and processor features (cpu_features.def) cannot run
   here. */
rvm_status rvm_native_check(const char *triple, const char *cpu, rvm_value *error);
/* Loads the shared library of a native section and calls its relvm_native_open.  Closes *library on failure.  Fails
   with BAD_EXECUTABLE if the library does not define relvm_native_open, with UNSUPPORTED if it cannot be loaded or does
   not support this runtime, and with OUT_OF_MEMORY if the temporary file for it cannot be written. */
rvm_status rvm_library_open(rvm_library *library, const void *bytes, int64_t size_bytes, rvm_value *error);

#endif
