"""Translation of Python functions to kernel definitions."""

from __future__ import annotations

import ast
from contextlib import ExitStack
from functools import cached_property, partial
from types import ModuleType
from typing import Any

from relvm.errors import RelvmError, RelvmNameError, RelvmSyntaxError, RelvmTypeError
from relvm.frontend.script.syntax_names import OPERATOR_SYMBOLS, SCALAR_OPERATORS, syntax_name
from relvm.frontend.script.values import SourceFunction, SourceReader
from relvm.frontend.text.kernel_parser import call_or_cast, finish_kernel, loop_bounds
from relvm.frontend.text.types import parse_type
from relvm.ir import kernel_def as kd
from relvm.ir.dtypes import ALL_DTYPES
from relvm.ir.kernel_def_builder import KernelDefBuilder
from relvm.ir.kernel_def_printer import LEVEL_OF
from relvm.ir.loop_ir import IfThen, Local
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import TensorType, Type

# The binary operators that kernels have.
_FUNCTIONS = {node: name for node, name in SCALAR_OPERATORS.items() if OPERATOR_SYMBOLS[node] in LEVEL_OF}
_LOOPS = ("grid", *kd.LOOPS)


class ScriptKernel(SourceFunction):
    """A function decorated by @kernel.  Use `kernel` to create one.

    A parameter is an output if the function assigns to its elements, unless the parameter is annotated as inout.  Only
    scripts can call the kernel.  `python` is the Python function, which computes the same on NumPy arrays, but slowly.
    """

    @cached_property
    def definition(self) -> kd.KernelDef:
        """The definition of the kernel.

        Raises
        ------
        RelvmSyntaxError, RelvmNameError, RelvmTypeError, RelvmArgumentError
            The source is not a valid kernel.  The message has the file, the line and the column.
        """
        return _KernelTranslator(self).kernel()

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    def __call__(self, /, *args: Any, **keywords: Any) -> Any:
        """Raise RelvmTypeError, because only scripts can call kernels."""
        raise RelvmTypeError(
            f"kernel {self.name} can only be called in a function decorated with @script; "
            f"{self.name}.python(...) runs it on NumPy arrays"
        )


class _KernelTranslator(SourceReader):
    where = "a kernel"

    def __init__(self, function: ScriptKernel) -> None:
        self.function = function
        self.tree = function.tree
        self.dims: dict[str, AnyDim] = {}
        self.build = KernelDefBuilder(function.name, self.dims, self.position(self.tree))

    def kernel(self) -> kd.KernelDef:
        tree = self.tree
        args = tree.args
        if args.defaults or args.vararg or args.kwonlyargs or args.kwarg:
            raise self.unsupported("a parameter that has a default, is keyword-only or is starred", tree)
        if tree.returns is not None and not (isinstance(tree.returns, ast.Constant) and tree.returns.value is None):
            raise self.error(RelvmSyntaxError, "a kernel returns nothing; it writes its last parameters", tree.returns)
        params = [*args.posonlyargs, *args.args]
        assigned = _assigned_parameters(tree.body)
        for param in params:
            if param.annotation is None:
                raise self.error(RelvmTypeError, f"parameter {param.arg} needs a type", param)
            is_inout, written = _split_inout(self.annotation_text(param.annotation))
            is_output = param.arg in assigned and not is_inout
            if not is_output and any(buffer.is_output for buffer in self.build.buffers.values()):
                raise self.error(RelvmTypeError, f"input {param.arg} follows an output; outputs come last", param)
            type_ = self.type(written, param.annotation)
            self.at_node(param, partial(self.build.param, param.arg, type_, is_output=is_output, is_inout=is_inout))
        self.at_node(tree, self.build.check_dims)
        self.translate_statements(tree.body)
        return self.at_node(tree, lambda: finish_kernel(self.build, self.function.source))

    def type(self, written: str, node: ast.expr) -> Type:
        """Parse the type `written` in the annotation `node`.  A dtype alone, such as `f32`, means a tensor of rank
        0."""
        if written in ALL_DTYPES:
            return TensorType(ALL_DTYPES[written], ())
        try:
            return parse_type(written, self.dims)
        except RelvmError as error:
            raise self.error(type(error), f"invalid type {written}: {error.reason}", node) from None

    # ---- statements ----

    def translate_statements(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self.translate_statement(statement)

    def translate_statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.For():
                self.loop(statement)
            case ast.If(test, then, orelse):
                cond = self.at_node(test, partial(kd.as_condition, self.expression(test)))
                with self.build.block() as first:
                    self.translate_statements(then)
                with self.build.block() as second:
                    self.translate_statements(orelse)
                self.build.add(IfThen(cond, tuple(first), tuple(second), self.position(statement)))
            case ast.Assign([ast.Name(name)], value):
                self.assign(name, self.expression(value), statement)
            case ast.AnnAssign(ast.Name(name), annotation, ast.expr() as value):
                self.define(name, annotation, self.expression(value), statement)
            case ast.Assign([ast.Subscript() as target], value):
                self.put(target, self.expression(value), statement)
            case ast.AugAssign(target, op, value):
                self.augmented_assignment(target, op, self.expression(value), statement)
            case ast.Pass() | ast.Expr(ast.Constant(str())):
                pass
            case ast.Return(None) | ast.Return(ast.Constant(None)) if statement is self.tree.body[-1]:
                pass
            case _:
                raise self.unsupported_syntax(statement)

    def loop(self, loop: ast.For) -> None:
        if loop.orelse:
            raise self.unsupported("the else of a loop", loop.orelse[0])
        targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
        counters = [target.id for target in targets if isinstance(target, ast.Name)]
        if len(counters) < len(targets):
            raise self.unsupported("a loop target other than names", loop.target)
        kind = ""
        if isinstance(loop.iter, ast.Call):
            kind = self.at_node(loop.iter, partial(self.function_name, loop.iter.func))
        if not isinstance(loop.iter, ast.Call) or kind not in _LOOPS or loop.iter.keywords:
            raise self.error(RelvmSyntaxError, f"expected a loop over one of {', '.join(_LOOPS)}", loop.iter)
        bounds = [self.expression(arg) for arg in loop.iter.args]
        loops = self.at_node(loop.iter, lambda: loop_bounds(kind, len(counters), bounds))
        with ExitStack() as open_loops:
            for counter, target, (start, stop) in zip(counters, targets, loops, strict=True):
                origin = self.position(loop)
                opened = self.build.loop(counter, start, stop, "range" if kind == "grid" else kind, origin)
                self.at_node(target, partial(open_loops.enter_context, opened))
            self.translate_statements(loop.body)

    def assign(self, name: str, value: kd.Operand, node: ast.stmt) -> None:
        """Translate the assignment `name = value`.  The first assignment of a name defines the variable."""
        if isinstance(self.build.find(name), Local):
            self.at_node(node, lambda: self.build.assign(name, value, self.position(node)))
        else:
            self.at_node(node, lambda: self.build.let(name, value))

    def define(self, name: str, annotation: ast.expr, value: kd.Operand, node: ast.stmt) -> None:
        """Translate `name: annotation = value`, which defines a variable with the annotated dtype."""
        type_ = self.type(self.annotation_text(annotation), annotation)
        if not isinstance(type_, TensorType) or type_.shape != ():
            raise self.error(
                RelvmTypeError, f"a variable of a kernel is a scalar, such as f32, got {type_}", annotation
            )
        scalar = self.at_node(node, lambda: kd.as_scalar(value, type_.known_dtype))
        if scalar.dtype != type_.dtype:
            raise self.error(RelvmTypeError, f"{name} has dtype {type_.dtype}, got {scalar.dtype}", node)
        self.at_node(node, lambda: self.build.let(name, scalar))

    def put(self, target: ast.Subscript, value: kd.Operand, node: ast.stmt) -> None:
        name, indices = self.element_access(target)
        self.at_node(target, lambda: self.build.put(name, indices, value, self.position(node)))

    def augmented_assignment(self, target: ast.expr, op: ast.operator, value: kd.Operand, node: ast.stmt) -> None:
        """Translate an augmented assignment, such as `x[i] += value`.  op: its operator."""
        if type(op) not in _FUNCTIONS:
            raise self.unsupported(syntax_name(op), node)
        match target:
            case ast.Name(name):
                before: kd.Operand = self.at_node(node, lambda: self.build.value(name, self.position(node)))
                result = self.at_node(node, lambda: kd.binary_operation(_FUNCTIONS[type(op)], before, value))
                self.at_node(node, lambda: self.build.assign(name, result, self.position(node)))
            case ast.Subscript():
                name, indices = self.element_access(target)
                element = self.at_node(target, lambda: self.build.element(name, indices, self.position(node)))
                result = self.at_node(node, lambda: kd.binary_operation(_FUNCTIONS[type(op)], element, value))
                self.at_node(target, lambda: self.build.put(name, indices, result, self.position(node)))
            case _:
                raise self.unsupported("this target of an assignment", target)

    def element_access(self, node: ast.Subscript) -> tuple[str, tuple[kd.Operand, ...]]:
        """Return the name of the parameter and the indices in an expression such as `x[i, j]`."""
        if not isinstance(node.value, ast.Name):
            raise self.unsupported("indexing a value that is not a parameter", node)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return node.value.id, tuple(self.expression(part) for part in parts)

    # ---- expressions ----

    def expression(self, node: ast.expr) -> kd.Operand:
        return self.at_node(node, lambda: self.unlocated(node))

    def unlocated(self, node: ast.expr) -> kd.Operand:
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                return value
            case ast.Name(id=name):
                return self.value_of_name(name, node)
            case ast.BinOp(left, ast.Pow(), right):
                return kd.call("power", (self.expression(left), self.expression(right)))
            case ast.BinOp(left, op, right) if type(op) in _FUNCTIONS:
                return kd.binary_operation(_FUNCTIONS[type(op)], self.expression(left), self.expression(right))
            case ast.UnaryOp(ast.USub(), operand):
                return kd.negative(self.expression(operand))
            case ast.UnaryOp(ast.UAdd(), operand):
                return self.expression(operand)
            case ast.UnaryOp(ast.Not(), operand):
                return kd.negation(self.expression(operand))
            case ast.BoolOp(op, values):
                function = "and" if isinstance(op, ast.And) else "or"
                result = self.expression(values[0])
                for operand in values[1:]:
                    result = kd.binary_operation(function, result, self.expression(operand))
                return result
            case ast.Compare(left, ops, comparators):
                return self.comparison(left, ops, comparators, node)
            case ast.IfExp(test, then, orelse):
                return kd.conditional(self.expression(test), self.expression(then), self.expression(orelse))
            case ast.Subscript():
                name, indices = self.element_access(node)
                return self.build.element(name, indices, self.position(node))
            case ast.Call(func, args, []):
                return call_or_cast(self.function_name(func), tuple(map(self.expression, args)))
        if isinstance(node, ast.Constant):
            raise self.unsupported(f"the constant {node.value!r}", node)
        raise self.unsupported_syntax(node)

    def comparison(
        self, left: ast.expr, ops: list[ast.cmpop], comparators: list[ast.expr], node: ast.Compare
    ) -> kd.Operand:
        """Translate `a < b < c` as `a < b and b < c`."""
        values = [self.expression(part) for part in (left, *comparators)]
        result: kd.Operand | None = None
        for op, first, second in zip(ops, values, values[1:], strict=False):
            if type(op) not in _FUNCTIONS:
                raise self.unsupported(syntax_name(op), node)
            compared = kd.binary_operation(_FUNCTIONS[type(op)], first, second)
            result = compared if result is None else kd.binary_operation("and", result, compared)
        assert result is not None
        return result

    def value_of_name(self, name: str, node: ast.Name) -> kd.Operand:
        """Return the value of a name: a value of the kernel, or a number that Python code around the kernel defines.

        The number can be defined in the class, the enclosing functions or the file.
        """
        if self.build.find(name) is not None:
            return self.build.value(name, self.position(node))
        for names in self.python_names():
            if name in names:
                value = names[name]
                if isinstance(value, bool | int | float):
                    return value
                raise RelvmTypeError(f"{name} is a Python {type(value).__name__}; expected a bool, an int or a float")
        raise self.build.unknown(name)

    def function_name(self, node: ast.expr) -> str:
        """Return the name of a called function, which is written as `f`, or as `package.f` with an imported package."""
        match node:
            case ast.Name(id=name):
                return name
            case ast.Attribute(ast.Name(id=package), name):
                found = next((names[package] for names in self.python_names() if package in names), None)
                if isinstance(found, ModuleType) and hasattr(found, name):
                    return name
        raise RelvmNameError(f"no function {ast.unparse(node)}")


def _split_inout(annotation: str) -> tuple[bool, str]:
    """Return whether an annotation begins with `inout`, as in `"inout f32[n]"`, and the type that it contains."""
    first, _, rest = annotation.strip().partition(" ")
    return (True, rest.strip()) if first == "inout" and rest else (False, annotation)


def _assigned_parameters(body: list[ast.stmt]) -> set[str]:
    """Return the names of the parameters to whose elements statements assign, as in `x[i] = 1`."""
    found = set()
    for item in ast.walk(ast.Module(body, [])):
        if isinstance(item, ast.Subscript) and isinstance(item.ctx, ast.Store) and isinstance(item.value, ast.Name):
            found.add(item.value.id)
    return found
