/* debugger.c: see debugger.h. */
#include "cold.h"

#include "debugger.h"

#include <string.h>

#ifndef RVM_WITHOUT_KERNELS
#include "kernel_run.h"
#endif

/* The limit of instruction numbers for breakpoints in native functions, whose number of instructions is not known. */
enum { MAX_NATIVE_INSTRUCTIONS = 1 << 24 };

/* ---- observing steps ---- */

/* Calls the debugger's stop callback.  While it runs, the machine reports no calls and steps.  `failure` points to the
   error of the innermost function, or is NULL.  Fails if the callback ends the run. */
static rvm_status call_debugger(rvm_machine *machine, const rvm_value *failure, rvm_value *error) {
  const rvm_debugger *debugger = &machine->debugging->debugger;
  uint32_t kinds = machine->head.watched_kinds;
  machine->head.watched_kinds = 0;
  *error = (rvm_value){.tag = RVM_TAG_NIL};
  rvm_status status = debugger->stop(debugger->host, failure, error);
  machine->head.watched_kinds = kinds;
  machine->debugging->ended = status != RVM_OK;
  if (status) return rvm_host_failed(status, "debugger", error);
  rvm_release(error);
  return RVM_OK;
}

/* Returns the number of active bytecode and native functions, and of kernels that rvm_debugger_kernel_step reports. */
static int64_t depth_of(const rvm_machine *machine) { return machine->head.frame_count + machine->head.nesting; }

static rvm_status grow_positions(rvm_debugging *debugging, int64_t depth, rvm_value *error) {
  int64_t capacity = debugging->capacity ? 2 * debugging->capacity : 64;
  if (capacity < depth) capacity = depth;
  rvm_position *positions = rvm_grow(debugging->positions, debugging->depth, capacity, sizeof *positions);
  if (!positions) return rvm_out_of_memory(error);
  debugging->positions = positions;
  debugging->capacity = capacity;
  return RVM_OK;
}

static int is_break(const rvm_machine *machine, const rvm_position *position) {
  const rvm_breaks *breaks = &machine->debugging->breaks[position->function - machine->functions];
  int64_t word = position->step ? position->step - position->function->code->steps : position->instruction;
  return word < breaks->count && breaks->stops[word];
}

rvm_status rvm_debugger_step(rvm_machine *machine, rvm_position position, rvm_value *error) {
  rvm_debugging *debugging = machine->debugging;
  int64_t depth = depth_of(machine);
  rvm_status status = depth > debugging->capacity ? grow_positions(debugging, depth, error) : RVM_OK;
  if (status) return status;
  /* Active functions that were not observed, such as native ones without debug information, have no position. */
  for (int64_t i = debugging->depth; i < depth - 1; i++) debugging->positions[i] = (rvm_position){.function = NULL};
  debugging->ended = 0;
  debugging->positions[depth - 1] = position;
  debugging->depth = depth;
  int is_stop =
      depth <= atomic_load_explicit(&machine->stop_within, memory_order_relaxed) || is_break(machine, &position);
  return is_stop ? call_debugger(machine, NULL, error) : RVM_OK;
}

/* ---- inside kernels ---- */

#ifndef RVM_WITHOUT_KERNELS
static int stops_in_kernels(const rvm_machine *machine) {
  return atomic_load_explicit(&machine->stops_in_kernels, memory_order_relaxed);
}

int rvm_debugger_watches_kernel(const rvm_machine *machine, const rvm_function *kernel) {
  if (!(machine->head.watched_kinds & RVM_WATCH_STEPS)) return 0;
  const rvm_breaks *breaks = &machine->debugging->breaks[kernel - machine->functions];
  return stops_in_kernels(machine) || (breaks->count > 0 && memchr(breaks->stops, 1, (size_t)breaks->count));
}

rvm_status rvm_debugger_kernel_step(rvm_machine *machine, const rvm_function *kernel, const rvm_kernel_run *state,
                                    uint32_t pc, rvm_value *error) {
  const rvm_position position = {.function = kernel, .instruction = (int32_t)pc, .kernel = state};
  if (!stops_in_kernels(machine) && !is_break(machine, &position)) return RVM_OK;
  machine->head.nesting++;
  const rvm_status status = rvm_debugger_step(machine, position, error);
  machine->head.nesting--;
  /* Drop the position that rvm_debugger_step may have added: its kernel is `state`, which is valid only during this
     call. */
  if (machine->debugging->depth > depth_of(machine)) machine->debugging->depth = depth_of(machine);
  return status;
}

/* Returns the kernel run of active call `index`, or NULL if there is no such call or it is not a call of a kernel. */
static const rvm_kernel_run *kernel_at(const rvm_machine *machine, int64_t index) {
  return index >= 0 && index < rvm_machine_depth(machine) ? machine->debugging->positions[index].kernel : NULL;
}

rvm_kernel_memory rvm_machine_kernel_register(const rvm_machine *machine, int64_t index, int32_t number) {
  const rvm_kernel_run *run = kernel_at(machine, index);
  if (!run || number < 0) return (rvm_kernel_memory){.bytes = NULL};
  const rvm_kernel_program *program = run->program;
  const uint32_t reg = (uint32_t)number, scalars = program->scalar_count, strips = scalars + program->strip_count;
  if (reg >= strips + program->view_count) return (rvm_kernel_memory){.bytes = NULL};
  const int64_t size_bytes = reg < scalars ? (int64_t)sizeof *run->scalars : run->readable[reg];
  return (rvm_kernel_memory){.bytes = run->addresses[reg], .size_bytes = size_bytes, .strip = run->strip};
}

rvm_kernel_memory rvm_machine_kernel_buffer(const rvm_machine *machine, int64_t index, int32_t number) {
  const rvm_kernel_run *run = kernel_at(machine, index);
  if (!run || number < 0 || (uint32_t)number >= run->program->tensor_count + run->program->array_count)
    return (rvm_kernel_memory){.bytes = NULL};
  return (rvm_kernel_memory){
      .bytes = run->buffers[number], .size_bytes = run->buffer_bytes[number], .strip = run->strip};
}
#else
rvm_kernel_memory rvm_machine_kernel_register(const rvm_machine *machine, int64_t index, int32_t number) {
  (void)machine, (void)index, (void)number;
  return (rvm_kernel_memory){.bytes = NULL};
}

rvm_kernel_memory rvm_machine_kernel_buffer(const rvm_machine *machine, int64_t index, int32_t number) {
  return rvm_machine_kernel_register(machine, index, number);
}
#endif

void rvm_debugger_failed(rvm_machine *machine, rvm_value failure) {
  if (RVM_IS_SELECTIVE || !(machine->head.watched_kinds & RVM_WATCH_STEPS)) return;
  if (failure.tag != RVM_TAG_ERROR || failure.as.error->frames > 0 || machine->debugging->ended) return;
  /* If a tail call fails, the frame of its caller has been popped already, and perhaps no other function is active. */
  if (depth_of(machine) == 0) return;
  /* An error of the callback is ignored, because the run already fails with `failure`. */
  rvm_value ignored;
  if (call_debugger(machine, &failure, &ignored)) rvm_release(&ignored);
}

/* ---- for the host ---- */

void rvm_debugging_release(rvm_machine *machine) {
  rvm_debugging *debugging = machine->debugging;
  machine->debugging = NULL;
  if (!debugging || RVM_IS_SELECTIVE) return;
  for (int32_t i = 0; i < machine->executable->function_count; i++) rvm_free(debugging->breaks[i].stops);
  rvm_free(debugging->breaks);
  rvm_free(debugging->positions);
  rvm_free(debugging);
}

static rvm_status debugging_new(const rvm_machine *machine, const rvm_debugger *debugger, rvm_debugging **result,
                                rvm_value *error) {
  size_t functions = (size_t)machine->executable->function_count;
  rvm_debugging *debugging = rvm_allocate_zeroed(sizeof *debugging);
  rvm_breaks *breaks = debugging ? rvm_allocate_zeroed((functions + 1) * sizeof *breaks) : NULL;
  if (!breaks) {
    rvm_free(debugging);
    return rvm_out_of_memory(error);
  }
  debugging->debugger = *debugger;
  debugging->breaks = breaks;
  *result = debugging;
  return RVM_OK;
}

rvm_status rvm_machine_debug(rvm_machine *machine, const rvm_debugger *debugger, rvm_value *error) {
  rvm_debugging *debugging = NULL;
  RVM_EXPECT_WHOLE_RUNTIME(error);
  RVM_EXPECT_POINTER(machine, error);
  if (debugger) RVM_EXPECT_POINTER(debugger->stop, error);
  rvm_status status = rvm_machine_begin_change(machine, "debugger", error);
  if (status) return status;
  if (debugger) status = debugging_new(machine, debugger, &debugging, error);
  if (!status) {
    rvm_debugging_release(machine);
    machine->debugging = debugging;
    atomic_store(&machine->stop_within, 0);
    atomic_store(&machine->stops_in_kernels, 0);
    machine->head.watched_kinds = rvm_kinds_to_watch(machine);
  }
  rvm_machine_end_change(machine);
  return status;
}

/* Returns the index of an instruction in rvm_breaks.stops, or -1 if the function has no such instruction. */
static int64_t break_index(const rvm_machine *machine, const rvm_function *function, int32_t instruction) {
  if (instruction < 0) return -1;
  if (function->kind == RVM_KIND_native) return instruction < MAX_NATIVE_INSTRUCTIONS ? instruction : -1;
  if (function->kind == RVM_KIND_bytecode) {
    const int32_t index = (int32_t)(function - machine->functions);
    const int32_t *step = rvm_code_step(machine->executable, index, instruction);
    return step ? step - function->code->steps : -1;
  }
  if (function->kind == RVM_KIND_kernel && function->program)
    return (uint32_t)instruction < function->program->code_count ? instruction : -1;
  return -1;
}

rvm_status rvm_machine_break(rvm_machine *machine, int32_t function, int32_t instruction, int32_t stops,
                             rvm_value *error) {
  RVM_EXPECT_POINTER(machine, error);
  if (!machine->debugging)
    return rvm_fail(error, RVM_ARGUMENT_ERROR, "break: no debugger is attached to this machine; attach one first");
  if (function < 0 || function >= machine->executable->function_count)
    return rvm_fail(error, RVM_INDEX_ERROR,
                    "break: function index %d is out of range; the executable has %d function%s", function,
                    machine->executable->function_count, RVM_PLURAL(machine->executable->function_count));
  const int64_t index = break_index(machine, &machine->functions[function], instruction);
  if (index < 0)
    return rvm_fail(error, RVM_INDEX_ERROR, "break: function %s has no instruction at index %d",
                    machine->functions[function].name, instruction);
  rvm_breaks *breaks = &machine->debugging->breaks[function];
  if (index >= breaks->count) {
    if (!stops) return RVM_OK;
    unsigned char *more = rvm_grow(breaks->stops, breaks->count, index + 1, sizeof *more);
    if (!more) return rvm_out_of_memory(error);
    memset(more + breaks->count, 0, (size_t)(index + 1 - breaks->count));
    *breaks = (rvm_breaks){.stops = more, .count = index + 1};
  }
  breaks->stops[index] = stops != 0;
  return RVM_OK;
}

void rvm_machine_stop_within(rvm_machine *machine, int64_t depth) {
  if (machine) atomic_store(&machine->stop_within, depth);
}

void rvm_machine_stop_in_kernels(rvm_machine *machine, int32_t stops) {
  if (machine) atomic_store(&machine->stops_in_kernels, stops != 0);
}

int64_t rvm_machine_depth(const rvm_machine *machine) {
  if (!machine) return -1;
  if (!machine->debugging) return 0;
  int64_t observed = machine->debugging->depth, depth = depth_of(machine);
  return observed < depth ? observed : depth;
}

rvm_place rvm_machine_place(const rvm_machine *machine, int64_t index) {
  const rvm_position *position =
      index >= 0 && index < rvm_machine_depth(machine) ? &machine->debugging->positions[index] : NULL;
  if (!position || !position->function) return (rvm_place){.function = -1};
  int64_t instruction =
      position->step ? rvm_code_instruction(position->function->code, position->step) : position->instruction;
  const int has_values = position->registers != NULL; /* the registers of kernels are not values */
  return (rvm_place){.function = (int32_t)(position->function - machine->functions),
                     .instruction = (int32_t)instruction,
                     .count = has_values ? position->function->registers : 0,
                     .registers = position->registers};
}
