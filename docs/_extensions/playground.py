"""The playground: the page playground/index.html of the site, which runs executables in the reader's browser."""

from __future__ import annotations

import re
import shutil
from importlib.resources import files
from pathlib import Path

import numpy as np
from sphinx.application import Sphinx
from sphinx.util import logging

from relvm import vm
from relvm.compiler.webassembly import runtime_module
from relvm.errors import RelvmToolchainError
from relvm.frontend.text import parse_module
from relvm.tables import csrc_directory

_SOURCES = Path(__file__).resolve().parents[1] / "playground"
_FOLDER = "playground"
_SAMPLE = """
def main(image: f32[n, 3, 32, 32]) -> f32[n, 10] {
  a = max_pool(relu(conv(image, FILTERS1, pads=(1, 1, 1, 1))), kernel=(2, 2), strides=(2, 2))
  b = max_pool(relu(conv(a, FILTERS2, pads=(1, 1, 1, 1))), kernel=(2, 2), strides=(2, 2))
  c = relu(matmul(reshape(b, shape(n, 1024)), WEIGHTS1))
  return softmax(matmul(c, WEIGHTS2), axis=1)
}
"""
_WEIGHTS = {
    "FILTERS1": (8, 3, 3, 3),
    "FILTERS2": (16, 8, 3, 3),
    "WEIGHTS1": (1024, 32),
    "WEIGHTS2": (32, 10),
}


def _sample() -> vm.Executable:
    """Return the executable of a small network with weights from a fixed seed."""
    random, text = np.random.default_rng(0), _SAMPLE
    for name, shape in _WEIGHTS.items():
        numbers = random.standard_normal(shape).astype(np.float32) / np.prod(shape[1:]) ** 0.5
        dims = ", ".join(map(str, shape))
        text = text.replace(name, f"const(f32[{dims}], {numbers.round(4).tolist()})")
    return vm.build(parse_module(text), target="bytecode")


def write_playground(folder: Path) -> None:
    """Write the page, the runtime and a sample to a folder.

    Raises
    ------
    RelvmToolchainError
        zig cc is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "relvm.wasm").write_bytes(runtime_module())
    shutil.copy(csrc_directory() / "webassembly" / "relvm.js", folder)
    shutil.copy(_SOURCES / "playground.js", folder)
    _sample().save(folder / "sample.rvm")
    colors = re.match(r":root \{.*?\n\}\n", _page_file("view.css"), re.DOTALL)
    assert colors is not None
    css = colors[0] + (_SOURCES / "playground.css").read_text()
    page = (_SOURCES / "playground.html").read_text().replace("$CSS", css)
    (folder / "index.html").write_text(page)


def _page_file(name: str) -> str:
    return (files("relvm") / "explore" / "page_files" / name).read_text(encoding="utf-8")


def _write(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    try:
        write_playground(Path(app.outdir) / _FOLDER)
    except RelvmToolchainError as missing:
        logging.getLogger(__name__).warning("the site has no playground: %s", missing)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension.  Sphinx calls this function."""
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
