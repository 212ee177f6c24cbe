/* mutator_kernels.h: part of mutator.c: mutations of kernel bytecode. */
#ifndef RELVM_MUTATOR_KERNELS_H
#define RELVM_MUTATOR_KERNELS_H

/* ---- kernel bytecode ---- */

/* A program in the section of kernels: its header, and the offsets of its parts in the section. */
typedef struct kernel_location {
  part *section;
  unsigned char *size; /* in the section's table */
  uint32_t header[16];
  size_t start, tensors, constants, arrays, code, arguments, end;
} kernel_location;
enum {
  K_WORDS = 1,
  K_INPUTS,
  K_TENSORS,
  K_SIZES,
  K_CONSTANTS,
  K_SCALARS,
  K_STRIPS,
  K_VIEWS,
  K_ARRAYS,
  K_CODE,
  K_ARGUMENTS,
  K_MESSAGES
};

static const char *const kernel_letters[] = {
#define KERNEL_OP(name, operands, names, meaning) operands,
#include "kernel_opcodes.def"
#undef KERNEL_OP
};

/* Finds a program whose parts are inside the section.  Returns 0 if there is none. */
static int find_kernel(file *f, kernel_location *k) {
  part *section = find(f, RVM_SECTION_kernels);
  if (!section || section->size_bytes < 16) return 0;
  const uint32_t count = read_u32(section->bytes), chosen = fuzz_below(f->random, count);
  if (count == 0 || count > (section->size_bytes - 8) / 8) return 0;
  size_t offset = 8 + 8 * (size_t)count;
  for (uint32_t i = 0; i < chosen; i++) offset += read_u32(section->bytes + 12 + 8 * i);
  const size_t size = read_u32(section->bytes + 12 + 8 * chosen);
  if (size < sizeof k->header || offset > section->size_bytes || size > section->size_bytes - offset) return 0;
  *k = (kernel_location){
      .section = section, .size = section->bytes + 12 + 8 * chosen, .start = offset, .end = offset + size};
  memcpy(k->header, section->bytes + offset, sizeof k->header);
  for (int i = K_WORDS; i <= K_MESSAGES; i++)
    if (k->header[i] > MAX_BYTES) return 0;
  k->tensors = offset + sizeof k->header;
  k->constants = k->tensors + 8 * (size_t)k->header[K_WORDS];
  k->arrays = k->constants + 8 * (size_t)k->header[K_CONSTANTS];
  k->code = k->arrays + 8 * (size_t)k->header[K_ARRAYS];
  k->arguments = k->code + 16 * (size_t)k->header[K_CODE];
  return k->arguments + 2 * (size_t)k->header[K_ARGUMENTS] <= k->end && k->header[K_CODE] > 0;
}

static uint16_t *kernel_words(const kernel_location *k, uint32_t step) {
  return (uint16_t *)(void *)(k->section->bytes + k->code + 16 * (size_t)step);
}

/* Returns an operand that is usually valid for its letter. */
static uint32_t kernel_operand(const kernel_location *k, char letter, fuzz_random *random) {
  const uint32_t *header = k->header, scalars = header[K_SCALARS], strips = header[K_STRIPS], views = header[K_VIEWS];
  const uint32_t buffers = header[K_TENSORS] + header[K_ARRAYS];
  if (fuzz_below(random, 32) == 0) return (uint32_t)fuzz_number(random);
  switch (letter) {
    case 'S':
    case 's': return fuzz_below(random, scalars);
    case 'v': return scalars + fuzz_below(random, strips);
    case 'V': return scalars + fuzz_below(random, strips + views);
    case 'w': return scalars + strips + fuzz_below(random, views);
    case 'm': return fuzz_below(random, 2) ? 0xffff : scalars + fuzz_below(random, strips);
    case 'X':
    case 'x':
    case 'i':
    case 'p': return fuzz_below(random, scalars + strips + views);
    case 'b': return fuzz_below(random, buffers);
    case 'B': return header[K_INPUTS] + fuzz_below(random, buffers - header[K_INPUTS]);
    case 'z': return 1u << fuzz_below(random, 4);
    case 'j': return fuzz_below(random, header[K_CODE]);
    case 'F': return fuzz_below(random, 400);
    case 'c': return fuzz_below(random, (uint32_t)rvm_micro_kernel_count);
    case 't': return fuzz_below(random, header[K_ARGUMENTS] + 1);
    case 'u': return 1 + fuzz_below(random, RVM_STATUS_COUNT - 1);
    case 'k': return fuzz_below(random, header[K_MESSAGES]);
    case 'y': return fuzz_below(random, header[K_ARRAYS] + 1);
    default: return fuzz_below(random, 4);
  }
}

/* Inserts an instruction at `pc`, or removes one.  Jumps keep their targets. */
static int resize_kernel(kernel_location *k, uint32_t pc, int added) {
  if (!resize(k->section, k->code + 16 * (size_t)pc, 16 * added)) return 0;
  k->header[K_CODE] += (uint32_t)added;
  write_u32(k->section->bytes + k->start + 4 * K_CODE, k->header[K_CODE]);
  write_u32(k->size, read_u32(k->size) + 16 * (uint32_t)added);
  for (uint32_t i = 0; i < k->header[K_CODE]; i++) {
    uint16_t *words = kernel_words(k, i);
    if (words[0] >= sizeof kernel_letters / sizeof *kernel_letters) continue;
    const char *letters_ = kernel_letters[words[0]], *jump = strchr(letters_, 'j');
    if (jump && words[1 + (jump - letters_)] > pc)
      words[1 + (jump - letters_)] = (uint16_t)(words[1 + (jump - letters_)] + added);
  }
  return 1;
}

static void fill_operands(const kernel_location *k, uint16_t *words, fuzz_random *random) {
  memset(words + 1, 0, 14);
  const char *row = kernel_letters[words[0]];
  for (int i = 0; row[i]; i++) words[1 + i] = (uint16_t)kernel_operand(k, row[i], random);
}

static void change_kernel(file *f) {
  kernel_location k;
  fuzz_random *random = f->random;
  part *section = find(f, RVM_SECTION_kernels);
  if (!find_kernel(f, &k)) {
    if (section) change_bytes(random, section->bytes, section->size_bytes);
    return;
  }
  unsigned char *bytes = k.section->bytes;
  const uint32_t step = fuzz_below(random, k.header[K_CODE]), other = fuzz_below(random, k.header[K_CODE]);
  uint16_t *words = kernel_words(&k, step), copy[8];
  const uint32_t opcodes = sizeof kernel_letters / sizeof *kernel_letters;
  const char *row = words[0] < opcodes ? kernel_letters[words[0]] : "";
  const uint32_t operand = fuzz_below(random, strlen(row));
  switch (fuzz_below(random, 24)) {
    case 0: words[fuzz_below(random, 8)] = (uint16_t)fuzz_number(random); return;
    case 1: /* another opcode with the same operands, or with generated ones */
      words[0] = (uint16_t)fuzz_below(random, opcodes);
      if (fuzz_below(random, 2)) fill_operands(&k, words, random);
      return;
    case 2: /* a copy of another instruction */
    case 3:
      memcpy(copy, kernel_words(&k, other), sizeof copy);
      if (resize_kernel(&k, step, 1)) memcpy(kernel_words(&k, step), copy, sizeof copy);
      return;
    case 4: /* a generated instruction */
      if (!resize_kernel(&k, step, 1)) return;
      words = kernel_words(&k, step);
      words[0] = (uint16_t)fuzz_below(random, opcodes);
      fill_operands(&k, words, random);
      return;
    case 5:
      if (k.header[K_CODE] > 1) resize_kernel(&k, step, -1);
      return;
    case 6: /* swap two instructions */
      memcpy(copy, words, sizeof copy);
      memcpy(words, kernel_words(&k, other), sizeof copy);
      memcpy(kernel_words(&k, other), copy, sizeof copy);
      return;
    case 7: write_u32(bytes + k.start + 4 * (size_t)fuzz_below(random, 16), fuzz_below(random, 16)); return;
    case 8: {
      unsigned char *word = bytes + k.start + 4 * (size_t)fuzz_below(random, 16);
      write_u32(word, read_u32(word) + fuzz_below(random, 5) - 2);
      return;
    }
    case 9:
    case 10:
    case 11:
      if (k.header[K_CONSTANTS])
        write_u64(bytes + k.constants + 8 * (size_t)fuzz_below(random, k.header[K_CONSTANTS]),
                  (uint64_t)fuzz_number(random));
      return;
    case 12:
      if (k.header[K_CONSTANTS]) {
        unsigned char *word = bytes + k.constants + 8 * (size_t)fuzz_below(random, k.header[K_CONSTANTS]);
        write_u64(word, read_u64(word) + fuzz_below(random, 65) - 32);
      }
      return;
    case 13:
      if (k.header[K_WORDS])
        write_u64(bytes + k.tensors + 8 * (size_t)fuzz_below(random, k.header[K_WORDS]),
                  fuzz_below(random, 16) - (uint64_t)4);
      return;
    case 14:
      if (k.header[K_ARRAYS])
        write_u32(bytes + k.arrays + 4 * (size_t)fuzz_below(random, 2 * k.header[K_ARRAYS]),
                  64 * fuzz_below(random, 64));
      return;
    case 15:
    case 16:
    case 17:
      if (k.header[K_ARGUMENTS]) {
        const uint32_t entry = fuzz_below(random, k.header[K_ARGUMENTS]);
        ((uint16_t *)(void *)(bytes + k.arguments))[entry] =
            (uint16_t)kernel_operand(&k, fuzz_below(random, 4) ? 's' : 'b', random);
      }
      return;
    case 18: change_bytes(random, bytes + k.start, k.end - k.start); return;
    default:
      if (*row) words[1 + operand] = (uint16_t)kernel_operand(&k, row[operand], random);
  }
}

#endif
