# %% [markdown]
# # Writing a pass
#
# A pass is a function that transforms a module, or each function of a module. Nodes are immutable, so a pass creates
# new nodes. The decorator declares the name of the pass and its input stage.
#
# At the end of the notebook you can write a pass as a rewrite rule, run only this pass, and let the verifier check
# its result.

# %%
from dataclasses import replace

import numpy as np

from relvm import vm
from relvm.errors import RelvmVerifyError
from relvm.frontend.text import parse_module
from relvm.ir.expr import Constant, Expr, Function, OpCall
from relvm.ir.operator import find_operator
from relvm.ir.printer import print_module
from relvm.ir.type_inference import infer_types
from relvm.ir.verifier import Stage
from relvm.ir.visitor import rewrite
from relvm.passes.pass_manager import function_pass, run_passes
from relvm.passes.pipeline import build_pipeline
from relvm.passes.to_anf import to_anf


@function_pass("double_by_addition", at=Stage.ANF)
def double_by_addition(function: Function) -> Function:
    """Doubling becomes an addition, which is as exact:   multiply(x, 2)   ->   add(x, x)"""
    add, multiply = find_operator("add"), find_operator("multiply")

    def rule(expr: Expr) -> Expr | None:
        match expr:
            case OpCall(op, (x, Constant(value=factor))) if (
                op is multiply and factor.size == 1 and factor.item() == 2
            ):
                return replace(expr, op=add, args=(x, x)) if expr.type == x.type else None
        return None

    return rewrite(rule, function)


# %% [markdown]
# `rewrite` applies the rule to every expression, innermost first. If the rule returns None, the expression is not
# changed. `replace` copies all other fields of the call, such as its source location. The rule compares the types of
# `x` and of the product, because a factor of shape [1, 1] can give the product more axes than `x` has.
#
# `run_passes` runs a list of passes. With `verified=True`, it verifies that each result obeys the rules of its stage.

# %%
module = parse_module("""
def main(x: f32[n]) -> f32[n] {
  a = multiply(x, const(f32[], 2))
  b = multiply(a, const(f32[], 3))
  return b
}""")
normal = to_anf(infer_types(module))
changed = run_passes(normal, [double_by_addition], verified=True)
print(print_module(changed))
assert "add(x, x)" in print_module(changed) and "multiply(a, " in print_module(changed)

# %% [markdown]
# The rewritten module can be built like any other module. Its results are bit-identical.

# %%
x = np.float32([1.1, -0.0, np.inf])
before, after = (
    vm.VirtualMachine(vm.build(each))["main"](x).numpy() for each in (normal, changed)
)
assert before.tobytes() == after.tobytes()

# %% [markdown]
# The verifier detects a pass that breaks a rule of its stage. At stage ANF, all arguments must be variables or
# constants. The following pass nests one operator in another.

# %%


@function_pass("nest", at=Stage.ANF)
def nest(function: Function) -> Function:
    """relu(x) around every multiplication: not in A-normal form."""
    relu = find_operator("relu")

    def rule(expr: Expr) -> Expr | None:
        is_product = isinstance(expr, OpCall) and expr.op.name == "multiply"
        return OpCall(relu, (expr,), type=expr.type) if is_product else None

    return rewrite(rule, function)


try:
    run_passes(normal, [nest], verified=True)
    raise AssertionError("the verifier saw nothing")
except RelvmVerifyError as error:
    print(error)

# %% [markdown]
# `relvm/passes/pipeline.py` lists the passes of a build. The golden cases in `tests/passes/`, modules before and
# after a pass, show the effect of each pass.

# %%
for step in build_pipeline("c"):
    print(f"{step.name:20} {step.at.name} -> {step.to.name}")

# %% [markdown]
# **Exercise.** Write a pass that replaces `divide(x, 2)` by `multiply(x, 0.5)`, which has exactly the same result.
# `relvm.ir.expr.constant` returns a constant with the elements of an array.

# %% tags=["solution"]
from relvm.ir.expr import constant


@function_pass("halve_by_multiplication", at=Stage.ANF)
def halve_by_multiplication(function: Function) -> Function:
    """Halving becomes a multiplication:   divide(x, 2)   ->   multiply(x, 0.5)"""
    divide, multiply = find_operator("divide"), find_operator("multiply")

    def rule(expr: Expr) -> Expr | None:
        match expr:
            case OpCall(op, (x, Constant(value=two))) if op is divide and two.size == 1:
                if two.item() == 2 and x.type.dtype.is_float:
                    return replace(expr, op=multiply, args=(x, constant(two / two / two)))
        return None

    return rewrite(rule, function)


half = to_anf(infer_types(parse_module("def main(x: f32[n]) = divide(x, const(f32[], 2))")))
halved = run_passes(half, [halve_by_multiplication], verified=True)
print(print_module(halved))
assert "multiply(x, const(f32[], 0.5))" in print_module(halved)
