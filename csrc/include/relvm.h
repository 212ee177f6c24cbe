/* relvm.h: the public C interface of the relvm runtime.
 *
 * Terms.  The host is the program that embeds the runtime.  A thread is inside a machine while it calls a function of
 * the machine, and between rvm_machine_enter and rvm_machine_leave.
 *
 * Ownership.  A function that returns a value transfers one reference to the caller.  Release it with
 * rvm_value_release.  Arguments are borrowed during the call.  Reference counts are not atomic: an object belongs to
 * one machine, and only one thread may use a machine at a time.  Constants of an executable live as long as the
 * executable.
 *
 * Errors.  A function that can fail returns a status code.  It stores an error value (tag ERROR) in its result or in
 * `error`.  Release the error value like any other value.
 *
 * NULL.  A pointer may be NULL in these cases; any other NULL is an invalid argument:
 *   - the function releases the pointer: it then does nothing, like free();
 *   - the pointer is `error`: the function then returns only the status;
 *   - the pointer is an array of 0 elements;
 *   - the pointer is `options`: every option is then 0;
 *   - the comment of the function allows NULL.
 *
 * Invalid arguments.  Every function checks its arguments in constant time.  It also checks the array elements that it
 * reads.  A function that rejects an argument has no other effect.  A function with a status returns
 *   - ARGUMENT_ERROR for a NULL, a negative count or size, an option out of range, or a call in the wrong order;
 *   - INDEX_ERROR for an index outside its table;
 *   - TYPE_ERROR for a dtype that is not in dtypes.def, an object of the wrong kind, or a value whose payload does not
 *     match its tag (a BOOL other than 0 or 1, an object that is NULL or has another tag);
 *   - SHAPE_ERROR for a negative rank or dimension;
 *   - OUT_OF_MEMORY for a size that exceeds any memory.
 * A function without a status returns -1, NULL or NIL, unless its comment says otherwise.  A void function does
 * nothing.
 *
 * Undefined behavior.  The runtime does not check for
 *   - use of an object, executable, machine or profile after its release.  rvm_value_release stores NIL, so releasing
 *     the same rvm_value twice is allowed.  Releasing a copy of a released rvm_value is a use after release;
 *   - pointers, including callbacks, to objects of the wrong type, and strings without a terminating NUL;
 *   - counts, sizes or ranks that exceed the memory of the argument;
 *   - objects whose fields the host has overwritten, and invalid elements of a tensor of dtype str;
 *   - invalid values inside tuples, lists and closures, and invalid payloads in results of the host's packed functions;
 *   - use of an object by two machines or threads at the same time, and use of a machine while another thread is inside
 *     it, except by functions that any thread may call;
 *   - a FUNCTION value that outlives its machine, or a profile's instrument that outlives the profile.
 *
 * The library never prints, aborts or exits.  Its only global state that a host can observe is the table of registered
 * functions, and for each thread the machines that the thread is inside.
 */
#ifndef RELVM_H
#define RELVM_H

#include <stddef.h>

#include "relvm_metadata.h"
#include "relvm_values.h"

#define RVM_ABI_VERSION 11

enum rvm_function_kind {
#define KIND(name, meaning) RVM_KIND_##name,
#include "../tables/kinds.def"
#undef KIND
  RVM_KIND_COUNT
};

/* RVM_SHARED is defined while building a shared library, which exports exactly the functions of this header. */
#ifdef RVM_SHARED
#pragma GCC visibility push(default)
#endif

/* cffi parses the text between the two markers, which must contain plain declarations only. */
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
  int64_t capacity; /* number of items that the array can hold */
  rvm_value *items; /* array owned by the list */
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
  int64_t length; /* number of bytes, without the terminating NUL */
  char bytes[];
};

/* An error: its message and its stack trace, innermost function first. */
struct rvm_error {
  rvm_object base;
  rvm_status status;
  int32_t frames; /* number of functions that the error passed through; the trace has the first 20 */
  char *message;  /* NUL-terminated, owned */
  char *trace;    /* lines "  in NAME at instruction K" (0-based), separated by newlines; or NULL */
};

/* ---- values ---- */
void rvm_value_retain(rvm_value value);
void rvm_value_release(rvm_value *value); /* stores NIL in *value */
/* Stores an ERROR with a formatted message in *result and returns its status.  Messages are truncated to 64 kB.  A
   `status` that is not an error of status.def becomes CALLBACK_ERROR.  `result` and `format` may be NULL. */
rvm_status rvm_fail(rvm_value *result, rvm_status status, const char *format, ...);

/* Creates a tensor of zeros or empty strings. */
rvm_status rvm_tensor_new(int32_t dtype, int32_t rank, const int64_t *dims, rvm_value *result);
/* Creates a tensor over memory of the host.  `data` must be aligned to the size of an element, and must stay valid
   until release(release_argument) is called.  `release` may be NULL.  Fails with TYPE_ERROR if the dtype is str. */
rvm_status rvm_tensor_wrap(int32_t dtype, int32_t rank, const int64_t *dims, void *data, void (*release)(void *),
                           void *release_argument, rvm_value *result);
/* Declares that programs must not update the elements of a tensor, for example because it wraps read-only memory.  A
   call that would update them then fails.  Fails with TYPE_ERROR if the value is not a tensor. */
rvm_status rvm_tensor_set_read_only(rvm_value tensor, rvm_value *error);
/* Creates a tensor of dtype str from packed strings: an int64 end offset for each string, followed by the bytes of all
   strings.  Fails with SHAPE_ERROR if the offsets are not sorted, or the last one is not the number of bytes. */
rvm_status rvm_tensor_of_strings(int32_t rank, const int64_t *dims, const void *packed, int64_t packed_bytes,
                                 rvm_value *result);
/* Returns the size of the packed strings of a tensor, or -1 if the tensor's dtype is not str. */
int64_t rvm_tensor_packed_bytes(const rvm_tensor *tensor);
/* Writes the packed strings of a tensor of dtype str.  Fails with ARGUMENT_ERROR if `packed_bytes` is not
   rvm_tensor_packed_bytes(tensor). */
rvm_status rvm_tensor_pack(const rvm_tensor *tensor, void *packed, int64_t packed_bytes, rvm_value *error);
/* Changes the dtype of a tensor in place.  The bits of the elements stay the same.  Fails with TYPE_ERROR if the two
   dtypes differ in element size, or only one of them is str, and with ARGUMENT_ERROR if the tensor is a constant or has
   other references. */
rvm_status rvm_tensor_relabel(rvm_value *tensor, int32_t dtype, rvm_value *error);
/* Returns the total size of the elements in bytes, or -1 if the object is not a tensor. */
int64_t rvm_tensor_size_bytes(const rvm_tensor *tensor);
/* Creates a shape.  If `dims` is NULL, the dimensions are 0. */
rvm_status rvm_shape_new(int32_t rank, const int64_t *dims, rvm_value *result);
/* Create a tuple or a list, which retains the items.  If an item is a tensor of bool, or of a dtype of less than 8
   bits, whose elements the host could change, the tuple or list has a copy of it instead. */
rvm_status rvm_tuple_new(int32_t size, const rvm_value *items, rvm_value *result);
rvm_status rvm_list_new(int32_t size, const rvm_value *items, rvm_value *result);
rvm_status rvm_string_new(const char *bytes, int64_t length, rvm_value *result);

/* Returns the features that the processor and the operating system support.  Bit i is row i of cpu_features.def. */
uint64_t rvm_cpu_features(void);

/* Continues a CRC-32C checksum: `crc` is the checksum of the preceding bytes, or 0 at the start.  If `bytes` is NULL or
   the size is negative, the result is `crc`. */
uint32_t rvm_crc32c(uint32_t crc, const void *bytes, int64_t size_bytes);

/* ---- host functions ---- */
/* Registers `function` under `name`, for machines that are created later and for all calls of vm.builtin.call_py_func.
   `self` is passed to every call and may be NULL.  Fails with BUSY if the name is already registered and `replace` is
   0, or if the name begins with "vm.builtin.". */
rvm_status rvm_register(const char *name, rvm_packed_function function, void *self, int32_t replace, rvm_value *error);
/* Removes a registered function.  Machines that were created before still call it.  Fails with UNKNOWN_FUNCTION if the
   name is not registered. */
rvm_status rvm_unregister(const char *name, rvm_value *error);
/* Returns 1 for the name of a builtin or registered function, otherwise 0. */
int32_t rvm_is_registered(const char *name);

/* ---- executables ---- */
#define RVM_CHECKED_DATA_BYTES 1000000
/* Maximum number of axes of a tensor. */
#define RVM_MAX_RANK 64
/* Maximum length of the names of functions, parameters and symbols. */
#define RVM_MAX_NAME_BYTES 1000
typedef struct rvm_load_options {
  int32_t trust_native; /* 0: reject an executable with a native section */
  /* 1: accept native code for another processor, architecture, ABI version or system, although creating a machine of
     such an executable fails. */
  int32_t elsewhere;
  /* 0: skip the checksum of the section of tensor elements, and of a portable program, if the section is larger than
     RVM_CHECKED_DATA_BYTES. */
  int32_t check_data;
  /* 1: verify everything except the library in a native section, which is not opened and need not be trusted; no
     machine can run the executable. */
  int32_t check_only;
  /* 1: load only the portable program in the file.  The executable then has no native code.  Fails with UNSUPPORTED if
     the file has no portable program. */
  int32_t portable;
  /* Names of the registered functions that the executable may call, in addition to builtins.  A name that ends with *
     allows all functions with that prefix.  An executable with trusted native code may call any function. */
  const char *const *functions;
  int32_t function_count;
  /* Limits; 0 selects the limits of the format. */
  int64_t max_bytes; /* size of the file */
  int32_t max_functions, max_constants, max_code_words;
  /* Called once with release_argument when a successfully loaded executable no longer uses its bytes.  May be NULL. */
  void (*release)(void *);
  void *release_argument;
} rvm_load_options;

/* Maps a file into memory for reading.  On Windows, `path` is UTF-8 or, if it is not valid UTF-8, in the code page of
   the process.  Fails with ARGUMENT_ERROR if the file cannot be opened, is empty, or cannot be mapped.  No other
   program may shorten the file while it is mapped. */
rvm_status rvm_file_map(const char *path, const void **bytes, int64_t *size_bytes, rvm_value *error);
/* Unmaps a file.  `bytes` may be NULL. */
void rvm_file_unmap(const void *bytes, int64_t size_bytes);

/* Loads and verifies an executable.  `bytes` must be 64-byte aligned, and must stay valid and unchanged while the
   executable exists, because constants are used in place.  Strings, and the elements of bool and of dtypes of less than
   8 bits, are verified.  Other elements are not, because every value is valid. */
rvm_status rvm_executable_load(const void *bytes, int64_t size_bytes, const rvm_load_options *options,
                               rvm_executable **executable, rvm_value *error);
/* Releases the caller's reference, on any thread.  The executable is freed when no machine uses it any more. */
void rvm_executable_release(rvm_executable *executable);
/* Checks whether this computer can run the native code.  Fails with UNSUPPORTED if the code is for another processor,
   architecture, ABI version or system; the message names the missing requirement. */
rvm_status rvm_executable_check_native(const rvm_executable *executable, rvm_value *error);
/* Writes the SHA-256 digest of the function table, bytecode, kernels and constants (32 bytes).  Of the elements of
   tensors, only the size and the checksum are included.  Native code that can replace the bytecode in a machine states
   this digest (rvm_machine_upgrade). */
rvm_status rvm_executable_digest(const rvm_executable *executable, unsigned char *digest, rvm_value *error);
int32_t rvm_executable_function_count(const rvm_executable *executable);
const char *rvm_executable_function_name(const rvm_executable *executable, int32_t index);
/* Returns the kind of a function (enum rvm_function_kind). */
int32_t rvm_executable_function_kind(const rvm_executable *executable, int32_t index);
/* Returns the number of parameters of a function, -1 if it accepts any number, or -2 if the function does not exist. */
int32_t rvm_executable_function_parameters(const rvm_executable *executable, int32_t index);
/* Returns the index of the function that the program defines under `name`, or else of the packed function `name`.
   Returns -1 if there is neither, or only a private function. */
int32_t rvm_executable_find(const rvm_executable *executable, const char *name);

/* ---- machines ---- */
enum { RVM_MAX_THREADS = 256 };

typedef struct rvm_machine_options {
  /* Size of the value stack in values; 0 means 1 << 20. */
  int64_t stack_values;
  /* Maximum depth of nested calls; 0 means 200,000.  Calls of native code also need C stack. */
  int64_t call_depth;
  /* Maximum number of threads of a kernel, including the caller's, at most RVM_MAX_THREADS; 0 means 1. */
  int32_t threads;
  /* Limits of one run, from the host's call until it returns; 0 means no limit.  A run that exceeds a limit fails with
     the status in parentheses. */

  /* Bytes allocated and not yet freed, without the value stack (OUT_OF_MEMORY). */
  int64_t max_bytes;
  /* Steps (TIMEOUT).  A call of a function of the program, or a backward jump, counts 1, and 1 more for each 64 words
     of the function or loop.  A call of a kernel or a host function counts 8,192, and kernel bytecode counts its work,
     too.  Builtins count their work, and 64 allocated bytes count 1. */
  int64_t max_steps;
  /* Run time (TIMEOUT).  A started native kernel runs to its end. */
  int64_t max_nanoseconds;
  /* Called regularly during a run, at most once a millisecond.  The machine checks the time after about 65,536 steps,
     counted as for max_steps.  A status other than OK ends the run with that status.  May be NULL. */
  rvm_status (*poll)(void *host, rvm_value *error);
  /* Implements vm.builtin.print.  If NULL, the builtin does nothing. */
  rvm_status (*print)(void *host, const rvm_value *arguments, int32_t count, rvm_value *error);
  void *host;
  /* The features of the processor that kernel bytecode may use: features of cpu_features.def and, on x86-64, a level,
     such as "x86-64-v3 avxvnni".  NULL: all.  Native code is not affected. */
  const char *cpu;
} rvm_machine_options;

/* Creates a machine and resolves every packed function by name.  Fails with UNKNOWN_FUNCTION if a function is not
   registered; the message names it and similar names. */
rvm_status rvm_machine_new(rvm_executable *executable, const rvm_machine_options *options, rvm_machine **machine,
                           rvm_value *error);
/* Frees a machine.  Returns BUSY and does not free it if the machine is running, or another thread is inside it. */
rvm_status rvm_machine_release(rvm_machine *machine);
/* Replaces bytecode functions and kernels of the machine by the native ones of `compiled`.  May be called from any
   thread.  The change takes effect at once if no thread is inside the machine, else at the next call from the host or
   at the next poll.  Active calls continue in bytecode.  `compiled` has the same function table, or only some of the
   kernels, and states the digest of the machine's executable (rvm_executable_digest).  A machine may be upgraded
   several times.  Fails with ARGUMENT_ERROR if `compiled` has another function, or one with other parameters, or states
   another digest, and with BUSY if the machine was upgraded with it before. */
rvm_status rvm_machine_upgrade(rvm_machine *machine, rvm_executable *compiled, rvm_value *error);
/* Returns the current kind of function `index` (enum rvm_function_kind), or -1 if the function does not exist. */
int32_t rvm_machine_function_kind(const rvm_machine *machine, int32_t index);
/* Calls function `index` of the function table.  After a failure, the stack is restored and the machine is usable. */
rvm_status rvm_machine_call(rvm_machine *machine, int32_t index, const rvm_value *arguments, int32_t count,
                            rvm_value *result);
/* Calls a FUNCTION or CLOSURE value of this machine.  A packed function may call rvm_machine_invoke during a run. */
rvm_status rvm_machine_invoke(rvm_machine *machine, rvm_value callee, const rvm_value *arguments, int32_t count,
                              rvm_value *result);
/* Checks whether the host may allocate `size_bytes` for its own copies of arguments or results.  The bytes count
   against max_bytes, in addition to the memory that the current or last run has not freed.  Also checks the limits of
   steps and time if the run has a time limit.  After a run, its time limit stays in effect until the host enters the
   machine again.  Fails with OUT_OF_MEMORY or TIMEOUT. */
rvm_status rvm_machine_afford(const rvm_machine *machine, int64_t size_bytes, rvm_value *error);
/* Seeds the random number generator.  Machines with the same seed produce the same numbers.  A new machine has a random
   seed. */
void rvm_machine_seed(rvm_machine *machine, uint64_t seed);
/* Turns the real-time mode on (`enabled` 1) or off (0).  After it is turned on, the next successful run is the first
   one, and may allocate memory.  Each later run then calls neither the allocator nor the system, and takes no lock.  A
   run that needs more memory than the first one fails with OUT_OF_MEMORY.  Before a run with larger sizes, turn the
   mode on again.

   The host must enter the machine (rvm_machine_enter) on the thread of the runs before the first run, stay inside, and
   release each result before the next run.  Its own functions, instruments and debuggers must obey the same rules.  A
   run that fails may allocate memory for its error.  Programs that create strings or growing lists fail with
   OUT_OF_MEMORY.  The machine keeps all memory that its runs have used.

   Fails with ARGUMENT_ERROR if the machine has several threads, or the option max_bytes, max_nanoseconds or poll, and
   with BUSY if it is running. */
rvm_status rvm_machine_real_time(rvm_machine *machine, int32_t enabled, rvm_value *error);
/* Ends the current run with INTERRUPTED.  If a thread is inside the machine but not in a run, ends its next run
   instead, unless the thread leaves first.  Does nothing if no thread is inside.  May be called from any thread or
   signal handler. */
void rvm_machine_interrupt(rvm_machine *machine);
/* Releases a reference to an object of this machine.  May be called from any thread.  If another thread is inside the
   machine, the reference is released when that thread leaves.  If there is no memory to remember it until then, the
   object leaks.  Intended for hosts whose garbage collector may run on another thread. */
void rvm_machine_drop(rvm_machine *machine, rvm_value value);
/* Enters the machine: the calling thread is inside until it has left as often as it entered.  The host must enter a
   machine to access its values between calls, because reference counts are not atomic.  Returns 1 on success, 0 if
   another thread is inside or the machine is NULL, and -1 if another thread is inside only briefly (try again).  Never
   waits. */
int32_t rvm_machine_enter(rvm_machine *machine);
/* Leaves the machine: ends one rvm_machine_enter of this thread.  Fails with ARGUMENT_ERROR if the thread is not inside
   the machine. */
rvm_status rvm_machine_leave(rvm_machine *machine, rvm_value *error);
/* Returns function `index` of the table as a FUNCTION value, or NIL if it does not exist.  The value is valid while the
   machine exists. */
rvm_value rvm_machine_function(const rvm_machine *machine, int32_t index);
/* Wraps a host function as a CLOSURE of this machine.  The closure counts as a function with side effects.  `name` is
   used in messages, and is copied.  `release` is called once with `self` when the last reference to the closure is
   released, but not if this function fails.  `release` may be NULL. */
rvm_status rvm_machine_function_new(rvm_machine *machine, const char *name, rvm_packed_function call, void *self,
                                    void (*release)(void *self), rvm_value *result);

/* ---- instruments ---- */
/* Callbacks before and after every call of a function of the given kinds.  `function` is an index into the function
   table.  A call through vm.builtin.invoke_closure is reported as a call of the invoked function, with the captured
   values as arguments.  Calls made by the instrument itself are not reported. */
typedef struct rvm_instrument {
  uint32_t kinds; /* bit mask of 1 << kind (enum rvm_function_kind); other bits are ignored */
  /* Called before a call.  If it sets *skip to 1, the call is skipped, its result is NIL, and `after` is not called.
     The run ends with TYPE_ERROR if the program relies on the skipped call: the call would have rejected the type of a
     parameter, or the program needs a scalar as its result.  A status other than OK ends the run with that status.  May
     be NULL. */
  rvm_status (*before)(void *host, int32_t function, const rvm_value *arguments, int32_t count, int32_t *skip,
                       rvm_value *error);
  /* Called after a call, with its status, and its result or error (borrowed).  A status other than OK ends the run with
     that status, unless the call has failed already.  May be NULL. */
  rvm_status (*after)(void *host, int32_t function, const rvm_value *arguments, int32_t count, rvm_status status,
                      const rvm_value *result, rvm_value *error);
  void *host;
  /* Called before every instruction of a kernel in kernel bytecode, between `before` and `after` of its call, if
     `kinds` includes kernels.  The kernel then uses one thread.  A status other than OK ends the run with that status.
     If NULL, kernels run at full speed. */
  rvm_status (*instruction)(void *host, int32_t function, int32_t instruction, rvm_value *error);
} rvm_instrument;

/* Sets the instrument of the machine and replaces the previous one.  The struct is copied.  NULL removes the
   instrument.  Fails with BUSY if the machine is running. */
rvm_status rvm_machine_instrument(rvm_machine *machine, const rvm_instrument *instrument, rvm_value *error);

/* ---- profiles ---- */
typedef struct rvm_profile rvm_profile;

/* The measurements of one function. */
typedef struct rvm_profile_row {
  int64_t count;       /* number of calls */
  int64_t nanoseconds; /* time in these calls, without the time of nested measured calls */
  int64_t bytes;       /* bytes of tensors that these calls read (rvm_profile_count) and return; 0 for builtins */
  double operations;   /* operations in all calls; NaN if unknown, for example without rvm_profile_count */
} rvm_profile_row;

/* Creates an empty profile of kernels, packed functions and builtins.  Release it after the machines that use it, and
   before the executable. */
rvm_status rvm_profile_new(const rvm_executable *executable, rvm_profile **profile, rvm_value *error);
/* Returns the instrument that fills the profile.  Only one machine of the executable may use it at a time.  For NULL,
   the instrument does nothing. */
rvm_instrument rvm_profile_instrument(rvm_profile *profile);
/* Sets formulas for the operations of a function, and for the elements that a call reads of each argument.

   `code` is copied.  It is a sequence of sums: first the operations, then for each argument the elements that are read.
   Arguments without a sum are read completely.  A sum consists of the number of its terms and the terms.  If the number
   of terms is -1, the operations are unknown, or the argument is read completely.  A term consists of a coefficient,
   the number of its factors, and the factors, which are multiplied.  A factor is the size of an axis, given as the
   index of an argument and the index of the axis.  The value of a sum is unknown, too, if an axis does not exist.  A
   malformed or incomplete sum is unknown, and so are the sums after it. */
rvm_status rvm_profile_count(rvm_profile *profile, int32_t function, const int64_t *code, int32_t length,
                             rvm_value *error);
/* Makes the profile also count and time the instructions of kernels in kernel bytecode.  Call it before
   rvm_profile_instrument. */
rvm_status rvm_profile_kernels(rvm_profile *profile, rvm_value *error);
/* Returns the measurements of a function; zeros and NaN if the function does not exist. */
rvm_profile_row rvm_profile_read(const rvm_profile *profile, int32_t function);
/* Returns the count and the time of an instruction of a kernel, without the time of measuring it.  Returns zeros and
   NaN if the instruction does not exist or was not measured. */
rvm_profile_row rvm_profile_instruction(const rvm_profile *profile, int32_t function, int32_t instruction);
/* A recorded call of a kernel, packed function or builtin. */
typedef struct rvm_profile_call {
  int64_t started;     /* start time in nanoseconds; only differences of start times are meaningful */
  int64_t nanoseconds; /* including the time of nested calls */
  int64_t bytes;       /* like rvm_profile_row.bytes; for a builtin that returns a storage, the size of the storage */
  int32_t function;
  int32_t depth; /* number of enclosing measured calls */
} rvm_profile_call;

/* Makes the profile also record its first `most` calls, each with its time.  A later call of this function can only
   increase the number. */
rvm_status rvm_profile_record(rvm_profile *profile, int64_t most, rvm_value *error);
/* Returns the recorded calls in the order of their ends, and stores their number.  Returns NULL if none is recorded.
   The profile owns the array, and the next measured run may replace it. */
const rvm_profile_call *rvm_profile_calls(const rvm_profile *profile, int64_t *count);
void rvm_profile_release(rvm_profile *profile);

/* ---- debuggers ---- */
/* Callback between the instructions of bytecode functions, of native functions built for debugging, and of kernels in
   kernel bytecode. */
typedef struct rvm_debugger {
  /* Called before an instruction at which the run must stop, with `failure` NULL.  Also called after an
     instruction that failed, with its error as `failure`, before any register is released.  The callback is not
     called for a failure that it caused itself, or for calls that it makes.  A status other than OK ends the run
     with that status. */
  rvm_status (*stop)(void *host, const rvm_value *failure, rvm_value *error);
  void *host;
} rvm_debugger;

/* An active call of a function. */
typedef struct rvm_place {
  int32_t function;    /* index into the function table; -1 for a function without debug information */
  int32_t instruction; /* 0-based index of the next instruction; for a caller, the index of its call */
  int32_t count;       /* number of registers; 0 for a kernel (rvm_machine_kernel_register) */
  const rvm_value *registers;
} rvm_place;

/* Sets the debugger of the machine.  It replaces the previous debugger and its breakpoints.  The struct is copied.
   NULL removes the debugger.  Fails with BUSY if the machine is running, and with ARGUMENT_ERROR if `stop` is NULL. */
rvm_status rvm_machine_debug(rvm_machine *machine, const rvm_debugger *debugger, rvm_value *error);
/* Sets (`stops` 1) or clears (0) a breakpoint before an instruction.  Native code has the instruction numbers of the
   corresponding bytecode.  A kernel in kernel bytecode that has a breakpoint uses one thread and runs slower.  Fails
   with INDEX_ERROR if the instruction does not exist, and with ARGUMENT_ERROR if the machine has no debugger. */
rvm_status rvm_machine_break(rvm_machine *machine, int32_t function, int32_t instruction, int32_t stops,
                             rvm_value *error);
/* Makes a run stop, in addition to its breakpoints, before every instruction of the outermost `depth` active calls, or
   of none if `depth` is 0 or less.  May be called from any thread. */
void rvm_machine_stop_within(rvm_machine *machine, int64_t depth);
/* Makes rvm_machine_stop_within include kernels in kernel bytecode that are called later (`stops` 1), or not (0, the
   default).  May be called from any thread. */
void rvm_machine_stop_in_kernels(rvm_machine *machine, int32_t stops);
/* Return the number of active calls, and an active call, during a callback of the debugger.  Index 0 is the outermost
   call.  For an invalid index, `function` is -1. */
int64_t rvm_machine_depth(const rvm_machine *machine);
rvm_place rvm_machine_place(const rvm_machine *machine, int64_t index);
/* The memory of a register or buffer of a kernel that has stopped.  It is valid during the callback of the debugger.  A
   strip is the sequence of elements that an instruction of kernel bytecode processes. */
typedef struct rvm_kernel_memory {
  const void *bytes; /* may be unaligned; NULL if the register or buffer does not exist */
  int64_t size_bytes;
  int64_t strip; /* number of elements of the current strip */
} rvm_kernel_memory;
/* Return register `number` or buffer `number` of the kernel of call `index`, during a callback of the debugger inside
   the kernel.  Registers are numbered as in the kernel's program: first scalars, then strips, then views.  For any
   other call or number, `bytes` is NULL. */
rvm_kernel_memory rvm_machine_kernel_register(const rvm_machine *machine, int64_t index, int32_t number);
rvm_kernel_memory rvm_machine_kernel_buffer(const rvm_machine *machine, int64_t index, int32_t number);

/* ---- libraries of ahead-of-time exports ---- */
struct rvm_native_api;

/* The symbol relvm_aot_library of an exported library. */
typedef struct rvm_aot_library {
  int32_t abi_version; /* RVM_ABI_VERSION */
  const char *cpu;     /* required processor features, such as "x86-64-v4 avx512vnni"; NULL if unknown */
  /* Connects the model to this runtime.  If a function is registered as "M.K", it replaces kernel K of model M. */
  void (*open)(const struct rvm_native_api *api);
  /* Runs the model after `open`.  The arguments are the tensors of the inputs, the outputs and the pools.  No other run
     may use the pools at the same time. */
  rvm_packed_function run;
  const rvm_metadata *metadata;
} rvm_aot_library;

/* A constant of an exported model. */
typedef struct rvm_aot_constant {
  rvm_tensor_info info;
  const void *data; /* the elements, compact and row-major */
} rvm_aot_constant;

/* The source and the options of an exported library.  The library exports them as the symbol relvm_aot_description.
   The texts are UTF-8. */
typedef struct rvm_aot_description {
  const char *entry;   /* the name of the exported function */
  const char *config;  /* the options of the export, as JSON */
  const char *target;  /* the target that the library was compiled for; NULL if unknown */
  const char *source;  /* the program in the text form, without large constants */
  const char *lowered; /* the lowered functions as text */
  int32_t constant_count;
  const rvm_aot_constant *constants;
} rvm_aot_description;

/* Connects the library to this runtime.  Call it before `run`.  Fails with UNSUPPORTED if the library was built for
   another version of the runtime or another processor. */
rvm_status rvm_aot_open(const rvm_aot_library *library, rvm_value *error);

/* [end cffi] */

/* Loads the executable inside an exported library, including native code.  Only exported libraries define this
   function. */
rvm_status relvm_module_load(rvm_executable **executable, rvm_value *error);

#ifdef RVM_SHARED
#pragma GCC visibility pop
#endif

#endif
