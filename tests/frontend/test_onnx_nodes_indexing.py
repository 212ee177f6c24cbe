"""The ONNX suite's cases of what takes parts, positions, sizes and bits, in both modes."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")
from frontend.node_cases import Operator, Suite

from relvm.errors import RelvmUnsupportedError
from relvm.frontend.onnx import from_onnx

_POSITIONS = ("GatherElements", "GatherND", "ScatterElements", "ScatterND", "Scatter", "TopK", "NonZero", "Compress")
_LOGIC = ("IsNaN", "IsInf", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitShift", "Mod")
_MORE = ("Size", "Shape", "Einsum", "Trilu", "EyeLike", "ArgMax", "ArgMin", "Range", "CastLike")

SUITE = Suite(
    {
        **{name: Operator() for name in (*_POSITIONS, *_LOGIC, *_MORE)},
        "Tile": Operator(),
        "Split": Operator(known=(1,)),
        "OneHot": Operator(),
        "CumSum": Operator(known=(1,)),
        "CumProd": Operator(known=(1,)),
        **{
            f"Reduce{name}": Operator(known=(1,))
            for name in ("L1", "L2", "LogSum", "LogSumExp", "SumSquare", "Sum", "Mean", "Max", "Min", "Prod")
        },
    }
)


@pytest.mark.parametrize("name", SUITE.running)
def test_case(name: str) -> None:
    SUITE.check(name)


@pytest.mark.parametrize("name", SUITE.skipped)
def test_what_is_left_out_is_refused(name: str) -> None:
    with pytest.raises(RelvmUnsupportedError, match=SUITE.skipped[name]):
        from_onnx(SUITE.model_and_inputs(name)[0])
