"""Loop and Scan: a body that is run again and again becomes a local function that ends with a call of itself.

    loop(i, go, states, rows) = if i < limit and go then loop(i + 1, go', states', (row, rows)) else (states, i, rows)

A state that the body hands on as it is is not carried but seen.  Sizes that a round changes have variables of the
function's own.  The rows of a scan output are a list, the last one first; when the loop is over they are joined two by
two, then four by four: n rows cost n * log2(n) copies of a row, whether n is known or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

import relvm.ops as ops
from relvm.errors import RelvmFormatError, RelvmTypeError, RelvmUnsupportedError
from relvm.frontend.onnx.host import HostValue
from relvm.frontend.onnx.names import identifier
from relvm.frontend.onnx.registry import Node, converts
from relvm.ir.dims import AnyDim, Dim, DimVar, as_var, dim_op, dim_var, dim_vars
from relvm.ir.dtypes import BOOL, I64, DType
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
    Null,
    Prim,
    PrimCall,
    Shape,
    Tuple,
    TupleItem,
    Var,
    constant,
    prim,
)
from relvm.ir.types import OBJECT, FuncType, PrimType, TensorType, TupleType, Type

if TYPE_CHECKING:
    from relvm.frontend.onnx.importer import GraphImporter


@converts("Loop")
def _loop(node: Node) -> tuple[Any, ...]:
    body = node.attribute("body")
    number, condition, *names = (info.name for info in body.input)
    limit = _scalar(node.graph, node.inputs[0]) if node.has(0) else None
    go = _scalar(node.graph, node.inputs[1]) if node.has(1) else prim(True)
    initial = node.inputs[2:]
    if len(names) != len(initial) or len(body.output) <= len(names):
        raise RelvmFormatError(
            f"the body has {len(body.input)} inputs and {len(body.output)} outputs, the node {len(node.inputs)} inputs"
        )

    def given(graph: GraphImporter, i: Expr) -> None:
        graph.values[number] = graph.emit(ops.to_tensor(i, dtype="i64"), number)
        graph.values[condition] = constant(np.array(True))  # or there would be no round

    states = [_State(*each) for each in zip(names, initial, [o.name for o in body.output[1:]], strict=False)]
    rows = [info.name for info in body.output[1 + len(names) :]]
    is_kept = _source(body, body.output[0].name) == condition
    return _Repeated(node, body, limit, go, states, rows, None if is_kept else body.output[0].name, given).results(
        [(0, False)] * len(rows)
    )


@converts("Scan")
def _scan(node: Node) -> tuple[Any, ...]:
    if node.opset < 9 and node.attribute("scan_input_axes") is None:
        return _scan(_over_batch(node))
    body, count = node.attribute("body"), node.attribute("num_scan_inputs")
    first = len(node.inputs) - count
    if len(body.input) != len(node.inputs) or len(body.output) < first:
        raise RelvmFormatError(f"the body has {len(body.input)} inputs, the node {len(node.inputs)}")
    axes = node.attribute("scan_input_axes", [0] * count)
    backwards = node.attribute("scan_input_directions", [0] * count)
    scanned = [node.known_shape(first + i) for i in range(count)]
    axes = [axis % x.type.rank for axis, x in zip(axes, scanned, strict=True)]
    size = scanned[0].type.shape[axes[0]]
    scanned = [
        node.graph.checked(x, (*x.type.shape[:axis], size, *x.type.shape[axis + 1 :]))
        for x, axis in zip(scanned, axes, strict=True)
    ]

    def given(graph: GraphImporter, i: Expr) -> None:
        for info, x, axis, reverse in zip(body.input[first:], scanned, axes, backwards, strict=True):
            at = i
            if reverse:
                at = _prim(graph, "sub", _prim(graph, "sub", _as_scalar(size), prim(1)), i)
            index = graph.emit(ops.to_tensor(at, dtype="i64"), "index")
            graph.values[info.name] = graph.emit(ops.gather(x, index, axis=axis), info.name)

    names = [info.name for info in body.output]
    states = [_State(info.name, *each) for info, *each in zip(body.input, node.inputs[:first], names, strict=False)]
    rows = names[first:]
    places = node.attribute("scan_output_axes", [0] * len(rows))
    directions = node.attribute("scan_output_directions", [0] * len(rows))
    repeated = _Repeated(node, body, _as_scalar(size), prim(True), states, rows, None, given)
    return repeated.results(list(zip(places, map(bool, directions), strict=True)))


def _over_batch(node: Node) -> Node:
    """A Scan of opset 8, whose states and sequences have a batch in front, as the Scan of a Scan of opset 9."""
    if node.has(0):
        raise RelvmUnsupportedError("a Scan of sequences of their own lengths (sequence_lens) is not supported")
    from onnx import helper

    body, count = node.attribute("body"), node.attribute("num_scan_inputs")
    stem = next(name for name in node.proto.output if name)
    given = [f"{stem}.in{i}" for i in range(len(node.inputs) - 1)]
    made = [f"{stem}.out{i}" for i in range(len(body.output))]
    directions = {"scan_input_directions": node.attribute("directions", [0] * count)}
    each = helper.make_node(
        "Scan", given, made, body=body, num_scan_inputs=count, scan_input_axes=[0] * count, **directions
    )
    infos = ([helper.make_empty_tensor_value_info(name) for name in names] for names in (given, made))
    image = helper.make_graph([each], "batch", *infos)
    axes = {"num_scan_inputs": len(given), "scan_input_axes": [0] * len(given)}
    whole = helper.make_node("Scan", node.proto.input[1:], node.proto.output, body=image, **axes)
    return replace(node, proto=whole, inputs=node.inputs[1:])


@dataclass(frozen=True)
class _State:
    """What a loop carries: the body's input, the value before the first round, the body's output."""

    input: str
    initial: Any
    output: str


@dataclass(frozen=True)
class _Round:
    """One import of the body, for states of these types.

    graph: the body's bindings.  params: the states.  ahead: the states after it.  go: whether another round follows, a
    tensor; None: as before.  rows: what is added to the scan outputs.
    """

    graph: GraphImporter
    params: list[Var]
    ahead: list[Expr]
    go: Expr | None
    rows: list[Expr]


@dataclass(frozen=True)
class _Repeated:
    """A loop.  limit: of the rounds; None: none.  go: whether there is a first round.  condition: the output that says
    whether another round follows; None: as before.  given: sets the inputs that a round of that number has."""

    node: Node
    body: Any
    limit: Expr | None
    go: Expr
    states: list[_State]
    rows: list[str]
    condition: str | None
    given: Callable[[GraphImporter, Expr], None]

    def results(self, places: list[tuple[int, bool]]) -> tuple[Any, ...]:
        """The states after the last round, then the scan outputs, each joined along an axis, the last row first where
        that is asked."""
        node = self.node
        count = Var("round", type=PrimType(I64))
        carried = [state for state in self.states if _source(self.body, state.output) != state.input]
        initial = [node.graph.tensor(state.initial) for state in carried]
        types, own = [value.type for value in initial], set()
        while True:  # each time round a size more has a name of its own
            round_ = self.round(carried, types, own, count)
            found = [value.type for value in round_.ahead]
            if all(_fits(*each, own) for each in zip(types, found, strict=True)):
                break
            types = [_wider(state.input, *each, own) for state, *each in zip(carried, types, found, strict=True)]
        loop = self.function(round_, count)
        node.graph.bindings.append(loop)
        args = (prim(0), *((self.go,) if round_.go else ()), *initial, *(Null() for _ in self.rows))
        made = node.emit(Call(loop.var, args, type=loop.var.type.result))
        items = [node.emit(TupleItem(made, i, type=type_)) for i, type_ in enumerate(made.type.fields)]
        finals = dict(zip((state.input for state in carried), items, strict=False))
        rounds, *lists = items[len(carried) :]
        if isinstance(self.limit, Prim | DimValue) and round_.go is None and _is_true(self.go):
            rounds = _as_scalar(_at_least_0(self.limit))
        stacked = [self.joined(round_, rounds, *each) for each in zip(lists, round_.rows, places, strict=True)]
        return (*(finals.get(state.input, state.initial) for state in self.states), *stacked)

    def round(self, carried: list[_State], types: list[TensorType], own: set[DimVar], count: Expr) -> _Round:
        """Imports the body.  own: the variables in `types` that stand for whatever size a round finds."""
        graph = self.node.graph.inner(self.body)
        graph.own_dims |= own
        params = [Var(identifier(state.input, set()), type=type_) for state, type_ in zip(carried, types, strict=True)]
        graph.values.update((state.input, state.initial) for state in self.states)
        graph.values.update(zip((state.input for state in carried), params, strict=True))
        self.given(graph, count)
        names = [info.name for info in self.body.output]
        found = {name: graph.tensor(value) for name, value in zip(names, graph.outputs(self.body), strict=True)}
        go = found[self.condition] if self.condition else None
        go = None if isinstance(go, Constant) and go.value.all() else go
        return _Round(graph, params, [found[s.output] for s in carried], go, [found[name] for name in self.rows])

    def function(self, round_: _Round, count: Var) -> Binding:
        """The local function; its result is the states, the number of rounds, and the rows as lists."""
        graph, params = round_.graph, round_.params
        lists = [Var("rows", type=OBJECT) for _ in self.rows]
        go = Var("go", type=PrimType(BOOL)) if round_.go else None
        result = TupleType((*(graph.outside(p.type) for p in params), PrimType(I64), *(OBJECT for _ in lists)))
        everything = (count, *((go,) if go else ()), *params, *lists)
        var = Var("loop", type=FuncType(tuple(p.type for p in everything), result))

        ahead = _prim(graph, "add", count, prim(1))
        after = (_scalar(graph, round_.go),) if go else ()
        longer = [
            graph.emit(Tuple((row, rest), type=TupleType((row.type, OBJECT))), "rows")
            for row, rest in zip(round_.rows, lists, strict=True)
        ]
        again = graph.emit(Call(var, (ahead, *after, *round_.ahead, *longer), type=result), "result")
        then = Block(tuple(graph.bindings), again, type=result)
        end = (*params, count, *lists)
        ended = Var("result", type=TupleType(tuple(p.type for p in end)))
        orelse = Block((Binding(ended, Tuple(end, type=ended.type)),), ended, type=ended.type)

        outside = graph.inner_block()
        test = self.test(outside, count, go or self.go)
        whole = outside.emit(If(test, then, orelse, type=result), "result")
        body = Block(tuple(outside.bindings), whole, type=result)
        return Binding(var, Function("loop", everything, body, result, type=var.type))

    def test(self, graph: GraphImporter, count: Expr, go: Expr) -> Expr:
        """Whether there is a round of that number."""
        if self.limit is None:
            return go
        below = _prim(graph, "lt", count, self.limit)
        return below if _is_true(go) else _prim(graph, "and", below, go)

    def joined(self, round_: _Round, rounds: Expr, rows: Expr, row: Expr, place: tuple[int, bool]) -> Expr:
        """The rows of a scan output as one tensor; without a round, sizes that only a round would tell are 0."""
        node, (axis, reverse) = self.node, place
        if not isinstance(row.type, TensorType) or row.type.rank is None:
            raise RelvmUnsupportedError(f"a scan output of rows of type {row.type}: their rank must be known")
        own = round_.graph.own_dims
        dims = [None] * row.type.rank if row.type.shape is None else list(row.type.shape)
        dims = [None if dim is None or any(var in own for var in dim_vars(dim)) else dim for dim in dims]
        join_rows = _joining_function(row.type.dtype, dims, reverse)
        node.graph.bindings.append(join_rows)
        size = rounds.dim if isinstance(rounds, DimValue) else rounds.value if isinstance(rounds, Prim) else None
        if size == 0:
            return self.moved(self.no_rows(node.graph, row.type, dims), axis)

        def some(graph: GraphImporter) -> Expr:
            both = graph.emit(Call(join_rows.var, (rows, rounds), type=join_rows.var.type.result), "rows")
            return graph.emit(TupleItem(both, 0, type=both.type.fields[0]), "rows")

        if isinstance(size, int):
            whole = some(node.graph)
        else:
            blocks = []
            for make in (lambda graph: self.no_rows(graph, row.type, dims), some):
                graph = node.graph.inner_block()
                made = make(graph)
                blocks.append(Block(tuple(graph.bindings), made, type=made.type))
            none = _prim(node.graph, "eq", rounds, prim(0))
            whole = node.emit(If(none, *blocks, type=TensorType(row.type.dtype, None, len(dims) + 1)))
        return self.moved(node.graph.named(whole, (size, *dims)), axis)

    def no_rows(self, graph: GraphImporter, row: TensorType, dims: list[AnyDim | None]) -> Expr:
        shape = Shape((0, *(0 if dim is None else dim for dim in dims)))
        return graph.emit(ops.broadcast_to(constant(np.zeros((), row.dtype.numpy)), shape), "no_rows")

    def moved(self, whole: Expr, axis: int) -> Expr:
        """The tensor with its first axis in another place."""
        rank = whole.type.rank
        axis %= rank
        perm = (*range(1, axis + 1), 0, *range(axis + 1, rank))
        return self.node.emit(ops.transpose(whole, perm=perm)) if axis else whole


def _joining_function(dtype: DType, dims: list[AnyDim | None], reverse: bool) -> Binding:
    """rows(list, n): the first n rows of a list, the last of a loop first, as one tensor, and the rest of the list.

    dims: a row's; None: only known when the program runs.
    """
    list_, n = Var("list", type=OBJECT), Var("n", type=PrimType(I64))
    both = TupleType((TensorType(dtype, None, len(dims) + 1), OBJECT))
    var = Var("join_rows", type=FuncType((OBJECT, PrimType(I64)), both))

    def block(write: Callable[[Callable[[Expr, str], Expr], list], tuple[Expr, Expr]]) -> Block:
        bindings: list[Binding | MatchCast] = []

        def emit(expr: Expr, name: str) -> Expr:
            bindings.append(Binding(Var(name, type=expr.type), expr))
            return bindings[-1].var

        fields = write(emit, bindings)
        made = emit(Tuple(fields, type=TupleType(tuple(field.type for field in fields))), "result")
        return Block(tuple(bindings), made, type=both)

    def one(emit, bindings) -> tuple[Expr, Expr]:
        shape = tuple(dim_var(f"d{i}") if dim is None else dim for i, dim in enumerate(dims))
        row = Var("row", type=TensorType(dtype, shape))
        bindings.append(MatchCast(row, emit(TupleItem(list_, 0, type=OBJECT), "row")))
        rest = emit(TupleItem(list_, 1, type=OBJECT), "rest")
        return emit(ops.expand_dims(row, axes=(0,)), "row"), rest

    def many(emit, bindings) -> tuple[Expr, Expr]:
        half = emit(PrimCall("floordiv", (n, prim(2)), type=PrimType(I64)), "half")
        other = emit(PrimCall("sub", (n, half), type=PrimType(I64)), "other")
        late = emit(Call(var, (list_, other), type=both), "late")
        left = emit(TupleItem(late, 1, type=OBJECT), "left")
        early = emit(Call(var, (left, half), type=both), "early")
        parts = [emit(TupleItem(part, 0, type=both.fields[0]), "rows") for part in (early, late)]
        whole = emit(ops.concat(*(parts[::-1] if reverse else parts), axis=0), "rows")
        return whole, emit(TupleItem(early, 1, type=OBJECT), "rest")

    test = Var("single", type=PrimType(BOOL))
    result = Var("result", type=both)
    bindings = (
        Binding(test, PrimCall("eq", (n, prim(1)), type=test.type)),
        Binding(result, If(test, block(one), block(many), type=both)),
    )
    return Binding(var, Function("join_rows", (list_, n), Block(bindings, result, type=both), both, type=var.type))


def _source(body: Any, name: str) -> str:
    """The value that `name` is, behind Identity."""
    makers = {output: proto for proto in body.node for output in proto.output}
    while name in makers and makers[name].op_type == "Identity":
        name = makers[name].input[0]
    return name


def _fits(type_: TensorType, found: Type, own: set[DimVar]) -> bool:
    """Whether a value of type `found` may be given where `type_` is expected; variables of `own` take any size."""
    if not isinstance(found, TensorType) or (found.dtype, found.rank) != (type_.dtype, type_.rank):
        return False
    if type_.shape is None or found.shape is None:
        return type_.shape is None or all(as_var(dim) in own for dim in type_.shape)
    return all(as_var(dim) in own or dim == got for dim, got in zip(type_.shape, found.shape, strict=True))


def _wider(name: str, type_: TensorType, found: Type, own: set[DimVar]) -> TensorType:
    """A type that holds values of both: sizes that differ become variables, which join `own`."""
    if _fits(type_, found, own):
        return type_
    if not isinstance(found, TensorType) or (found.dtype, found.rank) != (type_.dtype, type_.rank):
        raise RelvmTypeError(f"{name} is {type_} before the loop and {found} after a round")
    if type_.rank is None:
        raise RelvmUnsupportedError(f"{name} is {type_}: the rank of what a loop carries must be known")
    same = [False] * type_.rank
    if type_.shape is not None and found.shape is not None:
        same = [dim == got for dim, got in zip(type_.shape, found.shape, strict=True)]
    fresh = [dim_var(f"{identifier(name, set())}_dim{axis}") for axis in range(type_.rank)]
    own.update(as_var(dim) for dim, keep in zip(fresh, same, strict=True) if not keep)
    dims = zip(type_.shape or fresh, fresh, same, strict=True)
    return TensorType(type_.dtype, tuple(dim if keep else new for dim, new, keep in dims))


def _scalar(graph: GraphImporter, value: Expr | HostValue) -> Expr:
    """The element of a tensor of one element, as a scalar: bool or i64."""
    match value:
        case Constant(value=array):
            return prim(array.item())
        case HostValue(array=array):
            return _as_scalar(array.reshape(-1)[0])
    tensor = value if value.type.rank == 0 else graph.emit(ops.reshape(value, Shape(())), "scalar")
    return graph.emit(ops.to_scalar(tensor), "scalar")


def _as_scalar(dim: AnyDim) -> Expr:
    return DimValue(dim) if isinstance(dim, Dim) else prim(int(dim))


def _at_least_0(limit: Prim | DimValue) -> AnyDim:
    dim = limit.value if isinstance(limit, Prim) else limit.dim
    return dim if as_var(dim) else dim_op("max", dim, 0)


def _is_true(go: Expr) -> bool:
    return isinstance(go, Prim) and go.value is True


def _prim(graph: GraphImporter, function: str, left: Expr, right: Expr) -> Expr:
    """Arithmetic on two scalars."""
    dtype = I64 if function in ("add", "sub") else BOOL
    return graph.emit(PrimCall(function, (left, right), type=PrimType(dtype)), function)
