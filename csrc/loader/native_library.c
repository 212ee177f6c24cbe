/* native_library.c: loads the shared library of a native section from memory. */
#include "cold.h"

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dlinfo, syscall */
#endif
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cpu.h"
#include "native_library.h"

#if defined(__x86_64__)
#define HOST_ARCHITECTURE "x86_64"
#elif defined(__aarch64__)
#define HOST_ARCHITECTURE "aarch64"
#else
#define HOST_ARCHITECTURE "unknown"
#endif

static rvm_status check_triple(const char *triple, rvm_value *error) {
  size_t length = strlen(HOST_ARCHITECTURE);
  if (strncmp(triple, HOST_ARCHITECTURE "-", length + 1) == 0 && strstr(triple + length, "-linux")) return RVM_OK;
  return rvm_fail(error, RVM_UNSUPPORTED, "the native code was built for %s, but this machine is %s-linux", triple,
                  HOST_ARCHITECTURE);
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

/* Calls the library's relvm_native_open, which receives the runtime's function table. */
static rvm_status library_initialize(const rvm_library *library, rvm_value *error) {
  rvm_status (*open)(const rvm_native_api *api);
  void *symbol = rvm_library_find(library, "relvm_native_open");
  if (!symbol) return rvm_fail(error, RVM_BAD_EXECUTABLE, "native code: the symbol relvm_native_open is missing");
  memcpy(&open, &symbol, sizeof open);
  if (open(&rvm_machine_native_api) == RVM_OK) return RVM_OK;
  return rvm_fail(error, RVM_UNSUPPORTED,
                  "native code does not support this runtime (ABI version %d); build the executable again",
                  RVM_ABI_VERSION);
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
