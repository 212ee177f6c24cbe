"""Packages for Arduino and PlatformIO, compiled with the options of their cores, and run under emulation."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from programs_ahead import numbers

from relvm import aot, vm
from relvm.cli.main import main
from relvm.errors import RelvmArgumentError, RelvmUnsupportedError
from relvm.frontend.text import parse_module

ROOT = Path(__file__).resolve().parents[2]
BOARD = ROOT / "examples/cortex_m"
X = numbers(1, 2, 8, 8)
NETWORK = """
def main(x: f32[1, 2, 8, 8]) -> (f32[1, 5], i64[1]) {
  a = relu(conv(x, const(f32[4, 2, 3, 3], FILTERS), pads=(1, 1, 1, 1)))
  b = max_pool(a, kernel=(2, 2), strides=(2, 2))
  d = softmax(matmul(reshape(b, shape(1, 64)), const(f32[64, 5], WEIGHTS)), axis=1)
  return (d, argmax(d, axis=1))
}"""
for word, value in (("FILTERS", numbers(4, 2, 3, 3)), ("WEIGHTS", numbers(64, 5, seed=2))):
    NETWORK = NETWORK.replace(word, str(value.round(1).tolist()))

# A stand-in for the header of a core.  The serial port is the console of the emulator.
ARDUINO = """
#include <stdint.h>
#include <stdio.h>
struct SerialPort {
  void begin(long) {}
  explicit operator bool() const { return true; }
  void print(const char *text) { printf("%s", text); }
  void print(long number) { printf("%ld", number); }
  void print(double number, int digits) { printf("%.*f", digits, number); }
  void println(const char *text) { printf("%s\\n", text); }
  void println(long number) { printf("%ld\\n", number); }
  void println(unsigned long number) { printf("%lu\\n", number); }
  void println(double number, int digits) { printf("%.*f\\n", digits, number); }
};
extern SerialPort Serial;
inline unsigned long micros() { return 0; }
inline unsigned long millis() { return 0; }
"""
CORE = """
#include <Arduino.h>
SerialPort Serial;
void setup();
int main() {
#ifdef __ARM_FP
  *(volatile uint32_t *)0xe000ed88 |= 0xf << 20; /* enables the floating-point unit */
  __asm__ volatile("dsb\\n isb");
#endif
  setup();
}
"""
# The options of the cores besides those of the processor: for C and C++, and for C++ only.
COMMON = ["-Os", "-ffunction-sections", "-fdata-sections", "-Wall", "-Wextra", "-Werror"]
CXX = ["-std=gnu++14", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"]
MACHINES = {"nano33ble": "mps2-an386", "pico": "mps2-an385", "teensy41": "mps2-an500"}


def program(board: str | None = "nano33ble", **options) -> aot.AotProgram:
    return aot.build(parse_module(NETWORK), aot.AotConfig("digits", board=board, **options))


@pytest.fixture(scope="module")
def trial() -> tuple[tuple, list]:
    machine = vm.VirtualMachine(vm.build(parse_module(NETWORK), "bytecode", target="bytecode"))
    return (X,), [machine["main"](X)]


def compile_sketch(library: Path, sketch: Path, board: aot.Board, folder: Path) -> Path:
    """Compile a sketch and a library as the build of a core does: every source by itself, with one include folder."""
    core = folder / "core"
    core.mkdir()
    (core / "Arduino.h").write_text(ARDUINO)
    (core / "core.cpp").write_text(CORE)
    objects = []
    flags = [*COMMON, *board.flags, f"-I{core}", f"-I{library / 'src'}"]
    for source in (sketch, core / "core.cpp", *sorted((library / "src").rglob("*.c"))):
        is_c = source.suffix == ".c"
        language = ["gcc", "-std=gnu11"] if is_c else ["g++", *CXX, "-x", "c++"]
        objects.append(str(folder / f"{source.stem}.o"))
        command = [f"{board.tools}{language[0]}", *language[1:], *flags, "-c", str(source), "-o", objects[-1]]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr, done.stderr
    linked = [*board.flags, "-Wl,--gc-sections", "--specs=rdimon.specs", "-T", str(BOARD / "mps2.ld")]
    image = folder / "sketch.elf"
    command = [f"{board.tools}gcc", *objects, str(BOARD / "vectors.c"), *linked, "-lm", "-o", str(image)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return image


def run_sketch(kind: str, name: str, trial, folder: Path) -> str:
    """Write, compile and run a package, and return what it prints."""
    missing = [tool for tool in ("arm-none-eabi-g++", "qemu-system-arm") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (.ci/run has the packages)")
    package, is_library = folder / "package", kind == "arduino"
    program(name).write(package, trial, package=kind)
    board = next(board for board in aot.BOARDS if board.name == name)
    library = package if is_library else package / "lib/digits"
    sketch = package / ("examples/SelfTest/SelfTest.ino" if is_library else "src/main.cpp")
    image = compile_sketch(library, sketch, board, folder)
    emulated = ["-machine", MACHINES[name], "-nographic", "-semihosting-config", "enable=on,target=native"]
    done = subprocess.run(["qemu-system-arm", *emulated, "-kernel", image], capture_output=True, text=True, timeout=60)
    return done.stdout


@pytest.mark.parametrize("kind", ["arduino", "platformio"])
@pytest.mark.parametrize("name", MACHINES)
def test_a_package_passes_its_self_test(kind: str, name: str, trial, tmp_path: Path) -> None:
    printed = run_sketch(kind, name, trial, tmp_path)
    assert "self-test passed" in printed, printed
    assert printed.count(" values, ") == 2


def test_a_self_test_detects_a_wrong_output(trial, tmp_path: Path) -> None:
    inputs, ((scores, index),) = trial
    wrong = np.array(scores.numpy())
    wrong[0, 2] += 0.001
    assert "self-test FAILED" in run_sketch("arduino", "pico", (inputs, [(wrong, index)]), tmp_path)


def test_an_arduino_library_follows_the_specification(trial) -> None:
    """The rules are those of the Arduino library specification, revision 2.2."""
    files = program().files(trial, package="arduino")
    lines = files["library.properties"].decode().splitlines()
    fields = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    required = {"name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url", "architectures"}
    assert required <= fields.keys() and all(fields.values())
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 _.\-]{0,62}", fields["name"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", fields["version"])
    assert fields["category"] == "Data Processing"  # one of the categories of the specification
    assert f"src/{fields['includes']}" in files
    assert all(path.startswith(("src/", "examples/SelfTest/")) or path == "library.properties" for path in files)
    assert "examples/SelfTest/SelfTest.ino" in files  # a sketch has the name of its folder


def test_a_platformio_project_has_a_manifest_and_an_environment(trial) -> None:
    """The rules are those of the schema of library.json."""
    files = program("teensy41").files(trial, package="platformio")
    manifest = json.loads(files["lib/digits/library.json"])
    assert {"name", "version", "description", "keywords"} <= manifest.keys()
    assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", manifest["name"]) and len(manifest["name"]) <= 50
    assert f"lib/digits/src/{manifest['headers']}" in files
    assert "-ffp-contract=off" in manifest["build"]["flags"]
    assert files["platformio.ini"].decode().startswith("[env:teensy41]\nplatform = teensy\nboard = teensy41\n")


@pytest.mark.parametrize(
    ("board", "kind", "options", "error", "message"),
    [
        (None, "arduino", {}, RelvmArgumentError, "package='arduino': expected a board and interface='c'"),
        ("pico", "arduino", {"interface": "packed"}, RelvmArgumentError, "expected a board and interface='c'"),
        ("pico2", "platformio", {}, RelvmUnsupportedError, "PlatformIO has no Raspberry Pi Pico 2"),
        ("pico", "zephyr", {}, RelvmArgumentError, "package='zephyr': expected one of arduino, platformio"),
    ],
)
def test_packages_that_are_refused(board, kind, options, error, message: str, trial) -> None:
    with pytest.raises(error, match=re.escape(message)):
        program(board, **options).files(trial, package=kind)
    with pytest.raises(RelvmArgumentError, match="expected a trial for the self-test, got None"):
        program(board, **options).files(package=kind)


def test_a_name_that_arduino_reserves_is_refused(trial) -> None:
    made = aot.build(parse_module(NETWORK), aot.AotConfig("arduino_digits", board="pico"))
    with pytest.raises(RelvmArgumentError, match="expected a name of at most 63 characters that do not begin with"):
        made.files(trial, package="arduino")


def test_the_command_writes_a_package(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "model.relvm"
    model.write_text("def main(x: f32[4]) -> f32[4] = exp(x)")
    command = ["export", str(model), "--package", "arduino", "-o", str(tmp_path / "out")]
    assert main(command) == 1
    assert "--package arduino requires --board" in capsys.readouterr().err
    assert main([*command, "--board", "pico"]) == 0
    assert "want_" in (tmp_path / "out/examples/SelfTest/SelfTest.ino").read_text()
    assert not (tmp_path / "out/Makefile").exists()
