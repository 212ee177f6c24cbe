"""Puts this folder's own helpers on the path, and those of tests/vm and tests/ops."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), *(str(Path(__file__).parents[1] / name) for name in ("vm", "ops"))]
