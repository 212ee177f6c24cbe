/* call.h: calls of bytecode, native and packed functions. */
#ifndef RELVM_CALL_H
#define RELVM_CALL_H

#include "stack.h"

/* Fails with TYPE_ERROR, because the called value is neither a function nor a closure. */
rvm_status rvm_fail_callee(rvm_value callee, rvm_value *error);
/* Calls a FUNCTION or CLOSURE of this machine, which the calling thread must have entered. */
rvm_status rvm_machine_apply(rvm_machine *machine, rvm_value callee, const rvm_value *arguments, int32_t count,
                             rvm_value *result);
/* Admits (rvm_value_admit) the result of a host function that returned `status`. */
rvm_status rvm_machine_admit_result(rvm_machine *machine, rvm_status status, rvm_value *result);
/* native.h: tail_call, finish_tail_call */
rvm_status rvm_machine_tail_call(rvm_machine *machine, rvm_value callee, const rvm_value *arguments, int32_t count,
                                 rvm_value *failure);
rvm_status rvm_machine_finish_tail_call(rvm_machine *machine, rvm_value *window, int32_t count, rvm_value *result);
/* Calls `function` with `count` borrowed arguments, which begin at the machine's top.  The last `captured` of them are
   the values that a closure captured.  Afterwards, the stack is as it was before the call, but without the arguments,
   even on failure. */
rvm_status rvm_machine_call_at_top(rvm_machine *machine, const rvm_function *function, int64_t count, int32_t captured,
                                   rvm_value *result);
/* Starts a call, and takes over the arguments at the top.  Calls a native or packed function, and makes its tail calls.
   For a bytecode function, pushes a frame and sets *entered.  The caller must then run the interpreter. */
rvm_status rvm_machine_start(rvm_machine *machine, rvm_pending call, int *entered, rvm_value *result);
/* Turns a call of vm.builtin.invoke_closure, whose arguments are at the top, into a call of its target.  The arguments
   of the target, then the captured values, replace those of the builtin.  If the call is invalid, or the target is not
   a bytecode or native function of this machine, nothing changes. */
void rvm_machine_unfold_invoke(rvm_machine *machine, rvm_pending *call);

#endif
