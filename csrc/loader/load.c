/* load.c: loads an executable from memory.  Every part of the file is validated before it is used: first the sections,
   then their contents in the order of STAGES. */
#include "cold.h"

#include <stdlib.h>
#include <string.h>

#include "constants.h"
#include "errors.h"
#include "kernel_verify.h"
#include "load.h"
#include "object.h"
#include "predecode.h"
#include "selected.h"
#include "sort.h"
#include "string_tensor.h"
#include "verify.h"

static const unsigned char magic[8] = {0x89, 'R', 'V', 'M', '\r', '\n', 0x1a, '\n'};

typedef struct file_header {
  unsigned char magic[8];
  uint16_t major, minor;
  uint32_t section_count;
  uint64_t size_bytes;
  uint32_t checksum; /* checksum of the header, with this field as 0, and of the section table */
  uint32_t zero[9];
} file_header;

typedef struct file_section {
  uint32_t id;
  uint32_t checksum;
  uint64_t offset, size_bytes, zero;
} file_section;

_Static_assert(sizeof(file_header) == 64 && sizeof(file_section) == 32 && sizeof(rvm_function_record) == 32 &&
                   sizeof(rvm_native_header) == 64,
               "the structs are the file format");

#define BAD(error, ...) RVM_FAIL_BAD(error, "executable: " __VA_ARGS__)

/* A stage of loading: validates one part of the file, and stores it or a view of it in `executable`. */
typedef rvm_status load_stage(rvm_executable *executable, rvm_value *error);

static int all_zero(const void *bytes, int64_t size_bytes) {
  const unsigned char *byte = bytes;
  for (int64_t i = 0; i < size_bytes; i++)
    if (byte[i]) return 0;
  return 1;
}

/* ---- sections ---- */

/* Returns the name of a section in sections.def, for messages. */
static const char *section_name(uint32_t id) {
  switch (id) {
#define SECTION(name, id, meaning) \
  case id: return #name;
#include "sections.def"
#undef SECTION
    default: return "unknown id";
  }
}

static rvm_status check_header(const unsigned char *bytes, int64_t size_bytes, file_header *header, rvm_value *error) {
  if ((uintptr_t)bytes % RVM_ALIGNMENT != 0)
    return rvm_fail(error, RVM_ARGUMENT_ERROR, "executable: the bytes must be %d-byte aligned", RVM_ALIGNMENT);
  if (size_bytes < (int64_t)sizeof *header || memcmp(bytes, magic, sizeof magic) != 0)
    return BAD(error, "not a relvm executable (wrong magic number)");
  memcpy(header, bytes, sizeof *header);
  if (RVM_IS_SELECTIVE) return RVM_OK; /* the executable was verified when the library was made (selected.h) */
  if (header->major != 1)
    return rvm_fail(error, RVM_UNSUPPORTED, "executable: format version %d, this runtime reads version 1",
                    header->major);
  if (header->size_bytes != (uint64_t)size_bytes)
    return BAD(error, "the header says %llu bytes, but there are %lld; the file may be truncated",
               (unsigned long long)header->size_bytes, (long long)size_bytes);
  uint64_t table_bytes = (uint64_t)header->section_count * sizeof(file_section);
  if (table_bytes > (uint64_t)size_bytes - sizeof *header)
    return BAD(error, "the section table extends past the end of the file");
  uint32_t checksum = header->checksum;
  header->checksum = 0;
  uint32_t computed = rvm_crc32c(0, header, sizeof *header);
  if (rvm_crc32c(computed, bytes + sizeof *header, (int64_t)table_bytes) != checksum)
    return BAD(error, "the header is damaged (wrong checksum)");
  if (!all_zero(header->zero, sizeof header->zero)) return BAD(error, "reserved fields of the header are not zero");
  return RVM_OK;
}

/* Reads the section table.  Sections are in order of offset without overlap, and the gaps between them are zero.
   Sections with unknown ids are skipped. */
static rvm_status read_sections(rvm_executable *executable, const unsigned char *bytes, int64_t size_bytes,
                                int32_t check_data, rvm_value *error) {
  file_header header;
  rvm_status status = check_header(bytes, size_bytes, &header, error);
  if (status) return status;
  const file_section *table = (const file_section *)(bytes + sizeof header);
  int64_t end = (int64_t)(sizeof header + header.section_count * sizeof *table);
  for (uint32_t i = 0; i < header.section_count; i++) {
    file_section section = table[i];
    const int is_inside =
        section.offset <= (uint64_t)size_bytes && section.size_bytes <= (uint64_t)size_bytes - section.offset;
    const int is_after_previous = section.offset >= (uint64_t)end;
    if (!is_inside || !is_after_previous || section.offset % RVM_ALIGNMENT != 0 || section.zero != 0)
      return BAD(error, "section %u (id %u) has an invalid offset or size", i, section.id);
    const unsigned char *start = bytes + section.offset;
    if (!all_zero(bytes + end, (int64_t)section.offset - end)) return BAD(error, "bytes between sections are not zero");
    end = (int64_t)(section.offset + section.size_bytes);
    int has_tensors = section.id == RVM_SECTION_data || section.id == RVM_SECTION_portable;
    int is_checked = !RVM_IS_SELECTIVE && (!has_tensors || section.size_bytes <= RVM_CHECKED_DATA_BYTES || check_data);
    uint32_t checksum = is_checked ? rvm_crc32c(0, start, (int64_t)section.size_bytes) : section.checksum;
    if (checksum != section.checksum)
      return BAD(error, "section %u (%s) is damaged: its checksum is %08x, expected %08x", i, section_name(section.id),
                 checksum, section.checksum);
    if (section.id == 0 || section.id > RVM_SECTION_COUNT) continue;
    if (executable->sections[section.id].bytes) return BAD(error, "two sections have id %u", section.id);
    executable->sections[section.id] =
        (rvm_section){.bytes = start, .size_bytes = (int64_t)section.size_bytes, .checksum = section.checksum};
  }
  return all_zero(bytes + end, size_bytes - end) ? RVM_OK : BAD(error, "bytes after the last section are not zero");
}

/* Replaces the sections of the file by those of its portable program.  A portable program without a data section uses
   the data section of the file. */
static rvm_status select_portable(rvm_executable *executable, int32_t check_data, rvm_value *error) {
  const rvm_section portable = executable->sections[RVM_SECTION_portable],
                    data = executable->sections[RVM_SECTION_data];
  if (!portable.bytes)
    return rvm_fail(error, RVM_UNSUPPORTED, "executable: it has no portable program, but the load options ask for one");
  memset(executable->sections, 0, sizeof executable->sections);
  rvm_status status = read_sections(executable, portable.bytes, portable.size_bytes, check_data, error);
  if (status) return status;
  if (executable->sections[RVM_SECTION_native].bytes || executable->sections[RVM_SECTION_portable].bytes)
    return BAD(error, "a portable program must not contain a section native or portable");
  if (!executable->sections[RVM_SECTION_data].bytes) executable->sections[RVM_SECTION_data] = data;
  return RVM_OK;
}

static rvm_status expect_sections(const rvm_executable *executable, rvm_value *error) {
  const rvm_section *sections = executable->sections;
  if (!sections[RVM_SECTION_strings].bytes || !sections[RVM_SECTION_functions].bytes ||
      !sections[RVM_SECTION_constants].bytes || !sections[RVM_SECTION_code].bytes || !sections[RVM_SECTION_data].bytes)
    return BAD(error, "a mandatory section is missing");
  return RVM_OK;
}

/* ---- strings ---- */

/* Returns whether the bytes are well-formed UTF-8 (RFC 3629) without NUL. */
static int is_text(const unsigned char *bytes, int64_t length) {
  for (int64_t i = 0; i < length;) {
    unsigned char first = bytes[i];
    int following = rvm_utf8_following(first);
    if (first == 0 || following < 0 || following >= length - i) return 0;
    uint32_t point = following == 0 ? first : first & (0x3fu >> following);
    for (int k = 1; k <= following; k++) {
      if ((bytes[i + k] & 0xC0) != 0x80) return 0; /* not 10xxxxxx */
      point = point << 6 | (bytes[i + k] & 0x3f);
    }
    if (!rvm_utf8_may_encode(point, following)) return 0;
    i += following + 1;
  }
  return 1;
}

static int string_exists(const rvm_executable *executable, uint32_t index) {
  return index < (uint32_t)executable->string_count;
}

/* Returns whether a string exists and is short enough for the name of a function, a parameter or a symbol. */
static int is_name(const rvm_executable *executable, uint32_t index) {
  return string_exists(executable, index) && executable->strings[index].length <= RVM_MAX_NAME_BYTES;
}

/* Reads the string table.  Strings are in the order of their records and do not overlap, so a single pass validates
   them. */
static rvm_status read_strings(rvm_executable *executable, rvm_value *error) {
  const rvm_section *section = &executable->sections[RVM_SECTION_strings];
  int64_t offset = 0;
  const uint32_t *count = rvm_section_table(section, &offset, 1, sizeof *count);
  if (!count || *count > INT32_MAX) return BAD(error, "the string section is too short");
  executable->strings = rvm_section_table(section, &offset, *count, sizeof *executable->strings);
  if (!executable->strings) return BAD(error, "the string section is too short");
  executable->string_count = (int32_t)*count;
  for (int32_t i = 0; i < executable->string_count && !RVM_IS_SELECTIVE; i++) {
    rvm_string_record string = executable->strings[i];
    int64_t end = (int64_t)string.offset + string.length;
    if (string.offset < offset) return BAD(error, "string %d overlaps the string table or the previous string", i);
    if (end >= section->size_bytes || section->bytes[end] != 0 ||
        !is_text(section->bytes + string.offset, string.length))
      return BAD(error, "string %d is malformed", i);
    offset = end + 1;
  }
  return RVM_OK;
}

/* Checks that the sections that the runtime stores but does not interpret are UTF-8 text. */
static rvm_status read_texts(rvm_executable *executable, rvm_value *error) {
  const int ids[] = {RVM_SECTION_source, RVM_SECTION_signature, RVM_SECTION_debug};
  for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
    const rvm_section *section = &executable->sections[ids[i]];
    if (!is_text(section->bytes, section->size_bytes))
      return BAD(error, "the section of id %d must be UTF-8 text", ids[i]);
  }
  return RVM_OK;
}

/* ---- functions ---- */

/* The limit of a function's registers is the number of its parameters, plus the number of its code words, plus
   SPARE_REGISTERS.  The instructions of a function cannot write that many.  The limit bounds the memory that the
   verifier needs for sets of registers. */
enum { SPARE_REGISTERS = 256 };

/* Checks a function record.  `parameter_total` is the size of the parameter table.  *next_parameter is the index at
   which the parameters of this function must begin, and is advanced past these parameters. */
static rvm_status check_function(const rvm_executable *executable, int32_t index, uint32_t parameter_total,
                                 uint32_t *next_parameter, rvm_value *error) {
  const rvm_function_record *function = &executable->functions[index];
  if (!is_name(executable, function->name))
    return BAD(error, "the name of function %d must have 1 to %d bytes", index, RVM_MAX_NAME_BYTES);
  const char *name = rvm_executable_string(executable, function->name);
  if (function->kind >= RVM_KIND_COUNT) return BAD(error, "function %s has unknown kind %u", name, function->kind);
  const int is_packed = function->kind == RVM_KIND_packed;
  const int is_bytecode = function->kind == RVM_KIND_bytecode;
  const int has_registers = is_bytecode || function->kind == RVM_KIND_native;
  const uint32_t allowed_flags = has_registers ? RVM_PRIVATE | RVM_IMPURE : 0;
  if (!is_packed && rvm_is_builtin_name(name))
    return BAD(error, "function %s: names that begin with " RVM_BUILTIN_PREFIX " belong to builtins", name);
  if (function->flags & ~allowed_flags) return BAD(error, "function %s has invalid flags", name);
  if (function->parameter_count < (is_packed ? -1 : 0)) return BAD(error, "function %s has no parameter count", name);
  uint32_t parameter_count = function->parameter_count < 0 ? 0 : (uint32_t)function->parameter_count;
  if (function->first_parameter != *next_parameter)
    return BAD(error, "the parameters of function %s begin at entry %u of the table, expected %u", name,
               function->first_parameter, *next_parameter);
  if (parameter_count > parameter_total - *next_parameter)
    return BAD(error, "the parameters of function %s lie outside the parameter table", name);
  *next_parameter += parameter_count;
  for (uint32_t i = 0; i < parameter_count; i++)
    if (!is_name(executable, executable->parameters[function->first_parameter + i]))
      return BAD(error, "the name of parameter %u of function %s must have 1 to %d bytes", i, name, RVM_MAX_NAME_BYTES);
  if (!is_packed && !is_bytecode && !is_name(executable, function->symbol))
    return BAD(error, "the symbol of function %s must have 1 to %d bytes", name, RVM_MAX_NAME_BYTES);
  /* A native function stores its result in the register after its parameters. */
  uint32_t least_registers = has_registers ? parameter_count + !is_bytecode : 0;
  if (function->registers < least_registers || function->registers > INT32_MAX)
    return BAD(error, "function %s has an invalid number of registers", name);
  if (!is_bytecode && function->code_count > 0)
    return BAD(error, "function %s has instructions but is not a bytecode function", name);
  if (!is_bytecode) return RVM_OK;
  if (function->code_count == 0 || function->code_start > executable->code_words ||
      function->code_count > executable->code_words - function->code_start)
    return BAD(error, "the instructions of function %s lie outside the code section", name);
  if (function->registers > (uint64_t)parameter_count + function->code_count + SPARE_REGISTERS)
    return BAD(error, "function %s has more registers than its instructions can write", name);
  return RVM_OK;
}

/* Checks that each string is the name of at most one packed function and at most one other function.  Otherwise many
   functions could share one long name, and a small file would take very long to sort by name. */
static rvm_status check_name_strings(const rvm_executable *executable, rvm_value *error) {
  enum { NAMES_PACKED = 1, NAMES_OTHER = 2 };
  unsigned char *uses = rvm_allocate_zeroed((size_t)executable->string_count); /* indexed by string */
  if (!uses) return rvm_out_of_memory(error);
  rvm_status status = RVM_OK;
  for (int32_t i = 0; i < executable->function_count && !status; i++) {
    uint32_t name = executable->functions[i].name;
    const unsigned char use = executable->functions[i].kind == RVM_KIND_packed ? NAMES_PACKED : NAMES_OTHER;
    if (uses[name] & use) status = BAD(error, "two functions use string %u as their name", name);
    uses[name] |= use;
  }
  rvm_free(uses);
  return status;
}

/* Creates executable->by_name.  Fails if two packed functions, or two other functions, have the same name. */
static rvm_status index_names(rvm_executable *executable, rvm_value *error) {
  rvm_status status = RVM_IS_SELECTIVE ? RVM_OK : check_name_strings(executable, error);
  if (status) return status;
  int32_t count = executable->function_count;
  executable->by_name = rvm_allocate((size_t)count * sizeof *executable->by_name);
  if (!executable->by_name) return rvm_out_of_memory(error);
  for (int32_t i = 0; i < count; i++)
    executable->by_name[i] = (rvm_function_name){.name = rvm_executable_function_name(executable, i),
                                                 .is_packed = executable->functions[i].kind == RVM_KIND_packed,
                                                 .index = i};
  rvm_sort(executable->by_name, (size_t)count, sizeof *executable->by_name, rvm_function_names_compare);
  for (int32_t i = 1; i < count; i++)
    if (rvm_function_names_compare(&executable->by_name[i - 1], &executable->by_name[i]) == 0)
      return BAD(error, "two functions are named %s", executable->by_name[i].name);
  return RVM_OK;
}

static int compare_code_starts(const void *a, const void *b) {
  uint32_t left = (*(const rvm_function_record *const *)a)->code_start;
  uint32_t right = (*(const rvm_function_record *const *)b)->code_start;
  return left < right ? -1 : left > right;
}

/* Checks that no two functions share a word of code. */
static rvm_status check_code_ranges(rvm_executable *executable, rvm_value *error) {
  const rvm_function_record **functions = rvm_allocate((size_t)executable->function_count * sizeof *functions);
  if (!functions) return rvm_out_of_memory(error);
  size_t count = 0;
  for (int32_t i = 0; i < executable->function_count; i++)
    if (executable->functions[i].kind == RVM_KIND_bytecode) functions[count++] = &executable->functions[i];
  rvm_sort(functions, count, sizeof *functions, compare_code_starts);
  rvm_status status = RVM_OK;
  for (size_t i = 1; i < count && !status; i++)
    if (functions[i]->code_start - functions[i - 1]->code_start < functions[i - 1]->code_count)
      status = BAD(error, "the instructions of functions %s and %s overlap",
                   rvm_executable_string(executable, functions[i - 1]->name),
                   rvm_executable_string(executable, functions[i]->name));
  rvm_free(functions);
  return status;
}

/* The maximum size of the code section in words, and the maximum number of functions.  They ensure that offsets of
   steps fit in int32, and that the sizes of tables fit in size_t. */
#if SIZE_MAX < UINT64_MAX
enum { MAX_CODE_WORDS = 1 << 26, MAX_FUNCTIONS = 1 << 24 };
#else
enum { MAX_CODE_WORDS = INT32_MAX / RVM_STEP_WORDS_PER_CODE_WORD, MAX_FUNCTIONS = INT32_MAX };
#endif

static rvm_status read_functions(rvm_executable *executable, rvm_value *error) {
  const rvm_section *section = &executable->sections[RVM_SECTION_functions],
                    *code = &executable->sections[RVM_SECTION_code];
  if (code->size_bytes % sizeof(uint32_t) != 0 ||
      code->size_bytes / sizeof(uint32_t) > MAX_CODE_WORDS) /* never: a test needs a file of 2.8 GB */
    return BAD(error, "the code section has an invalid size");
  executable->code = (const uint32_t *)code->bytes;
  executable->code_words = (uint32_t)(code->size_bytes / sizeof(uint32_t));
  int64_t offset = 0;
  const uint32_t *counts = rvm_section_table(section, &offset, 2, sizeof *counts);
  if (!counts || counts[0] > MAX_FUNCTIONS) return BAD(error, "the function section is too short");
  executable->functions = rvm_section_table(section, &offset, counts[0], sizeof *executable->functions);
  if (!executable->functions) return BAD(error, "the function section is too short");
  executable->parameters = rvm_section_table(section, &offset, counts[1], sizeof *executable->parameters);
  if (!executable->parameters) return BAD(error, "the function section is too short");
  executable->function_count = (int32_t)counts[0];
  if (RVM_IS_SELECTIVE) return index_names(executable, error);
  uint32_t next_parameter = 0;
  for (int32_t i = 0; i < executable->function_count; i++) {
    rvm_status status = check_function(executable, i, counts[1], &next_parameter, error);
    if (status) return status;
  }
  rvm_status status = index_names(executable, error);
  return status ? status : check_code_ranges(executable, error);
}

/* ---- native code ---- */

/* Checks the header of the native section and opens its library.  Native code that cannot run here is accepted if the
   load options allow that. */
static rvm_status read_native(rvm_executable *executable, rvm_value *error) {
  const rvm_section *section = &executable->sections[RVM_SECTION_native];
  if (!section->bytes) return RVM_OK;
  const rvm_native_header *header = (const rvm_native_header *)section->bytes;
  if (section->size_bytes < (int64_t)sizeof *header || !string_exists(executable, header->triple) ||
      !string_exists(executable, header->cpu) || header->zero != 0 || !all_zero(header->zeros, sizeof header->zeros))
    return BAD(error, "the header of the native section is malformed");
  if (executable->is_only_checked) {
    executable->is_elsewhere = 1;
    return RVM_OK;
  }
  rvm_status status = rvm_executable_check_native(executable, error);
  if (!status)
    status = rvm_library_open(&executable->library, header + 1, section->size_bytes - (int64_t)sizeof *header, error);
  if (status != RVM_UNSUPPORTED || !executable->may_be_elsewhere) return status;
  executable->is_elsewhere = 1;
  executable->obstacle = *error; /* `obstacle` takes ownership, because a successful load returns no error */
  *error = (rvm_value){.tag = RVM_TAG_NIL};
  return RVM_OK;
}

rvm_status rvm_executable_check_native(const rvm_executable *executable, rvm_value *error) {
  RVM_EXPECT_POINTER(executable, error);
  const rvm_native_header *header = (const rvm_native_header *)executable->sections[RVM_SECTION_native].bytes;
  if (!header) return RVM_OK;
  if (rvm_value_is_object(executable->obstacle))
    return rvm_fail(error, RVM_UNSUPPORTED, "%s", executable->obstacle.as.error->message);
  if (header->abi_version != RVM_ABI_VERSION)
    return rvm_fail(error, RVM_UNSUPPORTED,
                    "native code has ABI version %u, but this runtime has version %d; build the executable again",
                    header->abi_version, RVM_ABI_VERSION);
  return rvm_native_check(rvm_executable_string(executable, header->triple),
                          rvm_executable_string(executable, header->cpu), error);
}

/* ---- kernel bytecode ---- */

#ifndef RVM_WITHOUT_KERNELS
/* Returns whether `count` adjacent NUL-terminated strings are UTF-8 text. */
static int are_texts(const char *texts, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const int64_t length = (int64_t)strlen(texts);
    if (!is_text((const unsigned char *)texts, length)) return 0;
    texts += length + 1;
  }
  return 1;
}
#endif

/* Reads the section of kernel bytecode: the number of kernels, a reserved 0, for each kernel the index of its function
   and the size of its program in bytes, then the programs. */
static rvm_status read_kernels(rvm_executable *executable, rvm_value *error) {
  const rvm_section *section = &executable->sections[RVM_SECTION_kernels];
  if (!section->bytes) return RVM_OK;
#ifdef RVM_WITHOUT_KERNELS
  return rvm_fail(error, RVM_UNSUPPORTED,
                  "executable: it has kernels as bytecode, and this runtime was built without them; build it with "
                  "RELVM_KERNELS=ON");
#else
  int64_t offset = 0;
  const uint32_t *head = rvm_section_table(section, &offset, 2, sizeof *head);
  const uint32_t *records =
      head && head[1] == 0 ? rvm_section_table(section, &offset, head[0], 2 * sizeof *records) : NULL;
  if (!records) return BAD(error, "the section of kernels is too short");
  executable->kernels = rvm_allocate_zeroed((size_t)executable->function_count * sizeof *executable->kernels);
  if (!executable->kernels) return rvm_out_of_memory(error);
  for (uint32_t i = 0; i < head[0]; i++) {
    const uint32_t function = records[2 * i], bytes = records[2 * i + 1];
    const int is_in_order = i == 0 || function > records[2 * (i - 1)];
    const int is_function = function < (uint32_t)executable->function_count;
    if (!is_in_order || !is_function || executable->functions[function].kind != RVM_KIND_kernel)
      return BAD(error, "kernel program %u refers to a function that is not a kernel or is out of order", i);
    if (bytes > section->size_bytes - offset || bytes % 8 != 0)
      return BAD(error, "kernel program %u exceeds its section", i);
    rvm_kernel_program *program = &executable->kernels[function];
    rvm_status status = rvm_kernel_program_read(section->bytes + offset, bytes, program, error);
    if (status) return status;
    if (program->tensor_count != (uint32_t)executable->functions[function].parameter_count)
      return BAD(error, "kernel program %u has %u tensor%s, but its function has %d parameter%s", i,
                 program->tensor_count, RVM_PLURAL(program->tensor_count),
                 executable->functions[function].parameter_count,
                 RVM_PLURAL(executable->functions[function].parameter_count));
    if (!RVM_IS_SELECTIVE && !are_texts(program->messages, program->message_count))
      return BAD(error, "the messages of kernel program %u must be UTF-8 text", i);
    offset += bytes;
  }
  return offset == section->size_bytes ? RVM_OK : BAD(error, "bytes follow the last kernel program");
#endif
}

/* Looks up the addresses of native functions and native kernels in the library. */
static rvm_status find_symbols(rvm_executable *executable, rvm_value *error) {
  if (executable->is_elsewhere) return RVM_OK;
  executable->symbols = rvm_allocate_zeroed((size_t)executable->function_count * sizeof *executable->symbols);
  if (!executable->symbols) return rvm_out_of_memory(error);
  for (int32_t i = 0; i < executable->function_count; i++) {
    const rvm_function_record *function = &executable->functions[i];
    if (function->kind != RVM_KIND_native && function->kind != RVM_KIND_kernel) continue;
    if (executable->kernels && executable->kernels[i].code) continue;
    const char *name = rvm_executable_string(executable, function->name);
    if (!executable->library.handle)
      return BAD(error, "function %s is native, but the native section is missing", name);
    const char *symbol = rvm_executable_string(executable, function->symbol);
    executable->symbols[i] = rvm_library_find(&executable->library, symbol);
    if (!executable->symbols[i])
      return BAD(error, "function %s: the native code does not define the symbol %s", name, symbol);
  }
  return RVM_OK;
}

/* ---- permissions and limits ---- */

/* Copies the patterns of the functions that the program may call into executable->callable, one block of pointers and
   texts.  The block exists also for 0 patterns, because NULL allows all functions. */
static rvm_status copy_callable(rvm_executable *executable, const rvm_load_options *options, rvm_value *error) {
  int32_t count = options ? options->function_count : 0;
  size_t bytes = (size_t)(count + 1) * sizeof(char *);
  for (int32_t i = 0; i < count; i++) bytes += strlen(options->functions[i]) + 1;
  executable->callable = rvm_allocate(bytes);
  if (!executable->callable) return rvm_out_of_memory(error);
  char *text = (char *)(executable->callable + count + 1);
  for (int32_t i = 0; i < count; i++) {
    executable->callable[i] = text;
    strcpy(text, options->functions[i]);
    text += strlen(text) + 1;
  }
  executable->callable_count = count;
  return RVM_OK;
}

/* Checks that the load options allow every registered function that the program calls. */
static rvm_status check_callable(rvm_executable *executable, rvm_value *error) {
  for (int32_t i = 0; i < executable->function_count; i++) {
    if (executable->functions[i].kind != RVM_KIND_packed) continue;
    const char *name = rvm_executable_function_name(executable, i);
    if (!rvm_is_builtin_name(name) && !rvm_executable_may_call(executable, name))
      return rvm_fail_forbidden(name, error);
  }
  return RVM_OK;
}

static rvm_status check_limit(const char *unit, int64_t got, int64_t limit, rvm_value *error) {
  if (limit == 0 || got <= limit) return RVM_OK;
  return rvm_fail(error, RVM_UNSUPPORTED, "executable: it has %lld %s, but the load options allow at most %lld",
                  (long long)got, unit, (long long)limit);
}

static rvm_status check_counts(const rvm_executable *executable, const rvm_load_options *options, rvm_value *error) {
  rvm_status status = check_limit("functions", executable->function_count, options->max_functions, error);
  if (!status) status = check_limit("constants", rvm_constants_count(executable), options->max_constants, error);
  return status ? status : check_limit("words of code", executable->code_words, options->max_code_words, error);
}

/* ---- public functions ---- */

/* The memory limit of a load is MEMORY_PER_FILE_BYTE bytes for each byte of the file, plus SPARE_BYTES.  The register
   sets of the verifier have a separate limit. */
enum { MEMORY_PER_FILE_BYTE = 64, SPARE_BYTES = 1 << 20 };

/* The stages after read_sections, in order.  The executable of a selective library was verified when the library was
   made, and has no native code, so its loader has fewer stages. */
#ifdef RVM_SELECTIVE
#define STAGES read_strings, read_functions, rvm_constants_read, rvm_executable_decode, read_kernels
#else
#define STAGES                                                                                         \
  read_strings, read_texts, read_functions, check_callable, rvm_constants_read, rvm_executable_verify, \
      rvm_executable_decode, read_kernels, read_native, find_symbols
#endif

static rvm_status load(const void *bytes, int64_t size_bytes, const rvm_load_options *options, rvm_executable **result,
                       rvm_value *error) {
  rvm_executable *executable = rvm_allocate_zeroed(sizeof *executable);
  if (!executable) return rvm_out_of_memory(error);
  executable->library = (rvm_library)RVM_LIBRARY_CLOSED;
  atomic_init(&executable->users, 1);
  executable->is_only_checked = options && options->check_only;
  executable->may_be_elsewhere = options && options->elsewhere;
  rvm_status status = options ? check_limit("bytes", size_bytes, options->max_bytes, error) : RVM_OK;
  if (!status) status = read_sections(executable, bytes, size_bytes, options && options->check_data, error);
  if (!status && options && options->portable) status = select_portable(executable, options->check_data, error);
  if (!status) status = expect_sections(executable, error);
  const int has_native = !status && executable->sections[RVM_SECTION_native].bytes;
  const int is_trusted = options && options->trust_native;
  if (has_native && !is_trusted && !executable->is_only_checked)
    status = rvm_fail(error, RVM_UNSUPPORTED, "executable: it has native code, which the load options do not trust");
  /* Trusted native code may call every registered function. */
  if (!status && !(has_native && is_trusted) && !RVM_IS_SELECTIVE) status = copy_callable(executable, options, error);
  load_stage *const stages[] = {STAGES};
  for (size_t i = 0; i < sizeof stages / sizeof *stages && !status; i++) {
    status = stages[i](executable, error);
    if (!status && stages[i] == read_functions && options) status = check_counts(executable, options, error);
  }
  if (status) {
    rvm_executable_release(executable);
    return status;
  }
  if (options) {
    executable->release = options->release;
    executable->release_argument = options->release_argument;
  }
  *result = executable;
  return RVM_OK;
}

/* Calls `load` with the limit of memory for the size of the file. */
static rvm_status load_in_budget(const void *bytes, int64_t size_bytes, const rvm_load_options *options,
                                 rvm_executable **executable, rvm_value *error) {
  int64_t fuel = 0, limit = 0; /* a load has no limit of fuel */
  if (!rvm_multiply(size_bytes, MEMORY_PER_FILE_BYTE, &limit) || !rvm_add(limit, SPARE_BYTES, &limit))
    return BAD(error, "a size of %lld bytes is too large", (long long)size_bytes);
  rvm_budget budget = {.limit = limit, .remaining = limit, .fuel = &fuel};
  rvm_budget *outer = rvm_budget_set(&budget);
  rvm_status status = load(bytes, size_bytes, options, executable, error);
  int is_refused = rvm_budget_refusing() != NULL; /* a refused allocation always fails the load */
  if (is_refused) rvm_release(error);
  rvm_budget_set(outer);
  return is_refused
             ? BAD(error, "loading needs more memory than is allowed for a file of %lld bytes", (long long)size_bytes)
             : status;
}

rvm_status rvm_file_map(const char *path, const void **bytes, int64_t *size_bytes, rvm_value *error) {
  RVM_EXPECT_POINTER(path, error);
  RVM_EXPECT_POINTER(bytes, error);
  RVM_EXPECT_POINTER(size_bytes, error);
  char reason[RVM_REASON_BYTES];
  *bytes = rvm_path_map(path, size_bytes, reason);
  return *bytes ? RVM_OK : rvm_fail(error, RVM_ARGUMENT_ERROR, "cannot map the file %s: %s", path, reason);
}

void rvm_file_unmap(const void *bytes, int64_t size_bytes) { rvm_path_unmap(bytes, size_bytes); }

#ifdef RVM_SELECTIVE
rvm_status rvm_executable_load_own(const void *bytes, int64_t size_bytes, rvm_executable **executable,
                                   rvm_value *error) {
  return load(bytes, size_bytes, NULL, executable, error);
}
#endif

rvm_status rvm_executable_load(const void *bytes, int64_t size_bytes, const rvm_load_options *options,
                               rvm_executable **executable, rvm_value *error) {
  RVM_EXPECT_WHOLE_RUNTIME(error);
  RVM_EXPECT_POINTER(bytes, error);
  RVM_EXPECT_COUNT(size_bytes, error);
  RVM_EXPECT_POINTER(executable, error);
  if (options) {
    RVM_EXPECT_ARRAY(options->functions, options->function_count, error);
    for (int32_t i = 0; i < options->function_count; i++) RVM_EXPECT_POINTER(options->functions[i], error);
    RVM_EXPECT_COUNT(options->max_bytes, error);
    RVM_EXPECT_COUNT(options->max_functions, error);
    RVM_EXPECT_COUNT(options->max_constants, error);
    RVM_EXPECT_COUNT(options->max_code_words, error);
  }
  rvm_value unwanted = {.tag = RVM_TAG_NIL};
  rvm_status status = load_in_budget(bytes, size_bytes, options, executable, error ? error : &unwanted);
  rvm_release(&unwanted);
  return status;
}
