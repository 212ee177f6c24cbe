/* native_library.c: loads the shared library of a native section from memory. */
#include "cold.h"

#include <string.h>

#include "cpu.h"
#include "native_library.h"

#if defined(__x86_64__)
#define HOST_ARCHITECTURE "x86_64"
#elif defined(__aarch64__)
#define HOST_ARCHITECTURE "aarch64"
#elif defined(__wasm__)
#define HOST_ARCHITECTURE "wasm32"
#else
#define HOST_ARCHITECTURE "unknown"
#endif
#define HOST_SYSTEM "-" RVM_SYSTEM

static rvm_status check_triple(const char *triple, rvm_value *error) {
  size_t length = strlen(HOST_ARCHITECTURE);
  if (strncmp(triple, HOST_ARCHITECTURE "-", length + 1) == 0 && strstr(triple + length, HOST_SYSTEM)) return RVM_OK;
  return rvm_fail(error, RVM_UNSUPPORTED,
                  "the native code was built for %s, but this computer is " HOST_ARCHITECTURE HOST_SYSTEM, triple);
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
static rvm_status initialize(const rvm_library *library, rvm_value *error) {
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
  char reason[RVM_REASON_BYTES];
  rvm_status status = rvm_library_load(library, bytes, size_bytes, reason);
  status = status ? rvm_fail(error, status, "native code: %s", reason) : initialize(library, error);
  if (status) rvm_library_close(library);
  return status;
}
