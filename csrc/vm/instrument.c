/* instrument.c: see instrument.h. */
#include "cold.h"

#include "instrument.h"

#include "stack.h"

/* Stops watching, so that calls by the instrument are not reported.  Returns the watched kinds, for resume_watching. */
static uint32_t suspend_watching(rvm_machine *machine) {
  uint32_t kinds = machine->head.watched_kinds;
  machine->head.watched_kinds = 0;
  return kinds;
}

static void resume_watching(rvm_machine *machine, uint32_t kinds) { machine->head.watched_kinds = kinds; }

static int32_t index_of(const rvm_machine *machine, const rvm_function *function) {
  return (int32_t)(function - machine->functions);
}

rvm_status rvm_instrument_before(rvm_machine *machine, const rvm_function *function, int64_t count, int32_t *skip,
                                 rvm_value *error) {
  const rvm_instrument *instrument = &machine->instrument;
  rvm_value *arguments = machine->head.top;
  rvm_status status = RVM_OK;
  *skip = 0;
  *error = (rvm_value){.tag = RVM_TAG_NIL};
  if (machine->head.stack_end - arguments < 2 * count) return rvm_fail_stack(machine, function, error);
  machine->head.top += count;
  if (instrument->before) {
    uint32_t kinds = suspend_watching(machine);
    status = instrument->before(instrument->host, index_of(machine, function), arguments, (int32_t)count, skip, error);
    resume_watching(machine, kinds);
  }
  if (status || *skip) machine->head.top = arguments;
  if (status) return rvm_host_failed(status, "instrument", error);
  if (*skip) return RVM_OK;
  for (int64_t i = 0; i < count; i++) machine->head.top[i] = arguments[i];
  return RVM_OK;
}

rvm_status rvm_instrument_after(rvm_machine *machine, const rvm_function *function, int64_t count, rvm_status status,
                                rvm_value *result) {
  const rvm_instrument *instrument = &machine->instrument;
  rvm_value *arguments = machine->head.top - count, error = {.tag = RVM_TAG_NIL};
  rvm_status instrument_status = RVM_OK;
  if (instrument->after) {
    uint32_t kinds = suspend_watching(machine);
    instrument_status = instrument->after(instrument->host, index_of(machine, function), arguments, (int32_t)count,
                                          status, result, &error);
    resume_watching(machine, kinds);
  }
  rvm_forget_all(arguments, count);
  machine->head.top = arguments;
  if (status || !instrument_status) {
    rvm_release(&error);
    return status;
  }
  rvm_release(result);
  *result = error;
  return rvm_host_failed(instrument_status, "instrument", result);
}

rvm_status rvm_machine_instrument(rvm_machine *machine, const rvm_instrument *instrument, rvm_value *error) {
  RVM_EXPECT_WHOLE_RUNTIME(error);
  RVM_EXPECT_POINTER(machine, error);
  rvm_status status = rvm_machine_begin_change(machine, "instrument", error);
  if (status) return status;
  machine->instrument = instrument ? *instrument : (rvm_instrument){.kinds = 0};
  machine->head.watched_kinds = rvm_kinds_to_watch(machine);
  rvm_machine_end_change(machine);
  return RVM_OK;
}
