"""Printer of the text form of modules.

relvm/frontend/text/parser.py parses the text form, and docs/language.md contains its grammar.

The printer makes names unique in each function of the module, and different from keywords and operators.  Parsing the
text therefore results in the same program.  The printer does not recurse along the bindings of a block.
"""

from __future__ import annotations

import base64
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from types import UnionType
from typing import Any

import numpy as np

from relvm.errors import RelvmTypeError
from relvm.ir.dtypes import F64, DType, dtype_of
from relvm.ir.expr import (
    Attributes,
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
    HasModule,
    If,
    KernelCall,
    KernelRun,
    Kill,
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
    expect_module,
)
from relvm.ir.kernel_def import KernelDef
from relvm.ir.kernel_def_printer import kernel_lines
from relvm.ir.node import Node, Printed, register_printer, walk
from relvm.ir.operator import operators
from relvm.ir.scalar_ops import FORMS
from relvm.ir.symbolic import AnyDim, DimVar, evaluate_with, format_dim, var_dim
from relvm.ir.types import OBJECT, VOID, Type, format_type, map_dims
from relvm.ir.unique_names import IDENTIFIER, UniqueNames
from relvm.numpy_dtypes import STRINGS, plain_bytes
from relvm.quoting import text_string

KEYWORDS = frozenset(
    "module def fn with if then else return true false null inf nan const shape dtype match_cast".split()  # noqa: SIM905
    + "packed packed_pure builtin kernel run kill prim dim".split()  # noqa: SIM905
)
DIM_KEYWORDS = frozenset(("_", "min", "max"))
MAX_LISTED_ELEMENTS = 64  # longer constants are printed as base64

_SIGNS = {(function, operands): form for (form, operands), function in FORMS.items()}


def print_module(module: Module | HasModule, *, elide_constants: bool = False, show_types: bool = True) -> str:
    """Return the module as text that `parse_module` parses, ending in a newline.

    Parameters
    ----------
    module
        A module at any stage, or a function that is decorated by `script`.
    elide_constants
        Whether constants of more than 64 elements become `const(f32[512, 64], ...)`, which does not parse.
    show_types
        Whether bindings show the types of their variables.  Parameters and results always show their types.
    """
    module = expect_module("print_module: module", module)
    return "".join(f"{line}\n" for line, _ in module_lines(module, elide_constants, show_types))


def module_lines(
    module: Module, elide_constants: bool = False, show_types: bool = True
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the lines of `print_module`, each with the source locations (origins) of its contents.

    elide_constants: whether the elements of a constant with more than 64 elements are replaced by `...`.
    show_types: whether bindings show the types of their variables.
    """
    constants = _shared_constants(module)
    if module.attributes:
        yield f"module with ({_attributes(module.attributes)})", ()
        yield "", ()
    if constants:
        writer = _Printer(elide_constants, show_types)
        for each, name in constants.values():
            yield f"const {name} = {writer.constant(each.value, str(each.type))}", ()
        yield "", ()
    kernels = [kernel for _, kernel in module.kernels if isinstance(kernel, KernelDef)]
    for number, kernel in enumerate(kernels):
        if number:
            yield "", ()
        yield from kernel_lines(kernel, _name(kernel.name))
    for number, function in enumerate(module.functions, len(kernels)):
        printer = _Printer(elide_constants, show_types, constants)
        text = printer.top_level(function)
        if number:
            yield "", ()
        for place, line in enumerate(text.split("\n")):
            yield line, tuple(printer.origins.get(place, ()))


def _shared_constants(module: Module) -> dict[int, tuple[Constant, str]]:
    """Return the long constants that the module uses more than once, so that each is printed only once.

    The result maps the id of a constant's array to the constant and its name in the text.
    """
    uses: dict[int, list[Constant]] = {}
    used_names = {item.name for item in walk(module) if isinstance(item, Var)}
    for item in walk(module):
        if isinstance(item, Constant) and item.value.size > MAX_LISTED_ELEMENTS:
            uses.setdefault(id(item.value), []).append(item)
    shared = [constants[0] for constants in uses.values() if len(constants) > 1]
    names = filter(lambda name: name not in used_names, (f"constant_{i}" for i in itertools.count(1)))
    return {id(each.value): (each, name) for each, name in zip(shared, names, strict=False)}


def print_function(function: Function, *, elide_constants: bool = False, show_types: bool = True) -> str:
    """Return `function`, one function of a module, as text.

    elide_constants: whether the elements of a constant with more than 64 elements are replaced by `...`.
    show_types: whether bindings show the types of their variables.
    """
    return _Printer(elide_constants, show_types).top_level(function)


def printed_names(function: Function) -> dict[Var, str]:
    """Return the name of each variable in the printed text of `function`."""
    printer = _Printer(elide_constants=True, show_types=False)
    printer.top_level(function)
    return printer.name_of.given | dict.fromkeys(printer.unused, "_")


def print_expr(expr: Expr | Binding | MatchCast, *, elide_constants: bool = False, show_types: bool = True) -> str:
    """Return `expr`, an expression or a binding, as text.  Free variables are printed with their own names.

    elide_constants: whether the elements of a constant with more than 64 elements are replaced by `...`.
    show_types: whether bindings show the types of their variables.
    """
    printer = _Printer(elide_constants, show_types)
    printer.find_unused(expr)
    if isinstance(expr, Expr):
        printer.expr(expr)
    else:
        printer.binding(expr)
    return "".join(printer.out)


def _text(item: Printed, elide_constants: bool) -> str:
    """Return the text form of a node or a kernel, as `str` and `repr` display it."""
    match item:
        case Module():
            return print_module(item, elide_constants=elide_constants).removesuffix("\n")
        case Function():
            return print_function(item, elide_constants=elide_constants)
        case KernelDef():
            return "\n".join(line for line, _ in kernel_lines(item, _name(item.name)))
        case Type():
            return format_type(item)
        case Expr() | Binding() | MatchCast():
            return print_expr(item, elide_constants=elide_constants)
    raise AssertionError(f"{type(item).__name__} has no text form")


register_printer(_text)

_Class = type | UnionType


class _Printer:
    """Prints one function of the module."""

    def __init__(
        self, elide_constants: bool, show_types: bool, constants: dict[int, tuple[Constant, str]] | None = None
    ) -> None:
        self.constants = constants or {}
        self.elide_constants = elide_constants
        self.show_types = show_types
        self.out: list[str] = []
        self.line_number = 0
        self.origins: dict[int, dict[str, None]] = {}  # line number -> origins
        self.indent = 0
        self.name_of = UniqueNames(
            KEYWORDS | operators().keys() | {"_"} | {name for _, name in self.constants.values()}, "v"
        )
        self.dim_name_of = UniqueNames(DIM_KEYWORDS, "d")
        self.dim_vars: dict[DimVar, AnyDim] = {}  # a variable -> the same variable with its printed name
        self.type_texts: dict[Type, str] = {}
        self.unused: set[Var] = set()

    def find_unused(self, expr: Node) -> None:
        """Record in `unused` the variables named `_` that no expression uses.

        All of them are printed as `_`, whereas other names are made unique.
        """
        seen = Counter(item for item in walk(expr) if isinstance(item, Var) and item.name == "_")
        self.unused = {var for var, count in seen.items() if count == 1}

    def top_level(self, function: Function) -> str:
        self.find_unused(function)
        for param in function.params:
            self.record_origins(param.origins)
        self.out.append(f"{'private ' if function.private else ''}def {_name(function.name)}")
        self.signature_and_body(function)
        return "".join(self.out)

    def var(self, var: Var) -> str:
        return "_" if var in self.unused else self.name_of(var)

    def dim(self, dim: AnyDim) -> AnyDim:
        """Return `dim` with each variable renamed to its printed name.

        The terms of the result are sorted by the printed names.
        """
        return evaluate_with(dim, self.dim_var)

    def dim_var(self, var: DimVar) -> AnyDim:
        if var not in self.dim_vars:
            self.dim_vars[var] = var_dim(DimVar(self.dim_name_of(var), var.signed))
        return self.dim_vars[var]

    def type(self, type_: Type) -> str:
        if type_ not in self.type_texts:
            self.type_texts[type_] = format_type(map_dims(self.dim, type_))
        return self.type_texts[type_]

    def line(self) -> None:
        self.out.append("\n" + "  " * self.indent)
        self.line_number += 1

    def record_origins(self, origins: Iterable[str]) -> None:
        """Record that the current line contains an expression with the source locations `origins`."""
        self.origins.setdefault(self.line_number, {}).update((origin, None) for origin in origins if origin)

    def listed(self, items: Iterable, write: Callable[[Any], None]) -> None:
        for i, item in enumerate(items):
            if i:
                self.out.append(", ")
            write(item)

    def signature_and_body(self, function: Function) -> None:
        params = (self.var(p) + (f": {self.type(p.type)}" if p.type else "") for p in function.params)
        self.out.append(f"({', '.join(params)})")
        if function.result_type is not None:
            self.out.append(f" {'->' if function.pure else '=>'} {self.type(function.result_type)}")
        elif not function.pure:
            self.out.append(" =>")
        if function.attributes:
            self.out.append(f" with ({_attributes(function.attributes)})")
        self.out.append(" " if isinstance(function.body, Block) else " = ")
        self.expr(function.body)

    def block(self, block: Block) -> None:
        if not block.bindings and not any(isinstance(item, Block) and item.bindings for item in walk(block.result)):
            self.record_origins((block.origin,))
            self.out.append("{ return ")
            self.expr(block.result)
            self.out.append(" }")
            return
        self.out.append("{")
        self.indent += 1
        for binding in block.bindings:
            self.line()
            self.binding(binding)
        self.line()
        self.record_origins((block.origin,))
        self.out.append("return ")
        self.expr(block.result)
        self.indent -= 1
        self.line()
        self.out.append("}")

    def binding(self, binding: Binding | MatchCast) -> None:
        var, value = binding.var, binding.value
        self.record_origins(var.origins)
        if isinstance(binding, MatchCast):
            assert var.type is not None, f"match_cast {var.name} has no type"
            self.out.append(f"{self.var(var)} = match_cast(")
            self.expr(value)
            where = f", {_literal(binding.where)}" if binding.where else ""
            self.out.append(f", {self.type(var.type)}{where})")
            return
        void = var in self.unused and (var.type == VOID or var.type is None) and is_void_call(value)
        if void and var.type is None:  # `_ = run k()` would imply void, but this binding has no type
            self.unused.remove(var)
        typed = self.show_types and var.type is not None and not void
        self.out.append(f"{self.var(var)}: {self.type(var.type)} = " if typed else f"{self.var(var)} = ")
        self.expr(value, var.type if typed or void else None)

    def expr(self, expr: Expr, shown_type: Type | None = None) -> None:
        """Append the text of `expr`.

        shown_type: the type of `expr` if the preceding text already contains it, otherwise None.
        """
        put = self.out.append
        if isinstance(expr, OpCall | KernelCall):
            self.record_origins(expr.origins)
        match expr:
            case Var():
                put(self.var(expr))
            case Block():
                self.block(expr)
            case If(cond, then, orelse):
                put("if ")
                self.expr(cond)
                put(" then ")
                self.expr(then)
                put(" else ")
                self.expr(orelse)
            case Fused(body):
                for binding in body.bindings:
                    self.record_origins(binding.var.origins)
                put("fused ")
                self.block(body)
            case Function(name):
                put(f"fn {_name(name)}" if name else "fn ")
                self.signature_and_body(expr)
            case Tuple(fields):
                put("(")
                self.listed(fields, self.expr)
                put(",)" if len(fields) == 1 else ")")
            case TupleItem(tuple_, index):
                self.operand(tuple_)
                put(f".{index}")
            case PackedCall() | KernelCall() | BuiltinCall() | KernelRun():
                self.call(expr)
                usual_type = {KernelCall: None, KernelRun: VOID}.get(type(expr), OBJECT)
                shown_type = shown_type or usual_type
                if expr.type is not None and expr.type != shown_type:
                    put(f" : {self.type(expr.type)}")
            case PrimCall():
                self.prim_call(expr)
            case Call() | OpCall():
                self.call(expr)
            case Kill(var):
                put("kill ")
                self.operand(var, bare_classes=Var)
            case _:
                put(self.atom(expr))

    def prim_call(self, call: PrimCall) -> None:
        bare = Var | DimValue | TupleItem | Call | OpCall
        match _SIGNS.get((call.function, len(call.args))), call.args:
            case str(sign), (left, right):
                self.operand(left, bare | Prim)
                self.out.append(f" {sign} ")
                self.operand(right, bare | Prim)
            case str(sign), (operand,):
                self.out.append(sign)
                self.operand(operand, bare)
            case _, args:
                self.out.append(f"prim.{call.function}(")
                self.listed(args, self.expr)
                self.out.append(")")

    def call(self, expr: Call | OpCall | PackedCall | BuiltinCall | KernelCall | KernelRun) -> None:
        """Append the text of a call, without its result type."""
        put = self.out.append
        attributes = ""
        match expr:
            case Call(callee):
                self.operand(callee)
                put("(")
            case OpCall(op, _, values):
                put(f"{op.name}(")
                defaults = {p.name: repr(p.default) for p in op.attributes}
                attributes = _attributes(tuple((n, v) for n, v in values if defaults.get(n) != repr(v)))
            case PackedCall(name, args, pure):
                put(f"{'packed_pure' if pure else 'packed'}({text_string(name)}")
                put(", " if args else "")
            case BuiltinCall(name):
                put(f"builtin.{name}(")
            case KernelCall(name):
                put(f"kernel {_name(name)}(")
            case KernelRun(name):
                put(f"run {_name(name)}(")
        self.listed(expr.args, self.expr)
        put((", " if attributes and expr.args else "") + attributes + ")")

    def operand(
        self, expr: Expr, bare_classes: _Class = Var | FunctionRef | PackedRef | TupleItem | Tuple | Call
    ) -> None:
        """Append the text of an operand, in parentheses unless its class is one of `bare_classes`.

        The default of `bare_classes` suits an operand that is followed by an index, as in `x.0`, or by arguments, as in
        `x(1)`.
        """
        if isinstance(expr, bare_classes):
            return self.expr(expr)
        self.out.append("(")
        self.expr(expr)
        self.out.append(")")

    def atom(self, expr: Expr) -> str:
        match expr:
            case FunctionRef(name):
                return f"@{_name(name)}"
            case PackedRef(name):
                return f"@packed({text_string(name)})"
            case Constant(value) if id(value) in self.constants:
                return self.constants[id(value)][1]
            case Constant(value):
                return self.constant(value, self.type(expr.type))
            case Prim(value, dtype):
                return _literal(float(value) if dtype == F64 else value)
            case DimValue(dim):
                return f"dim({format_dim(self.dim(dim))})"
            case String(value):
                return text_string(value)
            case DTypeValue(value):
                return f"dtype({value.name})"
            case Null():
                return "null"
            case Shape(dims):
                return f"shape({', '.join(format_dim(self.dim(dim)) for dim in dims)})"
        raise AssertionError(f"cannot print {type(expr).__name__}")

    def constant(self, array: np.ndarray, type_text: str) -> str:
        long = array.size > MAX_LISTED_ELEMENTS
        if long and self.elide_constants:
            return f"const({type_text}, ...)"
        if long or _has_nonstandard_nan(array):
            little = array if array.dtype == STRINGS else array.astype(array.dtype.newbyteorder("<"))
            data = base64.b64encode(plain_bytes(little).tobytes()).decode()
            return f'const({type_text}, "{data}")'
        return f"const({type_text}, {_nested(array)})"


def is_void_call(value: Expr) -> bool:
    """Return whether the parser infers the type void for `value` in a binding `_ = value` without a type annotation."""
    return isinstance(value, KernelRun | Kill | BuiltinCall)


def _name(name: str) -> str:
    return name if IDENTIFIER.fullmatch(name) and name not in KEYWORDS else text_string(name)


def _attributes(attributes: Attributes) -> str:
    return ", ".join(f"{_name(name)}={_literal(value)}" for name, value in attributes)


def _literal(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return text_string(value)
        case DType():
            return value.name
        case tuple():
            inner = ", ".join(map(_literal, value))
            return f"({inner},)" if len(value) == 1 else f"({inner})"
    raise RelvmTypeError(f"an attribute of type {type(value).__name__} cannot be printed: {value!r}")


def _nested(array: np.ndarray | str) -> str:
    if isinstance(array, str):  # an element of an array of strings
        return text_string(array)
    if array.ndim:
        return f"[{', '.join(map(_nested, array))}]"
    scalar = array[()]
    if array.dtype == STRINGS:
        return _nested(scalar)
    dtype = dtype_of(array.dtype)
    if not dtype.is_float:
        return "true" if dtype.is_bool and scalar else "false" if dtype.is_bool else str(int(scalar))
    if dtype.is_narrow_float:
        return repr(float(scalar))
    text = str(scalar)  # the shortest text that restores the value in this dtype, if read as f64 and rounded
    return text if array.dtype.type(float(text)) == scalar else repr(float(scalar))


def _has_nonstandard_nan(array: np.ndarray) -> bool:
    """Return whether an element is a NaN with other bits than the literal `nan`."""
    if not dtype_of(array.dtype).is_float:
        return False
    bits, flat = f"u{array.itemsize}", np.ravel(array)
    with np.errstate(invalid="ignore"):  # caused by signaling NaNs
        is_nan = np.isnan(flat.astype(np.float64))
    odd = flat[is_nan].view(bits) != np.array(np.nan, array.dtype).view(bits)
    return bool(odd.any())
