"""Make the helper modules of this folder, tests/vm and tests/ops importable."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), *(str(Path(__file__).parents[1] / name) for name in ("vm", "ops"))]
