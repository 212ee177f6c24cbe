"""Reference interpreter: evaluates the IR with NumPy.  Tests compare bytecode mode and compiled mode with it.

A tensor is an np.ndarray.  A scalar is a Python bool, int or float.  Shapes and tuples are Python tuples, and lists are
Python lists.  Null is None, and a function is an `InterpretedClosure`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from relvm import errors
from relvm.data_classes import record
from relvm.errors import (
    RelvmArgumentError,
    RelvmAssertionError,
    RelvmError,
    RelvmMemoryError,
    RelvmNameError,
    RelvmShapeError,
    RelvmTypeError,
    RelvmUnsupportedError,
    counted,
    known_names,
    near_matches,
)
from relvm.ir.bind_dims import match_dims
from relvm.ir.dtypes import dtype_of
from relvm.ir.expr import (
    Binding,
    Block,
    BuiltinCall,
    Call,
    Constant,
    DimValue,
    DTypeValue,
    Expr,
    Function,
    FunctionRef,
    Fused,
    If,
    KernelCall,
    MatchCast,
    Module,
    Null,
    OpCall,
    PackedCall,
    PackedRef,
    Prim,
    PrimCall,
    Shape,
    String,
    Tuple,
    TupleItem,
    Var,
)
from relvm.ir.kernel_def_interpreter import evaluate_kernel
from relvm.ir.operator import SizeClaim, find_operator, shape_claims
from relvm.ir.relate_sizes import find_replacement, has_dims, infer_with_replacements, with_dims
from relvm.ir.scalar_ops import evaluate_row, find_row, scalar_dtype
from relvm.ir.symbolic import AnyDim, DimVar, as_var, evaluate_with
from relvm.ir.thread_updates import thread_updates
from relvm.ir.type_inference import infer_types
from relvm.ir.types import (
    VOID,
    FuncType,
    ListType,
    OptionalType,
    PrimType,
    ShapeType,
    TensorType,
    TupleType,
    Type,
    dims_of,
    is_proven,
)
from relvm.ir.value_ranges import range_claims
from relvm.tables import STATUS


@record
class _TailCall:
    """A tail call that a function returns instead of its result, so that its caller runs the call."""

    callee: Any
    args: tuple


@record
class InterpretedClosure:
    """A closure: a function with the values of its captured variables and dimension variables."""

    evaluator: _Evaluator
    function: Function
    variables: dict[Var, Any]
    dims: dict[DimVar, int]

    def __call__(self, *args: Any) -> Any:
        return self.evaluator.call(self, args)


@record
class _Partial:
    """A partial application: a function whose last arguments are fixed to `captured`."""

    evaluator: _Evaluator
    function: Any
    captured: tuple

    def __call__(self, *args: Any) -> Any:
        return self.evaluator.call(self, args)


def evaluate(module: Module, name: str, *args: Any, packed: Mapping[str, Callable] | None = None) -> Any:
    """Evaluate function `name` of the module for `args`, with the operators' NumPy reference implementations.

    Parameters
    ----------
    module
        A module at stage PARSED, TYPED or ANF.
    name
        The name of a function of the module.
    args
        The arguments: np.ndarray, Python scalars, or tuples of these.
    packed
        The packed functions that the module calls, by name.  Their arguments and results are values of the same kinds
        as `args`.

    Raises
    ------
    RelvmArgumentError, RelvmTypeError, RelvmShapeError, RelvmNameError
        In the same cases as in the virtual machine.
    """
    threaded = thread_updates(module)
    if threaded is not module:
        module = infer_types(threaded)
    evaluator = _Evaluator(module, packed or {})
    return evaluator.call(evaluator.global_function(name), args)


class _Evaluator:
    def __init__(self, module: Module, packed: Mapping[str, Callable]) -> None:
        self.functions = {f.name: f for f in module.functions}
        self.kernels = dict(module.kernels)
        self.packed = packed

    def global_function(self, name: str) -> InterpretedClosure:
        if name not in self.functions:
            raise RelvmNameError(f"no function {name}{known_names(name, self.functions)}")
        return InterpretedClosure(self, self.functions[name], {}, {})

    def call(self, callee: Any, args: tuple) -> Any:
        result = _TailCall(callee, args)
        while isinstance(result, _TailCall):
            result = self.run_function(result.callee, result.args)
        return result

    def run_function(self, callee: Any, args: tuple) -> Any:
        """Run `callee` with `args`.  Return its result, or a `_TailCall` if it ends with a tail call."""
        while isinstance(callee, _Partial):
            callee, args = callee.function, (*args, *callee.captured)
        if not isinstance(callee, InterpretedClosure):
            if callable(callee):
                return callee(*args)
            raise RelvmTypeError(f"expected a function, got {type(callee).__name__}")
        function = callee.function
        if len(args) != len(function.params):
            raise RelvmArgumentError(
                f"{function.name} takes {counted(len(function.params), 'argument')}, got {len(args)}"
            )
        variables, dims = dict(callee.variables), dict(callee.dims)
        pending: list[tuple[str, AnyDim, int]] = []
        for param, name, value in zip(function.params, function.input_names, args, strict=True):
            _match(f"{function.name}: argument {name}", param.type, value, dims, pending)
            variables[param] = value
        _check_ranges(function, dims)
        _check_pending(pending, dims)
        result = self.run_tail(function.body, variables, dims, function.result_type)
        if function.result_type is not None and not isinstance(result, _TailCall):
            _check(f"{function.name}: result", function.result_type, result, dims)
        return result

    def run_tail(self, expr: Expr, variables: dict[Var, Any], dims: dict[DimVar, int], result_type: Type | None) -> Any:
        """Evaluate `expr` in tail position.  Return its value, or a `_TailCall` that the caller must run.

        result_type: the annotated result type of the function.  A call is a tail call only if its result needs no
        run-time check against this type.
        """
        match expr:
            case Block(bindings=(*before, Binding(var, value)), result=result) if result is var:
                self.bindings(before, variables, dims)
                return self.run_tail(value, variables, dims, result_type)
            case Block():
                self.bindings(expr.bindings, variables, dims)
                return self.run_tail(expr.result, variables, dims, result_type)
            case If(cond, then, orelse):
                branch = then if bool(self.expr(cond, variables, dims)) else orelse
                return self.run_tail(branch, dict(variables), dict(dims), result_type)
            case Call(callee, args) if result_type is None or (
                expr.type is not None and is_proven(result_type, expr.type)
            ):
                called = self.expr(callee, variables, dims)
                return _TailCall(called, tuple(self.expr(arg, variables, dims) for arg in args))
        return self.expr(expr, variables, dims)

    def expr(self, expr: Expr, variables: dict[Var, Any], dims: dict[DimVar, int]) -> Any:
        def value(part: Expr) -> Any:
            return self.expr(part, variables, dims)

        match expr:
            case Var():
                return variables[expr]
            case Constant(value=array):
                return array
            case Prim(value=scalar) | String(value=scalar):
                return scalar
            case DimValue(dim):
                return _dim_value(dim, dims)
            case PrimCall(function, args):
                operands = tuple(map(value, args))
                return evaluate_row(find_row(function, tuple(map(scalar_dtype, operands))), *operands)
            case DTypeValue(value=dtype):
                return dtype.numpy
            case Null():
                return None
            case Shape(dims=parts):
                for claim in shape_claims(parts):
                    claim.check(_dim_value(claim.left, dims), _dim_value(claim.right, dims))
                return tuple(_dim_value(dim, dims) for dim in parts)
            case FunctionRef(name):
                return self.global_function(name)
            case PackedRef(name):
                return self.packed_function(name)
            case Tuple(fields):
                return tuple(map(value, fields))
            case TupleItem(tuple_, index):
                return value(tuple_)[index]
            case If(cond, then, orelse):
                return self.expr(then if bool(value(cond)) else orelse, dict(variables), dict(dims))
            case Fused(body):
                return self.expr(body, dict(variables), dims)
            case Function():
                return InterpretedClosure(self, expr, variables, dims)
            case Call(callee, args):
                result = self.call(value(callee), tuple(map(value, args)))
                if isinstance(callee, Var) and expr.type is not None:
                    _check(f"the result of {callee.name}", expr.type, result, dims)
                return result
            case OpCall(op, args, attributes):
                values = tuple(map(value, args))
                self.check_sizes(expr, values, dims)
                try:
                    return _as_values(op.numpy(*values, **dict(attributes)), expr.type)
                except RelvmError:
                    raise
                except ValueError as error:  # NumPy raises it if the array is too large
                    raise RelvmShapeError(f"{op}: {error}") from error
                except MemoryError as error:
                    raise RelvmMemoryError(f"{op}: {error}") from error
            case KernelCall():
                return self.kernel_call(expr, tuple(map(value, expr.args)), dims)
            case BuiltinCall("make_closure", (callee, *captured)):
                return _Partial(self, value(callee), tuple(map(value, captured)))
            case BuiltinCall("assert", (cond, String(message))):
                if not value(cond):
                    raise RelvmAssertionError(message)
                return None
            case BuiltinCall("check_equal" | "check_at_most" as name, (left, right, String(message))):
                SizeClaim(name.removeprefix("check_"), 0, 0, message).check(value(left), value(right))
                return None
            case BuiltinCall("check_elements", (differs, found, expected, String(where))):
                _check_elements(where, *map(value, (differs, found, expected)))
                return None
            case BuiltinCall("fail", (status, String(message))):
                raise getattr(errors, STATUS[value(status)].python_class)(message)
            case BuiltinCall("check_update", (tensor, String(where), *others)):
                _check_update(where, value(tensor), tuple(map(value, others)))
                return ()
            case BuiltinCall("update_tensor", (target, new)):
                np.copyto(value(target), value(new))
                return ()
            case BuiltinCall("print", args):
                return tuple(map(value, args)) and None
            case BuiltinCall(name):
                raise RelvmUnsupportedError(f"builtin {name} is not supported by the reference evaluator")
            case PackedCall(name, args):
                result = self.packed_function(name)(*map(value, args))
                if expr.type == VOID:
                    return ()
                _check(f"the result of {name}", expr.type, result, dims)
                return result
            case Block():
                return self.block(expr, variables, dims)
        raise AssertionError(f"the reference evaluator does not know {type(expr).__name__}")

    def kernel_call(self, call: KernelCall, args: tuple, dims: Mapping[DimVar, int]) -> Any:
        kernel = self.kernels.get(call.kernel)
        if kernel is None:
            raise RelvmNameError(f"no kernel {call.kernel}{near_matches(call.kernel, self.kernels)}")
        where = f"kernel {kernel.name}"
        if len(args) != len(kernel.inputs):
            raise RelvmArgumentError(f"{where} takes {counted(len(kernel.inputs), 'argument')}, got {len(args)}")
        arrays = tuple(
            find_operator("to_tensor").numpy(arg, dtype=buffer.dtype)
            if buffer.shape == () and isinstance(arg, bool | int | float)
            else arg
            for buffer, arg in zip(kernel.inputs, args, strict=True)
        )
        sizes: dict[DimVar, int] = {}
        pending: list[tuple[str, AnyDim, int]] = []
        for buffer, array in zip(kernel.inputs, arrays, strict=True):
            _match(f"{where}: argument {buffer.name}", buffer.type, array, sizes, pending)
        stated: dict[DimVar, AnyDim] = {}
        if call.type is not None:
            match_dims(kernel.result_type, call.type, stated)
        sizes = {var: _dim_value(dim, dims) for var, dim in stated.items()} | sizes
        for var in kernel.dim_vars:
            if var not in sizes:
                raise RelvmTypeError(f"{where}: the size {var.name} is not known here")
        _check_pending(pending, sizes)
        outputs = evaluate_kernel(kernel, sizes, arrays)
        return outputs[0] if len(outputs) == 1 else outputs

    def check_sizes(self, call: OpCall, values: tuple, dims: Mapping[DimVar, int]) -> None:
        """Check that the sizes of `values`, the arguments of `call`, satisfy the operator's type rule.

        A dimension broadcasts only if the type of the argument states that its size is 1.  Any other dimension must
        equal the corresponding dimension of the other argument, even if its size happens to be 1.

        Raises
        ------
        RelvmShapeError
            The arguments do not fit.
        """
        types = tuple(with_dims(arg.type) for arg in call.args)
        if not all(map(has_dims, types)):
            return
        sizes = dict(dims)
        for type_, value in zip(types, values, strict=True):
            if isinstance(type_, TensorType | ShapeType):
                shape = value.shape if isinstance(type_, TensorType) else value
                found = ((as_var(dim), n) for dim, n in zip(dims_of(type_), shape, strict=True))
                sizes |= {var: n for var, n in found if var}

        def replacement(first: AnyDim, second: AnyDim) -> tuple[DimVar, AnyDim] | None:
            same = _dim_value(first, sizes) == _dim_value(second, sizes)
            return find_replacement(None, first, second) if same else None

        if any(type_ is not arg.type for type_, arg in zip(types, call.args, strict=True)):
            types, _ = infer_with_replacements(call.op, types, call.attributes, replacement)
        for claim in call.op.claims(types, call.attributes):
            claim.check(_dim_value(claim.left, sizes), _dim_value(claim.right, sizes))

    def block(self, block: Block, variables: dict[Var, Any], dims: dict[DimVar, int]) -> Any:
        self.bindings(block.bindings, variables, dims)
        return self.expr(block.result, variables, dims)

    def bindings(
        self, bindings: Iterable[Binding | MatchCast], variables: dict[Var, Any], dims: dict[DimVar, int]
    ) -> None:
        for binding in bindings:
            value = self.expr(binding.value, variables, dims)
            if isinstance(value, InterpretedClosure) and value.function is binding.value:
                value.variables[binding.var] = value
            if isinstance(binding, MatchCast):
                _check(binding.where or f"match_cast {binding.var.name}", binding.var.type, value, dims)
            variables[binding.var] = value

    def packed_function(self, name: str) -> Callable:
        if name not in self.packed:
            raise RelvmNameError(f"no packed function {name}{near_matches(name, self.packed)}")
        return self.packed[name]


def _check_update(where: str, target: np.ndarray, others: tuple) -> None:
    """Check that a program may update `target`: that it is writable, and shares no memory with `others`."""
    if not target.flags.writeable:
        raise RelvmTypeError(f"{where} is updated: expected a writable tensor, found a read-only one")
    for other in others:
        if isinstance(other, np.ndarray):
            if np.may_share_memory(target, other):
                raise RelvmArgumentError(f"{where} is updated, but shares memory with another argument")
        elif isinstance(other, tuple | list) or callable(other):
            raise RelvmTypeError(f"{where} is updated, but another argument has type {type(other).__name__}")


def _dim_value(dim: AnyDim, dims: Mapping[DimVar, int]) -> int:
    try:
        value = evaluate_with(dim, dims.get)
    except ZeroDivisionError as error:
        raise RelvmShapeError(f"{dim}: {error}") from None
    assert isinstance(value, int), f"dimension {dim} is not known"
    if not -(1 << 63) <= value < 1 << 63:
        raise RelvmShapeError(f"{dim}: {value} is out of the range of i64")
    return value


def _check_ranges(function: Function, dims: Mapping[DimVar, int]) -> None:
    """Raise RelvmShapeError if a dimension variable is outside the bounds that the function declares."""
    for claim in range_claims(function):
        claim.check(_dim_value(claim.left, dims), _dim_value(claim.right, dims))


def _as_values(result: Any, type_: Type | None) -> Any:
    """Convert `result`, the result of a NumPy reference implementation, to arrays with the dtypes of `type_`."""
    if isinstance(result, tuple) and not isinstance(type_, ShapeType):
        fields = type_.fields if isinstance(type_, TupleType) else (None,) * len(result)
        return tuple(_as_values(part, field) for part, field in zip(result, fields, strict=True))
    if isinstance(type_, TensorType):
        return np.asarray(result, dtype=type_.dtype.numpy if type_.dtype else None)
    return result


def _check(where: str, type_: Type, value: Any, dims: dict[DimVar, int]) -> None:
    """Check that `value` has type `type_`.

    where: the beginning of an error message.
    dims: the values of dimension variables.  A variable that is missing is added with the actual size.
    """
    pending: list[tuple[str, AnyDim, int]] = []
    _match(where, type_, value, dims, pending)
    _check_pending(pending, dims)


def _match(where: str, type_: Type, value: Any, dims: dict[DimVar, int], pending: list) -> None:
    """Check that `value` has type `type_`, and bind the dimension variables of the type.

    Some checks must wait until all variables have values.  These are the checks of constant dimensions, of compound
    dimensions such as `n + 1`, of list items and of optional values.

    where: the beginning of an error message.
    dims: the values of dimension variables.  A variable that is missing is added with the actual size.
    pending: the list to which the checks that must wait are added.
    """
    match type_:
        case TensorType(dtype, shape, rank):
            array = value if isinstance(value, np.ndarray | np.generic) else None
            if array is None:
                raise RelvmTypeError(f"{where}: expected a tensor, got {type(value).__name__}")
            if dtype and dtype_of(array.dtype) != dtype:
                raise RelvmTypeError(f"{where}: expected dtype {dtype}, got {dtype_of(array.dtype)}")
            if rank is not None and array.ndim != rank:
                raise RelvmTypeError(f"{where}: expected rank {rank}, got {array.ndim}")
            _match_dims(where, shape, array.shape, dims, pending)
        case ShapeType(dims=expected, rank=rank):
            if not isinstance(value, tuple) or not all(isinstance(v, int) for v in value):
                raise RelvmTypeError(f"{where}: expected a shape, got {type(value).__name__}")
            if rank is not None and len(value) != rank:
                raise RelvmTypeError(f"{where}: expected a shape of rank {rank}, got rank {len(value)}")
            _match_dims(where, expected, value, dims, pending)
        case TupleType(fields):
            if not isinstance(value, tuple) or len(value) != len(fields):
                raise RelvmTypeError(f"{where}: expected a tuple of {counted(len(fields), 'item')}")
            for i, (field, part) in enumerate(zip(fields, value, strict=True)):
                _match(f"{where}, item {i}", field, part, dims, pending)
        case ListType(item):  # items bind no variables, so they are checked last
            if not isinstance(value, list | tuple):
                raise RelvmTypeError(f"{where}: expected a list, got {type(value).__name__}")
            for i, part in enumerate(value):
                if item is None:
                    raise RelvmTypeError(f"{where}, item {i}: expected no value, got {type(part).__name__}")
                pending.append((f"{where}, item {i}", item, part))
        case OptionalType(inner):
            if value is not None and inner is None:
                raise RelvmTypeError(f"{where}: expected no value, got {type(value).__name__}")
            if value is not None:
                pending.append((where, inner, value))
        case FuncType():
            if not callable(value):
                raise RelvmTypeError(f"{where}: expected a function, got {type(value).__name__}")
        case PrimType(dtype, expected):
            kinds = {"bool": bool, "i64": int, "f64": float}
            if type(value) is not kinds[dtype.name]:
                raise RelvmTypeError(f"{where}: expected a {dtype} scalar, got {type(value).__name__}")
            if expected is not None and isinstance(value, int):
                _match_dims(where, (expected,), (value,), dims, pending, "")


def _match_dims(
    where: str,
    expected,
    got: tuple[int, ...],
    dims: dict[DimVar, int],
    pending: list,
    what: str = "dimension {} to be ",
) -> None:
    for i, (dim, size) in enumerate(zip(expected or (), got, strict=False)):
        var = as_var(dim)
        if var is not None and var not in dims:
            dims[var] = size
        else:
            pending.append((f"{where}: expected {what.format(i)}", dim, size))


def _check_pending(pending: list, dims: Mapping[DimVar, int]) -> None:
    for where, dim, size in pending:
        if isinstance(dim, Type):
            _check(where, dim, size, dict(dims))
            continue
        expected = _dim_value(dim, dims)
        if expected != size:
            raise RelvmShapeError(f"{where}{expected}, got {size}")


def _check_elements(where: str, differs: np.ndarray, found: np.ndarray, expected: np.ndarray) -> None:
    """Raise RelvmAssertionError if an element of `differs` is true."""
    wrong = np.argwhere(differs)
    if not len(wrong):
        return
    first = tuple(map(int, wrong[0]))
    raise RelvmAssertionError(
        f"{where}: element [{', '.join(map(str, first))}] is {found[first]}, expected {expected[first]}"
        f" ({len(wrong)} of {differs.size} elements differ)"
    )
