/* binding.c: the Python module relvm._binding, for calls from Python and calls of Python functions by machines.

   Only the fast path, for ordinary calls, is in C.  Python code over cffi handles other cases.  It is called through
   `relvm_hooks` (relvm/runtime/binding_hooks.py).  The module is in one library with the cffi module, so that both use
   the same runtime.  Functions that return PyObject * return a new reference, or NULL with an exception set. */
#include "array_struct.h"
#include "exchange.h"
#include "onnx_reader.h"
#include "private_tensor.h"
#include "tensor.h"
#include "values.h"

#include <structmember.h>

enum { INLINE_COUNT = 8 }; /* the largest number of arguments that are passed without an allocation */

/* ---- calls from Python ---- */

/* A row of arguments.  The row owns the values whose indices are in `owned`, and borrows the others. */
typedef struct {
  int32_t count, owned_count;
  rvm_value *values;
  int32_t *owned;
  rvm_value inline_values[INLINE_COUNT];
  int32_t inline_owned[INLINE_COUNT];
} Row;

/* Initializes a row for `count` arguments.  Returns 0 with an exception if there is no memory. */
static int row_open(Row *row, Py_ssize_t count) {
  row->count = (int32_t)count;
  row->owned_count = 0;
  row->values = row->inline_values;
  row->owned = row->inline_owned;
  if (count <= INLINE_COUNT) return 1;
  row->values = PyMem_Calloc((size_t)count, sizeof *row->values + sizeof *row->owned);
  row->owned = (int32_t *)(row->values + count);
  if (!row->values) PyErr_NoMemory();
  return row->values != NULL;
}

static void row_close(Row *row) {
  for (int32_t i = 0; i < row->owned_count; i++) {
    rvm_value *value = &row->values[row->owned[i]];
    if (value->tag == RVM_TAG_TENSOR && rvm_tensor_donation(value->as.tensor))
      rvm_tensor_set_donation(value->as.tensor, RVM_DONATION_GIVEN);
    rvm_value_release(value);
  }
  if (row->values != row->inline_values) PyMem_Free(row->values);
}

/* Replaces the current exception by the result of hook(callee, index, exception), or of hook(callee, exception) if
   `index` is NULL.  The new exception names the argument or result that caused the old one. */
static void replace_exception(PyObject *hook, PyObject *callee, PyObject *index) {
  PyObject *type, *exception, *traceback;
  PyErr_Fetch(&type, &exception, &traceback);
  PyErr_NormalizeException(&type, &exception, &traceback);
  if (traceback) PyException_SetTraceback(exception, traceback);
  relvm_raise(index ? PyObject_CallFunctionObjArgs(hook, callee, index, exception, NULL)
                    : PyObject_CallFunctionObjArgs(hook, callee, exception, NULL));
  Py_XDECREF(type);
  Py_XDECREF(exception);
  Py_XDECREF(traceback);
}

/* Stores argument i in *dst, and returns its ownership as relvm_store does.  A NumPy scalar becomes a number if the
   parameter is a number, else a tensor of rank 0. */
static int store_argument(Reference *callee, PyObject *value, int32_t i, rvm_value *dst) {
  if (!PyType_IsSubtype(Py_TYPE(value), (PyTypeObject *)relvm_hooks.scalar))
    return relvm_store(callee->objects, value, dst);
  PyObject *plain = PyObject_CallFunction(relvm_hooks.plain, "OiO", callee, (int)i, value);
  int ownership = plain ? relvm_store(callee->objects, plain, dst) : -1;
  Py_XDECREF(plain);
  return ownership;
}

/* Stores the arguments in the row.  Returns 0 with an exception that names the argument if one is invalid. */
static int row_fill(Row *row, Reference *callee, PyObject *arguments) {
  for (int32_t i = 0; i < row->count; i++) {
    int ownership = store_argument(callee, PyTuple_GetItem(arguments, i), i, &row->values[i]);
    if (ownership == OWNED) row->owned[row->owned_count++] = i;
    if (ownership >= 0) continue;
    PyObject *index = PyLong_FromLong(i);
    if (index) replace_exception(relvm_hooks.argument_error, (PyObject *)callee, index);
    Py_XDECREF(index);
    return 0;
  }
  return 1;
}

/* Calls the callee.  The thread must have entered its machine.  Releases the GIL during the run. */
static PyObject *run(Reference *callee, PyObject *arguments) {
  Objects *objects = callee->objects;
  Row row;
  if (!row_open(&row, PyTuple_Size(arguments))) return NULL;
  if (!row_fill(&row, callee, arguments)) {
    row_close(&row);
    return NULL;
  }
  rvm_value result = {.tag = RVM_TAG_NIL};
  int32_t status;
  Py_BEGIN_ALLOW_THREADS status = rvm_machine_invoke(objects->machine, callee->value, row.values, row.count, &result);
  Py_END_ALLOW_THREADS row_close(&row);
  if (!status) return relvm_take_result(objects, result);
  unsigned long long address = (unsigned long long)(uintptr_t)&result;
  return relvm_raise(PyObject_CallFunction(relvm_hooks.ended, "OOiK", callee, arguments, (int)status, address));
}

/* call(*arguments) -> result: calls the function with arguments by position. */
static PyObject *callable_call(PyObject *self, PyObject *arguments) {
  Reference *callee = (Reference *)self;
  Objects *objects = callee->objects, *outer = relvm_active;
  if (!relvm_enter(objects, self)) return NULL;
  relvm_active = objects;
  Py_INCREF((PyObject *)objects); /* during the call, Python code may drop all other references to `objects` */
  PyObject *result = run(callee, arguments);
  relvm_active = outer;
  relvm_leave(objects, NULL);
  Py_DECREF((PyObject *)objects);
  return result;
}

static PyObject *callable_tp_call(PyObject *self, PyObject *arguments, PyObject *named) {
  if (((Reference *)self)->direct && (!named || PyDict_Size(named) == 0)) return callable_call(self, arguments);
  PyObject *method = PyObject_GetAttrString(self, "call_indirect");
  PyObject *result = method ? PyObject_Call(method, arguments, named) : NULL;
  Py_XDECREF(method);
  return result;
}

static PyMethodDef callable_methods[] = {{"call", callable_call, METH_VARARGS, "Call it with arguments by position."},
                                         {NULL, NULL, 0, NULL}};

static PyMemberDef callable_members[] = {{"direct", T_BOOL, offsetof(Reference, direct), 0, NULL},
                                         {NULL, 0, 0, 0, NULL}};

static PyType_Slot callable_slots[] = {
    {Py_tp_call, callable_tp_call},           {Py_tp_methods, callable_methods},
    {Py_tp_members, callable_members},        {Py_tp_traverse, relvm_reference_traverse},
    {Py_tp_dealloc, relvm_reference_dealloc}, {0, NULL}};

static PyType_Spec callable_spec = {.name = "relvm._binding.Callable",
                                    .basicsize = sizeof(Reference),
                                    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                                    .slots = callable_slots};

/* ---- calls of Python functions ---- */

static PyObject *function_name; /* the string "function", the name of the attribute with a registered Python function */

/* Converts the arguments of a Python function to a tuple.  Returns NULL with an exception if it fails. */
static PyObject *convert_arguments(Objects *objects, const rvm_value *arguments, int32_t count) {
  PyObject *tuple = PyTuple_New(count);
  const long long outer = objects->converted_bytes;
  objects->converted_bytes = 0; /* the limit of conversions counts the arguments of each Python function anew */
  for (int32_t i = 0; i < count && tuple; i++) {
    PyObject *item = relvm_take_borrowed(objects, arguments[i]);
    if (item) {
      PyTuple_SetItem(tuple, i, item);
    } else {
      Py_CLEAR(tuple);
    }
  }
  objects->converted_bytes = outer;
  return tuple;
}

/* Copies elements back from arguments that were copied for a Python function (needs_copy in values.c) to the tensors of
   the machine, because the function may have written to its copies. */
static void write_back(PyObject *tuple, const rvm_value *arguments, int32_t count) {
  for (int32_t i = 0; i < count; i++)
    if (arguments[i].tag == RVM_TAG_TENSOR)
      rvm_tensor_write_canonical(arguments[i].as.tensor, ((Reference *)PyTuple_GetItem(tuple, i))->value.as.tensor);
}

/* Calls the Python function of a packed function, and stores the result in *result.  named: the Python object that was
   registered for the packed function (objects.h).  Returns 0, or -1 with an exception.  `objects` is NULL if the
   machine was not called from Python. */
static int call_python(Objects *objects, PyObject *named, const rvm_value *arguments, int32_t count,
                       rvm_value *result) {
  if (!objects) {
    relvm_raise(PyObject_CallFunctionObjArgs(relvm_hooks.no_caller, named, NULL));
    return -1;
  }
  PyObject *function = PyObject_GetAttr(named, function_name);
  if (function == Py_None) {
    Py_CLEAR(function);
    relvm_raise(PyObject_CallFunctionObjArgs(relvm_hooks.unregistered, named, NULL));
  }
  PyObject *tuple = function ? convert_arguments(objects, arguments, count) : NULL;
  PyObject *value = tuple ? PyObject_Call(function, tuple, NULL) : NULL;
  int status = -1;
  if (value) write_back(tuple, arguments, count);
  if (value && (status = relvm_store_owned(objects, value, result)))
    replace_exception(relvm_hooks.result_error, named, NULL);
  Py_XDECREF(function);
  Py_XDECREF(tuple);
  Py_XDECREF(value);
  return status;
}

/* Ends a callback that raised an exception.  Stores the exception in `objects`, so that the caller of the run can raise
   it again, and fails with CALLBACK_ERROR, which ends the run. */
static rvm_status end_callback(Objects *objects, rvm_value *result) {
  PyObject *type, *exception, *traceback;
  PyErr_Fetch(&type, &exception, &traceback);
  PyErr_NormalizeException(&type, &exception, &traceback);
  if (traceback) PyException_SetTraceback(exception, traceback);
  PyObject *machine = objects ? (PyObject *)objects : Py_None;
  PyObject *message = PyObject_CallFunctionObjArgs(relvm_hooks.keep_exception, machine, exception, NULL);
  const char *text = message ? PyBytes_AsString(message) : NULL;
  if (!text) PyErr_Clear();
  rvm_status status = rvm_fail(result, RVM_CALLBACK_ERROR, "%s", text ? text : "a Python function failed");
  Py_XDECREF(message);
  Py_XDECREF(type);
  Py_XDECREF(exception);
  Py_XDECREF(traceback);
  return status;
}

/* The packed function for all registered Python functions.  `self` is the Python object that was registered.  Called
   without the GIL. */
static rvm_status call_packed(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  PyGILState_STATE state = PyGILState_Ensure();
  Objects *objects = relvm_active;
  rvm_status status = RVM_OK;
  if (call_python(objects, self, arguments, count, result)) status = end_callback(objects, result);
  PyGILState_Release(state);
  return status;
}

/* ---- the module ---- */

/* Releases a reference to a Python object that C owns.  May be called from any thread. */
static void release_object(void *object) {
  PyGILState_STATE state = PyGILState_Ensure();
  Py_DECREF((PyObject *)object);
  PyGILState_Release(state);
}

/* install(**hooks): sets all hooks of objects.h.  Raises TypeError if one is missing. */
static PyObject *module_install(PyObject *module, PyObject *arguments, PyObject *named) {
  (void)module, (void)arguments;
#define HOOK(name)                                                                                                 \
  if (!(relvm_hooks.name = PyDict_GetItemString(named, #name))) return PyErr_Format(PyExc_TypeError, "no " #name); \
  Py_INCREF(relvm_hooks.name);
  HOOKS(HOOK)
#undef HOOK
  Py_RETURN_NONE;
}

static PyObject *module_active(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  PyObject *result = relvm_active ? (PyObject *)relvm_active : Py_None;
  Py_INCREF(result);
  return result;
}

static PyObject *module_store(PyObject *module, PyObject *arguments) {
  (void)module;
  PyObject *objects, *value;
  unsigned long long address;
  if (!PyArg_ParseTuple(arguments, "O!OK", relvm_objects_type, &objects, &value, &address)) return NULL;
  int ownership = relvm_store((Objects *)objects, value, (rvm_value *)(uintptr_t)address);
  return ownership < 0 ? NULL : PyBool_FromLong(ownership);
}

static PyObject *module_take(PyObject *module, PyObject *arguments) {
  (void)module;
  PyObject *objects;
  unsigned long long address;
  if (!PyArg_ParseTuple(arguments, "O!K", relvm_objects_type, &objects, &address)) return NULL;
  return relvm_take_borrowed((Objects *)objects, *(const rvm_value *)(uintptr_t)address);
}

static PyObject *module_take_result(PyObject *module, PyObject *arguments) {
  (void)module;
  PyObject *objects;
  unsigned long long address;
  if (!PyArg_ParseTuple(arguments, "O!K", relvm_objects_type, &objects, &address)) return NULL;
  rvm_value value = *(const rvm_value *)(uintptr_t)address;
  rvm_value_retain(value);
  return relvm_take_result((Objects *)objects, value);
}

/* set_exchange(objects, type): sets the array type that is accepted for arguments, and to which tensors of results are
   converted.  None selects relvm's own type. */
static PyObject *module_set_exchange(PyObject *module, PyObject *arguments) {
  (void)module;
  PyObject *objects, *type;
  if (!PyArg_ParseTuple(arguments, "O!O", relvm_objects_type, &objects, &type)) return NULL;
  if (relvm_exchange_set((Objects *)objects, type)) return NULL;
  Py_RETURN_NONE;
}

static PyObject *module_is_writable(PyObject *module, PyObject *reference) {
  (void)module;
  const rvm_tensor *tensor = relvm_tensor_of(reference);
  return tensor ? PyBool_FromLong(relvm_is_writable(tensor)) : NULL;
}

static PyObject *module_is_own(PyObject *module, PyObject *reference) {
  (void)module;
  const rvm_tensor *tensor = relvm_tensor_of(reference);
  return tensor ? PyBool_FromLong(rvm_tensor_is_own(tensor)) : NULL;
}

static PyObject *module_data_address(PyObject *module, PyObject *reference) {
  (void)module;
  const rvm_tensor *tensor = relvm_tensor_of(reference);
  return tensor ? PyLong_FromVoidPtr((char *)tensor->dl.data + tensor->dl.byte_offset) : NULL;
}

static PyObject *module_hold(PyObject *module, PyObject *object) {
  (void)module;
  Py_INCREF(object);
  return PyLong_FromVoidPtr(object);
}

static PyMethodDef module_methods[] = {
    {"install", (PyCFunction)(void (*)(void))module_install, METH_VARARGS | METH_KEYWORDS, "Set the hooks, by name."},
    {"active", module_active, METH_NOARGS, "The Objects of the machine that this thread is running, or None."},
    {"store", module_store, METH_VARARGS,
     "store(objects, value, address) -> bool: stores a value; True if the destination owns a reference."},
    {"take", module_take, METH_VARARGS, "take(objects, address) -> the Python value of a borrowed value."},
    {"take_result", module_take_result, METH_VARARGS,
     "take_result(objects, address) -> the Python value of a result, with its own memory."},
    {"set_exchange", module_set_exchange, METH_VARARGS,
     "set_exchange(objects, type): set the type of arrays to which tensors are converted, or None."},
    {"is_writable", module_is_writable, METH_O, "Whether the memory of a tensor may be written."},
    {"data_address", module_data_address, METH_O, "The address of the elements of a tensor."},
    {"is_own", module_is_own, METH_O, "Whether the elements of a tensor are in memory of a machine, or donated."},
    {"array_struct", relvm_array_struct, METH_O, "The attribute __array_struct__ of a tensor, for NumPy."},
    {"hold", module_hold, METH_O,
     "hold(object) -> address: a reference for C, which release_object(address) releases."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module_definition = {PyModuleDef_HEAD_INIT, .m_name = "relvm._binding", .m_size = -1,
                                               .m_methods = module_methods};

/* Adds an object, which may be NULL with an exception, to the module, and releases it.  Returns 0 with an exception if
   it fails. */
static int add(PyObject *module, const char *name, PyObject *object) {
  int added = object && PyModule_AddObjectRef(module, name, object) == 0;
  Py_XDECREF(object);
  return added;
}

PyMODINIT_FUNC PyInit__binding(void) {
  PyObject *module = PyModule_Create(&module_definition);
  if (!module) return NULL;
  function_name = PyUnicode_InternFromString("function");
  if (function_name && relvm_objects_ready() && PyModule_AddFunctions(module, relvm_onnx_methods) == 0 &&
      add(module, "Objects", Py_NewRef((PyObject *)relvm_objects_type)) &&
      add(module, "Reference", Py_NewRef((PyObject *)relvm_reference_type)) &&
      add(module, "Callable", (PyObject *)relvm_type_of(&callable_spec, relvm_reference_type)) &&
      add(module, "call_packed", PyLong_FromVoidPtr((void *)(uintptr_t)call_packed)) &&
      add(module, "release_object", PyLong_FromVoidPtr((void *)(uintptr_t)release_object)) &&
      PyModule_AddIntMacro(module, SEQUENCE_BYTES) == 0 && PyModule_AddIntMacro(module, ITEM_BYTES) == 0 &&
      PyModule_AddIntMacro(module, OBJECT_BYTES) == 0)
    return module;
  Py_DECREF(module);
  return NULL;
}
