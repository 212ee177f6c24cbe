"""Loading and printing of malicious files (slow_files.py) takes time proportional to the size of the file.

The goal is one second for 10 MB.  The limits in these tests are ten times as large, because the machine may be busy.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from slow_files import SLOW_FILES

from relvm.bytecode.asm_printer import listing
from relvm.bytecode.encode import encode
from relvm.bytecode.program import FunctionEntry, Program
from relvm.errors import RelvmError, RelvmFormatError
from relvm.runtime.executable import Executable

LOADED_BYTES, SHOWN_BYTES = 4_000_000, 400_000
SECONDS_FOR_A_BYTE = 10 * 1 / 10_000_000
TEXT_FOR_A_BYTE = 300

# The errors for files in which many entries share one part of the file, or whose code is too complex.  All other files
# are accepted.
REFUSED = {
    "strings_inside_each_other": "overlaps the string table or the previous string",
    "shared_parameters": "the parameters of function x1 begin at entry 0",
    "shared_instructions": "has instructions but is not a bytecode function",
    "functions_of_one_name": "two functions use string 0 as their name",
    "calls_of_a_long_name": "must have 1 to 1000 bytes",
    "parameters_of_a_long_name": "the name of parameter 0 of function f must have 1 to 1000 bytes",
    "constants_of_one_string": "loading needs more memory than is allowed for a file of",
    "shared_dimensions": "the dimensions of constant 1 begin at entry 0",
    "tensors_of_the_same_strings": "loading needs more memory than is allowed for a file of",
    "jumps_to_one_place": "verifying it takes too long",
    "jumps_to_themselves": "too many jumps for its number of registers",
    "jumps_to_many_places": "too many jumps for its number of registers",
}


@pytest.mark.parametrize("make", SLOW_FILES, ids=lambda make: make.__name__)
def test_loading_takes_time_in_proportion_to_the_file(make: Callable[[int], np.ndarray]) -> None:
    content = make(LOADED_BYTES)
    began = time.process_time()
    try:
        Executable.from_bytes(content, functions=("*",))
        message = ""
    except RelvmError as error:
        message = str(error)
    assert time.process_time() - began < SECONDS_FOR_A_BYTE * len(content)
    expected = REFUSED.get(make.__name__, "")
    assert expected in message and bool(expected) == bool(message)


@pytest.mark.parametrize("make", SLOW_FILES, ids=lambda make: make.__name__)
def test_showing_takes_time_in_proportion_to_the_file(make: Callable[[int], np.ndarray], tmp_path: Path) -> None:
    path = tmp_path / "slow.rvm"
    make(SHOWN_BYTES).tofile(path)
    began = time.process_time()
    try:
        executable = Executable.check(path, check_data=False)
    except RelvmError:
        return
    text = listing(executable.program)
    executable.stats()
    assert time.process_time() - began < 20 * SECONDS_FOR_A_BYTE * SHOWN_BYTES
    assert len(text) < TEXT_FOR_A_BYTE * SHOWN_BYTES


@pytest.mark.parametrize("size", [1000, 1001])
def test_names_have_at_most_1000_bytes(size: int) -> None:
    name = "ä" * (size // 2) + "a" * (size % 2)
    entries = [FunctionEntry(name, "packed"), FunctionEntry("f", "packed", (name,))]
    for entry in entries:
        if size <= 1000:
            assert Executable.from_program(Program((entry,))).function_count == 1
        else:
            with pytest.raises(RelvmFormatError, match="a name must have at most 1000 bytes"):
                encode(Program((entry,)))
