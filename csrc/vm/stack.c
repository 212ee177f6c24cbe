/* stack.c: see stack.h. */
#include "stack.h"

#include <string.h>

rvm_status rvm_fail_stack(const rvm_machine *machine, const rvm_function *function, rvm_value *error) {
  const int64_t values = machine->head.stack_end - machine->stack;
  return rvm_fail(error, RVM_STACK_OVERFLOW, "%s: the value stack of %lld value%s is exhausted", function->name,
                  (long long)values, RVM_PLURAL(values));
}

void rvm_machine_move_down(rvm_machine *machine, rvm_value *values, int64_t count) {
  rvm_value *end = values + count, *vacated = machine->head.top + count;
  memmove(machine->head.top, values, (size_t)count * sizeof *values);
  if (vacated < values) vacated = values;
  rvm_forget_all(vacated, end - vacated);
}

void rvm_machine_pop_frame(rvm_machine *machine) {
  const rvm_frame *frame = &machine->frames[machine->head.frame_count - 1];
  rvm_release_objects(frame->function->code, frame->registers);
  machine->head.top = frame->registers;
  machine->head.frame_count--;
}
