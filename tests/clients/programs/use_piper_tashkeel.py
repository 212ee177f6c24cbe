"""Add diacritics to Arabic and Hebrew text."""

from __future__ import annotations

from client import main
from piper.hebrew import NakdimonDiacritizer
from piper.tashkeel import TashkeelDiacritizer

ARABIC = ("بسم الله الرحمن الرحيم", "ذهب الولد الى المدرسة في الصباح الباكر", "كتب")
HEBREW = ("שלום עולם", "הילד הלך לבית הספר בבוקר")


def start():
    return TashkeelDiacritizer(), NakdimonDiacritizer()


def call(made):
    return [[each(text) for text in texts] for each, texts in zip(made, (ARABIC, HEBREW), strict=True)]


main(start, call)
