"""Proofs of index bounds in kernels.  In `simd` and `parallel` loops, all indices must be proven."""

from __future__ import annotations

import pytest

from relvm.errors import RelvmTypeError
from relvm.frontend.text import parse_module
from relvm.ir.loop_ir import Fail, statements_in
from relvm.kernels.kernel import Kernel
from relvm.kernels.lower_kernel_def import lower_kernel_def

HEAD = "kernel k(x: f32[n], at: i64[l], y: f32[n, m], z: f32[2 * n + 1]) -> (out: f32[n], o2: f32[2 * n]) {\n"
REST = "\n  for q in range(n) { out[q] = x[q] }\n  for q in range(2 * n) { o2[q] = z[q] }\n}\n"
UNPROVEN = "cannot prove that the index of"
DEPENDENT = "may access the same element of"

PROVEN = (
    "for i in simd(n) { let a = x[i] }",
    "for i in simd(1, n) { let a = x[i - 1] }",
    "for i in simd(1, n - 1) { let a = x[i - 1] + x[i + 1] }",
    "for i in simd(n) { let a = x[n - 1 - i] }",
    "for i in simd(n) { let a = z[2 * i + 1] + z[2 * i + 2] }",
    "for i in simd(n) { let a = if i > 0 then x[i - 1] else 0.0 }",
    "for i in simd(n) { let a = if not (i == 0) then 1.0 else x[i] }",
    "for i in simd(n) { let a = i > 0 and x[i - 1] > 0.0 }",
    "for i in simd(n) { let a = i <= 0 or x[i - 1] > 0.0 }",
    "for i in simd(l) { let q = at[i]\n let a = if 0 <= q and q < n then x[q] else 0.0 }",
    "for i in simd(l) { let a = if at[i] >= 0 and at[i] < n then x[at[i]] else 0.0 }",
    "for i in parallel(l) { let q = at[i]\n if 0 <= q and q < n { let a = x[q] } }",
    "for i in parallel(l) { if 5 == at[i] { if n > 5 { let a = x[at[i]] } } }",
    "for i in simd(n) { let a = x[max(i - 1, 0)] + x[min(i + 1, n - 1)] }",
    "for i in simd(n) { let a = x[max(i, 0 - 9223372036854775807 - 1)] + x[min(i, 9223372036854775807)] }",
    "for i in range(n) { for j in simd(m) { let a = y[i, j] } }",
    "for t in parallel(n // 4) { for c in range(4) { let a = x[t * 4 + c] } }",
    "for i in simd(2 * n) { let a = x[i // 2] }",
    "for i in simd(n) { let a = x[i // 2] + x[(i + n) // 2] }",
    "for i in simd(n) { let a = if n > 3 then x[i % 4] else 0.0 }",
    "for i in range(n) { for j in simd(i + 1) { let a = x[j] + x[i - j] } }",
    "for i in range(n) { for j in simd(min(i, m)) { let a = y[i, j] } }",
    "for i in parallel(n) { out[i] = out[i] + 1.0 }",
    "for i in simd(n) { o2[2 * i] = 1.0\n }",
    "for t in parallel(n // 4) { for c in simd(4) { out[t * 4 + c] = x[t * 4 + 3 - c] } }",
    "for i in parallel(n) { let acc = 0.0\n for j in simd(m) { acc += y[i, j] }\n out[i] = acc }",
    "for i in simd(n) { let acc = 0.0\n for j in range(m) { for c in range(j) { acc += y[i, c] } }\n out[i] = acc }",
    "let acc = 0.0\n for i in simd(n) { acc += x[i] }\n out[0] = acc",
    "let acc = 0.0\n let most = x[0]\n for i in simd(n) { acc -= x[i]\n most = max(x[i], most) }\n out[0] = acc + most",
    "for i in simd(n) { let acc = 0.0\n for j in range(m) { acc += y[i, j] }\n out[i] = acc }",
)

REFUSED = {
    "for i in simd(n) { let a = x[i + 1] }": UNPROVEN,
    "for i in simd(n) { let a = x[i - 1] }": UNPROVEN,
    "for i in simd(0 - 1, n) { let a = x[i] }": UNPROVEN,
    "for i in simd(l) { let a = x[i] }": UNPROVEN,
    "for i in simd(n) { let a = x[0] + z[0] + x[1] }": UNPROVEN,
    "for i in simd(n) { let a = if i > 0 then 1.0 else x[i - 1] }": UNPROVEN,
    "for i in simd(n) { let a = i > 0 or x[i - 1] > 0.0 }": UNPROVEN,
    "for i in simd(l) { let q = at[i]\n let a = if 0 <= q then x[q] else 0.0 }": UNPROVEN,
    "for i in simd(n) { let a = x[max(i + 1, 0)] }": UNPROVEN,
    "for i in simd(n) { let a = x[min(i - 1, n - 1)] }": UNPROVEN,
    "for t in parallel(n // 4 + 1) { for c in range(4) { let a = x[t * 4 + c] } }": UNPROVEN,
    "let p = 0\n for i in range(n) { p += 1 }\n for i in simd(n) { let a = x[p] }": UNPROVEN,
    "for i in simd(l) { let a = if 0 <= x[0] and x[0] < 1.0 then x[i64(x[0])] else 0.0 }": UNPROVEN,
    # An output may change between the condition and the access.
    "for i in range(n) { for j in simd(1) { let a = if i64(out[i]) == 0 then x[i64(out[i])] else 0.0 } }": UNPROVEN,
    # Conditions that would exclude out-of-range indices only without overflow.
    "for i in simd(l) { let q = at[i]\n let a = if 0 <= q and q + 1 < n then x[q + 1] else 0.0 }": UNPROVEN,
    "for i in simd(n) { let a = if i + 9223372036854775807 < n then x[i + 1] else 0.0 }": UNPROVEN,
    "for i in simd(n) { let b = i * 4611686018427387904 * 2\n let a = if b < n then x[b + i + 1] else 0.0 }": UNPROVEN,
    "for i in simd(n) { let a = x[(i * 4611686018427387904 * 4) // 4611686018427387904] }": UNPROVEN,
    "for i in simd(l) { let q = min(at[i], n)\n let a = if 0 <= q - 5 and q - 5 < n then x[q - 5] else 0.0 }": UNPROVEN,
    "for i in range(at[0]) { for j in simd(i) { let a = x[j] } }": UNPROVEN,
    "for i in range(at[0] + 5, n) { for j in simd(1) { let a = x[i] } }": UNPROVEN,
    "for i in simd(n * n * n, n) { let a = x[i] }": UNPROVEN,
    "for i in simd(n) { let a = x[i * 4611686018427387904 + i * 4611686018427387904 + 2 * i * 4611686018427387904] }":
    UNPROVEN,
    "for i in simd(1) { let b = 4611686018427387904 * (1 + 2 * i + 1)\n let a = if b < 0 then x[0 - 1] else 0.0 }":
    UNPROVEN,
    # Equal numbers that are not the same.
    "for i in simd(1) { let a = if 0 <= i64(copysign(9.0, 0.0)) and i64(copysign(9.0, 0.0)) < n"
    " then x[i64(copysign(9.0, -0.0))] else 0.0 }": UNPROVEN,
    # Iterations that depend on each other.
    "for i in simd(1, n) { out[i] = out[i - 1] }": DEPENDENT,
    "for i in simd(n) { for j in range(n) { out[j] = x[i] } }": DEPENDENT,
    "for i in simd(n) { for j in range(n) { if i + j < n { out[i + j] = 1.0 } } }": "simd loop must not contain an if",
    "for i in parallel(n) { for j in range(n) { if i + j < n { out[i + j] = 1.0 } } }": DEPENDENT,
    "for i in parallel(n) { out[i // 2] = 1.0 }": DEPENDENT,
    "for t in parallel(n // 4) { for c in range(5) { if t * 4 + c < n { out[t * 4 + c] = 1.0 } } }": DEPENDENT,
    "for t in parallel(n // 4) { for c in range(4) { out[t * 4 + c] = out[0] } }": DEPENDENT,
    "for i in parallel(l) { let q = at[i]\n if 0 <= q and q < n { out[q] = 1.0 } }": DEPENDENT,
    "for i in parallel(n) { o2[i] = o2[i + n] }": DEPENDENT,
    "for i in simd(n) { out[i] = out[n - 1 - i] }": DEPENDENT,
    "let a = 0.0\n for i in parallel(n) { a += x[i] }": "a parallel loop cannot change a",
    "let a = 0.0\n for i in simd(n) { a = x[i] }": "a simd loop may change a",
    "let a = 0.0\n for i in simd(n) { a += x[i]\n a *= 2.0 }": "only by one reduction",
    "let a = 0.0\n for i in simd(n) { a = x[i] - a }": "only by one reduction",
    "let a = 0.0\n for i in simd(n) { a += x[i] * a }": "cannot be read before the end of the loop",
    "let a = 0.0\n for i in simd(n) { a += x[i]\n out[i] = a }": "cannot be read before the end of the loop",
    "let a = 0.0\n for i in simd(n) { for j in range(m) { a += y[i, j] } }": "a simd loop may change a",
    "let a = 0.0\n for i in simd(n) { a += x[i]\n for j in range(m) { a += y[i, j] } }": "a simd loop may change a",
    "for i in parallel(n) { for j in parallel(m) { } }": "a parallel loop cannot contain a parallel loop",
    "for i in simd(n) { for j in parallel(m) { } }": "a simd loop cannot contain a parallel loop",
    "for i in simd(n) { for j in simd(m) { } }": "a simd loop cannot contain a simd loop",
    "for i in simd(n) { let c = i\n for j in range(c) { } }": "must not depend on the iteration",
    "for i in simd(n) { for j in range(at[0]) { } }": "must not depend on the iteration",
    "for i in simd(l) { for j in range(at[i]) { } }": "must not depend on the iteration",
    "for i in simd(n) { for j in range(i) { } }": "must not depend on the iteration",
}  # fmt: skip


def lowered(body: str) -> Kernel:
    ((name, kernel),) = parse_module(HEAD + body + REST).kernels
    return lower_kernel_def(kernel, {}, name)


def checks(kernel: Kernel) -> list[str]:
    return [s.message for s in statements_in(kernel.body) if isinstance(s, Fail) and "outside axis" in s.message]


@pytest.mark.parametrize("body", PROVEN)
def test_proven(body: str) -> None:
    assert not [message for message in checks(lowered(body)) if "of out," not in message and " of x," not in message]


@pytest.mark.parametrize("body", REFUSED)
def test_refused(body: str) -> None:
    with pytest.raises(RelvmTypeError) as raised:
        lowered(body)
    assert REFUSED[body] in str(raised.value)
    assert raised.value.lineno is not None


@pytest.mark.parametrize("body", [body for body, reason in REFUSED.items() if reason == UNPROVEN])
def test_what_is_not_proven_is_checked_in_a_plain_loop(body: str) -> None:
    plain = body.replace("simd", "range").replace("parallel", "range")
    assert len(checks(lowered(plain))) > 0


@pytest.mark.parametrize("body", PROVEN[:13])
def test_what_is_proven_is_not_checked_in_a_plain_loop(body: str) -> None:
    assert checks(lowered(body.replace("simd", "range").replace("parallel", "range"))) == []
