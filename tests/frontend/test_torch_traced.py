"""from_torch: modules, functions and exported programs in memory.  Without PyTorch, these tests are skipped.

Run them with `pytest -q tests/frontend/test_torch_traced.py` where PyTorch is installed (docs/testing.md).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from relvm import vm
from relvm.errors import (
    RelvmArgumentError,
    RelvmError,
    RelvmIndexError,
    RelvmShapeError,
    RelvmTypeError,
    RelvmUnsupportedError,
)
from relvm.frontend.torch import from_torch

torch = pytest.importorskip("torch", reason="PyTorch is not installed: from_torch is NOT tested (docs/testing.md)")


AUTO = torch.export.Dim.AUTO


def run(module: Any, *args: Any) -> list[np.ndarray]:
    machine = vm.VirtualMachine(vm.build(module, target="bytecode"))
    result = machine["main"](*[arg.numpy() for arg in args])
    return [each.numpy() for each in (result if isinstance(result, list | tuple) else (result,))]


class _Function(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def test_a_module_with_a_dynamic_batch() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    batch = torch.export.Dim("batch", max=16)
    imported = from_torch(module, (torch.randn(3, 4),), dynamic_shapes=({0: batch},))
    for size in (2, 5):
        x = torch.randn(size, 4)
        np.testing.assert_allclose(run(imported, x)[0], module(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_a_function() -> None:
    imported = from_torch(lambda x, scale: (x * scale).softmax(-1), (torch.randn(2, 3),), {"scale": 2.0})
    x = torch.randn(2, 3)
    np.testing.assert_allclose(run(imported, x)[0], (x * 2).softmax(-1).numpy(), rtol=1e-5)


def test_an_exported_program_as_it_is() -> None:
    class InPlace(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            y = x.clone()
            y[0] += 1
            y[:, 1] = 7
            return y

    program = torch.export.export(InPlace(), (torch.zeros(2, 3),))
    for decompose in (True, False):
        (found,) = run(from_torch(program, decompose=decompose), torch.zeros(2, 3))
        np.testing.assert_array_equal(found, [[1, 7, 1], [0, 7, 0]])


def test_an_update_that_may_change_another_tensor_is_refused() -> None:
    class Shared(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            y = x.clone()
            z = y.reshape(-1)
            y.add_(1)
            return z

    program = torch.export.export(Shared(), (torch.zeros(2, 3),))
    with pytest.raises(RelvmUnsupportedError, match="may share the memory of"):
        from_torch(program, decompose=False)
    np.testing.assert_array_equal(run(from_torch(program), torch.zeros(2, 3))[0], np.ones(6))


def in_place(x: Any, function: Any) -> Any:
    y = x.clone()
    z = function(y)
    y.add_(10)
    return z + 0


@pytest.mark.parametrize(
    "function",
    [
        lambda y: y.reshape(6)[1:3],
        lambda y: y.reshape(6).reshape(3, 2),
        lambda y: torch.einsum("ij->ji", y),
        lambda y: torch.meshgrid(y[0], y[1], indexing="ij")[0],
        lambda y: y.view(6) * 1 if y.t_() is None else y,
    ],
)
def test_memory_that_may_be_shared_in_several_steps(function: Any) -> None:
    class Shared(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return in_place(x, function)

    x = torch.arange(6.0).reshape(2, 3)
    program = torch.export.export(Shared(), (x,))
    with pytest.raises(RelvmUnsupportedError, match=r"may share the memory of|a change of the axes"):
        from_torch(program, decompose=False)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_numbers_are_not_rounded_to_narrow_floats(dtype: str) -> None:
    x = (torch.rand(200) * 4 - 2).to(getattr(torch, dtype))
    for function in (lambda x: x * 70000.0, lambda x: x / 70000.0, lambda x: x * 0.1, lambda x: 0.1 / x):
        machine = vm.VirtualMachine(vm.build(from_torch(function, (x,)), target="bytecode"))
        found = torch.from_dlpack(machine["main"](x))
        assert torch.equal(found, function(x))


def test_a_size_with_a_lower_bound_only() -> None:
    size = torch.export.Dim("size", min=3)
    imported = from_torch(torch.nn.Softmax(-1), (torch.randn(6),), dynamic_shapes=({0: size},))
    np.testing.assert_allclose(run(imported, torch.zeros(4))[0], np.full(4, 0.25), rtol=1e-6)
    with pytest.raises(RelvmShapeError, match="at least 3"):
        run(imported, torch.zeros(2))


def test_weights_share_the_memory_of_the_module() -> None:
    from relvm.frontend.torch.traced import program_of

    module = torch.nn.Linear(4, 8)
    program = program_of(torch.export.export(module, (torch.zeros(1, 4),)))
    assert np.shares_memory(program.tensors["weight"], module.weight.detach().numpy())


def test_random_numbers_are_refused_by_name() -> None:
    with pytest.raises(RelvmUnsupportedError, match=r"aten\.rand_like\.default.*random numbers are not supported"):
        from_torch(torch.rand_like, (torch.zeros(2),))
    with pytest.raises(RelvmUnsupportedError, match=r"aten\.normal\.float_float.*random numbers are not supported"):
        from_torch(lambda x: x + torch.normal(0.0, 1.0, (2,)), (torch.zeros(2),))


def test_transformations_of_functions() -> None:
    """PyTorch expands transformations in run_decompositions."""

    def rows(x: Any) -> Any:
        return torch.vmap(lambda row: torch.nn.functional.layer_norm(row, (3,)).softmax(0))(x)

    program = torch.export.export(_Function(rows), (X,), strict=False)
    np.testing.assert_allclose(run(from_torch(program), X)[0], rows(X).numpy(), rtol=1e-5)
    with pytest.raises(RelvmUnsupportedError, match=r"transformations of torch\.func .*run_decompositions"):
        from_torch(program, decompose=False)


def test_the_last_axis_of_unique_consecutive_is_refused_where_pytorch_exports_wrong_shapes() -> None:
    program = torch.export.export(_Function(lambda x: torch.unique_consecutive(x, dim=-1)), (X,), strict=False)
    with pytest.raises(RelvmUnsupportedError, match=r"wrong shapes of the results for the axis -1.*; pass 1, which"):
        from_torch(program)


def test_wrong_arguments() -> None:
    with pytest.raises(RelvmTypeError, match="model is int, expected"):
        from_torch(3)
    program = torch.export.export(torch.nn.ReLU(), (torch.zeros(2),))
    with pytest.raises(RelvmArgumentError, match="are part of the exported program"):
        from_torch(program, (torch.zeros(2),))


def expect_as_torch(function: Any, *args: Any, **options: Any) -> None:
    """Check that a function has the results of PyTorch, with and without decompositions."""

    class Function(torch.nn.Module):
        def forward(self, *args: Any) -> Any:
            return function(*args)

    program = torch.export.export(Function(), args, **options)
    for decompose in (True, False):
        machine = vm.VirtualMachine(vm.build(from_torch(program, decompose=decompose), target="bytecode"))
        torch.testing.assert_close(torch.from_dlpack(machine["main"](*args)), function(*args), equal_nan=True)


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_numbers_that_are_compared_wrap_around(name: str) -> None:
    function = getattr(torch, name)
    for x in (torch.tensor([0, 1, 200, 255], dtype=torch.uint8), torch.tensor([-128, -1, 0, 127], dtype=torch.int8)):
        for number in (-300, -1, 255, 256, 300, 1.5):
            expect_as_torch(lambda x, number=number: function(x, number), x)


X = torch.arange(6.0).reshape(2, 3)
NEGATIVE = torch.tensor([-1, 0])


@pytest.mark.parametrize(
    ("function", "index"),
    [
        (lambda x, i: x.gather(1, i), NEGATIVE[:, None]),
        (lambda x, i: torch.nn.functional.embedding(i, x), NEGATIVE),
        (lambda x, i: x.index_select(0, i), NEGATIVE),
        (lambda x, i: x.scatter(1, i, 5.0), NEGATIVE[:, None]),
        (lambda x, i: x.scatter_add(1, i, x), NEGATIVE[:, None]),
        (lambda x, i: x.index_add(0, i, x), NEGATIVE),
        (lambda x, i: x.index_copy(0, i, x), NEGATIVE),
    ],
)
def test_negative_indices_are_errors_where_they_are_in_torch(function: Any, index: Any) -> None:
    program = from_torch(function, (X, index.abs()))
    with pytest.raises(RelvmIndexError, match="is outside axis"):
        run(program, X, index)
    (found,) = run(program, X, index.abs())
    np.testing.assert_array_equal(found, function(X, index.abs()).numpy())


def test_negative_indices_are_accepted_where_they_are_in_torch() -> None:
    expect_as_torch(lambda x, i: x[i], X, NEGATIVE)
    expect_as_torch(lambda x, i: x.index_fill(0, i, 4.0), X, NEGATIVE)
    expect_as_torch(lambda x, i: x.take(i), X, NEGATIVE)


def test_elements_that_a_mask_selects_are_assigned() -> None:
    def assigned(x: Any, mask: Any, values: Any) -> Any:
        y = x.clone()
        y[mask(y)] = values(y)
        return y

    positive = [lambda y: y > 2, lambda y: y > 2]
    for mask, values in (
        (positive[0], lambda y: 7.0),
        (positive[0], lambda y: torch.tensor([7.0, 8, 9])),
        (positive[0], lambda y: y[y > 2] * 2),
        (lambda y: y[:, 0] > 2, lambda y: torch.tensor([7.0, 8, 9])),
        (lambda y: (slice(None), y[0] > 0), lambda y: 5.0),
    ):
        expect_as_torch(lambda x, mask=mask, values=values: assigned(x, mask, values), X)
    imported = from_torch(lambda x, v: assigned(x, positive[0], lambda y: v), (X, torch.ones(3)))
    with pytest.raises(RelvmShapeError):
        run(imported, X * 10, torch.ones(3))


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_numbers_that_are_too_large_for_8_bits(name: str) -> None:
    x = torch.tensor([1e6, -1e6, torch.inf, torch.nan, 448, 465, 480, 57344, 60000, 1e-9, 0.3])
    dtype = getattr(torch, name)
    for each in (x, x.half(), x.double()):
        expect_as_torch(lambda x: x.to(dtype).float(), each)


@pytest.mark.parametrize("bias", [False, True])
def test_an_lstm_with_projections(bias: bool) -> None:
    lstm = torch.nn.LSTM(3, 5, 2, bias=bias, proj_size=2, bidirectional=True)
    args = torch.randn(7, 2, 3), torch.randn(4, 2, 2), torch.randn(4, 2, 5)
    with torch.no_grad():
        imported = from_torch(lambda x, *state: lstm(x, state), args)
        y, (h, c) = lstm(args[0], args[1:])
    for found, expected in zip(run(imported, *args), (y, h, c), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_rows_of_bags_that_are_padding_count_from_the_end() -> None:
    table, indices = torch.arange(8.0).reshape(4, 2), torch.tensor([[1, 2], [3, 3]])
    for mode in ("sum", "mean", "max"):

        def bags(indices: Any, mode: str = mode) -> Any:
            return torch.nn.functional.embedding_bag(indices, table, mode=mode, padding_idx=-1)

        np.testing.assert_array_equal(run(from_torch(bags, (indices,)), indices)[0], bags(indices))


def test_results_of_classes_that_pytorch_cannot_serialize() -> None:
    x = torch.tensor([[3.0, 1, 2], [0, 5, 4]])
    values, positions, plain = run(from_torch(lambda x: {"largest": x.max(1), "plain": x}, (x,)), x)
    np.testing.assert_array_equal(values, [3, 5])
    np.testing.assert_array_equal(positions, [0, 1])
    np.testing.assert_array_equal(plain, x)


def test_a_custom_operator_that_changes_an_argument_is_refused_by_name() -> None:
    library = torch.library.Library("relvm_test", "FRAGMENT")
    library.define("scale_(Tensor(a!) x) -> ()")
    library.impl("scale_", lambda x: None, "CompositeExplicitAutograd")

    def scaled(x: Any) -> Any:
        y = x.clone()
        torch.ops.relvm_test.scale_(y[0])
        return y

    try:
        with pytest.raises(RelvmUnsupportedError, match=r"relvm_test\.scale_\.default: custom operators"):
            from_torch(scaled, (torch.zeros(2, 3),))
    finally:
        library._destroy()


def test_operators_that_pytorch_decomposes_are_refused_with_a_hint() -> None:
    program = torch.export.export(_Function(torch.kron), (torch.zeros(2), torch.zeros(2)))
    with pytest.raises(RelvmUnsupportedError, match=r"if PyTorch decomposes it, export with run_decompositions"):
        from_torch(program, decompose=False)


def test_only_the_first_cause_is_stated() -> None:
    def cut(x: Any) -> Any:
        count = (torch.rand_like(x) > 0.5).nonzero().shape[0]
        return torch.zeros(count * count // 3 + 1), x * (count * 0.5)

    with pytest.raises(RelvmUnsupportedError) as caught:
        from_torch(cut, (torch.zeros(6),))
    assert "\n" not in str(caught.value)
    assert "rand_like" in str(caught.value)


def test_complex_products_and_reductions_of_any_size() -> None:
    def reduced(z: Any, y: Any) -> Any:
        rows = torch.einsum("ij,kj,j->ik", z, z.conj(), y.to(z.dtype))
        norms = torch.linalg.vector_norm(z, dim=1), z.norm(), z.std(0), z.var(1, correction=0)
        return torch.view_as_real(rows), torch.view_as_real(torch.outer(z[0], z[1]) + torch.ones_like(z[0])), *norms

    z, y = torch.randn(5, 4, dtype=torch.complex64), torch.randn(4)
    rows = torch.export.Dim("rows", max=9)
    with torch.backends.opt_einsum.flags(enabled=False):  # the package opt_einsum, if installed, compares the sizes
        imported = from_torch(
            lambda x, y: reduced(torch.view_as_complex(x), y),
            (torch.zeros(3, 4, 2), y),
            dynamic_shapes=({0: rows}, None),
        )
    for found, expected in zip(run(imported, torch.view_as_real(z), y), reduced(z, y), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_order_statistics_of_any_size() -> None:
    def statistics(x: Any) -> tuple[Any, ...]:
        gated = torch.nn.functional.glu(torch.cat([x, x * 2]), 0)
        chosen = x[x > 1e9].median(), *x.median(0), *x.kthvalue(x.shape[1] - 1, 1), *x.round().mode(1)
        attention = torch.nn.functional.scaled_dot_product_attention(x, x, x)
        return (*chosen, gated, attention)

    rows, columns = torch.export.Dim("rows", max=9), torch.export.Dim("columns", min=3, max=9)
    imported = from_torch(statistics, (torch.zeros(3, 4),), dynamic_shapes=({0: rows, 1: columns},))
    for shape in ((3, 4), (6, 7)):
        x = torch.randn(shape)
        for found, expected in zip(run(imported, x), statistics(x), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_samples_outside_an_image(mode: str, padding: str, align: bool) -> None:
    def sampled(x: Any, grid: Any) -> Any:
        return torch.nn.functional.grid_sample(x, grid, mode, padding, align_corners=align)

    x, grid = torch.randn(1, 2, 4, 5), torch.randn(1, 60, 1, 2) * 3
    far = 33.0 if padding == "reflection" else 1e9
    halfway = -1.6 if not align else -1.25  # between two mirrored elements
    grid[0, :5, 0, 0] = torch.tensor([np.nan, np.inf, -np.inf, far, halfway])
    found = run(from_torch(sampled, (x, grid)), x, grid)[0]
    np.testing.assert_allclose(found, sampled(x, grid), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_of_bytes_are_resampled_as_in_eager_mode(mode: str, antialias: bool) -> None:
    def resampled(x: Any) -> tuple[Any, ...]:
        resize = partial(torch.nn.functional.interpolate, x, mode=mode, antialias=antialias)
        return resize((5, 30)), resize((19, 23), align_corners=True), resize(scale_factor=(0.6, 1.7)), resize((12, 16))

    x = torch.randint(0, 256, (2, 3, 12, 16), dtype=torch.uint8)
    for found, expected in zip(run(from_torch(resampled, (x,)), x), resampled(x), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_of_any_size_are_resampled_as_in_eager_mode(mode: str, antialias: bool, dtype: Any) -> None:
    def resampled(x: Any) -> tuple[Any, ...]:
        resize = partial(torch.nn.functional.interpolate, x, mode=mode, antialias=antialias)
        return resize((5, 9)), resize((8, 7), align_corners=True), resize(scale_factor=(0.5, 1.7))

    def image(height: int, width: int) -> Any:
        return torch.randint(0, 256, (1, 2, height, width)).to(dtype)

    model = from_torch(resampled, (image(12, 16),), dynamic_shapes=({2: AUTO, 3: AUTO},))
    for x in (image(12, 16), image(6, 40), image(4, 5), image(38, 9)):  # these grow, shrink and keep their size
        for found, expected in zip(run(model, x), resampled(x), strict=True):
            if dtype == torch.uint8:
                np.testing.assert_array_equal(found, expected)
            else:
                np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("sizes", "window", "options"),
    [  # stride, padding, dilation, whether the convolution is transposed, output padding, groups
        ((3, 8), (4, 3, 3), ([1], [0], [1], False, [0], 1)),
        ((6, 8, 9), (4, 3, 3, 2), ([2, 3], [1, 0], [2, 1], False, [0, 0], 2)),
        ((4, 6, 5), (4, 1, 3, 3), ([1, 1], [1, 1], [1, 1], False, [0, 0], 4)),
        ((3, 5, 6, 7), (4, 3, 2, 2, 3), ([1, 2, 1], [1, 0, 1], [1, 1, 1], False, [0, 0, 0], 1)),
        ((4, 5, 6), (4, 3, 3, 2), ([1, 2], [1, 0], [2, 3], True, [1, 2], 2)),
    ],
)
def test_gradients_of_convolutions(sizes: Any, window: Any, options: Any) -> None:
    def gradients(gradient: Any, x: Any, w: Any) -> tuple[Any, ...]:
        return torch.ops.aten.convolution_backward(gradient, x, w, [gradient.shape[1]], *options, [True] * 3)

    w = torch.randn(window)
    images = [torch.randn(batch, sizes[0], *(size + batch for size in sizes[1:])) for batch in (2, 4)]
    calls = [(torch.randn(torch.ops.aten.convolution(x, w, None, *options).shape), x, w) for x in images]
    dynamic = dict.fromkeys((0, *range(2, len(window))), AUTO)
    model = from_torch(gradients, calls[0], dynamic_shapes=(dynamic, dynamic, None))
    for call in calls:
        for found, expected in zip(run(model, *call), gradients(*call), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("ceil", [False, True])
def test_gradients_of_pooling(ceil: bool) -> None:
    aten = torch.ops.aten

    def gradients(x: Any, y: Any, small: Any) -> tuple[Any, ...]:
        options = (3, 2), (2, 2), (1, 0)
        indices = aten.max_pool2d_with_indices(x, *options, [1, 1], ceil)[1]
        return (
            aten.max_pool2d_with_indices_backward(y, x, *options, [1, 1], ceil, indices),
            *(aten.avg_pool2d_backward(y, x, *options, ceil, padded, None) for padded in (False, True)),
            aten.avg_pool2d_backward(y, x, *options, ceil, False, 5),
            aten._adaptive_avg_pool2d_backward(small, x),
        )

    images = torch.randn(2, 3, 9, 11), torch.randn(3, 3, 12, 7)
    pooled = [torch.nn.functional.avg_pool2d(x, (3, 2), 2, (1, 0), ceil) for x in images]
    calls = [(x, torch.randn(y.shape), torch.randn(*x.shape[:2], 4, 5)) for x, y in zip(images, pooled, strict=True)]
    dynamic = dict.fromkeys((0, 2, 3), AUTO)
    model = from_torch(gradients, calls[0], dynamic_shapes=(dynamic, dynamic, {0: AUTO}))
    for call in calls:
        for found, expected in zip(run(model, *call), gradients(*call), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("groups", "offset_groups", "stride"), [(1, 2, 1), (2, 1, 2)])
def test_deformable_convolutions(groups: int, offset_groups: int, stride: int) -> None:
    torchvision = pytest.importorskip("torchvision")
    convolve = torchvision.ops.DeformConv2d(4, 6, (3, 2), stride, (1, 0), dilation=(1, 2), groups=groups)

    def convolved(x: Any, offset: Any, mask: Any) -> tuple[Any, ...]:
        return convolve(x, offset, mask), convolve(x, offset)

    x, size = torch.randn(2, 4, 7, 8), (7, 6) if stride == 1 else (4, 3)
    offset, mask = (torch.randn(2, offset_groups * count, *size) * 2 for count in (12, 6))
    results = run(from_torch(convolved, (x, offset, mask)), x, offset, mask)
    for found, expected in zip(results, convolved(x, offset, mask), strict=True):
        np.testing.assert_allclose(found, expected.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("samples", [-1, 2])
def test_position_sensitive_regions(samples: int) -> None:
    torchvision = pytest.importorskip("torchvision")

    def aligned(x: Any, regions: Any) -> Any:
        return torchvision.ops.ps_roi_align(x, regions, (2, 3), 0.5, samples)

    x = torch.randn(2, 12, 9, 9)
    regions = torch.tensor([[0, 1.0, 2, 13, 8], [1, 0, 0, 17, 17], [1, -3.3, 4.2, 9.9, 21.1]])
    (found,) = run(from_torch(aligned, (x, regions)), x, regions)
    np.testing.assert_allclose(found, aligned(x, regions), rtol=1e-4, atol=1e-5)


def test_results_that_are_stored_in_arguments() -> None:
    def stored(a: Any, b: Any) -> tuple[Any, ...]:
        total, empty, rows = torch.empty(3), torch.empty(0), torch.zeros(2, 3)
        largest, places, flags = torch.empty(3), torch.empty(3, dtype=torch.int64), torch.empty(3, dtype=torch.bool)
        torch.add(a, b, alpha=2, out=total)
        torch.exp(total, out=empty)
        torch.div(a, b, rounding_mode="floor", out=rows[1])
        torch.max(torch.outer(a, b), 1, out=(largest, places))
        torch.gt(a, b, out=flags)
        return total, empty, rows, largest, places, flags

    a, b = torch.tensor([1.0, -2.0, 3.0]), torch.tensor([0.5, 4.0, -1.0])
    program = torch.export.export(_Function(stored), (a, b), strict=False)
    assert "max.dim_max" in str(program.graph)
    for decompose in (True, False):
        for found, expected in zip(run(from_torch(program, decompose=decompose), a, b), stored(a, b), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_result_that_does_not_fit_the_argument_in_which_it_is_stored() -> None:
    def stored(a: Any) -> Any:
        out = torch.zeros(4)
        torch.add(a, 1, out=out)
        return out

    program = torch.export.export(_Function(stored), (torch.ones(3),), strict=False)
    with pytest.raises(RelvmUnsupportedError, match=r"add.*shape \[3\] that is stored in .*shape \[4\]"):
        from_torch(program, decompose=False)


def test_operators_on_lists_of_tensors() -> None:
    def updated(a: Any, b: Any) -> list[Any]:
        weights, steps = [a.clone(), b.clone()], [a * 2, b * 3]
        torch._foreach_mul_(weights, 0.9)
        torch._foreach_addcdiv_(weights, steps, torch._foreach_add(torch._foreach_sqrt(steps), 1.0), value=-0.1)
        torch._foreach_clamp_max_(weights, 0.7)
        return [*weights, *torch._foreach_norm(steps), *torch._foreach_lerp(weights, steps, [0.25, 0.5])]

    a, b = torch.rand(3), torch.rand(2, 2)
    program = torch.export.export(_Function(updated), (a, b), strict=False)
    for decompose in (True, False):
        for found, expected in zip(run(from_torch(program, decompose=decompose), a, b), updated(a, b), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5)


_WINDOW = torch.hann_window(16)
_SHARES = torch.tensor([0.0, 0.1, 0.5, 0.77, 1.0])
# Functions of a matrix with composite operators, which programs contain that are exported without run_decompositions().
_COMPOSITES: dict[str, Callable[[Any], Any]] = {
    "cosine_similarity": lambda x: (
        torch.cosine_similarity(x, x.flip(0)), torch.cosine_similarity(x[:, None], x[None] * 0, -1),
    ),
    "pairwise_distance": lambda x: (
        torch.pairwise_distance(x, x.flip(0)), torch.pairwise_distance(x, x[0], 3, keepdim=True),
    ),
    "where": lambda x: torch.where(x > 0) + torch.where(x[0, 0] > 9),
    "weight_norm": lambda x: (torch._weight_norm(x, x[:, :1], 0), torch.norm_except_dim(x, 2, 1)),
    "stacks": lambda x: (
        torch.column_stack([x, x[:, 0]]), torch.row_stack([x, x[0]]), torch.dstack([x[0], x[1]]), torch.dstack([x, x]),
    ),
    "splits": lambda x: (*x.hsplit(2), *x.vsplit([1, 3]), *x[:, :, None].dsplit(1), *x[0].hsplit(3)),
    "diff": lambda x: (x.diff(), x.diff(2, 0, append=x[:1]), (x > 0).diff(), torch.diff(x, n=0)),
    "fftshift": lambda x: (torch.fft.fftshift(x), torch.fft.ifftshift(x, 1)),
    "complex": lambda x: torch.view_as_real(torch.complex(x, x * 2).diff(prepend=x[:, :1]).hsplit([2])[1]),
    "quantile": lambda x: [
        function(x, _SHARES, dim, keep, interpolation=kind)
        for function in (torch.quantile, torch.nanquantile)
        for kind in ("linear", "lower", "higher", "midpoint", "nearest")
        for dim, keep in ((None, False), (None, True), (0, False), (1, True))
    ],
    "quantile of a number": lambda x: (x.quantile(0.35), x[0, 0].quantile(_SHARES), x.nanquantile(0.9, dim=0)),
    "truth": lambda x: (torch.ops.aten._is_all_true(x < 9), torch.ops.aten._is_any_true(x > 9)),
    "stft": lambda x: torch.view_as_real(torch.stft(x.reshape(2, -1), 16, 4, window=_WINDOW, return_complex=True)),
    "stft of windows": lambda x: torch.stft(
        x.reshape(-1), 16, 5, 10, _WINDOW[:10], False, normalized=True, onesided=False, return_complex=True
    ).abs(),
    "stft as parts": lambda x: torch.stft(x.reshape(-1), 16, return_complex=False),
}  # fmt: skip


@pytest.mark.parametrize("name", _COMPOSITES)
def test_composite_operators(name: str) -> None:
    x = torch.randn(5, 12)
    if "quantile" in name:
        x[1, 2] = x[3] = np.nan
    program = torch.export.export(_Function(_COMPOSITES[name]), (x,), strict=False)
    expected = _COMPOSITES[name](x)
    expected = expected if isinstance(expected, list | tuple) else (expected,)
    for decompose in (True, False):
        for found, wanted in zip(run(from_torch(program, decompose=decompose), x), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("decompose", [False, True])
def test_inverse_short_time_transforms(decompose: bool) -> None:
    def signals(half: Any, whole: Any) -> tuple[Any, ...]:
        half, whole = torch.view_as_complex(half), torch.view_as_complex(whole)
        return (
            torch.istft(half, 16, window=_WINDOW),
            torch.istft(half, 16, window=_WINDOW, length=60),  # ends with zeros
            torch.istft(half[0], 16, 5, 10, _WINDOW[3:13], normalized=True, length=17),
            torch.istft(whole, 16, center=False, onesided=False),
            torch.view_as_real(torch.istft(whole, 16, 8, window=_WINDOW, onesided=False, return_complex=True)),
        )

    spectra = [(torch.randn(2, 9, frames, 2), torch.randn(2, 16, frames, 2)) for frames in (6, 9)]
    dynamic = {"args": ({2: AUTO}, {2: AUTO})}
    program = torch.export.export(_Function(signals), spectra[0], dynamic_shapes=dynamic, strict=False)
    model = from_torch(program, decompose=decompose)
    for each in spectra:
        for found, expected in zip(run(model, *each), signals(*each), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_assertions_on_elements() -> None:
    def checked(x: Any) -> Any:
        torch._check_tensor_all(x > 0)
        return x + 1

    program = torch.export.export(_Function(checked), (torch.ones(3),), strict=False)
    model = from_torch(program)
    np.testing.assert_array_equal(run(model, torch.ones(3))[0], np.full(3, 2, np.float32))
    with pytest.raises(RelvmError):
        run(model, torch.tensor([1.0, -1.0, 1.0]))


def test_products_of_complex_numbers() -> None:
    def products(x: Any) -> tuple[Any, ...]:
        z = torch.view_as_complex(x)
        found = (z.prod(), z.prod(1), z.prod(0, keepdim=True), z.cumprod(1), z[0, 0].prod(), z[:, :0].prod(1))
        return (*map(torch.view_as_real, found), torch.view_as_real(x[..., 0].prod(0, dtype=torch.complex64)))

    rows = torch.export.Dim("rows", max=9)
    imported = from_torch(products, (torch.zeros(3, 4, 2),), dynamic_shapes=({0: rows},))
    x = torch.randn(5, 4, 2)
    for found, expected in zip(run(imported, x), products(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_the_norm_along_an_axis_of_size_1_does_not_overflow() -> None:
    def norms(x: Any) -> tuple[Any, ...]:
        rows = (torch.linalg.vector_norm(x, order, dim=1) for order in (3, 2, -1.5, 0))
        return *rows, torch.linalg.vector_norm(x[0, 0], 3), torch.linalg.vector_norm(x[1, 0], 2, dim=0)

    x = torch.tensor([[1e30], [-2.0], [0.0]])
    for found, expected in zip(run(from_torch(norms, (x,)), x), norms(x), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_size_that_a_condition_excludes_is_refused() -> None:
    def doubled(x: Any) -> Any:
        return x * 2 if x.shape[0] % 3 == 0 or x.shape[0] == 7 else x

    imported = from_torch(doubled, (torch.zeros(5),), dynamic_shapes=({0: torch.export.Dim.AUTO},))
    np.testing.assert_array_equal(run(imported, torch.ones(4))[0], np.ones(4))
    for size, condition in ((6, r"% 3\) != 0"), (7, "!= 7")):
        with pytest.raises(RelvmShapeError, match=condition):
            run(imported, torch.ones(size))


def test_frequencies_of_spectra() -> None:
    found = run(
        from_torch(lambda x: (torch.fft.fftfreq(5, 0.5) + x, torch.fft.rfftfreq(6) + x), (torch.zeros(1),)),
        torch.zeros(1),
    )
    np.testing.assert_allclose(found[0], torch.fft.fftfreq(5, 0.5))
    np.testing.assert_allclose(found[1], torch.fft.rfftfreq(6))


def test_a_constant_that_expands_a_small_one_is_refused() -> None:
    class Expanded(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("large", torch.zeros(1).expand(1 << 40))

        def forward(self, x: Any) -> Any:
            return x + self.large[0]

    with pytest.raises(RelvmUnsupportedError, match="expands a smaller one"):
        from_torch(Expanded(), (torch.zeros(1),))


def test_the_number_of_parts_is_checked() -> None:
    for function, wrong in ((lambda x: x.chunk(3), 4), (lambda x: x.split(3), 6)):
        imported = from_torch(function, (torch.zeros(7),), dynamic_shapes={"x": {0: torch.export.Dim.AUTO}})
        x = torch.arange(7.0)
        for found, expected in zip(run(imported, x), function(x), strict=True):
            np.testing.assert_array_equal(found, expected.numpy())
        with pytest.raises(RelvmShapeError, match="the program was exported for"):
            run(imported, torch.zeros(wrong))


def test_conditions_on_sizes_are_checked() -> None:
    class Branches(torch.nn.Module):
        def forward(self, pair: Any) -> Any:
            x, y = pair["x"], pair["y"]
            return (x + 1 if x.shape[0] % 2 == 0 else x - 1) * (2 if y.shape[0] <= 2 * x.shape[0] else 3)

    auto = torch.export.Dim.AUTO
    args = ({"x": torch.zeros(4), "y": torch.zeros(6)},)
    imported = from_torch(Branches(), args, dynamic_shapes={"pair": {"x": {0: auto}, "y": {0: auto}}})
    np.testing.assert_array_equal(run(imported, torch.zeros(6), torch.zeros(12))[0], np.full(6, 2))
    for sizes, message in (((5, 6), r"% 2\) == 0; got 1 and 0"), ((4, 9), "got 9 and 8")):
        with pytest.raises(RelvmShapeError, match=message):
            run(imported, *map(torch.zeros, sizes))


def test_graphs_that_are_called() -> None:
    from torch._higher_order_ops import invoke_quant_packed
    from torch._higher_order_ops.flex_gemm import flex_gemm

    x, y = torch.randn(3, 4), torch.randn(4, 5)
    expect_as_torch(lambda x, y: flex_gemm(torch.mm, (x, y), lambda product: (product + 1).relu()), x, y)
    expect_as_torch(lambda x: invoke_quant_packed(lambda x: (x.sin(),), x)[0] * 2, x)


@pytest.mark.parametrize("right", [False, True])
def test_a_search_among_numbers_and_nan(right: bool) -> None:
    bounds = torch.tensor([1, 2, 2, torch.nan, torch.nan])
    values = torch.tensor([[2, torch.nan, 0], [5, 1, torch.inf]])
    expect_as_torch(lambda bounds, values: torch.searchsorted(bounds, values, right=right), bounds, values)
    expect_as_torch(lambda bounds, values: torch.bucketize(values, bounds, right=right), bounds, values)


def test_the_lengths_of_segments_are_checked() -> None:
    imported = from_torch(
        lambda x, lengths: torch.segment_reduce(x, "sum", lengths=lengths), (torch.ones(5), torch.tensor([2, 3]))
    )
    np.testing.assert_array_equal(run(imported, torch.ones(5), torch.tensor([5, 0]))[0], [5, 0])
    for wrong in ([2, 2], [6, -1]):
        with pytest.raises(RelvmShapeError, match="lengths that are not negative and add up"):
            run(imported, torch.ones(5), torch.tensor(wrong))


def test_conditions_on_floats_of_sizes_are_checked() -> None:
    class Half(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x[: int(x.shape[0] * 0.5)] * (2 if x.shape[0] ** 0.5 > 2 else 3)

    auto = torch.export.Dim.AUTO
    imported = from_torch(Half(), (torch.zeros(7),), dynamic_shapes={"x": {0: auto}})
    np.testing.assert_array_equal(run(imported, torch.ones(6))[0], [2, 2, 2])
    with pytest.raises(
        RelvmShapeError, match=r"exported for sizes with math\.trunc\(0\.5\*torch\.sym_float\(x\.size\(0\)"
    ):
        run(imported, torch.ones(9))
