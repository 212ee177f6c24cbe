/* onnx_reader.c: reads the messages of ONNX files as Python dicts. */
#include "onnx_reader.h"

#include <string.h>

#include "base.h"
#include "onnx.h"

enum { MAX_FIELDS = 24 }; /* more than any message has */

/* ---- the table ---- */

#define MESSAGE(name)
#define FIELD(message, name, number, kind, label)
#define ENUM(message, name, number, largest)
#define SUBMESSAGE(message, name, number, label, type)

static const struct {
  const char *name;
  int number;
  const char *field;
} attribute_types[] = {
#define ATTRIBUTE_TYPE(name, number, field) {#name, number, #field},
#define ELEMENT_TYPE(name, number, text, numpy, bits, field)
#include "onnx_messages.def"
#undef ATTRIBUTE_TYPE
#undef ELEMENT_TYPE
};

static const struct {
  const char *name;
  int number;
  const char *text, *numpy;
  int bits;
  const char *field;
} element_types[] = {
#define ATTRIBUTE_TYPE(name, number, field)
#define ELEMENT_TYPE(name, number, text, numpy, bits, field) {#name, number, text, numpy, bits, #field},
#include "onnx_messages.def"
#undef ATTRIBUTE_TYPE
#undef ELEMENT_TYPE
};

/* Appends an item, which may be NULL with an exception, to *list, and releases it.  On failure, *list becomes NULL. */
static void add_item(PyObject **list, PyObject *item) {
  if (!item || PyList_Append(*list, item)) Py_CLEAR(*list);
  Py_XDECREF(item);
}

/* Returns a list of the fields of a message: (name, kind, label, type). */
static PyObject *field_list(int message) {
  PyObject *fields = PyList_New(0);
  for (int row = 0; row < RVM_ONNX_ROW_COUNT && fields; row++) {
    const rvm_onnx_field *field = &rvm_onnx_fields[row];
    if ((int)field->message != message) continue;
    add_item(&fields, Py_BuildValue("(siii)", field->name, (int)field->kind, (int)field->label, (int)field->type));
  }
  return fields;
}

/* onnx_table() -> (messages, attribute types, element types): the rows of onnx_messages.def.  A message is a tuple of
   its name and its fields, each (name, kind, label, type). */
static PyObject *onnx_table(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  PyObject *messages = PyList_New(0), *attributes = PyList_New(0), *elements = PyList_New(0);
  for (int i = 0; i < RVM_ONNX_MESSAGE_COUNT && messages; i++)
    add_item(&messages, Py_BuildValue("(sN)", rvm_onnx_names[i], field_list(i)));
  for (size_t i = 0; i < sizeof attribute_types / sizeof *attribute_types && attributes; i++)
    add_item(&attributes,
             Py_BuildValue("(sis)", attribute_types[i].name, attribute_types[i].number, attribute_types[i].field));
  for (size_t i = 0; i < sizeof element_types / sizeof *element_types && elements; i++)
    add_item(&elements, Py_BuildValue("(sissis)", element_types[i].name, element_types[i].number, element_types[i].text,
                                      element_types[i].numpy, element_types[i].bits, element_types[i].field));
  return Py_BuildValue("(NNN)", messages, attributes, elements);
}

/* Returns the row of a message's first field, or NULL with an exception if there is no message with this number or it
   has more than MAX_FIELDS fields. */
static const rvm_onnx_field *first_row(int message) {
  int first = 0, end;
  while (first < RVM_ONNX_ROW_COUNT && (int)rvm_onnx_fields[first].message < message) first++;
  for (end = first; end < RVM_ONNX_ROW_COUNT && (int)rvm_onnx_fields[end].message == message;) end++;
  if (first < end && end - first <= MAX_FIELDS) return &rvm_onnx_fields[first];
  PyErr_Format(PyExc_ValueError, "no message %d, or one with too many fields", message);
  return NULL;
}

/* ---- check_onnx ---- */

static PyObject *summary_result(const rvm_onnx_summary *summary) {
  PyObject *external = PyTuple_New(summary->external_count);
  for (Py_ssize_t i = 0; i < summary->external_count && external; i++) {
    PyObject *range =
        Py_BuildValue("(LL)", (long long)summary->external[2 * i], (long long)summary->external[2 * i + 1]);
    if (!range || PyTuple_SetItem(external, i, range)) Py_CLEAR(external);
  }
  return external ? Py_BuildValue("(LLN)", (long long)summary->messages, (long long)summary->nodes, external) : NULL;
}

/* check_onnx(content, file_bytes, string_bytes, messages, strings, nodes, depth) -> (messages, nodes, external)

   The arguments after `content` are limits (rvm_onnx_limits).  Returns the numbers of messages and nodes, and the
   positions of references to external data (rvm_onnx_summary), or (status, reason) if the check fails. */
static PyObject *check_onnx(PyObject *module, PyObject *arguments) {
  (void)module;
  PyObject *content;
  long long file_bytes, string_bytes, messages, strings, nodes, depth;
  if (!PyArg_ParseTuple(arguments, "OLLLLLL", &content, &file_bytes, &string_bytes, &messages, &strings, &nodes,
                        &depth))
    return NULL;
  Py_buffer view;
  if (PyObject_GetBuffer(content, &view, PyBUF_SIMPLE)) return NULL;
  const rvm_onnx_limits limits = {.file_bytes = file_bytes,
                                  .string_bytes = string_bytes,
                                  .messages = messages,
                                  .strings = strings,
                                  .nodes = nodes,
                                  .depth = depth};
  rvm_onnx_summary summary;
  char reason[RVM_ONNX_REASON_BYTES];
  rvm_onnx_status status;
  Py_BEGIN_ALLOW_THREADS status = rvm_onnx_check(view.buf, view.len, &limits, &summary, reason);
  Py_END_ALLOW_THREADS PyObject *result =
      status ? Py_BuildValue("(is)", (int)status, reason) : summary_result(&summary);
  rvm_onnx_summary_free(&summary);
  PyBuffer_Release(&view);
  return result;
}

/* ---- read_onnx ---- */

/* The fields of a message that were read so far. */
typedef struct reading {
  PyObject *content; /* the memoryview of the file */
  const unsigned char *bytes;
  const rvm_onnx_field *rows;           /* the rows of the table for the fields of the message */
  PyObject *values[MAX_FIELDS];         /* the value of each field, or NULL; a list for a repeated field */
  rvm_onnx_numbers numbers[MAX_FIELDS]; /* the values of repeated numbers */
  /* For each repeated field of floats: its first occurrence in the message, if that is packed and has not been copied
     to `numbers` yet.  Otherwise `number` is 0. */
  rvm_wire_field in_place[MAX_FIELDS];
} reading;

/* Returns the bytes of a range of the file without copying them. */
static PyObject *view_of(const reading *r, int64_t start, int64_t end) {
  return PySequence_GetSlice(r->content, (Py_ssize_t)start, (Py_ssize_t)end);
}

static PyObject *float_value(uint64_t value, size_t size) {
  double wide;
  float narrow;
  if (size == sizeof narrow) {
    memcpy(&narrow, &value, sizeof narrow);
    wide = narrow;
  } else {
    memcpy(&wide, &value, sizeof wide);
  }
  return PyFloat_FromDouble(wide);
}

/* Returns the text of a string, or its bytes if it is not UTF-8. */
static PyObject *text_of(const char *bytes, Py_ssize_t size_bytes) {
  PyObject *text = PyUnicode_DecodeUTF8(bytes, size_bytes, NULL);
  if (text || !PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) return text;
  PyErr_Clear();
  return PyBytes_FromStringAndSize(bytes, size_bytes);
}

/* Returns the value of a field that is not a repeated number.  The value of a message is the range of its content. */
static PyObject *value_of(const reading *r, const rvm_onnx_field *row, const rvm_wire_field *field) {
  const char *start = (const char *)r->bytes + field->start;
  const Py_ssize_t size_bytes = (Py_ssize_t)(field->end - field->start);
  switch (row->kind) {
    case RVM_ONNX_INT32: return PyLong_FromLong((int32_t)field->value);
    case RVM_ONNX_INT64: return PyLong_FromLongLong((int64_t)field->value);
    case RVM_ONNX_UINT64: return PyLong_FromUnsignedLongLong(field->value);
    case RVM_ONNX_FLOAT: return float_value(field->value, sizeof(float));
    case RVM_ONNX_DOUBLE: return float_value(field->value, sizeof(double));
    case RVM_ONNX_ENUM: return PyLong_FromLong((int32_t)field->value);
    case RVM_ONNX_STRING: return text_of(start, size_bytes);
    case RVM_ONNX_BYTES: return PyBytes_FromStringAndSize(start, size_bytes);
    case RVM_ONNX_VIEW: return view_of(r, field->start, field->end);
    default: return Py_BuildValue("(LL)", (long long)field->start, (long long)field->end);
  }
}

/* Clears the fields with the label oneof in the message to which `row` belongs, except the field of `row`. */
static void clear_others(reading *r, const rvm_onnx_field *row) {
  for (const rvm_onnx_field *each = r->rows; each < rvm_onnx_fields + RVM_ONNX_ROW_COUNT; each++) {
    if (each->message != row->message) break;
    if (each != row && each->label == RVM_ONNX_oneof) Py_CLEAR(r->values[each - r->rows]);
  }
}

/* Replaces *dst by `value`.  If *dst is a message already, merges the two messages: the result is the ranges of *dst,
   followed by those of `value`. */
static int set_value(PyObject **dst, PyObject *value, int is_message) {
  PyObject *merged = value;
  if (*dst && is_message) {
    merged = PySequence_Concat(*dst, value);
    Py_DECREF(value);
    if (!merged) return -1;
  }
  Py_XDECREF(*dst);
  *dst = merged;
  return 0;
}

static int append_value(PyObject **list, PyObject *value) {
  if (!*list) *list = PyList_New(0);
  const int failed = !*list || PyList_Append(*list, value);
  Py_DECREF(value);
  return failed ? -1 : 0;
}

/* Appends the numbers of an occurrence of a field.  If the first occurrence is packed floats, only its place is
   recorded (in_place).  Its numbers are copied when the field occurs a second time. */
static int append_numbers(reading *r, int index, const rvm_wire_field *field) {
  const rvm_onnx_kind kind = r->rows[index].kind;
  rvm_onnx_numbers *numbers = &r->numbers[index];
  rvm_wire_field *first = &r->in_place[index];
  const int has_floats = kind == RVM_ONNX_FLOAT || kind == RVM_ONNX_DOUBLE, is_packed = field->type == RVM_WIRE_BYTES;
  rvm_onnx_status status = RVM_ONNX_OK;
  if (first->number) {
    status = rvm_onnx_append(numbers, kind, r->bytes, first);
    first->number = 0;
  } else if (!numbers->count && has_floats && is_packed) {
    *first = *field;
    return 0;
  }
  if (!status) status = rvm_onnx_append(numbers, kind, r->bytes, field);
  if (status == RVM_ONNX_NO_MEMORY) PyErr_NoMemory();
  if (status == RVM_ONNX_MALFORMED) PyErr_SetString(PyExc_ValueError, "a field of packed numbers is malformed");
  return status ? -1 : 0;
}

static int add_field(reading *r, const rvm_onnx_field *row, const rvm_wire_field *field) {
  const int index = (int)(row - r->rows);
  if (row->label == RVM_ONNX_many && row->kind <= RVM_ONNX_DOUBLE) return append_numbers(r, index, field);
  PyObject *value = value_of(r, row, field);
  if (!value) return -1;
  if (row->label == RVM_ONNX_many) return append_value(&r->values[index], value);
  if (row->label == RVM_ONNX_oneof) clear_others(r, row);
  return set_value(&r->values[index], value, row->kind == RVM_ONNX_SUBMESSAGE);
}

/* Reads the fields in one range of the file. */
static int read_range(reading *r, rvm_onnx_message message, int64_t start, int64_t end) {
  rvm_wire_cursor cursor = {r->bytes, start, end, 0};
  while (cursor.at < cursor.end) {
    rvm_wire_field field;
    const char *reason = rvm_wire_next(&cursor, &field);
    if (reason) {
      PyErr_Format(PyExc_ValueError, "byte %lld: %s", (long long)field.at, reason);
      return -1;
    }
    const rvm_onnx_field *row = rvm_onnx_find(message, &field);
    if (row && add_field(r, row, &field)) return -1;
  }
  return 0;
}

/* Reads the fields in all ranges of a tuple (read_onnx).  `size_bytes` is the size of the file. */
static int read_ranges(reading *r, rvm_onnx_message message, PyObject *ranges, int64_t size_bytes) {
  for (Py_ssize_t i = 0; i + 1 < PyTuple_Size(ranges); i += 2) {
    const long long start = PyLong_AsLongLong(PyTuple_GetItem(ranges, i));
    const long long end = PyLong_AsLongLong(PyTuple_GetItem(ranges, i + 1));
    if (PyErr_Occurred()) return -1;
    if (start < 0 || end < start || end > size_bytes) {
      PyErr_Format(PyExc_ValueError, "the range %lld to %lld is not inside the file", start, end);
      return -1;
    }
    if (read_range(r, message, start, end)) return -1;
  }
  return 0;
}

/* Returns the numbers of a repeated field as a memoryview with their type, or NULL without an exception if it has none.
 */
static PyObject *numbers_view(const reading *r, ptrdiff_t index) {
  static const char *const formats[] = {"i", "q", "Q", "f", "d"};
  const rvm_onnx_kind kind = r->rows[index].kind;
  const rvm_onnx_numbers *numbers = &r->numbers[index];
  const rvm_wire_field *first = &r->in_place[index];
  PyObject *bytes, *view;
  if (first->number && first->end > first->start) {
    view = view_of(r, first->start, first->end);
  } else if (numbers->count) {
    bytes = PyBytes_FromStringAndSize((const char *)numbers->values, numbers->count * rvm_onnx_number_bytes(kind));
    view = bytes ? PyMemoryView_FromObject(bytes) : NULL;
    Py_XDECREF(bytes);
  } else {
    return NULL;
  }
  PyObject *typed = view ? PyObject_CallMethod(view, "cast", "s", formats[kind]) : NULL;
  Py_XDECREF(view);
  return typed;
}

/* Returns the interned name of a field, borrowed, or NULL with an exception. */
static PyObject *name_of(const rvm_onnx_field *row) {
  static PyObject *names[RVM_ONNX_ROW_COUNT];
  PyObject **name = &names[row - rvm_onnx_fields];
  if (!*name) *name = PyUnicode_InternFromString(row->name);
  return *name;
}

static PyObject *to_dict(reading *r, rvm_onnx_message message) {
  PyObject *result = PyDict_New();
  for (const rvm_onnx_field *row = r->rows;
       result && row < rvm_onnx_fields + RVM_ONNX_ROW_COUNT && row->message == message; row++) {
    PyObject **value = &r->values[row - r->rows];
    if (*value && row->label == RVM_ONNX_many)
      set_value(value, PyList_AsTuple(*value), 0);
    else if (!*value)
      *value = numbers_view(r, row - r->rows);
    PyObject *name = *value ? name_of(row) : NULL;
    if (PyErr_Occurred() || (*value && PyDict_SetItem(result, name, *value))) Py_CLEAR(result);
  }
  return result;
}

/* read_onnx(message, content, ranges) -> dict of the fields that are present, by name.

   message: the number of the message in the table.   content: the memoryview of the file.
   ranges: a tuple of the start and end of each range with a part of the message.
   A message in the result is such a tuple, and repeated values are tuples, or memoryviews of numbers. */
static PyObject *read_onnx(PyObject *module, PyObject *arguments) {
  (void)module;
  int message;
  PyObject *content, *ranges;
  if (!PyArg_ParseTuple(arguments, "iOO!", &message, &content, &PyTuple_Type, &ranges)) return NULL;
  const rvm_onnx_field *rows = first_row(message);
  Py_buffer view;
  if (!rows) return NULL;
  if (PyObject_GetBuffer(content, &view, PyBUF_SIMPLE)) return NULL;
  reading r = {.content = content, .bytes = view.buf, .rows = rows};
  const int failed = read_ranges(&r, (rvm_onnx_message)message, ranges, view.len);
  PyObject *result = failed ? NULL : to_dict(&r, (rvm_onnx_message)message);
  for (int i = 0; i < MAX_FIELDS; i++) {
    Py_XDECREF(r.values[i]);
    rvm_free(r.numbers[i].values);
  }
  PyBuffer_Release(&view);
  return result;
}

PyMethodDef relvm_onnx_methods[] = {{"onnx_table", onnx_table, METH_NOARGS, "The rows of onnx_messages.def."},
                                    {"check_onnx", check_onnx, METH_VARARGS, "Check an ONNX file."},
                                    {"read_onnx", read_onnx, METH_VARARGS, "The fields of a message, by name."},
                                    {NULL, NULL, 0, NULL}};
