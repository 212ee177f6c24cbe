/* sort.c: heapsort.  qsort could recurse, or allocate memory that does not count against the limits of the run. */
#include "cold.h"

#include "sort.h"

#include <string.h>

static void swap(char *a, char *b, size_t item_bytes) {
  for (size_t i = 0; i < item_bytes; i++) {
    const char byte = a[i];
    a[i] = b[i];
    b[i] = byte;
  }
}

/* Moves the item `root` down until no child is larger.  The subtrees of the root are heaps. */
static void sift_down(char *items, size_t root, size_t count, size_t item_bytes, rvm_comparison *compare) {
  for (size_t child; (child = 2 * root + 1) < count; root = child) {
    if (child + 1 < count && compare(items + child * item_bytes, items + (child + 1) * item_bytes) < 0) child++;
    if (compare(items + root * item_bytes, items + child * item_bytes) >= 0) return;
    swap(items + root * item_bytes, items + child * item_bytes, item_bytes);
  }
}

void rvm_sort(void *array, size_t count, size_t item_bytes, rvm_comparison *compare) {
  char *const items = array;
  for (size_t root = count / 2; root-- > 0;) sift_down(items, root, count, item_bytes, compare);
  for (size_t last = count; last-- > 1;) {
    swap(items, items + last * item_bytes, item_bytes);
    sift_down(items, 0, last, item_bytes, compare);
  }
}
