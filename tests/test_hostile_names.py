"""Malicious names in a model or an executable are harmless wherever they are printed or written."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import tarfile
import xml.etree.ElementTree as ElementTree
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from support.c_compiler import run_compiler

from relvm import aot, explore, quoting, vm
from relvm.bytecode.asm_parser import parse_text
from relvm.bytecode.asm_printer import as_text
from relvm.cli import main
from relvm.cli.show import PICTURES, STAGES
from relvm.compiler.find_compiler import expect_compiler
from relvm.errors import RelvmArgumentError, RelvmError, RelvmNameError, RelvmSyntaxError
from relvm.explore.stages.page import page
from relvm.explore.stages.terminal import print_stages
from relvm.frontend.text import parse_module
from relvm.ir.builder import Builder
from relvm.ir.dtypes import F32
from relvm.ir.expr import Module
from relvm.ir.printer import print_module
from relvm.ir.symbolic import dim_var
from relvm.ir.types import TensorType
from relvm.runtime.array_files import save_arrays
from relvm.runtime.exec_builder import ExecBuilder

# Names by what they would do or use if they were written without escaping.
NAMES = {
    "color": "a\x1b[31mb",
    "title": "a\x1b]0;owned\x07b",
    "c1": "a\x9b2Jb",
    "delete": "a\x7f\x08b",
    "return": "good\rrelvm: evil",
    "line": "a\nrelvm: error: forged",
    "indented": "a\n  relvm: forged",
    "separator": "a\u2028b\x85c\x0bd",
    "bidi": "a\u202egnp.exe\u2066b",
    "invisible": "a\u200b\ufeff\U000e0041b",
    "c comment": "*/ int injected; /*",
    "c line": "a\\\n*/ int injected; //",
    "c string": 'a"; int injected; char *q="',
    "trigraph": "a??/\"b??'",
    "format": "%s%n%1000000d",
    "make": "$(shell touch injected) `touch injected`; touch injected #:=%",
    "html": "</script><img src=x onerror=alert(1)>\"'&amp;<!--",
    "xml": "]]><g/>-->&#0;",
    "formula": r"$x^$ \$y$",
    "markup": "[red]a[/red][/nothing]",
    "parent": "../../injected",
    "windows": "..\\..\\injected",
    "absolute": "/injected",
    "folders": "//a//../b/",
    "long": "a" * 900,
    "letters": "größe 重み",
}
names = pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)


def expect_safe_lines(text: str) -> None:
    """Assert that a text has no control characters, and that no name has injected a line."""
    expect_printable(text)
    assert "relvm: error: forged" not in text.split("\n")


def expect_printable(text: str) -> None:
    for line in text.split("\n"):
        assert line.replace("\t", "").isprintable(), ascii(line)


def expect_safe_display(shown: object) -> None:
    """Check that an object is displayed safely: as printable text, and as HTML without elements injected by names."""
    expect_safe_lines(repr(shown))
    text = shown._repr_html_()
    expect_printable(text)
    assert set(re.findall(r"<(\w+)", text)) <= {"div", "b", "pre", "table", "thead", "tbody", "tr", "th", "td", "p"}


def hostile_module(name: str, *, calls_host: bool = False) -> Module:
    """Return a module in which all names contain `name`.  calls_host: whether it calls a packed function."""
    n = dim_var(name)
    b = Builder()
    with b.function("main", [(name, TensorType(F32, (n, 2)))], attributes=(("output_names", (name,)),)) as (x,):
        b.ret(b.op("exp", b.op("relu", x, name=name), name=f"{name}2"))
    if not calls_host:
        return b.module()
    with b.function(f"{name}3", [(name, TensorType(F32, (n, 2)))]) as (x,):
        b.ret(b.packed(f"host.{name}", b.op("relu", x, name=name), result=TensorType(F32, (n, 2)), name=name))
    return b.module()


def hostile_executable(name: str, path: Path) -> None:
    """Save an executable with `name` in names, comments, source locations and an error message."""
    b = ExecBuilder()
    with b.function("main", [name]):
        b.emit_call("vm.builtin.print", [b.ctx, b.const(name)])
        b.emit_call(name, [b.r(0)], dst=b.r(1))
        b.emit_ret(b.r(1))
    with b.function(name, [name]):
        b.emit_call("vm.builtin.tuple_getitem", [b.r(0), b.imm(0)], dst=b.r(1))
        b.emit_ret(b.r(1))
    b.source = f"/* {name}"
    b.signature = {
        "main": {"params": [{"name": name, "type": "i64"}], "result": name, "attributes": {"output_names": [name]}}
    }
    b.debug = {each: {"instructions": [name] * 3, "origins": [[name]] * 3} for each in ("main", name)}
    b.get().save(path)


# ---- single functions ----


def test_c_takes_all_names_as_comments_strings_and_identifiers(tmp_path: Path) -> None:
    lines = ["#include <stdio.h>", "int main(void) {"]
    for number, name in enumerate(NAMES.values()):
        lines.append(f"  /* {quoting.c_comment(name)} */")
        lines.append(f"  int {quoting.c_identifier(name)}_{number} = {number};")
        lines.append(f"  int v{quoting.c_identifier_part(name)} = {number};")
        lines.append(f"  fputs({quoting.c_string(name)}, stdout); putchar(0);")
        lines.append(f"  if ({quoting.c_identifier(name)}_{number} != v{quoting.c_identifier_part(name)}) return 1;")
    (tmp_path / "names.c").write_text("\n".join([*lines, "  return 0;", "}", ""]))
    flags = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")
    run_compiler(expect_compiler().command[0], *flags, tmp_path / "names.c", "-o", tmp_path / "names")
    printed = subprocess.run([tmp_path / "names"], capture_output=True, check=True).stdout
    assert printed.decode().split("\0")[:-1] == list(NAMES.values())
    assert len(set(map(quoting.c_identifier_part, NAMES.values()))) == len(NAMES)


@names
def test_makefiles_and_files(name: str, tmp_path: Path) -> None:
    word = quoting.makefile_word(name)
    (tmp_path / "Makefile").write_text(f"all: {word}.x\n{word}.x:\n\t@echo {word}.x\n.PHONY: {word}.x\n")
    done = subprocess.run(["make", "-s", "all"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{word}.x\n"), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["Makefile"]
    inside = quoting.file_name(name)
    assert inside.isprintable()
    assert "\\" not in inside
    assert Path(os.path.normpath(tmp_path / inside)).is_relative_to(tmp_path)


@names
def test_html_and_pictures(name: str) -> None:
    found: list[tuple] = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list) -> None:
            found.append((tag, attrs))

        def handle_data(self, data: str) -> None:
            found.append((data,))

    shown = quoting.terminal_lines(name)
    parser = Parser()
    parser.feed(f'<b title="{quoting.html_text(name)}">{quoting.html_text(name)}</b>')
    parser.close()
    assert found == [("b", [("title", shown)]), (shown,)]
    data = quoting.html_data({"names": [name]})
    assert json.loads(data) == {"names": [shown]}
    assert "<" not in data
    element = f"<text id='i'>{quoting.html_text(quoting.svg_text(name))}</text>"
    assert ElementTree.fromstring(element).text == quoting.svg_text(name)


@names
def test_terminals_and_the_text_form(name: str) -> None:
    line, lines = quoting.terminal(name), quoting.terminal_lines(name)
    assert line.isprintable()
    assert (quoting.terminal(line), quoting.terminal_lines(lines)) == (line, lines)
    expect_safe_lines(quoting.terminal_message(name))
    literal = quoting.text_string(name)
    assert literal.isprintable()
    assert json.loads(literal) == name


@names
@pytest.mark.parametrize("kind", [RelvmError, RelvmNameError, RelvmArgumentError, RelvmSyntaxError])
def test_errors(name: str, kind: type[RelvmError]) -> None:
    error = kind(f"no function {name}")
    expect_safe_lines(str(error))
    assert error.args[0] if kind is not RelvmSyntaxError else error.msg == str(error)


# ---- the whole system ----


@names
def test_a_module_reads_back_and_is_safe_to_print(name: str) -> None:
    text = print_module(hostile_module(name, calls_host=True))
    expect_safe_lines(text)
    assert print_module(parse_module(text)) == text


@names
def test_an_export_compiles_and_declares_nothing_else(name: str, tmp_path: Path) -> None:
    program = aot.build(hostile_module(name))
    program.write(tmp_path / "out", ([np.ones((3, 2), np.float32)], [np.full((3, 2), np.e, np.float32)]))
    done = subprocess.run(["make", "-s", "test"], cwd=tmp_path / "out", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    for path, text in program.files().items():
        if path.endswith((".c", ".h", "Makefile")):
            assert b"int injected" not in re.sub(rb'(?s)/\*.*?\*/|"(\\.|[^"])*"', b"", text)
    assert not list(tmp_path.rglob("injected*"))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    header = (tmp_path / "out" / "include" / "model.h").read_text()
    expect_safe_lines(header)
    program.write(tmp_path / "out.tar")
    with tarfile.open(tmp_path / "out.tar") as archive:
        assert all(member.startswith("model/") for member in archive.getnames())


@pytest.mark.parametrize("interface", ["c", "packed"])
def test_packed_exports_and_executors(interface: str, tmp_path: Path) -> None:
    """Only names that could affect the C compiler are tested, because each of them needs a build."""
    for name in (NAMES["c comment"], NAMES["c string"], NAMES["bidi"]):
        if interface == "packed":
            config = aot.AotConfig(runtime="hosted")
            executor = aot.compile_library(aot.build(hostile_module(name), config))["default"]
            executor.set_input(0, np.zeros((4, 2), np.float32))
            executor.run()
            np.testing.assert_array_equal(executor.get_output(0), np.ones((4, 2), np.float32))
        else:
            executable = vm.build(hostile_module(name), "compiled")
            got = vm.VirtualMachine(executable)["main"](np.zeros((4, 2), np.float32))
            np.testing.assert_array_equal(got.numpy(), np.ones((4, 2), np.float32))


@names
def test_pages_and_pictures(name: str, tmp_path: Path) -> None:
    module = hostile_module(name, calls_host=True)
    pages = [explore.browse_calls(module).page(), explore.browse_dataflow(module).page()]
    explored = explore.explore(module, title=name)
    pages.append(page(explored.title, explored.views))
    for text in pages:
        assert text.count("<script") == text.count("</script>") == 2
        assert "<img" not in text
        expect_printable(text)
        data = re.search(r'(?s)<script id="data" type="application/json">(.*?)</script>', text).group(1)
        assert json.loads(data)
    figures = [explore.draw_dataflow(module), explore.draw_calls(module), explore.draw_liveness(module)]
    figures.append(explore.draw_memory(module, dims={name: 4}))
    for number, figure in enumerate(figures):
        figure.savefig(tmp_path / f"{number}.svg")
        ElementTree.parse(tmp_path / f"{number}.svg")
    for text in (explore.format_dataflow(module), explore.format_calls(module), explore.format_liveness(module)):
        expect_safe_lines(text)
    explored = explore.explore(module, title=name)
    print_stages(explored.title, explored.views)
    shown = [module, *module.functions, explored["c"], explored["routine"], *explore.liveness(module)]
    for each in (*shown, vm.build(module, target="numpy"), vm.build(module, target="numpy").signature):
        expect_safe_display(each)
    for each in (explored, explore.browse_calls(module)):
        expect_safe_lines(repr(each))  # their HTML is the page above, in a frame


@names
def test_what_the_command_line_prints_of_a_model(name: str, tmp_path: Path, capfd) -> None:
    (tmp_path / "model.relvm").write_text(print_module(hostile_module(name, calls_host=True)))
    model = str(tmp_path / "model.relvm")
    fusing = {"fold_scales", "pack_weights", "fuse_attention", "decompose", "fuse_ops", "share_kernels"}
    for stage in STAGES:
        if stage not in fusing:
            assert main(["show", model, "--stage", stage, "--target", "numpy"]) == 0
    for picture in PICTURES:
        assert main(["show", model, "--picture", picture]) == 0
    for shown in ("storage", "lowered", "placement"):
        assert main(["export", model, "-o", str(tmp_path / "out"), "--show", shown]) == 0
    assert main(["run", model, "--random", "--target", "numpy", "--function", f"{name}3"]) == 1
    assert main(["run", model, "--random", "--target", "numpy", "--function", name]) == 1
    out, error = capfd.readouterr()
    expect_safe_lines(out)
    expect_safe_lines(error)
    assert len(re.findall("^relvm: error: ", error, re.MULTILINE)) == 2


@names
def test_what_the_command_line_prints_of_an_executable(name: str, tmp_path: Path, capfd, monkeypatch) -> None:
    path = tmp_path / "model.rvm"
    hostile_executable(name, path)
    for stage in ("bytecode", "c"):
        assert main(["show", str(path), "--stage", stage]) == 0
    assert main(["show", str(path), "--stage", "bytecode", "--full-constants"]) == 0
    assert main(["verify", str(path)]) == 0
    assert main(["run", str(path), "--input", f"{name}=5"]) == 1
    assert main(["run", str(path), "--input", "other=5"]) == 1
    commands = tmp_path / "commands"
    commands.write_text(f"break {name}\nrun\nwhere\nlist\nregisters\nprint x\ncontinue\nquit\n", encoding="utf-8")
    with commands.open(encoding="utf-8") as file:
        monkeypatch.setattr("sys.stdin", file)
        main(["debug", str(path), "--input", f"{name}=5"])
    out, error = capfd.readouterr()
    expect_printable(out)  # the output also has lines of the source, and the output of the program
    expect_safe_lines(error)
    executable = vm.load(path)
    machine = vm.VirtualMachine(executable)
    for shown in (executable, machine, executable.signature, executable.stats()):
        expect_safe_display(shown)
    for function in machine.functions:
        expect_safe_lines(repr(machine[function]))
        expect_safe_lines(machine[function].__doc__)
        inspect.signature(machine[function])
    assert as_text(parse_text(as_text(executable.program))) == as_text(executable.program)
    for text in (str(executable.stats()), repr(vm.VirtualMachine(executable)), executable.as_python()):
        expect_safe_lines(text)


@names
def test_notes_of_an_error(name: str, tmp_path: Path) -> None:
    hostile_executable(name, tmp_path / "model.rvm")
    with pytest.raises(RelvmError) as caught:
        vm.VirtualMachine(vm.load(tmp_path / "model.rvm"), print_hook=lambda *values: None)["main"](5)
    notes = "\n".join(caught.value.__notes__)
    expect_safe_lines(notes)
    assert all(line.startswith("  ") for line in notes.split("\n"))


@names
def test_outputs_in_a_file(name: str, tmp_path: Path) -> None:
    (tmp_path / "model.relvm").write_text(print_module(hostile_module(name)))
    saved = tmp_path / "out" / "saved.npz"
    saved.parent.mkdir()
    options = ["--dim", "n=3", "--random", "--target", "numpy"]
    arguments = ["run", str(tmp_path / "model.relvm"), *options, "--output", str(saved)]
    arguments[3] = arguments[3].replace("n=3", f"{main_size(tmp_path / 'model.relvm')}=3")
    assert main(arguments) == 0
    assert list(np.load(saved)) == [quoting.file_name(name)]
    with zipfile.ZipFile(saved) as archive:
        for member in archive.namelist():
            assert Path(os.path.normpath(tmp_path / "out" / member)).is_relative_to(tmp_path / "out")


def main_size(path: Path) -> str:
    """Return the name of a dimension in a printed module."""
    return re.search(r"f32\[(\w+), 2\]", path.read_text()).group(1)


def test_outputs_whose_names_are_the_same_in_a_file_are_refused(tmp_path: Path) -> None:
    arrays = {"a\x1b": np.zeros(1), "a%1B": np.ones(1)}
    with pytest.raises(RelvmArgumentError, match="two outputs map to the same name in the file"):
        save_arrays(tmp_path / "saved.npz", arrays)


def test_only_one_file_of_the_command_line_prints() -> None:
    folder = Path(main.__code__.co_filename).parent
    prints = re.compile(r"\bprint\(|sys\.std(out|err)\.write")
    printing = {path.name for path in folder.glob("*.py") if prints.search(path.read_text())}
    assert printing == {"output.py"}
