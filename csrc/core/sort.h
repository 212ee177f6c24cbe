/* sort.h: sorting in place, without additional memory. */
#ifndef RELVM_SORT_H
#define RELVM_SORT_H

#include <stddef.h>

/* Returns a number less than, equal to or greater than 0 if *a is less than, equal to or greater than *b. */
typedef int rvm_comparison(const void *a, const void *b);

/* Sorts `count` items of `item_bytes` bytes.  The order of equal items is not specified. */
void rvm_sort(void *array, size_t count, size_t item_bytes, rvm_comparison *compare);

#endif
