"""Targets of a build: the kind of its kernels, and the processors for which kernels are compiled."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from relvm._native import lib
from relvm.data_classes import value_record
from relvm.errors import RelvmArgumentError, expect_type, near_matches
from relvm.passes.pipeline import TARGETS
from relvm.runtime.machine_limits import LEVELS, requested_level
from relvm.tables import CPU_FEATURES

EXACT_FMA = "exact-fma"
WASM_OPTIONS = ("--target=wasm32-wasi", "-msimd128")  # the options of target "wasm32"
_CHOICES = ("-march=", "-mcpu=", "-mtune=")  # options whose values only the C compiler checks
_PRODUCTS = ("avx512vnni", "avxvnni", "amx-tile", "amx-int8")  # features for 8-bit products, which no level includes
_PRODUCTS_OF_AARCH64 = ("dotprod", "i8mm")


@value_record
class Target:
    """The target of a build.

    kind: the form of kernels, "c", "bytecode" or "numpy".
    options: compiler options that select processors, or None for the processor of this machine.
    exact_fma: whether fused multiply-adds round once on every processor.  Processors without FMA instructions then
    compute them in software, about ten times as slowly, with the same bits as other processors.
    """

    kind: str
    options: tuple[str, ...] | None = None
    exact_fma: bool = False

    @property
    def is_wasm(self) -> bool:
        """Whether kernels are compiled for WebAssembly."""
        return self.options == WASM_OPTIONS

    def __str__(self) -> str:
        """The text form, which `parse_target` reads."""
        return " ".join((self.kind, *(self.settings or ())))

    @property
    def settings(self) -> tuple[str, ...] | None:
        """The words after the kind in the text form, or None if there are none."""
        exact = (EXACT_FMA,) if self.exact_fma else ()
        return (*(self.options or ()), *exact) if self.options or exact else None


HERE = Target("c")


def parse_target(text: str) -> Target:
    """Parse the text form of a target.

    The text is "c", "bytecode" or "numpy".  "native" is short for "c -march=native", and the name of an x86-64 level,
    such as "x86-64-v3", is short for "c -march=x86-64-v3".  "wasm32" is short for "c --target=wasm32-wasi -msimd128":
    kernels are compiled for WebAssembly, by zig cc.

    "c" may be followed by options of gcc and clang that select processors.  These are -march=, -mcpu= and -mtune= with
    a level or processor that the compiler knows, and -mFEATURE and -mno-FEATURE with a feature in
    csrc/tables/cpu_features.def.

    The last word can be "exact-fma", except after "numpy" (`Target.exact_fma`).

    Raises
    ------
    RelvmTypeError
        `text` is not a string.
    RelvmArgumentError
        The target, an option or a feature does not exist.
    """
    expect_type("target", text, str, "a string")
    kind, *options = text.split() or [""]
    if kind == "wasm32":
        kind, options = "c", [*WASM_OPTIONS, *options]
    if kind in (*LEVELS, "native"):
        kind, options = "c", [f"-march={kind}", *options]
    exact_fma = kind != "numpy" and options[-1:] == [EXACT_FMA]
    if exact_fma:
        options.pop()
    if kind == "c" and tuple(options) == WASM_OPTIONS:
        return Target("c", WASM_OPTIONS, exact_fma)
    if kind not in TARGETS or (options and kind != "c"):
        choices = (*TARGETS, "native", *LEVELS, "wasm32")
        expected = f"expected one of {', '.join(choices)}, or c with options such as -march=NAME, and {EXACT_FMA}"
        raise RelvmArgumentError(f"target={text!r}: {expected}{near_matches(kind, choices)}")
    for option in options:
        _expect_option(text, option)
    return Target(kind, tuple(options) or None, exact_fma)


def _expect_option(text: str, option: str) -> None:
    if any(option.startswith(choice) and option != choice for choice in _CHOICES):
        return
    features = [row.option for row in CPU_FEATURES if not _is_of_aarch64(row)]
    feature = option.removeprefix("-mno-") if option.startswith("-mno-") else option.removeprefix("-m")
    if not option.startswith("-m") or feature not in features:
        expected = f"expected {', '.join(_CHOICES)}, or -mFEATURE or -mno-FEATURE"
        raise RelvmArgumentError(f"target={text!r}: {option!r}: {expected}{near_matches(feature, features)}")


def host_options(architecture: str) -> tuple[str, ...]:
    """Return the options that make a C compiler for `architecture` generate code for this processor.

    If the environment variable RELVM_CPU names an x86-64 level, the options for x86-64 are for this level instead.  On
    AArch64, the options name only the features that kernels use, because compilers do not know every processor.

    architecture: "x86_64" or "aarch64".

    Raises
    ------
    RelvmToolchainError
        RELVM_CPU is set to a value that is not an x86-64 level.
    """
    present = lib.rvm_cpu_features()
    options = {row.option for row in CPU_FEATURES if present >> row.index & 1}
    if architecture == "aarch64":
        products = "".join(f"+{name}" for name in _PRODUCTS_OF_AARCH64 if name in options)
        return (f"-march=armv8.2-a{products}",) if products else ()  # only such processors have them
    if requested := requested_level():
        return (f"-march={requested}",)
    level = level_of(options)
    extra = (f"-m{name}" for name in _PRODUCTS if name in options and level in LEVELS[2:])
    return (f"-march={level}", *extra)


def _is_of_aarch64(feature: Any) -> bool:
    """Return whether a row of CPU_FEATURES is for AArch64."""
    return feature.word.startswith("HWCAP")


def level_of(options: set[str]) -> str:
    """Return the highest x86-64 level whose features are all in `options`."""
    complete = [n for n in (2, 3, 4) if all(row.option in options for row in CPU_FEATURES if 0 < row.level <= n)]
    return LEVELS[max(complete, default=1) - 1]


def required_features(macros: Container[str]) -> str:
    """Return the processor features that compiled code requires, as text such as "x86-64-v3 avxvnni".

    On x86-64, the text is the highest level whose features are all required, followed by the required features that are
    not part of this level.  The lowest level is omitted.  On AArch64, it is the required features, such as "dotprod".

    macros: the names of the macros that the compiler predefines.  There is one for each feature that the compiler uses.
    """
    is_aarch64 = "__aarch64__" in macros  # whose compilers define some of the macros of x86-64
    options = [row.option for row in CPU_FEATURES if row.macro in macros and _is_of_aarch64(row) == is_aarch64]
    if is_aarch64:
        return " ".join(options)
    level = level_of(set(options))
    implied = {row.option for row in CPU_FEATURES if 0 < row.level <= LEVELS.index(level) + 1}
    names = () if level == LEVELS[0] else (level,)
    return " ".join((*names, *(option for option in options if option not in implied)))
