"""Options and fixtures of the whole suite."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from pathlib import Path

import hypothesis
import pytest
from support import modes
from support.browser import browser  # noqa: F401  (a fixture)
from support.stages import compiles, may_hold, stages_of, starting_order

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))  # for benchmarks.models.catalogue; at the end, so that an installed relvm is tested


hypothesis.settings.register_profile("relvm", deadline=None)  # no test depends on time
hypothesis.settings.load_profile("relvm")


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a background job of a shell; tests send this signal
        signal.signal(signal.SIGINT, signal.default_int_handler)
    modes.COMPILES_ALL = config.option.markexpr != "full"
    config.option.loadscopereorder = False  # `--dist loadfile` begins the files in the order of the tests


def pytest_runtest_setup(item: pytest.Item) -> None:
    modes.COMPILES = compiles(item.nodeid.removeprefix("tests/"), item.config.option.markexpr)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Collect only the files of a stage if `-m` names one, because importing all tests takes longer than fast tests."""
    return None if may_hold(config.option.markexpr, collection_path.relative_to(ROOT / "tests")) else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        stages = stages_of(item.nodeid.removeprefix("tests/"))
        for stage in ("full",) if "browser" in item.fixturenames and "fast" in stages else stages:
            item.add_marker(stage)
    if hasattr(config, "workerinput"):  # this process is a worker of pytest-xdist
        positions = starting_order(map(_file_of, items))
        items.sort(key=lambda item: positions[_file_of(item)])


def _file_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0].removeprefix("tests/")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite what golden cases expect; then read the diff")
    parser.addoption("--times", action="store_true", help="print how long the tests of each folder and file took")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the time of each folder in seconds, and the times of its slowest files."""
    if not terminalreporter.config.getoption("--times"):
        return
    seconds: Counter[str] = Counter()
    for report in (report for reports in terminalreporter.stats.values() for report in reports):
        if isinstance(report, pytest.TestReport):
            seconds[report.nodeid.partition("::")[0]] += report.duration
    folders: Counter[str] = Counter()
    for file, taken in seconds.items():
        folders[str(Path(file).parent)] += taken
    terminalreporter.section("seconds by folder")
    for folder, taken in folders.most_common():
        slowest = [(file, part) for file, part in seconds.most_common() if str(Path(file).parent) == folder][:3]
        shown = ", ".join(f"{Path(file).name} {part:.0f}" for file, part in slowest)
        terminalreporter.write_line(f"{taken:7.0f}  {folder}: {shown}")


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    return request.config.getoption("--update")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder that is relvm's cache during the test."""
    monkeypatch.setenv("RELVM_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"
