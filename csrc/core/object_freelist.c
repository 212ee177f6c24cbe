/* object_freelist.c: free lists of small objects.  A thread uses the lists of the machine that it entered last and has
   not left. */
#include "object_freelist.h"

#include <string.h>

typedef struct rvm_dead_object {
  struct rvm_dead_object *next;
} dead_object;

/* The free lists of the machines that this thread has entered, linked by `outer`, innermost first. */
static _Thread_local rvm_objects *innermost;

void rvm_objects_enter(rvm_objects *objects) {
  objects->outer = innermost;
  innermost = objects;
}

/* Unlinks the free lists of one machine.  A thread need not leave machines in the reverse order of entering them. */
void rvm_objects_leave(rvm_objects *objects) {
  for (rvm_objects **link = &innermost; *link; link = &(*link)->outer) {
    if (*link != objects) continue;
    *link = objects->outer;
    return;
  }
}

/* Returns a cached block of a class that has one. */
static void *pop_block(rvm_objects *objects, int32_t class) {
  dead_object *block = objects->kept[class];
  RVM_UNPOISON(block, (size_t)class * RVM_OBJECT_STEP);
  objects->kept[class] = block->next;
  objects->kept_bytes -= class * RVM_OBJECT_STEP;
  return block;
}

void rvm_objects_close(rvm_objects *objects) {
  rvm_objects_leave(objects);
  for (int32_t class = 1; class <= RVM_OBJECT_CLASSES; class++)
    while (objects->kept[class]) rvm_free(pop_block(objects, class));
}

/* Returns the size class of a block, which is its size in units of RVM_OBJECT_STEP bytes, rounded up.  Returns 0 if the
   block is too large for a free list. */
static int32_t class_of(size_t size_bytes) {
  if (size_bytes > RVM_OBJECT_CLASSES * RVM_OBJECT_STEP) return 0;
  return (int32_t)((size_bytes + RVM_OBJECT_STEP - 1) / RVM_OBJECT_STEP);
}

void *rvm_object_allocate(size_t size_bytes, int32_t *class) {
  rvm_objects *objects = innermost;
  *class = class_of(size_bytes);
  if (*class == 0) return rvm_allocate(size_bytes);
  if (objects && objects->kept[*class]) return pop_block(objects, *class);
  return rvm_allocate((size_t)*class * RVM_OBJECT_STEP);
}

void *rvm_object_allocate_zeroed(size_t size_bytes, int32_t *class) {
  *class = class_of(size_bytes);
  if (*class == 0) return rvm_allocate_zeroed(size_bytes);
  void *object = rvm_object_allocate(size_bytes, class);
  return object ? memset(object, 0, size_bytes) : NULL;
}

void rvm_object_free(void *object, int32_t class) {
  rvm_objects *objects = innermost;
  const int has_list = class != 0 && objects;
  const int is_kept =
      has_list && (objects->keeps_all || objects->kept_bytes + class * RVM_OBJECT_STEP <= RVM_KEPT_OBJECT_BYTES);
  if (!is_kept) {
    rvm_free(object);
    return;
  }
  dead_object *block = object;
  block->next = objects->kept[class];
  objects->kept[class] = block;
  objects->kept_bytes += class * RVM_OBJECT_STEP;
  RVM_POISON(block, (size_t)class * RVM_OBJECT_STEP);
}
