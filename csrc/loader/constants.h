/* constants.h: reads and checks the constants of an executable. */
#ifndef RELVM_CONSTANTS_H
#define RELVM_CONSTANTS_H

#include "executable.h"

/* Returns the number of constants that the section declares, or 0 if the section is too short.  The section need not be
   valid. */
int64_t rvm_constants_count(const rvm_executable *executable);
/* Reads executable->constants.  On failure, the first executable->constant_count constants are initialized, and
   rvm_executable_release releases them. */
rvm_status rvm_constants_read(rvm_executable *executable, rvm_value *error);

#endif
