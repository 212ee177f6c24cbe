/* Native sections: loaded from memory, checked against this machine, called like everything else.
   The library is native_library.c, its path the first argument. */
#include "check.h"
#include "image.h"
#include "machine.h"

#if defined(__x86_64__)
#define TRIPLE "x86_64-linux-gnu"
#else
#define TRIPLE "aarch64-linux-gnu"
#endif

static unsigned char *library;
static size_t library_bytes;

static void read_library(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) exit(2);
  library = malloc(1 << 20);
  library_bytes = fread(library, 1, 1 << 20, file);
  fclose(file);
}

enum { MAKE_TUPLE, PAIR, DESCEND, ENDLESS, SILENT, ADD_ONE, MAIN };

/* main(x, y) = add_one(x, y); pair(x) */
static void build(image *to) {
  image_packed(to, "vm.builtin.make_tuple");
  image_function(to, RVM_KIND_native, "pair", "x", 2);
  image_function(to, RVM_KIND_native, "descend", "n", 3);
  image_function(to, RVM_KIND_native, "endless", "x", 2);
  image_function(to, RVM_KIND_native, "silent", "x", 2);
  image_function(to, RVM_KIND_kernel, "add_one", "x y", 0);
  image_bytecode(to, "main", "x y", 3);
  CALL(to, NONE, ADD_ONE, R(0), R(1));
  CALL(to, 2, PAIR, R(1));
  RET(to, 2);
  image_text(to, "constant");
}

static rvm_status load(const char *triple, const char *cpu, size_t size_bytes, loaded *what, rvm_value *error) {
  image program = {0};
  build(&program);
  image_native(&program, triple, cpu, library, size_bytes);
  return image_load(&program, what, error);
}

static void check_refused(const char *triple, const char *cpu, size_t size_bytes, rvm_status status, const char *text) {
  loaded what;
  rvm_value error;
  CHECK_FAILS(load(triple, cpu, size_bytes, &what, &error), status, text, error);
  loaded_release(&what);
}

static void code_for_another_machine_is_refused(void) {
  check_refused("riscv64-linux-gnu", "", library_bytes, RVM_UNSUPPORTED, "native code is for riscv64-linux-gnu");
  check_refused("x86_64-windows", "", library_bytes, RVM_UNSUPPORTED, "native code is for x86_64-windows");
  check_refused(TRIPLE, "x86-64-v9", library_bytes, RVM_UNSUPPORTED, "native code is for processors with x86-64-v9;");
  check_refused(TRIPLE, "", 100, RVM_BAD_EXECUTABLE, "native code:");
  check_refused(TRIPLE, "", 0, RVM_BAD_EXECUTABLE, "native code:");
}

static void another_abi_version_is_refused(void) {
  image program = {0};
  loaded what;
  rvm_value error;
  build(&program);
  image_native(&program, TRIPLE, "", library, library_bytes);
  program.native.bytes[0]++;
  CHECK_FAILS(image_load(&program, &what, &error), RVM_UNSUPPORTED, "this runtime version", error);
  loaded_release(&what);
}

/* As what is for another machine may; and what has no native code is for every machine. */
static void another_abi_version_may_be_loaded_for_elsewhere(void) {
  const rvm_load_options options = {.trust_native = 1, .elsewhere = 1};
  rvm_value error = {0};
  for (int has_native = 0; has_native < 2; has_native++) {
    image program = {0};
    int64_t size_bytes;
    rvm_executable *executable;
    rvm_machine *machine;
    if (has_native) {
      image_native(&program, TRIPLE, "", library, library_bytes);
      program.native.bytes[0]++;
    }
    unsigned char *bytes = image_finish(&program, &size_bytes);
    CHECK_OK(rvm_executable_load(bytes, size_bytes, &options, &executable, &error), error);
    if (has_native) {
      CHECK_FAILS(rvm_executable_check_native(executable, &error), RVM_UNSUPPORTED, "this runtime version", error);
      CHECK_FAILS(rvm_machine_new(executable, NULL, &machine, &error), RVM_UNSUPPORTED, "this runtime version", error);
    } else {
      CHECK_OK(rvm_executable_check_native(executable, &error), error);
    }
    rvm_executable_release(executable);
    free(bytes);
  }
}

static void a_malformed_header_is_refused(void) {
  for (int fault = 0; fault < 4; fault++) {
    image program = {0};
    loaded what;
    rvm_value error;
    build(&program);
    image_native(&program, TRIPLE, "", library, library_bytes);
    uint32_t *header = (uint32_t *)program.native.bytes; /* abi version, triple, cpu, 13 zeros */
    if (fault < 2) header[1 + fault] = program.string_count;
    if (fault == 2) header[15] = 1;
    if (fault == 3) program.native.size = 60;
    CHECK_FAILS(image_load(&program, &what, &error), RVM_BAD_EXECUTABLE, "header of the native section", error);
    loaded_release(&what);
  }
}

static void a_missing_symbol_is_named(void) {
  image program = {0};
  loaded what;
  rvm_value error;
  build(&program);
  image_function(&program, RVM_KIND_kernel, "absent", "x", 0);
  image_native(&program, TRIPLE, "", library, library_bytes);
  CHECK_FAILS(image_load(&program, &what, &error), RVM_BAD_EXECUTABLE, "native code has no symbol absent", error);
  loaded_release(&what);
}

static rvm_status stop(void *host, rvm_value *error) {
  (void)host;
  return rvm_fail(error, RVM_INTERRUPTED, "stopped");
}

static void native_and_bytecode_call_each_other(void) {
  loaded what;
  rvm_machine *machine;
  rvm_value result = {0}, tensors[] = {tensor_value(RVM_DTYPE_f32, 0, NULL), tensor_value(RVM_DTYPE_f32, 0, NULL)};
  CHECK_OK(load(TRIPLE, "", library_bytes, &what, &result), result);
  const rvm_machine_options options = {.poll = stop};
  CHECK_OK(rvm_machine_new(what.executable, &options, &machine, &result), result);
  CHECK_OK(rvm_machine_call(machine, MAIN, tensors, 2, &result), result);
  CHECK(*(float *)tensors[1].as.tensor->dl.data == 1);
  CHECK(result.as.tuple->items[0].as.tensor == tensors[1].as.tensor);
  CHECK(strcmp(result.as.tuple->items[1].as.string->bytes, "constant") == 0);
  rvm_value_release(&result);
  CHECK_INT(tensors[1].as.object->references, 1);

  rvm_value one = int_value(1), deep = int_value(1990), too_deep = int_value(10000000), nil = {0};
  CHECK_OK(rvm_machine_call(machine, DESCEND, &deep, 1, &result), result);
  CHECK_INT(result.as.i, 1);
  CHECK_INT(rvm_machine_call(machine, DESCEND, &too_deep, 1, &result), RVM_STACK_OVERFLOW);
  CHECK(strstr(result.as.error->trace, "  in descend\n  in descend\n") && result.as.error->frames > 2000);
  rvm_value_release(&result);
  CHECK_FAILS(rvm_machine_call(machine, DESCEND, &nil, 1, &result), RVM_TYPE_ERROR, "condition: expected", result);
  CHECK_FAILS(rvm_machine_call(machine, ENDLESS, &one, 1, &result), RVM_INTERRUPTED, "stopped", result);
  CHECK_FAILS(rvm_machine_call(machine, SILENT, &one, 1, &result), RVM_INDEX_ERROR, "silent failed without saying why",
              result);
  CHECK_FAILS(rvm_machine_call(machine, PAIR, NULL, 0, &result), RVM_ARGUMENT_ERROR,
              "pair: expected 1 argument (x), got 0", result);
  CHECK_FAILS(rvm_machine_call(machine, MAIN, (rvm_value[]){one, one}, 2, &result), RVM_TYPE_ERROR,
              "add_one: argument 0", result);
  CHECK(machine->head.top == machine->stack && machine->head.nesting == 0 && machine->entries == 0);
  rvm_machine_release(machine);
  loaded_release(&what);
  rvm_value_release(&tensors[0]);
  rvm_value_release(&tensors[1]);
}

static void each_executable_has_a_library_of_its_own(void) {
  enum { COPIES = 3 };
  loaded what[COPIES];
  rvm_machine *machines[COPIES];
  rvm_value result = {0}, zero = int_value(0);
  for (int i = 0; i < COPIES; i++) CHECK_OK(load(TRIPLE, "", library_bytes, &what[i], &result), result);
  loaded_release(&what[0]); /* its descriptor is free again */
  CHECK_OK(load(TRIPLE, "", library_bytes, &what[0], &result), result);
  for (int i = 0; i < COPIES; i++) {
    CHECK_OK(rvm_machine_new(what[i].executable, NULL, &machines[i], &result), result);
    CHECK_OK(rvm_machine_call(machines[i], DESCEND, &zero, 1, &result), result);
    CHECK_INT(result.as.i, 1);
    rvm_machine_release(machines[i]);
  }
  for (int i = 0; i < COPIES; i++) loaded_release(&what[i]);
}

int main(int count, char **arguments) {
  if (count < 2) return 2;
  read_library(arguments[1]);
  code_for_another_machine_is_refused();
  another_abi_version_is_refused();
  another_abi_version_may_be_loaded_for_elsewhere();
  a_malformed_header_is_refused();
  a_missing_symbol_is_named();
  native_and_bytecode_call_each_other();
  each_executable_has_a_library_of_its_own();
  free(library);
  return CHECK_RESULT();
}
