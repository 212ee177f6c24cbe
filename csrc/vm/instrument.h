/* instrument.h: what tells a machine's instrument of its calls. */
#ifndef RELVM_INSTRUMENT_H
#define RELVM_INSTRUMENT_H

#include "machine.h"

/* Tells the instrument of a call with the `count` borrowed arguments at the top.  On success, unless *skip, they lie at
   the top a second time, as the callee's own, and rvm_instrument_after must follow when the callee is done with them.
 */
rvm_status rvm_instrument_before(rvm_machine *machine, const rvm_function *function, int64_t count, int32_t *skip,
                                 rvm_value *error);
/* Tells it of the call's end, and removes the arguments.  What the call ends with: `status`, unless that is OK and the
   instrument fails; then its error takes the place of *result. */
rvm_status rvm_instrument_after(rvm_machine *machine, const rvm_function *function, int64_t count, rvm_status status,
                                rvm_value *result);

#endif
