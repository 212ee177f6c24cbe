/* kernel_interpreter.c: runs a verified program of kernel bytecode.

   Each instruction (kernel_opcodes.def) has one body in `interpret`, under a comment with its meaning.  Verification
   has checked the operands.  The interpreter checks what depends on a run, once for each strip: accesses must be within
   their buffers, and strips must be large enough for the bytes that are read or written.  Work is charged as fuel.
   When the fuel is used up, rvm_kernel_refuel checks the run's limits.  kernel_run.h declares the state of a run. */
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "compiler.h"
#include "dtype.h"
#include "errors.h"
#include "kernel_interpreter.h"
#include "kernel_run.h"
#include "reproducible.h"
#include "selected.h"
#include "tensor.h"

/* Labels as values are an extension of GCC and Clang. */
#pragma GCC diagnostic ignored "-Wpedantic"

/* Fuel.  A scalar instruction costs 1. */
enum {
  STRIP_COST = 16,     /* an instruction on strips */
  SCATTER_COST = 128,  /* an instruction that accesses memory at a separate position for each element */
  INVOKE_COST = 64,    /* a micro-kernel, in addition to its work */
  WORK_PER_FUEL = 512, /* work of a micro-kernel (RVM_MICRO_PORTION) per unit of fuel */
};
/* The fuel for copying rows of adjacent elements, and for applying a function to `count` elements. */
#define ROWS_COST(rows) (STRIP_COST + (rows) / 4)
#define FUNCTION_COST(function, count) (1 + ((count) * (function)->cost) / RVM_STRIP)

/* Fails with INDEX_ERROR because an instruction accesses memory outside `object`, which is part of the message. */
static rvm_status fail_bounds(const rvm_kernel_run *state, uint32_t pc, const char *object) {
  return rvm_fail(state->result, RVM_INDEX_ERROR, "kernel bytecode: instruction %u accesses memory outside its %s", pc,
                  object);
}

/* The callback `spend` of rvm_micro_watch: charges a portion of a micro-kernel's work before it starts.  Returns 0 if
   the run must end. */
static int spend_work(void *host, int64_t work) {
  rvm_kernel_run *state = host;
  state->fuel -= 1 + work / WORK_PER_FUEL;
  if (state->fuel <= 0) state->ended = rvm_kernel_refuel(state);
  return state->ended == RVM_OK;
}

/* Fails with the status and message of a `fail` instruction.  Each %lld in the message is replaced by the value of the
   next register that the instruction lists in the argument table. */
static rvm_status fail_with_message(const rvm_kernel_run *state, const rvm_kop_fail *instruction) {
  const rvm_kernel_program *program = state->program;
  const char *message = program->messages;
  for (uint32_t i = instruction->message; i > 0; i--) message += strlen(message) + 1;
  enum { TEXT_BYTES = 512, NUMBER_BYTES = 24 };
  char text[TEXT_BYTES];
  size_t length = 0;
  const uint16_t *next_register = program->arguments + instruction->first;
  while (*message && length < TEXT_BYTES - NUMBER_BYTES) {
    if (strncmp(message, "%lld", 4) == 0) {
      const long long value = state->scalars[*next_register++].i64;
      length += (size_t)snprintf(text + length, sizeof text - length, "%lld", value);
      message += 4;
    } else {
      text[length++] = *message++;
    }
  }
  /* If the message is truncated inside a UTF-8 character, remove the start of the character. */
  for (; length > 0 && (*message & 0xc0) == 0x80; message--) length--;
  text[length] = 0;
  return rvm_fail(state->result, instruction->status, "%s", text);
}

/* ---- elements ---- */

/* Returns the address of element `position` of a buffer, or NULL if any of the `count` elements of `bytes` bytes from
   there on is outside the buffer. */
static inline char *element_address(const rvm_kernel_run *state, uint32_t buffer, int64_t position, int64_t count,
                                    uint32_t bytes) {
  const int64_t limit = state->buffer_bytes[buffer] / bytes;
  if (position < 0 || position > limit || count > limit - position) return NULL;
  return state->buffers[buffer] + position * bytes;
}

/* Like element_address, for `count` >= 1 elements that are `stride` elements apart. */
static inline char *strided_address(const rvm_kernel_run *state, uint32_t buffer, int64_t position, int64_t stride,
                                    int64_t count, uint32_t bytes) {
  const int64_t limit = state->buffer_bytes[buffer] / bytes;
  int64_t last;
  if (position < 0 || position >= limit || !rvm_multiply(stride, count - 1, &last) || !rvm_add(last, position, &last) ||
      last < 0 || last >= limit)
    return NULL;
  return state->buffers[buffer] + position * bytes;
}

/* A two-dimensional block of elements in a buffer.  `position` is its first element, and `width` the number of elements
   of a row.  The strides between rows, and between the elements of a row, are in elements. */
typedef struct block {
  int64_t position, rows, row_stride, width, stride;
} block;

/* Like element_address, for a block of at least one element.  The block is inside the buffer if its four corners are.
 */
static inline char *block_address(const rvm_kernel_run *state, uint32_t buffer, block block, uint32_t bytes) {
  const int64_t limit = state->buffer_bytes[buffer] / bytes;
  int64_t down, across, bottom_left, top_right, bottom_right;
  if (!rvm_multiply(block.row_stride, block.rows - 1, &down) || !rvm_multiply(block.stride, block.width - 1, &across) ||
      !rvm_add(down, block.position, &bottom_left) || !rvm_add(across, block.position, &top_right) ||
      !rvm_add(bottom_left, across, &bottom_right))
    return NULL;
  const int64_t corners[] = {block.position, bottom_left, top_right, bottom_right};
  for (size_t i = 0; i < sizeof corners / sizeof *corners; i++)
    if (corners[i] < 0 || corners[i] >= limit) return NULL;
  return state->buffers[buffer] + block.position * bytes;
}

/* Returns the functions that gather, scatter and copy elements of `bytes` bytes, which is 1, 2, 4 or 8
   (rvm_strip_moves). */
static inline const rvm_strip_moves *strip_moves(const rvm_kernel_run *state, uint32_t bytes) {
  return &state->level->moves[bytes == 8 ? 3 : bytes / 2];
}

/* Return whether `bytes` bytes of the strip in register `number` may be read, or written.  A scalar may always be
   read. */
static inline int can_read(const rvm_kernel_run *state, uint32_t scalars, uint16_t number, int64_t bytes) {
  return number < scalars || bytes <= state->readable[number];
}
static inline int can_write(const rvm_kernel_run *state, uint16_t number, int64_t bytes) {
  return bytes <= state->writable[number];
}

/* Reduces `count` elements to one by `function`, and combines the result with *total.  Each pass combines element i of
   the first half with element i of the second half, until one element is left.  Overwrites the elements. */
static void fold_strip(const rvm_element_function *function, char *total, char *elements, int64_t count) {
  while (count > 1) {
    const int64_t half = count / 2;
    function->run(half, elements, elements, elements + (count - half) * function->operand_bytes,
                  RVM_LEFT_IS_STRIP | RVM_RIGHT_IS_STRIP);
    count -= half;
  }
  function->run(1, total, elements, total, 0);
}

/* Returns the indices in register `number`, for a caller that checks the indices and then uses them.  Another thread
   could change them between the check and the use if they are in a buffer and the loop is parallel.  In this case,
   returns a copy in `copy`. */
static const int64_t *stable_indices(const rvm_kernel_run *state, uint16_t number, int64_t *copy) {
  const int64_t *indices = (const int64_t *)state->addresses[number];
  if (!state->loop || number < state->program->scalar_count + state->program->strip_count) return indices;
  memcpy(copy, indices, (size_t)state->strip * sizeof *copy);
  return copy;
}

/* Calls the micro-kernel of an `invoke` instruction with its arguments from the argument table. */
static rvm_status call_micro_kernel(rvm_kernel_run *state, const rvm_kop_invoke *instruction, uint32_t pc) {
  const rvm_micro_kernel *kernel = &state->level->micro_kernels[instruction->kernel];
  rvm_micro_argument arguments[RVM_MICRO_KERNEL_ARGUMENTS];
  const uint16_t *word = state->program->arguments + instruction->first;
  rvm_micro_argument *argument = arguments;
  for (const char *letter = kernel->arguments; *letter; letter++, argument++) {
    const int is_address = *letter == 'p' || *letter == 'P'; /* READ or WRITE (micro_kernels.h) */
    if (is_address) {
      const uint16_t buffer = *word++;
      const int64_t position = state->scalars[*word++].i64;
      argument->address = state->buffers[buffer];
      argument->bytes = state->buffer_bytes[buffer];
      argument->number = position; /* counted in elements, whose size the micro-kernel knows */
      continue;
    }
    const rvm_kernel_scalar value = state->scalars[*word++];
    argument->number = value.i64;
    argument->f32 = value.f32;
  }
  const rvm_micro_watch watch = {.spend = spend_work, .host = state};
  const int status = kernel->run(arguments, &watch);
  if (status == RVM_MICRO_ENDED) return state->ended;
  return status == RVM_MICRO_DONE ? RVM_OK : fail_bounds(state, pc, "buffers, or its arguments are invalid");
}

/* Returns the length of the next strip of [start, stop). */
static inline int64_t strip_length(int64_t start, int64_t stop) {
  if (start >= stop) return 0;
  const uint64_t left = (uint64_t)stop - (uint64_t)start;
  return left < RVM_STRIP ? (int64_t)left : RVM_STRIP;
}

/* Copies an element of 1, 2, 4 or 8 bytes. */
static inline void copy_element(void *dst, const void *src, uint32_t bytes) {
  switch (bytes) {
    case 1: memcpy(dst, src, 1); break;
    case 2: memcpy(dst, src, 2); break;
    case 4: memcpy(dst, src, 4); break;
    default: memcpy(dst, src, 8);
  }
}

/* Copies rows of `bytes` bytes each.  The strides are in bytes.  A row may overlap its copy. */
static inline void copy_rows(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t rows,
                             int64_t bytes) {
  if (dst_stride == bytes && src_stride == bytes) { /* the rows are adjacent */
    bytes *= rows;
    rows = 1;
  }
  for (int64_t i = 0; i < rows; i++) memmove(dst + i * dst_stride, src + i * src_stride, (size_t)bytes);
}

/* Sets the current strip to rows of `width` elements: the rows [start, stop), or the first of them if a strip has too
   little space for all. */
static void set_block(rvm_kernel_run *state, int64_t start, int64_t stop, int64_t width) {
  const uint64_t left = start < stop ? (uint64_t)stop - (uint64_t)start : 0;
  const uint64_t most = width > 0 ? (uint64_t)(RVM_STRIP / width) : 0;
  state->rows = (int64_t)(left < most ? left : most);
  state->strip = state->rows * width;
}

/* ---- the instructions ---- */

#define BODY(name) do_##name:
/* Declares the operands of the instruction at pc: op->dst, op->buffer, ... */
#define OPERANDS(name) const rvm_kop_##name *const op = (const rvm_kop_##name *)&code[pc]
/* A scalar register as i64, as u64 (for arithmetic that wraps around), and as bool. */
#define R(operand) registers[op->operand].i64
#define U(operand) registers[op->operand].bits
#define IS_TRUE(operand) registers[op->operand].is_true
/* The address of a scalar, or of the first element of a strip or view. */
#define AT(operand) state->addresses[op->operand]
#define IS_STRIP(operand) (op->operand >= scalars)
#define CAN_READ(operand, bytes) can_read(state, scalars, op->operand, bytes)
#define CAN_WRITE(operand, bytes) can_write(state, op->operand, bytes)

#define DISPATCH goto *dispatch_table[code[pc].op]
#define NEXT  \
  do {        \
    ++pc;     \
    DISPATCH; \
  } while (0)
/* Goes to the next instruction after charging `cost`. */
#define NEXT_AFTER(cost)       \
  do {                         \
    state->fuel -= (cost);     \
    if (state->fuel > 0) NEXT; \
    pc++;                      \
    goto refuel;               \
  } while (0)
/* Goes to the instruction that `operand` names.  A backward jump charges 1 for each instruction from there to this one,
   a forward jump 1. */
#define GO(operand)                                          \
  do {                                                       \
    const uint32_t target = op->operand;                     \
    state->fuel -= target < pc ? (int64_t)(pc - target) : 1; \
    pc = target;                                             \
    if (state->fuel > 0) DISPATCH;                           \
    goto refuel;                                             \
  } while (0)
#define SCALAR_INSTRUCTION(name, assignment) \
  BODY(name) {                               \
    OPERANDS(name);                          \
    assignment;                              \
    NEXT;                                    \
  }

/* Runs the instructions from `pc` on until an `end`.  Fails if an instruction fails or the run exceeds a limit. */
static rvm_status interpret(rvm_kernel_run *state, uint32_t pc) {
  const rvm_kernel_program *program = state->program;
  const rvm_kernel_instruction *const code = program->code;
  const uint32_t scalars = program->scalar_count;
  rvm_kernel_scalar *const registers = state->scalars;
  static const void *const bodies[] = {
#define KERNEL_OP(name, operands, names, meaning) RVM_IF_USED(op_##name, &&do_##name),
#include "kernel_opcodes.def"
#undef KERNEL_OP
  };
  static const void *const observed[] = {
#define KERNEL_OP(name, operands, names, meaning) &&observe,
#include "kernel_opcodes.def"
#undef KERNEL_OP
  };
  const void *const *const dispatch_table = !RVM_IS_SELECTIVE && state->host->observe ? observed : bodies;
  rvm_status status;
  DISPATCH;

  /* the body of every instruction while an instrument or a debugger observes the run */
observe:
  status = state->host->observe(state->host->observer, state, pc, state->result);
  if (status) return status;
  goto *bodies[code[pc].op];

  /* end the kernel, or one part of a parallel loop */
  BODY(end) { return RVM_OK; }

  /* go to target */
  BODY(jump) {
    OPERANDS(jump);
    GO(target);
  }

  /* if not condition: go to target */
  BODY(unless) {
    OPERANDS(unless);
    if (IS_TRUE(condition)) NEXT;
    GO(target);
  }

  /* index = start; if index >= stop: go to exit */
  BODY(loop) {
    OPERANDS(loop);
    R(index) = R(start);
    if (R(index) < R(stop)) NEXT;
    GO(exit);
  }

  /* index += 1; if index < stop: go to body */
  BODY(next) {
    OPERANDS(next);
    U(index)++;
    if (R(index) >= R(stop)) NEXT;
    GO(body);
  }

  /* index = start; n = min(stop - index, RVM_STRIP); if n <= 0: go to exit */
  BODY(strips) {
    OPERANDS(strips);
    R(index) = R(start);
    state->strip = strip_length(R(index), R(stop));
    if (state->strip > 0) NEXT;
    GO(exit);
  }

  /* index += n; n = min(stop - index, RVM_STRIP); if n > 0: go to body */
  BODY(next_strip) {
    OPERANDS(next_strip);
    U(index) += (uint64_t)state->strip;
    state->strip = strip_length(R(index), R(stop));
    if (state->strip <= 0) NEXT;
    GO(body);
  }

  /* index = start; n = min(stop - index, RVM_STRIP / width) * width; if n <= 0: go to exit */
  BODY(blocks) {
    OPERANDS(blocks);
    R(index) = R(start);
    set_block(state, R(index), R(stop), R(width));
    if (state->strip > 0) NEXT;
    GO(exit);
  }

  /* index += n / width; n = min(stop - index, RVM_STRIP / width) * width; if n > 0: go to body */
  BODY(next_block) {
    OPERANDS(next_block);
    U(index) += (uint64_t)state->rows;
    set_block(state, R(index), R(stop), R(width));
    if (state->strip <= 0) NEXT;
    GO(body);
  }

  /* run the following instructions for the parts of [0, total); go to exit */
  BODY(parallel) {
    OPERANDS(parallel);
    if ((status = rvm_kernel_run_parallel(state, pc))) return status;
    GO(exit);
  }

  /* fail with status and message */
  BODY(fail) {
    OPERANDS(fail);
    return fail_with_message(state, op);
  }

  /* kernel(arguments...) */
  BODY(invoke) {
    OPERANDS(invoke);
    if ((status = call_micro_kernel(state, op, pc))) return status;
    NEXT_AFTER(INVOKE_COST);
  }

  SCALAR_INSTRUCTION(copy, R(dst) = R(src))
  SCALAR_INSTRUCTION(add, U(dst) = U(left) + U(right))
  SCALAR_INSTRUCTION(sub, U(dst) = U(left) - U(right))
  SCALAR_INSTRUCTION(mul, U(dst) = U(left) * U(right))
  SCALAR_INSTRUCTION(div, U(dst) = R(right) == 0 ? 0 : R(right) == -1 ? 0 - U(left) : (uint64_t)(R(left) / R(right)))
  SCALAR_INSTRUCTION(mod, R(dst) = R(right) == 0 || R(right) == -1 ? 0 : R(left) % R(right))
  SCALAR_INSTRUCTION(multiply_add, U(dst) = U(left) * U(right) + U(addend))
  SCALAR_INSTRUCTION(larger, R(dst) = R(left) > R(right) ? R(left) : R(right))
  SCALAR_INSTRUCTION(smaller, R(dst) = R(left) < R(right) ? R(left) : R(right))
  SCALAR_INSTRUCTION(lt, R(dst) = R(left) < R(right))
  SCALAR_INSTRUCTION(le, R(dst) = R(left) <= R(right))
  SCALAR_INSTRUCTION(eq, R(dst) = R(left) == R(right))
  SCALAR_INSTRUCTION(ne, R(dst) = R(left) != R(right))
  SCALAR_INSTRUCTION(select, R(dst) = IS_TRUE(condition) ? R(left) : R(right))

  /* dst = buffer[position] */
  BODY(load) {
    OPERANDS(load);
    const char *src = element_address(state, op->buffer, R(position), 1, op->size);
    if (!src) return fail_bounds(state, pc, "buffer");
    copy_element(&registers[op->dst], src, op->size);
    NEXT;
  }

  /* buffer[position] = src */
  BODY(store) {
    OPERANDS(store);
    char *dst = element_address(state, op->buffer, R(position), 1, op->size);
    if (!dst) return fail_bounds(state, pc, "buffer");
    copy_element(dst, &registers[op->src], op->size);
    NEXT;
  }

  /* dst[i] = function(left[i], right[i]) */
  BODY(apply) {
    OPERANDS(apply);
    const rvm_element_function *function = &state->level->functions[op->function];
    const int64_t n = state->strip;
    if (!IS_STRIP(dst)) {
      function->run(1, AT(dst), AT(left), AT(right), 0);
      NEXT_AFTER(FUNCTION_COST(function, 1));
    }
    if (!CAN_WRITE(dst, n * function->result_bytes) || !CAN_READ(left, n * function->operand_bytes) ||
        !CAN_READ(right, n * function->operand_bytes))
      return fail_bounds(state, pc, "strip");
    const int strips = (IS_STRIP(left) ? RVM_LEFT_IS_STRIP : 0) | (IS_STRIP(right) ? RVM_RIGHT_IS_STRIP : 0);
    if (strips == 0) return fail_bounds(state, pc, "strip: all its operands are scalars");
    function->run(n, AT(dst), AT(left), AT(right), strips);
    NEXT_AFTER(FUNCTION_COST(function, n));
  }

  /* view = buffer[position : position + n] */
  BODY(view)
  BODY(view_written) {
    OPERANDS(view);
    char *address = element_address(state, op->buffer, R(position), state->strip, op->size);
    if (!address) return fail_bounds(state, pc, "buffer");
    AT(view) = address;
    state->readable[op->view] = state->strip * op->size;
    state->writable[op->view] = op->opcode == RVM_KOP_view_written ? state->readable[op->view] : 0;
    NEXT;
  }

  /* dst[i] = buffer[indices[i]], or 0 where mask[i] is false */
  BODY(gather) {
    OPERANDS(gather);
    const int64_t n = state->strip;
    int64_t copy[RVM_STRIP];
    const int has_mask = op->mask != RVM_NO_REGISTER;
    if (!CAN_WRITE(dst, n * op->size)) return fail_bounds(state, pc, "strip");
    if (!IS_STRIP(indices) || !CAN_READ(indices, n * 8)) return fail_bounds(state, pc, "strip");
    if (has_mask && (!IS_STRIP(mask) || !CAN_READ(mask, n))) return fail_bounds(state, pc, "strip");
    if (!strip_moves(state, op->size)
             ->gather(n, AT(dst), state->buffers[op->buffer], state->buffer_bytes[op->buffer] / op->size,
                      stable_indices(state, op->indices, copy), has_mask ? (const uint8_t *)AT(mask) : NULL))
      return fail_bounds(state, pc, "buffer");
    NEXT_AFTER(SCATTER_COST);
  }

  /* dst[i] = buffer[position + i * stride], or 0 where mask[i] is false */
  BODY(strided) {
    OPERANDS(strided);
    const int64_t n = state->strip;
    if (!CAN_WRITE(dst, n * op->size)) return fail_bounds(state, pc, "strip");
    if (op->mask != RVM_NO_REGISTER) {
      if (!IS_STRIP(mask) || !CAN_READ(mask, n)) return fail_bounds(state, pc, "strip");
      if (!strip_moves(state, op->size)
               ->masked(n, AT(dst), state->buffers[op->buffer], state->buffer_bytes[op->buffer] / op->size, R(position),
                        R(stride), (const uint8_t *)AT(mask)))
        return fail_bounds(state, pc, "buffer");
      NEXT_AFTER(SCATTER_COST);
    }
    const char *src = strided_address(state, op->buffer, R(position), R(stride), n, op->size);
    if (!src) return fail_bounds(state, pc, "buffer");
    strip_moves(state, op->size)->strided(n, AT(dst), src, R(stride));
    NEXT_AFTER(SCATTER_COST);
  }

  /* dst[i * width + j] = buffer[position + i * row_stride + j * stride] */
  BODY(load_rows) {
    OPERANDS(load_rows);
    const int64_t n = state->strip, width = R(width), rows = width > 0 ? n / width : 0, size = op->size;
    if (width <= 0 || rows * width != n || !CAN_WRITE(dst, n * size)) return fail_bounds(state, pc, "strip");
    const block block = {R(position), rows, R(row_stride), width, R(stride)};
    const char *src = block_address(state, op->buffer, block, op->size);
    if (!src) return fail_bounds(state, pc, "buffer");
    char *dst = AT(dst);
    /* The product may wrap around if there is only one row, whose stride is not used. */
    const int64_t row_bytes = (int64_t)(U(row_stride) * (uint64_t)size);
    if (R(stride) == 1) {
      copy_rows(dst, width * size, src, row_bytes, rows, width * size);
      NEXT_AFTER(ROWS_COST(rows));
    }
    for (int64_t i = 0; i < rows; i++)
      strip_moves(state, op->size)->strided(width, dst + i * width * size, src + i * row_bytes, R(stride));
    NEXT_AFTER(SCATTER_COST);
  }

  /* buffer[position + i * row_stride + j * stride] = src[i * width + j] */
  BODY(store_rows) {
    OPERANDS(store_rows);
    const int64_t n = state->strip, width = R(width), rows = width > 0 ? n / width : 0, size = op->size;
    if (width <= 0 || rows * width != n || !CAN_READ(src, n * size)) return fail_bounds(state, pc, "strip");
    const block block = {R(position), rows, R(row_stride), width, R(stride)};
    char *dst = block_address(state, op->buffer, block, op->size);
    if (!dst) return fail_bounds(state, pc, "buffer");
    const char *src = AT(src);
    const int64_t row_bytes = (int64_t)(U(row_stride) * (uint64_t)size), src_bytes = IS_STRIP(src) ? width * size : 0;
    if (R(stride) == 1 && IS_STRIP(src)) {
      copy_rows(dst, row_bytes, src, src_bytes, rows, width * size);
      NEXT_AFTER(ROWS_COST(rows));
    }
    for (int64_t i = 0; i < rows; i++)
      strip_moves(state, op->size)->spread(width, dst + i * row_bytes, R(stride), src + i * src_bytes, IS_STRIP(src));
    NEXT_AFTER(R(stride) == 1 ? ROWS_COST(rows) : SCATTER_COST);
  }

  /* buffer[indices[i]] = src[i] */
  BODY(scatter) {
    OPERANDS(scatter);
    const int64_t n = state->strip;
    int64_t copy[RVM_STRIP];
    if (!IS_STRIP(indices) || !CAN_READ(indices, n * 8) || !CAN_READ(src, n * op->size))
      return fail_bounds(state, pc, "strip");
    if (!strip_moves(state, op->size)
             ->scatter(n, state->buffers[op->buffer], state->buffer_bytes[op->buffer] / op->size,
                       stable_indices(state, op->indices, copy), AT(src), IS_STRIP(src)))
      return fail_bounds(state, pc, "buffer");
    NEXT_AFTER(SCATTER_COST);
  }

  /* buffer[position + i * stride] = src[i] */
  BODY(store_strided) {
    OPERANDS(store_strided);
    const int64_t n = state->strip;
    if (!CAN_READ(src, n * op->size)) return fail_bounds(state, pc, "strip");
    char *dst = strided_address(state, op->buffer, R(position), R(stride), n, op->size);
    if (!dst) return fail_bounds(state, pc, "buffer");
    if (R(stride) == 1 && IS_STRIP(src)) {
      memmove(dst, AT(src), (size_t)(n * op->size));
      NEXT_AFTER(STRIP_COST);
    }
    strip_moves(state, op->size)->spread(n, dst, R(stride), AT(src), IS_STRIP(src));
    NEXT_AFTER(SCATTER_COST);
  }

  /* dst[i] = condition[i] ? left[i] : right[i] */
  BODY(choose) {
    OPERANDS(choose);
    const int64_t n = state->strip;
    if (!CAN_WRITE(dst, n * op->size) || !CAN_READ(condition, n) || !CAN_READ(left, n * op->size) ||
        !CAN_READ(right, n * op->size))
      return fail_bounds(state, pc, "strip");
    strip_moves(state, op->size)
        ->choose(n, AT(dst), (const uint8_t *)AT(condition), IS_STRIP(condition), AT(left), IS_STRIP(left), AT(right),
                 IS_STRIP(right));
    NEXT_AFTER(STRIP_COST);
  }

  /* dst[i] = src[i] */
  BODY(move) {
    OPERANDS(move);
    const int64_t bytes = state->strip * op->size;
    if (!CAN_WRITE(dst, bytes) || !CAN_READ(src, bytes)) return fail_bounds(state, pc, "strip");
    if (IS_STRIP(src))
      memmove(AT(dst), AT(src), (size_t)bytes);
    else
      strip_moves(state, op->size)->splat(state->strip, AT(dst), AT(src));
    NEXT_AFTER(STRIP_COST);
  }

  /* dst[i] = src for i < min(count, RVM_STRIP) */
  BODY(fill) {
    OPERANDS(fill);
    const int64_t count = R(count) < RVM_STRIP ? R(count) : RVM_STRIP;
    strip_moves(state, op->size)->splat(count, AT(dst), AT(src));
    NEXT_AFTER(STRIP_COST);
  }

  /* dst[i] = start + i * step */
  BODY(iota) {
    OPERANDS(iota);
    if (!CAN_WRITE(dst, state->strip * 8)) return fail_bounds(state, pc, "strip");
    int64_t *dst = (int64_t *)AT(dst);
    const uint64_t start = U(start), step = U(step);
    for (int64_t i = 0; i < state->strip; i++) dst[i] = (int64_t)(start + (uint64_t)i * step);
    NEXT_AFTER(STRIP_COST);
  }

  /* dst[i * width + j] = start + i * row_step + j * step */
  BODY(iota_rows) {
    OPERANDS(iota_rows);
    const int64_t n = state->strip, width = R(width), rows = width > 0 ? n / width : 0;
    if (rows * width != n || !CAN_WRITE(dst, n * 8)) return fail_bounds(state, pc, "strip");
    uint64_t *dst = (uint64_t *)AT(dst);
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < width; j++) *dst++ = U(start) + (uint64_t)i * U(row_step) + (uint64_t)j * U(step);
    NEXT_AFTER(STRIP_COST);
  }

  /* Performs lanes[i mod RVM_SUM_LANES] = function(src[i], lanes[i mod RVM_SUM_LANES]) for each i.  If the last
     elements of src do not fill all lanes, stores these elements after the lanes instead. */
  BODY(accumulate) {
    OPERANDS(accumulate);
    const rvm_element_function *function = &state->level->functions[op->function];
    const int64_t n = state->strip, bytes = function->operand_bytes, rest = n % RVM_SUM_LANES;
    if (!CAN_WRITE(lanes, 2 * RVM_SUM_LANES * bytes) || !IS_STRIP(src) || !CAN_READ(src, n * bytes))
      return fail_bounds(state, pc, "strip");
    char *lanes = AT(lanes);
    for (int64_t i = 0; i < n - rest; i += RVM_SUM_LANES)
      function->run(RVM_SUM_LANES, lanes, AT(src) + i * bytes, lanes, RVM_LEFT_IS_STRIP | RVM_RIGHT_IS_STRIP);
    if (rest) memcpy(lanes + RVM_SUM_LANES * bytes, AT(src) + (n - rest) * bytes, (size_t)(rest * bytes));
    NEXT_AFTER(FUNCTION_COST(function, n));
  }

  /* total = total combined with the lanes, into which `count` elements were accumulated, then with the elements that
     `accumulate` stored after the lanes */
  BODY(fold_lanes) {
    OPERANDS(fold_lanes);
    const rvm_element_function *function = &state->level->functions[op->function];
    const int64_t bytes = function->operand_bytes, count = R(count), rest = count > 0 ? count % RVM_SUM_LANES : 0;
    if (!CAN_WRITE(lanes, 2 * RVM_SUM_LANES * bytes)) return fail_bounds(state, pc, "strip");
    char *total = AT(total), *lanes = AT(lanes);
    if (count >= RVM_SUM_LANES) fold_strip(function, total, lanes, RVM_SUM_LANES);
    for (int64_t i = 0; i < rest; i++) function->run(1, total, lanes + (RVM_SUM_LANES + i) * bytes, total, 0);
    NEXT_AFTER(FUNCTION_COST(function, 2 * RVM_SUM_LANES));
  }

  /* total = total combined with the first min(count, RVM_STRIP) elements of src, which are overwritten */
  BODY(fold) {
    OPERANDS(fold);
    const rvm_element_function *function = &state->level->functions[op->function];
    const int64_t count = R(count) < RVM_STRIP ? R(count) : RVM_STRIP;
    if (count <= 0) NEXT;
    if (!CAN_WRITE(src, count * function->operand_bytes)) return fail_bounds(state, pc, "strip");
    fold_strip(function, AT(total), AT(src), count);
    NEXT_AFTER(FUNCTION_COST(function, count));
  }

refuel:
  if ((status = rvm_kernel_refuel(state))) return status;
  DISPATCH;
}

/* ---- calls ---- */

/* Checks that the arguments match the program's tensors.  Sets the buffers of the tensors, and the first scalars, which
   are the size variables. */
static rvm_status bind_tensors(rvm_kernel_run *state, const rvm_value *arguments, int32_t count) {
  const rvm_kernel_program *program = state->program;
  static char RVM_ALIGNED(8) no_elements[8]; /* the buffer of a tensor without elements */
  const int64_t *word = program->tensors;
  uint32_t known = 0;
  if (count < 0 || (uint32_t)count != program->tensor_count)
    return rvm_fail(state->result, RVM_ARGUMENT_ERROR, "kernel: expected %d argument%s, got %d",
                    (int)program->tensor_count, RVM_PLURAL(program->tensor_count), (int)count);
  for (int32_t i = 0; i < count; i++) {
    const int64_t dtype = *word++, rank = *word++;
    if (arguments[i].tag != RVM_TAG_TENSOR)
      return rvm_fail(state->result, RVM_TYPE_ERROR, "kernel: argument %d is not a tensor", (int)i);
    const rvm_tensor *tensor = arguments[i].as.tensor;
    if (tensor->dtype != dtype || tensor->dl.ndim != rank)
      return rvm_fail(state->result, RVM_TYPE_ERROR,
                      "kernel: argument %d does not have the dtype and rank of the kernel", (int)i);
    int64_t elements = 1;
    for (int64_t axis = 0; axis < rank; axis++) {
      int64_t expected = *word++;
      const int64_t got = tensor->dl.shape[axis];
      const int sets_size = expected == -1 - (int64_t)known; /* the first use of a size variable sets it */
      if (sets_size) state->scalars[known++].i64 = got;
      if (expected < 0) expected = state->scalars[-1 - expected].i64;
      if (expected != got)
        return rvm_fail(state->result, RVM_SHAPE_ERROR,
                        "kernel: expected dimension %d of argument %d to be %lld, got %lld", (int)axis, (int)i,
                        (long long)expected, (long long)got);
      if (!rvm_multiply(elements, got, &elements))
        return rvm_fail(state->result, RVM_SHAPE_ERROR, "kernel: argument %d is too large", (int)i);
    }
    if ((uint32_t)i >= program->input_count && !rvm_tensor_is_own(tensor))
      return rvm_fail(
          state->result, RVM_ARGUMENT_ERROR,
          "kernel: output argument %d must be allocated by the machine, got a constant or memory of the host", (int)i);
    if ((uintptr_t)tensor->dl.data % (uint64_t)rvm_dtype_size_bytes((int32_t)dtype) != 0)
      return rvm_fail(state->result, RVM_ARGUMENT_ERROR, "kernel: the elements of argument %d are not aligned", (int)i);
    state->buffers[i] = tensor->dl.data ? tensor->dl.data : no_elements;
    state->buffer_bytes[i] = elements * rvm_dtype_size_bytes((int32_t)dtype);
  }
  return RVM_OK;
}

rvm_status rvm_kernel_program_run(const rvm_kernel_program *program, const rvm_kernel_host *host,
                                  const rvm_value *arguments, int32_t count, rvm_value *result) {
  if (rvm_stack_left(host->machine) < RVM_KERNEL_STACK_BYTES)
    return rvm_fail(result, RVM_STACK_OVERFLOW,
                    "kernel bytecode needs %d bytes of the C stack, but this thread has %lld left; use a thread with a "
                    "larger stack",
                    (int)RVM_KERNEL_STACK_BYTES, (long long)rvm_stack_left(host->machine));
  const rvm_kernel_level *level = host->level ? host->level : rvm_kernel_level_here();
  if (program->flags & RVM_KERNEL_EXACT_FMA && !(level = rvm_kernel_level_exact(level)))
    return rvm_fail(result, RVM_UNSUPPORTED,
                    "kernel bytecode requires exact fused multiply-adds; build the runtime for a processor with FMA, "
                    "or without -DRVM_WITHOUT_EXACT_FMA");
  rvm_value storage;
  rvm_status status = rvm_storage_new(host->pool, rvm_kernel_memory_bytes(program), &storage);
  if (status) {
    *result = storage;
    return status;
  }
  rvm_kernel_run state = {.program = program,
                          .level = level,
                          .host = host,
                          .interpret = interpret,
                          .result = result,
                          .fuel = RVM_KERNEL_FUEL};
  rvm_kernel_run_init(&state, (char *)storage.as.storage->bytes);
  status = bind_tensors(&state, arguments, count);
  if (!status) {
    memcpy(state.scalars + program->size_count, program->constants,
           program->constant_count * sizeof *program->constants);
    result->tag = RVM_TAG_NIL;
    status = interpret(&state, 0);
    if (!status) status = host->spend(host->machine, RVM_KERNEL_FUEL - state.fuel, result);
  }
  rvm_kernel_clear_addresses(program, (char *)storage.as.storage->bytes);
  rvm_value_release(&storage);
  return status;
}
