"""Test stages: `pytest -m fast` (or `docs`, `cross`, `clients`, `full`) runs the tests of a stage.

Each test belongs to one stage, except that every fifth of the fast tests that build programs in every mode also belongs
to the full stage.  Compiling C takes most of the time of such a test.  The fast stage builds their programs without
compiling C (`COMPILES` in modes.py), and so does the full stage for four fifths of its own tests of this kind, unless
they share their programs.  Without `-m`, all tests compile C.

The lists name files, folders and single tests below tests/.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from zlib import crc32

# Tests that check a change within a minute, by the folder of relvm/ that they cover.  Few of them compile C.
FAST = {
    "aot": ["aot/test_aot_passes.py", "aot/test_externs.py"],
    "bytecode": ["bytecode"],
    "cli": [
        "cli/test_overview.py",
        "cli/test_quantize_command.py",
        "cli/test_shell_terms.py",
        "cli/test_terminal.py::test_where_there_are_colors",
    ],
    "codegen": ["codegen"],
    "compiler": ["compiler/test_build_planned.py", "compiler/test_toolchain.py", "vm/test_exec_modes.py"],
    "distributed": ["distributed/test_runner.py"],
    "editors": ["editors"],
    "explore": ["explore"],
    "frontend": ["frontend"],
    "ir": ["ir"],
    "kernels": ["kernels", "ops/test_work.py"],
    "lir": ["codegen/test_lir_passes.py"],
    "onnxruntime": [
        "onnxruntime_api/test_ort_messages.py",
        "onnxruntime_api/test_ort_values.py",
        "onnxruntime_api/test_same_api.py",
    ],
    "ops": [
        "ops/test_kernel_bytecode.py::test_bytecode_gives_what_numpy_gives",
        "ops/test_operators.py::test_declaration_is_whole",
        "ops/test_operators.py::test_mistakes_are_told",
        "ops/test_operators.py::test_type_rule_gives_what_numpy_gives",
        "ops/test_traits.py",
    ],
    "passes": ["passes/test_pack_weights.py", "passes/test_passes.py"],
    "quantization": ["quantization"],
    "runtime": [
        "runtime/test_dlpack.py",
        "runtime/test_executable.py",
        "runtime/test_executor.py",
        "runtime/test_kernel_profile.py",
        "runtime/test_packed.py",
        "runtime/test_python_arguments.py",
        "runtime/test_signature.py",
        "runtime/test_tensor_array.py",
        "runtime/test_values.py",
        "vm/cases/test_builtins.py",
        "vm/cases/test_calls.py",
        "vm/cases/test_exec_builder.py",
        "vm/cases/test_limits.py",
        "vm/test_prims.py",
        "vm/test_run_time_shapes.py",
        "vm/test_strings.py",
        "vm/test_wrong_types.py",
    ],
    "system": ["system/test_system.py"],
    "": [
        "test_data_classes.py",
        "test_directed_graph.py",
        "test_front_door.py",
        "test_hostile_names.py",
        "test_layers.py",
        "test_runtime_distribution.py",
        "test_start.py",
        "test_stages.py",
        "test_tables.py",
        "test_types.py",
        "test_wrong_arguments.py",
    ],
}

# Tests in the files and folders above that take longer, because their programs are large or many, or they install or
# start other programs.  Tests that open a browser are slow, too.
SLOW = (
    "aot/test_externs.py::test_a_bare_export_calls_linked_functions",
    "codegen/test_c_expressions.py::test_every_pair_of_operators_in_kernels_has_the_value_of_its_tree",
    "editors/test_debug_adapter.py::test_a_run_without_debugging_does_not_stop",
    "editors/test_debug_adapter.py::test_operators_have_kernels_of_their_own_unless_fused",
    "editors/test_vscode.py::test_the_extension_compiles",
    "explore/test_assembly_stage.py::test_show_prints_the_assembly",
    "explore/test_columns.py::test_a_long_chain_is_in_columns_that_lines_connect",
    "explore/test_comparing.py",
    "explore/test_jupyterlab.py",
    "explore/test_live.py",
    "explore/test_pictures.py",
    "explore/test_provenance.py",
    "explore/test_repeated_blocks.py::test_the_page_of_a_large_model_is_small",
    "frontend/onnx_backend.py",
    "frontend/test_growth.py",
    "frontend/test_onnx_bytes.py",
    "frontend/test_onnx_edge_values.py",
    "frontend/test_onnx_neural.py",
    "frontend/test_onnx_nodes.py::test_case",
    "frontend/test_onnx_nodes_at_random.py",
    "frontend/test_onnx_recurrent.py",
    "frontend/test_onnx_run_time.py",
    "frontend/test_onnx_sampled.py",
    "frontend/test_qdq_side_conditions.py",
    "frontend/test_script_loops.py",
    "frontend/test_script_ways.py",
    "frontend/test_text.py::test_a_function_of_many_bindings_prints_and_parses_in_linear_time",
    "frontend/test_text.py::test_every_module_reads_back",
    "frontend/test_text_errors.py::test_nesting_that_is_too_deep_is_a_syntax_error",
    "frontend/test_text_operators.py",
    "ir/test_builder.py::test_building_is_linear",
    "ir/test_typical_inputs.py::test_run_states_the_sizes_and_the_values",
    "kernels/test_bounding_inputs.py::test_c_kernels_run_with_private_bounding_inputs",
    "kernels/test_bounding_inputs.py::test_the_bounding_operands_of_all_operators",
    "kernels/test_plane_convolutions.py::test_compiled_planes_give_the_bits_of_rows",
    "passes/test_passes.py::test_long_functions_pass_without_deep_recursion",
    "quantization/test_quantize.py::test_the_result_is_standard_and_runs_alike_everywhere",
    "runtime/test_values.py::test_a_list_that_contains_itself_is_refused",
    "test_hostile_names.py::test_an_export_compiles_and_declares_nothing_else",
    "test_hostile_names.py::test_pages_and_pictures",
    "test_hostile_names.py::test_what_the_command_line_prints_of_a_model",
    "test_types.py::test_a_program_sees_real_types",
    "vm/test_exec_modes.py::test_any_mixture_gives_the_same",
)

# Tests of the text, the examples and the links of the documentation.
DOCS = ("docs", "frontend/test_onnx_document.py", "frontend/test_text_document.py")

# Tests that compile for other processors, systems and languages, or for WebAssembly, and run the result, for example in
# an emulator, in a root folder of its own, or in the hosts of WebAssembly.
CROSS = (
    *(
        "aot/test_board_table.py",
        "aot/test_boards.py",
        "aot/test_packages.py",
        "bindings",
        "determinism",
        "system/test_on_windows.py",
    ),
    *("webassembly", "wheels"),
)

# Tests that install packages which use onnxruntime, or share tensors with relvm, or that install Python for Windows.
# CI does not run them, and `pytest` only with `-m clients`.
CLIENTS = ("clients/test_array_libraries.py", "clients/test_clients.py", "clients/test_windows_wheel.py")

# The files that take longest in each stage, the longest first.  With several workers they begin first: a long file that
# begins last leaves the other workers idle.  `pytest --times` prints how long the files take.
LONGEST = (
    *("docs/test_contributing.py", "docs/test_site.py", "docs/test_notebooks.py"),
    *("wheels/test_x86_64_wheel.py", "determinism/test_emulated.py", "wheels/test_aarch64_wheel.py"),
    *("system/test_on_windows.py", "wheels/test_static_musl.py", "webassembly/test_node.py", "aot/test_boards.py"),
    *("frontend/onnx_backend.py", "ops/test_modes.py", "c/test_c.py", "differential/test_inconsistent.py"),
    *("aot/test_real_models_ahead.py", "vm/test_random_programs.py", "ops/test_operators.py"),
    *("compiler/test_export_library.py", "cli/test_commands.py", "c/test_warnings.py", "aot/test_export.py"),
    *("runtime/test_worst_cases.py", "c/test_coverage.py", "compiler/test_reproducible.py", "fuzz/test_executables.py"),
    *("differential/test_random_models.py", "models/test_real_models.py", "test_hostile_names.py", "test_types.py"),
)

_TESTS = Path(__file__).resolve().parent.parent
_BUILDS = re.compile(r"\b(machines\w*|Builds|run_\w*everywhere|answers|c_answers|against_\w+)\(")
_SHARED = re.compile(r"\bmachines_of_\w+\(")

_FAST = tuple(entry for entries in FAST.values() for entry in entries)
_LISTED = {"docs": DOCS, "cross": CROSS, "clients": CLIENTS, "fast": _FAST}
STAGES = (*_LISTED, "full")
_COMPILED = 5  # every fifth test that builds programs in every mode compiles C in the full stage


def stage_of(test: str) -> str:
    """Return the stage of a test.  test: its name below tests/, such as `bytecode/test_assembly.py::test_words[1]`."""
    for stage, entries in _LISTED.items():
        if _is_listed(test, entries):
            return "full" if _is_listed(test, SLOW) else stage
    return "full"


def _is_listed(test: str, entries: tuple[str, ...]) -> bool:
    return any(test == entry or test.startswith((f"{entry}/", f"{entry}::", f"{entry}[")) for entry in entries)


def stages_of(test: str) -> tuple[str, ...]:
    """Return all stages of a test, the one of `stage_of` first."""
    stage = stage_of(test)
    builds = stage == "fast" and _is_chosen(test) and _builds_in_every_mode(test.partition("::")[0])
    return (stage, "full") if builds else (stage,)


def compiles(test: str, stage: str) -> bool:
    """Return whether a test compiles the programs that it builds in every mode.

    test: its name below tests/.
    stage: the value of `-m`.
    """
    return stage != "fast" and (stage != "full" or _is_chosen(test) or _shares_programs(test.partition("::")[0]))


def starting_order(files: Iterable[str]) -> dict[str, int]:
    """Return the position of each file in the order in which workers begin files: those that take longest first.

    Files that `LONGEST` does not list follow in the order of their numbers of tests.

    files: the file of each test, below tests/.
    """
    counts = Counter(files)
    others = [file for file, _ in counts.most_common() if file not in LONGEST]
    return {file: position for position, file in enumerate((*LONGEST, *others))}


def _is_chosen(test: str) -> bool:
    """Return whether a test is one of those that compile C in the full stage."""
    return crc32(test.encode()) % _COMPILED == 0


@cache
def _builds_in_every_mode(file: str) -> bool:
    """Return whether the tests of a file call functions that build programs in several modes (modes.py)."""
    return bool(_BUILDS.search((_TESTS / file).read_text()))


@cache
def _shares_programs(file: str) -> bool:
    """Return whether the tests of a file build the programs of many tests together."""
    return bool(_SHARED.search((_TESTS / file).read_text()))


def may_hold(stage: str, path: Path) -> bool:
    """Return whether a file or folder, relative to tests/, can contain tests of a stage.

    stage: the value of `-m`.  The result is True for `full`, and for any other marker expression.
    """
    name = path.as_posix()
    if stage == "fast" and name in SLOW:
        return False
    files = [entry.partition("::")[0] for entry in _LISTED.get(stage, (name,))]
    return name == "." or any(f"{name}/".startswith(f"{file}/") or f"{file}/".startswith(f"{name}/") for file in files)
