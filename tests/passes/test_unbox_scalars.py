"""Unboxed scalars: random loops over tensors of rank 0 have the same bits with and without the pass."""

from __future__ import annotations

import random
from functools import partial

import numpy as np
import pytest

from relvm import vm
from relvm.compiler.build import assemble, lower
from relvm.compiler.target import Target
from relvm.errors import RelvmIndexError, RelvmTypeError, RelvmUnsupportedError
from relvm.frontend.text import parse_module
from relvm.ir.interpreter import evaluate
from relvm.ir.types import PrimType
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline

INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
DTYPES = ("bool", "f32", "f64", *INTEGERS)
FLOAT_VALUES = (0.0, -0.0, 1.0, -2.5, 0.1, 3e38, -1e-45, 1e-30, 16777217.0, np.inf, -np.inf, np.nan)
ITERATIONS = 4


def values(dtype: str, choose: random.Random) -> str:
    """Return a random number of a dtype, as text."""
    if dtype == "bool":
        return choose.choice(("true", "false"))
    if dtype in ("f32", "f64"):
        return choose.choice(("0.0", "-0.0", "1.0", "-2.5", "0.1", "3e38", "1e-30", "16777217.0"))
    bits, is_signed = int(dtype[1:]), dtype[0] == "i"
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if is_signed else (0, 2**bits - 1)
    small = choose.randint(-3 if is_signed else 0, 9)
    return str(choose.choice((small, small, low, high, high - 1)))


def given(dtype: str, choose: random.Random) -> np.ndarray:
    """Return a random argument."""
    if dtype in ("f32", "f64"):
        return np.array(choose.choice(FLOAT_VALUES), {"f32": np.float32, "f64": np.float64}[dtype])
    kind = {"b": "bool", "i": "int", "u": "uint"}[dtype[0]] + dtype[1:] if dtype != "bool" else "bool"
    text = values(dtype, choose)
    return np.array(text == "true" if dtype == "bool" else int(text), kind)


class Program:
    """A random program: a loop that carries tensors of rank 0, and conditionals on them."""

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        self.carried = [self.choose.choice(DTYPES) for _ in range(self.choose.randint(1, 4))]
        self.lines: list[str] = []
        self.count = 0
        self.scope: list[tuple[str, str]] = []  # (name, dtype)

    def atom(self, dtype: str, scope: list[tuple[str, str]]) -> str:
        known = [name for name, found in scope if found == dtype]
        if known and self.choose.random() < 0.8:
            return self.choose.choice(known)
        return f"const({dtype}[], {values(dtype, self.choose)})"

    def operation(self, scope: list[tuple[str, str]]) -> tuple[str, str]:
        """Return a random operator call and its dtype."""
        choose = self.choose
        source = choose.choice([dtype for _, dtype in scope]) if scope else choose.choice(DTYPES)
        x, y = self.atom(source, scope), self.atom(source, scope)
        options = [
            (f"equal({x}, {y})", "bool"),
            (f"not_equal({x}, {y})", "bool"),
            (f"where({self.atom('bool', scope)}, {x}, {y})", source),
        ]
        if source == "bool":
            options += [(f"{name}({x}, {y})", "bool") for name in ("logical_and", "logical_or")]
            options += [(f"logical_not({x})", "bool")]
        else:
            names = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "modulo", "remainder")
            options += [(f"{name}({x}, {y})", source) for name in names]
            options += [(f"{name}({x})", source) for name in ("negative", "abs", "sign", "relu")]
            options += [(f"{name}({x}, {y})", "bool") for name in ("less", "less_equal", "greater", "greater_equal")]
        if source in INTEGERS:
            names = ("bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right", "shift_right_logical")
            options += [(f"{name}({x}, {y})", source) for name in names] + [(f"bitwise_not({x})", source)]
        if source in ("f32", "f64"):
            options += [(f"sqrt({x})", source), (f"floor({x})", source), (f"is_finite({x})", "bool")]
        target = choose.choice(DTYPES)
        if source not in ("f32", "f64") or target in ("f32", "f64", "bool"):
            options += [(f'cast({x}, to="{target}")', target)] * 3
        return choose.choice(options)

    def statement(self, scope: list[tuple[str, str]], indent: str, depth: int) -> None:
        name = f"t{self.count}"
        self.count += 1
        if depth < 2 and self.choose.random() < 0.2:
            dtype = self.choose.choice([found for _, found in scope] or ["i32"])
            self.lines.append(f"{indent}{name}: {dtype}[] = if {self.atom('bool', scope)} then {{")
            for number in range(2):
                inner = list(scope)
                for _ in range(self.choose.randint(0, 2)):
                    self.statement(inner, indent + "  ", depth + 1)
                self.lines.append(f"{indent}  return {self.atom(dtype, inner)}")
                self.lines.append(f"{indent}}} else {{" if number == 0 else f"{indent}}}")
        else:
            call, dtype = self.operation(scope)
            self.lines.append(f"{indent}{name}: {dtype}[] = {call}")
        scope.append((name, dtype))

    def text(self) -> str:
        types = [f"{dtype}[]" for dtype in self.carried]
        params = ", ".join(f"p{i}: {type_}" for i, type_ in enumerate(types))
        result = f"({', '.join(types)})" if len(types) > 1 else types[0]
        names = ", ".join(f"p{i}" for i in range(len(types)))
        scope = [(f"p{i}", dtype) for i, dtype in enumerate(self.carried)]
        for _ in range(self.choose.randint(3, 9)):
            self.statement(scope, "      ", 0)
        again = ", ".join(self.atom(dtype, scope) for dtype in self.carried)
        stop = self.atom("bool", scope)
        returned = f"({names})" if len(types) > 1 else names
        return "\n".join(
            [
                f"def main({params}) -> {result} {{",
                f"  loop = fn loop(i: i64, {params}) -> {result} {{",
                f"    go: bool = i < {ITERATIONS}",
                f"    r: {result} = if go then {{",
                *self.lines,
                f"      s: {result} = if {stop} then {{",
                f"        u: {result} = loop(i + 1, {again})",
                "        return u",
                "      } else {",
                f"        w: {result} = loop(i + 2, {again})",
                "        return w",
                "      }",
                "      return s",
                "    } else {",
                f"      e: {result} = {returned}",
                "      return e",
                "    }",
                "    return r",
                "  }",
                f"  y: {result} = loop(0, {names})",
                "  return y",
                "}",
            ]
        )


def leaves(result) -> list[np.ndarray]:
    items = result if isinstance(result, list | tuple) else [result]
    return [np.asarray(item.numpy() if hasattr(item, "numpy") else item) for item in items]


def expect_same_bits(found: list[np.ndarray], expected: list[np.ndarray], text: str) -> None:
    for x, y in zip(found, expected, strict=True):
        assert x.dtype == y.dtype, text
        is_nan = np.isnan(x) & np.isnan(y) if x.dtype.kind == "f" else np.zeros_like(x, bool)
        assert is_nan or x.tobytes() == y.tobytes(), f"{x}, expected {y}\n{text}"


def machine(module, without: list[str]) -> vm.VirtualMachine:
    lir = lower(run_passes(module, build_pipeline("bytecode", without=without), verified=True))
    return vm.VirtualMachine(vm.Executable.from_program(assemble(lir, (), target=Target("bytecode"))))


def unboxed_params(module) -> int:
    """Return the number of parameters of loops that the pass unboxes."""
    counts = []
    for without in ([], ["unbox_scalars"]):
        steps = build_pipeline("numpy", without=without)
        after = run_passes(module, steps)
        counts.append(sum(isinstance(p.type, PrimType) for f in after.functions for p in f.params))
    return counts[0] - counts[1]


@pytest.mark.parametrize("position", [3, -1])
def test_a_position_must_exist(position: int) -> None:
    module = parse_module("def main(x: i32[3], i: i64) -> i64 { return element_at(x, i) }")
    x = np.arange(3, dtype=np.int32)
    for run in (machine(module, [])["main"], partial(evaluate, module, "main")):
        assert run(x, 2) == 2
        with pytest.raises(RelvmIndexError, match=f"position {position} is out of range; the tensor has 3 elements"):
            run(x, position)


def test_random_loops_have_the_same_bits_as_with_boxed_tensors() -> None:
    unboxed = 0
    for seed in range(120):
        program = Program(seed)
        text = program.text()
        module = parse_module(text)
        args = [given(dtype, program.choose) for dtype in program.carried]
        expected = leaves(machine(module, ["unbox_scalars"])["main"](*args))
        expect_same_bits(leaves(machine(module, [])["main"](*args)), expected, text)
        unboxed += unboxed_params(module)
    assert unboxed > 50


def test_random_loops_have_the_same_bits_in_compiled_mode() -> None:
    for seed in range(1000, 1006):
        program = Program(seed)
        text = program.text()
        module = parse_module(text)
        args = [given(dtype, program.choose) for dtype in program.carried]
        expected = leaves(machine(module, ["unbox_scalars"])["main"](*args))
        compiled = vm.VirtualMachine(vm.build(module, exec_mode="compiled", target="c"))
        expect_same_bits(leaves(compiled["main"](*args)), expected, text)


def test_a_tensor_of_unknown_shape_is_not_read() -> None:
    """It may have several elements, or none, which `reshape` refuses."""
    module = parse_module("""def main(x: f32[...], y: f32[1]) -> i64 {
      a = reshape(x, shape())
      b = reshape(y, shape())
      return if less(a, b) then 1 else 0 }""")
    with pytest.raises(RelvmUnsupportedError, match="reshape: an argument has type"):
        machine(module, [])


def test_a_constant_that_is_no_i64_fails_where_it_is_used() -> None:
    module = parse_module("""def main(n: i64) -> i64 {
      x: i64[] = to_tensor(n, dtype=i64)
      return if less(x, const(i64[], 3)) then 1 else to_scalar(const(u64[], 18446744073709551615)) }""")
    run = machine(module, [])["main"]
    assert run(1) == 1
    with pytest.raises(RelvmTypeError, match="18446744073709551615 is out of the range of i64"):
        run(5)


def test_an_element_is_read_where_the_program_slices() -> None:
    """So the tensor is not needed after the slice, and can be updated in place."""
    module = parse_module("""def main(v: f32[8], s: f32[]) -> (f32[8], i64) {
      t = slice(v, begin=(5,), end=(6,))
      w = negative(v)
      a = reshape(t, shape())
      return (w, if less(a, s) then 1 else 0) }""")
    text = str(run_passes(module, build_pipeline("numpy")))
    assert text.index("tensor_element(") < text.index("negative")


def test_recursion_is_as_deep_as_with_boxed_tensors() -> None:
    """The modulus of variables is not translated, because its many steps would take registers."""
    module = parse_module("""
      private def f(n: i32[]) -> i32[] with (inline=false) {
        return if less_equal(n, const(i32[], 0)) then n else {
          m = modulo(n, add(n, const(i32[], 3)))
          return add(@f(subtract(n, const(i32[], 1))), m) } }
      def main(n: i32[]) -> i32[] = @f(n)""")
    assert machine(module, [])["main"](np.int32(40_000)).numpy() == sum(range(40_001))
