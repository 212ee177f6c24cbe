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
from relvm.errors import RelvmArgumentError, near_matches, not_a_choice


class Parser(argparse.ArgumentParser):
    """An argument parser that escapes the user's text in error messages, so that the messages are safe to print.

    example: a command line that the help shows.
    """

    example = ""

    def format_help(self) -> str:
        example = f"\nexample:\n  {self.example}\n" if self.example else ""
        return super().format_help() + example

    def _check_value(self, action: argparse.Action, value: str) -> None:
        """Check a value against the choices of an argument.  Argparse calls this method for each value."""
        if action.choices is None or value in action.choices:
            return
        if action.metavar == "COMMAND":
            near = near_matches(value, action.choices) or "; `relvm help` lists the commands"
            raise argparse.ArgumentError(None, f"no command {value!r}{near}")
        raise argparse.ArgumentError(action, not_a_choice(value, action.choices))

    def error(self, message: str) -> NoReturn:
        near = self._similar_options(message)
        report(f"{self.format_usage()}{self.prog}: {error_label()} {escaped_message(message)}{escaped_message(near)}\n")
        sys.exit(2)

    def _similar_options(self, message: str) -> str:
        """Return a suggestion "; did you mean ...?" for an unknown option, or "" if none is similar.

        message: the error message of argparse, which contains the option.
        """
        found = re.search(r"unrecognized arguments: .*?(--[\w-]+)", message)
        if not found:
            return ""
        commands = [each for each in self._actions if isinstance(each, argparse._SubParsersAction)]
        parsers = [self, *(each for action in commands for each in action.choices.values())]
        options = {option.lstrip("-") for each in parsers for option in each._option_string_actions}
        options.discard(found[1].lstrip("-"))  # do not suggest the option itself, which another command has
        return near_matches(found[1].lstrip("-"), options).replace("you mean ", "you mean --").replace(", ", ", --")


MAX_INTEGER = (1 << 63) - 1


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


class Words(argparse.Action):
    """An option whose value is a list of words, separated by commas.

    words: the words that can be in the list.
    """

    def __init__(self, option_strings: Sequence[str], dest: str, *, words: Sequence[str], **rest):
        super().__init__(option_strings, dest, **rest)
        self.words = words

    def __call__(self, parser, options, value, option=None) -> None:
        for word in value.split(","):
            if word not in self.words:
                raise argparse.ArgumentError(self, not_a_choice(word, self.words))
        setattr(options, self.dest, value.split(","))


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
