/* exact_element_functions.c: the functions on elements with exact fused multiply-adds, for processors that have no
   instruction for them (reproducible.h). */
#include "compiler.h"

#if defined RVM_HAS_FMA || defined RVM_WITHOUT_EXACT_FMA
typedef int rvm_no_exact_element_functions; /* C requires a declaration */
#else
#define RVM_EXACT_FMA
#ifndef RVM_COMPACT
#define RVM_COMPACT /* the functions are slow anyway, so small code is preferred */
#endif
#define RVM_LEVEL _exact
#include "element_functions.c"  // NOLINT(bugprone-suspicious-include)
#endif
