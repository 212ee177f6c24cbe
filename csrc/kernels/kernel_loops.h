/* kernel_loops.h: what files of loops share that are compiled for several levels of processors. */
#ifndef RELVM_KERNEL_LOOPS_H
#define RELVM_KERNEL_LOOPS_H

/* Compiled for a level of processors, RVM_LEVEL is the suffix of the table's name. */
#ifndef RVM_LEVEL
#define RVM_LEVEL
#define RVM_IS_BASE_LEVEL
#endif
#define RVM_NAME_OF_LEVEL(name, level) name##level
#define RVM_EXPANDED_NAME(name, level) RVM_NAME_OF_LEVEL(name, level)
#define RVM_OF_LEVEL(name) RVM_EXPANDED_NAME(name, RVM_LEVEL)

/* No iteration depends on another: strips are the same or do not overlap. */
#if defined __clang__
#pragma clang diagnostic ignored "-Wpass-failed" /* a loop of divisions stays scalar */
#define RVM_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define RVM_INDEPENDENT _Pragma("GCC ivdep")
#endif

#endif
