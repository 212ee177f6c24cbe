"""The models of the tests of the JavaScript loader, as files."""

from __future__ import annotations

import json
from pathlib import Path

from relvm import vm
from relvm.compiler.webassembly import export_module
from relvm.frontend.text import parse_module
from relvm.ops.regex_compiler import compile_pattern

PATTERN = compile_pattern("a+b").tolist()
PROGRAM = f"""
def scale(x: f32[n, 4], k: i64, c: f64) -> (f32[n, 4], i64, f64, bool) {{
  return (softmax(add(x, x), axis=1), k + 1, c * 0.5, k > 3)
}}
def words(s: str[n], t: str[n]) -> (str[n], bool[n]) {{
  pattern = const(i64[{len(PATTERN)}, 3], {PATTERN})
  return (string_concat(s, t), string_match(s, pattern))
}}
def halves(x: f16[n]) -> f16[n] = multiply(x, x)
def integers(x: i64[n], y: u8[n]) -> (i64[n], u8[n]) {{ return (add(x, x), add(y, y)) }}
def adder(x: f32[n]) -> object {{
  return fn (y: f32[n]) -> f32[n] {{ return add(x, y) }}
}}
def list_of(x: f32[n, 4]) -> list[f32[_, _]] = list_split(x, 2, axis=0)
def sum_list(items: list[f32[_, _]]) -> f32[_, _] = list_concat(items, axis=0)
def pair(t: (f32[n], (i64, f32[n]))) -> (f32[n], i64) {{ return (add(t.0, t.1.1), t.1.0) }}
def sizes(s: shape[n, m]) -> (shape[m, n], i64) {{ return (shape(m, n), dim(n * m)) }}
def spin(n: i64) -> i64 {{
  loop = fn loop(i: i64) -> i64 {{ return if i == n then i else loop(i + 1) }}
  return loop(0)
}}
def deep(n: i64) -> i64 {{ return if n == 0 then 0 else 1 + @deep(n - 1) }}
def large(n: i64(n)) -> f32[n] = broadcast_to(const(f32[], 1), shape(n))
def check(x: f32[n]) => f32[n] {{
  _ = builtin.assert(dim(n) > 1, "n must exceed 1")
  return x
}}
def random() => i64 = random_bits()

"""
NATIVE = """
def main(x: f32[n, 3, 16, 16], w: f32[8, 3, 3, 3], v: f32[2048, 10]) -> f32[n, 10] {
  a = relu(conv(x, w, pads=(1, 1, 1, 1)))
  return softmax(matmul(reshape(a, shape(n, 2048)), v), axis=1)
}
def loop(n: i64) -> i64 {
  loop = fn loop(i: i64, s: i64) -> i64 { return if i == n then s else loop(i + 1, s + i * i) }
  return loop(0, 0)
}
def deep(n: i64) -> i64 { return if n == 0 then 0 else 1 + @deep(n - 1) }
"""


def write_models(folder: Path) -> None:
    """Write all models to a folder."""
    module = parse_module(PROGRAM)
    vm.build(module, target="bytecode").save(folder / "program.rvm")
    native = parse_module(NATIVE)
    vm.build(native, target="bytecode").save(folder / "native.rvm")
    executable = vm.build(native, "compiled", "wasm32")
    export_module(executable, folder / "native.wasm")
    export_module(vm.build(native, target="bytecode"), folder / "bytecode.wasm")
    (folder / "sizes.json").write_text(json.dumps({"native": (folder / "native.wasm").stat().st_size}))
    builder = vm.ExecBuilder()
    with builder.function("main", ["x"]):
        builder.emit_call("vm.builtin.print", [builder.ctx, builder.r(0), builder.imm(2)])
        builder.emit_ret(builder.r(0))
    builder.get().save(folder / "print.rvm")
