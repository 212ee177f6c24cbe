/* module.c: what an exported library has besides the runtime: an executable's bytes, and how to load them.  Compiled in
   the directory where they lie as module.rvm. */
#include "relvm.h"

/* In a section of their own, where relvm/runtime/elf.py finds them; aligned as rvm_executable_load wants them. */
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
  const rvm_load_options options = {.trust_native = 1}; /* it came with native code that runs already: this */
  int64_t size_bytes = (int64_t)((uintptr_t)relvm_module_end - (uintptr_t)relvm_module_start);
  return rvm_executable_load(relvm_module_start, size_bytes, &options, executable, error);
}
