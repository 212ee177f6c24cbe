"""Drawing for `relvm show --picture` and `--graph`, and for `relvm run --roofline` and `--graph`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relvm import explore
from relvm.cli.models import chosen_target, expect_html_name
from relvm.cli.output import note, put
from relvm.cli.progress import Progress
from relvm.compiler.target import parse_target
from relvm.errors import RelvmArgumentError
from relvm.ir.expr import Module
from relvm.runtime.file_io import complete_file
from relvm.vm import Profile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TEXTS: dict[str, Callable[..., str]] = {
    "dataflow": explore.format_dataflow,
    "calls": explore.format_calls,
    "memory": explore.format_memory,
    "liveness": explore.format_liveness,
}
_FIGURES: dict[str, Callable[..., Figure]] = {
    "dataflow": explore.draw_dataflow,
    "calls": explore.draw_calls,
    "memory": explore.draw_memory,
    "liveness": explore.draw_liveness,
}
_PAGES = {"dataflow": explore.browse_dataflow, "calls": explore.browse_calls}


def show_picture(module: Module, options: argparse.Namespace) -> None:
    """Print a picture of a module as text.  With --output, write an image or an HTML page.

    The option --picture names the kind of picture.
    """
    name, output = options.picture, options.output
    given: dict[str, Any] = {"target": parse_target(chosen_target(options)).kind, "fused": not options.unfused}
    if options.function is not None:
        if name == "calls":
            raise RelvmArgumentError(
                "--function cannot be combined with --picture calls, because that picture shows all functions"
            )
        given["function"] = options.function
    if output is None:
        with Progress("building"):
            text = _TEXTS[name](module, **given)
        put(text, end="")
        return
    if Path(output).suffix == ".html":
        if name not in _PAGES:
            raise RelvmArgumentError(f"--output {output}: expected an image file; HTML requires {' or '.join(_PAGES)}")
        with Progress("drawing"):
            _PAGES[name](module, **given).save(output)
    else:
        with Progress("drawing"):
            save_figure(_FIGURES[name](module, **given), "--output", output)
    note(f"wrote {output}")


def write_graph(
    module: Module, options: argparse.Namespace, function: str | None = None, profile: Profile | None = None
) -> None:
    """Write the dataflow graph of a module, or of one function, to the HTML file of --graph.

    profile: if it is given, the times in it determine the colors of the nodes.
    """
    expect_html_name("--graph", options.graph)
    target, fused = parse_target(chosen_target(options)).kind, not options.unfused
    with Progress("drawing"):
        page = explore.browse_dataflow(module, function, profile=profile, target=target, fused=fused)
        replace(page, title=f"{Path(options.model).name}: {page.title}").save(options.graph)
    note(f"wrote {options.graph}")


def save_figure(figure: Figure, option: str, file: str) -> None:
    """Write a figure to a file, in the format of the file's suffix.

    Raises
    ------
    RelvmArgumentError
        matplotlib does not support the format.
    OSError
        The file cannot be written; an existing file is unchanged.
    """
    forms = figure.canvas.get_supported_filetypes()
    if Path(file).suffix[1:] not in forms:
        raise RelvmArgumentError(f"{option} {file}: expected a file name ending in one of {', '.join(sorted(forms))}")
    with complete_file(file) as partial:
        figure.savefig(partial, format=Path(file).suffix[1:])
