"""Writes the C source of relvm.vm.runtime._native, the cffi binding of csrc/relvm.h.

Run by CMakeLists.txt:  python ffi_build.py OUTPUT.c
"""

from __future__ import annotations

import sys
from pathlib import Path

from cffi import FFI

# What the library calls back; relvm/vm/runtime defines each with @ffi.def_extern().
CALLBACKS = """
extern "Python" {
  rvm_status relvm_py_poll(void *host, rvm_value *error);
  rvm_status relvm_py_print(void *host, const rvm_value *arguments, int32_t count, rvm_value *error);
  rvm_status relvm_py_before(void *host, int32_t function, const rvm_value *arguments, int32_t count, int32_t *skip,
                             rvm_value *error);
  rvm_status relvm_py_after(void *host, int32_t function, const rvm_value *arguments, int32_t count, rvm_status status,
                            const rvm_value *result, rvm_value *error);
}
"""


def declarations(header: str) -> str:
    """The part of relvm.h between its two cffi markers."""
    _, _, rest = header.partition("/* [begin cffi] */")
    text, end, _ = rest.partition("/* [end cffi] */")
    assert end, "relvm.h has lost its cffi markers"
    return text


def main(output: str) -> None:
    header = Path(__file__).parents[3] / "csrc" / "relvm.h"
    builder = FFI()
    builder.cdef(declarations(header.read_text()))
    builder.cdef(CALLBACKS)
    builder.set_source("relvm.vm.runtime._native", '#include "relvm.h"', py_limited_api=True)
    builder.emit_c_code(output)


if __name__ == "__main__":
    main(sys.argv[1])
