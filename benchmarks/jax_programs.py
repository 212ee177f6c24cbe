"""Time of ten JAX programs, in relvm and in jax.jit:   python -m benchmarks.jax_programs [PROGRAM ...]

Both run on one core, in one process and by turns.  relvm.jax.jit gets NumPy arrays and returns NumPy arrays, and
jax.jit gets and returns jax arrays.  A time is the least of several calls.  The results are compared first.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

import relvm.jax  # noqa: E402
from benchmarks.turns import least_times  # noqa: E402

_SECONDS = 1.0  # for each program and each of the two

_random = np.random.default_rng(0)


def _normal(*shape: int, scale: float = 1.0) -> np.ndarray:
    return (_random.standard_normal(shape) * scale).astype(np.float32)


def mlp(params: list[tuple[Any, Any]], x: Any) -> Any:
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return jax.nn.log_softmax(x @ w + b)


def cnn(params: dict[str, Any], x: Any) -> Any:
    numbers = ("NCHW", "OIHW", "NCHW")
    for name in ("first", "second"):
        x = lax.conv_general_dilated(x, params[name], (1, 1), "SAME", dimension_numbers=numbers)
        x = jax.nn.relu(x)
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return x.reshape(x.shape[0], -1) @ params["dense"]


def attention(params: dict[str, Any], x: Any) -> Any:
    heads = 8
    batch, length, width = x.shape

    def split(name: str) -> Any:
        return (x @ params[name]).reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)

    q, k, v = map(split, "qkv")
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(width // heads)
    mask = jnp.tril(jnp.ones((length, length), bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
    mixed = jnp.einsum("bhqk,bhkd->bhqd", weights, v)
    return mixed.transpose(0, 2, 1, 3).reshape(batch, length, width) @ params["o"]


def lstm(params: dict[str, Any], xs: Any) -> Any:
    def step(state: tuple[Any, Any], x: Any) -> tuple[tuple[Any, Any], Any]:
        h, c = state
        i, f, g, o = jnp.split(x @ params["x"] + h @ params["h"] + params["b"], 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros((xs.shape[1], params["h"].shape[0]))
    (h, _), hs = lax.scan(step, (zero, zero), xs)
    return h, hs


def newton(a: Any) -> Any:
    def runs_again(state: tuple[Any, Any]) -> Any:
        x, before = state
        return jnp.max(jnp.abs(x - before)) > 1e-6

    def step(state: tuple[Any, Any]) -> tuple[Any, Any]:
        x, _ = state
        return x - (x * x * x - a) / (3 * x * x), x

    return lax.while_loop(runs_again, step, (a + 1, a))[0]


def choices(index: Any, x: Any) -> Any:
    def step(i: Any, x: Any) -> Any:
        x = lax.cond(x[0] > 0, lambda x: x - 0.5, lambda x: x + 1.0, x)
        return lax.switch((index + i) % 3, [jnp.sin, jnp.cos, lambda x: x * 0.5], x)

    return lax.fori_loop(0, 100, step, x)


def updates(x: Any) -> Any:
    def step(i: Any, x: Any) -> Any:
        return x.at[i].set(x[i - 1] * 0.5 + x[i]).at[i, 0].add(1.0)

    return lax.fori_loop(1, x.shape[0], step, x)


def gather_scatter(table: Any, indices: Any, segments: Any) -> Any:
    rows = jnp.take(table, indices, axis=0)
    sums = jax.ops.segment_sum(rows, segments, num_segments=64)
    return sums, jnp.zeros_like(table).at[indices].add(rows)


def sorting(x: Any) -> Any:
    return jnp.sort(x, axis=-1), lax.top_k(x, 10), jnp.cumsum(x, axis=-1)


def n_body(positions: Any, velocities: Any, masses: Any) -> Any:
    def step(state: tuple[Any, Any], _: Any) -> tuple[tuple[Any, Any], Any]:
        x, v = state
        apart = x[None, :, :] - x[:, None, :]
        inverse = lax.rsqrt(jnp.sum(apart * apart, axis=-1) + 0.01)
        force = jnp.sum(apart * (inverse**3 * masses[None, :])[..., None], axis=1)
        v = v + 0.001 * force
        x = x + 0.001 * v
        return (x, v), jnp.sum(masses * jnp.sum(v * v, axis=-1))

    return lax.scan(step, (positions, velocities), None, length=100)


_PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "MLP": (
        mlp,
        (
            [(_normal(784, 512, scale=0.05), _normal(512)), (_normal(512, 10, scale=0.05), _normal(10))],
            _normal(32, 784),
        ),
    ),
    "CNN": (
        cnn,
        (
            {
                "first": _normal(16, 3, 3, 3, scale=0.2),
                "second": _normal(32, 16, 3, 3, scale=0.1),
                "dense": _normal(2048, 10, scale=0.02),
            },
            _normal(8, 3, 32, 32),
        ),
    ),
    "attention": (attention, ({name: _normal(256, 256, scale=0.06) for name in "qkvo"}, _normal(2, 128, 256))),
    "LSTM by scan": (
        lstm,
        (
            {"x": _normal(64, 512, scale=0.1), "h": _normal(128, 512, scale=0.1), "b": _normal(512)},
            _normal(64, 16, 64),
        ),
    ),
    "Newton by while": (newton, (np.abs(_normal(1000)) + 0.5,)),
    "cond and switch": (choices, (np.int32(1), _normal(64))),
    "fori with indexed updates": (updates, (_normal(1000, 64),)),
    "gather and scatter": (
        gather_scatter,
        (
            _normal(1000, 64),
            _random.integers(0, 1000, 4096).astype(np.int32),
            np.sort(_random.integers(0, 64, 4096)).astype(np.int32),
        ),
    ),
    "sort, top_k, cumsum": (sorting, (_normal(64, 1000),)),
    "n-body by scan": (n_body, (_normal(64, 3), _normal(64, 3), np.abs(_normal(64)))),
}


def main() -> None:
    chosen = sys.argv[1:] or list(_PROGRAMS)
    print("| program | jax.jit, us | relvm, us | relvm / jax.jit |\n|---|---|---|---|")
    ratios = []
    for name in chosen:
        function, args = _PROGRAMS[name]
        reference, ours = jax.jit(function), relvm.jax.jit(function, exec_mode="compiled")
        jax_args = jax.tree.map(jnp.asarray, args)
        expected, found = jax.tree.leaves(reference(*jax_args)), jax.tree.leaves(ours(*args))
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-3)
        theirs, own = least_times([partial(_run, reference, jax_args), partial(ours, *args)], _SECONDS)
        ratios.append(own / theirs)
        print(f"| {name} | {theirs * 1e6:.4g} | {own * 1e6:.4g} | {own / theirs:.2f} |", flush=True)
    print(f"| geometric mean | | | {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f} |")


def _run(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    jax.block_until_ready(function(*args))


if __name__ == "__main__":
    main()
