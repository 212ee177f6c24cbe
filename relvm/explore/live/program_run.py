"""Run of a program on random inputs, with its times and the share of each kernel."""

from __future__ import annotations

import re
import statistics
import time
from typing import Any

import numpy as np

from relvm.bytecode.program import input_names, signature_entry
from relvm.compiler.build import assemble, lower, native_functions
from relvm.compiler.target import parse_target
from relvm.errors import RelvmArgumentError, RelvmError
from relvm.explore.live.build_request import BuildRequest
from relvm.explore.stages.page import kernel_times
from relvm.frontend.text.parser import parse_type
from relvm.ir.expr import Module
from relvm.ir.input_chooser import InputChooser
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline
from relvm.runtime.array_files import named_outputs
from relvm.runtime.executable import Executable
from relvm.runtime.virtual_machine import VirtualMachine

MAX_BYTES = 1 << 30  # limit on the memory that the machine allocates
MAX_ELEMENTS = 1 << 24  # limit on the elements of the inputs
_SECONDS = 0.5  # time in which runs are repeated
_MAX_RUNS = 100


def run_program(module: Module, request: BuildRequest) -> dict[str, Any]:
    """Run the function `main` of a module, or else its first public function, on random inputs.

    Return JSON data: the function, the inputs and outputs, the best and the median time of several runs in
    milliseconds, and the times of the kernels.  If the run fails, the message of the error begins with the location of
    the instruction that failed, if it is known.

    Raises
    ------
    RelvmError
        The program cannot be built, there are no random inputs for it, or the run failed.
    """
    public = [function.name for function in module.functions if not function.private]
    if not public:
        raise RelvmArgumentError("the program has no public function to run")
    name = "main" if "main" in public else public[0]
    # Native functions that a debugger can stop are slower, so that they are only built to locate an error.
    is_bytecode = request.exec_mode == "bytecode"
    try:
        return _measure(_executable(module, request, debug=is_bytecode), name)
    except RelvmError as error:
        if is_bytecode:
            raise _located(error) from None
    try:
        return _measure(_executable(module, request, debug=True), name)
    except RelvmError as error:
        raise _located(error) from None


def _executable(module: Module, request: BuildRequest, *, debug: bool) -> Executable:
    steps = build_pipeline(request.target, fused=request.fused, without=request.without)
    lir = lower(run_passes(module, steps))
    target = parse_target(request.target)
    program = assemble(
        lir, native_functions(lir, request.exec_mode), target=target, debug_source=module if debug else None
    )
    return Executable.from_program(program, elsewhere=True)


def _measure(executable: Executable, name: str) -> dict[str, Any]:
    machine = VirtualMachine(executable, max_bytes=MAX_BYTES)
    function = machine[name]
    signature = signature_entry(executable.signature, name)
    assert signature is not None, "a program that was built from a module describes its functions"
    names, types = input_names(signature), [parse_type(param["type"]) for param in signature["params"]]
    chosen = InputChooser(names, types, {}, {}, max_elements=MAX_ELEMENTS).choose(lambda values: function(*values))
    seconds: list[float] = []
    result = None
    while not seconds or (len(seconds) < _MAX_RUNS and sum(seconds) < _SECONDS):
        started = time.perf_counter()
        result = function(*chosen.values)
        seconds.append(time.perf_counter() - started)
    timeline = machine.profile(name, *chosen.values, timeline=True).timeline
    assert timeline is not None
    outputs = named_outputs(result, signature["attributes"].get("output_names"))
    return {
        "function": name,
        "inputs": [
            {"name": each, "type": _form(value), "text": chosen.described.get(each) or _short(value)}
            for each, value in zip(names, chosen.values, strict=True)
        ],
        "outputs": [{"name": each, "type": _form(value), "text": _short(value)} for each, value in outputs.items()],
        "best": 1000 * min(seconds),
        "median": 1000 * statistics.median(seconds),
        "runs": len(seconds),
        "times": kernel_times(timeline),
    }


def _form(value: Any) -> str:
    """Return the dtype and the shape of a value."""
    array = np.asarray(value)
    return f"{array.dtype}[{', '.join(map(str, array.shape))}]" if array.ndim else str(array.dtype)


def _short(value: Any) -> str:
    """Return the first and last elements of a value."""
    return np.array2string(np.asarray(value), threshold=8, edgeitems=2, precision=4, separator=", ")


def _located(error: RelvmError) -> RelvmError:
    """Return an error whose message begins with the source location of the instruction that failed.

    The location is in the stack trace, which the machine adds to the error as a note.
    """
    notes = "\n".join(getattr(error, "__notes__", ()))
    found = re.search(r"^  in .* at instruction \d+.* \((.+:\d+:\d+)\)$", notes, re.MULTILINE)
    return type(error)(f"{found[1]}: {error}") if found else error
