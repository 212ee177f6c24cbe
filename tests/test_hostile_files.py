"""Special files, endless files and invalid executables are rejected at once, with an error that names the file."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from serve.signature import batch_axis, read_signature

from relvm import aot, vm
from relvm.cli import main
from relvm.cli.show import PICTURES
from relvm.distributed.batch import FileBatch, find_array_files, load_arguments
from relvm.distributed.inputs import FunctionSignature
from relvm.distributed.output_dir import OutputFolder
from relvm.distributed.runner import Runner
from relvm.errors import RelvmError, RelvmMemoryError, RelvmSyntaxError, RelvmUnsupportedError
from relvm.explore import Debugger
from relvm.frontend.onnx import from_onnx
from relvm.frontend.read_model import read_model
from relvm.frontend.script import script
from relvm.frontend.text import parse_module
from relvm.ir.symbolic import AnyDim, dim_op, dim_var, format_dim
from relvm.model import Model
from relvm.runtime.exec_builder import ExecBuilder

_SECONDS = 300  # generous time limit of each test
_SPARSE_BYTES = 8 << 30


@pytest.fixture(autouse=True)
def alarm() -> Iterator[None]:
    """Fail a test that does not end."""

    def end(*_: object) -> None:
        raise TimeoutError(f"not done within {_SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def fifo(path: Path) -> None:
    os.mkfifo(path)


def loop(path: Path) -> None:
    path.symlink_to(path.with_suffix(".other"))
    path.with_suffix(".other").symlink_to(path)


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(_SPARSE_BYTES)


def link_to_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def unix_socket(path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{folder}/{path.name}")
    os.close(folder)


def folder(path: Path) -> None:
    path.mkdir()


NO_FILES = [fifo, loop, sparse, link_to_device, unix_socket, folder]


def external_data(path: Path) -> None:
    """Import a model whose external data is in `path`."""
    tensor = onnx.TensorProto(name="w", dims=[4], data_type=onnx.TensorProto.FLOAT, data_location="EXTERNAL")
    tensor.external_data.add(key="location", value=path.name)
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4]) for name in ("x", "y")]
    add = onnx.helper.make_node("Add", ["x", "w"], ["y"])
    graph = onnx.helper.make_graph([add], "g", values[:1], values[1:], [tensor])
    model = path.parent / "referring.onnx"
    model.write_bytes(onnx.helper.make_model(graph).SerializeToString())
    from_onnx(model)


def script_source(path: Path) -> None:
    """Decorate a function with @script whose source file is allegedly `path`."""
    space: dict = {}
    exec(compile("def program(x):\n    return x\n", str(path), "exec"), space)
    script(space["program"])


def command_line_input(path: Path) -> None:
    (path.parent / "model.relvm").write_text("def main(x: f32[4]) -> f32[4] = x")
    arguments = ["run", str(path.parent / "model.relvm"), "--target", "numpy", "--input", f"x={path}"]
    if main(arguments) != 0:
        raise RelvmError(str(path))  # tests/cli checks the printed message


READERS: dict[str, Callable[[Path], object]] = {
    "model.rvm": vm.load,
    "library.so": vm.load,
    "module.so": aot.load_module,
    "model.onnx": read_model,
    "model.relvm": read_model,
    "weights.bin": external_data,
    "program.py": script_source,
    "input.npy": command_line_input,
}


@pytest.mark.parametrize("make", NO_FILES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("name", READERS)
def test_what_is_no_file_is_refused_at_once(name: str, make: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / name
    make(path)
    with pytest.raises((RelvmError, IsADirectoryError, OSError)) as caught:
        READERS[name](path)
    assert name in str(caught.value)
    if make in (fifo, loop, sparse, link_to_device):
        assert isinstance(caught.value, RelvmError)


@pytest.mark.parametrize("location", ["w\0.bin", "/etc/passwd", "../w", "a/../../w", "x" * 5000, ".", "", "/dev/stdin"])
def test_external_data_in_odd_places(location: str, tmp_path: Path) -> None:
    class Named(type(tmp_path)):
        name = location

    with pytest.raises(
        RelvmError, match=r"the elements are in|cannot read the elements from|must be a file in the model's folder"
    ):
        external_data(Named(tmp_path / "w"))


def test_patterns_follow_no_circles(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    for name in "abcdef":
        (inner / name).symlink_to(tmp_path)
    for place in (tmp_path / "x.npy", inner / "y.npy", inner / ".hidden.npy"):
        np.save(place, np.zeros(1))
    found = find_array_files(f"{tmp_path}/**/*.npy")
    assert found == [inner / "y.npy", tmp_path / "x.npy"]
    assert find_array_files(f"{tmp_path}/?.npy") == [tmp_path / "x.npy"]
    assert find_array_files(f"{tmp_path}/inner/.*.npy") == [inner / ".hidden.npy"]


@pytest.mark.parametrize("make", [fifo, loop, sparse], ids=lambda make: make.__name__)
def test_mapped_files_that_are_none(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "x.npy")
    with pytest.raises(RelvmError, match=r"x\.npy"):
        load_arguments(FileBatch(tmp_path / "x.npy"), FunctionSignature({}, {}, None), [])


def test_an_archive_that_unpacks_to_gigabytes(tmp_path: Path) -> None:
    with (
        zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x.npy", "w", force_zip64=True) as member,
    ):
        np.lib.format.write_array_header_1_0(member, {"descr": "|u1", "fortran_order": False, "shape": (3 << 29,)})
        for _ in range(3 << 5):
            member.write(bytes(1 << 24))
    with pytest.raises(RelvmError, match=r"x\.npz: the archive of [\d,]+ bytes unpacks to 1,610,"):
        load_arguments(FileBatch(tmp_path / "x.npz"), FunctionSignature({}, {}, None), [])


def test_a_file_of_arrays_that_states_terabytes(tmp_path: Path) -> None:
    with (tmp_path / "x.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (1 << 45,)})
    with pytest.raises(RelvmMemoryError, match=r"x\.npy is not a \.npy file, or too large"):
        load_arguments(FileBatch(tmp_path / "x.npy"), FunctionSignature({}, {}, None), [])


@pytest.mark.parametrize("make", [fifo, folder, loop], ids=lambda make: make.__name__)
def test_an_output_that_is_no_file_is_not_there(make: Callable[[Path], None], tmp_path: Path) -> None:
    runner = Runner(vm.build(parse_module("def main(x: f32[n]) -> f32[n] = relu(x)"), target="numpy"))
    output = OutputFolder(tmp_path / "out", runner)
    output.claim(overwrite=False)
    make(output.path / "x.npz")
    assert output.path / "x.npz" not in output.existing_files()


def test_an_output_folder_that_is_a_circle_of_links(tmp_path: Path) -> None:
    loop(tmp_path / "out")
    runner = Runner(vm.build(parse_module("def main(x: f32[n]) -> f32[n] = relu(x)"), target="numpy"))
    output = OutputFolder(tmp_path / "out", runner)
    output.outputs([tmp_path / "x.npy"])
    with pytest.raises(OSError, match="out"):
        output.claim(overwrite=False)


# ---- dimensions ----


@pytest.mark.parametrize("function", ["floordiv", "mod", "min", "max"])
@pytest.mark.parametrize("doubled", [False, True])
def test_deep_dimensions_are_refused(function: str, doubled: bool) -> None:
    dim: AnyDim = dim_var("n")
    others = itertools.cycle([dim_var("a"), dim_var("b")])
    with pytest.raises(
        RelvmUnsupportedError, match=r"a dimension (has \d+ variables and operators|nests \d+ operators)"
    ):
        for _ in range(3000):
            dim = dim_op(function, dim + 1, dim * 2 + next(others) if doubled else next(others))
    assert len(format_dim(dim)) < 200_000


def test_deep_dimensions_of_a_text_and_of_a_model(tmp_path: Path) -> None:
    text = "n"
    for number in range(150):
        text = f"({text} + 1) % m{number}" if number % 2 else f"({text} + 1) // m{number}"
    sizes = ", ".join(f"m{number}" for number in range(150))
    with pytest.raises(RelvmError, match=r"deep\.relvm|nested"):
        parse_module(f"def main(x: f32[n, {sizes}], y: f32[{text}]) -> f32[n] = x", "deep.relvm")
    nodes = [onnx.helper.make_node("Shape", ["x"], ["s0"], start=0, end=1)]
    nodes.append(onnx.helper.make_node("Shape", ["x"], ["m"], start=1, end=2))
    for number in range(600):
        nodes.append(onnx.helper.make_node("Add", [f"s{number}", "one"], [f"t{number}"]))
        nodes.append(onnx.helper.make_node("Mod" if number % 2 else "Div", [f"t{number}", "m"], [f"s{number + 1}"]))
    nodes.append(onnx.helper.make_node("ConstantOfShape", ["s600"], ["y"]))
    make = onnx.helper.make_tensor_value_info
    one = onnx.numpy_helper.from_array(np.array([1]), "one")
    given, made = make("x", onnx.TensorProto.FLOAT, ["n", "m"]), make("y", onnx.TensorProto.FLOAT, None)
    graph = onnx.helper.make_graph(nodes, "g", [given], [made], [one])
    onnx.save(onnx.helper.make_model(graph), tmp_path / "deep.onnx")
    vm.build(from_onnx(tmp_path / "deep.onnx"), target="numpy")  # sizes too complex for a dimension become scalars


# ---- executables with invalid metadata ----

ODD = [
    None,
    5,
    "",
    "x" * 100_000,
    [],
    [[]],
    {},
    [5],
    {"main": 5},
    "f32[",
    "f32[" + "(" * 5000,
    "f32[n, " + "n * " * 5000 + "n]",
    "f32[99999999999999999999]",
    "list[" * 5000,
    "(" + "f32[n], " * 5000 + ")",
    "f32[" + "n, " * 30_000 + "n]",
    "(" + "a" * 200_000,
    "no_such[n]",
    "f32[n // 0]",
    "\x1b[31m",
    True,
    -1,
    1e308,
]


def odd_executables() -> Iterator[tuple[dict, dict]]:
    """Yield pairs of a signature and a debug section in which one part is invalid."""
    param = {"name": "x", "type": "f32[n, 2]"}
    signature = {"params": [param], "result": "f32[n, 2]", "attributes": {"input_names": ["x"], "output_names": ["y"]}}
    said = {"instructions": ["y", ""], "origins": [["model.relvm:1:1"], []], "values": {"y": ["model.relvm:1:1"]}}
    for odd in ODD:
        for key in signature:
            yield {"main": {**signature, key: odd}}, {"main": said}
        for key in param:
            yield {"main": {**signature, "params": [{**param, key: odd}]}}, {"main": said}
        for key in ("input_names", "output_names", "upper_bounds"):
            yield {"main": {**signature, "attributes": {**signature["attributes"], key: odd}}}, {"main": said}
        for key in said:
            yield {"main": signature}, {"main": {**said, key: odd}}
            yield {"main": signature}, {"main": {**said, key: [odd, odd]}}
        yield {"main": signature}, {"main": {**said, "origins": [[odd], [odd]], "values": {"y": odd}}}
        yield {"main": odd}, {"main": odd}


def served(executable: vm.Executable) -> None:
    batch_axis(read_signature(Model(executable)))


def test_whatever_an_executable_states_is_used_or_refused(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Nothing that reads metadata crashes: the server, `relvm map`, `run`, `debug` and `show`, and pictures."""
    np.save(tmp_path / "x.npy", np.ones((3, 2), np.float32))
    path = tmp_path / "odd.rvm"
    count = 0
    for signature, debug in odd_executables():
        b = ExecBuilder()
        with b.function("main", ["x"]):
            b.emit_call("vm.builtin.copy", [b.r(0)], dst=b.r(1))
            b.emit_ret(b.r(1))
        b.signature, b.debug = signature, debug
        b.get().save(path)
        executable = vm.load(path)
        for use in (served, lambda each: FunctionSignature.of(each, "main"), debugged, profiled):
            try:
                use(executable)
                count += 1
            except RelvmError:
                continue
        for arguments in (
            ["run", str(path), "--input", f"x={tmp_path / 'x.npy'}"],
            ["run", str(path), "--random", "--seed", "1"],
            ["show", str(path), "--stage", "bytecode"],
            ["verify", str(path)],
        ):
            assert main(arguments) in (0, 1)
    assert count > 100
    assert "Traceback" not in capsys.readouterr().err


def debugged(executable: vm.Executable) -> None:
    with Debugger(executable) as debugger:
        debugger.break_at("y")
        str(debugger.run("main", np.ones((1, 2), np.float32)))
        debugger.registers()
        debugger.stack()


def profiled(executable: vm.Executable) -> None:
    profile = vm.VirtualMachine(executable).profile("main", np.ones((1, 2), np.float32))
    assert str(profile)


@pytest.mark.parametrize("make", [fifo, sparse, link_to_device, loop], ids=lambda make: make.__name__)
def test_the_source_of_a_stop_is_not_waited_for(make: Callable[[Path], None], tmp_path: Path) -> None:
    """The source locations in an executable can name any file."""
    make(tmp_path / "source.relvm")
    b = ExecBuilder()
    with b.function("main", ["x"]):
        b.emit_call("vm.builtin.copy", [b.r(0)], dst=b.r(1))
        b.emit_ret(b.r(1))
    b.debug = {"main": {"instructions": ["y", ""], "origins": [[f"{tmp_path / 'source.relvm'}:1:1"], []]}}
    with Debugger(b.get()) as debugger:
        debugger.break_at("y")
        assert debugger.run("main", 5).source == ""


# ---- archives, libraries and scripts ----


def test_damaged_libraries_are_refused(tmp_path: Path) -> None:
    config = aot.AotConfig(runtime="hosted")
    program = aot.build(parse_module("def main(x: f32[n]) -> f32[n] = relu(x)"), config)
    library = aot.compile_library(program).library
    path = tmp_path / "module.so"
    cuts = [library[:length] for length in (0, 4, 20, 63, 64, 200, len(library) // 2, len(library) - 1)]
    changed = [library[:at] + b"\xff" * 8 + library[at + 8 :] for at in range(0, 64, 8)]
    for content in (*cuts, *changed, b"\x7fELF" + b"\xff" * 1000):
        path.write_bytes(content)
        with pytest.raises(RelvmError, match=r"module\.so"):
            aot.load_module(path)
        with pytest.raises(RelvmError, match=r"module\.so"):
            vm.load(path)
    path.write_bytes(library)
    assert aot.load_module(path).metadata.mod_name == "model"


CHANGED = [b"\xff\xfe", b"", b"x = (", b"\0\0\0", b"def other(): pass", b"  ) (", b"(" * 5000]


@pytest.mark.parametrize("content", CHANGED)
def test_a_script_whose_file_has_changed(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "changed.py"
    path.write_text("def program(x):\n    return x\n")
    space: dict = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    path.write_bytes(content)
    with pytest.raises(RelvmError, match=r"changed\.py"):
        script(space["program"])


def test_a_script_of_deep_expressions(tmp_path: Path) -> None:
    path = tmp_path / "deep.py"
    path.write_text(f"def program(x: f32[4]):\n    return {'-' * 900}x\n")
    space: dict = {}
    exec(compile("def program(x):\n    return x\n", str(path), "exec"), space)
    with pytest.raises(RelvmSyntaxError, match=r"deep\.py.*nested too deeply"):
        _ = script(space["program"]).module


def test_pictures_of_many_nodes(tmp_path: Path) -> None:
    lines = "\n".join(f"  y{i + 1} = relu(y{i})" for i in range(400))
    (tmp_path / "long.relvm").write_text(f"def main(y0: f32[4]) -> f32[4] {{\n{lines}\n  return y400\n}}")
    for picture in PICTURES:
        drawn = tmp_path / f"{picture}.svg"
        assert main(["show", str(tmp_path / "long.relvm"), "--picture", picture, "-o", str(drawn)]) == 0
        ElementTree.parse(drawn)
