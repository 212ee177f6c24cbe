/* cpu.h: what the processor has. */
#ifndef RELVM_CPU_H
#define RELVM_CPU_H

/* The highest level of the x86-64 psABI that this processor and its system have, 1 to 4; 0 on other architectures. */
int rvm_cpu_level(void);

#endif
