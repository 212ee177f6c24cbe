/* run.h: calls of machines, code for arithmetic and tail calls, and a text in which callbacks take notes. */
#ifndef RELVM_TEST_RUN_H
#define RELVM_TEST_RUN_H

#include <stdarg.h>

#include "check.h"
#include "image.h"
#include "machine.h"

/* Calls function(arguments...), with any number of arguments.  Returns the status, and stores the result or error in
   `result`. */
#define RUN_ON(machine, result, function, ...)                                                   \
  rvm_machine_call(machine, (int32_t)(function), (rvm_value[]){int_value(0), ##__VA_ARGS__} + 1, \
                   COUNT_OF(((rvm_value[]){int_value(0), ##__VA_ARGS__})) - 1, &(result))

#define PRIM(to, destination, row, a, b) WORDS(to, RVM_OP_prim, destination, row, 2, a, b)
#define TAIL_CALL(to, function, ...) \
  WORDS(to, RVM_OP_tail_call, function, COUNT_OF(((uint32_t[]){__VA_ARGS__})), __VA_ARGS__)

/* Checks that the stacks of a machine are empty. */
static inline void check_idle(const rvm_machine *machine) {
  CHECK(machine->head.top == machine->stack && machine->head.frame_count == 0 && machine->head.nesting == 0 &&
        machine->entries == 0);
  int64_t left = 0;
  for (const rvm_value *value = machine->stack; value < machine->head.stack_end; value++)
    left += rvm_value_is_object(*value);
  CHECK_INT(left, 0);
}

/* add(a, b): the sum of ints. */
static inline rvm_status host_add_two(void *self, const rvm_value *arguments, int32_t count, rvm_value *sum) {
  (void)self;
  if (count != 2 || arguments[0].tag != RVM_TAG_INT || arguments[1].tag != RVM_TAG_INT) return RVM_TYPE_ERROR;
  *sum = int_value(arguments[0].as.i + arguments[1].as.i);
  return RVM_OK;
}

enum { NOTES_BYTES = 2000 };

/* Appends to a text of NOTES_BYTES bytes, and truncates what does not fit. */
static inline void note(char *text, const char *format, ...) {
  va_list arguments;
  size_t used = strlen(text);
  va_start(arguments, format);
  vsnprintf(text + used, NOTES_BYTES - used, format, arguments);
  va_end(arguments);
}

#endif
