#include "verify.h"

#include <string.h>

static const char *const operand_letters[] = {
#define OP(name, operands, meaning) operands,
#include "opcodes.def"
#undef OP
};

static const char *const opcode_names[] = {
#define OP(name, operands, meaning) #name,
#include "opcodes.def"
#undef OP
};

/* What is known of a code word. */
enum { STARTS_INSTRUCTION = 1, IS_LOOP_HEAD = 2 };

/* A set of registers, one bit each; on the free list its first word is the link. */
typedef union register_set {
  union register_set *next;
  uint64_t bits[1];
} register_set;

/* The verification of one function.  `states` holds, for a code word that jumps go to, the registers that are written on
   every way there seen so far: for a loop head until the end, for other targets until the walk arrives. */
typedef struct checker {
  const rvm_executable *executable;
  const rvm_function_record *function;
  const char *name;
  const uint32_t *code;
  uint32_t count;        /* words of code */
  uint32_t set_words;    /* words of a register set */
  unsigned char *marks;  /* per code word */
  register_set **states; /* per code word */
  register_set *written; /* at the instruction being looked at */
  register_set *free_sets;
  int64_t set_bytes; /* of all sets made */
  int32_t reachable; /* whether the instruction being looked at is */
  int32_t changed;   /* whether a loop head lost a register in this walk */
  rvm_value *error;
} checker;

/* Sets take at most this much memory, and loops settle within so many walks, in any code that is not made to be slow. */
#define LARGEST_SET_BYTES ((int64_t)1 << 28)
enum { MOST_WALKS = 64 };

uint32_t rvm_instruction_words(const uint32_t *code, uint32_t left) {
  if (left == 0 || code[0] >= RVM_OP_COUNT) return 0;
  uint32_t words = 1;
  for (const char *letter = operand_letters[code[0]]; *letter; letter++) {
    if (words >= left) return 0;
    if (*letter == 'A') {
      if (code[words] > left - words - 1) return 0;
      words += code[words];
    }
    words++;
  }
  return words;
}

/* The 0-based number of the instruction at `pc`, for messages. */
static int64_t instruction_index(const checker *c, uint32_t pc) {
  int64_t index = 0;
  for (uint32_t at = 0; at < pc; at += rvm_instruction_words(c->code + at, c->count - at)) index++;
  return index;
}

#define BAD(c, pc, ...) bad(c, pc, __VA_ARGS__)
static rvm_status bad(const checker *c, uint32_t pc, const char *what, int64_t number) {
  const char *opcode = c->code[pc] < RVM_OP_COUNT ? opcode_names[c->code[pc]] : "unknown opcode";
  char text[96];
  rvm_text_format(text, sizeof text, what, number);
  return rvm_fail(c->error, RVM_BAD_EXECUTABLE, "executable: function %s, instruction %lld (%s): %s", c->name,
                  (long long)instruction_index(c, pc), opcode, text);
}
