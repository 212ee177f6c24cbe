"""The tests of `pytest -m fast`: what shows within a minute whether a change is right.

Files, folders and single tests, below tests/, by the folder of relvm/ that they cover.  They compile little C: each
operator runs on NumPy arrays, and a few programs natively.
"""

from __future__ import annotations

from pathlib import Path

FAST = {
    "aot": ["aot/test_aot_passes.py"],
    "bytecode": ["bytecode"],
    "cli": ["cli/test_random_inputs.py"],
    "codegen": ["codegen"],
    "compiler": ["compiler/test_toolchain.py", "vm/test_exec_modes.py"],
    "distributed": ["distributed/test_runner.py"],
    "explore": ["explore/test_layered.py", "explore/test_pipeline.py"],
    "frontend": [
        "frontend/test_text.py",
        "frontend/test_text_errors.py",
        "frontend/test_script.py",
        "frontend/test_script_errors.py",
        "frontend/test_onnx_import.py",
        "frontend/test_onnx_huge_sizes.py",
    ],
    "ir": ["ir"],
    "kernels": ["ops/test_work.py"],
    "lir": ["codegen/test_lir_passes.py"],
    "ops": [
        "ops/test_operators.py::test_declaration_is_whole",
        "ops/test_operators.py::test_mistakes_are_told",
        "ops/test_operators.py::test_type_rule_gives_what_numpy_gives",
    ],
    "passes": ["passes/test_passes.py"],
    "runtime": ["runtime/test_signature.py", "vm/cases/test_calls.py", "vm/cases/test_builtins.py"],
    "": ["test_fast.py", "test_front_door.py", "test_layers.py", "test_tables.py", "test_types.py"],
}

# Slow ones of those files: large programs.
SLOW = (
    "frontend/test_text.py::test_a_function_of_many_bindings_prints_and_parses_in_linear_time",
    "frontend/test_text.py::test_every_module_reads_back",
    "frontend/test_text_errors.py::test_nesting_that_is_too_deep_is_a_syntax_error",
    "passes/test_passes.py::test_long_functions_pass_without_deep_recursion",
)

_ENTRIES = tuple(entry for entries in FAST.values() for entry in entries)


def is_fast(test: str) -> bool:
    """Return whether a test is fast.  test: its name, from tests/ on, as `bytecode/test_assembly.py::test_words[1]`."""
    is_listed = any(test == entry or test.startswith((f"{entry}/", f"{entry}::", f"{entry}[")) for entry in _ENTRIES)
    return is_listed and test.partition("[")[0] not in SLOW


def may_hold_fast(path: Path) -> bool:
    """Return whether a file or folder, relative to tests/, may hold a fast test."""
    name = path.as_posix()
    files = [entry.partition("::")[0] for entry in _ENTRIES]
    return name == "." or any(f"{name}/".startswith(f"{file}/") or f"{file}/".startswith(f"{name}/") for file in files)
