/* binding.c: the Python module relvm._binding: what every call from Python, and every call of a Python function,
   goes through.  Whatever is not in the way of each call is Python, over cffi, and called from here through
   `relvm_hooks`. It stands in one library with the cffi module, because both have to see the same runtime. */
#include "private_tensor.h"
#include "tensor.h"
#include "values.h"

#include <structmember.h>

enum { ROW = 8 }; /* arguments of a call for which no memory is allocated */

/* ---- calls from Python ---- */

/* The arguments of a call in a row, and those that the row owns. */
typedef struct {
  int32_t count, owned_count;
  rvm_value *values;
  int32_t *owned;
  rvm_value room[ROW];
  int32_t owned_room[ROW];
} Row;

static int row_open(Row *row, Py_ssize_t count) {
  row->count = (int32_t)count;
  row->owned_count = 0;
  row->values = row->room;
  row->owned = row->owned_room;
  if (count <= ROW) return 1;
  row->values = PyMem_Calloc((size_t)count, sizeof *row->values + sizeof *row->owned);
  row->owned = (int32_t *)(row->values + count);
  if (!row->values) PyErr_NoMemory();
  return row->values != NULL;
}

static void row_close(Row *row) {
  for (int32_t i = 0; i < row->owned_count; i++) rvm_value_release(&row->values[row->owned[i]]);
  if (row->values != row->room) PyMem_Free(row->values);
}

/* An argument cannot be passed: the exception says which. */
static void say_which(PyObject *hook, PyObject *callee, PyObject *index) {
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

/* Stores argument i.  A NumPy scalar is a tensor of rank 0, or a number if the parameter is a number. */
static int store_argument(Reference *callee, PyObject *value, int32_t i, rvm_value *place) {
  if (!PyType_IsSubtype(Py_TYPE(value), (PyTypeObject *)relvm_hooks.scalar))
    return relvm_store(callee->objects, value, place);
  PyObject *plain = PyObject_CallFunction(relvm_hooks.plain, "OiO", callee, (int)i, value);
  int how = plain ? relvm_store(callee->objects, plain, place) : -1;
  Py_XDECREF(plain);
  return how;
}

static int row_fill(Row *row, Reference *callee, PyObject *arguments) {
  for (int32_t i = 0; i < row->count; i++) {
    int how = store_argument(callee, PyTuple_GetItem(arguments, i), i, &row->values[i]);
    if (how == OWNED) row->owned[row->owned_count++] = i;
    if (how >= 0) continue;
    PyObject *index = PyLong_FromLong(i);
    if (index) say_which(relvm_hooks.misfit, (PyObject *)callee, index);
    Py_XDECREF(index);
    return 0;
  }
  return 1;
}

/* Runs the callee inside its machine, which this thread is in; Python goes on meanwhile. */
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

/* call(*arguments) -> result: by position. */
static PyObject *callable_call(PyObject *self, PyObject *arguments) {
  Reference *callee = (Reference *)self;
  Objects *objects = callee->objects, *outer = relvm_active;
  if (!relvm_enter(objects, self)) return NULL;
  relvm_active = objects;
  Py_INCREF((PyObject *)objects); /* a packed function may drop all else that holds the machine */
  PyObject *result = run(callee, arguments);
  relvm_active = outer;
  relvm_leave(objects, NULL);
  Py_DECREF((PyObject *)objects);
  return result;
}

static PyObject *callable_tp_call(PyObject *self, PyObject *arguments, PyObject *named) {
  if (((Reference *)self)->direct && (!named || PyDict_Size(named) == 0)) return callable_call(self, arguments);
  PyObject *method = PyObject_GetAttrString(self, "call_otherwise");
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

static PyObject *function_name; /* "function": the attribute of what a name is registered as */

static PyObject *taken_arguments(Objects *objects, const rvm_value *arguments, int32_t count) {
  PyObject *tuple = PyTuple_New(count);
  const long long outer = objects->taken;
  objects->taken = 0;
  for (int32_t i = 0; i < count && tuple; i++) {
    PyObject *item = relvm_take_borrowed(objects, arguments[i]);
    if (item) {
      PyTuple_SetItem(tuple, i, item);
    } else {
      Py_CLEAR(tuple);
    }
  }
  objects->taken = outer;
  return tuple;
}

/* Copies the elements of the arguments that are copies (needs_copy in values.c) back to the tensors of the machine,
   after a Python function has written to them. */
static void write_back(PyObject *tuple, const rvm_value *arguments, int32_t count) {
  for (int32_t i = 0; i < count; i++)
    if (arguments[i].tag == RVM_TAG_TENSOR)
      rvm_tensor_write_canonical(arguments[i].as.tensor, ((Reference *)PyTuple_GetItem(tuple, i))->value.as.tensor);
}

/* The function that has the name now. */
static int call_python(Objects *objects, PyObject *named, const rvm_value *arguments, int32_t count,
                       rvm_value *result) {
  if (!objects) {
    relvm_raise(PyObject_CallFunctionObjArgs(relvm_hooks.hostless, named, NULL));
    return -1;
  }
  PyObject *function = PyObject_GetAttr(named, function_name);
  if (function == Py_None) {
    Py_CLEAR(function);
    relvm_raise(PyObject_CallFunctionObjArgs(relvm_hooks.unregistered, named, NULL));
  }
  PyObject *tuple = function ? taken_arguments(objects, arguments, count) : NULL;
  PyObject *value = tuple ? PyObject_Call(function, tuple, NULL) : NULL;
  int status = -1;
  if (value) write_back(tuple, arguments, count);
  if (value && (status = relvm_store_owned(objects, value, result))) say_which(relvm_hooks.unfit_result, named, NULL);
  Py_XDECREF(function);
  Py_XDECREF(tuple);
  Py_XDECREF(value);
  return status;
}

/* Ends a callback that raised: the exception waits in the machine, and C gets an error to unwind with. */
static rvm_status carry(Objects *objects, rvm_value *result) {
  PyObject *type, *exception, *traceback;
  PyErr_Fetch(&type, &exception, &traceback);
  PyErr_NormalizeException(&type, &exception, &traceback);
  if (traceback) PyException_SetTraceback(exception, traceback);
  PyObject *machine = objects ? (PyObject *)objects : Py_None;
  PyObject *message = PyObject_CallFunctionObjArgs(relvm_hooks.carry, machine, exception, NULL);
  const char *text = message ? PyBytes_AsString(message) : NULL;
  if (!text) PyErr_Clear();
  rvm_status status = rvm_fail(result, RVM_CALLBACK_ERROR, "%s", text ? text : "a Python function failed");
  Py_XDECREF(message);
  Py_XDECREF(type);
  Py_XDECREF(exception);
  Py_XDECREF(traceback);
  return status;
}

/* A packed function; self: what it is registered as. */
static rvm_status call_packed(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  PyGILState_STATE state = PyGILState_Ensure();
  Objects *objects = relvm_active;
  rvm_status status = RVM_OK;
  if (call_python(objects, self, arguments, count, result)) status = carry(objects, result);
  PyGILState_Release(state);
  return status;
}

/* ---- the module ---- */

/* Releases a reference to a Python object that C owns.  Any thread can call this. */
static void let_go(void *object) {
  PyGILState_STATE state = PyGILState_Ensure();
  Py_DECREF((PyObject *)object);
  PyGILState_Release(state);
}

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
  int how = relvm_store((Objects *)objects, value, (rvm_value *)(uintptr_t)address);
  return how < 0 ? NULL : PyBool_FromLong(how);
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

static PyObject *module_is_writable(PyObject *module, PyObject *reference) {
  (void)module;
  return PyBool_FromLong(relvm_is_writable(((Reference *)reference)->value.as.tensor));
}

static PyObject *module_is_own(PyObject *module, PyObject *reference) {
  (void)module;
  return PyBool_FromLong(rvm_tensor_is_own(((Reference *)reference)->value.as.tensor));
}

static PyObject *module_hold(PyObject *module, PyObject *object) {
  (void)module;
  Py_INCREF(object);
  return PyLong_FromVoidPtr(object);
}

static PyMethodDef module_methods[] = {
    {"install", (PyCFunction)(void (*)(void))module_install, METH_VARARGS | METH_KEYWORDS, "Sets the hooks, by name."},
    {"active", module_active, METH_NOARGS, "The Objects of the machine that this thread is running, or None."},
    {"store", module_store, METH_VARARGS, "store(objects, value, address) -> whether the place owns a reference."},
    {"take", module_take, METH_VARARGS, "take(objects, address) -> the Python value of the one that stays there."},
    {"take_result", module_take_result, METH_VARARGS, "The same of a result, which owns its memory."},
    {"is_writable", module_is_writable, METH_O, "Whether the bytes that a tensor lies in may be written."},
    {"is_own", module_is_own, METH_O, "Whether the elements of a tensor are in memory of a machine."},
    {"hold", module_hold, METH_O, "A reference to an object for C, which gives it back by calling let_go with this."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module_definition = {PyModuleDef_HEAD_INIT, .m_name = "relvm._binding", .m_size = -1,
                                               .m_methods = module_methods};

/* 0 when the module could not take it. */
static int add(PyObject *module, const char *name, PyObject *object) {
  int added = object && PyModule_AddObjectRef(module, name, object) == 0;
  Py_XDECREF(object);
  return added;
}

PyMODINIT_FUNC PyInit__binding(void) {
  PyObject *module = PyModule_Create(&module_definition);
  if (!module) return NULL;
  function_name = PyUnicode_InternFromString("function");
  if (function_name && relvm_objects_ready() && add(module, "Objects", Py_NewRef((PyObject *)relvm_objects_type)) &&
      add(module, "Reference", Py_NewRef((PyObject *)relvm_reference_type)) &&
      add(module, "Callable", (PyObject *)relvm_type_of(&callable_spec, relvm_reference_type)) &&
      add(module, "call_packed", PyLong_FromVoidPtr((void *)(uintptr_t)call_packed)) &&
      add(module, "let_go", PyLong_FromVoidPtr((void *)(uintptr_t)let_go)))
    return module;
  Py_DECREF(module);
  return NULL;
}
