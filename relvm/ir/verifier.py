"""The stages of a module, and the verifier, which checks the rules of each stage."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from relvm.data_classes import value_record
from relvm.errors import RelvmNameError, RelvmTypeError, RelvmVerifyError, expect_name
from relvm.ir.bind_dims import plain_dim_vars
from relvm.ir.expr import (
    ATOMS,
    Binding,
    Block,
    BuiltinCall,
    Call,
    Expr,
    Function,
    FunctionRef,
    Fused,
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
    is_atom,
)
from relvm.ir.node import Node, children
from relvm.ir.symbolic import DimVar
from relvm.ir.types import FuncType, type_vars
from relvm.ir.visitor import are_functions, group_functions
from relvm.tables import BUILTIN_PREFIX


class Stage(enum.IntEnum):
    """A stage of a module in compilation.  Each stage also has the guarantees of the previous ones."""

    PARSED = 0  # as the front end produced it
    TYPED = 1  # every expression has a type
    ANF = 2  # A-normal form: arguments are atoms, and every computation is bound to a variable
    LOWERED = 3  # calls of kernels and builtins replace operator calls; local functions are lifted
    PLANNED = 4  # allocations are explicit; the last passes of this stage compute shapes and release dead values


_CALLS = (Call, PrimCall, PackedCall, BuiltinCall, Tuple, TupleItem, If)


@value_record
class Rules:
    """The rules that a module must obey at a stage.

    nodes: the classes of allowed expressions.
    typed: whether every expression must have a type.
    normal: whether expressions must be in A-normal form.
    local_functions: whether local functions are allowed.
    """

    nodes: tuple[type, ...]
    typed: bool = True
    normal: bool = True
    local_functions: bool = True


RULES = {
    Stage.PARSED: Rules((*ATOMS, *_CALLS, OpCall, KernelCall, Function, Block), typed=False, normal=False),
    Stage.TYPED: Rules((*ATOMS, *_CALLS, OpCall, KernelCall, Function, Block), normal=False),
    Stage.ANF: Rules((*ATOMS, *_CALLS, OpCall, KernelCall, Fused, Function, Block)),
    Stage.LOWERED: Rules((*ATOMS, *_CALLS, KernelCall, Function, Block), local_functions=False),
    Stage.PLANNED: Rules((*ATOMS, *_CALLS, KernelRun, Kill, Function, Block), local_functions=False),
}


def expect_valid_names(module: Module) -> None:
    """Check the names that a module defines.

    Functions and kernels of a module share one namespace.  Packed functions, which belong to the host, have another: a
    module can define `f` and call the packed function `f`.

    Raises
    ------
    RelvmNameError
        Two functions or kernels have the same name, or a name begins with the prefix of builtins.
    RelvmTypeError
        A function is not a Function, or a name is not a string that a file can contain.
    """
    if not isinstance(module.functions, tuple) or not all(isinstance(each, Function) for each in module.functions):
        raise RelvmTypeError(f"module: expected a tuple of Function as functions, got {module.functions!r:.80}")
    names: set[str] = set()
    for name in (*(function.name for function in module.functions), *(name for name, _ in module.kernels)):
        expect_name("module: the name of a function", name)
        if name in names:
            raise RelvmNameError(f"two functions or kernels are named {name}; rename one of them")
        if name.startswith(BUILTIN_PREFIX):
            raise RelvmNameError(
                f"{name}: names that begin with {BUILTIN_PREFIX} belong to builtins; choose another name"
            )
        names.add(name)


def verify(module: Module, stage: Stage) -> None:
    """Check that a module obeys the rules of `stage`: on scopes, types, A-normal form and allowed expressions.

    Raises
    ------
    RelvmVerifyError
        The module violates a rule.  The message names the function, the binding and the rule.
    """
    try:
        expect_valid_names(module)
    except RelvmNameError as error:
        raise RelvmVerifyError(str(error)) from None
    names = {function.name for function in module.functions}
    kernels = {name for name, _ in module.kernels}
    for function in module.functions:
        _Verifier(stage, function.name, names, kernels).function(function)


class _Verifier:
    def __init__(self, stage: Stage, name: str, functions: set[str], kernels: set[str]) -> None:
        self.stage = stage
        self.rules = RULES[stage]
        self.place = name
        self.name = name
        self.functions = functions
        self.kernels = kernels
        self.scope: set[Var] = set()
        self.ever_bound: set[Var] = set()
        self.dims: set[DimVar] = set()

    def fail(self, message: str) -> None:
        raise RelvmVerifyError(f"{self.place}: at stage {self.stage.name}, {message}")

    def bind(self, var: Var) -> None:
        if var in self.ever_bound:
            self.fail(f"variable {var.name} is bound twice")
        self.ever_bound.add(var)
        self.scope.add(var)

    def function(self, function: Function) -> None:
        scope, dims = set(self.scope), set(self.dims)
        for param in function.params:
            if param.type is None:
                self.fail(f"parameter {param.name} has no type")
            self.bind(param)
            self.dims.update(plain_dim_vars(param.type))
        for param in function.params:
            self.dim_vars_known(param)
        if self.rules.typed and function.result_type is None:
            self.fail(f"function {function.name} has no result type")
        if self.rules.normal and not isinstance(function.body, Block):
            self.fail(f"the body of {function.name} must be a block")
        self.expr(function.body)
        self.scope, self.dims = scope, dims

    def dim_vars_known(self, var: Var) -> None:
        if self.stage is Stage.PLANNED or isinstance(var.type, FuncType):
            return
        for dim in type_vars(var.type):
            if dim not in self.dims:
                self.fail(f"dimension {dim.name} in the type of {var.name} is not defined there")

    def expr(self, expr: Node) -> None:
        rules = self.rules
        if not isinstance(expr, rules.nodes):
            self.fail(f"{type(expr).__name__} is not allowed{_hint(expr)}")
        if rules.typed and isinstance(expr, Expr) and expr.type is None:
            self.fail(f"{type(expr).__name__} has no type")
        match expr:
            case Var():
                if expr not in self.scope:
                    self.fail(f"variable {expr.name} is not bound here")
            case FunctionRef(name):
                if name not in self.functions:
                    self.fail(f"unknown function {name}")
            case Function():
                if not rules.local_functions:
                    self.fail(f"local function {expr.name} remains; run the pass lambda_lifting first")
                self.function(expr)
            case Block():
                self.block(expr)
            case If(cond, then, orelse):
                self.argument(cond)
                for branch in (then, orelse):
                    if rules.normal and not isinstance(branch, Block):
                        self.fail("a branch of an if must be a block")
                    scope, dims = set(self.scope), set(self.dims)
                    self.expr(branch)
                    self.scope, self.dims = scope, dims
            case Fused(body):
                self.fused(body)
            case KernelCall(kernel, args) | KernelRun(kernel, args):
                if kernel not in self.kernels:
                    self.fail(f"unknown kernel {kernel}")
                for arg in args:
                    self.argument(arg)
            case _:
                for child in children(expr):
                    self.argument(child)
                if isinstance(expr, PackedCall) and expr.type is not None:
                    self.dims.update(plain_dim_vars(expr.type))

    def fused(self, body: Block) -> None:
        if not isinstance(body, Block) or not all(isinstance(binding.value, OpCall) for binding in body.bindings):
            self.fail("the body of a fused expression must be a block of operators")
        scope = set(self.scope)
        for binding in body.bindings:
            self.expr(binding.value)
            self.bind(binding.var)
        for result in body.result.fields if isinstance(body.result, Tuple) else (body.result,):
            self.argument(result)
        self.scope = scope

    def argument(self, expr: Node) -> None:
        if not isinstance(expr, Expr) or (self.rules.normal and not is_atom(expr)):
            self.fail(f"expected a variable or constant, got {type(expr).__name__}")
        self.expr(expr)

    def block(self, block: Block) -> None:
        for run in group_functions(block.bindings):
            if are_functions(run):
                self.check_local_functions(run)
                continue
            (binding,) = run
            outer, self.place = self.place, f"{self.name}: {binding.var.name}"
            match binding:
                case MatchCast(var, value):
                    self.argument(value)
                    self.dims.update(plain_dim_vars(var.type))
                    self.bind(var)
                case Binding(var, value):
                    if isinstance(value, Block) and self.rules.normal:
                        self.fail("a block cannot be bound to a variable")
                    self.expr(value)
                    self.bind(var)
            self.typed(var)
            self.place = outer
        self.argument(block.result)

    def check_local_functions(self, run: Sequence[Binding]) -> None:
        """Check a group of adjacent local functions, which can call each other."""
        for binding in run:
            self.bind(binding.var)
            self.typed(binding.var)
        for binding in run:
            outer, self.place = self.place, f"{self.name}: {binding.var.name}"
            self.expr(binding.value)
            self.place = outer

    def typed(self, var: Var) -> None:
        if not self.rules.typed:
            return
        if var.type is None:
            self.fail(f"variable {var.name} has no type")
        self.dim_vars_known(var)


def _hint(expr: Node) -> str:
    match expr:
        case OpCall(op=op):
            return f": operator {op} remains; run the pass lower_to_kernels first"
        case KernelCall(kernel=kernel):
            return f": kernel call {kernel} remains; run the pass plan_memory first"
    return ""
