/* string_convert.c: builtins that change case, split strings, and convert numbers to and from strings. */
#include <string.h>

#include "arguments.h"
#include "elements.h"
#include "number_format.h"
#include "string_builtins.h"

/* A growing byte buffer.  Initialize with zeros; the owner frees `bytes`. */
typedef struct buffer {
  void *bytes;
  int64_t length, capacity;
} buffer;

/* Appends a text.  The text must be short, because copying it is not charged. */
static rvm_status buffer_add(rvm_machine *machine, buffer *buffer, rvm_text text, rvm_value *error) {
  if (text.length > buffer->capacity - buffer->length) {
    int64_t capacity = buffer->length + text.length + buffer->capacity / 2 + 16;
    rvm_status status = rvm_grow_array(machine, &buffer->bytes, buffer->length, capacity, 1, error);
    if (status) return status;
    buffer->capacity = capacity;
  }
  memcpy((char *)buffer->bytes + buffer->length, text.bytes, (size_t)text.length);
  buffer->length += text.length;
  return RVM_OK;
}

/* ---- case ---- */

enum { CASE_lower, CASE_upper };
static const struct {
  int32_t letter_case;
  uint32_t first, last, step, mapped;
} letters[] = {
#define LETTERS(letter_case, first, last, step, mapped) {CASE_##letter_case, first, last, step, mapped},
#include "unicode_case.def"
#undef LETTERS
};

enum { ROWS = sizeof letters / sizeof *letters };

/* Converts a code point to lower or upper case, given as a CASE_ constant. */
static uint32_t convert_case(uint32_t point, int32_t letter_case) {
  if (point < 0x80) {
    const char first = letter_case == CASE_lower ? 'A' : 'a'; /* the first of the 26 ASCII letters that change */
    return point - (uint32_t)first < 26 ? point ^ 0x20 : point;
  }
  int32_t low = 0, high = ROWS;
  /* Find the first row of this case whose last letter is not before the code point. */
  while (low < high) {
    int32_t middle = (low + high) / 2;
    if (letters[middle].letter_case < letter_case ||
        (letters[middle].letter_case == letter_case && letters[middle].last < point))
      low = middle + 1;
    else
      high = middle;
  }
  if (low == ROWS || letters[low].letter_case != letter_case || point < letters[low].first) return point;
  uint32_t distance = point - letters[low].first;
  return distance % letters[low].step == 0 ? letters[low].mapped + distance : point;
}

/* Replaces the contents of `output` by the text in lower or upper case.  Invalid UTF-8 is copied unchanged. */
static rvm_status write_case(rvm_machine *machine, rvm_text text, int32_t letter_case, buffer *output,
                             rvm_value *error) {
  rvm_status status = rvm_spend(machine, 1, error);
  output->length = 0;
  for (int64_t offset = 0; offset < text.length && !status;) {
    int64_t start = offset;
    char bytes[4];
    uint32_t point = rvm_text_next(text, &offset), changed = convert_case(point, letter_case);
    rvm_text same = {text.bytes + start, offset - start};
    rvm_text text_in_case = changed == point ? same : (rvm_text){bytes, rvm_point_write(changed, bytes)};
    status = buffer_add(machine, output, text_in_case, error);
    if (!status) status = rvm_spend(machine, 1, error);
  }
  return status;
}

RVM_BUILTIN(string_case) {
  RVM_CHECK(string_case, "ti");
  rvm_status status = rvm_expect_dtype("string_case", 0, arguments[0], RVM_DTYPE_str, result);
  if (status) return status;
  const rvm_tensor *x = arguments[0].as.tensor;
  int32_t letter_case = arguments[1].as.i ? CASE_upper : CASE_lower;
  rvm_machine *machine = rvm_machine_running();
  if ((status = rvm_tensor_new(RVM_DTYPE_str, x->dl.ndim, x->dl.shape, result))) return status;
  rvm_value changed = *result;
  rvm_string **elements = rvm_tensor_strings(changed.as.tensor);
  const int64_t size = rvm_tensor_count(x);
  buffer output = {0};
  for (int64_t i = 0; i < size && !status; i++) {
    status = write_case(machine, rvm_string_text(rvm_tensor_strings(x)[i]), letter_case, &output, result);
    rvm_text text = {output.bytes, output.length};
    if (!status) status = rvm_string_set(machine, &elements[i], text, result);
  }
  if (status) rvm_release(&changed);
  rvm_free(output.bytes);
  return status;
}

/* ---- parts ---- */

/* The state of splitting a text.  An empty delimiter stands for white space.  A border of a text is a shorter text that
   is a prefix and a suffix of the text. */
typedef struct splitter {
  rvm_text rest; /* the part of the text that has not been split yet */
  rvm_text delimiter;
  int64_t *borders; /* for each prefix of the delimiter, the length of its longest border; NULL if the delimiter
                       has at most one byte */
  rvm_machine *machine;
  int64_t remaining_splits; /* negative if unlimited */
  int is_done;              /* whether the last part has been returned */
} splitter;

/* Returns whether the code point is white space in Python's str.split. */
static int is_white(uint32_t point) {
  return (point >= 0x09 && point <= 0x0D) || (point >= 0x1C && point <= 0x20) || point == 0x85 || point == 0xA0 ||
         point == 0x1680 || (point >= 0x2000 && point <= 0x200A) || point == 0x2028 || point == 0x2029 ||
         point == 0x202F || point == 0x205F || point == 0x3000;
}

/* Returns the part of a text from `offset` on. */
static rvm_text after(rvm_text text, int64_t offset) { return (rvm_text){text.bytes + offset, text.length - offset}; }

/* Finds the first run of white space in a text.  Stores the offset of its start in *start and of its end in *next.
   Stores the length of the text in *start and *next if there is no white space. */
static rvm_status find_white(rvm_machine *machine, rvm_text text, int64_t *start, int64_t *next, rvm_value *error) {
  int64_t offset = 0;
  rvm_status status = RVM_OK;
  for (*start = 0; offset < text.length && !status; *start = offset) {
    if (is_white(rvm_text_next(text, &offset))) break;
    status = rvm_spend(machine, 1, error);
  }
  /* `offset` is now after the first code point of the white space. */
  for (*next = offset; offset < text.length && !status; *next = offset) {
    if (!is_white(rvm_text_next(text, &offset))) break;
    status = rvm_spend(machine, 1, error);
  }
  return status;
}

/* Removes white space from the start of a text. */
static rvm_status skip_white(rvm_machine *machine, rvm_text *text, rvm_value *error) {
  int64_t start = 0;
  rvm_status status = RVM_OK;
  for (int64_t offset = 0; offset < text->length && !status; start = offset) {
    if (!is_white(rvm_text_next(*text, &offset))) break;
    status = rvm_spend(machine, 1, error);
  }
  *text = after(*text, start);
  return status;
}

/* Computes state->borders, the failure function of Knuth, Morris and Pratt.  Leaves state->borders NULL if the
   delimiter has at most one byte. */
static rvm_status find_borders(splitter *state, rvm_value *error) {
  const rvm_text delimiter = state->delimiter;
  if (delimiter.length < 2) return RVM_OK;
  int64_t size_bytes, border = 0;
  rvm_status status = rvm_spend(state->machine, delimiter.length / 8, error);
  if (status) return status;
  const int fits =
      rvm_multiply(delimiter.length, sizeof *state->borders, &size_bytes) && size_bytes <= RVM_LARGEST_BYTES;
  state->borders = fits ? rvm_allocate((size_t)size_bytes) : NULL;
  if (!state->borders) return rvm_out_of_memory(error);
  state->borders[0] = 0;
  for (int64_t i = 1; i < delimiter.length; i++) {
    while (border > 0 && delimiter.bytes[i] != delimiter.bytes[border]) border = state->borders[border - 1];
    border += delimiter.bytes[i] == delimiter.bytes[border];
    state->borders[i] = border;
  }
  return RVM_OK;
}

/* Stores the offset of the first delimiter in state->rest in *found, or -1 if there is none.  Takes linear time (Knuth,
   Morris and Pratt, "Fast pattern matching in strings", SIAM J. Comput. 6, 1977); memchr skips to the next possible
   start. */
static rvm_status find_delimiter(const splitter *state, int64_t *found, rvm_value *error) {
  enum { CHUNK = 1 << 16 };
  const rvm_text text = state->rest, delimiter = state->delimiter;
  rvm_status status = RVM_OK;
  *found = -1;
  for (int64_t offset = 0, matched = 0; offset < text.length && !status;) {
    const int64_t end = text.length - offset < CHUNK ? text.length : offset + CHUNK;
    for (int64_t i = offset; i < end; i++) {
      if (matched == 0) {
        const char *first = memchr(text.bytes + i, delimiter.bytes[0], (size_t)(end - i));
        if (!first) break;
        i = first - text.bytes;
      }
      while (matched > 0 && text.bytes[i] != delimiter.bytes[matched]) matched = state->borders[matched - 1];
      matched += text.bytes[i] == delimiter.bytes[matched];
      if (matched < delimiter.length) continue;
      *found = i + 1 - delimiter.length;
      return rvm_spend(state->machine, 1 + (i - offset) / 8, error);
    }
    status = rvm_spend(state->machine, 1 + (end - offset) / 8, error);
    offset = end;
  }
  return status;
}

/* Stores the next part in *part and 1 in *has_part.  Stores 0 in *has_part if there is no further part. */
static rvm_status next_part(splitter *state, rvm_text *part, int *has_part, rvm_value *error) {
  const int splits_at_white = state->delimiter.length == 0;
  int64_t end, next; /* offsets in the rest: the end of the part, and the end of the separator after it */
  rvm_status status = RVM_OK;
  if (splits_at_white) {
    status = skip_white(state->machine, &state->rest, error);
    state->is_done |= state->rest.length == 0;
  }
  *has_part = !state->is_done;
  if (state->is_done || status) return status;
  *part = state->rest;
  if (state->remaining_splits == 0) {
    state->is_done = 1;
    return RVM_OK;
  }
  if (splits_at_white) {
    if ((status = find_white(state->machine, state->rest, &end, &next, error))) return status;
  } else {
    if ((status = find_delimiter(state, &end, error))) return status;
    state->is_done = end < 0;
    if (state->is_done) return RVM_OK;
    next = end + state->delimiter.length;
  }
  part->length = end;
  state->rest = after(state->rest, next);
  state->remaining_splits -= state->remaining_splits > 0;
  return RVM_OK;
}

/* Checks the arguments of string_split or string_part_count, and initializes *start, the state that is copied for each
   string.  The caller frees start->borders. */
static rvm_status check_split(const char *name, const rvm_value *arguments, splitter *start, rvm_value *result) {
  rvm_status status = rvm_expect_dtype(name, 0, arguments[0], RVM_DTYPE_str, result);
  if (!status) status = rvm_expect_dtype(name, 1, arguments[1], RVM_DTYPE_str, result);
  if (status) return status;
  if (arguments[1].as.tensor->dl.ndim != 0)
    return rvm_fail(result, RVM_SHAPE_ERROR, "vm.builtin.%s: expected a delimiter of rank 0, got rank %d", name,
                    arguments[1].as.tensor->dl.ndim);
  rvm_text delimiter = rvm_string_text(rvm_tensor_strings(arguments[1].as.tensor)[0]);
  *start = (splitter){.delimiter = delimiter, .machine = rvm_machine_running(), .remaining_splits = arguments[2].as.i};
  return find_borders(start, result);
}

/* Counts the parts of a string.  `state` is a copy of the initial state. */
static rvm_status count_parts(splitter state, const rvm_string *string, int64_t *count, rvm_value *error) {
  rvm_text part;
  int has_part;
  rvm_status status = rvm_spend(state.machine, 1, error);
  if (status) return status;
  state.rest = rvm_string_text(string);
  for (*count = 0;; ++*count) {
    status = next_part(&state, &part, &has_part, error);
    if (status || !has_part) return status;
  }
}

/* Stores the parts of a string in the elements from `element` on.  `state` is a copy of the initial state. */
static rvm_status write_parts(splitter state, const rvm_string *string, rvm_string **element, rvm_value *error) {
  rvm_text part;
  int has_part;
  rvm_status status = RVM_OK;
  state.rest = rvm_string_text(string);
  for (; !status; element++) {
    status = next_part(&state, &part, &has_part, error);
    if (status || !has_part) return status;
    status = rvm_string_set(state.machine, element, part, error);
  }
  return status;
}

/* Creates a tensor of the number of parts of each string of x. */
static rvm_status part_counts(const splitter *start, const rvm_tensor *x, rvm_value *result) {
  rvm_status status = rvm_tensor_new(RVM_DTYPE_i64, x->dl.ndim, x->dl.shape, result);
  if (status) return status;
  rvm_value counts = *result;
  int64_t *elements = counts.as.tensor->dl.data;
  const int64_t size = rvm_tensor_count(x);
  for (int64_t i = 0; i < size && !status; i++)
    status = count_parts(*start, rvm_tensor_strings(x)[i], &elements[i], result);
  if (status) rvm_release(&counts);
  return status;
}

RVM_BUILTIN(string_part_count) {
  RVM_CHECK(string_part_count, "tti");
  splitter start;
  rvm_status status = check_split("string_part_count", arguments, &start, result);
  if (status) return status;
  status = part_counts(&start, arguments[0].as.tensor, result);
  rvm_free(start.borders);
  return status;
}

/* Creates a tensor of the parts of each string of x. */
static rvm_status split_strings(const splitter *start, const rvm_tensor *x, rvm_value *result) {
  rvm_string **strings = rvm_tensor_strings(x);
  int64_t size = rvm_tensor_count(x), max_count = 0, part_count;
  rvm_status status;
  for (int64_t i = 0; i < size; i++) {
    if ((status = count_parts(*start, strings[i], &part_count, result))) return status;
    max_count = part_count > max_count ? part_count : max_count;
  }
  if ((status = rvm_tensor_with_last_axis(x, max_count, result))) return status;
  rvm_value split = *result;
  rvm_string **elements = rvm_tensor_strings(split.as.tensor);
  for (int64_t i = 0; i < size && !status; i++)
    status = write_parts(*start, strings[i], elements + i * max_count, result);
  if (status) rvm_release(&split);
  return status;
}

RVM_BUILTIN(string_split) {
  RVM_CHECK(string_split, "tti");
  splitter start;
  rvm_status status = check_split("string_split", arguments, &start, result);
  if (status) return status;
  status = split_strings(&start, arguments[0].as.tensor, result);
  rvm_free(start.borders);
  return status;
}

/* ---- numbers ---- */

/* NUMBER_COST: the fuel for converting a number.  MAX_NUMBER_BYTES: the length of the longest text that is parsed as a
   number.  The maximum bounds the time of parsing, which a limit of the run cannot interrupt. */
enum { NUMBER_COST = 32, MAX_NUMBER_BYTES = 1 << 24 };

RVM_BUILTIN(string_of_number) {
  RVM_CHECK(string_of_number, "t");
  const rvm_tensor *x = arguments[0].as.tensor;
  char text[RVM_NUMBER_BYTES], description[RVM_DESCRIPTION_BYTES];
  if (x->dtype > RVM_DTYPE_f16)
    return rvm_fail(result, RVM_TYPE_ERROR, "vm.builtin.string_of_number: expected a tensor of numbers, got %s",
                    rvm_value_describe(arguments[0], description));
  rvm_status status = rvm_tensor_new(RVM_DTYPE_str, x->dl.ndim, x->dl.shape, result);
  if (status) return status;
  rvm_value strings = *result;
  rvm_string **elements = rvm_tensor_strings(strings.as.tensor);
  rvm_machine *machine = rvm_machine_running();
  const int64_t size = rvm_tensor_count(x), number_bytes = rvm_dtype_size_bytes(x->dtype);
  for (int64_t i = 0; i < size && !status; i++) {
    int32_t length = rvm_number_write(x->dtype, (const char *)x->dl.data + i * number_bytes, text);
    status = rvm_string_set(machine, &elements[i], (rvm_text){text, length}, result);
    if (!status) status = rvm_spend(machine, NUMBER_COST, result);
  }
  if (status) rvm_release(&strings);
  return status;
}

/* Stores a text as a number of the dtype in *number.  Fails with ARITHMETIC_ERROR, which names element `index`, if
   the text is not such a number. */
static rvm_status read_number(rvm_machine *machine, rvm_text text, int64_t index, int32_t dtype, void *number,
                              rvm_value *error) {
  rvm_status status = rvm_spend(machine, NUMBER_COST + text.length / 8, error);
  if (status) return status;
  if (text.length <= MAX_NUMBER_BYTES && rvm_number_read(text, dtype, number)) return RVM_OK;
  return rvm_fail(error, RVM_ARITHMETIC_ERROR,
                  "vm.builtin.string_to_number: element %lld, \"%.*s\", cannot be converted to %s", (long long)index,
                  text.length > 40 ? 40 : (int)text.length, text.bytes, rvm_dtype_name(dtype));
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
  if ((status = rvm_tensor_new(dtype, x->dl.ndim, x->dl.shape, result))) return status;
  rvm_value numbers = *result;
  char *elements = numbers.as.tensor->dl.data;
  rvm_machine *machine = rvm_machine_running();
  const int64_t size = rvm_tensor_count(x), number_bytes = rvm_dtype_size_bytes(dtype);
  for (int64_t i = 0; i < size && !status; i++) {
    rvm_text text = rvm_string_text(rvm_tensor_strings(x)[i]);
    status = read_number(machine, text, i, dtype, elements + i * number_bytes, result);
  }
  if (status) rvm_release(&numbers);
  return status;
}
