"""Repeat the runs of a failed test: `PYTHONPATH=tests:tests/vm python -m random_programs FILE`.

FILE contains the text that the failure printed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from support.modes import WAYS

from random_programs.outcomes import check
from random_programs.replay import from_text

module, runs = from_text(Path(sys.argv[1]).read_text())
for run, outcome in zip(runs, check(module, runs, WAYS), strict=True):
    print(f"{run.name}: {outcome.error or outcome.value!r}, the same in every way")
