/* relvm_run: run a function of an executable from C.
 *
 *     relvm_run FILE.rvm FUNCTION [ARGUMENT...]
 *
 * An argument is an int (7), a float (0.5) or a tensor type (f32[2,3]).  Tensors are filled with 0, 1, 2, ... */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "relvm.h"

enum { MAX_ARGUMENTS = 32, MAX_DIMS = 8, MAX_PRINTED = 16 };

static const char *const dtype_names[] = {
#define DTYPE(name, code, bits, ctype, numpy) #name,
#include "dtypes.def"
#undef DTYPE
};

static double element(const rvm_tensor *tensor, int64_t i) {
  switch (tensor->dtype) {
#define DTYPE(name, code, bits, ctype, numpy) \
  case RVM_DTYPE_##name: return (double)((const ctype *)tensor->dl.data)[i];
#include "dtypes.def"
#undef DTYPE
    default: return 0;
  }
}

static void element_set(rvm_tensor *tensor, int64_t i) {
  switch (tensor->dtype) {
#define DTYPE(name, code, bits, ctype, numpy) \
  case RVM_DTYPE_##name: ((ctype *)tensor->dl.data)[i] = (ctype)i; break;
#include "dtypes.def"
#undef DTYPE
  }
}

static int64_t element_count(const rvm_tensor *tensor) {
  int64_t count = 1;
  for (int32_t i = 0; i < tensor->dl.ndim; i++) count *= tensor->dl.shape[i];
  return count;
}

static void print_tensor(const rvm_tensor *tensor) {
  printf("%s[", dtype_names[tensor->dtype]);
  for (int32_t i = 0; i < tensor->dl.ndim; i++) printf("%s%lld", i > 0 ? "," : "", (long long)tensor->dl.shape[i]);
  printf("]");
  int64_t count = element_count(tensor);
  for (int64_t i = 0; i < count && i < MAX_PRINTED; i++) printf(" %.9g", element(tensor, i));
  printf("%s", count > MAX_PRINTED ? " ..." : "");
}

static void print_value(rvm_value value) {
  switch (value.tag) {
    case RVM_TAG_NIL: printf("nil"); break;
    case RVM_TAG_INT: printf("%lld", (long long)value.as.i); break;
    case RVM_TAG_FLOAT: printf("%.17g", value.as.f); break;
    case RVM_TAG_BOOL: printf("%s", value.as.i ? "true" : "false"); break;
    case RVM_TAG_DTYPE: printf("%s", dtype_names[value.as.i]); break;
    case RVM_TAG_TENSOR: print_tensor(value.as.tensor); break;
    case RVM_TAG_STRING: printf("\"%s\"", value.as.string->bytes); break;
    case RVM_TAG_SHAPE:
      printf("shape");
      for (int32_t i = 0; i < value.as.shape->rank; i++) printf(" %lld", (long long)value.as.shape->dims[i]);
      break;
    case RVM_TAG_TUPLE:
      printf("(");
      for (int32_t i = 0; i < value.as.tuple->size; i++) {
        printf("%s", i > 0 ? ", " : "");
        print_value(value.as.tuple->items[i]);
      }
      printf(")");
      break;
    default: printf("a function"); break;
  }
}

/* "f32[2,3]" */
static rvm_status parse_tensor(const char *text, rvm_value *result) {
  size_t name_length = strcspn(text, "[");
  int64_t dims[MAX_DIMS];
  int32_t dtype = 0, rank = 0;
  while (dtype < RVM_DTYPE_COUNT &&
         (strlen(dtype_names[dtype]) != name_length || strncmp(dtype_names[dtype], text, name_length) != 0))
    dtype++;
  for (const char *at = text + name_length; *at && strcmp(at, "]") != 0 && strcmp(at, "[]") != 0; rank++) {
    char *end;
    if (rank == MAX_DIMS) return rvm_fail(result, RVM_ARGUMENT_ERROR, "%s: more than %d dimensions", text, MAX_DIMS);
    dims[rank] = strtoll(at + 1, &end, 10);
    if (end == at + 1) return rvm_fail(result, RVM_ARGUMENT_ERROR, "%s is no int, float or tensor type", text);
    at = end;
  }
  rvm_status status = rvm_tensor_new(dtype, rank, dims, result);
  for (int64_t i = 0; !status && i < element_count(result->as.tensor); i++) element_set(result->as.tensor, i);
  return status;
}

static rvm_status parse_argument(const char *text, rvm_value *result) {
  char *end;
  *result = (rvm_value){.tag = RVM_TAG_INT, .as.i = strtoll(text, &end, 10)};
  if (*end == '\0') return RVM_OK;
  *result = (rvm_value){.tag = RVM_TAG_FLOAT, .as.f = strtod(text, &end)};
  return *end == '\0' ? RVM_OK : parse_tensor(text, result);
}

static rvm_status run(rvm_executable *executable, const char *name, char **texts, int32_t count, rvm_value *result) {
  int32_t index = rvm_executable_find(executable, name), parsed = 0;
  if (index < 0) return rvm_fail(result, RVM_UNKNOWN_FUNCTION, "no function %s", name);
  if (count > MAX_ARGUMENTS) return rvm_fail(result, RVM_ARGUMENT_ERROR, "more than %d arguments", MAX_ARGUMENTS);
  rvm_value arguments[MAX_ARGUMENTS];
  rvm_machine *machine;
  rvm_status status = rvm_machine_new(executable, NULL, &machine, result);
  if (status) return status;
  while (parsed < count && !(status = parse_argument(texts[parsed], &arguments[parsed]))) parsed++;
  if (status) *result = arguments[parsed];
  if (!status) status = rvm_machine_call(machine, index, arguments, count, result);
  while (parsed > 0) rvm_value_release(&arguments[--parsed]);
  if (!status) print_value(*result); /* before the machine goes: a result may be one of its functions */
  rvm_machine_release(machine);
  return status;
}

int main(int argument_count, char **arguments) {
  if (argument_count < 3) {
    fprintf(stderr, "usage: %s FILE.rvm FUNCTION [ARGUMENT...]\n", arguments[0]);
    return 2;
  }
  rvm_executable *executable = NULL;
  const void *bytes = NULL;
  int64_t size_bytes;
  rvm_value result = {.tag = RVM_TAG_NIL};
  rvm_status status = rvm_file_map(arguments[1], &bytes, &size_bytes, &result);
  rvm_load_options options = {.trust_native = 1};
  if (!status) status = rvm_executable_load(bytes, size_bytes, &options, &executable, &result);
  if (status == RVM_UNSUPPORTED) { /* such as native code for another processor: the portable program has none */
    fprintf(stderr, "%s; loading the portable program\n", result.as.error->message);
    rvm_value_release(&result);
    options.portable = 1;
    status = rvm_executable_load(bytes, size_bytes, &options, &executable, &result);
  }
  if (!status) status = run(executable, arguments[2], arguments + 3, argument_count - 3, &result);
  if (status) {
    const rvm_error *error = result.as.error;
    fprintf(stderr, "error: %s%s%s", error->message, error->trace ? "\n" : "", error->trace ? error->trace : "");
  }
  fprintf(status ? stderr : stdout, "\n");
  rvm_value_release(&result);
  rvm_executable_release(executable);
  rvm_file_unmap(bytes, size_bytes);
  return status != RVM_OK;
}
