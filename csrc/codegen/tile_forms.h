/* tile_forms.h: the functions that compute a tile of a matrix product in registers, one for each form of a tile.

   A tile has `rows` rows and `vectors` vectors of columns.  Both must be constants, so that the sums are in registers.
   Each form is a function of its own, which all kernels share: inlined into the kernels, the forms would take most of
   the time to compile them. */
#ifndef RELVM_TILE_FORMS_H
#define RELVM_TILE_FORMS_H

#include "compiler.h"

/* Calls F(rows, vectors, ...) for each form. */
#define RVM_FOR_EACH_WIDTH(F, rows, ...) \
  F(rows, 1, __VA_ARGS__) F(rows, 2, __VA_ARGS__) F(rows, 3, __VA_ARGS__) F(rows, 4, __VA_ARGS__)
#define RVM_FOR_EACH_FORM(F, ...)       \
  RVM_FOR_EACH_WIDTH(F, 1, __VA_ARGS__) \
  RVM_FOR_EACH_WIDTH(F, 2, __VA_ARGS__) \
  RVM_FOR_EACH_WIDTH(F, 3, __VA_ARGS__) \
  RVM_FOR_EACH_WIDTH(F, 4, __VA_ARGS__) RVM_FOR_EACH_WIDTH(F, 5, __VA_ARGS__) RVM_FOR_EACH_WIDTH(F, 6, __VA_ARGS__)

#define RVM_DEFINE_FORM(rows, vectors, name, type, in_registers)                    \
  RVM_OUT_OF_LINE(void name##_##rows##x##vectors(const type *args, int64_t column), \
                  in_registers(args, rows, vectors, column);)
#define RVM_CALL_FORM(r, v, name, type, in_registers) \
  if (rows == r && vectors == v) name##_##r##x##v(args, column);

/* Defines name(args), where `args` points to a `type` with the numbers of rows, at most 6, and of columns.  row_bytes:
   the distance of the rows of args->a, in bytes.

   The function divides the columns into groups of at most `most` vectors of `lanes` columns each.  `most` is at most 4.
   It calls in_registers(args, rows, vectors, column) for each group, which begins at `column`.  If the numbers of rows
   and of columns are constants, the function consists only of calls of the right forms.  With RVM_COMPACT, only tiles
   of one row and of 6 rows have forms, and the rows of others are computed one by one. */
#ifdef RVM_COMPACT
#define RVM_DEFINE_TILES(name, type, in_registers, lanes, most, row_bytes)                                       \
  static inline RVM_ALWAYS_INLINE void name##_rows(const type *args, int rows) {                                 \
    int64_t j = 0;                                                                                               \
    for (; args->columns - j > ((most) - 1) * (lanes); j += (most) * (lanes)) in_registers(args, rows, most, j); \
    for (; j < args->columns; j += (lanes)) in_registers(args, rows, 1, j);                                      \
  }                                                                                                              \
  static RVM_NOINLINE void name(const type *args) {                                                              \
    type row = *args;                                                                                            \
    if (args->rows == 6) {                                                                                       \
      name##_rows(args, 6);                                                                                      \
      return;                                                                                                    \
    }                                                                                                            \
    for (int64_t r = 0; r < args->rows; r++, row.tile += row.tile_stride) {                                      \
      name##_rows(&row, 1);                                                                                      \
      row.a = (const void *)((const char *)row.a + (row_bytes));                                                 \
    }                                                                                                            \
  }
#else
#define RVM_DEFINE_TILES(name, type, in_registers, lanes, most, row_bytes)                                    \
  RVM_FOR_EACH_FORM(RVM_DEFINE_FORM, name, type, in_registers)                                                \
  static inline RVM_ALWAYS_INLINE void name##_form(const type *args, int rows, int vectors, int64_t column) { \
    RVM_FOR_EACH_FORM(RVM_CALL_FORM, name, type, in_registers)                                                \
  }                                                                                                           \
  static inline RVM_ALWAYS_INLINE void name##_rows(const type *args, int rows) {                              \
    const int vectors = ((int)args->columns + (lanes) - 1) / (lanes), rest = vectors % (most);                \
    const int full = (vectors - rest) * (lanes);                                                              \
    for (int j = 0; j < full; j += (most) * (lanes)) name##_form(args, rows, most, j);                        \
    if (rest) name##_form(args, rows, rest, full);                                                            \
  }                                                                                                           \
  RVM_OUT_OF_LINE(                                                                                            \
      void name##_any_rows(const type *args), switch (args->rows) {                                           \
        case 1: name##_rows(args, 1); break;                                                                  \
        case 2: name##_rows(args, 2); break;                                                                  \
        case 3: name##_rows(args, 3); break;                                                                  \
        case 4: name##_rows(args, 4); break;                                                                  \
        case 5: name##_rows(args, 5); break;                                                                  \
        default: name##_rows(args, 6); break;                                                                 \
      })                                                                                                      \
  static inline RVM_ALWAYS_INLINE void name(const type *args) {                                               \
    if (__builtin_constant_p(args->rows))                                                                     \
      name##_rows(args, (int)args->rows);                                                                     \
    else                                                                                                      \
      name##_any_rows(args);                                                                                  \
  }
#endif

#endif
