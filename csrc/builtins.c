/* builtins.c: the functions of builtins.def.  Each checks what it is given; arguments are borrowed. */
#include "builtins.h"

#include <string.h>

#include "machine.h"

/* ---- checking arguments ---- */

enum builtin {
#define BUILTIN(name, signature, effect, meaning) BUILTIN_##name,
#include "builtins.def"
#undef BUILTIN
};

static const struct {
  const char *name, *signature;
} builtins[] = {
#define BUILTIN(name, signature, effect, meaning) {RVM_BUILTIN_PREFIX #name, signature},
#include "builtins.def"
#undef BUILTIN
};

/* The kinds of arguments, one letter each; '*' at the end: any number more of the last kind. */
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
    case 'o': return "a storage";
    case 's': return "a shape";
    case 't': return "a tensor";
    case 'u': return "a tuple";
    default: return "an int or a shape"; /* 'z' */
  }
}

/* A heap is written to: memory that constants or the host own is none. */
static int is_heap(rvm_value value) {
  const rvm_tensor *tensor = value.as.tensor;
  return value.tag == RVM_TAG_TENSOR && tensor->dtype == RVM_DTYPE_i64 && tensor->dl.ndim == 1 && !tensor->owner &&
         !tensor->release && tensor->base.references > 0;
}

static int is_of_kind(char kind, rvm_value value) {
  switch (kind) {
    case 'a': return value.tag != RVM_TAG_CONTEXT;
    case 'c': return value.tag == RVM_TAG_CONTEXT;
    case 'd': return value.tag == RVM_TAG_DTYPE;
    case 'D': return value.tag == RVM_TAG_DTYPE || value.tag == RVM_TAG_NIL;
    case 'f': return value.tag == RVM_TAG_FUNCTION || value.tag == RVM_TAG_CLOSURE;
    case 'g': return value.tag == RVM_TAG_STRING;
    case 'h': return value.tag == RVM_TAG_NIL || is_heap(value);
    case 'i': return value.tag == RVM_TAG_INT;
    case 'o': return value.tag == RVM_TAG_STORAGE;
    case 's': return value.tag == RVM_TAG_SHAPE;
    case 't': return value.tag == RVM_TAG_TENSOR;
    case 'u': return value.tag == RVM_TAG_TUPLE;
    default: return value.tag == RVM_TAG_INT || value.tag == RVM_TAG_SHAPE;
  }
}

static rvm_status fail_count(enum builtin builtin, int32_t count, rvm_value *result) {
  return rvm_fail(result, RVM_ARGUMENT_ERROR, "%s (%s): wrong number of arguments: %d", builtins[builtin].name,
                  builtins[builtin].signature, count);
}

static rvm_status check(enum builtin builtin, const char *kinds, const rvm_value *arguments, int32_t count,
                        rvm_value *result) {
  for (int32_t i = 0; i < count; i++) {
    if (*kinds == '\0') return fail_count(builtin, count, result);
    if (!is_of_kind(*kinds, arguments[i])) {
      char text[RVM_DESCRIPTION_BYTES];
      return rvm_fail(result, RVM_TYPE_ERROR, "%s (%s): expected argument %d to be %s, got %s", builtins[builtin].name,
                      builtins[builtin].signature, i + 1, kind_meaning(*kinds), rvm_value_describe(arguments[i], text));
    }
    if (kinds[1] != '*') kinds++;
  }
  return *kinds == '\0' || kinds[1] == '*' ? RVM_OK : fail_count(builtin, count, result);
}

/* The head of a builtin: `kinds` says what it takes. */
#define DEFINE(name, kinds)                                                                                          \
  static rvm_status name##_checked(const rvm_value *arguments, int32_t count, rvm_value *result);                    \
  rvm_status rvm_builtin_##name(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {          \
    (void)self;                                                                                                      \
    rvm_status status = check(BUILTIN_##name, kinds, arguments, count, result);                                      \
    return status ? status : name##_checked(arguments, count, result);                                               \
  }                                                                                                                  \
  static rvm_status name##_checked(const rvm_value *arguments, int32_t count, rvm_value *result)
