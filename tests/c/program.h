/* program.h: an executable that uses every part of the format, for tests that damage it or run out of memory. */
#ifndef RELVM_TEST_PROGRAM_H
#define RELVM_TEST_PROGRAM_H

#include "image.h"

/* Builds main(x: a tensor of two f32, n: int) and returns its index.  It makes tuples, shapes, tensors and a closure,
   and returns a tuple.  Unless n is 0, it fails with a TYPE_ERROR after one iteration of a loop. */
static inline uint32_t program_build(image *to) {
  static const float numbers[] = {1.5f, 2.5f};
  uint32_t make_tuple = image_packed(to, "vm.builtin.make_tuple"),
           heap = image_packed(to, "vm.builtin.alloc_shape_heap");
  uint32_t match = image_packed(to, "vm.builtin.match_shape"), compute = image_packed(to, "vm.builtin.compute_dim");
  uint32_t make_shape = image_packed(to, "vm.builtin.make_shape"),
           storage = image_packed(to, "vm.builtin.alloc_storage");
  uint32_t tensor = image_packed(to, "vm.builtin.alloc_tensor"), closure = image_packed(to, "vm.builtin.make_closure");
  uint32_t invoke = image_packed(to, "vm.builtin.invoke_closure"),
           slots = image_packed(to, "vm.builtin.shape_to_tensor");
  uint32_t equal = image_packed(to, "vm.builtin.match_prim_value"), reshape = image_packed(to, "vm.builtin.reshape");
  uint32_t where = image_text(to, "main: x"), f32 = image_dtype(to, RVM_DTYPE_f32);
  uint32_t weights = image_tensor(to, RVM_DTYPE_f32, 1, (int64_t[]){2}, numbers, sizeof numbers);
  uint32_t pair = image_shape(to, 2, (int64_t[]){1, 2});
  image_int(to, -7);
  image_float(to, 0.5);
  uint32_t second = image_bytecode(to, "second", "x y", 3);
  CALL(to, 2, make_tuple, R(0), R(1), I(-5), B(1), N);
  RET(to, 2);
  uint32_t main_function = image_bytecode(to, "main", "x n", 10);
  CALL(to, 2, heap, X, I(3));
  CALL(to, NONE, match, R(0), R(2), I(1), I(1), I(0), C(where));     /* heap[0] = x.shape[0] */
  CALL(to, NONE, compute, R(2), I(1), I(0), I(3), I(0), I(2), I(0)); /* heap[1] = heap[0] + 0 */
  CALL(to, 3, make_shape, R(2), I(2), I(3), I(1), I(2), I(2));
  CALL(to, 4, storage, X, R(3), I(0), C(f32));
  CALL(to, 5, tensor, R(4), I(0), R(3), C(f32));
  RESET(to, 4);
  CALL(to, 6, closure, F(second), R(5));
  CALL(to, 7, slots, C(pair));
  CALL(to, 8, reshape, C(weights), C(pair));
  int32_t loop = image_here(to);
  IF(to, 1, 0); /* patched to jump to the end */
  CALL(to, 9, invoke, X, R(6), R(8));
  CALL(to, NONE, equal, R(1), R(2), I(1), I(2), C(where)); /* heap[2] = n */
  CALL(to, 1, make_tuple);                                 /* a tuple, which fails as a condition */
  GOTO(to, loop - image_here(to));
  image_patch(to, loop + 2, image_here(to) - loop);
  CALL(to, 9, invoke, X, R(6), R(8));
  CALL(to, 9, make_tuple, R(9), R(5), R(7), R(3), F(main_function));
  RET(to, 9);
  return main_function;
}

#endif
