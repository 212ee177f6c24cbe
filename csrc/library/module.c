/* module.c: embeds an executable in an exported shared library.  Compiled in a directory with the executable as
   module.rvm. */
#include "relvm.h"

/* A section of its own, which relvm/runtime/elf.py finds, aligned as rvm_executable_load requires. */
__asm__(
    ".pushsection .relvm, \"a\", %progbits\n"
    ".balign 64\n"
    ".globl relvm_module_start, relvm_module_end\n"
    ".hidden relvm_module_start, relvm_module_end\n"
    "relvm_module_start:\n"
    ".incbin \"module.rvm\"\n"
    "relvm_module_end:\n"
    ".popsection\n");

extern const unsigned char relvm_module_start[] __attribute__((visibility("hidden")));
extern const unsigned char relvm_module_end[] __attribute__((visibility("hidden")));

rvm_status relvm_module_load(rvm_executable **executable, rvm_value *error) {
  const rvm_load_options options = {.trust_native = 1}; /* its native code is this library, which runs already */
  int64_t size_bytes = (int64_t)((uintptr_t)relvm_module_end - (uintptr_t)relvm_module_start);
  return rvm_executable_load(relvm_module_start, size_bytes, &options, executable, error);
}
