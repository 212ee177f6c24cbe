"""Compare the random models of a range of seeds: `PYTHONPATH=tests python -m differential 0 20000`."""

from __future__ import annotations

import sys

from differential.comparison import Comparison
from differential.onnxruntime_process import OnnxRuntimeProcess


def main(first: int, end: int) -> int:
    with OnnxRuntimeProcess() as onnxruntime:
        comparison = Comparison(onnxruntime)
        for seed in range(first, end):
            shown = len(comparison.report.faults)
            comparison.model(seed)
            for fault in comparison.report.faults[shown:]:
                print(fault, flush=True)
    for what, count in comparison.report.counts.items():
        print(f"{count:8} {what}")
    return int(bool(comparison.report.faults))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
