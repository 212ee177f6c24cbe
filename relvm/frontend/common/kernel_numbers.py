"""Arithmetic of real and complex numbers in kernels, and rotations and reflections of vectors.

A number is a sequence of one scalar, or of two: the real and the imaginary part.  A matrix of such numbers is a
sequence of one or two buffers.  If the indices of rows are proven to be inside the matrix, the loops over a row become
SIMD loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from relvm.data_classes import value_record
from relvm.frontend.common.kernel_parts import larger, loops, size, smaller
from relvm.ir.dtypes import F32, F64
from relvm.ir.loop_ir import Buffer, Literal, Operation, Scalar, select
from relvm.kernels.kernel_builder import KernelBuilder

Number = Sequence[Scalar]
Place = Sequence[Scalar]

# The sums of squares, by dtype, that have lost nothing by overflow or underflow.
_USUAL_SQUARES = {F32: (1e-24, 1e30), F64: (1e-200, 1e200)}


def square_root(x: Scalar) -> Scalar:
    return Operation("sqrt", (x,), x.dtype)


def magnitude(x: Scalar) -> Scalar:
    return Operation("abs", (x,), x.dtype)


def with_sign(x: Scalar, sign: Scalar) -> Scalar:
    """Return |x| with the sign of another number."""
    return Operation("copysign", (x, sign), x.dtype)


def hypotenuse(x: Scalar, y: Scalar) -> Scalar:
    """Return sqrt(x^2 + y^2), also where the squares overflow or underflow.

    Notes
    -----
    Source: LAPACK, lapy2.
    """
    x, y = magnitude(x), magnitude(y)
    greatest, ratio = larger(x, y), smaller(x, y) / larger(x, y)
    zero, one = (Literal(value, x.dtype) for value in (0.0, 1.0))
    return select(greatest.eq(zero), zero, greatest * square_root(ratio * ratio + one))


def real(x: Scalar, like: Sequence[object]) -> Number:
    """Return a real number with as many parts as `like`."""
    return [x] if len(like) == 1 else [x, Literal(0.0, x.dtype)]


def named(k: KernelBuilder, name: str, x: Number) -> list[Scalar]:
    """Return a number whose parts are new variables."""
    return [k.let(name, part) for part in x]


def conjugate(x: Number) -> list[Scalar]:
    return [x[0], *(-part for part in x[1:])]


def squared(x: Number) -> Scalar:
    """Return |x|^2."""
    total = x[0] * x[0]
    for part in x[1:]:
        total = total + part * part
    return total


def difference(x: Number, y: Number) -> list[Scalar]:
    return [a - b for a, b in zip(x, y, strict=True)]


def scaled(x: Number, factor: Scalar) -> list[Scalar]:
    return [part * factor for part in x]


def product(k: KernelBuilder, x: Number, y: Number) -> list[Scalar]:
    if len(x) == 1:
        return [x[0] * y[0]]
    (a, b), (c, d) = ([k.let("part", part) for part in number] for number in (x, y))
    return [a * c - b * d, a * d + b * c]


def quotient(k: KernelBuilder, x: Number, y: Number) -> list[Scalar]:
    """Return x / y, also where the squares of the parts of y overflow or underflow."""
    if len(x) == 1:
        return [x[0] / y[0]]
    c, d = (k.let("part", part) for part in y)
    unit = k.let("unit", larger(magnitude(c), magnitude(d)))
    c, d = k.let("part", c / unit), k.let("part", d / unit)
    square = k.let("square", c * c + d * d)
    return [part / square for part in product(k, [part / unit for part in x], [c, -d])]


def load(matrix: Sequence[Buffer], at: Place) -> list[Scalar]:
    return [part[tuple(at)] for part in matrix]


def store(k: KernelBuilder, matrix: Sequence[Buffer], at: Place, value: Number) -> None:
    for part, each in zip(matrix, value, strict=True):
        k.store(part, tuple(at), each)


@value_record
class Reflection:
    """An elementary reflection H = I - tau v v*, whose adjoint maps a vector x to beta e1.

    Attributes
    ----------
    beta
        The norm of x with the sign opposite to the first element, or the first element if H is the identity.
    tau
        The factor, which is 0 if H is the identity.
    divisor
        The number by which the other elements of x are divided to get those of v.  The first element of v is 1.  If x
        was divided by a unit, so are the elements.
    """

    beta: Scalar
    tau: tuple[Scalar, ...]
    divisor: tuple[Scalar, ...]


def reflection(k: KernelBuilder, first: Number, rest: Scalar, is_reflected: Scalar) -> Reflection:
    """Return the reflection of a vector.

    first: its first element.   rest: the sum of the squares of its other elements.
    is_reflected: whether the vector has another element, or an imaginary part, to eliminate.  Otherwise, H is the
        identity.

    Notes
    -----
    Source: LAPACK, larfg.
    """
    dtype = rest.dtype
    zero, one = (Literal(value, dtype) for value in (0.0, 1.0))
    is_reflected = k.let("is_reflected", is_reflected)
    norm = k.let("norm", square_root(squared(first) + rest))
    beta = k.let("beta", select(is_reflected, select(first[0] < zero, norm, -norm), first[0]))
    divisor = k.let("divisor", select(is_reflected, beta, one))
    tau = [k.let("tau", select(is_reflected, (beta - first[0]) / divisor, zero))]
    tau += [k.let("tau", select(is_reflected, -part / divisor, zero)) for part in first[1:]]
    distance = [k.let("distance", select(is_reflected, first[0] - beta, one))]
    distance += [k.let("distance", select(is_reflected, part, zero)) for part in first[1:]]
    return Reflection(beta, tuple(tau), tuple(distance))


def eliminate(
    k: KernelBuilder,
    matrix: Sequence[Buffer],
    at: Callable[[Scalar], Place],
    first: Scalar,
    stop: Scalar,
    *,
    conjugates: bool = False,
) -> Reflection:
    """Return the reflection that eliminates the elements of a vector behind its first one.

    The vector of the reflection, without the first element, replaces these elements.  If the squares of the elements
    would overflow or underflow, the vector is divided by its greatest element first.

    at(i): returns the indices in `matrix` of element i of the vector.
    first, stop: the vector consists of the elements [first, stop).
    conjugates: whether the vector consists of the conjugates of the elements of `matrix`.

    Notes
    -----
    Source: LAPACK, larfg and nrm2.
    """
    dtype = matrix[0].dtype
    zero, one = (Literal(value, dtype) for value in (0.0, 1.0))
    least, greatest = _USUAL_SQUARES[dtype]

    def element(i: Scalar) -> list[Scalar]:
        x = load(matrix, at(i))
        return named(k, "x", conjugate(x) if conjugates else x)

    def in_units(x: Number) -> list[Scalar]:
        return named(k, "x", [part / unit for part in x])

    unit, rest = k.variable("unit", one), k.variable("rest", zero)
    with k.loop(stop, start=first + 1, name="i") as i:
        k.assign(rest, rest + squared(element(i)))
    head = element(first)
    behind = k.variable("behind", rest)  # is 0 only if all elements behind the first one are
    square = k.let("square", rest + squared(head))
    is_usual = (square >= least).logical_and(square <= greatest).logical_and(rest > zero)
    with k.branch(is_usual.logical_not()):
        k.assign(behind, zero)
        with k.loop(stop, start=first + 1, name="i") as i:
            for part in element(i):
                size_ = k.let("size", magnitude(part))
                with k.branch(size_ > behind):
                    k.assign(behind, size_)
        largest: Scalar = behind
        for part in head:
            largest = larger(largest, magnitude(part))
        largest = k.let("largest", smaller(largest, Literal(float(np.finfo(dtype.numpy).max), dtype)))
        with k.branch(largest > zero):
            k.assign(unit, largest)
        k.assign(rest, zero)
        with k.loop(stop, start=first + 1, name="i") as i:
            k.assign(rest, rest + squared(in_units(element(i))))
    remains = behind + rest  # NaN if an element is
    for part in head[1:]:
        remains = remains + magnitude(part)
    found = reflection(k, in_units(head), rest, remains.ne(zero))
    with k.loop(stop, start=first + 1, name="i") as i:
        store(k, matrix, at(i), quotient(k, in_units(element(i)), found.divisor))
    return Reflection(k.let("beta", found.beta * unit), found.tau, found.divisor)


def eliminate_column(
    k: KernelBuilder, matrix: Sequence[Buffer], place: Place, column: Scalar, first: Scalar, taus: Sequence[Buffer]
) -> Reflection:
    """Return the reflection that eliminates the elements of a column below the row `first`.

    The vector of the reflection, without its first element, replaces these elements.  tau is stored in taus[column].
    """
    found = eliminate(k, matrix, lambda row: (*place, row, column), first, size(matrix[0].shape[-2]))
    store(k, taus, (*place, column), found.tau)
    return found


def copy_reflection(
    k: KernelBuilder, matrix: Sequence[Buffer], place: Place, column: Scalar, first: Scalar, vector: Sequence[Buffer]
) -> None:
    """Copy the vector of a reflection that `eliminate_column` stored, with its first element, which is 1."""
    one = real(Literal(1.0, matrix[0].dtype), matrix)
    with k.loop(size(matrix[0].shape[-2]), start=first, name="row") as row:
        value = load(matrix, (*place, row, column))
        store(k, vector, (*place, row), [select(row.eq(first), x, y) for x, y in zip(one, value, strict=True)])


def rotate_rows(
    k: KernelBuilder, matrix: Sequence[Buffer], place: Place, rows: tuple[Scalar, Scalar], turn: tuple[Scalar, Scalar]
) -> None:
    """Replace two rows x and y by c x + s y and c y - s x.   turn: c and s."""
    (first, second), (c, s) = rows, turn
    for part in matrix:
        with k.loop(size_of_row(part), name="column") as column:
            x = k.let("x", part[(*place, first, column)])
            y = k.let("y", part[(*place, second, column)])
            k.store(part, (*place, first, column), c * x + s * y)
            k.store(part, (*place, second, column), c * y - s * x)


def negate_row(k: KernelBuilder, matrix: Sequence[Buffer], place: Place, row: Scalar) -> None:
    for part in matrix:
        with k.loop(size_of_row(part), name="column") as column:
            k.store(part, (*place, row, column), -part[(*place, row, column)])


def size_of_row(matrix: Buffer) -> Scalar:
    return size(matrix.shape[-1])


def reflect_row(
    k: KernelBuilder,
    matrix: Sequence[Buffer],
    place: Place,
    row: Scalar,
    vector: Sequence[Buffer],
    start: Scalar,
    tau: Number,
    *,
    conjugates: bool,
) -> None:
    """Replace a row x by x - tau (v* x) v, or by x - tau (v^T x) conj(v) if not `conjugates`.

    vector: v, of which the elements from `start` on are used.
    """
    stop = size_of_row(matrix[0])
    totals = [k.variable("total", Literal(0.0, matrix[0].dtype)) for _ in matrix]
    with k.loop(stop, start=start, name="column", simd=True) as column:
        v, x = load(vector, (*place, column)), load(matrix, (*place, row, column))
        terms = product(k, conjugate(v) if conjugates else v, x)
        for total, term in zip(totals, terms, strict=True):
            k.assign(total, total + term)
    change = named(k, "change", product(k, tau, totals))
    with k.loop(stop, start=start, name="column") as column:
        v = load(vector, (*place, column))
        terms = product(k, v if conjugates else conjugate(v), change)
        at = (*place, row, column)
        store(k, matrix, at, difference(load(matrix, at), terms))


def multiply_reflections(
    k: KernelBuilder,
    matrix: Sequence[Buffer],
    place: Place,
    taus: Sequence[Buffer],
    vector: Sequence[Buffer],
    rows: Sequence[Buffer],
) -> None:
    """Store in `rows` the transposed product of the reflections that eliminate a square matrix below its subdiagonal.

    matrix, taus: the reflections, as `eliminate_column` stores them.   vector: memory for the vector of a reflection.
    """
    count, (zero, one) = size_of_row(matrix[0]), (Literal(value, matrix[0].dtype) for value in (0.0, 1.0))
    with loops(k, rows[0].shape[-2:]) as (row, column):
        store(k, rows, (*place, row, column), real(select(row.eq(column), one, zero), matrix))
    with k.loop(count - 1, name="number") as number:
        step = k.let("step", count - 2 - number)
        with k.branch((step >= 0).logical_and(step < count - 1)):
            copy_reflection(k, matrix, place, step, step + 1, vector)
            tau = named(k, "tau", load(taus, (*place, step)))
            with k.loop(count, start=step + 1, name="row") as row:
                reflect_row(k, rows, place, row, vector, step + 1, tau, conjugates=True)


def reflect_columns(
    k: KernelBuilder,
    matrix: Sequence[Buffer],
    place: Place,
    columns: Scalar,
    vector: Sequence[Buffer],
    start: Scalar,
    tau: Number,
    sums: Sequence[Buffer],
) -> None:
    """Replace the columns x, from index `columns` on, by x - tau (v* x) v.

    vector: v, of which the elements from `start` on are used.   sums: memory for a number for each column.
    """
    rows, stop = size(matrix[0].shape[-2]), size_of_row(matrix[0])
    for part in sums:
        with k.loop(stop, start=columns, name="column") as column:
            k.store(part, (*place, column), Literal(0.0, part.dtype))
    with k.loop(rows, start=start, name="row") as row:
        v = named(k, "v", conjugate(load(vector, (*place, row))))
        with k.loop(stop, start=columns, name="column") as column:
            terms = product(k, v, load(matrix, (*place, row, column)))
            at = (*place, column)
            store(k, sums, at, [x + y for x, y in zip(load(sums, at), terms, strict=True)])
    with k.loop(rows, start=start, name="row") as row:
        v = named(k, "v", product(k, tau, load(vector, (*place, row))))
        with k.loop(stop, start=columns, name="column") as column:
            terms = product(k, v, load(sums, (*place, column)))
            at = (*place, row, column)
            store(k, matrix, at, difference(load(matrix, at), terms))
