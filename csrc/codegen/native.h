/* native.h: the interface between generated C and the runtime.

   A native library does not link against the runtime.  It receives all functions that it needs in one table, which is
   passed to relvm_native_open when the executable is loaded.  The table is not a public interface: native code is
   trusted, so the functions do not check their arguments.  A routine is the C function of a native function of the
   program, and a kernel is a packed function over tensors.  Read native_function.h and packed.h next, which generated C
   includes. */
#ifndef RELVM_NATIVE_H
#define RELVM_NATIVE_H

#include "relvm.h"

#define RVM_BUILTIN_PREFIX "vm.builtin."

enum rvm_builtin {
#define BUILTIN(name, signature, effect, cost, decoded, meaning) RVM_BUILTIN_##name,
#include "builtins.def"
#undef BUILTIN
  RVM_BUILTIN_COUNT
};

/* The first members of every machine, which native code accesses. */
typedef struct rvm_machine_head {
  uint32_t watched_kinds; /* bit mask: 1 << kind for the kinds that the instrument watches, and RVM_WATCH_STEPS */
  int64_t fuel;           /* steps until the next poll (vm/machine.h) */
  int64_t nesting;        /* number of active native functions, and of kernels that rvm_debugger_kernel_step reports */
  int64_t frame_count, frame_limit; /* active bytecode functions; frame_count + nesting <= frame_limit */
  rvm_value *top, *stack_end; /* top and end of the value stack; only arguments of a call being made are above `top` */
  int64_t failed_at;          /* instruction at which a native routine failed, or -1 if it is not known */
  const char *lowest;         /* lowest address of this thread's C stack at which a call may begin */
  const char *stack_start;    /* lowest address of this thread's C stack, which grows down */
  rvm_value error;            /* error of a scalar function that failed (native_function.h) */
  const rvm_value *constants; /* the constant table, argument c of routines */
  const rvm_value *function_values; /* the function table, argument f of routines */
} rvm_machine_head;

/* Returns the stack pointer on x86-64 and AArch64.  On other processors, returns the address of the current stack
   frame. */
static inline const char *rvm_stack_pointer(void) {
#if defined(__x86_64__) || defined(__aarch64__) /* __builtin_frame_address would cost a register */
  const char *here;
#ifdef __x86_64__
  __asm__("mov %%rsp, %0" : "=r"(here));
#else
  __asm__("mov %0, sp" : "=r"(here));
#endif
  return here;
#else
  return (const char *)__builtin_frame_address(0);
#endif
}

/* Returns the number of bytes left on this thread's C stack.  `self` is the machine that the thread runs; if it is
   NULL, the stack counts as unlimited. */
static inline int64_t rvm_stack_left(const void *self) {
  return self ? rvm_stack_pointer() - ((const rvm_machine_head *)self)->stack_start : INT64_MAX;
}

enum { RVM_LONG_CALL_COST = 8192 }; /* fuel for a call of a kernel or a host function */

/* A bit of watched_kinds that is set while the machine has a debugger.  Like any other bit, it makes native code call
   all functions through the function table. */
#define RVM_WATCH_STEPS (1u << 31)

/* Runs the iterations [first, last) of a kernel's loop.  `shared` points to the variables of the kernel that the loop
   uses. */
typedef void (*rvm_part)(const void *shared, int64_t first, int64_t last);

typedef struct rvm_native_api {
  int32_t abi_version; /* RVM_ABI_VERSION */
  rvm_status (*fail)(rvm_value *result, rvm_status status, const char *format, ...);
  /* Calls a function or a closure with borrowed arguments.  *result receives the value or the error. */
  rvm_status (*call)(rvm_machine *machine, rvm_value callee, const rvm_value *arguments, int32_t count,
                     rvm_value *result);
  /* Stores in *truth whether a condition is true, like vm.builtin.read_if_cond. */
  rvm_status (*truth)(rvm_value condition, int32_t *truth, rvm_value *error);
  /* Prepares the tail call with which a routine ends, and returns RVM_TAIL_CALL: `return api->tail_call(...)`.  The
     caller of the routine then releases the routine's registers and runs the callee, whose result is the result of the
     routine.  Tail calls need no stack space.  On failure, replaces *failure by the error and returns its status. */
  rvm_status (*tail_call)(rvm_machine *machine, rvm_value callee, const rvm_value *arguments, int32_t count,
                          rvm_value *failure);
  /* Releases the `count` registers of the window of a routine that returned RVM_TAIL_CALL, and makes the call that
     `tail_call` has prepared. */
  rvm_status (*finish_tail_call)(rvm_machine *machine, rvm_value *window, int32_t count, rvm_value *result);
  /* Adds a line to the trace of an error: instruction number `instruction` of the function `name`, or only the function
     if `instruction` is -1. */
  void (*trace)(rvm_value error, const char *name, int64_t instruction);
  const rvm_packed_function *builtins; /* in the order of builtins.def */
  /* Fails with the error of a row of scalar_operators.def that has no result for these operands. */
  rvm_status (*scalar_op_fail)(int32_t row, rvm_value a, rvm_value b, rvm_value *error);
  void (*release)(rvm_value *value);
  /* Charges 1 unit of fuel.  Polls if the fuel is used up or the run is interrupted, and fails if the run must end. */
  rvm_status (*poll)(rvm_machine *machine, rvm_value *error);
  /* Looks up a builtin or a registered function by its name.  Returns 1, or 0 if there is none. */
  int32_t (*find)(const char *name, rvm_packed_function *function, void **self);
  /* Runs the iterations [0, count) of a loop in parts on the machine's threads, and returns when all have run
     (rvm_workers_run).  Parts have at least `grain` iterations, except the last one. */
  void (*parallel)(rvm_machine *machine, rvm_part part, const void *shared, int64_t count, int64_t grain);
  /* Calls the machine's debugger before an instruction of a routine that was built for debugging (rvm_debugger_step).
     Fails if the debugger ends the run. */
  rvm_status (*step)(rvm_machine *machine, const rvm_value *registers, int32_t function, int32_t instruction,
                     rvm_value *error);
  /* Returns whether the run must end because it was interrupted or is past its deadline.  May be called on any
     thread. */
  int32_t (*is_ending)(rvm_machine *machine);
  /* Calls a kernel that uses elements of some inputs as indices of memory accesses.  `inputs` has the positions of
     these inputs among the arguments, in increasing order.  Inputs that the host could change during the call are
     copied first, so that the kernel uses the elements that it has checked.  `self` is the machine.  If `self` is NULL,
     nothing is copied. */
  rvm_status (*call_with_private)(void *self, rvm_packed_function kernel, const int32_t *inputs, int32_t input_count,
                                  const rvm_value *arguments, int32_t count, rvm_value *result);
} rvm_native_api;

extern const rvm_native_api
    *rvm_api; /* each native library defines its own rvm_api, which its relvm_native_open sets */

/* The value that tail_call returns and the routine must return.  It is not a status code. */
#define RVM_TAIL_CALL (-1)

/* A native library exports each routine and kernel under its symbol.  It also exports `rvm_status
   relvm_native_open(const rvm_native_api *api)`, which returns UNSUPPORTED if abi_version differs.  The argument `self`
   of a kernel is the machine, or NULL.

   The arguments of a routine are its registers r, the constants c and the functions f.  The parameters are in
   r[0..n-1], and all other registers are NIL.  The routine stores its result, or the error if it fails, in r[n]. */
typedef rvm_status (*rvm_routine)(rvm_machine *machine, rvm_value *r, const rvm_value *c, const rvm_value *f);

/* The function that a FUNCTION or CLOSURE value refers to. */
struct rvm_function {
  rvm_machine *machine;
  const char *name;
  rvm_routine routine;     /* NULL if the function is not native */
  int32_t parameter_count; /* -1 if it accepts any number */
  int32_t registers;
  enum rvm_function_kind kind;
  int32_t cost;    /* fuel for a call: RVM_LONG_CALL_COST for kernels and host functions */
  int32_t invokes; /* 1 for vm.builtin.invoke_closure and invoke_pure_closure */
  /* 1 << kind, for rvm_is_watched.  0 if `invokes` is set: instruments observe only the invoked function. */
  uint32_t watch;
  const struct rvm_function_record *record;
  const struct rvm_code *code; /* bytecode */
  rvm_packed_function call;    /* packed functions and kernels */
  void *self; /* argument `self` of `call`: the machine for native kernels, this function for kernel bytecode */
  const struct rvm_kernel_program *program; /* kernel bytecode */
};

#endif
