/* profile.c: an instrument that measures calls: their number, time, bytes and operations, and the time of each
   instruction of kernels. */
#include "cold.h"

#include <math.h>
#include <string.h>

#include "system.h"
#include "dtype.h"
#include "machine.h"

/* An active call of a packed function or a kernel.  Such calls are nested if a packed function calls the machine.
   Times are in nanoseconds. */
typedef struct open_call {
  int64_t started, inner;      /* start time, and duration of nested measured calls */
  int64_t instruction_started; /* start of the current instruction, plus the time of nested calls since then */
  int32_t instruction;         /* current instruction of a kernel, or -1 */
} open_call;

/* The count and the time of an instruction of a kernel.  The time includes the cost of measuring it. */
typedef struct instruction_row {
  int64_t count, nanoseconds;
} instruction_row;

/* Formulas for the operations and the reads of a function's calls, encoded as rvm_profile_count in relvm.h
   describes. */
typedef struct sums {
  int64_t *code;
  int32_t length;
} sums;

struct rvm_profile {
  const rvm_executable *executable;
  open_call *open;
  int64_t depth, capacity; /* active calls, and the number allocated */
  int32_t function_count;
  sums *counts;                   /* one per function */
  instruction_row **instructions; /* by function: an array with a row per instruction if it is a kernel in kernel
                                     bytecode, else NULL; NULL if instructions are not measured */
  int64_t clock_picoseconds;      /* duration of rvm_clock_now() */
  rvm_profile_call *calls;        /* recorded calls, at most `max_calls` */
  int64_t call_count, call_capacity, max_calls;
  rvm_profile_row rows[];
};

static int64_t value_bytes(rvm_value value) {
  return value.tag == RVM_TAG_TENSOR ? rvm_tensor_size_bytes(value.as.tensor) : 0;
}

static int64_t storage_bytes(rvm_value value) {
  return value.tag == RVM_TAG_STORAGE ? ((const rvm_storage *)value.as.object)->size_bytes : 0;
}

/* The part of a function's formulas (rvm_profile_count) that has not been read yet, and the arguments of the call to
   which they apply. */
typedef struct reader {
  const int64_t *next, *end;
  const rvm_value *arguments;
  int32_t count;
} reader;

/* Reads the two words of a factor, which must exist, and returns the size of the axis that they name, or NaN if there
   is no such axis. */
static double read_factor(reader *code) {
  int64_t argument = *code->next++, axis = *code->next++;
  if (argument < 0 || argument >= code->count || code->arguments[argument].tag != RVM_TAG_TENSOR) return NAN;
  const rvm_dltensor *tensor = &code->arguments[argument].as.tensor->dl;
  return axis >= 0 && axis < tensor->ndim ? (double)tensor->shape[axis] : NAN;
}

/* Skips the rest of a malformed or incomplete sum and all sums after it, and returns NaN. */
static double stop_reading(reader *code) {
  code->next = code->end;
  return NAN;
}

/* Reads a sum and returns its value, or NaN if it is unknown, malformed or incomplete. */
static double read_sum(reader *code) {
  if (code->next == code->end) return NAN;
  int64_t terms = *code->next++;
  double total = terms < 0 ? NAN : 0;
  for (; terms > 0; terms--) {
    if (code->end - code->next < 2) return stop_reading(code);
    double term = (double)*code->next++;
    int64_t factors = *code->next++;
    if (factors < 0 || factors > (code->end - code->next) / 2) return stop_reading(code);
    for (; factors > 0; factors--) term *= read_factor(code);
    total += term;
  }
  return total;
}

/* Returns the number of bytes that a function reads of an argument, if it reads `elements` elements, but at most all of
   them.  NaN means all. */
static int64_t read_bytes(rvm_value argument, double elements) {
  int64_t all = value_bytes(argument);
  if (argument.tag != RVM_TAG_TENSOR || isnan(elements)) return all;
  double read = elements * (double)rvm_dtype_size_bytes(argument.as.tensor->dtype);
  return read < (double)all ? (int64_t)read : all;
}

static int is_builtin(const rvm_profile *profile, int32_t function) {
  return rvm_is_builtin_name(rvm_executable_function_name(profile->executable, function));
}

static rvm_status grow_open_calls(rvm_profile *profile, rvm_value *error) {
  int64_t capacity = profile->capacity ? 2 * profile->capacity : 16;
  open_call *open = rvm_grow(profile->open, profile->depth, capacity, sizeof *open);
  if (!open) return rvm_out_of_memory(error);
  profile->open = open;
  profile->capacity = capacity;
  return RVM_OK;
}

/* Records a call that has ended, unless the maximum number of calls is recorded already. */
static rvm_status record(rvm_profile *profile, rvm_profile_call call, rvm_value *error) {
  if (profile->call_count == profile->max_calls) return RVM_OK;
  if (profile->call_count == profile->call_capacity) {
    int64_t capacity = profile->call_capacity ? 2 * profile->call_capacity : 256;
    if (capacity > profile->max_calls) capacity = profile->max_calls;
    rvm_profile_call *calls = rvm_grow(profile->calls, profile->call_count, capacity, sizeof *calls);
    if (!calls) return rvm_out_of_memory(error);
    profile->calls = calls;
    profile->call_capacity = capacity;
  }
  profile->calls[profile->call_count++] = call;
  return RVM_OK;
}

/* The instrument's callback before a call. */
static rvm_status before(void *host, int32_t function, const rvm_value *arguments, int32_t count, int32_t *skip,
                         rvm_value *error) {
  (void)arguments, (void)count, (void)skip;
  rvm_profile *profile = host;
  if (function >= profile->function_count)
    return rvm_fail(error, RVM_ARGUMENT_ERROR,
                    "profile: function index %d is out of range; the profiled executable has %d function%s; use one "
                    "profile per executable",
                    function, profile->function_count, RVM_PLURAL(profile->function_count));
  rvm_status status = profile->depth == profile->capacity ? grow_open_calls(profile, error) : RVM_OK;
  if (status) return status;
  open_call *call = &profile->open[profile->depth++];
  call->inner = 0;
  call->instruction = -1;
  call->started = rvm_clock_now();
  return RVM_OK;
}

/* Ends the current instruction of `call`, if there is one, at the time `now`: adds its time to the row of the
   instruction. */
static void end_instruction(const rvm_profile *profile, const open_call *call, int32_t function, int64_t now) {
  if (call->instruction < 0) return;
  instruction_row *row = &profile->instructions[function][call->instruction];
  row->count++;
  row->nanoseconds += now - call->instruction_started;
}

static int is_measured(const rvm_profile *profile, int32_t function, int32_t instruction) {
  return profile->instructions && function >= 0 && function < profile->function_count &&
         profile->instructions[function] && instruction >= 0 &&
         (uint32_t)instruction < profile->executable->kernels[function].code_count;
}

/* The instrument's callback before each instruction of a kernel.  The time of the instruction ends at the next
   instruction of the kernel or at the end of the kernel. */
static rvm_status instruction(void *host, int32_t function, int32_t instruction, rvm_value *error) {
  const rvm_profile *profile = host;
  if (!is_measured(profile, function, instruction))
    return rvm_fail(
        error, RVM_ARGUMENT_ERROR,
        "profile: the profiled executable has no kernel %d with an instruction %d; use one profile per executable",
        function, instruction);
  open_call *call = &profile->open[profile->depth - 1];
  const int64_t now = rvm_clock_now();
  end_instruction(profile, call, function, now);
  call->instruction = instruction;
  call->instruction_started = now;
  return RVM_OK;
}

/* The instrument's callback after a call: adds its measurements to the row of the function, and records the call. */
static rvm_status after(void *host, int32_t function, const rvm_value *arguments, int32_t count, rvm_status status,
                        const rvm_value *result, rvm_value *error) {
  (void)status;
  rvm_profile *profile = host;
  const open_call *call = &profile->open[--profile->depth];
  const int64_t now = rvm_clock_now(), elapsed = now - call->started;
  end_instruction(profile, call, function, now);
  rvm_profile_row *row = &profile->rows[function];
  row->count++;
  row->nanoseconds += elapsed - call->inner;
  if (profile->depth > 0) {
    profile->open[profile->depth - 1].inner += elapsed;
    profile->open[profile->depth - 1].instruction_started += elapsed; /* excludes this call */
  }
  int64_t bytes = 0;
  if (is_builtin(profile, function)) {
    bytes = storage_bytes(*result);
  } else {
    const sums *counts = &profile->counts[function];
    reader code = {counts->code, counts->code + counts->length, arguments, count};
    row->operations += read_sum(&code);
    for (int32_t i = 0; i < count; i++) bytes += read_bytes(arguments[i], read_sum(&code));
    bytes += value_bytes(*result);
    row->bytes += bytes;
  }
  return record(profile, (rvm_profile_call){call->started, elapsed, bytes, function, (int32_t)profile->depth}, error);
}

rvm_status rvm_profile_new(const rvm_executable *executable, rvm_profile **profile, rvm_value *error) {
  RVM_EXPECT_POINTER(executable, error);
  RVM_EXPECT_POINTER(profile, error);
  size_t rows_bytes = (size_t)executable->function_count * sizeof(rvm_profile_row);
  rvm_profile *made = rvm_allocate_zeroed(sizeof *made + rows_bytes);
  if (!made) return rvm_out_of_memory(error);
  made->executable = executable;
  made->function_count = executable->function_count;
  made->counts = rvm_allocate_zeroed((size_t)executable->function_count * sizeof *made->counts);
  if (!made->counts && executable->function_count > 0) {
    rvm_free(made);
    return rvm_out_of_memory(error);
  }
  *profile = made;
  return RVM_OK;
}

rvm_status rvm_profile_count(rvm_profile *profile, int32_t function, const int64_t *code, int32_t length,
                             rvm_value *error) {
  RVM_EXPECT_POINTER(profile, error);
  RVM_EXPECT_ARRAY(code, length, error);
  if (function < 0 || function >= profile->function_count)
    return rvm_fail(error, RVM_INDEX_ERROR,
                    "rvm_profile_count: function index %d is out of range; the profile has %d function%s", function,
                    profile->function_count, RVM_PLURAL(profile->function_count));
  int64_t *copy = rvm_allocate((size_t)length * sizeof *copy + 1);
  if (!copy) return rvm_out_of_memory(error);
  if (length > 0) memcpy(copy, code, (size_t)length * sizeof *copy);
  rvm_free(profile->counts[function].code);
  profile->counts[function] = (sums){copy, length};
  return RVM_OK;
}

static void release_instructions(instruction_row **rows, int32_t function_count) {
  for (int32_t i = 0; i < function_count && rows; i++) rvm_free(rows[i]);
  rvm_free(rows);
}

/* Returns the duration of rvm_clock_now() in picoseconds: the smallest mean of several series, to exclude series with
   interrupts. */
static int64_t measure_clock(void) {
  enum { SERIES = 16, READS = 64 };
  int64_t least = INT64_MAX;
  for (int i = 0; i < SERIES; i++) {
    const int64_t start = rvm_clock_now();
    int64_t now = start;
    for (int j = 0; j < READS; j++) now = rvm_clock_now();
    const int64_t mean = (now - start) * 1000 / READS;
    if (mean < least) least = mean;
  }
  return least;
}

rvm_status rvm_profile_kernels(rvm_profile *profile, rvm_value *error) {
  RVM_EXPECT_POINTER(profile, error);
  const rvm_kernel_program *kernels = profile->executable->kernels;
  if (profile->instructions || !kernels) return RVM_OK;
  instruction_row **rows = rvm_allocate_zeroed((size_t)profile->function_count * sizeof *rows);
  int is_complete = rows != NULL;
  for (int32_t i = 0; i < profile->function_count && is_complete; i++) {
    if (!kernels[i].code) continue;
    rows[i] = rvm_allocate_zeroed(kernels[i].code_count * sizeof *rows[i]);
    is_complete = rows[i] != NULL;
  }
  if (!is_complete) {
    release_instructions(rows, profile->function_count);
    return rvm_out_of_memory(error);
  }
  profile->clock_picoseconds = measure_clock();
  profile->instructions = rows;
  return RVM_OK;
}

rvm_status rvm_profile_record(rvm_profile *profile, int64_t most, rvm_value *error) {
  RVM_EXPECT_POINTER(profile, error);
  if (most < 0)
    return rvm_fail(error, RVM_ARGUMENT_ERROR, "rvm_profile_record: most is %lld, expected 0 or more", (long long)most);
  if (most > profile->max_calls) profile->max_calls = most;
  return RVM_OK;
}

const rvm_profile_call *rvm_profile_calls(const rvm_profile *profile, int64_t *count) {
  if (count) *count = profile ? profile->call_count : 0;
  return profile ? profile->calls : NULL;
}

rvm_profile_row rvm_profile_instruction(const rvm_profile *profile, int32_t function, int32_t instruction) {
  if (!profile || !is_measured(profile, function, instruction)) return (rvm_profile_row){.operations = NAN};
  const instruction_row row = profile->instructions[function][instruction];
  const int64_t spent = row.nanoseconds - (int64_t)((double)row.count * (double)profile->clock_picoseconds / 1000);
  return (rvm_profile_row){.count = row.count, .nanoseconds = spent > 0 ? spent : 0, .operations = NAN};
}

rvm_instrument rvm_profile_instrument(rvm_profile *profile) {
  if (!profile) return (rvm_instrument){.kinds = 0};
  return (rvm_instrument){.kinds = 1u << RVM_KIND_packed | 1u << RVM_KIND_kernel,
                          .before = before,
                          .after = after,
                          .host = profile,
                          .instruction = profile->instructions ? instruction : NULL};
}

rvm_profile_row rvm_profile_read(const rvm_profile *profile, int32_t function) {
  if (!profile || function < 0 || function >= profile->function_count) return (rvm_profile_row){.operations = NAN};
  return profile->rows[function];
}

void rvm_profile_release(rvm_profile *profile) {
  if (!profile) return;
  for (int32_t i = 0; i < profile->function_count; i++) rvm_free(profile->counts[i].code);
  release_instructions(profile->instructions, profile->function_count);
  rvm_free(profile->counts);
  rvm_free(profile->open);
  rvm_free(profile->calls);
  rvm_free(profile);
}
