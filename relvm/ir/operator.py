"""Operators.  A single declaration defines everything about an operator:

    @op("softmax", numpy=..., lower=...)
    def softmax(x: TensorType, *, axis: int = -1) -> TensorType: ...

The decorated function is the type rule: it computes the result type from the types of the arguments.
Positional parameters are the types of the arguments.  A `*xs` parameter receives any number of them.
Keyword-only parameters are the attributes.  An attribute without a default is required.
The docstring is the operator's documentation.
`numpy` is the reference implementation: a function of NumPy arrays and the attributes, in which shapes are tuples of
int.  `moves` declares that each element of the result is an element of an argument, unchanged or converted to another
dtype.  All other operators compute in f32 if an argument is a float narrower than f32.  Their `numpy` need not handle
narrower floats.
`strings` declares that arguments can be tensors of strings.  Operators with `moves` always accept strings.
`traits` are the algebraic properties that the rules of `canonicalize` use.
`lower` describes the operator's kernel (relvm/kernels/lowering_rules.py).
Elementwise operators with a common type rule are rows of a table instead (relvm/ops/elementwise.py).
"""

from __future__ import annotations

import contextvars
import enum
import functools
import importlib
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from relvm.data_classes import dataclass, value_record
from relvm.errors import RelvmArgumentError, RelvmNameError, RelvmShapeError, RelvmTypeError, near_matches
from relvm.ir.dtypes import ALL_DTYPES, STR, DType
from relvm.ir.expr import Attributes, Expr, OpCall, constant
from relvm.ir.symbolic import AnyDim, dim_op, is_never_negative
from relvm.ir.types import TensorType, TupleType, Type, type_vars
from relvm.tables import DTYPES


class Effect(enum.Enum):
    """Whether an operator has side effects.

    Passes do not remove or reorder calls of an IMPURE operator.
    """

    PURE = "pure"
    IMPURE = "impure"


@value_record
class SizeClaim:
    """A relation between two sizes that must hold at run time, because an operator or a model requires it.

    Attributes
    ----------
    relation
        "equal" for the claim `left == right`, or "at_most" for `left <= right`.
    left, right
        The sizes: numbers, or expressions of symbolic dimensions.
    message
        The error message, in which the first `{}` stands for the value of `left`, and the second for that of `right`.
    """

    relation: str
    left: AnyDim
    right: AnyDim
    message: str

    def truth_value(self) -> bool | None:
        """Return True if the claim (a relation between two sizes) is proven, False if it is disproved, and None if
        neither is the case.

        If the result is None, the claim must be checked at run time.
        """
        slack = dim_op("sub", self.right, self.left)
        if isinstance(slack, int):
            return slack == 0 if self.relation == "equal" else slack >= 0
        return True if self.relation == "at_most" and is_never_negative(slack) else None

    def needs_check(self) -> bool:
        """Return whether the claim (a relation between two sizes) must be checked at run time, because it is not
        proven.  Raise RelvmShapeError if it is disproved."""
        holds = self.truth_value()
        if holds is False:
            raise RelvmShapeError(self.message.format(self.left, self.right))
        return holds is None

    def check(self, left: int, right: int) -> None:
        """Raise RelvmShapeError if the claim does not hold for the sizes `left` and `right`."""
        if not (left == right if self.relation == "equal" else left <= right):
            raise RelvmShapeError(self.message.format(left, right))


def shape_claims(dims: Sequence[AnyDim]) -> list[SizeClaim]:
    """Return the size claims that every dimension in `dims` is at least 0.  Omit proven claims.

    dims: the dimensions of a shape value.

    Raises
    ------
    RelvmShapeError
        A dimension is negative for every value of the variables.
    """
    message = "dimension {} of a shape must be at least {{}}, got {{}}"
    claims = (SizeClaim("at_most", 0, dim, message.format(axis)) for axis, dim in enumerate(dims))
    return [claim for claim in claims if claim.needs_check()]


@value_record
class _Claims:
    """The size claims (relations between sizes) that a type rule has made so far, in order.

    nonnegative_dims: dimensions of the result that cannot be negative if the claims hold.
    """

    claims: dict[SizeClaim, None] = field(default_factory=dict)
    nonnegative_dims: set[AnyDim] = field(default_factory=set)


_claims: contextvars.ContextVar[_Claims | None] = contextvars.ContextVar("claims", default=None)


def claim_equal(left: AnyDim, right: AnyDim, message: str) -> None:
    """State that the sizes `left` and `right` must be equal.  Type rules call this function.

    If the equality cannot be decided at compile time, the sizes are compared at run time.

    message: the error message, in which the first `{}` stands for the value of `left`, and the second for that of
    `right`.

    Raises
    ------
    RelvmShapeError
        The sizes differ, whatever values their dimension variables have.
    """
    _claim(SizeClaim("equal", left, right, message))


def claim_at_most(left: AnyDim, right: AnyDim, message: str) -> None:
    """State that the dimension `left` must be at most the dimension `right`.  Type rules call this function.

    If the relation cannot be decided at compile time, the program checks it at run time.

    message: the error message, in which the first `{}` stands for the value of `left`, and the second for that of
    `right`.

    Raises
    ------
    RelvmShapeError
        `left` is provably larger than `right`, whatever the values of the dimension variables.
    """
    _claim(SizeClaim("at_most", left, right, message))


def _claim(claim: SizeClaim) -> None:
    found = _claims.get()
    if claim.needs_check() and found is not None:
        found.claims[claim] = None


def assume_nonnegative(dim: AnyDim) -> AnyDim:
    """Declare that `dim` is at least 0 if all claims made so far hold.  Return `dim`.  Type rules call this function.

    `Operator.claims` then does not claim that `dim` is at least 0.  Nothing verifies the declaration.
    """
    found = _claims.get()
    if found is not None:
        found.nonnegative_dims.add(dim)
    return dim


@value_record
class Traits:
    """Algebraic properties of an elementwise operator f, which the rules of `canonicalize` use.

    commutative
        Whether f(x, y) == f(y, x).
    neutral
        A function from a dtype to the neutral element: the number e with f(x, e) == x.  It is None if f has no neutral
        element.
    involution
        Whether f(f(x)) == x.
    idempotent
        Whether f(f(x)) == f(x).
    """

    commutative: bool = False
    neutral: Callable[[DType], float] | None = None
    involution: bool = False
    idempotent: bool = False


@dataclass(frozen=True, eq=False)
class Operator:
    """An operator.  Use `op` to create one.  The docstring of `op` describes the fields.

    A call of an Operator object with expressions and attributes returns an OpCall.
    """

    name: str
    type_rule: Callable[..., Type]
    effect: Effect
    numpy: Callable[..., Any]
    lower: Any
    moves: bool
    strings: bool
    traits: Traits

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[[str, str], Operator], tuple[str, str]]:
        return _unpickle_operator, (self.type_rule.__module__, self.name)

    @property
    def doc(self) -> str:
        """The documentation of the operator: the docstring of its type rule, the function that computes the result
        type."""
        return inspect.getdoc(self.type_rule) or ""

    @functools.cached_property
    def parameters(self) -> tuple[inspect.Parameter, ...]:
        """The parameters of the operator for arguments, not for attributes.

        They are parameters of the type rule, the function that computes the result type.
        """
        return tuple(p for p in self.signature.parameters.values() if p.kind is not inspect.Parameter.KEYWORD_ONLY)

    @property
    def attributes(self) -> tuple[inspect.Parameter, ...]:
        """The parameters of the type rule that stand for attributes, which calls pass by keyword."""
        return tuple(p for p in self.signature.parameters.values() if p.kind is inspect.Parameter.KEYWORD_ONLY)

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        """The signature of the type rule without annotations: the arguments, then the attributes as keyword-only
        parameters."""
        parameters = inspect.signature(self.type_rule).parameters.values()
        return inspect.Signature([parameter.replace(annotation=parameter.empty) for parameter in parameters])

    def bind(self, args: tuple, attributes: dict[str, Any]) -> Attributes:
        """Return the attributes of a call with these `args` and `attributes`, including defaults.

        Raises
        ------
        RelvmArgumentError
            The number of arguments is wrong, an attribute is unknown, or a required one is missing.
        """
        try:
            bound = self.signature.bind(*args, **attributes)
        except TypeError as error:
            unknown = [name for name in attributes if name not in self.signature.parameters]
            near = near_matches(unknown[0], [parameter.name for parameter in self.attributes]) if unknown else ""
            raise RelvmArgumentError(f"{self.name}{self.signature}: {error}{near}") from None
        for parameter in self.parameters:
            if parameter.name in attributes:
                raise RelvmArgumentError(
                    f"{self.name}{self.signature}: {parameter.name} is an argument; pass it by position, not by name"
                )
        bound.apply_defaults()
        return tuple((p.name, _hashable(bound.arguments[p.name])) for p in self.attributes)

    def infer(self, arg_types: tuple[Type, ...], attributes: Attributes) -> Type:
        """Return the result type of a call with `arg_types` and `attributes`.

        Raise RelvmTypeError or RelvmShapeError if the operator does not accept them.
        """
        if _claims.get() is not None:  # called by another type rule, which collects the claims
            return self._infer(arg_types, attributes)
        return self._infer_cached(arg_types, attributes)[0]

    def claims(self, arg_types: tuple[Type, ...], attributes: Attributes) -> tuple[SizeClaim, ...]:
        """Return the size claims (relations between sizes) that a call with `arg_types` and `attributes` requires.
        Omit proven claims.

        Every claim must hold when the call runs, because the kernel relies on it.  The claims include that no dimension
        of the result is negative.
        """
        result, inferred = self._infer_cached(arg_types, attributes)
        found = _Claims(dict(inferred.claims), set(inferred.nonnegative_dims))
        token = _claims.set(found)
        try:
            for tensor in result.fields if isinstance(result, TupleType) else (result,):
                for axis, dim in enumerate(tensor.shape or () if isinstance(tensor, TensorType) else ()):
                    if dim not in found.nonnegative_dims:
                        message = f"{self.name}: dimension {axis} of the result must be at least {{}}, got {{}}"
                        claim_at_most(0, dim, message)
        finally:
            _claims.reset(token)
        return tuple(found.claims)

    def _infer_cached(self, arg_types: tuple[Type, ...], attributes: Attributes) -> tuple[Type, _Claims]:
        """Infer the result type of a call with `arg_types` and `attributes`.  Return it with the size claims of the
        type rule.

        The result is cached, because the type of each call is inferred several times.  A result type with a new
        dimension variable is not cached, because two calls must not share the variable.
        """
        # 1 and True are equal, but a type rule can accept one of them and reject the other.
        key = (self, arg_types, attributes, _value_types(attributes))
        known = _inferred.get(key)
        if known is None:
            found = _Claims()
            token = _claims.set(found)
            try:
                known = self._infer(arg_types, attributes), found
            finally:
                _claims.reset(token)
            given = {var for type_ in arg_types for var in type_vars(type_)}
            if given.issuperset(type_vars(known[0])):
                if len(_inferred) >= _MAX_INFERRED:
                    _inferred.clear()
                _inferred[key] = known
        return known

    def _infer(self, arg_types: tuple[Type, ...], attributes: Attributes) -> Type:
        for parameter, type_ in zip(self._argument_names(len(arg_types)), arg_types, strict=True):
            dtype = type_.dtype if isinstance(type_, TensorType) else None
            if dtype == STR:
                expect(self.strings, "{}: {} is {}; strings are not supported", self.name, parameter, type_)
            elif dtype is not None and not self.moves:
                takes = dtype.is_bool or dtype.is_arithmetic
                expect(
                    takes,
                    "{}: {} has dtype {}, which does not support arithmetic; cast it first",
                    self.name,
                    parameter,
                    dtype,
                )
        return self.type_rule(*arg_types, **dict(attributes))

    def _argument_names(self, count: int) -> list[str]:
        names = [parameter.name for parameter in self.parameters]
        return names[:count] + names[-1:] * (count - len(names))

    def __call__(self, *args: Expr | float | np.ndarray, **attributes: Any) -> OpCall:
        """Return a call of this operator with `args` and `attributes`.  A number or an array becomes a constant.

        The call has a type if all arguments have types.
        """
        args = with_constants(self.name, args)
        bound = self.bind(args, attributes)
        types = tuple(arg.type for arg in args if arg.type is not None)
        if len(types) < len(args):
            return OpCall(self, args, bound)
        return OpCall(self, args, bound, type=self.infer(types, bound))


_MAX_INFERRED = 4096
_inferred: dict[tuple, tuple[Type, _Claims]] = {}  # key: operator, types of arguments and attributes


def clear_type_cache() -> None:
    """Clear the cache of inferred types of operator calls, whose entries are useful only within one build."""
    _inferred.clear()


def _value_types(attributes: Attributes) -> tuple:
    return tuple(tuple(map(type, value)) if isinstance(value, tuple) else type(value) for _, value in attributes)


_operators: dict[str, Operator] = {}
_NO_TRAITS = Traits()


def _computed_in_f32(numpy: Callable[..., Any]) -> Callable[..., Any]:
    """Extend `numpy`, a reference implementation, to floats narrower than f32.

    The returned function converts arguments of a narrow dtype to f32, calls `numpy`, and rounds its f32 results to the
    narrow dtype.
    """

    @functools.wraps(numpy)
    def wide(*args: Any, **attributes: Any) -> Any:
        narrow = next((arg.dtype for arg in args if _is_narrow(arg)), None)
        if narrow is None:
            return numpy(*args, **attributes)
        result = numpy(*(arg.astype(np.float32) if _is_narrow(arg) else arg for arg in args), **attributes)
        return tuple(rounded(part, narrow) for part in result) if isinstance(result, tuple) else rounded(result, narrow)

    def rounded(result: Any, narrow: np.dtype) -> Any:
        is_wide = isinstance(result, np.ndarray | np.generic) and result.dtype == np.float32
        return result.astype(narrow) if is_wide else result

    return wide


def _is_narrow(arg: Any) -> bool:
    return isinstance(arg, np.ndarray) and arg.dtype.name in _NARROW


_NARROW = frozenset(row.numpy for row in DTYPES if ALL_DTYPES[row.name].is_narrow_float)


def dtype_of_numbers(dtypes: Iterable[DType | None]) -> DType | None:
    """Return the dtype that the numbers among the arguments of an operator get.

    This is the first known dtype of a tensor other than bool, or else bool.  If no dtype is known, return None.

    dtypes: the dtypes of the tensors among the arguments.  None stands for an unknown dtype.
    """
    known = [dtype for dtype in dtypes if dtype is not None]
    return next((dtype for dtype in known if not dtype.is_bool), known[0] if known else None)


def with_constants(name: str, args: tuple[Any, ...]) -> tuple[Expr, ...]:
    """Return `args` with numbers and arrays converted to constants.

    An array keeps its dtype.  A number gets the dtype of the first tensor in `args` whose dtype is not bool.

    name: the operator, for messages.

    Raises
    ------
    RelvmTypeError
        An argument is neither an expression nor a number or array.  The error is also raised for a number if no
        argument is a tensor of known dtype, or if this dtype cannot represent the number.
    """
    args = tuple(_plain_constant(arg) for arg in args)
    tensors = (arg.type for arg in args if isinstance(arg, Expr) and isinstance(arg.type, TensorType))
    dtype = dtype_of_numbers(type_.dtype for type_ in tensors)
    converted = []
    for i, arg in enumerate(args):
        if not isinstance(arg, Expr):
            is_number = isinstance(arg, bool | int | float)
            expect(is_number, "{}: argument {} is {!r}, expected an expression, a number or an array", name, i, arg)
            if dtype is None:
                raise RelvmTypeError(
                    f"{name}: argument {i} is {arg!r}, but its dtype is unknown:"
                    " expected another argument to be a tensor of known dtype"
                )
            is_exact = dtype.is_float or arg == np.asarray(arg).astype(dtype.numpy)
            expect(is_exact, "{}: argument {} is {!r}, which {} cannot represent", name, i, arg, dtype)
            arg = constant(arg, dtype)
        converted.append(arg)
    return tuple(converted)


def _plain_constant(arg: Any) -> Any:
    """Convert an array to a constant, and a scalar of NumPy to a Python number.  Return any other value unchanged."""
    match arg:
        case np.ndarray():
            return constant(arg)
        case np.generic():
            return arg.item()
    return arg


def op(
    name: str,
    *,
    numpy: Callable[..., Any],
    lower: Any,
    effect: Effect = Effect.PURE,
    moves: bool = False,
    strings: bool = False,
    traits: Traits = _NO_TRAITS,
) -> Callable[..., Operator]:
    """Return a decorator that declares an operator.  The decorated function is the type rule, and its docstring is the
    documentation.

    Parameters
    ----------
    name
        The name in programs.
    numpy
        The reference implementation: a function of arrays and the attributes.
    lower
        The lowering to a kernel: one of the forms of relvm/kernels/lowering_rules.py.
    effect
        Whether calls have side effects.  Calls without side effects may be removed, merged and moved.
    moves
        Whether the operator only moves or converts elements: each element of the result is an element of an argument,
        unchanged or converted to another dtype.  Transposition is an example.
    strings
        Whether the operator accepts tensors of strings.  An operator with `moves` always accepts tensors of strings.
    traits
        The algebraic properties of an elementwise operator.
    """

    def declare(type_rule: Callable[..., Type]) -> Operator:
        assert name not in _operators, f"operator {name} is declared twice"
        meaning = np.errstate(all="ignore")(numpy if moves else _computed_in_f32(numpy))
        _operators[name] = Operator(name, type_rule, effect, meaning, lower, moves, moves or strings, traits)
        return _operators[name]

    return declare


def operators() -> dict[str, Operator]:
    """Return every declared operator by name.  Importing relvm.ops declares them all."""
    return _operators


def _unpickle_operator(module: str, name: str) -> Operator:
    """Import `module`, the Python module that declares the operator `name`, and return the operator."""
    importlib.import_module(module)
    return find_operator(name)


def find_operator(name: str) -> Operator:
    """Return the operator named `name`.  Raise RelvmNameError with similar names if there is none."""
    if name not in _operators:
        raise RelvmNameError(f"no operator {name}{similar_names(name, _operators)}")
    return _operators[name]


# Names of operators in NumPy, PyTorch and ONNX that are not similar to those of relvm.
_OTHER_NAMES = {
    "average": "mean",
    "bmm": "matmul",
    "cat": "concat",
    "concatenate": "concat",
    "conv1d": "conv",
    "conv2d": "conv",
    "div": "divide",
    "dot": "matmul",
    "eq": "equal",
    "ge": "greater_equal",
    "gt": "greater",
    "index_select": "gather",
    "invert": "logical_not",
    "le": "less_equal",
    "linear": "matmul",
    "logistic": "sigmoid",
    "lt": "less",
    "max_pool2d": "max_pool",
    "mm": "matmul",
    "mod": "modulo",
    "mul": "multiply",
    "ne": "not_equal",
    "neg": "negative",
    "permute": "transpose",
    "pow": "power",
    "range": "iota",
    "arange": "iota",
    "select": "where",
    "sub": "subtract",
    "take": "gather",
    "topk": "argtopk",
    "top_k": "argtopk",
    "unsqueeze": "expand_dims",
    "view": "reshape",
}


def similar_names(name: str, known: Iterable[str]) -> str:
    """Return the suggestion of `near_matches`, or the operator for which `name` stands in another library."""
    plain = name.lower().replace("reduce", "").strip("_")
    other = _OTHER_NAMES.get(plain, plain)
    return f"; did you mean {other}?" if other in _operators else near_matches(name, known)


def expect(condition: bool, message: str, *values: Any, error: type[Exception] = RelvmTypeError) -> None:
    """Raise `error` with the message `message.format(*values)` if the condition does not hold."""
    if not condition:
        raise error(message.format(*values))


def _hashable(value: Any) -> Any:
    return tuple(_hashable(part) for part in value) if isinstance(value, list | tuple) else value
