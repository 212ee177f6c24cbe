"""Sizes, scalars and elements of storages as C."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from relvm.aot.lowered import DimScalar, Immediate, Scalar, ScalarVar
from relvm.codegen.c_kernel import KernelBody
from relvm.codegen.c_operands import float_text
from relvm.ir.dims import AnyDim, DimVar
from relvm.ir.dtypes import BOOL, F64, I64, DType
from relvm.lir import kernel as lir

_DTYPES = {"i": I64, "f": F64, "b": BOOL}
CTYPES = {"i": "int64_t", "f": "double", "b": "int64_t"}

NameOf = Callable[[DimVar], str]


def dim_text(dim: AnyDim, name_of: NameOf) -> str:
    """A size as a C expression of int64, in parentheses where it is a sum."""
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
    return f"rvm_prim_{atom.function}_i64_value({left}, {right})"


def divisors_in(dim: AnyDim) -> Iterator[AnyDim]:
    """What a size divides by that only a run knows, those inside of one before it."""
    for monomial, _ in () if isinstance(dim, int) else dim.terms:
        for atom in monomial:
            if not isinstance(atom, DimVar):
                yield from divisors_in(atom.left)
                yield from divisors_in(atom.right)
                if atom.function in ("floordiv", "mod") and not isinstance(atom.right, int):
                    yield atom.right


def integer_text(value: int) -> str:
    """An int64 constant; one that fits into 31 bits as an int."""
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
        case Immediate(bool() as value):
            return str(int(value))
        case Immediate(int() as value):
            return integer_text(value)
    return float_text(scalar.value) if scalar.value >= 0 else f"({float_text(scalar.value)})"


def element_as(letter: str, storage: str, dtype: DType, position: int) -> str:
    """The element at a position as a scalar of the letter's type, converted as kernels convert."""
    buffer = lir.Buffer(storage, dtype, (1,))
    body = KernelBody("", {}, {storage: ""})
    return body.scalar(lir.Load(buffer, (lir.Literal(position, I64),)).to(_DTYPES[letter]))


def as_element(text: str, letter: str, dtype: DType) -> str:
    """A C expression of a letter's type as an element of a dtype."""
    body = KernelBody("", {}, {})
    return body.scalar(lir.Local(text, _DTYPES[letter]).to(dtype))


def letter_of(scalar: Scalar) -> str:
    match scalar:
        case ScalarVar(letter=letter):
            return letter
        case Immediate(bool()):
            return "b"
        case Immediate(float()):
            return "f"
    return "i"
