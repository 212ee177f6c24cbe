"""Builds a module expression by expression.

Adding an expression costs the same however long the function has become.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

from relvm.errors import (
    RelvmError,
    RelvmNameError,
    RelvmTypeError,
    RelvmVerifyError,
    expect_type,
    located,
    near_matches,
)
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
    prim,
)
from relvm.ir.node import children
from relvm.ir.operator import find_operator, with_constants
from relvm.ir.symbolic import DimVar
from relvm.ir.type_inference import impure_call, infer_expr, infer_types, plain_dim_vars
from relvm.ir.types import OBJECT, VOID, FuncType, Type, forget_vars, type_vars
from relvm.ir.visitor import AnyExpr

Params = Sequence[tuple[str, Type]]


@dataclass
class _Frame:
    """A function or block being built.

    place: the function's name, for messages.  dims: the dimension variables known.  names: how often each was given.
    """

    place: str
    dims: set[DimVar]
    names: Counter[str]
    bindings: list[Binding | MatchCast] = field(default_factory=list)
    result: Expr | None = None


@dataclass(frozen=True)
class OpenFunction:
    """A local function whose body is built, and whose result's type is not known yet.

    var: the function, as its own body calls it.
    """

    var: Var
    name: str
    params: tuple[Var, ...]
    body: Block


class Builder:
    """Makes one module, expression by expression, each typed as it is added::

        b = Builder()
        with b.function("main", [("x", TensorType(F32, (dim_var("n"), 4)))]) as (x,):
            y = b.op("relu", x)
            b.ret(b.op("add", y, y, name="doubled"))
        module = b.module()

    attributes: of the module.
    place: where in a source what is added from now on comes from (Var.origins); None: the line of Python that adds it,
    which messages begin with.  Who sets a place says it in messages.
    """

    def __init__(self, attributes: Attributes = ()) -> None:
        self.place: str | None = None
        self._attributes = attributes
        self._functions: dict[str, Function] = {}
        self._types: dict[str, FuncType] = {}
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
        """A function of the module: gives its parameters; what is emitted inside, up to `ret`, is its body.

        Functions may be built inside one another (each is a function of the module).  One that is called before it is
        finished, recursively or by a function before it, needs `result_type` or `declare`.

        Parameters
        ----------
        name
            Of the function.
        params
            The name and the type of each parameter.
        result_type
            None: that of its body.
        attributes
            Of the function, as (name, value).
        private
            Only the module itself calls it; passes may inline or remove it.

        Raises
        ------
        RelvmNameError
            A second function of that name.
        RelvmVerifyError
            No `ret` inside.
        """
        if name in self._functions:
            raise RelvmNameError(f"function {name} is built twice")
        if result_type is None and name in self._types:
            result_type = self._types[name].result
        if result_type is not None:
            self.declare(name, params, result_type)
        frame = _Frame(name, set(), Counter())
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
        """States the type of a function that is built later, so that it can be called now.

        `name`, `params` and `result_type` are those of `function`.
        """
        self._types[name] = FuncType(tuple(type_ for _, type_ in params), result_type)

    def emit(self, expr: Expr, name: str | None = None) -> Var:
        """Binds `expr`, typed, to a new variable.

        Parameters
        ----------
        expr
            Over variables this builder has given.
        name
            Of the variable; a number is added where it is taken.  Without it the name comes from the expression.

        Raises
        ------
        RelvmTypeError, RelvmShapeError, RelvmNameError
            As `infer_types` does.
        """
        frame = self._frame()
        expect_type("emit", expr, Expr, "an expression")
        typed = self._typed(expr, name)
        var = Var(self._unique(name or _numbered(typed), name is None), type=typed.type, origins=self._origins())
        frame.bindings.append(Binding(var, typed))
        return var

    def op(self, operator: str, *args: Expr | complex, name: str | None = None, **attributes: Any) -> Var:
        """An operator, by name, applied to `args`, with `attributes`; RelvmArgumentError where they do not fit it.

        A Python number among the arguments is a constant of the dtype of the first tensor among them.
        """
        found = find_operator(operator)
        try:
            args = with_constants(operator, args)
            bound = found.bind(args, attributes)
        except RelvmError as error:
            raise located(error, self._line()) from error
        return self.emit(OpCall(found, args, bound), name)

    def prim(self, function: str, *args: Expr, name: str | None = None) -> Var:
        """Arithmetic on scalars, `args`, by its function in csrc/tables/scalar_operators.def; `name` is the
        variable's."""
        return self.emit(PrimCall(function, args), name)

    def tuple_(self, *fields: Expr, name: str | None = None) -> Var:
        """A tuple of `fields`; `name` is the variable's."""
        return self.emit(Tuple(fields), name)

    def call(self, callee: str | Expr, *args: Expr, name: str | None = None) -> Var:
        """A call, with `args`, of a `callee`: a function of the module, by name, or a function value."""
        if isinstance(callee, str):
            callee = self.function_ref(callee)
        return self.emit(Call(callee, args), name)

    def partial(self, function: Expr, *last: Expr, name: str | None = None) -> Var:
        """A `function` whose last arguments are `last`; it takes the ones before them.  `name` is the variable's."""
        return self.emit(BuiltinCall("make_closure", (function, *last)), name or "partial")

    def function_ref(self, name: str) -> FunctionRef:
        """The function `name` of the module, built or declared, as a value."""
        if name not in self._types:
            raise RelvmNameError(f"no function {name}{near_matches(name, self._types)}")
        return FunctionRef(name, type=self._types[name])

    def packed(
        self, function: str, *args: Expr, result: Type = OBJECT, pure: bool = False, name: str | None = None
    ) -> Var:
        """A call of a packed function, by its registered name, with `args`; variables new in its `result`'s type take
        the sizes found.  pure: it may be removed where nothing uses its result.  name: the variable's."""
        if all(var in self._frame().dims for var in type_vars(result)):
            return self.emit(PackedCall(function, args, pure, type=result), name)
        return self.match_cast(self.emit(PackedCall(function, args, pure)), result, name)

    def match_cast(self, value: Expr, type_: Type, name: str | None = None) -> Var:
        """`value`, checked at run time to be of `type_`; plain dimension variables new to it take the sizes found.
        `name` is the variable's."""
        frame = self._frame()
        typed = self._typed(Block((MatchCast(Var("v", type=type_), value),), value), name)
        (cast,) = typed.bindings
        var = Var(self._unique(name or "cast", name is None), type=type_, origins=self._origins())
        frame.bindings.append(MatchCast(var, cast.value))
        frame.dims.update(plain_dim_vars(type_))
        return var

    def block(self, body: Callable[[], Expr]) -> Block:
        """What `body` emits, with what it returns as the result, as a block of its own."""
        outer = self._frame()
        frame = _Frame(outer.place, set(outer.dims), outer.names)
        self._frames.append(frame)
        try:
            frame.result = body()
            return self._finish(outer.place)
        finally:
            self._end_frame()

    def if_(self, cond: Expr, then: Callable[[], Expr], orelse: Callable[[], Expr], name: str | None = None) -> Var:
        """`if cond then ... else orelse`: each function emits its branch and returns its value.  `name` is the
        variable's."""
        return self.emit(If(cond, self.block(then), self.block(orelse)), name)

    def local_function(
        self,
        params: Params,
        body: Callable[..., Expr],
        result_type: Type | None = None,
        *,
        name: str | None = None,
        recursive: bool = False,
    ) -> Var:
        """A closure: `body` is called with the parameters, emits the function's body and returns its result.

        params, result_type: as those of `function`.  name: the variable's.
        recursive: `body` gets the function itself as a first argument; needs `result_type`.
        """
        if recursive:
            return self.local_functions([(name, params, result_type, body)])[0]
        var = Var(self._unique(name or "closure", name is None), origins=self._origins())
        return self._local_functions([(var, name, params, result_type, body)])[0]

    def local_functions(
        self, functions: Sequence[tuple[str | None, Params, Type | None, Callable[..., Expr]]]
    ) -> tuple[Var, ...]:
        """Closures that may call themselves and each other.

        Parameters
        ----------
        functions
            The name, the parameters, the result's type and the body of each; a body is called with all the functions,
            then its own parameters.

        Raises
        ------
        RelvmTypeError
            One has no result type.
        """
        declared = []
        for name, params, result_type, body in functions:
            var = Var(self._unique(name or "closure", name is None), origins=self._origins())
            if result_type is None:
                raise located(RelvmTypeError(f"{var.name}: a recursive function needs a result type"), self._line())
            type_ = FuncType(tuple(each for _, each in params), result_type)
            declared.append((replace(var, type=type_), name, params, result_type, body))
        these = tuple(var for var, *_ in declared)
        return self._local_functions(
            [(*rest, lambda *args, body=body: body(*these, *args)) for *rest, body in declared]
        )

    def open_function(
        self, name: str, params: Params, body: Callable[..., Expr], result_type: Type | None = None
    ) -> OpenFunction:
        """A closure that may call itself, to be finished by `close_function`.

        Parameters
        ----------
        name, params
            As those of `function`.
        body
            Is called with the function, then its parameters; emits the function's body and returns its result.
        result_type
            What the body may take its own calls to give; without it `object`.
        """
        type_ = FuncType(tuple(each for _, each in params), result_type or OBJECT)
        var = Var(self._unique(name, False), type=type_, origins=self._origins())
        variables, block = self._function_block(params, lambda *variables: body(var, *variables))
        return OpenFunction(var, name, variables, block)

    def close_function(self, function: OpenFunction, body: Block, result_type: Type) -> Var:
        """The function, its body replaced by `body`, which is typed anew; `result_type` is what that gives."""
        value = Function(function.name, function.params, body, result_type)
        return self._bind_functions((Binding(function.var, value),))[0]

    def _local_functions(self, functions: Sequence[tuple]) -> tuple[Var, ...]:
        """functions: the variable, the name, the parameters, the result's type and the body of each."""
        bindings = []
        for var, name, params, result_type, body in functions:
            variables, block = self._function_block(params, body)
            bindings.append(Binding(var, Function(name or "", variables, block, result_type)))
        return self._bind_functions(tuple(bindings))

    def _function_block(self, params: Params, body: Callable[..., Expr]) -> tuple[tuple[Var, ...], Block]:
        """The parameters of a local function, and its body."""
        variables: tuple[Var, ...] = ()

        def whole_body() -> Expr:
            nonlocal variables
            variables = self._bind_params(params)
            return body(*variables)

        block = self.block(whole_body)
        return variables, block

    def _bind_functions(self, bindings: tuple[Binding, ...]) -> tuple[Var, ...]:
        """Types and emits local functions.  A result's type that is not stated may be inferred again: it stays open."""
        typed = self._typed(Block(bindings, Tuple(tuple(binding.var for binding in bindings))))
        made = tuple(binding for binding in typed.bindings if isinstance(binding, Binding))
        for given, binding in zip(bindings, made, strict=True):
            value = replace(binding.function, result_type=given.function.result_type)
            self._frame().bindings.append(replace(binding, value=value))
        return tuple(binding.var for binding in made)

    def known_dims(self) -> frozenset[DimVar]:
        """The dimension variables that have a value where the next expression is emitted."""
        return frozenset(self._frame().dims)

    def names(self) -> Counter[str]:
        """How often each name was given, for `restore_names`."""
        return Counter(self._frame().names)

    def restore_names(self, names: Counter[str]) -> None:
        """Forgets the names given since: what they were given to is not in the module."""
        counts = self._frame().names
        counts.clear()
        counts.update(names)

    def ret(self, value: Expr | bool | int | float) -> None:
        """Ends the function: `value` is its result; a Python number is a scalar.

        Raises
        ------
        RelvmTypeError
            It is neither.
        """
        frame = self._frame()
        value = prim(value) if isinstance(value, bool | int | float) else value
        expect_type("ret", value, Expr, "an expression or a number")
        frame.result = self._typed(value)

    def module(self) -> Module:
        """The module, at stage TYPED."""
        if self._frames:
            raise RelvmVerifyError("a function is still open")
        missing = [name for name in self._types if name not in self._functions]
        if missing:
            raise RelvmNameError(f"function {missing[0]} is declared and not built")
        return infer_types(Module(tuple(self._functions.values()), attributes=self._attributes), stated=False)

    def _end_frame(self) -> None:
        self._ended.update(binding.var for binding in self._frames.pop().bindings)

    def _typed(self, expr: AnyExpr, name: str | None = None) -> AnyExpr:
        for used in (expr, *children(expr)):
            if isinstance(used, Var) and used in self._ended:
                error = RelvmVerifyError(
                    f"{used.name} is a value of a block or function that has ended; return it there"
                )
                raise located(error, self._line())
        frame = self._frames[-1]
        place = f"{frame.place}: {name}" if name else frame.place
        return infer_expr(expr, self._types, frame.dims, place, self._line())

    def _frame(self) -> _Frame:
        if not self._frames:
            raise RelvmVerifyError("nothing can be emitted outside of a function")
        if self._frames[-1].result is not None:
            raise RelvmVerifyError("nothing can be emitted after ret")
        return self._frames[-1]

    def _origins(self) -> tuple[str, ...]:
        origin = self._line() if self.place is None else self.place
        return (origin,) if origin else ()

    def _line(self) -> str:
        """The line of Python that calls the builder; empty where it has a place to state."""
        if self.place is not None:
            return ""
        frame: FrameType | None = sys._getframe(1)
        while frame and frame.f_globals.get("__name__", "").startswith(("relvm.", "contextlib")):
            frame = frame.f_back
        return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""

    def _bind_params(self, params: Params) -> tuple[Var, ...]:
        frame = self._frames[-1]
        for _, type_ in params:
            frame.dims.update(plain_dim_vars(type_))
        origins = self._origins()
        return tuple(Var(self._unique(name, False), type=type_, origins=origins) for name, type_ in params)

    def _finish(self, name: str) -> Block:
        frame = self._frames[-1]
        if frame.result is None:
            raise RelvmVerifyError(f"{name}: no result; end it with ret")
        result = self._typed(frame.result)
        return Block(tuple(frame.bindings), result, type=result.type)

    def _unique(self, name: str, numbered: bool) -> str:
        """`name` if it is free and not to be `numbered`, else `name_1`, `name_2`..."""
        if name == "_":
            return name
        names = self._frames[-1].names
        names[name] += 1
        count = names[name] - (not numbered)
        return self._unique(f"{name}_{count}", False) if count else name


def _numbered(expr: Expr) -> str:
    """The stem of the name of a variable that holds `expr`."""
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
