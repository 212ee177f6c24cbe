"""Tests of the printers of C: every pair of a parent and a child operator has the value that the tree has.

The languages that print C are C expressions themselves, sizes, and the scalars of kernels (loop IR).  Each test prints
its expressions into one C file, and compares their values with those of the tree.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.c_compiler import run_compiler

from relvm.aot.c.expressions import scalar_expression
from relvm.aot.c.kernels import plain_signature, print_plain_kernel
from relvm.aot.lower.ir import ScalarConstant
from relvm.codegen.c.expression import (
    CExpression,
    call,
    cast,
    conditional,
    dimension,
    element,
    infix,
    integer,
    literal,
    prefix,
    primary,
)
from relvm.compiler.find_compiler import find_compiler
from relvm.frontend.text import parse_module
from relvm.ir.dtypes import BOOL, F32, F64, I8, I32, I64, U8, U32, U64, DType
from relvm.ir.expr import Block, DimValue, Function, Module, Tuple, Var
from relvm.ir.loop_ir import Buffer, Literal, Load, Local, Loop, Operation, Scalar, Size, Store, select
from relvm.ir.printer import print_module
from relvm.ir.scalar_ops import COMPARISONS
from relvm.ir.symbolic import AnyDim, Dim, DimVar, dim_op, var_dim
from relvm.ir.types import ShapeType
from relvm.ir.visitor import structural_equal
from relvm.kernels.kernel import Kernel
from relvm.tables import include_flags

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="the C is compiled, and there is no C compiler")

MIN, MAX = -(2**63), 2**63 - 1
FLAGS = ("-std=gnu11", "-O0", "-fwrapv", "-fPIC", "-shared", "-w", "-Werror=parentheses")


def compile_c(text: str, folder: Path) -> ctypes.CDLL:
    source, library = folder / "expressions.c", folder / "expressions.so"
    source.write_text(text)
    compiler = find_compiler()
    assert compiler is not None
    run_compiler(compiler.command[0], *FLAGS, *include_flags(), source, "-o", library, "-lm")
    return ctypes.CDLL(str(library))


def wrapped(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def quotient(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


# ---- C expressions ----

# An expression, and its value for given variables.  The value of an undefined operation is a ZeroDivisionError.
Pair = tuple[CExpression, Callable[[dict[str, int]], int]]


def _shift(sign: str, x: int, y: int) -> int:
    if not 0 <= y < 64:
        raise ZeroDivisionError
    return wrapped(x << y) if sign == "<<" else x >> y


def _divide(x: int, y: int) -> int:
    if y == 0 or (x, y) == (MIN, -1):
        raise ZeroDivisionError
    return quotient(x, y)


_VALUES: dict[str, Callable[[int, int], int]] = {
    "+": lambda x, y: wrapped(x + y),
    "-": lambda x, y: wrapped(x - y),
    "*": lambda x, y: wrapped(x * y),
    "/": _divide,
    "%": lambda x, y: x - _divide(x, y) * y,
    "<<": lambda x, y: _shift("<<", x, y),
    ">>": lambda x, y: _shift(">>", x, y),
    "&": lambda x, y: x & y,
    "|": lambda x, y: x | y,
    "^": lambda x, y: x ^ y,
    "<": lambda x, y: int(x < y),
    "<=": lambda x, y: int(x <= y),
    ">": lambda x, y: int(x > y),
    ">=": lambda x, y: int(x >= y),
    "==": lambda x, y: int(x == y),
    "!=": lambda x, y: int(x != y),
    "&&": lambda x, y: int(x != 0 and y != 0),
    "||": lambda x, y: int(x != 0 or y != 0),
}
_TRUTHS = ("<", "<=", ">", ">=", "==", "!=", "&&", "||", "!")
_PREFIXES: dict[str, Callable[[int], int]] = {"-": lambda x: wrapped(-x), "!": lambda x: int(x == 0), "~": lambda x: ~x}


def _infix(sign: str, left: Pair, right: Pair) -> Pair:
    if sign in ("&&", "||"):
        # The right operand may be undefined if the left one decides.
        def value(variables: dict[str, int]) -> int:
            first = left[1](variables) != 0
            return int(first) if first == (sign == "||") else int(right[1](variables) != 0)

        return infix(sign, left[0], right[0]), value
    return infix(sign, left[0], right[0]), lambda v: _VALUES[sign](left[1](v), right[1](v))


def _unary(sign: str, operand: Pair) -> Pair:
    return prefix(sign, operand[0]), lambda v: _PREFIXES[sign](operand[1](v))


def _conditional(condition: Pair, then: Pair, orelse: Pair) -> Pair:
    parts = conditional(condition[0], then[0], orelse[0])
    return parts, lambda v: then[1](v) if condition[1](v) else orelse[1](v)


def _int8(operand: Pair) -> Pair:
    narrow = cast("int64_t", cast("int8_t", operand[0]))
    return narrow, lambda v: (operand[1](v) + 128) % 256 - 128


def _as_double(operand: Pair) -> Pair:
    wide = cast("int64_t", call("rounded", cast("double", operand[0])))
    return wide, lambda v: wrapped(int(float(operand[1](v))))


def _element(operand: Pair) -> Pair:
    def value(variables: dict[str, int]) -> int:
        if not 0 <= (index := operand[1](variables)) < 4:
            raise ZeroDivisionError
        return 10 + index

    return element("table", operand[0]), value


# operator -> (number of operands, constructor)
_OPERATORS: dict[str, tuple[int, Callable[..., Pair]]] = {
    **{sign: (2, lambda x, y, sign=sign: _infix(sign, x, y)) for sign in _VALUES},
    **{f"prefix {sign}": (1, lambda x, sign=sign: _unary(sign, x)) for sign in _PREFIXES},
    "?:": (3, _conditional),
    "cast to int8": (1, _int8),
    "cast to double": (1, _as_double),
    "element": (1, _element),
    "call": (1, lambda x: (call("same", x[0]), x[1])),
}


def _variable(name: str) -> Pair:
    return primary(name), lambda v: v[name]


def _number(value: int) -> Pair:
    return integer(value), lambda _: value


_LEAVES = ("x", "y", "z", "w")
_LITERALS = (-5, MIN, 2**31, 1)


def pairs() -> Iterator[tuple[str, Pair]]:
    """Yield every pair of operators, with variables and with literals as the other operands."""
    for parent, (count, build) in _OPERATORS.items():
        for position, (child, (inner, build_child)) in product(range(count), _OPERATORS.items()):
            for first in range(3):
                leaves = [_variable(name) for name in _LEAVES]
                if first:  # the literal -5 first, or the literal 1 first
                    leaves = [_number(value) for value in (_LITERALS if first == 1 else _LITERALS[::-1])]
                    leaves[1] = _variable("y")
                operand = build_child(*leaves[:inner])
                if child.removeprefix("prefix ") in _TRUTHS:  # a bool, which loop IR converts before it computes
                    operand = cast("int64_t", operand[0]), operand[1]
                others = leaves[1:][: count - 1]
                others.insert(position, operand)
                yield f"{child} in operand {position} of {parent}", build(*others)
        for value in (*_LITERALS, MAX, 0, -1, -(2**31)):
            for position in range(count):
                others = [_variable(name) for name in _LEAVES[: count - 1]]
                others.insert(position, _number(value))
                yield f"{value} in operand {position} of {parent}", build(*others)


_HELPERS = """#include <stdint.h>
#include <math.h>
#include "scalar_ops_values.h"
static const int64_t table[] = {10, 11, 12, 13};
static int64_t same(int64_t x) { return x; }
static double rounded(double x) { return x >= 9223372036854775808.0 ? -9223372036854775808.0 : x; }
"""


def check(cases: Sequence[tuple[str, Pair]], names: Sequence[str], values: Sequence[tuple[int, ...]], folder: Path):
    parameters = ", ".join(f"int64_t {name}" for name in names)
    functions = (f"int64_t e{i}({parameters}) {{ return {text}; }}" for i, (_, (text, _)) in enumerate(cases))
    library = compile_c(_HELPERS + "\n".join(functions), folder)
    defined = 0
    for number, (name, (text, value_of)) in enumerate(cases):
        function = library[f"e{number}"]
        function.restype, function.argtypes = ctypes.c_int64, [ctypes.c_int64] * len(names)
        for variables in values:
            try:
                expected = value_of(dict(zip(names, variables, strict=True)))
            except ZeroDivisionError:
                continue
            defined += 1
            assert function(*variables) == expected, f"{name}: {text} with {variables}"
    assert defined > 4 * len(cases)


def test_every_pair_of_c_operators_has_the_value_of_its_tree(tmp_path):
    values = [(-3, 2, 1, 0), (5, 3, 2, 7), (0, 0, 0, 0), (1, 1, 1, -1), (MIN, 3, MAX, 1), (MAX, 1, 2, MIN)]
    values += [(3, 40, -7, 2), (2, -1, 0, 63)]
    check(list(pairs()), _LEAVES, values, tmp_path)


@pytest.mark.parametrize(
    "expression, text",
    [
        (prefix("-", prefix("-", primary("x"))), "-(-x)"),
        (prefix("-", integer(-1)), "-(-1)"),
        (prefix("-", integer(MIN)), "-INT64_MIN"),
        (prefix("&", prefix("&", primary("x"))), "&(&x)"),
        (infix("-", primary("a"), prefix("-", primary("b"))), "a - (-b)"),
        (infix("+", primary("a"), integer(-2)), "a + (-2)"),
        (infix("-", primary("a"), infix("-", primary("b"), primary("c"))), "a - (b - c)"),
        (infix("<", primary("a"), prefix("-", primary("b"))), "a < -b"),
        (infix("||", primary("a"), infix("&&", primary("b"), primary("c"))), "a || (b && c)"),
        (cast("float", infix("*", primary("n"), integer(3))), "(float)(n * 3)"),
        (infix("<<", integer(1), primary("n")), "(int64_t)1 << n"),
        (literal(-(2**31), I32), "INT32_MIN"),
        (literal(-0.0, F64), "-0.0"),
        (literal(-np.inf, F32), "-INFINITY"),
        (scalar_expression(ScalarConstant(-2.5), lambda var: primary(var.name)), "-0x1.4000000000000p+1"),
    ],
)
def test_parentheses(expression, text):
    assert expression.text == text


# ---- sizes ----

_N, _M = DimVar("n"), DimVar("m")
_DIMS: dict[str, Callable[[AnyDim, AnyDim], AnyDim]] = {
    **{name: lambda x, y, name=name: dim_op(name, x, y) for name in ("add", "sub", "mul", "floordiv", "mod")},
    **{name: lambda x, y, name=name: dim_op(name, x, y) for name in ("min", "max")},
    "negation": lambda x, _: -x,
    "multiple": lambda x, _: x * -3,
    "sum": lambda x, y: x - y * 2 - 7,
    "first": lambda x, _: x,
}
_CONSTANTS: tuple[AnyDim, ...] = (-3, 2, MIN, 2**40)


def sizes() -> list[AnyDim]:
    """Return sizes with every pair of operators, and with constants of either sign as operands."""
    n, m = var_dim(_N), var_dim(_M)
    found: list[AnyDim] = []
    for outer, inner in product(_DIMS.values(), repeat=2):
        for left, right in ((n, m), *((n, constant) for constant in _CONSTANTS), *((c, m) for c in _CONSTANTS)):
            for parts in ((inner(left, right), m), (n, inner(left, right))):
                found.append(outer(*parts))
    return [dim for dim in dict.fromkeys(found) if isinstance(dim, Dim)]


_SIZE_VALUES = [(1, 1), (3, 2), (7, 5), (0, 4), (-6, 4), (MAX, 3), (2**31, -(2**31)), (MIN, MAX)]


def test_every_pair_of_operators_on_sizes_has_the_value_of_its_tree(tmp_path):
    def value_of(dim: AnyDim) -> Callable[[dict[str, int]], int]:
        return lambda v: _wrapped_dim(dim, v)

    cases = [(str(dim), (dimension(dim, lambda var: primary(var.name)), value_of(dim))) for dim in sizes()]
    check(cases, ("n", "m"), _SIZE_VALUES, tmp_path)


def _wrapped_dim(dim: AnyDim, values: dict[str, int]) -> int:
    """Compute a size with the arithmetic of the runtime.  Unlike `evaluate_with`, each operation wraps around."""
    if isinstance(dim, int):
        return wrapped(dim)
    total = 0
    for monomial, coefficient in dim.terms:
        factors = [coefficient]
        for atom in monomial:
            if isinstance(atom, DimVar):
                factors.append(values[atom.name])
                continue
            left, right = _wrapped_dim(atom.left, values), _wrapped_dim(atom.right, values)
            operations = {"min": min, "max": max, "floordiv": int.__floordiv__, "mod": int.__mod__}
            if (atom.function, left, right) == ("floordiv", MIN, -1):
                raise ZeroDivisionError
            factors.append(operations[atom.function](left, right))
        total += reduce(int.__mul__, factors)
    return wrapped(total)


def test_the_text_of_every_pair_of_operators_on_sizes_reads_back():
    wanted = Tuple(tuple(DimValue(dim) for dim in sizes()))
    shape = Var("s", type=ShapeType((var_dim(_N), var_dim(_M))))
    module = Module((Function("main", (shape,), Block((), wanted)),))
    back = parse_module(print_module(module))
    assert structural_equal(back, module)


# ---- loop IR ----

_NUMBERS: dict[DType, tuple[Any, ...]] = {
    I8: (-128, -3, 0, 1, 2, 127),
    U8: (0, 1, 2, 7, 200, 255),
    I32: (-(2**31), -3, 0, 1, 2, 2**31 - 1),
    U32: (0, 1, 2, 7, 2**31, 2**32 - 1),
    I64: (MIN, -3, 0, 1, 2, MAX),
    U64: (0, 1, 2, 7, 2**63, 2**64 - 1),
    F32: (-2.5, -0.0, 0.0, 1.0, 3.25, 100.0),
    F64: (-2.5, -0.0, 0.0, 1.0, 3.25, 100.0),
}
_LITERAL_VALUES = {dtype: (values[0], values[3], values[-1]) for dtype, values in _NUMBERS.items()}


def _guarded(function: str, x: Scalar, y: Scalar) -> Scalar:
    """Return `function` of x and y where C defines it, otherwise x."""
    dtype = x.dtype
    if function in ("shl", "shr"):
        inside = y.to(U64) < dtype.bits
        return select(inside, Operation(function, (x, y), dtype), x)
    outside = y.eq(0)
    if dtype.is_signed:
        outside = outside.logical_or(y.eq(-1))
    return select(outside, x, Operation(function, (x, y), dtype))


def scalar_operators(dtype: DType) -> dict[str, tuple[tuple[DType, ...], Callable[..., Scalar]]]:
    """Return the operators on numbers of a dtype and on bools: the dtypes of the operands, and a constructor."""

    def operation(function: str, of: tuple[DType, ...], result: DType):
        return of, lambda *operands: Operation(function, operands, result)

    found: dict[str, tuple[tuple[DType, ...], Callable[..., Scalar]]] = {}
    for function in ("add", "sub", "mul"):
        found[function] = operation(function, (dtype, dtype), dtype)
    for function in sorted(COMPARISONS):
        found[function] = operation(function, (dtype, dtype), BOOL)
    for function in ("and", "or", "eq", "ne"):
        found[f"bool {function}"] = operation(function, (BOOL, BOOL), BOOL)
    found["not"] = operation("not", (BOOL,), BOOL)
    found["neg"] = operation("neg", (dtype,), dtype)
    found["select"] = operation("select", (BOOL, dtype, dtype), dtype)
    found["cast"] = (dtype,), lambda x: x.to(I8 if dtype is not I8 else I32).to(dtype)
    found["cast bool"] = (BOOL,), lambda x: x.to(dtype)
    found["to bool"] = (dtype,), lambda x: x.to(BOOL)
    if dtype.is_float:
        found["abs"] = operation("abs", (dtype,), dtype)
        found["div"] = operation("div", (dtype, dtype), dtype)
        return found
    for function in ("and", "or", "xor"):
        found[function] = operation(function, (dtype, dtype), dtype)
    for function in ("div", "rem", "shl", "shr"):
        found[function] = (dtype, dtype), lambda x, y, function=function: _guarded(function, x, y)
    return found


def scalar_pairs(dtype: DType, leaves: Sequence[Scalar], bools: Sequence[Scalar]) -> Iterator[Scalar]:
    operators = scalar_operators(dtype)

    def fill(wanted: tuple[DType, ...], first: int) -> list[Scalar]:
        return [(bools if each is BOOL else leaves)[(first + i) % 3] for i, each in enumerate(wanted)]

    for operands, build in operators.values():
        for position, (inner, build_child) in product(range(len(operands)), operators.values()):
            child = build_child(*fill(inner, position))
            if child.dtype is not operands[position]:
                continue
            parts = fill(operands, 1)
            parts[position] = child
            yield build(*parts)
        for position, value in product(range(len(operands)), _LITERAL_VALUES[dtype]):
            if operands[position] is dtype:
                parts = fill(operands, 1)
                parts[position] = Literal(value, dtype)
                yield build(*parts)


def evaluated(scalar: Scalar, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Compute a scalar of loop IR for all elements of the arrays."""
    match scalar:
        case Literal(value, dtype):
            return np.full(len(next(iter(arrays.values()))), value, dtype.numpy)
        case Load(buffer):
            return arrays[buffer.name]
        case Operation("div" | "rem" as function, operands, dtype) if dtype.is_integer:
            x, y = (evaluated(operand, arrays) for operand in operands)
            exact = [_truncated_division(function, int(a), int(b)) for a, b in zip(x, y, strict=True)]
            return np.array(exact, object).astype(dtype.numpy)
        case Operation("cast", (operand,), dtype):
            return evaluated(operand, arrays).astype(dtype.numpy)
        case Operation(function, operands):
            return _NUMPY[function](*(evaluated(operand, arrays) for operand in operands))
    raise AssertionError(f"unexpected {scalar}")


_NUMPY: dict[str, Callable[..., np.ndarray]] = {
    **{"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "abs": np.abs},
    **{"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal},
    **{"ne": np.not_equal, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert},
    **{"shl": np.left_shift, "shr": np.right_shift, "select": np.where},
}


def _truncated_division(function: str, x: int, y: int) -> int:
    if y in (0, -1):
        return 0  # not selected
    return quotient(x, y) if function == "div" else x - quotient(x, y) * y


def pair_kernel(dtype: DType) -> tuple[Kernel, list[Scalar]]:
    size = Size(var_dim(DimVar("n")))
    i = Local("i", I64)
    inputs = tuple(Buffer(name, dtype, (size.dim,)) for name in ("x", "y", "z"))
    flags = tuple(Buffer(name, BOOL, (size.dim,)) for name in ("p", "q", "r"))
    leaves, bools = [[Load(buffer, (i,)) for buffer in part] for part in (inputs, flags)]
    scalars = list(scalar_pairs(dtype, leaves, bools))
    numbers = [scalar for scalar in scalars if scalar.dtype is dtype]
    truths = [scalar for scalar in scalars if scalar.dtype is BOOL]
    outputs = (Buffer("numbers", dtype, (len(numbers), size.dim)), Buffer("truths", BOOL, (len(truths), size.dim)))
    stores = [
        Store(output, (Literal(row, I64), i), scalar)
        for output, part in zip(outputs, (numbers, truths), strict=True)
        for row, scalar in enumerate(part)
    ]
    loop = Loop(i, Literal(0, I64), size, tuple(stores))
    return Kernel(f"pairs_{dtype}", (*inputs, *flags), outputs, (loop,), "pairs"), [*numbers, *truths]


_KERNEL_HEADERS = ("compiler.h", "small_floats.h", "kernel_conversions.h", "kernel_math.h")


def test_every_pair_of_operators_in_kernels_has_the_value_of_its_tree(tmp_path):
    kernels = {dtype: pair_kernel(dtype) for dtype in _NUMBERS}
    text = "".join(f'#include "{header}"\n' for header in _KERNEL_HEADERS) + "#include <math.h>\n"
    text += "\n".join(print_plain_kernel(kernel, kernel.name) for kernel, _ in kernels.values())
    library = compile_c(text, tmp_path)
    for dtype, (kernel, scalars) in kernels.items():
        grid = np.array(list(product(_NUMBERS[dtype], repeat=3)), dtype.numpy)
        bits = np.arange(len(grid))
        arrays = {name: np.ascontiguousarray(grid[:, k]) for k, name in enumerate("xyz")}
        arrays |= {name: (bits >> k) % 2 == 1 for k, name in enumerate("pqr")}
        outputs = [np.zeros((buffer.shape[0], len(grid)), buffer.dtype.numpy) for buffer in kernel.outputs]
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*arrays.values(), *outputs)]
        assert plain_signature(kernel, kernel.name).count(",") == len(pointers)
        getattr(library, kernel.name)(*pointers, ctypes.c_int64(len(grid)))
        with np.errstate(all="ignore"):
            for scalar, got in zip(scalars, (row for output in outputs for row in output), strict=True):
                want = evaluated(scalar, arrays)
                assert got.tobytes() == want.astype(got.dtype).tobytes() or _same(got, want), f"{dtype}: {scalar}"


def _same(got: np.ndarray, want: np.ndarray) -> bool:
    """Return whether two arrays are equal but for the bits of NaNs."""
    return got.dtype.kind == "f" and np.array_equal(got, want, equal_nan=True)
