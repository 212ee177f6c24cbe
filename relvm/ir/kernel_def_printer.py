"""Printer of the text form of kernel definitions, which relvm/frontend/text/kernel_parser.py parses."""

from __future__ import annotations

import math
from collections.abc import Iterator

from relvm.ir import loop_ir as ir
from relvm.ir.kernel_def import KernelDef, default_dtype
from relvm.ir.scalar_ops import COMPARISONS, SIGNS
from relvm.ir.symbolic import DimVar, evaluate_with, format_dim, var_dim
from relvm.ir.types import format_type, map_dims
from relvm.ir.unique_names import UniqueNames

# Binary operators from the lowest to the highest precedence, as in Python.
LEVELS = (("or",), ("and",), ("==", "!=", "<", "<=", ">", ">="), ("+", "-"), ("*", "/", "//", "%"))
LEVEL_OF = {sign: level for level, signs in enumerate(LEVELS) for sign in signs}
UNARY, COMPARISON = len(LEVELS), LEVEL_OF["<"]
KERNEL_KEYWORDS = frozenset(
    ("and", "else", "false", "for", "if", "in", "inf", "let", "nan", "not", "or", "then", "true")
)
_SIGNS = SIGNS | {"and": "and", "or": "or"}


def kernel_lines(kernel: KernelDef, name: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the lines of a kernel's text, each with the source locations of its contents.

    name: the kernel's name in the text.
    """
    yield from _Printer(kernel).lines(name)


class _Printer:
    def __init__(self, kernel: KernelDef) -> None:
        self.kernel = kernel
        self.name_of = UniqueNames(KERNEL_KEYWORDS | {"_", "min", "max"}, "v")
        for var in kernel.dim_vars:
            self.name_of(var)

    def lines(self, name: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        inputs, outputs = (", ".join(map(self.param, part)) for part in (self.kernel.inputs, self.kernel.outputs))
        yield f"kernel {name}({inputs}) -> ({outputs}) {{", (self.kernel.origin,)
        yield from self.block(self.kernel.body, "  ")
        yield "}", ()

    def param(self, buffer: ir.Buffer) -> str:
        named = map_dims(lambda dim: evaluate_with(dim, lambda var: var_dim(DimVar(self.name_of(var)))), buffer.type)
        return f"{'inout ' if buffer.is_inout else ''}{self.name_of(buffer)}: {format_type(named)}"

    def block(self, body: tuple[ir.Statement, ...], indent: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        for statement in body:
            yield from self.statement(statement, indent)
        self.name_of.release(statement.local for statement in body if isinstance(statement, ir.Let))

    def statement(self, statement: ir.Statement, indent: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        match statement:
            case ir.Loop():
                loops, sizes = self.nested_loops(statement)
                counters = [loop.counter for loop in loops]
                yield f"{indent}for {', '.join(map(self.name_of, counters))} in {sizes} {{", (statement.origin,)
                yield from self.block(loops[-1].body, indent + "  ")
                self.name_of.release(counters)
                yield f"{indent}}}", ()
            case ir.Let(variable, value):
                yield f"{indent}let {self.name_of(variable)} = {self.standalone(value)}", ()
            case ir.Assign(variable, value, origin):
                yield f"{indent}{self.name_of(variable)} = {self.scalar(value)}", (origin,)
            case ir.Store(buffer, indices, value, origin):
                yield f"{indent}{self.element(buffer, indices)} = {self.scalar(value)}", (origin,)
            case ir.IfThen(cond, then, orelse, origin):
                yield f"{indent}if {self.scalar(cond)} {{", (origin,)
                yield from self.block(then, indent + "  ")
                if orelse:
                    yield f"{indent}}} else {{", ()
                    yield from self.block(orelse, indent + "  ")
                yield f"{indent}}}", ()

    def nested_loops(self, loop: ir.Loop) -> tuple[list[ir.Loop], str]:
        """Return the loops that are printed together as one loop, and the text of the kind and bounds of this loop.

        The first of these loops is `loop`.  Loops that are directly nested in each other are printed as one `grid`
        loop, if each of them fits (see `_fits_in_grid`).
        """
        loops = [loop]
        while len(loops[-1].body) == 1 and isinstance(inner := loops[-1].body[0], ir.Loop):
            if not (_fits_in_grid(loop) and _fits_in_grid(inner)):
                break
            loops.append(inner)
        bounds: list[str] = []
        for part in loops:
            bounds += map(self.scalar, (part.stop,) if _is_zero(part.start) else (part.start, part.stop))
        kind = "grid" if len(loops) > 1 else loop.kind
        return loops, f"{kind}({', '.join(bounds)})"

    def standalone(self, value: ir.Scalar) -> str:
        """Return the text of the value of a `let`.

        No operand determines the dtype of a literal in this position.  A literal is therefore printed with its dtype,
        unless this is the default dtype of its value.
        """
        if isinstance(value, ir.Literal) and default_dtype(value.value) != value.dtype:
            return self.literal(value, is_typed=True)
        return self.scalar(value)

    def scalar(self, scalar: ir.Scalar, outer: int = -1) -> str:
        """Return the text of an expression, in parentheses if its operator has a lower precedence than `outer`."""
        match scalar:
            case ir.Literal():
                text = self.literal(scalar)
                return f"({text})" if text.startswith("-") and outer >= UNARY else text
            case ir.Local():
                return self.name_of(scalar)
            case ir.Size(dim):
                text = format_dim(dim, self.name_of)
                return text if text.isidentifier() or text.isdigit() or outer < 0 else f"({text})"
            case ir.Load(buffer, indices):
                return self.element(buffer, indices)
            case ir.Operation("neg", (operand,)):
                text = f"-{self.first_operand(operand, outer=UNARY)}"
                return f"({text})" if outer > UNARY else text
            case ir.Operation("not", (operand,)):
                text = f"not {self.scalar(operand, COMPARISON)}"
                return f"({text})" if outer > COMPARISON else text
            case ir.Operation("select", (cond, then, orelse)):
                first = self.first_operand(then, orelse, outer=0)
                text = f"if {self.scalar(cond)} then {first} else {self.scalar(orelse)}"
                return f"({text})" if outer >= 0 else text
            case ir.Operation("cast", (operand,), dtype):
                # The literal of a conversion has a dtype of its own: f64(f32(0.1)) differs from the literal f64(0.1).
                return f"{dtype}({self.first_operand(operand)})"
            case ir.Operation(function, (left, right)) if _SIGNS.get(function) in LEVEL_OF:
                level = LEVEL_OF[_SIGNS[function]]
                # Comparisons are not associative.
                first = self.first_operand(left, right, outer=level + (function in COMPARISONS))
                text = f"{first} {_SIGNS[function]} {self.scalar(right, level + 1)}"
                return f"({text})" if outer > level else text
            case ir.Operation(function, operands):
                first = self.first_operand(operands[0], *operands[1:])
                return f"{function}({', '.join((first, *map(self.scalar, operands[1:])))})"
        raise AssertionError(f"cannot print {type(scalar).__name__}")

    def first_operand(self, scalar: ir.Scalar, *others: ir.Scalar, outer: int = -1) -> str:
        """Return the text of `scalar`, the first operand of an operation.

        If all operands are literals, the text of `scalar` includes its dtype, because no other operand determines it.

        others: the other operands, whose dtype is that of `scalar`.
        outer: the text is in parentheses if the operator of `scalar` has a lower precedence than this.
        """
        literals = all(isinstance(each, ir.Literal) for each in (scalar, *others))
        if literals and isinstance(scalar, ir.Literal):
            return self.literal(scalar, is_typed=True)
        return self.scalar(scalar, outer)

    def element(self, buffer: ir.Buffer, indices: tuple[ir.Scalar, ...]) -> str:
        at = f"[{', '.join(map(self.scalar, indices))}]" if indices else ""
        return self.name_of(buffer) + at

    def literal(self, literal: ir.Literal, *, is_typed: bool = False) -> str:
        value = literal.value
        if isinstance(value, bool):
            return "true" if value else "false"
        if literal.dtype.is_float and not math.isfinite(value):
            text = "nan" if value != value else "inf" if value > 0 else "-inf"
        else:
            text = repr(value)
        return f"{literal.dtype}({text})" if is_typed else text


def _is_zero(scalar: ir.Scalar) -> bool:
    return isinstance(scalar, ir.Literal) and scalar.value == 0


def _fits_in_grid(loop: ir.Loop) -> bool:
    """Return whether `loop` can be one of the loops that are printed as a `grid`.

    It must be a `range` loop from 0 whose end contains only sizes and literals.  A grid states the ends of all its
    loops before the first loop begins, and sizes and literals already have their values at that point.
    """
    parts = ir.parts_of(loop.stop)
    return loop.kind == "range" and _is_zero(loop.start) and all(isinstance(p, ir.Size | ir.Literal) for p in parts)
