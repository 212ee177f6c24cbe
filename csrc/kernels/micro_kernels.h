/* micro_kernels.h: the micro-kernels (micro_kernels.def) for kernel bytecode.  Each of them does the work of the
   function of the same name in csrc/codegen, but checks the arguments first, and divides the work into portions.  A run
   can end between two portions. */
#ifndef RELVM_MICRO_KERNELS_H
#define RELVM_MICRO_KERNELS_H

#include <stdint.h>

enum { RVM_MICRO_KERNEL_ARGUMENTS = 24 }; /* most arguments of a micro-kernel */

/* An argument: the integer `number`, the float `f32`, or the address of element `number` of a buffer of `bytes` bytes
   at `address`. */
typedef struct rvm_micro_argument {
  int64_t number;
  float f32;
  char *address;
  int64_t bytes;
} rvm_micro_argument;

/* The status of a call.  REFUSED: an access would be outside its buffer, or an argument is invalid.  ENDED:
   rvm_micro_watch.spend returned 0.  In both cases, earlier portions may have written to the buffers. */
enum { RVM_MICRO_REFUSED, RVM_MICRO_DONE, RVM_MICRO_ENDED };

/* Work is counted in multiply-adds, or in operations that take as long.  `spend` is called before each portion of about
   RVM_MICRO_PORTION work, with the work of the portion.  It returns 0 to end the call. */
enum { RVM_MICRO_PORTION = 1 << 22 };
typedef struct rvm_micro_watch {
  int (*spend)(void *host, int64_t work);
  void *host;
} rvm_micro_watch;

typedef int (*rvm_micro_run)(const rvm_micro_argument *arguments, const rvm_micro_watch *watch);

typedef struct rvm_micro_kernel {
  rvm_micro_run run;
  const char *arguments; /* one letter per argument: i SIZE or NUMBER, f FLOAT, p READ, P WRITE */
} rvm_micro_kernel;

extern const rvm_micro_kernel rvm_micro_kernels[];
extern const int32_t rvm_micro_kernel_count;

#endif
