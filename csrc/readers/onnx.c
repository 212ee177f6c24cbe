/* onnx.c: implements the reader of ONNX files (onnx.h). */
#include "onnx.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base.h"

/* ---- the table ---- */

#define ATTRIBUTE_TYPE(name, number, field)
#define ELEMENT_TYPE(name, number, text, numpy, bits, field)

const char *const rvm_onnx_names[RVM_ONNX_MESSAGE_COUNT] = {
#define MESSAGE(name) #name,
#define FIELD(message, name, number, kind, label)
#define ENUM(message, name, number, largest)
#define SUBMESSAGE(message, name, number, label, type)
#include "onnx_messages.def"
#undef MESSAGE
#undef FIELD
#undef ENUM
#undef SUBMESSAGE
};

#define MESSAGE(name)

const rvm_onnx_field rvm_onnx_fields[RVM_ONNX_ROW_COUNT] = {
#define FIELD(message, name, number, kind, label) {#name, RVM_ONNX_##message, RVM_ONNX_##kind, RVM_ONNX_##label, 0},
#define ENUM(message, name, number, largest) {#name, RVM_ONNX_##message, RVM_ONNX_ENUM, RVM_ONNX_one, largest},
#define SUBMESSAGE(message, name, number, label, type) \
  {#name, RVM_ONNX_##message, RVM_ONNX_SUBMESSAGE, RVM_ONNX_##label, RVM_ONNX_##type},
#include "onnx_messages.def"
#undef FIELD
#undef ENUM
#undef SUBMESSAGE
};

#define FIELD_NUMBERS 1024 /* more than the largest number of a field in the table */
#define KEY(message, number) ((message) * FIELD_NUMBERS + (int)(number))

/* Returns the row of a field, or -1. */
static int find_row(rvm_onnx_message message, uint32_t number) {
  if (number >= FIELD_NUMBERS) return -1;
  switch (KEY((int)message, number)) {
#define ROW(message, name, number) \
  case KEY(RVM_ONNX_##message, number): return RVM_ONNX_##message##_##name;
#define FIELD(message, name, number, kind, label) ROW(message, name, number)
#define ENUM(message, name, number, largest) ROW(message, name, number)
#define SUBMESSAGE(message, name, number, label, type) ROW(message, name, number)
#include "onnx_messages.def"
#undef FIELD
#undef ENUM
#undef SUBMESSAGE
#undef ROW
    default: return -1;
  }
}

static rvm_wire_type wire_type(rvm_onnx_kind kind) {
  switch (kind) {
    case RVM_ONNX_FLOAT: return RVM_WIRE_FIXED32;
    case RVM_ONNX_DOUBLE: return RVM_WIRE_FIXED64;
    case RVM_ONNX_INT32:
    case RVM_ONNX_INT64:
    case RVM_ONNX_UINT64:
    case RVM_ONNX_ENUM: return RVM_WIRE_VARINT;
    default: return RVM_WIRE_BYTES;
  }
}

static int is_number(rvm_onnx_kind kind) { return wire_type(kind) != RVM_WIRE_BYTES; }

const rvm_onnx_field *rvm_onnx_find(rvm_onnx_message message, const rvm_wire_field *field) {
  const int row = find_row(message, field->number);
  if (row < 0) return NULL;
  const rvm_onnx_field *found = &rvm_onnx_fields[row];
  const int is_packed = field->type == RVM_WIRE_BYTES && found->label == RVM_ONNX_many;
  if (field->type != wire_type(found->kind) && !is_packed) return NULL;
  if (found->kind == RVM_ONNX_ENUM && (uint32_t)field->value > (uint32_t)found->type) return NULL;
  return found;
}

/* ---- numbers ---- */

int64_t rvm_onnx_number_bytes(rvm_onnx_kind kind) { return kind == RVM_ONNX_INT32 || kind == RVM_ONNX_FLOAT ? 4 : 8; }

/* Returns the number of values in a packed field, or -1 if the field is malformed. */
static int64_t count_packed(rvm_onnx_kind kind, const unsigned char *bytes, const rvm_wire_field *field) {
  const int64_t size_bytes = field->end - field->start, number_bytes = rvm_onnx_number_bytes(kind);
  if (wire_type(kind) != RVM_WIRE_VARINT) return size_bytes % number_bytes ? -1 : size_bytes / number_bytes;
  int64_t count = 0;
  uint64_t value;
  for (int64_t at = field->start; at < field->end; count++)
    if (!rvm_wire_varint(bytes, field->end, &at, &value)) return -1;
  return count;
}

static rvm_onnx_status reserve(rvm_onnx_numbers *numbers, int64_t count, int64_t number_bytes) {
  if (numbers->capacity - numbers->count >= count) return RVM_ONNX_OK;
  const int64_t needed = numbers->count + count, doubled = 2 * numbers->capacity;
  const int64_t capacity = needed > doubled ? needed : doubled;
  void *values = rvm_grow(numbers->values, numbers->count, capacity, (size_t)number_bytes);
  if (!values) return RVM_ONNX_NO_MEMORY;
  numbers->values = values;
  numbers->capacity = capacity;
  return RVM_ONNX_OK;
}

/* Appends a number of `number_bytes` bytes.  The processor is little-endian, so these are the first bytes of
   `value`. */
static void put(rvm_onnx_numbers *numbers, int64_t number_bytes, uint64_t value) {
  memcpy(numbers->values + numbers->count++ * number_bytes, &value, (size_t)number_bytes);
}

rvm_onnx_status rvm_onnx_append(rvm_onnx_numbers *numbers, rvm_onnx_kind kind, const unsigned char *bytes,
                                const rvm_wire_field *field) {
  const int64_t number_bytes = rvm_onnx_number_bytes(kind);
  const int64_t count = field->type == RVM_WIRE_BYTES ? count_packed(kind, bytes, field) : 1;
  if (count < 0) return RVM_ONNX_MALFORMED;
  const rvm_onnx_status status = count ? reserve(numbers, count, number_bytes) : RVM_ONNX_OK;
  if (status || !count) return status;
  if (field->type != RVM_WIRE_BYTES) {
    put(numbers, number_bytes, field->value);
  } else if (wire_type(kind) == RVM_WIRE_VARINT) {
    uint64_t value = 0;
    int64_t at = field->start;
    for (int64_t i = 0; i < count; i++) {
      rvm_wire_varint(bytes, field->end, &at, &value);
      put(numbers, number_bytes, value);
    }
  } else {
    memcpy(numbers->values + numbers->count * number_bytes, bytes + field->start, (size_t)(count * number_bytes));
    numbers->count += count;
  }
  return RVM_ONNX_OK;
}

/* ---- the check of a file ---- */

/* One of the nested messages that contain the current position. */
typedef struct frame {
  rvm_onnx_message message;
  int64_t start;
  rvm_wire_cursor cursor;
  const rvm_onnx_field *field; /* the field that contains the message, or NULL */
  int64_t field_at;
} frame;

typedef struct checker {
  const rvm_onnx_limits *limits;
  rvm_onnx_summary *summary;
  char *reason;
  int32_t depth;
  frame frames[RVM_PROTOBUF_DEPTH + 1];
} checker;

/* Returns how many fields that `row` describes are before position `at` in the message of `outer`.  This is the index
   of the repeated field at this position. */
static int64_t index_of(const frame *outer, const rvm_onnx_field *row, int64_t at) {
  rvm_wire_cursor cursor = outer->cursor;
  rvm_wire_field field;
  int64_t index = 0;
  for (cursor.at = outer->start; cursor.at < at;) {
    rvm_wire_next(&cursor, &field);
    index += rvm_onnx_find(outer->message, &field) == row;
  }
  return index;
}

/* Writes ".NAME", or ".NAME[INDEX]" if the field is repeated, for a field of the message of a frame.  Returns the
   length. */
static int write_step(const frame *outer, const rvm_onnx_field *row, int64_t at, char *text, size_t size) {
  if (row->label != RVM_ONNX_many) return snprintf(text, size, ".%s", row->name);
  return snprintf(text, size, ".%s[%" PRId64 "]", row->name, index_of(outer, row, at));
}

enum { PATH_BYTES = 200, STEP_BYTES = 80 };

/* Writes the path of a field of the innermost message, such as "graph.node[3].name", to `path`.  In a path that is too
   long, "..." replaces the beginning.  `row` is NULL if the field is not in the table. */
static void write_path(const checker *c, const rvm_onnx_field *row, int64_t at, uint32_t number,
                       char path[PATH_BYTES]) {
  char steps[PATH_BYTES], step[STEP_BYTES];
  int length = 0;
  if (row)
    length = write_step(&c->frames[c->depth], row, at, steps, sizeof steps);
  else if (number)
    length = snprintf(steps, sizeof steps, ".field %" PRIu32, number);
  /* Insert the steps of the enclosing messages at the beginning, innermost message first. */
  for (int32_t i = c->depth; i > 0; i--) {
    const frame *inner = &c->frames[i];
    const int more = write_step(&c->frames[i - 1], inner->field, inner->field_at, step, sizeof step);
    if (length + more >= PATH_BYTES - 2) {
      memmove(steps + 2, steps, (size_t)length);
      steps[0] = steps[1] = '.'; /* "..." with the dot of the first step that is kept */
      length += 2;
      break;
    }
    memmove(steps + more, steps, (size_t)length);
    memcpy(steps, step, (size_t)more);
    length += more;
  }
  const int skipped = length > 0 && steps[1] != '.'; /* the dot before the first name, but not "..." */
  memcpy(path, steps + skipped, (size_t)(length - skipped));
  path[length - skipped] = 0;
}

/* Stores "PATH, byte N: CLAUSE" as the reason, and returns `status`. */
static rvm_onnx_status fail(checker *c, rvm_onnx_status status, const rvm_onnx_field *row, const rvm_wire_field *field,
                            const char *clause) {
  char path[PATH_BYTES];
  write_path(c, row, field->at, field->number, path);
  snprintf(c->reason, RVM_ONNX_REASON_BYTES, "%s%sbyte %" PRId64 ": %s", path, *path ? ", " : "", field->at, clause);
  return status;
}

static rvm_onnx_status fail_limit(checker *c, const rvm_onnx_field *row, const rvm_wire_field *field,
                                  const char *subject, int64_t limit) {
  char clause[160];
  snprintf(clause, sizeof clause, "%s, but the limit is %" PRId64, subject, limit);
  return fail(c, RVM_ONNX_LIMIT, row, field, clause);
}

/* Records the content of an entry of external data. */
static rvm_onnx_status add_external(rvm_onnx_summary *summary, const rvm_wire_field *field) {
  if (summary->external_count == summary->external_capacity) {
    const int64_t capacity = 2 * summary->external_capacity + 16;
    int64_t *grown = rvm_grow(summary->external, 2 * summary->external_count, 2 * capacity, sizeof *grown);
    if (!grown) return RVM_ONNX_NO_MEMORY;
    summary->external = grown;
    summary->external_capacity = capacity;
  }
  summary->external[2 * summary->external_count] = field->start;
  summary->external[2 * summary->external_count++ + 1] = field->end;
  return RVM_ONNX_OK;
}

/* Counts a message and enters it. */
static rvm_onnx_status enter(checker *c, const rvm_onnx_field *row, const rvm_wire_field *field) {
  const rvm_onnx_message message = (rvm_onnx_message)row->type;
  rvm_onnx_summary *summary = c->summary;
  if (++summary->messages > c->limits->messages)
    return fail_limit(c, row, field, "the file has more messages", c->limits->messages);
  if (message == RVM_ONNX_NodeProto && ++summary->nodes > c->limits->nodes)
    return fail_limit(c, row, field, "the file has more nodes", c->limits->nodes);
  if (c->depth >= c->limits->depth || c->depth >= RVM_PROTOBUF_DEPTH)
    return fail_limit(c, row, field, "messages are nested more deeply", c->depth);
  if (row == &rvm_onnx_fields[RVM_ONNX_TensorProto_external_data] && add_external(summary, field)) {
    snprintf(c->reason, RVM_ONNX_REASON_BYTES, "there is not enough memory");
    return RVM_ONNX_NO_MEMORY;
  }
  const unsigned char *bytes = c->frames[c->depth].cursor.bytes;
  c->depth++;
  c->frames[c->depth] = (frame){.message = message,
                                .start = field->start,
                                .cursor = {bytes, field->start, field->end, c->depth},
                                .field = row,
                                .field_at = field->at};
  return RVM_ONNX_OK;
}

/* Checks one field of the innermost message. */
static rvm_onnx_status check_field(checker *c, const rvm_onnx_field *row, const rvm_wire_field *field) {
  if (row->kind == RVM_ONNX_SUBMESSAGE) return enter(c, row, field);
  if (is_number(row->kind)) {
    if (field->type != RVM_WIRE_BYTES || count_packed(row->kind, c->frames[0].cursor.bytes, field) >= 0)
      return RVM_ONNX_OK;
    return fail(c, RVM_ONNX_MALFORMED, row, field, "the field ends inside a number");
  }
  if (++c->summary->strings > c->limits->strings)
    return fail_limit(c, row, field, "the file has more strings", c->limits->strings);
  if (row->kind == RVM_ONNX_STRING && field->end - field->start > c->limits->string_bytes)
    return fail_limit(c, row, field, "the string has more bytes", c->limits->string_bytes);
  return RVM_ONNX_OK;
}

rvm_onnx_status rvm_onnx_check(const unsigned char *bytes, int64_t size_bytes, const rvm_onnx_limits *limits,
                               rvm_onnx_summary *summary, char reason[RVM_ONNX_REASON_BYTES]) {
  checker c = {.limits = limits, .summary = summary, .reason = reason};
  *summary = (rvm_onnx_summary){.messages = 1};
  *reason = 0;
  if (size_bytes > limits->file_bytes) {
    snprintf(reason, RVM_ONNX_REASON_BYTES, "it has %" PRId64 " bytes, but the limit is %" PRId64, size_bytes,
             limits->file_bytes);
    return RVM_ONNX_LIMIT;
  }
  c.frames[0] = (frame){.message = RVM_ONNX_ModelProto, .cursor = {bytes, 0, size_bytes, 0}};
  for (;;) {
    frame *top = &c.frames[c.depth];
    if (top->cursor.at == top->cursor.end) {
      if (c.depth-- == 0) return RVM_ONNX_OK;
      continue;
    }
    rvm_wire_field field;
    const char *clause = rvm_wire_next(&top->cursor, &field);
    const int has_key = !clause || field.number; /* a malformed field may have a well-formed key */
    const rvm_onnx_field *row = has_key ? rvm_onnx_find(top->message, &field) : NULL;
    if (clause) return fail(&c, RVM_ONNX_MALFORMED, row, &field, clause);
    const rvm_onnx_status status = row ? check_field(&c, row, &field) : RVM_ONNX_OK;
    if (status) return status;
  }
}

void rvm_onnx_summary_free(rvm_onnx_summary *summary) {
  rvm_free(summary->external);
  summary->external = NULL;
}
