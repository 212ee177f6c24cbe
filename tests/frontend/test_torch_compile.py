"""torch.compile(backend="relvm"): results, strides, aliases and updates are those of eager mode.

Without PyTorch, these tests are skipped.  Run them with `pytest -q tests/frontend/test_torch_compile.py` where PyTorch
is installed, and transformers and torchvision for the models (docs/testing.md).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from relvm.errors import RelvmArgumentError, RelvmUnsupportedError

torch = pytest.importorskip("torch", reason="PyTorch is not installed: torch.compile is NOT tested (docs/testing.md)")

from benchmarks.torch_models import MODELS, example  # noqa: E402

OPTIONS = {"exec_mode": "bytecode", "target": "bytecode"}

torch.manual_seed(0)
X = torch.randn(3, 4)


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()


def compiled(function: Any, **options: Any) -> Any:
    return torch.compile(function, backend="relvm", options={**OPTIONS, **options})


def cause(error: Any) -> BaseException:
    """Return the error of the backend, which BackendCompilerFailed wraps."""
    return error.value.inner_exception


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_modules_with_allow_rnn(kind: str) -> None:
    module, x = getattr(torch.nn, kind)(4, 5, 2, batch_first=True).eval(), torch.randn(2, 3, 4)
    with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True):
        found, expected = torch.compile(module, backend="relvm", options=OPTIONS, fullgraph=True)(x), module(x)
    torch.testing.assert_close(found, expected)


def test_a_view_whose_size_depends_on_a_tensor_that_is_no_output() -> None:
    def pairs(x: Any) -> Any:
        count = x.nonzero().shape[0]
        flat = torch.arange(2 * count) * 2
        return flat, flat.view(count, 2)

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        function = torch.compile(pairs, backend="relvm", options=OPTIONS, fullgraph=True)
        for x in (torch.tensor([1.0, 0, 2]), torch.tensor([0.0, 0, 4, 5, 6])):
            flat, view = function(x)
            torch.testing.assert_close((flat, view), pairs(x))
            assert view.data_ptr() == flat.data_ptr()


def test_sizes_that_operators_must_know_are_those_of_the_call() -> None:
    def spectrum(x: Any) -> Any:
        return torch.fft.rfft(x).abs(), x.cummax(1).values

    torch._dynamo.utils.counters.clear()
    function = compiled(spectrum)
    with torch.no_grad():
        for shape in ((3, 4), (5, 8), (6, 9), (6, 8), (7, 9)):
            x = torch.randn(shape)
            torch.testing.assert_close(function(x), spectrum(x), rtol=1e-4, atol=1e-5)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 3  # any number of rows, but 4, 8 or 9 columns


def _loss(x: Any) -> Any:
    """Return a number that depends on composite operators, which relvm lets PyTorch keep."""
    weight = torch.arange(16.0).reshape(4, 4) / 16 - 0.5
    hidden = torch.nn.functional.linear(x @ weight, weight)
    return (torch.nn.functional.layer_norm(hidden, (4,)) * hidden).square().sum()


@pytest.mark.parametrize(
    "function",
    [
        torch.func.grad(_loss),
        torch.func.grad_and_value(_loss),
        torch.vmap(torch.func.grad(lambda row: _loss(row[None]))),
        torch.func.jacrev(torch.func.grad(_loss)),
        lambda x: torch.func.jvp(_loss, (x,), (x.cos(),)),
        lambda x: torch.func.vjp(lambda x: x @ x.T @ x, x)[1](x),
    ],
    ids=["grad", "grad_and_value", "vmap of grad", "hessian", "jvp", "vjp"],
)
def test_derivatives_of_composite_operators(function: Any) -> None:
    with torch.no_grad():
        found, expected = compiled(function)(X), function(X)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_derivatives_of_convolutions() -> None:
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, stride=2, padding=1), torch.nn.SiLU(), torch.nn.ConvTranspose2d(4, 2, 4, 2, 1)
    )
    parameters = dict(net.named_parameters())

    def loss(parameters: Any, x: Any) -> Any:
        return torch.func.functional_call(net, parameters, x).square().sum()

    def of_parameters(x: Any) -> Any:  # the first convolution has no gradient of x: its first result is None
        return torch.func.grad(loss)(parameters, x)

    def of_image(x: Any) -> Any:
        return torch.func.grad(loss, argnums=1)(parameters, x)

    with torch.no_grad():
        for function in (of_parameters, of_image):
            for x in (torch.randn(2, 3, 8, 6), torch.randn(3, 3, 10, 6)):
                torch.testing.assert_close(compiled(function)(x), function(x), rtol=1e-4, atol=1e-4)


def test_a_node_that_pytorch_cannot_serialize_is_named_with_its_line() -> None:
    from relvm.frontend.torch.graph_module import program_of_graph

    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = X
    size = graph.call_function(len, (x,))
    size.meta["stack_trace"] = '  File "model.py", line 7, in forward\n    len(x)\n'
    graph.output((size,))
    with pytest.raises(RelvmUnsupportedError, match=r"graph 0: len_1 \(<built.*len>, model\.py:7\): PyTorch cannot"):
        program_of_graph(torch.fx.GraphModule(torch.nn.Module(), graph), "graph 0", {})


@pytest.mark.parametrize("is_dynamic", [False, True])
def test_flex_attention(is_dynamic: bool) -> None:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    slope = torch.tensor([0.5, -0.25])

    def attend(q: Any, k: Any, v: Any) -> Any:
        def biased(score: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
            return score * 0.5 + (i - j) * slope[h]

        scored = flex_attention(q, k, v, score_mod=biased, enable_gqa=True)
        if is_dynamic:
            return scored
        mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, q.shape[2], k.shape[2], device="cpu")
        return scored, flex_attention(q, k, v, block_mask=mask, scale=0.3, enable_gqa=True)

    function = torch.compile(attend, backend="relvm", options=OPTIONS, dynamic=is_dynamic)
    with torch.no_grad():
        for size in (5, 8) if is_dynamic else (5,):
            q, k, v = torch.randn(2, 2, size, 4), torch.randn(2, 1, size, 4), torch.randn(2, 1, size, 4)
            torch.testing.assert_close(function(q, k, v), attend(q, k, v), rtol=1e-4, atol=1e-5)


# ---- functions beside eager mode ----

Case = tuple[Callable[..., Any], list[tuple[Any, ...]]]
CASES: dict[str, Case] = {}


def case(*arguments: tuple[Any, ...]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds a function to CASES.   arguments: the arguments of each call."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES[function.__name__] = function, list(arguments)
        return function

    return add


@case((torch.randn(3, 20), torch.randn(11, dtype=torch.complex64)))
def complex_numbers(x: Any, weight: Any) -> Any:
    spectrum = torch.fft.rfft(x) * weight
    changed = spectrum.clone()
    changed[0] = 1 + 2j
    return torch.fft.irfft(spectrum, n=20), spectrum.abs(), changed.mH, changed


@case((torch.randn(3, 4, dtype=torch.complex64).conj(),))
def conjugate_argument(x: Any) -> Any:
    return x + 1, x.T, torch.view_as_real(x.exp())


@case((X,), (torch.randn(5, 4),), (torch.randn(7, 4),))
def dynamic_sizes(x: Any) -> Any:
    return x.view(-1) * 2, x.shape[0], x.reshape(2, -1), x.sum() / x.size(0), x.size(0) * 2


@case((torch.randn(7, 3),), (torch.randn(10, 3),), (torch.randn(13, 3),))
def sizes_that_are_computed_as_floats(x: Any) -> Any:
    half = int(x.shape[0] * 0.5)
    return torch.arange(half).view(1, half) + torch.zeros(half), x[:half].view(half, 3).sum(-1) + torch.arange(half)


ENCODER = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=True, activation="gelu").eval()
PADDED = torch.tensor([[False, False, True, True], [False, False, False, False]])


@case((torch.randn(2, 4, 16), PADDED))
def an_encoder_layer_in_inference(x: Any, padded: Any) -> Any:
    attention = ENCODER.self_attn
    causal = torch.nn.Transformer.generate_square_subsequent_mask(4)
    with torch.no_grad():
        masked = ENCODER(x, src_key_padding_mask=padded), ENCODER(x, src_mask=causal, is_causal=True)
        return *masked, *attention(x, x, x, key_padding_mask=padded), attention(x, x, x, average_attn_weights=False)[1]


@case((torch.tensor([[0.5, 1.5, 2.5, -3.3], [torch.inf, -torch.inf, 1e30, 0.1]]),))
def simulated_quantization(x: Any) -> Any:
    tensor, channel = torch.fake_quantize_per_tensor_affine, torch.fake_quantize_per_channel_affine
    scales, zeros = torch.tensor([0.1, 0.2, 0.5, 1]), torch.arange(4, dtype=torch.int32)
    return (
        tensor(x, 1.0, 3, 0, 255),
        tensor(x, scales[1], zeros[2], -8, 7),
        channel(x.clamp(-99, 99), scales, zeros, 1, -8, 7),
    )


@case((X, X * 2))
def updates(x: Any, y: Any) -> Any:
    x.add_(1)
    y[1:].mul_(2)
    y[:, 0] = 7.0
    return x.sum(), y.copy_(x * 2)


@case((X,))
def an_update_and_a_view_as_results(x: Any) -> Any:
    x.mul_(3)
    return x, x[0]


@case((X,), (torch.randn(5, 4),), (torch.randn(6, 4),))
def views_of_inputs(x: Any) -> Any:
    return x, x.t(), x[1:], x[1:, 2], x.view(2, -1), x.unsqueeze(0), x.expand(2, -1, -1), x[x.shape[0] // 2 :]


@case((X,), (torch.randn(5, 4),), (torch.randn(6, 4),))
def views_of_results(x: Any) -> Any:
    y, z, w = x.sin(), x.cos(), x.tan()
    return y[1:], y[0], z, z.t(), w[:, 2:], x.exp().t()


@case((X,))
def parts(x: Any) -> Any:
    first, second = x.split(2, 1)
    third, fourth = (x + 1).chunk(2, 1)
    return first, second, third, fourth


@case((X,))
def other_results(x: Any) -> Any:
    return None, x * 2, None, 3, "text", {"cos": x.cos(), "list": [x]}


@case((X,))
def equal_results(x: Any) -> Any:
    y = x * 2
    return y, y, x + 1, x + 1, x.clone(), x * 1, x.contiguous()


@case((X,))
def constants(x: Any) -> Any:
    return torch.zeros(3), torch.arange(4), x * 0 + 1, torch.tensor([1, 2, 3]), x.new_ones(x.shape)


@case(
    (X.t(),),
    (torch.randn(4, 6)[:, ::2],),
    (torch.randn(1, 4).expand(3, 4),),
    (torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),),
)
def strides(x: Any) -> Any:
    return x * 2, x.clone(), x.sum(0), x.contiguous(), torch.stack([x, x], 1).transpose(0, 2)


@case((X,))
def a_graph_break(x: Any) -> Any:
    y = x * 2
    torch._dynamo.graph_break()
    z = y + 1
    z.add_(x)
    return z, y


@case((X,), (-X.abs(),))
def a_branch(x: Any) -> Any:
    return x + 1 if x.sum() > 0 else x - 1


@case((X, 1.5, 2), (X, 2.5, 3), (X, 3.5, 4), (X, 4.5, -5))
def numbers(x: Any, scale: float, count: int) -> Any:
    return x * scale, scale * 2, x + count, count * 2, x.roll(count, 0)


@case(
    (torch.arange(6).reshape(2, 3),),
    (torch.randint(0, 9, (2, 3), dtype=torch.uint8),),
    (torch.rand(2, 3) > 0.5,),
    *((torch.randn(2, 3).to(dtype),) for dtype in (torch.bfloat16, torch.float16, torch.float64)),
    (torch.zeros(0, 3),),
)
def dtypes(x: Any) -> Any:
    return x + x, x.float() * 0.5, x == 1, x.to(torch.int64).sum()


@case((X,))
def no_results(x: Any) -> Any:
    return ()


@case((X, torch.tensor([0, 2]), torch.tensor(2.0)))
def indices(x: Any, index: Any, scale: Any) -> Any:
    y = x.clone()
    y[y > 0] = 0
    return x[index], x.index_add(0, index, x[:2]), x * scale, y, x.sort(-1), x.topk(2)[1]


@case((torch._neg_view(X),))
def a_lazy_negation(x: Any) -> Any:
    return x * 2, x + 1


@case((X,))
def a_condition(x: Any) -> Any:
    return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos() + 1, (x,))


@case((X,))
def new_axes_in_place(x: Any) -> Any:
    x.unsqueeze_(0)
    return x * 2


def copied(args: Sequence[Any]) -> list[Any]:
    """Return arguments with memory of their own, but equal strides."""
    return [_copy(each) if isinstance(each, torch.Tensor) else each for each in args]


def _copy(x: Any) -> Any:
    if x.is_neg():
        return torch._neg_view(x.neg().clone())
    if 0 in x.stride():
        return x[:1].clone().expand(x.shape)
    return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype).copy_(x)


def sharing(results: Any, args: Sequence[Any]) -> list[list[bool]]:
    """Return which results share memory with which arguments and results."""
    found = [each for each in torch.utils._pytree.tree_leaves(results) if isinstance(each, torch.Tensor)]
    others = [each for each in args if isinstance(each, torch.Tensor)] + found
    return [
        [one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr() and one.numel() > 0 for other in others]
        for one in found
    ]


def expect_equal(found: Any, expected: Any) -> None:
    leaves, structure = torch.utils._pytree.tree_flatten(expected)
    own, same = torch.utils._pytree.tree_flatten(found)
    assert structure == same
    for x, y in zip(own, leaves, strict=True):
        assert type(x) is type(y)
        if not isinstance(y, torch.Tensor):
            assert x == y
            continue
        torch.testing.assert_close(x, y, rtol=1e-4, atol=1e-5)
        assert x.stride() == y.stride() or y.numel() <= 1


@pytest.mark.parametrize("name", CASES)
def test_a_function_has_the_effects_of_eager_mode(name: str) -> None:
    function, calls = CASES[name]
    with torch.no_grad():
        run = compiled(function)
        for arguments in calls * 2:
            theirs, own = copied(arguments), copied(arguments)
            expected, found = function(*theirs), run(*own)
            expect_equal(found, expected)
            expect_equal(own, theirs)
            assert sharing(found, own) == sharing(expected, theirs)


@pytest.mark.parametrize("overlaps", [False, True])
def test_arguments_that_share_memory(overlaps: bool) -> None:
    def function(x: Any, y: Any) -> Any:
        x.add_(1)
        return y * 2

    run = compiled(function)
    results = []
    for each in (function, run):
        base = torch.arange(24.0).reshape(6, 4)
        x, y = (base[:3], base[2:5]) if overlaps else (base, base)
        with torch.no_grad():
            results.append((each(x, y), base))
    expect_equal(results[1], results[0])


# ---- modules ----


class Stateful(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Conv1d(2, 4, 3), torch.nn.BatchNorm1d(4), torch.nn.ReLU())
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Any) -> Any:
        self.count += 1
        return self.layers(x)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("freeze", [True, False])
def test_buffers_are_updated_and_new_parameters_are_used(training: bool, freeze: bool) -> None:
    module, other = (Stateful().train(training) for _ in range(2))
    other.load_state_dict(module.state_dict())
    run = compiled(module, freeze=freeze)
    x = torch.randn(3, 2, 8)
    with torch.no_grad():
        for step in range(4):
            if step == 2:  # in place, as optimizers do
                state = {name: each + 1 for name, each in module.state_dict().items()}
                module.load_state_dict(state)
                other.load_state_dict(state)
            if step == 3:
                for each in (module, other):
                    each.layers[0].weight = torch.nn.Parameter(torch.ones(4, 2, 3))
            expect_equal(run(x), other(x))
            expect_equal(dict(module.named_buffers()), dict(other.named_buffers()))


def test_the_mode_of_a_module_can_change() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5)).eval()
    run = compiled(module)
    with torch.no_grad():
        expect_equal(run(X), module(X))
        module.train()
        with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="random numbers are not supported"):
            run(X)
        module.eval()
        expect_equal(run(X), module(X))


@pytest.mark.parametrize("name", MODELS)
def test_models_with_a_dynamic_batch(name: str) -> None:
    pytest.importorskip("transformers" if "transformers" in name else "torchvision")
    module, _ = example(name, 2, small=True)
    run = compiled(module)
    with torch.inference_mode():
        for batch in (2, 3, 5):
            _, args = example(name, batch, small=True)
            torch.testing.assert_close(run(*args), module(*args), rtol=1e-3, atol=1e-3)


def test_several_threads_call_one_graph() -> None:
    from concurrent.futures import ThreadPoolExecutor

    function = compiled(lambda x: (x @ x).tanh())
    with torch.no_grad():
        function(torch.eye(40))

        def run(seed: int) -> bool:
            x = torch.full((40, 40), seed / 1000)
            with torch.no_grad():
                return torch.allclose(function(x), (x @ x).tanh(), atol=1e-5)

        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(run, range(200)))


# ---- errors and options ----


def test_everything_that_is_not_supported_is_listed_with_its_lines() -> None:
    def function(x: Any) -> Any:
        y = torch.linalg.ldl_factor(x)[0]
        return y + torch.rand_like(y)

    with torch.no_grad(), pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as error:
        compiled(function)(torch.eye(3))
    assert isinstance(cause(error), RelvmUnsupportedError)
    text = str(cause(error))
    assert "linalg_ldl" in text and "rand_like" in text
    assert text.count("test_torch_compile.py:") == 2
    with torch.no_grad(), pytest.warns(UserWarning, match="linalg_ldl"):
        assert compiled(function, fallback=True)(torch.eye(3)).shape == (3, 3)


def test_results_that_require_gradients() -> None:
    module = torch.nn.Linear(4, 2)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=r"call the model under\s+torch.no_grad") as error:
        compiled(module)(X)
    assert isinstance(cause(error), RelvmUnsupportedError)
    with pytest.warns(UserWarning, match="require gradients"):
        compiled(module, fallback=True)(X).sum().backward()
    assert module.weight.grad is not None
    without = torch.no_grad()(lambda x: module(x))
    torch._dynamo.reset()
    assert not compiled(lambda x: without(x) * 2)(X).requires_grad


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"freez": True}, "no option freez.*freeze"),
        ({"freeze": 1}, "freeze.*True or False"),
        ({"exec_mode": "fast"}, "exec_mode"),
        ({"target": "gpu"}, "gpu"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with torch.no_grad(), pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=message):
        torch.compile(torch.sin, backend="relvm", options=options)(X)


def test_there_are_no_modes() -> None:
    from relvm.torch import backend

    with pytest.raises(RelvmArgumentError, match="has no modes"):
        backend(None, [], mode="max-autotune")


def test_torch_finds_the_backend_without_an_import_of_relvm() -> None:
    program = (
        "import sys, torch\n"
        "with torch.no_grad():\n"
        "    assert 'relvm' not in sys.modules and 'relvm' in torch._dynamo.list_backends()\n"
        "    run = torch.compile(torch.sin, backend='relvm', options={'exec_mode': 'bytecode', 'target': 'bytecode'})\n"
        "    assert torch.allclose(run(torch.ones(3)), torch.ones(3).sin())\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_symbolic_sizes_are_never_negative() -> None:
    def function(x: Any, table: Any, count: int) -> Any:
        return table[: x.shape[0]] + x, table[x.shape[0] // 2 :].to(torch.float64), x + count

    run = torch.compile(function, backend="relvm", options=OPTIONS, dynamic=True)
    with torch.no_grad():
        for size, count in ((3, 1), (5, -2)):
            args = (torch.randn(size, 2), torch.randn(9, 2), count)
            expect_equal(run(*args), function(*args))


def test_attention_with_keys_and_values_of_separate_symbolic_lengths() -> None:
    function = torch.nn.functional.scaled_dot_product_attention
    run = torch.compile(function, backend="relvm", options=OPTIONS)
    with torch.no_grad():
        for length in (3, 4, 6):
            q, k, v = torch.randn(2, 1, 8), torch.randn(2, length, 8), torch.randn(2, length, 8)
            for each in (k, v):
                torch._dynamo.maybe_mark_dynamic(each, 1)
            torch.testing.assert_close(run(q, k, v), function(q, k, v), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cache", ["default", "static"])
@pytest.mark.parametrize("name", ["GPT2LMHeadModel", "LlamaForCausalLM"])
def test_tokens_are_generated_with_a_cache(name: str, cache: str) -> None:
    transformers = pytest.importorskip("transformers")
    configs = {
        "GPT2LMHeadModel": lambda: transformers.GPT2Config(
            vocab_size=100, n_embd=32, n_layer=2, n_head=2, n_inner=64, bos_token_id=0, eos_token_id=0
        ),
        "LlamaForCausalLM": lambda: transformers.LlamaConfig(
            vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
        ),
    }
    torch.manual_seed(0)
    model = getattr(transformers, name)(configs[name]()).eval()
    tokens = torch.randint(1, 100, (2, 5))
    options = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    options |= {"cache_implementation": cache} if cache != "default" else {}
    with torch.no_grad():
        expected = model.generate(tokens, **options)
        model.forward = compiled(model.forward)
        assert torch.equal(model.generate(tokens, **options), expected)
