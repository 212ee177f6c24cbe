/* host.c: the functions that a WebAssembly module exports to its JavaScript loader (csrc/webassembly/relvm.js), in
   addition to some of relvm.h.

   A module instance has at most one executable and one machine: the loader creates an instance for each model.  The
   loader reads and writes values in the memory of the instance, where an rvm_value has 16 bytes: the tag, and at offset
   8 the payload.  Addresses and sizes are 32-bit. */
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "dtype.h"
#include "executable.h"
#include "relvm.h"
#include "storage_pool.h"
#include "value.h"

#define EXPORT(name) __attribute__((export_name(#name)))

/* The executable inside the module, if the module was linked with one. */
extern const unsigned char relvm_module_start[] __attribute__((weak));
extern const uint32_t relvm_module_bytes __attribute__((weak));

/* Implements vm.builtin.print in JavaScript. */
__attribute__((import_module("relvm"), import_name("print"))) void relvm_print(const rvm_value *arguments,
                                                                               int32_t count);

/* Called before and after each call of a kernel or packed function while the machine is observed. */
__attribute__((import_module("relvm"), import_name("before"))) void relvm_before(int32_t function);
__attribute__((import_module("relvm"), import_name("after"))) void relvm_after(int32_t function,
                                                                               const rvm_value *arguments,
                                                                               int32_t count, const rvm_value *result);

static rvm_executable *executable;
static rvm_machine *machine;

/* ---- tables, so that the loader repeats none of them ---- */

static const char *const tag_names[] = {
#define TAG(name, meaning) #name,
#include "tags.def"
#undef TAG
};
static const char *const status_names[] = {
#define STATUS(name, python_class, meaning) #name,
#include "status.def"
#undef STATUS
};
static const char *const error_names[] = {
#define STATUS(name, python_class, meaning) python_class,
#include "status.def"
#undef STATUS
};
static const char *const section_names[] = {
#define SECTION(name, id, meaning) #name,
#include "sections.def"
#undef SECTION
};
static const uint32_t section_ids[] = {
#define SECTION(name, id, meaning) id,
#include "sections.def"
#undef SECTION
};
static const char *const kind_names[] = {
#define KIND(name, meaning) #name,
#include "kinds.def"
#undef KIND
};

/* Return the name of a row of a table, or NULL after the last row.  relvm_error_name: the class of the errors with a
   status. */
EXPORT(relvm_tag_name) const char *relvm_tag_name(uint32_t row) { return row < RVM_TAG_COUNT ? tag_names[row] : NULL; }
EXPORT(relvm_status_name) const char *relvm_status_name(uint32_t row) {
  return row < RVM_STATUS_COUNT ? status_names[row] : NULL;
}
EXPORT(relvm_error_name) const char *relvm_error_name(uint32_t row) {
  return row < RVM_STATUS_COUNT ? error_names[row] : NULL;
}
EXPORT(relvm_kind_name) const char *relvm_kind_name(uint32_t row) {
  return row < RVM_KIND_COUNT ? kind_names[row] : NULL;
}
EXPORT(relvm_section_name) const char *relvm_section_name(uint32_t row) {
  return row < RVM_SECTION_COUNT ? section_names[row] : NULL;
}
EXPORT(relvm_dtype_name) const char *relvm_dtype_name(uint32_t row) {
  return row < RVM_DTYPE_COUNT ? rvm_dtype_name(row) : NULL;
}
/* Return DLPack's code and number of bits of a dtype. */
EXPORT(relvm_dtype_code) uint32_t relvm_dtype_code(uint32_t row) { return rvm_dtype_dl(row).code; }
EXPORT(relvm_dtype_bits) uint32_t relvm_dtype_bits(uint32_t row) { return rvm_dtype_dl(row).bits; }

/* ---- memory, loading, functions ---- */

/* Allocates a block, aligned as rvm_executable_load requires.  Returns NULL if there is no memory. */
EXPORT(relvm_allocate) void *relvm_allocate(uint32_t size_bytes) {
  if (size_bytes > RVM_LARGEST_BYTES) return NULL;
  return aligned_alloc(RVM_ALIGNMENT, (size_t)rvm_align(size_bytes ? size_bytes : 1));
}

EXPORT(relvm_free) void relvm_free(void *block) { free(block); }

static rvm_status print(void *host, const rvm_value *arguments, int32_t count, rvm_value *error) {
  (void)host, (void)error;
  relvm_print(arguments, count);
  return RVM_OK;
}

/* The limits that the loader passes (relvm_open). */
typedef struct limits {
  int64_t stack_values, call_depth, max_bytes, max_steps, max_nanoseconds;
  int64_t checks_data; /* rvm_load_options.check_data */
} limits;

/* Loads an executable and creates its machine.  If the file has native code that is not part of this module, loads its
   portable program.  If `bytes` is NULL, loads the executable inside the module; UNSUPPORTED if there is none. */
EXPORT(relvm_open)
rvm_status relvm_open(const void *bytes, uint32_t size_bytes, const limits *limits, rvm_value *error) {
  rvm_load_options options = {.check_data = limits->checks_data != 0};
  if (!bytes) {
    if (!&relvm_module_bytes) return rvm_fail(error, RVM_UNSUPPORTED, "the WebAssembly module contains no executable");
    bytes = relvm_module_start;
    size_bytes = relvm_module_bytes;
    options.trust_native = 1; /* the native code is part of this module */
  }
  rvm_status status = rvm_executable_load(bytes, size_bytes, &options, &executable, error);
  if (status == RVM_UNSUPPORTED && !options.trust_native) {
    rvm_value portable_error = {.tag = RVM_TAG_NIL};
    options.portable = 1;
    if (rvm_executable_load(bytes, size_bytes, &options, &executable, &portable_error) == RVM_OK) {
      rvm_value_release(error);
      status = RVM_OK;
    }
    rvm_value_release(&portable_error);
  }
  if (status) return status;
  const rvm_machine_options machine_options = {.stack_values = limits->stack_values,
                                               .call_depth = limits->call_depth,
                                               .max_bytes = limits->max_bytes,
                                               .max_steps = limits->max_steps,
                                               .max_nanoseconds = limits->max_nanoseconds,
                                               .print = print};
  return rvm_machine_new(executable, &machine_options, &machine, error);
}

EXPORT(relvm_find) int32_t relvm_find(const char *name) { return rvm_executable_find(executable, name); }
EXPORT(relvm_function_count) int32_t relvm_function_count(void) { return rvm_executable_function_count(executable); }
EXPORT(relvm_function_name) const char *relvm_function_name(int32_t index) {
  return rvm_executable_function_name(executable, index);
}
/* Returns the kind of a function (kinds.def), or -1 if the function is private. */
EXPORT(relvm_function_kind) int32_t relvm_function_kind(int32_t index) {
  if (executable->functions[index].flags & RVM_PRIVATE) return -1;
  return rvm_executable_function_kind(executable, index);
}
EXPORT(relvm_parameter_count) int32_t relvm_parameter_count(int32_t index) {
  return rvm_executable_function_parameters(executable, index);
}
EXPORT(relvm_parameter_name) const char *relvm_parameter_name(int32_t function, int32_t parameter) {
  const uint32_t first = executable->functions[function].first_parameter;
  return rvm_executable_string(executable, executable->parameters[first + (uint32_t)parameter]);
}

/* Stores the address and the size of the section in a row of sections.def, or zeros if the executable has none. */
EXPORT(relvm_section) void relvm_section(uint32_t row, uint32_t place[2]) {
  const rvm_section *section = &executable->sections[section_ids[row]];
  place[0] = (uint32_t)(uintptr_t)section->bytes;
  place[1] = (uint32_t)section->size_bytes;
}

/* ---- runs and values ---- */

/* Enter and leave the machine.  The loader accesses values only in between. */
EXPORT(relvm_model_enter) int32_t relvm_model_enter(void) { return rvm_machine_enter(machine); }
EXPORT(relvm_model_leave) void relvm_model_leave(void) { rvm_machine_leave(machine, NULL); }

/* Checks whether the limit of memory allows `size_bytes` for arguments (rvm_machine_afford). */
EXPORT(relvm_afford) rvm_status relvm_afford(double size_bytes, rvm_value *error) {
  return rvm_machine_afford(machine, (int64_t)size_bytes, error);
}

EXPORT(relvm_call)
rvm_status relvm_call(int32_t index, const rvm_value *arguments, int32_t count, rvm_value *result) {
  return rvm_machine_call(machine, index, arguments, count, result);
}
EXPORT(relvm_invoke)
rvm_status relvm_invoke(const rvm_value *callee, const rvm_value *arguments, int32_t count, rvm_value *result) {
  return rvm_machine_invoke(machine, *callee, arguments, count, result);
}

static rvm_status observe_before(void *host, int32_t function, const rvm_value *arguments, int32_t count, int32_t *skip,
                                 rvm_value *error) {
  (void)host, (void)arguments, (void)count, (void)skip, (void)error;
  relvm_before(function);
  return RVM_OK;
}
static rvm_status observe_after(void *host, int32_t function, const rvm_value *arguments, int32_t count,
                                rvm_status status, const rvm_value *result, rvm_value *error) {
  (void)host, (void)status, (void)error;
  relvm_after(function, arguments, count, result);
  return RVM_OK;
}

/* Observes the calls of later runs (`observes` 1), or not (0). */
EXPORT(relvm_observe) rvm_status relvm_observe(int32_t observes, rvm_value *error) {
  const rvm_instrument instrument = {
      .kinds = 1 << RVM_KIND_kernel | 1 << RVM_KIND_packed, .before = observe_before, .after = observe_after};
  return rvm_machine_instrument(machine, observes ? &instrument : NULL, error);
}

EXPORT(relvm_seed) void relvm_seed(uint64_t seed) { rvm_machine_seed(machine, seed); }

/* Create values.  A str tensor is made of packed strings (rvm_tensor_of_strings). */
EXPORT(relvm_tensor)
rvm_status relvm_tensor(int32_t dtype, int32_t rank, const int64_t *dims, rvm_value *result) {
  return rvm_tensor_new(dtype, rank, dims, result);
}
EXPORT(relvm_tensor_of_strings)
rvm_status relvm_tensor_of_strings(int32_t rank, const int64_t *dims, const void *packed, uint32_t packed_bytes,
                                   rvm_value *result) {
  return rvm_tensor_of_strings(rank, dims, packed, packed_bytes, result);
}
EXPORT(relvm_string) rvm_status relvm_string(const char *bytes, uint32_t length, rvm_value *result) {
  return rvm_string_new(bytes, length, result);
}
EXPORT(relvm_shape) rvm_status relvm_shape(int32_t rank, const int64_t *dims, rvm_value *result) {
  return rvm_shape_new(rank, dims, result);
}
EXPORT(relvm_tuple) rvm_status relvm_tuple(int32_t size, const rvm_value *items, rvm_value *result) {
  return rvm_tuple_new(size, items, result);
}
EXPORT(relvm_list) rvm_status relvm_list(int32_t size, const rvm_value *items, rvm_value *result) {
  return rvm_list_new(size, items, result);
}
EXPORT(relvm_retain) void relvm_retain(const rvm_value *value) { rvm_value_retain(*value); }
EXPORT(relvm_release) void relvm_release(rvm_value *value) { rvm_value_release(value); }

/* Writes the packed strings of a tensor to a new block, which the loader frees.  Returns NULL if there is no memory. */
EXPORT(relvm_packed_strings) void *relvm_packed_strings(const rvm_value *value, uint32_t *size_bytes) {
  const int64_t bytes = rvm_tensor_packed_bytes(value->as.tensor);
  void *packed = bytes >= 0 && bytes <= RVM_LARGEST_BYTES ? relvm_allocate((uint32_t)bytes) : NULL;
  if (packed) rvm_tensor_pack(value->as.tensor, packed, bytes, NULL);
  *size_bytes = (uint32_t)bytes;
  return packed;
}

/* Stores the members of an object that relvm.js needs:
     tensor: dtype, rank, address of the dimensions, address of the elements, size of the elements in bytes
     shape: rank, address of the dimensions
     tuple, list: number of items, address of the items
     string: length, address
     storage: size in bytes, address
     error: status, address of the message, address of the trace or 0 */
EXPORT(relvm_parts) void relvm_parts(const rvm_value *value, uint32_t parts[5]) {
  switch (value->tag) {
    case RVM_TAG_TENSOR: {
      const rvm_tensor *tensor = value->as.tensor;
      parts[0] = (uint32_t)tensor->dtype;
      parts[1] = (uint32_t)tensor->dl.ndim;
      parts[2] = (uint32_t)(uintptr_t)tensor->dl.shape;
      parts[3] = (uint32_t)(uintptr_t)tensor->dl.data + (uint32_t)tensor->dl.byte_offset;
      parts[4] = (uint32_t)rvm_tensor_size_bytes(tensor);
      break;
    }
    case RVM_TAG_SHAPE:
      parts[0] = (uint32_t)value->as.shape->rank;
      parts[1] = (uint32_t)(uintptr_t)value->as.shape->dims;
      break;
    case RVM_TAG_TUPLE:
      parts[0] = (uint32_t)value->as.tuple->size;
      parts[1] = (uint32_t)(uintptr_t)value->as.tuple->items;
      break;
    case RVM_TAG_LIST:
      parts[0] = (uint32_t)value->as.list->size;
      parts[1] = (uint32_t)(uintptr_t)value->as.list->items;
      break;
    case RVM_TAG_STRING:
      parts[0] = (uint32_t)value->as.string->length;
      parts[1] = (uint32_t)(uintptr_t)value->as.string->bytes;
      break;
    case RVM_TAG_STORAGE:
      parts[0] = (uint32_t)value->as.storage->size_bytes;
      parts[1] = (uint32_t)(uintptr_t)value->as.storage->bytes;
      break;
    case RVM_TAG_ERROR:
      parts[0] = (uint32_t)value->as.error->status;
      parts[1] = (uint32_t)(uintptr_t)value->as.error->message;
      parts[2] = (uint32_t)(uintptr_t)value->as.error->trace;
      break;
    default: break;
  }
}
