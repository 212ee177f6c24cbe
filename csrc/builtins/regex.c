/* regex.c: string_match and string_tokens, by a nondeterministic automaton (K. Thompson, "Regular expression search
   algorithm", CACM 11, 1968): all states that it can be in are kept at once, so that time is linear in the string
   whatever the pattern. */
#include "arguments.h"
#include "private_tensor.h"
#include "string_builtins.h"

enum {
#define PATTERN(name, number, operands, meaning) PATTERN_##name = number,
#include "regex_opcodes.def"
#undef PATTERN
};

enum { PLACE_START, PLACE_END, PLACE_LINE_START, PLACE_LINE_END, PLACE_EDGE, PLACE_NO_EDGE, PLACES };

/* A pattern's program, and what following it needs, an int for each instruction: those that it stands at, those that it
   will, a stack, and at which step each was reached last. */
typedef struct automaton {
  const int64_t *program; /* three ints each */
  int64_t step;
  int64_t *now, *next, *stack, *reached;
  int64_t now_count, next_count;
  rvm_machine *machine;
  int64_t cost;    /* instructions looked at since the last rvm_spend */
  rvm_value owner; /* of the program: the host cannot change it after the check */
} automaton;

/* Between two looks at the limits each instruction is followed at most once. */
enum { MAX_ROWS = 1 << 20 };

/* Where in the text it is: the code points around. -1: none. */
typedef struct place {
  int64_t before, behind;
} place;

static int is_within(int64_t instruction, int64_t count) { return instruction >= 0 && instruction < count; }

/* Every operand leads to an instruction, and RANGEs stand behind their SET only. */
static int is_program(const int64_t *program, int64_t count) {
  int64_t ranges = 0;
  for (int64_t i = 0; i < count; i++) {
    const int64_t code = program[3 * i], a = program[3 * i + 1], b = program[3 * i + 2];
    if ((code == PATTERN_RANGE) != (ranges > 0)) return 0;
    ranges -= ranges > 0;
    int fits = code == PATTERN_RANGE || code == PATTERN_MATCH || (code == PATTERN_PLACE && is_within(a, PLACES)) ||
               (code == PATTERN_SET && a >= 0 && a < count - i - 1) || (code == PATTERN_JUMP && is_within(a, count)) ||
               (code == PATTERN_SPLIT && is_within(a, count) && is_within(b, count));
    if (!fits) return 0;
    if (code == PATTERN_SET) ranges = a;
  }
  return count > 0 && ranges == 0 && program[3 * (count - 1)] == PATTERN_MATCH;
}

static int is_word(int64_t point) {
  return (point >= '0' && point <= '9') || (point >= 'A' && point <= 'Z') || (point >= 'a' && point <= 'z') ||
         point == '_';
}

static int holds(int64_t what, place at) {
  switch (what) {
    case PLACE_START: return at.before < 0;
    case PLACE_END: return at.behind < 0;
    case PLACE_LINE_START: return at.before < 0 || at.before == '\n';
    case PLACE_LINE_END: return at.behind < 0 || at.behind == '\n';
    case PLACE_EDGE: return is_word(at.before) != is_word(at.behind);
  }
  return is_word(at.before) == is_word(at.behind);
}

/* Adds to `next` the SETs and MATCHes that an instruction leads to.  The stack holds instructions once each. */
static void follow(automaton *of, int64_t instruction, place at) {
  int64_t depth = 0;
  of->stack[depth++] = instruction;
  of->reached[instruction] = of->step;
  while (depth > 0) {
    int64_t i = of->stack[--depth];
    of->cost++;
    const int64_t *row = &of->program[3 * i];
    int64_t leads[2] = {-1, -1};
    switch (row[0]) {
      case PATTERN_JUMP: leads[0] = row[1]; break;
      case PATTERN_SPLIT:
        leads[0] = row[1];
        leads[1] = row[2];
        break;
      case PATTERN_PLACE:
        if (holds(row[1], at)) leads[0] = i + 1;
        break;
      default: of->next[of->next_count++] = i;
    }
    for (int k = 0; k < 2; k++) {
      if (leads[k] < 0 || of->reached[leads[k]] == of->step) continue;
      of->reached[leads[k]] = of->step;
      of->stack[depth++] = leads[k];
    }
  }
}

static void follow_new(automaton *of, int64_t instruction, place at) {
  if (of->reached[instruction] != of->step) follow(of, instruction, at);
}

static int is_in_set(const int64_t *set, int64_t point) {
  for (int64_t k = 1; k <= set[1]; k++)
    if (point >= set[3 * k + 1] && point <= set[3 * k + 2]) return !set[2];
  return set[2] != 0;
}

/* What has been reached is where it stands now. */
static void advance(automaton *of) {
  int64_t *now = of->now;
  of->now = of->next;
  of->next = now;
  of->now_count = of->next_count;
  of->next_count = 0;
  of->step++;
}

static int has_matched(const automaton *of) {
  for (int64_t k = 0; k < of->next_count; k++)
    if (of->program[3 * of->next[k]] == PATTERN_MATCH) return 1;
  return 0;
}

static rvm_status spend(automaton *of, rvm_value *error) {
  int64_t cost = of->cost + 1;
  of->cost = 0;
  return rvm_spend(of->machine, cost, error);
}

/* Where the longest match that begins at `at` ends; -1: none begins there.   before: the code point before it, or -1.
 */
static rvm_status longest_match(automaton *of, rvm_text text, int64_t at, int64_t before, int64_t *found,
                                rvm_value *error) {
  int64_t end = at, point = at < text.length ? (int64_t)rvm_text_next(text, &at) : -1;
  *found = -1;
  of->next_count = 0;
  of->step++;
  follow(of, 0, (place){before, point});
  for (;;) { /* `end` is where `point` begins */
    rvm_status status = spend(of, error);
    if (has_matched(of)) *found = end;
    if (status || point < 0 || of->next_count == 0) return status;
    end = at;
    int64_t behind = at < text.length ? (int64_t)rvm_text_next(text, &at) : -1;
    advance(of);
    for (int64_t k = 0; k < of->now_count; k++) {
      const int64_t *row = &of->program[3 * of->now[k]];
      of->cost += 1 + (row[0] == PATTERN_SET ? row[1] : 0);
      if (row[0] == PATTERN_SET && is_in_set(row, point))
        follow_new(of, of->now[k] + row[1] + 1, (place){point, behind});
    }
    point = behind;
  }
}

/* Checks the arguments that both builtins have, and makes what following the program needs, which `finish` frees. */
static rvm_status start(const char *name, const rvm_value *arguments, automaton *of, int64_t **work,
                        rvm_value *result) {
  rvm_status status = rvm_expect_dtype(name, 0, arguments[0], RVM_DTYPE_str, result);
  if (!status) status = rvm_expect_dtype(name, 1, arguments[1], RVM_DTYPE_i64, result);
  if (status) return status;
  const rvm_tensor *program = arguments[1].as.tensor;
  rvm_machine *machine = rvm_machine_running();
  int is_table = program->dl.ndim == 2 && program->dl.shape[1] == 3 && program->dl.shape[0] <= MAX_ROWS;
  if (is_table && (status = rvm_spend(machine, program->dl.shape[0], result))) return status;
  rvm_value owner = {.tag = RVM_TAG_NIL};
  if (is_table && (status = rvm_tensor_make_private(machine ? machine->pool : NULL, arguments[1].as.tensor, &owner))) {
    *result = owner;
    return status;
  }
  if (!is_table || !is_program(owner.as.tensor->dl.data, program->dl.shape[0])) {
    rvm_release(&owner);
    return rvm_fail(
        result, RVM_ARGUMENT_ERROR,
        "vm.builtin.%s: argument 2 must be a compiled pattern, an i64 tensor of at most %d rows of 3 columns", name,
        MAX_ROWS);
  }
  int64_t rows = program->dl.shape[0];
  *work = rvm_allocate_zeroed((size_t)rows * 4 * sizeof **work);
  if (!*work) {
    rvm_release(&owner);
    return rvm_out_of_memory(result);
  }
  *of = (automaton){
      owner.as.tensor->dl.data, 0, *work, *work + rows, *work + 2 * rows, *work + 3 * rows, 0, 0, machine, 0, owner};
  return RVM_OK;
}

static void finish(automaton *of, int64_t *work) {
  rvm_release(&of->owner);
  rvm_free(work);
}

RVM_BUILTIN(string_match) {
  RVM_CHECK(string_match, "tt");
  automaton of;
  int64_t *work;
  rvm_status status = start("string_match", arguments, &of, &work, result);
  if (status) return status;
  const rvm_tensor *x = arguments[0].as.tensor;
  rvm_value made;
  status = rvm_tensor_new(RVM_DTYPE_bool, x->dl.ndim, x->dl.shape, &made);
  *result = made;
  int64_t size = status ? 0 : rvm_tensor_count(x), end;
  for (int64_t i = 0; i < size && !status; i++) {
    rvm_text text = rvm_string_text(rvm_tensor_strings(x)[i]);
    status = longest_match(&of, text, 0, -1, &end, result);
    ((uint8_t *)made.as.tensor->dl.data)[i] = end == text.length;
    if (status) rvm_release(&made);
  }
  finish(&of, work);
  return status;
}

/* The next match in a text from `*at` on that has a character, `*at` then being behind it; of no bytes: there is none.
 */
static rvm_status next_token(automaton *of, rvm_text text, int64_t *at, int64_t *before, rvm_text *token,
                             rvm_value *error) {
  *token = (rvm_text){text.bytes, 0};
  while (*at < text.length) {
    int64_t begin = *at, end;
    rvm_status status = longest_match(of, text, begin, *before, &end, error);
    if (status) return status;
    *before = (int64_t)rvm_text_next(text, at);
    if (end <= begin) continue;
    while (*at < end) *before = (int64_t)rvm_text_next(text, at);
    *token = (rvm_text){text.bytes + begin, end - begin};
    return RVM_OK;
  }
  return RVM_OK;
}

/* Writes the tokens of a text from `element` on, NULL: nowhere.  How many there are. */
static rvm_status write_tokens(automaton *of, rvm_text text, rvm_string **element, int64_t *count, rvm_value *error) {
  int64_t at = 0, before = -1;
  rvm_text token;
  rvm_status status;
  for (*count = 0; !(status = next_token(of, text, &at, &before, &token, error)) && token.length > 0; ++*count)
    if (element && (status = rvm_string_set(of->machine, &element[*count], token, error))) return status;
  return status;
}

RVM_BUILTIN(string_tokens) {
  RVM_CHECK(string_tokens, "tt");
  automaton of;
  int64_t *work, most = 0, count_of_it;
  rvm_status status = start("string_tokens", arguments, &of, &work, result);
  if (status) return status;
  const rvm_tensor *x = arguments[0].as.tensor;
  int64_t size = rvm_tensor_count(x);
  for (int64_t i = 0; i < size && !status; i++) {
    status = write_tokens(&of, rvm_string_text(rvm_tensor_strings(x)[i]), NULL, &count_of_it, result);
    most = count_of_it > most ? count_of_it : most;
  }
  rvm_value tokens = {.tag = RVM_TAG_NIL};
  if (!status) {
    status = rvm_tensor_widened(x, most, &tokens);
    *result = tokens;
  }
  for (int64_t i = 0; i < size && !status; i++) {
    rvm_string **element = rvm_tensor_strings(tokens.as.tensor) + i * most;
    status = write_tokens(&of, rvm_string_text(rvm_tensor_strings(x)[i]), element, &count_of_it, result);
    if (status) rvm_value_release(&tokens);
  }
  finish(&of, work);
  return status;
}
