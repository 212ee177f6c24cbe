/* driver.c: calls functions of an executable and prints the digests of their results (docs/determinism.md).

   driver FILE.rvm CASES.bin THREADS

   CASES.bin has calls one after another: the name of a function, the number of arguments, and the arguments
   (cases.py).  For each call, the driver prints a line with the name and the digest, or the name and the error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "relvm.h"
#include "sha256.h"

enum { MAX_ARGUMENTS = 64, HEAD_BYTES = 1024 };

/* ---- the input ---- */

static const char *input, *input_end;

static void read_bytes(void *bytes, int64_t size_bytes) {
  if (size_bytes < 0 || size_bytes > input_end - input) {
    fprintf(stderr, "the file of cases is too short\n");
    exit(2);
  }
  memcpy(bytes, input, (size_t)size_bytes);
  input += size_bytes;
}

static int64_t read_i64(void) {
  int64_t number;
  read_bytes(&number, sizeof number);
  return number;
}

static void expect_ok(rvm_status status, rvm_value error) {
  if (status == RVM_OK) return;
  fprintf(stderr, "%s\n", error.tag == RVM_TAG_ERROR ? error.as.error->message : "failed");
  exit(2);
}

static int64_t element_count(int32_t rank, const int64_t *dims) {
  int64_t count = 1;
  for (int32_t i = 0; i < rank; i++) count *= dims[i];
  return count;
}

static const int element_bytes[] = {
#define DTYPE(name, code, bits, ctype, numpy) sizeof(ctype),
#include "dtypes.def"
#undef DTYPE
};

static rvm_value read_value(void);

static rvm_value read_tensor(void) {
  int64_t dims[RVM_MAX_RANK];
  const int32_t dtype = (int32_t)read_i64(), rank = (int32_t)read_i64();
  rvm_value made = {.tag = RVM_TAG_NIL};
  for (int32_t i = 0; i < rank; i++) dims[i] = read_i64();
  if (dtype == RVM_DTYPE_str) {
    const int64_t packed_bytes = read_i64();
    void *packed = malloc((size_t)packed_bytes + 8);
    read_bytes(packed, packed_bytes);
    expect_ok(rvm_tensor_of_strings(rank, dims, packed, packed_bytes, &made), made);
    free(packed);
    return made;
  }
  expect_ok(rvm_tensor_new(dtype, rank, dims, &made), made);
  read_bytes(made.as.tensor->dl.data, element_count(rank, dims) * element_bytes[dtype]);
  return made;
}

static rvm_value read_items(int is_list) {
  const int32_t count = (int32_t)read_i64();
  rvm_value *items = malloc(((size_t)count + 1) * sizeof *items), made = {.tag = RVM_TAG_NIL};
  for (int32_t i = 0; i < count; i++) items[i] = read_value();
  expect_ok(is_list ? rvm_list_new(count, items, &made) : rvm_tuple_new(count, items, &made), made);
  for (int32_t i = 0; i < count; i++) rvm_value_release(&items[i]);
  free(items);
  return made;
}

static rvm_value read_value(void) {
  rvm_value made = {.tag = RVM_TAG_NIL};
  switch ((char)read_i64()) {
    case 'n': return made;
    case 'b': return (rvm_value){.tag = RVM_TAG_BOOL, .as.i = read_i64()};
    case 'i': return (rvm_value){.tag = RVM_TAG_INT, .as.i = read_i64()};
    case 'f':
      made.tag = RVM_TAG_FLOAT;
      read_bytes(&made.as.f, sizeof made.as.f);
      return made;
    case 's': {
      const int64_t length = read_i64();
      char *bytes = malloc((size_t)length + 1);
      read_bytes(bytes, length);
      expect_ok(rvm_string_new(bytes, length, &made), made);
      free(bytes);
      return made;
    }
    case 't': return read_tensor();
    case 'u': return read_items(0);
    case 'l': return read_items(1);
    default: fprintf(stderr, "unknown kind of argument\n"); exit(2);
  }
}

/* ---- the digest ---- */

static rvm_sha256 sha;

/* Adds a line of text. */
#define ADD_LINE(...)                                       \
  do {                                                      \
    char line[HEAD_BYTES];                                  \
    rvm_sha256_add(&sha, line, sprintf(line, __VA_ARGS__)); \
  } while (0)

/* Replaces each NaN of a dtype by one NaN.  Elements are numbers of `type`; those with (bits & mask) > infinity are
   NaNs. */
#define CANONICAL(type, mask, infinity, nan)                  \
  for (int64_t i = 0; i < count; i++) {                       \
    type bits;                                                \
    memcpy(&bits, bytes + i * (int)sizeof bits, sizeof bits); \
    if ((bits & (mask)) <= (infinity)) continue;              \
    bits = nan;                                               \
    memcpy(bytes + i * (int)sizeof bits, &bits, sizeof bits); \
  }

static void unify_nans(int32_t dtype, char *bytes, int64_t count) {
  switch (dtype) {
    case RVM_DTYPE_f32: CANONICAL(uint32_t, 0x7fffffffu, 0x7f800000u, 0x7fc00000u) break;
    case RVM_DTYPE_f64: CANONICAL(uint64_t, INT64_MAX, 0x7ff0000000000000u, 0x7ff8000000000000u) break;
    case RVM_DTYPE_f16: CANONICAL(uint16_t, 0x7fff, 0x7c00, 0x7e00) break;
    case RVM_DTYPE_bf16: CANONICAL(uint16_t, 0x7fff, 0x7f80, 0x7fc0) break;
    case RVM_DTYPE_f8e4m3fn: CANONICAL(uint8_t, 0x7f, 0x7e, 0x7f) break;
    case RVM_DTYPE_f8e5m2: CANONICAL(uint8_t, 0x7f, 0x7c, 0x7e) break;
    default: break; /* the dtype has no NaN, or one */
  }
}

static void add_tensor(const rvm_tensor *tensor) {
  static const char *const names[] = {
#define DTYPE(name, code, bits, ctype, numpy) #name,
#include "dtypes.def"
#undef DTYPE
  };
  rvm_value error = {.tag = RVM_TAG_NIL};
  const int32_t dtype = tensor->dtype, rank = tensor->dl.ndim;
  const int64_t count = element_count(rank, tensor->dl.shape);
  ADD_LINE("tensor %s", names[dtype]);
  for (int32_t i = 0; i < rank; i++) ADD_LINE(" %lld", (long long)tensor->dl.shape[i]);
  ADD_LINE("\n");
  const int64_t size_bytes = dtype == RVM_DTYPE_str ? rvm_tensor_packed_bytes(tensor) : count * element_bytes[dtype];
  char *bytes = malloc((size_t)size_bytes + 1);
  if (dtype == RVM_DTYPE_str)
    expect_ok(rvm_tensor_pack(tensor, bytes, size_bytes, &error), error);
  else if (size_bytes > 0)
    memcpy(bytes, tensor->dl.data, (size_t)size_bytes);
  unify_nans(dtype, bytes, count);
  rvm_sha256_add(&sha, bytes, size_bytes);
  free(bytes);
}

static void add_value(rvm_value value) {
  switch (value.tag) {
    case RVM_TAG_NIL: ADD_LINE("none\n"); break;
    case RVM_TAG_BOOL: ADD_LINE("bool %d\n", value.as.i != 0); break;
    case RVM_TAG_INT: ADD_LINE("int %lld\n", (long long)value.as.i); break;
    case RVM_TAG_FLOAT:
      ADD_LINE("float\n");
      unify_nans(RVM_DTYPE_f64, (char *)&value.as.f, 1);
      rvm_sha256_add(&sha, &value.as.f, sizeof value.as.f);
      break;
    case RVM_TAG_STRING:
      ADD_LINE("str %lld\n", (long long)value.as.string->length);
      rvm_sha256_add(&sha, value.as.string->bytes, value.as.string->length);
      break;
    case RVM_TAG_SHAPE:
      ADD_LINE("shape");
      for (int32_t i = 0; i < value.as.shape->rank; i++) ADD_LINE(" %lld", (long long)value.as.shape->dims[i]);
      ADD_LINE("\n");
      break;
    case RVM_TAG_TENSOR: add_tensor(value.as.tensor); break;
    case RVM_TAG_TUPLE:
      ADD_LINE("tuple %d\n", (int)value.as.tuple->size);
      for (int32_t i = 0; i < value.as.tuple->size; i++) add_value(value.as.tuple->items[i]);
      break;
    case RVM_TAG_LIST:
      ADD_LINE("list %d\n", (int)value.as.list->size);
      for (int32_t i = 0; i < value.as.list->size; i++) add_value(value.as.list->items[i]);
      break;
    default: fprintf(stderr, "a result has no digest\n"); exit(2);
  }
}

/* ---- the calls ---- */

static const void *map_file(const char *path, int64_t *size_bytes) {
  const void *bytes;
  rvm_value error = {.tag = RVM_TAG_NIL};
  expect_ok(rvm_file_map(path, &bytes, size_bytes, &error), error);
  return bytes;
}

static void call_next(rvm_machine *machine, const rvm_executable *executable) {
  char name[RVM_MAX_NAME_BYTES + 1] = "";
  rvm_value arguments[MAX_ARGUMENTS], result = {.tag = RVM_TAG_NIL};
  const int64_t length = read_i64();
  if (length > RVM_MAX_NAME_BYTES) exit(2);
  read_bytes(name, length);
  const int32_t count = (int32_t)read_i64(), index = rvm_executable_find(executable, name);
  if (count > MAX_ARGUMENTS) exit(2);
  for (int32_t i = 0; i < count; i++) arguments[i] = read_value();
  const rvm_status status = rvm_machine_call(machine, index, arguments, count, &result);
  printf("%s ", name);
  if (status) {
    printf("%s\n", result.tag == RVM_TAG_ERROR ? result.as.error->message : "failed");
  } else {
    unsigned char digest[RVM_SHA256_BYTES];
    rvm_sha256_start(&sha);
    add_value(result);
    rvm_sha256_finish(&sha, digest);
    for (int i = 0; i < RVM_SHA256_BYTES; i++) printf("%02x", digest[i]);
    printf("\n");
  }
  fflush(stdout);
  rvm_value_release(&result);
  for (int32_t i = 0; i < count; i++) rvm_value_release(&arguments[i]);
}

int main(int argument_count, char **arguments) {
  if (argument_count != 4) {
    fprintf(stderr, "usage: driver FILE.rvm CASES.bin THREADS\n");
    return 2;
  }
  int64_t program_bytes, input_bytes;
  const void *program = map_file(arguments[1], &program_bytes);
  input = map_file(arguments[2], &input_bytes);
  input_end = input + input_bytes;
  rvm_executable *executable = NULL;
  rvm_machine *machine = NULL;
  rvm_value error = {.tag = RVM_TAG_NIL};
  const rvm_load_options options = {.trust_native = 1};
  const rvm_machine_options machine_options = {.threads = atoi(arguments[3])};
  expect_ok(rvm_executable_load(program, program_bytes, &options, &executable, &error), error);
  expect_ok(rvm_machine_new(executable, &machine_options, &machine, &error), error);
  while (input < input_end) call_next(machine, executable);
  rvm_machine_release(machine);
  rvm_executable_release(executable);
  return 0;
}
