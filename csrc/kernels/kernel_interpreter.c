/* kernel_interpreter.c: runs a program of kernel bytecode. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "compiler.h"
#include "dtype.h"
#include "errors.h"
#include "kernel_levels.h"
#include "kernel_interpreter.h"

/* Labels as values: each instruction jumps to the next one's body by itself, so that the processor can tell them apart. */
#pragma GCC diagnostic ignored "-Wpedantic"

enum {
  STRIP_BYTES = RVM_STRIP * 8,
  /* Costs between two looks at the limits.  A scalar instruction costs 1; nothing takes more than about half a microsecond for
     each 1 that it costs. */
  FUEL = 1 << 13,
  STRIP_COST = 16,     /* of an instruction on strips */
  PLACES_COST = 128,   /* of one that goes to memory at a place of its own for each element */
  INVOKE_COST = 64,    /* of a micro-kernel, and 1 for each INVOKE_WORK of its work */
  INVOKE_WORK = 512,
  PARALLEL_COST = 256, /* of a parallel loop */
  SETUP_REGISTERS = 64, /* registers whose setup costs 1 */
  PART_WORDS = RVM_MAX_THREADS / 64,
};

typedef union scalar {
  int64_t i64;
  uint8_t is_true;
  uint64_t bits;
  float f32;
} scalar;

/* What a run, or a part of one, works on. */
typedef struct run {
  const rvm_kernel_program *program;
  const rvm_kernel_level *level;
  const rvm_kernel_host *host;
  rvm_value *result;
  scalar *scalars;
  char **at;             /* of each register, its first element */
  int64_t *readable;     /* of each register: bytes */
  int64_t *writable;
  char **buffers;
  int64_t *buffer_bytes;
  char *strips, *scratch;
  int64_t strip;         /* elements of the current strip */
  int64_t rows;          /* of the strip, where it is a block of rows */
  int64_t fuel;
  rvm_status ended;      /* what a look within a micro-kernel gave */
  struct parallel_loop *loop; /* that this is a part of, or NULL */
  int32_t is_helper;          /* it runs on another thread than the machine's */
} run;

/* What the parts of a parallel loop share.  result: of a part that the machine's own thread runs. */
typedef struct parallel_loop {
  run *outer; /* the machine's own thread alone changes it */
  const void *thread;
  rvm_value result;
  uint32_t place, first, last, first_array, last_array;
  _Atomic(rvm_status) status;
  _Atomic(int64_t) helped;  /* what other threads have spent, and the machine's own does not know yet */
  char *memory;             /* of the parts that run at the same time, `part_bytes` each */
  int64_t part_bytes;
  _Atomic(uint64_t) free_parts[PART_WORDS]; /* a bit for each */
} parallel_loop;

static rvm_status run_from(run *state, uint32_t place);

static rvm_status fail_bounds(const run *state, uint32_t place, const char *what) {
  return rvm_fail(state->result, RVM_INDEX_ERROR, "kernel bytecode: instruction %u accesses memory outside its %s", place, what);
}

/* Tells of the fuel that is used, and looks whether the run is to end.  Helpers cannot spend: they end where they alone have
   used what the machine has left. */
static rvm_status refuel(run *state) {
  parallel_loop *loop = state->loop;
  const rvm_kernel_host *host = state->host;
  int64_t used = FUEL - state->fuel;
  state->fuel = FUEL;
  if (loop) {
    const rvm_status status = atomic_load_explicit(&loop->status, memory_order_relaxed);
    if (status) return status;
  }
  if (state->is_helper) {
    used += atomic_fetch_add(&loop->helped, used);
    return used > host->steps_left || host->is_ending(host->machine) ? RVM_INTERRUPTED : RVM_OK;
  }
  if (loop) used += atomic_exchange(&loop->helped, 0);
  return host->spend(host->machine, used, state->result);
}

/* What a micro-kernel calls before each portion of its work. */
static int spend_work(void *host, int64_t work) {
  run *state = host;
  state->fuel -= 1 + work / INVOKE_WORK;
  if (state->fuel <= 0) state->ended = refuel(state);
  return state->ended == RVM_OK;
}

/* ---- memory ---- */

static int64_t memory_bytes(const rvm_kernel_program *program) {
  const int64_t registers = (int64_t)program->scalar_count + program->strip_count + program->view_count;
  const int64_t buffers = (int64_t)program->tensor_count + program->array_count;
  const int64_t bytes = 8 * (program->scalar_count + 3 * registers + 2 * buffers) + RVM_ALIGNMENT +
                        (int64_t)STRIP_BYTES * program->strip_count + program->scratch_bytes;
  return (bytes + RVM_ALIGNMENT - 1) / RVM_ALIGNMENT * RVM_ALIGNMENT;
}

/* Addresses are not left in memory that the program gets again. */
static void forget_addresses(const rvm_kernel_program *program, char *memory) {
  const size_t registers = (size_t)program->scalar_count + program->strip_count + program->view_count;
  const size_t buffers = (size_t)program->tensor_count + program->array_count;
  memset(memory, 0, 8 * (program->scalar_count + 3 * registers + 2 * buffers));
}

/* Lays the parts of a run out in `memory`; the buffers of tensors are set by the caller. */
static void lay_out(run *state, char *memory) {
  const rvm_kernel_program *program = state->program;
  const size_t scalars = program->scalar_count, strips = program->strip_count, views = program->view_count;
  const size_t registers = scalars + strips + views, buffers = (size_t)program->tensor_count + program->array_count;
  state->scalars = (scalar *)memory;
  state->at = (char **)(state->scalars + scalars);
  state->readable = (int64_t *)(state->at + registers);
  state->writable = state->readable + registers;
  state->buffers = (char **)(state->writable + registers);
  state->buffer_bytes = (int64_t *)(state->buffers + buffers);
  const uintptr_t end = (uintptr_t)(state->buffer_bytes + buffers);
  state->strips = (char *)((end + RVM_ALIGNMENT - 1) / RVM_ALIGNMENT * RVM_ALIGNMENT);
  state->scratch = state->strips + strips * STRIP_BYTES;
  for (size_t i = 0; i < scalars; i++) {
    state->at[i] = (char *)&state->scalars[i];
    state->readable[i] = state->writable[i] = INT64_MAX;
    state->scalars[i].bits = 0;
  }
  for (size_t i = 0; i < strips; i++) {
    state->at[scalars + i] = state->strips + i * STRIP_BYTES;
    state->readable[scalars + i] = state->writable[scalars + i] = STRIP_BYTES;
  }
  for (size_t i = scalars + strips; i < registers; i++) {
    state->at[i] = state->strips; /* of which nothing may be read */
    state->readable[i] = state->writable[i] = 0;
  }
  for (uint32_t i = 0; i < program->array_count; i++) {
    state->buffers[program->tensor_count + i] = state->scratch + program->arrays[i].offset;
    state->buffer_bytes[program->tensor_count + i] = program->arrays[i].size_bytes;
  }
}

/* ---- parallel loops ---- */

static _Thread_local char this_thread; /* whose address tells threads apart */

/* Returns the memory of a part, and its number in *part.  There is one for each thread. */
static char *take_part(parallel_loop *loop, int *part) {
  for (int word = 0; word < PART_WORDS; word++) {
    uint64_t free_parts = atomic_load(&loop->free_parts[word]);
    while (free_parts) {
      const int bit = __builtin_ctzll(free_parts);
      *part = 64 * word + bit;
      if (atomic_compare_exchange_weak(&loop->free_parts[word], &free_parts, free_parts & ~((uint64_t)1 << bit)))
        return loop->memory + *part * loop->part_bytes;
    }
  }
  return NULL; /* never: there is one for each thread */
}

static void run_part(const void *shared, int64_t first, int64_t last) {
  parallel_loop *loop = (parallel_loop *)shared;
  run *outer = loop->outer;
  const rvm_kernel_program *program = outer->program;
  int part;
  if (atomic_load(&loop->status)) return;
  char *memory = take_part(loop, &part);
  if (!memory) {
    atomic_store(&loop->status, RVM_OUT_OF_MEMORY);
    return;
  }
  run inner = *outer;
  rvm_value failure = {.tag = RVM_TAG_NIL};
  lay_out(&inner, memory);
  memcpy(inner.scalars, outer->scalars, program->scalar_count * sizeof *inner.scalars);
  const size_t tensors = program->tensor_count, buffers = tensors + program->array_count;
  for (size_t i = 0; i < buffers; i++)
    if (i < tensors + loop->first_array || i >= tensors + loop->last_array) inner.buffers[i] = outer->buffers[i];
  memcpy(inner.buffer_bytes, outer->buffer_bytes, buffers * sizeof *inner.buffer_bytes);
  inner.scalars[loop->first].i64 = first;
  inner.scalars[loop->last].i64 = last;
  inner.loop = loop;
  inner.is_helper = loop->thread != &this_thread;
  inner.result = inner.is_helper ? &failure : &loop->result;
  inner.fuel = FUEL - (program->scalar_count + program->strip_count + program->view_count + buffers) / SETUP_REGISTERS;
  const rvm_status status = run_from(&inner, loop->place + 1);
  if (inner.is_helper)
    atomic_fetch_add(&loop->helped, FUEL - inner.fuel);
  else
    outer->fuel -= FUEL - inner.fuel;
  if (status) atomic_store(&loop->status, status);
  rvm_value_release(&failure);
  forget_addresses(program, memory);
  atomic_fetch_or(&loop->free_parts[part / 64], (uint64_t)1 << part % 64);
}

static rvm_status run_parallel(run *state, uint32_t place) {
  const rvm_kernel_instruction *step = &state->program->code[place];
  const rvm_kernel_host *host = state->host;
  const int64_t count = state->scalars[step->c].i64, grain = state->scalars[step->d].i64;
  if (state->loop) return rvm_fail(state->result, RVM_BAD_EXECUTABLE, "kernel bytecode: parallel loops cannot be nested");
  if (count <= 0) return RVM_OK;
  const int is_shared = host->threads > 1 && grain > 0 && count > grain;
  const int parts = is_shared ? host->threads : 1;
  parallel_loop loop = {.outer = state,
                        .thread = &this_thread,
                        .result = {.tag = RVM_TAG_NIL},
                        .place = place,
                        .first = step->a,
                        .last = step->b,
                        .first_array = step->f,
                        .last_array = step->g,
                        .part_bytes = memory_bytes(state->program)};
  atomic_init(&loop.status, RVM_OK);
  atomic_init(&loop.helped, 0);
  for (int word = 0; word < PART_WORDS; word++) {
    const int here = parts - 64 * word;
    atomic_init(&loop.free_parts[word], here <= 0 ? 0 : here >= 64 ? UINT64_MAX : ((uint64_t)1 << here) - 1);
  }
  rvm_value storage;
  rvm_status status = rvm_storage_new(host->pool, parts * loop.part_bytes, &storage);
  if (status) {
    *state->result = storage;
    return status;
  }
  loop.memory = (char *)storage.as.storage->bytes;
  if (is_shared)
    host->parallel(host->machine, run_part, &loop, count, grain);
  else
    run_part(&loop, 0, count);
  rvm_value_release(&storage);
  status = atomic_load(&loop.status);
  if (loop.result.tag == RVM_TAG_ERROR) {
    *state->result = loop.result;
    return loop.result.as.error->status;
  }
  const int64_t helped = atomic_load(&loop.helped);
  state->fuel -= PARALLEL_COST;
  rvm_status ended = host->spend(host->machine, helped, state->result);
  if (!ended && status == RVM_INTERRUPTED) ended = host->poll(host->machine, state->result);
  if (ended) return ended;
  if (status == RVM_INTERRUPTED) return rvm_fail(state->result, status, "interrupted");
  if (status == RVM_OUT_OF_MEMORY) return rvm_fail(state->result, status, "kernel bytecode: out of memory in a parallel loop");
  return status ? rvm_fail(state->result, status, "kernel bytecode: a parallel loop accesses memory outside its buffers") : RVM_OK;
}

/* ---- failures that the program states ---- */

static rvm_status fail_as_stated(const run *state, const rvm_kernel_instruction *step) {
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

/* The place of element `position` of a buffer, from which `count` elements of `bytes` bytes are there; NULL: they are not. */
static inline char *place_of(const run *state, uint32_t buffer, int64_t position, int64_t count, uint32_t bytes) {
  const int64_t limit = state->buffer_bytes[buffer] / bytes;
  if (position < 0 || position > limit || count > limit - position) return NULL;
  return state->buffers[buffer] + position * bytes;
}

/* The same for elements `step` apart. */
static inline char *strided_place(const run *state, uint32_t buffer, int64_t position, int64_t step, int64_t count, uint32_t bytes) {
  const int64_t limit = state->buffer_bytes[buffer] / bytes;
  int64_t last;
  if (position < 0 || position >= limit || !rvm_multiply(step, count - 1, &last) || !rvm_add(last, position, &last) || last < 0 ||
      last >= limit)
    return NULL;
  return state->buffers[buffer] + position * bytes;
}

/* The same for `rows` rows, `row_step` apart, of `width` elements, `step` apart; there is at least one. */
static inline char *rows_place(const run *state, uint32_t buffer, int64_t position, int64_t rows, int64_t row_step, int64_t width,
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

static inline const rvm_strip_moves *moves_of(const run *state, uint32_t bytes) {
  return &state->level->moves[bytes == 8 ? 3 : bytes / 2];
}

/* Whether registers have room for the strip. */
static inline int can_read(const run *state, uint32_t scalars, uint16_t index, int64_t bytes) {
  return index < scalars || bytes <= state->readable[index];
}
static inline int can_write(const run *state, uint16_t index, int64_t bytes) { return bytes <= state->writable[index]; }

/* Combines `count` elements in pairs that are half of them apart, until one is left. */
static void fold(const rvm_element_function *function, char *elements, int64_t count) {
  while (count > 1) {
    const int64_t half = count / 2;
    function->run(half, elements, elements, elements + (count - half) * function->operand_bytes,
                  RVM_LEFT_IS_STRIP | RVM_RIGHT_IS_STRIP);
    count -= half;
  }
}

/* The indices of a strip.  While other threads run, they may change those in a buffer after they are compared: they are copied. */
static const int64_t *indices_of(const run *state, uint16_t index, int64_t *copied) {
  const int64_t *indices = (const int64_t *)state->at[index];
  if (!state->loop || index < state->program->scalar_count + state->program->strip_count) return indices;
  memcpy(copied, indices, (size_t)state->strip * sizeof *copied);
  return copied;
}

static rvm_status run_invoke(run *state, const rvm_kernel_instruction *step, uint32_t place) {
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
    const scalar value = state->scalars[*operand++];
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

static void set_block(run *state, int64_t first, int64_t stop, int64_t width) {
  const uint64_t left = first < stop ? (uint64_t)stop - (uint64_t)first : 0;
  const uint64_t most = width > 0 ? (uint64_t)(RVM_STRIP / width) : 0;
  state->rows = (int64_t)(left < most ? left : most);
  state->strip = state->rows * width;
}

#define AGAIN goto *bodies[(step = &code[place])->op]
#define NEXT goto *bodies[(step = &code[++place])->op]

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
/* What a function costs for so many elements. */
#define FUNCTION_COST(function, count) (1 + ((count) * (function)->cost) / RVM_STRIP)

static rvm_status run_from(run *state, uint32_t place) {
  const rvm_kernel_program *program = state->program;
  const rvm_kernel_instruction *const code = program->code;
  const uint32_t scalars = program->scalar_count;
  scalar *const registers = state->scalars;
  const rvm_kernel_instruction *step;
  static const void *const bodies[] = {
#define KERNEL_OP(name, operands, meaning) &&do_##name,
#include "kernel_opcodes.def"
#undef KERNEL_OP
  };
  AGAIN;
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
    const rvm_status status = run_parallel(state, place);
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
    if (which == 0) return fail_bounds(state, place, "strip: it has only scalars");
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
    if (rows * width != n || !can_write(state, step->a, n * size)) return fail_bounds(state, place, "strip");
    const char *from = rows_place(state, step->b, R(c), rows, R(d), width, R(e), step->g);
    if (!from) return fail_bounds(state, place, "buffer");
    char *to = state->at[step->a];
    const int64_t pitch = (int64_t)(U(d) * (uint64_t)size); /* anything if there is one row */
    if (R(e) == 1)
      for (int64_t i = 0; i < rows; i++) memmove(to + i * width * size, from + i * pitch, (size_t)(width * size));
    else
      for (int64_t i = 0; i < rows; i++) moves_of(state, step->g)->strided(width, to + i * width * size, from + i * pitch, R(e));
    SPENT(R(e) == 1 ? ROWS_COST(rows) : PLACES_COST)
  }
  do_store_rows: {
    const int64_t n = state->strip, width = R(e), rows = width > 0 ? n / width : 0, size = step->g;
    if (rows * width != n || !can_read(state, scalars, step->f, n * size)) return fail_bounds(state, place, "strip");
    char *to = rows_place(state, step->a, R(b), rows, R(c), width, R(d), step->g);
    if (!to) return fail_bounds(state, place, "buffer");
    const int is_strip = step->f >= scalars;
    const char *from = state->at[step->f];
    const int64_t pitch = (int64_t)(U(c) * (uint64_t)size), by = is_strip ? width * size : 0;
    if (R(d) == 1 && is_strip)
      for (int64_t i = 0; i < rows; i++) memmove(to + i * pitch, from + i * by, (size_t)(width * size));
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
    const int64_t n = state->strip, bytes = function->operand_bytes;
    if (!can_write(state, step->a, RVM_LANES * bytes) || step->b < scalars || !can_read(state, scalars, step->b, n * bytes))
      return fail_bounds(state, place, "strip");
    char *lanes = state->at[step->a];
    for (int64_t i = 0; i < n; i += RVM_LANES)
      function->run(n - i < RVM_LANES ? n - i : RVM_LANES, lanes, lanes, state->at[step->b] + i * bytes,
                    RVM_LEFT_IS_STRIP | RVM_RIGHT_IS_STRIP);
    SPENT(FUNCTION_COST(function, n))
  }
  do_fold: {
    const rvm_element_function *function = &state->level->functions[step->d];
    int64_t count = R(c) < RVM_STRIP ? R(c) : RVM_STRIP;
    if (count <= 0) NEXT;
    if (!can_write(state, step->b, count * function->operand_bytes)) return fail_bounds(state, place, "strip");
    fold(function, state->at[step->b], count);
    function->run(1, state->at[step->a], state->at[step->a], state->at[step->b], 0);
    SPENT(FUNCTION_COST(function, count))
  }

look: {
  const rvm_status status = refuel(state);
  if (status) return status;
  AGAIN;
}
}

/* ---- calls ---- */

/* Whether a program may write to the tensor: neither to constants nor to what the host has wrapped, nor to views of these. */
static int is_writable(const rvm_tensor *tensor) {
  while (tensor->base.references >= 0 && !tensor->release) {
    if (!tensor->owner || tensor->owner->tag != RVM_TAG_TENSOR) return 1;
    tensor = (const rvm_tensor *)tensor->owner;
  }
  return 0;
}

/* Compares the arguments with the program's tensors, and sets the sizes and buffers. */
static rvm_status bind_tensors(run *state, const rvm_value *arguments, int32_t count) {
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
    if ((uint32_t)i >= program->input_count && !is_writable(tensor))
      return rvm_fail(state->result, RVM_ARGUMENT_ERROR, "kernel: argument %d is a constant or memory of the host; no kernel writes to it", (int)i);
    if ((uintptr_t)tensor->dl.data % (uint64_t)rvm_dtype_size_bytes((int32_t)dtype) != 0)
      return rvm_fail(state->result, RVM_ARGUMENT_ERROR, "kernel: the elements of argument %d are not aligned", (int)i);
    state->buffers[i] = tensor->dl.data ? tensor->dl.data : nothing;
    state->buffer_bytes[i] = elements * rvm_dtype_size_bytes((int32_t)dtype);
  }
  return RVM_OK;
}

rvm_status rvm_kernel_program_run(const rvm_kernel_program *program, const rvm_kernel_host *host, const rvm_value *arguments,
                                  int32_t count, rvm_value *result) {
  rvm_value storage;
  rvm_status status = rvm_storage_new(host->pool, memory_bytes(program), &storage);
  if (status) {
    *result = storage;
    return status;
  }
  run state = {.program = program, .level = rvm_kernel_level_here(), .host = host, .result = result, .fuel = FUEL};
  lay_out(&state, (char *)storage.as.storage->bytes);
  status = bind_tensors(&state, arguments, count);
  if (!status) {
    memcpy(state.scalars + program->size_count, program->constants, program->constant_count * sizeof *program->constants);
    result->tag = RVM_TAG_NIL;
    status = run_from(&state, 0);
    const rvm_status ended = status ? RVM_OK : host->spend(host->machine, FUEL - state.fuel, result);
    if (ended) status = ended;
  }
  forget_addresses(program, (char *)storage.as.storage->bytes);
  rvm_value_release(&storage);
  return status;
}
