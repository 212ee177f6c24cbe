/* generator.c: generates well-typed code for a function.  The generator tracks the kind of value in each register.  It
   passes builtins arguments of the kinds in their signatures (builtins.def), and functions arguments that their first
   instructions accept.  Loops end.  The loader accepts all generated code. */
#include "generator.h"

#include <string.h>

#include "native.h"
#include "scalar_ops.h"
#include "verify.h"

enum { MAX_REGISTERS = 16, MAX_DEPTH = 3 };

/* The kind of value in a register.  NOTHING: not written on every path. */
typedef enum kind {
  NOTHING,
  ANY,
  INT,
  BOOL,
  FLOAT,
  TENSOR,
  LONGS,
  STRINGS,
  HEAP,
  SHAPE,
  TUPLE,
  LIST,
  FUNCTION,
  STORAGE,
  NIL,
  KIND_COUNT
} kind;

typedef struct generator {
  fuzz_random *random;
  const fuzz_program *program;
  uint32_t *words, count, most;
  uint32_t registers;
  uint8_t kinds[MAX_REGISTERS];
  uint8_t kept[MAX_REGISTERS]; /* kinds that must be the same at the end of the enclosing loop as at its start */
  uint8_t is_kept[MAX_REGISTERS];
  int depth;
  int64_t function; /* the function being generated */
} generator;

static const char *const signatures[] = {
#define BUILTIN(name, signature, effect, cost, decoded, meaning) signature,
#include "builtins.def"
#undef BUILTIN
};

static const char *const names[] = {
#define BUILTIN(name, signature, effect, cost, decoded, meaning) "vm.builtin." #name,
#include "builtins.def"
#undef BUILTIN
};

static const struct {
  const char *operands;
  char result;
} operators[] = {
#define SCALAR_OPERATOR(name, function, operands, result, form, fails, meaning) {#operands, #result[0]},
#include "scalar_operators.def"
#undef SCALAR_OPERATOR
};

int32_t fuzz_builtin_of(const char *name, size_t size_bytes) {
  for (int32_t i = 0; i < RVM_BUILTIN_COUNT; i++)
    if (strlen(names[i]) == size_bytes && memcmp(names[i], name, size_bytes) == 0) return i;
  return -1;
}

/* ---- kinds ---- */

/* Returns the kind of a function's parameter, or of its result (index -1).  Always the same for the same function. */
static kind expected(uint32_t function, int32_t index) {
  static const uint8_t usual[] = {INT, INT, BOOL, FLOAT, TENSOR, TENSOR, FUNCTION, ANY};
  fuzz_random random = function * 64 + (uint32_t)(index + 1);
  return (kind)usual[fuzz_below(&random, sizeof usual)];
}

static kind kind_of_letter(char letter) { return letter == 'i' ? INT : letter == 'f' ? FLOAT : BOOL; }

static int has_kind(kind have, kind want) {
  return have == want || (want == ANY && have != NOTHING) || (want == TENSOR && (have == HEAP || have == LONGS)) ||
         (want == LONGS && have == HEAP);
}

static int begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* Returns the kind of tensor that a builtin expects as an argument whose word in the signature is `tensor`. */
static kind kind_of_tensor(int32_t row, uint32_t index) {
  const char *name = names[row] + strlen("vm.builtin.");
  if (row == RVM_BUILTIN_tensor_to_shape) return LONGS;
  if (!begins(name, "string_") || row == RVM_BUILTIN_string_of_number) return TENSOR;
  if (row == RVM_BUILTIN_string_take) return index == 0 ? LONGS : STRINGS;
  if (row == RVM_BUILTIN_string_lookup && index == 2) return LONGS;
  return (row == RVM_BUILTIN_string_match || row == RVM_BUILTIN_string_tokens) && index == 1 ? LONGS : STRINGS;
}

static int makes_strings(int32_t row) {
  return row == RVM_BUILTIN_string_of_number || row == RVM_BUILTIN_string_take || row == RVM_BUILTIN_string_concat ||
         row == RVM_BUILTIN_string_case || row == RVM_BUILTIN_string_split || row == RVM_BUILTIN_string_tokens;
}

/* Returns the kind that a check accepts; ANY for any other builtin. */
static kind kind_checked(int32_t row) {
  switch (row) {
    case RVM_BUILTIN_check_tensor_info: return TENSOR;
    case RVM_BUILTIN_check_shape_info: return SHAPE;
    case RVM_BUILTIN_check_tuple_info: return TUPLE;
    case RVM_BUILTIN_check_func_info:
    case RVM_BUILTIN_check_pure_func_info: return FUNCTION;
    case RVM_BUILTIN_check_prim_value_info:
    case RVM_BUILTIN_match_prim_value: return INT;
    case RVM_BUILTIN_match_shape: return SHAPE;
    case RVM_BUILTIN_scalar_to_tensor: return FLOAT;
    case RVM_BUILTIN_read_if_cond:
    case RVM_BUILTIN_assert: return BOOL;
    default: return ANY;
  }
}

/* ---- operand words ---- */

static int has_capacity(const generator *g, uint32_t words) { return g->count + words <= g->most; }

static uint32_t argument(uint32_t kind, int64_t payload) { return (uint32_t)payload << 3 | kind; }

static uint32_t immediate(int64_t number) { return argument(RVM_ARGUMENT_IMMEDIATE, number); }

/* Stores the operand word of a constant with a tag and, for tensors, a dtype unless it is -1.  Returns 0 if there is
   none. */
static int constant(generator *g, uint32_t tag, int32_t dtype, uint32_t *word) {
  const fuzz_program *p = g->program;
  if (p->constant_count == 0) return 0;
  const uint32_t first = fuzz_below(g->random, p->constant_count);
  for (uint32_t i = 0; i < p->constant_count; i++) {
    const uint32_t index = (first + i) % p->constant_count;
    if (p->constants[index].tag != tag || (dtype >= 0 && p->constants[index].dtype != (uint32_t)dtype)) continue;
    if (tag == RVM_TAG_TENSOR && dtype < 0 && p->constants[index].dtype == RVM_DTYPE_str) continue;
    *word = argument(RVM_ARGUMENT_CONSTANT, index);
    return 1;
  }
  return 0;
}

static int held(generator *g, kind want, uint32_t *word) {
  const uint32_t first = fuzz_below(g->random, g->registers);
  for (uint32_t i = 0; i < g->registers; i++) {
    const uint32_t index = (first + i) % g->registers;
    if (!has_kind((kind)g->kinds[index], want)) continue;
    *word = argument(RVM_ARGUMENT_REGISTER, index);
    return 1;
  }
  return 0;
}

/* Returns a bytecode function or a builtin, or -1 if there is none. */
static int64_t any_function(generator *g, int in_bytecode) {
  const fuzz_program *p = g->program;
  const uint32_t first = fuzz_below(g->random, p->function_count);
  for (uint32_t i = 0; i < p->function_count; i++) {
    const uint32_t index = (first + i) % p->function_count;
    if (in_bytecode ? p->functions[index].kind == RVM_KIND_bytecode : p->builtins[index] >= 0) return index;
  }
  return -1;
}

static int64_t function_of_builtin(const generator *g, int32_t row) {
  for (uint32_t i = 0; i < g->program->function_count; i++)
    if (g->program->builtins[i] == row) return i;
  return -1;
}

/* Stores an operand word of the kind.  Returns 0 if there is none. */
static int value(generator *g, kind want, uint32_t *word) {
  if (fuzz_below(g->random, 32) == 0) want = ANY;
  if (fuzz_below(g->random, 4) && held(g, want, word)) return 1;
  switch (want) {
    case INT: *word = immediate(fuzz_number(g->random) % (1 << 20)); return 1;
    case BOOL: *word = argument(RVM_ARGUMENT_BOOL, fuzz_below(g->random, 2)); return 1;
    case FLOAT: return constant(g, RVM_TAG_FLOAT, -1, word) || held(g, want, word);
    case TENSOR: return constant(g, RVM_TAG_TENSOR, -1, word) || held(g, want, word);
    case LONGS: return constant(g, RVM_TAG_TENSOR, RVM_DTYPE_i64, word) || held(g, want, word);
    case STRINGS: return constant(g, RVM_TAG_TENSOR, RVM_DTYPE_str, word) || held(g, want, word);
    case SHAPE: return constant(g, RVM_TAG_SHAPE, -1, word) || held(g, want, word);
    case FUNCTION:
      if (held(g, want, word)) return 1;
      *word = argument(RVM_ARGUMENT_FUNCTION, any_function(g, 1));
      return 1;
    case ANY:
      if (fuzz_below(g->random, 4) == 0)
        *word = argument(RVM_ARGUMENT_NIL, 0);
      else if (!constant(g, 1 + fuzz_below(g->random, RVM_TAG_COUNT - 1), -1, word))
        *word = immediate(3);
      return 1;
    default: return held(g, want, word);
  }
}

/* Returns a register that may hold the kind from now on, or -1 if there is none. */
static int32_t destination(generator *g, kind result) {
  const uint32_t first = fuzz_below(g->random, g->registers);
  for (uint32_t i = 0; i < g->registers; i++) {
    const uint32_t index = (first + i) % g->registers;
    if (!g->is_kept[index] || (g->kept[index] == result && result != NOTHING)) return (int32_t)index;
  }
  return -1;
}

static void hold(generator *g, int32_t dst, kind result) {
  if (dst >= 0) g->kinds[dst] = (uint8_t)result;
}

/* ---- instructions ---- */

static void emit(generator *g, uint32_t word) { g->words[g->count++] = word; }

static void emit_all(generator *g, const uint32_t *words, uint32_t count) {
  emit(g, count);
  for (uint32_t i = 0; i < count; i++) emit(g, words[i]);
}

static void emit_prim(generator *g, int32_t dst, uint32_t row, const uint32_t *given, uint32_t count) {
  emit(g, RVM_OP_prim), emit(g, (uint32_t)dst), emit(g, row);
  emit_all(g, given, count);
}

static void emit_call(generator *g, int32_t dst, int64_t callee, const uint32_t *given, uint32_t count) {
  emit(g, RVM_OP_call), emit(g, (uint32_t)dst), emit(g, (uint32_t)callee);
  emit_all(g, given, count);
}

static void prim(generator *g) {
  const uint32_t row = fuzz_below(g->random, RVM_SCALAR_OP_COUNT);
  const uint32_t operands = (uint32_t)strlen(operators[row].operands);
  const kind result = kind_of_letter(operators[row].result);
  uint32_t given[2];
  for (uint32_t i = 0; i < operands; i++)
    if (!value(g, kind_of_letter(operators[row].operands[i]), &given[i])) return;
  for (uint32_t i = 0; i < operands; i++)
    if ((given[i] & 7) == RVM_ARGUMENT_NIL || (given[i] & 7) == RVM_ARGUMENT_FUNCTION) return;
  const int32_t dst = destination(g, result);
  if (dst < 0 || !has_capacity(g, 6)) return;
  emit_prim(g, dst, row, given, operands);
  hold(g, dst, result);
}

/* Stores an argument of a builtin for a word of its signature.  Returns 0 if there is none. */
static int builtin_argument(generator *g, int32_t row, uint32_t index, const char *word, size_t length, uint32_t pairs,
                            uint32_t *made) {
  static const struct {
    const char *word;
    kind kind;
  } plain[] = {{"any", ANY},     {"bool", BOOL}, {"tensor", TENSOR},   {"heap", HEAP},         {"shape", SHAPE},
               {"tuple", TUPLE}, {"list", LIST}, {"storage", STORAGE}, {"function", FUNCTION}, {"closure", FUNCTION}};
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
    if (strlen(plain[i].word) != length || memcmp(plain[i].word, word, length) != 0) continue;
    const kind kind = plain[i].kind;
    return value(g,
                 kind == TENSOR              ? kind_of_tensor(row, index)
                 : kind == ANY && index == 0 ? kind_checked(row)
                                             : kind,
                 made);
  }
  switch (word[0] * 256 + word[1]) {
    case 'c' * 256 + 't': *made = argument(RVM_ARGUMENT_CONTEXT, 0); return 1;
    case 'c' * 256 + 'o': *made = immediate(fuzz_below(g->random, 4)); return 1; /* code */
    case 'w' * 256 + 'h':                                                        /* where */
    case 's' * 256 + 't': return constant(g, RVM_TAG_STRING, -1, made);          /* string */
    case 'd' * 256 + 't':                                                        /* dtype */
      if (fuzz_below(g->random, 8) == 0)
        *made = argument(RVM_ARGUMENT_NIL, 0);
      else
        return constant(g, RVM_TAG_DTYPE, -1, made);
      return 1;
    case 'd' * 256 + 'e':                                                                             /* device */
    case 'o' * 256 + 'f': *made = immediate(64 * (int64_t)(fuzz_below(g->random, 8) == 0)); return 1; /* offset */
    case 'r' * 256 + 'a': /* rank */ *made = immediate(strstr(signatures[row], "code") ? (int64_t)pairs : -1); return 1;
    case 'i' * 256 + 'n': /* int */
      if (fuzz_below(g->random, 2)) return value(g, INT, made);
      *made = immediate((int64_t)fuzz_below(g->random, 6) - 1);
      return 1;
    case 's' * 256 + 'i': /* size */
      if (fuzz_below(g->random, 4) == 0) return value(g, fuzz_below(g->random, 2) ? SHAPE : INT, made);
      *made = immediate(fuzz_below(g->random, 20));
      return 1;
    case 'o' * 256 + 'p': *made = immediate(fuzz_below(g->random, 8)); return 1;                /* operator */
    default: *made = immediate((int64_t)fuzz_below(g->random, 5) - (word[0] == 'a')); return 1; /* axis, slot, value */
  }
}

static kind result_of(const char *word, int32_t row) {
  static const struct {
    const char *word;
    kind kind;
  } results[] = {{"any", ANY},     {"bool", BOOL}, {"int", INT},         {"tensor", TENSOR},    {"shape", SHAPE},
                 {"tuple", TUPLE}, {"list", LIST}, {"storage", STORAGE}, {"closure", FUNCTION}, {"nil", NIL}};
  if (row == RVM_BUILTIN_alloc_shape_heap) return HEAP;
  if (makes_strings(row)) return STRINGS;
  if (row == RVM_BUILTIN_shape_to_tensor || row == RVM_BUILTIN_string_positions || row == RVM_BUILTIN_string_part_count)
    return LONGS;
  for (size_t i = 0; i < sizeof results / sizeof *results; i++)
    if (strcmp(word, results[i].word) == 0) return results[i].kind;
  return ANY;
}

static void call_builtin(generator *g) {
  const int64_t callee = any_function(g, 0);
  if (callee < 0) return;
  const int32_t row = g->program->builtins[callee];
  const int is_check = begins(names[row], "vm.builtin.check_") || begins(names[row], "vm.builtin.match_") ||
                       row == RVM_BUILTIN_call_py_func;
  if (is_check && fuzz_below(g->random, 4)) return; /* most checks fail */
  const char *next = signatures[row], *last = next, *before = next;
  const uint32_t pairs = fuzz_below(g->random, 4), more = fuzz_below(g->random, 3);
  uint32_t given[24], count = 0;
  const int is_of_pairs = strstr(next, "value ...") != NULL;
  while (strncmp(next, "->", 2) != 0) {
    const size_t length = strcspn(next, " ");
    if (strncmp(next, "...", 3) != 0) {
      const int is_pair = is_of_pairs && (strncmp(next, "code ", 5) == 0 || strncmp(next, "value ", 6) == 0);
      const uint32_t index = count;
      if (!(is_pair && pairs == 0) && !builtin_argument(g, row, index, next, length, pairs, &given[count++])) return;
      before = last, last = next;
    } else {
      const uint32_t times = is_of_pairs ? (pairs ? pairs - 1 : 0) : more;
      for (uint32_t i = 0; i < times; i++) {
        const char *const words[] = {before, last};
        for (uint32_t k = is_of_pairs ? 0 : 1; k < 2; k++, count++)
          if (!builtin_argument(g, row, count, words[k], strcspn(words[k], " "), pairs, &given[count])) return;
      }
    }
    next += length + 1;
  }
  const kind result = result_of(next + 3, row);
  const int32_t dst = fuzz_below(g->random, 16) ? destination(g, result) : -1;
  if (!has_capacity(g, 4 + count)) return;
  emit_call(g, dst, callee, given, count);
  hold(g, dst, result);
}

/* Generates the arguments of a call of a bytecode function.  Returns 0 if they cannot be generated. */
static int arguments_of(generator *g, int64_t callee, uint32_t *given, uint32_t *count) {
  *count = (uint32_t)g->program->functions[callee].parameter_count;
  if (*count > 8) return 0;
  for (uint32_t i = 0; i < *count; i++)
    if (!value(g, expected((uint32_t)callee, (int32_t)i), &given[i])) return 0;
  return 1;
}

static void call_function(generator *g) {
  const int64_t callee = any_function(g, 1);
  uint32_t given[8], count;
  if (callee <= g->function && fuzz_below(g->random, 16)) return; /* recursion rarely ends */
  if (callee < 0 || !arguments_of(g, callee, given, &count) || !has_capacity(g, 4 + count)) return;
  const kind result = expected((uint32_t)callee, -1);
  const int32_t dst = destination(g, result);
  emit_call(g, dst, callee, given, count);
  hold(g, dst, result);
}

static void reset(generator *g) {
  const int32_t dst = destination(g, NOTHING);
  if (dst < 0 || !has_capacity(g, 2) || g->kinds[dst] == NOTHING) return;
  emit(g, RVM_OP_reset), emit(g, (uint32_t)dst);
  g->kinds[dst] = NOTHING;
}

static void statements(generator *g, uint32_t count);

/* Generates an if with both branches.  Afterwards, a register has a kind only if it has that kind after both. */
static void branch(generator *g) {
  uint32_t condition;
  uint8_t before[MAX_REGISTERS], after[MAX_REGISTERS];
  if (g->depth == MAX_DEPTH || !held(g, BOOL, &condition) || !has_capacity(g, 40)) return;
  memcpy(before, g->kinds, sizeof before);
  const uint32_t start = g->count;
  g->depth++;
  emit(g, RVM_OP_if), emit(g, condition >> 3), emit(g, 0);
  g->most -= 2;
  statements(g, 1 + fuzz_below(g->random, 4));
  g->most += 2;
  memcpy(after, g->kinds, sizeof after);
  memcpy(g->kinds, before, sizeof before);
  const uint32_t skip = g->count;
  emit(g, RVM_OP_goto), emit(g, 0);
  g->words[start + 2] = g->count - start;
  statements(g, fuzz_below(g->random, 4));
  g->words[skip + 1] = g->count - skip;
  for (uint32_t i = 0; i < g->registers; i++)
    if (g->kinds[i] != after[i]) g->kinds[i] = g->kinds[i] == NOTHING || after[i] == NOTHING ? NOTHING : ANY;
  g->depth--;
}

/* Generates a loop that counts down.  A register that is in use holds the same kind at the end as at the start. */
static void loop(generator *g) {
  uint8_t is_kept[MAX_REGISTERS], kept[MAX_REGISTERS], before[MAX_REGISTERS];
  const int32_t counter = destination(g, NOTHING);
  if (g->depth == MAX_DEPTH || counter < 0 || !has_capacity(g, 60)) return;
  emit(g, RVM_OP_prim), emit(g, (uint32_t)counter), emit(g, RVM_SCALAR_OP_add_i64), emit(g, 2);
  emit(g, immediate(0)), emit(g, immediate(fuzz_below(g->random, 5)));
  g->kinds[counter] = NOTHING;
  const int32_t test = destination(g, BOOL);
  if (test < 0 || test == counter) {
    g->kinds[counter] = INT;
    return;
  }
  g->depth++;
  memcpy(is_kept, g->is_kept, sizeof is_kept);
  memcpy(kept, g->kept, sizeof kept);
  g->kinds[counter] = INT;
  if (!g->is_kept[test]) g->kinds[test] = NOTHING;
  memcpy(before, g->kinds, sizeof before);
  for (uint32_t i = 0; i < g->registers; i++)
    if (g->kinds[i] != NOTHING) g->is_kept[i] = 1, g->kept[i] = g->kinds[i];
  const uint32_t head = g->count;
  emit(g, RVM_OP_prim), emit(g, (uint32_t)test), emit(g, RVM_SCALAR_OP_gt_i64), emit(g, 2);
  emit(g, argument(RVM_ARGUMENT_REGISTER, counter)), emit(g, immediate(0));
  const uint32_t leave = g->count;
  emit(g, RVM_OP_if), emit(g, (uint32_t)test), emit(g, 0);
  g->kept[counter] = KIND_COUNT; /* no other instruction writes the counter */
  g->most -= 8;
  statements(g, 1 + fuzz_below(g->random, 4));
  g->most += 8;
  emit(g, RVM_OP_prim), emit(g, (uint32_t)counter), emit(g, RVM_SCALAR_OP_sub_i64), emit(g, 2);
  emit(g, argument(RVM_ARGUMENT_REGISTER, counter)), emit(g, immediate(1));
  emit(g, RVM_OP_goto), emit(g, head - (g->count - 1));
  g->words[leave + 2] = g->count - leave;
  memcpy(g->kinds, before, sizeof before);
  memcpy(g->is_kept, is_kept, sizeof is_kept);
  memcpy(g->kept, kept, sizeof kept);
  if (!g->is_kept[test]) g->kinds[test] = BOOL;
  g->depth--;
}

static void statements(generator *g, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t choice = fuzz_below(g->random, 32);
    if (choice < 7)
      prim(g);
    else if (choice < 21)
      call_builtin(g);
    else if (choice < 25)
      call_function(g);
    else if (choice < 28)
      branch(g);
    else if (choice < 30)
      loop(g);
    else
      reset(g);
  }
}

/* Generates checks that the parameters have their expected kinds.  The harness reads them to generate arguments. */
static void check_parameters(generator *g, uint32_t function, uint32_t parameters) {
  const int64_t scalar = function_of_builtin(g, RVM_BUILTIN_check_prim_value_info);
  const int64_t tensor = function_of_builtin(g, RVM_BUILTIN_check_tensor_info);
  const int64_t callable = function_of_builtin(g, RVM_BUILTIN_check_func_info);
  uint32_t where, dtype;
  for (uint32_t i = 0; i < parameters; i++) {
    const kind kind = expected(function, (int32_t)i);
    const int32_t of = kind == INT ? RVM_DTYPE_i64 : kind == FLOAT ? RVM_DTYPE_f64 : RVM_DTYPE_bool;
    const int is_scalar = kind == INT || kind == FLOAT || kind == BOOL;
    const int64_t callee = is_scalar ? scalar : kind == TENSOR ? tensor : kind == FUNCTION ? callable : -1;
    g->kinds[i] = ANY;
    if (callee < 0 || !constant(g, RVM_TAG_STRING, -1, &where) || !has_capacity(g, 8)) continue;
    if (is_scalar) {
      const uint32_t first = g->count;
      for (int tries = 0; tries < 32 && g->count == first; tries++)
        if (constant(g, RVM_TAG_DTYPE, -1, &dtype) && g->program->constants[dtype >> 3].dtype_value == (uint32_t)of) {
          emit(g, RVM_OP_call), emit(g, (uint32_t)-1), emit(g, (uint32_t)callee), emit(g, 3);
          emit(g, argument(RVM_ARGUMENT_REGISTER, i)), emit(g, dtype), emit(g, where);
          g->kinds[i] = (uint8_t)kind;
        }
      continue;
    }
    emit(g, RVM_OP_call), emit(g, (uint32_t)-1), emit(g, (uint32_t)callee), emit(g, kind == TENSOR ? 4 : 2);
    emit(g, argument(RVM_ARGUMENT_REGISTER, i));
    if (kind == TENSOR)
      emit(g, immediate((int64_t)fuzz_below(g->random, 4) - 1)), emit(g, argument(RVM_ARGUMENT_NIL, 0));
    emit(g, where);
    g->kinds[i] = (uint8_t)kind;
  }
}

uint32_t fuzz_generate(fuzz_random *random, const fuzz_program *program, uint32_t function, uint32_t *words,
                       uint32_t most, uint32_t *registers) {
  const uint32_t parameters = (uint32_t)program->functions[function].parameter_count;
  generator g = {.random = random, .program = program, .words = words, .most = most - 24, .function = function};
  uint32_t result, given[8], count;
  if (parameters > 8 || program->constant_count == 0) return 0;
  g.registers = *registers = parameters + 4 + fuzz_below(random, MAX_REGISTERS - 4 - parameters);
  check_parameters(&g, function, parameters);
  statements(&g, 3 + fuzz_below(random, 16));
  g.most = most;
  if (fuzz_below(random, 16) == 0) {
    const int64_t callee = any_function(&g, 1);
    if (arguments_of(&g, callee, given, &count)) {
      emit(&g, RVM_OP_tail_call), emit(&g, (uint32_t)callee);
      emit_all(&g, given, count);
      return g.count;
    }
  }
  if (!held(&g, expected(function, -1), &result) && !held(&g, ANY, &result)) {
    emit_prim(&g, 0, RVM_SCALAR_OP_add_i64, (const uint32_t[]){immediate(1), immediate(2)}, 2);
    result = 0;
  }
  emit(&g, RVM_OP_ret), emit(&g, result >> 3);
  return g.count;
}
