/* test_portable.c: the portable program of a file, which a load option selects. */
#include "check.h"
#include "program.h"

enum { AS_WRITTEN, WITH_NATIVE, WITH_PORTABLE, WITH_DATA, DAMAGED };

/* Makes a file with the function `outside`, whose portable program has the function `inside`, which returns a constant
   at offset `payload` of the data. */
static unsigned char *make_portable(int64_t payload, int variant, int64_t *size_bytes) {
  image inside = {0}, outside = {0};
  int64_t inside_bytes;
  image_tensor(&inside, RVM_DTYPE_i8, 1, (int64_t[]){4}, "aaaa", 4);
  ((image_constant *)inside.constants.bytes)->payload = payload;
  if (variant == WITH_NATIVE) image_native(&inside, "x86_64-linux-gnu", "", "", 0);
  if (variant == WITH_PORTABLE) image_native(&inside, "", "", "", 0);
  const uint32_t copy = image_packed(&inside, "vm.builtin.copy");
  image_bytecode(&inside, "inside", "", 1);
  CALL(&inside, 0, copy, C(0));
  RET(&inside, 0);
  unsigned char *bytes = image_finish(&inside, &inside_bytes);
  const uint32_t unknown = 99, portable = RVM_SECTION_portable;
  if (variant != WITH_DATA)
    memcpy(bytes + 64 + 32 * 4, &unknown,
           sizeof unknown); /* hides the portable program's own tensors: unknown sections are ignored */
  if (variant == WITH_PORTABLE) memcpy(bytes + 64 + 32 * 5, &portable, sizeof portable);
  image_seal(bytes);
  bytes[8] ^= variant == DAMAGED;
  image_tensor(&outside, RVM_DTYPE_i8, 1, (int64_t[]){4}, "bcde", 4);
  image_bytecode(&outside, "outside", "x", 1);
  RET(&outside, 0);
  buffer_add(&outside.source, bytes, (size_t)inside_bytes);
  free(bytes);
  bytes = image_finish(&outside, size_bytes);
  memcpy(bytes + 64 + 32 * 4, &portable, sizeof portable), image_seal(bytes);
  return bytes;
}

static rvm_status load_portable(unsigned char *bytes, int64_t size_bytes, rvm_executable **executable,
                                rvm_value *error) {
  const rvm_load_options options = {.portable = 1};
  *error = (rvm_value){.tag = RVM_TAG_NIL};
  rvm_status status = rvm_executable_load(bytes, size_bytes, &options, executable, error);
  if (status) free(bytes);
  return status;
}

static void check_result(int variant, const char *elements) {
  int64_t size_bytes;
  rvm_executable *executable;
  rvm_machine *machine;
  rvm_value error, result;
  unsigned char *bytes = make_portable(0, variant, &size_bytes);
  CHECK_OK(load_portable(bytes, size_bytes, &executable, &error), error);
  CHECK(rvm_executable_find(executable, "outside") == -1);
  CHECK_OK(rvm_machine_new(executable, NULL, &machine, &error), error);
  CHECK_OK(rvm_machine_call(machine, rvm_executable_find(executable, "inside"), NULL, 0, &result), result);
  CHECK(result.tag == RVM_TAG_TENSOR && memcmp(result.as.tensor->dl.data, elements, 4) == 0);
  rvm_value_release(&result);
  CHECK(rvm_machine_release(machine) == RVM_OK);
  rvm_executable_release(executable);
  CHECK_OK(rvm_executable_load(bytes, size_bytes, NULL, &executable, &error), error);
  CHECK(rvm_executable_find(executable, "inside") == -1 && rvm_executable_find(executable, "outside") >= 0);
  rvm_executable_release(executable);
  free(bytes);
}

static void a_portable_program_uses_the_tensors_of_its_file(void) {
  check_result(AS_WRITTEN, "bcde");
  check_result(WITH_DATA, "aaaa"); /* as files of format 1.2 */
}

static void a_wrong_portable_program_is_refused(void) {
  int64_t size_bytes;
  rvm_executable *executable;
  rvm_value error;
  unsigned char *bytes = make_portable(64, AS_WRITTEN, &size_bytes);
  CHECK_FAILS(load_portable(bytes, size_bytes, &executable, &error), RVM_BAD_EXECUTABLE, "outside the data section",
              error);
  for (int variant = WITH_NATIVE; variant <= WITH_PORTABLE; variant++) {
    bytes = make_portable(0, variant, &size_bytes);
    CHECK_FAILS(load_portable(bytes, size_bytes, &executable, &error), RVM_BAD_EXECUTABLE,
                "must not contain a section native", error);
  }
  bytes = make_portable(0, DAMAGED, &size_bytes);
  CHECK_FAILS(load_portable(bytes, size_bytes, &executable, &error), RVM_UNSUPPORTED, "format version 0", error);
  image program = {0};
  program_build(&program);
  bytes = image_finish(&program, &size_bytes);
  CHECK_FAILS(load_portable(bytes, size_bytes, &executable, &error), RVM_UNSUPPORTED, "it has no portable program",
              error);
}

int main(void) {
  a_portable_program_uses_the_tensors_of_its_file();
  a_wrong_portable_program_is_refused();
  return CHECK_RESULT();
}
