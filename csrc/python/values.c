/* values.c: conversion between Python values and values of a machine.  Less frequent types are in
   relvm/runtime/convert.py. */
#include "values.h"

#include <string.h>

#include "exchange.h"
#include "private_tensor.h"

enum { NEEDS_HOOK = OWNED + 1 }; /* nothing was stored: the hook `store` must store the value */
enum { MAX_FLAT_ITEMS = 64 };    /* the largest tuple for take_flat_tuple, whose time is quadratic */

/* ---- from Python to the machine ---- */

/* Releases a Py_buffer.  This is the callback `release` of tensors over arrays. */
static void release_view(void *argument) {
  PyGILState_STATE state = PyGILState_Ensure();
  PyBuffer_Release(argument);
  PyMem_Free(argument);
  PyGILState_Release(state);
}

/* Returns the dtype for a buffer's format (a letter of the module struct) and element size, which is at most 8 bytes.
   Returns -1 if there is none. */
static int32_t dtype_of_format(const char *format, Py_ssize_t item_bytes) {
  if (format[0] == '\0' || format[1] != '\0') return -1;
  /* By size in bytes. */
  static const int32_t signed_dtypes[] = {-1, RVM_DTYPE_i8, RVM_DTYPE_i16, -1, RVM_DTYPE_i32, -1,
                                          -1, -1,           RVM_DTYPE_i64};
  static const int32_t unsigned_dtypes[] = {-1, RVM_DTYPE_u8, RVM_DTYPE_u16, -1, RVM_DTYPE_u32, -1,
                                            -1, -1,           RVM_DTYPE_u64};
  switch (format[0]) {
    case '?': return RVM_DTYPE_bool;
    case 'e': return RVM_DTYPE_f16;
    case 'f': return RVM_DTYPE_f32;
    case 'd': return RVM_DTYPE_f64;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q': return signed_dtypes[item_bytes];
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q': return unsigned_dtypes[item_bytes];
  }
  return -1;
}

/* Stores a tensor over the memory of an array, which the tensor keeps alive, and returns OWNED.  Returns NEEDS_HOOK if
   the array is not dense, row-major and aligned, or if dtype_of_format has no dtype for it.  Returns -1 with an
   exception if it fails.  is_donated: the run may overwrite the array, even if NumPy marks it read-only, unless the
   array is not aligned to RVM_ALIGNMENT. */
static int store_array(PyObject *array, rvm_value *dst, int is_donated) {
  Py_buffer *view = PyMem_Malloc(sizeof *view);
  if (!view) {
    PyErr_NoMemory();
    return -1;
  }
  if (PyObject_GetBuffer(array, view, PyBUF_ND | PyBUF_FORMAT)) {
    PyErr_Clear();
    PyMem_Free(view);
    return NEEDS_HOOK;
  }
  int32_t dtype = view->itemsize <= 8 ? dtype_of_format(view->format, view->itemsize) : -1;
  if (dtype < 0 || (uintptr_t)view->buf % (uintptr_t)view->itemsize != 0) {
    release_view(view);
    return NEEDS_HOOK;
  }
  _Static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "shapes are passed as they are");
  int32_t status = rvm_tensor_wrap(dtype, view->ndim, (const int64_t *)view->shape, view->buf, release_view, view, dst);
  if (!status) {
    if (is_donated && (uintptr_t)view->buf % RVM_ALIGNMENT == 0)
      rvm_tensor_set_donation(dst->as.tensor, RVM_DONATION_LENT);
    else if (view->readonly)
      rvm_tensor_set_read_only(*dst, NULL);
    return OWNED;
  }
  release_view(view);
  return relvm_failed(status, dst);
}

static int store_int(PyObject *value, rvm_value *dst) {
  int overflow;
  dst->as.i = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow) return NEEDS_HOOK;
  dst->tag = RVM_TAG_INT;
  return BORROWED;
}

/* Stores the array of a Donated, as relvm_store does. */
static int store_donated(Objects *objects, PyObject *donated, rvm_value *dst) {
  PyObject *array = PyObject_CallMethod(donated, "take", NULL); /* an array, which the tensor keeps alive */
  if (!array) return -1;
  const int is_plain = (PyObject *)Py_TYPE(array) == relvm_hooks.array;
  int ownership = is_plain ? store_array(array, dst, 1) : NEEDS_HOOK;
  if (ownership == NEEDS_HOOK) ownership = relvm_store(objects, array, dst);
  Py_DECREF(array);
  return ownership;
}

int relvm_store(Objects *objects, PyObject *value, rvm_value *dst) {
  PyTypeObject *type = Py_TYPE(value);
  int ownership = NEEDS_HOOK;
  if (type == &PyLong_Type) {
    ownership = store_int(value, dst);
  } else if (type == &PyFloat_Type) {
    *dst = (rvm_value){.tag = RVM_TAG_FLOAT, .as.f = PyFloat_AsDouble(value)};
    ownership = BORROWED;
  } else if (type == &PyBool_Type) {
    *dst = (rvm_value){.tag = RVM_TAG_BOOL, .as.i = value == Py_True};
    ownership = BORROWED;
  } else if (value == Py_None) {
    *dst = (rvm_value){.tag = RVM_TAG_NIL};
    ownership = BORROWED;
  } else if ((PyObject *)type == relvm_hooks.array) {
    ownership = store_array(value, dst, 0);
  } else if ((PyObject *)type == relvm_hooks.donated) {
    return store_donated(objects, value, dst);
  } else if (objects->exchange && PyType_IsSubtype(type, (PyTypeObject *)objects->exchange)) {
    const int stored = relvm_exchange_store(objects, value, dst); /* 0 if another way of conversion is needed */
    ownership = stored == 0 ? NEEDS_HOOK : stored > 0 ? OWNED : -1;
  } else if (PyType_IsSubtype(type, relvm_reference_type) && ((Reference *)value)->objects == objects) {
    *dst = ((Reference *)value)->value;
    ownership = BORROWED;
  }
  if (ownership != NEEDS_HOOK) return ownership;
  PyObject *owned = PyObject_CallFunction(relvm_hooks.store, "OOK", objects, value, (unsigned long long)(uintptr_t)dst);
  if (!owned) return -1;
  ownership = PyObject_IsTrue(owned);
  Py_DECREF(owned);
  return ownership;
}

int relvm_store_owned(Objects *objects, PyObject *value, rvm_value *dst) {
  int ownership = relvm_store(objects, value, dst);
  if (ownership == BORROWED) rvm_value_retain(*dst);
  return ownership < 0 ? -1 : 0;
}

/* ---- from the machine to Python ---- */

/* Returns whether the elements of a tensor are in memory of the host, such as the array of an argument, and were not
   donated.  A tensor of strings owns its memory. */
static int is_host_memory(const rvm_tensor *tensor) {
  if (tensor->dtype == RVM_DTYPE_str) return 0;
  for (;;) {
    if (tensor->base.references < 0) return 0; /* a constant */
    if (tensor->release) return rvm_tensor_donation(tensor) == RVM_DONATION_NONE;
    if (!tensor->owner || tensor->owner->tag != RVM_TAG_TENSOR) return 0;
    tensor = (const rvm_tensor *)tensor->owner;
  }
}

/* Adds to the bytes of the current conversion, if bytes are counted.  Returns 0, or -1 with an exception if the bytes
   exceed the limits of the machine. */
static int charge_conversion(Objects *objects, int64_t size_bytes) {
  rvm_value error;
  if (objects->converted_bytes < 0) return 0;
  objects->converted_bytes += size_bytes;
  int32_t status = rvm_machine_afford(objects->machine, objects->converted_bytes, &error);
  return status ? relvm_failed(status, &error) : 0;
}

/* Replaces a tensor by a copy with memory of its own, and releases the tensor.  Returns 0, or -1 with an exception. */
static int copy_tensor(Objects *objects, rvm_value *value) {
  const rvm_tensor *tensor = value->as.tensor;
  rvm_value copy;
  if (charge_conversion(objects, rvm_tensor_size_bytes(tensor))) return -1;
  int32_t status = rvm_tensor_new(tensor->dtype, tensor->dl.ndim, tensor->dl.shape, &copy);
  if (status) return relvm_failed(status, &copy);
  int64_t size_bytes = rvm_tensor_size_bytes(tensor);
  if (size_bytes > 0) memcpy(copy.as.tensor->dl.data, tensor->dl.data, (size_t)size_bytes);
  rvm_value_release(value);
  *value = copy;
  return 0;
}

/* Returns whether the Python value needs its own copy of a tensor's elements.  While objects->owning is set, a result
   must not share memory with an argument.  Elements that the machine still uses must stay canonical (private_tensor.h),
   whatever Python writes to them. */
static int needs_copy(const Objects *objects, const rvm_tensor *tensor) {
  if (objects->owning && is_host_memory(tensor)) return 1;
  return rvm_dtype_has_noncanonical(tensor->dtype) && tensor->base.references >= 0 &&
         !rvm_tensor_is_only_reference(tensor);
}

/* Returns whether take_flat_tuple can convert a tuple: it has few items, and none of them is a tuple or list. */
static int is_flat(const rvm_tuple *tuple) {
  if (tuple->size > MAX_FLAT_ITEMS) return 0;
  for (int32_t i = 0; i < tuple->size; i++)
    if (tuple->items[i].tag == RVM_TAG_TUPLE || tuple->items[i].tag == RVM_TAG_LIST) return 0;
  return 1;
}

/* Returns the index of the first item that is the same machine object as item i, or i if there is none before it. */
static int32_t first_occurrence(const rvm_tuple *tuple, int32_t i) {
  const rvm_value item = tuple->items[i];
  if (item.tag < RVM_TAG_TENSOR) return i; /* not an object */
  int32_t first = 0;
  while (tuple->items[first].tag != item.tag || tuple->items[first].as.object != item.as.object) first++;
  return first;
}

/* Converts a flat tuple, such as the outputs of a model.  A machine object that occurs several times becomes one Python
   object, as in _convert_sequence of convert.py. */
static PyObject *take_flat_tuple(Objects *objects, const rvm_tuple *tuple) {
  if (charge_conversion(objects, SEQUENCE_BYTES + tuple->size * (ITEM_BYTES + OBJECT_BYTES))) return NULL;
  PyObject *result = PyTuple_New(tuple->size);
  for (int32_t i = 0; i < tuple->size && result; i++) {
    const int32_t first = first_occurrence(tuple, i);
    PyObject *converted =
        first < i ? Py_NewRef(PyTuple_GetItem(result, first)) : relvm_take_borrowed(objects, tuple->items[i]);
    if (converted) {
      PyTuple_SetItem(result, i, converted);
    } else {
      Py_CLEAR(result);
    }
  }
  return result;
}

PyObject *relvm_take(Objects *objects, rvm_value value) {
  switch (value.tag) {
    case RVM_TAG_NIL: Py_RETURN_NONE;
    case RVM_TAG_INT: return PyLong_FromLongLong(value.as.i);
    case RVM_TAG_FLOAT: return PyFloat_FromDouble(value.as.f);
    case RVM_TAG_BOOL: return PyBool_FromLong(value.as.i != 0);
  }
  PyObject *result;
  if (value.tag == RVM_TAG_TENSOR && needs_copy(objects, value.as.tensor) && copy_tensor(objects, &value)) {
    rvm_value_release(&value);
    return NULL;
  }
  if (value.tag == RVM_TAG_TENSOR || value.tag == RVM_TAG_CLOSURE || value.tag == RVM_TAG_FUNCTION) {
    PyObject *type = value.tag == RVM_TAG_TENSOR ? relvm_hooks.tensor : relvm_hooks.closure;
    result = relvm_reference_of((PyTypeObject *)type, objects, value);
    if (!result) rvm_value_release(&value);
    return result;
  }
  if (value.tag == RVM_TAG_TUPLE && is_flat(value.as.tuple))
    result = take_flat_tuple(objects, value.as.tuple);
  else
    result = PyObject_CallFunction(relvm_hooks.take, "OK", objects, (unsigned long long)(uintptr_t)&value);
  rvm_value_release(&value);
  return result;
}

/* Converts a tensor of a result to an array of the type objects->exchange.  Takes ownership of `value`, also on
   failure.  Copies the elements if the tensor is read-only, such as a constant, or has other references, such as
   another result. */
static PyObject *take_array(Objects *objects, rvm_value value) {
  const rvm_tensor *tensor = value.as.tensor;
  const int is_shared = !rvm_tensor_is_only_reference(tensor) || rvm_tensor_is_read_only(tensor);
  const int is_copied = tensor->dtype != RVM_DTYPE_str && (is_shared || needs_copy(objects, tensor));
  if (is_copied && copy_tensor(objects, &value)) {
    rvm_value_release(&value);
    return NULL;
  }
  return relvm_exchange_take(objects, value);
}

/* Converts a result, if it is a tensor or a tuple of tensors and numbers, with arrays of the type objects->exchange.
   Takes ownership of `value`, also on failure. */
static PyObject *take_arrays(Objects *objects, rvm_value value) {
  if (value.tag == RVM_TAG_TENSOR) return take_array(objects, value);
  if (value.tag != RVM_TAG_TUPLE) return relvm_take(objects, value);
  rvm_tuple *tuple = value.as.tuple;
  const int is_only_reference = tuple->base.references == 1;
  PyObject *result = PyTuple_New(tuple->size);
  for (int32_t i = 0; i < tuple->size && result; i++) {
    rvm_value item = tuple->items[i];
    if (is_only_reference)
      tuple->items[i] = (rvm_value){.tag = RVM_TAG_NIL};
    else
      rvm_value_retain(item);
    PyObject *converted = item.tag == RVM_TAG_TENSOR ? take_array(objects, item) : relvm_take(objects, item);
    if (converted) {
      PyTuple_SetItem(result, i, converted);
    } else {
      Py_CLEAR(result);
    }
  }
  rvm_value_release(&value);
  return result;
}

PyObject *relvm_take_result(Objects *objects, rvm_value value) {
  const long long outer = objects->converted_bytes;
  objects->owning = !objects->shares;
  objects->converted_bytes = 0;
  PyObject *result = objects->exchange ? take_arrays(objects, value) : relvm_take(objects, value);
  objects->owning = 0;
  objects->converted_bytes = outer;
  return result;
}

PyObject *relvm_take_borrowed(Objects *objects, rvm_value value) {
  rvm_value_retain(value);
  return relvm_take(objects, value);
}

int relvm_is_writable(const rvm_tensor *tensor) { return !rvm_tensor_is_read_only(tensor); }
