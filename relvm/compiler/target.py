"""What `target=` names: where kernels come from, and which processors compiled ones are for."""

from __future__ import annotations

import os
from collections.abc import Container
from dataclasses import dataclass

from relvm._native import lib
from relvm.errors import RelvmArgumentError, RelvmToolchainError, expect_type, near_matches
from relvm.passes.pipeline import TARGETS
from relvm.tables import CPU_FEATURES

LEVELS = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")
_CHOICES = ("-march=", "-mcpu=", "-mtune=")  # what the C compiler knows the names of
_PRODUCTS = ("avx512vnni", "avxvnni")  # what products of bytes are made of, and no level has


@dataclass(frozen=True)
class Target:
    """kind: one of TARGETS.  options: of the C compiler, saying which processors; None: as this machine's are."""

    kind: str
    options: tuple[str, ...] | None = None


HERE = Target("c")


def parse_target(text: str) -> Target:
    """The target that a text names.

    "c", "numpy"; "native" and the names of x86-64 levels, which are "c -march=" and that; "c" with options of gcc and
    clang that say which processors: -march=, -mcpu= and -mtune= with a level or processor that the compiler knows,
    -mFEATURE and -mno-FEATURE with a row of csrc/tables/cpu_features.def.

    Raises
    ------
    RelvmTypeError
        It is no text.
    RelvmArgumentError
        No such target, option or feature.
    """
    expect_type("target", text, str, "a text")
    kind, *options = text.split() or [""]
    if kind in (*LEVELS, "native"):
        kind, options = "c", [f"-march={kind}", *options]
    if kind not in TARGETS or (options and kind != "c"):
        choices = (*TARGETS, "native", *LEVELS)
        expected = f"expected one of {', '.join(choices)}, or c and options as -march=NAME"
        raise RelvmArgumentError(f"target={text!r}: {expected}{near_matches(kind, choices)}")
    for option in options:
        _expect_option(text, option)
    return Target(kind, tuple(options) or None)


def _expect_option(text: str, option: str) -> None:
    if any(option.startswith(choice) and option != choice for choice in _CHOICES):
        return
    features = [row.option for row in CPU_FEATURES]
    feature = option.removeprefix("-mno-") if option.startswith("-mno-") else option.removeprefix("-m")
    if not option.startswith("-m") or feature not in features:
        expected = f"expected {', '.join(_CHOICES)}, or -m or -mno- and a feature of the processor"
        raise RelvmArgumentError(f"target={text!r}: {option!r}: {expected}{near_matches(feature, features)}")


def own_options() -> tuple[str, ...]:
    """The options for this processor, or for the x86-64 level that RELVM_CPU names.

    Raises
    ------
    RelvmToolchainError
        RELVM_CPU is no level.
    """
    asked = os.environ.get("RELVM_CPU")
    if asked and asked not in LEVELS:
        raise RelvmToolchainError(f"RELVM_CPU: expected one of {', '.join(LEVELS)}, got {asked!r}")
    if asked:
        return (f"-march={asked}",)
    present = lib.rvm_cpu_features()
    options = {row.option for row in CPU_FEATURES if present >> row.index & 1}
    level = level_of(options)
    extra = (f"-m{name}" for name in _PRODUCTS if name in options and level in LEVELS[2:])
    return (f"-march={level}", *extra)


def level_of(options: set[str]) -> str:
    """The highest level of which all features are in a set."""
    reached = [n for n in (2, 3, 4) if all(row.option in options for row in CPU_FEATURES if 0 < row.level <= n)]
    return LEVELS[max(reached, default=1) - 1]


def described(macros: Container[str]) -> str:
    """What a native section says of the processors that its code is for, by the macros that the compiler defines: the
    level and the features beyond it."""
    options = [row.option for row in CPU_FEATURES if row.macro in macros]
    level = level_of(set(options))
    inside = {row.option for row in CPU_FEATURES if 0 < row.level <= LEVELS.index(level) + 1}
    names = () if level == LEVELS[0] else (level,)
    return " ".join((*names, *(option for option in options if option not in inside)))
