/* string_builtins.h: what the builtins of strings share. */
#ifndef RELVM_STRING_BUILTINS_H
#define RELVM_STRING_BUILTINS_H

#include "string_tensor.h"

/* Makes an element a string of two texts.  It held nothing.  machine: whose work that is, or NULL. */
rvm_status rvm_string_join(rvm_machine *machine, rvm_string **element, rvm_text first, rvm_text second,
                           rvm_value *error);
/* The same of one. */
static inline rvm_status rvm_string_set(rvm_machine *machine, rvm_string **element, rvm_text text, rvm_value *error) {
  return rvm_string_join(machine, element, text, (rvm_text){"", 0}, error);
}

/* A tensor of empty strings of the shape of x and a last axis of that size. */
rvm_status rvm_tensor_widened(const rvm_tensor *x, int64_t most, rvm_value *result);

#endif
