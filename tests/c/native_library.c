/* native_library.c: a native section by hand, for test_native.c.  Function table: see build() there. */
#include "native.h"

static const rvm_native_api *api;
static int32_t opened; /* of this copy of the library */

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
  r[1] = result; /* the value, or the error */
  return status;
}

/* descend(n) = n ? descend(n - 1) : opened, with an ill-typed condition refused */
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
  return api->call(machine, f[2], &r[2], 1, &r[1]);
}

/* endless(x): only polled */
rvm_status endless(rvm_machine *machine, rvm_value *r, const rvm_value *c, const rvm_value *f) {
  (void)c, (void)f;
  for (;;) {
    rvm_status status = api->poll(machine, &r[1]);
    if (status) return status;
  }
}

/* silent(x) fails and does not say why */
rvm_status silent(rvm_machine *machine, rvm_value *r, const rvm_value *c, const rvm_value *f) {
  (void)machine, (void)r, (void)c, (void)f;
  return RVM_INDEX_ERROR;
}

/* add_one(x, y): y[0] = x[0] + 1 */
rvm_status add_one(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  (void)self, (void)count;
  if (arguments[0].tag != RVM_TAG_TENSOR)
    return api->fail(result, RVM_TYPE_ERROR, "add_one: argument %d is no tensor", 0);
  *(float *)arguments[1].as.tensor->dl.data = *(const float *)arguments[0].as.tensor->dl.data + 1;
  return RVM_OK;
}
