"""Read text in pictures: detection, orientation and recognition."""

from __future__ import annotations

from client import main, page
from rapidocr_onnxruntime import RapidOCR

LINES = ("Hello tensor programs", "invoice 2026-11-25", "total 1234.50 EUR")
PICTURES = (page(*LINES), page("One more line", size=40, width=400))


def start():
    return RapidOCR()


def call(made):
    return [made(picture)[0] for picture in PICTURES]


main(start, call)
