/* string_builtins.h: helpers shared by the string builtins. */
#ifndef RELVM_STRING_BUILTINS_H
#define RELVM_STRING_BUILTINS_H

#include "string_tensor.h"

/* Stores a new string, the concatenation of two texts, in *element, whose previous contents are not released.  An
   empty string is NULL.  Charges the copying to `machine`, which may be NULL.  On failure, *element is NULL. */
rvm_status rvm_string_join(rvm_machine *machine, rvm_string **element, rvm_text first, rvm_text second,
                           rvm_value *error);
/* Stores a new string with a copy of a text in *element, as rvm_string_join does. */
static inline rvm_status rvm_string_set(rvm_machine *machine, rvm_string **element, rvm_text text, rvm_value *error) {
  return rvm_string_join(machine, element, text, (rvm_text){"", 0}, error);
}

/* Creates a tensor of empty strings with the shape of x and one more axis of size `size` at the end. */
rvm_status rvm_tensor_with_last_axis(const rvm_tensor *x, int64_t size, rvm_value *result);

#endif
