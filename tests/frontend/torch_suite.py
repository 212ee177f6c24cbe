"""Run the test data of PyTorch: `python -P tests/frontend/torch_suite.py SUITE`.  This needs torch.

SUITE is one of these:
op_db      samples of OpInfo, with float32, int64 and bool on the CPU
export_db  the examples of torch._export.db
hop_db     samples of higher-order operators
module_db  samples of the modules of torch.nn
models     models of torchvision and transformers with random weights and a dynamic batch, as far as they are installed
architectures   small architectures of transformers and torchvision, as .pt2 files and by torch.compile

Each sample is exported and imported by from_torch.  The results of relvm are compared with those of PyTorch.  The exit
status is 0 if no sample is wrong, and every sample that fails is excluded by torch_excluded.py.  An architecture is
two samples: its .pt2 file runs in a process without PyTorch, and both run with two sizes.
"""

from __future__ import annotations

import argparse
import json
import logging
import re
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from frontend.torch_excluded import OTHERWISE, REFUSED

from relvm import vm
from relvm.errors import RelvmUnsupportedError

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

Sample = tuple[
    str, Callable[..., Any], tuple[Any, ...], dict[str, Any], Any
]  # name, model, args, kwargs, dynamic sizes
Row = tuple[str, str, str]  # the name of a sample, its outcome, and the message


def main() -> int:
    """Run a suite, print what went wrong, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("suite", choices=(*SUITES, "architectures"))
    parser.add_argument("pattern", nargs="?", default="", help="run only the samples whose names match")
    parser.add_argument("--samples", type=int, default=2, help="most samples for each operator and dtype")
    parser.add_argument("--exec-mode", choices=("bytecode", "compiled"), default="bytecode")
    parser.add_argument("--target", default="bytecode", help="how kernels are built; bytecode needs no C compiler")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--training-ir", action="store_true", help="import programs without run_decompositions()")
    parser.add_argument("--json", action="store_true", help="print one line for each sample, when it has run")
    options = parser.parse_args()
    count = options.processes
    rows: Callable[[int, int], Iterator[Row]] = partial(_rows_of_architectures, options.pattern)
    if options.suite != "architectures":
        how = {"exec_mode": options.exec_mode, "target": options.target, "decompose": not options.training_ir}
        rows = partial(_rows_of_samples, options.suite, options.pattern, options.samples, how)
    run = partial(_run_part, rows, options.json, count)
    with ProcessPoolExecutor(count) as pool:
        found = [row for part in pool.map(run, range(count)) for row in part]
    for name, kind, message in sorted(found):
        if not options.json and kind in ("wrong", "failed"):
            print(f"{kind}: {name}: {message}")
    counts = Counter(kind for _, kind, _ in found)
    total = sum(counts.values()) - counts["not exported"]
    print(", ".join(f"{number} {kind}" for kind, number in counts.most_common()))
    print(f"{100 * counts['right'] / max(total, 1):.1f} % of the samples that PyTorch exports are right")
    return 1 if counts["wrong"] or counts["failed"] else 0


def _run_part(rows: Callable[[int, int], Iterator[Row]], lines: bool, parts: int, part: int) -> list[Row]:
    """Return the rows of a part of a suite.   lines: whether to print each row."""
    import torch

    torch.set_num_threads(1)
    found = []
    for row in rows(parts, part):
        found.append(row)
        if lines:
            print(json.dumps(row), flush=True)
    return found


def _rows_of_architectures(pattern: str, parts: int, part: int) -> Iterator[Row]:
    from frontend.torch_architectures import ARCHITECTURES

    names = [name for name in ARCHITECTURES if re.search(pattern, name)]
    for name in names[part::parts]:
        yield from architecture_outcomes(name)


def _rows_of_samples(suite: str, pattern: str, most: int, how: dict[str, Any], parts: int, part: int) -> Iterator[Row]:
    for number, (name, make) in enumerate(SUITES[suite](pattern)):
        if number % parts != part:
            continue
        try:
            samples = list(make(most))
        except Exception as error:
            yield name, "not exported", f"no samples: {type(error).__name__}: {error}"
            continue
        for sample in samples:
            yield sample[0], *outcome(sample, **how)


def outcome(sample: Sample, *, exec_mode: str, target: str, decompose: bool) -> tuple[str, str]:
    """Return what happened to a sample, and the message.

    The first item is right, refused, excluded, wrong, failed or not exported.
    """
    import torch
    from torch.utils import _pytree

    from relvm.frontend.torch import from_torch

    name, model, args, kwargs, dynamic = sample
    leaves = [leaf for leaf in _pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    try:
        torch.manual_seed(0)
        given = _pytree.tree_map(_copied, (args, kwargs))
        program = torch.export.export(model, *given, dynamic_shapes=dynamic, strict=False)
        torch.manual_seed(0)
        given = _pytree.tree_map(_copied, (args, kwargs))
        expected = [leaf for leaf in _pytree.tree_leaves(model(*given[0], **given[1])) if leaf is not None]
        torch.export.save(program, _Nowhere())
    except Exception as error:
        return "not exported", f"{type(error).__name__}: {error}"
    if _reason_for_exclusion(name):
        return "excluded", _reason_for_exclusion(name)
    try:
        module = from_torch(program, decompose=decompose)
        arrays = [_array(leaf) for leaf in leaves]
        machine = vm.VirtualMachine(vm.build(module, exec_mode, target))
        results = _leaves(machine["main"](*arrays))
    except RelvmUnsupportedError as error:
        return _outcome_of_refusal(str(error))
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"
    message = difference(results[: len(expected)], expected)
    return ("wrong", message) if message else ("right", "")


def _reason_for_exclusion(name: str) -> str:
    """Return why the results of a sample are not compared, or "" if they are."""
    return next((why for pattern, why in OTHERWISE.items() if re.fullmatch(pattern, name)), "")


def _outcome_of_refusal(message: str) -> tuple[str, str]:
    """Return the outcome of a sample that raises RelvmUnsupportedError."""
    return ("refused" if any(re.search(pattern, message) for pattern in REFUSED) else "failed"), message


# Loads a .pt2 file without PyTorch, and runs it with the inputs of each size.
_WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import numpy as np
import relvm
folder = sys.argv[1]
model = relvm.load_model(f"{folder}/model.pt2", exec_mode="bytecode", target="bytecode", threads=1)
for number in (0, 1):
    arguments = np.load(f"{folder}/in{number}.npz")
    found = model(*[arguments[f"x{i}"] for i in range(len(arguments.files))])
    found = found if isinstance(found, tuple | list) else [found]
    np.savez(f"{folder}/out{number}.npz", **{f"y{i}": each.numpy() for i, each in enumerate(found)})
"""


def architecture_outcomes(name: str) -> list[Row]:
    """Return the names, the outcomes and the messages of the two samples of an architecture."""
    import torch
    from frontend.torch_architectures import ARCHITECTURES

    with torch.no_grad():
        try:
            architecture = ARCHITECTURES[name]
            model = architecture.module()
            args = [architecture.example(number)[0] for number in (0, 1)]
            expected = []
            for each in args:
                torch.manual_seed(0)  # some models choose parts of their inputs at random
                expected.append(list(model(*each)))
        except ImportError as error:
            return [(name, "not exported", str(error))]
        dynamic = architecture.example(0)[1]
        samples = {
            f"{name} file": partial(_outcome_of_file, model, args, dynamic, expected),
            f"{name} torch.compile": partial(_outcome_of_compile, model, args, dynamic["args"], expected),
        }
        excluded = {sample: _reason_for_exclusion(sample) for sample in samples}
        return [
            (sample, *(("excluded", excluded[sample]) if excluded[sample] else run()))
            for sample, run in samples.items()
        ]


def _outcome_of_file(model: Any, args: list[Any], dynamic: Any, expected: list[list[Any]]) -> tuple[str, str]:
    import torch

    with tempfile.TemporaryDirectory() as folder:
        try:
            program = torch.export.export(model, args[0], dynamic_shapes=dynamic, strict=False)
            torch.export.save(program.run_decompositions(), f"{folder}/model.pt2")
        except Exception as error:
            return "not exported", f"{type(error).__name__}: {error}"
        for number, each in enumerate(args):
            np.savez(f"{folder}/in{number}.npz", **{f"x{i}": _array(x) for i, x in enumerate(each)})
        command = [sys.executable, "-P", "-c", _WITHOUT_TORCH, folder]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            refusal = done.stderr.rpartition("relvm.errors.RelvmUnsupportedError: ")
            return _outcome_of_refusal(refusal[2]) if refusal[1] else ("failed", done.stderr[-2000:])
        for number, each in enumerate(expected):
            found = np.load(f"{folder}/out{number}.npz")
            message = difference([found[f"y{i}"] for i in range(len(found.files))][: len(each)], each)
            if message:
                return "wrong", f"size {number}: {message}"
    return "right", ""


def _outcome_of_compile(model: Any, args: list[Any], axes: Any, expected: list[list[Any]]) -> tuple[str, str]:
    import torch

    torch._dynamo.reset()
    options = {"exec_mode": "bytecode", "target": "bytecode"}
    compiled = torch.compile(model, backend="relvm", options=options)
    for number, each in enumerate(args):
        try:
            for tensor, dynamic in zip(each, axes, strict=True):
                torch._dynamo.maybe_mark_dynamic(tensor, list(dynamic))
            torch.manual_seed(0)
            found = compiled(*each)
        except Exception as error:
            cause = getattr(error, "inner_exception", error)
            if isinstance(cause, RelvmUnsupportedError):
                return _outcome_of_refusal(str(cause))
            return "failed", f"{type(cause).__name__}: {cause}"
        message = difference([_array(x) for x in found], expected[number])
        if message:
            return "wrong", f"size {number}: {message}"
    return "right", ""


class _Nowhere:
    """A file that discards what is written, to find programs that PyTorch cannot save."""

    def __init__(self) -> None:
        self.position = 0

    def write(self, data: bytes) -> int:
        self.position += len(data)
        return len(data)

    def flush(self) -> None: ...


def _copied(leaf: Any) -> Any:
    import torch

    return leaf.clone() if isinstance(leaf, torch.Tensor) else leaf


def _leaves(result: Any) -> list[Any]:
    return [leaf for item in result for leaf in _leaves(item)] if isinstance(result, list | tuple) else [result]


def _array(leaf: Any) -> np.ndarray:
    import ml_dtypes
    import torch

    plain = leaf.detach().resolve_conj().resolve_neg()
    if plain.is_complex():  # relvm has both parts in an additional last axis
        plain = torch.view_as_real(plain)
    if plain.dtype == torch.bfloat16:
        return plain.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return plain.numpy()


def difference(found: list[Any], expected: list[Any]) -> str:
    """Return how results differ from those of PyTorch, or "" if they agree."""
    import torch

    if len(found) != len(expected):
        return f"{len(found)} results, expected {len(expected)}"
    for one, other in zip(found, expected, strict=True):
        x = one.numpy() if hasattr(one, "numpy") else np.asarray(one)
        y = _array(other) if isinstance(other, torch.Tensor) else np.asarray(other)
        if x.shape != y.shape or x.dtype != y.dtype:
            return f"{x.dtype}{list(x.shape)}, expected {y.dtype}{list(y.shape)}"
        if x.dtype.kind in "iub":
            differs = x != y
        else:
            x, y = x.astype(np.float64), y.astype(np.float64)
            largest = np.abs(y, where=np.isfinite(y), out=np.zeros_like(y)).max(initial=0)
            atol = max(1e-4, 1e-6 * largest)  # sums of f32 have rounding errors relative to their largest terms
            differs = ~np.isclose(x, y, rtol=1e-3, atol=atol, equal_nan=True)
        if differs.any():
            return f"{x[differs][:3]}, expected {y[differs][:3]} ({differs.sum()} of {differs.size} elements)"
    return ""


# ---- suites ----


def _module_of(function: Callable[..., Any]) -> Any:
    import torch

    class Function(torch.nn.Module):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            from torch.utils import _pytree

            result = function(*args, **kwargs)
            return tuple(_pytree.tree_leaves(result)) if isinstance(result, tuple | list) else result

    return Function()


def _few(samples: list[Any], most: int) -> list[tuple[int, Any]]:
    """Return at most `most` samples, spread over all, with their numbers."""
    step = max(1, len(samples) // most)
    return list(enumerate(samples))[::step][:most]


def _of_tensors(sample: Any, call: Callable[..., Any]) -> tuple[Any, tuple[Any, ...]]:
    """Return a module of the tensors of a sample, and the tensors.  The other arguments are part of the module."""
    import torch
    from torch.utils import _pytree

    leaves, spec = _pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [at for at, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def function(*tensors: Any) -> Any:
        values = list(leaves)
        for at, tensor in zip(places, tensors, strict=True):
            values[at] = tensor
        first, args, kwargs = _pytree.tree_unflatten(values, spec)
        return call(first, *args, **kwargs)

    return _module_of(function), tuple(leaves[at] for at in places)


def _op_db(pattern: str) -> Iterator[tuple[str, Callable[[int], list[Sample]]]]:
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    for op in sorted(op_db, key=lambda op: (op.name, op.variant_test_name)):
        for dtype in (torch.float32, torch.int64, torch.bool):
            name = f"{op.formatted_name} {str(dtype).removeprefix('torch.')}"
            if re.search(pattern, name) and op.supports_dtype(dtype, "cpu"):
                yield name, partial(_op_samples, op, dtype, name)


def _eigenvectors(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with results that are unique, for one that returns eigenvalues and eigenvectors."""

    def unique(a: Any, *args: Any, **kwargs: Any) -> Any:
        import torch

        values, vectors = call(a, *args, **kwargs)
        if not values.is_complex():  # of a matrix of which only a triangle is read
            return values, (vectors * values.unsqueeze(-2).to(vectors.dtype)) @ vectors.mH
        error = a.to(vectors.dtype) @ vectors - vectors * values.unsqueeze(-2)
        return error, torch.linalg.vector_norm(vectors, dim=-2), values.sum(-1), (values * values).sum(-1)

    return unique


def _eigenvalues(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with results that do not depend on the order of the eigenvalues that another one returns."""

    def unique(a: Any) -> Any:
        values = call(a)
        return values.sum(-1), (values * values).sum(-1), (values * values * values).sum(-1)

    return unique


def _singular_vectors(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with results that are unique, for one that returns U, the singular values, and V or V*."""

    def unique(a: Any, *args: Any, **kwargs: Any) -> Any:
        u, s, v = call(a, *args, **kwargs)
        v = v if call.__name__ == "linalg_svd" else v.mH
        count = s.shape[-1]
        product = (u[..., :count] * s.unsqueeze(-2).to(u.dtype)) @ v[..., :count, :]
        return s, product, u.mH @ u, v @ v.mH

    return unique


# Operators with results that are not unique -> a function that makes a function with unique results of them.
_UNIQUE = {
    **{"linalg.eigh": _eigenvectors, "linalg.eig": _eigenvectors, "linalg.eigvals": _eigenvalues},
    **{"linalg.svd": _singular_vectors, "svd": _singular_vectors},
}


def _op_samples(op: Any, dtype: Any, name: str, most: int) -> list[Sample]:
    found: list[Sample] = []
    function = _UNIQUE.get(op.name, lambda function: function)(op.op)
    for number, sample in _few(list(op.sample_inputs("cpu", dtype, requires_grad=False)), most):
        module, tensors = _of_tensors(sample, function)
        found.append((f"{name} {number}", module, tensors, {}, None))
    return found


def _hop_db(pattern: str) -> Iterator[tuple[str, Callable[[int], list[Sample]]]]:
    import torch
    from torch.testing._internal.hop_db import hop_db

    for op in hop_db:
        name = f"{op.name} {op.variant_test_name}".strip()
        if re.search(pattern, name):
            yield name, partial(_op_samples, op, torch.float32, name)


def _module_db(pattern: str) -> Iterator[tuple[str, Callable[[int], list[Sample]]]]:
    from torch.testing._internal.common_modules import module_db

    for info in module_db:
        if re.search(pattern, info.name):
            yield info.name, partial(_module_samples, info)


def _module_samples(info: Any, most: int) -> list[Sample]:
    import torch

    inputs = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=False)
    found: list[Sample] = []
    for number, each in _few([each for each in inputs if each.forward_input is not None], most):
        module = info.module_cls(*each.constructor_input.args, **each.constructor_input.kwargs).eval()
        args, kwargs = each.forward_input.args, each.forward_input.kwargs
        found.append((f"{info.name} {number}", module, tuple(args), dict(kwargs), None))
    return found


def _export_db(pattern: str) -> Iterator[tuple[str, Callable[[int], list[Sample]]]]:
    from torch._export.db.examples import all_examples

    for name, case in sorted(all_examples().items()):
        if re.search(pattern, name):
            yield name, partial(_export_samples, name, case)


def _export_samples(name: str, case: Any, most: int) -> list[Sample]:
    return [(name, case.model, tuple(case.example_args), dict(case.example_kwargs or {}), case.dynamic_shapes)]


def _models(pattern: str) -> Iterator[tuple[str, Callable[[int], list[Sample]]]]:
    for name in TORCHVISION:
        if re.search(pattern, name):
            yield name, partial(_vision_sample, name)


TORCHVISION = (
    *("alexnet", "vgg11", "resnet18", "resnet50", "squeezenet1_1", "densenet121", "googlenet", "inception_v3"),
    *("shufflenet_v2_x1_0", "mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0", "mnasnet1_0", "regnet_x_400mf"),
    *("convnext_tiny", "vit_b_32", "swin_t", "maxvit_t"),
)


def _vision_sample(name: str, most: int) -> list[Sample]:
    import torch
    import torchvision

    torch.manual_seed(0)
    model = getattr(torchvision.models, name)(weights=None).eval()
    size = 299 if name == "inception_v3" else 224
    return [(name, model, (torch.randn(2, 3, size, size),), {}, ({0: torch.export.Dim("batch", min=1, max=64)},))]


SUITES: dict[str, Callable[[str], Iterator[tuple[str, Callable[[int], list[Sample]]]]]] = {
    "op_db": _op_db,
    "export_db": _export_db,
    "hop_db": _hop_db,
    "module_db": _module_db,
    "models": _models,
}


if __name__ == "__main__":
    sys.exit(main())
