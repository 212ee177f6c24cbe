"""Keep the voice of one speaker, as a stream."""

from __future__ import annotations

import numpy as np
from client import main, voice
from voicefilter_lite import StreamingVoiceFilter

SPEAKER, SOUND = voice(3.0), voice(1.0)[::-1].copy()


def start():
    return StreamingVoiceFilter()


def call(made):
    made.set_enrollment(SPEAKER)
    made.reset_state()
    parts = [made.step(SOUND[at : at + 160]) for at in range(0, 16000, 160)]
    return np.concatenate(parts)[::10]


main(start, call)
