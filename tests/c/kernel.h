/* kernel.h: builds programs of kernel bytecode for tests, piece by piece.  The programs may be invalid. */
#ifndef RELVM_TEST_KERNEL_H
#define RELVM_TEST_KERNEL_H

#include "image.h"
#include "kernel_program.h"

/* The words of the header in the order of the file format. */
enum {
  VERSION,
  TENSOR_WORDS,
  INPUTS,
  TENSORS,
  SIZES,
  CONSTANTS,
  SCALARS,
  STRIPS,
  VIEWS,
  ARRAYS,
  STEPS,
  ARGUMENTS,
  MESSAGES,
  MESSAGE_BYTES,
  SCRATCH,
  FLAGS,
  HEADER_WORDS
};

typedef struct kernel {
  uint32_t header[HEADER_WORDS];
  buffer tensors, constants, arrays, code, arguments, messages;
} kernel;

static inline void kernel_tensor(kernel *to, int is_input, int64_t dtype, int32_t rank, const int64_t *dims) {
  const int64_t words[] = {dtype, rank};
  buffer_add(&to->tensors, words, sizeof words);
  buffer_add(&to->tensors, dims, (size_t)rank * sizeof *dims);
  to->header[TENSOR_WORDS] += 2 + (uint32_t)rank;
  to->header[INPUTS] += is_input != 0;
  to->header[TENSORS]++;
}

static inline void kernel_constant(kernel *to, int64_t value) {
  buffer_add(&to->constants, &value, sizeof value);
  to->header[CONSTANTS]++;
}

static inline void kernel_array(kernel *to, uint32_t offset, uint32_t size_bytes) {
  buffer_add(&to->arrays, (uint32_t[]){offset, size_bytes}, 8);
  to->header[ARRAYS]++;
}

static inline void kernel_message(kernel *to, const char *text) {
  buffer_add(&to->messages, text, strlen(text) + 1);
  to->header[MESSAGE_BYTES] += (uint32_t)strlen(text) + 1;
  to->header[MESSAGES]++;
}

/* Adds entries to the argument table.  Returns the index of the first. */
static inline uint16_t kernel_arguments(kernel *to, const uint16_t *arguments, size_t count) {
  buffer_add(&to->arguments, arguments, count * 2);
  to->header[ARGUMENTS] += (uint32_t)count;
  return (uint16_t)(to->header[ARGUMENTS] - count);
}

/* Adds an instruction: an opcode and its operands. */
static inline void kernel_step(kernel *to, const uint16_t words[8]) {
  buffer_add(&to->code, words, sizeof(rvm_kernel_instruction));
  to->header[STEPS]++;
}

/* Returns the bytes, 64-byte aligned, which the caller frees.  The kernel is empty afterwards. */
static inline unsigned char *kernel_finish(kernel *from, int64_t *size_bytes) {
  buffer *const parts[] = {&from->tensors, &from->constants, &from->arrays,
                           &from->code,    &from->arguments, &from->messages};
  buffer file = {0};
  from->header[VERSION] = RVM_KERNEL_VERSION;
  buffer_add(&file, from->header, sizeof from->header);
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    buffer_add(&file, parts[i]->bytes, parts[i]->size);
    buffer_add(&file, NULL, (8 - file.size % 8) % 8);
    free(parts[i]->bytes);
  }
  unsigned char *aligned = aligned_alloc(64, (file.size + 63) / 64 * 64);
  memcpy(aligned, file.bytes, file.size);
  *size_bytes = (int64_t)file.size;
  free(file.bytes);
  *from = (kernel){0};
  return aligned;
}

#endif
