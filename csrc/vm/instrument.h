/* instrument.h: reports calls to a machine's instrument (rvm_instrument in relvm.h). */
#ifndef RELVM_INSTRUMENT_H
#define RELVM_INSTRUMENT_H

#include "machine.h"

/* Calls the instrument's `before` for a call with `count` borrowed arguments at the top of the stack.  If it fails or
   sets *skip, the stack is unchanged.  Otherwise a second copy of the arguments is at the top, for the callee, and
   rvm_instrument_after must be called when the callee has returned. */
rvm_status rvm_instrument_before(rvm_machine *machine, const rvm_function *function, int64_t count, int32_t *skip,
                                 rvm_value *error);
/* Calls the instrument's `after` for a call that ended with `status` and *result, and removes the arguments from the
   stack.  Returns `status`.  But if `status` is OK and the instrument fails, replaces *result by the instrument's error
   and returns its status. */
rvm_status rvm_instrument_after(rvm_machine *machine, const rvm_function *function, int64_t count, rvm_status status,
                                rvm_value *result);

#endif
