"""Compile sources for a Cortex-M, and run them on a board that QEMU emulates.

With -icount, every instruction takes the same emulated time, so a timer of the board counts instructions exactly.  The
stack is filled with a pattern before the run.  The part that differs from the pattern afterwards has been used.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.aot.models import Model
from benchmarks.aot.sides import Sources

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parents[1] / "examples" / "cortex_m"

_COMPILER = "arm-none-eabi-gcc"
_FLAGS = ("-fwrapv", "-ffunction-sections", "-fdata-sections")  # relvm's sources need -fwrapv
_LINK = ("-Wl,--gc-sections", "-nostartfiles", "--specs=nano.specs", "-T", str(EXAMPLE / "mps2.ld"))
_TALK = ("-display", "none", "-chardev", "stdio,id=out", "-semihosting-config", "enable=on,target=native,chardev=out")
_SHIFT = 8  # an instruction takes 2**8 ns of emulated time
_TICK_NS = 40  # period of the timer, which runs at 25 MHz


@dataclass(frozen=True)
class Processor:
    """A processor.  flags: options of the compiler.  machine: the board in QEMU."""

    name: str
    flags: tuple[str, ...]
    machine: str


PROCESSORS = (
    Processor("Cortex-M3", ("-mcpu=cortex-m3", "-mthumb"), "mps2-an385"),
    Processor("Cortex-M4F", ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"), "mps2-an386"),
)


@dataclass(frozen=True)
class Measured:
    """Measurements of an image and its run.

    flash_bytes: the size of instructions and constants.  static_bytes: the size of static variables.  stack_bytes: the
    maximum stack depth.  instructions: the number of instructions executed.  output: the output of the model.
    """

    flash_bytes: int
    static_bytes: int
    stack_bytes: int
    instructions: int
    output: np.ndarray

    def without(self, empty: Measured) -> Measured:
        """Return what a model adds to an image without a model."""
        names = ("flash_bytes", "static_bytes", "stack_bytes", "instructions")
        return Measured(*(getattr(self, name) - getattr(empty, name) for name in names), self.output)


def measure(sources: Sources, model: Model, processor: Processor, level: str, folder: Path) -> Measured:
    """Build an image from the sources of a code generator, measure its size and run it."""
    image = folder / f"image{processor.name}{level}.elf"
    _write_values(model, folder / "values.h")
    include = [f"-I{place}" for place in (folder, *sources.include)]
    compiler = [_COMPILER, *_FLAGS, *sources.options, level, *processor.flags, *include]
    files = [HERE / "board.c", EXAMPLE / "vectors.c", *sources.files]
    _output([*compiler, *files, *_LINK, "-lm", "-o", image])
    text, data, bss = map(int, _output(["arm-none-eabi-size", image]).splitlines()[1].split()[:3])
    emulated = ["qemu-system-arm", "-machine", processor.machine, "-icount", f"shift={_SHIFT}", "-kernel", image]
    lines = _output([*emulated, *_TALK]).split("\n")
    ticks, stack = (int(line, 16) for line in lines[:2])
    words = np.array([int(word, 16) for word in lines[2].split()], np.uint32)
    instructions = round(ticks * _TICK_NS / 2**_SHIFT)
    return Measured(text + data, data + bss, stack, instructions, words.view(np.float32).reshape(model.output_shape))


def _write_values(model: Model, path: Path) -> None:
    words = ", ".join(f"{word:#x}" for word in model.input.ravel().view(np.uint32))
    path.write_text(f"""#define INPUT_WORDS {model.input.size}
#define OUTPUT_WORDS {np.prod(model.output_shape)}
#define INPUT {words}
""")


def _output(command: Sequence[str | Path]) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout
