"""Lowering of symbolic shapes to run-time checks and computations on a shape heap.

A shape heap is an array of integers that belongs to one call of a function.  It contains the values of dimensions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import field, replace

from relvm.data_classes import dataclass
from relvm.ir.bind_dims import plain_dim_vars
from relvm.ir.expr import (
    Binding,
    Block,
    BuiltinCall,
    Call,
    DimValue,
    DTypeValue,
    Expr,
    Function,
    FunctionRef,
    If,
    MatchCast,
    Module,
    Null,
    PackedCall,
    Prim,
    Shape,
    String,
    Tuple,
    TupleItem,
    Var,
    prim,
)
from relvm.ir.node import map_children, walk
from relvm.ir.symbolic import AnyDim, Dim, DimOp, DimVar, as_var, dim_vars, var_dim
from relvm.ir.types import (
    OBJECT,
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
from relvm.ir.verifier import Stage
from relvm.ir.visitor import is_tail_binding
from relvm.passes.pass_manager import module_pass
from relvm.passes.util.call_analysis import find_proven_functions
from relvm.passes.util.type_encoding import encode_type
from relvm.passes.util.unchecked_results import find_closures, find_unchecked_functions, is_unchecked
from relvm.tables import DIM_OPERATORS, SHAPE_CODES

_CODE = {row.name: prim(row.number) for row in SHAPE_CODES}
_OPERATOR = {row.name: row.number for row in DIM_OPERATORS}


@module_pass("lower_shapes", at=Stage.PLANNED)
def lower_shapes(module: Module) -> Module:
    """Check values against their types at run time, and compute symbolic dimensions and shapes:

    def f(x: f32[n, 4])   ->   heap = builtin.alloc_shape_heap(1)
                               _ = builtin.check_tensor_info(x, 2, dtype(f32), "f: argument x")
                               _ = builtin.match_shape(x, heap, 2, STORE, 0, EQUAL, 4, "f: argument x")
    shape(n * 2, 4)       ->   _ = builtin.compute_dim(heap, 1, mul, EQUAL_HEAP, 0, EQUAL, 2)
                               s = builtin.make_shape(heap, 2, EQUAL_HEAP, 1, EQUAL, 4)

    The pass checks parameters, match_casts, and the results of packed functions and of function values
    (relvm/passes/util/unchecked_results.py).  It also checks that dimension variables are within the bounds that the
    function declares (relvm/ir/value_ranges.py).

    A compound dimension, such as `n * 2`, is computed at its first use in a block.  A size is compared with a compound
    dimension as soon as all variables of the dimension are known.  A dimension that is never read is not stored.  A
    function that reads no dimensions has no heap.

    If all calls of a function are proven to pass arguments of the right types (relvm/passes/util/call_analysis.py), its
    parameters are not checked.  Only the dtypes of scalar parameters are still checked, because arithmetic relies on
    them.
    """
    proven = find_proven_functions(module)
    unchecked = find_unchecked_functions(module)
    return module.with_functions(
        tuple(_lower_function(function, function.name in proven, unchecked) for function in module.functions)
    )


def _lower_function(function: Function, proven: bool, unchecked: Collection[str]) -> Function:
    lowering = _Lowering(function, unchecked)
    scope = _Scope()
    # Parameters that lambda lifting added.  They are the last parameters, and their dimensions are bound first.
    captured = dict(function.attributes).get("captured", 0)
    first = len(function.params) - captured
    params = list(zip(function.params, function.input_names, strict=True))
    for param, name in (*params[first:], *params[:first]):
        lowering.origins = param.origins
        where = f"{function.name}: argument {name}"
        if proven:
            lowering.bind_dims(where, param.type, param, scope)
        else:
            lowering.check(where, param.type, param, OBJECT, scope)
    for claim in range_claims(function):
        sizes = (lowering.lower_atom(DimValue(dim), scope) for dim in (claim.left, claim.right))
        lowering.emit(scope, f"check_{claim.relation}", *sizes, String(claim.message))
    lowering.check_pending(scope)
    body = lowering.remove_unread_stores(lowering.block(function.block, scope, is_tail=True))
    if lowering.read:
        heap = Binding(lowering.heap, BuiltinCall("alloc_shape_heap", (prim(lowering.slot_count),)))
        body = replace(body, bindings=(heap, *body.bindings))
    return replace(function, body=body)


@dataclass
class _Scope:
    """The state of the lowering of one block.

    slots: a dimension -> the index of its value in the shape heap, the array of the function's dimension values.
    shapes: a shape -> the variable bound to its value.
    values: a dimension -> the variable bound to its value.
    bindings: the lowered bindings.
    pending: checks to append when all dimension variables are known.
    """

    slots: dict[AnyDim, int] = field(default_factory=dict)
    shapes: dict[tuple[AnyDim, ...], Var] = field(default_factory=dict)
    values: dict[AnyDim, Var] = field(default_factory=dict)
    bindings: list[Binding] = field(default_factory=list)
    pending: list[tuple[str, Expr, tuple[AnyDim | None, ...] | AnyDim | Type]] = field(default_factory=list)

    def inner(self) -> _Scope:
        return _Scope(dict(self.slots), dict(self.shapes), dict(self.values))


class _Lowering:
    def __init__(self, function: Function, unchecked: Collection[str]) -> None:
        self.name = function.name
        self.unchecked = unchecked
        self.closures = find_closures(function.block)
        self.mentions = Counter(item for item in walk(function) if isinstance(item, Var))  # bindings and uses
        self.heap = Var("heap", type=OBJECT)
        self.slot_count = 0
        self.read: set[int] = set()  # the slots that are read
        self.origins: tuple[str, ...] = ()  # the origins of the current binding
        self.renamed: dict[Var, Expr] = {}  # a removed variable, such as an alias -> the value that replaces it

    def emit(self, scope: _Scope, name: str, *args: Expr) -> None:
        scope.bindings.append(Binding(Var("_", type=VOID, origins=self.origins), BuiltinCall(name, args, type=VOID)))

    def new_slot(self) -> int:
        self.slot_count += 1
        return self.slot_count - 1

    def block(self, block: Block, scope: _Scope, *, is_tail: bool) -> Block:
        for binding in block.bindings:
            self.origins = binding.var.origins
            match binding:
                case MatchCast(var, value, where):
                    value = self.lower_atom(value, scope)
                    self.check(where or f"{self.name}: match_cast {var.name}", var.type, value, value.type, scope)
                    self.check_pending(scope)
                    if isinstance(var.type, PrimType) and not isinstance(value.type, PrimType):
                        # Arithmetic depends on operand types, so the scalar needs a variable of its own type.
                        scope.bindings.append(Binding(var, BuiltinCall("copy", (value,), type=var.type)))
                    else:
                        self.renamed[var] = value
                case Binding(var, Var() as value):
                    self.renamed[var] = self.lower_atom(value, scope)
                case Binding(var, If(cond, Block() as then, Block() as orelse) as value):
                    is_last = is_tail and is_tail_binding(block, binding)
                    then, orelse = (self.block(part, scope.inner(), is_tail=is_last) for part in (then, orelse))
                    value = replace(value, cond=self.lower_atom(cond, scope), then=then, orelse=orelse)
                    scope.bindings.append(replace(binding, value=value))
                case Binding(var, Shape() | DimValue() as shape):
                    self.renamed[var] = self.lower_atom(shape, scope)
                case Binding(var, PackedCall() as call) if call.type == VOID and self.mentions[var] > 1:
                    call = map_children(lambda part: self.lower_atom(part, scope), call)
                    scope.bindings.append(
                        Binding(Var("_", type=VOID), call)
                    )  # the call returns no value, so this is `()`
                    scope.bindings.append(replace(binding, value=Tuple((), type=VOID)))
                case Binding(var, PackedCall() | Call() as call) if self.needs_check(call, is_tail, block, binding):
                    name = _name_of_callee(call)
                    call = map_children(lambda part: self.lower_atom(part, scope), call)
                    scope.bindings.append(replace(binding, value=call))
                    self.check(f"{self.name}: the result of {name}", call.type, var, OBJECT, scope)
                    self.check_pending(scope)
                case Binding(var, value):
                    value = map_children(lambda part: self.lower_atom(part, scope), value)
                    scope.bindings.append(replace(binding, value=value))
        result = self.lower_atom(block.result, scope)
        return replace(block, bindings=tuple(scope.bindings), result=result)

    def needs_check(self, call: PackedCall | Call, is_tail: bool, block: Block, binding: Binding) -> bool:
        """Return whether the result of `call`, the value of `binding`, must be checked at run time.

        is_tail: whether `block`, which contains the binding, is in tail position.
        """
        if isinstance(call, PackedCall):
            return call.type != VOID
        is_tail_call = is_tail and is_tail_binding(block, binding)
        return not is_tail_call and is_unchecked(call.callee, self.closures, self.unchecked)

    def lower_atom(self, expr: Expr, scope: _Scope) -> Expr:
        """Lower `expr`, a variable or constant.  A removed variable becomes its replacement.

        A symbolic shape or dimension becomes the variable with its value.  If this variable does not exist yet, its
        binding is appended to the block of `scope`.
        """
        match expr:
            case Var():
                return self.renamed.get(expr, expr)
            case DimValue(dim) if isinstance(dim, int):
                return prim(dim)
            case DimValue(dim):
                if dim not in scope.values:
                    scope.values[dim] = Var("dim", type=expr.type, origins=self.origins)
                    read = BuiltinCall("read_dim", (self.heap, *self.encode_dim(dim, scope)), type=expr.type)
                    scope.bindings.append(Binding(scope.values[dim], read))
                return scope.values[dim]
            case Shape(dims) if not all(isinstance(dim, int) for dim in dims):
                if dims not in scope.shapes:
                    pairs = [part for dim in dims for part in self.encode_dim(dim, scope)]
                    scope.shapes[dims] = Var("shape", type=expr.type, origins=self.origins)
                    made = BuiltinCall("make_shape", (self.heap, prim(len(dims)), *pairs), type=expr.type)
                    scope.bindings.append(Binding(scope.shapes[dims], made))
                return scope.shapes[dims]
        return expr

    def encode_dim(self, dim: AnyDim, scope: _Scope) -> tuple[Prim, Prim]:
        """Encode `dim` as a pair of integers (code, value), as in the arguments of a builtin.

        The value of a symbolic dimension is its index in the shape heap, the array of the function's dimension values.
        If the dimension is not in the heap yet, append the statements that compute it.
        """
        if isinstance(dim, int):
            return _CODE["EQUAL"], prim(dim)
        if dim not in scope.slots:
            scope.slots[dim] = self.compute_dim(dim, scope)
        self.read.add(scope.slots[dim])
        return _CODE["EQUAL_HEAP"], prim(scope.slots[dim])

    def compute_dim(self, dim: Dim, scope: _Scope) -> int:
        """Append the statements that compute the compound dimension `dim` and store it in the shape heap.

        The shape heap is the array of the function's dimension values.  Return the index of `dim` in the heap.
        """
        assert as_var(dim) is None, f"{self.name}: dimension {dim} is not known"
        total: tuple[Prim, Prim] | None = None
        for monomial, coefficient in dim.terms:
            factors = [self.encode_dim_atom(atom, scope) for atom in monomial]
            if coefficient != 1 or not factors:
                factors.append((_CODE["EQUAL"], prim(coefficient)))
            term = factors[0]
            for factor in factors[1:]:
                term = self.operate("mul", term, factor, scope)
            total = term if total is None else self.operate("add", total, term, scope)
        assert total is not None
        return int(total[1].value)

    def encode_dim_atom(self, atom: DimVar | DimOp, scope: _Scope) -> tuple[Prim, Prim]:
        dim = Dim((((atom,), 1),))
        if isinstance(atom, DimOp) and dim not in scope.slots:
            left, right = self.encode_dim(atom.left, scope), self.encode_dim(atom.right, scope)
            scope.slots[dim] = int(self.operate(atom.function, left, right, scope)[1].value)
        return self.encode_dim(dim, scope)

    def operate(self, name: str, left: tuple, right: tuple, scope: _Scope) -> tuple[Prim, Prim]:
        number = self.new_slot()
        slot = prim(number)
        self.emit(scope, "compute_dim", self.heap, slot, prim(_OPERATOR[name]), *left, *right)
        self.read.add(number)
        return _CODE["EQUAL_HEAP"], slot

    def remove_unread_stores(self, block: Block) -> Block:
        """Return `block` without stores of dimensions that are never read.

        The stores are to the shape heap, the array of the function's dimension values.
        """
        bindings = []
        for binding in block.bindings:
            match binding.value:
                case If(_, Block() as then, Block() as orelse) as value:
                    value = replace(
                        value, then=self.remove_unread_stores(then), orelse=self.remove_unread_stores(orelse)
                    )
                    binding = replace(binding, value=value)
                case BuiltinCall("match_shape", (value, self.heap, count, *pairs, where)):
                    kept = self.ignore_unread_slots(pairs)
                    if all(code == _CODE["ANY"] for code in kept[::2]):
                        continue
                    in_heap = any(code in (_CODE["STORE"], _CODE["EQUAL_HEAP"]) for code in kept[::2])
                    args = (value, self.heap if in_heap else Null(), count, *kept, where)
                    binding = replace(binding, value=replace(binding.value, args=args))
                case BuiltinCall("match_prim_value", (_, self.heap, *pair, _)):
                    if self.ignore_unread_slots(pair)[0] == _CODE["ANY"]:
                        continue
            bindings.append(binding)
        return replace(block, bindings=tuple(bindings))

    def ignore_unread_slots(self, pairs: Sequence[Expr]) -> list[Expr]:
        """Replace the code STORE by ANY in `pairs` for each element of the shape heap that is never read.

        pairs: arguments of a builtin that matches a shape or a scalar.  Codes and their values alternate, such as STORE
        and an index in the shape heap.
        """
        kept: list[Expr] = []
        for code, value in zip(pairs[::2], pairs[1::2], strict=True):
            unread = code == _CODE["STORE"] and isinstance(value, Prim) and value.value not in self.read
            kept += (_CODE["ANY"], prim(0)) if unread else (code, value)
        return kept

    def check(self, where: str, type_: Type, value: Expr, known: Type, scope: _Scope) -> None:
        """Append the checks that `value` has type `type_`.

        where: the beginning of the error message.
        known: the type that `value` is proven to have.  Checks that follow from it are omitted.  Checks of compound
        dimensions, and of the contents of lists and optionals, are not appended but added to `scope.pending`.
        """
        place = String(where)
        match type_:
            case TensorType(dtype, shape, rank):
                if not (isinstance(known, TensorType) and known.rank == rank and known.dtype == dtype):
                    kind = DTypeValue(dtype) if dtype else Null()
                    self.emit(scope, "check_tensor_info", value, prim(-1 if rank is None else rank), kind, place)
                self.match_shape(where, shape, value, scope)
            case ShapeType(dims, rank):
                if not (isinstance(known, ShapeType) and known.rank == rank):
                    self.emit(scope, "check_shape_info", value, prim(-1 if rank is None else rank), place)
                self.match_shape(where, dims, value, scope)
            case TupleType(fields):
                if not isinstance(known, TupleType):
                    self.emit(scope, "check_tuple_info", value, prim(len(fields)), place)
                parts = known.fields if isinstance(known, TupleType) else (OBJECT,) * len(fields)
                for i, (field_type, part) in enumerate(zip(fields, parts, strict=True)):
                    if field_type == OBJECT:
                        continue
                    item = Var("item", type=field_type, origins=self.origins)
                    scope.bindings.append(Binding(item, TupleItem(value, i, type=field_type)))
                    self.check(f"{where}, item {i}", field_type, item, part, scope)
            case ListType() | OptionalType() if not is_proven(type_, known):
                if isinstance(known, OptionalType) and known.value is not None and is_proven(type_, known.value):
                    self.emit(scope, "check_value", value, place)
                else:
                    scope.pending.append((where, value, type_))
            case FuncType(pure=pure) if not isinstance(known, FuncType):
                self.emit(scope, "check_pure_func_info" if pure else "check_func_info", value, place)
            case PrimType(dtype, expected):
                if not (isinstance(known, PrimType) and known.dtype == dtype):
                    self.emit(scope, "check_prim_value_info", value, DTypeValue(dtype), place)
                if expected is not None:
                    self.match_scalar(where, expected, value, scope)

    def bind_dims(self, where: str, type_: Type, value: Expr, scope: _Scope) -> None:
        """Append the statements that store dimensions of `value` in the shape heap.

        The shape heap is the array of the function's dimension values.  A dimension is stored if it is a dimension
        variable in `type_` that has no value in the heap yet.

        Dimensions are not checked, because `value` is proven to have type `type_`.

        where: the beginning of the error message.
        """
        match type_:
            case TensorType(shape=dims) | ShapeType(dims=dims):
                if _binds_new_dim(type_, scope):
                    self.match_shape(where, dims, value, scope, is_proven_shape=True)
            case TupleType(fields):
                for i, part in enumerate(fields):
                    if _binds_new_dim(part, scope):
                        item = Var("item", type=part, origins=self.origins)
                        scope.bindings.append(Binding(item, TupleItem(value, i, type=part)))
                        self.bind_dims(f"{where}, item {i}", part, item, scope)
            case PrimType(dtype, expected):
                self.emit(scope, "check_prim_value_info", value, DTypeValue(dtype), String(where))
                if expected is not None and _binds_new_dim(type_, scope):
                    self.match_scalar(where, expected, value, scope)

    def match_shape(
        self, where: str, dims: tuple[AnyDim, ...] | None, value: Expr, scope: _Scope, *, is_proven_shape: bool = False
    ) -> None:
        """Append the check that `value` has shape `dims`.  If `dims` is None, nothing is checked.

        A dimension variable that has no value yet in the shape heap (the array of the function's dimension values) is
        not checked.  Instead, the actual size is stored there.  The check of a compound dimension that is not yet in
        the heap is added to `scope.pending`.

        is_proven_shape: whether the shape is proven, so that it need not be checked.
        where: the beginning of the error message.
        """
        if not dims:
            return
        pairs: list[Prim] = []
        for dim in dims:
            if not isinstance(dim, int) and dim not in scope.slots:
                if as_var(dim) is None:
                    pairs += (_CODE["ANY"], prim(0))
                    continue
                scope.slots[dim] = self.new_slot()
                pairs += (_CODE["STORE"], prim(scope.slots[dim]))
                continue
            pairs += (_CODE["ANY"], prim(0)) if is_proven_shape else self.encode_dim(dim, scope)
        self.emit(scope, "match_shape", value, self.heap_or_null(dims), prim(len(dims)), *pairs, String(where))
        if is_proven_shape:
            return
        left = tuple(dim if code is _CODE["ANY"] else None for dim, code in zip(dims, pairs[::2], strict=True))
        if any(dim is not None for dim in left):
            scope.pending.append((where, value, left))

    def match_scalar(self, where: str, dim: AnyDim, value: Expr, scope: _Scope) -> None:
        """Append the check that the scalar `value` equals `dim`.

        If `dim` is a variable that has no value yet in the shape heap (the array of the function's dimension values),
        `value` is stored there instead.  If `dim` is a compound dimension that is not yet in the heap, the check is
        added to `scope.pending`.

        where: the beginning of the error message.
        """
        if not isinstance(dim, int) and dim not in scope.slots:
            if as_var(dim) is None:
                scope.pending.append((where, value, dim))
                return
            scope.slots[dim] = self.new_slot()
            pair = (_CODE["STORE"], prim(scope.slots[dim]))
        else:
            pair = self.encode_dim(dim, scope)
        self.emit(scope, "match_prim_value", value, self.heap_or_null((dim,)), *pair, String(where))

    def check_pending(self, scope: _Scope) -> None:
        """Append the pending checks.  At this point, every dimension variable has a value."""
        pending, scope.pending = scope.pending, []
        for where, value, dims in pending:
            if isinstance(dims, Type):
                numbers = tuple(encode_type(dims, lambda dim: self.encode_dim(dim, scope)))
                heap = self.heap_or_null(tuple(dims_of(dims)))
                self.emit(scope, "match_type", value, heap, String(where), *numbers)
                continue
            if not isinstance(dims, tuple):
                self.emit(scope, "match_prim_value", value, self.heap, *self.encode_dim(dims, scope), String(where))
                continue
            pairs: list[Prim] = []
            for dim in dims:
                pairs += (_CODE["ANY"], prim(0)) if dim is None else self.encode_dim(dim, scope)
            self.emit(scope, "match_shape", value, self.heap, prim(len(dims)), *pairs, String(where))

    def heap_or_null(self, dims: tuple[AnyDim, ...]) -> Expr:
        return self.heap if any(True for dim in dims for _ in dim_vars(dim)) else Null()


def _name_of_callee(call: PackedCall | Call) -> str:
    if isinstance(call, PackedCall):
        return call.name
    return call.callee.name if isinstance(call.callee, Var | FunctionRef) else "a function"


def _binds_new_dim(type_: Type, scope: _Scope) -> bool:
    """Return whether a value of type `type_` determines a dimension variable that has no value yet in `scope`."""
    return any(var_dim(var) not in scope.slots for var in plain_dim_vars(type_))
