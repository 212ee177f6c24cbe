"""Files that are not exported programs, damaged files, and programs that relvm does not support."""

from __future__ import annotations

import contextlib
import io
import json
import random
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relvm
from relvm import vm
from relvm.errors import (
    RelvmArgumentError,
    RelvmError,
    RelvmFormatError,
    RelvmNameError,
    RelvmShapeError,
    RelvmTypeError,
    RelvmUnsupportedError,
)
from relvm.frontend.torch import from_pt2, from_torch, limits
from relvm.frontend.torch.read_program import read_program
from relvm.frontend.torch.size_expressions import as_size, parse_expression
from relvm.ir.symbolic import dim_var

FOLDER = Path(__file__).resolve().parent / "pt2"
MLP = FOLDER / "mlp.pt2"
GRAPH = "archive/models/model.json"
WEIGHTS = "archive/data/weights/model_weights_config.json"


def files_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(files: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def changed(change: Callable[[Any], Any], file: str = GRAPH, path: Path = MLP) -> bytes:
    """Return the archive with the JSON in one of its files changed."""
    files = files_of(path)
    value = json.loads(files[file])
    change(value)
    return archive_of(files | {file: json.dumps(value).encode()})


def nodes_of(value: Any) -> list[Any]:
    return value["graph_module"]["graph"]["nodes"]


# ---- archives ----


def test_stored_weights_share_the_memory_of_the_file() -> None:
    content = MLP.read_bytes()
    program = read_program(content)
    whole = np.frombuffer(content, np.uint8)
    assert program.tensors["layers.0.weight"].shape == (16, 6)
    assert np.shares_memory(program.tensors["layers.0.weight"], whole)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_archives_can_be_compressed(compression: int) -> None:
    program = read_program(archive_of(files_of(MLP), compression))
    np.testing.assert_array_equal(program.tensors["layers.2.bias"], read_program(MLP).tensors["layers.2.bias"])


def test_another_compression_is_refused() -> None:
    with pytest.raises(RelvmUnsupportedError, match=r"compressed by method 12, expected 0 \(stored\) or 8"):
        from_pt2(archive_of(files_of(MLP), zipfile.ZIP_BZIP2))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected an exported program of PyTorch, which is a zip archive"),
        (b"PK\3\4" + bytes(100), "expected an exported program of PyTorch, which is a zip archive"),
        (archive_of({"a.txt": b"text"}), "got another zip archive"),
        (archive_of({"m/archive_format": b"pt3"}), "archive_format is not pt2"),
    ],
)
def test_other_files_are_rejected(content: bytes, message: str) -> None:
    with pytest.raises(RelvmFormatError, match=message):
        from_pt2(content)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"m/archive_format": b"pt2"}, "the archive contains no exported program"),
        ({"m/archive_format": b"pt2", "m/byteorder": b"big"}, "only the byte order little is supported"),
        ({"serialized_exported_program.json": b"{}"}, "are pickles .serialized_state_dict.pt., which relvm does not"),
        ({"m/data.pkl": b""}, "a pickle or a TorchScript program, which relvm does not read"),
        ({"m/archive_format": b"pt2", "m/models/a.json": b"", "m/models/b.json": b""}, "several programs: a, b"),
    ],
)
def test_other_archives_are_refused(files: dict[str, bytes], message: str) -> None:
    with pytest.raises(RelvmUnsupportedError, match=message):
        from_pt2(archive_of(files))


def test_an_encrypted_archive_is_refused() -> None:
    content = bytearray(archive_of(files_of(MLP)))
    at = content.rfind(b"PK\1\2")
    content[at + 8] |= 1
    with pytest.raises(RelvmUnsupportedError, match="is encrypted"):
        from_pt2(bytes(content))


def test_a_file_that_claims_to_be_huge_is_rejected() -> None:
    content = bytearray(archive_of({"m/archive_format": b"pt2" * 50}, zipfile.ZIP_DEFLATED))
    at = content.rfind(b"PK\1\2")
    struct.pack_into("<L", content, at + 24, 1 << 31)
    with pytest.raises(RelvmFormatError, match="expected at most 64"):
        from_pt2(bytes(content))


def test_a_decompression_bomb_is_rejected() -> None:
    files = files_of(MLP)
    config = json.loads(files[WEIGHTS])
    path = "archive/data/weights/" + config["config"]["layers.0.weight"]["path_name"]
    content = bytearray(archive_of(files | {path: bytes(1 << 22)}, zipfile.ZIP_DEFLATED))
    at = content.find(path.encode(), content.find(b"PK\1\2")) - 46
    struct.pack_into("<L", content, at + 24, 1 << 30)
    with pytest.raises(RelvmFormatError, match=r"cannot have 1073741824 bytes|is damaged"):
        from_pt2(bytes(content))


def test_pickled_weights_are_refused_by_name_and_never_unpickled() -> None:
    def pickled(value: Any) -> None:
        value["config"]["layers.2.bias"]["use_pickle"] = True

    with pytest.raises(
        RelvmUnsupportedError, match=r"layers\.2\.bias is stored as a pickle, which relvm does not read"
    ):
        from_pt2(changed(pickled, WEIGHTS))
    bias = {"layers.2.bias": np.float32([1, 2, 3])}
    assert from_pt2(changed(pickled, WEIGHTS), weights=bias).functions


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sizes": [{"as_int": 1 << 20}, {"as_int": 1 << 20}]}, "is outside of its file"),
        ({"sizes": [{"as_int": -1}, {"as_int": 6}]}, "are not valid"),
        ({"strides": [{"as_int": 1 << 40}, {"as_int": 1}]}, "is outside of its file"),
        ({"strides": [{"as_int": 1}]}, "are not valid"),
        ({"storage_offset": {"as_int": 1 << 62}}, "is outside of its file"),
        ({"storage_offset": {"as_int": True}}, "expected a number"),
        ({"dtype": 99}, "99 is not a type of elements"),
        ({"sizes": [{"as_expr": {"expr_str": "s0"}}]}, "expected a number"),
    ],
)
def test_weights_that_do_not_fit_their_file_are_rejected(change: dict[str, Any], message: str) -> None:
    def wrong(value: Any) -> None:
        value["config"]["layers.0.weight"]["tensor_meta"].update(change)

    with pytest.raises(RelvmFormatError, match=message):
        from_pt2(changed(wrong, WEIGHTS))


@pytest.mark.parametrize(
    "change",
    [{"dtype": [7]}, {"sizes": [{"as_int": 0}, {"as_int": 1 << 62}]}, {"strides": [{"as_int": 1 << 62}] * 2}],
)
def test_descriptions_of_weights_that_make_no_sense(change: dict[str, Any]) -> None:
    def damage(value: Any) -> None:
        next(iter(value["config"].values()))["tensor_meta"].update(change)

    with pytest.raises(RelvmError):
        from_pt2(changed(damage, WEIGHTS))


def test_complex_weights_of_16_bits_are_refused() -> None:
    def is_complex(value: Any) -> None:
        value["config"]["layers.0.weight"]["tensor_meta"]["dtype"] = 9

    with pytest.raises(RelvmUnsupportedError, match="weights of the type complex32 are not supported"):
        from_pt2(changed(is_complex, WEIGHTS))


# ---- sizes ----


def test_symbolic_sizes_can_be_fixed() -> None:
    path = FOLDER / "sizes.pt2"
    (main,) = (function for function in from_pt2(path, dims={"s2": 3}).functions if function.name == "main")
    assert [str(param.type) for param in main.params] == ["f32[6, 4]", "i64[12]"]


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ({"batch": 3}, "unknown dimension batch; the model has s40"),
        ({"s40": 65}, "dims: s40 is 65, expected at most 64"),
        ({"s40": (1, 4)}, r"dims: s40 is \(1, 4\), expected a size"),
    ],
)
def test_sizes_that_cannot_be_given(dims: dict[str, Any], message: str) -> None:
    with pytest.raises(RelvmArgumentError, match=message):
        from_pt2(FOLDER / "cnn.core.pt2", dims=dims)


def test_a_module_does_not_depend_on_the_folder_of_its_file(tmp_path: Path) -> None:
    copy = tmp_path / "mlp.pt2"
    copy.write_bytes((FOLDER / "mlp.pt2").read_bytes())
    assert vm.build(from_pt2(copy)).to_bytes() == vm.build(from_pt2(FOLDER / "mlp.pt2")).to_bytes()


# ---- graphs ----


def test_another_version_of_the_schema_is_refused() -> None:
    with pytest.raises(RelvmUnsupportedError, match=r"version 9 of torch\.export's schema, written by PyTorch 2\.14"):
        from_pt2(changed(lambda value: value["schema_version"].update(major=9)))


def test_one_error_lists_every_unsupported_operator_with_its_source_line() -> None:
    def unknown(value: Any) -> None:
        for node in nodes_of(value)[:2]:
            node["target"] += "x"

    with pytest.raises(RelvmUnsupportedError) as caught:
        from_pt2(changed(unknown))
    first, *lines = str(caught.value).split("\n  ")
    assert first == "model: 2 nodes cannot be imported:"
    assert lines[0].startswith("linear (aten.linear.defaultx, ")
    assert "torch_fixtures.py:" in lines[0] and "module layers.0" in lines[0]
    assert lines[0].endswith("not supported; if PyTorch decomposes it, export with run_decompositions()")
    assert lines[1].startswith("gelu (aten.gelu.defaultx")


def test_unsupported_operators_in_branches_and_loops_are_listed() -> None:
    names: set[str] = set()

    def unknown(graph: Any) -> None:
        for node in graph["nodes"]:
            if node["target"].startswith("torch.ops.aten."):
                node["target"] += "x"
                names.add(node["name"])
            for argument in node["inputs"]:
                if "as_graph" in argument["arg"]:
                    unknown(argument["arg"]["as_graph"]["graph"])

    data = changed(lambda value: unknown(value["graph_module"]["graph"]), path=FOLDER / "control_flow.pt2")
    with pytest.raises(RelvmUnsupportedError) as caught:
        from_pt2(data)
    listed = {line.split()[0] for line in str(caught.value).split("\n  ")[1:]}
    assert len(names) > 5 and listed == names


def test_an_unknown_argument_is_refused() -> None:
    def other(value: Any) -> None:
        nodes_of(value)[0]["inputs"][2]["name"] = "offset"

    with pytest.raises(RelvmUnsupportedError, match="the argument offset is not supported"):
        from_pt2(changed(other))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda value: value.pop("graph_module"), "the field graph_module is None"),
        (lambda value: nodes_of(value)[0].pop("target"), "the field target is None"),
        (lambda value: nodes_of(value)[0]["inputs"][0].update(arg={}), "expected an object with one entry"),
        (lambda value: nodes_of(value)[1]["inputs"].clear(), "malformed: TypeError"),
        (lambda value: nodes_of(value).clear(), "no value is named softmax"),
        (lambda value: value["graph_module"]["graph"]["tensor_values"].clear(), "KeyError|malformed|no value"),
        (lambda value: value["range_constraints"].update(s0={"min_val": "2"}), "the range of s0"),
    ],
)
def test_a_graph_that_violates_the_schema_is_rejected(change: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(RelvmFormatError, match=message):
        from_pt2(changed(change))


def test_a_result_of_another_size_than_declared_is_rejected() -> None:
    def other(value: Any) -> None:
        value["graph_module"]["graph"]["tensor_values"]["linear"]["sizes"][1]["as_int"] = 17

    with pytest.raises(RelvmTypeError, match="the result is declared with the size 17 in axis 1"):
        from_pt2(changed(other))


def test_deeply_nested_json_is_rejected() -> None:
    files = files_of(MLP)
    for text in (b"[" * 1_000_000, b'{"a":' * 100_000, b"\xff", b"{"):
        with pytest.raises(RelvmFormatError, match="is not valid JSON"):
            from_pt2(archive_of(files | {GRAPH: text}))


def test_graphs_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relvm.frontend.torch.program.MAX_NODES", 2)
    with pytest.raises(RelvmFormatError, match="more than 2 nodes"):
        from_pt2(MLP)
    assert sys.getrecursionlimit() / 10 > limits.MAX_GRAPH_DEPTH


# ---- sizes ----


def test_expressions_of_sizes() -> None:
    n = dim_var("n")
    symbol = "Symbol('s0', positive=True, integer=True)"
    for text, expected in {
        symbol: n,
        f"Add(Mul(Integer(2), {symbol}), Integer(-1))": n * 2 - 1,
        f"FloorDiv({symbol}, Integer(2))": n // 2,
        f"CeilToInt(IntTrueDiv({symbol}, Integer(2)))": -(-n // 2),
        f"Pow({symbol}, Integer(2))": n * n,
        f"Mod({symbol}, Integer(4))": n % 4,
        f"floor(Mul(Rational(1, 2), {symbol}))": n // 2,
    }.items():
        assert as_size(parse_expression(text), {"s0": n}) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "(",
        "Symbol('s0'",
        "Add(1",
        "1 + 2",
        "Symbol('s0'))",
        "f(" * 100 + ")" * 100,
        "a" * 200_000,
        "'s0'",
        "Add(,)",
    ],
)
def test_malformed_expressions_are_rejected(text: str) -> None:
    with pytest.raises(RelvmFormatError, match="the expression of a size"):
        parse_expression(text)


def test_expressions_are_never_evaluated() -> None:
    text = "__import__('os')"
    with pytest.raises(RelvmUnsupportedError, match="a size that is computed by __import__ is not supported"):
        as_size(parse_expression(text), {})


def test_range_constraints_are_checked() -> None:
    machine = vm.VirtualMachine(vm.build(from_pt2(MLP), target="bytecode"))
    with pytest.raises(RelvmShapeError, match="at most 64"):
        machine["main"](np.zeros((65, 6), np.float32))


def test_expressions_of_parameters_are_checked() -> None:
    machine = vm.VirtualMachine(vm.build(from_pt2(FOLDER / "sizes.pt2"), target="bytecode"))
    with pytest.raises(RelvmShapeError):
        machine["main"](np.ones((5, 4), np.float32), np.zeros(10, np.int64))
    with pytest.raises(RelvmShapeError):
        machine["main"](np.ones((6, 4), np.float32), np.zeros(10, np.int64))


def test_assertions_of_the_program_are_carried_out() -> None:
    machine = vm.VirtualMachine(vm.build(from_pt2(FOLDER / "sizes.pt2"), target="bytecode"))
    with pytest.raises(RelvmShapeError, match=r"Runtime assertion failed for expression u\d >= 1"):
        machine["main"](-np.ones((4, 4), np.float32), np.zeros(8, np.int64))


# ---- weights, names and doors ----


def test_weights_replace_tensors_by_name() -> None:
    bias = np.float32([100, 0, 0])
    model = relvm.load_model(MLP, weights={"layers.2.bias": bias}, exec_mode="bytecode", target="bytecode")
    np.testing.assert_allclose(model(np.zeros((2, 6), np.float32)).numpy(), [[1, 0, 0]] * 2, atol=1e-6)
    with pytest.raises(RelvmNameError, match=r"no tensor bias"):
        from_pt2(MLP, weights={"bias": bias})
    with pytest.raises(RelvmShapeError, match=r"has shape \(2,\), expected \(3,\)"):
        from_pt2(MLP, weights={"layers.2.bias": bias[:2]})


def test_names_of_inputs_and_results() -> None:
    model = relvm.load_model(FOLDER / "cnn.pt2", exec_mode="bytecode", target="bytecode")
    assert model.input_names == ("image",) and model.output_names == ("scores", "features")
    state = relvm.load_model(FOLDER / "state.core.pt2", exec_mode="bytecode", target="bytecode")
    assert state.output_names == ("0", "1", "count", "cache", "x")


def test_from_torch_says_that_pytorch_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "torch.export", None)
    with pytest.raises(RelvmUnsupportedError, match="from_torch needs PyTorch"):
        from_torch(None)


def test_importing_a_file_does_not_import_pytorch() -> None:
    code = "import sys, relvm; relvm.load_model(sys.argv[1]); sys.exit('torch' in sys.modules)"
    options = {"check": True, "timeout": 120}
    subprocess.run([sys.executable, "-P", "-c", code, str(FOLDER / "mlp.pt2")], **options)


# ---- fuzzing ----

VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1 << 70,
    1.5,
    "",
    "x",
    [],
    {},
    [[]],
    {"as_int": 1},
    {"as_tensor": {"name": "x"}},
)


def _positions(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found.append((value, key))
        found += _positions(item)
    return found


def expect_no_crash(content: bytes) -> None:
    """Import a hostile file: the result is a module or a typed error."""
    with contextlib.suppress(RelvmError):
        from_pt2(content)


@pytest.mark.parametrize("name", ["mlp", "control_flow", "sizes"])
def test_mutated_graphs_give_typed_errors(name: str) -> None:
    generator = random.Random(name)
    files = files_of(FOLDER / f"{name}.pt2")
    for file in (each for each in files if each.endswith(".json")):
        original = files[file]
        for _ in range(60 if "models/" in file else 15):
            value = json.loads(original)
            for _ in range(generator.randint(1, 3)):
                container, key = generator.choice(_positions(value) or [({}, "")])
                if generator.random() < 0.3 and isinstance(container, dict):
                    container.pop(key, None)
                elif isinstance(container, list) and key < len(container) and generator.random() < 0.3:
                    container.insert(key, container[generator.randrange(len(container))])
                elif isinstance(container, dict) or key < len(container):
                    container[key] = generator.choice(VALUES)
            expect_no_crash(archive_of(files | {file: json.dumps(value).encode()}))


def test_mutated_bytes_give_typed_errors() -> None:
    generator = random.Random(0)
    for name in ("mlp.pt2", "sizes.pt2"):
        original = (FOLDER / name).read_bytes()
        for _ in range(150):
            content = bytearray(original)
            tail = generator.random() < 0.5  # the list of files is at the end
            for _ in range(generator.randint(1, 8)):
                low = max(0, len(content) - 1500) if tail else 0
                content[generator.randrange(low, len(content))] = generator.randrange(256)
            if generator.random() < 0.2:
                del content[generator.randrange(len(content)) :]
            expect_no_crash(bytes(content))
