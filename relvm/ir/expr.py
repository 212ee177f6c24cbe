"""The nodes of the IR: expressions, bindings, functions, modules.

Every expression has a `type`, which is None only before type inference (stage PARSED).  A block is flat: it consists of
a tuple of bindings and a result.  The recursion depth of a traversal therefore does not grow with the length of a
program.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable
from dataclasses import field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from relvm.errors import RelvmArithmeticError, RelvmTypeError
from relvm.ir.dtypes import BOOL, F64, I64, DType, dtype_of
from relvm.ir.node import Node, node
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import OBJECT, VOID, FuncType, OptionalType, PrimType, ShapeType, TensorType, TupleType, Type
from relvm.numpy_dtypes import canonical_array, is_masked_array, plain_array, plain_bytes

if TYPE_CHECKING:
    from relvm.ir.operator import Operator

Attributes = tuple[tuple[str, Any], ...]  # (name, hashable value) in declaration order, including defaults


def _type_field(default: Type | None = None):
    return field(default=default, kw_only=True, metadata={"derived": True})


def _origins_field():
    """Return a dataclass field for the origins of an expression: a tuple of source locations."""
    return field(default=(), kw_only=True, metadata={"derived": True})


def _origin_field():
    """Return a dataclass field for one origin: a source location.

    An origin is `file:line:column` for source code, the name of a node for an imported model, or "" if it is unknown.
    """
    return field(default="", kw_only=True, metadata={"derived": True})


class Expr(Node):
    """Base class of expressions.

    Python's arithmetic operators on typed expressions return expressions.  On tensors they return operator calls, and a
    Python number becomes a constant of the tensor's dtype.  On scalars they return scalar arithmetic.
    """

    # None before type inference (`infer_types`).  The annotation omits None, because only the front ends, type
    # inference, the printer and the verifier handle untyped expressions.
    type: Type

    @property
    def tensor_type(self) -> TensorType:
        """The type of the expression.  Raise RelvmTypeError if it is not a tensor type."""
        if not isinstance(self.type, TensorType):
            raise RelvmTypeError(f"{type(self).__name__}: expected a tensor, got {self.type}")
        return self.type

    @property
    def element_type(self) -> DType | None:
        """The dtype of a tensor or a scalar, or None if the dtype of the tensor is not known."""
        if not isinstance(self.type, TensorType | PrimType):
            raise RelvmTypeError(f"{type(self).__name__}: expected a tensor or a scalar, got {self.type}")
        return self.type.dtype

    @property
    def known_element_type(self) -> DType:
        """The dtype of a tensor or a scalar.  Raise RelvmTypeError if the dtype is not known."""
        dtype = self.element_type
        if dtype is None:
            raise RelvmTypeError(f"{type(self).__name__}: expected a known dtype, got {self.type}")
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


def _arithmetic(symbol: str, name: str, *operands: Any) -> Expr:
    """Return the result of the Python operator `symbol`, such as "+", on expressions and numbers, as an expression.

    name: the relvm operator that is called if the operands are tensors.
    """
    from relvm.ir.operator import find_operator  # relvm.ir.operator imports this module
    from relvm.ir.scalar_ops import DTYPE_OF_LETTER, FORMS, find_row

    if not all(isinstance(operand, Expr | bool | int | float) for operand in operands):
        return NotImplemented
    untyped = next((operand for operand in operands if isinstance(operand, Expr) and operand.type is None), None)
    if untyped is not None:
        raise RelvmTypeError(f"{symbol}: {getattr(untyped, 'name', type(untyped).__name__)} has no type yet")
    if any(isinstance(operand, Expr) and not isinstance(operand.type, PrimType) for operand in operands):
        return find_operator(name)(*operands)
    scalars = tuple(operand if isinstance(operand, Expr) else prim(operand) for operand in operands)
    if (symbol, len(scalars)) not in FORMS:
        raise RelvmTypeError(f"{symbol}: scalars are not supported; convert them with to_tensor")
    function = FORMS[symbol, len(scalars)]
    row = find_row(function, tuple(scalar.known_element_type for scalar in scalars))
    return PrimCall(function, scalars, type=PrimType(DTYPE_OF_LETTER[row.result]))


@node
class Var(Expr):
    """A variable, compared by identity.  Each variable is bound only once, as a parameter or in a binding.

    name: the name in printed text, which need not be unique.
    origins: source locations.  The first is that of the variable itself.  The others belong to computations that a pass
    merged with it.
    """

    name: str
    type: Type = _type_field()
    origins: tuple[str, ...] = _origins_field()

    @property
    def origin(self) -> str:
        """The variable's own source location, or "" if it is unknown."""
        return self.origins[0] if self.origins else ""

    def intermediate(self, suffix: str, type_: Type) -> Var:
        """Return a new variable of type `type_`, for an intermediate result in the computation of this variable.

        The new variable has the origins (source locations) of this variable.  Its name is that of this variable,
        followed by `_` and `suffix`.
        """
        return Var(f"{self.name}_{suffix}", type=type_, origins=self.origins)


@node
class FunctionRef(Expr):
    """A reference to a function of the module, by name."""

    name: str
    type: Type = _type_field()


@node
class PackedRef(Expr):
    """A reference by name to a packed function (a registered function of the host).  It can be used as a value."""

    name: str
    type: Type = _type_field(OBJECT)


@node
class Constant(Expr):
    """A tensor known at compile time.

    value: a read-only, C-contiguous array of a dtype in csrc/tables/dtypes.def.  A tensor of strings is an array of str
    objects.
    """

    value: np.ndarray
    type: Type = _type_field()

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", TensorType(dtype_of(self.value.dtype), self.value.shape))


@node
class Prim(Expr):
    """A scalar (unboxed) that is known at compile time.

    value: the scalar.
    dtype: bool, i64 or f64.
    """

    value: bool | int | float
    dtype: DType
    type: Type = _type_field()

    def __post_init__(self) -> None:
        if self.dtype == I64 and not -(1 << 63) <= self.value < 1 << 63:
            raise RelvmArithmeticError(f"the scalar {self.value} is out of the range of i64")
        object.__setattr__(self, "type", _prim_type(self.dtype))


_prim_type = cache(PrimType)  # types are immutable, and a build creates thousands of scalars


@node
class DimValue(Expr):
    """The value of a constant or symbolic dimension, as an i64 scalar."""

    dim: AnyDim
    type: Type = _type_field()

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", PrimType(I64, self.dim))


@node
class String(Expr):
    """A string constant.

    value: the string.
    """

    value: str
    type: Type = _type_field(OBJECT)


@node
class DTypeValue(Expr):
    """A dtype constant.

    value: the dtype.
    """

    value: DType
    type: Type = _type_field(OBJECT)


@node
class Null(Expr):
    """The null value."""

    type: Type = _type_field(OptionalType(None))


@node
class Shape(Expr):
    """A shape value: a list of dimensions.

    dims: the dimensions, which are constant or symbolic.
    """

    dims: tuple[AnyDim, ...]
    type: Type = _type_field()

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", ShapeType(self.dims))


@node
class Tuple(Expr):
    """A tuple.

    fields: the expressions of its items.
    """

    fields: tuple[Expr, ...]
    type: Type = _type_field()


@node
class TupleItem(Expr):
    """An item of a tuple, `tuple[index]`.

    index: the position of the item, counted from 0.
    """

    tuple: Expr
    index: int
    type: Type = _type_field()


@node
class If(Expr):
    """A conditional, `if cond then ... else orelse`.

    cond: a bool or integer, as a scalar or a 0-d tensor.
    type: the join of the branches' types (see `join`).
    """

    cond: Expr
    then: Expr
    orelse: Expr
    type: Type = _type_field()


@node
class Call(Expr):
    """A function call, `callee(args...)`.

    callee: a function of the module, or a function value (a closure).
    """

    callee: Expr
    args: tuple[Expr, ...]
    type: Type = _type_field()


@node
class OpCall(Expr):
    """A call of the operator `op` with `args` and `attributes`.  At stage LOWERED, kernel calls replace operator calls.

    origins: the source location of the call, then the locations of expressions that a pass merged into it.
    """

    op: Operator
    args: tuple[Expr, ...]
    attributes: Attributes = ()
    type: Type = _type_field()
    origins: tuple[str, ...] = _origins_field()


@node
class Fused(Expr):
    """A group of operators that one kernel will compute.  The pass fuse_ops creates it, and lower_to_kernels replaces
    it.

    body: a block of operator calls without side effects.  They can use variables from outside the block.  The result is
    a variable that the block binds, or a tuple of such variables.
    """

    body: Block
    type: Type = _type_field()


@node
class PrimCall(Expr):
    """Arithmetic on unboxed scalars.

    function: a function in csrc/tables/scalar_operators.def.  If several rows have this function, the dtypes of the
    operands select one.
    """

    function: str
    args: tuple[Expr, ...]
    type: Type = _type_field()


@node
class PackedCall(Expr):
    """A call of a packed function (a registered function of the host), by name, with `args`.

    type: the declared type of the result, checked at run time if it is more specific than `object`.
    pure: whether the call may be removed if its result is unused.
    """

    name: str
    args: tuple[Expr, ...]
    pure: bool = False
    type: Type = _type_field(OBJECT)


@node
class KernelCall(Expr):
    """A call, with `args`, of a kernel of the module (stage LOWERED).  The call returns new tensors.

    type: the type of the result, a tensor or a tuple of tensors.
    origins: the source locations of everything that the kernel computes.
    """

    kernel: str
    args: tuple[Expr, ...]
    type: Type = _type_field()
    origins: tuple[str, ...] = _origins_field()


@node
class KernelRun(Expr):
    """A call of a kernel that writes to given tensors (stage PLANNED).

    type: VOID, or the type of what the kernel returns, if the program uses it.  A generated kernel returns nil.
    args: the tensors to read, then the tensors to write.
    names: the names of the values that the kernel writes.  They can differ from the names of the tensors, because a
    kernel can overwrite an argument.
    """

    kernel: str
    args: tuple[Expr, ...]
    type: Type = _type_field(VOID)
    names: tuple[str, ...] = field(default=(), kw_only=True, metadata={"derived": True})


@node
class BuiltinCall(Expr):
    """A call of a runtime builtin, by its name in csrc/tables/builtins.def.

    args: the arguments.  If the signature of the builtin contains `ctx`, the virtual machine is passed as well.
    """

    name: str
    args: tuple[Expr, ...]
    type: Type = _type_field(OBJECT)


@node
class Kill(Expr):
    """The release of the value of `var`, which is not used afterwards (stage PLANNED).  A Kill has no result."""

    var: Expr
    type: Type = _type_field(VOID)


@node
class Binding(Node):
    """The binding of a value to a variable, `var = value`."""

    var: Var
    value: Expr

    @property
    def function(self) -> Function:
        """The value of the binding, which must be a local function."""
        assert isinstance(self.value, Function)
        return self.value


@node
class MatchCast(Node):
    """The binding `var = match_cast(value, type)`.  `var` has the value `value`, which is checked at run time to have
    the type of `var`.

    A dimension variable that first occurs in this type gets the actual size as its value.

    where: the beginning of the error message, or "" to begin with the names of the function and the variable.
    """

    var: Var
    value: Expr
    where: str = ""


@node
class Block(Expr):
    """A block: a sequence of `bindings`, then a `result`."""

    bindings: tuple[Binding | MatchCast, ...]
    result: Expr
    type: Type = _type_field()
    origin: str = _origin_field()


@node
class Function(Expr):
    """A function of the module or a local function.  A local function is an expression, whose value is a closure that
    captures enclosing variables.

    name: the name in the module, which is unique, or the name of a local function.
    params, body: the variables of the parameters, and an expression over them.
    result_type: the annotated result type, or None to infer it.
    pure: False if the function can have side effects.  Type inference sets this field.
    attributes: annotations for tools, such as upper_bounds and lower_bounds.
    private: whether only the module itself calls the function.  Passes may then change or remove it.
    claims_pure: whether the program declares the function pure.  A side effect is then an error.
    """

    name: str
    params: tuple[Var, ...]
    body: Expr
    result_type: Type | None = field(default=None, metadata={"derived": True})
    pure: bool = True
    attributes: Attributes = ()
    private: bool = False
    claims_pure: bool = field(default=False, metadata={"derived": True})
    type: Type = _type_field()
    origin: str = _origin_field()

    @property
    def block(self) -> Block:
        """The body as a block.  From stage ANF on, the body of every function is a block."""
        assert isinstance(self.body, Block)
        return self.body

    @property
    def input_names(self) -> tuple[str, ...]:
        """The name of each parameter in messages: the name of the model input that it stands for, if there is one,
        otherwise the parameter's own name."""
        names = dict(self.attributes).get("input_names", ())
        return names if len(names) == len(self.params) else tuple(param.name for param in self.params)

    @property
    def func_type(self) -> FuncType:
        """The type of the function.  Its result type is the annotated one, or `object` if there is no annotation."""
        return FuncType(tuple(p.type for p in self.params), self.result_type or OBJECT, self.pure)


@node
class Module(Node):
    """A module: named functions and kernels.

    kernels: pairs of a name and a kernel.  Before stage LOWERED, these are the kernels that the program itself defines.
    From stage LOWERED on, they are the kernels that lowering generated.
    attributes: the attributes of the module, such as the source file.
    """

    functions: tuple[Function, ...]
    kernels: tuple[tuple[str, Any], ...] = field(default=(), metadata={"derived": True})
    attributes: Attributes = ()

    def __getitem__(self, name: str) -> Function:
        return next(f for f in self.functions if f.name == name)

    def __contains__(self, name: str) -> bool:
        return any(f.name == name for f in self.functions)

    def _ipython_key_completions_(self) -> list[str]:
        return [function.name for function in self.functions]

    def with_functions(self, functions: tuple[Function, ...]) -> Module:
        """Return a copy of this module with `functions` as its functions.

        If these are the module's own function objects, return the module itself.
        """
        same = len(functions) == len(self.functions) and all(map(operator.is_, functions, self.functions))
        return self if same else replace(self, functions=functions)


class HasModule(Protocol):
    """An object that has a module, such as a function decorated by `@script`."""

    @property
    def module(self) -> Module:
        """The module."""


def expect_module(name: str, value: Any) -> Module:
    """Return a module, or the module of an object that has one.  Raise RelvmTypeError for other values.

    name: the name of the argument, for the message.
    """
    module = value if isinstance(value, Module) else getattr(value, "module", None)
    if not isinstance(module, Module):
        raise RelvmTypeError(f"{name}: expected an ir.Module or a function with @script, got {type(value).__name__}")
    return module


ATOMS = (Var, FunctionRef, PackedRef, Constant, Prim, DimValue, String, DTypeValue, Null, Shape)


def is_atom(expr: Expr) -> bool:
    """Return whether `expr` is an atom: a variable, reference or constant.  Arguments in A-normal form are atoms."""
    return isinstance(expr, ATOMS)


def constant(value, dtype: str | DType | None = None, *, is_new: bool = False) -> Constant:
    """Return a tensor constant with a copy of `value`, which is an array or any other argument that np.array accepts.

    dtype: the dtype of the elements.  If it is None, NumPy chooses the dtype, except that Python floats become f32.
    is_new: whether `value` is an array that nothing else will change.  It is then copied only if it is a view or not
    C-contiguous.

    Raise RelvmTypeError for a masked array, and for elements that tensors do not support.
    """
    if is_masked_array(value):
        raise RelvmTypeError("constant: expected an array without a mask; use its method filled")
    array = value
    if not is_new or dtype is not None or array.base is not None or not array.flags.c_contiguous:
        array = np.array(value, dtype=dtype_of(dtype).numpy if dtype is not None else None, order="C")
    array = plain_array(array) if array.dtype.kind in "UTO" else canonical_array(array)
    if dtype is None and array.dtype == np.float64 and not isinstance(value, (np.ndarray, np.generic)):
        array = array.astype(np.float32)
    array.flags.writeable = False
    return Constant(array)


def constant_key(array: np.ndarray) -> Hashable:
    """Return a dictionary key for a constant.  Constants with equal keys have the same dtype, shape and bits.

    Equal arrays of at most 256 bytes have equal keys.  The key of a larger array is its id, so the caller must keep the
    array alive.
    """
    return (array.dtype.name, array.shape, plain_bytes(array).tobytes()) if array.nbytes <= 256 else id(array)


def prim(value: bool | int | float | np.generic) -> Prim:
    """Return `value` as a scalar constant: of dtype bool for a bool, i64 for an integer, and f64 for a float.

    Raise RelvmTypeError if `value` is not a number of Python or NumPy.
    """
    match value:
        case bool() | np.bool_():
            return Prim(bool(value), BOOL)
        case int() | np.integer():
            return Prim(int(value), I64)
        case float() | np.floating():
            return Prim(float(value), F64)
    raise RelvmTypeError(f"prim: expected a bool, an integer or a float, got {value!r}")


def as_expr(what: str, value: Any) -> Expr:
    """Return `value` as an expression: a number becomes a scalar constant, and an array a tensor constant.

    Return an expression unchanged.  Raise RelvmTypeError for any other value.

    what: a description of the value, for the message.
    """
    match value:
        case Expr():
            return value
        case bool() | int() | float() | np.bool_() | np.integer() | np.floating():
            return prim(value)
        case np.ndarray():
            return constant(value)
    raise RelvmTypeError(f"{what}: expected an expression, a number or an array, got {type(value).__name__}")


def tuple_type_of(fields: tuple[Expr, ...]) -> TupleType | None:
    """Return the tuple type of the expressions `fields`, or None if one of them has no type yet."""
    types = tuple(field.type for field in fields)
    return None if None in types else TupleType(types)
