"""Bundles: a compiled model as a Python package that needs relvm-runtime only."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import numpy as np
import pytest
from support.runtime_copy import copy_runtime

import relvm
from relvm import vm
from relvm.cli import main
from relvm.errors import RelvmArgumentError, RelvmNameError
from relvm.frontend.text import parse_module

PROGRAM = "def main(x: f32[n, 2], lambda_: i64[n]) -> (f32[n, 2], i64[n]) { return (relu(x), add(lambda_, lambda_)) }"


@pytest.fixture(scope="module")
def executable() -> vm.Executable:
    return vm.build(parse_module(PROGRAM), target="bytecode")


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the modules of relvm-runtime."""
    folder = tmp_path_factory.mktemp("runtime")
    copy_runtime(folder)
    return folder


def run(runtime: Path, packages: Path, code: str) -> str:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (runtime, packages)))}
    done = subprocess.run([sys.executable, "-P", "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_folder_runs_with_the_runtime_only(executable: vm.Executable, runtime: Path, tmp_path: Path) -> None:
    written = vm.bundle(executable, tmp_path / "packages", source="models/my-net.v2.onnx")
    assert written == tmp_path / "packages" / "my_net_v2"
    assert sorted(path.name for path in written.iterdir()) == ["__init__.py", "model.rvm", "py.typed"]
    code = """
import sys, numpy as np, my_net_v2
x = np.float32([[-1, 2]])
first, second = my_net_v2.run(x, np.int64([3]))
print(first.tolist(), second.tolist(), my_net_v2.load(threads=1)(x, [3])[1].numpy().tolist())
print(sorted(name for name in sys.modules if name.split(".")[:2][-1] in ("ir", "ops", "passes", "codegen")))
"""
    assert run(runtime, written.parent, code) == "[[0.0, 2.0]] [6] [6]\n[]\n"


def test_the_docstring_lists_inputs_and_outputs(executable: vm.Executable, tmp_path: Path) -> None:
    package = vm.bundle(executable, tmp_path, source="net.onnx")
    names: dict = {"__file__": str(package / "__init__.py"), "__name__": "net"}
    exec(compile((package / "__init__.py").read_text(), "net", "exec"), names)
    text = names["run"].__doc__
    assert "    x : array of float32, shape (n, 2)\n        The value x of the model, f32[n, 2].\n" in text
    assert "    lambda_ : array of int64, shape (n,)\n" in text
    assert (
        "        - output_0: array of float32, shape (n, 2)\n        - output_1: array of int64, shape (n,)\n" in text
    )
    assert "    - ``x``: f32[n, 2]\n" in names["load"].__doc__


def test_a_wheel_has_metadata_a_record_and_the_same_bytes_again(tmp_path: Path) -> None:
    wheels = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        built = vm.build(parse_module(PROGRAM), target="bytecode")
        wheels.append(vm.bundle(built, tmp_path / folder / "net_two-1.2.post1-py3-none-any.whl", source="net.onnx"))
    assert wheels[0].read_bytes() == wheels[1].read_bytes()
    with zipfile.ZipFile(wheels[0]) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    information = "net_two-1.2.post1.dist-info"
    metadata = message_from_bytes(files[f"{information}/METADATA"])
    assert (metadata["Name"], metadata["Version"]) == ("net_two", "1.2.post1")
    assert metadata.get_all("Requires-Dist") == [f"relvm-runtime>={relvm.__version__}"]
    rows = files[f"{information}/RECORD"].decode().splitlines()
    assert {row.split(",")[0] for row in rows} == files.keys()
    assert {name.split("/")[0] for name in files} == {"net_two", information}


def test_pip_installs_a_wheel(executable: vm.Executable, runtime: Path, tmp_path: Path) -> None:
    wheel = vm.bundle(executable, tmp_path / "net-1.0-py3-none-any.whl")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(tmp_path / "p")]
    subprocess.run([*command, str(wheel)], check=True, capture_output=True)
    code = "import numpy as np, net; print(net.run(np.float32([[-1, 2]]), np.int64([3]))[1].tolist())"
    assert run(runtime, tmp_path / "p", code) == "[6]\n"


def test_a_model_of_other_dtypes_requires_the_extra(tmp_path: Path) -> None:
    built = vm.build(parse_module("def main(x: f32[n]) -> bf16[n] { return cast(x, to=bf16) }"), target="bytecode")
    wheel = vm.bundle(built, tmp_path / "net-1.0-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert b"Requires-Dist: relvm-runtime[dtypes]>=" in archive.read("net-1.0.dist-info/METADATA")


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    built = vm.build(parse_module("def main(x: f32[n]) -> f32[n] { return relu(x) }"), target="bytecode")
    package = vm.bundle(built, tmp_path, source='a"""\nimport os\x1b[2J.onnx')
    source = (package / "__init__.py").read_text()
    names: dict = {"__file__": str(package / "__init__.py"), "__name__": "net"}
    exec(compile(source, "net", "exec"), names)
    assert "os" not in names
    assert "\x1b" not in source
    assert np.array_equal(names["run"](np.float32([-1, 1])), [0, 1])


def test_names_that_are_not_valid(executable: vm.Executable, tmp_path: Path) -> None:
    with pytest.raises(
        RelvmArgumentError, match=r"net\.whl: expected NAME-VERSION-py3-none-any\.whl, such as my_net-1\.0-"
    ):
        vm.bundle(executable, tmp_path / "net.whl", source="my-net.onnx")
    with pytest.raises(RelvmArgumentError, match=r"net-one-py3-none-any\.whl: expected NAME-VERSION"):
        vm.bundle(executable, tmp_path / "net-one-py3-none-any.whl")
    with pytest.raises(RelvmArgumentError, match=r"'relvm' cannot be the name of a package"):
        vm.bundle(executable, tmp_path, source="relvm.onnx")
    for reserved in ("json", "numpy", "pip", "relvm_runtime"):
        with pytest.raises(RelvmArgumentError, match=f"'{reserved}' cannot be the name of a package"):
            vm.bundle(executable, tmp_path, source=f"{reserved}.onnx")
    for name in ("a__b-1.0", "A-1.0+a..b", "A-1.0+."):
        with pytest.raises(RelvmArgumentError, match="expected NAME-VERSION"):
            vm.bundle(executable, tmp_path / f"{name}-py3-none-any.whl")
    with pytest.raises(RelvmNameError, match="no function mian; did you mean main"):
        vm.bundle(executable, tmp_path, function="mian")
    with pytest.raises(RelvmNameError, match=r"no function nope; expected one of main$"):
        vm.bundle(executable, tmp_path, function="nope")
    kernel = next(name for name, each in executable.functions.items() if each.kind == "kernel")
    with pytest.raises(RelvmNameError, match=f"function or kernel: {kernel}; expected one of main$"):
        vm.bundle(executable, tmp_path, function=kernel)
    assert list(tmp_path.iterdir()) == []


def test_other_folders_are_not_overwritten(executable: vm.Executable, tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "__init__.py").write_text("mine")
    with pytest.raises(RelvmArgumentError, match="net exists, and is not the package of a model"):
        vm.bundle(executable, tmp_path, source="net.onnx")
    assert (tmp_path / "net" / "__init__.py").read_text() == "mine"
    first = vm.bundle(executable, tmp_path, source="other.onnx")
    assert vm.bundle(executable, tmp_path, source="other.onnx") == first


def test_inputs_with_the_names_of_the_module(tmp_path: Path) -> None:
    built = vm.build(
        parse_module("def main(model: f32[n], tuple: f32[n]) -> (f32[n], f32[n]) { return (tuple, model) }"),
        target="bytecode",
    )
    package = vm.bundle(built, tmp_path, source="net.onnx")
    names: dict = {"__file__": str(package / "__init__.py"), "__name__": "net"}
    exec(compile((package / "__init__.py").read_text(), "net", "exec"), names)
    assert [each.tolist() for each in names["run"](np.float32([1]), np.float32([2]))] == [[2], [1]]


def test_the_command(executable: vm.Executable, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "net.relvm").write_text(PROGRAM)
    wheel = tmp_path / "net-1.0-py3-none-any.whl"
    assert main(["bundle", str(tmp_path / "net.relvm"), "-o", str(wheel), "--target", "bytecode"]) == 0
    assert f"wrote {wheel}" in capsys.readouterr().err
    executable.save(tmp_path / "net.rvm")
    assert main(["bundle", str(tmp_path / "net.rvm"), "-o", str(tmp_path / "folder")]) == 0
    assert (tmp_path / "folder" / "net" / "model.rvm").read_bytes() == (tmp_path / "net.rvm").read_bytes()
