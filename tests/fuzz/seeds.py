"""Seed inputs for fuzzing: small executables without native code.

Together they cover every instruction, every kind of constant, every builtin and every scalar operator.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from kernel_programs import kernel_programs
from regressions import REGRESSIONS
from support.assembly_programs import EVERYTHING, program_of
from support.list_programs import function as list_function
from support.simple_programs import Generator

from relvm import vm
from relvm.bytecode import program as p
from relvm.frontend.text import parse_module
from relvm.runtime.executable import Executable
from relvm.tables import BUILTINS, PRIM_OPERATORS

TEXTS = {
    "loop": """
def count(n: i64, total: i64) -> i64 = if n <= 0 then total else @count(n - 1, total + n * n % 7)
def halves(x: f64, k: i64) -> f64 { return if k == 0 then x else @halves(x / 2.0, k - 1) }
def main(n: i64) -> (i64, f64) { return (@count(n, 0), @halves(1.0, n)) }
""",
    "closures": """
def compose(f: (i64) -> i64, g: (i64) -> i64) -> (i64) -> i64 { return fn (x: i64) -> i64 { return f(g(x)) } }
def main(a: i64, b: i64) -> (i64, i64) {
  double = fn (x: i64) -> i64 { return x * 2 }
  more = fn (x: i64) -> i64 { return x + a }
  both = @compose(double, more)
  fact = fn factorial(i: i64) -> i64 { return if i < 2 then 1 else i * factorial(i - 1) }
  return (both(b), fact(a))
}
""",
    "mutual": """
def even(n: i64) -> bool = if n == 0 then true else @odd(n - 1)
def odd(n: i64) -> bool = if n == 0 then false else @even(n - 1)
def main(n: i64, c: bool) -> (bool, bool) { return (if c then @even(n) else @odd(n), c & @even(3)) }
""",
    "tensors": """
def scale(x: f32[n, 2], y: f32[n, 2]) -> f32[n, 2] = multiply(relu(x), y)
def main(x: f32[n, 2], c: bool) -> (f32[n * 2], i64) {
  y = if c then @scale(x, x) else add(x, const(f32[2], [1.5, -2]))
  return (reshape(y, shape(n * 2)), dim(n))
}
def cast(x: object) -> f32[2] { y = match_cast(x, f32[m])
  z = match_cast(relu(y), f32[2])
  return z }
""",
    "effects": """
def main(x: f32[n], k: i64) => object {
  a = packed("host.first", x, @main, "text", shape(n, 2)) : object
  _ = builtin.print(a, k)
  b = packed("host.second", fn (y: i64) -> i64 { return y + k }, k) : object
  return (a, b, @packed("host.third"))
}
""",
    "lists": """
def main(xs: list[i64], n: i64) -> (list[i64], i64) {
  ys = list_append(xs, n)
  fill = fn again(zs: list[i64], k: i64) -> list[i64] { return if k <= 0 then zs else again(list_append(zs, k), k - 1) }
  return (list_insert(fill(ys, n), 0, 7), list_item(ys, -1))
}
""",
}


# Programs that are built with kernels in bytecode.
KERNEL_TEXTS = {
    "softmax": "def main(x: f32[n, 3]) -> f32[n, 3] = softmax(x)",
    "matmul": "def main(x: f32[2, 2], y: f32[2, 2]) -> f32[2, 2] = relu(matmul(x, y))",
    "reductions": """
def main(x: f32[n, 2], y: f64[n]) -> (f32[2], i64[n], f64[n]) {
  return (max(x, axes=[0]), argmax(x, axis=1), add(power(y, y), sin(y)))
}
""",
}

# The constants of `of_builtins`, and for each kind of parameter an argument with which builtins are called.
CONSTANTS = (
    np.arange(4, dtype=np.float32).reshape(2, 2),
    np.array([1, 0], np.int64),
    np.dtype("float32"),
    "text",
    p.Shape((2, 2)),
    np.array(["a,b", "", "é"], object),
)
USUAL = {
    "any": p.immediate(2),
    "tensor": p.constant(0),
    "heap": p.constant(1),
    "dtype": p.constant(2),
    "where": p.constant(3),
    "string": p.constant(3),
    "shape": p.constant(4),
    "size": p.constant(4),
    "function": p.function(0),
    "ctx": p.CONTEXT,
}
A_FILE = 12  # builtins in a file, because the harness calls a limited number of functions of one executable
A_FILE_BYTES = 2048  # kernel programs in a file; most files have one, because each mutant runs all kernels of its file


def of_builtins(rows: Iterable) -> Executable:
    """Return an executable with two functions for each builtin.

    One calls the builtin with the parameters of the function, the other one with constants.
    """
    rows = list(rows)
    entries = [p.FunctionEntry(f"vm.builtin.{row.name}", "packed") for row in rows]
    for i, row in enumerate(rows):
        words = row.signature.split("->")[0].split()
        kinds = [words[j - 1] if word == "..." else word for j, word in enumerate(words)]
        names = tuple(f"x{j}" for j, kind in enumerate(kinds) if kind != "ctx")
        given = iter(range(len(names)))
        arguments = [p.CONTEXT if kind == "ctx" else p.register(next(given)) for kind in kinds]
        code = (p.call(len(names), i, *arguments), p.ret(len(names)))
        entries.append(p.FunctionEntry(f"given_{row.name}", "bytecode", names, len(names) + 1, code))
        fixed = (p.call(0, i, *(USUAL.get(kind, p.immediate(0)) for kind in kinds)), p.ret(0))
        entries.append(p.FunctionEntry(f"fixed_{row.name}", "bytecode", (), 1, fixed))
    return Executable.from_program(p.Program(tuple(entries), CONSTANTS))


def of_operators() -> Executable:
    """Return an executable that applies scalar operators to parameters and literals.

    Some functions check the types of their parameters, and others accept any values.
    """
    constants = (np.dtype("int64"), np.dtype("float64"), np.dtype("bool"), 2.5, "x")
    literals = {"i": p.immediate(3), "f": p.constant(3), "b": p.boolean(True)}
    entries = [p.FunctionEntry("vm.builtin.check_prim_value_info", "packed")]
    for operands in sorted({row.operands for row in PRIM_OPERATORS}):
        registers = [p.register(i) for i in range(len(operands))]
        body = []
        for row in PRIM_OPERATORS:
            if row.operands == operands:
                body.append(p.prim(2, row.index, *registers))
                body.append(p.prim(3, row.index, *registers[:-1], literals[operands[-1]]))
        checks = [
            p.call(-1, 0, register, p.constant("ifb".index(operand)), p.constant(4))
            for register, operand in zip(registers, operands, strict=True)
        ]
        names = tuple(f"x{i}" for i in range(len(operands)))
        for prefix, first in (("typed", checks), ("any", [])):
            code = (*first, *body, p.ret(2))
            entries.append(p.FunctionEntry(f"{prefix}_{operands}", "bytecode", names, 4, code))
    return Executable.from_program(p.Program(tuple(entries), constants))


def to_generate() -> Executable:
    """Return an executable with placeholder functions, constants and builtins.

    generator.c replaces the code of the functions by random code, which uses the constants and builtins.
    """
    constants = (
        *(np.dtype(name) for name in ("float32", "float64", "int64", "bool", "uint8")), np.dtype(object),
        np.arange(6, dtype=np.float32).reshape(2, 3), np.array([1, 0, 2], np.int64), np.array([True, False]),
        np.array(3, np.int64), np.array(2.5), np.array(["a,b", "", "é"], object), "text", "host.first",
        p.Shape((2, 3)), p.Shape((6,)), p.Shape(()), 2.5, -0.0, math.inf, 1 << 40,
    )  # fmt: skip
    entries = []
    counts = (0, 1, 2, 2, 3, 4)
    for i, count in enumerate(counts):  # at the start of the table, because the harness calls only the first functions
        names = tuple(f"x{j}" for j in range(count))
        code = (p.call(count, len(counts), p.immediate(1)), p.ret(count))
        entries.append(p.FunctionEntry(f"f{i}", "bytecode", names, count + 1, code))
    entries += [p.FunctionEntry(f"vm.builtin.{row.name}", "packed") for row in BUILTINS]
    return Executable.from_program(p.Program(tuple(entries), constants))


def of_kernels() -> dict[str, Executable]:
    """Return executables with bytecode kernels of several operators.  The harness calls them with suitable tensors."""
    files: list[dict] = []
    size = A_FILE_BYTES
    for name, program in kernel_programs().items():
        bytes_ = len(program.encode())
        if size + bytes_ > A_FILE_BYTES:
            files.append({})
            size = 0
        files[-1][name] = program
        size += bytes_
    made = {}
    for i, programs in enumerate(files):
        entries = [
            p.FunctionEntry(name, "kernel", tuple(f"x{j}" for j in range(each.inputs + each.outputs)), 0, (), name)
            for name, each in programs.items()
        ]
        made[f"kernels_{i}"] = Executable.from_program(p.Program(tuple(entries), kernels=programs))
    return made


def executables() -> dict[str, Executable]:
    """Return all seed executables by name, except those of `regressions`."""
    made = {name: vm.build(parse_module(text), "bytecode", "numpy") for name, text in TEXTS.items()}
    for seed in range(4):
        made[f"random_{seed}"] = vm.build(Generator(seed, 3, 5).module(), "bytecode", "numpy")
        made[f"lists_{seed}"] = vm.build(parse_module(list_function(seed)), "bytecode", "numpy")
    for k in range(0, len(BUILTINS), A_FILE):
        made[f"builtins_{k}"] = of_builtins(BUILTINS[k : k + A_FILE])
    made["operators"] = of_operators()
    made["everything"] = Executable.from_program(program_of(EVERYTHING))
    made["generate"] = to_generate()
    made |= {name: vm.build(parse_module(text), "bytecode", "bytecode") for name, text in KERNEL_TEXTS.items()}
    made |= of_kernels()
    program = made["tensors"].program
    made["portable"] = Executable.from_program(replace(program, portable=program))
    return made


def regressions() -> dict[str, Executable]:
    """Return the programs of regressions.py as executables by name."""
    return {f"regression_{i}": Executable.from_program(program_of(text)) for i, text in enumerate(REGRESSIONS.values())}


def write(folder: Path) -> list[Path]:
    """Write the executables and the regressions into a folder, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, executable in (executables() | regressions()).items():
        paths.append(folder / f"{name}.rvm")
        paths[-1].write_bytes(executable.to_bytes())
    return paths


if __name__ == "__main__":
    write(Path(sys.argv[1]))
