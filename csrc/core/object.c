/* object.c: reference counts, and the construction of tuples, lists, closures and strings. */
#include "object.h"

#include <string.h>

#include "object_freelist.h"
#include "storage_pool.h"

/* ---- reference counts ---- */

/* Returns whether the value refers to an object with the same tag. */
static int is_object(rvm_value value) {
  return rvm_value_is_object(value) && value.tag < RVM_TAG_COUNT && value.as.object &&
         value.as.object->tag == value.tag;
}

void rvm_value_retain(rvm_value value) {
  if (is_object(value)) rvm_retain(value);
}

void rvm_value_release(rvm_value *value) {
  if (!value) return;
  if (!is_object(*value)) value->tag = RVM_TAG_NIL;
  rvm_release(value);
}

/* Returns the items of a tuple, list or closure, and stores the address of their count in *count.  Returns NULL and
   stores NULL for other objects. */
static rvm_value *object_items(rvm_object *object, int32_t **count) {
  if (object->tag == RVM_TAG_TUPLE) {
    *count = &((rvm_tuple *)object)->size;
    return ((rvm_tuple *)object)->items;
  }
  if (object->tag == RVM_TAG_LIST) {
    *count = &((rvm_list *)object)->size;
    return ((rvm_list *)object)->items;
  }
  if (object->tag == RVM_TAG_CLOSURE) {
    *count = &((rvm_closure *)object)->captured_count;
    return ((rvm_closure *)object)->captured;
  }
  *count = NULL;
  return NULL;
}

static void tensor_free(rvm_tensor *tensor) {
  if (tensor->release) tensor->release(tensor->release_argument);
  if (tensor->owner) rvm_object_release(tensor->owner);
  rvm_object_free(tensor, tensor->memory_class & RVM_CLASS_MASK);
}

static void list_free(rvm_list *list) {
  rvm_free(list->items);
  rvm_object_free(list, list->memory_class);
}

static void error_free(rvm_error *error) {
  rvm_free(error->message);
  rvm_free(error->trace);
  rvm_free(error);
}

/* Frees an object whose items, if it had any, have been released.  Freeing a tensor may release its owner or its
   strings.  An owner has no owner itself (rvm_tensor_view), so the recursion is at most two levels deep. */
static void leaf_free(rvm_object *object) {
  switch (object->tag) {
    case RVM_TAG_TENSOR: tensor_free((rvm_tensor *)object); return;
    case RVM_TAG_SHAPE: rvm_object_free(object, ((rvm_shape *)object)->memory_class); return;
    case RVM_TAG_TUPLE: rvm_object_free(object, ((rvm_tuple *)object)->memory_class); return;
    case RVM_TAG_LIST: list_free((rvm_list *)object); return;
    case RVM_TAG_CLOSURE: rvm_object_free(object, ((rvm_closure *)object)->memory_class); return;
    case RVM_TAG_STORAGE: rvm_storage_free((rvm_storage *)object); return;
    case RVM_TAG_ERROR: error_free((rvm_error *)object); return;
  }
  rvm_free(object); /* a string */
}

/* Drops a reference.  Returns whether it was the last one.  A negative count marks an object that is never freed. */
static int drop_reference(rvm_object *object) {
  if (object->references < 0) return 0;
  object->references--;
  return object->references == 0;
}

/* Frees an object and the objects that only it refers to.  This is a depth-first traversal that uses no stack.
   `object` is the object being freed, and `parent` is the object that contains it, or NULL for the outermost object.
   Items are released from the last to the first, and the object's count is the number of items left.  Before the
   traversal descends to a child, it stores `parent` in the item that referred to the child.  When it returns, it finds
   this item at the index that is the parent's count. */
void rvm_object_release(rvm_object *object) {
  if (!drop_reference(object)) return;
  rvm_object *parent = NULL;
  for (;;) {
    int32_t *count;
    rvm_value *items = object_items(object, &count);
    if (count && *count > 0) {
      rvm_value *item = &items[--*count];
      if (rvm_value_is_object(*item) && drop_reference(item->as.object)) {
        rvm_object *child = item->as.object;
        item->as.object = parent;
        parent = object;
        object = child;
      }
      continue;
    }
    leaf_free(object);
    if (!parent) return;
    object = parent;
    items = object_items(object, &count);
    parent = items[*count].as.object;
  }
}

/* ---- tuples, lists, closures, strings ---- */

rvm_status rvm_tuple_of(int32_t size, const rvm_value *items, rvm_value *result) {
  int32_t class;
  rvm_tuple *tuple = rvm_object_allocate(sizeof *tuple + (size_t)size * sizeof *items, &class);
  if (!tuple) return rvm_out_of_memory(result);
  tuple->base = (rvm_object){.tag = RVM_TAG_TUPLE, .references = 1};
  tuple->size = size;
  tuple->memory_class = class;
  for (int32_t i = 0; i < size; i++) {
    tuple->items[i] = items[i];
    rvm_retain(items[i]);
  }
  *result = rvm_object_value(&tuple->base);
  return RVM_OK;
}

rvm_status rvm_list_allocate(int64_t capacity, rvm_value *result) {
  int32_t class;
  rvm_list *list = rvm_object_allocate(sizeof *list, &class);
  const int fits = capacity <= RVM_LARGEST_BYTES / (int64_t)sizeof(rvm_value);
  rvm_value *items = list && fits && capacity > 0 ? rvm_allocate((size_t)capacity * sizeof *items) : NULL;
  if (!list || (capacity > 0 && !items)) {
    if (list) rvm_object_free(list, class);
    return rvm_out_of_memory(result);
  }
  *list = (rvm_list){
      .base = {.tag = RVM_TAG_LIST, .references = 1}, .memory_class = class, .capacity = capacity, .items = items};
  *result = rvm_object_value(&list->base);
  return RVM_OK;
}

rvm_status rvm_list_of(int32_t size, const rvm_value *items, rvm_value *result) {
  rvm_status status = rvm_list_allocate(size, result);
  if (status) return status;
  for (int32_t i = 0; i < size; i++) rvm_list_add(result->as.list, items[i]);
  return RVM_OK;
}

rvm_status rvm_closure_new(rvm_function *function, int32_t captured_count, rvm_value *result) {
  int32_t class;
  rvm_closure *closure =
      rvm_object_allocate_zeroed(sizeof *closure + (size_t)captured_count * sizeof(rvm_value), &class);
  if (!closure) return rvm_out_of_memory(result);
  closure->base = (rvm_object){.tag = RVM_TAG_CLOSURE, .references = 1};
  closure->captured_count = captured_count;
  closure->memory_class = class;
  closure->function = function;
  *result = rvm_object_value(&closure->base);
  return RVM_OK;
}

rvm_status rvm_string_allocate(int64_t length, rvm_value *result) {
  if (length > RVM_LARGEST_BYTES)
    return rvm_fail(result, RVM_OUT_OF_MEMORY, "string: cannot allocate %lld bytes", (long long)length);
  rvm_string *string = rvm_allocate(sizeof *string + (size_t)length + 1);
  if (!string) return rvm_out_of_memory(result);
  string->base = (rvm_object){.tag = RVM_TAG_STRING, .references = 1};
  string->length = length;
  string->bytes[length] = '\0';
  *result = rvm_object_value(&string->base);
  return RVM_OK;
}

rvm_status rvm_string_new(const char *bytes, int64_t length, rvm_value *result) {
  RVM_EXPECT_POINTER(result, NULL);
  RVM_EXPECT_ARRAY(bytes, length, result);
  rvm_status status = rvm_string_allocate(length, result);
  if (!status && length > 0) memcpy(result->as.string->bytes, bytes, (size_t)length);
  return status;
}
