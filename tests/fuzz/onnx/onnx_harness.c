/* onnx_harness.c: the fuzzer of the reader of ONNX files: runs one input, and mutates one.

   A file that the check accepts must be readable: no field of it is malformed, and it has as many messages as the check
   has counted.  A file that the check rejects must not be read outside of its bytes, whatever message they are taken
   for.  A violation aborts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "fuzz.h"
#include "onnx.h"

fuzz_counts fuzz_counted;
int fuzz_in_every_mode, fuzz_generates;

/* ---- one input ---- */

/* Reads all fields of a message and of the messages inside it.  Returns the number of messages, or -1 if a field is
   malformed. */
static int64_t read_message(rvm_onnx_message message, rvm_wire_cursor cursor) {
  int64_t messages = 1;
  while (cursor.at < cursor.end) {
    rvm_wire_field field;
    const int64_t before = cursor.at;
    if (rvm_wire_next(&cursor, &field)) return -1;
    EXPECT(cursor.at > before && cursor.at <= cursor.end && field.at == before);
    const rvm_onnx_field *row = rvm_onnx_find(message, &field);
    if (!row) continue;
    EXPECT(row->message == message);
    if (row->kind == RVM_ONNX_SUBMESSAGE) {
      if (cursor.depth >= RVM_PROTOBUF_DEPTH) return -1;
      const rvm_wire_cursor inner = {cursor.bytes, field.start, field.end, cursor.depth + 1};
      const int64_t inside = read_message((rvm_onnx_message)row->type, inner);
      if (inside < 0) return -1;
      messages += inside;
    } else if (row->label == RVM_ONNX_many && row->kind <= RVM_ONNX_DOUBLE) {
      rvm_onnx_numbers numbers = {0};
      const rvm_onnx_status first = rvm_onnx_append(&numbers, row->kind, cursor.bytes, &field);
      const rvm_onnx_status second = rvm_onnx_append(&numbers, row->kind, cursor.bytes, &field);
      EXPECT(first == second && first != RVM_ONNX_NO_MEMORY && numbers.count <= 2 * (field.end - field.start) + 2);
      rvm_free(numbers.values);
      if (first) return -1;
    }
  }
  return messages;
}

static void run(const uint8_t *bytes, int64_t size_bytes) {
  fuzz_random random = rvm_crc32c(0, bytes, size_bytes);
  rvm_onnx_limits limits = {.file_bytes = 1 << 20,
                            .string_bytes = 1 << 16,
                            .messages = 1 << 16,
                            .strings = 1 << 16,
                            .nodes = 1 << 16,
                            .depth = RVM_PROTOBUF_DEPTH};
  int64_t *const each[] = {&limits.file_bytes, &limits.string_bytes, &limits.messages,
                           &limits.strings,    &limits.nodes,        &limits.depth};
  const int is_limited = fuzz_below(&random, 8) == 0;
  if (is_limited) *each[fuzz_below(&random, 6)] = fuzz_below(&random, 40);
  rvm_onnx_summary summary;
  char reason[RVM_ONNX_REASON_BYTES];
  const rvm_onnx_status status = rvm_onnx_check(bytes, size_bytes, &limits, &summary, reason);
  const int64_t messages = read_message(RVM_ONNX_ModelProto, (rvm_wire_cursor){bytes, 0, size_bytes, 0});
  EXPECT((status == RVM_ONNX_OK) == (*reason == 0) && status != RVM_ONNX_NO_MEMORY);
  EXPECT(memchr(reason, 0, sizeof reason));
  if (status == RVM_ONNX_OK) {
    EXPECT(messages == summary.messages && summary.nodes < messages);
    for (int64_t i = 0; i < summary.external_count; i++)
      EXPECT(summary.external[2 * i] <= summary.external[2 * i + 1] && summary.external[2 * i + 1] <= size_bytes);
    fuzz_counted.loaded++;
  } else {
    EXPECT(messages < 0 || status == RVM_ONNX_LIMIT);
    fuzz_counted.refused[status == RVM_ONNX_LIMIT ? RVM_UNSUPPORTED : RVM_BAD_EXECUTABLE]++;
  }
  rvm_onnx_summary_free(&summary);
  for (int i = 0; i < 3; i++) {
    const int64_t start = fuzz_below(&random, (uint64_t)size_bytes + 1);
    const rvm_onnx_message message = (rvm_onnx_message)fuzz_below(&random, RVM_ONNX_MESSAGE_COUNT);
    read_message(message, (rvm_wire_cursor){bytes, start, size_bytes, 0});
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes) {
  fuzz_counted.inputs++;
  uint8_t *block = malloc(size_bytes + (size_bytes == 0)); /* so that the sanitizer finds accesses outside */
  if (!block) return 0;
  memcpy(block, bytes, size_bytes);
  run(block, (int64_t)size_bytes);
  free(block);
  return 0;
}

/* ---- mutation ---- */

enum { MAX_BYTES = 1 << 14, MAX_FIELDS = 512 };

typedef struct output {
  uint8_t *bytes;
  size_t size, capacity;
} output;

static void put(output *out, const void *bytes, size_t size) {
  if (size > out->capacity - out->size) size = out->capacity - out->size;
  memcpy(out->bytes + out->size, bytes, size);
  out->size += size;
}

/* Writes a varint, sometimes with superfluous bytes. */
static void put_varint(output *out, uint64_t value, fuzz_random *random) {
  const uint32_t more = fuzz_below(random, 32) ? 0 : fuzz_below(random, 10);
  for (uint32_t i = 0; value > 127 || i < more; i++, value >>= 7) put(out, &(uint8_t){(uint8_t)(value & 127) | 128}, 1);
  put(out, &(uint8_t){(uint8_t)value}, 1);
}

static uint64_t any_number(fuzz_random *random) {
  static const uint64_t numbers[] = {0,  1,        2,        3,          8,         20,         127,  128,
                                     16, 1u << 14, 1u << 31, UINT32_MAX, INT64_MAX, UINT64_MAX, 1000, 1 << 20};
  return fuzz_below(random, 2) ? numbers[fuzz_below(random, sizeof numbers / sizeof *numbers)]
                               : fuzz_next(random) >> 40;
}

/* Writes a field with a random number, type and content. */
static void put_any(output *out, fuzz_random *random) {
  const uint32_t type = fuzz_below(random, 8),
                 number = fuzz_below(random, 8) ? fuzz_below(random, 28) : fuzz_below(random, 1 << 29);
  const uint64_t noise = fuzz_next(random);
  put_varint(out, (uint64_t)number << 3 | type, random);
  if (type == RVM_WIRE_VARINT) put_varint(out, any_number(random), random);
  if (type == RVM_WIRE_FIXED64) put(out, &noise, 8);
  if (type == RVM_WIRE_FIXED32) put(out, &noise, 4);
  if (type != RVM_WIRE_BYTES) return;
  const uint32_t size = fuzz_below(random, 9);
  put_varint(out, fuzz_below(random, 8) ? size : any_number(random), random);
  put(out, &noise, size < 8 ? size : 8);
}

static void mutate_message(rvm_onnx_message message, rvm_wire_cursor cursor, output *out, fuzz_random *random);

/* Writes a mutation of a field, whose bytes end at `end`. */
static void mutate_field(const rvm_onnx_field *row, const rvm_wire_cursor *cursor, const rvm_wire_field *field,
                         int64_t end, output *out, fuzz_random *random) {
  const uint8_t *bytes = cursor->bytes;
  const size_t size = (size_t)(end - field->at);
  const int is_message = row && row->kind == RVM_ONNX_SUBMESSAGE && cursor->depth < RVM_PROTOBUF_DEPTH;
  if (is_message && fuzz_below(random, 8)) {
    static uint8_t inner[RVM_PROTOBUF_DEPTH + 1][MAX_BYTES];
    output changed = {.bytes = inner[cursor->depth], .capacity = MAX_BYTES};
    mutate_message((rvm_onnx_message)row->type, (rvm_wire_cursor){bytes, field->start, field->end, cursor->depth + 1},
                   &changed, random);
    put_varint(out, (uint64_t)field->number << 3 | RVM_WIRE_BYTES, random);
    put_varint(out, fuzz_below(random, 16) ? changed.size : any_number(random), random);
    put(out, changed.bytes, changed.size);
    return;
  }
  switch (fuzz_below(random, 7)) {
    case 0: return; /* without the field */
    case 1:
      put(out, bytes + field->at, size);
      put(out, bytes + field->at, size);
      return;
    case 2: put(out, bytes + field->at, fuzz_below(random, size)); return;
    case 3:
      put_varint(out, (uint64_t)field->number << 3 | RVM_WIRE_VARINT, random);
      put_varint(out, any_number(random), random);
      return;
    case 4: /* another length */
      put_varint(out, (uint64_t)field->number << 3 | RVM_WIRE_BYTES, random);
      put_varint(out, any_number(random), random);
      put(out, bytes + field->at, size);
      return;
    case 5: /* inside a group */
      put_varint(out, (uint64_t)field->number << 3 | RVM_WIRE_GROUP, random);
      put(out, bytes + field->at, size);
      put_varint(out, (uint64_t)field->number << 3 | RVM_WIRE_GROUP_END, random);
      return;
    default: put_any(out, random); put(out, bytes + field->at, size);
  }
}

/* Writes a copy of a message in which one field is mutated. */
static void mutate_message(rvm_onnx_message message, rvm_wire_cursor cursor, output *out, fuzz_random *random) {
  rvm_wire_field fields[MAX_FIELDS];
  uint32_t count = 0;
  rvm_wire_cursor scan = cursor;
  while (count < MAX_FIELDS && scan.at < scan.end && !rvm_wire_next(&scan, &fields[count])) count++;
  const uint32_t chosen = fuzz_below(random, count + 1);
  if (chosen == count) {
    put(out, cursor.bytes + cursor.at, (size_t)(cursor.end - cursor.at));
    put_any(out, random);
    return;
  }
  const rvm_wire_field *field = &fields[chosen];
  const int64_t end = chosen + 1 < count ? fields[chosen + 1].at : scan.at;
  put(out, cursor.bytes + cursor.at, (size_t)(field->at - cursor.at));
  mutate_field(rvm_onnx_find(message, field), &cursor, field, end, out, random);
  put(out, cursor.bytes + end, (size_t)(cursor.end - end));
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size_bytes, size_t most_bytes, unsigned int seed) {
  static uint8_t mutated[MAX_BYTES];
  fuzz_random random = seed;
  output out = {.bytes = mutated, .capacity = most_bytes < MAX_BYTES ? most_bytes : MAX_BYTES};
  if (fuzz_below(&random, 8) && size_bytes <= MAX_BYTES) {
    mutate_message(RVM_ONNX_ModelProto, (rvm_wire_cursor){bytes, 0, (int64_t)size_bytes, 0}, &out, &random);
    memcpy(bytes, mutated, out.size);
    return out.size;
  }
  for (uint32_t i = 0; i <= fuzz_below(&random, 3) && size_bytes; i++)
    bytes[fuzz_below(&random, size_bytes)] = (uint8_t)fuzz_next(&random);
  return fuzz_below(&random, 8) ? size_bytes : fuzz_below(&random, size_bytes + 1);
}
