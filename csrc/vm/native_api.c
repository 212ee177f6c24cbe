/* native_api.c: the functions of the runtime that native code calls.  A native library receives them in a table when it
   is loaded (rvm_native_api in native.h, which describes each function). */
#include "cold.h"

#include <string.h>

#include "call.h"
#include "system.h"
#include "cpu.h"
#include "debugger.h"
#include "private_tensor.h"
#include "registry.h"
#include "scalar_ops.h"
#include "tensor.h"

static void native_release(rvm_value *value) { rvm_release(value); }

static rvm_status native_poll(rvm_machine *machine, rvm_value *error) { return rvm_machine_spend(machine, 1, error); }

static rvm_status native_step(rvm_machine *machine, const rvm_value *registers, int32_t function, int32_t instruction,
                              rvm_value *error) {
  rvm_position position = {
      .function = &machine->functions[function], .registers = registers, .instruction = instruction};
  return rvm_debugger_step(machine, position, error);
}

/* Calls the kernel.  Replaces each tensor at a position in `inputs` by a private copy (private_tensor.h), if the host
   could change the tensor during the call. */
static rvm_status call_with_copies(rvm_machine *machine, rvm_packed_function kernel, const int32_t *inputs,
                                   int32_t input_count, const rvm_value *arguments, int32_t count, rvm_value *result) {
  rvm_value *copies = rvm_allocate((size_t)(count + input_count) * sizeof *copies);
  if (!copies) return rvm_out_of_memory(result);
  rvm_value *owned = copies + count;
  rvm_status status = RVM_OK;
  int32_t made = 0;
  memcpy(copies, arguments, (size_t)count * sizeof *copies);
  for (; made < input_count; made++) {
    const int32_t i = inputs[made];
    owned[made].tag = RVM_TAG_NIL;
    if (i >= count || arguments[i].tag != RVM_TAG_TENSOR) continue; /* the kernel rejects the arguments */
    status = rvm_tensor_make_private(machine->pool, arguments[i].as.tensor, &owned[made]);
    if (status) {
      *result = owned[made];
      break;
    }
    copies[i] = owned[made];
  }
  if (!status) status = kernel(machine, copies, count, result);
  while (made > 0) rvm_release(&owned[--made]);
  rvm_free(copies);
  return status;
}

static rvm_status native_call_with_private(void *self, rvm_packed_function kernel, const int32_t *inputs,
                                           int32_t input_count, const rvm_value *arguments, int32_t count,
                                           rvm_value *result) {
  rvm_machine *machine = self;
  /* An ahead-of-time export has no machine.  Its caller must not change the inputs during the call. */
  if (!machine) return kernel(NULL, arguments, count, result);
  for (int32_t k = 0; k < input_count; k++) {
    const int32_t i = inputs[k];
    if (i < count && arguments[i].tag == RVM_TAG_TENSOR && !rvm_tensor_is_private(arguments[i].as.tensor))
      return call_with_copies(machine, kernel, inputs, input_count, arguments, count, result);
  }
  return kernel(machine, arguments, count, result);
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
    .parallel = rvm_machine_parallel,
    .step = native_step,
    .is_ending = rvm_machine_is_ending,
    .call_with_private = native_call_with_private,
};

rvm_status rvm_aot_open(const rvm_aot_library *library, rvm_value *error) {
  RVM_EXPECT_POINTER(library, error);
  if (library->abi_version != RVM_ABI_VERSION)
    return rvm_fail(error, RVM_UNSUPPORTED,
                    "the library was built for ABI version %d, this runtime has version %d; export the library again",
                    (int)library->abi_version, RVM_ABI_VERSION);
  char missing[128];
  if (library->cpu && rvm_cpu_missing(library->cpu, missing, sizeof missing))
    return rvm_fail(
        error, RVM_UNSUPPORTED,
        "the library was built for processors with %s, which this processor lacks; export it for this processor",
        missing);
  RVM_EXPECT_POINTER(library->open, error);
  library->open(&rvm_machine_native_api);
  return RVM_OK;
}
