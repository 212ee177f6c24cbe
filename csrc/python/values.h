/* values.h: Python values to and from the machine's. */
#ifndef RELVM_PYTHON_VALUES_H
#define RELVM_PYTHON_VALUES_H

#include "objects.h"

/* How a place holds a value that was put there: OWNED as its own, or BORROWED for as long as the Python value lives. */
enum { BORROWED = 0, OWNED = 1 };
/* Puts a value in a place and returns how it holds it, or -1 with an exception.  Here and below the caller is inside
   the machine. */
int relvm_store(Objects *objects, PyObject *value, rvm_value *place);
/* The same, and the place owns it: 0, or -1. */
int relvm_store_owned(Objects *objects, PyObject *value, rvm_value *place);
/* The Python value of a machine's, whose reference it takes over. */
PyObject *relvm_take(Objects *objects, rvm_value value);
PyObject *relvm_take_borrowed(Objects *objects, rvm_value value);
/* The same of a run's result, in which tensors that lie in the host's memory are copied, unless `shares`. */
PyObject *relvm_take_result(Objects *objects, rvm_value value);
/* Whether the bytes that a tensor lies in may be written. */
int relvm_is_writable(const rvm_tensor *tensor);

#endif
