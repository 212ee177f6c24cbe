/* verify.c: verifies bytecode before it runs (verify.h).

   For each function, check_form validates instructions and jumps one by one.  check_flow then runs a forward
   data-flow analysis of the registers that are written on every path, until it reaches a fixed point. */
#include "cold.h"

#include "verify.h"

#include <stdio.h>
#include <string.h>

#include "errors.h"
#include "scalar_ops.h"

static const char operand_letters[][4] = {
#define OP(name, operands, names, flow, meaning) operands,
#include "opcodes.def"
#undef OP
};

/* FALLS: control can continue with the next instruction.  ENDS: it cannot. */
enum flow { ENDS, FALLS };

static const enum flow flows[] = {
#define OP(name, operands, names, flow, meaning) flow,
#include "opcodes.def"
#undef OP
};

/* Marks of a code word. */
enum { STARTS_INSTRUCTION = 1, IS_LOOP_HEAD = 2 };

/* A set of registers with one bit for each.  An unused set is in a free list, linked by `next`. */
typedef union register_set {
  union register_set *next;
  uint64_t bits[1];
} register_set;

/* The verification of one function.  A walk passes over its instructions in order (walk).  The state of a jump target
   is the set of registers that are written on every path found so far to the target.  A loop head, the target of a
   backward jump, keeps its state until the end.  Other targets lose their state when the walk arrives there. */
typedef struct checker {
  const rvm_executable *executable;
  const rvm_function_record *function;
  const char *name;
  const uint32_t *code;
  uint32_t count;        /* words of code */
  uint32_t set_words;    /* words of a register set */
  unsigned char *marks;  /* per code word: STARTS_INSTRUCTION, IS_LOOP_HEAD */
  register_set **states; /* per code word: its state as a jump target, or NULL */
  register_set *written; /* the registers written on every path to this point of the walk */
  register_set *free_sets;
  int64_t set_bytes; /* total size of the sets allocated */
  int64_t *work;     /* work left for the whole file */
  int32_t reachable; /* whether the current instruction is reachable */
  int32_t changed;   /* whether a backward jump changed the state of a loop head in this walk */
  rvm_value *error;
} checker;

/* The limits of verification: the memory for the register sets of a function, the number of walks over a function, and
   the work for a file.  Work is counted in words of sets that are copied or intersected.  The limit of work takes about
   half a second for 10 MB of code.  Ordinary code stays far below these limits. */
#define LARGEST_SET_BYTES ((int64_t)1 << 28)
enum { MAX_WALKS = 64, WORK_PER_CODE_BYTE = 64, BASE_WORK = 1 << 24 };

const char *rvm_opcode_operands(uint32_t opcode) { return operand_letters[opcode]; }

uint32_t rvm_instruction_words(const uint32_t *code, uint32_t available) {
  if (code[0] >= RVM_OP_COUNT) return 0;
  uint32_t words = 1;
  for (const char *letter = operand_letters[code[0]]; *letter; letter++) {
    if (words >= available) return 0;
    if (*letter == 'A') {
      if (code[words] > available - words - 1) return 0;
      words += code[words];
    }
    words++;
  }
  return words;
}

/* Returns the 0-based number of the instruction at `pc`, for messages. */
static int64_t instruction_index(const checker *c, uint32_t pc) {
  int64_t index = 0;
  for (uint32_t next = 0; next < pc; next += rvm_instruction_words(c->code + next, c->count - next)) index++;
  return index;
}

/* Fails with BAD_EXECUTABLE.  `format` may contain one %lld, for `number`. */
static rvm_status bad(const checker *c, uint32_t pc, const char *format, int64_t number) {
  char text[96];
  snprintf(text, sizeof text, format, (long long)number);
  return rvm_fail(c->error, RVM_BAD_EXECUTABLE, "executable: function %s, instruction %lld: %s", c->name,
                  (long long)instruction_index(c, pc), text);
}

/* ---- validity of single instructions ---- */

/* Returns whether the function has this register.  Negative numbers are out of range after the conversion, because a
   function has at most INT32_MAX registers. */
static int is_register(const checker *c, int32_t number) { return (uint32_t)number < c->function->registers; }

/* Checks the argument word at 0-based `position` of the argument list of the instruction at `pc`. */
static rvm_status check_argument(const checker *c, uint32_t pc, uint32_t position, uint32_t word) {
  int32_t payload = rvm_argument_payload(word);
  int ok = 0;
  switch (rvm_argument_kind(word)) {
    case RVM_ARGUMENT_REGISTER: ok = is_register(c, payload); break;
    case RVM_ARGUMENT_IMMEDIATE: ok = 1; break;
    case RVM_ARGUMENT_CONSTANT: ok = payload >= 0 && payload < c->executable->constant_count; break;
    case RVM_ARGUMENT_FUNCTION: ok = payload >= 0 && payload < c->executable->function_count; break;
    case RVM_ARGUMENT_CONTEXT:
      if (position > 0) return bad(c, pc, "argument %lld: the context can only be the first argument", position);
      ok = payload == 0;
      break;
    case RVM_ARGUMENT_NIL: ok = payload == 0; break;
    case RVM_ARGUMENT_BOOL: ok = payload == 0 || payload == 1; break;
  }
  return ok ? RVM_OK : bad(c, pc, "argument %lld is malformed or out of range", position);
}

/* Checks the argument list of a call.  The callee must exist.  Only packed functions may receive the context
   (arguments.def), because other functions would hold it in a register. */
static rvm_status check_arguments(const checker *c, uint32_t pc, uint32_t callee, const uint32_t *list) {
  const rvm_function_record *function = &c->executable->functions[callee];
  if (function->parameter_count >= 0 && list[0] != (uint32_t)function->parameter_count)
    return bad(c, pc, "the number of arguments of a call, %lld, is not that of the function's parameters", list[0]);
  for (uint32_t i = 0; i < list[0]; i++) {
    rvm_status status = check_argument(c, pc, i, list[1 + i]);
    if (status) return status;
  }
  if (list[0] > 0 && rvm_argument_kind(list[1]) == RVM_ARGUMENT_CONTEXT && function->kind != RVM_KIND_packed)
    return bad(c, pc, "argument %lld: only packed functions take the context", 0);
  return RVM_OK;
}

/* Checks the operands of the scalar operator `row`, which must exist.  An operand is a register, a constant of any
   type, an immediate integer or a bool. */
static rvm_status check_scalar_arguments(const checker *c, uint32_t pc, uint32_t row, const uint32_t *list) {
  if (list[0] != (uint32_t)rvm_scalar_op_operand_count((int32_t)row))
    return bad(c, pc, "the number of operands, %lld, is not the number that the operator takes", list[0]);
  for (uint32_t i = 0; i < list[0]; i++) {
    uint32_t kind = rvm_argument_kind(list[1 + i]);
    if (kind == RVM_ARGUMENT_FUNCTION || kind == RVM_ARGUMENT_CONTEXT || kind == RVM_ARGUMENT_NIL)
      return bad(c, pc, "operand %lld must be a scalar", i);
    rvm_status status = check_argument(c, pc, i, list[1 + i]);
    if (status) return status;
  }
  return RVM_OK;
}

/* Checks that the operands of the instruction at `pc` are in range.  Jumps are checked later. */
static rvm_status check_operands(const checker *c, uint32_t pc) {
  const uint32_t *operand = c->code + pc + 1;
  /* The callee or scalar operator, which is known when the argument list, the last operand, is checked. */
  uint32_t callee = 0, row = RVM_SCALAR_OP_COUNT;
  for (const char *letter = operand_letters[c->code[pc]]; *letter; letter++, operand++) {
    int32_t number = (int32_t)*operand;
    rvm_status status;
    switch (*letter) {
      case 'd':
        if (number == -1 && c->code[pc] == RVM_OP_prim)
          return bad(c, pc, "an operator must have a destination register", 0);
        if (number != -1 && !is_register(c, number)) return bad(c, pc, "register number %lld is out of range", number);
        break;
      case 'r':
      case 'u':
        if (!is_register(c, number)) return bad(c, pc, "register number %lld is out of range", number);
        break;
      case 'f':
        if (*operand >= (uint32_t)c->executable->function_count)
          return bad(c, pc, "function index %lld is out of range", *operand);
        callee = *operand;
        break;
      case 'p':
        if (*operand >= RVM_SCALAR_OP_COUNT) return bad(c, pc, "scalar operator %lld is unknown", *operand);
        row = *operand;
        break;
      case 'A':
        status = row < RVM_SCALAR_OP_COUNT ? check_scalar_arguments(c, pc, row, operand)
                                           : check_arguments(c, pc, callee, operand);
        if (status) return status;
        break;
    }
  }
  return RVM_OK;
}

/* Returns the jump target of an instruction, or -1 if it does not jump. */
static int64_t jump_target(const checker *c, uint32_t pc) {
  const char *letters = operand_letters[c->code[pc]], *jump = strchr(letters, 'j');
  return jump ? (int64_t)pc + (int32_t)c->code[pc + 1 + (uint32_t)(jump - letters)] : -1;
}

static uint32_t words_at(const checker *c, uint32_t pc) { return rvm_instruction_words(c->code + pc, c->count - pc); }

/* Checks each instruction, and marks its start.  Then checks the jumps, whose targets must be marked, and marks the
   loop heads. */
static rvm_status check_form(checker *c) {
  uint32_t last = 0;
  for (uint32_t pc = 0; pc < c->count; pc += words_at(c, pc)) {
    if (words_at(c, pc) == 0) return bad(c, pc, "opcode %lld is unknown, or the instruction is truncated", c->code[pc]);
    rvm_status status = check_operands(c, pc);
    if (status) return status;
    c->marks[pc] = STARTS_INSTRUCTION;
    last = pc;
  }
  if (flows[c->code[last]] != ENDS)
    return bad(c, last, "the last instruction must return or jump, but control falls off the end of the function", 0);
  for (uint32_t pc = 0; pc < c->count; pc += words_at(c, pc)) {
    int64_t target = jump_target(c, pc);
    if (!strchr(operand_letters[c->code[pc]], 'j')) continue;
    if (target < 0 || target >= c->count || !(c->marks[target] & STARTS_INSTRUCTION))
      return bad(c, pc, "the jump target, word %lld, is not the start of an instruction", target);
    if (target <= pc) c->marks[target] |= IS_LOOP_HEAD;
  }
  return RVM_OK;
}

/* ---- registers must be written before they are read ---- */

static void set_add(register_set *set, int32_t number) { set->bits[number / 64] |= (uint64_t)1 << number % 64; }
static void set_remove(register_set *set, int32_t number) { set->bits[number / 64] &= ~((uint64_t)1 << number % 64); }
static int set_has(const register_set *set, int32_t number) { return set->bits[number / 64] >> number % 64 & 1; }

/* Allocates a set with indeterminate contents. */
static rvm_status set_new(checker *c, register_set **set) {
  size_t size_bytes = c->set_words * sizeof(uint64_t);
  *set = c->free_sets;
  if (*set) {
    c->free_sets = (*set)->next;
    return RVM_OK;
  }
  c->set_bytes += (int64_t)size_bytes;
  if (c->set_bytes > LARGEST_SET_BYTES)
    return rvm_fail(
        c->error, RVM_UNSUPPORTED,
        "executable: function %s has too many jumps for its number of registers: verifying it takes more than "
        "%lld bytes",
        c->name, (long long)LARGEST_SET_BYTES);
  *set = rvm_allocate(size_bytes);
  return *set ? RVM_OK : rvm_out_of_memory(c->error);
}

static void set_discard(checker *c, register_set *set) {
  set->next = c->free_sets;
  c->free_sets = set;
}

static void set_copy(const checker *c, register_set *dst, const register_set *src) {
  *c->work -= c->set_words;
  memcpy(dst->bits, src->bits, c->set_words * sizeof(uint64_t));
}

/* Removes from *dst the registers that are not in *src.  Returns whether there were any. */
static int set_intersect(const checker *c, register_set *dst, const register_set *src) {
  *c->work -= c->set_words;
  uint64_t lost = 0;
  for (uint32_t i = 0; i < c->set_words; i++) {
    lost |= dst->bits[i] & ~src->bits[i];
    dst->bits[i] &= src->bits[i];
  }
  return lost != 0;
}

/* Merges a path to a jump target into the state of the target: c->written is the set of registers written on the
   path. */
static rvm_status join(checker *c, uint32_t target, int backward) {
  register_set **state = &c->states[target];
  int changed = 1;
  if (*state) {
    changed = set_intersect(c, *state, c->written);
  } else {
    rvm_status status = set_new(c, state);
    if (status) return status;
    set_copy(c, *state, c->written);
  }
  if (backward) c->changed |= changed;
  return RVM_OK;
}

/* Updates c->written and c->reachable when the walk arrives at the instruction at `pc`: merges the path from the
   previous instruction with the jumps to `pc` found so far. */
static rvm_status arrive_at(checker *c, uint32_t pc) {
  register_set **state = &c->states[pc];
  if (c->reachable && (*state || c->marks[pc] & IS_LOOP_HEAD)) {
    rvm_status status = join(c, pc, 0);
    if (status) return status;
  }
  if (!*state) return RVM_OK;
  c->reachable = 1;
  set_copy(c, c->written, *state);
  if (c->marks[pc] & IS_LOOP_HEAD) return RVM_OK;
  set_discard(c, *state);
  *state = NULL;
  return RVM_OK;
}

static rvm_status fail_unwritten(const checker *c, uint32_t pc, int32_t number) {
  return bad(c, pc, "register %lld is read before it is written", number);
}

/* Checks that each register that the instruction reads has been written, and updates the set of written registers.  The
   destination is added at the end, because an instruction reads its arguments before it writes its result. */
static rvm_status pass_operands(checker *c, uint32_t pc) {
  const uint32_t *operand = c->code + pc + 1;
  int32_t destination = -1;
  for (const char *letter = operand_letters[c->code[pc]]; *letter; letter++, operand++) {
    const int32_t number = (int32_t)*operand;
    switch (*letter) {
      case 'd': destination = number; break;           /* the destination register, or -1 */
      case 'u': set_remove(c->written, number); break; /* a register that is released */
      case 'r':                                        /* a register that is read */
        if (!set_has(c->written, number)) return fail_unwritten(c, pc, number);
        break;
      case 'A': /* the argument list, which is the last operand */
        for (uint32_t i = 1; i <= operand[0]; i++) {
          int32_t argument = rvm_argument_payload(operand[i]);
          if (rvm_argument_kind(operand[i]) == RVM_ARGUMENT_REGISTER && !set_has(c->written, argument))
            return fail_unwritten(c, pc, argument);
        }
        break;
      default: break; /* not a register */
    }
  }
  if (destination >= 0) set_add(c->written, destination);
  return RVM_OK;
}

/* Walks over the instructions once, in order. */
static rvm_status walk(checker *c) {
  memset(c->written->bits, 0, c->set_words * sizeof(uint64_t));
  for (int32_t i = 0; i < c->function->parameter_count; i++) set_add(c->written, i);
  c->reachable = 1;
  c->changed = 0;
  for (uint32_t pc = 0; pc < c->count; pc += words_at(c, pc)) {
    rvm_status status = arrive_at(c, pc);
    if (status) return status;
    if (!c->reachable) continue;
    if ((status = pass_operands(c, pc))) return status;
    int64_t target = jump_target(c, pc);
    if (target >= 0 && (status = join(c, (uint32_t)target, target <= pc))) return status;
    if (flows[c->code[pc]] == ENDS) c->reachable = 0;
    if (*c->work < 0)
      return rvm_fail(
          c->error, RVM_UNSUPPORTED,
          "executable: function %s has too many jumps for its number of registers: verifying it takes too long",
          c->name);
  }
  return RVM_OK;
}

/* Walks until no backward jump changes the state of a loop head.  A walk passes the body of a loop before it finds the
   jumps back to the head.  In the body, the walk may therefore count a register as written that is not written when
   such a jump is taken.  The next walk passes the body without this register. */
static rvm_status check_flow(checker *c) {
  for (int walks = 0; walks < MAX_WALKS; walks++) {
    rvm_status status = walk(c);
    if (status || !c->changed) return status;
  }
  return rvm_fail(c->error, RVM_UNSUPPORTED,
                  "executable: the control flow of function %s is too complex to verify; split the function", c->name);
}

/* ---- all functions ---- */

static void checker_release(checker *c) {
  for (uint32_t i = 0; c->states && i < c->count; i++) rvm_free(c->states[i]);
  while (c->free_sets) {
    register_set *next = c->free_sets->next;
    rvm_free(c->free_sets);
    c->free_sets = next;
  }
  rvm_free(c->written);
  rvm_free(c->states);
  rvm_free(c->marks);
}

static rvm_status verify_function(const rvm_executable *executable, const rvm_function_record *function, int64_t *work,
                                  rvm_value *error) {
  checker c = {.executable = executable,
               .function = function,
               .name = rvm_executable_string(executable, function->name),
               .code = executable->code + function->code_start,
               .count = function->code_count,
               .set_words = function->registers / 64 + 1,
               .work = work,
               .error = error};
  c.marks = rvm_allocate_zeroed(c.count);
  c.states = rvm_allocate_zeroed(c.count * sizeof *c.states);
  rvm_status status = c.marks && c.states ? set_new(&c, &c.written) : rvm_out_of_memory(error);
  if (!status) status = check_form(&c);
  if (!status) status = check_flow(&c);
  checker_release(&c);
  return status;
}

rvm_status rvm_executable_verify(rvm_executable *executable, rvm_value *error) {
  int64_t work = executable->sections[RVM_SECTION_code].size_bytes * WORK_PER_CODE_BYTE + BASE_WORK;
  rvm_status status = RVM_OK;
  /* Register sets have a separate limit (LARGEST_SET_BYTES), and are freed before this function returns. */
  rvm_budget *budget = rvm_budget_set(NULL);
  for (int32_t i = 0; i < executable->function_count && !status; i++) {
    const rvm_function_record *function = &executable->functions[i];
    if (function->kind == RVM_KIND_bytecode) status = verify_function(executable, function, &work, error);
  }
  rvm_budget_set(budget);
  return status;
}
