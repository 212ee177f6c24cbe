"""NumPy in scripts: the same expressions are evaluated by NumPy and translated, and the results are equal."""

# ruff: noqa: F821 (types of scripts are not Python types)
from __future__ import annotations

import linecache
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from documents import ROOT

from relvm import script, vm
from relvm.errors import (
    RelvmArgumentError,
    RelvmError,
    RelvmIndexError,
    RelvmNameError,
    RelvmShapeError,
    RelvmTypeError,
)
from relvm.frontend.script.array_functions import FUNCTIONS, METHODS
from relvm.ir.interpreter import evaluate
from relvm.ir.printer import print_module
from relvm.ir.verifier import Stage, verify

X = np.random.default_rng(3).standard_normal((4, 6)).astype(np.float32)
K = np.array([3, 0, 0, -1], np.int64)
M = np.array([[7, -7, 9], [-4, 5, 0]], np.int32)
B = np.array([[True, False, True], [False, False, True]])
INPUTS = {"x": X, "k": K, "m": M, "b": B, "i": 1, "j": -2}
HEADER = """from __future__ import annotations
import math
import numpy as np


def f(x: {x}, k: i64[4], m: i32[2, 3], b: bool[2, 3], i: i64, j: i64):
"""

INDICES = """
0
-1
0, 1
:, 0
1:
:2
:-1
-3:
::2
::-1
1:3, 2:5
3:0:-1
5:9
9:
:, ::-2
None
:, None
None, 0
0, None
..., 0
..., None
1, ...
...
:, 1:4, None
0:0
i
j
:, i
i:
:i
i:j
j:
:, j:
i : i + 2
j : i + 2
::2, j:
i::2
len(x) - 1
: x.shape[0] - 1
x.shape[0] - 2 :
1 : x.shape[1]
: x.shape[1] // 2
k
:, k
k, 1:3
None, k
[0, 2]
k[0]
x > 0
x[:, 0] > 0
x < -9
np.array([True, False, True, True])
:, np.array([1, 1])
""".strip().splitlines()

EXPRESSIONS = """
x % 2
x // 0.75
m % 4
m // 4
m & 3
m | 8
m ^ 5
np.astype(x, np.int32)
np.copy(x) - 1
x.clip(0, 1)
m.round()
m.min(axis=0)
x.var(axis=1)
x.dot(x.T)
x.argmin(axis=0)
np.sum(x)
np.prod(x)
np.max(x)
np.min(x)
np.amin(x)
np.std(x)
np.any(b)
np.argmax(x)
np.ravel(x)
np.swapaxes(x, 0, 1)
np.squeeze(x)
~m
m << 2
m >> 1
b & ~b
b | b
b ^ (m > 0)
-x ** 2
abs(x)
np.exp(x) + np.log1p(np.square(x))
np.maximum(x, 0) - np.minimum(0, x)
np.where(x > 0, x, 0.5)
np.clip(x, -0.5, 0.5)
np.clip(x, x - 1, 0.25)
np.clip(x, a_min=0, a_max=1)
x.clip(max=0)
np.transpose(x, axes=(1, 0))
x.transpose((1, 0))
np.abs(x) + np.sign(x) + np.floor(x) + np.ceil(x) + np.rint(x) + np.round(x)
np.sqrt(np.fabs(x)) * np.tanh(x)
np.arctan(x) + np.sin(x) + np.cosh(x)
np.isnan(x)
np.mod(m, 3)
np.fmod(m, 3)
np.floor_divide(x, 2)
np.power(x, 2)
np.logical_not(b)
np.bitwise_xor(m, 1)
x.sum()
x.sum(axis=0)
x.sum(1, keepdims=True)
x.sum(axis=(0, 1))
x.mean(axis=-1)
np.mean(x, axis=0)
np.var(x)
x.std(axis=1)
x.max() - x.min(axis=0)
np.amax(x, axis=1)
m.prod(axis=1, keepdims=True)
x.argmax(axis=1)
x.argmax()
np.argmin(x, axis=0)
b.any()
b.any(axis=0)
b.all(axis=1)
np.all(x < 9)
x.cumsum(axis=1)
np.cumsum(x)
x.T
x.T @ x
x @ x[0]
x[0] @ x[1]
np.dot(x, x.T)
np.dot(x[0], x[1])
np.matmul(x, x.T)
x.reshape(6, 4)
x.reshape((2, -1))
x.reshape(-1)
x.reshape(2, 2, -1)
x.reshape(len(x), -1)
x.reshape(-1, 2)
x.ravel()
x.flatten()
np.reshape(x, (3, 8))
x.transpose()
x.transpose(1, 0)
np.transpose(x, (1, 0))
x[None].transpose(0, -1, -2)
x[None].swapaxes(0, 2)
np.moveaxis(x[None], 0, -1)
np.expand_dims(x, 1)
np.expand_dims(x, (0, -1)).squeeze()
x[:, None].squeeze(axis=1)
np.concatenate([x, x[:1]])
np.concatenate((x, x), axis=1)
np.stack((x, -x), axis=1)
np.stack([x, x], axis=-1)
np.broadcast_to(x[0], x.shape)
np.take(x, k, axis=1)
x.take(k)
x.take(1, axis=0)
x.astype(np.float64)
x.astype("int32")
x.astype(bool)
np.float64(x)
x.copy() + 1
np.zeros(3) + 1
np.zeros((2, 2), np.float32) + 1
np.zeros(x.shape, np.float32) + x
np.ones((len(x), 2))
np.full((len(x), 2), 7)
np.full((len(x), 2), i)
np.zeros_like(x)
np.ones_like(m)
np.full_like(x, 2)
np.full_like(x, 3, dtype=np.int64)
np.arange(4) + k
b.sum()
b.mean(axis=0)
m.mean()
m.var(axis=1)
x / 2
np.divide(x, 2)
np.hstack([x, x])
np.hstack((x[0], x[1]))
np.vstack([x, x[0]])
np.flip(x)
np.flip(x, 0)
np.flip(x, (0, -1))
np.repeat(x, 3)
np.repeat(x, 2, axis=1)
np.tile(x, 2)
np.tile(x[0], (2, 3))
np.split(x, 2)[1]
np.split(x, (1, 4), axis=1)[2]
np.roll(x, 1)
np.roll(x, -7)
np.roll(x, 2, axis=1)
np.outer(x[0], x[1])
np.where(x > 0, 1.0, -1.0)
np.where(b, 1, 0)
np.where(x > 0, np.inf, 2)
np.pad(x, 1)
np.pad(x, ((0, 2), (1, 0)), constant_values=7)
np.pad(x, (1, 2), mode="edge")
np.pad(x[0], 2, "reflect")
np.tril(x)
np.triu(x, 1)
np.tril(np.stack([x, x]), -1)
np.triu(m)
np.diff(x)
np.diff(x, axis=0)
np.diff(x, n=2)
np.median(x)
np.median(x, axis=0)
np.median(x, axis=1, keepdims=True)
np.median(x, keepdims=True)
np.median(m, axis=1)
np.median(x * np.nan)
np.median(x + np.where(x > 0, np.inf, -np.inf).astype(np.float32), axis=1)
np.cumprod(x, axis=1)
np.sort(x)
np.sort(x, axis=0)
np.sort(x, axis=None)
np.argsort(x, axis=1)
np.linalg.norm(x)
np.linalg.norm(x, axis=1, keepdims=True)
np.linalg.norm(x[0], 2)
np.isinf(x)
np.isfinite(x)
np.nonzero(x[0] > 0)[0]
np.flatnonzero(x > 0)
math.sqrt(2.0) * x
x / math.sqrt(x.shape[1])
x / np.float32(np.sqrt(len(x)))
x * math.pi
x * i ** 2
x * max(i, 3) * abs(j)
x * math.exp(0.5 * i)
x * math.floor(i / 2)
x * 2 if math.floor(2.5 * i) == 2 else x
x + sum([x[0], x[1]])
x + sum(x[0] * c for c in (1, 2, 3) if c != 2)
np.stack([x[0] * c for c in range(3)])
max([x[0], x[1]]) if False else x
x if i in (1, 2) else -x
x if i not in (1, 2) else -x
x if x is not None else -x
x if x.shape == (4, 6) else -x
x if x.shape != (len(x), 7) else -x
x if x.dtype == np.float32 else -x
x + +i
pow(x, 2)
np.stack([*(x, x), -x])
np.concatenate([x] + [x])
np.arange(len(x))
np.eye(len(x))
np.eye(len(x), x.shape[1], dtype=np.float32) + x
np.arange(1, x.shape[1])
x * np.sqrt(2.0)
x + np.float32(0.5)
x * np.linspace(0, 1, 1, dtype=np.float32)
x.size
x.ndim + len(x)
len(x.shape)
x[1:, :2].sum(axis=0) * x[0, 0]
""".strip().splitlines()

WIDENED = ("m.prod", "np.sqrt(2.0)")  # NumPy converts to a wider dtype, and relvm does not


def functions(expression: str, tmp_path: Path, x: str) -> tuple[Any, Any]:
    """Return the expression as a function of NumPy arrays, and as a script.  x: the type of the parameter x."""
    text = f"{HEADER.format(x=x)}    return {expression}\n"
    path = str(tmp_path / "expression.py")
    Path(path).write_text(text)
    linecache.checkcache(path)
    names: dict[str, Any] = {}
    exec(compile(text, path, "exec"), names)
    return names["f"], script(names["f"])


def check(expression: str, tmp_path: Path) -> None:
    for x in ("f32[4, 6]", "f32[n, 6]", "f32[n, p]"):
        python, translated = functions(expression, tmp_path, x)
        expected = python(*INPUTS.values())
        try:
            module = translated.module
        except RelvmShapeError as error:
            assert x != "f32[4, 6]"
            assert re.search("every dimension must be known", str(error))
            continue
        verify(module, Stage.TYPED)
        result = evaluate(module, "f", *INPUTS.values())
        assert np.shape(result) == np.shape(expected), x
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-5, atol=1e-6)
        if isinstance(expected, np.ndarray) and not any(word in expression for word in WIDENED):
            assert result.dtype == expected.dtype


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_has_the_value_that_numpy_computes(expression: str, tmp_path: Path) -> None:
    check(expression, tmp_path)


@pytest.mark.parametrize("index", INDICES)
def test_an_index_selects_what_numpy_selects(index: str, tmp_path: Path) -> None:
    check(f"x[{index}]", tmp_path)


INTEGERS, BOOLS = ("left_shift", "right_shift"), ("logical_and", "logical_not", "logical_or")
UFUNCS = [name for name in FUNCTIONS if isinstance(getattr(np, name, None), np.ufunc)]


@pytest.mark.parametrize("name", UFUNCS)
def test_a_ufunc_is_an_operator(name: str, tmp_path: Path) -> None:
    operands = (
        "m" if name in INTEGERS else "b" if name in BOOLS else "m" if "bitwise" in name or name == "invert" else "x"
    )
    binary = {"m": "m, np.abs(m) % 4", "b": "b, b[::-1]", "x": "x, x[::-1]"}
    expression = (
        f"np.{name}({operands if getattr(np, name).nin == 1 else 'x, x.T' if name == 'matmul' else binary[operands]})"
    )
    with np.errstate(all="ignore"):
        check(expression, tmp_path)


def test_each_function_and_method_is_tested() -> None:
    text = " ".join(EXPRESSIONS)
    assert [name for name in FUNCTIONS if name not in UFUNCS and f"np.{name}(" not in text] == [
        "flatten",
        "permute_dims",
        "norm",
    ]
    assert [name for name in METHODS if f".{name}(" not in text] == []


def test_the_document_lists_the_functions_and_methods() -> None:
    section = (ROOT / "docs" / "language.md").read_text().partition("### NumPy in scripts")[2]
    functions, methods = (re.findall(r"\w+", text) for text in re.findall(r"```text\n(.*?)```", section, re.DOTALL)[:2])
    assert functions == sorted(name for name in FUNCTIONS if hasattr(np, name))
    assert methods == [*METHODS, "T", "dtype", "ndim", "shape", "size"]


@script
def window(x: f32[n, m], i: i64, j: i64):
    rows = x[i:j]
    scaled = rows[:, ::-1].mean(axis=1, keepdims=True)
    return scaled[None], rows[0], len(rows)


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_indices_in_built_programs(mode: str) -> None:
    machine = vm.VirtualMachine(vm.build(window, mode, "bytecode"))
    scaled, row, length = machine["window"](X, 1, -1)
    np.testing.assert_allclose(scaled, X[1:-1].mean(axis=1, keepdims=True)[None], rtol=1e-5)
    np.testing.assert_array_equal(row, X[1])
    assert length == 2
    with pytest.raises(RelvmIndexError):
        machine["window"](X, 9, 9)
    text = print_module(window)
    assert "rows: " in text and "scaled: " in text


WRONG = [
    ("x[0, 0, 0]", RelvmTypeError, "expected at most 2 indices, one for each axis, got 3"),
    ("x[..., ...]", RelvmTypeError, "expected at most one ..."),
    ("x[k, [0, 1, 2, 3]]", RelvmTypeError, "use gather_nd"),
    ("x[k, None, 0]", RelvmTypeError, "index twice"),
    ("x[1.5]", RelvmTypeError, "expected integers as indices, got 1.5"),
    ("x[True]", RelvmTypeError, "expected integers as indices, got True"),
    ("x[x > 0, 0]", RelvmTypeError, "expected a tensor of bool as the only index"),
    ("x[b]", RelvmTypeError, "the index: expected dimension 0 to be 4, got 2"),
    ("x[None][0, 0, 0][b]", RelvmTypeError, r"cannot index f32\[\]"),
    ("x.sum(dim=0)", RelvmArgumentError, "unexpected keyword argument 'dim'; write axis"),
    ("m / 2", RelvmTypeError, "write // for integers, or convert a tensor, as in x.astype"),
    ("m * 0.5", RelvmTypeError, "0.5 cannot be used as i32; convert the tensor, as in x.astype"),
    ("np.linalg.norm(x, 1)", RelvmArgumentError, "expected ord=None, or ord=2 for vectors"),
    (
        "np.split(x, 3)",
        RelvmShapeError,
        "expected a size that is a multiple of 3; every dimension must be",
    ),
    ("np.nonzero(x)", RelvmTypeError, "expected a tensor of rank 1"),
    ("[row.sum() for row in x[: len(k) - i]]", RelvmTypeError, "has a symbolic number of items; write a loop"),
    ("x.relu()", RelvmTypeError, "no attribute relu; write relu"),
    ("x.exp()", RelvmTypeError, "no attribute exp; write np.exp"),
    ("x.unsqueeze(0)", RelvmTypeError, "no attribute unsqueeze; write np.expand_dims"),
    ("x['a']", RelvmTypeError, "expected integers as indices, got 'a'"),
    ("x[::0]", RelvmArgumentError, "step"),
    ("x[i::-1]", RelvmArgumentError, "must be a positive integer"),
    ("x[b:]", RelvmTypeError, r"expected an integer, got bool\[2, 3\]"),
    ("x.reshape(-1, -1)", RelvmArgumentError, "at most one size of -1"),
    ("x.reshape(5, -1)", RelvmShapeError, "elements"),
    ("np.pad(x, -1)", RelvmArgumentError, "pad: expected an integer, a pair, or a pair for each of the 2 axes"),
    ("np.pad(x, (1, 2, 3))", RelvmArgumentError, "pad: expected an integer, a pair, or a pair for each of the 2 axes"),
    ("np.median(x, axis=(0, 1))", RelvmTypeError, "median: expected one axis or none"),
    ("np.einsum('ij->i', x)", RelvmNameError, "scripts do not support the function einsum of NumPy"),
    ("np.summ(x)", RelvmNameError, "no attribute summ; did you mean sum"),
    ("x.meen()", RelvmTypeError, "no attribute meen; did you mean mean"),
    ("x.sum(axs=0)", RelvmArgumentError, r"sum\(x, axis=None, keepdims=False\)"),
    ("x.sum", RelvmTypeError, "cannot be a value of the program"),
    ("np.zeros(3, 'q9')", RelvmTypeError, "q9"),
    ("len(i)", RelvmTypeError, "len: expected a tensor"),
]


@pytest.mark.parametrize(("expression", "kind", "message"), WRONG, ids=[row[0] for row in WRONG])
def test_wrong_indices_and_calls_are_errors(
    expression: str, kind: type[RelvmError], message: str, tmp_path: Path
) -> None:
    _, translated = functions(expression, tmp_path, "f32[4, 6]")
    with pytest.raises(kind, match=message):
        _ = translated.module
