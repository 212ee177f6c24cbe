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
from relvm.errors import RelvmError, RelvmFormatError, RelvmTypeError, RelvmUnsupportedError, counted
from relvm.frontend.onnx.context import ImportContext
from relvm.frontend.onnx.failing_blocks import NODE_FAILURES, failing_block
from relvm.frontend.onnx.identifiers import identifier
from relvm.frontend.onnx.model_checker import function_key
from relvm.frontend.onnx.registry import OnnxNode, converts
from relvm.frontend.onnx.scalars import scalar_of, scalar_of_dim
from relvm.frontend.onnx.types import declared_type
from relvm.frontend.onnx_messages import make_graph, make_node
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
        raise RelvmFormatError(f"the body has {counted(len(body.input), 'input')}, expected at least 2")
    number, condition, *names = (info.name for info in body.input)
    limit = scalar_of(node.graph, node.value(0), "the trip count") if node.has(0) else None
    go = scalar_of(node.graph, node.value(1), "the condition", (BOOL,)) if node.has(1) else prim(True)
    initial = node.inputs[2:]
    if len(names) != len(initial) or len(body.output) <= len(names):
        found = f"{counted(len(body.input), 'input')} and {counted(len(body.output), 'output')}"
        raise RelvmFormatError(
            f"the body has {found}, which do not match the {counted(len(node.inputs), 'input')} of the node"
        )

    def define_inputs(graph: ImportContext, i: Expr) -> None:
        graph.values[number] = graph.emit(ops.to_tensor(i, dtype="i64"), number)
        graph.values[condition] = constant(np.array(True))  # an iteration only runs if the condition is true

    states = [_CarriedState(*each) for each in zip(names, initial, [o.name for o in body.output[1:]], strict=False)]
    rows = [info.name for info in body.output[1 + len(names) :]]
    is_kept = _copied_value(node, body, body.output[0].name) == condition
    if limit is None and is_kept and _is_true(go):
        raise RelvmUnsupportedError("the loop never ends: it has no trip count, and its condition is always true")
    return _LoopImporter(
        node, body, limit, go, states, rows, None if is_kept else body.output[0].name, define_inputs
    ).import_loop([(0, False)] * len(rows))


@converts("Scan")
def _scan(node: OnnxNode) -> tuple[Any, ...]:
    body, count = node.attribute("body"), node.attribute("num_scan_inputs")
    if not 1 <= count <= len(node.inputs):
        raise RelvmFormatError(f"num_scan_inputs is {count}, expected 1 to {len(node.inputs)}, the number of inputs")
    if node.opset < 9:
        if node.has(0):
            raise RelvmUnsupportedError("sequence_lens is not supported")
        if not node.attribute(_IS_REWRITTEN):
            return _scan(_scan_over_batch(node))
        node = replace(node, inputs=node.inputs[1:])
    first = len(node.inputs) - count
    if len(body.input) != len(node.inputs) or len(body.output) < first:
        raise RelvmFormatError(f"the body has {counted(len(body.input), 'input')}, but the node has {len(node.inputs)}")
    axes = _integer_list(node, "scan_input_axes", count)
    backwards = _integer_list(node, "scan_input_directions" if node.opset >= 9 else "directions", count, maximum=1)
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

    def define_inputs(graph: ImportContext, i: Expr) -> None:
        for info, x, axis, reverse in zip(body.input[first:], scanned, axes, backwards, strict=True):
            at = i
            if reverse:
                at = _emit_prim(graph, "sub", _emit_prim(graph, "sub", scalar_of_dim(size), prim(1)), i)
            index = graph.emit(ops.to_tensor(at, dtype="i64"), "index")
            graph.values[info.name] = graph.emit(ops.gather(x, index, axis=axis), info.name)

    names = [info.name for info in body.output]
    states = [
        _CarriedState(info.name, *each) for info, *each in zip(body.input, node.inputs[:first], names, strict=False)
    ]
    rows = names[first:]
    places = _integer_list(node, "scan_output_axes", len(rows))
    directions = _integer_list(node, "scan_output_directions", len(rows), maximum=1)
    repeated = _LoopImporter(node, body, scalar_of_dim(size), prim(True), states, rows, None, define_inputs)
    return repeated.import_loop(list(zip(places, map(bool, directions), strict=True)))


def _integer_list(node: OnnxNode, name: str, count: int, maximum: int | None = None) -> list[int]:
    """Return the attribute `name`, which is a list of `count` integers.

    If the node does not have the attribute, return `count` zeros.

    maximum: if it is not None, each integer must be from 0 to `maximum`.
    """
    numbers = node.attribute(name, [0] * count)
    if len(numbers) != count or (maximum is not None and not all(0 <= number <= maximum for number in numbers)):
        limits = "" if maximum is None else f" from 0 to {maximum}"
        raise RelvmFormatError(f"{name} is {numbers}, expected {counted(count, 'number')}{limits}")
    return numbers


_IS_REWRITTEN = "__of_one"  # marks the Scans that `_scan_over_batch` creates, so that they are not rewritten again


def _scan_over_batch(node: OnnxNode) -> OnnxNode:
    """Rewrite a Scan of opset 8 as two nested Scans.

    In opset 8, the states and sequences have a batch axis.  The outer Scan iterates over the elements of the batch, and
    the inner one over the sequence of one element.  Both have the attribute `_IS_REWRITTEN`, so that they are not
    rewritten again.
    """
    body, count = node.attribute("body"), node.attribute("num_scan_inputs")
    stem = next(name for name in node.proto.output if name)
    input_names = [f"{stem}.in{i}" for i in range(len(node.inputs) - 1)]
    output_names = [f"{stem}.out{i}" for i in range(len(body.output))]
    directions = node.attribute("directions", [0] * count)
    common = {_IS_REWRITTEN: 1, "num_scan_inputs": count}
    each = make_node("Scan", ["", *input_names], output_names, body=body, directions=directions, **common)
    image = make_graph([each], input_names, output_names)
    common["num_scan_inputs"] = len(input_names)
    return replace(node, proto=make_node("Scan", node.proto.input, node.proto.output, body=image, **common))


@converts("SequenceMap")
def _sequence_map(node: OnnxNode) -> tuple[Any, ...]:
    body, inputs = node.attribute("body"), node.tensors()
    if len(body.input) != len(inputs):
        raise RelvmFormatError(f"the body has {counted(len(body.input), 'input')}, but the node has {len(inputs)}")
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

    def define_inputs(graph: ImportContext, i: Expr) -> None:
        for info, x in zip(body.input, inputs, strict=True):
            is_item = isinstance(x.type, ListType)
            graph.values[info.name] = graph.emit(ops.list_item(x, i), info.name) if is_item else x

    rows = [info.name for info in body.output]
    return _LoopImporter(node, body, lengths[0], prim(True), [], rows, None, define_inputs).import_loop(None)


@value_record
class _CarriedState:
    """A value that a loop passes from each iteration to the next.

    input: the name of the body's input for the value before an iteration.
    initial: the value before the first iteration.
    output: the name of the body's output for the value after an iteration.
    """

    input: str
    initial: Any
    output: str


@value_record
class _Iteration:
    """The body of a loop, imported for states of particular types.

    graph: the context with the body's bindings.
    params: the states before the iteration.
    next_states: the states after the iteration.
    condition: a tensor that is true if the loop continues, or None if the body never ends the loop.
    rows: for each scan output, the row that the iteration appends.
    """

    graph: ImportContext
    params: list[Var]
    next_states: list[Expr]
    condition: Expr | None
    rows: list[Expr]


@value_record
class _LoopImporter:
    """Imports a Loop, Scan or SequenceMap as a local function that calls itself.

    body: the ONNX graph of the body.
    limit: the maximum number of iterations, or None.
    initial_condition: a scalar that states whether the first iteration runs.
    states: the loop-carried states.
    rows: the names of the body outputs that are collected as scan outputs.
    condition_name: the name of the body output that is true if the loop continues, or None if there is no such output.
    define_inputs: a function that defines the body inputs that depend on the iteration number.  Its arguments are the
    context of the body and the iteration number.
    """

    node: OnnxNode
    body: Any
    limit: Expr | None
    initial_condition: Expr
    states: list[_CarriedState]
    rows: list[str]
    condition_name: str | None
    define_inputs: Callable[[ImportContext, Expr], None]

    def import_loop(self, stacking: list[tuple[int, bool]] | None) -> tuple[Any, ...]:
        """Import the loop.  Return the final states, followed by the scan outputs.

        stacking: for each scan output, the axis along which its rows are stacked, and whether their order is reversed.
        If `stacking` is None, return only the scan outputs, as lists of rows.
        """
        node = self.node
        count = node.graph.var("round", PrimType(I64))
        carried = [state for state in self.states if _copied_value(self.node, self.body, state.output) != state.input]
        initial = [node.graph.tensor(state.initial) for state in carried]
        types = [value.type for value in initial]
        varying: set[DimVar] = set()
        is_widened = False
        while True:  # each pass generalizes a size to a variable, or a list to a wider item type
            try:
                iteration = self.import_iteration(carried, types, varying, count)
            except RelvmError as error:
                with_items = list(map(self.with_item_type, carried, types))
                if with_items == types:
                    if isinstance(error, NODE_FAILURES) and not is_widened:
                        return self.without_iterations(error, stacking)
                    raise
                types = with_items
                continue
            found = [
                value.type if _is_tensor(value) else iteration.graph.without_own_dims(value.type)
                for value in iteration.next_states
            ]
            if all(_fits(*each, varying) for each in zip(types, found, strict=True)):
                break
            types = [_widen(s.input, type_, new, varying) for s, type_, new in zip(carried, types, found, strict=True)]
            is_widened = True
        loop = self.loop_function(iteration, count)
        node.graph.bindings.append(loop)
        none = [node.emit(ops.make_list()) for _ in self.rows]
        args = (prim(0), *((self.initial_condition,) if iteration.condition else ()), *initial, *none)
        assert isinstance(loop.var.type, FuncType)
        items = node.fields(node.emit(Call(loop.var, args, type=loop.var.type.result)))
        finals = dict(zip((state.input for state in carried), items, strict=False))
        rounds, *lists = items[len(carried) :]
        if stacking is None:
            return tuple(lists)
        if isinstance(self.limit, Prim | DimValue) and iteration.condition is None and _is_true(self.initial_condition):
            rounds = scalar_of_dim(_at_least_0(self.limit))
        stacked = [
            self.stack_rows(iteration, rounds, *each) for each in zip(lists, iteration.rows, stacking, strict=True)
        ]
        return (*(finals.get(state.input, state.initial) for state in self.states), *stacked)

    def without_iterations(self, error: RelvmError, stacking: list[tuple[int, bool]] | None) -> tuple[Any, ...]:
        """Import a loop whose first iteration always fails with `error`.

        The imported loop raises `error` at run time if its first iteration runs.  Otherwise it returns the initial
        states, followed by an empty tensor for each scan output.  If `stacking` is None, it returns only an empty list
        for each scan output.

        Raise `error` now if the first iteration is certain to run, or if the rank of a scan output is not declared.

        stacking: see `import_loop`.
        """
        graph = self.node.graph
        is_entered = self.limit is None or (isinstance(self.limit, Prim) and self.limit.value > 0)
        if is_entered and _is_true(self.initial_condition):
            raise error
        test = self.runs_again(graph, prim(0), self.initial_condition)
        none = [self.node.emit(ops.make_list()) for _ in self.rows]
        if stacking is not None:
            infos = {info.name: info for info in self.body.output}
            none = []
            for name, (axis, _) in zip(self.rows, stacking, strict=True):
                type_ = declared_type(graph, infos[name].type, f"output {name}")
                if not isinstance(type_, TensorType) or type_.rank is None:
                    raise error
                none.append(_no_rows(graph, type_, _dims_with_rows(type_, axis), axis))
        nothing = graph.var("nothing", PrimType(I64))
        passed = Block((Binding(nothing, prim(0)),), nothing, type=nothing.type)
        graph.emit(If(test, failing_block(graph, error, nothing.type), passed, type=nothing.type), "check")
        return tuple(none) if stacking is None else (*(state.initial for state in self.states), *none)

    def with_item_type(self, state: _CarriedState, type_: Type) -> Type:
        """Complete the type of a state whose initial value is an empty list or null, which has no item type.

        The item type is taken from the type that the body declares for the state.  Any other type is returned
        unchanged.
        """
        if type_ not in (ListType(None), OptionalType(None)):
            return type_
        info = next(info for info in self.body.input if info.name == state.input)
        declared = declared_type(self.node.graph, info.type, f"input {info.name}") if info.type.which_oneof() else type_
        return join(type_, declared) or type_

    def import_iteration(
        self, carried: list[_CarriedState], types: list[Type], varying: set[DimVar], count: Expr
    ) -> _Iteration:
        """Import the body for one iteration.

        carried: the states that become parameters of the local function.
        types: the types of these states.
        varying: the dimension variables in `types` for sizes that change between iterations.
        count: the iteration number.
        """
        graph = self.node.graph.subgraph_context(self.body)
        graph.own_dims |= varying
        new = self.node.graph.var
        params = [new(identifier(state.input, set()), type_) for state, type_ in zip(carried, types, strict=True)]
        graph.values.update((state.input, state.initial) for state in self.states)
        graph.values.update(zip((state.input for state in carried), params, strict=True))
        self.define_inputs(graph, count)
        names = [info.name for info in self.body.output]
        found = {name: graph.tensor(value) for name, value in zip(names, graph.import_outputs(self.body), strict=True)}
        continues = found[self.condition_name] if self.condition_name else None
        continues = None if isinstance(continues, Constant) and continues.value.all() else continues
        return _Iteration(
            graph, params, [found[s.output] for s in carried], continues, [found[name] for name in self.rows]
        )

    def loop_function(self, iteration: _Iteration, count: Var) -> Binding:
        """Return a binding that defines the loop as a local function.

        The function returns the final states, the number of iterations, and a list of rows for each scan output.

        iteration: the imported body.   count: the parameter for the iteration number.
        """
        graph, params, new = iteration.graph, iteration.params, self.node.graph.var
        lists = [new("rows", ListType(graph.without_own_dims(row.type))) for row in iteration.rows]
        continues = new("go", PrimType(BOOL)) if iteration.condition else None
        result = TupleType(
            (*(graph.without_own_dims(p.type) for p in params), PrimType(I64), *(rows.type for rows in lists))
        )
        everything = (count, *((continues,) if continues else ()), *params, *lists)
        var = new("loop", FuncType(tuple(p.type for p in everything), result))

        next_count = _emit_prim(graph, "add", count, prim(1))
        after = (scalar_of(graph, iteration.condition, "the body's condition", (BOOL,)),) if iteration.condition else ()
        longer = [graph.emit(ops.list_append(*each), "rows") for each in zip(lists, iteration.rows, strict=True)]
        again = graph.emit(Call(var, (next_count, *after, *iteration.next_states, *longer), type=result), "result")
        then = Block(tuple(graph.bindings), again, type=result)
        end = (*params, count, *lists)
        ended = new("result", TupleType(tuple(p.type for p in end)))
        orelse = Block((Binding(ended, Tuple(end, type=ended.type)),), ended, type=ended.type)

        outside = graph.nested_context()
        test = self.runs_again(outside, count, continues or self.initial_condition)
        whole = outside.emit(If(test, then, orelse, type=result), "result")
        body = Block(tuple(outside.bindings), whole, type=result)
        return Binding(var, Function("loop", everything, body, result, type=var.type))

    def runs_again(self, graph: ImportContext, count: Expr, continues: Expr) -> Expr:
        """Return a scalar that is true if iteration number `count` runs.

        continues: the condition that the previous iteration computed, or the initial condition.
        """
        if self.limit is None:
            return continues
        below = _emit_prim(graph, "lt", count, self.limit)
        return below if _is_true(continues) else _emit_prim(graph, "and", below, continues)

    def stack_rows(
        self, iteration: _Iteration, rounds: Expr, rows: Expr, row: Expr, stacking: tuple[int, bool]
    ) -> Expr:
        """Stack the rows of a scan output, and return the tensor.

        If the loop has no iterations, each size that only an iteration could determine is 0.  But if the rank of a row
        is unknown, a loop without iterations is an error at run time.

        rounds: the number of iterations.
        rows: the list of rows.
        row: the row that the body computes, which has the type of all rows.
        stacking: the axis along which the rows are stacked, and whether their order is reversed.
        """
        node, (axis, reverse) = self.node, stacking
        if not isinstance(row.type, TensorType):
            raise RelvmUnsupportedError(f"a scan output has type {row.type} in an iteration, expected a tensor")
        if row.type.rank is None:
            if reverse:
                raise RelvmUnsupportedError(
                    "scan_output_directions: cannot reverse a scan output whose rank is unknown; reshape it in the body"
                )
            return node.emit(ops.list_stack(rows, axis=axis))
        axis = expect_axis(node.proto.op_type, axis, row.type.rank + 1, "scan_output_axes")
        varying = iteration.graph.own_dims
        found = (None,) * row.type.rank if row.type.shape is None else row.type.shape
        dims = [None if dim is None or any(var in varying for var in dim_vars(dim)) else dim for dim in found]
        size = rounds.dim if isinstance(rounds, DimValue) else int(rounds.value) if isinstance(rounds, Prim) else None
        dims.insert(axis, size)
        builders = [
            lambda graph: _no_rows(graph, row.type, dims, axis),
            lambda graph: _stacked(graph, rows, axis, reverse),
        ]
        if isinstance(size, int):
            whole = builders[size > 0](node.graph)
        else:
            blocks = []
            for build in builders:
                graph = node.graph.nested_context()
                stacked = build(graph)
                blocks.append(Block(tuple(graph.bindings), stacked, type=graph.without_own_dims(stacked.type)))
            none = _emit_prim(node.graph, "eq", rounds, prim(0))
            then, orelse = blocks
            whole = node.emit(If(none, then, orelse, type=TensorType(row.type.dtype, None, len(dims))))
        return node.graph.with_sizes(whole, tuple(dims))


def _dims_with_rows(row: TensorType, axis: int) -> list[AnyDim | None]:
    """Return the sizes of a scan output: those of a row, and None for `axis`, along which the rows are stacked.

    An unknown size of a row is None, too.
    """
    assert row.rank is not None
    dims: list[AnyDim | None] = list((None,) * row.rank if row.shape is None else row.shape)
    dims.insert(axis if axis >= 0 else axis + row.rank + 1, None)
    return dims


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


def _copied_value(node: OnnxNode, body: Any, name: str) -> str:
    """Return the name of the value that Identity nodes in `body` copy to the value `name`.

    Return `name` itself if no Identity computes that value.
    """
    producers = {output: proto for proto in body.node for output in proto.output}
    identity = ("", "Identity", "")
    while name in producers and function_key(producers[name]) == identity and identity not in node.graph.functions:
        name = producers[name].input[0]
    return name


def _is_tensor(value: Expr) -> bool:
    return isinstance(value.type, TensorType)


def _fits(type_: Type, new_type: Type, varying: set[DimVar]) -> bool:
    """Return whether a value of type `new_type` is valid where `type_` is expected.

    varying: the dimension variables in `type_` that match any size.
    """
    if not isinstance(type_, TensorType):
        return is_proven(type_, new_type)
    if not isinstance(new_type, TensorType) or (new_type.dtype, new_type.rank) != (type_.dtype, type_.rank):
        return False
    if type_.shape is None or new_type.shape is None:
        return type_.shape is None or all(as_var(dim) in varying for dim in type_.shape)
    return all(as_var(dim) in varying or dim == got for dim, got in zip(type_.shape, new_type.shape, strict=True))


def _widen(name: str, type_: Type, new_type: Type, varying: set[DimVar]) -> Type:
    """Return a type that covers the types of a loop-carried state before and after an iteration.

    Each size that differs becomes a new dimension variable, which is added to `varying`.

    name: the name of the state.
    type_: the type before the iteration.
    new_type: the type after the iteration.
    varying: the dimension variables for sizes that change between iterations.
    """
    if _fits(type_, new_type, varying):
        return type_
    if isinstance(type_, ListType | OptionalType) or isinstance(new_type, OptionalType):
        both = join(type_, new_type)
        if both is not None:
            return forget_vars(both, lambda var: var not in varying)
    if (
        not isinstance(type_, TensorType)
        or not isinstance(new_type, TensorType)
        or (new_type.dtype, new_type.rank) != (type_.dtype, type_.rank)
    ):
        raise RelvmTypeError(f"{name} is {type_} before the loop but {new_type} after an iteration")
    if type_.rank is None:
        raise RelvmUnsupportedError(f"{name} is {type_}, but a loop-carried value must have a known rank")
    same = [False] * type_.rank
    if type_.shape is not None and new_type.shape is not None:
        same = [dim == got for dim, got in zip(type_.shape, new_type.shape, strict=True)]
    fresh = [dim_var(f"{identifier(name, set())}_dim{axis}") for axis in range(type_.rank)]
    varying.update(var for dim, keep in zip(fresh, same, strict=True) if not keep for var in dim_vars(dim))
    dims = zip(type_.shape or fresh, fresh, same, strict=True)
    return TensorType(type_.dtype, tuple(dim if keep else new for dim, new, keep in dims))


def _at_least_0(limit: Prim | DimValue) -> AnyDim:
    dim = int(limit.value) if isinstance(limit, Prim) else limit.dim
    return dim if as_var(dim) else dim_op("max", dim, 0)


def _is_true(go: Expr) -> bool:
    return isinstance(go, Prim) and go.value is True


def _emit_prim(graph: ImportContext, function: str, left: Expr, right: Expr) -> Expr:
    """Add a scalar operation, such as "add", to the graph.  Return the variable with its result."""
    dtype = I64 if function in ("add", "sub") else BOOL
    return graph.emit(PrimCall(function, (left, right), type=PrimType(dtype)), function)
