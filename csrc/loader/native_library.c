/* native_library.c: loads the shared library of a native section from memory. */
#include "cold.h"

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dlinfo, syscall */
#endif
#ifndef __wasm__
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "native_library.h"

#if defined(__wasm__)
#define HOST_ARCHITECTURE "wasm32"
#define HOST_SYSTEM "-wasi"
#else
#if defined(__x86_64__)
#define HOST_ARCHITECTURE "x86_64"
#elif defined(__aarch64__)
#define HOST_ARCHITECTURE "aarch64"
#else
#define HOST_ARCHITECTURE "unknown"
#endif
#define HOST_SYSTEM "-linux"
#endif

static rvm_status check_triple(const char *triple, rvm_value *error) {
  size_t length = strlen(HOST_ARCHITECTURE);
  if (strncmp(triple, HOST_ARCHITECTURE "-", length + 1) == 0 && strstr(triple + length, HOST_SYSTEM)) return RVM_OK;
  return rvm_fail(error, RVM_UNSUPPORTED,
                  "the native code was built for %s, but this machine is " HOST_ARCHITECTURE HOST_SYSTEM, triple);
}

static rvm_status check_cpu(const char *cpu, rvm_value *error) {
  char missing[200], name[RVM_CPU_NAME_BYTES];
  if (!rvm_cpu_missing(cpu, missing, sizeof missing)) return RVM_OK;
  rvm_cpu_name(name);
  return rvm_fail(error, RVM_UNSUPPORTED, "the native code was built for processors with %s; %s lacks %s", cpu, name,
                  missing);
}

rvm_status rvm_native_check(const char *triple, const char *cpu, rvm_value *error) {
  rvm_status status = check_triple(triple, error);
  return status ? status : check_cpu(cpu, error);
}

/* Calls the library's relvm_native_open, which receives the runtime's function table. */
static rvm_status initialize(rvm_status (*open)(const rvm_native_api *api), rvm_value *error) {
  if (open(&rvm_machine_native_api) == RVM_OK) return RVM_OK;
  return rvm_fail(error, RVM_UNSUPPORTED,
                  "native code does not support this runtime (ABI version %d); build the executable again",
                  RVM_ABI_VERSION);
}

#ifdef __wasm__
/* WebAssembly cannot load a library.  The native code of one executable can be linked with the runtime
   (relvm/compiler/webassembly.py): `identity` is then the content of the executable's native section, and `symbols` are
   its functions, sorted by name. */
extern const rvm_linked_code relvm_linked_code __attribute__((weak));

static int compare_symbols(const void *a, const void *b) {
  return strcmp(((const rvm_linked_symbol *)a)->name, ((const rvm_linked_symbol *)b)->name);
}

rvm_status rvm_library_open(rvm_library *library, const void *bytes, int64_t size_bytes, rvm_value *error) {
  const rvm_linked_code *linked = &relvm_linked_code;
  if (!linked || size_bytes < (int64_t)sizeof linked->identity ||
      memcmp(linked->identity, bytes, sizeof linked->identity) != 0)
    return rvm_fail(error, RVM_UNSUPPORTED, "the native code of the executable is not part of this WebAssembly module");
  rvm_status status = initialize(linked->open, error);
  if (!status) library->handle = (void *)linked;
  return status;
}

void *rvm_library_find(const rvm_library *library, const char *symbol) {
  const rvm_linked_code *linked = library->handle;
  const rvm_linked_symbol key = {symbol, NULL};
  const rvm_linked_symbol *found =
      bsearch(&key, linked->symbols, (size_t)linked->symbol_count, sizeof key, compare_symbols);
  void *address = NULL;
  if (found) memcpy(&address, &found->function, sizeof address);
  return address;
}

void rvm_library_close(rvm_library *library) { *library = (rvm_library){.handle = NULL, .descriptor = -1}; }

#else
static int write_all(int descriptor, const char *bytes, int64_t size_bytes) {
  while (size_bytes > 0) {
    ssize_t written = write(descriptor, bytes, (size_t)size_bytes);
    if (written <= 0) return 0;
    bytes += written;
    size_bytes -= written;
  }
  return 1;
}

enum { CLOSE_ON_EXEC = 1 }; /* MFD_CLOEXEC, which is not in the headers of every C library */

/* Returns the descriptor of a new file without a name: in memory if the system supports it, otherwise in TMPDIR.
   Returns -1 if neither is possible. */
static int create_file(void) {
  int descriptor = -1;
#ifdef SYS_memfd_create /* called directly, because glibc has the function since 2.27 only */
  descriptor = (int)syscall(SYS_memfd_create, "relvm-native", CLOSE_ON_EXEC);
#endif
  if (descriptor >= 0) return descriptor;
  char path[1024];
  const char *directory = getenv("TMPDIR");
  int length = snprintf(path, sizeof path, "%s/relvm-native-XXXXXX", directory ? directory : "/tmp");
  if (length >= (int)sizeof path || (descriptor = mkstemp(path)) < 0) return -1;
  unlink(path);
  return descriptor;
}

/* Writes the library to a file and loads the file.  The path given to dlopen names the open descriptor, so that no
   other file can be substituted. */
static rvm_status library_load(rvm_library *library, const void *bytes, int64_t size_bytes, rvm_value *error) {
  char path[40];
  library->descriptor = create_file();
  if (library->descriptor < 0)
    return rvm_fail(error, RVM_UNSUPPORTED,
                    "native code: cannot create a temporary file; set TMPDIR to a writable directory");
  snprintf(path, sizeof path, "/proc/self/fd/%d", library->descriptor);
  if (!write_all(library->descriptor, bytes, size_bytes))
    return rvm_fail(error, RVM_OUT_OF_MEMORY,
                    "native code: cannot write a temporary file; check the free space of TMPDIR");
  library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library->handle) return rvm_fail(error, RVM_UNSUPPORTED, "native code: %s", dlerror());
  return RVM_OK;
}

static rvm_status library_initialize(const rvm_library *library, rvm_value *error) {
  rvm_status (*open)(const rvm_native_api *api);
  void *symbol = rvm_library_find(library, "relvm_native_open");
  if (!symbol) return rvm_fail(error, RVM_BAD_EXECUTABLE, "native code: the symbol relvm_native_open is missing");
  memcpy(&open, &symbol, sizeof open);
  return initialize(open, error);
}

rvm_status rvm_library_open(rvm_library *library, const void *bytes, int64_t size_bytes, rvm_value *error) {
  rvm_status status;
  if ((status = library_load(library, bytes, size_bytes, error)) || (status = library_initialize(library, error)))
    rvm_library_close(library);
  return status;
}

/* dlsym also finds symbols of the libraries on which a library depends.  Ignores these symbols. */
void *rvm_library_find(const rvm_library *library, const char *symbol) {
  void *found = dlsym(library->handle, symbol);
  struct link_map *own;
  Dl_info owner;
  if (!found || dlinfo(library->handle, RTLD_DI_LINKMAP, &own) || !dladdr(found, &owner)) return NULL;
  return strcmp(own->l_name, owner.dli_fname) == 0 ? found : NULL;
}

void rvm_library_close(rvm_library *library) {
  if (library->handle) dlclose(library->handle);
  if (library->descriptor >= 0) close(library->descriptor);
  *library = (rvm_library){.handle = NULL, .descriptor = -1};
}
#endif
