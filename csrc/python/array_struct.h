/* array_struct.h: NumPy's array interface of tensors. */
#ifndef RELVM_PYTHON_ARRAY_STRUCT_H
#define RELVM_PYTHON_ARRAY_STRUCT_H

#include "objects.h"

/* Returns the attribute __array_struct__ of a reference to a tensor, from which NumPy creates an array without a copy.
   Raises AttributeError if the array interface does not have the dtype: for strings, and for dtypes of ml_dtypes. */
PyObject *relvm_array_struct(PyObject *module, PyObject *reference);

#endif
