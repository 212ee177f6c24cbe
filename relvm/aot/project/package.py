"""Packages of an export for the Arduino tools and PlatformIO.

Both contain a library and a sketch.  The folder src of the library has the public headers, and a folder inside it has
the other sources.  The sketch runs the model on given inputs, and reports over the serial port whether the outputs are
right.

Sources: the Arduino library specification, and PlatformIO's documentation of library.json and platformio.ini.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from relvm.aot.boards import Board
from relvm.aot.config import AotConfig
from relvm.aot.lower.ir import LoweredModule
from relvm.aot.project.board_fit import NEEDED
from relvm.aot.project.self_test import Trial
from relvm.aot.project.self_test_c import comparison, struct_call
from relvm.errors import RelvmArgumentError, RelvmUnsupportedError, expect_choice

PACKAGES = ("arduino", "platformio")
SKETCH = "examples/SelfTest/SelfTest.ino"  # of an Arduino library
_VERSION = "1.0.0"
_BAUD = 115200
_MAX_NAME = {"arduino": 63, "platformio": 50}  # maximum length of the name of a library, in characters

_SKETCH = """\
/* A self-test: runs the model {name} once on the inputs below, and reports over the serial port whether the outputs are
   correct. */
#include <Arduino.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include <{name}.h>{stack}

/* An output passes if no value differs from the expected value by more than RELVM_TOLERANCE times the largest finite
   magnitude of the expected values.  Magnitudes less than 1 count as 1. */
#ifndef RELVM_TOLERANCE
#define RELVM_TOLERANCE 1e-5
#endif

{data}

static void compare(double got, double want, double *largest, double *worst) {{
  const double difference = fabs(got - want);
  if (fabs(want) > *largest && fabs(want) <= DBL_MAX) *largest = fabs(want);
  if (got == want || (got != got && want != want)) return;
  if (!(difference <= *worst)) *worst = difference <= DBL_MAX ? difference : DBL_MAX;
}}

static int report(const char *name, long count, int is_same, double largest, double worst) {{
  Serial.print(name);
  Serial.print(": ");
  Serial.print(count);
  Serial.print(" values, ");
  if (is_same) {{
    Serial.println("the same");
  }} else {{
    Serial.print("largest difference ");
    Serial.print(worst, 9);
    Serial.print(" of ");
    Serial.println(largest, 9);
  }}
  return !is_same && !(worst <= RELVM_TOLERANCE * largest);
}}

/* Returns the number of wrong outputs, or 100 if the run fails, or 101 if the memory for the pools is too small. */
static int self_test() {{
  int failures = 0;
  const unsigned long start = micros();
{body}
  return failures;
}}

void setup() {{
  Serial.begin({baud});
  while (!Serial && millis() < 5000) {{
  }}
  const int failures = self_test();
  Serial.println(failures == 0 ? "self-test passed" : "self-test FAILED");
}}

void loop() {{}}
"""


def package_files(
    kind: str, sources: Mapping[str, str], module: LoweredModule, trial: Trial, config: AotConfig
) -> dict[str, str]:
    """Return the files of a package, by path.

    Parameters
    ----------
    kind
        One of PACKAGES.
    sources
        The sources of the export, by path.
    trial
        The inputs and expected outputs of the self-test.
    config
        The options of the export, which name a board.

    Raises
    ------
    RelvmArgumentError
        `kind` is invalid, or the options of the export do not allow a package.
    RelvmUnsupportedError
        PlatformIO does not have the board.
    """
    expect_choice("package", kind, PACKAGES)
    board = config.known_board
    if board is None or config.interface != "c":
        raise RelvmArgumentError(f"package={kind!r}: expected a board and interface='c'")
    if len(config.name) > _MAX_NAME[kind] or config.name.lower().startswith("arduino"):
        expected = f"at most {_MAX_NAME[kind]} characters that do not begin with arduino"
        raise RelvmArgumentError(f"package={kind!r}: expected a name of {expected}, got {config.name}")
    library = {_place(path, config.name): text for path, text in sources.items()}
    sketch = print_sketch(module, trial, config)
    if kind == "arduino":
        return {**library, "library.properties": _library_properties(config.name, board), SKETCH: sketch}
    if not board.platformio[0]:
        raise RelvmUnsupportedError(
            f"package='platformio': PlatformIO has no {board.title}; export an Arduino library (package='arduino')"
        )
    return {
        **{f"lib/{config.name}/{path}": text for path, text in library.items()},
        f"lib/{config.name}/library.json": _library_json(config.name, board),
        "platformio.ini": _platformio_ini(board),
        "src/main.cpp": sketch,
    }


def _place(path: str, name: str) -> str:
    """Return the path of a source in a library.  Public headers are in src, which is the only include folder."""
    folder, _, file = path.partition("/")
    return f"src/{file}" if folder == "include" else f"src/{name}/{file}"


def print_sketch(module: LoweredModule, trial: Trial, config: AotConfig) -> str:
    """Return the text of a sketch that runs the model once and compares its outputs with those of `trial`."""
    data, call = struct_call(module, trial, config)
    body = [*call, '  Serial.print("microseconds: ");', "  Serial.println(micros() - start);"]
    body += ["  if (status != RVM_OK) {", '    Serial.print("status ");', "    Serial.println((long)status);"]
    body += ["    return 100;", "  }"]
    for port in module.outputs:
        body += [f"  {line}" for line in comparison(port.name, trial.outputs[port.name])]
    return _SKETCH.format(
        name=config.name,
        stack="\n#include <relvm_stack.h>" if config.caller_provides_pools else "",
        data="\n\n".join(data),
        body="\n".join(body),
        baud=_BAUD,
    )


def _library_properties(name: str, board: Board) -> str:
    return f"""\
# Change author, maintainer and url before you publish the library.
name={name}
version={_VERSION}
author=relvm
maintainer=relvm
sentence=The model {name}, compiled to C by relvm.
paragraph=Made for {board.title}. The example SelfTest runs the model once and checks its outputs.
category=Data Processing
url=https://example.com/{name}
architectures=*
includes={name}.h
"""


def _library_json(name: str, board: Board) -> str:
    slug = "-".join(word for word in name.lower().split("_") if word)
    described = {
        "name": slug,
        "version": _VERSION,
        "description": f"The model {name}, compiled to C by relvm for {board.title}.",
        "keywords": ["model", "inference", "relvm"],
        "frameworks": "*",
        "platforms": board.platformio[0],
        "headers": f"{name}.h",
        "build": {"flags": list(NEEDED)},
    }
    return json.dumps(described, indent=2) + "\n"


def _platformio_ini(board: Board) -> str:
    platform, name = board.platformio
    return f"""\
[env:{name}]
platform = {platform}
board = {name}
framework = arduino
monitor_speed = {_BAUD}
"""
