"""Functions of different kinds with one name: each call reaches the function that it means."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.modes import assert_same_bits, plain

from relvm import aot, vm
from relvm.bytecode.asm_parser import parse_text
from relvm.bytecode.encode import encode
from relvm.errors import RelvmBusyError, RelvmFormatError, RelvmNameError
from relvm.frontend.text import parse_module
from relvm.ir.interpreter import evaluate
from relvm.ir.type_inference import infer_types
from relvm.tables import BUILTIN_PREFIX, BUILTINS

MODES = [(mode, target) for mode in ("bytecode", "compiled", "auto") for target in ("c", "bytecode", "numpy")]

# For each kind of function: declarations of a module, statements of main, and the variable of the value that the
# statements compute from the tensor x and the constant c.  NAME stands for the name of the function.
KINDS = {
    "packed": ("", 'y = packed("NAME", x, c) : f32[3]', "y"),
    "function": (
        'def "NAME"(a: f32[3], b: f32[3], k: i64) -> f32[3] = '
        'if k == 0 then a else @"NAME"(subtract(a, b), b, k - 1)\n',
        'z = @"NAME"(x, c, 2)',
        "z",
    ),
    "kernel": (
        'kernel "NAME"(a: f32[3], b: f32[3]) -> (out: f32[3]) {\n'
        "  for i in range(3) { out[i] = a[i] * 3.0 - b[i] }\n}\n",
        'w = kernel "NAME"(x, c)',
        "w",
    ),
    "lifted function": (
        "",
        "f = fn f(a: f32[3], k: i64) -> f32[3] { return if k == 0 then a else f(maximum(a, c), k - 1) }\n  v = f(x, 2)",
        "v",
    ),
    "generated kernel": ("", "u = add(x, c)", "u"),
}
# The names that relvm generates for two of the kinds.
GENERATED_NAMES = {"lifted function": "main_f", "generated kernel": "add_f32"}


def host(a: Any, b: Any) -> np.ndarray:
    return np.asarray(a) * 100 + np.asarray(b)


@pytest.fixture
def registered(request: pytest.FixtureRequest) -> Iterator[str]:
    """Register `host` under the name that the test is parametrized with."""
    vm.register_func(request.param, host)
    yield request.param
    vm.unregister_func(request.param)


def module_text(name: str, *kinds: str) -> str:
    parts = [KINDS[kind] for kind in kinds]
    declarations = "".join(part[0] for part in parts)
    statements = "\n  ".join(part[1] for part in parts)
    results = ", ".join(part[2] for part in parts)
    text = (
        f"const c = const(f32[3], [10, 20, 30])\n{declarations}"
        f"def main(x: f32[3]) => object {{\n  {statements}\n  return ({results}, x, c)\n}}\n"
    )
    return text.replace("NAME", name)


def expected(text: str, name: str, x: np.ndarray) -> Any:
    return plain(evaluate(infer_types(parse_module(text)), "main", x, packed={name: host}))


def check(text: str, name: str, executable: vm.Executable) -> None:
    x = np.array([-1, 2, -3], np.float32)
    x.flags.writeable = False
    machine = vm.VirtualMachine(executable)
    for _ in range(2):  # a constant must not change in the first run
        assert_same_bits(plain(machine["main"](x)), expected(text, name, x))


PAIRS = [
    (name, first, second)
    for generated, name in GENERATED_NAMES.items()
    for first in (generated,)
    for second in ("packed", "function", "kernel")
]
PAIRS += [("shared.name", "packed", second) for second in ("function", "kernel")]


@pytest.mark.parametrize("registered, kinds", [(name, kinds) for name, *kinds in PAIRS], indirect=["registered"])
@pytest.mark.parametrize("mode, target", MODES)
def test_two_kinds_with_one_name(registered: str, kinds: list[str], mode: str, target: str, tmp_path: Path) -> None:
    text = module_text(registered, *kinds)
    executable = vm.build(parse_module(text), mode, target)
    check(text, registered, executable)
    if mode == "auto":
        machine = vm.VirtualMachine(executable)
        machine.wait_compiled()
        x = np.array([-1, 2, -3], np.float32)
        assert_same_bits(plain(machine["main"](x)), expected(text, registered, x))
        return
    executable.save(tmp_path / "m.rvm")
    check(text, registered, vm.load(tmp_path / "m.rvm", functions=["*"]))
    program = parse_text(executable.as_text())
    assert bytes(encode(program)) == bytes(encode(executable.program))


@pytest.mark.parametrize("kind, name", GENERATED_NAMES.items())
def test_the_pairs_contain_generated_names(kind: str, name: str) -> None:
    """The names in GENERATED_NAMES are those that relvm generates if no other function has them."""
    assert name in vm.build(parse_module(module_text("", kind)), "bytecode", "bytecode").functions


@pytest.mark.parametrize("name, kinds", [(name, kinds) for name, *kinds in PAIRS if "packed" not in kinds])
def test_two_kinds_with_one_name_in_an_export(name: str, kinds: list[str]) -> None:
    text = module_text(name, *kinds).replace("=> object", "-> (f32[3], f32[3], f32[3], f32[3])")
    config = aot.AotConfig("model", runtime="hosted")
    executor = aot.AotExecutor(aot.compile_library(aot.build(parse_module(text), config)))
    x = np.array([-1, 2, -3], np.float32)
    executor.set_input("x", x)
    executor.run()
    got = tuple(executor.get_output(i) for i in range(executor.get_num_outputs()))
    assert_same_bits(plain(got), expected(text, name, x))


@pytest.mark.parametrize("registered", ["abs", "relu"], indirect=True)
def test_a_host_function_with_the_name_of_an_operator(registered: str) -> None:
    text = (
        "def main(x: f32[3]) => (f32[3], f32[3]) {\n"
        f'  y = packed("{registered}", x, x) : f32[3]\n  return (y, {registered}(x))\n}}\n'
    )
    for mode, target in MODES:
        check(text, registered, vm.build(parse_module(text), mode, target))


def test_a_function_used_as_a_value_is_of_its_kind() -> None:
    text = (
        'def "a.b"(x: i64) -> i64 = x + 1\n'
        'def main(x: i64) => (object, object) {\n  f = @"a.b"\n  g = @packed("a.b")\n  return (f(x), g(x))\n}\n'
    )
    vm.register_func("a.b", lambda x: x + 1000)
    try:
        for mode, target in MODES:
            assert vm.VirtualMachine(vm.build(parse_module(text), mode, target))["main"](1) == (2, 1001)
    finally:
        vm.unregister_func("a.b")


@pytest.mark.parametrize("row", BUILTINS, ids=lambda row: row.name)
def test_the_name_of_a_builtin_is_refused_for_every_definition(row: Any) -> None:
    name = BUILTIN_PREFIX + row.name
    for kind in ("function", "kernel"):
        with pytest.raises(RelvmNameError, match="belong to builtins"):
            vm.build(parse_module(module_text(name, kind)))
    with pytest.raises(RelvmBusyError, match="belong to builtins"):
        vm.register_func(name, host, override=True)
    builder = vm.ExecBuilder()
    for define in (lambda: builder.declare(name, ["x"]), lambda: builder.function(name, ["x"]).__enter__()):
        with pytest.raises(RelvmFormatError, match="belong to builtins"):
            define()


def test_the_prefix_of_builtins_is_refused_without_a_builtin_of_that_name() -> None:
    with pytest.raises(RelvmBusyError, match="belong to builtins"):
        vm.register_func(BUILTIN_PREFIX + "unknown", host)
    with pytest.raises(RelvmNameError, match="belong to builtins"):
        vm.build(parse_module(module_text(BUILTIN_PREFIX + "unknown", "function")))


def test_a_host_function_cannot_replace_an_implementation_of_an_operator() -> None:
    with pytest.raises(RelvmBusyError, match=r"names that begin with reference\. belong to a library"):
        vm.register_func("reference.add", host, override=True)
    with pytest.raises(RelvmBusyError, match=r"names that begin with reference\. belong to a library"):
        vm.register_c_func("reference.add", 1, override=True)


def test_names_that_look_like_the_symbols_of_generated_code() -> None:
    """The C names of functions, kernels and their parts do not coincide."""
    size = 100_000  # a kernel of this size has a parallel part
    names = (
        "f",
        "f_part0",
        "part0_of_kernel_f",
        "kernel_f",
        "body_kernel_f",
        "apply_f",
        "__vmtir__f",
        "f_x41_",
        "f_xA",
    )
    kernels = "".join(
        f'kernel "k{name}"(a: f32[{size}]) -> (out: f32[{size}]) {{\n'
        f"  for i in parallel({size}) {{ out[i] = a[i] + {i}.0 }}\n}}\n"
        for i, name in enumerate(names)
    )
    functions = "".join(
        f'def "{name}"(i: i64, x: object) -> object = if i == 0 then (x, {i}) else @"{name}"(i - 1, x)\n'
        for i, name in enumerate(names)
    )
    calls = "".join(f'  a{i} = kernel "k{name}"(x)\n  b{i} = @"{name}"(2, a{i})\n' for i, name in enumerate(names))
    results = ", ".join(f"b{i}" for i in range(len(names)))
    text = f"{kernels}{functions}def main(x: f32[{size}]) => object {{\n{calls}  return ({results})\n}}\n"
    for mode in ("bytecode", "compiled"):
        for i, (values, number) in enumerate(
            vm.VirtualMachine(vm.build(parse_module(text), mode))["main"](np.zeros(size, np.float32))
        ):
            assert number == i and (values.numpy() == i).all()
