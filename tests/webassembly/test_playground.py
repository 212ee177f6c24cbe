"""The playground of the site in Chromium, and a worker of a page."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playground import write_playground

By = pytest.importorskip("selenium.webdriver.common.by").By
Wait = pytest.importorskip("selenium.webdriver.support.wait").WebDriverWait

WORKER = """
import { load, tensor } from "./relvm.js";
const model = await load("program.rvm");
const [doubled] = await model.run("integers", [tensor(BigInt64Array.of(20n)), tensor(Uint8Array.of(1))]);
postMessage(String(doubled.data[0]));
"""


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def site(package: Path, models: Path, tmp_path: Path) -> Iterator[str]:
    """Serve the playground and the models of the tests, and return the address."""
    write_playground(tmp_path)
    for name in ("program.rvm", "native.wasm"):
        shutil.copy(models / name, tmp_path)
    (tmp_path / "worker.js").write_text(WORKER)
    handler = functools.partial(QuietHandler, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_files_on_the_page(site: str, models: Path, browser) -> None:
    def text(name: str) -> str:
        return browser.find_element(By.ID, name).text

    def wait(condition) -> None:
        Wait(browser, 30, poll_frequency=0.05).until(lambda _: condition())

    browser.get(f"{site}/index.html")
    browser.find_element(By.ID, "sample").click()
    wait(lambda: "ms" in text("result"))
    assert "f32[2, 10]" in text("result")
    assert text("functions") == "main (image: f32[n, 3, 32, 32]) → f32[n, 10]"
    assert "conv_relu_f32" in text("kernels")
    boxes = [box.get_attribute("textContent") for box in browser.find_elements(By.CSS_SELECTOR, "#memory title")]
    assert boxes[0] == "f32[2, 8, 32, 32], 65.5 kB, from conv_relu_f32"
    size = browser.find_element(By.ID, "size-n")
    size.clear()
    size.send_keys("3")
    browser.find_element(By.CSS_SELECTOR, "#inputs button").click()
    wait(lambda: "f32[3, 10]" in text("result"))
    browser.find_element(By.ID, "file").send_keys(str(models / "program.rvm"))
    wait(lambda: "program.rvm" in text("status") and "scale" in text("functions"))
    browser.find_element(By.CSS_SELECTOR, "tr[data-function=words]").click()
    browser.find_element(By.CSS_SELECTOR, "#inputs button").click()
    wait(lambda: '"hellohello"' in text("result"))
    browser.find_element(By.ID, "file").send_keys(str(models / "native.wasm"))
    wait(lambda: "native.wasm" in text("status") and "main" in text("functions"))
    wait(lambda: "conv_relu_f32" in text("kernels"))
    (models / "bad.rvm").write_text("no executable")
    browser.find_element(By.ID, "file").send_keys(str(models / "bad.rvm"))
    wait(lambda: "RelvmFormatError: load: not a relvm executable" in text("status"))
    script = "const done = arguments[0]; new Worker('worker.js', {type: 'module'}).onmessage = ({data}) => done(data);"
    browser.set_script_timeout(30)
    assert browser.execute_async_script(script) == "40"
    # The log also contains what the pages of other tests write.
    own = [entry for entry in browser.get_log("browser") if site in entry["message"]]
    assert not [entry for entry in own if "favicon" not in entry["message"]]
