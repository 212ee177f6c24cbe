/* number_format.c: converts numbers to and from text independently of the locale.  The decimal point of strtod and
   printf depends on the locale.  Therefore strtod receives digits and an exponent without a point, and the point in the
   output of printf is skipped. */
#include "cold.h"

#include "number_format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "small_floats.h"

/* ---- numbers to text ---- */

enum { MAX_DIGITS = 17, EXPONENT_BYTES = 16 };

/* The properties of the float dtypes.  kept: how many significant decimal digits survive a conversion to a normal
   number of the dtype and back (FLT_DIG in C).  needed: how many digits distinguish all values (FLT_DECIMAL_DIG).
   normal: the smallest normal number. */
static const struct {
  int32_t dtype, kept, needed;
  double normal;
} floats[] = {
    {RVM_DTYPE_f16, 3, 5, 6.103515625e-05}, {RVM_DTYPE_f32, 6, 9, 0x1p-126}, {RVM_DTYPE_f64, 15, 17, 0x1p-1022}};

/* Returns the number of the dtype nearest to 0.DIGITS * 10^exponent. */
static double number_of(int32_t dtype, const char *digits, int32_t exponent) {
  char text[MAX_DIGITS + EXPONENT_BYTES];
  snprintf(text, sizeof text, "%se%d", digits, exponent - (int32_t)strlen(digits));
  if (dtype == RVM_DTYPE_f64) return strtod(text, NULL);
  float nearest = strtof(text, NULL);
  return dtype == RVM_DTYPE_f16 ? rvm_f32_of_f16(rvm_f16_of_f32(nearest)) : nearest;
}

/* Increments the digits as a decimal number: 199 becomes 200, and 999 becomes 100 with the next exponent. */
static void next_digits(char *digits, int32_t *exponent) {
  int32_t i = (int32_t)strlen(digits) - 1;
  for (; i >= 0 && digits[i] == '9'; i--) digits[i] = '0';
  if (i >= 0) {
    digits[i]++;
  } else {
    digits[0] = '1';
    ++*exponent;
  }
}

/* Finds the fewest digits with which 0.DIGITS * 10^exponent reads back as `value`, which is positive.  For a normal
   number, the search starts with `kept` digits: if fewer are enough, these digits end with zeros, which are removed. */
static void shortest(int32_t dtype, double value, char digits[MAX_DIGITS + 1], int32_t *exponent) {
  size_t row = 0;
  while (floats[row].dtype != dtype) row++;
  int32_t count = value < floats[row].normal ? 1 : floats[row].kept;
  for (; count <= floats[row].needed; count++) {
    char text[MAX_DIGITS + EXPONENT_BYTES];
    snprintf(text, sizeof text, "%.*e", (int)count - 1, value);
    int32_t written = 0;
    const char *next = text;
    for (; *next != 'e'; next++)
      if (*next >= '0' && *next <= '9') digits[written++] = *next;
    digits[written] = '\0';
    *exponent = (int32_t)strtol(next + 1, NULL, 10) + 1;
    if (number_of(dtype, digits, *exponent) == value) break;
    /* Even if the nearest number of this length does not read back as `value`, the next larger one may: above a power
       of two, floats are spaced farther apart than below it. */
    next_digits(digits, exponent);
    if (number_of(dtype, digits, *exponent) == value) break;
  }
  for (size_t length = strlen(digits); length > 1 && digits[length - 1] == '0'; length--) digits[length - 1] = '\0';
}

static int32_t float_write(int32_t dtype, double value, char text[RVM_NUMBER_BYTES]) {
  const char *sign = signbit(value) ? "-" : "";
  double magnitude = fabs(value);
  if (isnan(value)) return snprintf(text, RVM_NUMBER_BYTES, "nan");
  if (isinf(value)) return snprintf(text, RVM_NUMBER_BYTES, "%sinf", sign);
  if (value == 0) return snprintf(text, RVM_NUMBER_BYTES, "%s0.0", sign);
  char digits[MAX_DIGITS + 1];
  int32_t exponent = 0;
  shortest(dtype, magnitude, digits, &exponent);
  int32_t count = (int32_t)strlen(digits);
  if (magnitude < 1e-4 || magnitude >= 1e16)
    return snprintf(text, RVM_NUMBER_BYTES, "%s%c%s%se%+03d", sign, digits[0], count > 1 ? "." : "", digits + 1,
                    exponent - 1);
  /* Without an exponent, the digits 125 are written as 0.00125, 12500.0 or 12.5. */
  if (exponent <= 0) return snprintf(text, RVM_NUMBER_BYTES, "%s0.%.*s%s", sign, -exponent, "000", digits);
  if (count <= exponent)
    return snprintf(text, RVM_NUMBER_BYTES, "%s%s%.*s.0", sign, digits, exponent - count, "0000000000000000");
  return snprintf(text, RVM_NUMBER_BYTES, "%s%.*s.%s", sign, exponent, digits, digits + exponent);
}

int32_t rvm_number_write(int32_t dtype, const void *element, char text[RVM_NUMBER_BYTES]) {
  uint64_t bits = 0;
  memcpy(&bits, element, (size_t)rvm_dtype_size_bytes(dtype)); /* little-endian */
  switch (dtype) {
    case RVM_DTYPE_bool: return snprintf(text, RVM_NUMBER_BYTES, bits ? "True" : "False");
    case RVM_DTYPE_i8: return snprintf(text, RVM_NUMBER_BYTES, "%d", (int8_t)bits);
    case RVM_DTYPE_i16: return snprintf(text, RVM_NUMBER_BYTES, "%d", (int16_t)bits);
    case RVM_DTYPE_i32: return snprintf(text, RVM_NUMBER_BYTES, "%" PRId32, (int32_t)bits);
    case RVM_DTYPE_i64: return snprintf(text, RVM_NUMBER_BYTES, "%" PRId64, (int64_t)bits);
    case RVM_DTYPE_f16: return float_write(dtype, rvm_f32_of_f16((uint16_t)bits), text);
    case RVM_DTYPE_f32: return float_write(dtype, *(const float *)element, text);
    case RVM_DTYPE_f64: return float_write(dtype, *(const double *)element, text);
  }
  return snprintf(text, RVM_NUMBER_BYTES, "%" PRIu64, bits); /* an unsigned integer dtype */
}

/* ---- text to numbers ---- */

static int is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* Returns whether the text equals `word` apart from the case of its letters.  `word` is in lower case. */
static int is_word(rvm_text text, const char *word) {
  if (text.length != (int64_t)strlen(word)) return 0;
  for (int64_t i = 0; i < text.length; i++)
    if ((text.bytes[i] | 0x20) != word[i]) return 0;
  return 1;
}

/* Reads the digits of an integer of 64 bits, and returns 1.  Returns 0 if the text is not a number or the integer is
   out of range.  negative: whether a minus sign precedes the digits. */
static int32_t integer_read(rvm_text text, int negative, int is_signed, void *element) {
  uint64_t magnitude = 0;
  const uint64_t signed_limit = (uint64_t)INT64_MAX + (uint64_t)negative, unsigned_limit = negative ? 0 : UINT64_MAX;
  const uint64_t limit = is_signed ? signed_limit : unsigned_limit;
  if (text.length == 0) return 0;
  for (int64_t i = 0; i < text.length; i++) {
    uint64_t digit = (uint64_t)(text.bytes[i] - '0');
    if (!is_digit(text.bytes[i]) || digit > limit || magnitude > (limit - digit) / 10) return 0;
    magnitude = magnitude * 10 + digit;
  }
  const uint64_t number = negative ? 0 - magnitude : magnitude;
  memcpy(element, &number, sizeof number);
  return 1;
}

/* USED_DIGITS digits decide how any decimal number rounds to f64.  Exponents beyond EXPONENT_LIMIT give the same result
   as the limit. */
enum { USED_DIGITS = 800, EXPONENT_LIMIT = 1000000 };

/* Reads digits with an optional point at the start of a text.  The number is DIGITS * 10^*exponent.  Stores its
   significant digits, at most USED_DIGITS, in `digits`, and their number in *used.  Returns the length of what was
   read, or 0 if the text does not begin with a number. */
static int64_t digits_read(rvm_text text, char digits[USED_DIGITS], int32_t *used, int64_t *exponent) {
  int has_digits = 0, has_point = 0, is_inexact = 0;
  int64_t i = 0;
  *used = 0;
  *exponent = 0;
  for (; i < text.length; i++) {
    const char c = text.bytes[i];
    if (c == '.' && !has_point) {
      has_point = 1;
      continue;
    }
    if (!is_digit(c)) break;
    has_digits = 1;
    *exponent -= has_point;
    const int is_leading_zero = *used == 0 && c == '0', is_omitted = *used == USED_DIGITS;
    if (is_omitted) {
      is_inexact |= c != '0';
      ++*exponent;
    } else if (!is_leading_zero) {
      digits[(*used)++] = c;
    }
  }
  if (*used == 0) digits[(*used)++] = '0';
  /* A number exactly halfway between two floats has fewer than USED_DIGITS digits, so its last stored digit would be 0.
     If an omitted digit is not 0, the number is not halfway.  An odd last digit ensures that the number in `digits` is
     not halfway either. */
  if (is_inexact) digits[*used - 1] |= 1;
  return has_digits ? i : 0;
}

/* Adds an exponent, such as e-5, to *exponent, and returns 1.  An empty text is the exponent 0.  Returns 0 if the text
   is not an exponent. */
static int32_t exponent_read(rvm_text text, int64_t *exponent) {
  if (text.length == 0) return 1;
  const int has_sign = text.length > 1 && (text.bytes[1] == '-' || text.bytes[1] == '+');
  const int64_t first = has_sign ? 2 : 1; /* the index of the first digit */
  if ((text.bytes[0] | 0x20) != 'e' || first == text.length) return 0;
  int64_t magnitude = 0;
  for (int64_t i = first; i < text.length; i++) {
    if (!is_digit(text.bytes[i])) return 0;
    if (magnitude < INT64_MAX / 100) magnitude = magnitude * 10 + (text.bytes[i] - '0');
  }
  *exponent += text.bytes[1] == '-' ? -magnitude : magnitude;
  return 1;
}

/* Rewrites a decimal number, with an optional point and exponent, as "DIGITSeEXPONENT" in `buffer`, and returns 1.
   Returns 0 if the text is not such a number. */
static int32_t decimal_read(rvm_text text, char buffer[USED_DIGITS + EXPONENT_BYTES + 2]) {
  int32_t used;
  int64_t exponent;
  const int64_t length = digits_read(text, buffer, &used, &exponent);
  if (length == 0 || !exponent_read((rvm_text){text.bytes + length, text.length - length}, &exponent)) return 0;
  if (exponent < -EXPONENT_LIMIT) exponent = -EXPONENT_LIMIT;
  if (exponent > EXPONENT_LIMIT) exponent = EXPONENT_LIMIT;
  snprintf(buffer + used, EXPONENT_BYTES, "e%d", (int)exponent);
  return 1;
}

/* Like integer_read, for an f32 or f64.  The text can also be infinity or NaN. */
static int32_t float_read(rvm_text text, int negative, int32_t dtype, void *element) {
  char buffer[USED_DIGITS + EXPONENT_BYTES + 2];
  const char *number = buffer; /* in a form that strtod and strtof accept */
  if (is_word(text, "inf") || is_word(text, "infinity"))
    number = "inf";
  else if (is_word(text, "nan"))
    number = "nan";
  else if (!decimal_read(text, buffer))
    return 0;
  if (dtype == RVM_DTYPE_f64) {
    const double value = strtod(number, NULL), signed_value = negative ? -value : value;
    memcpy(element, &signed_value, sizeof signed_value);
  } else {
    const float value = strtof(number, NULL), signed_value = negative ? -value : value;
    memcpy(element, &signed_value, sizeof signed_value);
  }
  return 1;
}

int32_t rvm_number_read(rvm_text text, int32_t dtype, void *element) {
  while (text.length > 0 && is_space(text.bytes[text.length - 1])) text.length--;
  for (; text.length > 0 && is_space(text.bytes[0]); text.length--) text.bytes++;
  int negative = text.length > 0 && text.bytes[0] == '-';
  if (text.length > 0 && (text.bytes[0] == '-' || text.bytes[0] == '+')) {
    text.bytes++;
    text.length--;
  }
  if (dtype > RVM_DTYPE_u64) return float_read(text, negative, dtype, element);
  int64_t integer;
  if (!integer_read(text, negative, dtype != RVM_DTYPE_u64, &integer)) return 0;
  if (dtype != RVM_DTYPE_u64 && !rvm_dtype_holds(dtype, integer)) return 0;
  memcpy(element, &integer, (size_t)rvm_dtype_size_bytes(dtype)); /* little-endian */
  return 1;
}
