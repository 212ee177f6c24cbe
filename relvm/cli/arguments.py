"""Parsing of arguments: an argument parser with safe messages, and checks of the values of options."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from relvm.cli.output import error_label, escaped_message, report
from relvm.errors import RelvmArgumentError, near_matches


class Parser(argparse.ArgumentParser):
    """An argument parser that escapes the user's text in error messages, so that the messages are safe to print.

    example: a command line that the help shows.
    """

    example = ""

    def format_help(self) -> str:
        example = f"\nexample:\n  {self.example}\n" if self.example else ""
        return super().format_help() + example

    def error(self, message: str) -> NoReturn:
        near = _near_match_suggestion(message, self)
        if found := re.match(r"argument COMMAND: invalid choice: ('.*?') ", message):
            message = f"no command {found[1]}"
            near = near or "; `relvm help` lists the commands"
        report(f"{self.format_usage()}{self.prog}: {error_label()} {escaped_message(message)}{escaped_message(near)}\n")
        sys.exit(2)


def _near_match_suggestion(message: str, parser: argparse.ArgumentParser) -> str:
    """Return a suggestion "; did you mean ...?" for an unknown command or option, or "" if none is similar.

    message: the error message of argparse that contains the unknown command or option.
    """
    if found := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message):
        return near_matches(found[1], re.findall(r"[\w.-]+", found[2]))
    if found := re.search(r"unrecognized arguments: .*?(--[\w-]+)", message):
        commands = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
        parsers = [parser, *(each for action in commands for each in action.choices.values())]
        options = {option.lstrip("-") for each in parsers for option in each._option_string_actions}
        options.discard(found[1].lstrip("-"))  # do not suggest the option itself, which another command has
        return near_matches(found[1].lstrip("-"), options).replace("you mean ", "you mean --").replace(", ", ", --")
    return ""


class Number(argparse.Action):
    """An option whose value is a number from `least` to `most`."""

    def __init__(self, option_strings: Sequence[str], dest: str, *, least: float, most: float = math.inf, **rest):
        super().__init__(option_strings, dest, **rest)
        self.least, self.most = least, most

    def __call__(self, parser, options, value, option=None) -> None:
        if not self.least <= value <= self.most:  # also rejects NaN
            limit = "" if self.most == math.inf else f" and at most {self.most}"
            raise RelvmArgumentError(f"{self.option_strings[0]} {value}: expected at least {self.least}{limit}")
        setattr(options, self.dest, value)


def file_name(text: str) -> str:
    """Check that an option value is a file or folder name, that is, not empty.  Return the value."""
    if not text:
        raise argparse.ArgumentTypeError("expected a file name, got nothing")
    return text


def picture_file(text: str) -> str:
    """Check the value of --roofline, and return it.  Raise an error if the value is the path of a model.

    The value of --roofline is optional, so in `relvm run --roofline model.onnx`, argparse takes the model as the value.
    """
    from relvm.runtime.file_io import EXECUTABLE_SUFFIXES, SOURCE_SUFFIXES

    if Path(text).suffix in (*SOURCE_SUFFIXES, *EXECUTABLE_SUFFIXES):
        raise argparse.ArgumentTypeError(f"expected an image file, got {text}; give a model before the options")
    return text
