/* native_library.h: the shared library of a native section. */
#ifndef RELVM_NATIVE_LIBRARY_H
#define RELVM_NATIVE_LIBRARY_H

#include "native.h"

/* A shared library from memory.  Its file stays open as long as it is loaded: the loader knows libraries by their path,
   and a path by descriptor must not come to mean another. */
typedef struct rvm_library {
  void *handle;
  int descriptor;
} rvm_library;

/* The functions of the machine that native code calls; vm/native_api.c, which is above, defines them. */
extern const rvm_native_api rvm_machine_native_api;

/* Whether native code of that triple and those features of the processor (cpu_features.def) can run here; UNSUPPORTED:
 * no. */
rvm_status rvm_native_check(const char *triple, const char *cpu, rvm_value *error);
/* Loads the shared library of a native section and calls its relvm_native_open; BAD_EXECUTABLE when it is no library.
 */
rvm_status rvm_library_open(rvm_library *library, const void *bytes, int64_t size_bytes, rvm_value *error);
/* The address of a symbol, or NULL. */
void *rvm_library_find(const rvm_library *library, const char *symbol);
void rvm_library_close(rvm_library *library);

#endif
