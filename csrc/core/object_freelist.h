/* object_freelist.h: memory of tensors, shapes, tuples, lists and closures.  A machine keeps the memory of freed
   objects in free lists, one per size class, and reuses it. */
#ifndef RELVM_OBJECT_FREELIST_H
#define RELVM_OBJECT_FREELIST_H

#include "base.h"

/* A block's size is a multiple of RVM_OBJECT_STEP bytes.  Blocks of more than RVM_OBJECT_CLASSES steps are not cached.
   The free lists of a machine hold at most RVM_KEPT_OBJECT_BYTES, unless rvm_objects.keeps_all is set. */
enum { RVM_OBJECT_STEP = 16, RVM_OBJECT_CLASSES = 64, RVM_KEPT_OBJECT_BYTES = 1 << 18 };

/* The free lists of a machine.  Initialize with zeros. */
typedef struct rvm_objects {
  struct rvm_dead_object *kept[RVM_OBJECT_CLASSES + 1]; /* indexed by class, the block's size in steps */
  int64_t kept_bytes;
  int32_t keeps_all;         /* 1: the lists may hold more than RVM_KEPT_OBJECT_BYTES (real-time mode) */
  struct rvm_objects *outer; /* the lists that the thread used before it entered these */
} rvm_objects;

/* rvm_objects_enter makes this thread allocate from and free to these lists until rvm_objects_leave.  Blocks do not
   belong to a machine: an object may be allocated from the lists of one machine and freed to those of another, or to
   none. */
void rvm_objects_enter(rvm_objects *objects);
void rvm_objects_leave(rvm_objects *objects);
/* Leaves the lists (rvm_objects_leave), if this thread has not left them yet, and frees the cached blocks. */
void rvm_objects_close(rvm_objects *objects);

/* Allocate and free an object.  The allocators return NULL if there is no memory, and store the block's size class
   in *class, which must be passed to rvm_object_free. */
void *rvm_object_allocate(size_t size_bytes, int32_t *class);
void *rvm_object_allocate_zeroed(size_t size_bytes, int32_t *class);
void rvm_object_free(void *object, int32_t class);

#endif
