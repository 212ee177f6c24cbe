"""Tests of the build cache for model files: builds that are found in it, and builds that are not."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from frontend.onnx_models import onnx

from relvm import vm
from relvm.frontend.onnx import from_onnx
from relvm.ir.expr import Module

pytestmark = pytest.mark.usefixtures("cache")

TEXT = """<ir_version: 8, opset_import: ["": 17]>
g (float[n, 4] x) => (float[n, 4] y) { c = Constant<value_float: float = NUMBER>() y = Mul(x, c) }"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write(tmp_path / "model.onnx", 3)


def write(path: Path, number: int) -> Path:
    onnx.save(onnx.parser.parse_model(TEXT.replace("= NUMBER", f"= {number}.0")), path)
    return path


def steps(module: Module, *args: object, **options: object) -> list[str]:
    """Build a module and return the steps of the build.  The list is empty if the build is found in the cache."""
    taken: list[str] = []
    vm.build(module, *args, progress=taken.append, **options)
    return taken


@pytest.mark.parametrize("mode", ["bytecode", "compiled", {"main": "compiled"}])
def test_a_second_build_is_the_first_one(model: Path, mode: object) -> None:
    first = vm.build(from_onnx(model), mode)
    assert steps(from_onnx(model), mode) == []
    second = vm.build(from_onnx(model), mode)
    assert second.to_bytes() == first.to_bytes() and second.source == first.source
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    assert np.array_equal(np.asarray(vm.VirtualMachine(second)["main"](x)), 3 * x)


def test_other_models_and_options_are_built(model: Path) -> None:
    module = from_onnx(model)
    assert steps(module, "compiled")
    assert steps(from_onnx(write(model, 4)), "compiled")
    assert steps(from_onnx(model, dims={"n": 2}), "compiled")
    assert steps(module, "bytecode")
    assert steps(module, "compiled", fused=False)
    assert "portable program" in steps(module, "compiled", portable=True)
    assert steps(module, "compiled", target="c -march=x86-64-v2")
    assert not steps(module, "compiled")


def test_a_module_made_of_a_model_is_built(model: Path) -> None:
    module = from_onnx(model)
    assert steps(module)
    changed = replace(module)
    assert changed is not module and steps(changed)


def test_whoever_looks_on_sees_a_build(model: Path) -> None:
    module = from_onnx(model)
    vm.build(module)
    seen = []
    vm.build(module, observer=lambda step, before, after, seconds: seen.append(step.name))
    assert seen and steps(module, verified=True)


def test_what_is_damaged_is_built_again(model: Path, cache: Path) -> None:
    module = from_onnx(model)
    vm.build(module, "compiled")
    (place,) = (cache / "builds").iterdir()
    content = place.read_bytes()
    place.write_bytes(content[: len(content) // 2])
    assert steps(module, "compiled")
    assert place.read_bytes() == content and not steps(module, "compiled")


def test_a_library_that_was_not_built_here_is_not_run(model: Path, cache: Path) -> None:
    module = from_onnx(model)
    vm.build(module, "compiled")
    for record in (cache / "built").iterdir():
        record.unlink()
    assert steps(module, "compiled")


def test_a_cache_that_cannot_be_written_stops_no_build(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELVM_CACHE_DIR", "/proc/nowhere")
    assert steps(from_onnx(model)) and steps(from_onnx(model))


def test_elements_in_another_file_are_part_of_the_key(tmp_path: Path) -> None:
    weights = onnx.numpy_helper.from_array(np.ones(4, np.float32), "w")
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["x", "w"], ["y"])],
        "g",
        [onnx.helper.make_tensor_value_info("x", 1, [4])],
        [onnx.helper.make_tensor_value_info("y", 1, [4])],
        [weights],
    )
    path = tmp_path / "model.onnx"
    saved = {"save_as_external_data": True, "location": "weights.bin", "size_threshold": 0}
    onnx.save(onnx.helper.make_model(graph), path, **saved)
    for value in (1, 2):
        (tmp_path / "weights.bin").write_bytes(np.full(4, value, np.float32).tobytes())
        assert steps(from_onnx(path)) and not steps(from_onnx(path))
        result = vm.VirtualMachine(vm.build(from_onnx(path)))["main"](np.ones(4, np.float32))
        assert np.asarray(result).tolist() == [1 + value] * 4


def test_the_sources_of_relvm_are_part_of_the_key() -> None:
    """The sources are found also in an editable installation, where modules and package data are in other folders."""
    from relvm.compiler.build_cache import _sources_digest

    assert _sources_digest() != hashlib.sha256(b"").hexdigest()


def test_the_sources_are_read_only_if_there_is_a_build_of_the_model(model: Path, monkeypatch) -> None:
    from relvm.compiler import build_cache

    read: list[None] = []
    monkeypatch.setattr(build_cache, "_sources_digest", lambda: read.append(None) or "0" * 64)
    entry = build_cache.find_auto_entry("origin", (), "c", None, fused=True)
    assert build_cache.cached_executable(entry) is None and not read
    executable = vm.build(from_onnx(model))
    read.clear()
    build_cache.write_executable(entry, executable)
    assert read
    assert build_cache.cached_executable(entry).to_bytes() == executable.to_bytes()
    monkeypatch.setattr(build_cache, "_sources_digest", lambda: "1" * 64)  # other sources
    assert build_cache.cached_executable(entry) is None


def test_builds_are_not_cached_if_the_sources_changed_after_the_import(model: Path, cache: Path, monkeypatch) -> None:
    from relvm.compiler import build_cache

    for imported, scan in ((0.0, build_cache._source_files), (build_cache._IMPORTED, unreadable)):
        monkeypatch.setattr(build_cache, "_IMPORTED", imported)
        monkeypatch.setattr(build_cache, "_source_files", scan)
        build_cache._sources_digest.cache_clear()
        try:
            assert build_cache._sources_digest() is None
            for mode in ("bytecode", "auto"):
                assert steps(from_onnx(model), mode) and steps(from_onnx(model), mode)
            assert not list((cache / "builds").glob("*"))
        finally:
            build_cache._sources_digest.cache_clear()


def unreadable(package: str):
    raise FileNotFoundError(package)


def test_the_record_of_an_installer_stands_for_unchanged_sources(tmp_path: Path) -> None:
    from relvm.compiler.build_cache import _recorded_rows, _rows, _source_files

    package, info = tmp_path / "relvm", tmp_path / "relvm-1.0.dist-info"
    (package / "compiler").mkdir(parents=True)
    info.mkdir()
    source, record = package / "compiler" / "target.py", info / "RECORD"
    source.write_text("x = 1\n")
    (package / "__init__.py").write_text("")

    def recorded(*rows: bytes) -> list[bytes] | None:
        record.write_bytes(b"".join(row + b"\r\n" for row in rows))
        return _recorded_rows(str(package), dict(_source_files(str(package))))

    own = _rows(str(package), dict(_source_files(str(package))))
    assert own[1].startswith(b"relvm/compiler/target.py,sha256=") and own[1].endswith(b",6")
    assert recorded(b"../../bin/relvm,sha256=7,235", *own, b"relvm/__pycache__/__init__.pyc,,") == own
    assert recorded(own[0]) is None, "RECORD does not list all files"
    assert recorded(*own, b"relvm/removed.py,sha256=7,5") is None
    assert recorded(b"_editable_relvm.py,sha256=7,5") is None
    later = record.stat().st_mtime + 1
    os.utime(source, (later, later))
    assert recorded(*own) is None, "a file was changed after the installation"
