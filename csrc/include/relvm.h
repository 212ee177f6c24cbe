/* relvm.h: the public interface of the relvm runtime, usable from C alone.
 *
 * Ownership: a function that returns a value gives the caller one reference, to be dropped with rvm_value_release;
 * arguments are borrowed for the call.  Reference counts are not atomic: an object belongs to one machine, and a
 * machine is used by one thread at a time.  Objects of an executable (constants) are immortal while the executable
 * lives.  Failure is a status code; the functions that can fail leave an error value (tag ERROR) in their result slot
 * or in `error`, to be released like any value.
 *
 * NULL.  A pointer may be NULL where
 *   - its function releases it: as with free(), nothing happens;
 *   - it is `error`: only the status is returned;
 *   - it is an array of 0 elements;
 *   - it is `options`: every option is 0;
 *   - the function's comment allows it.
 * Any other NULL is a wrong argument.
 *
 * Wrong arguments.  Every function checks its arguments in constant time, and the elements of an array that it reads anyway.
 * A function that refuses an argument changes nothing.  A function with a status returns
 *   - ARGUMENT_ERROR: a NULL, a negative count or size, an option out of range, a call out of order;
 *   - INDEX_ERROR: an index outside its table;
 *   - TYPE_ERROR: a dtype that is no row of dtypes.def, an object of another kind, or a value whose payload its tag does not
 *     allow (a BOOL other than 0 or 1, an object that is NULL or has another tag);
 *   - SHAPE_ERROR: a negative rank or dimension;
 *   - OUT_OF_MEMORY: a size that no memory has.
 * A function without a status returns -1, NULL or NIL, unless its comment says otherwise.  A void function does nothing.
 *
 * Not checked; the behavior is undefined:
 *   - use of an object, executable, machine or profile after its release.  rvm_value_release leaves NIL, so a second release
 *     of the same rvm_value does nothing; releasing a copy of it is a use after release;
 *   - a pointer to anything but what its type says, callbacks included; a text without a terminating NUL;
 *   - a count, size or rank that exceeds the memory behind it;
 *   - fields of objects that the host overwrites, and the elements of a tensor of dtype str;
 *   - the values inside tuples, lists and closures, and the payload of what a packed function of the host returns;
 *   - an object that two machines or two threads use at once, and a machine that a thread uses while another is inside it,
 *     except through the functions that allow any thread;
 *   - a FUNCTION value or an instrument of a profile that outlives its machine or its profile.
 *
 * The library never prints, aborts or exits, and keeps no global but the table of registered functions and, for each
 * thread, the machines that it is inside of.
 */
#ifndef RELVM_H
#define RELVM_H

#include <stddef.h>

#include "relvm_metadata.h"
#include "relvm_values.h"

#define RVM_ABI_VERSION 10

enum rvm_function_kind {
#define KIND(name, meaning) RVM_KIND_##name,
#include "../tables/kinds.def"
#undef KIND
  RVM_KIND_COUNT
};

#ifdef RVM_SHARED /* building a shared library: it exports what this header declares, and no more */
#pragma GCC visibility push(default)
#endif

/* Everything between the two markers is also what cffi is given: plain declarations only. */
/* [begin cffi] */

struct rvm_shape {
  rvm_object base;
  int32_t rank;
  int32_t memory_class;
  int64_t dims[];
};

struct rvm_tuple {
  rvm_object base;
  int32_t size;
  int32_t memory_class;
  rvm_value items[];
};

struct rvm_list {
  rvm_object base;
  int32_t size;
  int32_t memory_class;
  int64_t capacity; /* of items */
  rvm_value *items; /* its own */
};

struct rvm_closure {
  rvm_object base;
  int32_t captured_count;
  int32_t memory_class;
  rvm_function *function;
  rvm_value captured[];
};

struct rvm_string {
  rvm_object base;
  int64_t length; /* bytes, without the NUL that follows them */
  char bytes[];
};

/* A failure: what, and through which functions it came, innermost first. */
struct rvm_error {
  rvm_object base;
  rvm_status status;
  int32_t frames; /* that it came through; the trace has the first 20 */
  char *message;  /* NUL-terminated, owned */
  char *trace;    /* lines "  in NAME at instruction K" (K: 0-based index), newline between them; or NULL */
};

/* ---- values ---- */
void rvm_value_retain(rvm_value value);
void rvm_value_release(rvm_value *value); /* leaves NIL */
/* Makes *result an ERROR with a message, of which 64 kB are kept, and returns its status.  A `status` that is no failure of status.def becomes
   CALLBACK_ERROR.  `result` and `format` may be NULL. */
rvm_status rvm_fail(rvm_value *result, rvm_status status, const char *format, ...);

rvm_status rvm_tensor_new(int32_t dtype, int32_t rank, const int64_t *dims, rvm_value *result); /* zeroed; empty strings */
/* A tensor over bytes of the host: `data` is 1-byte aligned at least, stays valid until release(release_argument) is
   called.  `release` may be NULL.  TYPE_ERROR: of dtype str there are none. */
rvm_status rvm_tensor_wrap(int32_t dtype, int32_t rank, const int64_t *dims, void *data, void (*release)(void *),
                           void *release_argument, rvm_value *result);
/* A tensor of strings, dtype str.   packed: where each of them ends, an int64 for each, then the bytes of all of them.
   SHAPE_ERROR where the ends are not in order, or the last one is not that of the bytes. */
rvm_status rvm_tensor_of_strings(int32_t rank, const int64_t *dims, const void *packed, int64_t packed_bytes,
                                 rvm_value *result);
/* The bytes that the strings of a tensor of dtype str take in that form; -1: it is no such tensor. */
int64_t rvm_tensor_packed_bytes(const rvm_tensor *tensor);
/* Writes the strings of such a tensor in that form.  ARGUMENT_ERROR: `packed_bytes` is not rvm_tensor_packed_bytes. */
rvm_status rvm_tensor_pack(const rvm_tensor *tensor, void *packed, int64_t packed_bytes, rvm_value *error);
/* Changes the dtype of a tensor in place.  TYPE_ERROR: elements of the two dtypes differ in size, or one dtype is str.
   ARGUMENT_ERROR: there are other references to the tensor. */
rvm_status rvm_tensor_relabel(rvm_value *tensor, int32_t dtype, rvm_value *error);
int64_t rvm_tensor_size_bytes(const rvm_tensor *tensor); /* of its elements; -1: it is no tensor */
rvm_status rvm_shape_new(int32_t rank, const int64_t *dims, rvm_value *result); /* dims NULL: zeros, to be filled in */
rvm_status rvm_tuple_new(int32_t size, const rvm_value *items, rvm_value *result); /* retains the items */
rvm_status rvm_list_new(int32_t size, const rvm_value *items, rvm_value *result);  /* the same */
rvm_status rvm_string_new(const char *bytes, int64_t length, rvm_value *result);

/* The rows of cpu_features.def that this processor has and its system lets programs use: bit i is row i. */
uint64_t rvm_cpu_features(void);

/* CRC-32C of bytes that follow those whose checksum is `crc` (0 at the start).  NULL, and a negative size, are no bytes. */
uint32_t rvm_crc32c(uint32_t crc, const void *bytes, int64_t size_bytes);

/* ---- functions of the host ---- */
/* Registers `function` under `name` for all executables loaded from now on; BUSY when the name is taken and not
   `replace`.  `self`, which it is called with, may be NULL. */
rvm_status rvm_register(const char *name, rvm_packed_function function, void *self, int32_t replace, rvm_value *error);
rvm_status rvm_unregister(const char *name, rvm_value *error);
int32_t rvm_is_registered(const char *name); /* 1 for a builtin or registered function, else 0 */

/* ---- executables ---- */
#define RVM_CHECKED_DATA_BYTES 1000000
/* Tensors have at most so many axes. */
#define RVM_MAX_RANK 64
/* Names of functions, of their parameters and of their symbols have at most so many bytes. */
#define RVM_MAX_NAME_BYTES 1000
typedef struct rvm_load_options {
  int32_t trust_native; /* 0: refuse an executable that has a native section */
  int32_t elsewhere;    /* 1: native code may be for another processor, architecture, abi version or system: machines refuse it, not the load */
  int32_t check_data;   /* 0: of more than RVM_CHECKED_DATA_BYTES of tensors' elements, or of a portable program, which are then not
                           even read, the checksum is not looked at */
  int32_t check_only;   /* 1: everything is verified but the library in a native section, which is not opened and need not be
                           trusted; no machine can be made of it */
  /* The registered functions that it may call, besides builtins, by their names; one that ends with * stands for all that
     begin so.  An executable with native code, which is trusted, may call any. */
  const char *const *functions;
  int32_t function_count;
  /* The most that it may have; 0: as much as the format allows. */
  int64_t max_bytes; /* of its file */
  int32_t max_functions, max_constants, max_code_words;
  /* Called once with release_argument when the executable, if it is loaded at all, no longer uses its bytes.  May be
     NULL. */
  void (*release)(void *);
  void *release_argument;
} rvm_load_options;

/* `bytes` must be 64-byte aligned and stay valid and unchanged while the executable exists: constants are used in place.
   Everything but the elements of tensors, which may be anything, is verified before this returns. */
rvm_status rvm_executable_load(const void *bytes, int64_t size_bytes, const rvm_load_options *options,
                               rvm_executable **executable, rvm_value *error);
/* Ends the caller's use of it, on any thread.  The executable goes when the machines that run it have gone, too. */
void rvm_executable_release(rvm_executable *executable);
/* UNSUPPORTED, saying what is missing: its native code is for another processor, architecture, abi version or system. */
rvm_status rvm_executable_check_native(const rvm_executable *executable, rvm_value *error);
int32_t rvm_executable_function_count(const rvm_executable *executable);
const char *rvm_executable_function_name(const rvm_executable *executable, int32_t index);
int32_t rvm_executable_function_kind(const rvm_executable *executable, int32_t index);      /* enum rvm_function_kind */
int32_t rvm_executable_function_parameters(const rvm_executable *executable, int32_t index); /* -1: any number; -2: no such function */
int32_t rvm_executable_find(const rvm_executable *executable, const char *name); /* index; -1: none, or private */

/* ---- machines ---- */
enum { RVM_MAX_THREADS = 256 };

typedef struct rvm_machine_options {
  int64_t stack_values; /* size of the value stack; 0: 1 << 20 */
  int64_t call_depth;   /* most calls inside each other; 0: 200,000; those of native code need C stack, too */
  int32_t threads;      /* at most so many work on a kernel at once, the caller's among them; 0: 1, at most RVM_MAX_THREADS */
  /* What one run may use, from the host's call until that returns; 0: as much as it wants. */
  int64_t max_bytes;       /* that it allocates more than it frees, the value stack aside: OUT_OF_MEMORY */
  int64_t max_steps;       /* calls and backward jumps: TIMEOUT.  64 words of code that one leads over are 1 more, a kernel or a
                              function of the host is 8,192, 64 bytes that are allocated are 1, and builtins count their work */
  int64_t max_nanoseconds; /* a kernel that has begun ends: TIMEOUT */
  /* Called now and then during a run, a millisecond or more apart: the machine looks at the time after about 65,536
     steps as max_steps counts them.  A status other
     than OK ends the run with it.  May be NULL. */
  rvm_status (*poll)(void *host, rvm_value *error);
  /* What vm.builtin.print does with its arguments.  NULL: nothing. */
  rvm_status (*print)(void *host, const rvm_value *arguments, int32_t count, rvm_value *error);
  void *host;
} rvm_machine_options;

/* Resolves every packed function by name: UNKNOWN_FUNCTION names it and its near matches. */
rvm_status rvm_machine_new(rvm_executable *executable, const rvm_machine_options *options, rvm_machine **machine,
                           rvm_value *error);
/* Returns BUSY and keeps the machine while a run is under way or another thread is inside it. */
rvm_status rvm_machine_release(rvm_machine *machine);
/* From any thread: the machine's bytecode functions are to run as the native ones that `compiled` has for them, from the
   next call that the machine starts, or when it polls; what is being run goes on as it is.  ARGUMENT_ERROR where
   `compiled` has another function table, BUSY where the machine has got native code this way already. */
rvm_status rvm_machine_upgrade(rvm_machine *machine, rvm_executable *compiled, rvm_value *error);
/* How function `index` is run now: enum rvm_function_kind; -1: there is none. */
int32_t rvm_machine_function_kind(const rvm_machine *machine, int32_t index);
/* Calls function `index` of the table; on failure the stack is restored and the machine runs again. */
rvm_status rvm_machine_call(rvm_machine *machine, int32_t index, const rvm_value *arguments, int32_t count,
                            rvm_value *result);
/* Calls a FUNCTION or CLOSURE value of this machine; for use by packed functions too. */
rvm_status rvm_machine_invoke(rvm_machine *machine, rvm_value callee, const rvm_value *arguments, int32_t count,
                              rvm_value *result);
/* For a host that makes objects of its own of a result, or of arguments: whether they may have `size_bytes` within the machine's
   max_bytes, beside what the present or the last run has not freed, and whether the run has time left; one that ended has, once
   the host enters the machine anew.  OUT_OF_MEMORY, TIMEOUT. */
rvm_status rvm_machine_afford(const rvm_machine *machine, int64_t size_bytes, rvm_value *error);
/* Where the machine's random numbers begin: two of the same seed give the same ones.  A new machine's are like no other's. */
void rvm_machine_seed(rvm_machine *machine, uint64_t seed);
/* From any thread or signal handler: the present run ends with INTERRUPTED; nothing when the machine is idle. */
void rvm_machine_interrupt(rvm_machine *machine);
/* Drops a reference to an object of this machine: at once, or when another thread is inside the machine, as soon as that
   leaves it.  For hosts whose garbage collector may run on another thread. */
void rvm_machine_drop(rvm_machine *machine, rvm_value value);
/* Makes this thread the one that is inside the machine, until it has left it as often: for what a host does with values
   between calls, as counts of references are not atomic.  1; or 0 when another thread is running the machine; or -1 when
   another thread is inside it for a moment only: try again.  Never waits.  NULL: 0. */
int32_t rvm_machine_enter(rvm_machine *machine);
/* Undoes one rvm_machine_enter of this thread.  ARGUMENT_ERROR: there is none left to undo. */
rvm_status rvm_machine_leave(rvm_machine *machine, rvm_value *error);
/* Function `index` of the table as a FUNCTION value, which is valid while the machine lives; NIL where there is none. */
rvm_value rvm_machine_function(const rvm_machine *machine, int32_t index);
/* A function of the host as a CLOSURE of this machine, which counts as one with effects.  `name`, for messages, is copied.
   `release`, which may be NULL, is called once with `self` when the last reference to the closure goes, but not when this
   fails. */
rvm_status rvm_machine_function_new(rvm_machine *machine, const char *name, rvm_packed_function call, void *self,
                                    void (*release)(void *self), rvm_value *result);

/* ---- instruments ---- */
/* What is told of every call that a machine makes of the functions of given kinds, however it makes it.  `function` is
   an index into the function table.  A call through vm.builtin.invoke_closure is seen as the call of the function that
   it invokes, captured values included.  Calls made by the instrument itself are not seen. */
typedef struct rvm_instrument {
  uint32_t kinds; /* 1 << kind for each of enum rvm_function_kind; other bits mean nothing */
  /* Before a call.  It may set *skip to 1: the call is not made, its result is NIL, and there is no `after`; where it was
     the check of a parameter that is something else, the run ends with TYPE_ERROR.  A status other than OK ends the run
     with it.  May be NULL. */
  rvm_status (*before)(void *host, int32_t function, const rvm_value *arguments, int32_t count, int32_t *skip,
                       rvm_value *error);
  /* After it, with the call's status, and its result or error: borrowed.  A status other than OK ends the run with it,
     unless the call failed already.  May be NULL. */
  rvm_status (*after)(void *host, int32_t function, const rvm_value *arguments, int32_t count, rvm_status status,
                      const rvm_value *result, rvm_value *error);
  void *host;
} rvm_instrument;

/* Gives the machine an instrument, which is copied, in place of the one that it has; NULL: none.  BUSY when the machine
   is running. */
rvm_status rvm_machine_instrument(rvm_machine *machine, const rvm_instrument *instrument, rvm_value *error);

/* ---- profiles ---- */
typedef struct rvm_profile rvm_profile;

/* What a profile has measured of one function. */
typedef struct rvm_profile_row {
  int64_t count;       /* calls */
  int64_t nanoseconds; /* in them, without the time of measured calls that they made */
  int64_t bytes;       /* of the tensors among arguments and results; of builtins, which work on values: 0 */
  double operations;   /* in all calls; NaN: not known, as without rvm_profile_count */
} rvm_profile_row;

/* A profile of kernels, packed functions and builtins, all zeros.  To be released after the machines that have it. */
rvm_status rvm_profile_new(const rvm_executable *executable, rvm_profile **profile, rvm_value *error);
/* The instrument that fills it, for one machine of its executable at a time; of NULL one that sees nothing. */
rvm_instrument rvm_profile_instrument(rvm_profile *profile);
/* Has it count the operations of a function, and the elements that a call reads of its first arguments, where these are
   not all: `code` is a sum for the operations, then one for each argument as long as there are some.  A sum is the number of
   its terms, -1 where it is not known (of an argument: all elements), and its terms; a term a coefficient, a number of
   factors and for each factor the number of an argument and of an axis of it, whose size it is.  The code is copied.  A sum
   that is malformed or cut off is not known. */
rvm_status rvm_profile_count(rvm_profile *profile, int32_t function, const int64_t *code, int32_t length, rvm_value *error);
rvm_profile_row rvm_profile_read(const rvm_profile *profile, int32_t function); /* of no function: zeros and NaN */
void rvm_profile_release(rvm_profile *profile);

/* ---- debuggers ---- */
/* What is told of a run between its instructions: of functions that are bytecode, or native code built for debugging. */
typedef struct rvm_debugger {
  /* Before an instruction at which the run is to stop, `failure` being NULL; and after one that failed, with its error,
     before any register is released, unless it is this that ended the run.  Meanwhile nothing tells the debugger of calls that it makes itself.  A status other
     than OK ends the run with it. */
  rvm_status (*stop)(void *host, const rvm_value *failure, rvm_value *error);
  void *host;
} rvm_debugger;

/* A function that is being run. */
typedef struct rvm_place {
  int32_t function;    /* an index into the function table; -1: one that tells nothing */
  int32_t instruction; /* that it comes to next, from 0; of one that called another: its call */
  int32_t count;       /* of its registers */
  const rvm_value *registers;
} rvm_place;

/* Gives the machine a debugger, which is copied, in place of the one that it has, with its breakpoints; NULL: none.  BUSY
   when the machine is running.  ARGUMENT_ERROR: `stop` is NULL. */
rvm_status rvm_machine_debug(rvm_machine *machine, const rvm_debugger *debugger, rvm_value *error);
/* Whether a run stops before this instruction.  Of native code it is that of the bytecode that it would be.
   INDEX_ERROR: there is none; ARGUMENT_ERROR: the machine has no debugger. */
rvm_status rvm_machine_break(rvm_machine *machine, int32_t function, int32_t instruction, int32_t stops, rvm_value *error);
/* Has a run stop before every instruction of the first `depth` functions inside each other, too; 0: of none.  From any
   thread.  A negative depth is 0. */
void rvm_machine_stop_within(rvm_machine *machine, int64_t depth);
/* While the debugger is told: how many functions are inside each other, and each of them, the outermost being 0 (`function`
   -1: there is none). */
int64_t rvm_machine_depth(const rvm_machine *machine);
rvm_place rvm_machine_place(const rvm_machine *machine, int64_t index);

/* ---- libraries made ahead of time ---- */
struct rvm_native_api;

/* What such a library exports, as the symbol relvm_aot_library. */
typedef struct rvm_aot_library {
  int32_t abi_version; /* RVM_ABI_VERSION */
  const char *cpu;     /* what it is compiled for, as native sections have it; NULL: not said */
  /* Has the model call this runtime, and in place of a kernel K of a model M what is registered as "M.K", if anything. */
  void (*open)(const struct rvm_native_api *api);
  /* A run, once it is open.  Arguments: the tensors of the inputs, of the outputs, and of the pools, which no other run may
     use meanwhile. */
  rvm_packed_function run;
  const rvm_metadata *metadata;
} rvm_aot_library;

/* Connects it with this runtime: to be called before its `run`.  UNSUPPORTED: it was made for another one, or for another
   processor. */
rvm_status rvm_aot_open(const rvm_aot_library *library, rvm_value *error);

/* [end cffi] */

/* Of an exported library only: loads the executable that is inside it, native code included. */
rvm_status relvm_module_load(rvm_executable **executable, rvm_value *error);

#ifdef RVM_SHARED
#pragma GCC visibility pop
#endif

#endif
