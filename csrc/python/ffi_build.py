"""Writes the C source of relvm._native, the cffi binding of csrc/include/relvm.h and what it includes.

Run by CMakeLists.txt:  python ffi_build.py OUTPUT.c
"""

from __future__ import annotations

import sys
from pathlib import Path

from cffi import FFI

# Callbacks from C; relvm/runtime/callbacks.py defines each with @ffi.def_extern().
CALLBACKS = """
extern "Python" {
  rvm_status relvm_py_poll(void *host, rvm_value *error);
  rvm_status relvm_py_print(void *host, const rvm_value *arguments, int32_t count, rvm_value *error);
  rvm_status relvm_py_before(void *host, int32_t function, const rvm_value *arguments, int32_t count, int32_t *skip,
                             rvm_value *error);
  rvm_status relvm_py_after(void *host, int32_t function, const rvm_value *arguments, int32_t count, rvm_status status,
                            const rvm_value *result, rvm_value *error);
  rvm_status relvm_py_stop(void *host, const rvm_value *failure, rvm_value *error);
}
"""


HEADERS = ("relvm_values.h", "relvm_metadata.h", "relvm.h")


def declarations(directory: Path) -> str:
    """The parts of the headers between their two cffi markers."""
    return "\n".join(_marked(directory / name) for name in HEADERS)


def _marked(header: Path) -> str:
    _, _, rest = header.read_text().partition("/* [begin cffi] */")
    text, end, _ = rest.partition("/* [end cffi] */")
    assert end, f"{header.name} has lost its cffi markers"
    return text


def main(output: str) -> None:
    builder = FFI()
    builder.cdef(declarations(Path(__file__).parents[1] / "include"))
    builder.cdef(CALLBACKS)
    builder.set_source("relvm._native", '#include "relvm.h"', py_limited_api=True)
    builder.emit_c_code(output)


if __name__ == "__main__":
    main(sys.argv[1])
