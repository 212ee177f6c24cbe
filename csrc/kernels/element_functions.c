/* element_functions.c: see element_functions.h.  Compiled for several levels of processors (kernel_levels.c). */
#include "element_functions.h"

#include <math.h>

#include "compiler.h"
#include "kernel_conversions.h"
#include "kernel_loops.h"
#include "reproducible.h"
#include "selected.h"
#include "small_floats.h"

#define DTYPE(name, code, bits, ctype, numpy) typedef ctype rvm_##name;
#include "dtypes.def"
#undef DTYPE

/* The families of kernel_functions.def.  Each applies the macro ROW to all dtypes of the family. */
#define INTEGERS(ROW, ...) \
  ROW(i8, __VA_ARGS__)     \
  ROW(i16, __VA_ARGS__)    \
  ROW(i32, __VA_ARGS__)    \
  ROW(i64, __VA_ARGS__) ROW(u8, __VA_ARGS__) ROW(u16, __VA_ARGS__) ROW(u32, __VA_ARGS__) ROW(u64, __VA_ARGS__)
#define SINGLE(ROW, ...) ROW(f32, __VA_ARGS__)
#define FLOATS(ROW, ...) ROW(f32, __VA_ARGS__) ROW(f64, __VA_ARGS__)
#define NUMBERS(ROW, ...) INTEGERS(ROW, __VA_ARGS__) FLOATS(ROW, __VA_ARGS__)
#define ORDERED(ROW, ...) ROW(bool, __VA_ARGS__) NUMBERS(ROW, __VA_ARGS__)

/* Integer division by 0 gives 0, and the smallest integer divided by -1 wraps around.  The divisor is replaced by 1 if
   it is 0 or -1, so that a vectorized loop, which computes all cases, cannot trap. */
#define RVM_IS_MINUS_ONE(y) ((y) + 1 == 0 && (y) < 1 && (__typeof__(y))-1 < (__typeof__(y))1)
#define RVM_DIVIDE(x, y) \
  ((y) == 0 ? 0 : RVM_IS_MINUS_ONE(y) ? 0 - (x) : (x) / (RVM_IS_MINUS_ONE(y) || (y) == 0 ? 1 : (y)))
#define RVM_MODULO(x, y) ((y) == 0 || RVM_IS_MINUS_ONE(y) ? 0 : (x) % (RVM_IS_MINUS_ONE(y) || (y) == 0 ? 1 : (y)))
/* Shift counts are taken modulo the width. */
#define RVM_SHIFT_LEFT(x, y) ((x) << ((y) & (__typeof__(y))(sizeof(x) * 8 - 1)))
#define RVM_SHIFT_RIGHT(x, y) ((x) >> ((y) & (__typeof__(y))(sizeof(x) * 8 - 1)))

/* Computes out_[i] for i < n from the operands x = `left` and y = `right`, which are expressions in i. */
#define RVM_ELEMENT_LOOP(T, left, right, expression) \
  RVM_INDEPENDENT                                    \
  for (int64_t i = 0; i < n; i++) {                  \
    const T x = left, y = right;                     \
    (void)y;                                         \
    out_[i] = expression;                            \
  }

/* Defines the rvm_element_loop `name` of an element function with two operands.  R is the type of the result, and T
   that of the operands. */
#define RVM_TWO_OF_LOOPS(name, R, T, expression)                                                       \
  static RVM_UNUSED void name(int64_t n, void *out, const void *left, const void *right, int strips) { \
    R *out_ = out;                                                                                     \
    const T *a = left, *b = right;                                                                     \
    if (strips == (RVM_LEFT_IS_STRIP | RVM_RIGHT_IS_STRIP)) {                                          \
      RVM_ELEMENT_LOOP(T, a[i], b[i], expression)                                                      \
    } else if (strips == RVM_LEFT_IS_STRIP) {                                                          \
      const T right_ = *b;                                                                             \
      RVM_ELEMENT_LOOP(T, a[i], right_, expression)                                                    \
    } else {                                                                                           \
      const T left_ = *a;                                                                              \
      if (!(strips & RVM_RIGHT_IS_STRIP)) n = n > 0;                                                   \
      RVM_ELEMENT_LOOP(T, left_, b[i], expression)                                                     \
    }                                                                                                  \
  }
/* Like RVM_TWO_OF_LOOPS, for long expressions: one loop for all cases.  A scalar is copied to all elements of a
   strip. */
#define RVM_TWO_LONG(name, T, expression)                                                              \
  static RVM_UNUSED void name(int64_t n, void *out, const void *left, const void *right, int strips) { \
    T *out_ = out, copies[2][RVM_STRIP];                                                               \
    const T *a = left, *b = right;                                                                     \
    if (!(strips & (RVM_LEFT_IS_STRIP | RVM_RIGHT_IS_STRIP))) n = n > 0;                               \
    if (!(strips & RVM_LEFT_IS_STRIP)) {                                                               \
      for (int64_t i = 0; i < n; i++) copies[0][i] = *a;                                               \
      a = copies[0];                                                                                   \
    }                                                                                                  \
    if (!(strips & RVM_RIGHT_IS_STRIP)) {                                                              \
      for (int64_t i = 0; i < n; i++) copies[1][i] = *b;                                               \
      b = copies[1];                                                                                   \
    }                                                                                                  \
    RVM_ELEMENT_LOOP(T, a[i], b[i], expression)                                                        \
  }

/* Like RVM_TWO_OF_LOOPS, for operations without vector instructions: one loop for all cases, which is not
   vectorized. */
#define RVM_TWO_SCALAR(name, T, expression)                                                                \
  static RVM_UNUSED void name(int64_t n, void *out, const void *left, const void *right, int strips) {     \
    T *out_ = out;                                                                                         \
    const T *a = left, *b = right;                                                                         \
    const int64_t a_step = (strips & RVM_LEFT_IS_STRIP) != 0, b_step = (strips & RVM_RIGHT_IS_STRIP) != 0; \
    if (!strips) n = n > 0;                                                                                \
    for (int64_t i = 0; i < n; i++) {                                                                      \
      const T x = a[i * a_step], y = b[i * b_step];                                                        \
      out_[i] = expression;                                                                                \
    }                                                                                                      \
  }

#ifdef RVM_COMPACT
/* To make the code small, a function has one loop for strips and single elements: a single element is first copied to
   all elements of a strip.  Only the arithmetic of f32 has a loop for each case. */
#define RVM_SPLAT(type)                                                          \
  static const void *splat_##type(int64_t n, const void *element, void *strip) { \
    type *const elements = strip;                                                \
    const type x = *(const type *)element;                                       \
    RVM_INDEPENDENT                                                              \
    for (int64_t i = 0; i < n; i++) elements[i] = x;                             \
    return strip;                                                                \
  }
RVM_SPLAT(uint8_t)
RVM_SPLAT(uint16_t)
RVM_SPLAT(uint32_t)
RVM_SPLAT(uint64_t)
#undef RVM_SPLAT

static RVM_NOINLINE const void *splat(int64_t n, const void *element, void *strip, size_t bytes) {
  switch (bytes) {
    case 1: return splat_uint8_t(n, element, strip);
    case 2: return splat_uint16_t(n, element, strip);
    case 4: return splat_uint32_t(n, element, strip);
    default: return splat_uint64_t(n, element, strip);
  }
}

#define RVM_TWO(name, R, T, expression)                                                                \
  static RVM_UNUSED void name(int64_t n, void *out, const void *left, const void *right, int strips) { \
    R *out_ = out;                                                                                     \
    T strip[RVM_STRIP];                                                                                \
    if (strips == RVM_LEFT_IS_STRIP) right = splat(n, right, strip, sizeof(T));                        \
    if (strips == RVM_RIGHT_IS_STRIP) left = splat(n, left, strip, sizeof(T));                         \
    const T *a = left, *b = right;                                                                     \
    RVM_ELEMENT_LOOP(T, a[i], b[i], expression)                                                        \
  }
#define RVM_TWO_OF_f32 RVM_TWO_OF_LOOPS
#else
#define RVM_TWO RVM_TWO_OF_LOOPS
#define RVM_TWO_OF_f32 RVM_TWO
#endif
#define RVM_TWO_OF_f64 RVM_TWO
#define RVM_TWO_OF_i8 RVM_TWO
#define RVM_TWO_OF_i16 RVM_TWO
#define RVM_TWO_OF_i32 RVM_TWO
#define RVM_TWO_OF_i64 RVM_TWO
#define RVM_TWO_OF_u8 RVM_TWO
#define RVM_TWO_OF_u16 RVM_TWO
#define RVM_TWO_OF_u32 RVM_TWO
#define RVM_TWO_OF_u64 RVM_TWO
#define RVM_ONE(name, R, T, expression)                                                                \
  static RVM_UNUSED void name(int64_t n, void *out, const void *left, const void *right, int strips) { \
    R *out_ = out;                                                                                     \
    const T *a = left;                                                                                 \
    (void)right;                                                                                       \
    (void)strips;                                                                                      \
    RVM_INDEPENDENT                                                                                    \
    for (int64_t i = 0; i < n; i++) {                                                                  \
      const T x = a[i];                                                                                \
      out_[i] = expression;                                                                            \
    }                                                                                                  \
  }

#define RVM_BINARY_OF(dtype, name, expression) \
  RVM_TWO_OF_##dtype(name##_##dtype, rvm_##dtype, rvm_##dtype, (rvm_##dtype)(expression))
#define RVM_DIVISION_OF(dtype, name, expression) RVM_TWO_SCALAR(name##_##dtype, rvm_##dtype, (rvm_##dtype)(expression))
#define RVM_COMPARE_OF(dtype, name, expression) RVM_TWO(name##_##dtype, rvm_bool, rvm_##dtype, expression)
#define RVM_UNARY_OF(dtype, name, expression) \
  RVM_ONE(name##_##dtype, rvm_##dtype, rvm_##dtype, (rvm_##dtype)(expression))
#define RVM_CONVERT_OF(dtype, target) \
  RVM_ONE(to_##target##_##dtype, rvm_##target, rvm_##dtype, RVM_TO_##target(dtype, x))

/* Floats are converted to integers by kernel_conversions.h, which defines the result for every value. */
#define RVM_PLAIN(target, x) ((rvm_##target)(x))
#define RVM_TO_INTEGER(target, dtype, x)          \
  _Generic((x),                                   \
      float: rvm_##target##_of_f32((float)(x)),   \
      double: rvm_##target##_of_f64((double)(x)), \
      default: RVM_PLAIN(target, x))
#define RVM_TO_bool(dtype, x) ((x) != 0)
#define RVM_TO_i8(dtype, x) RVM_TO_INTEGER(i8, dtype, x)
#define RVM_TO_i16(dtype, x) RVM_TO_INTEGER(i16, dtype, x)
#define RVM_TO_i32(dtype, x) RVM_TO_INTEGER(i32, dtype, x)
#define RVM_TO_i64(dtype, x) RVM_TO_INTEGER(i64, dtype, x)
#define RVM_TO_u8(dtype, x) RVM_TO_INTEGER(u8, dtype, x)
#define RVM_TO_u16(dtype, x) RVM_TO_INTEGER(u16, dtype, x)
#define RVM_TO_u32(dtype, x) RVM_TO_INTEGER(u32, dtype, x)
#define RVM_TO_u64(dtype, x) RVM_TO_INTEGER(u64, dtype, x)
#define RVM_TO_f32(dtype, x) RVM_PLAIN(f32, x)
#define RVM_TO_f64(dtype, x) RVM_PLAIN(f64, x)

#define BINARY(name, family, expression) family(RVM_BINARY_OF, name, expression)
#define DIVISION(name, family, expression) family(RVM_DIVISION_OF, name, expression)
#define COMPARE(name, family, expression) family(RVM_COMPARE_OF, name, expression)
#define UNARY(name, family, expression) family(RVM_UNARY_OF, name, expression)
#define CONVERT(target, family) family(RVM_CONVERT_OF, target)
#define MATH(name, single, twice) RVM_ONE(name##_f32, float, float, single) RVM_ONE(name##_f64, double, double, twice)
#define MATH2(name, single, twice) RVM_TWO_LONG(name##_f32, float, single) RVM_TWO_LONG(name##_f64, double, twice)
#define MAP(name, result, operand, expression) RVM_ONE(map_##name, rvm_##result, rvm_##operand, expression)
#define MAP2(name, result, operand, expression) RVM_TWO(map_##name, rvm_##result, rvm_##operand, expression)
#include "kernel_functions.def"
#undef BINARY
#undef DIVISION
#undef COMPARE
#undef UNARY
#undef CONVERT
#undef MATH
#undef MATH2
#undef MAP
#undef MAP2

#include "shared_functions.h"

/* The fuel for a strip.  FMOD_COST is high because fmod of f64 loops over the bits of the quotient. */
enum { PLAIN_COST = 16, MATH_COST = 64, SLOW_COST = 256, FMOD_COST = 4096 };

/* A row of the table.  A selective library contains only the rows that it uses, and numbers them in this order. */
#define RVM_FUNCTION_ROW(name, ...) RVM_WHEN_USED(function_##name, {__VA_ARGS__}, )
#define RVM_BINARY_ROW(dtype, name, expression) \
  RVM_FUNCTION_ROW(name##_##dtype, name##_##dtype, sizeof(rvm_##dtype), sizeof(rvm_##dtype), 2, PLAIN_COST)
#define RVM_COMPARE_ROW(dtype, name, expression) \
  RVM_FUNCTION_ROW(name##_##dtype, name##_##dtype, sizeof(rvm_bool), sizeof(rvm_##dtype), 2, PLAIN_COST)
#define RVM_UNARY_ROW(dtype, name, expression) \
  RVM_FUNCTION_ROW(name##_##dtype, name##_##dtype, sizeof(rvm_##dtype), sizeof(rvm_##dtype), 1, PLAIN_COST)
#define RVM_CONVERT_ROW(dtype, target)                                                                         \
  RVM_FUNCTION_ROW(to_##target##_##dtype, to_##target##_##dtype, sizeof(rvm_##target), sizeof(rvm_##dtype), 1, \
                   PLAIN_COST)
#define BINARY(name, family, expression) family(RVM_BINARY_ROW, name, expression)
#define DIVISION BINARY
#define COMPARE(name, family, expression) family(RVM_COMPARE_ROW, name, expression)
#define UNARY(name, family, expression) family(RVM_UNARY_ROW, name, expression)
#define CONVERT(target, family) family(RVM_CONVERT_ROW, target)
#define MATH(name, single, twice)                              \
  RVM_FUNCTION_ROW(name##_f32, name##_f32, 4, 4, 1, MATH_COST) \
  RVM_FUNCTION_ROW(name##_f64, name##_f64, 8, 8, 1, SLOW_COST)
#define MATH2(name, single, twice)                             \
  RVM_FUNCTION_ROW(name##_f32, name##_f32, 4, 4, 2, SLOW_COST) \
  RVM_FUNCTION_ROW(name##_f64, name##_f64, 8, 8, 2, FMOD_COST)
#define MAP(name, result, operand, expression) \
  RVM_FUNCTION_ROW(name, map_##name, sizeof(rvm_##result), sizeof(rvm_##operand), 1, MATH_COST)
#define MAP2(name, result, operand, expression) \
  RVM_FUNCTION_ROW(name, map_##name, sizeof(rvm_##result), sizeof(rvm_##operand), 2, SLOW_COST)
extern const rvm_element_function RVM_OF_LEVEL(rvm_element_functions)[];
const rvm_element_function RVM_OF_LEVEL(rvm_element_functions)[] = {
#include "kernel_functions.def"
};
#ifdef RVM_IS_BASE_LEVEL
const int32_t rvm_element_function_count = sizeof rvm_element_functions / sizeof *rvm_element_functions;
#endif
