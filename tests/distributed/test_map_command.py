"""Tests of `relvm map`: input and output files, and interrupted runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil  # a dependency of Dask
import pytest
from distributed import Client
from support.command import relvm

from relvm import vm
from relvm.distributed import map_files
from relvm.errors import RelvmArgumentError, RelvmFormatError
from relvm.frontend.read_model import read_model
from relvm.frontend.text import parse_module

# Takes about 30 ms for each file.
SLOW = """def main(x: f32[n]) -> (f32[n], i64) = (add(x, x), @loop(3000000))
def loop(i: i64) -> i64 = if i > 0 then @loop(i - 1) else i
"""
FILES = 60
DOUBLE = "def main(x: f32[n]) -> f32[n] = add(x, x)\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "slow.relvm").write_text(SLOW)
    (tmp_path / "in").mkdir()
    for number in range(FILES):
        np.save(tmp_path / "in" / f"{number:02}.npy", np.float32([number]))
    return tmp_path


def outputs(folder: Path, out: str = "out") -> dict[str, list]:
    """Read all output files, which must be complete."""
    found = {}
    for path in sorted((folder / out).glob("*.npz")):
        with np.load(path) as arrays:
            found[path.stem] = [arrays[name].tolist() for name in arrays.files]
    return found


def test_an_interrupted_run_goes_on_where_it_stopped(folder: Path) -> None:
    arguments = ("map", "slow.relvm", "--target", "numpy", "--inputs", "in", "--output", "out", "--workers", "2")
    command = [sys.executable, "-m", "relvm", *arguments]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 600
    while len(list((folder / "out").glob("*.npz"))) < 5:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # like a terminal, also interrupts the workers
    _, errors = process.communicate(timeout=600)
    assert (process.returncode, errors) == (130, "relvm: interrupted\n")
    earlier = {path: path.stat().st_mtime_ns for path in (folder / "out").glob("*.npz")}
    assert 5 <= len(earlier) < FILES and len(outputs(folder)) == len(earlier)

    # A file that fails is processed again by the next run.
    np.save(folder / "in/99.npy", np.ones((2, 2)))
    done = relvm(*arguments, cwd=folder)
    assert done.returncode == 1
    failed, said = done.stderr.splitlines()
    assert failed.startswith(f"relvm: error: batch {folder / 'in/99.npy'}: RelvmTypeError: main: argument x: expected")
    assert said == f"relvm: wrote {FILES - len(earlier)} files to out; {len(earlier)} were there; 1 failed"
    assert {path: path.stat().st_mtime_ns for path in earlier} == earlier
    assert outputs(folder) == {f"{number:02}": [[2 * number], 0] for number in range(FILES)}
    np.save(folder / "in/99.npy", np.float32([99]))
    done = relvm(*arguments, cwd=folder)
    assert (done.returncode, done.stderr) == (0, f"relvm: wrote 1 file to out; {FILES} were there\n")


def test_an_interrupt_while_the_cluster_starts_says_no_more_than_that(folder: Path) -> None:
    command = ["map", "slow.relvm", "--target", "numpy", "--inputs", "in", "--output", "out", "--workers", "2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "relvm", *command], cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 600
    while len(psutil.Process(process.pid).children()) < 2:  # the resource tracker and the first worker
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.001)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=600)
    assert (process.returncode, errors) == (130, "relvm: interrupted\n")
    assert not (folder / "out").exists()


def test_a_cluster_that_is_there_is_used(folder: Path, client: Client) -> None:
    build().save(folder / "double.rvm")
    address = client.scheduler.address
    arguments = ("--inputs", "in/0*.npy", "--output", "new/out", "--scheduler", address)
    done = relvm("map", "double.rvm", *arguments, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "relvm: wrote 10 files to new/out\n")
    assert outputs(folder, "new/out") == {f"0{number}": [[2 * number]] for number in range(10)}


def test_inputs_and_outputs_have_the_names_of_the_model(folder: Path, client: Client) -> None:
    onnx = pytest.importorskip("onnx")
    kinds = [
        onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["n"]) for n in ("in/x:0", "in/y:0", "out:0")
    ]
    nodes = [onnx.helper.make_node("Sub", ["in/x:0", "in/y:0"], ["out:0"])]
    graph = onnx.helper.make_graph(nodes, "names", kinds[:2], kinds[2:])
    opset = onnx.helper.make_opsetid("", 17)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8), folder / "model.onnx")
    (folder / "named").mkdir()
    np.savez(folder / "named/a.npz", **{"in/y:0": np.float32([1]), "in/x:0": np.float32([3])})
    executable = vm.build(read_model(folder / "model.onnx"), target="numpy")
    (mapped,) = map_files(executable, folder / "named", folder / "out", client=client)
    assert mapped.error is None
    with np.load(mapped.output) as arrays:
        assert {name: arrays[name].tolist() for name in arrays.files} == {"out:0": [2]}


def test_outputs_of_dtypes_that_numpy_does_not_have_are_inputs_of_the_next_run(folder: Path, client: Client) -> None:
    narrow = 'def main(output: f32[n]) -> f8e5m2[n] = cast(output, to="f8e5m2")'
    back = 'def main(output: f8e5m2[n]) -> f32[n] = cast(output, to="f32")'
    for text, source, target in ((narrow, "in", "narrow"), (back, "narrow", "out")):
        executable = vm.build(parse_module(text), target="numpy")
        assert all(
            each.error is None for each in map_files(executable, folder / source, folder / target, client=client)
        )
    assert outputs(folder)["04"] == [[4]]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--workers", "0"), 1, "--workers 0: expected at least 1"),
        (("--workers", "2", "--scheduler", "tcp://127.0.0.1:1"), 2, "not allowed with argument"),
        (("--scheduler", ""), 1, "--scheduler '': expected an address"),
        (("--scheduler", "localhost"), 1, "--scheduler localhost: missing port number"),
        (("--retries", "-1"), 1, "--retries -1: expected at least 0"),
        (("--function", "other", "--workers", "1"), 1, "the executable has no function other; its functions are main"),
    ],
)
def test_options_that_have_no_meaning_are_refused(
    folder: Path, arguments: tuple[str, ...], status: int, message: str
) -> None:
    (folder / "double.relvm").write_text(DOUBLE)
    given = ("double.relvm", "--target", "numpy", "--inputs", "in", "--output", "out", *arguments)
    done = relvm("map", *given, cwd=folder)
    assert done.returncode == status and message in done.stderr and "Traceback" not in done.stderr
    assert not outputs(folder)


# ---- the output folder ----


def build(text: str = DOUBLE) -> vm.Executable:
    return vm.build(parse_module(text), target="numpy")


def test_outputs_of_another_executable_are_not_mixed_with_new_ones(folder: Path, client: Client) -> None:
    os.chdir(folder)
    inputs, double, triple = folder / "in", build(), build("def main(x: f32[n]) -> f32[n] = add(x, add(x, x))")
    first = list(map_files(double, inputs, "out", client=client))
    assert [each.skipped for each in first] == [False] * FILES and not any(each.error for each in first)
    assert [each.source for each in first] == sorted(inputs.iterdir()) and first[7].output == folder / "out/07.npz"
    assert all(each.skipped for each in map_files(double, inputs, "out", client=client))
    with pytest.raises(
        RelvmArgumentError,
        match=r"contains the outputs of function main of executable .*; choose another folder, or pass --o",
    ):
        map_files(triple, inputs, "out", client=client)
    assert outputs(folder)["07"] == [[14]]
    results = map_files(triple, inputs, "out", client=client, overwrite=True)
    assert not outputs(folder)  # a folder never contains outputs of two executables
    list(results)
    assert outputs(folder)["07"] == [[21]] and len(outputs(folder)) == FILES


def test_a_run_whose_folder_was_given_to_another_one_writes_nothing_more(folder: Path, client: Client) -> None:
    triple = build("def main(x: f32[n]) -> f32[n] = add(x, add(x, x))")
    older = map_files(build(), folder / "in", folder / "out", client=client, ahead=1)
    next(older)
    newer = map_files(triple, folder / "in", folder / "out", client=client, overwrite=True)
    errors = [each.error for each in older]
    assert all("belongs to a run of another executable or function" in str(error) for error in errors[1:])
    list(newer)
    assert outputs(folder) == {f"{number:02}": [[3 * number]] for number in range(FILES)}


def test_a_folder_that_workers_do_not_have_is_named(folder: Path, client: Client) -> None:
    results = map_files(build(), folder / "in/0*.npy", folder / "out", client=client)
    (folder / "out/relvm-map.json").unlink()
    assert "choose a folder that all workers share" in str(next(results).error)


def test_folders_that_are_not_of_outputs_are_left_alone(folder: Path, client: Client) -> None:
    (folder / "mine").mkdir()
    (folder / "mine/a.npz").touch()
    (folder / "damaged").mkdir()
    for record in ("{", "[]", json.dumps({"relvm-map": 2})):
        (folder / "damaged/relvm-map.json").write_text(record)
        with pytest.raises(RelvmFormatError, match=r"relvm-map\.json is not a valid record of outputs"):
            map_files(build(), folder / "in", folder / "damaged", client=client, overwrite=True)
    for out, message in [
        ("mine", r"contains a\.npz but no relvm-map\.json"),
        ("in", "is in the output folder"),
    ]:
        with pytest.raises(RelvmArgumentError, match=message):
            map_files(build(), folder / "in", folder / out, client=client, overwrite=True)
    np.savez(folder / "in/07.npz", x=np.float32([1]))
    with pytest.raises(RelvmArgumentError, match=r"07\.npy and .*07\.npz have the same output"):
        map_files(build(), folder / "in", folder / "out", client=client)
    assert sorted(path.name for path in folder.iterdir()) == ["damaged", "in", "mine", "slow.relvm"]
    assert len(list((folder / "in").iterdir())) == FILES + 1 and (folder / "mine/a.npz").exists()
