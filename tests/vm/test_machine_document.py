"""The examples in docs/machine.md and in the docstrings of VirtualMachine run."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

from relvm.runtime import packed_func, virtual_machine

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "machine.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", DOCUMENT, flags=re.DOTALL)


def test_every_example_is_python():
    """All code blocks of the page are Python examples or pictures.  The build of the site runs the code of pictures."""
    assert DOCUMENT.count("```") == 2 * (len(BLOCKS) + DOCUMENT.count("```{relvm-picture}"))


def test_the_examples_run_one_after_the_other(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "program.py"
    program.write_text("\n".join(BLOCKS))
    exec(compile(program.read_text(), str(program), "exec"), {"__name__": "program"})
    assert "matmul" in capsys.readouterr().out
    packed_func.unregister_func("docs.scale")


def test_the_examples_of_the_docstrings_run():
    failures, count = doctest.testmod(virtual_machine)
    assert failures == 0 and count > 20
