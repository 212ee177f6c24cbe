"""Run a program on relvm, and wait for native code, for benchmarks/clients.py.

The command is `python benchmarks/clients_child.py PROGRAM`.  Without this wrapper, relvm would compile only
the models that run long enough, and only until the program ends.
"""

from __future__ import annotations

import contextlib
import runpy
import sys
from pathlib import Path
from typing import Any

import relvm.compiler.upgrade
import relvm.onnxruntime
from relvm.errors import RelvmError
from relvm.runtime.background_compile import Upgrade

_upgrades: list[Upgrade] = []  # of all models of the program


class _KeptUpgrade(Upgrade):
    """An Upgrade that is kept when the program deletes its session, so that it is compiled."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        _upgrades.append(self)


def main(program: str) -> None:
    relvm.onnxruntime.install()
    relvm.compiler.upgrade.Upgrade = _KeptUpgrade  # type: ignore[misc]
    sys.argv = [program]
    sys.path[0] = str(Path(program).parent)
    runpy.run_path(program, run_name="__main__")
    for upgrade in _upgrades:
        with contextlib.suppress(RelvmError):  # the logger "relvm" has printed a warning
            upgrade.wait(None)


if __name__ == "__main__":
    main(sys.argv[1])
