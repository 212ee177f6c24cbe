"""The registry of converters, and the node that a converter receives."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

import relvm.ops as relvm_ops
from relvm.data_classes import value_record
from relvm.errors import RelvmFormatError, RelvmUnsupportedError, counted
from relvm.frontend.common.node_context import NodeContext
from relvm.frontend.torch import ops
from relvm.frontend.torch.context import ImportContext
from relvm.frontend.torch.element_types import dtype_of_scalar_type, is_complex
from relvm.frontend.torch.program import Argument, Graph, GraphNode
from relvm.frontend.torch.promotion import promoted_dtype
from relvm.ir.dtypes import BOOL, F32, F64, I64, DType
from relvm.ir.expr import Constant, DimValue, Expr, constant
from relvm.ir.symbolic import AnyDim, Dim, exact_quotient
from relvm.ir.types import PrimType

Converter = Callable[..., Any]
Number = bool | int | float | Dim

_converters: dict[str, Converter] = {}
_refused: dict[str, str] = {}
_views: dict[str, bool] = {}
_complex: dict[str, Converter] = {}
_by_parts: dict[str, Collection[str]] = {}


def converts(*names: str, view: bool = False, may_view: bool = False) -> Callable[[Converter], Converter]:
    """Return a decorator that registers a function as the converter of operators.

    A converter takes a node and the arguments of the operator, by the names of the operator's schema.  It returns the
    value of the result, or a tuple of values.  A result is converted to the declared dtype if its dtype differs.

    names: the names of the operators, such as `add.Tensor`.  The overload is `default` if a name has none, and the
    namespace is `aten` if a name has only these two parts.
    view: whether the result shares the memory of the first argument in PyTorch.
    may_view: whether the result may share this memory, depending on the strides of the argument.
    """

    def declare(function: Converter) -> Converter:
        for name in map(full_name, names):
            assert name not in _converters, f"{name} has two converters"
            _converters[name] = function
            if view or may_view:
                _views[name] = view
        return function

    return declare


def converts_complex(*names: str, view: bool = False) -> Callable[[Converter], Converter]:
    """Return a decorator that registers the converter of operators for complex arguments or results.

    Each complex argument is a ComplexTensor, and so is each complex result.   names, view: as for `converts`.
    """

    def declare(function: Converter) -> Converter:
        for name in map(full_name, names):
            assert name not in _complex, f"{name} has two converters of complex numbers"
            _complex[name] = function
            if view:
                _views[name] = view
        return function

    return declare


def converts_by_parts(*names: str, values: Collection[str] = ()) -> None:
    """Declare that operators do the same with the real and the imaginary part of complex tensors.

    values: the names of the arguments whose imaginary part is 0 if they are real.   names: as for `converts`.
    """
    _by_parts.update((full_name(name), values) for name in names)


def complex_converter_for(name: str) -> tuple[Converter | None, Collection[str] | None]:
    """Return the converter of an operator for complex numbers, or None, and then `values` of `converts_by_parts`.

    The second item is None if the operator does not do the same with both parts.
    """
    return _complex.get(name), _by_parts.get(name)


def refuses(reason: str, *names: str) -> None:
    """Register the reason why operators are not supported.   names: as for `converts`."""
    _refused.update((full_name(name), reason) for name in names)


def full_name(name: str) -> str:
    """Return the name of an operator with its namespace and overload, such as `aten.add.Tensor`."""
    if name.startswith("higher_order."):
        return name
    parts = name.split(".")
    if len(parts) == 1:
        parts.append("default")
    return ".".join(parts if len(parts) == 3 else ("aten", *parts))


def import_converters() -> None:
    """Import every module of relvm.frontend.torch.ops, so that all converters are registered."""
    for module in pkgutil.iter_modules(ops.__path__, f"{ops.__name__}."):
        importlib.import_module(module.name)


def converter_for(name: str) -> Converter | None:
    """Return the converter that is registered for an operator, or None."""
    return _converters.get(name)


def overloads_of(operator: str) -> list[str]:
    """Return the names of the supported overloads of an operator, such as `aten.add`."""
    return sorted(name for name in _converters if name.rpartition(".")[0] == operator)


def view_kind(name: str) -> str:
    """Return "view" if an operator returns a view of its first argument, "maybe" if strides decide, and "" if not."""
    return {True: "view", False: "maybe", None: ""}[_views.get(name)]


def reason_for_refusal(name: str) -> str:
    """Return why an operator is not supported, or "" if no reason is stated.

    A reason that is stated for another overload of the operator also holds for this one.
    """
    if name in _refused or name.startswith("higher_order."):
        return _refused.get(name, "")
    operator = name.rpartition(".")[0]
    return next((reason for other, reason in _refused.items() if other.rpartition(".")[0] == operator), "")


def supported_operators() -> list[str]:
    """Return the names of the supported operators."""
    return sorted(_converters.keys() | _complex.keys())


def refused_operators() -> dict[str, str]:
    """Return the names of operators that are refused, with the reasons."""
    return dict(sorted(_refused.items()))


def accepted_arguments(convert: Converter) -> frozenset[str] | None:
    """Return the names of the arguments that a converter accepts, or None if it accepts any."""
    parameters = inspect.signature(convert).parameters.values()
    if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters):
        return None
    return frozenset(each.name for each in parameters)


def required_arguments(convert: Converter) -> frozenset[str]:
    """Return the names of the arguments of an operator that its converter needs."""
    _, *parameters = inspect.signature(convert).parameters.values()
    return frozenset(each.name for each in parameters if each.default is each.empty)


@value_record
class Node(NodeContext):
    """An operator call that is being converted.

    importer: the importer, to which the converter adds bindings.
    graph: the graph that contains the node.
    node: the node.
    """

    importer: ImportContext
    graph: Graph
    node: GraphNode

    # ---- declared results ----

    def output_names(self) -> list[str]:
        """Return the names of the results that are tensors.  A list of tensors counts as several results."""
        return [name for output in self.node.outputs for name in tensor_names(output)]

    def out_dtype(self, index: int = 0) -> DType:
        """Return the dtype of a result, or of the parts of a complex one, as the program states it."""
        names = self.output_names()
        if index >= len(names):
            raise RelvmFormatError(f"the node has {counted(len(names), 'result')}, expected at least {index + 1}")
        return dtype_of_scalar_type(self.graph.tensors[names[index]].get("dtype"))

    def out_shape(self, index: int = 0) -> tuple[AnyDim, ...]:
        """Return the shape of a result, as the program states it.

        Raises
        ------
        RelvmUnsupportedError
            A size is not known.
        """
        shape = self.importer.declared_shape(self.graph, self.output_names()[index])
        known = tuple(dim for dim in shape if dim is not None)
        if len(known) != len(shape):
            raise RelvmUnsupportedError("a size of the result is known only when the operator has run")
        return known

    def has_complex_result(self) -> bool:
        """Return whether the first result is complex."""
        return is_complex(self.graph.tensors[self.output_names()[0]].get("dtype"))

    def update(self, parameter: str, value: Expr) -> None:
        """Replace the elements of a tensor argument by `value`, as the operator does in place."""
        for name, argument in self.node.inputs:
            if name == parameter:
                names = tensor_names(argument)
                if names:
                    self.importer.mutate(names[0], value)

    def arguments(self) -> dict[str, Argument]:
        return dict(self.node.inputs)

    # ---- expressions ----

    def cast(self, x: Expr, dtype: DType) -> Expr:
        """Return x converted to a dtype.  Return x itself if it has this dtype."""
        return self.importer.cast(x, dtype)

    def wide(self, x: Expr) -> Expr:
        """Return x, converted to f32 if it is a narrower float: operators of several steps compute in f32."""
        return self.cast(x, F32) if x.known_element_type.is_narrow_float else x

    def full(self, value: Number, shape: Sequence[AnyDim], dtype: DType) -> Expr:
        """Return a tensor whose elements are all equal to a number."""
        return self.broadcast(self.number(value, dtype), shape)

    def number(self, value: Any, dtype: DType) -> Expr:
        """Return `value` as a tensor of dtype `dtype`.  A number, size or scalar becomes a tensor of rank 0."""
        if isinstance(value, Dim):
            value = DimValue(value)
        if isinstance(value, Expr):
            if isinstance(value.type, PrimType):
                own = {BOOL: BOOL, I64: I64}.get(value.type.dtype, F64)
                value = self.emit(relvm_ops.to_tensor(value, dtype=own.name))
            return self.cast(value, dtype)
        if dtype.is_integer and isinstance(value, int) and not dtype.limits[0] <= value <= dtype.limits[1]:
            value = int(np.array(value & ((1 << dtype.bits) - 1), f"u{dtype.size_bytes}").astype(dtype.numpy))
        return constant(np.asarray(value).astype(dtype.numpy))

    def promoted(self, *values: Any) -> list[Expr]:
        """Return tensors and numbers as tensors of the dtype to which PyTorch promotes them."""
        dtype = promoted_dtype(values)
        return [self.number(value, dtype) for value in values]

    def kernel_name(self, stem: str) -> str:
        return self.importer.unique_name(stem)

    def exact_quotient(self, dim: AnyDim, divisor: AnyDim, what: str) -> AnyDim:
        """Return `dim / divisor`, and check that there is no remainder.   what: a description for the message."""
        exact = exact_quotient(dim, divisor)
        if exact is None:
            if isinstance(dim, int) and isinstance(divisor, int):
                raise RelvmFormatError(f"{what} is {dim}, expected a multiple of {divisor}")
            exact = dim // divisor
            self.importer.require("equal", dim, exact * divisor, f"{what} is {{}}, expected a multiple such as {{}}")
        return exact


def shape_of(x: Expr) -> tuple[AnyDim, ...]:
    """Return the shape of a tensor, whose rank must be known."""
    return x.tensor_type.known_shape


def safe_name(key: str) -> str:
    """Return the name of the converter's parameter for `key`: a keyword of Python, such as `from`, gets a final _."""
    return f"{key}_" if key in ("from", "lambda", "import") else key


def axis_of(axis: int, rank: int) -> int:
    """Return an axis, which counts from the end if negative, as a non-negative number.

    As in PyTorch, a tensor of rank 0 accepts the axis 0.

    Raise RelvmFormatError if the axis is out of range.
    """
    rank = max(rank, 1)
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise RelvmFormatError(f"the axis {axis} is outside [-{rank}, {rank})")
    return axis % rank


def axes_of(axes: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Return axes as sorted indices in [0, rank).  None and an empty list stand for all axes."""
    if axes is None or (not isinstance(axes, int) and not axes):
        return tuple(range(rank))
    axes = (axes,) if isinstance(axes, int) else axes
    return tuple(sorted({axis_of(axis, rank) for axis in axes}))


def tensor_names(argument: Argument) -> list[str]:
    """Return the names of the tensors in an argument."""
    ((kind, content),) = argument.items()
    match kind:
        case "as_tensor":
            return [content["name"]]
        case "as_tensors":
            return [each["name"] for each in content]
        case "as_optional_tensor":
            return tensor_names({"as_tensor": content["as_tensor"]}) if content.get("as_tensor") else []
        case "as_optional_tensors":
            return [each["as_tensor"]["name"] for each in content if each.get("as_tensor")]
    return []


class UnknownSizeError(RelvmUnsupportedError):
    """A size must be known when the program is imported.

    size: the size, which is symbolic.
    """

    def __init__(self, message: str, size: Dim) -> None:
        super().__init__(message)
        self.size = size


def known_int(value: Any, what: str) -> int:
    """Return `value`, a size, as an integer.

    Raise RelvmUnsupportedError if it is not known when the program is imported, UnknownSizeError if it is symbolic.

    what: a description of the size for the message.
    """
    message = f"{what} must be a number that is known when the program is imported"
    if isinstance(value, Dim):
        raise UnknownSizeError(message, value)
    if isinstance(value, Constant) or not isinstance(value, int):
        raise RelvmUnsupportedError(message)
    return value
