/* arguments.c: checks of arguments shared by the builtins. */
#include "arguments.h"

/* Describes the values that a kind (rvm_check_arguments) accepts, for messages. */
static const char *kind_meaning(char kind) {
  switch (kind) {
    case 'a': return "a value";
    case 'c': return "the context";
    case 'd': return "a dtype";
    case 'D': return "a dtype or nil";
    case 'f': return "a function or closure";
    case 'g': return "a string";
    case 'h': return "a 1-d i64 tensor of the machine's own, or nil";
    case 'i': return "an int";
    case 'l': return "a list";
    case 'o': return "a storage";
    case 's': return "a shape";
    case 't': return "a tensor";
    case 'u': return "a tuple";
    default: return "an int or a shape"; /* 'z' */
  }
}

int rvm_is_heap(rvm_value value) {
  const rvm_tensor *tensor = value.as.tensor;
  return value.tag == RVM_TAG_TENSOR && tensor->dtype == RVM_DTYPE_i64 && tensor->dl.ndim == 1 && !tensor->owner &&
         !tensor->release && tensor->base.references > 0;
}

int rvm_is_pure(rvm_value value) {
  if (value.tag != RVM_TAG_FUNCTION && value.tag != RVM_TAG_CLOSURE) return 0;
  const rvm_function *function = value.tag == RVM_TAG_FUNCTION ? value.as.function : value.as.closure->function;
  int has_code = function->kind == RVM_KIND_bytecode || function->kind == RVM_KIND_native;
  return has_code && !(function->record->flags & RVM_IMPURE);
}

static inline int is_of_kind(char kind, rvm_value value) {
  if (!rvm_kind_has_tag(kind, value.tag)) return 0;
  return kind != 'h' || value.tag == RVM_TAG_NIL || rvm_is_heap(value);
}

rvm_status rvm_fail_count(enum rvm_builtin builtin, int32_t count, rvm_value *result) {
  const rvm_builtin_row *row = rvm_builtin_row_of(builtin);
  return rvm_fail(result, RVM_ARGUMENT_ERROR, "%s (%s): wrong number of arguments: %d", row->name, row->signature,
                  count);
}

static __attribute__((noinline)) rvm_status fail_argument(enum rvm_builtin builtin, char kind, int32_t index,
                                                          rvm_value value, rvm_value *result) {
  const rvm_builtin_row *row = rvm_builtin_row_of(builtin);
  char text[RVM_DESCRIPTION_BYTES];
  return rvm_fail(result, RVM_TYPE_ERROR, "%s (%s): expected argument %d to be %s, got %s", row->name, row->signature,
                  index + 1, kind_meaning(kind), rvm_value_describe(value, text));
}

rvm_status rvm_check_arguments(enum rvm_builtin builtin, const char *kinds, const rvm_value *arguments, int32_t count,
                               rvm_value *result) {
  for (int32_t i = 0; i < count; i++) {
    if (*kinds == '\0') return rvm_fail_count(builtin, count, result);
    if (!is_of_kind(*kinds, arguments[i])) return fail_argument(builtin, *kinds, i, arguments[i], result);
    if (kinds[1] != '*') kinds++;
  }
  return *kinds == '\0' || kinds[1] == '*' ? RVM_OK : rvm_fail_count(builtin, count, result);
}

rvm_status rvm_expect_dtype(const char *name, int32_t index, rvm_value value, int32_t dtype, rvm_value *result) {
  if (value.as.tensor->dtype == dtype) return RVM_OK;
  char text[RVM_DESCRIPTION_BYTES];
  return rvm_fail(result, RVM_TYPE_ERROR, "vm.builtin.%s: expected argument %d to be a tensor of dtype %s, got %s",
                  name, index + 1, rvm_dtype_name(dtype), rvm_value_describe(value, text));
}
