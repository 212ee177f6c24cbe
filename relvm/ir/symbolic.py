"""Symbolic dimensions: integers, variables, and arithmetic on them in a canonical form.

A dimension is a Python int, or a `Dim`: a polynomial with integer coefficients over atoms.  An atom is a `DimVar`, or a
floordiv, mod, min or max of two dimensions.  Arithmetic normalizes every result.  Dimensions that are equal as
polynomials therefore compare equal with `==`, and a constant result is a plain int.  The value of a variable is an
integer >= 0, or any integer if the variable is signed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field
from functools import cached_property, lru_cache

from relvm.data_classes import cached_hash, dataclass
from relvm.errors import RelvmTypeError, RelvmUnsupportedError
from relvm.quoting import terminal

_serial = itertools.count()
# Limits of a dimension.  The largest dimension in the models of benchmarks/models has 432 parts.
_DEEPEST = 100  # nesting depth of floordiv, mod, min and max
_LARGEST = 2_000  # variables, constants and operators
_MAX_PRODUCTS = 10_000  # number of products of terms when two sums are multiplied
_WIDEST = 128  # bits of a constant


class ComplexDimError(RelvmUnsupportedError):
    """The result of an operation on dimensions has too many parts, or parts that are too deeply nested."""


@dataclass(frozen=True, eq=False)
class DimVar:
    """A dimension variable: a named unknown size, compared by identity.  Use `dim_var` to create one.

    signed: whether the value can be negative, because it is the value of a scalar, as in `i64(n)`.  The value of any
    other variable is at least 0.
    serial: the number of variables created before this one.
    """

    name: str
    signed: bool = False
    serial: int = field(default_factory=lambda: next(_serial), repr=False)

    @property
    def sort_key(self) -> tuple:
        """The key by which terms are sorted in the canonical form: the name, then the order of creation."""
        return (0, self.name, self.serial)


@cached_hash
@dataclass(frozen=True)
class DimOp:
    """The floordiv, mod, min or max of two dimensions, `function(left, right)`, in simplest form."""

    function: str
    left: AnyDim
    right: AnyDim

    @cached_property
    def sort_key(self) -> tuple:
        return (1, self.function, sort_key(self.left), sort_key(self.right))

    @cached_property
    def depth(self) -> int:
        """The nesting depth of DimOps: 1 if `left` and `right` contain no DimOp."""
        return 1 + max(nesting_depth(self.left), nesting_depth(self.right))

    @cached_property
    def node_count(self) -> int:
        """The number of variables, constants and operators in the expression.  Each occurrence counts."""
        return 1 + node_count(self.left) + node_count(self.right)


Atom = DimVar | DimOp
Monomial = tuple[Atom, ...]  # a product of atoms, sorted; the power k of an atom is written as k copies


@cached_hash
@dataclass(frozen=True)
class Dim:
    """A symbolic dimension: a sorted sum of terms `coefficient * monomial`.  A constant dimension is an int instead.

    Use `dim_var` and arithmetic on dimensions to create one.
    """

    terms: tuple[tuple[Monomial, int], ...]

    def __add__(self, other: AnyDim) -> AnyDim:
        return _combine(self, other, 1)

    def __radd__(self, other: AnyDim) -> AnyDim:
        return _combine(other, self, 1)

    def __sub__(self, other: AnyDim) -> AnyDim:
        return _combine(self, other, -1)

    def __rsub__(self, other: AnyDim) -> AnyDim:
        return _combine(other, self, -1)

    def __mul__(self, other: AnyDim) -> AnyDim:
        return _multiply(self, other)

    def __rmul__(self, other: AnyDim) -> AnyDim:
        return _multiply(other, self)

    def __neg__(self) -> AnyDim:
        return _multiply(self, -1)

    def __floordiv__(self, other: AnyDim) -> AnyDim:
        return dim_op("floordiv", self, other)

    def __rfloordiv__(self, other: AnyDim) -> AnyDim:
        return dim_op("floordiv", other, self)

    def __mod__(self, other: AnyDim) -> AnyDim:
        return dim_op("mod", self, other)

    def __rmod__(self, other: AnyDim) -> AnyDim:
        return dim_op("mod", other, self)

    def __repr__(self) -> str:
        return format_dim(self)


AnyDim = int | Dim


def dim_var(name: str, *, signed: bool = False) -> Dim:
    """Return a new dimension variable, as a dimension.

    The variable differs from every other variable, even from one of the same name.

    signed: whether the value can be negative, because it is the value of a scalar, as in `i64(n)`.
    """
    return var_dim(DimVar(name, signed))


def var_dim(var: DimVar) -> Dim:
    """Return the dimension that consists of `var` only."""
    return Dim((((var,), 1),))


def known_size(dim: AnyDim) -> int:
    """Return a constant dimension as an int.  Raise RelvmTypeError if the dimension is symbolic."""
    if not isinstance(dim, int):
        raise RelvmTypeError(f"expected a known size, got {dim}")
    return dim


def known_sizes(dims: Collection[AnyDim]) -> tuple[int, ...] | None:
    """Return constant dimensions as ints, or None if one of them is symbolic."""
    sizes = tuple(dim for dim in dims if isinstance(dim, int))
    return sizes if len(sizes) == len(dims) else None


def as_var(dim: AnyDim) -> DimVar | None:
    """Return the variable if `dim` is a single variable, otherwise None."""
    match dim:
        case Dim(terms=(((DimVar() as var,), 1),)):
            return var
    return None


def dim_op(function: str, left: AnyDim, right: AnyDim) -> AnyDim:
    """Return `function(left, right)` in canonical form.

    Parameters
    ----------
    function
        add, sub, mul, floordiv, mod, min or max (csrc/tables/dim_operators.def).  floordiv and mod round toward minus
        infinity.

    Raises
    ------
    ZeroDivisionError
        floordiv or mod by the constant 0.
    ComplexDimError
        The result is too complex: operators are nested too deeply, or its `node_count` is too large.
    RelvmUnsupportedError
        A constant has too many bits.
    """
    match function:
        case "add":
            return _combine(left, right, 1)
        case "sub":
            return _combine(left, right, -1)
        case "mul":
            return _multiply(left, right)
        case "floordiv":
            return _floordiv(left, right)
        case "mod":
            return _mod(left, right)
        case "min" | "max":
            return _extreme(function, left, right)
    raise AssertionError(f"unknown dimension operator {function}")


def product(dims) -> AnyDim:
    """Return the product of `dims`.  The product of no dimensions is 1."""
    result: AnyDim = 1
    for dim in dims:
        result = _multiply(result, dim)
    return result


def difference(left: AnyDim, right: AnyDim) -> int | None:
    """Return `left - right` if it is the same for all values of the variables, otherwise None.

    The result 0 proves that `left` and `right` are equal.
    """
    result = _combine(left, right, -1)
    return result if isinstance(result, int) else None


def is_never_negative(dim: AnyDim) -> bool:
    """Return whether a simple rule proves that `dim` is never negative.

    The result False means that no rule proves this, not that `dim` can be negative.
    """
    if isinstance(dim, int):
        return dim >= 0
    return all(coefficient > 0 and all(map(_is_never_negative_atom, monomial)) for monomial, coefficient in dim.terms)


def coefficient(dim: AnyDim, var: DimVar) -> AnyDim:
    """Return the sum of the factors of `var` in the terms of a polynomial that contain it once, as in factor * var."""
    total: AnyDim = 0
    for monomial, factor in _terms(dim).items():
        if monomial.count(var) == 1:
            rest = tuple(atom for atom in monomial if atom != var)
            total = _combine(total, Dim(((rest, factor),)) if rest else factor, 1)
    return total


def exact_quotient(dividend: AnyDim, divisor: AnyDim) -> AnyDim | None:
    """Return the dimension q with `q * divisor == dividend` for all values of the variables, or None if q is not found.

    A quotient is found only if the divisor is a constant or a single term, as in `n * 2048 / 2048`, or equals the
    dividend.
    """
    top, bottom = _terms(dividend), _terms(divisor)
    if len(bottom) != 1:
        return 1 if top == bottom else None
    ((factors, factor),) = bottom.items()
    if factor == 0:
        return None
    result: dict[Monomial, int] = {}
    for monomial, coefficient in top.items():
        rest = list(monomial)
        for atom in factors:
            if atom not in rest:
                return None
            rest.remove(atom)
        if coefficient % factor:
            return None
        result[tuple(rest)] = coefficient // factor
    return _make(result)


def substitute(dim: AnyDim, values: Mapping[DimVar, AnyDim]) -> AnyDim:
    """Return `dim` with each variable in `values` replaced by its value."""
    return evaluate_with(dim, lambda var: values.get(var, None))


def evaluate_with(dim: AnyDim, value_of: Callable[[DimVar], AnyDim | None]) -> AnyDim:
    """Return `dim` with each variable replaced by `value_of(variable)`.  A variable remains if `value_of` returns None
    for it."""
    if isinstance(dim, int):
        return dim
    total: AnyDim = 0
    for monomial, coefficient in dim.terms:
        term: AnyDim = coefficient
        for atom in monomial:
            term = _multiply(term, _atom_value(atom, value_of))
        total = _combine(total, term, 1)
    return total


def dim_vars(dim: AnyDim) -> Iterator[DimVar]:
    """Yield the variables in `dim`, in order of their occurrence.  A variable that occurs several times is repeated."""
    if isinstance(dim, int):
        return
    for monomial, _ in dim.terms:
        for atom in monomial:
            if isinstance(atom, DimVar):
                yield atom
            else:
                yield from dim_vars(atom.left)
                yield from dim_vars(atom.right)


def node_count(dim: AnyDim) -> int:
    """Return the number of variables, constants and operators in `dim`.  Each occurrence counts."""
    if isinstance(dim, int):
        return 1
    total = 0
    for monomial, _ in dim.terms:
        total += len(monomial) or 1
        for atom in monomial:
            if isinstance(atom, DimOp):
                total += atom.node_count - 1
    return total


def nesting_depth(dim: AnyDim) -> int:
    """Return the nesting depth of floordiv, mod, min and max in `dim`."""
    return max((atom.depth for atom in _operators_of(dim)), default=0)


def format_dim(dim: AnyDim, name_of: Callable[[DimVar], str] = lambda var: terminal(var.name)) -> str:
    """Return the text of a dimension, such as `n * 2 + (m // 3)`.

    name_of: a function that returns the name of a variable.  By default, unprintable characters in the name are
    escaped.
    """
    if isinstance(dim, int):
        return str(dim)
    pieces: list[str] = []
    for monomial, coefficient in dim.terms:
        factors = [_format_atom(atom, name_of) for atom in monomial]
        size = abs(coefficient)
        if size != 1 or not factors:
            factors.append(str(size))
        text = " * ".join(factors)
        sign = "-" if coefficient < 0 else "+"
        pieces.append(f" {sign} {text}" if pieces else (f"-{text}" if coefficient < 0 else text))
    return "".join(pieces)


def _format_atom(atom: Atom, name_of: Callable[[DimVar], str]) -> str:
    if isinstance(atom, DimVar):
        return name_of(atom)
    left, right = format_dim(atom.left, name_of), format_dim(atom.right, name_of)
    match atom.function:
        case "min" | "max":
            return f"{atom.function}({left}, {right})"
        case "floordiv":
            return f"({_grouped(atom.left, left)} // {_grouped(atom.right, right)})"
        case _:
            return f"({_grouped(atom.left, left)} % {_grouped(atom.right, right)})"


def _grouped(dim: AnyDim, text: str) -> str:
    return text if (isinstance(dim, int) and dim >= 0) or as_var(dim) else f"({text})"


def _atom_value(atom: Atom, value_of: Callable[[DimVar], AnyDim | None]) -> AnyDim:
    if isinstance(atom, DimVar):
        value = value_of(atom)
        return var_dim(atom) if value is None else value
    return dim_op(atom.function, evaluate_with(atom.left, value_of), evaluate_with(atom.right, value_of))


def _terms(dim: AnyDim) -> dict[Monomial, int]:
    return {(): dim} if isinstance(dim, int) else dict(dim.terms)


def _make(terms: Mapping[Monomial, int]) -> AnyDim:
    nonzero = {monomial: coefficient for monomial, coefficient in terms.items() if coefficient}
    for coefficient in nonzero.values():
        _expect_narrow_constant(coefficient)
    if not nonzero:
        return 0
    if set(nonzero) == {()}:
        return nonzero[()]
    ordered = list(nonzero.items())
    if len(ordered) > 1:  # constants come last, so that `n + 1` is printed as usual
        ordered.sort(key=lambda term: (not term[0], -len(term[0]), [atom.sort_key for atom in term[0]]))
    result = Dim(tuple(ordered))
    _expect_small_dim(node_count(result))
    return result


def _expect_narrow_constant(constant: int) -> int:
    """Raise RelvmUnsupportedError if `constant` has more than 128 bits.  Otherwise return it."""
    if constant.bit_length() > _WIDEST:
        raise RelvmUnsupportedError(
            f"a dimension contains a constant of {constant.bit_length()} bits; expected at most {_WIDEST}"
        )
    return constant


def _expect_small_dim(size: int) -> None:
    """Raise RelvmUnsupportedError if `size`, the `node_count` of a dimension, exceeds `_LARGEST`."""
    if size > _LARGEST:
        raise ComplexDimError(
            f"a dimension has {size} variables and operators; expected at most {_LARGEST};"
            " give one of the variables a fixed size"
        )


def sort_key(dim: AnyDim) -> tuple:
    """Return a key that orders dimensions the same in every process."""
    if isinstance(dim, int):
        return (0, dim)
    return (1, tuple((tuple(atom.sort_key for atom in monomial), coefficient) for monomial, coefficient in dim.terms))


def _combine(left: AnyDim, right: AnyDim, sign: int) -> AnyDim:
    if isinstance(left, int) and isinstance(right, int):
        return _expect_narrow_constant(left + sign * right)
    if right == 0:
        return left
    if left == 0 and sign == 1:
        return right
    terms = _terms(left)
    for monomial, coefficient in _terms(right).items():
        terms[monomial] = terms.get(monomial, 0) + sign * coefficient
    return _make(terms)


def _multiply(left: AnyDim, right: AnyDim) -> AnyDim:
    if isinstance(left, int) and isinstance(right, int):
        return _expect_narrow_constant(left * right)
    if left == 1:
        return right
    if right == 1:
        return left
    return _expand(left, right)


@lru_cache(maxsize=4096)  # the same sizes are multiplied in many places of a build
def _expand(left: AnyDim, right: AnyDim) -> AnyDim:
    """Return the product of two dimensions, at least one of which is symbolic, as a sum of monomials."""
    terms: dict[Monomial, int] = {}
    firsts, seconds = _terms(left), _terms(right)
    if len(firsts) * len(seconds) > _MAX_PRODUCTS:
        raise ComplexDimError(
            f"the product of dimensions with {len(firsts)} and {len(seconds)} terms is too large; expected at most"
            f" {_MAX_PRODUCTS} products of terms; give one of the symbolic dimensions a fixed size"
        )
    for first, a in firsts.items():
        for second, b in seconds.items():
            monomial = tuple(sorted(first + second, key=lambda atom: atom.sort_key))
            terms[monomial] = terms.get(monomial, 0) + a * b
    return _make(terms)


def clear_product_cache() -> None:
    """Clear the cache of products of dimensions, whose entries are useful only within one build."""
    _expand.cache_clear()


def _floordiv(left: AnyDim, right: AnyDim) -> AnyDim:
    if right == 0:
        raise ZeroDivisionError("division of a dimension by 0")
    if isinstance(left, int) and isinstance(right, int):
        return left // right
    # (k * right + rest) // right == k + rest // right.  k contains the terms that are divisible by `right`, and part of
    # the constant.
    if isinstance(right, int):
        terms = _terms(left)
        exact = {m: c // right for m, c in terms.items() if c % right == 0 or m == ()}
        rest = _make({m: c % right if m == () else c for m, c in terms.items() if c % right})
        whole = _make(exact)
        if whole != 0:
            return _combine(whole, _floordiv(rest, right), 1)
        match rest:  # (a // b + k) // c == (a + k * b) // (b * c)
            case Dim(terms=(((DimOp("floordiv", inner, int() as divisor),), 1), *others)) if divisor > 0 and right > 0:
                constants = [c for m, c in others if m == ()]
                if len(constants) == len(others):
                    return _floordiv(_combine(inner, sum(constants) * divisor, 1), divisor * right)
        if rest != left:
            return _floordiv(rest, right)
    return _operator("floordiv", left, right)


def _mod(left: AnyDim, right: AnyDim) -> AnyDim:
    if right == 0:
        raise ZeroDivisionError("a dimension modulo 0")
    if isinstance(left, int) and isinstance(right, int):
        return left % right
    if isinstance(right, int):
        rest = _make({m: c % right for m, c in _terms(left).items()})
        if isinstance(rest, int):
            return rest % right
        left = rest
    return _operator("mod", left, right)


def _extreme(function: str, left: AnyDim, right: AnyDim) -> AnyDim:
    for low, high in ((left, right), (right, left)):
        if is_never_negative(_combine(high, low, -1)):
            return low if function == "min" else high
    first, second = sorted((left, right), key=sort_key)
    return _operator(function, first, second)


def _operator(function: str, left: AnyDim, right: AnyDim) -> AnyDim:
    result = DimOp(function, left, right)
    if result.depth > _DEEPEST:
        raise ComplexDimError(
            f"the expression of a dimension nests {result.depth} operators, expected at most {_DEEPEST}; give one of"
            " its symbolic dimensions a fixed size"
        )
    return _make({(result,): 1})


def _operators_of(dim: AnyDim) -> Iterator[DimOp]:
    if isinstance(dim, Dim):
        yield from (atom for monomial, _ in dim.terms for atom in monomial if isinstance(atom, DimOp))


def _is_never_negative_atom(atom: Atom) -> bool:
    if isinstance(atom, DimVar):
        return not atom.signed
    left, right = is_never_negative(atom.left), is_never_negative(atom.right)
    match atom.function:
        case "max":
            return left or right
        case "mod":  # the result has the sign of the divisor
            return right
    return left and right
