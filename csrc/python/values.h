/* values.h: conversion between Python values and values of a machine.  All functions require the GIL, and the thread
   must have entered the machine.  Functions that return PyObject * return NULL with an exception if they fail. */
#ifndef RELVM_PYTHON_VALUES_H
#define RELVM_PYTHON_VALUES_H

#include "objects.h"

/* The ownership of a stored value.  OWNED: the destination owns a reference.  BORROWED: the value is valid as long as
   the Python value. */
enum { BORROWED = 0, OWNED = 1 };
/* Approximate memory in bytes, including the overhead of the conversion, of: a tuple or list, an item of a tuple or
   list, any other Python object. */
enum { SEQUENCE_BYTES = 256, ITEM_BYTES = 48, OBJECT_BYTES = 256 };
/* Converts `value` and stores it in *dst.  Returns its ownership, or -1 with an exception. */
int relvm_store(Objects *objects, PyObject *value, rvm_value *dst);
/* Converts `value` and stores it in *dst, which owns a reference.  Returns 0, or -1 with an exception. */
int relvm_store_owned(Objects *objects, PyObject *value, rvm_value *dst);
/* Convert a machine's value to a Python value.  relvm_take takes ownership of `value`, also on failure.
   relvm_take_borrowed does not. */
PyObject *relvm_take(Objects *objects, rvm_value value);
PyObject *relvm_take_borrowed(Objects *objects, rvm_value value);
/* Converts the result of a run to a Python value, and takes ownership of `value`, also on failure.  Tensors in memory
   of the host are copied, unless objects->shares is set. */
PyObject *relvm_take_result(Objects *objects, rvm_value value);
/* Returns whether the memory of a tensor may be written. */
int relvm_is_writable(const rvm_tensor *tensor);

#endif
