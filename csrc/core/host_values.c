/* host_values.c: the public constructors of tuples and lists, which check their items. */
#include "private_tensor.h"

/* Replaces those items of a new tuple or list that need admission (rvm_value_admit) by private copies.  On failure,
   releases the tuple or list and stores the error in *object. */
static rvm_status admit_items(rvm_value *object) {
  int32_t size;
  rvm_value *items = rvm_value_items(*object, &size);
  for (int32_t i = 0; i < size; i++) {
    rvm_value admitted;
    if (!rvm_value_needs_admission(items[i])) continue;
    rvm_status status = rvm_value_admit(NULL, items[i], &admitted);
    if (status) {
      rvm_release(object);
      *object = admitted;
      return status;
    }
    rvm_release(&items[i]);
    items[i] = admitted;
  }
  return RVM_OK;
}

rvm_status rvm_tuple_new(int32_t size, const rvm_value *items, rvm_value *result) {
  RVM_EXPECT_POINTER(result, NULL);
  RVM_EXPECT_ARRAY(items, size, result);
  rvm_status status = rvm_expect_sound("rvm_tuple_new: item", items, size, result);
  if (!status) status = rvm_tuple_of(size, items, result);
  return status ? status : admit_items(result);
}

rvm_status rvm_list_new(int32_t size, const rvm_value *items, rvm_value *result) {
  RVM_EXPECT_POINTER(result, NULL);
  RVM_EXPECT_ARRAY(items, size, result);
  rvm_status status = rvm_expect_sound("rvm_list_new: item", items, size, result);
  if (!status) status = rvm_list_of(size, items, result);
  return status ? status : admit_items(result);
}
