/* kernel_interpreter.c: runs a program of kernel bytecode. */
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "compiler.h"
#include "dtype.h"
#include "errors.h"
#include "kernel_interpreter.h"
#include "kernel_run.h"
#include "reproducible.h"
#include "tensor.h"

/* Labels as values: each instruction jumps to the next one's body by itself, so that the processor can tell them apart. */
#pragma GCC diagnostic ignored "-Wpedantic"


static rvm_status fail_bounds(const rvm_kernel_run *state, uint32_t place, const char *what) {
  return rvm_fail(state->result, RVM_INDEX_ERROR, "kernel bytecode: instruction %u accesses memory outside its %s", place, what);
}

enum {
  STRIP_COST = 16,     /* of an instruction on strips */
  PLACES_COST = 128,   /* of one that goes to memory at a place of its own for each element */
  INVOKE_COST = 64,    /* of a micro-kernel, and 1 for each INVOKE_WORK of its work */
  INVOKE_WORK = 512,
};

/* Charges a portion of a micro-kernel's work before it starts; returns whether the run goes on. */
static int spend_work(void *host, int64_t work) {
  rvm_kernel_run *state = host;
  state->fuel -= 1 + work / INVOKE_WORK;
  if (state->fuel <= 0) state->ended = rvm_kernel_refuel(state);
  return state->ended == RVM_OK;
}

/* ---- failures that the program states ---- */

static rvm_status fail_as_stated(const rvm_kernel_run *state, const rvm_kernel_instruction *step) {
  const rvm_kernel_program *program = state->program;
  const char *message = program->messages;
  for (uint32_t i = step->b; i > 0; i--) message += strlen(message) + 1;
  char text[512];
  size_t used = 0;
  const uint16_t *argument = program->arguments + step->c;
  while (*message && used < sizeof text - 24) {
    if (strncmp(message, "%lld", 4) == 0) {
      used += (size_t)snprintf(text + used, sizeof text - used, "%lld", (long long)state->scalars[*argument++].i64);
      message += 4;
    } else {
      text[used++] = *message++;
    }
  }
  for (; used > 0 && (*message & 0xc0) == 0x80; message--) used--; /* no half of a character */
  text[used] = 0;
  return rvm_fail(state->result, step->a, "%s", text);
}

/* ---- elements ---- */

/* Returns the address of element `position` of a buffer, or NULL if the `count` elements of `bytes` bytes from there on are not all
   in the buffer. */
static inline char *place_of(const rvm_kernel_run *state, uint32_t buffer, int64_t position, int64_t count, uint32_t bytes) {
  const int64_t limit = state->buffer_bytes[buffer] / bytes;
  if (position < 0 || position > limit || count > limit - position) return NULL;
  return state->buffers[buffer] + position * bytes;
}

/* Like place_of, for `count` elements with the distance `step`. */
static inline char *strided_place(const rvm_kernel_run *state, uint32_t buffer, int64_t position, int64_t step, int64_t count, uint32_t bytes) {
  const int64_t limit = state->buffer_bytes[buffer] / bytes;
  int64_t last;
  if (position < 0 || position >= limit || !rvm_multiply(step, count - 1, &last) || !rvm_add(last, position, &last) || last < 0 ||
      last >= limit)
    return NULL;
  return state->buffers[buffer] + position * bytes;
}

/* Like place_of, for `rows` rows with the distance `row_step`, of `width` elements with the distance `step`.  There is at least one
   element. */
static inline char *rows_place(const rvm_kernel_run *state, uint32_t buffer, int64_t position, int64_t rows, int64_t row_step, int64_t width,
                               int64_t step, uint32_t bytes) {
  const int64_t limit = state->buffer_bytes[buffer] / bytes;
  int64_t down, across, corner;
  if (!rvm_multiply(row_step, rows - 1, &down) || !rvm_multiply(step, width - 1, &across) || !rvm_add(down, position, &down) ||
      !rvm_add(across, position, &corner) || !rvm_add(down, across, &across))
    return NULL;
  const int64_t corners[] = {position, down, corner, across};
  for (size_t i = 0; i < sizeof corners / sizeof *corners; i++)
    if (corners[i] < 0 || corners[i] >= limit) return NULL;
  return state->buffers[buffer] + position * bytes;
}

static inline const rvm_strip_moves *moves_of(const rvm_kernel_run *state, uint32_t bytes) {
  return &state->level->moves[bytes == 8 ? 3 : bytes / 2];
}

/* Whether registers have room for the strip. */
static inline int can_read(const rvm_kernel_run *state, uint32_t scalars, uint16_t index, int64_t bytes) {
  return index < scalars || bytes <= state->readable[index];
}
static inline int can_write(const rvm_kernel_run *state, uint16_t index, int64_t bytes) { return bytes <= state->writable[index]; }

/* Combines `count` elements in pairs that are half of them apart, and the last one with the total. */
static void fold(const rvm_element_function *function, char *total, char *elements, int64_t count) {
  while (count > 1) {
    const int64_t half = count / 2;
    function->run(half, elements, elements, elements + (count - half) * function->operand_bytes,
                  RVM_LEFT_IS_STRIP | RVM_RIGHT_IS_STRIP);
    count -= half;
  }
  function->run(1, total, elements, total, 0);
}

/* The indices of a strip.  While other threads run, they may change those in a buffer after they are compared: they are copied. */
static const int64_t *indices_of(const rvm_kernel_run *state, uint16_t index, int64_t *copied) {
  const int64_t *indices = (const int64_t *)state->at[index];
  if (!state->loop || index < state->program->scalar_count + state->program->strip_count) return indices;
  memcpy(copied, indices, (size_t)state->strip * sizeof *copied);
  return copied;
}

static rvm_status run_invoke(rvm_kernel_run *state, const rvm_kernel_instruction *step, uint32_t place) {
  const rvm_micro_kernel *kernel = &state->level->micro_kernels[step->a];
  rvm_micro_argument arguments[RVM_MICRO_KERNEL_ARGUMENTS];
  const uint16_t *operand = state->program->arguments + step->b;
  rvm_micro_argument *argument = arguments;
  for (const char *letter = kernel->arguments; *letter; letter++, argument++) {
    if (*letter == 'p' || *letter == 'P') {
      const uint16_t buffer = *operand++;
      const int64_t position = state->scalars[*operand++].i64, bytes = state->buffer_bytes[buffer];
      argument->at = state->buffers[buffer];
      argument->bytes = bytes;
      argument->number = position; /* in elements: the micro-kernel knows their size */
      continue;
    }
    const rvm_kernel_scalar value = state->scalars[*operand++];
    argument->number = value.i64;
    argument->f32 = value.f32;
  }
  const rvm_micro_watch watch = {.spend = spend_work, .host = state};
  const int came = kernel->run(arguments, &watch);
  if (came == RVM_MICRO_ENDED) return state->ended;
  return came == RVM_MICRO_DONE ? RVM_OK : fail_bounds(state, place, "buffers, or its arguments are invalid");
}

/* ---- the loop ---- */

#define R(operand) registers[step->operand].i64
#define U(operand) registers[step->operand].bits

/* Returns how many elements of [first, stop) the next strip has. */
static inline int64_t strip_length(int64_t first, int64_t stop) {
  if (first >= stop) return 0;
  const uint64_t left = (uint64_t)stop - (uint64_t)first;
  return left < RVM_STRIP ? (int64_t)left : RVM_STRIP;
}

/* Copies an element of 1, 2, 4 or 8 bytes. */
static inline void copy_element(void *to, const void *from, uint32_t bytes) {
  switch (bytes) {
    case 1: memcpy(to, from, 1); break;
    case 2: memcpy(to, from, 2); break;
    case 4: memcpy(to, from, 4); break;
    default: memcpy(to, from, 8);
  }
}

/* Copies rows whose beginnings are `to_pitch` and `from_pitch` bytes apart. */
static inline void copy_rows(char *to, int64_t to_pitch, const char *from, int64_t from_pitch, int64_t rows, int64_t bytes) {
  if (to_pitch == bytes && from_pitch == bytes) { /* the rows are adjacent */
    bytes *= rows;
    rows = 1;
  }
  for (int64_t i = 0; i < rows; i++) memmove(to + i * to_pitch, from + i * from_pitch, (size_t)bytes);
}

static void set_block(rvm_kernel_run *state, int64_t first, int64_t stop, int64_t width) {
  const uint64_t left = first < stop ? (uint64_t)stop - (uint64_t)first : 0;
  const uint64_t most = width > 0 ? (uint64_t)(RVM_STRIP / width) : 0;
  state->rows = (int64_t)(left < most ? left : most);
  state->strip = state->rows * width;
}

#define AGAIN goto *jump[(step = &code[place])->op]
#define NEXT goto *jump[(step = &code[++place])->op]

/* Goes to an instruction, which costs what lies between: a loop's body where it goes back. */
#define GO(target)                                                                     \
  {                                                                                    \
    const uint32_t to = target;                                                        \
    state->fuel -= to < place ? (int64_t)(place - to) : 1;                             \
    place = to;                                                                        \
    if (state->fuel > 0) AGAIN;                                                        \
    goto look;                                                                         \
  }

/* Goes to the next instruction; this one has cost more than 1. */
#define SPENT(cost)                                                                    \
  {                                                                                    \
    state->fuel -= (cost);                                                             \
    if (state->fuel > 0) NEXT;                                                         \
    place++;                                                                           \
    goto look;                                                                         \
  }
#define ROWS_COST(rows) (STRIP_COST + (rows) / 4)
/* The cost of a function for `count` elements. */
#define FUNCTION_COST(function, count) (1 + ((count) * (function)->cost) / RVM_STRIP)

static rvm_status interpret(rvm_kernel_run *state, uint32_t place) {
  const rvm_kernel_program *program = state->program;
  const rvm_kernel_instruction *const code = program->code;
  const uint32_t scalars = program->scalar_count;
  rvm_kernel_scalar *const registers = state->scalars;
  const rvm_kernel_instruction *step;
  static const void *const bodies[] = {
#define KERNEL_OP(name, operands, meaning) &&do_##name,
#include "kernel_opcodes.def"
#undef KERNEL_OP
  };
  static const void *const observed[] = {
#define KERNEL_OP(name, operands, meaning) &&do_observe,
#include "kernel_opcodes.def"
#undef KERNEL_OP
  };
  const void *const *const jump = state->host->observe ? observed : bodies;
  AGAIN;
  do_observe: {
    const rvm_status status = state->host->observe(state->host->observer, state, place, state->result);
    if (status) return status;
    goto *bodies[step->op];
  }
  do_end: return RVM_OK;
  do_jump:
    GO(step->a)
  do_unless:
    if (registers[step->a].is_true) NEXT;
    GO(step->b)
  do_loop:
    R(a) = R(b);
    if (R(a) < R(c)) NEXT;
    GO(step->d)
  do_next:
    U(a)++;
    if (R(a) >= R(b)) NEXT;
    GO(step->c)
  do_strips:
    R(a) = R(b);
    state->strip = strip_length(R(a), R(c));
    if (state->strip > 0) NEXT;
    GO(step->d)
  do_next_strip:
    U(a) += (uint64_t)state->strip;
    state->strip = strip_length(R(a), R(b));
    if (state->strip <= 0) NEXT;
    GO(step->c)
  do_blocks:
    R(a) = R(b);
    set_block(state, R(a), R(c), R(d));
    if (state->strip > 0) NEXT;
    GO(step->e)
  do_next_block:
    U(a) += (uint64_t)state->rows;
    set_block(state, R(a), R(b), R(c));
    if (state->strip <= 0) NEXT;
    GO(step->d)
  do_parallel: {
    const rvm_status status = rvm_kernel_run_parallel(state, place);
    if (status) return status;
    GO(step->e)
  }
  do_fail: return fail_as_stated(state, step);
  do_invoke: {
    const rvm_status status = run_invoke(state, step, place);
    if (status) return status;
    SPENT(INVOKE_COST)
  }
  do_copy: R(a) = R(b); NEXT;
  do_add: U(a) = U(b) + U(c); NEXT;
  do_sub: U(a) = U(b) - U(c); NEXT;
  do_mul: U(a) = U(b) * U(c); NEXT;
  do_div: U(a) = R(c) == 0 ? 0 : R(c) == -1 ? 0 - U(b) : (uint64_t)(R(b) / R(c)); NEXT;
  do_mod: R(a) = R(c) == 0 || R(c) == -1 ? 0 : R(b) % R(c); NEXT;
  do_multiply_add: U(a) = U(b) * U(c) + U(d); NEXT;
  do_larger: R(a) = R(b) > R(c) ? R(b) : R(c); NEXT;
  do_smaller: R(a) = R(b) < R(c) ? R(b) : R(c); NEXT;
  do_lt: R(a) = R(b) < R(c); NEXT;
  do_le: R(a) = R(b) <= R(c); NEXT;
  do_eq: R(a) = R(b) == R(c); NEXT;
  do_ne: R(a) = R(b) != R(c); NEXT;
  do_select: R(a) = registers[step->b].is_true ? R(c) : R(d); NEXT;
  do_load: {
    const char *from = place_of(state, step->b, R(c), 1, step->d);
    if (!from) return fail_bounds(state, place, "buffer");
    copy_element(&registers[step->a], from, step->d);
    NEXT;
  }
  do_store: {
    char *to = place_of(state, step->a, R(b), 1, step->d);
    if (!to) return fail_bounds(state, place, "buffer");
    copy_element(to, &registers[step->c], step->d);
    NEXT;
  }
  do_apply: {
    const rvm_element_function *function = &state->level->functions[step->d];
    if (step->a < scalars) {
      function->run(1, state->at[step->a], state->at[step->b], state->at[step->c], 0);
      SPENT(FUNCTION_COST(function, 1))
    }
    const int64_t n = state->strip;
    if (!can_write(state, step->a, n * function->result_bytes) ||
        !can_read(state, scalars, step->b, n * function->operand_bytes) ||
        !can_read(state, scalars, step->c, n * function->operand_bytes))
      return fail_bounds(state, place, "strip");
    const int which = (step->b >= scalars ? RVM_LEFT_IS_STRIP : 0) | (step->c >= scalars ? RVM_RIGHT_IS_STRIP : 0);
    if (which == 0) return fail_bounds(state, place, "strip: all its operands are scalars");
    function->run(n, state->at[step->a], state->at[step->b], state->at[step->c], which);
    SPENT(FUNCTION_COST(function, n))
  }
  do_view:
  do_view_written: {
    char *at = place_of(state, step->b, R(c), state->strip, step->d);
    if (!at) return fail_bounds(state, place, "buffer");
    state->at[step->a] = at;
    state->readable[step->a] = state->strip * step->d;
    state->writable[step->a] = step->op == RVM_KOP_view_written ? state->readable[step->a] : 0;
    NEXT;
  }
  do_gather: {
    const int64_t n = state->strip;
    int64_t copied[RVM_STRIP];
    const int has_mask = step->e != RVM_NO_REGISTER;
    if (!can_write(state, step->a, n * step->d) || step->c < scalars || !can_read(state, scalars, step->c, n * 8) ||
        (has_mask && (step->e < scalars || !can_read(state, scalars, step->e, n))))
      return fail_bounds(state, place, "strip");
    if (!moves_of(state, step->d)->gather(n, state->at[step->a], state->buffers[step->b], state->buffer_bytes[step->b] / step->d,
                                          indices_of(state, step->c, copied),
                                          has_mask ? (const uint8_t *)state->at[step->e] : NULL))
      return fail_bounds(state, place, "buffer");
    SPENT(PLACES_COST)
  }
  do_strided: {
    const int64_t n = state->strip;
    if (!can_write(state, step->a, n * step->e)) return fail_bounds(state, place, "strip");
    if (step->f != RVM_NO_REGISTER) {
      if (step->f < scalars || !can_read(state, scalars, step->f, n)) return fail_bounds(state, place, "strip");
      if (!moves_of(state, step->e)->masked(n, state->at[step->a], state->buffers[step->b], state->buffer_bytes[step->b] / step->e,
                                            R(c), R(d), (const uint8_t *)state->at[step->f]))
        return fail_bounds(state, place, "buffer");
      SPENT(PLACES_COST)
    }
    const char *from = strided_place(state, step->b, R(c), R(d), n, step->e);
    if (!from) return fail_bounds(state, place, "buffer");
    moves_of(state, step->e)->strided(n, state->at[step->a], from, R(d));
    SPENT(PLACES_COST)
  }
  do_load_rows: {
    const int64_t n = state->strip, width = R(f), rows = width > 0 ? n / width : 0, size = step->g;
    if (width <= 0 || rows * width != n || !can_write(state, step->a, n * size)) return fail_bounds(state, place, "strip");
    const char *from = rows_place(state, step->b, R(c), rows, R(d), width, R(e), step->g);
    if (!from) return fail_bounds(state, place, "buffer");
    char *to = state->at[step->a];
    const int64_t pitch = (int64_t)(U(d) * (uint64_t)size); /* anything if there is one row */
    if (R(e) == 1)
      copy_rows(to, width * size, from, pitch, rows, width * size);
    else
      for (int64_t i = 0; i < rows; i++) moves_of(state, step->g)->strided(width, to + i * width * size, from + i * pitch, R(e));
    SPENT(R(e) == 1 ? ROWS_COST(rows) : PLACES_COST)
  }
  do_store_rows: {
    const int64_t n = state->strip, width = R(e), rows = width > 0 ? n / width : 0, size = step->g;
    if (width <= 0 || rows * width != n || !can_read(state, scalars, step->f, n * size)) return fail_bounds(state, place, "strip");
    char *to = rows_place(state, step->a, R(b), rows, R(c), width, R(d), step->g);
    if (!to) return fail_bounds(state, place, "buffer");
    const int is_strip = step->f >= scalars;
    const char *from = state->at[step->f];
    const int64_t pitch = (int64_t)(U(c) * (uint64_t)size), by = is_strip ? width * size : 0;
    if (R(d) == 1 && is_strip)
      copy_rows(to, pitch, from, by, rows, width * size);
    else
      for (int64_t i = 0; i < rows; i++) moves_of(state, step->g)->spread(width, to + i * pitch, R(d), from + i * by, is_strip);
    SPENT(R(d) == 1 ? ROWS_COST(rows) : PLACES_COST)
  }
  do_scatter: {
    const int64_t n = state->strip;
    int64_t copied[RVM_STRIP];
    if (step->b < scalars || !can_read(state, scalars, step->b, n * 8) || !can_read(state, scalars, step->c, n * step->d))
      return fail_bounds(state, place, "strip");
    if (!moves_of(state, step->d)->scatter(n, state->buffers[step->a], state->buffer_bytes[step->a] / step->d,
                                           indices_of(state, step->b, copied), state->at[step->c], step->c >= scalars))
      return fail_bounds(state, place, "buffer");
    SPENT(PLACES_COST)
  }
  do_store_strided: {
    const int64_t n = state->strip;
    if (!can_read(state, scalars, step->d, n * step->e)) return fail_bounds(state, place, "strip");
    char *to = strided_place(state, step->a, R(b), R(c), n, step->e);
    if (!to) return fail_bounds(state, place, "buffer");
    if (R(c) == 1 && step->d >= scalars) {
      memmove(to, state->at[step->d], (size_t)(n * step->e));
      SPENT(STRIP_COST)
    }
    moves_of(state, step->e)->spread(n, to, R(c), state->at[step->d], step->d >= scalars);
    SPENT(PLACES_COST)
  }
  do_choose: {
    const int64_t n = state->strip;
    if (!can_write(state, step->a, n * step->e) || !can_read(state, scalars, step->b, n) ||
        !can_read(state, scalars, step->c, n * step->e) || !can_read(state, scalars, step->d, n * step->e))
      return fail_bounds(state, place, "strip");
    moves_of(state, step->e)
        ->choose(n, state->at[step->a], (const uint8_t *)state->at[step->b], step->b >= scalars, state->at[step->c],
                 step->c >= scalars, state->at[step->d], step->d >= scalars);
    SPENT(STRIP_COST)
  }
  do_move: {
    const int64_t bytes = state->strip * step->c;
    if (!can_write(state, step->a, bytes) || !can_read(state, scalars, step->b, bytes)) return fail_bounds(state, place, "strip");
    if (step->b >= scalars) {
      memmove(state->at[step->a], state->at[step->b], (size_t)bytes);
      SPENT(STRIP_COST)
    }
    moves_of(state, step->c)->splat(state->strip, state->at[step->a], state->at[step->b]);
    SPENT(STRIP_COST)
  }
  do_fill: {
    const int64_t count = R(c) < RVM_STRIP ? R(c) : RVM_STRIP;
    moves_of(state, step->d)->splat(count, state->at[step->a], state->at[step->b]);
    SPENT(STRIP_COST)
  }
  do_iota: {
    if (!can_write(state, step->a, state->strip * 8)) return fail_bounds(state, place, "strip");
    int64_t *out = (int64_t *)state->at[step->a];
    const uint64_t first = (uint64_t)R(b), by = (uint64_t)R(c);
    for (int64_t i = 0; i < state->strip; i++) out[i] = (int64_t)(first + (uint64_t)i * by);
    SPENT(STRIP_COST)
  }
  do_iota_rows: {
    const int64_t n = state->strip, width = R(e), rows = width > 0 ? n / width : 0;
    if (rows * width != n || !can_write(state, step->a, n * 8)) return fail_bounds(state, place, "strip");
    uint64_t *out = (uint64_t *)state->at[step->a];
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < width; j++) *out++ = U(b) + (uint64_t)i * U(c) + (uint64_t)j * U(d);
    SPENT(STRIP_COST)
  }
  do_accumulate: {
    const rvm_element_function *function = &state->level->functions[step->c];
    const int64_t n = state->strip, bytes = function->operand_bytes, rest = n % RVM_SUM_LANES;
    if (!can_write(state, step->a, 2 * RVM_SUM_LANES * bytes) || step->b < scalars || !can_read(state, scalars, step->b, n * bytes))
      return fail_bounds(state, place, "strip");
    char *lanes = state->at[step->a];
    for (int64_t i = 0; i < n - rest; i += RVM_SUM_LANES)
      function->run(RVM_SUM_LANES, lanes, state->at[step->b] + i * bytes, lanes, RVM_LEFT_IS_STRIP | RVM_RIGHT_IS_STRIP);
    if (rest) memcpy(lanes + RVM_SUM_LANES * bytes, state->at[step->b] + (n - rest) * bytes, (size_t)(rest * bytes));
    SPENT(FUNCTION_COST(function, n))
  }
  do_fold_lanes: {
    const rvm_element_function *function = &state->level->functions[step->d];
    const int64_t bytes = function->operand_bytes, count = R(c), rest = count > 0 ? count % RVM_SUM_LANES : 0;
    if (!can_write(state, step->b, 2 * RVM_SUM_LANES * bytes)) return fail_bounds(state, place, "strip");
    char *total = state->at[step->a], *lanes = state->at[step->b];
    if (count >= RVM_SUM_LANES) fold(function, total, lanes, RVM_SUM_LANES);
    for (int64_t i = 0; i < rest; i++) function->run(1, total, lanes + (RVM_SUM_LANES + i) * bytes, total, 0);
    SPENT(FUNCTION_COST(function, 2 * RVM_SUM_LANES))
  }
  do_fold: {
    const rvm_element_function *function = &state->level->functions[step->d];
    int64_t count = R(c) < RVM_STRIP ? R(c) : RVM_STRIP;
    if (count <= 0) NEXT;
    if (!can_write(state, step->b, count * function->operand_bytes)) return fail_bounds(state, place, "strip");
    fold(function, state->at[step->a], state->at[step->b], count);
    SPENT(FUNCTION_COST(function, count))
  }

look: {
  const rvm_status status = rvm_kernel_refuel(state);
  if (status) return status;
  AGAIN;
}
}

/* ---- calls ---- */

/* Compares the arguments with the program's tensors, and sets the sizes and buffers. */
static rvm_status bind_tensors(rvm_kernel_run *state, const rvm_value *arguments, int32_t count) {
  const rvm_kernel_program *program = state->program;
  static char RVM_ALIGNED(8) nothing[8]; /* where a tensor without elements has them */
  const int64_t *word = program->tensors;
  uint32_t known = 0;
  if (count < 0 || (uint32_t)count != program->tensor_count)
    return rvm_fail(state->result, RVM_ARGUMENT_ERROR, "kernel: expected %d arguments, got %d", (int)program->tensor_count, (int)count);
  for (int32_t i = 0; i < count; i++) {
    const int64_t dtype = *word++, rank = *word++;
    if (arguments[i].tag != RVM_TAG_TENSOR) return rvm_fail(state->result, RVM_TYPE_ERROR, "kernel: argument %d is not a tensor", (int)i);
    const rvm_tensor *tensor = arguments[i].as.tensor;
    if (tensor->dtype != dtype || tensor->dl.ndim != rank)
      return rvm_fail(state->result, RVM_TYPE_ERROR, "kernel: argument %d does not have the dtype and rank of the kernel", (int)i);
    int64_t elements = 1;
    for (int64_t axis = 0; axis < rank; axis++) {
      int64_t want = *word++;
      const int64_t got = tensor->dl.shape[axis];
      if (want == -1 - (int64_t)known) state->scalars[known++].i64 = got;
      if (want < 0) want = state->scalars[-1 - want].i64;
      if (want != got)
        return rvm_fail(state->result, RVM_SHAPE_ERROR, "kernel: expected dimension %d of argument %d to be %lld, got %lld", (int)axis,
                        (int)i, (long long)want, (long long)got);
      if (!rvm_multiply(elements, got, &elements)) return rvm_fail(state->result, RVM_SHAPE_ERROR, "kernel: argument %d is too large", (int)i);
    }
    if ((uint32_t)i >= program->input_count && !rvm_tensor_is_own(tensor))
      return rvm_fail(state->result, RVM_ARGUMENT_ERROR, "kernel: output argument %d must be allocated by the machine, got a constant or memory of the host", (int)i);
    if ((uintptr_t)tensor->dl.data % (uint64_t)rvm_dtype_size_bytes((int32_t)dtype) != 0)
      return rvm_fail(state->result, RVM_ARGUMENT_ERROR, "kernel: the elements of argument %d are not aligned", (int)i);
    state->buffers[i] = tensor->dl.data ? tensor->dl.data : nothing;
    state->buffer_bytes[i] = elements * rvm_dtype_size_bytes((int32_t)dtype);
  }
  return RVM_OK;
}

rvm_status rvm_kernel_program_run(const rvm_kernel_program *program, const rvm_kernel_host *host, const rvm_value *arguments,
                                  int32_t count, rvm_value *result) {
  if (rvm_stack_left(host->machine) < RVM_KERNEL_STACK_BYTES)
    return rvm_fail(result, RVM_STACK_OVERFLOW,
                    "kernel bytecode needs %d bytes of the C stack, but this thread has %lld left; use a thread with a larger stack",
                    (int)RVM_KERNEL_STACK_BYTES, (long long)rvm_stack_left(host->machine));
  rvm_value storage;
  rvm_status status = rvm_storage_new(host->pool, rvm_kernel_memory_bytes(program), &storage);
  if (status) {
    *result = storage;
    return status;
  }
  rvm_kernel_run state = {.program = program,
                          .level = rvm_kernel_level_here(),
                          .host = host,
                          .interpret = interpret,
                          .result = result,
                          .fuel = RVM_KERNEL_FUEL};
  rvm_kernel_lay_out(&state, (char *)storage.as.storage->bytes);
  status = bind_tensors(&state, arguments, count);
  if (!status) {
    memcpy(state.scalars + program->size_count, program->constants, program->constant_count * sizeof *program->constants);
    result->tag = RVM_TAG_NIL;
    status = interpret(&state, 0);
    const rvm_status ended = status ? RVM_OK : host->spend(host->machine, RVM_KERNEL_FUEL - state.fuel, result);
    if (ended) status = ended;
  }
  rvm_kernel_forget_addresses(program, (char *)storage.as.storage->bytes);
  rvm_value_release(&storage);
  return status;
}
