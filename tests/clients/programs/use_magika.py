"""Tell the types of files from their contents."""

from __future__ import annotations

from client import main
from magika import Magika

FILES = (
    b"import os\n\n\ndef main(path):\n    return os.listdir(path)\n" * 8,
    b"<html><body><p>a <b>word</b></p></body></html>\n" * 8,
    b'#include <stdio.h>\nint main(void) { return printf("hello\\n"); }\n' * 5,
    b'{"name": "a", "values": [1, 2, 3]}\n' * 9,
    b"SELECT a, b FROM t WHERE a > 3 ORDER BY b;\n" * 9,
    bytes(range(256)) * 9,
    b"short",
)


def start():
    return Magika()


def call(made):
    found = [made.identify_bytes(content) for content in FILES]
    return [[each.output.label, each.score] for each in found]


main(start, call)
