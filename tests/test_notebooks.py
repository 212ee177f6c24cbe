"""The notebooks: each a source in Python (jupytext's percent format) and the .ipynb made of it, without output.

`pytest tests/test_notebooks.py --update` writes the .ipynb files of the sources.
"""

from __future__ import annotations

from pathlib import Path

import jupytext
import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
SOURCES = sorted(FOLDER.glob("*.py"))


def notebook_of(source: Path) -> nbformat.NotebookNode:
    """What the .ipynb of a source is: the same whenever it is made."""
    made = jupytext.reads(source.read_text(), fmt="py:percent")
    made.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    made.nbformat_minor = 5
    for number, cell in enumerate(made.cells):
        cell.id, cell.metadata, cell.source = f"cell-{number}", {}, cell.source.strip("\n")
    return made


def test_every_notebook_has_a_source() -> None:
    assert SOURCES
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == {path.stem for path in SOURCES}


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_notebook_is_its_source_without_output(source: Path, update: bool) -> None:
    pair = source.with_suffix(".ipynb")
    expected = notebook_of(source)
    if update:
        nbformat.write(expected, pair)
    found = nbformat.read(pair, as_version=4)
    assert [(cell.cell_type, cell.source) for cell in found.cells] == [
        (cell.cell_type, cell.source) for cell in expected.cells
    ]
    code = [cell for cell in found.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    assert 5 <= len(found.cells) <= 12 and any("assert" in cell.source for cell in code)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_notebook_runs(source: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code" and cell.source)
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.source.split("\n")[-1].startswith("draw_"):
            assert "image/svg+xml" in cell.outputs[-1].data, cell.source


def test_some_notebooks_draw() -> None:
    drawing = [source.stem for source in SOURCES if "\ndraw_" in source.read_text()]
    assert drawing == ["ir_and_stages", "memory_planning", "onnx_from_file_to_profile"]
