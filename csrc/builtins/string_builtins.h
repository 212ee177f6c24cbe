/* string_builtins.h: what the builtins of strings share. */
#ifndef RELVM_TEXTS_H
#define RELVM_TEXTS_H

#include "strings.h"

/* TYPE_ERROR unless argument `index` (counted from 0), a tensor, is of that dtype. */
rvm_status rvm_expect_dtype(const char *name, int32_t index, rvm_value value, int32_t dtype, rvm_value *result);
/* The number of a tensor's elements. */
int64_t rvm_tensor_count(const rvm_tensor *tensor);

/* A tensor of empty strings of the shape of x and a last axis of that size. */
rvm_status rvm_tensor_widened(const rvm_tensor *x, int64_t size, rvm_value *result);

#endif
