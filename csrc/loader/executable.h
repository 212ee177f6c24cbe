/* executable.h: a loaded executable: views into its bytes, and the constants made from them. */
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
  RVM_SECTION_COUNT = 0 /* also the largest id */
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

static inline uint32_t rvm_argument_kind(uint32_t word) { return word & 7; }
static inline int32_t rvm_argument_payload(uint32_t word) { return (int32_t)word >> 3; }

/* Flags of a function that has code. */
enum {
  RVM_PRIVATE = 1, /* no name finds it: only the program itself calls it */
  RVM_IMPURE = 2,  /* calling it may have effects */
};

/* One record of the function section, as it stands in the file. */
typedef struct rvm_function_record {
  uint32_t name; /* string index */
  uint16_t kind;
  uint16_t flags;  /* RVM_PRIVATE, RVM_IMPURE; 0 unless the function has code */
  uint32_t symbol; /* string index, or RVM_NO_STRING */
  int32_t parameter_count;
  uint32_t first_parameter;
  uint32_t registers;
  uint32_t code_start, code_count; /* words */
} rvm_function_record;

#define RVM_NO_STRING 0xFFFFFFFFu

typedef struct rvm_string_record {
  uint32_t offset, length; /* bytes; the offset from the start of the section */
} rvm_string_record;

typedef struct rvm_section {
  const unsigned char *bytes; /* NULL: the file has none */
  int64_t size_bytes;
  uint32_t checksum; /* as the file states it */
} rvm_section;

/* The beginning of a native section, as it stands in the file; the library follows. */
typedef struct rvm_native_header {
  uint32_t abi_version, triple, cpu, zero;  /* triple, cpu: string indices */
  unsigned char replaced[RVM_SHA256_BYTES]; /* rvm_executable_replaced */
  uint32_t zeros[4];
} rvm_native_header;

/* The key of a function: a packed function can have the name of a function that the program defines. */
typedef struct rvm_function_name {
  const char *name;
  int32_t is_packed; /* 0 or 1 */
  int32_t index;
} rvm_function_name;

struct rvm_code;

struct rvm_executable {
  rvm_section sections[RVM_SECTION_COUNT + 1]; /* by id */
  const rvm_string_record *strings;
  const rvm_function_record *functions;
  const uint32_t *parameters; /* string indices */
  const uint32_t *code;
  rvm_function_name *by_name;  /* sorted */
  void **symbols;              /* of native and kernel functions, by function index; NULL: it has none */
  rvm_kernel_program *kernels; /* by function index, `code` being NULL where there is none; NULL: no function has any */
  rvm_value *constants;        /* immortal objects */
  struct rvm_code *codes;      /* of bytecode functions, by function index (predecode.h) */
  int32_t *steps, *objects;    /* what they point into */
  rvm_value *literals;         /* operands of steps; a FUNCTION holds its index, a CONTEXT nothing */
  int64_t literal_count;
  rvm_library library;
  int32_t
      is_elsewhere;   /* its native code cannot run here, and is not loaded; while it is loaded: whether that may be */
  rvm_value obstacle; /* the ERROR that says why; NIL: nothing was tried (is_only_checked), or it runs */
  int32_t is_only_checked;
  char **callable; /* patterns of registered functions that it may call; NULL: any */
  int32_t callable_count;
  void (*release)(void *); /* rvm_load_options */
  void *release_argument;
  atomic_int users; /* its host and its machines */
  int32_t string_count, function_count, constant_count;
  uint32_t code_words;
};

void rvm_executable_retain(rvm_executable *executable);
const char *rvm_executable_string(const rvm_executable *executable, uint32_t index);
/* The `count` items of a table that starts `*offset` bytes into the section, which has so many; moves the offset behind
   it; NULL: too short. */
const void *rvm_section_table(const rvm_section *section, int64_t *offset, uint64_t count, uint64_t item_bytes);

/* The digest (rvm_executable_digest) of the executable whose bytecode the native code can replace, as the file states
   it; zeros: of none.  NULL: there is no native code. */
const unsigned char *rvm_executable_replaced(const rvm_executable *executable);

/* Whether the executable may call a registered function, by the load options that it came with. */
int rvm_executable_may_call(const rvm_executable *executable, const char *name);
rvm_status rvm_fail_forbidden(const char *name, rvm_value *error);

/* Returns whether `name` begins with the prefix of builtins.  Only builtins have such names. */
int rvm_is_builtin_name(const char *name);

/* Compares two rvm_function_name by name, then by is_packed, for qsort and bsearch. */
int rvm_function_names_compare(const void *a, const void *b);

#endif
