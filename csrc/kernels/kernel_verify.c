/* kernel_verify.c: see kernel_verify.h.  The checks of operands are driven by the letters in kernel_opcodes.def. */
#include "cold.h"

#include <string.h>

#include "base.h"
#include "dtype.h"
#include "element_functions.h"
#include "errors.h"
#include "kernel_verify.h"
#include "micro_kernels.h"
#include "selected.h"

typedef struct program_header {
  uint32_t version, tensor_words, input_count, tensor_count, size_count, constant_count, scalar_count, strip_count,
      view_count, array_count, code_count, argument_count, message_count, message_bytes, scratch_bytes, flags;
} program_header;
_Static_assert(sizeof(program_header) == 64 && sizeof(rvm_kernel_instruction) == 16, "sizes in the file format");

#define BAD(error, ...) RVM_FAIL_BAD(error, "kernel bytecode: " __VA_ARGS__)

/* The columns of kernel_opcodes.def.  `names` is of the form "(dst, src)". */
static const struct {
  const char *name, *operands, *names;
} opcodes[] = {
#define KERNEL_OP(name, operands, names, meaning) {#name, operands, #names},
#include "kernel_opcodes.def"
#undef KERNEL_OP
};

/* Fails because operand number `index` of the instruction at `pc` is invalid.  `problem` follows the operand's name in
   the message. */
static rvm_status fail_operand(const rvm_kernel_program *program, uint32_t pc, size_t index, const char *problem,
                               rvm_value *error) {
  const rvm_kernel_instruction *instruction = &program->code[pc];
  const char *name = opcodes[instruction->op].names + 1;
  for (size_t i = 0; i < index; i++) name = strchr(name, ',') + 2;
  return BAD(error, "instruction %u, %s: operand %.*s %s, got %u", pc, opcodes[instruction->op].name,
             (int)strcspn(name, ",)"), name, problem, instruction->operands[index]);
}

/* Returns the address of `count` items of `item_bytes` bytes at *offset, and advances *offset past the items and their
   padding to 8 bytes.  Returns NULL if the items exceed the program. */
static const void *take(const char *bytes, uint64_t size_bytes, uint64_t *offset, uint64_t count, uint64_t item_bytes) {
  const uint64_t start = *offset, length = count * item_bytes; /* both factors are below 2^32 */
  if (length > size_bytes - start) return NULL;
  const uint64_t end = start + (length + 7) / 8 * 8;
  *offset = end > size_bytes ? size_bytes : end;
  return bytes + start;
}

/* Checks the table of tensors.  Size variables must be numbered in the order of their first use. */
static rvm_status check_tensors(const rvm_kernel_program *program, rvm_value *error) {
  uint32_t word = 0, known = 0;
  for (uint32_t i = 0; i < program->tensor_count; i++) {
    if (program->tensor_words - word < 2) return BAD(error, "the table of tensors is too short");
    const int64_t dtype = program->tensors[word++], rank = program->tensors[word++];
    if (dtype < 0 || dtype >= RVM_DTYPE_COUNT || dtype == RVM_DTYPE_str || rank < 0 || rank > RVM_MAX_RANK)
      return BAD(error, "tensor %u has an unknown dtype or an invalid rank", i);
    if (program->tensor_words - word < rank) return BAD(error, "the table of tensors is too short");
    for (int64_t axis = 0; axis < rank; axis++) {
      const int64_t dim = program->tensors[word++];
      if (dim >= 0) continue;
      if (dim < -(int64_t)known - 1 || dim < -(int64_t)program->size_count)
        return BAD(error, "tensor %u refers to an unknown size", i);
      if (dim == -(int64_t)known - 1) known++;
    }
  }
  if (word != program->tensor_words || known != program->size_count)
    return BAD(error, "the table of tensors does not match its number of words or sizes");
  return RVM_OK;
}

static rvm_status check_arrays(const rvm_kernel_program *program, rvm_value *error) {
  for (uint32_t i = 0; i < program->array_count; i++) {
    const rvm_kernel_array array = program->arrays[i];
    if (array.offset % 64 != 0 || array.offset > program->scratch_bytes ||
        array.size_bytes > program->scratch_bytes - array.offset)
      return BAD(error, "array %u lies outside the scratch memory", i);
  }
  return RVM_OK;
}

static rvm_status check_messages(const rvm_kernel_program *program, rvm_value *error) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < program->message_bytes; i++) count += program->messages[i] == 0;
  if (count != program->message_count ||
      (program->message_bytes > 0 && program->messages[program->message_bytes - 1] != 0))
    return BAD(error, "a message does not end with NUL");
  return RVM_OK;
}

/* Returns whether an operand is valid for its letter in kernel_opcodes.def. */
static int is_valid(const rvm_kernel_program *program, char letter, uint16_t operand) {
  const uint32_t scalars = program->scalar_count, strips = scalars + program->strip_count;
  const uint32_t all = strips + program->view_count, buffers = program->tensor_count + program->array_count;
  switch (letter) {
    case 'S': /* scalar */
    case 's': return operand < scalars;
    case 'v': return operand >= scalars && operand < strips; /* strip */
    case 'V': return operand >= scalars && operand < all;    /* strip or view */
    case 'w': return operand >= strips && operand < all;     /* view */
    case 'X':                                                /* any register */
    case 'x':
    case 'i':
    case 'p': return operand < all;
    case 'm': return operand < all || operand == RVM_NO_REGISTER;                  /* mask */
    case 'b': return operand < buffers;                                            /* buffer that is read */
    case 'B': return operand < buffers && operand >= program->input_count;         /* buffer that is written */
    case 'z': return operand == 1 || operand == 2 || operand == 4 || operand == 8; /* bytes of an element */
    case 'j': return operand < program->code_count;                                /* instruction */
    case 'F': return operand < rvm_element_function_count;                         /* element function */
    case 'c': return operand < rvm_micro_kernel_count;                             /* micro-kernel */
    case 't':                                                                      /* part of the argument table */
    case 'n': return operand <= program->argument_count;
    case 'u': return operand > RVM_OK && operand <= RVM_TIMEOUT; /* status */
    case 'y': return operand <= program->array_count;            /* array, or number of arrays */
    default: return operand < program->message_count;            /* 'k': message */
  }
}

/* Tables for the checks of instructions. */
typedef struct lookup {
  uint8_t *element_bytes; /* per tensor: the size of an element */
  uint8_t *view_bytes;    /* per view: the size of an element, or 0 if no earlier instruction makes the view */
  uint32_t *values;       /* per message: the number of values in it */
} lookup;

/* The maximum number of values of a `fail` instruction.  It bounds the time for checking the values. */
enum { MAX_VALUES = 16 };

/* Returns the number of values (%lld) in a message. */
static uint32_t format_values(const char *message) {
  uint32_t count = 0;
  for (const char *value = message; (value = strstr(value, "%lld")); value += 4) count++;
  return count;
}

/* Fills element_bytes and values. */
static void fill_lookup(const rvm_kernel_program *program, const lookup *lookup) {
  const int64_t *word = program->tensors;
  for (uint32_t i = 0; i < program->tensor_count; i++) {
    lookup->element_bytes[i] = (uint8_t)rvm_dtype_size_bytes((int32_t)word[0]);
    word += 2 + word[1];
  }
  uint32_t offset = 0;
  for (uint32_t i = 0; i < program->message_count; i++) {
    lookup->values[i] = format_values(program->messages + offset);
    offset += (uint32_t)strlen(program->messages + offset) + 1;
  }
}

/* Returns the element size of the register that operand number `index` of an instruction names. */
static uint32_t operand_element_bytes(const rvm_kernel_instruction *instruction, size_t index) {
  const char *letters = opcodes[instruction->op].operands;
  const char *size = strchr(letters, 'z'), *function = strchr(letters, 'F');
  if (letters[index] == 'i') return sizeof(int64_t);
  if (letters[index] == 'p' || letters[index] == 'm') return sizeof(uint8_t);
  if (size) return instruction->operands[size - letters];
  if (!function) return sizeof(int64_t); /* iota, iota_rows */
  const rvm_element_function *called = &rvm_element_functions[instruction->operands[function - letters]];
  return letters[index] == 'X' ? called->result_bytes : called->operand_bytes;
}

/* Checks that an earlier instruction makes each view that the instruction at `pc` uses, and that all instructions use a
   view with the same element size.  The elements of a view are then aligned. */
static rvm_status check_views(const rvm_kernel_program *program, const lookup *lookup, uint32_t pc, rvm_value *error) {
  const rvm_kernel_instruction *instruction = &program->code[pc];
  const uint32_t first = program->scalar_count + program->strip_count;
  const char *letters = opcodes[instruction->op].operands;
  for (size_t i = 0; letters[i]; i++) {
    const uint16_t operand = instruction->operands[i];
    if (!strchr("VXxipmw", letters[i]) || operand < first || operand == RVM_NO_REGISTER) continue;
    uint8_t *bytes = &lookup->view_bytes[operand - first];
    if (letters[i] == 'w' && *bytes == 0) *bytes = (uint8_t)operand_element_bytes(instruction, i);
    if (*bytes != operand_element_bytes(instruction, i))
      return fail_operand(program, pc, i,
                          "must be a view that an earlier instruction makes, of elements of the same size", error);
  }
  return RVM_OK;
}

/* Checks that `count` entries of the argument table from `first` on exist and are scalars. */
static rvm_status check_registers(const rvm_kernel_program *program, uint32_t pc, uint32_t first, uint32_t count,
                                  rvm_value *error) {
  if (first + count > program->argument_count) return BAD(error, "instruction %u: the arguments exceed the table", pc);
  for (uint32_t i = 0; i < count; i++)
    if (!is_valid(program, 's', program->arguments[first + i]))
      return BAD(error, "instruction %u: argument %u must be a scalar", pc, i);
  return RVM_OK;
}

/* Checks the arguments of an `invoke` instruction.  The argument table has one entry for a number, a scalar register,
   and two entries for an address, a buffer and the scalar register of a position in it. */
static rvm_status check_invoke(const rvm_kernel_program *program, uint32_t pc, rvm_value *error) {
  const rvm_kop_invoke *op = (const rvm_kop_invoke *)&program->code[pc];
  uint32_t index = op->first;
  const char *letters = rvm_micro_kernels[op->kernel].arguments;
  for (const char *letter = letters; *letter; letter++) {
    const int is_address = *letter == 'p' || *letter == 'P'; /* READ or WRITE (micro_kernels.h) */
    if (index + 1 + is_address > program->argument_count)
      return BAD(error, "instruction %u: the arguments exceed the table", pc);
    if (is_address && !is_valid(program, *letter == 'P' ? 'B' : 'b', program->arguments[index++]))
      return BAD(error, "instruction %u: an argument must be a buffer that the instruction may access", pc);
    if (!is_valid(program, 's', program->arguments[index++]))
      return BAD(error, "instruction %u: an argument must be a scalar", pc);
  }
  if (index != (uint32_t)op->first + op->count) return BAD(error, "instruction %u: wrong number of arguments", pc);
  return RVM_OK;
}

/* Checks that the operands of an `apply` instruction suit the function and the kind of the result. */
static rvm_status check_apply(const rvm_kernel_program *program, uint32_t pc, rvm_value *error) {
  const rvm_kop_apply *op = (const rvm_kop_apply *)&program->code[pc];
  const uint32_t scalars = program->scalar_count;
  if (op->dst < scalars && (op->left >= scalars || op->right >= scalars))
    return BAD(error, "instruction %u, apply: a scalar result requires scalar operands", pc);
  if (rvm_element_functions[op->function].arity == 1 && op->left != op->right)
    return BAD(error, "instruction %u, apply: the function takes one operand, and right must be left", pc);
  return RVM_OK;
}

static rvm_status check_fail(const rvm_kernel_program *program, const lookup *lookup, uint32_t pc, rvm_value *error) {
  const rvm_kop_fail *op = (const rvm_kop_fail *)&program->code[pc];
  if (op->count != lookup->values[op->message] || op->count > MAX_VALUES)
    return BAD(error, "instruction %u, fail: expected %u value%s and at most %d, got %u", pc,
               lookup->values[op->message], RVM_PLURAL(lookup->values[op->message]), MAX_VALUES, op->count);
  return check_registers(program, pc, op->first, op->count, error);
}

/* Checks the instruction at `pc`: first each operand by its letter, then what depends on several operands. */
static rvm_status check_instruction(const rvm_kernel_program *program, const lookup *lookup, uint32_t pc,
                                    rvm_value *error) {
  const rvm_kernel_instruction *instruction = &program->code[pc];
  const uint16_t *operands = instruction->operands;
  if (instruction->op >= RVM_KOP_COUNT)
    return BAD(error, "instruction %u has opcode %u, expected less than %d", pc, instruction->op, RVM_KOP_COUNT);
  const char *name = opcodes[instruction->op].name, *letters = opcodes[instruction->op].operands;
  const size_t count = strlen(letters);
  for (size_t i = 0; i < count; i++)
    if (!is_valid(program, letters[i], operands[i])) return fail_operand(program, pc, i, "is invalid", error);
  for (size_t i = count; i < RVM_KERNEL_OPERANDS; i++)
    if (operands[i] != 0) return BAD(error, "instruction %u, %s: an unused operand is not 0", pc, name);
  const char *size = strchr(letters, 'z'), *buffer = strpbrk(letters, "bB"), *function = strchr(letters, 'F');
  const int is_of_tensor = buffer && operands[buffer - letters] < program->tensor_count;
  if (size && is_of_tensor && operands[size - letters] != lookup->element_bytes[operands[buffer - letters]])
    return BAD(error, "instruction %u, %s: the element size must be that of the tensor", pc, name);
  switch (instruction->op) {
    case RVM_KOP_apply: return check_apply(program, pc, error);
    case RVM_KOP_accumulate:
    case RVM_KOP_fold_lanes:
    case RVM_KOP_fold: {
      const rvm_element_function *called = &rvm_element_functions[operands[function - letters]];
      if (called->arity == 2 && called->result_bytes == called->operand_bytes) return RVM_OK;
      return BAD(error, "instruction %u, %s: the function must take two elements and return one of the same size", pc,
                 name);
    }
    case RVM_KOP_fail: return check_fail(program, lookup, pc, error);
    case RVM_KOP_invoke: return check_invoke(program, pc, error);
    case RVM_KOP_parallel: {
      const uint32_t exit = ((const rvm_kop_parallel *)instruction)->exit;
      if (exit > pc + 1 && program->code[exit - 1].op == RVM_KOP_end) return RVM_OK;
      return BAD(error, "instruction %u, parallel: the loop body must end before instruction exit", pc);
    }
    default: return RVM_OK;
  }
}

/* Checks each instruction.  The tables of `lookup` are in one block of memory, those with words first. */
static rvm_status check_code(const rvm_kernel_program *program, rvm_value *error) {
  const size_t table_bytes = program->message_count * sizeof(uint32_t);
  uint8_t *memory = rvm_allocate_zeroed(table_bytes + program->tensor_count + program->view_count);
  if (!memory) return rvm_out_of_memory(error);
  uint8_t *const element_bytes = memory + table_bytes;
  const lookup lookup = {.element_bytes = element_bytes,
                         .view_bytes = element_bytes + program->tensor_count,
                         .values = (uint32_t *)(void *)memory};
  fill_lookup(program, &lookup);
  rvm_status status = RVM_OK;
  for (uint32_t i = 0; i < program->code_count && !status; i++) {
    status = check_instruction(program, &lookup, i, error);
    if (!status) status = check_views(program, &lookup, i, error);
  }
  rvm_free(memory);
  return status;
}

rvm_status rvm_kernel_program_read(const void *bytes, int64_t size_bytes, rvm_kernel_program *program,
                                   rvm_value *error) {
  const program_header *header = bytes;
  uint64_t offset = sizeof *header;
  const uint64_t size = (uint64_t)size_bytes;
  if (size_bytes < (int64_t)sizeof *header || (uintptr_t)bytes % 8 != 0)
    return BAD(error, "the program is too short or misaligned");
  if (header->version != RVM_KERNEL_VERSION)
    return BAD(error, "unsupported version %u, expected %d", header->version, RVM_KERNEL_VERSION);
  if (header->flags & ~(uint32_t)RVM_KERNEL_EXACT_FMA) return BAD(error, "unknown flags %#x", header->flags);
  *program = (rvm_kernel_program){.tensor_words = header->tensor_words,
                                  .input_count = header->input_count,
                                  .tensor_count = header->tensor_count,
                                  .size_count = header->size_count,
                                  .constant_count = header->constant_count,
                                  .scalar_count = header->scalar_count,
                                  .strip_count = header->strip_count,
                                  .view_count = header->view_count,
                                  .array_count = header->array_count,
                                  .code_count = header->code_count,
                                  .argument_count = header->argument_count,
                                  .message_count = header->message_count,
                                  .message_bytes = header->message_bytes,
                                  .scratch_bytes = header->scratch_bytes,
                                  .flags = header->flags};
  const uint64_t registers = (uint64_t)header->scalar_count + header->strip_count + header->view_count;
  const uint64_t buffers = (uint64_t)header->tensor_count + header->array_count;
  const uint64_t initial_scalars = (uint64_t)header->size_count + header->constant_count;
  /* Operands of instructions have 16 bits. */
  const int is_addressable = registers < RVM_NO_REGISTER && buffers <= UINT16_MAX && header->code_count <= UINT16_MAX &&
                             header->argument_count <= UINT16_MAX;
  const int is_consistent =
      header->code_count > 0 && header->input_count <= header->tensor_count && initial_scalars <= header->scalar_count;
  if (!is_addressable || !is_consistent || header->scratch_bytes > INT32_MAX)
    return BAD(error, "the counts in the header are inconsistent");
  program->tensors = take(bytes, size, &offset, header->tensor_words, sizeof *program->tensors);
  if (program->tensors)
    program->constants = take(bytes, size, &offset, header->constant_count, sizeof *program->constants);
  if (program->constants) program->arrays = take(bytes, size, &offset, header->array_count, sizeof *program->arrays);
  if (program->arrays) program->code = take(bytes, size, &offset, header->code_count, sizeof *program->code);
  if (program->code)
    program->arguments = take(bytes, size, &offset, header->argument_count, sizeof *program->arguments);
  if (program->arguments) program->messages = take(bytes, size, &offset, header->message_bytes, 1);
  if (!program->messages || offset != size) return BAD(error, "the size does not match the header");
  if (RVM_IS_SELECTIVE) return RVM_OK; /* the executable was verified when the library was made (selected.h) */
  rvm_status status = check_tensors(program, error);
  if (!status) status = check_arrays(program, error);
  if (!status) status = check_messages(program, error);
  if (!status) status = check_code(program, error);
  if (!status && program->code[header->code_count - 1].op != RVM_KOP_end)
    status = BAD(error, "the last instruction must be end");
  return status;
}
