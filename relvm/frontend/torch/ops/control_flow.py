"""Control flow, assertions, and scalars that the program computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmUnsupportedError, counted
from relvm.frontend.common.control_flow import if_else, while_loop
from relvm.frontend.torch.element_types import dtype_of_scalar_type
from relvm.frontend.torch.ops.shapes import concatenated, selected, sliced
from relvm.frontend.torch.program import Graph
from relvm.frontend.torch.registry import Node, converter_for, converts, reason_for_refusal, refuses, shape_of
from relvm.ir.dtypes import BOOL, I64
from relvm.ir.expr import DimValue, Expr, Prim, PrimCall, TupleItem, prim
from relvm.ir.symbolic import AnyDim, Dim, dim_op
from relvm.ir.types import PrimType, TensorType, TupleType, Type


def _as_value(value: Any) -> Expr:
    """Return a result of a graph as an expression."""
    match value:
        case Expr():
            return value
        case Dim():
            return DimValue(value)
        case bool() | int() | float():
            return prim(value)
    raise RelvmUnsupportedError(f"a graph with a result of the type {type(value).__name__} is not supported")


def _as_values(values: Sequence[Any]) -> list[Expr]:
    return [_as_value(value) for value in values]


def _unpacked(node: Node, value: Expr, count: int) -> tuple[Any, ...]:
    if count == 1:
        return (_as_size(node, value),)
    assert isinstance(value.type, TupleType)
    types = value.type.fields
    return tuple(_as_size(node, node.emit(TupleItem(value, i, type=type_))) for i, type_ in enumerate(types))


def _as_size(node: Node, value: Expr) -> Any:
    """Return an integer scalar as a size, and any other value unchanged."""
    if not isinstance(value.type, PrimType) or value.type.dtype != I64:
        return value
    if value.type.value is not None:
        return value.type.value
    dim = node.importer.new_dim("u", signed=True)
    node.importer.builder.match_cast(value, PrimType(I64, dim))
    return dim


def _operands(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, tuple | list) else (values,)


def _condition(node: Node, value: Any) -> Expr | bool:
    if isinstance(value, Expr):
        if isinstance(value.type, TensorType):
            flat = node.cast(value, BOOL)
            return node.emit(ops.to_scalar(node.reshaped(flat, ())))
        return value
    return bool(value)


@converts("higher_order.cond")
def _cond(node: Node, pred: Any, true_graph: Graph, false_graph: Graph, operands: Any = ()) -> tuple[Any, ...]:
    """Becomes an `if`."""
    importer = node.importer
    args = _operands(operands)
    chosen = _condition(node, pred)
    if isinstance(chosen, bool):
        return tuple(importer.run_graph(true_graph if chosen else false_graph, args))
    count = len(true_graph.outputs)
    if not count:
        raise RelvmUnsupportedError("a branch without results is not supported")
    value = if_else(
        importer.builder,
        chosen,
        lambda: _as_values(importer.run_graph(true_graph, args)),
        lambda: _as_values(importer.run_graph(false_graph, args)),
    )
    return _unpacked(node, value, count)


def _loop(
    node: Node,
    state: Sequence[Any],
    condition: Callable[[list[Any]], Any],
    body: Callable[[list[Any]], Sequence[Any]],
) -> tuple[Any, ...]:
    """Run a loop.

    state: the initial values: tensors, and integers and sizes, which become scalars.
    condition, body: functions of the state that emit their code.
    """
    importer = node.importer
    initial = _as_values(state)
    types = [_state_type(value.type) for value in initial]
    current: list[Any] = []  # the state of an iteration, with integers as sizes

    def goes_on(*values: Expr) -> Expr:
        current[:] = [_as_size(node, value) for value in values]
        go = _condition(node, condition(current))
        return prim(go) if isinstance(go, bool) else go

    def iteration(*values: Expr) -> list[Expr]:
        results = _as_values(body(current))
        if len(results) != len(types):
            raise RelvmFormatError(f"the body returns {counted(len(results), 'value')}, expected {len(types)}")
        return [
            importer.with_shape(value, type_.shape)
            if isinstance(type_, TensorType) and type_.shape is not None
            else value
            for value, type_ in zip(results, types, strict=True)
        ]

    params = [(f"state_{i}", type_) for i, type_ in enumerate(types)]
    return _unpacked(node, while_loop(importer.builder, initial, params, goes_on, iteration), len(types))


def _state_type(type_: Type | None) -> Type:
    """Return the type of a value that a loop carries: for a scalar, the type without a known value."""
    assert type_ is not None
    return PrimType(type_.dtype) if isinstance(type_, PrimType) else type_


@converts("higher_order.while_loop")
def _while_loop(
    node: Node, cond_graph: Graph, body_graph: Graph, carried: Any, additional: Any = ()
) -> tuple[Any, ...]:
    """Becomes a tail-recursive function."""
    others = _operands(additional)
    run = node.importer.run_graph
    return _loop(
        node,
        _operands(carried),
        lambda state: run(cond_graph, (*state, *others))[0],
        lambda state: run(body_graph, (*state, *others)),
    )


@converts("higher_order.while_loop_stack_output")
def _while_loop_stack_output(
    node: Node, cond_graph: Graph, body_graph: Graph, carried: Any, additional: Any = ()
) -> tuple[Expr, ...]:
    """Becomes a tail-recursive function that stores its outputs in lists.  Without iterations, returns the inputs."""
    others, state = _operands(additional), _operands(carried)
    run, emit = node.importer.run_graph, node.importer.builder.emit
    width = len(state)

    def body(values: list[Any]) -> list[Any]:
        following = [
            node.importer.with_shape(value, shape_of(old))
            for value, old in zip(run(body_graph, (*values[:width], *others)), state, strict=True)
        ]
        lists = [emit(ops.list_append(each, new)) for each, new in zip(values[width:], following, strict=True)]
        return [*following, *lists]

    found = _loop(
        node,
        [*state, *(node.emit(ops.make_list(each)) for each in state)],
        lambda values: run(cond_graph, (*values[:width], *others))[0],
        body,
    )
    # The first item of each list is an input, which is a result only if there was no iteration.
    length = _as_size(node, emit(ops.list_length(found[width])))
    count = dim_op("max", length - 1, 1)
    results = []
    for each, old in zip(found[width:], state, strict=True):
        stacked = node.importer.with_shape(emit(ops.list_stack(each, axis=0)), (length, *shape_of(old)))
        results.append(node.emit(sliced(node, stacked, 0, length - count, length)))
    return tuple(results)


def _element(node: Node, x: Expr, at: Expr, axis: int = 0) -> Expr:
    """Return the slice of x at the scalar position `at` along an axis."""
    shape = shape_of(x)
    position = node.emit(ops.to_tensor(at, dtype="i64"))
    found = node.emit(ops.gather(x, position, axis=axis))
    return node.reshaped(found, (*shape[:axis], *shape[axis + 1 :]))


def _stored(node: Node, buffer: Expr, at: Expr, value: Expr) -> Expr:
    """Return a buffer with the slice at a position replaced."""
    row = node.reshaped(node.emit(ops.to_tensor(at, dtype="i64")), (1, 1))
    updates = node.reshaped(value, (1, *shape_of(buffer)[1:]))
    return node.emit(ops.scatter_nd(buffer, row, updates, depth=1))


def _iterated(
    node: Node,
    count: AnyDim,
    state: Sequence[Any],
    outputs: Sequence[TensorType],
    body: Callable[[Expr, list[Any]], tuple[Sequence[Any], Sequence[Expr]]],
) -> tuple[list[Any], list[Expr]]:
    """Run a loop with a counter.  Return the final state, and the outputs of all iterations, stacked.

    outputs: the type of each output of one iteration.
    body: a function of the counter and the state that returns the next state and the outputs.
    """
    builder = node.importer.builder
    buffers = [node.full(0, (count, *type_.known_shape), type_.known_dtype) for type_ in outputs]
    width = len(state)

    def condition(values: list[Any]) -> Expr:
        return builder.emit(PrimCall("lt", (_as_value(values[0]), _as_value(count))))

    def step(values: list[Any]) -> list[Any]:
        at = _as_value(values[0])
        following, found = body(at, list(values[1 : 1 + width]))
        stored = [_stored(node, buffer, at, value) for buffer, value in zip(values[1 + width :], found, strict=True)]
        return [builder.emit(PrimCall("add", (at, prim(1)))), *following, *stored]

    results = _loop(node, [prim(0), *state, *buffers], condition, step)
    return list(results[1 : 1 + width]), list(results[1 + width :])


@converts("higher_order.scan")
def _scan(node: Node, combine: Graph, init: Any, xs: Any, additional: Any = ()) -> tuple[Any, ...]:
    """Becomes a tail-recursive function that stores its outputs in buffers."""
    state, inputs, others = _operands(init), _operands(xs), _operands(additional)
    if not inputs:
        raise RelvmUnsupportedError("scan without inputs is not supported")
    count = shape_of(inputs[0])[0]
    types = _output_types(node, combine, len(state))

    def body(at: Expr, values: list[Any]) -> tuple[Sequence[Any], Sequence[Expr]]:
        elements = [_element(node, x, at) for x in inputs]
        results = node.importer.run_graph(combine, (*values, *elements, *others))
        return results[: len(state)], results[len(state) :]

    final, outputs = _iterated(node, count, state, types, body)
    return (*final, *outputs)


@converts("higher_order.map_impl")
def _map(node: Node, function: Graph, xs: Any, additional: Any = ()) -> tuple[Any, ...]:
    """Becomes a tail-recursive function that stores its outputs in buffers."""
    inputs, others = _operands(xs), _operands(additional)
    types = _output_types(node, function, 0)

    def body(at: Expr, values: list[Any]) -> tuple[Sequence[Any], Sequence[Expr]]:
        return (), node.importer.run_graph(function, (*[_element(node, x, at) for x in inputs], *others))

    return tuple(_iterated(node, shape_of(inputs[0])[0], (), types, body)[1])


def _output_types(node: Node, graph: Graph, first: int) -> list[TensorType]:
    """Return the types of the results of a graph, from result number `first` on."""
    types = []
    for output in graph.outputs[first:]:
        ((kind, content),) = output.items()
        if kind != "as_tensor":
            raise RelvmUnsupportedError("an output that is not a tensor is not supported")
        shape = node.importer.declared_shape(graph, content["name"])
        known = tuple(dim for dim in shape if dim is not None)
        if len(known) != len(shape):
            raise RelvmUnsupportedError("an output whose size depends on the iteration is not supported")
        types.append(TensorType(dtype_of_scalar_type(graph.tensors[content["name"]].get("dtype")), known))
    return types


@converts("higher_order.associative_scan")
def _associative_scan(node: Node, combine: Graph, xs: Any, additional: Any = ()) -> tuple[Any, ...]:
    """Becomes a loop along the first axis, which combines the elements in order."""
    inputs, others = _operands(xs), _operands(additional)
    count = shape_of(inputs[0])[0]
    first = [node.emit(selected(node, x, 0, 0)) for x in inputs]
    rest = [node.emit(ops.slice(x, begin=(1,), end=(1 << 31,), axes=(0,))) for x in inputs]
    types = [x.tensor_type for x in first]

    def body(at: Expr, values: list[Any]) -> tuple[Sequence[Any], Sequence[Expr]]:
        elements = [_element(node, x, at) for x in rest]
        results = node.importer.run_graph(combine, (*values, *elements, *others))
        return results, results

    _, outputs = _iterated(node, count - 1, first, types, body)
    heads = [node.reshaped(x, (1, *shape_of(x))) for x in first]
    return tuple(concatenated(node, [head, tail], 0) for head, tail in zip(heads, outputs, strict=True))


@converts("higher_order.wrap_with_set_grad_enabled", "higher_order.wrap_with_autocast", "higher_order.invoke_subgraph")
def _wrapped(node: Node, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """Imports the graph in place of the call.  Autocast must be off."""
    for at, arg in enumerate(args):
        if isinstance(arg, Graph):
            rest = args[at + 1 :]
            if "autocast" in node.node.target and True in args[:at]:
                raise RelvmUnsupportedError("autocast is not supported")
            if rest and isinstance(rest[0], str):  # invoke_subgraph states the identifier of the graph
                rest = rest[1:]
            flat = [each for arg in rest for each in _operands(arg)]
            return tuple(node.importer.run_graph(arg, flat))
    raise RelvmFormatError("expected a graph")


@converts("higher_order.flex_gemm")
def _flex_gemm(
    node: Node, gemm_op: str, body: Graph, gemm_args: Any, gemm_kwargs: Any = None, kernel_options: Any = None
) -> tuple[Any, ...]:
    """Imports the graph, which contains the matrix product, in place of the call."""
    return tuple(node.importer.run_graph(body, _operands(gemm_args)))


@converts(
    "higher_order.hints_wrapper",
    "higher_order.invoke_quant_packed",
    "higher_order.strict_mode",
    "higher_order.wrap",
)
def _called(node: Node, graph: Graph, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    flat = [each for arg in args for each in _operands(arg) if not isinstance(each, dict)]
    return tuple(node.importer.run_graph(graph, flat[: len(graph.inputs)]))


@converts("higher_order.with_effects")
def _with_effects(node: Node, token: Expr, operator: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """Applies the operator.  The token is not used, because effects happen in the order of the nodes."""
    name = operator.removeprefix("torch.ops.")
    convert = converter_for(name)
    if convert is None:
        raise RelvmUnsupportedError(reason_for_refusal(name) or f"the operator {name} is not supported")
    result = convert(node, *args, **kwargs)
    return (token, *(result if isinstance(result, tuple) else (result,)))


# ---- scalars and assertions ----


@converts("item", "_local_scalar_dense")
def _item(node: Node, self: Expr) -> Any:
    """Returns the only element.  An integer becomes a symbolic size."""
    value = node.emit(ops.to_scalar(node.reshaped(self, ())))
    return _as_size(node, value)


@converts("_assert_scalar", "_assert_async.msg", "_assert_async")
def _assert_scalar(node: Node, self: Any, assert_msg: str = "assertion failed") -> tuple[Expr, ...]:
    """Ends the run with an error if the condition is false."""
    if isinstance(self, Expr) and isinstance(self.type, TensorType):
        self = node.emit(ops.to_scalar(node.reshaped(node.cast(self, BOOL), ())))
    if isinstance(self, bool | int):
        if not self:
            raise RelvmFormatError(f"the assertion is always false: {assert_msg}")
        return ()
    check_true(node, self, assert_msg)
    return ()


def check_true(node: Node, value: Any, message: str) -> None:
    """Check at run time that a scalar is true."""
    value = _as_value(value)
    if isinstance(value, Prim):
        if not value.value:
            raise RelvmFormatError(f"the assertion is always false: {message}")
        return
    node.importer.require_true(value, message)


@converts("sym_constrain_range", "sym_constrain_range_for_size")
def _constrain_range(node: Node, size: Any, *, min: Any = None, max: Any = None) -> tuple[Expr, ...]:
    if isinstance(size, int | Dim):
        if isinstance(min, int):
            node.importer.require("at_most", min, size, "expected at least {}, got {}")
        if isinstance(max, int) and max < 1 << 62:
            node.importer.require("at_most", size, max, "the size is {}, expected at most {}")
    return ()


@converts("_assert_tensor_metadata")
def _assert_metadata(node: Node, a: Expr, *args: Any, **kwargs: Any) -> tuple[Expr, ...]:
    """Does nothing, because PyTorch checks the metadata when it exports the program."""
    return ()


@converts("sym_size.int")
def _sym_size(node: Node, self: Expr, dim: int) -> AnyDim:
    return shape_of(self)[dim]


@converts("sym_numel")
def _sym_numel(node: Node, self: Expr) -> AnyDim:
    total: AnyDim = 1
    for size in shape_of(self):
        total = total * size
    return total


@converts("is_nonzero")
def _is_nonzero(node: Node, self: Expr) -> Expr:
    return node.emit(ops.to_scalar(node.reshaped(node.cast(self, BOOL), ())))


refuses(
    "calls of Python functions are not supported",
    "higher_order.flex_attention",
    "higher_order.triton_kernel_wrapper_functional",
)
refuses(
    "autograd inside the program is not supported", "higher_order.autograd_function_apply", "higher_order.checkpoint"
)
refuses(
    "custom operators that change their arguments are not supported; replace them by operators of PyTorch",
    "higher_order.auto_functionalized",
    "higher_order.auto_functionalized_v2",
)
