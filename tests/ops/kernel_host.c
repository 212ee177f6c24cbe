/* kernel_host.c: runs programs of kernel bytecode without a machine. */
#include "errors.h"
#include "kernel_interpreter.h"

static rvm_status spend(rvm_machine *machine, int64_t cost, rvm_value *error) {
  (void)machine, (void)cost, (void)error;
  return RVM_OK;
}

static rvm_status poll(rvm_machine *machine, rvm_value *error) { return spend(machine, 0, error); }

static int32_t is_ending(rvm_machine *machine) {
  (void)machine;
  return 0;
}

rvm_status test_run(const rvm_kernel_program *program, const rvm_value *arguments, int32_t count, rvm_value *result) {
  rvm_pool *pool = rvm_pool_new(1);
  if (!pool) return rvm_out_of_memory(result);
  const rvm_kernel_host host = {
      .pool = pool, .threads = 1, .steps_left = INT64_MAX, .spend = spend, .poll = poll, .is_ending = is_ending};
  const rvm_status status = rvm_kernel_program_run(program, &host, arguments, count, result);
  rvm_pool_close(pool);
  return status;
}
