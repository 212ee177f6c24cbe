/* register_types.c: type inference for the registers of bytecode functions (register_types.h).

   find_types starts with NEVER and widens the types of registers and results until nothing changes.

   An instrument can skip a call, whose result is then NIL.  widen_unread_results lets a register accept this NIL if the
   register receives the result of a call, and is never read or still has the type NEVER.  In any other register of a
   scalar type, the skipped call ends the run with an error (register_accepts in interpreter.c). */
#include "cold.h"

#include "register_types.h"

#include <string.h>

#include "errors.h"
#include "selected.h"
#include "verify.h"

static const struct {
  char name[24];       /* without the prefix */
  unsigned char class; /* enum rvm_function_class */
} builtins[] = {
#define BUILTIN(name, signature, effect, cost, decoded, meaning) {#name, RVM_CLASS_##decoded},
#include "builtins.def"
#undef BUILTIN
};

/* The number of rounds of inference after which the results of bytecode functions count as ANY. */
enum { MAX_ROUNDS = 20 };

/* ---- classes of functions ---- */

static enum rvm_function_class class_of(const rvm_executable *executable, const rvm_function_record *function) {
  if (function->kind == RVM_KIND_bytecode) return RVM_CLASS_BYTECODE;
  if (function->kind == RVM_KIND_kernel) return RVM_CLASS_KERNEL;
  const char *name = rvm_executable_string(executable, function->name);
  if (!rvm_is_builtin_name(name)) return RVM_CLASS_OTHER;
  for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
    if (strcmp(name + strlen(RVM_BUILTIN_PREFIX), builtins[i].name) == 0)
      return (enum rvm_function_class)builtins[i].class;
  return RVM_CLASS_OTHER;
}

/* ---- type inference ---- */

/* Returns the least upper bound of two types. */
static enum rvm_register_type join(enum rvm_register_type a, enum rvm_register_type b) {
  return a == RVM_REGISTER_NEVER || a == b ? b : b == RVM_REGISTER_NEVER ? a : RVM_REGISTER_ANY;
}

/* Returns the type of a constant.  No constant is a bool. */
static enum rvm_register_type type_of_tag(int64_t tag) {
  return tag == RVM_TAG_INT ? RVM_REGISTER_INT : tag == RVM_TAG_FLOAT ? RVM_REGISTER_FLOAT : RVM_REGISTER_ANY;
}

/* Returns the type for a letter of the columns `operands` and `result` of scalar_operators.def. */
static enum rvm_register_type type_of_letter(char letter) {
  return letter == 'i' ? RVM_REGISTER_INT : letter == 'f' ? RVM_REGISTER_FLOAT : RVM_REGISTER_BOOL;
}

static const struct {
  char operands[3], result[2];
} scalar_ops[] = {
#define SCALAR_OPERATOR(name, function, operands, result, form, fails, meaning) {#operands, #result},
#include "scalar_operators.def"
#undef SCALAR_OPERATOR
};

enum rvm_register_type rvm_argument_type(const rvm_executable *executable, const unsigned char *registers,
                                         uint32_t word) {
  int32_t payload = rvm_argument_payload(word);
  switch (rvm_argument_kind(word)) {
    case RVM_ARGUMENT_REGISTER: return registers[payload];
    case RVM_ARGUMENT_IMMEDIATE: return RVM_REGISTER_INT;
    case RVM_ARGUMENT_BOOL: return RVM_REGISTER_BOOL;
    case RVM_ARGUMENT_CONSTANT: return type_of_tag(executable->constants[payload].tag);
    default: return RVM_REGISTER_ANY;
  }
}

enum rvm_register_type rvm_scalar_operand_type(uint32_t row, uint32_t index) {
  return type_of_letter(scalar_ops[row].operands[index]);
}

/* Widens *type so that it includes `added`. */
static void widen(rvm_register_types *t, unsigned char *type, enum rvm_register_type added) {
  enum rvm_register_type joined = join(*type, added);
  t->changed |= joined != *type;
  *type = (unsigned char)joined;
}

/* Returns the type of a call's result. */
static enum rvm_register_type type_of_call(const rvm_register_types *t, const unsigned char *types, uint32_t callee,
                                           const uint32_t *list) {
  switch ((enum rvm_function_class)t->classes[callee]) {
    case RVM_CLASS_BYTECODE: return t->results_are_any ? RVM_REGISTER_ANY : t->results[callee];
    case RVM_CLASS_COPY: return list[0] == 1 ? rvm_argument_type(t->executable, types, list[1]) : RVM_REGISTER_ANY;
    case RVM_CLASS_TRUTH: return RVM_REGISTER_BOOL;
    case RVM_CLASS_DIM: return RVM_REGISTER_INT;
    default: return RVM_REGISTER_ANY;
  }
}

int rvm_is_constant(const rvm_executable *executable, uint32_t word, int64_t tag) {
  return rvm_argument_kind(word) == RVM_ARGUMENT_CONSTANT &&
         executable->constants[rvm_argument_payload(word)].tag == tag;
}

/* Returns whether an instruction can be an entry check (register_types.h): a call of check_prim_value_info for a
   parameter and the dtype i64, f64 or bool.  Stores the parameter and its type. */
static int is_entry_check(const rvm_register_types *t, const rvm_function_record *function, const uint32_t *code,
                          int32_t *parameter, enum rvm_register_type *type) {
  if (code[0] != RVM_OP_call) return 0;
  const int32_t destination = (int32_t)code[1];
  const uint32_t callee = code[2], count = code[3];
  const uint32_t *arguments = code + 4; /* the value, its dtype and the text for the error */
  if (destination >= 0 || t->classes[callee] != RVM_CLASS_CHECK || count != 3) return 0;
  if (rvm_argument_kind(arguments[0]) != RVM_ARGUMENT_REGISTER ||
      !rvm_is_constant(t->executable, arguments[1], RVM_TAG_DTYPE) ||
      !rvm_is_constant(t->executable, arguments[2], RVM_TAG_STRING))
    return 0;
  *parameter = rvm_argument_payload(arguments[0]);
  rvm_value dtype = t->executable->constants[rvm_argument_payload(arguments[1])];
  if (*parameter >= function->parameter_count) return 0;
  *type = dtype.as.i == RVM_DTYPE_i64    ? RVM_REGISTER_INT
          : dtype.as.i == RVM_DTYPE_f64  ? RVM_REGISTER_FLOAT
          : dtype.as.i == RVM_DTYPE_bool ? RVM_REGISTER_BOOL
                                         : RVM_REGISTER_ANY;
  return *type != RVM_REGISTER_ANY;
}

/* Returns whether a call of the function runs no other function.  Such calls may be between entry checks. */
static int calls_nothing(const rvm_register_types *t, uint32_t callee) {
  return t->classes[callee] == RVM_CLASS_PLAIN || t->classes[callee] == RVM_CLASS_CHECK ||
         t->classes[callee] == RVM_CLASS_CHECK_TENSOR;
}

/* Widens the types of a function's registers and result by the types of the values written to them. */
static void widen_function(rvm_register_types *t, int32_t index) {
  const rvm_function_record *function = &t->executable->functions[index];
  const uint32_t *code = t->executable->code + function->code_start;
  unsigned char *types = rvm_registers_of(t, index);
  int at_entry = 1;
  for (uint32_t pc = 0; pc < function->code_count; pc += rvm_instruction_words(code + pc, function->code_count - pc)) {
    const uint32_t *instruction = code + pc;
    int32_t parameter;
    enum rvm_register_type type;
    switch ((enum rvm_opcode)instruction[0]) {
      case RVM_OP_call:
        if (at_entry && is_entry_check(t, function, instruction, &parameter, &type)) continue;
        at_entry &= calls_nothing(t, instruction[2]);
        if ((int32_t)instruction[1] >= 0)
          widen(t, &types[instruction[1]], type_of_call(t, types, instruction[2], instruction + 3));
        continue;
      case RVM_OP_prim: widen(t, &types[instruction[1]], type_of_letter(*scalar_ops[instruction[2]].result)); break;
      case RVM_OP_ret: widen(t, &t->results[index], types[instruction[1]]); break;
      case RVM_OP_tail_call:
        widen(t, &t->results[index], type_of_call(t, types, instruction[1], instruction + 2));
        break;
      case RVM_OP_reset: widen(t, &types[instruction[1]], RVM_REGISTER_ANY); break;
      default: break;
    }
    at_entry = 0;
  }
}

/* Initializes the types of a function's registers: the checked type for parameters with an entry check, ANY for other
   parameters, and NEVER for other registers. */
static void type_parameters(rvm_register_types *t, int32_t index) {
  const rvm_function_record *function = &t->executable->functions[index];
  const uint32_t *code = t->executable->code + function->code_start;
  unsigned char *types = rvm_registers_of(t, index);
  memset(types, RVM_REGISTER_NEVER, function->registers);
  memset(types, RVM_REGISTER_ANY, (size_t)function->parameter_count);
  /* The loop ends, because the last instruction is not a call. */
  for (uint32_t pc = 0;; pc += rvm_instruction_words(code + pc, function->code_count - pc)) {
    const uint32_t *instruction = code + pc;
    int32_t parameter;
    enum rvm_register_type type;
    if (is_entry_check(t, function, instruction, &parameter, &type)) {
      if (types[parameter] == RVM_REGISTER_ANY) types[parameter] = (unsigned char)type;
    } else if (instruction[0] != RVM_OP_call || !calls_nothing(t, instruction[2])) {
      return;
    }
  }
}

/* Infers the types of all registers and results in rounds, until nothing changes.  After MAX_ROUNDS, results of
   bytecode functions count as ANY, so that the inference converges sooner.  If it takes MAX_ROUNDS more, all types
   become ANY. */
static void find_types(rvm_register_types *t) {
  int32_t count = t->executable->function_count;
  for (int32_t i = 0; i < count; i++)
    if (t->classes[i] == RVM_CLASS_BYTECODE) type_parameters(t, i);
  for (int round = 0; round < 2 * MAX_ROUNDS; round++) {
    t->results_are_any = round >= MAX_ROUNDS;
    t->changed = 0;
    for (int32_t i = 0; i < count; i++)
      if (t->classes[i] == RVM_CLASS_BYTECODE) widen_function(t, i);
    if (!t->changed) return;
  }
  memset(t->types, RVM_REGISTER_ANY, (size_t)t->count);
  memset(t->results, RVM_REGISTER_ANY, (size_t)count);
}

uint32_t rvm_entry_checks(const rvm_register_types *t, const rvm_function_record *function,
                          unsigned char *checked_types) {
  const uint32_t *code = t->executable->code + function->code_start;
  uint32_t pc = 0;
  int32_t parameter;
  enum rvm_register_type type;
  memset(checked_types, RVM_REGISTER_NEVER, (size_t)function->parameter_count);
  while (is_entry_check(t, function, code + pc, &parameter, &type)) {
    checked_types[parameter] = (unsigned char)join((enum rvm_register_type)checked_types[parameter], type);
    pc += rvm_instruction_words(code + pc, function->code_count - pc);
  }
  return pc;
}

enum { READ = 1 << 7 }; /* a flag next to a register's type */

/* Sets the flag READ of each register that an instruction reads. */
static void mark_read(unsigned char *types, const uint32_t *code) {
  const uint32_t *operand = code + 1;
  for (const char *letter = rvm_opcode_operands(code[0]); *letter; letter++, operand++) {
    if (*letter == 'r') types[*operand] |= READ;
    if (*letter != 'A') continue;
    for (uint32_t i = 1; i <= operand[0]; i++)
      if (rvm_argument_kind(operand[i]) == RVM_ARGUMENT_REGISTER) types[rvm_argument_payload(operand[i])] |= READ;
  }
}

/* If a register receives the result of a call, and is either never read or has the type NEVER, widens its type to ANY.
   The register then accepts NIL, which is the result of a call that an instrument skips. */
static void widen_unread_results(rvm_register_types *t, int32_t index) {
  const rvm_function_record *function = &t->executable->functions[index];
  const uint32_t *code = t->executable->code + function->code_start;
  unsigned char *types = rvm_registers_of(t, index);
  for (uint32_t pc = 0; pc < function->code_count; pc += rvm_instruction_words(code + pc, function->code_count - pc))
    mark_read(types, code + pc);
  for (uint32_t pc = 0; pc < function->code_count; pc += rvm_instruction_words(code + pc, function->code_count - pc)) {
    if (code[pc] != RVM_OP_call || (int32_t)code[pc + 1] < 0) continue;
    unsigned char *type = &types[code[pc + 1]];
    if (!(*type & READ) || *type == (READ | RVM_REGISTER_NEVER))
      *type = (unsigned char)((*type & READ) | RVM_REGISTER_ANY);
  }
  for (uint32_t i = 0; i < function->registers; i++) types[i] &= (unsigned char)~READ;
}

rvm_status rvm_register_types_infer(rvm_register_types *t, const rvm_executable *executable, rvm_value *error) {
  size_t functions = (size_t)executable->function_count;
  t->executable = executable;
  t->classes = rvm_allocate(functions);
  t->results = rvm_allocate_zeroed(functions);
  t->first = rvm_allocate(functions * sizeof *t->first);
  if (!t->classes || !t->results || !t->first) return rvm_out_of_memory(error);
  for (int32_t i = 0; i < executable->function_count; i++) {
    t->classes[i] = RVM_IS_SELECTIVE ? 0 : (unsigned char)class_of(executable, &executable->functions[i]);
    t->first[i] = t->count;
    if (executable->functions[i].kind == RVM_KIND_bytecode) t->count += executable->functions[i].registers;
  }
  t->types = rvm_allocate((size_t)t->count);
  if (!t->types) return rvm_out_of_memory(error);
  if (RVM_IS_SELECTIVE) { /* no step is specialized to a type */
    memset(t->types, RVM_REGISTER_ANY, (size_t)t->count);
    return RVM_OK;
  }
  find_types(t);
  for (int32_t i = 0; i < executable->function_count; i++)
    if (t->classes[i] == RVM_CLASS_BYTECODE) widen_unread_results(t, i);
  return RVM_OK;
}
