"""For each ONNX operator, the function that draws a node of it."""

from __future__ import annotations

from frontend.drafts import elementwise, moves, neural, reductions

OPERATORS = elementwise.DRAFTS | moves.DRAFTS | neural.DRAFTS | reductions.DRAFTS
