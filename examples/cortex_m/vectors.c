/* Vector table of a Cortex-M: the initial stack pointer and the entry point.  Every fault stops the processor. */
extern void _start(void); /* defined by newlib; calls main */
extern char stack_top[];  /* defined by mps2.ld */

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
