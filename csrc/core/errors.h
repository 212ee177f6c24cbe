/* errors.h: error values, their traces, and the checks of what a host passes. */
#ifndef RELVM_ERRORS_H
#define RELVM_ERRORS_H

#include "base.h"
#include "value.h"

/* Lines of a trace; what comes after them is only counted. */
#define RVM_TRACE_LINES 20

/* The allocation failed: an error that needs no memory; where a budget refused it, one that says by how much. */
rvm_status rvm_out_of_memory(rvm_value *result);
/* Adds "  in NAME at instruction K" to an error's trace, or "  in NAME" when `instruction` is negative. */
void rvm_error_add_frame(rvm_value error, const char *name, int64_t instruction);
/* Says in the trace how many frames it leaves out.  To be called once, when no frame will follow. */
void rvm_error_close_trace(rvm_value error);

/* Returns ARGUMENT_ERROR from a public function whose argument `pointer` is NULL. */
#define RVM_EXPECT_POINTER(pointer, error)                                                            \
  do {                                                                                                \
    if (!(pointer)) return rvm_fail(error, RVM_ARGUMENT_ERROR, "%s: %s is NULL", __func__, #pointer); \
  } while (0)
/* The same for a negative count or size. */
#define RVM_EXPECT_COUNT(count, error)                                                                   \
  do {                                                                                                   \
    if ((count) < 0)                                                                                     \
      return rvm_fail(error, RVM_ARGUMENT_ERROR, "%s: %s is %lld, expected 0 or more", __func__, #count, \
                      (long long)(count));                                                               \
  } while (0)
/* The same for an array of `count` elements; NULL is an empty array. */
#define RVM_EXPECT_ARRAY(array, count, error)                                                                         \
  do {                                                                                                                \
    RVM_EXPECT_COUNT(count, error);                                                                                   \
    if (!(array) && (count) > 0)                                                                                      \
      return rvm_fail(error, RVM_ARGUMENT_ERROR, "%s: %s is NULL, expected an array of %lld elements (%s)", __func__, \
                      #array, (long long)(count), #count);                                                            \
  } while (0)

/* TYPE_ERROR: a value is not sound; the message begins with `what` and its index. */
rvm_status rvm_fail_unsound(const char *what, int32_t index, rvm_value value, rvm_value *error);
static inline rvm_status rvm_expect_sound(const char *what, const rvm_value *values, int32_t count, rvm_value *error) {
  for (int32_t i = 0; i < count; i++)
    if (!rvm_value_is_sound(values[i])) return rvm_fail_unsound(what, i, values[i], error);
  return RVM_OK;
}

#endif
