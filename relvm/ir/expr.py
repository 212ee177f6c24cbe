"""The whole IR: expressions, bindings, functions, modules.

Every expression has a `type`; it is None only before type inference (stage PARSED).  A block is flat: a tuple of
bindings and a result, so no walk recurses along the length of a program.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from relvm.errors import RelvmArithmeticError, RelvmTypeError
from relvm.ir.dtypes import BOOL, F64, I64, DType, dtype_of
from relvm.ir.node import Node, node
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import OBJECT, VOID, FuncType, OptionalType, PrimType, ShapeType, TensorType, TupleType, Type
from relvm.numpy_dtypes import plain_array, plain_bytes

if TYPE_CHECKING:
    from relvm.ir.operator import Operator

Attributes = tuple[tuple[str, Any], ...]  # (name, hashable value), in declaration order, defaults filled in


def _typed(default: Type | None = None):
    return field(default=default, kw_only=True, metadata={"derived": True})


def _origins():
    """Several of these, in order."""
    return field(default=(), kw_only=True, metadata={"derived": True})


def _origin():
    """`file:line:column` of a text, or the node of a model; empty where nothing of the source says it."""
    return field(default="", kw_only=True, metadata={"derived": True})


class Expr(Node):
    """Base of every expression.

    Python's arithmetic on expressions with types gives expressions: of operators on tensors, of scalar arithmetic on
    scalars.  A Python number beside one is a constant of its dtype.
    """

    # None before type inference (`infer_types`), which the annotation leaves out: only the front ends, type inference,
    # the printer and the verifier meet expressions without types.
    type: Type

    @property
    def tensor_type(self) -> TensorType:
        """The type, which must be a tensor's."""
        if not isinstance(self.type, TensorType):
            raise RelvmTypeError(f"{type(self).__name__} of type {self.type}, expected a tensor")
        return self.type

    @property
    def element_type(self) -> DType | None:
        """The dtype of a tensor or a scalar; None where a tensor's is not known."""
        if not isinstance(self.type, TensorType | PrimType):
            raise RelvmTypeError(f"{type(self).__name__} of type {self.type}, expected a tensor or a scalar")
        return self.type.dtype

    @property
    def known_element_type(self) -> DType:
        """The dtype of a tensor or a scalar, which must be known."""
        dtype = self.element_type
        if dtype is None:
            raise RelvmTypeError(f"{type(self).__name__} of type {self.type}, expected a known dtype")
        return dtype

    def __add__(self, other: Any) -> Expr:
        return _arithmetic("+", "add", self, other)

    def __radd__(self, other: Any) -> Expr:
        return _arithmetic("+", "add", other, self)

    def __sub__(self, other: Any) -> Expr:
        return _arithmetic("-", "subtract", self, other)

    def __rsub__(self, other: Any) -> Expr:
        return _arithmetic("-", "subtract", other, self)

    def __mul__(self, other: Any) -> Expr:
        return _arithmetic("*", "multiply", self, other)

    def __rmul__(self, other: Any) -> Expr:
        return _arithmetic("*", "multiply", other, self)

    def __truediv__(self, other: Any) -> Expr:
        return _arithmetic("/", "divide", self, other)

    def __rtruediv__(self, other: Any) -> Expr:
        return _arithmetic("/", "divide", other, self)

    def __matmul__(self, other: Any) -> Expr:
        return _arithmetic("@", "matmul", self, other)

    def __neg__(self) -> Expr:
        return _arithmetic("-", "negative", self)


def _arithmetic(sign: str, name: str, *operands: Any) -> Expr:
    """An operator of Python applied to expressions and numbers."""
    from relvm.ir.operator import find_operator  # made of expressions
    from relvm.ir.scalar_ops import DTYPE_OF_LETTER, FORMS, find_row

    if not all(isinstance(operand, Expr | bool | int | float) for operand in operands):
        return NotImplemented
    untyped = next((operand for operand in operands if isinstance(operand, Expr) and operand.type is None), None)
    if untyped is not None:
        raise RelvmTypeError(f"{sign}: {getattr(untyped, 'name', type(untyped).__name__)} has no type yet")
    if any(isinstance(operand, Expr) and not isinstance(operand.type, PrimType) for operand in operands):
        return find_operator(name)(*operands)
    scalars = tuple(operand if isinstance(operand, Expr) else prim(operand) for operand in operands)
    if (sign, len(scalars)) not in FORMS:
        raise RelvmTypeError(f"{sign}: there is none of scalars")
    function = FORMS[sign, len(scalars)]
    row = find_row(function, tuple(scalar.known_element_type for scalar in scalars))
    return PrimCall(function, scalars, type=PrimType(DTYPE_OF_LETTER[row.result]))


@node
class Var(Expr):
    """A name bound once: by a parameter or a binding.  Two variables are the same only when they are the same
    object.  origins: where in what the module was read from its value comes from: its own place first, then those of
    what is computed along with it."""

    name: str
    type: Type = _typed()
    origins: tuple[str, ...] = _origins()

    @property
    def origin(self) -> str:
        """Its own place; empty where nothing of the source says it."""
        return self.origins[0] if self.origins else ""

    def part(self, what: str, type_: Type) -> Var:
        """A new variable of type `type_`, for a part of how this one is computed: its name, `_` and `what`."""
        return Var(f"{self.name}_{what}", type=type_, origins=self.origins)


@node
class FunctionRef(Expr):
    """A function of the module, by name."""

    name: str
    type: Type = _typed()


@node
class PackedRef(Expr):
    """A packed function, by name, used as a value."""

    name: str
    type: Type = _typed(OBJECT)


@node
class Constant(Expr):
    """A tensor known at compile time.  value: read-only, C-contiguous, of a dtype in csrc/tables/dtypes.def; of strings
    an array of objects that are str."""

    value: np.ndarray
    type: Type = _typed()

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", TensorType(dtype_of(self.value.dtype), self.value.shape))


@node
class Prim(Expr):
    """An unboxed scalar, `value`, known at compile time.  dtype: bool, i64 or f64."""

    value: bool | int | float
    dtype: DType
    type: Type = _typed()

    def __post_init__(self) -> None:
        if self.dtype == I64 and not -(1 << 63) <= self.value < 1 << 63:
            raise RelvmArithmeticError(f"the scalar {self.value} is out of the range of i64")
        object.__setattr__(self, "type", PrimType(self.dtype))


@node
class DimValue(Expr):
    """The value of a dimension, symbolic or not, as an i64 scalar."""

    dim: AnyDim
    type: Type = _typed()

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", PrimType(I64, self.dim))


@node
class String(Expr):
    """A text as a value."""

    value: str
    type: Type = _typed(OBJECT)


@node
class DTypeValue(Expr):
    """An element type as a value."""

    value: DType
    type: Type = _typed(OBJECT)


@node
class Null(Expr):
    """No value."""

    type: Type = _typed(OptionalType(None))


@node
class Shape(Expr):
    """A list of dimensions, `dims`, symbolic ones included, as a value."""

    dims: tuple[AnyDim, ...]
    type: Type = _typed()

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", ShapeType(self.dims))


@node
class Tuple(Expr):
    """A tuple of the values of its `fields`."""

    fields: tuple[Expr, ...]
    type: Type = _typed()


@node
class TupleItem(Expr):
    """tuple[index].  index: 0-based, inside the tuple."""

    tuple: Expr
    index: int
    type: Type = _typed()


@node
class If(Expr):
    """`if cond then ... else orelse`.  cond: a bool or integer scalar or 0-d tensor.  type: the join of the branches'
    types."""

    cond: Expr
    then: Expr
    orelse: Expr
    type: Type = _typed()


@node
class Call(Expr):
    """`callee(args...)`.  callee: a function of the module, or a function value (a closure)."""

    callee: Expr
    args: tuple[Expr, ...]
    type: Type = _typed()


@node
class OpCall(Expr):
    """An operator, `op`, applied to `args`, with all its `attributes`.  Kernels replace it at stage LOWERED.
    origins: where it is written, and of what a pass has found to be a part of it."""

    op: Operator
    args: tuple[Expr, ...]
    attributes: Attributes = ()
    type: Type = _typed()
    origins: tuple[str, ...] = _origins()


@node
class Fused(Expr):
    """A group of operators that becomes one kernel: made by the pass fuse_ops, removed by lower_to_kernels.

    body: bindings of calls of pure operators on values from around, and a result: a variable that they bind, or a tuple
    of such variables.
    """

    body: Block
    type: Type = _typed()


@node
class PrimCall(Expr):
    """Arithmetic on unboxed scalars.  function: of csrc/tables/scalar_operators.def; the operands' types choose its
    row."""

    function: str
    args: tuple[Expr, ...]
    type: Type = _typed()


@node
class PackedCall(Expr):
    """A call of a packed function by name, with `args`.  type: what the program says it returns; checked at run time
    where it says more than `object`.  pure: it may be removed when its result is not used."""

    name: str
    args: tuple[Expr, ...]
    pure: bool = False
    type: Type = _typed(OBJECT)


@node
class KernelCall(Expr):
    """A kernel of the module, called with `args`, writing into new tensors (stage LOWERED): type is that of its result,
    one tensor or a tuple of tensors.  origins: of all that it computes."""

    kernel: str
    args: tuple[Expr, ...]
    type: Type = _typed()
    origins: tuple[str, ...] = _origins()


@node
class KernelRun(Expr):
    """A `kernel` with explicit memory (stage PLANNED): the tensors to write are the last of `args`; void.   names: of
    the values that they are then, as a kernel may write over an argument."""

    kernel: str
    args: tuple[Expr, ...]
    type: Type = _typed(VOID)
    names: tuple[str, ...] = field(default=(), kw_only=True, metadata={"derived": True})


@node
class BuiltinCall(Expr):
    """A call of a runtime builtin, by its name in csrc/tables/builtins.def.  The machine, where the row's signature has
    `ctx`, is not among args."""

    name: str
    args: tuple[Expr, ...]
    type: Type = _typed(OBJECT)


@node
class Kill(Expr):
    """Drops the value of a variable, `var`, that nothing uses any more (stage PLANNED); void."""

    var: Expr
    type: Type = _typed(VOID)


@node
class Binding(Node):
    """`var = value`."""

    var: Var
    value: Expr

    @property
    def function(self) -> Function:
        """The value, which must be a local function."""
        assert isinstance(self.value, Function)
        return self.value


@node
class MatchCast(Node):
    """`var = match_cast(value, type)`: the same value, checked at run time to be of the variable's type.  A dimension
    variable seen here for the first time takes the value found.  where: what an error's message begins with; empty: the
    function's and the variable's names."""

    var: Var
    value: Expr
    where: str = ""


@node
class Block(Expr):
    """`bindings` in order, then a `result`."""

    bindings: tuple[Binding | MatchCast, ...]
    result: Expr
    type: Type = _typed()
    origin: str = _origin()


@node
class Function(Expr):
    """A function of `params` and a `body`: of the module, or (as an expression) local, a closure over the variables
    around it.

    result_type: as annotated, or None where it is to be inferred.  name: the module's key, or a local function's own
    name.  private: of a function of the module that only the module itself calls; passes may change or remove it.
    pure: False where it may have effects; inference finds out.  claims_pure: whether the program says that it has none,
    so that an effect in it is an error.  attributes: what tools say of it, upper_bounds and lower_bounds among it.
    """

    name: str
    params: tuple[Var, ...]
    body: Expr
    result_type: Type | None = field(default=None, metadata={"derived": True})
    pure: bool = True
    attributes: Attributes = ()
    private: bool = False
    claims_pure: bool = field(default=False, metadata={"derived": True})
    type: Type = _typed()
    origin: str = _origin()

    @property
    def block(self) -> Block:
        """The body of a function from stage ANF on, where it is a block."""
        assert isinstance(self.body, Block)
        return self.body

    @property
    def func_type(self) -> FuncType:
        """The type as far as it is declared; the result is `object` where nothing is known yet."""
        return FuncType(tuple(p.type for p in self.params), self.result_type or OBJECT, self.pure)


@node
class Module(Node):
    """Named functions.  kernels: stage LOWERED on, name -> what the function table calls.  attributes: e.g. the source
    file."""

    functions: tuple[Function, ...]
    kernels: tuple[tuple[str, Any], ...] = field(default=(), metadata={"derived": True})
    attributes: Attributes = ()

    def __getitem__(self, name: str) -> Function:
        return next(f for f in self.functions if f.name == name)

    def __contains__(self, name: str) -> bool:
        return any(f.name == name for f in self.functions)

    def with_functions(self, functions: tuple[Function, ...]) -> Module:
        """This module with other functions; itself where they are those that it has."""
        same = len(functions) == len(self.functions) and all(map(operator.is_, functions, self.functions))
        return self if same else replace(self, functions=functions)


ATOMS = (Var, FunctionRef, PackedRef, Constant, Prim, DimValue, String, DTypeValue, Null, Shape)


def is_atom(expr: Expr) -> bool:
    """Whether `expr` may be an argument in A-normal form: it costs nothing to evaluate again."""
    return isinstance(expr, ATOMS)


def constant(value, dtype: str | DType | None = None) -> Constant:
    """A tensor constant from a `value` that np.asarray takes, copied so that later changes do not reach it.

    dtype: of the elements; None: that of the array, or f32 of Python's floats.
    """
    array = np.array(value, dtype=dtype_of(dtype).numpy if dtype is not None else None, order="C")
    if array.dtype.kind in "UTO":
        array = plain_array(array)
    if dtype is None and array.dtype == np.float64 and not isinstance(value, (np.ndarray, np.generic)):
        array = array.astype(np.float32)
    array.flags.writeable = False
    return Constant(array)


def constant_key(array: np.ndarray) -> Hashable:
    """What two constants have in common if their elements are the same, bit for bit; a large one only with itself."""
    return (array.dtype.name, array.shape, plain_bytes(array).tobytes()) if array.nbytes <= 256 else id(array)


def prim(value: bool | int | float) -> Prim:
    """A scalar constant: bool, i64 or f64 by the Python type of `value`."""
    match value:
        case bool():
            return Prim(value, BOOL)
        case int():
            return Prim(value, I64)
        case float():
            return Prim(value, F64)
    raise AssertionError(f"not a scalar: {value!r}")


def tuple_type_of(fields: tuple[Expr, ...]) -> TupleType | None:
    """The type of a tuple of typed expressions; None while one of them has none."""
    types = tuple(field.type for field in fields)
    return None if None in types else TupleType(types)
