"""Import of an ONNX model as a module with one function, `main`, whose parameters are the graph's inputs.

A converter (relvm/frontend/onnx/ops/) turns each node into operator calls.  Integer tensors that are constant or
computed from dimensions are folded at import time (shape_folding.py).  A Reshape to a computed shape thus becomes a
Reshape to a symbolic shape.  An ONNX If becomes an If expression, whose branches can use the values of the enclosing
graph.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from numbers import Integral
from types import MappingProxyType
from typing import Any

from relvm.errors import (
    RelvmArgumentError,
    RelvmError,
    RelvmFormatError,
    RelvmNameError,
    RelvmUnsupportedError,
    expect_type,
    near_matches,
    resources,
    shortened,
)
from relvm.frontend.common.problems import expect_no_problems
from relvm.frontend.model_cache_key import onnx_cache_key
from relvm.frontend.onnx import functions, model_checker, node_checker, shape_folding, shape_unification, types
from relvm.frontend.onnx.context import UNIMPORTED, ImportContext, Unimported
from relvm.frontend.onnx.dimension_names import by_names_in_file, printed_names
from relvm.frontend.onnx.identifiers import identifier
from relvm.frontend.onnx.model_file import read_model_file
from relvm.frontend.onnx.node_schemas import schema_of
from relvm.frontend.onnx.ops import if_, qdq_fusion
from relvm.frontend.onnx.registry import Converter, OnnxNode, RankSplit, supported_operators
from relvm.frontend.onnx.topological_sort import find_output_sets, needed_nodes, sort_nodes
from relvm.frontend.onnx.values import HostValue, Value
from relvm.frontend.weights import Weights, as_mapping, bind_weights
from relvm.ir.cache_key import set_cache_key
from relvm.ir.expr import (
    Attributes,
    Function,
    Module,
    Var,
)
from relvm.ir.operator import operators
from relvm.ir.symbolic import ComplexDimError, as_var
from relvm.ir.value_ranges import LOWER, UPPER

_MAX_SIZE_PARTS = 500  # a larger size is bound to a variable; the largest in benchmarks/models has 432 parts
_MAX_SIZE_DEPTH = 50  # the same for the nesting depth

# Exceptions that a converter raises for a malformed node, for example because an input is missing, an attribute has the
# wrong type, or a string is not UTF-8.
MALFORMED = (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError)


def from_onnx(
    model: Any,
    *,
    dims: Mapping[str, int | tuple[int, int] | None] | None = None,
    inputs: Iterable[str] = (),
    outputs: Iterable[str] | None = None,
    ranks: Mapping[str, int] = MappingProxyType({}),
    weights: Weights | str | os.PathLike[str] | None = None,
) -> Module:
    """Import an ONNX model.

    Parameters
    ----------
    model
        A path, the bytes of a file, or an onnx.ModelProto.
    dims
        Sizes of symbolic dimensions by their names in the model (`dim_param`), or in signatures and messages of relvm,
        where characters that an identifier cannot have are replaced by _.  A dimension without a name is called
        "INPUT_dimAXIS", such as "x_dim0".  An integer fixes the size.  A pair (minimum, maximum) bounds the size: every
        call must respect the bounds, and memory is planned for them.  By default, all dimensions with the same name
        must have the same size.  The value None drops this requirement for a name, as in ONNX Runtime: inputs may then
        have different sizes in dimensions of this name.
    inputs
        Names of graph inputs that stay parameters although the model has an initializer for them.  All other inputs
        with an initializer become constants.
    outputs
        Names of the graph outputs to compute, in the order of the result.  Nodes that only other outputs need are not
        imported.  None: all outputs.
    ranks
        The ranks of inputs whose shapes the model does not state, by name.  Most operators need to know the rank.
    weights
        A mapping from names to arrays, or the path of a .safetensors file.  An array replaces the initializer of the
        same name.  If its name is that of an input, the input becomes a constant.

    Returns
    -------
    Module
        A module with one function, `main`.  Its parameters are the graph inputs that have neither an initializer nor a
        weight, and those in `inputs`.  Their names are converted to valid identifiers.  `main` returns the output, or a
        tuple if there are several outputs.  The attributes input_names and output_names are the graph's own names.  The
        attribute output_groups tells which outputs have nodes in common.  If a node contributes to some but not all
        outputs, the attribute contains the indices of these outputs as a tuple.

        A sequence is represented by a list, and an optional value by the value or null.  A map is a tuple of its keys
        and its values.  ZipMap computes a sequence of maps with the same keys.  Such a sequence is represented by a
        tuple of the keys and a matrix with one row for each map.

    Raises
    ------
    RelvmFormatError
        The file is not an ONNX model, or its graph is inconsistent.
    RelvmUnsupportedError
        A node cannot be imported.  The message names the node, the operator and the opset.  Also raised if the model is
        newer than relvm supports, or expands beyond the limits (model_checker.py, model_file.py).
    RelvmMemoryError
        There is not enough memory.
    RelvmTypeError, RelvmShapeError
        A value does not have the type that its node requires or that the model declares.  Also raised if a weight does
        not have the dtype or the shape of the initializer or input that it replaces.
    RelvmNameError
        The model does not have a dimension named in `dims`, an input named in `inputs` or `ranks`, an output named in
        `outputs`, or an initializer or input for a weight.
    RelvmArgumentError
        `model` has none of the supported types, or `outputs` is empty or names an output twice.  Also raised if a value
        in `dims` is not a size, an ordered pair of sizes, or None, or if a value in `ranks` is not a rank or differs
        from the rank that the model states.
    OSError
        The file cannot be read.
    """
    file = read_model_file(model)
    expect_type("dims", dims or {}, Mapping, "a mapping of names to sizes")
    dims = {name: _check_size(name, size) for name, size in (dims or {}).items()}
    inputs = _names("inputs", inputs)
    outputs = None if outputs is None else _names("outputs", outputs)
    expect_type("ranks", ranks, Mapping, "a mapping of names to ranks")
    ranks = {name: _check_rank(name, rank) for name, rank in ranks.items()}
    weights = as_mapping(weights)
    if outputs is not None and len(set(outputs)) != max(1, len(outputs)):
        raise RelvmArgumentError(f"outputs: expected one or more different names, got {list(outputs)}")
    try:
        with resources(file.place):
            file = replace(file, proto=sort_nodes(file.proto))
            model_checker.expect_model(file.proto, file.place)
            names = printed_names(file.proto.graph)
            dims = by_names_in_file(dims, names)
            importer = GraphImporter(
                model_checker.opset_versions(file.proto.opset_import, file.place), dims, file, None
            )
            importer.functions.update(model_checker.functions_by_key(file.proto))
            function = importer.import_main(file.proto.graph, inputs, outputs, weights, ranks)
    except RelvmError:
        raise
    except MALFORMED as error:
        raise RelvmFormatError(f"{file.place}: the model is malformed: {type(error).__name__}: {error}") from error
    unknown = sorted(dims.keys() - importer.dim_names.keys() - importer.hints)
    if unknown:
        raise RelvmNameError(
            f"dims: unknown dimension {unknown[0]}; the model has {', '.join(names.values()) or 'none'}"
            f"{near_matches(unknown[0], names.values())}"
        )
    module = Module((function,), tuple(importer.kernels.items()), attributes=(("source", file.place),))
    if weights:
        replaced = {each.name for each in file.proto.graph.initializer}.difference(inputs)
        return bind_weights(module, {name: weights[name] for name in weights if name not in replaced})
    if not file.is_covered_by_digest:
        return module
    return set_cache_key(module, onnx_cache_key(file.digest, dims, inputs, outputs, ranks))


def _names(parameter: str, names: Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise RelvmArgumentError(f"{parameter}: expected a collection of names, got {names!r}; write [{names!r}]")
    expect_type(parameter, names, Iterable, "a collection of names")
    names = tuple(names)
    for name in names:
        expect_type(parameter, name, str, "names")
    return names


def _check_size(name: str, size: Any) -> int | tuple[int, int] | None:
    """Check the value that a user gives for the dimension `name`: a size, a (minimum, maximum) pair, or None.

    Return the value, with its numbers converted to Python integers.
    """
    if size is None:
        return None
    limits = size if isinstance(size, tuple | list) and len(size) == 2 else (size, size)
    are_integers = all(isinstance(limit, Integral) and not isinstance(limit, bool) for limit in limits)
    if not are_integers or not 0 <= limits[0] <= limits[1]:
        raise RelvmArgumentError(f"dims: {name} is {size!r}, expected a size, a (minimum, maximum) pair, or None")
    low, high = map(int, limits)
    return (low, high) if limits is size else low


def _check_rank(name: str, rank: Any) -> int:
    """Check the value that a user gives for the rank of the input `name`.  Return the value as a Python integer."""
    if not isinstance(rank, Integral) or isinstance(rank, bool) or rank < 0:
        raise RelvmArgumentError(f"ranks: {name} is {rank!r}, expected an integer of at least 0")
    return int(rank)


def _without_operator(message: str) -> str:
    """Remove the name of a relvm operator, such as `average_pool`, from the beginning of an error message.

    The message names the ONNX operator, which the converter may have composed of several operators of relvm.
    """
    name, _, rest = message.partition(": ")
    return rest if rest and name in operators() else message


class GraphImporter(ImportContext):
    """The importer of one graph.  The importer of a subgraph can use the values of the enclosing graph."""

    def import_main(
        self,
        graph: Any,
        overridden: Collection[str] = (),
        selected: Collection[str] | None = None,
        weights: Weights = MappingProxyType({}),
        ranks: Mapping[str, int] = MappingProxyType({}),
    ) -> Function:
        """Import the main graph of a model as the function `main`.

        overridden: the names of inputs that become parameters although they have an initializer.
        selected: the names of the outputs to compute, or None for all.
        weights: arrays that replace initializers, by name.
        ranks: the ranks of inputs without a shape, by name.
        """
        self.expect_names("initializer or input", weights, (*graph.initializer, *graph.input))
        self.expect_names("input", ranks, graph.input)
        self.expect_names("input", overridden, graph.input)
        self.expect_names("output", selected or (), graph.output)
        self.initializers(graph, overridden, weights)
        self.declared = {info.name: info.type for info in (*graph.value_info, *graph.output)}
        params: list[Var] = []
        inputs: list[str] = []
        names: set[str] = set()
        for info in graph.input:
            if info.name in self.values:
                here = f"{self.place}: initializer {shortened(info.name)!r}"
                types.expect_declared(self.values[info.name], info.type, here)
                continue
            name = identifier(info.name, names)
            origins = (f"{self.place}: input {shortened(info.name)!r}",)
            params.append(Var(name, type=types.graph_input_type(self, info, ranks.get(info.name)), origins=origins))
            inputs.append(info.name)
            self.values[info.name] = params[-1]
        outputs = [info.name for info in graph.output] if selected is None else list(selected)
        try:
            if selected is None:
                body = self.import_block(graph)
            else:
                body = self.finish_block(self.import_nodes(needed_nodes(graph, outputs), outputs))
        except Unimported:
            body = None
        expect_no_problems(self.place, self.problems, "nodes")
        assert body is not None
        attributes = (
            ("input_names", tuple(inputs)),
            ("output_names", tuple(outputs)),
            *self.map_outputs(graph, outputs),
            *self.output_groups(graph, outputs),
            *self.size_bounds(),
        )
        return Function("main", tuple(params), body, attributes=attributes)

    def import_nodes(self, nodes: list[Any], names: list[str]) -> list[Value]:
        """Import a list of nodes as bindings.  Return the values with the given names.

        If the rank of a node's outputs depends on a run-time condition, its converter raises RankSplit.  All later
        nodes are then imported twice, into the two branches of an If.
        """
        for at, proto in enumerate(nodes):
            try:
                self.import_node(proto)
            except RankSplit as split:
                return if_.import_into_branches(self, split, list(proto.output), nodes[at + 1 :], names)
        return [self.output_value(name) for name in names]

    def output_value(self, name: str) -> Value:
        """Return the value of the graph output `name`."""
        here = f"{self.place}: output {shortened(name)!r}"
        value = self.lookup(name, here)
        if value is None:
            raise RelvmFormatError(f"{here} is an input of this function that the calling node omits")
        return value

    def size_bounds(self) -> Attributes:
        """Return the function attributes with the bounds of dimensions, or no attributes if no dimension has bounds.

        For example, if n is at least 1 and at most 32: (("lower_bounds", (("n", 1),)), ("upper_bounds", (("n", 32),))).
        """
        ranges = [(key, size) for key, size in self.fixed_dims.items() if isinstance(size, tuple)]
        named = [(var.name, size) for key, size in ranges if (var := as_var(self.dim_names.get(key, 0))) is not None]
        if not named:
            return ()
        limits = zip((LOWER, UPPER), zip(*(size for _, size in named), strict=True), strict=True)
        return tuple((kind, tuple(zip((n for n, _ in named), sizes, strict=True))) for kind, sizes in limits)

    def map_outputs(self, graph: Any, outputs: list[str]) -> Attributes:
        """Return the function attribute map_outputs, or no attributes if it would be empty.

        The attribute lists those names in `outputs` whose outputs are maps or sequences of maps.
        """
        names = tuple(info.name for info in graph.output if types.is_map(info.type) and info.name in outputs)
        return (("map_outputs", names),) if names else ()

    def output_groups(self, graph: Any, outputs: list[str]) -> Attributes:
        """Return the function attribute output_groups, or no attributes if it would be empty.

        For each node, consider the set of outputs that depend on it.  The attribute lists each such set once, as
        indices in `outputs`, without the set of all outputs.
        """
        groups = tuple(group for group in find_output_sets(graph, outputs) if len(group) < len(outputs))
        return (("output_groups", groups),) if groups else ()

    def expect_names(self, kind: str, names: Collection[str], infos: Any) -> None:
        """Raise RelvmNameError if one of `names` is not the name of a message in `infos`.

        kind: what the names denote, such as "input", for the error message.
        infos: protobuf messages with a field `name`, such as the inputs of a graph.
        """
        known = {info.name for info in infos}
        for name in names:
            if name not in known:
                raise RelvmNameError(
                    f"{self.place}: the model has no {kind} {shortened(name)!r}{near_matches(name, known)}"
                )

    def import_node(self, proto: Any) -> None:
        """Import one node: add its bindings to the block, and define the values of its outputs."""
        domain = model_checker.plain_domain(proto.domain)
        opset = self.opsets.get(domain, 0)
        name = proto.name or next(iter(proto.output), "")
        here = self.origin = f"{self.place}: node {shortened(name)!r} ({shortened(proto.op_type)}, opset {opset})"
        self.node_counter.count(1, self.file.place)
        if domain not in self.opsets:
            raise RelvmFormatError(f"{here}: the model imports no opset for domain {shortened(domain) or 'ai.onnx'}")
        try:
            outputs = self.convert_node(proto, opset, here)
            results = outputs if isinstance(outputs, tuple) else (outputs,)
            for name, value in zip(proto.output, results, strict=False):
                if name:
                    is_host = isinstance(value, HostValue)
                    value = value if is_host else self.known_shape(self.emit(value, name))
                    self.values[name] = self.with_simple_sizes(value, _MAX_SIZE_PARTS, _MAX_SIZE_DEPTH)
        except Unimported:
            self.values.update((name, UNIMPORTED) for name in proto.output)
            return
        except RelvmUnsupportedError as error:
            message = str(error)
            if not message.startswith(f"{self.place}: "):
                message = f"{here}: {_without_operator(message)}"
            self.problems[message] = None
            self.values.update((name, UNIMPORTED) for name in proto.output)
            return
        except RelvmError as error:
            if str(error).startswith(f"{self.place}: "):
                raise
            raise type(error)(f"{here}: {_without_operator(str(error))}") from error
        except MALFORMED as error:
            raise RelvmFormatError(f"{here}: the node is malformed: {type(error).__name__}: {error}") from error
        for name in proto.output[: len(results)]:
            if name and name in self.declared:
                types.expect_declared(self.values[name], self.declared[name], f"{here}: output {shortened(name)!r}")
        for name in proto.output[len(results) :]:
            if name:
                self.problems[f"{here}: output {name} is not supported"] = None
                self.values[name] = UNIMPORTED

    def convert_node(self, proto: Any, opset: int, here: str) -> Any:
        """Check a node, convert it, and return the values of its outputs.

        opset: the opset version of the node's domain.   here: the beginning of error messages.
        """
        convert = functions.converter_of(self, proto, opset)
        if convert is None:
            full = shortened(f"{proto.domain}.{proto.op_type}" if proto.domain else proto.op_type)
            raise RelvmUnsupportedError(f"operator {full} is not supported{near_matches(full, supported_operators())}")
        key = model_checker.function_key(proto)
        is_own = key in self.functions
        schema = None if is_own else schema_of(*key[:2], opset)
        if schema:
            node_checker.expect_valid_node(proto, schema)
        inputs = [self.lookup(name, here) if name else None for name in proto.input]
        if schema:
            node_checker.expect_types(inputs, schema)
        node = OnnxNode(self, proto, opset, here, inputs)
        before = len(self.bindings)
        try:
            return self.apply_converter(convert, node, is_own)
        except ComplexDimError:
            del self.bindings[before:]
        inputs = [self.with_simple_sizes(value) for value in inputs]
        self.values.update((name, value) for name, value in zip(proto.input, inputs, strict=True) if name)
        return self.apply_converter(convert, replace(node, inputs=inputs), is_own)

    def apply_converter(self, convert: Converter, node: OnnxNode, is_own: bool) -> Any:
        """Convert a node, and return the values of its outputs.  is_own: whether it calls a function of the model."""
        if is_own:
            return shape_unification.convert_with_unified_sizes(convert, node)
        known = shape_folding.evaluate(node)
        return known if known is not None else qdq_fusion.convert_or_move_bytes(node, convert)
