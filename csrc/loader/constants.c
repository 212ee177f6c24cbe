/* constants.c: reads the constant section. */
#include "cold.h"

#include "constants.h"

#include <string.h>

#include "private_tensor.h"
#include "selected.h"
#include "string_tensor.h"

#define BAD(error, ...) RVM_FAIL_BAD(error, "executable: " __VA_ARGS__)

/* A record of the constant section, in the file format.  payload: the value of a scalar, the index of a string, or the
   offset of a tensor's elements in the data section.  rank and dims_start: the dimensions in the table after the
   records. */
typedef struct constant_record {
  uint32_t tag, dtype, rank, dims_start;
  int64_t payload;
  uint64_t size_bytes;
} constant_record;

_Static_assert(sizeof(constant_record) == 32, "the struct is the file format");

/* Creates a tensor of strings from their packed form in the data section (rvm_tensor_of_strings).  The strings become
   immortal, like the constant. */
static rvm_status read_strings_of(const constant_record *record, const int64_t *dims, const unsigned char *packed,
                                  int32_t index, rvm_value *result) {
  rvm_status status = rvm_tensor_of_strings((int32_t)record->rank, dims, packed, (int64_t)record->size_bytes, result);
  if (status == RVM_SHAPE_ERROR) {
    rvm_value_release(result);
    return BAD(result, "the string offsets of constant %d are invalid", index);
  }
  if (!status) rvm_strings_set_references(result->as.tensor, -1);
  return status;
}

static rvm_status read_tensor(const rvm_executable *executable, const constant_record *record, const int64_t *dims,
                              int32_t index, rvm_value *result) {
  const rvm_section *data = &executable->sections[RVM_SECTION_data];
  int64_t computed_bytes = -1;
  if (record->rank > RVM_MAX_RANK)
    return BAD(result, "constant %d has rank %u, which exceeds the maximum of %d", index, record->rank, RVM_MAX_RANK);
  const int is_str = record->dtype == RVM_DTYPE_str; /* the size of strings does not follow from the dimensions */
  if (record->dtype >= RVM_DTYPE_COUNT ||
      !rvm_dims_size_bytes((int32_t)record->dtype, (int32_t)record->rank, dims, &computed_bytes) ||
      (!is_str && record->size_bytes != (uint64_t)computed_bytes) || record->size_bytes > INT64_MAX)
    return BAD(result, "constant %d: the size does not match the dtype and dimensions", index);
  const int64_t size_bytes = (int64_t)record->size_bytes;
  if (record->payload < 0 || record->payload % RVM_ALIGNMENT != 0 || size_bytes > data->size_bytes - record->payload)
    return BAD(result, "the elements of constant %d are misaligned or outside the data section", index);
  if (is_str && RVM_IF_USED(string_constant, 1))
    return read_strings_of(record, dims, data->bytes + record->payload, index, result);
  if (!RVM_IS_SELECTIVE &&
      !rvm_elements_are_canonical((int32_t)record->dtype, data->bytes + record->payload, size_bytes))
    return BAD(result, "constant %d of dtype %s has a byte that is no element of this dtype", index,
               rvm_dtype_name(record->dtype));
  return rvm_tensor_wrap((int32_t)record->dtype, (int32_t)record->rank, dims, (void *)(data->bytes + record->payload),
                         NULL, NULL, result);
}

/* Reads the constant of a record.  `dims` is the start of its dimensions in the table of dimensions, and `dim_count`
   the number of entries from there to the end of the table. */
static rvm_status read_constant(const rvm_executable *executable, const constant_record *record, const int64_t *dims,
                                uint32_t dim_count, int32_t index, rvm_value *result) {
  if (record->rank > dim_count || record->rank > INT32_MAX) /* never: a test needs 16 GB of dimensions */
    return BAD(result, "the dimensions of constant %d lie outside the table of dimensions", index);
  switch (record->tag) {
    case RVM_TAG_INT: *result = rvm_int(record->payload); return RVM_OK;
    case RVM_TAG_FLOAT:
      result->tag = RVM_TAG_FLOAT;
      memcpy(&result->as.f, &record->payload, sizeof result->as.f);
      return RVM_OK;
    case RVM_TAG_DTYPE:
      if (record->payload < 0 || record->payload >= RVM_DTYPE_COUNT)
        return BAD(result, "constant %d: unknown dtype", index);
      *result = (rvm_value){.tag = RVM_TAG_DTYPE, .as.i = record->payload};
      return RVM_OK;
    case RVM_TAG_STRING:
      if (record->payload < 0 || record->payload >= executable->string_count)
        return BAD(result, "constant %d: the string index is out of range", index);
      return rvm_string_new(rvm_executable_string(executable, (uint32_t)record->payload),
                            executable->strings[record->payload].length, result);
    case RVM_TAG_SHAPE: return rvm_shape_new((int32_t)record->rank, dims, result);
    case RVM_TAG_TENSOR: return read_tensor(executable, record, dims, index, result);
    default: return BAD(result, "constant %d has the invalid tag %u", index, record->tag);
  }
}

int64_t rvm_constants_count(const rvm_executable *executable) {
  int64_t offset = 0;
  const uint32_t *counts = rvm_section_table(&executable->sections[RVM_SECTION_constants], &offset, 2, sizeof *counts);
  return counts ? counts[0] : 0;
}

rvm_status rvm_constants_read(rvm_executable *executable, rvm_value *error) {
  const rvm_section *section = &executable->sections[RVM_SECTION_constants];
  int64_t offset = 0;
  const uint32_t *counts = rvm_section_table(section, &offset, 2, sizeof *counts);
  if (!counts || counts[0] > INT32_MAX) return BAD(error, "the constant section is too short");
  const constant_record *records = rvm_section_table(section, &offset, counts[0], sizeof *records);
  const int64_t *dims = records ? rvm_section_table(section, &offset, counts[1], sizeof *dims) : NULL;
  if (!dims) return BAD(error, "the constant section is too short");
  executable->constants = rvm_allocate_zeroed(counts[0] * sizeof *executable->constants);
  if (!executable->constants) return rvm_out_of_memory(error);
  uint32_t next_dim = 0;
  for (int32_t i = 0; i < (int32_t)counts[0]; i++) {
    if (records[i].dims_start != next_dim)
      return BAD(error, "the dimensions of constant %d begin at entry %u of the table, expected %u", i,
                 records[i].dims_start, next_dim);
    rvm_value value = {0};
    rvm_status status = read_constant(executable, &records[i], dims + next_dim, counts[1] - next_dim, i, &value);
    if (status) {
      *error = value;
      return status;
    }
    if (rvm_value_is_object(value)) value.as.object->references = -1;
    executable->constants[i] = value;
    executable->constant_count = i + 1;
    next_dim += records[i].rank;
  }
  return RVM_OK;
}
