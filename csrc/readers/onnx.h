/* onnx.h: reads ONNX files in place.  The messages and fields of the format are in onnx_messages.def.

   rvm_onnx_check validates a whole file in one pass.  Afterwards the fields of each message can be read on demand with
   rvm_wire_next, rvm_onnx_find and rvm_onnx_append.  In a validated file, these functions fail only if there is no
   memory.  They are also safe for bytes that were not validated. */
#ifndef RELVM_ONNX_H
#define RELVM_ONNX_H

#include "protobuf.h"

typedef enum rvm_onnx_message {
#define MESSAGE(name) RVM_ONNX_##name,
#define FIELD(message, name, number, kind, label)
#define ENUM(message, name, number, largest)
#define SUBMESSAGE(message, name, number, label, type)
#define ATTRIBUTE_TYPE(name, number, field)
#define ELEMENT_TYPE(name, number, text, numpy, bits, field)
#include "onnx_messages.def"
#undef MESSAGE
#undef FIELD
#undef ENUM
#undef SUBMESSAGE
  RVM_ONNX_MESSAGE_COUNT
} rvm_onnx_message;

typedef enum rvm_onnx_row {
#define MESSAGE(name)
#define FIELD(message, name, number, kind, label) RVM_ONNX_##message##_##name,
#define ENUM(message, name, number, largest) RVM_ONNX_##message##_##name,
#define SUBMESSAGE(message, name, number, label, type) RVM_ONNX_##message##_##name,
#include "onnx_messages.def"
#undef MESSAGE
#undef FIELD
#undef ENUM
#undef SUBMESSAGE
#undef ATTRIBUTE_TYPE
#undef ELEMENT_TYPE
  RVM_ONNX_ROW_COUNT
} rvm_onnx_row;

typedef enum rvm_onnx_kind {
  RVM_ONNX_INT32,
  RVM_ONNX_INT64,
  RVM_ONNX_UINT64,
  RVM_ONNX_FLOAT,
  RVM_ONNX_DOUBLE,
  RVM_ONNX_ENUM,
  RVM_ONNX_STRING,
  RVM_ONNX_BYTES,
  RVM_ONNX_VIEW,
  RVM_ONNX_SUBMESSAGE
} rvm_onnx_kind;

typedef enum rvm_onnx_label { RVM_ONNX_one, RVM_ONNX_many, RVM_ONNX_oneof } rvm_onnx_label;

/* A field in onnx_messages.def. */
typedef struct rvm_onnx_field {
  const char *name;
  rvm_onnx_message message; /* the message that has the field */
  rvm_onnx_kind kind;
  rvm_onnx_label label;
  int32_t type; /* the message in a SUBMESSAGE, or the largest number of an ENUM */
} rvm_onnx_field;

/* The fields of all messages, in the order of the table, which is that of rvm_onnx_row. */
extern const rvm_onnx_field rvm_onnx_fields[RVM_ONNX_ROW_COUNT];
/* The names of all messages. */
extern const char *const rvm_onnx_names[RVM_ONNX_MESSAGE_COUNT];

/* Returns the row of the field that was read from a message, or NULL if a reader must ignore it: the message has no
   such field, the wire type does not match, or the number is not in the enumeration. */
const rvm_onnx_field *rvm_onnx_find(rvm_onnx_message message, const rvm_wire_field *field);

/* Limits on a file.  A reader may use memory in proportion to these numbers. */
typedef struct rvm_onnx_limits {
  int64_t file_bytes;        /* size of the file */
  int64_t string_bytes;      /* size of one string; the bytes of tensors and attributes are not strings */
  int64_t messages, strings; /* number in the whole file */
  int64_t nodes;             /* number in all graphs and functions */
  int64_t depth;             /* depth of nested messages; at most RVM_PROTOBUF_DEPTH */
} rvm_onnx_limits;

/* The numbers of items in a file, and the positions of its references to external data. */
typedef struct rvm_onnx_summary {
  int64_t messages, strings, nodes;
  /* For each entry of TensorProto.external_data, in all tensors: the offsets in the file, in bytes, of the start and
     the end of its content.  external_count: the number of these pairs. */
  int64_t *external;
  int64_t external_count, external_capacity;
} rvm_onnx_summary;

typedef enum rvm_onnx_status { RVM_ONNX_OK, RVM_ONNX_MALFORMED, RVM_ONNX_LIMIT, RVM_ONNX_NO_MEMORY } rvm_onnx_status;

enum { RVM_ONNX_REASON_BYTES = 640 };

/* Checks that all fields of a ModelProto are well-formed, and that the file respects the limits.  Fills *summary, which
   rvm_onnx_summary_free must free, also on failure.  On failure, stores a message in `reason`.  If a field is the
   cause, the message names it, such as graph.node[3].name, and its position. */
rvm_onnx_status rvm_onnx_check(const unsigned char *bytes, int64_t size_bytes, const rvm_onnx_limits *limits,
                               rvm_onnx_summary *summary, char reason[RVM_ONNX_REASON_BYTES]);
void rvm_onnx_summary_free(rvm_onnx_summary *summary);

/* The values of a repeated field of numbers: int32_t, int64_t, uint64_t, float or double.  Initialize it with zeros,
   and free `values` with rvm_free. */
typedef struct rvm_onnx_numbers {
  int64_t count, capacity;
  unsigned char *values;
} rvm_onnx_numbers;

/* The size of a number of a kind. */
int64_t rvm_onnx_number_bytes(rvm_onnx_kind kind);
/* Appends the number of a field, or all numbers of a packed field, for which rvm_onnx_find has returned a row. */
rvm_onnx_status rvm_onnx_append(rvm_onnx_numbers *numbers, rvm_onnx_kind kind, const unsigned char *bytes,
                                const rvm_wire_field *field);

#endif
