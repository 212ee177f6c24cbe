"""Every pair of a parent and a child operator, in the text of kernels and of scalars.

The printed text parses to the same tree, and the results are those of the interpreter in every mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from support.modes import C_WAYS, machines

from relvm.frontend.text import parse_module
from relvm.ir import kernel_def as kd
from relvm.ir.dtypes import BOOL, F32, F64, I8, I64, DType
from relvm.ir.expr import Block, Expr, Function, Module, PrimCall, Tuple, Var, prim
from relvm.ir.interpreter import evaluate
from relvm.ir.loop_ir import Buffer, Let, Literal, Load, Local, Operation, Scalar, Store
from relvm.ir.printer import print_module
from relvm.ir.scalar_ops import COMPARISONS, DTYPE_OF_LETTER
from relvm.ir.type_inference import infer_types
from relvm.ir.types import PrimType
from relvm.ir.visitor import structural_equal
from relvm.tables import PRIM_OPERATORS

MIN, MAX = -(2**63), 2**63 - 1

# ---- scalars ----

_SCALARS: dict[str, tuple[Any, ...]] = {"i": (-3, MIN, 2), "f": (-2.5, -0.0, float("-inf")), "b": (True, False)}


def scalar_pairs() -> Iterator[Expr]:
    """Yield every pair of scalar operators, and each operator with literals, on the variables of `_PARAMS`."""
    for row in PRIM_OPERATORS:
        for position, letter in enumerate(row.operands):
            variables = [_PARAMS[each] for each in row.operands]
            for inner in PRIM_OPERATORS:
                if inner.result == letter and not inner.fails:
                    parts: list[Expr] = list(variables)
                    parts[position] = PrimCall(inner.function, tuple(_PARAMS[each] for each in inner.operands[::-1]))
                    yield PrimCall(row.function, tuple(parts))
            for value in _SCALARS[letter]:
                parts = list(variables)
                parts[position] = prim(value)
                yield PrimCall(row.function, tuple(parts))


_PARAMS = {letter: Var(letter, type=PrimType(dtype)) for letter, dtype in DTYPE_OF_LETTER.items()}


def _scalar_module(results: list[Expr]) -> Module:
    params = tuple(_PARAMS.values())
    chunks = [results[start : start + 40] for start in range(0, len(results), 40)]
    return Module(tuple(Function(f"f{i}", params, Block((), Tuple(tuple(part)))) for i, part in enumerate(chunks)))


def test_the_text_of_every_pair_of_scalar_operators_reads_back():
    module = _scalar_module(list(scalar_pairs()))
    assert structural_equal(parse_module(print_module(module)), module)


def _can_fail(expr: Expr) -> bool:
    assert isinstance(expr, PrimCall)
    return any(row.fails for row in PRIM_OPERATORS if row.function == expr.function)


def test_every_pair_of_scalar_operators_computes_what_the_interpreter_does():
    module = infer_types(_scalar_module([expr for expr in scalar_pairs() if not _can_fail(expr)]))
    _expect_the_results_of_the_interpreter(module, [(5, -1.5, True), (-7, 0.25, False), (MIN, -0.0, True)])


@pytest.mark.parametrize("function", ["floordiv", "mod", "shl", "shr"])
def test_operators_that_can_fail_compute_what_the_interpreter_does(function):
    shift = function in ("shl", "shr")
    i = _PARAMS["i"]
    operands = [prim(-3), prim(MIN), i, PrimCall("neg", (i,)), PrimCall("neg", (prim(-3),))]
    right = [prim(3), PrimCall("neg", (PrimCall("neg", (prim(3),)),)), *([] if shift else [prim(-3), prim(MIN)])]
    right.append(PrimCall("min", (PrimCall("max", (i, prim(1))), prim(5))))
    results: list[Expr] = [PrimCall(function, pair) for pair in product(operands, right)]
    _expect_the_results_of_the_interpreter(infer_types(_scalar_module(results)), [(5, 0.0, True), (-7, 0.0, True)])


def _expect_the_results_of_the_interpreter(module: Module, arguments: list[tuple]) -> None:
    built = machines(module, C_WAYS)
    for function, values in product(module.functions, arguments):
        expected = evaluate(module, function.name, *values)
        for way, machine in built.items():
            got = tuple(machine[function.name](*values))
            assert list(map(repr, got)) == list(map(repr, expected)), (way, function.name, values)


# ---- kernels ----

Operator = tuple[tuple[DType, ...], Callable[..., Any]]


def kernel_operators(dtype: DType) -> dict[str, Operator]:
    """Return the operators on numbers of a dtype and on bools: the dtypes of the operands, and a constructor."""

    def binary(function: str, of: DType = dtype) -> Operator:
        return (of, of), lambda x, y: kd.binary_operation(function, x, y)

    arithmetic = ("add", "sub", "mul", *(("div",) if dtype.is_float else ("floordiv", "mod")))
    found = {name: binary(name) for name in (*arithmetic, *sorted(COMPARISONS))}
    found |= {f"bool {name}": binary(name, BOOL) for name in ("and", "or", "eq", "ne")}
    found |= {name: ((dtype, dtype), lambda x, y, name=name: kd.call(name, (x, y))) for name in ("min", "max")}
    found["neg"] = (dtype,), kd.negative
    found["not"] = (BOOL,), kd.negation
    found["abs"] = (dtype,), lambda x: kd.call("abs", (x,))
    found["conditional"] = (BOOL, dtype, dtype), kd.conditional
    found["cast"] = (dtype,), lambda x: kd.cast(kd.cast(x, I8 if dtype is I64 else F64), dtype)
    found["bool"] = (dtype,), lambda x: kd.cast(x, BOOL)
    found["of bool"] = (BOOL,), lambda x: kd.cast(x, dtype)
    return found


def kernel_pairs(dtype: DType, numbers: list[Any], bools: list[Any]) -> Iterator[Scalar]:
    operators = kernel_operators(dtype)

    def operands(wanted: tuple[DType, ...], first: int) -> list[Any]:
        return [(bools if each is BOOL else numbers)[(first + i) % 3] for i, each in enumerate(wanted)]

    literals = (True, False) if dtype is BOOL else (-3, MIN, 2) if dtype is I64 else (-2.5, -0.0, float("-inf"))
    for wanted, build in operators.values():
        for position, (inner, build_child) in product(range(len(wanted)), operators.values()):
            child = build_child(*operands(inner, position))
            if child.dtype is wanted[position]:
                parts = operands(wanted, 1)
                parts[position] = child
                yield build(*parts)
        for position, value in product(range(len(wanted)), literals):
            if wanted[position] is dtype:
                parts = operands(wanted, 1)
                parts[position] = Literal(value, dtype)
                yield build(*parts)


def kernel_module(dtype: DType) -> tuple[Module, kd.KernelDef]:
    """Return a module with a kernel that computes every pair of operators on the elements of its inputs."""
    x, flags = Buffer("x", dtype, (3,)), Buffer("p", BOOL, (3,))
    names = [Local(name, dtype) for name in "abc"], [Local(name, BOOL) for name in "uvw"]
    lets = [
        Let(variable, Load(buffer, (Literal(i, I64),)))
        for buffer, variables in zip((x, flags), names, strict=True)
        for i, variable in enumerate(variables)
    ]
    scalars = list(kernel_pairs(dtype, *names))
    parts = [[s for s in scalars if s.dtype is dtype], [s for s in scalars if s.dtype is BOOL]]
    outputs = (
        Buffer("y", dtype, (len(parts[0]),), is_output=True),
        Buffer("q", BOOL, (len(parts[1]),), is_output=True),
    )
    puts = [
        Store(output, (Literal(i, I64),), scalar)
        for output, part in zip(outputs, parts, strict=True)
        for i, scalar in enumerate(part)
    ]
    kernel = kd.KernelDef("k", (x, flags), outputs, (*lets, *puts))
    head = f"def main(x: {dtype}[3], p: bool[3]) -> ({dtype}[{len(parts[0])}], bool[{len(parts[1])}]) = kernel k(x, p)"
    return parse_module(f"{print_module(Module((), (('k', kernel),)))}\n{head}\n"), kernel


def _tree(scalar: Any) -> Any:
    """Return a kernel's expression as nested tuples, which are equal if the expressions are."""
    match scalar:
        case Literal(value, dtype):
            return repr(value), dtype
        case Load(buffer, indices):
            return buffer.name, *map(_tree, indices)
        case Operation(function, operands, dtype):
            return function, dtype, *map(_tree, operands)
    return scalar.name


@pytest.mark.parametrize("dtype", [I64, F32], ids=str)
def test_every_pair_of_operators_in_kernels(dtype):
    module, kernel = kernel_module(dtype)
    back = dict(module.kernels)["k"]
    for got, want in zip(back.body, kernel.body, strict=True):
        assert _tree(got.value) == _tree(want.value)
    typed = infer_types(module)
    built = machines(typed, [("bytecode", "bytecode"), ("compiled", "c")])
    rows = [(5, -3, 2), (0, 0, 0), (-7, 2, -1), (MIN, MAX, 3)]
    if dtype is F32:
        rows = [(1.5, -3.25, 2.0), (0.0, -0.0, 1.0), (-7.0, np.inf, -1.0)]
    for row, bits in product(rows, range(8)):
        arguments = np.array(row, dtype.numpy), np.array([bits & 1, bits & 2, bits & 4], bool)
        with np.errstate(all="ignore"):
            expected = evaluate(typed, "main", *arguments)
        for way, machine in built.items():
            for got, want in zip(machine["main"](*arguments), expected, strict=True):
                np.testing.assert_array_equal(got.numpy(), np.asarray(want), err_msg=f"{way} {row}")


@pytest.mark.parametrize("index", ["-(-i)", "-(i - n + 1)", "n - 1 - -(-i)", "-(-(-(-i)))", "n + -i - 1", "0 - -i"])
def test_a_negated_loop_counter_is_an_index(index):
    """The loop ends, and the counter keeps its value, although the index contains it after two minus signs."""
    text = f"kernel k(x: i64[n]) -> (out: i64[n]) {{ for i in range(n) {{ out[i] = x[{index}] + i }} }}\n"
    module = infer_types(parse_module(f"{text}def main(x: i64[n]) -> i64[n] = kernel k(x)\n"))
    x = np.array([10, 20, 30, 40])
    order = x if eval(index, {"i": 1, "n": 4}) == 1 else x[::-1]
    for machine in machines(module, [("bytecode", "bytecode"), ("compiled", "c")]).values():
        assert machine["main"](x).numpy().tolist() == (order + np.arange(4)).tolist()
