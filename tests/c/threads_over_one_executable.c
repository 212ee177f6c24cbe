/* threads_over_one_executable.c: eight threads, each with its own machine of one executable, whose kernels also share
   the workers.  The argument is FILE.rvm; its main(x: f32[n, n]) returns a pair of an f32 scalar and an int, which must
   be the same on every thread.  test_c.py runs it under the thread sanitizer. */
#include <pthread.h>

#include "check.h"

enum { THREADS = 8, ROUNDS = 6, SIZE = 96 };

static rvm_executable *executable;
static float expected_sum;
static int64_t expected_count;

static rvm_status run(rvm_machine *machine, rvm_value x, rvm_value *result) {
  return rvm_machine_call(machine, rvm_executable_find(executable, "main"), &x, 1, result);
}

static rvm_value input(void) {
  rvm_value x = tensor_value(RVM_DTYPE_f32, 2, (int64_t[]){SIZE, SIZE});
  for (int64_t i = 0; i < SIZE * SIZE; i++) ((float *)x.as.tensor->dl.data)[i] = (float)(i % 7) / 16;
  return x;
}

static float sum_of(rvm_value pair) { return *(float *)pair.as.tuple->items[0].as.tensor->dl.data; }

/* Creates machines, runs them and releases them; in between, calls one with an invalid argument.  Returns NULL, or a
   description of the failure. */
static void *work(void *unused) {
  (void)unused;
  for (int round = 0; round < ROUNDS; round++) {
    const rvm_machine_options options = {.threads = 1 + round % 3};
    rvm_machine *machine;
    rvm_value result = {0}, x = input();
    if (rvm_machine_new(executable, &options, &machine, &result)) return "no machine";
    if (run(machine, int_value(1), &result) != RVM_TYPE_ERROR) return "an argument of the wrong type was taken";
    rvm_value_release(&result);
    for (int again = 0; again < 3; again++) {
      if (run(machine, x, &result)) return "a run failed";
      if (sum_of(result) != expected_sum || result.as.tuple->items[1].as.i != expected_count) return "another result";
      rvm_value_release(&result);
    }
    rvm_value_release(&x);
    rvm_machine_release(machine);
  }
  return NULL;
}

static void *read_file(const char *path, int64_t *size_bytes) {
  FILE *file = fopen(path, "rb");
  if (!file) exit(2);
  fseek(file, 0, SEEK_END);
  *size_bytes = ftell(file);
  rewind(file);
  void *bytes = aligned_alloc(64, ((size_t)*size_bytes + 63) / 64 * 64);
  if (fread(bytes, 1, (size_t)*size_bytes, file) != (size_t)*size_bytes) exit(2);
  fclose(file);
  return bytes;
}

int main(int count, char **arguments) {
  if (count < 2) return 2;
  const rvm_load_options options = {.trust_native = 1};
  int64_t size_bytes;
  void *bytes = read_file(arguments[1], &size_bytes);
  rvm_machine *machine;
  rvm_value result = {0}, x = input();
  CHECK_OK(rvm_executable_load(bytes, size_bytes, &options, &executable, &result), result);
  CHECK_OK(rvm_machine_new(executable, NULL, &machine, &result), result);
  CHECK_OK(run(machine, x, &result), result);
  expected_sum = sum_of(result);
  expected_count = result.as.tuple->items[1].as.i;
  rvm_value_release(&result);
  rvm_value_release(&x);
  rvm_machine_release(machine);
  pthread_t threads[THREADS];
  for (int t = 0; t < THREADS; t++) CHECK(pthread_create(&threads[t], NULL, work, NULL) == 0);
  for (int t = 0; t < THREADS; t++) {
    void *wrong;
    CHECK(pthread_join(threads[t], &wrong) == 0);
    if (wrong) printf("thread %d: %s\n", t, (const char *)wrong), checks_failed++;
  }
  rvm_executable_release(executable);
  free(bytes);
  return CHECK_RESULT();
}
