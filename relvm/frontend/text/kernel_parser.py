"""Parser of the text form of kernel definitions (docs/language.md, "Kernels")."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TypeVar

from relvm.errors import RelvmError, RelvmNameError, RelvmSyntaxError, counted, near_matches
from relvm.frontend.text.lexer import Source, Token
from relvm.frontend.text.literals import LiteralReader
from relvm.ir import kernel_def as kd
from relvm.ir.dtypes import ALL_DTYPES
from relvm.ir.kernel_def_builder import KernelDefBuilder
from relvm.ir.kernel_def_printer import COMPARISON, KERNEL_KEYWORDS, LEVEL_OF
from relvm.ir.loop_ir import Buffer, IfThen, Scalar
from relvm.ir.scalar_ops import FORMS
from relvm.ir.types import TensorType, Type
from relvm.kernels.lower_kernel_def import lower_kernel_def

_Result = TypeVar("_Result")
_FUNCTION_OF = {sign: FORMS.get((sign, 2), sign) for sign in LEVEL_OF}
_CHANGES = ("+", "-", "*", "/")  # followed by =


class KernelReader(LiteralReader):
    """Base class of the module parser: the part that parses kernels.  build: the builder of the kernel being parsed."""

    build: KernelDefBuilder

    def kernel_definition(self, name: str) -> kd.KernelDef:
        """Parse the definition of the kernel `name`, after the name: `(x: f32[n]) -> (out: f32[n]) { ... }`.

        A kernel without outputs can omit `-> ()`.
        """
        self.build = KernelDefBuilder(name, self.dims, self.source.origin(self.token.offset))
        start = self.token
        self.kernel_params(is_output=False)
        updates = any(buffer.is_inout for buffer in self.build.buffers.values())
        if not (updates and self.at("{")):
            self.expect("->", "-> and the outputs of the kernel")
            self.kernel_params(is_output=True)
        self.at_token(start, self.build.check_dims)
        self.kernel_block()
        return self.at_token(start, lambda: finish_kernel(self.build, self.source))

    def at_token(self, token: Token, action: Callable[[], _Result]) -> _Result:
        """Call `action` and return its result.  If it raises an error without a position, add the position of
        `token`.
        """
        try:
            return action()
        except RelvmError as error:
            if getattr(error, "lineno", None) is not None:
                raise
            raise self.error(type(error), str(error), token) from None

    def kernel_params(self, *, is_output: bool) -> None:
        self.expect("(")

        def param() -> None:
            is_inout = not is_output and self.at("inout") and self.following.text != ":"
            if is_inout:
                self.take()
            token = self.kernel_name("a parameter")
            self.expect(":", ": and the parameter's type")
            type_ = self.kernel_type()
            self.at_token(token, lambda: self.build.param(token.text, type_, is_output=is_output, is_inout=is_inout))

        self.comma_separated(")", param)

    def kernel_type(self) -> Type:
        """Parse the type of a kernel's parameter.  A dtype alone, such as `f32`, means a tensor of rank 0."""
        dtype = ALL_DTYPES.get(self.token.text)
        if dtype is not None and self.following.text != "[":
            self.take()
            return TensorType(dtype, ())
        return self.type()

    def kernel_name(self, expected: str) -> Token:
        if self.token.kind == "name" and self.token.text in KERNEL_KEYWORDS:
            raise self.error(RelvmSyntaxError, f"expected {expected}, got the keyword {self.token}", self.token)
        return self.expect_kind("name", expected)

    # ---- statements ----

    def kernel_block(self) -> None:
        """Parse the statements of a kernel in braces."""
        self.enter_level()
        self.expect("{")
        first = True
        while not self.at("}"):
            if not (first or self.accept(";") or self.token.is_first_in_line):
                raise self.unexpected("a new line or ; after the statement")
            first = False
            if not self.at("}"):
                self.kernel_statement()
        self.expect("}")
        self.depth -= 1

    def kernel_statement(self) -> None:
        start = self.token
        origin = self.source.origin(start.offset)
        if self.accept("for"):
            self.kernel_loop(origin)
        elif self.accept("let"):
            token = self.kernel_name("the name of a variable")
            self.expect("=")
            value = self.kernel_expression()
            self.at_token(token, lambda: self.build.let(token.text, value))
        elif self.accept("if"):
            self.kernel_branch(start)
        else:
            self.kernel_assignment(origin)

    def kernel_loop(self, origin: str) -> None:
        """Parse the rest of a loop after `for`: `i, j in grid(n, m) { ... }`.  origin: the location of the loop."""
        counters = [self.kernel_name("a loop counter")]
        while self.accept(","):
            counters.append(self.kernel_name("a loop counter"))
        self.expect("in")
        token = self.take()
        kinds = ("grid", *kd.LOOPS)
        if token.text not in kinds:
            reason = f"expected one of {', '.join(kinds)}, got {token}{near_matches(token.text, kinds)}"
            raise self.error(RelvmSyntaxError, reason, token)
        self.expect("(")
        bounds, _ = self.comma_separated(")", self.kernel_expression)
        loops = self.at_token(token, lambda: loop_bounds(token.text, len(counters), bounds))
        kind = "range" if token.text == "grid" else token.text
        with ExitStack() as open_loops:
            for counter, (start, stop) in zip(counters, loops, strict=True):
                loop = self.build.loop(counter.text, start, stop, kind, origin)
                self.at_token(counter, partial(open_loops.enter_context, loop))
            self.kernel_block()

    def kernel_branch(self, start: Token) -> None:
        """Parse the rest of a branch after `if`: `cond { ... } else { ... }`.  start: the token `if`."""
        cond = self.kernel_condition()
        with self.build.block() as then:
            self.kernel_block()
        with self.build.block() as orelse:
            if self.accept("else"):
                again = self.token
                if self.accept("if"):
                    self.enter_level()
                    self.kernel_branch(again)
                    self.depth -= 1
                else:
                    self.kernel_block()
        self.build.add(IfThen(cond, tuple(then), tuple(orelse), self.source.origin(start.offset)))

    def kernel_assignment(self, origin: str) -> None:
        """Parse `x = value`, `x += value`, `out[i] = value` or `out[i] += value`.

        origin: the source location of the statement.
        """
        token = self.kernel_name("a statement")
        indices = None
        if self.accept("["):
            listed, _ = self.comma_separated("]", self.kernel_expression)
            indices = tuple(listed)
        changed = None
        if self.token.text in _CHANGES and self.following.text == "=":
            changed = _FUNCTION_OF[self.take().text]
        sign = self.expect("=")
        value = self.kernel_expression()
        if changed is not None:
            before = self.at_token(
                token,
                lambda: (
                    self.build.value(token.text, origin)
                    if indices is None
                    else self.build.element(token.text, indices, origin)
                ),
            )
            value = self.at_token(sign, lambda: kd.binary_operation(changed, before, value))
        if indices is None and not isinstance(self.build.find(token.text), Buffer):
            self.at_token(token, lambda: self.build.assign(token.text, value, origin))
        else:
            self.at_token(token, lambda: self.build.put(token.text, indices or (), value, origin))

    # ---- expressions ----

    def kernel_condition(self) -> Scalar:
        token = self.token
        value = self.kernel_expression()
        return self.at_token(token, lambda: kd.as_condition(value))

    def kernel_expression(self) -> kd.Operand:
        self.enter_level()
        token = self.token
        value: kd.Operand
        if self.accept("if"):
            cond = self.kernel_expression()
            self.expect("then")
            then = self.kernel_expression()
            self.expect("else")
            orelse = self.kernel_expression()
            value = self.at_token(token, lambda: kd.conditional(cond, then, orelse))
        else:
            value = self.kernel_infix(0)
        self.depth -= 1
        return value

    def kernel_infix(self, lowest: int) -> kd.Operand:
        """Parse an expression of binary operators whose precedence is `lowest` or higher."""
        outer = self.depth
        left = self.kernel_prefix()
        while lowest <= (level := LEVEL_OF.get(self.token.text, -1)) and self.following.text != "=":
            self.enter_level()  # the left operand becomes nested in the operator
            sign, before = self.take(), left
            right = self.kernel_infix(level + 1)
            left = self.at_token(sign, partial(kd.binary_operation, _FUNCTION_OF[sign.text], before, right))
            if level == COMPARISON == LEVEL_OF.get(self.token.text):
                raise self.error(RelvmSyntaxError, "comparisons cannot be chained; combine them with and", self.token)
        self.depth = outer
        return left

    def kernel_prefix(self) -> kd.Operand:
        """Parse an operand of a binary operator, including its prefix operators `-` and `not`."""
        if not (self.at("-") or self.at("not")):
            return self.kernel_primary()
        self.enter_level()
        sign = self.take()
        operand = self.kernel_prefix() if sign.text == "-" else self.kernel_infix(COMPARISON)
        self.depth -= 1
        return self.at_token(sign, partial(kd.negative if sign.text == "-" else kd.negation, operand))

    def kernel_primary(self) -> kd.Operand:
        token = self.token
        if token.kind in ("int", "float") or token.text in ("inf", "nan"):
            return self.number()
        if self.accept("("):
            value = self.kernel_expression()
            self.expect(")")
            return value
        if token.text in ("true", "false"):
            return self.take().text == "true"
        self.kernel_name("an expression")
        if self.accept("["):
            indices, _ = self.comma_separated("]", self.kernel_expression)
            origin = self.source.origin(token.offset)
            return self.at_token(token, lambda: self.build.element(token.text, tuple(indices), origin))
        if self.accept("("):
            operands, _ = self.comma_separated(")", self.kernel_expression)
            return self.at_token(token, lambda: call_or_cast(token.text, tuple(operands)))
        return self.at_token(token, lambda: self.build.value(token.text, self.source.origin(token.offset)))


def finish_kernel(build: KernelDefBuilder, source: Source) -> kd.KernelDef:
    """Return the kernel that `build` has built, after checking that it can be lowered.

    Errors have positions in `source`.
    """
    kernel = build.finish()
    try:
        lower_kernel_def(kernel, {}, kernel.name)
    except RelvmError as error:
        raise source.add_source_line(error) from None
    return kernel


def call_or_cast(name: str, operands: tuple[kd.Operand, ...]) -> Scalar:
    """Return the expression for `name(operands)` in a kernel.

    If `name` is a dtype, the expression is a conversion of the only operand.  Otherwise it is a call of one of the
    functions in `kernel_def.FUNCTIONS`.
    """
    if name not in ALL_DTYPES:
        if name not in kd.FUNCTIONS:
            raise RelvmNameError(f"no function {name}{near_matches(name, (*kd.FUNCTIONS, *ALL_DTYPES))}")
        return kd.call(name, operands)
    if len(operands) != 1:
        raise RelvmSyntaxError(f"{name}: expected one value, got {len(operands)}")
    return kd.cast(operands[0], ALL_DTYPES[name])


def loop_bounds(kind: str, counters: int, bounds: list[kd.Operand]) -> list[tuple[kd.Operand, kd.Operand]]:
    """Return the start and the stop of each loop of the statement `for i, j in kind(bounds)`.

    kind: "grid", or a kind of a single loop, such as "range".   counters: the number of loop counters.

    Raises
    ------
    RelvmSyntaxError
        The numbers of counters and bounds do not match.
    RelvmTypeError
        A bound is not an i64.
    """
    if kind == "grid":
        if len(bounds) != counters or not bounds:
            expected = f"{counted(counters, 'size')}, one for each counter"
            raise RelvmSyntaxError(f"grid: expected {expected}, got {len(bounds)}")
        return [(0, kd.as_index(bound)) for bound in bounds]
    if counters != 1 or len(bounds) not in (1, 2):
        got = f"{counted(counters, 'counter')} and {counted(len(bounds), 'argument')}"
        raise RelvmSyntaxError(f"{kind}: expected one counter and the arguments (stop) or (start, stop), got {got}")
    start, stop = (0, bounds[0]) if len(bounds) == 1 else bounds
    return [(kd.as_index(start), kd.as_index(stop))]
