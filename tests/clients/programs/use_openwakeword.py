"""Listen for wake words: a melspectrogram, an embedding, and a model for each word."""

from __future__ import annotations

from client import main, pcm, voice
from openwakeword.model import Model

SOUND = pcm(voice(3.2))


def start():
    return Model()


def call(made):
    made.reset()
    return [made.predict(SOUND[at : at + 1280]) for at in range(0, len(SOUND), 1280)]


main(start, call)
