"""Read short texts in pictures."""

from __future__ import annotations

from captcha_whisperer import recognize
from client import main, page, png

PICTURES = [png(page(text, size=32, width=160)) for text in ("2CWK", "H7PD", "9XQA", "MMRT")]


def start():
    return recognize


def call(made):
    return [made(picture, detailed=True) for picture in PICTURES]


main(start, call)
