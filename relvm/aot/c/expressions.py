"""Printing of sizes, scalars and elements of storages as C expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from relvm.aot.lower.ir import DimScalar, Scalar, ScalarConstant, ScalarVar
from relvm.codegen.c.kernel import KernelBody
from relvm.codegen.c.operands import float_text
from relvm.ir.dtypes import BOOL, F64, I64, DType
from relvm.ir.symbolic import AnyDim, Dim, DimVar, as_var
from relvm.ir.value_ranges import Range, range_of
from relvm.kernels import loop_ir as lir

_DTYPES = {"i": I64, "f": F64, "b": BOOL}
CTYPES = {"i": "int64_t", "f": "double", "b": "int64_t"}

NameOf = Callable[[DimVar], str]


def dim_text(dim: AnyDim, name_of: NameOf) -> str:
    """Return the size `dim` as a C expression of int64, in parentheses if it is a sum.

    name_of: a function that returns the C name of a dimension variable.
    """
    if isinstance(dim, int):
        return integer_text(dim)
    terms = []
    for monomial, coefficient in dim.terms:
        factors = [_atom(atom, name_of) for atom in monomial]
        if coefficient != 1 or not factors:
            factors.append(integer_text(coefficient))
        terms.append(" * ".join(factors))
    return terms[0] if len(terms) == 1 else f"({' + '.join(terms)})"


def _atom(atom, name_of: NameOf) -> str:
    if isinstance(atom, DimVar):
        return name_of(atom)
    left, right = dim_text(atom.left, name_of), dim_text(atom.right, name_of)
    return f"rvm_scalar_op_{atom.function}_i64_value({left}, {right})"


def guards_in(dim: AnyDim, name_of: NameOf, ranges: Mapping[DimVar, Range]) -> Iterator[str]:
    """Yield C conditions that are true if the size `dim` is invalid.

    A size is invalid if one of its divisors is 0, or if its value does not fit in an int64.  For example, the
    conditions for `n // (m * k)` are that `m * k` does not fit, and then that it is 0.  A sum or product has one
    condition for its final value.  It needs none for intermediate results, because C computes them modulo 2^64.

    dim: a number, or an expression of dimension variables.
    name_of: a function that returns the C name of a dimension variable.
    ranges: the value range of each dimension variable.  A condition that cannot be true for these ranges is omitted.
    """
    if isinstance(dim, int):
        return
    for atom in (atom for monomial, _ in dim.terms for atom in monomial if not isinstance(atom, DimVar)):
        yield from guards_in(atom.left, name_of, ranges)
        yield from guards_in(atom.right, name_of, ranges)
        if atom.function in ("floordiv", "mod") and not isinstance(atom.right, int):
            yield f"{dim_text(atom.right, name_of)} == 0"
    found = range_of(dim, ranges)
    if as_var(dim) is None and not (found.low >= -(2**63) and found.high < 2**63):
        yield f"!rvm_scalar_op_fits_i64({_double_text(dim, name_of)})"


def _double_text(dim: Dim, name_of: NameOf) -> str:
    """Return a C expression of type double that approximates the size `dim`, to detect overflow of int64."""
    terms = []
    for monomial, coefficient in dim.terms:
        factors = [f"(double){_atom(atom, name_of)}" for atom in monomial]
        terms.append(" * ".join([*factors, f"{float(coefficient)!r}"]))
    return " + ".join(terms)


def integer_text(value: int) -> str:
    """Return the C literal of an int64.  A number that fits in 31 bits becomes a plain int literal."""
    if value == -(2**63):
        return "INT64_MIN"
    text = str(abs(value)) if abs(value) < 2**31 else f"INT64_C({abs(value)})"
    return text if value >= 0 else f"(-{text})"


def scalar_text(scalar: Scalar, name_of: NameOf) -> str:
    match scalar:
        case ScalarVar(name):
            return name
        case DimScalar(dim):
            return dim_text(dim, name_of)
        case ScalarConstant(bool() as value):
            return str(int(value))
        case ScalarConstant(int() as value):
            return integer_text(value)
    return float_text(scalar.value) if scalar.value >= 0 else f"({float_text(scalar.value)})"


def from_element(letter: str, storage: str, dtype: DType, position: int) -> str:
    """Return a C expression that reads an element of a storage and converts it to a scalar.

    letter: the type of the scalar, "i" (int64), "f" (double) or "b" (bool).
    storage: the C name of the storage, the array that contains the element.
    dtype: the dtype of the element.
    position: the flat position of the element.
    """
    buffer = lir.Buffer(storage, dtype, (1,))
    body = KernelBody("", {}, {storage: ""})
    return body.scalar(lir.Load(buffer, (lir.Literal(position, I64),)).to(_DTYPES[letter]))


def to_element(text: str, letter: str, dtype: DType) -> str:
    """Return a C expression that converts a scalar to an element of dtype `dtype`.

    text: the C expression of the scalar.
    letter: the type of the scalar, "i" (int64), "f" (double) or "b" (bool).
    """
    body = KernelBody("", {}, {})
    return body.scalar(lir.Local(text, _DTYPES[letter]).to(dtype))


def letter_of(scalar: Scalar) -> str:
    match scalar:
        case ScalarVar(letter=letter):
            return letter
        case ScalarConstant(bool()):
            return "b"
        case ScalarConstant(float()):
            return "f"
    return "i"
