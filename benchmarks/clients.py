"""Compare packages that use onnxruntime, on relvm and on onnxruntime:   python -m benchmarks.clients [NAME...]

The packages and their programs are those of tests/clients.  Each measurement is a new process, and the libraries take
turns.  The figures are medians.

- first s: from before the package creates its sessions to the first result, without imports.  relvm has an empty cache.
- again s: the same for relvm, with all native code in the cache.
- steady ms: a repeated call, with relvm's native code.
- memory MB: the peak resident memory of that process.

Each ratio is relvm's figure divided by onnxruntime's.  Set RELVM_CLIENTS_DIR to keep the installed packages.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from clients.catalogue import CLIENTS
from clients.environments import command, interpreter

Figures = dict[str, float]

_COLUMNS = (
    *("client", "first s", "again s", "onnxruntime s", "first / onnxruntime", "again / onnxruntime"),
    *("steady ms", "onnxruntime ms", "ratio", "memory MB", "onnxruntime MB", "ratio"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clients", nargs="*", metavar="NAME", help=", ".join(CLIENTS))
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each figure (default: 3)")
    parser.add_argument("--seconds", type=float, default=4.0, help="time of the repeated calls (default: 4)")
    options = parser.parse_args()
    names = options.clients or list(CLIENTS)
    if unknown := sorted(set(names) - set(CLIENTS)):
        parser.error(f"no such client: {', '.join(unknown)}")
    print("| " + " | ".join(_COLUMNS) + " |\n|" + "---|" * len(_COLUMNS))
    ratios: list[tuple[float, ...]] = []
    for name in names:
        interpreter(CLIENTS[name])  # installs the packages
        try:
            cells, row = _row(name, options.rounds, options.seconds)
        except subprocess.CalledProcessError as error:
            print(f"{name} failed: {' '.join(error.cmd)}\n{error.stderr[-2000:]}", file=sys.stderr)
            continue
        ratios.append(row)
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    if ratios:
        means = (math.exp(statistics.fmean(map(math.log, column))) for column in zip(*ratios, strict=True))
        print(
            "\ngeometric means of the ratios: first {:.2f}, again {:.2f}, steady {:.2f}, memory {:.2f}".format(*means)
        )


def _row(name: str, rounds: int, seconds: float) -> tuple[list[str], tuple[float, ...]]:
    """Return the cells of a client, and the four ratios."""
    cold: list[Figures] = []
    ours: list[Figures] = []
    theirs: list[Figures] = []
    with tempfile.TemporaryDirectory() as folder:
        _measured(name, "onnxruntime", folder)  # the first process of a package also compiles its Python files
        for turn in range(rounds):
            cold.append(_measured(name, "relvm", f"{folder}/{turn}"))
            theirs.append(_measured(name, "onnxruntime", folder, seconds))
        _fill_cache(name, f"{folder}/0")
        for _ in range(rounds):
            ours.append(_measured(name, "relvm", f"{folder}/0", seconds))
            theirs.append(_measured(name, "onnxruntime", folder, seconds))

    def middle(measured: list[Figures], figure: str) -> float:
        return statistics.median(each[figure] for each in measured)

    first, again, other = middle(cold, "first_s"), middle(ours, "first_s"), middle(theirs, "first_s")
    steady, memory = ([middle(each, figure) for each in (ours, theirs)] for figure in ("steady_ms", "memory_mb"))
    row = first / other, again / other, steady[0] / steady[1], memory[0] / memory[1]
    figures = (first, again, other, *row[:2], *steady, row[2])
    return [*(f"{each:.3g}" for each in figures), *(f"{each:.0f}" for each in memory), f"{row[3]:.3g}"], row


def _measured(name: str, library: str, cache: str, seconds: float = 0.0) -> Figures:
    """Return what the program of a client prints about its times."""
    return _run(command(CLIENTS[name], library, "--seconds", str(seconds)), cache)


def _fill_cache(name: str, cache: str) -> None:
    """Run the program on relvm, and wait until all native code is in the cache."""
    program, python = command(CLIENTS[name], "relvm")[-1], str(interpreter(CLIENTS[name]))
    _run([python, str(Path(__file__).with_name("clients_child.py")), program], cache)


def _run(arguments: list[str], cache: str) -> Figures:
    environment = os.environ | {"RELVM_CACHE_DIR": cache}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(arguments, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    printed = json.loads(done.stdout.rstrip().rpartition("\n")[2])
    return {figure: value for figure, value in printed.items() if figure != "result"}


if __name__ == "__main__":
    main()
