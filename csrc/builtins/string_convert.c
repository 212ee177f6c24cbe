/* string_convert.c: builtins that look into strings: case, parts, numbers. */
#include <string.h>

#include "arguments.h"
#include "elements.h"
#include "number_format.h"
#include "string_builtins.h"

/* Bytes that become more.  All zeros: none.  `bytes` is to be freed. */
typedef struct buffer {
  void *bytes;
  int64_t length, room;
} buffer;

/* Adds a few bytes. */
static rvm_status buffer_add(rvm_machine *machine, buffer *buffer, rvm_text text, rvm_value *error) {
  if (text.length > buffer->room - buffer->length) {
    int64_t room = buffer->length + text.length + buffer->room / 2 + 16;
    rvm_status status = rvm_grow_array(machine, &buffer->bytes, buffer->length, room, 1, error);
    if (status) return status;
    buffer->room = room;
  }
  memcpy((char *)buffer->bytes + buffer->length, text.bytes, (size_t)text.length);
  buffer->length += text.length;
  return RVM_OK;
}

/* ---- case ---- */

enum { CASE_lower, CASE_upper };
static const struct {
  int32_t to;
  uint32_t first, last, step, there;
} letters[] = {
#define LETTERS(to, first, last, step, there) {CASE_##to, first, last, step, there},
#include "unicode_case.def"
#undef LETTERS
};

enum { ROWS = sizeof letters / sizeof *letters };

/* The code point in that case. */
static uint32_t in_case(uint32_t point, int32_t to) {
  if (point < 0x80) {
    char other = to == CASE_lower ? 'A' : 'a';
    return point - (uint32_t)other < 26 ? point ^ 0x20 : point;
  }
  int32_t low = 0, high = ROWS;
  while (low < high) { /* the first row whose last letter is not before it */
    int32_t middle = (low + high) / 2;
    if (letters[middle].to < to || (letters[middle].to == to && letters[middle].last < point))
      low = middle + 1;
    else
      high = middle;
  }
  if (low == ROWS || letters[low].to != to || point < letters[low].first) return point;
  uint32_t behind = point - letters[low].first;
  return behind % letters[low].step == 0 ? letters[low].there + behind : point;
}

/* Bytes that are no UTF-8 stay as they are. */
static rvm_status write_case(rvm_machine *machine, rvm_text text, int32_t to, buffer *made, rvm_value *error) {
  rvm_status status = rvm_spend(machine, 1, error);
  made->length = 0;
  for (int64_t at = 0; at < text.length && !status;) {
    int64_t start = at;
    char bytes[4];
    uint32_t point = rvm_text_next(text, &at), changed = in_case(point, to);
    rvm_text same = {text.bytes + start, at - start};
    rvm_text text_in_case = changed == point ? same : (rvm_text){bytes, rvm_point_write(changed, bytes)};
    status = buffer_add(machine, made, text_in_case, error);
    if (!status) status = rvm_spend(machine, 1, error);
  }
  return status;
}

RVM_BUILTIN(string_case) {
  RVM_CHECK(string_case, "ti");
  rvm_status status = rvm_expect_dtype("string_case", 0, arguments[0], RVM_DTYPE_str, result);
  if (status) return status;
  const rvm_tensor *x = arguments[0].as.tensor;
  int32_t to = arguments[1].as.i ? CASE_upper : CASE_lower;
  rvm_machine *machine = rvm_machine_running();
  rvm_value changed;
  status = rvm_tensor_new(RVM_DTYPE_str, x->dl.ndim, x->dl.shape, &changed);
  *result = changed;
  int64_t size = status ? 0 : rvm_tensor_count(x);
  buffer made = {0};
  for (int64_t i = 0; i < size && !status; i++) {
    status = write_case(machine, rvm_string_text(rvm_tensor_strings(x)[i]), to, &made, result);
    rvm_text text = {made.bytes, made.length};
    if (!status) status = rvm_string_set(machine, &rvm_tensor_strings(changed.as.tensor)[i], text, result);
    if (status) rvm_value_release(&changed);
  }
  rvm_free(made.bytes);
  return status;
}

/* ---- parts ---- */

/* The rest of a text that is being split.   ended: the last part has been given.   left: how often it may be split, -1:
   any number. borders: for each prefix of the delimiter, how long the longest shorter one is that it ends with; NULL: a
   delimiter of up to one byte has none. */
typedef struct parts {
  rvm_text rest, delimiter;
  int64_t *borders;
  rvm_machine *machine;
  int64_t left;
  int ended;
} parts;

/* What Unicode and Python count as white space. */
static int is_white(uint32_t point) {
  return (point >= 0x09 && point <= 0x0D) || (point >= 0x1C && point <= 0x20) || point == 0x85 || point == 0xA0 ||
         point == 0x1680 || (point >= 0x2000 && point <= 0x200A) || point == 0x2028 || point == 0x2029 ||
         point == 0x202F || point == 0x205F || point == 0x3000;
}

static rvm_text after(rvm_text text, int64_t at) { return (rvm_text){text.bytes + at, text.length - at}; }

/* Where the first white space of a text begins, and what follows it all; where there is none, the end twice. */
static rvm_status find_white(rvm_machine *machine, rvm_text text, int64_t *start, int64_t *next, rvm_value *error) {
  int64_t at = 0;
  rvm_status status = RVM_OK;
  for (*start = 0; at < text.length && !status; *start = at) {
    if (is_white(rvm_text_next(text, &at))) break;
    status = rvm_spend(machine, 1, error);
  }
  for (*next = at; at < text.length && !status; *next = at) {
    if (!is_white(rvm_text_next(text, &at))) break;
    status = rvm_spend(machine, 1, error);
  }
  return status;
}

static rvm_status skip_white(rvm_machine *machine, rvm_text *text, rvm_value *error) {
  int64_t start = 0;
  rvm_status status = RVM_OK;
  for (int64_t at = 0; at < text->length && !status; start = at) {
    if (!is_white(rvm_text_next(*text, &at))) break;
    status = rvm_spend(machine, 1, error);
  }
  *text = after(*text, start);
  return status;
}

/* The failure function of Knuth, Morris and Pratt: for each prefix of the delimiter, the length of its longest border.
 */
static rvm_status find_borders(parts *of, rvm_value *error) {
  const rvm_text delimiter = of->delimiter;
  if (delimiter.length < 2) return RVM_OK;
  int64_t size_bytes, border = 0;
  rvm_status status = rvm_spend(of->machine, delimiter.length / 8, error);
  if (status) return status;
  of->borders =
      rvm_multiply(delimiter.length, sizeof *of->borders, &size_bytes) ? rvm_allocate((size_t)size_bytes) : NULL;
  if (!of->borders) return rvm_out_of_memory(error);
  of->borders[0] = 0;
  for (int64_t i = 1; i < delimiter.length; i++) {
    while (border > 0 && delimiter.bytes[i] != delimiter.bytes[border]) border = of->borders[border - 1];
    border += delimiter.bytes[i] == delimiter.bytes[border];
    of->borders[i] = border;
  }
  return RVM_OK;
}

/* Find the first delimiter; -1: there is none.  Each byte is looked at once (Knuth, Morris and Pratt, "Fast pattern
   matching in strings", SIAM J. Comput. 6, 1977), where nothing has matched by memchr. */
static rvm_status find_delimiter(const parts *of, int64_t *found, rvm_value *error) {
  enum { CHUNK = 1 << 16 };
  const rvm_text text = of->rest, delimiter = of->delimiter;
  rvm_status status = RVM_OK;
  *found = -1;
  for (int64_t at = 0, matched = 0, end; at < text.length && !status;
       status = rvm_spend(of->machine, 1 + (end - at) / 8, error), at = end) {
    end = text.length - at < CHUNK ? text.length : at + CHUNK;
    for (int64_t i = at; i < end; i++) {
      if (matched == 0) {
        const char *first = memchr(text.bytes + i, delimiter.bytes[0], (size_t)(end - i));
        if (!first) break;
        i = first - text.bytes;
      }
      while (matched > 0 && text.bytes[i] != delimiter.bytes[matched]) matched = of->borders[matched - 1];
      matched += text.bytes[i] == delimiter.bytes[matched];
      if (matched < delimiter.length) continue;
      *found = i + 1 - delimiter.length;
      return rvm_spend(of->machine, 1 + (i - at) / 8, error);
    }
  }
  return status;
}

/* The next part; *is_there: 0, there is no more. */
static rvm_status next_part(parts *of, rvm_text *part, int *is_there, rvm_value *error) {
  int64_t next = 0, end = -1;
  rvm_status status = RVM_OK;
  if (of->delimiter.length == 0) {
    status = skip_white(of->machine, &of->rest, error);
    of->ended |= of->rest.length == 0;
  }
  *is_there = !of->ended;
  if (of->ended || status) return status;
  *part = of->rest;
  if (of->left == 0) {
    of->ended = 1;
    return RVM_OK;
  }
  if (of->delimiter.length == 0) {
    if ((status = find_white(of->machine, of->rest, &end, &next, error))) return status;
  } else {
    if ((status = find_delimiter(of, &end, error))) return status;
    next = end + of->delimiter.length;
    of->ended = end < 0;
    if (of->ended) return RVM_OK;
  }
  part->length = end;
  of->rest = after(of->rest, next);
  of->left -= of->left > 0;
  return RVM_OK;
}

/* Checks what both builtins take, and makes start->borders, which are to be freed. */
static rvm_status check_split(const char *name, const rvm_value *arguments, parts *start, rvm_value *result) {
  rvm_status status = rvm_expect_dtype(name, 0, arguments[0], RVM_DTYPE_str, result);
  if (!status) status = rvm_expect_dtype(name, 1, arguments[1], RVM_DTYPE_str, result);
  if (status) return status;
  if (arguments[1].as.tensor->dl.ndim != 0)
    return rvm_fail(result, RVM_SHAPE_ERROR, "vm.builtin.%s: expected a delimiter of rank 0, got rank %d", name,
                    arguments[1].as.tensor->dl.ndim);
  rvm_text delimiter = rvm_string_text(rvm_tensor_strings(arguments[1].as.tensor)[0]);
  *start = (parts){.delimiter = delimiter, .machine = rvm_machine_running(), .left = arguments[2].as.i};
  return find_borders(start, result);
}

static rvm_status count_parts(parts of, const rvm_string *string, int64_t *count, rvm_value *error) {
  rvm_text part;
  int is_there = 1;
  rvm_status status = rvm_spend(of.machine, 1, error);
  *count = 0;
  for (of.rest = rvm_string_text(string); is_there && !status; *count += is_there && !status)
    status = next_part(&of, &part, &is_there, error);
  return status;
}

/* Writes the parts of a string from `element` on. */
static rvm_status write_parts(parts of, const rvm_string *string, rvm_string **element, rvm_value *error) {
  rvm_text part;
  int is_there = 1;
  rvm_status status = RVM_OK;
  of.rest = rvm_string_text(string);
  while (!status && !(status = next_part(&of, &part, &is_there, error)) && is_there)
    status = rvm_string_set(of.machine, element++, part, error);
  return status;
}

RVM_BUILTIN(string_part_count) {
  RVM_CHECK(string_part_count, "tti");
  parts start;
  rvm_status status = check_split("string_part_count", arguments, &start, result);
  if (status) return status;
  const rvm_tensor *x = arguments[0].as.tensor;
  rvm_value counts;
  status = rvm_tensor_new(RVM_DTYPE_i64, x->dl.ndim, x->dl.shape, &counts);
  *result = counts;
  int64_t size = status ? 0 : rvm_tensor_count(x);
  for (int64_t i = 0; i < size && !status; i++) {
    status = count_parts(start, rvm_tensor_strings(x)[i], (int64_t *)counts.as.tensor->dl.data + i, result);
    if (status) rvm_release(&counts);
  }
  rvm_free(start.borders);
  return status;
}

RVM_BUILTIN(string_split) {
  RVM_CHECK(string_split, "tti");
  parts start;
  rvm_status status = check_split("string_split", arguments, &start, result);
  if (status) return status;
  const rvm_tensor *x = arguments[0].as.tensor;
  rvm_string **strings = rvm_tensor_strings(x);
  int64_t size = rvm_tensor_count(x), most = 0, count_of_it = 0;
  for (int64_t i = 0; i < size && !status; i++) {
    status = count_parts(start, strings[i], &count_of_it, result);
    most = count_of_it > most ? count_of_it : most;
  }
  rvm_value split = {.tag = RVM_TAG_NIL};
  if (!status) {
    status = rvm_tensor_widened(x, most, &split);
    *result = split;
  }
  for (int64_t i = 0; i < size && !status; i++) {
    status = write_parts(start, strings[i], rvm_tensor_strings(split.as.tensor) + i * most, result);
    if (status) rvm_release(&split);
  }
  rvm_free(start.borders);
  return status;
}

/* ---- numbers ---- */

/* Steps for a number, to or from text; and the longest text that is read as one, as nothing is counted meanwhile. */
enum { NUMBER_COST = 32, MAX_NUMBER_BYTES = 1 << 24 };

RVM_BUILTIN(string_of_number) {
  RVM_CHECK(string_of_number, "t");
  const rvm_tensor *x = arguments[0].as.tensor;
  char text[RVM_NUMBER_BYTES], description[RVM_DESCRIPTION_BYTES];
  if (x->dtype > RVM_DTYPE_f16)
    return rvm_fail(result, RVM_TYPE_ERROR, "vm.builtin.string_of_number: expected a tensor of numbers, got %s",
                    rvm_value_describe(arguments[0], description));
  rvm_value strings;
  rvm_status status = rvm_tensor_new(RVM_DTYPE_str, x->dl.ndim, x->dl.shape, &strings);
  *result = strings;
  rvm_machine *machine = rvm_machine_running();
  int64_t size = status ? 0 : rvm_tensor_count(x), element_bytes = rvm_dtype_size_bytes(x->dtype);
  for (int64_t i = 0; i < size && !status; i++) {
    int32_t length = rvm_number_write(x->dtype, (const char *)x->dl.data + i * element_bytes, text);
    status = rvm_string_set(machine, &rvm_tensor_strings(strings.as.tensor)[i], (rvm_text){text, length}, result);
    if (!status) status = rvm_spend(machine, NUMBER_COST, result);
    if (status) rvm_value_release(&strings);
  }
  return status;
}

RVM_BUILTIN(string_to_number) {
  RVM_CHECK(string_to_number, "td");
  rvm_status status = rvm_expect_dtype("string_to_number", 0, arguments[0], RVM_DTYPE_str, result);
  if (status) return status;
  int32_t dtype = (int32_t)arguments[1].as.i;
  if (dtype == RVM_DTYPE_bool || dtype > RVM_DTYPE_f64)
    return rvm_fail(result, RVM_TYPE_ERROR,
                    "vm.builtin.string_to_number: cannot convert to %s; expected an integer dtype, f32 or f64",
                    rvm_dtype_name(dtype));
  const rvm_tensor *x = arguments[0].as.tensor;
  rvm_machine *machine = rvm_machine_running();
  rvm_value numbers;
  status = rvm_tensor_new(dtype, x->dl.ndim, x->dl.shape, &numbers);
  *result = numbers;
  int64_t size = status ? 0 : rvm_tensor_count(x), element_bytes = rvm_dtype_size_bytes(dtype);
  for (int64_t i = 0; i < size && !status; i++) {
    rvm_text text = rvm_string_text(rvm_tensor_strings(x)[i]);
    status = rvm_spend(machine, NUMBER_COST + text.length / 8, result);
    if (!status && (text.length > MAX_NUMBER_BYTES ||
                    !rvm_number_read(text, dtype, (char *)numbers.as.tensor->dl.data + i * element_bytes)))
      status = rvm_fail(result, RVM_ARITHMETIC_ERROR,
                        "vm.builtin.string_to_number: element %lld, \"%.*s\", cannot be converted to %s", (long long)i,
                        text.length > 40 ? 40 : (int)text.length, text.bytes, rvm_dtype_name(dtype));
    if (status) rvm_release(&numbers);
  }
  return status;
}
