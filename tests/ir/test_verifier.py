"""The verifier rejects what a stage does not allow, and accepts it at the stages before."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace

import pytest

from relvm import ops
from relvm.errors import RelvmVerifyError
from relvm.ir import verifier
from relvm.ir.dtypes import BOOL, F32
from relvm.ir.expr import (
    Binding,
    Block,
    Call,
    Expr,
    Function,
    FunctionRef,
    Fused,
    If,
    KernelCall,
    MatchCast,
    Module,
    Prim,
    Var,
)
from relvm.ir.symbolic import dim_var
from relvm.ir.types import FuncType, TensorType, Type
from relvm.ir.verifier import Stage, verify

PARSED, TYPED, ANF, LOWERED, PLANNED = Stage
TENSOR, OTHER = TensorType(F32, (dim_var("n"),)), TensorType(F32, (dim_var("m"),))
X, Y, Z = (Var(name, type=TENSOR) for name in "xyz")
TRUE = Prim(True, BOOL)


def typed(expr: Expr) -> Expr:
    return replace(expr, type=TENSOR)


def relu(x: Expr) -> Expr:
    return ops.relu(x)


def block(*bindings: Binding | MatchCast, result: Expr = Y) -> Expr:
    return typed(Block(bindings, result))


def local(name: str, body: Expr) -> Binding:
    type_ = FuncType((TENSOR,), TENSOR)
    return Binding(Var(name, type=type_), Function(name, (Z,), body, TENSOR, type=type_))


def branches(then: Expr, orelse: Expr) -> Binding:
    return Binding(Y, typed(If(TRUE, then, orelse)))


SAME = block(result=X)

# For each title: the body of main, the first stage that rejects it, the first stage after it that allows it or None,
# and the message.
INVALID: dict[str, tuple[Expr, Stage, Stage | None, str]] = {
    "bound twice": (block(Binding(Y, X), Binding(Y, X)), PARSED, None, "variable y is bound twice"),
    "bound like a parameter": (block(Binding(X, X), result=X), PARSED, None, "variable x is bound twice"),
    "not bound": (block(result=Y), PARSED, None, "variable y is not bound here"),
    "bound later": (block(Binding(Y, Z), Binding(Z, X)), PARSED, None, "variable z is not bound here"),
    "bound in a branch": (
        block(branches(block(Binding(Z, X), result=Z), SAME), result=Z),
        PARSED,
        None,
        "variable z is not bound here",
    ),
    "bound in the other branch": (
        block(branches(block(Binding(Z, X), result=Z), block(result=Z))),
        PARSED,
        None,
        "variable z is not bound here",
    ),
    "bound in a local function": (
        block(local("f", block(result=Z)), Binding(Y, Z)),
        PARSED,
        None,
        "variable z is not bound here|local function f remains",
    ),
    "bound in a fused expression": (
        block(Binding(Y, typed(Fused(block(Binding(Z, relu(X)), result=Z)))), result=Z),
        PARSED,
        None,
        "Fused is not allowed|variable z is not bound here",
    ),
    "a variable without a type": (block(Binding(Var("y"), X), result=X), TYPED, None, "variable y has no type"),
    "a local function without a type": (
        block(replace(local("f", block(result=Z)), var=Var("f")), result=X),
        TYPED,
        None,
        "variable f has no type",
    ),
    "an expression without a type": (block(Binding(Y, If(TRUE, SAME, SAME))), TYPED, None, "If has no type"),
    "an unknown dimension": (
        block(Binding(Var("y", type=OTHER), X), result=X),
        TYPED,
        PLANNED,
        "dimension m in the type of y is not defined there",
    ),
    "a dimension of a branch": (
        block(
            branches(block(MatchCast(Var("a", type=OTHER), X), result=X), SAME),
            Binding(Var("b", type=OTHER), X),
        ),
        TYPED,
        PLANNED,
        "dimension m in the type of b is not defined there",
    ),
    "a body that is no block": (X, ANF, None, "the body of main must be a block"),
    "a branch that is no block": (block(branches(X, SAME)), ANF, None, "a branch of an if must be a block"),
    "another branch that is no block": (block(branches(SAME, X)), ANF, None, "a branch of an if must be a block"),
    "a block as a value": (block(Binding(Y, SAME)), ANF, None, "a block cannot be bound to a variable"),
    "a nested expression": (
        block(Binding(Y, relu(relu(X)))),
        ANF,
        None,
        "expected a variable or constant, got OpCall|is not allowed",
    ),
    "a nested condition": (
        block(Binding(Y, typed(If(relu(X), SAME, SAME)))),
        ANF,
        None,
        "expected a variable or constant, got OpCall",
    ),
    "a result that is nested": (block(result=relu(X)), ANF, None, "expected a variable or constant, got OpCall"),
    "a fused expression of something else": (
        block(Binding(Y, typed(Fused(block(Binding(Z, X), result=Z))))),
        PARSED,
        None,
        "Fused is not allowed|the body of a fused expression must be a block of operators",
    ),
    "an operator": (
        block(Binding(Y, relu(X))),
        LOWERED,
        None,
        "OpCall is not allowed: operator relu remains; run the pass lower_to_kernels first",
    ),
    "a local function": (
        block(local("f", block(result=Z)), result=X),
        LOWERED,
        None,
        "local function f remains; run the pass lambda_lifting first",
    ),
    "a kernel call": (
        block(Binding(Y, typed(KernelCall("k", (X,))))),
        PARSED,
        None,
        "unknown kernel k|kernel call k remains; run the pass plan_memory first",
    ),
    "an unknown function": (
        block(Binding(Y, typed(Call(FunctionRef("g"), (X,))))),
        PARSED,
        None,
        "unknown function g|FunctionRef has no type",
    ),
}


def module(body: Expr, param: Var = X, result_type: Type | None = TENSOR) -> Module:
    return Module((Function("main", (param,), body, result_type, type=FuncType((TENSOR,), TENSOR)),))


@pytest.mark.parametrize("title", INVALID)
def test_the_first_stage_that_rejects_it(title: str) -> None:
    body, first, last, message = INVALID[title]
    for stage in Stage:
        if stage < first or (last is not None and stage >= last):
            verify(module(body), stage)
            continue
        with pytest.raises(RelvmVerifyError, match=f"^main.*: at stage {stage.name}, .*({message})"):
            verify(module(body), stage)


def test_functions_have_types() -> None:
    verify(module(SAME, result_type=None), PARSED)
    for stage in Stage:
        with pytest.raises(RelvmVerifyError, match="parameter x has no type"):
            verify(module(SAME, Var("x")), stage)
        if stage >= TYPED:
            with pytest.raises(RelvmVerifyError, match="function main has no result type"):
                verify(module(SAME, result_type=None), stage)


def test_every_rule_has_a_case() -> None:
    source = inspect.getsource(verifier)
    rules = re.findall(r'self\.fail\(f?"([^"]*)"\)', source)
    assert len(rules) == source.count("self.fail(")
    expected = "|".join(
        (*(message for *_, message in INVALID.values()), "parameter x has no type", "function main has no result type")
    )
    for rule in rules:
        words = re.split(r"\{[^{}]*\}", rule)
        assert any(all(word in case for word in words) for case in expected.split("|")), rule
