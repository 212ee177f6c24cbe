"""Kernels for Hessenberg and Schur forms, and for the eigenvalues of general matrices.  They compute in f64."""

from __future__ import annotations

from collections.abc import Sequence

from relvm.frontend.common.kernel_numbers import (
    Number,
    conjugate,
    copy_reflection,
    difference,
    eliminate_column,
    hypotenuse,
    load,
    magnitude,
    multiply_reflections,
    named,
    product,
    quotient,
    real,
    reflect_columns,
    reflect_row,
    reflection,
    scaled,
    square_root,
    squared,
    store,
    with_sign,
)
from relvm.frontend.common.kernel_parts import buffers, larger, loops, size, smaller
from relvm.frontend.common.symmetric_eigenvalues import (
    EPSILON,
    Decomposition,
    decomposition,
    fail_if_nan,
    result,
    scale_of,
)
from relvm.ir.dtypes import F64, I64
from relvm.ir.kernel_def import KernelDef
from relvm.ir.loop_ir import Buffer, Literal, Local, Scalar, select
from relvm.ir.symbolic import dim_op
from relvm.ir.types import TensorType
from relvm.kernels.kernel_builder import KernelBuilder

_ITERATIONS = 60  # limit on the iterations, for each eigenvalue
_ZERO, _ONE = (Literal(value, F64) for value in (0.0, 1.0))
_Parts = Sequence[Buffer]
_Place = Sequence[Scalar]


def hessenberg_kernel(name: str, matrix: Sequence[TensorType]) -> Decomposition:
    """Return the kernel of the Hessenberg form of square matrices, in the last two axes.

    It has two results, as in LAPACK.  The first is the Hessenberg matrix.  Below it are the vectors of the reflections,
    without their first element, which is 1.  The second result contains the factors (tau) of the reflections.

    matrix: the types of an f64 tensor, or of the real and the imaginary part of a complex one.

    Notes
    -----
    Source: LAPACK, gehd2.
    """
    k = KernelBuilder()
    a = buffers("a", matrix)
    *batch, dim, _ = a[0].shape
    shape = (*batch, dim, dim)
    outs = result("out", shape, len(a))
    factors = result("factors", (*batch, dim_op("max", dim_op("sub", dim, 1), 0)), len(a))
    v, sums, taus = (result(each, (*batch, dim), len(a)) for each in ("v", "sums", "taus"))
    with loops(k, batch) as place:
        scale = scale_of(k, a, place)
        with loops(k, (dim, dim)) as at:
            store(k, outs, (*place, *at), [part / scale for part in load(a, (*place, *at))])
        _reduce_to_hessenberg(k, outs, place, (v, sums, taus))
        with loops(k, (dim, dim)) as (row, column), k.branch(row <= column + 1):
            store(k, outs, (*place, row, column), scaled(load(outs, (*place, row, column)), scale))
        with k.loop(size(factors[0].shape[-1]), name="i") as i, k.branch(i < size(dim)):
            store(k, factors, (*place, i), load(taus, (*place, i)))
    memory = [*v, *sums, *taus]
    outputs = (*outs, *factors, *memory)
    return decomposition(KernelDef(name, tuple(a), outputs, k.finish()), matrix, memory)


def _reduce_to_hessenberg(k: KernelBuilder, a: _Parts, place: _Place, memory: tuple[_Parts, _Parts, _Parts]) -> None:
    """Reduce a matrix to Hessenberg form in place.  The vectors of the reflections are stored below it.

    memory: buffers for the vector of a reflection, for sums of columns, and for the factors of all reflections.
    """
    v, sums, taus = memory
    count = size(a[0].shape[-1])
    with k.loop(count - 1, name="step") as step:
        found = eliminate_column(k, a, place, step, step + 1, taus)
        store(k, a, (*place, step + 1, step), real(found.beta, a))
        copy_reflection(k, a, place, step, step + 1, v)
        with k.loop(count, name="row") as row:
            reflect_row(k, a, place, row, v, step + 1, found.tau, conjugates=False)
        reflect_columns(k, a, place, step + 1, v, step + 1, conjugate(found.tau), sums)


def schur_kernel(name: str, matrix: Sequence[TensorType], *, has_vectors: bool) -> Decomposition:
    """Return the kernel of the Schur decomposition Z T Z* of square matrices, in the last two axes.

    Its results are T, Z if `has_vectors`, the eigenvalues, and for each matrix the number of eigenvalues that were not
    found (i64).  The eigenvalues have a real and an imaginary part.  T of a real matrix is real.  It has a block of two
    rows on the diagonal for each conjugate pair of eigenvalues, with equal diagonal elements.

    matrix: the types of an f64 tensor, or of the real and the imaginary part of a complex one.

    Notes
    -----
    Source: LAPACK, lahqr and lanv2.
    """
    k = KernelBuilder()
    a = buffers("a", matrix)
    *batch, dim, _ = a[0].shape
    shape = (*batch, dim, dim)
    t, rows = (result(each, shape, len(a)) for each in ("t", "rows"))
    z = result("z", shape, len(a)) if has_vectors else []
    values = result("values", (*batch, dim), 2)
    failures = Buffer("failures", I64, tuple(batch), True)
    v, sums, taus = (result(each, (*batch, dim), len(a)) for each in ("v", "sums", "taus"))
    with loops(k, batch) as place:
        scale = scale_of(k, a, place)
        with loops(k, (dim, dim)) as at:
            store(k, t, (*place, *at), [part / scale for part in load(a, (*place, *at))])
        _compute_schur(k, place, t, rows if has_vectors else [], values, failures, (v, sums, taus))
        fail_if_nan(k, place, scale, failures, size(dim))
        with loops(k, (dim, dim)) as (row, column):
            store(k, t, (*place, row, column), scaled(load(t, (*place, row, column)), scale))
            if has_vectors:
                store(k, z, (*place, column, row), load(rows, (*place, row, column)))
        with k.loop(size(dim), name="row") as row:
            store(k, values, (*place, row), scaled(load(values, (*place, row)), scale))
    memory = [*rows, *v, *sums, *taus]
    outputs = (*t, *z, *values, failures, *memory)
    return decomposition(KernelDef(name, tuple(a), outputs, k.finish()), matrix, memory)


def _compute_schur(
    k: KernelBuilder,
    place: _Place,
    t: _Parts,
    rows: _Parts,
    values: _Parts,
    failures: Buffer,
    memory: tuple[_Parts, _Parts, _Parts],
) -> None:
    """Compute the Schur form of a matrix in place, and its eigenvalues.

    rows: the buffers for the transpose of Z, or an empty sequence if Z is not computed.
    memory: as for `_reduce_to_hessenberg`.
    """
    v, _, taus = memory
    count = size(t[0].shape[-1])
    _reduce_to_hessenberg(k, t, place, memory)
    if rows:
        multiply_reflections(k, t, place, taus, v, rows)
    norm = k.variable("norm", _ZERO)
    with loops(k, t[0].shape[-2:]) as (row, column):
        with k.branch(row > column + 1):
            store(k, t, (*place, row, column), real(_ZERO, t))
        for part in t:
            k.assign(norm, larger(norm, magnitude(part[(*place, row, column)])))
    last, tries = k.variable("last", count - 1), k.variable("tries", Literal(0, I64))
    with k.loop(count * _ITERATIONS, name="iteration"), k.branch(last >= 0):
        high = k.let("high", last)
        with k.branch((high >= 0).logical_and(high < count)):
            begin = k.variable("begin", Literal(0, I64))  # the first row of the block that ends at `high`
            with k.loop(high, name="i") as i:
                sizes = _length(load(t, (*place, i, i))) + _length(load(t, (*place, i + 1, i + 1)))
                sizes = k.let("sizes", sizes)
                limit = select(sizes.eq(_ZERO), norm, sizes) * EPSILON
                with k.branch(_length(load(t, (*place, i + 1, i))) <= limit):
                    store(k, t, (*place, i + 1, i), real(_ZERO, t))
                    k.assign(begin, i + 1)
            low = k.let("low", begin)
            (_finish_complex if len(t) == 2 else _finish_real)(k, place, t, rows, values, (low, high), last, tries)
    k.store(failures, tuple(place), last + 1)


def _length(x: Number) -> Scalar:
    """Return |x| of a real number, and |re| + |im| of a complex one."""
    total = magnitude(x[0])
    for part in x[1:]:
        total = total + magnitude(part)
    return total


# ---- real matrices ----


def _finish_real(
    k: KernelBuilder,
    place: _Place,
    t: _Parts,
    rows: _Parts,
    values: _Parts,
    block: tuple[Scalar, Scalar],
    last: Local,
    tries: Local,
) -> None:
    """Take the eigenvalues of a block of one or two rows, or apply one QR iteration to a larger one.

    block: the first and the last row of the block.
    last: the variable that contains the index of the last row whose eigenvalue is not known yet.
    tries: the number of iterations since the last eigenvalue was found.
    """
    low, high = block
    with k.branch(low.eq(high)):
        store(k, values, (*place, high), [t[0][(*place, high, high)], _ZERO])
        k.assign(last, high - 1)
        k.assign(tries, 0)
    before = k.let("before", high - 1)
    with k.branch((before >= 0).logical_and(before < high)):
        with k.branch(low.eq(before)):
            _split_block(k, place, t[0], rows, values, (before, high))
            k.assign(last, high - 2)
            k.assign(tries, 0)
        with k.branch((low >= 0).logical_and(low < before)):
            k.assign(tries, tries + 1)
            _francis_step(k, place, t[0], rows, (low, before, high), tries)


def _turn_real(
    k: KernelBuilder, place: _Place, t: Buffer, rows: _Parts, pair: tuple[Scalar, Scalar], turn: tuple[Scalar, Scalar]
) -> None:
    """Apply the similarity transform of a rotation of two rows.

    pair: the indices of the rows.   turn: the cosine and the sine of the angle.
    """
    count = size(t.shape[-1])
    first, second = pair
    c, s = turn

    def rotate(matrix: Buffer, one: Sequence[Scalar], other: Sequence[Scalar]) -> None:
        x, y = k.let("x", matrix[(*place, *one)]), k.let("y", matrix[(*place, *other)])
        k.store(matrix, (*place, *one), c * x + s * y)
        k.store(matrix, (*place, *other), c * y - s * x)

    with k.loop(count, name="column") as column:
        rotate(t, (first, column), (second, column))
    with k.loop(count, name="row") as row:
        rotate(t, (row, first), (row, second))
    for part in rows:
        with k.loop(count, name="column") as column:
            rotate(part, (first, column), (second, column))


def _split_block(
    k: KernelBuilder, place: _Place, t: Buffer, rows: _Parts, values: _Parts, pair: tuple[Scalar, Scalar]
) -> None:
    """Bring a diagonal block of two rows into the form of a Schur decomposition, and store the block's eigenvalues."""
    first, second = pair
    a, b, c, d = (k.let("part", t[(*place, i, j)]) for i in pair for j in pair)
    p = k.let("p", (a - d) * 0.5)
    scale = k.let("scale", larger(magnitude(p), larger(magnitude(b), magnitude(c))))
    divisor = k.let("divisor", select(scale.eq(_ZERO), _ONE, scale))
    square = k.let("square", (p / divisor) * (p / divisor) + (b / divisor) * (c / divisor))
    is_real = k.let("is_real", square >= _ZERO)
    with k.branch(is_real):  # (p + root, c) is an eigenvector
        root = k.let("root", square_root(square) * divisor)
        x = k.let("x", p + with_sign(root, p))
        length = k.let("length", hypotenuse(x / divisor, c / divisor) * divisor)
        is_null = k.let("is_null", length.eq(_ZERO))
        turn = k.let("c", select(is_null, _ONE, x / length)), k.let("s", select(is_null, _ZERO, c / length))
        _turn_real(k, place, t, rows, pair, turn)
        k.store(t, (*place, second, first), _ZERO)
        for each in pair:
            store(k, values, (*place, each), [t[(*place, each, each)], _ZERO])
    with k.branch(is_real.logical_not()):  # make the diagonal elements equal
        total = k.let("total", b + c)
        tau = k.let("tau", hypotenuse(total / divisor, (a - d) / divisor) * divisor)
        is_equal = k.let("is_equal", tau.eq(_ZERO))
        cosine = k.let("cosine", square_root((magnitude(total) / select(is_equal, _ONE, tau) + 1.0) * 0.5))
        sine = -(p / (select(is_equal, _ONE, tau) * cosine)) * with_sign(_ONE, total)
        turn = k.let("c", select(is_equal, _ONE, cosine)), k.let("s", select(is_equal, _ZERO, sine))
        _turn_real(k, place, t, rows, pair, turn)
        middle = k.let("middle", (t[(*place, first, first)] + t[(*place, second, second)]) * 0.5)
        for each in pair:
            k.store(t, (*place, each, each), middle)
        across = [magnitude(t[(*place, *at)]) for at in (pair, (second, first))]
        part = k.let("imaginary", square_root(across[0]) * square_root(across[1]))
        store(k, values, (*place, first), [middle, part])
        store(k, values, (*place, second), [middle, -part])


def _francis_step(
    k: KernelBuilder,
    place: _Place,
    t: Buffer,
    rows: _Parts,
    block: tuple[Scalar, Scalar, Scalar],
    tries: Scalar,
) -> None:
    """Apply one QR iteration with two shifts.   block: the first row of the block, and the last two."""
    low, before, high = block
    count = size(t.shape[-1])

    def at(i: Scalar, j: Scalar) -> Scalar:
        return t[(*place, i, j)]

    h11, h12, h21, h22 = (k.variable("h", at(i, j)) for i in (before, high) for j in (before, high))
    with k.branch((tries % 10).eq(0)):  # an exceptional shift
        s = k.let("s", magnitude(h21) + magnitude(at(before, before - 1)))
        k.assign(h11, s * 0.75 + h22)
        k.assign(h12, s * -0.4375)
        k.assign(h21, s)
        k.assign(h22, h11)
    total = magnitude(h11) + magnitude(h12) + magnitude(h21) + magnitude(h22)
    s = k.let("s", total)
    s = k.let("s", select(s.eq(_ZERO), _ONE, s))
    x11, x12, x21, x22 = (k.let("x", each / s) for each in (h11, h12, h21, h22))
    trace = k.let("trace", (x11 + x22) * 0.5)
    determinant = k.let("determinant", (x11 - trace) * (x22 - trace) - x12 * x21)
    root = k.let("root", square_root(magnitude(determinant)))
    is_pair = k.let("is_pair", determinant >= _ZERO)
    plus, minus = k.let("plus", trace + root), k.let("minus", trace - root)
    nearest = k.let("nearest", select(magnitude(plus - x22) <= magnitude(minus - x22), plus, minus))
    shift = k.let("shift", select(is_pair, trace, nearest) * s)
    imaginary = k.let("imaginary", select(is_pair, root, _ZERO) * s)
    with k.branch((low + 2 < count).logical_and(low >= 0)):
        first, below = k.let("first", at(low, low) - shift), k.let("below", at(low + 1, low))
        size_ = k.let("size", magnitude(first) + magnitude(imaginary) + magnitude(below))
        size_ = k.let("size", select(size_.eq(_ZERO), _ONE, size_))
        factor = k.let("factor", below / size_)
        start = [
            factor * at(low, low + 1) + first * (first / size_) + imaginary * (imaginary / size_),
            factor * (at(low, low) + at(low + 1, low + 1) - shift * 2.0),
            factor * at(low + 2, low + 1),
        ]
        vector = [k.variable("v", each) for each in start]
        with k.loop(high, start=low, name="step") as step:
            with k.branch((step > low).logical_and(step >= 1)):
                k.assign(vector[0], at(step, step - 1))
                k.assign(vector[1], at(step + 1, step - 1))
                k.assign(vector[2], _ZERO)
                with k.branch(step + 1 < high):
                    k.assign(vector[2], at(step + 2, step - 1))
            sizes = [magnitude(each) for each in vector]
            unit = k.let("unit", larger(sizes[0], larger(sizes[1], sizes[2])))
            unit = k.let("unit", select(unit.eq(_ZERO), _ONE, unit))
            x, y, z = (k.let("x", each / unit) for each in vector)
            rest = k.let("rest", y * y + z * z)
            found = reflection(k, [x], rest, rest.ne(_ZERO))
            v2, v3 = (k.let("v", each / found.divisor[0]) for each in (y, z))
            with k.branch((step > low).logical_and(step >= 1)):
                k.store(t, (*place, step, step - 1), found.beta * unit)
                k.store(t, (*place, step + 1, step - 1), _ZERO)
                with k.branch(step + 1 < high):
                    k.store(t, (*place, step + 2, step - 1), _ZERO)
            tau = found.tau[0]
            with k.branch(step + 1 < high):
                third = (step, step + 1, step + 2), (_ONE, v2, v3)
                _reflect_real(k, place, t, rows, step, smaller(step + 4, high + 1), tau, *third)
            with k.branch(step + 1 >= high):
                _reflect_real(k, place, t, rows, step, high + 1, tau, (step, step + 1), (_ONE, v2))


def _reflect_real(
    k: KernelBuilder,
    place: _Place,
    t: Buffer,
    rows: _Parts,
    step: Scalar,
    height: Scalar,
    tau: Scalar,
    indices: Sequence[Scalar],
    vector: Sequence[Scalar],
) -> None:
    """Apply the similarity transform of a reflection of two or three rows.

    step: the first column in which the rows are not 0.   height: the number of rows in which the columns are not 0.
    """
    count = size(t.shape[-1])

    def reflect(matrix: Buffer, places: Sequence[Sequence[Scalar]]) -> None:
        found = [k.let("x", matrix[(*place, *at)]) for at in places]
        total: Scalar = found[0]
        for each, factor in zip(found[1:], vector[1:], strict=True):
            total = total + each * factor
        change = k.let("change", total * tau)
        for each, factor, at in zip(found, vector, places, strict=True):
            k.store(matrix, (*place, *at), each - (change if factor is _ONE else change * factor))

    with k.loop(count, start=step, name="column") as column:
        reflect(t, [(index, column) for index in indices])
    with k.loop(smaller(height, count), name="row") as row:
        reflect(t, [(row, index) for index in indices])
    for part in rows:
        with k.loop(count, name="column") as column:
            reflect(part, [(index, column) for index in indices])


# ---- complex matrices ----


def _finish_complex(
    k: KernelBuilder,
    place: _Place,
    t: _Parts,
    rows: _Parts,
    values: _Parts,
    block: tuple[Scalar, Scalar],
    last: Local,
    tries: Local,
) -> None:
    """Take the eigenvalue of a block of one row, or apply one QR iteration to a larger one, as `_finish_real` does."""
    low, high = block
    with k.branch(low.eq(high)):
        store(k, values, (*place, high), load(t, (*place, high, high)))
        k.assign(last, high - 1)
        k.assign(tries, 0)
    before = k.let("before", high - 1)
    with k.branch((before >= 0).logical_and(before < high)), k.branch((low >= 0).logical_and(low <= before)):
        k.assign(tries, tries + 1)
        corner = [named(k, "h", load(t, (*place, i, j))) for i in (before, high) for j in (before, high)]
        shift = [k.variable("shift", part) for part in _wilkinson_shift(k, corner)]
        with k.branch((tries % 10).eq(0)):  # an exceptional shift
            k.assign(shift[0], corner[3][0] + _length(corner[2]) * 0.75)
            k.assign(shift[1], corner[3][1])
        vector = [
            [k.variable("x", part) for part in difference(load(t, (*place, low, low)), shift)],
            [k.variable("y", part) for part in load(t, (*place, low + 1, low))],
        ]
        with k.loop(high, start=low, name="step") as step:
            is_inside = (step > low).logical_and(step >= 1)
            with k.branch(is_inside):
                for number, index in zip(vector, (step, step + 1), strict=True):
                    for local, part in zip(number, load(t, (*place, index, step - 1)), strict=True):
                        k.assign(local, part)
            c, s, r = complex_turn(k, vector[0], vector[1])
            with k.branch(is_inside):
                store(k, t, (*place, step, step - 1), r)
                store(k, t, (*place, step + 1, step - 1), real(_ZERO, t))
            turn_complex(k, place, t, rows, (step, step + 1), step, smaller(step + 3, high + 1), (c, s))


def _wilkinson_shift(k: KernelBuilder, corner: Sequence[Number]) -> list[Scalar]:
    """Return the eigenvalue of a 2 x 2 matrix that is nearest to the last element of the matrix."""
    a, b, c, d = corner
    u = named(k, "u", product(k, b, c))
    half = named(k, "half", scaled(difference(a, d), Literal(0.5, F64)))
    square = product(k, half, half)
    root = _complex_root(k, [x + y for x, y in zip(square, u, strict=True)])
    is_opposite = k.let("is_opposite", half[0] * root[0] + half[1] * root[1] < _ZERO)
    total = [x + select(is_opposite, -y, y) for x, y in zip(half, root, strict=True)]
    total = named(k, "total", total)
    is_null = k.let("is_null", _length(total).eq(_ZERO))
    divisor = [select(is_null, _ONE, total[0]), select(is_null, _ZERO, total[1])]
    found = named(k, "found", quotient(k, u, divisor))
    return [x - select(is_null, _ZERO, y) for x, y in zip(d, found, strict=True)]


def _complex_root(k: KernelBuilder, x: Number) -> list[Scalar]:
    """Return the square root of a complex number whose real part is not negative."""
    x = named(k, "x", x)
    length = k.let("length", hypotenuse(x[0], x[1]))
    whole = k.let("whole", square_root((length + magnitude(x[0])) * 0.5))
    rest = k.let("rest", select(whole.eq(_ZERO), _ZERO, magnitude(x[1]) / (select(whole.eq(_ZERO), _ONE, whole) * 2.0)))
    is_left = k.let("is_left", x[0] < _ZERO)
    return named(k, "root", [select(is_left, rest, whole), with_sign(select(is_left, whole, rest), x[1])])


def complex_turn(k: KernelBuilder, x: Number, y: Number) -> tuple[Scalar, list[Scalar], list[Scalar]]:
    """Return c, s and r of the rotation c x + s y = r, c y - conj(s) x = 0."""
    first, second = (k.let("length", hypotenuse(*each)) for each in (x, y))
    both = k.let("both", hypotenuse(first, second))
    is_null, has_no_x = k.let("is_null", both.eq(_ZERO)), k.let("has_no_x", first.eq(_ZERO))
    norm, divisor = k.let("norm", select(is_null, _ONE, both)), k.let("divisor", select(has_no_x, _ONE, first))
    phase = [select(has_no_x, each, part / divisor) for each, part in zip(real(_ONE, x), x, strict=True)]
    phase = named(k, "phase", phase)
    c = k.let("c", select(is_null, _ONE, first / norm))
    s = named(k, "s", product(k, phase, [part / norm for part in conjugate(y)]))
    return c, s, scaled(phase, both)


def turn_complex(
    k: KernelBuilder,
    place: _Place,
    t: _Parts,
    rows: _Parts,
    pair: tuple[Scalar, Scalar],
    start: Scalar,
    height: Scalar,
    turn: tuple[Scalar, Number],
) -> None:
    """Apply the similarity transform of a rotation of two rows.

    start: the first column in which the rows are not 0.   height: the number of rows in which the columns are not 0.
    """
    count = size(t[0].shape[-1])
    c, s = turn

    def rotate(matrix: _Parts, one: _Place, other: _Place, factor: Number) -> None:
        x, y = (named(k, "x", load(matrix, (*place, *at))) for at in (one, other))
        forth, back = product(k, factor, y), product(k, conjugate(factor), x)
        store(k, matrix, (*place, *one), [p * c + q for p, q in zip(x, forth, strict=True)])
        store(k, matrix, (*place, *other), [p * c - q for p, q in zip(y, back, strict=True)])

    first, second = pair
    with k.loop(count, start=start, name="column") as column:
        rotate(t, (first, column), (second, column), s)
    with k.loop(smaller(height, count), name="row") as row:
        rotate(t, (row, first), (row, second), conjugate(s))
    if rows:
        with k.loop(count, name="column") as column:
            rotate(rows, (first, column), (second, column), conjugate(s))


# ---- eigenvectors ----


def eigenvector_kernel(name: str, matrix: Sequence[TensorType], *, has_left: bool, has_right: bool) -> Decomposition:
    """Return the kernel for the eigenvalues and eigenvectors of square matrices, in the last two axes.

    Its results are the eigenvalues, the left eigenvectors if `has_left`, the right eigenvectors if `has_right`, and for
    each matrix the number of eigenvalues that were not found (i64).  Eigenvalues and eigenvectors have a real and an
    imaginary part.  Eigenvectors are the columns of a matrix.  An eigenvector has the norm 1, and its largest element
    is real.  In a real matrix, the eigenvectors of a real eigenvalue are real, and those of a conjugate pair of
    eigenvalues are conjugate.

    matrix: the types of an f64 tensor, or of the real and the imaginary part of a complex one.

    Notes
    -----
    Source: LAPACK, geev and trevc.
    """
    k = KernelBuilder()
    a = buffers("a", matrix)
    *batch, dim, _ = a[0].shape
    shape, count, is_real = (*batch, dim, dim), size(dim), len(a) == 1
    values = result("values", (*batch, dim), 2)
    left, right = (
        result(each, shape, 2) if exists else [] for each, exists in (("left", has_left), ("right", has_right))
    )
    failures = Buffer("failures", I64, tuple(batch), True)
    t, rows = result("t", shape, 2), result("rows", shape, 2)
    v, sums, taus = (result(each, (*batch, dim), len(a)) for each in ("v", "sums", "taus"))
    x, y = (result(each, (*batch, dim), 2) for each in ("x", "y"))
    form, basis = t[: len(a)], rows[: len(a)]
    with loops(k, batch) as place:
        scale = scale_of(k, a, place)
        with loops(k, (dim, dim)) as at:
            store(k, form, (*place, *at), [part / scale for part in load(a, (*place, *at))])
        has_vectors = has_left or has_right
        _compute_schur(k, place, form, basis if has_vectors else [], values, failures, (v, sums, taus))
        fail_if_nan(k, place, scale, failures, count)
        if has_vectors:
            if is_real:
                _make_triangular(k, place, t, rows, values)
            norm = k.variable("norm", Literal(1e-120, F64))
            with loops(k, (dim, dim)) as at:
                k.assign(norm, larger(norm, _length(load(t, (*place, *at)))))
            least = k.let("least", norm * EPSILON)
            with k.loop(count, name="number") as number:
                value = named(k, "value", load(values, (*place, number)))
                for vectors, is_left in ((left, True), (right, False)):
                    if vectors:
                        _solve(k, place, t, x, value, (number, least), is_left=is_left)
                        _store_vector(k, place, rows, (x, y), vectors, value, number, is_real=is_real)
        with k.loop(count, name="row") as row:
            store(k, values, (*place, row), scaled(load(values, (*place, row)), scale))
    memory = [*t, *rows, *v, *sums, *taus, *x, *y]
    outputs = (*values, *left, *right, failures, *memory)
    return decomposition(KernelDef(name, tuple(a), outputs, k.finish()), matrix, memory)


def _make_triangular(k: KernelBuilder, place: _Place, t: _Parts, rows: _Parts, values: _Parts) -> None:
    """Make a real Schur form triangular by complex rotations."""
    count = size(t[0].shape[-1])
    with k.loop(count - 1, name="step") as step, k.branch(t[0][(*place, step + 1, step)].ne(_ZERO)):
        corner = load(t, (*place, step + 1, step + 1))
        x = named(k, "x", difference(load(values, (*place, step)), corner))
        y = named(k, "y", load(t, (*place, step + 1, step)))
        c, s, _ = complex_turn(k, x, y)
        turn_complex(k, place, t, rows, (step, step + 1), step, step + 2, (c, s))
        store(k, t, (*place, step + 1, step), real(_ZERO, t))


def _solve(
    k: KernelBuilder,
    place: _Place,
    t: _Parts,
    x: _Parts,
    value: Number,
    problem: tuple[Scalar, Scalar],
    *,
    is_left: bool,
) -> None:
    """Compute an eigenvector of a triangular matrix.

    value: the eigenvalue.
    problem: the index of the eigenvalue, and the least divisor, which replaces smaller ones.
    """
    number, least = problem
    count = size(t[0].shape[-1])
    with k.loop(count, name="row") as row:
        store(k, x, (*place, row), real(select(row.eq(number), _ONE, _ZERO), x))
    length = count - 1 - number if is_left else number
    with k.loop(length, name="step") as step:
        i = k.let("i", number + 1 + step if is_left else number - 1 - step)
        with k.branch((i >= 0).logical_and(i < count)):
            totals = [k.variable("total", _ZERO) for _ in x]
            start, stop = (number, i) if is_left else (i + 1, number + 1)
            with k.loop(smaller(stop, count), start=start, name="j") as j:
                factor = conjugate(load(t, (*place, j, i))) if is_left else load(t, (*place, i, j))
                for total, term in zip(totals, product(k, factor, load(x, (*place, j))), strict=True):
                    k.assign(total, total - term)
            gap = difference(load(t, (*place, i, i)), value)
            gap = named(k, "gap", conjugate(gap) if is_left else gap)
            is_small = k.let("is_small", _length(gap) < least)
            divisor = [select(is_small, each, part) for each, part in zip(real(least, x), gap, strict=True)]
            found = named(k, "found", quotient(k, totals, divisor))
            store(k, x, (*place, i), found)
            large = k.let("large", _length(found))
            with k.branch(large > 1e100), k.loop(count, name="row") as row:
                store(k, x, (*place, row), [part / large for part in load(x, (*place, row))])


def _store_vector(
    k: KernelBuilder,
    place: _Place,
    rows: _Parts,
    memory: tuple[_Parts, _Parts],
    vectors: _Parts,
    value: Number,
    number: Scalar,
    *,
    is_real: bool,
) -> None:
    """Multiply an eigenvector of the triangular matrix by Z, normalize it and store it as a column.

    memory: the buffers of the eigenvector, and buffers for the product.
    value, number: the eigenvalue and its index.
    is_real: whether the matrix is real.
    """
    x, y = memory
    count = size(rows[0].shape[-1])
    with k.loop(count, name="row") as row:
        store(k, y, (*place, row), real(_ZERO, y))
    with k.loop(count, name="j") as j:
        factor = named(k, "factor", load(x, (*place, j)))
        with k.branch(_length(factor).ne(_ZERO)), k.loop(count, name="row") as row:
            terms = product(k, factor, load(rows, (*place, j, row)))
            at = (*place, row)
            store(k, y, at, [p + q for p, q in zip(load(y, at), terms, strict=True)])
    greatest = k.variable("greatest", _ZERO)
    with k.loop(count, name="row") as row:
        k.assign(greatest, larger(greatest, _length(load(y, (*place, row)))))
    unit = k.let("unit", select(greatest.eq(_ZERO), _ONE, greatest))
    total, largest = k.variable("total", _ZERO), k.variable("largest", Literal(-1.0, F64))
    phase = [k.variable("phase", part) for part in real(_ONE, y)]
    with k.loop(count, name="row") as row:
        found = named(k, "found", [part / unit for part in load(y, (*place, row))])
        square = k.let("square", squared(found))
        k.assign(total, total + square)
        with k.branch(square > largest):
            k.assign(largest, square)
            for local, part in zip(phase, found, strict=True):
                k.assign(local, part)
    length = k.let("length", square_root(squared(phase)) * square_root(total) * unit)
    factor = named(k, "factor", [part / length for part in conjugate(phase)])
    if is_real:
        before = k.let("before", number - 1)
        is_second = k.let("is_second", value[1] < _ZERO)
        is_alone = k.let("is_alone", value[1].eq(_ZERO))
        is_inside = (before >= 0).logical_and(before < number)
        with k.branch(is_second.logical_and(is_inside)), k.loop(count, name="row") as row:
            store(k, vectors, (*place, row, number), conjugate(load(vectors, (*place, row, before))))
        with k.branch(is_second.logical_not()), k.loop(count, name="row") as row:
            turned = named(k, "turned", product(k, factor, load(y, (*place, row))))
            store(k, vectors, (*place, row, number), [turned[0], select(is_alone, _ZERO, turned[1])])
    else:
        with k.loop(count, name="row") as row:
            store(k, vectors, (*place, row, number), product(k, factor, load(y, (*place, row))))
