/* protobuf.h: the wire format of protocol buffers (https://protobuf.dev/programming-guides/encoding): a cursor over the
   fields of a serialized message, which never reads outside of the message. */
#ifndef RELVM_PROTOBUF_H
#define RELVM_PROTOBUF_H

#include <stdint.h>

/* The maximum depth of nested groups and messages.  Google's implementations accept a depth of 100 when they read a
   file, but also write files that are nested more deeply. */
#define RVM_PROTOBUF_DEPTH 200

typedef enum rvm_wire_type {
  RVM_WIRE_VARINT,
  RVM_WIRE_FIXED64,
  RVM_WIRE_BYTES,
  RVM_WIRE_GROUP,
  RVM_WIRE_GROUP_END,
  RVM_WIRE_FIXED32
} rvm_wire_type;

/* A position in a message.  `bytes` is the start of the file, and all positions are offsets in the file. */
typedef struct rvm_wire_cursor {
  const unsigned char *bytes;
  int64_t at, end; /* the next field, and the end of the message */
  int32_t depth;   /* the number of groups and messages around the fields */
} rvm_wire_cursor;

typedef struct rvm_wire_field {
  uint32_t number; /* 0 if the key of the field is malformed */
  rvm_wire_type type;
  int64_t at;         /* the position of the key */
  int64_t start, end; /* the content of a field of type BYTES */
  uint64_t value;     /* the value of a field of type VARINT, FIXED64 or FIXED32 */
} rvm_wire_field;

/* Reads the field at a cursor, which must not be at its end, and moves the cursor past the field.  A group is skipped
   as one field.  Returns NULL if the field is well-formed.  Otherwise returns the reason as a clause, such as "the key
   of the field has an unknown wire type". */
const char *rvm_wire_next(rvm_wire_cursor *cursor, rvm_wire_field *field);

/* Reads a varint, and moves *at past it.  Bits above the 64th are ignored.  Returns 0 if the varint has more than 10
   bytes, or does not end before `end`. */
int rvm_wire_varint(const unsigned char *bytes, int64_t end, int64_t *at, uint64_t *value);

#endif
