"""The IPython extension: `%load_ext relvm`, `%%relvm` and `%relvm_profile`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from relvm.ir.expr import Module
from relvm.runtime.profiler import Profile
from relvm.vm import VirtualMachine

interactiveshell = pytest.importorskip("IPython.core.interactiveshell")
completer = pytest.importorskip("IPython.core.completer")
capture = pytest.importorskip("IPython.utils.capture")

PROGRAM = "def main(x: f32[n, 4]) -> f32[n, 4] {\n  a = add(x, x)\n  return relu(a)\n}\n"


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        made = interactiveshell.InteractiveShell.instance()
        made.history_manager.enabled = False
        made.run_line_magic("load_ext", "relvm")
        made.run_cell("import numpy as np\nx = np.ones((3, 4), np.float32)")
        yield made
        interactiveshell.InteractiveShell.clear_instance()


def run(shell: Any, code: str) -> tuple[Any, list[dict[str, str]], str]:
    """Run a cell.  Return its result, the displayed objects by MIME type, and the printed text."""
    with capture.capture_output() as captured:
        result = shell.run_cell(code)
    return result, [output.data for output in captured.outputs], captured.stdout + captured.stderr


def test_a_cell_is_a_program(shell) -> None:
    result, shown, _ = run(shell, f"%%relvm\n{PROGRAM}")
    assert result.success
    assert isinstance(shell.user_ns["module"], Module) and isinstance(shell.user_ns["machine"], VirtualMachine)
    (forms,) = shown
    assert forms["text/plain"] == PROGRAM.rstrip() and "<pre" in forms["text/html"]
    result, _, _ = run(shell, "machine['main'](x).tolist()")
    assert result.result == [[2] * 4] * 3


def test_the_stages_asked_for_are_shown(shell) -> None:
    line = "%%relvm --stage fuse_ops --stage c --stage all --exec-mode compiled --name net --machine runs"
    result, shown, _ = run(shell, f"{line}\n{PROGRAM}")
    assert result.success and isinstance(shell.user_ns["net"], Module)
    assert shell.user_ns["runs"].function_kinds == {"main": "native"}
    fused, c, everything = (forms["text/plain"] for forms in shown)
    assert "fused {" in fused and "rvm_status" in c and everything.startswith("net\nstage ")
    assert "<iframe" in shown[2]["text/html"]


def test_an_error_is_shown_as_its_message(shell) -> None:
    result, _, printed = run(shell, f"%%relvm\n{PROGRAM.replace('relu', 'relux')}")
    assert not result.success
    assert printed.splitlines() == [
        f"RelvmNameError: In[{shell.execution_count}]:4:10: no operator or variable relux; did you mean relu?",
        "    return relux(a)",
        "           ^",
    ]  # line 4 of the cell, including the line of the magic command
    result, _, printed = run(shell, "%%relvm\ndef main(x: f32[n]) -> f32[n] {")
    assert not result.success and printed.startswith("RelvmSyntaxError: In[") and "Traceback" not in printed
    result, _, printed = run(shell, "%%relvm --target numpy\ndef main(x: f32[n], y: f32[n + 1]) { return add(x, y) }")
    assert not result.success and printed.startswith("RelvmShapeError: In[") and "Traceback" not in printed


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--stge c", "%%relvm: unrecognized arguments: --stge c; usage: relvm [--stage STAGE]"),
        ("--stage nope", "no stage nope; the stages are given, "),
        (
            "--exec-mode compild",
            "argument --exec-mode: expected one of bytecode, compiled, got 'compild'; did you mean compiled",
        ),
        ("--name 1a", "%%relvm: argument --name: expected a Python name, got '1a'"),
        ('--name "a', "No closing quotation"),
    ],
)
def test_wrong_options(shell, line: str, message: str) -> None:
    shell.user_ns.pop("module", None)
    result, _, printed = run(shell, f"%%relvm {line}\n{PROGRAM}")
    assert not result.success and message in printed and "Traceback" not in printed
    assert "module" not in shell.user_ns


def test_a_call_is_profiled(shell) -> None:
    run(shell, f"%%relvm --target bytecode\n{PROGRAM}")
    result, _, _ = run(shell, '%relvm_profile machine["main"](x)')
    assert isinstance(result.result, Profile) and result.result["add_relu_f32"].count == 1
    result, _, _ = run(shell, 'p = %relvm_profile --kernels machine["main"](x=x)\np.kernels')
    assert list(result.result) == ["add_relu_f32"]
    assert shell.user_ns["p"]._repr_html_().count("<pre") == 1 and "strips" in shell.user_ns["p"]._repr_html_()
    run(shell, "from relvm import Model\nmodel = Model(machine.executable)\nmachine.save_function('main', 'saved', x)")
    for call in ("model(x)", "model(x=x)", "machine['saved']()"):
        result, _, _ = run(shell, f"%relvm_profile {call}")
        assert result.result["add_relu_f32"].count == 1
    run(shell, "def profiled(y):\n    return get_ipython().run_line_magic('relvm_profile', 'machine[\"main\"](x)')")
    result, _, _ = run(shell, "profiled(1)")
    assert isinstance(result.result, Profile)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x", "%relvm_profile: expected a call, such as %relvm_profile machine[\"main\"](x), got 'x'"),
        ("machine['main'](x", "is not an expression: '(' was never closed"),
        ("len(x)", "got a call of builtin_function_or_method: len(x)"),
        ("machine['main'](x, x)", "got 2 positional arguments, but main has the parameters x"),
        ("--kernels model(x)", "--kernels needs a machine's function"),
        ("machine['saved'](x)", "all arguments of saved are already bound"),
    ],
)
def test_what_cannot_be_profiled(shell, line: str, message: str) -> None:
    result, _, printed = run(shell, f"%relvm_profile {line}")
    assert not result.success and message in printed and "Traceback" not in printed


def test_tab_completes_names(shell) -> None:
    run(shell, f"%%relvm --target numpy\n{PROGRAM}")
    run(shell, "from relvm.explore import explore\nstages = explore(module, target='numpy')")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shell.Completer, "use_jedi", False)
        for text, name in (('machine["', "main"), ('module["ma', "main"), ('stages["by', "bytecode")):
            with completer.provisionalcompleter():
                found = list(shell.Completer.completions(text, len(text)))
            assert any(name in each.text for each in found), text


def test_an_error_of_the_user_keeps_its_traceback(shell) -> None:
    result, _, printed = run(shell, "%relvm_profile machine['main'](1 / 0)")
    assert not result.success and "ZeroDivisionError" in printed and "Traceback" in printed


def test_relvm_does_not_import_ipython(tmp_path: Path) -> None:
    code = (
        "import sys, relvm, relvm.vm, relvm.explore\nassert 'IPython' not in sys.modules\nrelvm.load_ipython_extension"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True, cwd=tmp_path)
