"""Test of JupyterLab in a browser: a cell shows a picture as an image."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import nbformat
import pytest

from relvm.explore import browse_dataflow, draw_dataflow, explore
from relvm.frontend.text import parse_module

By = pytest.importorskip("selenium.webdriver.common.by").By
pytest.importorskip("jupyterlab")

SECONDS = 60  # generous time limit for a busy machine
CELLS = (
    "%load_ext relvm",
    "%%relvm --target numpy\ndef main(x: f32[n, 4]) -> f32[n, 4] { return relu(add(x, x)) }",
    "from relvm.explore import draw_dataflow\ndraw_dataflow(module)",
    "import numpy as np\n%relvm_profile machine['main'](np.ones((2, 4), np.float32))",
)
RUN_ALL = """
const done = arguments[0], app = window.jupyterapp;
app.restored
  .then(() => app.shell.currentWidget.sessionContext.ready)
  .then(() => app.commands.execute("notebook:run-all-cells"))
  .then(done);
"""
OPTIONS = (
    "--no-browser --allow-root --ServerApp.ip=127.0.0.1 --ServerApp.port_retries=50 --IdentityProvider.token=secret"
    " --LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate --LabApp.news_url=None"
    " --LabApp.extension_manager=readonly --LabApp.expose_app_in_browser=True"
)


def wait(what: Callable[[], Any]) -> Any:
    """Wait until a condition returns a true value, and return the value."""
    deadline = time.monotonic() + SECONDS
    while not (found := what()):
        assert time.monotonic() < deadline, "JupyterLab took too long"
        time.sleep(0.1)
    return found


def output(shown: Any) -> nbformat.NotebookNode:
    """Return the stored output of a cell that shows an object."""
    forms = shown._repr_mimebundle_()
    return nbformat.v4.new_output("display_data", data=forms[0] if isinstance(forms, tuple) else forms)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start JupyterLab with a notebook, and yield its address.  It neither reads nor writes files of the user."""
    folder = tmp_path_factory.mktemp("lab")
    cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), folder / "shown.ipynb")
    module = parse_module("def main(x: f32[n]) -> f32[n] { return relu(exp(x)) }")
    shown: list[Any] = [explore(module), browse_dataflow(module), draw_dataflow(module)]
    cells = [nbformat.v4.new_code_cell("1", outputs=[output(each)]) for each in shown]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), folder / "untrusted.ipynb")
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    names += ("JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR")
    environment = {**os.environ, **{name: str(folder / name.lower()) for name in names}}
    command = [sys.executable, "-P", "-m", "jupyterlab", *OPTIONS.split(), "--ServerApp.root_dir", str(folder)]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
    try:

        def address() -> str:
            assert server.poll() is None, (folder / "log").read_text()
            files = list((folder / "jupyter_runtime_dir").glob("jpserver-*.json"))
            return json.loads(files[0].read_text())["url"] if files and files[0].stat().st_size else ""

        yield f"{wait(address)}lab/tree/NOTEBOOK?token=secret"
    finally:
        server.terminate()  # also ends the kernel
        server.wait(SECONDS)


def test_a_cell_shows_a_picture(browser, lab: str) -> None:
    def elements(selector: str) -> list:
        return browser.find_elements(By.CSS_SELECTOR, selector)

    browser.get(lab.replace("NOTEBOOK", "shown.ipynb"))
    wait(lambda: browser.execute_script("return window.jupyterapp?.shell.currentWidget?.sessionContext !== undefined"))
    browser.set_script_timeout(SECONDS)
    browser.execute_async_script(RUN_ALL)
    (image,) = wait(lambda: elements(".jp-OutputArea-output img"))
    wait(lambda: image.get_property("complete"))
    assert image.get_attribute("src").startswith("data:image/svg+xml")
    assert image.get_property("naturalWidth") > 50 and image.rect["width"] > 50 and image.rect["height"] > 100
    table = wait(lambda: elements(".jp-OutputArea-output table"))[0]
    assert "reference.relu" in table.text
    assert "def main(x: f32[n, 4])" in elements(".jp-OutputArea-output pre")[0].text
    assert elements(".jp-OutputArea-output [data-mime-type='application/vnd.jupyter.stderr']") == []
    assert not any("<picture" in each.text for each in elements(".jp-OutputArea-output"))


def test_an_untrusted_notebook_shows_pictures_and_text(browser, lab: str) -> None:
    browser.get(lab.replace("NOTEBOOK", "untrusted.ipynb"))

    def outputs() -> list:
        found = browser.find_elements(By.CSS_SELECTOR, ".jp-OutputArea-output")
        return found if len(found) == 3 else []

    stages, graph, picture = wait(outputs)
    for each in (stages, graph, picture):
        (image,) = each.find_elements(By.CSS_SELECTOR, "img")
        wait(lambda image=image: image.get_property("complete"))
        assert image.get_attribute("src").startswith("data:image/png") and image.rect["width"] > 100
        assert each.find_elements(By.CSS_SELECTOR, "iframe") == []
    assert "fuse_ops" in stages.text and "exp relu" in graph.text
