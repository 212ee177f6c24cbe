/* Runs a model once on a board that QEMU emulates, with -icount shift=8, and writes three lines: the ticks of a timer
   that it took, the bytes of stack below the call, and the words of its output in hexadecimal. */
#include <stddef.h>
#include <stdint.h>

#include "values.h" /* INPUT_WORDS, OUTPUT_WORDS, and the input's words */

/* Of the side: a model, or nothing at all. */
void run(const float *in, float *out);

extern char end[]; /* of mps2.ld: where the stack may grow down to */

/* The board's first timer counts down from a reload value at 25 MHz. */
#define TIMER ((volatile uint32_t *)0x40000000)
enum { CONTROL, VALUE, RELOAD };

enum { WRITE = 4, EXIT = 0x18, FINISHED = 0x20026 }; /* of semihosting */

static const uint32_t input[INPUT_WORDS] = {INPUT};
static uint32_t output[OUTPUT_WORDS];

static void ask_host(int what, const void *argument) {
  register int r0 __asm__("r0") = what;
  register const void *r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

static void write_word(uint32_t word, char after) {
  char text[10];
  for (int i = 0; i < 8; i++) text[i] = "0123456789abcdef"[word >> (28 - 4 * i) & 15];
  text[8] = after;
  text[9] = 0;
  ask_host(WRITE, text);
}

static const uint32_t unused = 0xa5c3e187; /* what the stack is filled with */

void _start(void) {
#ifdef __ARM_FP
  *(volatile uint32_t *)0xe000ed88 |= 0xf << 20; /* the coprocessors of floating point are there for all */
  __asm__ volatile("dsb\n isb");
#endif
  uint32_t *top;
  __asm__ volatile("mov %0, sp" : "=r"(top));
  uint32_t *const bottom = (uint32_t *)(((uintptr_t)end + 7) & ~(uintptr_t)7);
  for (volatile uint32_t *at = bottom; at < top; at++) *at = unused;
  TIMER[RELOAD] = TIMER[VALUE] = UINT32_MAX;
  TIMER[CONTROL] = 1;
  const uint32_t before = TIMER[VALUE];
  run((const float *)input, (float *)output);
  const uint32_t after = TIMER[VALUE];
  const volatile uint32_t *lowest = bottom;
  while (lowest < top && *lowest == unused) lowest++;
  write_word(before - after, '\n');
  write_word((uint32_t)((top - lowest) * sizeof *top), '\n');
  for (int i = 0; i < OUTPUT_WORDS; i++) write_word(output[i], ' ');
  ask_host(EXIT, (const void *)FINISHED);
  for (;;) {
  }
}
