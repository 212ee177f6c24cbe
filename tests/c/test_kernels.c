/* test_kernels.c: kernel bytecode: programs that the loader rejects, and accesses that the interpreter prevents in
   every program. */
#include "allocation.h"
#include "check.h"
#include "system.h"
#include "element_functions.h"
#include "kernel.h"
#include "kernel_interpreter.h"
#include "kernel_levels.h"
#include "kernel_verify.h"
#include "micro_kernels.h"
#include "run.h"
#include "tensor.h"
#include "thread_pool.h"

static rvm_value error;

/* ---- the program that tests extend ----

   It reads b0 f32[n], b1 i64[n] and b2 bool[n], and writes b3 f32[n] and b4 i64[n]; b5 and b6 are arrays.  s0 is n. */
enum { IN_F32, IN_I64, IN_BOOL, OUT_F32, OUT_I64, ARRAY, ARRAY_2 };
enum { ELEMENTS = 600, ARRAY_BYTES = 4096, ARRAY_2_BYTES = 128 };
enum { s0, ZERO_, ONE, MANY, MINUS, LAST, FREE, FREE_2, FREE_3, FLAG, v0, v1, v2, w0, w1, w2, ALL };
enum { NO = RVM_NO_REGISTER };

static kernel k;

static void begin(void) {
  const int64_t n[] = {-1};
  k = (kernel){.header = {[SIZES] = 1, [SCALARS] = v0, [STRIPS] = w0 - v0, [VIEWS] = ALL - w0, [SCRATCH] = 4224}};
  kernel_tensor(&k, 1, RVM_DTYPE_f32, 1, n);
  kernel_tensor(&k, 1, RVM_DTYPE_i64, 1, n);
  kernel_tensor(&k, 1, RVM_DTYPE_bool, 1, n);
  kernel_tensor(&k, 0, RVM_DTYPE_f32, 1, n);
  kernel_tensor(&k, 0, RVM_DTYPE_i64, 1, n);
  kernel_array(&k, 0, ARRAY_BYTES);
  kernel_array(&k, ARRAY_BYTES, ARRAY_2_BYTES);
  kernel_constant(&k, 0);
  kernel_constant(&k, 1);
  kernel_constant(&k, INT64_MAX);
  kernel_constant(&k, -1);
  kernel_constant(&k, ELEMENTS - 1);
  kernel_message(&k, "no values");
  kernel_message(&k, "values %lld and %lld");
}

#define E(name, ...) kernel_step(&k, (uint16_t[8]){RVM_KOP_##name, ##__VA_ARGS__})
#define HERE ((uint16_t)k.header[STEPS])

/* Return rows of the tables of functions and micro-kernels. */
static int32_t row_of(const char *wanted) {
  static const char *const names[] = {
#define MICRO_KERNEL(name, header, arguments) #name,
#include "micro_kernels.def"
#undef MICRO_KERNEL
  };
  for (int32_t i = 0; i < rvm_micro_kernel_count; i++)
    if (strcmp(names[i], wanted) == 0) return i;
  abort();
}

/* The rows of a family are consecutive: ADD + 8 is the f32 row. */
enum { ADD = 0, ADD_I64 = 3, ADD_F32 = 8 };
static uint16_t function_of(int result_bytes, int operand_bytes, int arity, int skipped) {
  for (int32_t i = 0; i < rvm_element_function_count; i++) {
    const rvm_element_function *f = &rvm_element_functions[i];
    if (f->result_bytes == result_bytes && f->operand_bytes == operand_bytes && f->arity == arity && skipped-- == 0)
      return (uint16_t)i;
  }
  abort();
}

/* ---- reading programs ---- */

static rvm_status read_bytes(unsigned char *bytes, int64_t size_bytes) {
  rvm_kernel_program program;
  const rvm_status status = rvm_kernel_program_read(bytes, size_bytes, &program, &error);
  free(bytes);
  return status;
}

static rvm_status read_it(void) {
  int64_t size_bytes;
  unsigned char *bytes = kernel_finish(&k, &size_bytes);
  return read_bytes(bytes, size_bytes);
}

#define REFUSED(text, ...)                                   \
  do {                                                       \
    begin();                                                 \
    __VA_ARGS__;                                             \
    E(end);                                                  \
    CHECK_FAILS(read_it(), RVM_BAD_EXECUTABLE, text, error); \
  } while (0)
#define ACCEPTED(...)           \
  do {                          \
    begin();                    \
    __VA_ARGS__;                \
    E(end);                     \
    CHECK_OK(read_it(), error); \
  } while (0)
#define HEADER(word, value) k.header[word] = (uint32_t)(value)

static void headers_are_checked(void) {
  int64_t size_bytes;
  unsigned char *bytes;
  ACCEPTED();
  begin();
  E(end);
  bytes = kernel_finish(&k, &size_bytes);
  CHECK_FAILS(read_bytes(bytes, 63), RVM_BAD_EXECUTABLE, "the program is too short or misaligned", error);
  bytes = memset(aligned_alloc(64, 128), 0, 128);
  rvm_kernel_program program;
  CHECK_FAILS(rvm_kernel_program_read(bytes + 4, 120, &program, &error), RVM_BAD_EXECUTABLE,
              "the program is too short or misaligned", error);
  CHECK_FAILS(read_bytes(bytes, 128), RVM_BAD_EXECUTABLE, "unsupported version 0, expected 2", error);
  REFUSED("unknown flags 0x2", HEADER(FLAGS, 2));
  REFUSED("unknown flags 0x80000001", HEADER(FLAGS, 0x80000001u));
  ACCEPTED(HEADER(FLAGS, RVM_KERNEL_EXACT_FMA));
  REFUSED("the counts in the header are inconsistent", HEADER(VIEWS, 65535 - w0));
  ACCEPTED(HEADER(VIEWS, 65534 - w0));
  REFUSED("the counts in the header are inconsistent", HEADER(STRIPS, UINT32_MAX - v0));
  REFUSED("the counts in the header are inconsistent", HEADER(TENSORS, 65534));
  REFUSED("the table of tensors is too short", HEADER(TENSORS, 65533));
  REFUSED("the counts in the header are inconsistent", HEADER(ARRAYS, UINT32_MAX));
  REFUSED("the counts in the header are inconsistent", HEADER(INPUTS, 6));
  ACCEPTED(HEADER(INPUTS, 5));
  REFUSED("the counts in the header are inconsistent", HEADER(STEPS, -1));
  REFUSED("the counts in the header are inconsistent", HEADER(STEPS, 65535));
  REFUSED("the size does not match the header", HEADER(STEPS, 65534));
  REFUSED("the counts in the header are inconsistent", HEADER(ARGUMENTS, 65536));
  REFUSED("the size does not match the header", HEADER(ARGUMENTS, 65535));
  REFUSED("the counts in the header are inconsistent", HEADER(SCRATCH, 1u << 31));
  ACCEPTED(HEADER(SCRATCH, INT32_MAX));
  REFUSED("the counts in the header are inconsistent", HEADER(CONSTANTS, v0));
  REFUSED("the counts in the header are inconsistent", HEADER(SIZES, UINT32_MAX));
  REFUSED("the size does not match the header", HEADER(CONSTANTS, 6));
  REFUSED("the size does not match the header", HEADER(TENSOR_WORDS, 1000));
  REFUSED("the size does not match the header", HEADER(TENSOR_WORDS, UINT32_MAX));
  REFUSED("the size does not match the header", HEADER(ARRAYS, 1000));
  REFUSED("the size does not match the header", HEADER(MESSAGE_BYTES, 1000));
  begin();
  CHECK_FAILS(read_it(), RVM_BAD_EXECUTABLE, "the counts in the header are inconsistent", error); /* no instruction */
  begin();
  E(copy, FREE, ONE);
  CHECK_FAILS(read_it(), RVM_BAD_EXECUTABLE, "the last instruction must be end", error);
  begin();
  E(copy, FREE, v0);
  CHECK_FAILS(read_it(), RVM_BAD_EXECUTABLE, "copy: operand src is invalid, got 10", error);
  /* a program truncated at each length */
  begin();
  E(end);
  bytes = kernel_finish(&k, &size_bytes);
  for (int64_t size = 64; size < size_bytes; size += 8) {
    unsigned char *copy = memcpy(aligned_alloc(64, 1024), bytes, (size_t)size);
    CHECK_FAILS(read_bytes(copy, size), RVM_BAD_EXECUTABLE, "the size does not match the header", error);
  }
  bytes = realloc(bytes, 2048); /* one byte too many */
  unsigned char *longer = memset(aligned_alloc(64, 2048), 0, 2048);
  memcpy(longer, bytes, (size_t)size_bytes);
  free(bytes);
  CHECK_FAILS(read_bytes(longer, size_bytes + 8), RVM_BAD_EXECUTABLE, "the size does not match the header", error);
}

static int64_t *word(int at) { return (int64_t *)(void *)k.tensors.bytes + at; }

static uint32_t *array_word(int at) { return (uint32_t *)(void *)k.arrays.bytes + at; }

static void tables_are_checked(void) {
  REFUSED("tensor 0 has an unknown dtype or an invalid rank", *word(0) = -1);
  REFUSED("tensor 0 has an unknown dtype or an invalid rank", *word(0) = RVM_DTYPE_COUNT);
  REFUSED("tensor 0 has an unknown dtype or an invalid rank", *word(0) = RVM_DTYPE_str);
  ACCEPTED(*word(0) = RVM_DTYPE_f64);
  REFUSED("tensor 0 has an unknown dtype or an invalid rank", *word(1) = -1);
  REFUSED("tensor 0 has an unknown dtype or an invalid rank", *word(1) = RVM_MAX_RANK + 1);
  REFUSED("the table of tensors is too short", *word(1) = RVM_MAX_RANK);
  REFUSED("the table of tensors is too short", *word(13) = 2);
  REFUSED("the table of tensors is too short", HEADER(TENSORS, 6));
  REFUSED("the table of tensors does not match its number of words or sizes", HEADER(TENSORS, 4), HEADER(SIZES, 1));
  REFUSED("tensor 0 refers to an unknown size", *word(2) = -2);
  REFUSED("tensor 0 refers to an unknown size", *word(2) = -2, HEADER(SIZES, 2));
  REFUSED("tensor 1 refers to an unknown size", *word(5) = -2);
  REFUSED("tensor 1 refers to an unknown size", *word(5) = -3, HEADER(SIZES, 2));
  REFUSED("tensor 1 refers to an unknown size", *word(5) = INT64_MIN);
  ACCEPTED(*word(5) = -2, HEADER(SIZES, 2));
  REFUSED("the table of tensors does not match its number of words or sizes", HEADER(SIZES, 2));
  ACCEPTED(*word(5) = 7);
  ACCEPTED(*word(5) = INT64_MAX);
  REFUSED("array 0 lies outside", *array_word(0) = 8);
  REFUSED("array 1 lies outside", *array_word(2) = ARRAY_BYTES + 192);
  REFUSED("array 1 lies outside", *array_word(3) = ARRAY_2_BYTES + 1);
  REFUSED("array 1 lies outside", *array_word(3) = UINT32_MAX);
  ACCEPTED(*array_word(2) = ARRAY_BYTES + 128, *array_word(3) = 0);
  REFUSED("a message does not end with NUL", HEADER(MESSAGES, 1));
  REFUSED("a message does not end with NUL", HEADER(MESSAGES, 3));
  REFUSED("a message does not end with NUL", k.messages.bytes[k.messages.size - 1] = 'x');
  REFUSED("a message does not end with NUL", k.messages.bytes[k.messages.size - 1] = 'x', k.messages.bytes[3] = 0);
  begin();
  k.messages.size = 0;
  HEADER(MESSAGES, 0), HEADER(MESSAGE_BYTES, 0);
  E(end);
  CHECK_OK(read_it(), error);
}

#define OPERAND(op, name, value, ...) REFUSED(#op ": operand " #name " is invalid, got " value, __VA_ARGS__)

static void operands_are_checked(void) {
  REFUSED("instruction 0 has opcode", kernel_step(&k, (uint16_t[8]){RVM_KOP_COUNT}));
  REFUSED("instruction 0 has opcode 65535", kernel_step(&k, (uint16_t[8]){65535}));
  REFUSED("end: an unused operand is not 0", E(end, 1));
  REFUSED("end: an unused operand is not 0", E(end, 0, 0, 0, 0, 0, 0, 1));
  REFUSED("copy: an unused operand is not 0", E(copy, FREE, ONE, 1));
  OPERAND(copy, dst, "10", E(copy, v0, ONE));
  OPERAND(copy, src, "10", E(copy, FREE, v0));
  ACCEPTED(E(copy, FLAG, FLAG));
  OPERAND(fill, dst, "9", E(fill, FLAG, ONE, ONE, 4));
  OPERAND(fill, dst, "13", E(fill, w0, ONE, ONE, 4));
  ACCEPTED(E(fill, v0, ONE, ONE, 4), E(fill, v2, ONE, ONE, 4));
  OPERAND(fill, size, "3", E(fill, v0, ONE, ONE, 3));
  OPERAND(fill, size, "0", E(fill, v0, ONE, ONE, 0));
  OPERAND(fill, size, "16", E(fill, v0, ONE, ONE, 16));
  ACCEPTED(E(fill, v0, ONE, ONE, 1), E(fill, v0, ONE, ONE, 2), E(fill, v0, ONE, ONE, 8));
  OPERAND(iota, dst, "9", E(iota, FLAG, ONE, ONE));
  OPERAND(iota, dst, "16", E(iota, ALL, ONE, ONE));
  ACCEPTED(E(iota, v0, ONE, ONE), E(iota, v2, ONE, ONE));
  ACCEPTED(E(view_written, w2, OUT_I64, ONE, 8), E(iota, w2, ONE, ONE));
  OPERAND(view, view, "12", E(view, v2, IN_F32, ONE, 4));
  OPERAND(view, view, "16", E(view, ALL, IN_F32, ONE, 4));
  OPERAND(view, buffer, "7", E(view, w0, 7, ONE, 4));
  ACCEPTED(E(view, w0, ARRAY_2, ONE, 4));
  OPERAND(view_written, buffer, "2", E(view_written, w0, IN_BOOL, ONE, 1));
  OPERAND(view_written, buffer, "7", E(view_written, w0, 7, ONE, 1));
  ACCEPTED(E(view_written, w0, OUT_F32, ONE, 4));
  OPERAND(move, dst, "9", E(move, FLAG, v0, 4));
  OPERAND(move, src, "16", E(move, v0, ALL, 4));
  ACCEPTED(E(move, v0, FLAG, 4));
  OPERAND(gather, mask, "16", E(gather, v0, IN_F32, v1, 4, ALL));
  ACCEPTED(E(gather, v0, IN_F32, v1, 4, NO), E(gather, v0, IN_F32, v1, 4, v2));
  OPERAND(apply, function, "", E(apply, v0, v0, v0, (uint16_t)rvm_element_function_count));
  OPERAND(apply, dst, "16", E(apply, ALL, v0, v0, ADD));
  ACCEPTED(E(apply, FREE, ONE, ONE, ADD), E(apply, v0, v0, FREE, ADD));
  OPERAND(jump, target, "2", E(jump, 2));
  ACCEPTED(E(jump, 1));
  OPERAND(invoke, kernel, "", E(invoke, (uint16_t)rvm_micro_kernel_count, 0, 0));
  OPERAND(invoke, first, "1", E(invoke, 0, 1, 0));
  OPERAND(invoke, count, "1", E(invoke, 0, 0, 1));
  OPERAND(parallel, first_array, "3", E(parallel, FREE, FREE_2, ONE, ONE, 2, 3, 0), E(end));
  OPERAND(parallel, last_array, "3", E(parallel, FREE, FREE_2, ONE, ONE, 2, 0, 3), E(end));
  ACCEPTED(E(parallel, FREE, FREE_2, ONE, ONE, 2, 2, 2), E(end));
  OPERAND(fail, status, "0", E(fail, RVM_OK, 0, 0, 0));
  OPERAND(fail, status, "16", E(fail, RVM_TIMEOUT + 1, 0, 0, 0));
  ACCEPTED(E(fail, RVM_TIMEOUT, 0, 0, 0), E(fail, 1, 0, 0, 0));
  OPERAND(fail, message, "2", E(fail, 1, 2, 0, 0));
  REFUSED("load: the element size must be that of the tensor", E(load, FREE, IN_F32, ONE, 8));
  REFUSED("store: the element size must be that of the tensor", E(store, OUT_F32, ONE, ONE, 8));
  REFUSED("gather: the element size must be that of the tensor", E(gather, v0, IN_BOOL, v1, 4, NO));
  ACCEPTED(E(load, FREE, IN_BOOL, ONE, 1), E(load, FREE, ARRAY, ONE, 8), E(load, FREE, ARRAY, ONE, 1),
           E(store, OUT_I64, ONE, ONE, 8));
}

static void functions_and_calls_are_checked(void) {
  const uint16_t neg = function_of(4, 4, 1, 0), less = function_of(1, 4, 2, 0);
  REFUSED("apply: a scalar result requires scalar operands", E(apply, FREE, v0, ONE, ADD));
  REFUSED("apply: a scalar result requires scalar operands", E(apply, FREE, ONE, v0, ADD));
  REFUSED("apply: the function takes one operand, and right must be left", E(apply, v0, FREE, v1, neg));
  REFUSED("apply: the function takes one operand, and right must be left", E(apply, FREE, FREE, FREE_2, neg));
  ACCEPTED(E(apply, v0, v1, v1, neg), E(apply, v0, v1, v2, ADD));
  REFUSED("accumulate: the function must take two elements", E(accumulate, v0, v1, neg));
  REFUSED("accumulate: the function must take two elements", E(accumulate, v0, v1, less));
  REFUSED("fold: the function must take two elements", E(fold, FREE, v1, ONE, neg));
  REFUSED("fold_lanes: the function must take two elements", E(fold_lanes, FREE, v1, ONE, neg));
  REFUSED("fold_lanes: the function must take two elements", E(fold_lanes, FREE, v1, ONE, less));
  ACCEPTED(E(accumulate, v0, v1, ADD), E(fold, FREE, v1, ONE, ADD), E(fold_lanes, FREE, v1, ONE, ADD));
  REFUSED("fail: expected 0 values and at most 16, got 1", E(fail, 1, 0, 0, 1),
          kernel_arguments(&k, (uint16_t[]){0}, 1));
  REFUSED("fail: expected 2 values and at most 16, got 1", E(fail, 1, 1, 0, 1),
          kernel_arguments(&k, (uint16_t[]){0}, 1));
  REFUSED("the arguments exceed the table", E(fail, 1, 1, 1, 2), kernel_arguments(&k, (uint16_t[]){0, 0}, 2));
  REFUSED("argument 1 must be a scalar", E(fail, 1, 1, 0, 2), kernel_arguments(&k, (uint16_t[]){0, v0}, 2));
  REFUSED("argument 0 must be a scalar", E(fail, 1, 1, 0, 2), kernel_arguments(&k, (uint16_t[]){v0, 0}, 2));
  ACCEPTED(E(fail, 1, 1, 0, 2), kernel_arguments(&k, (uint16_t[]){0, FLAG}, 2));
  char message[17 * 4 + 1] = "";
  uint16_t zeros[17] = {0};
  for (int i = 0; i < 16; i++) strcat(message, "%lld");
  ACCEPTED(kernel_message(&k, message), E(fail, 1, 2, 0, 16), kernel_arguments(&k, zeros, 16));
  strcat(message, "%lld");
  REFUSED("fail: expected 17 values and at most 16, got 17", kernel_message(&k, message), E(fail, 1, 2, 0, 17),
          kernel_arguments(&k, zeros, 17));
  REFUSED("parallel: the loop body must end before instruction exit", E(parallel, FREE, FREE_2, ONE, ONE, 1, 0, 0),
          E(end));
  REFUSED("parallel: the loop body must end before instruction exit", E(parallel, FREE, FREE_2, ONE, ONE, 0, 0, 0),
          E(end));
  REFUSED("parallel: the loop body must end before instruction exit", E(parallel, FREE, FREE_2, ONE, ONE, 2, 0, 0),
          E(copy, FREE, ONE));
  const uint16_t copy = (uint16_t)row_of("rvm_copy_bytes"); /* P p i */
  const uint16_t good[] = {ARRAY, ZERO_, IN_F32, ZERO_, ONE};
#define INVOKES(first, count, ...) \
  E(invoke, copy, first, count), kernel_arguments(&k, (uint16_t[]){__VA_ARGS__}, sizeof((uint16_t[]){__VA_ARGS__}) / 2)
  ACCEPTED(E(invoke, copy, 0, 5), kernel_arguments(&k, good, 5));
  REFUSED("the arguments exceed the table", INVOKES(1, 4, ONE, ARRAY, ZERO_, IN_F32, ZERO_));
  REFUSED("the arguments exceed the table", INVOKES(0, 1, ARRAY));
  REFUSED("the arguments exceed the table", INVOKES(0, 2, ARRAY, ZERO_));
  REFUSED("the arguments exceed the table", INVOKES(0, 4, ARRAY, ZERO_, IN_F32, ZERO_));
  REFUSED("wrong number of arguments", INVOKES(0, 4, ARRAY, ZERO_, IN_F32, ZERO_, ONE));
  REFUSED("wrong number of arguments", INVOKES(0, 6, ARRAY, ZERO_, IN_F32, ZERO_, ONE, ONE));
  REFUSED("an argument must be a buffer that the instruction may access",
          INVOKES(0, 5, IN_F32, ZERO_, IN_F32, ZERO_, ONE));
  REFUSED("an argument must be a buffer that the instruction may access", INVOKES(0, 5, ARRAY, ZERO_, 7, ZERO_, ONE));
  REFUSED("an argument must be a scalar", INVOKES(0, 5, ARRAY, ZERO_, IN_F32, v0, ONE));
  REFUSED("an argument must be a scalar", INVOKES(0, 5, ARRAY, ZERO_, IN_F32, ZERO_, v0));
}

#define OTHER_SIZE(name, ...)                                                                                 \
  REFUSED("operand " #name " must be a view that an earlier instruction makes, of elements of the same size", \
          __VA_ARGS__)
#define VIEW(w, buffer, bytes) E(view, w, buffer, ZERO_, bytes)
#define VIEWS() VIEW(w0, ARRAY, 4), VIEW(w1, ARRAY, 8), VIEW(w2, ARRAY, 1)

/* Otherwise, a strip of many bytes could be read as a strip of fewer, longer elements, which would be misaligned. */
static void views_have_elements_of_one_size(void) {
  const uint16_t to_i64 = function_of(8, 4, 1, 0);
  OTHER_SIZE(view, VIEW(w0, ARRAY, 4), VIEW(w0, ARRAY, 8));
  OTHER_SIZE(view, VIEW(w0, ARRAY, 4), E(view_written, w0, ARRAY, ZERO_, 8));
  OTHER_SIZE(src, E(move, v0, w0, 4));
  OTHER_SIZE(src, VIEWS(), E(move, v0, w0, 8));
  OTHER_SIZE(dst, VIEWS(), E(move, w0, v0, 8));
  OTHER_SIZE(dst, VIEWS(), E(iota, w0, ONE, ONE));
  OTHER_SIZE(dst, VIEWS(), E(apply, w0, v0, v0, to_i64));
  OTHER_SIZE(left, VIEWS(), E(apply, v0, w1, w1, to_i64));
  OTHER_SIZE(right, VIEWS(), E(apply, v0, v0, w1, ADD_F32));
  OTHER_SIZE(src, VIEWS(), E(accumulate, v0, w1, ADD_F32));
  OTHER_SIZE(dst, VIEWS(), E(gather, w1, ARRAY, v0, 4, NO));
  OTHER_SIZE(indices, VIEWS(), E(gather, v0, ARRAY, w0, 4, NO));
  OTHER_SIZE(mask, VIEWS(), E(gather, v0, ARRAY, v0, 4, w0));
  OTHER_SIZE(dst, VIEWS(), E(strided, w1, ARRAY, ONE, ONE, 4, NO));
  OTHER_SIZE(mask, VIEWS(), E(strided, v0, ARRAY, ONE, ONE, 4, w0));
  OTHER_SIZE(dst, VIEWS(), E(load_rows, w1, ARRAY, ONE, ONE, ONE, ONE, 4));
  OTHER_SIZE(src, VIEWS(), E(store_rows, ARRAY, ONE, ONE, ONE, ONE, w1, 4));
  OTHER_SIZE(dst, VIEWS(), E(iota_rows, w0, ONE, ONE, ONE, ONE));
  OTHER_SIZE(indices, VIEWS(), E(scatter, ARRAY, w0, v0, 4));
  OTHER_SIZE(src, VIEWS(), E(scatter, ARRAY, v0, w1, 4));
  OTHER_SIZE(src, VIEWS(), E(store_strided, ARRAY, ONE, ONE, w1, 4));
  OTHER_SIZE(dst, VIEWS(), E(choose, w1, v0, v0, v0, 4));
  OTHER_SIZE(condition, VIEWS(), E(choose, v0, w0, v0, v0, 4));
  OTHER_SIZE(left, VIEWS(), E(choose, v0, v0, w1, v0, 4));
  OTHER_SIZE(right, VIEWS(), E(choose, v0, v0, v0, w1, 4));
  ACCEPTED(VIEWS(), VIEWS(), E(move, w0, w0, 4), E(move, v0, FREE, 4), E(iota, w1, ONE, ONE),
           E(apply, w1, w0, w0, to_i64), E(accumulate, v0, w0, ADD_F32), E(gather, w0, ARRAY, w1, 4, w2),
           E(gather, w0, ARRAY, w1, 4, NO), E(strided, w0, ARRAY, ONE, ONE, 4, w2),
           E(load_rows, w0, ARRAY, ONE, ONE, ONE, ONE, 4), E(store_rows, ARRAY, ONE, ONE, ONE, ONE, w0, 4),
           E(iota_rows, w1, ONE, ONE, ONE, ONE), E(scatter, ARRAY, w1, w0, 4), E(store_strided, ARRAY, ONE, ONE, w0, 4),
           E(choose, w0, w2, w0, w0, 4));
}

#include "test_kernels_runs.h" /* uses the definitions above */

/* ---- the section ---- */

static rvm_status load_section(const char *parameters, const uint32_t *head, size_t head_words, int kernels,
                               int64_t cut) {
  image program = {0};
  loaded exe;
  image_packed(&program, "vm.builtin.make_tuple");
  image_function(&program, RVM_KIND_kernel, "first", parameters, 0);
  image_function(&program, RVM_KIND_kernel, "second", parameters, 0);
  buffer_add(&program.kernels, head, head_words * 4);
  for (int i = 0; i < kernels; i++) {
    int64_t size_bytes;
    if (k.header[STEPS] == 0) begin(), E(end);
    unsigned char *bytes = kernel_finish(&k, &size_bytes);
    buffer_add(&program.kernels, bytes, (size_t)(size_bytes + cut));
    free(bytes);
  }
  const rvm_status status = image_load(&program, &exe, &error);
  loaded_release(&exe);
  return status;
}

static void the_section_is_checked(void) {
  int64_t size_bytes;
  begin(), E(end);
  free(kernel_finish(&k, &size_bytes));
  const uint32_t size = (uint32_t)size_bytes;
#define SECTION(kernels, cut, ...) \
  load_section("a b c d e", (uint32_t[]){__VA_ARGS__}, COUNT_OF(((uint32_t[]){__VA_ARGS__})), kernels, cut)
#define BAD_SECTION(text, kernels, cut, ...) \
  CHECK_FAILS(SECTION(kernels, cut, __VA_ARGS__), RVM_BAD_EXECUTABLE, text, error)
  CHECK_OK(SECTION(2, 0, 2, 0, 1, size, 2, size), error);
  BAD_SECTION("the section of kernels is too short", 0, 0, 2);
  BAD_SECTION("the section of kernels is too short", 2, 0, 2, 1, 1, size, 2, size);
  BAD_SECTION("the section of kernels is too short", 0, 0, 2, 0, 1, size);
  BAD_SECTION("the section of kernels is too short", 0, 0, UINT32_MAX, 0, 1, size);
  BAD_SECTION("kernel program 0 refers to a function that is not a kernel or is out of order", 1, 0, 1, 0, 3, size);
  BAD_SECTION("kernel program 0 refers to a function that is not a kernel or is out of order", 1, 0, 1, 0, 0, size);
  BAD_SECTION("kernel program 0 refers to a function that is not a kernel or is out of order", 1, 0, 1, 0, INT32_MAX,
              size);
  BAD_SECTION("kernel program 1 refers to a function that is not a kernel or is out of order", 2, 0, 2, 0, 2, size, 1,
              size);
  BAD_SECTION("kernel program 1 refers to a function that is not a kernel or is out of order", 2, 0, 2, 0, 1, size, 1,
              size);
  BAD_SECTION("kernel program 0 exceeds its section", 1, 0, 1, 0, 1, size + 8);
  BAD_SECTION("kernel program 0 exceeds its section", 1, 0, 1, 0, 1, UINT32_MAX - 7);
  BAD_SECTION("kernel program 0 exceeds its section", 1, 0, 1, 0, 1, size - 4);
  BAD_SECTION("the size does not match the header", 1, 0, 1, 0, 1, size - 8);
  BAD_SECTION("bytes follow the last kernel program", 2, 0, 1, 0, 1, size);
  BAD_SECTION("function second is native, but the native section is missing", 1, 0, 1, 0, 1, size);
  CHECK_FAILS(load_section("a b c d", (uint32_t[]){1, 0, 1, size}, 4, 1, 0), RVM_BAD_EXECUTABLE,
              "tensors, but its function has", error);
  begin(), k.messages.bytes[0] = 0xff, E(end);
  BAD_SECTION("the messages of kernel program 0 must be UTF-8 text", 1, 0, 1, 0, 1, size);
  begin(), k.messages.bytes[10] = 0xc3, E(end);
  BAD_SECTION("the messages of kernel program 0 must be UTF-8 text", 1, 0, 1, 0, 1, size);
}

/* Each failing allocation makes the load or the run fail without a leak. */
static void runs_without_memory_fail(void) {
  const uint16_t good[] = {ARRAY, ZERO_, IN_F32, ZERO_, LAST};
  int64_t size_bytes;
  begin(), E(end);
  free(kernel_finish(&k, &size_bytes));
  rvm_pool *const whole = pool;
  for (long n = 0; n < 40; n++) {
    allocations_left = n;
    rvm_status status =
        load_section("a b c d e", (uint32_t[]){2, 0, 1, (uint32_t)size_bytes, 2, (uint32_t)size_bytes}, 6, 2, 0);
    CHECK(status == RVM_OK || status == RVM_OUT_OF_MEMORY);
    if (status) rvm_value_release(&error);
    allocations_left = -1;
    pool = rvm_pool_new(1);
    allocations_left = n;
    begin(), kernel_arguments(&k, good, 5);
    PARALLEL(s0, ONE), E(invoke, (uint16_t)row_of("rvm_copy_bytes"), 0, 5), E(copy, FREE, ONE), E(copy, FREE, ONE),
        E(end), E(end);
    threads = 1 + n % 2;
    status = run_with(tensors, 5);
    allocations_left = -1;
    CHECK(status == RVM_OK || status == RVM_OUT_OF_MEMORY);
    if (status) rvm_value_release(&error);
    rvm_pool_close(pool);
  }
  pool = whole;
  threads = 1;
}

/* The kernel, which never ends, is loaded from a file and runs in machines with limits. */
static void machines_limit_kernels(void) {
  image program = {0};
  loaded exe;
  rvm_machine *machine;
  int64_t size_bytes;
  const uint32_t kernel_ = image_function(&program, RVM_KIND_kernel, "kernel", "a b c d e", 0);
  begin(), E(parallel, FREE, FREE_2, s0, ONE, 4, 0, 0), E(unless, FREE, 3), E(jump, 2), E(end), E(jump, 0), E(end);
  unsigned char *bytes = kernel_finish(&k, &size_bytes);
  buffer_add(&program.kernels, (uint32_t[]){1, 0, kernel_, (uint32_t)size_bytes}, 16);
  buffer_add(&program.kernels, bytes, (size_t)size_bytes);
  free(bytes);
  MAKE(exe, image_load(&program, &exe, &error));
  for (int32_t count = 1; count <= 3; count += 2) {
    MAKE(machine, rvm_machine_new(exe.executable, &(rvm_machine_options){.max_steps = 1000000, .threads = count},
                                  &machine, &error));
    CHECK_FAILS(rvm_machine_call(machine, (int32_t)kernel_, tensors, 5, &error), RVM_TIMEOUT, "1000000 steps", error);
    rvm_machine_release(machine);
    const int64_t start = rvm_clock_now();
    MAKE(machine, rvm_machine_new(exe.executable, &(rvm_machine_options){.max_nanoseconds = 20000000, .threads = count},
                                  &machine, &error));
    CHECK_FAILS(rvm_machine_call(machine, (int32_t)kernel_, tensors, 5, &error), RVM_TIMEOUT, "0.020 seconds", error);
    CHECK(rvm_clock_now() - start < INT64_C(2000000000));
    rvm_machine_release(machine);
    MAKE(machine, rvm_machine_new(exe.executable, &(rvm_machine_options){.max_bytes = 1000, .threads = count}, &machine,
                                  &error));
    CHECK_FAILS(rvm_machine_call(machine, (int32_t)kernel_, tensors, 5, &error), RVM_OUT_OF_MEMORY,
                "1000 bytes (max_bytes)", error);
    rvm_machine_release(machine);
  }
  loaded_release(&exe);
}

/* This runtime has no exact fused multiply-adds (RVM_WITHOUT_EXACT_FMA).  A program that requires them fails, unless
   the processor has instructions for them. */
static void exact_sums_need_a_level_with_fma(void) {
  CHECK(rvm_kernel_level_within(NULL) == rvm_kernel_level_here());
  CHECK(rvm_kernel_level_within("") && rvm_kernel_level_within("x86-64") == rvm_kernel_level_within(""));
  CHECK(rvm_kernel_level_within("x86-64-v4 avx512vnni") && !rvm_kernel_level_within("x86-64-v5"));
  CHECK(!rvm_kernel_level_within("x86-64-v3 avx1") && !rvm_kernel_level_within("x86-64-v"));
  begin();
  HEADER(FLAGS, RVM_KERNEL_EXACT_FMA);
  E(end);
  if (rvm_kernel_level_here()->has_fma)
    CHECK_OK(run_with(tensors, 5), error);
  else
    CHECK_FAILS(run_with(tensors, 5), RVM_UNSUPPORTED, "requires exact fused multiply-adds", error);
}

int main(void) {
  MAKE(pool, (pool = rvm_pool_new(1)) ? RVM_OK : RVM_OUT_OF_MEMORY);
  headers_are_checked();
  tables_are_checked();
  operands_are_checked();
  functions_and_calls_are_checked();
  views_have_elements_of_one_size();
  make_tensors();
  accesses_stay_inside_of_their_buffers();
  strips_have_room();
  strips_go_on();
  blocks_go_on();
  scalars_have_no_undefined_results();
  stated_failures_have_their_text();
  arguments_are_compared_with_the_tensors();
  outputs_are_the_programs_own();
  tensors_without_elements_have_none();
  memory_holds_no_addresses_afterwards();
  parallel_loops_are_whole();
  indices_are_safe_while_threads_run();
  every_loop_has_an_end();
  looks_follow_each_other();
  micro_kernels_end_with_the_run();
  the_section_is_checked();
  runs_without_memory_fail();
  machines_limit_kernels();
  exact_sums_need_a_level_with_fma();
  release_tensors();
  rvm_pool_close(pool);
  return CHECK_RESULT();
}
