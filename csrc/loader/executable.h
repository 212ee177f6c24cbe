/* executable.h: a loaded executable.  Most of its tables are views into the bytes of the file.  Constants, steps and
   symbols are created when the executable is loaded (load.c).  An executable is immutable afterwards, so threads may
   share it. */
#ifndef RELVM_EXECUTABLE_H
#define RELVM_EXECUTABLE_H

#include <stdatomic.h>

#include "kernel_program.h"
#include "native_library.h"
#include "sha256.h"
#include "value.h"

enum rvm_section_id {
#define SECTION(name, id, meaning) RVM_SECTION_##name = id,
#include "sections.def"
#undef SECTION
};
enum {
  RVM_SECTION_COUNT = 0 /* plus 1 for each row; the ids are 1 to RVM_SECTION_COUNT */
#define SECTION(name, id, meaning) +1
#include "sections.def"
#undef SECTION
};

enum rvm_opcode {
#define OP(name, operands, names, flow, meaning) RVM_OP_##name,
#include "opcodes.def"
#undef OP
  RVM_OP_COUNT
};

enum rvm_argument_kind {
#define ARGUMENT(name, letter, meaning) RVM_ARGUMENT_##name,
#include "arguments.def"
#undef ARGUMENT
  RVM_ARGUMENT_COUNT
};

/* The parts of an argument word: the kind in the low 3 bits, and a signed payload (arguments.def). */
static inline uint32_t rvm_argument_kind(uint32_t word) { return word & 7; }
static inline int32_t rvm_argument_payload(uint32_t word) { return (int32_t)word >> 3; }

/* Flags of bytecode and native functions. */
enum {
  RVM_PRIVATE = 1, /* cannot be found by name (rvm_executable_find) */
  RVM_IMPURE = 2,  /* a call may have side effects */
};

/* A record of the function section, in the file format. */
typedef struct rvm_function_record {
  uint32_t name; /* string index */
  uint16_t kind;
  uint16_t flags;  /* RVM_PRIVATE, RVM_IMPURE; 0 for packed functions and kernels */
  uint32_t symbol; /* string index, or RVM_NO_STRING */
  int32_t parameter_count;
  uint32_t first_parameter;
  uint32_t registers;
  uint32_t code_start, code_count; /* words */
} rvm_function_record;

#define RVM_NO_STRING 0xFFFFFFFFu

typedef struct rvm_string_record {
  uint32_t offset, length; /* bytes; the offset is from the start of the section of strings */
} rvm_string_record;

typedef struct rvm_section {
  const unsigned char *bytes; /* NULL if the file has no such section */
  int64_t size_bytes;
  uint32_t checksum; /* as stored in the file */
} rvm_section;

/* The header of a native section, in the file format.  The shared library follows it. */
typedef struct rvm_native_header {
  uint32_t abi_version, triple, cpu, zero;  /* triple, cpu: string indices of the target and its features */
  unsigned char replaced[RVM_SHA256_BYTES]; /* see rvm_executable_replaced */
  uint32_t zeros[4];
} rvm_native_header;

/* An entry of the index of functions by name.  A packed function may have the same name as another function. */
typedef struct rvm_function_name {
  const char *name;
  int32_t is_packed; /* 0 or 1 */
  int32_t index;
} rvm_function_name;

struct rvm_code;

struct rvm_executable {
  rvm_section sections[RVM_SECTION_COUNT + 1]; /* indexed by id */
  const rvm_string_record *strings;
  const rvm_function_record *functions;
  const uint32_t *parameters; /* string indices */
  const uint32_t *code;
  rvm_function_name *by_name;  /* sorted by rvm_function_names_compare */
  void **symbols;              /* addresses of native functions and native kernels, by function index; NULL if
                                  is_elsewhere, and in selective libraries */
  rvm_kernel_program *kernels; /* by function index; `code` is NULL for functions without kernel bytecode; NULL if the
                                  file has no section of kernels */
  rvm_value *constants;        /* immortal objects */
  struct rvm_code *codes;      /* the code of bytecode functions, by function index (predecode.h) */
  int32_t *steps, *objects;    /* the memory that `codes` points into */
  rvm_value *literals; /* operands of steps.  FUNCTION and CONTEXT values depend on the machine: here, the payload of a
                          FUNCTION is the function's index, and a CONTEXT has no payload. */
  int64_t literal_count;
  rvm_library library;
  int32_t is_only_checked;  /* the load option check_only */
  int32_t may_be_elsewhere; /* the load option elsewhere */
  int32_t is_elsewhere;     /* whether native code is present but not loaded: it cannot run here, or is_only_checked */
  rvm_value obstacle;       /* the ERROR that states why the native code cannot run here; NIL if it can, or if
                               is_only_checked */
  char **callable; /* patterns of the registered functions that the program may call; NULL if it may call all */
  int32_t callable_count;
  void (*release)(void *); /* see rvm_load_options */
  void *release_argument;
  atomic_int users; /* number of references: the host's, and those of machines that run it or were upgraded to it */
  int32_t string_count, function_count, constant_count;
  uint32_t code_words;
};

void rvm_executable_retain(rvm_executable *executable);
/* Returns a string of the executable, borrowed.  The index must be in range. */
const char *rvm_executable_string(const rvm_executable *executable, uint32_t index);
/* Returns a table of `count` items at *offset in the section and advances *offset past it.  Returns NULL if the
   section is too short. */
const void *rvm_section_table(const rvm_section *section, int64_t *offset, uint64_t count, uint64_t item_bytes);

/* Returns the digest (rvm_executable_digest) of the executable whose bytecode the native code can replace, as the file
   states it.  The digest is all zeros if the native code can replace none.  Returns NULL if there is no native code. */
const unsigned char *rvm_executable_replaced(const rvm_executable *executable);

/* Returns whether the load options allow the executable to call a registered function. */
int rvm_executable_may_call(const rvm_executable *executable, const char *name);
/* Fails with UNSUPPORTED because the load options do not allow calls of the function `name`. */
rvm_status rvm_fail_forbidden(const char *name, rvm_value *error);

/* Returns whether `name` begins with the prefix of builtins.  Only builtins have such names. */
int rvm_is_builtin_name(const char *name);

/* Compares two rvm_function_name by name, then by is_packed.  This is a callback of rvm_sort and bsearch. */
int rvm_function_names_compare(const void *a, const void *b);

#endif
