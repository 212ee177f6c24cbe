/* string_builtins.h: what the builtins of strings share. */
#ifndef RELVM_TEXTS_H
#define RELVM_TEXTS_H

#include "strings.h"

/* Makes an element a string of two texts.  It held nothing.  machine: whose work that is, or NULL. */
rvm_status rvm_string_join(rvm_machine *machine, rvm_string **element, rvm_text first, rvm_text second,
                           rvm_value *error);
/* The same of one. */
static inline rvm_status rvm_string_set(rvm_machine *machine, rvm_string **element, rvm_text text, rvm_value *error) {
  return rvm_string_join(machine, element, text, (rvm_text){"", 0}, error);
}

/* TYPE_ERROR unless argument `index` (counted from 0), a tensor, is of that dtype. */
rvm_status rvm_expect_dtype(const char *name, int32_t index, rvm_value value, int32_t dtype, rvm_value *result);

/* A tensor of empty strings of the shape of x and a last axis of that size. */
rvm_status rvm_tensor_widened(const rvm_tensor *x, int64_t size, rvm_value *result);

#endif
