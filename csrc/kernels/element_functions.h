/* element_functions.h: the functions of kernel_functions.def, each a loop over the elements of strips. */
#ifndef RELVM_ELEMENT_FUNCTIONS_H
#define RELVM_ELEMENT_FUNCTIONS_H

#include <stdint.h>

enum { RVM_LEFT_IS_STRIP = 1, RVM_RIGHT_IS_STRIP = 2 };

/* out[i] = f(left[i], right[i]) for i < n.  which: the operands that are strips; the others are one element. */
typedef void (*rvm_element_loop)(int64_t n, void *out, const void *left, const void *right, int which);

typedef struct rvm_element_function {
  rvm_element_loop run;
  uint8_t result_bytes, operand_bytes, arity;
  uint16_t cost; /* of a strip, as kernel_interpreter.c counts, for the slowest operands */
} rvm_element_function;

extern const rvm_element_function rvm_element_functions[];
extern const int32_t rvm_element_function_count;

#endif
