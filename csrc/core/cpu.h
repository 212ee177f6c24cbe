/* cpu.h: the features of the processor. */
#ifndef RELVM_CPU_H
#define RELVM_CPU_H

#include "relvm.h"

enum rvm_cpu_feature {
#define FEATURE(name, option, macro, level, word, bit, state) RVM_CPU_##name,
#include "cpu_features.def"
#undef FEATURE
  RVM_CPU_FEATURE_COUNT
};
_Static_assert(RVM_CPU_FEATURE_COUNT <= 63, "rvm_cpu_features has a bit for each");

/* Writes the processor's brand string, for messages, into `name`, which has room for 49 bytes. */
void rvm_cpu_name(char *name);
/* Whether the processor lacks any of the features in a list as native sections have it ("x86-64-v4 avx512vnni"), or a
   word of it is not known; `missing` gets those words, as far as there is room. */
int rvm_cpu_missing(const char *needed, char *missing, size_t missing_bytes);

#endif
