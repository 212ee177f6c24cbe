/* arguments.c: generates values to call functions with. */
#include <string.h>

#include "executable.h"
#include "fuzz.h"
#include "verify.h"

int64_t fuzz_number(fuzz_random *random) {
  static const int64_t numbers[] = {0,          1,       -1,         2,         3,         4,
                                    7,          8,       63,         64,        127,       255,
                                    256,        -2,      INT32_MAX,  INT32_MIN, INT64_MAX, INT64_MIN,
                                    UINT32_MAX, 1 << 28, -(1 << 28), 1LL << 40, 1LL << 62, 65536};
  switch (fuzz_below(random, 4)) {
    case 0: return numbers[fuzz_below(random, sizeof numbers / sizeof *numbers)];
    case 1: return (int64_t)fuzz_next(random) >> fuzz_below(random, 64);
    default: return (int64_t)fuzz_below(random, 5) - 1;
  }
}

static const char *const texts[] = {"",    "a",   "some words, and more", "\xc3\xa9\xe2\x82\xac",
                                    "-12", "1e5", "vm.builtin.copy"};

/* Returns a dtype: usually one that programs commonly use. */
static int32_t any_dtype(fuzz_random *random) {
  static const int32_t usual[] = {RVM_DTYPE_f32, RVM_DTYPE_i64, RVM_DTYPE_bool, RVM_DTYPE_str};
  return fuzz_below(random, 3) ? usual[fuzz_below(random, 4)] : (int32_t)fuzz_below(random, RVM_DTYPE_COUNT);
}

/* Returns the value that a constructor stored, or NIL if it failed for lack of memory. */
static rvm_value made(rvm_status status, rvm_value *value) {
  if (status) rvm_value_release(value);
  return *value;
}

static rvm_value strings(int32_t rank, const int64_t *dims, int64_t count, fuzz_random *random) {
  struct {
    int64_t ends[256];
    char bytes[256 * 24];
  } from;
  char packed[sizeof from];
  int64_t end = 0;
  if (count > 256) return (rvm_value){.tag = RVM_TAG_NIL};
  for (int64_t i = 0; i < count; i++) {
    const char *text = texts[fuzz_below(random, sizeof texts / sizeof *texts)];
    memcpy(from.bytes + end, text, strlen(text));
    from.ends[i] = end += (int64_t)strlen(text);
  }
  memcpy(packed, from.ends, (size_t)count * 8);
  memcpy(packed + count * 8, from.bytes, (size_t)end);
  rvm_value value;
  return made(rvm_tensor_of_strings(rank, dims, packed, count * 8 + end, &value), &value);
}

/* Returns a tensor.  A rank or dtype of -1 means any. */
static rvm_value tensor(fuzz_random *random, int64_t rank, int64_t dtype) {
  int64_t dims[4], count = 1, same = fuzz_below(random, 4) ? 2 : -1;
  rvm_value value;
  if (rank < 0 || rank > 4) rank = fuzz_below(random, 4);
  if (dtype < 0 || dtype >= RVM_DTYPE_COUNT) dtype = any_dtype(random);
  for (int64_t i = 0; i < rank; i++) count *= dims[i] = same >= 0 ? same : fuzz_below(random, 5);
  if (dtype == RVM_DTYPE_str) return strings((int32_t)rank, dims, count, random);
  value = made(rvm_tensor_new((int32_t)dtype, (int32_t)rank, dims, &value), &value);
  if (value.tag != RVM_TAG_TENSOR) return value;
  unsigned char *bytes = value.as.tensor->dl.data;
  int64_t size_bytes = rvm_tensor_size_bytes(value.as.tensor);
  for (int64_t i = 0; i < size_bytes; i++)
    bytes[i] = (unsigned char)(dtype == RVM_DTYPE_bool ? i % 2 : fuzz_below(random, 8) * 17);
  if (dtype == RVM_DTYPE_i64)
    for (int64_t i = 0; i < count; i++) ((int64_t *)value.as.tensor->dl.data)[i] = fuzz_number(random);
  return value;
}

static rvm_value items(fuzz_random *random, const rvm_machine *machine, int32_t function_count, int depth) {
  rvm_value inside[3], value;
  int32_t size = (int32_t)fuzz_below(random, 4);
  for (int32_t i = 0; i < size; i++) inside[i] = fuzz_value(random, machine, function_count, depth - 1);
  if (fuzz_below(random, 2))
    value = made(rvm_tuple_new(size, inside, &value), &value);
  else
    value = made(rvm_list_new(size, inside, &value), &value);
  for (int32_t i = 0; i < size; i++) rvm_value_release(&inside[i]);
  return value;
}

rvm_value fuzz_value(fuzz_random *random, const rvm_machine *machine, int32_t function_count, int depth) {
  rvm_value value = {.tag = RVM_TAG_NIL};
  int64_t dims[3];
  const char *text;
  switch (fuzz_below(random, depth > 0 ? 10 : 9)) {
    case 0: return value;
    case 1:
    case 2: return (rvm_value){.tag = RVM_TAG_INT, .as.i = fuzz_number(random)};
    case 3: return (rvm_value){.tag = RVM_TAG_FLOAT, .as.f = (double)fuzz_number(random) / 2};
    case 4: return (rvm_value){.tag = RVM_TAG_BOOL, .as.i = fuzz_below(random, 2)};
    case 5: return (rvm_value){.tag = RVM_TAG_DTYPE, .as.i = any_dtype(random)};
    case 6: return rvm_machine_function(machine, (int32_t)fuzz_below(random, (uint64_t)function_count));
    case 7:
      for (int i = 0; i < 3; i++) dims[i] = fuzz_below(random, 4) ? 2 : fuzz_number(random);
      return made(rvm_shape_new((int32_t)fuzz_below(random, 4), dims, &value), &value);
    case 8:
      if (fuzz_below(random, 3)) return tensor(random, -1, -1);
      text = texts[fuzz_below(random, sizeof texts / sizeof *texts)];
      return made(rvm_string_new(text, (int64_t)strlen(text), &value), &value);
    default: return items(random, machine, function_count, depth);
  }
}

/* ---- values that pass a function's checks of its parameters ---- */

static int64_t literal(const rvm_executable *executable, uint32_t word) {
  int32_t payload = rvm_argument_payload(word);
  if (rvm_argument_kind(word) == RVM_ARGUMENT_IMMEDIATE) return payload;
  if (rvm_argument_kind(word) != RVM_ARGUMENT_CONSTANT) return -1;
  return executable->constants[payload].as.i;
}

/* Returns a value that the check at `code` accepts if it checks parameter `index`; otherwise a value with tag
   CONTEXT. */
static rvm_value checked(fuzz_random *random, const rvm_executable *executable, const rvm_machine *machine,
                         const uint32_t *code, int32_t index) {
  const rvm_value none = {.tag = RVM_TAG_CONTEXT};
  if (code[0] != RVM_OP_call || code[3] < 2 || code[4] != ((uint32_t)index << 3 | RVM_ARGUMENT_REGISTER)) return none;
  const char *name = rvm_executable_function_name(executable, (int32_t)code[2]);
  if (strcmp(name, "vm.builtin.check_tensor_info") == 0 && code[3] > 2)
    return tensor(random, literal(executable, code[5]), literal(executable, code[6]));
  if (strcmp(name, "vm.builtin.check_prim_value_info") == 0) {
    int64_t dtype = literal(executable, code[5]);
    if (dtype == RVM_DTYPE_f64) return (rvm_value){.tag = RVM_TAG_FLOAT, .as.f = (double)fuzz_number(random) / 2};
    if (dtype == RVM_DTYPE_bool) return (rvm_value){.tag = RVM_TAG_BOOL, .as.i = fuzz_below(random, 2)};
    return (rvm_value){.tag = RVM_TAG_INT, .as.i = fuzz_number(random)};
  }
  if (strcmp(name, "vm.builtin.check_func_info") == 0)
    return rvm_machine_function(machine, (int32_t)fuzz_below(random, (uint64_t)executable->function_count));
  return none;
}

/* Returns a tensor that a kernel program accepts as parameter `index`, or a value with tag CONTEXT if it would be
   large.  A size variable usually has the same value in all parameters. */
static rvm_value tensor_of_kernel(fuzz_random *random, const rvm_kernel_program *program, int32_t index) {
  const rvm_value none = {.tag = RVM_TAG_CONTEXT};
  const int64_t *words = program->tensors;
  if (index < 0 || (uint32_t)index >= program->tensor_count) return none;
  for (int32_t i = 0; i < index; i++) words += 2 + words[1];
  int64_t dims[RVM_MAX_RANK], count = 1;
  for (int64_t axis = 0; axis < words[1]; axis++) {
    dims[axis] = words[2 + axis] >= 0 ? words[2 + axis] : 2 + (-words[2 + axis] * 7 + program->code_count) % 5;
    if (dims[axis] < 4096 && fuzz_below(random, 64) == 0) dims[axis] += 1;
    if (dims[axis] > 4096 || (count *= dims[axis]) > 4096) return none;
  }
  rvm_value value;
  made(rvm_tensor_new((int32_t)words[0], (int32_t)words[1], dims, &value), &value);
  if (value.tag != RVM_TAG_TENSOR) return value;
  unsigned char *bytes = value.as.tensor->dl.data;
  const int64_t size_bytes = rvm_tensor_size_bytes(value.as.tensor);
  if (words[0] == RVM_DTYPE_i64 || fuzz_below(random, 4) == 0)
    for (int64_t i = 0; i + 8 <= size_bytes; i += 8) {
      const int64_t number = fuzz_below(random, 4) ? (int64_t)fuzz_below(random, 4) : fuzz_number(random);
      memcpy(bytes + i, &number, 8);
    }
  else
    for (int64_t i = 0; i < size_bytes; i++) bytes[i] = (unsigned char)fuzz_next(random);
  return value;
}

rvm_value fuzz_argument(fuzz_random *random, const rvm_executable *executable, const rvm_machine *machine,
                        int32_t function, int32_t index) {
  const rvm_function_record *record = &executable->functions[function];
  const uint32_t *code = executable->code + record->code_start, *end = code + record->code_count;
  if (record->kind != RVM_KIND_bytecode || fuzz_below(random, 8) == 0) end = code;
  if (executable->kernels && executable->kernels[function].code && fuzz_below(random, 64)) {
    const rvm_value value = tensor_of_kernel(random, &executable->kernels[function], index);
    if (value.tag != RVM_TAG_CONTEXT) return value;
  }
  for (; code < end; code += rvm_instruction_words(code, (uint32_t)(end - code))) {
    rvm_value value = checked(random, executable, machine, code, index);
    if (value.tag != RVM_TAG_CONTEXT) return value;
  }
  return fuzz_value(random, machine, executable->function_count, 2);
}
