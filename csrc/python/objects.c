/* objects.c: implements the types Objects and Reference (objects.h). */
#include "objects.h"

#include <structmember.h>

#include "system.h"
#include "private_tensor.h"

Hooks relvm_hooks;

/* ---- Objects: the owner of a machine ---- */

_Thread_local Objects *relvm_active;

PyTypeObject *relvm_objects_type, *relvm_reference_type;

static int objects_init(PyObject *self, PyObject *arguments, PyObject *named) {
  (void)named;
  unsigned long long address;
  if (!PyArg_ParseTuple(arguments, "K", &address)) return -1;
  ((Objects *)self)->machine = (rvm_machine *)(uintptr_t)address;
  ((Objects *)self)->converted_bytes = -1;
  return 0;
}

static int objects_traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(((Objects *)self)->exception);
  Py_VISIT(((Objects *)self)->exchange);
  Py_VISIT(Py_TYPE(self));
  return 0;
}

static int objects_clear(PyObject *self) {
  Py_CLEAR(((Objects *)self)->exception);
  Py_CLEAR(((Objects *)self)->exchange);
  return 0;
}

static void objects_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  objects_clear(self);
  rvm_machine_release(((Objects *)self)->machine);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

int relvm_enter(Objects *objects, PyObject *subject) {
  int32_t entered;
  while ((entered = rvm_machine_enter(objects->machine)) < 0) {
    /* Release the GIL, because the thread inside the machine may be waiting for it. */
    Py_BEGIN_ALLOW_THREADS rvm_thread_yield();
    Py_END_ALLOW_THREADS
  }
  if (!entered) {
    relvm_raise(PyObject_CallFunctionObjArgs(relvm_hooks.busy, subject, objects, NULL));
    return 0;
  }
  if (objects->needs_poll) {
    PyObject *done = PyObject_CallMethod((PyObject *)objects, "poll", NULL);
    if (!done) {
      rvm_machine_leave(objects->machine, NULL);
      return 0;
    }
    Py_DECREF(done);
  }
  if (objects->depth++ == 0 && objects->needs_poll) objects->entered = rvm_clock_now();
  return 1;
}

/* Adds the time since `entered` to run_time, and sets `entered` to now. */
static void measure_run_time(Objects *objects) {
  const int64_t now = rvm_clock_now();
  objects->run_time += now - objects->entered;
  objects->entered = now;
}

rvm_status relvm_leave(Objects *objects, rvm_value *error) {
  if (--objects->depth == 0 && objects->needs_poll) measure_run_time(objects);
  return rvm_machine_leave(objects->machine, error);
}

/* begin(subject) -> outer: enters the machine, and makes its Objects the active ones of this thread.  `subject` is the
   object that the caller uses, for the message of an exception (relvm_enter).  `outer` is the Objects that were active
   before, or None: end(outer) leaves the machine and makes `outer` active again. */
static PyObject *objects_begin(PyObject *self, PyObject *subject) {
  Objects *outer = relvm_active;
  if (!relvm_enter((Objects *)self, subject)) return NULL;
  relvm_active = (Objects *)self;
  PyObject *result = outer ? (PyObject *)outer : Py_None;
  Py_INCREF(result);
  return result;
}

static PyObject *objects_end(PyObject *self, PyObject *outer) {
  relvm_active = outer == Py_None ? NULL : (Objects *)outer;
  rvm_value error;
  rvm_status status = relvm_leave((Objects *)self, &error);
  if (!status) Py_RETURN_NONE;
  relvm_failed(status, &error);
  return NULL;
}

/* take_run_time() -> nanoseconds that threads have been inside the machine since the last call, counted only while
   needs_poll is set.  Only the thread inside the machine may call this, or any thread if the machine is idle. */
static PyObject *objects_take_run_time(PyObject *self, PyObject *unused) {
  (void)unused;
  Objects *objects = (Objects *)self;
  if (objects->depth > 0 && objects->needs_poll) measure_run_time(objects);
  PyObject *result = PyLong_FromLongLong(objects->run_time);
  objects->run_time = 0;
  return result;
}

static PyMethodDef objects_methods[] = {
    {"begin", objects_begin, METH_O, "begin(subject) -> outer: enter the machine, until end(outer)."},
    {"end", objects_end, METH_O, "end(outer): leave the machine."},
    {"take_run_time", objects_take_run_time, METH_NOARGS, "Nanoseconds inside the machine since the last call."},
    {NULL, NULL, 0, NULL}};

static PyMemberDef objects_members[] = {{"exception", T_OBJECT, offsetof(Objects, exception), 0, NULL},
                                        {"converted_bytes", T_LONGLONG, offsetof(Objects, converted_bytes), 0, NULL},
                                        {"needs_poll", T_BOOL, offsetof(Objects, needs_poll), 0, NULL},
                                        {"shares", T_BOOL, offsetof(Objects, shares), 0, NULL},
                                        {NULL, 0, 0, 0, NULL}};

static PyType_Slot objects_slots[] = {{Py_tp_init, objects_init},
                                      {Py_tp_traverse, objects_traverse},
                                      {Py_tp_clear, objects_clear},
                                      {Py_tp_dealloc, objects_dealloc},
                                      {Py_tp_methods, objects_methods},
                                      {Py_tp_members, objects_members},
                                      {0, NULL}};

static PyType_Spec objects_spec = {.name = "relvm._binding.Objects",
                                   .basicsize = sizeof(Objects),
                                   .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                                   .slots = objects_slots};

/* ---- references ---- */

PyObject *relvm_reference_of(PyTypeObject *type, Objects *objects, rvm_value value) {
  Reference *reference = (Reference *)PyType_GenericAlloc(type, 0);
  if (!reference) return NULL;
  /* From now on, Python can write to the tensor at any time, also during calls. */
  if (value.tag == RVM_TAG_TENSOR) rvm_tensor_share(value.as.tensor);
  Py_INCREF((PyObject *)objects);
  reference->objects = objects;
  reference->value = value;
  reference->direct = 1;
  return (PyObject *)reference;
}

static PyObject *reference_new(PyTypeObject *type, PyObject *arguments, PyObject *named) {
  (void)named;
  PyObject *objects;
  long long tag, payload;
  if (!PyArg_ParseTuple(arguments, "O!LL", relvm_objects_type, &objects, &tag, &payload)) return NULL;
  return relvm_reference_of(type, (Objects *)objects, (rvm_value){.tag = tag, .as.i = payload});
}

int relvm_reference_traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(((Reference *)self)->objects);
  Py_VISIT(Py_TYPE(self));
  return 0;
}

/* Releases `value` and the reference to the Objects.  The type has no tp_clear, because a Reference needs its machine
   until it is freed. */
void relvm_reference_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  Reference *reference = (Reference *)self;
  PyObject_GC_UnTrack(self);
  if (reference->objects) {
    rvm_machine_drop(reference->objects->machine, reference->value);
    Py_DECREF((PyObject *)reference->objects);
  }
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

static PyObject *reference_reduce(PyObject *self, PyObject *protocol) {
  (void)protocol;
  return relvm_raise(PyObject_CallFunctionObjArgs(relvm_hooks.uncopyable, self, NULL));
}

static PyMethodDef reference_methods[] = {{"__reduce_ex__", reference_reduce, METH_O, NULL}, {NULL, NULL, 0, NULL}};

static PyMemberDef reference_members[] = {{"objects", T_OBJECT, offsetof(Reference, objects), READONLY, NULL},
                                          {"tag", T_LONGLONG, offsetof(Reference, value.tag), READONLY, NULL},
                                          {"address", T_LONGLONG, offsetof(Reference, value.as), READONLY, NULL},
                                          {NULL, 0, 0, 0, NULL}};

static PyType_Slot reference_slots[] = {{Py_tp_new, reference_new},
                                        {Py_tp_traverse, relvm_reference_traverse},
                                        {Py_tp_dealloc, relvm_reference_dealloc},
                                        {Py_tp_methods, reference_methods},
                                        {Py_tp_members, reference_members},
                                        {0, NULL}};

static PyType_Spec reference_spec = {.name = "relvm._binding.Reference",
                                     .basicsize = sizeof(Reference),
                                     .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                                     .slots = reference_slots};

rvm_tensor *relvm_tensor_of(PyObject *object) {
  if (PyObject_TypeCheck(object, relvm_reference_type)) {
    const rvm_value value = ((Reference *)object)->value;
    if (value.tag == RVM_TAG_TENSOR) return value.as.tensor;
  }
  PyErr_Format(PyExc_TypeError, "expected a tensor, got %R", object);
  return NULL;
}

/* ---- types ---- */

PyTypeObject *relvm_type_of(PyType_Spec *spec, PyTypeObject *base) {
  PyObject *bases = base ? PyTuple_Pack(1, base) : NULL;
  PyObject *type = base && !bases ? NULL : PyType_FromSpecWithBases(spec, bases);
  Py_XDECREF(bases);
  return (PyTypeObject *)type;
}

int relvm_objects_ready(void) {
  relvm_objects_type = relvm_type_of(&objects_spec, NULL);
  relvm_reference_type = relvm_objects_type ? relvm_type_of(&reference_spec, NULL) : NULL;
  return relvm_reference_type != NULL;
}

/* ---- exceptions ---- */

PyObject *relvm_raise(PyObject *exception) {
  if (exception) {
    PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_DECREF(exception);
  }
  return NULL;
}

int relvm_failed(int32_t status, rvm_value *error) {
  relvm_raise(PyObject_CallFunction(relvm_hooks.failure, "iK", (int)status, (unsigned long long)(uintptr_t)error));
  return -1;
}
