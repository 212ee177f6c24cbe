/* object.h: references to objects, and tuples, lists, closures and strings. */
#ifndef RELVM_OBJECT_H
#define RELVM_OBJECT_H

#include "errors.h"

/* The lower bits of memory_class of a tensor are its size class (object_freelist.h).  The others are its donation
   (tensor.h). */
enum { RVM_CLASS_BITS = 16, RVM_CLASS_MASK = (1 << RVM_CLASS_BITS) - 1 };

/* rvm_retain and rvm_release are inline versions of rvm_value_retain and rvm_value_release for well-formed values. */
static inline void rvm_retain(rvm_value value) {
  if (rvm_value_is_object(value) && value.as.object->references >= 0) value.as.object->references++;
}
/* Drops a reference, and frees the object if it was the last one. */
void rvm_object_release(rvm_object *object);
/* Sets *value to NIL, and drops the reference that it held. */
static inline void rvm_release(rvm_value *value) {
  rvm_value old = *value;
  value->tag = RVM_TAG_NIL;
  if (rvm_value_is_object(old)) rvm_object_release(old.as.object);
}

/* Returns the items of a tuple or list, borrowed, and stores their number in *size. */
static inline rvm_value *rvm_value_items(rvm_value value, int32_t *size) {
  if (value.tag == RVM_TAG_LIST) {
    *size = value.as.list->size;
    return value.as.list->items;
  }
  *size = value.as.tuple->size;
  return value.as.tuple->items;
}

/* Create a tuple or list that retains the items: rvm_tuple_new and rvm_list_new (host_values.c) without the checks. */
rvm_status rvm_tuple_of(int32_t size, const rvm_value *items, rvm_value *result);
rvm_status rvm_list_of(int32_t size, const rvm_value *items, rvm_value *result);
/* Creates a string with uninitialized bytes and a NUL after them. */
rvm_status rvm_string_allocate(int64_t length, rvm_value *result);
/* Creates an empty list with space for `capacity` items. */
rvm_status rvm_list_allocate(int64_t capacity, rvm_value *result);
/* Retains an item and appends it to a list with spare capacity. */
static inline void rvm_list_add(rvm_list *list, rvm_value item) {
  rvm_retain(item);
  list->items[list->size++] = item;
}

/* Creates a closure whose captured values are NIL. */
rvm_status rvm_closure_new(rvm_function *function, int32_t captured_count, rvm_value *result);

#endif
