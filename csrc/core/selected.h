/* selected.h: macros that omit parts of the runtime from a selective library.

   `relvm compile --selective` compiles the runtime with RVM_SELECTIVE, for one executable, which is part of the library
   and the only one that it loads.  The executable was verified when the library was made, so the library has no checks
   of executables.  Its interpreter has no specialized steps (steps.def), and the executable has no native functions.

   RVM_SELECTION is the name of a file that defines RVM_USES_NAME as `~,` for each NAME that the executable uses.  NAME
   is the name of a builtin or micro-kernel, function_F for the element function F, step_S for the step of the scalar
   operator S, op_K for the instruction K of kernel bytecode, op_K_B for K on elements of B bytes, or string_constant
   for constants of strings.  The sources that refer to these names are compiled with this file. */
#ifndef RELVM_SELECTED_H
#define RELVM_SELECTED_H

#ifdef RVM_SELECTIVE
enum { RVM_IS_SELECTIVE = 1 };
#else
enum { RVM_IS_SELECTIVE = 0 };
#endif

/* The failure of a check of the executable: fails with BAD_EXECUTABLE.  In a selective library, no such check can fail,
   so the compiler may assume that this code is unreachable. */
#ifdef RVM_SELECTIVE
#define RVM_FAIL_BAD(error, ...) ((void)(error), __builtin_unreachable(), RVM_OK)
#else
#define RVM_FAIL_BAD(error, ...) rvm_fail(error, RVM_BAD_EXECUTABLE, __VA_ARGS__)
#endif

/* Returns UNSUPPORTED from the calling public function in a selective library. */
#define RVM_EXPECT_WHOLE_RUNTIME(error)                                                                            \
  do {                                                                                                             \
    if (RVM_IS_SELECTIVE)                                                                                          \
      return rvm_fail(error, RVM_UNSUPPORTED,                                                                      \
                      "%s: a selective library does not contain this function; link the whole runtime (librelvm)", \
                      __func__);                                                                                   \
  } while (0)

/* RVM_IF_USED(NAME, value) is `value`, or 0 in a selective library that does not use NAME.  RVM_WHEN_USED(NAME, tokens)
   is `tokens`, or nothing.  RVM_IF_EITHER_USED(A, B, value) is `value` if A or B is used, else 0. */
#ifdef RVM_SELECTION
#include RVM_SELECTION
#define RVM_SECOND(first, second, ...) second
#define RVM_CHOOSE(...) RVM_SECOND(__VA_ARGS__, ~)
#define RVM_WITHOUT_PARENTHESES(...) __VA_ARGS__
#define RVM_RESCAN(...) __VA_ARGS__
#define RVM_IF_USED(name, value) RVM_CHOOSE(RVM_USES_##name value, 0)
#define RVM_IF_EITHER_USED(a, b, value) RVM_CHOOSE(RVM_USES_##a value, RVM_IF_USED(b, value))
#define RVM_WHEN_USED(name, ...) RVM_RESCAN(RVM_WITHOUT_PARENTHESES RVM_CHOOSE(RVM_USES_##name(__VA_ARGS__), ()))
#else
#define RVM_IF_USED(name, value) value
#define RVM_IF_EITHER_USED(a, b, value) value
#define RVM_WHEN_USED(name, ...) __VA_ARGS__
#endif

#endif
