/* test_objects.c: the free lists of objects: which released objects they keep, and how many. */
#include "allocation.h"
#include "check.h"
#include "object_freelist.h"
#include "tensor.h"

enum { MANY = 5000 };

static void made_and_dead(int64_t n) {
  const int64_t dims[] = {n, 2};
  rvm_value tensor = tensor_value(RVM_DTYPE_f32, 2, dims), shape = shape_value(2, dims), closure;
  MAKE(closure, rvm_closure_new(NULL, 3, &closure));
  rvm_value tuple = tuple_value(4, (rvm_value[]){tensor, shape, closure, int_value(n)});
  CHECK_INT(((float *)tensor.as.tensor->dl.data)[2 * n - 1] != 0, 0);
  for (int32_t i = 0; i < 3; i++) CHECK_INT(closure.as.closure->captured[i].tag, RVM_TAG_NIL);
  memset(tensor.as.tensor->dl.data, 0x5a, (size_t)rvm_tensor_size_bytes(tensor.as.tensor));
  for (int32_t i = 0; i < 3; i++) closure.as.closure->captured[i] = int_value(-1);
  rvm_value_release(&tensor);
  rvm_value_release(&shape);
  rvm_value_release(&closure);
  rvm_value_release(&tuple);
}

static void dead_ones_come_back_as_new(void) {
  rvm_objects objects = {0};
  rvm_objects_enter(&objects);
  for (int round = 0; round < 4; round++) {
    if (round == 1) allocations_left = 0;
    made_and_dead(3);
    made_and_dead(30);
  }
  allocations_left = -1;
  rvm_objects_close(&objects);
  CHECK_INT(objects.kept_bytes, 0);
}

static void nothing_is_kept_outside(void) {
  rvm_objects objects = {0};
  rvm_value inner, outer = tuple_value(1, (rvm_value[]){int_value(1)}), result;
  made_and_dead(3);
  rvm_objects_enter(&objects);
  inner = tuple_value(1, (rvm_value[]){int_value(1)});
  CHECK_INT(objects.kept_bytes, 0);
  rvm_value_release(&outer); /* allocated by another freelist */
  int64_t kept_bytes = objects.kept_bytes;
  CHECK(kept_bytes > 0);
  rvm_objects_leave(&objects);
  rvm_value_release(&inner);
  CHECK_INT(objects.kept_bytes, kept_bytes);
  allocations_left = 0;
  CHECK_FAILS(rvm_tuple_new(0, NULL, &result), RVM_OUT_OF_MEMORY, "out of memory", result);
  allocations_left = -1;
  rvm_objects_close(&objects);
}

static void what_is_kept_is_bounded(void) {
  static rvm_value alive[MANY];
  rvm_objects objects = {0};
  rvm_objects_enter(&objects);
  for (int32_t size = 0; size < 70; size += 23) {
    for (int i = 0; i < MANY; i++) {
      rvm_value items[70] = {{.tag = RVM_TAG_NIL}};
      alive[i] = tuple_value(size, items);
    }
    for (int i = 0; i < MANY; i++) rvm_value_release(&alive[i]);
    CHECK(objects.kept_bytes >= 0 && objects.kept_bytes <= RVM_KEPT_OBJECT_BYTES);
  }
  CHECK(objects.kept_bytes > RVM_KEPT_OBJECT_BYTES / 2);
  rvm_objects_close(&objects);
}

static void large_ones_are_not_kept(void) {
  rvm_objects objects = {0};
  const int64_t dims[] = {4096};
  rvm_objects_enter(&objects);
  rvm_value tensor = tensor_value(RVM_DTYPE_u8, 1, dims);
  rvm_value_release(&tensor);
  CHECK_INT(objects.kept_bytes, 0);
  rvm_objects_close(&objects);
}

/* Freelists are left in any order; none is written to afterwards. */
static void several_are_left_in_any_order(void) {
  for (int first = 0; first < 3; first++) {
    rvm_objects several[3] = {{.kept_bytes = 0}};
    for (int i = 0; i < 3; i++) rvm_objects_enter(&several[i]);
    rvm_objects_close(&several[first]);
    made_and_dead(3);
    CHECK(several[first == 2 ? 1 : 2].kept_bytes > 0);
    for (int i = 0; i < 3; i++) rvm_objects_close(&several[i]);
    made_and_dead(3);
    for (int i = 0; i < 3; i++) CHECK_INT(several[i].kept_bytes, 0);
  }
}

int main(void) {
  dead_ones_come_back_as_new();
  nothing_is_kept_outside();
  what_is_kept_is_bounded();
  large_ones_are_not_kept();
  several_are_left_in_any_order();
  return CHECK_RESULT();
}
