/* module.c: embeds an executable in an exported shared library.  The file is compiled in a directory in which
   module.rvm is the executable. */
#include "relvm.h"

/* The executable is in a separate section, which relvm/runtime/elf.py finds.  It is aligned as rvm_executable_load
   requires. */
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
  const rvm_load_options options = {.trust_native = 1}; /* the caller already runs native code of the same library */
  int64_t size_bytes = (int64_t)((uintptr_t)relvm_module_end - (uintptr_t)relvm_module_start);
  return rvm_executable_load(relvm_module_start, size_bytes, &options, executable, error);
}
