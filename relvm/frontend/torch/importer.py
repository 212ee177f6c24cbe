"""Import of an exported program as a module.

A converter (relvm/frontend/torch/ops/) turns each node into operator calls.  Parameters, buffers and constants become
constants of the module.  Symbolic sizes become dimension variables.
"""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import relvm.ops as ops
from relvm.data_classes import dataclass
from relvm.errors import (
    RelvmError,
    RelvmFormatError,
    RelvmNameError,
    RelvmShapeError,
    RelvmTypeError,
    RelvmUnsupportedError,
    counted,
    known_names,
    resources,
    shortened,
)
from relvm.frontend.common.problems import expect_no_problems
from relvm.frontend.torch.aliases import TensorValue, new_tensor, view_of, write
from relvm.frontend.torch.complex_numbers import complex_converter, has_complex_numbers, is_complex_tensor
from relvm.frontend.torch.context import ImportContext
from relvm.frontend.torch.element_types import dtype_of_scalar_type
from relvm.frontend.torch.guards import claim_of_guard, shown_guard, value_of_guard
from relvm.frontend.torch.program import Argument, Graph, GraphNode, Program, expect_fields, expect_union
from relvm.frontend.torch.read_program import read_program
from relvm.frontend.torch.registry import (
    Converter,
    Node,
    UnknownSizeError,
    accepted_arguments,
    converter_for,
    import_converters,
    overloads_of,
    reason_for_refusal,
    required_arguments,
    safe_name,
    supported_operators,
    tensor_names,
    view_kind,
)
from relvm.frontend.torch.scalar_values import ScalarValue, call_function
from relvm.frontend.torch.size_expressions import Call, as_size, parse_expression, symbols_of
from relvm.frontend.torch.sizes import SizeContext, identifier, seems_one
from relvm.frontend.weights import Weights, as_constant, read_weights
from relvm.ir.dtypes import BOOL, I64
from relvm.ir.expr import Constant, DimValue, Expr, Module, Prim, PrimCall, Shape, Tuple, constant, prim
from relvm.ir.symbolic import AnyDim, Dim, as_var, dim_vars
from relvm.ir.types import PrimType, TensorType, Type

import_converters()

# Exceptions that a converter raises for a malformed node.
_MALFORMED = (
    *(ArithmeticError, AssertionError, AttributeError, IndexError, KeyError, StopIteration, TypeError, ValueError),
)
_IGNORED = frozenset(("device", "layout", "pin_memory", "memory_format", "non_blocking", "copy", "requires_grad"))
_SAME_AXES = frozenset(("alias_", "detach_"))  # operators in place that return a view of all elements
_SCALARS = {"as_sym_int": "sym_ints", "as_sym_bool": "sym_bools", "as_sym_float": "sym_floats"}


class _Unimported(Exception):
    """Raised when a node has an argument that could not be imported."""


def from_pt2(
    model: str | os.PathLike[str] | bytes,
    *,
    dims: Mapping[str, Any] | None = None,
    weights: Weights | str | os.PathLike[str] | None = None,
    name: str = "model",
) -> Module:
    """Import an exported program of PyTorch, a `.pt2` file.  PyTorch is not needed.

    Parameters
    ----------
    model
        The path of a file that torch.export.save wrote, or its contents.
    dims
        Sizes of symbolic dimensions, by the names of the symbols in the program, such as `s77`.
    weights
        A mapping from names to arrays, or the path of a .safetensors file.  The arrays replace parameters, buffers and
        constants of the program, by their names in the PyTorch module, such as `layers.0.weight`.
    name
        The name of the program in messages, if `model` is not a path.

    Returns
    -------
    Module
        A module with the function `main`.  Its parameters are the inputs of the program that are tensors or symbolic
        integers, in flat order.  Its results are the outputs in flat order, then the new values of the buffers and
        inputs that the program changes, in the order of the signature.

    Raises
    ------
    OSError
        The file cannot be read.
    RelvmFormatError
        The file is damaged, or is not an exported program.
    RelvmUnsupportedError
        relvm does not support some operators or weights.  The message lists up to 100 of them.
    RelvmArgumentError
        The program does not have a symbol in `dims`, or a value is not a size or outside the range of its symbol.
    RelvmNameError, RelvmTypeError, RelvmShapeError
        A weight does not exist in the program, or has another type; or the types of a node do not fit together.

    Notes
    -----
    Source: torch/_export/serde/schema.py, version 8, of PyTorch 2.14.
    """
    place = str(model) if isinstance(model, str | os.PathLike) else name
    with resources("from_pt2"):
        with _malformed_at(place):
            program = read_program(model, name)
        return import_program(with_weights(program, weights), dims)


def with_weights(program: Program, weights: Weights | str | os.PathLike[str] | None) -> Program:
    """Return a program with some tensors replaced.   The arguments and errors are those of `from_pt2`."""
    if weights is None:
        return program
    found = read_weights(weights) if isinstance(weights, str | os.PathLike) else weights
    tensors = dict(program.tensors)
    for name, array in found.items():
        if name not in tensors and name not in program.refused:
            raise RelvmNameError(f"{program.place}: weights: no tensor {shortened(name)}{known_names(name, tensors)}")
        if name in tensors and array.dtype != tensors[name].dtype:
            raise RelvmTypeError(f"weights: {name} has dtype {array.dtype}, expected {tensors[name].dtype}")
        if name in tensors and array.shape != tensors[name].shape:
            raise RelvmShapeError(f"weights: {name} has shape {array.shape}, expected {tensors[name].shape}")
        tensors[name] = array
    return replace(program, tensors=tensors, refused={k: v for k, v in program.refused.items() if k not in found})


def import_program(
    program: Program,
    dims: Mapping[str, Any] | None = None,
    known_size: Callable[[str], int | None] | None = None,
) -> Module:
    """Import a program that a reader has read.

    dims and the errors: as for `from_pt2`.
    known_size: a function that returns the value of a symbol, or None.  It is called if the program can only be
        imported for a certain value of the symbol.  The module is then only valid for this value.
    """
    fixed = dict(dims or {})
    with _malformed_at(program.place):
        while True:
            importer = Importer(program, fixed)
            try:
                return importer.module()
            except RelvmUnsupportedError:
                found = {symbol: known_size(symbol) for symbol in importer.unknown_symbols} if known_size else {}
                found = {symbol: size for symbol, size in found.items() if size is not None and symbol not in fixed}
                if not found:
                    raise
                fixed |= found


@contextmanager
def _malformed_at(place: str) -> Iterator[None]:
    """Convert the exceptions that a malformed program causes to RelvmFormatError."""
    try:
        yield
    except RelvmError:
        raise
    except _MALFORMED as error:
        raise RelvmFormatError(f"{place}: malformed: {type(error).__name__}: {error}") from error


@dataclass
class _Scope:
    """The values of a graph.

    values: the values by name, or None for one that could not be imported.
    last_uses: the position of the last node that uses each name.
    """

    values: dict[str, Any]
    last_uses: dict[str, int]


class Importer(SizeContext):
    """The import of one program."""

    def __init__(self, program: Program, dims: Mapping[str, Any]) -> None:
        super().__init__(program, dims)
        self._scope = _Scope({}, {})
        self._position = 0
        self._constants: dict[str, Constant] = {}
        self._storage_offsets: set[str] = set()  # the symbols for the positions of views in memory
        self.unknown_symbols: dict[str, None] = {}  # those whose values operators must know

    # ---- the function ----

    def module(self) -> Module:
        """Return the module of the program."""
        program = self.program
        self.builder.place = self.stored(program.place)
        graph, scope = program.graph, _Scope({}, _last_uses(program.graph))
        params, constants, inputs = self._inputs(graph)
        self.expect_known_dims()
        attributes = self.bounds()
        with self.builder.function("main", params) as variables:
            self.bind_symbols()
            self._check_guards(graph)
            for name, variable in zip(inputs, variables, strict=True):
                is_size = isinstance(variable.type, PrimType)
                tensor = variable if is_size else self.with_expressions(graph, name, variable)
                scope.values[name] = self._size_of(graph, name) if is_size else new_tensor(tensor)
            scope.values.update((name, value and new_tensor(value)) for name, value in constants.items())
            for name, value in scope.values.items():
                if isinstance(value, TensorValue):  # its new elements are a result, if the program changes it
                    value.storage.names.append(name)
                    scope.last_uses[name] = len(graph.nodes)
            results: list[Expr] = []
            done = False
            try:
                results = [each for each in self._results(graph, scope) if each is not None]
                done = True
            except _Unimported:
                pass
            if not done or self.problems:
                expect_no_problems(program.place, self.problems, "nodes")
                raise RelvmFormatError(f"{program.place}: a result of the program does not exist")
            self.builder.ret(results[0] if len(results) == 1 else Tuple(tuple(results)))
        module = self.builder.module()
        return _with_attributes(
            module, (("input_names", tuple(inputs)), ("output_names", tuple(self._result_names)), *attributes)
        )

    def _inputs(self, graph: Graph) -> tuple[list[tuple[str, Type]], dict[str, Expr | None], list[str]]:
        """Return the parameters, the constants by name, and the names of the inputs that are parameters."""
        place = self.program.place
        params: list[tuple[str, Type]] = []
        constants: dict[str, Expr | None] = {}
        inputs: list[str] = []
        used = _used_names(graph)
        sizes = {
            self.new_symbol(size)
            for name in map(_name_of, graph.inputs)
            for size in graph.tensors.get(name or "", {}).get("sizes") or ()
        } - {""}
        for spec in self.program.input_specs:
            ((kind, content),) = spec.items()
            if kind == "user_input":
                kind, argument = expect_union(f"{place}: an input", content.get("arg"))
                if kind == "as_tensor":
                    (name,) = expect_fields(f"{place}: an input", argument, name=str)
                    params.append((identifier(name), self._parameter_type(graph, name)))
                    inputs.append(name)
                elif kind == "as_sym_int" and isinstance(argument, dict) and isinstance(argument.get("as_name"), str):
                    name = argument["as_name"]
                    size = graph.sym_ints[name]
                    is_size = self.new_symbol(size) in sizes
                    dim = self.parameter_dim(size, name, signed=not is_size)
                    params.append((identifier(name), PrimType(I64, dim)))
                    inputs.append(name)
                elif kind in ("as_sym_bool", "as_sym_float", "as_custom_obj", "as_tensors"):
                    self.problems[f"{place}: an input of the kind {kind} is not supported"] = None
                continue
            if kind in ("parameter", "buffer", "tensor_constant"):
                (argument,) = expect_fields(f"{place}: an input", content, arg=dict)
                (name,) = expect_fields(f"{place}: an input", argument, name=str)
                (path,) = expect_fields(f"{place}: an input", content, **{f"{kind}_name": str})
                if name in used:
                    constants[name] = self._weight(path)
            elif kind == "custom_obj":
                self.problems[f"{place}: objects of the class {_class_of(content)} are not supported"] = None
            elif kind == "token":
                (argument,) = expect_fields(f"{place}: an input", content, arg=dict)
                (name,) = expect_fields(f"{place}: an input", argument, name=str)
                constants[name] = constant(np.zeros(0, np.float32))
        return params, constants, inputs

    def _check_guards(self, graph: Graph) -> None:
        """Check the conditions under which PyTorch traced the program."""

        def size_of(name: str, axis: int) -> AnyDim | None:
            sizes = graph.tensors.get(name, {}).get("sizes") or ()
            return self.declared_dim(sizes[axis]) if 0 <= axis < len(sizes) else None

        for guard in self.program.guards:
            claim = claim_of_guard(guard, size_of)
            message = f"the program was exported for sizes with {shortened(shown_guard(guard))}"
            if claim is not None:
                text = message.replace("{", "{{").replace("}", "}}")
                self.require(*claim, f"{text}; got {{}} and {{}}")
                continue
            value = value_of_guard(guard, size_of, lambda name, values: call_function(self, name, values))
            if value is not None and not isinstance(value, Prim):
                self.require_true(value, message)

    def _weight(self, path: str) -> Expr | None:
        """Return a parameter, buffer or constant of the program, or None if it cannot be read."""
        if path not in self._constants:
            array = self.program.tensors.get(path)
            if array is None:
                reason = self.program.refused.get(path, f"the file contains no tensor {shortened(path)}")
                self.problems[f"{self.program.place}: {reason}"] = None
                return None
            if array.dtype.kind == "c":  # both parts in the last axis
                array = np.ascontiguousarray(array).view(array.real.dtype).reshape(*array.shape, 2)
            self._constants[path] = as_constant(array, f"{self.program.place}: {shortened(path)}")
        return self._constants[path]

    def _parameter_type(self, graph: Graph, name: str) -> TensorType:
        meta = graph.tensors[name]
        dims = [self.parameter_dim(size, f"{name}_dim{axis}") for axis, size in enumerate(meta.get("sizes") or ())]
        dims += [2] if is_complex_tensor(graph, name) else []
        return TensorType(dtype_of_scalar_type(meta.get("dtype")), tuple(dims))

    def _results(self, graph: Graph, scope: _Scope) -> list[Expr | None]:
        """Import the main graph.  Return the outputs, and then the new values of changed buffers and inputs."""
        before = {name: value for name, value in scope.values.items() if isinstance(value, TensorValue)}
        self._run_nodes(graph, scope)
        paths = self.program.output_paths
        specs = [next(iter(spec.items())) for spec in self.program.output_specs]
        specs.sort(key=lambda spec: spec[0] not in ("user_output", "loss_output"))
        users = [content for kind, content in specs if kind in ("user_output", "loss_output")]
        if paths is None or len(paths) != len(users):
            paths = tuple("" for _ in users)
        results: list[Expr | None] = []
        self._result_names: list[str] = []
        position = 0
        changed: dict[str, None] = {}
        for kind, content in specs:
            argument = content.get("arg")
            if kind in ("user_output", "loss_output"):
                argument = argument if kind == "user_output" else {"as_tensor": argument}
                value = self._output(argument, graph, scope)
                name = paths[position] or _name_of(argument) or f"output_{position}"
                position += 1
            elif kind in ("buffer_mutation", "user_input_mutation", "parameter_mutation"):
                value = self._output({"as_tensor": argument}, graph, scope)
                key = {"buffer_mutation": "buffer_name", "parameter_mutation": "parameter_name"}.get(
                    kind, "user_input_name"
                )
                name = str(content.get(key))
                changed[name] = None
            elif kind == "token":
                continue
            else:
                self.problems[f"{self.program.place}: an output of the kind {kind} is not supported"] = None
                continue
            if value is not None:
                results.append(value)
                self._result_names.append(name if name not in self._result_names else f"{name}_{len(results)}")
        for spec in self.program.input_specs:  # tensors that operators changed in place
            ((kind, content),) = spec.items()
            argument = content.get("arg") or {}
            name = (_name_of(argument) or "") if kind == "user_input" else str(argument.get("name"))
            tensor = before.get(name)
            shown = str(content.get(f"{kind}_name", name))
            if tensor is not None and tensor.storage.version and shown not in changed:
                results.append(tensor.current())
                self._result_names.append(shown if shown not in self._result_names else f"{shown}_new")
        return results

    def _output(self, argument: Any, graph: Graph, scope: _Scope) -> Expr | None:
        """Return an output of the program, or None for an output that is None."""
        kind, content = expect_union(f"{self.program.place}: an output", argument)
        if kind in ("as_none", "as_string"):
            return None
        with self._in_scope(scope, graph):
            value = self._value({kind: content}, scope)
        return _as_output(self, value)

    # ---- graphs and nodes ----

    def run_graph(self, graph: Graph, args: Sequence[Any]) -> list[Any]:
        scope = _Scope({}, _last_uses(graph))
        if len(args) != len(graph.inputs):
            raise RelvmFormatError(
                f"a graph has {counted(len(graph.inputs), 'input')}, got {counted(len(args), 'argument')}"
            )
        before = self.sizes
        self.sizes = ChainMap({}, before)  # symbols of the graph have no value outside
        try:
            tensors = []
            for argument, value in zip(graph.inputs, args, strict=True):
                (kind,) = argument
                name = _name_of(argument)
                if name is None:
                    continue
                if isinstance(value, Expr) and kind == "as_tensor":
                    value = self._checked(graph, name, value)
                    scope.values[name] = new_tensor(value)
                    scope.values[name].storage.names.append(name)
                    tensors.append(scope.values[name])
                else:
                    self._bind_scalar(graph, kind, name, value)
                    scope.values[name] = value
            self._run_nodes(graph, scope)
            if any(tensor.storage.version for tensor in tensors):
                raise RelvmUnsupportedError(
                    "a graph that changes its inputs in place is not supported; export the module with"
                    " run_decompositions()"
                )
            with self._in_scope(scope, graph):
                return [self._value(output, scope) for output in graph.outputs]
        finally:
            self.sizes = before

    def _bind_scalar(self, graph: Graph, kind: str, name: str, value: Any) -> None:
        """Assign a value to the symbol in the expression of a scalar, if the symbol has none.

        The expression of an integer is a symbol u, and that of a bool is u == 1.
        """
        described = {"as_sym_int": graph.sym_ints, "as_sym_bool": graph.sym_bools}.get(kind, {})
        content = described.get(name, {}).get("as_expr")
        if not isinstance(content, dict):
            return
        match parse_expression(content["expr_str"]):
            case Call("Symbol", (str() as symbol, *_)) if isinstance(value, int | Dim):
                self.sizes.setdefault(symbol, value)
            case Call("Equality", (Call("Symbol", (str() as symbol, *_)), Call("One", ()) | Call("Integer", (1,)))) if (
                isinstance(value, Expr) and value.type == PrimType(BOOL) and symbol not in self.sizes
            ):
                dim = self.new_dim("u", signed=True)
                self.builder.match_cast(self.emit(PrimCall("i64", (value,))), PrimType(I64, dim))
                self.sizes[symbol] = dim

    @contextmanager
    def _in_scope(self, scope: _Scope, graph: Graph) -> Iterator[None]:
        outer, self._scope = self._scope, scope
        try:
            yield
        finally:
            self._scope = outer

    def _run_nodes(self, graph: Graph, scope: _Scope) -> None:
        with self._in_scope(scope, graph):
            outer = self._position
            for position, node in enumerate(graph.nodes):
                self._position = position
                self._import_node(node, graph, scope)
            self._position = outer

    def _import_node(self, node: GraphNode, graph: Graph, scope: _Scope) -> None:
        target, place, line, here = _target(node), self.program.place, node.source_line(), self._description(node)
        before = self.builder.place, self.node, self.here
        self.builder.place, self.node, self.here = line or self.stored(here), node, here
        try:
            if not self._import_scalar(node, graph, scope, target):
                self._convert(node, graph, scope, target)
        except _Unimported:
            self._record_refusals(node)
            scope.values.update((name, None) for output in node.outputs for name in _output_names(output))
        except RelvmUnsupportedError as error:
            if isinstance(error, UnknownSizeError):
                needed = set(dim_vars(error.size))
                self.unknown_symbols.update((name, None) for name, dim in self.sizes.items() if as_var(dim) in needed)
            self.problems[_with_place(str(error), here, place)] = None
            scope.values.update((name, None) for output in node.outputs for name in _output_names(output))
        except RelvmError as error:
            if str(error).startswith(place):
                raise
            raise type(error)(_with_place(str(error), here, place)) from error
        except _MALFORMED as error:
            raise RelvmFormatError(f"{here}: malformed: {type(error).__name__}: {error}") from error
        finally:
            self.builder.place, self.node, self.here = before

    def _description(self, node: GraphNode) -> str:
        """Return the place and the name of a node, for messages."""
        line = node.source_line().removesuffix(":1")
        where = ", ".join(filter(None, (line, node.module and f"module {node.module}")))
        name = shortened(node.name) or "a node"
        return f"{self.program.place}: {name} ({shortened(_target(node))}{f', {where}' if where else ''})"

    def _record_refusals(self, node: GraphNode) -> None:
        """Record which nodes in the graphs that a node runs are not supported whatever their operands are."""
        waiting = [node]
        while waiting:
            for graph in (argument["as_graph"][1] for _, argument in waiting.pop().inputs if "as_graph" in argument):
                for each in graph.nodes:
                    waiting.append(each)
                    if _computes_scalars(each, _target(each)):
                        continue
                    try:
                        self._converter(graph, each, _target(each))
                    except RelvmUnsupportedError as error:
                        self.problems[_with_place(str(error), self._description(each), self.program.place)] = None

    def _import_scalar(self, node: GraphNode, graph: Graph, scope: _Scope, target: str) -> bool:
        """If a node computes only symbolic integers, bools and floats, define its results.  Return whether it does."""
        if not _computes_scalars(node, target):
            return False
        for name in (name for _, argument in node.inputs for name in _argument_names(argument)):
            if name in scope.values and scope.values[name] is None:
                raise _Unimported  # its symbols have no value
        for output in node.outputs:
            ((kind, content),) = output.items()
            name = content["as_name"]
            value = scope.values[name] = self._scalar(graph, kind, name)
            if target == "aten.sym_storage_offset.default" and isinstance(value, ScalarValue):
                self._storage_offsets.update(symbols_of(value.call))
        return True

    def _scalar(self, graph: Graph, kind: str, name: str) -> Any:
        """Return the value of a symbolic integer, bool or float: a size if possible, otherwise a ScalarValue."""
        described = getattr(graph, _SCALARS[kind])[name]
        key, content = expect_union(f"{self.program.place}: {shortened(name)}", described)
        if key != "as_expr":
            return content
        (text,) = expect_fields(f"{self.program.place}: {shortened(name)}", content, expr_str=str)
        call = parse_expression(text)
        if kind == "as_sym_int":
            try:
                return self.short_size(as_size(call, self.sizes))
            except (KeyError, RelvmUnsupportedError):
                pass
        return ScalarValue(kind, call)

    def _size_of(self, graph: Graph, name: str) -> Any:
        return self._scalar(graph, "as_sym_int", name)

    def _convert(self, node: GraphNode, graph: Graph, scope: _Scope, target: str) -> None:
        convert, functional, outputs = self._converter(graph, node, target)
        accepted = _accepted(convert)
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for key, argument in node.inputs:
            if key in outputs or (key in _IGNORED and (accepted is None or key not in accepted)):
                continue
            value = self._value(argument, scope)
            if not key:
                positional.append(value)
            elif accepted is not None and safe_name(key) not in accepted:
                raise RelvmUnsupportedError(f"the argument {shortened(key)} is not supported")
            else:
                named[safe_name(key)] = value

        def define(positional: Iterable[Any], named: Mapping[str, Any]) -> None:
            result = convert(Node(self, graph, node), *positional, **named)
            results = result if isinstance(result, tuple) else (result,)
            if functional is not None:
                keys = outputs or (node.inputs[0][0],)
                changed = [name for key, argument in node.inputs if key in keys for name in tensor_names(argument)]
                self._update_in_place(node, scope, changed, results, self._store if outputs else self.mutate)
            else:
                self._define(node, graph, scope, target, results)

        unified: dict[AnyDim, AnyDim] = {}  # a size of the arguments -> the size that replaces it
        for left in range(len(_symbolic_sizes((*positional, *named.values()))), -1, -1):
            args = [self._with_sizes(value, unified) for value in positional]
            keywords = {key: self._with_sizes(value, unified) for key, value in named.items()}
            try:
                return define(args, keywords)
            except RelvmShapeError as error:
                if error.unproven is None or not left:
                    raise
                first, second = error.unproven
                unified = _unified(first, second, unified, _symbolic_sizes((*args, *keywords.values())))
                if not unified:
                    raise

    def _converter(self, graph: Graph, node: GraphNode, target: str) -> tuple[Converter, str | None, tuple[str, ...]]:
        """Return the converter of a node, the functional operator that replaces its target, and its `out` arguments.

        Raises
        ------
        RelvmUnsupportedError
            relvm does not support the operator, whatever its operands are.
        """
        convert, functional = _find_converter(target)
        outputs: tuple[str, ...] = ()
        if convert is None:
            functional, outputs = _functional_overload(target, node)
            convert = converter_for(functional) if functional else None
        if convert is None or has_complex_numbers(graph, node):
            convert = complex_converter(functional or target, convert)
        if convert is None:
            reason = reason_for_refusal(target)
            called = [str(argument["as_operator"]) for _, argument in node.inputs if "as_operator" in argument]
            if reason and called:  # an operator that calls another one
                reason = f"{shortened(called[0].removeprefix('torch.ops.'))}: {reason}"
            raise RelvmUnsupportedError(reason or self._unknown_operator(target))
        return convert, functional, outputs

    def _unknown_operator(self, target: str) -> str:
        """Return the message about an operator that has no converter and no reason why it is refused."""
        namespace = target.partition(".")[0]
        if target.startswith("torch._functorch."):
            return "transformations of torch.func are not supported; export with run_decompositions()"
        if not any(name.startswith(f"{namespace}.") for name in supported_operators()):
            reason = "custom operators are not supported"
            return f"{reason}; replace this one of {shortened(namespace)} by operators of PyTorch"
        hint = "" if self.program.is_decomposed else "; if PyTorch decomposes it, export with run_decompositions()"
        return f"the operator is not supported{hint}"

    def _with_sizes(self, value: Any, sizes: Mapping[AnyDim, AnyDim]) -> Any:
        """Return an argument with sizes replaced by sizes that are equal at run time, which is checked then."""
        if not sizes:
            return value
        if isinstance(value, tuple):
            return tuple(self._with_sizes(each, sizes) for each in value)
        if isinstance(value, Dim) and value in sizes:
            self.require("equal", value, sizes[value], "two sizes are {} and {}, but must be equal")
            return sizes[value]
        if not isinstance(value, Expr) or not isinstance(value.type, TensorType) or value.type.shape is None:
            return value
        return self.with_shape(value, [sizes.get(dim, dim) for dim in value.type.shape])

    def _update_in_place(
        self,
        node: GraphNode,
        scope: _Scope,
        changed: list[str],
        results: tuple[Any, ...],
        store: Callable[[str, Expr], None],
    ) -> None:
        """Store the results of a node in tensors, whose names are `changed`.   store: stores one of them."""
        names = [name for output in node.outputs for name in tensor_names(output)]
        if len(changed) > len(results):
            raise RelvmUnsupportedError(f"result {len(results)} is not supported")
        for name, value in zip(changed, results, strict=False):
            store(name, value)
        for name, source in zip(names, changed, strict=False):
            tensor = scope.values[source]
            tensor.storage.names.append(name)
            scope.values[name] = tensor

    def _store(self, name: str, value: Expr) -> None:
        """Store a result in a tensor, which must have its shape.  A tensor without elements gets the shape."""
        value, tensor = self.emit(value), self._scope.values[name]
        shape, stored = value.tensor_type.known_shape, tensor.current().tensor_type.known_shape
        if _may_be_equal(shape, stored):
            self.mutate(name, self.with_shape(value, stored))
        elif 0 in stored and not tensor.views and len(tensor.storage.names) == 1:
            write(self, tensor, self.cast(value, tensor.value.tensor_type.known_dtype))
        else:
            raise RelvmUnsupportedError(
                f"a result of shape {list(shape)} that is stored in {shortened(name)}, which has shape {list(stored)},"
                " is not supported"
            )

    def base_of(self, name: str) -> tuple[Expr, str]:
        storage = self._scope.values[name].storage
        return storage.base, storage.names[0]

    def mutate(self, name: str, value: Expr) -> None:
        scope = self._scope
        tensor = scope.values[name]
        others = (each for storage in tensor.storage.group if storage is not tensor.storage for each in storage.names)
        for other in others:
            if scope.last_uses.get(other, -1) > self._position:
                raise RelvmUnsupportedError(
                    f"{shortened(other)} may share the memory of {shortened(name)}, which is changed in place; export"
                    " the module with run_decompositions()"
                )
        type_ = tensor.current().tensor_type
        value = self.cast(self.emit(value), type_.known_dtype)
        shape = type_.shape
        if shape is not None and value.tensor_type.shape != shape:
            value = self.emit(ops.broadcast_to(value, Shape(shape)))
        write(self, tensor, value)

    def _define(self, node: GraphNode, graph: Graph, scope: _Scope, target: str, results: tuple[Any, ...]) -> None:
        """Define the results of a node."""
        outputs = [(kind, name) for output in node.outputs for kind, name in _flat_outputs(output)]
        if any(kind != "as_none" for kind, _ in outputs[len(results) :]):
            raise RelvmUnsupportedError(f"result {len(results)} is not supported")
        kind_of_view = view_kind(target)
        for (kind, name), value in zip(outputs, results, strict=False):
            if kind == "as_tensor" and value is None:
                if name in scope.last_uses:
                    raise RelvmUnsupportedError(f"the result {shortened(name)} is not supported")
                scope.values[name] = None
            elif kind == "as_tensor":
                tensor = self._tensor(node, graph, scope, name, value, kind_of_view)
                tensor.storage.names.append(name)
                scope.values[name] = tensor
            elif kind in _SCALARS:
                scope.values[name] = value
                self._bind_scalar(graph, kind, name, value)

    def _tensor(self, node: GraphNode, graph: Graph, scope: _Scope, name: str, value: Expr, view: str) -> TensorValue:
        source_names = tensor_names(node.inputs[0][1]) if view and node.inputs else []
        source = scope.values.get(source_names[0]) if len(source_names) == 1 else None
        checked = self._checked(graph, name, value)
        if view == "view" and isinstance(source, TensorValue):
            index = [n for output in node.outputs for _, n in _flat_outputs(output)].index(name)
            return view_of(source, self._again(node, graph, scope, index), checked)
        tensor = new_tensor(checked)
        if view == "maybe":
            for each in (name for _, argument in node.inputs for name in tensor_names(argument)):
                if isinstance(found := scope.values.get(each), TensorValue):
                    tensor.storage.may_share(found.storage)
        return tensor

    def _again(self, node: GraphNode, graph: Graph, scope: _Scope, index: int) -> Callable[[Expr], Expr]:
        """Return a function that applies the view operator of a node to a tensor other than the node's argument."""
        target = node.target.removeprefix("torch.ops.")
        convert = converter_for(target)
        if has_complex_numbers(graph, node):
            convert = complex_converter(target, convert)
        assert convert is not None
        named = {
            safe_name(key): self._value(argument, scope) for key, argument in node.inputs[1:] if key not in _IGNORED
        }
        call = Node(self, graph, node)

        def view(x: Expr) -> Expr:
            result = convert(call, self.emit(x), **named)
            return self.emit(result[index] if isinstance(result, tuple) else result)

        return view

    def _checked(self, graph: Graph, name: str, value: Expr) -> Expr:
        """Return `value` as the tensor `name`, with the declared dtype and shape.

        Symbols that occur for the first time get their values.  A size that is not known is checked at run time.

        Raises
        ------
        RelvmTypeError
            The types contradict each other.
        """
        value = self.emit(value, identifier(name))
        type_ = value.type
        if not isinstance(type_, TensorType):
            raise RelvmTypeError(f"the result is {type_}, expected a tensor")
        meta = graph.tensors[name]
        value = self.cast(value, dtype_of_scalar_type(meta.get("dtype")))
        sizes = [*(meta.get("sizes") or ()), *([{"as_int": 2}] if is_complex_tensor(graph, name) else [])]
        if type_.rank is not None and len(sizes) != type_.rank:
            raise RelvmTypeError(f"the result is declared with {counted(len(sizes), 'axis')}, but has type {type_}")
        actual = type_.shape or (None,) * len(sizes)
        shape: list[AnyDim] = []
        for axis, (size, dim) in enumerate(zip(sizes, actual, strict=True)):
            expected = self.declared_dim(size)
            if expected is None:
                symbol = self.new_symbol(size)
                if dim is None:
                    dim = self.new_dim(identifier(symbol or f"{name}_dim{axis}"))
                if symbol:
                    self.sizes[symbol] = dim
                expected = dim
            if isinstance(dim, int) and isinstance(expected, int) and dim != expected:
                raise RelvmTypeError(
                    f"the result is declared with the size {expected} in axis {axis}, but has type {type_}"
                )
            shape.append(dim if isinstance(dim, int) else expected)
        return self.with_shape(value, shape)

    # ---- arguments ----

    def _value(self, argument: Argument, scope: _Scope) -> Any:
        """Return the value of an argument."""
        ((kind, content),) = argument.items()
        match kind:
            case "as_none":
                return None
            case "as_tensor":
                return self._lookup(content["name"], scope)
            case "as_tensors":
                return tuple(self._lookup(each["name"], scope) for each in content)
            case "as_optional_tensor":
                return self._optional(content, scope)
            case "as_optional_tensors":
                return tuple(self._optional(each, scope) for each in content)
            case "as_nested_tensors":
                return tuple(tuple(self._lookup(each["name"], scope) for each in row) for row in content)
            case "as_int" | "as_bool" | "as_string":
                return content
            case "as_float":
                return float(content)
            case "as_floats":
                return tuple(map(float, content))
            case "as_ints" | "as_bools" | "as_strings" | "as_int_lists" | "as_float_lists":
                return tuple(content)
            case "as_sym_int" | "as_sym_bool" | "as_sym_float":
                return self._scalar_argument(content, scope)
            case "as_sym_ints" | "as_sym_bools" | "as_sym_floats":
                return tuple(self._scalar_argument(each, scope) for each in content)
            case "as_scalar_type":
                return dtype_of_scalar_type(content)
            case "as_graph":
                return content[1]
            case "as_device":
                return content.get("type")
            case "as_memory_format" | "as_layout":
                return content
            case "as_string_to_argument":
                return {name: self._value(each, scope) for name, each in content.items()}
            case "as_complex":
                return complex(content["real"], content["imag"])
            case "as_operator":
                return str(content)
        raise RelvmUnsupportedError(f"an argument of the kind {shortened(kind)} is not supported")

    def _optional(self, content: Any, scope: _Scope) -> Expr | None:
        kind, inner = expect_union("an argument", content)
        return self._lookup(inner["name"], scope) if kind == "as_tensor" else None

    def _scalar_argument(self, content: Any, scope: _Scope) -> Any:
        kind, inner = expect_union("an argument", content)
        if kind != "as_name":
            return float(inner) if kind == "as_float" else inner
        if inner not in scope.values:
            raise RelvmFormatError(f"no value is named {shortened(inner)}")
        value = scope.values[inner]
        if value is None:
            raise _Unimported
        if not isinstance(value, ScalarValue):
            return value
        is_asserted = self.node is not None and self.node.target.endswith("._assert_scalar.default")
        if is_asserted and not self._storage_offsets.isdisjoint(symbols_of(value.call)):
            return True  # PyTorch asserts that positions of views in memory, which relvm does not have, are valid
        return self.computed_size(value) if value.kind == "as_sym_int" else value.compute(self)

    def _lookup(self, name: str, scope: _Scope) -> Expr:
        if name not in scope.values:
            raise RelvmFormatError(f"no value is named {shortened(name)}")
        value = scope.values[name]
        if value is None:
            raise _Unimported
        return value.current() if isinstance(value, TensorValue) else value


def _target(node: GraphNode) -> str:
    return node.target.removeprefix("torch.ops.")


def _computes_scalars(node: GraphNode, target: str) -> bool:
    """Return whether a node without a converter computes only symbolic integers, bools and floats."""
    has_results = node.outputs and converter_for(target) is None
    return bool(has_results) and all(kind in _SCALARS for output in node.outputs for kind in output)


def _symbolic_sizes(values: Iterable[Any]) -> set[AnyDim]:
    """Return the symbolic sizes among arguments, and those of tensors among them.  Arguments can be tuples."""
    found: set[AnyDim] = set()
    for value in values:
        if isinstance(value, tuple):
            found |= _symbolic_sizes(value)
        elif isinstance(value, Dim):
            found.add(value)
        elif isinstance(value, Expr) and isinstance(value.type, TensorType):
            found.update(dim for dim in value.type.shape or () if not isinstance(dim, int))
    return found


def _unified(
    first: AnyDim, second: AnyDim, unified: Mapping[AnyDim, AnyDim], sizes: set[AnyDim]
) -> dict[AnyDim, AnyDim]:
    """Return replacements of sizes that make `first` and `second` equal, or that broadcast one of them.

    PyTorch proved from ranges and guards that both are equal, or that one of them is 1.  Which case it is follows from
    a few values.  Return an empty dict if neither is a size of an argument.

    unified: the replacements so far.
    sizes: the symbolic sizes of the arguments after these replacements.
    """
    one = next((dim for dim in (first, second) if dim in sizes and seems_one(dim)), None)
    old, new = (one, 1) if one is not None else (second, first) if second in sizes else (first, second)
    if old not in sizes:
        return {}
    return {size: new if value == old else value for size, value in unified.items()} | {old: new}


def _may_be_equal(first: Sequence[AnyDim], second: Sequence[AnyDim]) -> bool:
    """Return whether two shapes have the same rank, and no known size of one differs from that of the other."""
    pairs = zip(first, second, strict=False)
    return len(first) == len(second) and all(
        a == b or not isinstance(a, int) or not isinstance(b, int) for a, b in pairs
    )


@cache
def _accepted(convert: Converter) -> frozenset[str] | None:
    return accepted_arguments(convert)


def _find_converter(target: str) -> tuple[Converter | None, str | None]:
    """Return the converter of an operator.

    For an operator that changes its first argument in place, return the converter of the operator that returns the new
    elements, and the name of that operator.  Otherwise, the second item is None.
    """
    convert = converter_for(target)
    if convert is not None:
        return convert, None
    parts = target.split(".")
    if len(parts) == 3 and parts[1].endswith("_") and not parts[1].endswith("__"):
        functional = f"{parts[0]}.{parts[1][:-1]}.{parts[2]}"
        if view_kind(functional) and parts[1] not in _SAME_AXES:
            raise RelvmUnsupportedError("a change of the axes of a tensor in place is not supported")
        return converter_for(functional), functional
    if len(parts) == 3 and parts[1].endswith("_copy"):  # a view that is copied
        viewed = f"{parts[0]}.{parts[1].removesuffix('_copy')}.{parts[2]}"
        return (converter_for(viewed) if view_kind(viewed) else None), None
    return None, None


_RESULT_OVERLOADS = frozenset(("values", "values_stable", "dim_max", "dim_min", "dim_values"))


def _functional_overload(target: str, node: GraphNode) -> tuple[str | None, tuple[str, ...]]:
    """Return the operator that an overload with arguments for its results computes, and the names of these arguments.

    For `add.out`, this is `add.Tensor` and the argument `out`.  It is the overload of the operator that accepts all
    other arguments, preferably one with which the name of this overload begins, as that of `max.dim_max` with `dim`.
    Return (None, ()) if there is none.
    """
    operator, _, overload = target.rpartition(".")
    if "out" not in overload.split("_") and overload not in _RESULT_OVERLOADS:
        return None, ()
    keys = [key for key, _ in node.inputs]
    count = len(node.outputs)
    given = {safe_name(key) for key in keys[:-count]}
    names = overloads_of(operator)
    for name in sorted(names, key=lambda name: not overload.startswith(name.rpartition(".")[2])):
        convert = converter_for(name)
        if convert is None or not required_arguments(convert) <= given:
            continue
        accepted = _accepted(convert)
        if accepted is not None and given - _IGNORED <= accepted:
            return name, tuple(keys[-count:])
    return None, ()


def _flat_outputs(output: Argument) -> list[tuple[str, str]]:
    """Return the kind and the name of each value that an output consists of."""
    ((kind, content),) = output.items()
    if kind in _SCALARS:
        return [(kind, content["as_name"])] if "as_name" in content else []
    if kind == "as_none":
        return [(kind, "")]
    return [("as_tensor", name) for name in tensor_names(output)]


def _output_names(output: Argument) -> list[str]:
    return [name for kind, name in _flat_outputs(output) if kind != "as_none"]


def _name_of(argument: Argument) -> str | None:
    ((kind, content),) = argument.items()
    if kind == "as_tensor":
        return content["name"]
    return content.get("as_name") if kind in _SCALARS else None


def _argument_names(argument: Argument) -> Iterable[str]:
    ((kind, content),) = argument.items()
    if kind in _SCALARS:
        return [content["as_name"]] if "as_name" in content else []
    if kind == "as_string_to_argument":
        return [name for each in content.values() for name in _argument_names(each)]
    return tensor_names(argument)


def _last_uses(graph: Graph) -> dict[str, int]:
    found: dict[str, int] = {}
    for position, node in enumerate(graph.nodes):
        for _, argument in node.inputs:
            found.update((name, position) for name in _argument_names(argument))
    for output in graph.outputs:
        found.update((name, len(graph.nodes)) for name in _argument_names(output))
    return found


def _used_names(graph: Graph) -> set[str]:
    return set(_last_uses(graph))


def _class_of(content: Any) -> str:
    argument = content.get("arg")
    return shortened(str(argument.get("class_fqn"))) if isinstance(argument, dict) else "unknown"


def _with_place(message: str, here: str, place: str) -> str:
    return message if message.startswith(place) else f"{here}: {message}"


def _as_output(importer: ImportContext, value: Any) -> Expr:
    """Return an output as an expression: a number becomes a scalar."""
    match value:
        case Expr():
            return value
        case Dim():
            return importer.builder.emit(DimValue(value))
        case bool() | int() | float():
            return prim(value)
    raise RelvmUnsupportedError(
        f"{importer.program.place}: an output of the type {type(value).__name__} is not supported"
    )


def _with_attributes(module: Module, attributes: tuple[tuple[str, Any], ...]) -> Module:
    """Return a module whose function `main` has attributes."""
    functions = tuple(
        replace(function, attributes=attributes) if function.name == "main" else function
        for function in module.functions
    )
    return replace(module, functions=functions)
