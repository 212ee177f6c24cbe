"""Tests of the sizes and values of random inputs, which are guessed from names and types."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.command import relvm

from relvm.frontend.text.parser import parse_type
from relvm.ir.typical_inputs import typical_array, typical_sizes


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({"x": "f32[batch, 3, h, w]"}, {"batch": 1, "h": 224, "w": 224}),
        ({"x": "f32[x_dim0, 3, x_dim2, x_dim3]"}, {"x_dim0": 1, "x_dim2": 224, "x_dim3": 224}),
        ({"frame": "u8[rows, columns, 3]"}, {"rows": 224, "columns": 224}),
        ({"input_ids": "i64[N, seq_len]", "attention_mask": "i64[N, seq_len]"}, {"N": 1, "seq_len": 16}),
        ({"inputIds": "i64[a, k]"}, {"a": 1, "k": 16}),
        ({"wav": "f32[b, m]", "sr": "i64[]"}, {"b": 1, "m": 16000}),
        ({"features": "f32[batch_size, frames, 80]"}, {"batch_size": 1, "frames": 16}),
        ({"x": "f32[k, 7]", "pair": "(f32[p], i64)"}, {"k": 1}),
        ({"x": "f32[k]", "y": "f32[2 * m]"}, {}),
    ],
)
def test_typical_sizes(inputs: dict[str, str], expected: dict[str, int]) -> None:
    assert typical_sizes(list(inputs), list(map(parse_type, inputs.values()))) == expected


@pytest.mark.parametrize(
    ("name", "type_text", "low", "high", "described"),
    [
        ("input_ids", "i64[2, 8]", 2, 99, "0 to 99"),
        ("attention_mask", "i32[2, 8]", 1, 1, "1"),
        ("token_type_ids", "i64[2, 8]", 0, 0, "0"),
        ("image", "f32[1, 3, 8, 8]", 0, 1, "0 to 1"),
        ("x", "u8[8, 8, 3]", 100, 255, "0 to 255"),
        ("x", "f32[100]", -5, 5, ""),
        ("x", "i64[100]", 0, 1, ""),
    ],
)
def test_typical_values(name: str, type_text: str, low: float, high: float, described: str) -> None:
    array, text = typical_array(name, parse_type(type_text), {}, np.random.default_rng(0))
    assert text == described
    assert array.dtype.name.startswith({"i": "int", "u": "uint", "f": "float"}[type_text[0]])
    assert array.min() >= (0 if described else low) and low <= array.max() <= high


def test_run_states_the_sizes_and_the_values(tmp_path: Path) -> None:
    text = """def main(input_ids: i64[batch, seq], x: f32[k]) {
      table = broadcast_to(const(f32[], 1), shape(100, 2))
      return (gather(table, input_ids, axis=0), x)
    }"""
    (tmp_path / "large.relvm").write_text(text)
    (tmp_path / "small.relvm").write_text(text.replace("100", "50"))
    small = relvm("run", "small.relvm", "--random", "--target", "bytecode", cwd=tmp_path)
    assert small.returncode == 0, small.stderr
    assert "--random: batch=1, seq=16, k=1 (change with --dim)" in small.stderr  # 99 exceeds its table
    for command in (
        ("run", "large.relvm", "--random"),
        ("bench", "large.relvm", "--seconds", "0.01"),
        ("compare", "large.relvm", "--modes", "reference,bytecode"),
        ("debug", "large.relvm", "--random"),
    ):
        done = relvm(*command, "--target", "bytecode", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "--random: batch=1, seq=16, k=1; input_ids: 0 to 99 (change with --dim and --input)" in done.stderr
