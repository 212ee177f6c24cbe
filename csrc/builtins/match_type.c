/* match_type.c: the builtin match_type, which checks a value against an encoded type (type_codes.def), including the
   items of tuples, lists and optional values. */
#include "cold.h"

#include <stdio.h>
#include <string.h>

#include "arguments.h"

enum {
#define TYPE_CODE(name, number, operands, meaning) TYPE_##name = number,
#include "type_codes.def"
#undef TYPE_CODE
#define SHAPE_CODE(name, number, meaning) SHAPE_##name = number,
#include "shape_codes.def"
#undef SHAPE_CODE
};

/* MAX_NESTED: the maximum nesting depth of a type.  PATH_BYTES: the size of the text for a path_node. */
enum { MAX_NESTED = 200, PATH_BYTES = 160 };

/* The path to a nested value: item number `item` of the value at the path `parent`.  NULL is the path to the outermost
   value. */
typedef struct path_node {
  const struct path_node *parent;
  int64_t item;
} path_node;

/* States that `object` has matched the type whose encoding begins at `type`. */
typedef struct memo_entry {
  const rvm_object *object;
  const rvm_value *type;
} memo_entry;

/* A decoder of the encoded type.  The integers from `next` to `end` have not been read yet.  Error messages begin with
   `where`.  `known` is a hash table of lists and tuples that have matched a type, so that an object with several
   references is compared with a type only once.  `capacity` is 0 or a power of two. */
typedef struct decoder {
  const rvm_value *next, *end;
  rvm_value heap;
  const char *where;
  rvm_value *result;
  rvm_machine *machine;
  memo_entry *known;
  int64_t known_count, capacity;
} decoder;

static rvm_status fail_encoding(const decoder *in) {
  return rvm_fail(in->result, RVM_ARGUMENT_ERROR, "vm.builtin.match_type: the integers do not encode a type");
}

/* Reads the next integer.  At the end, stores 0 and fails. */
static rvm_status next_int(decoder *in, int64_t *number) {
  *number = 0;
  if (in->next == in->end) return fail_encoding(in);
  *number = in->next++->as.i;
  return RVM_OK;
}

/* Writes a path as text such as ", item 3, item 0", outermost item first, truncated to PATH_BYTES. */
static void describe_path(const path_node *path, char text[PATH_BYTES]) {
  if (!path) {
    text[0] = '\0';
    return;
  }
  describe_path(path->parent, text);
  size_t used = strlen(text);
  snprintf(text + used, PATH_BYTES - used, ", item %lld", (long long)path->item);
}

/* Fails with TYPE_ERROR because the value at the path is not `expected`. */
static rvm_status fail_kind(const decoder *in, const path_node *path, const char *expected, rvm_value value) {
  char path_text[PATH_BYTES], text[RVM_DESCRIPTION_BYTES];
  describe_path(path, path_text);
  return rvm_fail(in->result, RVM_TYPE_ERROR, "%s%s: expected %s, got %s", in->where, path_text, expected,
                  rvm_value_describe(value, text));
}

/* Reads a code-value pair (shape_codes.def), which states the expected number.  Fails with SHAPE_ERROR if `got` is
   another number.  `subject` precedes the expected number in the message. */
static rvm_status match_pair(decoder *in, const path_node *path, const char *subject, int64_t got) {
  int64_t code, value;
  rvm_status status;
  if ((status = next_int(in, &code)) || (status = next_int(in, &value))) return status;
  if (code == SHAPE_ANY) return RVM_OK;
  int64_t expected = value;
  if (code == SHAPE_EQUAL_HEAP) {
    rvm_value heap = in->heap;
    if (heap.tag == RVM_TAG_NIL || value < 0 || value >= heap.as.tensor->dl.shape[0])
      return rvm_fail(in->result, RVM_INDEX_ERROR, "vm.builtin.match_type: heap slot %lld is out of range",
                      (long long)value);
    expected = ((const int64_t *)heap.as.tensor->dl.data)[value];
  } else if (code != SHAPE_EQUAL) {
    return fail_encoding(in);
  }
  if (got == expected) return RVM_OK;
  char path_text[PATH_BYTES];
  describe_path(path, path_text);
  return rvm_fail(in->result, RVM_SHAPE_ERROR, "%s%s: expected %s%lld, got %lld", in->where, path_text, subject,
                  (long long)expected, (long long)got);
}

/* Reads a count and that number of code-value pairs, and compares the first dimensions of a value with them. */
static rvm_status match_dims(decoder *in, const path_node *path, int32_t rank, const int64_t *dims) {
  int64_t count;
  rvm_status status = next_int(in, &count);
  if (!status && (count < 0 || count > rank)) return fail_encoding(in);
  for (int64_t i = 0; i < count && !status; i++) {
    char subject[48];
    snprintf(subject, sizeof subject, "dimension %lld to be ", (long long)i);
    status = match_pair(in, path, subject, dims[i]);
  }
  return status;
}

static rvm_status match_tensor(decoder *in, const path_node *path, rvm_value value) {
  int64_t rank, dtype;
  rvm_status status;
  if ((status = next_int(in, &rank)) || (status = next_int(in, &dtype))) return status;
  if (dtype >= RVM_DTYPE_COUNT) return fail_encoding(in);
  const rvm_tensor *tensor = value.as.tensor;
  if (value.tag == RVM_TAG_TENSOR && (rank < 0 || rank == tensor->dl.ndim) && (dtype < 0 || dtype == tensor->dtype))
    return match_dims(in, path, tensor->dl.ndim, tensor->dl.shape);
  char expected[80], of_rank[32] = "", of_dtype[32] = "";
  if (rank >= 0) snprintf(of_rank, sizeof of_rank, " of rank %lld", (long long)rank);
  if (dtype >= 0) snprintf(of_dtype, sizeof of_dtype, "%s dtype %s", rank < 0 ? " of" : " and", rvm_dtype_name(dtype));
  snprintf(expected, sizeof expected, "a tensor%s%s", of_rank, of_dtype);
  return fail_kind(in, path, expected, value);
}

static rvm_status match_shape(decoder *in, const path_node *path, rvm_value value) {
  int64_t rank;
  rvm_status status = next_int(in, &rank);
  if (status) return status;
  if (value.tag == RVM_TAG_SHAPE && (rank < 0 || rank == value.as.shape->rank))
    return match_dims(in, path, value.as.shape->rank, value.as.shape->dims);
  char expected[48];
  snprintf(expected, sizeof expected, rank < 0 ? "a shape" : "a shape of rank %lld", (long long)rank);
  return fail_kind(in, path, expected, value);
}

static rvm_status match_scalar(decoder *in, const path_node *path, rvm_value value) {
  int64_t dtype;
  rvm_status status = next_int(in, &dtype);
  if (status) return status;
  if (dtype == RVM_DTYPE_i64 && value.tag == RVM_TAG_INT) return match_pair(in, path, "", value.as.i);
  int64_t tag = dtype == RVM_DTYPE_bool ? RVM_TAG_BOOL : dtype == RVM_DTYPE_i64 ? RVM_TAG_INT : RVM_TAG_FLOAT;
  if (value.tag == tag)
    return match_pair(in, path, "", 0); /* only reads the pair: its code is ANY, which accepts every number */
  const char *names[] = {"a bool scalar", "an i64 scalar", "an f64 scalar"};
  return fail_kind(in, path, names[tag == RVM_TAG_BOOL ? 0 : tag == RVM_TAG_INT ? 1 : 2], value);
}

/* Returns the slot of the hash table that has the entry, or the free slot in which to store the entry. */
static memo_entry *find_known(const decoder *in, memo_entry entry) {
  uint64_t hash =
      ((uint64_t)(uintptr_t)entry.object ^ (uint64_t)(uintptr_t)entry.type << 20) * UINT64_C(0x9e3779b97f4a7c15);
  int64_t slot = (int64_t)(hash >> 20) & (in->capacity - 1);
  while (in->known[slot].object && (in->known[slot].object != entry.object || in->known[slot].type != entry.type))
    slot = (slot + 1) & (in->capacity - 1);
  return &in->known[slot];
}

static int is_known(const decoder *in, memo_entry entry) { return in->capacity > 0 && find_known(in, entry)->object; }

/* Adds an entry to the hash table, which grows first if it is half full. */
static rvm_status add_known(decoder *in, memo_entry entry) {
  if (2 * in->known_count >= in->capacity) {
    decoder grown = *in;
    grown.capacity = in->capacity > 0 ? 2 * in->capacity : 64;
    grown.known = rvm_allocate_zeroed((size_t)grown.capacity * sizeof *grown.known);
    if (!grown.known) return rvm_out_of_memory(in->result);
    rvm_status status = RVM_OK;
    for (int64_t i = 0; i < in->capacity && !status; i++) {
      if (in->known[i].object) *find_known(&grown, in->known[i]) = in->known[i];
      status = rvm_spend(in->machine, 1, in->result);
    }
    rvm_free(status ? grown.known : in->known);
    if (status) return status;
    *in = grown;
  }
  *find_known(in, entry) = entry;
  in->known_count++;
  return RVM_OK;
}

/* Fails with STACK_OVERFLOW if the C stack is nearly used up.  Each nesting level of the type takes a few C frames. */
static rvm_status check_stack(const decoder *in) {
  enum { NEEDED_BYTES = 8 << 10 };
  if (rvm_stack_left(in->machine) >= NEEDED_BYTES) return RVM_OK;
  return rvm_fail(in->result, RVM_STACK_OVERFLOW, "%s: the type is nested too deeply for this thread's C stack",
                  in->where);
}

static rvm_status match(decoder *in, const path_node *path, rvm_value value, int32_t depth);

/* Skips `count` integers.  Fails if fewer are left. */
static rvm_status skip_ints(decoder *in, int64_t count) {
  if (count > in->end - in->next) return fail_encoding(in);
  in->next += count;
  return RVM_OK;
}

/* Skips a count and that number of code-value pairs. */
static rvm_status skip_pairs(decoder *in) {
  int64_t count;
  rvm_status status = next_int(in, &count);
  if (status) return status;
  if (count < 0 || count > in->end - in->next) return fail_encoding(in);
  return skip_ints(in, 2 * count);
}

/* Reads an encoded type without comparing a value with it. */
static rvm_status skip(decoder *in, int32_t depth) {
  int64_t code, inner_count = 0;
  rvm_status status = rvm_spend(in->machine, 1, in->result);
  if (status || (status = check_stack(in)) || (status = next_int(in, &code))) return status;
  if (depth == MAX_NESTED || code < TYPE_ANY || code > TYPE_PURE_FUNCTION) return fail_encoding(in);
  switch (code) { /* the operands are in type_codes.def */
    case TYPE_TENSOR: status = skip_ints(in, 2); return status ? status : skip_pairs(in);
    case TYPE_SHAPE: status = skip_ints(in, 1); return status ? status : skip_pairs(in);
    case TYPE_SCALAR: return skip_ints(in, 3);
    case TYPE_TUPLE: status = next_int(in, &inner_count); break;
    case TYPE_LIST:
    case TYPE_OPTIONAL: inner_count = 1; break;
    default: break;
  }
  for (int64_t i = 0; i < inner_count && !status; i++) status = skip(in, depth + 1);
  return status;
}

static rvm_status match_tuple(decoder *in, const path_node *path, rvm_value value, int32_t depth) {
  int64_t expected;
  int32_t size = -1;
  rvm_status status = next_int(in, &expected);
  if (status) return status;
  int is_tuple = value.tag == RVM_TAG_TUPLE || value.tag == RVM_TAG_LIST;
  const rvm_value *items = is_tuple ? rvm_value_items(value, &size) : NULL;
  if (size != expected) {
    char text[48];
    snprintf(text, sizeof text, "a tuple of %lld item%s", (long long)expected, RVM_PLURAL(expected));
    return fail_kind(in, path, text, value);
  }
  for (int32_t i = 0; i < size && !status; i++) status = match(in, &(path_node){path, i}, items[i], depth);
  return status;
}

/* Compares a list or tuple with a list type.  The type of the items is encoded once, and is read again for each
   item. */
static rvm_status match_list(decoder *in, const path_node *path, rvm_value value, int32_t depth) {
  if (value.tag != RVM_TAG_LIST && value.tag != RVM_TAG_TUPLE) return fail_kind(in, path, "a list", value);
  int32_t size;
  const rvm_value *items = rvm_value_items(value, &size), *start = in->next;
  rvm_status status = skip(in, depth);
  const rvm_value *after = in->next;
  for (int32_t i = 0; i < size && !status; i++) {
    in->next = start;
    status = match(in, &(path_node){path, i}, items[i], depth);
  }
  in->next = after;
  return status;
}

/* Compares a tuple or list with a type by `compare` (match_tuple or match_list), unless the object has matched the type
   before.  The code of the type has been read, so that in->next is its first operand. */
static rvm_status match_once(decoder *in, const path_node *path, rvm_value value, int32_t depth,
                             rvm_status (*compare)(decoder *in, const path_node *path, rvm_value value,
                                                   int32_t depth)) {
  if (!rvm_value_is_object(value) || value.as.object->references == 1) return compare(in, path, value, depth);
  const memo_entry entry = {value.as.object, in->next - 1};
  if (is_known(in, entry)) {
    in->next--; /* back to the code of the type, whose depth is depth - 1 */
    return skip(in, depth - 1);
  }
  rvm_status status = compare(in, path, value, depth);
  return status ? status : add_known(in, entry);
}

/* Reads an encoded type and compares a value with it.  `depth` is the nesting depth of the type. */
static rvm_status match(decoder *in, const path_node *path, rvm_value value, int32_t depth) {
  int64_t code;
  rvm_status status = rvm_spend(in->machine, 1, in->result);
  if (status || (status = check_stack(in)) || (status = next_int(in, &code))) return status;
  if (depth == MAX_NESTED) return fail_encoding(in);
  switch (code) {
    case TYPE_ANY: return RVM_OK;
    case TYPE_NEVER: return fail_kind(in, path, "no value", value);
    case TYPE_TENSOR: return match_tensor(in, path, value);
    case TYPE_SHAPE: return match_shape(in, path, value);
    case TYPE_SCALAR: return match_scalar(in, path, value);
    case TYPE_FUNCTION:
      if (value.tag == RVM_TAG_FUNCTION || value.tag == RVM_TAG_CLOSURE) return RVM_OK;
      return fail_kind(in, path, "a function", value);
    case TYPE_PURE_FUNCTION: return rvm_is_pure(value) ? RVM_OK : fail_kind(in, path, "a pure function", value);
    case TYPE_TUPLE: return match_once(in, path, value, depth + 1, match_tuple);
    case TYPE_LIST: return match_once(in, path, value, depth + 1, match_list);
    case TYPE_OPTIONAL: return value.tag == RVM_TAG_NIL ? skip(in, depth + 1) : match(in, path, value, depth + 1);
  }
  return fail_encoding(in);
}

RVM_BUILTIN(match_type) {
  RVM_CHECK(match_type, "ahgi*");
  decoder in = {.next = arguments + 3,
                .end = arguments + count,
                .heap = arguments[1],
                .where = arguments[2].as.string->bytes,
                .result = result,
                .machine = rvm_machine_running()};
  rvm_status status = match(&in, NULL, arguments[0], 0);
  rvm_free(in.known);
  if (!status && in.next != in.end) status = fail_encoding(&in);
  if (!status) *result = (rvm_value){.tag = RVM_TAG_NIL};
  return status;
}

RVM_BUILTIN(check_value) {
  RVM_CHECK(check_value, "ag");
  if (arguments[0].tag == RVM_TAG_NIL)
    return rvm_fail(result, RVM_TYPE_ERROR, "%s: expected a value, got nil", arguments[1].as.string->bytes);
  *result = (rvm_value){.tag = RVM_TAG_NIL};
  return RVM_OK;
}
