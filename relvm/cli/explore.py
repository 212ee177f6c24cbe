"""`relvm explore`: serve a page that shows all compilation stages, with an editor."""

from __future__ import annotations

import argparse
import shlex
from importlib.resources import files
from pathlib import Path

from relvm.cli.arguments import Parser, file_name
from relvm.cli.common_arguments import add_dim, add_number, add_target
from relvm.cli.models import chosen_target, expect_writable, model_path_and_dims
from relvm.cli.output import flush, put
from relvm.compiler.target import parse_target
from relvm.errors import RelvmArgumentError, RelvmFormatError, RelvmUnsupportedError
from relvm.explore.live.build_request import BuildRequest
from relvm.runtime.file_io import read_text


def add_arguments(parser: Parser) -> None:
    parser.example = "relvm explore program.relvm"
    parser.description = (
        "Serve a page with an editor and every compilation stage on 127.0.0.1, until Ctrl-C. It needs the "
        "packages starlette and uvicorn: pip install 'relvm[explore]'."
    )
    what = "a .relvm file, or an .onnx model, whose text is read-only (default: an example)"
    parser.add_argument("model", nargs="?", type=file_name, metavar="MODEL", help=what)
    add_dim(parser)
    add_target(parser)
    parser.add_argument("--exec-mode", choices=("bytecode", "compiled"), default="bytecode", help="default: bytecode")
    parser.add_argument(
        "-o", "--output", type=file_name, metavar="OUT.relvm", help="file that the button Save of the page writes"
    )
    add_number(parser, "--port", "default: a free port", least=0, most=65535, default=0)
    parser.add_argument("--no-browser", action="store_true", help="print the address of the page, and open no browser")


def run(options: argparse.Namespace) -> int:
    """Serve a web page that has an editor and shows the program after every pass, until Ctrl-C."""
    try:
        from relvm.explore.live.server import serve
    except ImportError as error:
        raise RelvmUnsupportedError(
            f"relvm explore needs starlette and uvicorn: pip install 'relvm[explore]' ({error})"
        ) from None
    text, model = _program_or_model(options)
    if model and options.output:
        raise RelvmArgumentError("--output requires a program in the text form; the text of an ONNX model is read-only")
    expect_writable("--output", options.output)
    if options.output and not options.output.endswith(".relvm"):
        raise RelvmFormatError(f"-o {options.output}: expected a file ending in .relvm")
    target = parse_target(chosen_target(options))
    if target.options is not None:
        raise RelvmArgumentError(
            f"--target {options.target}: the stages do not depend on the processor; use --target c"
        )
    start = BuildRequest(text, options.exec_mode, target.kind, not options.unfused, shlex.join(options.dim))
    serve(
        start,
        Path(options.model).name if options.model else "example.relvm",
        model=model,
        output=Path(options.output) if options.output else None,
        port=options.port,
        opens_browser=not options.no_browser,
        announce=_announce,
    )
    return 0


def _program_or_model(options: argparse.Namespace) -> tuple[str, str]:
    """Return the text of the program and the path of the ONNX model.  One of them is ""."""
    if options.model is None:
        if options.dim:
            raise RelvmArgumentError("--dim requires an ONNX model")
        return (files("relvm") / "explore" / "live" / "example.relvm").read_text(encoding="utf-8"), ""
    path, _ = model_path_and_dims(options)
    match path.suffix:
        case ".relvm":
            return read_text(path), ""
        case ".onnx":
            return "", str(path)
    raise RelvmFormatError(f"{path}: expected a model (.onnx or .relvm), got a file with the suffix {path.suffix!r}")


def _announce(address: str) -> None:
    put(f"exploring at {address} (Ctrl-C ends it)")
    flush()
