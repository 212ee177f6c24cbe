/* scalar_ops.c: error messages of the scalar operators. */
#include "cold.h"

#include "scalar_ops.h"

#include "number_format.h"
#include "value.h"

static const struct {
  char name[16], operands[3];
  const char *fails;
} rows[] = {
#define SCALAR_OPERATOR(name, function, operands, result, form, fails, meaning) {#name, #operands, fails},
#include "scalar_operators.def"
#undef SCALAR_OPERATOR
};

int32_t rvm_scalar_op_operand_count(int32_t row) { return rows[row].operands[1] ? 2 : 1; }

/* Formats an int or a float operand for a message.  Bools do not occur, because every operator on bools has a value. */
static void number_write(rvm_value value, char text[RVM_NUMBER_BYTES]) {
  rvm_number_write(value.tag == RVM_TAG_INT ? RVM_DTYPE_i64 : RVM_DTYPE_f64, &value.as, text);
}

rvm_status rvm_scalar_op_fail(int32_t row, rvm_value a, rvm_value b, rvm_value *error) {
  const rvm_value operands[] = {a, b};
  for (int32_t i = 0; i < rvm_scalar_op_operand_count(row); i++) {
    char type = rows[row].operands[i], text[RVM_DESCRIPTION_BYTES];
    int64_t tag = type == 'i' ? RVM_TAG_INT : type == 'f' ? RVM_TAG_FLOAT : RVM_TAG_BOOL;
    const char *expected = type == 'i' ? "an int" : type == 'f' ? "a float" : "a bool";
    if (operands[i].tag != tag)
      return rvm_fail(error, RVM_TYPE_ERROR, "%s: expected operand %d to be %s, got %s", rows[row].name, (int)i,
                      expected, rvm_value_describe(operands[i], text));
  }
  char first[RVM_NUMBER_BYTES], second[RVM_NUMBER_BYTES] = "";
  number_write(a, first);
  int32_t has_second = rvm_scalar_op_operand_count(row) > 1;
  if (has_second) number_write(b, second);
  return rvm_fail(error, RVM_ARITHMETIC_ERROR, "%s(%s%s%s): %s", rows[row].name, first, has_second ? ", " : "", second,
                  rows[row].fails);
}
