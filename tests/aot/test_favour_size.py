"""Exports that favour size have the bits of the virtual machine, and take no more memory than others."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import pytest
from exported import compile_programs, run_program
from programs_ahead import numbers
from support.modes import assert_same_bits, plain

from relvm import aot, vm
from relvm.compiler.find_compiler import find_compiler
from relvm.frontend.onnx import from_onnx
from relvm.frontend.text import parse_module
from relvm.ir.expr import Module

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="exports are compiled, and there is no C compiler")

RANDOM = np.random.default_rng(5)


def constant(value: np.ndarray) -> str:
    kind = f"{value.dtype.kind}{8 * value.itemsize}"
    shape = ", ".join(map(str, value.shape))
    return f'const({kind}[{shape}], "{base64.b64encode(value.tobytes()).decode()}")'


def whole(dtype: str, *shape: int) -> np.ndarray:
    limits = np.iinfo(dtype)
    return RANDOM.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def conv(x: tuple[int, ...], w: tuple[int, ...], attributes: str = "") -> tuple[str, str, tuple[np.ndarray, ...]]:
    return f"f32{list(x)}", f"relu(conv(x, {constant(numbers(*w, seed=2))}{attributes}))", (numbers(*x),)


def conv_integer(x: tuple[int, ...], w: tuple[int, ...], attributes: str = ""):
    zero, weights = constant(np.int8(-7)), constant(whole("i1", *w))
    return f"i8{list(x)}", f"conv_integer(x, {weights}, {zero}{attributes})", (whole("i1", *x),)


PROGRAMS = {
    "im2col": conv((2, 3, 9, 8), (8, 3, 3, 3), ", pads=(1, 0, 2, 1), strides=(2, 1)"),
    "groups": conv((1, 16, 7, 6), (16, 8, 3, 2), ", groups=2, dilations=(2, 1)"),
    "narrow_groups": conv((2, 6, 9), (4, 3, 4), ", groups=2, pads=(1, 2)"),
    "one_axis": conv((2, 4, 30), (7, 4, 3), ", pads=(1, 1), strides=(3,)"),
    "three_axes": conv((1, 2, 4, 5, 6), (3, 2, 2, 3, 2), ", pads=(1, 0, 1, 0, 1, 1)"),
    "one_channel": conv((1, 1, 12, 11), (8, 1, 5, 4), ", pads=(2, 2, 2, 2)"),
    "few_filters": conv((1, 3, 11, 12), (4, 3, 5, 3), ", strides=(2, 2), pads=(2, 1, 2, 1)"),
    "phases": conv((1, 2, 31, 12), (2, 2, 17, 2), ", strides=(2, 1), pads=(3, 1, 2, 0)"),
    "high_window": conv((1, 2, 31, 12), (2, 2, 16, 2), ", pads=(3, 1, 2, 0)"),
    "depthwise": conv((2, 5, 6, 6), (5, 1, 3, 3), ", groups=5, pads=(1, 1, 1, 1)"),
    "depthwise_phases": conv((1, 4, 20, 21), (8, 1, 3, 3), ", groups=4, pads=(0, 0, 1, 1), strides=(2, 2)"),
    "few_filters_of_groups": conv((1, 2, 3, 3, 3), (2, 1, 2, 2, 2), ", groups=2"),
    "one_window": conv((1, 3, 5, 5), (5, 3, 5, 5)),
    "bytes": conv_integer((2, 6, 8, 7), (8, 6, 3, 3), ", pads=(1, 1, 1, 1), strides=(1, 2)"),
    "bytes_of_one_channel": conv_integer((1, 1, 8, 7), (3, 1, 3, 2)),
    "bytes_by_channel": conv_integer((1, 6, 8, 7), (6, 1, 3, 3), ", groups=6, pads=(1, 1, 1, 1)"),
    "product": ("f32[3, 20]", f"tanh(matmul(x, {constant(numbers(20, 37, seed=3))}))", (numbers(3, 20),)),
    "transposed": (
        "f32[2, 20]",
        f"matmul(x, {constant(numbers(37, 20, seed=3))}, transpose_b=true)",
        (numbers(2, 20),),
    ),
    "variable_matrices": ("f32[4, 20, 5]", "matmul(x, x, transpose_a=true)", (numbers(4, 20, 5),)),
    "variable_transposed": ("f32[4, 3, 19]", "matmul(x, x, transpose_b=true)", (numbers(4, 3, 19),)),
    "one_row": ("f32[20]", f"matmul(x, {constant(numbers(20, 9, seed=3))})", (numbers(20),)),
    "product_of_bytes": (
        "u8[5, 18]",
        f"matmul_integer(x, {constant(whole('i1', 18, 21))}, {constant(np.uint8(9))}, {constant(whole('i1', 1, 21))})",
        (whole("u1", 5, 18),),
    ),
    "pool": (
        "f32[2, 3, 9, 8]",
        "max_pool(x, kernel=(3, 2), strides=(2, 2), pads=(1, 0, 1, 1), dilations=(1, 2))",
        (numbers(2, 3, 9, 8),),
    ),
    "pool_of_bytes": ("i8[1, 2, 12]", "max_pool(x, kernel=(3,), strides=(2,), pads=(1, 1))", (whole("i1", 1, 2, 12),)),
}


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory):
    """Return a library of all programs, and by name the module and its export."""
    made = {}
    for name, (type_, body, _) in PROGRAMS.items():
        module = parse_module(f"def main(x: {type_}) => {{ return {body} }}")
        made[name] = module, aot.build(module, aot.AotConfig(name, favour="size"))
    programs = [program for _, program in made.values()]
    return compile_programs(programs, tmp_path_factory.mktemp("size"), "-O1"), made


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_results_have_the_same_bits(name: str, exports) -> None:
    library, made = exports
    *_, args = PROGRAMS[name]
    module, program = made[name]
    assert_same_bits(run_program(library, program, *args), on_a_machine(module, *args))
    other = aot.build(module, aot.AotConfig(name, favour="memory"))
    assert sum(program.sources.pool_bytes) <= sum(other.sources.pool_bytes)


@pytest.mark.parametrize("name", ["one_channel", "few_filters", "depthwise", "bytes_by_channel"])
@pytest.mark.parametrize("favour", ["memory", "size"])
def test_convolutions_with_few_filters_need_no_scratch_memory(name: str, favour: str) -> None:
    type_, body, _ = PROGRAMS[name]
    module = parse_module(f"def main(x: {type_}) => {{ return {body} }}")
    assert sum(aot.build(module, aot.AotConfig(favour=favour)).sources.pool_bytes) <= 64


def on_a_machine(module: Module, *args):
    return plain(vm.VirtualMachine(vm.build(module, "bytecode", target="bytecode"))["main"](*args))


def forest(aggregate: str, targets: int, tracks: tuple[int, ...]):
    """Return an ONNX model of three trees of two levels.   tracks: whether NaN takes the true branch of each node."""
    onnx = pytest.importorskip("onnx")
    rows = [
        (
            tree,
            node,
            "LEAF" if node > 2 else "BRANCH_LEQ",
            (tree + node) % 4,
            2.0 * node - tree,
            2 * node + 1,
            2 * node + 2,
        )
        for tree in range(3)
        for node in range(7)
    ]
    fields = ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids")
    attributes = {f"nodes_{name}": list(column) for name, column in zip(fields, zip(*rows, strict=True), strict=True)}
    leaves = [
        (tree, node, target, (node + target + tree % 2) % 3 / 3)
        for tree, node, mode, *_ in rows
        if mode == "LEAF"
        for target in range(targets)
    ]
    fields = ("treeids", "nodeids", "ids", "weights")
    attributes |= {
        f"target_{name}": list(column) for name, column in zip(fields, zip(*leaves, strict=True), strict=True)
    }
    attributes["nodes_missing_value_tracks_true"] = [*tracks] * 3
    node = onnx.helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        aggregate_function=aggregate,
        n_targets=targets,
        **attributes,
    )
    ports = [onnx.helper.make_tensor_value_info(name, 1, shape) for name, shape in (("x", (9, 4)), ("y", (9, targets)))]
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    return onnx.helper.make_model(onnx.helper.make_graph([node], "trees", ports[:1], ports[1:]), opset_imports=opsets)


@pytest.mark.parametrize("aggregate", ["SUM", "MIN", "AVERAGE"])
def test_trees_have_the_same_bits_and_smaller_tables(aggregate: str, tmp_path: Path) -> None:
    x = (3 * numbers(9, 4)).round(1)
    x[::3, 1:] = np.nan
    made = []
    for targets, tracks in ((1, (0,) * 7), (4, (0,) * 7), (4, (1, 0, 1, 0, 0, 0, 0))):
        module = from_onnx(forest(aggregate, targets, tracks))
        name = f"trees{targets}{tracks[0]}"
        small, other = (aot.build(module, aot.AotConfig(name, favour=favour)) for favour in ("size", "memory"))
        assert small.sources.constants_bytes < other.sources.constants_bytes
        made.append((module, small))
    library = compile_programs([program for _, program in made], tmp_path, "-O1")
    for module, program in made:
        assert_same_bits(run_program(library, program, x), on_a_machine(module, x))


@pytest.mark.parametrize("favour", ["memory", "size"])
def test_empty_tensors_in_a_pool(favour: str, tmp_path: Path) -> None:
    module = parse_module("def main(x: f32[0, 3]) => { return matmul(x, relu(x), transpose_b=true) }")
    program = aot.build(module, aot.AotConfig("empty", favour=favour))
    library = compile_programs([program], tmp_path, "-O1")
    assert run_program(library, program, np.zeros((0, 3), np.float32)).shape == (0, 0)
