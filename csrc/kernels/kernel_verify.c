/* kernel_verify.c: reads and verifies a program of kernel bytecode. */
#include "cold.h"

#include <string.h>

#include "base.h"
#include "dtype.h"
#include "element_functions.h"
#include "errors.h"
#include "kernel_verify.h"
#include "micro_kernels.h"

typedef struct program_header {
  uint32_t version, tensor_words, input_count, tensor_count, size_count, constant_count, scalar_count, strip_count, view_count,
      array_count, code_count, argument_count, message_count, message_bytes, scratch_bytes, zero;
} program_header;
_Static_assert(sizeof(program_header) == 64 && sizeof(rvm_kernel_instruction) == 16, "as in the file");

#define BAD(error, ...) rvm_fail(error, RVM_BAD_EXECUTABLE, "kernel bytecode: " __VA_ARGS__)

static const char *const operand_letters[] = {
#define KERNEL_OP(name, operands, meaning) operands,
#include "kernel_opcodes.def"
#undef KERNEL_OP
};
static const char *const opcode_names[] = {
#define KERNEL_OP(name, operands, meaning) #name,
#include "kernel_opcodes.def"
#undef KERNEL_OP
};

/* The `count` items of `item_bytes` at *at, which is moved behind them; NULL: they are not there. */
static const void *take(const char *bytes, uint64_t size_bytes, uint64_t *at, uint64_t count, uint64_t item_bytes) {
  const uint64_t start = *at, length = count * item_bytes; /* both below 2^32 * 16 */
  if (length > size_bytes - start) return NULL;
  const uint64_t end = start + (length + 7) / 8 * 8;
  *at = end > size_bytes ? size_bytes : end;
  return bytes + start;
}

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
  if (count != program->message_count || (program->message_bytes > 0 && program->messages[program->message_bytes - 1] != 0))
    return BAD(error, "a message does not end with NUL");
  return RVM_OK;
}

/* Whether an operand names what its letter says. */
static int is_valid(const rvm_kernel_program *program, char letter, uint16_t operand) {
  const uint32_t scalars = program->scalar_count, strips = scalars + program->strip_count;
  const uint32_t all = strips + program->view_count, buffers = program->tensor_count + program->array_count;
  switch (letter) {
    case 'S':
    case 's': return operand < scalars;
    case 'v': return operand >= scalars && operand < strips;
    case 'V': return operand >= scalars && operand < all;
    case 'w': return operand >= strips && operand < all;
    case 'X':
    case 'x': return operand < all;
    case 'm': return operand < all || operand == RVM_NO_REGISTER;
    case 'b': return operand < buffers;
    case 'B': return operand < buffers && operand >= program->input_count;
    case 'z': return operand == 1 || operand == 2 || operand == 4 || operand == 8;
    case 'j': return operand < program->code_count;
    case 'F': return operand < rvm_element_function_count;
    case 'c': return operand < rvm_micro_kernel_count;
    case 't':
    case 'n': return operand <= program->argument_count;
    case 'u': return operand > RVM_OK && operand <= RVM_TIMEOUT;
    case 'y': return operand <= program->array_count;
    default: return operand < program->message_count; /* k */
  }
}

/* Tables for the checks of instructions.  element_bytes: those of an element of each tensor.  view_bytes: of each view, 0 where no
   instruction makes it.  values: of each message. */
typedef struct lookup {
  uint8_t *element_bytes, *view_bytes;
  uint32_t *values;
} lookup;

enum { MAX_VALUES = 16 }; /* of a message; so checking a failure takes no long time */

static uint32_t format_values(const char *message) {
  uint32_t count = 0;
  for (const char *at = message; (at = strstr(at, "%lld")); at += 4) count++;
  return count;
}

static void fill_lookup(const rvm_kernel_program *program, const lookup *to) {
  const int64_t *word = program->tensors;
  for (uint32_t i = 0; i < program->tensor_count; i++) {
    to->element_bytes[i] = (uint8_t)rvm_dtype_size_bytes((int32_t)word[0]);
    word += 2 + word[1];
  }
  uint32_t at = 0;
  for (uint32_t i = 0; i < program->message_count; i++) {
    to->values[i] = format_values(program->messages + at);
    at += (uint32_t)strlen(program->messages + at) + 1;
  }
}

/* The bytes of an element of the strip that operand number `at` of an instruction names. */
static uint32_t strip_bytes(const rvm_kernel_instruction *step, size_t at) {
  switch (step->op) {
    case RVM_KOP_apply: {
      const rvm_element_function *function = &rvm_element_functions[step->d];
      return at == 0 ? function->result_bytes : function->operand_bytes;
    }
    case RVM_KOP_accumulate: return rvm_element_functions[step->c].operand_bytes;
    case RVM_KOP_view:
    case RVM_KOP_view_written: return step->d;
    case RVM_KOP_gather: return at == 0 ? step->d : at == 2 ? 8 : 1;
    case RVM_KOP_strided: return at == 0 ? step->e : 1;
    case RVM_KOP_load_rows:
    case RVM_KOP_store_rows: return step->g;
    case RVM_KOP_scatter: return at == 1 ? 8 : step->d;
    case RVM_KOP_store_strided: return step->e;
    case RVM_KOP_choose: return at == 1 ? 1 : step->e;
    case RVM_KOP_move: return step->c;
    default: return 8; /* iota, iota_rows */
  }
}

/* A view has elements of one size: then all of them are aligned, also once strips have another length. */
static rvm_status check_views(const rvm_kernel_program *program, const lookup *lookup, uint32_t place, rvm_value *error) {
  const rvm_kernel_instruction *step = &program->code[place];
  const uint16_t operands[] = {step->a, step->b, step->c, step->d, step->e, step->f, step->g};
  const uint32_t first = program->scalar_count + program->strip_count;
  const char *letters = operand_letters[step->op];
  for (size_t i = 0; letters[i]; i++) {
    if (!strchr("VXxmw", letters[i]) || operands[i] < first || operands[i] == RVM_NO_REGISTER) continue;
    uint8_t *bytes = &lookup->view_bytes[operands[i] - first];
    if (letters[i] == 'w' && *bytes == 0) *bytes = (uint8_t)step->d;
    if (*bytes != strip_bytes(step, i))
      return BAD(error, "instruction %u, %s: operand %c must be a view that an earlier instruction makes, of elements of the same size", place,
                 opcode_names[step->op], (char)('a' + i));
  }
  return RVM_OK;
}

static rvm_status check_registers(const rvm_kernel_program *program, uint32_t place, uint32_t first, uint32_t count,
                                  rvm_value *error) {
  if (first + count > program->argument_count) return BAD(error, "instruction %u: the arguments exceed the table", place);
  for (uint32_t i = 0; i < count; i++)
    if (!is_valid(program, 's', program->arguments[first + i]))
      return BAD(error, "instruction %u: argument %u must be a scalar", place, i);
  return RVM_OK;
}

static rvm_status check_invoke(const rvm_kernel_program *program, uint32_t place, rvm_value *error) {
  const rvm_kernel_instruction *step = &program->code[place];
  uint32_t at = step->b;
  const char *letters = rvm_micro_kernels[step->a].arguments;
  for (const char *letter = letters; *letter; letter++) {
    const int is_address = *letter == 'p' || *letter == 'P';
    if (at + 1 + is_address > program->argument_count) return BAD(error, "instruction %u: the arguments exceed the table", place);
    if (is_address && !is_valid(program, *letter == 'P' ? 'B' : 'b', program->arguments[at++]))
      return BAD(error, "instruction %u: an argument must be a buffer that the instruction may access", place);
    if (!is_valid(program, 's', program->arguments[at++]))
      return BAD(error, "instruction %u: an argument must be a scalar", place);
  }
  if (at != (uint32_t)step->b + step->c) return BAD(error, "instruction %u: wrong number of arguments", place);
  return RVM_OK;
}

static rvm_status check_instruction(const rvm_kernel_program *program, const lookup *lookup, uint32_t place, rvm_value *error) {
  const rvm_kernel_instruction *step = &program->code[place];
  if (step->op >= RVM_KOP_COUNT) return BAD(error, "instruction %u has opcode %u, expected less than %d", place, step->op, RVM_KOP_COUNT);
  const uint16_t operands[] = {step->a, step->b, step->c, step->d, step->e, step->f, step->g};
  const char *letters = operand_letters[step->op];
  const size_t count = strlen(letters);
  for (size_t i = 0; i < sizeof operands / sizeof *operands; i++)
    if (i < count ? !is_valid(program, letters[i], operands[i]) : operands[i] != 0)
      return BAD(error, "instruction %u, %s: operand %c has the invalid value %u", place, opcode_names[step->op], (char)('a' + i), operands[i]);
  const char *size = strchr(letters, 'z'), *buffer = strpbrk(letters, "bB");
  if (size && buffer && operands[buffer - letters] < program->tensor_count &&
      operands[size - letters] != lookup->element_bytes[operands[buffer - letters]])
    return BAD(error, "instruction %u, %s: the element size must be that of the tensor", place, opcode_names[step->op]);
  switch (step->op) {
    case RVM_KOP_apply: {
      const uint16_t scalars = (uint16_t)program->scalar_count;
      if (step->a < scalars && (step->b >= scalars || step->c >= scalars))
        return BAD(error, "instruction %u, apply: a scalar result requires scalar operands", place);
      if (rvm_element_functions[step->d].arity == 1 && step->b != step->c)
        return BAD(error, "instruction %u, apply: the function takes one operand, and c must be b", place);
      return RVM_OK;
    }
    case RVM_KOP_accumulate:
    case RVM_KOP_fold_lanes:
    case RVM_KOP_fold: {
      const rvm_element_function *function = &rvm_element_functions[step->op == RVM_KOP_accumulate ? step->c : step->d];
      if (function->arity != 2 || function->result_bytes != function->operand_bytes)
        return BAD(error, "instruction %u, %s: the function must take two elements and return one of the same size", place, opcode_names[step->op]);
      return RVM_OK;
    }
    case RVM_KOP_fail: {
      if (step->d != lookup->values[step->b] || step->d > MAX_VALUES)
        return BAD(error, "instruction %u, fail: expected %u values and at most %d, got %u", place, lookup->values[step->b], MAX_VALUES, step->d);
      return check_registers(program, place, step->c, step->d, error);
    }
    case RVM_KOP_invoke: return check_invoke(program, place, error);
    case RVM_KOP_parallel:
      if (step->e <= place + 1 || program->code[step->e - 1].op != RVM_KOP_end)
        return BAD(error, "instruction %u, parallel: the loop body must end before instruction e", place);
      return RVM_OK;
  }
  return RVM_OK;
}

static rvm_status check_code(const rvm_kernel_program *program, rvm_value *error) {
  const size_t message_bytes = program->message_count * sizeof(uint32_t);
  uint8_t *memory = rvm_allocate_zeroed(message_bytes + program->tensor_count + program->view_count);
  if (!memory) return rvm_out_of_memory(error);
  uint8_t *const element_bytes = memory + message_bytes;
  const lookup lookup = {element_bytes, element_bytes + program->tensor_count, (uint32_t *)(void *)memory};
  fill_lookup(program, &lookup);
  rvm_status status = RVM_OK;
  for (uint32_t i = 0; i < program->code_count && !status; i++) {
    status = check_instruction(program, &lookup, i, error);
    if (!status) status = check_views(program, &lookup, i, error);
  }
  rvm_free(memory);
  return status;
}

rvm_status rvm_kernel_program_read(const void *bytes, int64_t size_bytes, rvm_kernel_program *program, rvm_value *error) {
  const program_header *header = bytes;
  uint64_t at = sizeof *header;
  const uint64_t size = (uint64_t)size_bytes;
  if (size_bytes < (int64_t)sizeof *header || (uintptr_t)bytes % 8 != 0) return BAD(error, "the program is too short or misaligned");
  if (header->version != RVM_KERNEL_VERSION || header->zero != 0)
    return BAD(error, "unsupported version %u, expected %d", header->version, RVM_KERNEL_VERSION);
  *program = (rvm_kernel_program){
    .tensor_words = header->tensor_words, .input_count = header->input_count, .tensor_count = header->tensor_count,
    .size_count = header->size_count, .constant_count = header->constant_count, .scalar_count = header->scalar_count,
    .strip_count = header->strip_count, .view_count = header->view_count, .array_count = header->array_count,
    .code_count = header->code_count, .argument_count = header->argument_count, .message_count = header->message_count,
    .message_bytes = header->message_bytes, .scratch_bytes = header->scratch_bytes};
  const uint64_t registers = (uint64_t)header->scalar_count + header->strip_count + header->view_count;
  if (registers >= RVM_NO_REGISTER || (uint64_t)header->tensor_count + header->array_count > UINT16_MAX ||
      header->input_count > header->tensor_count || header->code_count == 0 || header->code_count > UINT16_MAX ||
      header->argument_count > UINT16_MAX || header->scratch_bytes > INT32_MAX ||
      (uint64_t)header->size_count + header->constant_count > header->scalar_count)
    return BAD(error, "the counts in the header are inconsistent");
  program->tensors = take(bytes, size, &at, header->tensor_words, sizeof *program->tensors);
  if (program->tensors) program->constants = take(bytes, size, &at, header->constant_count, sizeof *program->constants);
  if (program->constants) program->arrays = take(bytes, size, &at, header->array_count, sizeof *program->arrays);
  if (program->arrays) program->code = take(bytes, size, &at, header->code_count, sizeof *program->code);
  if (program->code) program->arguments = take(bytes, size, &at, header->argument_count, sizeof *program->arguments);
  if (program->arguments) program->messages = take(bytes, size, &at, header->message_bytes, 1);
  if (!program->messages || at != size) return BAD(error, "the size does not match the header");
  rvm_status status = check_tensors(program, error);
  if (!status) status = check_arrays(program, error);
  if (!status) status = check_messages(program, error);
  if (!status) status = check_code(program, error);
  if (!status && program->code[header->code_count - 1].op != RVM_KOP_end) status = BAD(error, "the last instruction must be end");
  return status;
}
