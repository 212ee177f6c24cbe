"""Packed functions written in C and registered from Python."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.modes import WAYS

from relvm import vm
from relvm.errors import RelvmBusyError, RelvmNameError, RelvmTypeError
from relvm.frontend.text import parse_module
from relvm.tables import include_flags

SOURCE = """
#include "relvm.h"

/* The sum of a 1-d f32 tensor, as a float. */
rvm_status sum(void *self, const rvm_value *arguments, int32_t count, rvm_value *result) {
  (void)self;
  if (count != 1 || arguments[0].tag != RVM_TAG_TENSOR) return RVM_TYPE_ERROR;
  const rvm_tensor *x = arguments[0].as.tensor;
  double total = 0;
  for (int64_t i = 0; i < x->dl.shape[0]; i++) total += ((const float *)x->dl.data)[i];
  *result = (rvm_value){.tag = RVM_TAG_FLOAT, .as.f = total};
  return RVM_OK;
}
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> int:
    folder: Path = tmp_path_factory.mktemp("c")
    (folder / "sum.c").write_text(SOURCE)
    command = ["cc", "-shared", "-fPIC", *include_flags(), "sum.c", "-o", "sum.so"]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "sum.so"))
    return ctypes.cast(library.sum, ctypes.c_void_p).value


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_a_c_function_is_called_by_name(address: int, way) -> None:
    vm.register_c_func("test.c.sum", address, override=True)
    text = 'def main(x: f32[n]) => f64 { return packed("test.c.sum", add(x, x)) : f64 }'
    machine = vm.VirtualMachine(vm.build(parse_module(text), *way))
    assert machine["main"](np.float32([1, 2, 4])) == 14.0


def test_a_c_function_that_fails_without_an_error_is_named(address: int) -> None:
    vm.register_c_func("test.c.sum", address, override=True)
    text = 'def main(x: i64) => object { return packed("test.c.sum", x) : object }'
    machine = vm.VirtualMachine(vm.build(parse_module(text)))
    with pytest.raises(RelvmTypeError, match=r"test\.c\.sum"):
        machine["main"](3)


def test_a_c_function_is_unregistered(address: int) -> None:
    vm.register_c_func("test.c.sum", address, override=True)
    vm.unregister_func("test.c.sum")
    with pytest.raises(RelvmNameError, match=r"test\.c\.sum"):
        vm.unregister_func("test.c.sum")
    with pytest.raises(RelvmNameError, match=r"test\.c\.sum"):
        vm.VirtualMachine(vm.build(parse_module('def main() => object { return packed("test.c.sum") : object }')))


def test_a_name_that_is_taken_and_an_address_that_is_none(address: int) -> None:
    vm.register_c_func("test.c.taken", address, override=True)
    with pytest.raises(RelvmBusyError, match=r"test\.c\.taken"):
        vm.register_c_func("test.c.taken", address)
    with pytest.raises(RelvmTypeError, match="address"):
        vm.register_c_func("test.c.other", 0)
