/* dtype.h: the names, sizes and ranges of the dtypes of dtypes.def.  The dtype passed must be a valid number. */
#ifndef RELVM_DTYPE_H
#define RELVM_DTYPE_H

#include "relvm.h"

const char *rvm_dtype_name(int64_t dtype);
rvm_dltype rvm_dtype_dl(int64_t dtype); /* the dtype in DLPack's form */
int32_t rvm_dtype_size_bytes(int64_t dtype);
/* Returns whether `value` is in the range of an integer dtype of at least 8 bits. */
int32_t rvm_dtype_holds(int64_t dtype, int64_t value);

#endif
