"""Updates in place: a kernel updates a dead tensor that nothing else refers to, and otherwise a copy.

The random programs alias everything that can be aliased: variables of outer blocks, items of tuples and lists, views,
captures of closures, parameters of functions, constants, arguments of the host and values that a loop carries.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.modes import WAYS, machines, plain, run_everywhere

from relvm import vm
from relvm.errors import RelvmMemoryError
from relvm.frontend.text import parse_module
from relvm.ir.interpreter import evaluate
from relvm.ir.type_inference import infer_types

_ROWS = "i32[4, 3]"
_HELPERS = """
def changed(a: i32[4, 3], b: i32[4, 3]) -> i32[4, 3] {
  c = scatter_nd(a, const(i64[2, 1], [[3], [1]]), const(i32[2, 3], [[7, 8, 9], [1, 2, 3]]), depth=1, reduction="add")
  return scatter_elements(c, const(i64[4, 3], [[0, 1, 2], [3, 2, 1], [1, 1, 0], [2, 0, 3]]), b, axis=0)
}

def both(a: i32[4, 3], b: i32[4, 3]) -> (i32[4, 3], i32[4, 3]) = (@changed(a, b), a)

def loop(n: i64, a: i32[4, 3], b: i32[4, 3]) -> (i32[4, 3], i32[4, 3]) {
  return if n < 1 then (a, b) else {
    c = scatter_nd(a, const(i64[1, 1], [[2]]), const(i32[1, 3], [[1, 0, 1]]), depth=1, reduction="add")
    return @loop(n - 1, b, c)
  }
}

def kept(n: i64, a: i32[4, 3], all: list[i32[4, 3]]) -> list[i32[4, 3]] {
  return if n < 1 then all else {
    c = scatter_nd(a, const(i64[1, 1], [[0]]), const(i32[1, 3], [[1, 1, 1]]), depth=1, reduction="add")
    return @kept(n - 1, c, list_append(all, c))
  }
}

def applied(n: i64, f: (i32[4, 3]) -> i32[4, 3], a: i32[4, 3]) -> i32[4, 3] {
  return if n < 1 then a else {
    b = f(a)
    return @applied(n - 1, f, b)
  }
}

def deep(n: i64, a: i32[4, 3]) -> i32[4, 3] {
  return if n < 1 then a else {
    c = scatter_nd(a, const(i64[1, 1], [[1]]), const(i32[1, 3], [[2, 2, 2]]), depth=1, reduction="mul")
    d = @deep(n - 1, c)
    return add(c, d)
  }
}
"""


# The steps of a program that ahead-of-time export supports, and the others.
_EXPORTED = ("update",) * 4 + ("tuple", "view", "branch", "call", "call of two results")
_STEPS = (*_EXPORTED, "list", "closure", "function value", "loop", "recursion")


def _program(random: np.random.Generator, steps: tuple[str, ...]) -> str:
    """Return the text of a random module whose `main` updates tensors that others refer to."""
    is_cast = steps is _STEPS  # so that two variables are the same value; exports need known sizes
    values = [
        *(("x1", "x2") if is_cast else ("x",)),
        "y",
        "const(i32[4, 3], [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]])",
    ]
    lines = ["x0 = negative(x)", *(f"{name} = match_cast(x0, {_ROWS})" for name in ("x1", "x2"))] if is_cast else []

    def pick() -> str:
        return values[max(len(values) - 1 - int(random.exponential(1.5)), 0)]

    def update(of: str) -> str:
        rows = random.permutation(4)[:2]
        if random.random() < 0.4:
            index = random.integers(0, 4, (4, 3)).tolist()
            return f'scatter_elements({of}, const(i64[4, 3], {index}), {pick()}, axis=0, reduction="add")'
        row = random.integers(-5, 5, (2, 3)).tolist()
        return f"scatter_nd({of}, const(i64[2, 1], [[{rows[0]}], [{rows[1]}]]), const(i32[2, 3], {row}), depth=1)"

    for number in range(int(random.integers(6, 16))):
        v = f"v{number}"
        match random.choice(steps):
            case "update":
                lines.append(f"{v} = {update(pick())}")
            case "tuple":
                lines.append(f"t{number} = ({pick()}, {pick()})")
                lines.append(f"{v} = t{number}.{random.integers(2)}")
            case "list":
                lines.append(f"l{number} = list_append(make_list({pick()}, {pick()}), {pick()})")
                lines.append(f"{v} = list_item(l{number}, {random.integers(3)})")
            case "view":
                lines.append(f"{v} = reshape(abs(reshape({pick()}, shape(2, 6))), shape(4, 3))")
            case "branch":
                branches = (f"{{ w = {update(pick())}\n    return w }}", f"{{ return {pick()} }}")
                then, orelse = branches if random.random() < 0.5 else branches[::-1]
                lines.append(f"{v} = if c then {then} else {orelse}")
            case "closure":
                changes = f"{update(pick())}, {update('a')}"
                lines.append(f"f{number} = fn (a: {_ROWS}) -> {_ROWS} {{ return add({changes}) }}")
                lines.append(f"{v} = f{number}({pick()})")
            case "function value":
                changes = f"{update(pick())}, {update('a')}"
                lines.append(f"f{number} = fn (a: {_ROWS}) -> {_ROWS} {{ return subtract({changes}) }}")
                lines.append(f"{v} = @applied({random.integers(3)}, f{number}, {pick()})")
            case "call":
                lines.append(f"{v} = @changed({pick()}, {pick()})")
            case "call of two results":
                lines.append(f"b{number} = @both({pick()}, {pick()})")
                lines.append(f"{v} = b{number}.{random.integers(2)}")
            case "loop":
                lines.append(f"b{number} = @loop({random.integers(4)}, {pick()}, {pick()})")
                lines.append(f"{v} = b{number}.{random.integers(2)}")
            case _:
                lines.append(f"k{number} = @kept({random.integers(1, 4)}, {pick()}, make_list({pick()}))")
                lines.append(f"{v} = add(list_item(k{number}, 0), @deep({random.integers(3)}, {pick()}))")
        values.append(v)
    shown = [value for value in values if random.random() < 0.5] or values[-1:]
    shown += ["x0"] if is_cast else []
    given = "i32[_, _]" if is_cast else _ROWS
    body = "\n  ".join((*lines, f"return ({', '.join(shown)},)"))
    types = ", ".join("i32[_, _]" if name == "x0" else _ROWS for name in shown)
    return f"{_HELPERS}\ndef main(x: {given}, y: {_ROWS}, c: bool) -> ({types},) {{\n  {body}\n}}"


def _arguments(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    first, second = (random.integers(-9, 9, (4, 3)).astype(np.int32) for _ in range(2))
    return first, second


@pytest.mark.parametrize("seed", range(16))
def test_random_programs_of_aliases(seed):
    random = np.random.default_rng(seed)
    module = parse_module(_program(random, _STEPS))
    made = machines(module).values()
    for cond in (True, False):
        x, y = _arguments(random)
        before = x.copy(), y.copy()
        expected = evaluate(infer_types(module), "main", x, y, cond)
        for machine in made:
            np.testing.assert_array_equal(plain(machine["main"](x, y, cond)), expected)
        np.testing.assert_array_equal((x, y), before)


@pytest.mark.parametrize("seed", range(16, 24))
def test_random_programs_that_can_be_exported(seed):
    random = np.random.default_rng(seed)
    module = parse_module(_program(random, _EXPORTED))
    run_everywhere(module, *_arguments(random), bool(seed % 2))


@pytest.mark.parametrize("seed", range(24, 32))
def test_arguments_and_results_that_the_host_keeps_do_not_change(seed):
    random = np.random.default_rng(seed)
    module = parse_module(_program(random, _STEPS))
    x, y = _arguments(random)
    before = x.copy(), y.copy()
    for machine in machines(module).values():
        results = machine["main"](x, y, True)
        first = plain(results)
        views = [result.numpy() for result in results]
        for result in results:
            machine["main"](result, y, False)
            machine["main"](x, result, True)
        np.testing.assert_array_equal(views, first)
        np.testing.assert_array_equal((x, y), before)
        np.testing.assert_array_equal(plain(machine["main"](x, y, True)), first)


_S = "scatter_nd({}, const(i64[1, 1], [[1]]), const(i32[1, 3], [[7, 8, 9]]), depth=1)"
_UP = f"private def up(a: i32[n, 3]) -> i32[n, 3] = {_S.format('a')}\n"
_INDICES = "const(i64[4, 3], [[0, 1, 2], [3, 2, 1], [1, 1, 0], [2, 0, 3]])"
# Programs in which a value has several names, or is an item of something that the block computes.
_ALIASES = {
    "an item of a list as the other argument": f"""def main(x: i32[4, 3], n: i64) -> i32[4, 3] {{
      y = add(x, x)
      u = list_item(make_list(y, x), n)
      return scatter_elements(y, {_INDICES}, u, axis=0, reduction="add")
    }}""",
    "an item of a tuple in a list": f"""def main(x: i32[4, 3], n: i64) -> i32[4, 3] {{
      y = add(x, x)
      u = list_item(make_list((y, x), (x, y)), n).0
      return scatter_elements(y, {_INDICES}, u, axis=0, reduction="add")
    }}""",
    "a cast of a value that is used": f"""def main(x: i32[_, _], n: i64) -> (i32[_, _], i32[4, 3]) {{
      y = add(x, x)
      v = match_cast(y, i32[4, 3])
      return (y, {_S.format("v")})
    }}""",
    "a cast that inlining inserts": _UP
    + """def main(x: i32[_, _], n: i64) -> (i32[_, _], i32[_, _]) {
      y = add(x, x)
      z = @up(y)
      return (y, z)
    }""",
    "two casts of one value": f"""def main(x: i32[_, _], n: i64) -> i32[4, 3] {{
      y = add(x, x)
      v = match_cast(y, i32[4, 3])
      w = match_cast(y, i32[4, 3])
      return scatter_elements(v, {_INDICES}, w, axis=0)
    }}""",
    "a cast in a branch": f"""def main(x: i32[_, _], n: i64) -> (i32[_, _], i32[4, 3]) {{
      y = add(x, x)
      v = match_cast(y, i32[4, 3])
      z = if n < 1 then {_S.format("v")} else v
      return (y, z)
    }}""",
    "a cast of a tuple": f"""def f(t: (i32[_, _], i64)) -> (i32[4, 3], i64) {{
      u = match_cast(t, (i32[4, 3], i64))
      a = t.0
      b = match_cast(a, i32[4, 3])
      p = {_S.format("b")}
      return (p, u.1)
    }}
    def main(x: i32[_, _], n: i64) -> ((i32[4, 3], i64), (i32[4, 3], i64)) {{
      t = (x, n)
      return (@f(t), @f(t))
    }}""",
    "a cast around a loop": f"""def loop(n: i64, x: object, first: i32[4, 3]) -> (object, i32[4, 3]) {{
      return if n < 1 then (x, first) else {{
        v = match_cast(x, i32[4, 3])
        y = {_S.format("v")}
        return @loop(n - 1, y, add(v, first))
      }}
    }}
    def main(x: i32[4, 3], n: i64) -> (object, i32[4, 3]) = @loop(n + 2, x, x)""",
}


@pytest.mark.parametrize("text", _ALIASES.values(), ids=_ALIASES)
def test_aliases_of_updated_values(text):
    module = parse_module(text)
    x = np.arange(12, dtype=np.int32).reshape(4, 3)
    before = x.copy()
    for machine in machines(module).values():
        for number in (0, 1, 0):
            expected = evaluate(infer_types(module), "main", x, number)
            _assert_equal(plain(machine["main"](x, number)), expected)
            np.testing.assert_array_equal(x, before)


def _assert_equal(got: object, expected: object) -> None:
    if isinstance(expected, tuple):
        assert isinstance(got, tuple)
        for pair in zip(got, expected, strict=True):
            _assert_equal(*pair)
    else:
        np.testing.assert_array_equal(got, expected)


_BYTES = 1 << 20
_LOOP = """
def loop(n: i64, x: f32[512, 512], row: f32[1, 512]) -> f32[512, 512] {
  return if n < 1 then x else {
    y = scatter_nd(x, const(i64[1, 1], [[3]]), row, depth=1, reduction="add")
    REST
  }
}

def main(n: i64, x: f32[512, 512], row: f32[1, 512]) -> f32[512, 512] = @loop(n, x, row)
"""
# The rest of the loop's body, by what it does with the tensor.
_IN_PLACE = {
    "nothing": "return @loop(n - 1, y, row)",
    "an update in a branch": """z = if n < 3 then {
      a = scatter_nd(y, const(i64[1, 1], [[5]]), row, depth=1)
      return a
    } else y
    return @loop(n - 1, z, row)""",
    "two updates": """a = scatter_nd(y, const(i64[1, 1], [[5]]), row, depth=1)
    b = scatter_elements(a, const(i64[1, 1], [[7]]), const(f32[1, 1], [[2.0]]), axis=0)
    return @loop(n - 1, b, row)""",
}


def _limited_machines(text: str) -> list[vm.VirtualMachine]:
    """Return machines of a program whose memory is enough for one copy of a matrix."""
    ways = [way for way in WAYS if "numpy" not in way]  # NumPy's kernels always copy
    built = machines(parse_module(text), ways).values()
    return [vm.VirtualMachine(machine.executable, max_bytes=_BYTES * 3 // 2) for machine in built]


def test_a_loop_updates_an_item_of_a_tuple_in_place():
    text = """
def loop(state: (i64, (f32[512, 512], f32[1, 512]))) -> f32[512, 512] {
  n = state.0
  return if n < 1 then state.1.0 else {
    pair = state.1; row = pair.1
    y = scatter_nd(pair.0, const(i64[1, 1], [[3]]), row, depth=1, reduction="add")
    return @loop((n - 1, (y, row)))
  }
}

def main(n: i64, x: f32[512, 512], row: f32[1, 512]) -> f32[512, 512] = @loop((n, (x, row)))
"""
    x = np.zeros((512, 512), np.float32)
    for machine in _limited_machines(text):
        result = plain(machine["main"](10, x, np.ones((1, 512), np.float32)))
        assert (result[3] == 10).all() and not x.any()


@pytest.mark.parametrize("rest", _IN_PLACE.values(), ids=_IN_PLACE)
def test_a_loop_updates_its_value_in_place(rest):
    """Only the argument of the host is copied."""
    x = np.zeros((512, 512), np.float32)
    limited = _limited_machines(_LOOP.replace("REST", rest))
    results = [plain(machine["main"](10, x, np.ones((1, 512), np.float32))) for machine in limited]
    for result in results:
        np.testing.assert_array_equal(result, results[0])
    assert results[0][3].max() > 0 and not x.any()


def test_a_loop_that_keeps_its_values_copies_them():
    rest = "r = @loop(n - 1, y, row)\n    return add(r, x)"
    for machine in _limited_machines(_LOOP.replace("REST", rest)):
        with pytest.raises(RelvmMemoryError):
            machine["main"](10, np.zeros((512, 512), np.float32), np.ones((1, 512), np.float32))
