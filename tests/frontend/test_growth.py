"""Short texts and models whose dimensions or types would have billions of parts are rejected or built quickly."""

from __future__ import annotations

import contextlib
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from frontend.onnx_models import onnx
from fuzz.limits import at_most

import relvm.ops as ops
from relvm import vm
from relvm.errors import RelvmRecursionError, RelvmShapeError, RelvmSyntaxError, RelvmUnsupportedError
from relvm.frontend.onnx import from_onnx
from relvm.frontend.onnx.identifiers import identifier
from relvm.frontend.text import parse_module
from relvm.ir.expr import OpCall, Shape, constant
from relvm.ir.printer import print_module
from relvm.ir.symbolic import AnyDim, dim_op, dim_var
from relvm.ir.types import (
    FuncType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    is_proven,
    join,
    substitute_dims,
)
from relvm.ops.folding import FoldingBudget
from relvm.ops.regex_compiler import compile_pattern

SECONDS = 100  # limit on the CPU time; the slowest test takes a few seconds, and would take years if parts were copied
DOUBLED = 40  # number of doublings, each in one line of text
SUM = "(" + " + ".join("abcdefgh") + ")"


def build(text: str) -> vm.Executable:
    with at_most(SECONDS):
        module = parse_module(text, "grows.relvm")
        assert print_module(parse_module(print_module(module))) == print_module(module)
        return vm.build(module, target="numpy")


def lines(first: str, then: str, count: int = DOUBLED) -> str:
    made = [f"a0 = {first}", *(f"a{i + 1} = {then.replace('?', f'a{i}')}" for i in range(count))]
    return "\n".join(f"  {line}" for line in made)


# ---- dimensions ----


@pytest.mark.parametrize(
    "size",
    [
        " * ".join([SUM] * 9),
        " * ".join(["n"] * 3000),
        " * ".join(["9223372036854775807"] * 3000),
        " + ".join(f"min(n, v{i})" for i in range(1500)),
    ],
    ids=["sums", "power", "constants", "terms"],
)
def test_large_dimensions_in_a_text(size: str) -> None:
    with pytest.raises(RelvmUnsupportedError, match=r"grows\.relvm:1:\d+: (a dimension|the product)") as caught:
        build(f"def main(x: f32[n, a, b, c, d, e, f, g, h], y: f32[{size}]) -> f32[_] = reshape(x, shape(-1))")
    assert len(str(caught.value)) < 1000


def test_a_dimension_is_not_squared_for_ever() -> None:
    for function in ("mul", "add"):
        dim: AnyDim = dim_var("n") + dim_var("m") + 1
        with at_most(SECONDS), pytest.raises(RelvmUnsupportedError):
            for _ in range(1000):
                dim = dim_op(function, dim, dim)


def test_a_product_of_long_sums_is_refused_before_it_is_made() -> None:
    long = sum((dim_var(f"v{i}") for i in range(900)), start=0)
    tracemalloc.start()
    with pytest.raises(RelvmUnsupportedError, match="the product of dimensions with 900 and 900 terms"):
        long * long
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1_000_000


# ---- types ----

TYPES = {
    "tuples": lines("(x, x)", "(?, ?)"),
    "lists": lines("(x, x)", "make_list((?, ?), (?, ?))"),
    "results of functions": lines("fn(y: f32[m]) = y", "fn(y: f32[m]) = (?, ?)"),
    "results of ifs": lines("(x, x)", "if c then (?, ?) else (?, ?)"),
    "depth": lines("(x,)", "(?,)", 1000),
    "depth of lists": lines("make_list(x)", "make_list(?)", 1000),
}


@pytest.mark.parametrize("kind", TYPES)
def test_large_types_in_a_text(kind: str) -> None:
    with pytest.raises(RelvmUnsupportedError, match=r"main: a\d+: a type (has|nests) \d+ types"):
        build(f"def main(x: f32[n], c: bool) -> f32[n] {{\n{TYPES[kind]}\n  return x\n}}")


def test_large_types_of_functions() -> None:
    functions = [f"def f{i + 1}(x: f32[n]) = (@f{i}(x), @f{i}(x))" for i in range(DOUBLED)]
    with pytest.raises(RelvmUnsupportedError, match=r"f\d+: a type has \d+ types"):
        build("\n".join(["def f0(x: f32[n]) = (x, x)", *functions]))


@pytest.mark.parametrize("use", ["(a9, a5)", "if c then a9 else @f(x)", "fn(y: f32[m]) = (y, a8)", "@g(a9, x)"])
def test_types_that_are_almost_too_large_take_little_time(use: str) -> None:
    doubled = lines("(x, x)", "(?, ?)", 9)
    uses = "\n".join(f"  b{i} = {use}" for i in range(100))
    executable = build(
        f"def f(x: f32[n]) {{\n{doubled}\n  return a9\n}}\n"
        "def g(x: object, y: f32[n]) -> object = (x, y)\n"
        f"def main(x: f32[n], c: bool) -> object {{\n{doubled}\n{uses}\n  return b99\n}}"
    )
    assert vm.VirtualMachine(executable)["main"](np.ones(2, np.float32), False) is not None


def doubled_type(leaf: Type, levels: int) -> Type:
    for _ in range(levels):
        leaf = TupleType((leaf, leaf))
    return leaf


def test_functions_of_types_see_each_shared_part_once() -> None:
    n, m = dim_var("n"), dim_var("m")
    variable = next(iter(n.terms))[0][0]
    large = doubled_type(TensorType("f32", (n,)), 12)
    other = substitute_dims(large, {variable: m})
    assert isinstance(other, TupleType) and other.fields[0] is other.fields[1]
    assert join(large, other) == doubled_type(TensorType("f32", None, 1), 12)
    with at_most(SECONDS):
        for _ in range(2000):
            substitute_dims(large, {variable: m + 1})
            assert join(large, other) is not None
            assert is_proven(large, large)


@pytest.mark.parametrize(
    "wrap", [lambda t: TupleType((t,)), ListType, OptionalType, lambda t: FuncType((t,), t), lambda t: FuncType((), t)]
)
def test_types_made_by_hand_are_limited_too(wrap) -> None:
    type_: Type = TensorType("f32", (4,))
    with at_most(SECONDS), pytest.raises(RelvmUnsupportedError, match=r"a type (has|nests)"):
        for _ in range(200):
            type_ = wrap(type_)
    assert type_.depth <= 100 and type_.node_count <= 20_000


# ---- models ----


def model(nodes: list, inputs: dict[str, list], constants: dict[str, list[int]]) -> onnx.ModelProto:
    make = onnx.helper.make_tensor_value_info
    given = [make(name, onnx.TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    tensors = [onnx.numpy_helper.from_array(np.array(value), name) for name, value in constants.items()]
    made = [make(nodes[-1].output[0], onnx.TensorProto.FLOAT, None)]
    return onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", given, made, tensors))


def repeated(rounds: int, *steps: tuple[str, str, str, dict]) -> list:
    """Return `rounds` copies of a sequence of nodes.

    steps: the operator, the inputs, the output and the attributes of each node.  The input `@` is the last result of
    the previous copy, or `x` in the first copy.  `'` in an input stands for the number of the copy.
    """
    nodes, last = [], "x"
    for i in range(rounds):
        for op, inputs, output, attributes in steps:
            names = [last if name == "@" else name.replace("'", str(i)) for name in inputs.split()]
            nodes.append(onnx.helper.make_node(op, names, [f"{output}{i}"], f"{op}{i}", **attributes))
        last = f"{steps[-1][2]}{i}"
    return nodes


MODELS = {
    "tiles of joined": (
        ("Concat", "@ y", "c", {"axis": 0}), ("Shape", "c'", "s", {}), ("Tile", "c' s'", "t", {}),
    ),
    "outer products": (
        ("Concat", "@ y", "c", {"axis": 0}), ("Unsqueeze", "c' zero", "u", {}), ("Unsqueeze", "c' one", "v", {}),
        ("MatMul", "v' u'", "p", {}), ("Reshape", "p' least", "r", {}),
    ),
    "pools of joined": (
        ("Unsqueeze", "@ both", "u", {}), ("AveragePool", "u'", "p", {"kernel_shape": [3], "strides": [2]}),
        ("Squeeze", "p' both", "q", {}), ("Concat", "q' @", "c", {"axis": 0}),
    ),
    "broadcasts": (
        ("Shape", "@", "s", {}), ("Mul", "s' s'", "m", {}), ("Expand", "y m'", "e", {}), ("Add", "@ e'", "a", {}),
    ),
}  # fmt: skip


CONSTANTS = {"zero": [0], "one": [1], "least": [-1], "both": [0, 1]}


@pytest.mark.parametrize("name", MODELS)
def test_models_of_complex_sizes_are_built_quickly(name: str) -> None:
    """A size with too many parts is bound to a new variable at run time."""
    proto = model(repeated(DOUBLED, *MODELS[name]), {"x": ["n"], "y": ["m"]}, CONSTANTS)
    assert len(proto.SerializeToString()) < 10_000
    with at_most(SECONDS):
        vm.build(from_onnx(proto), target="numpy")


def test_sizes_bound_at_run_time() -> None:
    """Each round adds a part to the size of the result, which two branches compute, one of them in an If."""
    rounds, graph = 520, onnx.helper.make_graph
    nodes = [onnx.helper.make_node("Shape", ["x"], ["n"])]
    for i in range(rounds):
        nodes.append(onnx.helper.make_node("Slice", ["x", "zero", "n", "zero", f"step{i}"], [f"part{i}"]))
        nodes.append(onnx.helper.make_node("Concat", [f"c{i}", f"part{i}"], [f"c{i + 1}"], axis=0))
    nodes[2].input[0] = "x"
    last = f"c{rounds}"
    infos = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in ("then", "orelse")]
    doubled = graph([onnx.helper.make_node("Concat", [last, last], ["then"], axis=0)], "doubled", [], infos[:1])
    kept = graph([onnx.helper.make_node("Identity", [last], ["orelse"])], "kept", [], infos[1:])
    nodes.append(onnx.helper.make_node("Abs", [last], ["a"]))
    nodes.append(onnx.helper.make_node("Add", ["a", last], ["b"]))
    nodes.append(onnx.helper.make_node("ReduceMin", ["b"], ["least"], keepdims=0))
    nodes.append(onnx.helper.make_node("Less", ["least", "limit"], ["negative"]))
    nodes.append(onnx.helper.make_node("If", ["negative"], ["y"], then_branch=kept, else_branch=doubled))
    constants = {"zero": [0], "limit": np.float32(0), **{f"step{i}": [i + 2] for i in range(rounds)}}
    with at_most(SECONDS):
        machine = vm.VirtualMachine(vm.build(from_onnx(model(nodes, {"x": ["n"]}, constants)), target="numpy"))
    for size in (1, 9):
        x = np.arange(size, dtype=np.float32)
        joined = np.concatenate([x, *(x[:: i + 2] for i in range(rounds))])
        np.testing.assert_array_equal(machine["main"](x).numpy(), np.concatenate([joined, joined]))


def test_sizes_that_a_dimension_cannot_hold_are_computed_at_run_time() -> None:
    nodes = [onnx.helper.make_node("Shape", ["x"], ["m0"])]
    for i in range(12):
        nodes.append(onnx.helper.make_node("Add", [f"m{i}", "one"], [f"s{i}"]))
        nodes.append(onnx.helper.make_node("Mul", [f"s{i}", f"s{i}"], [f"p{i}"]))
        nodes.append(onnx.helper.make_node("Mod", [f"p{i}", "seven"], [f"q{i}"]))
        nodes.append(onnx.helper.make_node("Mul", [f"q{i}", f"s{i}"], [f"r{i}"]))
        nodes.append(onnx.helper.make_node("Mod", [f"r{i}", "seven"], [f"m{i + 1}"]))
    nodes.append(onnx.helper.make_node("ConstantOfShape", ["m12"], ["y"]))
    proto = model(nodes, {"x": ["n", "k"]}, {"one": [1], "seven": [7]})
    with at_most(SECONDS):
        machine = vm.VirtualMachine(vm.build(from_onnx(proto), target="numpy"))
    for shape in [(3, 4), (0, 5), (1, 1)]:
        sizes = list(shape)
        for _ in range(12):
            sizes = [(s + 1) ** 2 % 7 * (s + 1) % 7 for s in sizes]
        assert np.asarray(machine["main"](np.zeros(shape, np.float32))).shape == tuple(sizes)


def test_positions_up_to_a_cap() -> None:
    """A table of positions is sliced to the length of the input.  The sizes must be equal, and must not broadcast."""
    nodes = [
        onnx.helper.make_node("Shape", ["x"], ["n"]),
        onnx.helper.make_node("Slice", ["table", "zero", "n"], ["positions"]),
        onnx.helper.make_node("Add", ["x", "positions"], ["y"]),
        onnx.helper.make_node("Add", ["y", "positions"], ["z"]),
    ]
    proto = model(nodes, {"x": ["n"]}, {"zero": [0]})
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.arange(5, dtype=np.float32), "table"))
    module = from_onnx(proto)
    assert print_module(module).count("min(") < 20
    for fused in (True, False):
        machine = vm.VirtualMachine(vm.build(module, target="numpy", fused=fused))
        for size in (0, 1, 4, 5):
            got = machine["main"](np.ones(size, np.float32))
            np.testing.assert_array_equal(got, 1 + 2 * np.arange(size, dtype=np.float32))
        with pytest.raises(Exception, match="6"):
            machine["main"](np.ones(6, np.float32))


# ---- constants ----


def test_constants_of_a_model_become_few_bytes() -> None:
    shape = np.array([1 << 22])
    nodes = []
    for i in range(60):
        value = onnx.numpy_helper.from_array(np.array([i + 0.5], np.float32))
        nodes.append(onnx.helper.make_node("ConstantOfShape", ["shape"], [f"c{i}"], value=value))
        nodes.append(onnx.helper.make_node("Sqrt", [f"c{i}"], [f"s{i}"]))
    nodes.append(onnx.helper.make_node("Sum", [f"s{i}" for i in range(60)] + ["x"], ["y"]))
    with at_most(SECONDS):
        executable = vm.build(from_onnx(model(nodes, {"x": [1]}, {"shape": shape})), target="numpy")
    assert len(executable.to_bytes()) < 900 << 20
    result = vm.VirtualMachine(executable)["main"](np.zeros(1, np.float32))
    assert np.asarray(result)[0] == pytest.approx(np.sqrt(np.arange(60) + 0.5).sum())


WINDOWS = {
    "AveragePool": {"kernel_shape": [10**9], "strides": [10**9], "pads": [10**9 - 5, 10**9], "count_include_pad": 1},
    "MaxPool": {"kernel_shape": [2], "dilations": [10**9], "strides": [10**9], "pads": [10**9, 10**9]},
    "Conv": {"dilations": [10**9], "strides": [10**9], "pads": [10**9, 10**9]},
}


@pytest.mark.parametrize("op_type", WINDOWS)
def test_padded_windows_on_constants_are_left_to_the_run(op_type: str) -> None:
    inputs = ["k", "w"] if op_type == "Conv" else ["k"]
    nodes = [onnx.helper.make_node(op_type, inputs, ["c"], **WINDOWS[op_type])]
    nodes.append(onnx.helper.make_node("Add", ["c", "x"], ["y"]))
    constants = {"k": np.ones((1, 1, 8), np.float32), "w": np.ones((1, 1, 2), np.float32)}
    with at_most(SECONDS):
        vm.build(from_onnx(model(nodes, {"x": [1]}, constants)), target="numpy")


def test_a_constant_string_is_not_doubled_for_ever() -> None:
    nodes = [onnx.helper.make_node("StringConcat", [f"s{i}", f"s{i}"], [f"s{i + 1}"]) for i in range(DOUBLED)]
    nodes.append(onnx.helper.make_node("Equal", ["s40", "s40"], ["same"]))
    nodes.append(onnx.helper.make_node("Cast", ["same"], ["y"], to=onnx.TensorProto.FLOAT))
    with at_most(SECONDS):
        vm.build(from_onnx(model(nodes, {}, {"s0": np.array(["abcdefgh"], object)})), target="numpy")


# ---- models that name one thing many times ----


def calls(depth: int, *first: onnx.NodeProto, attribute: str | None = None) -> onnx.ModelProto:
    """Return a model whose function f1 calls f0 twice, f2 calls f1 twice, and so on.  first: the body of f0."""
    make, opsets = onnx.helper.make_node, [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("own", 1)]
    functions = [onnx.helper.make_function("own", "f0", ["a"], ["b"], first, opsets)]
    for i in range(1, depth + 1):
        body = [make(f"f{i - 1}", ["a"], ["t"], domain="own"), make(f"f{i - 1}", ["t"], ["b"], domain="own")]
        functions.append(onnx.helper.make_function("own", f"f{i}", ["a"], ["b"], body, opsets))
    proto = model([make(f"f{depth}", ["x"], ["y"], domain="own")], {"x": [1]}, {})
    proto.functions.extend(functions)
    proto.opset_import.extend(opsets[1:])
    return proto


def test_doubled_calls_of_functions_are_refused() -> None:
    with at_most(SECONDS), pytest.raises(RelvmUnsupportedError, match=r"the model has 786431 nodes after inlining"):
        from_onnx(calls(18, onnx.helper.make_node("Relu", ["a"], ["b"])))


def test_a_constant_of_a_function_that_is_called_often_is_refused() -> None:
    value = onnx.numpy_helper.from_array(np.ones(1 << 18, np.float32))
    constant = onnx.helper.make_node("Constant", [], ["k"], value=value)
    with at_most(SECONDS), pytest.raises(RelvmUnsupportedError, match=r"expand to .* but the limit"):
        from_onnx(calls(11, constant, onnx.helper.make_node("Add", ["a", "k"], ["b"])))


def test_doubled_graphs_of_functions_are_refused() -> None:
    make, opsets = onnx.helper.make_node, [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("own", 1)]
    none = onnx.helper.make_tensor_value_info("o", onnx.TensorProto.FLOAT, None)

    def either(cond: str, made: str) -> onnx.NodeProto:
        node = make("If", [cond], [made])
        for branch in ("then_branch", "else_branch"):
            node.attribute.add(name=branch, ref_attr_name="g", type=onnx.AttributeProto.GRAPH)
        return node

    always = make("Constant", [], ["o"], value=onnx.numpy_helper.from_array(np.ones(1, np.float32)))
    functions = []
    for i in range(30):
        inner = onnx.helper.make_graph([make("Cast", ["a"], ["c"], to=9), either("c", "o")], "inner", [], [none])
        call = make(f"f{i + 1}", ["a"], ["b"], domain="own", g=inner)
        functions.append(onnx.helper.make_function("own", f"f{i}", ["a"], ["b"], [call], opsets, ["g"]))
    last = [make("Cast", ["a"], ["c"], to=9), either("c", "b")]
    functions.append(onnx.helper.make_function("own", "f30", ["a"], ["b"], last, opsets, ["g"]))
    graph = onnx.helper.make_graph([always], "always", [], [none])
    proto = model([make("f0", ["x"], ["y"], domain="own", g=graph)], {"x": []}, {})
    proto.functions.extend(functions)
    proto.opset_import.extend(opsets[1:])
    with at_most(SECONDS), pytest.raises(RelvmUnsupportedError, match="inlined functions and copied branches exceed"):
        from_onnx(proto)


def test_sparse_tensors_that_are_almost_empty_are_refused() -> None:
    proto = model([onnx.helper.make_node("Add", ["x", "w"], ["y"])], {"x": [1]}, {})
    value, place = (onnx.numpy_helper.from_array(np.ones(1, t), n) for t, n in ((np.float64, "w"), (np.int64, "at")))
    proto.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(value, place, [1 << 31]))
    with (
        at_most(SECONDS),
        pytest.raises(RelvmUnsupportedError, match=r"initializer w: .* expand to .* but the limit"),
    ):
        from_onnx(proto)


def test_external_data_that_is_used_many_times_is_refused(tmp_path: Path) -> None:
    proto = model([onnx.helper.make_node("Sum", ["x", "w0"], ["y"])], {"x": [1]}, {})
    for i in range(1000):
        tensor = proto.graph.initializer.add(name=f"w{i}", dims=[1 << 18], data_type=1, data_location=1)
        tensor.external_data.add(key="location", value="weights")
    (tmp_path / "weights").write_bytes(bytes(1 << 20))
    (tmp_path / "model.onnx").write_bytes(proto.SerializeToString())
    with (
        at_most(SECONDS),
        pytest.raises(RelvmUnsupportedError, match=r"initializer w\d+: .* expand to .* but the limit"),
    ):
        from_onnx(tmp_path / "model.onnx")


ML = {"domain": "ai.onnx.ml"}
TREE = {
    "nodes_treeids": [0], "nodes_nodeids": [0], "nodes_featureids": [0], "nodes_values": [0.0], "nodes_modes": ["LEAF"],
    "nodes_truenodeids": [0], "nodes_falsenodeids": [0], "target_treeids": [0], "target_nodeids": [0],
    "target_ids": [0], "target_weights": [1.0], "n_targets": 1 << 40,
}  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "op_type", "inputs", "attributes"),
    [
        ([1, 4], "TreeEnsembleRegressor", ["x"], TREE | ML),
        ([1, 1, 1 << 28, 1], "Resize", ["x", "", "", "sizes"], {"mode": "cubic", "antialias": 1}),
        ([1, 4, 4, 4], "DeformConv", ["x", "w", "offset"], {"kernel_shape": [1 << 40, 1], "pads": [1 << 40, 0, 0, 0]}),
    ],
)
def test_large_tables_of_a_node_are_refused(shape: list[int], op_type: str, inputs: list[str], attributes) -> None:
    constants = {
        "offset": np.ones((1, 2, 1, 1), np.float32),
        "sizes": np.array([1, 1, 2, 1]),
        "w": np.ones((1, 4, 1, 1), np.float32),
    }
    proto = model([onnx.helper.make_node(op_type, inputs, ["y"], **attributes)], {"x": shape}, constants)
    proto.opset_import.append(onnx.helper.make_opsetid("ai.onnx.ml", 4))
    with at_most(SECONDS), pytest.raises((RelvmUnsupportedError, RelvmShapeError), match=rf"node 'y' \({op_type}"):
        from_onnx(proto)


def test_a_list_of_many_parts_is_imported() -> None:
    nodes = [
        onnx.helper.make_node("SplitToSequence", ["x"], ["s"]),
        onnx.helper.make_node("SequenceLength", ["s"], ["n"]),
    ]
    nodes.append(onnx.helper.make_node("Cast", ["n"], ["y"], to=onnx.TensorProto.FLOAT))
    with at_most(SECONDS):
        vm.build(from_onnx(model(nodes, {"x": [1 << 40]}, {})), target="numpy")


def test_shapes_joined_to_themselves() -> None:
    nodes = [onnx.helper.make_node("Shape", ["x"], ["s0"])]
    nodes += [onnx.helper.make_node("Concat", [f"s{i}"] * 2, [f"s{i + 1}"], axis=0) for i in range(30)]
    nodes.append(onnx.helper.make_node("Cast", ["s30"], ["y"], to=onnx.TensorProto.FLOAT))
    with at_most(SECONDS):
        vm.build(from_onnx(model(nodes, {"x": ["n"]}, {})), target="numpy")


def test_many_names_that_become_one_identifier() -> None:
    taken: set[str] = set()
    with at_most(SECONDS):
        names = [identifier("!", taken) for _ in range(100_000)]
    assert len(taken) == len(names) and names[:3] == ["_", "__1", "__2"]


def test_messages_stay_short() -> None:
    nodes = [onnx.helper.make_node("None" + "z" * 1000, ["x"], [f"y{i}"]) for i in range(1000)]
    with pytest.raises(RelvmUnsupportedError, match="and 900 more") as caught:
        from_onnx(model(nodes, {"x": [1]}, {}))
    assert len(str(caught.value)) < 100_000
    with pytest.raises(RelvmUnsupportedError, match="pattern") as caught:
        compile_pattern("(" * 100_000)
    assert len(str(caught.value)) < 1000


def test_a_tensor_that_cannot_be_names_its_node() -> None:
    nodes = [onnx.helper.make_node("Concat", [f"v{i}"] * 2, [f"v{i + 1}"], axis=0) for i in range(70)]
    with pytest.raises(RelvmUnsupportedError, match=r"node 'v\d+' \(Concat, opset \d+\): a tensor of shape"):
        from_onnx(model(nodes, {"v0": [4]}, {}))


def test_work_and_bytes_of_folding_are_limited() -> None:
    square = constant(np.ones((1024, 1024), np.float32))
    product, total = ops.matmul(square, square), ops.add(square, square)
    assert takes(product) == 2  # each product has 2^31 operations
    assert takes(total) == (2 << 26) // (4 << 20)
    assert takes(total, known_bytes=100 << 20) == (2 << 26) // (4 << 20) + 100
    assert takes(ops.broadcast_to(square, Shape((1 << 20, 1024, 1024)))) == 0
    assert takes(ops.row_echelon(square)) == 0  # its operations are unknown, so it is not folded


def takes(call: OpCall, **known: int) -> int:
    """Return how often constant folding can run `call` within a budget."""
    budget = FoldingBudget(**known)
    args = [getattr(arg, "value", None) for arg in call.args]
    return next(count for count in range(10_000) if not budget.spend(call, args))


# ---- texts ----


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("def main(x: i64) -> i64 = x + " + "9" * 100_000, RelvmSyntaxError, "the integer has too many digits"),
        ("def main(x: i64) -> i64 = x + 1 " + "f" * 100_000, RelvmSyntaxError, r"got f{100}\.\.\."),
        ("def main() -> object = const(f32[0, 9000000000000000000, 9], [])", RelvmUnsupportedError, "2.63 bytes"),
        ("def main() -> object = iota(shape(9000000000000000000, 9))", RelvmUnsupportedError, "2.63 bytes"),
    ],
)
def test_large_numbers_in_a_text(text: str, error: type[Exception], message: str) -> None:
    with at_most(SECONDS), pytest.raises(error, match=message) as caught:
        build(text)
    assert len(str(caught.value)) < 1000


def test_a_long_string_takes_little_memory() -> None:
    tracemalloc.start()
    with pytest.raises(RelvmSyntaxError):
        parse_module('def main() -> object = "' + "z" * 1_000_000)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20_000_000


def test_deep_programs_are_built_or_refused() -> None:
    ifs = "def main(x: f32[n], c: bool) -> f32[n] = " + "if c then relu(x) else " * 140 + "x"
    chain = [f"def f{i}(x: f32[n]) = @f{i + 1}(x)" for i in range(3000)]
    for text in (ifs, "\n".join([*chain, "def f3000(x: f32[n]) = relu(x)"])):
        with at_most(SECONDS), contextlib.suppress(RelvmRecursionError):
            vm.build(parse_module(text), target="numpy")
