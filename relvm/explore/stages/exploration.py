"""A model at every compilation stage, with the correspondence between the lines of the stages."""

from __future__ import annotations

import difflib
import itertools
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from relvm.bytecode.asm_printer import function_texts, instruction_text, quoted
from relvm.bytecode.kernel_printer import kernel_listing
from relvm.codegen.c.kernel import kernel_lines
from relvm.codegen.c.mangling import kernel_symbol
from relvm.codegen.c.module import print_c
from relvm.codegen.emit_bytecode import print_bytecode
from relvm.codegen.kernel_bytecode import print_with_sources
from relvm.compiler.build import lower
from relvm.data_classes import dataclass
from relvm.display import Displayed, text_table
from relvm.errors import (
    RelvmIndexError,
    RelvmNameError,
    RelvmToolchainError,
    RelvmUnsupportedError,
    counted,
    expect_choice,
    expect_type,
    near_matches,
)
from relvm.explore.draw.html_page import as_iframe
from relvm.explore.selection import as_module, title_of
from relvm.explore.stages.assembly import assembly_lines
from relvm.explore.stages.page import page
from relvm.explore.stages.terminal import print_stages
from relvm.explore.stages.view import Line, Origins, View
from relvm.explore.views.interactive_graph import GraphPage, dataflow_page, last_pass
from relvm.ir.expr import HasModule, Module
from relvm.ir.printer import module_lines
from relvm.ir.verifier import Stage
from relvm.kernels.statement_origins import statement_origins
from relvm.lir.printer import routine_lines
from relvm.lir.routine import CallStatement, LirModule, PrimStatement, Statement, map_statements, statements_in
from relvm.passes.pass_manager import Pass, run_passes
from relvm.passes.pipeline import TARGETS, build_pipeline
from relvm.quoting import c_comment, terminal
from relvm.runtime.file_io import complete_file
from relvm.runtime.timeline import Timeline

MODES = ("bytecode", "compiled")
GIVEN = "given"  # the stage before any pass


@dataclass(frozen=True, repr=False)
class Exploration(Displayed):
    """The result of `explore`: every stage of a model, shown as an interactive page in Jupyter.

    Attributes
    ----------
    title
        Title of the page.
    views
        The stages, in order.
    graph
        The dataflow graph that the page shows.  The graph shows the last stage before operators are lowered to kernels.
    timeline
        The timeline of a run, shown below the stages, or None.
    """

    title: str
    views: tuple[View, ...]
    graph: GraphPage
    timeline: Timeline | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the stages, in order."""
        return tuple(view.name for view in self.views)

    def __getitem__(self, name: str) -> View:
        """Return the stage of that name.  Raise RelvmNameError if it does not exist."""
        found = next((view for view in self.views if view.name == name), None)
        if found is None:
            raise RelvmNameError(
                f"no stage {name}; the stages are {', '.join(self.names)}{near_matches(name, self.names)}"
            )
        return found

    def diff(self, before: str, after: str) -> str:
        """Return the differences between the stages `before` and `after` as `diff -u` prints them, or "" if equal."""
        old, new = (self[name].text.splitlines() for name in (before, after))
        return "\n".join(difflib.unified_diff(old, new, before, after, lineterm=""))

    def trace(self, stage: str, line: int) -> dict[str, list[int]]:
        """Find the lines of all stages that come from the same source as line `line` of `stage`.

        The result contains a list for each stage, by its name.  The list contains the numbers of the lines that have a
        source location in common with the given line.

        Parameters
        ----------
        stage
            Name of the stage.
        line
            Number of the line, counted from 1.

        Raises
        ------
        RelvmIndexError
            The stage has no such line.
        """
        lines = self[stage].lines
        if not 1 <= line <= len(lines):
            raise RelvmIndexError(
                f"stage {stage}: line {line} is out of range; the stage has {counted(len(lines), 'line')}"
            )
        wanted = set(lines[line - 1].origins)
        return {
            view.name: [number for number, each in enumerate(view.lines, 1) if wanted & set(each.origins)]
            for view in self.views
        }

    def with_timeline(self, timeline: Timeline) -> Exploration:
        """Return a copy with the timeline of a run of the model.  The bars of the timeline link to the kernels.

        Parameters
        ----------
        timeline
            The attribute `timeline` of the result of `machine.profile(..., timeline=True)`.

        Raises
        ------
        RelvmTypeError
            `timeline` is not a timeline.
        """
        expect_type("timeline", timeline, Timeline, "the attribute timeline of a profile")
        return replace(self, timeline=timeline)

    def save(self, path: str | Path) -> None:
        """Write the page to `path`, as an HTML file that needs no Jupyter kernel and no network."""
        with complete_file(path) as partial:
            partial.write_text(self._page(), encoding="utf-8")

    def _page(self) -> str:
        return page(self.title, self.views, self.graph, self.timeline)

    def show(self) -> None:
        """Print the list of stages in a terminal."""
        print_stages(self.title, self.views)

    def _ipython_key_completions_(self) -> tuple[str, ...]:
        return self.names

    def __str__(self) -> str:
        rows = [("stage", "ms", "lines", "", "what it does")]
        for view in self.views:
            changed = "changed" if view.changed else ""
            rows.append((view.name, f"{view.seconds * 1000:.1f}", str(len(view.lines)), changed, view.about))
        return "\n".join((terminal(self.title), *text_table(rows, left=(0, 3, 4))))

    def _repr_html_(self) -> str:
        return as_iframe(self._page(), str(self), self.graph.picture() if self.graph else None)


def explore(
    model: Module | HasModule | str | Path,
    *,
    exec_mode: str = "bytecode",
    target: str = "c",
    fused: bool = True,
    dims: Mapping[str, int | tuple[int, int] | None] | None = None,
    without: Collection[str] = (),
    assembly: bool = False,
    title: str | None = None,
) -> Exploration:
    """Compile a model, and return the result of every stage.

    Parameters
    ----------
    model
        A module, or the path of an .onnx, .relvm, .mlir or .pt2 file.
    exec_mode
        "bytecode" or "compiled": whether the generated code of functions is shown as bytecode or as C.
    target
        "c", "bytecode" or "numpy": the form in which kernels are compiled, as for `vm.build`.
    fused
        Whether operators are fused into kernels.
    dims
        Sizes of symbolic dimensions of an ONNX model or a .pt2 file, as for `from_onnx` and `from_pt2`.
    without
        Names of optional passes to leave out, such as "cse".  The results of the program are the same without them, up
        to rounding.
    assembly
        Whether to add the stage `assembly`: the assembly code of kernels, with the lines of C that it is compiled from.
        Without a C compiler, the stage contains the message that there is none.
    title
        Title of the page, by default the file's name.

    Raises
    ------
    RelvmTypeError
        `model` is neither a module nor a path, or an option has the wrong type.
    RelvmArgumentError
        The mode or target is unknown, `without` contains something other than an optional pass, or `dims` is given for
        a module or for a .relvm or .mlir file, which state their sizes themselves.
    RelvmFormatError
        The file is none of these.
    """
    expect_choice("exec_mode", exec_mode, MODES)
    expect_choice("target", target, TARGETS)
    expect_type("fused", fused, bool, "True or False")
    expect_type("assembly", assembly, bool, "True or False")
    expect_type("without", without, (list, tuple, set, frozenset), "a list of names of passes")
    steps = build_pipeline(target, fused=fused, without=without)
    started = time.perf_counter()
    module = as_module(model, dims)
    title = title or title_of(model)
    collector = _Collector()
    collector.add(GIVEN, "As it was read or built.", time.perf_counter() - started, _module_lines(module), is_ir=True)

    def observe(step: Pass, before: Module, after: Module, seconds: float) -> None:
        collector.add(step.name, _first_sentence(step.doc), seconds, _module_lines(after), is_ir=True)
        if step.name in (shown, "lower_to_kernels"):
            drawn[step.name] = after

    shown = last_pass(steps, Stage.ANF)
    drawn: dict[str, Module] = {}  # the modules from which the graph is drawn, by pass
    planned = run_passes(module, steps, observer=observe)
    started = time.perf_counter()
    lir = lower(planned)
    seconds = time.perf_counter() - started
    collector.add("routine", "What bytecode and C are printed from.", seconds, _routine_lines(lir))
    if exec_mode == "bytecode":
        started = time.perf_counter()
        lines = list(_bytecode_lines(lir))
        collector.add("bytecode", "What the interpreter is given.", time.perf_counter() - started, lines)
    if lir.kernels:
        started = time.perf_counter()
        lines = list(_kernel_lines(lir))
        collector.add("kernels", "The kernels in bytecode.", time.perf_counter() - started, lines)
    if lir.kernels or exec_mode == "compiled":
        started = time.perf_counter()
        lines = list(_c_lines(lir, with_routines=exec_mode == "compiled"))
        collector.add("c", "What the C compiler is given.", time.perf_counter() - started, lines)
    if assembly and lir.kernels:
        started = time.perf_counter()
        try:
            lines = list(assembly_lines(lir, lines))
        except RelvmToolchainError as error:
            lines = [Line(text) for text in str(error).split("\n")]
        collector.add("assembly", "What the C compiler makes of kernels.", time.perf_counter() - started, lines)
    graph = dataflow_page(drawn[shown], drawn["lower_to_kernels"], stage=shown)
    return Exploration(title, tuple(collector.views), graph)


class _Collector:
    def __init__(self) -> None:
        self.views: list[View] = []

    def add(self, name: str, about: str, seconds: float, lines: Iterable[Line], *, is_ir: bool = False) -> None:
        lines = tuple(lines)
        texts = [line.text for line in lines]
        changed = not self.views or texts != [line.text for line in self.views[-1].lines]
        self.views.append(View(name, about, seconds, is_ir, changed, lines))


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.:])\s", " ".join(text.split()), maxsplit=1)[0].rstrip(":")


# ---- the lines of each kind of stage ----


def _module_lines(module: Module) -> Iterator[Line]:
    return (Line(text, origins) for text, origins in module_lines(module, elide_constants=True))


def _routine_lines(lir: LirModule) -> Iterator[Line]:
    for number, routine in enumerate(lir.routines):
        if number:
            yield Line("")
        for text, statement in routine_lines(routine):
            yield Line(text, statement.origins if statement else ())


def _bytecode_lines(lir: LirModule) -> Iterator[Line]:
    bytecode = print_bytecode(lir)
    names = function_texts([(key.kind == "packed", key.name) for key in lir.functions])
    for number, routine in enumerate(lir.routines):
        if number:
            yield Line("")
        params = ", ".join(map(quoted, routine.params))
        yield Line(f"bytecode {quoted(routine.name)}({params}) registers {bytecode.registers[routine.name]}")
        code, comments = bytecode.code[routine.name], bytecode.comments[routine.name]
        for place, (instruction, comment) in enumerate(zip(code, comments, strict=True)):
            text = f"  {place}: {instruction_text(instruction, names)}"
            named = f"{text.ljust(56)}  ; {comment}" if comment else text
            yield Line(named, bytecode.origins[routine.name][place])


def _c_lines(lir: LirModule, *, with_routines: bool) -> Iterator[Line]:
    """Yield the lines of the C code with their origins, which are source locations.

    The comment and the signature of a kernel have the origins of all its calls.  A line in its body has the origins of
    the operators that the line computes.

    with_routines: whether to include the code of routines, after that of kernels.
    """
    called = _origins_of_calls(lir)
    for kernel in lir.kernels:
        origins = called.get(kernel.name, ())
        by_statement = statement_origins(kernel)
        comment_lines = kernel.comment.count("\n") + 1
        for number, (text, source) in enumerate(kernel_lines(kernel, kernel_symbol(kernel.name))):
            if source is not None:
                yield Line(text, by_statement.get(source, origins))
            else:
                yield Line(text, origins if number < comment_lines or text.startswith("rvm_status") else ())
        yield Line("")
    if with_routines:
        yield from _routine_c_lines(lir)


def _kernel_lines(lir: LirModule) -> Iterator[Line]:
    """Yield the lines of the kernels' bytecode with their origins, which are source locations.

    The first line of a kernel has the origins of all its calls.  An instruction has the origins of the operators that
    it computes.
    """
    called = _origins_of_calls(lir)
    for number, kernel in enumerate(lir.kernels):
        if number:
            yield Line("")
        by_statement, origins = statement_origins(kernel), called.get(kernel.name, ())
        try:
            program, sources = print_with_sources(kernel)
        except RelvmUnsupportedError as error:  # the kernel is too large for the bytecode format
            yield Line(str(error), origins)
            continue
        first, *texts = kernel_listing(program, kernel.name).rstrip("\n").split("\n")
        yield Line(first, origins)
        head = len(texts) - len(sources)  # lines that declare tensors, arrays and constants
        yield from map(Line, texts[:head])
        for text, source in zip(texts[head:], sources, strict=True):
            yield Line(text, by_statement.get(source, origins) if source else ())


def _origins_of_calls(lir: LirModule) -> dict[str, Origins]:
    """Return the source locations of all calls of each kernel, by the name of the kernel."""
    called: dict[str, dict[str, None]] = {}
    for statement in (each for routine in lir.routines for each in statements_in(routine.body)):
        if isinstance(statement, CallStatement) and statement.kernel:
            called.setdefault(statement.function.name, {}).update(dict.fromkeys(statement.origins))
    return {name: tuple(origins) for name, origins in called.items()}


_MARK = re.compile(r"/\* @(\d+)@( = )?")  # a marker at the start of a comment; comments cannot contain /*


def _routine_c_lines(lir: LirModule) -> Iterator[Line]:
    """Yield the lines of the routines' C code with their origins.

    To find the statement to which a line belongs, each statement is printed with a number as its comment.  Afterwards
    the number is replaced by the original comment.
    """
    statements: list[CallStatement | PrimStatement] = []

    def marked(statement: Statement) -> Statement:
        if not isinstance(statement, CallStatement | PrimStatement):
            return statement
        statements.append(statement)
        return replace(statement, comment=f"@{len(statements) - 1}@")

    def commented(mark: re.Match[str]) -> str:
        comment = c_comment(statements[int(mark[1])].comment)
        return f"/* {comment}{mark[2] or '' if comment else ''}"

    module = lir.map_bodies(lambda routine: map_statements(marked, routine.body))
    text = print_c(module, routines=[routine.name for routine in module.routines]).routines
    for line in text.rstrip().split("\n"):
        origins = (statements[int(mark[1])].origins for mark in _MARK.finditer(line))
        yield Line(_MARK.sub(commented, line), tuple(dict.fromkeys(itertools.chain.from_iterable(origins))))
