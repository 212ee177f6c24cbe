/* value.h: what the runtime knows of values beyond relvm.h. */
#ifndef RELVM_VALUE_H
#define RELVM_VALUE_H

#include "base.h"

/* No object is larger: sizes of whole blocks stay far from overflow. */
#define RVM_LARGEST_BYTES ((int64_t)1 << 56)

/* A block of memory that tensors are placed in; `bytes` is RVM_ALIGNMENT-aligned. */
struct rvm_storage {
  rvm_object base;
  int32_t class; /* of the block's size (storage_pool.c) */
  int64_t size_bytes;
  unsigned char *bytes;
  struct rvm_pool *pool;
  rvm_storage *next; /* in a list of the pool's (storage_pool.c) */
};

/* Lines of a trace; what comes after them is only counted. */
#define RVM_TRACE_LINES 20
/* The longest description of a value, with its NUL. */
#define RVM_DESCRIPTION_BYTES 64

static inline int rvm_value_is_object(rvm_value value) { return value.tag >= RVM_TAG_TENSOR; }

static inline rvm_value rvm_int(int64_t i) { return (rvm_value){.tag = RVM_TAG_INT, .as.i = i}; }
static inline rvm_value rvm_float(double f) { return (rvm_value){.tag = RVM_TAG_FLOAT, .as.f = f}; }
static inline rvm_value rvm_bool(int64_t i) { return (rvm_value){.tag = RVM_TAG_BOOL, .as.i = i}; }
static inline rvm_value rvm_object_value(rvm_object *object) {
  return (rvm_value){.tag = object->tag, .as.object = object};
}

/* Whether a host may pass the value: a register may hold its tag, and the tag allows its payload.  Of an object it reads the
   tag alone. */
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
/* TYPE_ERROR: a value is not sound; the message begins with `what` and its index. */
rvm_status rvm_fail_unsound(const char *what, int32_t index, rvm_value value, rvm_value *error);
static inline rvm_status rvm_expect_sound(const char *what, const rvm_value *values, int32_t count, rvm_value *error) {
  for (int32_t i = 0; i < count; i++)
    if (!rvm_value_is_sound(values[i])) return rvm_fail_unsound(what, i, values[i], error);
  return RVM_OK;
}

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

/* The allocation failed: an error that needs no memory; where a budget refused it, one that says by how much. */
rvm_status rvm_out_of_memory(rvm_value *result);
/* Adds "  in NAME at instruction K" to an error's trace, or "  in NAME" when `instruction` is negative. */
void rvm_error_add_frame(rvm_value error, const char *name, int64_t instruction);
/* Says in the trace how many frames it leaves out.  To be called once, when no frame will follow. */
void rvm_error_close_trace(rvm_value error);

/* A tuple, a list of values that are known to be sound: rvm_tuple_new and rvm_list_new without their checks. */
rvm_status rvm_tuple_of(int32_t size, const rvm_value *items, rvm_value *result);
rvm_status rvm_list_of(int32_t size, const rvm_value *items, rvm_value *result);
/* A shape whose dimensions are still to be written. */
rvm_status rvm_shape_room(int32_t rank, rvm_value *result);
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
/* A tensor over `bytes`, which belong to `owner`, a storage or a tensor without an owner: retained.  Unchecked. */
rvm_status rvm_tensor_view(int32_t dtype, int32_t rank, const int64_t *dims, void *bytes, rvm_object *owner,
                           rvm_value *result);

const char *rvm_dtype_name(int64_t dtype);
rvm_dltype rvm_dtype_dl(int64_t dtype); /* as DLPack has it */
int32_t rvm_dtype_size_bytes(int64_t dtype);
/* Whether an element of that integer dtype can hold the int. */
int32_t rvm_dtype_holds(int64_t dtype, int64_t value);
/* The bytes of that many elements; 0 when a dimension is negative or the size exceeds int64. */
int32_t rvm_dims_size_bytes(int32_t dtype, int32_t rank, const int64_t *dims, int64_t *size_bytes);
/* The product of the dimensions; 0 when one is negative or it exceeds int64. */
int32_t rvm_dims_product(int32_t rank, const int64_t *dims, int64_t *product);
int64_t rvm_tensor_count(const rvm_tensor *tensor); /* of its elements */

/* "int", "tuple", "a tensor of rank 2 and dtype f32": into `text`, which it returns. */
const char *rvm_value_describe(rvm_value value, char text[RVM_DESCRIPTION_BYTES]);
/* The truth of a BOOL, an INT or a 0-d tensor of bool or integer dtype; TYPE_ERROR for all else. */
rvm_status rvm_value_truth(rvm_value condition, int32_t *truth, rvm_value *error);

/* scalar_ops.c: of a row of scalar_operators.def. */
int32_t rvm_prim_operand_count(int32_t row);
/* Says why scalar_ops.h has no value for these operands: TYPE_ERROR or ARITHMETIC_ERROR. */
rvm_status rvm_prim_fail(int32_t row, rvm_value a, rvm_value b, rvm_value *error);

#endif
