"""A browser for the tests of pages and of the site."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

OPTIONS = (
    "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync --window-size=1400,900"
)


@pytest.fixture(scope="session")
def browser() -> Iterator:
    """Start Chromium without a window.  The messages that scripts log are recorded."""
    webdriver = pytest.importorskip("selenium.webdriver")
    paths = shutil.which("chromium"), shutil.which("chromedriver")
    if None in paths:
        pytest.skip("chromium and chromedriver are not installed (.ci/run has the packages)")
    options = webdriver.ChromeOptions()
    for option in OPTIONS.split():
        options.add_argument(option)
    options.binary_location = paths[0]
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(paths[1]))
    yield driver
    driver.quit()
