/* predecode.c: translates bytecode functions into steps (predecode.h).

   decode_function emits one step for each instruction, specialized to the types of registers (register_types.h).  Jumps
   are patched once the positions of all steps are known. */
#include "cold.h"

#include "predecode.h"

#include <string.h>

#include "errors.h"
#include "register_types.h"
#include "scalar_ops.h"
#include "selected.h"
#include "verify.h"

/* MAX_MOVES: the largest number of arguments for which order_moves is tried.  Equal immediate ints from MIN_SHARED_INT
   to MAX_SHARED_INT share a literal. */
enum { MAX_MOVES = 16, MIN_SHARED_INT = -16, MAX_SHARED_INT = 255 };

typedef struct decoder {
  rvm_executable *executable;
  rvm_register_types types;
  int32_t *positions;           /* per code word that starts an instruction: offset of its step in `steps` */
  unsigned char *checked_types; /* per parameter of the current function (rvm_entry_checks) */
  /* The literal of each constant, function and shared int, of NIL, of each bool, and of the context: its index in
   `literals` plus 1, or 0 if it has no literal yet. */
  int32_t *literal_of_constant, *literal_of_function, *literal_of_int;
  int32_t literal_of_nil, literal_of_bool[2], literal_of_context;
  rvm_value *literals;
  int64_t literal_count;
  int32_t *steps, *objects;
  int64_t step_count, object_count;
} decoder;

static const char step_operands[][8] = {
#define STEP(name, operands, names, meaning) operands,
#define FAST STEP
#include "steps.def"
#undef FAST
#undef STEP
};

/* Returns the number of words of a step. */
static int32_t step_words(const int32_t *step) {
  if (*step >= RVM_STEP_any_add_i64) return RVM_OPERATOR_WORDS;
  int32_t words = 1;
  for (const char *letter = step_operands[*step]; *letter; letter++)
    words += 1 + (*letter == 'k' ? step[words] : *letter == 'm' ? 2 * step[words] : 0);
  return words;
}

int64_t rvm_code_instruction(const rvm_code *code, const int32_t *step) {
  int64_t index = 0;
  for (const int32_t *next = code->steps; next < step; next += step_words(next)) index++;
  return index;
}

const int32_t *rvm_code_step(const rvm_executable *executable, int32_t function, int64_t index) {
  const rvm_function_record *record = &executable->functions[function];
  const uint32_t *code = executable->code + record->code_start, *end = code + record->code_count;
  const int32_t *step = executable->codes[function].steps;
  for (; index > 0 && code < end; index--) {
    code += rvm_instruction_words(code, (uint32_t)(end - code));
    step += step_words(step);
  }
  return index == 0 && code < end ? step : NULL;
}

/* ---- literals ---- */

/* Returns the operand word for a literal.  *slot is the index of the literal plus 1.  If *slot is 0, adds the literal
   and sets *slot. */
static int32_t literal(decoder *d, rvm_value value, int32_t *slot) {
  if (*slot == 0) {
    d->literals[d->literal_count++] = value;
    *slot = (int32_t)d->literal_count;
  }
  return -*slot;
}

/* Translates an argument word into an operand word: the index of a register, or a negative number for a literal (kind s
   in steps.def). */
static int32_t operand(decoder *d, uint32_t word) {
  int32_t payload = rvm_argument_payload(word), fresh = 0;
  switch (rvm_argument_kind(word)) {
    case RVM_ARGUMENT_REGISTER: return payload;
    case RVM_ARGUMENT_IMMEDIATE: {
      int is_shared = payload >= MIN_SHARED_INT && payload <= MAX_SHARED_INT;
      return literal(d, rvm_int(payload), is_shared ? &d->literal_of_int[payload - MIN_SHARED_INT] : &fresh);
    }
    case RVM_ARGUMENT_BOOL: return literal(d, rvm_bool(payload), &d->literal_of_bool[payload]);
    case RVM_ARGUMENT_CONSTANT: return literal(d, d->executable->constants[payload], &d->literal_of_constant[payload]);
    case RVM_ARGUMENT_FUNCTION:
      return literal(d, (rvm_value){.tag = RVM_TAG_FUNCTION, .as.i = payload}, &d->literal_of_function[payload]);
    case RVM_ARGUMENT_CONTEXT: return literal(d, (rvm_value){.tag = RVM_TAG_CONTEXT}, &d->literal_of_context);
    default: return literal(d, (rvm_value){.tag = RVM_TAG_NIL}, &d->literal_of_nil);
  }
}

/* ---- steps ---- */

static void emit(decoder *d, int32_t word) { d->steps[d->step_count++] = word; }

/* Emits the count and the operands of an argument list. */
static void emit_operands(decoder *d, const uint32_t *list) {
  emit(d, (int32_t)list[0]);
  for (uint32_t i = 1; i <= list[0]; i++) emit(d, operand(d, list[i]));
}

static int is_scalar(enum rvm_register_type type) {
  return type == RVM_REGISTER_INT || type == RVM_REGISTER_FLOAT || type == RVM_REGISTER_BOOL;
}

static int is_dtype_or_nil(const decoder *d, uint32_t word) {
  return rvm_argument_kind(word) == RVM_ARGUMENT_NIL || rvm_is_constant(d->executable, word, RVM_TAG_DTYPE);
}

/* Returns the step for a call.  A specialized step has the same effect as RVM_STEP_call but runs faster. */
static enum rvm_step step_of_call(const decoder *d, const unsigned char *types, const uint32_t *instruction) {
  if (RVM_IS_SELECTIVE) return RVM_STEP_call;
  const int32_t destination = (int32_t)instruction[1];
  const uint32_t callee = instruction[2], count = instruction[3];
  const uint32_t *arguments = instruction + 4;
  switch ((enum rvm_function_class)d->types.classes[callee]) {
    case RVM_CLASS_OTHER:
    case RVM_CLASS_HOST:
    case RVM_CLASS_BYTECODE: return RVM_STEP_call;
    case RVM_CLASS_KERNEL:
      return (int64_t)count == d->executable->functions[callee].parameter_count ? RVM_STEP_call_kernel : RVM_STEP_call;
    case RVM_CLASS_INVOKE:
      return count >= 2 && rvm_argument_kind(arguments[0]) == RVM_ARGUMENT_CONTEXT ? RVM_STEP_invoke : RVM_STEP_call;
    case RVM_CLASS_COPY:
      if (count != 1 || destination < 0 || rvm_argument_kind(arguments[0]) == RVM_ARGUMENT_CONTEXT)
        return RVM_STEP_call_builtin;
      return is_scalar(types[destination]) && is_scalar(rvm_argument_type(d->executable, types, arguments[0]))
                 ? RVM_STEP_move
                 : RVM_STEP_copy;
    case RVM_CLASS_ITEM: return count == 2 && destination >= 0 ? RVM_STEP_item : RVM_STEP_call_builtin;
    case RVM_CLASS_CHECK:
      if (destination < 0 && count == 3 && rvm_is_constant(d->executable, arguments[1], RVM_TAG_DTYPE) &&
          rvm_is_constant(d->executable, arguments[2], RVM_TAG_STRING)) {
        rvm_value dtype = d->executable->constants[rvm_argument_payload(arguments[1])];
        if (dtype.as.i == RVM_DTYPE_i64) return RVM_STEP_check_int;
        if (dtype.as.i == RVM_DTYPE_f64) return RVM_STEP_check_float;
        if (dtype.as.i == RVM_DTYPE_bool) return RVM_STEP_check_bool;
      }
      return RVM_STEP_call_builtin;
    case RVM_CLASS_CHECK_TENSOR:
      if (destination < 0 && count == 4 && rvm_argument_kind(arguments[1]) == RVM_ARGUMENT_IMMEDIATE &&
          is_dtype_or_nil(d, arguments[2]) && rvm_is_constant(d->executable, arguments[3], RVM_TAG_STRING))
        return RVM_STEP_check_tensor;
      return RVM_STEP_call_builtin;
    default: return RVM_STEP_call_builtin;
  }
}

static void emit_call(decoder *d, const unsigned char *types, const uint32_t *instruction) {
  emit(d, (int32_t)step_of_call(d, types, instruction));
  emit(d, (int32_t)instruction[1]);
  emit(d, (int32_t)instruction[2]);
  emit_operands(d, instruction + 3);
}

/* Converts an operand word from an index of values to an offset in bytes. */
static int32_t byte_offset(int32_t operand) { return operand * (int32_t)sizeof(rvm_value); }

/* A number of registers or literals for which all offsets in bytes fit in int32. */
enum { MAX_VALUES = 1 << 26 };

static int is_i64_comparison(uint32_t row) { return row >= RVM_SCALAR_OP_eq_i64 && row <= RVM_SCALAR_OP_ge_i64; }

/* Emits the step of a scalar operator.  If the next instruction is a forward `if` on the result of an i64 comparison,
   the step of the comparison also performs the jump.  A next instruction exists, because an operator cannot end a
   function. */
static void emit_scalar_op(decoder *d, const rvm_function_record *function, const unsigned char *types,
                           const uint32_t *instruction) {
  const uint32_t destination = instruction[1], row = instruction[2], count = instruction[3];
  const uint32_t *arguments = instruction + 4, *next = arguments + count;
  int is_typed = !RVM_IS_SELECTIVE;
  is_typed &= function->registers <= MAX_VALUES && d->literal_count < MAX_VALUES; /* never: false only for 256 MB */
  is_typed &= is_scalar(types[destination]) && rvm_argument_kind(arguments[0]) == RVM_ARGUMENT_REGISTER;
  for (uint32_t i = 0; i < count && !RVM_IS_SELECTIVE; i++)
    is_typed &= rvm_argument_type(d->executable, types, arguments[i]) == rvm_scalar_operand_type(row, i);
  int32_t a = operand(d, arguments[0]);
  int32_t b = count > 1 ? operand(d, arguments[1]) : literal(d, (rvm_value){.tag = RVM_TAG_NIL}, &d->literal_of_nil);
  const int next_jumps = next[0] == RVM_OP_if && next[1] == destination && (int32_t)next[2] > 0;
  const int jumps = is_typed && is_i64_comparison(row) && next_jumps;
  if (!is_typed)
    emit(d, (int32_t)(RVM_STEP_any_add_i64 + row));
  else if (jumps)
    emit(d, (int32_t)((b >= 0 ? RVM_STEP_unless_rr_eq_i64 : RVM_STEP_unless_rl_eq_i64) + row - RVM_SCALAR_OP_eq_i64));
  else
    emit(d, (int32_t)((b >= 0 ? RVM_STEP_rr_add_i64 : RVM_STEP_rl_add_i64) + row));
  emit(d, is_typed ? byte_offset((int32_t)destination) : (int32_t)destination);
  emit(d, is_typed ? byte_offset(a) : a);
  emit(d, is_typed ? byte_offset(b) : b);
}

/* Orders the `count` moves from operand sources[i] to register i, so that no move overwrites a source of a later one.
   Stores the registers in `order`, without moves from a register to itself, and returns their number.  Returns -1 if
   there is no such order, or if `count` exceeds MAX_MOVES. */
static int32_t order_moves(const int32_t *sources, int32_t count, int32_t *order) {
  int32_t placed = 0, todo = 0;
  unsigned char done[MAX_MOVES] = {0}, readers[MAX_MOVES] = {0}; /* readers[i]: number of pending moves that read i */
  if (count > MAX_MOVES) return -1;
  for (int32_t i = 0; i < count; i++) {
    done[i] = sources[i] == i;
    todo += !done[i];
    if (!done[i] && (uint32_t)sources[i] < (uint32_t)count) readers[sources[i]]++;
  }
  for (int moved = 1; moved && placed < todo;) {
    moved = 0;
    for (int32_t i = 0; i < count; i++) {
      if (done[i] || readers[i] > 0) continue;
      order[placed++] = i;
      done[i] = 1;
      moved = 1;
      if ((uint32_t)sources[i] < (uint32_t)count) readers[sources[i]]--;
    }
  }
  return placed == todo ? placed : -1;
}

/* Emits the step of a tail call in function `index`, whose entry checks end at code word `checks_end`.  If the function
   calls itself, the step is a jump.  The jump goes to `checks_end` if the types of the arguments are known to pass the
   entry checks, else to the start.  The jump past the checks of a function without objects becomes an `again` step, if
   the assignments to the parameters can be ordered. */
static void emit_tail_call(decoder *d, int32_t index, const unsigned char *types, const uint32_t *instruction,
                           uint32_t checks_end) {
  const rvm_function_record *function = &d->executable->functions[index];
  const uint32_t callee = instruction[1], *list = instruction + 2;
  if (callee != (uint32_t)index || RVM_IS_SELECTIVE) {
    emit(d, RVM_STEP_tail_call);
    emit(d, 0); /* the operand `target`, which is not used */
    emit(d, (int32_t)callee);
    emit_operands(d, list);
    return;
  }
  int passes_checks = 1;
  for (uint32_t i = 0; i < list[0]; i++) {
    enum rvm_register_type type = (enum rvm_register_type)d->checked_types[i];
    passes_checks &= type == RVM_REGISTER_NEVER ||
                     (type != RVM_REGISTER_ANY && rvm_argument_type(d->executable, types, list[1 + i]) == type);
  }
  /* `sources` are the operands that emit_operands emits below. */
  int32_t *start = d->steps + d->step_count, *sources = start + RVM_CALL_WORDS, order[MAX_MOVES], moves;
  emit(d, RVM_STEP_tail_self);
  emit(d, (int32_t)(d->positions[function->code_start + (passes_checks ? checks_end : 0)] - (start - d->steps)));
  emit(d, (int32_t)callee);
  emit_operands(d, list);
  if (!passes_checks || d->executable->codes[index].object_count > 0) return;
  if ((moves = order_moves(sources, (int32_t)list[0], order)) < 0) return;
  *start = RVM_STEP_again;
  emit(d, moves);
  for (int32_t i = 0; i < moves; i++) {
    emit(d, order[i]);
    emit(d, sources[order[i]]);
  }
}

/* Emits the step of an instruction of function `index`.  The targets of jumps are patched later (patch_jump). */
static void emit_instruction(decoder *d, int32_t index, const uint32_t *instruction, uint32_t checks_end) {
  const unsigned char *types = rvm_registers_of(&d->types, index);
  switch ((enum rvm_opcode)instruction[0]) { /* never: another opcode, which the verifier rejects */
    case RVM_OP_call: emit_call(d, types, instruction); return;
    case RVM_OP_prim: emit_scalar_op(d, &d->executable->functions[index], types, instruction); return;
    case RVM_OP_tail_call: emit_tail_call(d, index, types, instruction, checks_end); return;
    case RVM_OP_ret: emit(d, RVM_STEP_ret); break;
    case RVM_OP_if:
      emit(d, types[instruction[1]] == RVM_REGISTER_BOOL && (int32_t)instruction[2] > 0 && !RVM_IS_SELECTIVE
                  ? RVM_STEP_unless_bool
                  : RVM_STEP_unless);
      break;
    case RVM_OP_reset: emit(d, RVM_STEP_reset); break;
    case RVM_OP_goto: emit(d, (int32_t)instruction[1] <= 0 ? RVM_STEP_go_back : RVM_STEP_go); break;
    case RVM_OP_COUNT: break;
  }
  emit(d, (int32_t)instruction[1]);
  if (instruction[0] == RVM_OP_if) emit(d, (int32_t)instruction[2]);
}

/* Stores the target of a jump, converted from code words to step words.  Does nothing for other instructions. */
static void patch_jump(decoder *d, const rvm_function_record *function, uint32_t pc) {
  const uint32_t *instruction = d->executable->code + function->code_start + pc;
  const int32_t *positions = d->positions + function->code_start;
  int32_t *step = d->steps + positions[pc];
  if (instruction[0] == RVM_OP_goto)
    ((rvm_step_go *)step)->target = positions[(int32_t)pc + (int32_t)instruction[1]] - positions[pc];
  if (instruction[0] == RVM_OP_if)
    ((rvm_step_unless *)step)->target = positions[(int32_t)pc + (int32_t)instruction[2]] - positions[pc];
}

/* Emits the steps of a bytecode function and fills its rvm_code. */
static void decode_function(decoder *d, int32_t index) {
  const rvm_function_record *function = &d->executable->functions[index];
  rvm_code *decoded = &d->executable->codes[index];
  const uint32_t *code = d->executable->code + function->code_start;
  const unsigned char *types = rvm_registers_of(&d->types, index);
  const uint32_t checks_end = RVM_IS_SELECTIVE ? 0 : rvm_entry_checks(&d->types, function, d->checked_types);
  decoded->steps = d->steps + d->step_count;
  decoded->objects = d->objects + d->object_count;
  for (uint32_t i = 0; i < function->registers; i++) {
    if (types[i] != RVM_REGISTER_ANY) continue;
    d->objects[d->object_count++] = (int32_t)i;
    decoded->object_count++;
  }
  for (uint32_t pc = 0; pc < function->code_count; pc += rvm_instruction_words(code + pc, function->code_count - pc)) {
    d->positions[function->code_start + pc] = (int32_t)d->step_count;
    emit_instruction(d, index, code + pc, checks_end);
  }
  for (uint32_t pc = 0; pc < function->code_count; pc += rvm_instruction_words(code + pc, function->code_count - pc))
    patch_jump(d, function, pc);
}

static rvm_status allocate(decoder *d, int32_t most_parameters, rvm_value *error) {
  rvm_executable *executable = d->executable;
  size_t functions = (size_t)executable->function_count, words = executable->code_words;
  size_t ints = MAX_SHARED_INT - MIN_SHARED_INT + 1;
  d->positions = rvm_allocate_zeroed(words * sizeof *d->positions);
  d->checked_types = rvm_allocate((size_t)most_parameters);
  d->literal_of_constant = rvm_allocate_zeroed((size_t)executable->constant_count * sizeof(int32_t));
  d->literal_of_function = rvm_allocate_zeroed(functions * sizeof(int32_t));
  d->literal_of_int = rvm_allocate_zeroed(ints * sizeof(int32_t));
  /* At most one literal for each code word, and one each for NIL, false, true and the context. */
  d->literals = rvm_allocate((words + 4) * sizeof *d->literals);
  executable->codes = rvm_allocate_zeroed(functions * sizeof *executable->codes);
  executable->steps = d->steps = rvm_allocate(RVM_STEP_WORDS_PER_CODE_WORD * words * sizeof *d->steps);
  executable->objects = d->objects = rvm_allocate((size_t)d->types.count * sizeof *d->objects);
  int ok = d->positions && d->checked_types && d->literal_of_constant && d->literal_of_function && d->literal_of_int &&
           d->literals && executable->codes && d->steps && d->objects;
  return ok ? RVM_OK : rvm_out_of_memory(error);
}

/* Stores the literals in reverse order, so that the operand word -k denotes the k-th literal before the end. */
static rvm_status store_literals(decoder *d, rvm_value *error) {
  rvm_executable *executable = d->executable;
  executable->literals = rvm_allocate((size_t)d->literal_count * sizeof *executable->literals);
  if (!executable->literals) return rvm_out_of_memory(error);
  for (int64_t i = 0; i < d->literal_count; i++) executable->literals[d->literal_count - 1 - i] = d->literals[i];
  executable->literal_count = d->literal_count;
  return RVM_OK;
}

static void decoder_release(decoder *d) {
  void *blocks[] = {d->types.classes, d->types.results,       d->types.types,         d->types.first,    d->positions,
                    d->checked_types, d->literal_of_constant, d->literal_of_function, d->literal_of_int, d->literals};
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) rvm_free(blocks[i]);
}

rvm_status rvm_executable_decode(rvm_executable *executable, rvm_value *error) {
  decoder d = {.executable = executable};
  int32_t most_parameters = 0;
  for (int32_t i = 0; i < executable->function_count; i++) {
    const rvm_function_record *function = &executable->functions[i];
    if (function->kind != RVM_KIND_bytecode) continue;
    if (function->parameter_count > most_parameters) most_parameters = function->parameter_count;
  }
  rvm_status status = rvm_register_types_infer(&d.types, executable, error);
  if (!status) status = allocate(&d, most_parameters, error);
  if (!status) {
    for (int32_t i = 0; i < executable->function_count; i++)
      if (executable->functions[i].kind == RVM_KIND_bytecode) decode_function(&d, i);
    status = store_literals(&d, error);
  }
  decoder_release(&d);
  return status;
}
