"""Tests of memory planning: the placement of tensors in storages, and unchanged results."""

from __future__ import annotations

import resource
import weakref
from functools import partial

import numpy as np
import pytest
from support.modes import MODES, WAYS, run_everywhere
from support.pipeline_parts import module_after

from relvm import vm
from relvm.errors import RelvmError, RelvmNameError, RelvmShapeError, RelvmTypeError
from relvm.frontend.text import parse_module
from relvm.ir.expr import BuiltinCall, Constant, Function, KernelRun, Kill, Prim, Shape, Var
from relvm.ir.interpreter import evaluate
from relvm.ir.node import walk
from relvm.ir.symbolic import AnyDim
from relvm.ir.type_inference import infer_types
from relvm.runtime.packed_func import register_func

X = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)


def planned(text: str, name: str = "main", upto: str = "plan_memory") -> Function:
    """Return the function `name` of the program `text` after the pass `upto`."""
    return module_after(upto, parse_module(text), fused=False)[name]


def storages(function: Function) -> dict[str, tuple[AnyDim, ...] | int]:
    """Return, for each storage, the shape of the tensor that it is allocated for, or its size in bytes."""
    found = {}
    for item in walk(function):
        match getattr(item, "value", None):
            case BuiltinCall("alloc_storage", (Shape(dims), *_)):
                found[item.var.name] = dims
            case BuiltinCall("alloc_storage", (Prim(size), *_)):
                found[item.var.name] = size
    return found


def places(function: Function) -> dict[str, tuple[str, int]]:
    """Return the storage of each tensor, and the offset of the tensor in the storage."""
    found = {}
    for item in walk(function):
        match getattr(item, "value", None):
            case BuiltinCall("alloc_tensor", (storage, Prim(offset), *_)):
                found[item.var.name] = (storage.name, offset)
    return found


def softmaxes(count: int, shape: str = "4, 8", attributes: str = "") -> str:
    """Return a program with a chain of `count` kernels that cannot run in place.  Their results are v1, v2, ..."""
    lines = [f"  v{i + 1} = softmax(v{i}, axis=1)" for i in range(count)]
    body = "\n".join(lines)
    return f"def main(v0: f32[{shape}]) -> f32[{shape}] {attributes} {{\n{body}\n  return v{count}\n}}"


# ---- tensors that share memory ----


def test_two_tensors_of_one_size_share_one_storage_when_lifetimes_are_apart() -> None:
    found = places(planned(softmaxes(4)))
    assert found["v1"] == found["v3"] != found["v2"]
    run_everywhere(parse_module(softmaxes(4)), X)


SEVERAL_SIZES = """def main(x: f32[{rows}, 8]) -> f32[1] {attributes} {{
  a = concat(x, x, x, axis=0)
  b = softmax(transpose(a, perm=(1, 0)), axis=0)
  c = matmul(a, b)
  d = max(c, axes=(1,))
  e = softmax(reshape(d, shape(1, {rows} * 3)), axis=1)
  return max(e, axes=(1,))
}}"""


def test_tensors_of_several_sizes_share_an_arena() -> None:
    text = SEVERAL_SIZES.format(rows=4, attributes="")
    main = planned(text)
    (arena,) = (name for name, size in storages(main).items() if isinstance(size, int))
    assert arena == "arena" and sum(storage == arena for storage, _ in places(main).values()) >= 4
    run_everywhere(parse_module(text), X)


def test_dtypes_of_other_width_share_when_aligned() -> None:
    text = """def main(x: f32[4, 8]) -> f32[8] {
  a = cast(concat(x, x, axis=0), to=i64)
  b = cast(a, to=i8)
  c = cast(b, to=f64)
  d = cast(negative(c), to=f32)
  e = softmax(d, axis=1)
  return max(e, axes=(0,))
}"""
    main = planned(text)
    offsets = places(main)
    assert len({storage for storage, _ in offsets.values()}) < len(offsets)
    assert all(offset % 64 == 0 for _, offset in offsets.values())
    run_everywhere(parse_module(text), X * 3)


# ---- tensors that must not share memory ----


def test_tuples_and_nested_tuples_keep_their_fields_alive() -> None:
    text = """def main(x: f32[4, 8]) -> f32[4, 8] {
  a = softmax(x, axis=1)
  b = softmax(a, axis=1)
  inner = (a, b)
  outer = (inner, 1)
  c = softmax(b, axis=1)
  d = softmax(c, axis=1)
  again = outer.0
  kept = again.0
  e = softmax(add(d, kept), axis=1)
  return e
}"""
    found = places(planned(text))
    assert found["a"] not in (found["b"], found["c"], found["d"])
    run_everywhere(parse_module(text), X)


def test_a_returned_tuple_keeps_its_fields_alive() -> None:
    text = """def main(x: f32[4, 8]) -> ((f32[4, 8], f32[4, 8]), f32[4, 8]) {
  a = softmax(x, axis=1)
  b = softmax(a, axis=1)
  pair = (a, b)
  c = softmax(b, axis=1)
  d = softmax(c, axis=1)
  return (pair, d)
}"""
    found = places(planned(text))
    assert len(set(found.values())) == len(found) == 4
    run_everywhere(parse_module(text), X)


IF = """def main(c: bool, x: f32[4, 8]) -> f32[4, 8] {
  a = softmax(x, axis=1)
  b = softmax(a, axis=1)
  y = if c then {
    p = softmax(b, axis=1)
    q = softmax(p, axis=1)
    r = softmax(q, axis=1)
    return softmax(r, axis=1)
  } else {
    s = softmax(b, axis=1)
    return b
  }
  d = softmax(y, axis=1)
  e = softmax(d, axis=1)
  return add(e, a)
}"""


def test_values_that_cross_the_branches_of_an_if_stay() -> None:
    found = places(planned(IF))
    assert found["b"] not in [place for name, place in found.items() if name != "b"]
    assert found["a"] not in [place for name, place in found.items() if name != "a"]
    for condition in (True, False):
        run_everywhere(parse_module(IF), condition, X)


def test_values_inside_a_branch_share() -> None:
    found = places(planned(IF))
    assert found["p"] == found["r"] != found["q"]


def test_values_passed_to_packed_functions_are_not_reused_early() -> None:
    held = []

    def keep(array: np.ndarray) -> np.ndarray:
        held.append((array, array.copy()))
        return array

    text = """def main(x: f32[4, 8]) => f32[4, 8] {
  a = softmax(x, axis=1)
  _ = packed("memory.keep", a) : f32[4, 8]
  b = softmax(a, axis=1)
  c = softmax(b, axis=1)
  d = softmax(c, axis=1)
  return d
}"""
    vm.register_func("memory.keep", lambda tensor: keep(tensor.numpy()), override=True)
    for way in WAYS:
        vm.VirtualMachine(vm.build(parse_module(text), *way))["main"](X)
    assert len(held) == len(WAYS)
    for array, copy in held:
        np.testing.assert_array_equal(array, copy)
    found = places(planned(text))
    assert list(found.values()).count(found["a"]) == 1


def test_values_passed_to_other_functions_are_not_reused_early() -> None:
    text = """def first(p: f32[k, l], q: f32[k, l]) -> (f32[k, l], f32[k, l]) = (p, q)

def main(x: f32[4, 8]) -> f32[4, 8] {
  a = softmax(x, axis=1)
  kept = @first(a, x)
  b = softmax(a, axis=1)
  c = softmax(b, axis=1)
  d = softmax(c, axis=1)
  return add(d, kept.0)
}"""
    found = places(planned(text))
    assert list(found.values()).count(found["a"]) == 1
    run_everywhere(parse_module(text), X)


def test_values_captured_by_closures_are_not_reused_early() -> None:
    text = """def main(x: f32[4, 8]) -> f32[4, 8] {
  a = softmax(x, axis=1)
  f = fn (v: f32[4, 8]) -> f32[4, 8] { return add(v, a) }
  b = softmax(x, axis=1)
  c = softmax(b, axis=1)
  d = softmax(c, axis=1)
  return f(d)
}"""
    found = places(planned(text))
    assert list(found.values()).count(found["a"]) == 1
    run_everywhere(parse_module(text), X)


def test_reshape_keeps_its_storage_alive() -> None:
    text = """def main(x: f32[4, 8]) -> f32[4, 8] {
  a = softmax(x, axis=1)
  view = reshape(a, shape(8, 4))
  b = softmax(x, axis=0)
  c = softmax(b, axis=1)
  d = softmax(view, axis=1)
  return add(c, reshape(d, shape(4, 8)))
}"""
    found = places(planned(text))
    assert found["a"] not in (found["b"], found["c"])
    run_everywhere(parse_module(text), X)


@pytest.mark.parametrize("shape", ["4, 8", "n, 8"])
def test_parameters_and_constants_are_never_written(shape: str) -> None:
    text = f"""def main(x: f32[{shape}]) -> (f32[{shape}], f32[{shape}]) {{
  a = relu(x)
  y = reshape(x, shape({shape}))
  b = negative(y)
  k = add(const(f32[8], [1, 2, 3, 4, 5, 6, 7, 8]), const(f32[8], [1, 1, 1, 1, 1, 1, 1, 1]))
  return (a, add(b, k))
}}"""
    main = planned(text)
    written = [item.args[-1] for item in walk(main) if isinstance(item, KernelRun)]
    assert written and not any(isinstance(out, Constant) or out in main.params or out.name == "y" for out in written)
    for mode in WAYS:
        machine = vm.VirtualMachine(vm.build(parse_module(text), *mode))
        x = X.copy()
        first = [value.numpy().copy() for value in machine["main"](x)]
        second = [value.numpy() for value in machine["main"](x)]
        np.testing.assert_array_equal(x, X)
        np.testing.assert_array_equal(first, second)


def test_what_is_returned_has_a_storage_of_its_own() -> None:
    machine = vm.VirtualMachine(vm.build(parse_module(softmaxes(5)), "bytecode", "c"))
    first = machine["main"](X)
    copy = first.numpy().copy()
    machine["main"](X * 2)
    np.testing.assert_array_equal(first.numpy(), copy)
    found = places(planned(softmaxes(5)))
    assert list(found.values()).count(found["v5"]) == 1


# ---- symbolic sizes ----

UPPER = 'with (upper_bounds=(("n", 32),))'


def test_symbolic_tensors_of_equal_size_share_when_lifetimes_are_apart() -> None:
    main = planned(softmaxes(4, "n, 8"))
    found = places(main)
    assert found["v1"] == found["v3"] != found["v2"]
    assert all(not isinstance(size, int) for size in storages(main).values())
    run_everywhere(parse_module(softmaxes(4, "n, 8")), X)


def test_an_upper_bound_gives_static_storage() -> None:
    sizes = storages(planned(softmaxes(4, "n, 8", UPPER)))
    assert sizes["v1_storage"] == sizes["v2_storage"] == 32 * 8 * 4
    for rows in (0, 4, 32):
        run_everywhere(parse_module(softmaxes(4, "n, 8", UPPER)), np.ones((rows, 8), np.float32))


def test_bounded_tensors_of_several_sizes_share_an_arena() -> None:
    main = planned(SEVERAL_SIZES.format(rows="n", attributes=UPPER))
    (arena,) = (size for size in storages(main).values() if isinstance(size, int))
    assert arena >= (2 * 96 * 8 + 96 * 96) * 4
    for rows in (1, 32):
        module = parse_module(SEVERAL_SIZES.format(rows="n", attributes=UPPER))
        run_everywhere(module, np.ones((rows, 8), np.float32))


def test_a_lower_bound_alone_is_not_taken_for_static() -> None:
    sizes = storages(planned(softmaxes(4, "n, 8", 'with (lower_bounds=(("n", 4),))')))
    assert all(not isinstance(size, int) for size in sizes.values())
    text = softmaxes(2, "n, m", 'with (upper_bounds=(("n", 4),), lower_bounds=(("m", 4),))')
    assert all(not isinstance(size, int) for size in storages(planned(text)).values())


@pytest.mark.parametrize(
    ("attributes", "error", "words"),
    [
        ('upper_bounds=(("n", -1),)', RelvmShapeError, "at least 0 for dimension n, got -1"),
        ('upper_bounds=(("n", 1.5),)', RelvmTypeError, "an integer for dimension n, got 1.5"),
        (
            'upper_bounds=(("n", 3),), lower_bounds=(("n", 4),)',
            RelvmShapeError,
            "lower bound 4 exceeds upper bound 3",
        ),
        ('upper_bounds=(("k", 3),)', RelvmNameError, "no parameter's type has a dimension k"),
    ],
    ids=["negative", "not an integer", "lower above upper", "unknown"],
)
def test_a_bound_that_is_invalid_is_an_error(attributes: str, error: type[RelvmError], words: str) -> None:
    with pytest.raises(error, match=words):
        vm.build(parse_module(softmaxes(1, "n, 8", f"with ({attributes})")), "bytecode", "numpy")


def test_decreasing_functions_of_a_bounded_dimension_are_bounded_at_the_right_end() -> None:
    text = """def main(x: f32[n, 8], y: f32[40 - n, 8]) -> f32[40 - n, 8]
    with (upper_bounds=(("n", 32),), lower_bounds=(("n", 10),)) {
  a = softmax(y, axis=1)
  return softmax(a, axis=1)
}"""
    assert storages(planned(text))["a_storage"] == 30 * 8 * 4
    for rows in (10, 32):
        run_everywhere(parse_module(text), np.ones((rows, 8), np.float32), np.ones((40 - rows, 8), np.float32))


@pytest.mark.parametrize("way", WAYS, ids="-".join)
@pytest.mark.parametrize(
    ("attributes", "rows", "words"),
    [
        ('upper_bounds=(("n", 3),)', 4, "main: dimension n is 4, expected at most 3"),
        ('lower_bounds=(("n", 5),)', 4, "main: dimension n must be at least 5, got 4"),
        ('upper_bounds=(("n", 9),), lower_bounds=(("n", 5),)', 10, "main: dimension n is 10, expected at most 9"),
    ],
    ids=["above", "below", "above both"],
)
def test_a_dimension_out_of_its_bounds_is_an_error_that_names_it(way, attributes: str, rows: int, words: str) -> None:
    module, x = parse_module(softmaxes(2, "n, 8", f"with ({attributes})")), np.ones((rows, 8), np.float32)
    machine = vm.VirtualMachine(vm.build(module, *way))
    for call in (machine["main"], partial(evaluate, infer_types(module), "main")):
        with pytest.raises(RelvmShapeError, match=words):
            call(x)


# ---- functions, and lifetimes of storages ----


def test_independent_functions_plan_independently() -> None:
    other = softmaxes(4).replace("main", "other").replace("4, 8", "n, 8")
    both = softmaxes(4) + "\n" + other
    assert storages(planned(both)) == storages(planned(softmaxes(4)))
    assert places(planned(both, "other")) == places(planned(other, "other"))


def test_dead_values_are_freed_right_after_their_last_use_also_through_other_names() -> None:
    text = """def main(x: f32[n, 8]) -> f32[4, 8] {
  a = softmax(x, axis=1)
  same = a
  cast = match_cast(same, f32[4, 8])
  b = softmax(cast, axis=1)
  c = softmax(b, axis=1)
  return c
}"""
    bindings = planned(text, upto="insert_kills").body.bindings
    kinds = [item.value for item in bindings]
    use = next(i for i, v in enumerate(kinds) if isinstance(v, KernelRun) and getattr(v.args[0], "name", "") == "a")
    assert isinstance(kinds[use + 1], Kill) and kinds[use + 1].var.name == "a"
    assert not any(isinstance(item, Var) and item.name == "a" for v in kinds[use + 2 :] for item in walk(v))
    run_everywhere(parse_module(text), X)


LOOP = """def main(i: i64, x: f32[64, 16]) -> f32[64, 16] {
  a = softmax(transpose(x, perm=(1, 0)), axis=1)
  b = max(a, axes=(1,), keepdims=true)
  y = transpose(add(a, b), perm=(1, 0))
  return if i == 0 then x else @main(i - 1, y)
}"""


def peak_kilobytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize("mode", MODES)
def test_a_long_loop_of_tensors_stays_in_constant_memory(mode: str) -> None:
    machine = vm.VirtualMachine(vm.build(parse_module(LOOP), mode, "c"))
    x = np.zeros((64, 16), np.float32)
    machine["main"](1_000, x)
    before = peak_kilobytes()
    machine["main"](50_000, x)  # each iteration allocates 12 KB of tensors
    assert peak_kilobytes() - before < 20_000


def test_recursion_holds_no_arena_at_its_calls() -> None:
    text = """def main(i: i64, x: f32[64, 64]) -> f32[64, 64] {
  a = softmax(x, axis=1)
  b = softmax(a, axis=1)
  c = softmax(b, axis=1)
  y = if i == 0 then c else { r = @main(i - 1, c)
                              return r }
  d = softmax(y, axis=1)
  e = softmax(d, axis=1)
  return softmax(e, axis=1)
}"""
    main = planned(text, upto="insert_kills")
    freed = [b.value.var.name for b in main.body.bindings if isinstance(b.value, Kill)]
    call = next(i for i, b in enumerate(main.body.bindings) if b.var.name == "y")
    before = [b.value.var.name for b in main.body.bindings[:call] if isinstance(b.value, Kill)]
    assert {"a", "b", "a_storage", "b_storage"} <= set(before) <= set(freed)
    run_everywhere(parse_module(text), 3, np.ones((64, 64), np.float32))


BRANCH = """def main(c: bool) => (i64, i64) {
  a = if c then {
    made = packed("test.memory.make")
    _ = packed("test.memory.look", made)
    return made
  } else { return null }
  here = packed("test.memory.alive", a) : i64
  gone = packed("test.memory.alive") : i64
  return (here, gone)
}"""


@pytest.mark.parametrize("mode", MODES)
def test_what_a_branch_made_is_released_after_its_last_use(mode: str) -> None:
    made: list[weakref.ref] = []

    def make() -> np.ndarray:
        array = np.ones(3, np.float32)
        made.append(weakref.ref(array))
        return array

    register_func("test.memory.make", make, override=True)
    register_func("test.memory.look", lambda value: None, override=True)
    register_func("test.memory.alive", lambda *_: sum(each() is not None for each in made), override=True)
    machine = vm.VirtualMachine(vm.build(parse_module(BRANCH), mode, "numpy", verified=True))
    assert machine["main"](True) == (1, 0)
