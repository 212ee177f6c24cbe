"""Read text in pictures with PP-OCRv6."""

from __future__ import annotations

from client import main, page
from rapidocr import RapidOCR

LINES = ("Hello tensor programs", "invoice 2026-11-25", "total 1234.50 EUR")
PICTURES = (page(*LINES), page("One more line", size=36, width=420))


def start():
    return RapidOCR()


def call(made):
    found = [made(picture) for picture in PICTURES]
    return [[each.boxes, each.txts, each.scores] for each in found]


main(start, call)
