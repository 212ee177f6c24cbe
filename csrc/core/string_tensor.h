/* string_tensor.h: tensors of strings.  An element is a pointer to an rvm_string that the tensor holds a reference to,
   or NULL: the empty string.  Only who makes such a tensor writes to it, before anybody else knows of it. */
#ifndef RELVM_STRING_TENSOR_H
#define RELVM_STRING_TENSOR_H

#include "tensor.h"

/* Bytes, most often UTF-8; no NUL need follow them. */
typedef struct rvm_text {
  const char *bytes;
  int64_t length;
} rvm_text;

static inline rvm_text rvm_string_text(const rvm_string *string) {
  return string ? (rvm_text){string->bytes, string->length} : (rvm_text){"", 0};
}

/* Makes an element the string of another one.  It held nothing. */
static inline void rvm_string_share(rvm_string **element, rvm_string *string) {
  if (string) rvm_retain(rvm_object_value(&string->base));
  *element = string;
}
/* Retains `count` elements that have been copied as bytes. */
void rvm_strings_retain(rvm_string **elements, int64_t count);
/* The strings of a constant live as long as it does: their counts become `references`, -1, and 1 when they go. */
void rvm_strings_count(const rvm_tensor *tensor, int32_t references);

/* The code point that begins at `*at`, which moves behind it; of bytes that are no UTF-8, 0xFFFD for one of them. */
uint32_t rvm_text_next(rvm_text text, int64_t *at);
/* Writes a code point as UTF-8: how many bytes, 1 to 4. */
int32_t rvm_point_write(uint32_t point, char bytes[4]);

#endif
