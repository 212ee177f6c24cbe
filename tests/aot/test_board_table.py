"""Boards: exports for a board use its tools and flags, and models that do not fit are refused."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from relvm import aot
from relvm.aot.project.board_fit import compiler_options
from relvm.cli.main import main
from relvm.errors import RelvmArgumentError, RelvmMemoryError, RelvmNameError, RelvmTypeError, RelvmUnsupportedError
from relvm.frontend.text import parse_module
from relvm.ir.expr import Module

USABLE = [board for board in aot.BOARDS if not board.refusal]


def network(columns: int = 4, rows: int = 3) -> Module:
    weights = ", ".join(["[" + ", ".join(["1.5"] * columns) + "]"] * 4)
    return parse_module(
        f"def main(x: f32[{rows}, 4]) -> f32[{rows}, {columns}] = "
        f"softmax(matmul(x, const(f32[4, {columns}], [{weights}])))"
    )


def build(board: str | None, module: Module | None = None, **options) -> aot.AotProgram:
    return aot.build(module or network(), aot.AotConfig(board=board, **options))


def test_the_names_of_boards_are_unique_and_their_facts_complete() -> None:
    assert len({board.name for board in aot.BOARDS}) == len(aot.BOARDS)
    for board in aot.BOARDS:
        assert re.fullmatch("[a-z][a-z0-9_]*", board.name) and board.title and board.processor
        assert 1024 <= board.ram_bytes < board.flash_bytes
        assert board.tools.endswith("-") and board.flags
        assert board.arduino.count(":") >= 2


@pytest.mark.parametrize("board", USABLE, ids=lambda board: board.name)
def test_an_export_has_the_tools_and_flags_of_its_board(board: aot.Board) -> None:
    files = build(board.name).files()
    makefile = files["Makefile"].decode()
    assert f"CC = {board.tools}gcc" in makefile
    assert f"CFLAGS ?= -Os {' '.join(board.flags)}" in makefile
    constants = files["src/model_constants.c"].decode()
    assert ("__attribute__((section(" in constants) == bool(board.constants_section)


def test_an_export_for_a_board_favours_size() -> None:
    assert aot.AotConfig(board="pico").kernel_favour == "size"
    assert aot.AotConfig(board="pico", favour="speed").kernel_favour == "speed"
    kernels = build("pico").files()["src/model_kernels.c"].decode()
    assert "rvm_tile_f32" not in kernels and "int64_t" not in kernels


def test_a_model_that_needs_too_much_flash_is_refused() -> None:
    need = r"needs 284,160 bytes of flash \(284,160 for constants\), but Arduino Uno R4 has 245,760; quantize the model"
    with pytest.raises(RelvmMemoryError, match=f"board uno_r4: the model {need}"):
        build("uno_r4", network(columns=17760, rows=1))
    assert build("nano33ble", network(columns=17760, rows=1)).board_memory().flash_bytes == 284160


def test_a_model_that_needs_too_much_ram_is_refused() -> None:
    need = r"needs 60,000 bytes of RAM \(20,000 for pools, 40,000 for inputs and outputs\), but .* has 32,768"
    with pytest.raises(RelvmMemoryError, match=f"{need}; quantize the model .*, make its inputs smaller"):
        build("uno_r4", network(rows=1250))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"board": "uno"}, RelvmUnsupportedError, "Arduino Uno is not supported: its 8-bit processor has 16-bit int"),
        ({"board": "pica"}, RelvmNameError, "board: no board pica; did you mean pico"),
        ({"board": 3}, RelvmTypeError, "board"),
        ({"board": "pico", "runtime": "hosted"}, RelvmArgumentError, "a board requires runtime='bare'"),
    ],
)
def test_boards_that_are_refused(options: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        aot.AotConfig(**options)


@pytest.mark.parametrize(
    ("text", "is_narrow"),
    [
        ("def main(x: f32[4, 5]) -> f32[4] = sum(x, axes=(1,))", True),
        ('def main(x: f32[n, 5]) -> f32[n] with (upper_bounds=(("n", 9),)) { return sum(x, axes=(1,)) }', False),
        ("def main(x: i64[4, 5]) -> i64[4, 5] = add(x, x)", False),
        ("def main(x: f32[70000, 40000]) -> f32[70000, 40000] = add(x, x)", False),
        ("def main(x: f32[46340, 46340]) -> f32[46340, 46340] = add(x, x)", True),
    ],
)
def test_counters_have_32_bits_where_that_is_proven(text: str, is_narrow: bool) -> None:
    kernels = aot.build(parse_module(text), aot.AotConfig(favour="size")).sources.files["src/model_kernels.c"]
    assert ("int64_t" not in kernels) == is_narrow
    assert "int64_t" in aot.build(parse_module(text), aot.AotConfig()).sources.files["src/model_kernels.c"]


def test_the_command_says_what_a_model_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "model.relvm"
    model.write_text(str(network()))
    assert main(["export", str(model), "--board", "esp32", "-o", str(tmp_path / "out")]) == 0
    assert re.search(
        r"ESP32 DevKit: flash [\d,]+ of 1,310,720 bytes \(constants 64, code .*\), RAM 144 of 327,680 bytes "
        r"\(pools 48, inputs and outputs 96\)",
        capsys.readouterr().err,
    )
    assert main(["export", str(model), "--board", "mega", "-o", str(tmp_path / "out")]) == 1
    assert "Arduino Mega 2560 is not supported" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["pico", "nucleo_f411re", "teensy41", "pico2"])
def test_the_makefile_compiles_for_the_board(name: str, tmp_path: Path) -> None:
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("not installed: arm-none-eabi-gcc (.ci/run has the packages)")
    program = build(name)
    program.write(tmp_path)
    done = subprocess.run(["make", "-s", "-C", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    board = next(board for board in aot.BOARDS if board.name == name)
    assert {*board.flags} < {*compiler_options(board)}
    sections = subprocess.run(
        ["arm-none-eabi-objdump", "-h", str(tmp_path / "libmodel.a")], capture_output=True, text=True
    )
    assert (".progmem" in sections.stdout) == (name == "teensy41")
    code_bytes = program.board_memory(measured=True).code_bytes
    assert code_bytes is not None and 200 < code_bytes < 4000


def test_inputs_whose_sizes_vary_are_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "m.relvm").write_text("def main(x: f32[n, 4]) -> f32[n, 4] = relu(x)")
    command = ["export", str(tmp_path / "m.relvm"), "--board", "pico", "-o", str(tmp_path / "out")]
    assert main(command) == 0
    assert "not counted, because sizes vary: x, output" in capsys.readouterr().err
