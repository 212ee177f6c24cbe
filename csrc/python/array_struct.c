/* array_struct.c: implements array_struct.h.  Source: "The array interface protocol" of NumPy, version 3. */
#include "array_struct.h"

#include "dtype.h"
#include "tensor.h"

enum { IS_C_CONTIGUOUS = 0x1, IS_ALIGNED = 0x100, IS_IN_NATIVE_ORDER = 0x200, IS_WRITABLE = 0x400 };

/* Begins with the layout of NumPy's PyArrayInterface.  `sizes` has the dimensions, then the strides in bytes. */
typedef struct {
  int version, rank;
  char kind;
  int item_bytes, flags;
  Py_ssize_t *shape, *strides;
  void *data;
  PyObject *description;
  PyObject *owner; /* the reference, which keeps the elements alive */
  Py_ssize_t sizes[];
} ArrayInterface;

static void release_interface(PyObject *capsule) {
  ArrayInterface *interface = PyCapsule_GetPointer(capsule, NULL);
  Py_DECREF(interface->owner);
  PyMem_Free(interface);
}

/* Returns the letter of the array interface for the kind of a dtype, or 0 if there is none. */
static char kind_of(int32_t dtype) {
  switch (dtype) {
    case RVM_DTYPE_bool: return 'b';
    case RVM_DTYPE_f16:
    case RVM_DTYPE_f32:
    case RVM_DTYPE_f64: return 'f';
    case RVM_DTYPE_i8:
    case RVM_DTYPE_i16:
    case RVM_DTYPE_i32:
    case RVM_DTYPE_i64: return 'i';
    case RVM_DTYPE_u8:
    case RVM_DTYPE_u16:
    case RVM_DTYPE_u32:
    case RVM_DTYPE_u64: return 'u';
    default: return 0;
  }
}

PyObject *relvm_array_struct(PyObject *module, PyObject *reference) {
  (void)module;
  const rvm_tensor *tensor = relvm_tensor_of(reference);
  if (!tensor) return NULL;
  const int32_t rank = tensor->dl.ndim;
  const char kind = kind_of(tensor->dtype);
  if (!kind) {
    PyErr_Format(PyExc_AttributeError, "__array_struct__ does not support dtype %s", rvm_dtype_name(tensor->dtype));
    return NULL;
  }
  ArrayInterface *interface = PyMem_Malloc(sizeof *interface + 2 * (size_t)rank * sizeof interface->sizes[0]);
  if (!interface) return PyErr_NoMemory();
  *interface = (ArrayInterface){.version = 2, /* the constant by which NumPy recognizes the structure */
                                .rank = rank,
                                .kind = kind,
                                .item_bytes = rvm_dtype_size_bytes(tensor->dtype),
                                .flags = IS_C_CONTIGUOUS | IS_ALIGNED | IS_IN_NATIVE_ORDER,
                                .shape = interface->sizes,
                                .strides = interface->sizes + rank,
                                .data = (char *)tensor->dl.data + tensor->dl.byte_offset,
                                .owner = Py_NewRef(reference)};
  if (!rvm_tensor_is_read_only(tensor)) interface->flags |= IS_WRITABLE;
  Py_ssize_t stride_bytes = interface->item_bytes;
  for (int32_t axis = rank - 1; axis >= 0; axis--) {
    interface->shape[axis] = (Py_ssize_t)tensor->dl.shape[axis];
    interface->strides[axis] = stride_bytes;
    if (interface->shape[axis] > 1) stride_bytes *= interface->shape[axis];
  }
  PyObject *capsule = PyCapsule_New(interface, NULL, release_interface);
  if (!capsule) {
    Py_DECREF(interface->owner);
    PyMem_Free(interface);
  }
  return capsule;
}
