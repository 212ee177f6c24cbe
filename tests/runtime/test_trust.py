"""Without trust_native=True, native code is loaded only from executables that were completely built on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from relvm import vm
from relvm.bytecode.container import section_slices
from relvm.bytecode.encode import encode
from relvm.bytecode.program import Program
from relvm.errors import RelvmFormatError, RelvmUnsupportedError
from relvm.frontend.text import parse_module
from relvm.runtime.file_io import map_executable

TEXT = 'def main(x: f32[n]) => f32[n] { y = exp(x); return packed("test.trust", relu(y)) : f32[n] }'
X = np.ones(3, np.float32)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RELVM_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def program(cache: Path) -> Program:
    return vm.build(parse_module(TEXT), fused=False).program


def saved(program: Program, folder: Path) -> Path:
    path = folder / "changed.rvm"
    path.write_bytes(bytes(encode(program)))
    return path


def with_symbols(program: Program, symbol_of: Callable[[str], str]) -> Program:
    functions = (replace(f, symbol=symbol_of(f.symbol)) if f.kind == "kernel" else f for f in program.functions)
    return replace(program, functions=tuple(functions))


def swapped(program: Program) -> Program:
    first, second = [f.symbol for f in program.functions if f.kind == "kernel"]
    return with_symbols(program, {first: second, second: first}.__getitem__)


def another_host_function(program: Program) -> Program:
    renamed = (replace(f, name="test.other") if f.name == "test.trust" else f for f in program.functions)
    return replace(program, functions=tuple(renamed))


CHANGES: dict[str, Callable[[Program], Program]] = {
    "a function of the C library as a kernel": lambda program: with_symbols(program, lambda _: "memset"),
    "kernels that change places": swapped,
    "another function of the host": another_host_function,
    "other source, which adapt would compile": lambda program: replace(program, source=program.source + "\n"),
    "other code": lambda program: replace(
        program,
        functions=tuple(
            replace(f, registers=f.registers + 1) if f.kind == "bytecode" else f for f in program.functions
        ),
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_library_that_was_built_here_in_another_file_is_not_trusted(
    program: Program, change: Callable[[Program], Program], tmp_path: Path
) -> None:
    vm.load(saved(program, tmp_path))
    with pytest.raises(RelvmUnsupportedError, match="was not built on this machine; pass trust_native=True"):
        vm.load(saved(change(program), tmp_path))


def test_symbols_are_those_of_the_library_alone(program: Program, tmp_path: Path) -> None:
    for symbol in ("memset", "memcpy", "system"):
        path = saved(with_symbols(program, lambda _, symbol=symbol: symbol), tmp_path)
        with pytest.raises(RelvmFormatError, match=f"the native code does not define the symbol {symbol}"):
            vm.load(path, trust_native=True)


def test_elements_of_tensors_may_be_others(cache: Path, tmp_path: Path) -> None:
    program = vm.build(parse_module("def main(x: f32[3]) = add(x, const(f32[3], [1, 2, 3]))")).program
    (weights,) = (value for value in program.constants if isinstance(value, np.ndarray))
    constants = tuple(weights * 2 if value is weights else value for value in program.constants)
    machine = vm.VirtualMachine(vm.load(saved(replace(program, constants=constants), tmp_path)))
    np.testing.assert_array_equal(machine["main"](X), X + weights * 2)


@pytest.mark.parametrize("mode", [0o775, 0o757])
def test_records_that_others_could_have_written_count_for_nothing(
    program: Program, cache: Path, mode: int, tmp_path: Path
) -> None:
    path = saved(program, tmp_path)
    vm.load(path)
    (cache / "built").chmod(mode)
    with pytest.raises(RelvmUnsupportedError, match="was not built on this machine"):
        vm.load(path)


def test_records_in_a_folder_that_is_a_link_count_for_nothing(program: Program, cache: Path, tmp_path: Path) -> None:
    """Anyone who can write to the cache directory could create such a link to another folder of the user."""
    path = saved(program, tmp_path)
    vm.load(path)
    (cache / "built").rename(tmp_path / "elsewhere")
    (cache / "built").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RelvmUnsupportedError, match="was not built on this machine"):
        vm.load(path)


def test_an_object_of_the_cache_in_the_place_of_another_is_not_used(cache: Path) -> None:
    """Both were compiled on this machine, but the program calls functions of only one of them."""
    texts = [f"def main(x: f32[n]) -> f32[n] {{ return {function}(x) }}" for function in ("exp", "negative")]
    machines = [vm.VirtualMachine(vm.build(parse_module(text))) for text in texts[:1]]
    first = {path.name: path for path in (cache / "compiled").rglob("*") if path.is_file()}
    machines.append(vm.VirtualMachine(vm.build(parse_module(texts[1]))))
    second = [path for path in (cache / "compiled").rglob("*") if path.is_file() and path.name not in first]
    assert first and second
    libraries = [max(files, key=lambda path: path.stat().st_size) for files in (first.values(), second)]
    libraries[0].write_bytes(libraries[1].read_bytes())
    again = vm.VirtualMachine(vm.build(parse_module(texts[0])))
    np.testing.assert_array_equal(again["main"](X), machines[0]["main"](X))


def overwritten_while_mapped(folder: Path, mode: int) -> tuple[memoryview, bytes]:
    """Map an executable with file mode `mode` into memory, and overwrite the file.

    Return the mapped content after the file was overwritten, and the content of the file before.
    """
    weights = ", ".join(map(str, range(5000)))
    path = folder / "model.rvm"
    vm.build(parse_module(f"def main(x: f32[5000]) = add(x, const(f32[5000], [{weights}]))"), portable=True).save(path)
    path.chmod(mode)
    before = path.read_bytes()
    content = map_executable(path)
    assert np.frombuffer(content, np.uint8).ctypes.data % 64 == 0
    with path.open("r+b") as file:
        file.write(b"\xff" * len(before))
        file.truncate()
    return content, before


def test_what_is_loaded_is_a_copy_but_for_elements(cache: Path, tmp_path: Path) -> None:
    content, before = overwritten_while_mapped(tmp_path, 0o644)
    places = section_slices(memoryview(before))
    assert {"native", "code", "data", "portable"} <= places.keys()
    for name in places.keys() - {"data", "portable"}:
        assert content[places[name]] == before[places[name]], name
    assert content[places["data"]] != before[places["data"]]
    inner = section_slices(memoryview(before)[places["portable"]])
    for name in inner.keys() - {"data"}:
        assert content[places["portable"]][inner[name]] == before[places["portable"]][inner[name]], name


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_a_file_that_another_user_can_write_to_is_copied_as_a_whole(cache: Path, tmp_path: Path, mode: int) -> None:
    content, before = overwritten_while_mapped(tmp_path, mode)
    assert content == before


def test_a_file_of_another_user_is_copied_as_a_whole(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
    monkeypatch.setattr("relvm.system.posix._ROOT", -1)
    content, before = overwritten_while_mapped(tmp_path, 0o644)
    assert content == before
