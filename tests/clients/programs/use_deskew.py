"""Tell the orientation of pages."""

from __future__ import annotations

from client import main, page
from occular_deskew import detect_angle
from PIL import Image

PAGE = Image.fromarray(page("Hello tensor programs", "invoice 2026-11-25", "total 1234.50 EUR"))
PICTURES = [PAGE.rotate(angle, expand=True, fillcolor=(250, 250, 245)) for angle in (0, 90, 180, 95)]


def start():
    return detect_angle


def call(made):
    return [made(picture) for picture in PICTURES]


main(start, call)
