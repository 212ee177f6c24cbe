"""WebAssembly modules that contain an executable, and target wasm32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relvm import vm
from relvm.cli import main
from relvm.compiler import find_compiler
from relvm.compiler.target import WASM_OPTIONS, parse_target
from relvm.compiler.webassembly import export_module
from relvm.errors import RelvmToolchainError, RelvmTypeError, RelvmUnsupportedError
from relvm.frontend.text import parse_module

TEXT = "def main(x: f32[n]) -> f32[n] = relu(add(x, x))"


def test_the_target_has_two_spellings() -> None:
    assert parse_target("wasm32").is_wasm
    assert parse_target(str(parse_target("wasm32"))) == parse_target("wasm32")
    assert not parse_target("c").is_wasm
    assert parse_target("wasm32").options == WASM_OPTIONS


def test_native_code_for_webassembly_does_not_run_here(package: Path) -> None:
    executable = vm.build(parse_module(TEXT), "compiled", "wasm32", portable=True)
    assert executable.program.native.triple == "wasm32-wasi"
    with pytest.raises(RelvmUnsupportedError, match="built for wasm32-wasi, but this computer is"):
        vm.VirtualMachine(executable)
    assert vm.VirtualMachine(executable.portable)["main"](np.ones(2, np.float32)).numpy().tolist() == [2, 2]


@pytest.mark.parametrize("target", ["wasm32", "bytecode", "auto"])
def test_the_command_writes_a_module(target: str, package: Path, tmp_path: Path) -> None:
    (tmp_path / "model.relvm").write_text(TEXT)
    assert main(["compile", str(tmp_path / "model.relvm"), "--target", target, "-o", str(tmp_path / "model.wasm")]) == 0
    content = (tmp_path / "model.wasm").read_bytes()
    assert content.startswith(b"\0asm")
    has_kernel_bytecode = b"kernel bytecode" in content
    assert has_kernel_bytecode == (target == "bytecode")


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RelvmTypeError, match="expected an Executable"):
        export_module(TEXT, tmp_path / "model.wasm")  # type: ignore[arg-type]
    executable = vm.build(parse_module(TEXT), "compiled", "x86-64-v2")
    with pytest.raises(RelvmUnsupportedError, match='native code for x86_64-linux-gnu; build it with target="wasm32"'):
        export_module(executable, tmp_path / "model.wasm")


def test_zig_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(find_compiler, "_packages", list)
    with pytest.raises(RelvmToolchainError, match="pip install ziglang"):
        vm.build(parse_module(TEXT), target="wasm32")
