"""`relvm lsp`: a language server for .relvm files."""

from __future__ import annotations

import argparse

from relvm.cli.arguments import Parser
from relvm.errors import RelvmUnsupportedError


def add_arguments(parser: Parser) -> None:
    parser.example = "relvm lsp"
    parser.description = (
        "Speak the Language Server Protocol on the standard streams. Editors start this command themselves. It "
        "needs the package pygls: pip install 'relvm[editor]'."
    )


def run(options: argparse.Namespace) -> int:
    """Run the language server on the standard streams until the editor ends it."""
    try:
        from relvm.editors.language_server import make_server
    except ImportError as error:
        raise RelvmUnsupportedError(f"the language server needs pygls: pip install 'relvm[editor]' ({error})") from None
    make_server().start_io()
    return 0
