"""Values of names and expressions in a script, and their conversion to IR expressions.

A value is either an `Expr` or a Python object known at translation time.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_origin

import numpy as np

from relvm.data_classes import record, value_record
from relvm.errors import RelvmError, RelvmNameError, RelvmSyntaxError, RelvmTypeError, counted
from relvm.frontend.script.syntax_names import syntax_advice, syntax_name
from relvm.frontend.text.lexer import Source
from relvm.ir.dtypes import F64, DType
from relvm.ir.expr import Constant, DTypeValue, Expr, Null, String, constant, prim
from relvm.ir.types import PrimType, TensorType, Type

Value = Any
Located = ast.expr | ast.stmt | ast.arg | ast.keyword  # the syntax trees that have a position
LARGEST_STATIC = 100_000  # limit on the bits, items or characters of Python values, which Python does not limit


@record
class ArrayMethod:
    """A method of a tensor, such as `x.sum`, which only a call uses."""

    tensor: Expr
    name: str


@record
class Template:
    """A lambda, which is inlined at each call.

    node: its syntax tree.   scope: the values of the variables where the lambda is defined.
    """

    node: ast.Lambda
    scope: dict[str, Value]


@value_record
class Unbound:
    """The value of a variable that code must not use.

    The reason is that some path does not assign the variable, or that different paths assign different kinds of values.

    reason, kind: the message and the class of the error that is raised when the variable is used.
    """

    reason: str
    kind: type[RelvmError] = RelvmNameError


@record
class SourceFunction:
    """A Python function whose source is translated.

    Attributes
    ----------
    python
        The Python function.  Its closure and its globals define the names that the source uses.
    tree
        The syntax tree of the function.  Its line numbers refer to `source`.
    source
        The source of the file that contains the function.
    members
        The attributes of the decorated class in which the function is defined, by name.  Empty if the function is not
        defined in a class.
    types
        The variables of the enclosing Python function that are Annotated types, by name.
    """

    python: Any
    tree: ast.FunctionDef
    source: Source
    members: dict[str, Value]
    types: dict[str, Value]

    @property
    def name(self) -> str:
        """The name of the function, in Python and in the module."""
        return self.tree.name


class ScriptFunction(SourceFunction):
    """A Python function that is translated to a function of the IR."""

    def __repr__(self) -> str:
        return f"<script {self.name}>"


def error_at_node(source: Source, kind: type[RelvmError], reason: str, node: Located) -> RelvmError:
    """Return an error of class `kind` whose message has the position of `node`, a syntax tree.

    Columns in syntax trees are counted in bytes.
    """
    line = source.text.split("\n")[node.lineno - 1]
    return source.error_at(kind, reason, node.lineno, len(line.encode()[: node.col_offset].decode()))


class SourceReader:
    """Base class of the translators of a function's source.  It creates errors with a position in the source.

    function: the function.  where: the kind of source, for messages.
    """

    function: SourceFunction
    where = "a script"

    def error(self, kind: type[RelvmError], reason: str, node: Located) -> RelvmError:
        return error_at_node(self.function.source, kind, reason, node)

    def unsupported(self, what: str, node: Located, advice: str = "") -> RelvmError:
        """Return an error for syntax that is not supported.  advice: what to write instead."""
        return self.error(RelvmSyntaxError, f"{what} is not supported in {self.where}{advice and f'; {advice}'}", node)

    def unsupported_syntax(self, node: Located) -> RelvmError:
        return self.unsupported(syntax_name(node), node, syntax_advice(node))

    def position(self, node: Located) -> str:
        return f"{self.function.source.name}:{node.lineno}:{node.col_offset + 1}"

    def runtime_position(self, node: Located) -> str:
        """Return the name of the file, the line and the function, for an error at run time.

        The name of the file is without its folder, because the error message becomes part of the program.
        """
        return f"{os.path.basename(self.function.source.name)}:{node.lineno}: {self.function.name}"

    def at_node(self, node: Located, action: Callable[[], Any]) -> Any:
        """Call `action` and return its result.  If it raises an error without a position, add the position of
        `node`.
        """
        try:
            return action()
        except RelvmError as error:
            if error.origin or getattr(error, "lineno", None) is not None:
                raise
            raise self.error(type(error), str(error), node) from error

    def annotation_text(self, node: ast.expr) -> str:
        """Convert a type annotation to a type in the text form.

        The annotation is `"f32[n]"`, or `f32[n]` without quotes, or `Annotated[Tensor, "f32[n]"]`, or a name of such
        an Annotated type in Python, or `int`, `float` or `bool`.
        """
        match node:
            case ast.Constant(str(written)):
                return written.replace("[()]", "[]")
            case ast.Subscript(ast.Name() | ast.Attribute() as base, ast.Tuple([_, *parts])) if (
                self.python_value(base) is Annotated
            ):
                metadata = [part.value for part in parts if isinstance(part, ast.Constant)]
            case ast.Name() | ast.Attribute() if get_origin(value := self.python_value(node)) is Annotated:
                metadata = list(value.__metadata__)
            case ast.Name("int" | "float" as name) if self.python_value(node) is None:
                return {"int": "i64", "float": "f64"}[name]
            case _:
                return ast.unparse(node).replace("[()]", "[]")
        types = [each for each in metadata if isinstance(each, str)]
        if len(types) != 1:
            reason = f'{ast.unparse(node)}: expected one type as a string, as in Annotated[Tensor, "f32[n]"]'
            raise self.error(RelvmTypeError, f"{reason}; got {counted(len(types), 'string')}", node)
        return types[0]

    def python_value(self, node: ast.Name | ast.Attribute) -> Any:
        """Return the value of a name, or of a name with attributes, in Python.  Return None if it is not defined."""
        if isinstance(node, ast.Name):
            return next((names[node.id] for names in self.python_names() if node.id in names), None)
        if isinstance(node.value, ast.Name | ast.Attribute):
            return getattr(self.python_value(node.value), node.attr, None)
        return None

    def python_names(self) -> tuple[Mapping[str, Any], ...]:
        """Return the Python values that the source can use, by name.

        The mappings contain, in the order of lookup, the names of the class, the variables of the enclosing functions,
        the Annotated types among these variables, and the global names of the file.
        """
        function = self.function
        return function.members, closure_variables(function.python), function.types, function.python.__globals__


def closure_variables(python: Any) -> dict[str, Value]:
    """Return the values of the variables of enclosing functions that a Python function uses, by name.

    Variables that have not been assigned yet are omitted.
    """
    found = {}
    for name, cell in zip(python.__code__.co_freevars, python.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


def is_static(value: Value) -> bool:
    """Return whether operations on `value` are evaluated by Python during translation.

    The result is true for numbers, strings, None, dtypes and tuples of these, but not for arrays and values of the
    program.
    """
    if isinstance(value, tuple):
        return all(map(is_static, value))
    return isinstance(value, bool | int | float | str | None | DType) and not isinstance(value, np.generic)


def is_python(value: Value) -> bool:
    """Return whether `value` is known during the translation: a static value, an array, or a list or tuple of them."""
    if isinstance(value, tuple | list):
        return all(map(is_python, value))
    return is_static(value) or isinstance(value, np.ndarray | np.generic | type | np.dtype)


def is_scalar(value: Value) -> bool:
    """Return whether `value` is a number or a scalar of the program."""
    if isinstance(value, Expr):
        return isinstance(value.type, PrimType)
    return isinstance(value, bool | int | float) and not isinstance(value, np.generic)


def is_single_number(value: Value) -> bool:
    """Return whether `value` is a number, a scalar of the program, or a tensor of rank 0."""
    return is_scalar(value) or (isinstance(value, Expr) and isinstance(value.type, TensorType) and value.type.rank == 0)


def number_as_scalar(value: Value, dtype: DType) -> bool | int | float:
    """Convert a Python number to a Python bool, int or float, for a scalar of dtype bool, i64 or f64.

    For bool, the result is the truth value of `value`.  For i64, a float is rounded toward zero.

    Raises
    ------
    RelvmTypeError
        The dtype is i64 or f64, and `value` is not a number; the dtype is i64, and `value` is infinite or NaN; or the
        dtype is f64, and `value` is an integer that is too large for it.
    """
    if dtype.is_bool:
        return bool(value)
    if not isinstance(value, bool | int | float):
        raise RelvmTypeError(f"{dtype}: expected a number, got {value!r}")
    try:
        return float(value) if dtype == F64 else int(value)
    except (OverflowError, ValueError) as error:
        raise RelvmTypeError(f"{dtype}: {error}") from None


def number_as_tensor(value: Value, dtype: DType) -> Constant:
    """Convert a bool, an int or a float to a constant of rank 0 and dtype `dtype`.

    Raises
    ------
    RelvmTypeError
        The value cannot have this dtype: a float for an integer dtype, an int or a float for bool, an int that is out
        of range, or a value of another Python type.
    """
    kinds = bool if dtype.is_bool else bool | int if dtype.is_integer else bool | int | float
    fits = isinstance(value, kinds)
    try:
        array = np.array(value, dtype.numpy) if fits else None
    except OverflowError:
        array = None
    if array is None:
        advice = (
            "; convert the tensor, as in x.astype(np.float32)" if type(value) is float and not dtype.is_float else ""
        )
        raise RelvmTypeError(f"{value!r} cannot be used as {dtype}{advice}")
    return constant(array)


def as_expr(value: Value, expected: Type | None = None) -> Expr:
    """Convert a value to an expression.  If `expected` is a tensor type with a known dtype, a number becomes a tensor.

    Raises
    ------
    RelvmTypeError
        The IR has no constant for this kind of Python value.
    """
    match value:
        case Expr():
            return value
        case np.ndarray() | np.generic():
            return constant(value)
        case bool() | int() | float():
            if isinstance(expected, TensorType) and expected.dtype:
                return number_as_tensor(value, expected.dtype)
            if isinstance(expected, PrimType) and expected.dtype == F64 and type(value) is int:
                return prim(float(value))
            if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
                raise RelvmTypeError(f"{value} is out of the range of i64")
            return prim(value)
        case str():
            return String(value)
        case None:
            return Null()
        case DType():
            return DTypeValue(value)
        case Template():
            raise RelvmTypeError("the parameter types of this lambda are unknown; define the function with def")
    raise RelvmTypeError(f"a Python {type(value).__name__} cannot be a value of the program")


def result_size_bound(op: ast.AST, values: list[Value]) -> int:
    """Return an upper bound on the size of the result of a Python operation: its bits, items or characters.

    Return 0 if the result cannot be larger than the operands.  An operation such as 10**10**10 is rejected because of
    this bound.

    op: the operator.   values: the operands.
    """
    sizes = [value.bit_length() if isinstance(value, int) else _length(value) for value in values]
    match op, values:
        case ast.Pow(), [int(), int(exponent)]:
            return sizes[0] * max(exponent, 0)
        case ast.LShift(), [int(), int(places)]:
            return sizes[0] + places
        case ast.Mult(), [int(), int()]:
            return sum(sizes)
        case ast.Mult(), [int(count), other] | [other, int(count)]:
            return max(count, 0) * _length(other)
        case ast.Add(), _:
            return sum(sizes)
    return 0


def _length(value: Value) -> int:
    return len(value) if isinstance(value, str | tuple | list) else 0
