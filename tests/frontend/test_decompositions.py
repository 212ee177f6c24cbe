"""Decompositions of matrices and Fourier transforms, as StableHLO programs of JAX contain them, compared with NumPy."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from relvm import vm
from relvm.errors import RelvmShapeError, RelvmUnsupportedError
from relvm.frontend.stablehlo import from_stablehlo

ELEMENTS = {"f": "f32", "d": "f64", "F": "complex<f32>", "D": "complex<f64>", "i": "i32"}
RANDOM = np.random.default_rng(7)
REAL = RANDOM.standard_normal((2, 5, 5))
COMPLEX = REAL + 1j * RANDOM.standard_normal((2, 5, 5))
WIDE = RANDOM.standard_normal((2, 3, 6)) + 1j * RANDOM.standard_normal((2, 3, 6))


def type_of(shape: tuple[int, ...], letter: str) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{ELEMENTS[letter]}>"


def run(text: str, *args: np.ndarray, target: str = "bytecode", mode: str = "bytecode") -> list[np.ndarray]:
    """Return the results of `main`, of which complex ones are joined."""
    parts = [(x.real.copy(), x.imag.copy()) if x.dtype.kind == "c" else x for x in args]
    found = vm.VirtualMachine(vm.build(from_stablehlo(text.encode()), mode, target))["main"](*parts)
    return [
        each[0].numpy() + 1j * each[1].numpy() if isinstance(each, tuple) else each.numpy()
        for each in _items(found, text)
    ]


def _items(found: Any, text: str) -> tuple[Any, ...]:
    return found if text.startswith("// several") else (found,)


def call(
    routine: str, settings: str, args: list[np.ndarray], results: list[tuple[tuple[int, ...], str]], **options: str
) -> list[np.ndarray]:
    """Return the results of a custom call of LAPACK."""
    operands = ", ".join(f"%x{i}" for i in range(len(args)))
    parameters = ", ".join(f"%x{i}: {type_of(x.shape, x.dtype.char)}" for i, x in enumerate(args))
    given, returned = (
        ", ".join(type_of(x.shape, x.dtype.char) for x in args),
        ", ".join(type_of(*each) for each in results),
    )
    names = ", ".join(f"%r#{i}" for i in range(len(results)))
    prefix = {"f": "s", "d": "d", "F": "c", "D": "z"}[args[0].dtype.char]
    return run(
        f"""{"// several" if len(results) > 1 else ""}
        func.func @main({parameters}) -> ({returned}) {{
          %r:{len(results)} = stablehlo.custom_call @lapack_{prefix}{routine}_ffi({operands})
            {{mhlo.backend_config = {{{settings}}}}} : ({given}) -> ({returned})
          return {names} : {returned}
        }}""",
        *args,
        **options,
    )


def letters(**values: str) -> str:
    return ", ".join(f"{name} = {ord(value)} : ui8" for name, value in values.items())


def adjoint(x: np.ndarray) -> np.ndarray:
    return x.conj().swapaxes(-1, -2)


def close(x: np.ndarray, y: np.ndarray) -> None:
    tolerance = 2e-5 if x.dtype.itemsize == 4 or x.dtype.char == "F" else 1e-11
    np.testing.assert_allclose(x, y, rtol=0, atol=tolerance * max(1, np.abs(y).max(initial=0)))


def orthonormal(columns: np.ndarray) -> None:
    close(
        adjoint(columns) @ columns,
        np.broadcast_to(np.eye(columns.shape[-1]), (*columns.shape[:-2], *[columns.shape[-1]] * 2)),
    )


MATRICES = {"f32": REAL.astype("f"), "f64": REAL, "c64": COMPLEX.astype("F"), "c128": COMPLEX}


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigenvalues_of_hermitian_matrices(name: str, uplo: str) -> None:
    x = MATRICES[name] + adjoint(MATRICES[name])
    given = np.where(np.tri(5) == 1 if uplo == "L" else np.tri(5).T == 1, x, np.nan).astype(x.dtype)
    real = x.real.dtype.char
    vectors, values, info = call(
        "syevd" if name.startswith("f") else "heevd",
        letters(mode="V", uplo=uplo),
        [given],
        [(x.shape, x.dtype.char), (x.shape[:-1], real), (x.shape[:-2], "i")],
    )
    close(values, np.linalg.eigvalsh(x))
    close(x @ vectors, vectors * values[..., None, :])
    orthonormal(vectors)
    assert not info.any()


@pytest.mark.parametrize("mode", ["A", "S", "N"])
@pytest.mark.parametrize("x", [REAL, COMPLEX, WIDE, adjoint(WIDE).copy(), WIDE.real.astype("f"), np.zeros((1, 3, 2))])
def test_singular_values(x: np.ndarray, mode: str) -> None:
    *batch, rows, columns = x.shape
    count = min(rows, columns)
    left, right = (count, count) if mode == "S" else (rows, columns)
    char, real = x.dtype.char, x.real.dtype.char
    _, values, u, v, info = call(
        "gesdd",
        letters(mode=mode),
        [x],
        [
            (x.shape, char),
            ((*batch, count), real),
            ((*batch, rows, left), char),
            ((*batch, right, columns), char),
            (tuple(batch), "i"),
        ],
    )
    close(values, np.linalg.svd(x, compute_uv=False))
    assert not info.any()
    if mode != "N":
        close((u[..., :count] * values[..., None, :]) @ v[..., :count, :], x)
        orthonormal(u)
        orthonormal(adjoint(v))


@pytest.mark.parametrize("name", MATRICES)
def test_eigenvalues_and_schur_forms_of_general_matrices(name: str) -> None:
    x = MATRICES[name]
    real, pair = x.real.dtype.char, np.result_type(x, "F").char
    values = [(x.shape[:-1], real)] * 2 if name.startswith("f") else [(x.shape[:-1], pair)]
    results = [*values, (x.shape, pair), (x.shape, pair), (x.shape[:-2], "i")]
    *parts, left, right, info = call("geev", letters(compute_left="V", compute_right="V"), [x], results)
    w = parts[0] + 1j * parts[1] if len(parts) == 2 else parts[0]
    close(x @ right, right * w[..., None, :])
    close(adjoint(left) @ x, w[..., :, None] * adjoint(left))
    close(np.linalg.norm(right, axis=-2), np.ones(w.shape))
    close(np.sort_complex(w), np.sort_complex(np.linalg.eigvals(x)))
    if name.startswith("f"):
        is_real = w.imag == 0
        assert (right.imag[np.broadcast_to(is_real[:, None], right.shape)] == 0).all()
    results = [(x.shape, x.dtype.char), (x.shape, x.dtype.char), *values, (x.shape[:-2], "i"), (x.shape[:-2], "i")]
    t, z, *_, failures = call("gees", letters(mode="V", sort="N"), [x], results)
    close(z @ t @ adjoint(z), x)
    orthonormal(z)
    assert (np.tril(t, -2 if name.startswith("f") else -1) == 0).all() and not info.any() and not failures.any()


SPECIAL = np.stack(
    [
        np.zeros((6, 6)),
        np.eye(6, k=1),
        2 * np.eye(6) + np.eye(6, k=1),
        np.roll(np.eye(6), 1, 0),
        np.ones((6, 6)) * 1e200,
        np.kron(np.eye(3), [[0, 1], [-1, 0]]),
        np.kron(np.eye(3), [[1, 1e-3], [0, 1]]),
    ]
)


def test_special_matrices() -> None:
    for matrix in (SPECIAL, SPECIAL.astype("D")):
        w, shape = matrix.shape[:-1], matrix.shape
        values = [(w, "d")] * 2 if matrix is SPECIAL else [(w, "D")]
        results = [*values, (shape, "D"), (shape, "D"), (shape[:1], "i")]
        *parts, _, right, info = call("geev", letters(compute_left="N", compute_right="V"), [matrix], results)
        found = parts[0] + 1j * parts[1] if len(parts) == 2 else parts[0]
        scale = np.abs(SPECIAL).max(axis=(1, 2), initial=1)
        close(SPECIAL / scale[:, None, None] @ right, right * (found / scale[:, None])[:, None])
        close(np.linalg.norm(right, axis=-2), np.ones(w))
        assert not info.any()


def test_matrices_with_nan_fail() -> None:
    x = np.where(np.eye(5) == 1, np.nan, REAL[0])
    shapes = [((5, 5), "d"), ((5,), "d"), ((), "i")]
    assert call("syevd", letters(mode="V", uplo="L"), [x], shapes)[-1] > 0
    shapes = [((5, 5), "d"), ((5,), "d"), ((5, 5), "d"), ((5, 5), "d"), ((), "i")]
    assert call("gesdd", letters(mode="A"), [x], shapes)[-1] > 0
    assert call("potrf", letters(uplo="L"), [x], [((5, 5), "d"), ((), "i")])[-1] > 0
    one = [np.float64([[np.nan]])]
    assert call("syevd", letters(mode="V", uplo="L"), one, [((1, 1), "d"), ((1,), "d"), ((), "i")])[-1] > 0


@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("dtype", ["d", "D"])
def test_cholesky_of_matrices_that_are_not_positive_definite(uplo: str, dtype: str) -> None:
    given = np.float64(
        [
            [[1, 2, 3], [2, 1, 0], [3, 0, 9]],
            [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
            [[1, 0, 0], [0, 1, 0], [0, 0, 0]],
            [[4, 0, 0], [0, 9, 0], [0, 0, 16]],
            [[4, 0, 0], [0, 9, np.nan], [0, np.nan, 16]],
        ]
    ).astype(dtype)
    found, info = call("potrf", letters(uplo=uplo), [given], [(given.shape, dtype), (given.shape[:1], "i")])
    np.testing.assert_array_equal(info, [2, 1, 3, 0, 3])
    triangle = np.tri(3, dtype=bool) if uplo == "L" else np.tri(3, dtype=bool).T
    np.testing.assert_array_equal(np.isnan(found), triangle & (info != 0)[:, None, None])
    np.testing.assert_array_equal(found[3], np.diag([2, 3, 4]))


def test_the_other_triangle_is_not_read() -> None:
    x = np.diag(np.arange(5.0))
    for upper in (np.inf, np.nan, 1e300):
        given = np.where(np.tri(5) == 1, x, upper)
        _, values, _ = call("syevd", letters(mode="V", uplo="L"), [given], [((5, 5), "d"), ((5,), "d"), ((), "i")])
        close(values, np.arange(5.0))


@pytest.mark.parametrize("name", MATRICES)
def test_linear_systems(name: str) -> None:
    x, char = MATRICES[name], MATRICES[name].dtype.char
    positive = x @ adjoint(x) + np.eye(5, dtype=x.dtype)
    lower, info = call("potrf", letters(uplo="L"), [positive], [(x.shape, char), ((2,), "i")])
    close(np.tril(lower), np.linalg.cholesky(positive))
    lu, pivots, _ = call("getrf", "", [x], [(x.shape, char), ((2, 5), "i"), ((2,), "i")])
    for matrix, factors, exchanges in zip(x, lu, pivots, strict=True):
        rows = matrix.copy()
        for i, other in enumerate(exchanges - 1):
            rows[[i, other]] = rows[[other, i]]
        close((np.tril(factors, -1) + np.eye(5, dtype=x.dtype)) @ np.triu(factors), rows)
    (solved,) = call("trsm", letters(side="L", uplo="U", diag="N", trans_x="C"), [positive, x], [(x.shape, char)])
    close(adjoint(np.triu(positive)) @ solved, x)
    packed, taus = call("gehrd", "low = 1 : i32, high = 5 : i32", [x], [(x.shape, char), ((2, 4), char), ((2,), "i")])[
        :2
    ]
    q, _ = call("geqrf", "", [x], [(x.shape, char), ((2, 5), char)])
    assert taus.shape == (2, 4) and not info.any()
    close(np.abs(np.linalg.norm(np.triu(packed, -1), axis=(1, 2))), np.linalg.norm(x, axis=(1, 2)))
    close(np.abs(np.triu(q)), np.abs(np.linalg.qr(x)[1]))


def reflections(packed: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Return the product of the reflections that are packed below the diagonal of a matrix."""
    product = np.eye(len(packed), dtype=np.result_type(packed, "d"))
    for i, tau in enumerate(factors):
        v = np.tril(packed, -1)[:, i].astype(product.dtype)
        v[i] = 1
        product = product @ (np.eye(len(v)) - tau * np.outer(v, v.conj()))
    return product.astype(packed.dtype)


@pytest.mark.parametrize(
    ("letter", "scales"),
    [("f", (1e-42, 1e-30, 1e-20, 1e19, 1e30)), ("D", (1e-200, 1e160)), ("F", (1e19,)), ("d", (1e-160, 1e200))],
)
def test_decompositions_of_large_and_small_numbers(letter: str, scales: tuple[float, ...]) -> None:
    """The squares of the elements overflow or underflow, in the whole matrix or in one block or column."""
    x = (COMPLEX[0] if letter in "FD" else REAL[0]).astype("D" if letter in "FD" else "d")
    block, column = x.copy(), x.copy()
    block[:2, 2:] = block[2:, :2] = 0
    matrices = []
    for scale in scales:
        block[2:, 2:] = x[2:, 2:] * scale
        column[:, 1] = x[:, 1] * scale
        matrices += [x * scale, block.copy(), column.copy()]
    given = np.stack(matrices).astype(letter)
    batch = given.shape[:-2]
    packed, factors = call("geqrf", "", [given], [(given.shape, letter), ((*batch, 5), letter)])
    for matrix, each, taus in zip(given, packed, factors, strict=True):
        q, unit = reflections(each, taus), float(np.abs(matrix).max())
        close(q.conj().T @ q, np.eye(5))
        tolerance = 1e-1 if unit < 1e-40 else 2e-6 if letter in "fF" else 1e-14  # the first number is subnormal
        np.testing.assert_allclose(q @ (np.triu(each) / unit), matrix / unit, rtol=0, atol=tolerance)
    real = letter.lower()
    hermitian = np.tril(given, -1) + np.eye(5, dtype=letter) * given.real
    shapes = [(given.shape, letter), (given.shape[:-1], real), (batch, "i")]
    vectors, values, info = call(
        "heevd" if letter in "FD" else "syevd", letters(mode="V", uplo="L"), [hermitian], shapes
    )
    orthonormal(vectors)
    assert np.isfinite(values).all() and not info.any()


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("shape", [(4, 3), (3, 5), (3, 0)])
def test_pivoted_qr_decompositions(name: str, shape: tuple[int, int]) -> None:
    x = np.resize(MATRICES[name], shape) * np.arange(1, shape[1] + 1, dtype=MATRICES[name].real.dtype)
    x, char = x.astype(MATRICES[name].dtype), MATRICES[name].dtype.char
    pivots = np.zeros(shape[1], "i")
    results = [(x.shape, char), (pivots.shape, "i"), ((min(shape),), char)]
    packed, order, factors = call("geqp3", "", [x, pivots], results)
    close(reflections(packed, factors) @ np.triu(packed), x[:, order - 1])
    diagonal = np.abs(np.diag(packed))
    assert (diagonal[1:] <= diagonal[:-1] * (1 + 1e-6)).all()
    if shape == (3, 5):
        pivots[2] = 1
        _, order, _ = call("geqp3", "", [x, pivots], results)
        assert order[0] == 3
        np.testing.assert_array_equal(np.sort(order), np.arange(1, 6))


@pytest.mark.parametrize("name", MATRICES)
def test_multiplications_by_reflections(name: str) -> None:
    x, char = MATRICES[name], MATRICES[name].dtype.char
    packed, factors = call("geqrf", "", [x], [(x.shape, char), ((2, 5), char)])
    q = np.stack([reflections(*each) for each in zip(packed, factors, strict=True)])
    routine = "unmqr" if name.startswith("c") else "ormqr"
    wide, tall = x[:, :2].copy(), x[:, :, :2].copy()
    for left, target in ((True, tall), (False, wide)):
        for transpose in (True, False):
            settings = f"left = {str(left).lower()}, transpose = {str(transpose).lower()}"
            (found,) = call(routine, settings, [packed, factors, target], [(target.shape, char)])
            matrix = adjoint(q) if transpose else q
            close(found, matrix @ target if left else target @ matrix)


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_tridiagonal_forms(name: str, uplo: str) -> None:
    x = MATRICES[name] + adjoint(MATRICES[name])
    char, real = x.dtype.char, x.real.dtype.char
    results = [(x.shape, char), ((2, 5), real), ((2, 4), real), ((2, 4), char), ((2,), "i")]
    routine = "hetrd" if name.startswith("c") else "sytrd"
    packed, diagonal, beside, factors, _ = call(routine, letters(uplo=uplo), [x], results)
    if uplo == "U":
        np.testing.assert_array_equal(np.tril(packed, -1), np.tril(x, -1))
        packed, diagonal, beside, factors = packed[:, ::-1, ::-1], diagonal[:, ::-1], beside[:, ::-1], factors[:, ::-1]
        x = x[:, ::-1, ::-1]
    for matrix, each, d, e, taus in zip(x, packed, diagonal, beside, factors, strict=True):
        q = np.eye(5, dtype=x.dtype)
        q[1:, 1:] = reflections(each[1:, :-1], taus)
        close(adjoint(q) @ matrix @ q, np.diag(d) + np.diag(e, 1) + np.diag(e, -1))


@pytest.mark.parametrize("name", MATRICES)
def test_tridiagonal_systems(name: str) -> None:
    """The first diagonal element is 0, so that the elimination exchanges rows.  The last system is singular."""
    x, char = MATRICES[name], MATRICES[name].dtype.char
    lower, middle, upper = (np.concatenate([x[:, i], x[:1, i]]) for i in range(3))
    middle[:, 0] = lower[2, 1] = 0
    sides = np.concatenate([x[:, :, :2], x[:1, :, :2]])
    diagonals = [((3, 5), char)] * 3
    *_, found, info = call("gtsv", "", [lower, middle, upper, sides], [*diagonals, (sides.shape, char), ((3,), "i")])
    assert info.tolist() == [0, 0, 1]
    for i in range(2):
        matrix = np.diag(middle[i]) + np.diag(lower[i, 1:], -1) + np.diag(upper[i, :-1], 1)
        np.testing.assert_allclose(matrix @ found[i], sides[i], rtol=0, atol=1e-4 if char in "fF" else 1e-11)


def test_settings_that_are_not_supported() -> None:
    with pytest.raises(RelvmUnsupportedError, match="sort is 83, expected one of N"):
        shapes = [((5, 5), "d"), ((5, 5), "d"), ((5,), "d"), ((5,), "d"), ((), "i"), ((), "i")]
        call("gees", letters(mode="V", sort="S"), [REAL[0]], shapes)
    with pytest.raises(RelvmUnsupportedError, match="custom calls of lapack_dgesvj_ffi are not supported"):
        call("gesvj", "", [REAL[0]], [((5, 5), "d")])


def test_matrices_of_unknown_size() -> None:
    text = """
    func.func @main(%x: tensor<?x?xf64>) -> tensor<?x?xf64> {
      %n = stablehlo.constant dense<3> : tensor<2xi32>
      %m = stablehlo.constant dense<0> : tensor<0xi32>
      %r:2 = stablehlo.custom_call @lapack_dpotrf_ffi(%x, %n, %m) {indices_of_shape_operands = dense<[1, 2]> :
        tensor<2xi64>, mhlo.backend_config = {uplo = 76 : ui8}} : (tensor<?x?xf64>, tensor<2xi32>, tensor<0xi32>)
        -> (tensor<?x?xf64>, tensor<i32>)
      return %r#0 : tensor<?x?xf64>
    }"""
    x = REAL[0] @ REAL[0].T
    close(np.tril(run(text, x)[0]), np.linalg.cholesky(x))
    with pytest.raises(RelvmShapeError):
        run(text, x[:3])


def test_compiled_kernels() -> None:
    x = COMPLEX + adjoint(COMPLEX)
    shapes = [(x.shape, "D"), ((2, 5), "d"), ((2,), "i")]
    compiled = call("heevd", letters(mode="V", uplo="L"), [x], shapes, target="c", mode="compiled")
    for found, expected in zip(compiled, call("heevd", letters(mode="V", uplo="L"), [x], shapes), strict=True):
        np.testing.assert_array_equal(found, expected)


# ---- Fourier transforms ----

LENGTHS = (1, 2, 3, 4, 5, 7, 12, 22, 61, 64, 67, 105, 134, 360, 1024)


@cache
def signal(length: int) -> np.ndarray:
    return RANDOM.standard_normal((3, length)) + 1j * RANDOM.standard_normal((3, length))


def transform(kind: str, x: np.ndarray, lengths: tuple[int, ...], shape: tuple[int, ...], letter: str) -> np.ndarray:
    given, returned = type_of(x.shape, x.dtype.char), type_of(shape, letter)
    return run(
        f"""func.func @main(%x: {given}) -> {returned} {{
          %r = stablehlo.fft %x, type = {kind}, length = {list(lengths)} : ({given}) -> {returned}
          return %r : {returned}
        }}""",
        x,
    )[0]


@pytest.mark.parametrize("length", LENGTHS)
def test_transforms_of_any_length(length: int) -> None:
    z, half = signal(length), length // 2 + 1
    pairs = [
        (transform("FFT", z, (length,), z.shape, "D"), np.fft.fft(z)),
        (transform("IFFT", z, (length,), z.shape, "D"), np.fft.ifft(z)),
        (transform("RFFT", z.real.copy(), (length,), (3, half), "D"), np.fft.rfft(z.real)),
        (transform("IRFFT", z[:, :half].copy(), (length,), (3, length), "d"), np.fft.irfft(z[:, :half], n=length)),
    ]
    for found, expected in pairs:
        np.testing.assert_allclose(found, expected, rtol=0, atol=3e-15 * np.abs(expected).max())


def test_transforms_of_several_axes_and_of_nothing() -> None:
    x = RANDOM.standard_normal((2, 6, 5, 8)).astype("f")
    found = transform("RFFT", x, (6, 5, 8), (2, 6, 5, 5), "F")
    np.testing.assert_allclose(found, np.fft.rfftn(x, axes=(1, 2, 3)), rtol=0, atol=2e-6 * np.abs(found).max())
    back = transform("IRFFT", found.astype("F"), (6, 5, 8), x.shape, "f")
    np.testing.assert_allclose(back, x, rtol=0, atol=1e-6)
    assert transform("FFT", np.zeros((0, 6), "F"), (6,), (0, 6), "F").shape == (0, 6)
