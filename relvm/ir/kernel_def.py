"""Kernel definitions: kernels that are written in the program itself, as loops over the elements of tensors.

A definition is typed, but contains no checks of indices.  Lowering (relvm/kernels/lower_kernel_def.py) adds them.
Every scalar has a dtype, and there are no implicit conversions.  docs/language.md describes the language.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from relvm.data_classes import dataclass
from relvm.errors import RelvmArgumentError, RelvmTypeError, near_matches
from relvm.ir import loop_ir as ir
from relvm.ir.dtypes import BOOL, F32, F64, I64, DType
from relvm.ir.node import Printed
from relvm.ir.scalar_ops import COMPARISONS, PYTHON_FUNCTIONS
from relvm.ir.symbolic import DimVar, dim_vars
from relvm.ir.types import TensorType, TupleType, Type

STATEMENTS = (ir.Let, ir.Assign, ir.Store, ir.IfThen, ir.Loop)  # those that a definition can contain
LOOPS = ("range", "simd", "parallel")
Number = bool | int | float
Operand = ir.Scalar | Number  # a number gets the dtype of the other operand

# Functions on floats, in the precision of their operands.  round rounds to even.
MATH = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "copysign", "cos", "cosh", "erf", "exp", "floor"),
    *("fmod", "log", "log1p", "power", "round", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
)
_BINARY_MATH = ("copysign", "fmod", "power")
FUNCTIONS = ("abs", "fma", "max", "min", *sorted(MATH))  # called by name, as are dtypes (conversions)


@dataclass(frozen=True, eq=False, repr=False)
class KernelDef(Printed):
    """A kernel: statements that read `inputs` and write `outputs`.

    Elements of outputs are 0 until they are written.  An index outside its axis is an error.  The statements can also
    write the inputs that are inout parameters.

    Raises
    ------
    RelvmTypeError
        A statement of the body is not one of STATEMENTS.
    """

    name: str
    inputs: tuple[ir.Buffer, ...]
    outputs: tuple[ir.Buffer, ...]
    body: tuple[ir.Statement, ...]
    origin: str = ""

    def __post_init__(self) -> None:
        for statement in ir.statements_in(self.body):
            if not isinstance(statement, STATEMENTS):
                expected = ", ".join(each.__name__ for each in STATEMENTS)
                raise RelvmTypeError(
                    f"kernel {self.name}: expected statements of the types {expected}, got {type(statement).__name__}, "
                    "which only lowered kernels contain"
                )

    @property
    def params(self) -> tuple[ir.Buffer, ...]:
        return (*self.inputs, *self.outputs)

    @property
    def inout_positions(self) -> tuple[int, ...]:
        """The positions of the inout parameters among the inputs."""
        return tuple(position for position, buffer in enumerate(self.inputs) if buffer.is_inout)

    @property
    def result_type(self) -> Type:
        """The type of a call's result: the type of the output, or a tuple type if there is not exactly one output."""
        types = tuple(buffer.type for buffer in self.outputs)
        return types[0] if len(types) == 1 else TupleType(types)

    @property
    def dim_vars(self) -> tuple[DimVar, ...]:
        """The dimension variables of the parameters, in order of first occurrence in their shapes."""
        dims = (dim for buffer in self.params for dim in buffer.shape)
        return tuple(dict.fromkeys(var for dim in dims for var in dim_vars(dim)))


def without_inouts(kernel: KernelDef) -> KernelDef:
    """Return the kernel that takes the old values of inout parameters as inputs, and returns their new values.

    The new values are its first outputs, in the order of the inout parameters.  The body begins with loops that copy
    the old values.
    """
    if not kernel.inout_positions:
        return kernel
    inputs = tuple(replace(buffer, is_inout=False) if buffer.is_inout else buffer for buffer in kernel.inputs)
    pairs = [(buffer, new) for buffer, new in zip(kernel.inputs, inputs, strict=True) if buffer.is_inout]
    updated = {buffer: replace(new, is_output=True) for buffer, new in pairs}
    copies = tuple(_copy_elements(old, updated[buffer]) for buffer, old in pairs)
    body = (*copies, *(_with_buffers(statement, updated) for statement in kernel.body))
    return replace(kernel, inputs=inputs, outputs=(*updated.values(), *kernel.outputs), body=body)


def copy_kernel(name: str, type_: TensorType) -> KernelDef:
    """Return a kernel that returns a copy of a tensor.   type_: the type of the tensor, of known dtype and shape."""
    source = ir.Buffer("x", type_.known_dtype, type_.known_shape, is_output=False)
    copied = replace(source, name="copy", is_output=True)
    return KernelDef(name, (source,), (copied,), (_copy_elements(source, copied),))


def _copy_elements(source: ir.Buffer, target: ir.Buffer) -> ir.Statement:
    """Return the loops `target[i, j] = source[i, j]` over all elements."""
    counters = tuple(ir.Local(f"i{axis}", I64) for axis in range(len(source.shape)))
    statement: ir.Statement = ir.Store(target, counters, ir.Load(source, counters))
    for axis in reversed(range(len(counters))):
        kind = "simd" if axis == len(counters) - 1 else "range"
        stop = ir.as_scalar(source.shape[axis], I64)
        statement = ir.Loop(counters[axis], ir.Literal(0, I64), stop, (statement,), kind)
    return statement


def _with_buffers(item: Any, buffers: Mapping[ir.Buffer, ir.Buffer]) -> Any:
    """Return `item`, a statement, a scalar or a tuple of these, with the keys of `buffers` replaced by their values."""
    if isinstance(item, ir.Buffer):
        return buffers.get(item, item)
    if isinstance(item, tuple):
        return tuple(_with_buffers(part, buffers) for part in item)
    if not isinstance(item, ir.Load | ir.Operation | ir.Loop | ir.Let | ir.Assign | ir.Store | ir.IfThen):
        return item
    return replace(item, **{each.name: _with_buffers(getattr(item, each.name), buffers) for each in fields(item)})


# ---- typed construction ----


def default_dtype(value: Number) -> DType:
    """Return the dtype that a number has if no other operand determines its dtype: bool for a bool, i64 for an int,
    f32 for a float."""
    return BOOL if isinstance(value, bool) else I64 if isinstance(value, int) else F32


def as_scalar(value: Operand, dtype: DType | None = None) -> ir.Scalar:
    """Convert `value`, a Python number, to a literal of `dtype`.  Return a Scalar unchanged.

    If `dtype` is None, the literal has the default dtype of the number.

    Raises
    ------
    RelvmTypeError
        The number is of the wrong kind for the dtype, such as a float for i64 or a bool for f32.  The error is also
        raised if an integer is outside the range of the dtype.  A number is rounded to a float dtype without an error.
    """
    if not isinstance(value, int | float):
        return value
    if dtype is None:
        dtype = default_dtype(value)
    fits = isinstance(value, bool) == dtype.is_bool and (dtype.is_float or not isinstance(value, float))
    if fits and dtype.is_integer:
        low, high = dtype.limits
        fits = low <= value <= high
    if not fits:
        raise RelvmTypeError(f"{value!r} cannot be used as {dtype}")
    try:
        return ir.Literal(float(value) if dtype.is_float else value, dtype)
    except OverflowError:
        raise RelvmTypeError(f"{value!r} cannot be used as {dtype}") from None


def _same_dtype(name: str, operands: tuple[Operand, ...]) -> tuple[ir.Scalar, ...]:
    """Convert `operands` to scalars of one dtype, and raise RelvmTypeError if their dtypes differ.

    A Python number becomes a literal of the dtype of the other operands.

    name: the operation, for messages.
    """
    dtypes = {operand.dtype for operand in operands if not isinstance(operand, int | float)}
    if len(dtypes) > 1:
        names = " and ".join(str(o.dtype) for o in operands if not isinstance(o, int | float))
        first = next(iter(dtypes))
        raise RelvmTypeError(f"{name}: operands have dtypes {names}; convert one of them, for example {first}(x)")
    dtype = next(iter(dtypes), None)
    if dtype is None and any(isinstance(operand, float) for operand in operands):
        dtype = F32
    return tuple(as_scalar(operand, dtype) for operand in operands)


def _expect_arithmetic(name: str, dtype: DType) -> None:
    if not dtype.is_arithmetic or dtype.is_narrow_float:
        hint = "; convert it, for example f32(x)" if not dtype.is_bool else ""
        raise RelvmTypeError(f"{name}: expected an integer dtype of at least 8 bits, f32 or f64, got {dtype}{hint}")


def binary_operation(function: str, left: Operand, right: Operand) -> Operand:
    """Return the expression that applies a binary function to the operands `left` and `right`.

    If both operands are Python numbers and `function` is neither "and" nor "or", compute the result now and return it
    as a Python value.

    function: "and", "or", or the name of an arithmetic function or comparison, such as "div" or "eq".

    Raises
    ------
    RelvmTypeError
        The operands do not have the same dtype, the function is not defined for their dtype, or the result of two
        Python numbers cannot be computed, as in a division by zero.
    """
    if function in ("and", "or"):
        return ir.Operation(function, (as_condition(left), as_condition(right)), BOOL)
    if isinstance(left, int | float) and isinstance(right, int | float):
        bools = [isinstance(operand, bool) for operand in (left, right)]
        if any(bools) and not (all(bools) and function in ("eq", "ne")):
            raise RelvmTypeError(f"{function}: expected numbers, got {left!r} and {right!r}")
        try:
            return PYTHON_FUNCTIONS[function](left, right)
        except (ArithmeticError, ValueError) as error:
            raise RelvmTypeError(f"{function} of {left!r} and {right!r}: {error}") from None
    operands = _same_dtype(function, (left, right))
    dtype = operands[0].dtype
    if function in ("eq", "ne") and dtype.is_bool:
        return ir.Operation(function, operands, BOOL)
    _expect_arithmetic(function, dtype)
    if function == "div" and not dtype.is_float:
        raise RelvmTypeError(f"/: expected f32 or f64, got {dtype}; use //, or convert to f32")
    if function in ("floordiv", "mod") and dtype.is_float:
        raise RelvmTypeError(f"// and %: expected integers, got {dtype}; use floor(x / y) or fmod(x, y)")
    return ir.Operation(function, operands, BOOL if function in COMPARISONS else dtype)


def negative(operand: Operand) -> Operand:
    if isinstance(operand, bool):
        raise RelvmTypeError("-: expected a number, got a bool")
    if isinstance(operand, int | float):
        return -operand
    _expect_arithmetic("-", operand.dtype)
    return ir.Operation("neg", (operand,), operand.dtype)


def as_condition(value: Operand) -> ir.Scalar:
    """Convert `value` to a scalar.  Raise RelvmTypeError if it is not a bool."""
    value = as_scalar(value)
    if not value.dtype.is_bool:
        raise RelvmTypeError(f"expected a bool, got {value.dtype}; compare it, for example x != 0")
    return value


def negation(value: Operand) -> ir.Scalar:
    return ir.Operation("not", (as_condition(value),), BOOL)


def conditional(cond: Operand, then: Operand, orelse: Operand) -> ir.Scalar:
    """Return the conditional expression `if cond then ... else orelse`.  `then` and `orelse` must have the same
    dtype."""
    first, second = _same_dtype("if", (then, orelse))
    return ir.Operation("select", (as_condition(cond), first, second), first.dtype)


def as_index(value: Operand) -> ir.Scalar:
    """Convert `value`, an index or a loop bound, to a scalar.  Raise RelvmTypeError if it is not an i64."""
    value = as_scalar(value)
    if value.dtype != I64:
        raise RelvmTypeError(f"expected an i64, got {value.dtype}; convert it with i64(x)")
    return value


def cast(value: Operand, dtype: DType) -> ir.Scalar:
    """Convert `value` to `dtype`.  Return `value` itself if it already has this dtype."""
    if dtype.is_string:
        raise RelvmTypeError("a value cannot be converted to str inside a kernel")
    if isinstance(value, int | float):
        fits = isinstance(value, int) and dtype.is_integer and dtype.limits[0] <= value <= dtype.limits[1]
        if (dtype.is_float or fits) and not isinstance(value, bool):
            return as_scalar(value, dtype)
        value = as_scalar(value, F64 if isinstance(value, float) else None)
    return value if value.dtype == dtype else ir.Operation("cast", (value,), dtype)


def call(name: str, operands: tuple[Operand, ...]) -> ir.Scalar:
    """Return a call of the function `name`, one of FUNCTIONS.

    Raises
    ------
    RelvmArgumentError
        `name` is not in FUNCTIONS, or the number of arguments is wrong.
    RelvmTypeError
        The function does not accept arguments of these dtypes.
    """
    if name not in FUNCTIONS:
        raise RelvmArgumentError(f"no function {name} of scalars{near_matches(name, FUNCTIONS)}")
    arity = 3 if name == "fma" else 2 if name in (*_BINARY_MATH, "min", "max") else 1
    if len(operands) != arity and not (name in ("min", "max") and len(operands) > 2):
        raise RelvmArgumentError(f"{name}: expected {arity} argument{'s' * (arity > 1)}, got {len(operands)}")
    values = _same_dtype(name, operands)
    dtype = values[0].dtype
    _expect_arithmetic(name, dtype)
    if name == "fma" and dtype != F32:
        raise RelvmTypeError(f"fma: expected f32, got {dtype}")
    if name in MATH and not dtype.is_float:
        raise RelvmTypeError(f"{name}: expected f32 or f64, got {dtype}; convert it with f32(x)")
    if name in ("min", "max"):
        result = values[0]
        for value in values[1:]:
            result = ir.Operation(name, (result, value), dtype)
        return result
    return ir.Operation(name, values, dtype)
