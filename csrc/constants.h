/* constants.h: the constants of an executable, read from its section and checked. */
#ifndef RELVM_CONSTANTS_H
#define RELVM_CONSTANTS_H

#include "executable.h"

/* How many there are, as the section says; 0 where it is too short to. */
int64_t rvm_constants_count(const rvm_executable *executable);
/* Makes executable->constants, of which executable->constant_count are to be released where it fails. */
rvm_status rvm_constants_read(rvm_executable *executable, rvm_value *error);

#endif
