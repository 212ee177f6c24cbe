"""Loop and Scan: the loop becomes a tail-recursive local function.

    loop(i, go, states, rows) = if i < limit and go then loop(i + 1, go', states', [*rows, row]) else (states, i, rows)

Loop-invariant states are not parameters: the body uses the outer value.  Sizes that change between iterations are
dimension variables of the function.  The rows of a scan output are collected in a list that grows in place.  After the
loop, the list is stacked into one tensor.  SequenceMap is a loop over such lists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import relvm.ops as ops
from relvm.data_classes import value_record
from relvm.errors import RelvmError, RelvmFormatError, RelvmTypeError, RelvmUnsupportedError
from relvm.frontend.onnx.context import ImportContext
from relvm.frontend.onnx.identifiers import identifier
from relvm.frontend.onnx.model_checker import function_key
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.scalars import scalar_of, scalar_of_dim
from relvm.frontend.onnx.types import declared_type
from relvm.ir.dtypes import BOOL, I64
from relvm.ir.expr import (
    Binding,
    Block,
    Call,
    Constant,
    DimValue,
    Expr,
    Function,
    If,
    MatchCast,
    Prim,
    PrimCall,
    Shape,
    Tuple,
    Var,
    constant,
    prim,
)
from relvm.ir.symbolic import AnyDim, DimVar, as_var, dim_op, dim_var, dim_vars
from relvm.ir.type_rules import expect_axis
from relvm.ir.types import (
    FuncType,
    ListType,
    OptionalType,
    PrimType,
    TensorType,
    TupleType,
    Type,
    forget_vars,
    is_proven,
    join,
)


@converts("Loop")
def _loop(node: OnnxNode) -> tuple[Any, ...]:
    body = node.attribute("body")
    if len(body.input) < 2:
        raise RelvmFormatError(f"the body has {len(body.input)} inputs, expected at least 2")
    number, condition, *names = (info.name for info in body.input)
    limit = scalar_of(node.graph, node.value(0), "the trip count") if node.has(0) else None
    go = scalar_of(node.graph, node.value(1), "the condition", (BOOL,)) if node.has(1) else prim(True)
    initial = node.inputs[2:]
    if len(names) != len(initial) or len(body.output) <= len(names):
        raise RelvmFormatError(
            f"the body has {len(body.input)} inputs and {len(body.output)} outputs, which do not match the"
            f" {len(node.inputs)} inputs of the node"
        )

    def given(graph: ImportContext, i: Expr) -> None:
        graph.values[number] = graph.emit(ops.to_tensor(i, dtype="i64"), number)
        graph.values[condition] = constant(np.array(True))  # an iteration only runs if the condition is true

    states = [_State(*each) for each in zip(names, initial, [o.name for o in body.output[1:]], strict=False)]
    rows = [info.name for info in body.output[1 + len(names) :]]
    is_kept = _source(node, body, body.output[0].name) == condition
    if limit is None and is_kept and _is_true(go):
        raise RelvmUnsupportedError("the loop never ends: it has no trip count, and its condition is always true")
    return _Repeated(node, body, limit, go, states, rows, None if is_kept else body.output[0].name, given).results(
        [(0, False)] * len(rows)
    )


@converts("Scan")
def _scan(node: OnnxNode) -> tuple[Any, ...]:
    body, count = node.attribute("body"), node.attribute("num_scan_inputs")
    if not 1 <= count <= len(node.inputs):
        raise RelvmFormatError(f"num_scan_inputs is {count}, expected 1 to {len(node.inputs)}, the number of inputs")
    if node.opset < 9:
        if node.has(0):
            raise RelvmUnsupportedError("sequence_lens is not supported")
        if not node.attribute(_OF_ONE):
            return _scan(_over_batch(node))
        node = replace(node, inputs=node.inputs[1:])
    first = len(node.inputs) - count
    if len(body.input) != len(node.inputs) or len(body.output) < first:
        raise RelvmFormatError(f"the body has {len(body.input)} inputs, but the node has {len(node.inputs)}")
    axes = _each(node, "scan_input_axes", count)
    backwards = _each(node, "scan_input_directions" if node.opset >= 9 else "directions", count, most=1)
    scanned = [node.known_shape(first + i) for i in range(count)]
    axes = [
        expect_axis("Scan", axis, x.tensor_type.known_rank, "scan_input_axes")
        for axis, x in zip(axes, scanned, strict=True)
    ]
    size = scanned[0].tensor_type.known_shape[axes[0]]
    scanned = [
        node.graph.with_shape(x, (*x.tensor_type.known_shape[:axis], size, *x.tensor_type.known_shape[axis + 1 :]))
        for x, axis in zip(scanned, axes, strict=True)
    ]

    def given(graph: ImportContext, i: Expr) -> None:
        for info, x, axis, reverse in zip(body.input[first:], scanned, axes, backwards, strict=True):
            at = i
            if reverse:
                at = _prim(graph, "sub", _prim(graph, "sub", scalar_of_dim(size), prim(1)), i)
            index = graph.emit(ops.to_tensor(at, dtype="i64"), "index")
            graph.values[info.name] = graph.emit(ops.gather(x, index, axis=axis), info.name)

    names = [info.name for info in body.output]
    states = [_State(info.name, *each) for info, *each in zip(body.input, node.inputs[:first], names, strict=False)]
    rows = names[first:]
    places = _each(node, "scan_output_axes", len(rows))
    directions = _each(node, "scan_output_directions", len(rows), most=1)
    repeated = _Repeated(node, body, scalar_of_dim(size), prim(True), states, rows, None, given)
    return repeated.results(list(zip(places, map(bool, directions), strict=True)))


def _each(node: OnnxNode, name: str, count: int, most: int | None = None) -> list[int]:
    """Return the attribute `name`, a list of `count` integers.  By default, they are all 0.

    most: if given, each integer must be from 0 to `most`.
    """
    numbers = node.attribute(name, [0] * count)
    if len(numbers) != count or (most is not None and not all(0 <= number <= most for number in numbers)):
        limits = "" if most is None else f" from 0 to {most}"
        raise RelvmFormatError(f"{name} is {numbers}, expected {count} numbers{limits}")
    return numbers


_OF_ONE = "__of_one"  # marks the Scans that `_over_batch` creates, so that they are not rewritten again


def _over_batch(node: OnnxNode) -> OnnxNode:
    """Rewrite a Scan of opset 8 as a Scan over the batch.

    In opset 8, the states and sequences have a batch axis.  The body of the new, outer Scan is a Scan over the sequence
    of one batch element.  Both have the attribute `_OF_ONE`, so that they are not rewritten again.
    """
    from onnx import helper

    body, count = node.attribute("body"), node.attribute("num_scan_inputs")
    stem = next(name for name in node.proto.output if name)
    given = [f"{stem}.in{i}" for i in range(len(node.inputs) - 1)]
    made = [f"{stem}.out{i}" for i in range(len(body.output))]
    directions = node.attribute("directions", [0] * count)
    common = {_OF_ONE: 1, "num_scan_inputs": count}
    each = helper.make_node("Scan", ["", *given], made, body=body, directions=directions, **common)
    inputs, outputs = ([helper.make_empty_tensor_value_info(name) for name in names] for names in (given, made))
    image = helper.make_graph([each], "batch", inputs, outputs)
    common["num_scan_inputs"] = len(given)
    return replace(node, proto=helper.make_node("Scan", node.proto.input, node.proto.output, body=image, **common))


@converts("SequenceMap")
def _sequence_map(node: OnnxNode) -> tuple[Any, ...]:
    body, inputs = node.attribute("body"), node.tensors()
    if len(body.input) != len(inputs):
        raise RelvmFormatError(f"the body has {len(body.input)} inputs, but the node has {len(inputs)}")
    lists = [x for x in inputs if isinstance(x.type, ListType)]
    if not inputs or not isinstance(inputs[0].type, ListType):
        raise RelvmTypeError("input 0 must be a sequence")
    if any(isinstance(x.type, ListType) and x.type.item is None for x in inputs):
        return tuple(node.emit(ops.make_list()) for _ in body.output)
    lengths = [node.emit(ops.list_length(x)) for x in lists]
    if len(lists) > 1:
        size = dim_var("length")
        node.graph.add_own_dims([size])
        for length in lengths:
            same = node.graph.var("length", PrimType(I64, size))
            node.graph.bindings.append(MatchCast(same, length, node.here))

    def given(graph: ImportContext, i: Expr) -> None:
        for info, x in zip(body.input, inputs, strict=True):
            is_item = isinstance(x.type, ListType)
            graph.values[info.name] = graph.emit(ops.list_item(x, i), info.name) if is_item else x

    rows = [info.name for info in body.output]
    return _Repeated(node, body, lengths[0], prim(True), [], rows, None, given).results(None)


@value_record
class _State:
    """A loop-carried state.

    input: the name of the body's input.   initial: the initial value.   output: the name of the body's output.
    """

    input: str
    initial: Any
    output: str


@value_record
class _Round:
    """The imported body of a loop, for states of given types.

    graph: the context with the body's bindings.  params: the states before the iteration.  ahead: the states after the
    iteration.  go: a tensor that tells whether to continue, or None if the body never ends the loop.  rows: for each
    scan output, the row that the iteration appends.
    """

    graph: ImportContext
    params: list[Var]
    ahead: list[Expr]
    go: Expr | None
    rows: list[Expr]


@value_record
class _Repeated:
    """A Loop or Scan to import.

    body: its ONNX graph.  limit: the maximum number of iterations, or None.  go: whether the first iteration runs.
    states: the loop-carried states.  rows: the names of the body outputs that are collected as scan outputs.
    condition: the name of the body output that tells whether to continue, or None if there is no such output.  given: a
    function that defines the body inputs that depend on the iteration number.  Its arguments are the context of the
    body and the iteration number.
    """

    node: OnnxNode
    body: Any
    limit: Expr | None
    go: Expr
    states: list[_State]
    rows: list[str]
    condition: str | None
    given: Callable[[ImportContext, Expr], None]

    def results(self, places: list[tuple[int, bool]] | None) -> tuple[Any, ...]:
        """Import the loop, and return the final states, then the scan outputs.

        places: for each scan output, the axis along which its rows are stacked, and whether their order is reversed.
        If `places` is None, only the scan outputs are returned, as lists of rows.
        """
        node = self.node
        count = node.graph.var("round", PrimType(I64))
        carried = [state for state in self.states if _source(self.node, self.body, state.output) != state.input]
        initial = [node.graph.tensor(state.initial) for state in carried]
        types = [value.type for value in initial]
        own: set[DimVar] = set()
        while True:  # each pass generalizes a size to a variable, or a list to a wider item type
            try:
                round_ = self.round(carried, types, own, count)
            except RelvmError:
                stated = list(map(self.stated, carried, types))
                if stated == types:
                    raise
                types = stated
                continue
            found = [
                value.type if _is_tensor(value) else round_.graph.without_own_dims(value.type) for value in round_.ahead
            ]
            if all(_fits(*each, own) for each in zip(types, found, strict=True)):
                break
            types = [_wider(s.input, type_, new, own) for s, type_, new in zip(carried, types, found, strict=True)]
        loop = self.function(round_, count)
        node.graph.bindings.append(loop)
        none = [node.emit(ops.make_list()) for _ in self.rows]
        args = (prim(0), *((self.go,) if round_.go else ()), *initial, *none)
        assert isinstance(loop.var.type, FuncType)
        items = node.fields(node.emit(Call(loop.var, args, type=loop.var.type.result)))
        finals = dict(zip((state.input for state in carried), items, strict=False))
        rounds, *lists = items[len(carried) :]
        if places is None:
            return tuple(lists)
        if isinstance(self.limit, Prim | DimValue) and round_.go is None and _is_true(self.go):
            rounds = scalar_of_dim(_at_least_0(self.limit))
        stacked = [self.joined(round_, rounds, *each) for each in zip(lists, round_.rows, places, strict=True)]
        return (*(finals.get(state.input, state.initial) for state in self.states), *stacked)

    def stated(self, state: _State, type_: Type) -> Type:
        """Return `type_`, or a more precise type if it is the type of an empty list or of null.

        The missing item type is taken from the type that the body declares for `state`.
        """
        if type_ not in (ListType(None), OptionalType(None)):
            return type_
        info = next(info for info in self.body.input if info.name == state.input)
        said = (
            declared_type(self.node.graph, info.type, f"input {info.name}") if info.type.WhichOneof("value") else type_
        )
        return join(type_, said) or type_

    def round(self, carried: list[_State], types: list[Type], own: set[DimVar], count: Expr) -> _Round:
        """Import the body for one iteration.

        carried: the states that become parameters of the local function.   types: the types of these states.   own: the
        variables in `types` that stand for sizes that change between iterations.   count: the iteration number.
        """
        graph = self.node.graph.subgraph_context(self.body)
        graph.own_dims |= own
        new = self.node.graph.var
        params = [new(identifier(state.input, set()), type_) for state, type_ in zip(carried, types, strict=True)]
        graph.values.update((state.input, state.initial) for state in self.states)
        graph.values.update(zip((state.input for state in carried), params, strict=True))
        self.given(graph, count)
        names = [info.name for info in self.body.output]
        found = {name: graph.tensor(value) for name, value in zip(names, graph.import_outputs(self.body), strict=True)}
        go = found[self.condition] if self.condition else None
        go = None if isinstance(go, Constant) and go.value.all() else go
        return _Round(graph, params, [found[s.output] for s in carried], go, [found[name] for name in self.rows])

    def function(self, round_: _Round, count: Var) -> Binding:
        """Return a binding that defines the loop as a local function.

        The function returns the final states, the number of iterations, and a list of rows for each scan output.

        round_: the imported body.   count: the iteration number.
        """
        graph, params, new = round_.graph, round_.params, self.node.graph.var
        lists = [new("rows", ListType(graph.without_own_dims(row.type))) for row in round_.rows]
        go = new("go", PrimType(BOOL)) if round_.go else None
        result = TupleType(
            (*(graph.without_own_dims(p.type) for p in params), PrimType(I64), *(rows.type for rows in lists))
        )
        everything = (count, *((go,) if go else ()), *params, *lists)
        var = new("loop", FuncType(tuple(p.type for p in everything), result))

        ahead = _prim(graph, "add", count, prim(1))
        after = (scalar_of(graph, round_.go, "the body's condition", (BOOL,)),) if round_.go else ()
        longer = [graph.emit(ops.list_append(*each), "rows") for each in zip(lists, round_.rows, strict=True)]
        again = graph.emit(Call(var, (ahead, *after, *round_.ahead, *longer), type=result), "result")
        then = Block(tuple(graph.bindings), again, type=result)
        end = (*params, count, *lists)
        ended = new("result", TupleType(tuple(p.type for p in end)))
        orelse = Block((Binding(ended, Tuple(end, type=ended.type)),), ended, type=ended.type)

        outside = graph.nested_context()
        test = self.test(outside, count, go or self.go)
        whole = outside.emit(If(test, then, orelse, type=result), "result")
        body = Block(tuple(outside.bindings), whole, type=result)
        return Binding(var, Function("loop", everything, body, result, type=var.type))

    def test(self, graph: ImportContext, count: Expr, go: Expr) -> Expr:
        """Return the condition under which iteration number `count` runs.

        go: the latest continuation condition.  It is the initial condition until the body computes one.
        """
        if self.limit is None:
            return go
        below = _prim(graph, "lt", count, self.limit)
        return below if _is_true(go) else _prim(graph, "and", below, go)

    def joined(self, round_: _Round, rounds: Expr, rows: Expr, row: Expr, place: tuple[int, bool]) -> Expr:
        """Stack the rows of a scan output.

        If the loop has no iterations, each size that is known only after an iteration is 0.

        rounds: the number of iterations.   rows: the list of rows.   row: the row that the body computes, which has the
        type of all rows.   place: the axis along which the rows are stacked, and whether their order is reversed.
        """
        node, (axis, reverse) = self.node, place
        if not isinstance(row.type, TensorType):
            raise RelvmUnsupportedError(f"a scan output has type {row.type} in an iteration, expected a tensor")
        if row.type.rank is None:
            return node.emit(ops.list_stack(rows, axis=axis))  # an empty list is an error at run time
        axis = expect_axis(node.proto.op_type, axis, row.type.rank + 1, "scan_output_axes")
        own = round_.graph.own_dims
        found = (None,) * row.type.rank if row.type.shape is None else row.type.shape
        dims = [None if dim is None or any(var in own for var in dim_vars(dim)) else dim for dim in found]
        size = rounds.dim if isinstance(rounds, DimValue) else int(rounds.value) if isinstance(rounds, Prim) else None
        dims.insert(axis, size)
        ways = [lambda graph: _no_rows(graph, row.type, dims, axis), lambda graph: _stacked(graph, rows, axis, reverse)]
        if isinstance(size, int):
            whole = ways[size > 0](node.graph)
        else:
            blocks = []
            for way in ways:
                graph = node.graph.nested_context()
                made = way(graph)
                blocks.append(Block(tuple(graph.bindings), made, type=graph.without_own_dims(made.type)))
            none = _prim(node.graph, "eq", rounds, prim(0))
            then, orelse = blocks
            whole = node.emit(If(none, then, orelse, type=TensorType(row.type.dtype, None, len(dims))))
        return node.graph.with_sizes(whole, tuple(dims))


def _no_rows(graph: ImportContext, row: TensorType, dims: list[AnyDim | None], axis: int) -> Expr:
    sizes = [0 if dim is None else dim for dim in dims]
    sizes[axis] = 0
    return graph.emit(ops.broadcast_to(constant(np.zeros((), row.known_dtype.numpy)), Shape(tuple(sizes))), "no_rows")


def _stacked(graph: ImportContext, rows: Expr, axis: int, reverse: bool) -> Expr:
    whole = graph.emit(ops.list_stack(rows, axis=axis), "rows")
    if not reverse:
        return whole
    whole = graph.known_shape(whole)
    return graph.emit(ops.slice(whole, begin=(-1,), end=(-(2**31),), axes=(axis,), steps=(-1,)), "rows")


def _source(node: OnnxNode, body: Any, name: str) -> str:
    """Follow Identity nodes in `body` back from the value `name`, and return the name of the value that they copy."""
    makers = {output: proto for proto in body.node for output in proto.output}
    identity = ("", "Identity", "")
    while name in makers and function_key(makers[name]) == identity and identity not in node.graph.functions:
        name = makers[name].input[0]
    return name


def _is_tensor(value: Expr) -> bool:
    return isinstance(value.type, TensorType)


def _fits(type_: Type, found: Type, own: set[DimVar]) -> bool:
    """Return whether a value of type `found` fits where `type_` is expected.  The variables in `own` match any size."""
    if not isinstance(type_, TensorType):
        return is_proven(type_, found)
    if not isinstance(found, TensorType) or (found.dtype, found.rank) != (type_.dtype, type_.rank):
        return False
    if type_.shape is None or found.shape is None:
        return type_.shape is None or all(as_var(dim) in own for dim in type_.shape)
    return all(as_var(dim) in own or dim == got for dim, got in zip(type_.shape, found.shape, strict=True))


def _wider(name: str, type_: Type, found: Type, own: set[DimVar]) -> Type:
    """Return a type that covers both types of the loop-carried state `name`.

    type_: the type before an iteration.   found: the type after an iteration.   own: the variables for sizes that
    change between iterations.  Each size that differs becomes a new variable, which is added to `own`.
    """
    if _fits(type_, found, own):
        return type_
    if isinstance(type_, ListType | OptionalType) or isinstance(found, OptionalType):
        both = join(type_, found)
        if both is not None:
            return forget_vars(both, lambda var: var not in own)
    if (
        not isinstance(type_, TensorType)
        or not isinstance(found, TensorType)
        or (found.dtype, found.rank) != (type_.dtype, type_.rank)
    ):
        raise RelvmTypeError(f"{name} is {type_} before the loop but {found} after an iteration")
    if type_.rank is None:
        raise RelvmUnsupportedError(f"{name} is {type_}, but a loop-carried value must have a known rank")
    same = [False] * type_.rank
    if type_.shape is not None and found.shape is not None:
        same = [dim == got for dim, got in zip(type_.shape, found.shape, strict=True)]
    fresh = [dim_var(f"{identifier(name, set())}_dim{axis}") for axis in range(type_.rank)]
    own.update(var for dim, keep in zip(fresh, same, strict=True) if not keep for var in dim_vars(dim))
    dims = zip(type_.shape or fresh, fresh, same, strict=True)
    return TensorType(type_.dtype, tuple(dim if keep else new for dim, new, keep in dims))


def _at_least_0(limit: Prim | DimValue) -> AnyDim:
    dim = int(limit.value) if isinstance(limit, Prim) else limit.dim
    return dim if as_var(dim) else dim_op("max", dim, 0)


def _is_true(go: Expr) -> bool:
    return isinstance(go, Prim) and go.value is True


def _prim(graph: ImportContext, function: str, left: Expr, right: Expr) -> Expr:
    """Bind the scalar operation `function` on two scalars, and return its result."""
    dtype = I64 if function in ("add", "sub") else BOOL
    return graph.emit(PrimCall(function, (left, right), type=PrimType(dtype)), function)
