/* mutator.c: mutates an executable so that most of it stays valid.  It splits the file into its sections, mutates one
   of them, and joins them with correct sizes and checksums.  Therefore mutations reach the checks after those of the
   container, and often the interpreter. */
#include <stdlib.h>
#include <string.h>

#include "executable.h"
#include "fuzz.h"
#include "generator.h"
#include "micro_kernels.h"
#include "scalar_ops.h"
#include "verify.h"

enum { MAX_SECTIONS = 12, MAX_BYTES = 1 << 15 };

typedef struct part {
  uint32_t id;
  size_t size_bytes;
  unsigned char *bytes; /* has MAX_BYTES bytes */
} part;

typedef struct file {
  part parts[MAX_SECTIONS];
  uint32_t count;
  fuzz_random *random;
} file;

/* ---- splitting and joining files ---- */

static uint32_t read_u32(const unsigned char *bytes) {
  uint32_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

static uint64_t read_u64(const unsigned char *bytes) {
  uint64_t value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

static void write_u32(unsigned char *bytes, uint32_t value) { memcpy(bytes, &value, sizeof value); }
static void write_u64(unsigned char *bytes, uint64_t value) { memcpy(bytes, &value, sizeof value); }

static void file_release(file *f) {
  for (uint32_t i = 0; i < f->count; i++) free(f->parts[i].bytes);
}

static void part_add(file *f, uint32_t id, const unsigned char *bytes, size_t size_bytes) {
  unsigned char *room = f->count < MAX_SECTIONS ? malloc(MAX_BYTES) : NULL;
  if (!room) return;
  memcpy(room, bytes, size_bytes);
  f->parts[f->count++] = (part){.id = id, .size_bytes = size_bytes, .bytes = room};
}

/* Splits a file into its sections.  Returns 0 if the section table is invalid; such files only get byte mutations. */
static int split_file(file *f, const uint8_t *bytes, size_t size_bytes) {
  f->count = 0;
  if (size_bytes < 64 || read_u32(bytes + 12) > MAX_SECTIONS || 64 + 32 * read_u32(bytes + 12) > size_bytes) return 0;
  for (uint32_t i = 0; i < read_u32(bytes + 12); i++) {
    const unsigned char *entry = bytes + 64 + 32 * i;
    const uint64_t offset = read_u64(entry + 8), length = read_u64(entry + 16);
    if (offset > size_bytes || length > size_bytes - offset || length > MAX_BYTES) return 0;
    part_add(f, read_u32(entry), bytes + offset, length);
  }
  return f->count > 0;
}

static void seal(uint8_t *bytes, size_t size_bytes) {
  const uint32_t count = size_bytes < 64 ? UINT32_MAX : read_u32(bytes + 12);
  if (64 + 32 * (uint64_t)count > size_bytes) return;
  for (uint32_t i = 0; i < count; i++) {
    unsigned char *entry = bytes + 64 + 32 * i;
    const uint64_t offset = read_u64(entry + 8), length = read_u64(entry + 16);
    if (offset > size_bytes || length > size_bytes - offset) continue;
    if (read_u32(entry) == RVM_SECTION_portable && offset > 0) seal(bytes + offset, length);
    write_u32(entry + 4, rvm_crc32c(0, bytes + offset, (int64_t)length));
  }
  write_u32(bytes + 24, 0);
  write_u32(bytes + 24, rvm_crc32c(0, bytes, 64 + 32 * (int64_t)count));
}

/* Joins the sections.  Returns the size of the file, or 0 if it would exceed most_bytes. */
static size_t join_file(const file *f, uint8_t *bytes, size_t most_bytes) {
  size_t offset = 64 + 32 * (size_t)f->count, end = offset;
  for (uint32_t i = 0; i < f->count; i++) end = (end + 63) / 64 * 64 + f->parts[i].size_bytes;
  if (end > most_bytes) return 0;
  memset(bytes, 0, end);
  memcpy(bytes, "\x89RVM\r\n\x1a\n\x01", 9);
  write_u32(bytes + 12, f->count);
  write_u64(bytes + 16, end);
  for (uint32_t i = 0; i < f->count; i++) {
    unsigned char *entry = bytes + 64 + 32 * i;
    offset = (offset + 63) / 64 * 64;
    write_u32(entry, f->parts[i].id);
    write_u64(entry + 8, offset);
    write_u64(entry + 16, f->parts[i].size_bytes);
    memcpy(bytes + offset, f->parts[i].bytes, f->parts[i].size_bytes);
    offset += f->parts[i].size_bytes;
  }
  seal(bytes, end);
  return end;
}

/* ---- bytes and words ---- */

static void change_bytes(fuzz_random *random, unsigned char *bytes, size_t size_bytes) {
  if (size_bytes == 0) return;
  const size_t offset = fuzz_below(random, size_bytes), word = offset / 4 * 4, wide = offset / 8 * 8;
  switch (fuzz_below(random, 5)) {
    case 0: bytes[offset] ^= (unsigned char)(1 << fuzz_below(random, 8)); return;
    case 1: bytes[offset] = (unsigned char)fuzz_next(random); return;
    case 2:
      if (word + 4 <= size_bytes) write_u32(bytes + word, (uint32_t)fuzz_number(random));
      return;
    case 3:
      if (word + 4 <= size_bytes) write_u32(bytes + word, read_u32(bytes + word) + fuzz_below(random, 9) - 4);
      return;
    default:
      if (wide + 8 <= size_bytes) write_u64(bytes + wide, (uint64_t)fuzz_number(random));
  }
}

/* Inserts `added` bytes at `offset`, or removes -added bytes. */
static int resize(part *p, size_t offset, int64_t added) {
  if (p->size_bytes + (size_t)added > MAX_BYTES || offset > p->size_bytes) return 0;
  if (added < 0 && (size_t)-added > p->size_bytes - offset) return 0;
  const size_t from = added < 0 ? offset + (size_t)-added : offset;
  memmove(p->bytes + from + added, p->bytes + from, p->size_bytes - from);
  if (added > 0) memset(p->bytes + offset, 0, (size_t)added);
  p->size_bytes += (size_t)added;
  return 1;
}

static part *find(file *f, uint32_t id) {
  for (uint32_t i = 0; i < f->count; i++)
    if (f->parts[i].id == id) return &f->parts[i];
  return NULL;
}

/* ---- code ---- */

/* A bytecode function of the file, with complete instructions. */
typedef struct routine {
  part *code, *functions;
  rvm_function_record *records, *record;
  uint32_t function_count, constant_count;
  uint32_t *words;
  uint32_t starts[512], count; /* offsets of the instructions, in words */
} routine;

static const char *const letters[] = {
#define OP(name, operands, names, flow, meaning) operands,
#include "opcodes.def"
#undef OP
};

static int find_routine(file *f, routine *r) {
  part *constants = find(f, RVM_SECTION_constants);
  *r = (routine){.code = find(f, RVM_SECTION_code), .functions = find(f, RVM_SECTION_functions)};
  if (!r->code || !r->functions || !constants || r->functions->size_bytes < 8 || constants->size_bytes < 4) return 0;
  r->function_count = read_u32(r->functions->bytes);
  r->constant_count = read_u32(constants->bytes);
  if (r->function_count == 0 || r->function_count > (r->functions->size_bytes - 8) / 32) return 0;
  r->records = (rvm_function_record *)(r->functions->bytes + 8);
  for (uint32_t i = 0, first = fuzz_below(f->random, r->function_count); i < r->function_count && !r->record; i++) {
    rvm_function_record *record = &r->records[(first + i) % r->function_count];
    if (record->kind == RVM_KIND_bytecode) r->record = record;
  }
  const uint64_t words = r->code->size_bytes / 4;
  if (!r->record || r->record->code_start > words || r->record->code_count > words - r->record->code_start) return 0;
  r->words = (uint32_t *)r->code->bytes + r->record->code_start;
  for (uint32_t pc = 0, size; pc < r->record->code_count; pc += size) {
    size = rvm_instruction_words(r->words + pc, r->record->code_count - pc);
    if (size == 0 || r->count == 512) return 0;
    r->starts[r->count++] = pc;
  }
  return r->count > 0;
}

/* Returns the jump of the instruction at `pc`, or NULL if it has none. */
static uint32_t *jump_of(routine *r, uint32_t pc) {
  const char *row = letters[r->words[pc]], *jump = strchr(row, 'j');
  return jump ? &r->words[pc + 1 + (uint32_t)(jump - row)] : NULL;
}

/* Inserts `added` words at `pc`, or removes -added words.  Jumps keep their targets.  A jump to a removed instruction
   gets the one after it, and a jump to an instruction before which words are inserted gets the first of these. */
static int resize_code(routine *r, uint32_t pc, int32_t added) {
  int64_t targets[512];
  for (uint32_t i = 0; i < r->count; i++) {
    const uint32_t *jump = jump_of(r, r->starts[i]);
    targets[i] = jump ? (int64_t)r->starts[i] + (int32_t)*jump : -1;
  }
  if (!resize(r->code, ((size_t)r->record->code_start + pc) * 4, (int64_t)added * 4)) return 0;
  for (uint32_t i = 0; i < r->count; i++) {
    const uint32_t start = r->starts[i], moved = start >= pc ? start + (uint32_t)added : start;
    const int is_gone = added < 0 && start >= pc && start < pc - (uint32_t)added;
    if (targets[i] < 0 || is_gone) continue;
    *jump_of(r, moved) = (uint32_t)(targets[i] + (targets[i] > (int64_t)pc ? added : 0) - moved);
  }
  for (uint32_t i = 0; i < r->function_count; i++)
    if (r->records[i].code_start > r->record->code_start) r->records[i].code_start += (uint32_t)added;
  r->record->code_count += (uint32_t)added;
  return 1;
}

static uint32_t any_argument(const routine *r, fuzz_random *random) {
  static const uint32_t usual[] = {RVM_ARGUMENT_REGISTER, RVM_ARGUMENT_REGISTER, RVM_ARGUMENT_REGISTER,
                                   RVM_ARGUMENT_CONSTANT, RVM_ARGUMENT_IMMEDIATE};
  const uint32_t kind = fuzz_below(random, 4) ? usual[fuzz_below(random, 5)] : fuzz_below(random, RVM_ARGUMENT_COUNT);
  int64_t payload = 0;
  switch (kind) {
    case RVM_ARGUMENT_REGISTER: payload = fuzz_below(random, r->record->registers); break;
    case RVM_ARGUMENT_IMMEDIATE: payload = fuzz_number(random); break;
    case RVM_ARGUMENT_CONSTANT: payload = fuzz_below(random, r->constant_count); break;
    case RVM_ARGUMENT_FUNCTION: payload = fuzz_below(random, r->function_count); break;
    case RVM_ARGUMENT_BOOL: payload = fuzz_below(random, 2); break;
  }
  return (uint32_t)payload << 3 | kind;
}

/* Returns the number of arguments of a call: that of the callee's parameters, or any number if it accepts any. */
static uint32_t argument_count(const routine *r, uint32_t callee, fuzz_random *random) {
  const int32_t count = callee < r->function_count ? r->records[callee].parameter_count : -1;
  return count >= 0 && count < 16 ? (uint32_t)count : fuzz_below(random, 7);
}

/* Generates an instruction of *count words, which is usually valid. */
static void make_instruction(const routine *r, uint32_t *words, uint32_t *count, fuzz_random *random) {
  const uint32_t registers = r->record->registers, choice = fuzz_below(random, 16);
  const uint32_t opcode = choice < 6 ? RVM_OP_call : choice < 10 ? RVM_OP_prim : choice % RVM_OP_COUNT;
  uint32_t callee = fuzz_below(random, r->function_count), row = fuzz_below(random, RVM_SCALAR_OP_COUNT), *next = words;
  *next++ = opcode;
  for (const char *letter = letters[opcode]; *letter; letter++) {
    uint32_t arguments;
    switch (*letter) {
      case 'd':
        *next++ = fuzz_below(random, registers);
        if (opcode == RVM_OP_call && fuzz_below(random, 3) == 0) next[-1] = (uint32_t)-1;
        break;
      case 'r':
      case 'u': *next++ = fuzz_below(random, registers); break;
      case 'f': *next++ = callee; break;
      case 'p': *next++ = row; break;
      case 'j': *next++ = 0; break; /* resolved when the instruction is inserted */
      case 'A':
        arguments = argument_count(r, callee, random);
        if (opcode == RVM_OP_prim) arguments = (uint32_t)rvm_scalar_op_operand_count((int32_t)row);
        *next++ = arguments;
        for (uint32_t i = 0; i < arguments; i++) *next++ = any_argument(r, random);
        if (arguments > 0 && opcode != RVM_OP_prim && fuzz_below(random, 4) == 0)
          next[-(int)arguments] = RVM_ARGUMENT_CONTEXT;
        break;
    }
  }
  *count = (uint32_t)(next - words);
}

static void insert_words(routine *r, const uint32_t *words, uint32_t count, fuzz_random *random) {
  const uint32_t pc = r->starts[fuzz_below(random, r->count)];
  if (!resize_code(r, pc, (int32_t)count)) return;
  memcpy(r->words + pc, words, count * 4);
  uint32_t *jump = jump_of(r, pc);
  if (jump) *jump = r->starts[fuzz_below(random, r->count)] - pc;
}

/* Mutates one word of an instruction: an argument, or another operand. */
static void change_operand(routine *r, fuzz_random *random) {
  const uint32_t pc = r->starts[fuzz_below(random, r->count)];
  uint32_t *word = r->words + pc + 1;
  for (const char *letter = letters[r->words[pc]]; *letter; letter++, word++) {
    if (letter[1] && fuzz_below(random, 2)) continue;
    switch (*letter) {
      case 'd':
      case 'r':
      case 'u': *word = fuzz_below(random, r->record->registers); return;
      case 'f': *word = fuzz_below(random, r->function_count); return;
      case 'p': *word = fuzz_below(random, RVM_SCALAR_OP_COUNT); return;
      case 'j': *word = r->starts[fuzz_below(random, r->count)] - pc; return;
      case 'A':
        if (*word > 0) word[1 + fuzz_below(random, *word)] = any_argument(r, random);
        return;
    }
  }
}

/* Inserts or removes the first argument of an instruction's list. */
static void change_count(routine *r, fuzz_random *random) {
  const uint32_t pc = r->starts[fuzz_below(random, r->count)];
  const char *list = strchr(letters[r->words[pc]], 'A');
  if (!list) return;
  const uint32_t place = pc + 1 + (uint32_t)(list - letters[r->words[pc]]), count = r->words[place];
  const int is_more = count == 0 || fuzz_below(random, 2);
  if (!resize_code(r, place, is_more ? 1 : -1)) return;
  r->words[place] = is_more ? count + 1 : count - 1;
  if (is_more) r->words[place + 1] = any_argument(r, random);
}

static void change_code(file *f) {
  routine r;
  uint32_t words[64], count, pc, index;
  fuzz_random *random = f->random;
  if (!find_routine(f, &r)) {
    if (r.code) change_bytes(random, r.code->bytes, r.code->size_bytes);
    return;
  }
  switch (fuzz_below(random, 12)) {
    case 0:
    case 1:
    case 2:
      make_instruction(&r, words, &count, random);
      insert_words(&r, words, count, random);
      return;
    case 3:
    case 4: /* copy another instruction of the function */
      pc = r.starts[fuzz_below(random, r.count)];
      count = rvm_instruction_words(r.words + pc, r.record->code_count - pc);
      if (count > 64) return;
      memcpy(words, r.words + pc, count * 4);
      insert_words(&r, words, count, random);
      return;
    case 5:
      index = fuzz_below(random, r.count);
      pc = r.starts[index];
      if (r.count > 1) resize_code(&r, pc, -(int32_t)rvm_instruction_words(r.words + pc, r.record->code_count - pc));
      return;
    case 6: change_count(&r, random); return;
    case 7: r.words[fuzz_below(random, r.record->code_count)] = (uint32_t)fuzz_number(random); return;
    case 8: r.record->registers += fuzz_below(random, 3); return;
    default: change_operand(&r, random); return;
  }
}

/* ---- whole functions ---- */

enum { MAX_FUNCTIONS = 256, MAX_CONSTANTS = 256, MAX_WORDS = 400 };

typedef struct tables {
  int32_t builtins[MAX_FUNCTIONS];
  fuzz_constant constants[MAX_CONSTANTS];
  fuzz_program program;
} tables;

/* Reads the tables that code may refer to.  Returns 0 if they are invalid. */
static int read_tables(file *f, const routine *r, tables *t) {
  const part *strings = find(f, RVM_SECTION_strings), *constants = find(f, RVM_SECTION_constants);
  if (!strings || !constants || strings->size_bytes < 4 || r->function_count > MAX_FUNCTIONS) return 0;
  if (r->constant_count > MAX_CONSTANTS || r->constant_count > (constants->size_bytes - 8) / 32) return 0;
  const uint32_t string_count = read_u32(strings->bytes);
  for (uint32_t i = 0; i < r->function_count; i++) {
    const uint32_t name = r->records[i].name;
    t->builtins[i] = -1;
    if (r->records[i].kind != RVM_KIND_packed || name >= string_count ||
        4 + 8 * (uint64_t)name + 8 > strings->size_bytes)
      continue;
    const uint64_t offset = read_u32(strings->bytes + 4 + 8 * name), length = read_u32(strings->bytes + 8 + 8 * name);
    if (offset + length <= strings->size_bytes)
      t->builtins[i] = fuzz_builtin_of((const char *)strings->bytes + offset, length);
  }
  for (uint32_t i = 0; i < r->constant_count; i++) {
    const unsigned char *record = constants->bytes + 8 + 32 * i;
    t->constants[i] = (fuzz_constant){read_u32(record), read_u32(record + 4), read_u32(record + 16)};
  }
  t->program = (fuzz_program){r->records, t->builtins, r->function_count, t->constants, r->constant_count};
  return 1;
}

/* Replaces the code of the function `r` by generated code. */
static void replace_code(routine *r, const tables *t, fuzz_random *random) {
  uint32_t words[MAX_WORDS], registers;
  const uint32_t count =
      fuzz_generate(random, &t->program, (uint32_t)(r->record - r->records), words, MAX_WORDS, &registers);
  const int64_t added = (int64_t)count - r->record->code_count;
  const uint32_t start = r->record->code_start;
  if (count == 0 || !resize(r->code, (size_t)start * 4, added * 4)) return;
  memcpy(r->code->bytes + (size_t)start * 4, words, count * 4);
  for (uint32_t i = 0; i < r->function_count; i++)
    if (r->records[i].code_start > start) r->records[i].code_start += (uint32_t)added;
  r->record->code_count = count;
  r->record->registers = registers;
}

/* Replaces the code of one function, or of all. */
static void generate_code(file *f, int is_all) {
  routine r;
  tables t;
  if (!find_routine(f, &r) || !read_tables(f, &r, &t)) return;
  for (uint32_t i = 0; is_all && i < r.function_count; i++) {
    r.record = &r.records[i];
    if (r.record->kind == RVM_KIND_bytecode) replace_code(&r, &t, f->random);
  }
  if (!is_all) replace_code(&r, &t, f->random);
}

/* ---- tables ---- */

static void change_function(file *f) {
  part *functions = find(f, RVM_SECTION_functions);
  fuzz_random *random = f->random;
  if (!functions || functions->size_bytes < 40) return;
  const uint32_t count = read_u32(functions->bytes);
  if (count == 0 || count > (functions->size_bytes - 8) / 32) return;
  rvm_function_record *record = (rvm_function_record *)(functions->bytes + 8) + fuzz_below(random, count);
  switch (fuzz_below(random, 8)) {
    case 0: record->kind = (uint16_t)fuzz_below(random, RVM_KIND_COUNT + 1); return;
    case 1: record->flags = (uint16_t)fuzz_below(random, 5); return;
    case 2: record->parameter_count = (int32_t)((uint32_t)record->parameter_count + fuzz_below(random, 3) - 1); return;
    case 3: record->registers += fuzz_below(random, 5) - 2; return;
    case 4: record->name = fuzz_below(random, 64); return;
    case 5: record->code_start += fuzz_below(random, 9) - 4; return;
    case 6: record->code_count += fuzz_below(random, 9) - 4; return;
    default: change_bytes(random, functions->bytes, functions->size_bytes);
  }
}

static void change_constant(file *f) {
  part *constants = find(f, RVM_SECTION_constants);
  fuzz_random *random = f->random;
  if (!constants || constants->size_bytes < 40) return;
  const uint32_t count = read_u32(constants->bytes);
  if (count == 0 || count > (constants->size_bytes - 8) / 32) return;
  unsigned char *record = constants->bytes + 8 + 32 * fuzz_below(random, count);
  switch (fuzz_below(random, 6)) {
    case 0: write_u32(record, fuzz_below(random, RVM_TAG_COUNT + 1)); return;
    case 1: write_u32(record + 4, fuzz_below(random, RVM_DTYPE_COUNT + 1)); return;
    case 2: write_u32(record + 8, fuzz_below(random, 5)); return;
    case 3: write_u64(record + 16, fuzz_below(random, 40)); return;
    case 4: write_u64(record + 16, (uint64_t)fuzz_number(random)); return;
    default: change_bytes(random, constants->bytes, constants->size_bytes);
  }
}

/* Removes a section, duplicates one, swaps two, changes the id of one, or makes one shorter or longer. */
static void change_sections(file *f) {
  const uint32_t i = fuzz_below(f->random, f->count), k = fuzz_below(f->random, f->count);
  part *p = &f->parts[i], moved = f->parts[i];
  switch (fuzz_below(f->random, 6)) {
    case 0:
      free(p->bytes);
      memmove(p, p + 1, (f->count - i - 1) * sizeof *p);
      f->count--;
      return;
    case 1: part_add(f, p->id, p->bytes, p->size_bytes); return;
    case 2:
      f->parts[i] = f->parts[k];
      f->parts[k] = moved;
      return;
    case 3: p->id = fuzz_below(f->random, RVM_SECTION_COUNT + 3); return;
    case 4: resize(p, fuzz_below(f->random, p->size_bytes + 1), 4 * (int64_t)fuzz_below(f->random, 5)); return;
    default: resize(p, fuzz_below(f->random, p->size_bytes + 1), -4 * (int64_t)fuzz_below(f->random, 5)); return;
  }
}

#include "mutator_kernels.h" /* uses the definitions above */

static void change_file(file *f) {
  const uint32_t choice = fuzz_below(f->random, 32);
  part *p = &f->parts[fuzz_below(f->random, f->count)];
  if (find(f, RVM_SECTION_kernels) && fuzz_below(f->random, 8) > 0)
    change_kernel(f);
  else if (choice < 22)
    change_code(f);
  else if (choice < 25)
    change_function(f);
  else if (choice < 28)
    change_constant(f);
  else if (choice < 31)
    change_bytes(f->random, p->bytes, p->size_bytes);
  else
    change_sections(f);
}

/* Mutates the bytes of the container, with correct or incorrect checksums. */
static size_t change_container(fuzz_random *random, uint8_t *bytes, size_t size_bytes) {
  if (size_bytes > 64 && fuzz_below(random, 2))
    change_bytes(random, bytes, 64 + (size_bytes < 384 ? size_bytes - 64 : 320));
  else
    change_bytes(random, bytes, size_bytes);
  if (size_bytes > 1 && fuzz_below(random, 4) == 0) size_bytes -= fuzz_below(random, size_bytes < 64 ? size_bytes : 64);
  if (size_bytes >= 64 && fuzz_below(random, 2)) {
    if (fuzz_below(random, 2)) write_u64(bytes + 16, size_bytes);
    seal(bytes, size_bytes);
  }
  return size_bytes;
}

int fuzz_generates;

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size_bytes, size_t most_bytes, unsigned int seed) {
  fuzz_random random = seed;
  file f = {.random = &random};
  size_t made = 0;
  if ((fuzz_generates || fuzz_below(&random, 32) > 0) && split_file(&f, bytes, size_bytes)) {
    uint32_t changes = 1 + fuzz_below(&random, 4) * fuzz_below(&random, 3);
    if (fuzz_generates || fuzz_below(&random, 8) == 0) {
      generate_code(&f, fuzz_generates || fuzz_below(&random, 2));
      if (fuzz_generates || fuzz_below(&random, 2)) changes = 0;
    }
    for (; changes > 0 && f.count > 0; changes--) change_file(&f);
    made = join_file(&f, bytes, most_bytes);
  }
  file_release(&f);
  return made > 0 ? made : change_container(&random, bytes, size_bytes);
}
