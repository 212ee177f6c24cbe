/* test_builtins_strings.h: the tests of test_builtins.c for the builtins of strings. */
#ifndef RELVM_TEST_BUILTINS_STRINGS_H
#define RELVM_TEST_BUILTINS_STRINGS_H

#include <stdarg.h>

#include "string_builtins.h"

/* Returns a str tensor of rank 1, or of rank 0 if `count` is -1.  The strings in `joined` are separated by '|'. */
static rvm_value texts(int32_t count, const char *joined) {
  const int64_t dims[] = {count};
  rvm_value tensor = tensor_value(RVM_DTYPE_str, count >= 0, dims), error;
  for (int32_t i = 0; i < (count < 0 ? 1 : count); i++) {
    size_t length = strcspn(joined, "|");
    CHECK_OK(
        rvm_string_set(NULL, &rvm_tensor_strings(tensor.as.tensor)[i], (rvm_text){joined, (int64_t)length}, &error),
        error);
    joined += length + (joined[length] == '|');
  }
  return tensor;
}

static rvm_value integers(int32_t count, const int64_t *elements) {
  const int64_t dims[] = {count};
  rvm_value tensor = tensor_value(RVM_DTYPE_i64, 1, dims);
  if (count > 0) memcpy(tensor.as.tensor->dl.data, elements, (size_t)count * sizeof *elements);
  return tensor;
}
#define INTEGERS(...) integers(COUNT_OF(((int64_t[]){__VA_ARGS__})), (int64_t[]){__VA_ARGS__})

static int reads(rvm_value tensor, const char *joined) {
  if (tensor.tag != RVM_TAG_TENSOR || tensor.as.tensor->dtype != RVM_DTYPE_str) return 0;
  int64_t count = rvm_tensor_size_bytes(tensor.as.tensor) / (int64_t)sizeof(void *);
  for (int64_t i = 0; i < count; i++) {
    rvm_text text = rvm_string_text(rvm_tensor_strings(tensor.as.tensor)[i]);
    size_t length = strcspn(joined, "|");
    if ((size_t)text.length != length || memcmp(text.bytes, joined, length) != 0) return 0;
    joined += length + (joined[length] == '|');
  }
  return *joined == '\0';
}

static int64_t number(rvm_value tensor, int i) { return ((int64_t *)tensor.as.tensor->dl.data)[i]; }
static int truth(rvm_value tensor, int i) { return ((uint8_t *)tensor.as.tensor->dl.data)[i]; }

static void release_all(int32_t count, rvm_value *values) {
  for (int32_t i = 0; i < count; i++) rvm_value_release(&values[i]);
}
#define RELEASE(...) release_all(COUNT_OF(((rvm_value[]){__VA_ARGS__})), (rvm_value[]){__VA_ARGS__})

static void test_string_positions(void) {
  rvm_value x = texts(2, "a|b"), y = texts(3, "c|d|e");
  GOOD(string_positions, number(got, 0) == 0 && number(got, 1) == 1, x);
  GOOD(string_positions, got.as.tensor->dl.shape[0] == 2 && number(got, 1) == 6, x, y, x);
  BAD(string_positions, RVM_TYPE_ERROR, "argument 1 to be a tensor", INT(1));
  RELEASE(x, y);
}

static void test_string_take(void) {
  rvm_value x = texts(2, "a|bc"), y = texts(1, "d"), places = INTEGERS(2, 1, -1, 1), far = INTEGERS(3),
            low = INTEGERS(-2);
  GOOD(string_take, reads(got, "d|bc||bc"), places, x, y);
  CHECK_INT(rvm_tensor_strings(x.as.tensor)[1]->base.references, 1);
  BAD(string_take, RVM_INDEX_ERROR, "position 3 is out of range", far, x, y);
  BAD(string_take, RVM_INDEX_ERROR, "position -2 is out of range", low, x, y);
  BAD(string_take, RVM_TYPE_ERROR, "argument 1 to be a tensor of dtype i64, got a tensor of rank 1 and dtype str", x,
      x);
  BAD(string_take, RVM_TYPE_ERROR, "argument 2 to be a tensor of dtype str", places, places);
  RELEASE(x, y, places, far, low);
}

static void test_string_equal(void) {
  rvm_value x = texts(3, "a||c"), one = texts(-1, ""), two = texts(2, "a|b"), places = INTEGERS(1);
  GOOD(string_equal, !truth(got, 0) && truth(got, 1) && !truth(got, 2), x, one);
  GOOD(string_equal, truth(got, 0) && truth(got, 1) && truth(got, 2), x, x);
  BAD(string_equal, RVM_SHAPE_ERROR, "dimensions 3 and 2 cannot be broadcast together", x, two);
  BAD(string_equal, RVM_TYPE_ERROR, "argument 2 to be a tensor of dtype str", x, places);
  RELEASE(x, one, two, places);
}

static void test_string_concat(void) {
  rvm_value x = texts(3, "a||c"), one = texts(-1, "-"), two = texts(2, "a|b");
  GOOD(string_concat, reads(got, "a-|-|c-"), x, one);
  GOOD(string_concat, reads(got, "aa||cc"), x, x);
  BAD(string_concat, RVM_SHAPE_ERROR, "cannot be broadcast together", two, x);
  RELEASE(x, one, two);
}

static void test_string_lookup(void) {
  rvm_value x = texts(3, "b|z|"), keys = texts(2, "|b"), table = tensor_value(RVM_DTYPE_i64, 1, (int64_t[]){5});
  int64_t *slots = table.as.tensor->dl.data;
  for (int i = 0; i < 5; i++) slots[i] = -1;
  for (int64_t key = 0; key < 2; key++) {
    int64_t slot = rvm_crc32c(0, "b", key) % 5;
    while (slots[slot] >= 0) slot = (slot + 1) % 5;
    slots[slot] = key;
  }
  rvm_value none = integers(0, NULL), wrong = INTEGERS(2), single = texts(-1, "b");
  GOOD(string_lookup, number(got, 0) == 1 && number(got, 1) == -1 && number(got, 2) == 0, x, keys, table);
  GOOD(string_lookup, number(got, 0) == -1, x, keys, none);
  BAD(string_lookup, RVM_INDEX_ERROR, "the hash table does not belong to these 2 keys", x, keys, wrong);
  BAD(string_lookup, RVM_SHAPE_ERROR, "expected keys and a table of rank 1, got ranks 0", x, single, table);
  BAD(string_lookup, RVM_TYPE_ERROR, "argument 3 to be a tensor of dtype i64", x, keys, keys);
  RELEASE(x, keys, table, none, wrong, single);
}

static void test_string_case(void) {
  rvm_value x = texts(4, "aZ9|\xc3\xa4\xc3\x9f|\xd0\x94\xce\xa3|\xff\xc3"), places = INTEGERS(1);
  GOOD(string_case, reads(got, "AZ9|\xc3\x84\xc3\x9f|\xd0\x94\xce\xa3|\xff\xc3"), x, INT(1));
  GOOD(string_case, reads(got, "az9|\xc3\xa4\xc3\x9f|\xd0\xb4\xcf\x83|\xff\xc3"), x, INT(0));
  BAD(string_case, RVM_TYPE_ERROR, "argument 1 to be a tensor of dtype str", places, INT(0));
  RELEASE(x, places);
}

static void test_string_split(void) {
  rvm_value x = texts(3, "a,b,,c||,"), white = texts(2, " a  b\t\xe3\x80\x80 c |  "), comma = texts(-1, ","),
            empty = texts(-1, ""), two = texts(2, ",|;");
  GOOD(string_split, got.as.tensor->dl.shape[1] == 4 && reads(got, "a|b||c||||||||"), x, comma, INT(-1));
  GOOD(string_split, got.as.tensor->dl.shape[1] == 2 && reads(got, "a|b,,c||||"), x, comma, INT(1));
  GOOD(string_split, got.as.tensor->dl.shape[1] == 3 && reads(got, "a|b|c|||"), white, empty, INT(-1));
  GOOD(string_split, got.as.tensor->dl.shape[1] == 2 && reads(got, "a|b\t\xe3\x80\x80 c ||"), white, empty, INT(1));
  BAD(string_split, RVM_SHAPE_ERROR, "expected a delimiter of rank 0, got rank 1", x, two, INT(-1));
  RELEASE(x, white, comma, empty, two);
}

static void test_string_part_count(void) {
  rvm_value x = texts(3, "a,b,,c||,"), comma = texts(-1, ","), empty = texts(-1, "");
  GOOD(string_part_count, number(got, 0) == 4 && number(got, 1) == 1 && number(got, 2) == 2, x, comma, INT(-1));
  GOOD(string_part_count, number(got, 0) == 1 && number(got, 1) == 0, x, empty, INT(0));
  BAD(string_part_count, RVM_TYPE_ERROR, "argument 3 to be an int", x, comma, comma);
  RELEASE(x, comma, empty);
}

static rvm_value pattern(int64_t rows, const int64_t *ints) {
  const int64_t dims[] = {rows, 3};
  rvm_value tensor = tensor_value(RVM_DTYPE_i64, 2, dims);
  memcpy(tensor.as.tensor->dl.data, ints, (size_t)rows * 3 * sizeof *ints);
  return tensor;
}

static void test_string_match(void) {
  /* (a|[^b])*$ */
  const int64_t rows[] = {2, 1, 8, 2, 2,   5,   0, 1, 0, 1, 'a', 'a', 3, 7, 0,
                          0, 1, 1, 1, 'b', 'b', 3, 0, 0, 4, 1,   0,   5, 0, 0};
  rvm_value x = texts(4, "aca||ab|\xc3\xa4"), good = pattern(10, rows);
  GOOD(string_match, truth(got, 0) && truth(got, 1) && !truth(got, 2) && truth(got, 3), x, good);
  const int64_t wrong[][6] = {{3, 2, 0, 5, 0, 0},  {2, 0, -1, 5, 0, 0}, {0, 1, 0, 5, 0, 0}, {1, 0, 0, 5, 0, 0},
                              {4, 6, 0, 5, 0, 0},  {5, 0, 0, 3, 0, 0},  {6, 0, 0, 5, 0, 0}, {0, 2, 0, 1, 0, 0},
                              {0, -1, 0, 5, 0, 0}, {3, -1, 0, 5, 0, 0}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    rvm_value bad = pattern(2, wrong[i]);
    BAD(string_match, RVM_ARGUMENT_ERROR, "must be a compiled pattern", x, bad);
    rvm_value_release(&bad);
  }
  rvm_value none = pattern(0, rows), flat = INTEGERS(5, 0, 0);
  BAD(string_match, RVM_ARGUMENT_ERROR, "must be a compiled pattern", x, none);
  BAD(string_match, RVM_ARGUMENT_ERROR, "must be a compiled pattern", x, flat);
  RELEASE(x, good, none, flat);
}

static void test_string_tokens(void) {
  /* [a-z\xe4]+ */
  const int64_t rows[] = {0, 2, 0, 1, 'a', 'z', 1, 0xe4, 0xe4, 2, 0, 4, 5, 0, 0}, any[] = {5, 0, 0};
  rvm_value x = texts(3, "ab, c\xc3\xa4!|9|z"), words = pattern(5, rows), empty = pattern(1, any),
            flat = INTEGERS(5, 0, 0);
  GOOD(string_tokens, got.as.tensor->dl.shape[1] == 2 && reads(got, "ab|c\xc3\xa4|||z|"), x, words);
  GOOD(string_tokens, got.as.tensor->dl.shape[1] == 0, x, empty);
  BAD(string_tokens, RVM_ARGUMENT_ERROR, "string_tokens: argument 2 must be a compiled pattern", x, flat);
  RELEASE(x, words, empty, flat);
}

static rvm_value doubles(int32_t count, const double *elements) {
  const int64_t dims[] = {count};
  rvm_value tensor = tensor_value(RVM_DTYPE_f64, 1, dims);
  memcpy(tensor.as.tensor->dl.data, elements, (size_t)count * sizeof *elements);
  return tensor;
}

static void test_string_of_number(void) {
  const double numbers[] = {0.1,     -0.0,   1e16,   1e15, 123456789.125,          5e-324,
                            0x1p-44, 1e-4,   9.5e-5, 1.0,  1.7976931348623157e308, 0.3,
                            1e22,    2.0 / 3};
  rvm_value x = doubles(14, numbers), n = INTEGERS(0, -5, INT64_MIN), text = texts(1, "a");
  GOOD(string_of_number,
       reads(got,
             "0.1|-0.0|1e+16|1000000000000000.0|123456789.125|5e-324|5.684341886080802e-14|0.0001|9.5e-05|1.0|"
             "1.7976931348623157e+308|0.3|1e+22|0.6666666666666666"),
       x);
  GOOD(string_of_number, reads(got, "0|-5|-9223372036854775808"), n);
  BAD(string_of_number, RVM_TYPE_ERROR, "expected a tensor of numbers, got a tensor of rank 1 and dtype str", text);
  RELEASE(x, n, text);
}

static void test_string_to_number(void) {
  rvm_value x = texts(7, "0.1| -1e3 |+.5|1.|0009007199254740993|-INF|1e400"), n = texts(2, "-9223372036854775808|+7");
  GOOD(string_to_number, ((double *)got.as.tensor->dl.data)[4] == 9007199254740992.0, x, DTYPE_OF(f64));
  GOOD(string_to_number,
       ((float *)got.as.tensor->dl.data)[1] == -1000.0f && ((float *)got.as.tensor->dl.data)[2] == 0.5f, x,
       DTYPE_OF(f32));
  GOOD(string_to_number, number(got, 0) == INT64_MIN && number(got, 1) == 7, n, DTYPE_OF(i64));
  BAD(string_to_number, RVM_ARITHMETIC_ERROR, "element 0, \"-9223372036854775808\", cannot be converted to i32", n,
      DTYPE_OF(i32));
  BAD(string_to_number, RVM_TYPE_ERROR, "cannot convert to bool; expected an integer dtype", n, DTYPE_OF(bool));
  static const char *const wrong[] = {"",   "-",  ".",    "1e",  "1.2.3", "0x10", "1_0",
                                      "e5", "in", "nano", "--1", "1e+",   "1 2"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    rvm_value bad = texts(1, wrong[i]);
    BAD(string_to_number, RVM_ARITHMETIC_ERROR, "cannot be converted to f64", bad, DTYPE_OF(f64));
    BAD(string_to_number, RVM_ARITHMETIC_ERROR, "cannot be converted to u64", bad, DTYPE_OF(u64));
    rvm_value_release(&bad);
  }
  RELEASE(x, n);
}

#endif
