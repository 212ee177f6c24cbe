"""Runs of a client's program with each library."""

from __future__ import annotations

import json
import subprocess
import tempfile
from typing import Any

from clients.catalogue import CLIENTS
from clients.comparison import difference
from clients.environments import command


def printed(name: str, library: str, *arguments: str) -> dict[str, Any]:
    """Run the program of a client, and return the JSON object that it prints in its last line.

    library: "relvm" or "onnxruntime".   arguments: those of the program (`programs/client.py`).
    """
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            command(CLIENTS[name], library, *arguments), cwd=folder, capture_output=True, text=True, timeout=600
        )
    if done.returncode:
        raise RuntimeError(f"{name} failed with {library}:\n{done.stderr[-4000:]}")
    return json.loads(done.stdout.rstrip().rpartition("\n")[2])


def expect_equal_results(name: str) -> None:
    """Run a client with onnxruntime and with relvm, and fail if the results differ."""
    theirs, ours = (printed(name, library)["result"] for library in ("onnxruntime", "relvm"))
    assert not difference(ours, theirs, CLIENTS[name].tolerance)
