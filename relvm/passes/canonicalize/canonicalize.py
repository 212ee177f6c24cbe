"""Canonicalization: rewrite rules that replace an operator by a simpler one with the same result."""

from __future__ import annotations

import functools
from dataclasses import replace

from relvm.ir.expr import Binding, Block, Constant, Expr, Function, MatchCast, Module, OpCall, Shape, Var
from relvm.ir.operator import Operator
from relvm.ir.verifier import Stage
from relvm.ir.visitor import map_atoms_and_blocks, map_blocks, with_bindings, with_value
from relvm.ops.folding import FoldingBudget
from relvm.passes.canonicalize import elementwise_rules, movement_rules, transpose_rules
from relvm.passes.canonicalize.rule import Definitions, Rule
from relvm.passes.constant_folding import evaluate, make_budget
from relvm.passes.pass_manager import module_pass

_MAX_STEPS = 32  # maximum number of rules applied to one operator, in case a program is built to need many


@module_pass("canonicalize", at=Stage.ANF, optional=True)
def canonicalize(module: Module) -> Module:
    """Replace operators by simpler ones that compute the same elements:

    y = transpose(transpose(x))   ->   x
    y = power(x, 2)               ->   y = multiply(x, x)

    A rule matches an operator call and the calls that compute its arguments, which are already canonical.  A rule
    applies only if the type of the result stays the same.  Rules preserve infinities, NaN and the sign of zero.  A
    power that becomes products, roots or reciprocals can be rounded differently.  In a local function, rules ignore
    calls outside the function, because the function would otherwise capture more values.
    """
    budget = make_budget(module)
    functions = (map_blocks(_Canonicalizer(budget).block, function) for function in module.functions)
    return module.with_functions(tuple(functions))


class _Canonicalizer:
    """Applies the rewrite rules to the blocks of one function.

    budget: the limits on constant folding.
    definitions: a variable -> the call that computes it.
    renamed: a removed variable -> its replacement.
    """

    def __init__(self, budget: FoldingBudget) -> None:
        self.budget = budget
        self.definitions: dict[Expr, OpCall] = {}
        self.renamed: dict[Expr, Expr] = {}

    def block(self, block: Block) -> Block:
        bindings: list[Binding | MatchCast] = []
        for binding in block.bindings:
            self.binding(binding, bindings)
        return with_bindings(block, bindings, self.atom(block.result))

    def binding(self, binding: Binding | MatchCast, bindings: list[Binding | MatchCast]) -> None:
        """Append the canonical form of `binding` to `bindings`, after the new bindings that it needs.

        If the canonical value is an atom (a variable or constant) of the same type, do not append the binding.
        Instead, record in `renamed` that the atom replaces the variable.
        """
        value = self.value(binding.value)
        if isinstance(value, OpCall) and isinstance(binding, Binding):
            value = self.simplify(value, binding.var, bindings)
            if not isinstance(value, OpCall) and value.type == binding.var.type:
                self.renamed[binding.var] = value
                return
            if isinstance(value, OpCall):
                self.definitions[binding.var] = value
        bindings.append(with_value(binding, value))

    def value(self, value: Expr) -> Expr:
        outer = self.definitions
        if isinstance(value, Function):
            self.definitions = {}
        value = map_atoms_and_blocks(self.atom, self.block, value)
        self.definitions = outer
        return value

    def atom(self, expr: Expr) -> Expr:
        return self.renamed.get(expr, expr)

    def simplify(self, call: OpCall, result_var: Var, bindings: list) -> Expr:
        """Apply rules to `call`, whose arguments must be atoms (variables or constants), until no rule applies.  Return
        the result.

        At most _MAX_STEPS rules are applied.  The bindings of new subexpressions are appended to `bindings`.

        result_var: the variable to which `call` is bound.  The names of new variables are derived from its name.
        """
        for _ in range(_MAX_STEPS):
            simpler = apply_one_rule(call, self.definitions, self.budget)
            if not isinstance(simpler, OpCall):
                return call if simpler is None else simpler
            args = tuple(self.simplify_argument(arg, result_var, bindings) for arg in simpler.args)
            call = replace(simpler, args=args)
        return call

    def simplify_argument(self, expr: Expr, result_var: Var, bindings: list) -> Expr:
        """Simplify `expr`, an argument of a call that a rule created, and return it as an atom (a variable or
        constant).

        A call is bound to a new variable, and the binding is appended to `bindings`.

        result_var: the variable to which the enclosing call is bound.  The names of new variables are derived from its
        name.
        """
        if not isinstance(expr, OpCall):
            return expr
        args = tuple(self.simplify_argument(arg, result_var, bindings) for arg in expr.args)
        value = self.simplify(replace(expr, args=args), result_var, bindings)
        if not isinstance(value, OpCall):
            return value
        var = result_var.intermediate(value.op.name, value.type)
        bindings.append(Binding(var, value))
        self.definitions[var] = value
        return var


def apply_one_rule(call: OpCall, definitions: Definitions, budget: FoldingBudget) -> Expr | None:
    """Fold `call` to a constant, or rewrite it by the first rule that applies.  Return None if neither is possible.

    definitions: the definitions that rules can look up.
    budget: the limits on constant folding.
    """
    if all(isinstance(arg, Constant | Shape) for arg in call.args) and (folded := evaluate(call, budget)):
        return folded
    for rule in rules_of(call.op):
        simpler = rule(call, definitions)
        if simpler is not None and simpler.type == call.type:
            return simpler
    return None


@functools.cache
def rules_of(operator: Operator) -> tuple[Rule, ...]:
    """Return the rules for an operator, in the order in which they are tried."""
    return (
        *elementwise_rules.rules_of(operator),
        *movement_rules.RULES.get(operator, ()),
        *transpose_rules.rules_of(operator),
    )
