/* call.h: calls of everything that can be called. */
#ifndef RELVM_CALL_H
#define RELVM_CALL_H

#include "stack.h"

/* TYPE_ERROR: a value that is no function or closure is called. */
rvm_status rvm_fail_callee(rvm_value callee, rvm_value *error);
/* Calls a FUNCTION or CLOSURE of this machine, which the calling thread is inside of. */
rvm_status rvm_machine_apply(rvm_machine *machine, rvm_value callee, const rvm_value *arguments, int32_t count,
                             rvm_value *result);
/* Admits (rvm_value_admit) the result of a host function that returned `status`. */
rvm_status rvm_machine_admit_result(rvm_machine *machine, rvm_status status, rvm_value *result);
/* native.h: tail_call, finish_tail_call */
rvm_status rvm_machine_tail_call(rvm_machine *machine, rvm_value callee, const rvm_value *arguments, int32_t count,
                                 rvm_value *failure);
rvm_status rvm_machine_finish_tail_call(rvm_machine *machine, rvm_value *window, int32_t count, rvm_value *result);
/* Calls `function` with the `count` borrowed arguments that lie at the machine's top, of which the last `captured` came
   with a closure; they are gone afterwards.  Everything is as it was before the call, whether it succeeds or not. */
rvm_status rvm_machine_call_at_top(rvm_machine *machine, const rvm_function *function, int64_t count, int32_t captured,
                                   rvm_value *result);
/* Takes over the arguments at the top: calls a native or packed function, and what it ends with a tail call to.
   `entered`: a frame was pushed instead, of a bytecode function that is still to be run. */
rvm_status rvm_machine_start(rvm_machine *machine, rvm_pending call, int *entered, rvm_value *result);
/* A call of vm.builtin.invoke_closure, its arguments at the top, becomes a call of its target: the target's arguments, then
   the captured values, take the place of those of the builtin.  Nothing changes where the builtin has to say what is
   wrong, or where it calls no function of an executable. */
void rvm_machine_unfold_invoke(rvm_machine *machine, rvm_pending *call);

#endif
