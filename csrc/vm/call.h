/* call.h: calls of bytecode, native and packed functions.  Everything here runs on the thread that has entered the
   machine. */
#ifndef RELVM_CALL_H
#define RELVM_CALL_H

#include "stack.h"

/* Fails with TYPE_ERROR because `callee` is neither a function nor a closure. */
rvm_status rvm_fail_callee(rvm_value callee, rvm_value *error);
/* Calls a FUNCTION or CLOSURE of this machine with borrowed arguments.  The calling thread must have entered the
   machine. */
rvm_status rvm_machine_apply(rvm_machine *machine, rvm_value callee, const rvm_value *arguments, int32_t count,
                             rvm_value *result);
/* Admits the result of a host function that returned `status` (rvm_value_admit), and releases the original.  Does
   nothing if `status` is an error. */
rvm_status rvm_machine_admit_result(rvm_machine *machine, rvm_status status, rvm_value *result);
/* Entries of rvm_native_api: see native.h. */
rvm_status rvm_machine_tail_call(rvm_machine *machine, rvm_value callee, const rvm_value *arguments, int32_t count,
                                 rvm_value *failure);
rvm_status rvm_machine_finish_tail_call(rvm_machine *machine, rvm_value *window, int32_t count, rvm_value *result);
/* Calls `function` with `count` borrowed arguments at the top of the stack.  The last `captured` of them are values
   that a closure captured.  Removes the arguments from the stack, also on failure. */
rvm_status rvm_machine_call_at_top(rvm_machine *machine, const rvm_function *function, int64_t count, int32_t captured,
                                   rvm_value *result);
/* Starts a call, and takes ownership of the arguments at the top of the stack.  Calls a native or packed function to
   its end, including its tail calls.  For a bytecode function, pushes a frame and sets *entered: the caller must then
   run the interpreter. */
rvm_status rvm_machine_start(rvm_machine *machine, rvm_pending call, int *entered, rvm_value *result);
/* Turns a call of vm.builtin.invoke_closure, whose arguments are at the top of the stack, into a call of its target.
   The target's arguments, then the captured values, replace those of the builtin.  Does nothing if the call is invalid,
   or if the target is not a bytecode or native function of this machine. */
void rvm_machine_unfold_invoke(rvm_machine *machine, rvm_pending *call);

#endif
