/* test_api.c: invalid arguments.  Each public function rejects them as relvm.h says, and everything stays usable.
   test_api.py requires a case for each parameter in the headers. */
#include <math.h>
#include <pthread.h>

#include "misuse.h"
#include "relvm_stack.h"
#include "relvm_views.h"
#include "run.h"

static rvm_value slot; /* results and errors */

enum { NO_DTYPE = RVM_DTYPE_COUNT, HUGE_COUNT = INT32_MAX };

static rvm_machine *machine;
static loaded exe, other; /* `machine` runs `exe`; `other` has other functions */
static uint32_t identity, host;

static rvm_value text_value, tensor_of_two, strings_of_two;

/* Invalid values, and their descriptions in messages. */
static const struct {
  rvm_value value;
  const char *text;
} unsound[] = {
    {{.tag = -1}, "unknown"},
    {{.tag = RVM_TAG_COUNT}, "unknown"},
    {{.tag = INT64_MAX}, "unknown"},
    {{.tag = RVM_TAG_CONTEXT}, "context"},
    {{.tag = RVM_TAG_ERROR}, "error"},
    {{.tag = RVM_TAG_BOOL, .as.i = 2}, "malformed bool"},
    {{.tag = RVM_TAG_DTYPE, .as.i = NO_DTYPE}, "malformed dtype"},
    {{.tag = RVM_TAG_DTYPE, .as.i = -1}, "malformed dtype"},
    {{.tag = RVM_TAG_FUNCTION}, "malformed function"},
    {{.tag = RVM_TAG_TENSOR}, "malformed tensor"},
    {{.tag = RVM_TAG_SHAPE}, "malformed shape"},
    {{.tag = RVM_TAG_TUPLE}, "malformed tuple"},
    {{.tag = RVM_TAG_CLOSURE}, "malformed closure"},
    {{.tag = RVM_TAG_STRING}, "malformed string"},
    {{.tag = RVM_TAG_STORAGE}, "malformed storage"},
    {{.tag = RVM_TAG_LIST}, "malformed list"},
};

/* Returns an object under the tag of another kind. */
static rvm_value disguised(rvm_value value, int64_t tag) {
  value.tag = tag;
  return value;
}

/* ---- values ---- */

static void references(void) {
  rvm_value nothing = {.tag = RVM_TAG_STRING}, shape = shape_value(0, NULL), kept = shape;
  IGNORES(rvm_value_retain, value, nothing);
  IGNORES(rvm_value_retain, value, disguised(shape, RVM_TAG_TENSOR));
  IGNORES(rvm_value_retain, value, disguised(shape, INT64_MAX));
  CHECK_INT(shape.as.object->references, 1);
  IGNORES(rvm_value_release, value, NULL);
  IGNORES(rvm_value_release, value, &nothing);
  CHECK_INT(nothing.tag, RVM_TAG_NIL);
  IGNORES(rvm_value_release, value, &nothing);
  kept = disguised(shape, RVM_TAG_LIST);
  IGNORES(rvm_value_release, value, &kept);
  CHECK(kept.tag == RVM_TAG_NIL && shape.as.object->references == 1);
  rvm_value_release(&shape);
  IGNORES(rvm_value_release, value, &shape); /* a second time */
}

static void failures(void) {
  ANY(rvm_fail, result);
  RETURNS(rvm_fail, result, RVM_TYPE_ERROR, NULL, RVM_TYPE_ERROR, "%s", "unread");
  for (int status = -2; status <= 0; status++)
    WRONG(rvm_fail, status, RVM_CALLBACK_ERROR, "text", &slot, status, "text");
  WRONG(rvm_fail, status, RVM_CALLBACK_ERROR, "text", &slot, RVM_STATUS_COUNT, "text");
  WRONG(rvm_fail, status, RVM_CALLBACK_ERROR, "text", &slot, INT32_MAX, "text");
  WRONG(rvm_fail, format, RVM_TYPE_ERROR, "no message", &slot, RVM_TYPE_ERROR, NULL);
}

static void tensors(void) {
  const int64_t two[] = {2}, negative[] = {2, -1}, vast[] = {INT64_MAX, 2}, large[] = {INT64_MAX / 64};
  const int32_t dtypes[] = {-1, NO_DTYPE, INT32_MIN, INT32_MAX};
  float data[2] = {0};
  for (int i = 0; i < 4; i++) {
    WRONG(rvm_tensor_new, dtype, RVM_TYPE_ERROR, "unknown dtype number", dtypes[i], 1, two, &slot);
    WRONG(rvm_tensor_wrap, dtype, RVM_TYPE_ERROR, "unknown dtype number", dtypes[i], 1, two, data, NULL, NULL, &slot);
  }
  WRONG(rvm_tensor_new, rank, RVM_SHAPE_ERROR, "expected a rank of at least 0, got -1", RVM_DTYPE_f32, -1, two, &slot);
  WRONG(rvm_tensor_new, rank, RVM_SHAPE_ERROR, "expected a rank of at least 0", RVM_DTYPE_f32, INT32_MIN, NULL, &slot);
  WRONG(rvm_tensor_new, rank, RVM_ARGUMENT_ERROR, "dims is NULL", RVM_DTYPE_f32, HUGE_COUNT, NULL, &slot);
  WRONG(rvm_tensor_new, dims, RVM_ARGUMENT_ERROR, "dims is NULL, expected 1", RVM_DTYPE_f32, 1, NULL, &slot);
  WRONG(rvm_tensor_new, dims, RVM_SHAPE_ERROR, "negative", RVM_DTYPE_f32, 2, negative, &slot);
  WRONG(rvm_tensor_new, dims, RVM_SHAPE_ERROR, "64 bits", RVM_DTYPE_f32, 2, vast, &slot);
  WRONG(rvm_tensor_new, dims, RVM_OUT_OF_MEMORY, "cannot allocate", RVM_DTYPE_f32, 1, large, &slot);
  RETURNS(rvm_tensor_new, result, RVM_ARGUMENT_ERROR, RVM_DTYPE_f32, 1, two, NULL);

  WRONG(rvm_tensor_wrap, dtype, RVM_TYPE_ERROR, "strings", RVM_DTYPE_str, 1, two, data, NULL, NULL, &slot);
  WRONG(rvm_tensor_wrap, rank, RVM_SHAPE_ERROR, "expected a rank of at least 0", RVM_DTYPE_f32, -1, two, data, NULL,
        NULL, &slot);
  WRONG(rvm_tensor_wrap, dims, RVM_ARGUMENT_ERROR, "dims is NULL", RVM_DTYPE_f32, 1, NULL, data, NULL, NULL, &slot);
  WRONG(rvm_tensor_wrap, dims, RVM_SHAPE_ERROR, "negative", RVM_DTYPE_f32, 2, negative, data, NULL, NULL, &slot);
  WRONG(rvm_tensor_wrap, data, RVM_ARGUMENT_ERROR, "data is NULL", RVM_DTYPE_f32, 1, two, NULL, NULL, NULL, &slot);
  ANY(rvm_tensor_wrap, release);
  ANY(rvm_tensor_wrap, release_argument);
  RETURNS(rvm_tensor_wrap, result, RVM_ARGUMENT_ERROR, RVM_DTYPE_f32, 1, two, data, NULL, NULL, NULL);
  CHECK_OK(rvm_tensor_wrap(RVM_DTYPE_f32, 1, (int64_t[]){0}, NULL, NULL, NULL, &slot), slot); /* without elements */
  rvm_value_release(&slot);

  RETURNS(rvm_tensor_size_bytes, tensor, -1, NULL);
  RETURNS(rvm_tensor_size_bytes, tensor, -1, (rvm_tensor *)text_value.as.object);
}

static void relabelled_tensors(void) {
  rvm_value none = {.tag = RVM_TAG_NIL}, tensor = tensor_value(RVM_DTYPE_u16, 0, NULL);
  rvm_value missing = {.tag = RVM_TAG_TENSOR}, not_one = disguised(text_value, RVM_TAG_TENSOR);
  WRONG(rvm_tensor_relabel, tensor, RVM_ARGUMENT_ERROR, "tensor is NULL", NULL, RVM_DTYPE_f16, &slot);
  WRONG(rvm_tensor_relabel, tensor, RVM_TYPE_ERROR, "got nil", &none, RVM_DTYPE_f16, &slot);
  WRONG(rvm_tensor_relabel, tensor, RVM_TYPE_ERROR, "malformed tensor", &missing, RVM_DTYPE_f16, &slot);
  WRONG(rvm_tensor_relabel, tensor, RVM_TYPE_ERROR, "malformed tensor", &not_one, RVM_DTYPE_f16, &slot);
  WRONG(rvm_tensor_relabel, dtype, RVM_TYPE_ERROR, "number 99", &tensor, 99, &slot);
  WRONG(rvm_tensor_relabel, dtype, RVM_TYPE_ERROR, "number -1", &tensor, -1, &slot);
  WRONG(rvm_tensor_relabel, dtype, RVM_TYPE_ERROR, "cannot change dtype u16 to f32", &tensor, RVM_DTYPE_f32, &slot);
  WRONG(rvm_tensor_relabel, dtype, RVM_TYPE_ERROR, "cannot change dtype str", &strings_of_two, RVM_DTYPE_i64, &slot);
  WRONG(rvm_tensor_relabel, dtype, RVM_TYPE_ERROR, "to str; both must have the same element size", &tensor_of_two,
        RVM_DTYPE_str, &slot);
  WRONG(rvm_tensor_set_read_only, tensor, RVM_TYPE_ERROR, "got nil", none, &slot);
  WRONG(rvm_tensor_set_read_only, tensor, RVM_TYPE_ERROR, "malformed tensor", missing, &slot);
  RETURNS(rvm_tensor_set_read_only, error, RVM_OK, tensor, NULL);
  CHECK(tensor.as.tensor->is_read_only == 1);
  rvm_value_retain(tensor);
  WRONG(rvm_tensor_relabel, tensor, RVM_ARGUMENT_ERROR, "others hold", &tensor, RVM_DTYPE_f16, &slot);
  rvm_value_release(&(rvm_value){.tag = tensor.tag, .as = tensor.as});
  RETURNS(rvm_tensor_relabel, error, RVM_TYPE_ERROR, &tensor, 99, NULL);
  CHECK_OK(rvm_tensor_relabel(&tensor, RVM_DTYPE_bf16, NULL), slot);
  CHECK_INT(tensor.as.tensor->dtype, RVM_DTYPE_bf16);
  rvm_value_release(&tensor);
}

static void tensors_of_strings(void) {
  const int64_t one[] = {1}, negative[] = {-1}, vast[] = {INT64_MAX, INT64_MAX}, end = 0;
  WRONG(rvm_tensor_of_strings, rank, RVM_SHAPE_ERROR, "do not hold one string for each element", -1, one, &end, 8,
        &slot);
  WRONG(rvm_tensor_of_strings, rank, RVM_ARGUMENT_ERROR, "dims is NULL", HUGE_COUNT, NULL, &end, 8, &slot);
  WRONG(rvm_tensor_of_strings, dims, RVM_ARGUMENT_ERROR, "dims is NULL", 1, NULL, &end, 8, &slot);
  WRONG(rvm_tensor_of_strings, dims, RVM_SHAPE_ERROR, "do not hold one string for each element", 1, negative, &end, 8,
        &slot);
  WRONG(rvm_tensor_of_strings, dims, RVM_SHAPE_ERROR, "do not hold one string for each element", 2, vast, &end, 8,
        &slot);
  WRONG(rvm_tensor_of_strings, packed, RVM_ARGUMENT_ERROR, "packed is NULL", 1, one, NULL, 8, &slot);
  WRONG(rvm_tensor_of_strings, packed_bytes, RVM_ARGUMENT_ERROR, "packed_bytes is -1", 1, one, &end, -1, &slot);
  WRONG(rvm_tensor_of_strings, packed_bytes, RVM_SHAPE_ERROR, "do not hold one string for each element", 1, one, NULL,
        0, &slot);
  RETURNS(rvm_tensor_of_strings, result, RVM_ARGUMENT_ERROR, 1, one, &end, 8, NULL);

  char packed[16];
  RETURNS(rvm_tensor_packed_bytes, tensor, -1, NULL);
  RETURNS(rvm_tensor_packed_bytes, tensor, -1, tensor_of_two.as.tensor);
  RETURNS(rvm_tensor_packed_bytes, tensor, -1, (rvm_tensor *)text_value.as.object);
  WRONG(rvm_tensor_pack, tensor, RVM_ARGUMENT_ERROR, "tensor is NULL", NULL, packed, 16, &slot);
  WRONG(rvm_tensor_pack, tensor, RVM_TYPE_ERROR, "tensor of strings", tensor_of_two.as.tensor, packed, 16, &slot);
  WRONG(rvm_tensor_pack, tensor, RVM_TYPE_ERROR, "tensor of strings", (rvm_tensor *)text_value.as.object, packed, 16,
        &slot);
  WRONG(rvm_tensor_pack, packed, RVM_ARGUMENT_ERROR, "packed is NULL", strings_of_two.as.tensor, NULL, 16, &slot);
  WRONG(rvm_tensor_pack, packed_bytes, RVM_ARGUMENT_ERROR, "is -1", strings_of_two.as.tensor, packed, -1, &slot);
  WRONG(rvm_tensor_pack, packed_bytes, RVM_ARGUMENT_ERROR, "expected 16", strings_of_two.as.tensor, packed, 15, &slot);
  WRONG(rvm_tensor_pack, packed_bytes, RVM_ARGUMENT_ERROR, "expected 16", strings_of_two.as.tensor, packed, INT64_MAX,
        &slot);
  RETURNS(rvm_tensor_pack, error, RVM_ARGUMENT_ERROR, NULL, packed, 16, NULL);
  CHECK_OK(rvm_tensor_pack(strings_of_two.as.tensor, packed, 16, &slot), slot);
}

static void shapes_and_texts(void) {
  WRONG(rvm_shape_new, rank, RVM_SHAPE_ERROR, "expected a rank of at least 0, got -1", -1, NULL, &slot);
  WRONG(rvm_shape_new, rank, RVM_SHAPE_ERROR, "expected a rank of at least 0", INT32_MIN, (int64_t[]){1}, &slot);
  ANY(rvm_shape_new, dims);
  RETURNS(rvm_shape_new, result, RVM_ARGUMENT_ERROR, 0, NULL, NULL);
  CHECK_OK(rvm_shape_new(3, NULL, &slot), slot);
  for (int i = 0; i < 3; i++) CHECK_INT(slot.as.shape->dims[i], 0);
  rvm_value_release(&slot);

  WRONG(rvm_string_new, bytes, RVM_ARGUMENT_ERROR, "bytes is NULL, expected an array of 1 element", NULL, 1, &slot);
  WRONG(rvm_string_new, length, RVM_ARGUMENT_ERROR, "length is -1", "text", -1, &slot);
  WRONG(rvm_string_new, length, RVM_ARGUMENT_ERROR, "length is", "text", INT64_MIN, &slot);
  WRONG(rvm_string_new, length, RVM_OUT_OF_MEMORY, "cannot allocate", "text", INT64_MAX, &slot);
  RETURNS(rvm_string_new, result, RVM_ARGUMENT_ERROR, "text", 4, NULL);
  CHECK_OK(rvm_string_new(NULL, 0, &slot), slot);
  CHECK_TEXT(slot.as.string->bytes, "");
  rvm_value_release(&slot);
}

static void tuples_and_lists(void) {
  const rvm_value good = int_value(1);
  WRONG(rvm_tuple_new, size, RVM_ARGUMENT_ERROR, "size is -1, expected 0 or more", -1, &good, &slot);
  WRONG(rvm_tuple_new, size, RVM_ARGUMENT_ERROR, "size is", INT32_MIN, NULL, &slot);
  WRONG(rvm_tuple_new, size, RVM_ARGUMENT_ERROR, "items is NULL", HUGE_COUNT, NULL, &slot);
  WRONG(rvm_tuple_new, items, RVM_ARGUMENT_ERROR, "items is NULL, expected an array of 1 element", 1, NULL, &slot);
  RETURNS(rvm_tuple_new, result, RVM_ARGUMENT_ERROR, 1, &good, NULL);
  WRONG(rvm_list_new, size, RVM_ARGUMENT_ERROR, "size is -1, expected 0 or more", -1, &good, &slot);
  WRONG(rvm_list_new, size, RVM_ARGUMENT_ERROR, "size is", INT32_MIN, NULL, &slot);
  WRONG(rvm_list_new, size, RVM_ARGUMENT_ERROR, "items is NULL", HUGE_COUNT, NULL, &slot);
  WRONG(rvm_list_new, items, RVM_ARGUMENT_ERROR, "items is NULL, expected an array of 1 element", 1, NULL, &slot);
  RETURNS(rvm_list_new, result, RVM_ARGUMENT_ERROR, 1, &good, NULL);
  for (int i = 0; i < COUNT_OF(unsound); i++) {
    const rvm_value items[] = {text_value, unsound[i].value};
    WRONG(rvm_tuple_new, items, RVM_TYPE_ERROR, "rvm_tuple_new: item 1 cannot be passed", 2, items, &slot);
    WRONG(rvm_list_new, items, RVM_TYPE_ERROR, unsound[i].text, 2, items, &slot);
  }
  const rvm_value swapped = disguised(text_value, RVM_TAG_TENSOR);
  WRONG(rvm_tuple_new, items, RVM_TYPE_ERROR, "malformed tensor", 1, &swapped, &slot);
  WRONG(rvm_list_new, items, RVM_TYPE_ERROR, "malformed tensor", 1, &swapped, &slot);
  CHECK_INT(text_value.as.object->references, 1);
}

static void processors_and_checksums(void) {
  (void)rvm_cpu_features();
  ANY(rvm_crc32c, crc);
  RETURNS(rvm_crc32c, bytes, 7, 7, NULL, 100);
  RETURNS(rvm_crc32c, size_bytes, 7, 7, "bytes", -1);
  RETURNS(rvm_crc32c, size_bytes, 7, 7, "bytes", INT64_MIN);
}

/* ---- host functions ---- */

static void registered_functions(void) {
  WRONG(rvm_register, name, RVM_ARGUMENT_ERROR, "name is NULL", NULL, host_add_two, NULL, 0, &slot);
  WRONG(rvm_register, name, RVM_BUSY, "already registered", "test.host", host_add_two, NULL, 0, &slot);
  WRONG(rvm_register, name, RVM_BUSY, "builtin", "vm.builtin.copy", host_add_two, NULL, 1, &slot);
  WRONG(rvm_register, function, RVM_ARGUMENT_ERROR, "function is NULL", "test.more", NULL, NULL, 0, &slot);
  ANY(rvm_register, self);
  ANY(rvm_register, replace);
  RETURNS(rvm_register, error, RVM_ARGUMENT_ERROR, NULL, host_add_two, NULL, 0, NULL);
  WRONG(rvm_unregister, name, RVM_ARGUMENT_ERROR, "name is NULL", NULL, &slot);
  WRONG(rvm_unregister, name, RVM_UNKNOWN_FUNCTION, "test.more", "test.more", &slot);
  RETURNS(rvm_unregister, error, RVM_UNKNOWN_FUNCTION, "test.more", NULL);
  RETURNS(rvm_is_registered, name, 0, NULL);
}

/* ---- executables ---- */

static void loaded_executables(void) {
  rvm_executable *made;
  const char *const names[] = {"test.host", NULL};
  const rvm_load_options wrong[] = {{.functions = NULL, .function_count = 1},
                                    {.functions = names, .function_count = -1},
                                    {.functions = names, .function_count = 2},
                                    {.max_bytes = -1},
                                    {.max_functions = -1},
                                    {.max_constants = -1},
                                    {.max_code_words = -1}};
  const char *const texts[] = {"functions is NULL",   "function_count is -1", "functions[i] is NULL", "max_bytes is -1",
                               "max_functions is -1", "max_constants is -1",  "max_code_words is -1"};
  const void *mapped;
  int64_t mapped_bytes;
  WRONG(rvm_file_map, path, RVM_ARGUMENT_ERROR, "path is NULL", NULL, &mapped, &mapped_bytes, &slot);
  WRONG(rvm_file_map, path, RVM_ARGUMENT_ERROR, "cannot map the file no such file", "no such file", &mapped,
        &mapped_bytes, &slot);
  WRONG(rvm_file_map, bytes, RVM_ARGUMENT_ERROR, "bytes is NULL", "file", NULL, &mapped_bytes, &slot);
  WRONG(rvm_file_map, size_bytes, RVM_ARGUMENT_ERROR, "size_bytes is NULL", "file", &mapped, NULL, &slot);
  RETURNS(rvm_file_map, error, RVM_ARGUMENT_ERROR, "no such file", &mapped, &mapped_bytes, NULL);
  CHECK_OK(rvm_file_map(__FILE__, &mapped, &mapped_bytes, &slot), slot);
  CHECK(mapped_bytes > 14 && !memcmp(mapped, "/* test_api.c:", 14));
  rvm_file_unmap(mapped, mapped_bytes);
  IGNORES(rvm_file_unmap, bytes, NULL, 0);
  ANY(rvm_file_unmap, size_bytes);
  WRONG(rvm_executable_load, bytes, RVM_ARGUMENT_ERROR, "bytes is NULL", NULL, 0, NULL, &made, &slot);
  WRONG(rvm_executable_load, bytes, RVM_ARGUMENT_ERROR, "aligned", exe.bytes + 1, 64, NULL, &made, &slot);
  WRONG(rvm_executable_load, size_bytes, RVM_ARGUMENT_ERROR, "size_bytes is -1", exe.bytes, -1, NULL, &made, &slot);
  WRONG(rvm_executable_load, size_bytes, RVM_BAD_EXECUTABLE, "bytes", exe.bytes, INT64_MAX, NULL, &made, &slot);
  WRONG(rvm_executable_load, size_bytes, RVM_BAD_EXECUTABLE, "no", exe.bytes, 0, NULL, &made, &slot);
  for (int i = 0; i < COUNT_OF(wrong); i++)
    WRONG(rvm_executable_load, options, RVM_ARGUMENT_ERROR, texts[i], exe.bytes, exe.size_bytes, &wrong[i], &made,
          &slot);
  WRONG(rvm_executable_load, executable, RVM_ARGUMENT_ERROR, "executable is NULL", exe.bytes, exe.size_bytes, NULL,
        NULL, &slot);
  RETURNS(rvm_executable_load, error, RVM_UNSUPPORTED, exe.bytes, exe.size_bytes, NULL, &made, NULL);
  const rvm_load_options options = {.functions = names, .function_count = 1};
  CHECK_OK(rvm_executable_load(exe.bytes, exe.size_bytes, &options, &made, NULL), slot);
  rvm_executable_release(made);
  IGNORES(rvm_executable_release, executable, NULL);
}

static void looked_at_executables(void) {
  const rvm_executable *executable = exe.executable;
  const int32_t count = rvm_executable_function_count(executable), outside[] = {-1, count, INT32_MIN, INT32_MAX};
  unsigned char digest[32];
  WRONG(rvm_executable_check_native, executable, RVM_ARGUMENT_ERROR, "executable is NULL", NULL, &slot);
  WRONG(rvm_executable_digest, executable, RVM_ARGUMENT_ERROR, "executable is NULL", NULL, digest, &slot);
  WRONG(rvm_executable_digest, digest, RVM_ARGUMENT_ERROR, "digest is NULL", exe.executable, NULL, &slot);
  RETURNS(rvm_executable_digest, error, RVM_ARGUMENT_ERROR, NULL, digest, NULL);
  RETURNS(rvm_executable_check_native, error, RVM_ARGUMENT_ERROR, NULL, NULL);
  RETURNS(rvm_executable_function_count, executable, -1, NULL);
  RETURNS(rvm_executable_function_kind, executable, -1, NULL, 0);
  RETURNS(rvm_executable_function_parameters, executable, -2, NULL, 0);
  RETURNS_NULL(rvm_executable_function_name, executable, NULL, 0);
  for (int i = 0; i < 4; i++) {
    RETURNS(rvm_executable_function_kind, index, -1, executable, outside[i]);
    RETURNS(rvm_executable_function_parameters, index, -2, executable, outside[i]);
    RETURNS_NULL(rvm_executable_function_name, index, executable, outside[i]);
  }
  RETURNS(rvm_executable_find, executable, -1, NULL, "identity");
  RETURNS(rvm_executable_find, name, -1, executable, NULL);
  RETURNS(rvm_executable_find, name, -1, executable, "");
}

/* ---- machines ---- */

static void made_machines(void) {
  rvm_machine *made;
  const rvm_machine_options wrong[] = {{.stack_values = -1},     {.stack_values = INT64_MAX},
                                       {.call_depth = -1},       {.call_depth = INT64_MAX},
                                       {.threads = -1},          {.threads = RVM_MAX_THREADS + 1},
                                       {.max_bytes = -1},        {.max_steps = -1},
                                       {.max_nanoseconds = -1},  {.cpu = "x86-64-v5"},
                                       {.cpu = "x86-64-v3 avx1"}};
  WRONG(rvm_machine_new, executable, RVM_ARGUMENT_ERROR, "executable is NULL", NULL, NULL, &made, &slot);
  for (int i = 0; i < COUNT_OF(wrong); i++)
    WRONG(rvm_machine_new, options, RVM_ARGUMENT_ERROR, "machine: ", exe.executable, &wrong[i], &made, &slot);
  WRONG(rvm_machine_new, machine, RVM_ARGUMENT_ERROR, "machine is NULL", exe.executable, NULL, NULL, &slot);
  RETURNS(rvm_machine_new, error, RVM_ARGUMENT_ERROR, exe.executable, &wrong[0], &made, NULL);
  RETURNS(rvm_machine_release, machine, RVM_OK, NULL);

  WRONG(rvm_machine_upgrade, machine, RVM_ARGUMENT_ERROR, "machine is NULL", NULL, exe.executable, &slot);
  WRONG(rvm_machine_upgrade, compiled, RVM_ARGUMENT_ERROR, "compiled is NULL", machine, NULL, &slot);
  WRONG(rvm_machine_upgrade, compiled, RVM_ARGUMENT_ERROR, "function table differs from the old one's", machine,
        other.executable, &slot);
  RETURNS(rvm_machine_upgrade, error, RVM_ARGUMENT_ERROR, NULL, exe.executable, NULL);

  RETURNS(rvm_machine_function_kind, machine, -1, NULL, 0);
  RETURNS(rvm_machine_function_kind, index, -1, machine, -1);
  RETURNS(rvm_machine_function_kind, index, -1, machine, 99999);
  RETURNS(rvm_machine_function_kind, index, -1, machine, INT32_MIN);
  GIVES(rvm_machine_function, machine, tag, RVM_TAG_NIL, NULL, 0);
  GIVES(rvm_machine_function, index, tag, RVM_TAG_NIL, machine, -1);
  GIVES(rvm_machine_function, index, tag, RVM_TAG_NIL, machine, 99999);
  WRONG(rvm_machine_function_new, machine, RVM_ARGUMENT_ERROR, "machine is NULL", NULL, "f", host_add_two, NULL, NULL,
        &slot);
  WRONG(rvm_machine_function_new, name, RVM_ARGUMENT_ERROR, "name is NULL", machine, NULL, host_add_two, NULL, NULL,
        &slot);
  WRONG(rvm_machine_function_new, call, RVM_ARGUMENT_ERROR, "call is NULL", machine, "f", NULL, NULL, NULL, &slot);
  ANY(rvm_machine_function_new, self);
  ANY(rvm_machine_function_new, release);
  RETURNS(rvm_machine_function_new, result, RVM_ARGUMENT_ERROR, machine, "f", host_add_two, NULL, NULL, NULL);
}

static void calls(void) {
  const int32_t index = (int32_t)identity;
  const rvm_value x = int_value(1), function = rvm_machine_function(machine, index);
  WRONG(rvm_machine_call, machine, RVM_ARGUMENT_ERROR, "machine is NULL", NULL, index, &x, 1, &slot);
  WRONG(rvm_machine_call, index, RVM_INDEX_ERROR, "function index -1 is out of range", machine, -1, &x, 1, &slot);
  WRONG(rvm_machine_call, index, RVM_INDEX_ERROR, "function index 99999 is out of range", machine, 99999, &x, 1, &slot);
  WRONG(rvm_machine_call, arguments, RVM_ARGUMENT_ERROR, "arguments is NULL", machine, index, NULL, 1, &slot);
  WRONG(rvm_machine_call, count, RVM_ARGUMENT_ERROR, "count is -1", machine, index, &x, -1, &slot);
  WRONG(rvm_machine_call, count, RVM_ARGUMENT_ERROR, "is NULL", machine, index, NULL, HUGE_COUNT, &slot);
  WRONG(rvm_machine_call, count, RVM_ARGUMENT_ERROR, "expected 1 argument", machine, index, NULL, 0, &slot);
  RETURNS(rvm_machine_call, result, RVM_ARGUMENT_ERROR, machine, index, &x, 1, NULL);
  WRONG(rvm_machine_invoke, machine, RVM_ARGUMENT_ERROR, "machine is NULL", NULL, function, &x, 1, &slot);
  WRONG(rvm_machine_invoke, callee, RVM_TYPE_ERROR, "got int", machine, x, &x, 1, &slot);
  WRONG(rvm_machine_invoke, arguments, RVM_ARGUMENT_ERROR, "arguments is NULL", machine, function, NULL, 1, &slot);
  WRONG(rvm_machine_invoke, count, RVM_ARGUMENT_ERROR, "count is -1", machine, function, &x, -1, &slot);
  RETURNS(rvm_machine_invoke, result, RVM_ARGUMENT_ERROR, machine, function, &x, 1, NULL);
  for (int i = 0; i < COUNT_OF(unsound); i++) {
    WRONG(rvm_machine_call, arguments, RVM_TYPE_ERROR, "argument 0 cannot be passed", machine, index, &unsound[i].value,
          1, &slot);
    WRONG(rvm_machine_invoke, arguments, RVM_TYPE_ERROR, unsound[i].text, machine, function, &unsound[i].value, 1,
          &slot);
    WRONG(rvm_machine_invoke, callee, RVM_TYPE_ERROR, unsound[i].text, machine, unsound[i].value, &x, 1, &slot);
  }
  const rvm_value swapped = disguised(text_value, RVM_TAG_CLOSURE);
  WRONG(rvm_machine_invoke, callee, RVM_TYPE_ERROR, "malformed closure", machine, swapped, &x, 1, &slot);
  WRONG(rvm_machine_call, arguments, RVM_TYPE_ERROR, "malformed closure", machine, index, &swapped, 1, &slot);
  check_idle(machine);
}

static void other_entries(void) {
  IGNORES(rvm_machine_seed, machine, NULL, 1);
  ANY(rvm_machine_seed, seed);
  WRONG(rvm_machine_real_time, machine, RVM_ARGUMENT_ERROR, "machine is NULL", NULL, 1, &slot);
  WRONG(rvm_machine_real_time, enabled, RVM_ARGUMENT_ERROR, "enabled is 2, expected 0 or 1", machine, 2, &slot);
  RETURNS(rvm_machine_real_time, error, RVM_ARGUMENT_ERROR, machine, 2, NULL);
  WRONG(rvm_machine_afford, machine, RVM_ARGUMENT_ERROR, "machine is NULL", NULL, 0, &slot);
  WRONG(rvm_machine_afford, size_bytes, RVM_ARGUMENT_ERROR, "size_bytes is -1", machine, -1, &slot);
  RETURNS(rvm_machine_afford, error, RVM_ARGUMENT_ERROR, machine, -1, NULL);
  IGNORES(rvm_machine_interrupt, machine, NULL);
  rvm_value kept = shape_value(0, NULL);
  IGNORES(rvm_machine_drop, machine, NULL, kept);
  IGNORES(rvm_machine_drop, value, machine, (rvm_value){.tag = RVM_TAG_TENSOR});
  IGNORES(rvm_machine_drop, value, machine, disguised(kept, RVM_TAG_TENSOR));
  IGNORES(rvm_machine_drop, value, machine, disguised(kept, INT64_MAX));
  CHECK_INT(kept.as.object->references, 1);
  rvm_value_release(&kept);
}

/* Called during a run of `machine`: the host can neither leave the entry of the run nor release the machine.  There may
   be no memory for an error. */
static rvm_status host_leaves(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  (void)self, (void)arguments, (void)count;
  RETURNS(rvm_machine_leave, machine, RVM_ARGUMENT_ERROR, machine, NULL);
  RETURNS(rvm_machine_release, machine, RVM_BUSY, machine);
  RETURNS(rvm_machine_enter, machine, 1, machine);
  CHECK_OK(rvm_machine_leave(machine, &slot), slot);
  RETURNS(rvm_machine_leave, machine, RVM_ARGUMENT_ERROR, machine, NULL);
  *result = int_value(1);
  return RVM_OK;
}

static void *leave_elsewhere(void *unused) {
  RETURNS(rvm_machine_leave, machine, RVM_ARGUMENT_ERROR, machine, NULL);
  RETURNS(rvm_machine_release, machine, RVM_BUSY, machine);
  RETURNS(rvm_machine_enter, machine, 0, machine);
  return unused;
}

/* Called when the machine releases the last reference to a tensor. */
static void leave_while_dropping(void *unused) {
  (void)unused;
  RETURNS(rvm_machine_leave, machine, RVM_ARGUMENT_ERROR, machine, NULL);
  RETURNS(rvm_machine_release, machine, RVM_BUSY, machine);
}

static void entries_and_leaves(void) {
  RETURNS(rvm_machine_enter, machine, 0, NULL);
  WRONG(rvm_machine_leave, machine, RVM_ARGUMENT_ERROR, "machine is NULL", NULL, &slot);
  WRONG(rvm_machine_leave, machine, RVM_ARGUMENT_ERROR, "without a matching rvm_machine_enter", machine, &slot);
  RETURNS(rvm_machine_leave, error, RVM_ARGUMENT_ERROR, machine, NULL);
  for (int depth = 0; depth < 3; depth++) CHECK_INT(rvm_machine_enter(machine), 1);
  pthread_t thread;
  CHECK_INT(pthread_create(&thread, NULL, leave_elsewhere, NULL), 0);
  pthread_join(thread, NULL);
  for (int depth = 0; depth < 3; depth++) CHECK_OK(rvm_machine_leave(machine, &slot), slot);
  WRONG(rvm_machine_leave, machine, RVM_ARGUMENT_ERROR, "without a matching rvm_machine_enter", machine, &slot);
  CHECK_OK(RUN_ON(machine, slot, host), slot);
  CHECK_INT(slot.as.i, 1);
  rvm_value dropped;
  MAKE(dropped, rvm_tensor_wrap(RVM_DTYPE_f32, 1, (int64_t[]){0}, NULL, leave_while_dropping, NULL, &dropped));
  rvm_machine_drop(machine, dropped);
  WRONG(rvm_machine_leave, machine, RVM_ARGUMENT_ERROR, "without a matching rvm_machine_enter", machine, &slot);
  check_idle(machine);
}

/* ---- instruments, profiles, debuggers ---- */

static void instruments_and_profiles(void) {
  WRONG(rvm_machine_instrument, machine, RVM_ARGUMENT_ERROR, "machine is NULL", NULL, NULL, &slot);
  ANY(rvm_machine_instrument, instrument);
  CHECK_OK(rvm_machine_instrument(machine, &(rvm_instrument){.kinds = UINT32_MAX}, NULL), slot);
  CHECK_OK(rvm_machine_instrument(machine, NULL, NULL), slot);
  RETURNS(rvm_machine_instrument, error, RVM_ARGUMENT_ERROR, NULL, NULL, NULL);

  rvm_profile *profile;
  WRONG(rvm_profile_new, executable, RVM_ARGUMENT_ERROR, "executable is NULL", NULL, &profile, &slot);
  WRONG(rvm_profile_new, profile, RVM_ARGUMENT_ERROR, "profile is NULL", exe.executable, NULL, &slot);
  RETURNS(rvm_profile_new, error, RVM_ARGUMENT_ERROR, NULL, &profile, NULL);
  CHECK_OK(rvm_profile_new(exe.executable, &profile, NULL), slot);
  const int64_t code[] = {1, 2, 0, 0};
  WRONG(rvm_profile_count, profile, RVM_ARGUMENT_ERROR, "profile is NULL", NULL, 0, code, 4, &slot);
  WRONG(rvm_profile_count, function, RVM_INDEX_ERROR, "function index -1 is out of range", profile, -1, code, 4, &slot);
  WRONG(rvm_profile_count, function, RVM_INDEX_ERROR, "function index 99999 is out of range", profile, 99999, code, 4,
        &slot);
  WRONG(rvm_profile_count, code, RVM_ARGUMENT_ERROR, "code is NULL", profile, 0, NULL, 4, &slot);
  WRONG(rvm_profile_count, length, RVM_ARGUMENT_ERROR, "length is -1", profile, 0, code, -1, &slot);
  RETURNS(rvm_profile_count, error, RVM_ARGUMENT_ERROR, NULL, 0, code, 4, NULL);
  GIVES(rvm_profile_instrument, profile, kinds, 0, NULL);
  GIVES(rvm_profile_read, profile, count, 0, NULL, 0);
  GIVES(rvm_profile_read, function, count, 0, profile, -1);
  GIVES(rvm_profile_read, function, count, 0, profile, 99999);
  CHECK(isnan(rvm_profile_read(NULL, 0).operations) && isnan(rvm_profile_read(profile, -1).operations));
  WRONG(rvm_profile_kernels, profile, RVM_ARGUMENT_ERROR, "profile is NULL", NULL, &slot);
  RETURNS(rvm_profile_kernels, error, RVM_OK, profile, NULL);
  GIVES(rvm_profile_instruction, profile, count, 0, NULL, 0, 0);
  GIVES(rvm_profile_instruction, function, count, 0, profile, -1, 0);
  GIVES(rvm_profile_instruction, instruction, count, 0, profile, 0, -1);
  WRONG(rvm_profile_record, profile, RVM_ARGUMENT_ERROR, "profile is NULL", NULL, 1, &slot);
  WRONG(rvm_profile_record, most, RVM_ARGUMENT_ERROR, "most is -1", profile, -1, &slot);
  RETURNS(rvm_profile_record, error, RVM_ARGUMENT_ERROR, NULL, 1, NULL);
  int64_t recorded = 1;
  RETURNS_NULL(rvm_profile_calls, profile, NULL, &recorded);
  CHECK_INT(recorded, 0);
  RETURNS_NULL(rvm_profile_calls, count, profile, NULL);
  rvm_profile_release(profile);

  CHECK_OK(rvm_profile_new(other.executable, &profile, NULL),
           slot); /* the profile of an executable with fewer functions */
  const rvm_instrument instrument = rvm_profile_instrument(profile);
  CHECK_OK(rvm_machine_instrument(machine, &instrument, NULL), slot);
  CHECK_FAILS(RUN_ON(machine, slot, host), RVM_ARGUMENT_ERROR, "the profiled executable has 1 function;", slot);
  CHECK_OK(rvm_machine_instrument(machine, NULL, NULL), slot);
  rvm_profile_release(profile);
  IGNORES(rvm_profile_release, profile, NULL);
}

static rvm_status stop(void *self, const rvm_value *failure, rvm_value *error) {
  (void)self, (void)failure, (void)error;
  return RVM_OK;
}

static void debuggers(void) {
  const rvm_debugger none = {.host = NULL}, debugger = {.stop = stop};
  WRONG(rvm_machine_debug, machine, RVM_ARGUMENT_ERROR, "machine is NULL", NULL, &debugger, &slot);
  WRONG(rvm_machine_debug, debugger, RVM_ARGUMENT_ERROR, "stop is NULL", machine, &none, &slot);
  RETURNS(rvm_machine_debug, error, RVM_ARGUMENT_ERROR, NULL, &debugger, NULL);
  WRONG(rvm_machine_break, machine, RVM_ARGUMENT_ERROR, "no debugger", machine, (int32_t)identity, 0, 1, &slot);
  CHECK_OK(rvm_machine_debug(machine, &debugger, NULL), slot);
  WRONG(rvm_machine_break, machine, RVM_ARGUMENT_ERROR, "machine is NULL", NULL, 0, 0, 1, &slot);
  WRONG(rvm_machine_break, function, RVM_INDEX_ERROR, "function index -1 is out of range", machine, -1, 0, 1, &slot);
  WRONG(rvm_machine_break, function, RVM_INDEX_ERROR, "function index 99999 is out of range", machine, 99999, 0, 1,
        &slot);
  WRONG(rvm_machine_break, function, RVM_INDEX_ERROR, "no instruction", machine, (int32_t)host, 0, 1, &slot);
  WRONG(rvm_machine_break, instruction, RVM_INDEX_ERROR, "no instruction at index -1", machine, (int32_t)identity, -1,
        1, &slot);
  WRONG(rvm_machine_break, instruction, RVM_INDEX_ERROR, "no instruction at index 99999", machine, (int32_t)identity,
        99999, 1, &slot);
  ANY(rvm_machine_break, stops);
  RETURNS(rvm_machine_break, error, RVM_ARGUMENT_ERROR, NULL, 0, 0, 1, NULL);
  IGNORES(rvm_machine_stop_within, machine, NULL, 1);
  IGNORES(rvm_machine_stop_within, depth, machine, -1);
  IGNORES(rvm_machine_stop_in_kernels, machine, NULL, 1);
  IGNORES(rvm_machine_stop_in_kernels, stops, machine, -1);
  CHECK_OK(RUN_ON(machine, slot, identity, int_value(3)), slot);
  RETURNS(rvm_machine_depth, machine, -1, NULL);
  GIVES(rvm_machine_place, machine, function, -1, NULL, 0);
  GIVES(rvm_machine_place, index, function, -1, machine, -1);
  GIVES(rvm_machine_place, index, function, -1, machine, 99999);
  GIVES(rvm_machine_kernel_register, machine, size_bytes, 0, NULL, 0, 0);
  GIVES(rvm_machine_kernel_register, index, size_bytes, 0, machine, -1, 0);
  GIVES(rvm_machine_kernel_register, number, size_bytes, 0, machine, 0, -1);
  GIVES(rvm_machine_kernel_buffer, machine, size_bytes, 0, NULL, 0, 0);
  GIVES(rvm_machine_kernel_buffer, index, size_bytes, 0, machine, 99999, 0);
  GIVES(rvm_machine_kernel_buffer, number, size_bytes, 0, machine, 0, 99999);
  CHECK_OK(rvm_machine_debug(machine, NULL, NULL), slot);
}

/* ---- libraries of ahead-of-time exports ---- */

static void libraries(void) {
  const rvm_aot_library none = {.abi_version = RVM_ABI_VERSION}, old = {.abi_version = RVM_ABI_VERSION - 1};
  WRONG(rvm_aot_open, library, RVM_ARGUMENT_ERROR, "library is NULL", NULL, &slot);
  WRONG(rvm_aot_open, library, RVM_ARGUMENT_ERROR, "open is NULL", &none, &slot);
  WRONG(rvm_aot_open, library, RVM_UNSUPPORTED, "ABI version", &old, &slot);
  RETURNS(rvm_aot_open, error, RVM_ARGUMENT_ERROR, NULL, NULL);
}

/* ---- headers without a runtime ---- */

static void views(void) {
  rvm_tensor tensor = {.dtype = 77};
  int64_t dims[] = {2}, none[] = {0};
  float data[2] = {0};
  const int32_t dtypes[] = {-1, NO_DTYPE, INT32_MIN, INT32_MAX};
  GIVES(rvm_view, tensor, tag, RVM_TAG_NIL, NULL, RVM_DTYPE_f32, 1, dims, data);
  for (int i = 0; i < 4; i++) GIVES(rvm_view, dtype, tag, RVM_TAG_NIL, &tensor, dtypes[i], 1, dims, data);
  GIVES(rvm_view, rank, tag, RVM_TAG_NIL, &tensor, RVM_DTYPE_f32, -1, dims, data);
  GIVES(rvm_view, rank, tag, RVM_TAG_NIL, &tensor, RVM_DTYPE_f32, HUGE_COUNT, NULL, data);
  GIVES(rvm_view, shape, tag, RVM_TAG_NIL, &tensor, RVM_DTYPE_f32, 1, NULL, data);
  GIVES(rvm_view, data, tag, RVM_TAG_NIL, &tensor, RVM_DTYPE_f32, 1, dims, NULL);
  CHECK_INT(tensor.dtype, 77);
  CHECK_INT(rvm_view(&tensor, RVM_DTYPE_f32, 1, none, NULL).tag, RVM_TAG_TENSOR);
  const rvm_value mixed[] = {rvm_view(&tensor, RVM_DTYPE_f32, 1, dims, data), text_value};
  const rvm_value swapped = disguised(text_value, RVM_TAG_TENSOR), missing = {.tag = RVM_TAG_TENSOR};
  RETURNS(rvm_are_plain, tensors, 0, NULL, 1);
  RETURNS(rvm_are_plain, tensors, 0, mixed, 2);
  RETURNS(rvm_are_plain, tensors, 0, &swapped, 1);
  RETURNS(rvm_are_plain, tensors, 0, &missing, 1);
  RETURNS(rvm_are_plain, count, 0, mixed, -1);
  CHECK_INT(rvm_are_plain(mixed, 1) && rvm_are_plain(NULL, 0), 1);
}

static void stacks(void) {
  uint8_t bytes[256];
  void *block = bytes;
  rvm_stack stack, nothing;
  IGNORES(rvm_stack_init, stack, NULL, bytes, sizeof bytes);
  IGNORES(rvm_stack_init, bytes, &nothing, NULL, SIZE_MAX);
  ANY(rvm_stack_init, size_bytes);
  RETURNS(rvm_stack_allocate, stack, RVM_STACK_NULL, NULL, 1, 1, &block);
  CHECK(block == NULL);
  RETURNS(rvm_stack_allocate, stack, RVM_STACK_EXHAUSTED, &nothing, 0, 1, &block);
  rvm_stack_init(&stack, bytes, sizeof bytes);
  RETURNS(rvm_stack_allocate, size_bytes, RVM_STACK_EXHAUSTED, &stack, SIZE_MAX, 1, &block);
  RETURNS(rvm_stack_allocate, alignment, RVM_STACK_ALIGNMENT, &stack, 1, 3, &block);
  RETURNS(rvm_stack_allocate, alignment, RVM_STACK_ALIGNMENT, &stack, 1, 0, &block);
  RETURNS(rvm_stack_allocate, alignment, RVM_STACK_EXHAUSTED, &stack, 1, SIZE_MAX / 2 + 1, &block);
  RETURNS(rvm_stack_allocate, block, RVM_STACK_NULL, &stack, 1, 1, NULL);
  CHECK_INT(rvm_stack_allocate(&stack, 8, 8, &block), RVM_STACK_OK);
  RETURNS(rvm_stack_free, stack, RVM_STACK_NULL, NULL, block);
  RETURNS(rvm_stack_free, block, RVM_STACK_OK, &stack, NULL);
  RETURNS(rvm_stack_free, block, RVM_STACK_OUT_OF_ORDER, &stack, bytes);
  CHECK_INT(rvm_stack_free(&stack, block), RVM_STACK_OK);
  RETURNS(rvm_stack_free, block, RVM_STACK_OUT_OF_ORDER, &stack, block);
}

/* ---- the program ---- */

static void open_all(void) {
  static image first, second;
  const struct {
    int64_t ends[2];
  } packed = {{0, 0}};
  CHECK_OK(rvm_register("test.host", host_leaves, NULL, 0, &slot), slot);
  identity = image_bytecode(&first, "identity", "x", 1);
  RET(&first, 0);
  host = image_packed(&first, "test.host");
  image_bytecode(&second, "another", "x", 1);
  RET(&second, 0);
  CHECK_OK(image_load(&first, &exe, &slot), slot);
  CHECK_OK(image_load(&second, &other, &slot), slot);
  CHECK_OK(rvm_machine_new(exe.executable, NULL, &machine, &slot), slot);
  text_value = string_value("text");
  tensor_of_two = tensor_value(RVM_DTYPE_f64, 1, (int64_t[]){2});
  MAKE(strings_of_two, rvm_tensor_of_strings(1, (int64_t[]){2}, &packed, sizeof packed, &strings_of_two));
}

static void close_all(void) {
  rvm_value_release(&text_value);
  rvm_value_release(&tensor_of_two);
  rvm_value_release(&strings_of_two);
  CHECK_OK(rvm_machine_release(machine), slot);
  loaded_release(&exe);
  loaded_release(&other);
  CHECK_OK(rvm_unregister("test.host", &slot), slot);
}

int main(void) {
  open_all();
  references();
  failures();
  tensors();
  relabelled_tensors();
  tensors_of_strings();
  shapes_and_texts();
  tuples_and_lists();
  processors_and_checksums();
  registered_functions();
  loaded_executables();
  looked_at_executables();
  made_machines();
  calls();
  other_entries();
  entries_and_leaves();
  instruments_and_profiles();
  debuggers();
  libraries();
  views();
  stacks();
  CHECK_OK(RUN_ON(machine, slot, identity, int_value(5)), slot); /* still usable */
  CHECK_INT(slot.as.i, 5);
  close_all();
  return CHECK_RESULT();
}
