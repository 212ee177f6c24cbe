"""Error messages of the command line name its options, not the arguments of Python functions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from frontend.onnx_models import make_model, onnx

from relvm.cli import main
from relvm.cli.shell_terms import in_shell_terms

PROGRAM = "def main(x: f32[n]) -> f32[n] = add(x, x)"


@pytest.fixture
def error_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return a function that runs a command in a folder with two models, and returns its standard error."""
    (tmp_path / "model.relvm").write_text(PROGRAM)
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    onnx.save(make_model([node], [("x", "float32", ["n"])], ["y"]), tmp_path / "model.onnx")

    def run(command: str, name: str, *options: str) -> str:
        assert main([command, str(tmp_path / name), *options]) == 1
        return capsys.readouterr().err

    return run


@pytest.mark.parametrize(
    ("command", "model", "options", "expected"),
    [
        ("run", "model.relvm", ["--random", "--target", "foo"], "--target foo: expected one of"),
        ("run", "model.onnx", ["--random", "--dim", "zzz=2"], "--dim: unknown dimension zzz"),
        ("run", "model.relvm", ["--random", "--target", "bytecode", "--max-steps", "1"], "of 1 steps (--max-steps)"),
        ("export", "model.relvm", ["-o", "out", "--alignment", "3"], "--alignment 3: expected a power of two"),
        ("export", "model.relvm", ["-o", "out", "--name", "1x"], "--name 1x: expected a C identifier"),
        ("export", "model.relvm", ["-o", "out", "--pool", "a", "--pool", "a"], "--pool: two pools are named a"),
        (
            "export",
            "model.relvm",
            ["-o", "out", "--runtime", "hosted", "--interface", "c", "--unpacked"],
            "--runtime hosted requires --interface packed and no --unpacked",
        ),
        (
            "export",
            "model.relvm",
            ["-o", "out", "--runtime", "hosted", "--workspace", "static"],
            "--workspace static: --runtime hosted requires --workspace caller",
        ),
    ],
)
def test_an_error_names_the_option(
    command: str, model: str, options: list[str], expected: str, error_of: Callable[..., str]
) -> None:
    assert expected in error_of(command, model, *options)


def test_a_missing_compiler_is_told_with_the_option(
    error_of: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELVM_CC", "none")
    assert "; --target bytecode needs none" in error_of("run", "model.relvm", "--random", "--target", "c")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "main: it depends on n, m; pass sizes: dims={'n': 4, 'm': 1}",
            "main: it depends on n, m; pass sizes: --dim n=4 --dim m=1",
        ),
        ("pass trust_native=True to run it", "pass --trust-native to run it"),
        ("load it with load_module(..., trust_native=True)", "load it with --trust-native"),
        ("build it with debug=True or relvm compile --debug", "build it with relvm compile --debug"),
        ('use target="c -march=native"', "use --target 'c -march=native'"),
        ("exec_mode: no function f", "--exec-mode: no function f"),
        ("input x: expected f32[n], got i64[n]", "input x: expected f32[n], got i64[n]"),
        ("a value named target: 3", "a value named target: 3"),
        ("the limit of 3 steps (max_steps)", "the limit of 3 steps (--max-steps)"),
        ("the limit of 3 bytes (max_bytes)", "the limit of 3 bytes (max_bytes)"),  # the command has no such option
        ("requires unpacked=False", "requires no --unpacked"),
        ("pass --overwrite (overwrite=True)", "pass --overwrite"),
    ],
)
def test_arguments_become_options(message: str, expected: str) -> None:
    assert in_shell_terms(message, ("dim", "input", "max_steps", "target", "trust_native", "unpacked")) == expected
