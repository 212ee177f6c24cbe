"""Convert Japanese text to phonemes; a model chooses the reading of one word."""

from __future__ import annotations

import pyopenjtalk
from client import main

TEXTS = ("何を食べますか", "何の話ですか", "これは何ですか", "何と言いましたか", "今日は天気が良いです")


def start():
    return pyopenjtalk.g2p


def call(made):
    return [made(text) for text in TEXTS]


main(start, call)
