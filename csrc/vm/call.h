/* call.h: calls of bytecode, native and packed functions.  Only the thread inside the machine may call these
   functions. */
#ifndef RELVM_CALL_H
#define RELVM_CALL_H

#include "stack.h"

/* Fails with TYPE_ERROR because `callee` is neither a function nor a closure. */
rvm_status rvm_fail_callee(rvm_value callee, rvm_value *error);
/* Calls a FUNCTION or CLOSURE of this machine with borrowed arguments, in the current run. */
rvm_status rvm_machine_apply(rvm_machine *machine, rvm_value callee, const rvm_value *arguments, int32_t count,
                             rvm_value *result);
/* Replaces the result of a host function that returned `status` by an admitted value (rvm_value_admit).  Does nothing
   if `status` is an error. */
rvm_status rvm_machine_admit_result(rvm_machine *machine, rvm_status status, rvm_value *result);
/* Entries of rvm_native_api: see native.h. */
rvm_status rvm_machine_tail_call(rvm_machine *machine, rvm_value callee, const rvm_value *arguments, int32_t count,
                                 rvm_value *failure);
rvm_status rvm_machine_finish_tail_call(rvm_machine *machine, rvm_value *window, int32_t count, rvm_value *result);
/* Calls `function` with `count` borrowed arguments at the top of the stack.  The last `captured` of them are values
   that a closure captured.  Removes the arguments from the stack, also on failure. */
rvm_status rvm_machine_call_at_top(rvm_machine *machine, const rvm_function *function, int64_t count, int32_t captured,
                                   rvm_value *result);
/* Starts a call, and takes ownership of the arguments at the top of the stack, also on failure.  A native or packed
   function is called and returns before this function does.  If the function, or the callee of its tail call, is a
   bytecode function, pushes a frame and sets *entered to 1: the caller must then run the interpreter. */
rvm_status rvm_machine_start(rvm_machine *machine, rvm_pending call, int *entered, rvm_value *result);
/* Replaces a call of vm.builtin.invoke_closure by a call of its target, the function or closure that it invokes.  The
   arguments at the top of the stack become those of the target, followed by the captured values.  Does nothing if the
   call is invalid, or if the target is not a bytecode or native function of this machine. */
void rvm_machine_unfold_invoke(rvm_machine *machine, rvm_pending *call);

#endif
