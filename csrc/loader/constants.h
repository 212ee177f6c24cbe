/* constants.h: the constants of an executable, read from its section and checked. */
#ifndef RELVM_CONSTANTS_H
#define RELVM_CONSTANTS_H

#include "executable.h"

/* The number of constants that the section states; 0 where the section is too short to state one. */
int64_t rvm_constants_count(const rvm_executable *executable);
/* Makes executable->constants, of which executable->constant_count are to be released where it fails. */
rvm_status rvm_constants_read(rvm_executable *executable, rvm_value *error);

#endif
