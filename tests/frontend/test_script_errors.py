"""Errors in scripts have the file, line and column of the user's source."""

# ruff: noqa: F821, UP037 (scripts are not Python)
from __future__ import annotations

import importlib.util
import itertools

import numpy as np
import pytest

from relvm import script
from relvm.errors import RelvmArgumentError, RelvmNameError, RelvmShapeError, RelvmSyntaxError, RelvmTypeError
from relvm.frontend.text import parse_module
from relvm.ir.expr import Module
from relvm.ir.operator import _OTHER_NAMES, find_operator, operators

_numbers = itertools.count()

# Bodies of functions of x: f32[n], c: bool and i: i64, in which the mark ¦ precedes the location of the error.
BODIES = [
    ("¦while c:\n    i = 1.5\nreturn i", RelvmTypeError, "i is i64 before the loop but f64 after an iteration"),
    (
        "¦for k in (1, 2):\n    if i == k:\n        return i\n    elif i > k:\n        continue\nreturn k",
        RelvmSyntaxError,
        "a break, continue or else in a for loop over a Python tuple",
    ),
    ("¦for k in (1, 2, 3) * 30000:\n    x = relu(x)\nreturn x", RelvmSyntaxError, "to more than 20000 statements"),
    (
        "k = 3\nfor j in (1,) * 60:\n    k = ¦k * k\nreturn x",
        RelvmSyntaxError,
        "a Python value of more than 100000 bits",
    ),
    ("return i + ¦9 ** 9 ** 9", RelvmSyntaxError, "a Python value of more than 100000 bits"),
    ("return i + (¦1 << 10**11)", RelvmSyntaxError, "a Python value of more than 100000 bits"),
    ("k = ¦'ab' * 10**11\nreturn x", RelvmSyntaxError, "a Python value of more than 100000 bits or items"),
    (
        "¦for y in x:\n    i = y\nreturn i",
        RelvmTypeError,
        "i is i64 before the loop but f32[] after an iteration",
    ),
    (
        "for y in ¦c:\n    x = y\nreturn x",
        RelvmTypeError,
        "cannot loop over bool; expected range(...), a tuple, a list, or a tensor",
    ),
    (
        "¦with x:\n    pass\nreturn x",
        RelvmSyntaxError,
        "with is not supported in a script; write its body",
    ),
    ("¦y: f32[n]\nreturn x", RelvmSyntaxError, "an annotation without a value"),
    ("¦x + 1\nreturn x", RelvmSyntaxError, "an expression whose value is not used"),
    ("¦x[0] = 1\nreturn x", RelvmSyntaxError, None),
    ("return [y for y in ¦x]", RelvmTypeError, "x has a symbolic number of items"),
    ("return ¦0 < x < 1", RelvmTypeError, "bool[n] cannot be a condition; combine bool tensors with & | ~"),
    ("return c and ¦x", RelvmTypeError, "f32[n] cannot be a condition"),
    ("return ¦x is x", RelvmSyntaxError, "is between values of the program is not supported in a script; write =="),
    ("return ¦b'x'", RelvmSyntaxError, "the constant b'x'"),
    (
        "return ¦[x, x].append(x)",
        RelvmNameError,
        "has no attribute append; write a list comprehension",
    ),
    ("return relu(¦*x)", RelvmSyntaxError, "a starred argument"),
    ("return softmax(x, **¦c)", RelvmSyntaxError, "a double-starred argument"),
    ("def g(y: f32[n], z=1):\n    return y\nreturn g(x)", RelvmSyntaxError, "a parameter that has a default"),
    ("def g(¦y):\n    return y\nreturn g(x)", RelvmSyntaxError, 'parameter y needs a type, such as y: "f32[n]"'),
    ("y = x", RelvmSyntaxError, "a path through the function ends without a return"),
    ("¦if c:\n    return x", RelvmSyntaxError, "a path through the function ends without a return"),
    ("return ¦y", RelvmNameError, "no variable, function or operator y"),
    ("return ¦relus(x)", RelvmNameError, "relus; did you mean relu"),
    ("if c:\n    y = x\nreturn ¦y", RelvmNameError, "y is assigned only on some paths of the if at line"),
    ("return ¦np.nothing(x)", RelvmNameError, "has no attribute nothing"),
    ("y: ¦f33[n] = x\nreturn y", RelvmNameError, "invalid type f33[n]: no type f33; did you mean f32"),
    (
        "return match_cast(x, ¦'f32[n')",
        RelvmSyntaxError,
        "invalid type f32[n: expected , or ], got the end of the text",
    ),
    ("return ¦shape(n, 1 // 0)", RelvmSyntaxError, "division of a dimension by 0"),
    ("return ¦relu(x, x)", RelvmArgumentError, "relu"),
    ("return ¦softmax(x, axs=1)", RelvmArgumentError, "axs"),
    ("return softmax(x, axis=¦c)", RelvmTypeError, "axis must be known at translation time"),
    ("return ¦match_cast(x)", RelvmArgumentError, "match_cast: expected a value and a type, got 1 argument"),
    ("return ¦packed(x)", RelvmArgumentError, "packed: expected the name of the function as a string"),
    ("return ¦packed('f', x, reslt='i64')", RelvmArgumentError, "packed: unknown argument reslt; did you mean result?"),
    ("return ¦packed('f', x, pure=1)", RelvmTypeError, "packed: pure must be True or False"),
    ("return ¦const('f32[2]', [1])", RelvmTypeError, "expected f32[2], got elements of shape [1]"),
    ("return ¦const('u8[1]', [300])", RelvmTypeError, "300"),
    ("return ¦const('i64', 1)", RelvmTypeError, "const: expected a tensor type and numbers"),
    ("return ¦const('i64[1]')", RelvmArgumentError, "const: expected a type and the elements, got 1"),
    ("return ¦np.linalg.det(x)", RelvmNameError, "scripts do not support the function det of NumPy"),
    (
        "return ¦len(c)",
        RelvmTypeError,
        "len: expected a tensor of rank at least 1 and known shape, or a tuple; got bool",
    ),
    ("return ¦x(1)", RelvmTypeError, "cannot call f32[n]; expected a function"),
    ("return ¦(x, x)[i]", RelvmTypeError, "the index of a tuple must be known at translation time"),
    ("return ¦(x, x)[2]", RelvmTypeError, "tuple index out of range"),
    (
        "t = packed('t', result='(i64, i64)')\nreturn ¦t[2]",
        RelvmTypeError,
        "item 2 is out of range; the tuple has 2 items",
    ),
    (
        "t = packed('t', result='(i64, i64)')\nreturn ¦t['a']",
        RelvmTypeError,
        "the index of a tuple must be an integer, got 'a'",
    ),
    ("¦a, b = x\nreturn a", RelvmTypeError, "a value of type f32[n] cannot be unpacked"),
    ("¦a, b = 1\nreturn a", RelvmTypeError, "1 cannot be unpacked"),
    ("¦a, b = x, x, x\nreturn a", RelvmTypeError, "expected a tuple of 2 items, got one of 3"),
    ("return ¦x + c", RelvmTypeError, "add: y is bool, expected a tensor"),
    ("return ¦1 / 0", RelvmTypeError, "1 / 0: division by zero"),
    ("return ¦const('i32[1]', [1]) + 0.5", RelvmTypeError, "0.5 cannot be used as i32"),
    ("return ¦const('u8[1]', [1]) + 256", RelvmTypeError, "256 cannot be used as u8"),
    ("return x + ¦const('f32[2, 3]', [[1, 2, 3], [4, 5, 6]]) + const('f32[2]', [1, 2])", RelvmShapeError, None),
    ("y: i64 = ¦x\nreturn y", RelvmTypeError, "y: expected i64, got f32[n]"),
    ("return x if ¦x else x", RelvmTypeError, "f32[n] cannot be a condition; combine bool tensors with & | ~, choose"),
    (
        "if c:\n    y = x\nelse:\n    y = i\nreturn ¦y",
        RelvmTypeError,
        "y is f32[n] on one path but i64 on another (the if at line 12)",
    ),
    ("return ¦lambda y: y", RelvmTypeError, "the parameter types of this lambda are unknown"),
    ("g = lambda y: y\nreturn ¦g(x, x)", RelvmArgumentError, "the lambda takes 1 argument, got 2"),
    ("¦def g(y: f32[n]):\n    return g(y)\nreturn g(x)", RelvmTypeError, "g is recursive and needs a result type"),
    ("return helper(¦y=x)", RelvmArgumentError, None),
    ("return ¦helper(x, x)", RelvmArgumentError, "helper takes 1 argument, got 2"),
    ("return ¦shape(q)", RelvmNameError, "no dimension q"),
    ("return ¦np", RelvmTypeError, "a Python module cannot be a value of the program"),
    ("return ¦int(1e400)", RelvmTypeError, "i64: cannot convert float infinity to integer"),
    ("return ¦float(None)", RelvmTypeError, "f64: expected a number, got None"),
    ("return ¦f32('1')", RelvmTypeError, "'1' cannot be used as f32"),
    ("return ¦int(i, 2)", RelvmArgumentError, "int: expected one value, got int(i, 2)"),
    ("return ¦10**20", RelvmTypeError, "out of the range of i64"),
    ('return "é", ¦nothing', RelvmNameError, "nothing"),
    (
        "return ¦i @ 2",
        RelvmTypeError,
        "the operator @ is not supported on scalars; expected one of + - * / // % & | ^ ~ << >> == != < <= >",
    ),
    ("return ¦i @ i", RelvmTypeError, "the operator @ is not supported on scalars; expected one of + -"),
    ("return ¦max(i, x, x)", RelvmArgumentError, "max(x, *, axes=None, keepdims=False): too many positional arguments"),
    ("return ¦min(i, 2, axes=0)", RelvmArgumentError, "min(x, *, axes=None, keepdims=False): too many positional"),
    ("return ¦min(i)", RelvmTypeError, "min: x is i64, expected a tensor"),
    (
        "def g(y: i64) -> i64:\n    if y > 3:\n        ¦return\n    return y\nreturn g(i)",
        RelvmTypeError,
        "expected i64, got None",
    ),
    ("def g(y: i64) -> ¦i64(n + q):\n    return y\nreturn g(i)", RelvmNameError, "dimension q is not defined here"),
    ("def g(y: ¦f32[n + q]):\n    return y\nreturn g(x)", RelvmNameError, "dimension q is not defined here"),
]


def load(tmp_path, text: str):
    """Write `text` to a new Python file, import it, and return the module."""
    name = f"script_{next(_numbers)}"
    path = tmp_path / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, path


@pytest.mark.parametrize(("marked", "kind", "message"), BODIES, ids=[body[0][:50] for body in BODIES])
def test_an_error_names_its_place(marked, kind, message, tmp_path):
    header = (
        "from __future__ import annotations\nimport numpy as np\nfrom relvm import script\n\n"
        "@script\ndef helper(x: f32[n]):\n    return x\n\n"
        "if True:\n  @script\n  def f(x: f32[n], c: bool, i: i64):\n"
    )
    text = header + "".join(f"    {line}\n" for line in marked.split("\n"))
    before, mark, _ = text.partition("¦")
    function, path = load(tmp_path, text.replace("¦", ""))
    with pytest.raises(kind) as caught:
        function.f.module  # noqa: B018
    error = caught.value
    assert message is None or message in error.reason
    if mark and message is not None:
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        assert (error.filename, error.lineno, error.offset) == (str(path), line, column), str(error)
    assert str(error).startswith(f"{path}:{error.lineno}:{error.offset}: ")
    assert str(error).split("\n")[1] == "  " + text.replace("¦", "").split("\n")[error.lineno - 1]


def test_functions_that_call_each_other_need_result_types():
    def functions():
        @script
        def even(x: "f32[n]"):
            return odd(x)

        @script
        def odd(x: "f32[n]"):
            return even(x)

        return odd

    with pytest.raises(RelvmTypeError, match="odd is recursive and needs a result type annotation"):
        functions().module  # noqa: B018


def test_a_result_that_cannot_be_of_the_annotated_type():
    @script
    def f(x: "f32[n]") -> "i64":
        return x

    with pytest.raises(RelvmTypeError, match=r"result: expected i64, got f32\[n\]") as caught:
        f.module  # noqa: B018
    assert caught.value.offset == 16


def test_a_dimension_of_a_signature_that_no_value_gives():
    @script
    def result(x: "f32[n]") -> "i64(n + m)":
        return 3

    @script
    def parameter(x: "f32[n + m]", y: "f32[n]"):
        return y

    for function, column in [(result, 32), (parameter, 22)]:
        with pytest.raises(
            RelvmNameError, match="dimension m is not defined here; no parameter's shape determines it"
        ) as caught:
            function.module  # noqa: B018
        assert (caught.value.filename, caught.value.offset) == (__file__, column)


def test_a_result_may_name_a_size_that_its_value_gives():
    @script
    def f(x: "f32[n]", y: "f32[m]") -> "(f32[k], i64(n + m), f32[k + n])":
        return (x, n + m, concat(x, x, axis=0))

    assert isinstance(f.module, Module)


def test_a_function_without_source_is_refused():
    names: dict = {"script": script}
    with pytest.raises(RelvmSyntaxError, match="the source of f is not available; define the function in a file"):
        exec("@script\ndef f(x: 'f32[n]'):\n    return x", names)


def test_a_lambda_and_an_async_function_are_refused():
    with pytest.raises(RelvmSyntaxError, match="expected a function defined with def"):
        script(lambda: 1)

    with pytest.raises(RelvmSyntaxError, match="expected a function defined with def"):

        @script
        async def f():
            return 1


def test_a_script_that_is_nested_too_deep_is_a_syntax_error(tmp_path):
    chain = "    if c:\n        return x\n" * 400
    module, _ = load(
        tmp_path, f"from relvm import script\n@script\ndef f(x: 'f32[n]', c: 'bool'):\n{chain}    return x\n"
    )
    with pytest.raises(RelvmSyntaxError, match="f is nested too deeply"):
        module.f.module  # noqa: B018


def test_a_string_with_wide_characters_does_not_shift_the_column(tmp_path):
    module, _ = load(tmp_path, "from relvm import script\n@script\ndef f():\n    return 'éé' + ('€', nothing)\n")
    with pytest.raises(RelvmNameError) as caught:
        module.f.module  # noqa: B018
    assert (caught.value.lineno, caught.value.offset) == (4, 25)


def test_python_itself_is_never_run(tmp_path):
    module, _ = load(
        tmp_path,
        "from relvm import script\ndef boom():\n    raise RuntimeError\n"
        "@script\ndef f(x: 'f32[n]'):\n    if False:\n        boom()\n    return x\n",
    )
    assert isinstance(module.f.module, Module)


def test_a_captured_array_of_an_unknown_dtype_is_refused():
    weight = np.zeros(2, np.complex64)

    @script
    def f(x: "f32[n]"):
        return x + weight

    with pytest.raises(RelvmTypeError, match="unknown dtype complex64"):
        f.module  # noqa: B018


@pytest.mark.parametrize(("name", "operator"), [("mul", "multiply"), ("ReduceSum", "sum"), ("cat", "concat")])
def test_names_of_other_libraries_are_translated(name: str, operator: str, tmp_path) -> None:
    message = f"{name}; did you mean {operator}"
    function, _ = load(tmp_path, f"from relvm import script\n@script\ndef f(x: 'f32[n]'):\n    return {name}(x)\n")
    with pytest.raises(RelvmNameError, match=message):
        _ = function.f.module
    with pytest.raises(RelvmNameError, match=message):
        parse_module(f"def main(x: f32[n]) -> f32[n] = {name}(x)")
    with pytest.raises(RelvmNameError, match=message):
        find_operator(name)


def test_names_of_other_libraries_are_those_of_operators() -> None:
    assert set(_OTHER_NAMES.values()) <= operators().keys() and not _OTHER_NAMES.keys() & operators().keys()
