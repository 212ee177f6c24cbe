"""Write the exported programs in tests/frontend/pt2, with inputs and results.  This needs torch and torchvision.

Run `python -P tests/frontend/torch_fixtures.py` after a change of a program.  `NAME.pt2` is the program as
torch.export.export returns it, and `NAME.core.pt2` the same program after run_decompositions().  `NAME.npz` contains
inputs x0, x1... and results y0, y1... for each of several calls: `0_x0`, `0_y0`, `1_x0`...

`branch.core.pt2` is also the model of the notebook notebooks/pytorch_branch.ipynb, which has a copy of it.

The archives are compressed, except mlp.pt2, because torch.export.save stores everything uncompressed.
"""

from __future__ import annotations

import io
import logging
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.export import Dim

FOLDER = Path(__file__).resolve().parent / "pt2"
NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 3))

    def forward(self, x):
        return self.layers(x).softmax(-1)


class Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.second = nn.Conv2d(4, 6, 3, stride=2, groups=2, bias=False)
        self.head = nn.Linear(6, 5)

    def forward(self, image):
        x = torch.relu(self.norm(self.first(image)))
        x = nn.functional.max_pool2d(x, 2)
        x = nn.functional.adaptive_avg_pool2d(self.second(x), 1)
        return {"scores": self.head(x.flatten(1)), "features": x}


class Spectra(nn.Module):
    """A complex weight, rotary positions, and Fourier transforms: short, factored, and of a prime length."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("filter", torch.polar(torch.linspace(0.5, 1.5, 6), torch.linspace(-1, 1, 6)))

    def forward(self, x, signal):
        spectrum = torch.fft.rfft(x, dim=1) * self.filter
        turned = torch.view_as_complex(x.reshape(x.shape[0], 5, 2)) * self.filter[:5]
        turned = turned.clone()
        turned[0] = 1 - 2j
        long = torch.fft.fft(signal)
        prime = torch.fft.irfft(torch.fft.rfft(signal[:269], norm="ortho"), n=269, norm="ortho")
        return {
            "filtered": torch.fft.irfft(spectrum, n=10, dim=1),
            "size": spectrum.abs(),
            "turned": turned,
            "rows": torch.stack([turned.conj(), turned.exp()]).sum(0),
            "long": long[::7],
            "prime": prime,
        }


class Special(nn.Module):
    """Bessel, Airy and incomplete gamma functions, and a QR decomposition."""

    def forward(self, x, a):
        special = torch.special
        names = (
            *("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1"),
            *("scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "airy_ai", "erfcx", "log_ndtr"),
        )
        found = [getattr(special, name)(x) for name in names]
        return *found, special.gammainc(a, x.abs()), special.gammaincc(a, x.abs()), *torch.linalg.qr(x.reshape(-1, 4))


class Transformer(nn.Module):
    """A decoder block with a causal mask, rotary positions and a tied output."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(11, 16)
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.norms = nn.ModuleList([nn.LayerNorm(16), nn.RMSNorm(16)])
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)
        self.register_buffer("frequencies", 10.0 ** -torch.arange(0, 4, dtype=torch.float32), persistent=False)

    def rotated(self, x):
        angles = torch.arange(x.shape[-2], dtype=torch.float32)[:, None] * self.frequencies
        a, b = x.chunk(2, -1)
        return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1)

    def forward(self, ids):
        batch, length = ids.shape
        x = self.tokens(ids)
        q, k, v = (part.view(batch, length, 2, 8).transpose(1, 2) for part in self.qkv(self.norms[0](x)).split(16, -1))
        seen = nn.functional.scaled_dot_product_attention(self.rotated(q), self.rotated(k), v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, 16))
        x = x + self.down(nn.functional.silu(self.up(self.norms[1](x))))
        return x @ self.tokens.weight.t()


class ControlFlow(nn.Module):
    """cond, while_loop, scan and map."""

    def forward(self, x, limit):
        doubled = torch.cond(x.sum() > 0, lambda a: a * 2, lambda a: a - 1, (x,))
        count, halved = torch.while_loop(
            lambda i, a: (a.abs().max() > limit) & (i < 50), lambda i, a: (i + 1, a / 2), (torch.tensor(0), doubled)
        )
        from torch._higher_order_ops.map import map as map_over
        from torch._higher_order_ops.scan import scan

        total, sums = scan(lambda carry, row: (carry + row, carry * row), torch.zeros_like(x[0]), x)
        return count, halved, total, sums, map_over(lambda row, other: row.sin() + other.sum(), x, limit)


class Branch(nn.Module):
    """A quiet signal is amplified before it is filtered, and a loud one is clipped."""

    def __init__(self) -> None:
        super().__init__()
        self.filter = nn.Conv1d(1, 4, 3, padding=1)
        self.head = nn.Linear(4, 2)

    def forward(self, signal):
        peak = signal.abs().amax()
        level = torch.cond(peak < 0.5, lambda x, p: x / p.clamp(min=1e-6), lambda x, p: x.clamp(-1, 1), (signal, peak))
        return self.head(torch.relu(self.filter(level)).mean(-1))


class State(nn.Module):
    """Buffers and an input that are changed in place, also through views."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("cache", torch.zeros(4, 3))

    def forward(self, x, at):
        self.count.add_(1)
        self.cache[at] = x
        self.cache[1:3, 0].mul_(2)
        x += 1
        y = self.cache.clone()
        row = y[0]
        y.relu_()
        row.add_(10)
        return y, self.cache.sum() + self.count


class Sizes(nn.Module):
    """Sizes in expressions, sizes that depend on data, and scalars of sizes."""

    def forward(self, x, pair):
        n = x.shape[0]
        found = x[:, 0].nonzero()
        kept = x[x > 0]
        count = (x[:, 0] > 0).sum().item()
        torch._check(count >= 1)
        scaled = x * (n**0.5) / n
        halves = x.reshape(n // 2, 2, -1)[:, 1]
        return found, kept.sum(), torch.ones(count), scaled, halves, pair["a"] + torch.arange(n * 2), n


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(8, 2)
        self.cells = nn.ModuleList([nn.GRUCell(4, 4), nn.LSTMCell(4, 4, bias=False), nn.RNNCell(4, 4)])

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        gru, lstm, rnn = self.cells
        return self.gru(y)[0], h, c, gru(h[0], c[0]), *lstm(h[0], (h[1], c[1])), rnn(h[2], c[2])


class Dtypes(nn.Module):
    """Promotion: integers, bools, half floats, numbers."""

    def forward(self, i, b, h, f):
        return (
            i / 2, i // 3, i % 3, i * 2.5, b + i, b & (i > 1), h * 2 + f[0], h.sum(), i.sum(), b.sum(), f * i,
            torch.where(b, i, 0.5), i.to(torch.uint8), f.to(torch.int32), i**2, 2**f, -h, torch.clamp(i, max=2.5),
        )  # fmt: skip


class Matrices(nn.Module):
    """Eigenvalues, singular values, and what is computed from them, all of which are unique."""

    def forward(self, square, tall):
        symmetric = square @ square.mT
        values, vectors = torch.linalg.eigh(symmetric, UPLO="U")
        u, s, v = torch.linalg.svd(tall, full_matrices=False)
        roots, columns = torch.linalg.eig(square)
        return (
            values,
            (vectors * values[..., None, :]) @ vectors.mT,
            (u * s[..., None, :]) @ v,
            torch.view_as_real(square.to(roots.dtype) @ columns - columns * roots[..., None, :]),
            torch.linalg.pinv(tall),
        )


class Experts(nn.Module):
    """A mixture of experts, which groups the rows by their expert."""

    def __init__(self) -> None:
        super().__init__()
        self.matrices = nn.Parameter(torch.randn(4, 8, 8))

    def forward(self, x):
        expert, order = torch.sort(x[:, 0].abs().mul(3).long().remainder(4))
        counts = torch.histc(expert.float(), bins=4, min=0, max=3)
        ends = counts.cumsum(0, dtype=torch.int32)
        rows, matrices = x[order].bfloat16(), self.matrices.bfloat16()
        return nn.functional.grouped_mm(rows, matrices, offs=ends), torch.histc(x, 5)


class Slices(nn.Module):
    """Slices at positions that are computed, and sizes that PyTorch proves from ranges to be equal."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("bias", torch.randn(1, 100))

    def forward(self, x, at):
        n = x.shape[-1]
        start = at.item()
        bias = self.bias[max(0, 1 - n) :, max(0, 100 - n) :]
        few = x[:, : n // 4]
        return (
            *(x + bias, x.clone().mul_(bias), x[:, start:], x[:, :start], nn.functional.unfold(x[None, None], (2, 3))),
            *(torch.stack([few, x[:, : (n + 2) // 5]]), few.expand(2, (n + 2) // 5)),
        )


class Cache(nn.Module):
    """A step of a decoder that stores one row in a cache, which is an input, and reads the whole cache."""

    def forward(self, row, position, cache):
        cache.index_copy_(1, position, row)
        return (row @ cache.mT).softmax(-1) @ cache


def _cache(position: int) -> Callable[[torch.Generator], tuple[torch.Tensor, ...]]:
    return lambda g: (torch.randn(2, 1, 8, generator=g), torch.tensor([position]), torch.randn(2, 16, 8, generator=g))


class Resampled(nn.Module):
    """Images of any size, resampled by scales and to the size of another image."""

    def forward(self, x, other):
        resample, size, part = nn.functional.interpolate, other.shape[2:], x[:, :, :3, :4]
        return (
            resample(x, scale_factor=1.1, mode="bilinear"),
            resample(x, scale_factor=1.1, mode="nearest"),
            resample(x, size=size, mode="bilinear", align_corners=True),
            resample(x, size=size, mode="bicubic"),
            resample(x, size=size, mode="nearest-exact"),
            resample(part, size=(2, 7), mode="bilinear", antialias=True),
            resample(part, size=(1, 3), mode="bicubic", antialias=True),
        )


class Windows(nn.Module):
    """Padding, pooling and windows of images of any size."""

    def forward(self, x, count):
        pad, pools, n = nn.functional.pad, nn.functional, count.shape[0]
        padded = [pad(x, (n, n - 1, 1 - n, n), mode=mode) for mode in ("constant", "reflect", "replicate", "circular")]
        return (
            *padded,
            pools.adaptive_avg_pool2d(x, (3, n)),
            *pools.adaptive_max_pool2d(x, (2, 3), return_indices=True),
            pools.max_pool2d(x, 3, 2, 1, ceil_mode=True),
            pools.avg_pool2d(x, 2, ceil_mode=True, count_include_pad=False),
            x.unfold(2, 3, 2),
        )


class Strides(nn.Module):
    """Views with strides of their own, of transposed and sliced tensors, and scatters into views."""

    def forward(self, x):
        rows, columns = x.shape
        turned = (x * 2).t()
        return (
            turned.as_strided((2, columns), (columns, 1), 1),
            turned[1:].as_strided((rows, columns - 2, 3), (columns, 1, 1), 0),
            torch.as_strided_scatter(turned, x[:2, :3], (2, 3), (columns, 1)),
            torch.diagonal_scatter(x, x.diagonal(1) * 3, 1),
        )


class Classes(nn.Module):
    """Rows that are 1 at the index of a class, and their product with a table."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(4, 3))

    def forward(self, classes):
        rows = nn.functional.one_hot(classes, 4)
        return rows, rows.to(torch.float32) @ self.table


class Bags(nn.Module):
    """Bags of rows of a table, and a product of integers of 8 bits."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(9, 4))

    def forward(self, indices, starts, factors):
        def bags(mode, **options):
            return nn.functional.embedding_bag(indices, self.table, starts, mode=mode, **options)

        small = (self.table * 30).to(torch.int8)
        return (
            bags("mean", padding_idx=2),
            bags("max"),
            bags("sum", per_sample_weights=factors, include_last_offset=True),
            torch._int_mm(small[indices], small.t()[:, :8].contiguous()),
        )


class Distinct(nn.Module):
    """Distinct elements and rows, a search, segments, parts of floats, and all states of a loop."""

    def forward(self, x, lengths, count):
        rows = x.round()
        values, place, counts = torch.unique(rows, return_inverse=True, return_counts=True)
        edges = torch.cat([values, torch.full((1,), torch.nan)])
        states = torch._higher_order_ops.while_loop_stack_output(
            lambda i, y: i > 0, lambda i, y: (i - 1, y / 2), (count, x), ()
        )
        return (
            *(values, place, counts),
            *torch.unique(rows, dim=0, return_inverse=True, return_counts=True),
            *torch.unique_consecutive(rows[:, 0].sort()[0], return_inverse=True, return_counts=True),
            torch.searchsorted(edges, x / 0.5),
            torch.bucketize(x.log(), edges, right=True),
            *(torch.segment_reduce(x, kind, lengths=lengths) for kind in ("sum", "mean", "max", "min", "prod")),
            torch.segment_reduce(x, "mean", lengths=lengths, initial=2.0),
            *torch.frexp(x * torch.tensor([1e-39, 3.0])),
            *states,
        )


class Regions(nn.Module):
    """Boxes that do not overlap, and their regions of an image."""

    def forward(self, image, regions):
        import torchvision

        kept = torchvision.ops.nms(regions[:, 1:], regions[:, 3], 0.3)
        return (
            kept,
            torchvision.ops.roi_align(image, regions[kept], (3, 2), 0.5, aligned=True),
            torchvision.ops.roi_align(image, regions, (2, 2), sampling_ratio=2),
            torchvision.ops.roi_pool(image, regions, (2, 3), 0.5),
        )


def _regions(batch: int, count: int) -> Callable[[torch.Generator], tuple[torch.Tensor, ...]]:
    def make(g: torch.Generator) -> tuple[torch.Tensor, ...]:
        corners, sides = torch.rand(count, 2, generator=g) * 12 - 2, torch.rand(count, 2, generator=g) * 9
        number = torch.randint(0, batch, (count, 1), generator=g).float()
        return torch.randn(batch, 2, 9, 11, generator=g), torch.cat([number, corners, corners + sides], 1)

    return make


class Projected(nn.Module):
    """LSTM layers with projections, and operators that must sort or divide an axis of symbolic size."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.LSTM(4, 6, num_layers=2, proj_size=3, bidirectional=True, batch_first=True)

    def forward(self, x, labels, grid):
        states, _ = self.layers(x)
        spectrum = torch.fft.rfft(states, dim=2)
        related = torch.einsum("bsf,btf->bst", spectrum, spectrum.conj())
        gates = nn.functional.glu(torch.cat([states, states * 2]), 0)
        image = states.unsqueeze(1)
        sampled = nn.functional.grid_sample(image, grid, "bicubic", "border", align_corners=False)
        return related, gates, *labels.mode(0), *states.median(0), *states.kthvalue(2, 0), sampled


def _projected(batch: int) -> Callable[[torch.Generator], tuple]:
    def make(generator: torch.Generator) -> tuple:
        x = torch.randn(batch, 5, 4, generator=generator)
        grid = 3 * torch.rand(batch, 2, 5, 2, generator=generator) - 1.5
        return x, torch.randint(0, 3, (batch, 5), generator=generator), grid

    return make


class Factored(nn.Module):
    """Linear systems whose matrices are decomposed before they are used, and histograms."""

    def forward(self, square, right):
        lu, pivots = torch.linalg.lu_factor(square)
        edges = torch.tensor([-1.0, -0.5, 0.25, 2.0])
        return (
            *torch.lu_unpack(lu, pivots),
            torch.lu_solve(right, lu, pivots),
            torch.linalg.lu_solve(lu, pivots, right.mT, left=False),
            torch.linalg.lu_solve(lu, pivots, right, adjoint=True),
            torch.linalg.solve(square, right.mT, left=False),
            *torch.histogram(square, 5),
            *torch.histogram(square, edges, weight=square.abs(), density=True),
            torch.histogramdd(square[..., :2], [2, 3], range=[-1.0, 1, -2, 2]).hist,
        )


def _distinct(lengths: list[int], count: int) -> Callable[[torch.Generator], tuple[torch.Tensor, ...]]:
    return lambda g: (torch.randn(sum(lengths), 2, generator=g), torch.tensor(lengths), torch.tensor(count))


def _bags(n: int, starts: list[int]) -> Callable[[torch.Generator], tuple[torch.Tensor, ...]]:
    return lambda g: (torch.randint(0, 9, (n,), generator=g), torch.tensor(starts), torch.rand(n, generator=g))


def _slices(n: int, at: int) -> Callable[[torch.Generator], tuple[torch.Tensor, ...]]:
    return lambda g: (torch.randn(2, n, generator=g), torch.tensor(at))


def _batch(*shapes: tuple[int, ...]) -> Callable[[torch.Generator], tuple[torch.Tensor, ...]]:
    return lambda generator: tuple(torch.randn(shape, generator=generator) for shape in shapes)


def _spectra(batch: int) -> Callable[[torch.Generator], tuple[torch.Tensor, ...]]:
    return lambda g: (torch.randn(batch, 10, generator=g), torch.randn(630, generator=g))


def _special(g: torch.Generator) -> tuple[torch.Tensor, ...]:
    x = torch.tensor([-30, -6, -2.5, -1, -0.1, 0, 0.05, 0.7, 1.9, 2.2, 4.9, 5.5, 8, 11, 40, 150.0])
    return x, torch.tensor([0.3, 8, 2, 1.5, 0.1, 1, 2, 0.5, 2, 3, 9, 1, 7, 12, 30, 2e4])


def _sizes(n: int) -> Callable[[torch.Generator], tuple[Any, ...]]:
    return lambda g: (torch.randn(n, 4, generator=g), {"a": torch.randint(0, 9, (2 * n,), generator=g)})


def _dtypes(generator: torch.Generator) -> tuple[torch.Tensor, ...]:
    i = torch.tensor([-7, -2, 0, 3, 5])
    b = torch.tensor([True, False, True, True, False])
    f = torch.randn(5, generator=generator)
    return i, b, f.to(torch.bfloat16), f


N, T = Dim("n", min=2, max=64), Dim("t", min=2, max=32)
# The module, example inputs for each call, of which the first is exported, and dynamic shapes.
PROGRAMS: dict[str, tuple[nn.Module, list[Callable[[torch.Generator], tuple[Any, ...]]], Any]] = {
    "mlp": (Mlp(), [_batch((3, 6)), _batch((7, 6))], ({0: N},)),
    "cnn": (Cnn().eval(), [_batch((2, 3, 9, 9)), _batch((3, 3, 9, 9))], ({0: N},)),
    "transformer": (
        Transformer(),
        [
            lambda g: (torch.randint(0, 11, (2, 5), generator=g),),
            lambda g: (torch.randint(0, 11, (3, 8), generator=g),),
        ],
        ({0: N, 1: T},),
    ),
    "classes": (
        Classes(),
        [
            lambda g: (torch.randint(0, 4, (5,), generator=g),),
            lambda g: (torch.randint(0, 4, (2,), generator=g),),
        ],
        ({0: N},),
    ),
    "control_flow": (
        ControlFlow(),
        [lambda g: (torch.ones(4, 3), torch.tensor(0.25)), lambda g: (-torch.ones(5, 3), torch.tensor(0.5))],
        ({0: N}, None),
    ),
    "branch": (
        Branch(),
        [_batch((2, 1, 16)), lambda g: (torch.randn(3, 1, 16, generator=g) * 0.1,)],
        ({0: Dim("batch", max=8)},),
    ),
    "spectra": (Spectra(), [_spectra(2), _spectra(3)], ({0: Dim("batch", max=64)}, None)),
    "special": (Special(), [_special], None),
    "state": (State(), [lambda g: (torch.ones(2, 3), torch.tensor([1, 3]))], None),
    "sizes": (Sizes(), [_sizes(6), _sizes(4)], ({0: 2 * Dim("m", min=2)}, {"a": {0: 4 * Dim("m", min=2)}})),
    "lstm": (Lstm(), [_batch((3, 5, 3))], None),
    "dtypes": (Dtypes(), [_dtypes], None),
    "matrices": (Matrices(), [_batch((2, 4, 4), (2, 5, 3))], None),
    "experts": (Experts(), [_batch((9, 8)), _batch((2, 8))], ({0: N},)),
    "cache": (Cache(), [_cache(0), _cache(7)], None),
    "resampled": (
        Resampled(),
        [_batch((1, 2, 8, 13), (1, 1, 5, 9)), _batch((1, 2, 4, 5), (1, 1, 8, 10))],
        ({2: Dim("h", min=4, max=64), 3: Dim("w", min=5, max=64)}, {2: Dim("p", max=64), 3: Dim("q", max=64)}),
    ),
    "windows": (
        Windows(),
        [_batch((1, 2, 8, 9), (3,)), _batch((1, 2, 9, 10), (4,))],
        ({2: Dim.AUTO, 3: Dim.AUTO}, {0: Dim.AUTO}),
    ),
    "strides": (Strides(), [_batch((4, 6)), _batch((5, 8))], ({0: Dim.AUTO, 1: Dim.AUTO},)),
    "bags": (Bags(), [_bags(17, [0, 3, 3, 10]), _bags(20, [0, 1, 20])], ({0: Dim.AUTO}, {0: Dim.AUTO}, {0: Dim.AUTO})),
    "distinct": (
        Distinct(),
        [_distinct([2, 0, 5], 3), _distinct([1, 3], 0), _distinct([9], 1)],
        ({0: Dim.AUTO}, {0: Dim.AUTO}, None),
    ),
    "regions": (Regions(), [_regions(2, 7), _regions(3, 20)], ({0: Dim.AUTO}, {0: Dim.AUTO})),
    "projected": (
        Projected().eval(),
        [_projected(2), _projected(7)],
        ({0: N}, {0: N}, {0: N}),
    ),
    "factored": (Factored(), [_batch((2, 4, 4), (2, 4, 3))], None),
    "slices": (Slices(), [_slices(8, 2), _slices(9, -4), _slices(5, 7)], ({1: Dim.AUTO}, None)),
}


def _arrays(prefix: str, tree: Any) -> dict[str, np.ndarray]:
    found = {}
    for at, leaf in enumerate(torch.utils._pytree.tree_leaves(tree)):
        value = leaf.detach() if isinstance(leaf, torch.Tensor) else torch.tensor(leaf)
        if value.is_complex():  # both parts are in an additional last axis
            value = torch.view_as_real(value.resolve_conj())
        found[f"{prefix}{at}"] = value.float().numpy() if value.dtype == torch.bfloat16 else value.numpy().copy()
    return found


def _save(program: Any, path: Path, compression: int) -> None:
    data = io.BytesIO()
    torch.export.save(program, data)
    if compression == zipfile.ZIP_STORED:
        path.write_bytes(data.getvalue())
        return
    with zipfile.ZipFile(data) as source, zipfile.ZipFile(path, "w", compression, compresslevel=9) as target:
        for name in source.namelist():
            if "sample_inputs" not in name:
                info = zipfile.ZipInfo(name)
                info.compress_type = compression
                target.writestr(info, source.read(name))


def main(pattern: str = "") -> None:
    """Write the programs whose names contain a pattern."""
    logging.disable(logging.WARNING)
    FOLDER.mkdir(exist_ok=True)
    for name, (module, inputs, dynamic_shapes) in PROGRAMS.items():
        if pattern not in name:
            continue
        torch.manual_seed(0)
        for parameter in module.parameters():
            torch.nn.init.normal_(parameter, std=0.4)
        generator = torch.Generator().manual_seed(1)
        calls = [make(generator) for make in inputs]
        example = torch.utils._pytree.tree_map(torch.clone, calls[0])
        before = {key: value.clone() for key, value in module.state_dict().items()}
        program = torch.export.export(module, example, dynamic_shapes=dynamic_shapes, strict=False)
        stored = zipfile.ZIP_STORED if name == "mlp" else zipfile.ZIP_DEFLATED
        _save(program, FOLDER / f"{name}.pt2", stored)
        _save(program.run_decompositions(), FOLDER / f"{name}.core.pt2", zipfile.ZIP_DEFLATED)
        if name == "branch":
            shutil.copy(FOLDER / "branch.core.pt2", NOTEBOOKS / "branch.pt2")
        arrays: dict[str, np.ndarray] = {}
        for number, call in enumerate(calls):
            module.load_state_dict(before)
            arrays |= _arrays(f"{number}_x", torch.utils._pytree.tree_map(torch.clone, call))
            arrays |= _arrays(f"{number}_y", module(*call))
            if name in ("state", "cache"):
                changed = [module.count, module.cache, call[0]] if name == "state" else [call[2]]
                arrays |= {f"{number}_z{at}": value.numpy().copy() for at, value in enumerate(changed)}
        np.savez_compressed(FOLDER / f"{name}.npz", **arrays)
        print(name, sum(file.stat().st_size for file in FOLDER.glob(f"{name}.*")), "bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
