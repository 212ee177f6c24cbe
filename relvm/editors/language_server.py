"""Language server of the text form, for editors that speak the Language Server Protocol (`relvm lsp`)."""

from __future__ import annotations

import functools

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from relvm import __version__
from relvm.editors.analysis import Analysis, Definition
from relvm.editors.formatter import format_text
from relvm.errors import RelvmError

_KINDS = {
    "function": types.CompletionItemKind.Function,
    "variable": types.CompletionItemKind.Variable,
    "operator": types.CompletionItemKind.Method,
}


def make_server() -> LanguageServer:
    """Return a language server with diagnostics, hover texts, definitions, symbols, completion and formatting.

    `start_io` of the result serves the standard streams.
    """
    server = LanguageServer("relvm", __version__)
    analyze = functools.lru_cache(maxsize=16)(Analysis)

    def document_of(uri: str) -> TextDocument:
        return server.workspace.get_text_document(uri)

    def place(document: TextDocument, start: int, end: int) -> types.Range:
        return types.Range(document.client_position_at_offset(start), document.client_position_at_offset(end))

    def report(uri: str, version: int | None) -> None:
        document = document_of(uri)
        problem = analyze(document.source).problem
        found = []
        if problem:
            span = place(document, problem.start, problem.end)
            found.append(types.Diagnostic(span, problem.message, types.DiagnosticSeverity.Error, source="relvm"))
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        report(params.text_document.uri, params.text_document.version)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        report(params.text_document.uri, params.text_document.version)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        document = document_of(params.text_document.uri)
        text = analyze(document.source).hover(document.offset_at_position(params.position))
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text)) if text else None

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def definition(params: types.DefinitionParams) -> types.Location | None:
        document = document_of(params.text_document.uri)
        found = analyze(document.source).definition(document.offset_at_position(params.position))
        return types.Location(params.text_document.uri, name_range(document, found)) if found else None

    def name_range(document: TextDocument, found: Definition) -> types.Range:
        return place(document, found.start, found.name_end)

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        document = document_of(params.text_document.uri)
        analysis = analyze(document.source)
        found = (each for each in analysis.definitions if each.kind == "function")
        spans = [(each, name_range(document, each)) for each in found]
        return [
            types.DocumentSymbol(analysis.spelled(each), types.SymbolKind.Function, span, span, each.detail)
            for each, span in spans
        ]

    @server.feature(types.TEXT_DOCUMENT_COMPLETION)
    def completion(params: types.CompletionParams) -> list[types.CompletionItem]:
        document = document_of(params.text_document.uri)
        found = analyze(document.source).completions(document.offset_at_position(params.position))
        return [types.CompletionItem(name, kind=_KINDS[kind]) for name, kind in found]

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    def formatting(params: types.DocumentFormattingParams) -> list[types.TextEdit] | None:
        document = document_of(params.text_document.uri)
        try:
            text = format_text(document.source)
        except RelvmError:
            return None  # the error is shown as a diagnostic
        return [types.TextEdit(place(document, 0, len(document.source)), text)]

    return server
