/* object_freelist.h: the memory of tensors, shapes, tuples, lists and closures.  A machine keeps that of dead ones for
 * its next ones. */
#ifndef RELVM_OBJECT_FREELIST_H
#define RELVM_OBJECT_FREELIST_H

#include "base.h"

/* Blocks are of multiples of a step; larger ones are not kept.  What a machine keeps has no more bytes than that. */
enum { RVM_OBJECT_STEP = 16, RVM_OBJECT_CLASSES = 64, RVM_KEPT_OBJECT_BYTES = 1 << 18 };

/* What a machine keeps.  All zeros: nothing. */
typedef struct rvm_objects {
  struct rvm_dead_object *kept[RVM_OBJECT_CLASSES + 1]; /* by class: the steps that a block has */
  int64_t kept_bytes;
  struct rvm_objects *outer; /* of a machine that this thread was inside of already */
} rvm_objects;

/* Until it leaves, this thread makes objects of what is kept there first, and keeps there what dies.  A block belongs
   to nobody: objects that are made or die elsewhere come from the system or go back to it. */
void rvm_objects_enter(rvm_objects *objects);
void rvm_objects_leave(rvm_objects *objects);
/* Leaves, where this thread has not, and frees what is kept. */
void rvm_objects_close(rvm_objects *objects);

/* NULL: no memory.  The object is to remember `class`. */
void *rvm_object_allocate(size_t size_bytes, int32_t *class);
void *rvm_object_allocate_zeroed(size_t size_bytes, int32_t *class);
void rvm_object_free(void *object, int32_t class);

#endif
