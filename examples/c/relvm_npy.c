/* relvm_npy: run a function of an executable on arrays in .npy files.
 *
 *     relvm_npy MODEL.rvm FUNCTION OUTPUT [INPUT.npy | NUMBER]...
 *
 * Result i is written to OUTPUTi.npy, without OUTPUT to nowhere (-).  A line for each result states its type and the
 * CRC-32C checksum of its elements.  A number with a point or an exponent is a float, another number an int.  The
 * program uses only the C library, so that it also runs under the WebAssembly System Interface:
 *
 *     wasmtime --dir . relvm_npy.wasm model.rvm main result_ input.npy */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "relvm.h"

enum { MAX_ARGUMENTS = 256, MAX_HEADER_BYTES = 65536, ALIGNMENT = 64 };

static const char *const dtype_names[] = {
#define DTYPE(name, code, bits, ctype, numpy) #name,
#include "dtypes.def"
#undef DTYPE
};
/* The dtypes in .npy files.  Elements of other dtypes are written as unsigned integers of the same size. */
static const struct {
  const char *npy;
  int32_t dtype;
} npy_dtypes[] = {{"|b1", RVM_DTYPE_bool}, {"|i1", RVM_DTYPE_i8},  {"<i2", RVM_DTYPE_i16}, {"<i4", RVM_DTYPE_i32},
                  {"<i8", RVM_DTYPE_i64},  {"|u1", RVM_DTYPE_u8},  {"<u2", RVM_DTYPE_u16}, {"<u4", RVM_DTYPE_u32},
                  {"<u8", RVM_DTYPE_u64},  {"<f2", RVM_DTYPE_f16}, {"<f4", RVM_DTYPE_f32}, {"<f8", RVM_DTYPE_f64}};
enum { NPY_DTYPES = sizeof npy_dtypes / sizeof *npy_dtypes };

/* Reads a file into a new block.  `bytes` is in the block, and aligned as rvm_executable_load requires. */
static rvm_status read_file(const char *path, void **block, void **bytes, int64_t *size_bytes, rvm_value *error) {
  FILE *file = fopen(path, "rb");
  if (!file) return rvm_fail(error, RVM_ARGUMENT_ERROR, "%s: cannot open the file", path);
  long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
  rvm_status status = RVM_OK;
  *block = size < 0 ? NULL : malloc((size_t)size + ALIGNMENT);
  if (*block) *bytes = (char *)*block + (ALIGNMENT - (uintptr_t)*block % ALIGNMENT);
  if (!*block) {
    status = rvm_fail(error, RVM_OUT_OF_MEMORY, "%s: cannot read the file into memory", path);
  } else if (fseek(file, 0, SEEK_SET) != 0 || fread(*bytes, 1, (size_t)size, file) != (size_t)size) {
    status = rvm_fail(error, RVM_ARGUMENT_ERROR, "%s: cannot read the file", path);
    free(*block);
  }
  *size_bytes = size;
  fclose(file);
  return status;
}

/* Returns the text after `key` in the header of a .npy file, or NULL. */
static const char *after(const char *header, const char *key) {
  const char *found = strstr(header, key);
  return found ? found + strlen(key) : NULL;
}

/* Reads the dtype, rank and dimensions from the header, a Python dictionary as text. */
static rvm_status parse_header(const char *path, const char *header, int32_t *dtype, int32_t *rank, int64_t *dims,
                               rvm_value *error) {
  const char *descr = after(header, "'descr': '"), *order = after(header, "'fortran_order': "),
             *shape = after(header, "'shape': (");
  if (!descr || !order || !shape || strncmp(order, "False", 5) != 0)
    return rvm_fail(error, RVM_ARGUMENT_ERROR, "%s: expected an array in row-major order", path);
  int row = 0;
  while (row < NPY_DTYPES && strncmp(npy_dtypes[row].npy, descr, 3) != 0) row++;
  if (row == NPY_DTYPES) return rvm_fail(error, RVM_TYPE_ERROR, "%s: unsupported dtype %.8s", path, descr);
  *dtype = npy_dtypes[row].dtype;
  for (*rank = 0; *shape && *shape != ')'; shape++) {
    char *end;
    const int64_t dim = strtoll(shape, &end, 10);
    if (end == shape) continue;
    if (*rank == RVM_MAX_RANK) return rvm_fail(error, RVM_SHAPE_ERROR, "%s: too many axes", path);
    dims[(*rank)++] = dim;
    shape = end - (*end == ')');
  }
  return RVM_OK;
}

static rvm_status parse_npy(const char *path, const unsigned char *bytes, int64_t size_bytes, rvm_value *result) {
  char header[MAX_HEADER_BYTES + 1];
  const int64_t head = size_bytes >= 12 && bytes[6] >= 2 ? 12 : 10;
  if (size_bytes < head || memcmp(bytes, "\x93NUMPY", 6) != 0)
    return rvm_fail(result, RVM_ARGUMENT_ERROR, "%s: not a .npy file", path);
  int64_t length = bytes[8] | bytes[9] << 8;
  if (head == 12) length |= (int64_t)bytes[10] << 16 | (int64_t)bytes[11] << 24;
  if (length > MAX_HEADER_BYTES || length > size_bytes - head)
    return rvm_fail(result, RVM_ARGUMENT_ERROR, "%s: the header is too long", path);
  memcpy(header, bytes + head, (size_t)length);
  header[length] = '\0';
  int32_t dtype = 0, rank = 0;
  int64_t dims[RVM_MAX_RANK];
  rvm_status status = parse_header(path, header, &dtype, &rank, dims, result);
  if (!status) status = rvm_tensor_new(dtype, rank, dims, result);
  if (status) return status;
  const int64_t data_bytes = rvm_tensor_size_bytes(result->as.tensor);
  if (size_bytes - head - length < data_bytes) {
    rvm_value_release(result);
    return rvm_fail(result, RVM_ARGUMENT_ERROR, "%s: the file is truncated", path);
  }
  if (data_bytes) memcpy(result->as.tensor->dl.data, bytes + head + length, (size_t)data_bytes);
  return RVM_OK;
}

static rvm_status parse_argument(const char *text, rvm_value *result) {
  char *end;
  *result = (rvm_value){.tag = RVM_TAG_INT, .as.i = strtoll(text, &end, 10)};
  if (*text && *end == '\0') return RVM_OK;
  *result = (rvm_value){.tag = RVM_TAG_FLOAT, .as.f = strtod(text, &end)};
  if (*text && *end == '\0') return RVM_OK;
  void *block, *bytes;
  int64_t size_bytes;
  rvm_status status = read_file(text, &block, &bytes, &size_bytes, result);
  if (status) return status;
  status = parse_npy(text, bytes, size_bytes, result);
  free(block);
  return status;
}

static const char *npy_name(int32_t dtype, int64_t element_bytes) {
  for (int row = 0; row < NPY_DTYPES; row++)
    if (npy_dtypes[row].dtype == dtype) return npy_dtypes[row].npy;
  return element_bytes == 2 ? "<u2" : "|u1";
}

static rvm_status write_npy(const char *path, const rvm_tensor *tensor, rvm_value *error) {
  char header[2048];
  const int64_t size_bytes = rvm_tensor_size_bytes(tensor);
  int used = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                      npy_name(tensor->dtype, (tensor->dl.dtype.bits + 7) / 8));
  for (int32_t i = 0; i < tensor->dl.ndim; i++)
    used += snprintf(header + used, sizeof header - (size_t)used, "%lld,", (long long)tensor->dl.shape[i]);
  used += snprintf(header + used, sizeof header - (size_t)used, "), }");
  while ((10 + used + 1) % ALIGNMENT) header[used++] = ' ';
  header[used++] = '\n';
  const unsigned char start[10] = {
      0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)used, (unsigned char)(used >> 8)};
  FILE *file = fopen(path, "wb");
  const int is_written = file && fwrite(start, 1, sizeof start, file) == sizeof start &&
                         fwrite(header, 1, (size_t)used, file) == (size_t)used &&
                         fwrite(tensor->dl.data, 1, (size_t)size_bytes, file) == (size_t)size_bytes;
  if ((file && fclose(file) != 0) || !is_written)
    return rvm_fail(error, RVM_ARGUMENT_ERROR, "%s: cannot write the file", path);
  return RVM_OK;
}

/* Prints a result, and writes the tensors in it to files.  *number counts the tensors. */
static rvm_status report(const rvm_value *value, const char *output, int *number, rvm_value *error) {
  rvm_status status = RVM_OK;
  switch (value->tag) {
    case RVM_TAG_TENSOR: {
      const rvm_tensor *tensor = value->as.tensor;
      char path[1024];
      printf("%d: %s[", *number, dtype_names[tensor->dtype]);
      for (int32_t i = 0; i < tensor->dl.ndim; i++) printf("%s%lld", i ? "," : "", (long long)tensor->dl.shape[i]);
      if (tensor->dtype == RVM_DTYPE_str) {
        const int64_t size_bytes = rvm_tensor_packed_bytes(tensor);
        void *packed = malloc(size_bytes ? (size_t)size_bytes : 1);
        if (!packed) return rvm_fail(error, RVM_OUT_OF_MEMORY, "cannot allocate %lld bytes", (long long)size_bytes);
        rvm_tensor_pack(tensor, packed, size_bytes, NULL);
        printf("] crc32c %08x\n", (unsigned)rvm_crc32c(0, packed, size_bytes));
        free(packed);
        break;
      }
      printf("] crc32c %08x\n", (unsigned)rvm_crc32c(0, tensor->dl.data, rvm_tensor_size_bytes(tensor)));
      snprintf(path, sizeof path, "%s%d.npy", output, *number);
      if (strcmp(output, "-") != 0) status = write_npy(path, tensor, error);
      break;
    }
    case RVM_TAG_TUPLE:
      for (int32_t i = 0; i < value->as.tuple->size && !status; i++)
        status = report(&value->as.tuple->items[i], output, number, error);
      return status;
    case RVM_TAG_LIST:
      for (int32_t i = 0; i < value->as.list->size && !status; i++)
        status = report(&value->as.list->items[i], output, number, error);
      return status;
    case RVM_TAG_INT: printf("%d: i64 %lld\n", *number, (long long)value->as.i); break;
    case RVM_TAG_FLOAT: printf("%d: f64 %.17g\n", *number, value->as.f); break;
    case RVM_TAG_BOOL: printf("%d: bool %d\n", *number, (int)value->as.i); break;
    case RVM_TAG_STRING: printf("%d: string %s\n", *number, value->as.string->bytes); break;
    case RVM_TAG_NIL: printf("%d: nil\n", *number); break;
    default: printf("%d: a value of another kind\n", *number); break;
  }
  ++*number;
  return status;
}

static rvm_status run(rvm_executable *executable, char **texts, int32_t count, rvm_value *error) {
  rvm_value arguments[MAX_ARGUMENTS], result = {.tag = RVM_TAG_NIL};
  const int32_t index = rvm_executable_find(executable, texts[0]);
  int32_t parsed = 0;
  if (index < 0) return rvm_fail(error, RVM_UNKNOWN_FUNCTION, "no function %s", texts[0]);
  if (count - 2 > MAX_ARGUMENTS)
    return rvm_fail(error, RVM_ARGUMENT_ERROR, "expected at most %d inputs", MAX_ARGUMENTS);
  rvm_machine *machine;
  rvm_status status = rvm_machine_new(executable, NULL, &machine, error);
  if (status) return status;
  while (parsed < count - 2 && !(status = parse_argument(texts[2 + parsed], &arguments[parsed]))) parsed++;
  if (status) *error = arguments[parsed];
  if (!status && (status = rvm_machine_call(machine, index, arguments, parsed, &result))) *error = result;
  if (!status) {
    int number = 0;
    status = report(&result, texts[1], &number, error);
    rvm_value_release(&result);
  }
  while (parsed > 0) rvm_value_release(&arguments[--parsed]);
  rvm_machine_release(machine);
  return status;
}

int main(int argument_count, char **arguments) {
  if (argument_count < 4) {
    fprintf(stderr, "usage: %s MODEL.rvm FUNCTION OUTPUT [INPUT.npy | NUMBER]...\n", arguments[0]);
    return 2;
  }
  void *block, *bytes;
  int64_t size_bytes;
  rvm_value error = {.tag = RVM_TAG_NIL};
  rvm_executable *executable = NULL;
  rvm_status status = read_file(arguments[1], &block, &bytes, &size_bytes, &error);
  if (!status) {
    rvm_load_options options = {.check_data = 1};
    status = rvm_executable_load(bytes, size_bytes, &options, &executable, &error);
    if (status == RVM_UNSUPPORTED) { /* a file with native code: its portable program has none */
      rvm_value_release(&error);
      options.portable = 1;
      status = rvm_executable_load(bytes, size_bytes, &options, &executable, &error);
    }
    if (!status) status = run(executable, arguments + 2, argument_count - 2, &error);
    rvm_executable_release(executable);
    free(block);
  }
  if (status) fprintf(stderr, "error: %s\n", error.as.error->message);
  rvm_value_release(&error);
  return status != RVM_OK;
}
