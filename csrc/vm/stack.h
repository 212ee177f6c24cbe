/* stack.h: the value stack of a machine, and the windows of its frames. */
#ifndef RELVM_STACK_H
#define RELVM_STACK_H

#include "machine.h"

rvm_status rvm_fail_stack(const rvm_machine *machine, const rvm_function *function, rvm_value *error);
/* Moves the `count` values from `values` on down to the top. */
void rvm_machine_lower(rvm_machine *machine, rvm_value *values, int64_t count);
/* Releases what the last frame holds, and removes it; the top is then where its registers began. */
void rvm_machine_pop_frame(rvm_machine *machine);

static inline void rvm_retain_all(const rvm_value *values, int64_t count) {
  for (int64_t i = 0; i < count; i++) rvm_retain(values[i]);
}
static inline void rvm_release_all(rvm_value *values, int64_t count) {
  for (int64_t i = 0; i < count; i++) rvm_release(&values[i]);
}
/* The owned ones at the top.  A release may run code of the host's that calls the machine, here as everywhere: what is
   still wanted must lie below the top. */
static inline void rvm_release_top(rvm_machine *machine, int64_t count) {
  rvm_value *values = machine->head.top;
  machine->head.top = values + count;
  rvm_release_all(values, count);
  machine->head.top = values;
}
/* Clears values that were borrowed, without releasing them. */
static inline void rvm_forget_all(rvm_value *values, int64_t count) {
  for (int64_t i = 0; i < count; i++) values[i].tag = RVM_TAG_NIL;
}
/* Releases the objects among the registers of a bytecode function. */
static inline void rvm_release_objects(const rvm_code *code, rvm_value *registers) {
  for (int32_t i = 0; i < code->object_count; i++) {
    rvm_value *value = &registers[code->objects[i]];
    if (rvm_value_is_object(*value)) rvm_release(value);
  }
}

#endif
