"""Spell Arabic and Persian names in Latin letters."""

from __future__ import annotations

from arabic_name_romanizer import transliterate
from client import main

NAMES = ("محمد زقزوق", "حبيبة عطيفي", "شنتوتيف", "ذبیح‌الله مجاهد", "قرنفلاوي")


def start():
    return transliterate


def call(made):
    found = [made(text, top_k=3) for text in NAMES]
    return [[[each.text, each.score] for each in some] for some in found]


main(start, call)
