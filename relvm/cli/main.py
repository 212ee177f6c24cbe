"""The command `relvm`.

Each subcommand is a module of its name in relvm.cli.  The module declares the arguments in `add_arguments(parser)`, and
`run(options)` runs the command and returns the exit status.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
from collections.abc import Collection, Sequence

from relvm import __version__
from relvm.cli.arguments import Parser
from relvm.cli.common_arguments import add_verbosity
from relvm.cli.help import COMMANDS, RootParser
from relvm.cli.help import run as print_help
from relvm.cli.output import NoReaderError, complain, flush, note, prepare_streams, set_verbosity
from relvm.cli.shell_terms import in_shell_terms
from relvm.errors import RelvmError, RelvmFileError, message_with_notes

_MODULES = dict.fromkeys(("ops", "builtins", "opcodes", "boards"), "list_tables")  # the others have their own


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status.

    The status is 0 for success, and 130 if the command was interrupted.  It is 1 for an error (one line on standard
    error), for a difference found by `compare`, if `map` or `fmt` fails for a file, and if `fmt --check` finds a file
    to change.  Arguments that argparse rejects end the process with status 2.
    """
    prepare_streams()
    options = argparse.Namespace()
    try:
        try:
            words = sys.argv[1:] if arguments is None else arguments
            if "_ARGCOMPLETE" in os.environ:  # a shell asks for completions (relvm completion)
                with contextlib.suppress(ImportError):  # without argcomplete, there are no completions
                    import argcomplete

                    argcomplete.autocomplete(make_parser(os.environ["COMP_LINE"].split()))
            options = make_parser(words).parse_args(words)
            set_verbosity(options.verbose, options.quiet)
            return options.run(options)
        finally:
            flush()
    except NoReaderError:
        return 0
    except RelvmError as error:
        described = f"{type(error).__name__}: {in_shell_terms(message_with_notes(error), vars(options))}"
        complain(_file_error(error) if isinstance(error, RelvmFileError) else described)
        return 1
    except OSError as error:
        complain(_file_error(error))
        return 1
    except UnicodeDecodeError as error:
        complain(f"the file must be UTF-8 text: {error}")
        return 1
    except MemoryError as error:
        complain(f"not enough memory: {error}".removesuffix(": "))
        return 1
    except KeyboardInterrupt:
        note("interrupted")
        return 130


def _file_error(error: OSError) -> str:
    return ": ".join(str(part) for part in (error.filename, error.strerror) if part) or str(error)


def make_parser(words: Collection[str]) -> Parser:
    """Return the parser of command lines that consist of `words`.

    Only the commands that `words` contain get their arguments, because these are declared in the module that implements
    the command, which takes time to import.
    """
    parser = RootParser(prog="relvm")
    parser.add_argument("--version", action="version", version=f"relvm {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", parser_class=Parser)
    for name, about in COMMANDS.items():
        command = commands.add_parser(name, help=about)
        if name in words:
            module = importlib.import_module(f"relvm.cli.{_MODULES.get(name, name.replace('-', '_'))}")
            command.set_defaults(run=module.run, command=name)
            module.add_arguments(command)
            add_verbosity(command)
    parser.set_defaults(run=print_help, topic=None, root=parser, parsers=commands.choices, verbose=False, quiet=False)
    return parser
