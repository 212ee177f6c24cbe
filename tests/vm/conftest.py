"""Puts this folder's own helpers on the path."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
