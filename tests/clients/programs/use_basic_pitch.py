"""Transcribe music to notes."""

from __future__ import annotations

import contextlib
import tempfile
import wave

from basic_pitch import ICASSP_2022_MODEL_PATH
from basic_pitch.inference import Model, predict
from client import main, pcm, voice

SOUND = pcm(voice(3.0, 22050)).tobytes()


def start():
    return Model(ICASSP_2022_MODEL_PATH)


def call(made):
    with tempfile.NamedTemporaryFile(suffix=".wav") as file, contextlib.redirect_stdout(None):
        with wave.open(file, "wb") as sound:
            sound.setparams((1, 2, 22050, 0, "NONE", ""))
            sound.writeframes(SOUND)
        output, _, notes = predict(file.name, made)
    return [output["note"][::8, ::4], [list(map(float, note[:4])) for note in notes]]


main(start, call)
