#include "prim.h"

#include "value.h"

static const struct {
  const char *name, *operands, *fails;
} rows[] = {
#define PRIM_OPERATOR(name, function, operands, result, form, fails, meaning) {#name, #operands, fails},
#include "prim_operators.def"
#undef PRIM_OPERATOR
};

int32_t rvm_prim_operand_count(int32_t row) { return rows[row].operands[1] ? 2 : 1; }

rvm_status rvm_prim_fail(int32_t row, rvm_value a, rvm_value b, rvm_value *error) {
  const rvm_value operands[] = {a, b};
  for (int32_t i = 0; i < rvm_prim_operand_count(row); i++) {
    char type = rows[row].operands[i], text[RVM_DESCRIPTION_BYTES];
    int64_t tag = type == 'i' ? RVM_TAG_INT : type == 'f' ? RVM_TAG_FLOAT : RVM_TAG_BOOL;
    const char *expected = type == 'i' ? "an int" : type == 'f' ? "a float" : "a bool";
    if (operands[i].tag != tag)
      return rvm_fail(error, RVM_TYPE_ERROR, "%s: expected operand %d to be %s, got %s", rows[row].name, (int)i, expected,
                      rvm_value_describe(operands[i], text));
  }
  return rvm_fail(error, RVM_ARITHMETIC_ERROR, "%s: %s", rows[row].name, rows[row].fails);
}
