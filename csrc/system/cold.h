/* cold.h: optimizes for size.  Include it first in files whose code runs rarely or mostly waits for the C library. */
#ifndef RELVM_COLD_H
#define RELVM_COLD_H

#if defined(__OPTIMIZE__) && !defined(__clang__) /* Clang lacks this pragma */
#pragma GCC optimize("Os")
#endif

#endif
