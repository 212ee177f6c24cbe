/* dtype.c: the names and sizes of dtypes. */
#include "dtype.h"

static const struct {
  char name[12];
  rvm_dltype dl;
} dtypes[] = {
/* An element of dtype str has the size of a pointer, which depends on the processor. */
#define DTYPE(name, code, bits, ctype, numpy) \
  {#name, {code, RVM_DTYPE_##name == RVM_DTYPE_str ? 8 * sizeof(ctype) : bits, 1}},
#include "dtypes.def"
#undef DTYPE
};

const char *rvm_dtype_name(int64_t dtype) { return dtypes[dtype].name; }

rvm_dltype rvm_dtype_dl(int64_t dtype) { return dtypes[dtype].dl; }

int32_t rvm_dtype_size_bytes(int64_t dtype) { return (dtypes[dtype].dl.bits + 7) / 8; }

int32_t rvm_dtype_holds(int64_t dtype, int64_t value) {
  int bits = rvm_dtype_size_bytes(dtype) * 8;
  if (dtype >= RVM_DTYPE_u8) return value >= 0 && (bits == 64 || value < (int64_t)1 << bits);
  return bits == 64 || (value >= -((int64_t)1 << (bits - 1)) && value < (int64_t)1 << (bits - 1));
}
