"""Cases of the tests of determinism: functions with their arguments, and the file of them that driver.c reads."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from frontend.onnx_excluded import RANDOM, REFUSED
from frontend.onnx_suite import node_cases
from onnx import numpy_helper

from relvm.frontend.onnx import from_onnx
from relvm.frontend.text import parse_module
from relvm.ir.expr import Module
from relvm.ir.portable_random import PortableRandom
from relvm.numpy_dtypes import dtype_number, pack_strings, plain_array


@dataclass(frozen=True)
class Calls:
    """A module, and calls of its functions: pairs of a name and the arguments."""

    name: str
    module: Module
    calls: tuple[tuple[str, tuple[Any, ...]], ...]


def operator_cases(batch: int = 100, step: int = 1) -> Iterator[Calls]:
    """Yield the node cases of ONNX's backend suite that relvm runs and that draw no random numbers.

    batch: the number of functions of a module.   step: only every `step`-th case is used.
    """
    excluded = {name.removesuffix("_cpu") for name in (*REFUSED, *RANDOM)}
    cases = [(name, case) for name, case in sorted(node_cases().items()) if name not in excluded][::step]
    for first in range(0, len(cases), batch):
        functions, calls = [], []
        for name, case in cases[first : first + batch]:
            functions.append(replace(from_onnx(case.model)["main"], name=name))
            for inputs, _ in case.data_sets:
                calls.append((name, tuple(map(_input, inputs, case.model.graph.input))))
        yield Calls(f"operators{first:05}", Module(tuple(functions)), tuple(calls))


def _input(value: Any, port: Any) -> Any:
    """Return an input of a case as a value for a machine."""
    if hasattr(value, "SerializeToString"):
        return numpy_helper.to_array(value)
    return value


def encoded(calls: Sequence[tuple[str, tuple[Any, ...]]]) -> bytes:
    """Return the file with calls that driver.c reads."""
    parts: list[bytes] = []
    for name, arguments in calls:
        content = name.encode()
        parts += [struct.pack("<q", len(content)), content, struct.pack("<q", len(arguments))]
        for argument in arguments:
            _encode(argument, parts)
    return b"".join(parts)


def _encode(value: Any, parts: list[bytes]) -> None:
    def add(letter: str, *numbers: int) -> None:
        parts.append(struct.pack(f"<{1 + len(numbers)}q", ord(letter), *numbers))

    match value:
        case None:
            add("n")
        case bool():
            add("b", value)
        case int():
            add("i", value)
        case float():
            add("f")
            parts.append(struct.pack("<d", value))
        case str():
            content = value.encode()
            add("s", len(content))
            parts.append(content)
        case tuple() | list():
            add("l" if isinstance(value, list) else "u", len(value))
            for item in value:
                _encode(item, parts)
        case _:
            array = plain_array(np.asarray(value))
            add("t", dtype_number(array.dtype), array.ndim, *array.shape)
            content = array.tobytes() if array.dtype != object else pack_strings(array).tobytes()
            if array.dtype == object:
                parts.append(struct.pack("<q", len(content)))
            parts.append(content)


def model_cases(names: Sequence[str]) -> Iterator[Calls]:
    """Yield real models of benchmarks/models/catalogue.py with their first case, and a classifier of digits."""
    from aot.real_models import DIGITS, real_model
    from models.paths import path_of

    from benchmarks.models.catalogue import MODELS

    for name in names:
        if name == DIGITS:
            model = real_model(name)
            yield Calls(name, model.module, (("main", model.calls[0]),))
            continue
        module = from_onnx(path_of(MODELS[name]))
        case = MODELS[name].cases()[0]
        yield Calls(name, module, (("main", tuple(case[key] for key in module["main"].input_names)),))


_FUNCTIONS = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cos", "cosh", "erf", "erfc", "exp", "exp_ftz"),
    *("expm1", "log", "log1p", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh", "round", "round_away", "floor", "ceil"),
    *("reciprocal", "sign", "relu", "abs", "softmax", "cumsum"),
)
_INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
_OPERATIONS = ("add", "subtract", "multiply", "divide", "power", "atan2", "maximum", "minimum", "remainder", "modulo")


def function_cases(count: int, step: int = 1) -> Calls:
    """Return functions of f32, f64 and f16 on numbers of every exponent, special numbers, and usual numbers.

    There are elementwise functions, operations, conversions, reductions, matrix products and convolutions.

    count: about how many numbers the elementwise functions have.   step: only every `step`-th function is used.
    """
    texts: list[str] = []
    calls: list[tuple[str, tuple[Any, ...]]] = []

    def add(name: str, parameters: str, result: str, body: str, *arguments: Any) -> None:
        texts.append(f"def {name}({parameters}) -> {result} {{ return {body} }}")
        calls.append((name, arguments))

    rng = PortableRandom(1)
    for dtype, bits in (("f32", 32), ("f64", 64), ("f16", 16)):
        code = rng.integers(0, 2**62, count).astype(np.uint64) * np.uint64(5) >> np.uint64(64 - bits)
        everywhere = code.astype(f"u{bits // 8}").view(f"f{bits // 8}")
        special = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, 2, 1e-45, 65504, 0.75], everywhere.dtype)
        x = np.concatenate([special, everywhere, (rng.standard_normal(count) * 3).astype(everywhere.dtype)])
        y = np.concatenate([x[len(x) // 3 :], x[: len(x) // 3]])
        for name in _FUNCTIONS:
            axis = ", axis=0" if name in ("softmax", "cumsum") else ""
            numbers = x[-count:] if axis else x
            add(f"{name}_{dtype}", f"x: {dtype}[n]", f"{dtype}[n]", f"{name}(x{axis})", numbers)
        for name in _OPERATIONS:
            add(f"{name}_{dtype}", f"x: {dtype}[n], y: {dtype}[n]", f"{dtype}[n]", f"{name}(x, y)", x, y)
        for to in _INTEGERS:
            add(f"{to}_of_{dtype}", f"x: {dtype}[n]", f"{to}[n]", f"cast(x, to={to})", x)
        for name in ("sum", "mean", "max", "min", "prod"):
            numbers = x[-count:].reshape(-1, 10)
            add(f"{name}_{dtype}", f"x: {dtype}[n, m]", f"{dtype}[m]", f"{name}(x, axes=(0,))", numbers)
            add(f"{name}_all_{dtype}", f"x: {dtype}[n, m]", f"{dtype}[]", f"{name}(x)", numbers)
        for rows, depth, columns in ((1, 300, 70), (37, 45, 67), (130, 64, 16)):
            left, right = (
                rng.standard_normal(shape).astype(everywhere.dtype) for shape in ((rows, depth), (depth, columns))
            )
            types = f"x: {dtype}[{rows}, {depth}], y: {dtype}[{depth}, {columns}]"
            add(f"matmul{rows}_{dtype}", types, f"{dtype}[{rows}, {columns}]", "matmul(x, y)", left, right)
    for filters, channels, side, groups in ((5, 3, 17, 1), (16, 16, 28, 1), (8, 8, 30, 8), (20, 6, 9, 1)):
        x = rng.standard_normal((2, channels, side, side)).astype(np.float32)
        w = rng.standard_normal((filters, channels // groups, 3, 3)).astype(np.float32)
        types = f"x: f32[2, {channels}, {side}, {side}], w: f32[{filters}, {channels // groups}, 3, 3]"
        result, body = f"f32[2, {filters}, {side}, {side}]", f"conv(x, w, pads=(1, 1, 1, 1), groups={groups})"
        add(f"conv{filters}_{groups}", types, result, body, x, w)
    return Calls("functions", parse_module("\n".join(texts[::step])), tuple(calls[::step]))


# The real models that run in seconds, also under emulation.
QUICK_MODELS = ("digits", "oww_alexa", "mtcnn_o", "atspm_func_head", "nani_trees", "chars2vec")
