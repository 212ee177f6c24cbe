"""The measured programs.

Most rows are a counting loop with many copies of the same statements in each iteration.  The result is the cost of one
copy, without the cost of the loop itself.  The programs are at stage PLANNED, so that no optimization removes the
statements.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from relvm import vm
from relvm.compiler.build import assemble, lower
from relvm.frontend.text import parse_module
from relvm.ir.type_inference import infer_types
from relvm.passes.lower_shapes import lower_shapes
from relvm.passes.memory.insert_kills import insert_kills
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline
from relvm.runtime.executable import Executable

MODES = ("bytecode", "compiled")
UNROLLED = 20  # number of copies of the statements in an iteration


@dataclass(frozen=True)
class Row:
    """Statements to measure.

    goal: the target in nanoseconds for each mode.  body: the statements, with {k} for the number of the copy.  They can
    use the counter i, any value o, a tensor x of one element, a pair t of such tensors, a closure f with one captured
    value, and a condition c.
    """

    name: str
    goal: tuple[float, float]
    body: str


ROWS = (
    Row("copy", (12, 5), "y{k}: object = builtin.copy(o)"),
    Row("tuple_getitem", (12, 5), "y{k}: f32[1] = t.0"),
    Row("kernel on 1 element", (20, 10), "_ = run add_f32(x, x, x)"),
    Row("function call", (20, 6), "y{k}: object = @same(o)"),
    Row("create a closure over 1 value", (60, 50), "y{k}: (object) -> object = builtin.make_closure(@second, o)"),
    Row("invoke a closure over 1 value", (30, 12), "y{k}: object = f(o)"),
    Row("create a 2-tuple", (40, 30), "y{k}: (object, object) = (o, o)"),
    Row("if on a scalar", (8, 2), "y{k}: i64 = if c then {{ return 3 }} else {{ return i }}"),
    Row(
        "allocate and free a tensor",
        (80, 70),
        "s{k}: object = builtin.alloc_storage(shape(16, 16), 0, dtype(f32))\n"
        "  y{k}: f32[16, 16] = builtin.alloc_tensor(s{k}, 0, shape(16, 16), dtype(f32))",
    ),
)

_LOOP = """
def same(o: object) -> object {{ return o }}
def second(a: object, b: object) -> object {{ return b }}
def main(n: i64) => i64 {{
  s: object = builtin.alloc_storage(4, 0, dtype(u8))
  x: f32[1] = builtin.alloc_tensor(s, 0, shape(1), dtype(f32))
  t: (f32[1], f32[1]) = (x, x)
  f: (object) -> object = builtin.make_closure(@second, n)
  r: i64 = @_loop(n, n, x, t, f)
  return r
}}
private def _loop(i: i64, o: object, x: f32[1], t: (f32[1], f32[1]), f: (object) -> object) => i64 {{
  c: bool = i == 0
  {body}
  r: i64 = if c then {{ return 0 }} else {{
    j: i64 = i - 1
    s: i64 = @_loop(j, o, x, t, f)
    return s
  }}
  return r
}}
"""


@dataclass(frozen=True)
class Program:
    """A program to measure.

    goal: the target in nanoseconds of an iteration or call, for each mode.  per: the number of iterations or calls in a
    run with the arguments `args`.
    """

    name: str
    goal: tuple[float, float]
    text: str
    args: tuple[object, ...]
    per: int


FIB, FIB_CALLS, ROUNDS = 27, 635_621, 3_000_000  # the number of calls in fib(27)

PROGRAMS = (
    Program(
        "fib, per call",
        (15, 6),
        "def main(n: i64) -> i64 = if n < 2 then n else @main(n - 1) + @main(n - 2)",
        (FIB,),
        FIB_CALLS,
    ),
    Program(
        "counting loop, per iteration",
        (7, 1.5),
        "def main(i: i64, s: i64, n: i64) -> i64 = if i >= n then s else @main(i + 1, s + i, n)",
        (0, 0, ROUNDS),
        ROUNDS,
    ),
    Program(
        "loop that carries a tuple, per iteration",
        (250, 150),
        """
def main(n: i64) -> (f32[4], f32[4]) = @carry(n, (const(f32[4], [1, 2, 3, 4]), const(f32[4], [5, 6, 7, 8])))
def carry(n: i64, p: (f32[4], f32[4])) -> (f32[4], f32[4]) {
  q = (p.1, p.0)
  return if n == 0 then p else @carry(n - 1, q)
}
""",
        (100_000,),
        100_000,
    ),
)


def row_executable(row: Row | None, mode: str) -> Executable:
    """Return the loop with the statements of a row, or the empty loop if `row` is None."""
    body = "" if row is None else "\n  ".join(row.body.format(k=k) for k in range(UNROLLED))
    kernels = run_passes(
        parse_module("def main(x: f32[1], y: f32[1]) -> f32[1] = add(x, y)"),
        [step for step in build_pipeline("c") if step.name in ("infer_types", "to_anf", "lower_to_kernels")],
    ).kernels
    module = replace(parse_module(_LOOP.format(body=body)), kernels=kernels)
    lir = lower(run_passes(infer_types(module), [lower_shapes, insert_kills]))
    names = [routine.name for routine in lir.routines] if mode == "compiled" else []
    return Executable.from_program(assemble(lir, names))


def program_executable(program: Program, mode: str) -> Executable:
    return vm.build(parse_module(program.text), mode, "numpy")
