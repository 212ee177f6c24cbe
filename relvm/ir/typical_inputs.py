"""Typical sizes and values for random inputs, which are guessed from the names and types of the inputs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from relvm.ir.random_inputs import random_array
from relvm.ir.symbolic import as_var
from relvm.ir.types import TensorType, Type

_IMAGE, _LENGTH, _SAMPLES = 224, 16, 16000  # pixels of a side, elements of a sequence, samples of a second of sound
_CHANNELS = (1, 3, 4)
_TOKENS = 100  # tokens of a vocabulary from which inputs are drawn

# The names of sizes and of inputs are split into lower-case words, such as "seq", "len" for "seqLen".
_BATCH_WORDS = {"batch", "n", "b", "bs"}
_SIDE_WORDS = {"height", "width", "h", "w"}
_LENGTH_WORDS = {"seq", "sequence", "length", "len", "time", "tokens", "t", "frames"}
_SAMPLE_WORDS = {"samples", "audio", "wav", "waveform", "signal", "pcm"}
_TOKEN_WORDS = {"ids", "id", "tokens", "token"}
_IMAGE_WORDS = {"image", "images", "img", "pixel", "pixels"}


def typical_sizes(names: Sequence[str], types: Sequence[Type]) -> dict[str, int]:
    """Return a typical size for each symbolic size for which names or types suggest one, by the name of the size.

    names, types: the names and the types of the inputs.
    """
    found: dict[str, int] = {}
    for name, type_ in zip(names, types, strict=True):
        if not isinstance(type_, TensorType) or type_.shape is None:
            continue
        for axis, dim in enumerate(type_.shape):
            if (var := as_var(dim)) is not None and (size := _typical_size(name, type_, axis, var.name)) is not None:
                found.setdefault(var.name, size)
    return found


def _typical_size(name: str, type_: TensorType, axis: int, dim: str) -> int | None:
    """Return the typical size of an axis, or None if nothing is known about it.

    name, type_: the name and the type of the input.   dim: the name of the size.
    """
    words, of_input = _words(dim), _words(name)
    rank, dtype = len(type_.known_shape), type_.dtype
    if words & _BATCH_WORDS:
        return 1
    if words & _SIDE_WORDS or (axis in _sides(type_) and not words & _LENGTH_WORDS):
        return _IMAGE
    if words & _SAMPLE_WORDS or (of_input & _SAMPLE_WORDS and axis == rank - 1):
        return _SAMPLES
    if words & _LENGTH_WORDS:
        return _LENGTH
    if axis == 0 and rank > 1:
        return 1
    is_of_tokens = dtype is not None and dtype.is_integer and of_input & (_TOKEN_WORDS | {"mask"})
    return _LENGTH if is_of_tokens and axis == rank - 1 else None


def _sides(type_: TensorType) -> tuple[int, ...]:
    """Return the axes of height and width if the type is that of images, otherwise no axes."""
    shape = type_.known_shape
    if len(shape) == 4 and shape[1] in _CHANNELS:
        return (2, 3)
    if len(shape) == 4 and shape[3] in _CHANNELS:
        return (1, 2)
    if len(shape) == 3 and shape[2] in _CHANNELS[1:]:
        return (0, 1)
    return ()


def typical_array(name: str, type_: Type, sizes: Mapping[str, int], rng: np.random.Generator) -> tuple[np.ndarray, str]:
    """Return random elements for an input, and a description, which is "" for the usual elements.

    The usual elements are those of `random_array`.  If the name or the type of an input suggests its meaning, the
    elements are tokens for ids, ones for a mask, zeros for token types, or bytes for an image.

    Raise RelvmArgumentError as `random_array` does.
    """
    array = random_array(type_, sizes, rng)
    words, kind = _words(name), array.dtype.kind
    if kind == "u" and array.dtype.itemsize == 1 and (_sides(type_) if isinstance(type_, TensorType) else ()):
        return rng.integers(0, 256, array.shape).astype(array.dtype), "0 to 255"
    if kind in "iu" and array.ndim > 0:
        if "mask" in words:
            return np.ones_like(array), "1"
        if "type" in words or "segment" in words:
            return np.zeros_like(array), "0"
        if words & _TOKEN_WORDS:
            return rng.integers(0, _TOKENS, array.shape).astype(array.dtype), f"0 to {_TOKENS - 1}"
    if kind == "f" and words & _IMAGE_WORDS:
        return rng.random(array.shape).astype(array.dtype), "0 to 1"
    return array, ""


def _words(name: str) -> set[str]:
    """Return the words of a name in lower case: "inputIds_1" has the words "input" and "ids"."""
    return set(_split(name))


def _split(name: str) -> Iterator[str]:
    for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name):
        yield part.lower()
