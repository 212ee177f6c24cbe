"""Tests of kernels defined in programs: all modes and targets have the results and errors of the reference."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support.modes import WAYS, run_everywhere

from relvm import vm
from relvm.errors import (
    RelvmArgumentError,
    RelvmError,
    RelvmIndexError,
    RelvmNameError,
    RelvmShapeError,
    RelvmTypeError,
)
from relvm.frontend.text import parse_module
from relvm.ir.dtypes import F32, I64, dtype_of
from relvm.ir.expr import Module
from relvm.ir.interpreter import evaluate
from relvm.ir.kernel_def import MATH, KernelDef
from relvm.ir.loop_ir import Buffer, Fail, Literal, Local, Loop
from relvm.ir.type_inference import infer_types

RANDOM = np.random.default_rng(3)
X = RANDOM.standard_normal((5, 37)).astype(np.float32)
V = X[0]
AT = np.array([2**63 - 1, 3, -5, 2**62])

# For each program, the text of a kernel, the text of main, and arguments.
PROGRAMS = {
    "elementwise with a scalar": (
        "kernel k(x: f32[n, m], s: f32) -> (out: f32[n, m]) { for i, j in grid(n, m) { out[i, j] = x[i, j] * s } }",
        "(x: f32[n, m]) = kernel k(x, 2.5)",
        (X,),
    ),
    "an i64 of the program as a scalar": (
        "kernel k(s: f32, c: i64) -> (out: f32[k]) { for i in simd(k) { out[i] = s * f32(i + c) } }",
        "(x: f32[n], c: i64) -> f32[n] = kernel k(0.5, c) : f32[n]",
        (V, 3),
    ),
    "two outputs of reductions": (
        """kernel k(x: f32[n, m]) -> (total: f32[n], most: f32[n]) {
  for i in parallel(n) {
    let acc = 0.0; let top = -inf
    for j in simd(m) { acc += x[i, j]; top = max(top, x[i, j]) }
    total[i] = acc; most[i] = top
  }
}""",
        "(x: f32[n, m]) = kernel k(x)",
        (X,),
    ),
    "reductions of each kind": (
        """kernel k(x: f32[n], y: i64[n]) -> (out: f32[4], ints: i64[4]) {
  let a = 0.0; let b = 1.0; let c = inf; let d = -inf
  for i in simd(n) { a -= x[i]; b *= 1.0 + x[i] * 0.01; c = min(x[i], c); d = max(d, x[i]) }
  out[0] = a; out[1] = b; out[2] = c; out[3] = d
  let e = 0; let f = 1; let g = 1000000; let h = -1000000
  for i in simd(n) { e += y[i]; f *= y[i]; g = min(g, y[i]); h = max(y[i], h) }
  ints[0] = e; ints[1] = f; ints[2] = g; ints[3] = h
}""",
        "(x: f32[n], y: i64[n]) = kernel k(x, y)",
        (V, RANDOM.integers(-9, 9, 37)),
    ),
    "neighbours, guarded and clamped": (
        """kernel k(x: f32[n]) -> (out: f32[n]) {
  for i in simd(n) {
    let left = if i > 0 then x[i - 1] else 0.0
    out[i] = left + x[i] + x[min(i + 1, n - 1)]
  }
}""",
        "(x: f32[n]) = kernel k(x)",
        (V,),
    ),
    "compound sizes": (
        """kernel k(x: f32[n], y: f32[n + 1]) -> (out: f32[2 * n]) {
  for i in parallel(n) { out[2 * i] = x[i]; out[2 * i + 1] = y[i + 1] - y[i] }
}""",
        "(x: f32[n], y: f32[n + 1]) = kernel k(x, y)",
        (V, np.append(V, np.float32(1))),
    ),
    "integer division rounds down": (
        "kernel k(x: i64[n]) -> (q: i64[n], r: i64[n]) { "
        "for i in simd(n) { q[i] = x[i] // (i - 3); r[i] = x[i] % (i - 3) } }",
        "(x: i64[n]) = kernel k(x)",
        (np.arange(-20, 20) * 7,),
    ),
    "division by a constant": (
        "kernel k(x: i8[n]) -> (q: i8[n], r: u8[n]) { "
        "for i in simd(n) { q[i] = x[i] // i8(-3); r[i] = u8(x[i]) % 7 } }",
        "(x: i8[n]) = kernel k(x)",
        (np.arange(-128, 128, 3).astype(np.int8),),
    ),
    "division of the smallest integer by -1 and by 0": (
        "kernel k(x: i8[n], y: i8[n]) -> (q: i8[n], r: i8[n]) { "
        "for i in range(n) { q[i] = x[i] // y[i]; r[i] = x[i] % y[i] } }",
        "(x: i8[n], y: i8[n]) = kernel k(x, y)",
        (np.array([-128, -128, 5, 7], np.int8), np.array([-1, 0, 0, -2], np.int8)),
    ),
    "narrow dtypes are converted": (
        "kernel k(x: f16[n]) -> (out: bf16[n], t: bool[n]) { "
        "for i in simd(n) { out[i] = bf16(f32(x[i]) * 2.0); t[i] = f32(x[i]) > 0.0 or i == 0 } }",
        "(x: f16[n]) = kernel k(x)",
        (V.astype(np.float16),),
    ),
    "functions": (
        """kernel k(x: f32[n], y: f64[n]) -> (out: f32[n], o: f64[n]) {
  for i in simd(n) {
    out[i] = exp(-abs(x[i])) + tanh(x[i]) * sqrt(abs(x[i])) + fma(x[i], x[i], 1.0) + round(x[i]) + floor(x[i])
    o[i] = power(abs(y[i]), 1.5) + copysign(y[i], -1.0) + fmod(y[i], 0.25) + erf(y[i])
  }
}""",
        "(x: f32[n], y: f64[n]) = kernel k(x, y)",
        (V, V.astype(np.float64)),
    ),
    "what is not written is 0": (
        "kernel k(x: f32[n, m]) -> (out: f32[n, m], t: bool[n]) { "
        "for i in range(n) { if i % 2 == 0 { out[i, 0] = x[i, 0]; t[i] = true } } }",
        "(x: f32[n, m]) = kernel k(x)",
        (X,),
    ),
    "an output is read after it is written": (
        """kernel k(x: f32[n, m]) -> (out: f32[n, m], sums: f32[n]) {
  for i, j in grid(n, m) { out[i, j] = x[i, j] + 1.0; out[i, j] *= 2.0; sums[i] += out[i, j] }
  for t in range(3) { for i in parallel(1, n) { for j in range(m) { out[i, j] += x[i - 1, j] } } }
}""",
        "(x: f32[n, m]) = kernel k(x)",
        (X,),
    ),
    "a running sum": (
        "kernel k(x: f32[n]) -> (out: f32[n]) { let acc = 0.0\n for i in range(n) { acc += x[i]; out[i] = acc } }",
        "(x: f32[n]) = kernel k(x)",
        (V,),
    ),
    "a result of rank 0": (
        "kernel k(x: f32[n]) -> (out: f32) { for i in range(n) { out += x[i] } }",
        "(x: f32[n]) = kernel k(x)",
        (V,),
    ),
    "bounds are evaluated once": (
        "kernel k(x: i64[n]) -> (out: i64[n]) { "
        "let stop = 3\n for i in range(stop) { stop += 1; out[i] = x[i] + stop } }",
        "(x: i64[n]) = kernel k(x)",
        (np.arange(9),),
    ),
    "the second operand and the other branch are not evaluated": (
        """kernel k(x: f32[n], at: i64[l]) -> (out: f32[l]) {
  for i in range(l) {
    let inside = at[i] >= 0 and at[i] < n and x[at[i]] != 0.0
    out[i] = if inside then x[at[i]] else -1.0
    if not (at[i] < 0 or at[i] >= n or x[at[i]] > 100.0) { out[i] += 1.0 }
  }
}""",
        "(x: f32[n], at: i64[l]) = kernel k(x, at)",
        (V, AT),
    ),
    "a loop whose bounds overflow when they are subtracted": (
        "kernel k(x: f32[n], at: i64[l]) -> (out: f32[n], runs: i64) {\n"
        "for i in parallel(at[0], at[1]) { if 0 <= i and i < n { out[i] = 1.0 } }\n"
        "for i in range(at[0], at[1]) { runs += 1 } }",
        "(x: f32[n], at: i64[l]) = kernel k(x, at)",
        (V, np.array([2**63 - 1, -5])),
    ),
    "the smaller and the larger of NaNs and zeros": (
        """kernel k(x: f32[n]) -> (out: f32[4, n], most: f32[2]) {
  let a = -inf; let b = -inf; let c = -inf
  for i in simd(n) { a = max(a, x[i]) }
  for i in range(n) {
    b = max(b, x[i]); c = max(x[i], c)
    out[0, i] = b; out[1, i] = c
    out[2, i] = min(x[i], 0.0); out[3, i] = min(0.0, x[i])
  }
  most[0] = a
  most[1] = -0.0
  b = max(most[1], 0.0); most[1] = b
}""",
        "(x: f32[n]) = kernel k(x)",
        (np.array([1, np.nan, -0.0, 2, np.nan, 0.0, -3] * 6, np.float32),),
    ),
    "loops inside of a SIMD loop": (
        "kernel k(x: f32[n, m]) -> (out: f32[n]) { for i in simd(n) { let acc = 0.0\n"
        "for j in range(m) { for c in range(j) { acc += x[i, c] * 0.125 } }\n out[i] = acc } }",
        "(x: f32[n, m]) = kernel k(x)",
        (X,),
    ),
    "a product and a sum that are rounded once": (
        "kernel k(x: f32[n], y: f32[n], z: f32) -> (out: f32[n]) { for i in simd(n) { out[i] = fma(x[i], y[i], z) } }",
        "(x: f32[n], y: f32[n]) = kernel k(x, y, const(f32[], 1.00000011920928955078125))",
        (np.float32([2**-12 * (1 + 2**-18)] * 20), np.float32([2**-12 * (1 - 2**-18)] * 20)),
    ),
    "tiles": (
        "kernel k(x: f32[n]) -> (out: f32[n]) { "
        "for t in parallel(n // 4) { for c in simd(4) { out[t * 4 + c] = x[t * 4 + 3 - c] } } }",
        "(x: f32[n]) = kernel k(x)",
        (V,),
    ),
    "a product of matrices": (
        """kernel k(a: f32[n, l], b: f32[l, m]) -> (out: f32[n, m]) {
  for i in parallel(n) { for p in range(l) { for j in simd(m) { out[i, j] += a[i, p] * b[p, j] } } }
}""",
        "(a: f32[n, l], b: f32[l, m]) = kernel k(a, b)",
        (X, np.ascontiguousarray(X.T)),
    ),
    "names of C": (
        "kernel while(int: f32[double]) -> (return: f32[double]) { "
        "for sizes in simd(double) { let shared = int[sizes]\n let t = shared\n"
        " return[sizes] = t + shared } }",
        "(x: f32[n]) = kernel while(x)",
        (V,),
    ),
    "sizes that must be equal": (
        "kernel k(x: f32[n, n], y: f32[n]) -> (out: f32[n]) { for i in simd(n) { out[i] = x[i, i] + y[i] } }",
        "(x: f32[a, b], y: f32[c]) = kernel k(x, y)",
        (X[:, :5].copy(), V[:5].copy()),
    ),
}


def module_of(name: str) -> tuple[Module, tuple]:
    kernel, main, args = PROGRAMS[name]
    return parse_module(f"{kernel}\ndef main{main}"), args


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_way_gives_what_the_reference_gives(name: str) -> None:
    module, args = module_of(name)
    run_everywhere(module, *args)


@pytest.mark.parametrize("name", PROGRAMS)
def test_known_sizes_give_the_same(name: str) -> None:
    """A call with known sizes, for which the kernel is specialized, has the same result as with symbolic sizes."""
    kernel, main, args = PROGRAMS[name]
    machines = {}
    for text in (main, _with_sizes(main, args)):
        module = parse_module(f"{kernel}\ndef main{text}")
        machines[text] = vm.VirtualMachine(vm.build(module, target="bytecode"))["main"](*args)
    first, second = (r if isinstance(r, tuple) else (r,) for r in machines.values())
    for a, b in zip(first, second, strict=True):
        assert a.numpy().tobytes() == b.numpy().tobytes()


def _with_sizes(main: str, args: tuple) -> str:
    """Return the text of main with its dimension variables replaced by the sizes of the arguments."""
    params, rest = main[1:].split(")", 1)
    names = [part.split(":")[0] for part in re.split(r", (?=\w+:)", params)]
    types = [f"{dtype_of(a.dtype)}{list(a.shape)}" if isinstance(a, np.ndarray) else "i64" for a in args]
    stated = ", ".join(f"{name}: {type_}" for name, type_ in zip(names, types, strict=True))
    return f"({stated}){rest.replace('f32[n]', f'f32[{len(args[0])}]')}"


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0), (1, 1), (17, 33), (3, 100)])
@pytest.mark.parametrize("name", ["elementwise with a scalar", "two outputs of reductions", "what is not written is 0"])
def test_shapes(name: str, shape: tuple[int, int]) -> None:
    if name == "what is not written is 0" and shape[1] == 0 and shape[0]:
        return
    module, _ = module_of(name)
    run_everywhere(module, RANDOM.standard_normal(shape).astype(np.float32))


FAILURES = {
    "an index of the loop": (
        "for i in range(n) { out[i - 1] = 0.0 }",
        RelvmIndexError,
        "kernel k: index -1 is outside axis 0 of out, of size 37",
    ),
    "an index that an input gives": (
        "for i in range(l) { out[0] = x[at[i]] }",
        RelvmIndexError,
        "kernel k: index 9223372036854775807 is outside axis 0 of x, of size 37",
    ),
    "an index that overflows": (
        "for i in range(l) { let q = at[i]\n if 0 <= q and q + 1 < n { out[q + 1] = 1.0 } }",
        RelvmIndexError,
        "kernel k: index -9223372036854775808 is outside axis 0 of out, of size 37",
    ),
    "in a conditional expression": (
        "for i in range(n) { out[i] = if i > 2 then x[i + at[1]] else 0.0 }",
        RelvmIndexError,
        "kernel k: index 37 is outside axis 0 of x, of size 37",
    ),
    "in the second operand": (
        "for i in range(n) { out[i] = f32(i > 35 and x[i + 1] > 0.0) }",
        RelvmIndexError,
        "kernel k: index 37 is outside axis 0 of x, of size 37",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures(name: str) -> None:
    body, kind, message = FAILURES[name]
    kernel = f"kernel k(x: f32[n], at: i64[l]) -> (out: f32[n]) {{ {body} }}"
    text = f"{kernel}\ndef main(x: f32[n], at: i64[l]) = kernel k(x, at)"
    expect_failure(parse_module(text), (V, AT), kind, message)


@pytest.mark.parametrize(
    ("text", "args", "message"),
    [
        ("kernel k(x: f32[n], y: f32[n + 1]) -> (out: f32[n]) { for i in simd(n) { out[i] = x[i] + y[i + 1] } }\n"
         "def main(x: f32[n], y: f32[m]) = kernel k(x, y)", (V, V),
         "main: kernel k: argument y: expected dimension 0 to be 38, got 37"),
        ("kernel k(x: f32[3]) -> (out: f32[3]) { for i in simd(3) { out[i] = x[i] } }\n"
         "def main(x: f32[m]) = kernel k(x)", (V,), "main: kernel k: argument x: expected dimension 0 to be 3, got 37"),
    ],
)  # fmt: skip
def test_arguments_of_other_sizes_are_refused(text: str, args: tuple, message: str) -> None:
    expect_failure(parse_module(text), args, RelvmShapeError, message)


def expect_failure(module: Module, args: tuple, kind: type[RelvmError], message: str) -> None:
    with pytest.raises(kind) as raised:
        evaluate(infer_types(module), "main", *args)
    assert message in str(raised.value)
    for mode, target in WAYS:
        machine = vm.VirtualMachine(vm.build(module, mode, target, verified=True))
        with pytest.raises(kind) as raised:
            machine["main"](*args)
        assert message in str(raised.value), (mode, target)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_every_function(dtype: str) -> None:
    """Call every function of kernel_def.py on positive and negative operands in its domain."""
    unary = [name for name in (*MATH, "abs") if name not in ("copysign", "fmod", "power")]
    inside = {"acos": "x[i] / 4.0", "asin": "x[i] / 4.0", "atanh": "x[i] / 4.0", "acosh": "abs(x[i]) + 1.0"}
    inside |= dict.fromkeys(("log", "log1p", "sqrt"), "abs(x[i])")
    lines = [f"out[{k}, i] = {name}({inside.get(name, 'x[i]')})" for k, name in enumerate(unary)]
    lines += [f"out[{len(unary)}, i] = copysign(x[i], -1.0) + fmod(x[i], 0.3) + power(abs(x[i]), x[i])"]
    lines += [f"out[{len(unary) + 1}, i] = min(x[i], 0.5, max(-x[i], 0.25))"]
    kernel = (
        f"kernel k(x: {dtype}[n]) -> (out: {dtype}[{len(lines)}, n]) {{ for i in simd(n) {{ {'; '.join(lines)} }} }}"
    )
    module = parse_module(f"{kernel}\ndef main(x: {dtype}[n]) = kernel k(x)")
    run_everywhere(module, np.clip(V, -3, 3).astype(dtype.replace("f", "float")))


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        ("kernel k(kernel k(x, 2.0), 0.5)", None, ""),
        ("kernel k(x)", RelvmArgumentError, "kernel k takes 2 arguments, got 1"),
        ("kernel k(2.0, x)", RelvmTypeError, "kernel k: argument x: expected a tensor, got float"),
        ("kernel pair(x, y)", RelvmShapeError, "kernel pair: argument y: expected dimension 0 to be 37, got 5"),
        ("kernel fill(1.5)", RelvmTypeError, "kernel fill: the size n is not known here"),
        ("kernel nope(x)", RelvmNameError, "no kernel nope"),
    ],
)
def test_the_reference_takes_modules_without_types(call: str, kind: type[RelvmError] | None, message: str) -> None:
    kernels = """
kernel k(x: f32[n], s: f32) -> (out: f32[n]) { for i in simd(n) { out[i] = x[i] * s } }
kernel pair(x: f32[n], y: f32[n]) -> (out: f32[n]) { for i in simd(n) { out[i] = x[i] + y[i] } }
kernel fill(s: f32) -> (out: f32[n]) { for i in simd(n) { out[i] = s } }
"""
    module = parse_module(f"{kernels}def main(x: f32[n], y: f32[m]) = {call}")
    if kind is None:
        assert evaluate(module, "main", V, V[:5]).tobytes() == V.tobytes()
        return
    with pytest.raises(kind) as raised:
        evaluate(module, "main", V, V[:5])
    assert message in str(raised.value)


def test_the_reference_rounds_a_fused_product_once() -> None:
    kernel, main, args = PROGRAMS["a product and a sum that are rounded once"]
    module = infer_types(parse_module(f"{kernel}\ndef main{main}"))
    assert set(evaluate(module, "main", *args).tolist()) == {1 + 2**-23}


def test_a_size_that_could_overflow_is_refused() -> None:
    """The compiler proves bounds of compound sizes under the assumption that each size is at most 2^40."""
    text = """
kernel k(x: f32[z, n]) -> (out: f32[z, 2 * n]) { for i in range(z) { out[i, 0] = 1.0 } }
def main(x: f32[z, n]) = kernel k(x)"""
    empty = np.zeros((0, 2**41), np.float32)
    for mode, target in WAYS:
        machine = vm.VirtualMachine(vm.build(parse_module(text), mode, target))
        with pytest.raises(RelvmShapeError, match="kernel k: a size of 2199023255552 exceeds the limit of 2\\^40"):
            machine["main"](empty)


def test_calls_of_equal_sizes_share_a_kernel() -> None:
    text = """
kernel relu_f32(x: f32[n]) -> (out: f32[n]) { for i in simd(n) { out[i] = max(x[i], 0.0) } }
def main(x: f32[3], y: f32[n], z: f32[m], w: f32[3]) =
  (kernel relu_f32(x), kernel relu_f32(y), kernel relu_f32(z), kernel relu_f32(w), relu(x))"""
    executable = vm.build(parse_module(text), target="bytecode")
    names = [executable.function_name(i) for i in range(executable.function_count)]
    assert sorted(name for name in names if "relu" in name) == ["relu_f32", "relu_f32_1", "relu_f32_2"]


def test_an_unused_kernel_is_not_in_the_executable() -> None:
    text = "kernel k(x: f32[n]) -> (out: f32[n]) { for i in simd(n) { out[i] = x[i] } }\ndef main(x: f32[n]) = x"
    executable = vm.build(parse_module(text), target="bytecode")
    assert "k" not in [executable.function_name(i) for i in range(executable.function_count)]


def test_a_definition_refuses_statements_of_lowered_kernels() -> None:
    out = Buffer("out", F32, (2,), is_output=True)
    loop = Loop(Local("i", I64), Literal(0, I64), Literal(2, I64), (Fail("INDEX_ERROR", "wrong", ()),), "range")
    with pytest.raises(RelvmTypeError, match=r"kernel f: expected statements of the types Let, .* got Fail"):
        KernelDef("f", (), (out,), (loop,))
