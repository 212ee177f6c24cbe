"""`relvm run`: run a model."""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from relvm.cli.arguments import Parser, file_name, picture_file
from relvm.cli.colors import Style
from relvm.cli.common_arguments import (
    add_build_limits,
    add_function,
    add_inputs,
    add_json,
    add_model,
    add_number,
    add_run_limits,
    add_trust_native,
)
from relvm.cli.inputs import input_values, signature_of
from relvm.cli.models import expect_html_name, expect_writable, load_or_build, read_module, run_limits
from relvm.cli.output import note, put, put_json
from relvm.cli.progress import Progress
from relvm.compiler.adapt import adapt
from relvm.errors import RelvmArgumentError, RelvmError
from relvm.quoting import terminal
from relvm.runtime.array_files import named_outputs, save_arrays
from relvm.runtime.file_io import EXECUTABLE_SUFFIXES
from relvm.vm import Executable, Profile, VirtualMachine

_HOT = 0.1  # a row with at least this share of the time is highlighted


def add_arguments(parser: Parser) -> None:
    parser.example = "relvm run model.onnx --random --profile"
    add_model(parser)
    add_function(parser)
    add_inputs(parser)
    parser.add_argument(
        "--exec-mode",
        choices=("bytecode", "compiled", "auto"),
        help="default: auto, which compiles native code during long runs, and uses what is cached; with --target: "
        "bytecode",
    )
    parser.add_argument("-o", "--output", type=file_name, metavar="OUT.npz", help="save the outputs under their names")
    add_number(parser, "--repeat", "run N times and print the median time", default=1)
    parser.add_argument("--profile", action="store_true", help="run once more and print the time of each function")
    parser.add_argument(
        "--profile-kernels",
        action="store_true",
        help="--profile, with the time of each instruction of kernels; implies --target bytecode",
    )
    parser.add_argument(
        "--trace",
        type=file_name,
        metavar="OUT.json",
        help="run once more and save the time of each call, for Perfetto (ui.perfetto.dev)",
    )
    parser.add_argument(
        "--timeline",
        type=file_name,
        metavar="OUT.html",
        help="run once more and write an HTML page of all stages with the time of each call",
    )
    parser.add_argument(
        "--roofline",
        nargs="?",
        const="",
        type=picture_file,
        metavar="OUT.svg",
        help="run once more and compare each kernel with the limits of this machine: print a table, or draw it",
    )
    parser.add_argument(
        "--graph",
        type=file_name,
        metavar="OUT.html",
        help="run once more and write an HTML page of the dataflow graph, colored by the time of each kernel",
    )
    add_run_limits(parser)
    add_build_limits(parser)
    add_trust_native(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Run a function of a model on inputs from files or on random inputs, and print or save its outputs."""
    if options.output and Path(options.output).suffix != ".npz":
        raise RelvmArgumentError(f"--output {options.output}: expected a file name ending in .npz")
    if options.json and options.roofline == "":
        raise RelvmArgumentError(
            "--roofline prints a table, which --json excludes; use --profile, or --roofline OUT.svg"
        )
    expect_writable("--output", options.output)
    expect_writable("--roofline", options.roofline)
    expect_writable("--trace", options.trace)
    for option in ("graph", "timeline"):
        _expect_page(f"--{option}", getattr(options, option), options.model)
    if options.profile_kernels and options.target == "auto" and Path(options.model).suffix not in EXECUTABLE_SUFFIXES:
        options.target = "bytecode"
    executable = adapt(load_or_build(options, exec_mode="auto" if options.target == "auto" else "bytecode"))
    machine = VirtualMachine(executable, **run_limits(options))
    function = machine[options.function]
    signature = signature_of(executable, options.function)
    attributes = signature["attributes"]
    values = input_values(options, signature, lambda values: function(*values))
    has_timeline = bool(options.trace or options.timeline)
    is_profiled = has_timeline or options.profile or options.profile_kernels or options.graph
    is_profiled = is_profiled or options.roofline is not None
    if options.repeat > 1 or is_profiled:
        _wait_for_native_code(machine)
    seconds = []
    for _ in range(options.repeat):
        started = time.perf_counter()
        result = function(*values)
        seconds.append(time.perf_counter() - started)
    outputs = named_outputs(result, attributes.get("output_names"))
    if options.output:
        save_arrays(options.output, outputs)
        note(f"wrote {', '.join(outputs)} to {options.output}")
    profile = None
    if is_profiled:  # one run, so that all tables and pages show the same times
        profile = machine.profile(options.function, *values, kernels=options.profile_kernels, timeline=has_timeline)
        if options.profile_kernels and not profile.kernels:
            note("no kernel ran as bytecode, so no instructions were measured; build the model with --target bytecode")
    is_printed = options.profile or options.profile_kernels
    if options.json:
        put_json(_run_as_json(outputs, seconds, profile if is_printed else None))
    else:
        if not options.output:
            for name, value in outputs.items():
                put(_shown(name, value))
        if profile and is_printed:
            put(profile, styles=_hot_lines(profile))
    if profile and options.trace:
        _save_trace(profile, options.trace)
    if profile and options.roofline is not None:
        _show_roofline(profile, options.roofline)
    if profile and options.graph:
        _write_graph(profile, options)
    if profile and options.timeline:
        _write_timeline(profile, options)
    runs = f", median of {options.repeat} runs" if options.repeat > 1 else ""
    note(f"{statistics.median(seconds) * 1e3:.3f} ms{runs}{_how_to_compile(executable)}")
    return 0


def _expect_page(option: str, file: str | None, model: str) -> None:
    """Check the file of an option that writes an HTML page about a model."""
    if file is None:
        return
    expect_html_name(option, file)
    if Path(model).suffix in EXECUTABLE_SUFFIXES:
        raise RelvmArgumentError(f"{option} requires a model, but {model} is an executable, already built")
    expect_writable(option, file)


def _run_as_json(outputs: Mapping[str, np.ndarray], seconds: list[float], profile: Profile | None) -> dict[str, Any]:
    """Return a JSON value with the outputs (without their elements), the times of the runs, and the profile."""
    found: dict[str, Any] = {
        "outputs": [{"name": name, "dtype": str(value.dtype), "shape": value.shape} for name, value in outputs.items()],
        "seconds": seconds,
    }
    if profile:
        kernels = [asdict(kernel) for kernel in profile.kernels.values()]
        rows = list(map(asdict, profile.rows))
        found["profile"] = {"seconds": profile.seconds, "threads": profile.threads, "rows": rows, "kernels": kernels}
    return found


def _wait_for_native_code(machine: VirtualMachine) -> None:
    """Wait for the native code, if it is being compiled, so that the time of native code is measured."""
    with contextlib.suppress(RelvmError), Progress("building", "C compilation"):
        machine.wait_compiled()


def _how_to_compile(executable: Executable) -> str:
    """Return how to get native code, if the executable has run as bytecode although it can be compiled."""
    upgrade = executable.upgrade
    if upgrade is None or not upgrade.can_succeed or upgrade.executable:
        return ""
    return " as bytecode; with --repeat 2, native code is compiled first and kept for later runs"


def _save_trace(profile: Profile, file: str) -> None:
    assert profile.timeline is not None
    profile.timeline.save(file)
    dropped = f"; {profile.timeline.dropped:,} later calls are missing" if profile.timeline.dropped else ""
    note(f"wrote {len(profile.timeline.calls):,} calls to {file}{dropped}")


def _hot_lines(profile: Profile) -> dict[int, Style]:
    """Return the styles of lines of `str(profile)`, by line number.

    Functions and instructions that take much of the time are highlighted.  In `str(profile)`, the lines of such
    instructions start with an asterisk.
    """
    lines = str(profile).split("\n")
    first = len(profile.rows) + 3  # after the headings, the row of the machine and the total
    marked: dict[int, Style] = {k: "hot" for k in range(first, len(lines)) if lines[k].startswith("*")}
    return _hot_rows(profile, 1) | marked


def _hot_rows(profile: Profile, first: int) -> dict[int, Style]:
    """Return the styles of a table of functions, by line number.  Functions that take much of the time are highlighted.

    first: the line number of the first row of the table.
    """
    return {k: "hot" for k, row in enumerate(profile.rows, first) if row.share >= _HOT}


def _show_roofline(profile: Profile, file: str) -> None:
    """Print the roofline of a profile as a table, or draw it to a file if `file` is not empty."""
    from relvm.cli.plot import save_figure
    from relvm.explore import draw_roofline, format_profile

    if not file:
        put(format_profile(profile), end="", styles=_hot_rows(profile, 2))
        return
    save_figure(draw_roofline(profile), "--roofline", file)
    note(f"wrote {file}")


def _write_graph(profile: Profile, options: argparse.Namespace) -> None:
    from relvm.cli.plot import write_graph

    write_graph(read_module(options), options, profile=profile)


def _write_timeline(profile: Profile, options: argparse.Namespace) -> None:
    from relvm.cli.show import stages_page

    assert profile.timeline is not None
    stages_page(options).with_timeline(profile.timeline).save(options.timeline)
    note(f"wrote {len(profile.timeline.calls):,} calls to {options.timeline}")


def _shown(name: str, value: np.ndarray) -> str:
    text = np.array2string(value, threshold=40, edgeitems=3, precision=6)
    return f"{terminal(name)}: {value.dtype}{list(value.shape)}\n{text}"
