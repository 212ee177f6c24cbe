/* protobuf.c: implements the cursor of protobuf.h. */
#include "protobuf.h"

#include <string.h>

/* VARINT_BYTES: the size of the longest varint.  SHORT_BYTES: the size of the longest key or length. */
enum { VARINT_BYTES = 10, SHORT_BYTES = 5 };

/* Reads a varint of at most `most` bytes. */
static int read_varint(const unsigned char *bytes, int64_t end, int64_t *at, int most, uint64_t *value) {
  uint64_t number = 0;
  for (int i = 0; i < most && *at < end; i++) {
    const unsigned char byte = bytes[(*at)++];
    number |= (uint64_t)(byte & 127) << 7 * i;
    if (byte < 128) {
      *value = number;
      return 1;
    }
  }
  return 0;
}

int rvm_wire_varint(const unsigned char *bytes, int64_t end, int64_t *at, uint64_t *value) {
  return read_varint(bytes, end, at, VARINT_BYTES, value);
}

static const char *read_fixed(rvm_wire_cursor *cursor, int64_t size_bytes, uint64_t *value) {
  if (size_bytes > cursor->end - cursor->at) return "the file or the enclosing message ends inside the number";
  *value = 0;
  memcpy(value, cursor->bytes + cursor->at, (size_t)size_bytes);
  cursor->at += size_bytes;
  return NULL;
}

static const char *read_length(rvm_wire_cursor *cursor, rvm_wire_field *field) {
  uint64_t length;
  if (!read_varint(cursor->bytes, cursor->end, &cursor->at, SHORT_BYTES, &length))
    return "its length is not a number of at most 5 bytes";
  if (length > (uint64_t)(cursor->end - cursor->at)) return "the file or the enclosing message ends inside the field";
  field->start = cursor->at;
  field->end = cursor->at += (int64_t)length;
  return NULL;
}

/* Reads the key of a field. */
static const char *read_key(rvm_wire_cursor *cursor, rvm_wire_field *field) {
  uint64_t key;
  *field = (rvm_wire_field){.at = cursor->at};
  if (!read_varint(cursor->bytes, cursor->end, &cursor->at, SHORT_BYTES, &key) || key > UINT32_MAX)
    return "the key of the field is not a number of at most 32 bits";
  if ((key & 7) > RVM_WIRE_FIXED32) return "the key of the field has an unknown wire type";
  field->number = (uint32_t)(key >> 3);
  field->type = (rvm_wire_type)(key & 7);
  return NULL;
}

/* Reads the content of a field that is not the start or the end of a group. */
static const char *read_content(rvm_wire_cursor *cursor, rvm_wire_field *field) {
  switch (field->type) {
    case RVM_WIRE_VARINT:
      return rvm_wire_varint(cursor->bytes, cursor->end, &cursor->at, &field->value)
                 ? NULL
                 : "its value is not a number of at most 10 bytes";
    case RVM_WIRE_FIXED64: return read_fixed(cursor, 8, &field->value);
    case RVM_WIRE_FIXED32: return read_fixed(cursor, 4, &field->value);
    default: return read_length(cursor, field);
  }
}

/* Skips the rest of a group whose start was read, with the groups inside it.  As in Google's implementations, a field
   inside may have the number 0. */
static const char *skip_group(rvm_wire_cursor *cursor, uint32_t number) {
  uint32_t open[RVM_PROTOBUF_DEPTH]; /* the field numbers of the groups that contain the position, outermost first */
  int32_t count = 0;
  if (cursor->depth >= RVM_PROTOBUF_DEPTH) return "groups are nested too deeply";
  open[count++] = number;
  while (count > 0) {
    rvm_wire_field inner;
    if (cursor->at == cursor->end) return "the file or the enclosing message ends inside the group";
    const char *reason = read_key(cursor, &inner);
    if (reason) return "a key inside the group is malformed";
    if (inner.type == RVM_WIRE_GROUP) {
      if (count >= RVM_PROTOBUF_DEPTH - cursor->depth) return "groups are nested too deeply";
      open[count++] = inner.number;
    } else if (inner.type == RVM_WIRE_GROUP_END) {
      if (open[--count] != inner.number) return "the end of a group has another number than its start";
    } else if (read_content(cursor, &inner)) {
      return "a field inside the group is malformed";
    }
  }
  return NULL;
}

const char *rvm_wire_next(rvm_wire_cursor *cursor, rvm_wire_field *field) {
  const char *reason = read_key(cursor, field);
  if (reason) return reason;
  if (field->number == 0) return "the key of the field has the number 0";
  if (field->type == RVM_WIRE_GROUP_END) return "a group ends that has not begun";
  return field->type == RVM_WIRE_GROUP ? skip_group(cursor, field->number) : read_content(cursor, field);
}
