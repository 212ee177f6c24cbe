/* exchange.c: implements exchange.h.  Source: DLPack 1.2, DLPackExchangeAPI. */
#include "exchange.h"

#include "dtype.h"
#include "tensor.h"

enum { MAJOR_VERSION = 1, MINOR_VERSION = 2, CPU = 1, IS_READ_ONLY = 1 };

/* Has the layout of DLPack's DLManagedTensorVersioned. */
typedef struct Managed {
  uint32_t major, minor;
  void *context;
  void (*release)(struct Managed *);
  uint64_t flags;
  rvm_dltensor dl;
} Managed;

/* Has the layout of DLPackExchangeAPI.  The types of unused functions omit the parameters. */
typedef struct ExchangeApi {
  uint32_t major, minor;
  struct ExchangeApi *previous; /* the API of an older version, or NULL */
  void (*allocate)(void);
  /* Both return 0, or -1 with an exception.  On success, from_object returns a Managed that the caller owns, and
     to_object takes ownership of `tensor`. */
  int (*from_object)(PyObject *array, Managed **result);
  int (*to_object)(Managed *tensor, PyObject **result);
  void (*borrow_object)(void);
  void (*current_stream)(void);
} ExchangeApi;

int relvm_exchange_set(Objects *objects, PyObject *type) {
  ExchangeApi *api = NULL;
  if (type != Py_None) {
    PyObject *capsule = PyObject_GetAttrString(type, "__dlpack_c_exchange_api__");
    api = capsule ? PyCapsule_GetPointer(capsule, "dlpack_exchange_api") : NULL;
    Py_XDECREF(capsule); /* the API remains valid: it is static data of the array library */
    while (api && api->major != MAJOR_VERSION) api = api->previous;
    if (!api) {
      PyErr_Format(PyExc_TypeError, "%S has no C exchange API of DLPack version %d", type, MAJOR_VERSION);
      return -1;
    }
  }
  Py_XDECREF(objects->exchange);
  objects->exchange = api ? Py_NewRef(type) : NULL;
  objects->exchange_api = api;
  return 0;
}

/* ---- from Python to the machine ---- */

/* Releases a Managed.  This is the callback `release` of tensors over arrays. */
static void release_managed(void *argument) {
  Managed *managed = argument;
  PyGILState_STATE state = PyGILState_Ensure();
  if (managed->release) managed->release(managed);
  PyGILState_Release(state);
}

static int is_dense(const rvm_dltensor *dl) {
  int64_t stride = 1;
  if (!dl->strides) return 1;
  for (int32_t axis = 0; axis < dl->ndim; axis++)
    if (dl->shape[axis] == 0) return 1;
  for (int32_t axis = dl->ndim - 1; axis >= 0; stride *= dl->shape[axis--])
    if (dl->shape[axis] != 1 && dl->strides[axis] != stride) return 0;
  return 1;
}

/* Returns the dtype that DLPack calls `wanted`, or -1 if there is none or its elements have less than 8 bits. */
static int32_t dtype_of(rvm_dltype wanted) {
  if (wanted.lanes != 1 || wanted.bits < 8) return -1;
  for (int32_t dtype = 0; dtype < RVM_DTYPE_str; dtype++) {
    const rvm_dltype dl = rvm_dtype_dl(dtype);
    if (dl.code == wanted.code && dl.bits == wanted.bits) return dtype;
  }
  return -1;
}

int relvm_exchange_store(const Objects *objects, PyObject *array, rvm_value *dst) {
  const ExchangeApi *api = objects->exchange_api;
  Managed *managed = NULL;
  if (api->from_object(array, &managed)) return -1;
  const rvm_dltensor *dl = &managed->dl;
  const int32_t dtype = dl->device_type == CPU && is_dense(dl) ? dtype_of(dl->dtype) : -1;
  char *data = dl->data ? (char *)dl->data + dl->byte_offset : NULL;
  if (dtype < 0 || (uintptr_t)data % (uintptr_t)rvm_dtype_size_bytes(dtype) != 0) {
    release_managed(managed);
    return 0;
  }
  int32_t status = rvm_tensor_wrap(dtype, dl->ndim, dl->shape, data, release_managed, managed, dst);
  if (status) {
    release_managed(managed);
    return relvm_failed(status, dst);
  }
  if (managed->flags & IS_READ_ONLY) rvm_tensor_set_read_only(*dst, NULL);
  return 1;
}

/* ---- from the machine to Python ---- */

/* A tensor of the machine for another library.  `managed.context` is the Reference that owns the tensor. */
typedef struct {
  Managed managed;
  int64_t strides[];
} Exported;

/* Frees an Exported.  Does nothing after the interpreter has ended, because arrays can outlive it. */
static void release_exported(Managed *managed) {
  if (Py_IsInitialized()) {
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF((PyObject *)managed->context);
    PyMem_Free(managed);
    PyGILState_Release(state);
  }
}

PyObject *relvm_exchange_take(Objects *objects, rvm_value value) {
  const ExchangeApi *api = objects->exchange_api;
  const rvm_tensor *tensor = value.as.tensor;
  const int32_t rank = tensor->dl.ndim;
  PyObject *reference = relvm_reference_of((PyTypeObject *)relvm_hooks.tensor, objects, value);
  if (!reference) {
    rvm_value_release(&value);
    return NULL;
  }
  if (tensor->dtype == RVM_DTYPE_str || tensor->dl.dtype.bits < 8) {
    PyErr_SetString(PyExc_TypeError, "results whose elements are strings or have less than 8 bits cannot be exchanged");
    Py_DECREF(reference);
    return NULL;
  }
  Exported *exported = PyMem_Malloc(sizeof *exported + (size_t)rank * sizeof exported->strides[0]);
  if (!exported) {
    Py_DECREF(reference);
    return PyErr_NoMemory();
  }
  exported->managed = (Managed){.major = MAJOR_VERSION,
                                .minor = MINOR_VERSION,
                                .context = reference,
                                .release = release_exported,
                                .dl = tensor->dl};
  exported->managed.dl.strides = exported->strides;
  int64_t stride = 1;
  for (int32_t axis = rank - 1; axis >= 0; axis--) {
    exported->strides[axis] = stride;
    stride *= tensor->dl.shape[axis] > 1 ? tensor->dl.shape[axis] : 1;
  }
  PyObject *result = NULL;
  if (api->to_object(&exported->managed, &result)) {
    release_exported(&exported->managed);
    return NULL;
  }
  return result;
}
