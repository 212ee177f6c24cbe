/* relvm_values.h: the types of values and tensors, shared by machines, host functions, kernels and ahead-of-time
   exports.  Part of the public interface (relvm.h). */
#ifndef RELVM_VALUES_H
#define RELVM_VALUES_H

#include <stdint.h>

#ifndef RELVM_STATUS /* headers of exported models also define the status codes */
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

/* cffi parses the text between the two markers, which must contain plain declarations only. */
/* [begin cffi] */

typedef int32_t rvm_status; /* enum rvm_status_code */

/* DLDataType and DLTensor of DLPack, with the same layout. */
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
  int64_t *strides; /* NULL for compact, row-major tensors; the runtime creates and accepts only these */
  uint64_t byte_offset;
} rvm_dltensor;

typedef struct rvm_object {
  int32_t tag;
  int32_t references; /* negative for immortal objects */
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
  int32_t dtype;        /* enum rvm_dtype_index; dl.dtype is the same dtype in DLPack's representation */
  int32_t memory_class; /* private to the runtime (csrc/core/object_freelist.h), also in other objects */
  rvm_dltensor dl;
  rvm_object *owner;       /* the storage or tensor that owns the bytes, or NULL */
  void (*release)(void *); /* called once with release_argument when the tensor is freed; or NULL */
  void *release_argument;
  int64_t is_read_only; /* whether programs must not update the elements; see rvm_tensor_set_read_only */
};

/* A packed function: a builtin, a kernel, or a host function.  On success it stores an owned value (or NIL) in *result.
   On failure it calls rvm_fail, which stores the error in *result, and returns the status of rvm_fail.  The runtime
   checks only the tag of *result. */
typedef rvm_status (*rvm_packed_function)(void *self, const rvm_value *arguments, int32_t count, rvm_value *result);

/* [end cffi] */

#endif
