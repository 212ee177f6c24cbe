/* string_tensor.c: tensors of strings, their packed form, and UTF-8. */
#include "string_tensor.h"

#include <string.h>

void rvm_strings_retain(rvm_string **elements, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (elements[i]) rvm_retain(rvm_object_value(&elements[i]->base));
}

void rvm_strings_set_references(const rvm_tensor *tensor, int32_t references) {
  rvm_string **elements = rvm_tensor_strings(tensor);
  int64_t size = rvm_tensor_count(tensor);
  for (int64_t i = 0; i < size; i++)
    if (elements[i]) elements[i]->base.references = references;
}

/* ---- packed strings ---- */

/* Returns the end offset of a string in the packed form (rvm_tensor_of_strings in relvm.h). */
static int64_t end_of(const unsigned char *packed, int64_t index) {
  int64_t end;
  memcpy(&end, packed + index * (int64_t)sizeof end, sizeof end);
  return end;
}

/* Returns whether the packed form begins with `count` end offsets in ascending order.  The last one must be the size of
   the text that follows the offsets. */
static int is_packed(const unsigned char *packed, int64_t packed_bytes, int64_t count) {
  if (count > packed_bytes / (int64_t)sizeof(int64_t)) return 0;
  int64_t text_bytes = packed_bytes - count * (int64_t)sizeof(int64_t), last = 0;
  for (int64_t i = 0; i < count; i++) {
    int64_t end = end_of(packed, i);
    if (end < last || end > text_bytes) return 0;
    last = end;
  }
  return last == text_bytes;
}

rvm_status rvm_tensor_of_strings(int32_t rank, const int64_t *dims, const void *packed, int64_t packed_bytes,
                                 rvm_value *result) {
  int64_t count;
  RVM_EXPECT_POINTER(result, NULL);
  RVM_EXPECT_ARRAY(packed, packed_bytes, result);
  if (!dims && rank > 0)
    return rvm_fail(result, RVM_ARGUMENT_ERROR, "rvm_tensor_of_strings: dims is NULL, expected %d dimension%s", rank,
                    RVM_PLURAL(rank));
  if (rank < 0 || !rvm_dims_product(rank, dims, &count) || !is_packed(packed, packed_bytes, count))
    return rvm_fail(result, RVM_SHAPE_ERROR,
                    "tensor of strings: the packed bytes do not hold one string for each element of the shape");
  rvm_status status = rvm_tensor_new(RVM_DTYPE_str, rank, dims, result);
  if (status) return status;
  rvm_value tensor = *result;
  rvm_string **elements = rvm_tensor_strings(tensor.as.tensor);
  const char *bytes = (const char *)packed + count * (int64_t)sizeof(int64_t);
  for (int64_t i = 0, start = 0, end; i < count; i++, start = end) {
    end = end_of(packed, i);
    if (end <= start) continue; /* the element of an empty string is NULL */
    rvm_value string;
    status = rvm_string_new(bytes + start, end - start, &string);
    if (status) {
      rvm_release(&tensor);
      *result = string; /* the error */
      return status;
    }
    elements[i] = string.as.string;
  }
  return RVM_OK;
}

static int has_strings(const rvm_tensor *tensor) {
  return tensor && tensor->base.tag == RVM_TAG_TENSOR && tensor->dtype == RVM_DTYPE_str;
}

int64_t rvm_tensor_packed_bytes(const rvm_tensor *tensor) {
  if (!has_strings(tensor)) return -1;
  rvm_string **elements = rvm_tensor_strings(tensor);
  int64_t size = rvm_tensor_count(tensor), bytes = size * (int64_t)sizeof(int64_t);
  for (int64_t i = 0; i < size; i++) bytes += rvm_string_text(elements[i]).length;
  return bytes;
}

rvm_status rvm_tensor_pack(const rvm_tensor *tensor, void *packed, int64_t packed_bytes, rvm_value *error) {
  RVM_EXPECT_POINTER(tensor, error);
  RVM_EXPECT_ARRAY(packed, packed_bytes, error);
  if (!has_strings(tensor)) return rvm_fail(error, RVM_TYPE_ERROR, "rvm_tensor_pack: expected a tensor of strings");
  const int64_t needed = rvm_tensor_packed_bytes(tensor);
  if (packed_bytes != needed)
    return rvm_fail(error, RVM_ARGUMENT_ERROR, "rvm_tensor_pack: packed_bytes is %lld, expected %lld",
                    (long long)packed_bytes, (long long)needed);
  rvm_string **elements = rvm_tensor_strings(tensor);
  /* `packed` contains the offset of the end of each string, and then the bytes of all strings. */
  int64_t size = rvm_tensor_count(tensor), end = 0;
  char *ends = packed, *bytes = ends + size * (int64_t)sizeof end;
  for (int64_t i = 0; i < size; i++) {
    rvm_text text = rvm_string_text(elements[i]);
    if (text.length > 0) memcpy(bytes + end, text.bytes, (size_t)text.length);
    end += text.length;
    memcpy(ends + i * (int64_t)sizeof end, &end, sizeof end);
  }
  return RVM_OK;
}

/* ---- UTF-8 ---- */

uint32_t rvm_text_next(rvm_text text, int64_t *offset) {
  const unsigned char *bytes = (const unsigned char *)text.bytes + *offset;
  int64_t remaining = text.length - *offset;
  uint32_t first = bytes[0];
  (*offset)++;
  if (first < 0x80) return first;
  int following = rvm_utf8_following(first);
  if (following < 0 || following >= remaining) return 0xFFFD;
  uint32_t point = first & (0x3fu >> following);
  for (int k = 1; k <= following; k++) {
    if ((bytes[k] & 0xC0) != 0x80) return 0xFFFD; /* not 10xxxxxx */
    point = point << 6 | (bytes[k] & 0x3f);
  }
  if (!rvm_utf8_may_encode(point, following)) return 0xFFFD;
  *offset += following;
  return point;
}

int32_t rvm_point_write(uint32_t point, char bytes[4]) {
  if (point < 0x80) {
    bytes[0] = (char)point;
    return 1;
  }
  int32_t following = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  static const unsigned char first[4] = {0, 0xC0, 0xE0, 0xF0}; /* by the number of following bytes */
  for (int32_t k = following; k > 0; k--, point >>= 6) bytes[k] = (char)(0x80 | (point & 0x3f));
  bytes[0] = (char)(first[following] | point);
  return following + 1;
}
