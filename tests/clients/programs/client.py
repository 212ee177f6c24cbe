"""The main function of the programs, and inputs for them.

A program imports its package, and defines `start`, which makes the package's object, and `call`, which uses it and
returns a result that JSON can express.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def main(start: Callable[[], Any], call: Callable[[Any], Any]) -> None:
    """Print the result of the calls as JSON, in the last line.  With `--seconds S`, add times and the peak memory."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=0.0, help="repeat the call for so long")
    seconds = parser.parse_args().seconds
    begun = time.perf_counter()
    made = start()
    printed = {"result": call(made)}
    printed["first_s"] = time.perf_counter() - begun
    if seconds:
        printed["steady_ms"] = 1e3 * _steady(lambda: call(made), seconds)
        printed["memory_mb"] = _peak_memory() / 1024
    sys.stdout.flush()
    print("\n" + json.dumps(printed, default=_plain))


def _steady(action: Callable[[], Any], seconds: float) -> float:
    """Call `action` for `seconds` seconds, at least ten times.

    Return the median time of the second half of the calls.
    """
    end, times = time.perf_counter() + seconds, []
    while len(times) < 10 or time.perf_counter() < end:
        begun = time.perf_counter()
        action()
        times.append(time.perf_counter() - begun)
    return statistics.median(times[len(times) // 2 :])


def _peak_memory() -> int:
    """Return the peak resident memory of the process in kB.  getrusage would count the parent process, too."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def _plain(value: Any) -> Any:
    """Return NumPy values as Python values, for the module json."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not a JSON value")


# ---- inputs ----


def voice(seconds: float, rate: int = 16000) -> np.ndarray:
    """Return a sound like a vowel: harmonics of a gliding pitch in three formants, in syllables, in [-1, 1]."""
    t = np.arange(int(seconds * rate)) / rate
    phase = 2 * np.pi * np.cumsum(140 + 40 * np.sin(2 * np.pi * 0.7 * t)) / rate
    pitch = 140 + 40 * np.sin(2 * np.pi * 0.7 * t)
    sound = np.zeros_like(t)
    for k in range(1, 28):
        strength = sum(np.exp(-(((k * pitch - f) / w) ** 2)) for f, w in ((650, 150), (1200, 200), (2500, 300)))
        sound += strength * np.sin(k * phase)
    syllables = np.clip(np.sin(2 * np.pi * 3 * t) + 0.3, 0, 1)
    noise = np.random.default_rng(1).standard_normal(len(t))
    return (0.25 * syllables * sound + 0.003 * noise).clip(-1, 1).astype(np.float32)


def pcm(sound: np.ndarray) -> np.ndarray:
    """Return a sound as 16-bit integers."""
    return (sound * 32767).astype(np.int16)


def page(*lines: str, size: int = 28, width: int = 480) -> np.ndarray:
    """Return a picture of text, dark on light, of shape (height, width, 3)."""
    from PIL import Image, ImageDraw, ImageFont

    height = (size + 20) * len(lines) + 20
    image = Image.new("RGB", (width, height), (250, 250, 245))
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(size)
    for row, line in enumerate(lines):
        draw.text((20, 12 + (size + 20) * row), line, fill=(20, 20, 40), font=font)
    return np.asarray(image).copy()


def photo(name: str = "flower.jpg") -> np.ndarray:
    """Return a photo that scikit-learn contains, "flower.jpg" or "china.jpg", of shape (427, 640, 3)."""
    from sklearn.datasets import load_sample_image

    return load_sample_image(name)


def png(picture: np.ndarray) -> bytes:
    """Return a picture as the bytes of a PNG file."""
    import io

    from PIL import Image

    content = io.BytesIO()
    Image.fromarray(picture).save(content, "png")
    return content.getvalue()
