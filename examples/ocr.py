"""Read the text in a picture:   python examples/ocr.py [PICTURE]

The package rapidocr-onnxruntime finds lines of text, turns them upright and reads them, with three networks.  The
package imports onnxruntime, which relvm replaces here.  The example needs `pip install rapidocr-onnxruntime` and
relvm's extra `onnx`.  Without the argument PICTURE, it draws a picture with two lines of text.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import relvm.onnxruntime

relvm.onnxruntime.install()  # before rapidocr imports onnxruntime


def drawn() -> np.ndarray:
    """Return a picture with two lines of text, uint8 [height, width, 3]."""
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("RGB", (640, 200), "white")
    draw = ImageDraw.Draw(picture)
    for y, text in ((30, "relvm reads this line,"), (110, "and this one: 2 + 2 = 4")):
        draw.text((30, y), text, "black", ImageFont.load_default(size=44))
    return np.asarray(picture)


def main(files: list[str]) -> int:
    from rapidocr_onnxruntime import RapidOCR

    started = time.perf_counter()
    reader = RapidOCR()
    pictures = [str(Path(file)) for file in files] or [drawn()]
    for picture in pictures:
        lines, _ = reader(picture)
        for _, text, score in lines or ():
            print(f"{float(score):.0%}  {text}")
    print(f"{time.perf_counter() - started:.1f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
