"""Write the test data for the current version.  Run `python tests/vm/versions/make_version.py` for each release.

VERSION.rvm is a bytecode program that uses a wide range of features, in the format of this version, and calls kernels
of NumPy.  VERSION-kernels.rvm is the same program with kernels as bytecode.  The .json files have the results of the
program, and the numbers and signatures that files of this version rely on.
tests/vm/test_versions.py checks that all later versions can read these files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import relvm
from relvm import tables, vm
from relvm.frontend.text import parse_module

HERE = Path(__file__).parent

TEXT = """
def main(x: f32[n, 2], flag: bool) -> (f32[n, 2], i64, f64, list[i64], str[2], shape[n, 2], object) {
  shift = const(f32[2], [1.5, -2])
  moved = fn (y: f32[m, 2]) -> f32[m, 2] { return if flag then add(y, shift) else multiply(y, shift) }
  words = string_concat(const(str[2], ["a", "b"]), const(str[], "c"))
  return (moved(x), @count(5, 1), 0.5 * 3.0, @squares(4), words, shape(n, 2), "text")
}
private def count(i: i64, product: i64) -> i64 {
  return if i == 0 then product else @count(i - 1, product * i)
}
private def squares(n: i64) -> list[i64] {
  loop = fn loop(i: i64, done: list[i64]) -> list[i64] {
    return if i == n then done else loop(i + 1, list_append(done, i * i))
  }
  return loop(0, make_list())
}
"""

# For each table, the field by which files refer to its rows.  Rows must not be removed or renumbered.
NUMBERED = {
    "arguments": (tables.ARGUMENTS, "letter"),
    "dtypes": (tables.DTYPES, "bits"),
    "kinds": (tables.KINDS, "index"),
    "tags": (tables.TAGS, "index"),
    "prim_operators": (tables.PRIM_OPERATORS, "operands"),
    "status": (tables.STATUS, "python_class"),
}


def relied_on() -> dict[str, dict[str, str]]:
    """Return, for each table and row, the number of the row and other data that files rely on.

    Builtins have no numbers.  For them the signature is returned.
    """
    found = {
        table: {row.name: f"{row.index}: {getattr(row, field)}" for row in rows}
        for table, (rows, field) in NUMBERED.items()
    }
    # Operands `u` (a register to release) and `r` (a register to read) are stored in the same way.
    found["opcodes"] = {row.name: f"{row.index}: {row.operands.replace('u', 'r')}" for row in tables.OPCODES}
    found["sections"] = {row.name: str(row.id) for row in tables.SECTIONS}
    found["kernel_opcodes"] = {row.name: f"{row.index}: {row.operands}" for row in tables.KERNEL_OPCODES}
    found["kernel_functions"] = {row.name: str(index) for index, row in enumerate(tables.element_functions())}
    found["micro_kernels"] = {
        row.name: f"{row.index}: {' '.join(f'{kind}({name})' for kind, name, *_ in row.arguments)}"
        for row in tables.MICRO_KERNELS
    }
    found["builtins"] = {row.name: row.signature for row in tables.BUILTINS}
    return found


def results(executable: vm.Executable) -> list[str]:
    """Return the results of the program for both values of its condition, as text."""
    machine = vm.VirtualMachine(executable)
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    return [_written(machine["main"](x, flag)) for flag in (True, False)]


def _written(value: Any) -> str:
    if isinstance(value, vm.Tensor):
        return f"{value.numpy().dtype}{value.numpy().tolist()}"
    if isinstance(value, tuple) and not isinstance(value, vm.Shape):
        return f"({', '.join(map(_written, value))})"
    return repr(value)


def main() -> None:
    for suffix, target in (("", "numpy"), ("-kernels", "bytecode")):
        executable = vm.build(parse_module(TEXT), target=target)
        executable.save(HERE / f"{relvm.__version__}{suffix}.rvm")
        kept = {"results": results(executable), "relied_on": relied_on()}
        (HERE / f"{relvm.__version__}{suffix}.json").write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
