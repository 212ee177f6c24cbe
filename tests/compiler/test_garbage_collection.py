"""Builds disable garbage collection, and leave its state as it was."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from relvm import vm
from relvm.compiler.garbage_collection import no_garbage_collection
from relvm.frontend.text import parse_module
from relvm.ir import symbolic


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    gc.collect()
    yield
    gc.unfreeze()
    gc.enable()


def test_new_objects_are_in_the_oldest_generation_afterwards() -> None:
    with no_garbage_collection():
        assert not gc.isenabled()
        objects = [[k] for k in range(10_000)]
        assert len(gc.get_objects(0)) >= len(objects)
    assert gc.isenabled() and len(gc.get_objects(0)) < 1000


def test_cycles_are_collected_at_the_end() -> None:
    """Also those that existed before the build, which programs that build repeatedly would otherwise collect."""

    class Cycle:
        def __init__(self) -> None:
            self.itself = self

    before = weakref.ref(Cycle())
    with no_garbage_collection():
        inside = weakref.ref(Cycle())
        assert before() is not None and inside() is not None
    assert before() is None and inside() is None


def test_frozen_objects_stay_frozen() -> None:
    gc.freeze()
    count = gc.get_freeze_count()
    with no_garbage_collection():
        pass
    assert 0 < gc.get_freeze_count() <= count


def test_nested_contexts_and_errors() -> None:
    with pytest.raises(ValueError, match="inside"), no_garbage_collection():
        with no_garbage_collection():
            pass
        assert not gc.isenabled()
        raise ValueError("inside")
    assert gc.isenabled()


def test_a_build_does_not_enable_garbage_collection() -> None:
    module = parse_module("def main(x: f32[2]) -> f32[2] { return exp(x) }")
    gc.disable()
    vm.build(module)
    assert not gc.isenabled()
    gc.enable()
    vm.build(module)
    assert gc.isenabled()


def test_a_build_leaves_no_products_of_sizes_in_memory() -> None:
    n, m = symbolic.dim_var("n"), symbolic.dim_var("m")
    assert n * m == m * n and symbolic._expand.cache_info().currsize
    vm.build(parse_module("def main(x: f32[n, 4]) -> f32[n, 4] { return exp(x) }"))
    assert symbolic._expand.cache_info().currsize == 0
