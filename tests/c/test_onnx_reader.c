/* test_onnx_reader.c: the reader of ONNX files: the wire format, the errors with their paths, and the limits. */
#include "allocation.h"
#include "base.h"
#include "check.h"
#include "onnx.h"

/* A serialized message that a test builds. */
typedef struct buffer {
  unsigned char bytes[4096];
  int64_t size;
} buffer;

static void put_bytes(buffer *b, const void *bytes, int64_t size) {
  memcpy(b->bytes + b->size, bytes, (size_t)size);
  b->size += size;
}

static void put_varint(buffer *b, uint64_t value) {
  for (; value > 127; value >>= 7) b->bytes[b->size++] = (unsigned char)(value & 127) | 128;
  b->bytes[b->size++] = (unsigned char)value;
}

static void put_number(buffer *b, uint32_t number, uint64_t value) {
  put_varint(b, (uint64_t)number << 3 | RVM_WIRE_VARINT);
  put_varint(b, value);
}

static void put_field(buffer *b, uint32_t number, const void *bytes, int64_t size) {
  put_varint(b, (uint64_t)number << 3 | RVM_WIRE_BYTES);
  put_varint(b, (uint64_t)size);
  put_bytes(b, bytes, size);
}

/* Replaces the message by a message whose field `number` contains it. */
static void wrap(buffer *b, uint32_t number) {
  const buffer inner = *b;
  b->size = 0;
  put_field(b, number, inner.bytes, inner.size);
}

#define LIMITS               \
  {                          \
      .file_bytes = 1 << 20, \
      .string_bytes = 1000,  \
      .messages = 1000,      \
      .strings = 1000,       \
      .nodes = 1000,         \
      .depth = 200,          \
  }

/* Checks the bytes with some limits.  The bytes are in a block of exactly their size, so that the sanitizer finds every
   access outside. */
static rvm_onnx_status check_with(const buffer *b, const rvm_onnx_limits *limits, rvm_onnx_summary *summary,
                                  char *reason) {
  unsigned char *block = malloc((size_t)b->size + (b->size == 0));
  if (!block) exit(2);
  memcpy(block, b->bytes, (size_t)b->size);
  const rvm_onnx_status status = rvm_onnx_check(block, b->size, limits, summary, reason);
  rvm_onnx_summary_free(summary);
  free(block);
  return status;
}

static rvm_onnx_status check(const buffer *b, char *reason) {
  const rvm_onnx_limits limits = LIMITS;
  rvm_onnx_summary summary;
  return check_with(b, &limits, &summary, reason);
}

#define BYTES(...) ((const unsigned char[]){__VA_ARGS__})
#define MESSAGE_OF(...) {.bytes = {__VA_ARGS__}, .size = sizeof BYTES(__VA_ARGS__)}

/* ---- the wire format ---- */

static void well_formed_fields(void) {
  const buffer messages[] = {
      MESSAGE_OF(0x08, 0x05),                                                       /* a varint */
      MESSAGE_OF(0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00), /* 10 bytes */
      MESSAGE_OF(0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                 0x7f),                                           /* bits above the 64th are ignored */
      MESSAGE_OF(0x88, 0x80, 0x80, 0x80, 0x00, 0x05),             /* a key of 5 bytes */
      MESSAGE_OF(0xf8, 0xff, 0xff, 0xff, 0x0f, 0x05),             /* the largest key */
      MESSAGE_OF(0x12, 0x82, 0x80, 0x80, 0x80, 0x00, 'a', 'b'),   /* a length of 5 bytes */
      MESSAGE_OF(0x0d, 1, 2, 3, 4, 0x09, 1, 2, 3, 4, 5, 6, 7, 8), /* 4 bytes, 8 bytes */
      MESSAGE_OF(0x10, 0x05, 0x0a, 0x01, 'a'),                    /* known fields with other wire types */
      MESSAGE_OF(0x0b, 0x08, 0x01, 0x0d, 1, 2, 3, 4, 0x13, 0x14, 0x12, 0x01, 'a', 0x00, 0x01, 0x0c), /* groups */
  };
  for (int i = 0; i < COUNT_OF(messages); i++) {
    char reason[RVM_ONNX_REASON_BYTES];
    CHECK_INT(check(&messages[i], reason), RVM_ONNX_OK);
    CHECK_TEXT(reason, "");
  }
}

static void malformed_fields(void) {
  const struct {
    buffer message;
    const char *reason;
  } cases[] = {
      {MESSAGE_OF(0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01),
       "ir_version, byte 0: its value is not a number of at most 10 bytes"},
      {MESSAGE_OF(0x08), "ir_version, byte 0: its value is not a number of at most 10 bytes"},
      {MESSAGE_OF(0x08, 0x05, 0x80), "byte 2: the key of the field is not a number of at most 32 bits"},
      {MESSAGE_OF(0x88, 0x80, 0x80, 0x80, 0x80, 0x00, 0x05), "the key of the field is not a number of at most 32"},
      {MESSAGE_OF(0x88, 0x80, 0x80, 0x80, 0x10, 0x05), "the key of the field is not a number of at most 32 bits"},
      {MESSAGE_OF(0x00, 0x05), "byte 0: the key of the field has the number 0"},
      {MESSAGE_OF(0x0e, 0x05), "byte 0: the key of the field has an unknown wire type"},
      {MESSAGE_OF(0x0f, 0x05), "byte 0: the key of the field has an unknown wire type"},
      {MESSAGE_OF(0x12, 0x85, 0x80, 0x80, 0x80, 0x80, 0x00), "producer_name, byte 0: its length is not a number of"},
      {MESSAGE_OF(0x12, 0x03, 'a', 'b'), "producer_name, byte 0: the file or the enclosing message ends inside"},
      {MESSAGE_OF(0x12, 0xff, 0xff, 0xff, 0xff, 0x7f), "producer_name, byte 0: the file or the enclosing message"},
      {MESSAGE_OF(0x9d, 0x06, 1, 2, 3), "field 99, byte 0: the file or the enclosing message ends inside the number"},
      {MESSAGE_OF(0x99, 0x06, 1, 2, 3, 4, 5, 6, 7), "field 99, byte 0: the file or the enclosing message ends inside"},
      {MESSAGE_OF(0x0c), "field 1, byte 0: a group ends that has not begun"},
      {MESSAGE_OF(0x0b), "the file or the enclosing message ends inside the group"},
      {MESSAGE_OF(0x0b, 0x14), "the end of a group has another number than its start"},
      {MESSAGE_OF(0x0b, 0x06), "a key inside the group is malformed"},
      {MESSAGE_OF(0x0b, 0x12, 0x05), "a field inside the group is malformed"},
  };
  for (int i = 0; i < COUNT_OF(cases); i++) {
    char reason[RVM_ONNX_REASON_BYTES];
    CHECK_INT(check(&cases[i].message, reason), RVM_ONNX_MALFORMED);
    if (!strstr(reason, cases[i].reason)) CHECK_TEXT(reason, cases[i].reason);
  }
}

static void groups_are_nested_to_the_limit(void) {
  for (int count = RVM_PROTOBUF_DEPTH; count <= RVM_PROTOBUF_DEPTH + 1; count++) {
    buffer message = {.size = 2 * count};
    memset(message.bytes, 0x0b, (size_t)count);
    memset(message.bytes + count, 0x0c, (size_t)count);
    char reason[RVM_ONNX_REASON_BYTES];
    CHECK_INT(check(&message, reason), count > RVM_PROTOBUF_DEPTH ? RVM_ONNX_MALFORMED : RVM_ONNX_OK);
    CHECK(count <= RVM_PROTOBUF_DEPTH || strstr(reason, "groups are nested too deeply"));
  }
}

/* ---- models ---- */

/* Returns a model whose graph has two nodes.  The second node has an attribute with the given fields. */
static buffer model_with(const void *fields, int64_t size) {
  buffer node = {0}, graph = {0};
  put_field(&node, 1, "x", 1);
  put_field(&graph, 1, node.bytes, node.size);
  buffer attribute = {0};
  put_bytes(&attribute, fields, size);
  wrap(&attribute, 5);
  put_field(&graph, 1, attribute.bytes, attribute.size);
  wrap(&graph, 7);
  return graph;
}

static void errors_name_the_field(void) {
  const struct {
    const char *bytes;
    int64_t size;
    const char *reason;
  } cases[] = {
      {"\x0a\x09"
       "a",
       3, "graph.node[1].attribute[0].name, byte 11: the file or the enclosing message ends inside the field"},
      {"\x42\x02\x01\x80", 4, "graph.node[1].attribute[0].ints[0], byte 11: the field ends inside a number"},
      {"\x40\x07\x42\x01\x80", 5, "graph.node[1].attribute[0].ints[1], byte 13: the field ends inside a number"},
      {"\x3a\x03\x01\x02\x03", 5, "graph.node[1].attribute[0].floats[0], byte 11: the field ends inside a number"},
      {"\x2a\x02\x52\x07", 4, "graph.node[1].attribute[0].t.double_data[0], byte 13: the file or the enclosing"},
      {"\x2a\x03\x52\x01\x07", 5, "graph.node[1].attribute[0].t.double_data[0], byte 13: the field ends inside"},
  };
  for (int i = 0; i < COUNT_OF(cases); i++) {
    const buffer model = model_with(cases[i].bytes, cases[i].size);
    char reason[RVM_ONNX_REASON_BYTES];
    CHECK_INT(check(&model, reason), RVM_ONNX_MALFORMED);
    if (!strstr(reason, cases[i].reason)) CHECK_TEXT(reason, cases[i].reason);
  }
}

static void every_truncation_is_found(void) {
  const buffer model = model_with("\x0a\x02yz\x40\x05\x42\x03\x01\x02\x03\x3d\x01\x02\x03\x04\x22\x01s", 19);
  char none[RVM_ONNX_REASON_BYTES];
  CHECK_INT(check(&model, none), RVM_ONNX_OK);
  for (int64_t size = 1; size < model.size; size++) {
    buffer part = model;
    char reason[RVM_ONNX_REASON_BYTES];
    part.size = size;
    CHECK_INT(check(&part, reason), RVM_ONNX_MALFORMED);
    CHECK(strstr(reason, "graph, byte 0: "));
  }
}

/* Returns a model with Ifs in branches of Ifs.  The innermost graph has the given fields. */
static buffer nested_model(int depth, const char *fields) {
  buffer graph = {0};
  put_bytes(&graph, fields, (int64_t)strlen(fields));
  for (int i = 0; i < depth; i++) {
    wrap(&graph, 6); /* AttributeProto.g */
    wrap(&graph, 5); /* NodeProto.attribute */
    wrap(&graph, 1); /* GraphProto.node */
  }
  wrap(&graph, 7);
  return graph;
}

static void limits_are_respected(void) {
  const buffer model = model_with("\x0a\x02yz\x2a\x00", 6);
  rvm_onnx_summary summary;
  char reason[RVM_ONNX_REASON_BYTES];
  const rvm_onnx_limits usual = LIMITS, exact = {.file_bytes = model.size,
                                                 .string_bytes = 2,
                                                 .messages = 6,
                                                 .strings = 2,
                                                 .nodes = 2,
                                                 .depth = 4};
  CHECK_INT(check_with(&model, &exact, &summary, reason), RVM_ONNX_OK);
  CHECK_INT(summary.messages, 6); /* the model, the graph, two nodes, the attribute and its tensor */
  CHECK_INT(summary.nodes, 2);
  CHECK_INT(summary.strings, 2);
#define REFUSED(field, expected)                                              \
  do {                                                                        \
    rvm_onnx_limits limits = usual;                                           \
    limits.field = exact.field - 1;                                           \
    CHECK_INT(check_with(&model, &limits, &summary, reason), RVM_ONNX_LIMIT); \
    if (!strstr(reason, expected)) CHECK_TEXT(reason, expected);              \
  } while (0)
  REFUSED(file_bytes, "it has 17 bytes, but the limit is 16");
  REFUSED(string_bytes, "graph.node[1].attribute[0].name, byte 11: the string has more bytes, but the limit is 1");
  REFUSED(messages, "graph.node[1].attribute[0].t, byte 15: the file has more messages, but the limit is 5");
  REFUSED(strings, "graph.node[1].attribute[0].name, byte 11: the file has more strings, but the limit is 1");
  REFUSED(nodes, "graph.node[1], byte 7: the file has more nodes, but the limit is 1");
  REFUSED(depth, "graph.node[1].attribute[0].t, byte 15: messages are nested more deeply, but the limit is 3");
#undef REFUSED
}

static void messages_are_nested_to_the_limit(void) {
  const rvm_onnx_limits limits = {
      .file_bytes = INT64_MAX, .messages = INT64_MAX, .nodes = INT64_MAX, .depth = INT64_MAX};
  rvm_onnx_summary summary;
  char reason[RVM_ONNX_REASON_BYTES];
  const buffer most = nested_model(66, ""), more = nested_model(67, ""), group = nested_model(66, "\x0a\x02\x0b\x0c");
  CHECK_INT(check_with(&most, &limits, &summary, reason), RVM_ONNX_OK);
  CHECK_INT(summary.messages, 2 + 3 * 66);
  CHECK_INT(check_with(&more, &limits, &summary, reason), RVM_ONNX_LIMIT);
  CHECK(strncmp(reason, "...", 3) == 0);
  CHECK(strstr(reason, ".g.node[0].attribute[0], byte "));
  CHECK(strstr(reason, "messages are nested more deeply, but the limit is 200"));
  CHECK_INT(check_with(&group, &limits, &summary, reason), RVM_ONNX_MALFORMED);
  CHECK(strstr(reason, "groups are nested too deeply"));
}

static void external_data_is_listed(void) {
  buffer graph = {0};
  for (int i = 0; i < 40; i++) {
    buffer entry = {0};
    put_field(&entry, 2, "w.bin", 5); /* the value before the key */
    put_field(&entry, 1, "location", 8);
    wrap(&entry, 13);
    put_field(&graph, 5, entry.bytes, entry.size);
  }
  wrap(&graph, 7);
  const rvm_onnx_limits limits = LIMITS;
  rvm_onnx_summary summary;
  char reason[RVM_ONNX_REASON_BYTES];
  CHECK_INT(rvm_onnx_check(graph.bytes, graph.size, &limits, &summary, reason), RVM_ONNX_OK);
  CHECK_INT(summary.external_count, 40);
  for (int64_t i = 0; i < summary.external_count; i++) {
    CHECK_INT(summary.external[2 * i + 1] - summary.external[2 * i], 17);
    CHECK(memcmp(graph.bytes + summary.external[2 * i], "\x12\x05w.bin\x0a\x08location", 17) == 0);
  }
  rvm_onnx_summary_free(&summary);
  for (allocations_left = 0; allocations_left < 2; allocations_left++) {
    const long failing = allocations_left;
    CHECK_INT(rvm_onnx_check(graph.bytes, graph.size, &limits, &summary, reason), RVM_ONNX_NO_MEMORY);
    CHECK_TEXT(reason, "there is not enough memory");
    rvm_onnx_summary_free(&summary);
    allocations_left = failing;
  }
  allocations_left = -1;
}

/* ---- the fields of a message ---- */

/* Collects the numbers of all fields of a message that belong to a row.  Returns the last status. */
static rvm_onnx_status collect(const buffer *b, rvm_onnx_row row, rvm_onnx_numbers *numbers) {
  const rvm_onnx_field *wanted = &rvm_onnx_fields[row];
  rvm_wire_cursor cursor = {b->bytes, 0, b->size, 0};
  rvm_onnx_status status = RVM_ONNX_OK;
  *numbers = (rvm_onnx_numbers){0};
  while (!status && cursor.at < cursor.end) {
    rvm_wire_field field;
    CHECK(!rvm_wire_next(&cursor, &field));
    if (rvm_onnx_find(wanted->message, &field) == wanted)
      status = rvm_onnx_append(numbers, wanted->kind, b->bytes, &field);
  }
  return status;
}

static void numbers_are_packed_or_not(void) {
  buffer message = {0};
  rvm_onnx_numbers numbers;
  put_number(&message, 8, 7);
  put_field(&message, 8, "", 0);
  put_field(&message, 8, "\x01\x96\x01", 3);
  put_number(&message, 8, UINT64_MAX);
  put_field(&message, 7, "\x00\x00\x80\x3f\x00\x00\x00\x40", 8);
  put_bytes(&message, "\x3d\x00\x00\x40\x40", 5);
  CHECK_INT(collect(&message, RVM_ONNX_AttributeProto_ints, &numbers), RVM_ONNX_OK);
  CHECK_INT(numbers.count, 4);
  CHECK(memcmp(numbers.values, ((const int64_t[]){7, 1, 150, -1}), 32) == 0);
  rvm_free(numbers.values);
  CHECK_INT(collect(&message, RVM_ONNX_AttributeProto_floats, &numbers), RVM_ONNX_OK);
  CHECK_INT(numbers.count, 3);
  CHECK(memcmp(numbers.values, ((const float[]){1, 2, 3}), 12) == 0);
  rvm_free(numbers.values);
  buffer tensor = {0};
  for (uint64_t i = 0; i < 5; i++) put_number(&tensor, 5, i - 2);
  CHECK_INT(collect(&tensor, RVM_ONNX_TensorProto_int32_data, &numbers), RVM_ONNX_OK);
  CHECK_INT(numbers.count, 5);
  CHECK(memcmp(numbers.values, ((const int32_t[]){-2, -1, 0, 1, 2}), 20) == 0);
  rvm_free(numbers.values);
  for (long failing = 0; failing < 2; failing++) {
    allocations_left = failing;
    CHECK_INT(collect(&message, RVM_ONNX_AttributeProto_ints, &numbers), RVM_ONNX_NO_MEMORY);
    rvm_free(numbers.values);
  }
  allocations_left = -1;
}

static void unchecked_numbers_are_refused(void) {
  buffer message = {0};
  rvm_onnx_numbers numbers;
  put_field(&message, 8, "\x01\x80", 2);
  CHECK_INT(collect(&message, RVM_ONNX_AttributeProto_ints, &numbers), RVM_ONNX_MALFORMED);
  CHECK_INT(numbers.count, 0);
  rvm_free(numbers.values);
}

static void fields_are_found_by_number_type_and_range(void) {
  const rvm_wire_field type = {.number = 20, .type = RVM_WIRE_VARINT, .value = 14},
                       unknown_type = {.number = 20, .type = RVM_WIRE_VARINT, .value = 15},
                       negative = {.number = 20, .type = RVM_WIRE_VARINT, .value = UINT64_MAX},
                       wide = {.number = 20, .type = RVM_WIRE_VARINT, .value = (UINT64_C(1) << 32) + 2},
                       packed = {.number = 20, .type = RVM_WIRE_BYTES},
                       double_data = {.number = 10, .type = RVM_WIRE_FIXED64},
                       huge = {.number = 1 << 28, .type = RVM_WIRE_VARINT};
  CHECK(rvm_onnx_find(RVM_ONNX_AttributeProto, &type) == &rvm_onnx_fields[RVM_ONNX_AttributeProto_type]);
  CHECK(!rvm_onnx_find(RVM_ONNX_AttributeProto, &unknown_type));
  CHECK(!rvm_onnx_find(RVM_ONNX_AttributeProto, &negative));
  CHECK(rvm_onnx_find(RVM_ONNX_AttributeProto, &wide));
  CHECK(!rvm_onnx_find(RVM_ONNX_AttributeProto, &packed));
  CHECK(rvm_onnx_find(RVM_ONNX_TensorProto, &double_data) == &rvm_onnx_fields[RVM_ONNX_TensorProto_double_data]);
  CHECK(!rvm_onnx_find(RVM_ONNX_AttributeProto, &double_data));
  CHECK(!rvm_onnx_find(RVM_ONNX_ModelProto, &huge));
  CHECK_TEXT(rvm_onnx_names[RVM_ONNX_TensorProto_Segment], "TensorProto_Segment");
}

/* Checks that a field of the table is found by its number, and with no other wire type than its own. */
static void check_row(rvm_onnx_message message, uint32_t number, rvm_onnx_row row) {
  int found = 0;
  for (int type = RVM_WIRE_VARINT; type <= RVM_WIRE_FIXED32; type++) {
    const rvm_wire_field field = {.number = number, .type = (rvm_wire_type)type};
    const rvm_onnx_field *got = rvm_onnx_find(message, &field);
    CHECK(!got || got == &rvm_onnx_fields[row]);
    found += got != NULL;
  }
  const rvm_onnx_field *field = &rvm_onnx_fields[row];
  CHECK_INT(found, 1 + (field->label == RVM_ONNX_many && field->kind <= RVM_ONNX_DOUBLE)); /* packed or not */
  CHECK_INT(field->message, message);
}

static void every_field_is_found(void) {
#define MESSAGE(name)
#define FIELD(message, name, number, kind, label) check_row(RVM_ONNX_##message, number, RVM_ONNX_##message##_##name);
#define ENUM(message, name, number, largest) check_row(RVM_ONNX_##message, number, RVM_ONNX_##message##_##name);
#define SUBMESSAGE(message, name, number, label, type) \
  check_row(RVM_ONNX_##message, number, RVM_ONNX_##message##_##name);
#define ATTRIBUTE_TYPE(name, number, field)
#define ELEMENT_TYPE(name, number, text, numpy, bits, field)
#include "onnx_messages.def"
}

int main(void) {
  well_formed_fields();
  malformed_fields();
  groups_are_nested_to_the_limit();
  errors_name_the_field();
  every_truncation_is_found();
  limits_are_respected();
  messages_are_nested_to_the_limit();
  external_data_is_listed();
  numbers_are_packed_or_not();
  unchecked_numbers_are_refused();
  fields_are_found_by_number_type_and_range();
  every_field_is_found();
  return CHECK_RESULT();
}
