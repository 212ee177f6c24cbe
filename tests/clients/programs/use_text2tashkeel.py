"""Add diacritics to Arabic text, with two models."""

from __future__ import annotations

from client import main
from text2tashkeel import Diacritizer

TEXTS = ("بسم الله الرحمن الرحيم", "ذهب الولد الى المدرسة في الصباح الباكر", "كتب")


def start():
    return Diacritizer(), Diacritizer("rawi-v2-int8")


def call(made):
    return [each.diacritize(text) for each in made for text in TEXTS]


main(start, call)
