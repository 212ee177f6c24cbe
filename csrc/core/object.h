/* object.h: references to objects, and tuples, lists, closures and strings. */
#ifndef RELVM_OBJECT_H
#define RELVM_OBJECT_H

#include "errors.h"

/* retain and release for the interpreter's inner loop. */
static inline void rvm_retain(rvm_value value) {
  if (rvm_value_is_object(value) && value.as.object->references >= 0) value.as.object->references++;
}
void rvm_object_release(rvm_object *object);
static inline void rvm_release(rvm_value *value) {
  rvm_value old = *value;
  value->tag = RVM_TAG_NIL;
  if (rvm_value_is_object(old)) rvm_object_release(old.as.object);
}

/* The items of a tuple or list. */
static inline rvm_value *rvm_value_items(rvm_value value, int32_t *size) {
  if (value.tag == RVM_TAG_LIST) {
    *size = value.as.list->size;
    return value.as.list->items;
  }
  *size = value.as.tuple->size;
  return value.as.tuple->items;
}

/* A tuple, a list of values of the machine: rvm_tuple_new and rvm_list_new (host_values.c) without their checks. */
rvm_status rvm_tuple_of(int32_t size, const rvm_value *items, rvm_value *result);
rvm_status rvm_list_of(int32_t size, const rvm_value *items, rvm_value *result);
/* A string whose bytes are still to be written, but for the NUL behind them. */
rvm_status rvm_string_room(int64_t length, rvm_value *result);
/* An empty list with room for that many items. */
rvm_status rvm_list_room(int64_t capacity, rvm_value *result);
/* Adds an item to a list that has room for it. */
static inline void rvm_list_add(rvm_list *list, rvm_value item) {
  rvm_retain(item);
  list->items[list->size++] = item;
}

rvm_status rvm_closure_new(rvm_function *function, int32_t captured_count, rvm_value *result); /* captured: all NIL */

#endif
