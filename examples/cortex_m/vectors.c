/* The vector table of a Cortex-M: where the stack begins and where the program does.  Every fault stops the processor. */
extern void _start(void); /* of newlib, which calls main */
extern char stack_top[];  /* of mps2.ld */

typedef void (*handler)(void);

static void stop(void) {
  for (;;) {
  }
}

struct vector_table {
  void *stack;
  handler handlers[15];
};

__attribute__((section(".vectors"), used)) static const struct vector_table vectors = {
    stack_top, {_start, stop, stop, stop, stop, stop}};
