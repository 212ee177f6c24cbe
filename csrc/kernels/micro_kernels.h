/* micro_kernels.h: what kernel bytecode calls: the functions of micro_kernels.def, which check their arguments. */
#ifndef RVM_MICRO_KERNELS_H
#define RVM_MICRO_KERNELS_H

#include <stdint.h>

enum { RVM_MICRO_KERNEL_ARGUMENTS = 24 }; /* at most */

/* An argument: a number, or a place in a buffer and how many bytes there are from there on. */
typedef struct rvm_micro_argument {
  int64_t number;
  float f32;
  char *at;
  int64_t bytes;
} rvm_micro_argument;

/* The outcome of a call.  REFUSED: it would leave a buffer, or a number is outside of what the function takes. */
enum { RVM_MICRO_REFUSED, RVM_MICRO_DONE, RVM_MICRO_ENDED };

/* Who is told of work, in multiply-adds or what takes as long, before a call does it.  A call is cut into portions of
   about RVM_MICRO_PORTION.  spend: 0 where the call is to end, which then gives ENDED. */
enum { RVM_MICRO_PORTION = 1 << 22 };
typedef struct rvm_micro_watch {
  int (*spend)(void *host, int64_t work);
  void *host;
} rvm_micro_watch;

typedef int (*rvm_micro_run)(const rvm_micro_argument *arguments, const rvm_micro_watch *watch);

typedef struct rvm_micro_kernel {
  rvm_micro_run run;
  const char *arguments; /* the column of the table */
} rvm_micro_kernel;

extern const rvm_micro_kernel rvm_micro_kernels[];
extern const int32_t rvm_micro_kernel_count;

#endif
