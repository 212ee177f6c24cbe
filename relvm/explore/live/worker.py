"""The process that builds and runs programs.  It reads requests from standard input, and writes answers to standard
output.

A separate process keeps the server responsive, and can be ended if a build or a run takes too long.  A message consists
of its length in 8 bytes, least significant byte first, and its content.  The content of a request is the action,
"build", "run" or "graph", a line feed, and the BuildRequest as JSON.  The content of an answer is JSON.  The arguments
of the process are the time limit of an action in seconds, the name of the program, and the path of an ONNX model or "".
"""

from __future__ import annotations

import functools
import gc
import os
import shlex
import sys
from pathlib import Path
from typing import Any, BinaryIO

from relvm.errors import RelvmArgumentError, RelvmError
from relvm.explore.live.build_request import BuildRequest
from relvm.explore.live.program_run import run_program
from relvm.explore.stages.exploration import Exploration, explore
from relvm.explore.stages.page import graph_data, stage_data
from relvm.frontend.dim_settings import parse_dims
from relvm.frontend.read_model import read_model
from relvm.frontend.text.lexer import Source
from relvm.frontend.text.parser import parse_module
from relvm.frontend.text.problem import locate_problem
from relvm.ir.expr import Module
from relvm.passes.pipeline import build_pipeline
from relvm.quoting import html_data
from relvm.system import end_after

LENGTH_BYTES = 8


def main(seconds: int, name: str, model: str) -> None:
    """Answer requests until standard input ends.

    seconds: the time limit of an action.  If one takes longer, the process ends.
    name: the name of the program in messages and source locations.
    model: the path of the ONNX model to build, or "" to build the text of each request.
    """
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # print() writes to standard error, not into an answer
    gc.disable()  # the data of a build has no reference cycles
    while (message := _read_message(requests)) is not None:
        action, _, request = message.partition(b"\n")
        end_after(seconds)
        data = html_data(answer(action.decode(), BuildRequest.from_json(request), name, model)).encode()
        end_after(0)
        answers.write(len(data).to_bytes(LENGTH_BYTES, "little") + data)
        answers.flush()
        gc.collect()


def answer(action: str, request: BuildRequest, name: str, model: str) -> dict[str, Any]:
    """Return the answer to a request as JSON data.

    The answer to "build" has the stages of the program and the passes of the compiler.  The answer to "run" is the
    result of `run_program`.  The answer to "graph" has the page of the graph.  If the action fails, the answer has the
    error.

    Parameters
    ----------
    action
        "build", "run" or "graph".
    request
        The request.
    name
        Name of the program in messages and source locations.
    model
        Path of the ONNX model to build, or "" to build the program in `request.text`.
    """
    try:
        if action == "run":
            return run_program(_module(request, name, model), request)
        stages = _explored(request, name, model)
        return {"graph": stages.graph.embedded_page()} if action == "graph" else _stage_answer(stages, request)
    except RelvmError as error:
        return {"problem": _problem(error, Source(request.text, name))}
    except OSError as error:
        return {"problem": {"message": str(error)}}


@functools.lru_cache(maxsize=1)  # the graph of a program is requested after its stages
def _explored(request: BuildRequest, name: str, model: str) -> Exploration:
    return explore(
        _module(request, name, model),
        exec_mode=request.exec_mode,
        target=request.target,
        fused=request.fused,
        without=request.without,
        assembly=request.assembly,
    )


def _stage_answer(stages: Exploration, request: BuildRequest) -> dict[str, Any]:
    steps = build_pipeline(request.target, fused=request.fused)
    passes = [{"name": step.name, "optional": step.optional} for step in steps]
    return {**stage_data(stages.views), **graph_data(stages.graph), "passes": passes}


def _module(request: BuildRequest, name: str, model: str) -> Module:
    return _model(model, request.dims) if model else parse_module(request.text, name)


@functools.lru_cache(maxsize=1)
def _model(path: str, dims: str) -> Module:
    try:
        settings = shlex.split(dims)
    except ValueError as error:
        raise RelvmArgumentError(f"dims {dims}: {error}; write a name with spaces as in 'seq len=4'") from None
    return read_model(Path(path), parse_dims(settings))


def _problem(error: RelvmError, source: Source) -> dict[str, Any]:
    """Return the message of an error as JSON data.

    If the error has a location in the source text, the data also has the line and the column, both counted from 1, and
    the number of characters to underline.
    """
    problem = locate_problem(error, source)
    if not problem.end:
        return {"message": problem.message}
    line, column = source.line_and_column(problem.start)
    return {
        "message": problem.message,
        "line": line,
        "column": column + 1,
        "length": problem.end - problem.start,
    }


def _read_message(stream: BinaryIO) -> bytes | None:
    """Read a message from the stream.  Return its content, or None at the end of the stream."""
    head = stream.read(LENGTH_BYTES)
    length = int.from_bytes(head, "little")
    body = stream.read(length)
    return body if len(head) == LENGTH_BYTES and len(body) == length else None


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
