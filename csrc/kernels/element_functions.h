/* element_functions.h: the functions of kernel_functions.def, each a loop over the elements of strips. */
#ifndef RELVM_ELEMENT_FUNCTIONS_H
#define RELVM_ELEMENT_FUNCTIONS_H

#include <stdint.h>

enum { RVM_LEFT_IS_STRIP = 1, RVM_RIGHT_IS_STRIP = 2 };

/* Computes out[i] = f(left[i], right[i]) for i < n, at most RVM_STRIP.  `strips` is a set of RVM_LEFT_IS_STRIP and
   RVM_RIGHT_IS_STRIP.  An operand that is not a strip is a single element, which is used for every i.  If no operand is
   a strip, `n` must be at most 1.  A function of one operand ignores `right`. */
typedef void (*rvm_element_loop)(int64_t n, void *out, const void *left, const void *right, int strips);

typedef struct rvm_element_function {
  rvm_element_loop run;
  uint8_t result_bytes, operand_bytes, arity;
  uint16_t cost; /* fuel for a strip of RVM_STRIP elements with the slowest operands */
} rvm_element_function;

extern const rvm_element_function rvm_element_functions[];
extern const int32_t rvm_element_function_count;

#endif
