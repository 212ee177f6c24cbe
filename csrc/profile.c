/* profile.c: an instrument that measures calls: how many, how long, over how many bytes. */
#include <string.h>

#include "machine.h"

/* A measured call under way.  They are inside each other where a function of the host calls the machine. */
typedef struct open_call {
  int64_t started, inner; /* nanoseconds; inner: in measured calls that it made */
} open_call;

struct rvm_profile {
  const rvm_executable *executable;
  open_call *open;
  int64_t depth, room; /* of `open` */
  rvm_profile_row rows[];
};

static int64_t value_bytes(rvm_value value) {
  return value.tag == RVM_TAG_TENSOR ? rvm_tensor_size_bytes(value.as.tensor) : 0;
}

static int is_builtin(const rvm_profile *profile, int32_t function) {
  const char *name = rvm_executable_function_name(profile->executable, function);
  return strncmp(name, RVM_BUILTIN_PREFIX, strlen(RVM_BUILTIN_PREFIX)) == 0;
}

static rvm_status make_room(rvm_profile *profile, rvm_value *error) {
  int64_t room = profile->room ? 2 * profile->room : 16;
  open_call *open = rvm_allocate((size_t)room * sizeof *open);
  if (!open) return rvm_out_of_memory(error);
  if (profile->depth > 0) memcpy(open, profile->open, (size_t)profile->depth * sizeof *open);
  rvm_free(profile->open);
  profile->open = open;
  profile->room = room;
  return RVM_OK;
}

static rvm_status before(void *host, int32_t function, const rvm_value *arguments, int32_t count, int32_t *skip,
                         rvm_value *error) {
  (void)function, (void)arguments, (void)count, (void)skip;
  rvm_profile *profile = host;
  rvm_status status = profile->depth == profile->room ? make_room(profile, error) : RVM_OK;
  if (status) return status;
  open_call *call = &profile->open[profile->depth++];
  call->inner = 0;
  call->started = rvm_clock_now();
  return RVM_OK;
}

static rvm_status after(void *host, int32_t function, const rvm_value *arguments, int32_t count, rvm_status status,
                        const rvm_value *result, rvm_value *error) {
  (void)status, (void)error;
  rvm_profile *profile = host;
  const open_call *call = &profile->open[--profile->depth];
  int64_t elapsed = rvm_clock_now() - call->started;
  rvm_profile_row *row = &profile->rows[function];
  row->count++;
  row->nanoseconds += elapsed - call->inner;
  if (profile->depth > 0) profile->open[profile->depth - 1].inner += elapsed;
  if (is_builtin(profile, function)) return RVM_OK;
  for (int32_t i = 0; i < count; i++) row->bytes += value_bytes(arguments[i]);
  row->bytes += value_bytes(*result);
  return RVM_OK;
}

rvm_status rvm_profile_new(const rvm_executable *executable, rvm_profile **profile, rvm_value *error) {
  size_t rows_bytes = (size_t)executable->function_count * sizeof(rvm_profile_row);
  *profile = rvm_allocate_zeroed(sizeof **profile + rows_bytes);
  if (!*profile) return rvm_out_of_memory(error);
  (*profile)->executable = executable;
  return RVM_OK;
}

rvm_instrument rvm_profile_instrument(rvm_profile *profile) {
  return (rvm_instrument){
      .kinds = 1u << RVM_KIND_packed | 1u << RVM_KIND_kernel, .before = before, .after = after, .host = profile};
}

rvm_profile_row rvm_profile_read(const rvm_profile *profile, int32_t function) {
  if (function < 0 || function >= profile->executable->function_count) return (rvm_profile_row){.count = 0};
  return profile->rows[function];
}

void rvm_profile_release(rvm_profile *profile) {
  if (profile) rvm_free(profile->open);
  rvm_free(profile);
}
