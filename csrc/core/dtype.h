/* dtype.h: the names and sizes of dtypes. */
#ifndef RELVM_DTYPE_H
#define RELVM_DTYPE_H

#include "relvm.h"

const char *rvm_dtype_name(int64_t dtype);
rvm_dltype rvm_dtype_dl(int64_t dtype); /* as DLPack has it */
int32_t rvm_dtype_size_bytes(int64_t dtype);
/* Whether an element of that integer dtype can hold the int. */
int32_t rvm_dtype_holds(int64_t dtype, int64_t value);

#endif
