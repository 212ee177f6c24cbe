"""Split Khmer text into words."""

from __future__ import annotations

from client import main
from khmersm import segment

TEXTS = ("ខ្ញុំស្រលាញ់កម្ពុជា i love Cambodia", "សួស្តីអ្នកទាំងអស់គ្នា", "ថ្ងៃនេះអាកាសធាតុល្អណាស់")


def start():
    return segment


def call(made):
    return [made(text) for text in TEXTS]


main(start, call)
