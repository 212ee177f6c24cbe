/* arguments.h: the prologue of a builtin, which checks the number and types of its arguments. */
#ifndef RELVM_ARGUMENTS_H
#define RELVM_ARGUMENTS_H

#include "machine.h"
#include "registry.h"
#include "tensor.h"

/* Returns whether the kind of an argument (kind_meaning in arguments.c) accepts a tag.  'h' accepts only some tensors
   (rvm_is_heap). */
static inline int rvm_kind_has_tag(char kind, int64_t tag) {
  switch (kind) {
    case 'a': return tag != RVM_TAG_CONTEXT;
    case 'c': return tag == RVM_TAG_CONTEXT;
    case 'd': return tag == RVM_TAG_DTYPE;
    case 'D': return tag == RVM_TAG_DTYPE || tag == RVM_TAG_NIL;
    case 'f': return tag == RVM_TAG_FUNCTION || tag == RVM_TAG_CLOSURE;
    case 'g': return tag == RVM_TAG_STRING;
    case 'h': return tag == RVM_TAG_NIL || tag == RVM_TAG_TENSOR;
    case 'i': return tag == RVM_TAG_INT;
    case 'l':
    case 'u': return tag == RVM_TAG_LIST || tag == RVM_TAG_TUPLE;
    case 'o': return tag == RVM_TAG_STORAGE;
    case 's': return tag == RVM_TAG_SHAPE;
    case 't': return tag == RVM_TAG_TENSOR;
    default: return tag == RVM_TAG_INT || tag == RVM_TAG_SHAPE; /* 'z' */
  }
}

/* Returns 1 if the arguments are of the kinds that rvm_check_arguments expects, and 0 if they are not, or if `kinds`
   has more than 8 letters, a '*' or an 'h'.  `kinds` is a literal, so that only a comparison of the tag remains for
   each argument. */
static inline __attribute__((always_inline)) int rvm_have_kinds(const char *kinds, int32_t kind_count,
                                                                const rvm_value *arguments, int32_t count) {
  if (kind_count > 8 || count != kind_count) return 0;
#pragma GCC unroll 8
  for (int32_t i = 0; i < kind_count; i++)
    if (kinds[i] == '*' || kinds[i] == 'h' || !rvm_kind_has_tag(kinds[i], arguments[i].tag)) return 0;
  return 1;
}

/* The head of the definition of a builtin. */
#define RVM_BUILTIN(name) \
  rvm_status rvm_builtin_##name(void *self, const rvm_value *arguments, int32_t count, rvm_value *result)

/* Checks a builtin's arguments against `kinds`, which has one letter for each argument (kind_meaning in arguments.c).
   If '*' follows the last letter, any number of arguments may have that kind.  Fails with ARGUMENT_ERROR for a wrong
   number of arguments, and with TYPE_ERROR for an argument of another kind. */
rvm_status rvm_check_arguments(enum rvm_builtin builtin, const char *kinds, const rvm_value *arguments, int32_t count,
                               rvm_value *result);
/* Fails with ARGUMENT_ERROR because the builtin does not accept `count` arguments. */
rvm_status rvm_fail_count(enum rvm_builtin builtin, int32_t count, rvm_value *result);

/* Returns whether the value is a function or closure of the program that has no side effects. */
int rvm_is_pure(rvm_value value);

/* Returns whether the value can be a shape heap (shape.c): a tensor of rank 1 and dtype i64 that contains its elements
   itself.  A heap is written to, so it cannot be a constant or memory of the host. */
int rvm_is_heap(rvm_value value);

/* Fails with TYPE_ERROR unless the tensor `value`, argument `index` (0-based) of builtin `name`, has the dtype. */
rvm_status rvm_expect_dtype(const char *name, int32_t index, rvm_value value, int32_t dtype, rvm_value *result);

/* Checks the arguments of builtin `name` at the start of its body, and returns from it on failure. */
#define RVM_CHECK(name, kinds)                                                                     \
  do {                                                                                             \
    (void)self;                                                                                    \
    if (rvm_have_kinds(kinds, (int32_t)sizeof(kinds) - 1, arguments, count)) break;                \
    rvm_status status_ = rvm_check_arguments(RVM_BUILTIN_##name, kinds, arguments, count, result); \
    if (status_) return status_;                                                                   \
  } while (0)

#endif
