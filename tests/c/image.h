/* image.h: builds executables for tests, piece by piece.  They may be invalid. */
#ifndef RELVM_TEST_IMAGE_H
#define RELVM_TEST_IMAGE_H

#include <stdlib.h>
#include <string.h>

#include "executable.h"

typedef struct buffer {
  unsigned char *bytes;
  size_t size, capacity;
} buffer;

typedef struct image {
  buffer string_records, string_bytes, functions, parameters, constants, dims, data, code, source, native, kernels;
  uint32_t string_count, function_count, parameter_count, constant_count, dim_count;
} image;

static inline void *buffer_add(buffer *to, const void *bytes, size_t size) {
  if (to->size + size > to->capacity) {
    to->capacity = (to->size + size) * 2;
    to->bytes = realloc(to->bytes, to->capacity);
  }
  void *dst = to->bytes + to->size;
  if (size > 0) memset(dst, 0, size);
  if (bytes && size > 0) memcpy(dst, bytes, size);
  to->size += size;
  return dst;
}

static inline void buffer_pad(buffer *to) { buffer_add(to, NULL, (64 - to->size % 64) % 64); }

/* Adds a string.  Offsets are from the start of the string bytes until image_finish. */
static inline uint32_t image_string(image *to, const char *text) {
  rvm_string_record record = {.offset = (uint32_t)to->string_bytes.size, .length = (uint32_t)strlen(text)};
  buffer_add(&to->string_records, &record, sizeof record);
  buffer_add(&to->string_bytes, text, record.length + 1);
  return to->string_count++;
}

static inline rvm_function_record *image_record(image *to, uint32_t function) {
  return (rvm_function_record *)to->functions.bytes + function;
}

/* Adds a function and returns its index.  `parameters` are names separated by blanks, or NULL for any number. */
static inline uint32_t image_function(image *to, uint32_t kind, const char *name, const char *parameters,
                                      uint32_t registers) {
  rvm_function_record record = {.kind = kind, .symbol = RVM_NO_STRING, .registers = registers};
  record.name = image_string(to, name);
  record.first_parameter = to->parameter_count;
  record.code_start = (uint32_t)(to->code.size / 4);
  record.parameter_count = parameters ? 0 : -1;
  if (kind == RVM_KIND_native || kind == RVM_KIND_kernel) record.symbol = image_string(to, name);
  char names[256] = "";
  if (parameters) strcpy(names, parameters);
  for (char *parameter = strtok(names, " "); parameter; parameter = strtok(NULL, " ")) {
    uint32_t string = image_string(to, parameter);
    buffer_add(&to->parameters, &string, sizeof string);
    record.parameter_count++;
    to->parameter_count++;
  }
  buffer_add(&to->functions, &record, sizeof record);
  return to->function_count++;
}

static inline uint32_t image_packed(image *to, const char *name) {
  return image_function(to, RVM_KIND_packed, name, NULL, 0);
}

/* Begins a bytecode function, whose code is all that is added before the next function begins.  Returns its index. */
static inline uint32_t image_bytecode(image *to, const char *name, const char *parameters, uint32_t registers) {
  return image_function(to, RVM_KIND_bytecode, name, parameters, registers);
}

static inline void image_words(image *to, const uint32_t *words, size_t count) {
  buffer_add(&to->code, words, count * 4);
}

#define NONE ((uint32_t)-1)
#define ARG(kind, payload) ((uint32_t)(payload) << 3 | RVM_ARGUMENT_##kind)
#define R(i) ARG(REGISTER, i)
#define I(i) ARG(IMMEDIATE, i)
#define C(i) ARG(CONSTANT, i)
#define F(i) ARG(FUNCTION, i)
#define B(i) ARG(BOOL, i)
#define X ARG(CONTEXT, 0)
#define N ARG(NIL, 0)

#define WORDS(to, ...) image_words(to, (uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / 4)
/* Adds a call.  The arguments of the macro after `function` are the arguments of the call. */
#define CALL(to, destination, function, ...)    \
  WORDS(to, RVM_OP_call, destination, function, \
        (uint32_t)(sizeof((uint32_t[]){0, ##__VA_ARGS__}) / 4 - 1), ##__VA_ARGS__)
#define RET(to, r) WORDS(to, RVM_OP_ret, r)
#define GOTO(to, jump) WORDS(to, RVM_OP_goto, (uint32_t)(jump))
#define IF(to, r, jump) WORDS(to, RVM_OP_if, r, (uint32_t)(jump))
#define RESET(to, r) WORDS(to, RVM_OP_reset, r)

/* Returns the number of words of code so far, for jumps. */
static inline int32_t image_here(const image *to) { return (int32_t)(to->code.size / 4); }
static inline void image_patch(image *to, int32_t word, int32_t value) { memcpy(to->code.bytes + word * 4, &value, 4); }

typedef struct image_constant {
  uint32_t tag, dtype, rank, dims_start;
  int64_t payload;
  uint64_t size_bytes;
} image_constant;

static inline uint32_t image_add_constant(image *to, image_constant constant, const int64_t *dims) {
  constant.dims_start = to->dim_count;
  buffer_add(&to->dims, dims, constant.rank * sizeof *dims);
  to->dim_count += constant.rank;
  buffer_add(&to->constants, &constant, sizeof constant);
  return to->constant_count++;
}

static inline uint32_t image_int(image *to, int64_t value) {
  return image_add_constant(to, (image_constant){.tag = RVM_TAG_INT, .payload = value}, NULL);
}

static inline uint32_t image_float(image *to, double value) {
  image_constant constant = {.tag = RVM_TAG_FLOAT};
  memcpy(&constant.payload, &value, sizeof value);
  return image_add_constant(to, constant, NULL);
}

static inline uint32_t image_dtype(image *to, int64_t dtype) {
  return image_add_constant(to, (image_constant){.tag = RVM_TAG_DTYPE, .payload = dtype}, NULL);
}

static inline uint32_t image_text(image *to, const char *text) {
  return image_add_constant(to, (image_constant){.tag = RVM_TAG_STRING, .payload = image_string(to, text)}, NULL);
}

static inline uint32_t image_shape(image *to, uint32_t rank, const int64_t *dims) {
  return image_add_constant(to, (image_constant){.tag = RVM_TAG_SHAPE, .rank = rank}, dims);
}

static inline uint32_t image_tensor(image *to, uint32_t dtype, uint32_t rank, const int64_t *dims, const void *bytes,
                                    uint64_t size_bytes) {
  buffer_pad(&to->data);
  image_constant constant = {.tag = RVM_TAG_TENSOR, .dtype = dtype, .rank = rank, .size_bytes = size_bytes};
  constant.payload = (int64_t)to->data.size;
  buffer_add(&to->data, bytes, size_bytes);
  return image_add_constant(to, constant, dims);
}

/* Adds a native section with a shared library. */
static inline void image_native(image *to, const char *triple, const char *cpu, const void *library,
                                size_t size_bytes) {
  uint32_t header[16] = {RVM_ABI_VERSION, image_string(to, triple), image_string(to, cpu)};
  buffer_add(&to->native, header, sizeof header);
  buffer_add(&to->native, library, size_bytes);
}

/* Makes the native section of an image replace the bytecode of `executable`. */
static inline void image_replaces(image *to, const rvm_executable *executable) {
  rvm_executable_digest(executable, to->native.bytes + 16, NULL);
}

/* Stores the checksum of the header and the section table. */
static inline void image_seal(unsigned char *file) {
  uint32_t section_count, checksum = 0;
  memcpy(&section_count, file + 12, 4);
  memcpy(file + 24, &checksum, 4);
  checksum = rvm_crc32c(0, file, 64 + 32 * (int64_t)section_count);
  memcpy(file + 24, &checksum, 4);
}

/* Stores the checksums of sections that were changed. */
static inline void image_reseal(unsigned char *file) {
  uint32_t section_count;
  memcpy(&section_count, file + 12, 4);
  for (uint32_t i = 0; i < section_count; i++) {
    uint64_t section[2];
    memcpy(section, file + 64 + 32 * i + 8, sizeof section);
    uint32_t checksum = rvm_crc32c(0, file + section[0], (int64_t)section[1]);
    memcpy(file + 64 + 32 * i + 4, &checksum, 4);
  }
  image_seal(file);
}

static inline void section_parts(buffer *section, const uint32_t *counts, size_t count_bytes, buffer first,
                                 buffer second) {
  buffer_add(section, counts, count_bytes);
  buffer_add(section, first.bytes, first.size);
  buffer_add(section, second.bytes, second.size);
}

/* Returns the file, 64-byte aligned, which the caller frees.  The image is empty afterwards. */
static inline unsigned char *image_finish(image *from, int64_t *size_bytes) {
  buffer strings = {0}, functions = {0}, constants = {0}, file = {0};
  for (uint32_t i = 0; i < from->string_count; i++)
    ((rvm_string_record *)from->string_records.bytes)[i].offset += 4 + from->string_count * 8;
  for (uint32_t i = 0; i < from->function_count; i++) {
    rvm_function_record *record = image_record(from, i);
    uint32_t end = i + 1 < from->function_count ? record[1].code_start : (uint32_t)(from->code.size / 4);
    record->code_count = record->kind == RVM_KIND_bytecode ? end - record->code_start : 0;
  }
  section_parts(&strings, &from->string_count, 4, from->string_records, from->string_bytes);
  section_parts(&functions, (uint32_t[]){from->function_count, from->parameter_count}, 8, from->functions,
                from->parameters);
  section_parts(&constants, (uint32_t[]){from->constant_count, from->dim_count}, 8, from->constants, from->dims);
  const struct {
    uint32_t id;
    buffer bytes;
  } sections[] = {{RVM_SECTION_strings, strings},     {RVM_SECTION_functions, functions},
                  {RVM_SECTION_constants, constants}, {RVM_SECTION_code, from->code},
                  {RVM_SECTION_source, from->source}, {RVM_SECTION_data, from->data},
                  {RVM_SECTION_native, from->native}, {RVM_SECTION_kernels, from->kernels}};
  uint32_t section_count = 5 + (from->source.size > 0) + (from->native.size > 0) + (from->kernels.size > 0),
           entries = 0;
  buffer_add(&file, NULL, 64 + 32 * section_count);
  for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
    int may_be_missing = sections[i].id == RVM_SECTION_source || sections[i].id == RVM_SECTION_native ||
                         sections[i].id == RVM_SECTION_kernels;
    if (may_be_missing && sections[i].bytes.size == 0) continue;
    buffer_pad(&file);
    struct {
      uint32_t id, checksum;
      uint64_t offset, size_bytes, zero;
    } entry = {.id = sections[i].id, .offset = file.size, .size_bytes = sections[i].bytes.size};
    memcpy(file.bytes + 64 + 32 * entries++, &entry, sizeof entry);
    buffer_add(&file, sections[i].bytes.bytes, sections[i].bytes.size);
  }
  memcpy(file.bytes, "\x89RVM\r\n\x1a\n\x01\0\0", 12);
  memcpy(file.bytes + 12, &section_count, 4);
  uint64_t size = file.size;
  memcpy(file.bytes + 16, &size, 8);
  image_reseal(file.bytes);
  size_t aligned_bytes = (file.size + 63) / 64 * 64;
  unsigned char *aligned = memset(aligned_alloc(64, aligned_bytes), 0, aligned_bytes);
  memcpy(aligned, file.bytes, file.size);
  *size_bytes = (int64_t)file.size;
  const buffer used[] = {from->string_records,
                         from->string_bytes,
                         from->functions,
                         from->parameters,
                         from->constants,
                         from->dims,
                         from->data,
                         from->code,
                         from->source,
                         from->native,
                         from->kernels,
                         strings,
                         functions,
                         constants,
                         file};
  for (size_t i = 0; i < sizeof used / sizeof *used; i++) free(used[i].bytes);
  *from = (image){0};
  return aligned;
}

/* An executable loaded from an image, and its bytes. */
typedef struct loaded {
  unsigned char *bytes;
  int64_t size_bytes;
  rvm_executable *executable;
} loaded;

static inline rvm_status image_load(image *from, loaded *to, rvm_value *error) {
  const char *const all[] = {"*"};
  const rvm_load_options options = {.trust_native = 1, .functions = all, .function_count = 1};
  *to = (loaded){.executable = NULL};
  to->bytes = image_finish(from, &to->size_bytes);
  return rvm_executable_load(to->bytes, to->size_bytes, &options, &to->executable, error);
}

static inline void loaded_release(loaded *exe) {
  rvm_executable_release(exe->executable);
  free(exe->bytes);
}

#endif
