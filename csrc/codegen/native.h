/* native.h: what generated C includes.  The shared library is loaded with no symbols of the runtime in reach; everything it
 * needs comes through one table of functions, handed to relvm_native_open when the executable is loaded.  The table is no public
 * interface: native code is trusted, and what it passes is not checked as relvm.h says. */
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

/* How every machine begins: what native code reads of one. */
typedef struct rvm_machine_head {
  uint32_t watched_kinds; /* of the machine's instrument, see rvm_instrument, and RVM_WATCH_STEPS; 0: it has none */
  int64_t fuel;           /* costs until the next poll */
  int64_t nesting;        /* native functions being run */
  int64_t frame_count, frame_limit; /* of bytecode; together with `nesting` they are at most frame_limit */
  rvm_value *top, *stack_end;       /* of the value stack: what comes next is not in use, and no object */
  int64_t failed_at;                /* the instruction at which a routine that is built for debugging failed; -1: none */
  const char *lowest;               /* of the C stack of the thread that is inside: what is below may not be used */
  const char *stack_start;          /* the first byte of that stack, which grows down to it */
  rvm_value error;                  /* of a scalar function that failed */
  const rvm_value *constants;       /* c and f of its routines: the constants and the function table */
  const rvm_value *function_values;
} rvm_machine_head;

static inline const char *rvm_stack_pointer(void) {
#if defined(__x86_64__) || defined(__aarch64__) /* a frame pointer would cost a register */
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

/* The bytes of this thread's C stack that are left.   self: of a kernel, the machine that the thread is inside of, or NULL. */
static inline int64_t rvm_stack_left(const void *self) {
  return self ? rvm_stack_pointer() - ((const rvm_machine_head *)self)->stack_start : INT64_MAX;
}

enum { RVM_LONG_CALL_COST = 8192 }; /* of kernels and functions of the host */

/* Among the watched kinds while the machine has a debugger, so that all calls go by way of the function table. */
#define RVM_WATCH_STEPS (1u << 31)

/* Does the share [first, last) of a kernel's loop; `shared` is what the loop uses of the kernel's. */
typedef void (*rvm_part)(const void *shared, int64_t first, int64_t last);

typedef struct rvm_native_api {
  int32_t abi_version; /* RVM_ABI_VERSION */
  rvm_status (*fail)(rvm_value *result, rvm_status status, const char *format, ...);
  /* Calls a FUNCTION value; `result` receives the value, or the error. */
  rvm_status (*call)(rvm_machine *machine, rvm_value callee, const rvm_value *arguments, int32_t count, rvm_value *result);
  /* The truth of a condition, as vm.builtin.read_if_cond has it. */
  rvm_status (*truth)(rvm_value condition, int32_t *truth, rvm_value *error);
  /* Makes the call that the routine ends with: `return api->tail_call(...)`.  The routine's registers are released, then
     the callee runs and its result is the routine's; any number of such calls takes no more room than one. */
  rvm_status (*tail_call)(rvm_machine *machine, rvm_value callee, const rvm_value *arguments, int32_t count,
                          rvm_value *failure);
  /* What `tail_call` has laid out above a window, is called once the `count` registers of that are released. */
  rvm_status (*finish_tail_call)(rvm_machine *machine, rvm_value *window, int32_t count, rvm_value *result);
  /* Adds a line to an error's trace; `instruction`: of the function `name`, or -1. */
  void (*trace)(rvm_value error, const char *name, int64_t instruction);
  const rvm_packed_function *builtins; /* in the order of builtins.def */
  /* Says why scalar_ops.h has no value for these operands of a row of scalar_operators.def. */
  rvm_status (*scalar_op_fail)(int32_t row, rvm_value a, rvm_value b, rvm_value *error);
  void (*release)(rvm_value *value);
  /* Polls for interruption, where the fuel is used up; see rvm_machine_options.poll. */
  rvm_status (*poll)(rvm_machine *machine, rvm_value *error);
  /* A builtin or a registered function by its name: 1, or 0 where there is none. */
  int32_t (*find)(const char *name, rvm_packed_function *function, void **self);
  /* Shares a loop of [0, count) among the machine's threads, in parts of `grain` at least but the last. */
  void (*parallel)(rvm_machine *machine, rvm_part part, const void *shared, int64_t count, int64_t grain);
  /* Tells the machine's debugger that a routine which was built for debugging comes to an instruction. */
  rvm_status (*step)(rvm_machine *machine, const rvm_value *registers, int32_t function, int32_t instruction,
                     rvm_value *error);
  /* Whether the run is to end, by an interrupt or a deadline: what other threads than the machine's ask. */
  int32_t (*is_ending)(rvm_machine *machine);
  /* Calls a kernel whose inputs `inputs` (their numbers, in increasing order) bound memory accesses.  Those of them that the host
     could change during the call are copied first, so that the kernel uses the same elements that it has checked. */
  rvm_status (*call_with_private)(void *self, rvm_packed_function kernel, const int32_t *inputs, int32_t input_count,
                                  const rvm_value *arguments, int32_t count, rvm_value *result);
} rvm_native_api;

extern const rvm_native_api *rvm_api; /* of the library: set by its relvm_native_open */

/* What tail_call returns, for the routine to return; no status code. */
#define RVM_TAIL_CALL (-1)

/* What the library exports: `rvm_status relvm_native_open(const rvm_native_api *api)`, UNSUPPORTED on another abi_version;
   each routine and each kernel under its symbol.  A kernel's `self` is the machine, or NULL.
   A routine: registers r (its window, parameters in r[0..n-1], all others NIL), constants c, functions f.  It leaves its
   result in r[n]; on failure the error is in r[n]. */
typedef rvm_status (*rvm_routine)(rvm_machine *machine, rvm_value *r, const rvm_value *c, const rvm_value *f);

/* What FUNCTION values are, and closures of. */
struct rvm_function {
  rvm_machine *machine;
  const char *name;
  rvm_routine routine;     /* NULL: it is not native */
  int32_t parameter_count; /* -1: any number */
  int32_t registers;
  enum rvm_function_kind kind;
  int32_t cost;    /* towards the next poll: more for what may run long */
  int32_t invokes; /* vm.builtin.invoke_closure or invoke_pure_closure */
  uint32_t watch;  /* 1 << kind, for rvm_is_watched; 0 where it invokes: what is seen is the function that it calls */
  const struct rvm_function_record *record;
  const struct rvm_code *code; /* bytecode */
  rvm_packed_function call;    /* packed, kernel */
  void *self;                  /* of a kernel: the machine; as bytecode: this function */
  const struct rvm_kernel_program *program; /* of a kernel as bytecode */
};

#endif
