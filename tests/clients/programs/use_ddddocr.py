"""Read captchas with two models, and detect boxes."""

from __future__ import annotations

from client import main, page, png
from ddddocr import DdddOcr

PICTURES = [png(page(text, size=32, width=160)) for text in ("2CWK", "h7pd", "9xQA")]
PAGE = png(page("one two", "three four", size=40, width=400))


def start():
    return DdddOcr(show_ad=False), DdddOcr(show_ad=False, old=True), DdddOcr(show_ad=False, ocr=False, det=True)


def call(made):
    new, old, detector = made
    texts = [each.classification(picture) for each in (new, old) for picture in PICTURES]
    return [texts, detector.detection(PAGE)]


main(start, call)
