/* stack.h: the value stack of a machine.  The registers of an active function are a window of the stack.  The top of
   the stack, head.top, is the end of the innermost window. */
#ifndef RELVM_STACK_H
#define RELVM_STACK_H

#include "machine.h"

/* Fails with STACK_OVERFLOW because the value stack has no space for a call of `function`. */
rvm_status rvm_fail_stack(const rvm_machine *machine, const rvm_function *function, rvm_value *error);
/* Moves `count` values from `values`, above the top of the stack, down to the top, and sets the slots that become free
   to NIL.  The top does not change. */
void rvm_machine_move_down(rvm_machine *machine, rvm_value *values, int64_t count);
/* Releases the registers of the top frame that may hold objects, and pops the frame and its window. */
void rvm_machine_pop_frame(rvm_machine *machine);

static inline void rvm_retain_all(const rvm_value *values, int64_t count) {
  for (int64_t i = 0; i < count; i++) rvm_retain(values[i]);
}
static inline void rvm_release_all(rvm_value *values, int64_t count) {
  for (int64_t i = 0; i < count; i++) rvm_release(&values[i]);
}
/* Releases `count` owned values at the top of the stack.  A release may run host code that calls the machine and
   overwrites the stack above its top: values that are still needed must be below the top. */
static inline void rvm_release_top(rvm_machine *machine, int64_t count) {
  rvm_value *values = machine->head.top;
  machine->head.top = values + count;
  rvm_release_all(values, count);
  machine->head.top = values;
}
/* Clears borrowed values without releasing them. */
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
