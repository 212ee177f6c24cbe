/* linux.c: implements, for Linux, the part of system.h in which Linux and macOS differ. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* dlinfo, pthread_getattr_np, syscall */
#endif
#include "cold.h"

#include "posix.h"
#include "system.h"

#ifdef __linux__
#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

/* getrandom and memfd_create are called by syscall(), because glibc defines them only since versions 2.25 and 2.27. */

int rvm_random_bytes(void *bytes, size_t size_bytes) {
#ifdef SYS_getrandom
  return syscall(SYS_getrandom, bytes, size_bytes, 0) == (long)size_bytes;
#else
  return getentropy(bytes, size_bytes) == 0;
#endif
}

#ifdef __aarch64__
uint64_t rvm_hwcaps(void) { return (uint64_t)getauxval(AT_HWCAP2) << 32 | (uint32_t)getauxval(AT_HWCAP); }
#endif

#ifdef __x86_64__
int rvm_enable_tile_registers(void) {
  enum { ARCH_REQ_XCOMP_PERM = 0x1023, TILE_DATA = 18 };
  return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0;
}
#endif

size_t rvm_thread_stack(const char **lowest) {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void *address = NULL;
  size_t size_bytes = 0;
  pthread_attr_getstack(&attributes, &address, &size_bytes);
  pthread_attr_destroy(&attributes);
  *lowest = address;
  return size_bytes;
}

int32_t rvm_thread_processor(void) { return sched_getcpu(); }

int rvm_thread_avoid(int32_t processor) {
  /* Sets of processors: those on which others allow the thread to run, and those that the last call has left to it. */
  static _Thread_local cpu_set_t allowed, left;
  cpu_set_t now;
  if (processor < 0 || processor >= CPU_SETSIZE || sched_getaffinity(0, sizeof now, &now) != 0) return 1;
  if (!CPU_EQUAL(&now, &left)) allowed = now; /* the first call, or others have changed the set since the last call */
  left = allowed;
  CPU_CLR(processor, &left);
  return CPU_COUNT(&left) != 0 && sched_setaffinity(0, sizeof left, &left) == 0;
}

/* ---- shared libraries ---- */

enum { CLOSE_ON_EXEC = 1 }; /* MFD_CLOEXEC, which is not in the headers of every C library */

/* Returns the descriptor of a new file without a name: in memory if the system supports it, otherwise in TMPDIR, or in
   /tmp if TMPDIR is not set.  Returns -1 if neither is possible. */
static int create_file(void) {
  int descriptor = -1;
#ifdef SYS_memfd_create
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
   other file can be substituted.  The file stays open while the library is loaded: the dynamic linker identifies
   libraries by path, and the path contains the number of the descriptor. */
rvm_status rvm_library_load(rvm_library *library, const void *bytes, int64_t size_bytes,
                            char reason[RVM_REASON_BYTES]) {
  char path[40];
  int descriptor = create_file();
  library->file = descriptor;
  if (descriptor < 0) {
    strcpy(reason, "cannot create a temporary file; set TMPDIR to a writable directory");
    return RVM_UNSUPPORTED;
  }
  snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  if (!rvm_file_write(descriptor, bytes, size_bytes)) {
    strcpy(reason, "cannot write a temporary file; check the free space of TMPDIR");
    return RVM_OUT_OF_MEMORY;
  }
  library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library->handle) return RVM_OK;
  snprintf(reason, RVM_REASON_BYTES, "%s", dlerror());
  return RVM_UNSUPPORTED;
}

/* dlsym also finds symbols of the libraries on which a library depends.  This function ignores such symbols. */
void *rvm_library_find(const rvm_library *library, const char *symbol) {
  void *found = dlsym(library->handle, symbol);
  struct link_map *own;
  Dl_info owner;
  if (!found || dlinfo(library->handle, RTLD_DI_LINKMAP, &own) || !dladdr(found, &owner)) return NULL;
  return strcmp(own->l_name, owner.dli_fname) == 0 ? found : NULL;
}

void rvm_library_close(rvm_library *library) {
  if (library->handle) dlclose(library->handle);
  if (library->file >= 0) close((int)library->file);
  *library = (rvm_library)RVM_LIBRARY_CLOSED;
}
#endif
