/* module.c: embeds an executable in an exported library.  RVM_MODULE is the name of the executable's file, in the
   directory in which this file is compiled.  No two executables may have the same file name, because compiler caches
   such as ccache do not look into files that assembly code includes. */
#include "relvm.h"
#ifdef RVM_SELECTIVE
#include "load.h"
#endif

/* The executable is in a separate section, which relvm/runtime/elf.py finds in ELF libraries.  It is aligned as
   rvm_executable_load requires. */
#define START "relvm_module_start"
#define END "relvm_module_end"
#if defined(__ELF__)
#define SECTION ".section .relvm, \"a\", %progbits\n"
#define LOCAL(name) ".globl " name "\n.hidden " name "\n"
#elif defined(__MACH__)
#define SECTION ".section __TEXT,__relvm\n"
#define LOCAL(name) ".private_extern " name "\n"
#else /* COFF, where every global symbol that is not written in C would be exported */
#define SECTION ".section .relvm, \"dr\"\n"
#define LOCAL(name) ""
#endif
__asm__(SECTION ".balign 64\n" LOCAL(START) LOCAL(END) START
        ":\n"
        ".incbin \"" RVM_MODULE "\"\n" END
        ":\n"
        ".text\n");

#define HIDDEN __attribute__((visibility("hidden")))
extern const unsigned char relvm_module_start[] __asm__(START) HIDDEN;
extern const unsigned char relvm_module_end[] __asm__(END) HIDDEN;

rvm_status relvm_module_load(rvm_executable **executable, rvm_value *error) {
  int64_t size_bytes = (int64_t)((uintptr_t)relvm_module_end - (uintptr_t)relvm_module_start);
#ifdef RVM_SELECTIVE
  return rvm_executable_load_own(relvm_module_start, size_bytes, executable, error);
#else
  const rvm_load_options options = {.trust_native = 1}; /* the caller already runs native code of the same library */
  return rvm_executable_load(relvm_module_start, size_bytes, &options, executable, error);
#endif
}
