"""Tell speech from silence, in buffers of any length."""

from __future__ import annotations

from akiki import VAD
from client import main, voice

SOUND = voice(2.0)


def start():
    return VAD(engine="onnx")


def call(made):
    made.reset()
    frames = [
        frame for at in range(0, len(SOUND), 3000) for frame in made.push(SOUND[at : at + 3000], sample_rate=16000)
    ]
    return [[frame.start_seconds, frame.probability, bool(frame.speech)] for frame in frames]


main(start, call)
