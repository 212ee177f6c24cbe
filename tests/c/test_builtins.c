/* test_builtins.c: every builtin, with at least one call that succeeds and one that fails.  A row of builtins.def
   without a test here does not compile, and one without both kinds of call fails. */
#include "registry.h"
#include "check.h"
#include "image.h"
#include "machine.h"

static int good_calls[RVM_BUILTIN_COUNT], bad_calls[RVM_BUILTIN_COUNT];
static rvm_machine *machine;
static rvm_value context, concat; /* concat: a bytecode function of two parameters that returns a tuple */
static rvm_value effectful;       /* a bytecode function that is marked as having effects */

#define ARGUMENTS(...) \
  (rvm_value[]){int_value(0), ##__VA_ARGS__} + 1, COUNT_OF(((rvm_value[]){int_value(0), ##__VA_ARGS__})) - 1

/* Checks that the call succeeds, and that its result fulfils the condition in `got`. */
#define GOOD(name, condition, ...)                                         \
  do {                                                                     \
    rvm_value got = {0};                                                   \
    CHECK_OK(rvm_builtin_##name(NULL, ARGUMENTS(__VA_ARGS__), &got), got); \
    CHECK(condition);                                                      \
    rvm_value_release(&got);                                               \
    good_calls[RVM_BUILTIN_##name]++;                                      \
  } while (0)

#define BAD(name, status, text, ...)                                                        \
  do {                                                                                      \
    rvm_value got = {0};                                                                    \
    CHECK_FAILS(rvm_builtin_##name(NULL, ARGUMENTS(__VA_ARGS__), &got), status, text, got); \
    bad_calls[RVM_BUILTIN_##name]++;                                                        \
  } while (0)

#define INT(i) int_value(i)
#define NIL ((rvm_value){.tag = RVM_TAG_NIL})
#define BOOL(truth) ((rvm_value){.tag = RVM_TAG_BOOL, .as.i = truth})
#define FLOAT(number) ((rvm_value){.tag = RVM_TAG_FLOAT, .as.f = number})
#define DTYPE_OF(name) ((rvm_value){.tag = RVM_TAG_DTYPE, .as.i = RVM_DTYPE_##name})
enum { ANY, STORE, EQUAL, EQUAL_HEAP };

static int is_shape(rvm_value value, int32_t rank, const int64_t *dims) {
  return value.tag == RVM_TAG_SHAPE && value.as.shape->rank == rank &&
         (rank == 0 || memcmp(value.as.shape->dims, dims, (size_t)rank * sizeof *dims) == 0);
}

static rvm_value make_heap(int64_t slots) { return tensor_value(RVM_DTYPE_i64, 1, &slots); }
static int64_t slot(rvm_value heap, int i) { return ((int64_t *)heap.as.tensor->dl.data)[i]; }

static void test_copy(void) {
  rvm_value text = string_value("text");
  GOOD(copy, got.as.string == text.as.string && text.as.object->references == 2, text);
  CHECK_INT(text.as.object->references, 1);
  BAD(copy, RVM_ARGUMENT_ERROR, "vm.builtin.copy (any -> any): wrong number of arguments: 0");
  BAD(copy, RVM_ARGUMENT_ERROR, "wrong number of arguments: 2", text, text);
  BAD(copy, RVM_TYPE_ERROR, "expected argument 1 to be a value, got context", context);
  rvm_value_release(&text);
}

static void test_null_value(void) {
  GOOD(null_value, got.tag == RVM_TAG_NIL);
  BAD(null_value, RVM_ARGUMENT_ERROR, "wrong number", INT(1));
}

static void test_read_if_cond(void) {
  GOOD(read_if_cond, got.tag == RVM_TAG_BOOL && got.as.i == 1, INT(-2));
  GOOD(read_if_cond, got.tag == RVM_TAG_BOOL && got.as.i == 0, BOOL(0));
  BAD(read_if_cond, RVM_TYPE_ERROR, "condition: expected", FLOAT(1));
  BAD(read_if_cond, RVM_TYPE_ERROR, "got nil", NIL);
}

static void test_assert(void) {
  rvm_value where = string_value("x must be positive");
  GOOD(assert, got.tag == RVM_TAG_NIL, BOOL(1), where);
  BAD(assert, RVM_ASSERTION_ERROR, "x must be positive", INT(0), where);
  BAD(assert, RVM_TYPE_ERROR, "condition", FLOAT(0), where);
  BAD(assert, RVM_TYPE_ERROR, "argument 2 to be a string, got int", BOOL(1), INT(1));
  rvm_value_release(&where);
}

static void test_alloc_storage(void) {
  const int64_t dims[] = {2, 3}, vast[] = {INT64_MAX, 3};
  rvm_value shape = shape_value(2, dims), too_large = shape_value(2, vast);
  GOOD(alloc_storage, got.as.storage->size_bytes == 24 && (intptr_t)got.as.storage->bytes % 64 == 0, context, shape,
       INT(0), DTYPE_OF(f32));
  GOOD(alloc_storage, got.as.storage->size_bytes == 7, context, INT(7), INT(0), DTYPE_OF(u8));
  GOOD(alloc_storage, got.as.storage->size_bytes == 0, context, INT(0), INT(0), DTYPE_OF(f64));
  BAD(alloc_storage, RVM_SHAPE_ERROR, "negative", context, INT(-1), INT(0), DTYPE_OF(u8));
  BAD(alloc_storage, RVM_SHAPE_ERROR, "64 bits", context, too_large, INT(0), DTYPE_OF(u8));
  BAD(alloc_storage, RVM_OUT_OF_MEMORY, "cannot allocate", context, INT((int64_t)1 << 60), INT(0), DTYPE_OF(u8));
  BAD(alloc_storage, RVM_UNSUPPORTED, "unknown device 1", context, INT(1), INT(1), DTYPE_OF(u8));
  BAD(alloc_storage, RVM_TYPE_ERROR, "argument 2 to be an int or a shape", context, NIL, INT(0), DTYPE_OF(u8));
  BAD(alloc_storage, RVM_TYPE_ERROR, "argument 1 to be the context", INT(1), INT(1), INT(0), DTYPE_OF(u8));
  rvm_value_release(&shape);
  rvm_value_release(&too_large);
}

static void test_alloc_tensor(void) {
  const int64_t dims[] = {2, 3}, negative[] = {-1}, none[] = {0};
  rvm_value storage, shape = shape_value(2, dims), bad_shape = shape_value(1, negative), empty = shape_value(1, none);
  MAKE(storage, rvm_storage_new(rvm_machine_pool(context.as.machine), 32, &storage));
  GOOD(alloc_tensor,
       got.as.tensor->dl.data == storage.as.storage->bytes + 8 && got.as.tensor->owner == storage.as.object, storage,
       INT(8), shape, DTYPE_OF(f32));
  GOOD(alloc_tensor, rvm_tensor_size_bytes(got.as.tensor) == 0, storage, INT(32), empty, DTYPE_OF(f32));
  BAD(alloc_tensor, RVM_OUT_OF_MEMORY, "24 bytes at offset 12 do not fit into a storage of 32 bytes", storage, INT(12),
      shape, DTYPE_OF(f32));
  BAD(alloc_tensor, RVM_OUT_OF_MEMORY, "do not fit", storage, INT(64), empty, DTYPE_OF(f32));
  BAD(alloc_tensor, RVM_INDEX_ERROR, "offset 2 ", storage, INT(2), shape, DTYPE_OF(f32));
  BAD(alloc_tensor, RVM_INDEX_ERROR, "offset -4 ", storage, INT(-4), shape, DTYPE_OF(f32));
  BAD(alloc_tensor, RVM_SHAPE_ERROR, "negative", storage, INT(0), bad_shape, DTYPE_OF(f32));
  BAD(alloc_tensor, RVM_TYPE_ERROR, "argument 1 to be a storage, got shape", shape, INT(0), shape, DTYPE_OF(f32));
  rvm_value_release(&storage);
  rvm_value_release(&shape);
  rvm_value_release(&bad_shape);
  rvm_value_release(&empty);
}

static void test_alloc_shape_heap(void) {
  GOOD(alloc_shape_heap, got.as.tensor->dtype == RVM_DTYPE_i64 && got.as.tensor->dl.shape[0] == 4 && slot(got, 3) == 0,
       context, INT(4));
  BAD(alloc_shape_heap, RVM_SHAPE_ERROR, "negative", context, INT(-4));
}

static void test_match_shape(void) {
  const int64_t dims[] = {5, 6, 7};
  rvm_value tensor = tensor_value(RVM_DTYPE_u8, 3, dims), shape = shape_value(3, dims), heap = make_heap(2);
  rvm_value where = string_value("main: x"), scalar = tensor_value(RVM_DTYPE_u8, 0, NULL);
  GOOD(match_shape, got.tag == RVM_TAG_NIL && slot(heap, 1) == 6, tensor, heap, INT(3), INT(ANY), INT(99), INT(STORE),
       INT(1), INT(EQUAL), INT(7), where);
  GOOD(match_shape, 1, shape, heap, INT(3), INT(EQUAL), INT(5), INT(EQUAL_HEAP), INT(1), INT(ANY), INT(0), where);
  GOOD(match_shape, 1, scalar, NIL, INT(0), where);
  BAD(match_shape, RVM_SHAPE_ERROR, "main: x: expected dimension 1 to be 4, got 6", tensor, NIL, INT(3), INT(ANY),
      INT(0), INT(EQUAL), INT(4), INT(ANY), INT(0), where);
  BAD(match_shape, RVM_SHAPE_ERROR, "main: x: expected dimension 2 to be 6, got 7", shape, heap, INT(3), INT(ANY),
      INT(0), INT(ANY), INT(0), INT(EQUAL_HEAP), INT(1), where);
  BAD(match_shape, RVM_TYPE_ERROR, "main: x: expected rank 2, got 3", tensor, NIL, INT(2), INT(ANY), INT(0), INT(ANY),
      INT(0), where);
  BAD(match_shape, RVM_TYPE_ERROR, "main: x: expected a tensor or a shape, got int", INT(5), NIL, INT(0), where);
  BAD(match_shape, RVM_INDEX_ERROR, "slot 2 is out of range; the heap has 2 slots", shape, heap, INT(3), INT(STORE),
      INT(2), INT(ANY), INT(0), INT(ANY), INT(0), where);
  BAD(match_shape, RVM_INDEX_ERROR, "slot 0 is out of range; the heap has 0 slots", shape, NIL, INT(3), INT(STORE),
      INT(0), INT(ANY), INT(0), INT(ANY), INT(0), where);
  BAD(match_shape, RVM_TYPE_ERROR, "shape code 9", shape, NIL, INT(3), INT(9), INT(0), INT(ANY), INT(0), INT(ANY),
      INT(0), where);
  BAD(match_shape, RVM_ARGUMENT_ERROR, "wrong number", shape, NIL, INT(3), INT(ANY), INT(0), where);
  BAD(match_shape, RVM_ARGUMENT_ERROR, "wrong number", shape, NIL, INT(0));
  BAD(match_shape, RVM_ARGUMENT_ERROR, "wrong number", shape, NIL, INT(-1), where);
  BAD(match_shape, RVM_ARGUMENT_ERROR, "wrong number", shape);
  BAD(match_shape, RVM_TYPE_ERROR, "to be an int", shape, NIL, INT(1), INT(ANY), NIL, where);
  BAD(match_shape, RVM_TYPE_ERROR, "to be a string", shape, NIL, INT(1), INT(ANY), INT(0), INT(0));
  BAD(match_shape, RVM_TYPE_ERROR, "of the machine's own", shape, shape, INT(0), where);
  heap.as.object->references = -1; /* like a constant */
  BAD(match_shape, RVM_TYPE_ERROR, "of the machine's own", shape, heap, INT(0), where);
  heap.as.object->references = 1;
  rvm_value values[] = {tensor, shape, heap, where, scalar};
  for (int i = 0; i < COUNT_OF(values); i++) rvm_value_release(&values[i]);
}

static void test_match_prim_value(void) {
  rvm_value heap = make_heap(1), where = string_value("main: n");
  GOOD(match_prim_value, slot(heap, 0) == 12, INT(12), heap, INT(STORE), INT(0), where);
  GOOD(match_prim_value, 1, INT(12), heap, INT(EQUAL_HEAP), INT(0), where);
  BAD(match_prim_value, RVM_SHAPE_ERROR, "main: n: expected 12, got 13", INT(13), heap, INT(EQUAL_HEAP), INT(0), where);
  BAD(match_prim_value, RVM_TYPE_ERROR, "main: n: expected int, got float", FLOAT(13), heap, INT(ANY), INT(0), where);
  rvm_value_release(&heap);
  rvm_value_release(&where);
}

static void test_fail(void) {
  rvm_value where = string_value("main: y: index 3 is out of range");
  BAD(fail, RVM_INDEX_ERROR, "main: y: index 3 is out of range", INT(RVM_INDEX_ERROR), where);
  BAD(fail, RVM_TYPE_ERROR, "main: y: index 3 is out of range", INT(RVM_TYPE_ERROR), where);
  BAD(fail, RVM_ARGUMENT_ERROR, "status is 0, expected 1 to 6", INT(RVM_OK), where);
  BAD(fail, RVM_ARGUMENT_ERROR, "status is 7, expected 1 to 6", INT(RVM_OUT_OF_MEMORY), where);
  BAD(fail, RVM_TYPE_ERROR, "expected argument 2 to be a string, got int", INT(RVM_INDEX_ERROR), INT(1));
  rvm_value_release(&where);
}

static void test_check_equal(void) {
  rvm_value where = string_value("main: {} and {} differ"), plain = string_value("main: sizes {}");
  GOOD(check_equal, 1, INT(3), INT(3), where);
  BAD(check_equal, RVM_SHAPE_ERROR, "main: 3 and -4 differ", INT(3), INT(-4), where);
  BAD(check_equal, RVM_SHAPE_ERROR, "main: sizes {}", INT(3), INT(4), plain);
  BAD(check_equal, RVM_TYPE_ERROR, "expected argument 1 to be an int", FLOAT(3), INT(3), where);
  rvm_value_release(&where);
  rvm_value_release(&plain);
}

static void test_check_at_most(void) {
  rvm_value where = string_value("main: {} exceeds {}, {}");
  GOOD(check_at_most, 1, INT(-3), INT(-3), where);
  GOOD(check_at_most, 1, INT(INT64_MIN), INT(INT64_MAX), where);
  BAD(check_at_most, RVM_SHAPE_ERROR, "main: 3 exceeds 2, {}", INT(3), INT(2), where);
  BAD(check_at_most, RVM_TYPE_ERROR, "expected argument 3 to be", INT(3), INT(2), INT(1));
  rvm_value_release(&where);
}

static void test_check_elements(void) {
  int64_t dims[] = {2, 3};
  rvm_value where = string_value("main: y"), differs = tensor_value(RVM_DTYPE_bool, 2, dims);
  rvm_value found = tensor_value(RVM_DTYPE_f32, 2, dims), expected = tensor_value(RVM_DTYPE_i8, 2, dims);
  rvm_value scalar = tensor_value(RVM_DTYPE_bool, 0, NULL), half = tensor_value(RVM_DTYPE_bf16, 2, dims);
  memset(differs.as.tensor->dl.data, 0, 6);
  memset(expected.as.tensor->dl.data, 0, 6);
  memset(found.as.tensor->dl.data, 0, 24);
  *(uint8_t *)scalar.as.tensor->dl.data = 1;
  GOOD(check_elements, got.tag == RVM_TAG_NIL, differs, found, expected, where);
  ((uint8_t *)differs.as.tensor->dl.data)[4] = ((uint8_t *)differs.as.tensor->dl.data)[5] = 1;
  ((float *)found.as.tensor->dl.data)[4] = 1.5f;
  BAD(check_elements, RVM_ASSERTION_ERROR, "main: y: element [1, 1] is 1.5, expected 0 (2 of 6 elements differ)",
      differs, found, expected, where);
  BAD(check_elements, RVM_ASSERTION_ERROR, "main: y: element [] is True, expected True", scalar, scalar, scalar, where);
  BAD(check_elements, RVM_SHAPE_ERROR, "equally many elements", differs, scalar, expected, where);
  BAD(check_elements, RVM_TYPE_ERROR, "expected a tensor of bools", found, found, expected, where);
  BAD(check_elements, RVM_TYPE_ERROR, "expected a tensor of bools", differs, half, expected, where);
  BAD(check_elements, RVM_TYPE_ERROR, "expected argument 4 to be a string", differs, found, expected, INT(1));
  rvm_value values[] = {where, differs, found, expected, scalar, half};
  for (int i = 0; i < COUNT_OF(values); i++) rvm_value_release(&values[i]);
}

static void compute(rvm_value heap, int operation, int64_t a, int64_t b, int64_t expected) {
  GOOD(compute_dim, slot(heap, 0) == expected, heap, INT(0), INT(operation), INT(EQUAL), INT(a), INT(EQUAL), INT(b));
}

static void test_compute_dim(void) {
  enum { ADD, SUB, MUL, FLOORDIV, MOD, MIN, MAX };
  rvm_value heap = make_heap(3);
  compute(heap, ADD, 3, 4, 7);
  compute(heap, SUB, 3, 4, -1);
  compute(heap, MUL, -3, 4, -12);
  compute(heap, FLOORDIV, -7, 2, -4);
  compute(heap, FLOORDIV, 7, -2, -4);
  compute(heap, FLOORDIV, -8, 2, -4);
  compute(heap, MOD, -7, 2, 1);
  compute(heap, MOD, 7, -2, -1);
  compute(heap, MOD, INT64_MIN, -1, 0);
  compute(heap, MIN, 3, -4, -4);
  compute(heap, MAX, 3, -4, 3);
  ((int64_t *)heap.as.tensor->dl.data)[1] = 20;
  GOOD(compute_dim, slot(heap, 2) == 40, heap, INT(2), INT(ADD), INT(EQUAL_HEAP), INT(1), INT(EQUAL_HEAP), INT(1));
  BAD(compute_dim, RVM_SHAPE_ERROR, "add of", heap, INT(0), INT(ADD), INT(EQUAL), INT(INT64_MAX), INT(EQUAL), INT(1));
  BAD(compute_dim, RVM_SHAPE_ERROR, "mul of", heap, INT(0), INT(MUL), INT(EQUAL), INT(INT64_MAX), INT(EQUAL), INT(2));
  BAD(compute_dim, RVM_SHAPE_ERROR, "floordiv of", heap, INT(0), INT(FLOORDIV), INT(EQUAL), INT(1), INT(EQUAL), INT(0));
  BAD(compute_dim, RVM_SHAPE_ERROR, "floordiv of", heap, INT(0), INT(FLOORDIV), INT(EQUAL), INT(INT64_MIN), INT(EQUAL),
      INT(-1));
  BAD(compute_dim, RVM_SHAPE_ERROR, "mod of", heap, INT(0), INT(MOD), INT(EQUAL), INT(1), INT(EQUAL), INT(0));
  BAD(compute_dim, RVM_TYPE_ERROR, "unknown operator 7", heap, INT(0), INT(7), INT(EQUAL), INT(1), INT(EQUAL), INT(1));
  BAD(compute_dim, RVM_TYPE_ERROR, "shape code 1", heap, INT(0), INT(ADD), INT(STORE), INT(1), INT(EQUAL), INT(1));
  BAD(compute_dim, RVM_INDEX_ERROR, "slot 3 is out of range; the heap has 3 slots", heap, INT(3), INT(ADD), INT(EQUAL),
      INT(1), INT(EQUAL), INT(1));
  BAD(compute_dim, RVM_INDEX_ERROR, "slot -1 is out of range; the heap has 3 slots", heap, INT(0), INT(ADD), INT(EQUAL),
      INT(1), INT(EQUAL_HEAP), INT(-1));
  rvm_value_release(&heap);
}

static void test_make_shape(void) {
  rvm_value heap = make_heap(2);
  ((int64_t *)heap.as.tensor->dl.data)[1] = 20;
  GOOD(make_shape, is_shape(got, 2, (int64_t[]){3, 20}), heap, INT(2), INT(EQUAL), INT(3), INT(EQUAL_HEAP), INT(1));
  GOOD(make_shape, is_shape(got, 0, NULL), NIL, INT(0));
  BAD(make_shape, RVM_INDEX_ERROR, "slot 2 is out of range; the heap has 2 slots", heap, INT(2), INT(EQUAL), INT(3),
      INT(EQUAL_HEAP), INT(2));
  BAD(make_shape, RVM_TYPE_ERROR, "shape code 0", heap, INT(1), INT(ANY), INT(3));
  BAD(make_shape, RVM_ARGUMENT_ERROR, "wrong number", heap, INT(2), INT(EQUAL), INT(3), INT(EQUAL));
  BAD(make_shape, RVM_ARGUMENT_ERROR, "wrong number", heap, INT((int64_t)1 << 40));
  rvm_value_release(&heap);
}

static void test_check_tensor_info(void) {
  const int64_t dims[] = {2, 2};
  rvm_value tensor = tensor_value(RVM_DTYPE_i64, 2, dims), where = string_value("main: x");
  GOOD(check_tensor_info, 1, tensor, INT(2), DTYPE_OF(i64), where);
  GOOD(check_tensor_info, 1, tensor, INT(-1), NIL, where);
  BAD(check_tensor_info, RVM_TYPE_ERROR,
      "main: x: expected a tensor of rank 2 and dtype f32, got a tensor of rank 2 and dtype i64", tensor, INT(2),
      DTYPE_OF(f32), where);
  BAD(check_tensor_info, RVM_TYPE_ERROR, "main: x: expected a tensor of rank 2 and dtype f32, got int", INT(1), INT(2),
      DTYPE_OF(f32), where);
  BAD(check_tensor_info, RVM_TYPE_ERROR, "expected a tensor of rank 3, got", tensor, INT(3), NIL, where);
  BAD(check_tensor_info, RVM_TYPE_ERROR, "expected a tensor of dtype u8, got", tensor, INT(-1), DTYPE_OF(u8), where);
  BAD(check_tensor_info, RVM_TYPE_ERROR, "expected a tensor, got nil", NIL, INT(-1), NIL, where);
  rvm_value_release(&tensor);
  rvm_value_release(&where);
}

static void test_check_shape_info(void) {
  const int64_t dims[] = {2, 2};
  rvm_value shape = shape_value(2, dims), where = string_value("main: s");
  GOOD(check_shape_info, 1, shape, INT(2), where);
  GOOD(check_shape_info, 1, shape, INT(-1), where);
  BAD(check_shape_info, RVM_TYPE_ERROR, "main: s: expected a shape of rank 1, got rank 2", shape, INT(1), where);
  BAD(check_shape_info, RVM_TYPE_ERROR, "main: s: expected a shape, got string", where, INT(1), where);
  rvm_value_release(&shape);
  rvm_value_release(&where);
}

static void test_check_tuple_info(void) {
  rvm_value tuple = tuple_value(0, NULL), where = string_value("main: t");
  GOOD(check_tuple_info, 1, tuple, INT(0), where);
  BAD(check_tuple_info, RVM_TYPE_ERROR, "main: t: expected a tuple of 2 items, got 0", tuple, INT(2), where);
  BAD(check_tuple_info, RVM_TYPE_ERROR, "main: t: expected a tuple, got bool", BOOL(1), INT(2), where);
  rvm_value_release(&tuple);
  rvm_value_release(&where);
}

static void test_check_func_info(void) {
  rvm_value where = string_value("main: f");
  GOOD(check_func_info, 1, concat, where);
  BAD(check_func_info, RVM_TYPE_ERROR, "main: f: expected a function, got int", INT(1), where);
  rvm_value_release(&where);
}

static void test_check_pure_func_info(void) {
  rvm_value where = string_value("main: f");
  GOOD(check_pure_func_info, 1, concat, where);
  BAD(check_pure_func_info, RVM_TYPE_ERROR, "main: f: expected a function, got int", INT(1), where);
  BAD(check_pure_func_info, RVM_TYPE_ERROR, "main: f: expected a pure function, got", effectful, where);
  rvm_value_release(&where);
}

static void test_check_prim_value_info(void) {
  rvm_value where = string_value("main: k");
  GOOD(check_prim_value_info, 1, BOOL(1), DTYPE_OF(bool), where);
  GOOD(check_prim_value_info, 1, INT(-128), DTYPE_OF(i8), where);
  GOOD(check_prim_value_info, 1, INT(INT64_MIN), DTYPE_OF(i64), where);
  GOOD(check_prim_value_info, 1, INT(UINT32_MAX), DTYPE_OF(u32), where);
  GOOD(check_prim_value_info, 1, INT(INT64_MAX), DTYPE_OF(u64), where);
  GOOD(check_prim_value_info, 1, FLOAT(1.5), DTYPE_OF(f32), where);
  BAD(check_prim_value_info, RVM_TYPE_ERROR, "main: k: 128 is out of the range of dtype i8", INT(128), DTYPE_OF(i8),
      where);
  BAD(check_prim_value_info, RVM_TYPE_ERROR, "-1 is out of the range of dtype u64", INT(-1), DTYPE_OF(u64), where);
  BAD(check_prim_value_info, RVM_TYPE_ERROR, "256 is out of the range of dtype u8", INT(256), DTYPE_OF(u8), where);
  BAD(check_prim_value_info, RVM_TYPE_ERROR, "main: k: expected a scalar of dtype f64, got int", INT(1), DTYPE_OF(f64),
      where);
  BAD(check_prim_value_info, RVM_TYPE_ERROR, "expected a scalar of dtype bool, got int", INT(1), DTYPE_OF(bool), where);
  rvm_value_release(&where);
}

static void test_shape_of(void) {
  const int64_t dims[] = {4, 0};
  rvm_value tensor = tensor_value(RVM_DTYPE_f32, 2, dims);
  GOOD(shape_of, is_shape(got, 2, dims), tensor);
  BAD(shape_of, RVM_TYPE_ERROR, "argument 1 to be a tensor, got int", INT(1));
  rvm_value_release(&tensor);
}

static void test_tensor_to_shape(void) {
  rvm_value heap = make_heap(2), other = tensor_value(RVM_DTYPE_i32, 1, (int64_t[]){2});
  ((int64_t *)heap.as.tensor->dl.data)[1] = 9;
  GOOD(tensor_to_shape, is_shape(got, 2, (int64_t[]){0, 9}), heap);
  ((int64_t *)heap.as.tensor->dl.data)[1] = -2;
  BAD(tensor_to_shape, RVM_SHAPE_ERROR, "element 1 is -2; a dimension must be at least 0", heap);
  BAD(tensor_to_shape, RVM_TYPE_ERROR,
      "expected a tensor of rank 1 and dtype i64, got a tensor of rank 1 and dtype i32", other);
  rvm_value_release(&heap);
  rvm_value_release(&other);
}

static void test_read_dim(void) {
  rvm_value heap = make_heap(2);
  ((int64_t *)heap.as.tensor->dl.data)[1] = 9;
  GOOD(read_dim, got.tag == RVM_TAG_INT && got.as.i == 9, heap, INT(EQUAL_HEAP), INT(1));
  GOOD(read_dim, got.as.i == 7, NIL, INT(EQUAL), INT(7));
  BAD(read_dim, RVM_INDEX_ERROR, "slot 2 is out of range; the heap has 2 slots", heap, INT(EQUAL_HEAP), INT(2));
  BAD(read_dim, RVM_TYPE_ERROR, "is not valid here", heap, INT(STORE), INT(0));
  rvm_value_release(&heap);
}

static void check_element(int32_t dtype, rvm_value scalar) {
  rvm_value tensor = {0};
  CHECK_OK(rvm_builtin_scalar_to_tensor(NULL, ARGUMENTS(scalar, ((rvm_value){.tag = RVM_TAG_DTYPE, .as.i = dtype})),
                                        &tensor),
           tensor);
  GOOD(tensor_item, got.tag == scalar.tag && got.as.i == scalar.as.i, tensor);
  rvm_value_release(&tensor);
}

static void test_tensor_item(void) {
  rvm_value vector = tensor_value(RVM_DTYPE_f32, 1, (int64_t[]){1}), large = tensor_value(RVM_DTYPE_u64, 0, NULL);
  *(uint64_t *)large.as.tensor->dl.data = UINT64_MAX;
  for (int32_t dtype = RVM_DTYPE_i8; dtype <= RVM_DTYPE_u64; dtype++) check_element(dtype, INT(100));
  for (int32_t dtype = RVM_DTYPE_i8; dtype <= RVM_DTYPE_i64; dtype++) check_element(dtype, INT(-100));
  check_element(RVM_DTYPE_u16, INT(65535));
  check_element(RVM_DTYPE_u32, INT(4294967295));
  check_element(RVM_DTYPE_bool, BOOL(1));
  check_element(RVM_DTYPE_bool, BOOL(0));
  check_element(RVM_DTYPE_f32, FLOAT(-2.5));
  check_element(RVM_DTYPE_f64, FLOAT(1e300));
  BAD(tensor_item, RVM_TYPE_ERROR, "expected a tensor of rank 0, got a tensor of rank 1", vector);
  BAD(tensor_item, RVM_TYPE_ERROR, "18446744073709551615 is out of the range of i64", large);
  rvm_value_release(&vector);
  rvm_value_release(&large);
}

static void test_tensor_element(void) {
  rvm_value vector = tensor_value(RVM_DTYPE_f32, 1, (int64_t[]){1}), large = tensor_value(RVM_DTYPE_u64, 0, NULL);
  *(uint64_t *)large.as.tensor->dl.data = UINT64_MAX;
  *(float *)vector.as.tensor->dl.data = -2.5F;
  GOOD(tensor_element, got.tag == RVM_TAG_FLOAT && got.as.f == -2.5, vector, INT(0));
  BAD(tensor_element, RVM_INDEX_ERROR, "position 1 is out of range; the tensor has 1 element", vector, INT(1));
  BAD(tensor_element, RVM_INDEX_ERROR, "position -1 is out of range; the tensor has 1 element", vector, INT(-1));
  BAD(tensor_element, RVM_TYPE_ERROR, "tensor_element: 18446744073709551615 is out of the range of i64", large, INT(0));
  rvm_value_release(&vector);
  rvm_value_release(&large);
}

static void test_scalar_to_tensor(void) {
  GOOD(scalar_to_tensor, *(float *)got.as.tensor->dl.data == 16777216, INT(16777217), DTYPE_OF(f32));
  GOOD(scalar_to_tensor, *(double *)got.as.tensor->dl.data == 3 && got.as.tensor->dl.ndim == 0, INT(3), DTYPE_OF(f64));
  BAD(scalar_to_tensor, RVM_TYPE_ERROR, "128 is out of the range of dtype i8", INT(128), DTYPE_OF(i8));
  BAD(scalar_to_tensor, RVM_TYPE_ERROR, "-1 is out of the range of dtype u64", INT(-1), DTYPE_OF(u64));
  BAD(scalar_to_tensor, RVM_TYPE_ERROR, "expected a scalar of dtype i32, got float", FLOAT(1), DTYPE_OF(i32));
  BAD(scalar_to_tensor, RVM_TYPE_ERROR, "expected a scalar of dtype bool, got int", INT(1), DTYPE_OF(bool));
  BAD(scalar_to_tensor, RVM_TYPE_ERROR, "expected a scalar of dtype f32, got nil", NIL, DTYPE_OF(f32));
}

static void test_shape_to_tensor(void) {
  rvm_value shape = shape_value(2, (int64_t[]){3, 9}), empty = shape_value(0, NULL);
  GOOD(shape_to_tensor, got.as.tensor->dl.shape[0] == 2 && slot(got, 1) == 9, shape);
  GOOD(shape_to_tensor, got.as.tensor->dl.shape[0] == 0, empty);
  BAD(shape_to_tensor, RVM_TYPE_ERROR, "to be a shape", NIL);
  rvm_value_release(&shape);
  rvm_value_release(&empty);
}

static void test_make_tuple(void) {
  rvm_value text = string_value("text");
  GOOD(make_tuple, got.as.tuple->size == 0);
  GOOD(make_tuple, got.as.tuple->size == 3 && got.as.tuple->items[1].as.string == text.as.string, INT(1), text, NIL);
  BAD(make_tuple, RVM_TYPE_ERROR, "got context", INT(1), context);
  rvm_value_release(&text);
}

static void test_tuple_getitem(void) {
  rvm_value tuple = tuple_value(2, (rvm_value[]){INT(5), INT(6)});
  GOOD(tuple_getitem, got.as.i == 6, tuple, INT(1));
  BAD(tuple_getitem, RVM_INDEX_ERROR, "vm.builtin.tuple_getitem: index 2 is out of range; the tuple has 2 items", tuple,
      INT(2));
  BAD(tuple_getitem, RVM_INDEX_ERROR, "index -1", tuple, INT(-1));
  rvm_value_release(&tuple);
}

static void test_tuple_reset_item(void) {
  rvm_value text = string_value("text"), tuple = tuple_value(1, &text);
  GOOD(tuple_reset_item, tuple.as.tuple->items[0].tag == RVM_TAG_NIL && text.as.object->references == 1, tuple, INT(0));
  BAD(tuple_reset_item, RVM_INDEX_ERROR, "vm.builtin.tuple_reset_item: index 1", tuple, INT(1));
  rvm_value_release(&tuple);
  rvm_value_release(&text);
}

static void test_make_closure(void) {
  GOOD(make_closure, got.as.closure->captured_count == 2 && got.as.closure->captured[1].as.i == 8, concat, INT(7),
       INT(8));
  rvm_value inner;
  MAKE(inner, rvm_builtin_make_closure(NULL, (rvm_value[]){concat, INT(8)}, 2, &inner));
  GOOD(make_closure, got.as.closure->captured[0].as.i == 7 && got.as.closure->captured[1].as.i == 8, inner, INT(7));
  BAD(make_closure, RVM_TYPE_ERROR, "argument 1 to be a function or closure, got int", INT(7));
  rvm_value_release(&inner);
}

static void test_invoke_closure(void) {
  rvm_value closure;
  MAKE(closure, rvm_builtin_make_closure(NULL, (rvm_value[]){concat, INT(8)}, 2, &closure));
  GOOD(invoke_closure, got.as.tuple->items[0].as.i == 7 && got.as.tuple->items[1].as.i == 8, context, closure, INT(7));
  BAD(invoke_closure, RVM_ARGUMENT_ERROR, "concat: expected 1 argument (x), got 2", context, closure, INT(7), INT(8));
  BAD(invoke_closure, RVM_ARGUMENT_ERROR, "concat: expected 2 arguments (x, y), got 0", context, concat);
  BAD(invoke_closure, RVM_TYPE_ERROR, "argument 2 to be a function or closure", context, INT(7));
  rvm_value_release(&closure);
}

static void test_invoke_pure_closure(void) {
  GOOD(invoke_pure_closure, got.as.tuple->size == 2, context, concat, INT(7), INT(8));
  BAD(invoke_pure_closure, RVM_TYPE_ERROR, "argument 2 to be a function or closure", context, NIL);
}

static void test_reshape(void) {
  rvm_value tensor = tensor_value(RVM_DTYPE_f32, 1, (int64_t[]){6}), shape = shape_value(2, (int64_t[]){2, 3});
  rvm_value other = shape_value(1, (int64_t[]){5}), negative = shape_value(2, (int64_t[]){-2, -3});
  GOOD(reshape, got.as.tensor->dl.data == tensor.as.tensor->dl.data && got.as.tensor->dl.ndim == 2, tensor, shape);
  rvm_value view, view_of_view;
  MAKE(view, rvm_builtin_reshape(NULL, (rvm_value[]){tensor, shape}, 2, &view));
  MAKE(view_of_view, rvm_builtin_reshape(NULL, (rvm_value[]){view, shape}, 2, &view_of_view));
  CHECK(view_of_view.as.tensor->owner == tensor.as.object); /* views never chain */
  BAD(reshape, RVM_SHAPE_ERROR, "cannot reshape 6 elements to a shape of 5 elements", tensor, other);
  BAD(reshape, RVM_SHAPE_ERROR, "negative", tensor, negative);
  rvm_value values[] = {tensor, shape, other, negative, view, view_of_view};
  for (int i = 0; i < COUNT_OF(values); i++) rvm_value_release(&values[i]);
}

static void test_check_update(void) {
  float data[6] = {0};
  rvm_value tensor, other, near, empty, text = string_value("f: argument x");
  MAKE(tensor, rvm_tensor_wrap(RVM_DTYPE_f32, 1, (int64_t[]){4}, data, NULL, NULL, &tensor));
  MAKE(other, rvm_tensor_wrap(RVM_DTYPE_f32, 1, (int64_t[]){2}, data + 4, NULL, NULL, &other));
  MAKE(near, rvm_tensor_wrap(RVM_DTYPE_f32, 1, (int64_t[]){2}, data + 3, NULL, NULL, &near));
  MAKE(empty, rvm_tensor_wrap(RVM_DTYPE_f32, 1, (int64_t[]){0}, data, NULL, NULL, &empty));
  GOOD(check_update, got.tag == RVM_TAG_NIL, tensor, text);
  GOOD(check_update, got.tag == RVM_TAG_NIL, tensor, text, other, empty, INT(3));
  BAD(check_update, RVM_ARGUMENT_ERROR, "f: argument x is updated, but shares memory", tensor, text, other, near);
  BAD(check_update, RVM_TYPE_ERROR, "expected argument 1 to be a tensor, got int", INT(3), text);
  rvm_value tuple;
  MAKE(tuple, rvm_tuple_new(1, &other, &tuple));
  BAD(check_update, RVM_TYPE_ERROR, "but another argument has type tuple", tensor, text, tuple);
  rvm_value_release(&tuple);
  CHECK_OK(rvm_tensor_set_read_only(tensor, &near), near);
  CHECK_OK(rvm_tensor_set_read_only(empty, &near), near);
  GOOD(check_update, got.tag == RVM_TAG_NIL, empty, text);
  BAD(check_update, RVM_TYPE_ERROR, "f: argument x is updated: expected a writable tensor", tensor, text);
  rvm_value values[] = {tensor, other, near, empty, text};
  for (int i = 0; i < COUNT_OF(values); i++) rvm_value_release(&values[i]);
}

static void test_update_tensor(void) {
  float data[2] = {1, 2}, fixed[2] = {7, 8};
  rvm_value target, from, read_only, empty, wide = tensor_value(RVM_DTYPE_f64, 0, NULL);
  MAKE(target, rvm_tensor_wrap(RVM_DTYPE_f32, 1, (int64_t[]){2}, data, NULL, NULL, &target));
  MAKE(from, rvm_tensor_wrap(RVM_DTYPE_f32, 1, (int64_t[]){2}, fixed, NULL, NULL, &from));
  MAKE(read_only, rvm_tensor_wrap(RVM_DTYPE_f32, 1, (int64_t[]){2}, fixed, NULL, NULL, &read_only));
  MAKE(empty, rvm_tensor_wrap(RVM_DTYPE_f32, 1, (int64_t[]){0}, NULL, NULL, NULL, &empty));
  CHECK_OK(rvm_tensor_set_read_only(read_only, NULL), read_only);
  GOOD(update_tensor, got.tag == RVM_TAG_NIL && data[0] == 7 && data[1] == 8, context, target, from);
  GOOD(update_tensor, data[0] == 7, context, target, target);
  GOOD(update_tensor, got.tag == RVM_TAG_NIL, context, empty, empty);
  BAD(update_tensor, RVM_TYPE_ERROR, "of one dtype of numbers, got f32 and f64", context, target, wide);
  BAD(update_tensor, RVM_SHAPE_ERROR, "of one shape", context, target, empty);
  BAD(update_tensor, RVM_TYPE_ERROR, "found a read-only one", context, read_only, from);
  rvm_value values[] = {target, from, read_only, empty, wide};
  for (int i = 0; i < COUNT_OF(values); i++) rvm_value_release(&values[i]);
}

static void test_unshare_tensor(void) {
  float data[2] = {1, 2};
  rvm_value storage, tensor, view, given, scalar = tensor_value(RVM_DTYPE_f32, 0, NULL);
  rvm_value text = tensor_value(RVM_DTYPE_str, 0, NULL), shape = shape_value(1, (int64_t[]){2});
  MAKE(storage, rvm_builtin_alloc_storage(NULL, ARGUMENTS(context, INT(8), INT(0), DTYPE_OF(u8)), &storage));
  memcpy(storage.as.storage->bytes, data, sizeof data);
  MAKE(tensor, rvm_builtin_alloc_tensor(NULL, ARGUMENTS(storage, INT(0), shape, DTYPE_OF(f32)), &tensor));
  GOOD(unshare_tensor, got.as.tensor != tensor.as.tensor, context, tensor); /* `storage` is a reference */
  rvm_value_release(&storage);
  GOOD(unshare_tensor, got.as.tensor == tensor.as.tensor, context, tensor);
  rvm_value other = tensor;
  rvm_value_retain(other);
  GOOD(unshare_tensor, got.as.tensor != tensor.as.tensor && memcmp(got.as.tensor->dl.data, data, sizeof data) == 0,
       context, tensor);
  rvm_value_release(&other);
  MAKE(view, rvm_builtin_reshape(NULL, ARGUMENTS(tensor, shape), &view));
  GOOD(unshare_tensor, got.as.tensor != tensor.as.tensor, context, tensor);
  rvm_value_release(&view);
  CHECK_OK(rvm_tensor_set_read_only(tensor, NULL), tensor);
  GOOD(unshare_tensor, got.as.tensor != tensor.as.tensor, context, tensor);
  MAKE(given, rvm_tensor_wrap(RVM_DTYPE_f32, 1, (int64_t[]){2}, data, NULL, NULL, &given));
  GOOD(unshare_tensor, got.as.tensor->dl.data != (void *)data, context, given);
  GOOD(unshare_tensor, got.as.tensor != scalar.as.tensor && got.as.tensor->dl.ndim == 0, context, scalar);
  BAD(unshare_tensor, RVM_TYPE_ERROR, "expected a tensor of numbers, got strings", context, text);
  BAD(unshare_tensor, RVM_TYPE_ERROR, "to be a tensor", context, INT(1));
  rvm_value values[] = {tensor, given, scalar, text, shape};
  for (int i = 0; i < COUNT_OF(values); i++) rvm_value_release(&values[i]);
}

static void test_to_device(void) {
  rvm_value tensor = tensor_value(RVM_DTYPE_f32, 0, NULL);
  GOOD(to_device, got.as.tensor == tensor.as.tensor, tensor, INT(0));
  BAD(to_device, RVM_UNSUPPORTED, "unknown device 2; expected 0 (CPU)", tensor, INT(2));
  rvm_value_release(&tensor);
}

static int printed;
static rvm_status print_hook(void *host, const rvm_value *arguments, int32_t count, rvm_value *error) {
  CHECK(host == &printed);
  printed += count;
  if (count > 0 && arguments[0].tag == RVM_TAG_NIL)
    return rvm_fail(error, RVM_CALLBACK_ERROR, "the printer is on fire");
  return RVM_OK;
}

/* The first numbers of SplitMix64 from seed 0, as Vigna's program prints them. */
static void test_random_bits(void) {
  rvm_machine_seed(machine, 0);
  GOOD(random_bits, (uint64_t)got.as.i == UINT64_C(0xe220a8397b1dcdaf), context);
  GOOD(random_bits, (uint64_t)got.as.i == UINT64_C(0x6e789e6aa1b965f4), context);
  BAD(random_bits, RVM_ARGUMENT_ERROR, "wrong number", context, INT(1));
}

static void test_print(void) {
  GOOD(print, got.tag == RVM_TAG_NIL && printed == 2, context, INT(1), INT(2));
  BAD(print, RVM_CALLBACK_ERROR, "the printer is on fire", context, NIL);
  BAD(print, RVM_ARGUMENT_ERROR, "wrong number");
}

static rvm_status count_arguments(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  (void)arguments;
  *result = int_value(*(int *)self + count);
  return RVM_OK;
}

static void test_call_py_func(void) {
  int base = 100;
  rvm_value name = string_value("test.count"), unknown = string_value("test.coutn"), error;
  CHECK_OK(rvm_register("test.count", count_arguments, &base, 0, &error), error);
  GOOD(call_py_func, got.as.i == 102, context, name, INT(1), NIL);
  BAD(call_py_func, RVM_UNKNOWN_FUNCTION, "unknown function \"test.coutn\"; did you mean test.count?", context,
      unknown);
  CHECK_OK(rvm_unregister("test.count", &error), error);
  BAD(call_py_func, RVM_UNKNOWN_FUNCTION, "unknown function \"test.count\"", context, name);
  rvm_value_release(&name);
  rvm_value_release(&unknown);
}

#include "test_builtins_lists.h" /* use the definitions above */
#include "test_builtins_strings.h"

int main(void) {
  image program = {0};
  loaded executable;
  rvm_value error;
  uint32_t make_tuple = image_packed(&program, "vm.builtin.make_tuple");
  uint32_t function = image_bytecode(&program, "concat", "x y", 3);
  CALL(&program, 2, make_tuple, R(0), R(1));
  RET(&program, 2);
  uint32_t impure = image_bytecode(&program, "effectful", "x", 1);
  image_record(&program, impure)->flags = RVM_IMPURE;
  RET(&program, 0);
  MAKE(executable, image_load(&program, &executable, &error));
  const rvm_machine_options options = {.print = print_hook, .host = &printed};
  MAKE(machine, rvm_machine_new(executable.executable, &options, &machine, &error));
  context = (rvm_value){.tag = RVM_TAG_CONTEXT, .as.machine = machine};
  concat = machine->function_values[function];
  effectful = machine->function_values[impure];
#define BUILTIN(name, signature, effect, cost, decoded, meaning) test_##name();
#include "builtins.def"
#undef BUILTIN
#define BUILTIN(name, signature, effect, cost, decoded, meaning)                          \
  CHECK((good_calls[RVM_BUILTIN_##name] > 0 || RVM_BUILTIN_##name == RVM_BUILTIN_fail) && \
        bad_calls[RVM_BUILTIN_##name] > 0);
#include "builtins.def"
#undef BUILTIN
  rvm_machine_release(machine);
  loaded_release(&executable);
  return CHECK_RESULT();
}
