"""Tests of how objects are displayed: short text, and HTML for a notebook."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import relvm
from relvm import aot, explore, vm
from relvm.display import MAX_COLUMNS, MAX_LINES, html_lines, html_table, short_text, text_table
from relvm.errors import RelvmNameError
from relvm.frontend.text import parse_module
from relvm.ir.expr import Module, OpCall, constant
from relvm.ir.printer import print_module
from relvm.model import Model, Signature
from relvm.ops import relu
from relvm.passes.pass_manager import run_passes
from relvm.passes.pipeline import build_pipeline
from relvm.runtime.profiler import Profile, ProfileRow
from relvm.runtime.signature import python_signature

STEPS = 150


@pytest.fixture(scope="module")
def large() -> Module:
    """Return a module with many lines, a large constant, and a name that contains HTML."""
    steps = "\n".join(f"  a{i + 1} = add(exp(a{i}), y)" for i in range(STEPS))
    module = parse_module(
        f"def main(a0: f32[n, 4], y: f32[n, 4]) -> f32[n, 4] {{\n{steps}\n  return a{STEPS}\n}}\n"
        'def "<script>alert(1)</script>"(x: f32[n, 400]) -> f32[n, 400] { return add(x, weights) }'.replace(
            "weights", "const(f32[400], [" + ", ".join(["0.5"] * 400) + "])"
        ),
        "large.relvm",
    )
    assert len(print_module(module)) > 5_000
    return module


@pytest.fixture(scope="module")
def executable(large: Module) -> vm.Executable:
    return vm.build(large, target="numpy", fused=False)


@pytest.fixture(scope="module")
def machine(executable: vm.Executable) -> vm.VirtualMachine:
    return vm.VirtualMachine(executable)


X = np.zeros((2, 4), np.float32)


def shown_objects(large: Module, machine: vm.VirtualMachine) -> dict[str, object]:
    explored = explore.explore(large, title="<script>", target="numpy")
    profile = machine.profile("main", X, X)
    rows = tuple(replace(profile.rows[0], name=f"<script>{k}") for k in range(500))
    many = {f"<script>{k}": "f32[n, 4]" for k in range(500)}
    return {
        "module": large,
        "function": large["main"],
        "block": large["main"].body,
        "executable": machine.executable,
        "signatures": machine.executable.signature,
        "signature": Signature(many, many),
        "stats": machine.executable.stats(),
        "machine": machine,
        "model": Model(machine.executable),
        "tensor": machine["main"](np.zeros((60, 4), np.float32), np.zeros((60, 4), np.float32)),
        "profile": replace(profile, function="<script>", rows=rows),
        "exploration": explored,
        "stage": explored["lower_to_kernels"],
        "comparison": explore.compare(large, X, X, modes=("reference", "bytecode"), target="numpy"),
        "page": explore.browse_dataflow(large),
        "life": explore.liveness(large)[0],
        "program": machine.executable.program,
        "entry": machine.executable.functions["main"],
        "routines": vm.lower(run_passes(large, build_pipeline("numpy"))),
        "export": aot.build(parse_module("def main(x: f32[4]) -> f32[4] { return relu(x) }")),
    }


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict]] = []

    def handle_starttag(self, tag: str, attributes: list) -> None:
        self.found.append((tag, dict(attributes)))
        if tag not in ("img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def elements(text: str) -> list[tuple[str, dict]]:
    """Return the elements of an HTML text, after checking that they are nested correctly."""
    parser = _Elements()
    parser.feed(text)
    assert parser.open == []
    return parser.found


@pytest.fixture(scope="module")
def objects(large: Module, machine: vm.VirtualMachine) -> dict[str, object]:
    return shown_objects(large, machine)


KINDS = ("module", "function", "block", "executable", "signatures", "signature", "stats", "machine", "model", "tensor")
KINDS += ("profile", "exploration", "stage", "comparison", "page", "life", "program", "entry", "routines", "export")


def test_all_kinds_are_tested(objects: dict[str, object]) -> None:
    assert tuple(objects) == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_shows_itself(objects: dict[str, object], kind: str) -> None:
    shown = objects[kind]
    lines = repr(shown).split("\n")
    assert len(lines) <= (40 if kind == "stage" else MAX_LINES) and max(map(len, lines)) <= MAX_COLUMNS
    bundle = shown._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"} and bundle["text/plain"] == repr(shown)
    found = elements(bundle["text/html"])
    assert not {"script", "link", "style"} & {tag for tag, _ in found}
    for tag, attributes in found:
        assert not [name for name in attributes if name.startswith("on") or name == "href"]
        assert attributes.get("src", "data:image/png;base64,").startswith("data:image/png;base64,")
        if tag == "iframe" or (tag == "pre" and "<iframe" not in bundle["text/html"]):
            assert "height" in attributes["style"]
    assert any("height" in attributes.get("style", "") for _, attributes in found)  # the length is limited


def test_str_of_a_module_is_the_program(large: Module) -> None:
    assert print_module(parse_module(str(large))) == print_module(large) == f"{large}\n"
    assert "..." not in str(large) and "const(f32[400], ...)" in large._repr_html_()


def test_repr_of_a_node_that_breaks_the_rules() -> None:
    broken = OpCall(relu, ("no expression",))
    assert repr(broken).startswith("<OpCall that cannot be printed: ")


def test_repr_of_nodes() -> None:
    assert repr(constant([1.0, 2.0])) == "const(f32[2], [1.0, 2.0])"
    module = parse_module("kernel k(x: f32[n]) -> (o: f32[n]) {\n  for i in range(n) {\n    o[i] = x[i]\n  }\n}")
    ((_, kernel),) = module.kernels
    assert repr(kernel) == str(kernel) == repr(module)


def test_short_text() -> None:
    assert short_text("a\nb\n") == "a\nb"
    assert short_text("") == ""
    numbers = "\n".join(map(str, range(10)))
    assert short_text(numbers) == numbers
    lines = short_text(f"{numbers}\n10\n11\n").split("\n")
    assert lines == [*map(str, range(5)), "... 3 lines more", *map(str, range(8, 12))]
    assert short_text("x" * 121) == "x" * 117 + "..." and short_text("x" * 120) == "x" * 120
    assert short_text("a\x1b[31m") == "a\\x1b[31m"


def test_text_tables() -> None:
    assert text_table([("name", "ms"), ("a", "1.25")]) == ["name    ms", "a     1.25"]
    assert text_table([("ms", "name"), ("1.25", "a")], left=(1,)) == ["  ms  name", "1.25  a"]


def test_long_html_is_cut() -> None:
    text = html_lines("\n".join(["<b>" + "x" * 2000] * 5000), "<i>")
    assert len(text) < 1_100_000 and "lines more" in text and "<b>x" not in text and "<i>" not in text
    rows = [("a", "b"), *[(str(k), "<td>") for k in range(5000)]]
    table = html_table(rows, marked=(0,))
    assert table.count("<tr") == 1001 and "... 4000 rows more" in table and table.count("<tr style") == 1


def test_keys_are_completed(objects: dict[str, object], large: Module) -> None:
    assert objects["machine"]._ipython_key_completions_() == ["main", "<script>alert(1)</script>"]
    assert objects["module"]._ipython_key_completions_() == ["main", "<script>alert(1)</script>"]
    assert "fuse_ops" not in objects["exploration"]._ipython_key_completions_()  # target numpy does not fuse
    assert "bytecode" in objects["exploration"]._ipython_key_completions_()
    assert "a1" in objects["comparison"]._ipython_key_completions_()
    assert objects["profile"]._ipython_key_completions_()[0] == "<script>0"
    with explore.Debugger(large, target="numpy") as debugger:
        assert debugger._ipython_key_completions_() == []
        debugger.break_at("a2")
        debugger.run("main", X, X)
        assert {"y", "a0"} <= set(debugger._ipython_key_completions_())
        assert repr(debugger).startswith("<Debugger: 1 breakpoints, stopped at main:")


def test_rows_by_name(objects: dict[str, object]) -> None:
    row = objects["profile"]["<script>7"]
    assert isinstance(row, ProfileRow) and row.name == "<script>7"
    assert objects["comparison"]["a1"].name == "a1"
    with pytest.raises(RelvmNameError, match="no function expp in the profile; did you mean exp"):
        Profile("main", 1.0, (replace(row, name="exp"),))["expp"]
    with pytest.raises(RelvmNameError, match="no value none in the comparison"):
        objects["comparison"]["none"]


def test_functions_have_signatures(machine: vm.VirtualMachine) -> None:
    main = machine["main"]
    assert str(inspect.signature(main)) == "(a0: 'f32[n, 4]', y: 'f32[n, 4]') -> 'f32[n, 4]'"
    assert inspect.getdoc(main).split("\n")[2:] == [
        *("Parameters", "----------", "a0 : f32[n, 4]", "y : f32[n, 4]", "", "Returns", "-------", "f32[n, 4]")
    ]
    assert type(main).__doc__.startswith("A function of an executable on a machine.")
    assert repr(main) == "<function main(a0: f32[n, 4], y: f32[n, 4]) -> f32[n, 4] of a machine>"
    assert str(inspect.signature(Model)).startswith("(executable: ") and inspect.signature(type(main))
    assert str(inspect.signature(Model(machine.executable))) == str(inspect.signature(main))


def test_names_that_are_no_python_names_have_signatures() -> None:
    names = ("a", "input.1", "input_1", "for", "b")
    signature = python_signature(names, ("i64",) * 5, "i64")
    params = signature.parameters
    assert list(params) == ["a", "input_1", "input_1_", "_for", "b"]
    assert [each.kind.name for each in params.values()] == ["POSITIONAL_ONLY"] * 4 + ["POSITIONAL_OR_KEYWORD"]


def test_text_forms_import_no_matplotlib_and_no_ipython() -> None:
    code = """
import sys, relvm
from relvm import explore
from relvm.frontend.text import parse_module
module = parse_module("def main(x: f32[n]) -> f32[n] { return relu(x) }")
for each in (module, explore.explore(module), explore.browse_dataflow(module)):
    repr(each), each._repr_html_() if each is module else str(each)
print(sorted({name.partition(".")[0] for name in sys.modules} & {"matplotlib", "IPython"}))
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_model_of_many_inputs_is_short() -> None:
    params = ", ".join(f"input_{k}: f32[n, 4]" for k in range(100))
    module = parse_module(f"def main({params}) -> f32[n, 4] {{ return input_0 }}")
    with relvm.Model(vm.build(module, target="numpy")) as model:
        assert repr(model).startswith("<Model (\n  input_0: f32[n, 4],\n") and len(repr(model).split("\n")) == 10
        assert model._repr_html_().count("<tr") == 102
