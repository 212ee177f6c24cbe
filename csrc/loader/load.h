/* load.h: loads the executable of a selective library (selected.h).  rvm_executable_load is declared in relvm.h. */
#ifndef RELVM_LOAD_H
#define RELVM_LOAD_H

#include "relvm.h"

#ifdef RVM_SELECTIVE
/* Loads an executable that was verified when the library was made, and is not checked again.  The executable borrows
   the bytes. */
rvm_status rvm_executable_load_own(const void *bytes, int64_t size_bytes, rvm_executable **executable,
                                   rvm_value *error);
#endif

#endif
