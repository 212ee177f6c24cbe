/* number_format.h: numbers as text, whatever the locale. */
#ifndef RELVM_NUMBER_FORMAT_H
#define RELVM_NUMBER_FORMAT_H

#include "string_tensor.h"

/* The longest text of a number, and a NUL. */
#define RVM_NUMBER_BYTES 40

/* Writes an element of dtype bool, of an integer dtype or of f16, f32 or f64: the length.  Floats have the fewest
   digits that read back as the same number, with an exponent below 1e-4 and from 1e16 on, else with a point. */
int32_t rvm_number_write(int32_t dtype, const void *element, char text[RVM_NUMBER_BYTES]);
/* Reads an element of an integer dtype of 8 bits or more, f32 or f64; 0: the text is no such number, or one that the
   integers do not have.  White space may stand around it. */
int32_t rvm_number_read(rvm_text text, int32_t dtype, void *element);

#endif
