"""Test stages: each test belongs to one, and `pytest -m fast` (or `docs`, `cross`, `clients`, `full`) runs a stage.

The lists name files, folders and single tests below tests/.
"""

from __future__ import annotations

from pathlib import Path

# Tests that check a change within a minute, by the folder of relvm/ that they cover.  They compile little C: operators
# run with NumPy kernels, and only a few programs run as native code.
FAST = {
    "aot": ["aot/test_aot_passes.py"],
    "bytecode": ["bytecode"],
    "cli": ["cli/test_random_inputs.py"],
    "codegen": ["codegen"],
    "compiler": ["compiler/test_toolchain.py", "vm/test_exec_modes.py"],
    "distributed": ["distributed/test_runner.py"],
    "editors": ["editors"],
    "explore": ["explore/test_graph_data.py", "explore/test_layered.py", "explore/test_pipeline.py"],
    "frontend": [
        "frontend/test_text.py",
        "frontend/test_text_errors.py",
        "frontend/test_text_kernels.py",
        "frontend/test_script.py",
        "frontend/test_script_errors.py",
        "frontend/test_onnx_import.py",
        "frontend/test_onnx_huge_sizes.py",
        "frontend/test_onnx_nodes.py::test_case_of_each_operator",
    ],
    "ir": ["ir"],
    "kernels": ["kernels", "ops/test_work.py"],
    "lir": ["codegen/test_lir_passes.py"],
    "onnxruntime": ["onnxruntime_api/test_ort_values.py"],
    "ops": [
        "ops/test_operators.py::test_declaration_is_whole",
        "ops/test_operators.py::test_mistakes_are_told",
        "ops/test_operators.py::test_type_rule_gives_what_numpy_gives",
    ],
    "passes": ["passes/test_passes.py"],
    "quantization": [
        "quantization/test_quantize.py::test_errors_of_all_kinds_of_outputs",
        "quantization/test_quantize.py::test_mistakes",
    ],
    "runtime": ["runtime/test_signature.py", "vm/cases/test_calls.py", "vm/cases/test_builtins.py"],
    "": [
        "test_data_classes.py",
        "test_front_door.py",
        "test_layers.py",
        "test_stages.py",
        "test_tables.py",
        "test_types.py",
    ],
}

# Tests in the files above that take longer, because their programs are large or they install packages.
SLOW = (
    "editors/test_vscode.py::test_the_extension_compiles",
    "frontend/test_text.py::test_a_function_of_many_bindings_prints_and_parses_in_linear_time",
    "frontend/test_text.py::test_every_module_reads_back",
    "frontend/test_text_errors.py::test_nesting_that_is_too_deep_is_a_syntax_error",
    "passes/test_passes.py::test_long_functions_pass_without_deep_recursion",
)

# Tests of the text, the examples and the links of the documentation.
DOCS = (
    "frontend/test_onnx_document.py",
    "frontend/test_text_document.py",
    "test_contributing.py",
    "test_documents.py",
    "test_error_document.py",
    "test_notebooks.py",
    "test_readme.py",
    "test_site.py",
    "test_typed_documents.py",
)

# Tests that compile for other processors and run the result in an emulator.
CROSS = ("aot/test_boards.py",)

# Tests that install packages which use onnxruntime, or share tensors with relvm.  CI does not run them, and `pytest`
# only with `-m clients`.
CLIENTS = ("clients/test_array_libraries.py", "clients/test_clients.py")

_FAST = tuple(entry for entries in FAST.values() for entry in entries)
_LISTED = {"fast": _FAST, "docs": DOCS, "cross": CROSS, "clients": CLIENTS}
STAGES = (*_LISTED, "full")


def stage_of(test: str) -> str:
    """Return the stage of a test.  test: its name below tests/, such as `bytecode/test_assembly.py::test_words[1]`."""
    for stage, entries in _LISTED.items():
        if any(test == entry or test.startswith((f"{entry}/", f"{entry}::", f"{entry}[")) for entry in entries):
            return "full" if test.partition("[")[0] in SLOW else stage
    return "full"


def may_hold(stage: str, path: Path) -> bool:
    """Return whether a file or folder, relative to tests/, can contain tests of a stage.

    stage: the value of `-m`.  The result is True for `full`, and for any other marker expression.
    """
    name = path.as_posix()
    files = [entry.partition("::")[0] for entry in _LISTED.get(stage, (name,))]
    return name == "." or any(f"{name}/".startswith(f"{file}/") or f"{file}/".startswith(f"{name}/") for file in files)
