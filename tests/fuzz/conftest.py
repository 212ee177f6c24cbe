"""Puts this folder's own helpers on the path, and those of tests/vm."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "vm")]
