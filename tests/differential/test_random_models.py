"""Random ONNX models have the same results with static sizes, with symbolic sizes and in ONNX Runtime.

A model may also be rejected.  `PYTHONPATH=tests python -m differential FIRST END` compares the models of other seeds.
"""

from __future__ import annotations

import pytest
from differential.comparison import Comparison, Report
from differential.onnxruntime_process import OnnxRuntimeProcess

BLOCKS, BLOCK = 10, 50


@pytest.mark.parametrize("block", range(BLOCKS))
def test_static_dynamic_and_onnxruntime_agree(block: int) -> None:
    with OnnxRuntimeProcess() as onnxruntime:
        comparison = Comparison(onnxruntime)
        for seed in range(block * BLOCK, (block + 1) * BLOCK):
            comparison.model(seed)
    expect_agreement(comparison.report)


def expect_agreement(report: Report) -> None:
    assert not report.faults, "\n".join(report.faults)
    counts = report.counts
    refused = counts["refused by relvm, static"] + counts["refused by relvm, dynamic"]
    assert counts["answered by all"] > 0.6 * counts["runs"]
    assert refused < 0.2 * counts["runs"], dict(counts)
    assert counts["static where ONNX Runtime refuses"] + counts["dynamic where ONNX Runtime refuses"] <= 1
