/* native_library.h: the shared library of a native section. */
#ifndef RELVM_NATIVE_LIBRARY_H
#define RELVM_NATIVE_LIBRARY_H

#include "native.h"

/* A shared library loaded from memory.  `descriptor` is its file, which stays open while the library is loaded: the
   dynamic linker identifies libraries by path, and the path contains the number of the descriptor. */
typedef struct rvm_library {
  void *handle;   /* the result of dlopen; NULL if the library is closed */
  int descriptor; /* -1 if the library is closed */
} rvm_library;

/* Native code that is linked with the runtime, in a WebAssembly module. */
typedef struct rvm_linked_symbol {
  const char *name;
  rvm_status (*function)(void); /* a routine or kernel, cast to this type */
} rvm_linked_symbol;

typedef struct rvm_linked_code {
  unsigned char identity[32]; /* the content of the native section of the executable that the code belongs to */
  rvm_status (*open)(const rvm_native_api *api);
  int32_t symbol_count;
  const rvm_linked_symbol *symbols; /* sorted by name */
} rvm_linked_code;

/* The machine's functions that native code calls, defined in vm/native_api.c. */
extern const rvm_native_api rvm_machine_native_api;

/* Fails with UNSUPPORTED if native code for the target triple and processor features (cpu_features.def) cannot run
   here. */
rvm_status rvm_native_check(const char *triple, const char *cpu, rvm_value *error);
/* Loads the shared library of a native section and calls its relvm_native_open.  On failure *library is closed.  Fails
   with BAD_EXECUTABLE if the library does not define relvm_native_open, with UNSUPPORTED if it cannot be loaded or does
   not support this runtime, and with OUT_OF_MEMORY if the temporary file for it cannot be written. */
rvm_status rvm_library_open(rvm_library *library, const void *bytes, int64_t size_bytes, rvm_value *error);
/* Returns the address of a symbol that the library defines, or NULL. */
void *rvm_library_find(const rvm_library *library, const char *symbol);
/* Closes the library if it is open.  Addresses of its symbols become invalid. */
void rvm_library_close(rvm_library *library);

#endif
