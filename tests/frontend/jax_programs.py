"""Programs as users of JAX write them, with small sizes: models, training steps, samplers, filters and solvers."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Program = tuple[Callable[..., Any], tuple[Any, ...]]

_HEADS, _WIDTH, _VOCABULARY, _CONTEXT = 4, 16, 20, 12


def _normal(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


# ---- transformers ----


def _transformer_parameters() -> dict[str, Any]:
    def layer(seed: int) -> dict[str, np.ndarray]:
        sizes = {
            "qkv": (_WIDTH, 3 * _WIDTH),
            "out": (_WIDTH, _WIDTH),
            "up": (_WIDTH, 2 * _WIDTH),
            "down": (2 * _WIDTH, _WIDTH),
        }
        weights = {name: _normal(*shape, seed=seed + i, scale=0.2) for i, (name, shape) in enumerate(sizes.items())}
        return {**weights, "norm": np.ones(_WIDTH, np.float32)}

    return {
        "embedding": _normal(_VOCABULARY, _WIDTH),
        "position": _normal(_CONTEXT, _WIDTH, seed=1),
        "layers": [layer(2), layer(7)],
    }


def _normalized(x: Any, weight: Any) -> Any:
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * weight


def _feed_forward(x: Any, layer: dict[str, Any]) -> Any:
    return x + jax.nn.gelu(_normalized(x, layer["norm"]) @ layer["up"]) @ layer["down"]


def transformer(params: dict[str, Any], tokens: Any) -> Any:
    batch, length = tokens.shape
    x = params["embedding"][tokens] + params["position"][:length]
    for layer in params["layers"]:
        qkv = (_normalized(x, layer["norm"]) @ layer["qkv"]).reshape(batch, length, 3, _HEADS, -1)
        q, k, v = (qkv[:, :, i] for i in range(3))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -jnp.inf)
        attended = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v).reshape(x.shape)
        x = _feed_forward(x + attended @ layer["out"], layer)
    return x @ params["embedding"].T


def decode_with_cache(params: dict[str, Any], first: Any) -> Any:
    """Decode greedily.  The scan carries the caches of keys and values."""
    empty = jnp.zeros((_CONTEXT, _HEADS, _WIDTH // _HEADS))

    def step(carry: Any, position: Any) -> Any:
        caches, token = carry
        x = params["embedding"][token] + params["position"][position]
        updated = []
        for layer, (keys, values) in zip(params["layers"], caches, strict=True):
            q, k, v = (_normalized(x, layer["norm"]) @ layer["qkv"]).reshape(3, 1, _HEADS, -1)
            keys = lax.dynamic_update_slice(keys, k, (position, 0, 0))
            values = lax.dynamic_update_slice(values, v, (position, 0, 0))
            scores = jnp.einsum("hd,thd->ht", q[0], keys) / math.sqrt(q.shape[-1])
            scores = jnp.where(jnp.arange(_CONTEXT) <= position, scores, -jnp.inf)
            x = x + jnp.einsum("ht,thd->hd", jax.nn.softmax(scores), values).reshape(-1) @ layer["out"]
            x = _feed_forward(x, layer)
            updated.append((keys, values))
        token = jnp.argmax(x @ params["embedding"].T).astype(jnp.int32)
        return (updated, token), token

    caches = [(empty, empty)] * len(params["layers"])
    return lax.scan(step, (caches, first), jnp.arange(_CONTEXT))[1]


def train_transformer(params: Any, moments: Any, tokens: Any, count: Any) -> Any:
    """Return the result of a step of Adam."""

    def loss(params: Any) -> Any:
        scores = jax.nn.log_softmax(transformer(params, tokens[:, :-1]))
        return -jnp.take_along_axis(scores, tokens[:, 1:, None], -1).mean()

    value, gradient = jax.value_and_grad(loss)(params)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], gradient)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, moments[1], gradient)

    def moved(p: Any, m: Any, v: Any) -> Any:
        return p - 1e-3 * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-3)

    return value, jax.tree.map(moved, params, first, second), (first, second)


# ---- other networks ----


def train_cnn(params: dict[str, Any], images: Any, labels: Any) -> Any:
    def loss(params: dict[str, Any]) -> Any:
        convolution = partial(lax.conv_general_dilated, dimension_numbers=("NHWC", "HWIO", "NHWC"), padding="SAME")
        x = jax.nn.relu(convolution(images, params["first"], (1, 1)))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        x = jax.nn.relu(convolution(x, params["second"], (2, 2), feature_group_count=2))
        scores = jax.nn.log_softmax(x.mean((1, 2)) @ params["dense"])
        return -jnp.mean(jnp.sum(scores * jax.nn.one_hot(labels, 5), -1))

    return jax.value_and_grad(loss)(params)


def train_mlp(params: dict[str, Any], x: Any, y: Any) -> Any:
    """Run the whole training in a loop."""

    def loss(params: dict[str, Any]) -> Any:
        return jnp.mean((jnp.tanh(x @ params["w"] + params["b"]) @ params["v"] - y) ** 2)

    def step(_: Any, params: Any) -> Any:
        return jax.tree.map(lambda p, g: p - 0.05 * g, params, jax.grad(loss)(params))

    return lax.fori_loop(0, 20, step, params)


def sample_diffusion(weight: Any, key: Any, x: Any) -> Any:
    betas = jnp.linspace(1e-3, 0.05, 8)
    kept = jnp.cumprod(1 - betas)

    def step(i: Any, carry: Any) -> Any:
        x, key = carry
        t = 7 - i
        key, used = jax.random.split(key)
        half = jax.image.resize(x, (1, 4, 4, 2), "linear")
        noise = jnp.tanh(jax.image.resize(half, x.shape, "nearest") @ weight + jnp.sin(t * 0.5))
        mean = (x - betas[t] / jnp.sqrt(1 - kept[t]) * noise) / jnp.sqrt(1 - betas[t])
        return mean + jnp.where(t > 0, jnp.sqrt(betas[t]), 0.0) * jax.random.normal(used, x.shape), key

    return lax.fori_loop(0, 8, step, (x, key))[0]


def route_experts(router: Any, experts: Any, x: Any) -> Any:
    weights, chosen = lax.top_k(jax.nn.softmax(x @ router), 2)
    hidden = jax.nn.relu(jnp.einsum("td,edf->tef", x, experts))
    return jnp.einsum("tef,tke,tk->tf", hidden, jax.nn.one_hot(chosen, 4), weights), chosen


def state_space(decay: Any, gain: Any, x: Any) -> Any:
    """Return the gradients of a linear recurrence that an associative scan computes."""

    def total(decay: Any, gain: Any) -> Any:
        def combine(left: Any, right: Any) -> Any:
            return left[0] * right[0], right[0] * left[1] + right[1]

        factors = jnp.broadcast_to(jnp.exp(-jnp.abs(decay)), x.shape)
        return jnp.sum(lax.associative_scan(combine, (factors, gain * x))[1] ** 2)

    return jax.grad(total, (0, 1))(decay, gain)


def checkpointed_layers(weights: Any, x: Any) -> Any:
    @jax.custom_vjp
    def limited(x: Any) -> Any:
        return x

    limited.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -0.1, 0.1),))

    @jax.checkpoint
    def layer(x: Any, weight: Any) -> Any:
        return limited(jax.nn.softplus(x @ weight))

    def loss(weights: Any) -> Any:
        return jnp.sum(lax.scan(lambda x, weight: (layer(x, weight), None), x, weights)[0] ** 2)

    return jax.grad(loss)(weights)


# ---- filters, solvers and samplers ----


def kalman(transition: Any, observation: Any, measured: Any) -> Any:
    def step(carry: Any, y: Any) -> Any:
        x, p = carry
        x, p = transition @ x, transition @ p @ transition.T + 0.01 * jnp.eye(4)
        s = observation @ p @ observation.T + 0.1 * jnp.eye(2)
        gain = jnp.linalg.solve(s, observation @ p).T
        x, p = x + gain @ (y - observation @ x), p - gain @ s @ gain.T
        return (x, p), (x, jnp.linalg.slogdet(s)[1])

    return lax.scan(step, (jnp.zeros(4), jnp.eye(4)), measured)


def adaptive_ode(y: Any, stiffness: Any) -> Any:
    """Integrate Van der Pol's equation by the method of Heun and Euler, with steps of varying size."""

    def slope(y: Any) -> Any:
        return jnp.stack([y[1], stiffness * (1 - y[0] ** 2) * y[1] - y[0]])

    def step(state: Any) -> Any:
        y, t, h, count = state
        h = jnp.minimum(h, 1 - t)
        first = slope(y)
        second = slope(y + h * first)
        error = jnp.linalg.norm(h * (second - first) / 2) + 1e-12
        is_good = error < 1e-3
        y, t = jnp.where(is_good, y + h * (first + second) / 2, y), jnp.where(is_good, t + h, t)
        return y, t, h * jnp.clip(0.9 * jnp.sqrt(1e-3 / error), 0.2, 5.0), count + 1

    return lax.while_loop(lambda state: (state[1] < 1) & (state[3] < 500), step, (y, 0.0, 0.05, 0))[0]


def viterbi(start: Any, transition: Any, emission: Any, observed: Any) -> Any:
    def forward(scores: Any, symbol: Any) -> Any:
        candidates = scores[:, None] + transition
        return candidates.max(0) + emission[:, symbol], candidates.argmax(0)

    scores, origins = lax.scan(forward, start + emission[:, observed[0]], observed[1:])
    last = jnp.argmax(scores)
    return lax.scan(lambda state, origin: (origin[state], origin[state]), last, origins, reverse=True)[1], last


def hamiltonian_monte_carlo(key: Any, x: Any) -> Any:
    def density(x: Any) -> Any:
        return -0.5 * jnp.sum(x**2 * jnp.array([1.0, 4.0]))

    def step(x: Any, key: Any) -> Any:
        first, second = jax.random.split(key)
        momentum = jax.random.normal(first, x.shape)

        def leap(_: Any, state: Any) -> Any:
            q, p = state
            p = p + 0.05 * jax.grad(density)(q)
            q = q + 0.1 * p
            return q, p + 0.05 * jax.grad(density)(q)

        q, p = lax.fori_loop(0, 5, leap, (x, momentum))
        change = density(q) - density(x) - 0.5 * jnp.sum(p * p) + 0.5 * jnp.sum(momentum**2)
        return (moved := jnp.where(jnp.log(jax.random.uniform(second)) < change, q, x)), moved

    return lax.scan(step, x, jax.random.split(key, 8))


def random_numbers(key: Any) -> Any:
    keys = jax.random.split(key, 6)
    return (
        jax.random.categorical(keys[0], jnp.log(jnp.arange(1.0, 6)), shape=(8,)),
        jax.random.permutation(keys[1], 20),
        jax.random.truncated_normal(keys[2], -1, 1, (4,)),
        jax.random.choice(keys[3], 30, (5,), replace=False),
        jax.random.randint(keys[4], (5,), -5, 1000),
        jax.random.fold_in(keys[5], 7),
    )


def gaussian_process(scale: Any, x: Any, y: Any, at: Any) -> Any:
    def kernel(a: Any, b: Any) -> Any:
        return jnp.exp(-0.5 * jnp.sum((a[:, None] - b) ** 2, -1) / scale**2)

    factor = jnp.linalg.cholesky(kernel(x, x) + 0.1 * jnp.eye(len(x)))
    mean = kernel(at, x) @ jax.scipy.linalg.cho_solve((factor, True), y)
    spread = jax.scipy.linalg.solve_triangular(factor, kernel(x, at), lower=True)
    return mean, 1 - jnp.sum(spread**2, 0)


def n_body(q: Any, p: Any) -> Any:
    def force(q: Any) -> Any:
        distance = q[:, None] - q
        return -jnp.sum(distance / (jnp.sum(distance**2, -1, keepdims=True) + 0.1) ** 1.5, 1)

    def step(state: Any, _: Any) -> Any:
        q, p = state
        p = p + 0.005 * force(q)
        q = q + 0.01 * p
        return (q, p + 0.005 * force(q)), jnp.sum(p * p)

    return lax.scan(step, (q, p), None, length=20)


# ---- arrays ----


def orders(x: Any, at: Any) -> Any:
    return (
        lax.top_k(x, 3),
        jnp.take_along_axis(x, jnp.argsort(-x, axis=1), 1),
        jnp.searchsorted(jnp.sort(x[0]), at),
        jnp.unique(jnp.round(x[0]), size=5, fill_value=9),
        jnp.median(x, 0),
        jnp.percentile(x, 30.0, axis=1),
    )


def segments(x: Any, group: Any) -> Any:
    total = jax.ops.segment_sum(x, group, 4)
    return total, jax.ops.segment_max(x, group, 5), jnp.bincount(group, length=6), jnp.ones((4, 2)).at[group].mul(x)


def branches_of_batches(x: Any, index: Any) -> Any:
    def root(x: Any) -> Any:
        return lax.while_loop(lambda s: s[0] < 100, lambda s: (s[0] * 2 + 1, s[1] + 1), (x, 0))

    signs = jax.vmap(lambda x: lax.cond(x > 0, jnp.sin, lambda x: x - 1, x))(x)
    return signs, jax.vmap(root)(jnp.abs(x)), jax.vmap(lambda i, x: lax.switch(i, [jnp.sin, jnp.cos], x))(index, x)


def filtered_spectrum(x: Any) -> Any:
    spectrum = jnp.fft.rfft(x)
    smooth = jnp.fft.irfft(spectrum * jnp.exp(-jnp.arange(spectrum.shape[-1]) / 8), n=x.shape[-1])
    return smooth, jnp.abs(jnp.fft.fft2(x)), jax.scipy.signal.fftconvolve(x[0], x[1])


def narrow_numbers(x: Any, weights: Any) -> Any:
    quantized = jnp.clip(jnp.round(x / 0.1), -8, 7).astype(jnp.int4)
    product = lax.dot_general(
        quantized.astype(jnp.int8), weights, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32
    )
    return product, jax.nn.softmax(x.astype(jnp.bfloat16)), quantized.astype(jnp.int8)


def _programs() -> dict[str, Program]:
    params, tokens = _transformer_parameters(), np.random.default_rng(0).integers(0, _VOCABULARY, (2, 8))
    tokens, key = tokens.astype(np.int32), np.array([3, 5], np.uint32)
    zeros = jax.tree.map(np.zeros_like, params)
    log_of = [np.asarray(jax.nn.log_softmax(_normal(*shape))) for shape in ((4,), (4, 4), (4, 6))]
    observed = np.random.default_rng(1).integers(0, 6, 15).astype(np.int32)
    transition = np.eye(4, dtype=np.float32) + 0.1 * np.eye(4, k=1, dtype=np.float32)
    images, filters = _normal(3, 8, 8, 4), {"first": _normal(3, 3, 4, 8), "second": _normal(3, 3, 4, 6)}
    return {
        "transformer": (transformer, (params, tokens)),
        "decoder with a cache": (decode_with_cache, (params, np.int32(3))),
        "training of a transformer": (train_transformer, (params, (zeros, zeros), tokens, np.float32(1))),
        "training of a CNN": (train_cnn, ({**filters, "dense": _normal(6, 5)}, images, np.int32([0, 3, 4]))),
        "training of an MLP": (
            train_mlp,
            ({"w": _normal(4, 8), "b": _normal(8), "v": _normal(8, 1)}, _normal(9, 4), _normal(9, 1)),
        ),
        "diffusion": (sample_diffusion, (_normal(2, 2), key, _normal(1, 8, 8, 2))),
        "mixture of experts": (route_experts, (_normal(6, 4), _normal(4, 6, 5), _normal(7, 6))),
        "state space model": (state_space, (_normal(4), _normal(4), _normal(13, 4))),
        "checkpointed layers": (checkpointed_layers, (_normal(3, 4, 4, scale=0.3), _normal(2, 4))),
        "Kalman filter": (kalman, (transition, np.eye(4, dtype=np.float32)[::2], _normal(12, 2))),
        "adaptive steps": (adaptive_ode, (np.float32([2, 0]), np.float32(1.5))),
        "batch of adaptive steps": (jax.vmap(adaptive_ode, (0, None)), (_normal(3, 2), np.float32(1.5))),
        "Viterbi": (viterbi, (*log_of, observed)),
        "Hamiltonian Monte Carlo": (hamiltonian_monte_carlo, (key, np.zeros(2, np.float32))),
        "random numbers": (random_numbers, (key,)),
        "Gaussian process": (gaussian_process, (np.float32(1.2), _normal(8, 2), _normal(8), _normal(3, 2, seed=2))),
        "n bodies": (n_body, (_normal(5, 3), _normal(5, 3, seed=1))),
        "orders": (orders, (_normal(4, 9), _normal(5, seed=1))),
        "segments": (segments, (_normal(12, 2), np.int32([0, 1, 2, 3] * 3))),
        "branches of batches": (branches_of_batches, (_normal(6), np.int32([0, 1, 2, 0, 1, 5]))),
        "spectrum": (filtered_spectrum, (_normal(4, 30),)),
        "narrow numbers": (narrow_numbers, (_normal(4, 8), np.arange(-20, 20, dtype=np.int8).reshape(8, 5))),
    }


PROGRAMS = _programs()
