/* relvm_module: call a model in a shared library from C.  `relvm compile MODEL -o libmodel.so` builds the library.
 *
 *     relvm_module ROWS COLUMNS
 *
 * The program calls `main` of the model with an f32 tensor of the given shape, filled with 0, 1, 2, ...  It prints the
 * elements of the resulting f32 tensor. */
#include <stdio.h>
#include <stdlib.h>

#include "relvm.h"

/* Calls the model.  The caller must release *result, which is the result or the error. */
static rvm_status call_main(rvm_machine *machine, int32_t index, const int64_t dims[2], rvm_value *result) {
  rvm_value x;
  rvm_status status = rvm_tensor_new(RVM_DTYPE_f32, 2, dims, &x);
  if (status) {
    *result = x;
    return status;
  }
  float *elements = x.as.tensor->dl.data;
  for (int64_t i = 0; i < dims[0] * dims[1]; i++) elements[i] = (float)i;
  status = rvm_machine_call(machine, index, &x, 1, result);
  rvm_value_release(&x);
  return status;
}

static rvm_status run(const int64_t dims[2], rvm_executable **executable, rvm_value *result) {
  rvm_machine *machine;
  rvm_status status = relvm_module_load(executable, result);
  if (status) return status;
  int32_t index = rvm_executable_find(*executable, "main");
  if (index < 0) return rvm_fail(result, RVM_UNKNOWN_FUNCTION, "the model has no function main");
  if ((status = rvm_machine_new(*executable, NULL, &machine, result))) return status;
  status = call_main(machine, index, dims, result);
  rvm_machine_release(machine); /* a tensor outlives the machine that made it */
  return status;
}

static int print_result(rvm_value result) {
  if (result.tag != RVM_TAG_TENSOR || result.as.tensor->dtype != RVM_DTYPE_f32) {
    fprintf(stderr, "error: the result is no f32 tensor\n");
    return 1;
  }
  const float *elements = result.as.tensor->dl.data;
  int64_t count = rvm_tensor_size_bytes(result.as.tensor) / (int64_t)sizeof *elements;
  for (int64_t i = 0; i < count; i++) printf("%.9g\n", (double)elements[i]);
  return 0;
}

int main(int argument_count, char **arguments) {
  if (argument_count != 3) {
    fprintf(stderr, "usage: %s ROWS COLUMNS\n", arguments[0]);
    return 2;
  }
  const int64_t dims[2] = {atoll(arguments[1]), atoll(arguments[2])};
  rvm_executable *executable = NULL;
  rvm_value result = {.tag = RVM_TAG_NIL};
  int failed = run(dims, &executable, &result) != RVM_OK;
  if (failed) {
    fprintf(stderr, "error: %s\n", result.as.error->message);
  } else {
    failed = print_result(result);
  }
  rvm_value_release(&result);
  rvm_executable_release(executable); /* last: a result may be one of its constants */
  return failed;
}
