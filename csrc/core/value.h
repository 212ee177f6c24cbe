/* value.h: constructors, checks and descriptions of values. */
#ifndef RELVM_VALUE_H
#define RELVM_VALUE_H

#include "relvm.h"

/* The size of a buffer for the longest description of a value, with its NUL. */
#define RVM_DESCRIPTION_BYTES 64

static inline int rvm_value_is_object(rvm_value value) { return value.tag >= RVM_TAG_TENSOR; }

static inline rvm_value rvm_int(int64_t i) { return (rvm_value){.tag = RVM_TAG_INT, .as.i = i}; }
static inline rvm_value rvm_float(double f) { return (rvm_value){.tag = RVM_TAG_FLOAT, .as.f = f}; }
static inline rvm_value rvm_bool(int64_t i) { return (rvm_value){.tag = RVM_TAG_BOOL, .as.i = i}; }
static inline rvm_value rvm_object_value(rvm_object *object) {
  return (rvm_value){.tag = object->tag, .as.object = object};
}

/* Returns whether a value from the host is well-formed: its tag is not CONTEXT or ERROR, and its payload is valid for
   the tag.  An object must have the same tag as the value; its other members are not checked. */
static inline int rvm_value_is_sound(rvm_value value) {
  if (value.tag >= RVM_TAG_TENSOR)
    return value.tag < RVM_TAG_ERROR && value.as.object && value.as.object->tag == value.tag;
  switch (value.tag) {
    case RVM_TAG_NIL:
    case RVM_TAG_INT:
    case RVM_TAG_FLOAT: return 1;
    case RVM_TAG_BOOL: return value.as.i == 0 || value.as.i == 1;
    case RVM_TAG_DTYPE: return value.as.i >= 0 && value.as.i < RVM_DTYPE_COUNT;
    case RVM_TAG_FUNCTION: return value.as.function != NULL;
    default: return 0;
  }
}

/* Writes a description such as "int", "tuple" or "a tensor of rank 2 and dtype f32" to `text` and returns it. */
const char *rvm_value_describe(rvm_value value, char text[RVM_DESCRIPTION_BYTES]);

#endif
