"""Rate the quality of a voice, with three families of models."""

from __future__ import annotations

import numpy as np
from client import main, voice
from speechmos import aecmos, dnsmos, plcmos

SOUND = voice(3.0)


def start():
    return dnsmos, plcmos, aecmos


def call(made):
    np.random.seed(1)  # plcmos draws numbers
    echo = {"lpb": SOUND, "mic": 0.5 * SOUND[::-1], "enh": 0.9 * SOUND}
    return [dnsmos.run(SOUND, 16000), plcmos.run(SOUND, 16000), aecmos.run(echo, 16000, talk_type="dt")]


main(start, call)
