"""Helpers for tests of the documents: extract code blocks and headings, and run all blocks of a page in order."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from relvm.cli.main import main
from relvm.tables import csrc_directory

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("docs", "benchmarks", "examples")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in ROOT.glob(f"{folder}/**/*.md"))])


def blocks(document: Path) -> list[tuple[str, str]]:
    """Return the language and the text of each code block of a document, in order."""
    return re.findall(r"^```([^\n]*)\n(.*?)^```", document.read_text(), flags=re.DOTALL | re.MULTILINE)


def prose(document: Path) -> str:
    """Return the text of a document without its code blocks."""
    return re.sub(r"^```.*?^```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors(document: Path) -> set[str]:
    """Return the anchors of a document: its headings, as code hosts and the site spell them."""
    headings = re.findall(r"^#+ (.*)$", prose(document), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands(text: str) -> list[list[str]]:
    """Return the words of each command in a block of shell code, without comments."""
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars=";&")
        words.whitespace_split = True
        found.append([])
        for word in words:
            if set(word) <= set(";&"):
                found.append([])
            else:
                found[-1].append(word)
    return [words for words in found if words]


def follow(document: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, *, shows: bool) -> None:
    """Run the code blocks of a page in order, in an empty folder.

    Python blocks share a namespace.  A C block is written to the file that its first comment names.  Shell commands are
    run, except pip.  Blocks of the language `py` need packages that the tests do not install, and are not run.  The
    folder has links to `examples` and `csrc`, as a checkout has, and contains the model `model.onnx` (`small_model`).

    shows: whether a text block contains lines that the block before it prints.  Numbers, and thus the order of the
    lines, can differ.
    """
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    Path("examples").symlink_to(ROOT / "examples")
    Path("csrc").symlink_to(csrc_directory())
    onnx.save(small_model(), "model.onnx")
    namespace: dict = {"__name__": "page"}
    printed = ""
    for number, (language, text) in enumerate(blocks(document)):
        if language == "text" and shows:
            lines = without_numbers(printed)
            other = [line for line in without_numbers(text) if line not in lines]
            assert not other, f"{document}: the block before prints\n{printed}"
        with contextlib.redirect_stdout(io.StringIO()) as output:
            _run_block(number, language, text, folder, namespace)
        printed = output.getvalue()


def small_model() -> onnx.ModelProto:
    """Return a convolutional model for images of 32 x 32 pixels."""
    text = """<ir_version: 8, opset_import: ["" : 17]>
    network (float[batch, 3, 32, 32] image) => (float[batch, 10] scores) {
        c = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (image, w1)
        r = Relu(c)
        d = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (r, w2)
        s = Relu(d)
        p = GlobalAveragePool(s)
        f = Flatten(p)
        scores = MatMul(f, w3)
    }"""
    model, generator = onnx.parser.parse_model(text), np.random.default_rng(0)
    for name, shape in {"w1": (32, 3, 3, 3), "w2": (64, 32, 3, 3), "w3": (64, 10)}.items():
        weights = generator.standard_normal(shape).astype(np.float32) / 8
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))
    return model


def without_numbers(text: str) -> list[list[str]]:
    """Return the words of each line, with a placeholder for numbers and for words that depend on measured times."""
    return [re.sub(r"\d[\d.,]*(e[-+]\d+)?|faster|slower", "#", line).split() for line in text.splitlines()]


def _run_block(number: int, language: str, text: str, folder: Path, namespace: dict) -> None:
    match language:
        case "python":
            place = folder / f"block_{number}.py"  # @script reads the source file
            place.write_text(text)
            exec(compile(text, str(place), "exec"), namespace)
        case "c":
            (name,) = re.findall(r"\A/\* (\w+\.c):", text)
            Path(name).write_text(text)
        case "sh":
            for words in commands(text):
                _run(words)


def _run(words: list[str]) -> None:
    if words[0] == "pip":
        return
    if words[0] == "relvm":
        assert main(words[1:]) == 0, words
        return
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
