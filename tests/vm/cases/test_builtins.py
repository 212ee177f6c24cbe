"""Tests of builtin functions called from programs, in both modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.modes import MODES

from relvm import vm
from relvm.errors import (
    RelvmArgumentError,
    RelvmIndexError,
    RelvmMemoryError,
    RelvmShapeError,
    RelvmTypeError,
    RelvmUnsupportedError,
)
from relvm.frontend.text import parse_module
from relvm.tables import SHAPE_CODES

ANY, STORE, EQUAL, EQUAL_HEAP = (row.number for row in SHAPE_CODES)
X = np.zeros((2, 3), np.float32)

Main = Callable[..., Any]


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


def main_of(mode: str, *lines: str, result: str, parameters: str = "x: object") -> Main:
    """Build a function `main` from lines of bindings and an expression for its result, and return it as a callable."""
    body = "\n".join(f"  {line}" for line in lines)
    module = parse_module(f"def main({parameters}) => object {{\n{body}\n  return {result}\n}}")
    return vm.VirtualMachine(vm.build(module, mode, "numpy"))["main"]


def heap_of(*values: int) -> tuple[str, ...]:
    """Return bindings that allocate the shape heap `heap` and store `values` in its slots."""
    pairs = ", ".join(f"{STORE}, {k}" for k in range(len(values)))
    shape = f"shape({', '.join(map(str, values))})"
    fill = f'_ = builtin.match_shape({shape}, heap, {len(values)}, {pairs}, "fill")'
    return (f"heap: object = builtin.alloc_shape_heap({len(values)})", fill)


# ---- make_shape ----


def test_make_shape_from_immediates(mode: str) -> None:
    main = main_of(mode, f"s: object = builtin.make_shape(null, 2, {EQUAL}, 5, {EQUAL}, 7)", result="s")
    assert main(0) == (5, 7) and isinstance(main(0), vm.Shape)


def test_make_shape_of_no_dimension(mode: str) -> None:
    assert main_of(mode, "s: object = builtin.make_shape(null, 0)", result="s")(0) == ()


def test_make_shape_from_the_heap(mode: str) -> None:
    made = f"s: object = builtin.make_shape(heap, 3, {EQUAL_HEAP}, 1, {EQUAL}, 9, {EQUAL_HEAP}, 0)"
    assert main_of(mode, *heap_of(4, 6), made, result="s")(0) == (6, 9, 4)


@pytest.mark.parametrize(
    ("pairs", "error", "words"),
    [
        (f"2, {EQUAL_HEAP}, 0, {EQUAL_HEAP}, 2", RelvmIndexError, "shape heap: slot 2 is out of range"),
        (f"1, {EQUAL_HEAP}, -1", RelvmIndexError, "shape heap: slot -1 is out of range; the heap has 2 slots"),
        (f"1, {STORE}, 0", RelvmTypeError, f"shape code {STORE} is not valid here"),
        (f"1, {ANY}, 0", RelvmTypeError, f"shape code {ANY} is not valid here"),
        (f"2, {EQUAL}, 5", RelvmArgumentError, "make_shape .*wrong number of arguments"),
        (f"-1, {EQUAL}, 5", RelvmArgumentError, "make_shape .*wrong number of arguments"),
    ],
)
def test_make_shape_that_cannot_be_made(mode: str, pairs: str, error: type, words: str) -> None:
    main = main_of(mode, *heap_of(4, 6), f"s: object = builtin.make_shape(heap, {pairs})", result="s")
    with pytest.raises(error, match=words):
        main(0)


# ---- match_shape ----


def matched(mode: str, *pairs: int, heap: tuple[int, ...] = (2, 7)) -> Main:
    """Return a function that matches the shape of x with `pairs` and returns the two slots of the shape heap.

    pairs: a shape code and its operand for each dimension.   heap: the initial values of the slots.
    """
    written = ", ".join(map(str, pairs))
    match = f'_ = builtin.match_shape(x, heap, {len(pairs) // 2}, {written}, "argument x")'
    slots = f"s: object = builtin.make_shape(heap, 2, {EQUAL_HEAP}, 0, {EQUAL_HEAP}, 1)"
    return main_of(mode, *heap_of(*heap), match, slots, result="s")


@pytest.mark.parametrize("value", [X, vm.Shape((2, 3))], ids=["tensor", "shape"])
class TestMatchShape:
    def test_any_matches_whatever_comes(self, mode: str, value: Any) -> None:
        assert matched(mode, ANY, 0, ANY, 99)(value) == (2, 7)

    def test_store_writes_the_heap(self, mode: str, value: Any) -> None:
        assert matched(mode, STORE, 1, STORE, 0)(value) == (3, 2)

    def test_store_outside_of_the_heap(self, mode: str, value: Any) -> None:
        with pytest.raises(RelvmIndexError, match="shape heap: slot 2 is out of range; the heap has 2 slots"):
            matched(mode, ANY, 0, STORE, 2)(value)

    def test_equal_to_an_immediate(self, mode: str, value: Any) -> None:
        assert matched(mode, EQUAL, 2, EQUAL, 3)(value) == (2, 7)

    def test_not_equal_to_an_immediate(self, mode: str, value: Any) -> None:
        with pytest.raises(RelvmShapeError, match="argument x: expected dimension 1 to be 4, got 3"):
            matched(mode, EQUAL, 2, EQUAL, 4)(value)

    def test_equal_to_the_heap(self, mode: str, value: Any) -> None:
        assert matched(mode, EQUAL_HEAP, 0, STORE, 1)(value) == (2, 3)

    def test_not_equal_to_the_heap(self, mode: str, value: Any) -> None:
        with pytest.raises(RelvmShapeError, match="argument x: expected dimension 1 to be 7, got 3"):
            matched(mode, EQUAL_HEAP, 0, EQUAL_HEAP, 1)(value)

    def test_what_was_just_stored_is_compared(self, mode: str, value: Any) -> None:
        with pytest.raises(RelvmShapeError, match="argument x: expected dimension 1 to be 2, got 3"):
            matched(mode, STORE, 1, EQUAL_HEAP, 1)(value)

    def test_another_rank(self, mode: str, value: Any) -> None:
        with pytest.raises(RelvmTypeError, match="argument x: expected rank 3, got 2"):
            matched(mode, ANY, 0, ANY, 0, ANY, 0)(value)


def test_match_shape_of_another_kind_of_value(mode: str) -> None:
    with pytest.raises(RelvmTypeError, match="argument x: expected a tensor or a shape, got int"):
        matched(mode, ANY, 0)(5)


def test_match_shape_with_an_unknown_code(mode: str) -> None:
    with pytest.raises(RelvmTypeError, match="shape code 9 is not valid here"):
        matched(mode, 9, 0, ANY, 0)(X)


@pytest.mark.parametrize(
    ("code", "value", "words"),
    [
        (ANY, 0, None),
        (STORE, 1, None),
        (EQUAL, 5, None),
        (EQUAL_HEAP, 0, None),
        (EQUAL, 6, "argument x: expected 6, got 5"),
        (EQUAL_HEAP, 1, "argument x: expected 7, got 5"),
    ],
)
def test_match_prim_value(mode: str, code: int, value: int, words: str | None) -> None:
    match = f'_ = builtin.match_prim_value(x, heap, {code}, {value}, "argument x")'
    slots = f"s: object = builtin.make_shape(heap, 2, {EQUAL_HEAP}, 0, {EQUAL_HEAP}, 1)"
    main = main_of(mode, *heap_of(5, 7), match, slots, result="s")
    if words is None:
        assert main(5) == (5, 5 if code == STORE else 7)
        return
    with pytest.raises(RelvmShapeError, match=words):
        main(5)


# ---- type checks of arguments ----

TENSORS = {
    ("2", "dtype(f32)"): "of rank 2 and dtype f32",
    ("2", "null"): "of rank 2",
    ("-1", "dtype(f32)"): "of dtype f32",
    ("-1", "null"): None,
}


def checked(mode: str, name: str, *arguments: str) -> Main:
    written = ", ".join(("x", *arguments, '"argument x"'))
    return main_of(mode, f"_ = builtin.{name}({written})", result='"passed"')


@pytest.mark.parametrize(("rank", "dtype"), TENSORS)
def test_check_tensor_info(mode: str, rank: str, dtype: str) -> None:
    main, expected = checked(mode, "check_tensor_info", rank, dtype), TENSORS[rank, dtype]
    assert main(X) == "passed"
    others = {"a tensor of rank 1 and dtype f32": X[0], "a tensor of rank 2 and dtype i64": X.astype(np.int64)}
    for got, value in others.items():
        agrees = (rank == "-1" or "rank 2" in got) and (dtype == "null" or "f32" in got)
        if agrees:
            assert main(value) == "passed"
            continue
        with pytest.raises(RelvmTypeError, match=f"argument x: expected a tensor {expected}, got {got}"):
            main(value)
    for value, got in ((5, "int"), ((X,), "tuple"), (vm.Shape((2, 3)), "shape"), (None, "nil")):
        with pytest.raises(RelvmTypeError, match=f"argument x: expected a tensor.*, got {got}"):
            main(value)


@pytest.mark.parametrize("rank", [2, -1])
def test_check_shape_info(mode: str, rank: int) -> None:
    main = checked(mode, "check_shape_info", str(rank))
    assert main(vm.Shape((2, 3))) == "passed"
    with pytest.raises(RelvmTypeError, match="argument x: expected a shape, got a tensor of rank 2"):
        main(X)
    if rank == -1:
        assert main(vm.Shape(())) == main(vm.Shape((1,) * 9)) == "passed"
        return
    with pytest.raises(RelvmTypeError, match="argument x: expected a shape of rank 2, got rank 0"):
        main(vm.Shape(()))


def test_check_tuple_info(mode: str) -> None:
    main = checked(mode, "check_tuple_info", "2")
    assert main((1, X)) == main([(), None]) == "passed"
    with pytest.raises(RelvmTypeError, match="argument x: expected a tuple of 2 items, got 3"):
        main((1, 2, 3))
    with pytest.raises(RelvmTypeError, match="argument x: expected a tuple, got shape"):
        main(vm.Shape((1, 2)))


def test_check_func_info(mode: str) -> None:
    text = """
    def main(x: object) => object {
      _ = builtin.check_func_info(x, "argument x")
      return "passed"
    }
    def function() => object = @main
    def closure(y: object) => object = fn (a: object) -> object { return y }"""
    machine = vm.VirtualMachine(vm.build(parse_module(text), mode, "numpy"))
    assert machine["main"](machine["function"]()) == "passed"
    assert machine["main"](machine["closure"](5)) == "passed"
    for value, got in ((5, "int"), ((), "tuple"), ("text", "string")):
        with pytest.raises(RelvmTypeError, match=f"argument x: expected a function, got {got}"):
            machine["main"](value)


@pytest.mark.parametrize(
    ("dtype", "good", "bad"),
    [
        ("bool", True, 1),
        ("i64", -(1 << 63), 1.0),
        ("i8", -128, 128),
        ("u8", 255, -1),
        ("u64", 0, -1),
        ("f32", 0.5, 1),
        ("f64", 0.5, True),
    ],
)
def test_check_prim_value_info(mode: str, dtype: str, good: Any, bad: Any) -> None:
    main = checked(mode, "check_prim_value_info", f"dtype({dtype})")
    assert main(good) == "passed"
    with pytest.raises(RelvmTypeError, match=rf"argument x: .*dtype {dtype}"):
        main(bad)
    with pytest.raises(RelvmTypeError, match=r"argument x: expected a scalar of .*, got a tensor of rank 0"):
        main(np.array(good))


# ---- tuples ----


def test_tuple_getitem(mode: str) -> None:
    main = main_of(mode, "item: object = builtin.tuple_getitem(x, i)", result="item", parameters="x: object, i: i64")
    assert (main((5, "b"), 0), main((5, "b"), 1)) == (5, "b")


@pytest.mark.parametrize("index", [2, -1, 1 << 40])
def test_tuple_getitem_out_of_range(mode: str, index: int) -> None:
    main = main_of(mode, "item: object = builtin.tuple_getitem(x, i)", result="item", parameters="x: object, i: i64")
    with pytest.raises(RelvmIndexError, match=f"tuple_getitem: index {index} is out of range; the tuple has 2 items"):
        main((5, "b"), index)
    assert main((5, "b"), 1) == "b"


@pytest.mark.parametrize(("value", "got"), [(X, "a tensor"), (vm.Shape((1, 2)), "shape"), (5, "int"), (None, "nil")])
def test_tuple_getitem_on_a_non_tuple(mode: str, value: Any, got: str) -> None:
    main = main_of(mode, "item: object = builtin.tuple_getitem(x, 0)", result="item")
    with pytest.raises(RelvmTypeError, match=rf"tuple_getitem .*expected argument 1 to be a tuple, got {got}"):
        main(value)
    assert main((7,)) == 7


# ---- memory ----


def tensor_in_storage(mode: str, dtype: str = "f32") -> Main:
    """Return main(size, offset, shape), which allocates a tensor at `offset` in a new storage of `size` bytes."""
    return main_of(
        mode,
        "storage: object = builtin.alloc_storage(size, 0, dtype(u8))",
        f"tensor: object = builtin.alloc_tensor(storage, offset, dims, dtype({dtype}))",
        result="tensor",
        parameters="size: i64, offset: i64, dims: shape[...]",
    )


@pytest.mark.parametrize(("size", "offset", "dims"), [(24, 0, (2, 3)), (32, 8, (6,)), (0, 0, (0, 5)), (4, 4, (0,))])
def test_alloc_tensor_inside_its_storage(mode: str, size: int, offset: int, dims: tuple[int, ...]) -> None:
    tensor = tensor_in_storage(mode)(size, offset, vm.Shape(dims))
    assert (tensor.shape, tensor.dtype) == (dims, np.float32)
    tensor.numpy()[...] = 1
    np.testing.assert_array_equal(tensor, np.ones(dims))


@pytest.mark.parametrize(
    ("size", "offset", "dims", "error", "words"),
    [
        (23, 0, (2, 3), RelvmMemoryError, "24 bytes at offset 0 do not fit into a storage of 23 bytes"),
        (24, 4, (2, 3), RelvmMemoryError, "24 bytes at offset 4 do not fit into a storage of 24 bytes"),
        (24, 28, (0,), RelvmMemoryError, "0 bytes at offset 28 do not fit into a storage of 24 bytes"),
        (24, 1 << 62, (1,), RelvmMemoryError, "do not fit into a storage of 24 bytes"),
        (24, -4, (1,), RelvmIndexError, "offset -4 must be a nonnegative multiple of the size of f32"),
        (24, 2, (1,), RelvmIndexError, "offset 2 must be a nonnegative multiple of the size of f32"),
        (24, 0, (-1,), RelvmShapeError, "a shape without negative sizes"),
        (24, 0, (1 << 40, 1 << 40), RelvmShapeError, "the size exceeds 64 bits"),
    ],
)
def test_alloc_tensor_beyond_its_storage(mode: str, size: int, offset: int, dims: tuple, error, words: str) -> None:
    main = tensor_in_storage(mode)
    with pytest.raises(error, match=words):
        main(size, offset, vm.Shape(dims))
    assert main(4, 0, vm.Shape((1,))).shape == (1,)  # the machine is still usable


@pytest.mark.parametrize(
    ("size", "error", "words"),
    [
        (1 << 61, RelvmMemoryError, "storage: cannot allocate 2305843009213693952 bytes"),
        (1 << 50, RelvmMemoryError, "out of memory"),
        (-1, RelvmShapeError, "the size is negative or exceeds 64 bits"),
    ],
)
def test_a_storage_out_of_memory(mode: str, size: int, error: type, words: str) -> None:
    main = tensor_in_storage(mode)
    with pytest.raises(error, match=words):
        main(size, 0, vm.Shape((1,)))
    assert main(4, 0, vm.Shape((1,))).shape == (1,)


def test_a_storage_for_a_shape_s_elements(mode: str) -> None:
    main = main_of(
        mode,
        "storage: object = builtin.alloc_storage(dims, 0, dtype(f64))",
        "tensor: object = builtin.alloc_tensor(storage, 0, dims, dtype(f64))",
        result="tensor",
        parameters="dims: shape[...]",
    )
    assert main(vm.Shape((3, 5))).shape == (3, 5)
    with pytest.raises(RelvmShapeError, match="the size is negative or exceeds 64 bits"):
        main(vm.Shape((1 << 62, 1 << 62)))


@pytest.mark.parametrize("device", [1, -1, 1 << 40])
def test_a_device_other_than_0_is_refused(mode: str, device: int) -> None:
    parameters = "x: object, device: i64"
    storage = "storage: object = builtin.alloc_storage(16, device, dtype(u8))"
    tensor = "tensor: object = builtin.alloc_tensor(storage, 0, shape(16), dtype(u8))"
    allocate = main_of(mode, storage, tensor, result="tensor", parameters=parameters)
    move = main_of(mode, "y: object = builtin.to_device(x, device)", result="y", parameters=parameters)
    assert allocate(X, 0).shape == (16,)
    np.testing.assert_array_equal(move(X, 0), X)
    words = rf": unknown device {device}; expected 0 \(CPU\), the only device"
    with pytest.raises(RelvmUnsupportedError, match=rf"vm\.builtin\.alloc_storage{words}"):
        allocate(X, device)
    with pytest.raises(RelvmUnsupportedError, match=rf"vm\.builtin\.to_device{words}"):
        move(X, device)
