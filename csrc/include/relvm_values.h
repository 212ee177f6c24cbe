/* relvm_values.h: what values and tensors are, for all who are called with them: machines, the host's functions, kernels, and what
 * is exported ahead of time.  A part of the public interface (relvm.h).
 */
#ifndef RELVM_VALUES_H
#define RELVM_VALUES_H

#include <stdint.h>

#ifndef RELVM_STATUS /* exported models define them, too */
#define RELVM_STATUS
enum rvm_status_code {
#define STATUS(name, python_class, meaning) RVM_##name,
#include "../tables/status.def"
#undef STATUS
  RVM_STATUS_COUNT
};
#endif

enum rvm_tag {
#define TAG(name, meaning) RVM_TAG_##name,
#include "../tables/tags.def"
#undef TAG
  RVM_TAG_COUNT
};

enum rvm_dtype_index {
#define DTYPE(name, code, bits, ctype, numpy) RVM_DTYPE_##name,
#include "../tables/dtypes.def"
#undef DTYPE
  RVM_DTYPE_COUNT
};

/* Everything between the two markers is also what cffi is given: plain declarations only. */
/* [begin cffi] */

typedef int32_t rvm_status; /* enum rvm_status_code */

/* DLPack's DLDataType and DLTensor, field for field. */
typedef struct rvm_dltype {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} rvm_dltype;

typedef struct rvm_dltensor {
  void *data;
  int32_t device_type; /* 1: CPU */
  int32_t device_id;
  int32_t ndim;
  rvm_dltype dtype;
  int64_t *shape;
  int64_t *strides; /* NULL: compact, row-major.  The runtime only makes and accepts such tensors. */
  uint64_t byte_offset;
} rvm_dltensor;

typedef struct rvm_object {
  int32_t tag;
  int32_t references; /* negative: immortal */
} rvm_object;

typedef struct rvm_tensor rvm_tensor;
typedef struct rvm_shape rvm_shape;
typedef struct rvm_tuple rvm_tuple;
typedef struct rvm_list rvm_list;
typedef struct rvm_closure rvm_closure;
typedef struct rvm_string rvm_string;
typedef struct rvm_storage rvm_storage;
typedef struct rvm_error rvm_error;
typedef struct rvm_function rvm_function;
typedef struct rvm_executable rvm_executable;
typedef struct rvm_machine rvm_machine;

typedef struct rvm_value {
  int64_t tag; /* enum rvm_tag */
  union {
    int64_t i; /* INT, BOOL, DTYPE */
    double f;
    rvm_object *object;
    rvm_tensor *tensor;
    rvm_shape *shape;
    rvm_tuple *tuple;
    rvm_list *list;
    rvm_closure *closure;
    rvm_string *string;
    rvm_storage *storage;
    rvm_error *error;
    rvm_function *function;
    rvm_machine *machine;
  } as;
} rvm_value;

struct rvm_tensor {
  rvm_object base;
  int32_t dtype;            /* enum rvm_dtype_index; dl.dtype says the same in DLPack's terms */
  int32_t memory_class;     /* the runtime's own (csrc/core/object_freelist.h), here as in shapes, tuples and closures */
  rvm_dltensor dl;
  rvm_object *owner;        /* the storage or tensor whose bytes these are, or NULL */
  void (*release)(void *);  /* of bytes that came from outside, and of strings: called once with release_argument */
  void *release_argument;
};

/* A packed function: a builtin, a kernel, or a function of the host.  On success it stores one owned value (or NIL) in
   *result; on failure it returns the status that rvm_fail gave it, the error being in *result.  Of what it stores only the tag
   is checked. */
typedef rvm_status (*rvm_packed_function)(void *self, const rvm_value *arguments, int32_t count, rvm_value *result);

/* [end cffi] */

#endif
