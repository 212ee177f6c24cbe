/* native_api.c: what native code calls of the runtime: the table that it is given when it is loaded. */
#include "cold.h"

#include "call.h"
#include "clock.h"
#include "cpu.h"
#include "debugger.h"
#include "registry.h"
#include "scalar_ops.h"
#include "tensor.h"
#include "thread_pool.h"

static void native_release(rvm_value *value) { rvm_release(value); }

static rvm_status native_poll(rvm_machine *machine, rvm_value *error) { return rvm_machine_spend(machine, 1, error); }

static rvm_status native_step(rvm_machine *machine, const rvm_value *registers, int32_t function, int32_t instruction,
                              rvm_value *error) {
  rvm_stop stop = {.function = &machine->functions[function], .registers = registers, .instruction = instruction};
  return rvm_debugger_step(machine, stop, error);
}

static void native_parallel(rvm_machine *machine, rvm_part part, const void *shared, int64_t count, int64_t grain) {
  rvm_workers_run(machine->options.threads, part, shared, count, grain);
}

static int32_t native_is_ending(rvm_machine *machine) {
  return rvm_machine_is_interrupted(machine) || (machine->deadline < INT64_MAX && rvm_clock_now() >= machine->deadline);
}

const rvm_native_api rvm_machine_native_api = {
    .abi_version = RVM_ABI_VERSION,
    .fail = rvm_fail,
    .call = rvm_machine_apply,
    .truth = rvm_value_truth,
    .tail_call = rvm_machine_tail_call,
    .finish_tail_call = rvm_machine_finish_tail_call,
    .trace = rvm_error_add_frame,
    .builtins = rvm_builtins,
    .scalar_op_fail = rvm_scalar_op_fail,
    .release = native_release,
    .poll = native_poll,
    .find = rvm_function_find,
    .parallel = native_parallel,
    .step = native_step,
    .is_ending = native_is_ending,
};

rvm_status rvm_aot_open(const rvm_aot_library *library, rvm_value *error) {
  RVM_EXPECT_POINTER(library, error);
  if (library->abi_version != RVM_ABI_VERSION)
    return rvm_fail(error, RVM_UNSUPPORTED, "the library was built for ABI version %d, this runtime has version %d; export the library again",
                    (int)library->abi_version, RVM_ABI_VERSION);
  char missing[128];
  if (library->cpu && rvm_cpu_missing(library->cpu, missing, sizeof missing))
    return rvm_fail(error, RVM_UNSUPPORTED, "the library was built for processors with %s, which this processor lacks; export it for this processor", missing);
  RVM_EXPECT_POINTER(library->open, error);
  library->open(&rvm_machine_native_api);
  return RVM_OK;
}
