/* check.h: the checks of the C tests.  A failed check is printed and counted; main returns CHECK_RESULT(). */
#ifndef RELVM_TEST_CHECK_H
#define RELVM_TEST_CHECK_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "relvm.h"

static int checks_failed;

#define CHECK(condition)                                             \
  do {                                                               \
    if (!(condition)) {                                              \
      printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      checks_failed++;                                               \
    }                                                                \
  } while (0)

#define CHECK_INT(got, expected)                                                                               \
  do {                                                                                                         \
    int64_t got_ = (got), expected_ = (expected);                                                              \
    if (got_ != expected_) {                                                                                   \
      printf("%s:%d: %s: expected %" PRId64 ", got %" PRId64 "\n", __FILE__, __LINE__, #got, expected_, got_); \
      checks_failed++;                                                                                         \
    }                                                                                                          \
  } while (0)

/* Checks that the call succeeds.  Otherwise prints its error, which is in `value`. */
#define CHECK_OK(call, value)                                                        \
  do {                                                                               \
    rvm_status status_ = (call);                                                     \
    if (status_ != RVM_OK) {                                                         \
      printf("%s:%d: %s: status %d: %s\n", __FILE__, __LINE__, #call, status_,       \
             (value).tag == RVM_TAG_ERROR ? (value).as.error->message : "no error"); \
      checks_failed++;                                                               \
    }                                                                                \
  } while (0)

/* Checks that the call fails with `status`, and that its error, in `value`, has that status and `text` in its message.
   Releases the error. */
#define CHECK_FAILS(call, status, text, value) check_fails(__FILE__, __LINE__, #call, (call), status, text, &(value))

static inline void check_fails(const char *file, int line, const char *call, rvm_status got, rvm_status expected,
                               const char *text, rvm_value *value) {
  const char *message = value->tag == RVM_TAG_ERROR ? value->as.error->message : "no error";
  if (got != expected || value->tag != RVM_TAG_ERROR || value->as.error->status != expected || !strstr(message, text)) {
    printf("%s:%d: %s: expected status %d and \"%s\", got status %d and \"%s\"\n", file, line, call, expected, text,
           got, message);
    checks_failed++;
  }
  rvm_value_release(value);
}

#define CHECK_TEXT(got, expected)                                                          \
  do {                                                                                     \
    if (strcmp(got, expected) != 0) {                                                      \
      printf("%s:%d: expected \"%s\"\n  got \"%s\"\n", __FILE__, __LINE__, expected, got); \
      checks_failed++;                                                                     \
    }                                                                                      \
  } while (0)

#define CHECK_RESULT() (checks_failed > 0)

#define COUNT_OF(array) ((int32_t)(sizeof(array) / sizeof *(array)))

static inline rvm_value int_value(int64_t i) { return (rvm_value){.tag = RVM_TAG_INT, .as.i = i}; }

/* Creates a value that a test needs but does not test.  Ends the program if that fails. */
#define MAKE(value, call)                                            \
  do {                                                               \
    if ((call) != RVM_OK) {                                          \
      printf("%s:%d: cannot make %s\n", __FILE__, __LINE__, #value); \
      exit(2);                                                       \
    }                                                                \
  } while (0)

static inline rvm_value string_value(const char *text) {
  rvm_value value;
  MAKE(value, rvm_string_new(text, (int64_t)strlen(text), &value));
  return value;
}

static inline rvm_value shape_value(int32_t rank, const int64_t *dims) {
  rvm_value value;
  MAKE(value, rvm_shape_new(rank, dims, &value));
  return value;
}

static inline rvm_value tensor_value(int32_t dtype, int32_t rank, const int64_t *dims) {
  rvm_value value;
  MAKE(value, rvm_tensor_new(dtype, rank, dims, &value));
  return value;
}

static inline rvm_value tuple_value(int32_t size, const rvm_value *items) {
  rvm_value value;
  MAKE(value, rvm_tuple_new(size, items, &value));
  return value;
}

#endif
