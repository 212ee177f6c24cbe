"""Tests of the picture of a profile, and of the roofline chart."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from relvm import vm
from relvm.errors import RelvmArgumentError, RelvmToolchainError
from relvm.explore import Peaks, draw_profile, draw_roofline, format_profile
from relvm.explore.draw.matplotlib_import import new_figure
from relvm.explore.draw.memory_chart import Box, draw_boxes
from relvm.frontend.text import parse_module
from relvm.runtime.profiler import Profile, ProfileRow

PROFILE = Profile(
    "main",
    0.010,
    (
        ProfileRow("matmul_f32", "kernel", 2, 0.005, 0.5, 10_000_000, 100_000_000),
        ProfileRow("host.log", "packed", 1, 0.002, 0.2, 0),
        ProfileRow("relu_f32", "kernel", 1, 0.001, 0.1, 12_000_000, 1_500_000),
        ProfileRow("vm.builtin.copy", "builtin", 3, 0.0005, 0.05, 0, 0),
    ),
)
PEAKS = Peaks(40e9, 8e9)
MOVES = Profile(
    "main",
    0.01,
    (
        ProfileRow("transpose_f32", "kernel", 1, 0.005, 0.5, 20_000_000, 0),
        ProfileRow("nonzero_i64", "kernel", 1, 0.004, 0.4, 4_000_000, None),
    ),
    2,
)


def lengths(axes: Axes) -> list[float]:
    return [round(bar.get_width(), 9) for bar in axes.patches if isinstance(bar, Rectangle)]


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_bars_are_milliseconds_and_billions_per_second() -> None:
    times, arithmetic, memory = draw_profile(PROFILE, PEAKS).axes
    assert [label.get_text() for label in times.get_yticklabels()] == [
        "matmul_f32",
        "host.log",
        "relu_f32",
        "vm.builtin.copy",
        "(the machine)",
    ]
    assert lengths(times) == [5, 2, 1, 0.5, 1.5]
    assert texts(times) == ["50.0%", "20.0%", "10.0%", "5.0%", "15.0%"]
    assert lengths(arithmetic) == [20, 0, 1.5, 0, 0]
    assert texts(arithmetic) == ["20.00", "", "1.50", "", ""]
    assert lengths(memory) == [2, 0, 12, 0, 0]
    assert texts(memory) == ["2.00", "", "12.00", "", ""]
    lines = [(line.get_label(), list(line.get_xdata())) for axes in (arithmetic, memory) for line in axes.lines]
    assert lines == [("peak: 40.0", [40, 40]), ("a copy: 8.0", [8, 8])]
    assert times.get_title() == "main: 10.000 ms"


def test_the_shortest_have_one_bar_together() -> None:
    times, *_ = draw_profile(PROFILE, PEAKS, most=1).axes
    assert [label.get_text() for label in times.get_yticklabels()] == ["matmul_f32", "(3 more)", "(the machine)"]
    assert lengths(times) == [5, 3.5, 1.5]


def test_the_text_has_the_same_and_how_far_from_the_roof() -> None:
    assert format_profile(PROFILE, PEAKS, most=3).split("\n") == [
        "main: 10.000 ms; peaks of 1 thread: 40.0 GFLOP/s, 8.0 GB/s",
        "                     ms  share              calls  GFLOP/s   GB/s  FLOP/byte  of roof",
        "  matmul_f32     5.0000  50.0%  ##########      2    20.00   2.00      10.00    50.0%",
        "  host.log       2.0000  20.0%  ####            1        -      -          -        -",
        "  relu_f32       1.0000  10.0%  ##              1     1.50  12.00       0.12   150.0%",
        "  (1 more)       0.5000   5.0%  #",
        "  (the machine)  1.5000  15.0%  ###",
        "",
    ]


def test_what_computes_nothing_is_held_against_memory_alone() -> None:
    assert format_profile(MOVES, Peaks(None, 8e9, 2)).split("\n")[:4] == [
        "main: 10.000 ms; peaks of 2 threads: not measured, 8.0 GB/s",
        "                     ms  share              calls  GFLOP/s  GB/s  FLOP/byte  of roof",
        "  transpose_f32  5.0000  50.0%  ##########      1     0.00  4.00       0.00    50.0%",
        "  nonzero_i64    4.0000  40.0%  ########        1        -  1.00          -        -",
    ]
    assert "of roof" in format_profile(PROFILE, Peaks(None, 8e9)).split("\n")[1]
    assert format_profile(PROFILE, Peaks(None, 8e9)).split("\n")[2].endswith("20.00   2.00      10.00        -")


def test_points_are_where_intensity_and_rate_say() -> None:
    axes, names = draw_roofline(PROFILE, PEAKS).axes
    points = {drawn.get_gid(): drawn for drawn in axes.collections}
    places = {name: tuple(drawn.get_offsets()[0]) for name, drawn in points.items()}
    assert places == {"matmul_f32": (10.0, 20.0), "relu_f32": (0.125, 1.5)}
    assert points["matmul_f32"].get_sizes()[0] > points["relu_f32"].get_sizes()[0]
    (roof,) = axes.lines
    (left, _, right), (least, *most) = roof.get_xdata(), roof.get_ydata()
    assert list(roof.get_xdata())[1] == 40 / 8 and most == [40, 40] and least == 8 * left
    assert left < 0.125 and right > 10
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert texts(names) == [
        " 1 matmul_f32: 50.0%, 50% of roof\n 2 relu_f32: 10.0%, 150% of roof\n - host.log: 20.0%",
    ]


def test_kernels_that_compute_nothing_have_no_place() -> None:
    axes, names = draw_roofline(MOVES, PEAKS).axes
    assert not axes.collections
    assert texts(names) == [" - transpose_f32: 50.0%\n - nonzero_i64: 40.0%"]


def test_a_roofline_needs_the_peak_of_arithmetic() -> None:
    with pytest.raises(RelvmToolchainError, match="requires the peak of arithmetic"):
        draw_roofline(PROFILE, Peaks(None, 8e9))


def test_a_run_is_drawn_with_the_peaks_of_this_machine() -> None:
    module = parse_module("def main(x: f32[n], y: f32[n, m]) -> f32[m] { return relu(matmul(x, y)) }")
    machine = vm.VirtualMachine(vm.build(module), num_threads=2)
    profile = machine.profile("main", np.ones(100, np.float32), np.ones((100, 100), np.float32))
    assert profile.threads == 2
    times, arithmetic, memory = draw_profile(profile).axes
    assert [label.get_text() for label in times.get_yticklabels()] == [*(r.name for r in profile.rows), "(the machine)"]
    assert sum(lengths(times)) == pytest.approx(profile.seconds * 1e3, rel=1e-3)
    peak, copied = (axes.lines[0].get_xdata()[0] for axes in (arithmetic, memory))
    assert peak > 0.5 and copied > 0.1
    assert max(lengths(arithmetic)) < 2 * peak  # with a tolerance, because other processes can disturb the measurement
    assert "peaks of 2 threads" in format_profile(profile)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"most": 0}, "most=0: expected at least 1"),
        ({"peaks": Peaks(1e9, 0.0)}, r"peaks\.bytes is 0\.0, expected a positive number"),
        ({"peaks": Peaks(float("nan"), 1e9)}, r"peaks\.operations is nan, expected a positive number"),
    ],
)
@pytest.mark.parametrize("show", [draw_profile, format_profile, draw_roofline])
def test_options_without_a_meaning_are_errors(show, options: dict, message: str) -> None:
    with pytest.raises(RelvmArgumentError, match=message):
        show(PROFILE, **{"peaks": PEAKS, **options})


def test_numbers_of_points_at_one_place_stand_side_by_side() -> None:
    rows = tuple(ProfileRow(f"kernel_{k}", "kernel", 1, 1e-4, 1e-4, 1000, 500) for k in range(4))
    axes, _ = draw_roofline(Profile("main", 1e-3, rows), Peaks(4e10, 1e10)).axes
    moved = [text.get_position() for text in axes.texts if text.get_text().isdecimal()]
    assert moved == [(0, 0), (0, 9), (0, 18), (0, 27)]  # in points; the letters have a size of 7 points


def test_labels_of_boxes_fit_in_them() -> None:
    boxes = [Box("a" * 60, 0, 8, 0, 0), Box("b" * 60, 0, 8, 1, 9), Box("c", 8, 8, 0, 9)]
    figure = new_figure(10, 4)
    axes = figure.subplots()
    draw_boxes(axes, boxes, 16, 16)
    assert [text.get_text() for text in axes.texts] == ["a" * 13 + "…", "b" * 60, "c"]
    figure.draw_without_rendering()
    for text, box in zip(axes.texts, boxes, strict=True):
        left, right = axes.transData.transform([(box.first, 0), (box.last + 1, 0)])[:, 0]
        assert left < text.get_window_extent().x0 and text.get_window_extent().x1 < right
