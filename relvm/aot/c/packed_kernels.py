"""Packed kernels: kernels that take tensors, as in the VM.

This module prints their calls, and the table through which the host can replace them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from relvm.aot.c.mangling import Names
from relvm.aot.config import AotConfig, CallKind
from relvm.aot.lower.ir import RunKernel
from relvm.codegen.c.expression import CExpression
from relvm.codegen.c.kernel import size_names
from relvm.ir.symbolic import AnyDim, as_var
from relvm.kernels.kernel import Kernel
from relvm.quoting import c_identifier_part, c_string

_TABLE = """\
static struct {{
  const char *name;
  rvm_packed_function function;
  void *self;
}} packed[] = {{
{rows}
}};"""

_CALL = """\
/* Calls the kernel with this number, or the function of the host that replaces it (`relvm_open`). */
static rvm_status call_packed(int32_t number, const rvm_value *arguments, int32_t count, rvm_value *result) {
  return packed[number].function(packed[number].self, arguments, count, result);
}"""


def packed_call(
    run: RunKernel,
    kernel: Kernel,
    calls: CallKind,
    names: Names,
    at: Callable[[int], str],
    dim: Callable[[AnyDim], CExpression],
) -> list[str]:
    """Return the lines of C that call a kernel with an array of values.  Each value is a tensor whose elements are in a
    storage.

    Parameters
    ----------
    run
        The statement to print.
    kernel
        The kernel that `run` calls.
    calls
        The calling convention, CPACKED or PACKED.
    names
        The C names of the kernels.
    at
        A function that takes the index of a storage, and returns the C expression for the address of the storage.
    dim
        A function that takes a size, and returns the C expression for the size.
    """
    buffers = (*kernel.inputs, *kernel.outputs)
    sizes = dict(zip(size_names(buffers), run.sizes, strict=True))
    count = len(buffers)
    shapes, views = [], []
    for number, (buffer, storage) in enumerate(zip(buffers, run.storages, strict=True)):
        dims = [str(dim(sizes[var] if (var := as_var(each)) else each)) for each in buffer.shape]
        if dims:
            shapes.append(f"  int64_t shape{number}[] = {{{', '.join(dims)}}};")
        shape = f"shape{number}" if dims else "0"
        view = f"rvm_view(&tensors[{number}], RVM_DTYPE_{buffer.dtype}, {len(dims)}, {shape}, {at(storage)})"
        views.append(f"  arguments[{number}] = {view};")
    callee = f"{names.kernel(run.kernel)}(0, "
    if calls is CallKind.PACKED:
        callee = f"call_packed({_number(run.kernel)}, "
    call = f"  RVM_TRY({callee}arguments, {count}, result));"
    return ["{", *shapes, f"  rvm_tensor tensors[{count}];", f"  rvm_value arguments[{count}];", *views, call, "}"]


def print_table(kernels: Mapping[str, Kernel], names: Names, config: AotConfig) -> str:
    """Return the C text of a table of kernels, and of the C functions `call_packed` and `relvm_open`.

    `relvm_open` replaces kernels in the table by functions of the host with the same names.  `call_packed` calls a
    kernel through the table.
    """
    if not kernels:
        return _OPEN.format(find="")
    numbers = ", ".join(map(_number, kernels))
    rows = "\n".join(f"    {{{c_string(f'{config.name}.{name}')}, {names.kernel(name)}, 0}}," for name in kernels)
    return "\n\n".join(
        [
            f"enum {{ {numbers} }};",
            _TABLE.format(rows=rows),
            _CALL,
            _OPEN.format(find=_FIND),
        ]
    )


def extern_prototype(symbol: str) -> str:
    """Return the declaration of the C function `symbol`, which has the signature of packed functions."""
    return f"rvm_status {symbol}(void *self, const rvm_value *arguments, int32_t count, rvm_value *result);"


def print_extern_helpers(calls: CallKind) -> str:
    """Return the C functions that calls of packed functions of the host use."""
    return "\n\n".join([_IS_EXTERN_RESULT, *([_CALL_EXTERN] if calls is CallKind.PACKED else [])])


def print_library(config: AotConfig) -> str:
    """Return the C text of the descriptor that a shared library exports.

    The text uses the macro RELVM_AOT_CPU, a string with the processor type that the library is compiled for.  If the
    macro is not defined, the text defines it as 0, which means unknown.
    """
    name = config.name
    return (
        "#ifndef RELVM_AOT_CPU\n#define RELVM_AOT_CPU 0\n#endif\n"
        "extern const rvm_aot_library relvm_aot_library;\n"
        "const rvm_aot_library relvm_aot_library = "
        f"{{RVM_ABI_VERSION, RELVM_AOT_CPU, relvm_open, {name}_run, &{name}_metadata}};"
    )


_IS_EXTERN_RESULT = """\
/* Returns whether the result of a function of the host is a compact tensor of this dtype and shape. */
static inline int32_t is_extern_result(const rvm_value *value, int32_t dtype, int32_t rank, const int64_t *shape) {
  if (!rvm_are_plain(value, 1) || value->as.tensor->dtype != dtype || value->as.tensor->dl.ndim != rank) return 0;
  for (int32_t axis = 0; axis < rank; axis++)
    if (value->as.tensor->dl.shape[axis] != shape[axis]) return 0;
  return 1;
}"""

_CALL_EXTERN = """\
/* Calls the packed function that the host has registered under `name`. */
static rvm_status call_extern(const char *name, const rvm_value *arguments, int32_t count, rvm_value *result) {
  rvm_packed_function function;
  void *self;
  if (!rvm_api->find(name, &function, &self))
    return rvm_api->fail(result, RVM_UNKNOWN_FUNCTION,
                         "no packed function %s is registered; register it before the run", name);
  return function(self, arguments, count, result);
}"""

_FIND = """
  for (size_t number = 0; number < sizeof packed / sizeof packed[0]; number++) {
    rvm_packed_function found;
    void *self;
    if (!api->find(packed[number].name, &found, &self)) continue;
    packed[number].function = found;
    packed[number].self = self;
  }"""

_OPEN = """\
const rvm_native_api *rvm_api;

static void relvm_open(const rvm_native_api *api) {{
  rvm_api = api;{find}
}}"""


def _number(kernel: str) -> str:
    return f"KERNEL_{c_identifier_part(kernel)}"
