/* macos.c: implements, for macOS, the part of system.h in which Linux and macOS differ. */
#include "cold.h"

#include "posix.h"
#include "system.h"

#ifdef __APPLE__
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/sysctl.h>
#include <unistd.h>

int rvm_random_bytes(void *bytes, size_t size_bytes) { return getentropy(bytes, size_bytes) == 0; }

#ifdef __aarch64__
/* The system's names of the features in cpu_features.def, and their bits in AT_HWCAP and AT_HWCAP2 of Linux. */
static const struct {
  const char *name;
  int bit;
} features[] = {
    {"hw.optional.arm.FEAT_LSE", 8},      {"hw.optional.arm.FEAT_FP16", 10},  {"hw.optional.arm.FEAT_RDM", 12},
    {"hw.optional.arm.FEAT_FCMA", 14},    {"hw.optional.arm.FEAT_LRCPC", 15}, {"hw.optional.arm.FEAT_DotProd", 20},
    {"hw.optional.arm.FEAT_FRINTTS", 40}, {"hw.optional.arm.FEAT_I8MM", 45},  {"hw.optional.arm.FEAT_BF16", 46},
};

/* Every processor of a Mac has CRC-32C.  macOS 11 does not know the names in `features`, so no other feature is found
   there. */
uint64_t rvm_hwcaps(void) {
  uint64_t found = RVM_HWCAP_CRC32;
  for (size_t i = 0; i < sizeof features / sizeof *features; i++) {
    int is_present = 0;
    size_t size_bytes = sizeof is_present;
    if (sysctlbyname(features[i].name, &is_present, &size_bytes, NULL, 0) == 0 && is_present)
      found |= UINT64_C(1) << features[i].bit;
  }
  return found;
}
#endif

#ifdef __x86_64__
int rvm_enable_tile_registers(void) { return 0; } /* no Mac has AMX of x86-64 */
#endif

size_t rvm_thread_stack(const char **lowest) {
  const pthread_t self = pthread_self();
  const size_t size_bytes = pthread_get_stacksize_np(self);
  *lowest = (const char *)pthread_get_stackaddr_np(self) - size_bytes; /* the function returns the highest address */
  return size_bytes;
}

int32_t rvm_thread_processor(void) { return -1; }

int rvm_thread_avoid(int32_t processor) {
  (void)processor;
  return 1;
}

/* ---- shared libraries ---- */

/* Writes the library to a new file in the user's folder of temporary files, loads the file, and removes it: the library
   keeps the pages of the file.  Nobody else can write in this folder. */
rvm_status rvm_library_load(rvm_library *library, const void *bytes, int64_t size_bytes,
                            char reason[RVM_REASON_BYTES]) {
  char path[PATH_MAX];
  const size_t length = confstr(_CS_DARWIN_USER_TEMP_DIR, path, sizeof path);
  static const char name[] = "relvm-native-XXXXXX";
  int descriptor = -1;
  if (length > 0 && length + sizeof name <= sizeof path) {
    memcpy(path + length - 1, name, sizeof name);
    descriptor = mkstemp(path);
  }
  if (descriptor < 0) {
    strcpy(reason, "cannot create a file in the user's folder of temporary files");
    return RVM_UNSUPPORTED;
  }
  const int is_written = rvm_file_write(descriptor, bytes, size_bytes);
  close(descriptor);
  if (is_written) library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_FIRST);
  if (is_written && !library->handle) snprintf(reason, RVM_REASON_BYTES, "%s", dlerror());
  unlink(path);
  if (library->handle) return RVM_OK;
  if (is_written) return RVM_UNSUPPORTED;
  strcpy(reason, "cannot write a temporary file; check the free space");
  return RVM_OUT_OF_MEMORY;
}

/* RTLD_FIRST restricts the search to the library itself. */
void *rvm_library_find(const rvm_library *library, const char *symbol) { return dlsym(library->handle, symbol); }

void rvm_library_close(rvm_library *library) {
  if (library->handle) dlclose(library->handle);
  *library = (rvm_library)RVM_LIBRARY_CLOSED;
}
#endif
