"""Run kernels without a machine, through cffi: the kernels of operator calls, or those of an executable."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import cffi
import numpy as np

import relvm.errors
from relvm.codegen.c.mangling import kernel_symbol
from relvm.codegen.c.module import CSource, print_c
from relvm.compiler.toolchain import compile_native
from relvm.ir.dtypes import dtype_of
from relvm.ir.expr import Block, BuiltinCall, Expr, Function, KernelCall, Module, Shape, Var
from relvm.ir.operator import Operator
from relvm.ir.types import ShapeType, Type
from relvm.lir.routine import LirModule
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline
from relvm.tables import STATUS, TAGS, csrc_directory

_TENSOR, _NIL = (next(row.index for row in TAGS if row.name == name) for name in ("TENSOR", "NIL"))

_PROTOTYPE = "rvm_status {}(void *self, const rvm_value *arguments, int32_t count, rvm_value *result);"
_HOST = """
#include <stdarg.h>
#include <stdio.h>

#include "native.h"

char harness_message[512];

static rvm_status harness_fail(rvm_value *result, rvm_status status, const char *format, ...) {
  va_list values;
  (void)result;
  va_start(values, format);
  vsnprintf(harness_message, sizeof harness_message, format, values);
  va_end(values);
  return status;
}

static rvm_status harness_call(void *self, rvm_packed_function kernel, const int32_t *inputs, int32_t input_count,
                               const rvm_value *arguments, int32_t count, rvm_value *result) {
  (void)inputs, (void)input_count;
  return kernel(self, arguments, count, result);
}

rvm_status harness_open(rvm_status (*open)(const rvm_native_api *api)) {
  static const rvm_native_api api = {
      .abi_version = RVM_ABI_VERSION, .fail = harness_fail, .call_with_private = harness_call};
  return open(&api);
}
"""


@dataclass(frozen=True)
class Call:
    """A call of an operator with arguments of given types."""

    op: Operator
    types: tuple[Type, ...]
    attributes: dict[str, Any]


class Kernels:
    """The kernels that the pass lower_to_kernels creates for a list of calls."""

    def __init__(self, calls: Sequence[Call]) -> None:
        functions = tuple(function_of(f"case{i}", call) for i, call in enumerate(calls))
        passes = [step for step in build_pipeline("c") if step.name in ("infer_types", "to_anf", "lower_to_kernels")]
        self.module = run_passes(Module(functions), passes, verified=True)

    def what_runs(self, i: int) -> Expr:
        """Return what call number `i` was lowered to: a KernelCall, a BuiltinCall or, for an alias, a variable."""
        block = self.module[f"case{i}"].body
        assert isinstance(block, Block)
        found = [b.value for b in block.bindings if isinstance(b.value, KernelCall | BuiltinCall)]
        return found[0] if found else block.result

    @cached_property
    def library(self) -> Library:
        kernels = tuple(kernel for _, kernel in self.module.kernels)
        source = print_c(LirModule((), kernels, (), (), {}), routines=())
        return Library(compile_native(source).library, [name for name, _ in self.module.kernels])


class Library:
    """Compiled kernels in the native section of an executable.  kernels: the names of the kernels."""

    def __init__(self, content: bytes, kernels: Iterable[str]) -> None:
        ffi, host = _host()
        ffi.cdef("\n".join(_PROTOTYPE.format(kernel_symbol(name)) for name in kernels), override=True)
        self._library = _opened(ffi, content)
        assert host.harness_open(self._library.relvm_native_open) == 0

    def run(self, kernel: str, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        """Call a kernel, which writes its results into `outputs`.  If it fails, raise the error of its status."""
        ffi, host = _host()
        arrays = [*map(np.asarray, inputs), *outputs]
        arguments = ffi.new("rvm_value[]", max(1, len(arrays)))
        alive = [_fill(ffi, arguments[i], array) for i, array in enumerate(arrays)]
        result = ffi.new("rvm_value *")
        code = getattr(self._library, kernel_symbol(kernel))(ffi.NULL, arguments, len(alive), result)
        if code:
            raise getattr(relvm.errors, STATUS[code].python_class)(ffi.string(host.harness_message).decode())
        assert result.tag == _NIL


@cache
def _host() -> tuple[cffi.FFI, Any]:
    """Compile a minimal replacement for a machine, which stores the error message of a kernel."""
    ffi = cffi.FFI()
    for name in ("relvm_values.h", "relvm_metadata.h", "relvm.h"):
        header = (csrc_directory() / "include" / name).read_text()
        ffi.cdef(header.partition("/* [begin cffi] */")[2].partition("/* [end cffi] */")[0])
    ffi.cdef("int relvm_native_open(const void *api); int harness_open(int (*open)(const void *api));")
    ffi.cdef("extern char harness_message[512];")
    return ffi, _opened(ffi, compile_native(CSource((_HOST,), "")).library)


def _opened(ffi: cffi.FFI, content: bytes) -> Any:
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        Path(file.name).write_bytes(content)
        return ffi.dlopen(file.name)


def _fill(ffi: cffi.FFI, value: Any, array: np.ndarray) -> tuple:
    """Set `value` to a tensor that shares memory with an array.

    The caller must keep the returned objects alive as long as the tensor is used.
    """
    assert array.flags.c_contiguous
    tensor, shape = ffi.new("rvm_tensor *"), ffi.new("int64_t[]", list(array.shape) or [0])
    tensor.base.tag, tensor.base.references = _TENSOR, 1 << 30  # a reference count, so that kernels may write to it
    tensor.dtype = dtype_of(array.dtype).index
    tensor.dl.data = ffi.cast("void *", array.ctypes.data)
    tensor.dl.ndim, tensor.dl.shape = array.ndim, shape
    value.tag = _TENSOR
    getattr(value, "as").tensor = tensor
    return tensor, shape, array


def function_of(name: str, call: Call) -> Function:
    """Return a function that makes the call with its parameters as arguments.

    A shape argument is a shape expression whose variables the parameter binds.
    """
    params = [Var(f"x{i}", type=type_) for i, type_ in enumerate(call.types)]
    args = [Shape(p.type.dims) if isinstance(p.type, ShapeType) else p for p in params]
    return Function(name, tuple(params), call.op(*args, **call.attributes))
