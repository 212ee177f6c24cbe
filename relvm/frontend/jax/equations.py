"""Converters of the equations that JAX does not lower: calls, loops, conditionals and some others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.common.control_flow import choose, if_else, while_loop
from relvm.frontend.common.indexed_kernels import dynamic_update_slice_kernel
from relvm.frontend.jax.avals import dim_of
from relvm.frontend.jax.context import JaxprContext
from relvm.frontend.jax.leaves import DIRECT, STRUCTURAL
from relvm.frontend.stablehlo.cumulative import emit_cumulative
from relvm.ir.dtypes import F32, I64
from relvm.ir.expr import DimValue, Expr, Shape, Tuple, constant, prim
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import PrimType, TupleType, Type

Converter = Callable[[JaxprContext, Any, list[Expr]], list[Expr]]

_converters: dict[str, Converter] = {}
# Primitives that relvm refuses, with the reasons.
REFUSED = {
    **dict.fromkeys(("debug_callback", "debug_print", "io_callback", "pure_callback"), "callbacks are not supported"),
    **dict.fromkeys(("infeed", "outfeed"), "communication with the host is not supported"),
    **dict.fromkeys(
        (
            "all_gather",
            "all_to_all",
            "axis_index",
            "pbroadcast",
            "pmap",
            "pmax",
            "pmin",
            "ppermute",
            "psum",
            "shard_map",
        ),
        "programs for several devices are not supported",
    ),
}


def converts(*names: str) -> Callable[[Converter], Converter]:
    """Return a decorator that registers a function as the converter of primitives.

    A converter takes the importer, the equation and its operands, and returns the values of its results.
    """

    def declare(function: Converter) -> Converter:
        for name in names:
            assert name in STRUCTURAL | DIRECT and name not in _converters
            _converters[name] = function
        return function

    return declare


def converter_for(name: str) -> Converter | None:
    """Return the converter of a primitive, or None if JAX lowers it to StableHLO."""
    return _converters.get(name)


# ---- calls ----


@converts("jit", "pjit", "closed_call", "core_call", "checkpoint", "remat2")
def _call(importer: JaxprContext, equation: Any, operands: list[Expr]) -> list[Expr]:
    params = equation.params
    jaxpr = params["jaxpr"] if "jaxpr" in params else params["call_jaxpr"]
    return importer.call_jaxpr(params.get("name") or _name_of(jaxpr), jaxpr, operands)


@converts("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr")
def _custom_derivative(importer: JaxprContext, equation: Any, operands: list[Expr]) -> list[Expr]:
    """Call the primal function.  The rules for its derivatives were applied when JAX traced the program."""
    params = equation.params
    jaxpr = params["call_jaxpr"] if "call_jaxpr" in params else params["fun_jaxpr"]
    return importer.call_jaxpr(_name_of(jaxpr), jaxpr, operands)


def _name_of(jaxpr: Any) -> str:
    """Return the name of the Python function from which a jaxpr was traced."""
    info = getattr(getattr(jaxpr, "jaxpr", jaxpr), "debug_info", None)
    return getattr(info, "func_name", None) or "function"


@converts("name")
def _name(importer: JaxprContext, equation: Any, operands: list[Expr]) -> list[Expr]:
    """Return the operand, whose variable gets the name that jax.ad_checkpoint.checkpoint_name states."""
    (x,) = operands
    name = str(equation.params["name"])
    return [importer.builder.renamed(x, name) if name.isidentifier() and name.isascii() else x]


# ---- control flow ----


@converts("cond")
def _cond(importer: JaxprContext, equation: Any, operands: list[Expr]) -> list[Expr]:
    index, *args = operands
    branches = [lambda jaxpr=jaxpr: importer.inline(jaxpr, args) for jaxpr in equation.params["branches"]]
    types = [importer.type_of_value(var.aval) for var in equation.outvars]
    if not types:
        return []
    if index.element_type is not None and index.element_type.is_bool:
        value = if_else(importer.builder, index, branches[1], branches[0])
    else:
        value = choose(importer.builder, index, branches)
    results = importer.results(value, len(types))
    return [importer.with_type(*each) for each in zip(results, types, strict=True)]


@converts("while")
def _while(importer: JaxprContext, equation: Any, operands: list[Expr]) -> list[Expr]:
    """Import a `while` loop.

    Under vmap, the condition has batch axes.  The loop then runs while the condition of any batch element is true, and
    updates only the elements whose condition is true.
    """
    params = equation.params
    first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    condition_consts, body_consts, initial = operands[:first], operands[first:second], operands[second:]
    condition, body = params["cond_jaxpr"], params["body_jaxpr"]
    is_batched = condition.jaxpr.outvars[0].aval.shape != ()
    types = [importer.type_of_value(var.aval) for var in equation.outvars]
    if not initial:
        raise RelvmUnsupportedError("a loop without values never changes its condition")

    def runs_again(*state: Expr) -> Expr:
        (go,) = importer.inline(condition, [*condition_consts, *state])
        if not is_batched:
            return go
        axes = tuple(range(len(go.tensor_type.known_shape)))
        count = importer.emit(ops.sum(importer.emit(ops.cast(go, to="i64")), axes=axes))
        return importer.emit(ops.greater(count, 0))

    def iteration(*state: Expr) -> list[Expr]:
        results = importer.inline(body, [*body_consts, *state])
        results = [importer.with_type(*each) for each in zip(results, types, strict=True)]
        if not is_batched:
            return results
        (go,) = importer.inline(condition, [*condition_consts, *state])
        return [_selected(importer, go, *each) for each in zip(results, state, strict=True)]

    loop = while_loop(importer.builder, initial, _params("state", types), runs_again, iteration)
    return importer.results(loop, len(initial))


def _selected(importer: JaxprContext, condition: Expr, x: Expr, y: Expr) -> Expr:
    """Return x where the condition is true, otherwise y.   condition: its axes are the leading axes of x and y."""
    if isinstance(x.type, TupleType):
        pairs = zip(importer.fields(x), importer.fields(y), strict=True)
        return Tuple(tuple(_selected(importer, condition, *pair) for pair in pairs), type=x.type)
    sizes = condition.tensor_type.known_shape
    shape = (*sizes, *[1] * (len(x.tensor_type.known_shape) - len(sizes)))
    return importer.emit(ops.where(importer.emit(ops.reshape(condition, Shape(shape))), x, y))


def _params(name: str, types: Sequence[Type]) -> list[tuple[str, Type]]:
    return [(f"{name}{i}", type_) for i, type_ in enumerate(types)]


@converts("scan")
def _scan(importer: JaxprContext, equation: Any, operands: list[Expr]) -> list[Expr]:
    """Import a `scan` as a loop that carries the state and the stacked results.

    Each iteration writes one row of each stacked result.
    """
    params, builder = equation.params, importer.builder
    first, second = params["num_consts"], params["num_consts"] + params["num_carry"]
    consts, initial, stacked = operands[:first], operands[first:second], operands[second:]
    count = len(initial)
    length = dim_of(params["length"], importer.dims)
    types = [importer.type_of_value(var.aval) for var in equation.outvars]
    rows = [importer.emit_zeros(type_) for type_ in types[count:]]

    def runs_again(i: Expr, *state: Expr) -> Expr:
        return builder.prim("lt", i, _scalar(length))

    def iteration(i: Expr, *state: Expr) -> list[Expr]:
        position = builder.prim("sub", _scalar(length - 1), i) if params["reverse"] else i
        at = importer.emit(ops.to_tensor(position, dtype="i64"), "at")
        items = [_row(importer, x, at) for x in stacked]
        results = importer.inline(params["jaxpr"], [*consts, *state[:count], *items])
        carried = [importer.with_type(*each) for each in zip(results[:count], types[:count], strict=True)]
        written = [_with_row(importer, *each, at) for each in zip(state[count:], results[count:], strict=True)]
        return [builder.prim("add", i, prim(1)), *carried, *written]

    names = [("i", PrimType(I64)), *_params("carry", types[:count]), *_params("rows", types[count:])]
    loop = while_loop(builder, [prim(0), *initial, *rows], names, runs_again, iteration)
    return importer.results(loop, len(types) + 1)[1:]


def _scalar(size: AnyDim) -> Expr:
    return prim(size) if isinstance(size, int) else DimValue(size)


def _row(importer: JaxprContext, x: Expr, at: Expr) -> Expr:
    """Return x[at], for a position `at` that is always in bounds."""
    if isinstance(x.type, TupleType):
        parts = tuple(_row(importer, part, at) for part in importer.fields(x))
        return Tuple(parts, type=TupleType(tuple(part.type for part in parts)))
    return importer.emit(ops.gather(x, at, axis=0))


def _with_row(importer: JaxprContext, x: Expr, row: Expr, at: Expr) -> Expr:
    """Return x with x[at] replaced by `row`.  If x is not used afterwards, it is updated in place."""
    if isinstance(x.type, TupleType):
        pairs = zip(importer.fields(x), importer.fields(row), strict=True)
        parts = tuple(_with_row(importer, part, new, at) for part, new in pairs)
        return Tuple(parts, type=x.type)
    shape = x.tensor_type.known_shape
    row = importer.with_shape(row, shape[1:])
    row = importer.emit(ops.reshape(row, Shape((1, *shape[1:]))))
    zero = constant(np.array(0))
    starts = [at, *[zero] * (len(shape) - 1)]
    types = [start.tensor_type for start in starts]
    kernel = dynamic_update_slice_kernel(importer.unique_name("set_row"), x.tensor_type, row.tensor_type, types)
    builder = importer.builder
    builder.kernel(kernel)
    return builder.call_kernel(kernel.name, x, row, *starts, result=x.tensor_type)


# ---- cumulative operations ----

_CUMULATIVE = {
    "cumsum": "add",
    "cumprod": "multiply",
    "cummax": "maximum",
    "cummin": "minimum",
    "cumlogsumexp": "logaddexp",
}


@converts(*_CUMULATIVE)
def _cumulative(importer: JaxprContext, equation: Any, operands: list[Expr]) -> list[Expr]:
    params = equation.params
    function = _CUMULATIVE[equation.primitive.name]
    return [emit_cumulative(importer, operands[0], function, params["axis"], reverse=params["reverse"])]


# ---- selection ----


@converts("approx_top_k")
def _approx_top_k(importer: JaxprContext, equation: Any, operands: list[Expr]) -> list[Expr]:
    """Import `approx_top_k` as an exact top-k, as JAX computes it on CPUs.

    If the equation returns more than k candidates, the others are the next largest or smallest elements.
    """
    (x,) = operands
    params = equation.params
    axis = params["reduction_dimension"] % len(equation.invars[0].aval.shape)
    wide = importer.emit(ops.cast(x, to=F32.name)) if x.known_element_type.is_narrow_float else x
    shape = Shape(tuple(dim_of(size, importer.dims) for size in equation.outvars[0].aval.shape))
    positions = importer.emit(ops.argtopk(wide, shape, axis=axis, largest=params["is_max_k"]))
    found = importer.emit(ops.gather_elements(x, positions, axis=axis))
    return [found, importer.emit(ops.cast(positions, to="i32"))]
