"""Tests of the rewrite rules of canonicalize: each has a golden case or a pattern, and results do not change.

Even the signs of zeros are the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from support.golden_cases import read_cases
from tensor_programs import Programs, operators, results, symbolic

from relvm import ops
from relvm.errors import RelvmError
from relvm.frontend.text import parse_module
from relvm.ir.dtypes import BOOL, F32, I32
from relvm.ir.expr import Binding, Expr, Function, Module, OpCall, Shape, Var, constant
from relvm.ir.interpreter import evaluate
from relvm.ir.node import walk
from relvm.ir.operator import operators as all_operators
from relvm.ir.symbolic import evaluate_with
from relvm.ir.type_inference import infer_types
from relvm.ir.types import PrimType, TensorType
from relvm.passes.canonicalize.canonicalize import canonicalize, rules_of
from relvm.passes.canonicalize.rule import Rewrite, Rule, instantiate
from relvm.passes.constant_folding import constant_folding
from relvm.passes.dce import dce
from relvm.passes.pass_manager import run_passes
from relvm.passes.to_anf import to_anf

CASES = read_cases(Path(__file__).parent / "canonicalize.cases")


def normal(text: str) -> Module:
    return run_passes(infer_types(parse_module(text)), (to_anf, constant_folding))


def rules_that_apply(module: Module) -> set[Rule]:
    """Return the rules that rewrite an operator of the module, or an operator that other rules created."""
    found = set()
    for _ in range(4):
        calls = {item.var: item.value for item in walk(module) if isinstance(item, Binding)}
        definitions = {var: value for var, value in calls.items() if isinstance(value, OpCall)}
        for call in definitions.values():
            for rule in rules_of(call.op):
                made = rule(call, definitions)
                if made is not None and made.type == call.type:
                    found.add(rule)
        module = canonicalize(module)
    return found


RULES = dict.fromkeys(rule for operator in all_operators().values() for rule in rules_of(operator))


def test_every_rule_without_a_pattern_has_a_case() -> None:
    applied = set().union(*(rules_that_apply(normal(case.source)) for case in CASES))
    assert [rule for rule in RULES if rule not in applied and not isinstance(rule, Rewrite)] == []


def value_of(type_, sizes: dict, random: np.random.Generator):
    if isinstance(type_, PrimType):
        return True
    assert isinstance(type_, TensorType)
    shape = tuple(evaluate_with(dim, lambda var: sizes.setdefault(var, 4)) for dim in type_.shape)
    if type_.dtype == BOOL:
        return np.asarray(random.integers(0, 2, shape), bool)
    if type_.dtype.is_integer:
        return np.asarray(random.integers(0, 100, shape), type_.dtype.numpy)
    return np.asarray(random.choice([-2, -1, -0.0, 0, 1, 3, 0.5, np.inf, -np.inf, np.nan], shape), type_.dtype.numpy)


def results_of(module: Module, args: list) -> list[np.ndarray]:
    def flat(value):
        return [leaf for part in value for leaf in flat(part)] if isinstance(value, tuple) else [np.asarray(value)]

    return flat(evaluate(module, module.functions[0].name, *args))


def expect_same(got: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    """Assert that arrays are equal, including NaNs and the signs of zeros.  Floats may differ by two roundings."""
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=3e-7)
        if a.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(a[~np.isnan(a)]), np.signbit(b[~np.isnan(b)]))


# These cases have an index out of range, a function as result, or roots, for which NumPy's special values differ from
# those of C (test_roots_have_the_special_values_of_c).
NOT_COMPARED = ("gathering at known places", "a local function", "roots")


@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.title.startswith(NOT_COMPARED)], ids=lambda case: case.title
)
def test_a_simpler_program_computes_the_same(case) -> None:
    before = normal(case.source)
    random, sizes = np.random.default_rng(0), {}
    args = [value_of(param.type, sizes, random) for param in before.functions[0].params]
    expect_same(results_of(canonicalize(before), args), results_of(before, args))


# The values of the variables in patterns other than operands.
VALUES = {"s": Shape((2, 3)), "t": Shape((4, 2, 3)), "dtype": "f32", "wide": "f64", "low": None, "high": None}


def programs_of(rewrite: Rewrite) -> Iterator[Module]:
    """Yield programs of the form of the pattern, with tensors and neutral elements as operands."""
    f = rewrite.pattern.op
    for dtype, shape, to in itertools.product((F32, I32, BOOL), ((2, 3), (3,)), ("i32", "u8")):
        param = Var("x", type=TensorType(dtype, shape))
        neutral = constant(f.traits.neutral(dtype), dtype) if f.traits.neutral else param
        for x, y in ((param, neutral), (neutral, param)):
            named = {"x": x, "y": y, "to": to, "min": 0, "max": 1, **VALUES}
            values = {part: named[part.name] for part in walk(rewrite.pattern) if isinstance(part, Var)}
            with suppress(RelvmError):
                call = instantiate(rewrite.pattern, values)
                yield run_passes(infer_types(Module((Function("main", (param,), call),))), (to_anf,))


@pytest.mark.parametrize(
    "rewrite", [rule for rule in RULES if isinstance(rule, Rewrite)], ids=lambda rule: rule.pattern.op.name
)
def test_a_program_of_the_form_of_a_pattern_is_rewritten_and_computes_the_same(rewrite: Rewrite) -> None:
    before = next(module for module in programs_of(rewrite) if rewrite in rules_that_apply(module))
    args = [value_of(before.functions[0].params[0].type, {}, np.random.default_rng(0))]
    if not any(isinstance(part, OpCall) and part.op is ops.sqrt for part in walk(rewrite.replacement)):
        expect_same(results_of(canonicalize(before), args), results_of(before, args))


def test_roots_have_the_special_values_of_c() -> None:
    """Roots of special values are those of pow in C (source: C11, F.10.4.4)."""
    text = "def main(x: f64[n]) -> object { return (power(x, const(f64[], 0.5)), power(x, const(f64[], -0.5))) }"
    x = np.array([2, 0.0, -0.0, np.inf, -np.inf, np.nan, -1])
    half, inf, nan = np.sqrt(2), np.inf, np.nan
    root = np.array([half, 0, 0, inf, inf, nan, nan])
    inverse = np.array([1 / half, inf, inf, 0, 0, nan, nan])
    expect_same(results_of(canonicalize(normal(text)), [x]), [root, inverse])


WITH_NEUTRAL = [ops.add, ops.subtract, ops.multiply, ops.divide, ops.maximum, ops.minimum]


def shapes(random: np.random.Generator) -> list[tuple]:
    n = symbolic(3) if random.random() < 0.5 else 3
    return [(2, n, 1, 4), (n, 4), (1, 4)]


def step(made: list[Var], random: np.random.Generator) -> Expr:
    """Return a random operator call on the last values."""
    x, y = (made[-int(random.integers(1, min(len(made), 4) + 1))] for _ in range(2))
    rank = x.type.rank
    axis = int(random.integers(max(rank, 1)))
    match random.integers(13):
        case 0:
            return ops.transpose(x, perm=tuple(int(a) for a in random.permutation(rank)))
        case 1:
            return ops.expand_dims(x, axes=(int(random.integers(rank + 1)),))
        case 2:
            return ops.squeeze(x, axes=(x.type.shape.index(1),))
        case 3:
            dims = x.type.shape
            return ops.reshape(x, Shape((*dims[:axis], dims[axis] * dims[axis + 1], *dims[axis + 2 :])))
        case 4:
            ends = (int(random.integers(-5, 5)), int(random.choice((-(1 << 31), 1 << 31, 1, 2, -1))))
            step_ = int(random.choice((1, 1, 2, -1)))
            return ops.slice(x, begin=ends[:1], end=ends[1:], axes=(axis,), steps=(step_,))
        case 5:
            return ops.concat(x, y, axis=axis)
        case 6:
            index = int(random.integers(x.type.shape[axis]))  # the size is known; ValueError if it is 0
            return ops.gather(x, constant(index, "i64"), axis=axis)
        case 7:
            return ops.broadcast_to(x, Shape((2, *made[0].type.shape[1:]) if random.random() < 0.5 else (4,)))
        case 8:
            numbers = constant(random.choice((0, -0.0, 1, np.inf, -np.inf)), "f32")
            operator = random.choice(WITH_NEUTRAL)
            return operator(x, numbers) if random.random() < 0.7 else operator(numbers, x)
        case 9:
            return random.choice([ops.negative, ops.identity, ops.abs, ops.relu])(x)
        case 10:
            return ops.cast(ops.cast(x, to="f64"), to="f32")
        case 11:
            return random.choice([ops.add, ops.maximum])(x, y)
        case _:
            return ops.max(x, axes=(axis,), keepdims=bool(random.random() < 0.5))


PROGRAMS = Programs(60, F32, shapes, step, steps=range(4, 16), ranks=range(1, 6))


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_compute_the_same(seed: int) -> None:
    made, sizes = PROGRAMS.module(seed)
    before = run_passes(infer_types(made), (to_anf, constant_folding, dce))
    after = run_passes(before, (canonicalize, dce), verified=True)
    assert operators(after) < 0.7 * operators(before)
    random = np.random.default_rng(seed)
    for got, wanted in results(before, after, sizes, lambda shape: value_of(TensorType(F32, shape), {}, random)):
        expect_same([got], [wanted])


def test_a_long_chain_is_simplified_in_one_go() -> None:
    lines = [f"  v{i + 1} = transpose(v{i})" for i in range(10_000)]
    text = "def main(v0: f32[n, m]) -> f32[n, m] {\n" + "\n".join(lines) + "\n  return v10000\n}"
    function = run_passes(normal(text), (canonicalize, dce)).functions[0]
    assert function.body.bindings == () and function.body.result is function.params[0]
