"""Tests of run-time checks in complete programs: every execution mode and target raises the same error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from support.modes import MODES

from relvm import vm
from relvm.errors import RelvmError, RelvmIndexError, RelvmShapeError
from relvm.frontend.text import parse_module
from relvm.ir.interpreter import evaluate
from relvm.ir.type_inference import infer_types


@dataclass(frozen=True)
class Case:
    """A program that fails on some arguments, and works on others."""

    text: str
    wrong: tuple[Any, ...]
    right: tuple[Any, ...]
    message: str
    error: type[RelvmError] = RelvmShapeError

    def __str__(self) -> str:
        return self.text


def f(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape) + 1


def i(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


CASES = [
    # the element count of a view, alone and fused with the next operator
    Case("def main(x: f32[n, 6], y: f32[b]) = reshape(x, shape(b, 2, 3))", (f(1, 6), f(3)), (f(2, 6), f(2)), "6 .* 18"),
    Case(
        "def main(x: f32[n, 6], y: f32[b]) = relu(reshape(x, shape(b, 2, 3)))",
        (f(3, 6), f(2)),
        (f(2, 6), f(2)),
        r"a tensor of shape \[n, 6\] has 18 elements, but \[b, 2, 3\] has 12",
    ),
    Case(
        "def main(x: f32[n, 6], y: f32[b]) = softmax(transpose(reshape(x, shape(b, 2, 3)), perm=(2, 0, 1)))",
        (f(1, 6), f(100)),
        (f(2, 6), f(2)),
        "has 6 elements",
    ),
    Case("def main(x: f32[n]) = relu(reshape(x, shape(n // 2, 2)))", (f(5),), (f(6),), "has 5 elements"),
    # unnamed sizes: one operator introduces a variable for a size, and another requires it
    Case(
        "def main(x: f32[_], y: f32[n]) = broadcast_to(relu(x), shape(n))",
        (f(3), f(5)),
        (f(5), f(5)),
        "broadcast_to: .*5.*3|broadcast_to: .*3.*5",
    ),
    Case(
        "def main(x: f32[_, _], i: i64[_, _], u: f32[_, _]) = scatter_elements(x, abs(i), relu(u), axis=0)",
        (f(3, 2), np.zeros((2, 2), np.int64), f(2, 3)),
        (f(3, 2), np.zeros((2, 2), np.int64), f(2, 2)),
        "scatter_elements: .*3.*2|scatter_elements: .*2.*3",
    ),
    Case(
        "def main(x: f32[_, _], l: i64[_]) = reverse_sequence(x, abs(l), time_axis=0)",
        (f(4, 3), i(1, 2, 3, 4, 1, 2)),
        (f(4, 3), i(1, 2, 3)),
        "reverse_sequence: .*6.*3|reverse_sequence: .*3.*6",
    ),
    Case(
        "def main(x: f32[_], y: f32[_]) = broadcast_to(x, shape_of(y))",
        (f(1), f(5)),
        (f(5), f(5)),
        "broadcast_to: .*1.*5|broadcast_to: .*5.*1",
    ),
    Case(
        "def main(x: f32[_], y: f32[_]) = add(y, broadcast_to(const(f32[], 1.5), shape_of(x)))",
        (f(7), f(3)),
        (f(3), f(3)),
        "add: .*7.*3|add: .*3.*7",
    ),
    Case(
        "def main(x: f32[_], a: f32[n], b: f32[m]) = (add(x, a), add(x, b))",
        (f(3), f(3), f(4)),
        (f(3),) * 3,
        "add: .*3.*4|add: .*4.*3",
    ),
    # windows
    *(
        Case(
            f"def main(x: f32[1, 1, n]) = mean({op}(x, kernel=(3,), strides=(2,)))",
            (f(1, 1, 1),),
            (f(1, 1, 3),),
            f"{op}: window 3 exceeds padded input size 1 .spatial axis 0.",
        )
        for op in ("max_pool", "average_pool")
    ),
    Case(
        "def main(x: f32[1, 1, n], w: f32[1, 1, k]) = relu(conv(x, w, dilations=(2,)))",
        (f(1, 1, 2), f(1, 1, 2)),
        (f(1, 1, 3), f(1, 1, 2)),
        r"window 3 \(k positions, dilated by 2\) exceeds padded input size 2",
    ),
    # dimensions below 0
    Case("def main(x: f32[n]) = sum(pad(x, pads=(-3, 0)))", (f(2),), (f(3),), "dimension 0 of the result .* got -1"),
    Case("def main(x: f32[], n: i64(n)) = sum(broadcast_to(x, shape(n)))", (f(), -2), (f(), 2), "at least 0, got -2"),
    Case("def main(x: f32[n], y: f32[m]) = shape(n - m, 0)", (f(3), f(5)), (f(5), f(3)), "of a shape .* 0, got -2"),
    Case(
        "def main(x: f32[n], c: bool) = if c then (shape(n), shape(n - 2)) else (shape(n), shape(n - 1))",
        (f(1), True),
        (f(1), False),
        "main: dimension 0 of a shape .* got -1",
    ),
    Case(
        "def main(x: f32[n], y: f32[m]) {\n s = match_cast(shape(n - m), shape[p])\n return dim(max(p, 0)) }",
        (f(3), f(5)),
        (f(5), f(3)),
        "main: dimension 0 of a shape .* got -2",
    ),
    Case("def main(x: f32[1], n: i64(n)) = sum(expand(x, shape(n)))", (f(1), -2), (f(1), 2), "main: .* got -2"),
    Case("def main(x: f32[1], n: i64(n)) = expand(x, shape(n, 0))", (f(1), 2**62), (f(1), 2**40), "exceeds 64 bits"),
    # conditions of kernels on the size of an axis
    Case("def main(x: f32[2, n]) = argmax(x, axis=1)", (f(2, 0),), (f(2, 1),), "at least 1 element along axis 1"),
    Case('def main(x: f32[n]) = pad(x, pads=(1, 0), mode="edge")', (f(0),), (f(1),), "at least 1 element"),
    Case("def main(x: f32[n], y: f32[k]) = argtopk(x, shape(k), axis=0)", (f(2), f(3)), (f(3), f(3)), "3 pos"),
    Case(
        "def main(x: f32[n, 2], i: i64[m, k]) = gather_elements(x, i, axis=0)",
        (f(3, 2), np.zeros((1, 3), np.int64)),
        (f(3, 2), np.zeros((1, 2), np.int64)),
        "dimension 1 of indices is 3, which exceeds that of x, 2",
    ),
    Case("def main(x: f32[n], y: f32[m]) = expand(x, shape(m))", (f(2), f(3)), (f(1), f(3)), "is 2, expected 1 or 3"),
    # results of function values
    Case(
        "def main(x: f32[n], c: bool) {\n f: (f32[n]) -> f32[n] = if c then @first else @same\n return add(f(x), x) }\n"
        "def first(x: f32[n]) -> f32[_] = slice(x, begin=(0,), end=(1,))\ndef same(x: f32[n]) -> f32[_] = negative(x)",
        (f(3), True),
        (f(3), False),
        "main: the result of f: expected dimension 0 to be 3, got 1",
    ),
    # elements of tensors
    Case(
        "def main(x: f32[n], i: i64[k]) = relu(gather(x, i))", (f(3), i(3)), (f(3), i(-3)), "index 3", RelvmIndexError
    ),
    Case(
        "def main(x: f32[n, 2], l: i64[n]) = reverse_sequence(x, l, time_axis=1)",
        (f(2, 2), i(1, 3)),
        (f(2, 2), i(1, 2)),
        "a sequence has 3 steps",
    ),
    Case("def main(s: i64[2]) = tensor_to_shape(s)", (i(1, -1),), (i(1, 1),), "-1"),
]

WAYS = {
    **{f"{mode}, {name}": (mode, "c", fused) for mode in MODES for name, fused in (("fused", True), ("apart", False))},
    **{f"{mode}, numpy": (mode, "numpy", True) for mode in MODES},
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_way_raises_the_same_error(case: Case) -> None:
    module = parse_module(case.text)
    with pytest.raises(case.error):
        evaluate(infer_types(module), "main", *case.wrong)
    evaluate(infer_types(module), "main", *case.right)
    messages = {}
    for name, (mode, target, fused) in WAYS.items():
        main = vm.VirtualMachine(vm.build(module, mode, target, fused=fused, verified=True))["main"]
        with pytest.raises(case.error, match=case.message) as raised:
            main(*case.wrong)
        messages[name] = str(raised.value)
        main(*case.right)
    assert len(set(messages.values())) == 1, messages


def test_a_check_of_what_nothing_uses_stays() -> None:
    text = "def main(x: f32[n], y: f32[m]) -> f32[n] { unused = reshape(x, shape(m)); return x }"
    for target in ("c", "numpy"):
        main = vm.VirtualMachine(vm.build(parse_module(text), target=target))["main"]
        main(f(3), f(3))
        with pytest.raises(RelvmShapeError, match="has 3 elements"):
            main(f(3), f(4))
