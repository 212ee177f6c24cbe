"""Ahead-of-time export of the programs that tests run in every mode.  REFUSED lists the programs that are rejected."""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from aot.exported import compile_programs, run_program

from relvm import aot
from relvm.compiler.find_compiler import find_compiler
from relvm.errors import RelvmUnsupportedError
from relvm.ir.expr import Function, Module
from relvm.ir.types import type_vars
from relvm.ir.value_ranges import UPPER

BOUND = 100  # upper bound of the sizes of an entry function that states no bounds

# Constructs that cannot be exported, and the tests whose programs contain them.  A test has its parameters if it is
# exported with other parameters.
REFUSED = {
    "a tensor of unknown rank or dtype": (
        "frontend/test_onnx_import::test_a_squeeze_of_whatever_has_size_1",
        "frontend/test_onnx_import::test_a_squeeze_of_two_unknown_sizes",
        "frontend/test_onnx_import::test_branches_of_different_ranks",
        "frontend/test_script_loops::test_a_tensor_grows_around_a_loop_with_a_return",
        "frontend/test_script_loops::test_tensors_are_carried_and_grow",
        "frontend/test_script_ways::test_a_tensor_is_first_set_in_a_loop",
        "frontend/test_script_ways::test_tensors_of_different_sizes_meet",
        "passes/test_inline::test_arguments_are_checked_as_by_the_call",
        "vm/cases/test_calls::test_an_inner_functions_dimension_is_known_only_at_run_time",
        "vm/cases/test_calls::test_partial_application_in_a_script",
        "vm/cases/test_shapes::test_the_shape_of_the_field_of_a_tuple",
        "vm/test_lists::test_all_operators",
        "vm/test_run_time_shapes::test_a_compound_size_is_related_to_its_factor",
        "vm/test_run_time_shapes::test_a_long_way_through_operators_branches_and_tuples",
        "vm/test_run_time_shapes::test_a_named_size_and_one_without_a_name",
        "vm/test_run_time_shapes::test_a_size_known_to_be_1_is_repeated",
        "vm/test_run_time_shapes::test_a_size_that_an_operator_needs_to_be_1",
        "vm/test_run_time_shapes::test_a_square_from_one_argument_given_twice",
        "vm/test_run_time_shapes::test_any_number_of_arguments",
        "vm/test_run_time_shapes::test_two_arguments_of_unknown_sizes",
        "vm/test_strings::test_rank_and_sizes_that_only_the_machine_knows",
    ),
    "recursion other than tail calls": (
        "frontend/test_script_ways::test_a_closure_and_a_lambda_pass_the_place_where_ways_meet",
        "frontend/test_script_ways::test_many_ways_in_a_row_mean_what_python_means[ifs_in_a_loop]",
        "passes/test_inline::test_a_local_function_that_one_before_it_calls_once_stays",
        "vm/cases/test_calls::test_a_local_recursive_function",
        "vm/cases/test_calls::test_mutual_recursion",
        "vm/cases/test_calls::test_recursion_factorial_on_a_tensor_counter",
        "vm/cases/test_memory::test_recursion_holds_no_arena_at_its_calls",
        "vm/test_language::test_a_local_function_calls_itself",
        "vm/test_language::test_recursion",
    ),
    "parameter of type object": (
        "passes/test_inline::test_arguments_are_checked_as_by_the_call",
        "vm/test_language::test_a_scalar_that_comes_as_anything_is_computed_with",
    ),
    "value of type object": ("passes/test_memory_plan::test_planned_programs_give_what_the_reference_gives",),
    "a closure": (
        "vm/cases/test_calls::test_higher_order_functions",
        "vm/test_language::test_a_closure_whose_match_cast_is_to_a_size_around_it",
        "vm/test_language::test_functions_are_passed_and_returned",
        "vm/test_language::test_functions_of_the_branches_of_an_if_have_dimensions_of_their_own",
    ),
    "of the host function": (
        "vm/cases/test_shapes::test_a_return_value_is_checked_against_its_annotation",
        "vm/cases/test_shapes::test_match_cast_on_the_result_of_a_packed_function",
        "vm/test_language::test_the_result_of_a_packed_function_is_checked_by_match_cast",
    ),
    "tensors of strings": (
        "vm/test_strings::test_constants_in_text_and_in_executables",
        "vm/test_strings::test_lists_tuples_branches_and_loops_hold_strings",
        "vm/test_strings::test_operators_that_move_strings_in_every_mode",
    ),
    "null": (
        "frontend/test_onnx_import::test_a_branch_that_cannot_be_followed_fails_when_it_is_taken",
        "frontend/test_onnx_import::test_a_branch_that_is_not_for_the_sizes_that_are_fixed_fails_when_it_is_taken",
    ),
}


def results_ahead(module: Module, name: str, args: Sequence[Any]) -> list[Any]:
    """Return a list with the result of an exported function.

    The list is empty if there is no compiler, or if the export is rejected.
    """
    program = export(module, name)
    if program is None or find_compiler() is None:
        return []
    return [run_program(library_of(program), program, *args)]


def export(module: Module, name: str) -> aot.AotProgram | None:
    """Export a function of the current test.

    Return None if it is rejected, after checking that REFUSED lists it, or if it calls host functions.
    """
    constructs = expected_constructs(os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0])
    functions = (bounded(function) if function.name == name else function for function in module.functions)
    try:
        program = aot.build(replace(module, functions=tuple(functions)), entry=name, verified=True)
    except RelvmUnsupportedError as error:
        assert any(construct in str(error) for construct in constructs), error
        return None
    assert not constructs, f"{name} is exported; it is among those that have a {constructs[0]}"
    return None if program.lowered.externs else program  # a bare export calls C functions, and the host's are in Python


def expected_constructs(test: str) -> list[str]:
    path, _, name = test.removeprefix("tests/").partition(".py")
    keys = {path + name, (path + name).partition("[")[0]}
    return [construct for construct, tests in REFUSED.items() if keys & set(tests)]


def bounded(function: Function) -> Function:
    """Return the function with upper bounds for all its sizes."""
    sizes = dict.fromkeys(var.name for param in function.params for var in type_vars(param.type))
    attributes = {UPPER: tuple((size, BOUND) for size in sizes), **dict(function.attributes)}
    return replace(function, attributes=tuple(attributes.items()))


_libraries: dict[tuple, ctypes.CDLL] = {}


def library_of(program: aot.AotProgram) -> ctypes.CDLL:
    """Compile a program to a library.  The library is cached by its sources."""
    key = tuple(program.sources.files.items())
    if key not in _libraries:
        with tempfile.TemporaryDirectory() as folder:
            _libraries[key] = compile_programs([program], Path(folder))
    return _libraries[key]
