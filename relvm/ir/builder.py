"""The IR builder: constructs a module expression by expression.

The time to add an expression does not depend on the length of the function.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from types import FrameType
from typing import Any

import numpy as np

from relvm.data_classes import dataclass, value_record
from relvm.errors import (
    RelvmError,
    RelvmNameError,
    RelvmTypeError,
    RelvmVerifyError,
    expect_name,
    expect_type,
    located,
    near_matches,
)
from relvm.ir.bind_dims import plain_dim_vars
from relvm.ir.expr import (
    Attributes,
    Binding,
    Block,
    BuiltinCall,
    Call,
    Expr,
    Function,
    FunctionRef,
    If,
    KernelCall,
    KernelRun,
    Kill,
    MatchCast,
    Module,
    OpCall,
    PackedCall,
    PrimCall,
    Tuple,
    TupleItem,
    Var,
    as_expr,
)
from relvm.ir.kernel_def import KernelDef
from relvm.ir.node import children
from relvm.ir.operator import find_operator, with_constants
from relvm.ir.symbolic import DimVar
from relvm.ir.type_inference import impure_call, infer_expr, infer_types
from relvm.ir.types import OBJECT, VOID, FuncType, Type, forget_vars, type_vars
from relvm.ir.visitor import AnyExpr

Params = Sequence[tuple[str, Type]]
Constantlike = bool | int | float | np.generic | np.ndarray  # a value that becomes a constant


@dataclass
class _Frame:
    """A function or block under construction.

    place: the function's name, for messages.
    is_block: whether this is a block inside a function, such as a branch of a conditional.
    dims: the dimension variables that have a value.
    names: how often each variable name was requested.
    bindings: the bindings added so far.
    result: the result, or None while it is not set.
    """

    place: str
    is_block: bool
    dims: set[DimVar]
    names: Counter[str]
    bindings: list[Binding | MatchCast] = field(default_factory=list)
    result: Expr | None = None


@value_record
class OpenFunction:
    """A local function whose body is complete, but whose result type is not yet final.

    var: the variable with which the body calls the function recursively.
    """

    var: Var
    name: str
    params: tuple[Var, ...]
    body: Block


class Builder:
    """Builds one module, expression by expression.  Each expression is typed when it is added::

        b = Builder()
        with b.function("main", [("x", TensorType(F32, (dim_var("n"), 4)))]) as (x,):
            y = b.op("relu", x)
            b.ret(b.op("add", y, y, name="doubled"))
        module = b.module()

    attributes: the attributes of the module.
    place: the source location that is recorded as the origin of the expressions added next (Var.origins).  If it is
    None, the origin is the Python line that adds the expression, and error messages begin with that line.  If it is
    set, error messages do not contain it, so the caller must add the location to the messages.
    """

    def __init__(self, attributes: Attributes = ()) -> None:
        self.place: str | None = None
        self._attributes = attributes
        self._functions: dict[str, Function] = {}
        self._types: dict[str, FuncType] = {}
        self._kernels: dict[str, KernelDef] = {}
        self._frames: list[_Frame] = []
        self._ended: set[Expr] = set()  # the variables of blocks and functions that are complete

    @contextmanager
    def function(
        self,
        name: str,
        params: Params,
        result_type: Type | None = None,
        *,
        attributes: Attributes = (),
        private: bool = False,
    ) -> Iterator[tuple[Var, ...]]:
        """A context manager that builds a function of the module.

        It yields the variables of the parameters.  The expressions emitted in the `with` block, up to `ret`, are the
        body of the function.

        The `with` block of a function may be inside that of another function.  Both become functions of the module.
        If a function is called before its own `with` block has ended, as in a recursive call, its result type
        must be known in advance: pass `result_type`, or call `declare` first.

        Parameters
        ----------
        name
            The name of the function.
        params
            The name and the type of each parameter.
        result_type
            The result type, or None to use that of the body.
        attributes
            The attributes of the function, as (name, value) pairs.
        private
            Whether only the module itself calls the function.  Passes may then inline or remove it.

        Raises
        ------
        RelvmNameError
            The module already has a function of that name.
        RelvmTypeError
            A name is not a string that a file can contain, or the type of a parameter is not a type.
        RelvmVerifyError
            The function ends without `ret`.
        """
        expect_name("function", name)
        if name in self._functions:
            raise RelvmNameError(f"function {name} is already built")
        if result_type is None and name in self._types:
            result_type = self._types[name].result
        if result_type is not None:
            self.declare(name, params, result_type)
        frame = _Frame(name, False, set(), Counter())
        self._frames.append(frame)
        try:
            variables = self._bind_params(params)
            yield variables
            body = self._finish(name)
        finally:
            self._end_frame()
        known = {var for _, type_ in params for var in plain_dim_vars(type_)}
        result = result_type or forget_vars(body.type, known.__contains__)
        pure = impure_call(body) is None
        self._types[name] = FuncType(tuple(type_ for _, type_ in params), result, pure)
        self._functions[name] = Function(name, variables, body, result_type, attributes=attributes, private=private)

    def declare(self, name: str, params: Params, result_type: Type) -> None:
        """Declare the type of a function that is built later, so that it can be called now.

        name: the name of the function.
        params: the name and the type of each parameter.
        result_type: the result type.
        """
        expect_name("declare", name)
        self._types[name] = FuncType(tuple(type_ for _, type_ in params), result_type)

    def emit(self, expr: Expr, name: str | None = None) -> Var:
        """Infer the type of `expr`, bind `expr` to a new variable, and return the variable.

        Parameters
        ----------
        expr
            An expression over variables that this builder returned.
        name
            The name of the variable.  A number is appended if the name is in use.  By default the name is derived from
            the expression.

        Raises
        ------
        RelvmTypeError, RelvmShapeError, RelvmNameError
            `expr` is ill-typed, or refers to a function, kernel or dimension that is not defined.
        """
        frame = self._frame()
        expect_type("emit", expr, Expr, "an expression")
        typed = self._typed(expr, name)
        var = Var(self._unique(name or _default_name(typed), name is None), type=typed.type, origins=self._origins())
        frame.bindings.append(Binding(var, typed))
        return var

    def renamed(self, value: Expr, name: str) -> Expr:
        """Return `value` under another name, if it is the variable of the latest binding.  Otherwise return `value`.

        Nothing may refer to the variable yet.
        """
        bindings = self._frame().bindings
        if not bindings or bindings[-1].var is not value or not isinstance(bindings[-1], Binding):
            return value
        return self.emit(bindings.pop().value, name)

    def op(self, operator: str, *args: Expr | Constantlike, name: str | None = None, **attributes: Any) -> Var:
        """Bind a call of the operator named `operator` to a new variable.

        A number among `args` becomes a constant with the dtype of the first tensor among `args` that is not bool.  An
        array becomes a constant of its own dtype.  `name` is the name of the variable.  Raise RelvmArgumentError if the
        operator does not accept these `args` and `attributes`.
        """
        found = find_operator(operator)
        try:
            args = with_constants(operator, args)
            bound = found.bind(args, attributes)
        except RelvmError as error:
            raise located(error, self._line()) from error
        return self.emit(OpCall(found, args, bound), name)

    def prim(self, function: str, *args: Expr | Constantlike, name: str | None = None) -> Var:
        """Bind a scalar operation on the scalars `args` to a new variable.  A number among `args` becomes a scalar.

        `function` is the name of the operation in csrc/tables/scalar_operators.def.  `name` is the name of the
        variable.
        """
        return self.emit(PrimCall(function, self._operands(function, args)), name)

    def tuple_(self, *fields: Expr | Constantlike, name: str | None = None) -> Var:
        """Bind a tuple of `fields` to a new variable named `name`.  Numbers and arrays become constants."""
        return self.emit(Tuple(self._operands("tuple_", fields)), name)

    def call(self, callee: str | Expr, *args: Expr | Constantlike, name: str | None = None) -> Var:
        """Bind the call `callee(*args)` to a new variable named `name`.  `callee` is the name of a function of the
        module, or a function value.  Numbers and arrays among `args` become constants."""
        if isinstance(callee, str):
            callee = self.function_ref(callee)
        expect_type("call: the callee", callee, Expr, "a function value or the name of a function")
        return self.emit(Call(callee, self._operands("call", args)), name)

    def partial(self, function: Expr, *last: Expr | Constantlike, name: str | None = None) -> Var:
        """Bind a partial application of `function` to a new variable named `name`.

        The last arguments of `function` are fixed to `last`.  The new function takes the remaining arguments.
        """
        return self.emit(BuiltinCall("make_closure", self._operands("partial", (function, *last))), name or "partial")

    def function_ref(self, name: str) -> FunctionRef:
        """Return a reference to the function `name` of the module, which must be built or declared."""
        if name not in self._types:
            raise RelvmNameError(f"no function {name}{near_matches(name, self._types)}")
        return FunctionRef(name, type=self._types[name])

    def packed(
        self,
        function: str,
        *args: Expr | Constantlike,
        result: Type = OBJECT,
        pure: bool = False,
        name: str | None = None,
    ) -> Var:
        """Bind the result of the call `function(*args)` to a new variable.  `function` is a packed function: a
        registered function of the host.

        function: the name under which the packed function is registered.
        result: the type of the result, which is checked at run time.  A dimension variable that is not defined before
        the call gets the actual size as its value.
        pure: whether the call may be removed if its result is unused.
        name: the name of the variable.
        """
        expect_name("packed", function)
        expect_type("packed: result", result, Type, "a type")
        operands = self._operands(function, args)
        if all(var in self._frame().dims for var in type_vars(result)):
            return self.emit(PackedCall(function, operands, pure, type=result), name)
        return self.match_cast(self.emit(PackedCall(function, operands, pure)), result, name)

    def kernel(self, kernel: KernelDef) -> None:
        """Add a kernel to the module.

        Raises
        ------
        RelvmNameError
            A function or another kernel has the same name.
        """
        if kernel.name in self._types or self._kernels.get(kernel.name, kernel) is not kernel:
            raise RelvmNameError(f"two functions or kernels are named {kernel.name}")
        self._kernels[kernel.name] = kernel

    def call_kernel(
        self, kernel: str, *args: Expr | Constantlike, result: Type | None = None, name: str | None = None
    ) -> Var:
        """Bind a call of the kernel named `kernel` to a new variable.

        Numbers among `args` become scalars, and arrays constants.

        result: the type of the result.  It is required if the inputs do not determine all sizes of the outputs.
        name: the name of the variable.
        """
        call = KernelCall(kernel, self._operands(kernel, args), origins=self._origins())
        return self.emit(call if result is None else replace(call, type=result), name)

    def match_cast(self, value: Expr, type_: Type, name: str | None = None, where: str = "") -> Var:
        """Bind `value` to a new variable of type `type_`, which is checked at run time.

        A dimension variable that first occurs in `type_`, such as `n`, gets the actual size as its value.  `name` is
        the name of the new variable.  `where` is the beginning of the error message, or "" to begin with the names of
        the function and the variable.
        """
        frame = self._frame()
        typed = self._typed(Block((MatchCast(Var("v", type=type_), value),), value), name)
        (cast,) = typed.bindings
        var = Var(self._unique(name or "cast", name is None), type=type_, origins=self._origins())
        frame.bindings.append(MatchCast(var, cast.value, where))
        frame.dims.update(plain_dim_vars(type_))
        return var

    def block(self, body: Callable[[], Expr | Constantlike]) -> Block:
        """Call `body`, and return a block of the bindings that it emits.  The return value of `body` is the result of
        the block."""
        outer = self._frame()
        frame = _Frame(outer.place, True, set(outer.dims), outer.names)
        self._frames.append(frame)
        try:
            result = body()
            if result is None:
                raise RelvmVerifyError(
                    f"{outer.place}: a branch or local function has no result; return it from the Python function"
                )
            frame.result = as_expr(f"{outer.place}: the result of a branch or local function", result)
            return self._finish(outer.place)
        finally:
            self._end_frame()

    def if_(
        self,
        cond: Expr | Constantlike,
        then: Callable[[], Expr | Constantlike],
        orelse: Callable[[], Expr | Constantlike],
        name: str | None = None,
    ) -> Var:
        """Bind a conditional, `if cond then ... else ...`, to a new variable named `name`.

        `then` and `orelse` are functions.  Each emits the bindings of its branch and returns the value of the branch.
        """
        return self.emit(If(as_expr("if_: the condition", cond), self.block(then), self.block(orelse)), name)

    def local_function(
        self,
        params: Params,
        body: Callable[..., Expr],
        result_type: Type | None = None,
        *,
        name: str | None = None,
        recursive: bool = False,
    ) -> Var:
        """Bind a closure to a new variable.

        params: the name and the type of each parameter.
        body: a Python function that receives the variables of the parameters, emits the closure's body and returns its
        result.
        result_type: the result type, or None to use that of the body.
        name: the name of the variable.
        recursive: whether `body` receives the closure itself as an additional first argument.  A recursive closure
        requires `result_type`.
        """
        if recursive:
            return self.local_functions([(name, params, result_type, body)])[0]
        var = Var(self._unique(name or "closure", name is None), origins=self._origins())
        return self._local_functions([(var, name, params, result_type, body)])[0]

    def local_functions(
        self, functions: Sequence[tuple[str | None, Params, Type | None, Callable[..., Expr]]]
    ) -> tuple[Var, ...]:
        """Bind closures that can call themselves and each other.  Return their variables.

        Parameters
        ----------
        functions
            The name, the parameters, the result type and the body of each closure.  A body is a Python function.  Its
            arguments are the variables of all closures, then the variables of its own parameters.

        Raises
        ------
        RelvmTypeError
            A function has no result type.
        """
        declared = []
        for name, params, result_type, body in functions:
            var = Var(self._unique(name or "closure", name is None), origins=self._origins())
            if result_type is None:
                raise located(
                    RelvmTypeError(f"{var.name}: a recursive function needs a result type; pass result_type"),
                    self._line(),
                )
            type_ = FuncType(tuple(each for _, each in params), result_type)
            declared.append((replace(var, type=type_), name, params, result_type, body))
        these = tuple(var for var, *_ in declared)
        return self._local_functions(
            [(*rest, lambda *args, body=body: body(*these, *args)) for *rest, body in declared]
        )

    def open_function(
        self, name: str, params: Params, body: Callable[..., Expr], result_type: Type | None = None
    ) -> OpenFunction:
        """Start a closure that can call itself.  `close_function` finishes it.

        Parameters
        ----------
        name
            The name of the closure.
        params
            The name and the type of each parameter.
        body
            A Python function that emits the code of the closure and returns the closure's result.  It is called with
            the variable of the closure, for recursive calls, followed by the variables of the parameters.
        result_type
            The result type of recursive calls while `body` runs, by default `object`.  `close_function` sets the final
            result type of the closure.
        """
        type_ = FuncType(tuple(each for _, each in params), result_type or OBJECT)
        var = Var(self._unique(name, False), type=type_, origins=self._origins())
        variables, block = self._function_block(params, lambda *variables: body(var, *variables))
        return OpenFunction(var, name, variables, block)

    def close_function(self, function: OpenFunction, body: Block, result_type: Type | None) -> Var:
        """Finish the closure `function` with the body `body` and the given `result_type`.  Return its variable.

        The types of `body` are inferred again.  If `result_type` is None, it is inferred from `body`.
        """
        value = Function(function.name, function.params, body, result_type)
        return self._bind_functions((Binding(function.var, value),))[0]

    def _local_functions(self, functions: Sequence[tuple]) -> tuple[Var, ...]:
        """Bind local functions to their variables.  Return the variables.

        functions: for each function, a tuple of its variable, name, parameters, result type and body.
        """
        bindings = []
        for var, name, params, result_type, body in functions:
            variables, block = self._function_block(params, body)
            bindings.append(Binding(var, Function(name or "", variables, block, result_type)))
        return self._bind_functions(tuple(bindings))

    def _function_block(self, params: Params, body: Callable[..., Expr]) -> tuple[tuple[Var, ...], Block]:
        """Create the parameters of a local function, and call `body` to emit its code.

        Return the variables of the parameters, and the block of the code.
        """
        variables: tuple[Var, ...] = ()

        def whole_body() -> Expr:
            nonlocal variables
            variables = self._bind_params(params)
            return body(*variables)

        block = self.block(whole_body)
        return variables, block

    def _bind_functions(self, bindings: tuple[Binding, ...]) -> tuple[Var, ...]:
        """Infer the types of local functions, and emit their bindings.  Return their variables.

        A result type that is inferred here is not stored as a declared type, because a later inference may have to
        change it.
        """
        typed = self._typed(Block(bindings, Tuple(tuple(binding.var for binding in bindings))))
        typed_bindings = tuple(binding for binding in typed.bindings if isinstance(binding, Binding))
        for original, binding in zip(bindings, typed_bindings, strict=True):
            value = replace(binding.function, result_type=original.function.result_type)
            self._frame().bindings.append(replace(binding, value=value))
        return tuple(binding.var for binding in typed_bindings)

    def known_dims(self) -> frozenset[DimVar]:
        """Return the dimension variables that have a value, and that the next expression can therefore use."""
        return frozenset(self._frame().dims)

    def names(self) -> Counter[str]:
        """Return how often each variable name was requested in the current function.

        A name that is requested again gets a number.  `restore_names` can restore the counts.
        """
        return Counter(self._frame().names)

    def restore_names(self, saved: Counter[str]) -> None:
        """Restore `saved`, an earlier result of the method `names`.  Names requested since then are available again.

        Call this after discarding the expressions that were emitted since that call of `names`.
        """
        counts = self._frame().names
        counts.clear()
        counts.update(saved)

    def ret(self, value: Expr | Constantlike) -> None:
        """End the function with the result `value`.  A number or an array becomes a constant.

        Raises
        ------
        RelvmTypeError
            `value` is neither an expression nor a number or array.
        RelvmVerifyError
            The current block is a branch or a local function, whose result is what its Python function returns.
        """
        frame = self._frame()
        if frame.is_block:
            raise RelvmVerifyError(
                f"{frame.place}: ret inside a branch or local function; return its result from the Python function"
            )
        frame.result = self._typed(as_expr("ret", value))

    def module(self) -> Module:
        """Return the module, at stage TYPED.

        Raises
        ------
        RelvmVerifyError
            A function is not finished.
        RelvmNameError
            A function is declared but not built.
        """
        if self._frames:
            raise RelvmVerifyError("a function is still being built; leave its `with` block first")
        missing = [name for name in self._types if name not in self._functions]
        if missing:
            raise RelvmNameError(f"function {missing[0]} is declared but not built")
        functions, kernels = tuple(self._functions.values()), tuple(self._kernels.items())
        return infer_types(Module(functions, kernels, self._attributes), stated=False)

    def _end_frame(self) -> None:
        self._ended.update(binding.var for binding in self._frames.pop().bindings)

    def _typed(self, expr: AnyExpr, name: str | None = None) -> AnyExpr:
        for used in (expr, *children(expr)):
            if isinstance(used, Var) and used in self._ended:
                error = RelvmVerifyError(
                    f"{used.name} belongs to a block or function that has ended; return it there with ret"
                )
                raise located(error, self._line())
        frame = self._frames[-1]
        place = f"{frame.place}: {name}" if name else frame.place
        return infer_expr(expr, self._types, frame.dims, place, self._line(), self._kernels)

    def _frame(self) -> _Frame:
        if not self._frames:
            raise RelvmVerifyError(
                "expressions can only be emitted inside a function; open one with `with b.function(...)`"
            )
        if self._frames[-1].result is not None:
            raise RelvmVerifyError("nothing can be emitted after ret; ret must come last")
        return self._frames[-1]

    def _operands(self, what: str, values: Sequence[Any]) -> tuple[Expr, ...]:
        """Return `values` as expressions.   what: the operation, for messages."""
        try:
            return tuple(as_expr(f"{what}: argument {i}", value) for i, value in enumerate(values))
        except RelvmError as error:
            raise located(error, self._line()) from error

    def _origins(self) -> tuple[str, ...]:
        origin = self._line() if self.place is None else self.place
        return (origin,) if origin else ()

    def _line(self) -> str:
        """Return the file and line of the Python code that calls the builder, or "" if `place` is set."""
        if self.place is not None:
            return ""
        frame: FrameType | None = sys._getframe(1)
        while frame and frame.f_globals.get("__name__", "").startswith(("relvm.", "contextlib")):
            frame = frame.f_back
        return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""

    def _bind_params(self, params: Params) -> tuple[Var, ...]:
        frame = self._frames[-1]
        for name, type_ in params:
            expect_name(f"{frame.place}: a parameter", name)
            expect_type(f"{frame.place}: parameter {name}", type_, Type, "a type")
            frame.dims.update(plain_dim_vars(type_))
        origins = self._origins()
        return tuple(Var(self._unique(name, False), type=type_, origins=origins) for name, type_ in params)

    def _finish(self, name: str) -> Block:
        frame = self._frames[-1]
        if frame.result is None:
            raise RelvmVerifyError(f"{name}: no result; end it with ret")
        result = self._typed(frame.result)
        return Block(tuple(frame.bindings), result, type=result.type)

    def _unique(self, name: str, always_number: bool) -> str:
        """Return an unused variable name: `name`, or `name_1`, `name_2` and so on.  If `always_number` is set, never
        return `name` itself."""
        if name == "_":
            return name
        names = self._frames[-1].names
        names[name] += 1
        count = names[name] - (not always_number)
        return self._unique(f"{name}_{count}", False) if count else name


def _default_name(expr: Expr) -> str:
    """Return the default name for a variable that is bound to `expr`.  The caller appends a number."""
    match expr:
        case Expr(type=type_) if type_ == VOID and isinstance(expr, KernelRun | Kill | BuiltinCall):
            return "_"
        case OpCall(op=op):
            return op.name
        case Call(callee=FunctionRef(name) | Var(name)) | KernelCall(kernel=name) | BuiltinCall(name=name):
            return name
        case PrimCall(function=function):
            return function
        case PackedCall(name=name):
            return name.rsplit(".", 1)[-1]
        case TupleItem():
            return "item"
        case Tuple():
            return "tuple"
    return "v"
