"""Tests of `relvm` without a command, `relvm help`, the examples in help texts, and suggestions."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from relvm.cli.main import main, make_parser
from relvm.cli.overview import EXAMPLES

COMMANDS = make_parser().parse_args(["help"]).parsers


@pytest.mark.parametrize("arguments", [[], ["help"]])
def test_the_overview_lists_all_commands(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert all(len(line) <= 80 for line in lines)
    listed = [line.split()[0] for line in lines if line.startswith("  ") and not line.startswith("   ")]
    assert sorted(name for name in listed if name != "relvm") == sorted(COMMANDS)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_command_is_described_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", command]) == 0
    described = capsys.readouterr().out
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert capsys.readouterr().out == described
    assert f"\nexample:\n  {EXAMPLES[command]}\n" in described


@pytest.mark.parametrize("example", [each for each in EXAMPLES.values() if each.startswith("relvm ")])
def test_an_example_is_a_valid_command_line(example: str) -> None:
    make_parser().parse_args(shlex.split(example)[1:])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inof", "model.relvm"], "no command 'inof'; did you mean info?"),
        (["help", "rnu"], "no command 'rnu'; did you mean run?"),
        (["xyzzy"], "no command 'xyzzy'; `relvm help` lists the commands"),
    ],
)
def test_an_unknown_command(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2
    assert message in capsys.readouterr().err


def test_entries_of_the_tables_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ops", "matmul", "add"]) == 0
    matmul, add = capsys.readouterr().out.split("\n\nadd ")
    assert matmul.startswith("matmul (a, b, transpose_a=False, transpose_b=False) pure\n    The matrix product")
    assert add.startswith("(x, y) pure\n    x + y, elementwise")
    assert main(["builtins", "vm.builtin.copy"]) == main(["opcodes", "call"]) == 0
    assert main(["ops", "matmull"]) == 1
    assert "no entry matmull; did you mean matmul" in capsys.readouterr().err


def test_several_models(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        Path(f"{name}.relvm").write_text("def main(x: f32[n]) -> f32[n] = relu(x)")
    assert main(["info", "one.relvm", "two.relvm"]) == 0
    assert capsys.readouterr().out.count("\n\nfile: two.relvm\n") == 1
    assert main(["info", "tow.relvm"]) == 1
    assert "tow.relvm: No such file or directory; did you mean two.relvm" in capsys.readouterr().err
