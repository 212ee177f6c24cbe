/* errors.h: error values, their traces, and the checks of the host's arguments. */
#ifndef RELVM_ERRORS_H
#define RELVM_ERRORS_H

#include "base.h"
#include "value.h"

/* The maximum number of lines in a trace; further frames are only counted. */
#define RVM_TRACE_LINES 20

/* Stores an OUT_OF_MEMORY error in *result, if `result` is not NULL, and returns the status.  The error is a constant,
   which needs no memory.  But if a budget refused the allocation, the error is a new one that states the sizes. */
rvm_status rvm_out_of_memory(rvm_value *result);
/* Appends "  in NAME at instruction K" to an error's trace, or "  in NAME" if `instruction` is negative. */
void rvm_error_add_frame(rvm_value error, const char *name, int64_t instruction);
/* Appends the number of omitted frames to the trace.  Call it once, after the last rvm_error_add_frame. */
void rvm_error_close_trace(rvm_value error);

/* Returns ARGUMENT_ERROR from the calling public function if its argument `pointer` is NULL. */
#define RVM_EXPECT_POINTER(pointer, error)                                                            \
  do {                                                                                                \
    if (!(pointer)) return rvm_fail(error, RVM_ARGUMENT_ERROR, "%s: %s is NULL", __func__, #pointer); \
  } while (0)
/* Returns ARGUMENT_ERROR from the calling public function if its argument `count`, a count or size, is negative. */
#define RVM_EXPECT_COUNT(count, error)                                                                   \
  do {                                                                                                   \
    if ((count) < 0)                                                                                     \
      return rvm_fail(error, RVM_ARGUMENT_ERROR, "%s: %s is %lld, expected 0 or more", __func__, #count, \
                      (long long)(count));                                                               \
  } while (0)
/* The end of a noun after a number, for messages such as "1 item" and "2 items": "%d item%s", n, RVM_PLURAL(n).
   Indexes the text instead of using ?:, which would be a branch that tests must take for every message. */
#define RVM_PLURAL(count) (&"s"[(count) == 1])
/* Returns ARGUMENT_ERROR from the calling public function if `count` is negative, or `array` is NULL and `count` is
   not 0. */
#define RVM_EXPECT_ARRAY(array, count, error)                                                                          \
  do {                                                                                                                 \
    RVM_EXPECT_COUNT(count, error);                                                                                    \
    if (!(array) && (count) > 0)                                                                                       \
      return rvm_fail(error, RVM_ARGUMENT_ERROR, "%s: %s is NULL, expected an array of %lld element%s (%s)", __func__, \
                      #array, (long long)(count), RVM_PLURAL(count), #count);                                          \
  } while (0)

/* Fails with TYPE_ERROR because `value`, element `index` of an array from the host, is malformed.  The message begins
   with `subject` and the index. */
rvm_status rvm_fail_unsound(const char *subject, int32_t index, rvm_value value, rvm_value *error);
/* Checks that `count` values from the host are well-formed (rvm_value_is_sound).  Otherwise fails like
   rvm_fail_unsound. */
static inline rvm_status rvm_expect_sound(const char *subject, const rvm_value *values, int32_t count,
                                          rvm_value *error) {
  for (int32_t i = 0; i < count; i++)
    if (!rvm_value_is_sound(values[i])) return rvm_fail_unsound(subject, i, values[i], error);
  return RVM_OK;
}

#endif
