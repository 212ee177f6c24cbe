"""Split Russian words into morphemes."""

from __future__ import annotations

from client import main
from slovorez import Slovorez

TEXTS = ("Приставки и суффиксы выделяются автоматически.", "переподготовка", "мама мыла раму")


def start():
    return Slovorez.from_pretrained("slovorez-test")


def call(made):
    found = [made.predict(text) for text in TEXTS]
    return [[[m.text, str(m.type), m.score] for m in word["morphemes"]] for words in found for word in words]


main(start, call)
