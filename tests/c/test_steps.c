/* test_steps.c: steps that check, copy, compare and compute (steps.h), and their selection by types. */
#include "steps.h"

static void checks(void) {
  begin();
  uint32_t of[3], twice, late, number, dtype, place;
  const uint32_t dtypes[] = {i64, f64, boolean};
  for (int k = 0; k < 3; k++) {
    of[k] = function((const char *[]){"of_int", "of_float", "of_bool"}[k], "x", 1);
    PARAMETER_IS(0, dtypes[k]);
    RETURN(0);
  }
  twice = function("twice", "x", 1);
  PARAMETER_IS(0, i64);
  PARAMETER_IS(0, f64);
  RETURN(0);
  late = function("late", "", 1); /* of a register that is not a parameter */
  DO(0, make_tuple, I(1));
  PARAMETER_IS(0, i64);
  RETURN(0);
  const uint32_t no_dtype = function("no_dtype", "x", 1);
  DO(NONE, check, R(0), C(half), C(text));
  RETURN(0);
  const uint32_t no_place = function("no_place", "x", 1);
  DO(NONE, check, R(0), C(i64), C(i64));
  RETURN(0);
  const uint32_t few = function("few", "x", 1);
  DO(NONE, check, R(0), C(i64));
  RETURN(0);
  const uint32_t few_of_tensor = function("few_of_tensor", "x", 1);
  DO(NONE, check_tensor, R(0), I(0), C(f32));
  RETURN(0);
  number = function("number", "x", 1);
  DO(NONE, check, I(3), C(i64), C(text));
  DO(NONE, check, R(0), C(f32), C(text));
  RETURN(0);
  dtype = function("dtype", "x", 2); /* with a dtype that is not a constant */
  DO(1, copy, C(i64));
  DO(NONE, check, R(0), R(1), C(text));
  DO(NONE, check, R(0), C(half), C(text));
  RETURN(0);
  place = function("place", "x", 2); /* with a result; with a subject that is not a string */
  DO(1, check, R(0), C(i64), C(text));
  DO(NONE, check, R(0), C(i64), C(i64));
  RETURN(1);
  run_with(NULL);
  const rvm_value nil = {0};
  EXPECT("3", of[0], int_value(3));
  EXPECT("0.5", of[1], float_value(0.5));
  EXPECT("true", of[2], bool_value(1));
  for (int k = 0; k < 3; k++) {
    EXPECT("!x: expected a scalar of dtype ", of[k], nil);
  }
  EXPECT("!x: expected a scalar of dtype f64, got int", twice, int_value(3));
  EXPECT("!x: expected a scalar of dtype i64, got tuple", late);
  EXPECT("!expected argument 2 to be a dtype, got float", no_dtype, int_value(3));
  EXPECT("!expected argument 3 to be a string, got dtype", no_place, int_value(3));
  EXPECT("!wrong number of arguments: 2", few, int_value(3));
  EXPECT("!wrong number of arguments: 3", few_of_tensor, int_value(3));
  EXPECT("0.5", number, float_value(0.5));
  EXPECT("!expected argument 2 to be a dtype, got float", dtype, int_value(1));
  EXPECT("!expected argument 3 to be a string, got dtype", place, int_value(1));
  end();
}

static void checks_of_tensors(void) {
  begin();
  const uint32_t anything = function("anything", "x", 1);
  DO(NONE, check_tensor, R(0), I(-1), N, C(text));
  RETURN(0);
  const uint32_t scalar = function("scalar", "x", 1);
  DO(NONE, check_tensor, R(0), I(0), C(f32), C(text));
  RETURN(0);
  const uint32_t others = function("others", "x", 3); /* without steps of their own */
  DO(1, check_tensor, R(0), I(0), C(f32), C(text));
  DO(2, copy, I(0));
  DO(NONE, check_tensor, R(0), R(2), C(f32), C(text));
  DO(2, copy, C(f32));
  DO(NONE, check_tensor, R(0), I(0), R(2), C(text));
  DO(NONE, check_tensor, R(0), I(0), C(f32), C(half));
  RETURN(0);
  run_with(NULL);
  rvm_value right = tensor_value(RVM_DTYPE_f32, 0, NULL), wrong = tensor_value(RVM_DTYPE_i64, 1, (int64_t[]){2}),
            rank = tensor_value(RVM_DTYPE_f32, 1, (int64_t[]){2}), dtype = tensor_value(RVM_DTYPE_i64, 0, NULL);
  EXPECT("a tensor of rank 1 and dtype i64", anything, wrong);
  EXPECT("!x: expected a tensor", anything, int_value(1));
  EXPECT("a tensor of rank 0 and dtype f32", scalar, right);
  EXPECT("!x: expected ", scalar, wrong);
  EXPECT("!x: expected ", scalar, rank);
  EXPECT("!x: expected ", scalar, dtype);
  EXPECT("!x: expected ", scalar, int_value(1));
  EXPECT("!expected argument 4 to be a string, got float", others, right);
  rvm_value_release(&right);
  rvm_value_release(&wrong);
  rvm_value_release(&rank);
  rvm_value_release(&dtype);
  end();
}

static void copies_and_items(void) {
  begin();
  const uint32_t moved = function("moved", "x", 3);
  PARAMETER_IS(0, i64);
  DO(1, copy, R(0));
  DO(2, copy, R(1));
  DO(2, copy, I(5));
  RETURN(1);
  const uint32_t copied = function("copied", "x", 3);
  DO(1, copy, R(0));
  DO(1, copy, C(text));
  DO(1, copy, R(0));
  DO(NONE, copy, R(0)); /* without a destination */
  DO(2, copy, C(half));
  DO(2, copy, F(make_tuple));
  RETURN(1);
  const uint32_t context = function("context", "", 1);
  DO(0, copy, X);
  RETURN(0);
  const uint32_t nothing = function("nothing", "", 1);
  DO(0, copy);
  RETURN(0);
  const uint32_t whole = function("whole", "x", 2);
  DO(1, item, R(0));
  RETURN(1);
  const uint32_t forever = function("forever", "", 1);
  TAIL_CALL(&program, forever);
  const uint32_t unlikely =
      function("unlikely", "x", 3); /* an int register, and a copy of a value that is never computed */
  DO(2, copy, I(5));
  IF(&program, 0, 3 + 4 + 5);
  DO(1, forever);
  DO(2, copy, R(1));
  RESET(&program, 0);
  GOTO(&program, 4);
  RETURN(2);
  RETURN(2);
  const uint32_t items = function("items", "x i", 4);
  DO(2, item, R(0), R(1));
  DO(NONE, item, R(0), R(1));
  RETURN(2);
  const uint32_t conditions = function("conditions", "x", 4);
  DO(1, truth, R(0));
  DO(2, dim, N, I(2), I(7));
  DO(NONE, host, R(0));
  UNARY(3, i64_of_bool, R(1));
  RETURN(3);
  run_with(NULL);
  rvm_value words = string_value("words"), pair = tuple_value(2, (rvm_value[]){int_value(1), words}), nil = {0};
  EXPECT("3", moved, int_value(3));
  EXPECT("string", copied, words);
  EXPECT("!", context);
  EXPECT("1", conditions, bool_value(1));
  EXPECT("!wrong number of arguments: 0", nothing);
  EXPECT("!wrong number of arguments: 1", whole, pair);
  EXPECT("5", unlikely, bool_value(0));
  EXPECT("!condition: expected", unlikely, words);
  EXPECT("string", items, pair, int_value(1));
  EXPECT("!index", items, pair, int_value(2));
  EXPECT("!", items, pair, nil);
  EXPECT("!", items, words, int_value(0));
  CHECK_INT(words.as.object->references, 2);
  rvm_value_release(&words);
  rvm_value_release(&pair);
  end();
}

/* Builds name(x, y): 1 or 0, the result of x `row` y, or of x `row` 3. */
static uint32_t comparison(const char *name, uint32_t row, uint32_t second) {
  const uint32_t made = function(name, "x y", 4);
  PARAMETER_IS(0, i64);
  PARAMETER_IS(1, i64);
  PRIM(&program, 2, row, R(0), second);
  IF(&program, 2, 3 + 5 + 2);
  DO(3, copy, I(1));
  RETURN(3);
  DO(3, copy, I(0));
  RETURN(3);
  return made;
}

static void comparisons(void) {
  static const char *const names[] = {"eq", "ne", "lt", "le", "gt", "ge", "eq3", "ne3", "lt3", "le3", "gt3", "ge3"};
  uint32_t of[12];
  begin();
  for (uint32_t k = 0; k < 12; k++) of[k] = comparison(names[k], RVM_SCALAR_OP_eq_i64 + k % 6, k < 6 ? R(1) : I(3));
  const uint32_t elsewhere = function("elsewhere", "x y", 4); /* the `if` tests another register, or does not follow */
  PARAMETER_IS(0, i64);
  PARAMETER_IS(1, i64);
  BINARY(2, lt_i64, R(0), R(1));
  BINARY(3, lt_i64, R(1), R(0));
  IF(&program, 2, 3);
  BINARY(2, lt_i64, R(0), I(7));
  BINARY(3, lt_i64, R(1), I(7));
  RETURN(3);
  const uint32_t any = function("any", "x y", 3);
  BINARY(2, lt_i64, R(0), R(1));
  IF(&program, 2, 3 + 2);
  RETURN(0);
  RETURN(1);
  const uint32_t literal = function("literal", "x", 2); /* with a literal first: no specialized step */
  PARAMETER_IS(0, i64);
  BINARY(1, lt_i64, I(3), R(0));
  RETURN(1);
  const uint32_t mixed = function("mixed", "x", 3); /* the destination also holds objects */
  PARAMETER_IS(0, i64);
  DO(1, copy, C(text));
  BINARY(1, lt_i64, R(0), I(3));
  BINARY(1, lt_i64, R(0), R(0));
  RETURN(1);
  run_with(NULL);
  for (int64_t x = 2; x <= 4; x++) {
    const int so[] = {x == 3, x != 3, x < 3, x <= 3, x > 3, x >= 3};
    for (int k = 0; k < 12; k++) EXPECT(so[k % 6] ? "1" : "0", of[k], int_value(x), int_value(3));
  }
  EXPECT("true", elsewhere, int_value(3), int_value(4));
  EXPECT("false", elsewhere, int_value(3), int_value(8));
  EXPECT("3", any, int_value(3), int_value(4));
  EXPECT("4", any, int_value(5), int_value(4));
  EXPECT("!lt_i64: expected", any, float_value(3), int_value(4));
  EXPECT("true", literal, int_value(5));
  EXPECT("false", mixed, int_value(1));
  end();
}

static void operators_that_fail(void) {
  begin();
  const uint32_t registers = function("registers", "x y", 3);
  PARAMETER_IS(0, i64);
  PARAMETER_IS(1, i64);
  BINARY(2, floordiv_i64, R(0), R(1));
  BINARY(2, shl_i64, R(2), I(62));
  RETURN(2);
  const uint32_t literals = function("literals", "x", 2);
  PARAMETER_IS(0, i64);
  BINARY(1, mod_i64, R(0), I(0));
  RETURN(1);
  const uint32_t rounded = function("rounded", "x", 3);
  PARAMETER_IS(0, f64);
  BINARY(1, add_f64, R(0), C(half));
  UNARY(2, i64_of_f64, R(1));
  RETURN(2);
  const uint32_t of_bool = function("of_bool", "x", 2);
  PARAMETER_IS(0, boolean);
  UNARY(1, not_bool, R(0));
  RETURN(1);
  run_with(NULL);
  EXPECT("4611686018427387904", registers, int_value(3), int_value(2));
  EXPECT("!floordiv_i64(3, 0): integer division by zero", registers, int_value(3), int_value(0));
  EXPECT("!mod_i64(3, 0): integer division by zero", literals, int_value(3));
  EXPECT("3", rounded, float_value(2.5));
  EXPECT("!i64_of_f64(1e+300): ", rounded, float_value(1e300));
  EXPECT("false", of_bool, bool_value(1));
  end();
}

enum { CHAIN = 50 };

/* Types that need many rounds of inference: of functions that call the next one, and of registers around a loop. */
static void types_that_settle_late(void) {
  begin();
  uint32_t functions[CHAIN];
  for (uint32_t k = 0; k < CHAIN; k++) {
    functions[k] = function("chain", "n", 2);
    image_record(&program, functions[k])->name =
        image_string(&program, (char[]){'c', (char)('A' + k % 26), (char)('a' + k / 26), 0});
    PARAMETER_IS(0, i64);
    if (k + 1 < CHAIN) {
      DO(1, functions[k] + 1, R(0));
      BINARY(1, add_i64, R(1), I(1));
    } else {
      BINARY(1, add_i64, R(0), I(1));
    }
    RETURN(1);
  }
  const uint32_t around = function("around", "x n", CHAIN + 3);
  PARAMETER_IS(1, i64);
  for (uint32_t k = 2; k < CHAIN + 3; k++) DO(k, copy, I((int)k));
  const int32_t loop = image_here(&program);
  for (uint32_t k = 2; k < CHAIN + 1; k++) DO(k, copy, R(k + 1));
  DO(CHAIN + 1, copy, R(0));
  BINARY(1, sub_i64, R(1), I(1));
  BINARY(CHAIN + 2, le_i64, R(1), I(0));
  IF(&program, CHAIN + 2, loop - image_here(&program));
  RETURN(2);
  run_with(NULL);
  rvm_value words = string_value("words");
  EXPECT("53", functions[0], int_value(3));
  CHECK_OK(RUN(around, words, int_value(3)), result);
  CHECK_INT(result.as.i, 5);
  for (int is_stepped = 0; is_stepped < 2; is_stepped++) {
    observe(0, is_stepped);
    CHECK_OK(RUN(around, words, int_value(CHAIN)), result);
    CHECK(result.as.string == words.as.string);
    rvm_value_release(&result);
  }
  observe(0, 0);
  CHECK_INT(words.as.object->references, 1);
  rvm_value_release(&words);
  end();
}

int main(void) {
  static void (*const tests[])(void) = {
      checks, checks_of_tensors, copies_and_items, comparisons, operators_that_fail, types_that_settle_late,
  };
  return run_tests(tests, COUNT_OF(tests));
}
