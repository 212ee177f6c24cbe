/* native_library.c: the library of a native section, written by hand.  test_native.c adds the function table (build_of)
   and calls the functions. */
#include "native.h"

static const rvm_native_api *api;
static int32_t opened; /* how often relvm_native_open of this copy of the library was called */

rvm_status relvm_native_open(const rvm_native_api *given) {
  if (given->abi_version != RVM_ABI_VERSION) return RVM_UNSUPPORTED;
  api = given;
  opened++;
  return RVM_OK;
}

/* pair(x) = make_tuple(x, c[0]) */
rvm_status pair(rvm_machine *machine, rvm_value *r, const rvm_value *c, const rvm_value *f) {
  rvm_value arguments[] = {r[0], c[0]}, result = {0};
  rvm_status status = api->call(machine, f[0], arguments, 2, &result);
  r[1] = result; /* the value or the error */
  return status;
}

/* descend(n) = n ? descend(n - 1) : opened.  Fails if the condition has the wrong type. */
rvm_status descend(rvm_machine *machine, rvm_value *r, const rvm_value *c, const rvm_value *f) {
  (void)c;
  int32_t truth;
  rvm_status status = api->truth(r[0], &truth, &r[1]);
  if (status) return status;
  if (!truth) {
    r[1] = (rvm_value){.tag = RVM_TAG_INT, .as.i = opened};
    return RVM_OK;
  }
  r[2] = (rvm_value){.tag = RVM_TAG_INT, .as.i = r[0].as.i - 1};
  return api->call(machine, f[4], &r[2], 1, &r[1]);
}

/* endless(x): polls until a poll fails */
rvm_status endless(rvm_machine *machine, rvm_value *r, const rvm_value *c, const rvm_value *f) {
  (void)c, (void)f;
  for (;;) {
    rvm_status status = api->poll(machine, &r[1]);
    if (status) return status;
  }
}

/* silent(x): fails without an error message */
rvm_status silent(rvm_machine *machine, rvm_value *r, const rvm_value *c, const rvm_value *f) {
  (void)machine, (void)r, (void)c, (void)f;
  return RVM_INDEX_ERROR;
}

/* pass(callee, x) = callee(x), as a tail call.  An int callee is an index of the function table. */
rvm_status pass(rvm_machine *machine, rvm_value *r, const rvm_value *c, const rvm_value *f) {
  (void)c;
  return api->tail_call(machine, r[0].tag == RVM_TAG_INT ? f[r[0].as.i] : r[0], &r[1], 1, &r[2]);
}

static rvm_value taken(rvm_value *from) {
  const rvm_value value = *from;
  *from = (rvm_value){.tag = RVM_TAG_NIL};
  return value;
}

/* direct(callee, x): calls `pass` as generated code calls routines of its library: in a window above its own. */
rvm_status direct(rvm_machine *machine, rvm_value *r, const rvm_value *c, const rvm_value *f) {
  rvm_machine_head *head = (rvm_machine_head *)machine;
  rvm_value *window = head->top;
  if (head->stack_end - window < 3) return api->fail(&r[2], RVM_STACK_OVERFLOW, "direct: no room");
  window[0] = taken(&r[0]);
  window[1] = taken(&r[1]);
  head->top += 3;
  const rvm_status status = pass(machine, window, c, f);
  if (status == RVM_TAIL_CALL) return api->finish_tail_call(machine, window, 2, &r[2]);
  r[2] = taken(&window[2]);
  api->release(&window[0]);
  api->release(&window[1]);
  head->top = window;
  return status;
}

/* typed(n) = untyped(n) = -n.  In bytecode, both count down to 0. */
rvm_status typed(rvm_machine *machine, rvm_value *r, const rvm_value *c, const rvm_value *f) {
  (void)machine, (void)c, (void)f;
  r[1] = (rvm_value){.tag = RVM_TAG_INT, .as.i = -r[0].as.i};
  return RVM_OK;
}

rvm_status untyped(rvm_machine *machine, rvm_value *r, const rvm_value *c, const rvm_value *f) {
  return typed(machine, r, c, f);
}

/* add_one(x, y): y[0] = x[0] + 1 */
rvm_status add_one(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  (void)self, (void)count;
  if (arguments[0].tag != RVM_TAG_TENSOR)
    return api->fail(result, RVM_TYPE_ERROR, "add_one: argument %d is no tensor", 0);
  *(float *)arguments[1].as.tensor->dl.data = *(const float *)arguments[0].as.tensor->dl.data + 1;
  return RVM_OK;
}
