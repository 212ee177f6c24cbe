"""Scalar code: the computation of one element, which a kernel of a front end applies to many.

A reducer, a comparator or an update of a program is a small function of tensors of rank 0.  A front end imports it like
any other code, as a block of elementwise operators.  `scalar_function` turns the block into an expression of loop IR.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from relvm.errors import RelvmUnsupportedError
from relvm.ir.dtypes import F32
from relvm.ir.expr import Binding, Block, Constant, Expr, OpCall, Tuple, TupleItem, Var
from relvm.ir.loop_ir import Literal, Scalar
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.lowering_rules import Alias, DataMovement, Pointwise, Reinterpret
from relvm.ops import add, broadcast_to, cast, logical_and, logical_or, maximum, minimum, multiply

ScalarFunction = Callable[..., tuple[Scalar, ...]]  # (k: KernelBuilder, *arguments) -> results

# Functions with which a reduction combines two elements -> their names.
COMBINERS = {
    add: "add",
    multiply: "multiply",
    maximum: "maximum",
    minimum: "minimum",
    logical_and: "logical_and",
    logical_or: "logical_or",
}


def scalar_function(params: Sequence[Var], block: Block) -> ScalarFunction:
    """Return the function that computes the results of a block from the elements of its parameters.

    Parameters
    ----------
    params
        Variables of tensors of rank 0.
    block
        Bindings of elementwise operators on tensors of rank 0.  The result is a tensor or a tuple of tensors.

    Raises
    ------
    RelvmUnsupportedError
        The block contains something else, or uses a variable other than its parameters.
    """
    for binding in block.bindings:
        _expect_scalar_code(binding.value if isinstance(binding, Binding) else block)
    _expect_own_variables(params, block)

    def compute(k: KernelBuilder, *arguments: Scalar) -> tuple[Scalar, ...]:
        values: dict[Var, tuple[Scalar, ...] | Scalar] = dict(zip(params, arguments, strict=True))
        for binding in block.bindings:
            assert isinstance(binding, Binding)
            value = _value(binding.value, values)
            values[binding.var] = value if isinstance(value, tuple) else k.let(_name(binding.var), value)
        result = _value(block.result, values)
        return result if isinstance(result, tuple) else (result,)

    return compute


def combiner(params: Sequence[Var], block: Block) -> str | None:
    """Return the name of the function in COMBINERS that a block applies to its two parameters.

    Return None if the block computes anything else.  Conversions of narrow floats to f32 and back are ignored.
    """
    if len(params) != 2:
        return None
    sources: dict[Expr, Expr] = {param: param for param in params}
    found: str | None = None
    for binding in block.bindings:
        value = binding.value
        if not isinstance(binding, Binding) or not isinstance(value, OpCall):
            return None
        if value.op is cast and value.args[0] in sources:
            if found is None and value.tensor_type.dtype != F32:
                return None
            sources[binding.var] = sources[value.args[0]]
        elif found is None and value.op in COMBINERS and {sources.get(arg) for arg in value.args} == set(params):
            found = COMBINERS[value.op]
            sources[binding.var] = binding.var
        else:
            return None
    is_result = block.result in sources and sources[block.result] not in params
    return found if is_result and block.result.type == params[0].type else None


def _expect_scalar_code(expr: Expr) -> None:
    match expr:
        case Var() | Constant() | Tuple() | TupleItem():
            return
        case OpCall(op=op, args=args):
            if (
                isinstance(op.lower, Pointwise | Alias | Reinterpret | DataMovement)
                and getattr(expr.type, "shape", None) == ()
            ):
                for arg in args:
                    if arg.type is None or getattr(arg.type, "shape", ()) == () or op is broadcast_to:
                        _expect_scalar_code(arg) if isinstance(arg, OpCall) else None
                return
            raise RelvmUnsupportedError(f"{op.name} of tensors is not supported inside a region of scalars")
    raise RelvmUnsupportedError(f"{type(expr).__name__} is not supported inside a region of scalars")


def _expect_own_variables(params: Sequence[Var], block: Block) -> None:
    known: set[Expr] = {*params, *(binding.var for binding in block.bindings)}
    waiting: list[Expr] = [block.result, *(binding.value for binding in block.bindings)]
    while waiting:
        match waiting.pop():
            case Var(name) as var if var not in known:
                raise RelvmUnsupportedError(f"a region of scalars uses the value {name} from outside")
            case OpCall(args=args):
                waiting += [arg for arg in args if isinstance(arg, Var | OpCall)]
            case Tuple(fields):
                waiting += fields
            case TupleItem(whole):
                waiting.append(whole)


def _value(expr: Expr, values: Mapping[Var, tuple[Scalar, ...] | Scalar]) -> tuple[Scalar, ...] | Scalar:
    match expr:
        case Var():
            return values[expr]
        case Constant(value=array):
            return Literal(array.item() if array.dtype.kind != "V" else float(array), expr.known_element_type)
        case Tuple(fields):
            items = tuple(_value(field, values) for field in fields)
            return tuple(item for item in items if not isinstance(item, tuple))
        case TupleItem(whole, index):
            found = _value(whole, values)
            assert isinstance(found, tuple)
            return found[index]
        case OpCall(op=op, args=args, attributes=attributes):
            operands = [_value(arg, values) for arg in args if getattr(arg.type, "dtype", None) is not None]
            if isinstance(op.lower, Pointwise):
                return op.lower.point(*operands, **dict(attributes))
            return operands[0]
    raise AssertionError(f"scalar code contains {type(expr).__name__}")


def _name(var: Var) -> str:
    return "".join(c if c.isalnum() and c.isascii() else "_" for c in var.name)
