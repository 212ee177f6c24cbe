"""The cffi module: `lib` has the functions and constants of csrc/include, `ffi` makes C values."""

from typing import Any

ffi: Any
lib: Any
