"""Conditions on sizes in exported programs become claims, and malformed ones are ignored."""

from __future__ import annotations

import pytest

from relvm.frontend.torch.guards import claim_of_guard, shown_guard, value_of_guard
from relvm.frontend.torch.sizes import seems_one
from relvm.ir.dtypes import F64
from relvm.ir.expr import DimValue, Expr, Prim, Var
from relvm.ir.symbolic import AnyDim, dim_var
from relvm.ir.types import PrimType

N, M = dim_var("n"), dim_var("m")
SIZES = {"x": (N, 3), "pair_a": (M,)}


def size_of(name: str, axis: int) -> AnyDim | None:
    sizes = SIZES.get(name, ())
    return sizes[axis] if axis < len(sizes) else None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(L['x'].size()[0] % 2) == 0", ("equal", N % 2, 0)),
        ("L['pair']['a'].size()[0] == (2*L['x'].size()[0])", ("equal", M, N * 2)),
        ("L['x'].size()[0] // 4 <= L['x'].size()[1]", ("at_most", N // 4, 3)),
        ("L['x'].size()[0] < 8", ("at_most", N + 1, 8)),
        ("L['x'].size()[0] >= 3", ("at_most", 3, N)),
        ("L['x'].size()[0] - 1 > L['pair']['a'].size()[0]", ("at_most", M + 1, N - 1)),
        ("L['x'].size()[0] >= 2", None),  # assumed for tracing only
        ("L['x'].size()[0] > 1", None),
        ("L['x'].size()[0] != 7", None),  # a value
        ("L['y'].size()[0] == 1", None),
        ("L['x'].size()[2] == 1", None),
        ("L['x'].stride()[0] == 1", None),
        ("L['x'].size()[0] == True", None),
        ("L['x'].size()[0] == 4294967296", None),
        ("L['x'].size()[0] // 0 == 1", None),
        ("L['x'].size()[0] ** 3 == 1", None),
        ("__import__('os').getpid() == 1", None),
        ("1 < 2 < 3", None),
        ("L['x'", None),
        ("", None),
        ("(" * 900 + "1" + ")" * 900 + " == 1", None),
        ("-" * 1900 + "1 == 1", None),
        ("+".join(["L['x'].size()[0]"] * 100) + " == 300", ("equal", N * 100, 300)),
        ("1" * 1900 + " == 1", None),
        ("1+" * 3000 + "1 == 1", None),
    ],
)
def test_the_claim_of_a_condition(text: str, expected: tuple[str, AnyDim, AnyDim] | None) -> None:
    assert claim_of_guard(text, size_of) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("math.trunc(0.5*torch.sym_float(L['x'].size()[0])) == 3", "Eq(TruncToInt(Mul(0.5, ToFloat(n))), 3)"),
        (
            "torch._sym_sqrt(L['x'].size()[0]) / 2 < -1.5",
            "StrictLessThan(FloatTrueDiv(OpaqueUnaryFn_sqrt(n), 2), Mul(-1, 1.5))",
        ),
        ("L['x'].size()[1] ** 0.5 >= math.floor(2.5)", "GreaterThan(FloatPow(3, 0.5), FloorToInt(2.5))"),
        ("L['x'].size()[0] * 0.5 != 3", "Ne(Mul(n, 0.5), 3)"),
        ("L['x'].size()[0] != 7", "Ne(n, 7)"),
        ("2*L['pair']['a'].size()[0] != L['x'].size()[0]", "Ne(Mul(2, m), n)"),
        ("(L['x'].size()[0] % 3) != 0", "Ne(Mod(n, 3), 0)"),
        ("(L['x'].size()[0] % 3) != 1", "Ne(Mod(n, 3), 1)"),
        ("L['x'].size()[0] != 1", None),  # assumed for tracing only
        ("0 != L['x'].size()[0] // 2 + 1", None),
        ("math.trunc(0.5*torch.sym_float(L['x'].size()[0])) != 1", None),
        ("(L['x'].size()[0] % 0) != 3", None),
        ("L['x'].stride()[0] != 3", None),
        ("L['x'].stride()[0] * 0.5 == 1", None),
        ("__import__('os').getpid() * 0.5 == 1", None),
        ("math.trunc(0.5*torch.sym_float(L['y'].size()[0])) == 3", None),
        ("(L['x'].size()[0] % 2) == 0", None),  # a claim
        ("0.5 < L['x'].size()[0] < 3", None),
        ("1e400 * L['x'].size()[0] == 1", None),
        ("0.5*" * 900 + "(" * 900 + "1", None),
    ],
)
def test_the_value_of_a_condition(text: str, expected: str | None) -> None:
    def call(name: str, values: list[Expr]) -> Expr:
        return Var(f"{name}({', '.join(map(shown, values))})", type=PrimType(F64))

    def shown(value: Expr) -> str:
        match value:
            case Var(name=name):
                return name
            case Prim(value=number):
                return str(number)
            case DimValue(dim=dim):
                return str(dim)
        raise AssertionError(value)

    found = value_of_guard(text, size_of, call)
    assert (None if found is None else shown(found)) == expected


def test_functions_of_sizes() -> None:
    found = claim_of_guard("torch.sym_max(1, L['x'].size()[0]) == L['x'].size()[0]", size_of)
    assert found is not None and found[0] == "equal" and found[2] == N


def test_a_message_shows_sizes_by_the_names_of_inputs() -> None:
    assert shown_guard("3*L['pair'][0].size()[1] >= L['x'].size()[0]") == "3*pair_0.size(1) >= x.size(0)"


@pytest.mark.parametrize(
    ("size", "expected"),
    [(1, True), (N, False), ((N + 1) // N, True), (N // 64, False), (N // (N // 2048), False)],
)
def test_sizes_that_are_always_one_are_found_by_samples(size: AnyDim, expected: bool) -> None:
    assert seems_one(size) == expected
