/* posix.h: declares the function of posix.c that linux.c and macos.c call. */
#ifndef RELVM_POSIX_H
#define RELVM_POSIX_H

#include <stdint.h>

/* Writes all bytes to an open file.  Returns 0 if it fails. */
int rvm_file_write(int descriptor, const char *bytes, int64_t size_bytes);

#endif
