"""Translation of the expressions of a script."""

from __future__ import annotations

import ast
import builtins
import inspect
import operator
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from types import FunctionType
from typing import Any

import numpy as np

import relvm.ops  # noqa: F401  (declares the operators)
from relvm.errors import (
    RelvmArgumentError,
    RelvmError,
    RelvmNameError,
    RelvmTypeError,
    counted,
    near_matches,
)
from relvm.frontend.script.array_functions import (
    INTEGER_FUNCTIONS,
    METHODS,
    SCALAR_FUNCTIONS,
    as_size,
    call_array_function,
    integer_scalar,
    numpy_name,
)
from relvm.frontend.script.indexing import SliceIndex, index_tensor, is_known_index, python_index
from relvm.frontend.script.iteration import Items, LoopItems, enumerated, items_of, zipped
from relvm.frontend.script.kernels import ScriptKernel
from relvm.frontend.script.names import SCRIPT_FUNCTIONS
from relvm.frontend.script.python_calls import (
    attribute_advice,
    call_advice,
    has_integer_result,
    is_pure_builtin,
    math_function,
    sequence_advice,
)
from relvm.frontend.script.syntax_names import SCALAR_OPERATORS, syntax_name
from relvm.frontend.script.values import (
    LARGEST_STATIC,
    ArrayMethod,
    Located,
    ScriptFunction,
    SourceReader,
    Template,
    Unbound,
    Value,
    as_expr,
    is_python,
    is_scalar,
    is_single_number,
    is_static,
    number_as_scalar,
    number_as_tensor,
    result_size_bound,
)
from relvm.frontend.text.parser import parse_expr, parse_type
from relvm.ir.builder import Builder
from relvm.ir.dtypes import ALL_DTYPES, BOOL, F64, I64, DType, dtype_of
from relvm.ir.expr import Constant, DimValue, Expr, Null, Shape, TupleItem, constant, prim
from relvm.ir.operator import Operator, dtype_of_numbers, operators, similar_names
from relvm.ir.scalar_ops import FORMS
from relvm.ir.symbolic import AnyDim, as_var, dim_op, node_count, product
from relvm.ir.types import OBJECT, FuncType, ObjectType, OptionalType, PrimType, TensorType, TupleType, Type

# For each operator in Python's syntax: the function of NumPy for tensors, and the function for Python numbers.
_OPERATORS: dict[type, tuple[str, Callable]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("subtract", operator.sub),
    ast.Mult: ("multiply", operator.mul),
    ast.Div: ("divide", operator.truediv),
    ast.FloorDiv: ("floor_divide", operator.floordiv),
    ast.Mod: ("remainder", operator.mod),
    ast.Pow: ("power", operator.pow),
    ast.MatMult: ("matmul", operator.matmul),
    ast.BitAnd: ("bitwise_and", operator.and_),
    ast.BitOr: ("bitwise_or", operator.or_),
    ast.BitXor: ("bitwise_xor", operator.xor),
    ast.LShift: ("left_shift", operator.lshift),
    ast.RShift: ("right_shift", operator.rshift),
    ast.USub: ("negative", operator.neg),
    ast.Not: ("logical_not", operator.not_),
    ast.Invert: ("invert", operator.invert),
    ast.Lt: ("less", operator.lt),
    ast.LtE: ("less_equal", operator.le),
    ast.Gt: ("greater", operator.gt),
    ast.GtE: ("greater_equal", operator.ge),
    ast.Eq: ("equal", operator.eq),
    ast.NotEq: ("not_equal", operator.ne),
}
_PYTHON_NAMES = {"int": I64, "float": F64}
_MAX_UNROLLED = 20_000
_FOLDS = {"max": "maximum", "min": "minimum", "sum": "add"}  # reductions, and the function of NumPy for two items
_LARGEST_DIM = 32  # limit on `node_count`, because products of sums grow exponentially


class ExpressionTranslator(SourceReader):
    """Translates the expressions of one function of the module.

    scope: the current values of the names.
    dims: the dimension variables by name.
    require: a function that adds another function to the module, and returns its name.
    """

    def __init__(self, builder: Builder, function: ScriptFunction, dims: dict[str, AnyDim], require: Callable) -> None:
        self.builder = builder
        self.function = function
        self.dims = dims
        self.require = require
        self.scope: dict[str, Value] = {}
        self.constants: dict[int, tuple[np.ndarray, Constant]] = {}  # one constant for each array, by id()

    def type(self, node: ast.expr) -> Type:
        """Parse the type in the annotation `node`."""
        written = self.annotation_text(node)
        try:
            return parse_type(written, self.dims)
        except RelvmError as error:
            is_class = isinstance(node, ast.Name | ast.Attribute) and isinstance(self.python_value(node), type)
            reason = 'state the dtype and the sizes, as in "f32[n, 4]"' if is_class else error.reason
            raise self.error(type(error), f"invalid type {written}: {reason}", node) from None

    def expression(self, node: ast.expr, name: str | None = None, expected: Type | None = None) -> Value:
        """Return the value of the expression `node`: an IR expression, or a Python object.

        name: the variable to which the value will be assigned, if any.  expected: the required type, if it is known.
        """
        return self.at_node(node, lambda: self.unlocated(node, name, expected))

    def expr(self, node: ast.expr, expected: Type | None = None, name: str | None = None) -> Expr:
        """Translate the expression `node` to an IR expression.

        expected: the required type, if it is known.   name: the variable to which the value will be assigned."""
        value = self.expression(node, name, expected)
        return self.at_node(node, lambda: self.as_expr(value, expected))

    def as_expr(self, value: Value, expected: Type | None = None) -> Expr:
        match value:
            case Template(node) if isinstance(expected, FuncType) or not node.args.args:
                return self.lambda_function(value, expected.params if isinstance(expected, FuncType) else ())
            case ScriptFunction():
                return self.builder.function_ref(self.require(value))
            case ScriptKernel():
                raise RelvmTypeError(f"kernel {value.name} is not a value of the program; call it")
            case tuple():
                fields = expected.fields if isinstance(expected, TupleType) else ()
                types = (*fields, *(None,) * len(value))
                return self.builder.tuple_(*(self.as_expr(v, t) for v, t in zip(value, types, strict=False)))
            case np.ndarray():
                if id(value) not in self.constants:
                    self.constants[id(value)] = (value, constant(value))
                return self.constants[id(value)][1]
        return as_expr(value, expected)

    def operator_arguments(self, values: list[Value]) -> tuple[Expr, ...]:
        """Convert the arguments of an operator.

        Numbers and scalars become 0-d tensors, and tuples of sizes become shapes.  Other arguments are unchanged.  The
        0-d tensors have the dtype of the first tensor whose dtype is not bool, or else bool.
        """
        values = [self.as_expr(value) if isinstance(value, np.ndarray | np.generic) else value for value in values]
        tensors = (v.type for v in values if isinstance(v, Expr) and isinstance(v.type, TensorType))
        dtype = dtype_of_numbers(type_.dtype for type_ in tensors)
        return tuple(self.operator_argument(value, dtype) for value in values)

    def operator_argument(self, value: Value, dtype: DType | None) -> Expr:
        match value:
            case tuple() if all(isinstance(part, int | DimValue) and not isinstance(part, bool) for part in value):
                return Shape(tuple(part.dim if isinstance(part, DimValue) else part for part in value))
            case Expr(type=PrimType(dtype=scalar)) if dtype is not None and (scalar == BOOL) == dtype.is_bool:
                return self.builder.op("to_tensor", value, dtype=dtype)
        return self.as_expr(value, TensorType(dtype, ()) if dtype else None)

    def unlocated(self, node: ast.expr, name: str | None, expected: Type | None) -> Value:
        match node:
            case ast.Constant(value=value):
                if isinstance(value, bool | int | float | str | None):
                    return value
                raise self.unsupported(f"the constant {value!r}", node)
            case ast.Name(id=id_):
                return self.lookup(id_, node)
            case ast.Tuple(elts=parts):
                return tuple(self.parts(parts))
            case ast.List(elts=parts):
                return _list_value(self.parts(parts))
            case ast.ListComp() | ast.GeneratorExp():
                return _list_value(self.comprehension(node))
            case ast.BinOp(left=left, op=op, right=right):
                return self.operation(op, [left, right], node, name)
            case ast.UnaryOp(op=op, operand=operand):
                return self.operation(op, [operand], node, name)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self.operation(op, [left, right], node, name)
            case ast.Compare():
                return self.chained_comparison(node)
            case ast.BoolOp(op=op, values=values):
                return self.logical_operation(isinstance(op, ast.And), values)
            case ast.IfExp(test=test, body=then, orelse=orelse):
                return self.conditional(test, then, orelse, name, expected)
            case ast.Subscript(value=base, slice=index):
                return self.item(base, index, name)
            case ast.Attribute(value=base, attr=attribute):
                return self.attribute(self.expression(base), attribute)
            case ast.Call():
                return self.call(node, name)
            case ast.Lambda():
                return Template(node, dict(self.scope))
        raise self.unsupported_syntax(node)

    def parts(self, nodes: list[ast.expr]) -> list[Value]:
        """Translate the items of a tuple or a list, which can be unpacked sequences, as in `(*a, b)`."""
        values: list[Value] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                values += self.known_items(node.value)
            else:
                values.append(self.expression(node))
        return values

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> list[Value]:
        """Translate a comprehension over items whose number is known: its element is translated for each item."""
        found: list[Value] = []

        def translate(generators: list[ast.comprehension]) -> None:
            if not generators:
                found.append(self.expression(node.elt))
                return
            first, *rest = generators
            items = self.known_items(first.iter)
            self.count_unrolled(len(items) * (1 + len(first.ifs)), node)
            for item in items:
                self.assign(first.target, item)
                if all(map(self.known_condition, first.ifs)):
                    translate(rest)

        outer, self.scope = self.scope, dict(self.scope)
        try:
            translate(node.generators)
        finally:
            self.scope = outer
        return found

    def known_condition(self, test: ast.expr) -> bool:
        cond = self.condition(test)
        if isinstance(cond, bool):
            return cond
        raise self.error(RelvmTypeError, "the condition of a comprehension must be known at translation time", test)

    def known_items(self, node: ast.expr) -> Sequence[Value]:
        """Return the items of the expression `node`, whose number must be known at translation time."""
        items = self.items_of(node)
        known = items.known() if isinstance(items, LoopItems) else items
        if known is None:
            reason = f"{ast.unparse(node)} has a symbolic number of items"
            raise self.error(RelvmTypeError, f"{reason}; write a loop, or an operation on the whole tensor", node)
        return known

    def items_of(self, node: ast.expr) -> Items:
        """Return the items over which `for ... in node` iterates."""
        match node:
            case ast.Call(func=ast.Name(), args=args, keywords=keywords):
                callee = self.expression(node.func)
                if callee is range:
                    return self.range_items(node)
                if callee is zip and all(keyword.arg == "strict" for keyword in keywords):
                    parts = [self.items_of(arg) for arg in args]
                    return self.at_node(node, lambda: zipped(*parts))
                if callee is reversed and len(args) == 1:
                    return list(reversed(self.known_items(args[0])))
                if callee is enumerate and 1 <= len(args) <= 2:
                    start = {keyword.arg: keyword.value for keyword in keywords}.get("start", (*args, None)[1])
                    first = 0 if start is None else self.expression(start)
                    if type(first) is not int:
                        raise self.error(RelvmTypeError, "enumerate: start must be known at translation time", node)
                    items = self.items_of(args[0])
                    return self.at_node(node, lambda: enumerated(self.builder, items, first))
        return self.at_node(node, lambda: items_of(self.builder, self.expression(node)))

    def range_items(self, node: ast.Call) -> Items:
        """Return the items of a call of `range` in another place than `for i in range(...)`."""
        bounds = [self.expression(arg) for arg in node.args]
        if all(type(bound) is int for bound in bounds) and 1 <= len(bounds) <= 3 and bounds[2:] != [0]:
            return range(*bounds)
        if len(bounds) == 1 and isinstance(bounds[0], DimValue):
            return LoopItems(bounds[0].dim, lambda at: at)
        raise self.error(RelvmTypeError, "expected a range of numbers known at translation time, or range(n)", node)

    @abstractmethod
    def assign(self, target: ast.expr, value: Value) -> None:
        """Assign `value` to a name or a tuple of names."""

    unrolled_count = 0  # translations of loop bodies and elements of comprehensions so far

    def count_unrolled(self, count: int, node: Located) -> None:
        """Add `count` to the number of unrolled statements.  Raise RelvmSyntaxError if the number is now too large."""
        self.unrolled_count += count
        if self.unrolled_count > _MAX_UNROLLED:
            reason = f"unrolling loops and comprehensions to more than {_MAX_UNROLLED} statements"
            raise self.unsupported(reason, node, "write for i in range(n)")

    def lookup(self, name: str, node: Located) -> Value:
        """Search for a name in the script, its dimensions, the class, the enclosing Python scopes, and then relvm.

        Return the value of the name.  node: the expression or statement at which errors are reported.
        """
        for names in (self.scope, self.dim_values(), *self.python_names()):
            if name in names:
                value = names[name]
                if isinstance(value, Unbound):
                    raise self.error(value.kind, value.reason, node)
                return value
        for names in (SCRIPT_FUNCTIONS, operators(), ALL_DTYPES, _PYTHON_NAMES):
            if name in names:
                return names[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        known = {*self.scope, *SCRIPT_FUNCTIONS, *operators()}.union(*self.python_names())
        raise self.error(RelvmNameError, f"no variable, function or operator {name}{similar_names(name, known)}", node)

    def dim_values(self) -> dict[str, Expr]:
        """Return the dimension variables whose values the current block can use, as scalars by name."""
        known = self.builder.known_dims()
        return {name: DimValue(dim) for name, dim in self.dims.items() if as_var(dim) in known}

    def operation(self, op: ast.AST, operands: list[ast.expr], node: Located, name: str | None) -> Value:
        return self.apply_operator(op, [self.expression(operand) for operand in operands], node, name)

    def apply_operator(self, op: ast.AST, values: list[Value], node: Located, name: str | None) -> Value:
        """Apply the Python operator `op` to values.  node: the expression at which errors are reported."""
        if isinstance(op, ast.UAdd):
            return values[0]
        if isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn):
            return self.identity_or_membership(op, values, node)
        if isinstance(op, ast.Eq | ast.NotEq) and any(isinstance(value, DType) for value in values):
            left, right = map(dtype_of, values)
            return (left == right) == isinstance(op, ast.Eq)
        if len(values) == 2 and all(isinstance(value, tuple | list) for value in values):
            return self.sequence_operation(op, values[0], values[1], node)
        function, on_numbers = _OPERATORS[type(op)]
        if all(map(is_static, values)):
            if result_size_bound(op, values) > LARGEST_STATIC:
                raise self.unsupported(f"a Python value of more than {LARGEST_STATIC} bits or items", node)
            try:
                return on_numbers(*values)
            except (ArithmeticError, TypeError, ValueError) as error:
                raise self.error(RelvmTypeError, f"{ast.unparse(node)}: {error}", node) from None
        if all(map(is_scalar, values)):
            return self.scalar_operation(op, values, name)
        return self.array_function(function, values, {}, name)

    def identity_or_membership(self, op: ast.AST, values: list[Value], node: Located) -> Value:
        """Translate `is`, `is not`, `in` and `not in`."""
        left, right = values
        if isinstance(op, ast.IsNot | ast.NotIn):
            result = self.identity_or_membership(ast.Is() if isinstance(op, ast.IsNot) else ast.In(), values, node)
            return self.apply_operator(ast.Not(), [result], node, None)
        if isinstance(op, ast.Is):
            if right is None and isinstance(left, Expr) and isinstance(left.type, OptionalType | ObjectType):
                return self.builder.op("is_null", left)
            if right is None or (is_static(left) and is_static(right)):
                return left is right or (right is None and isinstance(left, Null))
            raise self.unsupported("is between values of the program", node, "write ==, or compare with None")
        if is_python(left) and is_python(right):
            try:
                return left in right
            except (TypeError, ValueError) as error:
                raise self.error(RelvmTypeError, f"{ast.unparse(node)}: {error}", node) from None
        if not isinstance(right, tuple | list):
            raise self.unsupported("in with a value of the program on its right", node, "write (x == value).any()")
        equal = [partial(self.apply_operator, ast.Eq(), [left, item], node, None) for item in right]
        return self.short_circuit(False, equal) if equal else False

    def sequence_operation(self, op: ast.AST, left: Value, right: Value, node: Located) -> Value:
        """Apply + or a comparison to Python sequences, which can contain values of the program."""
        if isinstance(op, ast.Add):
            return _list_value([*left, *right]) if isinstance(left, list) else (*left, *right)
        if isinstance(op, ast.NotEq):
            return self.apply_operator(ast.Not(), [self.sequence_operation(ast.Eq(), left, right, node)], node, None)
        if not isinstance(op, ast.Eq):
            raise self.unsupported(f"{syntax_name(op)} on tuples", node)
        if len(left) != len(right):
            return False
        equal = [partial(self.apply_operator, op, [a, b], node, None) for a, b in zip(left, right, strict=True)]
        return self.short_circuit(True, equal) if equal else True

    def array_function(self, function: str, args: list[Value], keywords: dict[str, Any], name: str | None) -> Value:
        """Translate a call of a function of NumPy, or of a method of its first argument."""
        if function in SCALAR_FUNCTIONS and all(map(is_scalar, args)) and not keywords:
            return self.scalar_function(function, args, name)
        result = call_array_function(function, args, keywords, self.builder, self.operator_arguments)
        return self.named(result, name)

    def scalar_function(self, function: str, args: list[Value], name: str | None) -> Value:
        """Translate a function of NumPy on scalars of the program.  The result is a scalar."""
        exprs = self.promote_scalars(args)
        is_float = function not in INTEGER_FUNCTIONS or any(expr.element_type == F64 for expr in exprs)
        dtype = F64 if is_float else I64
        tensors = [self.builder.op("to_tensor", self.as_expr(self.convert(e, dtype)), dtype=dtype) for e in exprs]
        result = call_array_function(function, list(tensors), {}, self.builder, self.operator_arguments)
        return self.builder.op("to_scalar", result, name=name)

    def named(self, value: Value, name: str | None) -> Value:
        """Return `value`, a new value of the program.  Its variable gets `name`, unless that is None."""
        return self.builder.renamed(value, name) if name and isinstance(value, Expr) else value

    def scalar_operation(self, op: ast.AST, values: list[Value], name: str | None) -> Value:
        """Translate an operation on scalars.  If one operand is an f64, an i64 operand is converted, as in Python."""
        if isinstance(op, ast.Not):
            return self.builder.prim("not", self.as_bool(values[0]), name=name)
        if isinstance(op, ast.Pow):
            return self.scalar_function("power", values, name)
        if type(op) not in SCALAR_OPERATORS:
            signs = " ".join(dict.fromkeys(sign for sign, _ in FORMS))
            raise RelvmTypeError(f"{syntax_name(op)} is not supported on scalars; expected one of {signs}")
        if len(values) == 2 and (dim := _dim_operation(SCALAR_OPERATORS[type(op)], *values)) is not None:
            return DimValue(dim)
        return self.builder.prim(SCALAR_OPERATORS[type(op)], *self.promote_scalars(values), name=name)

    def promote_scalars(self, values: list[Value]) -> list[Expr]:
        """Convert scalars to a common dtype: if one is an f64, each i64 becomes an f64."""
        exprs = [as_expr(value) for value in values]
        if all(expr.element_type != F64 for expr in exprs):
            return exprs
        return [
            as_expr(self.convert(v, F64)) if e.element_type == I64 else e for v, e in zip(values, exprs, strict=True)
        ]

    def convert(self, value: Value, dtype: DType, name: str | None = None) -> Value:
        """Convert a value to `dtype`, as for a call such as `f32(x)`.

        A tensor remains a tensor, with one exception: if `dtype` is bool, i64 or f64, a tensor of rank 0 becomes a
        scalar.
        """
        is_prim = dtype in (BOOL, I64, F64)
        if is_static(value):
            return number_as_scalar(value, dtype) if is_prim else number_as_tensor(value, dtype)
        value = self.as_expr(value)
        if isinstance(value.type, PrimType) and not is_prim:
            return self.builder.op("to_tensor", value, dtype=dtype, name=name)
        if isinstance(value.type, TensorType) and (value.type.rank != 0 or not is_prim):
            return self.builder.op("cast", value, to=dtype, name=name)
        if isinstance(value.type, TensorType):
            value = self.builder.op("to_scalar", value)
        if isinstance(value.type, PrimType) and value.type.dtype == dtype:
            return value
        return self.builder.prim(dtype.name, value, name=name)

    def as_integer(self, value: Value) -> Expr:
        """Convert an integer, or a tensor of rank 0 with an integer dtype, to an i64 scalar."""
        return integer_scalar(self.builder, self.as_expr(value))

    def as_bool(self, value: Value) -> Value:
        """Convert a condition to bool.  Raise RelvmTypeError if it is a tensor with axes."""
        if isinstance(value, Expr) and isinstance(value.type, TensorType) and value.type.rank != 0:
            advice = "combine bool tensors with & | ~, choose elements with np.where, or reduce with .any() or .all()"
            raise RelvmTypeError(f"{value.type} cannot be a condition; {advice}")
        return self.convert(value, BOOL)

    def logical_operand(self, node: ast.expr) -> Value:
        """Translate an operand of `and` or `or`.  A value of the program becomes bool.  A Python value is unchanged."""
        value = self.expression(node)
        return value if is_static(value) else self.at_node(node, lambda: self.as_bool(value))

    def logical_operation(self, is_and: bool, values: list[ast.expr]) -> Value:
        """Translate `and` or `or` with the given operands as a balanced tree, which limits the nesting depth."""
        if len(values) == 1:
            return self.logical_operand(values[0])
        middle = len(values) // 2
        halves = (values[:middle], values[middle:])
        return self.short_circuit(is_and, [partial(self.logical_operation, is_and, half) for half in halves])

    def short_circuit(self, is_and: bool, parts: Sequence[Callable[[], Value]]) -> Value:
        """Translate `and` or `or` with short-circuit evaluation.  parts: functions that translate the operands."""
        first, *rest = parts
        value = first()
        if is_static(value):
            return self.short_circuit(is_and, rest) if rest and bool(value) == is_and else value
        if not rest:
            return value

        def others() -> Expr:
            return as_expr(self.as_bool(self.short_circuit(is_and, rest)))

        return (
            self.builder.if_(value, others, lambda: prim(False))
            if is_and
            else self.builder.if_(value, lambda: prim(True), others)
        )

    def chained_comparison(self, node: ast.Compare) -> Value:
        """Translate `a < b < c`.  As in Python, each operand is evaluated at most once, and only if it is needed."""
        values = [self.expression(node.left)]

        def part(op: ast.cmpop, right: ast.expr) -> Value:
            values.append(self.expression(right))
            compared = self.apply_operator(op, values[-2:], node, None)
            return compared if is_static(compared) else self.as_bool(compared)

        pairs = zip(node.ops, node.comparators, strict=True)
        return self.short_circuit(True, [partial(part, op, right) for op, right in pairs])

    def conditional(
        self, test: ast.expr, then: ast.expr, orelse: ast.expr, name: str | None, expected: Type | None
    ) -> Value:
        cond = self.condition(test)
        if isinstance(cond, bool):
            return self.expression(then if cond else orelse, name, expected)
        return self.builder.if_(cond, lambda: self.expr(then, expected), lambda: self.expr(orelse, expected), name)

    def condition(self, test: ast.expr) -> bool | Expr:
        """Translate the condition of an if or a loop.

        Return a bool if the condition is a Python value, but an expression if it is an array or number of NumPy.
        """
        value = self.expression(test)
        if not isinstance(value, Expr | np.ndarray | np.generic):
            return bool(value)
        expr = self.as_expr(value)
        return self.at_node(test, lambda: self.as_bool(expr)) if isinstance(expr.type, TensorType | PrimType) else expr

    def item(self, base: ast.expr, index: ast.expr, name: str | None) -> Value:
        value = self.expression(base)
        if isinstance(value, Expr) and isinstance(value.type, TensorType):
            items = index.elts if isinstance(index, ast.Tuple) else [index]
            return self.named(index_tensor(self.builder, value, tuple(map(self.index, items))), name)
        if isinstance(value, np.ndarray) and isinstance(index, ast.Tuple):
            at = tuple(map(self.index, index.elts))
        else:
            at = self.index(index)
        if isinstance(value, np.ndarray) and not is_known_index(at):
            return self.named(index_tensor(self.builder, self.as_expr(value), at if type(at) is tuple else (at,)), name)
        if not is_known_index(at):
            raise RelvmTypeError("the index of a tuple must be known at translation time")
        if not isinstance(value, Expr):
            try:
                return value[python_index(at)]
            except (TypeError, LookupError) as error:
                raise RelvmTypeError(f"{ast.unparse(base)}[{at!r}]: {error}") from None
        if type(at) is not int:
            raise RelvmTypeError(f"the index of a tuple must be an integer, got {at!r}")
        if at < 0 and isinstance(value.type, TupleType):
            at += len(value.type.fields)
        return self.builder.emit(TupleItem(value, at), name)

    def index(self, node: ast.expr) -> Value:
        """Translate one of the indices in `x[0, 1:n, ...]`."""
        match node:
            case ast.Constant(value=value) if value is ...:
                return ...
            case ast.Slice(lower, upper, step):
                return SliceIndex(*(part and self.expression(part) for part in (lower, upper, step)))
        return self.expression(node)

    def attribute(self, value: Value, name: str) -> Value:
        match value:
            case Expr(type=TensorType(shape=dims)) if name == "shape" and dims is not None:
                return tuple(dim if isinstance(dim, int) else DimValue(dim) for dim in dims)
            case Expr(type=TensorType(rank=rank)) if name == "ndim" and rank is not None:
                return rank
            case Expr(type=TensorType(dtype=dtype)) if name == "dtype" and dtype is not None:
                return dtype
            case Expr(type=TensorType()) if name in METHODS:
                return ArrayMethod(value, name)
            case Expr(type=TensorType()) if name == "T":
                return self.builder.op("transpose", value)
            case Expr(type=TensorType(shape=dims)) if name == "size" and dims is not None:
                return as_size(product(dims))
            case Expr(type=TensorType()) if name in ("shape", "ndim", "dtype", "size"):
                raise RelvmTypeError(f'the {name} of {value.type} is unknown; state it: match_cast(x, "f32[m]")')
            case Expr():
                known = (*METHODS, "T", "dtype", "ndim", "shape", "size") if isinstance(value.type, TensorType) else ()
                advice = (known and attribute_advice(name)) or near_matches(name, known)
                raise RelvmTypeError(f"a value of type {value.type} has no attribute {name}{advice}")
        if not hasattr(value, name):
            shown = f"a {type(value).__name__}" if isinstance(value, tuple) else repr(value)
            advice = sequence_advice(name) if isinstance(value, tuple | list) else ""
            raise RelvmNameError(f"{shown} has no attribute {name}{advice or near_matches(name, dir(value))}")
        return getattr(value, name)

    def call(self, node: ast.Call, name: str | None) -> Value:
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                raise self.unsupported("a starred argument", argument)
        callee = self.expression(node.func)
        match callee:
            case Operator():
                return self.operator_call(callee, node, name)
            case DType() if len(node.args) == 1 and not node.keywords:
                return self.convert(self.expression(node.args[0]), callee, name)
            case ArrayMethod(tensor, method):
                args = [tensor, *map(self.expression, node.args)]
                return self.array_function(method, args, self.static_keywords(node), name)
            case ScriptKernel():
                return self.kernel_call(callee, node.args, node.keywords, node, name)
            case FunctionType(__name__=function) if callee is SCRIPT_FUNCTIONS.get(function):
                return getattr(self, f"call_{function}")(node, name)
            case DType():
                raise RelvmArgumentError(f"{ast.unparse(node.func)}: expected one value, got {ast.unparse(node)}")
        numpy_function = numpy_name(callee)
        if numpy_function is not None:
            return self.numpy_call(callee, numpy_function, node, name)
        if isinstance(callee, ScriptFunction):
            return self.script_call(callee, node, name)
        if not isinstance(callee, Template | Expr):
            return self.python_call(callee, node, name)
        if node.keywords:
            raise self.error(RelvmArgumentError, "expected positional arguments, got a keyword", node.keywords[0].value)
        if isinstance(callee, Template):
            return self.inline_lambda(callee, node, name)
        expected = callee.type.params if isinstance(callee.type, FuncType) else ()
        types = (*expected, *(None,) * len(node.args))
        args = [self.expr(arg, type_) for arg, type_ in zip(node.args, types, strict=False)]
        return self.builder.call(callee, *args, name=name)

    def script_call(self, function: ScriptFunction, node: ast.Call, name: str | None) -> Expr:
        """Translate a call of a script.  Arguments can be passed by name, and parameters can have defaults."""
        callee = self.builder.function_ref(self.require(function))
        types = callee.type.params if isinstance(callee.type, FuncType) else ()
        signature = inspect.signature(function.python)
        given: dict[str, ast.expr] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.unsupported("a double-starred argument", keyword.value, "write the arguments one by one")
            given[keyword.arg] = keyword.value
        values: dict[str, Any] = dict(zip(map(str, range(len(node.args))), node.args, strict=True))
        if given or len(node.args) < len(types):
            try:
                bound = signature.bind(*node.args, **given)
            except TypeError as error:
                names = ", ".join(param.arg for param in parameters(self, function.tree))
                raise RelvmArgumentError(f"{function.name}: {error}; expected ({names})") from None
            bound.apply_defaults()
            values = dict(bound.arguments)
        expected = dict(zip(values, types, strict=False))
        written = sorted(
            (each for each in values if isinstance(values[each], ast.expr)),
            key=lambda each: (values[each].lineno, values[each].col_offset),
        )  # Python evaluates arguments in the order in which they are written
        args = {each: self.expr(values[each], expected.get(each)) for each in written}
        for each in values.keys() - args.keys():
            args[each] = self.as_expr(values[each], expected[each])
        return self.builder.call(callee, *(args[each] for each in values), name=name)

    def python_call(self, callee: Any, node: ast.Call, name: str | None) -> Value:
        """Translate a call of a function of Python's builtins or of the module math."""
        shown = ast.unparse(node.func)
        if callee in (len, pow) and len(node.args) == {len: 1, pow: 2}[callee] and not node.keywords:
            if callee is len:
                return self.length(self.expression(node.args[0]))
            return self.operation(ast.Pow(), node.args, node, name)
        if callee in (enumerate, range, reversed, zip):
            raise RelvmTypeError(f"{shown}(...) can only be used in a for or a comprehension")
        function = math_function(callee)
        if not (function or is_pure_builtin(callee)):
            advice = call_advice(callee)
            raise RelvmTypeError(f"a script cannot call {shown}, which is not part of the program; {advice}")
        values = [self.expression(arg) for arg in node.args]
        keywords = self.static_keywords(node)
        if all(map(is_python, values)):
            return self.python_result(callee, values, keywords, node)
        if callee in (list, tuple) and len(values) == 1:
            return tuple(self.known_items(node.args[0]))
        if function is None:
            raise RelvmTypeError(f"a script cannot call {shown} on its values; {call_advice(callee)}")
        if not all(map(is_single_number, values)):
            raise RelvmTypeError(f"{shown}: expected numbers; write np.{function}(...) for tensors")
        result = self.array_function(function, values, keywords, name)
        return self.convert(result, I64) if has_integer_result(callee) else result

    def python_result(self, callee: Any, values: list[Value], keywords: dict[str, Any], node: ast.Call) -> Value:
        """Call a function on values known during the translation, and return its result."""
        try:
            return callee(*values, **keywords)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise RelvmTypeError(f"{ast.unparse(node)}: {error}") from None

    def numpy_call(self, callee: Any, function: str, node: ast.Call, name: str | None) -> Value:
        """Translate a call of a function or a scalar type of NumPy.

        If all arguments are Python values, NumPy computes the result during the translation.
        """
        args, keywords = [self.expression(arg) for arg in node.args], self.static_keywords(node)
        if isinstance(callee, type) and len(args) == 1 and not keywords and not is_python(args[0]):
            return self.convert(args[0], dtype_of(callee), name)
        if not all(map(is_python, args)):
            return self.array_function(function, args, keywords, name)
        result = self.python_result(callee, args, keywords, node)
        # The result for Python numbers is a Python number, which takes the dtype of a tensor in the same operation.
        return result.item() if isinstance(result, np.float64 | np.int64 | np.bool_) else result

    def length(self, value: Value) -> Value:
        """Translate `len(value)`."""
        match value:
            case tuple() | list() | str():
                return len(value)
            case Expr(type=TensorType(shape=(first, *_))):
                return first if isinstance(first, int) else DimValue(first)
            case Expr(type=TupleType(fields=fields)):
                return len(fields)
        shown = value.type if isinstance(value, Expr) else repr(value)
        raise RelvmTypeError(f"len: expected a tensor of rank at least 1 and known shape, or a tuple; got {shown}")

    def operator_call(self, called: Operator, node: ast.Call, name: str | None) -> Expr:
        values = [self.expression(arg) for arg in node.args]
        if called.name in _FOLDS and len(values) == 1 and isinstance(values[0], tuple | list) and not node.keywords:
            return self.fold(called.name, values[0], node, name)
        if called.name == "abs" and len(values) == 1 and is_scalar(values[0]) and not node.keywords:
            return self.scalar_function("absolute", values, name)
        if called.name in ("min", "max") and len(values) > 1 and not node.keywords and all(map(is_scalar, values)):
            return reduce(lambda a, b: self.builder.prim(called.name, a, b, name=name), self.promote_scalars(values))
        args = self.operator_arguments(values)
        return self.builder.op(called.name, *args, name=name, **self.static_keywords(node))

    def fold(self, function: str, items: Sequence[Value], node: ast.Call, name: str | None) -> Value:
        """Translate `sum`, `min` or `max` of the items of a Python sequence."""
        if not items:
            raise RelvmTypeError(f"{ast.unparse(node)}: expected at least one item")
        if function == "sum":
            return reduce(lambda a, b: self.apply_operator(ast.Add(), [a, b], node, name), items)
        if all(map(is_scalar, items)):
            return reduce(lambda a, b: self.builder.prim(function, a, b), self.promote_scalars(list(items)))
        return reduce(lambda a, b: self.array_function(_FOLDS[function], [a, b], {}, name), items)

    def static_keywords(self, node: ast.Call) -> dict[str, Any]:
        """Return the keyword arguments of a call, whose values must be known at translation time."""
        values = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.unsupported("a double-starred argument", keyword.value)
            values[keyword.arg] = self.expression(keyword.value)
            if isinstance(values[keyword.arg], Expr):
                raise self.error(RelvmTypeError, f"{keyword.arg} must be known at translation time", keyword.value)
        return values

    def inline_lambda(self, template: Template, node: ast.Call, name: str | None) -> Value:
        """Translate `node`, a call of a lambda, by inlining the body of the lambda."""
        params = [param.arg for param in positional_parameters(self, template.node)]
        if len(params) != len(node.args):
            raise RelvmArgumentError(f"the lambda takes {counted(len(params), 'argument')}, got {len(node.args)}")
        args = [self.expression(arg) for arg in node.args]
        return self.within({**template.scope, **dict(zip(params, args, strict=True))}, template.node.body, name)

    def within(self, scope: dict[str, Value], node: ast.expr, name: str | None = None) -> Value:
        outer, self.scope = self.scope, scope
        try:
            return self.expression(node, name)
        finally:
            self.scope = outer

    def lambda_function(self, template: Template, types: tuple[Type, ...]) -> Expr:
        """Translate a lambda to a local function of the program.  types: the types of its parameters."""
        params = [param.arg for param in positional_parameters(self, template.node)]
        if len(params) != len(types):
            raise RelvmArgumentError(
                f"expected a function of {counted(len(types), 'parameter')}, got a lambda of {len(params)}"
            )

        def body(*variables: Expr) -> Expr:
            scope = {**template.scope, **dict(zip(params, variables, strict=True))}
            return self.as_expr(self.within(scope, template.node.body))

        return self.builder.local_function(list(zip(params, types, strict=True)), body)

    def call_packed(self, node: ast.Call, name: str | None) -> Expr:
        """Translate `packed("name", a, b, result="f32[n]", pure=True)`."""
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        self.only(keywords, ("result", "pure"), node)
        function = self.expression(node.args[0]) if node.args else None
        if not isinstance(function, str):
            raise RelvmArgumentError("packed: expected the name of the function as a string, then the arguments")
        result = self.type(keywords["result"]) if "result" in keywords else OBJECT
        pure = self.expression(keywords["pure"]) if "pure" in keywords else False
        if not isinstance(pure, bool):
            raise RelvmTypeError("packed: pure must be True or False")
        args = [self.expr(arg) for arg in node.args[1:]]
        return self.builder.packed(function, *args, result=result, pure=pure, name=name)

    def call_call_kernel(self, node: ast.Call, name: str | None) -> Expr:
        """Translate `call_kernel(f, x, 2.0, result="f32[n, m]")`."""
        callee = self.expression(node.args[0]) if node.args else None
        if not isinstance(callee, ScriptKernel):
            raise RelvmArgumentError("call_kernel: expected a function decorated with @kernel, then its inputs")
        return self.kernel_call(callee, node.args[1:], node.keywords, node, name)

    def kernel_call(
        self, kernel: ScriptKernel, args: list[ast.expr], keywords: list[ast.keyword], node: ast.Call, name: str | None
    ) -> Expr:
        stated = {keyword.arg: keyword.value for keyword in keywords}
        self.only(stated, ("result",), node)
        result = self.type(stated["result"]) if "result" in stated else None
        called = self.require(kernel)
        inputs = (*(buffer.type for buffer in kernel.definition.inputs), *(None,) * len(args))
        values = (self.expr(arg, type_) for arg, type_ in zip(args, inputs, strict=False))
        return self.builder.call_kernel(called, *values, result=result, name=name)

    def call_partial(self, node: ast.Call, name: str | None) -> Expr:
        """Translate `partial(f, b)`, which binds the last arguments of f."""
        self.only({keyword.arg: keyword for keyword in node.keywords}, (), node)
        if not node.args:
            raise RelvmArgumentError("partial: expected a function and its last arguments")
        function = self.expr(node.args[0])
        params = function.type.params if isinstance(function.type, FuncType) else ()
        given = node.args[1:]
        expected = (*(None,) * max(0, len(given) - len(params)), *params[max(0, len(params) - len(given)) :])
        args = [self.expr(arg, type_) for arg, type_ in zip(given, expected, strict=True)]
        return self.builder.partial(function, *args, name=name)

    def call_match_cast(self, node: ast.Call, name: str | None) -> Expr:
        """Translate `match_cast(x, "f32[m]")`."""
        self.only({keyword.arg: keyword for keyword in node.keywords}, (), node)
        if len(node.args) != 2:
            raise RelvmArgumentError(
                f"match_cast: expected a value and a type, got {counted(len(node.args), 'argument')}"
            )
        value = self.expr(node.args[0])
        where = f"{self.runtime_position(node)}: match_cast"
        return self.builder.match_cast(value, self.type(node.args[1]), name, where)

    def call_shape(self, node: ast.Call, name: str | None) -> Expr:
        """Translate `shape(n, n * 2 + 1)`."""
        known = set(self.dims)
        try:
            found = parse_expr(ast.unparse(node), {}, self.dims)
        except RelvmError as error:
            raise self.error(type(error), f"{ast.unparse(node)}: {error.reason}", node) from None
        for dim in self.dims.keys() - known:
            raise RelvmNameError(f"no dimension {dim}{near_matches(dim, known)}")
        return found

    def call_const(self, node: ast.Call, name: str | None) -> Expr:
        """Translate `const(f32[2, 2], [[1, 2], [3, 4]])`."""
        self.only({keyword.arg: keyword for keyword in node.keywords}, (), node)
        if len(node.args) != 2:
            raise RelvmArgumentError(
                f"const: expected a type and the elements, got {counted(len(node.args), 'argument')}"
            )
        type_, elements = self.type(node.args[0]), self.expression(node.args[1])
        if not isinstance(type_, TensorType) or type_.dtype is None or isinstance(elements, Expr):
            raise RelvmTypeError(f"const: expected a tensor type and numbers, got {ast.unparse(node)}")
        try:
            array = np.array(elements, type_.dtype.numpy)
        except (ValueError, TypeError, OverflowError) as error:
            raise RelvmTypeError(f"cannot convert {ast.unparse(node.args[1])} to {type_}: {error}") from None
        if array.shape != type_.shape:
            raise RelvmTypeError(f"const: expected {type_}, got elements of shape {list(array.shape)}")
        return constant(array)

    def only(self, keywords: Mapping[str | None, Any], known: tuple[str, ...], node: ast.Call) -> None:
        for keyword in keywords:
            if keyword not in known:
                reason = f"{ast.unparse(node.func)}: unknown argument {keyword}"
                raise self.error(RelvmArgumentError, f"{reason}{near_matches(keyword or '', known)}", node)


def _dim_operation(function: str, left: Value, right: Value) -> AnyDim | None:
    """Apply an operation, such as "add", to dimensions and integers.  Return the result as a dimension.

    Return None if an operand has another type, dimensions do not support the operation, or the result is too large.
    """
    if not all(isinstance(value, DimValue) or type(value) is int for value in (left, right)):
        return None
    dims = [value.dim if isinstance(value, DimValue) else value for value in (left, right)]
    if function not in ("add", "sub", "mul") and not (function in ("floordiv", "mod") and type(right) is int and right):
        return None
    if max(map(node_count, dims)) > _LARGEST_DIM:
        return None
    result = dim_op(function, *dims)
    numbers = [result] if isinstance(result, int) else [coefficient for _, coefficient in result.terms]
    fits = node_count(result) <= _LARGEST_DIM and all(-(1 << 63) <= number < 1 << 63 for number in numbers)
    return result if fits else None


def _list_value(values: list[Value]) -> Value:
    """Return `values` as a list.  If one is a value of the program, the list is a tuple, because lists can change."""
    return tuple(values) if any(isinstance(value, Expr) for value in values) else values


def parameters(translator: ExpressionTranslator, node: ast.Lambda | ast.FunctionDef) -> list[ast.arg]:
    """Return the parameters of a function.  Raise RelvmSyntaxError if one is starred."""
    args = node.args
    if starred := args.vararg or args.kwarg:
        reason = "a starred parameter"
        raise translator.unsupported(reason, starred, f'take a tuple, as in {starred.arg}: "(f32[n], f32[n])"')
    return [*args.posonlyargs, *args.args, *args.kwonlyargs]


def positional_parameters(translator: ExpressionTranslator, node: ast.Lambda | ast.FunctionDef) -> list[ast.arg]:
    """Return the parameters of a nested function.  Raise RelvmSyntaxError if one has a default or is keyword-only."""
    if node.args.defaults or node.args.kwonlyargs:
        reason = "a parameter that has a default or is keyword-only, in a nested function or a lambda,"
        raise translator.unsupported(reason, node, "pass the value in each call")
    return parameters(translator, node)
