/* objects.h: what Python holds of a machine, and the hooks of the Python module relvm._binding. */
#ifndef RELVM_PYTHON_OBJECTS_H
#define RELVM_PYTHON_OBJECTS_H

#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include "relvm.h"

/* Python functions and types that this module is given by `install`. */
#define HOOKS(HOOK)                                                                                                  \
  HOOK(array)        /* numpy.ndarray */                                                                             \
  HOOK(scalar)       /* numpy.generic */                                                                             \
  HOOK(tensor)       /* the subtype of Reference for tensors */                                                      \
  HOOK(closure)      /* the subtype of Callable for functions and closures */                                        \
  HOOK(plain)        /* (callee, index, a NumPy scalar) -> a number if the parameter is one, otherwise the scalar */ \
  HOOK(store)        /* (objects, value, address) -> bool: puts a value of any other type there; whether owned */    \
  HOOK(take)         /* (objects, address) -> the Python value of one of any other tag */                            \
  HOOK(failure)      /* (status, address) -> the exception of a failed call */                                       \
  HOOK(ended)        /* (callee, arguments, status, address) -> that of a failed run */                              \
  HOOK(busy)         /* (what, objects) -> that another thread is running the machine */                             \
  HOOK(misfit)       /* (callee, index, exception) -> that of an argument which cannot be passed */                  \
  HOOK(carry)        /* (objects, exception) -> bytes: keeps it for the caller of the run; its message */            \
  HOOK(unregistered) /* (named) -> that no function has the name any longer */                                       \
  HOOK(hostless)     /* (what) -> that a Python function was called by a machine that Python has not called */       \
  HOOK(uncopyable)   /* (reference) -> that it cannot be copied */                                                   \
  HOOK(unfit_result) /* (named, exception) -> that of a result which cannot be passed */

typedef struct {
#define HOOK(name) PyObject *name;
  HOOKS(HOOK)
#undef HOOK
} Hooks;
extern Hooks relvm_hooks;

/* The owner of a machine.  Every Python object that refers to a part of the machine keeps it alive. */
typedef struct {
  PyObject_HEAD rvm_machine *machine;
  PyObject *exception; /* raised in a callback, on its way to the caller; or NULL */
  char restless;       /* `poll` is to be called before the next run, and runs are timed */
  char shares;         /* results may lie in the memory of arguments */
  char owning;         /* a result is being taken whose memory must not be the host's */
  int depth;           /* entries by relvm_enter that relvm_leave has not ended */
  long long entered;   /* by rvm_clock_now: the start of the time that is not yet in run_time, if depth > 0 */
  long long run_time;  /* nanoseconds inside the machine since take_run_time, while restless */
  long long taken; /* the bytes of what is being taken, which the machine's limits are to allow; -1: they need not */
} Objects;

/* One reference to an object of a machine, taken over from whoever made this. */
typedef struct {
  PyObject_HEAD Objects *objects;
  rvm_value value;
  char direct; /* of a Callable: a call by position goes to the machine as it is */
} Reference;

extern PyTypeObject *relvm_objects_type, *relvm_reference_type;
/* Makes the two types: 0 when Python could not. */
int relvm_objects_ready(void);
PyTypeObject *relvm_type_of(PyType_Spec *spec, PyTypeObject *base);

/* The Objects of the innermost machine that this thread is running; NULL: it runs none. */
extern _Thread_local Objects *relvm_active;
/* Makes this thread the one inside the machine; 0 with an exception when another is.  what: for the message. */
int relvm_enter(Objects *objects, PyObject *what);
/* Ends the last relvm_enter.  Returns the status of rvm_machine_leave, which sets *error if it is not NULL. */
rvm_status relvm_leave(Objects *objects, rvm_value *error);

/* A reference of that subtype, which takes over the value's. */
PyObject *relvm_reference_of(PyTypeObject *type, Objects *objects, rvm_value value);
/* Raises the exception that a hook returned; always NULL. */
PyObject *relvm_raise(PyObject *exception);
/* Slots of a subtype of Reference. */
int relvm_reference_traverse(PyObject *self, visitproc visit, void *arg);
void relvm_reference_dealloc(PyObject *self);
/* Raises the exception of a failed call, whose error is released; always -1. */
int relvm_failed(int32_t status, rvm_value *error);

#endif
