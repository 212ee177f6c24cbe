"""The notebooks: each a source in Python (jupytext's percent format) and the .ipynb made of it, with its outputs.

`pytest tests/docs/test_notebooks.py --update` writes the .ipynb files: it runs the sources.  Tags of cells:

    remove-output   the outputs differ between runs (times) and are not stored
    solution        the solution of the exercise, which Jupyter and the site hide at first
"""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path

import jupytext
import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
SOURCES = sorted(FOLDER.glob("*.py"))
STORED = ("text/plain", "image/svg+xml")  # stored forms of an output; GitHub shows no frames and no styles


def notebook_of(source: Path) -> nbformat.NotebookNode:
    """Return the notebook of a source, without outputs."""
    made = jupytext.reads(source.read_text(), fmt="py:percent")
    made.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    made.nbformat_minor = 5
    for number, cell in enumerate(made.cells):
        tags = cell.metadata.get("tags", [])
        cell.metadata = {"tags": tags} if tags else {}
        if "solution" in tags:
            cell.metadata["jupyter"] = {"source_hidden": True}
        cell.id, cell.source = f"cell-{number}", cell.source.strip("\n")
    return made


def run(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Run a notebook, and remove the parts of its outputs that are not stored."""
    (folder / "matplotlibrc").write_text("svg.fonttype: none\nsvg.hashsalt: relvm\n")  # small, reproducible SVG
    for model in FOLDER.glob("*.pt2"):
        shutil.copy(model, folder)
    options = {"timeout": 120, "kernel_name": "python3", "coalesce_streams": True}
    NotebookClient(notebook, resources={"metadata": {"path": folder}}, **options).execute()
    for cell in (cell for cell in notebook.cells if cell.cell_type == "code"):
        cell.metadata.pop("execution", None)
        if "remove-output" in cell.metadata.get("tags", []):
            cell.outputs = []
        for output in cell.outputs:
            if output.output_type == "stream":
                output.text = re.sub(r"\S*/ipykernel_\d+/\d+\.py", "<cell>", output.text)
            else:
                output.data = {kind: text for kind, text in output.data.items() if kind in STORED}
                output.metadata = {}


def stable(outputs: list[nbformat.NotebookNode]) -> list[str]:
    """Return the outputs as texts that can be compared.

    A picture is represented by the words in it.  Rounding errors, which differ between processors, are replaced by a
    mark.
    """
    shown = []
    for output in outputs:
        assert output.output_type in ("stream", "execute_result", "display_data"), output
        if output.output_type == "stream":
            shown.append(output.text)
        else:
            shown.append(output.data["text/plain"])
            shown += re.findall(r"<text\b[^>]*>([^<]+)</text>", html.unescape(output.data.get(STORED[1], "")))
    return [re.sub(r"\d\.\d+e[+-]\d\d", "<error>", text) for text in shown]


def test_every_notebook_has_a_source() -> None:
    assert SOURCES
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == {path.stem for path in SOURCES}


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_notebook_runs_and_has_its_outputs(source: Path, update: bool, tmp_path: Path) -> None:
    notebook = notebook_of(source)
    run(notebook, tmp_path)
    if update:
        nbformat.write(notebook, source.with_suffix(".ipynb"))
    stored = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    for found, expected in zip(stored.cells, notebook.cells, strict=True):
        assert (found.cell_type, found.source, found.metadata) == (
            expected.cell_type,
            expected.source,
            expected.metadata,
        )
        if found.cell_type == "code":
            assert found.execution_count == expected.execution_count
            assert stable(found.outputs) == stable(expected.outputs), found.source
            if found.source.split("\n")[-1].startswith("draw_") and found.outputs:
                assert STORED[1] in found.outputs[-1].data


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_notebook_is_a_lesson(source: Path) -> None:
    """A notebook begins with the skills that the reader will learn, and ends with an exercise and its solution."""
    first, *_, exercise, solution = notebook_of(source).cells
    assert first.source.startswith("# ") and "At the end of the notebook you can" in " ".join(first.source.split())
    assert exercise.source.startswith("**Exercise.** ")
    assert solution.metadata["tags"] == ["solution"] and "assert" in solution.source


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_stored_notebook_is_small_and_has_no_paths(path: Path) -> None:
    text = path.read_text()
    assert len(text) < 100_000
    outputs = [output for cell in nbformat.reads(text, as_version=4).cells for output in cell.get("outputs", [])]
    assert not re.search(r"/tmp/|/home/|0x[0-9a-f]{8}", "\n".join(text for text in stable(outputs)))


def test_some_notebooks_draw() -> None:
    drawing = [source.stem for source in SOURCES if "\ndraw_" in source.read_text()]
    assert drawing == ["ir_and_stages", "memory_planning", "onnx_from_file_to_profile"]


def test_the_model_of_a_notebook_is_the_tested_one() -> None:
    tested = FOLDER.parent / "tests/frontend/pt2/branch.core.pt2"
    assert (FOLDER / "branch.pt2").read_bytes() == tested.read_bytes()
