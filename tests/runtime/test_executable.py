"""Tests of executables as objects and as files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from support.assembly_programs import COMMON, EVERYTHING, program_of, same_program
from support.modes import MODES

from relvm.bytecode.asm_parser import parse_text
from relvm.bytecode.program import Shape
from relvm.compiler.build import build
from relvm.errors import RelvmFormatError, RelvmNameError, RelvmUnsupportedError
from relvm.frontend.text import parse_module
from relvm.runtime.exec_builder import ExecBuilder
from relvm.runtime.executable import Executable, load
from relvm.runtime.packed_func import register_func
from relvm.runtime.virtual_machine import VirtualMachine

ANY = ["*"]  # permit all host functions

register_func("no name; (of Python)", lambda: None, override=True)
register_func("test.two", lambda a, b: a, override=True)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "program.rvm"
    Executable.from_program(program_of(EVERYTHING)).save(path)
    return path


def test_a_saved_executable_is_the_same(saved) -> None:
    executable = load(saved, functions=ANY)
    assert same_program(executable.program, program_of(EVERYTHING))
    assert executable.to_bytes() == saved.read_bytes()
    assert executable.signature == {"main": {"params": ["x", "y"], "text": "é"}}
    assert executable.source.endswith('// "quoted"\n\n}')
    assert list(executable.functions)[-1] == "main"


def test_the_tensors_of_a_file_are_used_in_place(saved) -> None:
    results = VirtualMachine(load(saved, functions=ANY))["main"](False, 0)
    np.testing.assert_array_equal(results[1], np.arange(20))
    assert results[3].shape == (0, 4) and results[2].item() is True
    assert np.isposinf(results[0].numpy()[0, 2]) and str(results[9]) == "-0.0" and np.isnan(results[10])
    assert results[4:9] == ((3, -1), (), 'a ; b "c" é', np.dtype("uint16"), -(1 << 63))


def test_results_outlive_the_executable_and_the_file(saved) -> None:
    tensor = VirtualMachine(load(saved, functions=ANY))["main"](False, 0)[1]
    saved.unlink()
    np.testing.assert_array_equal(tensor, np.arange(20))


def test_a_file_is_replaced_as_a_whole(saved, tmp_path) -> None:
    old = load(saved, functions=ANY)
    Executable.from_program(program_of(COMMON)).save(saved)
    assert len(old.to_bytes()) > len(saved.read_bytes())
    np.testing.assert_array_equal(VirtualMachine(old)["main"](False, 0)[1], np.arange(20))
    assert "main" not in VirtualMachine(load(saved, functions=ANY))
    assert [path.name for path in tmp_path.iterdir()] == ["program.rvm"]


def test_a_failed_save_leaves_nothing(saved, tmp_path, monkeypatch) -> None:
    def refuse(*paths, **folders):
        raise OSError("disk is gone")

    monkeypatch.setattr(os, "replace", refuse)
    before = saved.read_bytes()
    with pytest.raises(OSError, match="disk is gone"):
        Executable.from_program(program_of(COMMON)).save(saved)
    assert saved.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["program.rvm"]


@pytest.mark.parametrize("damage", ["empty", "truncated", "flipped", "foreign"])
def test_a_damaged_file_is_named(saved, damage) -> None:
    content = saved.read_bytes()
    damaged = {
        "empty": b"",
        "truncated": content[:-100],
        "flipped": content[:700] + bytes([content[700] ^ 1]) + content[701:],
        "foreign": b"PK\x03\x04" + content[4:],
    }[damage]
    saved.write_bytes(damaged)
    with pytest.raises(RelvmFormatError, match=r"program\.rvm: "):
        load(saved, functions=ANY)


def test_much_data_is_checked_on_request(tmp_path) -> None:
    b = ExecBuilder()
    with b.function("main", ["x"]):
        b.emit_call("vm.builtin.copy", [b.const(np.zeros(2_000_000, np.uint8))], dst=b.r(1))
        b.emit_ret(b.r(1))
    path = tmp_path / "large.rvm"
    b.get().save(path)
    content = bytearray(path.read_bytes())
    content[-1_000_000] ^= 1
    path.write_bytes(content)
    assert VirtualMachine(load(path))["main"](0).numpy().sum() == 1
    with pytest.raises(RelvmFormatError, match=r"section \d+ \(\w+\) is damaged"):
        load(path, check_data=True)


def test_what_runs_imports_nothing_that_is_only_for_people_or_compilers(tmp_path) -> None:
    """To save memory, running an executable does not import modules such as relvm.ir or hashlib (OpenSSL)."""
    path = tmp_path / "common.rvm"
    Executable.from_program(program_of(COMMON)).save(path)
    code = """
import sys, numpy
before = set(sys.modules)
from relvm.vm import VirtualMachine, load
VirtualMachine(load(sys.argv[1], functions=["*"]))
print(*sorted(set(sys.modules) - before))"""
    done = subprocess.run([sys.executable, "-c", code, path], cwd=tmp_path, capture_output=True, text=True, check=True)
    kept_out = {"hashlib", "logging", "pathlib", "statistics", "relvm.ir", "relvm.runtime.exec_builder"}
    assert not kept_out & set(done.stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import relvm; relvm.load_model(path)(x)",
        "from relvm.onnxruntime import InferenceSession; InferenceSession(path).run(None, {'x': x})",
        "from relvm.runtime.executable import load; from relvm.runtime.virtual_machine import VirtualMachine;"
        " VirtualMachine(load(path))['main'](x)",
    ],
    ids=["load_model", "onnxruntime", "runtime"],
)
def test_the_numpy_kernels_need_no_import(code: str, tmp_path) -> None:
    """An executable of target "numpy" calls them, and runs without an import of relvm.vm."""
    path = tmp_path / "model.rvm"
    build(parse_module("def main(x: f32[n]) -> f32[n] = relu(x)"), target="numpy").save(path)
    code = f"import sys, numpy as np\npath, x = sys.argv[1], np.ones(3, np.float32)\n{code}"
    subprocess.run([sys.executable, "-c", code, path], cwd=tmp_path, check=True)


def test_a_missing_file_is_an_os_error(tmp_path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing.rvm")


def test_another_major_version_is_refused(saved) -> None:
    content = bytearray(saved.read_bytes())
    content[8] = 2
    for trust in (False, True):
        with pytest.raises(RelvmUnsupportedError, match="version 2"):
            Executable.from_bytes(content, trust_native=trust)


def test_bytes_need_no_alignment(saved) -> None:
    content = b"x" + saved.read_bytes()
    assert Executable.from_bytes(memoryview(content)[1:], functions=ANY).to_bytes() == content[1:]


def test_an_executable_runs_after_its_text(saved) -> None:
    again = Executable.from_program(parse_text(load(saved, functions=ANY).as_text()))
    assert again.to_bytes() == saved.read_bytes()
    np.testing.assert_array_equal(VirtualMachine(again)["main"](False, 0)[1], np.arange(20))


def test_stats_count_what_there_is(saved) -> None:
    stats = load(saved, functions=ANY).stats()
    assert stats.size_bytes == saved.stat().st_size and stats.native_bytes == 0
    assert stats.tensor_bytes == 24 + 160 + 1 and stats.constants[0] == "f32[2, 3], 24 bytes"
    assert len(stats.functions["packed"]) == 10
    assert stats.functions["bytecode"] == ("identity", "pair", "forever", "closure_over", "apply", "_helper", "main")
    assert stats.instructions["main"] == 7 and stats.calls["vm.builtin.make_tuple"] == 3
    assert "test.two" not in stats.calls
    text = str(stats)
    for words in ("10 packed functions", "main, 7 instructions", "c1: i64[20], 160 bytes", "called at 3 places"):
        assert words in text


def test_stats_count_instructions_that_call_and_constants_of_every_kind() -> None:
    b = ExecBuilder()
    values = (np.zeros((2, 0)), Shape((2, 3)), np.dtype("int8"), "text", 1 << 40, 0.5)
    with b.function("main", ["x"]):
        for _ in range(2):
            b.emit_call("vm.builtin.make_tuple", [b.const(value) for value in values], dst=b.r(1))
        b.emit_call("main", [b.r(1)], dst=b.r(1))
        b.emit_ret(b.r(1))
    stats = b.get().stats()
    expected = ("f64[2, 0], 0 bytes", "Shape(2, 3)", "dtype i8", "string of 4 characters", "1099511627776", "0.5")
    assert stats.constants == expected and stats.tensor_bytes == 0
    assert stats.calls == {"vm.builtin.make_tuple": 2, "main": 1}
    assert stats.functions == {"bytecode": ("main",), "packed": ("vm.builtin.make_tuple",)}
    assert stats.instructions == {"main": 4}


def test_an_executable_says_what_it_is() -> None:
    assert repr(Executable.from_program(program_of(COMMON))) == "<Executable of 13 functions>"


@pytest.fixture(params=MODES)
def with_native(request, tmp_path, cache):
    """Return an executable file with native code that was compiled by this user."""
    if not shutil.which("gcc"):
        pytest.skip("no gcc")
    from relvm import vm
    from relvm.frontend.text import parse_module

    module = parse_module("def main(x: f32[n]) -> f32[n] { return add(x, x) }")
    executable = vm.build(module, request.param, "c")
    executable.save(tmp_path / "native.rvm")
    stats = executable.stats()
    assert stats.native_bytes > 1000
    assert stats.functions["native" if request.param == "compiled" else "bytecode"] == ("main",)
    assert stats.functions["kernel"] == ("add_f32",) and "vm.builtin.alloc_tensor" in stats.functions["packed"]
    return tmp_path / "native.rvm"


def doubled(executable: Executable) -> list[float]:
    return VirtualMachine(executable)["main"](np.float32([1, 2])).numpy().tolist()


def test_native_code_that_was_compiled_here_is_trusted(with_native) -> None:
    assert doubled(load(with_native)) == [2, 4]


def test_native_code_from_elsewhere_needs_the_callers_word(with_native, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("RELVM_CACHE_DIR", str(tmp_path / "another user's"))
    with pytest.raises(RelvmUnsupportedError, match=r"native\.rvm: .*trust_native=True"):
        load(with_native)
    with pytest.raises(RelvmUnsupportedError, match="trust_native=True"):
        Executable.from_bytes(with_native.read_bytes())
    assert doubled(load(with_native, trust_native=True)) == [2, 4]


def test_native_code_survives_the_text(with_native) -> None:
    executable = load(with_native)
    assert Executable.from_program(parse_text(executable.as_text())).to_bytes() == executable.to_bytes()


def test_a_machine_that_cannot_be_made_leaves_the_executable_usable() -> None:
    executable = Executable.from_program(program_of("f0 = packed test.executable.nowhere\n"))
    for _ in range(2):
        with pytest.raises(RelvmNameError, match=r"test\.executable\.nowhere"):
            VirtualMachine(executable)
