"""The picture of a profile."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from relvm import vm
from relvm.errors import RelvmArgumentError
from relvm.explore import copy_bandwidth, draw_profile, format_profile
from relvm.frontend.text import parse_module
from relvm.vm.runtime.profile import Profile, ProfileRow

PROFILE = Profile(
    "main",
    0.010,
    (
        ProfileRow("matmul_f32", "kernel", 2, 0.005, 0.5, 10_000_000),
        ProfileRow("host.log", "packed", 1, 0.002, 0.2, 0),
        ProfileRow("relu_f32", "kernel", 1, 0.001, 0.1, 12_000_000),
        ProfileRow("vm.builtin.copy", "builtin", 3, 0.0005, 0.05, 0),
    ),
)


def lengths(axes: Axes) -> list[float]:
    return [round(bar.get_width(), 9) for bar in axes.patches if isinstance(bar, Rectangle)]


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_bars_are_milliseconds_and_gigabytes_per_second() -> None:
    times, rates = draw_profile(PROFILE, 8e9).axes
    assert [label.get_text() for label in times.get_yticklabels()] == [
        "matmul_f32",
        "host.log",
        "relu_f32",
        "vm.builtin.copy",
        "(the machine)",
    ]
    assert lengths(times) == [5, 2, 1, 0.5, 1.5]
    assert texts(times) == ["50.0%", "20.0%", "10.0%", "5.0%", "15.0%"]
    assert lengths(rates) == [2, 0, 12, 0, 0]
    assert texts(rates) == ["2.00", "", "12.00", "", ""]
    (line,) = rates.lines
    assert list(line.get_xdata()) == [8, 8] and line.get_label() == "a copy: 8.0"
    assert times.get_title() == "main: 10.000 ms"


def test_the_shortest_have_one_bar_together() -> None:
    times, _ = draw_profile(PROFILE, 8e9, most=1).axes
    assert [label.get_text() for label in times.get_yticklabels()] == ["matmul_f32", "(3 more)", "(the machine)"]
    assert lengths(times) == [5, 3.5, 1.5]


def test_the_text_has_the_same() -> None:
    assert format_profile(PROFILE, 8e9, most=3).split("\n") == [
        "main: 10.000 ms; a copy: 8.0 GB/s",
        "  matmul_f32        5.0000 ms  50.0%  ###############                    2.00   25.0%",
        "  host.log          2.0000 ms  20.0%  ######",
        "  relu_f32          1.0000 ms  10.0%  ###                               12.00  150.0%",
        "  (1 more)          0.5000 ms   5.0%  ##",
        "  (the machine)     1.5000 ms  15.0%  ####",
        "",
    ]


def test_a_run_is_drawn_with_the_bandwidth_of_this_machine() -> None:
    module = parse_module("def main(x: f32[n]) -> f32[n] { return relu(x) }")
    profile = vm.VirtualMachine(vm.build(module, target="numpy")).profile("main", np.ones(1000, np.float32))
    times, rates = draw_profile(profile).axes
    names = [label.get_text() for label in times.get_yticklabels()]
    assert names == [*(row.name for row in profile.rows), "(the machine)"]
    assert sum(lengths(times)) == pytest.approx(profile.seconds * 1e3, rel=1e-3)
    assert rates.lines[0].get_xdata()[0] > 0.1


def test_a_copy_takes_the_time_that_its_bandwidth_says(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.5, 1.0, 1.25, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    monkeypatch.setattr("relvm.explore.profile.time.perf_counter", lambda: next(clock))
    assert copy_bandwidth() == 128_000_000 / 0.25


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"most": 0}, "most=0: expected at least 1"),
        ({"bandwidth": 0.0}, r"bandwidth=0\.0: expected a positive number"),
        ({"bandwidth": float("nan")}, "bandwidth=nan: expected a positive number"),
    ],
)
@pytest.mark.parametrize("show", [draw_profile, format_profile])
def test_options_without_a_meaning_are_errors(show, options: dict, message: str) -> None:
    with pytest.raises(RelvmArgumentError, match=message):
        show(PROFILE, **options)
