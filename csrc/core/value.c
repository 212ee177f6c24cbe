/* value.c: describes values for error messages. */
#include "cold.h"

#include "value.h"

#include <ctype.h>
#include <stdio.h>

#include "dtype.h"

const char *rvm_value_describe(rvm_value value, char text[RVM_DESCRIPTION_BYTES]) {
  static const char names[][12] = {
#define TAG(name, meaning) #name,
#include "tags.def"
#undef TAG
  };
  const int is_known = value.tag >= 0 && value.tag < RVM_TAG_COUNT;
  const int is_sound = rvm_value_is_sound(value);
  if (value.tag == RVM_TAG_TENSOR && is_sound) {
    snprintf(text, RVM_DESCRIPTION_BYTES, "a tensor of rank %d and dtype %s", value.as.tensor->dl.ndim,
             rvm_dtype_name(value.as.tensor->dtype));
    return text;
  }
  const int is_of_runtime = value.tag == RVM_TAG_CONTEXT || value.tag == RVM_TAG_ERROR;
  snprintf(text, RVM_DESCRIPTION_BYTES, "%s%s", is_known && !is_sound && !is_of_runtime ? "malformed " : "",
           is_known ? names[value.tag] : "unknown");
  for (char *letter = text; *letter; letter++) *letter = (char)tolower((unsigned char)*letter);
  return text;
}
