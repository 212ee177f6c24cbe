/* builtins.h: the functions of builtins.def, and the table of functions that the host has registered. */
#ifndef RELVM_BUILTINS_H
#define RELVM_BUILTINS_H

#include "native.h"
#include "storage_pool.h"

#define RVM_BUILTIN_PREFIX "vm.builtin."

#define BUILTIN(name, signature, effect, cost, meaning) \
  rvm_status rvm_builtin_##name(void *self, const rvm_value *arguments, int32_t count, rvm_value *result);
#include "builtins.def"
#undef BUILTIN

#define RVM_BUILTIN(name) \
  rvm_status rvm_builtin_##name(void *self, const rvm_value *arguments, int32_t count, rvm_value *result)

const char *rvm_builtin_name(enum rvm_builtin builtin); /* with its prefix */
/* Compares a builtin's arguments with `kinds`, one letter each (arguments.c); '*' at the end: any number of the last
   kind.  ARGUMENT_ERROR or TYPE_ERROR name the builtin, its signature and the argument. */
rvm_status rvm_check_arguments(enum rvm_builtin builtin, const char *kinds, const rvm_value *arguments, int32_t count,
                               rvm_value *result);
rvm_status rvm_fail_count(enum rvm_builtin builtin, int32_t count, rvm_value *result);

/* Whether a value is a function or closure of the program that is known to have no effects. */
int rvm_is_pure(rvm_value value);

/* Whether a value can be a function's shape heap: that is written to, so memory of constants or of the host is none. */
int rvm_is_heap(rvm_value value);

/* How a builtin begins. */
#define RVM_CHECK(name, kinds)                                                                     \
  do {                                                                                             \
    (void)self;                                                                                    \
    rvm_status status_ = rvm_check_arguments(RVM_BUILTIN_##name, kinds, arguments, count, result); \
    if (status_) return status_;                                                                   \
  } while (0)

/* The builtin or registered function of that name: 1 and what to call, or 0. */
int32_t rvm_function_find(const char *name, rvm_packed_function *function, void **self);
/* UNKNOWN_FUNCTION, with the known names that are nearest. */
rvm_status rvm_fail_unknown(const char *name, rvm_value *error);

/* ---- the machine, as the builtins see it ---- */

/* The machine whose run this thread is in, the innermost; NULL: none, where C calls a builtin itself. */
rvm_machine *rvm_machine_running(void);
/* Has the machine look at its limits at its next step: a function of the host has run for an unknown time. */
void rvm_machine_look_next(rvm_machine *machine);
/* Looks at the limits of the run and asks the host; INTERRUPTED, TIMEOUT, or what the host says, ends the run (machine.c). */
rvm_status rvm_machine_poll_now(rvm_machine *machine, rvm_value *error);

/* Counts `cost` of the work that a builtin does, in its loops, as steps: about one for each value looked at or 64 bytes moved.
   Now and then it polls; *error is as it was unless that ends the run.  machine: rvm_machine_running(). */
static inline rvm_status rvm_spend(rvm_machine *machine, int64_t cost, rvm_value *error) {
  rvm_machine_head *head = (rvm_machine_head *)machine;
  if (!machine || (head->fuel -= cost) > 0) return RVM_OK;
  return rvm_machine_poll_now(machine, error);
}

/* Calls a FUNCTION or CLOSURE of this machine, which the calling thread is inside of (interpreter.c). */
rvm_status rvm_machine_apply(rvm_machine *machine, rvm_value callee, const rvm_value *arguments, int32_t count,
                             rvm_value *result);
/* Whether its program may call a registered function by its name. */
int rvm_machine_may_call(const rvm_machine *machine, const char *name);
rvm_status rvm_fail_forbidden(const char *name, rvm_value *error);
/* What its storages are made in. */
rvm_pool *rvm_machine_pool(rvm_machine *machine);
/* A tensor in memory of the machine's pool; its bytes are not initialized.  Strings have memory of their own. */
rvm_status rvm_machine_tensor_new(rvm_machine *machine, int32_t dtype, int32_t rank, const int64_t *dims,
                                  rvm_value *result);
/* Copies elements into a new tensor, or other bytes, and counts that as work. */
rvm_status rvm_copy_elements(rvm_machine *machine, int32_t dtype, void *to, const void *from, size_t bytes,
                             rvm_value *error);
/* As rvm_grow, of an array that may be large: what is copied is work.  Unless it succeeds *array is as it was. */
rvm_status rvm_grow_array(rvm_machine *machine, void **array, int64_t count, int64_t capacity, size_t element_bytes,
                          rvm_value *error);
uint64_t rvm_machine_random(rvm_machine *machine); /* the next of its random numbers */
/* Hands the values to the print hook (machine.c). */
rvm_status rvm_machine_print(rvm_machine *machine, const rvm_value *arguments, int32_t count, rvm_value *error);

#endif
