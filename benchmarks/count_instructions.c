/* count_instructions.c: a plugin of QEMU (7.2 or newer) that counts the instructions of an emulated program, for
   benchmarks/aarch64.py.  The program reads the count by a system call that does not exist: its number is COUNT, and
   its argument is the address of the result.  The declarations are those of qemu-plugin.h, which Debian does not
   install. */
#include <stddef.h>
#include <stdint.h>

#define EXPORTED __attribute__((visibility("default")))

enum { COUNT = 5000, ADD_U64 = 0 };

typedef struct block block; /* a translated basic block */
typedef void block_callback(uint64_t plugin, block *translated);
typedef void system_call_callback(uint64_t plugin, unsigned processor, int64_t number, uint64_t a1, uint64_t a2,
                                  uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8);

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t plugin, block_callback *callback);
void qemu_plugin_register_vcpu_syscall_cb(uint64_t plugin, system_call_callback *callback);
void qemu_plugin_register_vcpu_tb_exec_inline(block *translated, int operation, void *counter, uint64_t number);
size_t qemu_plugin_tb_n_insns(const block *translated);

EXPORTED int qemu_plugin_version = 1;
static uint64_t instructions;

static void translated(uint64_t plugin, block *each) {
  (void)plugin;
  qemu_plugin_register_vcpu_tb_exec_inline(each, ADD_U64, &instructions, qemu_plugin_tb_n_insns(each));
}

/* Addresses of an emulated program of 64 bits are those of the emulator. */
static void called(uint64_t plugin, unsigned processor, int64_t number, uint64_t address, uint64_t a2, uint64_t a3,
                   uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8) {
  (void)plugin, (void)processor, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
  if (number == COUNT) *(uint64_t *)(uintptr_t)address = instructions;
}

EXPORTED int qemu_plugin_install(uint64_t plugin, const void *info, int count, char **arguments) {
  (void)info, (void)count, (void)arguments;
  qemu_plugin_register_vcpu_tb_trans_cb(plugin, translated);
  qemu_plugin_register_vcpu_syscall_cb(plugin, called);
  return 0;
}
