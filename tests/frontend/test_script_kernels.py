"""Tests of kernels written as Python functions: their results in relvm and in Python, and their errors."""

# ruff: noqa: F821, UP037 (scripts are not Python)
from __future__ import annotations

import textwrap
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from support.modes import run_everywhere

from relvm import call_kernel, grid, kernel, parallel, script, simd, vm
from relvm.errors import RelvmArgumentError, RelvmError, RelvmNameError, RelvmSyntaxError, RelvmTypeError
from relvm.frontend.script import module_of
from relvm.ir.printer import print_module

FACTOR = 3.0
X = np.random.default_rng(5).standard_normal((4, 9)).astype(np.float32)


@kernel
def scale(x: "f32[n, m]", s: "f32", out: "f32[n, m]"):
    for i, j in grid(n, m):
        out[i, j] = x[i, j] * s


@kernel
def row_sums(x: "f32[n, m]", out: "f32[n]", count: "i64[()]"):
    """A docstring is skipped."""
    for i in parallel(n):
        total: "f32" = 0
        for j in simd(m):
            total += x[i, j]
        out[i] = total / f32(m) if m > 0 else 0.0
    count[()] = n * m


@kernel
def smooth(x: f32[n], out: f32[n]):
    for i in simd(n):
        left = x[i - 1] if 0 < i < n else 0.0
        right = x[min(i + 1, n - 1)]
        out[i] = (left + x[i] * FACTOR - -right) * 0.5
    for i in range(1, n):
        if not (i % 2 == 0 or i > 4):
            out[i] -= 1.0
        elif i == 4 and FACTOR > 1:
            out[i] = +(abs(out[i]) ** 1.5)
        else:
            pass


@script
class Program:
    @kernel
    def double(x: "f32[n]", out: "f32[n]"):
        for i in simd(n):
            out[i] = x[i] * 2.0

    def main(x: "f32[n, m]"):
        y = call_kernel(scale, x, 2.0, result="f32[n, m]")
        sums, count = row_sums(y)
        return smooth(double(sums)), count


def test_a_program_with_kernels_gives_what_the_reference_gives() -> None:
    assert [name for name, _ in Program.kernels] == ["scale", "row_sums", "smooth", "double"]
    _, count = run_everywhere(Program, X)
    assert count == X.size


def test_python_computes_the_same() -> None:
    """The Python function of a kernel has the same results on NumPy arrays."""
    out, count, smoothed = np.zeros(4, np.float32), np.zeros((), np.int64), np.zeros(4, np.float32)
    names = {"n": 4, "m": 9, "f32": np.float32, "exp": np.exp}
    for each in (row_sums, smooth):
        each.python.__globals__.update(names)
    try:
        row_sums.python(X, out, count)
        smooth.python(out * np.float32(4), smoothed)
    finally:
        for name in names:
            del row_sums.python.__globals__[name]

    @script
    def whole(x: "f32[n, m]"):
        sums, count = row_sums(x)
        return smooth(sums * 4.0), count

    result, counted = vm.VirtualMachine(vm.build(module_of(whole), target="bytecode"))["whole"](X)
    np.testing.assert_allclose(result.numpy(), smoothed, rtol=1e-5, atol=1e-6)
    assert counted.numpy() == count


def test_a_kernel_alone_has_its_text() -> None:
    @script
    def main(x: "f32[n, m]"):
        return scale(x, 2.0)

    text = """\
kernel scale(x: f32[n, m], s: f32[]) -> (out: f32[n, m]) {
  for i, j in grid(n, m) {
    out[i, j] = x[i, j] * s
  }
}

def main(x: f32[n, m]) -> f32[n, m] {
  scale_1: f32[n, m] = kernel scale(x, const(f32[], 2.0))
  return scale_1
}
"""
    assert print_module(main.module) == text
    assert repr(scale) == "<kernel scale>"


def test_kernels_are_called_by_scripts_only() -> None:
    with pytest.raises(RelvmTypeError, match="kernel scale can only be called in a function decorated with @script"):
        scale(X, 2.0)
    with pytest.raises(RelvmTypeError, match="call_kernel can only be called in a function decorated with @script"):
        call_kernel(scale, X, 2.0)
    with pytest.raises(RelvmTypeError, match="kernel: expected a function, got 3"):
        kernel(3)


# Bodies of kernels of x: f32[n], at: i64[l] and out: f32[n], in which the mark ¦ precedes the location of the error.
BODIES = [
    ("for i in ¦x:\n    pass", RelvmSyntaxError, "expected a loop over one of grid, range, simd, parallel"),
    ("for ¦out[0] in range(n):\n    pass", RelvmSyntaxError, "a loop target other than names"),
    ("for i in ¦range(n, 1, 2):\n    pass", RelvmSyntaxError, "the arguments (stop) or (start, stop)"),
    (
        "for i in range(n):\n    pass\nelse:\n    ¦pass",
        RelvmSyntaxError,
        "the else of a loop is not supported in a kernel",
    ),
    ("¦while n > 1:\n    pass", RelvmSyntaxError, "while is not supported in a kernel; write for i in range(n)"),
    ("¦return 1", RelvmSyntaxError, "return is not supported"),
    ("for i in range(n):\n    ¦break", RelvmSyntaxError, "break is not supported"),
    ("¦a = b = 1", RelvmSyntaxError, "an assignment to several targets is not supported"),
    ("a = 1\n¦a **= 2", RelvmSyntaxError, "the operator ** is not supported"),
    ("a = ¦[1, 2]", RelvmSyntaxError, "a list is not supported"),
    ("a = ¦1 if n else 2", RelvmTypeError, "expected a bool, got i64"),
    ("if ¦n:\n    pass", RelvmTypeError, "expected a bool, got i64; compare it"),
    ("a = ¦'text'", RelvmSyntaxError, "the constant 'text' is not supported"),
    ("a = ¦nothing", RelvmNameError, "no variable, parameter or dimension nothing"),
    ("a = ¦textwrap", RelvmTypeError, "textwrap is a Python module; expected a bool, an int or a float"),
    ("a = ¦flor(1.5)", RelvmNameError, "no function flor; did you mean floor?"),
    ("a = ¦nowhere.exp(x[0])", RelvmNameError, "no function nowhere.exp"),
    ("a = ¦textwrap.exp(x[0])", RelvmNameError, "no function textwrap.exp"),
    ("a = ¦exp(n)", RelvmTypeError, "exp: expected f32 or f64, got i64"),
    ("a = ¦x[0] + n", RelvmTypeError, "operands have dtypes f32 and i64"),
    ("a = ¦x[0, 1]", RelvmArgumentError, "x has rank 1, got 2 indices"),
    ("a: ¦'f32[n]' = 1.0", RelvmTypeError, "a variable of a kernel is a scalar, such as f32, got f32[n]"),
    ("¦a: 'i64' = 1.5", RelvmTypeError, "1.5 cannot be used as i64"),
    ("for i in range(n):\n    ¦i = 3", RelvmTypeError, "i is a loop counter, which cannot be assigned"),
    ("for i in range(n):\n    a = 1\nout[0] = ¦a", RelvmNameError, "a is defined only in a block that has ended"),
    ("for i in simd(n):\n    out[i] = ¦x[i + 1]", RelvmTypeError, "cannot prove that the index of x along axis 0"),
    ("for i in simd(n):\n    ¦out[0] = x[i]", RelvmTypeError, "may access the same element of out"),
    ("a = 0.0\nfor i in parallel(n):\n    ¦a += x[i]", RelvmTypeError, "a parallel loop cannot change a"),
]


def load(folder: Path, text: str) -> ModuleType:
    """Write `text` to a new Python file, import it, and return the module."""
    path = folder / "kernels_of_a_user.py"
    path.write_text(text)
    module = ModuleType("kernels_of_a_user")
    module.__file__ = str(path)
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module


@pytest.mark.parametrize(("marked", "kind", "message"), BODIES, ids=[body for body, _, _ in BODIES])
def test_errors_point_into_the_source(marked: str, kind: type[RelvmError], message: str, tmp_path: Path) -> None:
    head = "import textwrap\nfrom relvm import grid, kernel, parallel, simd\n\n@kernel\n"
    head += "def k(x: 'f32[n]', at: 'i64[l]', out: 'f32[n]'):\n"
    text = head + textwrap.indent(marked + "\nout[0] = 1.0\n", "    ")
    place = text.index("¦")
    module = load(tmp_path, text.replace("¦", ""))
    with pytest.raises(kind) as raised:
        module.k.definition  # noqa: B018
    assert message in str(raised.value)
    line, column = text[:place].count("\n") + 1, place - text.rfind("\n", 0, place)
    assert (raised.value.lineno, raised.value.offset) == (line, column)


@pytest.mark.parametrize(
    ("head", "kind", "message"),
    [
        ("def k(¦x, out: 'f32[n]'):", RelvmTypeError, "parameter x needs a type"),
        ("def k(x: ¦'f33[n]', out: 'f32[n]'):", RelvmNameError, "invalid type f33[n]: no type f33"),
        ("def k(¦x: 'str[n]', out: 'f32[n]'):", RelvmTypeError, "expected a tensor of known dtype and shape"),
        ("def k(out: 'f32[n]', ¦x: 'f32[n]'):", RelvmTypeError, "input x follows an output; outputs come last"),
        ("¦def k(out: 'f32[n]' = None):", RelvmSyntaxError, "a parameter that has a default"),
        (
            "def k(out: 'f32[n]') -> ¦'f32[n]':",
            RelvmSyntaxError,
            "a kernel returns nothing; it writes its last parameters",
        ),
    ],
)
def test_errors_of_the_signature(head: str, kind: type[RelvmError], message: str, tmp_path: Path) -> None:
    text = f"from relvm import kernel\n\n@kernel\n{head}\n    out[0] = 1.0\n"
    module = load(tmp_path, text.replace("¦", ""))
    with pytest.raises(kind) as raised:
        module.k.definition  # noqa: B018
    assert message in str(raised.value)
    assert (raised.value.lineno, raised.value.offset) == (4, head.index("¦") + 1)


def test_calls_are_checked() -> None:
    @script
    def wrong_rank(x: "f32[n]"):
        return scale(x, 2.0)

    @script
    def no_kernel(x: "f32[n]"):
        return call_kernel(x, 2.0)

    @script
    def a_value(x: "f32[n]"):
        return (x, scale)

    @script
    def unknown_argument(x: "f32[n, m]"):
        return scale(x, 2.0, name="k")

    with pytest.raises(RelvmTypeError, match="kernel scale: argument x: expected rank 2, got 1"):
        wrong_rank.module  # noqa: B018
    with pytest.raises(RelvmArgumentError, match="call_kernel: expected a function decorated with @kernel"):
        no_kernel.module  # noqa: B018
    with pytest.raises(RelvmTypeError, match="kernel scale is not a value of the program; call it"):
        a_value.module  # noqa: B018
    with pytest.raises(RelvmArgumentError, match="unknown argument name"):
        unknown_argument.module  # noqa: B018


def test_two_kernels_of_one_name_are_refused() -> None:
    def other() -> object:
        @kernel
        def scale(x: "f32[n, m]", s: "f32", out: "f32[n, m]"):
            for i, j in grid(n, m):
                out[i, j] = s

        return scale

    same_name = other()

    @script
    def main(x: "f32[n, m]"):
        return same_name(scale(x, 2.0), 3.0)

    with pytest.raises(RelvmNameError, match="two functions are named scale"):
        main.module  # noqa: B018
