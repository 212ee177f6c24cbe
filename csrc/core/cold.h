/* cold.h: included first by files whose code runs seldom, or waits for the C library: gcc makes it small rather than
 * fast. */
#ifndef RELVM_COLD_H
#define RELVM_COLD_H

#if defined(__OPTIMIZE__) && !defined(__clang__) /* which has no such pragma */
#pragma GCC optimize("Os")
#endif

#endif
