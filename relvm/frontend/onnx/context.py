"""The import context: the values of the graph being imported, and the block to which converters add bindings."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from types import MappingProxyType
from typing import Any, Self

import numpy as np

import relvm.ops as ops
from relvm.data_classes import dataclass
from relvm.errors import (
    RelvmError,
    RelvmFormatError,
    RelvmShapeError,
    RelvmTypeError,
    RelvmUnsupportedError,
    shortened,
)
from relvm.frontend.onnx.dimension_names import dimension_key
from relvm.frontend.onnx.identifiers import identifier
from relvm.frontend.onnx.model_checker import Key, max_imported_nodes
from relvm.frontend.onnx.model_file import ModelFile
from relvm.frontend.onnx.values import SIZE_LIMIT, Dequantized, HostValue, Value
from relvm.frontend.onnx_element_types import element_dtype, element_name
from relvm.frontend.weights import Weights, as_constant
from relvm.ir.dtypes import I64, DType, dtype_of
from relvm.ir.expr import (
    Binding,
    Block,
    Constant,
    Expr,
    KernelCall,
    MatchCast,
    OpCall,
    Shape,
    Tuple,
    TupleItem,
    Var,
    constant,
    is_atom,
)
from relvm.ir.kernel_def import KernelDef
from relvm.ir.operator import SizeClaim
from relvm.ir.relate_sizes import make_claim_check
from relvm.ir.symbolic import AnyDim, Dim, DimVar, dim_op, dim_var, dim_vars, known_sizes, nesting_depth, node_count
from relvm.ir.types import ShapeType, TensorType, TupleType, Type, forget_vars, is_proven, mismatch_reason
from relvm.ir.value_ranges import range_of
from relvm.ops.folding import FoldingBudget

_MAX_AXES = 64  # NumPy's limit

UNIMPORTED: Any = object()  # the value of a node that could not be imported


class Unimported(Exception):
    """Raised when a value is used whose node could not be imported.

    The error of that node is not lost: `ImportContext.problems` contains it.
    """


@dataclass
class NodeCounter:
    """Counts imported nodes, so that inlining cannot make a small model arbitrarily large.

    The nodes of a function body count once for each call.

    nodes: the number of nodes imported so far.   limit: the maximum of `nodes`.
    """

    nodes: int
    limit: int

    def count(self, nodes: int, place: str) -> None:
        """Add `nodes` to the number of imported nodes.  Raise RelvmUnsupportedError if the total exceeds the limit.

        nodes: the number of nodes that are imported now.   place: the beginning of the error message.
        """
        self.nodes += nodes
        if self.nodes > self.limit:
            raise RelvmUnsupportedError(
                f"{place}: inlined functions and copied branches exceed the limit of {self.limit} nodes"
            )


class ImportContext(ABC):
    """The context of a graph being imported.

    The context of a subgraph has access to the values of the enclosing graph.  The parameter `here` of the methods is
    the beginning of error messages.
    """

    def __init__(
        self,
        opsets: dict[str, int],
        dims: dict[str, int | tuple[int, int] | None],
        file: ModelFile,
        outer: Self | None,
    ) -> None:
        self.opsets = opsets
        self.fixed_dims = dims
        self.file = file
        self.place: str = outer.place if outer else file.place
        self.origin = self.place  # origin of the values being imported: first the model, then each of its nodes
        self.outer: ImportContext | None = outer
        self.problems: dict[str, None] = outer.problems if outer else {}  # error messages, in order
        self.values: dict[str, Value | None] = {}  # None is a function input that the call omits
        self.bindings: list[Binding | MatchCast] = []
        self.rank_splits: int = (
            outer.rank_splits if outer else 0
        )  # nesting depth of the Ifs that split the import by rank
        self.own_dims: set[DimVar] = set()  # dimension variables that this graph created
        # Variables that stand for complex sizes, each with its match_cast and the index of that in `bindings`.  If a
        # node is converted again, the bindings of the first conversion are removed.
        self.size_variables: dict[AnyDim, tuple[AnyDim, MatchCast, int]] = {}
        self.dim_names: dict[str, AnyDim] = outer.dim_names if outer else {}
        self.hints: set[str] = outer.hints if outer else set()  # names of dimensions that may differ between inputs
        self.used_names: set[str] = outer.used_names if outer else set()  # the names of variables in dim_names
        self.functions: dict[Key, Any] = outer.functions if outer else {}
        self.calls: tuple[Key, ...] = outer.calls if outer else ()  # functions whose calls enclose this graph
        self.declared: dict[str, Any] = {}  # TypeProtos that the graph declares for node outputs
        self.items: dict[Expr, tuple[Expr, ...]] = outer.items if outer else {}  # lists whose items are known
        self.node_counter: NodeCounter = outer.node_counter if outer else NodeCounter(0, max_imported_nodes(file.proto))
        self.kernels: dict[str, KernelDef] = outer.kernels if outer else {}
        self.folding: FoldingBudget = outer.folding if outer else FoldingBudget()
        self.dequantized: dict[Expr, Dequantized] = outer.dequantized if outer else {}

    @abstractmethod
    def import_nodes(self, nodes: list[Any], names: list[str]) -> list[Value]:
        """Import a list of nodes as bindings.  Return the values with the given names."""

    def lookup(self, name: str, here: str) -> Value | None:
        """Return the value with the given name, from this graph or the nearest enclosing graph.

        Return None if the name is that of a function input that the call omits.

        here: the beginning of error messages.
        """
        graph: ImportContext | None = self
        while graph is not None:
            if name in graph.values:
                value = graph.values[name]
                if value is UNIMPORTED:
                    raise Unimported
                return value
            graph = graph.outer
        raise RelvmFormatError(
            f"{here}: value {shortened(name)!r} is used, but neither an input nor an earlier node defines it"
        )

    def tensor(self, value: Value) -> Expr:
        """Convert a value to a tensor expression.

        A HostValue, whose elements are known at import time, becomes a constant or a tensor that is computed from
        sizes.  An expression is unchanged.
        """
        if not isinstance(value, HostValue):
            return value
        dims = tuple(value.array.reshape(-1))
        if not any(isinstance(dim, Dim) for dim in dims):
            return self.constant(value.array.astype(value.dtype.numpy), "a constant")
        tensor = self.integers(dims)
        if value.dtype != I64:
            tensor = self.emit(ops.cast(tensor, to=value.dtype.name), "shape")
        if value.array.ndim != 1:
            tensor = self.emit(ops.reshape(tensor, Shape(value.array.shape)), "shape")
        return tensor

    def integers(self, dims: tuple[AnyDim, ...]) -> Expr:
        """Return the values of dimensions, which can be negative, as a tensor of type i64[len(dims)].

        A Shape cannot contain negative numbers.  If a dimension can be negative, the result is the difference of two
        shapes: the dimensions above 0, and the absolute values of those below 0.
        """
        above = tuple(dim if range_of(dim, {}).low >= 0 else dim_op("max", dim, 0) for dim in dims)
        tensor = self.emit(ops.shape_to_tensor(Shape(above)), "shape")
        if above == dims:
            return tensor
        below = tuple(0 if dim == part else dim_op("max", -dim, 0) for dim, part in zip(dims, above, strict=True))
        return self.emit(ops.subtract(tensor, self.emit(ops.shape_to_tensor(Shape(below)), "shape")), "shape")

    def constant(self, array: np.ndarray, here: str) -> Constant:
        """Convert an array to a Constant.  Read-only arrays, such as weights, are not copied.

        Raise RelvmUnsupportedError if relvm does not support the element type.

        here: the beginning of the error message.
        """
        try:
            dtype_of(array.dtype)
        except RelvmError as error:
            raise RelvmUnsupportedError(f"{here}: {error}") from None
        return constant(array) if array.flags.writeable else Constant(array)

    def element_type(self, number: int, what: str) -> DType:
        """Return the dtype for `number`, a value of the enum onnx.TensorProto.DataType.

        Raise RelvmUnsupportedError if relvm does not support this element type.

        what: a description of the tensor for the error message.
        """
        dtype = element_dtype(number)
        try:
            if dtype is not None:
                return dtype_of(dtype)
        except RelvmError:
            pass
        raise RelvmUnsupportedError(f"{self.place}: {what}: element type {element_name(number)} is not supported")

    def dimension(self, dim: Any, name: str, axis: int) -> AnyDim:
        key = dimension_key(dim, name, axis)
        if key is None:
            return dim.dim_value
        if key in self.fixed_dims and self.fixed_dims[key] is None:
            self.hints.add(key)
            key = f"{name}_dim{axis}"
        return self.named_dimension(key)

    def named_dimension(self, key: str) -> AnyDim:
        """Return the size that the user fixes for the dimension `key`, or the dimension variable of this name."""
        if key not in self.dim_names:
            size = self.fixed_dims.get(key)
            self.dim_names[key] = size if isinstance(size, int) else dim_var(identifier(key, self.used_names))
        return self.dim_names[key]

    def emit(self, expr: Expr, name: str = "value") -> Expr:
        """Bind `expr` to a new variable and return the variable.  `name` becomes part of the variable's name.

        If `expr` is an atom (a variable or a constant), return it unchanged.  If it is an operator on small constants,
        return the constant result, which can then be used as a shape.
        """
        assert expr.type is not None, f"{name}: an untyped {type(expr).__name__}"
        _expect_supported_rank(expr.type)
        expr = self._fold_small(expr)
        if is_atom(expr):
            return expr
        var = self.var(identifier(name, set()), expr.type)
        self.bindings.append(Binding(var, expr))
        return var

    def items_of_kernel(self, kernel: KernelDef, args: Sequence[Expr], results: Sequence[TensorType]) -> list[Expr]:
        """Add a kernel to the module, call it, and return its results, of which there are several."""
        self.kernels[kernel.name] = kernel
        call = KernelCall(kernel.name, tuple(args), type=TupleType(tuple(results)), origins=(self.origin,))
        found = self.emit(call, kernel.name)
        return [self.emit(TupleItem(found, i, type=type_), kernel.name) for i, type_ in enumerate(results)]

    def unique_name(self, name: str) -> str:
        """Return an unused name of a kernel."""
        return f"{name}_{len(self.kernels)}"

    def var(self, name: str, type_: Type) -> Var:
        """Return a new variable whose source location is the node being imported."""
        return Var(name, type=type_, origins=(self.origin,))

    def known_shape(self, value: Expr) -> Expr:
        """Return the tensor `value` with a name for each size, so that shapes can refer to the sizes.

        If only the rank of `value` is known, each size becomes a new dimension variable.  Otherwise return `value`
        unchanged.
        """
        type_ = value.type
        if not isinstance(type_, TensorType) or type_.shape is not None or type_.rank is None:
            return value
        return self.with_sizes(value, (None,) * type_.rank)

    def with_sizes(self, value: Expr, dims: tuple[AnyDim | None, ...]) -> Expr:
        """Return the tensor `value` with the shape `dims`, in which None stands for a new dimension variable.

        The sizes are checked at run time unless they can be proven.
        """
        stem = value.name if isinstance(value, Var) else "value"
        shape = tuple(dim_var(f"{stem}_dim{axis}") if dim is None else dim for axis, dim in enumerate(dims))
        self.add_own_dims(new for new, dim in zip(shape, dims, strict=True) if dim is None)
        return self.with_shape(value, shape)

    def with_simple_sizes(self, value: Value | None, parts: int = 1, depth: int = 0) -> Value | None:
        """Return `value` with each complex size replaced by a variable, which is bound to the size at run time.

        Later sizes are then computed from the variable, so they have fewer parts.  The same size gets the same variable
        everywhere in the graph.

        value: a tensor, or a HostValue, which becomes a tensor if a complex element can be negative.
        parts, depth: the maximum `node_count` and `nesting_depth` of sizes that are not replaced.
        """
        dims = value.array.reshape(-1) if isinstance(value, HostValue) else _sizes_of(value)
        found = [dim for dim in dims if node_count(dim) > parts or nesting_depth(dim) > depth]
        if not found:
            return value
        if isinstance(value, Expr):
            shape = value.tensor_type.known_shape
            return self.with_shape(value, tuple(self.variable_of(dim) if dim in found else dim for dim in shape))
        assert value is not None
        if any(range_of(dim, {}).low < 0 for dim in found):
            return self.tensor(value)
        array = np.empty(len(dims), dtype=object)
        array[:] = [self.variable_of(dim) if dim in found else dim for dim in dims]
        return HostValue(array.reshape(value.array.shape), value.dtype)

    def variable_of(self, dim: AnyDim) -> AnyDim:
        """Return a variable that is bound to the size `dim`, which is never negative, at run time."""
        graph: ImportContext | None = self
        while graph is not None:
            if dim in graph.size_variables:
                variable, match, at = graph.size_variables[dim]
                if at < len(graph.bindings) and graph.bindings[at] is match:
                    return variable
            graph = graph.outer
        variable = dim_var("size")
        self.add_own_dims([variable])
        match = MatchCast(self.var("sizes", ShapeType((variable,))), Shape((dim,)), self.origin)
        self.size_variables[dim] = (variable, match, len(self.bindings))
        self.bindings.append(match)
        return variable

    def add_own_dims(self, dims: Iterable[AnyDim]) -> None:
        """Record that this graph, and no enclosing graph, created the dimension variables in `dims`."""
        self.own_dims.update(var for dim in dims for var in dim_vars(dim))

    def with_shape(self, value: Expr, shape: tuple[AnyDim, ...]) -> Expr:
        """Return the tensor `value` with the given shape.  The shape is checked at run time unless it can be proven."""
        type_ = TensorType(value.element_type, shape)
        if is_proven(type_, value.type):
            return value
        if reason := mismatch_reason(type_, value.type):
            raise RelvmShapeError(reason)
        var = self.var(value.name if isinstance(value, Var) else "value", type_)
        self.bindings.append(MatchCast(var, value, self.origin))
        return var

    def require(self, claim: SizeClaim) -> None:
        """Require that a claim about two sizes, `left == right` or `left <= right`, is true.

        If the claim can be neither proven nor disproved at import time, add a run-time check to the graph.

        Raises
        ------
        RelvmShapeError
            The claim is disproved: it is false for all values of the symbolic dimensions.
        """
        if claim.needs_check():
            self.bindings.append(make_claim_check(claim, claim.message, (self.origin,)))

    def _fold_small(self, expr: Expr) -> Expr:
        """If `expr` is an operator on small constants, return its result, which NumPy computes.

        Return any other expression unchanged.
        """
        if not isinstance(expr, OpCall) or not expr.args or not isinstance(expr.type, TensorType):
            return expr
        dims = None if expr.type.shape is None else known_sizes(expr.type.shape)
        if dims is None or math.prod(dims) > SIZE_LIMIT:
            return expr
        args: list[np.ndarray | tuple[int, ...]] = []
        for arg in expr.args:
            match arg:
                case Constant(value=array) if array.size <= SIZE_LIMIT:
                    args.append(array)
                case Shape(dims=stated) if (sizes := known_sizes(stated)) is not None:
                    args.append(sizes)
                case _:
                    return expr
        if not self.folding.spend(expr, args):
            return expr
        return constant(np.asarray(expr.op.numpy(*args, **dict(expr.attributes)), expr.type.known_dtype.numpy))

    def without_own_dims(self, type_: Type) -> Type:
        """Return a less precise type that does not mention the dimension variables that this graph created.

        Values outside this graph need such a type, because the variables are not defined there.
        """
        return forget_vars(type_, lambda var: var not in self.own_dims)

    def initializers(
        self, graph: Any, overridden: Collection[str] = (), weights: Weights = MappingProxyType({})
    ) -> None:
        """Define the initializers of a graph as constants.

        overridden: the names of initializers to skip, because they have become parameters.
        weights: arrays that replace dense initializers, by name.
        """
        for tensor in graph.initializer:
            if tensor.name in overridden:
                continue
            what = f"{self.place}: initializer {tensor.name}"
            if tensor.name in weights:
                self.values[tensor.name] = self.weight_constant(tensor, weights[tensor.name], what)
            else:
                self.values[tensor.name] = self.constant(self.file.array(tensor, what), what)
        for sparse in graph.sparse_initializer:
            if sparse.values.name in overridden:
                continue
            what = f"{self.place}: initializer {sparse.values.name}"
            self.values[sparse.values.name] = self.constant(self.file.dense_array(sparse, what), what)

    def weight_constant(self, tensor: Any, array: np.ndarray, here: str) -> Constant:
        """Convert `array`, the weight that replaces the initializer `tensor`, to a constant.

        here: the beginning of error messages.

        Raises
        ------
        RelvmTypeError, RelvmShapeError
            The weight does not have the dtype or the shape of the initializer.
        """
        value, dtype = as_constant(array, f"weights: {tensor.name}"), self.element_type(tensor.data_type, here)
        if value.type != (expected := TensorType(dtype, tuple(tensor.dims))):
            error = RelvmTypeError if value.value.dtype != dtype.numpy else RelvmShapeError
            raise error(f"{here} is {expected}, but its weight is {value.type}")
        return value

    def import_block(self, graph: Any) -> Block:
        """Import a graph as a block.  Its nodes become bindings, and its outputs become the result of the block."""
        return self.finish_block(self.import_outputs(graph))

    def finish_block(self, values: list[Value]) -> Block:
        """Return a block with all bindings so far.

        The result of the block is a tuple of `values`, or the value itself if there is only one.  The type of the block
        does not mention dimension variables that this graph created, because they are not defined outside the block.
        """
        outputs = [self.tensor(value) for value in values]
        result = outputs[0]
        if len(outputs) != 1:
            result = self.emit(Tuple(tuple(outputs), type=TupleType(tuple(o.type for o in outputs))), "outputs")
        return Block(tuple(self.bindings), result, type=self.without_own_dims(result.type))

    def import_outputs(self, graph: Any) -> list[Value]:
        """Import the nodes of `graph` as bindings.  Return the values of the graph outputs."""
        if not graph.output:
            raise RelvmFormatError(f"{self.place}: the graph {graph.name!r} has no outputs")
        return self.import_nodes(list(graph.node), [info.name for info in graph.output])

    def subgraph_context(self, graph: Any) -> Self:
        """Return a new context for importing `graph`, a subgraph that can use the values of this graph."""
        inner = self.nested_context()
        inner.initializers(graph)
        return inner

    def nested_context(self) -> Self:
        """Return a new context that collects the bindings of a nested block.

        Nodes in the block can use the values of this graph.
        """
        return type(self)(self.opsets, self.fixed_dims, self.file, self)

    def function_context(self, opsets: dict[str, int], place: str, key: Key) -> Self:
        """Return a new context for inlining the body of an ONNX function.

        The bindings of the body are added to the block of this graph.  The body cannot use the values of this graph.

        opsets: the opset version of each domain in the body.
        place: the beginning of error messages.
        key: the domain, name and overload of the function.
        """
        scope = type(self)(opsets, self.fixed_dims, self.file, self)
        scope.outer, scope.bindings, scope.own_dims = None, self.bindings, self.own_dims
        scope.size_variables = self.size_variables
        scope.place = place
        scope.calls = (*self.calls, key)
        return scope

    def import_subgraph(self, graph: Any) -> Block:
        """Import a subgraph as a block.  The subgraph can use the values of this graph."""
        return self.subgraph_context(graph).import_block(graph)


def _sizes_of(value: Value | None) -> tuple[AnyDim, ...]:
    """Return the sizes of a tensor, or no sizes if `value` is not a tensor of known shape."""
    type_ = value.type if isinstance(value, Expr) else None
    return type_.shape or () if isinstance(type_, TensorType) else ()


def _expect_supported_rank(type_: Type) -> None:
    """Raise RelvmUnsupportedError if a tensor type has more axes than NumPy supports."""
    if isinstance(type_, TensorType) and type_.rank is not None and type_.rank > _MAX_AXES:
        raise RelvmUnsupportedError(f"a tensor of rank {type_.rank} exceeds the maximum rank of {_MAX_AXES}")
