"""Test of examples/embeddings.py with a real model and its tokenizer."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.documents import ROOT

pytest.importorskip("tokenizers")


def test_similar_sentences_have_similar_embeddings() -> None:
    command = [sys.executable, "examples/embeddings.py", "The dog sleeps.", "A puppy is asleep.", "Taxes rise in May."]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    rows = [[float(cell) for cell in line.split()[:3]] for line in done.stdout.splitlines()[1:]]
    assert [rows[i][i] for i in range(3)] == [1, 1, 1]
    assert rows[0][1] == rows[1][0] > max(rows[0][2], rows[1][2])
