"""Track the pitch of a voice, at once and as a stream."""

from __future__ import annotations

import numpy as np
from client import main, voice
from swift_f0 import SwiftF0

SOUND = voice(2.0)


def start():
    return SwiftF0()


def call(made):
    whole = made.detect(SOUND, 16000)
    stream = made.stream()
    parts = [stream.push(SOUND[at : at + 4000], 16000) for at in range(0, len(SOUND), 4000)]
    parts.append(stream.flush())
    streamed = np.concatenate([part.pitch_hz for part in parts])
    return [whole.pitch_hz, whole.confidence, streamed]


main(start, call)
