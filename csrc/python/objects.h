/* objects.h: the Python types that own a machine and refer to its objects, and the hooks of the Python module
   relvm._binding.  All functions require the GIL. */
#ifndef RELVM_PYTHON_OBJECTS_H
#define RELVM_PYTHON_OBJECTS_H

#include <Python.h>

#include "relvm.h"

/* The hooks: Python functions and types that the module function `install` sets.  Hooks that return an exception do not
   raise it.  `objects` is an Objects, `callee` the Callable that is called, and `named` the Python object that was
   registered for a packed function. */
#define HOOKS(HOOK)                                                                                                  \
  HOOK(array)          /* numpy.ndarray */                                                                           \
  HOOK(scalar)         /* numpy.generic */                                                                           \
  HOOK(donated)        /* relvm.vm.Donated */                                                                        \
  HOOK(tensor)         /* the subtype of Reference for tensors */                                                    \
  HOOK(closure)        /* the subtype of Callable for functions and closures */                                      \
  HOOK(plain)          /* (callee, index, NumPy scalar) -> a number if the parameter is one, otherwise the scalar */ \
  HOOK(store)          /* (objects, value, address) -> bool: converts what values.c does not; True if OWNED */       \
  HOOK(take)           /* (objects, address) -> the Python value of a value that values.c does not convert */        \
  HOOK(failure)        /* (status, address) -> the exception of a failed call */                                     \
  HOOK(ended)          /* (callee, arguments, status, address) -> the exception of a failed run */                   \
  HOOK(busy)           /* (subject, objects) -> the exception if another thread is inside the machine */             \
  HOOK(argument_error) /* (callee, index, exception) -> the exception if an argument is invalid */                   \
  HOOK(keep_exception) /* (objects, exception) -> message as bytes: stores `exception` for the caller of the run */  \
  HOOK(unregistered)   /* (named) -> the exception if the name is no longer registered */                            \
  HOOK(no_caller)      /* (named) -> the exception if the machine was not called from Python */                      \
  HOOK(uncopyable)     /* (reference) -> the exception if the reference is copied or pickled */                      \
  HOOK(result_error)   /* (named, exception) -> the exception if a result is invalid */

typedef struct {
#define HOOK(name) PyObject *name;
  HOOKS(HOOK)
#undef HOOK
} Hooks;
extern Hooks relvm_hooks;

/* The owner of a machine.  Every Python object that refers to an object of the machine keeps its Objects alive. */
typedef struct {
  PyObject_HEAD rvm_machine *machine;
  PyObject *exception;       /* an exception of a callback that the caller of the run has to raise again, or NULL */
  PyObject *exchange;        /* the type of arrays to which results are converted, or NULL (exchange.h) */
  const void *exchange_api;  /* the C exchange API of this type */
  char needs_poll;           /* 1 if `poll` must be called before the next run, and runs are timed */
  char shares;               /* 1 if results may share the memory of arguments */
  char owning;               /* 1 while converting a result that must not use memory of the host */
  int depth;                 /* number of calls of relvm_enter that no relvm_leave has ended yet */
  long long entered;         /* if depth > 0 and needs_poll: start of the time that run_time does not include yet */
  long long run_time;        /* nanoseconds inside the machine since take_run_time, while needs_poll */
  long long converted_bytes; /* bytes of the current conversion, which count against max_bytes; -1: not counted */
} Objects;

/* A reference to an object of a machine.  Owns `value`. */
typedef struct {
  PyObject_HEAD Objects *objects;
  rvm_value value;
  char direct; /* for a Callable: 1 if calls without named arguments run in C, 0 if in Python (call_indirect) */
} Reference;

extern PyTypeObject *relvm_objects_type, *relvm_reference_type;

/* Returns the tensor that `object`, a Reference, refers to.  Returns NULL with TypeError for any other object. */
rvm_tensor *relvm_tensor_of(PyObject *object);
/* Creates the two types.  Returns 0 with an exception if it fails. */
int relvm_objects_ready(void);
/* Creates a type with the given base type, or with `object` if it is NULL.  Returns NULL with an exception if it
   fails. */
PyTypeObject *relvm_type_of(PyType_Spec *spec, PyTypeObject *base);

/* The Objects of the innermost machine that this thread is running, or NULL. */
extern _Thread_local Objects *relvm_active;
/* Enters the machine, and polls it if needs_poll is set.  Waits for threads that are inside briefly.  Returns 1, or 0
   with an exception if another thread is inside the machine or the poll fails.  `subject` is the object that the caller
   uses, for the message. */
int relvm_enter(Objects *objects, PyObject *subject);
/* Ends the last relvm_enter.  Returns the status of rvm_machine_leave.  On failure, stores the error in *error, unless
   `error` is NULL. */
rvm_status relvm_leave(Objects *objects, rvm_value *error);

/* Returns a new object of `type`, a subtype of Reference, which takes ownership of `value`.  On failure, returns NULL
   with an exception, and the caller still owns `value`. */
PyObject *relvm_reference_of(PyTypeObject *type, Objects *objects, rvm_value value);
/* Raises the exception that a hook returned, and releases it.  If `exception` is NULL, the hook has raised one itself.
   Returns NULL. */
PyObject *relvm_raise(PyObject *exception);
/* The slots tp_traverse and tp_dealloc of Reference and its subtypes. */
int relvm_reference_traverse(PyObject *self, visitproc visit, void *arg);
void relvm_reference_dealloc(PyObject *self);
/* Raises the exception of a failed call, and releases its error.  Returns -1. */
int relvm_failed(int32_t status, rvm_value *error);

#endif
