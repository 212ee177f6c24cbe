"""Tests of `relvm` without a command, `relvm help`, the examples in help texts, and suggestions."""

from __future__ import annotations

import argparse
import math
import re
import shlex
from pathlib import Path

import pytest

from relvm.cli.arguments import Number, Words
from relvm.cli.help import COMMANDS
from relvm.cli.list_tables import _TABLES
from relvm.cli.main import main, make_parser
from relvm.errors import RelvmArgumentError
from relvm.runtime.file_io import SOURCE_SUFFIXES

PARSERS = make_parser(COMMANDS).get_default("parsers")
EXAMPLES = {name: parser.example for name, parser in PARSERS.items()}


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


@pytest.mark.parametrize("command", [each for each in PARSERS if each not in ("quantize", "explore")])
def test_the_help_names_all_kinds_of_models(command: str) -> None:
    """`quantize` reads only ONNX models, and `explore` also programs in text form."""
    for action in PARSERS[command]._actions:
        about = action.help or ""
        if action.dest in ("model", "models") and SOURCE_SUFFIXES[0] in about:
            assert [suffix for suffix in SOURCE_SUFFIXES if suffix not in about] == []


@pytest.mark.parametrize("example", [each for each in EXAMPLES.values() if each.startswith("relvm ")])
def test_an_example_is_a_valid_command_line(example: str) -> None:
    make_parser(COMMANDS).parse_args(shlex.split(example)[1:])


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


NUMBERS = [
    (command, action) for command, parser in PARSERS.items() for action in parser._actions if isinstance(action, Number)
]


@pytest.mark.parametrize(("command", "action"), NUMBERS, ids=lambda each: str(getattr(each, "dest", each)))
def test_a_number_has_limits(command: str, action: Number) -> None:
    """An integer without another limit must fit in 64 bits."""
    assert action.type is not int or action.most in (math.inf, 2**63 - 1) or action.most < 2**20
    options = argparse.Namespace()
    for value in {action.least, min(action.most, 2**63 - 1)}:
        action(PARSERS[command], options, value)
        assert getattr(options, action.dest) == value
    for value in {action.least - 1, action.most + 1, math.nan} - {math.inf}:
        with pytest.raises(RelvmArgumentError, match=f"{action.option_strings[0]}.*: expected at least"):
            action(PARSERS[command], options, value)


CHOICES = {
    (command, action.option_strings[0], choice)
    for command, parser in PARSERS.items()
    for action in parser._actions
    if action.option_strings
    for choice in (action.words if isinstance(action, Words) else action.choices or ())
}


def misspelled(word: str) -> set[str]:
    """Return words that differ from `word` in one letter or in case, and its first half."""
    changed = {word[:-1], f"{word}s", word[0] + word[2:], word.upper(), word[: len(word) // 2]}
    return {each for each in changed if len(each) > 2}


@pytest.mark.parametrize(("command", "option", "choice"), sorted(CHOICES))
def test_each_choice_is_suggested_if_it_is_misspelled(
    command: str, option: str, choice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = PARSERS[command]
    for word in misspelled(choice) - {each for _, _, each in CHOICES}:
        with pytest.raises(SystemExit):
            parser.parse_args(["model.onnx", "-o", "out", option, word])
        message = capsys.readouterr().err.splitlines()[-1]
        assert f" argument {option}" in message or f"/{option}: " in message
        assert "; did you mean " in message
        if len(word) > len(choice) // 2:
            assert choice in message.partition("; did you mean ")[2]


def test_targets_are_suggested(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.relvm").write_text("def main(x: f32[n]) -> f32[n] = relu(x)")
    for word, target in (("bytcode", "bytecode"), ("byte", "bytecode"), ("Numpy", "numpy"), ("x86_64-v3", "x86-64-v3")):
        assert main(["run", str(tmp_path / "m.relvm"), "--random", "--target", word]) == 1
        assert f"; did you mean {target}" in capsys.readouterr().err


@pytest.mark.parametrize("command", sorted(_TABLES))
def test_a_table_has_a_line_for_each_row(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """If the reader is not a terminal.  Of a description, the first line is printed."""
    assert main([command]) == 0
    lines, rows = capsys.readouterr().out.splitlines(), _TABLES[command][1]()
    for line, row in zip(lines, rows, strict=True):
        cells = [*filter(None, (*map(str, row[:-1]), row[-1].partition("\n")[0]))]
        assert re.split(" {2,}", line, maxsplit=len(cells) - 1) == cells


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
    for wrong in ("tow.relvm", "two.rlvm", "two"):
        assert main(["info", wrong]) == 1
        assert f"{wrong}: No such file or directory; did you mean two.relvm" in capsys.readouterr().err
