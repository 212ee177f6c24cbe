"""Lowering of an entry function, and of the functions that it calls, to the lowered IR (relvm/aot/lower/ir.py)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NoReturn

from relvm.aot.config import AotConfig
from relvm.aot.lower.assert_bounds import asserted_bound
from relvm.aot.lower.call_graph import RecursiveGroup, call_order
from relvm.aot.lower.destinations import Targets, find_targets, tensor_leaves
from relvm.aot.lower.ir import (
    DEVICE,
    Branch,
    CallExtern,
    CallFunction,
    Check,
    CheckRange,
    CheckSizes,
    Compute,
    Continue,
    Copy,
    DimScalar,
    LoweredFunction,
    LoweredModule,
    MemoryKind,
    Move,
    ReadItem,
    RunKernel,
    Scalar,
    ScalarConstant,
    ScalarVar,
    SetScalar,
    SetSize,
    Statement,
    TensorArgument,
    TensorStorage,
    WriteItem,
    always_continues,
)
from relvm.aot.lower.loop_carried_buffers import add_copy_storages
from relvm.aot.lower.signature import entry_ports
from relvm.aot.lower.unsupported import Refusals, Refused
from relvm.aot.lower.values import (
    ClosureValue,
    TensorValue,
    TupleValue,
    Value,
    expect_kind,
    expect_scalar,
    is_size,
    scalars_of,
    shape_of_dims,
    shapes_to_tuples,
    tensors_of,
)
from relvm.data_classes import dataclass
from relvm.errors import RelvmNameError, known_names
from relvm.ir.dtypes import BOOL, F64, I64, U64, DType
from relvm.ir.expr import (
    Binding,
    Block,
    BuiltinCall,
    Call,
    Constant,
    DimValue,
    Expr,
    Function,
    FunctionRef,
    If,
    KernelCall,
    MatchCast,
    Module,
    Null,
    PackedCall,
    Prim,
    PrimCall,
    Shape,
    String,
    Tuple,
    TupleItem,
    Var,
    prim,
)
from relvm.ir.scalar_ops import DTYPE_OF_LETTER, find_row
from relvm.ir.symbolic import AnyDim, DimVar, as_var, difference, dim_op, dim_vars, evaluate_with, product, var_dim
from relvm.ir.types import VOID, FuncType, ObjectType, PrimType, ShapeType, TensorType, TupleType, Type, type_vars
from relvm.ir.value_ranges import Range, declared_ranges, range_of
from relvm.ir.visitor import use_counts
from relvm.kernels.kernel import Kernel
from relvm.quoting import c_identifier
from relvm.tables import STATUS

_NAMED = {"list": "lists", "string": "tensors of strings", "random": "random numbers", "print": "printing"}


def lower_main(module: Module, config: AotConfig, entry: str = "main") -> LoweredModule:
    """Lower a function and all functions that it calls.

    Tensors become storages, and scalars become C variables.  An alias or a view of a tensor is in the same storage, and
    both branches of an `if` write to the same storages.  Results are computed in the storages of the caller where
    possible (relvm/aot/lower/destinations.py).  A tuple is replaced by its fields, and a shape by its dimensions.  A
    recursive tail call becomes a jump.

    Parameters
    ----------
    module
        A module at stage LOWERED.
    entry
        The name of the function.

    Raises
    ------
    RelvmNameError
        The function does not exist.
    RelvmUnsupportedError
        The program needs a heap, an escaping closure, unbounded recursion or a size without a bound.  The message
        lists all unsupported constructs with their locations.
    RelvmArgumentError
        Two inputs, or two outputs, have the same name in C.
    """
    functions = {function.name: function for function in module.functions}
    if entry not in functions:
        raise RelvmNameError(f"no function {entry}{known_names(entry, functions)}")
    ranges: dict[str, dict[DimVar, Range]] = {entry: declared_ranges(functions[entry])}
    lowered: list[LoweredFunction] = []
    kernels, refusals = dict(module.kernels), Refusals()
    for loop in call_order(functions, entry, refusals):
        with suppress(Refused):
            lowered.append(
                _Lowering(functions, kernels, loop, ranges, refusals, is_entry=loop.head == entry).function()
            )
    refusals.raise_all()
    inputs, outputs = entry_ports(functions[entry], lowered[0])
    run = (s.kernel for function in lowered for s in function.statements() if isinstance(s, RunKernel))
    used = {name: kernels[name] for name in dict.fromkeys(run)}
    return LoweredModule(tuple(reversed(lowered)), used, config.calls, inputs, outputs)


@dataclass
class _Section:
    """One section of a lowered function.  Each function of a group of mutually recursive functions becomes a section.

    number: the index of the section.   source: the function that it implements.   sizes, scalars, inputs: the sizes,
    scalar parameters and input storages of `source`, in order.
    """

    number: int
    source: Function
    sizes: tuple[DimVar, ...]
    scalars: list[ScalarVar]
    inputs: tuple[int, ...]


class _Lowering:
    """Lowers a group of mutually recursive functions to one lowered function, in which their calls become jumps."""

    def __init__(
        self,
        functions: Mapping[str, Function],
        kernels: Mapping[str, object],
        loop: RecursiveGroup,
        ranges: dict[str, dict[DimVar, Range]],
        refusals: Refusals,
        *,
        is_entry: bool,
    ) -> None:
        self.is_entry = is_entry
        self.functions = functions
        self.kernels = kernels
        self.loop = loop
        self.refusals = refusals
        self.storages: list[TensorStorage] = []
        self.constants: dict[Constant, int] = {}  # a constant -> the index of its storage
        self.targets: dict[Var, Targets] = {}  # variables that are computed in storages of a result
        self.all_ranges = ranges
        self.ranges = ranges.setdefault(loop.head, {})
        self.dims: dict[DimVar, AnyDim] = {}
        self.values: dict[Var, Value] = {}
        self.dims_of_scalars: dict[ScalarVar, AnyDim] = {}  # the values of scalars that wrap around, before they do
        self.sections: dict[str, _Section] = {}
        self.current = loop.head  # the name of the function that is being lowered
        self.origin = functions[loop.head].origin  # the source location of the current binding or near it
        self.body: list[Statement] = []
        self.names: dict[str, int] = {}

    # ---- the function ----

    def function(self) -> LoweredFunction:
        """Return the lowered function.  Raise Refused if any construct of the program is not supported."""
        head = self.section(self.loop.head)
        type_ = head.source.func_type.result
        if self.is_entry:
            type_ = shapes_to_tuples(type_)
        results: list[ScalarVar] = []
        target = None
        with suppress(Refused):
            ids = self.new_storages("result", type_, MemoryKind.OUTPUT)
            target = self.new_value("result", type_, ids, results)
        bodies: list[tuple[Statement, ...]] = []
        while len(bodies) < len(self.sections):  # lowering a section can add sections
            section = list(self.sections.values())[len(bodies)]
            self.current, self.origin = section.source.name, section.source.origin
            bodies.append(self.lower_block(section.source.block, target, tail=True))
        for number in range(len(self.storages)):
            with suppress(Refused):
                self.size_bytes(number, head)
        if not self.refusals.is_empty:
            raise Refused
        if self.is_entry:
            bodies[0] = (*self.check_values(head), *bodies[0])
        bodies = add_copy_storages(bodies, self.storages)
        return LoweredFunction(
            head.source.name,
            head.inputs,
            _storages_of(target),
            tuple((var, *_bounds(range_of(var_dim(var), self.ranges))) for var in head.sizes),
            tuple(head.scalars),
            tuple(results),
            tuple(self.storages),
            tuple(self.size_bytes(number, head) for number in range(len(self.storages))),
            tuple(bodies),
            {var: _storages_of(value) for var, value in self.values.items()},
        )

    def section(self, name: str) -> _Section:
        """Return the section of the lowered function for the source function `name`.  Create it when first needed."""
        if name not in self.sections:
            source, outer = self.functions[name], (self.current, self.origin)
            self.current = name
            sizes = tuple(dict.fromkeys(var for param in source.params for var in type_vars(param.type)))
            self.dims |= {var: var_dim(var) for var in sizes}
            scalars: list[ScalarVar] = []
            for param in source.params:
                self.origin = param.origin
                with suppress(Refused):
                    ids = self.new_storages(param.name, param.type, MemoryKind.INPUT)
                    self.values[param] = self.new_value(param.name, param.type, ids, scalars, is_param=True)
            inputs = tuple(number for param in source.params for number in _storages_of(self.values.get(param)))
            self.sections[name] = _Section(len(self.sections), source, sizes, scalars, inputs)
            self.current, self.origin = outer
        return self.sections[name]

    def check_values(self, head: _Section) -> Iterator[Statement]:
        """Yield checks of scalar parameters with a required value: a parameter of type `i64(2 * n)` must be 2 * n."""
        params = head.source.params
        for type_, var in scalars_of(params, map(self.values.__getitem__, params)):
            if type_.value is not None and isinstance(var, ScalarVar):
                equal = self.scalar(f"{var.name}_as_stated", BOOL)
                yield Compute(equal, "eq_i64", (var, DimScalar(self.dim(type_.value))))
                message = f"{head.source.name}: argument {var.name}: expected a value of {type_.value}"
                yield Check(equal, "SHAPE_ERROR", message)

    def new_value(
        self, name: str, type_: Type, ids: list[int], scalars: list[ScalarVar], *, is_param: bool = False
    ) -> Value:
        """Return the storages and C variables for a new value, which is a parameter or the result of a call or an if.

        name, type_: the name and the type of the new value.
        ids: the indices of storages.  The tensors of the new value take the first ones, which are removed from `ids`.
        scalars: the list to which the variables for the scalars of the new value are added.
        is_param: whether the value is a parameter.  A parameter that only passes a size (see `is_size`) has no
        variable.
        """
        match type_:
            case TensorType():
                return TensorValue(ids.pop(0), tuple(map(self.dim, type_.known_shape)))
            case PrimType(value=size) if is_param and is_size(type_) and size is not None:
                return DimScalar(self.dim(size))
            case PrimType(dtype):
                scalars.append(self.scalar(name, dtype))
                return scalars[-1]
            case ShapeType(dims) if dims is not None:
                return shape_of_dims(map(self.dim, dims))
            case TupleType(fields):
                items = (self.new_value(name, item, ids, scalars, is_param=is_param) for item in fields)
                return TupleValue(tuple(items))
        if is_param:
            self.refuse(name, f"a parameter of type {type_}")
        is_closure = isinstance(type_, FuncType)
        what = "a closure as the result of a function or an if branch"
        self.refuse(name, what if is_closure else f"a value of type {type_} as the result of a function or an if")

    def new_storages(self, name: str, type_: Type, kind: MemoryKind, targets: Targets = ()) -> list[int]:
        """Return the index of a storage for each tensor in a type.

        name: the name of the variable.
        targets: for each tensor, the storage to use, or None for a new storage of the kind `kind`.
        """
        leaves = list(tensor_leaves(type_))
        ids = []
        for position, (leaf, number) in enumerate(zip(leaves, targets or (None,) * len(leaves), strict=True)):
            if number is None:
                if leaf.dtype is None or leaf.shape is None:
                    self.refuse(name, f"a tensor of unknown rank or dtype ({leaf})")
                if leaf.dtype.is_string:
                    self.refuse(name, "tensors of strings")
                label = name if len(leaves) == 1 else f"{name}_{position}"
                number = self.new_storage(TensorStorage(label, kind, leaf.dtype, leaf.shape, origin=self.origin))
            ids.append(number)
        return ids

    def new_storage(self, storage: TensorStorage) -> int:
        self.storages.append(storage)
        return len(self.storages) - 1

    def size_bytes(self, number: int, head: _Section) -> int:
        """Return the maximum size of storage `number` in bytes, or 0 if the caller provides the storage.

        If the size has no bound, refuse the storage.  If other constructs were refused before, the missing bound may be
        only a consequence of them, and Refused is raised without adding a reason.  This does not apply to a size that
        depends only on sizes of the entry.

        head: the section in which the function begins.
        """
        storage = self.storages[number]
        if storage.kind in (MemoryKind.INPUT, MemoryKind.OUTPUT):
            return 0
        shape = tuple(map(self.dim, storage.shape))
        ranges = [range_of(dim, self.ranges) for dim in shape]
        high = range_of(product((*shape, storage.dtype.size_bytes)), self.ranges).high
        if any(found.low < 0 for found in ranges):  # a run fails before it creates a tensor of a negative size
            high = math.prod([storage.dtype.size_bytes, *(max(0, found.high) for found in ranges)])
        if isinstance(high, float):
            unbounded = [str(dim) for dim, found in zip(shape, ranges, strict=True) if isinstance(found.high, float)]
            is_certain = self.is_entry and set(head.sizes) >= set(type_vars(TensorType(storage.dtype, shape)))
            if not is_certain and not self.refusals.is_empty:
                raise Refused
            self.origin = storage.origin
            if self.is_entry:
                free = {var.name: None for dim in shape for var in dim_vars(dim) if var in head.sizes}
                self.refusals.unbounded_sizes |= free
            self.refuse(
                storage.name,
                f"a tensor of {storage.dtype}[{', '.join(map(str, storage.shape))}] of unbounded size; "
                f"give {unbounded[0]} an upper bound",
            )
        return max(0, int(high))

    # ---- blocks ----

    def block(self, block: Block, target: Value | None, *, tail: bool) -> None:
        """Append the statements of a block.  They store the block's result in `target` or end with a jump (Continue).

        target: None if the result is not supported.
        tail: whether the block is in tail position, so that its last call can become a jump.
        """
        self.targets |= find_targets(block, _storages_of(target))
        for position, binding in enumerate(block.bindings):
            self.origin = binding.var.origin or self.origin
            last = tail and position + 1 == len(block.bindings) and block.result is binding.var
            with suppress(Refused):
                if isinstance(binding, MatchCast):
                    value = self.value(binding.value)
                    self.bind_dims(binding.var.type, value)
                    self.values[binding.var] = value
                    continue
                if last and self.append_continue(binding):
                    return
                self.values[binding.var] = self.binding(binding, last)
                if last and always_continues(self.body):
                    return
        with suppress(Refused):
            value = self.value(block.result)
            if target is not None and self.refusals.is_empty:
                self.store_result(value, target, block.result)

    def lower_block(self, block: Block, target: Value | None, *, tail: bool) -> tuple[Statement, ...]:
        outer, self.body = self.body, []
        self.block(block, target, tail=tail)
        inner, self.body = self.body, outer
        return tuple(inner)

    def store_result(self, value: Value, target: Value, expr: Expr) -> None:
        match value, target:
            case TensorValue(storage), TensorValue(into):
                if storage != into:
                    self.body.append(Copy(storage, into, self.bytes_of(value)))
            case TupleValue(items), TupleValue(into):
                for item, place in zip(items, into, strict=True):
                    self.store_result(item, place, expr)
            case DimScalar(actual), DimScalar(expected):
                self.bind_dim(expected, actual)
            case ClosureValue(), _:
                self.refuse(getattr(expr, "name", "result"), "a closure that escapes the function that creates it")
            case ((ScalarVar() | ScalarConstant() | DimScalar()), ScalarVar()):
                if value is not target:
                    self.body.append(SetScalar(target, value))

    def binding(self, binding: Binding, last: bool) -> Value:
        var, value = binding.var, binding.value
        match value:
            case KernelCall(kernel, args):
                return self.kernel(var, kernel, args)
            case If(cond, Block() as then, Block() as orelse):
                target = condition = None
                with suppress(Refused):
                    target = self.output_value(var)
                    condition = self.condition(cond)
                branches = [self.lower_block(part, target, tail=last) for part in (then, orelse)]
                if target is None or condition is None:
                    raise Refused
                self.body.append(Branch(condition, *branches))
                return target
            case Call(callee, args):
                return self.call(var, self.value(callee), tuple(map(self.value, args)))
            case PrimCall(function, args):
                row = find_row(function, tuple(arg.known_element_type for arg in args))
                dim = (
                    self.dim(var.type.value) if isinstance(var.type, PrimType) and var.type.value is not None else None
                )
                if dim is not None and not row.fails and self.is_int64(dim):
                    return DimScalar(dim)
                target = self.scalar(var.name, DTYPE_OF_LETTER[row.result])
                self.body.append(Compute(target, row.name, tuple(map(self.scalar_value, args))))
                if dim is not None:
                    self.dims_of_scalars[target] = dim
                return target
            case Tuple(fields):
                return TupleValue(tuple(map(self.value, fields)))
            case TupleItem(tuple_, index):
                return expect_kind(TupleValue, self.value(tuple_)).items[index]
            case BuiltinCall(name, args):
                return self.builtin(var, name, args)
            case PackedCall(name, args):
                return self.packed_call(var, name, args)
        return self.value(value, var.name)

    def value(self, expr: Expr, name: str = "") -> Value:
        match expr:
            case Var():
                if expr not in self.values:
                    raise Refused
                return self.values[expr]
            case Constant(value=array):
                if expr not in self.constants:
                    name, dtype = f"constant_{len(self.storages)}", expr.known_element_type
                    storage = TensorStorage(name, MemoryKind.CONSTANT, dtype, array.shape, value=array)
                    self.constants[expr] = self.new_storage(storage)
                return TensorValue(self.constants[expr], array.shape)
            case Prim(value=value):
                return ScalarConstant(value)
            case DimValue(dim=dim):
                return DimScalar(self.dim(dim))
            case Shape(dims=dims):
                return self.shape_value(tuple(map(self.dim, dims)))
            case FunctionRef(name):
                return ClosureValue(name, ())
        return self.refuse(name or "a value", "null" if isinstance(expr, Null) else type(expr).__name__)

    def tensor(self, expr: Expr) -> TensorValue:
        return expect_kind(TensorValue, self.value(expr))

    def shape_dims(self, expr: Expr) -> tuple[AnyDim, ...]:
        return tuple(map(self.as_dim, map(expect_scalar, expect_kind(TupleValue, self.value(expr)).items)))

    def bytes_of(self, tensor: TensorValue) -> AnyDim:
        return product((*tensor.dims, self.storages[tensor.storage].dtype.size_bytes))

    def scalar_value(self, expr: Expr) -> Scalar:
        return expect_scalar(self.value(expr))

    # ---- what bindings compute ----

    def packed_call(self, var: Var, name: str, args: tuple[Expr, ...]) -> Value:
        """Append a call of a packed function of the host, and return its result."""
        operands: list[TensorArgument | Scalar] = []
        for arg in args:
            match self.value(arg, var.name):
                case TensorValue(storage, dims):
                    operands.append(TensorArgument(storage, dims))
                case ScalarVar() | ScalarConstant() | DimScalar() as scalar:
                    operands.append(scalar)
                case _:
                    what = f"an argument of type {arg.type} of the host function {name}; pass tensors and scalars"
                    self.refuse(var.name, what)
        result: Value = TupleValue(())
        target: TensorArgument | ScalarVar | None = None
        is_ignored = isinstance(var.type, ObjectType) and use_counts(self.functions[self.current])[var] == 0
        if var.type != VOID and not is_ignored:
            if any(size not in self.dims for size in type_vars(var.type)):
                self.refuse(var.name, f"a result of the host function {name} with a size that only the function knows")
            match var.type:
                case TensorType(dtype, shape) if dtype is not None and shape is not None and dtype.bits >= 8:
                    result = expect_kind(TensorValue, self.output_value(var))
                    target = TensorArgument(result.storage, result.dims)
                case PrimType(value=None):
                    result = self.output_value(var)
                    assert isinstance(result, ScalarVar)
                    target = result
                case _:
                    what = f"a result of type {var.type} of the host function {name}; "
                    self.refuse(var.name, what + "state a tensor of known dtype and shape, or a scalar")
        self.body.append(CallExtern(name, tuple(operands), target))
        return result

    def kernel(self, var: Var, name: str, args: tuple[Expr, ...]) -> Value:
        kernel = self.kernels[name]
        assert isinstance(kernel, Kernel), f"{name}: a kernel of another target"
        inputs = list(map(self.tensor, args))
        output_value = self.output_value(var)
        tensors = [*inputs, *tensors_of(output_value)]
        sizes: dict[DimVar, AnyDim] = {}
        for buffer, tensor in zip((*kernel.inputs, *kernel.outputs), tensors, strict=True):
            for expected, actual in zip(buffer.shape, tensor.dims, strict=True):
                if size := as_var(expected):
                    sizes.setdefault(size, actual)
        self.body.append(RunKernel(name, tuple(tensor.storage for tensor in tensors), tuple(sizes.values())))
        return output_value

    def output_value(self, var: Var, scalars: list[ScalarVar] | None = None) -> Value:
        """Return where to compute the value of `var`: storages for tensors, and new C variables for scalars.

        scalars: a list to which the C variables are added.
        """
        ids = self.new_storages(var.name, var.type, MemoryKind.WORKSPACE, self.targets.get(var, ()))
        return self.new_value(var.name, var.type, ids, [] if scalars is None else scalars)

    def builtin(self, var: Var, name: str, args: tuple[Expr, ...]) -> Value:
        match name:
            case "reshape":
                tensor, dims = self.tensor(args[0]), self.shape_dims(args[1])
                self.bind_dim(product(tensor.dims), product(dims))
                return TensorValue(tensor.storage, dims)
            case "to_device":
                if self.value(args[1]) != ScalarConstant(DEVICE):
                    self.refuse(var.name, f"device {args[1]}; the only device is {DEVICE} (CPU)")
                return self.value(args[0])
            case "shape_of":
                return shape_of_dims(self.tensor(args[0]).dims)
            case "shape_to_tensor":
                output_value = expect_kind(TensorValue, self.output_value(var))
                items = expect_kind(TupleValue, self.value(args[0])).items
                self.body += (WriteItem(output_value.storage, i, expect_scalar(item)) for i, item in enumerate(items))
                return output_value
            case "tensor_to_shape":
                return self.shape_of_elements(var, self.tensor(args[0]))
            case "tensor_item":
                storage = self.tensor(args[0]).storage
                item = self.read_item(var.name, storage)
                if self.storages[storage].dtype == U64:  # numbers too large for i64 became negative
                    self.body.append(CheckRange(item, 0, I64.limits[1]))
                return item
            case "tensor_element":
                storage, position = self.tensor(args[0]).storage, args[1]
                if not isinstance(position, Prim):
                    self.refuse(var.name, "an element at a computed position")
                item = self.read_item(var.name, storage, int(position.value))
                if self.storages[storage].dtype == U64:
                    self.body.append(CheckRange(item, 0, I64.limits[1]))
                return item
            case "scalar_to_tensor":
                output_value, value = expect_kind(TensorValue, self.output_value(var)), self.scalar_value(args[0])
                dtype = self.storages[output_value.storage].dtype
                if dtype.is_integer and dtype != I64:
                    low, high = dtype.limits
                    self.body.append(CheckRange(value, low, min(high, I64.limits[1])))
                self.body.append(WriteItem(output_value.storage, 0, value))
                return output_value
            case "make_closure":
                function = expect_kind(ClosureValue, self.value(args[0]))
                return ClosureValue(function.function, (*map(self.value, args[1:]), *function.captured))
            case "check_update":  # the caller provides memory that it can write and that overlaps no other memory
                return TupleValue(())
            case "update_tensor":
                updated, new = self.tensor(args[0]), self.tensor(args[1])
                self.body.append(Copy(new.storage, updated.storage, self.bytes_of(updated)))
                return TupleValue(())
            case "check_equal" | "check_at_most":
                left, right = (self.as_dim(self.scalar_value(arg)) for arg in args[:2])
                self.expect_equal(left if name == "check_equal" else dim_op("max", left, right), right)
                return TupleValue(())
            case "assert":
                condition = self.condition(args[0])
                if bound := asserted_bound(self.body, condition):
                    size, maximum = bound
                    self.ranges[size] = Range(self.ranges[size].low, min(self.ranges[size].high, maximum))
                if not isinstance(args[1], String):
                    self.refuse(var.name, "an assertion with a computed message")
                self.body.append(Check(condition, "ASSERTION_ERROR", args[1].value))
                return TupleValue(())
            case "fail":
                assert isinstance(args[0], Prim)
                if not isinstance(args[1], String):
                    self.refuse(var.name, "a failure with a computed message")
                self.body.append(Check(self.condition(prim(False)), STATUS[int(args[0].value)].name, args[1].value))
                return TupleValue(())
        construct = _NAMED.get(name.partition("_")[0], f"builtin {name}")
        return self.refuse(var.name, construct)

    def shape_of_elements(self, var: Var, tensor: TensorValue) -> Value:
        (length,) = tensor.dims
        if not isinstance(length, int):
            self.refuse(var.name, "a shape of unknown rank")
        dims = []
        for position in range(length):
            item = self.read_item(f"{var.name}_{position}", tensor.storage, position)
            dims.append(self.size(DimVar(f"{c_identifier(var.name)}_{position}"), item))
        return shape_of_dims(dims)

    def read_item(self, name: str, storage: int, position: int = 0) -> ScalarVar:
        dtype = self.storages[storage].dtype
        target = self.scalar(name, BOOL if dtype.is_bool else I64 if dtype.is_integer else F64)
        self.body.append(ReadItem(target, storage, position))
        return target

    def condition(self, cond: Expr) -> Scalar:
        value = self.value(cond)
        if isinstance(value, TensorValue):
            return self.read_item(getattr(cond, "name", "condition"), value.storage)
        return expect_scalar(value)

    def scalar(self, name: str, dtype: DType) -> ScalarVar:
        return ScalarVar(self.unique_name(name), dtype)

    def unique_name(self, name: str) -> str:
        base = c_identifier(name)
        count = self.names.get(base, 0)
        self.names[base] = count + 1
        return f"{base}_{count}"

    # ---- calls ----

    def call(self, var: Var, callee: Value, args: tuple[Value, ...]) -> Value:
        assert isinstance(callee, ClosureValue), f"{self.current}: {var.name}: a call of {callee}"
        function = self.functions[callee.function]
        args = (*args, *callee.captured)
        sizes = self.size_arguments(function, args)
        self.widen_ranges(function, sizes)
        results: list[ScalarVar] = []
        output_value = self.output_value(var, results)
        scalars = tuple(scalar for _, scalar in scalars_of(function.params, args))
        tensors = (tensor.storage for value in (*args, output_value) for tensor in tensors_of(value))
        self.body.append(CallFunction(callee.function, tuple(tensors), tuple(sizes.values()), scalars, tuple(results)))
        return output_value

    def size_arguments(self, function: Function, args: tuple[Value, ...]) -> dict[DimVar, AnyDim]:
        """Return the values of the function's dimension variables for `args`.  Append checks of sizes such as n + 1."""
        sizes: dict[DimVar, AnyDim] = {}
        checks: list[tuple[AnyDim, AnyDim]] = []
        for param, arg in zip(function.params, args, strict=True):
            if isinstance(arg, ClosureValue):
                self.refuse(param.name, f"a closure as an argument of {function.name}")
            for expected, actual in self.dim_pairs(param.type, arg):
                var = as_var(expected)
                if var is not None and var not in sizes:
                    sizes[var] = actual
                else:
                    checks.append((expected, actual))
        for expected, actual in checks:
            self.expect_equal(evaluate_with(expected, sizes.get), actual)
        order = dict.fromkeys(var for param in function.params for var in type_vars(param.type))
        return {var: sizes[var] for var in order}

    def dim_pairs(self, type_: Type, value: Value) -> Iterator[tuple[AnyDim, AnyDim]]:
        """Yield, for each dimension in a type, the dimension and its actual size in a value of that type."""
        match type_, value:
            case TensorType(shape=shape), TensorValue(dims=dims) if shape is not None:
                yield from zip(shape, dims, strict=True)
            case ShapeType(dims=expected), TupleValue(items) if expected is not None:
                yield from zip(expected, map(self.as_dim, map(expect_scalar, items)), strict=True)
            case PrimType(value=expected), _ if expected is not None:
                yield expected, self.as_dim(expect_scalar(value))
            case TupleType(fields), TupleValue(items):
                for field, item in zip(fields, items, strict=True):
                    yield from self.dim_pairs(field, item)

    def as_dim(self, scalar: Scalar) -> AnyDim:
        match scalar:
            case DimScalar(dim):
                return dim
            case ScalarConstant(value):
                return int(value)
            case ScalarVar(name):
                known = self.dims_of_scalars.get(scalar)
                return self.size(DimVar(name, signed=True), scalar) if known is None else known

    def widen_ranges(self, function: Function, sizes: Mapping[DimVar, AnyDim]) -> None:
        """Extend the recorded value ranges of a function's sizes to include the sizes in a call."""
        known = self.all_ranges.setdefault(function.name, {})
        for var, dim in sizes.items():
            found = range_of(dim, self.ranges)
            before = known.get(var, found)
            known[var] = Range(min(before.low, found.low), max(before.high, found.high))

    def append_continue(self, binding: Binding) -> bool:
        """If the last binding calls a member of the recursive group, append a jump and return True."""
        value = binding.value
        if not isinstance(value, Call):
            return False
        callee = self.value(value.callee)
        if not isinstance(callee, ClosureValue) or callee.function not in self.loop.members:
            return False
        args = (*map(self.value, value.args), *callee.captured)
        is_new = callee.function not in self.sections
        sizes = self.size_arguments(self.functions[callee.function], args)
        section = self.section(callee.function)
        if not self.refusals.is_empty:
            return True
        for var, dim in sizes.items():
            found = range_of(dim, self.ranges)
            actual = self.ranges.setdefault(var, found) if is_new else range_of(var_dim(var), self.ranges)
            if found.low < actual.low or found.high > actual.high:
                self.refuse(binding.var.name, f"a size {var.name} that grows in each iteration without an upper bound")
        changed = [(var, dim) for var, dim in sizes.items() if difference(var_dim(var), dim) != 0]
        passed = scalars_of(section.source.params, args)
        scalars = [(var, new) for var, (_, new) in zip(section.scalars, passed, strict=True) if new is not var]
        new = [tensor for arg in args for tensor in tensors_of(arg)]
        moves = [
            Move(param, tensor.storage, None, self.bytes_of(tensor))
            for param, tensor in zip(section.inputs, new, strict=True)
            if param != tensor.storage
        ]
        self.body.append(Continue(section.number, tuple(moves), tuple(changed), tuple(scalars)))
        return True

    # ---- sizes ----

    def dim(self, dim: AnyDim) -> AnyDim:
        """Return a dimension with variables replaced by their values, where these are known."""
        return evaluate_with(dim, self.dims.get)

    def bind_dims(self, type_: Type, value: Value) -> None:
        """Set the new dimension variables in `type_` to sizes in `value`.  Check other dimensions at run time."""
        for expected, actual in self.dim_pairs(type_, value):
            self.bind_dim(expected, actual)

    def bind_dim(self, expected: AnyDim, actual: AnyDim) -> None:
        var = as_var(expected)
        if var is not None and var not in self.dims:
            self.dims[var] = actual
        else:
            self.expect_equal(self.dim(expected), actual)

    def expect_equal(self, expected: AnyDim, actual: AnyDim) -> None:
        if difference(expected, actual) != 0:
            self.body.append(CheckSizes(expected, actual))

    def shape_value(self, dims: tuple[AnyDim, ...]) -> TupleValue:
        """Return a shape.  Append checks that its dimensions are not negative."""
        for dim in dims:
            if range_of(dim, self.ranges).low < 0:
                self.expect_equal(dim_op("max", dim, 0), dim)
        return shape_of_dims(dims)

    def is_int64(self, dim: AnyDim) -> bool:
        """Return whether the arithmetic that computes `dim` cannot overflow."""
        found = range_of(dim, self.ranges)
        return as_var(dim) is not None or (found.low >= I64.lowest and found.high <= I64.highest)

    def size(self, var: DimVar, scalar: Scalar) -> AnyDim:
        """Append the definition of the new run-time size `var` with the value of `scalar`.  Return the size."""
        self.dims[var] = var_dim(var)
        self.ranges[var] = range_of(var_dim(var), {})
        self.body.append(SetSize(var, scalar))
        return var_dim(var)

    def refuse(self, name: str, what: str) -> NoReturn:
        self.refusals.refuse(self.current, name, what, self.origin)


def _storages_of(value: Value | None) -> tuple[int, ...]:
    """Return the storages of the tensors in a value.   value: None if it is not supported."""
    return () if value is None else tuple(tensor.storage for tensor in tensors_of(value))


def _bounds(found: Range) -> tuple[int, int | None]:
    low = I64.lowest if isinstance(found.low, float) else found.low
    return int(low), None if isinstance(found.high, float) else int(found.high)
