"""Tests of the language server with a client that communicates with `relvm lsp` like an editor."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from relvm.editors.analysis import Analysis

URI = "file:///model.relvm"
TEXT = """\
# 🙂 a character of two UTF-16 units
def main(x: f32[n]) -> f32[n] {
  y = softmax(x)
  return @helper(y)
}
def helper(y: f32[m]) -> f32[m] = add(y, y)
"""


def talk(folder: Path, conversation: Callable[[LanguageClient, asyncio.Queue], Awaitable[None]]) -> None:
    """Start a server and a client, and run a conversation.  The queue receives the diagnostics."""

    async def run() -> None:
        client = LanguageClient("test", "1")
        received: asyncio.Queue = asyncio.Queue()
        client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: received.put_nowait(params))
        await client.start_io(sys.executable, "-P", "-m", "relvm", "lsp", cwd=folder)
        try:
            await client.initialize_async(types.InitializeParams(types.ClientCapabilities()))
            await conversation(client, received)
        finally:
            await client.shutdown_async(None)
            client.exit(None)
            assert await client._server.wait() == 0
            await client.stop()

    asyncio.run(asyncio.wait_for(run(), 60))


def at(line: int, character: int) -> dict[str, object]:
    return {"text_document": types.TextDocumentIdentifier(URI), "position": types.Position(line, character)}


def test_an_editor_gets_errors_types_definitions_and_formatted_text(tmp_path: Path) -> None:
    async def conversation(client: LanguageClient, received: asyncio.Queue) -> None:
        document = types.TextDocumentItem(URI, "relvm", 1, TEXT)
        client.text_document_did_open(types.DidOpenTextDocumentParams(document))
        assert not (await received.get()).diagnostics

        hover = await client.text_document_hover_async(types.HoverParams(**at(3, 17)))
        assert hover.contents.value == "```relvm\ny: f32[n]\n```"
        hover = await client.text_document_hover_async(types.HoverParams(**at(2, 8)))
        assert "softmax(x, axis=-1)" in hover.contents.value and "exp(x - max(x))" in hover.contents.value
        assert await client.text_document_hover_async(types.HoverParams(**at(0, 5))) is None

        found = await client.text_document_definition_async(types.DefinitionParams(**at(3, 12)))
        assert found.range == types.Range(types.Position(5, 4), types.Position(5, 10))
        symbols = await client.text_document_document_symbol_async(
            types.DocumentSymbolParams(types.TextDocumentIdentifier(URI))
        )
        assert [(each.name, each.detail) for each in symbols] == [
            ("main", "(x: f32[n]) -> f32[n]"),
            ("helper", "(y: f32[m]) -> f32[m]"),
        ]
        names = {each.label for each in await client.text_document_completion_async(types.CompletionParams(**at(3, 9)))}
        assert {"x", "y", "helper", "softmax"} <= names

        changed = types.TextDocumentContentChangeWholeDocument(TEXT.replace("softmax(x)", "softmax( z )"))
        client.text_document_did_change(
            types.DidChangeTextDocumentParams(types.VersionedTextDocumentIdentifier(2, URI), [changed])
        )
        (problem,) = (await received.get()).diagnostics
        assert problem.message == "no variable z"
        assert problem.range == types.Range(types.Position(2, 15), types.Position(2, 16))

        options = types.FormattingOptions(tab_size=2, insert_spaces=True)
        (edit,) = await client.text_document_formatting_async(
            types.DocumentFormattingParams(types.TextDocumentIdentifier(URI), options)
        )
        assert edit.new_text == TEXT.replace("softmax(x)", "softmax(z)")

    talk(tmp_path, conversation)


@pytest.mark.parametrize(
    ("text", "message", "marked"),
    [
        ("def f(x: i64) -> i64 = y", "no variable y", "y"),
        ("def f(", "expected a parameter, got the end of the text", ""),
        ("def $", "unexpected character '$'", "$"),
        ("def f(x: f32[2]) -> f32[3] {\n  return add(x, x)\n}", "expected dimension 0 to be 3, got 2", "add"),
    ],
)
def test_a_problem_has_its_place(text: str, message: str, marked: str) -> None:
    problem = Analysis(text).problem
    assert problem and message in problem.message and "<text>" not in problem.message
    assert text[problem.start : problem.end] == marked


def test_a_name_means_the_variable_that_is_visible() -> None:
    text = """\
def f(a: i64) -> i64 {
  b = if a > 0 then { a = 2.5; return 1 } else { return 2 }
  g = fn inner(a: bool) -> bool { return a }
  return a
}
def g(a: f64) -> f64 = a
"""
    analysis = Analysis(text)
    assert analysis.problem is None
    assert analysis.hover(text.index("return a }") + 7) == "```relvm\na: bool\n```"
    assert analysis.hover(text.rindex("a")) == "```relvm\na: f64\n```"
    assert analysis.hover(text.index("return a\n}") + 7) == "```relvm\na: i64\n```"
    assert analysis.hover(text.index("a > 0")) == "```relvm\na: i64\n```"


def test_a_text_with_an_error_still_has_operators() -> None:
    analysis = Analysis("def f(x: f32[n]) -> f32[n] = relu(y)")
    hover = analysis.hover(31)
    assert hover and hover.startswith("```relvm\nrelu(x)")
    assert analysis.definition(31) is None
    assert ("relu", "operator") in analysis.completions(31)


QUOTED = """\
def "f" (x: f32[n]) -> f32[n] = relu(x)
def "a b\\n\\"c" (x: f32[n]) -> f32[n] {
  y = @"f"(x)
  return @f(y)
}
def main(x: f32[n]) -> f32[n] = @"a b\\n\\"c"(x)
"""


def test_names_can_be_strings() -> None:
    found = Analysis(QUOTED)
    assert found.problem is None
    functions = [each for each in found.definitions if each.kind == "function"]
    assert [(each.name, found.spelled(each)) for each in functions] == [
        ("f", '"f"'),
        ('a b\n"c', '"a b\\n\\"c"'),
        ("main", "main"),
    ]
    for reference in ('@"f"', "@f"):
        assert found.definition(QUOTED.index(reference) + 1) == functions[0]
    assert found.definition(QUOTED.rindex('@"') + 1) == functions[1]
    assert found.hover(4) == '```relvm\n"f"(x: f32[n]) -> f32[n]\n```'
    assert {'"f"', '"a b\\n\\"c"', "main"} <= {name for name, _ in found.completions(0)}


ROOT = Path(__file__).parents[2]
PROGRAMS = {path.stem: path for path in (ROOT / "relvm/explore/live/example.relvm", ROOT / "examples/c/model.relvm")}
TEXTS = {name: path.read_text() for name, path in PROGRAMS.items()} | {"names": TEXT, "quoted names": QUOTED}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_every_beginning_of_a_program_is_analyzed(text: str) -> None:
    """While a program is typed, each answer is a result or an error of relvm."""
    for end in range(len(text) + 1):
        typed = text[:end]
        found = Analysis(typed)
        for offset in {0, end // 2, max(end - 1, 0), end}:
            found.hover(offset)
            found.definition(offset)
            assert found.completions(offset)
        if found.problem:
            assert 0 <= found.problem.start <= found.problem.end <= len(typed) + 1
    assert found.problem is None


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_programs_are_analyzed_with_every_name_quoted(text: str) -> None:
    for match in re.finditer(r"[A-Za-z_]\w*", text):
        found = Analysis(f'{text[: match.start()]}"{match.group()}"{text[match.end() :]}')
        found.hover(match.start())
        found.definition(match.start())
        found.completions(match.start())
