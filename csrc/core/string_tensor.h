/* string_tensor.h: tensors of strings.  An element is a pointer to an rvm_string, retained by the tensor, or NULL
   for the empty string.  The elements are written only by the tensor's creator, before the tensor is published. */
#ifndef RELVM_STRING_TENSOR_H
#define RELVM_STRING_TENSOR_H

#include "tensor.h"

/* A borrowed byte string, usually UTF-8, not necessarily NUL-terminated. */
typedef struct rvm_text {
  const char *bytes;
  int64_t length;
} rvm_text;

static inline rvm_text rvm_string_text(const rvm_string *string) {
  return string ? (rvm_text){string->bytes, string->length} : (rvm_text){"", 0};
}

/* Retains `string`, which may be NULL, and stores it in *element, whose previous contents are not released. */
static inline void rvm_string_share(rvm_string **element, rvm_string *string) {
  if (string) rvm_retain(rvm_object_value(&string->base));
  *element = string;
}
/* Retains the strings of `count` elements that were copied without retaining them. */
void rvm_strings_retain(rvm_string **elements, int64_t count);
/* Sets the reference counts of a constant's strings: to -1 while the constant is in use, and to 1 before it is
   freed. */
void rvm_strings_set_references(const rvm_tensor *tensor, int32_t references);

/* Returns the number of bytes that follow the first byte of a code point in UTF-8.  Returns -1 if `first` cannot be the
   first byte. */
static inline int rvm_utf8_following(uint32_t first) {
  if (first < 0x80) return 0;
  if ((first & 0xE0) == 0xC0) return 1; /* 110xxxxx */
  if ((first & 0xF0) == 0xE0) return 2; /* 1110xxxx */
  if ((first & 0xF8) == 0xF0) return 3; /* 11110xxx */
  return -1;
}
/* Returns whether UTF-8 may encode a code point with `following` bytes after the first: the encoding is the shortest
   one, and the code point is neither a surrogate nor too large. */
static inline int rvm_utf8_may_encode(uint32_t point, int following) {
  static const uint32_t smallest[4] = {0, 0x80, 0x800, 0x10000};
  const int is_surrogate = point >= 0xD800 && point < 0xE000;
  return point >= smallest[following] && point <= 0x10FFFF && !is_surrogate;
}
/* Returns the code point at *offset, which must be inside the text, and advances *offset past it.  For invalid UTF-8,
   returns 0xFFFD and advances by one byte. */
uint32_t rvm_text_next(rvm_text text, int64_t *offset);
/* Writes a code point as UTF-8 and returns its length, 1 to 4 bytes. */
int32_t rvm_point_write(uint32_t point, char bytes[4]);

#endif
