/* test_builtins_lists.h: the tests of test_builtins.c for the builtins of lists and their items. */
#ifndef RELVM_TEST_BUILTINS_LISTS_H
#define RELVM_TEST_BUILTINS_LISTS_H

#include "tensor.h"

/* Returns a list that takes ownership of the items. */
static rvm_value list_value(int32_t size, rvm_value *items) {
  rvm_value list;
  MAKE(list, rvm_list_new(size, items, &list));
  for (int32_t i = 0; i < size; i++) rvm_value_release(&items[i]);
  return list;
}
#define LIST(...) list_value(COUNT_OF(((rvm_value[]){__VA_ARGS__})), (rvm_value[]){__VA_ARGS__})

/* Returns an i32 tensor of rank 1 or 2 with the elements 0, 1, 2... */
static rvm_value counted(int32_t rank, int64_t rows, int64_t columns) {
  const int64_t dims[] = {rank == 1 ? columns : rows, columns};
  rvm_value value = tensor_value(RVM_DTYPE_i32, rank, dims);
  int32_t *elements = value.as.tensor->dl.data;
  for (int64_t i = 0; i < rvm_tensor_size_bytes(value.as.tensor) / 4; i++) elements[i] = (int32_t)i;
  return value;
}

static int holds(rvm_value tensor, int32_t rank, const int64_t *dims, const int32_t *elements) {
  const rvm_tensor *t = tensor.as.tensor;
  if (tensor.tag != RVM_TAG_TENSOR || t->dl.ndim != rank || memcmp(t->dl.shape, dims, (size_t)rank * 8) != 0) return 0;
  int64_t size_bytes = rvm_tensor_size_bytes(t);
  return size_bytes == 0 || memcmp(t->dl.data, elements, (size_t)size_bytes) == 0;
}
#define DIMS(...) \
  COUNT_OF(((int64_t[]){__VA_ARGS__})), (const int64_t[]) { __VA_ARGS__ }

static int is_list(rvm_value value, int32_t size, int64_t first) {
  return value.tag == RVM_TAG_LIST && value.as.list->size == size &&
         (size == 0 || value.as.list->items[0].as.i == first);
}

static void test_make_list(void) {
  GOOD(make_list, is_list(got, 0, 0));
  GOOD(make_list, is_list(got, 2, 7), INT(7), NIL);
  BAD(make_list, RVM_TYPE_ERROR, "got context", context);
}

static void test_list_length(void) {
  rvm_value list = LIST(INT(1), INT(2)), tuple = tuple_value(1, &list);
  GOOD(list_length, got.as.i == 2, list);
  GOOD(list_length, got.as.i == 1, tuple);
  BAD(list_length, RVM_TYPE_ERROR, "expected argument 1 to be a list, got int", INT(1));
  rvm_value_release(&tuple);
  rvm_value_release(&list);
}

static void test_list_item(void) {
  rvm_value list = LIST(INT(1), string_value("text"));
  GOOD(list_item, got.as.i == 1, list, INT(0));
  GOOD(list_item, got.tag == RVM_TAG_STRING && got.as.object->references == 2, list, INT(-1));
  BAD(list_item, RVM_INDEX_ERROR, "vm.builtin.list_item: index 2 is out of range; the list has 2 items", list, INT(2));
  BAD(list_item, RVM_INDEX_ERROR, "index -3", list, INT(-3));
  BAD(list_item, RVM_INDEX_ERROR, "index -9223372036854775808", list, INT(INT64_MIN));
  rvm_value_release(&list);
}

static void test_list_append(void) {
  rvm_value list = LIST(INT(1));
  GOOD(list_append, is_list(got, 2, 1) && got.as.list != list.as.list, list, INT(2));
  GOOD(list_append, is_list(got, 2, 1) && got.as.list->items[1].as.list == list.as.list, list, list);
  CHECK_INT(list.as.list->size, 1);
  BAD(list_append, RVM_ARGUMENT_ERROR, "wrong number", list);
  rvm_value_release(&list);
}

static void test_list_push(void) {
  rvm_value list = LIST(INT(1));
  for (int i = 0; i < 100; i++) GOOD(list_push, got.as.list == list.as.list, list, INT(i));
  CHECK_INT(list.as.list->size, 101);
  CHECK_INT(list.as.list->items[100].as.i, 99);
  GOOD(list_push, got.as.list != list.as.list && got.as.list->size == 102, list, list);
  rvm_value other = list;
  rvm_value_retain(other);
  GOOD(list_push, got.as.list != list.as.list && got.as.list->size == 102, list, INT(1));
  CHECK_INT(list.as.list->size, 101);
  rvm_value_release(&other);
  rvm_value tuple = tuple_value(1, (rvm_value[]){INT(5)});
  GOOD(list_push, is_list(got, 2, 5), tuple, INT(6));
  CHECK_INT(tuple.as.tuple->size, 1);
  BAD(list_push, RVM_TYPE_ERROR, "expected argument 1 to be a list", INT(1), INT(1));
  rvm_value_release(&tuple);
  rvm_value_release(&list);
}

static void test_list_insert(void) {
  rvm_value list = LIST(INT(1), INT(2));
  GOOD(list_insert, is_list(got, 3, 7), list, INT(0), INT(7));
  GOOD(list_insert, is_list(got, 3, 1) && got.as.list->items[1].as.i == 7, list, INT(-1), INT(7));
  GOOD(list_insert, is_list(got, 3, 1) && got.as.list->items[2].as.i == 7, list, INT(2), INT(7));
  BAD(list_insert, RVM_INDEX_ERROR, "index 3 is out of range; the list has 2 items", list, INT(3), INT(7));
  BAD(list_insert, RVM_INDEX_ERROR, "index -3", list, INT(-3), INT(7));
  rvm_value_release(&list);
}

static void test_list_erase(void) {
  rvm_value list = LIST(INT(1), INT(2));
  GOOD(list_erase, is_list(got, 1, 2), list, INT(0));
  GOOD(list_erase, is_list(got, 1, 1), list, INT(-1));
  BAD(list_erase, RVM_INDEX_ERROR, "index 2 is out of range; the list has 2 items", list, INT(2));
  rvm_value_release(&list);
}

static void test_list_concat(void) {
  rvm_value list = LIST(counted(2, 2, 1), counted(2, 2, 2)), none = LIST(counted(1, 0, 0)),
            mixed = LIST(counted(1, 0, 2), INT(1));
  GOOD(list_concat, holds(got, DIMS(2, 3), (const int32_t[]){0, 0, 1, 1, 2, 3}), context, list, INT(-1));
  GOOD(list_concat, holds(got, DIMS(0), NULL), context, none, INT(0));
  BAD(list_concat, RVM_SHAPE_ERROR, "dimension 1 of item 1 is 2, but that of item 0 is 1", context, list, INT(0));
  BAD(list_concat, RVM_TYPE_ERROR, "axis 2 is outside [-2, 2)", context, list, INT(2));
  BAD(list_concat, RVM_TYPE_ERROR, "item 1 is int, but item 0 is a tensor of rank 1 and dtype i32", context, mixed,
      INT(0));
  rvm_value_release(&mixed);
  mixed = list_value(0, NULL);
  BAD(list_concat, RVM_INDEX_ERROR, "the list has no items", context, mixed, INT(0));
  rvm_value_release(&mixed);
  rvm_value_release(&none);
  rvm_value_release(&list);
}

static void test_expand(void) {
  rvm_value x = counted(2, 2, 1), empty = counted(1, 0, 1), same, deep, wide, small, wrong;
  MAKE(same, rvm_shape_new(2, (const int64_t[]){2, 1}, &same));
  MAKE(deep, rvm_shape_new(4, (const int64_t[]){2, 1, 2, 2}, &deep));
  MAKE(wide, rvm_shape_new(2, (const int64_t[]){2, 0}, &wide));
  MAKE(small, rvm_shape_new(1, (const int64_t[]){2}, &small));
  MAKE(wrong, rvm_shape_new(2, (const int64_t[]){3, 1}, &wrong));
  GOOD(expand, got.as.tensor == x.as.tensor, context, x, same);
  GOOD(expand, holds(got, DIMS(2, 1, 2, 2), (const int32_t[]){0, 0, 1, 1, 0, 0, 1, 1}), context, x, deep);
  GOOD(expand, holds(got, DIMS(2, 0), NULL), context, x, wide);
  GOOD(expand, holds(got, DIMS(2), (const int32_t[]){0, 0}), context, empty, small);
  BAD(expand, RVM_SHAPE_ERROR, "x has rank 2, but the shape has only 1", context, x, small);
  BAD(expand, RVM_SHAPE_ERROR, "dimension 0 of x is 2, expected 1 or 3", context, x, wrong);
  rvm_value_release(&wrong);
  MAKE(wrong, rvm_shape_new(3, (const int64_t[]){-1, 2, 1}, &wrong));
  BAD(expand, RVM_SHAPE_ERROR, "exceeds 64 bits", context, x, wrong);
  rvm_value_release(&wrong);
  rvm_value_release(&small);
  rvm_value_release(&wide);
  rvm_value_release(&deep);
  rvm_value_release(&same);
  rvm_value_release(&empty);
  rvm_value_release(&x);
}

static void test_list_stack(void) {
  rvm_value list = LIST(counted(1, 0, 2), counted(1, 0, 2)), numbers = LIST(INT(1));
  GOOD(list_stack, holds(got, DIMS(2, 2), (const int32_t[]){0, 1, 0, 1}), context, list, INT(0));
  GOOD(list_stack, holds(got, DIMS(2, 2), (const int32_t[]){0, 0, 1, 1}), context, list, INT(-1));
  BAD(list_stack, RVM_TYPE_ERROR, "axis -3 is outside [-2, 2)", context, list, INT(-3));
  BAD(list_stack, RVM_TYPE_ERROR, "item 0 is int, expected a tensor", context, numbers, INT(0));
  rvm_value_release(&numbers);
  rvm_value_release(&list);
}

static void test_list_split(void) {
  rvm_value x = counted(2, 2, 3), sizes, wrong;
  MAKE(sizes, rvm_shape_new(2, (const int64_t[]){3, 0}, &sizes));
  MAKE(wrong, rvm_shape_new(2, (const int64_t[]){4, -1}, &wrong));
  GOOD(list_split, got.as.list->size == 2 && holds(got.as.list->items[0], DIMS(2, 2), (const int32_t[]){0, 1, 3, 4}),
       context, x, INT(2), INT(1));
  GOOD(list_split, holds(got.as.list->items[1], DIMS(2, 0), NULL), context, x, sizes, INT(-1));
  BAD(list_split, RVM_SHAPE_ERROR, "the part sizes add up to 3, but the axis has size 2", context, x, sizes, INT(0));
  BAD(list_split, RVM_SHAPE_ERROR, "the size of part 1 is -1", context, x, wrong, INT(1));
  BAD(list_split, RVM_SHAPE_ERROR, "expected a part size of at least 1, got 0", context, x, INT(0), INT(1));
  BAD(list_split, RVM_TYPE_ERROR, "axis 2", context, x, INT(1), INT(2));
  rvm_value_release(&wrong);
  rvm_value_release(&sizes);
  rvm_value_release(&x);
}

static void test_list_unstack(void) {
  rvm_value x = counted(2, 2, 3);
  GOOD(list_unstack, got.as.list->size == 3 && holds(got.as.list->items[1], DIMS(2), (const int32_t[]){1, 4}), context,
       x, INT(1));
  BAD(list_unstack, RVM_TYPE_ERROR, "axis -3 is outside [-2, 2)", context, x, INT(-3));
  rvm_value_release(&x);
}

static void test_is_null(void) {
  GOOD(is_null, got.tag == RVM_TAG_BOOL && got.as.i, NIL);
  GOOD(is_null, !got.as.i, INT(0));
  BAD(is_null, RVM_ARGUMENT_ERROR, "wrong number");
}

static void test_check_value(void) {
  rvm_value where = string_value("here");
  GOOD(check_value, got.tag == RVM_TAG_NIL, INT(0), where);
  BAD(check_value, RVM_TYPE_ERROR, "here: expected a value, got nil", NIL, where);
  rvm_value_release(&where);
}

enum { T_ANY, T_NEVER, T_TENSOR, T_SHAPE, T_SCALAR, T_FUNCTION, T_TUPLE, T_LIST, T_OPTIONAL };
#define TENSOR_OF(rank) INT(T_TENSOR), INT(rank), INT(RVM_DTYPE_i32), INT(1), INT(EQUAL), INT(2)

static void test_match_type(void) {
  rvm_value where = string_value("here"), heap = make_heap(1), x = counted(1, 0, 2), list = LIST(INT(1), FLOAT(2));
  rvm_value lists = tuple_value(2, (rvm_value[]){NIL, list}), none = list_value(0, NULL);
  ((int64_t *)heap.as.tensor->dl.data)[0] = 3;
  GOOD(match_type, got.tag == RVM_TAG_NIL, INT(1), NIL, where, INT(T_ANY));
  GOOD(match_type, 1, x, NIL, where, TENSOR_OF(1));
  GOOD(match_type, 1, NIL, NIL, where, INT(T_OPTIONAL), INT(T_TUPLE), INT(2), INT(T_LIST), TENSOR_OF(1), INT(T_NEVER));
  GOOD(match_type, 1, none, NIL, where, INT(T_LIST), INT(T_NEVER));
  GOOD(match_type, 1, INT(3), heap, where, INT(T_SCALAR), INT(RVM_DTYPE_i64), INT(EQUAL_HEAP), INT(0));
  GOOD(match_type, 1, list, NIL, where, INT(T_TUPLE), INT(2), INT(T_SCALAR), INT(RVM_DTYPE_i64), INT(ANY), INT(0),
       INT(T_ANY));
  GOOD(match_type, 1, concat, NIL, where, INT(T_FUNCTION));
  BAD(match_type, RVM_TYPE_ERROR, "here: expected a tensor of rank 2 and dtype i32, got a tensor of rank 1", x, NIL,
      where, TENSOR_OF(2));
  BAD(match_type, RVM_TYPE_ERROR, "here, item 1, item 1: expected an i64 scalar, got float", lists, NIL, where,
      INT(T_LIST), INT(T_OPTIONAL), INT(T_LIST), INT(T_SCALAR), INT(RVM_DTYPE_i64), INT(ANY), INT(0));
  BAD(match_type, RVM_SHAPE_ERROR, "here: expected 3, got 4", INT(4), heap, where, INT(T_SCALAR), INT(RVM_DTYPE_i64),
      INT(EQUAL_HEAP), INT(0));
  BAD(match_type, RVM_INDEX_ERROR, "heap slot 1 is out of range", INT(4), heap, where, INT(T_SCALAR),
      INT(RVM_DTYPE_i64), INT(EQUAL_HEAP), INT(1));
  BAD(match_type, RVM_TYPE_ERROR, "here, item 0: expected no value, got int", list, NIL, where, INT(T_LIST),
      INT(T_NEVER));
  BAD(match_type, RVM_TYPE_ERROR, "here: expected a shape of rank 1, got int", INT(1), NIL, where, INT(T_SHAPE), INT(1),
      INT(0));
  BAD(match_type, RVM_ARGUMENT_ERROR, "do not encode a type", INT(1), NIL, where);
  BAD(match_type, RVM_ARGUMENT_ERROR, "do not encode a type", INT(1), NIL, where, INT(10));
  BAD(match_type, RVM_ARGUMENT_ERROR, "do not encode a type", INT(1), NIL, where, INT(T_ANY), INT(T_ANY));
  BAD(match_type, RVM_ARGUMENT_ERROR, "do not encode a type", x, NIL, where, INT(T_TENSOR), INT(-1), INT(-1), INT(2),
      INT(0), INT(0));
  BAD(match_type, RVM_ARGUMENT_ERROR, "do not encode a type", NIL, NIL, where, INT(T_OPTIONAL), INT(T_TENSOR), INT(1),
      INT(1), INT(INT64_MAX), INT(0));
  BAD(match_type, RVM_ARGUMENT_ERROR, "do not encode a type", NIL, NIL, where, INT(T_OPTIONAL), INT(T_TUPLE),
      INT(INT64_MAX));
  rvm_value nested[300] = {NIL, NIL, where}, got = {0};
  for (int i = 3; i < 300; i++) nested[i] = INT(T_OPTIONAL);
  CHECK_FAILS(rvm_builtin_match_type(NULL, nested, 300, &got), RVM_ARGUMENT_ERROR, "do not encode a type", got);
  rvm_value_release(&none);
  rvm_value_release(&lists);
  rvm_value_release(&list);
  rvm_value_release(&x);
  rvm_value_release(&heap);
  rvm_value_release(&where);
}

#endif
