"""JAX functions: the results are those of JAX, and loops, conditionals and names stay visible.

The tests need JAX, which the test extra does not install: `pip install jax`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax = pytest.importorskip("jax", reason="JAX IS MISSING: pip install jax to run these tests")
pytest.importorskip("absl", reason="absl-py is missing: pip install absl-py to run these tests")

import jax.numpy as jnp  # noqa: E402
from frontend.jax_suite import outcome, selected  # noqa: E402
from jax import lax  # noqa: E402

import relvm.jax  # noqa: E402
from relvm import vm  # noqa: E402
from relvm.errors import (  # noqa: E402
    RelvmArgumentError,
    RelvmError,
    RelvmShapeError,
    RelvmTypeError,
    RelvmUnsupportedError,
)
from relvm.frontend.jax import from_jax  # noqa: E402
from relvm.ir.printer import print_module  # noqa: E402
from relvm.ir.types import format_type  # noqa: E402
from relvm.passes.pass_manager import run_passes  # noqa: E402
from relvm.passes.pipeline import build_pipeline  # noqa: E402

F = np.float32
X = F([[1.5, -2.5, 0.25], [4.0, -0.25, 9.0]])


def run(module: Any, *leaves: Any, target: str = "bytecode") -> list[np.ndarray]:
    """Return the leaves of the result of `main`."""
    found = vm.VirtualMachine(vm.build(module, target=target, verified=True))["main"](*leaves)
    return [each.numpy() for each in (found if isinstance(found, list | tuple) else (found,))]


def expect_as_jax(function: Callable[..., Any], *args: Any, **options: Any) -> None:
    """Check that the leaves of the result are those of JAX, on both targets."""
    expected = jax.tree.leaves(jax.jit(function)(*args))
    module = from_jax(function, *args, **options)
    for target in ("bytecode", "numpy"):
        found = run(module, *jax.tree.leaves(args), target=target)
        for x, y in zip(found, expected, strict=True):
            assert (x.shape, x.dtype) == (y.shape, y.dtype)
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


def scan(x: Any, w: Any) -> Any:
    return lax.scan(lambda c, row: (c + row * w, (jnp.tanh(c), row[0])), jnp.zeros(3), x)


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "scan": (scan, (X, F(2))),
    "reversed scan": (lambda x: lax.scan(lambda c, row: (c * 0.5 + row, c), jnp.ones(3), x, reverse=True), (X,)),
    "scan without steps": (lambda x: lax.scan(lambda c, row: (c + row, row), x[0], x[:0]), (X,)),
    "while": (lambda x: lax.while_loop(lambda s: s[1].sum() < 50, lambda s: (s[0] + 1, s[1] * 1.5), (0, abs(x))), (X,)),
    "while of a batch": (
        jax.vmap(lambda x: lax.while_loop(lambda s: s < 10, lambda s: s * 3 + 1, x)),
        (F([0, 2, 11]),),
    ),
    "fori_loop": (lambda x: lax.fori_loop(0, 2, lambda i, x: x.at[i].set(x[1 - i] * 2), x), (X,)),
    "cond": (lambda x: [lax.cond(x[0, i] > 0, jnp.sin, lambda x: x - 1, x) for i in (0, 1)], (X,)),
    "switch": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tan], x), (np.int32(7), X)),
    "grad of a scan": (jax.grad(lambda x: scan(x, 0.5)[0].sum() + scan(x, 2.0)[1][0].sum()), (X,)),
    "nested jit": (lambda x: jax.jit(lambda y: y + 1)(x) * jax.jit(lambda y: y - 1)(x), (X,)),
    "custom_jvp": (lambda x: jax.nn.relu(x) + jax.nn.silu(x), (X,)),
    "checkpoint": (jax.grad(lambda x: jax.checkpoint(lambda y: jnp.sin(y * y))(x).sum()), (X,)),
    "cumulative": (
        lambda x: (jnp.cumsum(x, 0), jnp.cumprod(x, 1), lax.cummax(x, 1, reverse=True), lax.cummin(x)),
        (X,),
    ),
    "cumulative with NaN": (lambda x: (lax.cummax(x), lax.cummin(x, reverse=True)), (F([1, np.nan, 3, 2]),)),
    "random numbers": (lambda seed: jax.random.normal(jax.random.key(seed), (5,)), (np.int32(3),)),
    "pytrees": (lambda p: {"z": p["b"][0] * 2, "a": (p["a"], p["b"][1])}, ({"b": [X, F(3)], "a": F(1)},)),
    "an argument as a result": (lambda x, y: (y, x, x), (X, F(1))),
    "an unused argument": (lambda x, y: y * 2, (X, F(1))),
    "constants": (lambda x: x + X[0] + np.arange(3, dtype=F), (X,)),
    "linear algebra": (lambda x: jnp.linalg.solve(x @ x.T + jnp.eye(2), x), (X,)),
    "pivoted QR": (lambda x: jax.scipy.linalg.qr(x, pivoting=True), (X,)),
    "multiplication by Q": (lambda x: jax.scipy.linalg.qr_multiply(x.T, x, mode="right", pivoting=True), (X,)),
    "tridiagonal systems": (lambda x: lax.linalg.tridiagonal_solve(x[0], x[1], x[0], x.T), (X[:, ::-1].copy(),)),
    "tridiagonal form": (lambda x: lax.linalg.tridiagonal(x.T @ x, lower=False), (X,)),
    "special functions": (lambda x: (lax.zeta(x + 3, abs(x) + 1), jax.scipy.special.polygamma(1, abs(x))), (X,)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_results_are_those_of_jax(name: str) -> None:
    function, args = FUNCTIONS[name]
    expect_as_jax(function, *args)


def test_loops_calls_and_names_stay_visible() -> None:
    def f(x: Any) -> Any:
        from jax.ad_checkpoint import checkpoint_name

        y = checkpoint_name(jnp.tanh(x) * 2, "hidden")
        return jax.nn.relu(lax.scan(lambda c, row: (c + row, c), jnp.zeros(3), y)[1])

    text = print_module(from_jax(f, X))
    assert (
        "private def relu(" in text
        and "fn loop(i: i64, carry0: f32[3], rows0: f32[2, 3])" in text
        and "hidden: " in text
    )
    assert text.count("tanh(") == 1 and "def main(x: f32[2, 3])" in text


def test_parameters_have_the_names_of_the_leaves() -> None:
    module = from_jax(lambda params, x: {"loss": params["w"] @ x, "n": x}, {"w": X, "b": [F(1), F(2)]}, F([1, 2, 3]))
    (main,) = module.functions
    assert [param.name for param in main.params] == ["params_b_0", "params_b_1", "params_w", "x"]
    assert dict(main.attributes)["output_names"] == ("loss", "n")


def test_symbolic_sizes() -> None:
    def f(x: Any, y: Any) -> Any:
        z = jnp.concatenate([x, x + 1])
        total, rows = lax.scan(lambda c, row: (c + row, c), jnp.zeros(3), z)
        return z @ y, z.reshape(-1), total, rows, jnp.mean(x, 0), jnp.cumsum(x, 0), jnp.where(x > 0, x, 0).sum()

    module = from_jax(f, X, np.ones((3, 4), F), dynamic=("b, 3", "3, c"))
    main = next(each for each in module.functions if each.name == "main")
    assert format_type(main.params[0].type) == "f32[b, 3]"
    for rows, columns in ((1, 2), (5, 3)):
        args = (np.arange(3.0 * rows, dtype=F).reshape(rows, 3), np.ones((3, columns), F))
        for x, y in zip(run(module, *args), f(*args), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-5)
    with pytest.raises(RelvmShapeError, match="b"):
        run(module, np.ones((0, 3), F), np.ones((3, 1), F))
    with pytest.raises(RelvmArgumentError, match="a sequence of 1 item, one for each argument"):
        from_jax(jnp.sin, X, dynamic="b, 3")
    with pytest.raises(RelvmArgumentError, match="dynamic"):
        from_jax(jnp.sin, X, dynamic=("b, 7",))


def test_complex_numbers_are_pairs() -> None:
    z = (X + 1j * X[::-1]).astype(np.complex64)

    def f(z: Any) -> Any:
        return lax.scan(lambda c, row: (c * row, c + 1), jnp.ones(3, jnp.complex64), z)

    expected = [part for each in f(z) for part in (each.real, each.imag)]
    main = vm.VirtualMachine(vm.build(from_jax(f, z), target="bytecode"))["main"]
    found = [part for each in main((np.array(z.real), np.array(z.imag))) for part in each]
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x.numpy(), y, rtol=1e-5)


def test_messages_list_everything_that_is_not_supported_with_the_source_lines() -> None:
    def f(x: Any) -> Any:
        jax.debug.print("x = {}", x)
        y = jax.pure_callback(np.sin, x, x)
        return lax.linalg.schur(x[:, :2], sort_eig_vals=True)[0], y

    with pytest.raises(RelvmUnsupportedError) as caught:
        from_jax(f, X)
    message = str(caught.value)
    assert message.startswith("from_jax(f): ") and "equations cannot be imported" in message
    for name in ("pure_callback: callbacks are not supported", "schur: JAX cannot lower it"):
        assert re.search(rf"test_jax\.py:\d+:\d+: {name}", message), message
    with pytest.raises(RelvmTypeError, match="expected a function, got int"):
        from_jax(3)  # type: ignore[arg-type]


def test_messages_list_equations_whose_operands_cannot_be_imported() -> None:
    def branch(x: Any) -> Any:
        return x + jax.pure_callback(np.sin, x, x * 2)

    def step(carry: Any, row: Any) -> Any:
        jax.debug.print("row = {}", row)
        return carry + row, lax.cond(row[0] > 0, jax.jit(branch), jnp.cos, row)

    def f(x: Any) -> Any:
        y = jax.pure_callback(np.sin, x, x)
        z = jax.pure_callback(np.cos, y, y)
        return lax.scan(step, x[0], z)

    with pytest.raises(RelvmUnsupportedError, match="4 equations cannot be imported") as caught:
        from_jax(f, X)
    assert str(caught.value).count("pure_callback: callbacks are not supported") == 3
    assert str(caught.value).count("debug_print: callbacks are not supported") == 1


# ---- relvm.jax.jit ----


def test_jit_takes_and_returns_pytrees() -> None:
    jitted = relvm.jax.jit(lambda p, x, *, k=1.0: {"a": p["w"] @ x + k, "b": (x.sum(),)})
    found = jitted({"w": X}, np.ones(3, F), k=2.0)
    assert isinstance(found["a"], np.ndarray) and isinstance(found["b"], tuple)
    np.testing.assert_allclose(found["a"], X.sum(1) + 2)
    found = jitted({"w": jnp.asarray(X)}, np.ones(3, F))
    assert isinstance(found["a"], jax.Array)
    np.testing.assert_allclose(found["a"], X.sum(1) + 1)


def test_jit_traces_once_for_each_structure_shape_dtype_and_static_argument() -> None:
    traced = []

    def f(x: Any, n: int, mode: str = "up") -> Any:
        traced.append((x.shape, x.dtype.name, n, mode))
        return x * n if mode == "up" else x / n

    jitted = relvm.jax.jit(f, static_argnums=1, static_argnames="mode")
    for x in (X, X * 2, X[0], X.astype(np.int32)):
        jitted(x, 2)
    np.testing.assert_allclose(jitted(X, 4, mode="down"), X / 4)
    np.testing.assert_allclose(jitted(X, 4, mode="down"), X / 4)
    assert len(traced) == 4
    named = relvm.jax.jit(lambda x, n: x * n, static_argnames="n")
    np.testing.assert_allclose([named(X, 3), named(X, n=3)], [X * 3, X * 3])
    with pytest.raises(RelvmArgumentError, match="not hashable"):
        named(X, [3])
    with pytest.raises(RelvmTypeError, match="got str"):
        named("x", 3)


def test_jit_of_numbers_keys_and_complex_arrays() -> None:
    def f(key: Any, x: Any, n: Any) -> Any:
        return jax.random.split(key)[0], jax.random.uniform(key, (2,)), x * 1j + n, n

    key = jax.random.key(1)
    found, expected = relvm.jax.jit(f)(key, X, 3), jax.jit(f)(key, X, 3)
    assert (jax.random.key_data(found[0]) == jax.random.key_data(expected[0])).all()
    for x, y in zip(found[1:], expected[1:], strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=1e-6)


def donating(function: Callable[..., Any], **options: Any) -> Any:
    return relvm.jax.jit(function, **(options or {"donate_argnums": 0}))


def test_without_jit_jax_runs_the_function() -> None:
    update = donating(lambda x: x.at[0].add(1))
    x = jnp.zeros((4, 16))
    with jax.disable_jit():
        found = update(x)
    assert not x.is_deleted() and not x.any() and found[0, 0] == 1
    assert update(x)[0, 0] == 1 and x.is_deleted()


def test_numpy_and_jax_arrays_run_the_same_program() -> None:
    jitted = relvm.jax.jit(lambda x, y: (x + y, x[:0], jnp.float32(3)), exec_mode="bytecode", target="bytecode")
    for x in (X, jnp.asarray(X)):
        for y in (X, jnp.asarray(X), F(2)):
            found = jitted(x, y)
            kind = np.ndarray if isinstance(x, np.ndarray) and not isinstance(y, jax.Array) else jax.Array
            assert all(isinstance(each, kind) for each in found)
            np.testing.assert_array_equal(found[0], np.asarray(x) + np.asarray(y))
    assert jitted.model(X, X) is jitted.model(jnp.asarray(X), X)


def test_a_donated_array_is_updated_in_place_and_deleted() -> None:
    update = donating(lambda x, row: x.at[3].set(row))
    expected = np.zeros((64, 16), F)
    expected[3] = 1
    for row in (jnp.ones(16), np.ones(16, F)):
        x = jnp.zeros((64, 16))
        address = x.unsafe_buffer_pointer()
        first = update(x, row)
        assert x.is_deleted() and first.unsafe_buffer_pointer() == address
        second = update(first, row)
        assert first.is_deleted() and second.unsafe_buffer_pointer() == address
        np.testing.assert_array_equal(second, expected)
    named = donating(lambda d, k: {"a": d["a"].at[0].add(k), "k": k}, donate_argnames="d")
    d = {"a": jnp.zeros((4, 16)), "unused": jnp.ones(3)}
    address = d["a"].unsafe_buffer_pointer()
    found = named(d=d, k=F(2))
    assert d["a"].is_deleted() and not d["unused"].is_deleted() and found["a"].unsafe_buffer_pointer() == address


def updated_by_loops(x: Any, row: Any) -> Any:
    x = lax.fori_loop(0, 3, lambda i, x: lax.fori_loop(0, 2, lambda j, x: x.at[2 * i + j].set(row), x), x)
    return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1].at[s[0]].add(row)), (0, x))[1]


def updated_by_scan(x: Any, row: Any) -> Any:
    def step(x: Any, i: Any) -> Any:
        return lax.dynamic_update_slice(x, row[None], (i, 0)), i

    return lax.scan(step, lax.scan(step, x, jnp.arange(3))[0], jnp.arange(2))[0]


def updated_by_calls(x: Any, row: Any) -> Any:
    set_row = jax.jit(lambda x: x.at[2].set(row))
    x = lax.cond(row[0] > 0, lambda x: set_row(set_row(x)), lambda x: x, x)
    return lax.switch(jnp.int32(1), [lambda x: x, lambda x: x.at[1].multiply(row), lambda x: x.at[0].set(0)], x)


@pytest.mark.parametrize("function", [updated_by_loops, updated_by_scan, updated_by_calls])
def test_a_donated_array_is_updated_in_place_by_loops_and_calls(function: Callable[..., Any]) -> None:
    x, row = jnp.zeros((64, 16)), jnp.ones(16)
    expected = jax.jit(function)(x, row)
    address = x.unsafe_buffer_pointer()
    found = donating(function, donate_argnums=0, exec_mode="bytecode", target="bytecode")(x, row)
    assert found.unsafe_buffer_pointer() == address
    np.testing.assert_array_equal(found, expected)


def test_memory_that_something_else_uses_is_never_changed() -> None:
    update = donating(lambda x: x.at[0].set(9.0))
    base = np.zeros((64, 16), F)
    for x in (jnp.asarray(base), jax.device_put(base), jnp.from_dlpack(base), base):
        assert float(update(x)[0, 0]) == 9
        assert (base == 0).all()
    x = jnp.zeros((64, 16))
    view = np.asarray(x)
    assert float(update(x)[0, 0]) == 9 and (view == 0).all()
    x = jnp.zeros((64, 16))
    both = donating(lambda x, y: (x.at[0].set(9.0), y.sum()))(x, x)
    assert float(both[0].sum()) == 144 and float(both[1]) == 0 and float(x.sum()) == 0
    x = jnp.zeros((64, 16))
    found = donating(lambda x: (x.at[0].set(9.0), x.at[1].set(8.0), x, x.reshape(-1)))(x)
    assert [float(each.sum()) for each in found] == [144, 128, 0, 0]
    assert len({each.unsafe_buffer_pointer() for each in found}) == 4


@pytest.mark.parametrize("dtype", ["bool_", "int8", "float16", "bfloat16", "complex64"])
def test_donated_arrays_of_any_dtype(dtype: str) -> None:
    x = jnp.zeros((64, 16), getattr(jnp, dtype))
    found = donating(lambda x: x.at[0].set(jnp.ones((), x.dtype)))(x)
    assert x.is_deleted() and found.dtype == dtype.rstrip("_") and complex(found.sum()) == 16
    y = jnp.ones((4, 4))
    donating(lambda y: y.sum())(y)  # no result has its shape
    assert not y.is_deleted()


def test_the_module_and_the_model_of_a_jitted_function() -> None:
    jitted = relvm.jax.jit(partial(jnp.dot), exec_mode="bytecode", target="bytecode")
    assert "matmul" in print_module(jitted.module(X, jax.ShapeDtypeStruct((3,), F)))
    assert jitted.model(X, F([1, 2, 3])).signature.inputs == {"a": "f32[2, 3]", "b": "f32[3]"}


def test_leaves_of_a_result_have_memory_of_their_own() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        return y, y, y.reshape(-1), jnp.arange(3.0), x

    x = X.copy()
    found = relvm.jax.jit(f)(x)
    expected = [each.copy() for each in found]
    for number, leaf in enumerate(found):
        leaf += number + 1
    for number, (leaf, before) in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_array_equal(leaf, before + number + 1)
    np.testing.assert_array_equal(x, X)


def test_tangents_of_integers_have_no_values() -> None:
    def f(x: Any, n: Any) -> Any:
        return jax.grad(lambda x, n: (x * n).sum(), argnums=(0, 1), allow_int=True)(x, n)

    found = relvm.jax.jit(f)(X, np.int32(3))
    np.testing.assert_array_equal(found[0], np.full_like(X, 3))
    assert found[1].shape == () and found[1].dtype == jax.dtypes.float0


@pytest.mark.parametrize(
    ("function", "dynamic", "error", "message"),
    [
        (jnp.sin, ("b",), RelvmArgumentError, r"the shape \(b\) of argument 0 does not fit the example of shape"),
        (jnp.sin, ("b, 4",), RelvmArgumentError, "dynamic: .*4"),
        (lambda x: x + jnp.ones((2, 3)), ("b, 3",), RelvmShapeError, "incompatible shapes for broadcasting"),
        (lambda x: x if x.shape[0] > 2 else -x, ("b, 3",), RelvmShapeError, "comparison 'b' > '2' is inconclusive"),
        (jnp.sin, ("max(b, 2), 3",), RelvmShapeError, r"no argument determines the size b: .*such as b or 2\*b \+ 1"),
    ],
)
def test_symbolic_sizes_that_do_not_fit(
    function: Callable[..., Any], dynamic: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        from_jax(function, X, dynamic=dynamic)


@pytest.mark.parametrize("way", ["traced", "exported"])
def test_sizes_that_are_expressions(way: str) -> None:
    def f(x: Any, y: Any, z: Any) -> Any:
        total, rows = lax.scan(lambda c, row: (c + row.sum(), row[:2]), 0.0, x)
        return total, rows, y[: z.shape[0]], jnp.concatenate([x[:, 0], z]), x[1:].reshape(-1, 2, 3).sum(1)

    shapes = ("2*b + 1, 3", "4*b + c, 2", "3*c")
    scope = jax.export.SymbolicScope()
    specs = [jax.ShapeDtypeStruct(jax.export.symbolic_shape(shape, scope=scope), F) for shape in shapes]
    if way == "exported":
        run_once = relvm.load_model(bytes(jax.export.export(jax.jit(f))(*specs).serialize()))
    else:
        module = from_jax(f, np.zeros((3, 3), F), np.zeros((5, 2), F), np.zeros(3, F), dynamic=shapes)
        run_once = vm.VirtualMachine(vm.build(module, target="bytecode"))["main"]
    for b, c in ((1, 1), (3, 2)):
        args = [np.random.default_rng(b).random(shape, F) for shape in ((2 * b + 1, 3), (4 * b + c, 2), (3 * c,))]
        for found, expected in zip(run_once(*args), f(*args), strict=True):
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)
    even = np.zeros((4, 3), F), np.zeros((5, 2), F), np.zeros(3, F)
    message = r"argument x of shape \[2\*b \+ 1, 3\]: expected dimension 0" if way == "traced" else "shapes"
    with pytest.raises(RelvmError, match=message):
        run_once(*even)


def test_a_size_that_another_size_determines_is_at_least_1() -> None:
    x = np.arange(5, dtype=F)
    module = from_jax(lambda x, y: x[y.shape[0] :][:1], x, x[:2], dynamic=("b + c", "c"))
    run_once = vm.VirtualMachine(vm.build(module, target="bytecode"))["main"]
    np.testing.assert_array_equal(run_once(x[:3], x[:2]).numpy(), x[2:3])
    with pytest.raises(RelvmError, match=r"size b \+ c must be at least 4, so that b is at least 1, but it is 3"):
        run_once(x[:3], x[:3])


def test_divisions_of_sizes_round_down() -> None:
    """The padding SAME of a convolution with a stride of 2 divides negative sizes."""

    def f(x: Any) -> Any:
        y = lax.conv_general_dilated(
            x, jnp.ones((3, 3, 2, 4)), (2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return y, jnp.cumsum(x, 1), lax.cummin(x, 0, reverse=True), x[:, : -(-x.shape[1] // 2)]

    specs = jax.ShapeDtypeStruct(jax.export.symbolic_shape("b, h, 5, 2"), F)
    model = relvm.load_model(bytes(jax.export.export(jax.jit(f))(specs).serialize()))
    module = from_jax(f, np.zeros((1, 3, 5, 2), F), dynamic=("b, h, 5, 2",))
    traced = vm.VirtualMachine(vm.build(module, target="bytecode"))["main"]
    for shape in ((1, 7, 5, 2), (2, 4, 5, 2), (1, 1, 5, 2)):
        x = np.random.default_rng(0).random(shape, F)
        for found in (model(x), traced(x)):
            for each, expected in zip(found, f(x), strict=True):
                np.testing.assert_allclose(each.numpy(), expected, rtol=1e-5)


def test_decompositions_with_symbolic_sizes() -> None:
    def f(x: Any) -> Any:
        square = x.swapaxes(-1, -2) @ x
        values = jnp.linalg.eigh(square + jnp.eye(x.shape[-1], dtype=x.dtype))[0]
        return values, abs(jnp.linalg.qr(x)[1]), jnp.linalg.svd(x, compute_uv=False), jnp.linalg.cholesky(square)

    x = np.random.default_rng(0).standard_normal((2, 5, 3)).astype(F)
    shape = jax.export.symbolic_shape("b, 5, 3")
    exported = jax.export.export(jax.jit(f))(jax.ShapeDtypeStruct(shape, F)).serialize()
    traced = run(from_jax(f, x, dynamic=("b, 5, 3",)), x)
    for found in (traced, [each.numpy() for each in relvm.load_model(bytes(exported))(x)]):
        for each, expected in zip(found, f(x), strict=True):
            np.testing.assert_allclose(each, expected, rtol=0, atol=1e-4)


def test_exports_with_random_keys_and_shardings() -> None:
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))

    def f(key: Any, x: Any) -> Any:
        x = lax.with_sharding_constraint(x, sharding)
        return jax.random.uniform(key, (4,)), lax.with_sharding_constraint(x + 1j, sharding).imag

    key = jax.random.key(3)
    exported = jax.export.export(jax.jit(f))(key, X).serialize()
    found = relvm.load_model(bytes(exported))(np.asarray(jax.random.key_data(key)), X)
    for x, y in zip(found, f(key, X), strict=True):
        np.testing.assert_array_equal(x.numpy(), y)


def test_exports_for_several_platforms() -> None:
    from jax import export

    def f(x: Any) -> Any:
        return lax.platform_dependent(x, cpu=lambda x: x * 2, cuda=lambda x: x * 3)

    exported = export.export(jax.jit(f), platforms=("cuda", "cpu"))(X).serialize()
    np.testing.assert_array_equal(relvm.load_model(bytes(exported))(X).numpy(), X * 2)
    elsewhere = export.export(jax.jit(jnp.sin), platforms=("cuda", "tpu"))(X).serialize()
    with pytest.raises(RelvmUnsupportedError, match="exported for the platforms cuda, tpu; export it for cpu, too"):
        relvm.load_model(bytes(elsewhere))


def test_special_values() -> None:
    values = F([np.inf, 0, -1, 1, np.nan, 0.25])
    for function in (jax.scipy.special.digamma, jax.scipy.special.gammaln):
        expect_as_jax(function, values)


def test_conditions_and_counters_are_scalars() -> None:
    def f(index: Any, x: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            x = lax.cond(x[0] > 0, lambda x: x - 0.5, lambda x: x + 1.0, x)
            return lax.switch((index + i) % 3, [jnp.sin, jnp.cos, lambda x: x * 0.5], x)

        return lax.fori_loop(0, 9, step, x)

    expect_as_jax(f, np.int32(1), X[0])
    module = from_jax(f, np.int32(1), X[0])
    after = run_passes(module, build_pipeline("bytecode"))
    (loop,) = (each for each in after.functions if each.private)
    assert [format_type(param.type) for param in loop.params] == ["i64", "i64", "f32[3]", "i64"]
    assert all("bool[]" not in line for line in print_module(after).splitlines())


# ---- the harnesses of JAX ----

SAMPLE = 110  # harnesses of the sample


@pytest.mark.parametrize("part", range(10))
def test_a_sample_of_the_harnesses(part: int) -> None:
    """`python -P tests/frontend/jax_suite.py` runs all of them."""
    names = selected()
    for name in names[:: len(names) // SAMPLE][part::10]:
        kind, message = outcome(name, exec_mode="bytecode", target="bytecode")
        assert kind not in ("wrong", "failed"), f"{name}: {message}"


def test_programs_belong_to_their_static_values_and_settings() -> None:
    scaled = relvm.jax.jit(lambda x, n: x * 100 if isinstance(n, bool) else x * n, static_argnums=1)
    x = np.arange(3, dtype=np.int32)
    found = [scaled(x, n) for n in (1, 1.0, True)]
    assert [(each.dtype.name, each[1]) for each in found] == [("int32", 1), ("float32", 1), ("int32", 100)]

    def bits(seed: Any) -> Any:
        return jax.random.bits(jax.random.key(seed), (3,))

    def both(seed: Any) -> Any:
        with jax.threefry_partitionable(True):
            first = bits(seed)
        with jax.threefry_partitionable(False):
            return first, bits(seed)

    compiled = relvm.jax.jit(bits)
    with jax.threefry_partitionable(True):
        first = compiled(3)
    with jax.threefry_partitionable(False):
        second = compiled(3)
    for found, again, expected in zip(relvm.jax.jit(both)(3), (first, second), both(3), strict=True):
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(again, expected)


def test_methods_positional_parameters_and_traced_calls() -> None:
    class Adder:
        @partial(relvm.jax.jit, static_argnums=0)
        def add(self, x: Any) -> Any:
            return x + 1

    np.testing.assert_array_equal(Adder().add(X), X + 1)
    np.testing.assert_array_equal(relvm.jax.jit(lambda x, n, /: x * n, static_argnums=1)(X, 3), X * 3)
    np.testing.assert_array_equal(relvm.jax.jit(lambda *all_: sum(all_), static_argnums=0)(3, X, X), 3 + 2 * X)
    double = relvm.jax.jit(lambda x: x * 2)
    np.testing.assert_array_equal(jax.grad(lambda x: double(x).sum())(X), np.full_like(X, 2))
    np.testing.assert_array_equal(relvm.jax.jit(lambda x: double(x) + 1)(X), X * 2 + 1)


def test_squares() -> None:
    for x in (X, X.astype(np.int32), X.astype(np.complex64)):
        np.testing.assert_allclose(relvm.jax.jit(jnp.square)(x), x * x)
    expect_as_jax(lambda x: (jnp.var(x, axis=1), jnp.hypot(x, 2.0)), X)


def test_attention_becomes_one_operator() -> None:
    def attention(q: Any, k: Any, v: Any) -> Any:
        return jax.nn.softmax(q @ k.T / 2, axis=-1) @ v

    x = np.ones((8, 4), F)
    expect_as_jax(attention, x, x, x)
    executable = vm.build(from_jax(attention, x, x, x), target="bytecode")
    assert [name for name in executable.functions if "attention" in name]
