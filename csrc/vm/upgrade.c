/* upgrade.c: replaces the bytecode of a machine by native code.  Any thread may call rvm_machine_upgrade, which queues
   the native code.  The thread inside the machine applies it (apply_upgrades in machine.c). */
#include "cold.h"

#include <string.h>

#include "errors.h"
#include "machine.h"

/* Returns whether the functions of `compiled` may replace those of `executable`.  Two kinds of `compiled` may do so:
   - It has the functions of `executable`, in the same order.  Bytecode functions may have become native.
   - It has fewer functions.  All of these are kernels of `executable`. */
static int matches_functions(const rvm_executable *compiled, const rvm_executable *executable) {
  const int is_whole = compiled->function_count == executable->function_count;
  for (int32_t i = 0; i < compiled->function_count; i++) {
    const rvm_function_record *new = &compiled->functions[i];
    const char *name = rvm_executable_function_name(compiled, i);
    const int32_t index = is_whole ? i : rvm_executable_find(executable, name);
    if (index < 0 || strcmp(name, rvm_executable_function_name(executable, index)) != 0) return 0;
    const rvm_function_record *old = &executable->functions[index];
    const int becomes_native = is_whole && old->kind == RVM_KIND_bytecode && new->kind == RVM_KIND_native;
    if (old->parameter_count != new->parameter_count || (old->kind != new->kind && !becomes_native)) return 0;
    if (!is_whole && new->kind != RVM_KIND_kernel) return 0;
  }
  return compiled->function_count <= executable->function_count;
}

/* Returns whether the native code of `compiled` was compiled from the bytecode and constants of `executable`. */
static int is_compiled_from(const rvm_executable *compiled, const rvm_executable *executable) {
  unsigned char digest[RVM_SHA256_BYTES];
  const unsigned char *replaced = rvm_executable_replaced(compiled);
  return replaced && rvm_executable_digest(executable, digest, NULL) == RVM_OK &&
         memcmp(replaced, digest, sizeof digest) == 0;
}

static int is_upgraded_with(rvm_machine *machine, const rvm_executable *compiled) {
  const rvm_upgrade *upgrade = atomic_load(&machine->upgrades);
  while (upgrade && upgrade->compiled != compiled) upgrade = upgrade->next;
  return upgrade != NULL;
}

rvm_status rvm_machine_upgrade(rvm_machine *machine, rvm_executable *compiled, rvm_value *error) {
  RVM_EXPECT_WHOLE_RUNTIME(error);
  RVM_EXPECT_POINTER(machine, error);
  RVM_EXPECT_POINTER(compiled, error);
  rvm_status status = rvm_expect_runnable(compiled, error);
  if (status) return status;
  if (!matches_functions(compiled, machine->executable))
    return rvm_fail(error, RVM_ARGUMENT_ERROR,
                    "upgrade: the new executable's function table differs from the old one's");
  if (is_upgraded_with(machine, compiled))
    return rvm_fail(error, RVM_BUSY, "upgrade: the machine already has this native code");
  if (!is_compiled_from(compiled, machine->executable))
    return rvm_fail(error, RVM_ARGUMENT_ERROR,
                    "upgrade: the native code was compiled for another program: it states another digest of the "
                    "bytecode and constants");
  rvm_upgrade *upgrade = rvm_allocate_zeroed(sizeof *upgrade);
  if (!upgrade) return rvm_out_of_memory(error);
  rvm_executable_retain(compiled);
  upgrade->compiled = compiled;
  upgrade->next = atomic_load(&machine->upgrades);
  while (!atomic_compare_exchange_weak(&machine->upgrades, &upgrade->next, upgrade)) {
  }
  atomic_store(&machine->has_upgrade, 1);
  rvm_machine_enter_briefly(machine); /* applies the upgrade now, if no thread is inside the machine */
  return RVM_OK;
}
