"""Calls with many arguments: compiled mode passes them in the value stack."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.modes import MODES, assert_same_bits, plain

from relvm import vm
from relvm.codegen.c.function import _MAX_ARRAY
from relvm.errors import RelvmRecursionError
from relvm.frontend.text import parse_module
from relvm.ir.interpreter import evaluate
from relvm.ir.type_inference import infer_types

COUNT = _MAX_ARRAY + 8
NAMES = [f"p{i}" for i in range(COUNT)]
PARAMS = ", ".join(f"{name}: object" for name in NAMES)

# Each program is called with an i64 and a tensor.
PROGRAMS = {
    "a tuple of operands of every kind": (
        "const c = const(f32[2], [1, 2])\n"
        'def "f"(x: i64) -> i64 = x + 1\n'
        "def main(i: i64, x: f32[2]) => object {\n"
        '  items = (i, x, c, true, false, null, 2.5, -1.5e300, 9223372036854775807, -9223372036854775808, "text", '
        f"{', '.join(['i + 1'] * COUNT)})\n  return items\n}}\n"
    ),
    "a function of the module": (
        f"def callee({PARAMS}) => object {{ return ({', '.join(reversed(NAMES))}) }}\n"
        "def main(i: i64, x: f32[2]) => object {\n"
        f"  result = @callee({', '.join(['i', 'x'] * (COUNT // 2))})\n  return (result, 1)\n}}\n"
    ),
    "a tail call of another function": (
        f"def callee({PARAMS}) => object {{ return ({', '.join(reversed(NAMES))}) }}\n"
        f"def main(i: i64, x: f32[2]) => object {{ return @callee({', '.join(['i', 'x'] * (COUNT // 2))}) }}\n"
    ),
    "a tail call of the function itself": (
        f"def loop(n: i64, {PARAMS}) => object {{\n"
        f"  return if n == 0 then ({', '.join(NAMES)}) else @loop(n - 1, {', '.join([*NAMES[1:], NAMES[0]])})\n}}\n"
        f"def main(i: i64, x: f32[2]) => object {{ return @loop(i, x, {', '.join(map(str, range(COUNT - 1)))}) }}\n"
    ),
    "a closure that captures a value": (
        "def main(i: i64, x: f32[2]) => object {\n"
        f"  f = fn f({PARAMS}) => object {{ return (x, {', '.join(NAMES)}) }}\n"
        "  pair = (f, i)\n  g = pair.0\n"
        f"  first = g({', '.join(['i', 'x'] * (COUNT // 2))})\n"
        f"  second = g({', '.join(['x', 'first'] * (COUNT // 2))})\n  return (second, first)\n}}\n"
    ),
    "a function of the host": (
        "def main(i: i64, x: f32[2]) => object {\n"
        f'  result = packed("test.large.count", {", ".join(["i", "x"] * (COUNT // 2))}) : object\n'
        "  return (result, x)\n}\n"
    ),
}


@pytest.fixture(autouse=True)
def host() -> None:
    vm.register_func("test.large.count", lambda *args: len(args), override=True)


@pytest.mark.parametrize("debug", [False, True], ids=["", "debug"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_result_is_that_of_the_reference(program: str, mode: str, debug: bool) -> None:
    module = parse_module(PROGRAMS[program])
    x = np.array([3, 4], np.float32)
    packed = {"test.large.count": lambda *args: len(args)}
    expected = plain(evaluate(infer_types(module), "main", 5, x, packed=packed))
    machine = vm.VirtualMachine(vm.build(module, mode, debug=debug))
    for _ in range(2):
        assert_same_bits(plain(machine["main"](5, x)), expected)
    calls: list[str] = []
    machine.set_instrument(lambda name, before, result, *arguments: calls.append(name))
    assert_same_bits(plain(machine["main"](5, x)), expected)
    assert calls


@pytest.mark.parametrize("mode", MODES)
def test_a_small_value_stack_is_reported(mode: str) -> None:
    module = parse_module(PROGRAMS["a tuple of operands of every kind"])
    executable = vm.build(module, mode)
    registers = next(entry.registers for entry in executable.program.functions if entry.name == "main")
    machine = vm.VirtualMachine(executable, stack_values=registers + 4)
    for _ in range(2):
        with pytest.raises(RelvmRecursionError, match="value stack"):
            machine["main"](1, np.ones(2, np.float32))


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_array_of_arguments_is_long(program: str) -> None:
    """The C compiler takes quadratic time for an array with thousands of elements that are not constant."""
    source = vm.build(parse_module(PROGRAMS[program]), "compiled").source
    arrays = re.findall(r"\(const rvm_value\[\]\)\{([^}]*)\}", source)
    own = [array for array in arrays if "RVM_R(" in array]  # an `apply_` function has an array of its parameters
    assert own and max(array.count(", ") for array in own) < _MAX_ARRAY
