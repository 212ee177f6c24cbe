/* number_format.h: converts numbers to and from text independently of the locale. */
#ifndef RELVM_NUMBER_FORMAT_H
#define RELVM_NUMBER_FORMAT_H

#include "string_tensor.h"

/* The size of a buffer for the longest number, with its NUL. */
#define RVM_NUMBER_BYTES 40

/* Writes an element of dtype bool, f16, f32, f64, or an integer dtype of at least 8 bits, and returns the length of the
   text.  A float is written with the fewest digits that read back as the same number.  Its text has an exponent if the
   absolute value is below 1e-4 or at least 1e16. */
int32_t rvm_number_write(int32_t dtype, const void *element, char text[RVM_NUMBER_BYTES]);
/* Reads an element of dtype f32, f64, or an integer dtype of at least 8 bits, and returns 1.  White space around the
   number is skipped.  Returns 0 if the text is not such a number, or if an integer is out of range. */
int32_t rvm_number_read(rvm_text text, int32_t dtype, void *element);

#endif
