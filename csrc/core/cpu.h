/* cpu.h: the processor's features, one bit for each row of cpu_features.def (rvm_cpu_features). */
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

enum { RVM_CPU_NAME_BYTES = 49 }; /* the size of a processor's brand string, with its NUL */
/* Writes the processor's brand string, or "this processor" if it is not known, to `name`, for messages. */
void rvm_cpu_name(char name[RVM_CPU_NAME_BYTES]);
/* Compares this processor with a list of required features, such as "x86-64-v4 avx512vnni".  Returns 0 if it has all of
   them.  Otherwise returns 1 and writes the names of missing or unknown features to `missing`, separated by ", ".
   Omits the last ones if the buffer is too small. */
int rvm_cpu_missing(const char *needed, char *missing, size_t missing_bytes);
/* Returns whether a list of features contains only known ones. */
int rvm_cpu_is_known(const char *features);
/* Returns whether the list `features` includes all features in the list `needed`. */
int rvm_cpu_includes(const char *features, const char *needed);

#endif
