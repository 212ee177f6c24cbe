"""An ONNX model as a module: one function, `main`, of the graph's inputs.

Every node becomes applications of operators (converters.py and the families beside it).  Integer tensors that are
known, or made of dimensions, are kept as host values (host.py) and never computed at run time: a Reshape by a computed
shape becomes a symbolic one.
An If becomes an If whose branches see the values around them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

import relvm.frontend.onnx.activations
import relvm.frontend.onnx.attention
import relvm.frontend.onnx.attention_fused
import relvm.frontend.onnx.blocks
import relvm.frontend.onnx.conversion
import relvm.frontend.onnx.converters
import relvm.frontend.onnx.cropping
import relvm.frontend.onnx.cumulation
import relvm.frontend.onnx.determinants
import relvm.frontend.onnx.einsum
import relvm.frontend.onnx.fused
import relvm.frontend.onnx.generation
import relvm.frontend.onnx.grids
import relvm.frontend.onnx.logic
import relvm.frontend.onnx.loops
import relvm.frontend.onnx.margins
import relvm.frontend.onnx.ml_features
import relvm.frontend.onnx.ml_labels
import relvm.frontend.onnx.ml_linear
import relvm.frontend.onnx.ml_trees
import relvm.frontend.onnx.ngrams
import relvm.frontend.onnx.normalization
import relvm.frontend.onnx.pooling
import relvm.frontend.onnx.positions
import relvm.frontend.onnx.quantised
import relvm.frontend.onnx.random
import relvm.frontend.onnx.recurrent
import relvm.frontend.onnx.recurrent_quantised
import relvm.frontend.onnx.reductions
import relvm.frontend.onnx.regions
import relvm.frontend.onnx.reshaping
import relvm.frontend.onnx.resize
import relvm.frontend.onnx.sequences
import relvm.frontend.onnx.spectra
import relvm.frontend.onnx.squeeze
import relvm.frontend.onnx.strings
import relvm.frontend.onnx.training
import relvm.frontend.onnx.transposed
import relvm.frontend.onnx.uniqueness  # noqa: F401  (these declare the converters)
import relvm.ops as ops
from relvm.errors import (
    RelvmArgumentError,
    RelvmError,
    RelvmFormatError,
    RelvmNameError,
    RelvmShapeError,
    RelvmUnsupportedError,
    expect_type,
    near_matches,
)
from relvm.frontend.onnx import control, dequantised, forms, functions, host, matching, schemas, types
from relvm.frontend.onnx.files import ModelFile, read_model
from relvm.frontend.onnx.names import identifier, shown
from relvm.frontend.onnx.order import in_order
from relvm.frontend.onnx.registry import Fork, Node, supported
from relvm.ir.bounds import LOWER, UPPER
from relvm.ir.dims import AnyDim, Dim, DimVar, as_var, dim_var
from relvm.ir.dtypes import I64, DType, dtype_of
from relvm.ir.expr import (
    Attributes,
    Binding,
    Block,
    Constant,
    Expr,
    Function,
    MatchCast,
    Module,
    OpCall,
    Shape,
    Tuple,
    Var,
    constant,
    is_atom,
)
from relvm.ir.operator import SizeClaim
from relvm.ir.origin import set_origin
from relvm.ir.relate_sizes import check_of
from relvm.ir.types import TensorType, TupleType, Type, forget_vars, is_proven, mismatch

# A value of the graph: an atom, or what is known on the host about an integer tensor.
Value = Expr | host.HostValue

# What comes of it where what a converter takes for granted (an input, the kind of an attribute, text that is UTF-8) is
# not so.
MALFORMED = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)

UNIMPORTED: Any = object()  # the value of a node that could not be imported


class Unimported(Exception):
    """What is asked for depends on a node that could not be imported, which is among the problems already."""


def from_onnx(
    model: Any,
    *,
    dims: Mapping[str, int | tuple[int, int] | None] | None = None,
    inputs: Iterable[str] = (),
) -> Module:
    """Import an ONNX model.

    Parameters
    ----------
    model
        A path, the bytes of a file, or an onnx.ModelProto.
    dims
        Symbolic dimensions by their names in the model (`dim_param`): the size, or the smallest and the largest one,
        which every call is held to, and for which memory is planned.  None: the name is only a hint, as it is for ONNX
        Runtime, and inputs that share it may have different sizes.
    inputs
        Inputs with an initializer that become parameters.  The others of them are constants.

    Returns
    -------
    Module
        With one function, `main`: a parameter for each graph input that has no initializer or is among `inputs`, its
        name made an identifier where it is none; its result, or a tuple of them where the graph has several outputs.
        A sequence is a list, an optional value the value or null; a map the tuple of its keys and values, and a
        sequence of maps with the same keys, as ZipMap gives it, the tuple of the keys and of a matrix with a row for
        each.  The attributes input_names and output_names hold the graph's own names.

    Raises
    ------
    RelvmFormatError
        The file is no ONNX model, or one whose graph is inconsistent.
    RelvmUnsupportedError
        A node that cannot be imported: names the node, the operator and the opset.  A model that is newer than the
        installed onnx package, or larger than the limits (forms.py).
    RelvmTypeError
        A value of another type than its node, or the model, says.
    RelvmNameError
        `dims` names a dimension that the model does not have, or `inputs` an input.
    RelvmArgumentError
        `model` is none of these, or `dims` gives something else than a size, two in order, or None.
    OSError
        The file cannot be read.
    """
    file = read_model(model)
    expect_type("dims", dims or {}, Mapping, "a mapping of names to sizes")
    dims = {name: _size(name, size) for name, size in (dims or {}).items()}
    if isinstance(inputs, str):
        raise RelvmArgumentError(f"inputs: expected a collection of names, got {inputs!r}; write [{inputs!r}]")
    expect_type("inputs", inputs, Iterable, "a collection of names")
    inputs = tuple(inputs)
    for name in inputs:
        expect_type("inputs", name, str, "names")
    try:
        file = replace(file, proto=in_order(file.proto))
        forms.expect_model(file.proto, file.place)
        importer = GraphImporter(forms.opsets_of(file.proto.opset_import, file.place), dims, file, None)
        importer.functions.update(forms.functions_of(file.proto))
        function = importer.main(file.proto.graph, inputs)
    except RelvmError:
        raise
    except MALFORMED as error:
        raise RelvmFormatError(f"{file.place}: the model is malformed: {type(error).__name__}: {error}") from error
    unknown = sorted(dims.keys() - importer.dim_names.keys() - importer.hints)
    if unknown:
        raise RelvmNameError(
            f"the model has no dimension {unknown[0]}; it has {', '.join(importer.dim_names) or 'none'}"
        )
    module = Module((function,), attributes=(("source", file.place),))
    if not file.origin:
        return module
    return set_origin(module, f"{file.origin} {sorted(dims.items())} {sorted(inputs)}")


def _size(name: str, size: Any) -> int | tuple[int, int] | None:
    """The size or sizes that the user gives a dimension, as integers of Python."""
    if size is None:
        return None
    limits = size if isinstance(size, tuple | list) and len(size) == 2 else (size, size)
    are_integers = all(isinstance(limit, Integral) and not isinstance(limit, bool) for limit in limits)
    if not are_integers or not 0 <= limits[0] <= limits[1]:
        raise RelvmArgumentError(
            f"dims: {name} is {size!r}, expected a size, the smallest and the largest one, or None"
        )
    low, high = map(int, limits)
    return (low, high) if limits is size else low


class GraphImporter:
    """Imports one graph; a subgraph's importer sees the values of the one around it."""

    def __init__(
        self,
        opsets: dict[str, int],
        dims: dict[str, int | tuple[int, int] | None],
        file: ModelFile,
        outer: GraphImporter | None,
    ) -> None:
        self.opsets = opsets
        self.fixed_dims = dims
        self.file = file
        self.place = outer.place if outer else file.place
        self.origin = self.place  # of what is being imported: the model, then its nodes
        self.outer = outer
        self.problems: dict[str, None] = outer.problems if outer else {}  # what cannot be imported, in order
        self.values: dict[str, Value | None] = {}  # None: an input that a call of a function leaves out
        self.bindings: list[Binding | MatchCast] = []
        self.forks: int = outer.forks if outer else 0  # how many Ifs that parted the ways this graph is behind
        self.own_dims: set[DimVar] = set()  # that `known_shape` made: no parameter's shape gives them
        self.dim_names: dict[str, AnyDim] = outer.dim_names if outer else {}
        self.hints: set[str] = outer.hints if outer else set()  # the names of dimensions that may differ
        self.taken: set[str] = outer.taken if outer else set()  # the names of variables in dim_names
        self.functions: dict[forms.Key, Any] = outer.functions if outer else {}
        self.calls: tuple[forms.Key, ...] = outer.calls if outer else ()  # of functions, that this graph is inside
        self.declared: dict[str, Any] = {}  # TypeProtos: what the graph says of the values that its nodes make
        self.items: dict[Expr, tuple[Expr, ...]] = outer.items if outer else {}  # of lists whose items are known
        self.dequantised: dict[Expr, dequantised.Dequantised] = outer.dequantised if outer else {}

    def main(self, graph: Any, overridden: Collection[str] = ()) -> Function:
        """The graph as a function.

        overridden: the inputs that are parameters although they have an initializer.
        """
        known = {info.name for info in graph.input}
        for name in overridden:
            if name not in known:
                raise RelvmNameError(f"{self.place}: the model has no input {shown(name)!r}{near_matches(name, known)}")
        self.initializers(graph, overridden)
        self.declared = {info.name: info.type for info in (*graph.value_info, *graph.output)}
        params, inputs, names = [], [], set()
        for info in graph.input:
            if info.name in self.values:
                here = f"{self.place}: initializer {shown(info.name)!r}"
                types.expect_declared(self.values[info.name], info.type, here)
                continue
            name = identifier(info.name, names)
            origins = (f"{self.place}: input {shown(info.name)!r}",)
            params.append(Var(name, type=types.graph_input(self, info), origins=origins))
            inputs.append(info.name)
            self.values[info.name] = params[-1]
        try:
            body = self.body(graph)
        except Unimported:
            body = None
        self.expect_no_problems()
        assert body is not None
        attributes = (
            ("input_names", tuple(inputs)),
            ("output_names", tuple(info.name for info in graph.output)),
            *self.map_outputs(graph),
            *self.bounds(),
        )
        return Function("main", tuple(params), body, attributes=attributes)

    def expect_no_problems(self) -> None:
        """Raises RelvmUnsupportedError for all that was found at once."""
        if not self.problems:
            return
        first, *rest = self.problems
        if not rest:
            raise RelvmUnsupportedError(first)
        lines = (f"\n  {problem.removeprefix(f'{self.place}: ')}" for problem in self.problems)
        raise RelvmUnsupportedError(f"{self.place}: {len(self.problems)} nodes cannot be imported:{''.join(lines)}")

    def body(self, graph: Any) -> Block:
        """The graph's nodes as bindings, its outputs as the result."""
        return self.block(self.outputs(graph))

    def block(self, values: list[Value]) -> Block:
        """All bindings so far; the result is the value, or the tuple of several, of a type that holds around it."""
        outputs = [self.tensor(value) for value in values]
        result = outputs[0]
        if len(outputs) != 1:
            result = self.emit(Tuple(tuple(outputs), type=TupleType(tuple(o.type for o in outputs))), "outputs")
        return Block(tuple(self.bindings), result, type=self.outside(result.type))

    def outputs(self, graph: Any) -> list[Value]:
        """The graph's nodes as bindings, and what its outputs are."""
        if not graph.output:
            raise RelvmFormatError(f"{self.place}: the graph {graph.name!r} has no outputs")
        return self.rest(list(graph.node), [info.name for info in graph.output])

    def rest(self, nodes: list[Any], names: list[str]) -> list[Value]:
        """Some nodes as bindings, and the values of those names then."""
        for at, proto in enumerate(nodes):
            try:
                self.node(proto)
            except Fork as fork:
                return control.parted(self, fork, list(proto.output), nodes[at + 1 :], names)
        return [self.lookup(name, f"{self.place}: output {shown(name)!r}") for name in names]

    def inner(self, graph: Any) -> GraphImporter:
        """The importer of a graph inside a node: it sees the values around it."""
        inner = self.inner_block()
        inner.initializers(graph)
        return inner

    def inner_block(self) -> GraphImporter:
        """What collects bindings for a block inside this graph's."""
        return GraphImporter(self.opsets, self.fixed_dims, self.file, self)

    def scope(self, opsets: dict[str, int], place: str, key: forms.Key) -> GraphImporter:
        """The importer of a function's body into this block: it sees none of the values here."""
        scope = GraphImporter(opsets, self.fixed_dims, self.file, self)
        scope.outer, scope.bindings, scope.own_dims = None, self.bindings, self.own_dims
        scope.place = place
        scope.calls = (*self.calls, key)
        return scope

    def subgraph(self, graph: Any) -> Block:
        """A graph inside a node, as a block; its type is what holds around it."""
        return self.inner(graph).body(graph)

    def outside(self, type_: Type) -> Type:
        """What is known of a value of that type where the sizes that this graph gave names to are not."""
        return forget_vars(type_, lambda var: var not in self.own_dims)

    def initializers(self, graph: Any, overridden: Collection[str] = ()) -> None:
        for tensor in graph.initializer:
            if tensor.name in overridden:
                continue
            what = f"{self.place}: initializer {tensor.name}"
            self.values[tensor.name] = self.constant(self.file.array(tensor, what), what)
        for sparse in graph.sparse_initializer:
            if sparse.values.name in overridden:
                continue
            what = f"{self.place}: initializer {sparse.values.name}"
            self.values[sparse.values.name] = self.constant(self.file.dense(sparse, what), what)

    def constant(self, array: np.ndarray, here: str) -> Constant:
        """A constant of the model; RelvmUnsupportedError for an element type that relvm does not have.  What is
        read-only, as mapped weights are, is not copied."""
        try:
            dtype_of(array.dtype)
        except RelvmError as error:
            raise RelvmUnsupportedError(f"{here}: {error}") from None
        return constant(array) if array.flags.writeable else Constant(array)

    def element_type(self, number: int, what: str) -> DType:
        """The dtype of an onnx.TensorProto.DataType number."""
        from onnx import TensorProto, helper

        try:
            return dtype_of(helper.tensor_dtype_to_np_dtype(number))
        except (RelvmError, KeyError):
            known = {value: name for name, value in TensorProto.DataType.items()}
            name = known.get(number, number)
            raise RelvmUnsupportedError(f"{self.place}: {what}: element type {name} is not supported") from None

    def dimension(self, dim: Any, name: str, axis: int) -> AnyDim:
        if dim.HasField("dim_value") and dim.dim_value >= 0:  # exporters write -1 for a size that is not known
            return dim.dim_value
        key = dim.dim_param
        is_hint = key in self.fixed_dims and self.fixed_dims[key] is None
        if is_hint:
            self.hints.add(key)
        if is_hint or key in ("", "?"):
            key = f"{name}_dim{axis}"
        if key not in self.dim_names:
            size = self.fixed_dims.get(key)
            self.dim_names[key] = size if isinstance(size, int) else dim_var(identifier(key, self.taken))
        return self.dim_names[key]

    def bounds(self) -> Attributes:
        """What is stated of the sizes of dimensions that are not fixed, as attributes of the function."""
        ranges = [(key, size) for key, size in self.fixed_dims.items() if isinstance(size, tuple)]
        named = [(as_var(self.dim_names[key]).name, size) for key, size in ranges if key in self.dim_names]
        if not named:
            return ()
        limits = zip((LOWER, UPPER), zip(*(size for _, size in named), strict=True), strict=True)
        return tuple((kind, tuple(zip((n for n, _ in named), sizes, strict=True))) for kind, sizes in limits)

    def map_outputs(self, graph: Any) -> Attributes:
        """Which outputs are maps, or sequences of maps, as an attribute of the function."""
        names = tuple(info.name for info in graph.output if types.is_map(info.type))
        return (("map_outputs", names),) if names else ()

    def node(self, proto: Any) -> None:
        """Adds the bindings of one node, and what its outputs are."""
        domain = forms.plain_domain(proto.domain)
        opset = self.opsets.get(domain, 0)
        name = proto.name or next(iter(proto.output), "")
        here = self.origin = f"{self.place}: node {shown(name)!r} ({shown(proto.op_type)}, opset {opset})"
        if domain not in self.opsets:
            raise RelvmFormatError(f"{here}: the model states no opset for the domain {shown(domain) or 'ai.onnx'}")
        try:
            outputs = self.converted(proto, opset, here)
        except Unimported:
            self.values.update((name, UNIMPORTED) for name in proto.output)
            return
        except RelvmUnsupportedError as error:
            message = str(error)
            self.problems[message if message.startswith(self.place) else f"{here}: {message}"] = None
            self.values.update((name, UNIMPORTED) for name in proto.output)
            return
        except RelvmError as error:
            if str(error).startswith(self.place):
                raise
            raise type(error)(f"{here}: {error}") from error
        except MALFORMED as error:
            raise RelvmFormatError(f"{here}: the node is malformed: {type(error).__name__}: {error}") from error
        results = outputs if isinstance(outputs, tuple) else (outputs,)
        for name, value in zip(proto.output, results, strict=False):
            if name:
                is_host = isinstance(value, host.HostValue)
                self.values[name] = value if is_host else self.known_shape(self.emit(value, name))
                if name in self.declared:
                    types.expect_declared(self.values[name], self.declared[name], f"{here}: output {shown(name)!r}")
        for name in proto.output[len(results) :]:
            if name:
                self.problems[f"{here}: output {name} is not supported"] = None
                self.values[name] = UNIMPORTED

    def converted(self, proto: Any, opset: int, here: str) -> Any:
        """What a node's outputs are."""
        convert = functions.converter_of(self, proto, opset)
        if convert is None:
            full = shown(f"{proto.domain}.{proto.op_type}" if proto.domain else proto.op_type)
            raise RelvmUnsupportedError(f"the operator {full} is not supported{near_matches(full, supported())}")
        is_own = forms.key_of(proto) in self.functions
        schema = None if is_own else schemas.schema_of(proto.domain, proto.op_type, opset)
        if schema:
            schemas.expect_form(proto, schema)
        inputs = [self.lookup(name, here) if name else None for name in proto.input]
        if schema:
            schemas.expect_types(inputs, schema)
        node = Node(self, proto, opset, here, inputs)
        if is_own:
            return matching.converted(convert, node)
        known = host.evaluate(node)
        return known if known is not None else dequantised.moved(node, convert)

    def lookup(self, name: str, here: str) -> Value | None:
        """The value of that name in this graph or one around it; None: the function's caller gives none."""
        graph: GraphImporter | None = self
        while graph is not None:
            if name in graph.values:
                value = graph.values[name]
                if value is UNIMPORTED:
                    raise Unimported
                return value
            graph = graph.outer
        raise RelvmFormatError(f"{here}: there is no value {shown(name)!r} before it")

    def emit(self, expr: Expr, name: str) -> Expr:
        """A variable bound to `expr`, or `expr` itself where it is an atom, or its value where it is a small constant:
        what is computed from constants may be a shape."""
        assert expr.type is not None, f"{name}: an untyped {type(expr).__name__}"
        types.expect_possible(expr.type)
        expr = _evaluated(expr)
        if is_atom(expr):
            return expr
        var = self.var(identifier(name, set()), expr.type)
        self.bindings.append(Binding(var, expr))
        return var

    def var(self, name: str, type_: Type) -> Var:
        """A new variable, of what is being imported."""
        return Var(name, type=type_, origins=(self.origin,))

    def known_shape(self, value: Expr) -> Expr:
        """`value`, its sizes named where only the rank is known, so that shapes can be made of them."""
        type_ = value.type
        if not isinstance(type_, TensorType) or type_.shape is not None or type_.rank is None:
            return value
        return self.named(value, (None,) * type_.rank)

    def named(self, value: Expr, dims: tuple[AnyDim | None, ...]) -> Expr:
        """`value`, checked at run time to be of these sizes; None: whatever it is, under a name from here on."""
        stem = value.name if isinstance(value, Var) else "value"
        shape = tuple(dim_var(f"{stem}_dim{axis}") if dim is None else dim for axis, dim in enumerate(dims))
        self.own_dims.update(as_var(new) for new, dim in zip(shape, dims, strict=True) if dim is None)
        return self.checked(value, shape)

    def checked(self, value: Expr, shape: tuple[AnyDim, ...]) -> Expr:
        """`value`, which the model says is of that shape: checked at run time where it is not proven."""
        type_ = TensorType(value.type.dtype, shape)
        if is_proven(type_, value.type):
            return value
        if reason := mismatch(type_, value.type):
            raise RelvmShapeError(reason)
        var = self.var(value.name if isinstance(value, Var) else "value", type_)
        self.bindings.append(MatchCast(var, value))
        return var

    def require(self, claim: SizeClaim) -> None:
        """Check a claim about sizes: now where they are known, else when the model runs.

        Raises
        ------
        RelvmShapeError
            It holds for no values of the dimensions.
        """
        if claim.is_open():
            self.bindings.append(check_of(claim, claim.message, (self.origin,)))

    def tensor(self, value: Value) -> Expr:
        """The value as an expression; a host value is made a tensor here."""
        if not isinstance(value, host.HostValue):
            return value
        dims = tuple(value.array.reshape(-1))
        if not any(isinstance(dim, Dim) for dim in dims):
            return self.constant(value.array.astype(value.dtype.numpy), "a constant")
        # What is negative is no size: it is added.
        sizes = tuple(dim if isinstance(dim, Dim) else max(dim, 0) for dim in dims)
        tensor = self.emit(ops.shape_to_tensor(Shape(sizes)), "shape")
        if sizes != dims:
            rest = [0 if isinstance(dim, Dim) else min(dim, 0) for dim in dims]
            tensor = self.emit(ops.add(tensor, constant(np.array(rest, np.int64))), "shape")
        if value.dtype != I64:
            tensor = self.emit(ops.cast(tensor, to=value.dtype.name), "shape")
        if value.array.ndim != 1:
            tensor = self.emit(ops.reshape(tensor, Shape(value.array.shape)), "shape")
        return tensor


def _evaluated(expr: Expr) -> Expr:
    """An operator applied to small constants as a constant, by its NumPy meaning."""
    if not isinstance(expr, OpCall) or not expr.args or not isinstance(expr.type, TensorType):
        return expr
    dims, args = expr.type.shape, []
    if dims is None or any(isinstance(dim, Dim) for dim in dims) or np.prod(dims, dtype=object) > host.SIZE_LIMIT:
        return expr
    for arg in expr.args:
        match arg:
            case Constant(value=array) if array.size <= host.SIZE_LIMIT:
                args.append(array)
            case Shape(dims=sizes) if not any(isinstance(size, Dim) for size in sizes):
                args.append(sizes)
            case _:
                return expr
    return constant(np.asarray(expr.op.numpy(*args, **dict(expr.attributes)), expr.type.dtype.numpy))
