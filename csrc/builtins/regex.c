/* regex.c: the builtins string_match and string_tokens.  A pattern runs as a nondeterministic finite automaton (K.
   Thompson, "Regular expression search algorithm", CACM 11, 1968): all states are tracked at once, so a match takes
   time linear in the length of the text for every pattern.  string_tokens tries a match at each position outside of
   tokens, so its time can be quadratic. */
#include "arguments.h"
#include "private_tensor.h"
#include "string_builtins.h"

enum {
#define PATTERN(name, number, operands, meaning) PATTERN_##name = number,
#include "regex_opcodes.def"
#undef PATTERN
};

/* The operands of ANCHOR (regex_opcodes.def).  An edge is a word boundary. */
enum { ANCHOR_START, ANCHOR_END, ANCHOR_LINE_START, ANCHOR_LINE_END, ANCHOR_EDGE, ANCHOR_NO_EDGE, ANCHORS };

/* The automaton of a pattern.  Its states are the instructions of the pattern's program (regex_opcodes.def). */
typedef struct automaton {
  rvm_value program_tensor; /* a private tensor, so that the host cannot change the program after the check */
  const int64_t *program;   /* three integers per instruction */
  int64_t step;             /* number of the current step: a step computes the states after one more character */
  int64_t *arrays;          /* a block with the following arrays, which have one int64 per instruction */
  int64_t *now, *next;      /* the current states, and the states after the next character */
  int64_t *stack;
  int64_t *reached; /* per instruction: the last step in which it was reached */
  int64_t now_count, next_count;
  rvm_machine *machine;
  int64_t cost; /* instructions executed since the last rvm_spend */
} automaton;

/* The maximum number of instructions of a program.  Each instruction is executed at most twice between two checks of
   the limits, which are one character apart, so this number bounds the time between two checks. */
enum { MAX_ROWS = 1 << 20 };

/* The code points before and after a position in the text, or -1 at the start or end of the text. */
typedef struct neighbors {
  int64_t before, after;
} neighbors;

static int is_within(int64_t instruction, int64_t count) { return instruction >= 0 && instruction < count; }

/* Returns whether instruction `i` of a program of `count` instructions has a known opcode and valid operands: anchors
   are known, jumps lead to instructions, and the RANGEs of a SET are inside the program. */
static int is_instruction(const int64_t *program, int64_t i, int64_t count) {
  const int64_t first = program[3 * i + 1], second = program[3 * i + 2];
  switch (program[3 * i]) {
    case PATTERN_RANGE:
    case PATTERN_MATCH: return 1;
    case PATTERN_ANCHOR: return is_within(first, ANCHORS);
    case PATTERN_SET: return first >= 0 && first < count - i - 1;
    case PATTERN_JUMP: return is_within(first, count);
    case PATTERN_SPLIT: return is_within(first, count) && is_within(second, count);
    default: return 0;
  }
}

/* Returns whether a program is valid: its instructions are valid, each SET is followed by exactly its RANGEs, and the
   last instruction is MATCH. */
static int is_program(const int64_t *program, int64_t count) {
  int64_t ranges_left = 0; /* number of RANGEs that must follow */
  for (int64_t i = 0; i < count; i++) {
    const int64_t code = program[3 * i];
    if ((code == PATTERN_RANGE) != (ranges_left > 0) || !is_instruction(program, i, count)) return 0;
    if (code == PATTERN_RANGE) ranges_left--;
    if (code == PATTERN_SET) ranges_left = program[3 * i + 1];
  }
  return count > 0 && ranges_left == 0 && program[3 * (count - 1)] == PATTERN_MATCH;
}

static int is_word(int64_t point) {
  return (point >= '0' && point <= '9') || (point >= 'A' && point <= 'Z') || (point >= 'a' && point <= 'z') ||
         point == '_';
}

static int anchor_holds(int64_t anchor, neighbors around) {
  switch (anchor) {
    case ANCHOR_START: return around.before < 0;
    case ANCHOR_END: return around.after < 0;
    case ANCHOR_LINE_START: return around.before < 0 || around.before == '\n';
    case ANCHOR_LINE_END: return around.after < 0 || around.after == '\n';
    case ANCHOR_EDGE: return is_word(around.before) != is_word(around.after);
  }
  return is_word(around.before) == is_word(around.after);
}

/* Adds to nfa->next the SETs and MATCHes that are reachable from an instruction without reading a character.  Each
   instruction is pushed onto the stack at most once per step. */
static void follow(automaton *nfa, int64_t instruction, neighbors around) {
  int64_t depth = 0;
  nfa->stack[depth++] = instruction;
  nfa->reached[instruction] = nfa->step;
  while (depth > 0) {
    int64_t i = nfa->stack[--depth];
    nfa->cost++;
    const int64_t *row = &nfa->program[3 * i];
    int64_t targets[2] = {-1, -1};
    switch (row[0]) {
      case PATTERN_JUMP: targets[0] = row[1]; break;
      case PATTERN_SPLIT:
        targets[0] = row[1];
        targets[1] = row[2];
        break;
      case PATTERN_ANCHOR:
        if (anchor_holds(row[1], around)) targets[0] = i + 1;
        break;
      default: nfa->next[nfa->next_count++] = i;
    }
    for (int k = 0; k < 2; k++) {
      if (targets[k] < 0 || nfa->reached[targets[k]] == nfa->step) continue;
      nfa->reached[targets[k]] = nfa->step;
      nfa->stack[depth++] = targets[k];
    }
  }
}

/* Like follow, but does nothing if the instruction was already reached in this step. */
static void follow_new(automaton *nfa, int64_t instruction, neighbors around) {
  if (nfa->reached[instruction] != nfa->step) follow(nfa, instruction, around);
}

/* Returns whether the SET at `set` and the RANGEs after it accept a code point. */
static int is_in_set(const int64_t *set, int64_t point) {
  for (int64_t k = 1; k <= set[1]; k++)
    if (point >= set[3 * k + 1] && point <= set[3 * k + 2]) return !set[2];
  return set[2] != 0;
}

/* Makes the next states the current ones. */
static void advance(automaton *nfa) {
  int64_t *now = nfa->now;
  nfa->now = nfa->next;
  nfa->next = now;
  nfa->now_count = nfa->next_count;
  nfa->next_count = 0;
  nfa->step++;
}

/* Returns whether the next states include a MATCH. */
static int has_matched(const automaton *nfa) {
  for (int64_t k = 0; k < nfa->next_count; k++)
    if (nfa->program[3 * nfa->next[k]] == PATTERN_MATCH) return 1;
  return 0;
}

/* Charges the instructions executed since the last call. */
static rvm_status spend(automaton *nfa, rvm_value *error) {
  int64_t cost = nfa->cost + 1;
  nfa->cost = 0;
  return rvm_spend(nfa->machine, cost, error);
}

/* Stores the end offset of the longest match that begins at `offset` in *found, or -1 if there is none.  `before` is
   the code point before `offset`, or -1 at the start of the text. */
static rvm_status longest_match(automaton *nfa, rvm_text text, int64_t offset, int64_t before, int64_t *found,
                                rvm_value *error) {
  int64_t end = offset, point = offset < text.length ? (int64_t)rvm_text_next(text, &offset) : -1;
  *found = -1;
  nfa->next_count = 0;
  nfa->step++;
  follow(nfa, 0, (neighbors){before, point});
  /* `point` is the next code point to read, or -1 at the end of the text, and `end` is its offset. */
  for (;;) {
    rvm_status status = spend(nfa, error);
    if (has_matched(nfa)) *found = end;
    if (status || point < 0 || nfa->next_count == 0) return status;
    end = offset;
    int64_t following = offset < text.length ? (int64_t)rvm_text_next(text, &offset) : -1;
    advance(nfa);
    for (int64_t k = 0; k < nfa->now_count; k++) {
      const int64_t *row = &nfa->program[3 * nfa->now[k]];
      const int is_set = row[0] == PATTERN_SET;
      const int64_t range_count = is_set ? row[1] : 0;
      nfa->cost += 1 + range_count;
      if (is_set && is_in_set(row, point)) /* continue with the instruction after the RANGEs */
        follow_new(nfa, nfa->now[k] + 1 + range_count, (neighbors){point, following});
    }
    point = following;
  }
}

static rvm_status fail_pattern(const char *name, rvm_value *result) {
  return rvm_fail(result, RVM_ARGUMENT_ERROR,
                  "vm.builtin.%s: argument 2 must be a compiled pattern, an i64 tensor of at most %d rows of 3 columns",
                  name, MAX_ROWS);
}

/* Checks the arguments of string_match or string_tokens, and initializes the automaton.  `finish` frees its memory. */
static rvm_status start(const char *name, const rvm_value *arguments, automaton *nfa, rvm_value *result) {
  rvm_status status = rvm_expect_dtype(name, 0, arguments[0], RVM_DTYPE_str, result);
  if (!status) status = rvm_expect_dtype(name, 1, arguments[1], RVM_DTYPE_i64, result);
  if (status) return status;
  const rvm_dltensor *table = &arguments[1].as.tensor->dl;
  if (table->ndim != 2 || table->shape[1] != 3 || table->shape[0] > MAX_ROWS) return fail_pattern(name, result);
  const int64_t rows = table->shape[0];
  rvm_machine *machine = rvm_machine_running();
  if ((status = rvm_spend(machine, rows, result))) return status;
  status = rvm_tensor_make_private(machine ? machine->pool : NULL, arguments[1].as.tensor, result);
  if (status) return status;
  rvm_value program_tensor = *result;
  const int64_t *program = program_tensor.as.tensor->dl.data;
  if (!is_program(program, rows)) {
    rvm_release(&program_tensor);
    return fail_pattern(name, result);
  }
  int64_t *arrays = rvm_allocate_zeroed((size_t)rows * 4 * sizeof *arrays);
  if (!arrays) {
    rvm_release(&program_tensor);
    return rvm_out_of_memory(result);
  }
  *nfa = (automaton){.program_tensor = program_tensor,
                     .program = program,
                     .arrays = arrays,
                     .now = arrays,
                     .next = arrays + rows,
                     .stack = arrays + 2 * rows,
                     .reached = arrays + 3 * rows,
                     .machine = machine};
  return RVM_OK;
}

static void finish(automaton *nfa) {
  rvm_release(&nfa->program_tensor);
  rvm_free(nfa->arrays);
}

/* Creates a tensor that states for each string of x whether the pattern matches the whole string. */
static rvm_status match_strings(automaton *nfa, const rvm_tensor *x, rvm_value *result) {
  rvm_status status = rvm_tensor_new(RVM_DTYPE_bool, x->dl.ndim, x->dl.shape, result);
  if (status) return status;
  rvm_value matches = *result;
  uint8_t *is_match = matches.as.tensor->dl.data;
  int64_t size = rvm_tensor_count(x), end;
  for (int64_t i = 0; i < size && !status; i++) {
    rvm_text text = rvm_string_text(rvm_tensor_strings(x)[i]);
    status = longest_match(nfa, text, 0, -1, &end, result);
    is_match[i] = end == text.length;
  }
  if (status) rvm_release(&matches);
  return status;
}

RVM_BUILTIN(string_match) {
  RVM_CHECK(string_match, "tt");
  automaton nfa;
  rvm_status status = start("string_match", arguments, &nfa, result);
  if (status) return status;
  status = match_strings(&nfa, arguments[0].as.tensor, result);
  finish(&nfa);
  return status;
}

/* Stores the next nonempty match at or after *offset in *token, or an empty text if there is none.  Advances *offset
   past the match, and updates *before, the code point before *offset. */
static rvm_status next_token(automaton *nfa, rvm_text text, int64_t *offset, int64_t *before, rvm_text *token,
                             rvm_value *error) {
  *token = (rvm_text){text.bytes, 0};
  while (*offset < text.length) {
    int64_t begin = *offset, end;
    rvm_status status = longest_match(nfa, text, begin, *before, &end, error);
    if (status) return status;
    *before = (int64_t)rvm_text_next(text, offset);
    if (end <= begin) continue;
    while (*offset < end) *before = (int64_t)rvm_text_next(text, offset);
    *token = (rvm_text){text.bytes + begin, end - begin};
    return RVM_OK;
  }
  return RVM_OK;
}

/* Counts the tokens of a text and, unless `element` is NULL, writes them to the elements from `element` on. */
static rvm_status write_tokens(automaton *nfa, rvm_text text, rvm_string **element, int64_t *count, rvm_value *error) {
  int64_t offset = 0, before = -1;
  rvm_text token;
  rvm_status status;
  for (*count = 0; !(status = next_token(nfa, text, &offset, &before, &token, error)) && token.length > 0; ++*count)
    if (element && (status = rvm_string_set(nfa->machine, &element[*count], token, error))) return status;
  return status;
}

/* Creates a tensor of the tokens of each string of x. */
static rvm_status tokenize(automaton *nfa, const rvm_tensor *x, rvm_value *result) {
  rvm_string **strings = rvm_tensor_strings(x);
  int64_t size = rvm_tensor_count(x), max_count = 0, token_count;
  rvm_status status;
  for (int64_t i = 0; i < size; i++) {
    if ((status = write_tokens(nfa, rvm_string_text(strings[i]), NULL, &token_count, result))) return status;
    max_count = token_count > max_count ? token_count : max_count;
  }
  if ((status = rvm_tensor_with_last_axis(x, max_count, result))) return status;
  rvm_value tokens = *result;
  rvm_string **elements = rvm_tensor_strings(tokens.as.tensor);
  for (int64_t i = 0; i < size && !status; i++)
    status = write_tokens(nfa, rvm_string_text(strings[i]), elements + i * max_count, &token_count, result);
  if (status) rvm_release(&tokens);
  return status;
}

RVM_BUILTIN(string_tokens) {
  RVM_CHECK(string_tokens, "tt");
  automaton nfa;
  rvm_status status = start("string_tokens", arguments, &nfa, result);
  if (status) return status;
  status = tokenize(&nfa, arguments[0].as.tensor, result);
  finish(&nfa);
  return status;
}
