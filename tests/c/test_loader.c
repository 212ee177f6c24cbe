/* test_loader.c: the loader: a damaged file never makes it crash, and everything that it accepts is safe to run. */
#include "check.h"
#include "program.h"

static rvm_status load(const void *bytes, int64_t size_bytes, rvm_executable **executable, rvm_value *error) {
  const rvm_load_options options = {.trust_native = 0};
  *error = (rvm_value){.tag = RVM_TAG_NIL};
  return rvm_executable_load(bytes, size_bytes, &options, executable, error);
}

/* Checks that a file is rejected with BAD_EXECUTABLE, or UNSUPPORTED for a version or native code. */
static void check_refused(const void *bytes, int64_t size_bytes, const char *damage, int64_t offset) {
  rvm_executable *executable;
  rvm_value error;
  rvm_status status = load(bytes, size_bytes, &executable, &error);
  if (status == RVM_OK) {
    printf("loaded in spite of %s at %" PRId64 "\n", damage, offset);
    checks_failed++;
    rvm_executable_release(executable);
    return;
  }
  CHECK(status == RVM_BAD_EXECUTABLE || status == RVM_UNSUPPORTED);
  CHECK(error.tag == RVM_TAG_ERROR && error.as.error->status == status);
  rvm_value_release(&error);
}

static unsigned char *make_program(int64_t *size_bytes) {
  image program = {0};
  program_build(&program);
  return image_finish(&program, size_bytes);
}

static void truncations_are_refused(void) {
  int64_t size_bytes;
  unsigned char *bytes = make_program(&size_bytes);
  for (int64_t size = 0; size < size_bytes; size++) {
    unsigned char *part = aligned_alloc(64, (size_t)(size / 64 + 1) * 64);
    memcpy(part, bytes, (size_t)size);
    check_refused(part, size, "truncation", size);
    free(part);
  }
  free(bytes);
}

static void every_flipped_bit_is_found(void) {
  int64_t size_bytes;
  unsigned char *bytes = make_program(&size_bytes);
  for (int64_t bit = 0; bit < size_bytes * 8; bit++) {
    bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    check_refused(bytes, size_bytes, "a flipped bit", bit);
    bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
  }
  free(bytes);
}

static rvm_status stop(void *host, rvm_value *error) {
  (void)host;
  return rvm_fail(error, RVM_INTERRUPTED, "long enough");
}

/* Calls every function of two parameters with a tensor and an int, and ignores the results. */
static void run_everything(rvm_executable *executable) {
  const rvm_machine_options options = {.stack_values = 4096, .call_depth = 100, .poll = stop};
  rvm_machine *machine;
  rvm_value result = {0};
  if (rvm_machine_new(executable, &options, &machine, &result)) {
    CHECK(result.as.error->status == RVM_UNKNOWN_FUNCTION);
    rvm_value_release(&result);
    return;
  }
  rvm_value arguments[] = {tensor_value(RVM_DTYPE_f32, 1, (int64_t[]){2}), int_value(0)};
  for (int32_t i = 0; i < rvm_executable_function_count(executable); i++) {
    rvm_machine_call(machine, i, arguments, 2, &result);
    rvm_value_release(&result);
  }
  rvm_value_release(&arguments[0]);
  rvm_machine_release(machine);
}

/* Damages a file and corrects its checksums, so that the checks after those of the checksums find the damage. */
static void damage_with_right_checksums_is_survived(void) {
  static const unsigned char patterns[] = {0x01, 0x00, 0x08, 0xff};
  int64_t size_bytes, accepted = 0;
  unsigned char *bytes = make_program(&size_bytes), *damaged = aligned_alloc(64, (size_t)(size_bytes / 64 + 1) * 64);
  for (int64_t i = 64 + 32 * 5; i < size_bytes; i++) {
    for (int k = 0; k < COUNT_OF(patterns); k++) {
      memcpy(damaged, bytes, (size_t)size_bytes);
      damaged[i] = k % 2 ? patterns[k] : damaged[i] ^ patterns[k];
      image_reseal(damaged);
      rvm_executable *executable;
      rvm_value error;
      rvm_status status = load(damaged, size_bytes, &executable, &error);
      rvm_value_release(&error);
      if (status) continue;
      accepted++;
      run_everything(executable);
      rvm_executable_release(executable);
    }
  }
  CHECK(accepted > 1000); /* names and numbers: most values are valid */
  free(damaged);
  free(bytes);
}

/* ---- one fault each ---- */

typedef void change_image(image *program);
typedef void change_file(unsigned char *file);

static void expect_fault(change_image *build, change_file *damage, rvm_status status, const char *text) {
  image program = {0};
  int64_t size_bytes;
  rvm_executable *executable;
  rvm_value error;
  program_build(&program);
  if (build) build(&program);
  unsigned char *bytes = image_finish(&program, &size_bytes);
  if (damage) damage(bytes);
  CHECK_FAILS(load(bytes, size_bytes, &executable, &error), status, text, error);
  free(bytes);
}

static image_constant *last_constant(image *program) {
  return (image_constant *)program->constants.bytes + program->constant_count - 1;
}

/* Returns the offset, the size and the reserved words of section `index` in the section table. */
static uint64_t *section_entry(unsigned char *file, int index) { return (uint64_t *)(file + 64 + 32 * index + 8); }

/* Shortens a section, and replaces the bytes removed by zeros. */
static void shorten(unsigned char *file, int index, uint64_t size_bytes) {
  uint64_t *entry = section_entry(file, index);
  memset(file + entry[0] + size_bytes, 0, entry[1] - size_bytes);
  entry[1] = size_bytes;
  image_reseal(file);
}

static void set_count(unsigned char *file, int index, int word, uint32_t count) {
  memcpy(file + section_entry(file, index)[0] + 4 * word, &count, sizeof count), image_reseal(file);
}

static void another_magic_number(unsigned char *file) { file[1] ^= 1, image_seal(file); }
static void another_version(unsigned char *file) { file[8] = 2; }
static void a_larger_size(unsigned char *file) { file[16] += 64; }
static void a_reserved_field(unsigned char *file) { file[40] = 1, image_seal(file); }
static void a_wrong_table_checksum(unsigned char *file) { file[28] = 1; }
static void a_hundred_sections(unsigned char *file) { file[13] = 100; }
static void overlapping_sections(unsigned char *file) {
  memcpy(file + 64 + 32 + 8, file + 64 + 8, 8), image_seal(file);
}
static void an_unaligned_section(unsigned char *file) { file[64 + 8] += 4, image_seal(file); }
static void a_twin_section(unsigned char *file) { file[64 + 32 * 4] = RVM_SECTION_code, image_seal(file); }
static void a_missing_section(unsigned char *file) { file[64 + 32 * 4] = 200, image_seal(file); }
static void a_damaged_section(unsigned char *file) { file[64 + 4] ^= 1, image_seal(file); }
static void a_section_beyond_the_file(unsigned char *file) { section_entry(file, 4)[0] += 1 << 20, image_seal(file); }
static void a_section_that_ends_beyond(unsigned char *file) { section_entry(file, 4)[1] += 1 << 20, image_seal(file); }
static void a_reserved_field_of_a_section(unsigned char *file) { section_entry(file, 2)[2] = 1, image_seal(file); }
static void no_strings_section(unsigned char *file) { file[64] = 200, image_seal(file); }
static void no_functions_section(unsigned char *file) { file[64 + 32] = 200, image_seal(file); }
static void no_constants_section(unsigned char *file) { file[64 + 32 * 2] = 200, image_seal(file); }
static void no_code_section(unsigned char *file) { file[64 + 32 * 3] = 200, image_seal(file); }
static void empty_strings(unsigned char *file) { shorten(file, 0, 0); }
static void empty_functions(unsigned char *file) { shorten(file, 1, 4); }
static void empty_constants(unsigned char *file) { shorten(file, 2, 4); }
static void more_strings_than_there_are(unsigned char *file) { set_count(file, 0, 0, 1000); }
static void more_functions_than_there_are(unsigned char *file) { set_count(file, 1, 0, 1000); }
static void more_parameters_than_there_are(unsigned char *file) { set_count(file, 1, 1, 1000); }
static void more_constants_than_there_are(unsigned char *file) { set_count(file, 2, 0, 1000); }
static void more_dimensions_than_there_are(unsigned char *file) { set_count(file, 2, 1, 1000); }
static void half_a_word_of_code(unsigned char *file) { section_entry(file, 3)[1] += 2, image_reseal(file); }
static void a_string_among_the_records(unsigned char *file) { /* at the position of their number: a character, then 0 */
  memcpy(file + section_entry(file, 0)[0] + 4, (uint32_t[]){0, 1}, 8), image_reseal(file);
}
static void a_string_inside_another(unsigned char *file) { /* the second begins at the second character of the first */
  uint32_t *records = (uint32_t *)(file + section_entry(file, 0)[0] + 4);
  records[2] = records[0] + 1;
  records[3] = records[1] - 1;
  image_reseal(file);
}
static void code_beyond_the_section(unsigned char *file) { /* of the last function */
  unsigned char *functions = file + section_entry(file, 1)[0];
  uint32_t count;
  memcpy(&count, functions, sizeof count);
  functions[8 + 32 * (count - 1) + 28]++, image_reseal(file);
}
static void a_gap_that_is_not_empty(unsigned char *file) {
  uint64_t entry[2];
  memcpy(entry, file + 64 + 8, sizeof entry);
  file[entry[0] + entry[1]] = 1;
}

/* Overlaps the code of the function `last` before the end of the table with that of the function before it. */
static void overlap(unsigned char *file, uint32_t last) {
  uint64_t functions;
  uint32_t count, start;
  memcpy(&functions, file + 64 + 32 + 8, sizeof functions);
  memcpy(&count, file + functions, sizeof count);
  unsigned char *code_start = file + functions + 8 + 32 * (count - 1 - last) + 24;
  memcpy(&start, code_start, sizeof start);
  start -= 2;
  memcpy(code_start, &start, sizeof start);
  image_reseal(file);
}
static void overlapping_code(unsigned char *file) { overlap(file, 0); }
static void overlapping_code_before_others(unsigned char *file) { overlap(file, 1); }
static void one_more_function(image *to) { image_bytecode(to, "f", "x", 1), RET(to, 0); }

static void a_twin_name(image *to) { image_packed(to, "vm.builtin.make_tuple"); }
static void a_function_named_as_a_builtin(image *to) {
  image_bytecode(to, "vm.builtin.make_tuple", "x", 1), RET(to, 0);
}
static void an_unknown_kind(image *to) {
  image_packed(to, "extra"), image_record(to, to->function_count - 1)->kind = 4;
}
static void a_private_packed_function(image *to) {
  image_packed(to, "extra"), image_record(to, to->function_count - 1)->flags = 1;
}
static void an_unknown_flag(image *to) {
  image_bytecode(to, "f", "x", 1), RET(to, 0), image_record(to, to->function_count - 1)->flags = 4;
}
static void no_parameter_count(image *to) { image_function(to, RVM_KIND_bytecode, "f", NULL, 1), RET(to, 0); }
static void parameters_beyond_the_table(image *to) {
  image_function(to, RVM_KIND_packed, "f", "x", 0);
  image_record(to, to->function_count - 1)->parameter_count = 2;
}
static void parameters_of_another_function(image *to) {
  image_function(to, RVM_KIND_packed, "f", "x", 0);
  image_function(to, RVM_KIND_packed, "g", "x", 0);
  image_record(to, to->function_count - 1)->first_parameter--;
}
static void packed_with_instructions(unsigned char *file) { /* the first function */
  file[section_entry(file, 1)[0] + 8 + 28] = 2, image_reseal(file);
}
static void a_shared_name(image *to) {
  image_packed(to, "f"), image_packed(to, "g");
  image_record(to, to->function_count - 1)->name = image_record(to, to->function_count - 2)->name;
}
static void a_name_that_is_too_long(image *to) {
  char name[RVM_MAX_NAME_BYTES + 2];
  memset(name, 'a', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  image_packed(to, name);
}
static void a_parameter_without_name(image *to) {
  image_function(to, RVM_KIND_packed, "f", "x", 0);
  memset(to->parameters.bytes + to->parameters.size - 4, 0x7f, 4);
}
static void a_private_native_function(image *to) { /* valid; there is no library */
  image_function(to, RVM_KIND_native, "f", "x", 2), image_record(to, to->function_count - 1)->flags = 1;
}
static void too_many_native_registers(image *to) { image_function(to, RVM_KIND_native, "f", "x", 1u << 31); }
static void native_without_symbol(image *to) {
  image_function(to, RVM_KIND_native, "f", "x", 2);
  image_record(to, to->function_count - 1)->symbol = RVM_NO_STRING;
}
static void native_without_library(image *to) { image_function(to, RVM_KIND_native, "f", "x", 2); }
static void native_without_result_register(image *to) { image_function(to, RVM_KIND_native, "f", "x", 1); }
static void too_few_registers(image *to) { image_bytecode(to, "f", "x y", 1), RET(to, 0); }
static void too_many_registers(image *to) { image_bytecode(to, "f", "x y", 1000), RET(to, 0); }
static void no_code(image *to) { image_bytecode(to, "f", "x", 1); }
static void text_that_is_no_utf8(image *to) { image_text(to, "\xc3\x28"); }
static void overlong_utf8(image *to) { image_text(to, "\xc0\xaf"); }
static void a_surrogate(image *to) { image_text(to, "\xed\xa0\x80"); }
static void a_point_beyond_unicode(image *to) { image_text(to, "\xf4\x90\x80\x80"); }
static void a_source_that_is_no_text(image *to) { buffer_add(&to->source, "int x;\xff", 7); }
/* The last character is truncated; the bytes of the next section would complete it. */
static void a_source_that_is_cut(image *to) {
  char source[64];
  memset(source, ' ', sizeof source);
  source[63] = '\xc3';
  buffer_add(&to->source, source, sizeof source);
  memset(to->data.bytes, 0xa9, 1);
}
static void a_cut_character(image *to) { image_text(to, "\xe2\x82"); }
static void a_string_with_nul(image *to) {
  image_text(to, "ab"), memset(to->string_bytes.bytes + to->string_bytes.size - 3, 0, 1);
}
static void a_string_without_end(image *to) {
  image_text(to, "ab"), memset(to->string_bytes.bytes + to->string_bytes.size - 1, 1, 1);
}
static void a_constant_of_a_wrong_tag(image *to) {
  image_add_constant(to, (image_constant){.tag = RVM_TAG_TUPLE}, NULL);
}
static void a_constant_of_no_dtype(image *to) { image_dtype(to, RVM_DTYPE_COUNT); }
static void a_constant_of_negative_dtype(image *to) { image_dtype(to, -1); }
static void a_constant_of_no_string(image *to) {
  image_add_constant(to, (image_constant){.tag = RVM_TAG_STRING, .payload = -1}, NULL);
}
static void dimensions_beyond_the_table(image *to) { image_shape(to, 1, (int64_t[]){1}), last_constant(to)->rank = 2; }
static void dimensions_of_another_constant(image *to) {
  image_shape(to, 1, (int64_t[]){1}), image_shape(to, 1, (int64_t[]){1}), last_constant(to)->dims_start--;
}
static void a_tensor_of_too_many_axes(image *to) {
  int64_t dims[RVM_MAX_RANK + 1];
  for (int i = 0; i <= RVM_MAX_RANK; i++) dims[i] = 1;
  image_tensor(to, RVM_DTYPE_i8, RVM_MAX_RANK + 1, dims, "a", 1);
}
static void a_wrong_tensor_size(image *to) { image_tensor(to, RVM_DTYPE_i8, 1, (int64_t[]){3}, "abcd", 4); }
static void a_byte_that_is_no_bool(image *to) { image_tensor(to, RVM_DTYPE_bool, 1, (int64_t[]){2}, "\1\2", 2); }
static void a_negative_dimension(image *to) { image_tensor(to, RVM_DTYPE_i8, 1, (int64_t[]){-3}, "abc", 3); }
static void a_size_that_overflows(image *to) {
  image_tensor(to, RVM_DTYPE_i8, 2, (int64_t[]){INT64_C(1) << 32, INT64_C(1) << 32}, NULL, 0);
}
static void strings_of_negative_size(image *to) {
  image_tensor(to, RVM_DTYPE_str, 1, (int64_t[]){0}, NULL, 0), last_constant(to)->size_bytes = UINT64_C(1) << 63;
}
static void a_tensor_before_the_data(image *to) {
  image_tensor(to, RVM_DTYPE_i8, 1, (int64_t[]){3}, "abc", 3), last_constant(to)->payload = -64;
}
static void a_tensor_that_ends_beyond_the_data(image *to) {
  image_tensor(to, RVM_DTYPE_i8, 1, (int64_t[]){300}, "abc", 3), last_constant(to)->size_bytes = 300;
}
static void an_unaligned_tensor(image *to) {
  image_tensor(to, RVM_DTYPE_i8, 1, (int64_t[]){3}, "abc", 3), last_constant(to)->payload -= 8;
}
static void a_tensor_beyond_the_data(image *to) {
  image_tensor(to, RVM_DTYPE_i8, 1, (int64_t[]){3}, "abc", 3), last_constant(to)->payload += 64;
}

/* Strings that end after the string bytes, and strings that end before them. */
static void strings_beyond_their_bytes(image *to) {
  image_tensor(to, RVM_DTYPE_str, 1, (int64_t[]){1}, "\4\0\0\0\0\0\0\0abc", 11);
}
static void strings_of_another_count(image *to) {
  image_tensor(to, RVM_DTYPE_str, 1, (int64_t[]){2}, "\3\0\0\0\0\0\0\0abc", 11);
}

static void each_fault_is_named(void) {
  const rvm_status bad = RVM_BAD_EXECUTABLE;
  expect_fault(NULL, another_magic_number, bad, "not a relvm executable");
  expect_fault(NULL, another_version, RVM_UNSUPPORTED, "format version 2");
  expect_fault(NULL, a_larger_size, bad, "the header says");
  expect_fault(NULL, a_reserved_field, bad, "reserved");
  expect_fault(NULL, a_wrong_table_checksum, bad, "the header is damaged");
  expect_fault(NULL, a_hundred_sections, bad, "section table");
  expect_fault(NULL, overlapping_sections, bad, "has an invalid offset or size");
  expect_fault(NULL, an_unaligned_section, bad, "has an invalid offset or size");
  expect_fault(NULL, a_section_beyond_the_file, bad, "has an invalid offset or size");
  expect_fault(NULL, a_section_that_ends_beyond, bad, "has an invalid offset or size");
  expect_fault(NULL, a_reserved_field_of_a_section, bad, "has an invalid offset or size");
  expect_fault(NULL, no_strings_section, bad, "mandatory section is missing");
  expect_fault(NULL, no_functions_section, bad, "mandatory section is missing");
  expect_fault(NULL, no_constants_section, bad, "mandatory section is missing");
  expect_fault(NULL, no_code_section, bad, "mandatory section is missing");
  expect_fault(NULL, empty_strings, bad, "string section is too short");
  expect_fault(NULL, empty_functions, bad, "function section is too short");
  expect_fault(NULL, empty_constants, bad, "constant section is too short");
  expect_fault(NULL, more_strings_than_there_are, bad, "string section is too short");
  expect_fault(NULL, more_functions_than_there_are, bad, "function section is too short");
  expect_fault(NULL, more_parameters_than_there_are, bad, "function section is too short");
  expect_fault(NULL, more_constants_than_there_are, bad, "constant section is too short");
  expect_fault(NULL, more_dimensions_than_there_are, bad, "constant section is too short");
  expect_fault(NULL, half_a_word_of_code, bad, "the code section has an invalid size");
  expect_fault(NULL, code_beyond_the_section, bad, "instructions of function main lie outside the code section");
  expect_fault(NULL, a_string_among_the_records, bad, "string 0 overlaps the string table");
  expect_fault(NULL, a_string_inside_another, bad, "string 1 overlaps the string table or the previous string");
  expect_fault(NULL, a_twin_section, bad, "two sections have id 4");
  expect_fault(NULL, a_missing_section, bad, "mandatory section is missing");
  expect_fault(NULL, a_damaged_section, bad, "section 0 (strings) is damaged");
  expect_fault(NULL, a_gap_that_is_not_empty, bad, "between sections");
  expect_fault(a_twin_name, NULL, bad, "two functions are named vm.builtin.make_tuple");
  expect_fault(a_function_named_as_a_builtin, NULL, bad, "names that begin with vm.builtin. belong to builtins");
  expect_fault(an_unknown_kind, NULL, bad, "unknown kind 4");
  expect_fault(a_private_packed_function, NULL, bad, "has invalid flags");
  expect_fault(an_unknown_flag, NULL, bad, "has invalid flags");
  expect_fault(no_parameter_count, NULL, bad, "function f has no parameter count");
  expect_fault(parameters_beyond_the_table, NULL, bad, "parameters of function f");
  expect_fault(parameters_of_another_function, NULL, bad, "the parameters of function g begin at");
  expect_fault(NULL, packed_with_instructions, bad, "has instructions but is not a bytecode function");
  expect_fault(a_shared_name, NULL, bad, "as their name");
  expect_fault(a_name_that_is_too_long, NULL, bad, "must have 1 to 1000 bytes");
  expect_fault(a_parameter_without_name, NULL, bad, "parameter 0 of function f");
  expect_fault(a_private_native_function, NULL, bad, "function f is native, but the native section is missing");
  expect_fault(too_many_native_registers, NULL, bad, "number of registers");
  expect_fault(native_without_symbol, NULL, bad, "the symbol of function f must have");
  expect_fault(native_without_library, NULL, bad, "function f is native, but the native section is missing");
  expect_fault(native_without_result_register, NULL, bad, "number of registers");
  expect_fault(too_few_registers, NULL, bad, "number of registers");
  expect_fault(too_many_registers, NULL, bad, "more registers than");
  expect_fault(no_code, NULL, bad, "instructions of function f lie outside the code section");
  expect_fault(NULL, overlapping_code, bad, "functions second and main overlap");
  expect_fault(one_more_function, overlapping_code_before_others, bad, "overlap");
  expect_fault(text_that_is_no_utf8, NULL, bad, "malformed");
  expect_fault(overlong_utf8, NULL, bad, "malformed");
  expect_fault(a_surrogate, NULL, bad, "malformed");
  expect_fault(a_point_beyond_unicode, NULL, bad, "malformed");
  expect_fault(a_source_that_is_no_text, NULL, bad, "the section of id 6 must be UTF-8 text");
  expect_fault(a_source_that_is_cut, NULL, bad, "the section of id 6 must be UTF-8 text");
  expect_fault(a_cut_character, NULL, bad, "malformed");
  expect_fault(a_string_with_nul, NULL, bad, "malformed");
  expect_fault(a_string_without_end, NULL, bad, "malformed");
  expect_fault(a_constant_of_a_wrong_tag, NULL, bad, "has the invalid tag");
  expect_fault(a_constant_of_no_dtype, NULL, bad, "unknown dtype");
  expect_fault(a_constant_of_negative_dtype, NULL, bad, "unknown dtype");
  expect_fault(a_constant_of_no_string, NULL, bad, "the string index is out of range");
  expect_fault(dimensions_beyond_the_table, NULL, bad, "dimensions of constant");
  expect_fault(dimensions_of_another_constant, NULL, bad, "the dimensions of constant");
  expect_fault(a_tensor_of_too_many_axes, NULL, bad, "has rank 65, which exceeds the maximum of 64");
  expect_fault(a_byte_that_is_no_bool, NULL, bad, "of dtype bool has a byte that is no element of this dtype");
  expect_fault(a_wrong_tensor_size, NULL, bad, "the size does not match the dtype and dimensions");
  expect_fault(a_negative_dimension, NULL, bad, "the size does not match the dtype and dimensions");
  expect_fault(a_size_that_overflows, NULL, bad, "the size does not match the dtype and dimensions");
  expect_fault(strings_of_negative_size, NULL, bad, "the size does not match the dtype and dimensions");
  expect_fault(a_tensor_before_the_data, NULL, bad, "are misaligned or outside the data section");
  expect_fault(a_tensor_that_ends_beyond_the_data, NULL, bad, "are misaligned or outside the data section");
  expect_fault(an_unaligned_tensor, NULL, bad, "are misaligned or outside the data section");
  expect_fault(a_tensor_beyond_the_data, NULL, bad, "are misaligned or outside the data section");
  expect_fault(strings_beyond_their_bytes, NULL, bad, "the string offsets of constant");
  expect_fault(strings_of_another_count, NULL, bad, "the string offsets of constant");
}

static void native_code_needs_trust(void) {
  image program = {0};
  int64_t size_bytes;
  rvm_executable *executable;
  rvm_value error;
  image_native(&program, "x86_64-linux-gnu", "", "", 0);
  unsigned char *bytes = image_finish(&program, &size_bytes);
  CHECK_FAILS(load(bytes, size_bytes, &executable, &error), RVM_UNSUPPORTED, "which the load options do not trust",
              error);
  const rvm_load_options only_checked = {.check_only = 1};
  CHECK_OK(rvm_executable_load(bytes, size_bytes, &only_checked, &executable, &error), error);
  rvm_executable_release(executable);
  no_strings_section(bytes); /* other faults are reported before untrusted native code */
  CHECK_FAILS(load(bytes, size_bytes, &executable, &error), RVM_BAD_EXECUTABLE, "mandatory section", error);
  free(bytes);
}

/* Messages name damaged sections; unknown ids are ignored. */
static void damaged_sections_are_named(void) {
  static const char *const names[] = {"unknown id", "strings", "functions", "constants", "code",
                                      "native",     "source",  "signature", "debug",     "data",
                                      "portable",   "kernels", "unknown id"};
  for (uint32_t id = 0; id < COUNT_OF(names); id++)
    for (int is_damaged = 0; is_damaged < 2; is_damaged++) {
      image program = {0};
      int64_t size_bytes;
      rvm_executable *executable;
      rvm_value error = {0};
      char message[64];
      program_build(&program);
      buffer_add(&program.source, "int x;", 6);
      unsigned char *bytes = image_finish(&program, &size_bytes);
      memcpy(bytes + 64 + 32 * 4, &id, sizeof id); /* the section after the code */
      bytes[section_entry(bytes, 4)[0]] ^= (unsigned char)is_damaged;
      image_seal(bytes);
      const rvm_status status = load(bytes, size_bytes, &executable, &error);
      snprintf(message, sizeof message, "section 4 (%s) is damaged", names[id]);
      if (is_damaged)
        CHECK_FAILS(status, RVM_BAD_EXECUTABLE, message, error);
      else
        CHECK((status == RVM_OK) == (id == 0 || id == RVM_SECTION_source || id == RVM_SECTION_signature ||
                                     id == RVM_SECTION_debug || id == RVM_SECTION_portable || id > RVM_SECTION_COUNT));
      if (status == RVM_OK) rvm_executable_release(executable);
      if (!is_damaged) rvm_value_release(&error);
      free(bytes);
    }
}

static void release_bytes(void *argument) { ++*(int *)argument; }

/* Tensors of strings, which count as values that the executable owns; and the release of its bytes. */
static void strings_and_bytes_are_released(void) {
  image program = {0};
  int64_t size_bytes;
  int released = 0;
  rvm_executable *executable;
  rvm_value error = {0};
  program_build(&program);
  image_tensor(&program, RVM_DTYPE_str, 1, (int64_t[]){2}, "\1\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0abc", 19);
  unsigned char *bytes = image_finish(&program, &size_bytes);
  const rvm_load_options options = {.release = release_bytes, .release_argument = &released};
  CHECK_OK(rvm_executable_load(bytes, size_bytes, &options, &executable, &error), error);
  const rvm_value strings = executable->constants[executable->constant_count - 1];
  CHECK(strings.tag == RVM_TAG_TENSOR && strings.as.tensor->dtype == RVM_DTYPE_str);
  CHECK_INT(released, 0);
  rvm_executable_release(executable);
  CHECK_INT(released, 1);
  free(bytes);
}

static void bytes_that_are_no_file_are_refused(void) {
  int64_t size_bytes;
  rvm_executable *executable;
  rvm_value error;
  unsigned char *bytes = make_program(&size_bytes), *longer = aligned_alloc(64, (size_t)(size_bytes / 64 + 2) * 64);
  CHECK_FAILS(load(bytes + 4, size_bytes - 4, &executable, &error), RVM_ARGUMENT_ERROR, "64-byte aligned", error);
  CHECK_FAILS(load(bytes, 63, &executable, &error), RVM_BAD_EXECUTABLE, "not a relvm executable", error);
  CHECK_FAILS(load(bytes, -1, &executable, &error), RVM_ARGUMENT_ERROR, "size_bytes is -1", error);
  CHECK_FAILS(load(bytes, INT64_MAX, &executable, &error), RVM_BAD_EXECUTABLE,
              "executable: a size of 9223372036854775807 bytes is too large", error);
  CHECK_FAILS(load(bytes, INT64_MAX / 64, &executable, &error), RVM_BAD_EXECUTABLE,
              "executable: a size of 144115188075855871 bytes is too large", error);
  memcpy(longer, bytes, (size_t)size_bytes);
  longer[size_bytes] = 1;
  memcpy(longer + 16, &(uint64_t){(uint64_t)size_bytes + 1}, 8), image_seal(longer);
  CHECK_FAILS(load(longer, size_bytes + 1, &executable, &error), RVM_BAD_EXECUTABLE, "after the last section", error);
  longer[size_bytes] = 0;
  CHECK_OK(load(longer, size_bytes + 1, &executable, &error), error);
  rvm_executable_release(executable);
  free(longer);
  free(bytes);
}

/* Loads a file with more than RVM_CHECKED_DATA_BYTES in the section `id`, in which a bit is flipped. */
static rvm_status load_large(uint32_t id, int32_t check_data, rvm_value *error) {
  enum { SIZE = RVM_CHECKED_DATA_BYTES + 100 };
  static char text[SIZE + 1];
  image program = {0};
  int64_t size_bytes;
  rvm_executable *executable = NULL;
  memset(text, 'a', SIZE);
  if (id == RVM_SECTION_strings)
    image_text(&program, text);
  else if (id == RVM_SECTION_data)
    image_tensor(&program, RVM_DTYPE_i8, 1, (int64_t[]){SIZE}, text, SIZE);
  else
    buffer_add(&program.source, text, SIZE);
  unsigned char *bytes = image_finish(&program, &size_bytes);
  const int index = id == RVM_SECTION_strings ? 0 : 4;
  bytes[section_entry(bytes, index)[0] + 1000] ^= 1;
  memcpy(bytes + 64 + 32 * index, &id, sizeof id), image_seal(bytes);
  const rvm_load_options options = {.check_data = check_data};
  rvm_status status = rvm_executable_load(bytes, size_bytes, &options, &executable, error);
  rvm_executable_release(executable);
  free(bytes);
  return status;
}

static void only_much_data_is_not_checked_unless_asked_for(void) {
  rvm_value error = {0};
  CHECK_OK(load_large(RVM_SECTION_data, 0, &error), error);
  CHECK_OK(load_large(RVM_SECTION_portable, 0, &error), error);
  CHECK_FAILS(load_large(RVM_SECTION_data, 1, &error), RVM_BAD_EXECUTABLE, "section 4 (data) is damaged", error);
  CHECK_FAILS(load_large(RVM_SECTION_portable, 1, &error), RVM_BAD_EXECUTABLE, "section 4 (portable) is damaged",
              error);
  CHECK_FAILS(load_large(RVM_SECTION_strings, 0, &error), RVM_BAD_EXECUTABLE, "section 0 (strings) is damaged", error);
  CHECK_FAILS(load_large(RVM_SECTION_source, 0, &error), RVM_BAD_EXECUTABLE, "section 4 (source) is damaged", error);
}

static void an_executable_says_what_it_has(void) {
  image program = {0};
  loaded exe;
  rvm_value error;
  uint32_t index = program_build(&program);
  uint32_t helper = image_bytecode(&program, "_helper", "x", 1);
  RET(&program, 0);
  image_record(&program, helper)->flags = 1;
  image_text(&program, "h\xc3\xa9llo \xe2\x82\xac \xf0\x9f\x98\x80"); /* characters of 2, 3 and 4 bytes */
  MAKE(exe, image_load(&program, &exe, &error));
  const rvm_executable *executable = exe.executable;
  CHECK_INT(rvm_executable_function_count(executable), 15);
  CHECK_INT(rvm_executable_find(executable, "main"), index);
  CHECK_INT(rvm_executable_find(executable, "mai"), -1);
  CHECK_INT(rvm_executable_find(executable, "_helper"), -1);
  CHECK(strcmp(rvm_executable_function_name(executable, (int32_t)helper), "_helper") == 0);
  CHECK(strcmp(rvm_executable_function_name(executable, (int32_t)index), "main") == 0);
  CHECK_INT(rvm_executable_function_kind(executable, (int32_t)index), RVM_KIND_bytecode);
  CHECK_INT(rvm_executable_function_parameters(executable, (int32_t)index), 2);
  CHECK_INT(rvm_executable_function_parameters(executable, 0), -1);
  CHECK(rvm_executable_function_name(executable, 15) == NULL && rvm_executable_function_name(executable, -1) == NULL);
  CHECK_INT(rvm_executable_function_kind(executable, 15), -1);
  CHECK_INT(rvm_executable_function_parameters(executable, 15), -2);
  const unsigned char *data = executable->constants[2].as.tensor->dl.data;
  CHECK(data > exe.bytes && (intptr_t)data % 64 == 0); /* used in place */
  loaded_release(&exe);
}

int main(void) {
  truncations_are_refused();
  every_flipped_bit_is_found();
  damage_with_right_checksums_is_survived();
  each_fault_is_named();
  damaged_sections_are_named();
  strings_and_bytes_are_released();
  bytes_that_are_no_file_are_refused();
  only_much_data_is_not_checked_unless_asked_for();
  native_code_needs_trust();
  an_executable_says_what_it_has();
  return CHECK_RESULT();
}
