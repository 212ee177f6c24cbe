"""An export as a whole: a module through its passes, as files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relvm.aot.c_project import EXACT, Sources, print_sources
from relvm.aot.c_trial import print_trial
from relvm.aot.config import AotConfig
from relvm.aot.lower_main import lower_main
from relvm.aot.lowered import LoweredModule
from relvm.aot.placement import FunctionPlacement, place_storages
from relvm.aot.trial import make_trial
from relvm.errors import RelvmUnsupportedError
from relvm.ir.expr import Module
from relvm.ir.stages import Stage
from relvm.transform.passes import run_passes
from relvm.transform.pipelines import build_pipeline

_MAKEFILE = """\
# make: the library lib{name}.a.   make test: runs it on the inputs of test/main.c, and compares.
CC ?= cc
AR ?= ar
CFLAGS ?= -O3
TOLERANCE ?= 1e-5
# -fwrapv: integers wrap around.  -ffp-contract=fast, -fopenmp-simd: what the machine's kernels are compiled with;
# without them results differ in their last bits.  What rounds to whole numbers rounds each product by itself.
ALL_CFLAGS = -std=c99 -Wall -Wextra -Werror -pedantic -fwrapv -fno-math-errno -fno-trapping-math -ffp-contract=fast \\
  -fopenmp-simd -DRVM_OPENMP_SIMD -Iinclude -Isrc $(CFLAGS)
OBJECTS = {objects}

lib{name}.a: $(OBJECTS)
\t$(AR) rcs $@ $(OBJECTS)

src/{name}_{exact}kernels.o: ALL_CFLAGS += -ffp-contract=off

%.o: %.c $(wildcard include/*.h src/*.h)
\t$(CC) $(ALL_CFLAGS) -c $< -o $@
{test}
clean:
\trm -f lib{name}.a $(OBJECTS) test/main

.PHONY: clean test
"""

_TEST = """
test/main: test/main.c lib{name}.a
\t$(CC) $(ALL_CFLAGS) -DRELVM_TOLERANCE=$(TOLERANCE) $< lib{name}.a -lm -o $@

test: test/main
\t./test/main
"""


@dataclass(frozen=True)
class AotProgram:
    """A module ahead of time.

    Attributes
    ----------
    legal
        The module as it was lowered from, at stage LEGAL.
    lowered, placements, sources
        What `lower_main`, `place_storages` and `print_sources` made of it.
    """

    config: AotConfig
    legal: Module
    lowered: LoweredModule
    placements: dict[str, FunctionPlacement]
    sources: Sources

    def write(self, folder: str | Path, trial: tuple[Sequence[Any], Sequence[Any]] | None = None) -> None:
        """Write a folder that `make` builds.

        Parameters
        ----------
        folder
            Made where it is not there; files of an earlier export are replaced.
        trial
            Inputs, and what should come out, in the order of the entry's parameters and results: `make test` tries
            them.
        """
        files = dict(self.sources.files)
        objects = " ".join(sorted(name[:-2] + ".o" for name in files if name.endswith(".c")))
        test = _TEST.format(name=self.config.name) if trial else ""
        files["Makefile"] = _MAKEFILE.format(name=self.config.name, exact=EXACT, objects=objects, test=test)
        if trial:
            files["test/main.c"] = print_trial(self.lowered, make_trial(self.lowered, *trial), self.config)
        for name, text in files.items():
            place = Path(folder, name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)


def build(
    module: Module, config: AotConfig | None = None, *, entry: str = "main", verified: bool = False
) -> AotProgram:
    """Compile a function ahead of time.

    Parameters
    ----------
    module
        As a front end made it.
    entry
        The function to be exported, with all that it calls.
    verified
        Check the module after every pass.

    Raises
    ------
    RelvmUnsupportedError
        Something needs a machine; the message says what and where.  Or the interface is "packed", as that of the hosted
        runtime is: there are no exports for these yet.
    RelvmMemoryError
        Tensors do not fit into the pools.
    """
    config = config or AotConfig()
    if config.interface != "c":
        given = f"interface={config.interface!r}, runtime={config.runtime!r}"
        raise RelvmUnsupportedError(f'{given}: there is only interface="c" of the bare runtime so far')
    steps = [step for step in build_pipeline("c") if step.to <= Stage.LEGAL]
    legal = run_passes(module, steps, verified=verified)
    lowered = lower_main(legal, config, entry)
    placements = place_storages(lowered, config)
    return AotProgram(config, legal, lowered, placements, print_sources(lowered, placements, config))
