/* kernel_run.c: see kernel_run.h. */
#include "kernel_run.h"

#include <string.h>

#include "base.h"
#include "errors.h"

rvm_status rvm_kernel_refuel(rvm_kernel_run *state) {
  rvm_kernel_loop *loop = state->loop;
  const rvm_kernel_host *host = state->host;
  int64_t used = RVM_KERNEL_FUEL - state->fuel;
  state->fuel = RVM_KERNEL_FUEL;
  if (loop) {
    const rvm_status status = atomic_load_explicit(&loop->status, memory_order_relaxed);
    if (status) return status;
  }
  if (state->is_helper) {
    used += atomic_fetch_add(&loop->helped, used); /* `used` is now the fuel of all helpers */
    return used > host->steps_left || host->is_ending(host->machine) ? RVM_INTERRUPTED : RVM_OK;
  }
  if (loop) used += atomic_exchange(&loop->helped, 0);
  return host->spend(host->machine, used, state->result);
}

/* ---- memory ---- */

/* The memory of a run begins with the arrays of rvm_kernel_run, with items of at most 8 bytes: `scalars`, three arrays
   with an item for each register, and two with an item for each buffer.  Pointers come last, because they can be
   smaller than the other items, which must be aligned.  Then follow the strips, aligned, and the scratch
   memory for the program's arrays. */
int64_t rvm_kernel_memory_bytes(const rvm_kernel_program *program) {
  const int64_t registers = (int64_t)program->scalar_count + program->strip_count + program->view_count;
  const int64_t buffers = (int64_t)program->tensor_count + program->array_count;
  const int64_t bytes = 8 * (program->scalar_count + 3 * registers + 2 * buffers) + RVM_ALIGNMENT +
                        (int64_t)STRIP_BYTES * program->strip_count + program->scratch_bytes;
  return (bytes + RVM_ALIGNMENT - 1) / RVM_ALIGNMENT * RVM_ALIGNMENT;
}

void rvm_kernel_clear_addresses(const rvm_kernel_program *program, char *memory) {
  const size_t registers = (size_t)program->scalar_count + program->strip_count + program->view_count;
  const size_t buffers = (size_t)program->tensor_count + program->array_count;
  memset(memory, 0, 8 * (program->scalar_count + 3 * registers + 2 * buffers));
}

void rvm_kernel_run_init(rvm_kernel_run *state, char *memory) {
  const rvm_kernel_program *program = state->program;
  const size_t scalars = program->scalar_count, strips = program->strip_count, views = program->view_count;
  const size_t registers = scalars + strips + views, buffers = (size_t)program->tensor_count + program->array_count;
  state->scalars = (rvm_kernel_scalar *)memory;
  state->readable = (int64_t *)(state->scalars + scalars);
  state->writable = state->readable + registers;
  state->buffer_bytes = state->writable + registers;
  state->addresses = (char **)(state->buffer_bytes + buffers);
  state->buffers = state->addresses + registers;
  const uintptr_t end = (uintptr_t)(state->buffers + buffers);
  state->strips = (char *)((end + RVM_ALIGNMENT - 1) / RVM_ALIGNMENT * RVM_ALIGNMENT);
  state->scratch = state->strips + strips * STRIP_BYTES;
  for (size_t i = 0; i < scalars; i++) {
    state->addresses[i] = (char *)&state->scalars[i];
    state->readable[i] = state->writable[i] = INT64_MAX;
    state->scalars[i].bits = 0;
  }
  for (size_t i = 0; i < strips; i++) {
    state->addresses[scalars + i] = state->strips + i * STRIP_BYTES;
    state->readable[scalars + i] = state->writable[scalars + i] = STRIP_BYTES;
  }
  for (size_t i = scalars + strips; i < registers; i++) {
    state->addresses[i] = state->strips; /* not accessed: readable and writable are 0 */
    state->readable[i] = state->writable[i] = 0;
  }
  for (uint32_t i = 0; i < program->array_count; i++) {
    state->buffers[program->tensor_count + i] = state->scratch + program->arrays[i].offset;
    state->buffer_bytes[program->tensor_count + i] = program->arrays[i].size_bytes;
  }
}

/* ---- parallel loops ---- */

static _Thread_local char this_thread; /* its address identifies the thread */

/* Claims the memory of a part that is not in use.  Returns its address and stores its number in *part. */
static char *take_part(rvm_kernel_loop *loop, int *part) {
  for (int word = 0; word < PART_WORDS; word++) {
    uint64_t free_parts = atomic_load(&loop->free_parts[word]);
    while (free_parts) {
      const int bit = __builtin_ctzll(free_parts);
      *part = 64 * word + bit;
      if (atomic_compare_exchange_weak(&loop->free_parts[word], &free_parts, free_parts & ~((uint64_t)1 << bit)))
        return loop->memory + *part * loop->part_bytes;
    }
  }
  return NULL; /* unreachable: there are as many parts as threads */
}

/* Runs the iterations [first, last) of a parallel loop on the calling thread.  `shared` is the rvm_kernel_loop.  Does
   nothing if another part has failed.  While parts run, nobody changes the outer run, which all of them read.  A helper
   stores its error in `failure`, and the machine's own thread in `result`, so that the latter can take precedence. */
static void run_part(const void *shared, int64_t first, int64_t last) {
  rvm_kernel_loop *loop = (rvm_kernel_loop *)shared;
  rvm_kernel_run *outer = loop->outer;
  const rvm_kernel_program *program = outer->program;
  int part;
  if (atomic_load(&loop->status)) return;
  char *memory = take_part(loop, &part);
  if (!memory) {
    atomic_store(&loop->status, RVM_OUT_OF_MEMORY);
    return;
  }
  rvm_kernel_run inner = *outer;
  rvm_value failure = {.tag = RVM_TAG_NIL};
  rvm_kernel_run_init(&inner, memory);
  memcpy(inner.scalars, outer->scalars, program->scalar_count * sizeof *inner.scalars);
  const size_t tensors = program->tensor_count, buffers = tensors + program->array_count;
  for (size_t i = 0; i < buffers; i++) {
    const int is_private = i >= tensors + loop->first_private && i < tensors + loop->last_private;
    if (!is_private) inner.buffers[i] = outer->buffers[i];
  }
  memcpy(inner.buffer_bytes, outer->buffer_bytes, buffers * sizeof *inner.buffer_bytes);
  inner.scalars[loop->first_register].i64 = first;
  inner.scalars[loop->last_register].i64 = last;
  inner.loop = loop;
  inner.is_helper = loop->thread != &this_thread;
  inner.result = inner.is_helper ? &failure : &loop->result;
  inner.fuel = RVM_KERNEL_FUEL -
               (program->scalar_count + program->strip_count + program->view_count + buffers) / SETUP_REGISTERS;
  const rvm_status status = inner.interpret(&inner, loop->pc + 1);
  if (inner.is_helper)
    atomic_fetch_add(&loop->helped, RVM_KERNEL_FUEL - inner.fuel);
  else
    loop->spent += RVM_KERNEL_FUEL - inner.fuel;
  if (status) atomic_store(&loop->status, status);
  if (failure.tag == RVM_TAG_ERROR && !atomic_exchange(&loop->has_failure, 1)) {
    loop->failure = failure;
    failure = (rvm_value){.tag = RVM_TAG_NIL};
  }
  rvm_value_release(&failure);
  rvm_kernel_clear_addresses(program, memory);
  atomic_fetch_or(&loop->free_parts[part / 64], (uint64_t)1 << part % 64);
}

/* Ends a loop whose parts have ended: charges their fuel, and returns the status of the loop.  If it is not OK, stores
   the error in *state->result. */
static rvm_status end_loop(rvm_kernel_run *state, rvm_kernel_loop *loop) {
  const rvm_kernel_host *host = state->host;
  state->fuel -= loop->spent;
  const rvm_status status = atomic_load(&loop->status);
  /* The error of a part on the machine's own thread takes precedence over that of a helper. */
  if (loop->result.tag != RVM_TAG_ERROR) {
    loop->result = loop->failure;
  } else {
    rvm_value_release(&loop->failure);
  }
  if (loop->result.tag == RVM_TAG_ERROR) {
    *state->result = loop->result;
    return loop->result.as.error->status;
  }
  /* Either all parts succeeded, or a part failed with a status only.  Charge the loop and the work of the helpers. */
  const int64_t helped = atomic_load(&loop->helped);
  state->fuel -= PARALLEL_COST;
  rvm_status ended = host->spend(host->machine, helped, state->result);
  /* If a helper ended because the run must end, find the reason. */
  if (!ended && status == RVM_INTERRUPTED) ended = host->poll(host->machine, state->result);
  if (ended) return ended;
  if (status == RVM_INTERRUPTED) return rvm_fail(state->result, status, "interrupted");
  if (status == RVM_OUT_OF_MEMORY)
    return rvm_fail(state->result, status, "kernel bytecode: out of memory in a parallel loop");
  return status
             ? rvm_fail(state->result, status, "kernel bytecode: a parallel loop accesses memory outside its buffers")
             : RVM_OK;
}

rvm_status rvm_kernel_run_parallel(rvm_kernel_run *state, uint32_t pc) {
  const rvm_kop_parallel *op = (const rvm_kop_parallel *)&state->program->code[pc];
  const rvm_kernel_host *host = state->host;
  const int64_t count = state->scalars[op->total].i64, grain = state->scalars[op->grain].i64;
  if (state->loop)
    return rvm_fail(state->result, RVM_BAD_EXECUTABLE, "kernel bytecode: parallel loops cannot be nested");
  if (count <= 0) return RVM_OK;
  const int is_shared = host->threads > 1 && grain > 0 && count > grain;
  const int parts = is_shared ? host->threads : 1; /* the maximum number of parts that run at the same time */
  rvm_kernel_loop loop = {.outer = state,
                          .thread = &this_thread,
                          .result = {.tag = RVM_TAG_NIL},
                          .failure = {.tag = RVM_TAG_NIL},
                          .pc = pc,
                          .first_register = op->start,
                          .last_register = op->stop,
                          .first_private = op->first_array,
                          .last_private = op->last_array,
                          .part_bytes = rvm_kernel_memory_bytes(state->program)};
  atomic_init(&loop.status, RVM_OK);
  atomic_init(&loop.helped, 0);
  atomic_init(&loop.has_failure, 0);
  for (int word = 0; word < PART_WORDS; word++) {
    const int rest = parts - 64 * word; /* the number of parts for this word and those after it, if it is positive */
    const uint64_t free_parts = rest >= 64 ? UINT64_MAX : ((uint64_t)1 << (rest > 0 ? rest : 0)) - 1;
    atomic_init(&loop.free_parts[word], free_parts);
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
  return end_loop(state, &loop);
}
