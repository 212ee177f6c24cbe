"""Time of twenty PyTorch models, in relvm, eager mode and inductor:   python -m benchmarks.torch_models [MODEL ...]

The models of torchvision and transformers have random weights.  relvm runs what from_torch imports, compiled, and
inductor what torch.compile returns.  All run on one core, in one process and by turns, on the same tensors of PyTorch.
A time is the least of several calls.  The results are compared first.  This needs torch, torchvision and transformers.

With --onnx, the models of torchvision are exported as ONNX files, which relvm, ONNX Runtime and OpenVINO run instead.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import numpy as np
import torch

from benchmarks.models.engines import onnxruntime_runner, openvino_runner
from benchmarks.turns import least_times
from relvm import vm
from relvm.frontend.onnx import from_onnx
from relvm.frontend.torch import from_torch

_SECONDS = 3.0  # for each model and each of the three

Example = tuple[Any, tuple[Any, ...]]  # a module and its arguments


def _vision(name: str, batch: int, *, small: bool) -> Example:
    import torchvision

    size = 64 if small else 224
    options = {"image_size": size} if name.startswith("vit") else {}
    return getattr(torchvision.models, name)(weights=None, **options), (torch.randn(batch, 3, size, size),)


class _Output(torch.nn.Module):
    """A module that returns one output of a model, without a cache of keys and values.

    name: the name of the output.   given: arguments that are always the same.
    """

    def __init__(self, model: Any, name: str, **given: Any) -> None:
        super().__init__()
        self.model, self.name, self.given = model, name, given

    def forward(self, *args: Any) -> Any:
        return getattr(self.model(*args, **self.given), self.name)


# For each model of transformers: the configuration, the model, the names of its sizes, and the output.
_SIZES = {
    "usual": ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"),
    "gpt2": ("vocab_size", "n_embd", "n_layer", "n_head", "n_inner"),
    "distilbert": ("vocab_size", "dim", "n_layers", "n_heads", "hidden_dim"),
    "t5": ("vocab_size", "d_model", "num_layers", "num_heads", "d_ff"),
    "whisper": ("vocab_size", "d_model", "encoder_layers", "encoder_attention_heads", "encoder_ffn_dim"),
}
_TEXT = {
    "bert": ("BertConfig", "BertModel", "usual"),
    "roberta": ("RobertaConfig", "RobertaModel", "usual"),
    "distilbert": ("DistilBertConfig", "DistilBertModel", "distilbert"),
    "electra": ("ElectraConfig", "ElectraModel", "usual"),
    "gpt2": ("GPT2Config", "GPT2Model", "gpt2"),
    "llama": ("LlamaConfig", "LlamaModel", "usual"),
    "qwen2": ("Qwen2Config", "Qwen2Model", "usual"),
    "t5": ("T5Config", "T5Model", "t5"),
    "vit": ("ViTConfig", "ViTModel", "usual"),
    "whisper": ("WhisperConfig", "WhisperModel", "whisper"),
}


def _text(name: str, batch: int, *, small: bool) -> Example:
    import transformers

    config_name, model_name, kind = _TEXT[name]
    values = (100, 32, 2, 2, 64) if small else (8000, 384, 6, 6, 1536)
    options = dict(zip(_SIZES[kind], values, strict=True))
    width, length = values[1], 12 if small else 128
    tokens = torch.randint(0, values[0], (batch, length))
    match name:
        case "t5":
            options |= {"d_kv": width // values[3], "num_decoder_layers": values[2]}
        case "vit":
            options |= {"image_size": 32 if small else 224}
        case "llama" | "qwen2":
            options |= {"num_key_value_heads": values[3]}
        case "gpt2":
            options |= {"bos_token_id": 0, "eos_token_id": 0}
        case "whisper":
            options |= {"pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0, "decoder_start_token_id": 0}
            options |= {"decoder_layers": 1, "decoder_attention_heads": values[3]}
            options |= {"max_source_positions": 50 if small else 400, "num_mel_bins": 80}
    config = getattr(transformers, config_name)(**options)
    model = getattr(transformers, model_name)(config)
    match name:
        case "vit":
            size = options["image_size"]
            return _Output(model, "last_hidden_state"), (torch.randn(batch, 3, size, size),)
        case "whisper":
            frames = 2 * options["max_source_positions"]
            return _Output(model.encoder, "last_hidden_state"), (torch.randn(batch, 80, frames),)
        case "t5":
            return _Encoded(model), (tokens, tokens[:, :4])
    given = {"use_cache": False} if name in ("gpt2", "llama", "qwen2") else {}
    return _Output(model, "last_hidden_state", **given), (tokens,)


class _Encoded(torch.nn.Module):
    """An encoder and a decoder, without a cache of keys and values."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Any, decoded: Any) -> Any:
        return self.model(input_ids=tokens, decoder_input_ids=decoded, use_cache=False).last_hidden_state


_VISION = (
    *("resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0", "densenet121"),
    *("shufflenet_v2_x1_0", "convnext_tiny", "vit_b_32", "swin_t"),
)
MODELS: dict[str, Callable[..., Example]] = {
    **{name: partial(_vision, name) for name in _VISION},
    **{f"{name} (transformers)": partial(_text, name) for name in _TEXT},
}


def example(name: str, batch: int, *, small: bool = False) -> Example:
    """Return a model in evaluation mode and its arguments.   small: whether it is small enough for tests."""
    torch.manual_seed(0)
    module, args = MODELS[name](batch, small=small)
    return module.eval(), args


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure PyTorch models on one core.")
    parser.add_argument("models", nargs="*", metavar="MODEL", help="names of models; all of them by default")
    parser.add_argument("--onnx", action="store_true", help="compare ONNX files of the models of torchvision")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    if options.onnx:
        _compare_files(options.models or _VISION)
    else:
        _compare_modules(options.models or MODELS)


def _compare_modules(names: Iterable[str]) -> None:
    """Print the times of the modules, as `from_torch` imports them, beside eager mode and inductor."""
    print("| model | eager, ms | inductor, ms | relvm, ms | relvm / eager | relvm / inductor |")
    print("|---|---|---|---|---|---|")
    ratios = []
    for name in names:
        module, args = example(name, 1)
        with torch.no_grad():
            machine = vm.VirtualMachine(vm.build(from_torch(module, args), "compiled"), num_threads=1)
            machine.set_array_type(torch.Tensor)
            torch._dynamo.reset()
            compiled = torch.compile(module)
            expected = module(*args)
            calls = [partial(function, *args) for function in (module, compiled, machine["main"])]
            for call in calls:
                torch.testing.assert_close(call(), expected, rtol=1e-3, atol=1e-3)
            eager, inductor, own = least_times(calls, _SECONDS)
        ratios.append((own / eager, own / inductor))
        row = (f"{seconds * 1e3:.4g}" for seconds in (eager, inductor, own))
        print(f"| {name} | {' | '.join(row)} | {ratios[-1][0]:.2f} | {ratios[-1][1]:.2f} |", flush=True)
    means = map(statistics.geometric_mean, zip(*ratios, strict=True))
    print("| geometric mean | | | " + "".join(f"| {mean:.2f} " for mean in means) + "|")


def _compare_files(names: Iterable[str]) -> None:
    """Print the times of the models as ONNX files, beside ONNX Runtime and OpenVINO."""
    print("| model | onnxruntime, ms | openvino, ms | relvm, ms | relvm / the faster |")
    print("|---|---|---|---|---|")
    ratios = []
    for name in names:
        module, args = example(name, 1)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            torch.onnx.export(module, args, str(path), dynamo=False, input_names=["x"])
            case = {"x": args[0].numpy()}
            machine = vm.VirtualMachine(vm.build(from_onnx(path), "compiled"), num_threads=1)
            runners = onnxruntime_runner(path, 1), openvino_runner(path, 1)
            calls = [*(partial(run, case) for run in runners), partial(machine["main"], case["x"])]
            expected = module(*args).detach().numpy()
            for call in calls:
                result = call()
                found = result[0] if isinstance(result, list) else result
                np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-3, atol=1e-3)
            *peers, own = least_times(calls, _SECONDS)
        ratios.append(own / min(peers))
        row = (f"{seconds * 1e3:.4g}" for seconds in (*peers, own))
        print(f"| {name} | {' | '.join(row)} | {ratios[-1]:.2f} |", flush=True)
    print(f"| geometric mean | | | | {statistics.geometric_mean(ratios):.2f} |")


if __name__ == "__main__":
    main()
