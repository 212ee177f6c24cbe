/* executable.c: queries a loaded executable, and releases it. */
#include "cold.h"

#include "executable.h"

#include <stdlib.h>
#include <string.h>

#include "string_tensor.h"

const void *rvm_section_table(const rvm_section *section, int64_t *offset, uint64_t count, uint64_t item_bytes) {
  if (count > (uint64_t)(section->size_bytes - *offset) / item_bytes) return NULL;
  const void *table = section->bytes + *offset;
  *offset += (int64_t)(count * item_bytes);
  return table;
}

const char *rvm_executable_string(const rvm_executable *executable, uint32_t index) {
  return (const char *)executable->sections[RVM_SECTION_strings].bytes + executable->strings[index].offset;
}

/* Returns whether a name equals a pattern or, if the pattern ends with an asterisk, begins with the text before it. */
static int matches_pattern(const char *name, const char *pattern) {
  size_t length = strlen(pattern);
  if (length > 0 && pattern[length - 1] == '*') return strncmp(name, pattern, length - 1) == 0;
  return strcmp(name, pattern) == 0;
}

int rvm_executable_may_call(const rvm_executable *executable, const char *name) {
  if (!executable->callable) return 1;
  for (int32_t i = 0; i < executable->callable_count; i++)
    if (matches_pattern(name, executable->callable[i])) return 1;
  return 0;
}

rvm_status rvm_fail_forbidden(const char *name, rvm_value *error) {
  return rvm_fail(error, RVM_UNSUPPORTED,
                  "executable: the program calls the registered function \"%s\", which the load options do not allow",
                  name);
}

/* ---- lifetime ---- */

void rvm_executable_retain(rvm_executable *executable) { atomic_fetch_add(&executable->users, 1); }

void rvm_executable_release(rvm_executable *executable) {
  if (!executable || atomic_fetch_sub(&executable->users, 1) > 1) return;
  /* References to constants are not counted.  A count of 1 makes rvm_release free them. */
  for (int32_t i = 0; i < executable->constant_count; i++) {
    rvm_value *constant = &executable->constants[i];
    if (rvm_value_is_object(*constant)) constant->as.object->references = 1;
    if (constant->tag == RVM_TAG_TENSOR && constant->as.tensor->dtype == RVM_DTYPE_str)
      rvm_strings_set_references(constant->as.tensor, 1);
    rvm_release(constant);
  }
  rvm_library_close(&executable->library);
  rvm_release(&executable->obstacle);
  rvm_free(executable->constants);
  rvm_free(executable->codes);
  rvm_free(executable->steps);
  rvm_free(executable->objects);
  rvm_free(executable->literals);
  rvm_free(executable->symbols);
  rvm_free(executable->kernels);
  rvm_free(executable->by_name);
  rvm_free(executable->callable);
  if (executable->release) executable->release(executable->release_argument);
  rvm_free(executable);
}

/* ---- functions ---- */

int rvm_is_builtin_name(const char *name) { return strncmp(name, RVM_BUILTIN_PREFIX, strlen(RVM_BUILTIN_PREFIX)) == 0; }

int rvm_function_names_compare(const void *a, const void *b) {
  const rvm_function_name *left = a, *right = b;
  const int order = strcmp(left->name, right->name);
  return order ? order : left->is_packed - right->is_packed;
}

int32_t rvm_executable_function_count(const rvm_executable *executable) {
  return executable ? executable->function_count : -1;
}

static const rvm_function_record *function_at(const rvm_executable *executable, int32_t index) {
  return executable && index >= 0 && index < executable->function_count ? &executable->functions[index] : NULL;
}

const char *rvm_executable_function_name(const rvm_executable *executable, int32_t index) {
  const rvm_function_record *function = function_at(executable, index);
  return function ? rvm_executable_string(executable, function->name) : NULL;
}

int32_t rvm_executable_function_kind(const rvm_executable *executable, int32_t index) {
  const rvm_function_record *function = function_at(executable, index);
  return function ? (int32_t)function->kind : -1;
}

int32_t rvm_executable_function_parameters(const rvm_executable *executable, int32_t index) {
  const rvm_function_record *function = function_at(executable, index);
  return function ? function->parameter_count : -2;
}

int32_t rvm_executable_find(const rvm_executable *executable, const char *name) {
  if (!executable || !name) return -1;
  for (int32_t is_packed = 0; is_packed <= 1; is_packed++) {
    const rvm_function_name key = {.name = name, .is_packed = is_packed};
    const rvm_function_name *found =
        bsearch(&key, executable->by_name, (size_t)executable->function_count, sizeof key, rvm_function_names_compare);
    if (found && !(executable->functions[found->index].flags & RVM_PRIVATE)) return found->index;
  }
  return -1;
}

const unsigned char *rvm_executable_replaced(const rvm_executable *executable) {
  const rvm_native_header *header = (const rvm_native_header *)executable->sections[RVM_SECTION_native].bytes;
  return header ? header->replaced : NULL;
}

rvm_status rvm_executable_digest(const rvm_executable *executable, unsigned char *digest, rvm_value *error) {
  RVM_EXPECT_POINTER(executable, error);
  RVM_EXPECT_POINTER(digest, error);
  static const int hashed[] = {RVM_SECTION_strings, RVM_SECTION_functions, RVM_SECTION_constants, RVM_SECTION_code,
                               RVM_SECTION_kernels};
  const rvm_section *data = &executable->sections[RVM_SECTION_data];
  rvm_sha256 sha;
  rvm_sha256_start(&sha);
  for (size_t i = 0; i < sizeof hashed / sizeof *hashed; i++) {
    const rvm_section *section = &executable->sections[hashed[i]];
    rvm_sha256_add(&sha, &section->size_bytes, sizeof section->size_bytes);
    rvm_sha256_add(&sha, section->bytes, section->size_bytes);
  }
  rvm_sha256_add(&sha, &data->size_bytes, sizeof data->size_bytes);
  rvm_sha256_add(&sha, &data->checksum, sizeof data->checksum);
  rvm_sha256_finish(&sha, digest);
  return RVM_OK;
}
