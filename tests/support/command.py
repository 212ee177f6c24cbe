"""Running the command `relvm` in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def relvm(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "relvm", *arguments]
    variables = os.environ | environment
    return subprocess.run(command, cwd=cwd, input="", capture_output=True, text=True, env=variables, timeout=300)
