"""Translation of elementwise operators on tensors of rank 0 to arithmetic on unboxed scalars.

The kernel of an elementwise operator computes an element with scalar expressions of loop IR.  The translation evaluates
the same expressions with the scalar operators of csrc/tables/scalar_operators.def, which know only bool, i64 and f64.
An integer of another dtype is represented by the i64 that is equal to it, and an f32 by the f64.  Results are then
reduced to the range of the dtype, or rounded to f32.  This gives the bits of the kernel: the f64 sum, difference,
product or quotient of two f32, rounded to f32, is the correctly rounded f32 (S. Figueroa, "When is double rounding
innocuous?", 1995).  The sign and the payload of a NaN are not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import relvm.ops as ops
from relvm.ir.dtypes import BOOL, F32, F64, I8, I16, I32, I64, U8, U16, U32, DType
from relvm.ir.expr import Binding, Block, Constant, Expr, If, MatchCast, OpCall, Prim, PrimCall, Var
from relvm.ir.loop_ir import Literal, Local, Operation, Scalar
from relvm.ir.scalar_ops import COMPARISONS, DTYPE_OF_LETTER, evaluate_row, find_row, has_defined_result
from relvm.ir.scalar_ops import Scalar as Number
from relvm.ir.types import PrimType, TensorType, Type
from relvm.ir.visitor import inner_blocks
from relvm.kernels.lowering_rules import Pointwise

# The dtypes that scalars can represent -> the dtype of the scalar.
UNBOXED_DTYPES = {BOOL: BOOL, F32: F64, F64: F64, **dict.fromkeys((I8, I16, I32, I64, U8, U16, U32), I64)}
# Functions of loop IR that have a scalar operator of the same name and meaning.
_EXACT_ON_INTEGERS = frozenset(("and", "or", "xor", "shr", "min", "max"))
_REDUCED = frozenset(("add", "sub", "mul", "neg", "shl"))
_ROUNDED = frozenset(("add", "sub", "mul", "div"))
_EXACT_ON_FLOATS = frozenset(("neg", "min", "max"))
_EXTREMES = {"maximum": "max", "minimum": "min"}
# Operators that need more bindings, such as the modulus of two variables, are not translated.  Each binding takes a
# register in the frame of a function, which limits the depth of recursion.
_MAX_BINDINGS = 8


class UntranslatableError(Exception):
    """An operator cannot be computed with scalar operators."""


def unboxed_dtype(type_: Type | None) -> DType | None:
    """Return the dtype of the scalar that can replace a tensor of type `type_`, or None if no scalar can."""
    if not isinstance(type_, TensorType) or type_.rank != 0 or type_.dtype is None:
        return None
    return UNBOXED_DTYPES.get(type_.dtype)


def unboxed_constant(value: np.ndarray) -> Prim:
    """Return the scalar that replaces a constant of rank 0."""
    number = value.item()
    return Prim(number, BOOL if isinstance(number, bool) else I64 if isinstance(number, int) else F64)


def is_translatable(call: OpCall) -> bool:
    """Return whether `translate` can translate an operator call."""
    if not isinstance(call.op.lower, Pointwise) or unboxed_dtype(call.type) is None:
        return False
    var = Var("", type=call.type)
    args = [
        unboxed_constant(arg.value) if isinstance(arg, Constant) else Var("", type=PrimType(unboxed))
        for arg in call.args
        if (unboxed := unboxed_dtype(arg.type))
    ]
    if len(args) < len(call.args):
        return False
    bindings: list[Binding] = []
    try:
        translate(call, args, var, bindings)
    except UntranslatableError:
        return False
    return _count(bindings) <= _MAX_BINDINGS


def _count(bindings: Iterable[Binding | MatchCast]) -> int:
    """Return the number of bindings, including those in branches."""
    return sum(1 + sum(_count(block.bindings) for block in inner_blocks(each.value)) for each in bindings)


def translate(call: OpCall, args: Sequence[Expr], var: Var, bindings: list[Binding]) -> Expr:
    """Compute an operator call with scalar arithmetic, and return the resulting scalar, an atom.

    args: the scalars that replace the arguments.
    var: the variable of the call, after which new variables are named.
    bindings: the list to which the bindings of the computation are appended.

    Raises
    ------
    UntranslatableError
        The operator needs a function that csrc/tables/scalar_operators.def does not have.
    """
    dtypes = [arg.known_element_type for arg in call.args]
    emitter = _Emitter(var, bindings)
    if call.op.name in _EXTREMES:
        return emitter.compute(_EXTREMES[call.op.name], *args)
    locals_ = [Local(f"x{i}", dtype) for i, dtype in enumerate(dtypes)]
    operands: list[Scalar] = [
        Literal(arg.value, dtype) if isinstance(arg, Prim) else local
        for arg, local, dtype in zip(args, locals_, dtypes, strict=True)
    ]
    emitter.values = {id(local): arg for local, arg in zip(locals_, args, strict=True)}
    emitter.kept = operands
    return emitter.scalar(call.op.lower.point(*operands, **dict(call.attributes)))


class _Emitter:
    """Emits scalar arithmetic.

    values: the `id` of a scalar of loop IR -> the expression that computes the scalar.
    kept: the scalars whose ids are keys of `values`.  The list keeps them alive, so that no new scalar gets such an id.
    """

    def __init__(self, var: Var, bindings: list[Binding]) -> None:
        self.var, self.bindings = var, bindings
        self.values: dict[int, Expr] = {}
        self.kept: list[Scalar] = []

    def scalar(self, scalar: Scalar) -> Expr:
        """Return the expression for a scalar of loop IR.  Emit its computation unless that was emitted before."""
        found = self.values.get(id(scalar))
        if found is None:
            found = self.values[id(scalar)] = self.new(scalar)
            self.kept.append(scalar)
        return found

    def new(self, scalar: Scalar) -> Expr:
        dtype = scalar.dtype
        if dtype not in UNBOXED_DTYPES:
            raise UntranslatableError
        match scalar:
            case Literal(value):
                return unboxed_constant(np.asarray(value).astype(dtype.numpy))
            case Operation("select", (cond, then, orelse)):
                return self.choose(self.scalar(cond), lambda: self.scalar(then), lambda: self.scalar(orelse), dtype)
            case Operation("cast", (operand,)):
                return self.cast(operand, dtype)
            case Operation(function, operands):
                if operands[0].dtype not in UNBOXED_DTYPES:
                    raise UntranslatableError
                return self.operation(function, operands, operands[0].dtype)
        raise UntranslatableError

    def operation(self, function: str, operands: tuple[Scalar, ...], dtype: DType) -> Expr:
        args = [self.scalar(operand) for operand in operands]
        if dtype.is_bool:
            match function:
                case "and" | "or" | "not" | "eq":
                    return self.compute(function, *args)
                case "ne":
                    return self.compute("xor", *args)
            raise UntranslatableError
        if function in COMPARISONS:
            return self.compute(function, *args)
        if dtype.is_float:
            if function in _ROUNDED:
                return self.rounded(self.compute(function, *args), dtype)
            if function in _EXACT_ON_FLOATS:
                return self.compute(function, *args)
            if function == "abs":
                (x,) = args
                return self.choose(
                    self.compute("gt", x, Prim(0.0, F64)),
                    lambda: x,
                    lambda: self.compute("sub", Prim(0.0, F64), x),
                    dtype,
                )
            raise UntranslatableError
        if function in _REDUCED:
            return self.reduced(self.compute(function, *args), dtype)
        if function in _EXACT_ON_INTEGERS:
            return self.compute(function, *args)
        if function in ("div", "rem"):
            return self.truncated(function, args[0], args[1], dtype)
        raise UntranslatableError

    def truncated(self, function: str, x: Expr, y: Expr, dtype: DType) -> Expr:
        """Emit the division x / y of integers, rounded toward zero, or its remainder.  y must not be 0.

        function: "div" or "rem".
        """
        rest = self.compute("mod", x, y)
        result = rest if function == "rem" else self.compute("floordiv", x, y)
        if not dtype.is_signed:
            return result
        zero, one = Prim(0, I64), Prim(1, I64)
        negative = self.compute("lt", x, zero)
        if not (isinstance(y, Prim) and y.value > 0):
            negative = self.compute("xor", negative, self.compute("lt", y, zero))
        was_rounded = self.compute("and", self.compute("ne", rest, zero), negative)
        other = (
            (lambda: self.compute("sub", rest, y)) if function == "rem" else lambda: self.compute("add", result, one)
        )
        return self.choose(was_rounded, other, lambda: result, dtype)

    def cast(self, operand: Scalar, dtype: DType) -> Expr:
        source, value = operand.dtype, self.scalar(operand)
        if dtype.is_bool:
            return value if source.is_bool else self.compute("bool", value)
        if dtype.is_float:
            if source == I64 and dtype == F32:  # the f64 in between would be rounded, too
                raise UntranslatableError
            return self.rounded(value if source.is_float else self.compute("f64", value), dtype, source)
        if source.is_float:
            raise UntranslatableError
        value = self.compute("i64", value) if source.is_bool else value
        return value if source.is_bool or _contains(dtype, source) else self.reduced(value, dtype)

    def rounded(self, value: Expr, dtype: DType, source: DType = F64) -> Expr:
        """Round an f64 scalar to f32 if `dtype` is f32.

        source: the dtype from which `value` was converted.  If f32 represents all its numbers, `value` is not rounded.
        """
        is_exact = source in (F32, BOOL) or (source.is_integer and source.bits < 24)
        return value if dtype == F64 or is_exact else self.compute("f32", value)

    def reduced(self, value: Expr, dtype: DType) -> Expr:
        """Reduce an i64 to the range of an integer dtype, modulo a power of two."""
        if dtype == I64:
            return value
        if dtype == I32:
            return self.compute("i32", value)
        if not dtype.is_signed:
            return self.compute("and", value, Prim(dtype.limits[1], I64))
        count = Prim(64 - dtype.bits, I64)
        return self.compute("shr", self.compute("shl", value, count), count)

    def choose(self, cond: Expr, then: Callable[[], Expr], orelse: Callable[[], Expr], dtype: DType) -> Expr:
        """Emit a conditional.   then, orelse: functions that emit a branch, and return its result."""
        if isinstance(cond, Prim):
            return then() if cond.value else orelse()
        blocks: list[Block] = []
        outer, known, kept = self.bindings, self.values, self.kept
        for branch in (then, orelse):
            self.bindings, self.values, self.kept = [], dict(known), list(kept)
            result = branch()
            blocks.append(Block(tuple(self.bindings), result, type=result.type))
        self.bindings, self.values, self.kept = outer, known, kept
        return self.bind(If(cond, blocks[0], blocks[1], type=PrimType(UNBOXED_DTYPES[dtype])))

    def compute(self, function: str, *args: Expr) -> Expr:
        """Emit a scalar operator, or evaluate it if its operands are constants."""
        row = find_row(function, tuple(arg.known_element_type for arg in args))
        result = DTYPE_OF_LETTER[row.result]
        numbers: tuple[Number, ...] = tuple(arg.value for arg in args if isinstance(arg, Prim))
        if len(numbers) == len(args) and has_defined_result(row, numbers):
            return Prim(evaluate_row(row, *numbers), result)
        return self.bind(PrimCall(function, args, type=PrimType(result)))

    def bind(self, value: Any) -> Var:
        var = Var(self.var.name, type=value.type, origins=self.var.origins)
        self.bindings.append(Binding(var, value))
        return var


def _contains(dtype: DType, other: DType) -> bool:
    """Return whether an integer dtype can represent all values of another one."""
    (low, high), (other_low, other_high) = dtype.limits, other.limits
    return low <= other_low and other_high <= high


def element_position(call: OpCall, definitions: dict[Var, Expr]) -> tuple[Expr, int] | None:
    """Match a call of `reshape` that selects one element of a tensor, possibly through a slice.

    Return the tensor and the flat position of the element.  Return None if `call` is anything else, or if the position
    is not known at compile time.

    definitions: the values of variables.
    """
    if call.op is not ops.reshape or unboxed_dtype(call.type) is None:
        return None
    (x, _) = call.args
    source = definitions.get(x) if isinstance(x, Var) else None
    if not (isinstance(source, OpCall) and source.op is ops.slice):
        # The number of elements of an unknown shape must be checked by the operator itself.
        return (x, 0) if not isinstance(x, Constant) and x.tensor_type.shape is not None else None
    (whole,) = source.args
    sizes = whole.tensor_type.shape
    if isinstance(whole, Constant) or sizes is None:
        return None
    shape = tuple(size for size in sizes if isinstance(size, int))
    if len(shape) < len(sizes):
        return None
    attributes = dict(source.attributes)
    axes = attributes["axes"] or range(len(attributes["begin"]))
    steps = attributes["steps"] or [1] * len(attributes["begin"])
    starts = [0] * len(shape)
    for axis, begin, end, step in zip(axes, attributes["begin"], attributes["end"], steps, strict=True):
        starts[axis] = range(shape[axis])[begin:end:step][0]
    return whole, int(np.ravel_multi_index(starts, shape)) if shape else 0
